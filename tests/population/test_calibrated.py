"""Numbers that are known with uncertainty."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dualmandate.errors import InvalidValue
from dualmandate.population import Calibrated, Units

COST = "USD per child per epsilon"


def test_uncertainty_is_converted_with_its_number() -> None:
    cost = Calibrated(10, "USD per child", "a survey", standard_error=2, least=5, largest=20)
    assert cost.uncertain
    other = cost.to("dollars per children", Units("child"))
    assert (other.value, other.standard_error, other.least, other.largest) == (10, 2, 5, 20)
    per_square = Calibrated(4, "USD^2 per child^2", "a survey", standard_error=1).to("USD^2 / child^2", Units("child"))
    assert per_square.standard_error == 1
    assert not Calibrated(10, COST, "a survey").uncertain


@pytest.mark.parametrize(
    "stated",
    [
        {"standard_error": 0.0},
        {"standard_error": -1.0},
        {"standard_error": math.inf},
        {"least": 1.0},
        {"largest": 20.0},
        {"least": 11.0, "largest": 20.0},
        {"least": 1.0, "largest": 9.0},
        {"least": 10.0, "largest": 10.0},
        {"least": -1.0, "largest": 20.0},
        {"least": 1.0, "largest": math.inf},
    ],
)
def test_uncertainty_that_cannot_be_meant(stated: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        Calibrated(10, COST, "a survey", **stated)


def test_nothing_is_not_uncertain() -> None:
    with pytest.raises(InvalidValue, match="standard_error"):
        Calibrated(0, COST, "a survey", standard_error=1.0)
