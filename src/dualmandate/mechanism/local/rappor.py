"""RAPPOR: words from devices, again and again, each answer randomized twice.

A device belongs to one of m cohorts, for ever. It sets the bits of a Bloom filter of k bits to which the h hash
functions of its cohort send its word. The *permanent response* is drawn once for a word and kept: each bit is replaced
with probability f by an even coin. Each *report* sends a 1 with probability q where the permanent response has a 1, and
with p where it has a 0. With p* = ½f(p + q) + (1 − f)p and q* = ½f(p + q) + (1 − f)q a bit is reported as 1 with
probability q* where the word sets it, and p* where it does not.

Two words differ in at most h bits either way. So one report loses h·ln(q*(1 − p*)/(p*(1 − q*))), and all reports of one
word, however many, less than 2h·ln((1 − f/2)/(f/2)). After n reports of a bit s ones have chances
(1 − f/2)·q^s(1 − q)^(n−s) + (f/2)·p^s(1 − p)^(n−s) where the word sets it and the like where it does not, the ratio is
largest at s = n and s = 0, and the loss of n reports is the logarithm of a fraction that is worked out exactly. A new
word costs as much again, as does a second question that goes with the first: what is promised is about one word.
Source: [EPK14].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.local.coins import WordSource, device_words, loss_of, picked, told
from dualmandate.mechanism.local.hashing import places_of
from dualmandate.population import PrivacyLoss
from dualmandate.population.arrays import Booleans, Integers

LARGEST_FILTER = 2**16  # bits
MOST_REPORTS = 1_000  # whose loss is worked out exactly; beyond, that of the permanent response


@dataclass(frozen=True)
class RapporCounts:
    """What is left of the reports: how many people there are in each cohort, and how many of their bits were 1."""

    ones: Integers  # shape (cohorts, bits)
    people: Integers  # shape (cohorts,)

    def __add__(self, other: RapporCounts) -> RapporCounts:
        return RapporCounts(self.ones + other.ones, self.people + other.people)


@dataclass(frozen=True)
class Rappor:
    """What devices do, and what their reports lose. All probabilities are fractions, so that all of it is exact."""

    bits: int  # k
    hashes: int  # h
    cohorts: int  # m
    permanent: Fraction  # f, with which a bit of the permanent response is an even coin
    one_if_one: Fraction = Fraction(3, 4)  # q
    one_if_zero: Fraction = Fraction(1, 2)  # p
    family: str = ""  # a public name of the hash functions: other names, other functions

    def __post_init__(self) -> None:
        if not (2 <= self.bits <= LARGEST_FILTER and 1 <= self.hashes < self.bits):
            raise InvalidMechanism(
                f"a Bloom filter of {self.bits:,} bits and {self.hashes:,} hash functions",
                why="words are told apart by bits that one sets and the other does not, and a single bit is set by all",
                instead=f"state from 2 to {LARGEST_FILTER:,} bits, and at least one hash function, fewer than bits",
            )
        if self.cohorts < 1:
            raise InvalidMechanism(
                f"reports of {self.cohorts} cohorts",
                why="each device uses the hash functions of its cohort",
                instead="state at least one cohort; more of them tell more words apart",
            )
        chances = (self.permanent, self.one_if_one, self.one_if_zero)
        exact = all(isinstance(each, Fraction | int) and not isinstance(each, bool) for each in chances)
        if not (exact and 0 < self.permanent < 1):
            raise InvalidMechanism(
                f"a permanent response with f = {self.permanent!s:.40}",
                why="at f = 0 reports that come again and again tell the word for certain, at f = 1 they tell nothing",
                instead="state a Fraction strictly between 0 and 1",
            )
        if not (exact and 0 <= self.one_if_zero < self.one_if_one <= 1):
            raise InvalidMechanism(
                f"reports of a 1 with probability {self.one_if_one!s:.40}, and {self.one_if_zero!s:.40} for a 0",
                why="a bit says something where a 1 is reported as 1 more often than a 0 is",
                instead="state Fractions with 0 ≤ p < q ≤ 1; 0 and 1 report the permanent response itself",
            )

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """q* and p*: with which a bit is reported as 1 where the word sets it, and where it does not."""
        q, p = self._marginal(self.one_if_one, self.one_if_zero)
        return q, p

    def ratio(self, reports: int | None = 1) -> Fraction:
        """By which factor reports can be likelier for one word than for another, exactly.

        Of so many reports of one word; None: of the permanent response, which bounds any number of them.
        """
        if reports is not None and not 1 <= reports <= MOST_REPORTS:
            raise InvalidMechanism(
                f"the loss of {reports:,} reports",
                why=f"it is worked out for 1 to {MOST_REPORTS:,}, and for any number by the permanent response",
                instead="ask for the permanent response, reports=None",
            )
        half = Fraction(self.permanent) / 2
        if reports is None:
            set_bits = unset_bits = (1 - half) / half
        else:
            q, p = self._marginal(Fraction(self.one_if_one) ** reports, Fraction(self.one_if_zero) ** reports)
            zero_q, zero_p = self._marginal(
                (1 - Fraction(self.one_if_one)) ** reports, (1 - Fraction(self.one_if_zero)) ** reports
            )
            set_bits, unset_bits = q / p, zero_p / zero_q
        larger, smaller = max(set_bits, unset_bits), min(set_bits, unset_bits)
        return larger**self.hashes * smaller ** min(self.hashes, self.bits - self.hashes)

    def loss(self, reports: int | None = 1) -> PrivacyLoss:
        """ε of so many reports of one word, rounded up; None: however many."""
        return loss_of(self.ratio(reports))

    def filters(self, word: str) -> Booleans:
        """The bits that a word sets in each cohort; shape (cohorts, bits)."""
        functions = self.cohorts * self.hashes
        places = places_of(word, family=self.family, functions=functions, size=self.bits)
        found = np.zeros((self.cohorts, self.bits), dtype=np.bool_)
        np.put_along_axis(found, places.reshape(self.cohorts, self.hashes), True, axis=1)
        return found

    def assigned(self, people: int, words: WordSource = device_words) -> Integers:
        """The cohort of each person, kept for ever; shape (people,)."""
        return picked(self.cohorts, people, words)

    def permanent_responses(
        self, words_told: Sequence[str], cohorts: Integers, words: WordSource = device_words
    ) -> Booleans:
        """What each device keeps for its word; shape (people, bits). Drawn anew only for another word."""
        known = {word: self.filters(word) for word in dict.fromkeys(words_told)}
        bits = np.array([known[word][cohort] for word, cohort in zip(words_told, cohorts.tolist(), strict=True)])
        half = Fraction(self.permanent) / 2
        return told(bits.reshape(-1, self.bits), if_one=1 - half, if_zero=half, words=words)

    def reports(self, kept: Booleans, words: WordSource = device_words) -> Booleans:
        """One report from each device that keeps these permanent responses; shape (people, bits)."""
        return told(kept, if_one=Fraction(self.one_if_one), if_zero=Fraction(self.one_if_zero), words=words)

    def counts(self, reports: Booleans, cohorts: Integers) -> RapporCounts:
        """Reports added up by cohort; counts of parts of the people add up, too."""
        ones = np.zeros((self.cohorts, self.bits), dtype=np.int64)
        np.add.at(ones, cohorts, reports)
        return RapporCounts(ones, np.bincount(cohorts, minlength=self.cohorts))

    def simulated(self, people: dict[str, int], *, generator: np.random.Generator) -> RapporCounts:
        """One report each of so many people of each word, drawn from its law without the reports; for studies."""
        held, numbers = np.zeros((self.cohorts, self.bits), dtype=np.int64), np.zeros(self.cohorts, dtype=np.int64)
        for word, number in people.items():
            living = generator.multinomial(number, np.full(self.cohorts, 1 / self.cohorts))
            held += living[:, None] * self.filters(word)
            numbers += living
        q, p = (float(chance) for chance in self.chances)
        rest = numbers[:, None] - held
        return RapporCounts(generator.binomial(held, q) + generator.binomial(rest, p), numbers)

    def _marginal(self, if_kept: Fraction, if_not: Fraction) -> tuple[Fraction, Fraction]:
        """The chance of what a kept 1 and a kept 0 report so often, where the word sets the bit and where not."""
        half = Fraction(self.permanent) / 2
        return (1 - half) * if_kept + half * if_not, half * if_kept + (1 - half) * if_not
