"""How far one protected unit can move the answers: ΔQ, exact, for the neighbor relation that the program states."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import Literal

import numpy as np

from dualmandate.population import Neighbors, Protection
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.population.domain import Domain
from dualmandate.population.moves import Labels
from dualmandate.population.protection import group_labels, steps
from dualmandate.population.rational import rounded_up
from dualmandate.workload.extremum import (
    CHUNK,
    LARGEST_ENUMERATION,
    Choices,
    Extremum,
    ExtremumRule,
    Problem,
    climbed,
    corners_within,
    largest,
    undominated,
)
from dualmandate.workload.factor import (
    LARGEST_INTEGER,
    Factor,
    Identity,
    Numbers,
    Structure,
    Total,
    column_norms,
    inner,
    leading,
    least,
    signs_vary,
    sizes_vary,
)
from dualmandate.workload.levels import disjoint_pairs, joined, kinds_of, row_ids, run_ends, twins_of
from dualmandate.workload.table import Table


@dataclass(frozen=True)
class SensitivityQuestion:
    """How far the answers of some tables can move: Δ₁ for `power` 1, Δ₂² for 2.

    The sum of products is an integer: `denominator` times the sensitivity, to the power.
    """

    domain: Domain
    tables: tuple[Table, ...]
    power: int
    invariants: tuple[Labels, ...] = ()
    heed_zeros: bool = True

    @cached_property
    def denominator(self) -> int:
        """The smallest number that turns every weight, to the power, into an integer."""
        return math.lcm(*(table.weight.denominator**self.power for table in self.tables))

    @cached_property
    def coefficients(self) -> tuple[int, ...]:
        """The weight of each table, to the power, in units of the denominator."""
        return tuple(int(table.weight**self.power * self.denominator) for table in self.tables)

    @cached_property
    def axes(self) -> tuple[AxisMoves, ...]:
        zeros = self.domain.all_zero_masks if self.heed_zeros else ()
        return tuple(
            AxisMoves(
                tuple({table.factors[axis].key: table.factors[axis] for table in self.tables}.values()),
                self.power,
                tuple(masks.get(axis) for masks in zeros),
                tuple(labels.get(axis) for labels in self.invariants),
            )
            for axis in range(len(self.domain.shape))
        )

    @cached_property
    def always_inside(self) -> frozenset[int]:
        """Invariants whose groups together hold every cell."""
        whole = (all(bool(np.all(each >= 0)) for each in labels.values()) for labels in self.invariants)
        return frozenset(number for number, every in enumerate(whole) if every)

    def places(self, table: Table) -> tuple[int, ...]:
        """For each attribute, which of its distinct factors the table uses."""
        return tuple(axis.positions[factor.key] for axis, factor in zip(self.axes, table.factors, strict=True))


@dataclass(frozen=True)
class AxisMoves:
    """One attribute: its distinct factors, the masks of structural zeros and the groups of invariants on it."""

    factors: tuple[Factor, ...]
    power: int
    zeros: tuple[Booleans | None, ...]
    groups: tuple[Integers | None, ...]

    @cached_property
    def positions(self) -> dict[object, int]:
        return {factor.key: place for place, factor in enumerate(self.factors)}

    @cached_property
    def norms(self) -> tuple[Numbers, ...]:
        return tuple(column_norms(factor, self.power) for factor in self.factors)

    @cached_property
    def unequal(self) -> tuple[bool, ...]:
        """Whether the entries of each factor differ in size."""
        return tuple(sizes_vary(factor) for factor in self.factors)

    @cached_property
    def signed(self) -> tuple[bool, ...]:
        """Whether the entries of each factor differ in sign."""
        return tuple(signs_vary(factor) for factor in self.factors)

    @property
    def size(self) -> int:
        return self.factors[0].size

    @cached_property
    def structure(self) -> Structure:
        """All that tells two levels apart: in the factors, in structural zeros and in the groups of invariants."""
        masks = tuple(mask.astype(np.int64) for mask in self.zeros if mask is not None)
        groups = tuple(labels for labels in self.groups if labels is not None)
        inside = tuple((labels >= 0).astype(np.int64) for labels in groups)
        told = Structure(marks=(*masks, *inside), labels=groups)
        return joined([*(factor.structure for factor in self.factors), told])

    @cached_property
    def ends(self) -> Integers:
        """Levels that remain when runs keep only their ends."""
        return run_ends(self.structure, self.size)

    @cached_property
    def essential(self) -> Integers:
        """Levels that may make the farthest pair."""
        return self.ends[twins_of(self.structure, self.ends)]

    def cell_flags(self, levels: Integers) -> Booleans:
        """One flag a structural zero: whether the level agrees with it."""
        columns = [np.ones(len(levels), np.bool_) if mask is None else mask[levels] for mask in self.zeros]
        return np.stack(columns, axis=1) if columns else np.zeros((len(levels), 0), dtype=np.bool_)


def cells(question: SensitivityQuestion) -> Problem:
    """Add or remove one record: the largest column norm."""
    columns = np.array([question.places(table) for table in question.tables], dtype=np.int64)
    axes = tuple(_cell_choices(axis) for axis in question.axes)
    zeros = range(len(question.axes[0].zeros))
    return Problem(question.coefficients, columns, axes, tuple(_impossible(zero) for zero in zeros))


def _cell_choices(axis: AxisMoves) -> Choices:
    levels = axis.ends
    found: list[Choices] = []
    step = max(1, CHUNK // (len(axis.factors) + len(axis.zeros)))
    for begin in range(0, len(levels), step):
        some = levels[begin : begin + step]
        found.append(_best_cells(np.stack([norms[some] for norms in axis.norms], axis=1), axis.cell_flags(some)))
    numbers, flags = (np.concatenate([getattr(each, part) for each in found]) for part in ("numbers", "flags"))
    kept = corners_within(numbers, row_ids(flags.T, len(flags)))
    return _best_cells(numbers[kept], flags[kept])


def _best_cells(numbers: Numbers, flags: Booleans) -> Choices:
    best = undominated(np.concatenate([numbers, ~flags], axis=1))
    return Choices(numbers[best], flags[best])


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
PairTerm = tuple[int, tuple[Column, ...]]  # a coefficient, and the column of each attribute that is multiplied
_SIGNED: dict[Kind, Kind] = {"least": "signed least", "leading": "signed leading", "trailing": "signed trailing"}
_CAN_BE_NEGATIVE = {"inner", *_SIGNED.values()}


def _impossible(flag: int) -> ExtremumRule:
    """A structural zero: a cell whose levels agree with all of its masks cannot occur."""
    return ExtremumRule((flag,), lambda flags: ~flags[:, 0], monotone=True)


def _same_group(first: int) -> ExtremumRule:
    """An exact total: both cells are in the same group, or both are outside all groups."""

    def allows(flags: Booleans) -> Booleans:
        one, other, same = flags.T
        return np.asarray((one == other) & (~one | same))

    return ExtremumRule((first, first + 1, first + 2), allows, monotone=False)


@dataclass(frozen=True)
class Pairs:
    """Sums of products: the largest of their largest values is the sensitivity, or a bound where not `exact`."""

    problems: tuple[Problem, ...]
    exact: bool


def pairs(question: SensitivityQuestion) -> Pairs | None:
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


def _cases(question: SensitivityQuestion, table: Table) -> Literal["one", "two", "bound"]:
    """How a table's difference of columns becomes a sum of products."""
    used = zip(question.axes, question.places(table), strict=True)
    unequal = [axis.factors[place] for axis, place in used if axis.unequal[place]]
    if question.power == 2 or len(unequal) <= 1:
        return "one"
    return "bound" if any(factor.scales is None for factor in unequal) else "two"


