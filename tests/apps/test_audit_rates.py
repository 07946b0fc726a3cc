"""Publishing a rate of an audit: booked like any other query, or refused; without it nothing internal leaves."""

from __future__ import annotations

import html
import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from tests.apps.conftest import Command
from tests.planning.test_released import released

from dualmandate.apps.ledgers import loss_of
from dualmandate.apps.publish import publish
from dualmandate.audit import published_rates as booked_rates
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.published_rates import BookedRates, RatePublisher, RateQuery, publish_rate, rate_query
from dualmandate.errors import InvalidLoss, InvalidRequest, LedgerTampered, Refusal, ReleaseConflict
from dualmandate.ledger import (
    Account,
    AccountLimit,
    Approval,
    Ledger,
    ReleaseState,
    Scope,
    make_key,
    open_ledger,
    read_key,
)
from dualmandate.mechanism.noise import NoiseKey, subkey
from dualmandate.planning.program import load
from dualmandate.planning.release_spec import load_release
from dualmandate.population import PrivacyLoss, Protection
from dualmandate.report.documents import schemas


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town with a release."""
    folder = tmp_path_factory.mktemp("town")
    released(folder)
    return folder


@pytest.fixture
def folder(town: Path, tmp_path: Path) -> Path:
    """A copy of it, with a ledger of its own."""
    return Path(shutil.copytree(town, tmp_path / "town"))


def release_of(folder: Path) -> Path:
    return next((folder / "out").glob("r*"))


def ledger_of(folder: Path) -> Ledger:
    return open_ledger(folder / "state" / "ledger.sqlite", read_key(folder / "state" / "key"))


def typed(folder: Path, *more: object) -> tuple[object, ...]:
    records = ("--confidential", folder / "residents.csv", "--internal", folder / "in", "--out", folder / "pub")
    place = ("--ledger", folder / "state" / "ledger.sqlite", "--place", "ward")
    return ("audit", release_of(folder), *records, *place, *more)


def test_a_rate_is_booked_and_published(command: Command, folder: Path) -> None:
    before = ledger_of(folder).spent("residents")
    spoken = command(*typed(folder, "--publish-rates", "1/2", "--by", "Eve", "--approved-by", "Ben"))
    assert spoken.status == 0
    assert "published with noise" in spoken.out
    found = json.loads((folder / "pub" / "audit.json").read_text())
    jsonschema.validate(found, schemas.schema("audit"))
    (rate,) = [each for each in found["findings"] if each["reference"] == "booked"]
    assert rate["label"] == "public"
    entry = next(each for each in ledger_of(folder).releases() if "records right" in each.snapshot)
    assert f"loss epsilon = 0.5 of each person from the account 'residents', entry {entry.entry}" in rate["booked"]
    assert rate["booked"] in html.unescape((folder / "pub" / "audit.html").read_text())
    assert (entry.state, entry.secret_destroyed, entry.cost) == (ReleaseState.SETTLED, True, Fraction(1, 2))
    assert entry.written_digest is not None
    assert ledger_of(folder).spent("residents") == before + Fraction(1, 2)
    widths = [each["high"] - each["low"] for each in (rate["success"], rate["baselines"][0])]
    assert 0 < widths[0] == pytest.approx(widths[1])  # equal noise for both, and no interval is cut off
    again = command(*typed(folder, "--publish-rates", "1/2", "--by", "Eve", "--json"))
    assert again.status == 2
    assert again.document["code"] == "release conflict"
    assert ledger_of(folder).spent("residents") == before + Fraction(1, 2)


def test_without_it_nothing_judged_by_records_leaves(command: Command, folder: Path) -> None:
    spoken = command(*typed(folder, "--json"))
    assert spoken.status == 0
    for text in (spoken.out, (folder / "pub" / "audit.json").read_text(), (folder / "pub" / "audit.html").read_text()):
        assert "the confidential file" not in text
        assert "published with noise" not in text
    inside = json.loads((folder / "in" / "audit.json").read_text())
    assert inside["label"] == "internal"
    page = (folder / "in" / "audit.html").read_text()
    assert "Internal: judged by confidential records" in page
    assert 'content="internal"' in page


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (("--publish-rates", "1000"), "budget exceeded"),
        (("--publish-rates", "rho=1/8"), "invalid account"),
        (("--publish-rates", "much"), "invalid loss"),
        (("--publish-rates", "days=3"), "invalid loss"),
        (("--publish-rates", "0"), "invalid loss"),
        (("--publish-rates", "1/2", "--ledger", "nowhere.sqlite"), "ledger unavailable"),
    ],
)
def test_losses_that_cannot_be_booked(
    command: Command, folder: Path, more: tuple[str, ...], code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = ledger_of(folder).spent("residents")
    refused = command(*typed(folder, *more, "--by", "Eve", "--json"))
    assert refused.status == 2
    assert refused.document["code"] == code
    assert ledger_of(folder).spent("residents") == before
    assert not (folder / "pub").exists()
    assert not (folder / "in").exists()


def test_what_is_no_public_question(command: Command, folder: Path) -> None:
    rates = ("--publish-rates", "1/2", "--json")
    program = command("audit", folder / "program.toml", *typed(folder, *rates)[2:])
    assert program.document["what"].startswith("a rate is to be published of something that is no release")
    for left_out, words in (("--out", "no folder to publish it in"), ("--confidential", "no records to count")):
        given = list(typed(folder, *rates))
        place = given.index(left_out)
        del given[place : place + 2]
        refused = command(*given)
        assert refused.status == 2
        assert words in refused.document["what"]


@pytest.mark.parametrize("name", ["in", "audit/in"])
def test_the_internal_folder_lies_in_no_release_and_in_no_public_folder(
    command: Command, folder: Path, name: str
) -> None:
    release = release_of(folder)
    whole = sorted(release.rglob("*"))
    common = ("audit", release, "--confidential", folder / "residents.csv", "--json")
    assert command(*common, "--internal", release / name).status == 2
    assert command(*common, "--internal", folder / "a", "--out", folder / "a").status == 2
    assert command(*common, "--internal", folder / "a" / name, "--out", folder / "a").status == 2
    assert sorted(release.rglob("*")) == whole
    assert not (folder / "a").exists()


def published(folder: Path, ledger: Ledger, loss: str = "1/2", **who: Any) -> list[Any]:
    asked = AuditOptions(folder / "residents.csv", place="ward")
    found: list[Any] = []
    release = load_release(release_of(folder))
    publisher = RatePublisher(**{"by": "Eve", **who})
    publish_rate(release, asked, ledger, loss=PrivacyLoss.pure(loss), publisher=publisher, write=found.append)
    return found


STEPS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "before it is opened": lambda patch: patch.setattr(booked_rates, "_reach", fail),
    "before it is measured": lambda patch: patch.setattr(booked_rates, "tabulate", fail),
    "before it is written": lambda patch: patch.setattr(BookedRates, "finding", fail),
}


def fail(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize("step", STEPS)
def test_a_rate_that_is_cut_short_costs_its_loss_once(folder: Path, step: str) -> None:
    ledger = ledger_of(folder)
    before = ledger.spent("residents")
    with pytest.MonkeyPatch.context() as patch:
        STEPS[step](patch)
        with pytest.raises(KeyboardInterrupt):
            published(folder, ledger)
    assert ledger.spent("residents") == before + Fraction(1, 2)  # set aside, whatever happens
    (first,) = published(folder, ledger_of(folder))
    assert ledger.spent("residents") == before + Fraction(1, 2)
    assert first.reference == "booked"


def test_cut_short_after_it_was_written_it_is_the_same_number(folder: Path) -> None:
    ledger, seen = ledger_of(folder), []
    asked, release = AuditOptions(folder / "residents.csv", place="ward"), load_release(release_of(folder))

    def seen_and_cut(finding: Any) -> None:
        seen.append(finding)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        publish_rate(
            release, asked, ledger, loss=PrivacyLoss.pure(1), publisher=RatePublisher("Eve"), write=seen_and_cut
        )
    (again,) = published(folder, ledger, "1")
    assert seen == [again]


def test_other_records_never_meet_the_same_noise(folder: Path) -> None:
    ledger = ledger_of(folder)
    with pytest.MonkeyPatch.context() as patch:
        STEPS["before it is written"](patch)
        with pytest.raises(KeyboardInterrupt):
            published(folder, ledger)
    records = folder / "residents.csv"
    records.write_text(records.read_text().replace("north,0\n", "", 1))
    with pytest.raises(ReleaseConflict, match="other data"):
        published(folder, ledger)


def test_limits_approvals_and_anchors_hold_as_for_any_release(folder: Path) -> None:
    ledger = ledger_of(folder)
    release = load_release(release_of(folder))
    strict = Account(
        "strict",
        "person",
        PrivacyLoss.pure(10),
        limits=(AccountLimit(Scope.PURPOSE, Fraction(1, 4)),),
        approver_differs=True,
    )
    ledger.open_account(strict, by="Ann")
    object.__setattr__(release, "facts", {**release.facts, "account": "strict"})
    asked = AuditOptions(folder / "residents.csv", place="ward")

    def ask(**who: Any) -> None:
        publisher = RatePublisher(**{"by": "Eve", **who})
        publish_rate(release, asked, ledger, loss=PrivacyLoss.pure("1/2"), publisher=publisher, write=lambda _: None)

    for who, code in (({}, "not approved"), ({"approved_by": "Ben", "purpose": "audit"}, "budget exceeded")):
        with pytest.raises(Refusal) as refused:
            ask(**who)
        assert refused.value.code == code
    assert ledger.spent("strict") == 0
    ask(approved_by="Ben")
    assert ledger.spent("strict") == Fraction(1, 2)


def test_a_ledger_behind_its_anchor_books_nothing(folder: Path) -> None:
    file = folder / "state" / "ledger.sqlite"
    old = file.read_bytes()
    ledger_of(folder).open_account(Account("later", "person", PrivacyLoss.pure(1)), by="Ann")
    for aside in folder.joinpath("state").glob("ledger.sqlite-*"):
        aside.unlink()
    file.write_bytes(old)
    with pytest.raises(LedgerTampered):
        published(folder, ledger_of(folder))


def test_a_release_that_was_changed_leads_to_no_rate(folder: Path) -> None:
    release = release_of(folder)
    facts = json.loads((release / "release.json").read_text())
    (release / "release.json").write_text(json.dumps({**facts, "description": "another"}))
    with pytest.raises(Refusal, match="is not the release"):
        published(folder, ledger_of(folder))
    asked, ledger = AuditOptions(place="ward"), ledger_of(folder)
    with pytest.raises(InvalidRequest, match="no records to judge by"):
        publish_rate(
            load_release(release),
            asked,
            ledger,
            loss=PrivacyLoss.pure(1),
            publisher=RatePublisher("Eve"),
            write=lambda _: None,
        )


def query(folder: Path, loss: PrivacyLoss) -> RateQuery:
    return rate_query(load_release(release_of(folder)), AuditOptions(place="ward"), loss)


def test_noise_is_set_by_what_one_unit_changes(folder: Path) -> None:
    """Σ min(f, x) moves by at most 1 when one record is added, removed or replaced; half of the loss is for each."""
    pure = query(folder, PrivacyLoss.pure("1/2"))
    assert (pure.noise.law, pure.noise.parameter) == ("laplace", Fraction(4))
    gaussian = query(folder, PrivacyLoss.concentrated("1/8"))
    assert (gaussian.noise.law, gaussian.noise.parameter) == ("gaussian", Fraction(8))
    many = replace(pure, protection=Protection(most_records_per_unit=3, identifier="household"))
    assert many.noise.parameter == Fraction(12)
    many = replace(gaussian, protection=Protection(most_records_per_unit=3, identifier="household"))
    assert many.noise.parameter == Fraction(72)
    assert pure.digest != gaussian.digest
    assert pure.digest == query(folder, PrivacyLoss.pure("1/2")).digest
    generator = np.random.default_rng(1)
    for _ in range(200):
        counts = generator.integers(0, 12, pure.found.shape)
        right = np.minimum(pure.found, counts).sum()
        one, other = (tuple(generator.integers(0, size) for size in counts.shape) for _ in range(2))
        changed = counts.copy()
        changed[one] += 1
        assert 0 <= np.minimum(pure.found, changed).sum() - right <= 1
        changed[other] -= changed[other] > 0
        assert abs(int(np.minimum(pure.found, changed).sum() - right)) <= 1


def test_the_two_numbers_have_noise_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[NoiseKey] = []

    def kept(*given: Any, **named: Any) -> NoiseKey:
        drawn.append(subkey(*given, **named))
        return drawn[-1]

    monkeypatch.setattr(booked_rates, "subkey", kept)
    published(folder, ledger_of(folder))
    assert len({key.content for key in drawn}) == 2


def test_published_numbers_are_the_true_ones_and_noise(folder: Path) -> None:
    truth = np.zeros((3, 8), dtype=np.int64)
    truth[:2] = 20
    ledger = wealthy(folder)
    (found,) = published(folder, ledger, str(10**6), other_ledger="a test")  # hardly any noise
    asked = query(folder, PrivacyLoss.pure(10**6))
    right = int(np.minimum(asked.found, truth).sum()) / asked.records
    assert found.success.least == pytest.approx(right, abs=1e-9)
    assert found.baselines[0].success.least == pytest.approx(int(np.minimum(asked.guess, truth).sum()) / asked.records)


def test_a_rate_from_records_that_another_ledger_has_spent_from(folder: Path) -> None:
    """As for a release: refused, unless it is said why, and then that is recorded and published."""
    ledger = wealthy(folder)
    before = ledger.head()
    with pytest.raises(Refusal, match=r"another ledger has spent from 'residents\.csv'"):
        published(folder, ledger)
    assert ledger.head() == before
    (found,) = published(folder, ledger, other_ledger="agreed on 3 May")
    assert "Another ledger had spent from the same records; the publisher: 'agreed on 3 May'" in found.booked
    assert ledger.releases()[-1].beside is not None


def test_a_rate_is_labeled_unsigned(folder: Path) -> None:
    (found,) = published(folder, ledger_of(folder), approved_by="Ben")
    assert "approved, unsigned: the ledger has a name that was typed; published, unsigned" in found.booked
    assert "Ben" not in found.booked


@pytest.mark.ssh
def test_a_rate_is_approved_and_published_with_signatures(command: Command, folder: Path, tmp_path: Path) -> None:
    """Where the project asks for two persons who sign: by the same rules as a release."""
    for name in ("Ann", "Eve"):
        made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)]
        subprocess.run(made, check=True, stdin=subprocess.DEVNULL)
    for role, name in (("approvers", "Ann"), ("publishers", "Eve")):
        (folder / role).write_text(f"{name} {(tmp_path / f'{name}.pub').read_text()}")
    settings = 'approvers = "approvers"\npublishers = "publishers"\ntwo_persons = true\n'
    (folder / "dualmandate.toml").write_text(settings)
    place = ("--place", "ward", "--ledger", folder / "state" / "ledger.sqlite")
    approve = ("audit", release_of(folder), *place, "--approve-rates", "1/2", "--json")
    publishing = typed(folder, "--publish-rates", "1/2", "--json")
    before = ledger_of(folder).head()
    for words in (
        (*publishing, "--by", "Eve", "--sign", tmp_path / "Eve"),  # nobody approved it
        (*publishing, "--by", "Eve", "--approved-by", "Ann", "--sign", tmp_path / "Eve"),  # a name that was typed
        (*approve, "--by", "Ann"),
        (*approve, "--by", "Eve", "--sign", tmp_path / "Eve"),  # in the wrong role
        (*approve, "--by", "Ann", "--sign", tmp_path / "Eve"),
    ):
        refused = command(*words)
        assert refused.status == 2
        assert refused.document["code"] == "not approved"
    assert "--approve-rates LOSS" in command(*publishing, "--by", "Eve").document["instead"]
    assert ledger_of(folder).head() == before
    approved = command(*approve, "--by", "Ann", "--sign", tmp_path / "Ann")
    assert approved.status == 0, approved.err
    jsonschema.validate(approved.document, schemas.schema("approval"))
    unsigned = command(*publishing, "--by", "Eve")
    assert (unsigned.status, unsigned.document["code"]) == (2, "not approved")
    outcome = command(*publishing, "--by", "Eve", "--sign", tmp_path / "Eve")
    assert outcome.status == 0, outcome.err
    found = json.loads((folder / "pub" / "audit.json").read_text())
    (rate,) = [each for each in found["findings"] if each["reference"] == "booked"]
    assert "approved by Ann, signed with SHA256:" in rate["booked"]
    assert "published by Eve, signed with SHA256:" in rate["booked"]


@pytest.mark.parametrize("more", [("--publish-rates", "1/2"), ("--out", "pub"), ("--confidential", "residents.csv")])
def test_an_approval_of_a_rate_is_nothing_else(command: Command, folder: Path, more: tuple[str, ...]) -> None:
    refused = command("audit", release_of(folder), "--approve-rates", "1/2", "--internal", "in", *more, "--json")
    assert refused.status == 2
    assert refused.document["what"] == "a rate is to be approved, and more is asked for"


def wealthy(folder: Path) -> Ledger:
    """The ledger of the town, with room for anything."""
    shutil.rmtree(folder / "state")
    shutil.rmtree(folder / "out")
    plan = load(folder / "program.toml").plan()
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    ledger.open_account(Account("residents", "person", PrivacyLoss.pure(10**9)), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    publish(plan, plan.program.source, ledger, out=folder / "out", by="Eve", unchecked=True, other_ledger="a test")
    return ledger


def test_a_loss_in_rho_from_an_account_in_rho() -> None:
    assert loss_of("rho=1/8", "a loss") == PrivacyLoss.concentrated("1/8")
    assert loss_of("0.1", "a loss") == PrivacyLoss.pure("1/10")
    with pytest.raises(InvalidLoss):
        loss_of("-1", "a loss")
