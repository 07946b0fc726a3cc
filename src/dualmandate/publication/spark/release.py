"""A release on a cluster: byte for byte what one machine makes under the same secret.

The histogram stays there, and is read piece by piece: cells with records are in increasing order over the parts, some
together in one piece; from them come the HMAC that binds a release to its data and the exact counts of every table's
rows. Where tables nest they are made there too, from the records to the tables, one subtree at a time.

The machine that publishes spends the loss, binds the release to its data, solves the tree above the subtrees and writes
what is public. It never holds the counts of the leaves, and its tables lie in files while they are put together.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import CannotWrite
from dualmandate.population import Confidential
from dualmandate.population.arrays import Integers
from dualmandate.publication.consistency.estimates import Weights
from dualmandate.publication.marginal_counts import Axes
from dualmandate.publication.measuring import by_table, fingerprint_of, noise_key, published
from dualmandate.publication.nested_tables import NestedTable, NestedTables, all_variances, nest_together
from dualmandate.publication.post_processing import (
    NESTED,
    NOT_SIMULATED,
    PostProcessed,
    nest_effects,
    published_place,
    too_long,
)
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.sources import Source
from dualmandate.publication.spark.noise_blocks import PIECES, Counting, Kernel, measured, packed
from dualmandate.publication.spark.session import (
    gathered,
    kept,
    map_batches,
    quiet,
    records_at_once,
    running_session,
    streamed,
)
from dualmandate.publication.spark.subtrees import BYTES_AT_ONCE, LEAVES, KernelPlace, SubtreeCut, in_subtrees
from dualmandate.publication.spark.tabulating import (
    READ,
    PartedRecords,
    counted_cells,
    counted_marginals,
    parted_records,
    read_through,
)
from dualmandate.publication.synthetic_records import SyntheticRecords, records_of_table
from dualmandate.publication.tabulating import (
    KEY_BYTES,
    SparseHistogram,
    Tabulated,
    TabulationSpec,
    checked_spec,
    countable,
    tabulate,
)
from dualmandate.publication.wall import guarded
from dualmandate.publication.writing import NoisyRows, PublishedTable
from dualmandate.workload import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

THERE = "The records were tabulated by the cluster"
HERE = "The records were tabulated on the machine that published, because {why}"
MARGINALS = "their marginals were added up, noise was drawn and tables were made on the machine that published."


@dataclass(frozen=True, eq=False)
class ClusterHistogram:
    """The cells that hold a record, increasing, and their counts: pieces of both, kept by the workers. Confidential."""

    order: ReleaseSpec
    source: str  # its name
    pieces: DataFrame = field(repr=False)
    words: str  # where the records were tabulated

    @property
    def session(self) -> SparkSession:
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

        Rows that count nothing are left out, others may come in parts. A record counts in at most one row of a table.
        """
        public = self.session.sparkContext.broadcast(Counting(self.order.domain.shape, tuple(tables)))
        schema = "kernel int, row long, records long"
        return map_batches(self.pieces, lambda batches: public.value.counted(batches), schema, name="the counts")

    def _read(self, name: str) -> Iterator[Integers]:
        return (np.frombuffer(row[name], dtype="<i8") for row in streamed(self.pieces.select(name)))


def check_pages(order: ReleaseSpec, source: Source) -> bool:
    """Have workers read all that is wanted of a source to its end; False where they do not see it."""
    with _read_by_workers(order, source, key=bytes(KEY_BYTES)) as (_, _, records):
        if isinstance(records, str):
            return False
        guarded(lambda: gathered(records.each(read_through, "records long")), name=source.name)
        return True


