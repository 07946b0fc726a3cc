"""The schemas describe what is read and written."""

from __future__ import annotations

import tomllib
from typing import Any

import jsonschema
import pytest

from dualmandate import gallery
from dualmandate.errors import InvalidFile, Place, UnknownName
from dualmandate.report.documents import schemas


@pytest.mark.parametrize("name", schemas.names())
def test_every_schema_is_a_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schemas.schema(name))
    assert schemas.schema(name)["title"]


def test_unknown_schema() -> None:
    with pytest.raises(UnknownName) as caught:
        schemas.schema("plans")
    assert "'plan'" in caught.value.instead


@pytest.mark.parametrize("name", gallery.names())
def test_programs_to_start_from_fit_the_schema(name: str) -> None:
    file, kind = ("tables.toml", "tables") if name == "block" else ("program.toml", "program")
    jsonschema.validate(tomllib.loads(gallery.files(name)[file]), schemas.schema(kind))


def test_the_survey_to_start_from_fits_the_schema() -> None:
    survey = tomllib.loads(gallery.files("survey")["survey.toml"])
    jsonschema.validate(survey, schemas.schema("survey"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**survey, "surveys": {}}, schemas.schema("survey"))


def without(document: dict[str, Any], *path: str) -> dict[str, Any]:
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return document


@pytest.mark.parametrize("path", [("mechanism",), ("population", "unit"), ("population", "population_size", "source")])
def test_what_must_be_stated_is_required(path: tuple[str, ...]) -> None:
    document = tomllib.loads(gallery.files("title_i")["program.toml"])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(without(document, *path), schemas.schema("program"))


def test_unknown_keys_do_not_fit() -> None:
    document = tomllib.loads(gallery.files("title_i")["program.toml"])
    document["mechanism"]["noize"] = "laplace"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schemas.schema("program"))


def test_keys_are_described() -> None:
    schema = schemas.schema("program")
    tables = [schema, *schema["$defs"].values()]
    silent = [key for table in tables for key, value in table["properties"].items() if not value.get("description")]
    assert not silent


def test_refusals_fit_their_schema() -> None:
    refusal = InvalidFile("a", why="b", instead="c", where=Place("d", 1, "e"))
    jsonschema.validate(refusal.document(), schemas.schema("refusal"))
    jsonschema.validate(InvalidFile("a", why="b", instead="c").document(), schemas.schema("refusal"))


def test_replicate_rows_fit_their_schema() -> None:
    row = {"id": "x", "what": "ε*", "paper": 2.52, "from_its_inputs": 2.5276, "corrected": None, "why": "truncated"}
    jsonschema.validate({"schema": "replicate/1", "rows": [row]}, schemas.schema("replicate"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"schema": "replicate/1", "rows": []}, schemas.schema("replicate"))
