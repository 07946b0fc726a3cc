"""The page of promises: every test that it names is there, every promise has a count, and nobody wrote one by hand."""

from __future__ import annotations

import ast
import json
import os
import re
from pathlib import Path

import pytest

import promises

ROOT = Path(__file__).parents[2]
DATE = re.compile(r"20\d\d-[01]\d-[0-3]\d")


def functions(file: Path) -> set[str]:
    """Test functions of a file, those of classes under the name of their class."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    found = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for group in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        found |= {f"{group.name}::{node.name}" for node in group.body if isinstance(node, ast.FunctionDef)}
    return found


def counted() -> dict[str, dict[str, object]]:
    loaded: dict[str, dict[str, object]] = json.loads(promises.COUNTED.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("test", list(promises.tests()), ids=lambda test: test.node.rpartition("::")[2])
def test_every_test_is_there_and_was_run(test: promises.Test) -> None:
    file, _, name = test.node.partition("::")
    assert name in functions(ROOT / file)
    count = counted()[test.node]
    assert isinstance(count["tried"], int)
    assert count["tried"] > 0
    assert DATE.fullmatch(str(count["date"]))


def test_the_page_is_written_from_what_was_counted() -> None:
    page = promises.PAGE.read_text(encoding="utf-8")
    assert promises.written(page, counted()) == page
    assert set(counted()) == {test.node for test in promises.tests()}


def test_every_promise_is_on_the_page_once() -> None:
    page = promises.PAGE.read_text(encoding="utf-8")
    words = [promise.words for part in promises.PARTS for promise in part.promises]
    assert len(words) == len(set(words)) > 30
    assert all(page.count(f"| {each} |") == 1 for each in words)
    assert all(promise.tests for part in promises.PARTS for promise in part.promises)


def test_a_run_that_failed_is_not_written_and_one_that_was_partial_keeps_the_rest() -> None:
    first, second = list(promises.tests())[:2]
    before = {each.node: {"tried": 7, "date": "2026-01-02"} for each in promises.tests()}
    run = {
        first.node: {"tried": 2000, "cases": 8, "wrong": 0},
        "tests/other.py::test": {"tried": 1, "cases": 1, "wrong": 0},
    }
    after = promises.merged(before, run, "2026-11-16")
    assert after[first.node] == {"tried": 2000, "date": "2026-11-16"}
    assert after[second.node] == before[second.node]
    assert set(after) == set(before)
    with pytest.raises(SystemExit, match="did not pass"):
        promises.merged(before, {first.node: {"tried": 1999, "cases": 7, "wrong": 1}}, "2026-11-16")
    with pytest.raises(SystemExit, match="did not pass"):  # not run for want of a system part is no pass
        promises.merged(before, {first.node: {"tried": 0, "cases": 0, "wrong": 1}}, "2026-11-16")


def test_a_run_may_come_in_pieces_and_no_test_in_two(tmp_path: Path) -> None:
    first, second = list(promises.tests())[:2]
    count = {"tried": 5, "cases": 1, "wrong": 0}
    files = [tmp_path / "one.json", tmp_path / "two.json"]
    for file, test in zip(files, (first, second), strict=True):
        file.write_text(json.dumps({test.node: count, "tests/other.py::test": count}), encoding="utf-8")
        os.utime(file, (1_767_312_000,) * 2)
    assert list(promises.pieces(files)) == [
        ({test.node: count, "tests/other.py::test": count}, "2026-01-02") for test in (first, second)
    ]
    with pytest.raises(SystemExit, match="counted in two files"):
        list(promises.pieces([files[0], files[0]]))


def test_a_count_written_by_hand_is_seen() -> None:
    page = promises.PAGE.read_text(encoding="utf-8")
    forged = {node: {**count, "tried": 10**9} for node, count in counted().items()}
    assert promises.written(page, forged) != page
