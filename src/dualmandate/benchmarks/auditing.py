"""Attacks: how fast records are reconstructed from exact tables, and suppressed cells bounded; all of it actually run.

The article's block of seven persons; a generated census of 10,000 blocks of 30 to 100 persons with tables like those of
PL 94-171 and Summary File 1, 38 age bins; a table in three dimensions; employment in New Jersey's counties.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations
from dualmandate.audit.persons import Implication, Statistic, Variables, reconstruct_persons
from dualmandate.audit.reconstruction import reconstruct
from dualmandate.audit.series import by_size, estimate_series
from dualmandate.audit.suppression import LinkedTables, additive_relations, audit_suppression
from dualmandate.benchmarks import generated_blocks, qcew
from dualmandate.benchmarks.row import Row

BLOCKS = 10_000
WARM = 64
LEAST_BLOCKS, LEAST_BLOCKS_WITH_VARIABILITY = 100.0, 50.0  # a second of one processor
BOUNDS, MOST_SECONDS = 1_000, 60.0
CUBE = 20  # lines a dimension, before totals
HELD_OUT = 300
ARTICLE = {(): 1, ("4A",): 2, ("2A", "2B"): 8}  # solutions without some statistics
SEVEN = Variables(
    "age",
    0,
    125,
    {"sex": ("F", "M"), "race": ("B", "W"), "marital": ("S", "M")},
    (Implication({"marital": "M"}, 15),),
)
STATISTICS = tuple(
    Statistic(name, group, count, Decimal(median), Decimal(mean))
    for name, group, count, median, mean in (
        ("1A", dict[str, str](), 7, "30", "38.0"),
        ("2A", {"sex": "F"}, 4, "30", "33.5"),
        ("2B", {"sex": "M"}, 3, "30", "44.0"),
        ("2C", {"race": "B"}, 4, "51", "48.5"),
        ("2D", {"race": "W"}, 3, "24", "24.0"),
        ("3B", {"marital": "M"}, 4, "51", "54.0"),
        ("4A", {"sex": "F", "race": "B"}, 3, "36", "36.7"),
    )
)


def rows(progress: Callable[[str], None], *, blocks: int = BLOCKS, bounds: int = BOUNDS) -> list[Row]:
    """Every attack, one after the other."""
    return [*_article(progress), *_blocks(progress, blocks), *_cube(progress, bounds), *_employment(progress)]


def _article(progress: Callable[[str], None]) -> list[Row]:
    found = []
    for dropped, expected in ARTICLE.items():
        case = "seven persons (ACM Queue 2018)" + (f" without {' and '.join(dropped)}" if dropped else "")
        progress(case)
        started = time.process_time()
        solved = reconstruct_persons(SEVEN, [each for each in STATISTICS if each.name not in dropped])
        seconds = time.process_time() - started
        wrong = abs(len(solved.solutions) - expected) + (not solved.complete)
        found += [Row(case, float(wrong), f"solutions off the {expected} proved in the article", target=0.0)]
        found += [Row(case, seconds, "processor seconds", target=None if dropped else 5.0)]
    return found


def _blocks(progress: Callable[[str], None], count: int) -> list[Row]:
    equations = Equations.of_workload(generated_blocks.tables())
    truth = generated_blocks.blocks(count, seed=2010)
    values = equations.of(truth)
    list(reconstruct(equations, values[:WARM]))  # compiles
    case, found = f"{count:,} generated blocks, 38 age bins", []
    for variability, least in ((False, LEAST_BLOCKS), (True, LEAST_BLOCKS_WITH_VARIABILITY)):
        words = f"{case}, {'with solution variability' if variability else 'solutions'}"
        progress(words)
        began, started = time.perf_counter(), time.process_time()
        solved = list(reconstruct(equations, values, variability=variability, workers=2))
        used, elapsed = time.process_time() - started, time.perf_counter() - began
        found.append(Row(words, count / used, "blocks a second of one processor", target=least, is_floor=True))
        found.append(Row(words, elapsed, "seconds, two threads"))
    agreed = sum(each.right(own) for each, own in zip(solved, truth, strict=True))
    shares = {
        "share of records right, against the tabulated file": agreed / truth.sum(),
        "share of records proved": sum(each.proved_records for each in solved) / truth.sum(),
        "share of blocks proved unique": float(np.mean([each.unique for each in solved])),
        "share of blocks with all bounds proved": float(np.mean([each.proved for each in solved])),
        "mean solution variability": float(np.mean([each.variability for each in solved])),
    }
    return [*found, *(Row(case, value, words) for words, value in shares.items())]


def cube(lines: int, *, seed: int = 3) -> LinkedTables:
    """A table in three dimensions whose small cells are suppressed, and one more in every line that had only one."""
    generator = np.random.default_rng(seed)
    table = np.floor(generator.lognormal(3.0, 1.6, (lines,) * 3)).astype(np.int64)
    for axis in range(3):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    hidden = np.zeros(table.shape, dtype=np.bool_)
    inner = (slice(0, -1),) * 3
    hidden[inner] = (table[inner] > 0) & (table[inner] < 6)
    while (lonely := _lonely(hidden, table)) is not None:
        hidden[lonely] = True
    return LinkedTables(additive_relations(table.shape), table.reshape(-1), hidden.reshape(-1))


def _lonely(hidden: NDArray[np.bool_], table: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...] | None:
    """The smallest shown cell of every line along one axis that has one suppressed cell only; None without any."""
    for axis in range(hidden.ndim):
        lines, values = np.moveaxis(hidden, axis, -1), np.moveaxis(table, axis, -1)
        at = np.argwhere(lines.sum(axis=-1) == 1)
        if len(at):
            own = tuple(at.T)
            chosen = np.where(lines[own], np.iinfo(np.int64).max, values[own]).argmin(axis=1)
            found = [*own]
            found.insert(axis, chosen)
            return tuple(found)
    return None


def _cube(progress: Callable[[str], None], bounds: int) -> list[Row]:
    tables = cube(CUBE if bounds >= BOUNDS else 6)
    cells = int(tables.suppressed.sum())
    case = f"{cells:,} suppressed cells in three dimensions"
    progress(case)
    audit_suppression(cube(4))  # compiles
    started = time.process_time()
    found = audit_suppression(tables)
    seconds = time.process_time() - started
    return [
        Row(case, seconds * bounds / cells, f"processor seconds for {bounds:,} of them", target=MOST_SECONDS),
        Row(case, seconds, "processor seconds, both bounds of all of them"),
        Row(case, float(len(found.disclosed)), "cells disclosed exactly"),
    ]


def _employment(progress: Callable[[str], None]) -> list[Row]:
    file = qcew.file_at_hand()
    tables = qcew.generated() if file is None else qcew.read(file)
    where = "generated counties" if file is None else "New Jersey's counties 2016"
    case = f"{where}, {int(tables.suppressed.sum()):,} suppressed rows"
    progress(case)
    started, disclosed = time.process_time(), 0
    for variable in qcew.VARIABLES:
        for quarter in range(qcew.QUARTERS):
            disclosed += len(audit_suppression(tables.linked(variable, quarter)[0]).disclosed)
    found = [
        Row(case, time.process_time() - started, f"processor seconds, {len(qcew.VARIABLES)} variables"),
        Row(case, float(disclosed), "numbers disclosed exactly"),
    ]
    return [*found, *_over_time(tables, case)]


def _over_time(tables: qcew.Quarterly, case: str) -> list[Row]:
    variable = qcew.VARIABLES[2]
    hidden, chosen = qcew.held_out(tables, count=HELD_OUT, seed=1)
    least, largest = (np.zeros_like(hidden.values[variable]) for _ in range(2))
    for quarter in range(qcew.QUARTERS):
        found = audit_suppression(hidden.linked(variable, quarter)[0])
        least[found.cells, quarter], largest[found.cells, quarter] = found.least, found.largest
    series, at = hidden.series(variable), tuple(chosen.T)
    truth = tables.values[variable][at]
    close = [
        float(np.mean(np.abs(guess(series, least, largest)[at] - truth) <= 0.05 * truth))
        for guess in (estimate_series, by_size)
    ]
    words = f"share of {len(chosen)} held-out cells estimated within 5 %"
    return [Row(f"{case}, over time", close[0], words), Row(f"{case}, by size alone", close[1], words)]
