"""How precise estimates will be: the same passes over the tree for variances, before anything is measured."""

from __future__ import annotations

import numpy as np

from dualmandate.publication.consistency.nesting import Tree
from dualmandate.publication.consistency.weighing import Floats, Weights, combined

Levels = tuple[tuple[Floats, ...], ...]  # [l][k], shape (nodes, classes of innovations)


def risen_variances(tree: Tree, weights: Weights, leaves: tuple[Floats, ...] | None = None) -> tuple[Levels, Levels]:
    """Variances of innovations from what is at and below each node, and the weight of a node's own measurements."""
    own = tuple(
        tuple(np.broadcast_to(each[level], (size, each.shape[1])) for each in weights.variances)
        for level, size in enumerate(tree.sizes)
    )
    variances, gains = [own[-1] if leaves is None else leaves], [tuple(np.ones_like(each) for each in own[-1])]
    for level in range(tree.last - 1, -1, -1):
        below = (np.add.reduceat(each, tree.starts[level][:-1], axis=0) for each in variances[0])
        found = [combined(here, added) for here, added in zip(own[level], below, strict=True)]
        variances.insert(0, tuple(variance for variance, _ in found))
        gains.insert(0, tuple(gain for _, gain in found))
    return tuple(variances), tuple(gains)


def child_shares(tree: Tree, variances: Floats, level: int) -> Floats:
    """The share of each child (of `level`) in what its parent has beyond its children's sum: r_c/Σr.

    Equal shares where nothing is known of the children, none where all is.
    """
    starts, parents = tree.starts[level - 1], tree.parents[level - 1]
    whole = np.add.reduceat(variances, starts[:-1], axis=0)[parents]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(whole == 0, 0.0, variances / whole)
    return np.where(np.isinf(whole), 1.0 / np.diff(starts)[parents][:, None], share)


def final_variances(tree: Tree, risen: Levels, root: tuple[Floats, ...]) -> Levels:
    """Variances of innovations in the end, given those of the root: t_c = r_c·(1 − r_c/Σr) + (r_c/Σr)²·t_parent."""
    final = [root]
    for level in range(1, tree.last + 1):
        found = []
        for own, above in zip(risen[level], final[-1], strict=True):
            shares = child_shares(tree, own, level)
            with np.errstate(invalid="ignore"):
                kept = np.where(shares < 1, own * (1 - shares), 0.0)
                found.append(kept + np.where(shares > 0, shares**2 * above[tree.parents[level - 1]], 0.0))
        final.append(tuple(found))
    return tuple(final)


def table_variances(weights: Weights, final: tuple[Floats, ...]) -> tuple[Floats, ...]:
    """Variances of the tables of nodes whose innovations have these; [k], shape (nodes, groups).

    Var x_h = t·b_h(1 − b_h) + b_h²·Var x_g, where t is that of the innovations of the group g that h lies in.
    """
    found = [final[0]]
    for k in range(1, len(final)):
        share, own = weights.shares[k], final[k][:, weights.classes[k]]
        with np.errstate(invalid="ignore"):
            spread = np.where(share * (1 - share) > 0, own * (share * (1 - share)), 0.0)
            passed = np.where(share > 0, share**2 * found[-1][:, weights.chain.parents[k - 1]], 0.0)
        found.append(spread + passed)
    return tuple(found)
