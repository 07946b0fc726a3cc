"""Unary encoding: each person reports a row of bits, one a level, and each bit is flipped by itself.

The bit of a person's own level is reported as 1 with probability p = ½, every other one with q = 1/(e^ε + 1): two
levels are told apart by two bits, p(1 − q)/(q(1 − p)) = e^ε, and this p errs least of all ("optimized"). With c_j the
reports of level j, x̂_j = (c_j − N·q)/(p − q) is unbiased. N is known, so that a query w is answered by its differences
from its mean, Σ (w_j − w̄)·x̂_j + w̄·N, which never errs more. With u = 1/(e^ε − 1) its variance is

    Var = 4N·Σ(w_j − w̄)²·(u² + u) + Σ(w_j − w̄)²·x_j.

It does not grow with the number of levels k, as that of randomized response does: for the count of one level it errs
less from about k = 3·e^ε + 2 on. Source: [WBLJ17].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dualmandate.mechanism.combination import CharacteristicFunction
from dualmandate.mechanism.local.coins import WordSource, device_words, loss_of, odds_within, told
from dualmandate.mechanism.local.production import (
    REPLACE_ONE,
    LocalProduction,
    check_local,
    check_people,
    odds,
    shares_array,
)
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.rational import Written
from dualmandate.workload import Workload

OWN = 0.5  # p, with which the bit of one's own level is reported as 1


def other_probability(epsilon: float) -> float:
    """q = 1/(e^ε + 1), with which the bit of any other level is reported as 1."""
    return 1 / (odds(epsilon) + 2)


@dataclass(frozen=True, eq=False)
class UnaryProduction(LocalProduction):
    """A `Production` in which each person sends bits. C₂ = C₁ = 4N·Σ(w − w̄)², C₀ = Σ(w − w̄)²·x."""

    technology: ClassVar[str] = "unary encoding"

    def reported(self, people: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        q, shape = other_probability(self.unit_loss(loss)), (size, len(people))
        bits = generator.binomial(people, OWN, shape) + generator.binomial(self.population_size - people, q, shape)
        counts = (bits - self.population_size * q) / (OWN - q)
        return np.asarray(counts + (self.population_size - counts.sum(axis=1, keepdims=True)) / len(people))

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        squares = np.square(self._differences)
        spread = 4 * self.population_size * squares.sum(axis=1)
        shares = self.sensitive_shares
        fixed = squares.max(axis=1) if shares is None else squares @ shares
        return spread, spread, self.population_size * fixed

    @cached_property
    def _differences(self) -> Floats:
        """w − w̄ of each query; shape (query_count, cells)."""
        found = self._queries - self._queries.mean(axis=1, keepdims=True)
        return np.where(np.abs(found) > 1e-12 * np.abs(self._queries).max(axis=1, keepdims=True), found, 0.0)

    def _law(self, row: int, loss: float, variance: float) -> CharacteristicFunction:
        """A sum over bits: φ(t) = Π over levels of (1 − p + p·e^{is})^x·(1 − q + q·e^{is})^(N − x).

        s = t·(w − w̄)/(p − q). Levels that the query treats alike are one.
        """
        values, cells = np.unique(self._differences[row], return_inverse=True)
        if self.sensitive_shares is None:
            people = np.zeros(len(values))
            people[int(np.argmax(np.square(values)))] = self.population_size
        else:
            people = np.bincount(cells, weights=self.population_size * self.sensitive_shares).astype(np.float64)
        levels, q = np.bincount(cells), other_probability(self.unit_loss(loss))
        steps = values / (OWN - q)

        def at(frequencies: Floats) -> Floats:
            log_value = np.zeros(frequencies.shape, dtype=np.complex128)
            for step, own, count in zip(steps, people, levels * self.population_size - people, strict=True):
                for share, bits in ((OWN, own), (q, count)):
                    if bits > 0 and step != 0:
                        wave = 1 - share + share * np.exp(1j * step * frequencies)
                        log_value += bits * (np.log(wave) - 1j * share * step * frequencies)
            return np.asarray(np.exp(log_value).real, dtype=np.float64)

        each = float(np.abs(steps).max())
        whole = float(np.abs(steps) @ levels) * self.population_size
        return CharacteristicFunction(at, variance, min(12 * math.sqrt(variance) + 50 * each, whole))


@dataclass(frozen=True)
class UnaryEncoding:
    """A survey in which each of `population_size` people reports a randomized bit for each of some levels.

    Neighbors are replace-one: that a person takes part is known, and so is N. Without `sensitive_shares` errors are
    stated for the worst case, query by query.
    """

    population_size: int
    levels: int
    sensitive_shares: tuple[float, ...] | None = None  # π, one a level, each ≥ 0; None where not known
    name: ClassVar[str] = "unary encoding"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        check_people(self.name, self.population_size, self.levels, self.sensitive_shares)

    def production(self, workload: Workload, protection: Protection = REPLACE_ONE) -> UnaryProduction:
        check_local(self.name, self.levels, workload, protection)
        return UnaryProduction(workload, protection, self.population_size, shares_array(self.sensitive_shares))


@dataclass(frozen=True)
class UnarySurvey:
    """What devices and the agency do: a bit for each of k levels, drawn exactly, and the histogram estimated."""

    epsilon: Written
    levels: int  # k

    def __post_init__(self) -> None:
        check_people(UnaryEncoding.name, 1, self.levels, None)
        assert self.odds > 1

    @cached_property
    def odds(self) -> Fraction:
        """o: the bit of another level is 1 with probability 1/(o + 1); not above e^ε."""
        return odds_within(self.epsilon)

    @property
    def loss(self) -> PrivacyLoss:
        """What one report loses, rounded up: two levels differ in two bits, which tell o together."""
        return loss_of(self.odds)

    def reports(self, own: Integers, words: WordSource = device_words) -> Booleans:
        """The bits of each person; shape (people, levels)."""
        bits = np.arange(self.levels) == own[:, None]
        return told(bits, if_one=Fraction(OWN), if_zero=1 / (1 + self.odds), words=words)

    def counts(self, bits: Booleans) -> Floats:
        """How many people there are of each level, estimated without bias from all bits; shape (levels,)."""
        q, size = float(1 / (1 + self.odds)), len(bits)
        found = (bits.sum(axis=0) - size * q) / (OWN - q)
        return np.asarray(found + (size - found.sum()) / self.levels)

    def variances(self, people: Integers) -> Floats:
        """Of these estimates, given how many people there are of each level; shape (levels,)."""
        u, k, size = 1 / float(self.odds - 1), self.levels, int(people.sum())
        return np.asarray(4 * size * (1 - 1 / k) * (u * u + u) + (1 - 2 / k) * people + size / k**2)
