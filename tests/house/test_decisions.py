"""Decision records: numbered without gaps, indexed, each with its context, choice and price."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def records(root: Path) -> list[Path]:
    return sorted((root / "docs" / "decisions").glob("[0-9]*.md"))


def test_records_are_numbered_without_gaps(records: list[Path]) -> None:
    assert [path.name[:5] for path in records] == [f"{number:04}-" for number in range(1, len(records) + 1)]
    assert records


def test_records_are_indexed(root: Path, records: list[Path]) -> None:
    index = (root / "docs" / "decisions" / "README.md").read_text()
    assert not [path.name for path in records if f"({path.name})" not in index]
    titles = [path.read_text().splitlines()[0].removeprefix("# ") for path in records]
    assert not [title for title in titles if title.partition(". ")[2] not in index]


def test_records_say_what_a_choice_cost(records: list[Path]) -> None:
    for path in records:
        headings = [line for line in path.read_text().splitlines() if line.startswith("#")]
        assert headings[0].startswith(f"# {int(path.name[:4])}. "), path.name
        assert headings[1:] == ["## Context", "## Choice", "## Price"], path.name
