"""Attacks: how fast and how far records, suppressed cells, names and members are found; all of it actually run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dualmandate.benchmarks import audited_cells, audited_people, audited_records
from dualmandate.benchmarks.harness import BenchmarkRow


@dataclass(frozen=True)
class Sizes:
    """How much is attacked; `counties` of New Jersey, all where not stated."""

    blocks: int = 10_000
    blocks_by_size: int = 300
    blocks_by_tables: int = 30
    real_blocks: int = 1_000
    bounds: int = audited_cells.BOUNDS
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
        *audited_cells.three_dimensions(progress, size.bounds),
        *audited_cells.employment(progress, size.counties),
        *audited_people.membership(progress, size.draws),
        *audited_people.names(progress, size.linked_blocks),
        *audited_people.methods(progress, size.compared_blocks),
    ]
