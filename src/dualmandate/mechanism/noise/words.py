"""Random words by address: what ChaCha20 says under a key at the place of a cell.

A word has 64 bits. Its address is a lane and a cell: the 16 bytes with which ChaCha20 starts are the block number
(cell // 8, 64 bits, little-endian) and the lane (8·depth + level, 64 bits, little-endian), and a block of 64 bytes
holds the words of 8 cells, little-endian. Level 0 is the draw, the next ones its further digits; depth 0 is the first
word of each, the next ones the words that resolve a tie. So no word ever serves two draws.
Source: [Ber08], [NL18].
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.noise.key import NoiseKey

WORD_BITS = 64
CELLS_PER_BLOCK = 8
LEVELS = 8  # a draw has at most as many digits
COUNTER_BLOCKS = 2**32  # the cipher counts in the low 32 bits of the block number and refuses to carry
_BLOCK_BYTES = 64

Words = NDArray[np.uint64]


def lane(level: int, depth: int) -> int:
    """The number of a stream of words, one word a cell."""
    assert 0 <= level < LEVELS
    assert depth >= 0
    return LEVELS * depth + level


def calls(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Blocks first, …, stop − 1 as runs within which the low 32 bits of the block number do not wrap."""
    while first < stop:
        end = min(stop, (first // COUNTER_BLOCKS + 1) * COUNTER_BLOCKS)
        yield first, end
        first = end


def words_at(key: NoiseKey, lane: int, *, cells: range, buffers: tuple[Words, Words] | None = None) -> Words:
    """The words of consecutive cells, shape (len(cells),); a view of the second buffer.

    The first buffer holds zeros, and stays so; both have room for the whole blocks that the cells lie in.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

    first, stop = cells.start // CELLS_PER_BLOCK, -(-cells.stop // CELLS_PER_BLOCK)
    zeros, filled = buffers or word_buffers(len(cells))
    source, target = zeros.view(np.uint8).data, filled.view(np.uint8).data
    for begin, end in calls(first, stop):
        start = begin.to_bytes(8, "little") + lane.to_bytes(8, "little")
        stream = Cipher(ChaCha20(key.content, start), mode=None).encryptor()
        part = slice((begin - first) * _BLOCK_BYTES, (end - first) * _BLOCK_BYTES)
        stream.update_into(source[part], target[part])
    skipped = cells.start - first * CELLS_PER_BLOCK
    return filled[skipped : skipped + len(cells)]


def word_buffers(count: int) -> tuple[Words, Words]:
    """Zeros, and room for the words of so many cells wherever they start."""
    size = (count // CELLS_PER_BLOCK + 2) * CELLS_PER_BLOCK
    return np.zeros(size, dtype="<u8"), np.empty(size, dtype="<u8")


def words_of_cell(key: NoiseKey, cell: int, *, level: int) -> Iterator[int]:
    """All words of one cell and level, without end: the first decides, unless it is a tie."""
    depth = 0
    while True:
        yield int(words_at(key, lane(level, depth), cells=range(cell, cell + 1))[0])
        depth += 1
