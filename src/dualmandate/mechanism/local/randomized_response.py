"""Randomized response: nobody, not even the curator, sees a true answer with certainty.

Each of N people reports their own level with probability ρ (`truth_probability`) and otherwise an innocuous draw from
public shares μ. Reports are unbiased for the counts after x̂ = (d − N(1 − ρ)μ)/ρ. With u = 1/(e^ε − 1), m = min μ and
v = u/m = (1 − ρ)/ρ, a query q has, over the mechanism alone and given the true shares π,

    Var = N·(v²·Var_μ(q) + v·E(q_z − q_x)²),    z drawn from μ and x from π, independently.

For one of two levels and μ = ½ this is N(u² + u) = N/(4·sinh²(ε/2)) whatever π: half of N times the variance that a
trusted curator's geometric noise would have, at every ε.
Source: [W65]; [AS19] section III and appendix B. The error is that of the mechanism, not of a superpopulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism.combination import CharacteristicFunction
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.local.coins import WordSource, device_words, flipped, loss_of, odds_within, picked
from dualmandate.mechanism.local.production import REPLACE_ONE, LocalProduction, check_local, check_people, odds
from dualmandate.mechanism.mechanism import positive_loss
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.rational import Written
from dualmandate.workload import Workload


@dataclass(frozen=True, eq=False)
class ResponseProduction(LocalProduction):
    """A `Production` in which each person randomizes their own level.

    C₂ = N·Var_μ(q)/m² and C₁ = N·E(q_z − q_x)²/m, z drawn from the innocuous and x from the sensitive shares.
    """

    innocuous_shares: Floats  # μ, shape (cells,)
    technology: ClassVar[str] = "randomized response"

    def reported(self, people: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        truth = self._truth(loss)
        reports = np.zeros((size, len(people)))
        for cell, number in enumerate(people.tolist()):
            reports += generator.multinomial(number, self._report_shares(cell, truth), size)
        return np.asarray((reports - self.population_size * (1 - truth) * self.innocuous_shares) / truth)

    @cached_property
    def _distances(self) -> Floats:
        """E(q_z − q_x)² for each query and each true cell x; shape (query_count, cells)."""
        first = self._queries @ self.innocuous_shares
        second = np.square(self._queries) @ self.innocuous_shares
        return second[:, None] - 2 * first[:, None] * self._queries + np.square(self._queries)

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        centered = self._queries - (self._queries @ self.innocuous_shares)[:, None]
        spread = np.square(centered) @ self.innocuous_shares
        shares = self.sensitive_shares
        distance = self._distances.max(axis=1) if shares is None else self._distances @ shares
        smallest = float(self.innocuous_shares.min())
        people = self.population_size
        return people * spread / smallest**2, people * distance / smallest, np.zeros(len(spread))

    def _truth(self, loss: float) -> float:
        smallest = float(self.innocuous_shares.min())
        return smallest / (self._u(loss) + smallest)

    def _report_shares(self, cell: int, truth: float) -> Floats:
        shares = (1 - truth) * self.innocuous_shares
        shares[cell] += truth
        return shares

    def _law(self, row: int, loss: float, variance: float) -> CharacteristicFunction:
        """A sum over people: φ(t) = Π over cells of E[exp(it(q_d − E q_d)/ρ)]^(people in the cell).

        Cells that the query treats alike are one: what matters of a report is the query's value.
        """
        values, cells = np.unique(self._queries[row], return_inverse=True)
        innocuous = np.bincount(cells, weights=self.innocuous_shares)
        if self.sensitive_shares is None:
            people = np.zeros(len(values))
            people[cells[int(np.argmax(self._distances[row]))]] = self.population_size
        else:
            people = np.bincount(cells, weights=self.population_size * self.sensitive_shares).astype(np.float64)
        truth = self._truth(loss)

        def at(frequencies: Floats) -> Floats:
            waves = [np.exp(1j * value / truth * frequencies) for value in values]
            log_value = np.zeros(frequencies.shape, dtype=np.complex128)
            for place in np.flatnonzero(people):
                shares = (1 - truth) * innocuous
                shares[place] += truth
                one = sum(share * wave for share, wave in zip(shares, waves, strict=True))
                log_value += people[place] * (np.log(one) - 1j * float(values @ shares) / truth * frequencies)
            return np.asarray(np.exp(log_value).real, dtype=np.float64)

        width = float(values[-1] - values[0]) / truth
        largest = min(12 * math.sqrt(variance) + 50 * width, self.population_size * width)
        return CharacteristicFunction(at, variance, largest)


@dataclass(frozen=True)
class RandomizedResponse:
    """A survey in which each of `population_size` people randomizes their own answer.

    Neighbors are replace-one: that a person takes part is known, and so is N. Without `sensitive_shares` errors are
    stated for the worst case, query by query (at equal innocuous shares of two levels there is no worse case).
    """

    population_size: int
    innocuous_shares: tuple[float, ...]  # μ, one a level in the domain's order; each > 0, summing to 1
    sensitive_shares: tuple[float, ...] | None = None  # π, likewise, each ≥ 0; None where not known
    name: ClassVar[str] = "randomized response"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        innocuous, sensitive = self.innocuous_shares, self.sensitive_shares or self.innocuous_shares
        proper = len(sensitive) == len(innocuous) >= 2 and min(innocuous) > 0 and min(sensitive) >= 0
        add_up = all(math.isclose(math.fsum(shares), 1, rel_tol=1e-9) for shares in (innocuous, sensitive))
        if not (proper and add_up and self.population_size >= 1):
            raise InvalidMechanism(
                f"randomized response of {self.population_size} people with innocuous shares {self.innocuous_shares}",
                why="a level that is never reported innocently betrays whoever reports it, and shares add up to 1",
                instead="give at least two positive shares that add up to 1, and at least one person",
            )

    @classmethod
    def binary(
        cls, population_size: int, *, innocuous_share: float = 0.5, sensitive_share: float | None = None
    ) -> RandomizedResponse:
        """Two levels, "no" then "yes"; the shares are those of "yes"."""
        sensitive = None if sensitive_share is None else (1 - sensitive_share, float(sensitive_share))
        return cls(population_size, (1 - innocuous_share, float(innocuous_share)), sensitive)

    @classmethod
    def categories(
        cls, population_size: int, levels: int, *, sensitive_shares: Sequence[float] | None = None
    ) -> RandomizedResponse:
        """k levels, each equally likely as an innocuous answer."""
        sensitive = None if sensitive_shares is None else tuple(sensitive_shares)
        return cls(population_size, (1 / levels,) * levels, sensitive)

    @classmethod
    def asymmetric(cls, population_size: int, *, epsilon_yes: float, epsilon_no: float) -> RandomizedResponse:
        """Two levels with protection that differs: used at ε = max(ε_yes, ε_no), each report keeps to its own ε.

        "yes" reveals by a factor 1 + ρ/((1 − ρ)μ), "no" by 1 + ρ/((1 − ρ)(1 − μ)); μ sets the ratio.
        """
        odds_yes, odds_no = math.expm1(positive_loss(epsilon_yes)), math.expm1(positive_loss(epsilon_no))
        return cls.binary(population_size, innocuous_share=odds_no / (odds_yes + odds_no))

    @cached_property
    def smallest_share(self) -> float:
        """m = min μ: the report that reveals most."""
        return min(self.innocuous_shares)

    def truth_probability(self, epsilon: float) -> float:
        """ρ = m/(u + m), so e^ε = 1 + ρ/((1 − ρ)·m); for two equal shares tanh(ε/2)."""
        return self.smallest_share / (1 / odds(epsilon) + self.smallest_share)

    def epsilon(self, truth_probability: float) -> float:
        """ε = ln(1 + ρ/((1 − ρ)·m)), the other way round."""
        if not 0 < truth_probability < 1:
            raise InvalidLoss(
                f"a truth probability of {truth_probability}",
                why="always telling the truth protects nobody, and never doing so tells nothing",
                instead="state a probability strictly between 0 and 1",
            )
        return math.log1p(truth_probability / ((1 - truth_probability) * self.smallest_share))

    def one_sided_losses(self, epsilon: float) -> tuple[float, ...]:
        """For each report the logarithm of its Bayes factor, ln(1 + ρ/((1 − ρ)·μ_j)) ≤ ε, at a setting ε."""
        ratios = [self.smallest_share / share for share in self.innocuous_shares]
        fade = math.exp(-positive_loss(epsilon))
        return tuple(epsilon + math.log(ratio + (1 - ratio) * fade) for ratio in ratios)

    def mean_squared_error(self, epsilon: float) -> float:
        """MSE of the estimated share of the last level ("yes"), over the mechanism alone.

        N·MSE = ((1 − m)/m)·u² + (π'(1 − m)/m + 1 − π')·u for two levels, π' = π if μ ≤ ½ else 1 − π.
        """
        square, single = self._share_coefficients
        u = 1 / odds(epsilon)
        return square * u * u + single * u

    def mean_squared_error_slope(self, epsilon: float) -> float:
        """Its derivative; < 0. u′ = −u(1 + u)."""
        square, single = self._share_coefficients
        u = 1 / odds(epsilon)
        return -u * (1 + u) * (2 * square * u + single)

    def mean_squared_error_curvature(self, epsilon: float) -> float:
        """Its second derivative; > 0 for every μ, π and ε, so the frontier is strictly concave."""
        square, single = self._share_coefficients
        u = 1 / odds(epsilon)
        return u * (1 + u) * (2 * square * u * (2 + 3 * u) + single * (1 + 2 * u))

    def price_of_not_trusting_the_curator(self, epsilon: float) -> float:
        """Variance of the count of the last level, over that of geometric noise of the same ε: N/2 at μ = ½."""
        return self.population_size**2 * self.mean_squared_error(epsilon) / GEOMETRIC.variance(epsilon)

    def production(self, workload: Workload, protection: Protection = REPLACE_ONE) -> ResponseProduction:
        check_local(self.name, len(self.innocuous_shares), workload, protection)
        sensitive = None if self.sensitive_shares is None else np.array(self.sensitive_shares)
        return ResponseProduction(
            workload, protection, self.population_size, sensitive, np.array(self.innocuous_shares)
        )

    @cached_property
    def _share_coefficients(self) -> tuple[float, float]:
        """Coefficients of u² and u in the MSE of the share of the last level."""
        mu, m, people = self.innocuous_shares[-1], self.smallest_share, self.population_size
        known = (0.0, 1.0) if self.sensitive_shares is None else (self.sensitive_shares[-1],)
        distance = max(mu + pi - 2 * mu * pi for pi in known)
        return mu * (1 - mu) / m**2 / people, distance / m / people


@dataclass(frozen=True)
class ResponseSurvey:
    """What devices and the agency do: each reports its own of k levels, or one of all levels evenly, drawn exactly.

    With odds o within e^ε the own level has the chance o/(o + k − 1), any other one 1/(o + k − 1).
    """

    epsilon: Written
    levels: int  # k

    def __post_init__(self) -> None:
        check_people(RandomizedResponse.name, 1, self.levels, None)
        assert self.odds > 1

    @cached_property
    def odds(self) -> Fraction:
        """By how much likelier the own level is reported than any other one, not above e^ε."""
        return odds_within(self.epsilon)

    @property
    def truth_probability(self) -> Fraction:
        """ρ = (o − 1)/(o + k − 1), with which the own level is reported whatever the coin says."""
        return (self.odds - 1) / (self.odds + self.levels - 1)

    @property
    def loss(self) -> PrivacyLoss:
        """What one report loses, rounded up."""
        return loss_of(self.odds)

    def reports(self, own: Integers, words: WordSource = device_words) -> Integers:
        """The level that each person reports; shape (people,)."""
        truth = flipped(self.truth_probability, len(own), words)
        return np.where(truth, own, picked(self.levels, len(own), words))

    def counts(self, reports: Integers) -> Floats:
        """How many people there are of each level, estimated without bias; shape (levels,)."""
        truth = float(self.truth_probability)
        found = np.bincount(reports, minlength=self.levels)
        return np.asarray((found - len(reports) * (1 - truth) / self.levels) / truth)

    def variances(self, people: Integers) -> Floats:
        """Of these estimates, given how many people there are of each level; shape (levels,)."""
        truth = float(self.truth_probability)
        other = (1 - truth) / self.levels
        own, size = truth + other, int(people.sum())
        return np.asarray((people * own * (1 - own) + (size - people) * other * (1 - other)) / truth**2)
