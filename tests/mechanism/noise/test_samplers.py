from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from tests.conftest import Tell

from dualmandate.errors import InvalidMechanism, InvalidRequest
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, STAIRCASE, Staircase
from dualmandate.mechanism.noise import (
    GaussianSampler,
    LaplaceSampler,
    NoiseKey,
    Sampler,
    StaircaseSampler,
    samplers,
    subkey,
    words,
)
from dualmandate.mechanism.noise.laws import table_of
from dualmandate.mechanism.noise.samplers import BLOCK_CELLS
from dualmandate.mechanism.noise.words import Words

KEY = subkey(bytes(32), "plan", histogram_mac=b"data", measurement="table")
EDGE = 2**35  # the first cell whose block number does not fit in 32 bits
Probability = Callable[[NDArray[np.int64]], NDArray[np.float64]]


def laplace(scale: Fraction) -> Probability:
    return lambda k: np.exp(-abs(k) / float(scale))


def gaussian(variance: Fraction) -> Probability:
    return lambda k: np.exp(-(k.astype(float) ** 2) / (2 * float(variance)))


def staircase(rate: Fraction, step: int, high: int) -> Probability:
    return lambda k: np.exp(-float(rate) * (abs(k) // step + (abs(k) % step >= high)))


SCALES, VARIANCES = map(Fraction, ("1/3", "1", "10", "1000")), map(Fraction, ("1/3", "1", "100", "1000000"))
STAIRS = (Fraction(1), 10, 3), (Fraction(1, 90), 5, 1)
CASES: dict[Sampler, Probability] = {
    **{LaplaceSampler(scale): laplace(scale) for scale in SCALES},
    **{GaussianSampler(variance): gaussian(variance) for variance in VARIANCES},
    **{StaircaseSampler(*stairs): staircase(*stairs) for stairs in STAIRS},
}


@pytest.mark.parametrize(("sampler", "weight"), CASES.items(), ids=map(str, CASES))
def test_draws_follow_the_law(sampler: Sampler, weight: Probability, tell: Tell) -> None:
    """Chi-square over bins of about equal probability, a million draws."""
    noise = sampler.draw(KEY, range(1_000_000))
    values = np.arange(-(reach := 2 * int(np.abs(noise).max()) + 50), reach + 1)
    probabilities = weight(values)
    sums = np.cumsum(probabilities / probabilities.sum())
    edges = np.unique(np.searchsorted(sums, np.linspace(0.002, 0.998, 400)))  # bins end with these values
    expected = np.diff(sums[edges], prepend=0, append=1)
    found = np.bincount(np.searchsorted(values[edges], noise), minlength=len(expected))
    tell(f"draws of {sampler} against its law", tried=len(noise))
    assert stats.chisquare(found, expected * len(noise)).pvalue > 1e-4


@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(1), Fraction(10), Fraction(5000)])
def test_variances_are_those_that_plans_count_on(scale: Fraction) -> None:
    noise = LaplaceSampler(scale).draw(KEY, range(1_000_000)).astype(np.float64)
    assert np.mean(noise**2) == pytest.approx(GEOMETRIC.variance(float(1 / scale)), rel=0.02)
    noise = GaussianSampler(scale).draw(KEY, range(1_000_000)).astype(np.float64)
    assert np.mean(noise**2) == pytest.approx(GAUSSIAN.variance(float(1 / (2 * scale))), rel=0.02)


@pytest.mark.parametrize("rate", [Fraction(1, 2), Fraction(3), Fraction(8)])
def test_a_staircase_on_a_fine_grid_is_the_one_that_plans_count_on(rate: Fraction) -> None:
    """The real-valued staircase of least variance, on a grid of thousandths."""
    shape = STAIRCASE.at(float(rate))
    assert isinstance(shape, Staircase)
    sampler = StaircaseSampler(rate, step=1000, high=round(1000 * shape.high_share))
    noise = sampler.draw(KEY, range(2_000_000)) / 1000
    assert np.mean(noise**2) == pytest.approx(shape.variance, rel=0.02)
    assert np.mean(np.abs(noise)) == pytest.approx(shape.mean_absolute, rel=0.01)


