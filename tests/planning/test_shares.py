"""Stated shares of the loss: exact from the program file to the noise, and read back with intervals."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from pyarrow import parquet
from tests.publication.towns import CODES, RHO, SHARES, write_towns

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.errors import InvalidRelease, InvalidValue
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population import PrivacyLoss
from dualmandate.publication import release as module
from dualmandate.publication import release_folder
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema


@pytest.fixture
def towns(tmp_path: Path) -> Path:
    return write_towns(tmp_path)


def with_share(program: Path, name: str, share: str) -> Path:
    """The program with the share of one table written otherwise."""
    text = program.read_text(encoding="utf-8")
    before = f'share = "{SHARES[name]} * 1/1"'
    start = text.index(f'name  = "{name}"')
    program.write_text(text[:start] + text[start:].replace(before, share, 1), encoding="utf-8")
    return program


def released(program: Path, plan: Plan) -> Path:
    ledger = open_ledger(program.parent / "ledger.sqlite", make_key(program.parent / "key"), create=True)
    ledger.open_account(Account("residents", "person", PrivacyLoss.concentrated(3)), by="Ann")
    ledger.approve(Approval("residents", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    found = publish(plan, plan.program.source, ledger, out=program.parent / "out", by="Eve", unchecked=True).folder
    assert ledger.spent("residents") == RHO
    return found


def test_a_plan_spends_the_stated_shares_to_the_last_fraction(towns: Path) -> None:
    plan = load(towns).plan()
    assert (plan.loss, plan.choice.bound_by) == (PrivacyLoss.concentrated(RHO), "largest rho")
    assert plan.allocation == {name: RHO * share for name, share in SHARES.items()}
    order = release_spec_of_plan(plan)
    for group in order.groups:
        # A replaced record changes two numbers by 1 within its county: ρ = 2/(2σ²).
        assert [noise.parameter for noise in group.noises] == [1 / (RHO * SHARES[group.name])]
    errors = {table.table: table.root_mean_squared_error for table in plan.tables}
    assert errors["blocks by sex"] < 0.9 * float(1 / (RHO * SHARES["blocks by sex"])) ** 0.5  # of all measurements
    assert any("the program states" in note for note in plan.notes)
    jsonschema.validate(plan_document(plan), schema("plan"))


@pytest.mark.parametrize(
    ("written", "share"), [('"447/4099"', "447/4099"), ("0.25", "1/4"), ('"3/4 * 1/9"', "1/12"), ("1", "1")]
)
def test_a_share_is_a_number_or_fractions_multiplied(towns: Path, written: str, share: str) -> None:
    text = towns.read_text(encoding="utf-8")
    start = text.index("[[workload]]")
    end = text.index("[[workload]]", start + 1)
    rest = str(1 - Fraction(share))
    second = text[start:end].replace("people by sex", "others").replace('"1/10 * 1/1"', f'"{rest}"')
    one = text[:start] + text[start:end].replace('"1/10 * 1/1"', written) + (second if rest != "0" else "")
    towns.write_text(one, encoding="utf-8")
    assert load(towns).file.shares["people by sex"] == Fraction(share)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        ("", "has no share"),
        ("share = 0.3", "add up to"),
        ("share = 0", "larger than 0"),
        ("share = -0.1", "larger than 0"),
        ('share = "5/4"', "larger than 0 and at most"),
        ('share = "1/0"', "a part of the whole loss"),
        ('share = "1 / 5"', "a part of the whole loss"),
        ('share = "1/5 * "', "a part of the whole loss"),
        ("share = true", "a number is meant"),
    ],
)
def test_shares_that_are_not_meant_are_refused(towns: Path, share: str, words: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        load(with_share(towns, "blocks by sex", share))
    assert words in f"{caught.value.what} {caught.value.why}"
    assert caught.value.where is not None


def test_tables_that_are_measured_together_share_nothing_out(towns: Path) -> None:
    text = towns.read_text(encoding="utf-8")
    towns.write_text(text.replace('measured = "apart"', 'measured = "together"'), encoding="utf-8")
    with pytest.raises(InvalidValue, match="share nothing out"):
        load(towns)


def test_groups_of_tables_get_the_shares_of_their_tables(towns: Path) -> None:
    names = list(SHARES)
    groups = [names[:3], names[3:]]
    text = towns.read_text(encoding="utf-8")
    towns.write_text(text.replace('measured = "apart"', f"measured = {json.dumps(groups)}"), encoding="utf-8")
    plan = load(towns).plan()
    assert list(plan.allocation.values()) == [RHO * sum(SHARES[name] for name in group) for group in groups]


def test_a_nested_release_of_a_program_is_read_back_with_intervals(towns: Path) -> None:
    """Plan, approve, publish, read: numbers of a hierarchy rest on all measurements, and their intervals do too."""
    plan = load(towns).plan()
    folder = released(towns, plan)
    release = load_release(folder)
    for table in plan.tables:  # what the plan promised is what the release states
        stated = float(np.sqrt(np.square(release.published(table.table).standard_errors).mean()))
        assert table.root_mean_squared_error == pytest.approx(stated, rel=1e-9)
        halves = release.intervals(table.table)
        assert table.half_width == pytest.approx((halves["upper"].to_numpy() - halves["lower"].to_numpy()).max() / 2)
    jsonschema.validate(dict(release.facts), schema("release"))
    assert release.facts["estimated_together"]
    county, block = CODES[0][0], CODES[0]
    exact = release.interval("people by county", county=county)
    assert (exact.lower, exact.probability) == (exact.upper, 1.0)
    one = release.interval("blocks by sex", block=block, sex="f", probability=0.9)
    assert one.lower <= release.estimate("blocks by sex", block=block, sex="f") <= one.upper
    assert 0.9 <= one.probability <= 1
    # The two sexes of a county add up to its exact total, so that their sum has no error left.
    both = release.interval("counties by sex", county=county)
    assert both.upper - both.lower == pytest.approx(0, abs=1e-3)
    assert both.lower == pytest.approx(exact.lower, abs=1e-3)
    # Estimates of all measurements together are more precise than the table's own measurement.
    noise = release.measurements("blocks by sex").noises[0].distribution()
    own = release.published("blocks by sex")
    assert own.standard_errors.max() < noise.variance**0.5
    assert one.upper - one.lower < 2 * noise.reach(0.1)


def test_large_tables_have_whole_numbers_alone_and_are_estimated_again(
    towns: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files above a size are compared with their digests when they are first read, or all at once."""
    plan, large = load(towns).plan(), "blocks by sex and age"
    sizes = {table.table: table.query_count for table in plan.tables}
    monkeypatch.setattr(release_folder, "MOST_WITH_INTERVALS", sizes[large] - 1)
    folder = released(towns, plan)
    release = load_release(folder)
    jsonschema.validate(dict(release.facts), schema("release"))
    entries = {entry["name"]: entry for entry in release.facts["tables"]}
    assert {name for name, entry in entries.items() if entry["estimates"] is None} == {large}
    assert parquet.read_schema(folder / entries[large]["parquet"]).names[-2:] == ["value", "unit"]
    fine, coarse = (release.intervals(name, ["block", "sex"]) for name in (large, "blocks by sex"))
    for column in ("estimate", "standard_error", "lower", "upper"):
        assert np.allclose(fine[column].to_numpy(), coarse[column].to_numpy(), atol=1e-3)
    for row in release.intervals(large, ["sex"]).to_pylist():  # over all places
        one = release.interval(large, sex=row["sex"])
        assert (row["estimate"], row["standard_error"]) == pytest.approx((one.estimate, one.standard_error))
        assert (row["lower"], row["upper"]) == pytest.approx((one.lower, one.upper), abs=1e-3)
    stated = float(np.sqrt(np.square(release.published(large).standard_errors).mean()))
    promised = next(table.root_mean_squared_error for table in plan.tables if table.table == large)
    assert promised == pytest.approx(stated, rel=1e-9)
    path = folder / entries["blocks by sex"]["parquet"]
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(InvalidRelease):
        load_release(folder)
    monkeypatch.setattr(module, "LARGE", 0)
    changed = load_release(folder)
    assert changed.interval(large, probability=0.5).estimate == pytest.approx(release.estimate(large))
    with pytest.raises(InvalidRelease, match="cannot be used"):
        changed.published("blocks by sex")
    with pytest.raises(InvalidRelease, match="cannot be used"):
        load_release(folder).check()
