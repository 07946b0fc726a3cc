"""Limits of accuracy: never above what a mechanism of their class reaches, and met where theory says so."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import linprog

from dualmandate.errors import InvalidLoss, InvalidMechanism, TooLarge
from dualmandate.frontier import count_bound, efficiency, frontier_of, matrix_bound, strategy_bound
from dualmandate.frontier.lower_bound import spectrum
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    STAIRCASE,
    MatrixMechanism,
    NoiseLaw,
    gaussian,
    geometric,
    laplace,
    optimize_strategy,
)
from dualmandate.mechanism.technologies import noise_of
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, PrivacyMeasure, Protection, StructuralZero
from dualmandate.workload import (
    Tabulation,
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

ADDING = Protection()
REPLACING = Protection(neighbors=Neighbors.REPLACE_ONE)


def svd_bound(workload: Workload) -> float:
    found = spectrum(workload)
    return found.total**2 / found.columns


@pytest.mark.parametrize(
    ("workload", "published"),
    [
        (prefix(64), 266.4),
        (prefix(256), 1_563.7),
        (all_range(64), 10_787),
        (marginals((75, 16, 5, 2, 20), 1), 397.92),
        (marginals((75, 16, 5, 2, 20), 2), 20_682),
        (marginals((75, 16, 5, 2, 20), 3), 227_818),
        (marginals((75, 16, 5, 2, 20), range(4)), 311_985),
    ],
)
def test_singular_value_bounds_measured_elsewhere(workload: Workload, published: float) -> None:
    assert svd_bound(workload) == pytest.approx(published, rel=5e-5 if published > 300 else 2e-4)


@pytest.mark.parametrize(
    "workload",
    [
        identity(5),
        total(5),
        groups(7, [[0, 1], [3, 4, 5]]),
        groups(6, [[0, 1, 2], [2, 3]]),
        kron(prefix(3), total(2), identity(3)),
        marginals((3, 1, 4), (0, 1, 2)),
        stack(prefix(5), identity(5), weights=[2, "0.5"]),
    ],
)
def test_spectrum_equals_dense_singular_values(workload: Workload) -> None:
    dense = workload.dense()
    values = np.linalg.svd(dense, compute_uv=False)
    found = spectrum(workload)
    assert found.total == pytest.approx(values.sum())
    assert found.largest == pytest.approx(values.max())
    assert found.columns == np.count_nonzero(np.any(dense != 0, axis=0))


def test_structural_zeros_leave_the_spectrum() -> None:
    plain = Domain((Attribute.categories("age", ["young", "old"]), Attribute.categories("work", ["no", "yes"])))
    zero = StructuralZero.of({"age": "young", "work": "yes"})
    holed = Domain(plain.attributes, structural_zeros=(zero,))
    table = Tabulation("cells", by=("age", "work"))
    found = spectrum(Workload.from_tabulations(holed, [table]))
    assert found.total == pytest.approx(3.0)
    assert found.columns == 3
    with pytest.raises(InvalidMechanism, match="structural zeros"):
        count_bound(Workload.from_tabulations(holed, [table]), ADDING)


def test_geometric_noise_on_disjoint_counts_is_efficient_among_all_mechanisms() -> None:
    workload = groups(9, [[0, 1], [2], [5, 6, 7]])
    bound = count_bound(workload, ADDING)
    for epsilon in (0.1, 1.0, 2.44, 8.0):
        assert efficiency(frontier_of(geometric(), workload), bound, epsilon) == pytest.approx(1.0)
        assert efficiency(frontier_of(laplace(), workload), bound, epsilon) < 1.0
    # A unit that may contribute three records moves a count by three.
    thrice = Protection(most_records_per_unit=3, identifier="id")
    assert count_bound(workload, thrice).at(1.0) == pytest.approx(9 * bound.at(1.0))


def best_worst_case(most: int, epsilon: float) -> float:
    """The least largest squared error of an ε-private mechanism for one count from 0 to `most`: a linear program."""
    outputs = np.arange(-1, most + 2)
    width, size = len(outputs), (most + 1) * len(outputs)
    pairs = [(a, b) for low in range(most) for a, b in ((low, low + 1), (low + 1, low))]
    ratios = np.zeros((len(pairs) * width, size + 1))
    for row, ((a, b), output) in enumerate(itertools.product(pairs, range(width))):
        ratios[row, a * width + output], ratios[row, b * width + output] = 1.0, -math.exp(epsilon)
    errors, sums = np.zeros((most + 1, size + 1)), np.zeros((most + 1, size + 1))
    errors[:, -1] = -1.0
    for true in range(most + 1):
        block = slice(true * width, (true + 1) * width)
        errors[true, block], sums[true, block] = (outputs - true) ** 2, 1.0
    rows = np.concatenate([ratios, errors])
    found = linprog(np.eye(size + 1)[-1], A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=sums, b_eq=np.ones(most + 1))
    return float(found.fun)


def test_no_mechanism_for_one_count_is_more_accurate_than_geometric_noise() -> None:
    """All mechanisms, by linear programming: below the bound only because counts end at n, and ever less so."""
    bound = count_bound(total(1), ADDING).at(2.0)
    gaps = [bound / best_worst_case(most, 2.0) for most in (4, 8, 16)]
    assert gaps[0] > gaps[1] > gaps[2] > 1.0
    assert gaps == pytest.approx([1.157, 1.019, 1.0004], abs=6e-4)


def test_count_bound_by_hand_for_signed_and_replaced_queries() -> None:
    """Entries up to 3 in size; under replace-one a query moves by its range, and a constant query not at all."""
    workload = explicit([[1, 0, -3], [2, 2, 2]])
    assert count_bound(workload, ADDING).at(1.0) == pytest.approx((9 + 4) * GEOMETRIC.variance(1.0))
    assert count_bound(workload, REPLACING).at(1.0) == pytest.approx(9 * GEOMETRIC.variance(1.0))
    assert count_bound(total(4), REPLACING).at(1.0) == 0.0
    assert count_bound(kron(identity(2), total(3)), REPLACING).at(1.0) == pytest.approx(2 * GEOMETRIC.variance(1.0))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    law=st.sampled_from([LAPLACE, GEOMETRIC, STAIRCASE, GAUSSIAN]),
    loss=st.floats(0.05, 6.0),
    neighbors=st.sampled_from(list(Neighbors)),
)
def test_no_matrix_mechanism_beats_the_singular_value_bound(
    seed: int, law: NoiseLaw, loss: float, neighbors: Neighbors
) -> None:
    generator = np.random.default_rng(seed)
    cells = int(generator.integers(2, 7))
    workload = [identity(cells), prefix(cells), all_range(cells), stack(identity(cells), total(cells))][seed % 4]
    extra = generator.integers(-2, 3, (3, cells))
    strategy = np.concatenate([int(generator.integers(1, 4)) * np.eye(cells, dtype=np.int64), extra])
    protection = Protection(neighbors=neighbors)
    frontier = frontier_of(MatrixMechanism(strategy, law), workload, protection=protection)
    assert efficiency(frontier, matrix_bound(workload, law, protection), loss) <= 1.0 + 1e-9


@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC, STAIRCASE, GAUSSIAN], ids=lambda law: str(law.name))
def test_whole_number_noise_gains_on_its_continuous_twin_as_the_loss_grows(law: NoiseLaw) -> None:
    """u²·V(u) for ε, u·V(u) for ρ never rises: what makes V(l/Δ) ≥ Δ²·V(l), or V(l/Δ²) ≥ Δ²·V(l)."""
    power = 1 if law is GAUSSIAN else 2
    losses = np.logspace(-3, 2, 300)
    scaled = [float(loss) ** power * law.variance(float(loss)) for loss in losses]
    assert np.all(np.diff(scaled) <= 1e-12 * np.array(scaled[:-1]))


def test_identity_is_the_best_strategy_for_identity_under_both_relations() -> None:
    workload = identity(40)
    for law in (LAPLACE, GEOMETRIC, GAUSSIAN):
        frontier = frontier_of(MatrixMechanism(workload, law), workload)
        assert efficiency(frontier, matrix_bound(workload, law, ADDING), 0.7) == pytest.approx(1.0)
    replaced = frontier_of(gaussian(), workload, protection=REPLACING)
    assert efficiency(replaced, matrix_bound(workload, GAUSSIAN, REPLACING), 0.01) == pytest.approx(39 / 40)


def test_large_workloads_are_bounded_by_their_hardest_table() -> None:
    large = stack(kron(identity(60), total(60)), kron(prefix(60), identity(60)))
    bound = matrix_bound(large, LAPLACE, ADDING)
    assert "hardest table" in bound.name
    alone = matrix_bound(kron(prefix(60), identity(60)), LAPLACE, ADDING)
    assert bound.at(1.0) == pytest.approx(alone.at(1.0))
    with pytest.raises(TooLarge, match="a factor of"):
        matrix_bound(prefix(5_000), LAPLACE, ADDING)


def test_bounds_say_for_whom_they_are_valid_and_refuse_what_they_do_not_cover() -> None:
    workload = identity(3)
    assert "every ε-differentially private mechanism" in count_bound(workload, ADDING).valid_for
    assert matrix_bound(workload, GEOMETRIC, ADDING).valid_for.endswith("on a strategy of whole numbers")
    with pytest.raises(InvalidLoss, match="is in rho, the bound in epsilon"):
        efficiency(frontier_of(gaussian(), workload), count_bound(workload, ADDING), 1.0)
    held = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("all"),))
    with pytest.raises(InvalidMechanism, match="exact total 'all'"):
        matrix_bound(workload, LAPLACE, held)


def test_limits_for_several_records_and_unequal_weights_by_hand() -> None:
    """A unit of two records doubles every move, and an answer of weights 1 and 3 moves by 2 when a record changes."""
    two = Protection(most_records_per_unit=2, identifier="id")
    one_bound, two_bound = (matrix_bound(identity(4), GAUSSIAN, protection) for protection in (ADDING, two))
    assert two_bound.at(0.8) == pytest.approx(one_bound.at(0.2))
    weighted = explicit(np.array([[1, 3]]))
    assert count_bound(weighted, REPLACING).at(0.7) == pytest.approx(4 * GEOMETRIC.variance(0.7))
    assert count_bound(weighted, ADDING).at(0.7) == pytest.approx(9 * GEOMETRIC.variance(0.7))


def least_error(
    rows: NDArray[np.int64], weights: NDArray[np.float64], law: NoiseLaw, loss: float
) -> NDArray[np.float64]:
    """(AᵀΣ⁻¹A)⁻¹ for whole-number rows, each with its own noise: the errors of the best linear unbiased counts.

    Of row r, as it is weighted, the variance is w²·V(u·wᵖ), u = loss/Δᵖ, Δᵖ = max Σ (w|a|)ᵖ.
    """
    power = 2 if law.privacy_measure is PrivacyMeasure.ZCDP else 1
    weighted = weights[:, None] * rows
    unit = loss / float((np.abs(weighted) ** power).sum(axis=0).max())
    if law.needs_whole_numbers:
        variances = np.array([w**2 * law.variance(unit * w**power) for w in weights])
    else:
        variances = np.full(len(weights), law.variance(unit))
    return np.asarray(np.linalg.inv(weighted.T @ (weighted / variances[:, None])))


@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC, STAIRCASE, GAUSSIAN])
def test_no_strategy_of_whole_numbers_errs_less_than_the_bound(law: NoiseLaw) -> None:
    generator = np.random.default_rng(5)
    queries = [explicit(generator.integers(-1, 2, size=(3, 4)).tolist()), identity(4), prefix(4)]
    closest = math.inf
    for asked in (stack(*queries[1:]), stack(*queries), queries[2]):
        values = {table.name: float(generator.uniform(0.2, 5.0)) for table in asked.tables}
        bound = strategy_bound(optimize_strategy(asked, noise_of(law), values=values), law)
        scale = np.concatenate([np.full(table.query_count, values[table.name]) for table in asked.tables])
        gram = asked.dense().T @ (scale[:, None] * asked.dense())
        for _ in range(150):
            extra = generator.integers(-2, 3, size=(int(generator.integers(0, 4)), 4))
            rows = np.concatenate([np.eye(4, dtype=np.int64), extra[np.any(extra != 0, axis=1)]])
            weights = generator.integers(1, 64, size=len(rows)) / 16.0
            loss = float(generator.choice([0.05, 0.8, 3.0, 9.0]))
            found = float(np.trace(gram @ least_error(rows, weights, law, loss)))
            closest = min(closest, found / bound.at(loss))
    assert 1.0 <= closest < 1.5


def test_the_bound_is_met_where_the_cells_are_asked_for() -> None:
    for law in (LAPLACE, GEOMETRIC, GAUSSIAN):
        cells = identity(6)
        bound = strategy_bound(optimize_strategy(cells, noise_of(law), values={cells.tables[0].name: 3.0}), law)
        for loss in (0.1, 2.0, 7.0):
            assert bound.at(loss) == pytest.approx(3.0 * 6 * law.variance(loss))
            assert bound.privacy_measure is law.privacy_measure
    # A unit of two records is protected by noise for half the loss, or a quarter in rho.
    twice = Protection(most_records_per_unit=2, identifier="id")
    for law, share in ((GEOMETRIC, 2.0), (GAUSSIAN, 4.0)):
        strategy = optimize_strategy(identity(6), noise_of(law), protection=twice)
        assert strategy_bound(strategy, law).at(3.0) == pytest.approx(6 * law.variance(3.0 / share))


def test_a_bound_for_one_norm_is_none_for_the_other() -> None:
    with pytest.raises(InvalidMechanism, match="gaussian noise on a strategy for laplace noise"):
        strategy_bound(optimize_strategy(identity(3)), GAUSSIAN)
