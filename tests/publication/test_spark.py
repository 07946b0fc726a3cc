"""The same histogram and the same noise from a real cluster as from one machine, also when a worker dies."""

from __future__ import annotations

import gc
import json
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from tests.publication.consistency.test_top_down_rounding import added, grown
from tests.publication.reference import Record, Value, tabulated
from tests.publication.test_publish import release_spec_of
from tests.publication.test_tabulating import DOMAIN, KEY, TYPES, counts
from tests.publication.test_wall import CANARY, everything_said

from dualmandate.errors import InvalidRequest, UnreadableSource
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey
from dualmandate.population import Attribute, Confidential, Domain, Histogram, PrivacyLoss, Protection
from dualmandate.publication import (
    AttributeRule,
    ParquetFile,
    Rules,
    SparkTable,
    Tabulated,
    ValueRule,
    check,
    measuring,
)
from dualmandate.publication import publish as publishing
from dualmandate.publication.consistency import PartitionChain, Tree, estimate, top_down
from dualmandate.publication.release_folder import is_complete
from dualmandate.publication.sources import opened
from dualmandate.publication.spark import noise_blocks as spark_engine
from dualmandate.publication.spark.noise_blocks import Kernel, measured, noisy_blocks
from dualmandate.publication.spark.session import check_sealed, gathered
from dualmandate.publication.spark.subtrees import LEAVES, KernelPlace, SubtreeCut, in_subtrees
from dualmandate.publication.spark.tabulating import READ, counted_cells, row_sums_of_table, table_records
from dualmandate.publication.states import row_sums
from dualmandate.publication.tabulating import TabulationSpec
from dualmandate.publication.wall import connected

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from tests.publication.cluster import Cluster

pytestmark = [
    pytest.mark.spark,
    # Spark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket:pytest.PytestUnraisableExceptionWarning"),
]
BOUNDED = Protection(most_records_per_unit=3, identifier="id")
RULES = Rules({"sex": AttributeRule(ValueRule.MISSING, ValueRule.DROP)}, unknown_where_impossible="hours")
NOISE_KEY = NoiseKey(b"the key of a test, thirty-two by")


@pytest.fixture(autouse=True)
def _collect_sockets() -> Iterator[None]:
    yield
    gc.collect()


def odd_records(number: int) -> list[Record]:
    chance = random.Random(7)
    odd: dict[str, list[Value]] = {
        "sex": ["f", "m", "?", "x", None],
        "region": [1, 2, -3, 4, None],
        "age": [*range(-3, 26), -(2**63), 2**63 - 1, None],
        "pay": [-1.2, -0.05, 0.25, 0.1, 1.0, float("inf"), float("-inf"), float("nan"), None],
        "hours": [-1.0, 0.0, 0.5, 10.0, 40.0, 50.0, float("nan"), None],
        "id": [*(f"{CANARY}{n}" for n in range(60)), 'é,"', None],
    }
    return [{name: chance.choice(values) for name, values in odd.items()} for _ in range(number)]


@pytest.fixture(scope="module")
def records() -> list[Record]:
    return odd_records(600)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, records: list[Record]) -> Path:
    """Parquet files as a cluster has them: several, in one folder."""
    place = tmp_path_factory.mktemp("records")
    types = TYPES | {"id": pa.string()}
    for part in range(3):
        columns = {name: pa.array([one[name] for one in records[part::3]], kind) for name, kind in types.items()}
        pq.write_table(pa.table(columns), place / f"part-{part}.parquet")
    return place


@pytest.fixture
def table(spark: SparkSession, folder: Path) -> SparkTable:
    return SparkTable(f"parquet.`{folder}`")


