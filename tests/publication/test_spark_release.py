"""A whole publication on a real cluster: the bytes of one machine, whoever dies, and the loss counted once."""

from __future__ import annotations

import gc
import hmac
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from sqlalchemy import NullPool, create_engine, text
from tests.publication.test_marginals_published import MANY
from tests.publication.test_marginals_published import SETS as MARGINALS
from tests.publication.test_publish import release_spec_of
from tests.publication.test_source_parts import odd_csv, odd_parquet
from tests.publication.towns import CODES, RHO, SHARES, TABLE, write_towns

from dualmandate.apps.cli import app
from dualmandate.apps.output import run
from dualmandate.errors import CannotWrite, ReleaseConflict
from dualmandate.ledger import Account, Approval, Ledger, ReleaseState, make_key, open_ledger, read_key
from dualmandate.ledger.chain import SecretFolder
from dualmandate.mechanism import Noise
from dualmandate.mechanism.noise import SAMPLER_VERSION, NoiseKey, Sampler
from dualmandate.planning.program import load
from dualmandate.planning.release_spec import load_release, release_spec_of_plan
from dualmandate.population import Attribute, Confidential, Domain, PrivacyLoss, Protection
from dualmandate.publication import (
    AttributeRule,
    CsvFile,
    DatabaseTable,
    ParquetFile,
    Rules,
    Source,
    SparseHistogram,
    ValueRule,
)
from dualmandate.publication import publish as publishing
from dualmandate.publication.consistency import PartitionChain, Tree, estimate
from dualmandate.publication.marginal_counts import MarginalCounts
from dualmandate.publication.measuring import fingerprint, fingerprint_of
from dualmandate.publication.release_folder import is_complete
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.sources import Frame
from dualmandate.publication.spark import release as spark_release
from dualmandate.publication.spark.release import SubtreeDivision, divided, in_file
from dualmandate.publication.spark.subtrees import KernelPlace, SubtreeCut
from dualmandate.publication.spark.tabulating import (
    PartedRecords,
    counted_cells,
    counted_marginals,
    gathered_cells,
    parted_records,
)
from dualmandate.publication.tabulating import TabulationSpec, tabulate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.publication.cluster import Cluster

pytestmark = [
    pytest.mark.spark,
    # Spark leaves sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:.*<socket:pytest.PytestUnraisableExceptionWarning"),
]
SECRET = b"the secret of a test, 32 bytes.."
NUMBERS = ("measurements", "tables", "records")  # folders of what must be equal
TASKS = 12  # of a step on the cluster
PATIENCE = 300.0  # seconds for a publication, on a machine with other work


@pytest.fixture(autouse=True)
def _collect_sockets() -> Iterator[None]:
    yield
    gc.collect()


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    """A project with an approved plan for a cluster, and what the ledger holds."""
    folder = tmp_path / "towns"
    write_towns(folder, "spark")
    (folder / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    state = folder / ".dualmandate"
    ledger = open_ledger(state / "ledger.sqlite", make_key(state / "key"), create=True)
    approve(ledger, order_for(folder))
    return folder


def approve(ledger: Ledger, order: ReleaseSpec) -> None:
    ledger.open_account(Account("residents", "person", PrivacyLoss.concentrated(5)), by="Ann")
    ledger.approve(Approval("residents", order.plan_digest, order.charge, "person", by="Ben"))


def order_for(folder: Path) -> ReleaseSpec:
    return release_spec_of_plan(load(folder / "program.toml").plan())


def ledger_of(folder: Path) -> Ledger:
    state = folder / ".dualmandate"
    return open_ledger(state / "ledger.sqlite", read_key(state / "key"))


def numbers_of(release: Path) -> dict[str, bytes]:
    """Every file of measurements, estimates and tables."""
    paths = [path for name in NUMBERS for path in (release / name).iterdir()]
    return {path.relative_to(release).as_posix(): path.read_bytes() for path in paths}


@contextmanager
def secret_is(content: bytes) -> Iterator[None]:
    """Every release has the same secret."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SecretFolder, "open", lambda *_: Confidential("a test", content))
        yield


def published_here(folder: Path, out: Path, secret: bytes) -> dict[str, bytes]:
    """The same plan under the same secret on one machine."""
    order = replace(order_for(folder), engine="local")
    ledger = open_ledger(out / "ledger.sqlite", make_key(out / "key"), create=True)
    approve(ledger, order)
    with secret_is(secret):
        asked = publishing.PublicationRequest("Eve", "people.parquet", other_ledger="to compare", unchecked=True)
        found = publishing.publish(order, ParquetFile(folder / "people.parquet"), ledger, out=out, request=asked)
    assert "on the machine that published" in json.loads((found / "release.json").read_text("utf-8"))["engine"]
    return numbers_of(found)


def check_release(folder: Path, release: str) -> Path:
    """Complete, settled, its loss counted once; no file of the cluster's work is left."""
    ledger, found = ledger_of(folder), folder / "releases" / release
    assert ledger.release(release).state is ReleaseState.SETTLED
    assert is_complete(found, ledger.release(release).written_digest)
    assert ledger.spent("residents") == RHO
    assert [path.name for path in (folder / "releases").iterdir()] == [release]
    return found


def started(folder: Path, cluster: Cluster, *words: str) -> subprocess.Popen[str]:
    """`dualmandate publish` as it is installed, in a process of its own, on the cluster."""
    command = [
        str(Path(sys.executable).with_name("dualmandate")),
        "publish",
        "program.toml",
        "--unchecked",
        "--by",
        "Eve",
        *words,
    ]
    settings = cluster.variables() | {"PYSPARK_SUBMIT_ARGS": f"--master {cluster.master} pyspark-shell"}
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=os.environ | settings, stdout=pipe, stderr=pipe, text=True, start_new_session=True
    )