def _terms(question: SensitivityQuestion, side_of: Mapping[str, Side]) -> list[PairTerm]:
    """The sum of products of all tables; `side_of` says which case is looked at for tables that have two."""
    terms: list[PairTerm] = []
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
        terms += [(coefficient, tuple((place, kind) for place in places)) for coefficient, kind in parts]
    return terms


def _problem(question: SensitivityQuestion, terms: Sequence[PairTerm]) -> Problem | None:
    columns = np.empty((len(terms), len(question.axes)), dtype=np.int64)
    negative = np.array([_may_be_negative(question, asked) for _, asked in terms])
    axes: list[Choices] = []
    for number, axis in enumerate(question.axes):
        asked = [used[number] for _, used in terms]
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
    rules: list[ExtremumRule] = [_impossible(flag) for flag in range(zeros)]
    rules += [_same_group(flag) for flag in range(zeros, zeros + 3 * len(question.invariants), 3)]
    return Problem(tuple(coefficient for coefficient, _ in terms), columns, tuple(axes), tuple(rules))


def _may_be_negative(question: SensitivityQuestion, asked: tuple[Column, ...]) -> list[bool]:
    used = zip(question.axes, asked, strict=True)
    return [kind in _CAN_BE_NEGATIVE and axis.signed[place] for axis, (place, kind) in used]