@pytest.mark.parametrize("protection", [Protection(), BOUNDED], ids=["records", "units"])
def test_the_histogram_is_that_of_one_machine(
    table: SparkTable, folder: Path, records: list[Record], protection: Protection, tmp_path: Path
) -> None:
    wanted = tabulated(records, DOMAIN, protection, RULES, KEY)
    assert counts(table, protection=protection, rules=RULES) == wanted
    if protection.identifier is None:
        return
    pq.write_table(pq.read_table(folder), tmp_path / "one.parquet")
    here = ParquetFile(tmp_path / "one.parquet")
    assert counts(here, protection=protection, rules=RULES) == wanted
    ours, theirs = (
        check(source, DOMAIN, protection=protection, rules=RULES).open_for("a test") for source in (here, table)
    )
    assert vars(ours) == vars(theirs)
    assert theirs.values
    spec = TabulationSpec(DOMAIN, protection, RULES)
    with connected() as connection, opened(here, connection, spec.columns, counted=False) as found:
        sums = row_sums(found, spec.columns, connection, key=KEY)
    assert row_sums_of_table(table, spec, key=KEY) == sums
    assert row_sums_of_table(table, spec, key=bytes(32)) != sums


def measured_here(
    session: SparkSession, counts: DataFrame, kernels: list[Kernel], *, block_rows: int
) -> list[NDArray[np.int64]]:
    """The values of each kernel in the order of its rows, brought together on this machine."""
    values = [np.empty(kernel.rows, dtype=np.int64) for kernel in kernels]
    for block in measured(session, counts, kernels, block_rows=block_rows).toArrow().to_pylist():
        part = np.frombuffer(block["values"], dtype="<i8")
        values[block["kernel"]][block["first"] : block["first"] + len(part)] = part
    return values


def test_measuring_is_that_of_one_machine(spark: SparkSession, table: SparkTable, records: list[Record]) -> None:
    """From the records to noisy counts without leaving the cluster, beside other counts; one of them exact."""
    spec = TabulationSpec(DOMAIN, BOUNDED, RULES)
    frame = counted_cells(table_records(table, spec), spec, key=KEY)
    cells = frame.where(f"cell <> {READ}").selectExpr("0 AS kernel", "cell AS row", "records")
    totals = spark.range(5000).selectExpr("1 AS kernel", "id AS row", "id % 3 AS records").where("records > 0")
    kernels = [
        Kernel(DOMAIN.size, LaplaceSampler(Fraction(3, 2)), NOISE_KEY),
        Kernel(5003, GaussianSampler(Fraction(7)), NoiseKey(bytes(32))),
        Kernel(7, LaplaceSampler(Fraction(1000)), NOISE_KEY, first=5),
        Kernel(3, None),
    ]
    found = measured_here(spark, cells.unionAll(totals), kernels, block_rows=1024)
    exact = [np.zeros(kernel.rows, dtype=np.int64) for kernel in kernels]
    for cell, number in tabulated(records, DOMAIN, BOUNDED, RULES, KEY).items():
        exact[0][cell] = number
    exact[1][:5000] = np.arange(5000) % 3
    for kernel, values, noiseless in zip(kernels, found, exact, strict=True):
        rows = range(kernel.first, kernel.first + kernel.rows)
        noise = 0 if kernel.sampler is None or kernel.key is None else kernel.sampler.draw(kernel.key, rows)
        local = noiseless + noise
        assert values.tobytes() == local.tobytes()


@pytest.mark.parametrize("kind", ["strategy", "tables"])
def test_an_order_is_measured_as_on_one_machine(spark: SparkSession, kind: str) -> None:
    order = release_spec_of(kind=kind)
    histogram = Histogram(order.domain, np.array([[40, 0], [31, 55], [3, 0]]))
    box, secret, mac = Confidential("a test", Tabulated(histogram, 129)), Confidential("a test", bytes(32)), "5a" * 32
    here = list(measuring.measure(order, box, secret, mac=mac))
    there = list(measuring.measure(replace(order, engine="spark"), box, secret, mac=mac))
    for one, other in zip(here, there, strict=True):
        assert (one.group, one.noises) == (other.group, other.noises)
        assert one.values.tobytes() == other.values.tobytes()
        assert one.kinds.tobytes() == other.kinds.tobytes()


