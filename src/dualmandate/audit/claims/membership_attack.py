"""Membership as an attack: allele counts, means and tables with noise, and whether they give a member away."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.membership import FALSE_RATES, LogPmf, PowerPoint, Sought, frequency_attack, sought_member
from dualmandate.audit.claims.own_noise import Law, audit_noise, log_weights
from dualmandate.audit.drawing import generator
from dualmandate.audit.equations import Integers
from dualmandate.audit.finding import Baseline, Effort, Finding, Range, Reference
from dualmandate.errors import InvalidRequest
from dualmandate.population import Currency, PrivacyLoss, Protection
from dualmandate.population.conversion import epsilon_at
from dualmandate.workload import Workload

Floats = NDArray[np.float64]
DRAWS = 4_000
FAILURE_PROBABILITY = 1e-6  # at which a ρ is compared as an ε
KNOWN = {
    "homer": "the frequencies of the population",
    "likelihood ratio": "the frequencies of the population",
    "informed": "everybody else's values",
}
Drawn = Callable[[bytes, str, tuple[int, int]], Floats]  # noise, from the audit's key, for a purpose


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Noisy sums, and a person who is looked for in them.

    `noise(key, purpose, shape)` draws what the mechanism adds to sums, from the audit's key. `epsilon` and
    `failure_probability` are what is claimed of it.
    """

    name: str
    sought: Sought = field(repr=False)
    noise: Drawn = field(repr=False)
    epsilon: float
    failure_probability: float = 0.0
    draws: int = DRAWS
    log_pmf: LogPmf | None = field(default=None, repr=False)
    rates: tuple[float, ...] = FALSE_RATES
    coarsening: str = "values are 0 or 1"
    reference: Reference = "draws"


@dataclass(frozen=True)
class RecognizeMembers:
    """Whether somebody was in the data, by Homer's test, by likelihood, and by one who knows everybody else."""

    effort: Effort = field(default_factory=Effort)
    name: str = "membership"
    needs: str = "noisy sums, a member's values, and the frequencies of the population"

    def run(self, target: Frequencies, key: bytes, /) -> tuple[Finding, ...]:
        """Power at each rate of false accusations, over draws of the mechanism, beside that rate itself."""
        self.effort.say(f"looking for a member of {target.name}")
        calls = iter(range(2))

        def noise(shape: tuple[int, int]) -> Floats:
            return target.noise(key, f"membership: {target.name}, {next(calls)}", shape)

        found = frequency_attack(target.sought, noise, draws=target.draws, log_pmf=target.log_pmf, rates=target.rates)
        return tuple(self._finding(target, test, point) for test, points in found.items() for point in points)

    def _finding(self, target: Frequencies, test: str, point: PowerPoint) -> Finding:
        above = point.exceeds(target.epsilon, target.failure_probability, level=1 - 1e-6)
        delta = f", δ = {target.failure_probability:g}" if target.failure_probability else ""
        allowed = f"what ε = {target.epsilon:.4g}{delta} allows"
        bound = point.allowed(target.epsilon, target.failure_probability)
        return Finding(
            attack=self.name,
            claim=f"draws of {target.name} in which the {test} test recognizes the member; "
            f"{'ABOVE' if above else 'not above'} {allowed}",
            success=point.true_positives,
            baselines=(
                Baseline("draws in which it accuses somebody who is not there", point.false_positives),
                Baseline("what the claim allows at that rate", Range(0.0, bound, "of the draws")),
            ),
            attacker_knows=f"the member's values and {KNOWN[test]}",
            coarsening=target.coarsening,
            reference=target.reference,
        )


def with_generator(drawn: Callable[[np.random.Generator, tuple[int, int]], Floats]) -> Drawn:
    """Noise of any law, drawn with a generator that comes from the audit's key."""
    return lambda key, purpose, shape: drawn(generator(key, purpose), shape)


def allele_counts(
    genotypes: Integers, replacement: Integers | None, *, population: Floats, loss: PrivacyLoss, draws: int = DRAWS
) -> Frequencies:
    """Published counts of an allele at many places of the genome, 0, 1 or 2 a person; shape (members, places).

    One record changes all counts, by 2 each at most. `population` are frequencies of the allele, shape (places,).
    """
    largest = np.full(genotypes.shape[1], 2, dtype=np.int64)
    sought = sought_member(genotypes, replacement, population=population, largest=largest)
    return _sums("allele counts", sought, loss, largest, draws=draws, coarsening="0, 1 or 2 copies of an allele")


def means(
    values: Integers, replacement: Integers | None, *, largest: Integers, population: Floats, loss: PrivacyLoss
) -> Frequencies:
    """Published means of bounded numbers: sums of whole numbers from 0 to `largest`, over a known number of members.

    `population` are the means of people in general, as shares of `largest`; shape (attributes,).
    """
    sought = sought_member(values, replacement, population=population, largest=largest)
    words = f"values in whole steps, from 0 to {int(largest.min()):,} or {int(largest.max()):,}"
    return _sums("means", sought, loss, largest, draws=DRAWS, coarsening=words)


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
    sought = sought_member(members, other, population=expected)
    power = workload.sensitivity(protection or Protection(), "l1" if loss.currency is Currency.EPSILON else "l2").power
    words = f"tables with {workload.query_count:,} numbers"
    return _noisy(words, sought, loss, power, draws=DRAWS, coarsening="values as declared")


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
    name: str, sought: Sought, loss: PrivacyLoss, largest: Integers, *, draws: int, coarsening: str
) -> Frequencies:
    power = 1 if loss.currency is Currency.EPSILON else 2
    return _noisy(name, sought, loss, Fraction(int((largest**power).sum())), draws=draws, coarsening=coarsening)


def _noisy(
    name: str, sought: Sought, loss: PrivacyLoss, sensitivity: Fraction, *, draws: int, coarsening: str
) -> Frequencies:
    """Sums with exact noise for a loss: scale Δ/ε, or σ² = Δ²/(2ρ)."""
    pure = loss.currency is Currency.EPSILON
    law: Law = "laplace" if pure else "gaussian"
    parameter = sensitivity / loss.amount if pure else sensitivity / (2 * loss.amount)

    def noise(key: bytes, purpose: str, shape: tuple[int, int]) -> Floats:
        return audit_noise(key, purpose, law, parameter, shape).astype(np.float64)

    epsilon = float(loss) if pure else epsilon_at(loss.amount, FAILURE_PROBABILITY)
    delta = 0.0 if pure else FAILURE_PROBABILITY
    weights = log_weights(law, parameter)
    return Frequencies(f"{name} at {loss}", sought, noise, epsilon, delta, draws, weights, coarsening=coarsening)
