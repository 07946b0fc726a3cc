from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dualmandate.errors import InvalidDomain, InvalidWorkload
from dualmandate.population import Attribute, Domain, Grouping, Hierarchy, StructuralZero
from dualmandate.workload import Groups, Identity, Row, Tabulation, Total, Workload

COUNTY = Attribute.categories("county", ["A1", "A2", "B1", "B2", "none"])
DOMAIN = Domain(
    (
        COUNTY,
        Attribute.categories("sex", ["f", "m"]),
        Attribute.numbers("income", -1, 3),
    ),
    (Hierarchy("county", (Grouping.of("state", ["A", "A", "B", "B", None]),)),),
    (StructuralZero.of({"county": "none", "sex": "m"}),),
)
COUNTS = np.arange(5 * 2 * 5).reshape(5, 2, 5)


def answers(tabulation: Tabulation) -> list[float]:
    found: list[float] = Workload.from_tabulations(DOMAIN, [tabulation]).answers(COUNTS).tolist()
    return found


def labels(tabulation: Tabulation) -> list[tuple[str, ...]]:
    return list(Workload.from_tabulations(DOMAIN, [tabulation]).labels(tabulation.name))


def test_a_grand_total_has_one_answer_and_one_empty_label() -> None:
    tabulation = Tabulation("all")
    assert answers(tabulation) == [COUNTS.sum()]
    assert labels(tabulation) == [()]
    assert all(isinstance(factor, Total) for factor in tabulation.table(DOMAIN).factors)


def test_by_attributes_and_groupings() -> None:
    tabulation = Tabulation("states", by=("state", "sex"))
    assert answers(tabulation) == [
        COUNTS[:2, 0].sum(),
        COUNTS[:2, 1].sum(),
        COUNTS[2:4, 0].sum(),
        COUNTS[2:4, 1].sum(),
    ]
    assert labels(tabulation) == [("A", "f"), ("A", "m"), ("B", "f"), ("B", "m")]


def test_labels_follow_by_while_answers_follow_the_domain() -> None:
    tabulation = Tabulation("states", by=("sex", "state"))
    assert labels(tabulation) == [("f", "A"), ("m", "A"), ("f", "B"), ("m", "B")]
    assert answers(tabulation) == answers(Tabulation("states", by=("state", "sex")))


def test_a_filter_on_what_is_tabulated_leaves_out_its_other_rows() -> None:
    tabulation = Tabulation("some", by=("county",), where=(("county", ("B1", "A2")), ("sex", ("f",))))
    assert labels(tabulation) == [("A2",), ("B1",)]
    assert answers(tabulation) == [COUNTS[1, 0].sum(), COUNTS[2, 0].sum()]
    by_state = Tabulation("some", by=("state",), where=(("county", ("A2", "none")),))
    assert labels(by_state) == [("A",)]
    assert answers(by_state) == [COUNTS[1].sum()]


def test_filters_on_an_attribute_and_its_grouping_both_hold() -> None:
    both = Tabulation("some", where=(("state", ("A",)), ("county", ("A2", "B1"))))
    assert answers(both) == [COUNTS[1].sum()]


def test_sums_are_integers_in_grid_units() -> None:
    tabulation = Tabulation("income", by=("sex",), sum_of="income")
    assert answers(tabulation) == [(COUNTS[:, sex] * np.arange(-1, 4)).sum() for sex in (0, 1)]
    assert tabulation.table(DOMAIN).grid == 1
    fine = Domain((Attribute.numbers("wage", Fraction(1, 2), 2, Fraction(1, 4)), Attribute.categories("x", ["a"])))
    table = Tabulation("wages", sum_of="wage").table(fine)
    assert table.grid == Fraction(1, 4)
    assert Workload(fine, (table,)).answers(np.ones((7, 1), dtype=np.int64)).tolist() == [2 + 3 + 4 + 5 + 6 + 7 + 8]


def test_sums_by_groups_of_the_summed_number() -> None:
    signs = Grouping.of("sign", ["loss", None, "gain", "gain", "gain"])
    domain = Domain((Attribute.numbers("income", -1, 3),), (Hierarchy("income", (signs,)),))
    workload = Workload.from_tabulations(domain, [Tabulation("income", by=("sign",), sum_of="income")])
    assert workload.answers(np.array([10, 10, 1, 2, 3])).tolist() == [-10, 1 + 4 + 9]
    assert list(workload.labels("income")) == [("loss",), ("gain",)]


