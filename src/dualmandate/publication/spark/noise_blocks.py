"""Measuring on a cluster: the same noise at the same places, whoever draws it and however often.

Noise is a function of a key and of a row's number. So a block of rows that is drawn twice, because a worker died or
because Spark bet on a faster one, is drawn the same twice, and the loss is counted once. Little is imported here,
because every worker imports it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.noise import NoiseKey, Sampler
from dualmandate.population.arrays import Integers
from dualmandate.publication.spark.session import Batches, check_sealed, map_batches, partitions
from dualmandate.publication.tabulating import NOWHERE, single_rows
from dualmandate.workload import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BLOCK_ROWS = 2**18  # So many rows are drawn at once, before any count of theirs is looked at.
NO_ROW = -1  # This row opens a block.
BLOCKS = "kernel int, block long, first long, values binary"


@dataclass(frozen=True)
class Kernel:
    """The rows 0 to rows − 1 of one measurement, and whose noise they get: none where they are published exactly.

    `edges` are where its blocks start and where the last ends, if they are more than runs of one length: the rows of
    each subtree of a hierarchy, say. `first` is the number of the first row among those that share its key.
    """

    rows: int
    sampler: Sampler | None
    key: NoiseKey | None = field(default=None, repr=False)
    edges: tuple[int, ...] | None = field(default=None, repr=False)
    first: int = 0

    def noise(self, rows: range) -> Integers:
        """The noise of some rows; shape (len(rows),)."""
        if self.sampler is None or self.key is None:
            return np.zeros(len(rows), dtype=np.int64)
        return self.sampler.draw(self.key, range(self.first + rows.start, self.first + rows.stop))

    def block_edges(self, block_rows: int) -> Integers:
        """Where blocks start, and where the last ends."""
        if self.edges is None:
            return np.append(np.arange(0, self.rows, block_rows), self.rows)
        edges = np.asarray(self.edges, dtype=np.int64)
        if edges[0] != 0 or edges[-1] != self.rows or np.any(np.diff(edges) < 0):
            raise InvalidRequest(
                "blocks that are not all rows, each once",
                why="every row of a measurement gets its noise",
                instead="let edges increase from 0 to the number of rows",
            )
        return edges


def measured(
    session: SparkSession, counts: DataFrame, kernels: Sequence[Kernel], *, block_rows: int = BLOCK_ROWS
) -> DataFrame:
    """Every row of every kernel with its noise, in blocks and in no order.

    A block is its `kernel`, its number in it, the `first` of its rows, and their `values` modulo 2⁶⁴ as little-endian
    64-bit integers in one binary: Spark takes far longer over a row of its own than the noise of one takes.
    `counts` has `kernel` (its number), `row` and `records`; rows that count nothing may be left out and get their noise
    all the same. The keys travel inside the function that is sent to the workers, over a channel that is refused unless
    it is encrypted.
    """
    check_sealed(session)
    edges = [kernel.block_edges(block_rows) for kernel in kernels]
    firsts = (0, *accumulate(len(each) - 1 for each in edges))
    if not firsts[-1]:
        raise InvalidRequest(
            "nothing is to be measured", why="no kernel has a row", instead="name at least one row to measure"
        )
    public = session.sparkContext.broadcast(_Layout(tuple(edges), firsts))
    rows = counts.selectExpr("CAST(kernel AS int)", "CAST(row AS long)", "CAST(records AS long)")
    placed = map_batches(
        rows, lambda batches: public.value.placed(batches), "block long, row long, records long", name="the counts"
    )
    opening = session.range(firsts[-1]).selectExpr("id AS block", f"{NO_ROW}L AS row", "0L AS records")
    together = opening.unionAll(placed).repartition(min(partitions(session), firsts[-1]), "block")
    drawn = tuple(replace(kernel, edges=None) for kernel in kernels)  # small: what is large would go into a file
    ordered = together.sortWithinPartitions("block", "row")
    return map_batches(ordered, lambda each: noisy_blocks(each, drawn, public.value), BLOCKS, name="the counts")


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which rows are a block: public, and apart from the keys, since Spark puts what is large into a file."""

    edges: tuple[Integers, ...]  # of each kernel
    firsts: tuple[int, ...]  # block of each kernel, and one beyond the last

    def placed(self, batches: Batches) -> Batches:
        """Counts with the number of their block."""
        import pyarrow

        for batch in batches:
            kernel, row, records = (batch.column(name).to_numpy() for name in ("kernel", "row", "records"))
            block = np.empty(len(row), dtype=np.int64)
            for number, edges in enumerate(self.edges):
                mine = kernel == number
                block[mine] = self.firsts[number] + np.searchsorted(edges, row[mine], side="right") - 1
                if np.any((row[mine] < 0) | (row[mine] >= edges[-1])):
                    raise _no_such_row()
            yield pyarrow.record_batch({"block": block, "row": row, "records": records})

    def of(self, block: int) -> tuple[int, int, range]:
        """The kernel of a block, its number there, and its rows."""
        kernel = int(np.searchsorted(self.firsts, block, side="right")) - 1
        number = block - self.firsts[kernel]
        return kernel, number, range(*(int(edge) for edge in self.edges[kernel][number : number + 2]))