@contextmanager
def counted_on_cluster(order: ReleaseSpec, source: Source, *, key: bytes) -> Iterator[ClusterHistogram]:
    """The histogram of a source, kept by the workers for as long as it is needed.

    What they cannot read is tabulated here, and handed to them: `words` says so.
    """
    with _read_by_workers(order, source, key=key) as (session, spec, records):

        def work() -> ClusterHistogram:
            if isinstance(records, str):
                frame, words = _sent(session, order, source, key=key), HERE.format(why=records)
            else:
                frame, words = counted_cells(records, spec, key=key), THERE
            there = map_batches(frame.where(f"cell <> {READ}").orderBy("cell"), packed, PIECES, name="the counts")
            return ClusterHistogram(order, source.name, kept(there), words)

        found = guarded(work, name=source.name)
        try:
            yield found
        finally:
            found.pieces.unpersist()


def marginals_on_cluster(order: ReleaseSpec, source: Source, *, key: bytes) -> tuple[str, Confidential[Tabulated]]:
    """In words where records were tabulated, and the marginals that are counted in place of cells."""
    sets = order.marginals
    assert sets is not None
    with _read_by_workers(order, source, key=key) as (_, spec, records):
        if isinstance(records, str):
            return HERE.format(why=records), _tabulated_here(order, source, key=key, marginals=sets)
        counted = guarded(lambda: counted_marginals(records, spec, sets, key=key), name=source.name)
    return THERE, Confidential("tabulated records", counted)


@contextmanager
def _read_by_workers(
    order: ReleaseSpec, source: Source, *, key: bytes
) -> Iterator[tuple[SparkSession, TabulationSpec, PartedRecords | str]]:
    """The session, what is tabulated, and the records as the workers read them, or in words why they cannot."""
    spec = checked_spec(order.domain, order.protection, order.rules, key, checking=False)
    session = running_session()
    with ExitStack() as until:
        at_hand = parted_records(session, source, spec)
        yield session, spec, guarded(lambda: until.enter_context(at_hand), name=source.name)


def _sent(session: SparkSession, order: ReleaseSpec, source: Source, *, key: bytes) -> DataFrame:
    """Tabulated here, by cell (`cell`, `records`)."""
    import pyarrow as pa

    histogram = _tabulated_here(order, source, key=key).open_for("sending counts to the cluster").histogram
    assert isinstance(histogram, SparseHistogram)
    with quiet():
        return session.createDataFrame(pa.table({"cell": histogram.cells, "records": histogram.counts}))


def _tabulated_here(
    order: ReleaseSpec, source: Source, *, key: bytes, marginals: tuple[Axes, ...] | None = None
) -> Confidential[Tabulated]:
    rules, protection, sparse = order.rules, order.protection, marginals is None
    return tabulate(
        source, order.domain, protection=protection, rules=rules, key=key, sparse=sparse, marginals=marginals
    )


LARGEST_SUBTREE = 2**22  # A subtree has at most so many numbers, where levels cut the hierarchy so.
MOST_IN_SUBTREE = 2**27  # And never more: Spark moves no value of 2 GB.
IN_SUBTREES = (
    "noise was drawn there and the tables were made consistent there, one of {subtrees:,} subtrees of the geography "
    "at a time; the machine that published never held the counts of the leaves."
)
IN_BLOCKS = (
    "noise was drawn there, a block of rows at a time; the tables were made consistent on the machine that published, "
    "which never held the counts of cells, because {why}."
)
NOT_IN_SUBTREES = (
    "the counts passed through the machine that published, which drew the noise and made the tables consistent, "
    "because {why}."
)


@dataclass(frozen=True, eq=False)
class SubtreeDivision:
    """How the tables of an order are divided over a cluster: into the subtrees below one level of the geography."""

    order: ReleaseSpec
    nest: NestedTables
    weights: Weights = field(repr=False)

    @cached_property
    def level(self) -> int:
        """Where it is cut: the coarsest level, below the root, whose subtrees are small enough."""
        levels = range(1, self.nest.tree.last)
        fits = (level for level in levels if self.largest_subtree(level) <= LARGEST_SUBTREE)
        return next(fits, self.nest.tree.last - 1)

    def largest_subtree(self, level: int) -> int:
        """Numbers that are measured in the largest subtree of a level."""
        cut = SubtreeCut(self.nest.tree, self.weights, level, {})
        below = [place.pair for place in self.nest.places if place.level >= level]
        return int(np.sum([np.diff(cut.edges(pair)) for pair in below], axis=0).max())

    @property
    def cut(self) -> SubtreeCut:
        """The cut, with every place at or below it as a kernel."""
        places = enumerate(self.nest.places)
        below = {i: KernelPlace(at.pair, at.groups) for i, at in places if at.level >= self.level}
        return SubtreeCut(self.nest.tree, self.weights, self.level, below)

    @property
    def words(self) -> str:
        return IN_SUBTREES.format(subtrees=self.nest.tree.sizes[self.level])


