"""A plan: the privacy loss to choose, what it buys and costs, why, and the digest that is approved.

A plan is pure: it rests on the program file and its code lists alone, never on the data, so it leaks nothing. Its notes
are what a careful reader would remark: bounds taken for values, noise that is beaten, hidden prices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from dualmandate.choice import Choice, Limits, LinearCost, Regret, SocialChoices, SocialWelfare
from dualmandate.frontier import Frontier
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.mechanism.technologies import CELLS, OPTIMIZED
from dualmandate.planning.comparison import Comparison, Saving
from dualmandate.planning.extensions import Extensions
from dualmandate.planning.ratios import RatioConsequence
from dualmandate.planning.robustness import USUAL_CURRENCY, USUAL_PRICE, PublicTotal, Robustness
from dualmandate.planning.saved_plan import PLAN_VERSION, Exact, digest_of, exact_content
from dualmandate.planning.study import is_study, study_words
from dualmandate.planning.technology import TOGETHER, Technology, in_words, measured_words, ordered
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arguments import checked_class
from dualmandate.population.shown import cut_line, one_line
from dualmandate.population.wording import chosen_loss, counted, money, number
from dualmandate.program.number import calibrated_numbers
from dualmandate.program.schema import BEST
from dualmandate.publication.costs import PublicationCost, publication_cost
from dualmandate.publication.nested_tables import LARGEST_FITTED_FIRST
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.semantics import Guarantee

if TYPE_CHECKING:
    from dualmandate.planning.program import Program
    from dualmandate.planning.uncertainty import Uncertainty

MANY_TABLES, MOST_MOVED = 40, 20  # one of many tables moves the choice by little, and asking takes two more choices
FAR = 1.0  # From this epsilon on a linear and a worst-case cost differ by more than half.
MOST_LOST = 3  # tables named in a sentence
NO_GAIN = 1e-9  # A share of what society loses below this is no difference.


@dataclass(frozen=True)
class TableConsequence:
    """What the choice means for one table, in its own unit and in money."""

    table: str
    unit: str
    query_count: int
    measured_in: str  # the group of tables it is measured with
    root_mean_squared_error: float  # of noise, in `unit`
    bias: float | None  # of clipping, root mean squared, in `unit`; 0 where nothing is clipped, None where not known
    half_width: float  # 95 in 100 published numbers are off by at most this, in `unit`; the widest of the table
    root_mean_squared_consequence: float | None  # USD; None where no consequence was stated
    data_loss: float  # USD, all numbers of the table
    exact: bool = False  # whether public totals decide it, so that no noise reaches it
    band: tuple[float, float] | None = None  # of a simulated error, 95 %: as far as simulation may be off
    stated_half_width: float | None = None  # of a simulated release: what its 95 % intervals state, in the median

    __repr__ = one_line

    @property
    def root_mean_squared_error_with_bias(self) -> float | None:
        """Noise and what clipping leaves out together, in `unit`; None where the latter is not known."""
        return None if self.bias is None else math.hypot(self.root_mean_squared_error, self.bias)


@checked_class
@dataclass(frozen=True, eq=False)
class Plan:
    """What a program should publish, at which privacy loss, and why."""

    program: Program
    limits: Limits  # of the program, with what the ledger has left
    frontier: Frontier  # what the program asks for: one noise, or the best of all
    technologies: Mapping[str, Technology]
    technology: Technology  # the one that stands on the frontier at the choice
    choice: Choice
    loss: PrivacyLoss  # what a release of this plan spends, exactly
    allocation: Mapping[str, Fraction]  # of it, what each group of tables spends
    guarantee: Guarantee
    tables: tuple[TableConsequence, ...]
    comparisons: tuple[Comparison, ...]
    saving: Saving
    regrets: tuple[Regret, ...]
    robustness: Robustness
    notes: tuple[str, ...]
    extensions: Extensions = field(default_factory=Extensions)  # what the program asks for beyond the paper's model
    uncertainty: Uncertainty | None = None  # where some number states a standard error or a range
    social_choice: SocialChoices | None = None  # where the program asks for other ways to add people up
    ratios: tuple[RatioConsequence, ...] = ()  # what the choice means for each
    public_total: PublicTotal | None = None  # where the program states one
    account_identifier: str | None = None  # of the account in the project's ledger, where there is one
    beside: tuple[Technology, Choice] | None = None  # what would be planned without the technology that is stated

    def __repr__(self) -> str:
        tables = counted(len(self.tables), "table")
        return cut_line(
            f"Plan('{self.program.name}': {self.loss.privacy_measure} = {chosen_loss(float(self.loss.amount))} of each "
            f"{self.program.units.singular}, {self.technology.noise} noise, {tables}, digest {self.digest[:12]}…)"
        )

    @property
    def welfare(self) -> SocialWelfare:
        """What society prefers."""
        return self.program.welfare

    @property
    def charge(self) -> PrivacyLoss:
        """What its account is charged: the loss for as many records as its exact totals let change together."""
        return self.loss.for_records(self.program.protection.records_together)

    @property
    def frontiers(self) -> dict[str, Frontier]:
        """The frontier of each kind of noise that can serve the program, in the program's currency."""
        return {noise: technology.frontier for noise, technology in self.technologies.items()}

    @property
    def study(self) -> bool:
        """Whether it can only be compared, neither approved nor published: its noise is not drawn exactly."""
        return is_study(self.technology.noise)

    def uses(self, row: Comparison) -> bool:
        """Whether a row of the comparison is the technology in use."""
        return row.kind == self.technology.kind

    @property
    def half_widths(self) -> dict[str, float]:
        """By table, what 95 in 100 published numbers are off by at most, in the table's unit."""
        return {table.table: table.half_width for table in self.tables}

    @cached_property
    def exact(self) -> dict[str, Exact]:
        """What the digest covers: exact things only."""
        program = self.program
        # The whole-number rows that are measured, by their fingerprint; nothing where the tables or cells are.
        strategies: dict[str, Exact] = {
            group: {"rows": str(found.exact.rows), "digest": strategy_digest(found.exact)}
            for group, found in self.technology.found.items()
        }
        return {
            "plan": str(PLAN_VERSION),
            "program": exact_content(program.document.content),
            "attributes": [[attribute.name, str(attribute.size)] for attribute in program.domain.attributes],
            "code_lists": {name: codes.digest for name, codes in program.code_lists.items()},
            **({"bounds": {name: str(bound) for name, bound in program.bounds.items()}} if program.bounds else {}),
            "mechanism": {"noise": self.technology.noise, "strategy": self.technology.strategy},
            "loss": {"amount": self.loss.exact(), "currency": str(self.loss.privacy_measure)},
            "measurements": [
                {
                    "tables": [table.name for table in measurement.workload.tables],
                    "loss": str(self.allocation[group]),
                    "sensitivity": str(measurement.sensitivity.power),
                    "norm": measurement.sensitivity.norm,
                    **({"strategy": strategies[group]} if group in strategies else {}),
                }
                for group, measurement in self.technology.measurements.items()
            ]
            if self.technology.drawn is None
            else [
                {
                    "tables": [table.name for table in program.workload.tables],
                    "loss": self.loss.exact(),
                    "technology": dict(ordered(self.technology, program.workload, self.loss.amount).document()),
                }
            ],
        }

    @cached_property
    def publishing(self) -> PublicationCost | None:
        """What publishing it takes on this machine; None of a study. It is not saved: another machine has other rates.

        Estimated from what is asked alone, without any record.
        """
        if self.study:
            return None
        program, measurements = self.program, self.technology.measurements
        order = ReleaseSpec(
            plan_digest=self.digest,
            program=program.name,
            account=program.file.population.account,
            loss=self.loss,
            domain=program.domain,
            protection=program.protection,
            rules=program.rules,
            groups=tuple(Group(name, each, self.allocation[name]) for name, each in measurements.items()),
            units={},
            synthetic_records=program.file.publication.synthetic_records,
            engine=program.file.publication.engine,
            records=program.expected_records,
            technology=None
            if self.technology.drawn is None
            else ordered(self.technology, program.workload, self.loss.amount),
        )
        return publication_cost(order)

    @property
    def digest(self) -> str:
        """SHA-256 over the exact part: what an approver signs, and what `publish` carries out."""
        return digest_of(self.exact)


