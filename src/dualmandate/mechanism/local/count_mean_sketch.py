"""Counts of words from a list without end: each device hashes its word to one of m bits, and flips every bit.

A device picks one of k public hash functions, sets the bit to which it sends the word, tells each of the m bits
truthfully with odds o = e^{ε/2}, and sends them with the number of the function. With u = 1/(o − 1) and b the bits of
the place of a word under the function that was used, whoever it was,

    f̂ = m/(m − 1)·(Σ ((1 + 2u)·b − u) − N/m),
    Var f̂ = (m/(m − 1))²·N·(u² + u) + Σ f'·(1 + (f' − 1)/k)/(m − 1),    f' the counts of all other words.

Unbiased and so spread over the hash functions as well as over the coins. The first term is privacy, the second are
words that meet in a bit: its part f'²/(k·(m − 1)) does not go away with more people, as functions are the same for all.
Source: [App17].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism.local.coins import WordSource, device_words, loss_of, odds_within, picked, told
from dualmandate.mechanism.local.hashing import places_of
from dualmandate.mechanism.local.intervals import normal_interval
from dualmandate.population import PrivacyLoss
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.rational import Written, rational_or

LARGEST_SKETCH = 2**28  # places of all functions


@dataclass(frozen=True)
class Sketch:
    """What is left of the reports: how many people used each function, and how many of their bits were 1."""

    ones: Integers  # shape (functions, width)
    people: Integers  # shape (functions,)

    def __add__(self, other: Sketch) -> Sketch:
        return Sketch(self.ones + other.ones, self.people + other.people)


@dataclass(frozen=True)
class CountMeanSketch:
    """What devices and the agency do: `width` bits a person, `functions` hash functions, any word counted later."""

    epsilon: Written
    functions: int  # k
    width: int  # m
    family: str = ""  # a public name of the hash functions: other names, other functions

    def __post_init__(self) -> None:
        if self.functions < 1 or self.width < 2 or self.functions * self.width > LARGEST_SKETCH:
            raise InvalidMechanism(
                f"a sketch of {self.functions:,} hash functions and {self.width:,} bits",
                why=f"in a single bit all words look alike, and a sketch has at most {LARGEST_SKETCH:,} places",
                instead="state at least one function and two bits",
            )
        assert self.odds > 1

    @cached_property
    def odds(self) -> Fraction:
        """The odds with which each bit tells the truth: those of two bits are not above e^ε."""
        instead = "state a positive, finite number"
        chosen = rational_or(InvalidLoss, self.epsilon, what=f"an epsilon of {self.epsilon!s:.40}", instead=instead)
        return odds_within(chosen / 2)

    @property
    def loss(self) -> PrivacyLoss:
        """What one report loses, rounded up: two words differ in two bits. Reports add up; nothing is memoized."""
        return loss_of(self.odds**2)

    def places(self, word: str) -> Integers:
        """The bit of a word under each function; shape (functions,)."""
        return places_of(word, family=self.family, functions=self.functions, size=self.width)

    def reports(self, words_told: Sequence[str], words: WordSource = device_words) -> tuple[Integers, Booleans]:
        """The function that each person used, shape (people,), and the bits, shape (people, width)."""
        used = picked(self.functions, len(words_told), words)
        known = {word: self.places(word) for word in dict.fromkeys(words_told)}
        bits = np.zeros((len(words_told), self.width), dtype=np.bool_)
        own = [known[word][function] for word, function in zip(words_told, used.tolist(), strict=True)]
        bits[np.arange(len(own)), own] = True
        truth = self.odds / (1 + self.odds)
        return used, told(bits, if_one=truth, if_zero=1 - truth, words=words)

    def sketch(self, used: Integers, bits: Booleans) -> Sketch:
        """Reports added up; sketches of parts of the people add up, too."""
        ones = np.zeros((self.functions, self.width), dtype=np.int64)
        np.add.at(ones, used, bits)
        return Sketch(ones, np.bincount(used, minlength=self.functions))

    def simulated(self, people: dict[str, int], *, generator: np.random.Generator) -> Sketch:
        """The sketch of so many people of each word, drawn from its law without a report for each; for studies."""
        shape = (self.functions, self.width)
        held, numbers = np.zeros(shape, dtype=np.int64), np.zeros(self.functions, dtype=np.int64)
        for word, number in people.items():
            using = generator.multinomial(number, np.full(self.functions, 1 / self.functions))
            held[np.arange(self.functions), self.places(word)] += using
            numbers += using
        truth = float(self.odds / (1 + self.odds))
        rest = np.broadcast_to(numbers[:, None], shape) - held
        return Sketch(generator.binomial(held, truth) + generator.binomial(rest, 1 - truth), numbers)

    def count(self, sketch: Sketch, word: str) -> float:
        """How many people hold a word, estimated without bias."""
        u, people = self._u, int(sketch.people.sum())
        ones = int(sketch.ones[np.arange(self.functions), self.places(word)].sum())
        return self.width / (self.width - 1) * ((1 + 2 * u) * ones - u * people - people / self.width)

    def variance(self, own: float, others: Integers | Floats) -> float:
        """Of that estimate, given how many people hold the word, and each of the other words."""
        u, people = self._u, own + float(np.sum(others))
        met = float(np.sum(others * (1 + np.maximum(others - 1, 0) / self.functions)))
        return (self.width / (self.width - 1)) ** 2 * people * (u * u + u) + met / (self.width - 1)

    def interval(self, sketch: Sketch, word: str, probability: float = 0.95) -> tuple[float, float]:
        """Where the count lies, whatever the other words are, if estimates are about normal; within 0 and N.

        The variance is that of all other people holding one word, the worst case.
        """
        people, found = int(sketch.people.sum()), self.count(sketch, word)
        own = min(max(found, 0.0), people)
        error = math.sqrt(self.variance(own, np.array([people - own])))
        return normal_interval(found, standard_error=error, probability=probability, largest=people)

    @cached_property
    def _u(self) -> float:
        return 1 / float(self.odds - 1)
