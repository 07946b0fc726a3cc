"""The commands people and CI share."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from dualmandate.apps.cli import app


def targets(root: Path) -> set[str]:
    phony = re.search(r"^\.PHONY: (.+)$", (root / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    return set(phony[1].split())


def first_cells(text: str, heading: str) -> list[tuple[str, str]]:
    """The first two cells of the rows of the first table under a heading."""
    under = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in under.splitlines() if line.startswith("| `")]
    return [(cells[0].strip().strip("`"), cells[1].strip()) for cells in rows]


def test_ci_runs_what_people_run(root: Path) -> None:
    assert (root / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"


def test_help_lists_every_target(root: Path) -> None:
    result = subprocess.run(["make", "-s", "help"], cwd=root, capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in result.stdout.splitlines()} == targets(root)
    assert targets(root) >= {"demo", "test"}


def test_contributing_lists_exactly_the_targets(root: Path) -> None:
    listed = first_cells((root / "CONTRIBUTING.md").read_text(), "The commands")
    assert sorted(name for name, _ in listed) == sorted(f"make {target}" for target in targets(root) - {"help"})


def test_the_readme_lists_exactly_the_commands(root: Path) -> None:
    commands: dict[str, Any] = vars(get_command(app))["commands"]
    expected = [(f"dualmandate {name}", each.help.split("\n")[0].rstrip(".")) for name, each in commands.items()]
    assert first_cells((root / "README.md").read_text(), "The commands") == expected


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "--output-format", "concise"],
        ["ruff", "format", "--check"],
        pytest.param(["mypy"], marks=pytest.mark.slow),
    ],
    ids=" ".join,
)
def test_the_tree_is_clean(root: Path, command: list[str]) -> None:
    program = Path(sys.executable).parent / command[0]
    result = subprocess.run([program, *command[1:]], cwd=root, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
