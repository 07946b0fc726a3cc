"""Random words by address: what ChaCha20 says at the place of a cell, under one key a measurement of one release.

Noise is a function of its key and of the cell's place. Two releases that met the same noise would show their difference
exactly, so a key is bound to everything that may differ between them: the sampler's version, the plan, the data and
the name of the measurement.

A word has 64 bits. Its address is a lane and a cell: the 16 bytes with which ChaCha20 starts are the block number
(cell // 8, 64 bits, little-endian) and the lane (8·depth + level, 64 bits, little-endian), and a block of 64 bytes
holds the words of 8 cells, little-endian. Level 0 is the draw, the next ones its further digits; depth 0 is the first
word of each, the next ones the words that resolve a tie. So no word ever serves two draws.
Source: [Ber08], [NL18].
"""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest

SAMPLER_VERSION = 1  # raised whenever the same words would become other noise: laws, levels, addresses
KEY_BYTES = 32


@dataclass(frozen=True)
class NoiseKey:
    """256 bits for ChaCha20, made by `subkey`; never printed. Whoever has it and the release has the exact counts."""

    content: bytes = field(repr=False)

    def __post_init__(self) -> None:
        _refuse_unless_key(self.content, "a noise key")


def subkey(
    secret: bytes, plan_digest: str, *, histogram_mac: bytes, measurement: str, version: int = SAMPLER_VERSION
) -> NoiseKey:
    """The key of one measurement: HMAC-SHA-256 under the release's secret of what it is bound to.

    The message is version, plan digest, HMAC of the exact histogram and the measurement's name, each preceded by its
    length in bytes (64 bits, little-endian), so that no two lists of fields give the same message.
    """
    _refuse_unless_key(secret, "the secret of a release")
    fields = (str(version).encode(), plan_digest.encode(), histogram_mac, measurement.encode())
    message = b"".join(len(each).to_bytes(8, "little") + each for each in fields)
    return NoiseKey(hmac.new(secret, message, sha256).digest())


def _refuse_unless_key(content: bytes, name: str) -> None:
    if not isinstance(content, bytes) or len(content) != KEY_BYTES:
        raise InvalidRequest(
            f"{name} that is not {KEY_BYTES} bytes",
            why="the promise of noise rests on 256 bits that nobody can guess",
            instead=f"take {KEY_BYTES} bytes from the operating system's generator",
        )


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