@pytest.mark.parametrize("tenth", [0.1, "0.1", Decimal("0.1"), Fraction(1, 10), "1/10"])
def test_weights_mean_what_is_written(tenth: float | str | Decimal | Fraction) -> None:
    tabulation = Tabulation.of("need", "sex", weights={"county": {"A1": tenth, "B2": -1}})
    table = tabulation.table(DOMAIN)
    assert table.weight == Fraction(1, 10)
    assert isinstance(table.factors[0], Row)
    assert table.factors[0].values.tolist() == [1, 0, 0, -10, 0]
    workload = Workload(DOMAIN, (table,))
    assert np.allclose(workload.answers(COUNTS), COUNTS[0].sum(axis=1) / 10 - COUNTS[3].sum(axis=1))


def test_weights_of_groups_and_of_what_is_tabulated() -> None:
    grouped = Tabulation.of("half", weights={"state": {"A": 0.5, "B": 1}})
    assert answers(grouped) == [COUNTS[:2].sum() / 2 + COUNTS[2:4].sum()]
    own = Tabulation.of("own", "county", weights={"county": {"A1": 1, "B1": "1/3"}})
    assert np.allclose(answers(own), [COUNTS[0].sum(), COUNTS[2].sum() / 3])
    assert labels(own) == [("A1",), ("B1",)]


def test_plain_factors_stay_plain() -> None:
    factors = Tabulation("x", by=("county",), where=(("sex", ("f",)),)).table(DOMAIN).factors
    assert [type(factor) for factor in factors] == [Identity, Row, Total]
    factors = Tabulation("x", by=("state",)).table(DOMAIN).factors
    assert isinstance(factors[0], Groups)
    assert factors[0].names == ("A", "B")


@pytest.mark.parametrize(
    ("tabulation", "words"),
    [
        (lambda: Tabulation(""), "no name"),
        (lambda: Tabulation("t", by=("sex", "sex")), "twice in `by`"),
        (lambda: Tabulation("t", by=("county", "state")), "twice in `by`"),
        (lambda: Tabulation("t", where=(("sex", ("f",)), ("sex", ("m",)))), "twice in `where`"),
        (
            lambda: Tabulation("t", weights=(("sex", (("f", Fraction(1)), ("f", Fraction(0)))),)),
            "twice in `weights.sex`",
        ),
        (lambda: Tabulation("t", where=(("sex", ()),)), "no levels of 'sex'"),
        (lambda: Tabulation.of("t", where={"sex": []}), "no levels of 'sex'"),
        (lambda: Tabulation("t", where=(("state", ("A",)), ("county", ("B1",)))), "no record can be counted"),
        (lambda: Tabulation("t", where=(("county", ("none",)), ("sex", ("m",)))), "no record can be counted"),
        (lambda: Tabulation.of("t", weights={"sex": {"f": 1.5}}), "weight 1.5"),
        (lambda: Tabulation.of("t", weights={"sex": {"f": "-1.0000001"}}), "weight -1.0000001"),
        (lambda: Tabulation.of("t", weights={"sex": {"f": float("nan")}}), "weight 'nan'"),
        (lambda: Tabulation.of("t", weights={"sex": {"f": "much"}}), "weight 'much'"),
        (lambda: Tabulation.of("t", weights={"sex": {"f": 0}}), "is 0"),
        (lambda: Tabulation.of("t", "sex", weights={"sex": {"f": 1}}, where={"sex": "m"}), "is 0"),
        (lambda: Tabulation.of("t", weights={"county": {"A1": 1}, "state": {"A": 1}}), "weights 'county' twice"),
        (lambda: Tabulation.of("t", weights={"income": {"1": 1}}, sum_of="income"), "weights 'income' twice"),
        (lambda: Tabulation.of("t", weights={"sex": {"f": f"1/{2**61 - 1}", "m": "1/3"}}), "common denominator"),
    ],
)
def test_what_cannot_be_meant_is_refused(tabulation: object, words: str) -> None:
    assert callable(tabulation)
    with pytest.raises(InvalidWorkload, match=words):
        tabulation().table(DOMAIN)


@pytest.mark.parametrize(
    ("tabulation", "words"),
    [
        (Tabulation("t", by=("sexx",)), "did you mean 'sex'"),
        (Tabulation("t", where=(("sex", ("x",)),)), "'x' is not a level of 'sex'"),
        (Tabulation("t", where=(("state", ("C",)),)), "'C' is not a group of 'state'"),
        (Tabulation.of("t", weights={"sex": {"x": 1}}), "'x' is not a level"),
        (Tabulation("t", sum_of="sex"), "no numbers to sum"),
        (Tabulation("t", sum_of="state"), "'state' is not an attribute"),
    ],
)
def test_unknown_names_and_levels_are_refused(tabulation: Tabulation, words: str) -> None:
    with pytest.raises(InvalidDomain) as refusal:
        tabulation.table(DOMAIN)
    assert words in str(refusal.value) or words in refusal.value.what
