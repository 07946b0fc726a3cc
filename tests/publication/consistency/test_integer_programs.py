"""Crossing totals held exactly, and an honest answer where they cannot be."""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from dualmandate.errors import NoConsistentTables
from dualmandate.publication.consistency.transport import integer_program
from dualmandate.workload import marginals

MARGINS = marginals((2, 2, 2), 2).dense()


def test_the_nearest_counts_are_found_and_proved() -> None:
    generator = np.random.default_rng(2)
    for _ in range(5):
        truth = generator.poisson(1.0, 8)
        targets = truth + generator.normal(0, 2.0, 8)
        totals = np.rint(MARGINS @ truth).astype(np.int64)
        found = integer_program(targets, MARGINS, totals)
        # one direction is free once all two-way tables are fixed: the alternating one
        signs = np.array([1, -1, -1, 1, -1, 1, 1, -1])
        options = [truth + step * signs for step in range(-9, 10) if np.all(truth + step * signs >= 0)]
        assert found.status == "proved optimal"
        assert np.array_equal(MARGINS @ found.counts, totals)
        assert found.distance == pytest.approx(min(np.abs(option - targets).sum() for option in options))


def test_weights_decide_which_count_gives_way() -> None:
    found = integer_program(np.array([3.0, 3.0]), np.array([[1, 1]]), np.array([5]), weights=np.array([10.0, 1.0]))
    assert found.counts.tolist() == [3, 2]


def test_totals_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(NoConsistentTables, match="contradict"):
        integer_program(np.zeros(8), MARGINS, np.arange(12))


def test_totals_that_only_fractions_satisfy_are_refused() -> None:
    triangle = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]])
    with pytest.raises(NoConsistentTables, match="contradict"):
        integer_program(np.zeros(3), triangle, np.ones(3, dtype=np.int64))


def test_no_time_is_said() -> None:
    generator = np.random.default_rng(3)
    matrix = marginals((6, 6, 6), 2).dense()
    truth = generator.poisson(3.0, 216)
    targets = truth + generator.normal(0, 5.0, 216)
    with pytest.raises(NoConsistentTables, match="not met in time"):
        integer_program(targets, matrix, np.rint(matrix @ truth).astype(np.int64), seconds=1e-6)


def test_what_the_solver_claims_is_checked_and_what_it_prints_is_not_heard(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def boasting(*_: object, **__: object) -> OptimizeResult:
        os.write(1, b"a solver's own words")
        return OptimizeResult(x=np.array([2.0, 2.0, 1.0, 1.0]), status=0)

    monkeypatch.setattr("scipy.optimize.milp", boasting)
    with pytest.raises(NoConsistentTables):
        integer_program(np.array([3.0, 3.0]), np.array([[1, 1]]), np.array([5]))
    assert capfd.readouterr().out == ""


def test_a_solver_that_gives_up_is_asked_once_more_without_its_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from scipy.optimize import milp

    asked = []

    def failing(*given: object, **named: dict[str, object]) -> OptimizeResult:
        asked.append(named["options"]["presolve"])
        return OptimizeResult(x=None, status=4) if asked[-1] else milp(*given, **named)

    monkeypatch.setattr("scipy.optimize.milp", failing)
    assert integer_program(np.array([3.0, 3.0]), np.array([[1, 1]]), np.array([5])).counts.sum() == 5
    assert asked == [True, False]
