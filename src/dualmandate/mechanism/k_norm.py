"""The K-norm mechanism: noise shaped like what one protected unit can do to all answers together.

Let K be the set of changes that one unit can make to the answers: the hull of ± the columns of Q (add or remove one
record), or of the differences of two columns (replace one). The mechanism releases Qx + a with density
∝ exp(−ε·‖a‖_K), ‖a‖_K the factor by which K must be stretched to reach a. A neighbor moves the answers by at most 1 in
this norm, so densities differ by at most e^ε. Noise lies in the space that the changes span: answers stay consistent.

Its error comes near the least possible under pure ε where K is about as wide in all directions, as it is for few tables
that overlap much; where K is long and thin (prefix sums of many cells), a good strategy with Laplace noise does better.
Where the columns are independent, K is a cross-polytope and the noise is exactly Laplace noise on every cell.
Source: [HT10].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.k_norm_production import KNormProduction
from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.polytope import fan_of, most_simplices
from dualmandate.population import Currency, Domain, Neighbors, Protection
from dualmandate.population.invariants import group_labels, steps
from dualmandate.workload import Table, Workload
from dualmandate.workload.factor import dense
from dualmandate.workload.levels import row_ids

MOST_POINTS = 2**12  # of which the polytope of a workload may be the hull
MOST_SIMPLICES = 2**16  # into which it may have to be cut
MOST_DIMENSIONS = 16  # beyond, even independent columns give more simplices than that
LARGEST_CHANGES = 2**22  # entries of all columns, or of all differences of two columns
_PRIME = 2**31 - 1
_SMALLER = (
    "ask for fewer or coarser tables together, or use a strategy with laplace noise (optimize_strategy), which serves "
    "large workloads"
)


@dataclass(frozen=True)
class KNorm:
    """Noise in the norm of the changes that one unit can make, on all answers of a small workload together.

    For frontiers only: its draws are real numbers, so nothing can be published with it. Weights of tables scale their
    errors and nothing else, because the noise follows the workload.
    """

    @property
    def name(self) -> str:
        """The technology in words."""
        return "K-norm"

    @property
    def currency(self) -> Currency:
        """Pure ε."""
        return Currency.EPSILON

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> KNormProduction:
        """What it produces for a workload; refused where its polytope would have too many facets."""
        changes = _changes(workload, protection)
        queries = _independent_queries(changes)
        _affordable(len(changes), len(queries))
        return KNormProduction(workload, protection, changes, fan_of(changes[:, queries]), queries)


def _changes(workload: Workload, protection: Protection) -> NDArray[np.float64]:
    """What one record can do to the answers of tables of weight 1, each change once and up to its sign.

    Whole numbers, shape (changes, query_count); impossible cells are left out, and so are changes of exact totals.
    """
    _written_out(workload.domain.size, workload.query_count)
    possible = workload.domain.possible_cells()
    columns = np.concatenate([_matrix(table) for table in workload.tables])[:, possible].T
    if protection.neighbors is Neighbors.REPLACE_ONE:
        columns = _differences(columns, _groups(workload.domain, protection)[possible])
    columns = columns[columns.any(axis=1)]
    if not len(columns):
        raise InvalidMechanism(
            f"K-norm noise for answers that no protected {protection.unit} can change",
            why="exact totals, or the public number of records, decide what is asked: noise protects nothing",
            instead="publish it as the exact total that it is, or drop the invariant",
        )
    first = columns[np.arange(len(columns)), np.argmax(columns != 0, axis=1)]
    return np.unique(columns * np.sign(first)[:, None], axis=0)


def _matrix(table: Table) -> NDArray[np.float64]:
    """The queries of a table before its weight, shape (query_count, cells)."""
    matrix: NDArray[np.float64] = np.ones((1, 1))
    for factor in table.factors:
        matrix = np.asarray(np.kron(matrix, dense(factor)), dtype=np.float64)
    return matrix


def _differences(columns: NDArray[np.float64], groups: NDArray[np.int64]) -> NDArray[np.float64]:
    """All differences of two different columns of one group; one of each pair and its opposite."""
    distinct = [np.unique(columns[groups == group], axis=0) for group in np.unique(groups)]
    _written_out(sum(math.comb(len(each), 2) for each in distinct), columns.shape[1])
    places = [np.triu_indices(len(each), 1) for each in distinct]
    return np.concatenate([each[one] - each[other] for each, (one, other) in zip(distinct, places, strict=True)])


def _groups(domain: Domain, protection: Protection) -> NDArray[np.int64]:
    """For each cell the groups of exact totals that a record in it cannot leave; shape (domain.size,)."""
    groups = []
    for invariant in steps(domain, protection).kept:
        labels = group_labels(domain, invariant)
        by_axis = [labels.get(axis, np.zeros(size, dtype=np.int64)) for axis, size in enumerate(domain.shape)]
        of_cells = [grid.reshape(-1) for grid in np.meshgrid(*by_axis, indexing="ij")]
        inside = np.all([each >= 0 for each in of_cells], axis=0)
        groups.append(np.where(inside, row_ids(of_cells, domain.size), -1))
    return row_ids(groups, domain.size)


def _independent_queries(changes: NDArray[np.float64]) -> NDArray[np.intp]:
    """The first queries from whose changes those of all others follow, as many as the rank; shape (rank,).

    By elimination in whole numbers modulo a prime, which no rounding can mislead; ended one above `MOST_DIMENSIONS`.
    """
    left = np.asarray(np.mod(changes, _PRIME), dtype=np.int64)
    found: list[int] = []
    while left.any() and len(found) <= MOST_DIMENSIONS:
        query = int(np.argmax(left.any(axis=0)))
        row = int(np.argmax(left[:, query] != 0))
        pivot = left[row] * pow(int(left[row, query]), -1, _PRIME) % _PRIME
        left = (left - left[:, [query]] * pivot) % _PRIME
        found.append(query)
    return np.array(found, dtype=np.intp)


def _written_out(changes: int, query_count: int) -> None:
    """Refuse more changes than are written out."""
    if changes * query_count > LARGEST_CHANGES:
        raise TooLarge(
            f"{_rounded(changes)} ways to change {_rounded(query_count)} answers",
            why=f"their {_rounded(changes * query_count)} numbers are written out, and at most {LARGEST_CHANGES:,} are",
            instead=_SMALLER,
        )


def _affordable(changes: int, rank: int) -> None:
    """Refuse a polytope that might have too many facets."""
    estimate = most_simplices(changes, rank)
    if 2 * changes > MOST_POINTS or estimate > MOST_SIMPLICES:
        more = " or more" if rank > MOST_DIMENSIONS else ""
        raise TooLarge(
            f"a polytope of {2 * changes:,} points in {rank}{more} dimensions was asked for",
            why=f"it may have {_rounded(estimate)}{more} simplices; at most {MOST_SIMPLICES:,} simplices of "
            f"{MOST_POINTS:,} points are handled",
            instead=_SMALLER,
        )


def _rounded(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"about 10^{math.log10(number):.0f}"
