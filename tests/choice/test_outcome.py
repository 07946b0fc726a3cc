"""The choice in words and in JSON: what a review board reads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from dualmandate.choice import (
    BoundedCost,
    Limits,
    LinearCost,
    PopulationGroup,
    SocialWelfare,
    TableValue,
    choose,
)
from dualmandate.population.wording import money
from dualmandate.report.documents.plan import ChoicePart

if TYPE_CHECKING:
    from tests.choice.conftest import PowerFrontier, TitleI


def test_the_paper_in_words(title_i: TitleI) -> None:
    assert choose(title_i.laplace(), title_i.welfare()).explain().splitlines() == [
        "The choice is epsilon = 2.5276, where accuracy is worth exactly what it costs in privacy.",
        "At the margin one more epsilon would cost USD 64.4 billion of privacy and save USD 64.4 billion of errors: "
        "the two are in balance (MRT = WTA = 3,220 squared units per epsilon).",
        "It buys 'eligible children by district' with a typical error (root mean squared) of 0.5595 children in each "
        "of 13,000 numbers, worth USD 2,502 each; they cost USD 81.39 billion in all.",
        "Society loses USD 162.8 billion of privacy and USD 81.39 billion to errors, USD 244.2 billion together.",
        "The privacy loss is borne by 46,000,000 children: USD 3,539 each, and USD 1,400 each for one more epsilon.",
        "The errors are borne by those whom the tables serve.",
    ]


def test_limits_in_words(title_i: TitleI) -> None:
    capped = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=1)).explain()
    assert "epsilon = 1, the largest epsilon allowed." in capped
    assert "society would gain by more loss, and the limit forbids it" in capped
    spent = choose(title_i.laplace(), title_i.welfare(), Limits(remaining=1)).explain()
    assert "epsilon = 1, all that the ledger has left." in spent
    floor = choose(title_i.laplace(), title_i.welfare(), Limits(floors={title_i.table: 0.2})).explain()
    assert "the least that leaves the tables fit for use: a root mean squared error of at most 0.2 children" in floor
    assert "society would gain by less loss, and fitness for use forbids it" in floor
    dollars_floor = Limits(consequence_floors={title_i.table: 1000})
    bound = choose(title_i.laplace(), title_i.welfare(), dollars_floor).explain()
    assert "a root mean squared consequence of at most USD 1,000 in" in bound


def test_other_peaks_in_words(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(BoundedCost(20_000)), Limits(largest_epsilon=10))
    assert choice.explain().splitlines()[-1] == (
        "Considered too: epsilon = 2.0925, another peak of welfare, at −USD 925.3 billion."
    )
    inside = choose(title_i.laplace(), title_i.welfare(BoundedCost(20_000)), Limits(largest_epsilon=9))
    assert "Considered too: epsilon = 9, the limit set by largest epsilon" in inside.explain()


def test_several_groups_and_tables_in_words(power_frontier: type[PowerFrontier]) -> None:
    groups = (PopulationGroup("owners", 10, LinearCost(1)), PopulationGroup("tenants", 2e6, LinearCost(2), 0.5))
    values = (TableValue("homes", 1e6, unit="household"), TableValue("rents", 1.0, unit="USD", grid=100.0))
    welfare = SocialWelfare(groups, values, protected_unit="households")
    choice = choose(power_frontier({"homes": 2.0, "rents": 18.0}, counts={"homes": 1, "rents": 9}), welfare)
    text = choice.explain()
    assert "borne by 10 households (owners)" in text
    assert "borne by 2,000,000 households (tenants)" in text
    assert "counted 0.5 times in the sum" in text
    assert "households in its one number; it costs USD" in text
    typical = money(choice.tables[1].root_mean_squared_error, "USD")
    assert f"of {typical} in each of 9 numbers; they cost USD" in text
    assert "the two are in balance." in text, "squared households and squared dollars have no common rate"
    # Households and dollars have no common error; nothing states a consequence.
    assert choice.root_mean_squared_error is None
    assert choice.root_mean_squared_consequence is None
    assert choice.tables[1].root_mean_squared_error == pytest.approx(100 * math.sqrt(2) / choice.epsilon)


def test_errors_are_pooled_over_tables_of_one_unit(power_frontier: type[PowerFrontier]) -> None:
    values = (TableValue("a", 1.0, consequence=4.0, price=0.25), TableValue("b", 1.0, unit="people"))
    welfare = SocialWelfare.uniform(1, LinearCost(1), table_values=values)
    choice = choose(power_frontier({"a": 2.0, "b": 18.0}, counts={"a": 1, "b": 9}), welfare)
    assert choice.root_mean_squared_error == pytest.approx(math.sqrt(20 / 10) / choice.epsilon)
    assert choice.root_mean_squared_consequence == pytest.approx(math.sqrt(4 * 2) / choice.epsilon)
    assert choice.accuracy == pytest.approx(-20 / choice.epsilon**2)


def test_the_document(title_i: TitleI) -> None:
    choice = choose(title_i.laplace(), title_i.welfare(), Limits(largest_epsilon=10))
    document = ChoicePart.made_of(choice, explanation=choice.explain()).as_json()
    assert document["loss"] == "6319/2500"
    assert document["bound_by"] == "preferences"
    assert [point["kind"] for point in document["local_optima"]] == ["maximum", "end"]
    named = ("accuracy", "root_mean_squared_error", "root_mean_squared_consequence", "welfare", "privacy_cost")
    more = ("data_loss", "marginal_rate_of_transformation", "willingness_to_accept", "epsilon")
    assert all(document[name] == getattr(choice, name) for name in named + more)


def test_one_person_and_very_many(power_frontier: type[PowerFrontier]) -> None:
    def borne(size: float) -> str:
        values = (TableValue("a", 1.0),)
        choice = choose(power_frontier({"a": 2.0}), SocialWelfare.uniform(size, LinearCost(1), table_values=values))
        return choice.explain()

    assert "borne by 1 person: " in borne(1)
    assert "borne by 1,000,000,000,000 people: " in borne(1e12)
