"""The commands people and CI share."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TARGETS = {"setup", "demo", "quick", "test", "check", "bench", "docs"}


def test_ci_runs_what_people_run(root: Path) -> None:
    assert (root / ".ci" / "run").read_text().splitlines()[-1] == "exec make test"


def test_help_lists_every_target(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    phony = re.search(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    assert phony is not None
    result = subprocess.run(["make", "-s", "help"], cwd=root, capture_output=True, text=True, check=True)
    assert {line.split()[0] for line in result.stdout.splitlines()} == set(phony[1].split())
    assert set(phony[1].split()) >= TARGETS


def test_contributing_names_every_command(root: Path) -> None:
    guide = (root / "CONTRIBUTING.md").read_text()
    assert not [target for target in sorted(TARGETS) if f"`make {target}`" not in guide]


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
