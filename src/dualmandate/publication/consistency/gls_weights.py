"""What each measurement of a tree × chain is worth: weights and variances, from public things alone.

A chain is taken apart into *innovations*: the total, and at each further level k what the parts of a group are beyond
their shares of the group, d_h = x_h − b_h·x_g. Two passes over the chain give them from the measurements of one node
(upward, a group's own measurement and the sum of its parts are combined by inverse variance), and those of one level
are uncorrelated with those of every other: Cov(d_h, d_h′) = s·(b_h·1[h = h′] − b_h·b_h′) within a group, where s is the
variance of the sum of its parts and b_h = a_h/s the share of part h in it.

Innovations add up over the tree, if the shares b are the same at each of its levels. Then their covariances at any
two nodes are proportional, so that one two-pass combination of numbers [HRMS10] for each group is the best
linear unbiased estimate of the whole tree × chain. Shares are the same where the parts of each group are alike (equal
numbers of equal parts), whatever the variances; or where variance(l, k) = u_l·w_k, whatever the chain and its
structural zeros. Elsewhere the nearest such products from above stand for the variances: estimates stay unbiased, are
no longer the best, and standard errors are upper bounds. What even so has no common shares is refused.

How precise estimates will be follows from the same passes over the tree for variances, before anything is measured.
`allocate_budget` shares a loss along the chain accordingly: with σ² = 1/(loss·share) for the share of each table, and
tables of every level of the tree measured in the same proportions, it minimizes Σ_l Σ_k v_k·L_l·(mean variance of the
groups of level k at the nodes of level l). L_l is the share of level l: without it, the level with the least loss would
decide alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from dualmandate.errors import InvalidRequest
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.partitions import PartitionChain, Tree

Pair = tuple[int, int]  # A level of the tree and one of the chain.

# Shares that differ by less are one, relative: so far the variance of discrete Gaussian noise departs from σ², and
# errors feel it at second order.
SAME_SHARE = 0.01


@dataclass(frozen=True, eq=False)
class Weights:
    """How the measurements of a node are combined along the chain, for each level l of the tree and k of the chain."""

    chain: PartitionChain
    gains: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k]: of a group's own measurement; shape (groups,)
    shares: tuple[Floats, ...] = field(repr=False)  # [k]: b of each group in the one it lies in; shape (groups,)
    classes: tuple[Integers, ...] = field(repr=False)  # [k]: groups whose innovations vary alike
    variances: tuple[Floats, ...] = field(repr=False)  # [k]: s of each level of the tree and class; inf: not measured
    best: bool = True  # otherwise estimates are unbiased only, and standard errors upper bounds

    @classmethod
    def of(cls, chain: PartitionChain, variances: Mapping[Pair, float], *, levels: int) -> Weights:
        """The weights of a design: a variance for each measured pair of levels, 0 for what is known exactly."""
        _refuse_unless_design(variances, levels, chain.last)
        by_level = ([variances.get((level, k), np.inf) for k in range(chain.last + 1)] for level in range(levels))
        found = [_along_chain(chain, each) for each in by_level]
        shares, classes, sums = [np.ones(1)], [np.zeros(1, dtype=np.int64)], [np.array([[f[1][0][0]] for f in found])]
        for k in range(1, chain.last + 1):
            parts = np.stack([each[1][k] for each in found])
            whole = np.add.reduceat(parts, chain.starts[k - 1][:-1], axis=1)
            common = _common_shares(parts, whole, chain, k)
            if common is None:
                return replace(cls.of(chain, _products(variances), levels=levels), best=False)
            alike, members = np.unique(whole, axis=1, return_inverse=True)
            shares.append(common)
            classes.append(np.reshape(members, -1)[chain.parents[k - 1]].astype(np.int64))
            sums.append(alike)
        return cls(chain, tuple(each[0] for each in found), tuple(shares), tuple(classes), tuple(sums))

    def below(self, level: int) -> Weights:
        """The weights of the subtrees that start at a level."""
        return replace(self, gains=self.gains[level:], variances=tuple(each[level:] for each in self.variances))


def combined(own: Any, other: Any) -> tuple[Floats, Floats]:
    """Variance of two uncorrelated estimates of one number combined, and the weight of the first; 0 and ∞ allowed."""
    own, other = np.broadcast_arrays(np.asarray(own, dtype=np.float64), np.asarray(other, dtype=np.float64))
    with np.errstate(invalid="ignore"):
        weight = np.where(np.isinf(own), 0.0, np.where(np.isinf(other), 1.0, np.nan_to_num(other / (own + other))))
        variance = np.where(weight > 0, weight * own, np.where(np.isinf(own), other, 0.0))
    return variance, weight


def _along_chain(chain: PartitionChain, variances: Sequence[float]) -> tuple[tuple[Floats, ...], tuple[Floats, ...]]:
    """The weight of each group's own measurement, and the variance a after the upward pass; [k], shape (groups,)."""
    last = np.where(chain.possible[-1], variances[-1], 0.0)
    gains, after = [np.ones_like(last)], [last]
    for k in range(chain.last - 1, -1, -1):
        variance, gain = combined(variances[k], np.add.reduceat(after[0], chain.starts[k][:-1]))
        gains.insert(0, gain)
        after.insert(0, variance)
    return tuple(gains), tuple(after)


