"""The K-norm mechanism: its promise by linear programs, its errors by hand, by other mechanisms and by simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.stats import gamma, kstest

from dualmandate.errors import InvalidInvariant, InvalidLoss, InvalidMechanism, TooLarge, UnknownName
from dualmandate.frontier import Simulation, count_bound, efficiency, frontier_of, simulated
from dualmandate.mechanism import LAPLACE, KNorm, MatrixMechanism, NamedMeasure, laplace, optimize_strategy
from dualmandate.population import Attribute, Domain, Histogram, Invariant, Neighbors, Protection, StructuralZero
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

Floats = NDArray[np.float64]
EVERY = Protection()
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
MEASURES: tuple[NamedMeasure, ...] = ("squared", "absolute", "largest variance")

DOMAIN = Domain(
    (
        Attribute("block", ("1", "2")),
        Attribute("age", ("child", "adult", "old")),
        Attribute("married", ("no", "yes")),
    ),
    structural_zeros=(StructuralZero.of({"age": "child", "married": "yes"}),),
)
BY_BLOCK = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people", ("block",)),))
SOME_ADULTS = Protection(
    neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("adults", ("block",), (("age", ("adult",)),)),)
)
TABLES = Workload.from_tabulations(
    DOMAIN, [Tabulation("married", by=("married",)), Tabulation("ages", by=("age",)), Tabulation("all")]
)
BLOCKS = Workload.from_tabulations(DOMAIN, [Tabulation("blocks", by=("block",)), Tabulation("ages", by=("age",))])
OVERLAPS = groups(6, [[0, 1, 2], [1, 2, 3], [3, 4, 5], [0, 5]])
WEIGHTED = stack(prefix(3), total(3), weights=[Fraction(2, 3), 5])
CASES = {
    "prefix": (prefix(4), EVERY),
    "prefix, replace-one": (prefix(4), REPLACE_ONE),
    "margins": (marginals((2, 2, 2), 1), EVERY),
    "margins, replace-one": (marginals((2, 3), (0, 1)), REPLACE_ONE),
    "overlaps": (OVERLAPS, EVERY),
    "weighted": (WEIGHTED, REPLACE_ONE),
    "signed": (explicit([[1, -1, 0, 2, 0], [0, 3, 1, -2, 0]]), EVERY),
    "zeros": (TABLES, EVERY),
    "zeros, replace-one": (TABLES, REPLACE_ONE),
    "exact total": (TABLES, BY_BLOCK),
    "exact total under a condition": (BLOCKS, SOME_ADULTS),
}
every_case = pytest.mark.parametrize(("workload", "protection"), CASES.values(), ids=CASES.keys())


def moves(workload: Workload, protection: Protection) -> Floats:
    """What one record can do to the answers, from pairs of neighboring files one by one; shape (moves, query_count)."""
    shape, matrix = workload.domain.shape, workload.dense()
    cells = [cell for cell in range(math.prod(shape)) if workload.domain is not DOMAIN or _occurs(cell)]
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        found = [matrix[:, cell] for cell in cells]
    else:
        pairs = combinations(cells, 2)
        found = [matrix[:, one] - matrix[:, other] for one, other in pairs if _kept(protection, one, other)]
    return np.array([move for move in found if move.any()])


def _occurs(cell: int) -> bool:
    _, age, married = np.unravel_index(cell, DOMAIN.shape)
    return not (age == 0 and married == 1)


def _kept(protection: Protection, one: int, other: int) -> bool:
    """Whether a record may change from one cell to the other without changing an exact total."""
    if not protection.invariants:
        return True
    groups_of = []
    for cell in (one, other):
        block, age, _ = np.unravel_index(cell, DOMAIN.shape)
        groups_of.append(int(block) if protection is BY_BLOCK or age == 1 else -1)
    return groups_of[0] == groups_of[1]


def by_program(found: Floats, error: Floats) -> float:
    """‖a‖_K as a linear program: the least Σ|λ| with a = Σ λ·move."""
    both = np.concatenate([found, -found])
    result = linprog(np.ones(len(both)), A_eq=both.T, b_eq=error, method="highs")
    return float(result.fun) if result.success else math.inf


# Privacy.


@every_case
def test_the_norm_is_that_of_what_one_record_can_do(workload: Workload, protection: Protection) -> None:
    production = KNorm().production(workload, protection)
    found = moves(workload, protection)
    assert production.rank == np.linalg.matrix_rank(found)
    sizes = production.norm(found)
    assert sizes == pytest.approx([by_program(found, move) for move in found], abs=1e-9)
    assert sizes.max() == pytest.approx(1, rel=1e-12)
    combined = np.random.default_rng(1).normal(size=(12, len(found))) @ found
    assert production.norm(combined) == pytest.approx([by_program(found, error) for error in combined], rel=1e-7)
    assert production.norm(np.zeros(workload.query_count)) == 0


@every_case
def test_no_pair_of_neighbors_is_told_apart_by_more_than_the_loss(workload: Workload, protection: Protection) -> None:
    """ln of the ratio of densities, ε·(‖y − Qx′‖_K − ‖y − Qx‖_K), stays within ε, and reaches it."""
    production = KNorm().production(workload, protection)
    found = moves(workload, protection)
    outputs = np.random.default_rng(2).normal(size=(60, len(found))) @ found
    outputs = np.concatenate([outputs, 3 * found, np.zeros((1, workload.query_count))])
    at_one = production.norm(outputs)
    ratios = np.array([production.norm(outputs - move) - at_one for move in [*found, *-found]])
    assert np.abs(ratios).max() <= 1 + 1e-9
    assert np.abs(ratios).max() == pytest.approx(1, rel=1e-9)


@every_case
def test_draws_have_the_density(workload: Workload, protection: Protection) -> None:
    """‖a‖_K of a draw is Gamma(rank)/ε: the volume of K, scaled up, times exp(−ε·norm)."""
    production, loss = KNorm().production(workload, protection), 0.7
    counts = np.zeros(workload.domain.shape, dtype=np.int64)
    errors = production.draw(counts, loss, generator=np.random.default_rng(5), size=4_000)
    norms = production.norm(errors)
    assert kstest(norms, gamma(production.rank, scale=1 / loss).cdf).pvalue > 1e-3


def test_noise_stays_where_the_data_can_move() -> None:
    """Answers stay consistent; what nobody can change has no error."""
    production = KNorm().production(TABLES, BY_BLOCK)
    drawn = production.draw(
        np.arange(12, dtype=np.int64).reshape(DOMAIN.shape), 0.5, generator=np.random.default_rng(0), size=50
    )
    assert drawn[:, -1] == pytest.approx(66)
    assert drawn[:, :2].sum(axis=1) == pytest.approx(66)
    assert production.table_errors(1.0)["all"] == 0
    assert production.table_errors(1.0, "absolute")["all"] == 0
    assert production.half_width("all", 1.0, 0.9) == 0
    assert production.norm(np.array([1.0, 0, 0, 0, 0, 0])) == math.inf


def test_a_unit_with_several_records() -> None:
    """A unit of three records moves the answers three times as far: the same errors at three times the loss."""
    three = Protection(most_records_per_unit=3, identifier="id")
    one, several = KNorm().production(OVERLAPS), KNorm().production(OVERLAPS, three)
    assert [each.sensitivity.power for each in (one, several)] == [1, 3]
    assert several.sensitivity.exact
    for measure in MEASURES:
        assert several.table_errors(3.3, measure) == pytest.approx(one.table_errors(1.1, measure), rel=1e-12)
    generators = (np.random.default_rng(9) for _ in range(2))
    counts = np.zeros(6, dtype=np.int64)
    first, second = (p.draw(counts, 1.5, generator=g, size=4) for p, g in zip((one, several), generators, strict=True))
    assert second == pytest.approx(3 * first)


# Errors.


def test_one_count_is_laplace_noise() -> None:
    production = KNorm().production(identity(1))
    for epsilon in (0.1, 1.0, 4.0):
        assert production.query_variances("identity", epsilon) == pytest.approx([2 / epsilon**2], rel=1e-12)
        assert production.table_errors(epsilon, "absolute")["identity"] == pytest.approx(1 / epsilon, rel=1e-12)
        width = float(production.half_width("identity", epsilon, 0.95)[0])
        assert width == pytest.approx(-math.log(0.05) / epsilon, rel=0.01)
        assert width >= -math.log(0.05) / epsilon


@pytest.mark.parametrize(
    "workload",
    [
        identity(2),
        prefix(4),
        all_range(4),
        stack(identity(3), total(3), weights=[1, Fraction(3, 2)]),
        kron(prefix(2), identity(3)),
        explicit([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, -4]]),
    ],
    ids=["cells", "prefix", "ranges", "cells and total", "product", "signed"],
)
def test_independent_columns_are_laplace_noise_on_every_cell(workload: Workload) -> None:
    """K is a cross-polytope: 2·QQᵀ/ε², and in every measure the matrix mechanism that measures the cells."""
    production = KNorm().production(workload)
    cells = np.eye(workload.domain.size, dtype=np.int64)
    other = MatrixMechanism(cells, LAPLACE).production(workload)
    for measure in MEASURES:
        assert production.table_errors(0.8, measure) == pytest.approx(other.table_errors(0.8, measure), rel=1e-9)
        assert production.table_slopes(0.8, measure) == pytest.approx(other.table_slopes(0.8, measure), rel=1e-9)
    assert production.table_curvatures(0.8) == pytest.approx(other.table_curvatures(0.8), rel=1e-9)
    variances = np.concatenate([production.query_variances(table.name, 0.8) for table in workload.tables])
    assert variances == pytest.approx(2 * np.square(workload.dense()).sum(axis=1) / 0.64, rel=1e-9)
    for table in workload.tables:
        widths = production.half_width(table.name, 0.8, 0.9)
        assert widths == pytest.approx(other.half_width(table.name, 0.8, 0.9), rel=0.015)


def test_absolute_errors_of_unequal_exponentials() -> None:
    """E|Σ b_i·X_i| = Σ b_i·Π b_i²/(b_i² − b_j²) for Laplace X_i: partial fractions of the characteristic function."""
    production = KNorm().production(explicit([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 2, -4]]))
    sizes = (1, 2, 4)
    expected = sum(b * math.prod(b**2 / (b**2 - c**2) for c in sizes if c != b) for b in sizes)
    assert production.table_errors(1.0, "absolute")["explicit"] == pytest.approx(3 + expected, rel=1e-12)


@pytest.mark.parametrize("attributes", [2, 3, 4])
def test_one_way_margins_of_yes_or_no_are_a_cube(attributes: int) -> None:
    """The number of people and the differences yes − no move by ±1 each, in every combination: the ℓ∞ mechanism.

    A margin is half a sum of two of these: variance (r + 1)(r + 2)/6 and E|error| = (r + 1)/3, r = attributes + 1.
    """
    production, rank = KNorm().production(marginals((2,) * attributes, 1)), attributes + 1
    assert production.rank == rank
    for epsilon in (0.5, 2.0):
        for table in production.workload.tables:
            expected = [(rank + 1) * (rank + 2) / 6 / epsilon**2] * 2
            assert production.query_variances(table.name, epsilon) == pytest.approx(expected, rel=1e-12)
        absolute = production.table_errors(epsilon, "absolute")
        assert list(absolute.values()) == pytest.approx([2 * (rank + 1) / 3 / epsilon] * attributes, rel=1e-12)


def test_replacing_one_of_three_is_a_hexagon() -> None:
    """Each count of a hexagon e_i − e_j has E[u²] = 5/18, and a Gamma(3) radius 12: variance 10/3."""
    production = KNorm().production(stack(identity(3), total(3)), REPLACE_ONE)
    assert production.query_variances("identity", 1.0) == pytest.approx([10 / 3] * 3, rel=1e-12)
    assert production.query_variances("total", 1.0) == pytest.approx([0.0], abs=1e-12)


@every_case
def test_closed_forms_equal_simulation(workload: Workload, protection: Protection) -> None:
    production, loss = KNorm().production(workload, protection), 1.3
    for measure in MEASURES:
        stated = production.table_errors(loss, measure)
        found = production.simulated_losses(
            loss, measure, generator=np.random.default_rng(6), releases=20_000, confidence=1 - 1e-6
        )
        assert found.keys() == stated.keys()
        for name, error in found.items():
            assert error.low - 1e-9 <= stated[name] <= error.high + 1e-9
            assert error.high - error.low <= 0.3 * stated[name] + 1e-9
            assert error.releases == 20_000
    assert production.expected_squared_error(loss) == pytest.approx(sum(production.table_errors(loss).values()))


def test_intervals_of_a_simulation_hold_as_often_as_stated() -> None:
    production, held = KNorm().production(marginals((2, 2), 1)), 0
    truth = production.table_errors(1.0, "absolute")["axis0"]
    generator = np.random.default_rng(7)
    for _ in range(400):
        found = production.simulated_losses(1.0, "absolute", generator=generator, releases=300, confidence=0.9)["axis0"]
        assert found.low < found.mean < found.high
        held += found.low <= truth <= found.high
    assert 0.85 <= held / 400 <= 0.95


def test_the_simulated_frontier_covers_the_closed_form() -> None:
    workload = marginals((2, 2, 2), 1)
    production = KNorm().production(workload)

    def release(loss: float, histogram: Histogram, generator: np.random.Generator) -> Floats:
        return production.draw(histogram.counts, loss, generator=generator, size=1).reshape(-1)

    people = Histogram(workload.domain, np.arange(8, dtype=np.int64).reshape(2, 2, 2))
    plan = Simulation((0.5, 2.0), 700, seed=3, confidence=0.999)
    frontier, exact = simulated(release, workload, histogram=people, simulation=plan), frontier_of(KNorm(), workload)
    for loss in plan.losses:
        band = frontier.curves.band(loss, "absolute")  # type: ignore[attr-defined]
        truth = np.array(list(exact.table_errors(loss, "absolute").values()))
        assert np.all((band[:, 0] <= truth) & (truth <= band[:, 1]))


@every_case
def test_intervals_hold_the_truth_as_often_as_stated(workload: Workload, protection: Protection) -> None:
    production, loss, probability, size = KNorm().production(workload, protection), 0.9, 0.9, 10_000
    counts = np.ones(workload.domain.shape, dtype=np.int64)
    answers = production.draw(counts, loss, generator=np.random.default_rng(8), size=size)
    errors, start = np.abs(answers - workload.answers(counts)), 0
    slack = 5 * math.sqrt(probability * (1 - probability) / size)
    for table in workload.tables:
        some = errors[:, start : start + table.query_count]
        start += table.query_count
        widths = production.half_width(table.name, loss, probability)
        together = production.simultaneous_half_width(table.name, loss, probability)
        moving = widths > 0
        shares = (some <= widths + 1e-9).mean(axis=0)
        assert np.all(shares >= probability - slack)
        assert np.all(shares[moving] <= probability + slack + 0.01)
        assert np.all(together >= widths)
        assert np.all(some <= together + 1e-9, axis=1).mean() >= probability - slack


def test_weights_scale_errors_and_nothing_else() -> None:
    plain, weighted = (KNorm().production(workload) for workload in (stack(prefix(3), total(3)), WEIGHTED))
    for measure, power in (("squared", 2), ("absolute", 1), ("largest variance", 2)):
        expected = plain.table_errors(1.0, measure)  # type: ignore[arg-type]
        found = weighted.table_errors(1.0, measure)  # type: ignore[arg-type]
        assert found["prefix"] == pytest.approx((2 / 3) ** power * expected["prefix"], rel=1e-12)
        assert found["total"] == pytest.approx(5**power * expected["total"], rel=1e-12)


# The frontier, and other technologies.


def test_the_frontier_in_closed_form() -> None:
    frontier = frontier_of(KNorm(), marginals((2, 2, 2), 1))
    assert frontier.technology(1.0) == "K-norm"
    for epsilon in (0.2, 1.0, 5.0):
        assert frontier.accuracy(epsilon) == pytest.approx(-30 / epsilon**2, rel=1e-12)
        assert frontier.marginal_rate_of_transformation(epsilon) == pytest.approx(60 / epsilon**3, rel=1e-12)
        assert frontier.second_derivative(epsilon) == pytest.approx(-180 / epsilon**4, rel=1e-12)
        assert frontier.epsilon_for(-30 / epsilon**2) == pytest.approx(epsilon, rel=1e-12)


# Workload, squared error at ε = 1, and whether that is below what the best strategy with Laplace noise has.
COMPARED = [
    (prefix(4), 20, False),
    (all_range(4), 40, False),
    (stack(identity(4), total(4)), 16, False),
    (marginals((2, 2, 2), 1), 30, True),
    (marginals((2, 2, 2, 2), (0, 1)), 70, True),
    (marginals((3, 3), 1), 220 / 9, True),
    (groups(12, [range(6), range(3, 9), range(6, 12)]), 10, True),
]


@pytest.mark.parametrize(("workload", "expected", "is_best"), COMPARED)
def test_where_it_does_better(workload: Workload, expected: float, is_best: bool) -> None:
    """Always than noise on the answers, and than strategies where columns depend on each other and K is wide."""
    frontier = frontier_of(KNorm(), workload)
    assert frontier.expected_squared_error(1.0) == pytest.approx(expected, rel=1e-9)
    assert expected < frontier_of(laplace(), workload).expected_squared_error(1.0) / 1.9
    strategy = 2 * optimize_strategy(workload).error_coefficient
    assert (expected < strategy * 0.9) if is_best else (strategy <= expected * (1 + 1e-9))
    for epsilon in (0.01, 1.0):
        assert 0 < efficiency(frontier, count_bound(workload, EVERY), epsilon) <= 1


def test_long_and_thin_is_where_a_strategy_does_better() -> None:
    assert (
        optimize_strategy(prefix(14)).error_coefficient
        < 0.9 * KNorm().production(prefix(14)).table_errors(1.0)["prefix"] / 2
    )


# Refusals.


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        (identity(17), "34 points in 17 or more dimensions"),
        (prefix(100), "200 points in 17 or more dimensions"),
        (marginals((5, 5), 1), "50 points in 9 dimensions"),
        (explicit([[k % 97 + 1 for k in range(3000)], [k * k % 89 + 1 for k in range(3000)]]), "in 2 dimensions"),
        (identity(3000), "3,000 ways to change 3,000 answers"),
        (kron(identity(10**5), identity(10**5)), r"about 10\^10 ways"),
    ],
)
def test_what_is_too_large_is_refused_with_the_estimate(workload: Workload, words: str) -> None:
    with pytest.raises(TooLarge, match=words) as refusal:
        KNorm().production(workload)
    assert "optimize_strategy" in refusal.value.instead
    assert "at most" in refusal.value.why


def test_what_is_refused() -> None:
    with pytest.raises(TooLarge, match="4,498,500 ways to change 1 answers"):
        KNorm().production(explicit([list(range(3_000))]), REPLACE_ONE)
    with pytest.raises(InvalidMechanism, match="no protected person can change"):
        KNorm().production(total(4), REPLACE_ONE)
    crossing = Protection(
        neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("blocks", ("block",)), Invariant("ages", ("age",)))
    )
    with pytest.raises(InvalidInvariant, match="cross"):
        KNorm().production(TABLES, crossing)
    production = KNorm().production(prefix(2))
    with pytest.raises(UnknownName, match="not a table"):
        production.query_variances("ages", 1.0)
    for use in (production.table_errors, production.table_slopes):
        with pytest.raises(UnknownName, match="not a measure"):
            use(1.0, "cubed")  # type: ignore[arg-type]
        with pytest.raises(InvalidLoss):
            use(0.0)
    with pytest.raises(InvalidMechanism, match="with probability 1"):
        production.half_width("prefix", 1.0, 1.0)
    generator = np.random.default_rng(0)
    with pytest.raises(UnknownName, match="not a measure"):
        production.simulated_losses(1.0, "cubed", generator=generator)  # type: ignore[arg-type]
    for releases, confidence in ((1, 0.9), (10, 1.0), (10, 0.0)):
        with pytest.raises(InvalidMechanism, match="simulated releases"):
            production.simulated_losses(1.0, generator=generator, releases=releases, confidence=confidence)
