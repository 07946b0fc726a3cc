"""Random programs are published, and their charges held against every neighbor, written out (`brute_force`).

`DUALMANDATE_CHECKED=1000` checks so many, as `make bench` does.
"""

from __future__ import annotations

import ast
import os
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest
from tests.publication.brute_force import KINDS, Stated, Written
from tests.random_programs import TinyProgram, to_toml

from dualmandate import load
from dualmandate.apps.publish import publish
from dualmandate.errors import Refusal
from dualmandate.ledger import Account, Approval, Ledger, make_key, open_ledger
from dualmandate.mechanism.measurement import Measurement
from dualmandate.population import PrivacyLoss, protection
from dualmandate.population.moves import Together
from dualmandate.workload.sensitivity import Sensitivity

PROGRAMS = int(os.environ.get("DUALMANDATE_CHECKED", "60"))
BATCHES = 5  # no divisor of the number of kinds: each has some of all
MOST_DRAWN, MOST_REFUSED = 2000, 20  # until one is of a kind, and is published


class Drawn(Protocol):
    """A program and its records."""

    def text(self) -> str:
        """The program file."""

    def records(self) -> str:
        """The CSV file."""


def published(folder: Path, program: Drawn) -> tuple[Written, Fraction] | None:
    """A release of the program, and what the ledger was charged; None where it is refused."""
    folder.mkdir()
    (folder / "program.toml").write_text(program.text(), encoding="utf-8")
    (folder / "data.csv").write_text(program.records(), encoding="utf-8")
    try:
        loaded = load(folder / "program.toml")
        plan = loaded.plan()
        ledger = _ledger(folder, plan)
        assert loaded.source is not None
        release = publish(plan, loaded.source, ledger, out=folder / "releases", by="Ben", unchecked=True)
    except Refusal:
        return None
    entry = ledger.release(release.facts["release"])
    return Written.of(release.folder), entry.loss.amount


def _ledger(folder: Path, plan: Any) -> Ledger:
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    ledger.open_account(
        Account("people", "person", PrivacyLoss(Fraction(10**9), plan.charge.privacy_measure)), by="Ann"
    )
    ledger.approve(Approval("people", plan.digest, plan.charge, "person", by="Ann"))
    return ledger


@pytest.fixture(autouse=True)
def nothing_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What making tables whole does to their errors is simulated after the noise: most of the time, and not asked."""
    monkeypatch.setattr("dualmandate.publication.post_processing.MOST_SIMULATED", 0)


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_no_neighbor_is_farther_away_than_was_charged(batch: int, tmp_path: Path, tell: Callable[[str], None]) -> None:
    """Each program is of one of the kinds in turn, and may be of others as well."""
    met, attained = Counter[str](), 0
    numbers = range(batch, PROGRAMS, BATCHES)
    for number in numbers:
        wanted = KINDS[number % len(KINDS)]
        program, release, charge = next(drawn(tmp_path, number, wanted))
        farthest = release.farthest
        assert wanted in release.kinds
        assert farthest <= charge == release.charge, f"{release.folder}: {farthest} for {charge}"
        if program.strategy == "workload":
            assert release.measured_again() == release.tables_again(), str(release.folder)
        met.update(release.kinds)
        attained += farthest >= charge * Fraction(999, 1000)
    tell(f"charges held against every neighbor: {len(numbers)} programs, {dict(met)}")
    assert attained >= len(numbers) / 3  # most charges are no more than what some neighbor costs


def test_every_kind_is_met() -> None:
    assert min(Counter(KINDS[number % len(KINDS)] for number in range(PROGRAMS))[kind] for kind in KINDS) >= 4


def drawn(folder: Path, number: int, wanted: str) -> Iterator[tuple[TinyProgram, Written, Fraction]]:
    """Programs of a kind that are published; few of that kind may be refused."""
    refused = 0
    for seed in range(number, number + MOST_DRAWN * PROGRAMS, PROGRAMS):
        if wanted not in Stated(tomllib.loads(TinyProgram(np.random.default_rng(seed)).text())).kinds:
            continue
        program = TinyProgram(np.random.default_rng(seed))
        made = published(folder / f"program-{seed}", program)
        if made is not None:
            yield program, *made
        refused += made is None
        assert refused < MOST_REFUSED, f"{refused} programs with {wanted} are refused"
    raise AssertionError(f"no program with {wanted} is drawn")


HALVED = ("add-or-remove", "several records of a unit, replaced", "exact totals", "sums")


@pytest.mark.slow
@pytest.mark.parametrize("kind", HALVED)
def test_half_a_sensitivity_is_found(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The noise of half the sensitivity, whatever the law: some neighbor is farther away than was charged."""
    whole = vars(Measurement)["sensitivity"].func

    def half(measurement: Measurement) -> Sensitivity:
        found: Sensitivity = whole(measurement)
        return replace(found, power=found.power / (2 if found.norm == "l1" else 4))

    monkeypatch.setattr(Measurement, "sensitivity", property(half))
    _, release, charge = next(drawn(tmp_path, KINDS.index(kind), kind))
    assert release.farthest > charge


