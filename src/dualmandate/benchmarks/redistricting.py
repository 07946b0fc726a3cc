"""Redistricting: Rhode Island's 25,181 blocks × 2,016 cells from microdata to a written release, and how good it is.

Five levels, replace-one neighbors, the state's total held, ρ = 2.56, all of it stated in a program file. One process
plans, approves and publishes it twice, each time with a ledger of its own and through the same act as every other
release, and starts with an empty store of compiled code: the first is cold, the second warm, and is read back. Another
repeats measuring, estimating and whole tables under many keys, holds every constraint against every key, and counts the
error of the final tables.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks import rhode_island
from dualmandate.benchmarks.harness import ONE_THREAD, BenchmarkRow, apart, check, peak_megabytes
from dualmandate.benchmarks.rhode_island import DIGITS, LEVELS, QUARTERS, RACES, Blocks
from dualmandate.ledger import Account, Approval, ReleaseState, make_key, open_ledger
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.mechanism import GAUSSIAN, Noise
from dualmandate.planning.program import Program, load
from dualmandate.planning.release_spec import load_release, release_spec_of_plan
from dualmandate.population import Confidential, PrivacyLoss
from dualmandate.publication import ParquetFile, tabulate
from dualmandate.publication.consistency import PartitionChain
from dualmandate.publication.consistency.estimates import BudgetAllocation, Pair, TreeEstimates, allocate_budget
from dualmandate.publication.consistency.top_down_rounding import Counts
from dualmandate.publication.measuring import exact_totals, measure
from dualmandate.publication.nested_tables import nest_together
from dualmandate.publication.post_processing import consistent_nest
from dualmandate.publication.publish import PublicationRequest, publish
from dualmandate.publication.release_folder import is_complete
from dualmandate.publication.release_spec import NUMBER_OF_RECORDS, ReleaseSpec
from dualmandate.report.release_page import release_page

KEYS = 20
RHO = Fraction(64, 25)
LEVEL_SHARES = tuple(Fraction(part, 4099) for part in (1544, 447, 687, 1256, 165))
KNOWN = (0, 0)  # the state's total
VALUES = (8.0, 4.0, 2.0, 1.0)  # of a squared error in each table of the chain: twice that of the next finer one
TABLES = ("total", "voting age", "Hispanic")
MOST_SECONDS = {"warm": 60.0, "cold": 120.0}
MOST_MEGABYTES = 4000.0
MOST_ON_DISK = 150.0  # megabytes
MOST_READING, MOST_IN_BULK = 2.0, 5.0  # processor seconds
LEAST_BLOCKS = 3000.0  # a second and core, of estimating and whole tables together
LARGEST_ERRORS = {"tract": (1.6, 2.5, 2.6), "block group": (1.4, 1.9, 1.9), "block": (3.25, 3.0, 1.55)}
BY = ((), ("voting_age", "hispanic"), ("race",), ("quarters",))  # what each table of the chain adds to the one before
CHAIN = ("total", "voting age × Hispanic", "× race", "× quarters")
BLOCK_LIST = "blocks.csv"

_HEADER = """\
[program]
schema      = 1
name        = "redistricting"
description = "Generated persons of Rhode Island in 2010, for a benchmark"

[population]
account            = "persons"
unit               = "person"
neighbors          = "replace-one"
population_size    = {{ value = {persons}, unit = "person", source = "2010 Census" }}
source             = "{source}"
dropping_is_public = true

[population.attributes]
block      = {{ codes = "{block_list}" }}
voting_age = ["no", "yes"]
hispanic   = ["no", "yes"]
race       = {{ from = 0, to = {last_race} }}
quarters   = {{ from = 0, to = {last_quarters} }}

[population.hierarchies.areas]
attribute = "block"
prefixes  = {{ {prefixes} }}

"""
SPENT = """\
[mechanism]
noise    = "gaussian"
strategy = "workload"
measured = "apart"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 0.000001, unit = "USD per person per rho", source = "so low that the limit decides" }}

[limits]
largest_rho = {rho}

