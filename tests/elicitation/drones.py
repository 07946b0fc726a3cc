"""The drone experiment: deliveries by ground or by drone, with privacy assured or not, at a price.

Answers are those of DUALMANDATE_DATA where it has them, and invented ones of the same shape elsewhere.
"""

from __future__ import annotations

import csv
import gzip
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

DATA = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[3] / "shared" / "data"))
FILE = DATA / "privacy_choice" / "drones_privacy_choice_responses.csv.gz"
COLUMN = re.compile(r"CHOICE_v(\d)_gc(\d)_gt(\d)_dc(\d)_dt(\d)_dp(\d)_1(?:\.1)?")
GOODS = ("food", "prescriptions", "liquor", "groceries")
NAMES = ("ground cost", "ground time", "drone cost", "drone time", "privacy")
COSTS = {good: np.array((0, 1, 5, 10) if good == "prescriptions" else (0, 1, 3, 5), dtype=float) for good in GOODS}
MINUTES = {good: np.array((30, 120, 360, 1440) if good == "prescriptions" else (15, 20, 30, 45.0)) for good in GOODS}
INVENTED = (0.3, 0.4, 0.02, -0.5, -0.02, 1.0)  # constant, then in the order of NAMES


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers about one good: a row a choice."""

    offers: dict[str, NDArray[np.float64]]  # USD, minutes, and 1 for privacy assured
    drone: NDArray[np.bool_]
    respondent: NDArray[np.int64]


def is_real() -> bool:
    return FILE.is_file()


@cache
def answers(good: str) -> Answers:
    coded = _read()[GOODS.index(good)] if is_real() else _invent(good)
    levels = coded[:, 1:6]
    money, minutes = COSTS[good], MINUTES[good]
    values = (money[levels[:, 0]], minutes[levels[:, 1]], money[levels[:, 2]], minutes[levels[:, 3]], levels[:, 4])
    offers = {name: column.astype(np.float64) for name, column in zip(NAMES, values, strict=True)}
    return Answers(offers, coded[:, 6] == 1, coded[:, 0])


@cache
def _read() -> list[NDArray[np.int64]]:
    """By good: respondent, the five levels, and the answer."""
    with gzip.open(FILE, "rt", encoding="utf-8", newline="") as stream:
        header, *rows = csv.reader(stream)
    places = [(i, *map(int, match.groups())) for i, name in enumerate(header) if (match := COLUMN.fullmatch(name))]
    found: list[list[tuple[int, ...]]] = [[] for _ in GOODS]
    for person, row in enumerate(rows):
        for place, good, *levels in places:
            if row[place]:
                found[good].append((person, *levels, int(float(row[place]))))
    return [np.array(each) for each in found]


def _invent(good: str) -> NDArray[np.int64]:
    generator = np.random.default_rng(GOODS.index(good))
    levels = generator.integers(0, (4, 4, 4, 4, 2), (8_000, 5))
    money = COSTS[good][levels[:, [0, 2]]]
    minutes = MINUTES[good][levels[:, [1, 3]]] * 30 / MINUTES[good].mean()
    design = np.column_stack([np.ones(8_000), money[:, 0], minutes[:, 0], money[:, 1], minutes[:, 1], levels[:, 4]])
    yes = generator.random(8_000) < 1 / (1 + np.exp(-design @ np.array(INVENTED)))
    return np.column_stack([np.repeat(np.arange(2_500), 4)[:8_000], levels, yes]).astype(np.int64)
