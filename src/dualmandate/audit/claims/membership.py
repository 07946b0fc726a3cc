"""Whether somebody was in the data: tests on published frequencies, and what differential privacy allows of them.

An attacker who knows a person's values, and the frequencies in the population, asks whether the published frequencies
lean toward that person. Power is the true-positive rate of a test at a given false-positive rate.
Under a loss (ε, δ), over the randomness of the mechanism, TPR ≤ e^ε·FPR + δ for any test whatsoever. Whether exact
noise keeps this bound is tried by `bound_trial`, with intervals that hold for all of its comparisons at once: of as
many as there are, some would else exceed the bound by chance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from dualmandate.audit.claims.attack import Change, ClaimedRelease, WorstChange, largest_loss
from dualmandate.audit.claims.checks import (
    FAILURE_PROBABILITY,
    TIE,
    Law,
    LogPmf,
    OperatingPoint,
    audit_noise,
    log_weights,
    meaning,
)
from dualmandate.audit.finding import Baseline, Finding, Range, Rate
from dualmandate.audit.options import Effort, generator
from dualmandate.errors import InvalidRequest
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.loss import epsilon_at, rho_at
from dualmandate.population.wording import percent, told_loss
from dualmandate.workload import Workload

FALSE_POSITIVE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25)
TESTS = ("homer", "likelihood ratio", "informed")
COIN = 1e-11  # A test that may toss coins tells equal scores apart by this much.
SMALLEST_FREQUENCY = 1e-9  # The least frequency of a level, so that its logarithm is finite.
DRAWS = 4_000
KNOWN = {
    "homer": "the frequencies of the population",
    "likelihood ratio": "the frequencies of the population",
    "informed": "everybody else's values",
}
NAMED = {
    "homer": "Homer's test of membership",
    "likelihood ratio": "the likelihood ratio test of membership",
    "informed": "the test of one who knows everybody else",
}
NoiseSource = Callable[[bytes, str, tuple[int, int]], Floats]  # noise, from the audit's key, for a purpose
CELLS = 16  # Records of so many cells are tried, to find one that is easy to recognize.
MOST_ROWS = 2_048  # Tests on frequencies look at no more rows than this.
RATES = (0.01, 0.1)
LAWS: tuple[Law, ...] = ("laplace", "gaussian")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
TRIAL_DRAWS = 20_000  # So many draws are made with the person, and as many without.
ATTRIBUTES = (1, 20)  # How many sums are published; one record changes all of them.
MEMBERS = 100
MORE_PROBABILITIES = (1e-3, 1e-2, 0.05, 0.1)  # At these δ, too, the ρ of Gaussian noise says an ε.
KEY = b"draws of a bound trial"


def homer(published: Floats, person: Floats, population: Floats) -> Floats:
    """[Hom08]: Σ |person − population| − |person − published|; larger where published leans to the person.

    Shapes: `published` (…, attributes), the others (attributes,).
    """
    return np.asarray((np.abs(person - population) - np.abs(person - published)).sum(axis=-1))


def likelihood_ratio(published: Floats, person: Floats, population: Floats) -> Floats:
    """[SOJH09]: log likelihood of the person's values under published less population frequencies."""
    inside = np.clip(published, SMALLEST_FREQUENCY, 1 - SMALLEST_FREQUENCY)
    outside = np.clip(population, SMALLEST_FREQUENCY, 1 - SMALLEST_FREQUENCY)
    with_one, with_none = np.log(inside / outside), np.log((1 - inside) / (1 - outside))
    return np.asarray((person * with_one + (1 - person) * with_none).sum(axis=-1))


def power_curve(
    without: Floats, with_person: Floats, *, rates: Sequence[float] = FALSE_POSITIVE_RATES
) -> tuple[OperatingPoint, ...]:
    """Power at stated false rates, from scores of a test over draws of the mechanism without and with the person.

    Thresholds come from the first half of the draws without the person; both rates are counted on what is left, so that
    nothing is judged by what it was fitted to.
    """
    if len(without) < 4 or not len(with_person):
        raise InvalidRequest(
            f"{len(without)} draws without and {len(with_person)} with the person",
            why="thresholds are set on half of the draws and judged on the others",
            instead="draw more often",
        )
    half = len(without) // 2
    thresholds = np.quantile(without[:half], [1 - rate for rate in rates], method="higher")
    sides = without[half:], with_person
    return tuple(
        OperatingPoint(*(Rate(int((side > threshold).sum()), len(side)) for side in sides)) for threshold in thresholds
    )


