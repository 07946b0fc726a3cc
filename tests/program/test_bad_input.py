"""Whatever is wrong with a program file: one refusal with its place, and never another exception."""

from __future__ import annotations

import copy
import datetime
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualmandate import gallery
from dualmandate.errors import (
    IncompatibleUnits,
    InvalidDomain,
    InvalidFile,
    InvalidValue,
    InvalidWorkload,
    MissingKey,
    Refusal,
    TooLarge,
    UnknownKey,
)
from dualmandate.planning.program import load
from dualmandate.program.file import KeyPath

TEXT = gallery.files("title_i")["program.toml"]
CONTENT = tomllib.loads(TEXT)
TOLD = ("agency", "author", "version", "date", "kind")  # for readers alone, and optional everywhere
OPTIONAL: list[KeyPath] = [
    ("program", "description"),
    ("program", "public_total"),
    ("program", "agency"),
    ("population", "population_size", "kind"),
    ("readings",),
    ("population", "most_records_per_unit"),
    ("population", "one_record_per_unit"),
    ("population", "household_size"),
    ("population", "source"),
    ("population", "attributes", "eligible"),  # named by `where`, so it is missed there
    ("workload", 0, "by"),
    ("workload", 0, "where"),
    ("workload", 0, "where", "eligible"),
    ("workload", 0, "loss"),
    ("preferences", "relative_privacy_weight"),
    ("limits",),
    ("limits", "largest_epsilon"),
]
MISSED_ELSEWHERE: dict[KeyPath, tuple[type[Refusal], str]] = {  # where the file speaks of what is not there
    ("population", "attributes", "district"): (InvalidDomain, "workload[0].by[0]"),
    ("population", "attributes", "district", "codes"): (InvalidValue, "population.attributes.district"),
    ("readings", 0, "times"): (MissingKey, "readings[0].value"),
    ("preferences", "price_of_squared_misallocation"): (IncompatibleUnits, "workload[0].consequence"),
}
WRONG_FOR_EVERY_KEY = {
    "true": True,
    "empty text": "",
    "minus one": -1,
    "not a number": math.nan,
    "infinity": math.inf,
    "date": datetime.date(2020, 1, 1),
    "nested lists": [[[]]],
    "stray table": {"stray": {"key": 1}},
}


def key_paths(value: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key of the program, tables and values; positions in lists are passed through."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(key, str):
            yield (*path, key)
        yield from key_paths(item, (*path, key))


def value_at(content: Any, path: KeyPath) -> Any:
    for part in path:
        content = content[part]
    return content


PATHS = list(key_paths(CONTENT))
TABLES: list[KeyPath] = [(), ("workload", 0), *(path for path in PATHS if isinstance(value_at(CONTENT, path), dict))]


def name_of(path: KeyPath) -> str:
    return ".".join(map(str, path)) or "root"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "districts.csv").write_text("district\n1\n2\n3\n", encoding="utf-8")
    return tmp_path


def refusal(folder: Path, content: Any) -> Refusal:
    path = folder / "program.toml"
    path.write_text(content if isinstance(content, str) else tomlkit.dumps(content), encoding="utf-8")
    with pytest.raises(Refusal) as caught:
        load(path).plan()
    place = caught.value.where
    assert place is not None
    assert place.file == str(path)
    assert place.line is not None
    assert place.key
    assert caught.value.why
    assert caught.value.instead
    assert "Traceback" not in str(caught.value)
    assert caught.value.__cause__ is None
    return caught.value


@pytest.mark.parametrize("table", TABLES, ids=name_of)
def test_unknown_keys_at_every_level(folder: Path, table: KeyPath) -> None:
    content = copy.deepcopy(CONTENT)
    value_at(content, table)["colour"] = {"value": 1}
    found = refusal(folder, content)
    if table[-1:] in (("attributes",), ("where",)):  # names are free here; what they name is not
        assert isinstance(found, InvalidValue | InvalidDomain | UnknownKey)
    else:
        assert isinstance(found, UnknownKey)
    assert found.where is not None
    assert found.where.key is not None
    assert "colour" in found.where.key


@pytest.mark.parametrize("path", [path for path in PATHS if path not in OPTIONAL and path[-1] not in TOLD], ids=name_of)
def test_missing_keys(folder: Path, path: KeyPath) -> None:
    content = copy.deepcopy(CONTENT)
    del value_at(content, path[:-1])[path[-1]]
    found = refusal(folder, content)
    if path in MISSED_ELSEWHERE:
        kind, key = MISSED_ELSEWHERE[path]
        assert isinstance(found, kind)
    else:
        assert isinstance(found, MissingKey | InvalidValue | IncompatibleUnits)
        key = re.sub(r"\.(\d+)", r"[\1]", name_of(path))
    assert found.where is not None
    assert str(found.where.key).startswith(key.removesuffix(".time_base"))  # the amount whose time is not stated


