"""The order of the rooms, the wall, and no drawers."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

DRAWERS = {"utils", "util", "helpers", "helper", "misc", "common", "core", "base", "shared", "tools"}
BY_NAME = {"__init__.py", "mechanism/strategy/arrays.py"}
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


def table_rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its head."""
    under = text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in under.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_map_of_the_rooms_is_the_contract(root: Path, layers: tuple[str, ...]) -> None:
    rows = table_rows((root / "CONTRIBUTING.md").read_text(), "The map of the rooms")
    drawn = [(name.strip("`"), built) for name, _, built in rows]
    assert drawn == [(layer.strip("()"), "not yet" if layer[0] == "(" else "yes") for layer in layers]


def test_a_room_is_in_brackets_until_it_is_built(package: Path, layers: tuple[str, ...]) -> None:
    there = {"errors", *(init.parent.name for init in package.glob("*/__init__.py"))}
    assert {layer for layer in layers if layer[0] != "("} == there


def test_the_readme_says_which_rooms_are_not_built(root: Path, layers: tuple[str, ...]) -> None:
    [sentence] = re.findall(r"Not built yet: (.+?)\.\s", (root / "README.md").read_text(), re.DOTALL)
    assert set(re.findall(r"`(\w+)`", sentence)) == {layer.strip("()") for layer in layers if layer[0] == "("}


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


def hidden_imports(tree: ast.Module) -> list[int]:
    """Lines that import what no reader of imports sees: by a name made at run time, or of ours by a string."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            named = node.args[0] if node.args else None
            literal = named.value if isinstance(named, ast.Constant) else None
            ours = isinstance(literal, str) and literal.partition(".")[0] in {"", "dualmandate"}
            if called in {"import_module", "__import__", "run_module"} and (ours or not isinstance(literal, str)):
                found.append(node.lineno)
            found += [node.lineno] * (called == "find_spec" and ours)  # it loads the rooms above what it looks for
            found += [node.lineno] * (called in {"exec", "eval"})
        elif isinstance(node, ast.Attribute) and node.attr == "__class__" and isinstance(node.ctx, ast.Store):
            found.append(node.lineno)  # a module that becomes something else
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            found += [node.lineno] * (ast.unparse(node.value) == "sys.modules")
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import_module('dualmandate.program').audit(x)",
        "importlib.import_module(f'dualmandate.{name}')",
        "import_module(name)",
        "import_module('.program', __package__)",
        "__import__('dualmandate.program')",
        "find_spec('dualmandate.program')",
        "sys.modules[__name__].__class__ = Door",
        "sys.modules[__name__] = Door()",
        "exec('import dualmandate.program')",
    ],
)
def test_an_import_that_the_contract_cannot_see_is_seen_here(text: str) -> None:
    assert hidden_imports(ast.parse(text)) == [1]
    assert not hidden_imports(
        ast.parse("import_module('opendp.prelude')\nfind_spec('pyspark')\nimport dualmandate.program")
    )


def test_the_contract_sees_every_edge(trees: Mapping[Path, ast.Module]) -> None:
    """Only the package's own door opens rooms by name, when they are first used; a library of arrays is asked for."""
    found = {str(path): lines for path, tree in trees.items() if (lines := hidden_imports(tree))}
    assert set(found) == BY_NAME


def test_what_the_package_opens_by_name_is_declared(trees: Mapping[Path, ast.Module]) -> None:
    """The door's table of homes says the same as the imports it states for type checkers, which the contract reads."""
    door = trees[Path("__init__.py")]
    homes, called = (
        ast.literal_eval(node.value)
        for node in door.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in {"_HOMES", "_CALLED"}
    )
    stated = {
        alias.name: (node.module or "").removeprefix("dualmandate.")
        for node in ast.walk(door)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dualmandate.")
        for alias in node.names
    }
    assert {called.get(name, name): home for name, home in homes.items()} == stated
    assert len(homes) > 10


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
