"""One look for every page, table and picture: colors that color-blind eyes can tell apart, readable type.

A picture is always drawn in the light colors. Each color is unique, so the same picture in the dark colors, or in the
variables of a web page, is a matter of exchanging them (`recolor`).
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Self

from dualmandate.population.shown import one_line
from dualmandate.population.wording import chosen_loss, exact, money, number, percent

if TYPE_CHECKING:
    from dualmandate.report.figures import Figure

WIDE, NARROW = 680, 320  # px, outer width of a picture on a desk and on a phone
BROAD = 5  # columns, from here on a table is broader than the text
ROOMY = 500  # px, from here on there is room for longer labels and a second axis
FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
TITLE_SIZE, TEXT_SIZE, LABEL_SIZE = 16, 12.5, 12  # px
BOLD_SHARE, PLAIN_SHARE = 0.5, 0.48  # mean width of a letter as a share of its size, a little on the safe side
Cell = float | str | bool | None
Row = dict[str, Any]  # cells by the keys of their columns, and what a picture needs besides


def plain_unit(unit: str) -> str:
    """A unit as it is printed: "USD^2 per child^2" → "USD² per child²"."""
    return unit.replace("^2", "²") or "pure number"


WRITTEN: Mapping[str, Callable[[float], str]] = {
    "number": number,
    "exact": exact,
    "percent": percent,
    "loss": chosen_loss,
}


@dataclass(frozen=True)
class Palette:
    """Colors by what they mean; the first ones follow Okabe and Ito, darkened until they can carry text."""

    paper: str
    ink: str
    quiet: str  # secondary words and axes
    grid: str
    production: str  # what technology can do
    preference: str  # what society wants
    limit: str  # law, floors, the ledger
    good: str
    third: str
    fourth: str
    shade: str  # places that may not be chosen


LIGHT = Palette(
    paper="#fffffe", ink="#1b1f24", quiet="#57606b", grid="#dfe3e8", production="#0067a5", preference="#b84a00",
    limit="#8a3a76", good="#00734f", third="#7a5c00", fourth="#5b4fa3", shade="#eceff2",
)  # fmt: skip
DARK = Palette(
    paper="#15191e", ink="#eef1f4", quiet="#a9b3be", grid="#343b44", production="#63b8ec", preference="#ff9a57",
    limit="#e79bd2", good="#4fd0a4", third="#e3bf4d", fourth="#b3a8f5", shade="#232a32",
)  # fmt: skip
SERIES = (LIGHT.production, LIGHT.preference, LIGHT.good, LIGHT.limit, LIGHT.third, LIGHT.fourth)


def recolor(drawing: str, palette: Palette | None) -> str:
    """A drawing (specification or SVG) in another palette; with None, in the variables `--dm-…` of a web page."""
    for name, color in asdict(LIGHT).items():
        drawing = drawing.replace(color, f"var(--dm-{name})" if palette is None else asdict(palette)[name])
    return drawing


def unbroken(sentence: str) -> str:
    """A sentence whose lines never break inside "ε = 2.5276", "66.7 %" or "USD 81.39 billion"."""
    return re.sub(
        r" = | (?=%)|(?<=\b[A-Z]{3}) (?=\d)|(?<=\d) (?=[mbtr]+illion)",
        lambda gap: gap[0].replace(" ", "\N{NO-BREAK SPACE}"),
        sentence,
    )


def wrap(sentence: str, width: int, size: float, *, share: float = PLAIN_SHARE) -> list[str]:
    """A sentence broken into lines that fit `width` px at a letter size, as even as they can be."""
    sentence = unbroken(sentence)
    letters = max(12, int(width / (size * share)))
    count = len(textwrap.wrap(sentence, letters, break_long_words=False))
    while len(textwrap.wrap(sentence, letters - 1, break_long_words=False)) == count and letters > 12:
        letters -= 1
    return textwrap.wrap(sentence, letters, break_long_words=False)


def configuration() -> dict[str, Any]:
    """The Vega-Lite configuration shared by every picture."""
    axis = {
        "labelColor": LIGHT.quiet,
        "titleColor": LIGHT.quiet,
        "domainColor": LIGHT.quiet,
        "tickColor": LIGHT.quiet,
        "gridColor": LIGHT.grid,
        "gridWidth": 1,
        "labelFontSize": LABEL_SIZE,
        "titleFontSize": LABEL_SIZE,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelPadding": 4,
        "labelOverlap": "greedy",
        "labelSeparation": 6,
    }
    return {
        "font": FONT,
        "background": LIGHT.paper,
        "padding": 8,
        "view": {"stroke": None},
        "axis": axis,
        "axisX": {"grid": False},
        "axisY": {"domain": False, "ticks": False},
        "line": {"strokeWidth": 2.5, "strokeCap": "round"},
        "text": {"fontSize": TEXT_SIZE, "color": LIGHT.ink},
        "title": {
            "anchor": "start", "frame": "bounds", "color": LIGHT.ink, "subtitleColor": LIGHT.quiet,
            "fontSize": TITLE_SIZE, "subtitleFontSize": TEXT_SIZE, "lineHeight": TITLE_SIZE * 1.25,
            "subtitleLineHeight": TEXT_SIZE * 1.3, "subtitlePadding": 6, "offset": 16,
        },
        "legend": {"disable": True},
    }  # fmt: skip


def rendered(template: str, **content: object) -> str:
    """A page of the folder `templates`, with the colors and the font of the figures."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(template_text),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    look = {"light": variables(LIGHT), "dark": variables(DARK), "font": FONT}
    return environment.get_template(template).render(**look, **content)


