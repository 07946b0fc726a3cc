"""What queries span, in whole numbers: independent rows over the orbits of a sector, beside what is public.

A product of factors spans the product of what they span, so that each factor is reduced first: to single classes of
levels where it tells all of them apart, else to some of its own rows, averaged over classes.
"""

from __future__ import annotations

import math

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.axes import Axis, Floats, Indices
from dualmandate.mechanism.strategy.parts import Part, Sector
from dualmandate.workload.factor import LARGEST_DENSE, LARGEST_INTEGER, Factor, Integers, Numbers, affordable
from dualmandate.workload.levels import column_classes, row_ids

_DEPENDENT = 1e-9  # length, relative to the row, of what is left of a row beside others that it depends on

_SHORTEST = 0.9  # length of the last of some rows, the first being 1


def whole_basis(part: Part, sector: Sector, scales: Floats, public: Floats) -> Integers:
    """Whole-number rows over the measured orbits of a sector that span all its queries, and no row too many.

    `scales` turns a row into orthonormal coordinates, shape (orbits,). What the orthonormal rows `public` span need not
    be spanned again.
    """
    places, inside = part.averaged(sector), part.seen(sector)[1]
    blocks: dict[tuple[object, ...], Integers] = {}
    for key in part.sectors[sector]:
        short = tuple(key[place] for place in places)
        if short not in blocks:
            factors = [_factor_basis(part, place, part.tables[key][place]) for place in places]
            blocks[short] = _product(factors)[:, inside]
    affordable(sum(map(len, blocks.values())), len(inside), "a list of queries")
    rows = _reduced(np.concatenate(list(blocks.values())))
    scaled = rows * scales
    private = scaled - (scaled @ public.T) @ public
    return rows[_independent(private, np.linalg.norm(scaled, axis=1))]


def public_labels(part: Part) -> Integers | None:
    """A label for each merged cell: a record that moves between equal labels changes nothing that is public.

    None where nothing is public, or where cells are too many to have one each.
    """
    if not part.public or part.merged_size > LARGEST_DENSE:
        return None
    columns = []
    for factors in part.public:
        found, empty = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.bool_)
        for factor, level in zip(factors, part.levels, strict=True):
            classes = column_classes([factor], factor.size)[level.kept]
            found = np.add.outer(found * (int(classes.max()) + 1), classes)
            empty = np.logical_or.outer(empty, factor.counts[level.kept] == 0)
        columns.append(np.where(empty, -1, found).reshape(-1))
    return row_ids(columns, part.merged_size)


def _factor_basis(part: Part, place: int, factor: Factor) -> Integers:
    """Whole-number rows over the classes of one attribute that span the rows of a factor."""
    level = part.levels[place]
    if int(np.linalg.matrix_rank(part.averaged_gram(place, factor), hermitian=True)) == level.orbits:
        return np.eye(level.orbits, dtype=np.int64)
    rows = _reduced(_class_means(level, factor))
    scaled = np.asarray(rows * np.sqrt(level.members), dtype=np.float64)
    return rows[_independent(scaled, np.linalg.norm(scaled, axis=1))]


def _class_means(level: Axis, factor: Factor) -> Numbers:
    """The rows of a factor averaged over classes, all times the least common multiple of their sizes."""
    affordable(factor.rows, level.merged, "a dense factor")
    sums = np.zeros((level.orbits, factor.rows), dtype=np.int64)
    np.add.at(sums, level.classes, factor.columns(level.kept).T)
    multiple = math.lcm(*level.members.tolist())
    kind = np.int64 if multiple * int(np.abs(sums).max()) < LARGEST_INTEGER else np.object_
    shares: Numbers = np.array([multiple // size for size in level.members.tolist()], dtype=kind)
    wide: Numbers = sums.T.astype(kind)
    return wide * shares


def _product(matrices: list[Integers]) -> Integers:
    if math.prod(int(np.abs(matrix).max(initial=0)) for matrix in matrices) >= LARGEST_INTEGER:
        raise TooLarge(
            "whole-number rows for queries whose classes of levels have sizes without a common multiple below 2^62",
            why="averages over classes are measured as whole numbers",
            instead="group levels, so that fewer sizes differ",
        )
    found: Integers = np.ones((1, 1), dtype=np.int64)
    for matrix in matrices:
        affordable(len(found) * len(matrix), found.shape[1] * matrix.shape[1], "a list of queries")
        found = np.kron(found, matrix)
    return found


def _reduced(rows: Numbers) -> Integers:
    """Rows divided by their common divisors, each once, without empty ones."""
    divisors = np.gcd.reduce(rows, axis=1)
    kept = divisors != 0
    return np.unique((rows[kept] // divisors[kept, None]).astype(np.int64), axis=0)


def _independent(rows: Floats, sizes: Floats) -> Indices:
    """Numbers of rows that span all of them, each in turn as far from those before as any; `sizes` are their scales.

    Of rows that are equally far the first is taken: later ones are made a little shorter, for no two machines round
    alike.
    """
    from scipy.linalg import qr

    if len(rows) == 0:
        return np.zeros(0, dtype=np.intp)
    shorter = np.linspace(1.0, _SHORTEST, len(rows)) / sizes
    triangle, order = qr((rows * shorter[:, None]).T, mode="r", pivoting=True, check_finite=False)
    return np.sort(order[: np.count_nonzero(np.abs(np.diagonal(triangle)) > _DEPENDENT)])
