"""How far a choice can be trusted: how it moves with each number, over what is stated of them, and read otherwise.

A range is what somebody stated: 95 in 100 of what a standard error allows, the ends of a range, other readings. Where
nothing is stated nothing is moved, robustness cannot be judged, and the plan says so. A reading is chosen for anew, on
the same frontier. Beside a public total that the program states stands what privacy loss and errors cost in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.choice import (
    BoundedCost,
    Choice,
    Elasticity,
    ExponentialCost,
    InformationUtility,
    Input,
    Limits,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TornadoRow,
    Uncertain,
    choose,
    comparative_statics,
    inputs,
    tornado,
)
from dualmandate.errors import InvalidValue, Refusal, did_you_mean
from dualmandate.planning.uncertainty import LEVEL, judgments, numbers_without_errors, stated_numbers
from dualmandate.planning.welfare import amount_in
from dualmandate.population import PrivacyMeasure
from dualmandate.population.shown import one_line
from dualmandate.population.time_base import recurs
from dualmandate.population.wording import chosen_loss, money, number, percent

if TYPE_CHECKING:
    from dualmandate.frontier import Frontier
    from dualmandate.planning.program import Program
    from dualmandate.planning.uncertainty import Uncertainty

SCORE = 1.959964  # This many standard deviations on either side hold 95 in 100.
# Relative risk aversion, and budget, of the example that explains a price. So many of another currency are another
# budget, and no plan knows what one is worth in another.
USUAL_AVERSION, USUAL_BUDGET, USUAL_CURRENCY = 2.0, 20e6, "USD"
USUAL_PRICE = USUAL_AVERSION / USUAL_BUDGET / 2  # USD per squared USD: half the absolute risk aversion.
PRICE = "price_of_squared_misallocation"
FORM = "information_utility"
SAME = 1e-6  # Two prices that differ by less than this share are one.
MOST_NAMED = 6  # of the numbers of which nothing is stated
ASKED = "state standard_error, or least and largest, beside the numbers, or other [[readings]] of them"
FORMS: Mapping[str, tuple[Callable[[float], InformationUtility], str]] = {
    "linear": (LinearCost, "linear cost: each unit of loss costs as much as the first"),
    "exponential": (ExponentialCost, "exponential cost, k·(e^ε − 1): odds of harm rise as far as they may"),
    "bounded": (BoundedCost, "bounded cost, k·(1 − e^(−ε)): no more than k can be lost"),
}


@dataclass(frozen=True)
class Reading:
    """Another way to read the program, and what would then be chosen; `why_not` where nothing can be."""

    reading: str
    parameter: str  # the key that is read otherwise
    value: float | None  # in `unit`, as welfare counts it; None where a form is read otherwise, not a number
    unit: str | None
    source: str | None
    choice: Choice | None
    why_not: str | None = None

    __repr__ = one_line


@dataclass(frozen=True, eq=False)
class Robustness:
    """What a plan can say of how sure its choice is."""

    elasticities: tuple[Elasticity, ...]
    tornado: tuple[TornadoRow, ...]  # of the numbers whose range is stated
    readings: tuple[Reading, ...]
    exact: tuple[str, ...]  # numbers that are taken as exact, because nothing is stated of their errors
    interval: tuple[float, float] | None  # where the best loss lies with probability 95 %; infinite without a bound
    span: str | None  # the same in words
    why_no_interval: str  # where there is none
    privacy_measure: PrivacyMeasure

    __repr__ = one_line

    @property
    def judged(self) -> bool:
        """Whether anything is stated over which the choice could move."""
        return bool(self.tornado)

    def sentences(self) -> Iterator[str]:
        """What must stand beside the choice."""
        yield from self.how_sure()
        if self.exact:
            more = len(self.exact) - MOST_NAMED
            named = ", ".join(name.replace("_", " ") for name in self.exact[:MOST_NAMED]) + (
                f" and {more} more" if more > 0 else ""
            )
            yield f"Taken as exact, because nothing is stated of their errors: {named}."

    def how_sure(self) -> Iterator[str]:
        """Its interval; where what is stated of one number at a time would put it, and where other readings would."""
        loss = self.privacy_measure
        if self.span is not None:
            yield f"Given the errors that are stated, the best {loss} is {self.span} ({percent(LEVEL)})."
        else:
            asked = f", and how robust it is cannot be judged: {ASKED}" if not self.judged else ""
            yield f"This {loss} has no interval, because {self.why_no_interval}{asked}."
        if self.judged:
            ends = [end.epsilon for row in self.tornado for end in (row.low, row.high)]
            some = [end for end in ends if end is not None]
            none = " or there is none" if len(some) < len(ends) else ""
            if some:
                low, high = chosen_loss(min(some)), chosen_loss(max(some))
                span = f"it stays at {low}" if low == high else f"it is between {low} and {high}"
                yield f"Over what is stated of one number at a time, {span}{none}."
        read = [float(row.choice.loss) for row in self.readings if row.choice is not None]
        if read:
            low, high = chosen_loss(min(read)), chosen_loss(max(read))
            yield f"Read otherwise, it is {low if low == high else f'between {low} and {high}'}: see the readings."


def check_robustness(program: Program) -> None:
    """Refuse readings and a public total that lead to nothing: before a search, which may take minutes."""
    rows = {row.name: row for row in inputs(program.welfare, program.limits)}
    for _ in _stated_readings(program, rows, {}):
        pass
    _public_amount(program)


def robustness_of(
    program: Program,
    frontier: Frontier,
    limits: Limits,
    *,
    choice: Choice,
    uncertainty: Uncertainty | None,
    tables: tuple[str, ...],
) -> Robustness:
    """Elasticities (of the worth of some tables alone), the tornado of what is stated, and readings."""
    welfare = program.welfare
    rows = {row.name: row for row in inputs(welfare, limits)}
    stated = {name: each for name, each in stated_numbers(program) if each is not None and name in rows}
    scales = {name: rows[name].value / float(each.value) for name, each in stated.items() if each.value > 0}
    read = tuple(_stated_readings(program, rows, scales))
    ends: dict[str, list[float]] = {}
    for name, scale in scales.items():
        quantity = stated[name].quantity()
        found = [each for each in (quantity.least, quantity.largest) if each is not None]
        if quantity.standard_error is not None:
            found += Uncertain(name, quantity.value, quantity.standard_error).at(np.array([-SCORE, SCORE])).tolist()
        ends[name] = [each * scale for each in found]
    for row, value, _, _ in read:
        ends.setdefault(row.name, []).append(value)
    ranges = {name: (min([*of, rows[name].value]), max([*of, rows[name].value])) for name, of in ends.items() if of}
    known = None if uncertainty is None else uncertainty.known
    moved = comparative_statics(frontier, welfare, limits, tables=tables, chosen=choice)
    return Robustness(
        elasticities=tuple(sorted((row for row in moved if math.isfinite(row.elasticity)), key=_weight)),
        tornado=tornado(frontier, welfare, limits, ranges=ranges, chosen=choice),
        readings=tuple(_readings(frontier, welfare, limits, read)),
        exact=(
            *(name for name in (*stated, *judgments(program)) if name not in ranges),
            *numbers_without_errors(program),
        ),
        interval=None if known is None else known.interval(LEVEL),
        span=None if known is None else known.span(LEVEL),
        why_no_interval="what the stated errors mean could not be worked out"
        if any(each.standard_error for each in stated.values())
        else "no number it rests on states an error",
        privacy_measure=choice.privacy_measure,
    )


def _weight(row: Elasticity) -> float:
    return -abs(round(row.elasticity, 9))  # those that move it alike stay in the order of the file


StatedReading = tuple[Input, float, str, str]
"""A number, its other value as welfare counts it, what it is, and its source."""


def _stated_readings(
    program: Program, rows: Mapping[str, Input], scales: Mapping[str, float]
) -> Iterator[StatedReading]:
    for position, table in enumerate(program.file.readings):
        row = rows.get(table.parameter)
        if row is None:
            raise InvalidValue(
                f"'{table.parameter}' is no number of this program",
                why="another reading is one of a number that the choice rests on",
                instead=did_you_mean(table.parameter, list(rows), f"name one of {', '.join(rows)}"),
                where=program.document.place(("readings", position, "parameter")),
            )
        factor = table.times
        value = row.value * float(factor) if factor is not None else float(table.value or 0) * scales.get(row.name, 1.0)
        yield row, value, table.reading, table.source


def _readings(
    frontier: Frontier, welfare: SocialWelfare, limits: Limits, stated: tuple[StatedReading, ...]
) -> Iterator[Reading]:
    """What is stated, then what follows from the program: other forms of cost, and the price of a usual aversion."""

    def chosen(changed: SocialWelfare, within: Limits) -> tuple[Choice | None, str | None]:
        try:
            return choose(frontier, changed, within), None
        except Refusal as refusal:
            return None, refusal.what

    def read(row: Input, value: float, words: str, source: str | None) -> Reading:
        try:
            changed = row.change(value)
        except Refusal as refusal:
            return Reading(words, row.name, value, row.unit, source, None, refusal.what)
        return Reading(words, row.name, value, row.unit, source, *chosen(*changed))

    for row, value, words, source in stated:
        yield read(row, value, words, source)
    for words, groups in _other_forms(welfare):
        yield Reading(words, FORM, None, None, None, *chosen(replace(welfare, groups=groups), limits))
    if welfare.currency != USUAL_CURRENCY:
        return
    for row in inputs(welfare, limits, tables=()):
        if row.name.startswith(PRICE) and abs(row.value / USUAL_PRICE - 1) > SAME:
            words = (
                f"a relative risk aversion of {USUAL_AVERSION:g} on a budget of {money(USUAL_BUDGET, welfare.currency)}"
            )
            yield read(row, USUAL_PRICE, words, None)


def _other_forms(welfare: SocialWelfare) -> Iterator[tuple[str, tuple[PopulationGroup, ...]]]:
    """Costs of other forms that begin as steeply as the stated ones; odds are bounded by ε alone, not by ρ."""
    if welfare.privacy_measure is not PrivacyMeasure.PURE_DP:
        return
    for form, (cost, words) in FORMS.items():
        if any(group.information_utility.form != form for group in welfare.groups):
            first = [cost(group.information_utility.marginal_cost(0.0)) for group in welfare.groups]
            groups = zip(welfare.groups, first, strict=True)
            yield words, tuple(replace(group, information_utility=utility) for group, utility in groups)


@dataclass(frozen=True)
class PublicTotal:
    """A total that readers know, and what the choice costs in all beside it."""

    amount: float  # money, > 0, over the time of the plan
    time_base: str | None  # of the plan
    source: str
    privacy_cost: float  # money
    data_loss: float  # money
    currency: str

    __repr__ = one_line

    @property
    def privacy_cost_times(self) -> float:
        """What privacy loss costs, over the total."""
        return self.privacy_cost / self.amount

    @property
    def data_loss_times(self) -> float:
        """What errors cost, over the total."""
        return self.data_loss / self.amount

    def sentences(self) -> Iterator[str]:
        """The comparison, and a warning where a loss exceeds the total."""
        base = f" {self.time_base}" if recurs(self.time_base) else ""
        yield (
            f"Beside a public total of {money(self.amount, self.currency)}{base} ({self.source}), privacy loss costs "
            f"{_times(self.privacy_cost_times)}, and errors cost {_times(self.data_loss_times)}."
        )
        if max(self.privacy_cost_times, self.data_loss_times) > 1:
            yield (
                f"A loss above all the money at stake, {money(self.amount, self.currency)}, is hard to believe: check "
                "costs, prices and times."
            )


def _times(share: float) -> str:
    return f"{number(share, 3)} times as much" if share >= 1 else f"{percent(share)} of it"


def _public_amount(program: Program) -> float | None:
    """The stated total in money; None where the program states none."""
    key = ("program", "public_total")
    amount = amount_in(program, program.units.currency, program.file.program.public_total, *key)
    if amount is not None and amount <= 0:
        raise InvalidValue(
            "the public total is 0",
            why="nothing can be held against it",
            instead="state a total above 0, or leave it out",
            where=program.document.place((*key, "value")),
        )
    return amount


def public_total_of(program: Program, choice: Choice) -> PublicTotal | None:
    """The stated total beside the choice; None where the program states none."""
    stated, amount = program.file.program.public_total, _public_amount(program)
    if stated is None or amount is None:
        return None
    lost = choice.privacy_cost, choice.data_loss
    return PublicTotal(amount, program.timing.time_base, stated.source, *lost, program.units.currency)
