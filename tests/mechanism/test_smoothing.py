"""Noisy numbers made smooth: the formula by hand and by brute force, what is gained, and that nothing else is lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.mechanism.smoothing import STRENGTHS, Smoother, roots_of_cells, roots_of_pieces
from dualmandate.population.arrays import Floats


def hierarchy(cells: int) -> Floats:
    """The cells, and sums of four."""
    return np.concatenate([np.eye(cells), np.kron(np.eye(cells // 4), np.ones(4))])


def restricted_likelihood(rows: Floats, root: Floats, measured: Floats, strength: float) -> float:
    """Of y, by the densities of its contrasts: those orthogonal to A·t for all even t."""
    singular, directions = np.linalg.svd(root)[1:]
    rank = int((singular > 1e-9).sum())
    even, uneven = directions[rank:], directions[:rank]
    _, _, complement = np.linalg.svd((rows @ even.T).T)
    contrasts = complement[len(even) :]
    prior = uneven.T @ np.diag(1 / singular[:rank] ** 2 / strength) @ uneven
    covariance = contrasts @ (np.eye(len(rows)) + rows @ prior @ rows.T) @ contrasts.T
    seen = contrasts @ measured
    return float(-0.5 * (np.linalg.slogdet(covariance)[1] + seen @ np.linalg.solve(covariance, seen)))


def test_two_cells_by_hand() -> None:
    """y = (1, 5): their mean 3 stays; half their difference z = 4/√2 has the variance 1 + 1/(2κ)."""
    smoother = Smoother.of(np.eye(2), [np.array([[-1.0, 1.0]])])
    assert smoother is not None
    found = smoother.fit(np.array([1.0, 5.0]))
    # The likeliest variance is z² = 8, so that z shrinks by 1/8, as near as the grid of strengths comes to it.
    variances = 1 + 1 / STRENGTHS
    likeliest = variances[np.argmax(-0.5 * (np.log(variances) + 8 / variances))]
    np.testing.assert_allclose(found, [3 - 2 * (1 - 1 / likeliest), 3 + 2 * (1 - 1 / likeliest)])
    assert abs(likeliest - 8) < 4


def test_it_is_the_penalized_least_squares_of_the_likeliest_strength() -> None:
    random = np.random.default_rng(4)
    rows, root = hierarchy(12), roots_of_cells((12,))[1]
    for scale in (0.5, 3.0):
        truth = 20 + scale * np.cumsum(random.normal(size=12))
        measured = rows @ truth + random.normal(size=len(rows))
        smoother = Smoother.of(rows, [root])
        assert smoother is not None
        middle = float(np.median(smoother.directions[0].penalties))
        tried = STRENGTHS / middle
        likeliest = tried[np.argmax([restricted_likelihood(rows, root, measured, each) for each in tried])]
        expected = np.linalg.solve(rows.T @ rows + likeliest * root.T @ root, rows.T @ measured)
        np.testing.assert_allclose(smoother.fit(measured), expected, rtol=1e-7)
        np.testing.assert_allclose(smoother.fit(3 * measured, noise=3.0), 3 * expected, rtol=1e-7)
        np.testing.assert_allclose(smoother.inverse @ rows, np.eye(12), atol=1e-12)


def test_numbers_of_at_least_zero_are_the_least_squares_among_them() -> None:
    """What a small move in any allowed direction makes is no better."""
    rows, root = hierarchy(8), roots_of_cells((8,))[0]
    measured = rows @ np.array([9.0, 0, 0, 0, 0, 0, 7, 0]) + np.random.default_rng(1).normal(size=len(rows))
    smoother = Smoother.of(rows, [root])
    assert smoother is not None
    [directions] = smoother.directions
    given = np.linalg.solve(smoother.triangle, rows.T @ measured)
    strength = directions.strength(directions.columns.T @ given)[0]

    def loss(cells: Floats) -> float:
        return float(np.square(rows @ cells - measured).sum() + strength * np.square(root @ cells).sum())

    found = smoother.fit(measured, at_least_zero=True)
    assert found.min() == 0.0
    assert smoother.fit(measured).min() < 0
    for cell in range(8):
        for step in (1e-4, -1e-4):
            moved = found + step * np.eye(8)[cell]
            assert moved.min() < 0 or loss(moved) > loss(found)


@pytest.mark.parametrize("shape", [(64,), (8, 8)])
def test_even_and_smooth_data_gain_and_rough_ones_lose_nothing(shape: tuple[int, ...]) -> None:
    random, size = np.random.default_rng(6), math.prod(shape)
    hill = 8 * np.exp(-sum(((each - each.mean()) / each.std()) ** 2 for each in np.indices(shape)))
    smoother = Smoother.of(hierarchy(size), roots_of_cells(shape))
    assert smoother is not None
    gains = []
    for truth in (np.full(size, 7.0), hill.reshape(-1), 300 * random.normal(size=size)):
        plain, smooth = [], []
        for _ in range(20):
            measured = hierarchy(size) @ truth + random.normal(size=size + size // 4)
            plain.append(np.square(smoother.inverse @ measured - truth).mean())
            smooth.append(np.square(smoother.fit(measured) - truth).mean())
        gains.append(np.mean(smooth) / np.mean(plain))
    assert gains[0] < 0.15
    assert gains[1] < 0.6
    assert gains[2] == pytest.approx(1.0, abs=1e-3)


def test_peaks_are_set_aside_where_few_stand_out_of_many() -> None:
    """What is left is as smooth as without them; of cells that all differ none is a peak."""
    random, cells = np.random.default_rng(8), 128
    smoother = Smoother.of(np.eye(cells), roots_of_cells((cells,)))
    assert smoother is not None
    level = 20 + 5 * np.sin(np.arange(cells) / 20)
    spikes = np.where(np.arange(cells) % 32 == 7, 400.0, 0.0)
    rough = np.rint(random.lognormal(4, 1, cells))
    off: dict[str, list[float]] = {}
    for _ in range(20):
        noise = random.laplace(scale=1 / math.sqrt(2), size=cells)
        for name, truth in (("level", level), ("spikes", level + spikes), ("rough", rough)):
            found = smoother.fit_around_peaks(truth + noise, (cells,))
            off.setdefault(name, []).append(float(np.square(found - truth).mean()))
        spiked = level + spikes + noise
        off.setdefault("no peaks", []).append(float(np.square(smoother.fit(spiked) - level - spikes).mean()))
        assert np.all(smoother.fit_around_peaks(spiked, (cells,))[spikes > 0] > 350)
    mean = {name: np.mean(each) for name, each in off.items()}
    assert mean["level"] < 0.25
    assert mean["spikes"] < mean["level"] + 2 * 4 / cells
    assert mean["no peaks"] > 3 * mean["spikes"]
    assert 0.7 < mean["rough"] < 1.02  # the noise has a variance of 1


def test_cells_that_all_differ_have_no_peaks() -> None:
    """Most stand out of the median around them; to set them aside would flatten the others."""
    random, cells = np.random.default_rng(5), 256
    smoother = Smoother.of(np.eye(cells), roots_of_cells((cells,)))
    assert smoother is not None
    truth = 12 * random.normal(size=cells)
    noisy = truth + random.normal(size=cells)
    np.testing.assert_array_equal(smoother.fit_around_peaks(noisy, (cells,)), smoother.fit(noisy))
    assert np.square(smoother.fit(noisy) - truth).mean() < 1.1


def test_peaks_scale_with_their_noise() -> None:
    smoother = Smoother.of(hierarchy(64), roots_of_cells((8, 8)))
    assert smoother is not None
    table = np.zeros((8, 8))
    table[3, 4] = 90.0
    numbers = hierarchy(64) @ table.reshape(-1) + np.random.default_rng(2).normal(size=80)
    found = smoother.fit_around_peaks(numbers, (8, 8))
    np.testing.assert_allclose(smoother.fit_around_peaks(50 * numbers, (8, 8), noise=50.0), 50 * found, rtol=1e-9)
    assert found[28] == pytest.approx(90, abs=4)


def test_pieces_are_likened_within_their_part_alone() -> None:
    sizes, parts = np.array([4, 4, 5, 1, 8, 8]), np.array([0, 0, 0, 1, 2, 2])
    scattered, alike = roots_of_pieces(sizes, parts)
    even_within = sizes * np.array([3.0, 3, 3, 70, 0.5, 0.5])
    for root in (scattered, alike):
        np.testing.assert_allclose(root @ even_within, 0, atol=1e-12)
        assert np.linalg.matrix_rank(root) == 3
    moved = even_within + np.eye(6)[1]
    # θ moves by 1/4 in a piece of 4 among 13 cells: Σ w(θ − θ̄)² = 4/16 − (1/13)²·13, Σ (θ′ − θ)²/distance otherwise.
    assert np.square(scattered @ moved).sum() == pytest.approx(0.25 - 1 / 13)
    assert np.square(alike @ moved).sum() == pytest.approx(0.25**2 / 4 + 0.25**2 / 4.5)
    assert roots_of_pieces(np.array([3, 5]), np.array([0, 1])) == []
    assert roots_of_cells((1,)) == []


def test_cells_that_were_not_measured_are_not_smoothed() -> None:
    assert Smoother.of(np.ones((1, 3)), roots_of_cells((3,))) is None