def _common_shares(parts: Floats, whole: Floats, chain: PartitionChain, k: int) -> Floats | None:
    """The share of each part in its group, None if not the same at every level; equal shares where none is measured."""
    parents = chain.parents[k - 1]
    held = chain.possible[k]
    shares = held / np.maximum(np.add.reduceat(held.astype(np.float64), chain.starts[k - 1][:-1]), 1.0)[parents]
    known = np.isfinite(whole[:, parents]) & (whole[:, parents] > 0)
    if not known.any():
        return shares
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(known, parts / whole[:, parents], np.nan)
    first = found[np.argmax(known, axis=0), np.arange(parents.size)]
    if np.any(np.abs(found - first)[known] > SAME_SHARE * np.broadcast_to(first, found.shape)[known]):
        return None
    return np.where(known.any(axis=0), first, shares)


def _products(variances: Mapping[Pair, float]) -> dict[Pair, float]:
    """Products of one factor a level and one a grouping, the nearest in logarithms, none below what it stands for."""
    noisy = [pair for pair, variance in variances.items() if variance > 0]
    levels, groupings = np.array(noisy).T
    design = np.concatenate([np.eye(levels.max() + 1)[levels], np.eye(groupings.max() + 1)[groupings]], axis=1)
    wanted = np.log([variances[pair] for pair in noisy])
    fitted = design @ np.linalg.lstsq(design, wanted)[0]
    if np.allclose(fitted, wanted, rtol=0.0, atol=SAME_SHARE / 10):
        raise InvalidRequest(
            "measurements of some groupings at some levels only, on a chain with unlike parts",
            why="what a part contributes to its group differs from level to level, and no passes are unbiased then",
            instead="measure the same groupings at every level of the tree, or none of a level's",
        )
    raised = np.exp(fitted + np.max(wanted - fitted))
    return dict.fromkeys(variances, 0.0) | dict(zip(noisy, raised.tolist(), strict=True))


def _refuse_unless_design(variances: Mapping[Pair, float], levels: int, last: int) -> None:
    for (level, k), variance in variances.items():
        if not (0 <= level < levels and 0 <= k <= last and 0 <= variance < np.inf):
            raise InvalidRequest(
                f"a variance of {variance} for level {level} of the tree and {k} of the chain",
                why=f"there are {levels} levels and {last + 1} groupings, and a variance is finite and at least 0",
                instead="leave out what is not measured; 0 says that it is known exactly",
            )


Levels = tuple[tuple[Floats, ...], ...]  # [l][k], shape (nodes, classes of innovations)


def upward_variances(tree: Tree, weights: Weights, leaves: tuple[Floats, ...] | None = None) -> tuple[Levels, Levels]:
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


