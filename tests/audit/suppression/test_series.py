"""Suppressed numbers over time: the trees of published employment, ranges and estimates."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.audit.suppression.cells import audit_suppression, tree_relations
from dualmandate.audit.suppression.series import Series, by_size, estimate_series
from dualmandate.benchmarks import qcew


def test_a_share_is_carried_over_and_adds_up() -> None:
    # One total and three parts in three periods; two parts are suppressed in the middle one.
    values = np.array([[100, 120, 140], [20, 99, 28], [30, 99, 42], [50, 60, 70]])
    hidden = np.zeros((4, 3), dtype=np.bool_)
    hidden[1:3, 1] = True
    series = Series(np.array([-1, 0, 0, 0]), values, hidden, np.ones((4, 3)))
    least, largest = np.zeros_like(values), np.full_like(values, 60)
    found = estimate_series(series, least, largest)
    assert found[:, 1].tolist() == pytest.approx([120, 24, 36, 60])  # shares of 20 % and 30 %, and 60 are left
    assert np.array_equal(found[~hidden], values[~hidden])
    blind = by_size(series, least, largest)
    assert blind[1:3, 1].tolist() == pytest.approx([30, 30])
    narrow = estimate_series(series, least, np.minimum(largest, 25))
    assert narrow[1, 1] <= 25


def test_a_level_is_carried_over_where_no_total_is_published() -> None:
    values = np.array([[0, 0, 0], [10, 0, 14], [9, 9, 9]])
    hidden = np.array([[True] * 3, [False, True, False], [False] * 3])
    series = Series(np.array([-1, 0, 0]), values, hidden, np.ones((3, 3)))
    found = estimate_series(series, np.zeros_like(values), np.full_like(values, 1000))
    assert found[1, 1] == pytest.approx(12)


def test_relations_of_a_tree() -> None:
    relations = tree_relations(np.array([-1, 0, 0, 1, 1]))
    assert relations.matrix.toarray().tolist() == [[-1, 1, 1, 0, 0], [0, -1, 0, 1, 1]]


@pytest.mark.parametrize(
    ("code", "parent"),
    [
        ("10", None),
        ("101", "10"),
        ("1013", "101"),
        ("1029", "102"),
        ("31-33", "1013"),
        ("22", "1021"),
        ("311", "31-33"),
        ("331", "31-33"),
        ("493", "48-49"),
        ("111", "11"),
        ("1111", "111"),
        ("111110", "11111"),
    ],
)
def test_industries_nest(code: str, parent: str | None) -> None:
    assert qcew.parent_industry(code) == parent


def test_employment_end_to_end() -> None:
    tables, _ = qcew.at_hand(4)
    variable = qcew.VARIABLES[2]
    hidden, chosen = qcew.held_out(tables, count=100, seed=5)
    assert not tables.suppressed[tuple(chosen.T)].any()
    assert hidden.suppressed[tuple(chosen.T)].all()
    least, largest = (np.zeros_like(tables.values[variable]) for _ in range(2))
    for quarter in range(qcew.QUARTERS):
        linked, left_out = hidden.linked(variable, quarter)
        assert left_out == 0
        found = audit_suppression(linked)
        least[found.cells, quarter], largest[found.cells, quarter] = found.least, found.largest
        assert found.programs == 0  # trees need none
    truth, at = tables.values[variable][tuple(chosen.T)], tuple(chosen.T)
    assert ((least[at] <= truth) & (truth <= largest[at])).all()
    series = hidden.series(variable)
    over_time, alone = (
        np.mean(np.abs(guess(series, least, largest)[at] - truth) <= 0.05 * truth)
        for guess in (estimate_series, by_size)
    )
    assert over_time > 1.5 * alone


def test_a_total_that_its_parts_do_not_make_up_is_left_out() -> None:
    tables = qcew.generated(1)
    variable, quarter = qcew.VARIABLES[0], 0
    leaf = int(np.setdiff1d(np.flatnonzero(~tables.suppressed[:, quarter]), tables.parents)[0])
    siblings = tables.parents == tables.parents[leaf]
    tables.suppressed[siblings, quarter] = False
    tables.suppressed[tables.parents[leaf], quarter] = False
    tables.values[variable][leaf, quarter] += 1
    linked, left_out = tables.linked(variable, quarter)
    assert left_out == 1
    audit_suppression(linked)
