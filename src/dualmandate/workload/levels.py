"""Which levels of an attribute matter: levels that every query treats alike are merged before anything is enumerated.

Two reductions stand behind exact sensitivities of large attributes. Both keep, for every pair of levels, a pair that is
at least as far apart in every norm.

*Runs.* Along a line of numbers (the values of a sum) or of positions (prefix sums), everything else equal, the distance
between two columns is convex in the position of either, on each side of the other and along the diagonal. The farthest
pair is therefore found among the two first and the two last levels of a run.

*Twins.* Of a partition, only whether two levels are in the same group matters. In a tree of nested partitions, two
branches that look alike can be exchanged; two of each kind stand for all of them (two, because two levels may lie in
two branches of one kind). This reduces 25,181 blocks in tracts in counties to a few dozen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import combinations

import numpy as np

from dualmandate.workload.factor import Factor, Integers, Numbers, Structure

WIDEST_COMPARISON = 16  # kinds of branches under one node that are compared with each other


def row_ids(columns: Iterable[Numbers], size: int) -> Integers:
    """A number for each row of a table given by columns; equal rows have equal numbers."""
    ids = np.zeros(size, dtype=np.int64)
    for column in columns:
        _, codes = np.unique(column, return_inverse=True)
        codes = codes.reshape(-1)
        _, joined = np.unique(ids * (int(codes.max()) + 1) + codes, return_inverse=True)
        ids = joined.reshape(-1).astype(np.int64)
    return ids


def column_classes(factors: Sequence[Factor], size: int) -> Integers:
    """Classes of levels that all of these factors treat alike (equal columns); shape (size,)."""
    structures = [factor.structure for factor in factors]
    columns = [array for each in structures for array in (*each.marks, *each.labels, *each.lines)]
    if any(each.ordered for each in structures):
        columns.append(np.arange(size, dtype=np.int64))
    return row_ids(columns, size)


def essential_levels(structure: Structure, size: int) -> Integers:
    """Levels among which, for each pair of levels, there is a pair at least as far apart: runs, then twins."""
    kept = run_ends(structure, size)
    told_apart = [*structure.marks, *structure.lines]
    if structure.ordered:
        told_apart.append(np.arange(size, dtype=np.int64))
    marks = row_ids((column[kept] for column in told_apart), len(kept))
    return kept[twins(marks, [labels[kept] for labels in structure.labels])]


def joined(structures: Iterable[Structure]) -> Structure:
    """All that must be known of two levels to compare them in several matrices at once; repetitions left out."""
    found = list(structures)

    def distinct(arrays: Iterable[Integers]) -> tuple[Integers, ...]:
        return tuple({blake2b(np.ascontiguousarray(array).data).digest(): array for array in arrays}.values())

    return Structure(
        marks=distinct(array for each in found for array in each.marks),
        labels=distinct(array for each in found for array in each.labels),
        lines=distinct(array for each in found for array in each.lines),
        ordered=any(each.ordered for each in found),
    )


def run_ends(structure: Structure, size: int) -> Integers:
    """Levels that remain when runs along a line keep their two first and two last levels."""
    levels = np.arange(size, dtype=np.int64)
    if not structure.lines and not structure.ordered:
        return levels
    # A partition into single levels does not break a run: its levels differ from each other in the same way.
    fixed = [labels for labels in structure.labels if not _single(labels)]
    inside = [labels >= 0 for labels in structure.labels]
    key = row_ids([*structure.marks, *fixed, *inside], size)
    if structure.ordered:
        return levels[~_inside_ordered_run(key, structure.lines)]
    if not _on_a_line(key, structure.lines):
        return levels
    order = np.lexsort((*reversed(structure.lines), key))
    begins = np.searchsorted(key[order], key[order], side="left")
    ends = np.searchsorted(key[order], key[order], side="right")
    position = np.arange(size)
    return np.sort(order[(position < begins + 2) | (position >= ends - 2)]).astype(np.int64)


def _single(labels: Integers) -> bool:
    used = labels[labels >= 0]
    return len(np.unique(used)) == len(used)


def _inside_ordered_run(key: Integers, lines: Sequence[Integers]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Levels at least two steps inside a stretch of equal keys along which every line has one slope."""
    straight = np.zeros(len(key), dtype=np.bool_)
    if len(key) < 3:
        return straight
    straight[1:-1] = (key[:-2] == key[1:-1]) & (key[1:-1] == key[2:])
    for line in lines:
        straight[1:-1] &= np.diff(line, n=2) == 0
    within = straight.copy()
    within[1:] &= straight[:-1]
    within[:-1] &= straight[1:]
    return within


def _on_a_line(key: Integers, lines: Sequence[Integers]) -> bool:
    """Whether, within each key, the points given by several lines are collinear; one line always is."""
    if len(lines) == 1:
        return True
    order = np.lexsort((*reversed(lines), key))
    first = np.searchsorted(key[order], key[order], side="left")
    last = np.searchsorted(key[order], key[order], side="right") - 1
    sorted_lines = [line[order].astype(object) for line in lines]
    steps = [(line - line[first], line[last] - line[first]) for line in sorted_lines]
    return all(
        bool(np.all(one_step * other_span == other_step * one_span))
        for (one_step, one_span), (other_step, other_span) in combinations(steps, 2)
    )


