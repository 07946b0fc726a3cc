"""The tree of refusals is drawn as it is, used whole, and met by tests."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

from dualmandate import errors


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


def drawn_tree() -> list[tuple[int, str]]:
    """Depth and name of each branch drawn in the module's docstring."""
    branches = [line for line in (errors.__doc__ or "").splitlines() if "── " in line]
    return [(line.index("── ") // 4, line.split("── ")[1].split()[0]) for line in branches]


def test_the_tree_is_drawn_as_it_is() -> None:
    def depth(refusal: type[errors.Refusal]) -> int:
        return inspect.getmro(refusal).index(errors.Refusal)

    assert drawn_tree() == [(depth(refusal), refusal.__name__) for refusal in descendants(errors.Refusal)]


def test_codes_are_different_words() -> None:
    codes = [refusal.code for refusal in descendants(errors.Refusal)]
    assert len(codes) > 10
    assert len(set(codes)) == len(codes)


def test_every_leaf_is_raised(trees: Mapping[Path, ast.Module]) -> None:
    used = set[str]().union(*(called(tree) for path, tree in trees.items() if path != Path("errors.py")))
    assert not leaves() - used


def test_every_leaf_is_met_by_a_test(root: Path) -> None:
    tests = [path for path in (root / "tests").rglob("test_*.py") if "house" not in path.parts]
    words = "\n".join(path.read_text("utf-8") for path in tests)
    codes = {refusal.__name__: refusal.code for refusal in descendants(errors.Refusal)}
    assert not [leaf for leaf in sorted(leaves()) if leaf not in words and f'"{codes[leaf]}"' not in words]
