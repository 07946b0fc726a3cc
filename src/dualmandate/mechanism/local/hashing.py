"""Public hash functions: where a word lies in a filter or a sketch, for each of many functions at once.

The functions are read off SHAKE-256 of the family's name and the word, 64 bits each, modulo the size: everybody can
work them out, and words of different families or functions lie as if thrown by chance. Privacy does not rest on them.
"""

from __future__ import annotations

from hashlib import shake_256

import numpy as np

from dualmandate.population.arrays import Integers


def places_of(word: str, *, family: str, functions: int, size: int) -> Integers:
    """The place from 0 to size − 1 that each function gives to a word; shape (functions,)."""
    fields = (family.encode(), word.encode())
    message = b"".join(len(each).to_bytes(8, "little") + each for each in fields)
    numbers = np.frombuffer(shake_256(message).digest(8 * functions), dtype="<u8")
    return np.asarray(numbers % np.uint64(size), dtype=np.int64)
