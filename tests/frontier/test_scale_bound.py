"""The bound for counts and amounts side by side: no rows that count and add up err less, at any loss and scales."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualmandate.frontier import frontier_of, scale_bound, split
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC, LAPLACE, NoiseLaw, NoiseMechanism, optimize_strategy
from dualmandate.mechanism.mechanism import loss_power
from dualmandate.mechanism.strategy.least_error import amount_steps
from dualmandate.population import Domain, Neighbors, Protection
from dualmandate.workload import Identity, Table, Total, Workload
from dualmandate.workload.factor import Row

ADDING = Protection()
STEPS = 20


def mixed(regions: int = 2, steps: int = STEPS, low: int = 0) -> Workload:
    """People by region, and the total of an amount by region."""
    levels = steps + 1
    amounts = Row(np.arange(low, low + levels))
    people = Table("people", (Identity(regions), Total(levels)))
    return Workload(Domain.of_shape((regions, levels)), (people, Table("amounts", (Identity(regions), amounts))))


def least_variance(rows: np.ndarray, losses: np.ndarray, law: NoiseLaw, gram: np.ndarray) -> float:
    """tr(V·X⁻¹) of the best linear unbiased answers from whole-number rows, each with a loss of its own."""
    precision = np.array([1.0 / law.variance(float(loss)) for loss in losses])
    return float(np.trace(gram @ np.linalg.pinv(rows.T @ (precision[:, None] * rows))))


@pytest.mark.parametrize("low", [0, -8, 15])
@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC, GAUSSIAN])
def test_no_rows_that_count_and_add_up_err_less(law: NoiseLaw, low: int) -> None:
    """Rows α + β·amount with whole numbers, in two regions, at the scales that use the whole loss."""
    generator = np.random.default_rng(11)
    workload = mixed(low=low)
    ends = np.array([low, low + STEPS])
    # Coordinates of a row: what it takes of the people and of the amount of each region.
    columns = np.concatenate([np.array([[1, 1, 0, 0], [*ends, 0, 0]]), np.array([[0, 0, 1, 1], [0, 0, *ends]])])
    power, closest = loss_power(law.privacy_measure), math.inf
    for _ in range(250):
        values = {"people": float(10 ** generator.uniform(-2, 3)), "amounts": float(10 ** generator.uniform(-3, 1))}
        bound = scale_bound(workload, law, ADDING, values)
        gram = np.diag([values["people"], values["amounts"]] * 2)
        loss = float(generator.choice([0.05, 0.8, 3.0, 9.0, 20.0]))
        shifts = np.array([[1, 0], [0, 1], [-low, 1], [low + STEPS, -1], [-(low + STEPS // 2), 1]])
        chosen = shifts[generator.choice(5, size=int(generator.integers(2, 4)), replace=False)]
        rows = np.kron(np.eye(2, dtype=np.int64), chosen)
        weights = np.tile(10 ** generator.uniform(-3, 0, size=len(chosen)), 2)
        moved = np.max(weights @ np.abs(rows @ columns) ** power)
        found = least_variance(rows, weights * loss / moved, law, gram)
        if np.linalg.matrix_rank(chosen) == 2:
            closest = min(closest, found / bound.at(loss))
    assert 1.0 - 1e-9 <= closest < 2.0


def test_a_count_alone_and_a_sum_alone_are_met() -> None:
    """One number each: geometric noise on a count; on a sum of many steps, noise that is as good as continuous."""
    for law in (GEOMETRIC, GAUSSIAN, LAPLACE):
        for loss in (0.1, 1.0, 4.0):
            people = mixed(1).only(["people"])
            assert scale_bound(people, law, ADDING).at(loss) == pytest.approx(law.variance(loss))
    amounts = mixed(3, 1_000).only(["amounts"])
    plain = frontier_of(NoiseMechanism(GEOMETRIC), amounts)
    bound = scale_bound(amounts, GEOMETRIC, ADDING)
    for loss in (0.1, 1.0, 3.0):
        assert bound.at(loss) == pytest.approx(plain.expected_squared_error(loss), rel=1e-4)
    # Far out, counting people precisely and adding up what is above half the bound is better: (1 + ψ^⅓)³/4.
    relative = GEOMETRIC.variance(20.0) * 20.0**2 / 2
    shown = bound.at(20.0) / plain.expected_squared_error(20.0)
    assert shown == pytest.approx((1 + math.cbrt(relative)) ** 3 / 4, rel=1e-2)
    assert "count people and add up their amounts" in bound.valid_for


def test_the_bound_for_any_rows_is_lower_and_says_so() -> None:
    own, every = (scale_bound(mixed(), GEOMETRIC, ADDING, any_rows=any_rows) for any_rows in (False, True))
    assert every.at(6.0) < 0.5 * own.at(6.0)
    assert every.valid_for == "every matrix mechanism with geometric noise on a strategy of whole numbers"
    assert scale_bound(mixed(), LAPLACE, ADDING).valid_for == "every matrix mechanism with laplace noise"


def test_a_worthless_table_and_units_of_several_records() -> None:
    twice = Protection(most_records_per_unit=2, identifier="id")
    for law in (GEOMETRIC, GAUSSIAN):
        whole = scale_bound(mixed(), law, ADDING)
        shared = scale_bound(mixed(), law, twice)
        assert shared.at(3.0) == pytest.approx(whole.at(3.0 / 2 ** loss_power(law.privacy_measure)))
        people = scale_bound(mixed(), law, ADDING, {"people": 5.0, "amounts": 0.0})
        assert people.at(2.0) == pytest.approx(5 * 2 * law.variance(2.0))
    replacing = scale_bound(mixed(), GEOMETRIC, Protection(neighbors=Neighbors.REPLACE_ONE))
    assert 0 < replacing.at(1.0) < frontier_of(NoiseMechanism(GEOMETRIC), mixed()).expected_squared_error(1.0)


def test_an_amount_and_what_is_left_to_its_bound_cost_one_sensitivity() -> None:
    """A record moves Σx and Σ(U − x) by U together, and people are their sum: U² + 2 against (1 + U^⅔)³."""
    steps, worth = 100, {"people": 1.0, "amounts": 1.0}
    workload = mixed(3, steps)
    strategy = optimize_strategy(workload, values=worth)
    assert strategy.error_coefficient == pytest.approx(3 * (steps**2 + 2), rel=1e-6)
    assert strategy.exact.error_coefficient(ADDING) == pytest.approx(3 * (steps**2 + 2), rel=2e-3)
    counted = strategy.exact.count(np.eye(3, steps + 1, 40, dtype=np.int64))
    assert sorted(counted[counted != 0].tolist()) == sorted([40, 60, 41, 59, 42, 58])
    apart = split([frontier_of(NoiseMechanism(LAPLACE), workload.only([name])) for name in worth])
    together = strategy.error_coefficient * LAPLACE.variance(1.0)
    assert apart.expected_squared_error(1.0) == pytest.approx(2 * 3 * (1 + steps ** (2 / 3)) ** 3)
    assert together < 0.9 * apart.expected_squared_error(1.0)


def test_levels_between_the_ends_change_nothing() -> None:
    """A certified optimum: 2 levels of an amount and 41 have the same strategy and bound."""
    for noise in ("gaussian", "laplace"):
        few, many = (optimize_strategy(w, noise) for w in (_scaled(1), _scaled(40)))
        assert many.lower_bound == pytest.approx(few.lower_bound, rel=1e-6)
        assert many.error_coefficient == pytest.approx(few.error_coefficient, rel=1e-6)
    assert amount_steps(mixed()) == {1: STEPS}
    assert amount_steps(mixed(steps=1)) == {}


def _scaled(steps: int) -> Workload:
    levels = np.arange(steps + 1) * (40 // steps)
    people = Table("people", (Identity(2), Total(steps + 1)))
    return Workload(Domain.of_shape((2, steps + 1)), (people, Table("amounts", (Identity(2), Row(levels)))))
