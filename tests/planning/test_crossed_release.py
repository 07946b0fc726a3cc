"""A program whose tables cross: published together, and read back with intervals that rest on all measurements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.population import PrivacyLoss

PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 900, unit = "person", source = "made up" }
source          = "residents.csv"
attributes.ward = ["n1", "n2", "s1", "s2", "s3"]
attributes.age  = ["young", "adult", "old"]
attributes.sex  = ["f", "m"]
attributes.home = ["own", "barracks"]

[population.hierarchies.side]
attribute = "ward"
groups.north = ["n1", "n2"]
groups.south = ["s1", "s2", "s3"]

ZEROS
[mechanism]
noise    = "gaussian"
strategy = "workload"
measured = "apart"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per rho", source = "made up" }
"""
TABLES = {
    "wards": ["ward"],
    "sexes by ward": ["ward", "sex"],
    "sexes by side": ["side", "sex"],
    "everything": ["ward", "sex", "age", "home"],
    "ages by side": ["side", "age"],  # crosses sexes
    "homes by ward": ["ward", "home"],
}
ZEROS = """\
[[population.structural_zeros]]
side = ["north"]
home = ["barracks"]

"""


@pytest.mark.parametrize("zeros", ["", ZEROS])
def test_tables_that_cross_are_published_and_read_back(zeros: str, tmp_path: Path) -> None:
    text = PROGRAM.replace("ZEROS\n", zeros)
    for name, by in TABLES.items():
        value = '{ value = 50, unit = "USD per person^2", source = "made up" }'
        text += f'\n[[workload]]\nname = "{name}"\nby = {by}\nvalue_of_accuracy = {value}\n'
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    rows = [f"{ward},{age},{sex},own\n" for ward in ("n1", "s1", "s2") for age in ("young", "old") for sex in "fm"] * 9
    rows += ["s3,adult,m,barracks\n"] * 40
    (tmp_path / "residents.csv").write_text("ward,age,sex,home\n" + "".join(rows), encoding="utf-8")
    plan = load(tmp_path / "program.toml").plan()
    ledger = open_ledger(tmp_path / "state" / "ledger.sqlite", make_key(tmp_path / "state" / "key"), create=True)
    ledger.open_account(Account("residents", "person", PrivacyLoss.concentrated(100)), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    found = publish(plan, plan.program.source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    release = load_release(found.folder)
    assert release.facts["estimated_together"] is True
    assert "'ages by side'" in release.facts["consistency"]
    assert ("What cannot occur in some places" in release.facts["consistency"]) == bool(zeros)
    whole = release.published("everything").values
    ages, homes = release.published("ages by side").values, release.published("homes by ward").values
    assert whole is not None
    assert ages is not None
    assert homes is not None
    cells = whole.reshape(5, 3, 2, 2)  # ward, age, sex, home
    assert np.array_equal(np.add.reduceat(cells.sum(axis=(2, 3)), [0, 2], axis=0).reshape(-1), ages)
    assert np.array_equal(cells.sum(axis=(1, 2)).reshape(-1), homes)
    if zeros:
        assert not cells[:2, :, :, 1].any()
        known = release.interval("homes by ward", ward="n1", home="barracks")
        assert (known.lower, known.upper) == (0.0, 0.0)
    for table, where in (("ages by side", {"side": "north"}), ("homes by ward", {"ward": "s3", "home": "own"})):
        interval = release.interval(table, where, probability=0.9)
        assert interval.lower < release.estimate(table, where) < interval.upper
        assert interval.probability >= 0.9
    together = release.interval("ages by side", side="south", age="old")
    assert together.upper - together.lower < 2 * 3 * release.published("ages by side").standard_errors.max()