def test_a_publication_whose_machine_dies_is_taken_up_again(cluster: Cluster, towns: Path, tmp_path: Path) -> None:
    """Real processes: killed with its Java when the measurements were on the disk; resumed, it is the same release."""
    process, until = started(towns, cluster), time.monotonic() + PATIENCE
    ledger = ledger_of(towns)
    while not measured(ledger) and time.monotonic() < until:
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    [entry] = ledger.releases("residents")
    assert entry.state is ReleaseState.MEASURED
    people = (towns / "people.parquet").read_bytes()
    pq.write_table(pq.read_table(towns / "people.parquet").slice(1), towns / "people.parquet")  # nobody looks at them
    secret = ledger.secret(entry.name).open_for("a test")
    resumed = started(towns, cluster, "--resume", entry.name)
    said = resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 0, said
    assert not [word for word in ("WARN", "Stage", "log4j") if word in said[1]], said  # Java is not heard here
    found = check_release(towns, entry.name)
    (towns / "people.parquet").write_bytes(people)
    assert numbers_of(found) == published_here(towns, tmp_path / "here", secret)


def measured(ledger: Ledger) -> bool:
    return any(entry.state is ReleaseState.MEASURED for entry in ledger.releases("residents"))


def by_workers(spark: SparkSession, source: Source, spec: TabulationSpec, key: bytes) -> tuple[Any, Any, int]:
    with parted_records(spark, source, spec) as found:
        assert isinstance(found, PartedRecords), found
        return gathered_cells(counted_cells(found, spec, key=key))


@pytest.mark.parametrize("form", ["csv", "parquet", pytest.param("database", marks=pytest.mark.postgres)])
def test_workers_read_files_and_databases_as_one_machine_does(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, form: str
) -> None:
    """Each some parts: harmed CSV, Parquet with texts that are none, and a table of PostgreSQL in one snapshot."""
    source: Source
    if form == "database":
        postgres_url = request.getfixturevalue("postgres_url")
        source = DatabaseTable("people", postgres_url)
        driver = postgres_url.replace("postgresql:", "postgresql+psycopg:")
        with create_engine(driver, poolclass=NullPool).begin() as database:
            database.execute(text("CREATE TABLE people (word text, sex char(3), id bigint)"))
            people = "SELECT chr((n % 9)::int + 97), 'f', n % 5000 FROM generate_series(1, 12000) AS n"
            database.execute(text(f"INSERT INTO people {people}"))
    else:
        path = tmp_path / f"odd [1] file.{form}"
        source = odd_csv(path, 1) if form == "csv" else odd_parquet(path)
    levels = [*(chr(97 + n) for n in range(8)), "a,b", 'say "a"', "é", "07"]
    domain = Domain((Attribute("word", tuple(levels), missing="?"), Attribute("sex", ("f", "m"))))
    rules = Rules({name: AttributeRule(ValueRule.DROP, ValueRule.DROP) for name in ("word", "sex")})
    for protection in (Protection(), Protection(most_records_per_unit=2, identifier="id")):
        spec = TabulationSpec(domain, protection, rules)
        cells, counts, read = by_workers(spark, source, spec, SECRET)
        box = tabulate(source, domain, protection=protection, rules=rules, key=SECRET, sparse=True).open_for("a test")
        assert isinstance(box.histogram, SparseHistogram)
        assert (cells.tolist(), counts.tolist()) == (box.histogram.cells.tolist(), box.histogram.counts.tolist())
        assert read == box.records_read
        assert 0 < counts.sum() < read


