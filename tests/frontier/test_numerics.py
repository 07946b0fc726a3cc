"""Derivatives, inverses and polynomials of error curves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.frontier import frontier_of
from dualmandate.frontier.numerics import SmoothCurve, least_sum
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, STAIRCASE, MatrixMechanism, NoiseLaw, geometric
from dualmandate.workload import identity, prefix


@pytest.mark.parametrize("law", [GEOMETRIC, GAUSSIAN, STAIRCASE], ids=lambda law: str(law.name))
def test_polynomials_agree_with_the_sums_they_replace(law: NoiseLaw) -> None:
    mechanism, workload = MatrixMechanism(identity(3), law), prefix(3)
    frontier, production = frontier_of(mechanism, workload), mechanism.production(workload)
    for loss in (0.02, 0.7, 1.0, 3.3):
        exact = production.table_errors(loss, "absolute")
        assert frontier.table_errors(loss, "absolute") == pytest.approx(exact, rel=1e-9)
        slopes = production.table_slopes(loss, "absolute")
        assert frontier.table_slopes(loss, "absolute") == pytest.approx(slopes, rel=1e-6)


def test_derivatives_of_a_known_curve_across_stretches() -> None:
    """1/sinh(l): elasticity −l·coth(l), and its derivative in ln l, −l·coth(l) + l²/sinh²(l)."""
    curve = SmoothCurve(lambda loss: np.array([1 / math.sinh(loss), 5.0]))
    for loss in np.logspace(-3, 1.2, 40).tolist():
        logs = curve.logs(loss)
        assert logs is not None
        level, elasticity, bend = (part.tolist() for part in logs)
        assert level == pytest.approx([-math.log(math.sinh(loss)), math.log(5)], abs=1e-11)
        assert elasticity == pytest.approx([-loss / math.tanh(loss), 0.0], abs=1e-9)
        assert bend == pytest.approx([-loss / math.tanh(loss) + (loss / math.sinh(loss)) ** 2, 0.0], abs=1e-6)


def test_a_stretch_is_computed_once_and_rough_or_vanished_ones_are_not_read_off() -> None:
    asked: list[float] = []

    def watched(loss: float) -> NDArray[np.float64]:
        asked.append(loss)
        return np.array([1 / loss if loss < 100 else 0.0])

    curve = SmoothCurve(watched)
    for loss in np.linspace(1.0, 2.4, 50).tolist():
        assert curve.logs(loss) is not None
    assert len(asked) == len(set(asked)) <= 32
    assert curve.logs(99.0) is None  # it vanishes within the stretch
    vanished = curve.logs(1e4)
    assert vanished is not None
    assert [float(part[0]) for part in vanished] == [-math.inf, 0.0, 0.0]
    assert SmoothCurve(lambda loss: np.array([1.0 + 0.1 * (loss > 1.5)])).logs(1.4) is None


def test_single_draws_are_computed_directly() -> None:
    frontier = frontier_of(geometric(), identity(4))
    assert frontier.table_errors(1.0, "absolute")["identity"] == pytest.approx(4 / math.sinh(1.0), rel=1e-15)


def test_a_rising_and_a_falling_curve_are_bounded_together() -> None:
    """3x + 4/x² is least at x³ = 8/3, where it is 9x/2; steps and kinks are no obstacle; ends may be where it is."""
    least = 4.5 * math.cbrt(8 / 3)

    def cost(loss: float) -> float:
        return 3 * loss

    def error(loss: float) -> float:
        return 4 / loss**2

    assert 0.995 * least <= least_sum(cost, error, 1e-3, 1e3) <= least
    assert least_sum(cost, error, 2.0, 1e3) == pytest.approx(7.0, rel=5e-3)
    assert least_sum(cost, error, 1e-3, 1.0) == pytest.approx(7.0, rel=5e-3)
    # Steps up by 1 at whole numbers: just below 2 the sum is least, 1 + 1.
    assert least_sum(math.floor, error, 0.1, 9.0) == pytest.approx(2.0, rel=5e-3)
