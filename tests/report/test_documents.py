"""Documents that leave are closed, finite, and the same by their models and by their JSON Schemas."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from dualmandate import gallery
from dualmandate.apps.doctor import examine
from dualmandate.errors import InvalidFile, Place
from dualmandate.planning.program import load
from dualmandate.report.documents.commands import RefusalDocument
from dualmandate.report.documents.document import AmountPart, DocumentModel
from dualmandate.report.documents.plan import PlanDocument, plan_document
from dualmandate.report.documents.schemas import DOCUMENTS, schema

Change = Callable[[dict[str, Any]], object]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A plan as it is read back from its file."""
    folder = tmp_path_factory.mktemp("title_i")
    for name, text in gallery.files("title_i").items():
        (folder / name).write_text(text, encoding="utf-8")
    plan: dict[str, Any] = json.loads(json.dumps(plan_document(load(folder / "program.toml").plan())))
    return plan


def fits_schema(name: str, document: object) -> bool:
    return bool(jsonschema.Draft202012Validator(schema(name)).is_valid(document))


def fits_model(name: str, document: object) -> bool:
    try:
        DOCUMENTS[name].model_validate(document)
    except ValidationError:
        return False
    return True


def test_a_plan_is_read_back_as_it_was_written(written: dict[str, Any]) -> None:
    assert fits_schema("plan", written)
    plan = PlanDocument.model_validate_json(json.dumps(written))
    assert plan.choice.epsilon == written["choice"]["epsilon"]
    assert plan.tables[0].loss_measure == "squared"
    assert json.dumps(plan.as_json()) == json.dumps(written)
    with pytest.raises(ValidationError, match="frozen"):
        plan.digest = "0" * 64  # type: ignore[misc]


def test_a_plan_of_an_earlier_version_of_the_software_is_read(written: dict[str, Any]) -> None:
    earlier = copy.deepcopy(written)
    for point in earlier["choice"]["local_optima"]:
        del point["bound_by"]  # which was told later
    assert fits_schema("plan", earlier)
    assert PlanDocument.model_validate(earlier).as_json() == earlier


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.pop("schema"),
        lambda plan: plan.update(schema="plan/2"),
        lambda plan: plan.pop("guarantee"),
        lambda plan: plan["choice"].pop("willingness_to_accept"),
        lambda plan: plan.update(more=1),
        lambda plan: plan["frontier"]["points"][3].update(more=1),
        lambda plan: plan["choice"].update(epsilon="2.5"),
        lambda plan: plan["choice"].update(epsilon=True),
        lambda plan: plan["choice"].update(epsilon=0.0),
        lambda plan: plan["choice"].update(welfare=1.0),
        lambda plan: plan["choice"].update(bound_by="whim"),
        lambda plan: plan["loss"].update(exact="2.5"),
        lambda plan: plan["loss"].update(exact=2),
        lambda plan: plan.update(digest="0"),
        lambda plan: plan["tables"][0].update(query_count=1.5),
        lambda plan: plan["tables"][0].update(by="district"),
        lambda plan: plan["frontier"].update(points=[]),
        lambda plan: plan.update(path=None),
        lambda plan: plan.update(markets=[]),
        lambda plan: plan.update(notes=None),
    ],
)
def test_what_is_no_plan_is_refused_by_the_model_and_by_the_schema(written: dict[str, Any], change: Change) -> None:
    broken = copy.deepcopy(written)
    change(broken)
    assert not fits_schema("plan", broken)
    assert not fits_model("plan", broken)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_are_finite(written: dict[str, Any], number: float) -> None:
    for part, key in (("choice", "willingness_to_accept"), ("choice", "accuracy"), ("loss", "failure_probability")):
        broken = copy.deepcopy(written)
        broken[part][key] = number
        assert not fits_model("plan", broken)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_closed_and_name_their_schema(name: str) -> None:
    model = schema(name)
    assert next(iter(model["properties"])) == "schema"
    assert "schema" in model["required"]
    assert model["properties"]["schema"]["const"].partition("/")[0] == name
    tables = [model, *model.get("$defs", {}).values()]
    assert all(table["additionalProperties"] is False for table in tables)
    assert all(table.get("description") for table in model.get("$defs", {}).values())


def test_refusals_and_what_is_found_here_fit(tmp_path: Path) -> None:
    refusal = InvalidFile("a", why="b", instead="c", where=Place("d", 1, "e")).document()
    assert RefusalDocument.model_validate(refusal).as_json() == refusal
    for code in ("refusal", ""):  # every refusal has a code of its own
        assert not fits_schema("refusal", {**refusal, "code": code})
        assert not fits_model("refusal", {**refusal, "code": code})
    assert fits_schema("doctor", examine(tmp_path).document())


def test_preferences_say_something() -> None:
    head = {
        "schema": "preferences/1",
        "label": "public",
        "survey": "s",
        "kind": "likert",
        "unit": "u",
        "respondents": 3,
    }
    cases: list[tuple[dict[str, object], bool]] = [({}, False), ({"correlations": []}, True), ({"found": []}, False)]
    for more, fits in cases:
        assert fits_schema("preferences", {**head, **more}) == fits
        assert fits_model("preferences", {**head, **more}) == fits
    assert fits_model("preferences", {**head, "found": [], "preferences": [], "block": None})


def test_a_document_is_made_of_the_first_thing_that_says_a_key() -> None:
    class Pair(DocumentModel):
        exact: str
        amount: float

    thing = AmountPart(exact="1/2", amount=0.5)
    assert Pair.made_of(thing, amount=0.25).as_json() == {"exact": "1/2", "amount": 0.25}
    with pytest.raises(ValidationError, match="amount"):
        Pair.made_of(exact="1/2")
    with pytest.raises(ValidationError, match="more"):
        Pair.made_of(thing, more=1)
