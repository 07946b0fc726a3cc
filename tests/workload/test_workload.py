from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidRequest, InvalidWorkload, TooLarge
from dualmandate.population import Attribute, Domain
from dualmandate.workload import (
    Identity,
    Row,
    Table,
    Tabulation,
    Total,
    Workload,
    all_range,
    groups,
    identity,
    kron,
    marginals,
    prefix,
    stack,
    total,
)
from dualmandate.workload.levels import column_classes

AnyWorkload = Callable[..., st.SearchStrategy[Workload]]


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_answers_and_their_transpose_are_the_dense_products(data: st.DataObject, any_workload: AnyWorkload) -> None:
    workload = data.draw(any_workload())
    matrix = workload.dense()
    assert matrix.shape == workload.shape
    generator = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    counts = generator.integers(0, 50, workload.domain.shape)
    assert np.allclose(workload.answers(counts), matrix @ counts.reshape(-1))
    assert np.allclose(workload.answers(counts.reshape(-1)), matrix @ counts.reshape(-1))
    numbers = generator.normal(size=workload.query_count)
    assert np.allclose(workload.transpose_answers(numbers).reshape(-1), matrix.T @ numbers)
    assert np.allclose(workload.gram(), matrix.T @ matrix)
    start = 0
    for table in workload.tables:
        part = slice(start, start + table.query_count)
        assert np.allclose(workload.table_answers(table.name, counts), (matrix @ counts.reshape(-1))[part])
        start += table.query_count


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_column_classes_are_the_equal_columns_of_an_attribute(data: st.DataObject, any_workload: AnyWorkload) -> None:
    workload = data.draw(any_workload())
    for axis, size in enumerate(workload.domain.shape):
        classes = column_classes([table.factors[axis] for table in workload.tables], size)
        stacked = np.concatenate(
            [table.factors[axis].columns(np.arange(workload.domain.shape[axis])) for table in workload.tables]
        ).T
        alike = [[bool(np.array_equal(one, other)) for other in stacked] for one in stacked]
        assert alike == (classes[:, None] == classes[None, :]).tolist()


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_products_and_stacks_of_random_workloads(data: st.DataObject, any_workload: AnyWorkload) -> None:
    one = data.draw(any_workload(zeros=False, most_attributes=2))
    other = data.draw(any_workload(zeros=False, most_attributes=1))
    multiplied = kron(one, other)
    counts = np.random.default_rng(0).integers(0, 9, multiplied.domain.shape)
    rows = one.dense() @ counts.reshape(one.domain.size, other.domain.size) @ other.dense().T
    # Table by table: blocks of rows and columns of the two-sided product.
    cuts = [
        np.split(np.arange(each.query_count), np.cumsum([t.query_count for t in each.tables])[:-1])
        for each in (one, other)
    ]
    expected = np.concatenate([rows[np.ix_(a, b)].reshape(-1) for a in cuts[0] for b in cuts[1]])
    assert np.allclose(multiplied.answers(counts), expected)
    twice = stack(one, one, weights=[1, "1/3"])
    assert np.allclose(twice.dense(), np.concatenate([one.dense(), one.dense() / 3]))
    assert len({table.name for table in twice.tables}) == len(twice.tables)


def test_whole_counts_and_weights_give_whole_answers() -> None:
    counts = np.array([1, 2, 3])
    assert prefix(3).answers(counts).dtype == np.int64
    assert stack(prefix(3), total(3), weights=[2, 1]).answers(counts).tolist() == [2, 6, 12, 6]
    assert stack(prefix(3), weights=[0.5]).answers(counts).tolist() == [0.5, 1.5, 3.0]
    assert prefix(3).answers(counts * 0.5).tolist() == [0.5, 1.5, 3.0]
    assert prefix(3).answers(np.array([True, False, True])).tolist() == [1, 1, 2]
    assert prefix(3).answers(np.array([1, 2, 3], dtype=np.uint8)).tolist() == [1, 3, 6]


def test_an_answer_is_not_a_view_of_the_data() -> None:
    counts = np.array([1, 2, 3])
    for workload in (identity(3), total(3)):
        found = workload.answers(counts)
        found += 1
        assert counts.tolist() == [1, 2, 3]
        numbers = np.ones(workload.query_count, dtype=np.int64)
        back = workload.transpose_answers(numbers)
        back += 1
        assert numbers.tolist() == [1] * workload.query_count


def test_words_by_hand() -> None:
    assert identity(2).dense().tolist() == [[1, 0], [0, 1]]
    assert total(2).dense().tolist() == [[1, 1]]
    assert prefix(2).dense().tolist() == [[1, 0], [1, 1]]
    assert all_range(2).dense().tolist() == [[1, 0], [1, 1], [0, 1]]
    assert groups(3, [[0, 2], [1]]).dense().tolist() == [[1, 0, 1], [0, 1, 0]]
    assert kron(total(2), identity(2)).dense().tolist() == [[1, 0, 1, 0], [0, 1, 0, 1]]
    assert stack(identity(2), total(2)).dense().tolist() == [[1, 0], [0, 1], [1, 1]]
    assert stack(identity(2), total(2), weights=[1, 0.25]).dense().tolist() == [[1, 0], [0, 1], [0.25, 0.25]]
    assert kron(stack(identity(2), total(2)), total(2)).dense().tolist() == [[1, 1, 0, 0], [0, 0, 1, 1], [1, 1, 1, 1]]


