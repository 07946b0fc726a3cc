"""Small modules, short functions, few parameters; no list of exceptions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

LONGEST_MODULE, LONGEST_FUNCTION, MOST_PARAMETERS = 400, 60, 7


def complaints(text: str) -> Iterator[str]:
    """What is too large in one module."""
    lines = text.count("\n")
    if lines > LONGEST_MODULE:
        yield f"{lines} lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            names = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]
            count = len(names) - (names[:1] in (["self"], ["cls"]))
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if count > MOST_PARAMETERS:
                yield f"{node.name}, line {node.lineno}: {count} parameters"
            if length > LONGEST_FUNCTION:
                yield f"{node.name}, line {node.lineno}: {length} lines"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n" * 401, "401 lines"),
        ("def f():\n" + "    x = 1\n" * 60, "f, line 1: 61 lines"),
        ("def f(a, b, *, c, d, e, f, g, h): ...\n", "f, line 1: 8 parameters"),
    ],
)
def test_the_caps_bite(text: str, words: str) -> None:
    assert list(complaints(text)) == [words]
    assert not list(complaints("x = 1\n" * 400))
    assert not list(complaints("class C:\n    def f(self, a, b, *, c, d, e, f, g): ...\n"))


@pytest.mark.parametrize("folder", ["src", "scripts"])
def test_nothing_is_too_large(root: Path, folder: str) -> None:
    large = {
        str(path.relative_to(root)): found
        for path in sorted((root / folder).rglob("*.py"))
        if (found := list(complaints(path.read_text("utf-8"))))
    }
    assert not large
