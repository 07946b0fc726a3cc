"""How far replacing one record by another moves the answers: the difference of two columns, as a sum of products.

    ‖a − b‖₂² = ‖a‖₂² + ‖b‖₂² − 2⟨a, b⟩,    ‖a − b‖₁ = ‖a‖₁ + ‖b‖₁ − 2 Σ_r [a_r b_r > 0] min(|a_r|, |b_r|).

Every part is a product over attributes: ⟨a, b⟩ always; the last sum, its sign written as [s > 0] = (|s| + s)/2, as long
as at most one attribute has entries of different sizes. With several such attributes, each column one number besides
zeros, −min(x, y) = max(−x, −y) turns the table into two cases, and all combinations of cases are looked at. What fits
neither way is bounded from above, by min of products ≥ product of minima.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from dualmandate.workload.columns import inner, leading, least
from dualmandate.workload.extremum import CHUNK, Choices, Flags, Problem, Rule, undominated
from dualmandate.workload.factor import Integers, Numbers
from dualmandate.workload.hull import corners_within
from dualmandate.workload.levels import disjoint_pairs, kinds_of, row_ids
from dualmandate.workload.neighbors import Axis, Impossible, Question
from dualmandate.workload.table import Table

LARGEST_COMPARED = 10**7  # numbers that are held to compare pairs of essential levels of one attribute
MOST_KINDS = 64  # of levels, for each two of which a pair without a common group is looked for
MOST_FORKS = 6  # tables that are looked at in two cases

Kind = Literal[
    "left",  # norm of the first column
    "right",  # norm of the second
    "inner",  # product of the two
    "least",  # sum of the smaller entries, where neither is zero
    "signed least",  # with the sign of the product of the two entries
    "leading",  # sum of the entries of the first, where neither is zero
    "signed leading",
    "trailing",  # the same of the second
    "signed trailing",
    "common",  # sum of the smaller entries, where both have the same sign
]
Side = Literal["leading", "trailing"]
Column = tuple[int, Kind]  # a distinct factor of an attribute, and what is asked of its columns
_SIGNED: dict[Kind, Kind] = {"least": "signed least", "leading": "signed leading", "trailing": "signed trailing"}
_CAN_BE_NEGATIVE = {"inner", *_SIGNED.values()}


@dataclass(frozen=True)
class SameGroup:
    """An exact total: both cells are in the same group, or both are outside all groups."""

    flags: tuple[int, ...]
    monotone: bool = False

    def allows(self, flags: Flags) -> Flags:
        """Pairs that leave the total as it is."""
        one, other, same = flags.T
        return np.asarray((one == other) & (~one | same))


@dataclass(frozen=True)
class Term:
    """A coefficient, and the column of each attribute that is multiplied."""

    coefficient: int
    columns: tuple[Column, ...]


@dataclass(frozen=True)
class Pairs:
    """Sums of products: the largest of their largest values is the sensitivity, or a bound where not `exact`."""

    problems: tuple[Problem, ...]
    exact: bool


def pairs(question: Question) -> Pairs | None:
    """Replace one record within its groups; None where some attribute has too many pairs of levels."""
    cases = [_cases(question, table) for table in question.tables]
    forked = [table.name for table, case in zip(question.tables, cases, strict=True) if case == "two"]
    exact = "bound" not in cases and len(forked) <= MOST_FORKS
    forked = forked if len(forked) <= MOST_FORKS else []
    # Exchanging the two cells exchanges the two cases, so the first table needs only one of them.
    sides: list[tuple[Side, ...]] = [("leading",) if name == forked[0] else ("leading", "trailing") for name in forked]
    problems: list[Problem] = []
    for chosen in product(*sides):
        problem = _problem(question, _terms(question, dict(zip(forked, chosen, strict=True))))
        if problem is None:
            return None
        problems.append(problem)
    return Pairs(tuple(problems), exact)


def _cases(question: Question, table: Table) -> Literal["one", "two", "bound"]:
    """How a table's difference of columns becomes a sum of products."""
    used = zip(question.axes, question.places(table), strict=True)
    unequal = [axis.factors[place] for axis, place in used if axis.unequal[place]]
    if question.power == 2 or len(unequal) <= 1:
        return "one"
    return "bound" if any(factor.scales is None for factor in unequal) else "two"


