"""The largest sum of products: every sensitivity is one.

    maximize  Σ_k q_k · Π_i m_i[c_i, column_i(k)]   over one choice c_i an attribute, under rules on the choices.

For add-or-remove neighbors a choice is a level and m its norms; for replace-one it is a pair of levels, with both norms
and what the two have in common. Attributes are added one at a time. Partial choices that promise the same are merged,
those that another beats in every term are dropped, and terms that the remaining attributes treat alike are added up.
What is left is enumerated, exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.population.arrays import Booleans, Integers
from dualmandate.workload.factor import LARGEST_INTEGER, Numbers
from dualmandate.workload.levels import row_ids

FEWEST_POINTS = 8  # below, corners are not looked for
MOST_OUTLINE_POINTS = 10**5  # of the outline from which the corners are found


def corners(points: Numbers) -> Integers:
    """Rows among which every linear function of the rows is largest; all rows where they fill more than a plane."""
    everything = np.arange(len(points))
    if len(points) < FEWEST_POINTS or 8 * int(np.abs(points).max()) ** 3 >= LARGEST_INTEGER:
        return everything
    steps = points - points[0]
    moved = np.flatnonzero(steps.any(axis=1))
    if len(moved) == 0:
        return everything[:1]
    first = steps[moved[0]]
    along = int(np.argmax(first != 0))
    off_line = np.flatnonzero(np.any(steps * first[along] != steps[:, [along]] * first, axis=1))
    if len(off_line) == 0:
        return np.array([np.argmin(points[:, along]), np.argmax(points[:, along])])
    second = steps[off_line[0]]
    across = int(np.argmax(first * second[along] != second * first[along]))
    area = int(first[along] * second[across] - first[across] * second[along])
    of_first = steps[:, along] * second[across] - steps[:, across] * second[along]
    of_second = first[along] * steps[:, across] - first[across] * steps[:, along]
    if bool(np.any(area * steps != of_first[:, None] * first + of_second[:, None] * second)):
        return everything
    return _outline_corners(points[:, along], points[:, across])


def corners_within(points: Numbers, key: Integers) -> Integers:
    """`corners` of the rows of each key."""
    order = np.argsort(key, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(key[order])) + 1)
    return np.concatenate([part[corners(points[part])] for part in parts])


def _outline_corners(x: Numbers, y: Numbers) -> Integers:
    order = np.lexsort((y, x))
    ends = np.flatnonzero(np.diff(x[order]))
    outline = order[np.unique(np.concatenate([[0], ends, ends + 1, [len(order) - 1]]))]
    if len(outline) > MOST_OUTLINE_POINTS:
        return np.arange(len(x))
    places = list(zip(x[outline].tolist(), y[outline].tolist(), strict=True))
    found = {*_chain(places, range(len(places))), *_chain(places, range(len(places) - 1, -1, -1))}
    return np.asarray(outline[sorted(found)])


def _chain(places: list[tuple[int, int]], walk: range) -> list[int]:
    """One side of the outline: points are dropped while the walk does not turn left."""
    chain: list[int] = []
    for here in walk:
        while len(chain) > 1 and _turn(places[chain[-2]], places[chain[-1]], places[here]) <= 0:
            chain.pop()
        chain.append(here)
    return chain


def _turn(one: tuple[int, int], two: tuple[int, int], three: tuple[int, int]) -> int:
    return (two[0] - one[0]) * (three[1] - one[1]) - (two[1] - one[1]) * (three[0] - one[0])


LARGEST_ENUMERATION = 10**7  # merged classes that are looked at for one attribute
LARGEST_WORK = 4 * 10**8  # numbers multiplied for one attribute
LARGEST_HELD = 10**7  # numbers of merged classes that wait for the next attribute
CHUNK = 2**21  # numbers held at once while classes are looked at
STARTS = 24  # from which an attained value is looked for
PATIENCE = 10**8  # comparisons spent on dropping what is beaten
SLOWER = 64  # how many 64-bit integers cost as much, in time and in room, as one Python integer


@dataclass(frozen=True)
class ExtremumRule:
    """A condition on a whole cell, or pair of cells, read off flags of its attributes that are combined by `and`."""

    flags: tuple[int, ...]  # the columns of flags that it reads
    allows: Callable[[Booleans], Booleans]  # which rows are allowed, from its own columns
    monotone: bool  # whether what it allows stays allowed when flags are lowered


@dataclass(frozen=True)
class Choices:
    """What one attribute can contribute: a row for each choice."""

    numbers: Numbers  # (choices, columns), integers
    flags: Booleans  # (choices, flags)

    @cached_property
    def largest(self) -> list[int]:
        return [int(max(column.max(), -column.min())) for column in self.numbers.T]

    @cached_property
    def positive(self) -> Booleans:
        """Which columns are nowhere negative."""
        return np.array([bool(column.min() >= 0) for column in self.numbers.T], dtype=np.bool_)

    @cached_property
    def contents(self) -> Integers:
        """For each column the first one that equals it."""
        seen: dict[object, int] = {}
        wide = self.numbers.dtype == object
        keys = [tuple(column) if wide else column.tobytes() for column in self.numbers.T]
        return np.array([seen.setdefault(key, place) for place, key in enumerate(keys)], dtype=np.int64)


@dataclass(frozen=True)
class Problem:
    """A sum of products: its coefficients, the column of each attribute that each term reads, choices and rules."""

    coefficients: tuple[int, ...]
    columns: Integers  # (terms, attributes)
    axes: tuple[Choices, ...]
    rules: tuple[ExtremumRule, ...] = ()

    @cached_property
    def whole(self) -> type:
        """The type of integers that holds every partial sum."""
        bound = 0
        for coefficient, columns in zip(self.coefficients, self.columns.tolist(), strict=True):
            size = abs(coefficient)
            for choices, column in zip(self.axes, columns, strict=True):
                size *= max(1, choices.largest[column])
            bound += size
        return np.int64 if bound < LARGEST_INTEGER else object


@dataclass(frozen=True)
class Extremum:
    """The largest value (None where the rules allow nothing), and how many merged classes were looked at."""

    value: int | None
    looked_at: int


@dataclass(frozen=True)
class _Partial:
    """Merged choices of the attributes so far: the terms still to be multiplied, added up, and the flags so far."""

    values: Numbers  # (classes, terms)
    flags: Booleans  # (classes, flags)
    columns: Integers  # (terms, attributes to come)


def largest(problem: Problem, most_classes: int | None = None) -> Extremum | None:
    """The exact maximum; None where more merged classes than `LARGEST_ENUMERATION` would have to be looked at."""
    limit = LARGEST_ENUMERATION if most_classes is None else min(most_classes, LARGEST_ENUMERATION)
    order = sorted(range(len(problem.axes)), key=lambda axis: len(problem.axes[axis].numbers))
    columns = np.stack([problem.axes[axis].contents[problem.columns[:, axis]] for axis in order], axis=1)
    start: Numbers = np.array([problem.coefficients], dtype=problem.whole)
    flags = np.ones((1, problem.axes[0].flags.shape[1]), dtype=np.bool_)
    values, columns = _added_up(start, columns)
    partial = _Partial(values, flags, columns)
    looked_at = 1
    for position, axis in enumerate(order):
        here, later = problem.axes[axis], [problem.axes[other] for other in order[position + 1 :]]
        classes = len(partial.values) * len(here.numbers)
        looked_at = max(looked_at, classes)
        if looked_at > limit or classes * len(partial.columns) * _cost(start) > LARGEST_WORK:
            return None
        grown = _with(partial, here, later, problem)
        if grown is None:
            return None
        partial = grown
    return Extremum(int(partial.values[:, 0].max()) if len(partial.values) else None, looked_at)


def climbed(problem: Problem) -> int | None:
    """A value that some choice attains: the best that changing one attribute at a time reaches from a few starts."""
    numbers: list[Numbers] = [
        choices.numbers[:, problem.columns[:, axis]].astype(problem.whole, copy=False)
        for axis, choices in enumerate(problem.axes)
    ]
    largest_first = [np.argsort(-np.abs(each.astype(np.float64)).sum(axis=1), kind="stable") for each in numbers]
    best: int | None = None
    for start in range(STARTS):
        # Attributes step through their choices at different speeds, so that starts differ in more than one of them.
        chosen = [int(each[start * (axis + 1) % len(each)]) for axis, each in enumerate(largest_first)]
        found = _climb(problem, numbers, chosen)
        best = found if best is None else best if found is None else max(best, found)
    return best


def _climb(problem: Problem, numbers: Sequence[Numbers], chosen: list[int]) -> int | None:
    coefficients: Numbers = np.array(problem.coefficients, dtype=problem.whole)
    best: int | None = None
    improving = True
    while improving:
        improving = False
        for axis, choices in enumerate(problem.axes):
            product, flags = coefficients, choices.flags
            for other in range(len(numbers)):
                if other != axis:
                    product = product * numbers[other][chosen[other]]
                    flags = flags & problem.axes[other].flags[chosen[other]]
            allowed = np.flatnonzero(_allowed(flags, problem.rules))
            if len(allowed) == 0:
                continue
            values = numbers[axis][allowed] @ product
            top = int(np.argmax(values))
            if best is None or values[top] > best:
                best, chosen[axis], improving = int(values[top]), int(allowed[top]), True
    return best


def undominated(gain: Numbers) -> Integers:
    """Rows that no other row equals or beats in every column; where there are very many, some beaten ones may stay."""
    if len(gain) < 2:
        return np.arange(len(gain))
    columns = [column for column in np.ascontiguousarray(gain.T) if bool((column != column[0]).any())]
    if len(columns) < 2:
        return np.array([int(np.argmax(columns[0]))]) if columns else np.array([0])
    score = sum(column / float(np.abs(column).max()) for column in columns)
    alive = np.argsort(-score.astype(np.float64), kind="stable")
    columns = [column[alive] for column in columns]
    kept, patience, before = [], PATIENCE // (len(columns) * _cost(gain)), len(alive)
    while len(alive) and patience > 0:
        kept.append(alive[0])
        patience -= len(alive)
        stays = columns[0] > columns[0][0]
        for column in columns[1:]:
            stays |= column > column[0]
        alive, columns = alive[stays], [column[stays] for column in columns]
        if len(kept) % 32 == 0:
            if 10 * len(alive) > 9 * before:
                break
            before = len(alive)
    if len(alive):
        _, first = np.unique(row_ids(columns, len(alive)), return_index=True)
        alive = alive[first]
    return np.concatenate([np.array(kept, dtype=np.int64), alive])


def _with(partial: _Partial, here: Choices, later: Sequence[Choices], problem: Problem) -> _Partial | None:
    """The partial choices joined with those of one more attribute, merged, without what is forbidden or beaten."""
    numbers: Numbers = here.numbers[:, partial.columns[:, 0]].astype(problem.whole, copy=False)
    remaining = partial.columns[:, 1:]
    settled = [rule for rule in problem.rules if all(each.flags[:, list(rule.flags)].all() for each in later)]
    pending = [rule for rule in problem.rules if rule not in settled]
    found: list[_Partial] = []
    step = max(1, CHUNK // max(1, len(remaining)))
    total = len(partial.values) * len(numbers)
    for begin in range(0, max(total, 1), step):
        left, right = np.divmod(np.arange(begin, min(begin + step, total)), len(numbers))
        flags = partial.flags[left] & here.flags[right]
        allowed = _allowed(flags, settled)
        values, columns = _added_up(partial.values[left[allowed]] * numbers[right[allowed]], remaining)
        found.append(_pruned(_Partial(values, flags[allowed], columns), later, pending))
        if sum(each.values.size for each in found) * _cost(numbers) > LARGEST_HELD:
            return None
    if len(found) == 1:
        return found[0]
    values = np.concatenate([each.values for each in found])
    flags = np.concatenate([each.flags for each in found])
    return _pruned(_Partial(values, flags, found[0].columns), later, pending)


def _cost(numbers: Numbers) -> int:
    return SLOWER if numbers.dtype == object else 1


def _allowed(flags: Booleans, rules: Sequence[ExtremumRule]) -> Booleans:
    allowed = np.ones(len(flags), dtype=np.bool_)
    for rule in rules:
        allowed &= rule.allows(flags[:, list(rule.flags)])
    return allowed


def _added_up(values: Numbers, columns: Integers) -> tuple[Numbers, Integers]:
    """Terms that the attributes to come treat alike become one."""
    ids = row_ids(columns.T, len(columns))
    order = np.argsort(ids, kind="stable")
    _, starts = np.unique(ids[order], return_index=True)
    return np.asarray(np.add.reduceat(values[:, order], starts, axis=1)), columns[order[starts]]


def _pruned(partial: _Partial, later: Sequence[Choices], pending: Sequence[ExtremumRule]) -> _Partial:
    best = undominated(_gain(partial, later, pending))
    return _Partial(partial.values[best], partial.flags[best], partial.columns)


def _gain(partial: _Partial, later: Sequence[Choices], pending: Sequence[ExtremumRule]) -> Numbers:
    """Numbers of which more is never worse, whatever the remaining attributes add."""
    known = np.ones(len(partial.columns), dtype=np.bool_)
    for axis, choices in enumerate(later):
        known &= choices.positive[partial.columns[:, axis]]
    lowered = sorted({flag for rule in pending if rule.monotone for flag in rule.flags})
    matched = sorted({flag for rule in pending if not rule.monotone for flag in rule.flags})
    # A term whose future sign is open, or a flag that may help or hurt, can only be compared with its equal.
    equal = row_ids([*partial.values[:, ~known].T, *partial.flags[:, matched].T], len(partial.values))
    columns = [*partial.values[:, known].T, *(~partial.flags[:, lowered]).T.astype(np.int64), equal, -equal]
    return np.stack(columns, axis=1) if columns else np.zeros((len(partial.values), 0), dtype=np.int64)
