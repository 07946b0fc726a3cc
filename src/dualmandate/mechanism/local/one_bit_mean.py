"""One bit a person for a sum or a mean: the bit is the likelier to be 1 the larger the person's amount.

An amount x from 0 to m is reported as 1 with probability 1/(e^ε + 1) + (x/m)·(e^ε − 1)/(e^ε + 1). With u = 1/(e^ε − 1)
and b the bits, Σ m·((1 + 2u)·b − u) is unbiased for Σ x, and with y = x/m its variance is

    Var = m²·(N·(u² + u) + Σ y(1 − y)).

Where all amounts are 0 or m it is a count, and N/2 times what geometric noise of a trusted curator has, at every ε.
A bit is drawn exactly: with probability (o − 1)/(o + 1), o the odds, it says whether a fair pick among 0, …, m − 1 lies
below x, and else it is an even coin. Source: [DKY17].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.combination import CharacteristicFunction
from dualmandate.mechanism.local.coins import WordSource, device_words, flipped, loss_of, odds_within, picked
from dualmandate.mechanism.local.intervals import normal_interval
from dualmandate.mechanism.local.production import (
    REPLACE_ONE,
    LocalProduction,
    check_local,
    check_people,
    shares_array,
)
from dualmandate.population import PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.rational import Written
from dualmandate.workload import Workload

LARGEST_AMOUNT = 2**53


@dataclass(frozen=True, eq=False)
class OneBitProduction(LocalProduction):
    """A `Production` of one sum over people. C₂ = C₁ = N·span², C₀ = Σ (w − low)(high − w)·x, w from low to high."""

    technology: ClassVar[str] = "one-bit mean"

    @property
    def span(self) -> tuple[float, float]:
        """The smallest and the largest amount."""
        return float(self._queries.min()), float(self._queries.max())

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        low, high = self.span
        spread, between = (
            np.array([self.population_size * (high - low) ** 2]),
            (self._queries - low) * (high - self._queries),
        )
        shares = self.sensitive_shares
        fixed = between.max(axis=1) if shares is None else between @ shares
        return spread, spread, self.population_size * fixed

    def draw(self, counts: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        people, (low, high), u = self._checked(counts), self.span, self._u(loss)
        if low == high:
            return np.full((size, 1), low * self.population_size)
        ones = generator.binomial(people, self._chances(u), (size, len(people))).sum(axis=1, keepdims=True)
        return np.asarray(low * self.population_size + (high - low) * ((1 + 2 * u) * ones - u * self.population_size))

    def reported(self, people: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        """One bit does not tell levels apart: the sum is shared among people as they would be without it."""
        answers = self.draw(people, loss, generator=generator, size=size)
        return np.asarray(answers @ np.linalg.pinv(self._queries.T))

    def _chances(self, u: float) -> Floats:
        """P(1) of a person of each cell: (u + y)/(1 + 2u)."""
        low, high = self.span
        return np.asarray((u + (self._queries[0] - low) / (high - low)) / (1 + 2 * u))

    def _law(self, row: int, loss: float, variance: float) -> CharacteristicFunction:
        """A sum of N bits: φ(t) = Π over amounts of (1 − P + P·e^{is})^people, s = t·span·(1 + 2u)."""
        low, high = self.span
        u = self._u(loss)
        chances, step = self._chances(u), (high - low) * (1 + 2 * u)
        if self.sensitive_shares is None:
            people = np.zeros(len(chances))
            people[int(np.argmax((self._queries[row] - low) * (high - self._queries[row])))] = self.population_size
        else:
            people = self.population_size * self.sensitive_shares
        kinds, cells = np.unique(chances, return_inverse=True)
        numbers = np.bincount(cells, weights=people)

        def at(frequencies: Floats) -> Floats:
            log_value = np.zeros(frequencies.shape, dtype=np.complex128)
            for chance, number in zip(kinds.tolist(), numbers.tolist(), strict=True):
                if number > 0:
                    wave = 1 - chance + chance * np.exp(1j * step * frequencies)
                    log_value += number * (np.log(wave) - 1j * chance * step * frequencies)
            return np.asarray(np.exp(log_value).real, dtype=np.float64)

        largest = min(12 * math.sqrt(variance) + 50 * step, self.population_size * step)
        return CharacteristicFunction(at, variance, largest)


@dataclass(frozen=True)
class OneBitMean:
    """A survey in which each of `population_size` people sends one bit about an amount, for one sum of all amounts.

    Neighbors are replace-one: that a person takes part is known, and so is N. Without `sensitive_shares` of the levels
    the error is that of the worst case, all people halfway.
    """

    population_size: int
    levels: int
    sensitive_shares: tuple[float, ...] | None = None  # one a level, each ≥ 0; None where not known
    name: ClassVar[str] = "one-bit mean"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        check_people(self.name, self.population_size, self.levels, self.sensitive_shares)

    def production(self, workload: Workload, protection: Protection = REPLACE_ONE) -> OneBitProduction:
        check_local(self.name, self.levels, workload, protection)
        if workload.query_count != 1:
            raise InvalidMechanism(
                f"{self.name} for {workload.query_count:,} queries",
                why="one bit a person answers one question",
                instead="ask one sum, or share the people among several surveys",
            )
        return OneBitProduction(workload, protection, self.population_size, shares_array(self.sensitive_shares))


@dataclass(frozen=True)
class OneBitSurvey:
    """What devices and the agency do: amounts in whole units from 0 to `largest`, one bit each, their sum estimated."""

    epsilon: Written
    largest: int  # units; public, larger amounts are clipped to it

    def __post_init__(self) -> None:
        if isinstance(self.largest, bool) or not 1 <= self.largest <= LARGEST_AMOUNT:
            raise InvalidMechanism(
                f"amounts of up to {self.largest}",
                why=f"amounts are whole units from 0 to a public bound of at least 1 and at most {LARGEST_AMOUNT:,}",
                instead="state a bound in a unit in which it is a whole number",
            )
        odds_within(self.epsilon)

    @property
    def odds(self) -> Fraction:
        """The odds with which the bit of an extreme amount tells the truth, not above e^ε."""
        return odds_within(self.epsilon)

    @property
    def loss(self) -> PrivacyLoss:
        """What one report loses, rounded up: the largest ratio of its chances is that of amounts 0 and `largest`."""
        return loss_of(self.odds)

    def chance(self, amount: int) -> Fraction:
        """P(1) for an amount, exactly."""
        return (1 + Fraction(min(amount, self.largest), self.largest) * (self.odds - 1)) / (1 + self.odds)

    def reports(self, amounts: Integers, words: WordSource = device_words) -> Booleans:
        """The bit of each person; shape (people,)."""
        clipped, count = self.clipped(amounts), len(amounts)
        told = flipped((self.odds - 1) / (self.odds + 1), count, words)
        return np.where(told, picked(self.largest, count, words) < clipped, flipped(Fraction(1, 2), count, words))

    def clipped(self, amounts: Integers) -> Integers:
        """Amounts within the bound; refused where they are not whole or below 0."""
        if amounts.ndim != 1 or amounts.dtype.kind not in "iu" or (len(amounts) and amounts.min() < 0):
            raise InvalidMechanism(
                "amounts that are not a list of whole numbers from 0 on",
                why="each person reports one amount, in whole units",
                instead="count in smaller units, and from the smallest possible amount on",
            )
        return np.minimum(amounts, self.largest)

    def total(self, ones: float, people: int) -> float:
        """The sum of all amounts, estimated without bias from how many of the bits are 1."""
        u = 1 / float(self.odds - 1)
        return self.largest * ((1 + 2 * u) * ones - u * people)

    def variance(self, amounts: Integers) -> float:
        """Of that estimate, given the people."""
        shares = self.clipped(amounts) / self.largest
        u = 1 / float(self.odds - 1)
        return self.largest**2 * (len(shares) * (u * u + u) + float(np.sum(shares * (1 - shares))))

    def interval(self, ones: int, people: int, probability: float = 0.95) -> tuple[float, float]:
        """Where the sum lies, whatever the amounts are: the variance is that of people halfway, the worst case."""
        u = 1 / float(self.odds - 1)
        error = self.largest * math.sqrt(people * (u * u + u + 0.25))
        most = float(people * self.largest)
        return normal_interval(self.total(ones, people), standard_error=error, probability=probability, largest=most)
