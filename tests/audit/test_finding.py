"""Rates and their intervals: closed forms, published tables, coverage, and what is no rate."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.audit.finding import Range, Rate
from dualmandate.errors import InvalidRequest


def test_rates_at_the_ends() -> None:
    assert Rate(0, 10).interval()[0] == 0.0
    assert Rate(0, 10).interval()[1] == pytest.approx(1 - 0.025 ** (1 / 10))  # closed form
    assert Rate(10, 10).interval() == pytest.approx((0.025 ** (1 / 10), 1.0))
    assert Rate(8, 100).interval() == pytest.approx((0.0352, 0.1516), abs=5e-5)  # published tables
    assert "8 % (8 of 100" in str(Rate(8, 100))
    for wrong in ((1, 0), (3, 2), (-1, 2)):
        with pytest.raises(InvalidRequest):
            Rate(*wrong)


def test_intervals_cover() -> None:
    generator = np.random.default_rng(1)
    for truth in (0.002, 0.05, 0.5):
        counts = generator.binomial(200, truth, 2000)
        ends = {int(count): Rate(int(count), 200).interval() for count in np.unique(counts)}
        assert np.mean([ends[int(c)][0] <= truth <= ends[int(c)][1] for c in counts]) >= 0.94


def test_ends_of_an_interval_are_told_apart_and_what_cannot_be_below_nothing_has_one_end() -> None:
    assert str(Rate(8_996_155, 9_104_774)).endswith("95 % interval 98.8 % to 98.81 %)")
    assert str(Range(0.0, 0.922, "of the draws")) == "at most 92.2 % of the draws"
    assert str(Range(0.0, 2.4442, "epsilon")) == "at most 2.4442 epsilon"
    assert str(Range(0.0, 5.0, "USD")) == "0 to 5 USD"  # an amount may be below 0
    assert str(Range(0.0, 0.0, "epsilon")) == "0 epsilon"
    assert str(Range(2.142e17, 2.142e17, "a place")) == "214 quadrillion a place"
