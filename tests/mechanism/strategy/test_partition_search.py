"""Tables of plain counts with a weight a group: against matrices written out, by hand, and by the numbers of others."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime
from tests.mechanism.strategy.reference import coefficients, row_weights, rows_over_cells

from dualmandate.benchmarks.census import sf1_persons
from dualmandate.errors import TooLarge
from dualmandate.mechanism import optimize_strategy
from dualmandate.mechanism.strategy.marginals import best_marginals
from dualmandate.mechanism.strategy.partition_search import Weighing, best_partitions, descend, fits, weighing_of
from dualmandate.mechanism.strategy.partitions import (
    BITS,
    GroupStack,
    Layout,
    Partition,
    coarser_tables,
    codings_of,
    group_count,
    own_tables,
)
from dualmandate.mechanism.strategy.workload_blocks import WorkloadBlock, parts_of, squared_lengths
from dualmandate.population import Attribute, Domain
from dualmandate.population.domain import StructuralZero
from dualmandate.workload import (
    Groups,
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
from dualmandate.workload.factor import Factor, dense

Floats = NDArray[np.float64]


def married() -> Workload:
    """Ages by marriage and sex, where the two youngest cannot be married."""
    domain = Domain(
        (
            Attribute("age", ("0", "1", "2", "3", "4")),
            Attribute("married", ("no", "yes")),
            Attribute("sex", ("f", "m")),
        ),
        structural_zeros=(StructuralZero.of({"age": ("0", "1"), "married": "yes"}),),
    )
    adults = Groups.of_lists(5, [[2, 3, 4]])
    tables = (
        Table("ages", (Identity(5), Identity(2), Total(2))),
        Table("adults by sex", (adults, Total(2), Identity(2))),
        Table("all", (Total(5), Total(2), Total(2))),
    )
    return Workload(domain, tables)


def drawn(seed: int) -> Workload:
    """Tables with factors of all kinds over a small domain, some cells of which cannot occur."""
    generator = np.random.default_rng(seed)
    shape = tuple(int(n) for n in generator.integers(1, 6, size=int(generator.integers(1, 4))))
    attributes = tuple(Attribute(f"a{i}", tuple(str(level) for level in range(n))) for i, n in enumerate(shape))
    zeros: tuple[StructuralZero, ...] = ()
    if len(shape) > 1 and min(shape[:2]) > 1 and generator.random() < 0.5:
        zeros = (StructuralZero.of({"a0": "0", "a1": "1"}),)

    def factor(size: int) -> Factor:
        kind = int(generator.integers(5))
        if kind == 3:
            return Groups.of_lists(size, [[int(generator.integers(size))]])
        if kind == 4:
            lists = [np.flatnonzero(generator.random(size) < 0.6).tolist() or [0] for _ in range(2)]
            return Groups.of_lists(size, lists)
        return (Identity(size), Total(size), Prefix(size))[kind]

    count = int(generator.integers(1, 5))
    tables = tuple(Table(f"t{number}", tuple(factor(n) for n in shape)) for number in range(count))
    return Workload(Domain(attributes, structural_zeros=zeros), tables)


HAND_MADE = {
    "classes of levels": stack(identity(9), groups(9, [[0, 1, 2, 3], [4, 5, 6], [7, 8]]), total(9)),
    "levels alike and unasked": kron(groups(9, [[1, 2], [3, 4], [6]]), stack(identity(3), total(3))),
    "unasked cells beside a total": stack(kron(groups(5, [[0], [1]]), identity(2)), kron(total(5), total(2))),
    "overlapping groups": groups(12, [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 0]]),
    "equal sizes, different queries": stack(kron(prefix(4), total(4)), kron(total(4), identity(4))),
    "attributes of size 1": stack(kron(prefix(4), identity(1), total(3)), kron(total(4), identity(1), identity(3))),
    "signed": stack(kron(explicit([[1, -1, 0, 2]]), total(3)), kron(identity(4), identity(3))),
    "weights far apart": stack(kron(identity(4), total(5)), kron(total(4), identity(5)), weights=[1, "1/1000"]),
    "structural zeros": married(),
}
CASES = HAND_MADE | {f"drawn {seed}": drawn(seed) for seed in range(12)}


def whole(workload: Workload) -> WorkloadBlock:
    return parts_of(workload, split=False)[0]


def cells_of(part: WorkloadBlock) -> NDArray[np.bool_]:
    """Merged cells that can occur."""
    return np.ones(part.merged_size, dtype=np.bool_) if part.possible is None else part.possible.reshape(-1)


@pytest.fixture(scope="module")
def found() -> dict[str, tuple[GroupStack, float]]:
    return {name: best_partitions(whole(workload), starts=17) for name, workload in CASES.items()}


@pytest.mark.parametrize("name", CASES)
class TestAgainstMatrices:
    def test_error_is_that_of_the_pseudo_inverse(self, found: dict[str, tuple[GroupStack, float]], name: str) -> None:
        measured, error = found[name]
        part, cells = measured.part, cells_of(measured.part)
        queries, matrix = part.queries()[:, cells], rows_over_cells(measured)[:, cells]
        inverse = queries @ np.linalg.pinv(matrix, rcond=1e-10)
        np.testing.assert_allclose(inverse @ matrix, queries, atol=1e-7)
        assert error == pytest.approx(np.square(inverse).sum(), rel=1e-7)
        lengths = {key: squared_lengths(part, key, measured.inverses).reshape(-1) for key in part.tables}
        each = [part.squared_weights[key] * length for key, length in lengths.items()]
        np.testing.assert_allclose(np.concatenate(each), np.square(inverse).sum(axis=1), rtol=1e-6, atol=1e-12)

    def test_sensitivity_is_over_every_cell_that_can_occur(
        self, found: dict[str, tuple[GroupStack, float]], name: str
    ) -> None:
        measured, _ = found[name]
        columns = rows_over_cells(measured)[:, cells_of(measured.part)]
        assert np.abs(columns).sum(axis=0).max() == pytest.approx(1.0, rel=1e-12)
        assert measured.sensitivity("l1") == pytest.approx(1.0, rel=1e-12)
        largest = np.sqrt(np.square(columns).sum(axis=0).max())
        assert measured.sensitivity("l2") == pytest.approx(largest, rel=1e-12)

    def test_answers_come_back_and_carry_least_squares(
        self, found: dict[str, tuple[GroupStack, float]], name: str
    ) -> None:
        measured, _ = found[name]
        part, cells = measured.part, cells_of(measured.part)
        queries, matrix = part.queries()[:, cells], rows_over_cells(measured)[:, cells]
        counts = np.where(cells, np.arange(1, part.merged_size + 1) % 7, 0).astype(np.float64)
        bumps = np.stack([matrix @ counts[cells], np.cos(np.arange(measured.rows))])
        estimates = measured.estimate(bumps).reshape(2, -1)
        answers = estimates[:, cells] @ queries.T
        np.testing.assert_allclose(answers[0], queries @ counts[cells], atol=1e-7)
        np.testing.assert_allclose(answers[1], queries @ np.linalg.pinv(matrix, rcond=1e-10) @ bumps[1], atol=1e-6)

    def test_it_is_published_as_tables_of_plain_counts(
        self, found: dict[str, tuple[GroupStack, float]], name: str
    ) -> None:
        measured, _ = found[name]
        exact, part = measured.exact("l1"), measured.part
        rows = exact.count(np.eye(part.merged_size, dtype=np.int64).reshape(-1, *part.merged_shape)).T
        assert np.isin(rows, (0, 1)).all()
        tables = np.split(rows, np.cumsum([len(kept) for _, _, kept in exact.layout])[:-1])
        assert all((numbers.sum(axis=0) <= 1).all() for numbers in tables)
        kept = np.concatenate([weights[kept] for _, weights, kept in measured.layout]) >= np.ldexp(1.0, -BITS)
        weights = np.array([float(step) for step in exact.steps])[exact.kinds()]
        np.testing.assert_allclose(weights[:, None] * rows, rows_over_cells(measured)[kept], atol=np.ldexp(1.0, -BITS))

    def test_nothing_is_below_the_bound(self, found: dict[str, tuple[GroupStack, float]], name: str) -> None:
        bound = optimize_strategy(CASES[name], "gaussian").lower_bound
        assert bound <= found[name][1] * (1 + 1e-9)


def test_records_that_no_query_asks_about_are_counted_too() -> None:
    part = whole(groups(5, [[0], [1]]))
    [table] = own_tables(part)
    assert table == (Partition((0, 1), (True, False)),)  # the two levels that are asked about, and the rest
    summed = (Partition((0, 0), (False, False)),)
    measured = GroupStack(part, (table, summed), (np.array([0.2, 0.7]), np.array([0.1])), "by hand")
    assert measured.sensitivity("l1") == pytest.approx(0.8)
    assert np.abs(rows_over_cells(measured)).sum(axis=0).tolist() == pytest.approx([0.3, 0.3, 0.8])
    assert [dense(factor).tolist() for (factor,), _, _ in measured.layout] == [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[1, 1, 1]],
    ]
    alone = GroupStack(part, (summed,), (np.array([1.0]),), "by hand")
    assert alone.error() == math.inf  # the total does not tell the levels apart


def problem_of(workload: Workload) -> tuple[Weighing, Layout]:
    part = whole(workload)
    layout = Layout.of(part, coarser_tables(part, own_tables(part)))
    return weighing_of(layout), layout


class TestWeights:
    def test_slopes(self) -> None:
        for workload in (HAND_MADE["equal sizes, different queries"], married()):
            problem, _ = problem_of(workload)
            weights = 0.2 + np.abs(np.sin(np.arange(1, problem.count + 1)))
            weights = weights * problem.is_held
            numeric = approx_fprime(weights, lambda each: problem.error(each)[0], 1e-7)  # noqa: B023
            np.testing.assert_allclose(-2 * problem.error(weights)[1], numeric, rtol=1e-4, atol=1e-4)

    def test_error_is_that_of_the_rows(self) -> None:
        """By hand: two cells with weight 1 and their total with weight 2: tr of the inverse of I + 4J is 1 + 1/9."""
        part = whole(identity(2))
        one = Partition.of(part.levels[0], [0], [True])
        both = Partition.of(part.levels[0], [0], [False])
        problem = weighing_of(Layout.of(part, [(one,), (both,)]))
        assert problem.error(np.array([1.0, 2.0]))[0] == pytest.approx(1 + 1 / 9, rel=1e-7)
        assert problem.norms(np.array([1.0, 2.0])).tolist() == [3.0]

    def test_gains_are_those_of_a_group_alone(self) -> None:
        problem, _ = problem_of(HAND_MADE["equal sizes, different queries"])
        weights = np.full(problem.count, 0.3)
        gains = problem.gains(weights, np.array([0.25]))[0]
        for group in (0, 3, problem.count - 1):
            more = weights.copy()
            more[group] = math.sqrt(0.09 + 0.25)
            fall = problem.error(weights)[0] - problem.error(more)[0]
            # A class of levels is several rows, which are taken for one: never less than what all of them gain.
            assert gains[group] == pytest.approx(fall, rel=1e-6)

    def test_a_descent_ends_where_nothing_improves(self) -> None:
        problem, layout = problem_of(HAND_MADE["equal sizes, different queries"])
        start = np.zeros(problem.count)
        start[: layout.starts[2]] = 1.0
        point = descend(problem, start, None, steps=200, tolerance=1e-12)
        assert problem.norms(point.weights).max() == pytest.approx(1.0)
        assert point.error == pytest.approx(point.promise, rel=1e-6)
        active = np.flatnonzero(point.weights)
        for number in range(20):
            near = point.weights.copy()
            near[active] *= 1 + 0.01 * np.cos(number + 3 * np.arange(len(active)))
            near /= problem.norms(near).max()
            assert problem.error(near)[0] >= point.error * (1 - 1e-9)


class TestCodings:
    def test_candidates_of_overlapping_groups(self) -> None:
        """Races by name, by how many there are, and two or more of them: three partitions and what they refine to."""
        names = [[1], [2], [3], [4], [5], [6], [7]]
        part = whole(groups(8, [*names, [1, 2, 4], [3, 5, 6], [7], [3, 5, 6, 7]]))
        assert part.levels[0].classes.tolist() == [0, 1, 1, 2, 1, 2, 2, 3]
        found = set(codings_of(part, 0))
        assert Partition((0, 0, 0, 0), (False,) * 4) in found
        assert Partition((0, 1, 2, 3), (False,) * 4) in found
        assert Partition((0, 1, 2, 3), (False, True, True, False)) in found
        assert Partition((0, 0, 1, 1), (False,) * 4) in found
        assert own_tables(part) == ((Partition((0, 1, 2, 3), (False, True, True, False)),),)

    def test_groups_that_break_a_class_are_no_candidates(self) -> None:
        part = whole(explicit(1 - np.eye(4, dtype=np.int64)))
        assert part.orbit_shape == (1,)
        assert set(codings_of(part, 0)) == {Partition((0,), (False,)), Partition((0,), (True,))}

    def test_refinement(self) -> None:
        coarse, fine = Partition((0, 0, 1), (False,) * 3), Partition((0, 1, 1), (False,) * 3)
        both = Partition((0, 1, 2), (False,) * 3)
        assert coarse.joined(fine) == both
        assert both.is_finer_than(coarse)
        assert both.is_finer_than(fine)
        assert not coarse.is_finer_than(fine)
        level_by_level = Partition((0, 1, 2), (False, False, True))
        assert level_by_level.is_finer_than(both)
        assert not both.is_finer_than(level_by_level)
        assert coarse.joined(Partition((0, 0, 0), (False,) * 3)) == coarse
        assert coarse.joined(Partition((0, 0, 1), (False, False, True))) == Partition((0, 0, 1), (False, False, True))

    def test_runs_of_ordered_levels(self) -> None:
        part = whole(prefix(5))
        counts = sorted(coding.count for coding in codings_of(part, 0))
        assert counts == [1, 2, 2, 3, 5]

    def test_tables_asked_for_come_first(self) -> None:
        part = whole(stack(kron(identity(3), total(4)), kron(prefix(3), prefix(4)), kron(total(3), identity(4))))
        own = own_tables(part)
        assert [group_count(table) for table in own] == [12]
        tables = coarser_tables(part, own)
        assert tables[: len(own)] == own
        assert len(tables) == len(set(tables)) == math.prod(len(codings_of(part, place)) for place in range(2))


class TestSearch:
    def test_as_good_as_weights_of_all_marginals(self) -> None:
        """Another method for the same family: 2^d marginals, one weight each."""
        for order in (2, (0, 1, 2, 3)):
            part = whole(marginals((75, 16, 5, 2, 20), order))
            assert best_partitions(part)[1] <= best_marginals(part)[1] * (1 + 1e-6)

    def test_identity_and_total_in_closed_form(self) -> None:
        part = whole(stack(identity(256), total(256)))
        assert best_partitions(part)[1] == pytest.approx(386.885, abs=5e-4)

    def test_more_starts_only_improve(self) -> None:
        part = whole(marginals((9, 4, 3, 2), (1, 2)))
        errors = [best_partitions(part, starts=starts)[1] for starts in (1, 9, 17, 33)]
        assert errors == sorted(errors, reverse=True)
        assert errors[-1] < errors[0]

    def test_it_is_the_same_every_time(self) -> None:
        workload = HAND_MADE["levels alike and unasked"]
        first, second = (best_partitions(whole(workload)) for _ in range(2))
        assert first[1] == second[1]
        assert all(np.array_equal(one, two) for one, two in zip(first[0].weights, second[0].weights, strict=True))

    def test_no_single_weight_of_two_tables_is_better(self) -> None:
        """One-way tables by brute force over a grid: cells of each, with any shares."""
        part = whole(HAND_MADE["equal sizes, different queries"])
        measured, error = best_partitions(part)
        base = own_tables(part)
        problem = weighing_of(layout := Layout.of(part, base))
        sizes = np.diff(layout.starts)
        shares = np.linspace(0.05, 0.95, 91)
        scanned = [problem.error(np.repeat([share, 1 - share], sizes))[0] for share in shares]
        assert error < min(scanned)
        assert measured.rows >= 8

    def test_a_table_that_nobody_values_is_still_answered(self) -> None:
        tables = [kron(identity(4), total(5)), kron(total(4), identity(5))]
        part = whole(stack(*tables, weights=[1, "1/1000000000000"]))
        measured, error = best_partitions(part)
        matrix, queries = rows_over_cells(measured), part.queries()
        assert math.isfinite(error)
        np.testing.assert_allclose(queries @ np.linalg.pinv(matrix, rcond=1e-12) @ matrix, queries, atol=1e-9)


class TestStrategies:
    def test_thousands_of_cells(self) -> None:
        """Ages up to each year and places one by one, each alone: 3,000 cells, but 31 kinds of groups."""
        shape = (30, 100)
        tables = (Table("ages", (Prefix(30), Total(100))), Table("places", (Total(30), Identity(100))))
        strategy = optimize_strategy(Workload(Domain.of_shape(shape), tables))
        assert isinstance(strategy.measurements[0], GroupStack)
        assert strategy.sensitivity == pytest.approx(1.0, rel=1e-9)
        assert strategy.lower_bound <= strategy.error_coefficient
        assert strategy.error_coefficient < ((30 * 31 / 2) ** (1 / 3) + 100 ** (1 / 3)) ** 3  # ages and places apart
        counts = np.random.default_rng(3).integers(0, 5, size=shape)
        answers = strategy.exact.reconstruct(strategy.exact.count(counts))
        np.testing.assert_allclose(answers, strategy.workload.answers(counts), atol=1e-6)

    def test_a_product_is_not_the_best_of_products(self) -> None:
        """For pure ε two parts are measured together where that is better: 1,620 one by one."""
        binned = stack(identity(9), groups(9, [[0, 1, 2, 3], [4, 5, 6], [7, 8]]), total(9))
        strategy = optimize_strategy(kron(binned, stack(identity(30), total(30))))
        assert len(strategy.measurements) == 1
        parts = [optimize_strategy(each) for each in (binned, stack(identity(30), total(30)))]
        assert strategy.error_coefficient < 0.97 * math.prod(part.error_coefficient for part in parts)
        assert strategy.lower_bound == pytest.approx(math.prod(part.lower_bound for part in parts), rel=0.02)

    def test_too_many_cells_are_refused(self) -> None:
        workload = stack(kron(prefix(60), prefix(60)), kron(all_range(60), total(60)))
        assert not fits(whole(workload))
        with pytest.raises(TooLarge, match=r"(?s)laplace noise on 3,600 cells .* finest tables have 3,600"):
            optimize_strategy(workload)

    def test_error_in_simulation(self) -> None:
        workload = married()
        strategy = optimize_strategy(workload)
        assert isinstance(strategy.measurements[0], GroupStack)
        generator = np.random.default_rng(20100401)
        noise = generator.laplace(0.0, 1 / math.sqrt(2), size=(2500, strategy.exact.rows))
        weights = row_weights(strategy.exact)
        errors = np.array([strategy.exact.reconstruct(each / weights) for each in noise])
        assert np.square(errors).sum(axis=1).mean() == pytest.approx(strategy.error_coefficient, rel=0.05)
        each = np.concatenate([coefficients(strategy, table.name) for table in workload.tables])
        np.testing.assert_allclose(np.square(errors).mean(axis=0), each, rtol=0.2)
        assert np.abs(errors.mean(axis=0)).max() < 5 * math.sqrt(each.max() / len(noise))

    def test_census_persons(self) -> None:
        """500,480 cells and 4,151 queries; the best public optimizer reaches 110,926, its median seed 114,910."""
        strategy = optimize_strategy(sf1_persons())
        assert strategy.error_coefficient <= 60_000
        assert strategy.sensitivity == pytest.approx(1.0, rel=1e-9)
        assert 15_040 <= strategy.lower_bound <= 15_069
        each = sum(float(coefficients(strategy, table.name).sum()) for table in strategy.workload.tables)
        assert each == pytest.approx(strategy.exact.error_coefficient(strategy.protection), rel=1e-9)
        assert each == pytest.approx(strategy.error_coefficient, rel=1e-4)
        measured = max(strategy.exact.parts, key=lambda part: part.rows)
        assert isinstance(measured, GroupStack)
        assert sum(np.count_nonzero(weights) for _, weights, _ in measured.layout) == measured.rows < 5_000


def test_marginals_are_tables_of_plain_counts_too() -> None:
    stacked, error = best_marginals(whole(stack(marginals((3, 2, 4), 1), marginals((3, 2, 4), 2), weights=[5, 1])))
    assert error == pytest.approx(stacked.error(), rel=1e-9)
    for factors, weights, _ in stacked.layout:
        assert all(isinstance(factor, Identity | Total) for factor in factors)
        assert weights.shape == (math.prod(factor.rows for factor in factors),)
        assert len(set(weights.tolist())) == 1
    assert sum(float(weights[0]) for _, weights, _ in stacked.layout) == pytest.approx(stacked.sensitivity("l1"))
