from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, repeat

import mpmath
import numpy as np
import pytest
from tests.mechanism.noise.reference import Distribution, gaussian_sums, laplace_sums

from dualmandate.mechanism.noise import (
    GaussianSampler,
    LaplaceSampler,
    NoiseKey,
    Sampler,
    StaircaseSampler,
    samplers,
    words,
)
from dualmandate.mechanism.noise.laws import (
    Floors,
    GeometricDigit,
    Law,
    Normal,
    StairPlace,
    TwoSided,
    resolve,
    table_of,
    thresholds_of,
)
from dualmandate.mechanism.noise.samplers import Level, draw_noise, draw_slowly, wrapped
from dualmandate.mechanism.noise.words import Words

LARGEST = 2**64 - 1
LAWS: list[tuple[Law, Distribution]] = [
    (TwoSided(Fraction(1)), laplace_sums(Fraction(1))),
    (TwoSided(Fraction(1, 10)), laplace_sums(Fraction(10))),
    (Normal(Fraction(1)), gaussian_sums(Fraction(1))),
    (Normal(Fraction(100)), gaussian_sums(Fraction(100))),
]
SAMPLERS = [
    LaplaceSampler(Fraction(3)),
    LaplaceSampler(Fraction(1000)),
    GaussianSampler(Fraction(30)),
    StaircaseSampler(Fraction(1, 2), step=6, high=2),
]


@dataclass(frozen=True)
class Vague:
    """A law that is less sure of itself than it could be, by 2^58 at any number of bits."""

    law: Law

    @property
    def least(self) -> int | None:
        return self.law.least

    @property
    def most(self) -> int | None:
        return self.law.most

    def floors(self, values: range, bits: int) -> list[Floors]:
        known = self.law.floors(values, bits)
        return [(max(low - 2**58, 0), min(up + 2**58, 2**bits) if up > 0 else up) for low, up in known]


@pytest.mark.parametrize(("law", "exact"), LAWS, ids=str)
def test_small_words_are_all_resolved_rightly(law: Law, exact: Distribution) -> None:
    """Every one of 2¹² beginnings of three words of 4 bits: the draw is the smallest k with U < P(X ≤ k)."""
    for number in range(2**12):
        digits = [number >> 8, number >> 4 & 15, number & 15]
        value = resolve(law, chain(digits, repeat(9)), word_bits=4)
        uniform = mpmath.mpf(number) + mpmath.mpf(9) / 15  # 0.999… in base 16 is 9/15
        assert exact.scaled(value - 1, 12) <= uniform < exact.scaled(value, 12)


