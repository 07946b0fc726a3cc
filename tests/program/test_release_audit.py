"""Audits of releases and programs: claims are computed again, and records judged where the curator names them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.program.test_released import PROGRAM, released

import dualmandate
from dualmandate.audit.claim_attacks import CheckClaim
from dualmandate.audit.finding import Range
from dualmandate.audit.rates import Rate
from dualmandate.errors import InvalidRequest
from dualmandate.program.audit_page import audit_page
from dualmandate.program.release_targets import claim_of
from dualmandate.program.released import load_release


@pytest.mark.parametrize(
    ("strategy", "measured"), [("optimized", "together"), ("workload", "apart"), ("identity", "together")]
)
def test_the_loss_of_a_release_is_the_one_it_claims(strategy: str, measured: str, tmp_path: Path) -> None:
    release = load_release(released(tmp_path, strategy, measured))
    program = dualmandate.load(tmp_path / "program.toml")
    noise, loss, shown, *_ = CheckClaim().run(claim_of(release, program), b"key")
    assert isinstance(noise.success, Rate)
    assert noise.success.successes == 0
    assert isinstance(loss.success, Range)
    allowed = loss.baselines[0].success
    assert isinstance(allowed, Range)
    assert 0.99 * allowed.largest < loss.success.largest <= allowed.largest * (1 + 1e-12)
    assert "exactly; not above" in loss.claim
    assert shown.success == Rate(0, 2)


def test_a_release_is_judged_by_its_records_inside(tmp_path: Path) -> None:
    folder = released(tmp_path)
    audit = dualmandate.audit(folder, confidential=tmp_path / "residents.csv", place="ward")
    assert audit.kind == "release"
    (judged,) = audit.labeled("internal")
    assert isinstance(judged.success, Rate)
    guess = judged.baselines[0].success
    assert isinstance(guess, Rate)
    assert judged.success.trials == 320
    assert judged.success.value >= guess.value - 0.05
    assert len(audit.labeled("public")) >= 4


def test_a_program_is_attacked_on_people_who_do_not_exist(tmp_path: Path) -> None:
    text = PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text)
    audit = dualmandate.audit(tmp_path / "program.toml")  # no records lie there
    assert {finding.label for finding in audit.findings} == {"public"}
    assert audit == dualmandate.audit(tmp_path / "program.toml")
    exact = next(finding for finding in audit.findings if "every record follows" in finding.claim)
    assert exact.success == Rate(1, 1)  # the largest table is the records
    noisy = [finding for finding in audit.findings if "most likely file" in finding.claim]
    values = [finding.success.value for finding in noisy if isinstance(finding.success, Rate)]
    assert len(values) == 4
    assert values[0] < values[-1]
    by_ward = dualmandate.audit(dualmandate.load(tmp_path / "program.toml"), place="ward")
    assert next(each for each in by_ward.findings if "every record" in each.claim).success == Rate(3, 3)
    small = text.replace('by   = ["ward", "age"]', 'by   = ["age"]').replace('by   = ["ward"]', "by = []")
    (tmp_path / "program.toml").write_text(small)
    with pytest.raises(InvalidRequest, match="no table is published by place"):
        dualmandate.audit(tmp_path / "program.toml", place="ward")


def test_old_methods_and_privacy_are_compared_on_people_who_do_not_exist(tmp_path: Path) -> None:
    text = PROGRAM.replace("STRATEGY", "workload").replace("MEASURED", "together")
    (tmp_path / "program.toml").write_text(text)
    audit = dualmandate.audit(tmp_path / "program.toml", place="ward")
    families = {each.family for each in audit.compared}
    assert families == {"exact", "swapping", "rounding", "cell key", "suppression", "differential privacy"}
    page = audit_page(audit)
    assert "<svg" in page
    assert "have no ε" in page
    assert not dualmandate.audit(tmp_path / "program.toml").compared  # one place: nobody to swap with
