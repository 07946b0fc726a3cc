"""Selection by the exponential mechanism, drawn exactly: the better a candidate scores, the likelier it is taken.

P(i) ∝ exp(rate·score_i) for whole-number scores. Where one unit moves each score by at most Δ, the choice loses
ε = 2·rate·Δ, and ρ = (rate·Δ)²/2; where all scores move the same way (they all grow, or all shrink), half of that ε
and a quarter of that ρ. Source: [MT07]; its loss in ρ [CR21].

One word decides by inverting the distribution: in floats with a bound on their error, and where that leaves it open,
with further words and in balls, without end. So every choice has its exact probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.mechanism.noise.laws import Floors, ball_of, floors_of, precision, resolve
from dualmandate.mechanism.noise.words import WORD_BITS, words_of_cell
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Integers

if TYPE_CHECKING:
    from flint import arb

LARGEST_SCORE = 2**62
GUARD_BITS = 64
MOST_BEHIND = 745.0  # beyond, exp(−x) is nothing to floats
EXPONENT_ERROR = 2.0**-41  # relative, of exp(−x) in floats for x up to there
SUM_ERROR = 2.0**-52  # relative, that a sum of floats errs by with each term


@dataclass(frozen=True)
class Selection:
    """The law of a choice: P(i) ∝ exp(−rate·behind_i), `behind` being how far each candidate is from the best."""

    behind: tuple[int, ...]
    rate: Fraction

    @property
    def least(self) -> int | None:
        return 0

    @property
    def most(self) -> int | None:
        return len(self.behind) - 1

    def floors(self, values: range, bits: int) -> list[Floors]:
        with precision(bits + GUARD_BITS):
            sums = _sums(self, bits + GUARD_BITS)
            return [floors_of(sums[value] / sums[-1], bits) for value in values]


@lru_cache(maxsize=4)
def _sums(law: Selection, bits: int) -> tuple[arb, ...]:
    """Σ_{j ≤ i} exp(−rate·behind_j) for each i, in balls; `bits` is the precision in force, and part of the key."""
    from flint import arb

    del bits
    weights = {distance: (-ball_of(law.rate * distance)).exp() for distance in set(law.behind)}
    total, sums = arb(0), []
    for distance in law.behind:
        total += weights[distance]
        sums.append(total)
    return tuple(sums)


def select(scores: Sequence[int] | Integers, *, rate: Fraction, key: NoiseKey, draw: int = 0) -> int:
    """The number of the candidate that is taken; a function of the key and of `draw`, the number of the choice.

    Scores are whole numbers: those that are not are rounded by their maker, whose sensitivity says by how much.
    """
    numbers = np.asarray(scores)
    if numbers.ndim != 1 or not numbers.size or numbers.dtype.kind not in "iu":
        raise InvalidMechanism(
            f"a choice among scores of shape {numbers.shape} and type {numbers.dtype}",
            why="each of one or more candidates has one whole number, so that its probability is exact",
            instead="give a list of whole numbers, a score a candidate",
        )
    if not (isinstance(rate, Fraction | int) and not isinstance(rate, bool) and rate > 0):
        raise InvalidLoss(
            f"a choice at a rate of {rate!s:.40}",
            why="exact probabilities are set by a positive fraction",
            instead="state a Fraction: rate_of(loss, …) gives it",
        )
    if int(numbers.max()) > LARGEST_SCORE or int(numbers.min()) < -LARGEST_SCORE:
        raise InvalidMechanism(
            "scores beyond 2⁶²", why="their differences would not fit 64 bits", instead="score in larger units"
        )
    behind = int(numbers.max()) - numbers.astype(np.int64)
    words = words_of_cell(key, draw, level=0)
    first = next(words)
    found = _by_floats(behind, float(rate), first)
    return found if found is not None else _slowly(behind, Fraction(rate), first, words)


def rate_of(
    loss: Fraction,
    privacy_measure: PrivacyMeasure,
    protection: Protection,
    *,
    sensitivity: Fraction | int,
    one_way: bool = False,
) -> Fraction:
    """The rate of a choice that loses at most so much, where one unit moves each score by at most `sensitivity`.

    `one_way` says that adding a record moves no score down. Replacing one is not one way whatever the scores are.
    """
    if loss <= 0 or sensitivity <= 0:
        raise InvalidLoss(
            f"a choice for a loss of {loss!s:.40} among scores of sensitivity {sensitivity!s:.40}",
            why="both are positive",
            instead="state a positive loss, and how far one unit can move a score",
        )
    both_ways = 1 if one_way and protection.neighbors is Neighbors.ADD_OR_REMOVE else 2
    if privacy_measure is PrivacyMeasure.PURE_DP:
        return Fraction(loss) / both_ways / sensitivity
    # A choice of ε loses at most ρ = ε²/8; the root is rounded down.
    return 2 * root_below(2 * Fraction(loss)) / both_ways / sensitivity


def root_below(number: Fraction) -> Fraction:
    """The largest multiple of 2⁻⁶⁴ whose square is at most the number."""
    return Fraction(math.isqrt(int(number * 2**128)), 2**64)


def _by_floats(behind: Integers, rate: float, word: int) -> int | None:
    """The choice that a word decides, where floats are sure of it."""
    sums = np.cumsum(np.exp(-np.minimum(rate * behind, MOST_BEHIND)))
    total = sums[-1]
    at = total * (word / 2**WORD_BITS)
    slack = total * (EXPONENT_ERROR + len(behind) * SUM_ERROR)
    place = int(np.searchsorted(sums, at, side="right"))
    if place >= len(sums) or (place and at - sums[place - 1] <= slack) or sums[place] - at <= slack:
        return None
    return place


def _slowly(behind: Integers, rate: Fraction, first: int, others: Iterator[int]) -> int:
    """The same choice, exactly, for every word."""

    def words() -> Iterator[int]:
        yield first
        yield from others

    return resolve(Selection(tuple(behind.tolist()), rate), words())