def final_variances(tree: Tree, upward: Levels, root: tuple[Floats, ...]) -> Levels:
    """Variances of innovations in the end, given those of the root: t_c = r_c·(1 − r_c/Σr) + (r_c/Σr)²·t_parent."""
    final = [root]
    for level in range(1, tree.last + 1):
        found = []
        for own, above in zip(upward[level], final[-1], strict=True):
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


PARTS = 1000  # A share is a whole number of this many parts.


@dataclass(frozen=True)
class BudgetAllocation:
    """A loss over the levels of a tree and of a chain: both lists of shares sum to 1.

    What is known exactly is not measured; its share goes to the other tables of that level, in proportion.
    """

    levels: tuple[Fraction, ...]
    tables: tuple[Fraction, ...]
    known: frozenset[Pair] = frozenset()

    def shares(self) -> dict[Pair, Fraction]:
        """The share of each table that is measured; they sum to 1."""
        pairs = [(level, k) for level in range(len(self.levels)) for k in range(len(self.tables))]
        measured = (pair for pair in pairs if pair not in self.known and self.tables[pair[1]])
        return {pair: math.prod(self.parts(*pair), start=Fraction(1)) for pair in measured}

    def parts(self, level: int, k: int) -> tuple[Fraction, Fraction]:
        """The share of a level in the loss, and that of a table in what its level gets."""
        whole = sum((part for i, part in enumerate(self.tables) if (level, i) not in self.known), Fraction(0))
        return self.levels[level], self.tables[k] / whole


def allocate_budget(
    tree: Tree,
    chain: PartitionChain,
    levels: Sequence[Fraction],
    values: Mapping[Pair, float],
    known: Collection[Pair] = (),
) -> BudgetAllocation:
    """The best shares of a chain's tables, in thousandths; `values` are v of the tables that count, any subset."""
    from scipy.optimize import minimize

    def sharing(logits: Floats) -> BudgetAllocation:
        exponentials = np.exp(np.append(logits, 0.0))
        return BudgetAllocation(tuple(levels), thousandths(exponentials / exponentials.sum()), frozenset(known))

    def loss(logits: Floats) -> float:
        exponentials = np.exp(np.append(logits, 0.0))
        return weighted_variance(tree, chain, levels, exponentials / exponentials.sum(), values, known)

    best = minimize(loss, np.zeros(chain.last), method="L-BFGS-B", bounds=[(-6.0, 6.0)] * chain.last)
    return sharing(best.x)


def weighted_variance(
    tree: Tree,
    chain: PartitionChain,
    levels: Sequence[Fraction],
    tables: Floats,
    values: Mapping[Pair, float],
    known: Collection[Pair] = (),
) -> float:
    """Σ v·L·(mean variance of a table's numbers), for a loss of 1."""
    variances = dict.fromkeys(known, 0.0)
    for level, share in enumerate(levels):
        measured = [k for k in range(len(tables)) if (level, k) not in variances]
        whole = sum(tables[k] for k in measured)
        variances |= {(level, k): whole / float(share) / tables[k] for k in measured}
    weights = Weights.of(chain, variances, levels=len(levels))
    upward, _ = upward_variances(tree, weights)
    final = final_variances(tree, upward, upward[0])
    loss = 0.0
    for level in sorted({level for level, _ in values}):
        means = tuple(each.mean(axis=0, keepdims=True) for each in final[level])  # tables are linear in innovations
        for k, each in enumerate(table_variances(weights, means)):
            loss += values.get((level, k), 0.0) * float(levels[level]) * each.mean()
    return float(loss)


def thousandths(shares: Floats) -> tuple[Fraction, ...]:
    """Shares rounded to thousandths that sum to 1, by largest remainders; none below one thousandth."""
    parts = np.maximum(np.floor(shares * PARTS), 1).astype(np.int64)
    order = np.argsort(-(shares * PARTS - parts), kind="stable")
    parts[order[: max(PARTS - int(parts.sum()), 0)]] += 1
    parts[np.argmax(parts)] -= parts.sum() - PARTS
    return tuple(Fraction(int(part), PARTS) for part in parts)
