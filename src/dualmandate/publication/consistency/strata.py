"""Exact standard errors with crossing tables, where groupings of cells are orthogonal.

Groupings into parts of one size each, any two of which share their parts evenly within what holds both (as the tables
of a product of attributes do), are orthogonal [Bai08]: they take the cells apart into *strata* G with projections Q_G,
and every measured table F weighs in the strata of the groupings that it refines, n_F/σ² each, n_F the cells of a part.
So the covariance of a node's cells is Σ t_G·Q_G, for any variances at any level, and t_G rises and comes down the tree
by itself. The variance of a part of F is n_F²/n·Σ t_G·rank Q_G over those strata, n the number of cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.across import Crossing
from dualmandate.publication.consistency.nesting import Chain, Indices, Tree
from dualmandate.publication.consistency.precision import Levels, child_shares, final_variances, risen_variances
from dualmandate.publication.consistency.weighing import Floats, Pair, Weights

MOST_STRATA = 64


@dataclass(frozen=True, eq=False)
class Strata:
    """Variances of the strata of each node, and the groupings that they belong to."""

    groupings: tuple[Indices, ...] = field(repr=False)  # of the cells that can occur, closed under what holds both
    possible: NDArray[np.bool_] = field(repr=False)  # which cells can occur
    ranks: tuple[int, ...]
    variances: tuple[Floats, ...] = field(repr=False)  # t of [l], shape (nodes, strata)
    risen: tuple[Floats, ...] = field(repr=False)  # the same from what is at and below each node

    @classmethod
    def of(
        cls,
        tree: Tree,
        chain: Chain,
        variances: Mapping[Pair, float],
        crossings: Sequence[Crossing],
        *,
        alone: bool = False,
    ) -> Strata | None:
        """The strata of a nest with crossing tables; None where they are not orthogonal.

        `alone` gives the variances of the nest without the numbers of the crossing tables.
        """
        possible = chain.possible[-1]
        asked = [_named(chain.ancestors(k)[possible]) for k in range(chain.last + 1)]
        asked += [_named(crossing.groups[possible]) for crossing in crossings]
        whole = all(crossing.in_place and np.all(crossing.groups[possible] >= 0) for crossing in crossings)
        groupings = _closed(asked) if whole else None
        if groupings is None:
            return None
        ranks = _ranks(groupings)
        measured = [(level, asked[k], variance) for (level, k), variance in variances.items()]
        pairs = zip(crossings, asked[chain.last + 1 :], strict=True)
        own = [(each.level, labels, each.variance) for each, labels in pairs]
        precision = np.zeros((tree.last + 1, len(groupings)))
        for level, labels, variance in measured if alone else (*measured, *own):
            weight = np.inf if variance == 0 else labels.size / (int(labels.max()) + 1) / variance
            precision[level] += [weight if _within(labels, each) else 0.0 for each in groupings]
        with np.errstate(divide="ignore"):
            weights = Weights(chain, (), (), (), (1 / precision,))
        risen: Levels = risen_variances(tree, weights)[0]
        found = final_variances(tree, risen, risen[0])
        each_level = tuple(each[0] for each in found), tuple(each[0] for each in risen)
        return cls(tuple(groupings), possible, tuple(ranks), *each_level)

    def standard_errors(self, level: int, labels: Indices, nodes: range | None = None) -> Floats:
        """Standard errors of a grouping's parts, given its part of each cell; shape (nodes, parts)."""
        rows = self.variances[level] if nodes is None else self.variances[level][nodes.start : nodes.stop]
        own = labels[self.possible]
        part = np.bincount(own, minlength=int(labels.max()) + 1)
        named = _named(own)
        coarser = [i for i, each in enumerate(self.groupings) if self.ranks[i] and _within(named, each)]
        of_one = rows[:, coarser] @ np.array([self.ranks[i] for i in coarser], dtype=np.float64) / own.size
        return np.sqrt(of_one)[:, None] * part

    def projections(self, labels: Indices, parts: int) -> tuple[tuple[int, Floats], ...]:
        """The strata of a grouping, and the projection of numbers of its parts on each; shape (parts, parts).

        Q of a stratum is P of its grouping less Q of all coarser ones; P of a coarser grouping averages the parts.
        """
        own = _named(labels[self.possible])
        used = labels[self.possible][np.unique(own, return_index=True)[1]]  # the part that each of these is
        firsts = np.unique(own, return_index=True)[1]
        coarser = [i for i, each in enumerate(self.groupings) if _within(own, each)]
        coarser.sort(key=lambda i: int(self.groupings[i].max()))
        found = dict[int, Floats]()
        for i in coarser:
            alike = self.groupings[i][firsts]
            small = (alike[:, None] == alike[None, :]) / np.bincount(alike)[alike][:, None]
            above = [found[j] for j in found if _within(self.groupings[i], self.groupings[j])]
            found[i] = small - sum(above, np.zeros_like(small))
        wide = {i: np.zeros((parts, parts)) for i in found if self.ranks[i]}
        for i, each in wide.items():
            each[np.ix_(used, used)] = found[i]
        return tuple(wide.items())

    def covariance(self, tree: Tree, stratum: int, scores: Sequence[tuple[int, Floats]], level: int) -> Floats:
        """What scores XᵀΣ⁻¹y of the nodes of some levels say of those of one, in one stratum; shape (nodes, parts)."""
        cut = max(level, *(own for own, _ in scores))
        risen: list[Floats] = []  # estimates from what is at and below each node, from the cut up to the root
        for here in range(cut, -1, -1):
            score = np.zeros((tree.sizes[here], scores[0][1].shape[1]))
            for own, each in scores:
                score += each if own == here else 0.0
            if risen:
                starts = tree.starts[here][:-1]
                below = np.add.reduceat(self.risen[here + 1][:, stratum], starts)[:, None]
                sums = np.add.reduceat(risen[0], starts, axis=0)
                score = score + np.divide(sums, below, out=np.zeros_like(sums), where=below > 0)
            risen.insert(0, self.risen[here][:, stratum, None] * score)
        final = risen[0]
        for here in range(1, level + 1):
            parents = tree.parents[here - 1]
            gaps = final - np.add.reduceat(risen[here], tree.starts[here - 1][:-1], axis=0)
            shares = child_shares(tree, self.risen[here][:, stratum, None], here)
            final = risen[here] + shares * gaps[parents]
        return np.asarray(final)


