"""Limits of time: what was not proved is said, and nothing wrong is claimed; a second solver where the first fails."""

from __future__ import annotations

import time
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

from dualmandate.audit.finding import Finding, Rate
from dualmandate.audit.options import Effort
from dualmandate.audit.reconstruction import exact as reconstruction
from dualmandate.audit.reconstruction import solving
from dualmandate.audit.reconstruction.exact import reconstruct
from dualmandate.audit.reconstruction.persons import GroupStatistics, Statistic, Variables, reconstruct_persons
from dualmandate.audit.reconstruction.solving import BoundedEquations, first_solution, ranges, smallest_conflict
from dualmandate.audit.run import attack_on
from dualmandate.audit.tables import Equations, ExactTables
from dualmandate.errors import InvalidTables
from dualmandate.workload import marginals

HARD = Equations.of_workload(marginals((6, 6, 5), [1, 2]))
PEOPLE = np.random.default_rng(5).integers(0, 4, (2, HARD.size))
TINY = 1e-3


def hard() -> ExactTables:
    return ExactTables("hard tables", HARD, HARD.of(PEOPLE), ("one", "two"), "as is")


def found(target: object, seconds: float) -> tuple[Finding, ...]:
    return attack_on(target, Effort(seconds)).run(target, b"key")


def test_a_hard_place_is_left_open_and_bounds_hold() -> None:
    unique, records, apart = found(hard(), TINY)
    assert unique.success == Rate(0, 2)
    for finding in (unique, records, apart):
        assert finding.partial is not None
        assert "left 2 of 2 places open" in finding.partial
        assert "not done" in finding.words()
        assert finding.document()["partial"] == finding.partial
    for each, truth in zip(reconstruct(HARD, HARD.of(PEOPLE), seconds=TINY), PEOPLE, strict=True):
        assert not each.proved
        assert not each.unique
        assert (each.least <= truth).all()
        assert (truth <= each.largest).all()
        assert each.most_apart is not None
        assert each.apart is not None
        assert each.apart <= each.most_apart


def test_persons_that_were_not_found_in_time() -> None:
    variables = Variables("age", 0, 99, {"sex": ("f", "m"), "race": tuple("abcdef")})
    statistics = (
        Statistic("all", {}, 25, Decimal(40), Decimal("41.3")),
        Statistic("f", {"sex": "f"}, 12, Decimal(35), Decimal("36.2")),
        Statistic("a", {"race": "a"}, 9, Decimal(50), Decimal("47.7")),
    )
    target = GroupStatistics("statistics", variables, {"here": statistics}, "whole years")
    first, *rest = found(target, TINY)
    assert first.success == Rate(0, 1)
    assert not [each for each in rest if each.partial is None]
    assert first.partial is not None
    assert "1 of 1 places" in first.partial


def test_persons_that_contradict_are_named_as_far_as_time_lets() -> None:
    variables = Variables("age", 0, 99, {"sex": ("f", "m")})
    wrong = [
        Statistic("all", {}, 2, mean=Decimal(30)),
        Statistic("f", {"sex": "f"}, 3),
        Statistic("m", {"sex": "m"}, 1),
    ]
    with pytest.raises(InvalidTables, match="contradict each other") as caught:
        reconstruct_persons(variables, wrong)
    assert caught.value.what.endswith("contradict each other: f")
    assert caught.value.why == "no 2 persons have all of them (none of them can be left out)"
    with pytest.raises(InvalidTables) as hasty:
        reconstruct_persons(variables, wrong, seconds=1e-9)
    assert "time ended" in hasty.value.why


def test_a_search_for_the_smallest_conflict_ends() -> None:
    values = HARD.of(PEOPLE[0])
    values[0] += 1
    bounded = BoundedEquations.counts(HARD, values, None)
    hasty = smallest_conflict(bounded, seconds=1e-9)
    assert hasty.kind == "unfinished"
    assert len(hasty.rows) == HARD.rows
    assert hasty.named(str(row) for row in hasty.rows).endswith(f"and {HARD.rows - 12} more")
    patient = smallest_conflict(bounded, seconds=30.0)
    assert patient.kind in ("minimal", "smallest")
    assert len(patient.rows) < 20
    kept = HARD.only(np.array(patient.rows))
    with pytest.raises(InvalidTables):
        list(reconstruct(kept, values[list(patient.rows)], impossible=~(kept.matrix > 0).toarray().any(axis=0)))


