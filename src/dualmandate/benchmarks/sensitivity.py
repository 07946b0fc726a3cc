"""Sensitivity of thousands of queries over ten million cells: seconds, and little memory.

In the first two cases most cells look alike to the queries; in the others no two of the ten million do. Each case
knows its answer by hand and fails where it is not found: a quick wrong number is no measurement.
"""

from __future__ import annotations

from collections.abc import Callable

from dualmandate.benchmarks.harness import BenchmarkRow, check, measured_rows
from dualmandate.population import Attribute, Domain, Neighbors, Protection
from dualmandate.workload import Tabulation, Workload, groups, kron, marginals, prefix, stack, total

LARGEST_SECONDS = 10.0
LARGEST_MEGABYTES = 500.0
CELLS = 10**7


def all_marginals() -> None:
    """Every marginal of up to three of seven attributes with ten levels each: 37,171 queries.

    A record is counted once in each of 1 + 7 + 21 + 35 = 64 tables.
    """
    workload = marginals((10,) * 7, (0, 1, 2, 3))
    check(workload.shape, (37_171, CELLS))
    _check_exact(workload, Neighbors.ADD_OR_REMOVE, 64)


def overlapping_filters() -> None:
    """Six tables under filters that overlap: 6,140 queries.

    An aged owner of the right race in the first places is counted in all tables but that of children: 5. Two such
    people who differ in everything share no number: 10.
    """
    sizes = {"place": 500, "age": 100, "race": 20, "sex": 2, "tenure": 5}
    domain = Domain(tuple(Attribute.categories(name, map(str, range(size))) for name, size in sizes.items()))
    tabulations = [
        Tabulation("place by sex", by=("place", "sex")),
        Tabulation("adults by race and sex", by=("race", "sex"), where=(("age", _levels(18, 100)),)),
        Tabulation("aged by place", by=("place",), where=(("age", _levels(65, 100)),)),
        Tabulation("children by place and tenure", by=("place", "tenure"), where=(("age", _levels(0, 18)),)),
        Tabulation("age by race", by=("age", "race"), where=(("place", _levels(0, 250)),)),
        Tabulation("owners by age", by=("age",), where=(("tenure", _levels(0, 2)), ("race", _levels(5, 15)))),
    ]
    workload = Workload.from_tabulations(domain, tabulations)
    check(workload.shape, (6_140, CELLS))
    _check_exact(workload, Neighbors.ADD_OR_REMOVE, 5)
    _check_exact(workload, Neighbors.REPLACE_ONE, 10)


def opposed_ranges() -> Workload:
    """Ranges that grow in opposite directions, so that no two of the 10⁷ cells have the same column: 210,000 queries.

    The cell (i, j, k) is counted (100 − i)(j + 1) + (i + 1)(1000 − k) + (100 − j)(k + 1) times. That is linear in each
    of i, j and k, so it is largest at a corner: 1 + 100·1000 + 100 = 100,101 at (99, 0, 0).
    """
    workload = stack(
        kron(prefix(100), _suffix(100), total(1000)),
        kron(_suffix(100), total(100), prefix(1000)),
        kron(total(100), prefix(100), _suffix(1000)),
    )
    check(workload.shape, (210_000, CELLS))
    return workload


def opposed_ranges_adding_one() -> None:
    """The largest of ten million columns."""
    _check_exact(opposed_ranges(), Neighbors.ADD_OR_REMOVE, 100_101)


def opposed_ranges_replacing_one() -> None:
    """The farthest pair among ten million columns.

    In each table one query covers every cell, so two columns share at least 3 entries and are at most
    2·100,101 − 2·3 = 200,196 apart; (99, 99, 0) and (0, 0, 999) are.
    """
    _check_exact(opposed_ranges(), Neighbors.REPLACE_ONE, 200_196)


CASES: dict[str, Callable[[], None]] = {
    "37,171 queries, all marginals of up to 3 of 7 attributes": all_marginals,
    "6,140 queries under overlapping filters": overlapping_filters,
    "210,000 queries, opposed ranges, adding one record": opposed_ranges_adding_one,
    "210,000 queries, opposed ranges, replacing one record": opposed_ranges_replacing_one,
}


def rows(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """Seconds and peak memory of each case."""
    megabytes = dict.fromkeys(CASES, LARGEST_MEGABYTES)
    return measured_rows(CASES, progress, seconds=LARGEST_SECONDS, megabytes=megabytes)


def _levels(first: int, last: int) -> tuple[str, ...]:
    return tuple(map(str, range(first, last)))


def _suffix(size: int) -> Workload:
    return groups(size, [list(range(first, size)) for first in range(size)])


def _check_exact(workload: Workload, neighbors: Neighbors, expected: int) -> None:
    found = workload.sensitivity(Protection(neighbors=neighbors))
    check((found.power, found.exact), (expected, True))