def test_marginals_are_counted_by_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    """Of a domain of 10²² cells, whose units have at most two records; the sums are those of one machine."""
    path, generator = tmp_path / "many.csv", np.random.default_rng(4)
    rows = np.column_stack([generator.integers(0, 10, (3000, 22)), generator.integers(0, 1200, 3000)])
    lines = [",".join([*MANY.names, "unit"]), *(",".join(map(str, row)) for row in rows.tolist())]
    path.write_text("\n".join(lines), encoding="utf-8")
    for protection in (Protection(), Protection(most_records_per_unit=2, identifier="unit")):
        with parted_records(spark, CsvFile(path), TabulationSpec(MANY, protection, Rules())) as found:
            assert isinstance(found, PartedRecords)
            there = counted_marginals(found, TabulationSpec(MANY, protection, Rules()), MARGINALS, key=SECRET)
        box = tabulate(CsvFile(path), MANY, protection=protection, rules=Rules(), key=SECRET, marginals=MARGINALS)
        here = box.open_for("a test")
        assert isinstance(there.histogram, MarginalCounts)
        assert isinstance(here.histogram, MarginalCounts)
        assert there.histogram.counts.tobytes() == here.histogram.counts.tobytes()
        assert (there.histogram.total, there.records_read) == (here.histogram.total, here.records_read)


def test_what_workers_cannot_read_is_tabulated_here_and_said(spark: SparkSession, towns: Path) -> None:
    order, path = order_for(towns), towns / "people.parquet"
    spec = TabulationSpec(order.domain, order.protection, order.rules)
    frame = Frame.of(pq.read_table(path), "people")
    with path.open("rb") as opened:
        cases: dict[str, Source] = {
            "in its memory": frame,
            "workers do not see": ParquetFile(f"/proc/self/fd/{opened.fileno()}"),
        }
        for words, source in cases.items():
            with parted_records(spark, source, spec) as found:
                assert words in str(found)
    secret = Confidential("a test", SECRET)
    told = {}
    for source in (ParquetFile(path), frame):
        with spark_release.counted_on_cluster(order, source, key=bytes(32)) as counted:
            told[counted.words] = counted.fingerprint(secret)
    assert [("machine that published" in words) for words in told] == [False, True]
    assert len(set(told.values())) == 1


CROSSING = TABLE.format(name="ages", by='"age"', share="1/10 * 1/1")


def test_tables_that_cross_are_measured_by_the_workers(spark: SparkSession, tmp_path: Path) -> None:
    """No count of a cell comes here; noise and tables are those of one machine, and progress is told."""
    program = write_towns(tmp_path, "spark")
    shared = program.read_text("utf-8").replace('share = "1/5 * 1/1"', 'share = "3/20 * 1/1"')
    program.write_text(shared + CROSSING, encoding="utf-8")
    wanted = published_here(tmp_path, tmp_path / "here", SECRET)
    ledger = open_ledger(tmp_path / "ledger.sqlite", make_key(tmp_path / "key"), create=True)
    approve(ledger, order_for(tmp_path))
    told = Told([])
    with secret_is(SECRET):
        found = publishing.publish(
            order_for(tmp_path),
            ParquetFile(tmp_path / "people.parquet"),
            ledger,
            out=tmp_path / "out",
            request=publishing.PublicationRequest("Eve", "people", other_ledger="to compare", unchecked=True),
            progress=told,
        )
    assert numbers_of(found) == wanted
    words = json.loads((found / "release.json").read_text("utf-8"))["engine"]
    assert "a block of rows at a time" in words
    assert "do not nest" in words
    assert any("measuring on the cluster: tasks" in each for each in told.words)