"""
_NO_TEXT = """\
[publication]
formats = []
"""
TABLE = """
[[workload]]
name  = "{name}"
by    = [{by}]
share = "{share}"
value_of_accuracy = {{ value = {value}, unit = "USD per person^2", source = "assumed" }}
"""


@dataclass(frozen=True, eq=False)
class ReleaseDesign:
    """What is measured, where, and at which share of the loss."""

    blocks: Blocks
    chain: PartitionChain
    sharing: BudgetAllocation

    @classmethod
    def of(cls, blocks: Blocks) -> ReleaseDesign:
        """The best shares along the chain."""
        chain, tree = rhode_island.chain(), blocks.tree
        values = {(level, k): value for level in range(1, tree.last + 1) for k, value in enumerate(VALUES)}
        return cls(blocks, chain, allocate_budget(tree, chain, LEVEL_SHARES, values, known=[KNOWN]))

    @property
    def noises(self) -> dict[Pair, Noise]:
        """Of each table; σ² = 1/(ρ·share), as a replaced record changes two numbers of a table."""
        return {pair: Noise(GAUSSIAN, 1 / (RHO * share)) for pair, share in self.sharing.shares().items()}


@dataclass(frozen=True, eq=False)
class ReleaseInMemory:
    """One release in memory, and the processor seconds of estimating and of whole tables."""

    estimates: TreeEstimates
    tables: tuple[Counts, ...]
    consistency_seconds: float


def rows(progress: Callable[[str], None], *, keys: int = KEYS) -> list[BenchmarkRow]:
    """Seconds, memory and speed of a release; then the error of its tables by level."""
    given = blocks_at_hand()
    case = f"{'Rhode Island' if given.real else 'generated blocks (no block file here)'}: {len(given.codes):,} blocks"
    with tempfile.TemporaryDirectory() as folder:
        persons = Path(folder, "persons.parquet")
        progress(f"{case}, persons")
        rhode_island.write_persons(rhode_island.cells(given), given, persons)
        progress(f"{case}, two releases")
        cold = ONE_THREAD | {"NUMBA_CACHE_DIR": str(Path(folder, "compiled"))}
        timed = apart(releases, str(persons), folder, environment=cold)
        progress(f"{case}, {keys} keys")
        told_of_keys = apart(errors_at_hand, str(persons), keys)
    found = [BenchmarkRow(case, timed[kind], f"seconds, {kind}", target=most) for kind, most in MOST_SECONDS.items()]
    found += [BenchmarkRow(case, timed[f"processor, {kind}"], f"processor seconds, {kind}") for kind in MOST_SECONDS]
    found.append(BenchmarkRow(case, timed["megabytes"], "megabytes", target=MOST_MEGABYTES))
    found.append(BenchmarkRow(case, timed["on disk"], "megabytes on disk", target=MOST_ON_DISK))
    unit = "processor seconds, read back, with one interval"
    found.append(BenchmarkRow(case, timed["interval"], unit, target=MOST_READING))
    unit = "processor seconds, read back, with all intervals of a block table"
    found.append(BenchmarkRow(case, timed["intervals"], unit, target=MOST_IN_BULK))
    unit = "blocks a second and core, consistency"
    found.append(BenchmarkRow(case, told_of_keys["blocks_a_second"], unit, target=LEAST_BLOCKS, is_floor=True))
    found += [
        BenchmarkRow(f"share of the loss: {name}", share, "of 1")
        for name, share in zip(CHAIN, timed["shares"], strict=True)
    ]
    return found + list(_error_rows(told_of_keys["errors"], keys, promised=LARGEST_ERRORS if given.real else {}))


def _error_rows(
    errors: dict[str, Any], keys: int, *, promised: Mapping[str, tuple[float, ...]]
) -> Iterator[BenchmarkRow]:
    """Errors are promised for Rhode Island; for generated blocks they are told."""
    for level, found in errors.items():
        targets = promised.get(level, (None,) * len(TABLES))
        for i, (table, target) in enumerate(zip(TABLES, targets, strict=True)):
            row = BenchmarkRow(
                f"{level}, {table}, {keys} keys", found["final"][i], "mean absolute error, persons", target=target
            )
            yield replace(row, peer="unbiased estimates", peer_value=found["unbiased"][i])


def blocks_at_hand() -> Blocks:
    """The published blocks, or generated ones."""
    path = rhode_island.block_file()
    return rhode_island.generated_blocks() if path is None else rhode_island.published_blocks(path)


def make(order: ReleaseSpec, persons: Path, key: int) -> ReleaseInMemory:
    """From microdata to whole tables, under a secret that protects nobody."""
    rules = order.protection, order.rules
    box = tabulate(
        ParquetFile(persons), order.domain, protection=rules[0], rules=rules[1], key=bytes(32), sparse=order.sparse
    )
    nest, secret = nest_together(order), Confidential("a secret of nobody", bytes(31) + bytes([key]))
    assert nest is not None
    measured, totals = tuple(measure(order, box, secret, mac="")), exact_totals(order, box)
    started = time.process_time()
    made = consistent_nest(order, nest, measured=measured, totals=totals)
    assert made.counts is not None
    return ReleaseInMemory(made.found.estimates, made.counts, time.process_time() - started)


def release(design: ReleaseDesign, persons: Path, folder: Path) -> Path:
    """One release and its ledger: planned, approved, published and settled; where the release lies."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = program_of(design, persons, folder).plan()
    order, source = release_spec_of_plan(plan, release_page), plan.program.source
    check(order.loss, PrivacyLoss.concentrated(RHO))
    assert source is not None
    ledger = open_ledger(folder / "ledger.sqlite", make_key(folder / "key"), create=True)
    ledger.open_account(Account(order.account, order.protection.unit, order.loss), by="benchmark")
    ledger.approve(Approval(order.account, plan.digest, plan.charge, order.protection.unit, by="benchmark"))
    request = PublicationRequest("benchmark", persons.name, other_ledger="a benchmark on drawn people", unchecked=True)
    found = publish(order, source, ledger, out=folder / "releases", request=request)
    entry = ledger.release(found.name)
    check((entry.state, ledger.spent(order.account)), (ReleaseState.SETTLED, RHO))
    return found


