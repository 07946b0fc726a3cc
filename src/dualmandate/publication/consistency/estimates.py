"""Best linear unbiased estimates of every table of a tree × chain, with standard errors, at the cost of passes.

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

Innovations rise from the leaves to the root and come down again. Leaves are never held all at once: their measurements
are read one family at a time, on the way up and once more on the way down. The same passes for variances alone say,
before anything is measured, how precise estimates will be; `allocate_budget` shares a loss along the chain accordingly.
With σ² = 1/(loss·share) for the share of each table, and tables of every level of the tree measured in the same
proportions, it minimizes Σ_l Σ_k v_k·L_l·(mean variance of the groups of level k at the nodes of level l). L_l is the
share of level l: without it, the level with the least loss would decide alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidInvariant, InvalidRequest
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.partitions import PartitionChain, Tree, first_and_members
from dualmandate.workload.levels import row_ids

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
            firsts, members = first_and_members(row_ids(whole, whole.shape[1]))
            shares.append(common)
            classes.append(members[chain.parents[k - 1]])
            sums.append(whole[:, firsts])
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

    def shares(logits: Floats) -> Floats:
        exponentials = np.exp(np.append(logits, 0.0))
        return np.asarray(exponentials / exponentials.sum())

    def loss(logits: Floats) -> float:
        return weighted_variance(tree, chain, levels, shares(logits), values, known)

    best = minimize(loss, np.zeros(chain.last), method="L-BFGS-B", bounds=[(-6.0, 6.0)] * chain.last)
    return BudgetAllocation(tuple(levels), thousandths(shares(best.x)), frozenset(known))


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


MeasuredTables = Mapping[Pair, NDArray[Any]]  # (nodes, groups) for a level of the tree and one of the chain


@dataclass(frozen=True, eq=False)
class Innovations:
    """Innovations of some nodes, with their variances: what subtrees tell the tree above them, and are told by it."""

    values: tuple[Floats, ...] = field(repr=False)  # [k], shape (nodes, groups)
    variances: tuple[Floats, ...] = field(repr=False)  # [k], shape (nodes, classes)

    def only(self, node: int) -> Innovations:
        own = slice(node, node + 1)
        return Innovations(tuple(each[own] for each in self.values), tuple(each[own] for each in self.variances))


@dataclass(frozen=True, eq=False)
class UpwardPass:
    """What is known at each level of a tree from the measurements at and below it."""

    tree: Tree
    weights: Weights
    measured: MeasuredTables = field(repr=False)
    values: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k] of all levels but the last, or of all
    sums: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k] of the children, all levels but the last
    variances: tuple[tuple[Floats, ...], ...] = field(repr=False)  # [l][k], shape (nodes, classes)

    @cached_property
    def shares(self) -> tuple[tuple[Floats, ...], ...]:
        """Of each child in what its parent has beyond its children's sum; [l − 1][k], shape (nodes, classes)."""
        levels = enumerate(self.variances[1:], start=1)
        return tuple(tuple(child_shares(self.tree, each, level) for each in found) for level, found in levels)

    @property
    def root(self) -> Innovations:
        """What the tree above is told."""
        return Innovations(self.values[0], self.variances[0])

    def at(self, level: int, nodes: range) -> tuple[Floats, ...]:
        """Innovations of some nodes from what is at and below them; new arrays."""
        if level < len(self.values):
            return tuple(each[nodes.start : nodes.stop].copy() for each in self.values[level])
        return node_innovations(self.weights, self.measured, level=level, nodes=nodes)