@dataclass(frozen=True)
class _Comparison:
    """The pairs of levels of one attribute that may be the farthest apart, and what is asked of them."""

    axis: AxisMoves
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
        found = self._best(self._measured(levels[left], levels[right]))
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


def _flags(axis: AxisMoves, left: Integers, right: Integers) -> Booleans:
    """Two flags a structural zero, one a cell; three an invariant: one cell in, the other in, in the same group."""
    always = np.ones(len(left), dtype=np.bool_)
    columns: list[Booleans] = []
    for mask in axis.zeros:
        columns += [always, always] if mask is None else [mask[left], mask[right]]
    for labels in axis.groups:
        if labels is None:
            columns += [always, always, always]
        else:
            columns += [labels[left] >= 0, labels[right] >= 0, labels[left] == labels[right]]
    return np.stack(columns, axis=1) if columns else np.zeros((len(left), 0), dtype=np.bool_)


def _number(axis: AxisMoves, column: Column, left: Integers, right: Integers) -> Numbers:
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


LARGEST_COMPARISON = 10**9  # differences of entries that are looked at


def farthest(question: SensitivityQuestion) -> int | None:
    """The largest L1 distance of two columns of neighbors, merged cells compared one by one; None for too many."""
    levels = [axis.essential for axis in question.axes]
    count = math.prod(len(each) for each in levels)
    rows = sum(table.query_count for table in question.tables)
    sizes = zip(question.tables, question.coefficients, strict=True)
    bound = sum(2 * table.largest_entry * table.query_count * weight for table, weight in sizes)
    if rows * count**2 > LARGEST_COMPARISON or bound >= LARGEST_INTEGER:
        return None
    possible, group = _cells(question, levels)
    blocks = [
        weight * reduce(np.kron, [factor.columns(each) for factor, each in zip(table.factors, levels, strict=True)])
        for table, weight in zip(question.tables, question.coefficients, strict=True)
    ]
    columns = np.concatenate(blocks)[:, possible].T
    best = 0
    step = max(1, CHUNK // columns.size)
    for begin in range(0, len(columns), step):
        some = slice(begin, begin + step)
        distances = np.abs(columns[some, None, :] - columns[None, :, :]).sum(axis=2)
        best = max(best, int(np.where(group[some, None] == group[None, :], distances, 0).max()))
    return best


def _cells(question: SensitivityQuestion, levels: list[Integers]) -> tuple[Integers, Integers]:
    """Merged cells that can occur, by their number in the product of levels, and the group of each under invariants."""
    grid = np.stack(np.meshgrid(*levels, indexing="ij"), axis=-1).reshape(-1, len(levels))
    possible = np.ones(len(grid), dtype=np.bool_)
    for number in range(len(question.axes[0].zeros)):
        agrees = np.ones(len(grid), dtype=np.bool_)
        for axis, place in zip(question.axes, grid.T, strict=True):
            mask = axis.zeros[number]
            agrees &= True if mask is None else mask[place]
        possible &= ~agrees
    grid = grid[possible]
    groups: list[Integers] = []
    for labels in question.invariants:
        of_cells = [of_levels[grid[:, place]] for place, of_levels in labels.items()]
        inside = np.ones(len(grid), dtype=np.bool_)
        for each in of_cells:
            inside &= each >= 0
        groups.append(np.where(inside, row_ids(of_cells, len(grid)), -1))
    return np.flatnonzero(possible), row_ids(groups, len(grid))


Norm = Literal["l1", "l2"]

LARGEST_TABLES_ALONE = 10**7  # pairs of levels that are looked at to bound each table by itself
MOST_CLASSES_ALONE = 10**5  # merged classes of one table by itself
PRINTED_DIGITS = 6
NOTHING_MOVES = "no pair of neighbors changes any answer: exact totals or the size of the file decide them all"


@dataclass(frozen=True)
class Sensitivity:
    """The largest change of the answers between neighbors: Δ₁ = max ‖Qx − Qx′‖₁ or Δ₂ = max ‖Qx − Qx′‖₂.

    `power` is exact: Δ₁, or Δ₂² (which avoids the square root). Where not `exact`, it is a certified upper bound: noise
    set by it protects at least as much as promised. It is 0 only where no answer can differ between neighbors.
    """

    norm: Norm
    power: Fraction
    exact: bool
    method: str  # how it was found, in words

    @property
    def value(self) -> float:
        """Δ as a number, never below the exact one."""
        if self.norm == "l1":
            return _up(float(self.power), self.power, 1)
        return _up(math.sqrt(self.power), self.power, 2)

    def __str__(self) -> str:
        root = self.power if self.norm == "l1" else Fraction(math.isqrt(int(self.power)))
        whole = root.denominator == 1 and (self.norm == "l1" or root**2 == self.power)
        number = f"{int(root):,}" if whole else f"{rounded_up(Fraction(self.value), PRINTED_DIGITS):g}"
        return number if self.exact else f"at most {number} (an upper bound)"


def sensitivity_of(domain: Domain, tables: tuple[Table, ...], protection: Protection, norm: Norm) -> Sensitivity:
    """The sensitivity of some tables, for all records of one unit.

    A unit with up to m records moves the answers m times as far: m records of one cell added, removed or changed alike
    attain what the triangle inequality allows.
    """
    power = 1 if norm == "l1" else 2
    if protection.neighbors is Neighbors.ADD_OR_REMOVE and not domain.structural_zeros:
        together = _largest_together(tables, power)
        if together is not None:
            records = Fraction(protection.most_records_per_unit) ** power
            return Sensitivity(norm, records * together, True, "closed form" if together else NOTHING_MOVES)
    kept = tuple(group_labels(domain, invariant) for invariant in steps(domain, protection).kept)
    question = SensitivityQuestion(domain, tables, power, kept)
    one_record = protection.neighbors is Neighbors.ADD_OR_REMOVE
    found = _of_cells(question) if one_record else _of_pairs(question)
    records = protection.most_records_per_unit**power
    method = found.method if found.value else NOTHING_MOVES
    return Sensitivity(norm, Fraction(found.value * records, question.denominator), found.exact, method)


def _largest_together(tables: tuple[Table, ...], power: int) -> Fraction | None:
    """The sum of every table's largest column, where one cell has them all: a level of each attribute that is the
    largest of every factor. None where there is no such cell: which one is largest then takes a search.
    """
    largest: dict[object, int] = {}
    for axis in range(len(tables[0].factors)):
        told = {each.key: each for table in tables if not isinstance(each := table.factors[axis], Identity | Total)}
        norms = {key: column_norms(factor, power) for key, factor in told.items()}
        largest.update({key: int(sizes.max()) for key, sizes in norms.items()})
        if norms and not np.logical_and.reduce([sizes == sizes.max() for sizes in norms.values()]).any():
            return None
    found = Fraction(0)
    for table in tables:
        telling = (largest[each.key] for each in table.factors if not isinstance(each, Identity | Total))
        found += table.weight**power * math.prod(telling)
    return found


@dataclass(frozen=True)
class _Found:
    value: int  # in units of the question's denominator
    exact: bool
    method: str


def _of_cells(question: SensitivityQuestion) -> _Found:
    problem = cells(question)
    best = largest(problem)
    if best is not None:
        return _Found(best.value or 0, True, _words(best, "cells"))
    bounds = [(sum(_alone(question, table) for table in question.tables), "each table's largest column, added up")]
    if question.domain.structural_zeros and question.heed_zeros:
        without = _of_cells(replace(question, heed_zeros=False))
        bounds.append((without.value, "structural zeros not heeded"))
    return _attained(min(bounds), climbed(problem))


def _of_pairs(question: SensitivityQuestion) -> _Found:
    asked = pairs(question)
    best = None if asked is None else _largest_of(asked)
    if asked is None or best is None:
        return _bounded(question, asked)
    if asked.exact:
        return _Found(best.value or 0, True, _words(best, "pairs of cells"))
    written_out = farthest(question)
    if written_out is not None:
        return _Found(written_out, True, "every pair of merged cells compared")
    return _Found(best.value or 0, False, "tables with several unequal weights bounded one attribute at a time")


def _largest_of(asked: Pairs, most_classes: int = LARGEST_ENUMERATION) -> Extremum | None:
    """The largest of several cases; None as soon as one of them cannot be looked at."""
    best = Extremum(None, 0)
    for problem in asked.problems:
        found = largest(problem, most_classes // len(asked.problems))
        if found is None:
            return None
        best = max(best, found, key=lambda each: -1 if each.value is None else each.value)
    return best


def _bounded(question: SensitivityQuestion, asked: Pairs | None) -> _Found:
    """The best of the upper bounds; exact where some pair attains it."""
    nonnegative = not any(any(axis.signed) for axis in question.axes)
    # ‖a − b‖ ≤ ‖a‖ + ‖b‖; the square of it is at most 4 times the larger, or 2 where no entries have opposite signs.
    twice = 2 if question.power == 1 or nonnegative else 4
    bounds = [(twice * _of_cells(question).value, "twice the largest column")]
    levels = sum(len(axis.essential) ** 2 for axis in question.axes)
    if len(question.tables) > 1 and len(question.tables) * levels <= LARGEST_TABLES_ALONE:
        changes = [_change_alone(question, table, twice) for table in question.tables]
        bounds.append((sum(changes), "each table's largest change, added up"))
    if question.domain.structural_zeros and question.heed_zeros:
        without = _of_pairs(replace(question, heed_zeros=False))
        bounds.append((without.value, "structural zeros not heeded"))
    reached = None
    if asked is not None and asked.exact:
        reached = max((value for value in map(climbed, asked.problems) if value is not None), default=None)
    return _attained(min(bounds), reached)


def _change_alone(question: SensitivityQuestion, table: Table, twice: int) -> int:
    """The largest change of one table, or a bound on it, in units of the question's denominator."""
    alone = replace(question, tables=(table,))
    asked = pairs(alone)
    best = None if asked is None else _largest_of(asked, MOST_CLASSES_ALONE)
    if best is None or best.value is None:
        return twice * _alone(question, table)
    return best.value * (question.denominator // alone.denominator)


def _attained(bound: tuple[int, str], reached: int | None) -> _Found:
    value, words = bound
    if reached == value:
        return _Found(value, True, f"attained upper bound: {words}")
    return _Found(value, False, f"upper bound: {words}")


def _alone(question: SensitivityQuestion, table: Table) -> int:
    """The largest column norm of one table, in units of the question's denominator."""
    norms = (int(axis.norms[place].max()) for axis, place in zip(question.axes, question.places(table), strict=True))
    return int(table.weight**question.power * question.denominator) * math.prod(norms)


def _words(best: Extremum, what: str) -> str:
    return "closed form" if best.looked_at == 1 else f"the largest of {best.looked_at:,} merged classes of {what}"


def _up(estimate: float, exact: Fraction, power: int) -> float:
    """The smallest float whose power is at least the exact number."""
    while Fraction(estimate) ** power < exact:
        estimate = math.nextafter(estimate, math.inf)
    while estimate > 0 and Fraction(math.nextafter(estimate, 0)) ** power >= exact:
        estimate = math.nextafter(estimate, 0)
    return estimate
