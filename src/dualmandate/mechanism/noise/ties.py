"""A draw from as many words as it takes: the slow way, exact for every word and every law.

The words of a cell, one after another, are the digits of one uniform number U in [0, 1). The draw is the smallest k
with U < P(X ≤ k). After each word U is known to lie in [n, n + 1)/2^bits; where that does not decide, the next word is
taken. More words never change a decision, so that it does not matter how sharp the bounds are.
"""

from __future__ import annotations

from collections.abc import Iterable

from dualmandate.mechanism.noise.laws import Floors, Law
from dualmandate.mechanism.noise.words import WORD_BITS


def resolve(law: Law, words: Iterable[int], *, word_bits: int = WORD_BITS) -> int:
    """The draw that these words decide; they must not end before."""
    number = bits = 0
    for word in words:
        number, bits = number << word_bits | word, bits + word_bits
        if number == 0 and law.least is None:
            continue  # U may still be smaller than any P(X ≤ k)
        value = first_not_below(law, number, bits=bits)
        # U ≥ P(X ≤ value − 1) is sure; n < l makes U < P(X ≤ value) sure.
        if number < _floors(law, value, bits)[0]:
            return value
    raise AssertionError("the words ended before they decided")


def first_not_below(law: Law, number: int, *, bits: int) -> int:
    """The smallest k whose upper floor is at least `number`; number > 0 where the law has no least value."""
    low, high = law.least, law.most
    reach = 1
    while low is None or high is None:  # the law has no ends: double until they are found
        if low is None and _floors(law, -reach, bits)[1] < number:
            low = -reach
        if high is None and _floors(law, reach, bits)[1] >= number:
            high = reach
        reach *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _floors(law, middle, bits)[1] < number else (low, middle)
    return low


def _floors(law: Law, value: int, bits: int) -> Floors:
    return law.floors(range(value, value + 1), bits)[0]
