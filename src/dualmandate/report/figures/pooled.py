"""Several sources for one number, what was pooled from them, and where they conflict."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import number, plain_unit
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.elicitation.pooling import Pooled

ROW_HEIGHT = 46  # px
LETTER = 6.4  # px, mean width of a letter in a label
LONG_RANGE = 8.0  # ratio of amounts from which on the axis is logarithmic
Z = 1.959963984540054
POINTS = 201  # of the posterior's curve


def pooled_twin(pooled: Pooled) -> Twin:
    """Rows behind the picture: each source as converted, the prior where it is proper, and the posterior."""
    conflicting = {name for pair in pooled.agreement.conflicts for name in (pair.first, pair.second)}
    rows: list[dict[str, Cell]] = []
    for source, (name, odd) in zip(pooled.sources, pooled.agreement.predicted, strict=True):
        low, high = _interval(source.value, source.standard_error or 0.0, pooled)
        rows.append(
            {"name": name, "value": source.value, "low": low, "high": high, "odd": odd, "conflict": name in conflicting}
        )
    low, high = pooled.interval()
    rows.append({"name": "pooled", "value": pooled.mean, "low": low, "high": high, "odd": None, "marked": True})
    unit = plain_unit(pooled.unit)
    return Twin(
        caption=f"Sources and their pooled posterior, {unit}{', ' + pooled.time_base if pooled.time_base else ''}",
        columns=(
            Column("name", "source", "text"),
            Column("value", f"mean, {unit}", "rounded"),
            Column("low", "95 % from", "rounded"),
            Column("high", "to", "rounded"),
            Column("odd", "chance of one as odd, given the others", "rounded"),
            Column("conflict", "in conflict with another", "text"),
        ),
        rows=tuple(rows),
    )


def forest(pooled: Pooled, *, width: int = WIDE) -> alt.LayerChart:
    """One line a source with its interval, those in conflict in purple; below them the posterior as a curve."""
    twin = pooled_twin(pooled)
    ends = [amount(row, key) for row in twin.rows for key in ("low", "high")]
    low, high = min(ends), max(ends)
    log = low > 0 and high / low > LONG_RANGE
    reach = (low / 1.15, high * 1.15) if log else (low - 0.06 * (high - low), high + 0.06 * (high - low))
    unit = plain_unit(pooled.unit) + (f", {pooled.time_base}" if pooled.time_base else "")
    height = len(twin.rows) + 1  # the posterior's curve takes two rows
    plane = Plane(Ruler(unit, *reach, log=log), Ruler("", float(height), 0.0, hidden=True))
    marks: list[Mark] = [plane.vertical(pooled.mean, color=LIGHT.preference, dash=(4, 4))]
    placed = [{**row, "y": place + 0.72} for place, row in enumerate(twin.rows[:-1])]
    for name, color in (("agreeing", LIGHT.production), ("conflicting", LIGHT.limit)):
        kept = [row for row in placed if bool(row["conflict"]) == (name == "conflicting")]
        marks += _lines(plane, kept, color, name) if kept else []
    marks += [_label(plane, row, place + 0.42, width) for place, row in enumerate(twin.rows[:-1])]
    marks += _posterior(plane, pooled, twin.rows[-1], width)
    conflict = "purple: sources that chance does not reconcile; " if pooled.agreement.conflicts else ""
    return dress(
        layered(*marks),
        width=width,
        height=ROW_HEIGHT * height,
        title=_finding(pooled, twin),
        subtitle=f"Means and 95 % intervals, {unit}; {conflict}orange: posterior, with its mean (dashed)",
    )


def _posterior(plane: Plane, pooled: Pooled, row: Mapping[str, Cell], width: int) -> list[Mark]:
    """The density as it looks on the axis, its interval below it."""
    base = plane.up.low - 0.28
    amounts = np.array([plane.across.value(share) for share in np.linspace(0.0, 1.0, POINTS).tolist()])
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
    span = f"{number(amount(row, 'value'))} ({number(amount(row, 'low'))} to {number(amount(row, 'high'))})"
    letters = int((width - 40) / LETTER)
    name = textwrap.shorten(str(row["name"]), max(12, letters - len(span) - 2), placeholder="…")
    return plane.words(plane.across.low, y, f"{name}: {span}", shift=(0, -4))


def _finding(pooled: Pooled, twin: Twin) -> str:
    low, high = (number(amount(twin.rows[-1], key)) for key in ("low", "high"))
    found = f"{number(pooled.mean)} on average, between {low} and {high}"
    conflicts = pooled.agreement.conflicts
    if not conflicts and pooled.agreement.agree:
        return f"The sources agree: {found}"
    if not conflicts:
        return f"The sources scatter more than their errors explain: {found}"
    worst = conflicts[0]
    apart = f"differ by a factor of {max(worst.ratio, 1 / worst.ratio):.2g}" if worst.ratio else "conflict"
    return f"“{worst.first}” and “{worst.second}” {apart}; pooled, {found}"


def _interval(value: float, error: float, pooled: Pooled) -> tuple[float, float]:
    """The 95 % interval that a source claims for itself, on the scale of the pooling."""
    if pooled.scale == "plain":
        return value - Z * error, value + Z * error
    square = math.log1p((error / value) ** 2)
    middle, width = math.log(value) - square / 2, Z * math.sqrt(square)
    return math.exp(middle - width), math.exp(middle + width)
