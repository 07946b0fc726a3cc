"""The two compiled loops: words become values, and digits become a number. Whole numbers only."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.noise.table import GUIDE_BITS, Table
from dualmandate.mechanism.noise.words import WORD_BITS, Words

_SHIFT = np.uint64(WORD_BITS - GUIDE_BITS)


def look_up(words: Words, table: Table, *, out: NDArray[np.int64]) -> int:
    """Write the value of each word; the number of ties, where what was written means nothing."""
    return int(_look_up(words, table.lower, table.upper, table.guide, table.first, out))


def append_digit(numbers: NDArray[np.int64], digits: NDArray[np.int64], *, size: int) -> None:
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


def _append_digit_loop(numbers: Any, digits: Any, size: Any) -> None:
    for place in range(numbers.size):
        sign = numbers[place] >> 63
        numbers[place] = ((numbers[place] ^ sign) * size + digits[place]) ^ sign


_look_up = numba.njit(cache=True, nogil=True)(_look_up_loop)
_append_digit = numba.njit(cache=True, nogil=True)(_append_digit_loop)
