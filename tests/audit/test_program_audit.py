"""An audit of a program: every method on one picture, with the program's own plan on it, on people who were drawn."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import numpy as np
import pytest

from dualmandate.audit.options import AuditOptions
from dualmandate.audit.run import Audit, audit_target
from dualmandate.audit.tables import one_place, place_attribute
from dualmandate.audit.targets import of_program as audit_comparison
from dualmandate.audit.targets import of_program as audit_plan
from dualmandate.audit.targets.of_program import compare_methods, planned_method, promised_error, synthetic_places
from dualmandate.planning.program import Program, load
from dualmandate.publication import measuring
from dualmandate.report.audit_page import audit_page
from dualmandate.report.documents import schemas
from dualmandate.report.figures import risk

if TYPE_CHECKING:
    from playwright.sync_api import Page

BLOCKS = """\
[program]
schema = 1
name = "blocks"
[population]
account = "residents"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 300, unit = "person", source = "made up" }
attributes.block = ["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10"]
attributes.sex = ["F", "M"]
attributes.age = { from = 0, to = 5 }
attributes.race = ["A", "B", "C"]
[[workload]]
name = "race by block"
by = ["block", "race"]
value_of_accuracy = { value = 10, unit = "USD per person^2", source = "made up" }
[[workload]]
name = "age by sex by block"
by = ["block", "sex", "age"]
value_of_accuracy = { value = 10, unit = "USD per person^2", source = "made up" }
[mechanism]
noise = "geometric"
strategy = "workload"
[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 5, unit = "USD per person per epsilon", source = "made up" }
[limits]
largest_epsilon = 50
"""
SUMS = """\
[[workload]]
name = "pay by block and race"
by = ["block", "race"]
sum_of = "pay"
unit = "USD"
value_of_accuracy = { value = 1, unit = "USD per USD^2", source = "made up" }
[mechanism]
"""
Change = Callable[..., Program]


@pytest.fixture
def blocks(tmp_path: Path) -> Change:
    """The program, with pieces of its text exchanged."""

    def make(*pieces: tuple[str, str]) -> Program:
        text = BLOCKS
        for old, new in pieces:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "program.toml").write_text(text)
        return load(tmp_path / "program.toml")

    return make


def test_every_method_and_the_plan(blocks: Change, browser_page: Page, tmp_path: Path) -> None:
    program = blocks()
    found = audit_target(program, AuditOptions(place="block"))
    families = {each.family for each in found.compared}
    assert len(families) == 8
    (plan,) = (each for each in found.compared if each.planned)
    assert plan.loss == program.plan().loss
    assert plan.promised_error == pytest.approx(plan.error, rel=0.25)
    assert any("alone with their sex and age in their block" in note for note in found.notes)
    assert any("as it would be released" in note for note in found.notes)
    document = found.document()
    jsonschema.validate(document, schemas.schema("audit"))
    page = audit_page(found)
    assert "no ε" in page
    assert "the frontier states a mean absolute error" in page
    assert " safe" not in page.lower()
    (tmp_path / "audit.html").write_text(page)
    for width in (1100, 390):
        browser_page.set_viewport_size({"width": width, "height": 900})
        browser_page.goto((tmp_path / "audit.html").as_uri())
        assert browser_page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        seen = [each.is_visible() for each in browser_page.query_selector_all("figure > div")]
        assert seen == ([True, False] if width > 400 else [False, True])


def test_the_same_key_gives_the_same_and_no_release_is_touched(blocks: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    program = blocks()

    def refused(*_: object, **__: object) -> None:
        raise AssertionError("an audit draws with its own key")

    monkeypatch.setattr(measuring, "noise_key", refused)
    first = compare_methods(program, AuditOptions())
    assert compare_methods(program, AuditOptions()).compared == first.compared
    assert compare_methods(program, AuditOptions(key=b"another")).compared != first.compared


def test_a_small_domain_has_places_too(blocks: Change) -> None:
    program = blocks()
    assert one_place(program.workload).axis is None
    assert place_attribute(program.workload) == "block"
    assert place_attribute(program.workload, "sex") == "sex"
    assert compare_methods(program, AuditOptions()).compared


def test_the_secret_may_be_stated(blocks: Change) -> None:
    notes = compare_methods(blocks(), AuditOptions(secret=("sex",))).notes
    assert any("alone with their age and race in their block, and unlike most of it in sex" in note for note in notes)


def test_a_plan_in_rho(blocks: Change) -> None:
    program = blocks(
        ('"geometric"', '"gaussian"'), ("per epsilon", "per rho"), ("largest_epsilon = 50", "largest_rho = 9")
    )
    found = compare_methods(program, AuditOptions())
    (plan,) = (each for each in found.compared if each.planned)
    assert plan.name.startswith("the plan: ρ = ")
    assert plan.epsilon is None
    assert plan.promised_error == pytest.approx(plan.error, rel=0.25)
    said = risk(found.compared).title
    assert "under the plan (ρ" in said


def test_replace_one_and_an_optimized_strategy(blocks: Change) -> None:
    replaced = '"replace-one"\ndropping_is_public = true'
    program = blocks(('"add-or-remove"', replaced), ('strategy = "workload"', 'strategy = "optimized"'))
    plan = program.plan()
    place = one_place(program.workload, "block")
    people = synthetic_places(program, place, b"k")
    way, words = planned_method(plan, place, people, b"k")
    assert "as it would be released" in words
    exact = np.concatenate(
        [
            place.by_place(table, program.workload.table_answers(table.name, people.reshape(10, 2, 6, 3)))
            for table in place.tables
        ],
        axis=1,
    )
    errors = way.printed - exact
    assert np.abs(errors).mean() == pytest.approx(promised_error(plan, place), rel=0.2)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(errors.size)  # estimates are unbiased
    # the number of records is public: estimates of all records agree with it
    assert way.printed[:, :3].sum() == pytest.approx(people.sum(), abs=1e-6)


def test_a_release_that_is_too_large_to_try_out(blocks: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    program = blocks()
    monkeypatch.setattr(audit_plan, "LARGEST_MEASURED", 10)
    found = compare_methods(program, AuditOptions())
    assert any("noise of the planned size on every number" in note for note in found.notes)
    (plan,) = (each for each in found.compared if each.planned)
    assert plan.promised_error == pytest.approx(plan.error, rel=0.25)
    optimized = blocks(('strategy = "workload"', 'strategy = "optimized"'))
    (other,) = (each for each in compare_methods(optimized, AuditOptions()).compared if each.planned)
    assert other.promised_error == pytest.approx(other.error, rel=0.25)
    place = one_place(program.workload, "block")
    people = synthetic_places(program, place, b"k")
    for each in (program, optimized):
        made = each.plan()
        way, _ = planned_method(made, place, people, b"k")
        assert way.known.scales.mean() == pytest.approx(promised_error(made, place), rel=0.1)


def test_one_place_and_one_attribute(blocks: Change) -> None:
    lonely = blocks(('["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10"]', '["b1"]'))
    found = compare_methods(lonely, AuditOptions(place="block"))
    assert not found.compared
    assert any("one place" in words for words in found.left_out)
    by_age = blocks(
        ('attributes.sex = ["F", "M"]\n', ""),
        ('attributes.race = ["A", "B", "C"]\n', ""),
        ('attributes.block = ["b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10"]\n', ""),
        ('by = ["block", "race"]', 'by = ["age"]'),
        ('by = ["block", "sex", "age"]', "by = []"),
    )
    nothing = compare_methods(by_age, AuditOptions())
    assert not nothing.compared
    assert any("--place" in words for words in nothing.left_out)


def test_one_attribute_beside_the_place(blocks: Change) -> None:
    program = blocks(
        ('attributes.sex = ["F", "M"]\n', ""),
        ("attributes.age = { from = 0, to = 5 }\n", ""),
        ('by = ["block", "sex", "age"]', 'by = ["block"]'),
    )
    found = compare_methods(program, AuditOptions())
    assert all(each.nonmodal_uniques is None for each in found.compared)
    assert any("micro-aggregation and top-coding" in words for words in found.left_out)
    assert any("dominance" in words for words in found.left_out)
    jsonschema.validate(
        Audit("blocks", "program", (), found.left_out, found.compared, found.notes).document(), schemas.schema("audit")
    )


def test_nobody(blocks: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_comparison, "synthetic_people", lambda domain, sizes, _: np.zeros((10, domain.size), int))
    found = compare_methods(blocks(), AuditOptions())
    assert not found.compared
    assert any("nobody" in words for words in found.left_out)


def test_too_many_cells_a_place(blocks: Change, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_comparison, "LARGEST_COMPARED_PLACE", 35)
    assert any("36 cells a place" in words for words in compare_methods(blocks(), AuditOptions()).left_out)
    monkeypatch.setattr(audit_comparison, "LARGEST_COMPARED_PLACE", 36)
    monkeypatch.setattr(audit_comparison, "MOST_NUMBERS", 90)  # 15 numbers a place: six places
    found = compare_methods(blocks(), AuditOptions())
    assert any("in 6 of 10 places" in note for note in found.notes)
    (plan,) = (each for each in found.compared if each.planned)
    assert plan.error == pytest.approx(plan.promised_error, rel=0.4)  # of these places, wherever others stand


def test_a_plan_that_cannot_be_made_is_left_out(blocks: Change) -> None:
    strict = blocks(
        ("largest_epsilon = 50", "largest_epsilon = 0.001"),
        (
            'by = ["block", "race"]\n',
            'by = ["block", "race"]\nfitness_for_use = { largest_root_mean_squared_error = 0.001 }\n',
        ),
    )
    found = compare_methods(strict, AuditOptions())
    assert found.compared
    assert not any(each.planned for each in found.compared)
    assert any("the plan's own loss" in words for words in found.left_out)


def test_tables_of_sums_are_judged_by_their_contributors(blocks: Change) -> None:
    program = blocks(
        ("attributes.race", "attributes.pay = { lower = 0, upper = 40, grid = 10 }\nattributes.race"),
        ("[mechanism]\n", SUMS),
    )
    found = audit_target(program, AuditOptions(place="block"))
    claims = [finding.claim for finding in found.findings if finding.attack == "contributors to sums"]
    assert len(claims) == 4
    assert any("10 % rule" in claim for claim in claims)
    assert not any("dominance" in words for words in found.left_out)
    said = "pay, each person's counted up to USD 40, in steps of USD 10"
    assert f"what is counted: in 'pay by block and race': {said}" in found.words()
    jsonschema.validate(found.document(), schemas.schema("audit"))