def divided(order: ReleaseSpec) -> SubtreeDivision | str:
    """How an order is divided over a cluster, or why it cannot be, in words; the plan decides, never the records."""
    nest = nest_together(order)
    if nest is None or not nest.is_complete:
        return "the tables do not nest by one geography and one chain of groupings"
    pairs = (place.pair for place in nest.places)
    variances = dict(zip(pairs, all_variances(order), strict=True))  # what is exact takes the place of what is measured
    weights = Weights.of(nest.chain, variances, levels=nest.tree.last + 1)
    if not all(_side_by_side(nest, place) for place in nest.places):
        return "the rows of an area do not stand side by side in every table"
    found = SubtreeDivision(order, nest, weights)
    if found.largest_subtree(found.level) > MOST_IN_SUBTREE:
        return "the parts of one area are too many to be one piece of work"
    return found


@dataclass(frozen=True, eq=False)
class RowValues:
    """The numbers of each group and the exact ones, in files; and the part of them that each table has."""

    order: ReleaseSpec
    groups: tuple[Integers, ...] = field(repr=False)
    totals: Integers | None = field(repr=False)
    places: tuple[Integers, ...] = field(repr=False)

    @classmethod
    def of(cls, order: ReleaseSpec, folder: Path) -> RowValues:
        groups = tuple(in_file(folder, group.rows.size, np.int64) for group in order.groups)
        totals = None if order.public is None else in_file(folder, order.public.query_count, np.int64)
        return cls.laid(order, groups, totals)

    @classmethod
    def laid(cls, order: ReleaseSpec, groups: Sequence[Integers], totals: Integers | None) -> RowValues:
        """The same from numbers that are there already."""
        found = zip(order.groups, groups, strict=True)
        places = [part for group, whole in found for part in by_table(group.rows.counted or (), whole)]
        places += [] if totals is None else by_table(order.public_tables, totals)
        return cls(order, tuple(groups), totals, tuple(places))

    @property
    def measurements(self) -> Iterator[NoisyRows]:
        """Every group of tables, one after the other."""
        for group, values in zip(self.order.groups, self.groups, strict=True):
            yield NoisyRows(group.name, group.noises, group.rows.kinds().astype(np.int64, copy=False), values)