def test_a_staircase_keeps_its_promise() -> None:
    """Between values at most one step apart the logarithm of the probability changes by at most the rate."""
    rate, step, high = 2.0, 5, 2
    values = np.arange(-60, 60)
    logs = np.log(staircase(Fraction(rate), step, high)(values))
    changes = {shift: np.abs(logs[shift:] - logs[:-shift]).max() for shift in range(1, step + 2)}
    assert max(changes[shift] for shift in range(1, step + 1)) == pytest.approx(rate)
    assert changes[step + 1] == pytest.approx(2 * rate)


def test_a_staircase_of_one_step_is_laplace_noise() -> None:
    for scale in (Fraction(2), Fraction(3000)):
        found = StaircaseSampler(1 / scale, step=1, high=1).draw(KEY, range(5000))
        assert np.array_equal(found, LaplaceSampler(scale).draw(KEY, range(5000)))


@pytest.mark.parametrize("sampler", CASES, ids=str)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_any_partition_gives_the_same_noise(sampler: Sampler, data: st.DataObject) -> None:
    start = data.draw(st.sampled_from([0, 5, EDGE - BLOCK_CELLS - 300, EDGE - 77, 2 * EDGE - 1]))
    count = data.draw(st.sampled_from([1, 9, 400, BLOCK_CELLS + 500]))
    cuts = data.draw(st.lists(st.integers(start, start + count), max_size=5))
    ends = [start, *sorted(cuts), start + count]
    parts = [sampler.draw(KEY, range(begin, end)) for begin, end in pairwise(ends)]
    assert np.array_equal(np.concatenate(parts), sampler.draw(KEY, range(start, start + count)))


def test_blocks_of_the_counter_differ() -> None:
    sampler = LaplaceSampler(Fraction(2**40))
    one, other = (sampler.draw(KEY, range(start, start + 1000)) for start in (0, EDGE))
    assert not np.intersect1d(one, other).size