@dataclass(frozen=True, eq=False)
class NeighborSums:
    """Two neighboring data sets as sums, one with a person and one without, and what an attacker knows of them.

    Shapes are (attributes,). `largest` is the largest value of one member, so that sums over `members · largest` are
    frequencies between 0 and 1; `person` and `population` are such frequencies: the person's own values, and what is
    expected of people in general.
    """

    absent: Integers = field(repr=False)
    present: Integers = field(repr=False)
    person: Floats = field(repr=False)
    population: Floats = field(repr=False)
    members: int
    largest: Integers = field(repr=False)

    def scores(self, published: Floats, log_pmf: LogPmf | None = None) -> dict[str, Floats]:
        """Every test on noisy sums, shape (draws, attributes); larger scores speak for the person.

        The informed attacker knows everybody else, so that only two answers are left, and compares the probabilities of
        the noise under both where `log_pmf` is known: no test has more power. Otherwise noisy sums are projected on the
        difference of the two.
        """
        frequencies = published / (self.members * self.largest)
        apart = np.flatnonzero(self.present != self.absent)
        own = published[:, apart]
        informed = (own - self.absent[apart]) @ np.sign(self.present - self.absent)[apart].astype(np.float64)
        if log_pmf is not None:
            with_person, without = own - self.present[apart], own - self.absent[apart]
            ratios = (log_pmf(with_person, apart) - log_pmf(without, apart)).sum(axis=1)
            informed = ratios + TIE * informed
        return {
            "homer": homer(frequencies, self.person, self.population),
            "likelihood ratio": likelihood_ratio(frequencies, self.person, self.population),
            "informed": np.asarray(informed, dtype=np.float64),
        }


def neighbor_sums(
    members: Integers, replacement: Integers | None, *, population: Floats, largest: Integers | None = None
) -> NeighborSums:
    """The first member is looked for; in the other data set somebody else is in its place, or nobody (None).

    Values are whole numbers from 0 to `largest` (1 where it is not given), shape (members, attributes).
    """
    most = np.ones(members.shape[1], dtype=np.int64) if largest is None else largest
    if len(members) < 2 or (members < 0).any() or (members > most).any():
        raise InvalidRequest(
            f"{len(members)} members whose values are not all between 0 and the stated largest",
            why="one member's values are bounded: that is what noise is set by",
            instead="give at least two members, and clip their values",
        )
    present = members.sum(axis=0)
    absent = present - members[0] + (0 if replacement is None else replacement)
    return NeighborSums(absent, present, members[0] / most, population, len(members), most)


def frequency_attack(
    neighbors: NeighborSums,
    noise: Callable[[int, tuple[int, int]], Floats],
    *,
    draws: int,
    log_pmf: LogPmf | None = None,
    rates: Sequence[float] = FALSE_POSITIVE_RATES,
) -> dict[str, tuple[OperatingPoint, ...]]:
    """The power of every test over draws of the mechanism on two neighboring data sets.

    `noise(side, (draws, attributes))` is what the mechanism adds to sums: without the person (side 0), and with (1).
    """
    coins = np.random.default_rng(len(neighbors.absent))  # of tests alone: equal scores are decided at random
    found = []
    for side, sums in enumerate((neighbors.absent, neighbors.present)):
        scores = neighbors.scores(sums + noise(side, (draws, len(sums))), log_pmf)
        found.append({name: own + COIN * coins.random(draws) for name, own in scores.items()})
    return {name: power_curve(found[0][name], found[1][name], rates=rates) for name in TESTS}


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Noisy sums, and a person who is looked for in them.

    `noise(key, purpose, shape)` draws what the mechanism adds to sums, from the audit's key. `epsilon` and
    `failure_probability` are what is claimed of it.
    """

    name: str
    neighbors: NeighborSums = field(repr=False)
    noise: NoiseSource = field(repr=False)
    epsilon: float
    failure_probability: float = 0.0
    draws: int = DRAWS
    log_pmf: LogPmf | None = field(default=None, repr=False)
    rates: tuple[float, ...] = FALSE_POSITIVE_RATES
    coarsening: str = "values are 0 or 1"


@dataclass(frozen=True)
class MembershipAttack:
    """Whether somebody was in the data, by Homer's test, by likelihood, and by one who knows everybody else."""

    effort: Effort = field(default_factory=Effort)
    name: str = "membership"

    def run(self, target: Frequencies, key: bytes, /) -> tuple[Finding, ...]:
        self.effort.say(f"looking for a member of {target.name}")

        def noise(side: int, shape: tuple[int, int]) -> Floats:
            return target.noise(key, f"membership: {target.name}, {side}", shape)

        found = frequency_attack(
            target.neighbors, noise, draws=target.draws, log_pmf=target.log_pmf, rates=target.rates
        )
        return tuple(self._finding(target, test, point) for test, points in found.items() for point in points)

    def _finding(self, target: Frequencies, test: str, point: OperatingPoint) -> Finding:
        above = point.exceeds(target.epsilon, target.failure_probability, level=1 - 1e-6)
        delta = f", δ = {target.failure_probability:g}" if target.failure_probability else ""
        allowed = f"what ε = {told_loss(target.epsilon)}{delta} allows"
        bound = point.allowed(target.epsilon, target.failure_probability)
        return Finding(
            attack=self.name,
            claim=f"{NAMED[test]} at a false-positive rate of {percent(point.false_positive_rate.value)}: "
            f"true-positive rate over draws of {target.name}; "
            f"{'ABOVE' if above else 'not above'} {allowed}",
            success=point.true_positive_rate,
            baselines=(
                Baseline("false-positive rate, over draws without the member", point.false_positive_rate),
                Baseline("what the claim allows at that rate", Range(0.0, bound, "of the draws")),
            ),
            attacker_knows=f"the member's values and {KNOWN[test]}",
            coarsening=target.coarsening,
            reference="draws",
        )


