"""Technologies whose errors depend on the data, beside a plan: which does better where, on records anybody may see.

Each is simulated at a few losses around the chosen one, on public or synthetic records that the program names, scaled
to as many as it expects. Nothing of it is drawn from the records that are protected. One that the program states is
chosen by, and published: what was simulated of it is then its frontier, and as far as that reaches, no further.
The plan's own tables are among them as they are published, in whole numbers that add up: what consistency and editing
do to a production function must be measured. No technology is best for every workload and every loss function
[BN14], so that a comparison always names both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.choice import Choice, Limits, choose
from dualmandate.errors import InvalidMechanism, Refusal, UnreadableSource
from dualmandate.frontier import Frontier, Simulation, SimulationError, frontier_on, joined, simulation_error
from dualmandate.frontier.simulated import SimulatedCurves
from dualmandate.mechanism import Answers, DataDependentMechanism, Keys
from dualmandate.mechanism.data_dependent import never_counted
from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.technologies import DATA_DEPENDENT, WHOLE_NUMBERS
from dualmandate.planning.technology import Technology
from dualmandate.population import (
    Confidential,
    Counts,
    Histogram,
    PrivacyLoss,
    PrivacyMeasure,
    Protection,
)
from dualmandate.population.wording import number
from dualmandate.program.schema import SimulationTable
from dualmandate.publication.costs import publication_cost
from dualmandate.publication.measuring import exact_totals, fingerprint, measure
from dualmandate.publication.post_processing import post_process
from dualmandate.publication.public_records import as_counts, public_histogram, scaled
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.sources import source_file
from dualmandate.publication.tabulating import SparseHistogram, Tabulated
from dualmandate.workload import Workload

if TYPE_CHECKING:
    from dualmandate.planning.program import Program

MULTIPLES = (0.25, 0.5, 1.0, 2.0, 4.0)  # of the chosen loss, at which releases are simulated
NEAR_END = 2.0  # A choice within this factor of an end is near it: half and twice of it are asked about, too.
MOST_WIDENED = 4  # times that further losses are simulated, where a choice lies at the end of what was
PUBLIC_SEED = 2019
ALIKE = 0.01  # Populations that differ by less than this share are of one size.
SLOW = 5.0  # seconds that one release may take, for its simulation to be asked for without naming it


@dataclass(frozen=True)
class SimulatedTechnology:
    """One technology on the public records: what its errors cost, and what it alone would choose."""

    technology: str
    why_not: str | None = None  # why it does not apply
    errors: tuple[SimulationError, ...] = ()  # at each simulated loss: what they cost, relative to the plan's noise
    epsilon: SimulationError | None = None  # what it would choose; None where it cannot
    gained: SimulationError | None = None  # welfare at that, less the plan's, in money
    bias: float | None = None  # share of the squared error at the choice that is the same in every release
    at_end: bool = False  # whether it would choose more, or less, than was simulated
    frontier: Frontier | None = field(default=None, repr=False, compare=False)  # what was simulated of it


@dataclass(frozen=True)
class SimulationOutcome:
    """Which technology when: those that were simulated, on which records, at which losses."""

    records: int  # in the public file, of those that fit
    population: int  # that they were scaled to
    source: str
    repetitions: int
    losses: tuple[float, ...]  # in the program's currency
    measures: tuple[str, ...]  # by which errors count: no ranking holds without them
    technologies: tuple[SimulatedTechnology, ...]
    used: str | None = None  # the technology that the program states
    counts: Counts | None = field(default=None, repr=False, compare=False)  # the public records, as they were simulated

    @property
    def stated(self) -> SimulatedTechnology | None:
        """What was simulated of the technology that the program states."""
        return next((each for each in self.technologies if each.technology == self.used), None)

    @property
    def chosen(self) -> int:
        """Which of the losses is the plan's."""
        return MULTIPLES.index(1.0)

    @property
    def whole(self) -> SimulatedTechnology | None:
        """The plan's own tables as they are published, if they were simulated."""
        return next((each for each in self.technologies if each.technology == WHOLE_NUMBERS and each.errors), None)

    def best(self, at: int) -> SimulatedTechnology | None:
        """The technology whose errors cost least at a loss; None where none surely costs less than the plan's tables.

        Those of the plan are taken as they are, or in whole numbers, whichever err less.
        """
        planned = 1.0 if self.whole is None else min(1.0, self.whole.errors[at].lower)
        others = (each for each in self.technologies if each.technology != WHOLE_NUMBERS and each.errors)
        able = [each for each in others if each.errors[at].upper < planned]
        return min(able, key=lambda each: each.errors[at].value, default=None)