def costliest(choice: Choice, welfare: SocialWelfare) -> tuple[str, ...]:
    """The tables whose worth is moved by a percent: all of them, or of many the ones whose errors cost most.

    Every ratio that has a worth is among them.

    The elasticity of the choice in a table's worth is as its share of what errors cost at the margin.
    """
    ranked = sorted(choice.tables, key=lambda table: -(table.data_loss or 0.0))
    kept = ranked if len(ranked) <= MANY_TABLES else ranked[:MOST_MOVED]
    return (*(table.table for table in kept), *(value.table for value in welfare.table_values if value.parts))


def notes_on(plan: Plan) -> tuple[str, ...]:
    """Remarks for the reader, the ones about the guarantee first."""
    return (
        *((study_words(plan.technology.noise),) if plan.study else ()),
        *_noise_alone(plan),
        *_bounds(plan),
        *_strategy(plan),
        *_better_noise(plan),
        *_better_on_public_records(plan),
        *_beside_measurements(plan),
        *_no_public_records(plan),
        *_shares_and_fitness(plan),
        *_published_errors(plan),
        *_not_looked_for(plan),
        *_worst_case(plan),
        *_hidden_prices(plan),
        plan.program.timing.explain(),
        *_left_out(plan),
        *_many_statistics(plan),
    )


