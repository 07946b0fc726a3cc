"""What people said: what they would pay, and several sources for one number, pooled."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.population.wording import money, number, percent, plain_unit
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.plane import MONEY_AXIS, PERCENT_AXIS, Mark, Plane, Ruler, layered, shortened
from dualmandate.report.tables import Cell, Column, FigureTable, amount
from dualmandate.report.theme import LIGHT

if TYPE_CHECKING:
    from dualmandate.elicitation.contingent import ContingentValuation, Turnbull
    from dualmandate.elicitation.pooling import Pooled

VALUATION_HEIGHT = 320  # px
BEYOND = 1.25  # how far the axis goes, in largest bids
CURVE_POINTS = 121  # of the fitted curve
SOURCE_HEIGHT = 46  # px
LONG_RANGE = 8.0  # ratio of amounts from which on the axis is logarithmic
Z = 1.959963984540054
POSTERIOR_POINTS = 201


def valuation_curve(valuation: ContingentValuation, bound: Turnbull) -> Figure:
    """The share of people who would pay more than each amount: counted, and by the model.

    The fitted curve over Turnbull's steps, whose area is the lower bound; the jump at zero is the spike.
    """
    fitted = valuation.survival(bound.bids)
    pooled = {bid for group in bound.pooled for bid in group}
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {"bid": float(bid), "counted": 1.0 - float(no), "fitted": float(share), "pooled": float(bid) in pooled}
        for bid, no, share in zip(bound.bids, bound.refusing, fitted, strict=True)
    )
    mean = valuation.mean()

    def layout(_width: int) -> Mark:
        end = BEYOND * amount(rows[-1], "bid")
        across = Ruler("amount, USD", 0.0, end, labels=MONEY_AXIS)
        plane = Plane(across, Ruler("share of people who would pay more", 0.0, 1.0, labels=PERCENT_AXIS))
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
            words = f"mean {money(mean.estimate, short=True)}"
            marks.append(plane.vertical(mean.estimate, color=LIGHT.preference, dash=(4, 4), top=top))
            marks.append(plane.words(mean.estimate, top, words, color=LIGHT.preference, shift=(4, -8)))
        return layered(*marks, height=VALUATION_HEIGHT)

    least = f"at least {money(bound.lower_bound)}, whatever the shape"
    title = f"By the model willingness to pay is unbounded; the bids alone imply {least}"
    if mean.estimate is not None and mean.interval is not None:
        low, high = mean.interval
        title = f"People would pay {money(mean.estimate)} on average ({money(low)} to {money(high)}), and {least}"
    return Figure(
        "valuation",
        title=title,
        subtitle=f"Orange: {valuation.distribution} model; blue: shares counted at the bids, and (shaded) the least "
        f"they imply. {valuation.answers.people:,} people",
        sentence="The curve falls from all people to none: the share that would pay more than each amount. The shaded "
        "area is the least that the answers alone imply.",
        table=FigureTable(
            caption="Share of people who would pay more than each bid",
            columns=(
                Column("bid", "bid, USD", "money"),
                Column("counted", "counted (never rising)", "percent"),
                Column("fitted", f"{valuation.distribution} model", "percent"),
                Column("pooled", "pooled with a neighbor", "text"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


def _steps(rows: Sequence[Mapping[str, Cell]], end: float) -> list[dict[str, Cell]]:
    """Corners of the lower bound on the curve: from one bid to the next, the share at the next."""
    corners: list[dict[str, Cell]] = []
    start = 0.0
    for row in rows:
        share, bid = amount(row, "counted"), amount(row, "bid")
        corners += [{"amount": start, "share": share}, {"amount": bid, "share": share}]
        start = bid
    return [*corners, {"amount": start, "share": 0.0}, {"amount": end, "share": 0.0}]


def forest(pooled: Pooled) -> Figure:
    """Several sources for one number: a line each with its interval, those in conflict in purple, then the posterior.

    The table has each source as converted, and what was pooled from them.
    """
    conflicts, rows = pooled.agreement.conflicts, list[dict[str, Cell]]()
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
        ends = [amount(row, key) for row in rows for key in ("low", "high")]
        least, most = min(ends), max(ends)
        log, margin = least > 0 and most / least > LONG_RANGE, 0.06 * (most - least)
        reach = (least / 1.15, most * 1.15) if log else (least - margin, most + margin)
        height = len(rows) + 1  # the posterior's curve takes two rows
        plane = Plane(Ruler(per, *reach, log=log), Ruler("", float(height), 0.0, hidden=True))
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
        table=FigureTable(
            caption=f"Sources and their pooled posterior, {per}",
            columns=(
                Column("name", "source", "text"),
                Column("value", f"mean, {unit}"),
                Column("low", "95 % from"),
                Column("high", "to"),
                Column("odd", "chance of one as odd, given the others"),
                Column("conflict", "in conflict with another", "text"),
            ),
            rows=tuple(rows),
        ),
        layout=layout,
    )


def _posterior(plane: Plane, pooled: Pooled, row: Mapping[str, Cell], width: int) -> list[Mark]:
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


def _lines(plane: Plane, rows: Sequence[Mapping[str, Cell]], color: str, name: str) -> list[Mark]:
    """An interval and a dot a row, at its height."""
    bars = [{"from": row["low"], "to": row["high"], "y": row["y"]} for row in rows]
    dots = [{"x": row["value"], "y": row["y"], "name": row["name"]} for row in rows]
    return [
        plane.bars(bars, color=color, thick=3),
        plane.points(dots, "x", "y", color=color, name=name, filled=True),
    ]


def _label(plane: Plane, row: Mapping[str, Cell], y: float, width: int) -> Mark:
    span = f": {number(amount(row, 'value'))} ({number(amount(row, 'low'))} to {number(amount(row, 'high'))})"
    name = shortened(str(row["name"]), width, span)
    return plane.words(plane.across.low, y, f"{name}{span}", shift=(0, -4))


def _interval(value: float, error: float, pooled: Pooled) -> tuple[float, float]:
    """The 95 % interval that a source claims for itself, on the scale of the pooling."""
    if pooled.scale == "plain":
        return value - Z * error, value + Z * error
    square = math.log1p((error / value) ** 2)
    middle, width = math.log(value) - square / 2, Z * math.sqrt(square)
    return math.exp(middle - width), math.exp(middle + width)
