"""A picture and its table: one `Figure`, drawn when asked, at the width asked for; PNG, SVG, HTML, without a network.

A drawing is made from the rows of the figure's table, so what the picture shows and what the table says cannot differ.
Everything but the drawing (what it shows, how to read it, its table, its Vega-Lite specification) needs no plotting
library: a picture is drawn on a plane of two axes with the few kinds of marks the house uses, and a mark is a piece of
a Vega-Lite specification, plain data.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
import re
import tempfile
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dualmandate.errors import UnknownName
from dualmandate.population.arguments import checked_class
from dualmandate.population.currency import CURRENCIES
from dualmandate.population.shown import one_line
from dualmandate.report.theme import (
    BOLD_SHARE,
    DARK,
    LIGHT,
    TEXT_SIZE,
    TITLE_SIZE,
    WIDE,
    Cell,
    FigureTable,
    Row,
    configuration,
    recolor,
    rendered,
    variables,
    wrap,
)

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.LayerChart | alt.VConcatChart

Scheme = Literal["light", "dark"]
PALETTES = {"light": LIGHT, "dark": DARK}
EMBED = "window.vegaEmbed = vegaEmbed;"
DARK_NOTEBOOKS = ('[data-jp-theme-light="false"]', ".vscode-dark", 'html[theme="dark"]', '[data-theme="dark"]')
SHOWN = (  # a figure in a notebook: Jupyter, Visual Studio Code and Colab say whether they are dark
    f".dualmandate-figure {{ {variables(LIGHT)} background: var(--dm-paper); color: var(--dm-ink); "
    f"max-width: {WIDE}px; padding: 12px; border-radius: 6px }} "
    f"{', '.join(f'{dark} .dualmandate-figure' for dark in DARK_NOTEBOOKS)} {{ {variables(DARK)} }}"
)
SHARPNESS = 2.0  # device pixels a picture pixel, for dense screens
DISTANCES = (8, 14, 24, 40, 64)  # px between a line and its name, the first that has room
DIRECTIONS = ((1, 1), (-1, -1), (1, 0), (-1, 0), (0, 1), (0, -1), (1, -1), (-1, 1))  # aside, and down

Align = Literal["left", "center", "right"]
Rows = Iterable[Row]
Mark: TypeAlias = dict[str, Any]
LINE_HEIGHT = 16  # px
LETTER = 6.4  # px, mean width of a letter in a label
DENSE_DECADES, MANY_DECADES = 1.6, 7  # below: ticks at 1, 2, 5; above: every second power of ten
EDGE = 1e-9  # of an axis; nearer to its end is on it
NARROW_DECADES = 0.8  # below: ticks at 1, 1.5, 2, 3, 4, 5, 7
# Numbers on an axis, in Vega's expression language, as `population.wording` writes them elsewhere.
_SIZE = (
    "(abs(datum.value) >= 1e15 ? format(abs(datum.value), '~e')"
    " : abs(datum.value) >= 1e12 ? format(abs(datum.value) / 1e12, ',~r') + 'T'"
    " : abs(datum.value) >= 1e9 ? format(abs(datum.value) / 1e9, ',~r') + 'B'"
    " : abs(datum.value) >= 1e6 ? format(abs(datum.value) / 1e6, ',~r') + 'M'"
    " : format(abs(datum.value), ',~r'))"
)
AXIS_LABELS = {
    "number": f"(datum.value < 0 ? '−' : '') + {_SIZE}",
    "percent": "format(100 * datum.value, ',~r') + ' %'",
}


@checked_class
@dataclass(frozen=True)
class Figure:
    """A picture that is drawn when asked: what it shows, how to read it, and the table behind it."""

    name: str  # of its files, and of its place on a page
    title: str  # the finding
    subtitle: str  # what is drawn, with its units
    sentence: str  # how to read it
    table: FigureTable
    layout: Callable[[int], Mark] = field(repr=False, compare=False)  # its marks at an outer width in px

    __repr__ = one_line

    def specification(self, width: int = WIDE) -> dict[str, Any]:
        """The Vega-Lite specification in the house's look, `width` px from edge to edge, with its data inside."""
        document: dict[str, Any] = {
            **self.layout(width),
            "title": {
                "text": wrap(self.title, width - 20, TITLE_SIZE, share=BOLD_SHARE),
                "subtitle": wrap(self.subtitle, width - 20, TEXT_SIZE),
            },
            "description": f"{self.title}. {self.subtitle}",
            "config": configuration(),
        }
        if "height" in document:  # panels above each other have widths of their own
            document |= {"width": width, "autosize": {"type": "fit-x", "contains": "padding"}}
        return document

    def draw(self, width: int = WIDE) -> Chart:
        """The picture as an Altair chart, for a notebook."""
        import altair as alt

        document = self.specification(width)
        kind = alt.VConcatChart if "vconcat" in document else alt.LayerChart
        # Our own functions made it and the tests check it against the schema; checking takes seconds.
        chart: Chart = kind.from_dict(document, validate=False)
        return chart

    def svg(self, width: int = WIDE, scheme: Scheme = "light") -> str:
        """The picture as a drawing of its own, in light or dark colors."""
        return recolor(_drawn(self.specification(width), "part"), PALETTES[scheme])

    def png(self, width: int = WIDE, scheme: Scheme = "light") -> bytes:
        """The picture in pixels, in light or dark colors."""
        return svg_to_png(self.svg(width, scheme))

    def inline_svg(self, width: int, name: str) -> str:
        """The picture for a web page: words above it left to the page, colors from its `--dm-…`, `name` in every id."""
        document = self.specification(width)
        del document["title"]
        document["background"] = document["config"]["background"] = None
        drawing = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", _drawn(document, name))  # one label speaks for the whole
        label = html.escape(f"{self.title}. {self.subtitle}", quote=True)
        return recolor(drawing.replace("<svg", f'<svg role="img" aria-label="{label}"', 1), None)

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture with its words, on paper of its own, light or dark as the notebook is."""
        key = hashlib.sha256(f"{self.title} {self.table}".encode()).hexdigest()[:8]  # ids differ from those of others
        drawing = self.inline_svg(WIDE, f"{self.name}-{key}")
        drawing = drawing.replace("<svg", '<svg style="max-width: 100%; height: auto"', 1)
        return (
            f"<style>{SHOWN}</style>"
            f'<div class="dualmandate-figure"><div style="font-weight: 600">{html.escape(self.title)}</div>'
            f'<div style="opacity: 0.8; font-size: 0.9em">{html.escape(self.subtitle)}</div>{drawing}'
            f'<div style="font-size: 0.9em">{html.escape(self.sentence)}</div></div>'
        )

    def page(self) -> str:
        """The picture as one self-contained web page that follows the width of its window."""
        import vl_convert

        document = self.specification()
        del document["title"]
        if "width" in document:
            document["width"] = "container"
        return rendered(
            "figure.html",
            title=self.title,
            subtitle=self.subtitle,
            palette=LIGHT,
            bundle=vl_convert.javascript_bundle(EMBED).replace("</script", "<\\/script"),
            specification=json.dumps(document, ensure_ascii=False, allow_nan=False).replace("</", "<\\/"),
        )

    def save(self, path: Path | str, scheme: Scheme = "light") -> Path:
        """Write the picture; the ending of the path says how: `.png`, `.svg` or `.html`."""
        path = Path(path)
        if path.suffix == ".png":
            return write(path, self.png(scheme=scheme))
        if path.suffix == ".svg":
            return write(path, self.svg(scheme=scheme).encode())
        if path.suffix == ".html":
            return write(path, self.page().encode())
        raise UnknownName(
            f"a picture in the format '{path.suffix}'",
            why="pictures are written as .png, .svg or .html",
            instead=f"write to {path.with_suffix('.png').name}",
        )


def svg_to_png(drawing: str) -> bytes:
    """A drawing in pixels."""
    import vl_convert

    rendered: bytes = vl_convert.svg_to_png(drawing, scale=SHARPNESS)
    return rendered


def write(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all: readers never see a part of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path


def _drawn(document: dict[str, Any], name: str) -> str:
    """The drawing of a specification, its ids counted anew: Vega counts on from whatever was drawn before."""
    import vl_convert

    drawing: str = vl_convert.vegalite_to_svg(document)
    for i, old in enumerate(dict.fromkeys(re.findall(r'id="([^"]+)"', drawing))):
        drawing = drawing.replace(f'id="{old}"', f'id="{name}-{i}"').replace(f"url(#{old})", f"url(#{name}-{i})")
    return drawing


@dataclass(frozen=True)
class Ruler:
    """One axis: what it measures with its unit, from where to where, and how its numbers are written."""

    title: str
    low: float
    high: float
    log: bool = False
    labels: str = "number"  # or percent; or the code of a currency; or an expression in Vega's language
    right: bool = False
    hidden: bool = False
    places: tuple[float, ...] | None = None  # of its numbers, where they are stated
    count: int = 6  # about so many numbers, on a linear axis

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

    def across(self, name: str) -> Mark:
        """A field along the horizontal axis."""
        return self._channel(name)

    def up(self, name: str) -> Mark:
        """A field along the vertical axis; its title lies flat above the axis, where it can be read."""
        side = "right" if self.right else "left"
        title = {"titleAngle": 0, "titleAlign": side, "titleBaseline": "bottom", "titleX": 0, "titleY": -8}
        return self._channel(name, orient=side, grid=not self.right, **title)

    def _channel(self, name: str, **look: Any) -> Mark:
        scale = {"type": "log" if self.log else "linear", "domain": [self.low, self.high], "nice": False, "zero": False}
        axis = {"title": self.title, "labelExpr": _label(self.labels), "tickCount": self.count, **look}
        if ticks := self.ticks():
            axis["values"] = ticks
        return {"field": name, "type": "quantitative", "scale": scale, "axis": None if self.hidden else axis}


def _label(labels: str) -> str:
    """Numbers on an axis in Vega's expression language; the title of an axis of money names the currency."""
    return AXIS_LABELS["number"] if labels in CURRENCIES else AXIS_LABELS.get(labels, labels)