@dataclass(frozen=True, eq=False)
class TreeEstimates:
    """Best linear unbiased estimates of all tables; those of leaves are computed when they are asked for."""

    upward: UpwardPass
    values: tuple[tuple[Floats, ...], ...] = field(repr=False)  # innovations [l][k] of all levels but the last
    variances: tuple[tuple[Floats, ...], ...] = field(repr=False)  # of innovations [l][k], shape (nodes, classes)

    @property
    def tree(self) -> Tree:
        return self.upward.tree

    @property
    def chain(self) -> PartitionChain:
        return self.upward.weights.chain

    def tables(self, level: int, nodes: range | None = None, finest: int | None = None) -> tuple[Floats, ...]:
        """Estimates of some nodes (all, if none are named) for each level of the chain; [k], shape (nodes, groups).

        `finest` is the last level of the chain that is asked for: there are none beyond.
        """
        rows = range(self.tree.sizes[level]) if nodes is None else nodes
        last = self.chain.last if finest is None else finest
        tables = self._innovations(level, rows, last)
        for k in range(1, last + 1):
            put_back(tables[k], self.chain.parents[k - 1], self.upward.weights.shares[k], tables[k - 1])
        return tables

    def standard_errors(self, level: int, nodes: range | None = None, finest: int | None = None) -> tuple[Floats, ...]:
        """Standard errors of the same, whatever was measured."""
        rows = range(self.tree.sizes[level]) if nodes is None else nodes
        last = self.chain.last if finest is None else finest
        own = tuple(each[rows.start : rows.stop] for each in self.variances[level][: last + 1])
        return tuple(np.sqrt(each) for each in table_variances(self.upward.weights, own))

    def state(self, level: int) -> Innovations:
        """What the subtrees of a level (not the last) are told."""
        return Innovations(self.values[level], self.variances[level])

    def exact(self, level: int, k: int) -> bool:
        """Whether the tables of a level are known without noise."""
        return k < self._exact[level]

    @cached_property
    def _exact(self) -> tuple[int, ...]:
        """How many levels of the chain are known without noise, for each level of the tree."""
        noisy = ([bool(np.any(each)) for each in found] + [True] for found in self.upward.variances)
        return tuple(each.index(True) for each in noisy)

    def _innovations(self, level: int, nodes: range, last: int) -> tuple[Floats, ...]:
        if level < len(self.values):
            return tuple(each[nodes.start : nodes.stop].copy() for each in self.values[level][: last + 1])
        parents = self.tree.parents[level - 1][nodes.start : nodes.stop]
        return _settled(self.upward, self.values[level - 1], level=level, nodes=nodes, parents=parents)[: last + 1]


def estimate(
    tree: Tree, chain: PartitionChain, measured: MeasuredTables, variances: Mapping[Pair, float]
) -> TreeEstimates:
    """Best linear unbiased estimates from noisy whole numbers; a pair of variance 0 is an invariant, held exactly.

    A pair is a level of the tree and one of the chain; any may be left out. Where nothing tells parts apart, the
    standard error is ∞ and the estimate an equal split. Measurements of structural zeros are not looked at.
    """
    weights = Weights.of(chain, variances, levels=tree.last + 1)
    _refuse_unless_shaped(tree, chain, measured, variances)
    _refuse_contradictions(tree, chain, measured, [pair for pair, each in variances.items() if each == 0])
    upward = pass_up(tree, weights, measured)
    return pass_down(upward, upward.root)


def pass_up(tree: Tree, weights: Weights, measured: MeasuredTables, leaves: Innovations | None = None) -> UpwardPass:
    """The upward pass. `leaves` are what the subtrees told, where the leaves of this tree are roots of such."""
    depth = weights.chain.last + 1
    variances, gains = upward_variances(tree, weights, None if leaves is None else leaves.variances)
    values: list[tuple[Floats, ...]] = [] if leaves is None else [leaves.values]
    sums: list[tuple[Floats, ...]] = []
    for level in range(tree.last - 1, -1, -1):
        if values:
            below = tuple(_children(values[0][k], tree.starts[level]) for k in range(depth))
        else:
            below = _leaf_sums(tree, weights, measured)
        here = node_innovations(weights, measured, level=level, nodes=range(tree.sizes[level]))
        gain = [gains[level][k][:, weights.classes[k]] for k in range(depth)]
        values.insert(0, tuple(gain[k] * here[k] + (1 - gain[k]) * below[k] for k in range(depth)))
        sums.insert(0, below)
    return UpwardPass(tree, weights, measured, tuple(values), tuple(sums), variances)


