"""What one protected unit can change of what is measured: how many rows, of which noise, by how much.

Rows have noise of their own, so that a change is told from none by the sizes of its shifts alone, whichever rows they
are in. A larger shift is easier to tell: the laws are log-concave, so that the best test of X against X + s is whether
the number is at most some t, and P(X ≤ t) − γ·P(X + s ≤ t) grows with s, for every t and γ. The same holds for all rows
together, because a pair that is easier to tell stays so beside others [ZDW22]. So a change whose shifts are at most
those of another, noise by noise, need not be looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import NDArray

from dualmandate.population import Neighbors, Protection
from dualmandate.publication.forms import DirectForm, Form
from dualmandate.publication.measurements import Noise
from dualmandate.workload import Table, Tabulation, Workload
from dualmandate.workload.factor import Factor
from dualmandate.workload.levels import column_classes, row_ids

MOST_NUMBERS = 2**24  # shifts that are written out: rows times changes
MOST_CHANGES = 2**12  # different ones that are compared with each other

Change = frozenset[tuple[tuple[Noise, int], int]]  # how many rows of a noise are shifted by how much
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Measured:
    """A group of tables as it was measured: which rows, and the exact noise of each kind of row."""

    form: Form
    noises: tuple[Noise, ...]


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
    workload = groups[0].form.workload
    rows = sum(group.form.rows for group in groups)
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


def cell_change(tables: Sequence[Table], shape: tuple[int, ...], cell: int) -> tuple[Integers, Integers]:
    """Which numbers of tables, one table after the other, a record in a cell changes, and by how much before weights.

    From the levels of the cell: of the rest of the domain, however large, nothing is looked at.
    """
    levels = [np.array([level]) for level in np.unravel_index(cell, shape)]
    rows, sizes, start = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
    for table in tables:
        at, by = np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64)
        for factor, level in zip(table.factors, levels, strict=True):
            column = factor.columns(level).reshape(-1)
            there = np.flatnonzero(column)
            at = (at[:, None] * factor.rows + there).reshape(-1)
            by = (by[:, None] * column[there]).reshape(-1)
        rows.append(start + at)
        sizes.append(by)
        start += table.query_count
    return np.concatenate(rows), np.concatenate(sizes)


def record_change(form: Form, cell: int) -> tuple[Integers, Integers]:
    """Which rows of a form one record in a cell changes, in their order, and by how much."""
    shape = form.workload.domain.shape
    if isinstance(form, DirectForm):
        return cell_change(form.counted.tables, shape, cell)
    histogram = np.zeros(math.prod(shape), dtype=np.int64)
    histogram[cell] = 1
    column = form.count(histogram.reshape(shape))
    rows = np.flatnonzero(column)
    return rows, column[rows]


def _public(workload: Workload, protection: Protection) -> Workload | None:
    exact = [Tabulation(each.name, each.by, each.where) for each in protection.invariants]
    return Workload.from_tabulations(workload.domain, exact) if exact else None


def _column(groups: Sequence[Measured], public: Workload | None, shape: tuple[int, ...], *, cell: int) -> Integers:
    """What one record in a cell adds to every row, and then to every public total."""
    histogram = np.zeros(math.prod(shape), dtype=np.int64)
    histogram[cell] = 1
    parts = [group.form.count(histogram.reshape(shape)) for group in groups]
    exact = [] if public is None else [np.asarray(public.answers(histogram.reshape(shape)))]
    return np.concatenate([*parts, *exact]).astype(np.int64)


def _counted(shifts: Integers, groups: Sequence[Measured]) -> set[Change]:
    """Changes that differ in more than which rows they shift; sizes of shifts of shape (changes, rows)."""
    noises = list(dict.fromkeys(noise for group in groups for noise in group.noises))
    places = [np.array([noises.index(noise) for noise in group.noises])[group.form.kinds()] for group in groups]
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
    single = _cells(moved, len(groups[0].form.workload.domain.shape))
    if single is None or not replacing:
        return single
    if len(single) ** 2 > 2 * MOST_CHANGES:
        return None
    return {_both(gone, come) for gone, come in combinations_with_replacement(sorted(single, key=str), 2)}


def _tables(groups: Sequence[Measured]) -> list[tuple[Table, Noise]] | None:
    """The tables that are measured as they are, each with the noise of its rows; None where something else is."""
    found: list[tuple[Table, Noise]] = []
    for group in groups:
        if not isinstance(group.form, DirectForm):
            return None
        pairs = zip(group.form.counted.tables, group.form.table_kinds, strict=True)
        found += [(table, group.noises[kind]) for table, kind in pairs]
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


def _both(gone: Change, come: Change) -> Change:
    return frozenset((Counter(dict(gone)) + Counter(dict(come))).items())


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
