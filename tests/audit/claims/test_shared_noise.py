"""Two releases that share noise are named; independent ones are not, whatever they counted."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dualmandate.audit.claims.checks import Law, RowNoise, SharedNoise, audit_noise, coincidence, shared_noise
from dualmandate.errors import InvalidRequest

LAWS: list[tuple[Law, Fraction]] = [
    ("laplace", Fraction(3)),
    ("laplace", Fraction(1, 3)),
    ("gaussian", Fraction(20)),
    ("gaussian", Fraction(1, 4)),
]


def compared(first: Any, second: Any, one: RowNoise, other: RowNoise) -> SharedNoise:
    return shared_noise(first, second, noises=((one, other),), kinds=np.zeros(len(first), dtype=np.int64))


@pytest.mark.parametrize(("law", "parameter"), LAWS)
def test_moments_by_brute_force(law: Law, parameter: Fraction) -> None:
    steps = np.arange(-400, 401)
    power = 1 if law == "laplace" else 2
    weights = np.exp(-(np.abs(steps) ** power) / (power * float(parameter)))
    shares, noise = weights / weights.sum(), RowNoise(law, parameter)
    assert noise.largest == pytest.approx(shares.max())
    assert noise.variance == pytest.approx(float((shares * steps**2).sum()))
    fourth = float((shares * steps.astype(float) ** 4).sum())
    assert fourth <= noise.fourth_moment * (1 + 1e-9)
    if law == "laplace":
        assert noise.fourth_moment == pytest.approx(fourth)
    assert coincidence(noise, noise) == pytest.approx(float((shares**2).sum()))
    other = RowNoise(law, 2 * parameter)
    wider = np.exp(-(np.abs(steps) ** power) / (power * 2 * float(parameter)))
    assert coincidence(noise, other) == pytest.approx(float((shares * wider / wider.sum()).sum()))


def test_two_laws_coincide_at_most_as_often_as_the_flatter_one() -> None:
    laplace, gaussian = RowNoise("laplace", Fraction(3)), RowNoise("gaussian", Fraction(20))
    assert coincidence(laplace, gaussian) == min(laplace.largest, gaussian.largest)


@pytest.mark.parametrize(("law", "parameter"), LAWS)
def test_shared_noise_is_named_and_independent_noise_is_not(law: Law, parameter: Fraction) -> None:
    own, noise = RowNoise(law, parameter), audit_noise(b"one", "rows", law, parameter, (400,))
    truth = np.random.default_rng(7).integers(0, 50, 400)
    later = truth.copy()
    later[3] += 1
    reused = compared(truth + noise, later + noise, own, own)
    assert reused.equal == 399
    assert reused.check.broken
    assert "SHARE NOISE" in reused.check.words
    fresh = compared(truth + noise, later + audit_noise(b"two", "rows", law, parameter, (400,)), own, own)
    assert not fresh.check.broken
    assert abs(fresh.equal - fresh.expected) < 6 * math.sqrt(400)
    moved = compared(truth + noise, truth[::-1] + audit_noise(b"two", "rows", law, parameter, (400,)), own, own)
    assert not moved.check.broken  # other data: still independent


def test_noise_from_one_seed_at_two_scales_is_named() -> None:
    one, other = RowNoise("laplace", Fraction(20)), RowNoise("laplace", Fraction(22))
    key = b"one"
    rows = [audit_noise(key, "rows", each.law, each.parameter, (400,)) for each in (one, other)]  # the same uniforms
    found = compared(rows[0], rows[1], one, other)
    assert found.check.broken
    apart = audit_noise(b"two", "rows", other.law, other.parameter, (400,))
    assert not compared(rows[0], apart, one, other).check.broken


def test_chances_are_not_understated() -> None:
    """Of many independent pairs, hardly any is as unlikely as stated."""
    own = RowNoise("laplace", Fraction(2))
    chances = []
    for seed in range(300):
        rows = [
            audit_noise(bytes([seed % 256, seed // 256, side]), "rows", "laplace", Fraction(2), (40,))
            for side in (0, 1)
        ]
        chances.append(compared(rows[0], rows[1], own, own).chance)
    assert np.mean(np.array(chances) < 0.1) <= 0.15
    assert min(chances) > 1e-5


def test_the_chance_that_all_rows_are_equal_is_exact() -> None:
    own, rows = RowNoise("laplace", Fraction(1, 3)), np.arange(12)
    found = compared(rows, rows, own, own)
    assert found.chance == pytest.approx(2 * coincidence(own, own) ** 12)  # one of two tests
    assert found.expected == pytest.approx(12 * coincidence(own, own))


def test_what_cannot_be_compared() -> None:
    own, few = RowNoise("laplace", Fraction(2)), np.zeros(3, dtype=np.int64)
    with pytest.raises(InvalidRequest):
        compared(few, few, own, own)
    with pytest.raises(InvalidRequest):
        compared(np.zeros(9, dtype=np.int64), np.zeros(8, dtype=np.int64), own, own)
