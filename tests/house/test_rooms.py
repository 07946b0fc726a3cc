"""The order of the rooms, the wall, and no drawers."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

ORDER = [
    *("errors", "population", "semantics", "workload", "mechanism", "frontier", "elicitation", "choice"),
    *("ledger", "publication", "inquiry", "program", "planning", "survey", "audit", "report"),
    *("gallery", "benchmarks", "apps"),
]
DRAWERS = {"utils", "util", "helpers", "helper", "misc", "common", "core", "base", "shared", "tools"}
INSIDE_THE_WALL = {"publication", "inquiry", "audit"}
WHERE_THE_BOX_IS_MADE = Path("population/confidential.py")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    environment = os.environ | {"PYTHONPATH": str(folder / "src")}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def openings(tree: ast.Module) -> list[int]:
    """Lines that open a confidential box, or name the act in a string."""
    return [
        node.lineno
        for node in ast.walk(tree)
        if (isinstance(node, ast.Attribute) and node.attr == "open_for")
        or (isinstance(node, ast.Constant) and node.value == "open_for")
    ]


def test_the_contract_states_the_order_of_the_design(root: Path) -> None:
    [contract] = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert [layer.strip("()") for layer in reversed(contract["layers"])] == ORDER
    assert contract["exhaustive"] is True


def test_a_built_room_is_no_longer_in_brackets(root: Path, rooms: tuple[str, ...]) -> None:
    [contract] = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert not [room for room in rooms if f"({room})" in contract["layers"]]


def test_every_room_imports_only_rooms_before_it(root: Path) -> None:
    result = lint_imports(root)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("population/peeking.py", "from dualmandate.choice import choose\n"),
        ("population/peeking.py", "from .. import choice\n"),
        ("workload/peeking.py", "def late() -> None:\n    import dualmandate.program\n"),
        ("errors.py", "import dualmandate.population.domain\n"),
        ("attic/__init__.py", ""),
    ],
    ids=["upward", "relative", "inside a function", "errors import nothing", "a room nobody listed"],
)
def test_the_contract_bites(root: Path, tmp_path: Path, module: str, text: str) -> None:
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    bad = tmp_path / "src" / "dualmandate" / module
    bad.parent.mkdir(exist_ok=True)
    bad.write_text(text)
    result = lint_imports(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "1 broken" in result.stdout or "attic" in result.stdout + result.stderr


def test_errors_import_nothing_but_the_standard_library(trees: Mapping[Path, ast.Module]) -> None:
    names: set[str] = set()
    for node in ast.walk(trees[Path("errors.py")]):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            names.add(node.module.partition(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_confidential_boxes_are_opened_only_inside_the_wall(trees: Mapping[Path, ast.Module]) -> None:
    assert openings(ast.parse("box.open_for('x')\ngetattr(box, 'open_for')\n")) == [1, 2]
    outside = {
        str(path): lines
        for path, tree in trees.items()
        if path.parts[0] not in INSIDE_THE_WALL and path != WHERE_THE_BOX_IS_MADE and (lines := openings(tree))
    }
    assert not outside


def test_there_are_no_drawers(trees: Mapping[Path, ast.Module]) -> None:
    drawers = [str(path) for path in trees if {part.removesuffix(".py").strip("_") for part in path.parts} & DRAWERS]
    assert not drawers