def test_a_program_is_published_from_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    people = [("young", "f")] * 40 + [("adult", "m")] * 55 + [("old", "f")] * 3
    pq.write_table(
        pa.table({"age": [age for age, _ in people], "sex": [sex for _, sex in people]}), tmp_path / "p.parquet"
    )
    order = replace(release_spec_of(), engine="spark")
    ledger = open_ledger(tmp_path / "state" / "ledger.sqlite", make_key(tmp_path / "state" / "key"), create=True)
    ledger.open_account(Account("people", "person", PrivacyLoss.pure(4)), by="Ann")
    ledger.approve(Approval("people", order.plan_digest, order.loss, "person", by="Ben"))
    source = SparkTable(f"parquet.`{tmp_path / 'p.parquet'}`")
    folder = publishing.publish(
        order,
        source,
        ledger,
        out=tmp_path / "out",
        request=publishing.PublicationRequest("Eve", "people", unchecked=True),
    )
    assert is_complete(folder, ledger.release(folder.name).written_digest)
    assert ledger.spent("people") == order.loss.amount
    words = json.loads((folder / "release.json").read_text(encoding="utf-8"))["engine"]
    assert "tabulated by the cluster" in words
    assert "passed through the machine that published" in words  # an optimized strategy has no subtrees


def numbered(spark: SparkSession, rows: int) -> DataFrame:
    return spark.range(rows).selectExpr("0 AS kernel", "id AS row", "id % 5 AS records")


def events(cluster: Cluster) -> str:
    return "".join(path.read_text() for path in (cluster.folder / "events").rglob("*") if path.is_file())


def test_what_is_drawn_twice_is_drawn_the_same(spark: SparkSession, cluster: Cluster) -> None:
    """One block dawdles on its first attempt; Spark bets on a second one, which is taken."""

    @dataclass(frozen=True)
    class Dawdling:
        sampler: LaplaceSampler

        def draw(self, key: NoiseKey, cells: range) -> NDArray[np.int64]:
            from pyspark import TaskContext

            task = TaskContext.get()
            assert task is not None
            time.sleep(20.0 if cells.start == 0 and task.attemptNumber() == 0 else 0.3)
            return self.sampler.draw(key, cells)

    sampler = LaplaceSampler(Fraction(2))
    [found] = measured_here(
        spark,
        numbered(spark, 4096),
        [Kernel(4096, cast("Any", Dawdling(sampler)), NOISE_KEY)],
        block_rows=512,
    )
    assert np.array_equal(found, np.arange(4096) % 5 + sampler.draw(NOISE_KEY, range(4096)))
    assert '"Speculative":true' in events(cluster)


def test_subtrees_give_the_tables_of_the_whole_tree(spark: SparkSession) -> None:
    """Made consistent on the cluster, a subtree a piece of work: the bytes are those of one machine."""
    generator = np.random.default_rng(8)
    tree, chain = (
        Tree(grown(generator, 3, 6)),
        PartitionChain((np.zeros(3, dtype=np.int64), np.repeat(np.arange(3), 4))),
    )
    truth = generator.poisson(1.5, (tree.sizes[-1], chain.sizes[-1]))
    pairs = [(level, step) for level in range(4) for step in range(3)]
    variances = {pair: 3.0 * 2.0 ** pair[0] + pair[1] for pair in pairs}
    exact = {(level, step): chain.sums(added(tree, truth, level), step) for level, step in pairs}
    values = {
        pair: np.rint(table + generator.normal(0, variances[pair] ** 0.5, table.shape)).astype(np.int64)
        for pair, table in exact.items()
    }
    whole = estimate(tree, chain, values, variances)

    own = {number: generator.permutation(chain.sizes[pair[1]]) for number, pair in enumerate(pairs)}
    placed = {number: KernelPlace(pair, own[number]) for number, pair in enumerate(pairs) if pair[0] >= 1}
    cut = SubtreeCut(tree, whole.upward.weights, 1, placed)
    kernels = [
        Kernel(exact[pair].size, None, edges=None if pair[0] < 1 else cut.edges(pair))
        for number, pair in enumerate(pairs)
    ]
    counts = [
        {"kernel": number, "row": row, "records": int(count)}
        for number, pair in enumerate(pairs)
        for row, count in enumerate(shuffled(values[pair], own[number]).reshape(-1))
    ]
    blocks = measured(spark, spark.createDataFrame(pa.Table.from_pylist(counts)), kernels).persist()
    above = {pair: values[pair] for pair in pairs if pair[0] < 1}
    chosen, asked = blocks.where("kernel >= 3"), [number for number in placed if pairs[number][0] > 1]
    estimates, tables, below = in_subtrees(spark, chosen, cut, above=above, asked=asked, leaves=True)
    wanted = top_down(whole)
    assert np.array_equal(estimates.tables(1)[2], whole.tables(1)[2])
    assert [table.tobytes() for table in tables] == [table.tobytes() for table in wanted[:2]]
    found = {(row["kernel"], row["subtree"]): row for row in gathered(below).to_pylist()}
    for number in asked:
        level, step = pairs[number]
        numbers = whole.tables(level)[step], whole.standard_errors(level)[step], chain.sums(wanted[level], step)
        for name, each in zip(("estimates", "errors", "values"), numbers, strict=True):
            parts = b"".join(found[number, node][name] for node in range(tree.sizes[1]))
            assert parts == shuffled(each, own[number]).tobytes()
    leaves = b"".join(found[LEAVES, node]["values"] for node in range(tree.sizes[1]))
    assert leaves == wanted[-1].astype("<i8").tobytes()