def _terms(question: Question, side_of: Mapping[str, Side]) -> list[Term]:
    """The sum of products of all tables; `side_of` says which case is looked at for tables that have two."""
    terms: list[Term] = []
    for table, weight in zip(question.tables, question.coefficients, strict=True):
        places = question.places(table)
        parts: list[tuple[int, Kind]] = [(weight, "left"), (weight, "right")]
        shared: Kind = side_of.get(table.name, "least")
        if question.power == 2:
            parts.append((-2 * weight, "inner"))
        elif shared == "least" and _cases(question, table) != "one":
            parts.append((-2 * weight, "common"))
        elif any(axis.signed[place] for axis, place in zip(question.axes, places, strict=True)):
            parts += [(-weight, shared), (-weight, _SIGNED[shared])]
        else:
            parts.append((-2 * weight, shared))
        terms += [Term(coefficient, tuple((place, kind) for place in places)) for coefficient, kind in parts]
    return terms


def _problem(question: Question, terms: Sequence[Term]) -> Problem | None:
    columns = np.empty((len(terms), len(question.axes)), dtype=np.int64)
    negative = np.array([_may_be_negative(question, term) for term in terms])
    axes: list[Choices] = []
    for number, axis in enumerate(question.axes):
        asked = [term.columns[number] for term in terms]
        wanted = list(dict.fromkeys(asked))
        position = {column: index for index, column in enumerate(wanted)}
        columns[:, number] = [position[column] for column in asked]
        turned = negative.sum(axis=1) > negative[:, number]
        open_sign = {column for column, may_turn in zip(asked, turned, strict=True) if may_turn}
        choices = _Comparison(axis, tuple(wanted), frozenset(open_sign), question.always_inside).choices()
        if choices is None:
            return None
        axes.append(choices)
    zeros = 2 * len(question.axes[0].zeros)
    rules: list[Rule] = [Impossible((flag,)) for flag in range(zeros)]
    rules += [SameGroup((flag, flag + 1, flag + 2)) for flag in range(zeros, zeros + 3 * len(question.invariants), 3)]
    return Problem(tuple(term.coefficient for term in terms), columns, tuple(axes), tuple(rules))


def _may_be_negative(question: Question, term: Term) -> list[bool]:
    used = zip(question.axes, term.columns, strict=True)
    return [kind in _CAN_BE_NEGATIVE and axis.signed[place] for axis, (place, kind) in used]


