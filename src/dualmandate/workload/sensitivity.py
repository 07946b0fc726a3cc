"""How far one protected unit can move the answers: ΔQ, exact, for the neighbor relation that the program states."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Literal

from dualmandate.population import Neighbors, Protection
from dualmandate.population.domain import Domain
from dualmandate.population.invariants import group_labels, steps
from dualmandate.workload.comparison import farthest
from dualmandate.workload.extremum import LARGEST_ENUMERATION, Extremum, climbed, largest
from dualmandate.workload.neighbors import Question, cells
from dualmandate.workload.pairs import Pairs, pairs
from dualmandate.workload.table import Table

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
        upward = Context(prec=PRINTED_DIGITS, rounding=ROUND_CEILING)
        number = f"{int(root):,}" if whole else f"{upward.create_decimal(Decimal(self.value)):g}"
        return number if self.exact else f"at most {number} (an upper bound)"


def sensitivity_of(domain: Domain, tables: tuple[Table, ...], protection: Protection, norm: Norm) -> Sensitivity:
    """The sensitivity of some tables, for all records of one unit.

    A unit with up to m records moves the answers m times as far: m records of one cell added, removed or changed alike
    attain what the triangle inequality allows.
    """
    power = 1 if norm == "l1" else 2
    kept = tuple(group_labels(domain, invariant) for invariant in steps(domain, protection).kept)
    question = Question(domain, tables, power, kept)
    one_record = protection.neighbors is Neighbors.ADD_OR_REMOVE
    found = _of_cells(question) if one_record else _of_pairs(question)
    records = protection.most_records_per_unit**power
    method = found.method if found.value else NOTHING_MOVES
    return Sensitivity(norm, Fraction(found.value * records, question.denominator), found.exact, method)


@dataclass(frozen=True)
class _Found:
    value: int  # in units of the question's denominator
    exact: bool
    method: str


def _of_cells(question: Question) -> _Found:
    problem = cells(question)
    best = largest(problem)
    if best is not None:
        return _Found(best.value or 0, True, _words(best, "cells"))
    bounds = [(sum(_alone(question, table) for table in question.tables), "each table's largest column, added up")]
    if question.domain.structural_zeros and question.heed_zeros:
        without = _of_cells(replace(question, heed_zeros=False))
        bounds.append((without.value, "structural zeros not heeded"))
    return _attained(min(bounds), climbed(problem))


def _of_pairs(question: Question) -> _Found:
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


def _bounded(question: Question, asked: Pairs | None) -> _Found:
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


def _change_alone(question: Question, table: Table, twice: int) -> int:
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


def _alone(question: Question, table: Table) -> int:
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
