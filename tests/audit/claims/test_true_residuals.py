"""With the records behind a release, all of its noise is judged: what fails, where, how seldom honest noise does."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import stats
from tests.audit.claims.test_residuals import SCALE, anew, drawn, laplace, rows_of, truth

from dualmandate.audit.claims.attack import ClaimedNoise
from dualmandate.audit.claims.true_residuals import TURNS, MagnitudeLaw, Places, check_true_noise, failed_tests
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population.arrays import Integers

PLACES = Places(0, tuple("abcdefgh"))
Forge = Callable[[np.random.Generator, Integers], Integers]


@cache
def laws() -> tuple[MagnitudeLaw, ...]:
    return (MagnitudeLaw.of(laplace()),)


def checked(noise: Integers) -> tuple[str, ...]:
    return failed_tests(rows_of(truth() + noise), truth(), laws(), PLACES)[0]


def by_count(random: np.random.Generator, true: Integers) -> Integers:
    """Less where fewer were counted, more elsewhere."""
    small = true < 10
    return np.where(small, drawn(random, SCALE / 2, len(true)), drawn(random, 4 * SCALE, len(true)))


def in_one_place(random: np.random.Generator, true: Integers) -> Integers:
    """None in the last place, the last rows of every table."""
    noise = drawn(random, SCALE, len(true))
    for start, end, of in ((0, 16, 2), (16, 80, 8), (80, 208, 16)):
        noise[start:end][-of:] = 0
    return noise


@pytest.mark.parametrize(
    ("forge", "expected"),
    [
        (lambda random, true: drawn(random, SCALE / 2, len(true)), "less noise than stated, in the whole release"),
        (lambda random, true: drawn(random, SCALE * 2, len(true)), "more noise than stated, in the whole release"),
        (lambda random, true: np.where(true == 0, 0, drawn(random, SCALE, len(true))), "where the true count is 0"),
        (lambda random, true: 2 * drawn(random, SCALE / 2, len(true)), "odd noise too seldom"),
        (lambda random, true: np.abs(drawn(random, SCALE, len(true))), "leans to one side, in the whole release"),
        (lambda random, _: anew(random), "the noise of table 2 again in table 3"),
        (lambda random, true: np.tile(drawn(random, SCALE, 26), 8), "comes back 26 rows on"),
        (by_count, "where the true count is 10 to 99"),
        (in_one_place, "too many numbers without noise, in h"),
    ],
)
def test_forged_noise_is_found_and_placed(forge: Forge, expected: str) -> None:
    assert any(expected in each for each in checked(forge(np.random.default_rng(3), truth())))


def test_honest_releases_fail_as_seldom_as_is_said() -> None:
    """2,000 honest releases: 1 in 1,000 are 2, and 7 or more of them 1 time in 200."""
    random = np.random.default_rng(11)
    assert sum(bool(checked(drawn(random, SCALE, 208))) for _ in range(2_000)) <= 6


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_the_bound_on_a_sum_holds_and_is_near(law: str) -> None:
    """Chernoff's bound beside how often sums of 200 numbers of noise go as far, of the exact law and of draws."""
    noise = noise_named(law, Fraction(9))
    claimed = ClaimedNoise("", law, Fraction(9), lambda k: noise.distribution().log_likelihood(float(k)), noise)
    found = MagnitudeLaw.of(claimed)
    share = np.exp(-1 / 9)
    if law == "laplace":
        assert found.mean == pytest.approx(2 * share / (1 - share**2), rel=1e-12)
    else:
        assert found.mean == pytest.approx(3 * np.sqrt(2 / np.pi), rel=0.01)  # as if it were continuous
    sums = np.abs(claimed.drawn(b"key", "sums", (20_000, 200))).sum(axis=1) / found.mean
    for place in (0.001, 0.01, 0.99, 0.999):
        at = float(np.quantile(sums, place))
        side = TURNS < 0 if place < 0.5 else TURNS > 0
        bound = float(np.exp((200 * found.logarithms - TURNS * at)[side].min()))
        assert min(place, 1 - place) * 0.7 < bound < 12 * min(place, 1 - place)


def test_power_is_what_is_found() -> None:
    random = np.random.default_rng(12)
    check = check_true_noise(rows_of(truth() + drawn(random, SCALE, 208)), truth(), places=None, key=b"key")
    power = {each.what: each.share for each in check.power}
    often = np.mean(
        [any("less noise" in each for each in checked(drawn(random, 0.8 * SCALE, 208))) for _ in range(200)]
    )
    assert stats.binomtest(round(200 * float(often)), 200, power["0.8 of the noise"]).pvalue > 1e-3
    assert power["half of the noise"] == 1
    assert check.words.startswith("all 208 measured numbers less what was counted")


def test_a_law_of_its_own_is_written_out() -> None:
    """The same law by its logarithms as by the arithmetic of the audit."""
    own, told = laplace(5), laplace(5)
    object.__setattr__(told, "law", "another")
    one, other = MagnitudeLaw.of(own), MagnitudeLaw.of(told)
    assert one.mean == pytest.approx(other.mean, rel=1e-6)
