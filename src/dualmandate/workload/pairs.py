"""How far replacing one record by another moves the answers: the difference of two columns, as a sum of products.

    ‖a − b‖₂² = ‖a‖₂² + ‖b‖₂² − 2⟨a, b⟩,    ‖a − b‖₁ = ‖a‖₁ + ‖b‖₁ − 2 Σ_r [a_r b_r > 0] min(|a_r|, |b_r|).

Every part is a product over attributes: ⟨a, b⟩ always; the last sum, its sign written as [s > 0] = (|s| + s)/2, as long
as at most one attribute has entries of different sizes. With several such attributes, each column one number besides
zeros, −min(x, y) = max(−x, −y) turns the table into two cases, and all combinations of cases are looked at. What fits
neither way is bounded from above, by min of products ≥ product of minima.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import product
from typing import Literal

import numpy as np

from dualmandate.workload.columns import inner, leading, least
from dualmandate.workload.extremum import CHUNK, Choices, Flags, Problem, Rule, undominated
from dualmandate.workload.factor import Integers, Numbers
from dualmandate.workload.levels import essential_levels, row_ids
from dualmandate.workload.neighbors import Axis, Impossible, Question
from dualmandate.workload.table import Table

LARGEST_PAIRS = 4 * 10**7  # pairs of essential levels of one attribute
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
    """Replace one record within its groups; None where the attributes have too many essential levels."""
    levels = [essential_levels(axis.structure, axis.size) for axis in question.axes]
    if any(len(each) ** 2 > LARGEST_PAIRS for each in levels):
        return None
    cases = [_cases(question, table) for table in question.tables]
    forked = [table.name for table, case in zip(question.tables, cases, strict=True) if case == "two"]
    exact = "bound" not in cases and len(forked) <= MOST_FORKS
    forked = forked if len(forked) <= MOST_FORKS else []
    # Exchanging the two cells exchanges the two cases, so the first table needs only one of them.
    sides: list[tuple[Side, ...]] = [("leading",) if name == forked[0] else ("leading", "trailing") for name in forked]
    problems = [
        _problem(question, levels, _terms(question, dict(zip(forked, chosen, strict=True))))
        for chosen in product(*sides)
    ]
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


def _problem(question: Question, levels: Sequence[Integers], terms: Sequence[Term]) -> Problem:
    columns = np.empty((len(terms), len(question.axes)), dtype=np.int64)
    negative = np.array([_may_be_negative(question, term) for term in terms])
    axes: list[Choices] = []
    for number, axis in enumerate(question.axes):
        asked = [term.columns[number] for term in terms]
        wanted = list(dict.fromkeys(asked))
        position = {column: index for index, column in enumerate(wanted)}
        columns[:, number] = [position[column] for column in asked]
        # Having less in common is being farther apart, unless another attribute may turn the sign.
        turned = negative.sum(axis=1) > negative[:, number]
        open_sign = {column for column, may_turn in zip(asked, turned, strict=True) if may_turn}
        axes.append(_choices(axis, levels[number], wanted, open_sign, question.always_inside))
    zeros = 2 * len(question.axes[0].zeros)
    rules: list[Rule] = [Impossible((flag,)) for flag in range(zeros)]
    rules += [SameGroup((flag, flag + 1, flag + 2)) for flag in range(zeros, zeros + 3 * len(question.invariants), 3)]
    return Problem(tuple(term.coefficient for term in terms), columns, tuple(axes), tuple(rules))


def _may_be_negative(question: Question, term: Term) -> list[bool]:
    used = zip(question.axes, term.columns, strict=True)
    return [kind in _CAN_BE_NEGATIVE and axis.signed[place] for axis, (place, kind) in used]


def _choices(
    axis: Axis, levels: Integers, wanted: Sequence[Column], open_sign: AbstractSet[Column], inside: AbstractSet[int]
) -> Choices:
    """The pairs of essential levels that may be the farthest apart."""
    rising = [place for place, (_, kind) in enumerate(wanted) if kind in ("left", "right")]
    falling = [place for place, column in enumerate(wanted) if place not in rising and column not in open_sign]
    matched = [place for place, column in enumerate(wanted) if column in open_sign and place not in rising]
    zeros = 2 * len(axis.zeros)

    def pruned(numbers: Numbers, flags: Flags) -> Choices:
        same = row_ids([*numbers[:, matched].T, *flags[:, zeros:].T], len(numbers))
        gain = [*numbers[:, rising].T, *(-numbers[:, falling]).T, *(~flags[:, :zeros]).T, same, -same]
        best = undominated(np.stack(gain, axis=1))
        return Choices(numbers[best], flags[best])

    found: list[Choices] = []
    step = max(1, CHUNK // (len(levels) * (len(wanted) + 1)))
    for begin in range(0, len(levels), step):
        left = np.repeat(levels[begin : begin + step], len(levels))
        right = np.tile(levels, len(left) // len(levels))
        flags = _flags(axis, left, right)
        # Where every cell belongs to some group of an exact total, a pair must agree on each attribute.
        agree = np.all(flags[:, [zeros + 3 * number + 2 for number in inside]], axis=1)
        left, right = left[agree], right[agree]
        numbers = np.stack([_number(axis, column, left, right) for column in wanted], axis=1)
        found.append(pruned(numbers, flags[agree]))
    if len(found) == 1:
        return found[0]
    return pruned(np.concatenate([each.numbers for each in found]), np.concatenate([each.flags for each in found]))


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
