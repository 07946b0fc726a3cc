"""What people want: what they said they would pay, several sources for one number, and rules of social choice.

Rules say what each chooses, who gains and who loses, with votes and payments.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.planning.uncertainty import gains_at_each_loss
from dualmandate.population.currency import DEFAULT
from dualmandate.population.wording import SYMBOLS, money, number, percent
from dualmandate.report.figures.figure import (
    LETTER,
    LINE_HEIGHT,
    Align,
    Figure,
    Mark,
    Plane,
    Ruler,
    lanes,
    layered,
    shortened,
)
from dualmandate.report.theme import LIGHT, ROOMY, SERIES, Column, FigureTable, Row, plain_unit

if TYPE_CHECKING:
    from dualmandate.choice import Peak, SocialChoiceRow, SocialChoices
    from dualmandate.elicitation.contingent import ContingentValuation, Turnbull
    from dualmandate.elicitation.pooling import Pooled

VALUATION_HEIGHT = 320  # px
BEYOND = 1.25  # how far the axis goes, in largest bids
CURVE_POINTS = 121  # of the fitted curve
SOURCE_HEIGHT = 46  # px
LONG_RANGE = 8.0  # ratio of amounts from which on the axis is logarithmic
Z = 1.959963984540054
POSTERIOR_POINTS = 201
ROUND = 3.0  # ratio of losses from which on the axis is logarithmic
ROW_HEIGHT = 34  # px, one rule
GAINS_HEIGHT = 230  # px
EDGES = 92  # px, axes and labels beside the panels
MOST_NAMED = 6  # groups, as many as there are colors
MOST_OPTIONS = 6  # put to the vote and drawn; the table holds all
CELL_HEIGHT = 34  # px, of one vote
CHARGE_HEIGHT = 52  # px, of one group that pays or receives


def valuation_curve(valuation: ContingentValuation, bound: Turnbull, currency: str = DEFAULT) -> Figure:
    """The share of people who would pay more than each amount: counted, and by the model.

    The fitted curve over Turnbull's steps, whose area is the lower bound; the jump at zero is the spike.
    """
    fitted = valuation.survival(bound.bids)
    pooled = {bid for group in bound.pooled for bid in group}
    rows: tuple[Row, ...] = tuple(
        {"bid": float(bid), "counted": 1.0 - float(no), "fitted": float(share), "pooled": float(bid) in pooled}
        for bid, no, share in zip(bound.bids, bound.refusing, fitted, strict=True)
    )
    mean = valuation.mean()

    def layout(_width: int) -> Mark:
        end = BEYOND * rows[-1]["bid"]
        across = Ruler(f"amount, {currency}", 0.0, end, labels=currency)
        plane = Plane(across, Ruler("share of people who would pay more", 0.0, 1.0, labels="percent"))
        steps, amounts = _steps(rows, end), np.linspace(0.0, end, CURVE_POINTS)
        shares = zip(amounts.tolist(), valuation.survival(amounts).tolist(), strict=True)
        marks: list[Mark] = [
            plane.below(steps, "amount", "share"),
            plane.curve(steps, "amount", "share", color=LIGHT.production, thick=1.5),
            plane.curve([{"amount": x, "share": y} for x, y in shares], "amount", "share", color=LIGHT.preference),
            plane.points(rows, "bid", "counted", color=LIGHT.production, name="bids"),
        ]
        if valuation.answers.spike:
            zero = valuation.share_at_zero()
            words = f"{percent(zero.estimate)} would\npay nothing"
            marks.append(plane.between(0.0, 1.0 - zero.estimate, 1.0, color=LIGHT.limit))
            marks.append(plane.words(0.0, 1.0 - zero.estimate / 2, words, color=LIGHT.limit, shift=(10, 0)))
        if mean.estimate is not None and 0.0 < mean.estimate < end:
            top = float(valuation.survival([mean.estimate])[0])
            words = f"mean {money(mean.estimate, currency)}"
            marks.append(plane.vertical(mean.estimate, color=LIGHT.preference, dash=(4, 4), top=top))
            marks.append(plane.words(mean.estimate, top, words, color=LIGHT.preference, shift=(4, -8)))
        return layered(*marks, height=VALUATION_HEIGHT)

    least = f"at least {money(bound.lower_bound, currency)}, whatever the shape"
    title = f"By the model willingness to pay is unbounded; the bids alone imply {least}"
    if mean.estimate is not None and mean.interval is not None:
        paid, low, high = (money(amount, currency) for amount in (mean.estimate, *mean.interval))
        title = f"People would pay {paid} on average ({low} to {high}), and {least}"
    return Figure(
        "valuation",
        title=title,
        subtitle=f"Orange: {valuation.distribution} model; blue: shares counted at the bids, and (shaded) the least "
        f"they imply. {valuation.answers.people:,} people",
        sentence="The curve falls from all people to none: the share that would pay more than each amount. The shaded "
        "area is the least that the answers alone imply.",
        table=FigureTable.of(
            rows,
            "Share of people who would pay more than each bid",
            Column("bid", f"bid, {currency}", currency),
            Column("counted", "counted (never rising)", "percent"),
            Column("fitted", f"{valuation.distribution} model", "percent"),
            Column("pooled", "pooled with a neighbor", "text"),
        ),
        layout=layout,
    )


def _steps(rows: Sequence[Row], end: float) -> list[Row]:
    """Corners of the lower bound on the curve: from one bid to the next, the share at the next."""
    corners: list[Row] = []
    start = 0.0
    for row in rows:
        share, bid = row["counted"], row["bid"]
        corners += [{"amount": start, "share": share}, {"amount": bid, "share": share}]
        start = bid
    return [*corners, {"amount": start, "share": 0.0}, {"amount": end, "share": 0.0}]


def forest(pooled: Pooled) -> Figure:
    """Several sources for one number: a line each with its interval, those in conflict in purple, then the posterior.

    The table has each source as converted, and what was pooled from them.
    """
    conflicts, rows = pooled.agreement.conflicts, list[Row]()
    conflicting = {name for pair in conflicts for name in (pair.first, pair.second)}
    for source, (name, odd) in zip(pooled.sources, pooled.agreement.predicted, strict=True):
        low, high = _interval(source.value, source.standard_error or 0.0, pooled)
        rows.append(
            {"name": name, "value": source.value, "low": low, "high": high, "odd": odd, "conflict": name in conflicting}
        )
    low, high = pooled.interval()
    rows.append({"name": "pooled", "value": pooled.mean, "low": low, "high": high, "odd": None, "marked": True})
    unit = plain_unit(pooled.unit)
    per = unit + (f", {pooled.time_base}" if pooled.time_base else "")

    def layout(width: int) -> Mark:
        ends = [row[key] for row in rows for key in ("low", "high")]
        least, most = min(ends), max(ends)
        log, margin = least > 0 and most / least > LONG_RANGE, 0.06 * (most - least)
        reach = (least / 1.15, most * 1.15) if log else (least - margin, most + margin)
        height = len(rows) + 1  # the posterior's curve takes two rows
        plane = lanes(Ruler(per, *reach, log=log), height)
        marks: list[Mark] = [plane.vertical(pooled.mean, color=LIGHT.preference, dash=(4, 4))]
        placed = [{**row, "y": place + 0.72} for place, row in enumerate(rows[:-1])]
        for name, color in (("agreeing", LIGHT.production), ("conflicting", LIGHT.limit)):
            kept = [row for row in placed if bool(row["conflict"]) == (name == "conflicting")]
            marks += _lines(plane, kept, color, name) if kept else []
        marks += [_label(plane, row, place + 0.42, width) for place, row in enumerate(rows[:-1])]
        marks += _posterior(plane, pooled, rows[-1], width)
        return layered(*marks, height=SOURCE_HEIGHT * height)

    title = f"{number(pooled.mean)} on average, between {number(low)} and {number(high)}"
    if conflicts:
        worst = conflicts[0]
        apart = f"differ by a factor of {number(max(worst.ratio, 1 / worst.ratio), 2)}" if worst.ratio else "conflict"
        title = f"“{worst.first}” and “{worst.second}” {apart}; pooled, {title}"
    elif pooled.agreement.agree:
        title = f"The sources agree: {title}"
    else:
        title = f"The sources scatter more than their errors explain: {title}"
    purple = "purple: sources that chance does not reconcile; " if conflicts else ""
    return Figure(
        "sources",
        title=title,
        subtitle=f"Means and 95 % intervals, {per}; {purple}orange: posterior, with its mean (dashed)",
        sentence="Each line is what one source claims for itself. Below them stands what follows from all together.",
        table=FigureTable.of(
            rows,
            f"Sources and their pooled posterior, {per}",
            Column("name", "source", "text"),
            Column("value", f"mean, {unit}"),
            Column("low", "95 % from"),
            Column("high", "to"),
            Column("odd", "chance of one as odd, given the others"),
            Column("conflict", "in conflict with another", "text"),
        ),
        layout=layout,
    )


def _posterior(plane: Plane, pooled: Pooled, row: Row, width: int) -> list[Mark]:
    """The density as it looks on the axis, its interval below it."""
    base = plane.up.low - 0.28
    amounts = np.array([plane.across.value(share) for share in np.linspace(0.0, 1.0, POSTERIOR_POINTS).tolist()])
    density = pooled.density(amounts) * (amounts if plane.across.log else 1.0)
    tops = base - 0.85 * density / density.max()
    curve = [{"x": x, "y": y} for x, y in zip(amounts.tolist(), tops.tolist(), strict=True)]
    return [
        plane.curve(curve, "x", "y", color=LIGHT.preference, thick=2),
        *_lines(plane, [{**row, "y": base}], LIGHT.preference, "posterior"),
        _label(plane, row, plane.up.low - 1.58, width),
    ]


def _lines(plane: Plane, rows: Sequence[Row], color: str, name: str) -> list[Mark]:
    """An interval and a dot a row, at its height."""
    bars = [{"from": row["low"], "to": row["high"], "y": row["y"]} for row in rows]
    dots = [{"x": row["value"], "y": row["y"], "name": row["name"]} for row in rows]
    return [plane.bars(bars, color=color, thick=3), plane.points(dots, "x", "y", color=color, name=name, filled=True)]


def _label(plane: Plane, row: Row, y: float, width: int) -> Mark:
    span = f": {number(row['value'])} ({number(row['low'])} to {number(row['high'])})"
    name = shortened(str(row["name"]), width, span)
    return plane.words(plane.across.low, y, f"{name}{span}", shift=(0, -4))


def _interval(value: float, error: float, pooled: Pooled) -> tuple[float, float]:
    """The 95 % interval that a source claims for itself, on the scale of the pooling."""
    if pooled.scale == "plain":
        return value - Z * error, value + Z * error
    square = math.log1p((error / value) ** 2)
    middle, width = math.log(value) - square / 2, Z * math.sqrt(square)
    return math.exp(middle - width), math.exp(middle + width)


def social_choice(choices: SocialChoices) -> Figure:
    """Peaks and rules on one axis of losses, and below it the gains and losses of each group.

    The table has every rule: what it chooses, welfare there, and what a member of each group gains by it.
    """
    letter, names = SYMBOLS[choices.profile.frontier.privacy_measure], choices.profile.society.names
    currency = choices.profile.society.like.currency
    against = f"{letter} = {number(choices.against)}"
    answered = [row for row in choices.rows if _shown(row.epsilon)]

    def layout(width: int) -> Mark:
        inner, losses = width - EDGES, list(gains_at_each_loss(choices))
        ruler = Ruler("", losses[0], losses[-1], log=losses[-1] / losses[0] > ROUND, hidden=True)
        upper = _rules(choices, answered, ruler, lanes=_lanes(choices, ruler, inner), width=inner)
        lower = _gains(choices, replace(ruler, title=f"privacy loss {letter}", hidden=False), width=inner)
        return {"vconcat": [upper, lower], "spacing": 26}

    places = [row.epsilon for row in answered if row.epsilon is not None]
    span = f"between {number(min(places))} and {number(max(places))}"
    return Figure(
        "social-choice",
        title=f"What people want differs; the rules of social choice choose {letter} {span}",
        subtitle="Above: what each group wants (in color) and what each rule chooses; shaded: efficient losses. "
        f"Below: what one member of each group gains or loses, {currency}, against {against}",
        sentence="The plan follows the utilitarian rule. The others say what society would choose if it counted people "
        "in another way, and the lower part who would gain and who would lose.",
        table=FigureTable.of(
            (
                {
                    "rule": row.rule,
                    "loss": row.epsilon if _shown(row.epsilon) else None,
                    "welfare": row.welfare,
                    **{f"gain {name}": row.gains.get(name) for name in names},
                    "words": row.words,
                    "marked": row.rule == "utilitarian",
                }
                for row in choices.rows
            ),
            f"What each rule chooses, and what a member of each group gains against {against}",
            Column("rule", "rule", "text"),
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("welfare", "welfare", currency),
            *(Column(f"gain {name}", f"gain of one of {name}", currency) for name in names),
            Column("words", "where", "text"),
        ),
        layout=layout,
    )


def _rules(
    choices: SocialChoices, answered: Sequence[SocialChoiceRow], ruler: Ruler, *, lanes: Sequence[int], width: int
) -> Mark:
    """One row a rule with its choice, below the rows of peaks."""
    rows = max(lanes) + 1
    plane = Plane(ruler, Ruler("", float(len(answered) + rows), 0.0, hidden=True))
    marks: list[Mark] = []
    for low, high in choices.profile.pareto_set:
        inside = max(low, ruler.low), min(high, ruler.high)
        if inside[0] < inside[1]:
            marks.append(plane.closed(*inside))
    for i, (peak, lane) in enumerate(zip(choices.profile.peaks, lanes, strict=True)):
        color, at, y = SERIES[i % len(SERIES)], _place(ruler, peak.epsilon), lane + 0.62
        marks += [
            plane.points([{"x": at, "y": y}], "x", "y", color=color, name=f"peak{i}", filled=True),
            plane.words(at, y, _peak_name(peak, width), color=color, align=_side(ruler, at), shift=(0, -8)),
        ]
    for i, row in enumerate(answered):
        assert row.epsilon is not None
        y = i + rows + 0.62
        label = f"{row.rule[:1].upper()}{row.rule[1:]}: {number(row.epsilon)}"
        side = _side(ruler, row.epsilon)
        marks += [
            plane.horizontal(y, color=LIGHT.grid),
            plane.points([{"x": row.epsilon, "y": y}], "x", "y", color=LIGHT.ink, name=f"rule{i}", filled=True),
            plane.words(row.epsilon, y, label, align=side, shift=(0, -7)),
        ]
    return layered(*marks, width=width, height=ROW_HEIGHT * (len(answered) + rows))


def _lanes(choices: SocialChoices, ruler: Ruler, width: int) -> list[int]:
    """The row of each group's peak: the first in which its name covers no other."""
    taken: list[list[tuple[float, float]]] = []
    lanes = []
    for peak in choices.profile.peaks:
        at, long = _place(ruler, peak.epsilon), LETTER * (len(_peak_name(peak, width)) + 1)
        lean = {"left": 0.0, "center": 0.5, "right": 1.0}[_side(ruler, at)]
        start = ruler.share(at) * width - lean * long
        free = (lane for lane, spans in enumerate(taken) if all(start > b or start + long < a for a, b in spans))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, start + long))
        lanes.append(lane)
    return lanes


