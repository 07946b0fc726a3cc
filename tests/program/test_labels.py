"""Labels of levels: where they may be written, what they are shown for, and which are refused, with their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate.errors import Refusal
from dualmandate.population.labels import LONGEST_LABEL
from dualmandate.program.program import ProgramFile, read_program

PROGRAM = """\
[program]
schema = 1
name   = "claims"
{language}

[population]
account         = "insured"
unit            = "person"
neighbors       = "add-or-remove"
population_size = {{ value = 90_000, unit = "person", source = "made up" }}

[population.attributes]
region = {{ codes = "regions.csv", missing = "NA"{region} }}
age    = {{ edges = [0, 18, 65, 1200]{age} }}
sex    = {{ levels = ["f", "m"], missing = "NA"{sex} }}
years  = {{ from = 0, to = 3{years} }}

[population.hierarchies.areas]
attribute = "region"
columns   = ["state"]
{areas}

[population.hierarchies.grown]
attribute = "age"
groups    = {{ young = "[0, 18)", others = ["[18, 65)", "[65, 1200]"] }}
{grown}

[[workload]]
name = "persons"
by   = ["state", "age"]
value_of_accuracy = {{ value = 50_000, unit = "USD per person^2", source = "made up" }}

[mechanism]
noise = "geometric"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 2, unit = "USD per person per epsilon", source = "made up" }}
"""
CODES = (
    "code,label,label_fr,state,state_label\nR1,North,Nord,A,State A\nR2,South,Sud,A,State A\nR3,East,Est,B,State B\n"
)
KEYS = ("language", "region", "age", "sex", "years", "areas", "grown")


def read(folder: Path, codes: str = CODES, **keys: str) -> ProgramFile:
    (folder / "program.toml").write_text(PROGRAM.format(**{key: keys.get(key, "") for key in KEYS}), encoding="utf-8")
    (folder / "regions.csv").write_text(codes, encoding="utf-8")
    return read_program(folder / "program.toml")


def test_labels_stand_in_code_lists_and_in_keys(tmp_path: Path) -> None:
    domain = read(
        tmp_path,
        age=', labels = ["child", "adult", "old"], labels_in = { fr = ["enfant", "adulte", "âgé"] }',
        sex=', labels = { f = "women", m = "men", NA = "not stated" }',
        years=', labels = { 3 = "3 and more" }',
        grown='labels.grown = { young = "minors", others = "of age" }\nlabels_in.fr.grown = ["mineurs", "majeurs"]',
    ).domain
    assert domain.level_labels("region") == {
        "": {"R1": "North", "R2": "South", "R3": "East"},
        "fr": {"R1": "Nord", "R2": "Sud", "R3": "Est"},
    }
    assert domain.level_labels("state") == {"": {"A": "State A", "B": "State B"}}
    assert domain.level_labels("age")["fr"]["[65, 1200]"] == "âgé"
    assert domain.level_labels("sex") == {"": {"f": "women", "m": "men", "NA": "not stated"}}
    assert domain.level_labels("years") == {"": {"3": "3 and more"}}
    assert domain.level_labels("grown") == {
        "": {"young": "minors", "others": "of age"},
        "fr": {"young": "mineurs", "others": "majeurs"},
    }


def test_bins_are_put_in_words_where_nothing_is_stated_and_codes_stay(tmp_path: Path) -> None:
    program = read(tmp_path)
    bins = ("[0, 18)", "[18, 65)", "[65, 1200]")
    assert tuple(program.domain.attribute("age").levels) == bins
    words = ("0 to under 18", "18 to under 65", "65 to 1,200")
    assert program.domain.level_labels("age") == {"": dict(zip(bins, words, strict=True))}
    assert program.domain.level_labels("sex") == {}
    assert read(tmp_path, language='language = "de"').domain.level_labels("age") == {}


def test_the_language_of_the_program_may_be_named_in_both_ways(tmp_path: Path) -> None:
    codes = CODES.replace("label,label_fr", "name,label_de")
    domain = read(tmp_path, codes, language='language = "de"', sex=', labels_in = { de = ["Frauen", "Männer"] }').domain
    assert domain.level_labels("sex") == {"": {"f": "Frauen", "m": "Männer"}}
    assert domain.level_labels("region") == {"": {"R1": "Nord", "R2": "Sud", "R3": "Est"}}


@pytest.mark.parametrize(
    ("keys", "codes", "what", "place"),
    [
        ({"sex": ', labels = { f = "women", x = "men" }'}, CODES, "'x' has a label", "attributes.sex.labels"),
        ({"sex": ', labels = { f = "women" }'}, CODES, "the level 'm' of 'sex' has no label", "attributes.sex.labels"),
        ({"sex": ', labels = ["people", "people"]'}, CODES, "the same label, 'people'", "attributes.sex.labels"),
        ({"sex": ', labels = ["women"]'}, CODES, "1 label is listed for the 3 levels", "attributes.sex.labels"),
        ({"sex": ', labels = ["women", ""]'}, CODES, "the label of 'm' of 'sex' is empty", "attributes.sex.labels"),
        ({"sex": ', labels = ["a", "b\\nc"]'}, CODES, "cannot be printed", "attributes.sex.labels"),
        (
            {"sex": f', labels = ["a", "{"b" * (LONGEST_LABEL + 1)}"]'},
            CODES,
            f"has {LONGEST_LABEL + 1} letters",
            "attributes.sex.labels",
        ),
        ({"sex": ', labels_in = { fr = ["a", "a"] }'}, CODES, "the same label", "attributes.sex.labels_in.fr"),
        (
            {"sex": ', labels = ["a", "b"], labels_in = { en = ["a", "b"] }'},
            CODES,
            "stated twice",
            "attributes.sex.labels_in.en",
        ),
        ({"years": ', labels = { 4 = "four" }'}, CODES, "'4' has a label", "attributes.years.labels"),
        ({"region": ', labels = { R1 = "Top" }'}, CODES, "here and in its code list", "attributes.region.labels"),
        ({"grown": 'labels.others = { x = "y" }'}, CODES, "no such grouping", "hierarchies.grown.labels.others"),
        ({"grown": 'labels.grown = { young = "y" }'}, CODES, "'others' of 'grown' has no label", "grown.labels.grown"),
        ({}, CODES.replace("R2,South", "R2,North"), "'R1' and 'R2' of 'region' have the same label", 3),
        ({}, CODES.replace("R2,South", "R2,"), "the label of 'R2' of 'region' is empty", 3),
        ({}, CODES.replace("R2,South,Sud,A,State A", "R2,South,Sud,A,State Z"), "both 'State A' and 'State Z'", 3),
        ({}, CODES.replace("label_fr", "label_en"), "both in the program's language", 1),
    ],
)
def test_wrong_labels_are_refused_with_their_place(
    keys: dict[str, str], codes: str, what: str, place: str | int, tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        read(tmp_path, codes, **keys)
    assert what in caught.value.what
    where = caught.value.where
    assert where is not None
    if isinstance(place, int):
        assert (Path(str(where.file)).name, where.line) == ("regions.csv", place)
    else:
        assert str(where.key).endswith(place)
        assert where.line is not None


@pytest.mark.parametrize("value", ['"women"', "[]", "{}", "[1, 2]", "{ f = 1 }"])
def test_labels_are_lists_or_tables_of_texts(value: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        read(tmp_path, sex=f", labels = {value}")
    assert "labels are texts" in caught.value.why


def test_labels_are_no_part_of_what_makes_two_domains_differ(tmp_path: Path) -> None:
    """They are words: the digest covers them with the program, and no measurement depends on them."""
    plain, labeled = read(tmp_path), read(tmp_path, sex=', labels = ["women", "men"]')
    assert plain.domain.attribute("sex") == labeled.domain.attribute("sex")
