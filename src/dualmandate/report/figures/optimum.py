"""The choice on its frontier: where technology and preferences meet, at which rates, and the price of being wrong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from dualmandate.frontier.numerics import log_grid
from dualmandate.population.wording import SYMBOLS, chosen_loss, exact, money, number, percent, stated_loss
from dualmandate.report.figures.figure import Align, Clearing, Figure, Mark, Plane, Ruler, layered, with_right_axis
from dualmandate.report.theme import LIGHT, ROOMY, Column, FigureTable, Row

if TYPE_CHECKING:
    from dualmandate.choice import Choice, Limits, SocialWelfare
    from dualmandate.frontier import Frontier

FLAT = 0.3  # share of the errors: where less than this moves with the loss, the axis does not begin at 0
TANGENCY_REACH = (0.55, 2.2)  # from this share of the chosen loss to this multiple of it
TANGENCY_FINDINGS = {
    "preferences": "At {loss}, one more unit of privacy loss costs exactly what its accuracy is worth",
    "participation": "The choice stops at {loss}, where accuracy peaks: beyond it people no longer take part",
    "largest rho": "The cap stops at {loss}, where more accuracy would still be worth its privacy",
    "largest epsilon": "The cap stops at {loss}, where more accuracy would still be worth its privacy",
    "fitness for use": "Fitness for use asks for {loss}, more privacy loss than preferences alone would",
    "ledger": "The account stops at {loss}, where more accuracy would still be worth its privacy",
    "simulation": "The choice stands at {loss}, an end of what was simulated: what lies beyond is not known",
}
PHONE_AXIS = 66  # px of its width that a picture on a phone has beside the plane
HEIGHTS = (300, 380)  # px, of its picture on a phone and on a desk
LIMIT_WORDS = "left in the account: ε = 0.1234"  # as long as the name of a limit beside its line can be
RATES_REACH = 8.0  # from an eighth of the chosen loss to eight times it
RATES_ROOM = 0.2  # of the height, for the words of one curve above those of the other
RATES_FINDINGS = {
    "preferences": "Below {loss} accuracy is worth more than its privacy; above, less",
    "participation": "At {loss} accuracy peaks: {mrt} is gained for one more unit, and {wta} asked for it",
    "largest rho": "At {loss} the cap binds: accuracy gained, {mrt}, still exceeds the {wta} asked for it",
    "largest epsilon": "At {loss} the cap binds: accuracy gained, {mrt}, still exceeds the {wta} asked for it",
    "fitness for use": "At {loss} fitness for use binds: accuracy gained, {mrt}, is less than the {wta} asked for it",
    "ledger": "At {loss} the account binds: accuracy gained, {mrt}, still exceeds the {wta} asked for it",
    "simulation": "At {loss} what was simulated ends: {mrt} is gained for one more unit, and {wta} asked for it",
}
WELFARE_REACH = 8.0  # times the lowest and the highest candidate
WELFARE_DEPTH = 1.5  # the picture reaches down to this many times the cost at the choice below the lowest candidate,
WELFARE_DEEPEST = 5.0  # but no further than this many times the cost at the choice
END_NAMES = {
    "largest epsilon": "cap",
    "largest rho": "cap",
    "ledger": "account",
    "fitness for use": "fit for use",
    "participation": "peak of accuracy",
    "simulation": "simulated",
}
REGRET_REACH = 4.0  # from a quarter of the chosen loss to four times it
HALF, DOUBLE = 0.5, 2.0
REGRET_ROOM = 0.2  # share of the height from which on a point leaves room for a label below it


def tangency(frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, limits: Limits | None = None) -> Figure:
    """The paper's Figure 1: what technology can produce, what society finds as good, an open circle where they meet.

    The vertical axis is the paper's accuracy I where one table with squared loss is valued. With several tables, or
    with absolute loss, welfare is no function of I alone; the axis is then the value of accuracy, minus the data loss
    in USD, in which both curves are exact for every program. With B(ε) what the frontier is worth (b·I, minus the data
    loss), the indifference curve through the choice is B(ε*) + P(ε) − P(ε*), P the privacy cost, and the tangent has
    the slope b·MRT; divided by b where the axis is I. Where a cap or a floor decides, its line is drawn and the two
    curves cross instead of touching.
    """
    best, letter = choice.epsilon, SYMBOLS[choice.privacy_measure]
    # Welfare is a function of ε and I alone: one table is valued, by its squared error.
    plain = not welfare.other_losses and [value.measure for value in welfare.table_values] == ["squared"]

    def worth(loss: float) -> float:
        return frontier.accuracy(loss) if plain else -welfare.data_loss(frontier, loss)

    price = welfare.table_values[0].value_per_step if plain else 1.0
    level, cost = worth(best), welfare.privacy_cost(best)
    slope = -welfare.marginal_data_loss(frontier, best) / price
    rows = tuple(
        {
            "loss": loss,
            "frontier": worth(loss),
            "indifference": level + (welfare.privacy_cost(loss) - cost) / price,
            "tangent": level + slope * (loss - best),
            "marked": loss == best,
        }
        for loss in log_grid(
            TANGENCY_REACH[0] * best, TANGENCY_REACH[1] * best, through=(best,), within=frontier.known_losses
        )
    )
    kind, what = ("number", "accuracy I") if plain else (choice.currency, "value of accuracy")
    table = FigureTable.of(
        rows,
        f"Frontier, indifference curve and tangent: {what} at each {letter}",
        Column("loss", f"privacy loss {letter}", "loss"),
        Column("frontier", f"{what} that technology can produce", kind),
        Column("indifference", f"{what} as good for society as the choice", kind),
        Column("tangent", "tangent to the frontier at the choice", kind),
    )
    count = sum(frontier.query_counts.values())

    def layout(width: int) -> Mark:
        roomy, interior = width >= ROOMY, choice.bound_by == "preferences"
        upward = (
            "↑ accuracy I" + ", minus the expected squared error" * roomy
            if plain
            else f"↑ value of accuracy, {choice.currency}"
        )
        plane = Plane(
            Ruler(f"privacy loss {letter}: less protection →", rows[0]["loss"], rows[-1]["loss"]),
            Ruler(upward, *_heights(rows, level), labels=kind),
        )
        picture = layered(
            *_limit_marks(plane, choice, limits),
            plane.horizontal(level, color=LIGHT.quiet, dash=(2, 4), end=best),
            *([plane.vertical(best, color=LIGHT.quiet, dash=(2, 4), top=level)] if interior else []),
            *_named_curves(plane, rows, choice, level=level, width=width),
            plane.points([{"loss": best, "frontier": level}], "loss", "frontier", color=LIGHT.ink, name="optimum"),
            height=HEIGHTS[roomy],
        )
        if plain and roomy:  # the same height read as the root mean squared error of one published number
            labels = f"format(sqrt(max(0, -datum.value / {count})), ',.2~f')"
            errors = Ruler("RMSE of one number", plane.up.low, plane.up.high, right=True, labels=labels)
            picture = with_right_axis(picture, plane, errors)
        return picture

    return Figure(
        "tangency",
        title=TANGENCY_FINDINGS[choice.bound_by].format(loss=stated_loss(choice.loss)),
        subtitle=f"Accuracy in {'squared table units' if plain else choice.currency}, over {count:,} published numbers",
        sentence="The blue curve is the most accuracy that the technology can give for each privacy loss. Along the "
        "orange one society is equally well off; it is better off above and to the left. The open circle is the best "
        "place that can be reached.",
        table=table,
        layout=layout,
    )


def _heights(rows: tuple[Row, ...], level: float) -> tuple[float, float]:
    """The ends of the axis: up to 0, or about the curves, where little of the error is noise and they lie far below."""
    low, high = rows[0]["frontier"], rows[-1]["frontier"]
    rise = high - low
    return (min(low, 1.5 * level), 0.0) if rise > FLAT * abs(level) else (low - 0.3 * rise, high + 0.6 * rise)


def _named_curves(plane: Plane, rows: tuple[Row, ...], choice: Choice, *, level: float, width: int) -> list[Mark]:
    """The curves, and every name where no line and no other words pass."""
    straight = all(abs(row["tangent"] - row["indifference"]) < 0.01 * abs(level) for row in rows)
    roomy = width >= ROOMY
    drawn = ["frontier", "indifference", *([] if straight else ["tangent"])]
    lines = {key: [(row["loss"], row[key]) for row in rows] for key in drawn}
    here = (choice.epsilon, level)
    clearing = Clearing(plane, width - (130 if roomy else 64), HEIGHTS[roomy])
    for line in (*lines.values(), [(rows[0]["loss"], level), here], [(choice.epsilon, plane.up.low), here]):
        clearing = clearing.with_line(line)
    clearing = (
        clearing.with_line([here, (choice.epsilon, plane.up.high)]) if choice.bound_by != "preferences" else clearing
    )
    clearing = clearing.with_words(plane.across.share(choice.epsilon), 0.0, LIMIT_WORDS)  # of a cap or a floor
    frontier = "what technology can produce" if roomy else "frontier"
    wanted = "equally good\nfor society" + ("\n(also the tangent)" if straight and roomy else "")
    asked = [
        ([here], stated_loss(choice.loss), LIGHT.ink),
        (lines["indifference"], wanted, LIGHT.preference),
        (lines["frontier"][::-1], frontier, LIGHT.production),
        *([] if straight else [(lines["tangent"][::-1], "tangent", LIGHT.quiet)]),
    ]
    names: list[Mark] = []
    for line, words, color in asked:
        spot, clearing = clearing.named(line, words)
        names += [] if spot is None else [plane.words(*spot, words, color=color, align="center")]
    dashed = [] if straight else [plane.curve(rows, "loss", "tangent", color=LIGHT.quiet, dash=(6, 4), thick=1.5)]
    produced = plane.curve(rows, "loss", "frontier", color=LIGHT.production)
    return [*dashed, produced, plane.curve(rows, "loss", "indifference", color=LIGHT.preference), *names]


def _limit_marks(plane: Plane, choice: Choice, limits: Limits | None) -> list[Mark]:
    """The cap and the floor, each with its line, its name and the side that is closed."""
    if limits is None:
        return []
    letter, (low, high) = SYMBOLS[choice.privacy_measure], (plane.across.low, plane.across.high)
    caps = {"cap": limits.largest_epsilon or limits.largest_rho, "left in the account": limits.remaining}
    stops = [
        (float(cap), (float(cap), high), f"{name}: {letter} = {exact(float(cap))}")
        for name, cap in caps.items()
        if cap is not None and cap < high
    ]
    if choice.bound_by == "fitness for use":
        stops.append((choice.epsilon, (low, choice.epsilon), "fit for use →"))
    marks: list[Mark] = []
    for at, closed, words in stops:
        marks += [
            plane.closed(*closed),
            plane.vertical(at, color=LIGHT.limit),
            plane.words(at, plane.up.low, words, color=LIGHT.limit, shift=(6, -6)),
        ]
    return marks


def rates(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Figure:
    """What one more unit of privacy loss buys, MRT(ε) = dI/dε, against what society asks for it, WTA(ε).

    MRT falls, WTA does not: where they cross, society stops. Logarithmic axes; an open circle at the choice. Where
    tables are counted in different units (squared people and squared money have no sum), both are in USD.
    """
    letter, best, in_money = SYMBOLS[choice.privacy_measure], choice.epsilon, choice.root_mean_squared_error is None
    produced, asked = "marginal_rate_of_transformation", "willingness_to_accept"
    rows = tuple(
        {
            "loss": loss,
            produced: -welfare.marginal_data_loss(frontier, loss)
            if in_money
            else frontier.marginal_rate_of_transformation(loss),
            asked: welfare.marginal_privacy_cost(loss) if in_money else welfare.willingness_to_accept(frontier, loss),
            "marked": loss == best,
        }
        for loss in log_grid(best / RATES_REACH, best * RATES_REACH, through=(best,), within=frontier.known_losses)
    )
    what, kind = ("value of accuracy", choice.currency) if in_money else ("accuracy", "number")
    table = FigureTable.of(
        rows,
        f"{what.capitalize()} gained and {what} asked for one more unit of {letter}",
        Column("loss", f"privacy loss {letter}", "loss"),
        Column(produced, f"MRT: {what} gained per unit of {letter}", kind),
        Column(asked, f"WTA: {what} asked per unit of {letter}", kind),
    )

    def layout(width: int) -> Mark:
        roomy, here = width >= ROOMY, next(row for row in rows if row["marked"])
        buying = [row for row in rows if row[produced] > 0]  # a frontier that people leave ends
        heights = [row[key] for row in buying for key in (produced, asked) if row[key] > 0]
        middle = here[produced]
        plane = Plane(
            Ruler(f"privacy loss {letter}", rows[0]["loss"], rows[-1]["loss"], log=True),
            Ruler(
                f"↑ {what} per unit of {letter}" + (f", {choice.currency}" if in_money else ""),
                max(min(heights) / (1 if len(buying) == len(rows) else 30), middle / 1e5),
                min(max(heights), middle * 1e5),
                log=True,
                labels=kind,
            ),
        )
        early = next(row for row in rows if row["loss"] >= best / 3)
        sinking = early[asked] < 0.8 * rows[0][asked]
        bought_at, asked_at, asked_shift = early, rows[0], (6, 36 if sinking else 12)
        # Where fitness for use decides, the curves cross on the left; the words stand at the choice, if there is room.
        if choice.bound_by == "fitness for use" and (plane.up.share(here[asked]) > plane.up.share(middle) + RATES_ROOM):
            bought_at, asked_at, asked_shift = here, here, (12, 14)
        buys, asks = (bought_at["loss"], bought_at[produced]), (asked_at["loss"], asked_at[asked])
        society = "what society asks (WTA)" if roomy else "what society\nasks (WTA)"
        apart = [] if choice.bound_by == "preferences" else [here]
        return layered(
            plane.vertical(best, color=LIGHT.quiet, dash=(2, 4), top=middle),
            plane.curve(buying, "loss", produced, color=LIGHT.production),
            plane.curve(buying, "loss", asked, color=LIGHT.preference),
            plane.points(apart, "loss", asked, color=LIGHT.preference, name="asked"),
            plane.points([here], "loss", produced, color=LIGHT.ink, name="optimum"),
            plane.words(*buys, "what it buys (MRT)", color=LIGHT.production, shift=(12, -2)),
            plane.words(*asks, society, color=LIGHT.preference, shift=asked_shift),
            plane.words(best, plane.up.low, stated_loss(choice.loss), shift=(8, -8)),
            height=340 if roomy else 280,
        )

    gained, wanted = number(choice.marginal_rate_of_transformation), number(choice.willingness_to_accept)
    if in_money:
        gained, wanted = (
            money(amount, choice.currency) for amount in (-choice.marginal_data_loss, choice.marginal_privacy_cost)
        )
    title = RATES_FINDINGS[choice.bound_by].format(loss=stated_loss(choice.loss), mrt=gained, wta=wanted)
    crossings = sum(point.kind != "end" for point in choice.local_optima)
    if choice.bound_by == "preferences" and crossings > 1:
        where = f"where they meet at {stated_loss(choice.loss)}"
        title = f"The two rates meet {crossings} times; society is best off {where}"
    return Figure(
        "rates",
        title=title,
        subtitle=f"{table.caption}; both axes logarithmic",
        sentence="Each further unit of privacy loss buys less accuracy (blue). Society asks for accuracy in return "
        "(orange). While it gets more than it asks for, it should go on.",
        table=table,
        layout=layout,
    )


def welfare_curve(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Figure:
    """Welfare and its two parts at each privacy loss, USD, all ≤ 0.

    Dots for every peak that was considered and the ends that limits set, an open circle for the one chosen.
    """
    letter = SYMBOLS[choice.privacy_measure]
    candidates = {point.epsilon: point.kind for point in choice.local_optima} | {choice.epsilon: "chosen"}
    ends = min(candidates) / WELFARE_REACH, max(candidates) * WELFARE_REACH
    rows: tuple[Row, ...] = tuple(
        {
            "loss": loss,
            "welfare": welfare.at(frontier, loss),
            "privacy": -welfare.privacy_cost(loss),
            "errors": -welfare.data_loss(frontier, loss),
            "kind": candidates.get(loss),
            "marked": loss in candidates,
        }
        for loss in log_grid(*ends, through=tuple(candidates), points=121, within=frontier.known_losses)
    )
    table = FigureTable.of(
        rows,
        f"Welfare at each {letter}, and what it is made of",
        Column("loss", f"privacy loss {letter}", "loss"),
        Column("welfare", "welfare", choice.currency),
        Column("privacy", "of this, lost privacy", choice.currency),
        Column("errors", "of this, errors", choice.currency),
        Column("kind", "considered as", "text"),
    )

    def layout(width: int) -> Mark:
        roomy, here = width >= ROOMY, next(row for row in rows if row["kind"] == "chosen")
        considered = [row for row in rows if row["marked"]]
        bottom = min(row["welfare"] for row in considered) - WELFARE_DEPTH * abs(choice.welfare)
        bottom = max(bottom, WELFARE_DEEPEST * choice.welfare)
        others = [row for row in considered if row is not here and row["welfare"] > bottom]
        plane = Plane(
            Ruler(f"privacy loss {letter}", *ends, log=True),
            Ruler(f"↑ welfare, {choice.currency}", bottom, 0.0, labels=choice.currency),
        )
        limits = {point.bound_by for point in choice.local_optima if point.kind == "end"}
        room = -48 if "fitness for use" in limits else -28 if limits else -8  # px, for the names of limits below
        lost, erring = rows[0]["privacy"], rows[-1]["errors"]
        taken = "lost privacy" if roomy else "lost\nprivacy"
        chosen, low = (
            f"{stated_loss(choice.loss)}\n{money(choice.welfare, choice.currency)}",
            here["welfare"],
        )
        hill = plane.up.share(low) > 0.45  # high enough that the words stand inside it, on a desk
        if not roomy:
            chosen = re.sub(r" (?=[mbtr]+illion)", "\n", chosen)
        at, shift = (low, (0, 18)) if roomy and not hill else (bottom, (0, room))
        spot = here["loss"], at
        clear = Clearing(plane, width - PHONE_AXIS, 280.0)
        if not roomy:
            for y in ("welfare", "privacy", "errors"):
                clear = clear.with_line([(row["loss"], row[y]) for row in rows])
            for point in choice.local_optima:
                if point.kind == "end":
                    clear = clear.with_line([(point.epsilon, bottom), (point.epsilon, 0.0)])
            clear = clear.with_words(0.0, 1 - 40 / 280, "lost privacy").with_words(0.8, 1 - 26 / 280, "errors")
            found, _ = clear.named([(here["loss"], low), (here["loss"], bottom)], chosen)
            if found is not None:
                spot, shift = found, (0, 0)

        def named(row: Row) -> Mark:
            shift = (0, -10 if row["kind"] == "maximum" else 12)
            place = row["loss"], row["welfare"]
            return plane.words(*place, chosen_loss(row["loss"]), color=LIGHT.quiet, align="center", shift=shift)

        return layered(
            *_ends(plane, choice, clear=None if roomy else clear),
            plane.curve(rows, "loss", "errors", color=LIGHT.production, dash=(6, 4), thick=1.8),
            plane.curve(rows, "loss", "privacy", color=LIGHT.preference, dash=(6, 4), thick=1.8),
            plane.curve(rows, "loss", "welfare", color=LIGHT.ink),
            plane.words(ends[0], lost, taken, color=LIGHT.preference, shift=(4, 10 if roomy else 18)),
            plane.words(ends[1], erring, "errors", color=LIGHT.production, align="right", shift=(-4, 10)),
            plane.points(others, "loss", "welfare", color=LIGHT.quiet, name="considered", filled=True),
            *(named(row) for row in others if row["kind"] != "end"),
            plane.points([here], "loss", "welfare", color=LIGHT.ink, name="optimum"),
            plane.words(*spot, chosen, align="center", shift=shift),
            height=340 if roomy else 280,
        )

    loss = stated_loss(choice.loss)
    rivals = [point for point in choice.local_optima if point.kind != "minimum" and point.epsilon != choice.epsilon]
    title = f"Society loses least at {loss}"
    if choice.bound_by != "preferences":
        title = f"Inside the limits, society loses least at their edge, {loss}"
    elif rivals:
        best = max(rivals, key=lambda point: point.welfare)
        more = money(choice.welfare - best.welfare, choice.currency)
        title += f"; the next best, {letter} = {chosen_loss(best.epsilon)}, costs {more} more"
    return Figure(
        "welfare",
        title=title,
        subtitle=f"Welfare (solid) is what privacy loss and errors take away together, {choice.currency}",
        sentence="More privacy loss takes away privacy (orange) and takes away errors (blue). The solid curve is both "
        "together; dots are other places that were considered, where welfare turns or a limit stops it.",
        table=table,
        layout=layout,
    )


def _ends(plane: Plane, choice: Choice, *, clear: Clearing | None = None) -> list[Mark]:
    """Where limits close the range: the closed sides in shade, and above them each line with its name.

    The name of a cap stands on its open side, or beyond it where a curve is in its way there alone.
    """
    shades: list[Mark] = []
    marks: list[Mark] = []
    for point in choice.local_optima:
        if point.kind != "end":
            continue
        below = point.bound_by == "simulation" and point.epsilon <= choice.epsilon
        floor, name = below or point.bound_by == "fitness for use", END_NAMES[point.bound_by]
        at = chosen_loss(point.epsilon)
        closed = (plane.across.low, point.epsilon) if floor else (point.epsilon, plane.across.high)
        shades.append(plane.closed(*closed))
        side: Align = "left" if floor else "right"
        words, shift = (f"{name} from {at} →", (6, -24)) if floor else (f"← {name} {at}", (-6, -6))
        if clear is not None and not floor and not clear.has_room(point.epsilon, f"{words} ", side):
            beyond = f"{name} {at}"
            if clear.has_room(point.epsilon, f"{beyond}  ", "left"):
                side, words, shift = "left", beyond, (6, -6)
        marks += [
            plane.vertical(point.epsilon, color=LIGHT.limit),
            plane.words(point.epsilon, plane.up.low, words, color=LIGHT.limit, align=side, shift=shift),
        ]
    return [*shades, *marks]


def regret(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Figure:
    """The price of being wrong: welfare forgone at each privacy loss, in USD and as a share of that at the choice.

    A valley with its floor at the choice, with what half of it, and twice it, would cost. Regret is W(ε*) − W(ε); below
    zero only where a limit kept society from a better place.
    """
    best, letter = choice.epsilon, SYMBOLS[choice.privacy_measure]
    top = welfare.at(frontier, best)
    signposts = (HALF * best, best, DOUBLE * best)
    rows: list[Row] = []
    for loss in log_grid(best / REGRET_REACH, best * REGRET_REACH, through=signposts, within=frontier.known_losses):
        forgone = top - welfare.at(frontier, loss)
        regrets = {"relative_regret": forgone / abs(top), "regret": forgone}
        rows.append({"loss": loss, "multiple": loss / best, **regrets, "marked": loss in signposts})
    table = FigureTable.of(
        rows,
        f"Welfare forgone by another {letter} than the chosen one",
        Column("loss", f"privacy loss {letter}", "loss"),
        Column("multiple", "times the chosen one"),
        Column("relative_regret", "regret, share of the cost at the choice", "percent"),
        Column("regret", f"regret, {choice.currency}", choice.currency),
    )
    half, here, double = (row for row in rows if row["marked"])

    def layout(width: int) -> Mark:
        roomy, shares = width >= ROOMY, [row["relative_regret"] for row in rows]
        posts = max(half["relative_regret"], double["relative_regret"])
        high, low = min(max(shares), max(2.2 * posts, 1e-6)), min(0.0, *shares)
        plane = Plane(
            Ruler(f"privacy loss {letter}", rows[0]["loss"], rows[-1]["loss"], log=True),
            Ruler("↑ regret, share of the cost at the choice", low, high, labels="percent"),
        )
        free = roomy or plane.up.share(double["relative_regret"]) > REGRET_ROOM  # the valley has room for a label
        side: Align = "center" if free else "right"
        spot, shift = (best, 0.0), (0, -14 if roomy else -30) if free else (-10, -12)
        y, color = "relative_regret", LIGHT.preference
        if not roomy:  # a valley may be narrower than the words, and is wider further up
            clear = Clearing(plane, width - PHONE_AXIS, 260.0).with_line([(row["loss"], row[y]) for row in rows])
            if free and not clear.holds(best, plane.up.value(plane.up.share(0.0) + 38 / 260), stated_loss(choice.loss)):
                spot, shift = (best, high), (0, 14)
        picture = layered(
            plane.curve(rows, "loss", y, color=color),
            plane.points([half, double], "loss", y, color=color, name="signposts", filled=True),
            plane.points([here], "loss", y, color=LIGHT.ink, name="optimum"),
            *_signposts(plane, half, double, choice.currency, roomy=roomy),
            plane.words(*spot, stated_loss(choice.loss), align=side, shift=shift),
            height=320 if roomy else 260,
        )
        if roomy:
            size = abs(choice.welfare)
            money_axis = Ruler(f"in {choice.currency}", low * size, high * size, labels=choice.currency, right=True)
            picture = with_right_axis(picture, plane, money_axis)
        return picture

    more = [
        f"{percent(abs(row['relative_regret']))} {'more' if row['relative_regret'] >= 0 else 'less'}"
        for row in (half, double)
    ]
    return Figure(
        "regret",
        title=f"Half of this {letter} would cost society {more[0]}; twice, {more[1]}",
        subtitle=f"Welfare forgone, against a total cost of {money(-choice.welfare, choice.currency)} at the choice",
        sentence=_forgiving(frontier, welfare, choice),
        table=table,
        layout=layout,
    )


def _signposts(
    plane: Plane, half: Mapping[str, float], double: Mapping[str, float], currency: str, *, roomy: bool
) -> list[Mark]:
    """The regret at half and at twice the choice, written inside the valley and clear of each other."""
    left, right = (plane.up.share(row["relative_regret"]) for row in (half, double))
    level = abs(left - right) < REGRET_ROOM / 2
    rise = -10 if roomy or level else 0
    fall = -10 if roomy else -28 if right < REGRET_ROOM else 10 if level else 0
    marks = []
    sides: tuple[tuple[Mapping[str, float], str, Align, tuple[int, int]], ...] = (
        (half, "half", "left", (12, rise)),
        (double, "twice", "right", (-12, fall)),
    )
    for row, name, align, shift in sides:
        words = f"{name}: {percent(row['relative_regret'])}"
        if roomy:
            words += f"\n{money(row['regret'], currency)}"
        at = row["loss"], row["relative_regret"]
        marks.append(plane.words(*at, words, align=align, color=LIGHT.preference, shift=shift))
    return marks


def _forgiving(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> str:
    """How forgiving the choice is, and on which side."""
    if choice.bound_by != "preferences":
        return (
            "A limit decides, so the curve is no valley: below zero, society would be better off, but the limit "
            "forbids it."
        )
    forgone = {
        multiple: choice.welfare - welfare.at(frontier, multiple * choice.epsilon) for multiple in (0.5, 0.9, 1.1, 2.0)
    }
    near = percent(max(forgone[0.9], forgone[1.1]) / abs(choice.welfare))
    side = "too little privacy loss" if forgone[0.5] > forgone[2.0] else "too much privacy loss"
    return (
        f"The valley is flat at the bottom: being off by a tenth costs at most {near} more. Being off by a factor of "
        f"two costs more on the side of {side}."
    )
