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
from itertools import combinations, pairwise

import numpy as np

from dualmandate.population.arrays import Booleans, Integers
from dualmandate.workload.factor import LARGEST_INTEGER, Factor, Numbers, Structure

_LONGEST_DIGIT = 2**31
TRIES = 16  # levels of a kind from which a pair without a common group is looked for
WIDEST_COMPARISON = 16  # kinds of branches under one node that are compared with each other


def row_ids(columns: Iterable[Numbers], size: int) -> Integers:
    """A number from 0 on for each row of a table given by columns, in the order of rows; equal rows have equal numbers.

    Each row is told by one number, not compared field by field, which takes minutes for a hundred thousand long rows.
    """
    ids, span = np.zeros(size, dtype=np.int64), 1
    for given in columns if size else ():
        column = _counted(given)[0] if given.dtype.kind == "f" else given
        low, width = int(column.min()), int(column.max()) - int(column.min()) + 1
        if width == 1:
            continue
        # Digits of one long number, written again from 0 on where it would grow too long.
        codes, width = (column - low, width) if width < _LONGEST_DIGIT else _counted(column)
        if span * width >= LARGEST_INTEGER:
            ids, span = _counted(ids)
        ids, span = ids * width + codes.astype(np.int64), span * width
    return _counted(ids)[0]


def _counted(values: Numbers) -> tuple[Integers, int]:
    if values.dtype == object:
        # Python integers are told apart much faster by their hash than by sorting.
        listed = values.tolist()
        places = {value: place for place, value in enumerate(dict.fromkeys(listed))}
        return np.array([*map(places.__getitem__, listed)], dtype=np.int64), len(places)
    different, codes = np.unique(values, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), len(different)


def column_classes(factors: Sequence[Factor], size: int) -> Integers:
    """Classes of levels that all of these factors treat alike (equal columns); shape (size,)."""
    structures = [factor.structure for factor in factors]
    columns = [array for each in structures for array in (*each.marks, *each.labels, *each.lines)]
    if any(each.ordered for each in structures):
        columns.append(np.arange(size, dtype=np.int64))
    return row_ids(columns, size)


def kinds_of(structure: Structure, levels: Integers) -> Integers:
    """A number for each of some levels, the same for levels that only labels tell apart."""
    told_apart = [column[levels] for column in (*structure.marks, *structure.lines)]
    return row_ids([*told_apart, levels] if structure.ordered else told_apart, len(levels))


def twins_of(structure: Structure, levels: Integers) -> Integers:
    """Positions among `levels` of those that remain when branches that look alike are kept twice."""
    return twins(kinds_of(structure, levels), [labels[levels] for labels in structure.labels])


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
    fixed = [labels for labels in structure.labels if distinct_labels(labels) < np.count_nonzero(labels >= 0)]
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


def distinct_labels(labels: Integers) -> int:
    """How many groups a partition has."""
    used = np.sort(labels[labels >= 0])  # by sorting: much faster than np.unique on millions of different labels
    return int(np.count_nonzero(np.diff(used))) + (len(used) > 0)


def _inside_ordered_run(key: Integers, lines: Sequence[Integers]) -> Booleans:
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
    fits = all(int(np.abs(line).max()) < 2**29 for line in lines)
    sorted_lines: list[Numbers] = [line[order] if fits else line[order].astype(object) for line in lines]
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
    for labels in sorted(partitions, key=lambda each: -np.count_nonzero(each >= 0) / max(distinct_labels(each), 1)):
        used = labels >= 0
        joint = row_ids([labels[used], nodes[-1][used]], int(used.sum()))
        if distinct_labels(joint) == distinct_labels(labels):
            nodes.append(row_ids([nodes[-1], np.where(used, labels, -1)], len(marks)))
        else:
            told_apart.append(labels)
    kinds = row_ids(told_apart, len(marks))
    _, kept = np.unique(row_ids([nodes[-1], kinds], len(marks)), return_index=True)
    return _two_of_each_kind(kept.astype(np.int64), kinds, nodes)


