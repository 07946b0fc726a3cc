from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import mpmath
import numpy as np
import pytest
from tests.mechanism.noise.reference import Distribution, gaussian_sums, laplace_sums, number, staircase_sums

from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, Sampler, StaircaseSampler, subkey
from dualmandate.mechanism.noise.laws import (
    GeometricDigit,
    Law,
    NoiseTable,
    Normal,
    StairPlace,
    TwoSided,
    table_of,
    thresholds_of,
)

BITS = 192
ONE_TABLE: list[tuple[Law, Distribution]] = [
    *((TwoSided(1 / scale), laplace_sums(scale)) for scale in map(Fraction, ("1/50", "2/3", "1", "10"))),
    *((Normal(variance), gaussian_sums(variance)) for variance in map(Fraction, ("1/50", "2/3", "1", "100", "2500/7"))),
]


@pytest.mark.parametrize(("law", "exact"), ONE_TABLE, ids=str)
def test_floors_are_those_of_the_definition(law: Law, exact: Distribution) -> None:
    values = range(-exact.reach, exact.reach)
    for value, (lower, upper) in zip(values, law.floors(values, BITS), strict=True):
        assert lower <= exact.floor(value, BITS) <= upper
        assert upper - lower <= 1


def test_every_threshold_of_a_table_is_certain() -> None:
    for law, exact in ONE_TABLE:
        table = thresholds_of(law)
        assert table.lower is table.upper
        values = range(table.first, table.first + len(table.lower))
        assert table.lower.tolist() == [exact.floor(value, 64) for value in values]


@pytest.mark.parametrize(
    "law",
    [
        *(law for law, _ in ONE_TABLE),
        Normal(Fraction(10**5, 7)),
        TwoSided(Fraction(1, 64)),
        TwoSided(Fraction(1, 1000), fold=16),
        TwoSided(Fraction(1, 30), step=7, high=3),
        TwoSided(Fraction(40), step=2),
        GeometricDigit(Fraction(1, 70_000), 1024),
        GeometricDigit(Fraction(1, 10**9), 1024),
        GeometricDigit(Fraction(1, 99), 8),
        GeometricDigit(Fraction(3), 2),
    ],
    ids=str,
)
def test_a_fast_table_holds_every_threshold_between_its_bounds(law: Law) -> None:
    """And hardly any word besides: a draw is never another one, and next to none are decided the slow way."""
    fast, exact = table_of(law), thresholds_of(law)
    assert isinstance(fast, NoiseTable)
    assert (fast.first, len(fast.lower)) == (exact.first, len(exact.lower))
    assert bool(np.all((fast.lower <= exact.lower) & (exact.upper <= fast.upper)))
    assert float((fast.upper - fast.lower).astype(np.float64).sum()) < 2.0**64 * 1e-9
    starts = np.arange(2**14, dtype=np.uint64) << np.uint64(50)
    assert fast.guide[:-1].tolist() == np.searchsorted(fast.upper, starts).tolist()


@pytest.mark.parametrize("scale", ["1/3", "1", "10", "1000/7"])
def test_neighbors_differ_by_exactly_the_loss(scale: str) -> None:
    """|log P(k)/P(k + 1)| = 1/scale for every k, to 10⁻²⁰⁰: the promise of pure ε, from the floors themselves."""
    bits, unit_loss = 1200, 1 / Fraction(scale)
    values = range(-40, 40)
    floors = TwoSided(unit_loss).floors(values, bits)
    # P(X ≤ k) − P(X ≤ k − 1), from below and from above, in units of 2^−bits
    masses = [(now[0] - before[1] - 1, now[1] + 1 - before[0]) for before, now in pairwise(floors)]
    with mpmath.workdps(400):
        for place, (one, other) in enumerate(pairwise(masses)):
            below = mpmath.log(mpmath.mpf(one[0]) / other[1])
            above = mpmath.log(mpmath.mpf(one[1]) / other[0])
            expected = number(unit_loss) if values[place + 1] >= 0 else -number(unit_loss)
            assert below <= expected <= above
            assert above - below < mpmath.mpf(10) ** -200