@dataclass(frozen=True)
class _Comparison:
    """The pairs of levels of one attribute that may be the farthest apart, and what is asked of them."""

    axis: Axis
    wanted: tuple[Column, ...]
    open_sign: frozenset[Column]  # columns whose sign another attribute may turn
    always_inside: frozenset[int]  # exact totals that count every cell

    def choices(self) -> Choices | None:
        """Pairs without what another pair beats; None where there are too many."""
        return self._apart() or self._enumerated()

    def _apart(self) -> Choices | None:
        """A pair that shares no group for each two kinds of levels: having less in common is being farther apart.

        None where that does not decide: under exact totals, with opposite signs, or where some pair is not found.
        """
        axis, levels = self.axis, self.axis.ends
        opposite = any(kind in _CAN_BE_NEGATIVE and axis.signed[place] for place, kind in self.wanted)
        if opposite or self.open_sign or any(labels is not None for labels in axis.groups):
            return None
        kinds = kinds_of(axis.structure, levels)
        count = int(kinds.max()) + 1
        if count > MOST_KINDS:
            return None
        left, right = disjoint_pairs(kinds, [labels[levels] for labels in axis.structure.labels])
        if len(left) == 0:
            return None
        found = self._pruned(levels[left], levels[right])
        missing = np.setdiff1d(np.arange(count**2), kinds[left] * count + kinds[right])
        if len(missing) == 0:
            return found
        _, first = np.unique(kinds, return_index=True)
        # What a pair that was not found could reach at most: everything of both, and nothing in common.
        most = self._measured(levels[first[missing // count]], levels[first[missing % count]])
        most.numbers[:, self._falling] = 0
        gain, reach = self._gain(found), self._gain(most)
        beaten = (bool(np.any(np.all(gain >= row, axis=1))) for row in reach)
        return found if all(beaten) else None

    def _enumerated(self) -> Choices | None:
        levels = self.axis.essential
        fixed = [self.axis.groups[number] for number in sorted(self.always_inside)]
        # Where every cell belongs to some group of an exact total, a pair must agree on each attribute.
        group = row_ids([labels[levels] for labels in fixed if labels is not None], len(levels))
        order = np.argsort(group, kind="stable")
        levels, sizes = levels[order], np.bincount(group)
        if int((sizes**2).sum()) * (len(self.wanted) + 1) > LARGEST_COMPARED:
            return None
        size_of = sizes[group[order]]
        left = np.repeat(levels, size_of)
        starts = np.repeat(np.cumsum(sizes) - sizes, sizes)
        within = np.arange(len(left)) - np.repeat(np.cumsum(size_of) - size_of, size_of)
        right = levels[np.repeat(starts, size_of) + within]
        step = max(1, CHUNK // (len(self.wanted) + 1))
        found = [self._cornered(left[at : at + step], right[at : at + step]) for at in range(0, len(left), step)]
        numbers = np.concatenate([each.numbers for each in found])
        return self._best(Choices(numbers, np.concatenate([each.flags for each in found]))) if found[1:] else found[0]

    def _cornered(self, left: Integers, right: Integers) -> Choices:
        """Pairs without what lies between others: on either side of the diagonal, choices often lie in a plane."""
        choices = self._measured(left, right)
        key = row_ids([np.sign(left - right), *choices.flags.T], len(left))
        kept = corners_within(choices.numbers, key)
        return self._best(Choices(choices.numbers[kept], choices.flags[kept]))

    @property
    def _rising(self) -> list[int]:
        return [place for place, (_, kind) in enumerate(self.wanted) if kind in ("left", "right")]

    @property
    def _falling(self) -> list[int]:
        kept = {*self._rising, *(place for place, column in enumerate(self.wanted) if column in self.open_sign)}
        return [place for place in range(len(self.wanted)) if place not in kept]

    def _measured(self, left: Integers, right: Integers) -> Choices:
        numbers = np.stack([_number(self.axis, column, left, right) for column in self.wanted], axis=1)
        return Choices(numbers, _flags(self.axis, left, right))

    def _gain(self, choices: Choices) -> Numbers:
        """Numbers of which more is never worse; what can only be compared with its equal counts twice."""
        zeros = 2 * len(self.axis.zeros)
        matched = [place for place in range(len(self.wanted)) if place not in {*self._rising, *self._falling}]
        same = row_ids([*choices.numbers[:, matched].T, *choices.flags[:, zeros:].T], len(choices.numbers))
        falling = (-choices.numbers[:, self._falling]).T
        gain = [*choices.numbers[:, self._rising].T, *falling, *(~choices.flags[:, :zeros]).T, same, -same]
        return np.stack(gain, axis=1)

    def _best(self, choices: Choices) -> Choices:
        best = undominated(self._gain(choices))
        return Choices(choices.numbers[best], choices.flags[best])

    def _pruned(self, left: Integers, right: Integers) -> Choices:
        return self._best(self._measured(left, right))


def _flags(axis: Axis, left: Integers, right: Integers) -> Flags:
    """Two flags a structural zero, one a cell; three an invariant: one cell in, the other in, in the same group."""
    always = np.ones(len(left), dtype=np.bool_)
    columns: list[Flags] = []
    for mask in axis.zeros:
        columns += [always, always] if mask is None else [mask[left], mask[right]]
    for labels in axis.groups:
        if labels is None:
            columns += [always, always, always]
        else:
            columns += [labels[left] >= 0, labels[right] >= 0, labels[left] == labels[right]]
    return np.stack(columns, axis=1) if columns else np.zeros((len(left), 0), dtype=np.bool_)


def _number(axis: Axis, column: Column, left: Integers, right: Integers) -> Numbers:
    """What is asked of the columns of two levels, pair by pair."""
    place, kind = column
    factor = axis.factors[place]
    match kind:
        case "left" | "right":
            return np.asarray(axis.norms[place][left if kind == "left" else right])
        case "inner":
            return inner(factor, left, right)
        case "least" | "signed least":
            return least(factor, left, right, signed=kind == "signed least")
        case "leading" | "signed leading":
            return leading(factor, left, right, signed=kind == "signed leading")
        case "trailing" | "signed trailing":
            return leading(factor, right, left, signed=kind == "signed trailing")
        case "common":
            return np.asarray((least(factor, left, right) + least(factor, left, right, signed=True)) // 2)
