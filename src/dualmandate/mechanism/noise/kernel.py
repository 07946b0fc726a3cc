"""The compiled loops: words become values, and digits become a number.

Two work in whole numbers. The third, for curves, works in floats: it concludes nothing from a word that is nearer to a
threshold than all rounding together, so that its conclusions do not depend on how a processor rounds.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from dualmandate.mechanism.noise.laws import GUIDE_BITS, MARGIN, OVERLAP, NoiseTable, ThresholdCurves
from dualmandate.mechanism.noise.words import WORD_BITS, Words
from dualmandate.population.arrays import Booleans, Integers

_SHIFT = np.uint64(WORD_BITS - GUIDE_BITS)


def look_up(words: Words, table: NoiseTable | ThresholdCurves, *, out: Integers) -> int:
    """Write the value of each word; the number of ties, where what was written means nothing."""
    if isinstance(table, ThresholdCurves):
        return look_up_curves(words, table, out=out, is_open=np.empty(len(words), dtype=np.bool_))
    return int(_look_up(words, table.lower, table.upper, table.guide, table.first, out))


def look_up_curves(words: Words, curves: ThresholdCurves, *, out: Integers, is_open: Booleans) -> int:
    """The same between the thresholds of curves; which words are ties is written, too."""
    pieces = (curves.starts, curves.coefficients, curves.guide)
    return int(_look_up_curves(words, *pieces, (curves.first, curves.step), out, is_open))


def append_digit(numbers: Integers, digits: Integers, *, size: int) -> None:
    """Put a digit behind each number: y becomes size·y + digit, where y ≥ 0 stands for itself or for −1 − y."""
    _append_digit(numbers, digits, size)


def _look_up_loop(words: Any, lower: Any, upper: Any, guide: Any, first: Any, out: Any) -> Any:
    ties = 0
    for place in range(words.size):
        word = words[place]
        bucket = np.int64(word >> _SHIFT)
        low, high = guide[bucket], guide[bucket + 1]
        while low < high:
            middle = (low + high) >> 1
            if upper[middle] < word:
                low = middle + 1
            else:
                high = middle
        ties += word >= lower[low]
        out[place] = first + low
    return ties


def _threshold_loop(curve: Any, place: Any) -> Any:
    """The polynomial of a piece, by Horner's rule."""
    value = curve[-1]
    for n in range(curve.size - 2, -1, -1):
        value = value * place + curve[n]
    return value


_threshold = numba.njit(nogil=True)(_threshold_loop)


def _look_up_curves_loop(
    words: Any, starts: Any, coefficients: Any, guide: Any, grid: Any, out: Any, is_open: Any
) -> Any:
    first, step = grid
    values = 1.0 / step
    ties = 0
    for place in range(words.size):
        word = words[place]
        bucket = np.int64(word >> _SHIFT)
        low, high = guide[bucket], guide[bucket + 1]
        while low < high:  # the last piece that starts at the word or before
            middle = (low + high + 1) >> 1
            if starts[middle] <= word:
                low = middle
            else:
                high = middle - 1
        curve = coefficients[low]
        rest = np.float64(word - starts[low])
        at = rest / curve[1]
        for _ in range(2):  # by the first terms, then once by all
            cubic = at * (curve[1] + at * (curve[2] + at * curve[3]))
            at -= (curve[0] + cubic - rest) / (curve[1] + at * (2.0 * curve[2] + 3.0 * at * curve[3]))
        at -= (_threshold(curve, at) - rest) / (curve[1] + at * (2.0 * curve[2] + 3.0 * at * curve[3]))
        base = np.float64(first + low)
        value = np.int64(np.ceil((min(max(at, -OVERLAP), 1.0 + OVERLAP) + base) * values))
        left, right = (value - 1) * step - base, value * step - base
        below, above = _threshold(curve, left), _threshold(curve, right)
        if above <= rest:
            value, left, below, right = value + 1, right, above, (value + 1) * step - base
            above = _threshold(curve, right)
        elif below > rest:
            value, right, above, left = value - 1, left, below, (value - 2) * step - base
            below = _threshold(curve, left)
        is_inside = starts[low] <= word and left >= -OVERLAP and right <= 1.0 + OVERLAP
        is_sure = is_inside and below + MARGIN <= rest and rest + 1.0 + MARGIN <= above
        is_open[place] = not is_sure
        ties += not is_sure
        out[place] = value
    return ties


def _append_digit_loop(numbers: Any, digits: Any, size: Any) -> None:
    for place in range(numbers.size):
        sign = numbers[place] >> 63
        numbers[place] = ((numbers[place] ^ sign) * size + digits[place]) ^ sign


_look_up = numba.njit(cache=True, nogil=True)(_look_up_loop)
_append_digit = numba.njit(cache=True, nogil=True)(_append_digit_loop)
_look_up_curves = numba.njit(cache=True, nogil=True)(_look_up_curves_loop)
