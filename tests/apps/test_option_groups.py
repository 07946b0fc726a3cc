"""Groups of options: a command that takes a dataclass reads like one with a parameter for each field."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer
from typer.testing import CliRunner

from dualmandate.apps.options import with_groups


@dataclass(frozen=True)
class Sizes:
    """Two options."""

    width: Annotated[int, typer.Option("--width", help="How wide.")] = 3
    names: Annotated[list[str] | None, typer.Option("--name")] = None


def test_fields_become_options_in_place_of_the_group() -> None:
    app, taken = typer.Typer(), list[object]()

    @app.command()
    @with_groups
    def draw(target: Annotated[str, typer.Argument()], *, sizes: Sizes, loud: bool = False) -> None:
        """Draw it."""
        taken.extend((target, sizes, loud))

    asked = CliRunner().invoke(app, ["here", "--width", "5", "--name", "a", "--name", "b", "--loud"])
    assert asked.exit_code == 0, asked.output
    assert taken == ["here", Sizes(5, ["a", "b"]), True]
    taken.clear()
    assert CliRunner().invoke(app, ["there"]).exit_code == 0
    assert taken == ["there", Sizes(), False]
    told = CliRunner().invoke(app, ["--help"]).output
    assert "Draw it." in told
    assert "How wide." in told
    assert CliRunner().invoke(app, ["there", "--width", "wide"]).exit_code == 2