def warnings_on(plan: Plan) -> Iterator[str]:
    """Of the notes those that a reader must not miss, the ones that would change the choice by most first."""
    yield from unfinished(plan)
    for remarks in (
        _noise_alone,
        _strategy,
        _better_noise,
        _better_on_public_records,
        _beside_measurements,
        _beyond_the_total,
        _bounds,
        _many_statistics,
        _worst_case,
        _hidden_prices,
        _silent_of_time,
    ):
        yield from remarks(plan)


def unfinished(plan: Plan) -> Iterator[str]:
    """What somebody has to replace before the choice can stand: noise, keys, and numbers that came from nowhere."""
    if plan.study:
        yield study_words(plan.technology.noise)
    if seen := plan.program.file.population.seen_in_the_data:
        yield f"Seen in the data, and not covered by any noise: {', '.join(seen)}. Replace them by public sources."
    assumed = [path[-1] for path, stated in calibrated_numbers(plan.program.file) if stated.kind == "assumed"]
    if assumed:
        names = ", ".join(dict.fromkeys(map(str, assumed)))
        yield f"The choice rests on numbers that are assumed: {names}. Replace them first."


def _beyond_the_total(plan: Plan) -> Iterator[str]:
    """Where privacy loss or errors cost more than the public total that the program states."""
    if plan.public_total is not None:
        yield from [*plan.public_total.sentences()][1:]


def _noise_alone(plan: Plan) -> Iterator[str]:
    """Tables that errors would make worthless: off by more than all records together add up to."""
    population = plan.program.file.population
    records = float(population.population_size.value) * population.most_records_per_unit
    off = {table.table: table.root_mean_squared_error for table in plan.tables}
    lost = [
        f"'{asked.name}'"
        for asked in plan.program.file.workload
        if off.get(asked.name, 0.0) > records * _largest_amount(plan, asked.sum_of)
    ]
    if lost:
        more = f" and {len(lost) - MOST_LOST} more" if len(lost) > MOST_LOST else ""
        yield (
            f"The numbers of {', '.join(lost[:MOST_LOST])}{more} are noise and nothing else: typically off by more "
            "than all records together add up to. Their accuracy is not worth its privacy here: leave the table out, "
            "or state a fitness_for_use."
        )


def _largest_amount(plan: Plan, name: str | None) -> float:
    """What one record adds to a table at most: 1 to a count."""
    if name is None:
        return 1.0
    attribute = plan.program.domain.attribute(name)
    assert attribute.lower is not None
    assert attribute.grid is not None
    return float(max(abs(attribute.lower), abs(attribute.lower + attribute.grid * (attribute.size - 1))))


def _bounds(plan: Plan) -> Iterator[str]:
    for group, measurement in plan.technology.measurements.items():
        sensitivity = measurement.sensitivity
        if not sensitivity.exact:
            measured = "the tables" if len(plan.allocation) == 1 else f"'{group}'"
            yield (
                f"The sensitivity of {measured} is {sensitivity}: a bound, not a value. The guarantee holds; the noise "
                "may be larger than it need be."
            )