def test_marginals_by_hand() -> None:
    workload = marginals((2, 3), (0, 1, 2))
    assert [table.name for table in workload.tables] == ["total", "axis0", "axis1", "axis0 × axis1"]
    assert workload.query_count == 1 + 2 + 3 + 6
    assert marginals((2, 3, 4), 2).query_count == 6 + 8 + 12
    counts = np.arange(6).reshape(2, 3)
    assert workload.answers(counts).tolist() == [15, *counts.sum(axis=1), *counts.sum(axis=0), *range(6)]


def test_labels_of_words() -> None:
    assert list(prefix(3).labels("prefix")) == [("up to 0",), ("up to 1",), ("up to 2",)]
    assert list(all_range(2).labels("all range")) == [("0 to 0",), ("0 to 1",), ("1 to 1",)]
    assert list(total(3).labels("total")) == [()]
    assert list(groups(3, [[0], [1, 2]]).labels("groups")) == [("row 0",), ("row 1",)]
    product = kron(identity(2), total(5), prefix(2))
    assert list(product.labels(product.tables[0].name)) == [
        ("0", "up to 0"),
        ("0", "up to 1"),
        ("1", "up to 0"),
        ("1", "up to 1"),
    ]
    assert len(list(marginals((2, 3, 4), 2).labels("axis0 × axis2"))) == 8


def test_products_of_labeled_domains_keep_their_names() -> None:
    one = Domain((Attribute.categories("sex", ["f", "m"]),))
    other = Domain((Attribute.categories("age", ["young", "old"]),))
    product = kron(
        Workload.from_tabulations(one, [Tabulation("sex", by=("sex",))]),
        Workload.from_tabulations(other, [Tabulation("age", by=("age",))]),
    )
    assert product.domain.names == ("sex", "age")
    assert list(product.labels("sex × age")) == [("f", "young"), ("f", "old"), ("m", "young"), ("m", "old")]


def test_some_tables_alone() -> None:
    workload = marginals((2, 3), (0, 1))
    assert [table.name for table in workload.only(["axis1", "total"]).tables] == ["axis1", "total"]
    with pytest.raises(InvalidWorkload, match="no table 'axis7'"):
        workload.only(["axis7"])


def test_exact_size_of_a_domain_that_is_never_written_out() -> None:
    workload = marginals((100,) * 9, (1, 2))
    assert workload.domain.size == 10**18
    assert workload.query_count == 9 * 100 + 36 * 100**2
    assert workload.sensitivity().power == 9 + 36


@pytest.mark.parametrize(
    "ask",
    [
        lambda: marginals((1000,) * 4, (1,)).answers(np.zeros(1)),
        lambda: identity(10**6).dense(),
        lambda: identity(10**5).gram(),
        lambda: marginals((2,) * 40, 20),
        lambda: total(10**12),
        lambda: Workload(
            Domain.of_shape((2, 2)), (Table("t", (Row(np.array([2**40, 1])), Row(np.array([1, 2**40])))),)
        ).answers(np.ones((2, 2), dtype=np.int64)),
    ],
)
def test_too_large_is_refused_before_memory_is_taken(ask: Callable[[], object]) -> None:
    with pytest.raises(TooLarge):
        ask()


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: Workload(Domain.of_shape((2,)), ()), "without tables"),
        (lambda: Workload.from_tabulations(Domain.of_shape((2,)), []), "without tables"),
        (lambda: Workload(Domain.of_shape((2,)), (Table("a", (Total(2),)), Table("a", (Total(2),)))), "called 'a'"),
        (lambda: Workload(Domain.of_shape((2,)), (Table("a", (Total(3),)),)), "does not fit"),
        (lambda: Workload(Domain.of_shape((2,)), (Table("a", (Total(2), Total(2))),)), "does not fit"),
        (lambda: Table("a", (Identity(2),), Fraction(0)), "weight 0"),
        (lambda: identity(3).answers(np.ones(4)), "do not fit"),
        (lambda: identity(3).transpose_answers(np.ones(4)), "numbers were given"),
        (lambda: kron(), "product of nothing"),
        (lambda: stack(), "stack of nothing"),
        (lambda: stack(identity(2), identity(3)), "are stacked"),
        (lambda: stack(identity(2), weights=[1, 2]), "2 weights for 1"),
        (lambda: stack(identity(2), weights=[0]), "not positive"),
        (lambda: stack(identity(2), weights=[float("inf")]), "a weight is inf"),
        (lambda: marginals((2, 2), 3), "marginals of 3"),
        (lambda: marginals((2, 2), ()), "marginals of no"),
        (lambda: marginals((2, 2), (1, 1)), "each order is asked for once"),
        (lambda: identity(0), "0 levels"),
        (lambda: groups(3, [[0], [3]]), "does not exist"),
    ],
)
def test_what_cannot_be_meant_is_refused(ask: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidWorkload) as refusal:
        ask()
    assert words in str(refusal.value)


def test_a_norm_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="'norm' of sensitivity") as refusal:
        identity(3).sensitivity(norm="linf")  # type: ignore[arg-type]
    assert refusal.value.instead == "give one of 'l1', 'l2'"
    with pytest.raises(InvalidRequest) as refusal:
        identity(3).sensitivity(norm="L1")  # type: ignore[arg-type]
    assert refusal.value.instead == "did you mean 'l1'?"