@pytest.mark.parametrize("sampler", CASES, ids=str)
def test_every_draw_takes_the_same_number_of_words(sampler: Sampler, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[tuple[int, range]] = []

    def words_at(key: NoiseKey, lane: int, *, cells: range, buffers: tuple[Words, Words] | None = None) -> Words:
        taken.append((lane, cells))
        return words.words_at(key, lane, cells=cells, buffers=buffers)

    monkeypatch.setattr(samplers, "words_at", words_at)
    sampler.draw(KEY, range(2 * BLOCK_CELLS))
    blocks = range(BLOCK_CELLS), range(BLOCK_CELLS, 2 * BLOCK_CELLS)
    assert taken == [(level, block) for block in blocks for level in range(len(sampler.levels))]


def test_noise_is_written_where_asked() -> None:
    sampler, room = LaplaceSampler(Fraction(7)), np.zeros(300, dtype=np.int64)
    part = room[100:200]
    assert sampler.draw(KEY, range(40, 140), out=part) is part
    assert np.array_equal(part, sampler.draw(KEY, range(40, 140)))
    assert not room[:100].any()
    assert not room[200:].any()
    assert sampler.draw(KEY, range(5, 5)).shape == (0,)
    assert np.array_equal(sampler.draw(KEY, range(150), out=room[::2]), sampler.draw(KEY, range(150)))


def test_tiny_and_huge_scales() -> None:
    tiny = Fraction(1, 10**9)
    for sampler in (LaplaceSampler(tiny), GaussianSampler(tiny), StaircaseSampler(1 / tiny, 3, 1)):
        assert not sampler.draw(KEY, range(10_000)).any()
    assert np.unique(StaircaseSampler(1 / tiny, 3, 2).draw(KEY, range(10_000))).tolist() == [-1, 0, 1]
    for scale in (2**16, 2**25 + 1, 2**40):
        sizes = np.abs(LaplaceSampler(Fraction(scale)).draw(KEY, range(100_000))) / scale
        assert np.median(sizes) == pytest.approx(math.log(2), abs=0.02)
        assert np.mean(sizes) == pytest.approx(1, abs=0.02)
        assert np.max(sizes) < 25
    last_digits = LaplaceSampler(Fraction(2**40)).draw(KEY, range(160_000)) % 16
    assert stats.chisquare(np.bincount(last_digits, minlength=16)).pvalue > 1e-4


def test_a_description_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom fractions import Fraction\nfrom dualmandate.mechanism.noise import LaplaceSampler\n"
        "LaplaceSampler(Fraction(1)).levels\nprint(*{name.partition('.')[0] for name in sys.modules})"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "numpy" in result.stdout.split()
    assert not {"cryptography", "flint", "numba"} & set(result.stdout.split())


def test_threads_do_not_disturb_each_other() -> None:
    """The library of balls has one precision for all threads; tables that are made at once are those made alone."""
    samplers = [GaussianSampler(Fraction(5000 + each)) for each in range(8)]
    with ThreadPoolExecutor(4) as pool:
        at_once = list(pool.map(lambda sampler: sampler.draw(KEY, range(2000)), samplers))
    table_of.cache_clear()
    for sampler, noise in zip(samplers, at_once, strict=True):
        assert np.array_equal(sampler.draw(KEY, range(2000)), noise)


@pytest.mark.slow
def test_the_largest_variance() -> None:
    noise = GaussianSampler(Fraction(2**60)).draw(KEY, range(200_000)) / 2**30
    assert stats.kstest(noise, "norm").pvalue > 1e-4


@pytest.mark.parametrize("number", [0, -1, Fraction(-1, 2), 0.5, True, Fraction(1, 2**1025), "1"])
def test_parameters_that_are_no_positive_fraction_are_refused(number: Fraction) -> None:
    for make in (LaplaceSampler, GaussianSampler, lambda rate: StaircaseSampler(rate, 2, 1)):
        with pytest.raises(InvalidMechanism, match="for exact noise"):
            make(number)


def test_noise_that_would_not_fit_is_refused() -> None:
    for make, largest in ((LaplaceSampler, Fraction(2**40)), (GaussianSampler, Fraction(2**60))):
        make(largest)
        with pytest.raises(InvalidMechanism, match="of about"):
            make(largest + Fraction(1, 3))
    StaircaseSampler(Fraction(1, 2**24), 2**16, 2**16)
    with pytest.raises(InvalidMechanism, match="of about"):
        StaircaseSampler(Fraction(1, 2**24 + 1), 2, 1)


@pytest.mark.parametrize(("step", "high"), [(0, 0), (3, 0), (3, 4), (2**16 + 1, 1)])
def test_stairs_without_a_high_part_are_refused(step: int, high: int) -> None:
    with pytest.raises(InvalidMechanism, match="a staircase of step"):
        StaircaseSampler(Fraction(1), step, high)


@pytest.mark.parametrize("cells", [range(0, 10, 2), range(-1, 5), range(2**63 - 1, 2**63 + 1), range(5, 2)], ids=str)
def test_cells_that_are_no_run_are_refused(cells: range) -> None:
    with pytest.raises(InvalidRequest, match="noise for the cells"):
        LaplaceSampler(Fraction(1)).draw(KEY, cells)


def test_wrong_room_is_refused() -> None:
    frozen = np.zeros(5, dtype=np.int64)
    frozen.setflags(write=False)
    rooms: list[Any] = [np.zeros(4, dtype=np.int64), np.zeros(5), np.zeros((5, 1), dtype=np.int64), frozen]
    for room in rooms:
        with pytest.raises(InvalidRequest, match="for the noise of 5 cells"):
            LaplaceSampler(Fraction(1)).draw(KEY, range(5), out=room)
