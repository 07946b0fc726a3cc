"""Redistricting: Rhode Island's 25,181 blocks × 2,016 cells from microdata to a written release, and how good it is.

Five levels, replace-one neighbors, the state's total held, ρ = 2.56. One process makes a release twice, with its own
empty store of compiled code: the first is cold, the second warm. Another repeats measuring, estimating and whole
tables under many keys, holds every constraint against every key, and counts the error of the final tables.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks import rhode_island
from dualmandate.benchmarks.measured import ONE_THREAD, check, peak_megabytes, told
from dualmandate.benchmarks.rhode_island import LEVELS, Blocks
from dualmandate.benchmarks.row import Row
from dualmandate.mechanism import GAUSSIAN
from dualmandate.mechanism.noise import NoiseKey, subkey
from dualmandate.population import Protection
from dualmandate.publication import ParquetFile, Rules, tabulate
from dualmandate.publication.consistency.descending import Counts, top_down
from dualmandate.publication.consistency.estimating import Estimates, estimate
from dualmandate.publication.consistency.sharing import Sharing, shared
from dualmandate.publication.measurements import Noise
from dualmandate.publication.tree_measuring import Pair, Places, measure_tree

KEYS = 20
NODES_AT_ONCE = 500  # whose estimates are held while they are written
RHO = Fraction(64, 25)
LEVEL_SHARES = tuple(Fraction(part, 4099) for part in (1544, 447, 687, 1256, 165))
KNOWN = (0, 0)  # the state's total
VALUES = (8.0, 4.0, 2.0, 1.0)  # of a squared error in each table of the chain: twice that of the next finer one
TABLES = ("total", "voting age", "Hispanic")
MOST_SECONDS = {"warm": 60.0, "cold": 120.0}
MOST_MEGABYTES = 4000.0
LEAST_BLOCKS = 3000.0  # a second and core, of estimating and whole tables together
LARGEST_ERRORS = {"tract": (1.6, 2.5, 2.6), "block group": (1.4, 1.9, 1.9), "block": (3.25, 3.0, 1.55)}


@dataclass(frozen=True, eq=False)
class Design:
    """What is measured, where, and with which noise."""

    blocks: Blocks
    places: Places
    sharing: Sharing
    noises: dict[Pair, Noise | None]
    variances: dict[Pair, float]

    @classmethod
    def of(cls, blocks: Blocks) -> Design:
        """The best shares along the chain; σ² = 1/(ρ·share), as a replaced record changes two numbers of a table."""
        chain, tree = rhode_island.chain(), blocks.tree
        values = {(level, k): value for level in range(1, tree.last + 1) for k, value in enumerate(VALUES)}
        sharing = shared(tree, chain, LEVEL_SHARES, values, known=[KNOWN])
        noises: dict[Pair, Noise | None] = {KNOWN: None}
        noises |= {pair: Noise("gaussian", 1 / (RHO * share)) for pair, share in sharing.shares().items()}
        variances = {
            pair: 0.0 if noise is None else GAUSSIAN.variance(float(1 / (2 * noise.parameter)))
            for pair, noise in noises.items()
        }
        places = Places(tree, chain, np.arange(tree.sizes[-1]), np.arange(chain.sizes[-1]))
        return cls(blocks, places, sharing, noises, variances)


@dataclass(frozen=True, eq=False)
class Made:
    """One release in memory, and the processor seconds of estimating and of whole tables."""

    measured: dict[Pair, Any]
    estimates: Estimates
    tables: tuple[Counts, ...]
    consistency_seconds: float


def rows(progress: Callable[[str], None], *, keys: int = KEYS) -> list[Row]:
    """Seconds, memory and speed of a release; then the error of its tables by level."""
    given = blocks_at_hand()
    case = f"{'Rhode Island' if given.real else 'generated blocks (no block file here)'}: {len(given.codes):,} blocks"
    with tempfile.TemporaryDirectory() as folder:
        persons = Path(folder, "persons.parquet")
        progress(f"{case}, persons")
        rhode_island.write_persons(rhode_island.cells(given), given, persons)
        progress(f"{case}, two releases")
        timed = _told("release", persons, folder, environment={"NUMBA_CACHE_DIR": str(Path(folder, "compiled"))})
        progress(f"{case}, {keys} keys")
        errors = _told("errors", persons, str(keys), environment={})
    found = [Row(case, timed[kind], f"seconds, {kind}", target=most) for kind, most in MOST_SECONDS.items()]
    found += [Row(case, timed[f"processor, {kind}"], f"processor seconds, {kind}") for kind in MOST_SECONDS]
    found.append(Row(case, timed["megabytes"], "megabytes", target=MOST_MEGABYTES))
    unit = "blocks a second and core, consistency"
    found.append(Row(case, timed["blocks_a_second"], unit, target=LEAST_BLOCKS, is_floor=True))
    names = ("total", "voting age × Hispanic", "× race", "× quarters")
    found += [
        Row(f"share of the loss: {name}", share, "of 1") for name, share in zip(names, timed["shares"], strict=True)
    ]
    return found + list(_error_rows(errors, keys, promised=LARGEST_ERRORS if given.real else {}))


def _error_rows(errors: dict[str, Any], keys: int, *, promised: Mapping[str, tuple[float, ...]]) -> Iterator[Row]:
    """Errors are promised for Rhode Island; for generated blocks they are told."""
    for level, found in errors.items():
        targets = promised.get(level, (None,) * len(TABLES))
        for i, (table, target) in enumerate(zip(TABLES, targets, strict=True)):
            row = Row(
                f"{level}, {table}, {keys} keys", found["final"][i], "mean absolute error, persons", target=target
            )
            yield replace(row, peer="unbiased estimates", peer_value=found["unbiased"][i])


def blocks_at_hand() -> Blocks:
    """The published blocks, or generated ones."""
    path = rhode_island.block_file()
    return rhode_island.generated_blocks() if path is None else rhode_island.published_blocks(path)


def _told(work: str, *words: object, environment: dict[str, str]) -> Any:
    command = [sys.executable, "-m", "dualmandate.benchmarks.redistricting", work, *map(str, words)]
    return told(command, case=work, environment=ONE_THREAD | environment)


def make(design: Design, persons: Path, key: int) -> Made:
    """From microdata to whole tables, under a secret that protects nobody."""
    domain = design.blocks.domain
    box = tabulate(ParquetFile(persons), domain, protection=Protection(), rules=Rules(), key=bytes(32), sparse=True)

    def noise_key(pair: Pair) -> NoiseKey:
        return subkey(
            bytes(31) + bytes([key]), "benchmark", histogram_mac=b"", measurement=f"level {pair[0]}, {pair[1]}"
        )

    measured = measure_tree(box, design.places, design.noises, noise_key)
    started = time.process_time()
    estimates = estimate(design.places.tree, design.places.chain, measured, design.variances)
    tables = top_down(estimates)
    return Made(measured, estimates, tables, time.process_time() - started)


def write(made: Made, folder: Path) -> None:
    """Measurements, estimates with standard errors, and whole tables, each as Parquet, row-major."""
    for (level, k), values in made.measured.items():
        _write_values(values, folder / f"measured-{level}-{k}.parquet")
    for level, table in enumerate(made.tables):
        _write_values(table, folder / f"tables-{level}.parquet")
        _write_estimates(made.estimates, level, folder)


def _write_values(values: NDArray[Any], path: Path) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"value": values.reshape(-1)}), path, compression="zstd", compression_level=1)


def _write_estimates(estimates: Estimates, level: int, folder: Path) -> None:
    """The estimates of a level, some nodes at a time: those of all blocks would not be held at once."""
    import pyarrow
    from pyarrow import parquet

    schema = pyarrow.schema([("estimate", pyarrow.float64()), ("standard_error", pyarrow.float64())])
    size, options = estimates.tree.sizes[level], {"compression": "none", "use_dictionary": ["standard_error"]}
    with ExitStack() as stack:
        paths = [folder / f"estimates-{level}-{k}.parquet" for k in range(estimates.chain.last + 1)]
        writers = [stack.enter_context(parquet.ParquetWriter(path, schema, **options)) for path in paths]
        for start in range(0, size, NODES_AT_ONCE):
            nodes = range(start, min(start + NODES_AT_ONCE, size))
            both = zip(writers, estimates.tables(level, nodes), estimates.standard_errors(level, nodes), strict=True)
            for writer, values, errors in both:
                writer.write_table(pyarrow.table([values.reshape(-1), errors.reshape(-1)], schema=schema))


def release(persons: Path, folder: Path) -> dict[str, Any]:
    """Two releases, one after the other: seconds of each, peak memory, and the speed of the second's consistency."""
    seconds = {}
    for key, kind in enumerate(("cold", "warm")):
        started, used = time.perf_counter(), time.process_time()
        design = Design.of(blocks_at_hand())
        made = make(design, persons, key)
        write(made, folder)
        seconds[kind], seconds[f"processor, {kind}"] = time.perf_counter() - started, time.process_time() - used
        speed, shares = len(design.blocks.codes) / made.consistency_seconds, design.sharing.tables
        del made
    facts = {"megabytes": peak_megabytes(), "blocks_a_second": speed, "shares": [float(share) for share in shares]}
    return seconds | facts


