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
    ALIKE,
    CHECKS,
    EMPTY,
    WHOLE,
    MeasuredRows,
    NoiseTest,
    check_noise,
    judged_parts,
    relations,
)
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population.arrays import Floats, Integers

SHAPE = (8, 2, 4, 2)
SCALE = 3
FEWER, MORE, COMMON, BACK, ANEW, ODD, *_ = CHECKS
STARTS = (0, 16, 80)  # of the tables by place and race, by place, sex and age, and of the cells


def laplace(scale: int = SCALE) -> ClaimedNoise:
    noise = noise_named("laplace", Fraction(scale))
    return ClaimedNoise("", "laplace", Fraction(scale), lambda k: noise.distribution().log_likelihood(float(k)), noise)


def counted(cells: Integers) -> Integers:
    """A table with its parts: by place and race, by place, sex and age, and by everything."""
    return np.concatenate([cells.sum((1, 2)).ravel(), cells.sum(3).ravel(), cells.ravel()])


def rows_of(
    values: object,
    count: Callable[[Integers], Integers] = counted,
    shape: tuple[int, ...] = SHAPE,
    starts: tuple[int, ...] = STARTS,
) -> MeasuredRows:
    found, possible = np.asarray(values), np.ones(shape, dtype=np.bool_)
    return MeasuredRows(found, np.zeros(len(found), dtype=np.int64), (laplace(),), count, possible, starts)


def drawn(random: np.random.Generator, scale: float, shape: int | tuple[int, ...]) -> Integers:
    """Discrete Laplace noise, drawn apart from the package."""
    share = 1 - np.exp(-1 / scale)
    return np.asarray(random.geometric(share, shape) - random.geometric(share, shape))


def many(random: np.random.Generator, scale: float, draws: int) -> list[Floats]:
    """The noise of so many releases."""
    return [drawn(random, scale, (draws, len(truth()))).astype(np.float64)]


@cache
def truth() -> Integers:
    random = np.random.default_rng(21)
    return counted(random.poisson(random.gamma(0.5, 6, SHAPE)))


def anew(random: np.random.Generator) -> Integers:
    """Noise that begins anew in every table."""
    noise = drawn(random, SCALE, 128)
    return np.concatenate([noise[:16], noise[:64], noise])


FORGED: dict[str, tuple[Callable[[np.random.Generator, Integers], object], str]] = {
    "half the noise": (lambda random, true: true + drawn(random, SCALE / 2, len(true)), FEWER),
    "no noise": (lambda _, true: true, FEWER),
    "empty cells exact": (lambda random, true: np.where(true == 0, 0, true + drawn(random, SCALE, len(true))), EMPTY),
    "one draw for all": (lambda _, true: true - 3, COMMON),
    "another draw for all": (lambda _, true: true + 2, COMMON),
    "parity shows through": (lambda random, true: true + 2 * drawn(random, SCALE / 2, len(true)), ODD),
    "begun anew": (lambda random, true: true + anew(random), ANEW),
    "floats": (lambda random, true: true + random.laplace(0, SCALE, len(true)), WHOLE),
}


@cache
def stated_test() -> NoiseTest:
    return NoiseTest.of(rows_of(truth()), [np.arange(len(truth()))], b"key")