def disjoint_pairs(kinds: Integers, partitions: Sequence[Integers]) -> tuple[Integers, Integers]:
    """For each two kinds of levels a pair that shares no group that it need not, where a few tries find one."""
    count = int(kinds.max()) + 1
    common = [_common_labels(kinds, labels, count) for labels in partitions]
    left: list[int] = []
    right: list[int] = []
    for kind in range(count):
        members = np.flatnonzero(kinds == kind)
        # Where all levels of two kinds are in one group, every pair of them shares it.
        forced = [(alike == alike[kind]) & (alike >= 0) for alike in common]
        open_kinds = np.ones(count, dtype=np.bool_)
        for level in members[np.linspace(0, len(members) - 1, min(len(members), TRIES)).astype(np.int64)]:
            apart = np.ones(len(kinds), dtype=np.bool_)
            for labels, must in zip(partitions, forced, strict=True):
                if labels[level] >= 0:
                    apart &= (labels != labels[level]) | must[kinds]
            met, first = np.unique(kinds[apart], return_index=True)
            new = open_kinds[met]
            left += [int(level)] * int(new.sum())
            right += np.flatnonzero(apart)[first[new]].tolist()
            open_kinds[met] = False
            if not open_kinds.any():
                break
    return np.array(left, dtype=np.int64), np.array(right, dtype=np.int64)


def _common_labels(kinds: Integers, labels: Integers, count: int) -> Integers:
    """For each kind the group that all of its levels are in, -1 where there is none."""
    lowest, highest = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(lowest, kinds, labels)
    np.maximum.at(highest, kinds, labels)
    return np.where(lowest == highest, lowest, -1)


def _two_of_each_kind(levels: Integers, kinds: Integers, nodes: Sequence[Integers]) -> Integers:
    """Climb from the leaves to the root: at each node, branches are named by what they hold, and two of a kind stay."""
    tree = _Kinds()
    branch_of_level = np.arange(len(levels))
    marks, mark_of_level = np.unique(kinds[levels], return_inverse=True)
    kind = np.array([tree.leaf(mark) for mark in marks.tolist()], dtype=np.int64)[mark_of_level]
    above = [node[levels] for node in nodes]
    for height in range(len(nodes) - 1, -1, -1):
        _, first = np.unique(branch_of_level, return_index=True)
        stays, kind = _stays(tree, above[height][first], kind)
        kept = stays[branch_of_level]
        levels, above = levels[kept], [node[kept] for node in above]
        _, branch_of_level = np.unique(above[height], return_inverse=True)
    return np.sort(levels)


def _stays(tree: _Kinds, parent: Integers, kind: Integers) -> tuple[Booleans, Integers]:
    """Which branches stay under their parents, and the kind of each parent, in the order of their numbers."""
    order = np.lexsort((kind, parent))
    alike = row_ids([parent[order], kind[order]], len(order))
    starts = np.flatnonzero(np.concatenate([[True], alike[1:] != alike[:-1]]))
    counts = np.diff(np.append(starts, len(order)))
    held = list(zip(kind[order[starts]].tolist(), np.minimum(counts, 2).tolist(), strict=True))
    families = np.flatnonzero(np.concatenate([[True], np.diff(parent[order[starts]]) != 0]))
    quotas: list[int] = []
    parents: list[int] = []
    for begin, end in pairwise([*families.tolist(), len(held)]):
        name, quota = tree.node(tuple(held[begin:end]))
        parents.append(name)
        quotas += [quota.get(which, 0) for which, _ in held[begin:end]]
    stays = np.empty(len(order), dtype=np.bool_)
    stays[order] = np.arange(len(order)) - np.repeat(starts, counts) < np.repeat(quotas, counts)
    return stays, np.array(parents, dtype=np.int64)


class _Kinds:
    """Names for what a branch of the tree holds. One kind covers another when it holds a like for each of its pairs."""

    def __init__(self) -> None:
        self._names: dict[object, int] = {}
        self._held: list[tuple[int, ...]] = []
        self._covers: dict[tuple[int, int], bool] = {}
        self._reduced: dict[tuple[tuple[int, int], ...], tuple[int, dict[int, int]]] = {}

    def leaf(self, mark: int) -> int:
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
