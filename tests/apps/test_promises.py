"""What is planned is what is published: over random programs, a plan is a study, or its release keeps its promise.

A study is refused by `approve` and `publish`, with nothing written and nothing spent. Everything else is approved and
carried out, and the standard errors that the release states are the errors that its plan promised.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from tests.conftest import Tell

import dualmandate
from dualmandate.apps.ledgers import find_ledger
from dualmandate.ledger import Approval
from dualmandate.planning.saved_plan import with_pages

if TYPE_CHECKING:
    from tests.apps.conftest import Command, Outcome

PROGRAMS = 40
STUDIES = {"laplace", "staircase"}
LEVELS = {"ward": ("north", "east", "south"), "age": ("0", "1", "2", "3"), "sex": ("f", "m")}
TABLES = (("ward",), ("age",), ("sex",), ("ward", "age"), ("age", "sex"), ())


def random_program(draws: np.random.Generator) -> str:
    """A small program: any tables, values, noise, strategy and protection; some of them make no sense together."""

    def one_of(*options: str) -> str:
        return options[int(draws.integers(len(options)))]

    privacy_measure = one_of("epsilon", "epsilon", "epsilon", "rho")
    noise = one_of("laplace", "geometric", "gaussian", "staircase", "best", "best")
    mechanism = [
        f'noise = "{noise}"',
        one_of("", "", 'strategy = "workload"', 'strategy = "optimized"', 'strategy = "identity"'),
        one_of("", 'measured = "apart"'),
        one_of("", "failure_probability = 1e-6"),
    ]
    tables = []
    for place in draws.choice(len(TABLES), size=int(draws.integers(1, 4)), replace=False):
        by, value = list(TABLES[int(place)]), 10 ** draws.uniform(1, 4)
        kept = ["", 'where = { sex = "f" }'][int("sex" not in by and draws.random() < 0.3)]
        tables.append(
            f'[[workload]]\nname = "table {place}"\nby = {json.dumps(by)}\n{kept}\n'
            f'value_of_accuracy = {{ value = {value:.3f}, unit = "USD per person^2", source = "made up" }}\n'
        )
    attributes = "\n".join(f"{name} = {json.dumps(levels)}" for name, levels in LEVELS.items())
    bounded = one_of("", "", 'identifier = "name"\nmost_records_per_unit = 2')
    neighbors = one_of('"add-or-remove"', '"replace-one"\ndropping_is_public = true')
    return f"""\
[program]
schema = 1
name = "random"

[population]
account = "residents"
unit = "person"
neighbors = {neighbors}
population_size = {{ value = 90_000, unit = "person", source = "made up" }}
source = "residents.csv"
{bounded}

[population.attributes]
{attributes}

{"".join(tables)}
[mechanism]
{chr(10).join(mechanism)}

[preferences]
information_utility = "linear"
mean_disclosure_cost = {{ value = 0.05, unit = "USD per person per {privacy_measure}", source = "made up" }}

