"""The plane a picture is drawn on: two axes, and the few kinds of marks the house uses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import altair as alt

from dualmandate.report.figures.axis_formats import NUMBER_AXIS
from dualmandate.report.figures.theme import LIGHT
from dualmandate.report.figures.twin import Cell

Align = Literal["left", "center", "right"]
Rows = Iterable[Mapping[str, Cell]]
Mark: TypeAlias = alt.Chart | alt.LayerChart
LINE_HEIGHT = 16  # px
DENSE_DECADES, MANY_DECADES = 1.6, 7  # below: ticks at 1, 2, 5; above: every second power of ten
NARROW_DECADES = 0.8  # below: ticks at 1, 1.5, 2, 3, 4, 5, 7


@dataclass(frozen=True)
class Ruler:
    """One axis: what it measures with its unit, from where to where, and how its numbers are written."""

    title: str
    low: float
    high: float
    log: bool = False
    labels: str = NUMBER_AXIS
    right: bool = False
    hidden: bool = False
    places: tuple[float, ...] | None = None  # of its numbers, where they are stated

    def ticks(self) -> list[float] | None:
        """Round places on a logarithmic axis; a linear axis finds its own."""
        if self.places is not None:
            return list(self.places)
        if not self.log:
            return None
        decades = math.log10(self.high / self.low)
        steps: tuple[float, ...] = (
            (1, 2, 5) if decades < DENSE_DECADES else (1, 3) if decades < 2 * DENSE_DECADES else (1,)
        )
        if decades < NARROW_DECADES:
            steps = (1, 1.5, 2, 3, 4, 5, 7)
        stride = 2 if decades > MANY_DECADES else 1
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1, stride)
        places = [step * 10.0**power for power in powers for step in steps]
        return [place for place in places if self.low * (1 - 1e-9) <= place <= self.high * (1 + 1e-9)]

    def share(self, value: float) -> float:
        """How far along the axis a value lies: 0 at its low end, 1 at its high end."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def value(self, share: float) -> float:
        """The value that lies that far along the axis."""
        if self.log:
            return self.low * math.exp(share * math.log(self.high / self.low))
        return self.low + share * (self.high - self.low)

    def across(self, field: str) -> alt.X:
        """A field along the horizontal axis."""
        axis = alt.Axis(title=self.title, labelExpr=self.labels, values=self.ticks() or alt.Undefined, tickCount=6)
        return alt.X(field, type="quantitative", scale=self._scale(), axis=None if self.hidden else axis)

    def up(self, field: str) -> alt.Y:
        """A field along the vertical axis; its title lies flat above the axis, where it can be read."""
        axis = alt.Axis(
            title=self.title,
            labelExpr=self.labels,
            values=self.ticks() or alt.Undefined,
            tickCount=6,
            orient="right" if self.right else "left",
            grid=not self.right,
            titleAngle=0,
            titleAlign="right" if self.right else "left",
            titleBaseline="bottom",
            titleX=0,
            titleY=-8,
        )
        return alt.Y(field, type="quantitative", scale=self._scale(), axis=None if self.hidden else axis)

    def _scale(self) -> alt.Scale:
        return alt.Scale(type="log" if self.log else "linear", domain=[self.low, self.high], nice=False, zero=False)


