from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidDomain, TooLarge
from dualmandate.population import Attribute, GridLevels


def test_categories_and_ordered_levels() -> None:
    sex = Attribute.categories("sex", ["f", "m"])
    assert (sex.size, sex.ordered, sex.is_numeric) == (2, False, False)
    assert sex.position("m") == 1
    assert Attribute.ordered_levels("age", map(str, range(5))).ordered
    assert Attribute.categories("code", (1, 2)).levels == ("1", "2")  # type: ignore[arg-type]


def test_a_missing_answer_is_the_last_level() -> None:
    assert Attribute.categories("sex", ["f", "m"], missing="unknown").levels == ("f", "m", "unknown")
    # named among the values, it moves to the end
    assert Attribute.categories("sex", ["?", "f", "m"], missing="?").levels == ("f", "m", "?")
    assert Attribute.binned("age", [0, 18], missing="none").levels == ("[0, 18]", "none")
    wage = Attribute.numbers("wage", 1, 3, missing="none")
    assert list(wage.levels) == ["1", "2", "3", "none"]
    assert wage.grid_values.tolist() == [1, 2, 3, 0]
    assert (wage.position("none"), wage.position("3")) == (3, 2)
    assert wage.levels[-1] == "none"


def test_bins_are_half_open_but_for_the_last() -> None:
    bins = Attribute.binned("age", [0, 18, 65, 115])
    assert bins.levels == ("[0, 18)", "[18, 65)", "[65, 115]")
    assert bins.ordered
    assert Attribute.binned("rate", [0.1, "0.25", Fraction(1, 3)]).levels == ("[0.1, 0.25)", "[0.25, 1/3]")


def test_numbers_lie_on_a_grid() -> None:
    wage = Attribute.numbers("wage", "-0.5", 1, 0.25)
    assert list(wage.levels) == ["-0.5", "-0.25", "0", "0.25", "0.5", "0.75", "1"]
    assert wage.grid_values.tolist() == [-2, -1, 0, 1, 2, 3, 4]
    assert wage.position("0.50") == 4
    assert wage.levels[2:4] == ("0", "0.25")
    with pytest.raises(IndexError):
        wage.levels[7]


def test_ten_million_levels_cost_nothing() -> None:
    income = Attribute.numbers("income", 0, 10**7)
    assert income.size == 10**7 + 1
    assert income.position("9999999") == 9_999_999
    assert isinstance(income.levels, GridLevels)


@given(
    lower=st.fractions(-50, 50, max_denominator=12),
    grid=st.fractions(Fraction(1, 12), 3, max_denominator=12),
    index=st.integers(0, 19),
)
@settings(max_examples=80, deadline=None)
def test_every_label_of_a_grid_finds_its_level(lower: Fraction, grid: Fraction, index: int) -> None:
    levels = GridLevels(lower, grid, 20)
    assert levels.position(levels[index]) == index


@pytest.mark.parametrize("level", ["1/0", "1e999999999", "nan", "inf", "", "x", "0.5", "-1", "11", "1_0"])
def test_what_is_not_on_the_grid_is_refused_at_once(level: str) -> None:
    with pytest.raises(InvalidDomain, match="is not a level"):
        Attribute.numbers("wage", 0, 10).position(level)


def test_an_unknown_level_is_refused_with_the_nearest_spelling() -> None:
    with pytest.raises(InvalidDomain) as refusal:
        Attribute.categories("state", ["Alabama", "Alaska"]).position("Alabma")
    assert refusal.value.instead == "did you mean 'Alabama'?"


@pytest.mark.parametrize(
    ("attribute", "words"),
    [
        (lambda: Attribute.categories("", ["a"]), "no name"),
        (lambda: Attribute.categories("x", []), "no levels"),
        (lambda: Attribute.categories("x", ["a", "b", "a"]), "'a' twice"),
        (lambda: Attribute.categories("x", "fm"), "one word 'fm'"),
        (lambda: Attribute.binned("x", [1]), "do not increase"),
        (lambda: Attribute.binned("x", [1, 1]), "do not increase"),
        (lambda: Attribute.binned("x", [0, float("nan")]), "'nan' among the numbers"),
        (lambda: Attribute.numbers("x", 3, 3), "cannot be laid out"),
        (lambda: Attribute.numbers("x", 0, 3, 0), "cannot be laid out"),
        (lambda: Attribute.numbers("x", 0, 10**30), "cannot be laid out"),
        (lambda: Attribute.numbers("x", 0, 1, "0.3"), "miss its grid"),
        (lambda: Attribute.numbers("x", 0, float("inf")), "'inf' among the numbers"),
        (lambda: Attribute.numbers("x", 0, 5, missing="3"), "also one of its numbers"),
        (lambda: Attribute.categories("x", ["a"]).grid_values, "no numbers to sum"),
    ],
)
def test_what_cannot_be_recorded_is_refused(attribute: object, words: str) -> None:
    assert callable(attribute)
    with pytest.raises(InvalidDomain) as refusal:
        attribute()
    assert words in refusal.value.what
    assert refusal.value.why
    assert refusal.value.instead


def test_numbers_that_cannot_be_listed_are_refused() -> None:
    with pytest.raises(TooLarge):
        _ = Attribute.numbers("x", 0, 10**12).grid_values
    with pytest.raises(TooLarge):
        _ = Attribute.numbers("x", 2**70, 2**70 + 1).grid_values
