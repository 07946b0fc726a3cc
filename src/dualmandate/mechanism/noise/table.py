"""A law as a table: which value each 64-bit word means, and which words leave it open."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.noise.broad import GUIDE_BITS, BroadNormal, ThresholdCurves, curves_of
from dualmandate.mechanism.noise.laws import Law
from dualmandate.mechanism.noise.ties import first_not_below
from dualmandate.mechanism.noise.words import WORD_BITS, Words

LARGEST_WORD = 2**WORD_BITS - 1


@dataclass(frozen=True, eq=False)
class NoiseTable:
    """Thresholds of one law: a word w means first + j, j the smallest with w ≤ upper[j], unless w ≥ lower[j] (a tie).

    Between lower[j] and upper[j] lies ⌊2⁶⁴·P(X ≤ first + j)⌋. A word that is 0 where the law has no least value, or
    2⁶⁴ − 1, is a tie, too. guide[g] is the j of the smallest word whose first 14 bits are g.
    """

    first: int
    lower: Words  # shape (values,), rising
    upper: Words  # shape (values,), rising; the same array where every floor is certain
    guide: NDArray[np.int32]  # shape (2¹⁴ + 1,)

    def ties(self, words: Words) -> NDArray[np.intp]:
        """Places of the words that leave the value open."""
        places = np.searchsorted(self.upper, words)
        return np.flatnonzero(words >= self.lower[places])


@lru_cache(maxsize=64)
def table_of(law: Law) -> NoiseTable | ThresholdCurves:
    """The table of a law, computed once; milliseconds for a thousand values."""
    return curves_of(law) if isinstance(law, BroadNormal) else thresholds_of(law)


def thresholds_of(law: Law) -> NoiseTable:
    """The table that has every value."""
    first = first_not_below(law, 1, bits=WORD_BITS) - 1 if law.least is None else law.least
    last = first_not_below(law, LARGEST_WORD, bits=WORD_BITS) if law.most is None else law.most
    floors = law.floors(range(first, last + 1), WORD_BITS)
    assert law.least is not None or floors[0][1] == 0  # only the word 0 may mean something smaller
    lower, upper = (_rising([min(pair[end], LARGEST_WORD) for pair in floors]) for end in (0, 1))
    assert upper[-1] == LARGEST_WORD  # only this word may mean something larger
    starts = np.arange(2**GUIDE_BITS, dtype=np.uint64) << np.uint64(WORD_BITS - GUIDE_BITS)
    guide = np.append(np.searchsorted(upper, starts), len(upper) - 1).astype(np.int32)
    return NoiseTable(first, lower, lower if np.array_equal(lower, upper) else upper, guide)


def _rising(numbers: list[int]) -> Words:
    """Bounds of rising numbers: each also bounds the next ones."""
    rising: Words = np.maximum.accumulate(np.array(numbers, dtype=np.uint64))
    return rising