@pytest.mark.parametrize(
    ("sampler", "exact"),
    [
        (LaplaceSampler(Fraction(70)), laplace_sums(Fraction(70))),
        (LaplaceSampler(Fraction(200, 3)), laplace_sums(Fraction(200, 3))),
        (StaircaseSampler(Fraction(1), step=10, high=3), staircase_sums(Fraction(1), 10, 3)),
        (StaircaseSampler(Fraction(7, 3), step=4, high=1), staircase_sums(Fraction(7, 3), 4, 1)),
        (StaircaseSampler(Fraction(2), step=3, high=3), staircase_sums(Fraction(2), 3, 3)),
        (StaircaseSampler(Fraction(1, 70), step=2, high=1), staircase_sums(Fraction(1, 70), 2, 1)),
    ],
    ids=str,
)
def test_levels_multiply_to_the_law(sampler: Sampler, exact: Distribution) -> None:
    """The probability of a value is the product over its levels: exact to 2⁻¹⁸⁰, on both sides of zero."""
    levels = sampler.levels
    assert len(levels) > 1
    with mpmath.workdps(80):
        for value in (*range(-30, 30), -500, -151, 149, 600):
            rest, probability = value if value >= 0 else -1 - value, mpmath.mpf(1)
            for level in reversed(levels[1:]):
                rest, digit = divmod(rest, level.size)
                probability *= mass(level.law if value >= 0 else level.below, digit)
            probability *= mass(levels[0].law, rest if value >= 0 else -1 - rest)
            assert abs(probability - exact.probability(value)) < mpmath.mpf(2) ** -180


def mass(law: Law, value: int) -> mpmath.mpf:
    upto = law.floors(range(value, value + 1), BITS)[0][0]
    before = 0 if value == law.least else law.floors(range(value - 1, value), BITS)[0][0]
    return mpmath.ldexp(upto - before, -BITS)


@pytest.mark.parametrize(
    ("law", "weights"),
    [
        (GeometricDigit(Fraction(1, 3), 5), [mpmath.exp(mpmath.mpf(-i) / 3) for i in range(5)]),
        (StairPlace(Fraction(2), 5, 2), [1, 1, *[mpmath.exp(-2)] * 3]),
        (StairPlace(Fraction(2), 3, 0), [1, 1, 1]),
        (StairPlace(Fraction(2), 1, 1), [1]),
    ],
    ids=str,
)
def test_digits_are_what_they_say(law: Law, weights: list[mpmath.mpf]) -> None:
    assert (law.least, law.most) == (0, len(weights) - 1)
    total = mpmath.fsum(weights)
    for value, weight in enumerate(weights):
        assert abs(mass(law, value) - weight / total) < 1e-14
    assert law.floors(range(len(weights) - 1, len(weights)), 64) == [(2**64, 2**64)]


def test_digits_of_one_number_are_spread_over_levels() -> None:
    sizes = {scale: [level.size for level in LaplaceSampler(Fraction(scale)).levels] for scale in (64, 65, 1000, 2**40)}
    assert sizes == {64: [0], 65: [0, 2], 1000: [0, 16], 2**40: [0, 16, 1024, 1024, 1024]}
    for scale in (65, 1000, 2**40):
        first = LaplaceSampler(Fraction(scale)).levels[0].law
        assert isinstance(first, TwoSided)
        assert 32 <= scale / first.fold <= 64
    assert len(GaussianSampler(Fraction(10**6)).levels) == 1


def test_noise_that_is_published_is_set_up_without_a_ball_for_every_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ball takes microseconds; a table of a thousand values takes less than one of a hundred balls."""

    def never(law: Law) -> NoiseTable:
        raise AssertionError(law)

    monkeypatch.setattr("dualmandate.mechanism.noise.laws.thresholds_of", never)
    key = subkey(bytes(32), "set-up", histogram_mac=b"", measurement="any")
    for scale in (Fraction(1, 99), Fraction(70), Fraction(10**6, 7), Fraction(10**9)):
        for sampler in (LaplaceSampler(scale), GaussianSampler(scale**2)):
            table_of.cache_clear()
            assert sampler.draw(key, range(3)).shape == (3,)
