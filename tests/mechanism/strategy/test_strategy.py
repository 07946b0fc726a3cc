"""The promise of a strategy against matrices written out, simulation, and the numbers of others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.mechanism.strategy.reference import coefficients, row_weights, written_out

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism import Strategy, optimize_strategy
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.population import Attribute, Domain
from dualmandate.population.domain import StructuralZero
from dualmandate.workload import (
    Identity,
    Prefix,
    Table,
    Total,
    Workload,
    all_range,
    explicit,
    groups,
    identity,
    kron,
    marginals,
    prefix,
    stack,
    total,
)

NOISES: tuple[NoiseName, ...] = ("laplace", "gaussian")


def one_way(shape: tuple[int, ...], ordered: int) -> Workload:
    """One table an attribute, prefix sums on the first few."""
    tables = [
        Table(
            f"by {axis}",
            tuple(
                (Prefix(n) if axis < ordered else Identity(n)) if place == axis else Total(n)
                for place, n in enumerate(shape)
            ),
        )
        for axis in range(len(shape))
    ]
    return Workload(Domain.of_shape(shape), tuple(tables))


def married() -> Workload:
    """Ages by marriage, where the youngest cannot be married."""
    domain = Domain(
        (Attribute("age", ("0", "1", "2", "3")), Attribute("married", ("no", "yes"))),
        structural_zeros=(StructuralZero.of({"age": ("0", "1"), "married": "yes"}),),
    )
    return Workload(domain, (Table("ages", (Prefix(4), Identity(2))), Table("all", (Total(4), Total(2)))))


SMALL = {
    "prefix": prefix(9),
    "ranges and cells": stack(all_range(7), identity(7), weights=["1/2", 3]),
    "identity and total": stack(identity(6), total(6)),
    "one query": total(5),
    "overlapping groups": groups(12, [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 0]]),
    "cells that nobody asks about": groups(6, [[1, 2], [2, 3]]),
    "signed": explicit([[1, -1, 0, 2], [0, 1, 1, -1]]),
    "product": kron(prefix(4), stack(identity(3), total(3)), total(2)),
    "attribute of size 1": kron(prefix(4), identity(1)),
    "equal sizes, different queries": kron(prefix(4), identity(4)),
    "marginals": marginals((3, 2, 4), (1, 2)),
    "weighted marginals": stack(marginals((3, 2, 4), 1), marginals((3, 2, 4), 3), weights=[5, "1/3"]),
    "sums and counts": one_way((4, 3, 3, 2), 1),
    "two ordered attributes": one_way((4, 5, 3), 2),
    "a pair of axes around a third": kron(prefix(3), one_way((3, 2), 1)),
    "a third between a pair": kron(one_way((3, 2), 1), prefix(3)),
    "all marginals": marginals((3, 2, 4), (0, 1, 2, 3)),
    "structural zeros": married(),
}


def possible(workload: Workload) -> NDArray[np.bool_]:
    mask = np.ones(workload.domain.shape, dtype=np.bool_)
    if workload.domain.structural_zeros:
        mask[:2, 1] = False
    return mask.reshape(-1)


@pytest.fixture(scope="module")
def found() -> dict[tuple[str, NoiseName], Strategy]:
    return {(name, noise): optimize_strategy(SMALL[name], noise) for name in SMALL for noise in NOISES}


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("name", SMALL)
class TestAgainstMatrices:
    def test_sensitivity_is_that_of_the_rows_measured(
        self, found: dict[tuple[str, NoiseName], Strategy], name: str, noise: NoiseName
    ) -> None:
        strategy = found[name, noise]
        columns = written_out(strategy)[:, possible(strategy.workload)]
        largest = np.linalg.norm(columns, ord=1 if noise == "laplace" else 2, axis=0).max()
        assert largest == pytest.approx(1.0, rel=1e-9)
        assert strategy.sensitivity == pytest.approx(largest, rel=1e-9)

    def test_error_is_that_of_the_pseudo_inverse(
        self, found: dict[tuple[str, NoiseName], Strategy], name: str, noise: NoiseName
    ) -> None:
        strategy = found[name, noise]
        mask = possible(strategy.workload)
        queries = strategy.workload.dense()[:, mask]
        matrix = written_out(strategy)[:, mask]
        inverse = queries @ np.linalg.pinv(matrix, rcond=1e-10)
        np.testing.assert_allclose(inverse @ matrix, queries, atol=1e-8)
        assert strategy.error_coefficient == pytest.approx(np.square(inverse).sum(), rel=1e-7)

    def test_answers_come_back_and_carry_least_squares(
        self, found: dict[tuple[str, NoiseName], Strategy], name: str, noise: NoiseName
    ) -> None:
        strategy = found[name, noise]
        mask = possible(strategy.workload)
        counts = np.where(mask, np.arange(1, strategy.workload.domain.size + 1) % 7, 0)
        exact, queries = strategy.exact, strategy.workload.dense()[:, mask]
        measured = exact.count(counts)
        assert measured.shape == (exact.rows,)
        np.testing.assert_allclose(exact.reconstruct(measured), strategy.workload.answers(counts), atol=1e-8)
        rows = np.stack([exact.count(cell) for cell in np.eye(len(mask))[mask]], axis=1) * row_weights(exact)[:, None]
        inverse, bumps = queries @ np.linalg.pinv(rows, rcond=1e-10), np.cos(np.arange(exact.rows))
        np.testing.assert_allclose(exact.reconstruct(bumps / row_weights(exact)), inverse @ bumps, atol=1e-7)
        each = np.concatenate([exact.query_variances(t.name, lambda _: 1.0) for t in strategy.workload.tables])
        np.testing.assert_allclose(each, np.square(inverse).sum(axis=1), rtol=1e-6, atol=1e-12)

    def test_nothing_is_below_the_bound(
        self, found: dict[tuple[str, NoiseName], Strategy], name: str, noise: NoiseName
    ) -> None:
        strategy = found[name, noise]
        assert 0 < strategy.lower_bound <= strategy.error_coefficient
        gaussian = found[name, "gaussian"]
        assert strategy.error_coefficient >= gaussian.lower_bound * (1 - 1e-12)
        if noise == "gaussian":
            assert strategy.error_coefficient <= strategy.lower_bound * (1 + 1e-6)
        matrix = SMALL[name].dense()[:, possible(SMALL[name])]
        asked = np.count_nonzero(np.abs(matrix).sum(axis=0))
        svd = np.linalg.svd(matrix, compute_uv=False).sum() ** 2 / asked
        assert gaussian.error_coefficient >= svd * (1 - 1e-9)

    def test_it_beats_what_anybody_would_do(
        self, found: dict[tuple[str, NoiseName], Strategy], name: str, noise: NoiseName
    ) -> None:
        matrix = SMALL[name].dense()[:, possible(SMALL[name])]
        direct = np.linalg.norm(matrix, ord=1 if noise == "laplace" else 2, axis=0).max() ** 2 * len(matrix)
        least = min(direct, np.square(matrix).sum())
        assert found[name, noise].error_coefficient <= least * (1 + 1e-9)


def test_error_in_simulation(generator: np.random.Generator) -> None:
    workload = one_way((4, 3, 3), 1)
    for noise in NOISES:
        strategy = optimize_strategy(workload, noise)
        draw = generator.laplace if noise == "laplace" else generator.normal
        scale = 1.0 / math.sqrt(2.0) if noise == "laplace" else 1.0
        exact, weights = strategy.exact, row_weights(strategy.exact)
        errors = np.array([exact.reconstruct(draw(0.0, scale, exact.rows) / weights) for _ in range(4000)])
        assert np.square(errors).sum(axis=1).mean() == pytest.approx(strategy.error_coefficient, rel=0.05)
        each = np.concatenate([coefficients(strategy, table.name) for table in workload.tables])
        np.testing.assert_allclose(np.square(errors).mean(axis=0), each, rtol=0.2)


def test_the_reduced_problem_is_the_whole_one() -> None:
    """Cells split into three alike each, and dense queries without structure, change nothing."""
    split = explicit(np.repeat(prefix(5).dense(), 3, axis=1).astype(np.int64))
    plain = explicit(one_way((3, 4, 2), 1).dense().astype(np.int64))
    for noise in NOISES:
        whole = optimize_strategy(prefix(5), noise).error_coefficient
        assert optimize_strategy(split, noise).error_coefficient == pytest.approx(whole, rel=1e-6)
    reduced = optimize_strategy(one_way((3, 4, 2), 1), "gaussian").error_coefficient
    assert optimize_strategy(plain, "gaussian").error_coefficient == pytest.approx(reduced, rel=1e-6)


@pytest.mark.parametrize("noise", NOISES)
def test_the_same_workload_gives_the_same_strategy(noise: NoiseName) -> None:
    for workload in (prefix(20), marginals((3, 4, 2), 2)):
        first, second = (optimize_strategy(workload, noise) for _ in range(2))
        assert first.error_coefficient == second.error_coefficient
        np.testing.assert_array_equal(written_out(first), written_out(second))


def test_weights_are_what_squared_errors_cost() -> None:
    cheap, dear = (stack(identity(8), total(8), weights=[1, weight]) for weight in (1, 20))
    totals = [coefficients(optimize_strategy(each), "total")[0] for each in (cheap, dear)]
    assert totals[1] / 400 < totals[0] / 2


def test_words() -> None:
    product = optimize_strategy(kron(prefix(4), stack(identity(3), total(3))), "gaussian")
    assert product.description.startswith("all combinations of (axis0: 4 weighted sums of 4 cells")
    assert "closed form" in product.description
    assert "above the best possible (the dual" in product.gap or "optimal" in product.gap
    assert "optimal: equal to the bound" in optimize_strategy(marginals((3, 2), 1), "gaussian").gap
    assert "not known to be reached with laplace noise" in optimize_strategy(prefix(6)).gap


def test_refusals() -> None:
    with pytest.raises(InvalidMechanism, match="a strategy for staircase noise"):
        optimize_strategy(prefix(4), "staircase")  # type: ignore[arg-type]
    with pytest.raises(TooLarge, match="laplace noise on 3,600 cells"):
        optimize_strategy(stack(kron(prefix(60), prefix(60)), kron(all_range(60), total(60))))
    with pytest.raises(TooLarge, match="an optimal strategy for"):
        optimize_strategy(stack(kron(prefix(60), prefix(60)), kron(all_range(60), total(60))), "gaussian")
    with pytest.raises(TooLarge, match="levels that queries tell apart"):
        optimize_strategy(stack(kron(prefix(9000), total(4)), kron(total(9000), prefix(4))), "gaussian")
    with pytest.raises(InvalidWorkload, match="zero on every cell"):
        optimize_strategy(explicit([[0, 0, 0]]), "gaussian")
    exact = optimize_strategy(prefix(4)).exact
    with pytest.raises(InvalidWorkload, match="counts of shape"):
        exact.count(np.ones(5))
    with pytest.raises(InvalidWorkload, match="numbers were given for"):
        exact.reconstruct(np.ones(exact.rows + 1))
    with pytest.raises(TooLarge, match=r"an estimate of 1e\+12 cells"):
        optimize_strategy(marginals((100,) * 6, 1), "gaussian").exact.count(np.ones(1))