def noisy_blocks(batches: Batches, kernels: Sequence[Kernel], layout: _Layout) -> Batches:
    """The blocks of one part, each drawn when it is opened, before any of its counts is looked at."""
    import pyarrow

    current: tuple[int, range, Integers] | None = None
    for block, row, records in _runs(batches):
        if row[0] == NO_ROW:
            if current is not None:
                yield pyarrow.record_batch(_columns(current[0], layout, current[2]))
            kernel, _, rows = layout.of(block)
            current = block, rows, kernels[kernel].noise(rows)
            row, records = row[1:], records[1:]
        if current is None or current[0] != block:
            raise _no_such_row()
        np.add.at(current[2], row - current[1].start, records)
    if current is not None:
        yield pyarrow.record_batch(_columns(current[0], layout, current[2]))


def _columns(block: int, layout: _Layout, values: Integers) -> dict[str, Any]:
    import pyarrow

    kernel, number, rows = layout.of(block)
    return {
        "kernel": pyarrow.array([kernel], pyarrow.int32()),
        "block": pyarrow.array([number], pyarrow.int64()),
        "first": pyarrow.array([rows.start], pyarrow.int64()),
        "values": pyarrow.array([values.astype("<i8", copy=False).tobytes()], pyarrow.binary()),
    }


def _runs(batches: Batches) -> Iterator[tuple[int, Integers, Integers]]:
    """Runs of rows of one block, in the order they come."""
    for batch in batches:
        block, row, records = (batch.column(name).to_numpy() for name in ("block", "row", "records"))
        edges = np.flatnonzero(np.diff(block)) + 1
        for start, stop in zip([0, *edges], [*edges, len(block)], strict=True):
            if stop > start:
                yield int(block[start]), row[start:stop], records[start:stop]


def _no_such_row() -> InvalidRequest:
    return InvalidRequest(
        "a count of a row that no kernel has", why="the rows of a kernel are numbered from 0", instead="number them so"
    )


PIECES = "occupied long, cells binary, counts binary"  # Binaries are little-endian 64-bit integers.


def packed(batches: Batches) -> Batches:
    """Cells and counts in one binary each: Spark takes far longer over a row of its own than anything here."""
    import pyarrow

    for batch in batches:
        cells, counts = (batch.column(name).to_numpy().astype("<i8") for name in ("cell", "records"))
        pieces = (pyarrow.array([each.tobytes()], pyarrow.binary()) for each in (cells, counts))
        yield pyarrow.record_batch([pyarrow.array([len(cells)]), *pieces], names=["occupied", "cells", "counts"])


@dataclass(frozen=True, eq=False)
class Counting:
    """Which row of each table counts a cell: public."""

    shape: tuple[int, ...]
    tables: tuple[Table, ...]

    @cached_property
    def _rows(self) -> list[list[tuple[Integers, Integers | None]]]:
        """The row of its factor that each level of each attribute is counted in, and its weight, by table."""
        found = [[single_rows(factor) for factor in table.factors] for table in self.tables]
        return [[each for each in table if each is not None] for table in found]

    def counted(self, batches: Batches) -> Batches:
        """The rows of all tables that a piece counts in, each once."""
        import pyarrow

        for batch in batches:
            for piece in batch.to_pylist():
                cells, counts = (np.frombuffer(piece[name], dtype="<i8") for name in ("cells", "counts"))
                levels = np.unravel_index(cells, self.shape)
                parts = [self._table(number, levels, counts) for number in range(len(self.tables))]
                kernel = np.repeat(np.arange(len(parts), dtype=np.int32), [len(rows) for rows, _ in parts])
                row, records = (np.concatenate(each) for each in zip(*parts, strict=True))
                yield pyarrow.record_batch({"kernel": kernel, "row": row, "records": records})

    def _table(self, number: int, levels: tuple[NDArray[np.intp], ...], counts: Integers) -> tuple[Integers, Integers]:
        rows, there = np.zeros(len(counts), dtype=np.int64), np.ones(len(counts), dtype=np.bool_)
        for factor, (own, weights), level in zip(self.tables[number].factors, self._rows[number], levels, strict=True):
            row = own[level]
            there &= row != NOWHERE
            rows = rows * factor.rows + row
            counts = counts if weights is None else counts * weights[level]
        distinct, places = np.unique(rows[there], return_inverse=True)
        sums = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(sums, places, counts[there])
        return distinct, sums
