"""Small surveys with known answers: files of choices and of bids, and the survey files that read them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

CANARY = "canary-7431"

CHOICE = """\
[survey]
source = "answers.csv"
kind = "choice"
unit = "child"
respondent = "id"
task = "task"
alternative = "alt"
chosen = "chosen"

[attributes.price]
column = "price"
unit = "USD"
role = "price"

[attributes.epsilon]
column = "epsilon"
role = "privacy loss"
stated_as = "posterior"
prior = 0.01

[attributes.error]
column = "grant_error"
unit = "USD"
role = "accuracy"

[model]
estimator = "conditional logit"
cluster = "respondent"

[report]
time_base = "per year"
"""

BIDS = """\
[survey]
source = "answers.csv"
kind = "single-bounded"
respondent = "id"
bid = "bid"
answer = "yes"

[scenario]
epsilon = 2.0
unit = "USD"
time_base = "per year"

[report]
time_base = "per year"
"""

LIKERT = """\
[survey]
source = "answers.csv"
kind = "likert"
items = ["privacy", "accuracy", "income"]
"""

HEADER = ("id", "task", "alt", "price", "epsilon", "grant_error", "chosen")
Row = tuple[object, ...]


def choices(
    people: int = 150, *, cost: float = 1400.0, worth: float = 0.4, noise: float = 1000.0, seed: int = 11
) -> list[Row]:
    """Choices between two alternatives, six a person: price + cost·ε + worth·error, up to Gumbel noise; USD."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    for person in range(people):
        for task in range(6):
            price = generator.choice([0.0, 500.0, 1000.0, 3000.0], 2)
            epsilon = generator.choice([0.5, 1.0, 2.0, 4.0], 2)
            error = generator.choice([500.0, 1500.0, 3500.0], 2)
            total = price + cost * epsilon + worth * error - noise * generator.gumbel(size=2)
            for place in range(2):
                shown = (price[place], epsilon[place], error[place])
                rows.append((f"{CANARY}-{person}", task, "ab"[place], *shown, int(total[place] == total.min())))
    return rows


def bids(people: int = 400, *, mean: float = 30.0, scale: float = 8.0, seed: int = 5) -> list[Row]:
    """Answers to one bid each, of people who would pay a logistic amount."""
    generator = np.random.default_rng(seed)
    asked = generator.choice([10.0, 20.0, 30.0, 40.0, 50.0], people)
    amount = generator.logistic(mean, scale, people)
    return [(f"{CANARY}-{i}", asked[i], int(amount[i] > asked[i])) for i in range(people)]


def double_bids(people: int = 400, *, mean: float = 30.0, scale: float = 8.0, seed: int = 6) -> list[Row]:
    """Answers to two bids each; the second is half or double the first."""
    generator = np.random.default_rng(seed)
    first = generator.choice([10.0, 20.0, 30.0, 40.0], people)
    amount = generator.logistic(mean, scale, people)
    second = np.where(amount > first, 2 * first, first / 2)
    return [
        (
            f"{CANARY}-{i}",
            first[i],
            int(amount[i] > first[i]),
            second[i],
            int(amount[i] > second[i]),
            int(amount[i] > 0),
        )
        for i in range(people)
    ]


def opinions(people: int = 800, *, correlation: float = 0.5, seed: int = 7) -> list[Row]:
    """Three items on a scale of four, cut from normal numbers with one correlation."""
    generator = np.random.default_rng(seed)
    shared = generator.standard_normal((people, 1))
    latent = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * generator.standard_normal((people, 3))
    levels = np.digitize(latent, [-1.0, 0.0, 1.0]) + 1
    return [tuple(int(level) for level in row) for row in levels]


def write(folder: Path, text: str, header: Sequence[str], rows: Iterable[Row]) -> Path:
    """Write the answers and the survey file; gives back the survey file."""
    answers = io.StringIO()
    writer = csv.writer(answers, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    (folder / "answers.csv").write_text(answers.getvalue(), encoding="utf-8")
    (folder / "survey.toml").write_text(text, encoding="utf-8")
    return folder / "survey.toml"
