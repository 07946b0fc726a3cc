"""Published numbers hidden for a test, like the suppressed ones in all that is public; and the attack over time."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dualmandate.audit.finding import Rate
from dualmandate.audit.options import Effort
from dualmandate.audit.suppression.cells import tree_relations
from dualmandate.audit.suppression.series import HiddenSeries, HoldOut, Series, SeriesAttack, SeriesPart, draw_trials
from dualmandate.audit.tables import boxed
from dualmandate.benchmarks import qcew

TABLES = qcew.generated(2)
VARIABLE = qcew.VARIABLES[2]


def drawn(series: Series, *, count: int = 60, seed: int = 1) -> HoldOut:
    return draw_trials([series], np.random.default_rng(seed), count=count)


def part(series: Series, *, truth: bool = False) -> SeriesPart:
    truths = {"confidential": boxed(series.values)} if truth else {}
    return SeriesPart(series, tree_relations(series.parents), truths)  # type: ignore[arg-type]


def test_trials_are_like_what_is_suppressed() -> None:
    series = TABLES.series(VARIABLE)
    hidden, parents = series.suppressed, series.parents
    found = drawn(series)
    assert found == drawn(series)
    assert found != drawn(series, seed=2)
    assert found.suppressed == hidden.sum()
    shown = ~hidden & (series.values > 0)
    assert found.shown_elsewhere == hidden[shown.any(axis=1)].sum()
    cells = [trial.cell for trial in found.trials]
    assert len(cells) == len(set(cells))
    assert len([trial for trial in found.trials if not trial.seen]) == 60
    patterns = {tuple(np.flatnonzero(~each).tolist()) for each in shown[hidden.any(axis=1)]}
    for trial in found.trials:
        assert trial.hidden in patterns
        assert trial.period in trial.hidden
        assert shown[trial.cell].all()
        siblings = (parents == parents[trial.cell]) & (np.arange(len(parents)) != trial.cell)
        assert hidden[np.ix_(siblings, list(trial.hidden))].any(axis=0).all()
        assert not (parents == trial.cell).any()
        assert trial.seen == (len(trial.hidden) < qcew.QUARTERS)


def test_sizes_are_matched() -> None:
    # One total, a suppressed part of size 2 and its protection; shown parts of sizes 1 to 40: the nearest is taken.
    cells = 44
    parents = np.array([-1, *[0] * (cells - 1)])
    values = np.full((cells, 2), 10)
    values[0] = 10 * (cells - 1)
    hidden = np.zeros((cells, 2), dtype=np.bool_)
    hidden[1:3, 0] = True
    sizes = np.concatenate([[0, 2.2, 30.4, 500], np.arange(1, 41)]).astype(np.float64)
    series = Series(parents, values, hidden, np.repeat(sizes[:, None], 2, axis=1))
    found = drawn(series, count=2)
    assert {int(sizes[trial.cell]) for trial in found.trials} == {2, 30}
    assert all(trial.seen for trial in found.trials)
    assert all(trial.hidden == (0,) for trial in found.trials)
    sizes[[1, 2]] = 80.0  # nothing that is shown is nearly as large, or 12 times as large
    apart = Series(parents, values, hidden, np.repeat(sizes[:, None], 2, axis=1))
    assert not drawn(apart, count=2).trials
    assert drawn(apart, count=2).drawn == (0, 2)
    sizes[2] = 30.4  # one of the two numbers is like a published one
    half = Series(parents, values, hidden, np.repeat(sizes[:, None], 2, axis=1))
    tried = SeriesAttack().run(HiddenSeries("half", (part(half),), ("a", "b")), b"key")[1]
    assert tried.success.trials == 1  # type: ignore[union-attr]
    assert tried.partial == "of 2 suppressed numbers drawn, 1 are like no published one, and say nothing"


def test_nothing_that_is_like_it_is_said() -> None:
    values = np.array([[10, 10], [4, 4], [6, 6]])
    hidden = np.array([[False, False], [True, True], [True, True]])
    series = Series(np.array([-1, 0, 0]), values, hidden, np.ones((3, 2)))
    (shown,) = SeriesAttack().run(HiddenSeries("two", (part(series),), ("a", "b")), b"key")
    assert shown.success == Rate(0, 4)
    assert shown.partial is not None
    assert "nothing was tried" in shown.partial
    open_series = Series(series.parents, values, np.zeros_like(hidden), series.sizes)
    assert SeriesAttack().run(HiddenSeries("open", (part(open_series),), ("a", "b")), b"key") == ()


def test_time_helps_where_another_period_shows_a_cell() -> None:
    target = HiddenSeries("employment", (part(TABLES.series(VARIABLE), truth=True),), ("1", "2", "3", "4"), "firms")
    found = SeriesAttack().run(target, b"key")
    assert found == SeriesAttack(Effort(workers=3)).run(target, b"key")
    by_claim = {finding.claim: finding for finding in found}
    assert len(by_claim) == len(found) == 4
    seen = next(each for claim, each in by_claim.items() if "another period shows" in claim)
    alone = seen.baselines[0].success
    assert isinstance(seen.success, Rate)
    assert isinstance(alone, Rate)
    assert seen.success.value > alone.value + 0.2
    assert "public sizes (firms)" in seen.attacker_knows
    inside = found[-1]
    assert inside.label == "internal"
    assert inside.success.trials == TABLES.suppressed.sum()  # type: ignore[union-attr]
    assert all(finding.label == "public" for finding in found[:-1])


def test_estimates_are_close_by_the_number_itself() -> None:
    # 100 of 200 in the first period; in the second 110 of 220 are suppressed, with another part: the share says 110.
    values = np.array([[200, 220, 240], [100, 110, 120], [60, 66, 72], [40, 44, 48]])
    hidden = np.zeros((4, 3), dtype=np.bool_)
    hidden[1:3, 1] = True
    target = HiddenSeries(
        "line", (part(Series(np.array([-1, 0, 0, 0]), values, hidden, np.ones((4, 3))), truth=True),), ("a",)
    )
    judged = SeriesAttack().run(target, b"key")[-1]
    assert judged.success == Rate(2, 2)
    assert judged.baselines[0].success == Rate(0, 2)


@pytest.mark.parametrize("seconds", [1e-9])
def test_ranges_that_were_not_found_in_time_are_said(seconds: float) -> None:
    from dualmandate.audit.suppression.cells import additive_relations

    inner = np.random.default_rng(3).integers(5, 30, (5, 5))
    table = np.pad(inner, (0, 1))
    table[-1], table[:, -1] = table.sum(axis=0), table.sum(axis=1)
    table[-1, -1] = inner.sum()
    values = np.stack([table.reshape(-1)] * 2, axis=1)
    marks = np.zeros((6, 6), dtype=np.bool_)
    marks[:3, :3] = True
    hidden = np.stack([marks.reshape(-1), np.zeros(36, dtype=np.bool_)], axis=1)
    parents = np.array([-1 if c == 35 else (35 if c % 6 == 5 or c >= 30 else 6 * (c // 6) + 5) for c in range(36)])
    series = Series(parents, values, hidden, np.ones(values.shape))
    target = HiddenSeries("square", (SeriesPart(series, additive_relations((6, 6)), {}),), ("a", "b"))
    late = [each.partial for each in SeriesAttack(Effort(seconds)).run(target, b"key")[1:]]
    assert late
    assert all(words is not None and "left some ranges wide" in words for words in late)
    assert not any("ranges wide" in (each.partial or "") for each in SeriesAttack().run(target, b"key")[1:])


def two_totals() -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Two totals of four parts each in three periods, nothing suppressed: parents, values, marks."""
    parents = np.array([-1, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
    values = np.full((11, 3), 10)
    values[1:3], values[0] = 40, 80
    return parents, values, np.zeros((11, 3), dtype=np.bool_)


def test_a_number_without_a_suppressed_neighbor_is_not_tried() -> None:
    parents, values, marks = two_totals()
    marks[3, 0] = True  # it follows from the others, and no hidden one does
    marks[7:9, 1] = True
    found = drawn(Series(parents, values, marks, np.ones(values.shape)))
    assert {trial.period for trial in found.trials} == {1}


def test_what_is_zero_in_another_period_is_hidden_there() -> None:
    parents, values, marks = two_totals()
    values[[3, 4], 1] = 0
    marks[3:5, 0] = marks[7:9, :2] = True
    found = drawn(Series(parents, values, marks, np.ones(values.shape)))
    assert found.trials
    assert {trial.hidden for trial in found.trials} == {(0, 1)}
    assert {trial.cell for trial in found.trials} == {9, 10}  # among the others nobody is hidden in the second period


def test_totals_are_hidden_or_shown_alike() -> None:
    parents, values, marks = two_totals()
    marks[[1, 3, 4], 0] = True  # with their total
    marks[7:9, :2] = True  # without
    sizes = np.full(values.shape, 2.0)
    sizes[5:7] = 2.5  # the others are nearer in size
    found = drawn(Series(parents, values, marks, sizes))
    assert {trial.cell for trial in found.trials if trial.hidden == (0,)} == {5, 6}
    assert {trial.cell for trial in found.trials if trial.hidden == (0, 1)} == {9, 10}


def test_close_is_measured_by_the_true_number() -> None:
    # A tenth of the total in other periods: the estimate of 952 is 1,000, which is more than 5 % of 952 away.
    values = np.array([[10_000] * 3, [1000, 952, 1000], [9000, 9048, 9000]])
    hidden = np.zeros((3, 3), dtype=np.bool_)
    hidden[1:, 1] = True
    series = Series(np.array([-1, 0, 0]), values, hidden, np.ones((3, 3)))
    judged = SeriesAttack().run(HiddenSeries("line", (part(series, truth=True),), ("a", "b", "c")), b"key")[-1]
    assert judged.success == Rate(1, 2)
