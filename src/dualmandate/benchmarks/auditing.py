"""Attacks: how fast and how far records, suppressed cells, names and members are found; all of it actually run.

Here suppressed cells: bounds in three dimensions, and the employment of New Jersey's counties, end to end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.suppression.cells import LinkedTables, additive_relations, audit_suppression
from dualmandate.audit.suppression.series import by_size, estimate_series
from dualmandate.benchmarks import audited_people, audited_records, qcew
from dualmandate.benchmarks.harness import BenchmarkRow
from dualmandate.population.wording import percent

BOUNDS, MOST_SECONDS = 1_000, 60.0
CUBE, SMALL_CUBE = 20, 6  # lines a dimension, before totals
HELD_OUT, SEED, WITHIN = 300, 1, 0.05
PROTECTED = 0.2  # share of a number, within which it should not be told


@dataclass(frozen=True)
class Sizes:
    """How much is attacked; `counties` of New Jersey, all where not stated."""

    blocks: int = 10_000
    blocks_by_size: int = 300
    blocks_by_tables: int = 30
    real_blocks: int = 1_000
    bounds: int = BOUNDS
    counties: int | None = None
    noisy_blocks: int = 100
    persons: tuple[int, ...] = (1_000, 5_000)
    draws: int = 20_000
    linked_blocks: int = 1_000
    compared_blocks: int = 100


def rows(progress: Callable[[str], None], *, sizes: Sizes | None = None) -> list[BenchmarkRow]:
    """Every attack, one after the other."""
    size = sizes or Sizes()
    return [
        *audited_records.article(progress),
        *audited_records.census(progress, size.blocks),
        *audited_records.by_size(progress, size.blocks_by_size),
        *audited_records.like_rhode_island(progress, size.real_blocks),
        *audited_records.by_tables(progress, size.blocks_by_tables),
        *audited_people.noisy_tables(progress, size.noisy_blocks),
        *audited_people.decoding(progress, size.persons),
        *three_dimensions(progress, size.bounds),
        *employment(progress, size.counties),
        *audited_people.membership(progress, size.draws),
        *audited_people.names(progress, size.linked_blocks),
        *audited_people.methods(progress, size.compared_blocks),
    ]


def cube(lines: int) -> LinkedTables:
    """A table in three dimensions whose small cells are suppressed, and one more in every line that had only one."""
    generator = np.random.default_rng(3)
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


def three_dimensions(progress: Callable[[str], None], bounds: int) -> list[BenchmarkRow]:
    """Both bounds of every suppressed cell of a table in three dimensions."""
    tables = cube(CUBE if bounds >= BOUNDS else SMALL_CUBE)
    cells = int(tables.suppressed.sum())
    case = f"{cells:,} suppressed cells in three dimensions"
    progress(case)
    audit_suppression(cube(4))  # compiles
    started = time.process_time()
    found = audit_suppression(tables)
    seconds = time.process_time() - started
    return [
        BenchmarkRow(case, seconds * bounds / cells, f"processor seconds for {bounds:,} of them", target=MOST_SECONDS),
        BenchmarkRow(case, seconds, "processor seconds, both bounds of all of them"),
        BenchmarkRow(case, float(len(found.disclosed)), "cells disclosed exactly"),
    ]


def employment(progress: Callable[[str], None], counties: int | None) -> list[BenchmarkRow]:
    """Every suppressed number of some counties (all where not stated), then what four quarters give away of them."""
    tables, where = qcew.at_hand(counties)
    case = f"{where}, {int(tables.suppressed.sum()):,} suppressed rows"
    progress(case)
    started, disclosed, told = time.process_time(), 0, 0
    for variable in qcew.VARIABLES:
        for quarter in range(qcew.QUARTERS):
            found = audit_suppression(tables.linked(variable, quarter)[0])
            disclosed += len(found.disclosed)
            told += int(found.surely_unprotected(share=PROTECTED).sum())
    rows = [
        BenchmarkRow(case, time.process_time() - started, f"processor seconds, {len(qcew.VARIABLES)} variables"),
        BenchmarkRow(case, float(disclosed), "numbers disclosed exactly"),
        BenchmarkRow(case, float(told), f"numbers told within {percent(PROTECTED)}, whatever they are"),
    ]
    return [*rows, *_over_time(tables, case)]


def _over_time(tables: qcew.Quarterly, case: str) -> list[BenchmarkRow]:
    variable = qcew.VARIABLES[2]
    hidden, chosen = qcew.held_out(tables, count=HELD_OUT, seed=SEED)
    least, largest = (np.zeros_like(hidden.values[variable]) for _ in range(2))
    for quarter in range(qcew.QUARTERS):
        found = audit_suppression(hidden.linked(variable, quarter)[0])
        least[found.cells, quarter], largest[found.cells, quarter] = found.least, found.largest
    series, at = hidden.series(variable), tuple(chosen.T)
    truth = tables.values[variable][at]
    over_time, alone = (
        float(np.mean(np.abs(guess(series, least, largest)[at] - truth) <= WITHIN * truth))
        for guess in (estimate_series, by_size)
    )
    words = f"share of {len(chosen)} held-out cells estimated within {percent(WITHIN)}"
    return [BenchmarkRow(f"{case}, over time", over_time, words, None, "by size alone", alone, is_floor=True)]
