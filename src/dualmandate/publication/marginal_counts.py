"""Counts of marginals: records by the levels of a few attributes at a time, where a domain is too large to write out.

A measurement of marginals, or of tables, needs no cell of the whole domain. So records are read once, some at a time,
and each is added to every marginal that is needed; a marginal of fewer attributes is a sum of a larger one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.population import Domain, Histogram
from dualmandate.population.arrays import Integers
from dualmandate.workload import Table, Total

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

AT_A_TIME = 2**17  # records that are held at once
LARGEST_WORD = 2**62  # Runs of attributes with fewer cells than this are numbered by one whole number.
Axes: TypeAlias = tuple[int, ...]  # attributes of the domain, increasing


class Sets:
    """Sets of attributes, to be asked for the one with the fewest cells that holds another."""

    def __init__(self, domain: Domain) -> None:
        self.shape = domain.shape
        self._holding: dict[int, list[Axes]] = {}
        self.kept: list[Axes] = []

    def holding(self, axes: Axes) -> Axes | None:
        """The set with the fewest cells among those that hold these attributes."""
        rarest = min((self._holding.get(axis, []) for axis in axes), key=len, default=self.kept)
        wanted = set(axes)
        found = [each for each in rarest if wanted.issubset(each)]
        return min(found, key=lambda each: (self.cells(each), each), default=None)

    def add(self, axes: Axes) -> None:
        self.kept.append(axes)
        for axis in axes:
            self._holding.setdefault(axis, []).append(axes)

    def cells(self, axes: Axes) -> int:
        return math.prod(self.shape[axis] for axis in axes)


def largest_sets(domain: Domain, needed: Iterable[Axes]) -> tuple[Axes, ...]:
    """Those of some sets of attributes that no other one holds, in one order: all others are sums of these."""
    found = Sets(domain)
    for axes in sorted(set(needed), key=lambda each: (-len(each), each)):
        if found.holding(axes) is None:
            found.add(axes)
    return tuple(sorted(found.kept))


def asked_axes(table: Table) -> Axes:
    """The attributes that a table does not only add up."""
    return tuple(axis for axis, factor in enumerate(table.factors) if not isinstance(factor, Total))


@dataclass(frozen=True, eq=False)
class MarginalCounts:
    """Exact counts of some marginals, one after the other, each row-major."""

    domain: Domain
    sets: tuple[Axes, ...]
    counts: Integers = field(repr=False)  # never printed
    total: int = field(repr=False)  # number of records, N

    @staticmethod
    def size(domain: Domain, sets: Sequence[Axes]) -> int:
        """How many numbers such counts are."""
        return sum(math.prod(domain.shape[axis] for axis in axes) for axes in sets)

    @cached_property
    def _starts(self) -> dict[Axes, int]:
        sizes = [math.prod(self.domain.shape[axis] for axis in axes) for axes in self.sets]
        return dict(zip(self.sets, np.cumsum([0, *sizes]).tolist(), strict=False))

    @cached_property
    def _known(self) -> Sets:
        found = Sets(self.domain)
        for axes in self.sets:
            found.add(axes)
        return found

    def marginal(self, axes: Axes) -> Integers:
        """The counts by the levels of some attributes that one of the sets holds, in the shape of these."""
        whole = self._known.holding(axes)
        assert whole is not None  # the order knew what it needs
        start = self._starts[whole]
        shape = tuple(self.domain.shape[axis] for axis in whole)
        values = self.counts[start : start + math.prod(shape)].reshape(shape)
        return np.asarray(values.sum(axis=tuple(n for n, axis in enumerate(whole) if axis not in axes), dtype=np.int64))

    def project(self, names: Iterable[str], /) -> Histogram:
        """The histogram of some attributes, in the order of their names, that one of the sets holds."""
        kept = tuple(names)
        places = self.domain.axes(kept)
        found = self.marginal(tuple(sorted(places)))
        return Histogram(self.domain.project(kept), found.transpose([sorted(places).index(place) for place in places]))

    def table(self, table: Table) -> Integers:
        """What a table counts, before its weight, modulo 2⁶⁴; flat."""
        axes = asked_axes(table)
        values: NDArray[Any] = self.marginal(axes)
        for place, axis in enumerate(axes):
            values = table.factors[axis].apply(values, place)
        return values.reshape(-1).astype(np.int64, copy=False)


def words_of(shape: Sequence[int]) -> tuple[range, ...]:
    """Runs of attributes of which each has few enough cells to be numbered by one whole number."""
    found, start, cells = list[range](), 0, 1
    for axis, size in enumerate(shape):
        if cells * size >= LARGEST_WORD:
            found.append(range(start, axis))
            start, cells = axis, 1
        cells *= size
    return (*found, range(start, len(shape)))


def count_marginals(
    connection: DuckDBPyConnection, table: str, domain: Domain, sets: tuple[Axes, ...], *, wide: bool
) -> MarginalCounts:
    """The marginals of the records in a table of cells and numbers of records; cells have several words where `wide`.

    The records are read as they come, some at a time: sums do not depend on their order.
    """
    words = words_of(domain.shape) if wide else (range(len(domain.shape)),)
    columns = [f"cell.word_{number}" if wide else "cell" for number in range(len(words))]
    named = ", ".join(f"{column} AS word_{number}" for number, column in enumerate(columns))
    connection.complete()  # what was asked before it, down to its last row
    reader = connection.sql(f"SELECT {named}, records::BIGINT AS records FROM {table}").to_arrow_reader(AT_A_TIME)
    counts, total = np.zeros(MarginalCounts.size(domain, sets), dtype=np.int64), 0
    axes = np.array([axis for each in sets for axis in each], dtype=np.int64)
    lengths = np.array([len(each) for each in sets], dtype=np.int64)
    shape = np.array(domain.shape, dtype=np.int64)
    for batch in reader:
        records = batch.column("records").to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        levels = np.empty((len(domain.shape), len(records)), dtype=np.int32)
        for number, run in enumerate(words):
            rest = batch.column(f"word_{number}").to_numpy(zero_copy_only=False).astype(np.int64, copy=True)
            for axis in reversed(run):
                levels[axis] = rest % domain.shape[axis]
                rest //= domain.shape[axis]
        _add(levels, records, shape, axes, lengths, counts)
        total += int(records.sum())
    return MarginalCounts(domain, sets, counts, total)


@numba.njit(cache=True, nogil=True)
def _add(
    levels: NDArray[np.int32], records: Integers, shape: Integers, axes: Integers, lengths: Integers, counts: Integers
) -> None:
    """Add records, by their levels (attributes × records), to every marginal."""
    place, start = 0, 0
    cells = np.empty(len(records), dtype=np.int64)
    for length in lengths:
        cells[:] = start
        size = 1
        for position in range(place + length - 1, place - 1, -1):
            axis = axes[position]
            for record in range(len(records)):
                cells[record] += size * levels[axis, record]
            size *= shape[axis]
        for record in range(len(records)):
            counts[cells[record]] += records[record]
        place += length
        start += size