def errors(design: Design, persons: Path, keys: int) -> dict[str, Any]:
    """Mean absolute errors of total, voting age and Hispanic by level, of final tables and of unbiased estimates."""
    tree, chain = design.places.tree, design.places.chain
    truth = [chain.sums(rhode_island.cells(design.blocks), 1)]
    for starts in reversed(tree.starts):
        truth.insert(0, np.add.reduceat(truth[0], starts[:-1], axis=0))
    found = np.zeros((2, tree.last + 1, len(TABLES)))
    for key in range(keys):
        made = make(design, persons, key)
        check_constraints(made, int(truth[0].sum()))
        for level, exact in enumerate(truth):
            for i, table in enumerate((chain.sums(made.tables[level], 1), made.estimates.tables(level)[1])):
                found[i, level] += mean_errors(table - exact) / keys
        del made
    kinds = "final", "unbiased"
    return {name: dict(zip(kinds, found[:, level].tolist(), strict=True)) for level, name in enumerate(LEVELS)}


def mean_errors(difference: NDArray[Any]) -> NDArray[np.float64]:
    """Mean absolute errors from those of voting age × Hispanic (no-no, no-yes, yes-no, yes-yes)."""
    sums = difference.sum(axis=1), difference[:, 2:].sum(axis=1), difference[:, 1::2].sum(axis=1)
    return np.array([np.abs(each).mean() for each in sums])


def check_constraints(made: Made, total: int) -> None:
    """Every count is at least 0, children add up to their parent, and the state to its exact total."""
    tree, tables = made.estimates.tree, made.tables
    check(int(tables[0].sum()), total)
    for level, table in enumerate(tables):
        check(bool(table.min() >= 0), True)
        if level:
            sums = np.add.reduceat(table, tree.starts[level - 1][:-1], axis=0)
            check(bool(np.array_equal(sums, tables[level - 1])), True)


WORK: dict[str, Callable[[Path, Any], dict[str, Any]]] = {
    "release": lambda persons, folder: release(persons, Path(folder)),
    "errors": lambda persons, keys: errors(Design.of(blocks_at_hand()), persons, int(keys)),
}


def main(work: str, persons: str, word: str) -> None:
    """Do one piece of work here, and print what was found as JSON."""
    print(json.dumps(WORK[work](Path(persons), word)))


if __name__ == "__main__":
    main(*sys.argv[1:])