[limits]
largest_{privacy_measure} = 3
"""


def residents(draws: np.random.Generator) -> str:
    columns = [draws.choice(levels, 200) for levels in LEVELS.values()]
    rows = [",".join([*each, f"person {number // 2}"]) for number, each in enumerate(zip(*columns, strict=True))]
    return "\n".join([",".join([*LEVELS, "name"]), *rows]) + "\n"


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def is_refused(outcome: Outcome) -> None:
    assert outcome.status == 2, outcome.err
    assert outcome.document["code"] == "invalid mechanism"
    assert "is a study" in outcome.document["what"]
    assert '"geometric" or "best"' in outcome.document["instead"]


def check_study(command: Command, folder: Path, plan: dict[str, Any], *, every_door: bool) -> None:
    """No door opens: neither approve nor publish, from the plan or, where it is made again, from the program."""
    assert plan["mechanism"]["noise"] in STUDIES
    assert plan["mechanism"]["asked"] == plan["mechanism"]["noise"]  # the best is never a study
    assert plan["why_study"] == plan["notes"][0]
    before = contents(folder)
    is_refused(command("approve", "report/plan.json", "--by", "Eve", "--json"))
    is_refused(command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json"))
    is_refused(
        command("publish", "report/plan.json", "--unchecked", "--resume", "residents-1", "--by", "Eve", "--json")
    )
    if every_door:
        is_refused(command("publish", "program.toml", "--unchecked", "--by", "Eve", "--json"))
        made, ledger = dualmandate.load(folder / "program.toml").plan(), find_ledger(folder, None).open()
        assert made.program.source is not None
        with pytest.raises(dualmandate.Refusal, match="is a study"):
            dualmandate.publish(made, made.program.source, ledger, out=folder / "out", by="Eve")
    assert contents(folder) == before


def check_promise(command: Command, folder: Path, plan: dict[str, Any]) -> bool:
    """The release states the errors that the plan promised; smaller ones only where all tables rest on all rows."""
    assert plan["mechanism"]["noise"] not in STUDIES
    assert plan["why_study"] is None
    outcome = command("approve", "report/plan.json", "--by", "Ben", "--json")
    assert outcome.status == 0, outcome.err
    outcome = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json")
    assert outcome.status == 0, outcome.err
    release = dualmandate.load_release(outcome.document["directory"])
    together = release.facts["estimated_together"]
    for table in plan["tables"]:
        stated = math.sqrt(np.mean(release.published(table["name"]).standard_errors ** 2))
        promised = table["root_mean_squared_error"]
        assert stated <= promised * (1 + 1e-9) if together else stated == pytest.approx(promised, rel=1e-9)
    return not together


def test_every_plan_is_a_study_or_is_kept(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tell: Tell
) -> None:
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    draws, studies, kept = np.random.default_rng(13), 0, 0
    for number in range(PROGRAMS):
        folder = tmp_path / str(number)
        folder.mkdir()
        monkeypatch.chdir(folder)
        (folder / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
        (folder / "program.toml").write_text(random_program(draws), encoding="utf-8")
        (folder / "residents.csv").write_text(residents(draws), encoding="utf-8")
        outcome = command("plan", "program.toml", "--out", "report", "--json")
        assert outcome.status in (0, 2), outcome.err
        if outcome.status == 2:
            continue
        plan = outcome.document
        cap = f"{plan['loss']['currency']}=100"
        assert command("ledger", "open", "residents", "--unit", "person", "--cap", cap, "--by", "Ann").status == 0
        if plan["study"]:
            check_study(command, folder, plan, every_door=studies == 0)
            studies += 1
        else:
            kept += check_promise(command, folder, plan)
    tell(f"random programs through every door: {studies} studies, {kept} kept", tried=PROGRAMS)
    assert studies >= 6
    assert kept >= 12


def test_a_study_that_was_approved_by_an_earlier_version_is_not_published(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    draws = np.random.default_rng(1)
    while 'noise = "laplace"' not in (text := random_program(draws)) or "per rho" in text:
        pass
    (tmp_path / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    (tmp_path / "residents.csv").write_text(residents(draws), encoding="utf-8")
    assert command("ledger", "open", "residents", "--unit", "person", "--cap", "100", "--by", "Ann").status == 0
    assert command("plan", "program.toml", "--out", "report").status == 0
    file = tmp_path / "report" / "plan.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    del document["study"], document["why_study"], document["shown"]  # as it was written then
    file.write_text(json.dumps(document), encoding="utf-8")
    ledger = find_ledger(tmp_path, None).open()
    plan = dualmandate.load(tmp_path / "program.toml").plan()
    ledger.approve(Approval("residents", document["digest"], plan.charge, "person", by="Ben"))
    outcome = command("publish", "report/plan.json", "--unchecked", "--by", "Eve", "--json")
    assert (outcome.status, outcome.document["code"]) == (2, "invalid file")
    assert "earlier version" in outcome.document["why"]
    is_refused(command("publish", "program.toml", "--unchecked", "--by", "Eve", "--json"))
    assert ledger.spent("residents") == 0
    assert not (tmp_path / "releases").exists()
    # A plan that is shown as what it is not was changed.
    file.write_text(json.dumps(with_pages({**document, "study": False, "why_study": None}, {})), encoding="utf-8")
    outcome = command("approve", "report/plan.json", "--by", "Eve", "--json")
    assert (outcome.status, outcome.document["code"]) == (2, "invalid file")
