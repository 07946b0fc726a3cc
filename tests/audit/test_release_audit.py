"""Audits of releases and programs: claims are computed again, and records judged where the curator names them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from tests.planning.test_ratios import PROGRAM as INSURED
from tests.planning.test_ratios import released as insured
from tests.planning.test_released import PROGRAM, released

import dualmandate
from dualmandate import gallery
from dualmandate.apps.publish import publish
from dualmandate.audit import audit as run_audit
from dualmandate.audit.claims.attack import ClaimAttack, ClaimedRelease
from dualmandate.audit.claims.checks import SharedNoise
from dualmandate.audit.claims.membership import MembershipAttack, membership_in
from dualmandate.audit.finding import Finding, Range, Rate
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.published_rates import RatePublisher, publish_rate
from dualmandate.audit.tables import open_truths
from dualmandate.audit.targets import of_release as release_targets
from dualmandate.audit.targets.of_release import claim_of
from dualmandate.audit.verdict import contradicts, verdict
from dualmandate.errors import InvalidRequest
from dualmandate.ledger import Account, Approval, make_key, open_ledger, read_key
from dualmandate.planning.plan import notes_on
from dualmandate.planning.program import Program
from dualmandate.planning.release_spec import load_release, release_spec_of_plan
from dualmandate.population import PrivacyLoss
from dualmandate.publication import publish as publishing
from dualmandate.publication.release import Release
from dualmandate.report.audit_page import audit_page
from dualmandate.report.documents.commands import AuditDocument
from dualmandate.report.plan_words import plan_words
from dualmandate.workload.statistics_count import count_statistics


@pytest.mark.parametrize(
    ("strategy", "measured"), [("optimized", "together"), ("workload", "apart"), ("identity", "together")]
)
def test_the_loss_of_a_release_is_the_one_it_claims(strategy: str, measured: str, tmp_path: Path) -> None:
    release = load_release(released(tmp_path, strategy, measured))
    program = dualmandate.load(tmp_path / "program.toml")
    noise, loss, drawn, shown, *_, bits = ClaimAttack().run(claim_of(release, program), b"key")
    assert isinstance(noise.success, Rate)
    assert noise.success.successes == 0
    assert isinstance(loss.success, Range)
    allowed = loss.baselines[0].success
    assert isinstance(allowed, Range)
    assert 0.99 * allowed.largest < loss.success.largest <= allowed.largest * (1 + 1e-12)
    assert "exactly; not above" in loss.claim
    assert shown.success == Rate(0, 2)
    assert isinstance(drawn.success, Range)
    assert 0.3 * allowed.largest < drawn.success.least <= allowed.largest
    assert "not above" in drawn.claim
    assert isinstance(bits.success, Rate)
    assert bits.success.successes == 0
    assert "last bits" in bits.claim


def test_a_release_whose_noise_was_not_drawn_is_contradicted(tmp_path: Path) -> None:
    folder = released(tmp_path, "workload", "together")
    claimed = claim_of(load_release(folder), dualmandate.load(tmp_path / "program.toml"))
    cells = np.eye(24, dtype=np.int64)[0]  # one person alone: all else is 0, exactly
    exact = tuple(replace(group, measured=group.count(cells)) for group in claimed.groups if group.count is not None)
    for target, broken in ((claimed, False), (replace(claimed, groups=exact), True)):
        found = ClaimAttack().run(target, b"key")
        (drew,) = [finding for finding in found if "drew" in finding.claim]
        assert "3 measured numbers follow from others among 27" in drew.claim
        assert contradicts(drew) == broken
        assert any("CONTRADICTED" in words for words in verdict(found)) == broken


def test_a_release_is_judged_by_its_records_inside(tmp_path: Path) -> None:
    folder = released(tmp_path)
    audit = run_audit(folder, confidential=tmp_path / "residents.csv", place="ward")
    assert audit.kind == "release"
    tests, judged, precision, recall = audit.labeled("internal")
    assert precision.claim.startswith("precision: records of the most likely file")
    assert recall.claim.startswith("recall: records that the most likely file")
    assert isinstance(judged.success, Rate)
    assert isinstance(tests.success, Rate)
    assert tests.success.successes == 0
    assert "less what was counted" in tests.claim
    guess = judged.baselines[0].success
    assert isinstance(guess, Rate)
    assert judged.success.trials == 320
    assert judged.success.value >= guess.value - 0.05
    assert len(audit.labeled("public")) >= 4


def test_with_the_records_noise_of_another_size_in_one_place_is_found(tmp_path: Path) -> None:
    """Three numbers follow from others, too few to see it in public files; the records show it."""
    folder = released(tmp_path, "workload", "together")
    asked = AuditOptions(tmp_path / "residents.csv", place="ward")
    claimed = next(each for each in release_targets.targets_of(load_release(folder), asked).attacked)
    assert isinstance(claimed, ClaimedRelease)
    (counts,) = open_truths(claimed.truths).values()
    *others, ages = claimed.groups
    assert ages.measured is not None
    assert ages.count is not None
    true, forged = ages.count(counts), ages.measured.copy()
    forged[-8:] = true[-8:] + 6  # ages in the last ward
    broken = replace(claimed, groups=(*others, replace(ages, measured=forged)))
    (public, inside) = (each for each in ClaimAttack().run(broken, b"key") if "noise" in each.claim and each.power)
    assert public.label == "public"
    assert inside.label == "internal"
    assert contradicts(inside)
    assert any("more noise than stated, in ward" in each for each in inside.details)


def test_a_program_is_attacked_on_people_who_do_not_exist(tmp_path: Path) -> None:
    text = PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text)
    audit = run_audit(tmp_path / "program.toml")  # no records lie there
    assert {finding.label for finding in audit.findings} == {"public"}
    assert audit == run_audit(tmp_path / "program.toml")
    exact = next(finding for finding in audit.findings if "every record follows" in finding.claim)
    assert exact.success == Rate(1, 1)  # the largest table is the records
    noisy = [finding for finding in audit.findings if finding.claim.startswith("records right in the most likely")]
    assert all("taken as one place" in finding.claim for finding in noisy)
    assert len({finding.baselines for finding in noisy}) == 1  # guessers have no tables, and do not move with ε
    values = [finding.success.value for finding in noisy if isinstance(finding.success, Rate)]
    assert len(values) == 4
    assert values[0] < values[-1]
    by_ward = run_audit(dualmandate.load(tmp_path / "program.toml"), place="ward")
    assert next(each for each in by_ward.findings if "every record" in each.claim).success == Rate(3, 3)
    small = text.replace('by   = ["ward", "age"]', 'by   = ["age"]').replace('by   = ["ward"]', "by = []")
    (tmp_path / "program.toml").write_text(small)
    with pytest.raises(InvalidRequest, match="no table is published by place"):
        run_audit(tmp_path / "program.toml", place="ward")


def test_old_methods_and_privacy_are_compared_on_people_who_do_not_exist(tmp_path: Path) -> None:
    text = PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text)
    audit = run_audit(tmp_path / "program.toml", place="ward")
    families = {each.family for each in audit.compared}
    assert families >= {"exact", "swapping", "rounding", "cell key", "suppression", "differential privacy"}
    page = audit_page(audit)
    assert "<svg" in page
    assert "have no ε" in page


def test_a_member_is_looked_for_in_a_release(tmp_path: Path) -> None:
    folder = released(tmp_path)
    audit = run_audit(folder)
    found = [finding for finding in audit.findings if finding.attack == "membership"]
    assert len(found) == 6
    assert all("not above" in finding.claim for finding in found)
    informed = [finding for finding in found if "knows everybody else" in finding.claim]
    assert all(finding.success.value > finding.baselines[0].success.value for finding in informed)  # type: ignore[union-attr]
    leaning = [finding for finding in found if finding.claim.startswith("Homer")]
    assert all(finding.success.value > finding.baselines[0].success.value for finding in leaning)  # type: ignore[union-attr]
    program = dualmandate.load(tmp_path / "program.toml")
    claimed = claim_of(load_release(folder), program)
    halved = replace(claimed, loss=PrivacyLoss(claimed.loss.amount / 4))
    target = membership_in(halved, b"key")
    assert target is not None
    assert any("ABOVE" in finding.claim for finding in MembershipAttack().run(target, b"key"))
    assert membership_in(replace(claimed, records=2), b"key") is None
    assert not any(words.startswith("membership") for words in audit.left_out)


def test_a_release_in_which_no_member_is_looked_for_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of_two(release: Release, program: Program, beside: Mapping[str, SharedNoise]) -> ClaimedRelease:
        return replace(claim_of(release, program, beside), records=2)

    monkeypatch.setattr(release_targets, "claim_of", of_two)
    audit = run_audit(released(tmp_path))
    assert not any(finding.attack == "membership" for finding in audit.findings)
    assert any(words.startswith("membership: tests are for units of one record") for words in audit.left_out)


def again(folder: Path, monkeypatch: pytest.MonkeyPatch, *, secret: bytes | None) -> Path:
    """The same plan published once more, with a secret of its own or a given one."""
    ledger = open_ledger(folder / "state" / "ledger.sqlite", read_key(folder / "state" / "key"))
    plan = dualmandate.load(folder / "program.toml").plan()
    assert plan.program.source is not None
    if secret is not None:
        monkeypatch.setattr("dualmandate.ledger.chain.secrets.token_bytes", lambda size: secret[:size])
    asked = publishing.PublicationRequest("Eve", plan.program.source.name, again=True, unchecked=True)
    order = release_spec_of_plan(plan)
    return publishing.publish(order, plan.program.source, ledger, out=folder / "out", request=asked)


@pytest.mark.parametrize("strategy", ["optimized", "workload"])
def test_releases_that_share_noise_are_named(strategy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = released(tmp_path, strategy)
    apart = again(tmp_path, monkeypatch, secret=None)
    shared = [again(tmp_path, monkeypatch, secret=bytes(range(64))) for _ in range(2)]
    honest = run_audit(first, beside=[apart, shared[0]])
    reuse = [finding for finding in honest.findings if "that are equal in" in finding.claim]
    assert len(reuse) == 2
    assert not any("SHARE NOISE" in finding.claim for finding in reuse)
    broken = run_audit(shared[0], beside=[shared[1]])
    (named,) = [finding for finding in broken.findings if "that are equal in" in finding.claim]
    assert "SHARE NOISE" in named.claim
    assert isinstance(named.success, Rate)
    assert named.success.value == 1.0
    assert isinstance(named.baselines[0].success, Rate)
    assert named.baselines[0].success.value < 1
    with pytest.raises(InvalidRequest, match="with itself"):
        run_audit(first, beside=[first])
    with pytest.raises(InvalidRequest, match="no release"):
        run_audit(tmp_path / "program.toml", beside=[first])


def test_tables_in_common_are_enough(tmp_path: Path) -> None:
    """Another program over the same people: rows of the tables that both measure are compared."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    for folder in (one, two, three):
        folder.mkdir()
    first = released(one, "workload")
    import tests.planning.test_released as made

    fewer = made.PROGRAM[: made.PROGRAM.index("[[workload]]")] + made.PROGRAM[made.PROGRAM.rindex("[[workload]]") :]
    other = fewer.replace("to = 7", "to = 8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "PROGRAM", fewer)
        second = released(two, "workload")
        patch.setattr(made, "PROGRAM", other)
        third = released(three, "workload")
    audit = run_audit(first, beside=[second, third])
    (reuse,) = [finding for finding in audit.findings if "that are equal in" in finding.claim]
    assert isinstance(reuse.success, Rate)
    assert reuse.success.trials == 24  # ages by ward
    assert any("about other attributes" in words for words in audit.left_out)


def test_exact_totals_say_which_secrets_remain_protected(tmp_path: Path) -> None:
    release = load_release(released(tmp_path))
    program = dualmandate.load(tmp_path / "program.toml")
    claimed = claim_of(release, program)
    assert not claimed.exact
    wrong = replace(claimed, exact={"number of records": True})
    (finding,) = [each for each in ClaimAttack().run(wrong, b"key") if "exact numbers" in each.claim]
    assert finding.success == Rate(1, 1)
    assert "blatantly non-private" in finding.claim
    assert "under bounded (replace-one) neighbors remain protected" in finding.claim


@pytest.mark.parametrize(("people", "warned"), [(900, False), (20, True)])
def test_a_plan_warns_of_more_statistics_than_people(people: int, warned: bool, tmp_path: Path) -> None:
    text = PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text.replace("value = 900", f"value = {people}"))
    plan = dualmandate.load(tmp_path / "program.toml").plan()
    notes = [note for note in notes_on(plan) if "linearly independent" in note]
    assert bool(notes) == warned
    assert not warned or "27 numbers, 24 of them linearly independent: 1.2 for each of 20 persons" in notes[0]
    assert not warned or " ".join(notes[0].split()) in " ".join(plan_words(plan).split())


