"""Preferences in a file of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate.errors import IncompatibleUnits, InvalidFile, InvalidValue, Refusal
from dualmandate.planning.program import load

SOURCE = "DOJ 2015, rounded up; conditional on being a victim"
COST = f'{{ value = 1400, unit = "USD per child per epsilon", source = "{SOURCE}" }}'
OWN = f"""\
[preferences]
information_utility = "linear"
mean_disclosure_cost = {COST}
relative_privacy_weight = 1
"""


def referring(title_i: Path, *, name: str = "preferences.toml", besides: str = "") -> Path:
    """The program with its preferences taken out, and a reference to a file in their place."""
    text = title_i.read_text(encoding="utf-8")
    start, end = text.index("[preferences]"), text.index("[limits]")
    price = (
        '\nprice_of_squared_misallocation = { value = 1.0, unit = "USD per USD^2", source = "implicit in the paper" }'
    )
    title_i.write_text(
        f'{text[:start]}[preferences]\nfrom = "{name}"{price}\n{besides}\n{text[end:]}', encoding="utf-8"
    )
    return title_i


def test_a_program_that_refers_is_the_program_that_states(title_i: Path) -> None:
    stated = load(title_i)
    (title_i.parent / "preferences.toml").write_text(OWN, encoding="utf-8")
    referred = load(referring(title_i))
    assert referred.welfare == stated.welfare
    assert referred.plan().digest == stated.plan().digest


def test_what_the_file_says_is_signed(title_i: Path) -> None:
    (title_i.parent / "preferences.toml").write_text(OWN, encoding="utf-8")
    before = load(referring(title_i)).plan()
    (title_i.parent / "preferences.toml").write_text(OWN.replace("1400", "1500"), encoding="utf-8")
    after = load(title_i).plan()
    assert after.digest != before.digest
    assert after.choice.epsilon < before.choice.epsilon


def test_standard_errors_and_ranges_are_carried(title_i: Path) -> None:
    uncertain = OWN.replace("value = 1400,", "value = 1400, standard_error = 30, least = 61, largest = 2000,")
    (title_i.parent / "preferences.toml").write_text(uncertain, encoding="utf-8")
    number = load(referring(title_i)).file.preferences.mean_disclosure_cost
    assert number is not None
    assert (float(number.standard_error or 0), float(number.least or 0), float(number.largest or 0)) == (30, 61, 2000)


@pytest.mark.parametrize(
    ("content", "besides", "refusal", "key", "says"),
    [
        (OWN, "relative_privacy_weight = 2", InvalidValue, "preferences.relative_privacy_weight", "stated here and in"),
        (OWN + "\n[limits]\n", "", InvalidValue, "preferences.from", "one table"),
        ('[preferences]\nfrom = "x.toml"\n', "", InvalidValue, "preferences.from", "refers to no other"),
        ("x", "", InvalidFile, "preferences.from", "not TOML"),
        (None, "", InvalidFile, "preferences.from", "no such file"),
        (
            OWN.replace(', unit = "USD per child per epsilon"', ""),
            "",
            Refusal,
            "preferences.mean_disclosure_cost.unit",
            "",
        ),
        (
            OWN.replace("value = 1400,", "value = 1400, standard_error = -1,"),
            "",
            InvalidValue,
            "preferences.mean_disclosure_cost.standard_error",
            "larger than 0",
        ),
        (
            OWN.replace("value = 1400,", "value = 1400, least = 2000, largest = 3000,"),
            "",
            InvalidValue,
            "preferences.mean_disclosure_cost",
            "lies between least",
        ),
    ],
)
def test_what_cannot_be_referred_to(
    title_i: Path, content: str | None, besides: str, refusal: type[Refusal], key: str, says: str
) -> None:
    if content is not None:
        (title_i.parent / "preferences.toml").write_text(content, encoding="utf-8")
    with pytest.raises(refusal) as caught:
        load(referring(title_i, besides=besides))
    assert caught.value.where is not None
    assert caught.value.where.key == key
    assert caught.value.where.line is not None
    assert says in str(caught.value)


def test_a_refusal_names_the_file_that_the_key_stands_in(title_i: Path) -> None:
    (title_i.parent / "preferences.toml").write_text(
        OWN.replace('"USD per child per epsilon"', '"USD per house"'), encoding="utf-8"
    )
    with pytest.raises(IncompatibleUnits) as caught:
        load(referring(title_i))
    where = caught.value.where
    assert where is not None
    assert where.file == str(title_i.parent / "preferences.toml")
    assert (where.line, where.key) == (3, "preferences.mean_disclosure_cost")
