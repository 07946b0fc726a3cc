"""A small town that every test of questions asks about: its domain, its records, its ledger."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.inquiry import Inquirer
from dualmandate.ledger import Account, AccountLimit, Ledger, Scope, make_key, open_ledger
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy, PrivacyLoss, Protection
from dualmandate.publication import CsvFile, Rules

AGES = [str(age) for age in range(12)]
AGE = Attribute.ordered_levels("age", AGES, missing="unknown")
WARD = Attribute.categories("ward", ("north", "east", "south", "west"))
INCOME = Attribute.numbers("income", -20, 100, 5, missing="not asked")
PAID = Attribute.binned("paid", (0, 10, 50))
COAST = Hierarchy("ward", (Grouping.of("coast", ["sea", "land", "land", "sea"]),))
DOMAIN = Domain((AGE, WARD, INCOME, PAID), (COAST,))
NULLS = {"age": "unknown", "income": "not asked"}


@dataclass(frozen=True, eq=False)
class Town:
    """What a program declares, as `Inquirer` reads it."""

    name: str = "town"
    account: str = "people"
    domain: Domain = DOMAIN
    protection: Protection = field(default_factory=Protection)
    rules: Rules = field(default_factory=Rules)
    seen_in_the_data: tuple[str, ...] = ()


def records(count: int = 400) -> list[tuple[str, str, str, str]]:
    chance = random.Random(7)
    return [
        (
            chance.choice([*AGES, "unknown"]),
            chance.choice(WARD.levels),
            chance.choice(INCOME.levels),
            chance.choice(["3", "10", "50"]),
        )
        for _ in range(count)
    ]


def counts_of(rows: list[tuple[str, str, str, str]]) -> NDArray[np.int64]:
    counts = np.zeros(DOMAIN.shape, dtype=np.int64)
    for age, ward, income, paid in rows:
        counts[AGE.position(age), WARD.position(ward), INCOME.position(income), int(paid != "3")] += 1
    return counts


def written_to(path: Path, rows: list[tuple[str, str, str, str]]) -> CsvFile:
    path.write_text("age,ward,income,paid\n" + "".join(",".join(row) + "\n" for row in rows))
    return CsvFile(path)


def ledger_in(folder: Path, cap: PrivacyLoss, *, each_user: Fraction | None = None) -> Ledger:
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    limits = () if each_user is None else (AccountLimit(Scope.USER, each_user),)
    ledger.open_account(Account("people", "person", cap, limits), by="Ben")
    return ledger


def inquirer_in(
    folder: Path, cap: PrivacyLoss, *, town: Town | None = None, each_user: Fraction | None = None
) -> Inquirer:
    source = written_to(folder / "people.csv", records())
    return Inquirer(town or Town(), ledger_in(folder, cap, each_user=each_user), source, answers=folder / "answers")