def releases(persons: str, folder: str) -> dict[str, Any]:
    """Two releases, one after the other: seconds of each, peak memory, and what the second takes on the disk."""
    found: dict[str, Any] = {}
    for kind in ("cold", "warm"):
        started, used = time.perf_counter(), time.process_time()
        design = ReleaseDesign.of(blocks_at_hand())
        at = release(design, Path(persons), Path(folder, kind))
        found[kind], found[f"processor, {kind}"] = time.perf_counter() - started, time.process_time() - used
        found["megabytes"] = max(peak_megabytes(), found.get("megabytes", 0.0))
        found["on disk"] = sum(path.stat().st_size for path in at.rglob("*") if path.is_file()) / 1e6
        if kind == "cold":
            shutil.rmtree(Path(folder, kind))
    check_release(design, at)
    for name, read in (("interval", check_interval), ("intervals", check_intervals)):
        started = time.process_time()
        read(design, at)
        found[name] = time.process_time() - started
    return found | {"shares": [float(share) for share in design.sharing.tables]}


def check_release(design: ReleaseDesign, at: Path) -> None:
    """A release is as it was written, and each table of it is that of the same whole persons in blocks."""
    from pyarrow import parquet

    tree, chain = design.blocks.tree, design.chain
    facts = (at / RELEASE_FILE).read_bytes()
    check(is_complete(at, hashlib.sha256(facts).hexdigest()), True)
    paths = {table["name"]: at / table["parquet"] for table in json.loads(facts)["tables"]}

    def values(name: str) -> NDArray[np.int64]:
        return np.asarray(parquet.read_table(paths[name], columns=["value"])["value"].to_numpy())

    cells = values(table_name(tree.last, chain.last)).reshape(-1, chain.sizes[-1])
    check(int(cells.sum()), int(values(NUMBER_OF_RECORDS)[0]))
    for level in range(tree.last, -1, -1):
        check(bool(cells.min() >= 0), True)
        for k in range(chain.last + 1):
            if (level, k) != KNOWN:
                check(bool(np.array_equal(chain.sums(cells, k).reshape(-1), values(table_name(level, k)))), True)
        cells = np.add.reduceat(cells, tree.starts[level - 1][:-1], axis=0) if level else cells


def check_interval(design: ReleaseDesign, at: Path) -> None:
    """A user reads the release back, and asks how wrong the estimate of the first tract may be."""
    found, table = load_release(at), table_name(LEVELS.index("tract"), 0)
    tract = found.published(table).labels[0][0]
    interval = found.interval(table, tract=tract)
    check(interval.lower <= found.estimate(table, tract=tract) <= interval.upper, True)
    check(interval.probability >= 0.95 and 0 < interval.upper - interval.lower < len(design.blocks.codes), True)


