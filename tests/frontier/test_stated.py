"""Stated shares of one loss: each group at its own share, never better than the best split."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest

from dualmandate.errors import InvalidLoss, InvalidWorkload
from dualmandate.frontier import split, stated_split
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.laplace import LAPLACE

if TYPE_CHECKING:
    from tests.frontier.conftest import LawFrontier

HALVES = {"a": Fraction(1, 2), "b": Fraction(1, 2)}


def test_each_group_gets_its_share(of_law: LawFrontier) -> None:
    """Laplace noise has 2/ε²: with ε = 6 in shares of 1/6, 1/3 and 1/2, coefficients 1, 8 and 27 lose 6 in all."""
    groups = {name: of_law(LAPLACE, {name: c / 2}) for name, c in (("a", 1.0), ("b", 8.0), ("c", 27.0))}
    shares = {"a": Fraction(1, 6), "b": Fraction(1, 3), "c": Fraction(1, 2)}
    frontier = stated_split(groups, shares)
    assert frontier.allocation(6) == pytest.approx({"a": 1, "b": 2, "c": 3})
    assert frontier.table_losses(6) == pytest.approx({"a": 1, "b": 2, "c": 3})
    assert frontier.table_slopes(6) == pytest.approx({"a": -2 / 6, "b": -2 / 3, "c": -1})  # −2/ε of each
    assert frontier.table_curvatures(6) == pytest.approx({"a": 6 / 36, "b": 12 / 36, "c": 18 / 36})
    assert frontier.expected_squared_error(6) == pytest.approx(split(groups).expected_squared_error(6))


def test_no_shares_beat_the_best_ones(of_law: LawFrontier) -> None:
    groups = {"a": of_law(GAUSSIAN, {"a": 1.0}), "b": of_law(GAUSSIAN, {"b": 9.0})}
    best = split(groups)
    for part in range(1, 10):
        shares = {"a": Fraction(part, 10), "b": Fraction(10 - part, 10)}
        assert stated_split(groups, shares).expected_squared_error(0.5) >= best.expected_squared_error(0.5)


@pytest.mark.parametrize(
    "shares",
    [{"a": Fraction(1)}, {"a": Fraction(1, 2), "b": Fraction(1, 3)}, {"a": Fraction(3, 2), "b": Fraction(-1, 2)}],
)
def test_shares_that_are_not_the_whole_loss_are_refused(of_law: LawFrontier, shares: dict[str, Fraction]) -> None:
    groups = {name: of_law(LAPLACE, {name: 1.0}) for name in ("a", "b")}
    with pytest.raises(InvalidLoss, match="shares that add up to"):
        stated_split(groups, shares)


def test_groups_count_alike_and_share_no_table(of_law: LawFrontier) -> None:
    with pytest.raises(InvalidWorkload, match="in two groups"):
        stated_split({name: of_law(LAPLACE, {"t": 1.0}) for name in HALVES}, HALVES)
    with pytest.raises(InvalidLoss, match="different currencies"):
        stated_split({"a": of_law(LAPLACE, {"a": 1.0}), "b": of_law(GAUSSIAN, {"b": 1.0})}, HALVES)
