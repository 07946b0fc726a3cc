"""A file of synthetic records: whole records of nobody, from which the whole tables of a release are counted.

They are what whole numbers were counted from anyway, written out one row a record. Only published numbers enter, so
that they cost no privacy loss. What no table shows of them is arbitrary: which levels of two attributes stand in one
record, say, where no table crosses the two.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.population import Domain
from dualmandate.population.arrays import Integers
from dualmandate.population.labels import Labels
from dualmandate.publication.writing import NO_FACTS, ROWS_AT_ONCE, PublishedTable, ReleaseSheet
from dualmandate.workload import Table, Total

RECORDS, FOLDER = "synthetic records", "records"  # what the file is called, and its folder
NONE_FITTED = "the tables in whole numbers are not counted from one file of records"


@dataclass(frozen=True, eq=False)
class SyntheticRecords(ReleaseSheet):
    """Records by their levels: a column an attribute, sorted, some rows at a time.

    `cells` are combinations of levels, row-major over the columns, and `counts` how many records have each; or `levels`
    has the level of each record (columns × records) where the combinations are too many to be numbered.
    """

    cells: Integers | None = field(default=None, repr=False)
    counts: Integers | None = field(default=None, repr=False)
    levels: NDArray[Any] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        assert (self.cells is None) != (self.levels is None)

    @property
    def rows(self) -> int:
        return int(self.counts.sum()) if self.counts is not None else int(self._levels.shape[1])

    @property
    def _levels(self) -> NDArray[Any]:
        assert self.levels is not None
        return self.levels

    def pieces(self) -> Iterator[tuple[slice, list[NDArray[np.int32]]]]:
        ends = None if self.counts is None else np.cumsum(self.counts)
        for start in range(0, self.rows, ROWS_AT_ONCE):
            part = slice(start, min(start + ROWS_AT_ONCE, self.rows))
            if ends is None:
                yield part, [each[part].astype(np.int32) for each in self._levels]
                continue
            assert self.cells is not None
            first, last = np.searchsorted(ends, [part.start, part.stop - 1], side="right")
            taken = np.diff(np.clip(np.concatenate([[0], ends])[first : last + 2], part.start, part.stop))
            cells = np.repeat(self.cells[first : last + 1], taken)
            yield part, [(cells // stride % size).astype(np.int32) for stride, size in zip(*self._steps, strict=True)]

    @property
    def _steps(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return self.strides, tuple(len(levels) for levels in self.labels)


def records_of_table(table: PublishedTable, facts: Mapping[str, str] = NO_FACTS) -> SyntheticRecords | None:
    """The records that a table counts, each in one of its rows; none where it has no whole numbers."""
    if table.values is None or not table.columns:
        return None
    cells = np.flatnonzero(table.values)
    return _records(table.columns, table.labels, table.level_labels, facts, cells=cells, counts=table.values[cells])


def records_of_histogram(domain: Domain, tables: Sequence[Table], counts: Integers) -> SyntheticRecords | None:
    """The records of a histogram, by the attributes that some table does not only add up."""
    axes = _shown(domain, tables)
    if not axes:
        return None
    kept = counts.reshape(domain.shape).sum(axis=tuple(set(range(len(domain.shape))) - set(axes))).reshape(-1)
    cells = np.flatnonzero(kept)
    return _of_domain(domain, axes, cells=cells, counts=kept[cells])


def records_of_levels(domain: Domain, tables: Sequence[Table], found: NDArray[Any]) -> SyntheticRecords | None:
    """Records by their levels (attributes × records), sorted: the order they were dealt in says nothing."""
    axes = _shown(domain, tables)
    if not axes:
        return None
    levels = found[list(axes)]
    if math.prod(domain.shape[axis] for axis in axes) < 2**62:
        cells = np.zeros(levels.shape[1], dtype=np.int64)
        for axis, own in zip(axes, levels, strict=True):
            cells = cells * domain.shape[axis] + own
        cells, counts = np.unique(cells, return_counts=True)
        return _of_domain(domain, axes, cells=cells, counts=counts)
    return _of_domain(domain, axes, levels=levels[:, np.lexsort(levels[::-1])])


def _shown(domain: Domain, tables: Sequence[Table]) -> tuple[int, ...]:
    """The attributes that some table does not only add up."""
    return tuple(
        axis for axis in range(len(domain.shape)) if any(not isinstance(table.factors[axis], Total) for table in tables)
    )


def _of_domain(domain: Domain, axes: Sequence[int], **records: NDArray[Any]) -> SyntheticRecords:
    attributes = [domain.attributes[axis] for axis in axes]
    names = tuple(attribute.name for attribute in attributes)
    labels = tuple(domain.level_labels(name) for name in names)
    return _records(names, tuple(tuple(attribute.levels) for attribute in attributes), labels, NO_FACTS, **records)


def _records(
    columns: tuple[str, ...],
    labels: tuple[tuple[str, ...], ...],
    words: tuple[Labels, ...],
    facts: Mapping[str, str],
    **records: NDArray[Any],
) -> SyntheticRecords:
    return SyntheticRecords(RECORDS, "", columns, labels, {}, facts, words, **records)
