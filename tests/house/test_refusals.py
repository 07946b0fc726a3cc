"""The tree of refusals is used whole, met by tests, and keeps its codes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

from dualmandate import errors

CODES = [
    "budget exceeded",
    "cannot write",
    "conflicting limits",
    "incompatible units",
    "invalid account",
    "invalid domain",
    "invalid file",
    "invalid invariant",
    "invalid loss",
    "invalid mechanism",
    "invalid preferences",
    "invalid program",
    "invalid query",
    "invalid release",
    "invalid request",
    "invalid rule",
    "invalid survey",
    "invalid tables",
    "invalid value",
    "invalid workload",
    "ledger refusal",
    "ledger tampered",
    "ledger unavailable",
    "missing key",
    "no consistent tables",
    "no estimate",
    "no optimum",
    "not allowed",
    "not approved",
    "not authenticated",
    "not checked",
    "release conflict",
    "still working",
    "too large",
    "too many requests",
    "unknown key",
    "unknown name",
    "unreadable source",
    "unsafe key",
    "unsupported workload",
]  # what programs that read our JSON rely on


def descendants(refusal: type[errors.Refusal]) -> Iterator[type[errors.Refusal]]:
    for child in refusal.__subclasses__():
        if child.__module__ == errors.__name__:
            yield child
            yield from descendants(child)


def leaves() -> set[str]:
    return {refusal.__name__ for refusal in descendants(errors.Refusal) if not list(descendants(refusal))}


def called(tree: ast.Module) -> set[str]:
    """Names of classes built anywhere in a module."""
    return {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute)
    }


def test_codes_stay_as_they_are() -> None:
    assert errors.Refusal.code == "refusal"
    assert sorted(refusal.code for refusal in descendants(errors.Refusal)) == CODES


def test_every_leaf_is_raised(trees: Mapping[Path, ast.Module]) -> None:
    used = set[str]().union(*(called(tree) for path, tree in trees.items() if path != Path("errors.py")))
    assert not leaves() - used


def test_every_leaf_is_met_by_a_test(root: Path) -> None:
    tests = [path for path in (root / "tests").rglob("test_*.py") if "house" not in path.parts]
    words = "\n".join(path.read_text("utf-8") for path in tests)
    codes = {refusal.__name__: refusal.code for refusal in descendants(errors.Refusal)}
    assert not [leaf for leaf in sorted(leaves()) if leaf not in words and f'"{codes[leaf]}"' not in words]
