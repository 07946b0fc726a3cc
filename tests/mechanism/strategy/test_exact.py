"""The published strategy: whole numbers, exact losses, and errors of the noise that is used, against brute force."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache, reduce
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.measured import optimized
from tests.mechanism.strategy.reference import coefficients

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    ExactStrategy,
    NoiseLaw,
    OptimizedMechanism,
    Strategy,
    StrategyMechanism,
    optimize_strategy,
)
from dualmandate.mechanism.combination import Combination, Term
from dualmandate.mechanism.rows import NearlyNormal
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection
from dualmandate.population.machine import machine_memory
from dualmandate.workload import (
    Tabulation,
    Workload,
    groups,
    identity,
    kron,
    marginals,
    prefix,
    stack,
    total,
)

ADD_OR_REMOVE = Protection()
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def _blocks() -> Workload:
    names = {"block": "abc", "age": "yo", "race": "xyz"}
    domain = Domain(tuple(Attribute.categories(name, list(levels)) for name, levels in names.items()))
    tabulations = [
        Tabulation("by block and age", by=("block", "age")),
        Tabulation("by race", by=("race",)),
        Tabulation("old x", where=(("age", ("o",)), ("race", ("x",)))),
    ]
    return Workload.from_tabulations(domain, tabulations)


WORKLOADS = {
    "identity and total": stack(identity(16), total(16)),
    "prefix": prefix(12),
    "margins": marginals((3, 4, 2), (1, 2)),
    "orbits": stack(
        kron(identity(7), total(4)),
        kron(groups(7, [[0, 1, 2], [3, 4], [5], [6]]), prefix(4)),
        kron(total(7), identity(4)),
    ),
    "a product": kron(prefix(5), stack(identity(3), total(3))),
    "equal sizes, other queries": stack(kron(prefix(4), total(4)), kron(total(4), identity(4))),
    "a level by itself": kron(identity(1), prefix(4), total(1)),
    "one query": groups(5, [[1, 3]]),
    "blocks": _blocks(),
}
PROTECTIONS = {
    "add or remove": ADD_OR_REMOVE,
    "replace one": REPLACE_ONE,
    "two records": Protection(most_records_per_unit=2, identifier="id"),
    "people by block": Protection(
        neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people by block", ("block",)),)
    ),
}
CASES = [
    (workload, noise, protection)
    for workload, noise, protection in product(WORKLOADS, ("laplace", "gaussian"), PROTECTIONS)
    if protection != "people by block" or workload == "blocks"
]
every_case = pytest.mark.parametrize(("workload", "noise", "protection"), CASES)


@cache
def strategy_of(workload: str, noise: NoiseName, protection: str) -> Strategy:
    return optimize_strategy(WORKLOADS[workload], noise, protection=PROTECTIONS[protection])


def written_out(exact: ExactStrategy) -> NDArray[np.int64]:
    """The whole-number rows, from what they count of one record in each cell."""
    cells = np.eye(exact.workload.domain.size, dtype=np.int64)
    return np.array([exact.count(cell) for cell in cells]).T


def public(workload: Workload, protection: Protection) -> NDArray[np.float64]:
    """The projector on what is known without measuring, by hand."""
    size = workload.domain.size
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        return np.zeros((size, size))
    group = np.arange(size) // 6 if protection.invariants else np.zeros(size, dtype=np.int64)
    return np.asarray((group[:, None] == group[None, :]) / np.bincount(group)[group])


@every_case
def test_the_loss_is_exact(workload: str, noise: NoiseName, protection: str) -> None:
    """max Σ ε_i·|a_i·Δx|, or max Σ ρ_i·(a_i·Δx)², over all neighbors, in fractions."""
    exact, promised = strategy_of(workload, noise, protection).exact, PROTECTIONS[protection]
    rows = written_out(exact)
    assert all(math.gcd(*(int(entry) for entry in row)) == 1 for row in rows)
    noises = optimized(exact, promised).noises(Fraction(3, 7))
    losses = [noises[kind].unit_loss for kind in exact.kinds()]
    known = public(WORKLOADS[workload], promised)
    cells = range(rows.shape[1])
    records = promised.most_records_per_unit
    if promised.neighbors is Neighbors.ADD_OR_REMOVE:
        changes = [records * rows[:, cell] for cell in cells]
    else:
        together = [(one, other) for one in cells for other in cells if known[one, other] > 0]
        changes = [rows[:, one] - rows[:, other] for one, other in together]
    spent = max(
        sum(loss * abs(int(moved)) ** exact.power for loss, moved in zip(losses, change, strict=True))
        for change in changes
    )
    sensitivity = exact.sensitivity(promised)
    assert spent <= Fraction(3, 7)
    assert sensitivity.exact == (spent == Fraction(3, 7))
    assert sensitivity.exact


@every_case
def test_errors_are_those_of_the_rows(workload: str, noise: NoiseName, protection: str) -> None:
    strategy, promised = strategy_of(workload, noise, protection), PROTECTIONS[protection]
    exact, asked = strategy.exact, WORKLOADS[workload]
    weights = np.array([float(exact.steps[kind]) for kind in exact.kinds()])
    rows = weights[:, None] * written_out(exact)
    private = asked.dense() @ (np.eye(asked.domain.size) - public(asked, promised))
    inverse = np.concatenate([exact.query_rows(table.name, range(table.query_count)) for table in asked.tables])
    np.testing.assert_allclose(inverse @ rows @ (np.eye(len(private.T)) - public(asked, promised)), private, atol=1e-8)
    for table, rows_of_table in zip(
        asked.tables, np.split(inverse, np.cumsum([t.query_count for t in asked.tables])[:-1]), strict=True
    ):
        shares = [np.cos(np.arange(size) + axis) for axis, size in enumerate(table.shape)]
        expected = reduce(np.multiply.outer, shares).reshape(-1) @ rows_of_table
        np.testing.assert_allclose(exact.combined(table.name, shares), expected, atol=1e-9)
    variances = dict(zip(exact.steps, np.random.default_rng(3).random(len(exact.steps)) + 0.5, strict=True))
    found = np.concatenate([exact.query_variances(table.name, variances.__getitem__) for table in asked.tables])
    by_row = np.array([variances[exact.steps[kind]] for kind in exact.kinds()])
    np.testing.assert_allclose(found, np.square(inverse) @ by_row, atol=1e-9)
    sums = [exact.table_sums(table.name) @ [variances[step] for step in exact.steps] for table in asked.tables]
    assert math.fsum(sums) == pytest.approx(float(found.sum()), rel=1e-9)
    unit = exact.sensitivity(promised).value ** 2
    assert exact.error_coefficient(promised) == pytest.approx(unit * float(np.square(inverse).sum()), rel=1e-9)
    assert strategy.lower_bound <= strategy.error_coefficient * (1 + 1e-9)
    assert exact.error_coefficient(promised) <= strategy.error_coefficient * (1 + 1e-3)


@every_case
def test_answers_come_back(workload: str, noise: NoiseName, protection: str) -> None:
    strategy, promised = strategy_of(workload, noise, protection), PROTECTIONS[protection]
    asked = WORKLOADS[workload]
    counts = (np.arange(asked.domain.size) * 7 % 5).reshape(asked.domain.shape)
    spread = (public(asked, promised) @ counts.reshape(-1)).reshape(asked.domain.shape)
    like = spread if promised.neighbors is Neighbors.REPLACE_ONE else None
    expected = asked.answers(counts)
    np.testing.assert_allclose(strategy.exact.reconstruct(strategy.exact.count(counts), like), expected, atol=1e-7)
    if like is not None:
        with pytest.raises(InvalidWorkload, match="beside public totals"):
            strategy.exact.reconstruct(strategy.exact.count(counts))


def test_counts_keep_what_discrete_noise_gains() -> None:
    """One count at ε = 2.5: geometric noise has 39 % less variance than Laplace noise, and so has the strategy."""
    coarse = OptimizedMechanism(GEOMETRIC).production(identity(64))
    fine = OptimizedMechanism(LAPLACE).production(identity(64))
    assert coarse.expected_squared_error(2.5) == pytest.approx(64 * GEOMETRIC.variance(2.5), rel=1e-12)
    assert 1 - coarse.expected_squared_error(2.5) / fine.expected_squared_error(2.5) == pytest.approx(0.39, abs=0.01)


def test_gaussian_noise_on_counts_where_counts_do() -> None:
    """aI + bJ with b ≥ 0 is each cell and the total: no finer rows are measured."""
    cells = optimize_strategy(identity(16), "gaussian").exact
    assert (cells.rows, cells.steps) == (16, (Fraction(1),))
    both = optimize_strategy(stack(identity(256), total(256)), "gaussian")
    assert both.exact.rows == 257
    assert both.error_coefficient == both.lower_bound == pytest.approx(286.945, abs=1e-3)
    assert both.exact.error_coefficient(ADD_OR_REMOVE) == pytest.approx(both.lower_bound, rel=1e-4)


def test_the_unit_of_values_does_not_matter() -> None:
    asked = stack(kron(identity(300), identity(2)), kron(total(300), total(2)))
    first, second = (table.name for table in asked.tables)
    for noise in ("laplace", "gaussian"):
        one = optimize_strategy(asked, noise, values={first: 1.0, second: 50.0})
        other = optimize_strategy(asked, noise, values={first: 2e7, second: 1e9})
        assert other.error_coefficient == pytest.approx(2e7 * one.error_coefficient, rel=1e-9)
        assert other.lower_bound == pytest.approx(2e7 * one.lower_bound, rel=1e-9)
        assert other.exact.steps == one.exact.steps


@pytest.mark.parametrize("worth", [1e-6, 1.0, 1e6, 1e9])
def test_unequal_values_beside_public_totals(worth: float) -> None:
    asked = stack(marginals((3, 4, 2), 1), kron(prefix(3), identity(4), total(2)))
    values = {table.name: worth if "×" in table.name else 1.0 for table in asked.tables}
    for noise in ("laplace", "gaussian"):
        found = optimize_strategy(asked, noise, values=values, protection=REPLACE_ONE)
        assert 0 < found.lower_bound <= found.error_coefficient * (1 + 1e-9)
        assert found.error_coefficient < 1e3 * found.lower_bound


def test_many_weights_are_read_off_a_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmandate.mechanism.measurement.FEW_KINDS", 20)
    strategy = optimize_strategy(prefix(100))
    production = StrategyMechanism(strategy, GEOMETRIC).production(strategy.workload)
    assert len(strategy.exact.steps) > 30
    for loss in (0.3, 2.0, 9.0):
        one_by_one = production.query_variances("prefix", loss).sum()
        assert production.expected_squared_error(loss) == pytest.approx(one_by_one, rel=1e-9)


@pytest.mark.parametrize("law", [LAPLACE, GEOMETRIC])
def test_half_widths_are_near_two_standard_deviations(law: NoiseLaw) -> None:
    """At 95 %: 1.96 for a sum of many draws, 2.12 for one Laplace draw, and in between for all others."""
    production = OptimizedMechanism(law).production(prefix(100))
    ratios = production.half_width("prefix", 0.2, 0.95) / np.sqrt(production.query_variances("prefix", 0.2))
    assert ratios.min() > 1.95
    assert ratios.max() < 2.15
    expected = production.table_errors(0.2, "absolute")["prefix"]
    spreads = np.sqrt(production.query_variances("prefix", 0.2)).sum()
    assert 0.7 < expected / spreads < 0.8


def test_sums_of_many_counts_are_nearly_normal() -> None:
    """Halves of 64 measured cells at ε = 0.2: sums of 32 equal draws, 1.96 standard deviations and a bit."""
    asked = stack(identity(64), groups(64, [range(32), range(32, 64)]))
    cells, halves = (table.name for table in asked.tables)
    production = OptimizedMechanism(LAPLACE, values={cells: 1e4, halves: 1.0}).production(asked)
    spreads = np.sqrt(production.query_variances(halves, 0.2))
    assert spreads.min() > 20.0
    exactly = Combination((Term(LAPLACE.at(0.2), np.ones(1), np.array([32.0])),))
    ratio = exactly.reach(0.05) / math.sqrt(exactly.variance)
    np.testing.assert_allclose(production.half_width(halves, 0.2, 0.95) / spreads, ratio, rtol=1e-2)
    expected = exactly.mean_absolute / math.sqrt(exactly.variance)
    assert production.table_errors(0.2, "absolute")[halves] / spreads.sum() == pytest.approx(expected, rel=1e-2)


def test_nearly_normal_errors() -> None:
    """Sums of 15 and of 40 Laplace draws: half-widths to 1 %, E|S| to a ten-thousandth."""
    draw = LAPLACE.at(1.0)
    for count in (15, 40):
        exactly = Combination((Term(draw, np.ones(1), np.array([float(count)])),))
        nearly = NearlyNormal(math.sqrt(2 * count), 3 / count)
        assert nearly.mean_absolute == pytest.approx(exactly.mean_absolute, rel=1e-4)
        for tail in (0.05, 0.001):
            assert nearly.reach(tail) == pytest.approx(exactly.reach(tail), rel=1e-2)


def test_values_steer_the_strategy() -> None:
    asked = stack(kron(identity(8), total(6)), kron(total(8), identity(6)))
    first, second = (table.name for table in asked.tables)
    even = optimize_strategy(asked, "gaussian")
    steered = optimize_strategy(asked, "gaussian", values={first: 100.0, second: 1.0})
    assert coefficients(steered, first).sum() < coefficients(even, first).sum()
    assert coefficients(steered, second).sum() > coefficients(even, second).sum()
    nothing = optimize_strategy(asked, values={first: 1.0, second: 0.0})
    assert np.isfinite(coefficients(nothing, second)).all()
    weighed = 100 * coefficients(steered, first).sum() + coefficients(steered, second).sum()
    assert weighed == pytest.approx(steered.exact.error_coefficient(steered.protection), rel=1e-9)
    assert weighed == pytest.approx(steered.error_coefficient, rel=1e-3)


def test_refusals() -> None:
    asked = stack(identity(4), total(4))
    with pytest.raises(InvalidWorkload, match="is worth nan"):
        optimize_strategy(asked, values={"identity": math.nan})
    with pytest.raises(InvalidWorkload, match="is worth -1"):
        optimize_strategy(asked, values={"identity": -1.0})
    with pytest.raises(InvalidWorkload, match="worth nothing"):
        optimize_strategy(asked, values={"identity": 0.0, "total": 0.0})
    strategy = optimize_strategy(asked)
    with pytest.raises(InvalidMechanism, match="gaussian noise on a strategy for laplace"):
        StrategyMechanism(strategy, GAUSSIAN)
    with pytest.raises(InvalidMechanism, match="another workload or another protection"):
        StrategyMechanism(strategy, LAPLACE).production(prefix(4))
    with pytest.raises(InvalidMechanism, match="another workload or another protection"):
        StrategyMechanism(strategy, LAPLACE).production(asked, REPLACE_ONE)
    with pytest.raises(InvalidMechanism, match="no neighboring file can change"):
        optimize_strategy(total(4), protection=REPLACE_ONE)
    with pytest.raises(InvalidMechanism, match="a product of strategies"):
        optimize_strategy(kron(prefix(3), prefix(3))).exact.sensitivity(REPLACE_ONE)


def test_what_the_machine_cannot_hold_is_refused_before_work_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dualmandate.mechanism.strategy.workload_blocks.machine_memory", lambda: 2**20)
    with pytest.raises(TooLarge, match="a strategy for 200 cells that queries tell apart, which takes") as refused:
        optimize_strategy(prefix(200), "gaussian")
    assert "this machine can give it 839 kB" in refused.value.why
    assert refused.value.instead
    strategy = optimize_strategy(kron(identity(200), identity(200)))
    with pytest.raises(TooLarge, match=r"an estimate of 4e\+04 cells, which takes some 3.84 MB"):
        strategy.exact.count(np.ones(40_000))
    monkeypatch.undo()
    assert machine_memory() > 2**28
