"""What an estimate of a tree × chain takes of each measurement's noise, as a short sum of products.

The estimate of Σ a_n·α_h·x[n, h], over nodes n of a level and groups h of a level of the chain, is Σ_κ Σ_c a ⊗ α_κ of
the innovations of each level κ of the chain and each class c of these. Passes over the tree treat all innovations of
one class alike, and passes along the chain all nodes of one level: so the weight of the measurement of a node and a
group is Σ ω_r[node]·γ_r[group], one product r for each κ and c. The passes of `estimates`, transposed, give both
factors: ω at the cost of one number a node, γ at that of one a group. Nothing as large as the measurements is held, and
numbers that weigh alike are counted, not listed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.estimates import (
    Levels,
    Pair,
    Weights,
    child_shares,
    final_variances,
    upward_variances,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree

DIGITS = 12  # Weights are told apart by so many digits of the largest.
NOTHING = 1e-12  # What is left of numbers that cancel, relative to these.


@dataclass(frozen=True, eq=False)
class Factors:
    """One factor of each product, of every node or group; shape (nodes or groups, products)."""

    values: Floats

    @cached_property
    def alike(self) -> tuple[Floats, Integers]:
        """Rows that are not the same, and how often each occurs."""
        scales = np.abs(self.values).max(axis=0, initial=0.0)
        rounded = np.round(self.values / np.where(scales > 0, scales, 1.0), DIGITS)
        found, times = np.unique(rounded, axis=0, return_counts=True)
        return found * scales, times


@dataclass(frozen=True, eq=False)
class PairWeights:
    """The weights of the measurements of one pair of levels: ω·γᵀ."""

    nodes: Factors  # ω, the same for all pairs of one level
    groups: Factors  # γ

    def dense(self) -> Floats:
        """Written out; shape (nodes, groups)."""
        return np.asarray(self.nodes.values @ self.groups.values.T)

    def counted(self) -> tuple[Floats, Integers]:
        """The different sizes of weights, and how many measurements have each."""
        (nodes, times), (groups, others) = self.nodes.alike, self.groups.alike
        return np.abs(nodes @ groups.T).reshape(-1), np.multiply.outer(times, others).reshape(-1)


@dataclass(frozen=True, eq=False)
class NoiseWeights:
    """The passes of a tree and a chain, transposed."""

    tree: Tree
    weights: Weights

    @property
    def chain(self) -> PartitionChain:
        return self.weights.chain

    def of(
        self, pair: Pair, asked: Sequence[tuple[Floats, Floats]], measured: Sequence[Pair]
    ) -> dict[Pair, PairWeights]:
        """What Σ nodes[n]·groups[h]·x[n, h] of a pair of levels takes of each measured pair, also the exact ones.

        `asked` are the nodes and the groups of some such sums, which are added up.
        """
        level, step = pair
        trees, chains = list[list[Floats]](), list[dict[Pair, Floats]]()  # of each product
        for nodes, groups in asked:
            for k, shares in enumerate(self._down_chain(groups, step)):
                classes = self.weights.classes[k]
                for which in np.unique(classes[shares != 0]):
                    own = self._beyond_groups(np.where(classes == which, shares, 0.0), k)
                    if own.any():
                        trees.append(self._along_tree(nodes, level, k, int(which)))
                        chains.append(self._along_chain(own, k, measured))
        if not trees:
            return {}
        factors = [Factors(np.stack(each, axis=1)) for each in zip(*trees, strict=True)]
        nothing = [np.zeros(size) for size in self.chain.sizes]
        return {
            at: PairWeights(
                factors[at[0]], Factors(np.stack([each.get(at, nothing[at[1]]) for each in chains], axis=1))
            )
            for at in measured
        }

    def parts(self, pair: Pair, groups: Floats) -> list[Floats]:
        """What Σ groups[h]·x[n, h] at any node n has of the variance t of each class of innovations, by their level.

        Innovations of a group's parts have Cov = t·(b_h·1[h = h′] − b_h·b_h′), those of other groups and levels none.
        """
        level, step = pair
        found = list[Floats]()
        for k, shares in enumerate(self._down_chain(groups, step)):
            sizes, classes = shares**2, self.weights.classes[k]
            if k:
                part, starts = self.weights.shares[k], self.chain.starts[k - 1][:-1]
                whole = np.add.reduceat(part * shares**2, starts)
                sizes = whole - np.add.reduceat(part * shares, starts) ** 2
                sizes[sizes < NOTHING * whole] = 0.0
                classes = classes[starts]
            count = self._final[level][k].shape[1]
            found.append(np.bincount(classes, weights=sizes, minlength=count).astype(np.float64))
        return found

    def variances(self, level: int, parts: Sequence[Floats]) -> Floats:
        """The variance of a sum with these parts at each node of a level; shape (nodes,).

        Upper bounds where estimates are not the best.
        """
        total = np.zeros(self.tree.sizes[level])
        for known, part in zip(self._final[level], parts, strict=False):
            used = part > 0
            total += known[:, used] @ part[used]
        return total

    @cached_property
    def _passes(self) -> tuple[Levels, Levels]:
        return upward_variances(self.tree, self.weights)

    @cached_property
    def _final(self) -> Levels:
        upward, _ = self._passes
        return final_variances(self.tree, upward, upward[0])

    def _down_chain(self, groups: Floats, step: int) -> list[Floats]:
        """What each level of innovations, from the total on, has in Σ groups[h]·x[h]."""
        found = [groups]
        for k in range(step, 0, -1):
            found.insert(0, np.add.reduceat(self.weights.shares[k] * found[0], self.chain.starts[k - 1][:-1]))
        return found

    def _along_tree(self, nodes: Floats, level: int, k: int, which: int) -> list[Floats]:
        """What one innovation, summed over nodes of a level, takes of that of each node's own measurements; [l]."""
        tree, (upward, gains) = self.tree, self._passes
        settled = [np.zeros(size) for size in tree.sizes]  # of what is known from at and below each node
        here = nodes
        for at in range(level, 0, -1):
            shares = child_shares(tree, upward[at][k][:, which : which + 1], at)[:, 0]
            handed = np.add.reduceat(shares * here, tree.starts[at - 1][:-1])
            settled[at] = here - handed[tree.parents[at - 1]]
            here = handed
        settled[0] = here
        found = list[Floats]()
        for at, gain in enumerate(each[k][:, which] for each in gains):  # of leaves: 1
            found.append(gain * settled[at])
            if at < tree.last:
                settled[at + 1] += ((1 - gain) * settled[at])[tree.parents[at]]
        return found

    def _beyond_groups(self, innovations: Floats, k: int) -> Floats:
        """What innovations take of each part of a group: nothing where all parts count alike."""
        if not k:
            return innovations
        starts, parents = self.chain.starts[k - 1][:-1], self.chain.parents[k - 1]
        found = innovations - np.add.reduceat(self.weights.shares[k] * innovations, starts)[parents]
        return np.where(np.abs(found) > NOTHING * np.abs(innovations).max(), found, 0.0)

    def _along_chain(self, first: Floats, k: int, measured: Sequence[Pair]) -> dict[Pair, Floats]:
        """What parts of one level of the chain take of a node's measurements, by their pair of levels."""
        found = dict[Pair, Floats]()
        for level in {at for at, _ in measured}:
            here = first
            for step in range(k, self.chain.last + 1):
                gain = self.weights.gains[level][step]
                if (level, step) in measured:
                    found[level, step] = np.where(self.chain.possible[step], gain * here, 0.0)
                    here = (1 - gain) * here
                if step < self.chain.last:
                    here = here[self.chain.parents[step]]
        return found
