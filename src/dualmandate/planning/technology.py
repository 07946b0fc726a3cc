"""The ways to produce the tables: one frontier for each kind of noise, what is measured, and what shares a measurement.

For each kind of noise that way is used which leaves society best off at its own choice. A strategy for all tables is
looked for with squared errors and continuous noise in mind, and by counts: amounts beside counts are better measured
with a scale of their own. Groups of tables that split the loss by their value are one measurement with a scale for each
group, so the tables together, by their unit, by their cells and each apart are tried; where `measured` states one of
these, that alone.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from dualmandate.choice import Choice, Limits, SocialWelfare, choose
from dualmandate.errors import InvalidMechanism, InvalidWorkload, MissingKey, Place, Refusal, TooLarge
from dualmandate.frontier import (
    Frontier,
    Measure,
    TableWeights,
    envelope,
    in_epsilon,
    in_order,
    power_split,
    priced,
    split,
    stated_split,
)
from dualmandate.mechanism import GAUSSIAN, MatrixRows, Measurement, NoiseLaw, Rows, Strategy, StrategyRows, TableRows
from dualmandate.mechanism.data_dependent import PublishedMechanism
from dualmandate.mechanism.mechanism import loss_power
from dualmandate.mechanism.strategy.strategy import NoiseName, measures_marginals, optimize_strategy
from dualmandate.mechanism.technologies import CELLS, NOISE_LAWS, OPTIMIZED, TABLES, TECHNOLOGY_FORMAT, noise_of
from dualmandate.planning.published_errors import CombinedTables, as_published, combined_tables
from dualmandate.planning.study import is_study, may_be_used
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arguments import named_twice
from dualmandate.population.loss import rho_at
from dualmandate.population.shown import one_line
from dualmandate.population.wording import number
from dualmandate.program.program import MOST_MEASURED
from dualmandate.program.schema import BEST, MechanismTable
from dualmandate.publication.costs import check_memory, memory_needed
from dualmandate.publication.nested_tables import LARGEST_FITTED, LARGEST_FITTED_FIRST
from dualmandate.publication.release_spec import ALL_TABLES, OrderedTechnology, check_size, check_strategy
from dualmandate.workload import Identity, Total, Workload

if TYPE_CHECKING:
    from dualmandate.planning.extensions import Participation

MEASURED = {
    OPTIMIZED: "an optimized strategy",
    TABLES: "the tables",
    CELLS: "every cell",
    "partition": "a partition of the cells",
    "multiplicative weights": "what a fitted distribution gets most wrong",
    "adaptive marginals": "marginals chosen by what a model misses",
}
TOGETHER, BY_UNIT, BY_CELLS, APART, STATED = "together", "by unit", "by cells", "apart", "as stated"
EVENLY, BY_VALUE = "evenly", "by value"  # shares of each table, as they are set by hand
SHARED = {
    BY_UNIT: "counts and amounts apart",
    BY_CELLS: "tables of the same cells together",
    APART: "each apart",
    EVENLY: "in even shares",
    BY_VALUE: "in shares by value",
}
NAMED_AFTER_PEOPLE = ("laplace", "gaussian")
ROUNDED_UP = 1e-4  # relative, of the loss that makes a table fit for use, so that rounding a share leaves it fit
SHARE_DIGITS = 7  # decimal digits, after the first of the whole loss, to which a share of it is rounded down
MOST_APART = 12  # Of more tables, a strategy for each apart is looked for only where as few have queries that overlap.
MOST_SPLIT = 512  # Of more groups, a measurement for each is not looked for where nobody asked for it.
WORTHWHILE = 1e-3  # share of what errors cost that a strategy must save to be measured instead of the tables
Kind = tuple[str, str, str]  # of technology: noise, what is measured, and what shares a measurement


@dataclass(frozen=True, eq=False)
class Technology:
    """One way to produce the tables: one kind of noise on one choice of what is measured, group by group.

    `frontier` counts the loss in the program's currency; `noise_frontier` in the currency that the noise is set by,
    which differs where Gaussian noise is read in epsilon at a failure probability.
    """

    noise: str
    strategy: str  # what is measured
    measured: str  # what shares a measurement
    measurements: Mapping[str, Measurement]  # of tables measured together, by a name for the group
    noise_frontier: Frontier
    frontier: Frontier
    failure_probability: float | None = None  # set where Gaussian noise is read in epsilon
    found: Mapping[str, Strategy] = field(default_factory=dict)  # by group, where strategies were optimized
    stated_shares: Mapping[str, Fraction] = field(default_factory=dict)  # of the loss, by group, where there are any
    errs_less: str | None = None  # in words, where it is not worked out how much less published estimates err
    drawn: PublishedMechanism | None = None  # whose errors depend on the data; then nothing is measured by group
    seconds: float = 0.0  # that one release of it took, where it was simulated

    __repr__ = one_line

    @property
    def kind(self) -> Kind:
        """What tells it from the others."""
        return self.noise, self.strategy, self.measured

    def check_carried_out(self, protection: Protection, records: float = 0.0, *, on_cluster: bool = False) -> None:
        """Refuse what is so large that it cannot be published here, or that no interval can be worked out.

        `records` is how many the program expects.
        """
        if not is_study(self.noise):
            measured = self.measurements.values()
            domain = next(iter(measured)).workload.domain
            try:
                check_size(domain, measured, protection)
                if not on_cluster:
                    check_memory(memory_needed(domain, measured, protection, records))
            except TooLarge as refusal:
                raise refusal.at(Place(key="workload" if self.strategy == TABLES else "mechanism.strategy")) from None
        for measurement in self.measurements.values():
            measurement.check_intervals()

    def spent(self, loss: float) -> float:
        """The loss in the currency that the noise is set by, for a loss in the program's currency."""
        return loss if self.failure_probability is None else rho_at(loss, self.failure_probability)

    def exact_loss(self, choice: Choice) -> PrivacyLoss:
        """The loss that a release spends, exactly: the chosen one, or the ρ behind a chosen ε at δ, rounded down.

        Where fitness for use decides, more digits are kept, so that rounding leaves no table unfit.
        """
        if self.failure_probability is None:
            return choice.loss
        rho = self.spent(float(choice.loss))
        if choice.bound_by != "fitness for use":
            return PrivacyLoss.chosen(rho, PrivacyMeasure.ZCDP)
        step = _decimal_step(rho)
        return PrivacyLoss(Fraction(rho) // step * step, PrivacyMeasure.ZCDP)

    def shares(self, loss: PrivacyLoss) -> dict[str, Fraction]:
        """What each group of tables spends of an exact loss: its stated share, exactly; else rounded down.

        At most all of it together.
        """
        if self.drawn is not None:
            return {ALL_TABLES: loss.amount}
        groups = self.measurements
        if len(groups) == 1:
            return dict.fromkeys(groups, loss.amount)
        if self.stated_shares:
            return {group: loss.amount * self.stated_shares[group] for group in groups}
        step = _decimal_step(float(loss))
        allocation = self.noise_frontier.allocation(float(loss))
        shares = {group: max(Fraction(spent) // step, 1) * step for group, spent in allocation.items()}
        excess = sum(shares.values()) - loss.amount
        if excess > 0:
            largest = max(shares, key=lambda group: shares[group])
            shares[largest] -= -(-excess // step) * step
        return shares


def ordered(technology: Technology, workload: Workload, loss: Fraction) -> OrderedTechnology:
    """What a release of it orders."""
    assert technology.drawn is not None
    return OrderedTechnology(
        technology.strategy, TECHNOLOGY_FORMAT, technology.drawn, workload, loss, technology.seconds
    )


def _decimal_step(loss: float) -> Fraction:
    return Fraction(10) ** (math.floor(math.log10(loss)) - SHARE_DIGITS)


@dataclass(frozen=True, eq=False)
class TechnologyBuilder:
    """A program's tables and the ways to produce them; a strategy is optimized once for each norm and group."""

    table: MechanismTable
    workload: Workload
    protection: Protection
    welfare: SocialWelfare
    table_shares: Mapping[str, Fraction] = field(default_factory=dict)  # of the loss, where the program states them
    participation: Participation | None = None  # where people respond to the privacy loss
    limits: Limits = field(default_factory=Limits)
    records: float = 0.0  # that the program expects
    on_cluster: bool = False  # whether they are counted on one
    _optimized: dict[tuple[NoiseName, tuple[str, ...]], Strategy | Refusal] = field(default_factory=dict)

    @cached_property
    def groupings(self) -> tuple[str, ...]:
        """What may share a measurement, the simplest first: all ways that the program leaves open.

        Of very many tables, each apart is looked for only where the program asks for it.
        """
        measured, count = self.table.measured, len(self.workload.tables)
        if not isinstance(measured, str):
            return (STATED,)
        if measured == APART and count > 1:
            return (APART,)
        if count == 1 or self.table_shares:
            return (TOGETHER,)
        most = len(self.groups(APART))
        some = (grouping for grouping in (BY_UNIT, BY_CELLS) if 1 < len(self.groups(grouping)) < most)
        return (TOGETHER, *some, *([APART] if 1 < most <= MOST_SPLIT else []))

    def strategies(self, measured: str) -> tuple[str, ...]:
        """What may be measured, group by group, the simplest first.

        Of many tables apart, a strategy helps only those whose queries overlap: where they do not, the dual with even
        masses on the cells that move each query most says that nothing errs less than the table (beside a public
        number of records, next to nothing does). Every cell is measured once: at large losses noise on whole numbers is
        mostly 0, and adding up many exact cells then costs less than any strategy that is found for continuous noise.
        """
        if self.table.states_strategy:
            return (self.table.strategy,)
        tables = self.workload.tables
        overlapping = sum(any(int(factor.counts.max()) > 1 for factor in table.factors) for table in tables)
        few = len(tables) <= MOST_APART or 0 < overlapping <= MOST_APART
        found = (TABLES, OPTIMIZED) if self._looks_for_strategies and (measured != APART or few) else (TABLES,)
        once = measured == self.groupings[0] != APART and not is_slow(CELLS, self.welfare)
        return (*found, CELLS) if once else found

    @cached_property
    def _looks_for_strategies(self) -> bool:
        """Whether a strategy is looked for where the program leaves open what is measured.

        Not where nothing measured by it could be made whole, and not in large domains where tables nest and share a ρ:
        measured apart in their best shares, these err hardly more than anything can.
        """
        domain = self.workload.domain
        if domain.size > LARGEST_FITTED:
            return measures_marginals(self.workload, self.protection)
        return domain.size <= LARGEST_FITTED_FIRST or not (self._is_counted_in_rho and self._nests)

    @property
    def _is_counted_in_rho(self) -> bool:
        return self.welfare.privacy_measure is PrivacyMeasure.ZCDP

    @property
    def _nests(self) -> bool:
        """Whether all tables nest, so that each measured apart they are estimated together."""
        groups = self.groups(APART)
        measurements = {name: Measurement(TableRows(each), GAUSSIAN, self.protection) for name, each in groups.items()}
        even = dict.fromkeys(groups, Fraction(1, len(groups)))
        return isinstance(combined_tables(measurements, even, self.protection), CombinedTables)

    @property
    def _needs_fitness(self) -> bool:
        """Whether some table must be fit for use: its group gets what that takes by its own measurement."""
        return bool(self.limits.floors or self.limits.consequence_floors)

    def groups(self, measured: str) -> dict[str, Workload]:
        """The tables measured together, by a name for the group, which is that of a saved plan: after its tables.

        Tables that public totals decide need no noise, and no measurement of their own: they go with others.
        """
        found: dict[Hashable, list[str]] = {}
        for table in self.workload.tables:
            amount = None if table.tabulation is None else table.tabulation.sum_of
            cells = tuple(
                None if isinstance(factor, Total) or name == amount else factor.key
                for name, factor in zip(self.workload.domain.names, table.factors, strict=True)
            )
            key = {TOGETHER: None, BY_UNIT: amount, BY_CELLS: cells}.get(measured, table.name)
            found.setdefault(key, []).append(table.name)
        stated = self.table.measured if measured == STATED else ()
        groups = [list(group) for group in stated] or self._with_others([*found.values()])
        names = [" + ".join(group) for group in groups] if len(groups) > 1 else [ALL_TABLES]
        twice = named_twice(names)
        if twice is not None:
            raise InvalidWorkload(
                f"two groups of tables are called '{twice}'",
                why="tables that are measured together are named after all of them, and one would hide the other",
                instead="give one of the tables another name",
                where=Place(key="workload"),
            )
        return {name: self._only(tuple(tables)) for name, tables in zip(names, groups, strict=True)}

    def _with_others(self, groups: list[list[str]]) -> list[list[str]]:
        """The same where tables that are all decided have no group to themselves; as they are where all tables are."""
        if len(groups) == 1:
            return groups
        alone = [group for group in groups if self._decided.issuperset(group)]
        others = [group for group in groups if group not in alone]
        return [[*others[0], *chain.from_iterable(alone)], *others[1:]] if others else groups

    @cached_property
    def _decided(self) -> frozenset[str]:
        """The tables that no protected unit can change, since exact totals or the number of records decide them."""
        if self.protection.neighbors is Neighbors.ADD_OR_REMOVE or len(self.workload.tables) == 1:
            return frozenset()
        return frozenset(table.name for table in self.workload.tables if self._is_decided(table.name))

    def _is_decided(self, table: str) -> bool:
        free = not self.protection.invariants and not self.workload.domain.structural_zeros
        factors = self.workload.table(table).factors
        if free and all(isinstance(each, Identity | Total) for each in factors) and any(f.rows > 1 for f in factors):
            return False  # a record that takes another level moves a number
        try:
            return self._only((table,)).sensitivity(self.protection, "l1").power == 0
        except TooLarge:  # nobody knows; what measures it says so
            return False

    @cached_property
    def _workloads(self) -> dict[tuple[str, ...], Workload]:
        return {}  # by the names of their tables; a copy of this with another workload has its own

    def _only(self, tables: tuple[str, ...]) -> Workload:
        """Some of the tables; one workload for every kind of noise, so that its sensitivity is worked out once."""
        if tables not in self._workloads:
            self._workloads[tables] = self.workload.only(tables)
        return self._workloads[tables]

    def technology(self, law: NoiseLaw, strategy: str, measured: str) -> Technology:
        """One kind of noise on one choice of what is measured; refused where it cannot serve the program."""
        self._check_privacy_measure(law)
        groups = self.groups(measured)
        # Of a study that the program asks for, nothing is published.
        if strategy == OPTIMIZED and not (is_study(law.name) and law.name == self.table.noise):
            try:
                check_strategy(groups.values(), self.protection)
            except TooLarge as refusal:
                raise refusal.at(Place(key="mechanism.strategy")) from None
        found, measurements = {}, {}
        for group, workload in groups.items():
            try:
                if strategy == OPTIMIZED:
                    found[group] = self.optimized(law, workload)
                rows = StrategyRows(found[group].exact) if found else _plain_rows(strategy, workload)
                measurements[group] = Measurement(rows, law, self.protection)
            except Refusal as refusal:
                raise (refusal.at(Place(key="mechanism.strategy")) if strategy == OPTIMIZED else refusal) from None
        probability, converted = self.table.failure_probability, law.privacy_measure is not self.welfare.privacy_measure
        delta = float(probability) if converted and probability is not None else None
        shares = self._shares(measured, measurements)
        order = tuple(table.name for table in self.workload.tables)
        produced, unknown = in_order(self._produced(measurements, shares), order), None
        if law.publishable:
            squared = {*measures_of(self.welfare).values()} <= {"squared"}
            # What must be fit for use by its own measurement keeps the division that makes it so.
            free = squared and not shares and law.privacy_measure is PrivacyMeasure.ZCDP and not self._needs_fitness
            values = values_of(self.welfare) if free and len(measurements) > 1 else None
            produced, unknown = as_published(produced, measurements, self.protection, squared=squared, values=values)
        produced = produced.remembered(name=law.name)
        frontier = produced if delta is None else in_epsilon(produced, delta).remembered()
        if self.participation is not None:
            frontier = self.participation.of(frontier, self.welfare)
        return Technology(law.name, strategy, measured, measurements, produced, frontier, delta, found, shares, unknown)

    def check_carried_out(self, technology: Technology) -> None:
        """Refuse a technology that no release of the program could carry out."""
        technology.check_carried_out(self.protection, self.records, on_cluster=self.on_cluster)

    def _produced(self, measurements: Mapping[str, Measurement], shares: Mapping[str, Fraction]) -> Frontier:
        """One frontier; groups of tables share the loss as stated, or by what their accuracy is worth."""
        groups = {group: priced(measurement) for group, measurement in measurements.items()}
        if len(groups) == 1:
            return next(iter(groups.values()))
        if shares:
            return stated_split(groups, shares)
        floors = {group: self._floor(frontier) for group, frontier in groups.items()}
        return split(groups, values=values_of(self.welfare), measures=measures_of(self.welfare), floors=floors)

    def _floor(self, group: Frontier) -> float:
        """The loss at which every table of a group is fit for use, rounded up; 0 where none has to be."""
        try:
            lowest, _ = self.limits.lowest(group, self.welfare)
        except Refusal:  # none does; the choice says so
            return 0.0
        return 0.0 if lowest is None else lowest * (1 + ROUNDED_UP)

    def _shares(self, measured: str, groups: Mapping[str, Measurement]) -> dict[str, Fraction]:
        """The stated share of each group: those of its tables together; none where none are stated."""
        if measured == BY_VALUE:
            return self._shares_by_value(groups)
        if measured == EVENLY:
            return dict.fromkeys(groups, Fraction(1, len(groups)))
        if not self.table_shares:
            return {}
        return {
            group: sum((self.table_shares[table.name] for table in measurement.workload.tables), Fraction(0))
            for group, measurement in groups.items()
        }

    def _shares_by_value(self, groups: Mapping[str, Measurement]) -> dict[str, Fraction]:
        """The rule of thumb for scaled noise: where errors of a table cost c/l^p, a share as c^{1/(1+p)}.

        That is the cube root of value × numbers × sensitivity² for squared errors in ε.
        """
        tables = tuple(table.name for table in self.workload.tables)
        weights = TableWeights.of(tables, values_of(self.welfare), measures_of(self.welfare))
        produced = [priced(group) for group in groups.values()]
        costs = [weights.only(frontier.tables).total(frontier, 1.0) for frontier in produced]
        privacy_measure = produced[0].privacy_measure
        absolute = all(measure == "absolute" for measure in weights.measures)
        power = (1.0 if absolute else 2.0) / loss_power(privacy_measure)
        *first, last = groups
        shares = [Fraction(share).limit_denominator(10**9) for share in power_split(costs, 1.0, power).tolist()]
        found = dict(zip(first, shares, strict=False))
        found[last] = 1 - sum(found.values(), Fraction(0))
        nothing = next((name for name, share in found.items() if share <= 0), None)
        if nothing is not None:
            raise InvalidMechanism(
                f"the rule of thumb has no share for '{nothing}'",
                why=f"its errors cost next to nothing at {privacy_measure} = 1, where the rule weighs them",
                instead="compare with even shares",
            )
        return found

    def optimized(self, law: NoiseLaw, workload: Workload) -> Strategy:
        """The strategy for some of the tables, each weighed by its value relative to the dearest table's.

        A refusal is remembered too.
        """
        values = {table.name: self.relative_values[table.name] for table in workload.tables}
        key = noise_of(law), tuple(values)
        if key not in self._optimized:
            try:
                self._optimized[key] = optimize_strategy(workload, key[0], values=values, protection=self.protection)
            except Refusal as refusal:
                self._optimized[key] = refusal.at(Place(key="mechanism.strategy"))
        found = self._optimized[key]
        if isinstance(found, Refusal):
            raise found
        return found

    @cached_property
    def dearest(self) -> float:
        """What a unit of error costs in the table where it costs most, USD; 1 where errors cost nothing."""
        return max(values_of(self.welfare).values()) or 1.0

    @cached_property
    def relative_values(self) -> dict[str, float]:
        """What a unit of each table's error costs, relative to the dearest one; in [0, 1]."""
        return {name: value / self.dearest for name, value in values_of(self.welfare).items()}

    def _check_privacy_measure(self, law: NoiseLaw) -> None:
        privacy_measure = self.welfare.privacy_measure
        if law.privacy_measure is not privacy_measure and law.privacy_measure is PrivacyMeasure.PURE_DP:
            raise InvalidMechanism(
                f"{law.name} noise is not counted in {privacy_measure}",
                why=f"the cost of disclosure is stated per {privacy_measure}, and the loss of {law.name} "
                "noise is an epsilon",
                instead='use noise = "gaussian", or state the cost per epsilon',
                where=Place(key="mechanism.noise"),
            )
        if law.privacy_measure is not privacy_measure and self.table.failure_probability is None:
            raise MissingKey(
                f"{law.name} noise needs a failure_probability here",
                why="its loss, a rho, is an epsilon only at a δ",
                instead="state failure_probability = 1e-10, or a cost per rho",
                where=Place(key="mechanism.failure_probability"),
            )


def _plain_rows(strategy: str, workload: Workload) -> Rows:
    """The tables themselves, or every cell."""
    if strategy == CELLS and workload.domain.size > MOST_MEASURED:
        raise TooLarge(
            f"every one of {number(workload.domain.size, 3)} cells was asked to be measured",
            why=f"at most {MOST_MEASURED:,} numbers are measured, and each of them gets noise",
            instead='state strategy = "workload", or record less: fewer attributes or fewer levels',
            where=Place(key="mechanism.strategy"),
        )
    return MatrixRows.every_cell(workload) if strategy == CELLS else TableRows(workload)


def measured_words(strategy: str, measured: str) -> str:
    """What is measured, and what shares a measurement: the tables, each apart."""
    return ", ".join([MEASURED[strategy], *([SHARED[measured]] if measured in SHARED else [])])


def in_words(noise: str, strategy: str, measured: str) -> str:
    """A technology as a reader is told of it: Laplace noise on the tables."""
    named = noise.capitalize() if noise in NAMED_AFTER_PEOPLE else noise
    return f"{named} noise on {measured_words(strategy, measured)}"


def is_slow(strategy: str, welfare: SocialWelfare) -> bool:
    """Whether errors take long to work out: but for squares, those of sums of measured numbers have no closed form."""
    return strategy != TABLES and any(not _is_quick(value.measure) for value in welfare.table_values)


def _is_quick(measure: Measure) -> bool:
    return measure == "squared" if isinstance(measure, str) else measure.quick


def too_slow() -> InvalidMechanism:
    """The refusal to compare what nobody asked for and what takes long."""
    return InvalidMechanism(
        "it was not compared",
        why="errors that are not squared take long to work out for sums over many measured numbers",
        instead='state noise = "best" to compare all kinds of noise',
    )


def combine(asked: str, technologies: Mapping[str, Technology], welfare: SocialWelfare) -> Frontier:
    """The frontier that the program asks for: one noise, or at each loss the best of those that can be published."""
    if asked != BEST:
        return technologies[asked].frontier
    frontiers = [technology.frontier for noise, technology in technologies.items() if may_be_used(noise, asked)]
    return envelope(frontiers, values=values_of(welfare), measures=measures_of(welfare)).remembered()


def used_at(asked: str, technologies: Mapping[str, Technology], welfare: SocialWelfare, loss: float) -> Technology:
    """The technology that stands on the frontier at a loss: the one that is asked for, or whose errors cost least."""
    if asked != BEST:
        return technologies[asked]
    made = [technology for noise, technology in technologies.items() if may_be_used(noise, asked)]
    weights = TableWeights.of(made[0].frontier.tables, values_of(welfare), measures_of(welfare))
    return min(made, key=lambda technology: weights.total(technology.frontier, loss))


def values_of(welfare: SocialWelfare) -> dict[str, float]:
    """What a unit of each table's error costs, as frontiers count errors: by itself, and in the ratios made of it."""
    found: dict[str, float] = {}
    for value in welfare.table_values:
        for table, factor in value.parts or ((value.table, 1.0),):
            found[table] = found.get(table, 0.0) + factor * value.value_per_step
    return found


def measures_of(welfare: SocialWelfare) -> dict[str, Measure]:
    """How the errors of each table are counted."""
    return {value.table: value.measure for value in welfare.table_values if not value.parts}


@dataclass(frozen=True, eq=False)
class Offered:
    """Ways to produce the tables, what each would choose, and why others cannot serve."""

    able: Mapping[Kind, Technology]
    refused: Mapping[Kind, Refusal]
    chosen: Mapping[Kind, Choice | Refusal]  # with each alone; those that take long are not there
    used: Mapping[str, Kind]  # for each kind of noise that can serve

    @property
    def technologies(self) -> dict[str, Technology]:
        """For each kind of noise, the technology that the program would use."""
        return {noise: self.able[kind] for noise, kind in self.used.items()}


def offered(workshop: TechnologyBuilder, limits: Limits) -> Offered:
    """Every kind of noise that can serve the program, each with what it would measure.

    Refused where the noise, or the strategy, that the file states cannot serve. Kinds of noise that were not asked for
    are there to be compared, with what shares a measurement in the best of those that were.
    """
    table, welfare = workshop.table, workshop.welfare
    able: dict[Kind, Technology] = {}
    refused: dict[Kind, Refusal] = {}
    chosen: dict[Kind, Choice | Refusal] = {}
    used: dict[str, Kind] = {}

    def offer(law: NoiseLaw, groupings: tuple[str, ...]) -> None:
        kinds = [(strategy, measured) for measured in groupings for strategy in workshop.strategies(measured)]
        if law not in asked and not table.states_strategy:
            kinds = [kind for kind in kinds if kind[0] != CELLS]
        for strategy, measured in sorted(kinds, key=lambda kind: kind[0] != TABLES):
            kind, slow = (law.name, strategy, measured), is_slow(strategy, welfare)
            if slow and measured != groupings[0]:
                continue
            try:
                if law.name != table.noise != BEST and slow:
                    raise too_slow()
                able[kind] = workshop.technology(law, strategy, measured)
            except Refusal as refusal:
                refused[kind] = refusal
            if kind in able and not slow:
                chosen[kind] = choice_with(able[kind], welfare, limits)
        while made := [kind for kind in able if kind[0] == law.name]:
            best = _best_of(made, able, chosen, workshop)
            try:
                workshop.check_carried_out(able[best])
            except Refusal as refusal:  # a plan is a promise: it can be published, and says how far it may be off
                del able[best]
                chosen[best] = refused[best] = refusal
                continue
            used[law.name] = best
            break

    asked = [law for law in NOISE_LAWS.values() if may_be_used(law.name, table.noise)]
    for law in asked:
        offer(law, workshop.groupings)
    if not used:  # for want of a noise that is counted as the program counts, before any that is not
        # What could be planned, and not be published, says more than what could not even be planned.
        own = {kind: NOISE_LAWS[kind[0]].privacy_measure is welfare.privacy_measure for kind in refused}
        raise refused[max(refused, key=lambda kind: (own[kind], kind in chosen))]
    best = _best_of([*used.values()], able, chosen, workshop)
    for law in NOISE_LAWS.values():
        if law not in asked:
            offer(law, (best[2],))
    return Offered(able, refused, chosen, {noise: used[noise] for noise in NOISE_LAWS if noise in used})


def choice_with(technology: Technology, welfare: SocialWelfare, limits: Limits) -> Choice | Refusal:
    """What would be chosen with one technology alone, or why nothing can be."""
    try:
        return choose(technology.frontier, welfare, limits)
    except Refusal as refusal:
        return refusal


def _best_of(
    kinds: list[Kind],
    able: Mapping[Kind, Technology],
    chosen: Mapping[Kind, Choice | Refusal],
    workshop: TechnologyBuilder,
) -> Kind:
    """The kind that leaves society best off at its own choice; the tables unless a strategy is worth its trouble.

    One that takes long is compared at the loss that the best of the others would choose: where it costs less there, and
    is fit for use there, it is better at its own choice too.
    """
    welfare, limits = workshop.welfare, workshop.limits
    choices = {kind: choice for kind in kinds if isinstance(choice := chosen.get(kind), Choice)}
    slow = [kind for kind in kinds if kind not in chosen]
    if not choices:
        return (slow or kinds)[0]

    def trouble(kind: Kind, errors: float) -> float:
        """What it takes to be worth it: a share of errors, but of none that were there before."""
        return 0.0 if kind[1] == TABLES else WORTHWHILE * (errors - welfare.least_data_loss)

    best = min(choices, key=lambda kind: trouble(kind, choices[kind].data_loss) - choices[kind].welfare)
    loss = choices[best].epsilon
    for kind in slow:
        try:
            needed, _ = limits.lowest(able[kind].frontier, welfare)
        except Refusal:
            continue
        if needed is not None and needed > loss:  # it would have to be chosen elsewhere
            continue
        errors = welfare.data_loss(able[kind].frontier, loss)
        if errors + trouble(kind, errors) < welfare.data_loss(able[best].frontier, loss):
            best = kind
    return best