def _place(ruler: Ruler, peak: float) -> float:
    """Where a peak is drawn: at its place, and just inside the axis where it has none."""
    return peak if _shown(peak) else ruler.value(0.98 if peak > 0 else 0.02)


def _peak_name(peak: Peak, width: int) -> str:
    arrow = "→ " if math.isinf(peak.epsilon) else "← " if peak.epsilon == 0 else ""
    return arrow + _short(peak.name, width)


def _gains(choices: SocialChoices, ruler: Ruler, *, width: int) -> Mark:
    """What a member of each group gains at each loss; the names stand in a band above the lines."""
    names, currency = choices.profile.society.names, choices.profile.society.like.currency
    rows: list[Row] = [
        {"loss": loss, **gains, "marked": loss == choices.against}
        for loss, gains in gains_at_each_loss(choices).items()
    ]
    highest = max(0.0, *(row[name] for row in rows for name in names))
    at_rules = [gain for row in choices.rows for gain in row.gains.values()]
    size = max([highest, *map(abs, at_rules)]) or 1.0
    lowest = max(min(row[name] for row in rows for name in names), -2.5 * size)
    named = names[:MOST_NAMED]
    band = LINE_HEIGHT * (len(named) + 0.5) / _height(choices)  # share of the height
    top = (size * 1.1 - band * lowest) / (1 - band)
    plane = Plane(ruler, Ruler(f"↑ gain of one member, {currency}", lowest, top, labels=currency))
    marks: list[Mark] = [
        plane.horizontal(0.0, color=LIGHT.quiet),
        plane.vertical(choices.against, color=LIGHT.quiet, dash=(4, 3), top=size * 1.1),
    ]
    for i, name in enumerate(names):
        marks.append(plane.curve(rows, "loss", name, color=SERIES[i % len(SERIES)]))
    for i, name in enumerate(named):
        height = plane.up.value(1 - LINE_HEIGHT * i / _height(choices))
        marks.append(plane.words(ruler.low, height, _short(name, 2 * width), color=SERIES[i], shift=(4, 5)))
    return layered(*marks, width=width, height=_height(choices))


