"""Who approved and who published: signed with ssh keys where the project asks for it, and labeled so everywhere."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from dualmandate.apps.ledgers import find_ledger
from dualmandate.errors import CannotWrite, LedgerTampered, NotApproved
from dualmandate.ledger import Approval, Ledger, LedgerKey, ReleaseState, chain, open_ledger, read_key
from dualmandate.population import PrivacyLoss
from dualmandate.report.documents.schemas import schema

if TYPE_CHECKING:
    from tests.apps.conftest import Command

pytestmark = pytest.mark.ssh
PROGRAM = """\
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 90_000, unit = "person", source = "made up" }
source          = "residents.csv"
attributes.ward = ["north", "east", "south"]

[[workload]]
name = "wards"
by   = ["ward"]
value_of_accuracy = { value = 50_000, unit = "USD per person^2", source = "made up" }

[mechanism]
noise = "geometric"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""
SIGNING = 'approvers = "approvers.signers"\npublishers = "publishers.signers"\n'
PEOPLE = {"Ben": "approvers", "Ann Lee": "approvers", "Eve": "publishers"}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key for each person, and one for somebody whom nobody named."""
    folder = tmp_path_factory.mktemp("keys")
    for name in (*PEOPLE, "Mallory"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name)]
        subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    return folder


def allowed(keys: Path, *names: str) -> str:
    """Lines of a file of allowed signers."""
    return "".join(f'"{name}" {(keys / f"{name}.pub").read_text(encoding="utf-8")}' for name in names)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "dualmandate.toml").write_text(SIGNING, encoding="utf-8")
    (tmp_path / "program.toml").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "residents.csv").write_text("ward\n" + "north\neast\neast\n" * 9, encoding="utf-8")
    for role in ("approvers", "publishers"):
        names = [name for name, own in PEOPLE.items() if own == role]
        (tmp_path / f"{role}.signers").write_text(allowed(keys, *names), encoding="utf-8")
    monkeypatch.setattr("dualmandate.report.dossier.write_dossier", lambda plan, directory: ())
    return tmp_path


def done(command: Command, *words: object) -> dict[str, Any]:
    outcome = command(*words, "--json")
    assert outcome.status == 0, outcome.err
    return outcome.document


def refused(command: Command, *words: object, code: str = "not approved") -> dict[str, Any]:
    outcome = command(*words, "--json")
    assert outcome.status == 2, outcome.err
    assert outcome.document["code"] == code, outcome.err
    return outcome.document


def planned(command: Command) -> None:
    done(command, "ledger", "open", "residents", "--unit", "person", "--cap", "30", "--by", "Ann")
    done(command, "plan", "program.toml", "--out", "report")


def the_ledger(project: Path) -> Ledger:
    state = project / ".dualmandate"
    return open_ledger(state / "ledger.sqlite", read_key(state / "key"))


APPROVE, PUBLISH = ("approve", "report/plan.json"), ("publish", "report/plan.json", "--unchecked")


def fingerprint(keys: Path, name: str) -> str:
    """As ssh-keygen itself prints it."""
    shown = ["ssh-keygen", "-l", "-f", str(keys / f"{name}.pub")]
    return subprocess.run(shown, check=True, capture_output=True, text=True).stdout.split()[1]


def test_signed_words_are_taken_and_shown_everywhere(command: Command, project: Path, keys: Path) -> None:
    planned(command)
    approval = done(command, *APPROVE, "--by", "Ann Lee", "--sign", keys / "Ann Lee")
    jsonschema.validate(approval, schema("approval"))
    own = {name: fingerprint(keys, name) for name in PEOPLE}
    assert approval["signed_with"] == own["Ann Lee"]
    made = done(command, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve")
    jsonschema.validate(made, schema("publication"))
    assert made["signed_with"] == own["Eve"]
    facts = json.loads((Path(made["directory"]) / "release.json").read_text(encoding="utf-8"))
    jsonschema.validate(facts, schema("release"))
    assert facts["signatures"] == {
        "approvals": [{"by": "Ann Lee", "key": own["Ann Lee"]}],
        "publication": {"by": "Eve", "key": own["Eve"]},
    }
    standing = f"approved by Ann Lee, signed with {own['Ann Lee']}; published by Eve, signed with {own['Eve']}."
    assert f"This release was {standing}" in (Path(made["directory"]) / "index.html").read_text(encoding="utf-8")
    audit = done(command, "audit", made["directory"], "--out", "audit")
    jsonschema.validate(audit, schema("audit"))
    assert audit["standing"] == standing
    assert f"This release was {standing}" in (project / "audit" / "audit.html").read_text(encoding="utf-8")
    lines = command("ledger", "events").out.splitlines()
    assert next(line for line in lines if "approved by" in line).endswith(f"signed with {own['Ann Lee']}")
    assert next(line for line in lines if "published by" in line).endswith(f"signed with {own['Eve']}")
    assert "unsigned" not in command("ledger", "show").out
    check = done(command, "ledger", "verify")
    jsonschema.validate(check, schema("ledger-verification"))
    assert check["signatures"] == {"signed": 2, "unsigned": 0, "unknown": []}


def test_unsigned_words_are_labeled_everywhere(command: Command, project: Path) -> None:
    """A name that was only typed is told inside, and not repeated to the public."""
    (project / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    planned(command)
    assert "unsigned: the name is what was typed" in command(*APPROVE, "--by", "Zebediah").out
    assert "\napproved, unsigned; published, unsigned\n" in command(*PUBLISH, "--by", "Yolanda").out
    [release] = (project / "releases").iterdir()
    facts = (release / "release.json").read_text(encoding="utf-8")
    unsigned = {"by": None, "key": None}
    assert json.loads(facts)["signatures"] == {"approvals": [unsigned], "publication": unsigned}
    page = (release / "index.html").read_text(encoding="utf-8")
    standing = "approved, unsigned: the ledger has a name that was typed; published, unsigned: the ledger has a name"
    assert standing in page
    assert "Zebediah" not in facts + page
    assert "Yolanda" not in facts + page
    audited = command("audit", release, "--out", "audit")
    assert standing in audited.out
    promised = json.loads(facts)["guarantee"]["protected"]
    assert promised.startswith("Every record, and not every person")  # nothing identifies one here
    assert f"promised: {promised}" in audited.out
    assert f"Promised: {promised}" in (project / "audit" / "audit.html").read_text(encoding="utf-8")
    assert standing in (project / "audit" / "audit.html").read_text(encoding="utf-8")
    lines = command("ledger", "events").out.splitlines()
    labeled = [line for line in lines if any(f" {act} by" in line for act in ("approved", "reserved", "published"))]
    assert len(labeled) == 3
    assert all("unsigned" in line for line in labeled)
    shown = command("ledger", "show").out
    assert shown.count("unsigned") == 2
    assert "approvals and publications: 0 signed, 2 unsigned" in command("ledger", "verify").out
    [account] = done(command, "ledger", "show")["accounts"]
    assert account["approvals"][0]["signed_with"] is None is account["releases"][0]["signed_with"]


def test_a_project_that_names_its_signers_takes_no_other_word(command: Command, project: Path, keys: Path) -> None:
    planned(command)
    assert "is not signed" in refused(command, *APPROVE, "--by", "Ben")["what"]
    for by, key in (("Ben", "Mallory"), ("Ben", "Ann Lee"), ("Mallory", "Mallory"), ("Eve", "Eve")):
        refusal = refused(command, *APPROVE, "--by", by, "--sign", keys / key)
        assert refusal["what"] == f"the signature of the approval is not one of '{by}'"
    assert "nothing could be signed" in refused(command, *APPROVE, "--by", "Ben", "--sign", keys / "nobody")["what"]
    assert [event.kind for event in the_ledger(project).events()] == ["account opened"]
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    assert "is not signed" in refused(command, *PUBLISH, "--by", "Eve")["what"]
    assert "is not one of" in refused(command, *PUBLISH, "--by", "Ben", "--sign", keys / "Ben")["what"]
    assert the_ledger(project).spent("residents") == 0
    done(command, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve")


@pytest.mark.parametrize("named", ["by its path", "through a link"])
def test_who_signs_is_a_matter_of_the_ledgers_own_project(
    command: Command, project: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """Another project folder, which names nobody, frees nobody from signing in this ledger."""
    planned(command)
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    other = project / "other"
    other.mkdir()
    (other / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    for name in ("program.toml", "residents.csv"):
        shutil.copy(project / name, other)
    shutil.copytree(project / "report", other / "report")
    flag = ["--ledger", project / ".dualmandate" / "ledger.sqlite"] if named == "by its path" else []
    if not flag:
        (other / ".dualmandate").symlink_to(project / ".dualmandate")
    monkeypatch.chdir(other)
    assert "is not signed" in refused(command, *APPROVE, "--by", "Mallory", *flag)["what"]
    assert "is not signed" in refused(command, *PUBLISH, "--by", "Mallory", *flag)["what"]
    done(command, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve", *flag)


def test_an_approval_that_was_typed_before_does_not_count(command: Command, project: Path, keys: Path) -> None:
    (project / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    planned(command)
    done(command, *APPROVE, "--by", "Ben")
    (project / "dualmandate.toml").write_text(SIGNING, encoding="utf-8")
    publishing = (*PUBLISH, "--by", "Eve", "--sign", keys / "Eve")
    assert "no approval that counts" in refused(command, *publishing)["what"]
    done(command, *APPROVE, "--by", "Ann Lee", "--sign", keys / "Ann Lee")
    twice = refused(command, *APPROVE, "--by", "Ann Lee", "--sign", keys / "Ann Lee", code="release conflict")
    assert twice["what"] == "Ann Lee approved this plan already, in entry 4"
    whole = (project / "approvers.signers").read_text(encoding="utf-8")
    (project / "approvers.signers").write_text(allowed(keys, "Ben"), encoding="utf-8")  # Ann Lee has left
    assert "no approval that counts" in refused(command, *publishing)["what"]
    assert done(command, "ledger", "verify")["signatures"]["unknown"] == [4]
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")  # though somebody had typed that name before
    done(command, *publishing)
    (project / "approvers.signers").write_text(whole, encoding="utf-8")
    assert done(command, "ledger", "verify")["signatures"] == {"signed": 3, "unsigned": 1, "unknown": []}


def test_two_persons_are_two_names_and_two_keys(command: Command, project: Path, keys: Path) -> None:
    (project / "dualmandate.toml").write_text(f"{SIGNING}two_persons = true\n", encoding="utf-8")
    for role in ("approvers", "publishers"):
        text = allowed(keys, "Ben", "Eve") + allowed(keys, "Eve").replace("Eve", "Eva")
        (project / f"{role}.signers").write_text(text, encoding="utf-8")
    planned(command)
    for by, key in (("Eve", "Eve"), ("Eva", "Eve")):
        done(command, *APPROVE, "--by", by, "--sign", keys / key)
        refused(command, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve")
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    assert the_ledger(project).spent("residents") == 0
    done(command, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve")


def _left_reserved(command: Command, monkeypatch: pytest.MonkeyPatch, *words: object) -> str:
    """A publication that was stopped right after its loss was set aside."""

    def stopped(*about: object, **more: object) -> None:
        raise CannotWrite("it", why="stopped", instead="go on")

    with monkeypatch.context() as patch:
        patch.setattr("dualmandate.publication.publish.open_records", stopped)
        refused(command, *words, code="cannot write")
    return the_ledger(Path.cwd()).releases()[-1].name


def test_what_was_set_aside_before_the_project_named_its_signers_is_not_opened(
    command: Command, project: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    planned(command)
    done(command, *APPROVE, "--by", "Eve")
    name = _left_reserved(command, monkeypatch, *PUBLISH, "--by", "Eve")
    (project / "dualmandate.toml").write_text(SIGNING, encoding="utf-8")
    assert "is not signed" in refused(command, *PUBLISH, "--resume", name, "--by", "Eve")["what"]
    text = 'approvers = "approvers.signers"\n'
    (project / "dualmandate.toml").write_text(text, encoding="utf-8")
    assert "no approval that counts" in refused(command, *PUBLISH, "--resume", name, "--by", "Eve")["what"]
    assert the_ledger(project).release(name).state is ReleaseState.RESERVED
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    done(command, *PUBLISH, "--resume", name, "--by", "Eve")


def test_who_finishes_what_another_signed_is_not_called_its_signer(
    command: Command, project: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(command)
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    name = _left_reserved(command, monkeypatch, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve")
    done(command, *PUBLISH, "--resume", name, "--by", "Mallory")
    [line] = [line for line in command("ledger", "events").out.splitlines() if "published by" in line]
    assert "published by Mallory" in line
    assert line.endswith(f"as reserved by Eve, signed with {fingerprint(keys, 'Eve')}")


def test_a_refused_publication_is_labeled_too(command: Command, project: Path) -> None:
    planned(command)
    refused(command, *PUBLISH, "--by", "Mallory")
    [line] = [line for line in command("ledger", "events").out.splitlines() if "refused by Mallory" in line]
    assert line.endswith("unsigned, unchecked")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("two_persons = true", "not who they are"),
        ('approvers = "approvers.signers"\ntwo_persons = true', "not who they are"),
        ('two_persons = "yes"', "is not a switch"),
        ('approvers = "nowhere"', "there is no file"),
    ],
)
def test_signers_nobody_can_mean_are_refused(command: Command, project: Path, text: str, what: str) -> None:
    planned(command)
    (project / "dualmandate.toml").write_text(f"{text}\n", encoding="utf-8")
    refusal = refused(command, *APPROVE, "--by", "Ben", code="invalid value")
    assert what in refusal["what"]
    assert refusal["where"]["line"] == len(text.splitlines())


def test_a_key_that_the_project_does_not_name_signs_nothing(command: Command, project: Path, keys: Path) -> None:
    (project / "dualmandate.toml").write_text("schema = 1\n", encoding="utf-8")
    planned(command)
    assert "names nobody who may" in refused(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")["what"]


def test_a_signature_is_good_for_one_act(command: Command, project: Path, keys: Path) -> None:
    """Neither for a second time, nor for another name, plan, loss, account, role or ledger."""
    planned(command)
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    ledger, [_, approved] = find_ledger(project, None).open(), the_ledger(project).events()
    again = _approval(ledger, keys, digest=approved.document()["plan_digest"])
    ledger.approve(again)
    with pytest.raises(NotApproved, match="was used before"):
        ledger.approve(again)
    fresh = _approval(ledger, keys, digest="ab" * 32)
    for change in ({"by": "Ann Lee"}, {"plan_digest": "cd" * 32}, {"loss": again.loss.for_records(2)}):
        with pytest.raises(NotApproved, match="is not one of"):
            ledger.approve(replace(fresh, **change))
    ledger.approve(fresh)


def _approval(ledger: Ledger, keys: Path, *, digest: str) -> Approval:
    approval = Approval("residents", digest, PrivacyLoss.pure("1/3"), "person", by="Ben")
    return ledger.sign_approval(approval, keys / "Ben")


def test_who_has_the_ledgers_key_cannot_sign_for_others(command: Command, project: Path, keys: Path) -> None:
    """The chain can be written anew with its key; a person's signature over other words cannot."""
    planned(command)
    done(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")
    state, ledger = project / ".dualmandate", the_ledger(project)
    forge(state / "ledger.sqlite", read_key(state / "key"), ledger)
    with pytest.raises(LedgerTampered, match="entry 2 of the ledger is not what was signed"):
        the_ledger(project).verify()
    assert "no approval that counts" in refused(command, *PUBLISH, "--by", "Eve", "--sign", keys / "Eve")["what"]


def forge(file: Path, key: LedgerKey, ledger: Ledger) -> None:
    """The approval by another name, chained and anchored as well as the key allows."""
    first, second = ledger.events()
    forged = replace(second, by="Ann Lee")
    digest = chain.chained_digest(key, first.digest, forged)
    connection = sqlite3.connect(file)
    connection.execute("UPDATE ledger_entry SET recorded_by = 'Ann Lee', digest = ? WHERE sequence = 2", (digest,))
    connection.execute("UPDATE ledger_head SET digest = ?", (digest,))
    connection.commit()
    connection.close()
    chain.write_anchor(file.with_name("ledger.sqlite.anchor"), chain.Head(ledger.identifier, 2, digest))


def test_without_ssh_the_refusal_says_so(
    command: Command, project: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned(command)
    monkeypatch.setattr("dualmandate.ledger.signatures.PROGRAM", "no-such-ssh-keygen")
    assert "is not installed" in refused(command, *APPROVE, "--by", "Ben", "--sign", keys / "Ben")["what"]
