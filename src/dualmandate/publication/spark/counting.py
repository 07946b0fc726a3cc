"""What workers do with the cells of a histogram: little is imported here, because each of them imports it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.population.arrays import Integers
from dualmandate.publication.spark.session import Batches
from dualmandate.publication.sparse_counting import single_rows
from dualmandate.workload import Table

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
    def _rows(self) -> list[list[Integers]]:
        """The row of its factor that each level of each attribute is counted in, by table."""
        found = [[single_rows(factor) for factor in table.factors] for table in self.tables]
        return [[each[0] for each in table if each is not None] for table in found]

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
        rows = np.zeros(len(counts), dtype=np.int64)
        for factor, own, level in zip(self.tables[number].factors, self._rows[number], levels, strict=True):
            rows = rows * factor.rows + own[level]
        distinct, places = np.unique(rows, return_inverse=True)
        sums = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(sums, places, counts)
        return distinct, sums
