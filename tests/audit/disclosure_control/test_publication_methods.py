"""The old methods on the same records: what an attacker relies on is true, coarser methods do what they say."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from dualmandate.audit.disclosure_control.methods import (
    BASES,
    THRESHOLDS,
    Levels,
    PublicationMethod,
    Subject,
    publication_methods,
)
from dualmandate.audit.tables import Equations
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
def ways() -> dict[str, PublicationMethod]:
    return {
        method.name: method for method in publication_methods(subject(), sensitivity=3.0, key=b"k", epsilons=(1.0,))
    }


def test_every_family_is_there() -> None:
    assert {method.family for method in ways().values()} == {
        "exact",
        "swapping",
        "rounding",
        "cell key",
        "suppression",
        "micro-aggregation",
        "top-coding",
        "differential privacy",
    }
    again = publication_methods(subject(), sensitivity=3.0, key=b"k", epsilons=(1.0,))
    assert all(np.array_equal(method.printed, ways()[method.name].printed, equal_nan=True) for method in again)
    other = {
        method.name: method for method in publication_methods(subject(), sensitivity=3.0, key=b"o", epsilons=(1.0,))
    }
    assert not np.array_equal(other["ε = 1"].printed, ways()["ε = 1"].printed)
    assert [method.loss is None for method in ways().values()] == [
        method.family != "differential privacy" for method in ways().values()
    ]


def test_bounds_that_a_public_rule_gives_are_true() -> None:
    exact = EQUATIONS.of(subject().truth)
    for method in ways().values():
        if method.family not in {"rounding", "cell key", "suppression", "exact"}:
            continue
        last = method.known.least.shape[1] - exact.shape[1]  # where there are two kinds of rows, the later are bounds
        least, largest = method.known.least[:, last:], method.known.largest[:, last:]
        assert (least <= exact).all(), method.name
        assert (exact <= largest).all(), method.name
        assert (method.known.scales[:, last:] == 0).all()
    rounded = ways()[f"rounded to {BASES[0]}"]
    assert (rounded.known.largest - rounded.known.least)[:, exact.shape[1] :].max() == 2 * (BASES[0] - 1)


@pytest.mark.parametrize("least", THRESHOLDS)
def test_what_is_suppressed_has_the_bounds_of_its_rule(least: int) -> None:
    exact, method = EQUATIONS.of(subject().truth), ways()[f"suppressed below {least}"]
    hidden = np.isnan(method.printed)
    primary = (exact > 0) & (exact < least)
    assert (hidden >= primary).all()
    assert (hidden > primary).any() == (least == 3)  # complementary ones, where enough is left to hide
    assert np.array_equal(method.printed[~hidden], exact[~hidden])
    assert set(method.known.least[primary]) == {1.0}
    assert set(method.known.largest[primary]) == {least - 1.0}
    assert (method.known.least[hidden & ~primary] == least).all()
    assert np.isinf(method.known.largest[hidden & ~primary]).all()


def test_swapping_keeps_how_many_live_in_a_place() -> None:
    race = slice(EQUATIONS.rows - 3, EQUATIONS.rows)
    living = subject().truth.sum(axis=1)
    for method in ways().values():
        if method.family in {"swapping", "micro-aggregation", "top-coding"}:
            assert np.array_equal(method.printed[:, race].sum(axis=1), living), method.name
        if method.family in {"micro-aggregation", "top-coding"}:  # age alone is changed
            assert np.array_equal(method.printed[:, race], ways()["exact tables"].printed[:, race])


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
    method = ways()["age top-coded, 20 %"]
    assert method.counting is not None
    assert np.array_equal(method.counting.of(subject().truth), method.printed)
    assert not np.array_equal(method.printed, ways()["exact tables"].printed)


def test_no_ordered_attribute_in_any_table() -> None:
    tables = Workload.from_tabulations(DOMAIN, [Tabulation("race", ("race",)), Tabulation("sex", ("sex",))])
    plain = Subject(tables, subject().truth, np.ones(DOMAIN.size, dtype=np.bool_))
    assert plain.ordered is None
    families = {method.family for method in publication_methods(plain, sensitivity=2.0, key=b"k", epsilons=())}
    assert not families & {"micro-aggregation", "top-coding", "differential privacy"}
    assert subject().ordered == AGE


def test_noise_has_the_size_that_is_promised() -> None:
    race = Workload.from_tabulations(DOMAIN, [Tabulation("race", ("race",))])
    many = Subject(race, subject(4000).truth, np.ones(DOMAIN.size, dtype=np.bool_))
    (method,) = (
        method for method in publication_methods(many, sensitivity=3.0, key=b"k", epsilons=(1.5,)) if method.loss
    )
    error = np.abs(method.printed - Equations.of_workload(race).of(many.truth)).mean()
    assert method.promised_error == pytest.approx(error, rel=0.05)
    assert method.promised_error == pytest.approx(2 * np.exp(-0.5) / (1 - np.exp(-1.0)))  # E|X| of geometric noise at ½