def check_intervals(design: ReleaseDesign, at: Path) -> None:
    """The same of every number of a table of blocks at once."""
    table = table_name(design.blocks.tree.last, 1)
    found = load_release(at).intervals(table)
    check(found.num_rows, len(design.blocks.codes) * design.chain.sizes[1])
    check(bool(np.all(found["upper"].to_numpy() > found["lower"].to_numpy())), True)


def errors_at_hand(persons: str, keys: int) -> dict[str, Any]:
    """Errors and speed on the blocks that are at hand."""
    return errors(ReleaseDesign.of(blocks_at_hand()), Path(persons), keys)


def errors(design: ReleaseDesign, persons: Path, keys: int) -> dict[str, Any]:
    """Mean absolute errors of total, voting age and Hispanic by level, of final tables and of unbiased estimates.

    And how many blocks a second of one processor were estimated and made whole, under the median key.
    """
    tree, chain = design.blocks.tree, design.chain
    truth = [chain.sums(rhode_island.cells(design.blocks), 1)]
    for starts in reversed(tree.starts):
        truth.insert(0, np.add.reduceat(truth[0], starts[:-1], axis=0))
    found, seconds = np.zeros((2, tree.last + 1, len(TABLES))), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        order = release_spec_of_plan(program_of(design, persons, Path(folder)).plan())
    for key in range(keys):
        made = make(order, persons, key)
        check_constraints(made, int(truth[0].sum()))
        seconds.append(made.consistency_seconds)
        for level, exact in enumerate(truth):
            for i, table in enumerate((chain.sums(made.tables[level], 1), made.estimates.tables(level)[1])):
                found[i, level] += mean_errors(table - exact) / keys
        del made
    kinds = "final", "unbiased"
    by_level = {name: dict(zip(kinds, found[:, level].tolist(), strict=True)) for level, name in enumerate(LEVELS)}
    return {"errors": by_level, "blocks_a_second": len(design.blocks.codes) / float(np.median(seconds))}


def mean_errors(difference: NDArray[Any]) -> NDArray[np.float64]:
    """Mean absolute errors from those of voting age × Hispanic (no-no, no-yes, yes-no, yes-yes)."""
    sums = difference.sum(axis=1), difference[:, 2:].sum(axis=1), difference[:, 1::2].sum(axis=1)
    return np.array([np.abs(each).mean() for each in sums])


def check_constraints(made: ReleaseInMemory, total: int) -> None:
    """Every count is at least 0, children add up to their parent, and the state to its exact total."""
    tree, tables = made.estimates.tree, made.tables
    check(int(tables[0].sum()), total)
    for level, table in enumerate(tables):
        check(bool(table.min() >= 0), True)
        if level:
            sums = np.add.reduceat(table, tree.starts[level - 1][:-1], axis=0)
            check(bool(np.array_equal(sums, tables[level - 1])), True)


def program_of(design: ReleaseDesign, persons: Path, folder: Path) -> Program:
    """What an agency would type to publish the tables of every level and grouping, each at its share of the loss."""
    blocks = design.blocks
    (folder / BLOCK_LIST).write_text("\n".join(["block", *blocks.codes]) + "\n", encoding="utf-8")
    text = _HEADER.format(
        persons=int(blocks.persons.sum()),
        source=persons.absolute(),
        block_list=BLOCK_LIST,
        last_race=RACES - 1,
        last_quarters=QUARTERS - 1,
        prefixes=", ".join(f'"{level}" = {digits}' for level, digits in zip(LEVELS[1:-1], DIGITS, strict=True)),
    )
    program = folder / "program.toml"
    text += SPENT.format(rho=float(RHO)) + _NO_TEXT + "".join(_tables(design.sharing))
    program.write_text(text, encoding="utf-8")
    return load(program)


def _tables(sharing: BudgetAllocation) -> Iterator[str]:
    for level, k in sharing.shares():
        yield TABLE.format(
            name=table_name(level, k),
            by=", ".join(f'"{name}"' for name in columns(level, k)),
            share=" * ".join(f"{part.numerator}/{part.denominator}" for part in sharing.parts(level, k)),
            value=VALUES[k],
        )


def columns(level: int, k: int) -> tuple[str, ...]:
    """What the table of a level and a grouping is by; the state is everybody."""
    return (*LEVELS[level : level + 1 if level else 0], *(name for names in BY[: k + 1] for name in names))


def table_name(level: int, k: int) -> str:
    """What the table of a level and a grouping is called."""
    return f"{LEVELS[level]}, {CHAIN[k]}"
