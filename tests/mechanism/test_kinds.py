"""Queries by the mix of noise that reaches them: computed once a kind, interpolated over many sums of equal draws."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.mechanism import NOISE_LAWS, Geometric, Laplace, MatrixMechanism, NoiseLaw
from dualmandate.mechanism.combination import Combination, Term
from dualmandate.mechanism.reconstruction import Bag, Kinds, Mix, MixedAnswers, draws, over_counts
from dualmandate.workload import identity, prefix


def bag(*pairs: tuple[float, float]) -> Bag:
    return np.array([factor for factor, _ in pairs]), np.array([count for _, count in pairs])


def test_each_kind_is_computed_once_and_counted() -> None:
    mixes: tuple[Mix, ...] = ((bag((1.0, 1.0)), bag()), (bag((0.5, 2.0), (0.25, 1.0)), bag((1.0, 4.0))))
    kinds = Kinds(mixes, np.array([1, 0, 1, 1]))
    seen: list[float] = []

    def value(mix: Mix) -> float:
        seen.append(draws(mix))
        return draws(mix)

    assert kinds.evaluate(value).tolist() == [1, 7]
    assert sorted(seen) == [1, 7]
    assert kinds.numbers().tolist() == [1, 3]


@pytest.mark.parametrize("noise", [Geometric(0.2), Geometric(7.0), Laplace(1.5)], ids=repr)
def test_many_sums_are_interpolated(noise: Geometric | Laplace) -> None:
    asked: list[float] = []

    def mean_absolute(count: float) -> float:
        asked.append(count)
        return Combination((Term(noise, np.ones(1), np.array([count])),)).mean_absolute

    counts = np.unique(np.rint(np.geomspace(1, 1e5, 400)))
    found = over_counts(mean_absolute, counts, tolerance=1e-6)
    assert len(asked) < 130
    places = range(0, len(counts), 37)
    assert found[places] == pytest.approx([mean_absolute(float(counts[i])) for i in places], rel=1e-6)


def test_a_curve_that_jumps_is_computed_one_by_one() -> None:
    counts = np.arange(1.0, 200.0)
    assert over_counts(lambda n: float(n % 7 + 1), counts, tolerance=1e-6) == pytest.approx(counts % 7 + 1)
    assert over_counts(lambda n: float(n > 50), counts, tolerance=1e-6).tolist() == (counts > 50).tolist()


@pytest.mark.parametrize("law", NOISE_LAWS.values(), ids=NOISE_LAWS)
def test_prefix_sums_of_many_cells(law: NoiseLaw) -> None:
    """Sums of 1, 2, …, 600 cells: errors equal those of each sum by itself, half-widths are never less."""
    size, loss = 600, 1.5
    production = MatrixMechanism(identity(size), law).production(prefix(size))
    noise = law.at(loss)
    sums = [1, 2, 9, 100, 355, 600]
    alone = [Combination((Term(noise, np.ones(1), np.array([float(n)])),)) for n in sums]
    places = [n - 1 for n in sums]
    widths = production.half_width("prefix", loss, 0.9)[places]
    exact = np.array([each.reach(0.1) for each in alone])
    deviations = np.sqrt([each.variance for each in alone])
    assert np.all(widths >= exact * (1 - 1e-9))
    assert np.all(widths - exact <= 0.06 * deviations)
    answers = production.rows.answered["prefix"]
    assert isinstance(answers, MixedAnswers)
    kinds = answers.noise.kinds
    found = kinds.evaluate(lambda mix: Combination((Term(noise, *mix[0]),)).mean_absolute)[kinds.members][places]
    assert found == pytest.approx([each.mean_absolute for each in alone], rel=1e-6)
    total = production.table_errors(loss, "absolute")["prefix"]
    gaussian_limit = math.sqrt(2 / math.pi * noise.variance) * np.sqrt(np.arange(1, size + 1)).sum()
    assert total == pytest.approx(gaussian_limit, rel=0.02)


def test_slopes_over_many_kinds() -> None:
    production = MatrixMechanism(identity(600), NOISE_LAWS["geometric"]).production(prefix(600))
    high, low = (production.table_errors(1.5 + sign * 1e-3, "absolute")["prefix"] for sign in (1, -1))
    assert production.table_slopes(1.5, "absolute")["prefix"] == pytest.approx((high - low) / 2e-3, rel=1e-4)
