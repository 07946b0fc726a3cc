"""From which number of records on a cluster pays: the same program published on one machine and by Spark.

Generated persons of 20,000 blocks, in row groups of a million, are tabulated, measured and made consistent with four
tables at four levels. Each side has a process of its own; the cluster is Spark's local one, two workers in one Java
whose memory is limited, and its processor seconds are those of Java and of all Pythons that it started. What a cluster
costs beside the records does not grow with them: from its seconds for few and for many records follow a fixed cost and
seconds a million records, and from these the number of records from which on some cores beat one machine.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np

from dualmandate.benchmarks.harness import BenchmarkRow, apart, check, installed, peak_megabytes
from dualmandate.benchmarks.redistricting import SPENT, TABLE
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.planning.program import Program, load
from dualmandate.planning.release_spec import load_release, release_spec_of_plan
from dualmandate.population import PrivacyLoss
from dualmandate.publication import ParquetFile
from dualmandate.publication.publish import PublicationRequest, publish

RECORDS = (10**5, 10**6, 10**7)
MEMORY = "1g"  # of Java, besides the Pythons
CORES = 64  # of a cluster that is computed with
CHUNK = 10**6
COUNTIES, TRACTS, BLOCKS, AGES, SEXES = 20, 50, 20, 18, 2
RHO = 1
BY = {"areas": '"county"', "tracts by sex": '"tract", "sex"', "blocks by sex": '"block", "sex"'}
BY |= {"blocks by sex and age": '"block", "sex", "age"'}

_PROGRAM = """\
[program]
schema = 1
name   = "cluster"

[population]
account            = "persons"
unit               = "person"
neighbors          = "replace-one"
population_size    = {{ value = {records}, unit = "person", source = "generated" }}
source             = "persons.parquet"
dropping_is_public = true

[population.attributes]
block = {{ codes = "blocks.csv" }}
age   = {{ from = 0, to = {last_age} }}
sex   = {{ from = 0, to = {last_sex} }}

[population.hierarchies.areas]
attribute = "block"
prefixes  = {{ county = 2, tract = 4 }}