@pytest.mark.parametrize("name", FORGED)
def test_forged_noise_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The draws of the stated noise are the same for all of these."""
    test = stated_test()
    monkeypatch.setattr(NoiseTest, "of", lambda *_: test)
    forge, expected = FORGED[name]
    found = check_noise(rows_of(forge(np.random.default_rng(3), truth())), b"key")
    assert expected in found.failed
    assert "TELL" in found.words


def test_honest_noise_fails_as_seldom_as_is_said() -> None:
    """4,000 honest releases for each of two keys: 1 in 1,000 are 8, about which keys scatter."""
    rows = rows_of(truth())
    everything = [np.arange(len(truth()))]
    random, failed = np.random.default_rng(7), 0
    for number in range(2):
        test = NoiseTest.of(rows, everything, b"key %d" % number)
        failed += int((test.of_noise(many(random, SCALE, 4_000)) > test.stated).any(axis=1).sum())
        half = test.of_noise(many(random, SCALE / 2, 200))
        assert (half[:, 0] > test.stated[0]).mean() > 0.95
    assert 0 < failed <= 16


def test_power_grows_with_what_follows_from_others() -> None:
    """What is said to be found is found as often, of noise that was drawn apart; and more of it with more rows."""
    random = np.random.default_rng(8)
    found = check_noise(rows_of(truth() + drawn(random, SCALE, len(truth()))), b"key")
    assert not found.failed
    assert found.words.startswith(
        "80 measured numbers follow from others among 208; of such releases would be found: 0.8 of the noise in"
    )
    power = {(each.what, each.rows): each.share for each in found.power}
    assert power["half of the noise", 80] > 0.95 > power["half of the noise", 16]
    assert power["0.8 of the noise", 80] < 0.5
    assert power["the same draws in every table", 80] > 0.95
    test = stated_test()
    mild = (test.of_noise(many(random, 0.7 * SCALE, 1_000)) > test.stated).any(axis=1).mean()
    assert power["0.8 of the noise", 80] < mild < power["half of the noise", 80]


def test_alike_numbers_of_two_tables_need_no_redundancy() -> None:
    """Two tables of which none follows from the other: where noise begins anew, equal counts have equal numbers."""
    random = np.random.default_rng(9)
    true = np.concatenate([np.arange(60) % 3, np.arange(60) % 2])
    noise = drawn(random, SCALE, 60)

    def apart(cells: Integers) -> Integers:
        return cells

    for own, failed in ((np.tile(noise, 2), True), (drawn(random, SCALE, 120), False)):
        found = check_noise(rows_of(true + own, apart, (120,), (0, 60)), b"key")
        assert found.redundant == 0
        assert (ALIKE in found.failed) == failed


def test_without_redundancy_nothing_is_seen() -> None:
    cells = np.arange(1, 41) * 50
    found = check_noise(rows_of(cells, lambda counts: counts, (40,), (0,)), b"key")
    assert not found.failed
    assert (
        "no measured number among 40 follows from others, so that the size of the noise CANNOT BE SEEN" in found.words
    )


def test_relations_hold_in_whole_numbers() -> None:
    """Rows with coefficients, a fraction of one another, and one that counts nothing that can occur."""
    matrix = np.array([[2, 2, 0], [3, 3, 0], [0, 1, 1], [2, 3, 1], [0, 0, 0]])
    rows = rows_of(np.zeros(5), lambda cells: matrix @ cells, (3,), (0,))
    (found,) = relations(rows, [np.arange(5)], b"key")
    assert found.shape == (3, 5)
    assert np.linalg.matrix_rank(found) == 3
    assert not (found @ matrix).any()


def test_of_a_large_release_regions_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of eight regions, and the rows that span several: here, too, the total follows from its parts."""
    monkeypatch.setattr(residuals_module, "MOST_ROWS", 65)

    def count(cells: Integers) -> Integers:
        return np.concatenate([cells.sum(1).ravel(), cells.ravel(), cells.sum(0), cells.sum().reshape(1)])

    shape = (64, 6)
    true = count(np.random.default_rng(5).integers(0, 50, shape))
    rows = rows_of(true, count, shape, (0, 64, 448, 454))
    parts, regions = judged_parts(rows, b"key")
    assert [len(part) for part in parts] == [56, 56, 56, 56, 7]
    assert regions == (4, 8)
    assert len(np.unique(np.concatenate(parts))) == 231
    found = check_noise(rows, b"key")
    assert FEWER in found.failed
    assert found.redundant == 4 * 8 + 1
    assert (
        "33 measured numbers follow from others among 231 of 455 that were looked at, in 4 of 8 regions" in found.words
    )
