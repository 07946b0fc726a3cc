"""What the rooms export, and the words of the house."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

UNSAFE = {"eps", "delta"}  # a sensitivity, a probability or a change, as one likes: see the names in CONTRIBUTING.md


def offered_names(room: str, tree: ast.Module) -> Iterator[str]:
    """Names that a room's `__init__` takes from its own modules, or makes on the spot."""
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"dualmandate.{room}."):
            yield from (alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name


def shelf(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions; by the alphabet on each shelf, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def undocumented(name: str, thing: object) -> bool:
    """A class or function without a docstring of its own; a dataclass writes `Name(field: …)` by itself."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return False
    return not (thing.__doc__ or "").strip() or (thing.__doc__ or "").startswith(f"{name}(")


def spoken_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Parameters, fields and functions that a caller has to say. Inside a formula letters keep their meaning."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and (node.name[0] != "_" or node.name == "__init__"):
            yield node.name, node.lineno
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            yield from ((argument.arg, argument.lineno) for argument in arguments)
        elif isinstance(node, ast.ClassDef):
            fields = (item.target for item in node.body if isinstance(item, ast.AnnAssign))
            yield from ((field.id, field.lineno) for field in fields if isinstance(field, ast.Name))


def test_every_room_says_what_it_is_for(trees: Mapping[Path, ast.Module]) -> None:
    silent = [str(path) for path, tree in trees.items() if not (ast.get_docstring(tree) or "").strip()]
    assert not silent


def test_rooms_export_exactly_what_they_list_sorted(rooms: tuple[str, ...], trees: Mapping[Path, ast.Module]) -> None:
    for room in rooms:
        offered = {name for name in offered_names(room, trees[Path(room, "__init__.py")]) if name[0] != "_"}
        listed = list(getattr(importlib.import_module(f"dualmandate.{room}"), "__all__", []))
        assert listed == sorted(listed, key=shelf), room
        assert set(listed) >= offered, room


def test_what_rooms_export_is_there_and_documented(rooms: tuple[str, ...], trees: Mapping[Path, ast.Module]) -> None:
    offering = {room for room in rooms if list(offered_names(room, trees[Path(room, "__init__.py")]))}
    for room in ("", *(f".{room}" for room in rooms)):
        module = importlib.import_module(f"dualmandate{room}")
        listed = getattr(module, "__all__", [])
        assert bool(listed) == (not room or room[1:] in offering), room
        assert len(set(listed)) == len(listed), room
        for name in listed:
            assert not undocumented(name, getattr(module, name)), f"{module.__name__}.{name}"


def test_a_class_name_means_one_class(trees: Mapping[Path, ast.Module]) -> None:
    homes: dict[str, set[str]] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, set()).add(str(path))
    assert not {name: paths for name, paths in homes.items() if len(paths) > 1}


def test_no_unsafe_letters(trees: Mapping[Path, ast.Module]) -> None:
    bad = "def f(eps):\n    mrt = eps\n\nclass C:\n    delta: float\n"
    assert {name for name, _ in spoken_names(ast.parse(bad))} >= UNSAFE
    found = {
        str(path): hits
        for path, tree in trees.items()
        if (hits := [(name, line) for name, line in spoken_names(tree) if name in UNSAFE])
    }
    assert not found
