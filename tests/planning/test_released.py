"""Reading a release back refuses what was changed, wherever it points."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.audit import audit
from dualmandate.errors import InvalidRelease, Refusal
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
attributes.ward = ["north", "east", "south"]
attributes.age  = { from = 0, to = 7 }

[[workload]]
name = "wards"
by   = ["ward"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }

[[workload]]
name = "ages by ward"
by   = ["ward", "age"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }

[mechanism]
noise    = "geometric"
strategy = "STRATEGY"
measured = "MEASURED"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""


def released(folder: Path, strategy: str = "optimized", measured: str = "together") -> Path:
    text = PROGRAM.replace("STRATEGY", strategy).replace("MEASURED", measured)
    (folder / "program.toml").write_text(text, encoding="utf-8")
    rows = "".join(f"{ward},{age}\n" for ward in ("north", "east") for age in range(8) for _ in range(20))
    (folder / "residents.csv").write_text("ward,age\n" + rows, encoding="utf-8")
    plan = load(folder / "program.toml").plan()
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    ledger.open_account(Account("residents", "person", PrivacyLoss.pure(100)), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    return publish(plan, plan.program.source, ledger, out=folder / "out", by="Eve", unchecked=True).folder


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    file = folder / "release.json"
    facts = json.loads(file.read_text(encoding="utf-8"))
    edit(facts)
    file.write_text(json.dumps(facts), encoding="utf-8")


@pytest.mark.parametrize(
    ("strategy", "measured", "together"),
    [("optimized", "together", False), ("workload", "apart", True), ("identity", "together", False)],
)
def test_every_kind_of_release_is_read_back_with_intervals(
    strategy: str, measured: str, together: bool, tmp_path: Path
) -> None:
    release = load_release(released(tmp_path, strategy, measured))
    assert release.facts["estimated_together"] is together
    for where in ({"ward": "north"}, {}):
        interval = release.interval("wards", where, probability=0.9)
        assert interval.lower <= release.estimate("wards", where) <= interval.upper
        assert interval.probability >= 0.9
    both = release.simultaneous("wards", 0.9)
    assert both.probability >= 0.9
    privacy = release.privacy("0.001")
    assert privacy.by_distribution is not None
    assert 0 < privacy.by_distribution.amount <= privacy.by_conversion.amount
    assert privacy.by_conversion == PrivacyLoss.pure(release.facts["loss"]["exact"])
    if strategy == "identity":  # one cell a person: the loss is pure but for the tails
        shares = [math.exp(float(privacy.by_conversion)), math.exp(float(privacy.by_distribution))]
        assert (shares[0] - shares[1]) / (1 + shares[0]) == pytest.approx(0.001, rel=0.01)


def test_a_release_of_a_laplace_plan_of_an_earlier_version_is_read_and_audited(tmp_path: Path) -> None:
    """Its noise was the same as geometric noise; what it is called now is a study, and is no longer published."""
    folder = released(tmp_path)
    now = load_release(folder).interval("wards", ward="north")
    program = folder / json.loads((folder / "release.json").read_text(encoding="utf-8"))["program_file"]
    program.write_text(program.read_text(encoding="utf-8").replace('"geometric"', '"laplace"'), encoding="utf-8")
    digest = hashlib.sha256(program.read_bytes()).hexdigest()

    def earlier(facts: dict[str, Any]) -> None:
        facts["mechanism"]["noise"] = "laplace"
        facts["files"][facts["program_file"]] = digest

    change(folder, earlier)
    release = load_release(folder)
    assert release.facts["mechanism"]["noise"] == "laplace"
    assert release.interval("wards", ward="north") == now
    assert any("computed again" in finding.claim for finding in audit(folder).findings)


def test_a_release_that_points_elsewhere_or_lies_is_refused(tmp_path: Path) -> None:
    folder = released(tmp_path)
    whole = (folder / "release.json").read_bytes()
    (tmp_path / "evil.toml").write_text(PROGRAM, encoding="utf-8")
    (folder / "evil.toml").write_text(PROGRAM, encoding="utf-8")
    digest = hashlib.sha256((folder / "evil.toml").read_bytes()).hexdigest()

    def listed(facts: dict[str, Any]) -> None:
        facts["files"]["../evil.toml"] = digest
        facts["program_file"] = "../evil.toml"

    edits: list[Callable[[dict[str, Any]], None]] = [
        listed,
        lambda facts: facts.update(program_file="evil.toml"),
        lambda facts: facts["tables"][0].update(estimates="../out"),
        lambda facts: facts["files"].update({"not there": None}),
        lambda facts: facts["groups"][0]["noises"][0].update(parameter="1/1000"),
        lambda facts: facts["groups"][0].update(loss="1/0"),
        lambda facts: facts["groups"][0].pop("noises"),
        lambda facts: facts.update(mechanism=None),
        lambda facts: facts.update(groups=[None]),
        lambda facts: facts.update(estimated_together=True),
        lambda facts: facts["files"].update({"tables/wards.csv": "0" * 64}),
    ]
    for number, edit in enumerate(edits):
        (folder / "release.json").write_bytes(whole)
        change(folder, edit)
        with pytest.raises(Refusal) as refusal:
            load_release(folder).interval("wards", ward="north")
        assert isinstance(refusal.value, InvalidRelease), number
    (folder / "release.json").write_bytes(whole)
    assert load_release(folder).interval("wards", ward="north").probability >= 0.95


def test_a_folder_without_a_release_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRelease):
        load_release(tmp_path)
