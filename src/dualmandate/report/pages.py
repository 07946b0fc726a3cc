"""Pages for people: one look, complete in themselves, loading nothing."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files
from typing import TYPE_CHECKING

from dualmandate.report.theme import DARK, FONT, LIGHT, NARROW, WIDE, Palette, unbroken

if TYPE_CHECKING:
    from dualmandate.report.figures import Figure


def rendered(template: str, **content: object) -> str:
    """A page of the folder `templates`, with the colors and the font of the figures."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("dualmandate.report").joinpath("templates")
    environment = Environment(
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    look = {"light": _variables(LIGHT), "dark": _variables(DARK), "font": FONT}
    return environment.get_template(template).render(**look, **content)


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


def _variables(palette: Palette) -> str:
    return " ".join(f"--dm-{name}: {color};" for name, color in asdict(palette).items())
