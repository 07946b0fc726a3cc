"""The printed guarantee."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import pytest

from dualmandate.errors import InvalidLoss
from dualmandate.population import Invariant, Neighbors, PrivacyLoss, Protection
from dualmandate.population.loss import epsilon_at
from dualmandate.semantics import guarantee


def test_title_i_guarantee_says_every_part() -> None:
    known = Protection(unit="child", one_record_source="the register of pupils, 2015")
    printed = guarantee(known, PrivacyLoss.chosen(2.527644), 4)
    assert [group.loss.exact() for group in printed.losses if group.loss] == ["6319/2500", "6319/1250", "6319/625"]
    text = printed.words()
    for part in (
        "Every child, through the one record that is or could have been in the file.",
        "One record a child is stated, not checked: the register of pupils, 2015.",
        "add or remove one child's record",
        "one child: epsilon = 2.5276",
        "two, changing together: epsilon = 5.0552",
        "a household of 4, changing together: epsilon = 10.1104",
        "someone who thought it 1 in 100 likely may come to think it at most 11.23 in 100 likely",
        "ChaCha20",
    ):
        assert part in text
    document = printed.document()
    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_replace_one_and_invariants_say_what_they_do_not_protect() -> None:
    protection = Protection(
        unit="person",
        neighbors=Neighbors.REPLACE_ONE,
        invariants=(Invariant("people by state", by=("state",), where=(("age", ("18", "19")),)),),
    )
    printed = guarantee(protection, PrivacyLoss.pure(1), 3)
    assert "within the groups whose totals are published exactly" in printed.indistinguishable
    assert any("whether a given person is in the file" in line for line in printed.not_protected)
    exact = next(line for line in printed.not_protected if "people by state" in line)
    assert "with age 18 or 19 for each state is published exactly" in exact
    assert len(guarantee(Protection(), PrivacyLoss.pure(1)).not_protected) == len(printed.not_protected) - 2


def test_records_that_must_change_together_multiply_every_loss() -> None:
    crossing = Protection(
        neighbors=Neighbors.REPLACE_ONE,
        invariants=(Invariant("by state", by=("state",)), Invariant("by age", by=("age",))),
        records_changing_together=2,
    )
    pure = guarantee(crossing, PrivacyLoss.pure(1), 3)
    assert [group.loss and group.loss.amount for group in pure.losses] == [2, 4, 6]
    rho = guarantee(crossing, PrivacyLoss.concentrated(1), 3)
    assert [group.loss and group.loss.amount for group in rho.losses] == [4, 16, 36]
    assert "2 records change together" in pure.indistinguishable
    assert "The guarantee is conditional on this number" in pure.indistinguishable
    shown = guarantee(replace(crossing, records_established=True), PrivacyLoss.pure(1), 3)
    assert "conditional" not in shown.indistinguishable
    assert "link all files with the same exact totals" in shown.indistinguishable


def test_without_an_identifier_a_record_is_protected_and_not_a_unit() -> None:
    printed = guarantee(Protection(unit="child"), PrivacyLoss.pure(1))
    assert printed.protected.startswith("Every record, and not every child")
    assert printed.losses[0].label == "one record of a child"
    assert any("several records in the file" in line for line in printed.not_protected)
    for known in (Protection(unit="child", identifier="number"), Protection(unit="child", one_record_source="census")):
        printed = guarantee(known, PrivacyLoss.pure(1))
        assert printed.protected.startswith("Every child, through the one record")
        assert printed.losses[0].label == "one child"
        assert not any("several records in the file" in line for line in printed.not_protected)


def test_several_records_a_unit_are_named() -> None:
    printed = guarantee(Protection(unit="worker", most_records_per_unit=3, identifier="ssn"), PrivacyLoss.pure(1))
    assert "at most 3, found by 'ssn'" in printed.protected
    assert "up to 3 records" in printed.indistinguishable
    assert len(printed.losses) == 2


def test_concentrated_loss_is_also_reported_in_epsilon_where_a_failure_probability_is_stated() -> None:
    loss = PrivacyLoss.concentrated(Fraction(542, 339) ** 2)
    printed = guarantee(Protection(), loss, failure_probability=1e-10)
    assert epsilon_at(float(loss.amount), 1e-10) == pytest.approx(17.143, abs=1e-3)
    assert "(epsilon = 17.14" in printed.losses[0].words
    silent = guarantee(Protection(), loss)
    assert "none was stated" in silent.beliefs[0]


def test_failure_probability_of_a_group_grows_until_nothing_is_left() -> None:
    loss = PrivacyLoss(Fraction(1), failure_probability=Fraction(1, 100))
    printed = guarantee(Protection(), loss, 8)
    assert [group.loss is None for group in printed.losses] == [False, False, True]
    two = printed.losses[1].loss
    assert two is not None
    assert float(two.failure_probability) == pytest.approx(0.01 * (1 + 2.718281828459045))
    assert "nothing is guaranteed" in printed.losses[2].words


def test_an_empty_household_is_refused() -> None:
    with pytest.raises(InvalidLoss, match="household of 0"):
        guarantee(Protection(), PrivacyLoss.pure(1), 0)