def allele_counts(
    genotypes: Integers, replacement: Integers | None, *, population: Floats, loss: PrivacyLoss, draws: int = DRAWS
) -> Frequencies:
    """Published counts of an allele at many places of the genome, 0, 1 or 2 a person; shape (members, places).

    One record changes all counts, by 2 each at most. `population` are frequencies of the allele, shape (places,).
    """
    largest = np.full(genotypes.shape[1], 2, dtype=np.int64)
    neighbors = neighbor_sums(genotypes, replacement, population=population, largest=largest)
    return _sums("allele counts", neighbors, loss, largest, draws=draws, coarsening="0, 1 or 2 copies of an allele")


def means(
    values: Integers, replacement: Integers | None, *, largest: Integers, population: Floats, loss: PrivacyLoss
) -> Frequencies:
    """Published means of bounded numbers: sums of whole numbers from 0 to `largest`, over a known number of members.

    `population` are the means of people in general, as shares of `largest`; shape (attributes,).
    """
    neighbors = neighbor_sums(values, replacement, population=population, largest=largest)
    words = f"values in whole steps, from 0 to {int(largest.min()):,} or {int(largest.max()):,}"
    return _sums("means", neighbors, loss, largest, draws=DRAWS, coarsening=words)


def tables(
    workload: Workload,
    cells: Integers,
    replacement: int | None,
    *,
    population: Floats,
    loss: PrivacyLoss,
    protection: Protection | None = None,
) -> Frequencies:
    """Published tables of counts; `cells` is the cell of each member, and the first one is looked for.

    `population` are the shares of people in general in each cell, shape (cells of the domain,). Noise is set by the
    sensitivity of the workload under the stated neighbors.
    """
    rows = {int(cell): _row(workload, int(cell)) for cell in np.unique(cells)}
    members = np.array([rows[int(cell)] for cell in cells])
    other = None if replacement is None else _row(workload, replacement)
    expected = np.asarray(workload.answers(population.reshape(workload.domain.shape)), dtype=np.float64)
    neighbors = neighbor_sums(members, other, population=expected)
    power = workload.sensitivity(
        protection or Protection(), "l1" if loss.privacy_measure is PrivacyMeasure.PURE_DP else "l2"
    ).power
    words = f"tables with {workload.query_count:,} numbers"
    return _noisy(words, neighbors, loss, power, draws=DRAWS, coarsening="values as declared")


def _row(workload: Workload, cell: int) -> Integers:
    counts = np.zeros(workload.domain.size, dtype=np.int64)
    counts[cell] = 1
    row = np.asarray(workload.answers(counts.reshape(workload.domain.shape)))
    if not np.isin(row, (0, 1)).all():
        raise InvalidRequest(
            "tables with weights or sums of numbers",
            why="a test on frequencies counts each member once",
            instead="give tables of counts; `means` looks for members in sums",
        )
    return row.astype(np.int64)


