"""A histogram from a few bits a person: each device is asked about d of the k levels, and flips the bit of each.

A device is given d levels at random, once for all, and tells for each of them whether it is the person's own, with
odds o = e^{ε/2} of telling the truth (e^ε where d = 1: then one bit alone tells two people apart). With u = 1/(o − 1)
and b the bits of level j, x̂_j = (k/d)·Σ ((1 + 2u)·b − u) is unbiased, estimates of levels are uncorrelated, and

    Var of a query w = (k/d)·N·Σ w²·(u² + u) + (k/d − 1)·Σ w²·x.

With d = k it is unary encoding with even odds on both sides, basic RAPPOR. Source: [DKY17], [EPK14].
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism.combination import CharacteristicFunction
from dualmandate.mechanism.local.coins import WordSource, device_words, loss_of, odds_within, picked, told
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
from dualmandate.population.rational import Written, rational_or
from dualmandate.workload import Workload

MOST_NUMBERS = 2**22  # of one block of a simulation


def coins_at_odds(levels: int, bits: int) -> int:
    """How many coins of a report tell two people apart, and so share its loss."""
    return min(2, bits) if levels > 1 else 1


@dataclass(frozen=True, eq=False)
class BitFlipProduction(LocalProduction):
    """A `Production` in which each person sends d bits. C₂ = C₁ = (k/d)·N·Σw², C₀ = (k/d − 1)·Σw²·x."""

    bits: int
    technology: ClassVar[str] = "bit flip"

    @property
    def parts(self) -> int:
        return coins_at_odds(self.workload.domain.size, self.bits)

    @property
    def inverse_share(self) -> float:
        """k/d: one over the share of the levels that a person is asked about."""
        return self.workload.domain.size / self.bits

    def reported(self, people: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        u, levels = self._u(loss), len(people)
        own, found = np.repeat(np.arange(levels), people), np.empty((size, levels))
        block = max(1, MOST_NUMBERS // (self.population_size * levels))
        for start in range(0, size, block):
            shape = (min(block, size - start), self.population_size, levels)
            ranks = generator.random(shape).argsort(axis=-1)
            truth = np.where(np.arange(levels) == own[:, None], 1 + u, u) / (1 + 2 * u)
            ones = generator.random(shape) < truth
            values = np.where(ranks < self.bits, (1 + 2 * u) * ones - u, 0.0)
            found[start : start + block] = self.inverse_share * values.sum(axis=1)
        return found

    @cached_property
    def coefficients(self) -> tuple[Floats, Floats, Floats]:
        squares = np.square(self._queries)
        spread = self.inverse_share * self.population_size * squares.sum(axis=1)
        shares = self.sensitive_shares
        fixed = squares.max(axis=1) if shares is None else squares @ shares
        return spread, spread, (self.inverse_share - 1) * self.population_size * fixed

    def _law(self, row: int, loss: float, variance: float) -> CharacteristicFunction:
        """A sum over people: of the levels that the query counts, a person is asked about j with a known chance.

        Given j, each j of them are as likely; the mean of products of their waves over all choices of j is built up
        level by level, T(i, j) = (1 − j/i)·T(i − 1, j) + (j/i)·wave_i·T(i − 1, j − 1).
        """
        from scipy.stats import hypergeom

        weights = self._queries[row]
        (counted,) = np.nonzero(weights)
        u, levels = self._u(loss), len(weights)
        most = min(len(counted), self.bits)
        chances = hypergeom.pmf(np.arange(most + 1), levels, len(counted), self.bits)
        steps = self.inverse_share * (1 + 2 * u) * weights
        people = self._people_of(row)

        def one(own: int, frequencies: Floats) -> NDArray[np.complex128]:
            means = [np.ones(frequencies.shape, dtype=np.complex128)]
            means += [np.zeros(frequencies.shape, dtype=np.complex128) for _ in range(most)]
            for place, level in enumerate(counted.tolist(), start=1):
                truth = (u + (level == own)) / (1 + 2 * u)
                wave = np.exp(-1j * steps[level] * u / (1 + 2 * u) * frequencies)
                wave *= 1 - truth + truth * np.exp(1j * steps[level] * frequencies)
                for asked in range(min(place, most), 0, -1):
                    share = asked / place
                    means[asked] = (1 - share) * means[asked] + share * wave * means[asked - 1]
            return np.asarray(sum(chance * mean for chance, mean in zip(chances.tolist(), means, strict=True)))

        def at(frequencies: Floats) -> Floats:
            log_value = np.zeros(frequencies.shape, dtype=np.complex128)
            for own, number in people.items():
                log_value += number * (np.log(one(own, frequencies)) - 1j * weights[own] * frequencies)
            return np.asarray(np.exp(log_value).real, dtype=np.float64)

        each = float(np.abs(steps).sum())
        largest = min(12 * math.sqrt(variance) + 50 * float(np.abs(steps).max()), self.population_size * each)
        return CharacteristicFunction(at, variance, largest)

    def _people_of(self, row: int) -> dict[int, float]:
        """How many people there are of each kind that the query tells apart, by a level of that kind."""
        weights = self._queries[row]
        if self.sensitive_shares is None:
            return {int(np.argmax(np.abs(weights))): float(self.population_size)}
        _, first, kinds = np.unique(weights, return_index=True, return_inverse=True)
        numbers = np.bincount(kinds, weights=self.population_size * self.sensitive_shares)
        return {int(level): float(number) for level, number in zip(first, numbers, strict=True) if number > 0}


@dataclass(frozen=True)
class BitFlip:
    """A survey in which each of `population_size` people tells of `bits` of the levels whether they are their own.

    Neighbors are replace-one: that a person takes part is known, and so is N. Without `sensitive_shares` errors are
    stated for the worst case, query by query.
    """

    population_size: int
    levels: int
    bits: int
    sensitive_shares: tuple[float, ...] | None = None  # one a level, each ≥ 0; None where not known
    name: ClassVar[str] = "bit flip"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP

    def __post_init__(self) -> None:
        check_people(self.name, self.population_size, self.levels, self.sensitive_shares)
        _check_bits(self.levels, self.bits)

    def production(self, workload: Workload, protection: Protection = REPLACE_ONE) -> BitFlipProduction:
        check_local(self.name, self.levels, workload, protection)
        shares = shares_array(self.sensitive_shares)
        return BitFlipProduction(workload, protection, self.population_size, shares, self.bits)


@dataclass(frozen=True)
class BitFlipSurvey:
    """What devices and the agency do: a histogram of `levels` from `bits` bits a person."""

    epsilon: Written
    levels: int
    bits: int

    def __post_init__(self) -> None:
        _check_bits(self.levels, self.bits)
        assert self.odds > 1

    @cached_property
    def odds(self) -> Fraction:
        """The odds with which each bit tells the truth."""
        instead = "state a positive, finite number"
        chosen = rational_or(InvalidLoss, self.epsilon, what=f"an epsilon of {self.epsilon!s:.40}", instead=instead)
        return odds_within(chosen / coins_at_odds(self.levels, self.bits))

    @property
    def loss(self) -> PrivacyLoss:
        """What one report loses, rounded up."""
        return loss_of(self.odds ** coins_at_odds(self.levels, self.bits))

    def assigned(self, people: int, words: WordSource = device_words) -> Integers:
        """The levels that each person is asked about, all choices alike, for ever the same; shape (people, bits)."""
        found = np.tile(np.arange(self.levels), (people, 1))
        everybody = np.arange(people)
        for place in range(self.bits if self.bits < self.levels else 0):
            other = place + picked(self.levels - place, people, words)
            found[everybody, place], found[everybody, other] = found[everybody, other], found[everybody, place].copy()
        return found[:, : self.bits]

    def reports(self, own: Integers, assigned: Integers, words: WordSource = device_words) -> Booleans:
        """The bits of each person; shape (people, bits). Sent again unchanged, they lose nothing more."""
        truth = self.odds / (1 + self.odds)
        return told(assigned == own[:, None], if_one=truth, if_zero=1 - truth, words=words)

    def counts(self, assigned: Integers, bits: Booleans) -> Floats:
        """How many people there are of each level, estimated without bias; shape (levels,)."""
        u = 1 / float(self.odds - 1)
        values = (1 + 2 * u) * bits - u
        sums = np.bincount(assigned.reshape(-1), weights=values.reshape(-1), minlength=self.levels)
        return np.asarray(self.levels / self.bits * sums)

    def variances(self, people: Integers) -> Floats:
        """Of these estimates, given how many people there are of each level; shape (levels,)."""
        u, inverse = 1 / float(self.odds - 1), self.levels / self.bits
        return np.asarray(inverse * people.sum() * (u * u + u) + (inverse - 1) * people)

    def interval(self, count: float, people: int, probability: float = 0.95) -> tuple[float, float]:
        """Where the number of people of a level lies that was estimated so, at the variance of the worst case."""
        u, inverse = 1 / float(self.odds - 1), self.levels / self.bits
        error = math.sqrt(people * (inverse * (u * u + u) + inverse - 1))
        return normal_interval(count, standard_error=error, probability=probability, largest=people)


def _check_bits(levels: int, bits: int) -> None:
    if levels < 2 or not 1 <= bits <= levels:
        raise InvalidMechanism(
            f"{bits} bits about {levels} levels",
            why="a person is asked about one level at least, and about none twice",
            instead="state at least two levels, and from 1 to as many bits",
        )