def pass_down(upward: UpwardPass, root: Innovations) -> TreeEstimates:
    """The downward pass, from what is finally known of the root."""
    tree, values = upward.tree, [root.values]
    for level in range(1, len(upward.values)):
        nodes = range(tree.sizes[level])
        values.append(_settled(upward, values[-1], level=level, nodes=nodes, parents=tree.parents[level - 1]))
    return TreeEstimates(upward, tuple(values), final_variances(tree, upward.variances, root.variances))


def node_innovations(weights: Weights, measured: MeasuredTables, *, level: int, nodes: range) -> tuple[Floats, ...]:
    """The innovations of some nodes from their own measurements: the upward pass along the chain."""
    chain, found = weights.chain, list[Floats]()
    held = _read(measured, (level, chain.last), nodes, chain)
    for k in range(chain.last, 0, -1):
        sums = np.empty((len(nodes), chain.sizes[k - 1]))
        take_out(held, chain.starts[k - 1], weights.shares[k], sums)
        found.insert(0, held)
        if (level, k - 1) in measured:
            gain = weights.gains[level][k - 1]
            sums = gain * _read(measured, (level, k - 1), nodes, chain) + (1 - gain) * sums
        held = sums
    return (held, *found)


def _read(measured: MeasuredTables, pair: Pair, nodes: range, chain: PartitionChain) -> Floats:
    """Measurements of some nodes as new floats, 0 where there are none or cells cannot occur."""
    if pair not in measured:
        return np.zeros((len(nodes), chain.sizes[pair[1]]))
    rows = measured[pair][nodes.start : nodes.stop].astype(np.float64)
    if chain.zeros is not None:
        rows[:, ~chain.possible[pair[1]]] = 0.0
    return rows


def _children(values: Floats, starts: Integers) -> Floats:
    sums = np.empty((starts.size - 1, values.shape[1]))
    add_children(values, starts, sums)
    return sums


def _leaf_sums(tree: Tree, weights: Weights, measured: MeasuredTables) -> tuple[Floats, ...]:
    """The sums of each family's innovations, one family at a time."""
    level = tree.last - 1
    sums = tuple(np.empty((tree.sizes[level], size)) for size in weights.chain.sizes)
    for node in range(tree.sizes[level]):
        family = node_innovations(weights, measured, level=tree.last, nodes=tree.children(level, node))
        for whole, each in zip(sums, family, strict=True):
            add_children(each, np.array([0, len(each)]), whole[node : node + 1])
    return sums


def _settled(
    upward: UpwardPass, above: tuple[Floats, ...], *, level: int, nodes: range, parents: Integers
) -> tuple[Floats, ...]:
    """Innovations of some nodes after their parents told theirs."""
    values, first = upward.at(level, nodes), int(parents[0]) if parents.size else 0
    last = int(parents[-1]) + 1 if parents.size else 0
    for k, each in enumerate(values):
        gaps = above[k][first:last] - upward.sums[level - 1][k][first:last]
        shares = upward.shares[level - 1][k][nodes.start : nodes.stop]
        hand_down(each, parents - first, shares, upward.weights.classes[k], gaps)
    return values


def _refuse_unless_shaped(
    tree: Tree, chain: PartitionChain, measured: MeasuredTables, variances: Mapping[Pair, float]
) -> None:
    shapes = {(level, k): (tree.sizes[level], chain.sizes[k]) for level, k in variances}
    if set(measured) != set(variances) or any(measured[pair].shape != shape for pair, shape in shapes.items()):
        raise InvalidRequest(
            "measurements that do not fit the tree and the chain",
            why="each measured pair of levels has one variance and one number a node and group",
            instead="give arrays of shape (nodes, groups) for exactly the pairs that have a variance",
        )


