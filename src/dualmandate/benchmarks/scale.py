"""How planning, publishing and opening grow: with tables, areas, attributes, long axes and records, one at a time.

Each point runs in a process of its own, with one thread, at most so many processor seconds and so much memory; where it
is refused, the words of the refusal stand in its row. After the points of an axis that are published comes one that is
only planned, far beyond, to see what refuses it. What was measured is kept beside (`build/scale.json`), so that a run
that was ended goes on where it stopped. How an axis grows is the slope of the seconds over its two largest points that
were measured, in logarithms: by its own values, and by the numbers that are published, where these grow.
"""

from __future__ import annotations

import json
import math
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from importlib.metadata import version
from itertools import combinations, cycle, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dualmandate.benchmarks.harness import ONE_THREAD, BenchmarkRow, peak_megabytes

KEPT = Path("build/scale.json")
MOST_SECONDS = 900  # of a processor, for one point
MOST_MEMORY = 8 * 10**9  # bytes, of addresses
LARGEST_GROWTH = 1.2  # n log n, n the numbers that are published, or the records where these do not grow
STAGES = ("plan", "publish", "load")
SEED = 17
TABLE = """
[[workload]]
name = "{name}"
{asked}
value_of_accuracy = {{ value = 1, unit = "USD per person^2", source = "assumed" }}
"""
PROGRAM = """\
[program]
schema = 1
name = "scale"

[population]
account = "persons"
unit = "person"
neighbors = "add-or-remove"
dropping_is_public = true
population_size = {{ value = {records}, unit = "person", source = "generated" }}
source = "persons.parquet"

[population.attributes]
{attributes}
{hierarchy}{tables}
[mechanism]
noise = "{noise}"
{mechanism}
[preferences]
information_utility = "linear"
mean_disclosure_cost = {{ value = 10, unit = "USD per person per {loss}", source = "assumed" }}
"""


