"""Units: which words there are, which can be added, and what is said when they cannot."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import IncompatibleUnits, InvalidValue, MissingKey, Refusal
from dualmandate.population import Units, counted, plural, singular

CHILD = Units("child")


@pytest.mark.parametrize(
    ("unit", "same"),
    [
        ("USD^2 per child^2", "USD²/child²"),
        ("USD^2 per child squared", "USD**2/children**2"),
        ("USD per child per epsilon", "dollars per children per ε"),
        ("USD per USD^2", "1/USD"),
        ("USD per child per disclosure", "usd per Child"),
        ("USD per USD", "dimensionless"),
        ("child^2", "child child"),
    ],
)
def test_what_can_be_added(unit: str, same: str) -> None:
    assert CHILD.agree(unit, same)
    assert CHILD.conversion(unit, same) == 1


@pytest.mark.parametrize(
    ("unit", "other"),
    [
        ("USD", "USD^2"),
        ("USD per child", "USD per child per epsilon"),
        ("USD per child per epsilon", "USD per child per rho"),
        ("epsilon", "rho"),
        ("child", "USD"),
        ("USD per child", "USD per USD"),
    ],
)
def test_dimensions_of_their_own(unit: str, other: str) -> None:
    assert not CHILD.agree(unit, other)
    with pytest.raises(IncompatibleUnits) as refusal:
        CHILD.conversion(unit, other)
    assert unit in refusal.value.what
    assert other in refusal.value.what


def test_squared_dollars_and_dollars() -> None:
    with pytest.raises(IncompatibleUnits) as refusal:
        CHILD.conversion("USD^2 per child^2", "USD per child^2")
    assert refusal.value.why == "squared USD cannot be added to USD; state price_of_squared_misallocation"


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("child", "children"),
        ("person", "people"),
        ("household", "households"),
        ("establishment", "establishments"),
        ("company", "companies"),
        ("business", "businesses"),
        ("church", "churches"),
        ("school child", "school children"),
        ("SUV", "SUV"),
        ("survey", "surveys"),
    ],
)
def test_one_and_several(one: str, many: str) -> None:
    assert (singular(many), plural(one), plural(many), singular(one)) == (one, many, many, one)
    units = Units(many)
    assert (units.singular, units.plural) == (one, many)
    assert units.agree(f"USD per {one}", f"USD per {many}")


def test_counted_and_with_an_article() -> None:
    assert [counted(number, "person") for number in (1, 2, 1e12, 0.5)] == [
        "1 person",
        "2 people",
        "1,000,000,000,000 people",
        "0.5 people",
    ]


def test_persons_are_people() -> None:
    assert Units("person").agree("USD per persons", "USD per people")


def test_phrases_are_one_unit() -> None:
    units = Units("school child")
    assert units.agree("USD per school child squared", "USD per school children^2")
    assert not units.agree("USD per school child", "USD")


def test_other_units_are_declared_first() -> None:
    with pytest.raises(IncompatibleUnits, match="EUR"):
        CHILD.conversion("EUR per child", "USD per child")
    declared = Units("child", others=("bed", "hour"))
    assert declared.agree("bed^2 per hours", "beds bed/hour")
    with pytest.raises(IncompatibleUnits):
        declared.conversion("bed", "USD")


def test_one_currency() -> None:
    euros = Units("child", currency="EUR")
    assert euros.agree("EUR per child per epsilon", "eur / (children * ε)")
    for unit, other in (("USD per child", "USD"), ("dollars", "USD"), ("JPY^2", "JPY")):
        with pytest.raises(IncompatibleUnits, match=f"is in {other}, and the money of this file is EUR") as refusal:
            euros.conversion(unit, "EUR")
        assert f'state currency = "{other}" once' in refusal.value.instead
    with pytest.raises(IncompatibleUnits) as mixed:
        euros.conversion("EUR^2", "EUR")
    assert mixed.value.why.startswith("squared EUR cannot be added to EUR")
    for word in ("EUR", "eur", "USD", "JPY"):
        with pytest.raises(IncompatibleUnits, match="cannot be a unit"):
            Units("child", (word,), "EUR")
    assert Units("child", ("cup",), "EUR").agree("EUR per cup", "EUR/cups")  # a word, though CUP is a currency
    for code, near in (("EURO", "EUR"), ("eur", "EUR"), ("XYZ", "USD")):
        with pytest.raises(InvalidValue, match="is no currency") as unknown:
            Units("child", currency=code)
        assert near in unknown.value.instead or code == "XYZ"


@pytest.mark.parametrize(
    ("unit", "hint"),
    [
        ("USD per child per year", "time_base"),
        ("USD^2 per squared child", "child^2"),
        ("USD per adult", "use USD, child"),
        ("1000 USD", "scale the value"),
        ("2 USD", "scale the value"),
        ("USD per child^2.5", "scale the value"),
        ("USD per child^22", "scale the value"),
        ("USD^9^9^9^9^9", "one power"),
        ("USD^9 cubed cubed cubed", "one power"),
        ("sq square cubic USD^9", "use USD, child"),
        ("USD + child", "scale the value"),
        ("((USD", "USD per child per epsilon"),
        ("USD per", "USD per child per epsilon"),
        ("USD // (child", "USD per child per epsilon"),
        ("x" * 300, "scale the value"),
    ],
)
def test_units_that_cannot_be_read(unit: str, hint: str) -> None:
    with pytest.raises(IncompatibleUnits) as refusal:
        CHILD.conversion(unit, "USD")
    assert hint in refusal.value.instead


@pytest.mark.parametrize("unit", ["", "  "])
def test_a_missing_unit(unit: str) -> None:
    with pytest.raises(MissingKey, match="no unit"):
        CHILD.conversion(unit, "USD")


@pytest.mark.parametrize("word", ["", "USD", "epsilon", "rhos", "per", "child2", "a_b", "x" * 80, "dollars", "1"])
def test_words_that_cannot_be_a_unit(word: str) -> None:
    with pytest.raises(IncompatibleUnits, match="cannot be a unit"):
        Units(word)


def test_one_word_for_two_units() -> None:
    with pytest.raises(IncompatibleUnits, match="not all different"):
        Units("child", others=("children",))


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet="USDchild per^*/()1²³ 9-.epsilonsquared_cubed\n·⁻", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(Refusal):
        assert CHILD.conversion(text, "USD per child") == 1


def test_heavy_libraries_are_loaded_late() -> None:
    code = "import sys, dualmandate.choice; print(sorted({'pint', 'scipy', 'numba'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"