@dataclass(frozen=True)
class Plane:
    """Two axes and what can be drawn between them; every mark carries its own data."""

    across: Ruler
    up: Ruler

    def curve(
        self, rows: Rows, x: str, y: str, *, color: str, dash: Sequence[int] = (1, 0), thick: float = 2.5
    ) -> alt.Chart:
        """A line through the rows, in their order, cut at the edges of the plane."""
        mark = _data({x: row[x], y: row[y]} for row in rows).mark_line(
            color=color, strokeDash=list(dash), strokeWidth=thick, clip=True
        )
        return _placed(mark, x=self.across.across(x), y=self.up.up(y), order=alt.value(0))

    def points(self, rows: Rows, x: str, y: str, *, color: str, name: str, filled: bool = False) -> alt.Chart:
        """Circles at the rows, open unless filled. `name` is the class that a page finds them by."""
        mark = _data(rows, name=name).mark_point(
            color=color,
            shape="circle",
            size=150,
            strokeWidth=2.5,
            opacity=1,
            filled=filled,
            fill=color if filled else LIGHT.paper,
        )
        return _placed(mark, x=self.across.across(x), y=self.up.up(y))

    def dots(self, rows: Rows, x: str, y: str, *, color: str, name: str) -> alt.Chart:
        """Small pale dots at the rows, for a crowd of points."""
        mark = _data(rows, name=name).mark_point(color=color, filled=True, size=26, opacity=0.45)
        return _placed(mark, x=self.across.across(x), y=self.up.up(y))

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        color: str = LIGHT.ink,
        align: Align = "left",
        shift: tuple[float, float] = (0, 0),
    ) -> alt.LayerChart:
        """A label at a point, moved by `shift` px (right, down), on a halo that keeps lines off its letters.

        Line breaks separate its lines. A shift upward puts the last line above the point, one downward the first below.
        """
        across, down = shift
        baseline, rise = _hung(down, LINE_HEIGHT * text.count("\n"))
        style: dict[str, Any] = {
            "align": align,
            "baseline": baseline,
            "dx": across,
            "dy": down - rise,
            "lineBreak": "\n",
            "lineHeight": LINE_HEIGHT,
        }
        letters = _placed(
            _data([{"x": x, "y": y, "text": text}]).mark_text(color=color, **style),
            x=self.across.across("x"),
            y=self.up.up("y"),
            text=alt.Text("text", type="nominal"),
        )
        halo = letters.mark_text(color=LIGHT.paper, stroke=LIGHT.paper, strokeWidth=4, strokeJoin="round", **style)
        return layered(halo, letters)

    def vertical(self, x: float, *, color: str, dash: Sequence[int] = (1, 0), top: float | None = None) -> alt.Chart:
        """A line from the lower edge up to `top`, or through."""
        rows = [{"x": x, "low": self.up.low, "high": self.up.high if top is None else top}]
        mark = _data(rows).mark_rule(color=color, strokeDash=list(dash), strokeWidth=1.5, clip=True)
        return _placed(mark, x=self.across.across("x"), y=self.up.up("low"), y2="high")

    def between(self, x: float, low: float, high: float, *, color: str) -> alt.Chart:
        """A thick line at one place from one height to another: a difference that is spoken of."""
        mark = _data([{"x": x, "low": low, "high": high}]).mark_rule(color=color, strokeWidth=5, opacity=0.6, clip=True)
        return _placed(mark, x=self.across.across("x"), y=self.up.up("low"), y2="high")

    def horizontal(self, y: float, *, color: str, dash: Sequence[int] = (1, 0), end: float | None = None) -> alt.Chart:
        """A line from the left edge to `end`, or through."""
        rows = [{"y": y, "low": self.across.low, "high": self.across.high if end is None else end}]
        mark = _data(rows).mark_rule(color=color, strokeDash=list(dash), strokeWidth=1.5, clip=True)
        return _placed(mark, x=self.across.across("low"), x2="high", y=self.up.up("y"))

    def bars(self, rows: Rows, *, color: str, opacity: float = 1.0, thick: float = 14) -> alt.Chart:
        """Horizontal bars from `from` to `to` at the height `y`."""
        mark = _data(rows).mark_rule(color=color, strokeWidth=thick, opacity=opacity, clip=True)
        return _placed(mark, x=self.across.across("from"), x2="to", y=self.up.up("y"))

    def closed(self, left: float, right: float) -> alt.Chart:
        """A pale region between two places on the horizontal axis, where no choice may fall."""
        rows = [{"left": left, "right": right, "low": self.up.low, "high": self.up.high}]
        mark = _data(rows).mark_rect(color=LIGHT.shade, opacity=0.75, clip=True)
        return _placed(mark, x=self.across.across("left"), x2="right", y=self.up.up("low"), y2="high")

    def below(self, rows: Rows, x: str, y: str) -> alt.Chart:
        """A pale region below a line through the rows, which nothing reaches."""
        shaded = ({x: row[x], y: row[y], "low": self.up.low} for row in rows)
        mark = _data(shaded).mark_area(color=LIGHT.shade, opacity=0.75, clip=True)
        return _placed(mark, x=self.across.across(x), y=self.up.up(y), y2="low")


def layered(*marks: Mark) -> alt.LayerChart:
    """Marks on top of each other, the last in front."""
    return alt.LayerChart(layer=list(marks))


def with_right_axis(picture: alt.LayerChart, plane: Plane, ruler: Ruler) -> alt.LayerChart:
    """The same picture with its height also read on a second axis, at the right."""
    corner = [{"x": plane.across.low, "y": ruler.high}]
    axis = Plane(plane.across, ruler).points(corner, "x", "y", color="transparent", name="ruler", filled=True)
    return alt.LayerChart(layer=[picture, axis], resolve=alt.Resolve(scale={"y": "independent"}))


def spread(heights: Sequence[float], ruler: Ruler, *, height: int, gap: float) -> list[float]:
    """The same heights pushed apart until labels beside them are at least `gap` px from each other, inside the axis."""
    places = [height * ruler.share(value) for value in heights]
    order = sorted(range(len(places)), key=places.__getitem__)
    lowest = -math.inf
    for i in order:
        places[i] = lowest = max(places[i], lowest)
        lowest += gap
    highest = float(height)
    for i in reversed(order):
        places[i] = highest = min(places[i], highest)
        highest -= gap
    return [ruler.value(place / height) for place in places]


def _hung(down: float, extra: float) -> tuple[Literal["top", "middle", "bottom"], float]:
    """Which edge of the words stands at the point, and by how much their first line rises to make it so."""
    if abs(down) < 4:
        return "middle", extra / 2
    return ("top", 0.0) if down > 0 else ("bottom", extra)


def _data(rows: Rows, **properties: Any) -> alt.Chart:
    return alt.Chart(alt.InlineData(values=[dict(row) for row in rows]), **properties)


def _placed(mark: alt.Chart, **channels: Any) -> alt.Chart:
    chart: alt.Chart = mark.encode(**channels)
    return chart