@dataclass(frozen=True, eq=False)
class TechnologySimulation:
    """A chosen plan, and the public records that other technologies are tried on."""

    program: Program
    technology: Technology
    choice: Choice
    limits: Limits
    progress: Callable[[str], None]

    def outcome(self) -> SimulationOutcome | None:
        """None where the program names no public records."""
        table, program = self.program.file.simulation, self.program
        if table is None:
            return None
        found = public_counts(program, table)
        population = _population(program, found)
        counts = as_counts(scaled(found, population))
        losses = tuple(multiple * self.choice.epsilon for multiple in MULTIPLES)
        stated = program.file.mechanism.technology
        asked = table.technologies or (WHOLE_NUMBERS, *DATA_DEPENDENT)
        asked = asked if stated is None or stated in asked else (*asked, stated)
        return SimulationOutcome(
            records=found.total,
            population=population,
            source=table.source,
            repetitions=table.repetitions,
            losses=losses,
            measures=tuple(sorted({str(value.measure) for value in program.welfare.table_values})),
            technologies=tuple(self._simulated(name, counts, losses, table) for name in asked),
            used=stated,
            counts=counts,
        )

    def _simulated(
        self, name: str, counts: Counts, losses: tuple[float, ...], table: SimulationTable
    ) -> SimulatedTechnology:
        is_stated = name == self.program.file.mechanism.technology
        try:
            made = self._made(name, named=name in table.technologies)

            def simulate(at: tuple[float, ...]) -> Frontier:
                return frontier_on(
                    InCurrency(made, self.choice.privacy_measure, self.technology.spent),
                    self.program.workload,
                    counts=counts,
                    simulation=Simulation(at, table.repetitions, PUBLIC_SEED),
                    protection=self.program.protection,
                    progress=self.progress,
                )

            frontier = simulate(losses)
            frontier = self._widened(frontier, simulate) if is_stated else frontier
            errors = tuple(self._relative(frontier, loss) for loss in losses)
            bias = self._bias(frontier)
        except Refusal as refusal:
            if is_stated:
                raise
            return SimulatedTechnology(name, why_not=f"{refusal.what}: {refusal.why}")
        try:
            alone = choose(frontier, self.program.welfare, self.limits)
            epsilon = simulation_error(frontier, lambda each: self._chosen(each).epsilon)
            gained = simulation_error(frontier, lambda each: self._chosen(each).welfare - self.choice.welfare)
        except Refusal:
            return SimulatedTechnology(name, errors=errors, bias=bias, frontier=frontier)
        at_end = alone.bound_by == "simulation"
        return SimulatedTechnology(name, None, errors, epsilon, gained, bias, at_end, frontier)

    def _widened(self, frontier: Frontier, simulate: Callable[[tuple[float, ...]], Frontier]) -> Frontier:
        """The same with further losses, as long as the choice lies near an end of those that were simulated."""
        for _ in range(MOST_WIDENED):
            least, most = frontier.known_losses
            try:
                at = choose(frontier, self.program.welfare, self.limits).epsilon
            except Refusal:  # fit for use at none of these losses
                at = most
            if at * NEAR_END > most:
                beyond = 2 * most, 4 * most
            elif at < least * NEAR_END:
                beyond = least / 4, least / 2
            else:
                break
            frontier = joined(frontier, simulate(beyond))
        return frontier

    def _chosen(self, frontier: Frontier) -> Choice:
        return choose(frontier, self.program.welfare, self.limits)

    def _relative(self, frontier: Frontier, loss: float) -> SimulationError:
        """What errors cost at a loss, relative to those of the plan's own noise there."""
        welfare = self.program.welfare
        planned = welfare.data_loss(self.technology.frontier, loss)
        return simulation_error(frontier, lambda each: welfare.data_loss(each, loss) / planned)

    def _bias(self, frontier: Frontier) -> float:
        """The share of bias in the squared errors at the choice, each table's weighed as the plan weighs its errors."""
        assert isinstance(frontier.curves, SimulatedCurves)
        errors = frontier.table_errors(self.choice.epsilon)
        worth = {value.table: value.value_per_step for value in self.program.welfare.table_values}
        weights = [errors[table] * worth.get(table, 0.0) for table in frontier.tables]
        return float(np.average(frontier.curves.bias_shares(self.choice.epsilon), weights=weights))

    def _made(self, name: str, *, named: bool) -> DataDependentMechanism:
        if name != WHOLE_NUMBERS:
            return DATA_DEPENDENT[name](self._spent_in)
        return WholeNumbers(self.program, self.technology, self._spent_in, patient=named)

    @property
    def _spent_in(self) -> PrivacyMeasure:
        """What the noise of the plan is counted in."""
        return self.technology.noise_frontier.privacy_measure