def _better_noise(plan: Plan) -> Iterator[str]:
    """Another kind of noise, one that is drawn, that leaves society better off; where the program asked for one."""
    used = plan.technology.noise
    rows = [row for row in plan.comparisons if row.noise != used and not row.study]
    if plan.program.file.mechanism.noise == BEST or (found := _better(plan, rows)) is None:
        return
    gain, best, row = found
    noise = row.noise
    reason = ""
    if (used, noise) == ("laplace", "geometric"):
        reason = " Laplace noise on whole-number counts is dominated: geometric noise is its whole-number twin."
    yield (
        f"{noise.capitalize()} noise would leave society {money(gain, best.currency)} better off, at "
        f'{best.privacy_measure} = {chosen_loss(float(best.loss))}; noise = "best" chooses among all that are '
        f"drawn.{reason}"
    )


def _better_on_public_records(plan: Plan) -> Iterator[str]:
    """A technology whose errors depend on the data, where it surely errs at less cost at the choice."""
    part = plan.extensions.simulation
    if part is None or (best := part.best(part.chosen)) is None or best.technology == part.used:
        return
    error, noise = best.errors[part.chosen], "the plan's noise" if part.used is None else "measurements"
    yield (
        f"On the public records of [simulation] the errors of '{best.technology}' cost {number(error.value)} times "
        f"those of {noise} ({number(error.lower)} to {number(error.upper)}), at the same "
        f'{plan.choice.privacy_measure}, and less than in whole numbers: technology = "{best.technology}" in '
        "[mechanism] plans and publishes it."
    )


def _beside_measurements(plan: Plan) -> Iterator[str]:
    """What would be planned without the technology that is stated, and which of the two society is better off with."""
    if plan.beside is None:
        return
    ordinary, alone = plan.beside
    row = plan.extensions.simulation.stated if plan.extensions.simulation is not None else None
    gained, currency = plan.choice.welfare - alone.welfare, plan.choice.currency
    sure = row is not None and row.gained is not None and row.gained.lower * row.gained.upper > 0
    unsure = "" if sure else ", give or take what simulation is off by"
    side, but = ("better", "") if gained >= 0 else ("worse", ": leave technology out of [mechanism]")
    yield (
        f"'{plan.technology.strategy}' depends on the data: its errors are simulated on the records of [simulation], "
        f"and are others where the protected records are unlike these. Without it, {in_words(*ordinary.kind)} would "
        f"choose {alone.privacy_measure} = {chosen_loss(float(alone.loss))}, with errors by closed form; with it "
        f"society is {money(abs(gained), currency)} {side} off{unsure}{but}."
    )


def _no_public_records(plan: Plan) -> Iterator[str]:
    """What was not compared for want of public records, where everything that can be drawn was asked for."""
    if plan.program.file.mechanism.noise == BEST and plan.program.file.simulation is None:
        measures = " and the ".join(sorted({str(value.measure) for value in plan.welfare.table_values}))
        yield (
            f"Technologies whose errors depend on the data were not compared: [simulation] compares {measures} errors "
            "on public records."
        )


def _strategy(plan: Plan) -> Iterator[str]:
    """Why what was looked for is not measured, or what else would have been better to measure."""
    used = plan.technology
    if used.drawn is not None:  # the note on measurements beside it says so
        return
    rows = [row for row in plan.comparisons if row.noise == used.noise and row.kind != used.kind]
    refused = next((row for row in rows if row.strategy == OPTIMIZED and row.choice is None), None)
    open_to_it = used.strategy != OPTIMIZED and not plan.program.file.mechanism.states_strategy
    if refused is not None and not refused.looked_for and open_to_it:
        measured = "Every cell is" if used.strategy == CELLS else "The tables themselves are"
        other = measured_words(refused.strategy, refused.measured)
        yield f"{measured} measured, because {other} cannot serve: {refused.why}."
    found = _better(plan, rows)
    if found is not None:
        gain, best, row = found
        yield (
            f"Noise on {measured_words(row.strategy, row.measured)} would leave society {money(gain, best.currency)} "
            f"better off, at {best.privacy_measure} = {chosen_loss(float(best.loss))}: {_leading_to(plan, row)}."
        )


def _leading_to(plan: Plan, row: Comparison) -> str:
    """What the file would have to say for another row to be used."""
    stated = plan.program.file.mechanism
    if stated.measured == TOGETHER or row.measured == plan.technology.measured:
        return f'strategy = "{row.strategy}"'
    also = "strategy and " if stated.states_strategy and row.strategy != plan.technology.strategy else ""
    return f"leave {also}measured out of [mechanism]"


