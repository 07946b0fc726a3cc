"""Work to be measured in the tests of the benchmarks."""

from __future__ import annotations

from dualmandate.benchmarks.harness import BenchmarkRow, check


def fill() -> None:
    """50 megabytes."""
    check(len(bytearray(b"x") * 50_000_000), 50_000_000)


def mistake() -> None:
    """A wrong answer."""
    check(1, 2)


def missed(rows: list[BenchmarkRow]) -> list[BenchmarkRow]:
    """Rows that miss their target, other than by time: how fast a machine is, `make bench` judges."""
    return [
        row
        for row in rows
        if row.met is False and not any(word in row.unit for word in ("second", "time of", "as long as"))
    ]
