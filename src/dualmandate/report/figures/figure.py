"""A picture and its table: one `Figure`, drawn when asked, at the width asked for; PNG, SVG, HTML, without a network.

A drawing is made from the rows of the figure's table, so what the picture shows and what the table says cannot differ.
Everything but the drawing (what it shows, how to read it, its table, its Vega-Lite specification) needs no plotting
library.
"""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from dualmandate.errors import UnknownName
from dualmandate.report.figures.plane import Mark
from dualmandate.report.tables import FigureTable
from dualmandate.report.theme import (
    BOLD_SHARE,
    DARK,
    FONT,
    LIGHT,
    TEXT_SIZE,
    TITLE_SIZE,
    WIDE,
    configuration,
    recolor,
    wrap,
)

if TYPE_CHECKING:
    import altair as alt

    Chart: TypeAlias = alt.LayerChart | alt.VConcatChart

Scheme = Literal["light", "dark"]
PALETTES = {"light": LIGHT, "dark": DARK}
EMBED = "window.vegaEmbed = vegaEmbed;"
SHARPNESS = 2.0  # device pixels a picture pixel, for dense screens

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>body{{margin:0 auto;padding:1rem;max-width:60rem;font-family:{font};background:{paper};color:{ink}}}
h1{{font-size:1.25rem;margin:0 0 .3rem}}p{{margin:0 0 1rem;color:{quiet}}}#picture{{width:100%}}</style></head>
<body><h1>{title}</h1><p>{subtitle}</p><div id="picture" role="img" aria-label="{title}"></div>
<script>{bundle}</script>
<script>vegaEmbed("#picture", {specification}, {{"mode": "vega-lite", "actions": false, "renderer": "svg"}});</script>
</body></html>
"""


@dataclass(frozen=True)
class Figure:
    """A picture that is drawn when asked: what it shows, how to read it, and the table behind it."""

    name: str  # of its files, and of its place on a page
    title: str  # the finding
    subtitle: str  # what is drawn, with its units
    sentence: str  # how to read it
    table: FigureTable
    layout: Callable[[int], Mark] = field(repr=False, compare=False)  # its marks at an outer width in px

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

    def page(self) -> str:
        """The picture as one self-contained web page that follows the width of its window."""
        import vl_convert

        document = self.specification()
        del document["title"]
        if "width" in document:
            document["width"] = "container"
        return PAGE.format(
            title=html.escape(self.title, quote=True),
            subtitle=html.escape(self.subtitle, quote=True),
            font=FONT,
            paper=LIGHT.paper,
            ink=LIGHT.ink,
            quiet=LIGHT.quiet,
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
