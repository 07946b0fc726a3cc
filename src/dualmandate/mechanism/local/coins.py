"""Coins that people's devices flip: probabilities are fractions, and what falls is exact.

A random 64-bit word is compared with the first 64 binary digits of the probability; where they are equal, which happens
once in 2⁶⁴, the next word decides by the next digits, and so on. Nothing is rounded, so that what is said of a report's
privacy holds of the very numbers that were drawn. A truth is told with odds that are a fraction, the largest one of 32
binary places that is not above e^ε; the loss that is stated is the logarithm of such a fraction, rounded up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dualmandate.errors import InvalidLoss
from dualmandate.mechanism.noise.laws import GUARD_BITS, ball_of, precision
from dualmandate.mechanism.noise.words import WORD_BITS, Words
from dualmandate.population import PrivacyLoss
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.population.rational import Written, rational_or, rounded_up

ODDS_BITS = 32  # binary places of the odds with which a truth is told
LEAST_EPSILON = Fraction(1, 2**20)  # odds of so many places tell smaller ones from even odds no more
LARGEST_EPSILON = 64
LOSS_DIGITS = 6
_LOSS_BITS = 128

WordSource = Callable[[int], Words]  # so many random 64-bit words


def device_words(count: int) -> Words:
    """Words of the operating system's generator: what a person's own device flips its coins with."""
    return np.frombuffer(os.urandom(8 * count), dtype="<u8")


def simulated_words(generator: np.random.Generator) -> WordSource:
    """Words of a simulation; never for people."""

    def words(count: int) -> Words:
        return generator.integers(0, 2**WORD_BITS, count, dtype=np.uint64)

    return words


def flipped(probability: Fraction, count: int, words: WordSource) -> Booleans:
    """So many coins that fall on True with exactly this probability; shape (count,)."""
    if not 0 < probability < 1:
        return np.full(count, probability > 0)
    digits, rest = divmod(probability.numerator << WORD_BITS, probability.denominator)
    drawn = words(count)
    found: Booleans = drawn < np.uint64(digits)
    (ties,) = np.nonzero(drawn == np.uint64(digits))
    if len(ties):
        found[ties] = flipped(Fraction(rest, probability.denominator), len(ties), words)
    return found


def told(bits: Booleans, *, if_one: Fraction, if_zero: Fraction, words: WordSource) -> Booleans:
    """Each bit reported as 1 with the one probability where it is 1, and with the other where it is 0; same shape."""
    flat = bits.reshape(-1)
    found = np.empty(flat.shape, dtype=np.bool_)
    ones = int(flat.sum())
    found[flat] = flipped(if_one, ones, words)
    found[~flat] = flipped(if_zero, len(flat) - ones, words)
    return found.reshape(bits.shape)


def picked(choices: int, count: int, words: WordSource) -> Integers:
    """So many whole numbers from 0 to choices − 1, each exactly as likely as any other; shape (count,)."""
    limit = 2**WORD_BITS // choices * choices  # words from here on would favor small numbers, and are drawn again
    found = np.empty(count, dtype=np.int64)
    (empty,) = np.nonzero(np.ones(count, dtype=np.bool_))
    while len(empty):
        drawn = words(len(empty))
        kept = drawn <= np.uint64(limit - 1)
        found[empty[kept]] = (drawn[kept] % np.uint64(choices)).astype(np.int64)
        empty = empty[~kept]
    return found


def odds_within(epsilon: Written) -> Fraction:
    """The largest odds of 32 binary places that do not exceed e^ε."""
    instead = f"state an epsilon between 2^-20 and {LARGEST_EPSILON}"
    chosen = rational_or(InvalidLoss, epsilon, what=f"a report at an epsilon of {epsilon!s:.40}", instead=instead)
    if not LEAST_EPSILON <= chosen <= LARGEST_EPSILON:
        raise InvalidLoss(
            f"a report at an epsilon of {float(chosen):g}",
            why="a coin that is nearly even tells nothing, and one that hardly ever lies protects nobody",
            instead=instead,
        )
    with precision(_LOSS_BITS + GUARD_BITS):
        scaled = ball_of(chosen).exp() * 2**ODDS_BITS
        return Fraction(int(scaled.floor().unique_fmpz()), 2**ODDS_BITS)


def loss_of(ratio: Fraction) -> PrivacyLoss:
    """ε = ln of the largest ratio of the chances of a report, rounded up to six digits."""
    with precision(_LOSS_BITS + GUARD_BITS):
        above = (ball_of(ratio).log() * 2**_LOSS_BITS).upper().ceil()
        exact = Fraction(int(above.unique_fmpz()), 2**_LOSS_BITS)
    return PrivacyLoss(Fraction(rounded_up(exact, LOSS_DIGITS)))
