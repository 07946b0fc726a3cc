"""Attributes in cliques that hang together as a tree: where a model of whole records is worked out, small as it is.

The attributes of every measured marginal lie together in one clique; the graph is made chordal by eliminating one
attribute after the other, that of the smallest clique first. Neighbors in the tree share a separator, and what two
parts of the tree know of each other stands in it alone. So every sum over the domain is a few sums over cliques.
Source: [LS88].
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dualmandate.population.arrays import Booleans, Floats

MOST_HELD = 2**23  # numbers at once
SMALLEST = 1e-290  # below, a share is taken for 0: its inverse would be none
Places = tuple[int, ...]  # of attributes, increasing


@dataclass(frozen=True)
class JunctionTree:
    """Cliques, each after its parent; the first has none, and separators may be empty."""

    sizes: tuple[int, ...]
    cliques: tuple[Places, ...]
    parents: tuple[int, ...]

    @cached_property
    def cells(self) -> int:
        """Cells of all cliques (an exact integer, however large)."""
        return sum(cells_of(clique, self.sizes) for clique in self.cliques)

    @cached_property
    def separators(self) -> tuple[Places, ...]:
        """What each clique shares with its parent."""
        return tuple(
            _shared(clique, self.cliques[parent]) if parent >= 0 else ()
            for clique, parent in zip(self.cliques, self.parents, strict=True)
        )

    def home(self, places: Iterable[int]) -> int | None:
        """The smallest clique with all these attributes."""
        wanted = set(places)
        found = [number for number, clique in enumerate(self.cliques) if wanted <= set(clique)]
        return min(found, key=lambda number: (cells_of(self.cliques[number], self.sizes), number), default=None)


def cells_of(places: Iterable[int], sizes: Sequence[int]) -> int:
    """How many combinations of levels some attributes have (an exact integer, however large)."""
    return math.prod(sizes[place] for place in places)


def _shared(one: Places, other: Places) -> Places:
    return tuple(place for place in one if place in other)


def junction_tree(sizes: Sequence[int], sets: Iterable[Places]) -> JunctionTree:
    """A small tree of cliques in which every set lies within one; attributes of no set stand alone."""
    cliques = _cliques(tuple(sizes), frozenset(frozenset(each) for each in sets))
    # Prim's algorithm: the clique that shares most with those already there comes next.
    order, parents = [0], [-1]
    best = {number: (len(_shared(cliques[number], cliques[0])), 0) for number in range(1, len(cliques))}
    while best:
        chosen = max(best, key=lambda number: (best[number][0], -number))
        order.append(chosen)
        parents.append(order.index(best.pop(chosen)[1]))
        for number, (shared, _) in best.items():
            more = len(_shared(cliques[number], cliques[chosen]))
            if more > shared:
                best[number] = more, chosen
    return JunctionTree(tuple(sizes), tuple(cliques[number] for number in order), tuple(parents))


def tree_cells(sizes: Sequence[int], sets: Iterable[Places]) -> int:
    """Cells of all cliques of that tree."""
    return sum(cells_of(clique, sizes) for clique in _cliques(tuple(sizes), frozenset(map(frozenset, sets))))


@lru_cache(maxsize=4096)
def _cliques(sizes: tuple[int, ...], sets: frozenset[frozenset[int]]) -> tuple[Places, ...]:
    """The largest cliques that eliminating attributes leaves, the attribute of the smallest clique first."""
    neighbors = [0] * len(sizes)
    for each in sets:
        bits = sum(1 << place for place in each)
        for place in each:
            neighbors[place] |= bits
    logs = [math.log(size) for size in sizes]
    left, found = set(range(len(sizes))), list[int]()
    costs = {place: _cost(neighbors[place] | 1 << place, logs) for place in left}
    while left:
        chosen = min(left, key=lambda place: (costs[place], place))
        clique = neighbors[chosen] | 1 << chosen
        if not any(clique & other == clique for other in found):
            found.append(clique)
        left.remove(chosen)
        for place in _bits(clique & ~(1 << chosen)):
            neighbors[place] = (neighbors[place] | clique) & ~(1 << chosen)
            costs[place] = _cost(neighbors[place] | 1 << place, logs)
    return tuple(tuple(_bits(clique)) for clique in found)


def _cost(clique: int, logs: Sequence[float]) -> float:
    return sum(logs[place] for place in _bits(clique))


def _bits(number: int) -> list[int]:
    found = []
    while number:
        low = number & -number
        found.append(low.bit_length() - 1)
        number ^= low
    return found


@dataclass(frozen=True, eq=False)
class TreeModel:
    """Shares of records in each cell of each clique, which agree on separators and add up to 1."""

    tree: JunctionTree
    beliefs: tuple[Floats, ...]  # in the shape of each clique

    def marginal(self, places: Sequence[int]) -> Floats:
        """The share of records with each combination of some attributes' levels, in their order; adds up to 1.

        From the cliques that lie between these attributes: each hands on what its parent and the question need. Where
        that would be large, level by level of one attribute.
        """
        wanted = tuple(sorted(places))
        found = self._within(wanted, {})
        return found if wanted == tuple(places) else found.transpose([wanted.index(place) for place in places])

    def work(self, places: Iterable[int]) -> int:
        """The most numbers that a clique between these attributes has to do with at once."""
        wanted = tuple(sorted(places))
        if self.tree.home(wanted) is not None:
            return cells_of(wanted, self.tree.sizes)
        return max(cells_of(step.held, self.tree.sizes) for step in self._route(wanted, {}))

    def _within(self, wanted: Places, fixed: Mapping[int, int]) -> Floats:
        tree, home = self.tree, self.tree.home(wanted)
        if home is not None and not fixed:
            return summed(self.beliefs[home], tree.cliques[home], wanted)
        route = self._route(wanted, fixed)
        if wanted and max(cells_of(step.held, tree.sizes) for step in route) > MOST_HELD:
            longest = max(wanted, key=lambda place: tree.sizes[place])
            others = tuple(place for place in wanted if place != longest)
            slices = [self._within(others, {**fixed, longest: level}) for level in range(tree.sizes[longest])]
            return np.stack(slices, axis=wanted.index(longest))
        handed: dict[int, list[tuple[Places, Floats]]] = {}
        for step in route:
            clique, separator = tree.cliques[step.number], tree.separators[step.number]
            inner = tuple(place for place in clique if place in step.held)
            found = summed(self.beliefs[step.number], clique, inner)
            if not step.is_last and separator:
                found = found * np.expand_dims(_inverse(summed(found, inner, separator)), _missing(inner, separator))
            for place in step.fixed:
                level = np.arange(tree.sizes[place]) == fixed[place]
                found = found * level.reshape([-1 if place == other else 1 for other in inner])
            operands: list[object] = [found, list(inner)]
            for each, message in handed.pop(step.number, []):
                operands += [message, list(each)]
            joined: Floats = np.einsum(*operands, list(step.kept), optimize=True)  # type: ignore[call-overload]
            if step.is_last:
                return joined
            handed.setdefault(tree.parents[step.number], []).append((step.kept, joined))
        raise AssertionError("a tree has a root")

    def _route(self, wanted: Places, fixed: Mapping[int, int]) -> list[_Step]:
        """The cliques that have to do with a question, from below; an attribute is asked for nearest to the root.

        A subtree with none of them sums to 1.
        """
        tree, steps = self.tree, list[_Step]()
        top = {place: next(n for n, c in enumerate(tree.cliques) if place in c) for place in (*wanted, *fixed)}
        handed: dict[int, list[tuple[set[int], Places]]] = {}
        for number in range(max(top.values(), default=0), -1, -1):
            separator, below = tree.separators[number], handed.pop(number, [])
            here = {place for place, at in top.items() if at == number}
            done = here.union(*(each for each, _ in below))
            if not done and top:
                continue
            is_last = len(done) == len(top)
            kept = wanted if is_last else tuple(sorted({*separator, *(done - fixed.keys())}))
            named = {*kept, *here, *(() if is_last else separator), *(place for _, each in below for place in each)}
            held = tuple(sorted(named))
            steps.append(_Step(number, held, kept, tuple(place for place in fixed if place in here), is_last))
            if is_last:
                break
            handed.setdefault(tree.parents[number], []).append((done, kept))
        return steps


@dataclass(frozen=True)
class _Step:
    """What one clique does for a question: attributes it has to do with, those it hands on, and those fixed here."""

    number: int
    held: Places
    kept: Places
    fixed: Places
    is_last: bool


def summed(values: Floats, places: Places, kept: Sequence[int]) -> Floats:
    """Values by some attributes, added up to fewer of them."""
    return _reduced(np.add, values, _missing(places, kept))


def _reduced(function: np.ufunc, values: Floats, axes: tuple[int, ...]) -> Floats:
    """The sum, or the largest, over some axes; the longest first, which is several times as fast as all at once."""
    found = values
    for axis in sorted(axes, key=lambda axis: -values.shape[axis]):
        found = function.reduce(found, axis=axis, keepdims=True)
    return found.reshape([size for axis, size in enumerate(values.shape) if axis not in axes])


def _missing(places: Places, kept: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis, place in enumerate(places) if place not in kept)


def _inverse(values: Floats) -> Floats:
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > SMALLEST)


class Propagation:
    """Sums over the domain of a product of one potential a clique: what each clique believes, and log Z."""

    def __init__(self, tree: JunctionTree) -> None:
        self.tree = tree
        self.shapes = [tuple(tree.sizes[place] for place in clique) for clique in tree.cliques]
        self._up = [
            _missing(clique, separator) for clique, separator in zip(tree.cliques, tree.separators, strict=True)
        ]
        self._above = [
            _missing(tree.cliques[parent], separator) if parent >= 0 else ()
            for parent, separator in zip(tree.parents, tree.separators, strict=True)
        ]

    def calibrated(self, logs: Sequence[Floats], possible: Sequence[Booleans | None]) -> tuple[list[Floats], float]:
        """Shares of each clique's cells, and log Z, of the product of exp(logs) over cells that can occur."""
        totals = [
            log.copy() if mask is None else np.where(mask, log, -np.inf)
            for log, mask in zip(logs, possible, strict=True)
        ]
        given: list[Floats] = [np.ones(())] * len(totals)
        for number in range(len(totals) - 1, -1, -1):
            # Up: what each clique says of its separator, in logarithms, and its own cells given that.
            total, axes = totals[number], self._up[number] if number else tuple(range(totals[0].ndim))
            peak = _reduced(np.maximum, total, axes)
            peak = np.where(np.isfinite(peak), peak, 0.0)  # no level of the rest can occur with these
            weights = np.exp(total - np.expand_dims(peak, axes))
            sums = _reduced(np.add, weights, axes)
            weights *= np.expand_dims(_inverse(sums), axes)
            given[number] = weights
            message = np.log(sums, out=np.full_like(sums, -np.inf), where=sums > 0.0) + peak
            if number:
                totals[self.tree.parents[number]] += np.expand_dims(message, self._above[number])
        beliefs = [given[0]]
        for number in range(1, len(totals)):
            held = _reduced(np.add, beliefs[self.tree.parents[number]], self._above[number])
            beliefs.append(given[number] * np.expand_dims(held, self._up[number]))
        return beliefs, float(message.reshape(()))
