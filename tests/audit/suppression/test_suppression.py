"""Suppressed cells: ranges against brute force and linear programs, exact disclosure, protection intervals."""

from __future__ import annotations

import math
import time
from functools import partial
from itertools import count, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from dualmandate.audit.reconstruction.solving import UNBOUNDED
from dualmandate.audit.suppression.cells import (
    LinkedTables,
    SuppressionAudit,
    additive_relations,
    audit_suppression,
    extremes,
)
from dualmandate.audit.tables import Equations
from dualmandate.errors import InvalidTables

Integers = NDArray[np.int64]


def with_totals(inner: Integers) -> Integers:
    for axis in range(inner.ndim):
        inner = np.concatenate([inner, inner.sum(axis=axis, keepdims=True)], axis=axis)
    return inner


def linked(table: Integers, suppressed: NDArray[np.bool_]) -> LinkedTables:
    return LinkedTables(additive_relations(table.shape), table.reshape(-1), suppressed.reshape(-1))


def all_hidden_but_totals(shape: tuple[int, ...]) -> LinkedTables:
    table = with_totals(np.random.default_rng(7).integers(0, 30, shape))
    marks = np.zeros(table.shape, dtype=np.bool_)
    marks[tuple(slice(0, -1) for _ in shape)] = True
    return linked(table, marks)