def _height(choices: SocialChoices) -> float:
    """The lower panel's, px: the lines and the names above them."""
    return GAINS_HEIGHT + LINE_HEIGHT * min(len(choices.profile.society.names), MOST_NAMED)


def _short(name: str, width: int) -> str:
    """A name that leaves room for another beside it."""
    letters = max(10, int(width / LETTER / 2.2))
    return name if len(name) <= letters else f"{name[: letters - 1].rstrip()}…"


def _side(ruler: Ruler, loss: float) -> Align:
    """Which way a label leans so that it stays inside."""
    share = ruler.share(loss)
    return "left" if share < 0.2 else "right" if share > 0.8 else "center"


def _shown(loss: float | None) -> bool:
    return loss is not None and 0 < loss < math.inf


def votes(choices: SocialChoices) -> Figure:
    """A square of votes: the share of people who are better off at the loss of the row than at that of the column."""
    letter, found = SYMBOLS[choices.profile.frontier.privacy_measure], choices.majority
    people, shown = float(choices.profile.society.sizes.sum()), found.options[:MOST_OPTIONS]
    rows: tuple[Row, ...] = tuple(
        {
            "loss": one,
            "other": other,
            "for": float(found.votes[i, j]) / people,
            "against": float(found.votes[j, i]) / people,
            "wins": found.beats(one, other),
        }
        for i, one in enumerate(found.options)
        for j, other in enumerate(found.options)
        if i != j
    )

    def layout(width: int) -> Mark:
        count = float(len(shown))
        plane = Plane(Ruler("", -0.9, count, hidden=True), Ruler("", count, -0.9, hidden=True))
        marks: list[Mark] = []
        for i, place in enumerate(shown):
            marks += [
                plane.horizontal(i, color=LIGHT.grid),
                plane.words(-0.9, i + 0.5, f"{letter} {number(place)}", color=LIGHT.quiet, shift=(4, 0)),
                plane.words(i + 0.5, -0.4, f"{letter} {number(place)}", color=LIGHT.quiet, align="center"),
            ]
        for row in rows:
            if row["loss"] in shown and row["other"] in shown:
                i, j = shown.index(row["loss"]), shown.index(row["other"])
                words = f"{100 * row['for']:.0f} %{' wins' if row['wins'] and width >= ROOMY else ''}"
                color = LIGHT.good if row["wins"] else LIGHT.quiet
                marks.append(plane.words(j + 0.5, i + 0.5, words, color=color, align="center"))
        return layered(*marks, height=CELL_HEIGHT * (len(shown) + 1))

    title = "No loss wins or ties against every other"
    if found.cycle is not None:
        title = f"Majorities run in a circle: {' over '.join(map(number, (*found.cycle, found.cycle[0])))}"
    elif found.winner is not None:
        title = f"No majority would leave {letter} = {number(found.winner)}"
    return Figure(
        "social-choice-votes",
        title=title,
        subtitle="Share of people who are better off at the loss of the row than at that of the column",
        sentence="Each pair of losses put to the vote, every group with as many votes as it has members.",
        table=FigureTable.of(
            rows,
            f"Every {letter} against every other, put to the vote",
            Column("loss", letter, "loss"),
            Column("other", f"against {letter}", "loss"),
            Column("for", "better off at the first", "percent"),
            Column("against", "better off at the second", "percent"),
            Column("wins", "the first wins", "text"),
        ),
        layout=layout,
    )