def _better(plan: Plan, rows: Iterable[Comparison]) -> tuple[float, Choice, Comparison] | None:
    """The row that leaves society best off, and by how much, where that is better than what was chosen."""
    able = [(row.choice.welfare - plan.choice.welfare, row.choice, row) for row in rows if row.choice is not None]
    best = max(able, key=lambda each: each[0], default=None)
    return best if best is not None and best[0] > NO_GAIN * -plan.choice.welfare else None


def _shares_and_fitness(plan: Plan) -> Iterator[str]:
    """Shares follow value, or are stated; a table which must be fit for use is lifted alone."""
    if len(plan.allocation) > 1 and plan.program.file.shares:
        yield (
            "Each table gets the share of the privacy loss that the program states for it, whatever its accuracy is "
            "worth: the loss is chosen for these shares."
        )
    elif len(plan.allocation) > 1 and (plan.limits.floors or plan.limits.consequence_floors):
        yield (
            "A table that has to be fit for use gets at least the share of the privacy loss that this takes; the "
            "others share the rest by the value of their accuracy."
        )


def _published_errors(plan: Plan) -> Iterator[str]:
    """Where published estimates combine measurements, and how much less they err is not worked out."""
    if plan.technology.errs_less is not None:
        yield plan.technology.errs_less


def _not_looked_for(plan: Plan) -> Iterator[str]:
    """Where nothing but the tables was compared, though the program leaves open what is measured."""
    large = plan.program.workload.domain.size > LARGEST_FITTED_FIRST
    compared = any(row.strategy == OPTIMIZED for row in plan.comparisons)
    if large and not compared and not plan.program.file.mechanism.states_strategy:
        yield (
            "No optimized strategy was looked for: over so many cells that takes long, tables that nest err hardly "
            "more than anything could when each is measured apart in its best share, and of ten million cells and "
            'more only marginals could be made whole. strategy = "optimized" asks for one all the same.'
        )


def _left_out(plan: Plan) -> Iterator[str]:
    """What was not asked, where tables are many."""
    stated, moved = len(plan.welfare.table_values), len(costliest(plan.choice, plan.welfare))
    if moved < stated:
        yield (
            f"How the choice moves with the worth of a table was asked for the {moved} tables whose errors cost most, "
            f"not for the other {stated - moved:,}."
        )


def _worst_case(plan: Plan) -> Iterator[str]:
    epsilon = plan.choice.epsilon
    linear = any(isinstance(group.information_utility, LinearCost) for group in plan.welfare.groups)
    if linear and plan.choice.privacy_measure is PrivacyMeasure.PURE_DP and FAR < epsilon < 700:
        times = math.expm1(epsilon) / epsilon
        yield (
            "The cost of privacy loss is taken as linear. A worst case that starts alike "
            f'(information_utility = "exponential") costs {number(times, 3)} times as much.'
        )


def _hidden_prices(plan: Plan) -> Iterator[str]:
    prices = {value.price for value in plan.welfare.table_values if value.measure == "squared"}
    currency = plan.choice.currency
    usual = f"a usual one has a price of {number(USUAL_PRICE)}: see the readings"
    own = "hold it against a relative risk aversion over the budget of those who bear the error"
    for price in sorted(price for price in prices if price is not None):
        yield (
            f"A price of {number(price)} {currency} per squared {currency} means an absolute risk aversion of "
            f"{number(2 * price)} per {currency}; {usual if currency == USUAL_CURRENCY else own}."
        )


def _silent_of_time(plan: Plan) -> Iterator[str]:
    """Where no amount of money says over what time it runs: one a year beside one once would be wrong by many times."""
    if plan.program.timing.time_base is None:
        yield plan.program.timing.explain()


def _many_statistics(plan: Plan) -> Iterator[str]:
    """An early warning, before any attack: more independent statistics than people."""
    from dualmandate.workload.statistics_count import count_statistics

    count = count_statistics(plan.program.workload, float(plan.program.file.population.population_size.value))
    if count.warns:
        yield (
            f"{count} Published without noise, that many could be solved for the records; with noise it is the privacy "
            "loss alone that bounds what is learned. `dualmandate audit` tries it."
        )
