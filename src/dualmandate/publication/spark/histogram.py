"""A histogram that stays on the cluster: the machine that publishes reads it piece by piece, and never holds it.

Cells with records are in increasing order over the parts, some together in one piece; from them come the HMAC that
binds a release to its data, which is that of one machine, and the exact counts of every table's rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.population import Confidential
from dualmandate.population.arrays import Integers
from dualmandate.publication.measuring import fingerprint_of
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.sources import Source
from dualmandate.publication.spark.counting import PIECES, Counting, packed
from dualmandate.publication.spark.session import kept, map_batches, quiet, running_session, streamed
from dualmandate.publication.spark.tabulating import READ, as_readable, counted_cells, records
from dualmandate.publication.tabulated import SparseHistogram, Tabulated
from dualmandate.publication.tabulating import tabulate
from dualmandate.publication.tabulation_sql import checked_spec
from dualmandate.publication.wall import guarded
from dualmandate.workload import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THERE = "The records were tabulated by the cluster"
HERE = "The records were tabulated on the machine that published, because {why}"


@dataclass(frozen=True, eq=False)
class ClusterHistogram:
    """The cells that hold a record, increasing, and their counts: pieces of both, kept by the workers. Confidential."""

    order: ReleaseSpec
    source: str  # its name
    pieces: DataFrame = field(repr=False)
    words: str  # where the records were tabulated

    @property
    def session(self) -> SparkSession:
        """Whose workers hold it."""
        return self.pieces.sparkSession

    def fingerprint(self, secret: Confidential[bytes]) -> str:
        """HMAC-SHA-256 of the exact histogram, of the plan and of the versions, as on one machine: 64 digits."""

        def work() -> str:
            import pyspark.sql.functions as sql

            with quiet():
                [found] = self.pieces.agg(sql.sum("occupied").alias("all")).collect()
            cells, counts = (self._read(name) for name in ("cells", "counts"))
            return fingerprint_of(self.order, secret, occupied=int(found["all"] or 0), cells=cells, counts=counts)

        return guarded(work, name=self.source)

    def tabulated(self) -> Confidential[Tabulated]:
        """The whole histogram, here: for tables that cannot be made in parts."""

        def work() -> Tabulated:
            cells, counts = (np.concatenate([np.zeros(0, np.int64), *self._read(name)]) for name in ("cells", "counts"))
            histogram = SparseHistogram(self.order.domain, cells, counts)
            return Tabulated(histogram if self.order.sparse else histogram.dense(), histogram.total)

        return Confidential("tabulated records", guarded(work, name=self.source))

    def rows(self, tables: Sequence[Table]) -> DataFrame:
        """What each row of each table counts (`kernel`, the number of its table; `row`; `records`), on the cluster.

        Rows that count nothing are left out, others may come in parts. Each record is counted once in each table.
        """
        public = self.session.sparkContext.broadcast(Counting(self.order.domain.shape, tuple(tables)))
        schema = "kernel int, row long, records long"
        return map_batches(self.pieces, lambda batches: public.value.counted(batches), schema, name="the counts")

    def _read(self, name: str) -> Iterator[Integers]:
        return (np.frombuffer(row[name], dtype="<i8") for row in streamed(self.pieces.select(name)))


@contextmanager
def counted_on_cluster(order: ReleaseSpec, source: Source, *, key: bytes) -> Iterator[ClusterHistogram]:
    """The histogram of a source, kept by the workers for as long as it is needed.

    What they cannot read is tabulated here, and handed to them: `words` says so.
    """
    spec = checked_spec(order.domain, order.protection, order.rules, key, checking=False)
    session = running_session()

    def work() -> ClusterHistogram:
        readable = as_readable(session, source)
        if isinstance(readable, str):
            frame, words = _sent(session, order, source, key=key), HERE.format(why=readable)
        else:
            frame = counted_cells(session, records(session, readable, spec), spec, key=key)
            words = THERE
        there = frame.where(f"cell <> {READ}").orderBy("cell")
        return ClusterHistogram(order, source.name, kept(map_batches(there, packed, PIECES, name="the counts")), words)

    found = guarded(work, name=source.name)
    try:
        yield found
    finally:
        found.pieces.unpersist()


def _sent(session: SparkSession, order: ReleaseSpec, source: Source, *, key: bytes) -> DataFrame:
    """Tabulated here, by cell (`cell`, `records`)."""
    import pyarrow as pa

    box = tabulate(source, order.domain, protection=order.protection, rules=order.rules, key=key, sparse=True).open_for(
        "sending counts to the cluster"
    )
    assert isinstance(box.histogram, SparseHistogram)
    with quiet():
        return session.createDataFrame(pa.table({"cell": box.histogram.cells, "records": box.histogram.counts}))