"""
_WRITTEN = """\
[publication]
formats = []
engine  = "{engine}"
"""


def rows(progress: Callable[[str], None], *, records: tuple[int, ...] = RECORDS) -> list[BenchmarkRow]:
    """Seconds and processor seconds of both sides for each number of records, and from how many on a cluster pays."""
    if installed("pyspark") is None:
        return []
    found, seconds = list[BenchmarkRow](), dict[str, list[float]]()
    for number in records:
        with tempfile.TemporaryDirectory() as folder:
            progress(f"{number:,} persons")
            generate(Path(folder, "persons.parquet"), number)
            took = {engine: apart(published, engine, folder, number) for engine in ("local", "spark")}
        for unit in ("seconds", "processor seconds", "megabytes"):
            here, there = (took[engine][unit] for engine in ("local", "spark"))
            found.append(BenchmarkRow(f"{number:,} persons, two workers", there, unit, None, "one machine", here))
        for engine, each in took.items():
            seconds.setdefault(engine, []).append(each["processor seconds"])
    many = pays_from(records, seconds["local"], seconds["spark"])
    found.append(BenchmarkRow(f"pays from, computed for {CORES} cores", many, "persons"))
    return found


def pays_from(records: tuple[int, ...], here: list[float], there: list[float]) -> float | None:
    """N with F + r·N/cores = f + s·N: both sides as straight lines through the least and the most records.

    One machine has one core here. None where no number is enough.
    """
    (fixed, rate), (own_fixed, own_rate) = (_line(records, each) for each in (there, here))
    gained = own_rate - rate / CORES
    return max((fixed - own_fixed) / gained, 0.0) if gained > 0 else None


def _line(records: tuple[int, ...], seconds: list[float]) -> tuple[float, float]:
    rate = (seconds[-1] - seconds[0]) / (records[-1] - records[0])
    return seconds[0] - rate * records[0], rate


def codes() -> list[str]:
    """Blocks whose first digits are their county and their tract."""
    areas = [f"{county:02}{tract:02}" for county in range(COUNTIES) for tract in range(TRACTS)]
    return [f"{area}{block:02}" for area in areas for block in range(BLOCKS)]


def generate(path: Path, records: int) -> None:
    """Persons under a fixed seed, written a million at a time."""
    import pyarrow
    from pyarrow import parquet

    generator, blocks = np.random.default_rng(9), pyarrow.array(codes())
    fields = [("block", pyarrow.dictionary(pyarrow.int16(), pyarrow.string())), ("age", pyarrow.int8())]
    schema = pyarrow.schema([*fields, ("sex", pyarrow.int8())])
    with parquet.ParquetWriter(path, schema) as writer:
        for start in range(0, records, CHUNK):
            size = min(CHUNK, records - start)
            at = pyarrow.array(generator.integers(0, len(blocks), size).astype(np.int16))
            ages, sexes = (generator.integers(0, levels, size).astype(np.int8) for levels in (AGES, SEXES))
            columns = [pyarrow.DictionaryArray.from_arrays(at, blocks), pyarrow.array(ages), pyarrow.array(sexes)]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))


def published(engine: str, folder: str, records: int) -> dict[str, float]:
    """Publish the persons of a folder by one engine: seconds, processor seconds and memory, of all its processes."""
    os.environ["PYSPARK_SUBMIT_ARGS"] = (
        f"--master local[2] --driver-memory {MEMORY} --conf spark.sql.shuffle.partitions=8 "
        "--conf spark.ui.enabled=false pyspark-shell"
    )
    work = Path(folder, engine)
    order = release_spec_of_plan(program_of(engine, work, records).plan())
    ledger = open_ledger(work / "ledger.sqlite", make_key(work / "key"), create=True)
    ledger.open_account(Account("persons", "person", PrivacyLoss.concentrated(RHO)), by="a benchmark")
    ledger.approve(Approval("persons", order.plan_digest, order.charge, "person", by="a benchmark"))
    started, used = time.perf_counter(), processor_seconds()
    source = ParquetFile(Path(folder, "persons.parquet"))
    asked = PublicationRequest("a benchmark", "persons", other_ledger="a benchmark", unchecked=True)
    found = publish(order, source, ledger, out=work / "out", request=asked)
    took = {"seconds": time.perf_counter() - started, "processor seconds": processor_seconds() - used}
    check(int(load_release(found).published("number of records").estimates[0]), records)
    return took | {"megabytes": peak_megabytes()}


def program_of(engine: str, folder: Path, records: int) -> Program:
    """What an agency would type, in a folder of its own."""
    folder.mkdir()
    (folder / "blocks.csv").write_text("\n".join(["block", *codes()]) + "\n", encoding="utf-8")
    text = _PROGRAM.format(records=records, last_age=AGES - 1, last_sex=SEXES - 1)
    text += SPENT.format(rho=RHO) + _WRITTEN.format(engine=engine)
    share = Fraction(1, len(BY))
    text += "".join(TABLE.format(name=name, by=by, share=f"{share} * 1/1", value=1) for name, by in BY.items())
    (folder / "program.toml").write_text(text, encoding="utf-8")
    return load(folder / "program.toml")


def processor_seconds() -> float:
    """Of this process and of all that it started and that still run, and of what these waited for."""
    ticks = sum(sum(times) for _, times in _running(os.getpid()))
    return ticks / os.sysconf("SC_CLK_TCK")


def _running(root: int) -> Iterator[tuple[int, list[int]]]:
    """A process and those below it, with their clock ticks: own, the system's, and of children that ended."""
    found, below = dict[int, list[int]](), dict[int, list[int]]()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        process = int(path.parent.name)
        found[process] = [int(each) for each in fields[11:15]]
        below.setdefault(int(fields[1]), []).append(process)
    waiting = [root]
    while waiting:
        process = waiting.pop()
        yield process, found.get(process, [])
        waiting += below.get(process, [])