@dataclass(frozen=True)
class Told:
    """What a publication says that it does."""

    words: list[str]

    def __call__(self, words: str) -> None:
        self.words.append(words)

    def count(self, words: str, done: int, of: int, /) -> None:
        assert 0 <= done <= of
        self.words.append(words)


def plug_pulled(spark: SparkSession, cluster: Cluster, begun: Path, over: threading.Event) -> list[int]:
    """Kill a worker once noise is drawn, and some of the tasks of that step are done and others are not."""
    killed: list[int] = []
    tracker = spark.sparkContext.statusTracker()
    while not (killed or over.is_set()):
        for stage in tracker.getActiveStageIds() if begun.exists() else ():
            told = tracker.getStageInfo(stage)
            if told is not None and told.numTasks == TASKS and told.numCompletedTasks >= 2:
                killed.append(told.numCompletedTasks)
                cluster.kill("second worker")
                break
        time.sleep(0.02)
    return killed


def test_a_program_is_published_by_the_cluster_though_a_worker_dies(
    spark: SparkSession, cluster: Cluster, towns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`dualmandate publish` from the records to the tables: byte for byte those of one machine under the same key."""
    wanted = published_here(towns, tmp_path / "here", SECRET)
    begun, sampler = tmp_path / "begun", Noise.sampler

    @dataclass(frozen=True)
    class Slow:  # here: workers do not know the modules of the tests
        sampler: Sampler

        def draw(self, key: NoiseKey, cells: range) -> NDArray[np.int64]:
            begun.touch()
            time.sleep(0.2)
            return self.sampler.draw(key, cells)

    monkeypatch.setattr(Noise, "sampler", lambda self: Slow(sampler(self)))
    monkeypatch.chdir(towns)
    spark.conf.set("spark.sql.shuffle.partitions", str(TASKS))
    killed: list[int] = []
    over = threading.Event()
    killer = threading.Thread(target=lambda: killed.extend(plug_pulled(spark, cluster, begun, over)))
    killer.start()
    with secret_is(SECRET):
        status = run(app, ["publish", "program.toml", "--unchecked", "--by", "Eve", "--other-ledger", "to compare"])
    over.set()
    killer.join()
    assert status == 0
    assert 2 <= killed[0] < TASKS
    [release] = [entry.name for entry in ledger_of(towns).releases("residents")]
    found = check_release(towns, release)
    assert numbers_of(found) == wanted
    facts = json.loads((found / "release.json").read_text("utf-8"))
    assert "tabulated by the cluster" in facts["engine"]
    assert "never held the counts of the leaves" in facts["engine"]
    assert {effect["table"] for effect in facts["consistency_effects"]} == set(SHARES)
    interval = load_release(found).interval("blocks by sex", block=CODES[0], sex="f")
    assert interval.probability >= 0.95


def test_records_that_changed_while_they_were_read_are_refused(towns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that died may read its part again: what was measured must be what the release was bound to."""
    macs = iter(["1" * 64, "2" * 64])

    @contextmanager
    def counted(*_: object, **__: object) -> Iterator[Any]:
        yield SimpleNamespace(words="", fingerprint=lambda _: next(macs))

    @contextmanager
    def measured(*_: object, **__: object) -> Iterator[Any]:
        yield SimpleNamespace()

    monkeypatch.setattr(ReleaseSpec, "check", lambda _: None)
    monkeypatch.setattr(publishing, "_pages_are_whole", lambda *_: True)
    monkeypatch.setattr(spark_release, "counted_on_cluster", counted)
    monkeypatch.setattr(spark_release, "measured_on_cluster", measured)
    order, source = order_for(towns), ParquetFile(towns / "people.parquet")
    with pytest.raises(ReleaseConflict, match="begun on other data"):
        publishing.publish(
            order,
            source,
            ledger_of(towns),
            out=towns / "releases",
            request=publishing.PublicationRequest("Eve", "people.parquet", unchecked=True),
        )


def test_an_order_is_divided_where_its_tables_allow_it(towns: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order = order_for(towns)
    division = divided(order)
    assert isinstance(division, SubtreeDivision)
    assert (division.level, "6 subtrees" in division.words) == (1, True)
    assert division.largest_subtree(1) == 2 + 8 + 3 * (2 + 8) + 12 * (2 + 8) + 1  # a county, its tracts, its blocks
    monkeypatch.setattr(spark_release, "LARGEST_SUBTREE", division.largest_subtree(1) - 1)
    assert divided(order).level == 2  # type: ignore[union-attr]
    monkeypatch.setattr(spark_release, "LARGEST_SUBTREE", 1)
    assert divided(order).level == 2  # type: ignore[union-attr]
    monkeypatch.setattr(spark_release, "MOST_IN_SUBTREE", 1)
    assert "too many to be one piece of work" in str(divided(order))


def test_what_cannot_be_divided_says_why(towns: Path) -> None:
    assert "do not nest" in str(divided(release_spec_of()))
    text = (towns / "program.toml").read_text("utf-8")
    block, age = 'attributes.block   = { codes = "blocks.csv" }\n', "attributes.age     = { from = 0, to = 3 }\n"
    (towns / "program.toml").write_text(text.replace(block, "").replace(age, age + block), encoding="utf-8")
    assert "side by side" in str(divided(order_for(towns)))
    (towns / "program.toml").write_text(text, encoding="utf-8")
    (towns / "blocks.csv").write_text("".join(f"{line}\n" for line in ("block", *CODES[::-2], *CODES[::2])), "utf-8")
    assert "side by side" in str(divided(order_for(towns)))


def test_the_fingerprint_is_that_of_the_whole(towns: Path) -> None:
    """However the cells are cut into pieces."""
    order, secret = order_for(towns), Confidential("a test", SECRET)
    source = ParquetFile(towns / "people.parquet")
    box = tabulate(source, order.domain, protection=order.protection, rules=order.rules, key=bytes(32), sparse=True)
    found = box.open_for("a test").histogram
    assert isinstance(found, SparseHistogram)
    for pieces in (1, 3, 50):
        cells, counts = (np.array_split(each, pieces) for each in (found.cells, found.counts))
        told = fingerprint_of(order, secret, occupied=len(found.cells), cells=cells, counts=counts)
        assert told == fingerprint(order, box, secret)
    versions = [b"histogram/1", str(SAMPLER_VERSION).encode(), order.plan_digest.encode(), b"(72, 4, 2)"]
    size = len(found.cells).to_bytes(8, "little")
    text = b"".join(len(each).to_bytes(8, "little") + each for each in versions)
    text += size + found.cells.tobytes() + size + found.counts.tobytes()
    assert told == hmac.new(SECRET, text, "sha256").hexdigest()


def test_numbers_in_a_file_take_their_room_at_once(tmp_path: Path) -> None:
    numbers = in_file(tmp_path, 3, np.int64)
    numbers[:] = [1, 2, 3]
    assert numbers.sum() == 6
    assert not list(tmp_path.iterdir())  # the file has no name, and goes with whoever made it
    with pytest.raises(CannotWrite):
        in_file(tmp_path, 2**58, np.int64)


def test_blocks_other_than_those_published_are_refused() -> None:
    """A worker that died and read other records again would give other blocks with the same noise."""
    tree, chain = Tree((np.zeros(1, dtype=np.int64),)), PartitionChain((np.zeros(2, dtype=np.int64),))
    weights = estimate(tree, chain, {(1, 1): np.ones((1, 2), dtype=np.int64)}, {(1, 1): 1.0}).upward.weights
    values = np.array([3, 4], dtype="<i8").tobytes()
    cut = SubtreeCut(tree, weights, 0, {0: KernelPlace((1, 1), np.array([1, 0]))}, {(0, 0): sha256(values).digest()})
    block = {"kernel": 0, "block": 0, "values": values}
    assert cut.of_subtree([block])[1, 1].tolist() == [[4, 3]]
    with pytest.raises(ReleaseConflict, match="changed while"):
        cut.of_subtree([block | {"values": np.array([3, 5], dtype="<i8").tobytes()}])