def template_text(name: str) -> str:
    """A file of the folder `templates`, as it stands."""
    return files("dualmandate.report").joinpath("templates").joinpath(name).read_text(encoding="utf-8")


def shown_figure(figure: Figure) -> dict[str, object]:
    """A figure as a template shows it: drawn for a desk and for a phone, with its words and its table."""
    from markupsafe import Markup

    return {
        "name": figure.name,
        "title": unbroken(figure.title),
        "subtitle": unbroken(figure.subtitle),
        "sentence": figure.sentence,
        "wide": Markup(figure.inline_svg(WIDE, f"{figure.name}-wide")),
        "narrow": Markup(figure.inline_svg(NARROW, f"{figure.name}-narrow")),
        "table": figure.table,
    }


def variables(palette: Palette) -> str:
    """The colors of a palette as the variables `--dm-…` of a web page."""
    return " ".join(f"--dm-{name}: {color};" for name, color in asdict(palette).items())


@dataclass(frozen=True)
class Column:
    """One column: its key in the rows, its heading with the unit, and how its numbers are written."""

    key: str
    heading: str
    kind: str = "number"  # or exact, loss, percent, text; or the code of a currency

    def written(self, cell: Cell) -> str:
        """A cell as the reader sees it."""
        if cell is None:
            return "–"
        if isinstance(cell, str | bool):
            return str(cell) if isinstance(cell, str) else ("yes" if cell else "no")
        return WRITTEN[self.kind](cell) if self.kind in WRITTEN else money(cell, self.kind)


@dataclass(frozen=True)
class FigureTable:
    """Rows of a table. One with a true `marked` is a point that a picture points at, and is never left out."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]

    __repr__ = one_line

    @classmethod
    def of(cls, rows: Iterable[Row], caption: str, *columns: Column) -> Self:
        """A table of some rows, with what it shows and its columns from left to right."""
        return cls(caption, columns, tuple(rows))

    def thinned(self, most: int = 11) -> FigureTable:
        """About `most` evenly spaced rows, the first, the last and every marked one among them."""
        if len(self.rows) <= most:
            return self
        step = (len(self.rows) - 1) / (most - 1)
        kept = {round(i * step) for i in range(most)}
        marked = {i for i, row in enumerate(self.rows) if row.get("marked")}
        return replace(self, rows=tuple(self.rows[i] for i in sorted(kept | marked)))

    @property
    def broad(self) -> bool:
        """Whether it has more columns than a column of text is wide enough for."""
        return sum(self.filled(column) for column in self.columns) >= BROAD

    def filled(self, column: Column) -> bool:
        """Whether a column has anything to say."""
        return any(row.get(column.key) is not None for row in self.rows)

    def written(self) -> tuple[tuple[str, ...], ...]:
        """Every cell as the reader sees it, row by row."""
        return tuple(tuple(column.written(row.get(column.key)) for column in self.columns) for row in self.rows)


def cells(thing: object, *keys: str, **others: Any) -> Row:
    """A row: what a thing says under these keys, and others."""
    return {key: getattr(thing, key) for key in keys} | others
