"""Noise that was not drawn as stated is found from what was measured; noise that was, at most as often as is said."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from dualmandate.audit.claims import residuals as residuals_module
from dualmandate.audit.claims.attack import ClaimedNoise
from dualmandate.audit.claims.residuals import (
    CHECKS,
    EMPTY,
    WHOLE,
    MeasuredRows,
    StatedResiduals,
    check_noise,
    judged_rows,
    relations,
)
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population.arrays import Integers

SHAPE = (8, 2, 4, 2)
SCALE = 3
FEWER, MORE, COMMON, BACK, ODD, *_ = CHECKS


def laplace(scale: int = SCALE) -> ClaimedNoise:
    noise = noise_named("laplace", Fraction(scale))
    return ClaimedNoise("", "laplace", Fraction(scale), lambda k: noise.distribution().log_likelihood(float(k)), noise)


def counted(cells: Integers) -> Integers:
    """A table with its parts: by place and race, by place, sex and age, and by everything."""
    return np.concatenate([cells.sum((1, 2)).ravel(), cells.sum(3).ravel(), cells.ravel()])


def rows_of(
    values: object, count: Callable[[Integers], Integers] = counted, shape: tuple[int, ...] = SHAPE
) -> MeasuredRows:
    found = np.asarray(values)
    return MeasuredRows(
        found, np.zeros(len(found), dtype=np.int64), (laplace(),), count, np.ones(shape, dtype=np.bool_)
    )


def drawn(random: np.random.Generator, scale: float, shape: int | tuple[int, ...]) -> Integers:
    """Discrete Laplace noise, drawn apart from the package."""
    share = 1 - np.exp(-1 / scale)
    return np.asarray(random.geometric(share, shape) - random.geometric(share, shape))


@cache
def truth() -> Integers:
    random = np.random.default_rng(21)
    return counted(random.poisson(random.gamma(0.5, 6, SHAPE)))


FORGED: dict[str, tuple[Callable[[np.random.Generator, Integers], object], str]] = {
    "half the noise": (lambda random, true: true + drawn(random, SCALE / 2, len(true)), FEWER),
    "no noise": (lambda _, true: true, FEWER),
    "empty cells exact": (lambda random, true: np.where(true == 0, 0, true + drawn(random, SCALE, len(true))), EMPTY),
    "one draw for all": (lambda _, true: true - 3, COMMON),
    "another draw for all": (lambda _, true: true + 2, COMMON),
    "parity shows through": (lambda random, true: true + 2 * drawn(random, SCALE / 2, len(true)), ODD),
    "floats": (lambda random, true: true + random.laplace(0, SCALE, len(true)), WHOLE),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_noise_is_found(name: str) -> None:
    forge, expected = FORGED[name]
    found = check_noise(rows_of(forge(np.random.default_rng(3), truth())), b"key")
    assert expected in found.failed
    assert "TELL" in found.words


def test_honest_noise_fails_as_seldom_as_is_said() -> None:
    """4,000 honest releases for each of three keys: 1 in 1,000 are 12, about which keys scatter."""
    rows = rows_of(truth())
    everything = np.arange(len(truth()))
    random, failed = np.random.default_rng(7), 0
    for number in range(3):
        key = b"key %d" % number
        residuals = StatedResiduals.of(relations(rows, everything, rows.possible, key), rows, everything, key)
        stated, noise = residuals.stated(), drawn(random, SCALE, (4_000, len(truth())))
        failed += int((residuals.statistics(noise @ residuals.relations.T) > stated.max(axis=0)).any(axis=1).sum())
        half = residuals.statistics(drawn(random, SCALE / 2, (200, len(truth()))) @ residuals.relations.T)
        assert (half[:, 0] > stated[:, 0].max()).mean() > 0.95
    assert 0 < failed <= 20
    found = check_noise(rows_of(truth() + drawn(random, SCALE, len(truth()))), b"key")
    assert not found.failed
    assert found.power is not None
    assert found.power > 0.95
    assert found.words.startswith(
        "80 measured numbers follow from others among 208; noise of half the size would be found"
    )


def test_noise_that_comes_back_is_found() -> None:
    """A table measured twice, the second time with the noise of the row before."""
    true = np.arange(200) % 7
    noise = drawn(np.random.default_rng(4), SCALE, 200)
    twice = rows_of(np.concatenate([true + noise, true + np.roll(noise, 1)]), lambda cells: np.tile(cells, 2), (200,))
    assert BACK in check_noise(twice, b"key").failed


def test_without_redundancy_nothing_is_seen() -> None:
    cells = np.arange(1, 41) * 50
    found = check_noise(rows_of(cells, lambda counts: counts, (40,)), b"key")
    assert not found.failed
    assert (
        "no measured number among 40 follows from others, so that the size of the noise CANNOT BE SEEN" in found.words
    )


def test_relations_hold_in_whole_numbers() -> None:
    """Rows with coefficients, a fraction of one another, and one that counts nothing that can occur."""
    matrix = np.array([[2, 2, 0], [3, 3, 0], [0, 1, 1], [2, 3, 1], [0, 0, 0]])
    rows = rows_of(np.zeros(5), lambda cells: matrix @ cells, (3,))
    found = relations(rows, np.arange(5), rows.possible, b"key")
    assert found.shape == (3, 5)
    assert np.linalg.matrix_rank(found) == 3
    assert not (found @ matrix).any()


def test_of_a_large_release_a_region_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals_module, "MOST_ROWS", 120)

    def count(cells: Integers) -> Integers:
        return np.concatenate([cells.sum(1).ravel(), cells.ravel(), cells.sum().reshape(1)])

    shape = (64, 6)
    true = count(np.random.default_rng(5).integers(0, 50, shape))
    rows = rows_of(true, count, shape)
    judged, region = judged_rows(rows, b"key")
    assert len(judged) == 16 * 7
    assert region.sum() < region.size
    found = check_noise(rows, b"key")
    assert FEWER in found.failed
    assert found.redundant == 16
    assert "16 measured numbers follow from others among 112 of 449 that were looked at" in found.words
