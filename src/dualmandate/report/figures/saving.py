"""A picture to a file or into a page: PNG, SVG, HTML, all without a network."""

from __future__ import annotations

import html
import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any, Literal, TypeAlias

import altair as alt
import vl_convert

from dualmandate.errors import UnknownName
from dualmandate.report.figures.theme import DARK, FONT, LIGHT, recolor

Picture: TypeAlias = alt.LayerChart | alt.HConcatChart | alt.VConcatChart | alt.Chart
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


def specification(picture: Picture) -> dict[str, Any]:
    """The Vega-Lite specification with its data inside, and without the address of its schema."""
    # Pictures are made by our own functions and their specifications checked in the tests; checking takes seconds.
    document: dict[str, Any] = picture.to_dict(validate=False)
    document.pop("$schema", None)
    return document


def headline(picture: Picture) -> tuple[str, str]:
    """The finding and the units that stand above a picture."""
    return " ".join(picture.title.text), " ".join(picture.title.subtitle)


def svg(picture: Picture, scheme: Scheme = "light") -> str:
    """The picture as a drawing of its own, in light or dark colors."""
    return recolor(_drawn(specification(picture), "part"), PALETTES[scheme])


def png(picture: Picture, scheme: Scheme = "light") -> bytes:
    """The picture in pixels, in light or dark colors."""
    return svg_to_png(svg(picture, scheme))


def svg_to_png(drawing: str) -> bytes:
    """A drawing in pixels."""
    rendered: bytes = vl_convert.svg_to_png(drawing, scale=SHARPNESS)
    return rendered


def inline_svg(picture: Picture, name: str) -> str:
    """The picture for a web page: headline left to the page, colors from its `--dm-…` variables, `name` in every id."""
    document = specification(picture)
    title, subtitle = headline(picture)
    del document["title"]
    document["background"] = document["config"]["background"] = None
    drawing = re.sub(r' (?:aria-[a-z]+|role)="[^"]*"', "", _drawn(document, name))  # one label speaks for the whole
    label = html.escape(f"{title}. {subtitle}", quote=True)
    return recolor(drawing.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1), None)


def page(picture: Picture) -> str:
    """The picture as one self-contained web page that follows the width of its window."""
    document = specification(picture)
    title, subtitle = (html.escape(words, quote=True) for words in headline(picture))
    del document["title"]
    if "width" in document:
        document["width"] = "container"
    return PAGE.format(
        title=title,
        subtitle=subtitle,
        font=FONT,
        paper=LIGHT.paper,
        ink=LIGHT.ink,
        quiet=LIGHT.quiet,
        bundle=vl_convert.javascript_bundle(EMBED).replace("</script", "<\\/script"),
        specification=json.dumps(document, ensure_ascii=False, allow_nan=False).replace("</", "<\\/"),
    )


def save(picture: Picture, path: Path | str, scheme: Scheme = "light") -> Path:
    """Write a picture; the ending of the path says how: `.png`, `.svg` or `.html`."""
    path = Path(path)
    if path.suffix == ".png":
        return write(path, png(picture, scheme))
    if path.suffix == ".svg":
        return write(path, svg(picture, scheme).encode())
    if path.suffix == ".html":
        return write(path, page(picture).encode())
    raise UnknownName(
        f"a picture in the format '{path.suffix}'",
        why="pictures are written as .png, .svg or .html",
        instead=f"write to {path.with_suffix('.png').name}",
    )


def _drawn(document: dict[str, Any], name: str) -> str:
    """The drawing of a specification, its ids counted anew: Vega counts on from whatever was drawn before."""
    drawing: str = vl_convert.vegalite_to_svg(document)
    for i, old in enumerate(dict.fromkeys(re.findall(r'id="([^"]+)"', drawing))):
        drawing = drawing.replace(f'id="{old}"', f'id="{name}-{i}"').replace(f"url(#{old})", f"url(#{name}-{i})")
    return drawing


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