@dataclass(frozen=True, eq=False)
class InCurrency:
    """A technology with its loss told in the program's currency: ρ may be read in ε at a failure probability."""

    made: DataDependentMechanism
    privacy_measure: PrivacyMeasure
    spent: Callable[[float], float]

    @property
    def name(self) -> str:
        return self.made.name

    def answer(
        self,
        counts: Counts,
        workload: Workload,
        loss: Fraction,
        keys: Keys,
        *,
        protection: Protection = EVERY_PERSON,
        probability: float = 0.9,
    ) -> Answers:
        own = Fraction(self.spent(float(loss)))
        found = self.made.answer(counts, workload, own, keys, protection=protection, probability=probability)
        fixed = never_counted(workload)  # as in a release
        return found if fixed is None else replace(found, values=np.where(fixed, 0.0, found.values))


@dataclass(frozen=True, eq=False)
class WholeNumbers:
    """The plan's own technology as it is published: whole numbers, at least 0, that add up across tables."""

    program: Program
    technology: Technology
    privacy_measure: PrivacyMeasure
    patient: bool  # whether it may take long
    name = WHOLE_NUMBERS

    def answer(
        self,
        counts: Counts,
        workload: Workload,
        loss: Fraction,
        keys: Keys,
        *,
        protection: Protection = EVERY_PERSON,
        probability: float = 0.9,
    ) -> Answers:
        """By the very steps of a release, on counts that anybody may see."""
        del protection, probability  # those of the program, and none
        if not isinstance(counts, Histogram):
            raise _not_whole("its domain has too many cells for a histogram")
        order = self._order(loss)
        if not self.patient and publication_cost(order).seconds > SLOW:
            raise _not_whole(f"a release takes more than {number(SLOW)} seconds; name it to simulate it all the same")
        tabulated = Confidential("public records", Tabulated(counts, counts.total))
        secret = Confidential("the secret of a simulated release", keys("secret").content)
        mac = fingerprint(order, tabulated, secret)
        measured = tuple(measure(order, tabulated, secret, mac=mac))
        made = post_process(order, measured=measured, totals=exact_totals(order, tabulated), effects=False)
        found = {}
        for table in made.tables:
            if table.values is None:
                raise _not_whole("its tables are not made whole")
            found[table.name] = np.asarray(table.values, dtype=np.float64)
        parts = [found[table.name] / float(table.grid) for table in workload.tables]
        return Answers(np.concatenate(parts))

    def _order(self, loss: Fraction) -> ReleaseSpec:
        program, measurements = self.program, self.technology.measurements
        exact = PrivacyLoss(loss, self.privacy_measure)
        shares = self.technology.shares(exact)
        return ReleaseSpec(
            plan_digest=f"simulation at {loss}",
            program=program.name,
            account=program.file.population.account,
            loss=exact,
            domain=program.domain,
            protection=program.protection,
            rules=program.rules,
            groups=tuple(Group(name, each, shares[name]) for name, each in measurements.items()),
            units={},
            records=program.expected_records,
        )


def _not_whole(why: str) -> InvalidMechanism:
    return InvalidMechanism("the plan's tables in whole numbers", why=why, instead="leave it out")


def check_simulation(program: Program) -> None:
    """Refuse what could not be simulated, before a search: no such file, or people who respond to the loss."""
    table = program.file.simulation
    if table is None:
        return
    if program.file.participation is not None:
        raise InvalidMechanism(
            "a simulation where people respond to the privacy loss",
            why="the records would be others at every loss",
            instead="leave [simulation] out, or [participation]",
            where=program.document.place(("simulation",)),
        )
    public_counts(program, table)


def public_counts(program: Program, table: SimulationTable) -> SparseHistogram:
    """The counts of the public records; refused where they are the protected ones, or none of them fits."""
    with program.document.at("simulation", "records"):
        path = program.document.path.parent / table.records
        own = getattr(program.source, "path", None)
        if own is not None and path.resolve() == own.resolve():
            raise InvalidMechanism(
                "a simulation on the protected records themselves",
                why="what is simulated is printed, and no noise covers it",
                instead="name a file of public or synthetic records, such as the release of a year before",
            )
        source, domain = source_file(path), program.domain
        found = public_histogram(source, domain, protection=program.protection, rules=program.rules)
        if not found.total:
            raise UnreadableSource(
                f"no record of '{path.name}' fits the program",
                why="each has a value that its attribute does not declare",
                instead="write them with the columns and the levels of the program",
            )
        return found


def _population(program: Program, found: SparseHistogram) -> int:
    """As many records as the program expects, or as there are where that is about as many."""
    expected = round(program.expected_records)
    return found.total if abs(found.total - expected) <= ALIKE * expected else expected