@dataclass(frozen=True, eq=False)
class ClusterMeasurements:
    """What was measured: in files here, to be written; and in blocks by subtree there, to be made consistent."""

    division: SubtreeDivision
    values: RowValues = field(repr=False)
    cut: SubtreeCut = field(repr=False)
    blocks: DataFrame = field(repr=False)
    folder: Path  # for files without a name

    @property
    def measurements(self) -> Iterator[NoisyRows]:
        """Every group of tables, one after the other."""
        return self.values.measurements

    @property
    def totals(self) -> Integers | None:
        """What is published without noise; None for nothing."""
        return self.values.totals

    @contextmanager
    def post_processed(self) -> Iterator[PostProcessed]:
        """Estimates and whole numbers of every table; those of leaves are kept by the workers until they are taken."""
        order, nest, cut = self.division.order, self.division.nest, self.cut
        above = {
            place.pair: nest.laid(place, values)
            for place, values in zip(nest.places, self.values.places, strict=True)
            if place.level < cut.level
        }
        asked = [i for i in cut.kernels if i < len(order.tables) and nest.places[i].level > cut.level]
        session, simulated = self.blocks.sparkSession, not too_long(order)

        def work() -> tuple[Any, Any, DataFrame]:
            chosen = self.blocks.where(f"kernel IN ({', '.join(map(str, cut.kernels))})")
            estimates, counts, below = in_subtrees(session, chosen, cut, above=above, asked=asked, leaves=simulated)
            with records_at_once(session, BYTES_AT_ONCE // (8 * cut.largest)):
                return estimates, counts, kept(below)

        estimates, counts, below = guarded(work, name="the measurements")

        def table(number: int) -> PublishedTable:
            if number in asked:
                return self._taken(number, nest.places[number], below)
            return published_place(order, nest, nest.places[number], found=estimates, counts=counts)

        def records() -> SyntheticRecords | None:
            finest = nest.finest
            return None if finest is None else records_of_table(table(nest.places.index(finest)))

        try:
            seen = nest_effects(order, nest, self._leaves(below)) if simulated else NOT_SIMULATED
            tables = map(table, range(len(order.tables)))
            found = PostProcessed(tables, NESTED, together=True, effects=seen.effects, reaches=seen.reaches)
            yield replace(found, records=records)
        finally:
            below.unpersist()

    def _taken(self, number: int, place: NestedTable, below: DataFrame) -> PublishedTable:
        size, edges = place.table.query_count, self.cut.edges(place.pair)
        kinds = {"estimates": np.float64, "errors": np.float64, "values": np.int64}
        numbers = {name: in_file(self.folder, size, kind) for name, kind in kinds.items()}

        def work() -> None:
            for row in streamed(below.where(f"kernel = {number}")):
                for name, kind in kinds.items():
                    rows = slice(*edges[row["subtree"] : row["subtree"] + 2])
                    numbers[name][rows] = np.frombuffer(row[name], dtype=kind)

        guarded(work, name="the measurements")
        return published(self.division.order, place.table, *numbers.values())

    def _leaves(self, below: DataFrame) -> Integers:
        """The counts of all cells of the leaves, of a small tree; noisy, and public."""
        found = guarded(lambda: list(streamed(below.where(f"kernel = {LEAVES}"))), name="the measurements")
        parts = sorted(found, key=lambda row: int(row["subtree"]))
        cells = self.division.nest.chain.sizes[-1]
        return np.concatenate([np.frombuffer(row["values"], dtype="<i8").reshape(-1, cells) for row in parts])


@contextmanager
def measured_on_cluster(
    division: SubtreeDivision, histogram: ClusterHistogram, secret: Confidential[bytes], *, mac: str, folder: Path
) -> Iterator[ClusterMeasurements]:
    """Every table with its noise, and the exact ones; `mac` is the fingerprint that the ledger has bound it to."""
    order, cut = division.order, division.cut
    edges = {number: cut.edges(place.pair) for number, place in cut.kernels.items()}
    kernels, values = _kernels(order, secret, mac=mac, edges=edges), RowValues.of(order, folder)
    digests: dict[tuple[int, int], bytes] = {}

    def told(block: Any) -> None:
        if block["kernel"] in cut.kernels:
            digests[block["kernel"], block["block"]] = sha256(block["values"]).digest()

    blocks = guarded(lambda: _taken_here(histogram, kernels, values, told), name=histogram.source)
    try:
        published = SubtreeCut(cut.tree, cut.weights, cut.level, cut.kernels, digests)
        yield ClusterMeasurements(division, values, published, blocks, folder)
    finally:
        blocks.unpersist()


@contextmanager
def measured_before(
    division: SubtreeDivision, measured: Sequence[NoisyRows], totals: Integers | None, *, folder: Path
) -> Iterator[ClusterMeasurements]:
    """The same from measurements that were written before: they are public, and are sent to the workers."""
    cut, session = division.cut, running_session()
    values = RowValues.laid(division.order, [each.values for each in measured], totals)

    def work() -> DataFrame:
        import pyarrow

        starts = [(kernel, *each) for kernel in cut.kernels for each in enumerate(pairwise(_edges(cut, kernel)))]
        numbers = (values.places[kernel][slice(*edges)].astype("<i8", copy=False) for kernel, _, edges in starts)
        columns = {
            "kernel": pyarrow.array([kernel for kernel, _, _ in starts], pyarrow.int32()),
            "block": pyarrow.array([block for _, block, _ in starts], pyarrow.int64()),
            "first": pyarrow.array([first for _, _, (first, _) in starts], pyarrow.int64()),
            "values": pyarrow.array([each.tobytes() for each in numbers], pyarrow.binary()),
        }
        with quiet():
            return kept(session.createDataFrame(pyarrow.table(columns)))

    blocks = guarded(work, name="the measurements")
    try:
        yield ClusterMeasurements(division, values, cut, blocks, folder)
    finally:
        blocks.unpersist()


def _edges(cut: SubtreeCut, kernel: int) -> tuple[int, ...]:
    return cut.edges(cut.kernels[kernel].pair)


def is_counted_in_rows(order: ReleaseSpec) -> bool:
    """Whether tables themselves are measured, in each of which a record counts in one row at most."""
    direct = all(group.rows.direct for group in order.groups)
    return direct and countable([*order.tables, *order.public_tables])


def rows_on_cluster(
    order: ReleaseSpec, histogram: ClusterHistogram, secret: Confidential[bytes], *, mac: str, folder: Path
) -> RowValues:
    """Every group of tables with its noise, drawn by the workers, and what is exact."""
    kernels, values = _kernels(order, secret, mac=mac, edges={}), RowValues.of(order, folder)
    guarded(lambda: _taken_here(histogram, kernels, values), name=histogram.source).unpersist()
    return values


def _taken_here(
    histogram: ClusterHistogram,
    kernels: Sequence[Kernel],
    values: RowValues,
    told: Callable[[Any], None] = lambda _: None,
) -> DataFrame:
    """Blocks of noisy rows that the workers keep, after their numbers were brought into the files here."""
    order = histogram.order
    counted = [table for group in order.groups for table in group.rows.counted or ()]
    blocks = kept(measured(histogram.session, histogram.rows([*counted, *order.public_tables]), kernels))
    for block in streamed(blocks):
        part = np.frombuffer(block["values"], dtype="<i8")
        values.places[block["kernel"]][block["first"] : block["first"] + len(part)] = part
        told(block)
    return blocks


def in_file(folder: Path, size: int, kind: type) -> NDArray[Any]:
    """Numbers that lie in a file without a name, whose room on the disk is taken at once: memory is not needed."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(size, 1) * np.dtype(kind).itemsize)
            return np.asarray(np.memmap(file, dtype=kind, mode="r+", shape=(size,)))
    except OSError as error:
        raise CannotWrite.because(error, folder) from None


def _kernels(
    order: ReleaseSpec, secret: Confidential[bytes], *, mac: str, edges: Mapping[int, tuple[int, ...]]
) -> list[Kernel]:
    """The rows of every table that is counted, in the order of the groups, and then of what is exact.

    Their blocks begin at `edges`, by number of the table, or are runs of rows.
    """
    found: list[Kernel] = []
    for group in order.groups:
        kinds, start, firsts = group.rows.kinds(), 0, [0] * len(group.noises)
        for table in group.rows.counted or ():
            kind, rows = int(kinds[start]), table.query_count  # a table has one weight, and so one kind of row
            key, sampler = noise_key(order, group, kind, secret, mac=mac), group.noises[kind].sampler()
            found.append(Kernel(rows, sampler, key, edges.get(len(found)), firsts[kind]))
            firsts[kind] += rows
            start += rows
    for table in order.public_tables:
        found.append(Kernel(table.query_count, None, edges=edges.get(len(found))))
    return found


def _side_by_side(nest: NestedTables, place: NestedTable) -> bool:
    """Whether the rows of a node follow each other in a table, and nodes are in the order of the tree."""
    leading = int(np.prod(place.table.shape[: nest.axis])) == 1
    return leading and bool(np.array_equal(place.nodes, np.arange(place.nodes.size)))
