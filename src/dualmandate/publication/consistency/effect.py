"""What making tables consistent does to them: bias and error of both kinds, found by simulation on data of no one.

Unbiased estimates have negative counts and do not add up; counts that add up are at least 0, so that small ones are
too large on average and large ones too small. How much so depends on the data, and can be shown on public or synthetic
ones only: on confidential data it would be a release of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.estimates import estimate
from dualmandate.publication.consistency.gls_weights import Pair
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.top_down_rounding import top_down

Both = tuple[Floats, Integers]  # unbiased estimates and consistent counts of one table, flat
Draw = Callable[[np.random.Generator], Mapping[str, Both]]  # one simulated release, by table
SIZES = (0, 1, 10, 100, 1000)  # Each class of cells starts at one of these true counts.


@dataclass(frozen=True)
class ConsistencyEffect:
    """Errors, in records, of one table's cells with true counts in one class, averaged over cells and releases."""

    table: str
    least: int  # of the class
    most: int | None  # None: no limit
    cells: int
    unbiased_bias: float
    unbiased_error: float  # root mean squared
    consistent_bias: float
    consistent_error: float  # root mean squared


def consistency_effect(
    truth: Mapping[str, NDArray[Any]],
    draw: Draw,
    generator: np.random.Generator,
    *,
    releases: int = 50,
    sizes: Sequence[int] = SIZES,
) -> tuple[ConsistencyEffect, ...]:
    """Bias and root mean squared error of unbiased and consistent tables, by table and class of true counts.

    `truth` are the exact counts of each table of synthetic or public data, `draw` simulates one release of them.
    """
    if releases < 1 or list(sizes) != sorted(set(sizes)):
        raise InvalidRequest(
            f"{releases} simulated releases for classes of counts from {tuple(sizes)}",
            why="errors are averaged over releases, and classes rise",
            instead="simulate at least one release, and give least counts in rising order",
        )
    flat = {name: np.asarray(table).reshape(-1) for name, table in truth.items()}
    sums = {name: np.zeros((2, 2, table.size)) for name, table in flat.items()}  # kind × power × cell
    for _ in range(releases):
        for name, both in draw(generator).items():
            for kind, values in enumerate(both):
                error = np.asarray(values, dtype=np.float64).reshape(-1) - flat[name]
                sums[name][kind, 0] += error / releases
                sums[name][kind, 1] += error**2 / releases
    return tuple(effect for name, table in flat.items() for effect in _classes(name, table, sums[name], sizes))


def _classes(name: str, table: NDArray[Any], sums: Floats, sizes: Sequence[int]) -> Iterator[ConsistencyEffect]:
    for least, after in zip(sizes, (*sizes[1:], None), strict=True):
        chosen = (table >= least) & (True if after is None else table < after)
        if chosen.any():
            means = sums[:, :, chosen].mean(axis=2)
            (bias, squared), (kept_bias, kept_squared) = means.tolist()
            most = None if after is None else after - 1
            cells = int(np.count_nonzero(chosen))
            yield ConsistencyEffect(name, least, most, cells, bias, squared**0.5, kept_bias, kept_squared**0.5)


def tree_releases(
    tree: Tree, chain: PartitionChain, truth: Integers, noises: Mapping[Pair, Distribution | None]
) -> tuple[dict[str, Integers], Draw]:
    """The exact tables of a tree × chain from the cells of its leaves, and how to simulate releases of them.

    `noises` says for each measured pair of levels its law, or None for what is exact. Tables are called "level l, k".
    """
    levels = [truth]
    for starts in reversed(tree.starts):
        levels.insert(0, np.add.reduceat(levels[0], starts[:-1], axis=0))
    exact = {pair: chain.sums(levels[pair[0]], pair[1]) for pair in noises}
    variances = {pair: 0.0 if noise is None else noise.variance for pair, noise in noises.items()}

    def draw(generator: np.random.Generator) -> Mapping[str, Both]:
        measured = {
            pair: exact[pair] + (0 if noise is None else noise.draw(generator, exact[pair].shape).astype(np.int64))
            for pair, noise in noises.items()
        }
        estimates = estimate(tree, chain, measured, variances)
        counts = top_down(estimates)
        tables = [estimates.tables(level) for level in range(tree.last + 1)]
        return {_named(pair): (tables[pair[0]][pair[1]], chain.sums(counts[pair[0]], pair[1])) for pair in noises}

    return {_named(pair): table for pair, table in exact.items()}, draw


def _named(pair: Pair) -> str:
    return f"level {pair[0]}, {pair[1]}"
