"""Persons from counts, means and medians: the seven-person block of ACM Queue 2018."""

from __future__ import annotations

import dataclasses
from decimal import Decimal
from itertools import combinations_with_replacement, product
from statistics import mean, median

import pytest

from dualmandate.audit.reconstruction.persons import Implication, Statistic, Variables, reconstruct_persons
from dualmandate.errors import InvalidTables, TooLarge

BLOCK = Variables(
    "age",
    0,
    125,
    {"sex": ("F", "M"), "race": ("B", "W"), "marital": ("S", "M")},
    (Implication({"marital": "M"}, 15),),
)


def statistic(name: str, count: int, median: str, mean: str, **group: str) -> Statistic:
    return Statistic(name, group, count, Decimal(median), Decimal(mean))


PUBLISHED = (
    statistic("1A", 7, "30", "38.0"),
    statistic("2A", 4, "30", "33.5", sex="F"),
    statistic("2B", 3, "30", "44.0", sex="M"),
    statistic("2C", 4, "51", "48.5", race="B"),
    statistic("2D", 3, "24", "24.0", race="W"),
    statistic("3B", 4, "51", "54.0", marital="M"),
    statistic("4A", 3, "36", "36.7", sex="F", race="B"),
)
TRUTH = (
    (8, ("F", "B", "S")),
    (18, ("M", "W", "S")),
    (24, ("F", "W", "S")),
    (30, ("M", "W", "M")),
    (36, ("F", "B", "M")),
    (66, ("F", "B", "M")),
    (84, ("M", "B", "M")),
)


@pytest.mark.parametrize(("dropped", "solutions"), [((), 1), (("4A",), 2), (("2A", "2B"), 8), (("2A",), 1)])
def test_the_block_of_the_article(dropped: tuple[str, ...], solutions: int) -> None:
    found = reconstruct_persons(BLOCK, [each for each in PUBLISHED if each.name not in dropped])
    assert found.complete
    assert len(found.solutions) == solutions
    assert TRUTH in found.solutions
    assert found.unique == (solutions == 1)
    if dropped == ("2A", "2B"):
        assert len(found.common) == 4  # as measured for the article's block


def test_the_second_solution_without_4a() -> None:
    found = reconstruct_persons(BLOCK, PUBLISHED[:-1])
    other = next(each for each in found.solutions if each != TRUTH)
    assert other[0] == (2, ("F", "B", "S"))
    assert other[-1] == (90, ("M", "B", "M"))


def test_every_list_of_a_small_world_is_found() -> None:
    small = Variables("age", 0, 4, {"sex": ("F", "M")})
    people = list(product(range(5), small.kinds))
    truth = ((1, ("F",)), (2, ("M",)), (4, ("F",)), (4, ("M",)))
    ages = [age for age, _ in truth]
    women = [age for age, (sex,) in truth if sex == "F"]
    published = [
        Statistic("all", {}, 4, Decimal(str(median(ages))), Decimal(f"{mean(ages):.1f}")),
        Statistic("women", {"sex": "F"}, 2, Decimal(str(median(women)))),
    ]

    def fits(persons: tuple[tuple[int, tuple[str, ...]], ...]) -> bool:
        own = [age for age, (sex,) in persons if sex == "F"]
        every = [age for age, _ in persons]
        return (
            len(own) == 2
            and median(own) == median(women)
            and median(every) == median(ages)
            and abs(mean(every) - float(published[0].mean or 0)) <= 0.05
        )

    expected = [each for each in combinations_with_replacement(people, 4) if fits(each)]
    found = reconstruct_persons(small, published)
    assert found.complete
    assert len(expected) > 1
    assert set(found.solutions) == set(expected)


def test_rounded_means_leave_room() -> None:
    world = Variables("age", 0, 30, {})
    exact = reconstruct_persons(world, [Statistic("all", {}, 2, mean=Decimal("3.5"))])
    assert {tuple(age for age, _ in each) for each in exact.solutions} == {(a, 7 - a) for a in range(4)}
    rounded = reconstruct_persons(world, [Statistic("all", {}, 2, mean=Decimal("4"))])
    sums = {sum(age for age, _ in each) for each in rounded.solutions}
    assert sums == {7, 8, 9}  # 3.5 and 4.5 may both be printed as 4


def test_more_solutions_than_asked_for() -> None:
    found = reconstruct_persons(Variables("age", 0, 9, {}), [Statistic("all", {}, 3)], most_solutions=5)
    assert len(found.solutions) == 5
    assert not found.complete
    assert not found.unique


def test_contradictions_are_named() -> None:
    wrong = [dataclasses.replace(each, count=5) if each.name == "2A" else each for each in PUBLISHED]
    with pytest.raises(InvalidTables, match="contradict each other") as refusal:
        reconstruct_persons(BLOCK, wrong)
    named = refusal.value.what.split(": ")[1].split(", ")
    assert "2A" in named
    assert len(named) <= 3


@pytest.mark.parametrize(
    ("statistics", "error"),
    [
        ([Statistic("women", {"sex": "F"}, 1)], InvalidTables),
        ([Statistic("all", {}, 2), Statistic("again", {}, 3)], InvalidTables),
        ([Statistic("all", {}, 0)], TooLarge),
        ([Statistic("all", {}, 31)], TooLarge),
        ([Statistic("all", {}, 2), Statistic("x", {"sex": "?"}, 1)], InvalidTables),
        ([Statistic("all", {}, 2), Statistic("x", {"sex": "F"}, None, Decimal(3))], InvalidTables),
        ([Statistic("all", {}, 2, Decimal("3.3"))], InvalidTables),
    ],
)
def test_statistics_that_cannot_be_used(statistics: list[Statistic], error: type[Exception]) -> None:
    with pytest.raises(error):
        reconstruct_persons(BLOCK, statistics)


def test_variables_that_describe_nobody() -> None:
    with pytest.raises(InvalidTables):
        Variables("age", 5, 4, {})
    with pytest.raises(InvalidTables):
        Variables("age", 0, 4, {"sex": ()})
    with pytest.raises(TooLarge):
        Variables("age", 0, 4, {"code": tuple(map(str, range(300)))})
