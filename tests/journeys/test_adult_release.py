"""Two-way tables of the Adult records: planned, approved, published, read back, with intervals that hold.

The records are those of DUALMANDATE_DATA where it has them, and invented ones of the same shape elsewhere.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dualmandate
from dualmandate.ledger import Account, Approval, Ledger, make_key, open_ledger
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.publication.release import Release

DATA = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[3] / "shared" / "data"))
ATTRIBUTES = {"education-num": 16, "marital-status": 7, "race": 5, "sex": 2, "income>50K": 2}
RECORDS = 48_842
RELEASES, CELLS = 6, 60  # secrets, and numbers of each release whose intervals are tried


def records() -> Iterator[tuple[str, ...]]:
    file = DATA / "adult" / "adult.csv.gz"
    if file.is_file():
        with gzip.open(file, "rt", encoding="utf-8", newline="") as opened:
            yield from (tuple(row[name] for name in ATTRIBUTES) for row in csv.DictReader(opened))
        return
    generator = np.random.default_rng(1994)
    columns = [np.floor(size * generator.random(RECORDS) ** 2).astype(int) for size in ATTRIBUTES.values()]
    yield from (tuple(map(str, row)) for row in zip(*columns, strict=True))


def program(noise: str, unit: str) -> str:
    names = list(ATTRIBUTES)
    tables = "\n".join(
        f"""[[workload]]
name = "{one} by {other}"
by   = ["{one}", "{other}"]
value_of_accuracy = {{ value = 1.0, unit = "USD per person^2", source = "made up" }}
"""
        for one, other in combinations(names, 2)
    )
    levels = "\n".join(f'"{name}" = {{ from = 0, to = {size - 1} }}' for name, size in ATTRIBUTES.items())
    return f"""[program]
schema = 1
name   = "adult"

[population]
account         = "adults"
unit            = "person"
neighbors       = "add-or-remove"
population_size = {{ value = {RECORDS}, unit = "person", source = "UCI Adult" }}
source          = "adult.csv"

[population.attributes]
{levels}

{tables}
[mechanism]
noise = "{noise}"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 1.0, unit = "USD per person per {unit}", source = "made up" }}

[limits]
largest_{unit} = 0.5
"""


def account(folder: Path, plan: dualmandate.Plan) -> Ledger:
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    privacy_measure = plan.loss.privacy_measure
    ledger.open_account(Account("adults", "person", PrivacyLoss(100 * plan.loss.amount, privacy_measure)), by="Ann")
    ledger.approve(Approval("adults", plan.digest, plan.loss, "person", by="Ben"))
    return ledger


def true_tables(rows: list[tuple[str, ...]]) -> dict[str, NDArray[np.int64]]:
    """Every two-way table, counted without noise."""
    columns = dict(zip(ATTRIBUTES, np.array(rows, dtype=np.int64).T, strict=True))
    found = {}
    for one, other in combinations(ATTRIBUTES, 2):
        counts = np.zeros((ATTRIBUTES[one], ATTRIBUTES[other]), dtype=np.int64)
        np.add.at(counts, (columns[one], columns[other]), 1)
        found[f"{one} by {other}"] = counts
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "unit"), [("geometric", "epsilon"), ("gaussian", "rho")])
def test_two_way_tables_load_back_with_intervals_that_hold(noise: str, unit: str, tmp_path: Path) -> None:
    rows = list(records())
    with (tmp_path / "adult.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([tuple(ATTRIBUTES), *rows])
    (tmp_path / "program.toml").write_text(program(noise, unit), encoding="utf-8")
    plan = dualmandate.load(tmp_path / "program.toml").plan()
    assert plan.loss.privacy_measure is PrivacyMeasure(unit)
    assert plan.program.source is not None
    ledger = account(tmp_path, plan)
    generator, held, promised, truths = np.random.default_rng(5), [], [], true_tables(rows)
    for number in range(RELEASES):
        out = tmp_path / f"out {number}"
        release = (
            dualmandate.publish(plan, plan.program.source, ledger, out=out, by="Eve", unchecked=True)
            if number == 0
            else again(plan, ledger, out)
        )
        release = dualmandate.load_release(release.folder)
        for _ in range(CELLS):
            table = release.tables[int(generator.integers(len(release.tables)))]
            published, truth = release.published(table), truths[table]
            cell = tuple(int(generator.integers(size)) for size in truth.shape)
            named = {name: published.labels[i][cell[i]] for i, name in enumerate(published.columns)}
            if generator.random() < 0.3:  # a whole row of the table
                named.pop(published.columns[-1])
            interval = release.interval(table, named, probability=0.9)
            exact = truth[cell] if len(named) == 2 else truth[cell[0]].sum()
            held.append(interval.lower - 1e-9 <= exact <= interval.upper + 1e-9)
            promised.append(interval.probability)
    assert min(promised) >= 0.9
    # Cells of a release err together; with 360 draws in 6 independent releases this is some four standard errors.
    assert np.mean(held) == pytest.approx(np.mean(promised), abs=0.08)
    everything = {name: release.published(name) for name in release.tables}
    assert {table.values.sum() for table in everything.values() if table.values is not None} == {
        everything[release.tables[0]].values.sum()  # type: ignore[union-attr]
    }
    assert ledger.spent("adults") == RELEASES * plan.loss.amount


def again(plan: dualmandate.Plan, ledger: Ledger, out: Path) -> Release:
    from dualmandate.planning.release_spec import release_spec_of_plan
    from dualmandate.publication import publish as publishing

    assert plan.program.source is not None
    asked = publishing.PublicationRequest("Eve", plan.program.source.name, again=True, unchecked=True)
    return dualmandate.load_release(
        publishing.publish(release_spec_of_plan(plan), plan.program.source, ledger, out=out, request=asked)
    )
