"""Work to be measured in the tests of the benchmarks."""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.benchmarks.measured import check


def _fill() -> None:
    check(len(bytearray(b"x") * 50_000_000), 50_000_000)


CASES: dict[str, Callable[[], None]] = {"50 megabytes": _fill, "wrong": lambda: check(1, 2)}
