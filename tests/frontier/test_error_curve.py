"""Errors other than squared: intervals, relative errors, and the losses they take."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss
from dualmandate.frontier import interval
from dualmandate.mechanism import GEOMETRIC, LAPLACE, MatrixMechanism, geometric, laplace
from dualmandate.workload import identity, prefix

COUNTS = identity(20)


def test_laplace_intervals_in_closed_form() -> None:
    """P(|X| > α) = e^{−αε}: α = ln(1/β)/ε; all of twenty at once: 1 − (1 − β)^{1/20} each."""
    production = laplace().production(COUNTS)
    alone = interval(production, "identity", failure_probability=0.05)
    assert alone.at(2.0) == pytest.approx(math.log(20) / 2)
    assert alone.loss_for(1.0) == pytest.approx(math.log(20), rel=1e-8)
    assert alone.at(alone.loss_for(1.0)) <= 1.0
    together = interval(production, "identity", failure_probability=0.05, simultaneous=True)
    assert together.at(2.0) == pytest.approx(-math.log(1 - 0.95 ** (1 / 20)) / 2)


def test_whole_number_intervals_shrink_in_steps_and_the_loss_found_is_enough() -> None:
    production = geometric().production(COUNTS)
    curve = interval(production, "identity", failure_probability=0.05)
    assert {curve.at(loss) for loss in np.linspace(1.0, 4.0, 40)} == {0.0, 1.0, 2.0, 3.0}
    loss = curve.loss_for(1.5)
    assert curve.at(loss) == 1.0
    assert GEOMETRIC.at(loss).tail(1) <= 0.05 < GEOMETRIC.at(loss * 0.999).tail(1)
    assert curve.loss_for(1.0) == loss


def test_intervals_of_reconstructed_answers_hold_in_simulation() -> None:
    production = MatrixMechanism(identity(6), LAPLACE).production(prefix(6))
    curve = interval(production, "prefix", failure_probability=0.1)
    draws = production.draw(np.zeros(6, dtype=np.int64), 1.0, generator=np.random.default_rng(3), size=40_000)
    worst = np.abs(draws[:, -1])  # the sum of all six
    assert float(np.mean(worst > curve.at(1.0))) == pytest.approx(0.1, abs=0.006)


def test_targets_out_of_reach_are_refused() -> None:
    curve = interval(laplace().production(COUNTS), "identity", failure_probability=0.05)
    with pytest.raises(InvalidLoss, match="interval of 'identity' of 0"):
        curve.loss_for(0.0)
    with pytest.raises(InvalidLoss, match="out of reach"):
        curve.loss_for(1e-15)
    assert curve.loss_for(1e15) < 1e-11