def _sums(
    name: str, neighbors: NeighborSums, loss: PrivacyLoss, largest: Integers, *, draws: int, coarsening: str
) -> Frequencies:
    power = 1 if loss.privacy_measure is PrivacyMeasure.PURE_DP else 2
    return _noisy(name, neighbors, loss, Fraction(int((largest**power).sum())), draws=draws, coarsening=coarsening)


def _noisy(
    name: str, neighbors: NeighborSums, loss: PrivacyLoss, sensitivity: Fraction, *, draws: int, coarsening: str
) -> Frequencies:
    """Sums with exact noise for a loss: scale Δ/ε, or σ² = Δ²/(2ρ)."""
    pure = loss.privacy_measure is PrivacyMeasure.PURE_DP
    law: Law = "laplace" if pure else "gaussian"
    parameter = sensitivity / loss.amount if pure else sensitivity / (2 * loss.amount)

    def noise(key: bytes, purpose: str, shape: tuple[int, int]) -> Floats:
        return audit_noise(key, purpose, law, parameter, shape).astype(np.float64)

    epsilon, delta = meaning(loss)
    weights = log_weights(law, parameter)
    return Frequencies(f"{name} at {loss}", neighbors, noise, epsilon, delta, draws, weights, coarsening=coarsening)


def membership_in(target: ClaimedRelease, key: bytes) -> Frequencies | None:
    """Looking for one record behind the rows of a release; None where nothing was measured, or two kinds of noise mix.

    What was measured stands for everybody else: it is public, and what the mechanism does to one record does not
    depend on the others. The record is the one, of some, that makes the largest loss.
    """
    laws = {noise.own_law for group in target.groups for noise in group.noises}
    law = laws.pop() if len(laws) == 1 else None
    if law is None or any(group.measured is None for group in target.groups) or target.records > 1:
        return None
    cells = np.flatnonzero(target.possible)
    draws = generator(key, f"membership: {target.name}")
    worst = largest_loss(target, np.sort(draws.choice(cells, min(CELLS, len(cells)), replace=False)))
    return _frequencies(target, worst, draws, law)


def _frequencies(target: ClaimedRelease, worst: WorstChange, draws: np.random.Generator, law: Law) -> Frequencies:
    sizes = [len(group.kinds) for group in target.groups]
    starts, every = np.cumsum([0, *sizes[:-1]]), sum(sizes)
    moved = np.concatenate([start + rows for start, (rows, _) in zip(starts, worst.apart, strict=True)])
    rows = _chosen(moved, every, draws)
    of_group = np.searchsorted(starts, rows, side="right") - 1
    places = [(target.groups[g], int(row - starts[g])) for g, row in zip(of_group, rows, strict=True)]
    measured = np.array([0 if group.measured is None else group.measured[row] for group, row in places], dtype=np.int64)
    apart = _spread(worst.apart, starts, rows)
    own = _spread([group.change(worst.cell) for group in target.groups], starts, rows)
    chosen = [group.noises[int(group.kinds[row])].parameter for group, row in places]
    absent, members = measured - apart, max(round(target.statistics.persons), 2)
    ones = np.ones(len(rows), dtype=np.int64)
    neighbors = NeighborSums(absent, measured, own.astype(np.float64), absent / members, members, ones)

    def noise(key: bytes, purpose: str, shape: tuple[int, int]) -> Floats:
        drawn = np.empty(shape)
        for parameter in dict.fromkeys(chosen):
            at = np.flatnonzero([each == parameter for each in chosen])
            drawn[:, at] = audit_noise(key, f"{purpose}, {parameter}", law, parameter, (shape[0], len(at)))
        return drawn

    epsilon, delta = meaning(target.loss)
    weights = log_weights(law, np.array([float(each) for each in chosen]))
    part = "" if len(rows) == every else f"; {len(rows):,} of {every:,} measured rows"
    return Frequencies(
        target.name, neighbors, noise, epsilon, delta, log_pmf=weights, rates=RATES, coarsening=target.coarsening + part
    )


def _spread(changes: Sequence[Change], starts: Integers, rows: Integers) -> Integers:
    """Changes of some rows of all groups, 0 where a row does not change; `starts` are the first row of each group."""
    found = np.zeros(len(rows), dtype=np.int64)
    for start, (moved, by) in zip(starts, changes, strict=True):
        kept = np.isin(start + moved, rows)
        found[np.searchsorted(rows, start + moved[kept])] = by[kept]
    return found


