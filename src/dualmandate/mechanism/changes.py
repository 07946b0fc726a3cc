"""What one protected unit can change of what is measured: how many rows, of which noise, by how much.

Rows have noise of their own, so that a change is told from none by the sizes of its shifts alone, whichever rows they
are in. A larger shift is easier to tell: the laws are log-concave, so that the best test of X against X + s is whether
the number is at most some t, and P(X ≤ t) − γ·P(X + s ≤ t) grows with s, for every t and γ. The same holds for all rows
together, because a pair that is easier to tell stays so beside others [ZDW22]. So a change whose shifts are at most
those of another, noise by noise, need not be looked at. From the changes that are left follow what is lost at most and
the distribution of the loss.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.mechanism.mechanism import Noise, loss_power
from dualmandate.population import Neighbors, Protection
from dualmandate.population.arrays import Integers
from dualmandate.workload import Table, Tabulation, Workload
from dualmandate.workload.factor import Factor
from dualmandate.workload.levels import column_classes, row_ids

if TYPE_CHECKING:
    from dualmandate.mechanism.rows import Rows

MOST_NUMBERS = 2**24  # At most so many shifts are written out: rows times changes.
MOST_CHANGES = 2**12  # At most so many different changes are compared with each other.

Change = frozenset[tuple[tuple[Noise, int], int]]  # how many rows of a noise are shifted by how much
Measured = tuple["Rows", tuple[Noise, ...]]  # rows, and the exact noise of each of their kinds


def loss_of(change: Change) -> Fraction:
    """What a change loses: Σ |shift|·ε, or Σ shift²·ρ, over its rows, exactly."""
    return sum(
        (count * size ** loss_power(noise.family.privacy_measure) * noise.unit_loss for (noise, size), count in change),
        Fraction(0),
    )


def largest_changes(groups: Sequence[Measured], protection: Protection) -> tuple[Change, ...] | None:
    """Changes of which one is at least as easy to tell as any that a unit can make; None where they are too many.

    Small domains are gone through cell by cell. Of tables that are measured as they are, the shifts of a cell follow
    from those of its levels; there a replaced record is one that goes and another that comes, in rows of its own.
    """
    found = _written_out(groups, protection)
    if found is None:
        found = _by_levels(groups, protection)
    return None if found is None or len(found) > MOST_CHANGES else _undominated(found)


def _written_out(groups: Sequence[Measured], protection: Protection) -> set[Change] | None:
    """Every change that a unit can make, exactly."""
    workload = groups[0][0].workload
    rows = sum(each.size for each, _ in groups)
    if workload.domain.size * rows > MOST_NUMBERS:
        return None
    public = _public(workload, protection)
    cells = np.flatnonzero(workload.domain.possible_cells())
    columns = np.unique([_column(groups, public, workload.domain.shape, cell=int(cell)) for cell in cells], axis=0)
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        single = np.concatenate([columns, np.zeros_like(columns[:1])])
    elif columns.shape[0] * columns.size > MOST_NUMBERS:
        return None
    else:
        single = np.unique((columns[:, None, :] - columns[None, :, :]).reshape(-1, columns.shape[1]), axis=0)
    records = protection.most_records_per_unit * protection.records_together
    if math.comb(len(single) + records - 1, records) * single.shape[1] > MOST_NUMBERS:
        return None
    chosen = np.array(list(combinations_with_replacement(range(len(single)), records)))
    shifts = np.abs(sum(single[chosen[:, place]] for place in range(records)))
    unseen = ~shifts[:, rows:].any(axis=1)  # between neighbors, public totals stay what they are
    return _counted(shifts[unseen][:, :rows], groups)


def _public(workload: Workload, protection: Protection) -> Workload | None:
    exact = [Tabulation(each.name, each.by, each.where) for each in protection.invariants]
    return Workload.from_tabulations(workload.domain, exact) if exact else None


def _column(groups: Sequence[Measured], public: Workload | None, shape: tuple[int, ...], *, cell: int) -> Integers:
    """What one record in a cell adds to every row, and then to every public total."""
    histogram = np.zeros(math.prod(shape), dtype=np.int64)
    histogram[cell] = 1
    parts = [rows.count(histogram.reshape(shape)) for rows, _ in groups]
    exact = [] if public is None else [np.asarray(public.answers(histogram.reshape(shape)))]
    return np.concatenate([*parts, *exact]).astype(np.int64)


def _counted(shifts: Integers, groups: Sequence[Measured]) -> set[Change]:
    """Changes that differ in more than which rows they shift; sizes of shifts of shape (changes, rows)."""
    noises = list(dict.fromkeys(noise for _, each in groups for noise in each))
    places = [np.array([noises.index(noise) for noise in each])[rows.kinds()] for rows, each in groups]
    of_row = np.concatenate(places)
    ordered = [np.sort(shifts[:, of_row == place], axis=1) for place in range(len(noises))]
    found, names = set[Change](), np.sort(of_row)
    for change in np.unique(np.concatenate(ordered, axis=1), axis=0):
        used = np.flatnonzero(change)
        pairs = ((noises[place], size) for place, size in zip(names[used], change[used].tolist(), strict=True))
        found.add(frozenset(Counter(pairs).items()))
    return found


def _by_levels(groups: Sequence[Measured], protection: Protection) -> set[Change] | None:
    """The changes of one record, class of cells by class of cells, or larger ones."""
    if protection.most_records_per_unit * protection.records_together > 1:
        return None
    replacing = protection.neighbors is Neighbors.REPLACE_ONE
    tables = _tables(groups)
    if tables is None or not all(_is_plain(table, replacing=replacing) for table, _ in tables):
        return None
    moved = [(table, noise) for table, noise in tables if not (replacing and _is_fixed(table))]
    single = _cells(moved, len(groups[0][0].workload.domain.shape))
    if single is None or not replacing:
        return single
    if len(single) ** 2 > 2 * MOST_CHANGES:
        return None
    pairs = combinations_with_replacement(sorted(single, key=str), 2)
    return {frozenset((Counter(dict(gone)) + Counter(dict(come))).items()) for gone, come in pairs}


def _tables(groups: Sequence[Measured]) -> list[tuple[Table, Noise]] | None:
    """The tables that are measured as they are, each with the noise of its rows; None where something else is."""
    found: list[tuple[Table, Noise]] = []
    for rows, noises in groups:
        if rows.counted is None:
            return None
        kinds, start = rows.kinds(), 0
        for table in rows.counted:
            found.append((table, noises[int(kinds[start])]))
            start += table.query_count
    return found


def _is_plain(table: Table, *, replacing: bool) -> bool:
    """Whether each column holds one number besides zeros: at least 0 where two are compared, or they could add up."""
    scales = [factor.scales for factor in table.factors]
    return all(each is not None and (not replacing or each.min() >= 0) for each in scales)


def _is_fixed(table: Table) -> bool:
    """Whether all cells have the same column, so that a replaced record changes nothing."""
    return all(not column_classes([factor], factor.size).any() for factor in table.factors)


def _cells(tables: Sequence[tuple[Table, Noise]], axes: int) -> set[Change] | None:
    """The shifts of every class of cells that all tables treat alike."""
    classes = [_classes([table.factors[axis] for table, _ in tables]) for axis in range(axes)]
    if math.prod(len(each) for each in classes) > MOST_CHANGES:
        return None
    found = set[Change]()
    for levels in product(*classes):
        sizes: Counter[tuple[Noise, int]] = Counter()
        for number, (_, noise) in enumerate(tables):
            size = math.prod(abs(level[number][0]) for level in levels)
            sizes[noise, size] += math.prod(level[number][1] for level in levels) if size else 0
        found.add(frozenset((+sizes).items()))
    return found


def _classes(factors: Sequence[Factor]) -> list[list[tuple[int, int]]]:
    """For each class of levels, the number that its column holds and in how many rows, factor by factor."""
    pairs = [(factor.scales, factor.counts) for factor in factors]
    columns = [np.asarray(array) for pair in pairs for array in pair if array is not None]
    _, kept = np.unique(row_ids(columns, factors[0].size), return_index=True) if factors else (None, np.zeros(1, int))
    return [
        [(int(scales[level]), int(counts[level])) for scales, counts in pairs if scales is not None] for level in kept
    ]


def _undominated(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Those that no other one covers: of each noise, at least as many rows are shifted as far, however far that is."""
    listed = sorted(changes, key=str)
    marks = sorted({shift for change in listed for shift, _ in change}, key=str)
    reached = np.array(
        [
            [sum(count for (other, size), count in change if other == noise and size >= mark) for noise, mark in marks]
            for change in listed
        ]
    ).reshape(len(listed), len(marks))
    kept: list[int] = []
    for place in np.argsort(-reached.sum(axis=1), kind="stable"):
        if not any((reached[place] <= reached[other]).all() for other in kept):
            kept.append(int(place))
    return tuple(listed[place] for place in kept if listed[place])
