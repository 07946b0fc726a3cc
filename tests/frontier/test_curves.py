"""What follows from curves in the same way for every kind of frontier."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, UnknownName
from dualmandate.frontier.frontier import TableWeights
from dualmandate.frontier.numerics import derivative, loss_where
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.laplace import LAPLACE

if TYPE_CHECKING:
    from tests.frontier.conftest import LawFrontier


def test_numerical_slopes_are_nearly_exact() -> None:
    for at in (1e-6, 1.0, 1e4):
        assert derivative(lambda loss: 1.0 / loss, at) == pytest.approx(-1 / at**2, rel=1e-11)
        assert derivative(lambda loss: loss**-4.0, at) == pytest.approx(-4 / at**5, rel=1e-11)
    steep = derivative(lambda loss: math.exp(-loss), 50.0)
    assert steep == pytest.approx(-math.exp(-50.0), rel=1e-7)
    both = derivative(lambda loss: np.array([loss, 1 / loss]), 2.0)
    assert both == pytest.approx([1.0, -0.25])


@pytest.mark.parametrize("target", [1e-200, 1e-20, 1.0, 3.7, 1e9, 1e40])
def test_curves_are_inverted_to_full_precision(target: float) -> None:
    found = loss_where(GEOMETRIC.variance, target)
    assert GEOMETRIC.variance(found) == pytest.approx(target, rel=1e-9)
    assert loss_where(lambda loss: 2 / loss**2, target) == pytest.approx(math.sqrt(2 / target), rel=1e-13)


def test_a_curve_that_vanishes_from_floats_is_still_inverted() -> None:
    """Beyond 745 e^{−loss} is exactly 0: the bracket must not end there."""
    found = loss_where(GEOMETRIC.variance, 1e-307)
    assert found == pytest.approx(307 * math.log(10) + math.log(2), rel=1e-6)


def test_targets_that_a_curve_never_or_always_reaches() -> None:
    assert loss_where(lambda loss: 1 + 1 / loss, 0.5) == math.inf
    assert loss_where(lambda loss: 1 / (1 + loss), 2.0) == 0.0


def test_accuracies_that_need_no_protection_at_all_are_refused(of_law: LawFrontier) -> None:
    frontier = of_law(LAPLACE, {"a": 13_000.0})
    for accuracy in (0.0, 1.0, math.nan, -math.inf):
        with pytest.raises(InvalidLoss, match="no privacy loss buys") as refusal:
            frontier.epsilon_for(accuracy)
        assert "epsilon = 1 buys -26000" in refusal.value.instead
    for loss in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(InvalidLoss, match="a privacy loss of"):
            frontier.accuracy(loss)
    with pytest.raises(UnknownName, match="not a measure"):
        frontier.table_errors(1.0, "relative")  # type: ignore[arg-type]


def test_weights_add_up_tables_in_their_own_measure(of_law: LawFrontier) -> None:
    frontier = of_law(GAUSSIAN, {"a": 3.0, "b": 5.0})
    weights = TableWeights.of(frontier.tables, {"a": 2.0}, {"b": "absolute"})
    expected = 2 * 3 * GAUSSIAN.variance(0.7) + 5 * GAUSSIAN.mean_absolute(0.7)
    assert weights.total(frontier, 0.7) == pytest.approx(expected)
    slope = derivative(lambda at: weights.total(frontier, at), 0.7)
    assert weights.slope(frontier, 0.7) == pytest.approx(slope, rel=1e-9)
    assert weights.only(("b",)) == TableWeights(("b",), (1.0,), ("absolute",))
