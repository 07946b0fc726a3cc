"""The old methods on the same records: what an attacker relies on is true, coarser methods do what they say."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dualmandate.audit.equations import Equations
from dualmandate.audit.methods.ways_to_publish import BASES, THRESHOLDS, Levels, Subject, Way, ways_to_publish
from dualmandate.population import Attribute, Domain
from dualmandate.workload import Tabulation, Workload

AGE = Attribute.numbers("age", 0, 5, missing="?")
DOMAIN = Domain((Attribute.categories("sex", ["F", "M"]), AGE, Attribute.categories("race", ["A", "B", "C"])))
TABLES = Workload.from_tabulations(
    DOMAIN,
    [
        Tabulation("sex by age", ("sex", "age")),
        Tabulation("age by race", ("age", "race")),
        Tabulation("race", ("race",)),
    ],
)
EQUATIONS = Equations.of_workload(TABLES)


def subject(places: int = 8) -> Subject:
    draws = np.random.default_rng(5)
    return Subject(TABLES, draws.poisson(1.0, (places, DOMAIN.size)), np.ones(DOMAIN.size, dtype=np.bool_))


@cache
def ways() -> dict[str, Way]:
    return {way.name: way for way in ways_to_publish(subject(), sensitivity=3.0, key=b"k", epsilons=(1.0,))}


def test_every_family_is_there() -> None:
    assert {way.family for way in ways().values()} == {
        "exact",
        "swapping",
        "rounding",
        "cell key",
        "suppression",
        "micro-aggregation",
        "top-coding",
        "differential privacy",
    }
    again = ways_to_publish(subject(), sensitivity=3.0, key=b"k", epsilons=(1.0,))
    assert all(np.array_equal(way.printed, ways()[way.name].printed, equal_nan=True) for way in again)
    other = {way.name: way for way in ways_to_publish(subject(), sensitivity=3.0, key=b"o", epsilons=(1.0,))}
    assert not np.array_equal(other["ε = 1"].printed, ways()["ε = 1"].printed)
    assert [way.loss is None for way in ways().values()] == [
        way.family != "differential privacy" for way in ways().values()
    ]


def test_bounds_that_a_public_rule_gives_are_true() -> None:
    exact = EQUATIONS.of(subject().truth)
    for way in ways().values():
        if way.family not in {"rounding", "cell key", "suppression", "exact"}:
            continue
        last = way.known.least.shape[1] - exact.shape[1]  # where there are two kinds of rows, the later are bounds
        least, largest = way.known.least[:, last:], way.known.largest[:, last:]
        assert (least <= exact).all(), way.name
        assert (exact <= largest).all(), way.name
        assert (way.known.scales[:, last:] == 0).all()
    rounded = ways()[f"rounded to {BASES[0]}"]
    assert (rounded.known.largest - rounded.known.least)[:, exact.shape[1] :].max() == 2 * (BASES[0] - 1)


@pytest.mark.parametrize("least", THRESHOLDS)
def test_what_is_suppressed_has_the_bounds_of_its_rule(least: int) -> None:
    exact, way = EQUATIONS.of(subject().truth), ways()[f"suppressed below {least}"]
    hidden = np.isnan(way.printed)
    primary = (exact > 0) & (exact < least)
    assert (hidden >= primary).all()
    assert (hidden > primary).any() == (least == 3)  # complementary ones, where enough is left to hide
    assert np.array_equal(way.printed[~hidden], exact[~hidden])
    assert set(way.known.least[primary]) == {1.0}
    assert set(way.known.largest[primary]) == {least - 1.0}
    assert (way.known.least[hidden & ~primary] == least).all()
    assert np.isinf(way.known.largest[hidden & ~primary]).all()


def test_swapping_keeps_how_many_live_in_a_place() -> None:
    race = slice(EQUATIONS.rows - 3, EQUATIONS.rows)
    living = subject().truth.sum(axis=1)
    for way in ways().values():
        if way.family in {"swapping", "micro-aggregation", "top-coding"}:
            assert np.array_equal(way.printed[:, race].sum(axis=1), living), way.name
        if way.family in {"micro-aggregation", "top-coding"}:  # age alone is changed
            assert np.array_equal(way.printed[:, race], ways()["exact tables"].printed[:, race])


def test_ages_are_averaged_within_a_place() -> None:
    levels = Levels((7,), 0, 6)
    records, places = np.array([0, 1, 5, 6, 3, 3, 0]), np.array([0, 0, 0, 0, 1, 1, 2])
    found = levels.averaged(records, places, 3)
    assert found.tolist() == [
        2,
        2,
        2,
        6,
        3,
        3,
        0,
    ]  # mean 2; a missing answer stays; too few are one group; one is alone
    assert levels.averaged(records, places, 2).tolist() == [2, 2, 2, 6, 3, 3, 0]


def test_the_top_has_one_level() -> None:
    levels = Levels((2, 7), 1, 6)
    records = np.array([0, 1, 2, 3, 4, 5, 7 + 5, 6, 13, 13])  # ages 0 to 5, one 5 more, three missing
    coded = levels.top_coded(records, 0.4)  # of seven ages three are at least 4: mean 14/3
    assert coded.reshape(2, 7).tolist() == [[0, 1, 2, 3, 5, 5, 6], [7, 8, 9, 10, 12, 12, 13]]
    young = levels.top_coded(np.array([0, 0, 0, 1]), 0.01)
    assert young[:7].tolist() == [0, 1, 1, 1, 1, 1, 6]
    old = levels.top_coded(np.array([5, 5, 5]), 0.01)  # one level would change nothing: the two highest at least
    assert old[:7].tolist() == [0, 1, 2, 3, 5, 5, 6]
    assert levels.top_coded(np.array([6, 13]), 0.2).tolist() == list(range(14))  # nothing but missing answers


def test_top_coded_tables_count_the_coded_records() -> None:
    way = ways()["age top-coded, 20%"]
    assert way.counting is not None
    assert np.array_equal(way.counting.of(subject().truth), way.printed)
    assert not np.array_equal(way.printed, ways()["exact tables"].printed)


def test_no_ordered_attribute_in_any_table() -> None:
    tables = Workload.from_tabulations(DOMAIN, [Tabulation("race", ("race",)), Tabulation("sex", ("sex",))])
    plain = Subject(tables, subject().truth, np.ones(DOMAIN.size, dtype=np.bool_))
    assert plain.ordered is None
    families = {way.family for way in ways_to_publish(plain, sensitivity=2.0, key=b"k", epsilons=())}
    assert not families & {"micro-aggregation", "top-coding", "differential privacy"}
    assert subject().ordered == AGE


def test_noise_has_the_size_that_is_promised() -> None:
    race = Workload.from_tabulations(DOMAIN, [Tabulation("race", ("race",))])
    many = Subject(race, subject(4000).truth, np.ones(DOMAIN.size, dtype=np.bool_))
    (way,) = (way for way in ways_to_publish(many, sensitivity=3.0, key=b"k", epsilons=(1.5,)) if way.loss)
    error = np.abs(way.printed - Equations.of_workload(race).of(many.truth)).mean()
    assert way.promised_error == pytest.approx(error, rel=0.05)
    assert way.promised_error == pytest.approx(2 * np.exp(-0.5) / (1 - np.exp(-1.0)))  # E|X| of geometric noise at ½
