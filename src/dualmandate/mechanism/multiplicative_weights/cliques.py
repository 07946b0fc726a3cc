"""A distribution as a product of potentials over cliques of attributes, and its marginals by a junction tree.

P(cell) ∝ Π_c exp θ_c(cell on the attributes of c). Attributes are eliminated one after the other, each time the one
that makes the smallest clique; what an attribute then stands in a product with is its clique, and the clique hangs on
that of its neighbor that goes next. Two passes of messages give the marginal of every clique: exact, at the price of
the cells of all cliques and never of the domain. A domain that one query names whole is one clique.
Source: [LS88].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualmandate.population.arrays import Floats

Axes = tuple[int, ...]
"""Places of attributes in the domain, increasing."""
LARGEST_TREE = 2**20  # cells of all cliques together: some 50 milliseconds a pass


@dataclass(frozen=True)
class CliqueTree:
    """Cliques in the order in which their attributes are eliminated; the parent of each comes after it."""

    shape: tuple[int, ...]  # levels of every attribute of the domain
    cliques: tuple[Axes, ...]
    parents: tuple[int | None, ...]

    @classmethod
    def joining(cls, shape: tuple[int, ...], together: Iterable[Axes]) -> CliqueTree:
        """A tree in which each of some sets of attributes lies within one clique."""
        sets = tuple(together)
        near: dict[int, set[int]] = {axis: set() for axis in range(len(shape))}
        for axes in sets:
            for axis in axes:
                near[axis] |= set(axes) - {axis}
        order, cliques = _eliminated(shape, near)
        turn = {axis: place for place, axis in enumerate(order)}
        parents = [
            min((turn[axis] for axis in clique if axis != own), default=None)
            for own, clique in zip(order, cliques, strict=True)
        ]
        return cls(shape, tuple(cliques), tuple(parents))

    def cells(self, axes: Iterable[int]) -> int:
        return math.prod(self.shape[axis] for axis in axes)

    @property
    def size(self) -> int:
        """Cells of all cliques together."""
        return sum(self.cells(clique) for clique in self.cliques)

    def holder(self, axes: Axes) -> int | None:
        """The smallest clique that holds some attributes; None where none does."""
        holding = [place for place, clique in enumerate(self.cliques) if set(axes) <= set(clique)]
        return min(holding, key=lambda place: self.cells(self.cliques[place]), default=None)

    def separator(self, place: int) -> Axes:
        """What a clique shares with its parent; nothing for one without."""
        parent = self.parents[place]
        return () if parent is None else tuple(axis for axis in self.cliques[place] if axis in self.cliques[parent])

    def marginals(self, potentials: Mapping[Axes, Floats], total: float) -> CliqueMarginals:
        """The marginal of every clique, each with a sum of `total`; potentials are logarithms, in their own shape."""
        logs = [np.zeros([self.shape[axis] for axis in clique]) for clique in self.cliques]
        for axes, potential in potentials.items():
            place = self.holder(axes)
            assert place is not None
            logs[place] += spread(potential, axes, self.cliques[place])
        sent: dict[int, Floats] = {}
        for place, parent in enumerate(self.parents):
            if parent is not None:
                sent[place] = _log_sum(logs[place], self.cliques[place], self.separator(place))
                logs[parent] += spread(sent[place], self.separator(place), self.cliques[parent])
        for place in reversed(range(len(self.cliques))):
            parent = self.parents[place]
            if parent is not None:
                shared = self.separator(place)
                back = _log_sum(logs[parent], self.cliques[parent], shared) - sent[place]
                logs[place] += spread(back, shared, self.cliques[place])
        roots = [place for place, parent in enumerate(self.parents) if parent is None]
        log_sum = sum(float(_log_sum(logs[place].reshape(-1), (0,), ())) for place in roots)
        return CliqueMarginals(self, tuple(_normalized(each) for each in logs), total, log_sum)


@dataclass(frozen=True, eq=False)
class CliqueMarginals:
    """The marginals of a distribution's cliques, from which that of any attributes follows."""

    tree: CliqueTree
    shares: tuple[Floats, ...]  # one a clique of the tree, in its shape; each sums to 1
    total: float
    log_sum: float  # of the weights of all cells

    def of(self, axes: Axes) -> Floats:
        """The marginal of some attributes, in their shape; of several cliques by elimination along the tree."""
        place = self.tree.holder(axes)
        if place is not None:
            return self.total * _summed(self.shares[place], self.tree.cliques[place], axes)
        return self.total * self._across(axes)

    def _across(self, axes: Axes) -> Floats:
        tree, wanted = self.tree, set(axes)
        needed: set[int] = set()
        for axis in axes:
            place = tree.holder((axis,))
            while place is not None and place not in needed:
                needed.add(place)
                place = tree.parents[place]
        arriving: dict[int, list[tuple[Floats, Axes]]] = {place: [] for place in needed}
        roots: list[tuple[Floats, Axes]] = []
        for place in sorted(needed):
            clique, shared, parent = tree.cliques[place], tree.separator(place), tree.parents[place]
            own = self.shares[place]
            if parent is not None:  # what it says beyond its parent: P(clique | separator)
                known = spread(_summed(own, clique, shared), shared, clique)
                own = np.divide(own, known, out=np.zeros_like(own), where=known > 0)
            parts = [(own, clique), *arriving[place]]
            kept = tuple(sorted(set(shared) | {axis for _, each in parts for axis in each if axis in wanted}))
            message = _product(parts, kept), kept
            if parent is None:
                roots.append(message)
            else:
                arriving[parent].append(message)
        return _product(roots, axes)


def spread(values: Floats, axes: Axes, onto: Axes) -> Floats:
    """An array over some attributes in a shape that goes with one over more of them."""
    sizes = dict(zip(axes, values.shape, strict=True))
    return values.reshape([sizes.get(axis, 1) for axis in onto])


def _eliminated(shape: Sequence[int], near: dict[int, set[int]]) -> tuple[list[int], list[Axes]]:
    """Attributes in the order of their elimination, and what each then stands together with."""

    def cells(axis: int) -> int:
        return math.prod(shape[each] for each in _with(near[axis], axis))

    order, cliques = [], []
    while near:
        axis = min(near, key=lambda each: (cells(each), each))
        clique = _with(near[axis], axis)
        order.append(axis)
        cliques.append(clique)
        for other in near.pop(axis):
            near[other] = (near[other] | set(clique)) - {axis, other}
    return order, cliques


def _with(others: AbstractSet[int], axis: int) -> Axes:
    return tuple(sorted({*others, axis}))


def _summed(values: Floats, axes: Axes, kept: Axes) -> Floats:
    dropped = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    return np.asarray(values.sum(axis=dropped)) if dropped else values


def _log_sum(logs: Floats, axes: Axes, kept: Axes) -> Floats:
    dropped = tuple(place for place, axis in enumerate(axes) if axis not in kept)
    if not dropped:
        return logs
    highest = logs.max(axis=dropped, keepdims=True)
    sums = np.log(np.exp(logs - highest).sum(axis=dropped, keepdims=True))
    return np.asarray((sums + highest).squeeze(dropped))


def _normalized(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def _product(parts: Sequence[tuple[Floats, Axes]], kept: Axes) -> Floats:
    """The product of arrays over attributes, summed to those that are kept."""
    letters = {axis: place for place, axis in enumerate(sorted({axis for _, axes in parts for axis in axes}))}
    operands: list[Any] = []
    for values, axes in parts:
        operands += [values, [letters[axis] for axis in axes]]
    return np.asarray(np.einsum(*operands, [letters[axis] for axis in kept], optimize="greedy"))
