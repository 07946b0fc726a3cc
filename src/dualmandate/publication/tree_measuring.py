"""Every table of a tree × chain with its noise, from a histogram of leaves × cells, however large."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism import Noise
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population import Confidential
from dualmandate.population.arrays import Integers
from dualmandate.publication.consistency.gls_weights import Pair
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.tabulated import SparseHistogram, Tabulated

Whole = NDArray[np.signedinteger[Any]]  # 64-bit, or 32-bit in large tables.

BLOCK = 2**18  # The noise of so many numbers is drawn at once.
LARGE = 2**24  # Tables of more numbers are held in 32 bits.


@dataclass(frozen=True, eq=False)
class TreePlaces:
    """Where leaves and cells of the histogram stand in the tree and in the chain: the orders that `of` returns.

    The histogram counts leaves × cells, row-major in the order of its own code lists.
    """

    tree: Tree
    chain: PartitionChain
    leaves: Integers  # the histogram's number of the leaf at each place of the tree
    cells: Integers  # the histogram's number of the cell at each place of the chain


def measure_tree(
    tabulated: Confidential[Tabulated],
    places: TreePlaces,
    noises: Mapping[Pair, Noise | None],
    keys: Callable[[Pair], NoiseKey],
) -> dict[Pair, Whole]:
    """Noisy counts of each pair of levels, shape (nodes, groups); None for a noise publishes the exact counts.

    The noise of a number is a function of the key of its pair and of node × groups + group; it is drawn before any
    count is looked at. Tables of more than 2²⁴ numbers are held in 32 bits, modulo 2³²: a function of the exact sum.
    """
    found = {pair: _noise(places, pair, noise, keys) for pair, noise in noises.items()}
    leaves, cells, counts = _counts(tabulated, places)
    for (level, k), values in found.items():
        nodes, groups = _upward(places.tree.parents[level:], leaves), _upward(places.chain.parents[k:], cells)
        np.add.at(values.reshape(-1), nodes * values.shape[1] + groups, counts.astype(values.dtype))
    return found


def _noise(places: TreePlaces, pair: Pair, noise: Noise | None, keys: Callable[[Pair], NoiseKey]) -> Whole:
    shape = places.tree.sizes[pair[0]], places.chain.sizes[pair[1]]
    size = shape[0] * shape[1]
    values: Whole = np.zeros(size, dtype=np.int32 if size > LARGE else np.int64)
    if noise is None:
        return values.reshape(shape)
    sampler, key = noise.sampler(), keys(pair)
    for start in range(0, size, BLOCK):
        drawn = sampler.draw(key, range(start, min(start + BLOCK, size)))
        values[start : start + BLOCK] = drawn.astype(values.dtype)
    return values.reshape(shape)


def _counts(tabulated: Confidential[Tabulated], places: TreePlaces) -> tuple[Integers, Integers, Integers]:
    """TreePlaces of the leaf and cell of each occupied cell of the histogram, and its count."""
    histogram = tabulated.open_for("measuring").histogram
    if isinstance(histogram, SparseHistogram):
        occupied, counts = histogram.cells, histogram.counts
    else:
        flat = histogram.counts.reshape(-1)
        occupied = np.flatnonzero(flat)
        counts = flat[occupied]
    leaves, cells = np.divmod(occupied, places.cells.size)
    return np.argsort(places.leaves)[leaves], np.argsort(places.cells)[cells], counts


def _upward(parents: tuple[Integers, ...], places: Integers) -> Integers:
    for each in reversed(parents):
        places = each[places]
    return places
