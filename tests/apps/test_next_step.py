"""Commands as they are pasted: a program of any name, a plan that remembers it, and refusals that name what answers."""

from __future__ import annotations

import errno
import json
import shlex
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.apps.test_check import PROGRAM

from dualmandate import load
from dualmandate.apps import folder
from dualmandate.errors import InvalidFile
from dualmandate.planning.saved_plan import with_pages
from dualmandate.publication import publish as publishing

if TYPE_CHECKING:
    from tests.apps.conftest import Command

OTHER = PROGRAM.replace('name   = "town"', 'name = "other"')


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program of its own name, outside of any project."""
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    place = tmp_path / "my town"
    place.mkdir()
    (place / "none.toml").write_text(PROGRAM, encoding="utf-8")
    (place / "people.csv").write_text("ward,age,id\nnorth,1,a\n", encoding="utf-8")
    return place


def pasted(outcome: object, command: Command) -> list[str]:
    """The command at the end of a refusal's advice."""
    typed = json.loads(outcome.out)["instead"].partition(": dualmandate ")[2]  # type: ignore[attr-defined]
    assert typed, outcome
    return shlex.split(typed)


def test_a_folder_with_one_program_stands_for_it(town: Path, command: Command) -> None:
    (town / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    (town / "pyproject.toml").write_text('[project]\nname = "x"\n', encoding="utf-8")
    assert load(town).name == load(str(town / "none.toml")).name == "town"
    (town / "other.toml").write_text(OTHER, encoding="utf-8")
    with pytest.raises(InvalidFile, match=r"several programs: none\.toml, other\.toml"):
        load(town)
    (town / "program.toml").write_text(OTHER, encoding="utf-8")
    assert load(town).name == "other"
    refused = command("plan", town / "nothing", "--json")
    assert refused.document["code"] == "invalid file"


def test_data_are_told_from_a_program(town: Path, command: Command) -> None:
    refused = command("plan", "my town/people.csv", "--json")
    assert (refused.status, refused.document["code"]) == (2, "invalid file")
    assert refused.document["what"] == "'people.csv' is data, and no program"
    assert pasted(refused, command) == ["init", "people", "--from", "my town/people.csv"]


def test_a_source_that_is_not_there_is_noted(town: Path, command: Command) -> None:
    assert "is not there" not in command("plan", town).out
    (town / "people.csv").unlink()
    outcome = command("plan", town)
    assert outcome.status == 0
    assert "note: the source 'my town/people.csv' is not there yet" in outcome.out


def test_a_folder_that_cannot_be_written_is_found_before_planning(
    town: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dualmandate.planning.program.make_plan", lambda *_, **__: pytest.fail("it was planned"))
    monkeypatch.setattr(folder, "mkdtemp", lambda **_: (_ for _ in ()).throw(OSError(errno.EROFS, "read-only")))
    outcome = command("plan", town, "--out", town / "report", "--json")
    assert (outcome.status, outcome.document["code"]) == (2, "cannot write")


def test_a_plan_remembers_its_program(town: Path, command: Command, tmp_path: Path) -> None:
    """Wherever it was written; where it has moved, its program is looked for above it, by its own name too."""
    ledger = ("--ledger", tmp_path / "l.sqlite")
    assert command("ledger", "open", "residents", "--unit", "person", "--cap", "9", *ledger).status == 0
    assert command("plan", town / "none.toml", "--out", "elsewhere/rep").status == 0
    plan = json.loads(Path("elsewhere/rep/plan.json").read_text(encoding="utf-8"))
    assert plan["program"]["file"] == "../../my town/none.toml"
    assert command("approve", "elsewhere/rep/plan.json", *ledger).status == 0
    assert command("check", "elsewhere/rep/plan.json", *ledger).status == 0
    published = command("publish", "elsewhere/rep/plan.json", *ledger, "--json")
    assert published.status == 0, published.err
    assert (town / "releases" / "residents-1").is_dir()
    shutil.move("elsewhere/rep", town / "a")
    assert command("check", town / "a" / "plan.json", *ledger).status == 0
    shutil.move(town / "a", "b")
    lost = command("check", "b/plan.json", *ledger, "--json")
    assert (lost.status, lost.document["code"]) == (2, "invalid file")
    assert "../../my town/none.toml" in lost.document["why"]


def test_a_plan_in_a_project_leads_nowhere_out_of_it(
    town: Path, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No digest covers where its program lies; in another folder a stranger's command may be waiting."""
    (town / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    trap, ran = tmp_path / "trap", tmp_path / "ran"
    shutil.copytree(town, trap)
    (trap / "people.csv").write_text("ward,age,id\nsouth,1,z\n", encoding="utf-8")
    settings = f'schema = 1\nledger = "{town}/.dualmandate/ledger.sqlite"\nanchor_command = "touch {ran}"\n'
    (trap / "dualmandate.toml").write_text(settings, encoding="utf-8")
    monkeypatch.chdir(town)
    for words in (["ledger", "open", "residents", "--unit", "person", "--cap", "9"], ["plan", ".", "--out", "report"]):
        assert command(*words).status == 0
    plan = town / "report" / "plan.json"
    said = json.loads(plan.read_text(encoding="utf-8"))
    said["program"]["file"] = "../../trap/none.toml"
    plan.write_text(json.dumps(with_pages(said, said.get("pages", {}))), encoding="utf-8")
    for act in ("approve", "check", "publish"):
        outcome = command(act, "report/plan.json")
        assert (outcome.status, ran.exists()) == (0, False), outcome.err
    assert (town / "releases" / "residents-1").is_dir()


def test_what_a_refusal_names_is_pasted(town: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside of a project, without a ledger, an account, an approval or a check: each names what is missing."""
    assert command("plan", town, "--out", "my town/report").status == 0
    publish = ["publish", "my town/report/plan.json", "--ledger", "my town/l.sqlite"]
    alone = command(*publish[:2], "--json")
    opening = ["ledger", "open", "residents", "--unit", "person", "--cap"]
    assert alone.document["code"] == "ledger unavailable"
    assert pasted(alone, command)[:6] == opening
    assert pasted(alone, command)[-2:] == ["--ledger", "my town/.dualmandate/ledger.sqlite"]
    steps = []
    for _ in range(9):
        refused = command(*publish, "--json")
        if refused.status == 0:
            break
        words = pasted(refused, command)
        steps.append(words[0])
        outcome = command(*words)
        assert outcome.status == 0, outcome.err
    assert steps == ["ledger", "approve", "check"]


def test_an_interrupted_release_is_checked_again_until_it_is_bound(
    town: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    (town / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    monkeypatch.chdir(town)
    for words in (
        ["ledger", "open", "residents", "--unit", "person", "--cap", "9"],
        ["plan", ".", "--out", "report"],
        ["approve", "report/plan.json"],
        ["check", "."],
    ):
        assert command(*words).status == 0
    with monkeypatch.context() as stopped:
        stopped.setattr(publishing, "tabulate", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert command("publish", "report/plan.json").status == 130
    (town / "people.csv").write_text("ward,age,id\nsouth,1,a\n", encoding="utf-8")
    refused = command("publish", "report/plan.json", "--resume", "1", "--json")
    assert (refused.status, refused.document["code"]) == (2, "not checked")
    said = command("publish", "report/plan.json", "--resume", "1", "--unchecked", "--json")
    assert said.document["code"] == "release conflict"
    assert command("check", "report/plan.json").status == 0
    assert command("publish", "report/plan.json", "--resume", "1").status == 0
