"""What people would pay: the share that would pay more than each amount, with and without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import money, percent
from dualmandate.report.figures.axis_formats import MONEY_AXIS, PERCENT_AXIS
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.elicitation.contingent import ContingentValuation, Turnbull

HEIGHT = 320  # px
BEYOND = 1.25  # how far the axis goes, in largest bids
POINTS = 121  # of the fitted curve


def valuation_twin(valuation: ContingentValuation, bound: Turnbull) -> Twin:
    """Rows behind the picture: each bid, the share that would pay more than it, counted and by the model."""
    fitted = valuation.survival(bound.bids)
    pooled = {bid for group in bound.pooled for bid in group}
    rows: list[dict[str, Cell]] = [
        {"bid": float(bid), "counted": 1.0 - float(no), "fitted": float(share), "pooled": float(bid) in pooled}
        for bid, no, share in zip(bound.bids, bound.refusing, fitted, strict=True)
    ]
    return Twin(
        caption="Share of people who would pay more than each bid",
        columns=(
            Column("bid", "bid, USD", "money"),
            Column("counted", "counted (never rising)", "percent"),
            Column("fitted", f"{valuation.distribution} model", "percent"),
            Column("pooled", "pooled with a neighbor", "text"),
        ),
        rows=tuple(rows),
    )


def valuation_curve(valuation: ContingentValuation, bound: Turnbull, *, width: int = WIDE) -> alt.LayerChart:
    """The fitted curve over Turnbull's steps, whose area is the lower bound; the jump at zero is the spike."""
    twin = valuation_twin(valuation, bound)
    end = BEYOND * amount(twin.rows[-1], "bid")
    across = Ruler("amount, USD", 0.0, end, labels=MONEY_AXIS)
    plane = Plane(across, Ruler("share of people who would pay more", 0.0, 1.0, labels=PERCENT_AXIS))
    steps = _steps(twin, end)
    amounts = np.linspace(0.0, end, POINTS)
    curve = [{"amount": x, "share": y} for x, y in zip(amounts.tolist(), valuation.survival(amounts), strict=True)]
    marks: list[Mark] = [
        plane.below(steps, "amount", "share"),
        plane.curve(steps, "amount", "share", color=LIGHT.production, thick=1.5),
        plane.curve([{"amount": c["amount"], "share": float(c["share"])} for c in curve], "amount", "share",
                    color=LIGHT.preference),
        plane.points(twin.rows, "bid", "counted", color=LIGHT.production, name="bids"),
    ]  # fmt: skip
    if valuation.answers.spike:
        zero = valuation.share_at_zero()
        words = f"{percent(zero.estimate)} would\npay nothing"
        marks.append(plane.between(0.0, 1.0 - zero.estimate, 1.0, color=LIGHT.limit))
        marks.append(plane.words(0.0, 1.0 - zero.estimate / 2, words, color=LIGHT.limit, shift=(10, 0)))
    mean = valuation.mean()
    if mean.estimate is not None and 0.0 < mean.estimate < end:
        top = float(valuation.survival([mean.estimate])[0])
        marks.append(plane.vertical(mean.estimate, color=LIGHT.preference, dash=(4, 4), top=top))
        words = f"mean {money(mean.estimate)}"
        marks.append(plane.words(mean.estimate, top, words, color=LIGHT.preference, shift=(4, -8)))
    return dress(
        layered(*marks),
        width=width,
        height=HEIGHT,
        title=_finding(valuation, bound),
        subtitle=f"Orange: {valuation.distribution} model; blue: shares counted at the bids, and (shaded) the least "
        f"they imply. {valuation.answers.people:,} people",
    )


def _finding(valuation: ContingentValuation, bound: Turnbull) -> str:
    least = f"at least {money(bound.lower_bound)}, whatever the shape"
    mean = valuation.mean()
    if mean.estimate is None or mean.interval is None:
        return f"By the model willingness to pay is unbounded; the bids alone imply {least}"
    low, high = mean.interval
    return f"People would pay {money(mean.estimate)} on average ({money(low)} to {money(high)}), and {least}"


def _steps(twin: Twin, end: float) -> list[dict[str, Cell]]:
    """Corners of the lower bound on the curve: from one bid to the next, the share at the next."""
    corners: list[dict[str, Cell]] = []
    start = 0.0
    for row in twin.rows:
        share, bid = amount(row, "counted"), amount(row, "bid")
        corners += [{"amount": start, "share": share}, {"amount": bid, "share": share}]
        start = bid
    return [*corners, {"amount": start, "share": 0.0}, {"amount": end, "share": 0.0}]