def test_title_i_publishes_fewer_statistics_than_people(tmp_path: Path) -> None:
    gallery.write("title_i", tmp_path)
    program = dualmandate.load(tmp_path / "program.toml")
    count = count_statistics(program.workload, float(program.file.population.population_size.value))
    assert not count.warns


def test_a_loss_in_rho_is_compared_as_its_epsilon(tmp_path: Path) -> None:
    text = PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together")
    text = text.replace('"geometric"', '"gaussian"\nfailure_probability = 1e-6')
    text = text.replace('"add-or-remove"', '"replace-one"\ndropping_is_public = true')
    (tmp_path / "program.toml").write_text(text)
    rows = "".join(f"{ward},{age}\n" for ward in ("north", "east") for age in range(8) for _ in range(20))
    (tmp_path / "residents.csv").write_text("ward,age\n" + rows)
    plan = dualmandate.load(tmp_path / "program.toml").plan()
    ledger = open_ledger(tmp_path / "state" / "ledger.sqlite", make_key(tmp_path / "state" / "key"), create=True)
    ledger.open_account(Account("residents", "person", PrivacyLoss.concentrated(100)), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    release = publish(plan, plan.program.source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    found = run_audit(release).findings
    (drawn,) = [finding for finding in found if "has at least" in finding.claim]
    assert "at δ = 1e-06" in drawn.claim
    assert "not above" in drawn.claim
    (exact,) = [finding for finding in found if "exact numbers" in finding.claim]
    assert exact.success == Rate(0, 1)
    assert "remain protected: what a record says" in exact.claim
    booked: list[Finding] = []
    asked, loss = AuditOptions(tmp_path / "residents.csv", place="ward"), PrivacyLoss.concentrated("1/8")
    publish_rate(release, asked, ledger, loss=loss, publisher=RatePublisher("Eve"), write=booked.append)
    assert "loss rho = 0.125 of each person" in (booked[0].booked or "")
    assert ledger.spent("residents") == plan.charge.amount + loss.amount


def test_it_says_what_clipped_tables_count_as_the_release_does(tmp_path: Path) -> None:
    text = INSURED[: INSURED.index("[[ratios]]")] + INSURED[INSURED.index("[mechanism]") :]
    text = text.replace("upper = 1000, grid = 50", "upper = 1000, grid = 1000").replace(
        "value = 0, unit", "value = 1, unit"
    )
    release = load_release(insured(tmp_path, text))
    audit = run_audit(release, place="region")
    counted = "cost, each person's counted up to USD 1,000, in steps of USD 1,000"
    assert {table["name"]: table["clipped"] for table in release.facts["tables"] if table["clipped"]} == audit.clipped
    assert audit.clipped == {"cost by region": counted}
    assert f"what is counted: in 'cost by region': {counted}\n" in audit.words()
    assert AuditDocument.model_validate(audit.document()).clipped == audit.clipped
    assert f"What is counted in 'cost by region': {counted}." in unescape(audit_page(audit))


def test_exact_totals_by_groups_tell_the_group_of_one_whose_others_are_known(tmp_path: Path) -> None:
    import tests.planning.test_released as made

    exact = made.PROGRAM.replace('"add-or-remove"', '"replace-one"\ndropping_is_public = true')
    exact = exact.replace('[[workload]]\nname = "wards"', '[[invariants]]\nname = "residents of wards"', 1)
    exact = exact.replace('value_of_accuracy = { value = 50, unit = "USD per person^2", source = "made up" }', "", 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(made, "PROGRAM", exact)
        told = run_audit(made.released(tmp_path, "workload"))
    (finding,) = [each for each in told.findings if each.claim.startswith("in which of 3 groups")]
    assert "'residents of wards'" in finding.claim
    assert (finding.success, finding.baselines[0].success) == (Rate(3, 3), Rate(1, 3))
    assert finding.attacker_knows == "everybody else's records"
    assert finding.claim in " ".join(verdict(told.findings))
    (tmp_path / "noisy").mkdir()
    with_noise = run_audit(made.released(tmp_path / "noisy", "workload"))
    assert not [each for each in with_noise.findings if each.claim.startswith("in which of")]