def twins(marks: Integers, partitions: Sequence[Integers]) -> Integers:
    """Levels that remain when branches of the tree of nested partitions that look alike are kept twice.

    `marks` tells levels apart; partitions that do not nest in the tree are told apart like marks.
    """
    nodes = [np.zeros(len(marks), dtype=np.int64)]
    told_apart: list[Integers] = [marks]
    for labels in sorted(partitions, key=_mean_group, reverse=True):
        used = labels >= 0
        joint = row_ids([labels[used], nodes[-1][used]], int(used.sum()))
        if len(np.unique(joint)) == len(np.unique(labels[used])):
            nodes.append(row_ids([nodes[-1], np.where(used, labels, -1)], len(marks)))
        else:
            told_apart.append(labels)
    kinds = row_ids(told_apart, len(marks))
    _, kept = np.unique(row_ids([nodes[-1], kinds], len(marks)), return_index=True)
    return _two_of_each_kind(kept.astype(np.int64), kinds, nodes)


def _mean_group(labels: Integers) -> float:
    used = labels[labels >= 0]
    return len(used) / max(len(np.unique(used)), 1)


def _two_of_each_kind(levels: Integers, kinds: Integers, nodes: Sequence[Integers]) -> Integers:
    """Climb from the leaves to the root: at each node, branches are named by what they hold, and two of a kind stay."""
    tree = _Kinds()
    # Branches at the current height: the kind of each and the levels (still kept) that it holds.
    branch_of_level = np.arange(len(levels))
    kind = np.array([tree.leaf(int(mark)) for mark in kinds[levels]], dtype=np.int64)
    above = [nodes[height][levels] for height in range(len(nodes))]
    for height in range(len(nodes) - 1, -1, -1):
        _, first = np.unique(branch_of_level, return_index=True)
        parent = above[height][first]
        order = np.lexsort((kind, parent))
        cuts = np.flatnonzero(np.diff(parent[order])) + 1
        stays = np.zeros(len(kind), dtype=np.bool_)
        parent_kinds = []
        for members in np.split(order, cuts):
            held, begins, counts = np.unique(kind[members], return_index=True, return_counts=True)
            name, quota = tree.node(tuple(zip(held.tolist(), np.minimum(counts, 2).tolist(), strict=True)))
            parent_kinds.append(name)
            for which, begin in zip(held.tolist(), begins.tolist(), strict=True):
                stays[members[begin : begin + quota.get(which, 0)]] = True
        kept = stays[branch_of_level]
        levels, above = levels[kept], [node[kept] for node in above]
        _, branch_of_level = np.unique(above[height], return_inverse=True)
        kind = np.array(parent_kinds, dtype=np.int64)
    return np.sort(levels)


class _Kinds:
    """Names for what a branch of the tree holds. One kind covers another when it holds a like for each of its pairs."""

    def __init__(self) -> None:
        self._names: dict[object, int] = {}
        self._held: list[tuple[int, ...]] = []
        self._covers: dict[tuple[int, int], bool] = {}
        self._reduced: dict[tuple[tuple[int, int], ...], tuple[int, dict[int, int]]] = {}

    def leaf(self, mark: int) -> int:
        """The kind of a single level."""
        return self._name(("leaf", mark), ())

    def node(self, held: tuple[tuple[int, int], ...]) -> tuple[int, dict[int, int]]:
        """The kind of a node from the kinds it holds (each once or twice), and how many of each need to stay."""
        if held not in self._reduced:
            quota = self._without_covered(dict(held))
            branches = tuple(kind for kind, count in sorted(quota.items()) for _ in range(count))
            self._reduced[held] = self._name(("node", branches), branches), quota
        return self._reduced[held]

    def _name(self, key: object, held: tuple[int, ...]) -> int:
        if key not in self._names:
            self._names[key] = len(self._held)
            self._held.append(held)
        return self._names[key]

    def _without_covered(self, quota: dict[int, int]) -> dict[int, int]:
        if len(quota) > WIDEST_COMPARISON:
            return quota
        for kind in sorted(quota, key=lambda each: len(self._held[each])):
            covering = sum(count for other, count in quota.items() if other != kind and self.covers(other, kind))
            left = min(quota[kind], max(2 - covering, 0))
            quota = {each: left if each == kind else count for each, count in quota.items() if each != kind or left}
        return quota

    def covers(self, larger: int, smaller: int) -> bool:
        """Whether every pair of levels in the smaller branch has a like in the larger one."""
        if larger == smaller:
            return True
        if (larger, smaller) not in self._covers:
            inside, wanted = self._held[larger], self._held[smaller]
            if not inside or not wanted or max(len(inside), len(wanted)) > 2 * WIDEST_COMPARISON:
                return False
            fits = [{i for i, branch in enumerate(inside) if self.covers(branch, each)} for each in wanted]
            # Two branches of the smaller one need two different branches of the larger one.
            self._covers[larger, smaller] = all(fits) and all(
                len(one | other) > 1 for one, other in combinations(fits, 2)
            )
        return self._covers[larger, smaller]