@dataclass(frozen=True)
class Plane:
    """Two axes and what can be drawn between them; every mark carries its own data."""

    across: Ruler
    up: Ruler

    def curve(
        self, rows: Rows, x: str, y: str, *, color: str, dash: Sequence[int] = (1, 0), thick: float = 2.5
    ) -> Mark:
        """A line through the rows, in their order, as far as it lies on the plane."""
        look = {"type": "line", "color": color, "strokeDash": list(dash), "strokeWidth": thick}
        channels = {"x": self.across.across(x), "y": self.up.up(y), "order": {"value": 0}}
        pieces = self._pieces([{x: row[x], y: row[y]} for row in rows], x, y)
        if len(pieces) == 1:
            return _mark(pieces[0], look, channels)
        channels["detail"] = {"field": "piece", "type": "nominal"}
        return _mark((row | {"piece": i} for i, piece in enumerate(pieces) for row in piece), look, channels)

    def _pieces(self, rows: Sequence[Row], x: str, y: str) -> list[list[Row]]:
        """The stretches of a line that lie on the plane; pixels are painted much faster where nothing is cut."""
        places = [(self.across.share(row[x]), self.up.share(row[y])) for row in rows]
        pieces: list[list[Row]] = []
        ended = True
        for (start, end), (first, last) in zip(pairwise(places), pairwise(rows), strict=True):
            enters, leaves = 0.0, 1.0
            for low, high in zip(start, end, strict=True):
                if low != high:
                    crossings = sorted((edge - low) / (high - low) for edge in (-EDGE, 1 + EDGE))
                    enters, leaves = max(enters, crossings[0]), min(leaves, crossings[1])
                elif not -EDGE <= low <= 1 + EDGE:
                    leaves = -1.0
            if enters <= leaves:
                cut = [
                    {
                        x: self.across.value(start[0] + part * (end[0] - start[0])),
                        y: self.up.value(start[1] + part * (end[1] - start[1])),
                    }
                    for part in (enters, leaves)
                ]
                if ended or enters > 0:
                    pieces.append([cut[0] if enters > 0 else first])
                pieces[-1].append(cut[1] if leaves < 1 else last)
            ended = enters > leaves or leaves < 1
        return pieces

    def points(self, rows: Rows, x: str, y: str, *, color: str, name: str, filled: bool = False) -> Mark:
        """Circles at the rows, open unless filled. `name` is the class that a page finds them by."""
        look = {"type": "point", "color": color, "shape": "circle", "size": 150, "strokeWidth": 2.5, "opacity": 1}
        look |= {"filled": filled, "fill": color if filled else LIGHT.paper}
        return _mark(rows, look, {"x": self.across.across(x), "y": self.up.up(y)}, name=name)

    def dots(self, rows: Rows, x: str, y: str, *, color: str, name: str) -> Mark:
        """Small pale dots at the rows, for a crowd of points."""
        look = {"type": "point", "color": color, "filled": True, "size": 26, "opacity": 0.45}
        return _mark(rows, look, {"x": self.across.across(x), "y": self.up.up(y)}, name=name)

    def words(
        self,
        x: float,
        y: float,
        text: str,
        *,
        color: str = LIGHT.ink,
        align: Align = "left",
        shift: tuple[float, float] = (0, 0),
    ) -> Mark:
        """A label at a point, moved by `shift` px (right, down), on a halo that keeps lines off its letters.

        Line breaks separate its lines. A shift upward puts the last line above the point, one downward the first below.
        """
        across, down = shift
        baseline, rise = _hung(down, LINE_HEIGHT * text.count("\n"))
        style = {"type": "text", "align": align, "baseline": baseline, "dx": across, "dy": down - rise}
        style |= {"lineBreak": "\n", "lineHeight": LINE_HEIGHT}
        rows: list[dict[str, Cell]] = [{"x": x, "y": y, "text": text}]
        channels = {"x": self.across.across("x"), "y": self.up.up("y"), "text": {"field": "text", "type": "nominal"}}
        halo = {"color": LIGHT.paper, "stroke": LIGHT.paper, "strokeWidth": 4, "strokeJoin": "round"}
        return layered(_mark(rows, style | halo, channels), _mark(rows, style | {"color": color}, channels))

    def vertical(self, x: float, *, color: str, dash: Sequence[int] = (1, 0), top: float | None = None) -> Mark:
        """A line from the lower edge up to `top`, or through."""
        rows = [{"x": x, "low": self.up.low, "high": self.up.high if top is None else top}]
        return self._upright(rows, color=color, strokeDash=list(dash), strokeWidth=1.5)

    def upright(self, x: float, pieces: Sequence[tuple[float, float]], *, color: str) -> Mark:
        """A line at one place in pieces, each from one height to another, with room for words between them."""
        rows = [{"x": x, "low": low, "high": high} for low, high in pieces]
        return self._upright(rows, color=color, strokeWidth=1.5)

    def between(self, x: float, low: float, high: float, *, color: str) -> Mark:
        """A thick line at one place from one height to another: a difference that is spoken of."""
        return self._upright([{"x": x, "low": low, "high": high}], color=color, strokeWidth=5, opacity=0.6)

    def horizontal(self, y: float, *, color: str, dash: Sequence[int] = (1, 0), end: float | None = None) -> Mark:
        """A line from the left edge to `end`, or through."""
        rows = [{"y": y, "from": self.across.low, "to": self.across.high if end is None else end}]
        return self._lying(rows, color=color, strokeDash=list(dash), strokeWidth=1.5)

    def bars(self, rows: Rows, *, color: str, opacity: float = 1.0, thick: float = 14) -> Mark:
        """Horizontal bars from `from` to `to` at the height `y`."""
        return self._lying(rows, color=color, strokeWidth=thick, opacity=opacity)

    def closed(self, left: float, right: float) -> Mark:
        """A pale region between two places on the horizontal axis, where no choice may fall."""
        ends = {"x": self.across.across("left"), "x2": {"field": "right"}}
        rows: list[Row] = [{"left": left, "right": right, "low": self.up.low, "high": self.up.high}]
        look = {"type": "rect", "color": LIGHT.shade, "opacity": 0.75, **self._cut(rows, ("left", "right"), ())}
        return _mark(rows, look, {**ends, "y": self.up.up("low"), "y2": {"field": "high"}})

    def below(self, rows: Rows, x: str, y: str) -> Mark:
        """A pale region below a line through the rows, which nothing reaches."""
        drawn: list[Row] = [{x: row[x], y: row[y], "low": self.up.low} for row in rows]
        look = {"type": "area", "color": LIGHT.shade, "opacity": 0.75, **self._cut(drawn, (x,), (y,))}
        return _mark(drawn, look, {"x": self.across.across(x), "y": self.up.up(y), "y2": {"field": "low"}})

    def _upright(self, rows: Rows, **look: Any) -> Mark:
        channels = {"x": self.across.across("x"), "y": self.up.up("low"), "y2": {"field": "high"}}
        rows = list(rows)
        return _mark(rows, {"type": "rule", **look, **self._cut(rows, ("x",), ("low", "high"))}, channels)

    def _lying(self, rows: Rows, **look: Any) -> Mark:
        channels = {"x": self.across.across("from"), "x2": {"field": "to"}, "y": self.up.up("y")}
        rows = list(rows)
        return _mark(rows, {"type": "rule", **look, **self._cut(rows, ("from", "to"), ("y",))}, channels)

    def _cut(self, rows: Sequence[Row], across: Sequence[str], up: Sequence[str]) -> Mark:
        """Whether a mark is cut at the edges: only where it would pass them, for cutting takes longest to draw."""
        axes = [(self.across, name) for name in across] + [(self.up, name) for name in up]
        ends = [(sorted((axis.low, axis.high)), name) for axis, name in axes]
        return {} if all(low <= row[name] <= high for row in rows for (low, high), name in ends) else {"clip": True}