def shuffled(table: NDArray[Any], groups: NDArray[np.int64]) -> NDArray[Any]:
    """A table in an order of its own: the group at each place of the chain has that number there."""
    found = np.empty_like(table)
    found[:, groups] = table
    return found


def test_what_cannot_be_read_is_refused_in_our_own_words(
    spark: SparkSession, table: SparkTable, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    columns = {"sex": [[CANARY]] * 3, "age": [CANARY] * 3}
    pq.write_table(pa.table(columns), tmp_path / "nested.parquet")
    domain = Domain((Attribute.categories("sex", ["f"]),))
    damaged = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"sex": [CANARY] * 500}), damaged, compression="none", use_dictionary=False)
    content = bytearray(damaged.read_bytes())
    content[20:60] = b"\xff" * 40
    damaged.write_bytes(content)
    cases = [
        (SparkTable("nowhere"), DOMAIN, "knows no table 'nowhere'"),
        (table, Domain((Attribute.categories("job", ["none"]),)), "no column 'job'"),
        (SparkTable(f"parquet.`{tmp_path / 'nested.parquet'}`"), domain, "'sex' does not hold codes"),
        (SparkTable(f"parquet.`{damaged}`"), domain, "cannot be read to its end"),
    ]
    for source, asked, words in cases:
        with pytest.raises(UnreadableSource, match=words) as caught:
            counts(source, asked)
        refusal = caught.value.with_traceback(caught.tb.tb_next)
        assert CANARY not in everything_said(refusal)
    assert CANARY not in "".join(capfd.readouterr())


def test_nothing_confidential_lies_on_the_cluster_in_the_clear(cluster: Cluster) -> None:
    """After all that was run above: logs, events, shuffled rows and what was put aside hold no record and no key."""
    words = [CANARY.encode(), KEY, KEY.hex().encode(), NOISE_KEY.content, NOISE_KEY.content.hex().encode()]
    files = [path for path in cluster.folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} >= {".data", ".log"}  # shuffled rows are among them
    for path in files:
        content = path.read_bytes()
        assert not [word for word in words if word in content], path


