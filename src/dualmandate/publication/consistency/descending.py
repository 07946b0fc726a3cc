"""From the root down: tables of non-negative whole numbers that add up over the geography and along the chain.

The root is brought to whole numbers level by level of the chain. Then, parent by parent, its children are: their
totals first, and then each grouping of the chain in turn, where the parts of each group are a table of children ×
parts with both margins fixed (see `transport`). What is fixed is never touched again, so that subtrees are independent
once their root's table is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.estimating import Estimates, Measured, State, rise, settle
from dualmandate.publication.consistency.nesting import Tree
from dualmandate.publication.consistency.transport import apportion, stage
from dualmandate.publication.consistency.weighing import Weights

Counts = NDArray[np.signedinteger[Any]]  # 32-bit where the root's total fits, else 64-bit


def top_down(estimates: Estimates, root: NDArray[np.int64] | None = None) -> tuple[Counts, ...]:
    """Consistent tables of cells for each level of the tree; [l], shape (nodes, cells).

    `root` is the root's table where it is known already: that of a subtree, which its parent fixed. Counts are 32-bit
    where the root's total fits.
    """
    tree, cells = estimates.tree, estimates.chain.sizes[-1]
    first = root_table(estimates) if root is None else np.asarray(root, dtype=np.int64).reshape(cells)
    kind = np.int32 if first.sum() < 2**31 else np.int64
    tables: list[Counts] = [first[None, :].astype(kind)]
    for level in range(tree.last):
        below = np.zeros((tree.sizes[level + 1], cells), dtype=kind)
        for node in np.flatnonzero(tables[level].any(axis=1)):
            children = tree.children(level, int(node))
            below[children.start : children.stop] = family(estimates, level + 1, children, tables[level][node])
        tables.append(below)
    return tuple(tables)


def solve_subtree(
    tree: Tree, weights: Weights, measured: Measured, *, told: State, root: NDArray[np.int64]
) -> tuple[Counts, ...]:
    """The consistent tables of a subtree by itself: a unit of work that shares nothing with other subtrees.

    `weights` and `measured` start at the subtree's root. Before, its `rise(…).root` told the tree above what is known
    from it; now the tree above tells the final state (`told`) and table of that root. The bytes are those of the whole.
    """
    return top_down(settle(rise(tree, weights, measured), told), root)


def root_table(estimates: Estimates) -> NDArray[np.int64]:
    """The root's cells: its total, or the nearest count to it, then group by group; shape (cells,)."""
    chain, targets, shares = estimates.chain, estimates.tables(0), estimates.risen.weights.shares
    counts: NDArray[np.int64] = np.maximum(np.rint(targets[0][0]), 0).astype(np.int64)
    for k in range(1, chain.last + 1):
        if estimates.exact(0, k):
            counts = np.rint(targets[k][0]).astype(np.int64)
            continue
        parts, held = np.zeros(chain.sizes[k], dtype=np.int64), chain.possible[k]
        for group in np.flatnonzero(counts):
            within = chain.starts[k - 1][group] + np.flatnonzero(held[slice(*chain.starts[k - 1][group : group + 2])])
            parts[within] = apportion(targets[k][0, within], shares[k][within], int(counts[group]))
        counts = parts
    return counts


def family(estimates: Estimates, level: int, children: range, parent: NDArray[np.generic]) -> NDArray[np.int64]:
    """The cells of a node's children (nodes of `level`), which add up to the parent's; shape (children, cells)."""
    chain, weights = estimates.chain, estimates.risen.weights
    fixed = [chain.sums(parent, k) for k in range(chain.last + 1)]
    if len(children) == 1:
        return fixed[-1][None, :]
    targets = estimates.tables(level, children)
    rows = slice(children.start, children.stop)
    counts = np.rint(targets[0]).astype(np.int64)
    if not estimates.exact(level, 0):
        scales = _usable(estimates.risen.variances[level][0][rows, 0])
        counts[:, 0] = apportion(targets[0][:, 0], scales, int(fixed[0][0]))
    for k in range(1, chain.last + 1):
        coarse, counts = counts, np.rint(targets[k]).astype(np.int64)
        if not estimates.exact(level, k):
            firsts = weights.classes[k][chain.starts[k - 1][:-1]]
            scales = _usable(estimates.risen.variances[level][k][rows])[:, firsts]
            stage(targets[k], scales, weights.shares[k], chain.starts[k - 1], coarse, fixed[k], counts)
    return counts


def _usable(variances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Variances as scales; all alike where nothing was measured, or nothing is left to say."""
    return np.where(np.isfinite(variances) & (variances > 0), variances, 1.0)
