"""How many independent numbers tables publish about each person: an early warning, before any attack is tried.

Where there are more independent statistics than unknowns, a file can be solved for. The 2010 Census published 7.7
billion linearly independent statistics about 309 million people, 25 a person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dualmandate.workload import AllRange, Factor, Identity, Prefix, Total, Workload
from dualmandate.workload.factor import dense

MOST_WORK = 2**27  # steps of computing a rank: a tenth of a second
MOST_ATTRIBUTES = 16  # whose sets are listed
MANY_A_PERSON = 1.0


@dataclass(frozen=True)
class StatisticsCount:
    """Numbers that tables publish, how many of them are independent, and how many a person."""

    published: int
    independent: int
    exact: bool  # False: at most so many; the rank of such large tables is not computed
    persons: float

    @property
    def per_person(self) -> float:
        return self.independent / self.persons if self.persons else math.inf

    @property
    def warns(self) -> bool:
        return self.per_person > MANY_A_PERSON

    def __str__(self) -> str:
        least = "" if self.exact else "at most "
        return (
            f"The tables publish {self.published:,} numbers, {least}{self.independent:,} of them linearly independent: "
            f"{self.per_person:,.3g} for each of {self.persons:,.0f} persons."
        )


def count_statistics(workload: Workload, persons: float) -> StatisticsCount:
    """The rank of the query matrix against the number of persons; it runs in every plan, and costs little there.

    Tables of products of identities and totals: the rank is the number of distinct marginal contrasts, Σ Π (n_a − 1)
    over the sets of attributes that some table holds together. Other tables: the rank of the matrix itself where it is
    small. Else a bound: a table of products has the product of its factors' ranks, and tables together at most the sum
    of theirs, and at most one a cell; exact where one table alone reaches that.
    """
    published = sum(table.query_count for table in workload.tables)
    sets = _marginal_sets(workload)
    if sets is not None:
        shape = workload.domain.shape
        rank = sum(math.prod(shape[axis] - 1 for axis in each) for each in sets)
        return StatisticsCount(published, rank, True, persons)
    if _work(published, workload.domain.size) <= MOST_WORK:
        possible = workload.dense()[:, workload.domain.possible_cells()]
        return StatisticsCount(published, int(np.linalg.matrix_rank(possible)), True, persons)
    ranks = [math.prod(_factor_rank(factor) for factor in table.factors) for table in workload.tables]
    most = min(sum(ranks), workload.domain.size)
    exact = most == max(ranks) and not workload.domain.structural_zeros
    return StatisticsCount(published, most, exact, persons)


def _work(rows: int, columns: int) -> int:
    """Steps that the rank of a matrix takes, up to a constant."""
    return min(rows, columns) ** 2 * max(rows, columns)


def _factor_rank(factor: Factor) -> int:
    """The rank of the table of one attribute, or the most that it can be."""
    most = min(factor.rows, factor.size)
    if isinstance(factor, Identity | Total | Prefix | AllRange) or _work(factor.rows, factor.size) > MOST_WORK:
        return most
    return int(np.linalg.matrix_rank(dense(factor)))


def _marginal_sets(workload: Workload) -> set[frozenset[int]] | None:
    """Every set of attributes below some table's, where all tables are marginals of an unrestricted domain."""
    if workload.domain.structural_zeros or len(workload.domain.shape) > MOST_ATTRIBUTES:
        return None
    held: set[frozenset[int]] = set()
    for table in workload.tables:
        if not all(isinstance(factor, Identity | Total) for factor in table.factors):
            return None
        pairs = enumerate(table.factors)
        held.add(frozenset(axis for axis, factor in pairs if isinstance(factor, Identity) and factor.size > 1))
    return {
        frozenset(each) for axes in held for size in range(len(axes) + 1) for each in combinations(sorted(axes), size)
    }
