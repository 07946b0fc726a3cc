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
from dualmandate.publication.consistency.descending import top_down
from dualmandate.publication.consistency.estimating import estimate
from dualmandate.publication.consistency.fitting import consistent_histogram
from dualmandate.publication.consistency.nesting import Chain, Tree
from dualmandate.publication.consistency.weighing import Pair
from dualmandate.workload import Workload

Both = tuple[NDArray[np.float64], NDArray[np.int64]]  # unbiased estimates and consistent counts of one table, flat
Draw = Callable[[np.random.Generator], Mapping[str, Both]]  # one simulated release, by table
SIZES = (0, 1, 10, 100, 1000)  # the least true count of each class of cells


@dataclass(frozen=True)
class Effect:
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
) -> tuple[Effect, ...]:
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


def _classes(name: str, table: NDArray[Any], sums: NDArray[np.float64], sizes: Sequence[int]) -> Iterator[Effect]:
    for least, after in zip(sizes, (*sizes[1:], None), strict=True):
        chosen = (table >= least) & (True if after is None else table < after)
        if chosen.any():
            means = sums[:, :, chosen].mean(axis=2)
            (bias, squared), (kept_bias, kept_squared) = means.tolist()
            most = None if after is None else after - 1
            cells = int(np.count_nonzero(chosen))
            yield Effect(name, least, most, cells, bias, squared**0.5, kept_bias, kept_squared**0.5)


def tree_releases(
    tree: Tree, chain: Chain, truth: NDArray[np.int64], noises: Mapping[Pair, Distribution | None]
) -> tuple[dict[str, NDArray[np.int64]], Draw]:
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


def histogram_releases(
    workload: Workload, truth: NDArray[np.int64], noises: Mapping[str, Distribution], *, public: Workload | None = None
) -> tuple[dict[str, NDArray[np.int64]], Draw]:
    """The exact tables of a workload, and how to simulate releases of them, each number measured by itself.

    `noises` has the law of each table's numbers; the answers of `public` are held exactly.
    """
    names = [table.name for table in workload.tables]
    exact = {name: np.asarray(workload.table_answers(name, truth)) for name in names}
    variances = np.concatenate([np.full(exact[name].size, noises[name].variance) for name in names])
    totals = None if public is None else np.asarray(public.answers(truth), dtype=np.int64)

    def draw(generator: np.random.Generator) -> Mapping[str, Both]:
        measured = {name: exact[name] + noises[name].draw(generator, exact[name].shape) for name in names}
        stacked = np.concatenate([measured[name] for name in names]).astype(np.float64)
        counts = consistent_histogram(workload, stacked, variances, public=public, totals=totals)
        return {name: (measured[name].astype(np.float64), workload.table_answers(name, counts)) for name in names}

    return exact, draw


def _named(pair: Pair) -> str:
    return f"level {pair[0]}, {pair[1]}"