def _named(labels: Indices) -> Indices:
    """The same parts, numbered in the order of their first cells."""
    _, firsts, members = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(firsts))[members.reshape(-1)]


def _closed(asked: Sequence[Indices]) -> list[Indices] | None:
    """The groupings and all that hold two of them; None where parts differ in size or groupings are not orthogonal."""
    found = list({each.tobytes(): each for each in asked}.values())
    if any(np.ptp(np.bincount(each)) for each in found):
        return None
    pairs = list(combinations(range(len(found)), 2))
    while pairs:
        one, other = (found[place] for place in pairs.pop())
        both = _holding(one, other)
        shared = np.unique(one * (int(other.max()) + 1) + other, return_counts=True)[1]
        sizes = [each.size // (int(each.max()) + 1) for each in (one, other, both)]
        if np.ptp(np.bincount(both)) or np.any(shared * sizes[2] != sizes[0] * sizes[1]):
            return None
        if not any(np.array_equal(both, each) for each in found):
            pairs += [(place, len(found)) for place in range(len(found))]
            found.append(both)
            if len(found) > MOST_STRATA:
                return None
    return found


def _holding(one: Indices, other: Indices) -> Indices:
    """The finest grouping whose parts hold those of both."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    sizes = int(one.max()) + 1, int(other.max()) + 1
    joined = coo_array((np.ones(one.size), (one, other + sizes[0])), shape=(sum(sizes), sum(sizes)))
    return _named(connected_components(joined, directed=False)[1][one].astype(np.int64))


def _within(fine: Indices, coarse: Indices) -> bool:
    """Whether each part of the finer grouping lies in one part of the coarser."""
    firsts = np.unique(fine, return_index=True)[1]
    return bool(np.array_equal(coarse[firsts][fine], coarse))


def _ranks(groupings: Sequence[Indices]) -> list[int]:
    """Of the stratum of each grouping: its parts less the ranks of all coarser ones."""
    parts = [int(each.max()) + 1 for each in groupings]
    ranks = [0] * len(parts)
    for i in np.argsort(parts, kind="stable"):
        below = [j for j in range(len(parts)) if j != i and _within(groupings[i], groupings[j])]
        ranks[i] = parts[i] - sum(ranks[j] for j in below)
    return ranks
