"""The table on the page *What we promise and how it is tested*: every promise of promises.toml with its tests.

`promises.py tests` lists the tests, for `make bench`, which runs them with their full numbers. `promises.py write
FILE…` takes what that run counted (`DUALMANDATE_COUNTS=FILE`) into docs/explanation/promises.json, from one file or
from several with other tests each, dates it by its file, and writes the table anew. What was not run keeps the count
and the date of its last run; what failed is not written.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "explanation" / "promises.md"
COUNTED = PAGE.with_suffix(".json")
BEGIN, END = "<!-- promises: written by `make bench`, from scripts/promises.toml -->", "<!-- end of promises -->"
HEAD = "| what we promise | the test that would fail | tried | last run |\n| --- | --- | --- | --- |"


@dataclass(frozen=True)
class Test:
    """A test function, and what its count counts."""

    node: str  # "tests/ledger/test_writers.py::test_eight_writers_on_sqlite"
    of: str = "cases"

    @property
    def link(self) -> str:
        """The test's name, linked to its file."""
        file, _, name = self.node.partition("::")
        return f"[`{name.rpartition('::')[2]}`](../../{file})"


@dataclass(frozen=True)
class Promise:
    """One sentence that somebody relies on."""

    words: str
    tests: tuple[Test, ...]


@dataclass(frozen=True)
class Part:
    """Promises about one thing."""

    heading: str
    promises: tuple[Promise, ...]


def read_parts(text: str) -> tuple[Part, ...]:
    """The promises as scripts/promises.toml states them."""
    return tuple(
        Part(
            part["heading"],
            tuple(Promise(each["words"], tuple(Test(**test) for test in each["tests"])) for each in part["promise"]),
        )
        for part in tomllib.loads(text)["part"]
    )


PARTS = read_parts(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


def tests() -> Iterator[Test]:
    """Every test, once."""
    nodes = {test.node: test for part in PARTS for promise in part.promises for test in promise.tests}
    yield from nodes.values()


def table(counted: Mapping[str, Mapping[str, Any]]) -> str:
    """The table of the page: a row for each test, under its promise."""
    lines = []
    for part in PARTS:
        lines += [f"### {part.heading}", "", HEAD]
        for promise in part.promises:
            words = promise.words
            for test in promise.tests:
                count = counted[test.node]
                lines.append(f"| {words} | {test.link} | {count['tried']:,} {test.of} | {count['date']} |")
                words = ""
        lines.append("")
    return "\n".join(lines)


def written(page: str, counted: Mapping[str, Mapping[str, Any]]) -> str:
    """The page with the table of these counts."""
    before, begun, rest = page.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not (begun and ended):
        raise SystemExit(f"promises: {PAGE.name} has lost the lines that its table stands between")
    return f"{before}{BEGIN}\n\n{table(counted)}\n{END}{after}"


def merged(
    counted: Mapping[str, Mapping[str, Any]], run: Mapping[str, Mapping[str, int]], date: str
) -> dict[str, dict[str, Any]]:
    """The counts with those of a run, where everything passed; only of tests that are promised."""
    found = {test.node: dict(counted[test.node]) for test in tests() if test.node in counted}
    for test in tests():
        if test.node in run:
            if run[test.node]["wrong"] or not run[test.node]["cases"]:
                raise SystemExit(f"promises: {test.node} did not pass: a promise that is broken is not written down")
            found[test.node] = {"tried": run[test.node]["tried"], "date": date}
    return found


def pieces(files: Iterable[Path]) -> Iterator[tuple[dict[str, dict[str, int]], str]]:
    """What each piece of a run counted, and its day; a test that stands in two pieces has no one count."""
    known: set[str] = set()
    for file in files:
        run = json.loads(file.read_text(encoding="utf-8"))
        promised = {test.node for test in tests()} & set(run)
        if twice := known & promised:
            raise SystemExit(f"promises: counted in two files: {', '.join(sorted(twice))}")
        known |= promised
        yield run, f"{datetime.fromtimestamp(file.stat().st_mtime, UTC):%Y-%m-%d}"


def main(words: list[str]) -> None:
    match words:
        case ["tests"]:
            print("\n".join(test.node for test in tests()))
        case ["write", file, *others]:
            counted = json.loads(COUNTED.read_text(encoding="utf-8")) if COUNTED.exists() else {}
            for run, date in pieces([Path(file), *map(Path, others)]):
                counted = merged(counted, run, date)
            COUNTED.write_text(json.dumps(counted, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            missing = [test.node for test in tests() if test.node not in counted]
            if missing:
                raise SystemExit("promises: never run, so the page is not written:\n" + "\n".join(missing))
            PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), counted), encoding="utf-8")
        case _:
            raise SystemExit("usage: promises.py tests | promises.py write FILE…")


if __name__ == "__main__":
    main(sys.argv[1:])