def charges(choices: SocialChoices) -> Figure:
    """What one member of each group pays or receives at Lindahl prices (bars), and its Clarke tax (dots), USD."""
    letter, lindahl = SYMBOLS[choices.profile.frontier.privacy_measure], choices.lindahl
    currency = lindahl.currency
    rows: tuple[Row, ...] = tuple(
        {
            "group": price.name,
            "charge": float(price.charge),
            "payment": float(price.payment),
            "tax": tax.tax / citizens.size if math.isfinite(tax.tax) else None,
        }
        for price, tax, citizens in zip(lindahl.prices, choices.clarke, choices.profile.society.citizens, strict=True)
    )

    def layout(width: int) -> Mark:
        payments = [row["payment"] for row in rows]
        dots = [{"tax": row["tax"], "y": i + 0.72} for i, row in enumerate(rows) if row["tax"] is not None]
        paid = [0.0, *payments, *(dot["tax"] for dot in dots)]
        room = 0.06 * (max(paid) - min(paid) or 1.0)
        axis = f"payment of one member, {currency}; below 0 received"
        plane = lanes(Ruler(axis, min(paid) - room, max(paid) + room, labels=currency), len(rows))
        bars = [{"from": 0.0, "to": payment, "y": i + 0.72} for i, payment in enumerate(payments)]
        marks: list[Mark] = [
            plane.bars(bars, color=LIGHT.production, opacity=0.55),
            plane.vertical(0.0, color=LIGHT.quiet),
            plane.points(dots, "tax", "y", color=LIGHT.preference, name="taxes", filled=True),
        ]
        for i, row in enumerate(rows):
            owed = money(abs(payments[i]), currency)
            words = f"{row['group']}: {'pays' if payments[i] >= 0 else 'receives'} {owed}"
            if row["tax"] is not None and width >= ROOMY:
                words += f"; Clarke tax {money(row['tax'], currency)}"
            marks.append(plane.words(plane.across.low, i + 0.4, words, shift=(2, -4)))
        return layered(*marks, height=CHARGE_HEIGHT * len(rows))

    loss = f"{letter} = {number(lindahl.epsilon)}"
    return Figure(
        "social-choice-charges",
        title=f"At these prices everybody would ask for {loss}"
        if lindahl.supported
        else f"No prices make everybody ask for {loss}",
        subtitle="Bars: what one member pays or receives at Lindahl prices; dots: Clarke taxes, which are not returned",
        sentence="Nobody is charged anything. The bars say who would have to be paid, and by whom, for all to agree.",
        table=FigureTable.of(
            rows,
            f"Payments of one member at {loss}; below 0, received",
            Column("group", "group", "text"),
            Column("charge", f"Lindahl price of one {letter}", currency),
            Column("payment", "Lindahl payment", currency),
            Column("tax", "Clarke tax", currency),
        ),
        layout=layout,
    )
