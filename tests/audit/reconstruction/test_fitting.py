"""The most likely file within bounds: proportional fitting without them, the optimum of a small problem with them."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.audit.reconstruction.noisy import KnownNumbers, most_likely, most_likely_within, stacked
from dualmandate.audit.tables import Equations
from dualmandate.workload import marginals

TABLES = Equations.of_workload(marginals((2, 3, 2), [1, 2]))


def test_without_bounds_it_is_the_fit_of_noisy_tables() -> None:
    draws = np.random.default_rng(1)
    people = draws.poisson(2.0, (4, 12))
    published = (TABLES.of(people) + draws.laplace(0, 1, (4, TABLES.rows))).astype(np.float64)
    expected = np.full((4, 12), 2.0)
    for scale in (0.5, 3.0):
        found = most_likely_within(TABLES, KnownNumbers.shown(published, scale), expected)
        other = most_likely(TABLES, published, scales=np.full(TABLES.rows, scale), expected=expected)
        assert found == pytest.approx(other, rel=1e-5, abs=1e-7)


def test_bounds_hold_and_what_is_hidden_says_nothing() -> None:
    draws = np.random.default_rng(2)
    people = draws.poisson(2.0, (3, 12))
    exact = TABLES.of(people).astype(np.float64)
    slack = draws.integers(0, 3, exact.shape)
    known = KnownNumbers(np.maximum(exact - slack, 0), exact + slack, np.zeros(exact.shape))
    expected = np.full((3, 12), 5.0)
    fitted = TABLES.of(most_likely_within(TABLES, known, expected, sweeps=5000))
    assert (fitted >= known.least - 1e-2).all()
    assert (fitted <= known.largest + 1e-2).all()
    free = KnownNumbers(np.zeros(exact.shape), np.full(exact.shape, np.inf), np.zeros(exact.shape))
    assert np.array_equal(most_likely_within(TABLES, free, expected), expected)


def test_it_is_the_nearest_file_within_the_bounds() -> None:
    from scipy.optimize import minimize

    rows = Equations.of_matrix(np.array([[1, 1, 0], [0, 1, 1]]))
    expected = np.array([1.0, 2.0, 4.0])
    known = KnownNumbers(np.array([[4.0, 0.0]]), np.array([[5.0, 3.0]]), np.zeros((1, 2)))
    found = most_likely_within(rows, known, expected[None], sweeps=5000)[0]

    def distance(x: np.ndarray) -> float:
        return float((x * np.log(x / expected) - x + expected).sum())

    limits = [
        {"type": "ineq", "fun": lambda x: x[0] + x[1] - 4.0},
        {"type": "ineq", "fun": lambda x: 5.0 - x[0] - x[1]},
        {"type": "ineq", "fun": lambda x: 3.0 - x[1] - x[2]},
    ]
    best = minimize(distance, [2.0, 2.0, 0.5], bounds=[(1e-6, None)] * 3, constraints=limits, tol=1e-12)
    assert found == pytest.approx(best.x, abs=1e-4)


def test_a_bound_that_others_meet_is_let_go() -> None:
    rows = Equations.of_matrix(np.array([[1, 1], [1, 0]]))
    known = KnownNumbers(np.array([[4.0, 10.0]]), np.full((1, 2), np.inf), np.zeros((1, 2)))
    assert most_likely_within(rows, known, np.ones((1, 2)))[0] == pytest.approx([10.0, 1.0])


def test_a_row_that_must_be_empty_empties_its_cells() -> None:
    rows = Equations.of_matrix(np.array([[1, 1, 0], [1, 1, 1]]))
    found = most_likely_within(rows, KnownNumbers.shown(np.array([[0, 3]])), np.ones((1, 3)))
    assert found[0] == pytest.approx([0.0, 0.0, 3.0])


def test_rows_beside_each_other() -> None:
    twice = stacked(TABLES, TABLES)
    assert twice.rows == 2 * TABLES.rows
    counts = np.arange(12)
    assert np.array_equal(twice.of(counts), np.tile(TABLES.of(counts), 2))
    both = KnownNumbers.shown(np.ones((2, 3))).beside(KnownNumbers.shown(np.zeros((2, 1)), 4.0))
    assert both.least.tolist() == [[1, 1, 1, 0]] * 2
    assert both.scales.tolist() == [[0, 0, 0, 4]] * 2
