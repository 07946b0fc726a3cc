from __future__ import annotations

from collections.abc import Callable
from itertools import islice, pairwise

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.mechanism.noise import NoiseKey
from dualmandate.mechanism.noise.words import (
    CELLS_PER_BLOCK,
    COUNTER_BLOCKS,
    Words,
    calls,
    lane,
    word_buffers,
    words_at,
    words_of_cell,
)

EDGE = COUNTER_BLOCKS * CELLS_PER_BLOCK  # the first cell whose block number does not fit in 32 bits


def test_the_words_are_those_of_the_standard() -> None:
    """RFC 8439, section 2.3.2: key 00 … 1f, nonce 00 00 00 09 00 00 00 4a 00 00 00 00, block 1."""
    expected = bytes.fromhex(
        "10f1e7e4d13b5915500fdd1fa32071c4c7d1f4c733c068030422aa9ac3d46c4e"
        "d2826446079faa0914c2d705d98b02a2b5129cd1de164eb9cbd083e8a2503c4e"
    )
    first = 0x0900000000000001 * CELLS_PER_BLOCK
    words = words_at(NoiseKey(bytes(range(32))), 0x4A000000, cells=range(first, first + CELLS_PER_BLOCK))
    assert words.astype("<u8").tobytes() == expected


def test_a_lane_is_eight_times_depth_plus_level() -> None:
    assert [lane(level, depth) for depth in range(3) for level in range(8)] == list(range(24))
    with pytest.raises(AssertionError):
        lane(8, 0)


@given(st.integers(0, 2**34), st.integers(0, 3 * 2**32))
def test_calls_never_wrap_the_counter(first: int, count: int) -> None:
    runs = list(calls(first, first + count))
    assert sum(end - begin for begin, end in runs) == count
    assert [begin for begin, _ in runs[1:]] == [end for _, end in runs[:-1]]
    assert all(begin < end and begin // COUNTER_BLOCKS == (end - 1) // COUNTER_BLOCKS for begin, end in runs)


def test_the_cipher_refuses_to_wrap(key: NoiseKey) -> None:
    """Why calls are split; were this to change, the words would have to stay."""
    stream = Cipher(ChaCha20(key.content, (COUNTER_BLOCKS - 1).to_bytes(8, "little") + bytes(8)), mode=None).encryptor()
    with pytest.raises(ValueError, match="counter"):
        stream.update(bytes(128))


@pytest.mark.parametrize("start", [0, 3, 1_000_001, EDGE - 20, EDGE - 1, EDGE, 2 * EDGE - 3, 2**63 - 40])
def test_any_cell_alone_has_the_word_that_it_has_in_a_run(key: NoiseKey, start: int) -> None:
    cells = range(start, start + 40)
    run = words_at(key, 9, cells=cells)
    assert run.tolist() == [int(words_at(key, 9, cells=range(cell, cell + 1))[0]) for cell in cells]


def test_buffers_are_used_again(key: NoiseKey) -> None:
    buffers = word_buffers(100)
    first = words_at(key, 0, cells=range(5, 105), buffers=buffers)
    kept = first.copy()
    words_at(key, 1, cells=range(64), buffers=buffers)
    assert np.shares_memory(first, buffers[1])
    assert not buffers[0].any()
    assert np.array_equal(words_at(key, 0, cells=range(5, 105), buffers=buffers), kept)


def test_the_words_of_a_cell_go_down_its_lanes(key: NoiseKey) -> None:
    found = list(islice(words_of_cell(key, 77, level=2), 3))
    assert found == [int(words_at(key, each, cells=range(77, 78))[0]) for each in (2, 10, 18)]


def test_no_address_is_used_twice(make_key: Callable[..., NoiseKey]) -> None:
    """Of 3·10⁵ words of random plans none is equal to another; were an address used twice, two would be.

    (Different words of 64 bits are all different with probability 1 − 3·10⁻⁹.)
    """
    generator = np.random.default_rng(8)
    seen: list[Words] = []
    for plan in range(6):
        for measurement in ("block", "tract"):
            key = make_key(f"plan {plan}", measurement=measurement)
            start = int(generator.choice([0, EDGE - 500, 2 * EDGE - 333, int(generator.integers(2**60))]))
            cuts = [start, *sorted(start + generator.integers(1, 999, 3)), start + 1000]
            seen += [
                words_at(key, lane(level, depth), cells=range(int(begin), int(end)))
                for begin, end in pairwise(cuts)
                for depth in range(3)
                for level in range(8)
            ]
    words = np.concatenate(seen)
    assert len(words) == 6 * 2 * 3 * 8 * 1000
    assert len(np.unique(words)) == len(words)
