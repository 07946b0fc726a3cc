"""From `[preferences]`, `[limits]` and each table's worth to social welfare in money."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

from dualmandate.choice import Limits, PopulationGroup, SocialWelfare, TableValue
from dualmandate.choice.welfare import information_utility, population_size, relative_weight, table_value
from dualmandate.errors import InvalidValue, MissingKey
from dualmandate.frontier import Measure
from dualmandate.planning.measures import measure_of, wealth_of
from dualmandate.planning.timing import PRICES, Timing
from dualmandate.population import Calibrated, PrivacyMeasure, Units
from dualmandate.population.wording import exact
from dualmandate.program.file import Document, KeyPath
from dualmandate.program.number import CalibratedNumber, KeyTable
from dualmandate.program.program import ProgramFile
from dualmandate.program.schema import GroupTable, PreferencesTable, ProgramKeys, WorkloadTable

if TYPE_CHECKING:
    from dualmandate.planning.program import Program

SIZES_AGREE = 1e-9  # the sizes of the groups add up to the population within this share of it


def welfare_of(program: ProgramFile, timing: Timing) -> SocialWelfare:
    """What society loses at each privacy loss: W(ε) = −Σ η_g·N_g·κ_g(ε) − Σ b_t·loss_t(ε), USD."""
    file, units, document = program.file, program.units, program.document
    groups = _groups(program, timing)
    grids = {table.name: float(table.grid) for table in program.workload.tables}
    values = tuple(
        replace(
            _table_value(program, timing, position, measure_of(program, position), grid=grids[table.name]),
            existing_squared_error=_sampling(position, table, program),
        )
        for position, table in enumerate(file.workload)
    )
    with document.at("preferences"):
        return SocialWelfare(groups, values, protected_unit=units.singular, currency=units.currency)


def limits_of(file: ProgramKeys, privacy_measure: PrivacyMeasure, document: Document) -> Limits:
    """Caps from outside and the least accuracy of each table, in the currency of the program."""
    cap = in_currency(file.limits, ("limits", "largest"), "limits", privacy_measure, document)
    fit = {table.name: table.fitness_for_use for table in file.workload if table.fitness_for_use is not None}
    errors = {name: fitness.largest_root_mean_squared_error for name, fitness in fit.items()}
    consequences = {name: fitness.largest_root_mean_squared_consequence for name, fitness in fit.items()}
    with document.at("limits"):
        return Limits(
            **{f"largest_{privacy_measure}": cap},
            floors={name: float(floor) for name, floor in errors.items() if floor is not None},
            consequence_floors={name: float(floor) for name, floor in consequences.items() if floor is not None},
        )


def in_currency(
    table: KeyTable, key: tuple[str, str], does: str, privacy_measure: PrivacyMeasure, document: Document
) -> Fraction | None:
    """What a table states under `…_epsilon` or `…_rho`, whichever the program counts its loss in; the other is refused.

    `key` is the name of the table, and how both keys begin; `does` says what such a number does to a privacy loss.
    """
    name, begins = key
    other = f"{begins}_{'rho' if privacy_measure is PrivacyMeasure.PURE_DP else 'epsilon'}"
    if getattr(table, other) is not None:
        raise InvalidValue(
            f"{other} {does} a privacy loss that this program does not choose",
            why=f"its cost of disclosure is stated so that the loss is counted in {privacy_measure}",
            instead=f"state {begins}_{privacy_measure}",
            where=document.place((name, other)),
        )
    stated: Fraction | None = getattr(table, f"{begins}_{privacy_measure}")
    return stated


def _groups(program: ProgramFile, timing: Timing) -> tuple[PopulationGroup, ...]:
    file, units, document = program.file, program.units, program.document
    preferences = file.preferences
    with document.at("preferences"):
        weight = relative_weight(
            float_or_none(preferences.relative_privacy_weight), float_or_none(preferences.privacy_weight)
        )
    with document.at("population", "population_size"):
        everybody = population_size(file.population.population_size.quantity(), units)
    group_of = partial(_group, program=program, timing=timing, weight=weight)
    cost = preferences.mean_disclosure_cost
    if cost is not None:
        size = file.population.population_size
        alike = GroupTable.model_construct(name="everybody", size=size, mean_disclosure_cost=cost)
        return (group_of(alike, key=("preferences",)),)
    listed = enumerate(preferences.groups)
    groups = tuple(group_of(group, key=("preferences", "groups", position)) for position, group in listed)
    counted = math.fsum(group.size for group in groups)
    if abs(counted - everybody) > SIZES_AGREE * everybody:
        raise InvalidValue(
            f"the groups count {exact(counted)} {units.plural}, the population {exact(everybody)}",
            why="everybody belongs to exactly one group",
            instead="state sizes that add up to population_size",
            where=document.place(("preferences", "groups")),
        )
    return groups


def _group(table: GroupTable, *, program: ProgramFile, timing: Timing, weight: float, key: KeyPath) -> PopulationGroup:
    preferences, units, document = program.file.preferences, program.units, program.document
    form = table.information_utility or preferences.information_utility
    prior = (table.prior_probability or preferences.prior_probability) if form == "posterior" else None
    with document.at(*key, "mean_disclosure_cost"):
        stated = table.mean_disclosure_cost.quantity()
        cost = stated.scaled(timing.factor(stated.time_base))
        per_rho = form == "linear" and units.agree(cost.unit, f"{units.currency} per {units.singular} per rho")
        utility = information_utility(
            form,
            cost,
            units=units,
            privacy_measure=PrivacyMeasure.ZCDP if per_rho else PrivacyMeasure.PURE_DP,
            prior=float_or_none(prior),
        )
    with document.at(*key, "size"):
        size = population_size(table.size.quantity(), units)
    own = float_or_none(table.relative_privacy_weight)
    return PopulationGroup(table.name, size, utility, weight if own is None else own)


def _table_value(program: ProgramFile, timing: Timing, position: int, measure: Measure, *, grid: float) -> TableValue:
    table, units, document = program.file.workload[position], program.units, program.document
    price = price_of(table.loss, program.file.preferences, units, document)
    stated = "consequence" if table.value_of_accuracy is None else "value_of_accuracy"
    if not isinstance(measure, str):
        value = TableValue(table.name, 0.0, measure, table.unit or units.singular, grid=grid)
        if table.decision is not None:
            with document.at("workload", position, "decision"):
                granted = table.decision.per_head
                often = timing.factor(*(each.time_base for each in (granted, price) if each is not None))
                lost = _misallocated(table.loss, price, units.currency) * often
                return replace(value, value=lost, price=lost, present_value=often)
        with document.at("workload", position, stated):
            assert table.value_of_accuracy is not None
            each = table.value_of_accuracy.quantity().to(value.value_unit(units.currency), units)
            often = timing.factor(table.value_of_accuracy.time_base)
            return replace(value, value=each.value * often, present_value=often)
    if table.wealth:
        count = program.workload.table(table.name).query_count
        groups = zip(wealth_of(program, position), table.wealth, strict=True)
        worth = math.fsum(
            group.value_of_accuracy(count) * timing.factor(row.exposure.time_base) for group, row in groups
        )
        return TableValue(table.name, worth, unit=table.unit or units.singular, grid=grid)
    assert table.loss in ("squared", "absolute")
    with document.at("workload", position, stated):
        value_of_accuracy, consequence = _optional(table.value_of_accuracy), _optional(table.consequence)
        paid = (consequence, price) if value_of_accuracy is None else (value_of_accuracy,)
        value = table_value(
            table.name,
            units=units,
            unit=table.unit,
            loss=table.loss,
            value_of_accuracy=value_of_accuracy,
            consequence=consequence,
            price=price,
            present_value=timing.factor(*(each.time_base for each in paid if each is not None)),
        )
        return replace(value, grid=grid)


def _sampling(position: int, table: WorkloadTable, program: ProgramFile) -> float:
    """Σ of Poisson variances of a table that estimates a superpopulation: what it counts in all; else 0."""
    if table.estimates != "superpopulation":
        return 0.0
    if program.protection.most_records_per_unit > 1:
        unit = program.units.singular
        raise InvalidValue(
            f"'{table.name}' estimates a superpopulation, and one {unit} may have several records",
            why=f"records of one {unit} come together, so that counts vary more than independent draws",
            instead=f"count each {unit} once, or leave estimates out",
            where=program.document.place(("workload", position, "estimates")),
        )
    key: KeyPath = ("workload", position, "total")
    stated = table.total
    if stated is None:
        key, stated = ("population", "population_size"), program.file.population.population_size
    found = stated_in(program, table.unit or program.units.singular, stated, *key)
    assert found is not None
    return found


def _misallocated(loss: str, price: Calibrated | None, money: str) -> float:
    """What misallocated money costs, 1 where not stated; squared money has no price of its own."""
    if price is None and loss == "squared":
        raise MissingKey(
            "what a decision misallocates is squared, and has no price",
            why=f"squared {money} cannot be added to {money}",
            instead=f'state price_of_squared_misallocation in "{money} per {money}^2", or loss = "absolute"',
        )
    return 1.0 if price is None else price.value


def price_of(loss: str, preferences: PreferencesTable, units: Units, document: Document) -> Calibrated | None:
    """What squared money, or money, that is misallocated is worth, where errors count so; checked at its key."""
    if loss not in PRICES:
        return None
    key, unit = PRICES[loss], f"{units.currency} per {units.currency}" + ("^2" if loss == "squared" else "")
    stated: CalibratedNumber | None = getattr(preferences, key)
    with document.at("preferences", key):
        return None if stated is None else stated.quantity().to(unit, units)


def _optional(number: CalibratedNumber | None) -> Calibrated | None:
    return None if number is None else number.quantity()


def stated_in(program: ProgramFile, unit: str, number: CalibratedNumber | None, *key: str | int) -> float | None:
    """What is counted, in some unit; None where it is not stated. Refused at its key where it is in another."""
    with program.document.at(*key):
        return None if number is None else number.quantity().to(unit, program.units).value


def amount_in(program: Program, unit: str, number: CalibratedNumber | None, *key: str | int) -> float | None:
    """A stated amount of money in some unit, over the time of the plan; None where it is not stated."""
    found = stated_in(program, unit, number, *key)
    return None if found is None or number is None else found * program.timing.factor(number.time_base)


def float_or_none(number: Fraction | None) -> float | None:
    """A number that may be left out, as the economics count it."""
    return None if number is None else float(number)
