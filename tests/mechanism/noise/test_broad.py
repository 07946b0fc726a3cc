"""Gaussian noise of large variance: the closed form against sums, and curves against thresholds and the slow way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dualmandate.mechanism.noise import GaussianSampler
from dualmandate.mechanism.noise.kernel import look_up
from dualmandate.mechanism.noise.laws import (
    LEAST_BROAD_VARIANCE,
    MARGIN,
    OVERLAP,
    BroadNormal,
    Normal,
    ThresholdCurves,
    beyond_degree,
    curves_of,
    resolve,
    table_of,
    thresholds_of,
)
from dualmandate.mechanism.noise.samplers import draw_slowly
from dualmandate.mechanism.noise.words import NoiseKey, Words

LEAST = Fraction(LEAST_BROAD_VARIANCE)
VARIANCES = [LEAST + Fraction(1, 3), Fraction(2**45, 7), Fraction(2**60)]
ENDS = [0, 1, 1000, 2**20, 2**30, 2**63 - 1, 2**63, 2**64 - 2**30, 2**64 - 2**20, 2**64 - 1000, 2**64 - 1]


def some_words(count: int) -> Words:
    found = np.random.default_rng(1777).integers(0, 2**64, size=count, dtype=np.uint64)
    return np.concatenate([found, np.array(ENDS, dtype=np.uint64)])


def looked_up(words: Words, variance: Fraction) -> tuple[list[int], set[int]]:
    curves, out = table_of(BroadNormal(variance)), np.empty(len(words), dtype=np.int64)
    assert isinstance(curves, ThresholdCurves)
    ties = set(curves.ties(words).tolist())
    assert look_up(words, curves, out=out) == len(ties)
    return out.tolist(), ties


@pytest.mark.parametrize("bits", [64, 128, 200])
def test_the_closed_form_is_the_sum(bits: int) -> None:
    """Every term of the sum, at the least variance, where the remainder is largest."""
    variance = LEAST + Fraction(1, 3)
    for value in (-30_000, -18_500, -10_000, -2_048, -5, -1, 0, 1, 7, 4_999, 15_000, 18_500, 30_000):
        [found] = BroadNormal(variance).floors(range(value, value + 1), bits)
        assert [found] == Normal(variance).floors(range(value, value + 1), bits)
        assert found[0] == found[1] or abs(value) == 30_000  # so near to 0 and 1 that neither tells


def test_curves_say_what_thresholds_say() -> None:
    variance, words = LEAST + Fraction(1, 3), some_words(300_000)
    found, ties = looked_up(words, variance)
    out = np.empty(len(words), dtype=np.int64)
    table = thresholds_of(Normal(variance))
    look_up(words, table, out=out)
    differing = {place for place, (one, other) in enumerate(zip(found, out.tolist(), strict=True)) if one != other}
    assert differing <= ties
    assert len(ties) <= len(ENDS)
    assert set(table.ties(words).tolist()) <= ties


def test_words_near_thresholds_are_ties() -> None:
    """A hundred thresholds: on them, within the margin, and beyond it on both sides."""
    variance = LEAST + Fraction(1, 3)
    table = thresholds_of(Normal(variance))
    places = np.linspace(len(table.lower) // 4, 3 * len(table.lower) // 4, 100).astype(np.int64)
    margin = int(MARGIN)
    for away in (-2 * margin, -margin // 2, 0, margin // 2, 2 * margin):
        words = table.lower[places] + np.int64(away).astype(np.uint64)
        found, ties = looked_up(words, variance)
        assert len(ties) == (0 if abs(away) > margin else 100)
        if away:
            assert found == (table.first + places + (away > 0)).tolist()


@pytest.mark.parametrize("variance", VARIANCES)
def test_curves_say_what_the_slow_way_says(variance: Fraction) -> None:
    words = some_words(60)
    found, ties = looked_up(words, variance)
    assert {60, 70} <= ties <= set(range(60, 71))
    for place in set(range(len(words))) - ties:
        assert found[place] == resolve(BroadNormal(variance), iter([int(words[place])]))


@pytest.mark.parametrize("variance", VARIANCES)
def test_what_curves_rest_on(variance: Fraction) -> None:
    """Pieces narrow enough for their degree, which meet where they end and reach as far as words do."""
    curves = curves_of(BroadNormal(variance))
    assert beyond_degree() < 0.01
    assert curves.step <= OVERLAP / 2
    ends = np.array([np.polyval(row[::-1], 1.0) for row in curves.coefficients[:-1]])
    gaps = ends - np.diff(curves.starts).astype(np.float64) - curves.coefficients[1:, 0]
    assert np.abs(gaps).max() < 64.0
    assert (int(curves.starts[0]), int(curves.starts[-1])) == (0, 2**64 - 1)


@pytest.mark.parametrize("variance", VARIANCES)
def test_curves_are_as_near_to_thresholds_as_they_promise(variance: Fraction) -> None:
    """At some values of every size: half of a third of the margin, where errors are largest."""
    law, curves = BroadNormal(variance), curves_of(BroadNormal(variance))
    sigma = float(variance) ** 0.5
    for z in np.linspace(-6.0, 6.0, 49):
        value = int(z * sigma)
        piece = int(np.floor(value * curves.step)) - curves.first
        curve = np.polyval(curves.coefficients[piece][::-1], value * curves.step - curves.first - piece)
        [(lower, upper)] = law.floors(range(value, value + 1), 64)
        assert upper - lower <= 1
        assert abs(lower - int(curves.starts[piece]) - curve) < MARGIN / 6


def test_a_sampler_draws_ties_and_others(key: NoiseKey, monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = GaussianSampler(Fraction(2**50))
    noise = sampler.draw(key, range(3000))
    assert stats.kstest(noise / 2**25, "norm").pvalue > 1e-4
    slow = [draw_slowly(sampler.levels, key, cell=cell) for cell in range(20)]
    assert noise[:20].tolist() == slow
    monkeypatch.setattr(ThresholdCurves, "ties", lambda curves, words: np.arange(5))
    monkeypatch.setattr(
        "dualmandate.mechanism.noise.kernel.look_up_curves", lambda *given, out, is_open: out.fill(7) or 5
    )
    assert sampler.draw(key, range(8)).tolist() == [*slow[:5], 7, 7, 7]


def test_where_tables_end_curves_go_on() -> None:
    kinds = [type(GaussianSampler(Fraction(2**22) + more).levels[0].law) for more in (0, 1)]
    assert kinds == [Normal, BroadNormal]


def test_a_word_is_a_tie_exactly_within_the_margin() -> None:
    """A straight curve with thresholds at every millionth word: a word w stands for all numbers from w to w + 1."""
    coefficients = np.zeros((1, 10))
    coefficients[0, 1] = 32e6
    curves = ThresholdCurves(1 / 32, 0, np.zeros(1, dtype=np.uint64), coefficients, np.zeros(2**14 + 1, dtype=np.int32))
    margin = int(MARGIN)
    for value in (1, 4, 7):
        away = np.array([-margin - 2, -margin - 1, -margin, 0, margin - 1, margin, margin + 1])
        words = (1_000_000 * value + away).astype(np.uint64)
        assert curves.ties(words).tolist() == [2, 3, 4]
        out = np.empty(len(words), dtype=np.int64)
        assert look_up(words, curves, out=out) == 3
        assert out[[0, 1, 5, 6]].tolist() == [value, value, value + 1, value + 1]
    assert curves.ties(np.array([0, margin - 1, margin, 40_000_000], dtype=np.uint64)).tolist() == [0, 1, 3]