def programs_say(tables: LinkedTables) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ranges by one cold linear program each, with nothing shared and nothing propagated."""
    matrix, hidden = tables.relations.matrix.toarray(), tables.suppressed
    right = -matrix[:, ~hidden] @ tables.values[~hidden]
    left = matrix[:, hidden]
    ends = []
    for sign in (1, -1):
        found = []
        for i in range(left.shape[1]):
            cost = np.zeros(left.shape[1])
            cost[i] = sign
            solution = linprog(cost, A_eq=left, b_eq=right, bounds=(0, None))
            found.append(sign * solution.fun)
        ends.append(np.array(found))
    return ends[0], ends[1]


@pytest.mark.parametrize(("shape", "share"), [((5, 6), 0.35), ((4, 4, 3), 0.3), ((3, 3, 2, 2), 0.3)])
@pytest.mark.parametrize("seed", range(4))
def test_ranges_are_those_of_single_programs(shape: tuple[int, ...], share: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    table = with_totals(generator.integers(0, 30, shape))
    tables = linked(table, generator.random(table.shape) < share)
    found = audit_suppression(tables)
    least, largest = programs_say(tables)
    assert np.allclose(found.least, np.ceil(least - 1e-6))
    assert np.allclose(found.largest, np.floor(largest + 1e-6))
    truth = table.reshape(-1)[found.cells]
    assert (found.least <= truth).all()
    assert (truth <= found.largest).all()


@settings(max_examples=12, deadline=None)
@given(st.lists(st.integers(0, 2), min_size=4, max_size=4), st.lists(st.booleans(), min_size=9, max_size=9))
def test_whole_tables_reach_the_ends(inner: list[int], marks: list[bool]) -> None:
    table = with_totals(np.array(inner).reshape(2, 2))
    tables = linked(table, np.array(marks))
    found = audit_suppression(tables, largest=np.full(9, 8))
    free = np.flatnonzero(marks)
    fits = []
    for inner_values in product(range(9), repeat=4):
        other = with_totals(np.array(inner_values).reshape(2, 2)).reshape(-1)
        if np.array_equal(other[~np.array(marks)], table.reshape(-1)[~np.array(marks)]) and other.max() <= 8:
            fits.append(other[free])
    if free.size:
        assert np.array_equal(found.least, np.min(fits, axis=0))
        assert np.array_equal(found.largest, np.max(fits, axis=0))


def test_a_lone_cell_of_a_line_is_disclosed() -> None:
    table = with_totals(np.array([[4, 7], [1, 9]]))
    marks = np.zeros((3, 3), dtype=np.bool_)
    marks[0, 0] = True
    found = audit_suppression(linked(table, marks))
    assert found.disclosed.tolist() == [0]
    assert found.least.tolist() == [4]
    assert found.programs == 0
    marks[0, 1] = marks[1, 0] = marks[1, 1] = True
    square = audit_suppression(linked(table, marks))
    assert square.disclosed.size == 0
    assert square.least.tolist() == [0, 6, 0, 5]
    assert square.largest.tolist() == [5, 11, 5, 10]


def test_protection_intervals() -> None:
    table = with_totals(np.array([[2, 100], [3, 50]]))
    marks = np.zeros((3, 3), dtype=np.bool_)
    marks[:2, :2] = True
    found = audit_suppression(linked(table, marks))
    # The first cell may be 0 to 5; 100 may be 97 to 102, which is not 20 % of it in either direction.
    assert found.least.tolist() == [0, 97, 0, 48]
    assert found.largest.tolist() == [5, 102, 5, 53]
    assert found.unprotected(table.reshape(-1), share=0.2).tolist() == [1, 4]
    assert found.unprotected(table.reshape(-1), share=0.02).tolist() == []


def test_trees_need_no_program_and_unbounded_cells_say_so() -> None:
    # total = a + b + c, a = a1 + a2; a1 and b are suppressed, and so is the total
    relations = Equations.of_matrix(np.array([[1, 1, 1, -1, 0, 0], [-1, 0, 0, 0, 1, 1]]), ["all", "a"])
    values = np.array([5, 7, 2, 14, 3, 2])
    tables = LinkedTables(relations, values, np.array([False, True, False, True, True, False]))
    found = audit_suppression(tables)
    assert found.programs == 0
    assert found.least.tolist() == [0, 7, 3]
    assert found.largest[2] == 3
    assert found.largest[0] == UNBOUNDED - 7
    assert found.largest[1] == UNBOUNDED
    known = audit_suppression(tables, largest=np.array([9, 9, 9, 20, 9, 9]))
    assert known.largest.tolist() == [9, 16, 3]


def test_tables_that_do_not_add_up() -> None:
    table = with_totals(np.array([[4, 7], [1, 9]]))
    table[2, 2] += 1
    with pytest.raises(InvalidTables, match="does not add up"):
        audit_suppression(linked(table, np.zeros((3, 3), dtype=np.bool_)))
    table[2, 2] -= 1
    table[0, 2] += 1  # the rows now add up to more than the columns, whatever the suppressed total
    marks = np.zeros((3, 3), dtype=np.bool_)
    marks[:2, :2] = marks[2, 2] = True
    with pytest.raises(InvalidTables, match="contradict"):
        audit_suppression(linked(table, marks))
    with pytest.raises(InvalidTables):
        LinkedTables(additive_relations((3, 3)), table.reshape(-1)[:4], marks.reshape(-1))


def test_whole_circles_of_equations_contradict() -> None:
    piece = Equations.of_matrix(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1], [1, 1, 1]]))
    bounds = np.zeros(3, dtype=np.int64), np.full(3, 9)
    with pytest.raises(InvalidTables):
        extremes(piece, np.array([2, 2, 2, 9]), bounds)


def test_protection_fails_whatever_a_cell_holds() -> None:
    spans = [(least, largest) for least in range(25) for largest in range(least, 60)]
    ends = np.array(spans)
    found = SuppressionAudit(np.arange(len(spans)), ends[:, 0], ends[:, 1], np.ones(len(spans), dtype=np.bool_), 0)
    for share in (0.05, 0.2, 0.5, 0.9, 1.0):
        by_hand = []
        for least, largest in spans:
            protected = [
                least <= value - math.floor(share * value) and value + math.ceil(share * value) <= largest
                for value in range(least, largest + 1)
            ]
            by_hand.append(least == largest or not any(protected))
        assert found.surely_unprotected(share=share).tolist() == by_hand
    nothing = SuppressionAudit(np.arange(1), np.array([7]), np.array([UNBOUNDED]), np.ones(1, dtype=np.bool_), 0)
    assert not nothing.surely_unprotected(share=0.2).any()


@pytest.mark.parametrize("shape", [(5, 6), (4, 4, 3)], ids=["two dimensions", "three"])
def test_without_time_bounds_stand_and_it_is_said(shape: tuple[int, ...]) -> None:
    tables = all_hidden_but_totals(shape)
    sharp, late = audit_suppression(tables), audit_suppression(tables, seconds=1e-9)
    assert sharp.reached.all()
    assert not late.reached.all()
    assert late.programs == 0
    assert (late.least <= sharp.least).all()
    assert (sharp.largest <= late.largest).all()
    assert np.array_equal(late.least[late.reached], sharp.least[late.reached])
    assert set(late.disclosed) <= set(sharp.disclosed)
    assert late.surely_unprotected(share=0.2).sum() <= sharp.surely_unprotected(share=0.2).sum()


def test_time_that_ends_in_between_leaves_the_other_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    for shape in ((5, 6), (4, 4, 3)):
        tables = all_hidden_but_totals(shape)
        sharp = audit_suppression(tables)
        with monkeypatch.context() as patched:
            patched.setattr(time, "monotonic", partial(next, count(0.0, 1.0)))  # every look at it takes a second
            some = audit_suppression(tables, seconds=7.5)
        assert 0 < (~some.reached).sum() < len(some.cells)
        assert (some.least <= sharp.least).all()
        assert (sharp.largest <= some.largest).all()
        assert np.array_equal(some.largest[some.reached], sharp.largest[some.reached])


def test_large_amounts_are_bounded_to_the_dollar() -> None:
    table = with_totals(np.array([[7 * 10**9, 10**9], [2 * 10**9, 9 * 10**9 + 1]]))
    marks = np.zeros((3, 3), dtype=np.bool_)
    marks[:2, :2] = True
    found = audit_suppression(linked(table, marks))
    assert found.least.tolist() == [0, 0, 10**9, 2 * 10**9 + 1]
    assert found.largest.tolist() == [8 * 10**9, 8 * 10**9, 9 * 10**9, 10**10 + 1]


def test_contradictions_name_a_smallest_set_of_sums() -> None:
    table = with_totals(np.array([[4, 7, 3], [1, 9, 2]]))
    marks = np.zeros(table.shape, dtype=np.bool_)
    marks[:2, :3] = marks[2, 3] = True
    table[0, 3] += 1  # rows add up to one more than columns, whatever the suppressed total
    names = tuple(f"line {i}" for i in range(7))
    plain = additive_relations(table.shape)
    relations = Equations(plain.starts, plain.cells, plain.coefficients, plain.size, names)
    tables = LinkedTables(relations, table.reshape(-1), marks.reshape(-1))
    with pytest.raises(InvalidTables, match="contradict each other: line") as caught:
        audit_suppression(tables)
    assert caught.value.what.endswith("line 3; line 6")  # the total of columns, and that of rows
    assert "no smaller set" in caught.value.why
    with pytest.raises(InvalidTables, match="contradict each other") as hasty:
        audit_suppression(tables, seconds=1e-9)
    assert "time ended" in hasty.value.why
    two = additive_relations((3, 3))
    wrong = LinkedTables(two, np.array([1, 0, 9, 0, 0, 2, 3, 4, 5]), np.array([0, 1, 0, 1, 1, 0, 0, 0, 1]).astype(bool))
    with pytest.raises(InvalidTables, match="contradict each other"):
        audit_suppression(wrong)


@pytest.mark.parametrize("shape", [(5, 6), (4, 4, 3)], ids=["two dimensions", "three"])
def test_ranges_of_some_cells_alone(shape: tuple[int, ...]) -> None:
    tables = all_hidden_but_totals(shape)
    wanted = np.zeros(len(tables.values), dtype=np.bool_)
    wanted[[1, 9]] = True  # and cells that are published, which nobody asks for
    wanted[-1] = True
    whole, some = audit_suppression(tables), audit_suppression(tables, wanted=wanted)
    assert some.cells.tolist() == [1, 9]
    kept = np.isin(whole.cells, some.cells)
    assert np.array_equal(some.least, whole.least[kept])
    assert np.array_equal(some.largest, whole.largest[kept])
    assert some.reached.all()
    assert some.programs < whole.programs