def _chosen(moved: Integers, every: int, draws: np.random.Generator) -> Integers:
    """All rows, or where there are too many those that the record changes and some others; in their order."""
    if every <= MOST_ROWS:
        return np.arange(every)
    kept = moved[:MOST_ROWS]
    others = np.setdiff1d(draws.choice(every, MOST_ROWS, replace=False), moved)
    return np.sort(np.concatenate([kept, others[: MOST_ROWS - len(kept)]]))


@dataclass(frozen=True)
class BoundComparison:
    """One test at one threshold, beside what a claim (ε, δ) allows of it."""

    law: Law
    attributes: int
    epsilon: float  # that the mechanism is made for
    claimed: tuple[float, float]  # (ε, δ) that it is compared with
    test: str
    point: OperatingPoint


@dataclass(frozen=True)
class BoundTrial:
    """What came out of all comparisons; `level` is the probability with which all their intervals hold together."""

    comparisons: tuple[BoundComparison, ...]
    draws: int  # of the mechanism for each kind of noise, each ε and each number of sums
    level: float

    @property
    def single_level(self) -> float:
        """The level of each interval, by Bonferroni: each comparison has two directions of two rates, one-sided."""
        return 1 - 2 * (1 - self.level) / (4 * len(self.comparisons))

    @property
    def exceedances(self) -> tuple[BoundComparison, ...]:
        """The comparisons in which the bound is certainly exceeded."""
        return tuple(each for each in self.comparisons if self.share(each) > 1)

    @property
    def closest(self) -> float:
        """The largest share of its bound that any test certainly reached; above 1 a bound is broken."""
        return max(self.share(each) for each in self.comparisons)

    def share(self, comparison: BoundComparison) -> float:
        """The share of the bound that a test certainly reached."""
        return comparison.point.share_of_bound(*comparison.claimed, level=self.single_level)


def bound_trial(
    laws: Sequence[Law] = LAWS,
    epsilons: Sequence[float] = EPSILONS,
    *,
    draws: int = TRIAL_DRAWS,
    level: float = 0.999,
    noise_share: float = 1.0,
    key: bytes = KEY,
) -> BoundTrial:
    """Look for a member in noisy sums by every test, with each kind of exact noise at each ε, and count exceedances.

    `draws` mechanism draws are made with the member and as many with its farthest neighbor in its place, for each kind
    of noise, each ε, and each number of sums. A mechanism with a part of its noise (`noise_share` = 1/2) breaks its
    claim, and is found out. `len(bound_trial().exceedances)` is 0 for true noise, and `closest` says how near it came.
    """
    if draws < 2 or not 0 < level < 1 or not 0 < noise_share <= 1:
        raise InvalidRequest(
            f"{draws} draws at a level of {level:g}, with {noise_share:g} of the noise",
            why="thresholds are set on half of the draws, and both others are shares",
            instead="state more draws, a level below 1 and a share of at most 1",
        )
    found: list[BoundComparison] = []
    for law in laws:
        for epsilon in epsilons:
            for attributes in ATTRIBUTES:
                found += _compared(law, epsilon, attributes, draws=draws, share=noise_share, key=key)
    return BoundTrial(tuple(found), draws, level)


def _compared(
    law: Law, epsilon: float, attributes: int, *, draws: int, share: float, key: bytes
) -> Iterator[BoundComparison]:
    people = np.random.default_rng(attributes)
    population = people.uniform(0.2, 0.8, attributes)
    members = (people.random((MEMBERS, attributes)) < population).astype(np.int64)
    neighbors = neighbor_sums(members, 1 - members[0], population=population)  # every value changes
    if law == "laplace":
        parameter, claims = Fraction(attributes) / Fraction(epsilon), [(epsilon, 0.0)]
    else:
        rho = Fraction(rho_at(epsilon, FAILURE_PROBABILITY))
        parameter = attributes / (2 * rho)
        more = [(epsilon_at(rho, delta), delta) for delta in MORE_PROBABILITIES]
        claims = [(epsilon, FAILURE_PROBABILITY), *((each, delta) for each, delta in more if each > 0)]
    given = parameter * Fraction(share) ** (1 if law == "laplace" else 2)

    def noise(side: int, shape: tuple[int, int]) -> Floats:
        purpose = f"bound trial: {law}, {epsilon}, {attributes} sums, {side}"
        return audit_noise(key, purpose, law, given, shape).astype(np.float64)

    powers = frequency_attack(neighbors, noise, draws=draws, log_pmf=log_weights(law, parameter))
    for test, points in powers.items():
        for point in points:
            for claimed in claims:
                yield BoundComparison(law, attributes, epsilon, claimed, test, point)