MARGINS = {"two margins": ("ab", ("a", "b"), 2), "three margins": ("abc", ("ab", "ac", "bc"), 4)}


@pytest.mark.parametrize("name", MARGINS)
def test_a_charge_for_too_few_records_is_found(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Totals that cross, with as many records as they need, and with half: that is refused, and here is why."""
    letters, margins, needed = MARGINS[name]
    stated = {"source": "drawn", "unit": "person"}
    document: dict[str, Any] = {
        "program": {"schema": 1, "name": "crossing"},
        "population": {
            "account": "people",
            "unit": "person",
            "neighbors": "replace-one",
            "population_size": {"value": 1000, **stated},
            "source": "data.csv",
            "dropping_is_public": True,
            "attributes": {letter: ["0", "1"] for letter in letters},
        },
        "invariants": [{"name": f"by {margin}", "by": list(margin)} for margin in margins],
        "workload": [
            {
                "name": "cells",
                "by": list(letters),
                "value_of_accuracy": {"value": 100, "unit": "USD per person^2", "source": "drawn"},
            }
        ],
        "mechanism": {"noise": "geometric", "strategy": "workload"},
        "preferences": {
            "information_utility": "linear",
            "mean_disclosure_cost": {"value": 2, "unit": "USD per person per epsilon", "source": "drawn"},
        },
    }

    class Stated:
        def __init__(self, records: int) -> None:
            document["population"]["records_changing_together"] = records

        def text(self) -> str:
            return to_toml(document)

        def records(self) -> str:
            return ",".join(letters) + "\n" + ",".join("0" * len(letters)) + "\n"

    enough = published(tmp_path / "enough", Stated(needed))
    assert enough is not None
    assert enough[0].farthest == enough[1]
    assert published(tmp_path / "refused", Stated(needed // 2)) is None
    monkeypatch.setattr(protection, "together", lambda *_: Together(1, 1))
    protection._crossing.cache_clear()
    try:
        believed = published(tmp_path / "believed", Stated(needed // 2))
    finally:
        protection._crossing.cache_clear()
    assert believed is not None
    assert believed[0].farthest == 2 * believed[1]


def test_the_checker_uses_no_sensitivity_of_the_package() -> None:
    """It asks the package for nothing but a release: what its files say, and how a file is counted."""
    tree = ast.parse((Path(__file__).parent / "brute_force.py").read_text(encoding="utf-8"))
    imported = {
        f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    ours = {name for name in imported if name.startswith(("dualmandate", "tests"))}
    assert ours == {"dualmandate.load_release"}
    asked = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not asked & {"sensitivity", "protection", "noises", "steps", "changed", "loss_of", "kept"}
