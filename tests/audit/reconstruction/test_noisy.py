"""Records from noisy tables: the fit against a convex solver, never worse than guessing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from dualmandate.audit.finding import Rate
from dualmandate.audit.reconstruction.noisy import (
    NoisyTablesAttack,
    least_absolute,
    most_likely,
    never_below_guessing,
    tables_with_noise,
    whole_records,
)
from dualmandate.audit.tables import Equations, boxed
from dualmandate.benchmarks.generated_blocks import blocks, tables
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import GEOMETRIC
from dualmandate.workload import marginals

SMALL = Equations.of_workload(marginals((2, 3), [0, 1]))
Floats = NDArray[np.float64]


def as_floats(counts: NDArray[np.int64]) -> Floats:
    return SMALL.of(counts).astype(np.float64)


def objective(x: Floats, published: Floats, scales: Floats, expected: Floats) -> float:
    misfit = np.abs(SMALL.matrix @ x - published) / scales
    return float(misfit.sum() + (x * np.log(x / expected) - x + expected).sum())


@pytest.mark.parametrize("scale", [0.3, 2.0, 50.0])
def test_no_counts_are_more_likely(scale: float) -> None:
    generator = np.random.default_rng(1)
    expected = generator.uniform(1, 6, 6)
    published = SMALL.of(generator.integers(0, 9, 6)) + generator.laplace(0, scale, SMALL.rows)
    scales = np.full(SMALL.rows, scale)
    found = most_likely(SMALL, published[None], scales=scales, expected=expected[None], sweeps=5000)[0]
    best = min(
        minimize(
            lambda logs: objective(np.exp(logs), published, scales, expected),
            np.log(start),
            method="Nelder-Mead",
            options={"maxiter": 20_000, "maxfev": 20_000, "fatol": 1e-12, "xatol": 1e-10},
        ).fun
        for start in (found, expected)
    )
    assert objective(found, published, scales, expected) <= best + 1e-5


def test_exact_tables_are_fitted_in_proportion() -> None:
    truth = np.array([3, 1, 4, 1, 5, 9])
    found = most_likely(
        SMALL, as_floats(truth)[None], scales=np.zeros(SMALL.rows), expected=np.ones((1, 6)), sweeps=999
    )
    assert (SMALL.matrix @ found[0]).tolist() == pytest.approx(SMALL.of(truth).tolist(), rel=1e-6)
    rows, columns = truth.reshape(2, 3).sum(axis=1), truth.reshape(2, 3).sum(axis=0)
    assert found[0].tolist() == pytest.approx((np.outer(rows, columns) / truth.sum()).reshape(-1).tolist(), rel=1e-6)


def test_nothing_but_noise_leaves_what_was_expected() -> None:
    expected = np.array([[2.0, 3.0, 0.0, 1.0, 1.0, 4.0]])
    found = most_likely(SMALL, np.full((1, SMALL.rows), 500.0), scales=np.full(SMALL.rows, 1e9), expected=expected)
    assert found[0].tolist() == pytest.approx(expected[0].tolist())
    negative = most_likely(SMALL, np.full((1, SMALL.rows), -5.0), scales=np.full(SMALL.rows, 1.0), expected=expected)
    assert (negative >= 0).all()
    assert negative[0].sum() < expected.sum()
    with pytest.raises(InvalidRequest):
        most_likely(Equations.of_matrix([[2, 1]]), np.ones((1, 1)), scales=np.ones(1), expected=np.ones((1, 2)))


def test_linear_programs_fit_exact_tables() -> None:
    truth = np.array([3, 1, 4, 1, 5, 9])
    found = least_absolute(SMALL, as_floats(truth), scales=np.ones(SMALL.rows))
    assert (SMALL.matrix @ found).tolist() == pytest.approx(SMALL.of(truth).tolist())


def agreement(found: NDArray[Any], truth: NDArray[Any]) -> float:
    return float(np.minimum(found, truth).sum() / truth.sum())


def test_false_records_cost_precision_and_guessers_do_not_move_with_the_noise() -> None:
    """A file of three times as many records as there are has no more of them right at the true size."""
    truth = blocks(30, seed=3)
    equations, domain = Equations.of_workload(tables()), tables().domain
    exact = equations.of(truth).astype(np.float64)
    baselines, shares = set(), list[float]()
    for times in (1, 3):
        target = tables_with_noise(
            "blocks", equations, times * exact, np.zeros(equations.rows), domain,
            protection="", prior="all", truths={"synthetic": boxed(truth)},
        )  # fmt: skip
        right, precision, recall = (each.success for each in NoisyTablesAttack().run(target, b"key"))
        baselines.add(NoisyTablesAttack().run(target, b"key")[0].baselines)
        assert isinstance(right, Rate)
        assert isinstance(precision, Rate)
        assert isinstance(recall, Rate)
        assert right.trials == recall.trials == truth.sum()
        assert precision.trials == times * truth.sum()
        assert abs(right.value - (precision.value if times == 1 else right.value)) < 0.01
        assert precision.value <= (recall.value / times) + 1e-6
        assert right.value > 0.8
        shares.append(recall.value)
    assert shares[1] > 0.95  # of three times as many records nearly all true ones are there
    assert len(baselines) == 1


def test_attacks_on_noisy_blocks_never_do_worse_than_guessing() -> None:
    workload = tables()
    equations = Equations.of_workload(workload)
    everybody = blocks(400, seed=11)
    truth, others = everybody[:40], everybody[40:]
    prior = others.mean(axis=0) + 1e-3
    generator = np.random.default_rng(3)
    found = {}
    for epsilon in (0.25, 1.0, 4.0, 16.0, 64.0):
        law = GEOMETRIC.at(epsilon / len(workload.tables))
        noisy = equations.of(truth) + law.draw(generator, (len(truth), equations.rows))
        scales = np.full(equations.rows, law.mean_absolute)
        guess = most_likely(equations, noisy, scales=scales, expected=np.repeat(prior[None], len(truth), axis=0))
        attacked = np.mean(
            [agreement(whole_records(own, total=int(t.sum())), t) for own, t in zip(guess, truth, strict=True)]
        )
        guessed = np.mean([agreement(prior * t.sum() / prior.sum(), t) for t in truth])
        found[epsilon] = float(attacked)
        assert attacked >= guessed - 0.02
    assert found[64.0] > 0.85  # hardly any noise: as from exact tables
    assert found[0.25] < guessed + 0.1  # hardly anything but noise: as without tables
    assert list(found.values()) == sorted(found.values())


def test_whole_records_keep_the_total() -> None:
    assert whole_records(np.array([0.4, 0.6, 1.9])).tolist() == [0, 1, 2]
    draws = np.random.default_rng(1)
    alike = np.sum([whole_records(np.full(4, 0.5), draws=draws) for _ in range(400)], axis=0)
    assert alike.sum() == 800
    assert np.all(np.abs(alike - 200) < 50)  # of equal remainders, which is drawn
    assert whole_records(np.array([0.4, 0.6, 1.9]), total=5).sum() == 5
    assert whole_records(np.array([3.2, 0.1]), total=1).tolist() == [1, 0]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    st.sampled_from([((2, 3), (0, 1)), ((2, 2, 3), (1, 2)), ((3, 4), (0, 1, 2)), ((6,), (0, 1))]),
    st.sampled_from([3.0, 30.0, 300.0]),
    st.sampled_from([0.1, 0.5, 1.0, 2.0, 8.0]),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_the_attack_is_never_reported_below_the_guess(
    tables: tuple[tuple[int, ...], tuple[int, ...]], size: float, epsilon: float, right: bool, seed: int
) -> None:
    """On average over places the fit is not below the guess; of single ones it can be, and the guess then counts."""
    workload = marginals(tables[0], list(tables[1]))
    equations, generator = Equations.of_workload(workload), np.random.default_rng(seed)
    cells, places = workload.domain.size, 40
    expected = generator.dirichlet(np.full(cells, 0.5), places) * size + 1e-9
    drawn = expected if right else generator.dirichlet(np.full(cells, 0.5), places) * size
    truth = generator.poisson(drawn)
    law = GEOMETRIC.at(epsilon / len(workload.tables))
    noisy = (equations.of(truth) + law.draw(generator, (places, equations.rows))).astype(np.float64)
    scales = np.full(equations.rows, law.mean_absolute)
    found = most_likely(equations, noisy, scales=scales, expected=expected)
    attacked, guessed = (float(np.minimum(each, truth).sum()) for each in (found, expected))
    assert attacked >= guessed - 0.02 * max(truth.sum(), 50)
    for own, belief, true in zip(found, expected, truth, strict=True):
        reported, better = never_below_guessing(own, belief, true)
        assert reported >= float(np.minimum(belief, true).sum())
        assert reported == (float(np.minimum(own, true).sum()) if better else float(np.minimum(belief, true).sum()))
