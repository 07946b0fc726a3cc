"""Optional parts of a plan: who takes part, which tables earn their place, paths of releases, other institutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from dualmandate.frontier.numerics import log_grid
from dualmandate.population.wording import SYMBOLS, money, number, percent, stated_loss
from dualmandate.report.figures.figure import Align, Figure, Mark, Plane, Ruler, lanes, layered, shortened, spread
from dualmandate.report.theme import LIGHT, ROOMY, SERIES, Column, FigureTable, Row, cells

if TYPE_CHECKING:
    from dualmandate.choice import BudgetPath, Choice, TableSelection
    from dualmandate.choice.markets import Institution
    from dualmandate.planning.simulation import SimulationOutcome
    from dualmandate.population import PrivacyMeasure

PARTICIPATION_REACH = 12.0  # from a twelfth of the peak to twelve times it
TABLE_HEIGHT = 46  # px, of one table on offer
MOST_TABLES = 14  # on offer and drawn; the table holds all
LONG_RANGE = 30.0  # ratio of amounts from which on the axis is logarithmic
INSTITUTION_HEIGHT = 44  # px
ALIKE = 1e-9  # share of a cost that is no difference


def participation(
    noise: Callable[[float], float], responding: Callable[[float], float], choice: Choice, *, peak: float
) -> Figure:
    """Cost of errors against privacy loss, down to a trough at the peak of accuracy; what lies beyond is closed.

    `noise` and `responding` are costs of errors in USD, if all took part and with those who do; `responding` must go on
    beyond the peak as it really would.
    """
    letter, rows = SYMBOLS[choice.privacy_measure], list[Row]()
    for loss in log_grid(peak / PARTICIPATION_REACH, peak * PARTICIPATION_REACH, through=(choice.epsilon, peak)):
        costs = noise(loss), responding(loss)
        if all(math.isfinite(cost) and cost > 0 for cost in costs):
            marked = loss in (choice.epsilon, peak)
            rows.append({"loss": loss, "noise": costs[0], "cost": costs[1], "marked": marked})

    def layout(width: int) -> Mark:
        roomy, low, high = width >= ROOMY, rows[0]["loss"], rows[-1]["loss"]
        trough, between = responding(peak), math.sqrt(low * peak)
        plane = Plane(
            Ruler(f"privacy loss {letter}", low, high, log=True),
            Ruler(f"↑ cost of errors, {choice.currency}", trough / 30, trough * 60, log=True, labels=choice.currency),
        )
        here = {"x": choice.epsilon, "y": responding(choice.epsilon)}
        marks: list[Mark] = [
            plane.closed(peak, high),
            plane.curve(rows, "loss", "noise", color=LIGHT.quiet, dash=(6, 4)),
            plane.curve(rows, "loss", "cost", color=LIGHT.production),
            plane.vertical(peak, color=LIGHT.limit, dash=(2, 4)),
            plane.points([here], "x", "y", color=LIGHT.ink, name="optimum"),
        ]
        top = f"peak of accuracy, {number(peak)}" if roomy else f"peak {number(peak)}"
        marks.append(plane.words(peak, plane.up.high, top, color=LIGHT.limit, shift=(6, 6)))
        if roomy:
            all_took, beyond = "if all took part", "dominated: no plan stops here"
            marks += [
                plane.words(between, noise(between), all_took, color=LIGHT.quiet, align="right", shift=(-8, 10)),
                plane.words(high, trough / 3, beyond, color=LIGHT.quiet, align="right", shift=(-6, 0)),
            ]
        side: Align = "right" if roomy else "center"
        place = (-10, 14) if roomy else (0, -16)
        marks.append(plane.words(here["x"], here["y"], stated_loss(choice.loss), align=side, shift=place))
        return layered(*marks, height=330 if roomy else 270)

    return Figure(
        "participation",
        title=f"Beyond {letter} = {number(peak)} losing respondents costs more accuracy than less noise brings",
        subtitle="Cost of errors with those who take part (blue) and if all did (dashed); both axes logarithmic",
        sentence="Noise falls with the privacy loss; so does the number of people who take part. The curve is what "
        "errors cost with those who do, the dashed line what they would cost with everybody.",
        table=FigureTable.of(
            rows,
            f"Cost of errors at each {letter}, if all took part and with those who do",
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("noise", f"if all took part, {choice.currency}", choice.currency),
            Column("cost", f"with those who do, {choice.currency}", choice.currency),
        ),
        layout=layout,
    )


def offering(offered: TableSelection, currency: str) -> Figure:
    """One line a table from its price to its worth: blue where it gains, orange where it would lose."""
    letter = SYMBOLS[offered.privacy_measure]
    rows = [
        cells(
            each, *("value", "price", "published", "errors"), table=each.name, loss=each.epsilon, marked=each.published
        )
        for each in offered.verdicts
    ]
    drawn = sorted(rows, key=lambda row: row["price"] - row["value"])[:MOST_TABLES]
    amounts = [row[key] for row in drawn for key in ("value", "price")]
    low, high = min(amounts), max(amounts)
    log = low > 0 and high / low > LONG_RANGE

    def layout(width: int) -> Mark:
        edges = (low / 1.4, high * 1.4) if log else (0.0, 1.12 * high)
        plane = lanes(Ruler(currency, edges[0], edges[1], log=log, labels=currency), len(drawn))
        marks: list[Mark] = []
        for i, row in enumerate(drawn):
            value, price, y = row["value"], row["price"], i + 0.72
            color = LIGHT.production if row["published"] else LIGHT.preference
            worth, cost = money(value, currency), money(price, currency)
            words = f": worth {worth}, price {cost}" if width >= ROOMY else ""
            name, bar = shortened(str(row["table"]), width, words), {"from": min(value, price), "to": max(value, price)}
            marks += [
                plane.bars([bar | {"y": y}], color=color, opacity=0.4, thick=8),
                plane.points([{"x": value, "y": y}], "x", "y", color=color, name=f"worth-{i}", filled=True),
                plane.points([{"x": price, "y": y}], "x", "y", color=color, name=f"price-{i}"),
                plane.words(plane.across.low, i + 0.3, f"{name}{words}", shift=(0, 2)),
            ]
        return layered(*marks, height=TABLE_HEIGHT * len(drawn))

    kept = sum(1 for row in rows if row["published"])
    return Figure(
        "offering",
        title=f"{kept} of {len(rows)} tables are worth their price; {letter} = {number(offered.epsilon)} in all",
        subtitle="Filled: what a table is worth when exact. Hollow: what publishing it costs in privacy and errors"
        + ("; logarithmic" if log else ""),
        sentence="A table earns its place where the filled circle, its worth, lies right of the hollow one, its price.",
        table=FigureTable.of(
            rows,
            "What each table is worth and what publishing it costs; those worth their price are set off",
            Column("table", "table", "text"),
            Column("value", "worth when exact", currency),
            Column("price", "price: privacy and errors", currency),
            Column("published", "worth its price", "text"),
            Column("loss", letter, "loss"),
            Column("errors", "of it errors", currency),
        ),
        layout=layout,
    )


def path(releases: BudgetPath, privacy_measure: PrivacyMeasure, *, currency: str) -> Figure:
    """A budget over many releases: the loss of each by year, hollow without a cap on all of them, filled under it."""
    letter, capped = SYMBOLS[privacy_measure], releases.cap is not None and releases.price > 0
    rows = [
        cells(each, "year", "alone", loss=each.epsilon, privacy=each.privacy_cost, errors=each.data_loss, marked=True)
        for each in releases.releases
    ]

    def layout(width: int) -> Mark:
        roomy, first, last = width >= ROOMY, rows[0]["year"], rows[-1]["year"]
        room = max(0.08 * (last - first), 1.0)
        plane = Plane(
            Ruler("years from now", first - room, last + (2.4 if roomy else 1.2) * room),
            Ruler(f"↑ privacy loss {letter} of the release", 0.0, 1.2 * max(row["alone"] for row in rows)),
        )
        side: Align = "left" if roomy else "right"

        def beside(key: str, words: str, color: str, down: int) -> Mark:
            shift = (10, 0) if roomy else (0, down)
            return plane.words(last, rows[-1][key], words, color=color, align=side, shift=shift)

        marks: list[Mark] = [
            plane.curve(rows, "year", "alone", color=LIGHT.production, dash=(6, 4) if capped else (1, 0)),
            plane.points(rows, "year", "alone", color=LIGHT.production, name="alone"),
            beside("alone", "each alone", LIGHT.production, -14),
        ]
        if capped:
            marks += [
                plane.curve(rows, "year", "loss", color=LIGHT.limit),
                plane.points(rows, "year", "loss", color=LIGHT.limit, name="capped", filled=True),
                beside("loss", f"sum {number(releases.total)}", LIGHT.limit, 14),
            ]
        return layered(*marks, height=300 if roomy else 250)

    first, last, total = releases.releases[0], releases.releases[-1], number(releases.total)
    alone = number(sum(release.alone for release in releases.releases))
    alike = len({number(release.alone) for release in releases.releases}) == 1  # as where records are never opened
    if capped:
        title = f"{len(rows)} releases would spend {letter} = {alone}; the cap leaves {total}"
    elif alike:
        title = f"The best {letter} of each release is {number(first.epsilon)}; {total} in all"
    else:
        now, later = number(first.epsilon), number(last.epsilon)
        title = f"The best {letter} goes from {now} now to {later} in year {last.year:g}; {total} in all"
    harm = "" if alike else "; a later one has fewer years to do harm"
    why = " Later releases have fewer years to do harm until records are opened, and their errors count less today."
    return Figure(
        "path",
        title=title,
        subtitle=f"Privacy loss {letter} of each release{harm}",
        sentence="Each circle is a release." + ("" if alike else why),
        table=FigureTable.of(
            rows,
            "The best path of releases, in money of today",
            Column("year", "years from now", "exact"),
            Column("loss", letter, "loss"),
            Column("alone", f"{letter} without a cap", "loss"),
            Column("privacy", "cost in privacy", currency),
            Column("errors", "cost in errors", currency),
        ),
        layout=layout,
    )


def institutions(compared: Sequence[Institution], privacy_measure: PrivacyMeasure, *, currency: str) -> Figure:
    """One line an institution: the privacy loss it arrives at, and what society loses more than under the planner.

    Auctions of one count stand in the table alone: their ε buys a count of everybody, not the program's tables.
    """
    letter = SYMBOLS[privacy_measure]
    rows = [
        cells(
            row,
            *("accuracy", "payment", "total", "forgone", "why", "one_count"),
            institution=row.name,
            loss=row.epsilon,
            cost=None if row.welfare is None else -row.welfare,
            marked=row.forgone is None and row.epsilon is not None,
        )
        for row in compared
    ]
    answered = (row for row in rows if row["loss"] is not None and not row["one_count"])
    drawn = sorted(answered, key=lambda row: -row["loss"])
    planner = next(row for row in drawn if row["marked"])
    best, low, high = planner["loss"], drawn[-1]["loss"], drawn[0]["loss"]
    log = high / low > 8

    def layout(width: int) -> Mark:
        edges = (low / (high / low) ** 0.08, high * (high / low) ** 0.08) if log else (0.0, 1.12 * high)
        plane = lanes(Ruler(f"privacy loss {letter}", edges[0], edges[1], log=log), len(drawn))
        marks: list[Mark] = [plane.vertical(best, color=LIGHT.production, dash=(2, 4))]
        for i, row in enumerate(drawn):
            at, y, own = row["loss"], i + 0.68, bool(row["marked"])
            color = LIGHT.production if own else LIGHT.preference
            words = f"{row['institution']}, {number(at)}"
            if width >= ROOMY and row["forgone"] is not None:
                words += f": {money(row['forgone'], currency)} lost"
            bar = [{"from": min(at, best), "to": max(at, best), "y": y}]
            marks += [
                plane.bars(bar, color=color, opacity=0.35, thick=6),
                plane.points([{"x": at, "y": y}], "x", "y", color=color, name=f"institution-{i}", filled=not own),
                plane.words(plane.across.low, i + 0.28, words, color=LIGHT.ink, shift=(0, 2)),
            ]
        return layered(*marks, height=INSTITUTION_HEIGHT * len(drawn))

    title = f"The planner chooses {letter} = {number(best)}"
    private = next((row for row in drawn if str(row["institution"]).startswith("private provider, one")), None)
    if private is not None:
        share, lost = private["loss"] / best, private["forgone"] / planner["cost"]
        title = (
            f"A private provider would choose what the planner does: {letter} = {number(best)}"
            if lost < ALIKE
            else f"A private provider would choose {percent(share)} of the planner's {letter}, and society would lose "
            f"{percent(lost)} more"
        )
    return Figure(
        "markets",
        title=title,
        subtitle=f"{letter} under each institution on the program's own frontier"
        + ("; logarithmic" if log else "")
        + "; in words what society loses beyond the planner's choice",
        sentence="Each line leads from the planner's choice to what another institution would choose on the same "
        "frontier.",
        table=FigureTable.of(
            rows,
            "The program under other institutions, judged by society's welfare",
            Column("institution", "institution", "text"),
            Column("loss", letter, "loss"),
            Column("accuracy", "accuracy I"),
            Column("payment", "paid to one person", currency),
            Column("total", "paid in all", currency),
            Column("cost", "cost to society", currency),
            Column("forgone", "more than under the planner", currency),
            Column("why", "what it is", "text"),
        ),
        layout=layout,
    )


MEASUREMENTS = "noise on measurements"  # what would be planned without the technology that is stated


def simulated(outcome: SimulationOutcome, privacy_measure: PrivacyMeasure) -> Figure:
    """What errors of each technology cost against privacy loss, as a multiple of the plan's; bars are bands of 95 %."""
    noise, tables = ("the plan's noise", "the plan's tables") if outcome.used is None else (MEASUREMENTS, MEASUREMENTS)
    letter, colors = SYMBOLS[privacy_measure], [color for color in SERIES if color != LIGHT.limit]
    shown = [each for each in outcome.technologies if each.errors]
    rows = [
        {
            "technology": each.technology,
            "loss": loss,
            **cells(error, "value", "lower", "upper"),
            "marked": at == outcome.chosen,
        }
        for each in shown
        for at, (loss, error) in enumerate(zip(outcome.losses, each.errors, strict=True))
    ]
    lowest, highest = min(row["lower"] for row in rows), max(row["upper"] for row in rows)
    low, high = outcome.losses[0], outcome.losses[-1]

    def layout(width: int) -> Mark:
        roomy = width >= ROOMY
        plane = Plane(
            Ruler(f"privacy loss {letter}", low / 1.15, high * (3.2 if roomy else 1.15), log=True),
            Ruler(f"↑ cost of errors, times {noise}", min(lowest, 0.8) / 1.2, max(highest, 1.25) * 1.2, log=True),
        )
        marks: list[Mark] = [
            plane.horizontal(1.0, color=LIGHT.ink, dash=(4, 3)),
            plane.vertical(outcome.losses[outcome.chosen], color=LIGHT.quiet, dash=(2, 4)),
        ]
        ends = [each.errors[-1].value for each in shown]
        places = spread([*ends, 1.0], plane.up, height=330, gap=18)
        for i, (each, place) in enumerate(zip(shown, places, strict=False)):
            color = colors[i % len(colors)]
            own = [row for row in rows if row["technology"] == each.technology]
            marks += [plane.between(row["loss"], row["lower"], row["upper"], color=color) for row in own]
            marks.append(plane.curve(own, "loss", "value", color=color))
            marks.append(plane.points(own, "loss", "value", color=color, name=f"technology-{i}", filled=True))
            here = (high, place, (10, 0)) if roomy else (low, own[0]["value"], (4, 14))
            marks.append(plane.words(here[0], here[1], each.technology, color=color, shift=here[2]))
        if roomy:
            marks.append(plane.words(high, places[-1], noise, color=LIGHT.ink, shift=(10, 0)))
        return layered(*marks, height=330 if roomy else 270)

    best, of = outcome.best(outcome.chosen), "" if outcome.used is None else f" with {MEASUREMENTS}"
    title = (
        f"At the choice{of} no other technology surely errs at less cost than {tables}"
        if best is None
        else f"At the choice{of} '{best.technology}' errs at less cost than {tables}"
    )
    return Figure(
        "simulation",
        title=title,
        subtitle=f"On {outcome.records:,} public records; bars are 95 % bands of the simulation; both axes logarithmic",
        sentence="Errors of these technologies depend on the data, and were simulated on records that anybody may see. "
        f"Below the dashed line they cost less than those of {noise}; the dotted line is the choice{of}.",
        table=FigureTable.of(
            rows,
            f"What errors cost at each {letter}, as a multiple of those of {noise}",
            Column("technology", "technology", "text"),
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("value", "times", "number"),
            Column("lower", "at least", "number"),
            Column("upper", "at most", "number"),
        ),
        layout=layout,
    )