@dataclass(frozen=True)
class Point:
    """One program: how many levels each attribute has, what is asked, and how many records there are."""

    axis: str
    value: int
    sizes: tuple[int, ...]
    asked: tuple[str, ...]  # of each table, its keys in the program file
    records: int
    areas: bool = False  # whether the first attribute is a geography, with a code list
    mechanism: str = ""
    noise: str = "gaussian"
    is_beyond: bool = False  # only planned

    @property
    def name(self) -> str:
        return f"{self.axis}: {self.value:,}"

    def text(self) -> str:
        """The program file."""
        attributes = [f"a{n} = {{ from = 0, to = {size - 1} }}" for n, size in enumerate(self.sizes)]
        hierarchy = ""
        if self.areas:
            attributes[0] = 'a0 = { codes = "areas.csv" }'
            hierarchy = '\n[population.hierarchies.wide]\nattribute = "a0"\nprefixes = { state = 2, county = 4 }\n'
        tables = "".join(TABLE.format(name=f"table {n}", asked=asked) for n, asked in enumerate(self.asked))
        stated = {"hierarchy": hierarchy, "tables": tables, "mechanism": self.mechanism, "noise": self.noise}
        stated["loss"] = "rho" if self.noise == "gaussian" else "epsilon"
        return PROGRAM.format(records=self.records, attributes="\n".join(attributes), **stated)

    def write(self, folder: Path) -> None:
        """The program, its code list, and generated records in Parquet, a million at a time."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        (folder / "program.toml").write_text(self.text(), encoding="utf-8")
        codes = np.array([f"{n * 10**6 // self.sizes[0]:06d}" for n in range(self.sizes[0])]) if self.areas else None
        if codes is not None:
            (folder / "areas.csv").write_text("\n".join(["area", *codes]) + "\n", encoding="utf-8")
        draws, writer, records = np.random.default_rng(SEED), None, 1 if self.is_beyond else self.records
        for start in range(0, records, 10**6):
            count, columns = min(10**6, records - start), {}
            for n, size in enumerate(self.sizes):
                drawn = draws.integers(0, size, count, dtype=np.int32)
                columns[f"a{n}"] = pa.array(codes[drawn]) if codes is not None and n == 0 else pa.array(drawn)
            batch = pa.table(columns)
            writer = writer or pq.ParquetWriter(folder / "persons.parquet", batch.schema)
            writer.write_table(batch)
        if writer is not None:
            writer.close()


def _by(*places: int | str) -> str:
    return f"by = {json.dumps([place if isinstance(place, str) else f'a{place}' for place in places])}"


def points() -> Iterator[Point]:
    """Every point of every axis, the small ones first."""
    sets = [*combinations(range(12), 2), *combinations(range(12), 3)]
    for tables in (5, 20, 80, 200, 10_000):
        asked = tuple(_by(*each) for each in islice(cycle(sets), tables))
        yield Point("tables", tables, (10,) * 12, asked, 10**5, is_beyond=tables > 200)
    nested = (_by("state"), _by("county", 1), _by(0, 1, 2))
    for areas in (10**2, 10**3, 10**4, 10**5, 10**6):
        yield Point("areas", areas, (areas, 2, 9), nested, 10**5, areas=True, mechanism='strategy = "workload"\n')
    for attributes in (4, 10, 20, 40, 100, 1000):
        sizes = (10,) * attributes
        yield Point("attributes", attributes, sizes, ("every = 2",), 10**5, is_beyond=attributes > 100)
    sums = ('by = [{ attribute = "a0", sums = "prefix" }]',)
    for noise in ("gaussian", "geometric"):
        for levels in (2**8, 2**10, 2**12, 2**14, 2**16, 2**25):
            beyond = levels > 2**16
            yield Point(f"prefix levels, {noise} noise", levels, (levels,), sums, 10**5, noise=noise, is_beyond=beyond)
    some = (_by(0, 1), _by(1, 2), _by(2, 3), _by(0, 3), _by(0, 2))
    for records in (10**5, 10**6, 10**7, 10**8):
        yield Point("records", records, (20,) * 4, some, records)


def rows(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """Processor seconds and memory of every stage of every point, what was estimated, and how each axis grows."""
    kept, found = _kept(), dict[str, list[tuple[Point, Mapping[str, Any]]]]()
    for point in points():
        if point.name not in kept:
            progress(point.name)
            kept[point.name] = _measured(point)
            _keep(kept)
        found.setdefault(point.axis, []).append((point, kept[point.name]))
    return [row for axis, measured in found.items() for row in (*_of_points(measured), *_growth(axis, measured))]


def _of_points(measured: list[tuple[Point, Mapping[str, Any]]]) -> Iterator[BenchmarkRow]:
    for point, took in measured:
        for stage in STAGES:
            if stage not in took:
                break
            yield BenchmarkRow(f"{point.name}, {stage}", took[stage]["seconds"], "processor seconds")
            yield BenchmarkRow(f"{point.name}, {stage}", took[stage]["megabytes"], "megabytes")
        if "refused" in took:
            yield BenchmarkRow(f"{point.name}, {took['refused']}", None, "processor seconds")
        elif "publish" in took:
            estimate, disk = took["estimated"], took["publish"]["disk"]
            yield BenchmarkRow(f"{point.name}, publish, as estimated", estimate["seconds"], "processor seconds")
            yield BenchmarkRow(f"{point.name}, publish, as estimated", estimate["memory"] / 1e6, "megabytes")
            yield BenchmarkRow(f"{point.name}, on disk", disk, "megabytes")
            yield BenchmarkRow(f"{point.name}, on disk, as estimated", estimate["disk"] / 1e6, "megabytes")


def _growth(axis: str, measured: list[tuple[Point, Mapping[str, Any]]]) -> Iterator[BenchmarkRow]:
    """The exponents of each stage between the two largest points of an axis that have it."""
    for stage in STAGES:
        known = [(point.value, took) for point, took in measured if stage in took and not point.is_beyond]
        if len(known) > 1:
            (less, before), (more, after) = known[-2:]
            seconds = math.log(max(after[stage]["seconds"], 1e-3) / max(before[stage]["seconds"], 1e-3))
            numbers = math.log(after["numbers"] / before["numbers"])
            case, slope = f"{axis}, growth of {stage}", seconds / math.log(more / less)
            yield BenchmarkRow(case, slope, "exponent", target=None if numbers else LARGEST_GROWTH)
            if numbers:
                slope = seconds / numbers
                yield BenchmarkRow(f"{case}, by numbers published", slope, "exponent", target=LARGEST_GROWTH)


def _kept() -> dict[str, Any]:
    """What an earlier run of this version measured."""
    try:
        found = json.loads(KEPT.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return dict(found["points"]) if found.get("version") == version("dualmandate") else {}


def _keep(kept: Mapping[str, Any]) -> None:
    KEPT.parent.mkdir(exist_ok=True)
    draft = KEPT.with_suffix(".draft")
    draft.write_text(json.dumps({"version": version("dualmandate"), "points": kept}, indent=1), encoding="utf-8")
    draft.replace(KEPT)


def _measured(point: Point) -> dict[str, Any]:
    """The stages that were reached in a process of its own, and the words of what ended it, if anything did."""
    code = f"from {__name__} import run_point; run_point()"
    words = [sys.executable, "-c", code, json.dumps([point.axis, point.value])]
    ran = subprocess.run(
        words, capture_output=True, text=True, encoding="utf-8", check=False, env=os.environ | ONE_THREAD
    )
    lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("{")]
    took: dict[str, Any] = {key: value for line in lines for key, value in line.items()}
    if ran.returncode and "refused" not in took:
        stage = next((each for each in STAGES if each not in took), STAGES[-1])
        limit = ran.returncode in (-24, -9)  # by the system: its processor seconds are used up
        why = f"after {MOST_SECONDS:,} processor seconds" if limit else ran.stderr.strip().splitlines()[-1][:200]
        took["refused"] = f"{stage}: ended {why}"
    return took


def run_point() -> None:
    """In its own process: one point, a line of JSON a stage."""
    axis, value = json.loads(sys.argv[1])
    point = next(each for each in points() if (each.axis, each.value) == (axis, value))
    with TemporaryDirectory() as folder:
        place = Path(folder)
        point.write(place)
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        spent = int(time.process_time())
        resource.setrlimit(resource.RLIMIT_CPU, (spent + MOST_SECONDS, spent + MOST_SECONDS + 5))
        carry_out(place, publishes=not point.is_beyond)


def carry_out(folder: Path, *, publishes: bool = True) -> None:
    """Plan, publish and open the program of a folder, and print what each stage took, or what refused it."""
    from dualmandate.errors import Refusal
    from dualmandate.ledger import Account, Approval, make_key, open_ledger
    from dualmandate.planning.program import load
    from dualmandate.planning.release_spec import load_release, release_spec_of_plan
    from dualmandate.population import PrivacyLoss
    from dualmandate.publication.publish import PublicationRequest, publish
    from dualmandate.report.release_page import release_page

    def tell(stage: str, since: float, **more: float) -> None:
        used = {"seconds": time.process_time() - since, "megabytes": peak_megabytes(), **more}
        print(json.dumps({stage: used}), flush=True)

    stage = "plan"
    try:
        started = time.process_time()
        plan = load(folder / "program.toml").plan()
        tell("plan", started)
        assert plan.publishing is not None
        source = plan.program.source
        assert source is not None
        numbers = sum(table.query_count for table in plan.program.workload.tables)
        print(json.dumps({"estimated": plan.publishing.document(), "numbers": numbers}), flush=True)
        if not publishes:
            return
        ledger = open_ledger(folder / "ledger.sqlite", make_key(folder / "key"), create=True)
        cap = PrivacyLoss(Fraction(10**9), plan.charge.privacy_measure)
        ledger.open_account(Account("persons", "person", cap), by="benchmark")
        ledger.approve(Approval("persons", plan.digest, plan.charge, "person", by="benchmark"))
        stage, started = "publish", time.process_time()
        order = release_spec_of_plan(plan, release_page)
        request = PublicationRequest("benchmark", source.name, unchecked=True)
        made = publish(order, source, ledger, out=folder / "out", request=request)
        disk = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
        tell("publish", started, disk=disk / 1e6)
        stage, started = "load", time.process_time()
        release = load_release(made)
        release.published(plan.tables[-1].table)
        tell("load", started)
    except Refusal as refusal:
        print(json.dumps({"refused": f"{stage}: {refusal.what}, because {refusal.why}"}), flush=True)