@pytest.mark.parametrize("path", OPTIONAL, ids=name_of)
def test_keys_that_may_be_left_out(folder: Path, path: KeyPath) -> None:
    content = copy.deepcopy(CONTENT)
    del value_at(content, path[:-1])[path[-1]]
    if path[-1] == "eligible":
        del content["workload"][0]["where"]
    program = folder / "program.toml"
    program.write_text(tomlkit.dumps(content), encoding="utf-8")
    assert load(program).plan().choice.epsilon > 0


@pytest.mark.parametrize("path", [path for path in PATHS if not isinstance(path[-1], int)], ids=name_of)
def test_misspelled_keys(folder: Path, path: KeyPath) -> None:
    content = copy.deepcopy(CONTENT)
    table = value_at(content, path[:-1])
    table[f"{path[-1]}x"] = table.pop(path[-1])
    if path[-2:-1] in (("attributes",), ("where",)):
        assert isinstance(refusal(folder, content), InvalidDomain)
    else:
        assert f"did you mean '{path[-1]}'?" in refusal(folder, content).instead


@pytest.mark.parametrize("path", PATHS, ids=name_of)
@pytest.mark.parametrize("wrong", WRONG_FOR_EVERY_KEY.values(), ids=WRONG_FOR_EVERY_KEY)
def test_values_that_no_key_takes(folder: Path, path: KeyPath, wrong: Any) -> None:
    content = copy.deepcopy(CONTENT)
    value_at(content, path[:-1])[path[-1]] = wrong
    found = refusal(folder, content)
    assert found.where is not None
    assert str(found.where.key).startswith(str(path[0]))


@pytest.mark.parametrize(
    ("old", "new", "kind", "key"),
    [
        ("[program]", "colour = 1\n[program]", UnknownKey, "colour"),
        (
            'unit = "child", source = "CCD 2014-15"',
            'source = "CCD 2014-15"',
            MissingKey,
            "population.population_size.unit",
        ),
        (', source = "implicit in the paper"', "", MissingKey, "preferences.price_of_squared_misallocation.source"),
        ("price_of_squared", "# price_of_squared", IncompatibleUnits, "workload[0].consequence"),
        ('by          = ["district"]', 'by = ["distrikt"]', InvalidDomain, "workload[0].by[0]"),
        ("value = 1400", "value = -1400", InvalidValue, "preferences.mean_disclosure_cost"),
        ("largest_epsilon = 10", "largest_epsilon = 0", InvalidValue, "limits.largest_epsilon"),
        ("value = 1400", "value = nan", InvalidValue, "preferences.mean_disclosure_cost.value"),
        (
            '["no", "yes"]',
            '["no", "yes"]\nattributes.a = { from = 0, to = 999999 }\nattributes.b = { from = 1, to = 1000000 }',
            TooLarge,
            "workload[0]",
        ),
    ],
)
def test_the_cases_that_the_agency_named(folder: Path, old: str, new: str, kind: type[Refusal], key: str) -> None:
    text = TEXT.replace(old, new, 1)
    if kind is TooLarge:
        text = text.replace('["district"]', '["a", "b"]')
    found = refusal(folder, text)
    assert type(found) is kind
    assert found.where is not None
    assert found.where.key == key


def test_an_empty_workload(folder: Path) -> None:
    assert type(refusal(folder, {**CONTENT, "workload": []})) is InvalidWorkload
    assert type(refusal(folder, {key: CONTENT[key] for key in CONTENT if key != "workload"})) is MissingKey


VALUES = st.recursive(
    st.one_of(
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(
            ["district", "eligible", "yes", "USD per child", "linear", "best", "posterior", 0.5, 1, 10**40]
        ),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "unit", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_value_anywhere_is_planned_or_refused(folder: Path, data: st.DataObject) -> None:
    content = copy.deepcopy(CONTENT)
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(key_paths(content))))
        value_at(content, path[:-1])[path[-1]] = data.draw(VALUES)
    survives(folder, tomlkit.dumps(content))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_edit_of_the_text_is_planned_or_refused(folder: Path, data: st.DataObject) -> None:
    text = TEXT
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 12)))
        text = text[:start] + data.draw(st.text(alphabet='abe019.-_="[]{}#,\n \u00e9\0', max_size=4)) + text[end:]
    survives(folder, text)


def survives(folder: Path, text: str) -> None:
    path = folder / "program.toml"
    path.write_text(text, encoding="utf-8")
    try:
        plan = load(path).plan()
    except Refusal as found:
        place = found.where
        if place is None or not place.file or (place.line is None and not isinstance(found, InvalidFile)):
            raise AssertionError("a refusal without its place") from found
    else:
        assert plan.digest