@dataclass(frozen=True)
class Clearing:
    """The free room of a plane, to put a name beside its curve where no line and no other words pass.

    Lines are points across and up, words are boxes (left, top, right, bottom); all in px from the upper left corner.
    """

    plane: Plane
    width: float
    height: float
    lines: tuple[tuple[tuple[float, float], ...], ...] = ()
    boxes: tuple[tuple[float, float, float, float], ...] = ()

    def with_line(self, line: Sequence[tuple[float, float]]) -> Clearing:
        """With one more line of data, which no words may stand on."""
        return replace(self, lines=(*self.lines, self._dense(line)))

    def with_words(self, across: float, up: float, words: str) -> Clearing:
        """With words whose lower left corner lies at these shares of the axes."""
        wide, high = _extent(words)
        left, low = across * self.width, (1 - up) * self.height
        return replace(self, boxes=(*self.boxes, (left, low - high - 6, left + wide + 6, low)))

    def named(self, line: Sequence[tuple[float, float]], words: str) -> tuple[tuple[float, float] | None, Clearing]:
        """The middle of the free place nearest to a line for its name, and the room that is left; None without one."""
        wide, high = _extent(words)
        shown = [(x, y) for x, y in self._dense(line) if 0 <= x <= self.width and 0 <= y <= self.height]
        for away, (x, y), (aside, rise) in product(DISTANCES, shown, DIRECTIONS):
            across, down = x + aside * (wide / 2 + away), y + rise * (high / 2 + away)
            box = across - wide / 2, down - high / 2, across + wide / 2, down + high / 2
            if self._is_free(box):
                spot = self.plane.across.value(across / self.width), self.plane.up.value(1 - down / self.height)
                return spot, replace(self, boxes=(*self.boxes, box))
        return None, self

    def holds(self, x: float, y: float, words: str) -> bool:
        """Whether words in the middle of which a point lies stand free."""
        wide, high = _extent(words)
        across, down = self.plane.across.share(x) * self.width, (1 - self.plane.up.share(y)) * self.height
        return self._is_free((across - wide / 2, down - high / 2, across + wide / 2, down + high / 2))

    def has_room(self, x: float, words: str, align: Align) -> bool:
        """Whether words at the lower edge that begin, or end, 12 px beside a place stand free."""
        wide, high = _extent(words)
        across = self.plane.across.share(x) * self.width
        left = across + 12 if align == "left" else across - 12 - wide
        return self._is_free((left, self.height - high - 5, left + wide, self.height - 5))

    def _is_free(self, box: tuple[float, float, float, float]) -> bool:
        left, top, right, bottom = box
        if left < 6 or top < 4 or right > self.width - 6 or bottom > self.height - 4:
            return False
        if any(left < b[2] + 4 and b[0] - 4 < right and top < b[3] + 2 and b[1] - 2 < bottom for b in self.boxes):
            return False
        return not any(left - 5 < x < right + 5 and top - 3 < y < bottom + 3 for line in self.lines for x, y in line)

    def _dense(self, line: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
        """The line in px, with a point at least every few of them where it is inside."""
        placed = [
            (self.plane.across.share(x) * self.width, (1 - self.plane.up.share(y)) * self.height) for x, y in line
        ]
        found = placed[:1]
        for (a, b), (c, d) in pairwise(placed):
            steps = max(1, min(200, math.ceil(math.hypot(c - a, d - b) / 4)))
            found += [(a + (c - a) * k / steps, b + (d - b) * k / steps) for k in range(1, steps + 1)]
        return tuple(found)


def _extent(words: str) -> tuple[float, float]:
    lines = words.split("\n")
    return LETTER * max(map(len, lines)), LINE_HEIGHT * len(lines)


def lanes(ruler: Ruler, count: float) -> Plane:
    """A plane with one row a thing, counted from the top; a thing's mark and its words stand inside its row."""
    return Plane(ruler, Ruler("", float(count), 0.0, hidden=True))


def layered(*marks: Mark, **size: float) -> Mark:
    """Marks on top of each other, the last in front; a whole picture states its `height` in px, a panel both sizes."""
    return {"layer": list(marks), **size}


def with_right_axis(picture: Mark, plane: Plane, ruler: Ruler) -> Mark:
    """The same picture with its height also read on a second axis, at the right."""
    corner = [{"x": plane.across.low, "y": ruler.high}]
    axis = Plane(plane.across, ruler).points(corner, "x", "y", color="transparent", name="ruler", filled=True)
    inner = {key: part for key, part in picture.items() if key != "height"}
    return {**layered(inner, axis, height=picture["height"]), "resolve": {"scale": {"y": "independent"}}}


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


def shortened(name: str, width: int, beside: str = "") -> str:
    """A name cut so that it fits on a line of a picture together with the words `beside` it."""
    return textwrap.shorten(name, max(12, int((width - 40) / LETTER) - len(beside)), placeholder="…")


def _hung(down: float, extra: float) -> tuple[Literal["top", "middle", "bottom"], float]:
    """Which edge of the words stands at the point, and by how much their first line rises to make it so."""
    if abs(down) < 4:
        return "middle", extra / 2
    return ("top", 0.0) if down > 0 else ("bottom", extra)


def _mark(rows: Rows, look: Mark, channels: Mark, **name: str) -> Mark:
    return {"data": {"values": [dict(row) for row in rows]}, **name, "mark": look, "encoding": channels}
