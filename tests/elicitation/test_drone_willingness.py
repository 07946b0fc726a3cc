"""Fieller's intervals on the drone experiment, a real survey that puts a price on privacy."""

from __future__ import annotations

import csv
import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest

from dualmandate.elicitation.answers import ChoiceData
from dualmandate.elicitation.logit import conditional_logit
from dualmandate.elicitation.willingness import willingness_to_pay

DATA = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = DATA / "privacy_choice" / "drones_privacy_choice_responses.csv.gz"
COLUMN = re.compile(r"CHOICE_v(\d)_gc(\d)_gt(\d)_dc(\d)_dt(\d)_dp(\d)_1(?:\.1)?")
COSTS, MINUTES = (0, 1, 3, 5), (15, 20, 30, 45)
DEAR, SLOW = (0, 1, 5, 10), (30, 120, 360, 1440)  # prescriptions
NAMES = ("ground cost", "ground time", "drone cost", "drone time", "privacy")


@pytest.fixture(scope="module")
def answered() -> dict[int, list[tuple[int, bool, tuple[float, ...]]]]:
    """By good: who answered, whether with the drone, and what was offered."""
    if not FILE.exists():
        pytest.skip("the drone experiment is not in DUALMANDATE_DATA")
    found: dict[int, list[tuple[int, bool, tuple[float, ...]]]] = {good: [] for good in range(4)}
    with gzip.open(FILE, "rt", encoding="utf-8", newline="") as stream:
        header, *rows = list(csv.reader(stream))
    places = [
        (i, [int(digit) for digit in match.groups()])
        for i, name in enumerate(header)
        if (match := COLUMN.fullmatch(name))
    ]
    for person, row in enumerate(rows):
        for i, (good, *levels) in places:
            if row[i].strip():
                costs, minutes = (DEAR, SLOW) if good == 1 else (COSTS, MINUTES)
                ground_cost, ground_time, drone_cost, drone_time, privacy = levels
                offer = costs[ground_cost], minutes[ground_time], costs[drone_cost], minutes[drone_time], privacy
                found[good].append((person, float(row[i]) == 1, tuple(map(float, offer))))
    return found


@pytest.mark.parametrize(
    ("good", "choices", "estimate", "error", "interval"),
    [
        (0, 9_528, 1.8506, 0.1124, (1.636, 2.078)),
        (1, 11_481, 4.6786, 0.1960, (4.304, 5.074)),
        (2, 7_269, 1.9383, 0.1143, (1.720, 2.169)),
        (3, 8_019, 2.0414, 0.1159, (1.822, 2.277)),
    ],
    ids=["food", "prescriptions", "liquor", "groceries"],
)
def test_fieller_on_the_drone_experiment(
    answered: dict[int, list[tuple[int, bool, tuple[float, ...]]]],
    good: int,
    choices: int,
    estimate: float,
    error: float,
    interval: tuple[float, float],
) -> None:
    people, yes, offers = zip(*answered[good], strict=True)
    columns = dict(zip(NAMES, np.array(offers).T, strict=True))
    data = ChoiceData.of_answers(columns, yes=yes, respondent=people, price="drone cost")
    found = willingness_to_pay(conditional_logit(data), "privacy", "drone cost", method="fieller")
    assert data.tasks == choices
    assert found.estimate == pytest.approx(estimate, abs=5e-5)
    assert found.standard_error == pytest.approx(error, abs=5e-5)
    assert found.interval == pytest.approx(interval, abs=5.1e-4)
    simulated = willingness_to_pay(conditional_logit(data), "privacy", "drone cost", method="krinsky-robb")
    assert simulated.interval == pytest.approx(interval, abs=0.01)
