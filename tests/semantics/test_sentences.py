"""Numbers in sentences: readable, and never rounded the unsafe way where a bound is stated."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.population import Invariant, Neighbors, PrivacyLoss, Protection
from dualmandate.semantics import Belief, belief_sentence, chance, odds_bound, rounded_up, sentences


def test_the_sentence_for_title_i() -> None:
    said = belief_sentence(odds_bound(PrivacyLoss.chosen(2.527644)).belief(0.01))
    assert said.startswith("someone who thought it 1 in 100 likely may come to think it at most 11.23 in 100 likely")


@pytest.mark.parametrize(
    ("probability", "said"),
    [
        (0.112298, "11 in 100"),
        (0.0, "0 in 100"),
        (1.0, "100 in 100"),
        (0.001, "1 in 1,000"),
        (0.9996, "9,996 in 10,000"),
        (1e-12, "0 in 1,000,000,000"),
    ],
)
def test_chances_take_the_smallest_unit_that_shows_them(probability: float, said: str) -> None:
    assert chance(probability) == said


@given(value=st.floats(1e-7, 1e12), digits=st.integers(1, 8))
def test_losses_and_factors_never_shrink(value: float, digits: int) -> None:
    said = Fraction(rounded_up(value, digits).replace(",", ""))
    written = Fraction(repr(value))
    assert written <= said <= written * (1 + Fraction(10) ** (1 - digits))


@given(highest=st.floats(0.0, 1.0))
def test_the_bound_that_is_printed_is_never_below_the_bound(highest: float) -> None:
    said = belief_sentence(Belief(0.5, 0.0, highest))
    found = re.search(r"at most ([\d,.]+) in ([\d,]+) likely", said)
    assert found is not None
    exact, unit = (Fraction(text.replace(",", "")) for text in found.groups())
    written = Fraction(repr(highest))
    assert written <= exact / unit <= written + Fraction(1, 100) / unit


def test_sentences_name_the_unit_and_what_each_relation_leaves_open() -> None:
    adding = sentences(PrivacyLoss.pure(1), Protection(unit="child"))
    assert adding[0].startswith("Whether a given child is in the file with a given record, or not in it")
    assert "factor of at most 2.719" in adding[0]  # e = 2.71828…, up
    assert "factor of at most 7.390" in adding[1]  # e² = 7.38905…, up
    assert "left out" in adding[2]
    assert "finds at most 13.6 in 100 of those it should" in adding[3]  # .05·e = .135914
    replacing = sentences(PrivacyLoss.pure(1), Protection(unit="firm", neighbors=Neighbors.REPLACE_ONE))
    assert "is not protected" in replacing[0]
    assert "factor of at most 2.719" in replacing[1]
    assert "another one" in replacing[2]


def test_sentences_with_a_failure_probability_admit_exceptions() -> None:
    loss = PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 10**10))
    said = sentences(loss, Protection())
    assert "except with probability at most 0.00001)" in said[0]
    concentrated = sentences(PrivacyLoss.concentrated("0.5"), Protection(), failure_probability=1e-10)
    assert "except with probability" in concentrated[1]
    # e = 2.71828…, up: how often a conclusion is drawn is bounded with a δ, the odds of any two statements are not.
    assert said[2].endswith("the chance of concluding it would differ by a factor of at most 2.719 and by 1e-10.")


def test_records_that_change_together_multiply_the_loss_in_every_sentence() -> None:
    """Two records under pure ε = 1: e² for two records, e⁴ for one's own, 5 in 100 times e² for a test."""
    totals = (Invariant("by state", by=("state",)), Invariant("by age", by=("age",)))
    crossing = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=totals, records_changing_together=2)
    said = sentences(PrivacyLoss.pure(1), crossing)
    assert "factor of at most 7.390" in said[1]
    assert "factor of at most 54.60" in said[2]
    assert "at most 36.95 in 100" in said[3]