def test_a_view_that_fails_on_a_value_does_not_tell_it_here(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    spark.sql(f"SELECT explode(array('7', '{CANARY}')) AS age").createOrReplaceTempView("texts")
    spark.sql("SELECT CAST(age AS int) AS age FROM texts").createOrReplaceTempView("numbers")
    with pytest.raises(UnreadableSource) as caught:
        counts(SparkTable("numbers"), Domain((Attribute.numbers("age", 0, 9),)))
    refusal = caught.value.with_traceback(caught.tb.tb_next)
    assert CANARY not in everything_said(refusal) + "".join(capfd.readouterr())


def test_a_worker_that_dies_changes_nothing(spark: SparkSession, cluster: Cluster) -> None:
    @dataclass(frozen=True)
    class Slow:
        sampler: LaplaceSampler

        def draw(self, key: NoiseKey, cells: range) -> NDArray[np.int64]:
            time.sleep(0.25)
            return self.sampler.draw(key, cells)

    sampler = LaplaceSampler(Fraction(2))
    killed: list[int] = []
    done = threading.Event()

    def pull_the_plug() -> None:
        """Once some blocks are done and others are not."""
        tracker = spark.sparkContext.statusTracker()
        while not done.is_set():
            for stage in tracker.getActiveStageIds():
                told = tracker.getStageInfo(stage)
                if told is not None and told.numTasks == 16 and told.numCompletedTasks >= 2:
                    killed.append(told.numCompletedTasks)
                    cluster.kill("second worker")
                    return
            time.sleep(0.05)

    spark.conf.set("spark.sql.shuffle.partitions", "16")
    killer = threading.Thread(target=pull_the_plug)
    killer.start()
    [found] = measured_here(
        spark, numbered(spark, 8192), [Kernel(8192, cast("Any", Slow(sampler)), NOISE_KEY)], block_rows=512
    )
    done.set()
    killer.join()
    assert 2 <= killed[0] < 16
    assert np.array_equal(found, np.arange(8192) % 5 + sampler.draw(NOISE_KEY, range(8192)))
    assert "SparkListenerExecutorRemoved" in events(cluster)


def fake_session(master: str, **settings: str) -> Any:
    configuration = SimpleNamespace(get=lambda name, other: settings.get(name.replace(".", "_"), other))
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, getConf=lambda: configuration))


def test_a_cluster_that_does_not_encrypt_is_refused() -> None:
    check_sealed(fake_session("local[2]"))
    sealed = {
        "spark_authenticate": "true",
        "spark_network_crypto_enabled": "true",
        "spark_io_encryption_enabled": "true",
    }
    check_sealed(fake_session("spark://host:7077", **sealed))
    for name in sealed:
        with pytest.raises(UnreadableSource, match="does not encrypt"):
            check_sealed(fake_session("spark://host:7077", **sealed | {name: "false"}))


def test_blocks_are_opened_before_their_counts() -> None:
    """The kernel alone, without a cluster: a count of a row that is not there is refused."""
    kernels = [Kernel(10, LaplaceSampler(Fraction(1)), NOISE_KEY, edges=(0, 8, 10))]
    layout = spark_engine._Layout((kernels[0].block_edges(1),), (0, 2))

    def batches(*names: str, rows: list[tuple[int, int, int]]) -> Iterator[pa.RecordBatch]:
        yield pa.record_batch(
            {name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}
        )

    opened = [(0, -1, 0), (0, 3, 5), (1, -1, 0), (1, 9, 1)]
    parts = list(noisy_blocks(batches("block", "row", "records", rows=opened), kernels, layout))
    assert [part.column("first")[0].as_py() for part in parts] == [0, 8]
    values = np.concatenate([np.frombuffer(part.column("values")[0].as_py(), "<i8") for part in parts])
    noise = LaplaceSampler(Fraction(1)).draw(NOISE_KEY, range(10))
    assert (values - noise).tolist() == [0, 0, 0, 5, 0, 0, 0, 0, 0, 1]
    with pytest.raises(InvalidRequest, match="no kernel has"):
        list(noisy_blocks(batches("block", "row", "records", rows=opened[1:]), kernels, layout))
    [placed] = layout.placed(batches("kernel", "row", "records", rows=[(0, 7, 1), (0, 8, 1)]))
    assert placed.column("block").to_pylist() == [0, 1]
    for row in (-1, 10):
        with pytest.raises(InvalidRequest, match="no kernel has"):
            list(layout.placed(batches("kernel", "row", "records", rows=[(0, row, 1)])))


@pytest.mark.parametrize("edges", [(0, 5), (1, 10), (0, 7, 3, 10)])
def test_blocks_are_all_rows(edges: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRequest, match="all rows"):
        Kernel(10, LaplaceSampler(Fraction(1)), NOISE_KEY, edges).block_edges(4)
