from __future__ import annotations

import numpy as np
import pytest
from tests.benchmarks.work import missed

from dualmandate.benchmarks import preferences
from dualmandate.benchmarks.preferences import Experiment, covered
from dualmandate.elicitation import ChoiceData, ParameterEstimates

LITTLE = Experiment(people=40, tasks=2, alternatives=3, means=(1.0, -0.5), spreads=(0.5, 0.0))


def test_an_experiment_is_as_described() -> None:
    data = LITTLE.answers(np.random.default_rng(1))
    assert (data.people, data.tasks, len(data.chosen)) == (40, 80, 240)
    assert data.chosen.reshape(80, 3).sum(axis=1).tolist() == [1] * 80
    assert set(data.attributes[:, 0]) == {-1, 0, 1}
    assert set(data.attributes[:, 1]) == {1, 2, 3, 4}
    assert LITTLE.random == ("attribute 1",)
    assert LITTLE.truth == {"attribute 1": 1.0, "price": -0.5, "standard deviation of attribute 1": 0.5}
    columns = dict(zip(data.names, data.attributes.T, strict=True))
    again = ChoiceData.of_columns(columns, chosen=data.chosen, task=data.task, respondent=data.respondent)
    assert (again.attributes == data.attributes).all()


def test_tastes_move_choices() -> None:
    """In pairs that differ in price only, P(cheaper) = 1/(1 + e^(−½·difference))."""
    pairs = Experiment(people=20_000, tasks=1, alternatives=2, means=(-0.5,), spreads=(0.0,))
    data = pairs.answers(np.random.default_rng(2))
    price = data.attributes.reshape(-1, 2)
    first = data.chosen.reshape(-1, 2)[:, 0]
    for difference in (1, 2, 3):
        cheaper = price[:, 1] - price[:, 0] == difference
        share = first[cheaper].mean()
        assert share == pytest.approx(1 / (1 + np.exp(-0.5 * difference)), abs=4 * 0.5 / np.sqrt(cheaper.sum()))


def test_coverage_counts_intervals_that_hold() -> None:
    shift = iter(range(10))

    def estimate(data: ChoiceData) -> ParameterEstimates:
        names, off = tuple(LITTLE.truth), 0.1 * next(shift)
        return ParameterEstimates(names, np.array([*LITTLE.truth.values()]) + off, np.eye(3) * 0.25**2, -1.0, 1, 1)

    shares = covered(LITTLE, estimate, replications=10, seed=1)
    assert shares == dict.fromkeys(LITTLE.truth, 0.5)  # 1.96 · 0.25 = 0.49: of 0, 0.1, …, 0.9 five are nearer


def test_a_missing_peer_leaves_its_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = preferences.FitTime("ours", [2.0, 1.0, 9.0], [0.0])
    monkeypatch.setattr(preferences, "_fitted", lambda side, times: fitted if side is preferences.fit_ours else None)
    rows = preferences.rows(lambda _: None, replications=2)
    assert [row.ours for row in rows][:1] == [2.0]
    assert {row.peer for row in rows} == {None}
    assert len(rows) == 3


def test_answers_are_judged_by_one_likelihood() -> None:
    truth = list(preferences.LARGE.truth.values())
    zeros = [0.0] * len(truth)
    assert preferences.judged(zeros) == pytest.approx(-3_152 * np.log(4))
    assert preferences.judged(truth) > -3_500


@pytest.mark.slow
def test_the_targets_are_met_on_reduced_sizes() -> None:
    rows = preferences.rows(lambda _: None, replications=100, times=1)
    assert missed(rows) == []
    assert len(rows) == 5
    assert str(rows[0].peer).startswith("xlogit ")
    assert (rows[0].ratio or 0) > 3
