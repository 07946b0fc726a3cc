"""How many independent numbers tables publish about each person: an early warning, before any attack is tried.

Where there are more independent statistics than unknowns, a file can be solved for. The 2010 Census published 7.7
billion linearly independent statistics about 309 million people, 25 a person.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualmandate.workload import Workload

LARGEST_RANK = 2**22  # entries of a matrix whose rank is computed
MANY_A_PERSON = 1.0


@dataclass(frozen=True)
class StatisticsCount:
    """Numbers that tables publish, how many of them are independent, and how many a person."""

    published: int
    independent: int
    exact: bool  # False: an upper bound, the rank of such large tables is not computed
    persons: float

    @property
    def per_person(self) -> float:
        """Independent statistics a person."""
        return self.independent / self.persons if self.persons else math.inf

    @property
    def warns(self) -> bool:
        """Whether there are more independent statistics than persons."""
        return self.per_person > MANY_A_PERSON

    def __str__(self) -> str:
        least = "" if self.exact else "at most "
        return (
            f"The tables publish {self.published:,} numbers, {least}{self.independent:,} of them linearly independent: "
            f"{self.per_person:,.3g} for each of {self.persons:,.0f} persons."
        )


def count_statistics(workload: Workload, persons: float) -> StatisticsCount:
    """The rank of the query matrix against the number of persons.

    Tables of products of identities and totals: the rank is the number of distinct marginal contrasts, Σ Π (n_a − 1)
    over the sets of attributes that some table holds together. Other tables: the rank of the matrix itself where it is
    small, else the smaller of its numbers of rows and columns.
    """
    published = sum(table.query_count for table in workload.tables)
    sets = _marginal_sets(workload)
    if sets is not None:
        shape = workload.domain.shape
        rank = sum(math.prod(shape[axis] - 1 for axis in each) for each in sets)
        return StatisticsCount(published, rank, True, persons)
    if published * workload.domain.size <= LARGEST_RANK:
        import numpy as np

        return StatisticsCount(published, int(np.linalg.matrix_rank(workload.dense())), True, persons)
    return StatisticsCount(published, min(published, workload.domain.size), False, persons)


def _marginal_sets(workload: Workload) -> set[frozenset[int]] | None:
    """Every set of attributes below some table's, where all tables are marginals of an unrestricted domain."""
    from itertools import combinations

    from dualmandate.workload import Identity, Total

    if workload.domain.structural_zeros or len(workload.domain.shape) > 16:
        return None
    found: set[frozenset[int]] = set()
    for table in workload.tables:
        if not all(isinstance(factor, Identity | Total) for factor in table.factors):
            return None
        own = [axis for axis, factor in enumerate(table.factors) if isinstance(factor, Identity) and factor.size > 1]
        for size in range(len(own) + 1):
            found.update(frozenset(each) for each in combinations(own, size))
    return found