@pytest.mark.parametrize(("law", "exact"), LAWS, ids=str)
def test_a_word_on_a_threshold_is_decided_by_the_next(law: Law, exact: Distribution) -> None:
    table = thresholds_of(law)
    for place in (1, len(table.lower) // 3, len(table.lower) // 2, len(table.lower) - 2):
        word, value = int(table.lower[place]), table.first + place
        assert table.ties(np.array([word], dtype=np.uint64)).tolist() == [0]
        second = exact.floor(value, 128) - (word << 64)
        assert 0 <= second < 2**64
        assert resolve(law, iter([word, second - 1])) == value
        assert resolve(law, iter([word, second + 1])) > value
        third = exact.floor(value, 192) - (((word << 64) + second) << 64)
        assert resolve(law, iter([word, second, third - 1])) == value
        assert resolve(law, iter([word, second, third + 1])) > value


@pytest.mark.parametrize(("law", "exact"), LAWS, ids=str)
def test_the_first_and_the_last_word_reach_beyond_the_table(law: Law, exact: Distribution) -> None:
    table = thresholds_of(law)
    assert table.ties(np.array([0, LARGEST], dtype=np.uint64)).tolist() == [0, 1]
    middle = 2**63
    low, high = resolve(law, iter([0, middle])), resolve(law, iter([LARGEST, middle]))
    assert low <= table.first + 1 < table.first + len(table.lower) - 1 <= high
    for value, number in ((low, middle), (high, (LARGEST << 64) + middle)):
        assert exact.floor(value - 1, 128) < number < exact.floor(value, 128)
    deep = resolve(law, iter([0, 0, middle]))
    assert exact.floor(deep - 1, 192) < middle < exact.floor(deep, 192)
    assert deep < low


def test_a_threshold_that_is_a_whole_number_is_no_trap() -> None:
    """With four places alike the floors are exact: 2⁶²; a word on it belongs to the next place."""
    law = StairPlace(Fraction(1), 4, 0)
    assert law.floors(range(1), 64) == [(2**62, 2**62)]
    assert resolve(law, iter([2**62 - 1])) == 0
    assert resolve(law, iter([2**62, 0, 0, 1])) == 1
    assert resolve(law, iter([0])) == 0
    assert resolve(law, iter([LARGEST])) == 3


def test_words_that_end_early_are_an_error() -> None:
    with pytest.raises(AssertionError, match="ended before"):
        resolve(TwoSided(Fraction(1)), iter([0, 0]))


@pytest.mark.parametrize(
    "law", [law for law, _ in LAWS] + [GeometricDigit(Fraction(1, 9), 16), StairPlace(Fraction(1), 6, 2)], ids=str
)
def test_sharper_bounds_never_change_a_draw(law: Law, key: NoiseKey) -> None:
    """A law that calls one word in ten a tie gives the same noise as one that never does."""
    levels = [Level.alike(TwoSided(Fraction(3))), Level.alike(law, 16)] if law.most else [Level.alike(law)]
    vague = [Level.alike(Vague(level.law), level.size) for level in levels]
    cells = range(2000)
    found = words.words_at(key, 0, cells=cells)
    assert not table_of(levels[0].law).ties(found).size
    assert table_of(vague[0].law).ties(found).size > 50
    assert np.array_equal(draw_noise(vague, key, cells=cells), draw_noise(levels, key, cells=cells))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_the_slow_way_and_the_fast_way_agree(sampler: Sampler, key: NoiseKey) -> None:
    fast = sampler.draw(key, range(500, 700))
    assert fast.tolist() == [draw_slowly(sampler.levels, key, cell=cell) for cell in range(500, 700)]


@pytest.mark.parametrize("is_below", [False, True])
@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
def test_a_tie_in_a_block_is_resolved(
    sampler: Sampler, is_below: bool, key: NoiseKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A word on a threshold or at an end, in every level, before a small and a large word: only its cell moves."""
    cells = range(1000, 1030)
    untouched = sampler.draw(key, cells).tolist()
    place = next(each for each, noise in enumerate(untouched) if (noise < 0) == is_below)
    cell = cells[place]
    forced: dict[int, int] = {}
    real = words.words_at

    def words_at(key: NoiseKey, lane: int, *, cells: range, buffers: tuple[Words, Words] | None = None) -> Words:
        found = real(key, lane, cells=cells, buffers=buffers)
        if cell in cells:
            found[cell - cells.start] = forced.get(lane, found[cell - cells.start])
        return found

    monkeypatch.setattr(words, "words_at", words_at)
    monkeypatch.setattr(samplers, "words_at", words_at)
    for level, word in crafted(sampler, is_below):
        found = set()
        for after in (0, LARGEST):
            forced = {level: word, level + 8: after}
            expected = draw_slowly(sampler.levels, key, cell=cell)
            assert sampler.draw(key, cells).tolist() == [*untouched[:place], expected, *untouched[place + 1 :]]
            found.add(expected)
        assert len(found) == 2 or word == LARGEST


def crafted(sampler: Sampler, is_below: bool) -> Iterator[tuple[int, int]]:
    """First words that are ties, with their level."""
    for place, level in enumerate(sampler.levels):
        table = thresholds_of(level.below if is_below else level.law)
        last = len(table.lower) - 1
        for word in {int(table.lower[each]) for each in (0, 1, last // 2, last // 2 + 1, last - 1, last)}:
            assert table.ties(np.array([word], dtype=np.uint64)).size
            yield place, word


def test_numbers_beyond_64_bits_wrap(make_key: Callable[..., NoiseKey]) -> None:
    assert [wrapped(each) for each in (0, -1, 2**63 - 1, 2**63, -(2**63) - 1, 2**64 + 5)] == [
        *(0, -1, 2**63 - 1, -(2**63)),
        *(2**63 - 1, 5),
    ]
    levels = [Level.alike(TwoSided(Fraction(1))), *[Level.alike(GeometricDigit(Fraction(1, 10**9), 1000), 1000)] * 7]
    fast = draw_noise(levels, make_key(), cells=range(50))
    slow = [draw_slowly(levels, make_key(), cell=cell) for cell in range(50)]
    assert max(map(abs, slow)) > 2**64
    assert fast.tolist() == [wrapped(each) for each in slow]