def _refuse_contradictions(tree: Tree, chain: PartitionChain, measured: MeasuredTables, exact: Sequence[Pair]) -> None:
    """Exact numbers must be counts, and agree wherever two of them tell the same."""
    tables = {pair: np.asarray(measured[pair]) for pair in exact}
    for i, (pair, table) in enumerate(tables.items()):
        impossible = table[:, ~chain.possible[pair[1]]]
        wrong = bool(np.any(table < 0) or np.any(table != np.rint(table)) or np.any(impossible))
        for other in exact[:i]:
            common = min(pair[0], other[0]), min(pair[1], other[1])
            views = [_coarser(tree, chain, tables[one], one, common) for one in (pair, other)]
            wrong = wrong or not np.array_equal(views[0], views[1])
        if wrong:
            raise InvalidInvariant(
                f"exact numbers at level {pair[0]} of the tree and {pair[1]} of the chain that cannot be counts",
                why="they are negative, not whole, in structural zeros, or do not add up to other exact numbers",
                instead="state counts of one population",
            )


def _coarser(tree: Tree, chain: PartitionChain, table: NDArray[Any], pair: Pair, to: Pair) -> NDArray[Any]:
    for starts in reversed(tree.starts[to[0] : pair[0]]):
        table = np.add.reduceat(table, starts[:-1], axis=0)
    for starts in reversed(chain.starts[to[1] : pair[1]]):
        table = np.add.reduceat(table, starts[:-1], axis=1)
    return table


@numba.njit(cache=True, nogil=True)
def take_out(values: Any, starts: Any, shares: Any, sums: Any) -> None:
    """Write the sum of each group's parts, and leave of each part what is not its share of that sum."""
    for row in range(values.shape[0]):
        for group in range(starts.size - 1):
            total = 0.0
            for part in range(starts[group], starts[group + 1]):
                total += values[row, part]
            sums[row, group] = total
            for part in range(starts[group], starts[group + 1]):
                values[row, part] -= shares[part] * total


@numba.njit(cache=True, nogil=True)
def put_back(values: Any, parents: Any, shares: Any, sums: Any) -> None:
    """Add to each part its share of its group's sum."""
    for row in range(values.shape[0]):
        for part in range(parents.size):
            values[row, part] += shares[part] * sums[row, parents[part]]


@numba.njit(cache=True, nogil=True)
def add_children(values: Any, starts: Any, sums: Any) -> None:
    """Write the sum of the rows of each node's children."""
    sums[:] = 0
    for node in range(starts.size - 1):
        for child in range(starts[node], starts[node + 1]):
            for place in range(values.shape[1]):
                sums[node, place] += values[child, place]


@numba.njit(cache=True, nogil=True)
def hand_down(values: Any, parents: Any, shares: Any, classes: Any, gaps: Any) -> None:
    """Add to each child its share of what its parent has beyond the sum of its children."""
    for child in range(values.shape[0]):
        for place in range(values.shape[1]):
            values[child, place] += shares[child, classes[place]] * gaps[parents[child], place]


@numba.njit(cache=True, nogil=True)
def count_across(values: Any, areas: Any, groups: Any, onto: Any) -> None:
    """Add each node's cells to the areas and groups that count them; a negative number counts nowhere."""
    for node in range(values.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[areas[node], groups[cell]] += values[node, cell]


@numba.njit(cache=True, nogil=True)
def spread_across(numbers: Any, areas: Any, groups: Any, factor: Any, onto: Any) -> None:
    """Add to each node's cells the number of the area and group that counts them, times a factor."""
    for node in range(onto.shape[0]):
        if areas[node] >= 0:
            for cell in range(groups.size):
                if groups[cell] >= 0:
                    onto[node, cell] += factor * numbers[areas[node], groups[cell]]


@numba.njit(cache=True, nogil=True)
def take_across(numbers: Any, groups: Any, factor: Any, onto: Any) -> None:
    """Add to each node's cells the number of the group that counts them, times a factor."""
    for node in range(onto.shape[0]):
        for cell in range(groups.size):
            if groups[cell] >= 0:
                onto[node, cell] += factor * numbers[node, groups[cell]]
