"""Pages for people: one look, complete in themselves, loading nothing."""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files

from dualmandate.report.figures import DARK, LIGHT
from dualmandate.report.figures.theme import FONT, Palette


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


def _variables(palette: Palette) -> str:
    return " ".join(f"--dm-{name}: {color};" for name, color in asdict(palette).items())