def test_what_no_solver_tells_leaves_a_conflict_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = Equations.of_matrix(np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]))  # only a solver sees that these contradict
    bounded = BoundedEquations.counts(odd, np.array([1, 1, 1]), None)
    assert smallest_conflict(bounded).kind == "smallest"
    monkeypatch.setattr(solving, "first_solution", lambda *_, **__: ("unknown", None))
    assert smallest_conflict(bounded).kind == "unfinished"


def test_ranges_stop_when_their_time_is_over() -> None:
    values = HARD.of(PEOPLE[0])
    bounds = np.zeros(HARD.size, dtype=np.int64), np.full(HARD.size, 20)
    least, largest, proved = ranges(HARD, (values, values), bounds, known=PEOPLE[:1], seconds=TINY)
    assert not proved
    assert np.array_equal(least, bounds[0])
    assert np.array_equal(largest, bounds[1])


@pytest.mark.parametrize("state", ["UNKNOWN", "MODEL_INVALID"])
def test_highs_is_asked_where_the_first_solver_does_not_answer(monkeypatch: pytest.MonkeyPatch, state: str) -> None:
    from ortools.sat.python import cp_model

    answer: Any = getattr(cp_model, state)
    monkeypatch.setattr(cp_model.CpSolver, "solve", lambda *_, **__: answer)
    monkeypatch.setattr(solving, "MOST_STEPS", 0)
    small = Equations.of_workload(marginals((3, 3), 1))
    truth = np.arange(9)
    (solved,) = reconstruct(small, small.of(truth), variability=False)
    assert solved.counts is not None
    assert np.array_equal(small.of(solved.counts), small.of(truth))
    assert not solved.proved
    assert (solved.least <= truth).all()
    (open_end,) = reconstruct(small, small.of(truth))
    assert open_end.variability is not None
    assert not open_end.proved


def test_a_model_that_the_first_solver_cannot_hold_is_given_to_the_second() -> None:
    # Bounds whose sums go beyond 64 bits: CP-SAT calls the model invalid.
    equations = Equations.of_matrix(np.array([[2**20, 2**20, 1]]))
    wide = np.zeros(3, dtype=np.int64), np.full(3, 2**43)
    values = np.array([3 * 2**20 + 5])
    state, solution = first_solution(equations, (values, values), wide, seconds=60.0)
    assert state == "found"
    assert solution is not None
    assert np.array_equal(equations.matrix @ solution, values)


def test_what_neither_solver_tells_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "MOST_STEPS", 0)
    monkeypatch.setattr(reconstruction, "first_solution", lambda *_, **__: ("unknown", None))
    (open_place, _) = reconstruct(HARD, HARD.of(PEOPLE))
    assert open_place.counts is None
    assert open_place.right(PEOPLE[0]) == 0


@pytest.mark.parametrize(("successes", "low", "high"), [(0, 0.0, 1 - 0.025**0.1), (10, 0.025**0.1, 1.0)])
def test_a_risk_of_nothing_or_everything_has_an_interval_on_one_side(successes: int, low: float, high: float) -> None:
    assert Rate(successes, 10).interval() == pytest.approx((low, high))


def test_many_lists_of_persons_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    variables = Variables("age", 0, 99, {"sex": ("f", "m")})
    statistics = [Statistic("all", {}, 2)]
    monkeypatch.setattr(time, "monotonic", partial(next, count(0.0, 1.0)))  # every look at it takes a second
    found = reconstruct_persons(variables, statistics, seconds=0.5)
    assert not found.complete
    assert 1 <= len(found.solutions) <= 5
