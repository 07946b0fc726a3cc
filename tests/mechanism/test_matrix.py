"""The matrix mechanism: Theorem 2, figures from outside, products without large matrices, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, TooLarge, UnsupportedWorkload
from dualmandate.mechanism import (
    GAUSSIAN,
    GEOMETRIC,
    LAPLACE,
    NOISE_LAWS,
    MatrixMechanism,
    NoiseLaw,
    laplace,
)
from dualmandate.mechanism.reconstruction import is_identity
from dualmandate.mechanism.rows import DenseStrategy
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, Protection, StructuralZero
from dualmandate.workload import (
    Dense,
    Groups,
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

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


def tree(size: int) -> Workload:
    """All dyadic ranges: 1, 2, 4, …, size groups."""
    levels = [size >> level for level in range(size.bit_length())]
    return groups(size, [list(range(i, i + width)) for width in levels for i in range(0, size, width)])


def by_hand(queries: NDArray[np.float64], strategy: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(np.square(queries @ np.linalg.pinv(strategy)).sum(axis=1))


# Error coefficients measured elsewhere for the same workloads and strategies.
@pytest.mark.parametrize(
    ("strategy", "workload", "coefficient"),
    [
        (identity(64), prefix(64), 2_080),
        (tree(64), prefix(64), 2_840),
        (identity(64), all_range(64), 45_760),
        (tree(64), all_range(64), 132_336),
        (identity(256), stack(identity(256), total(256)), 512),
        (stack(identity(256), total(256), weights=[1, Fraction(138, 1000)]), stack(identity(256), total(256)), 386.885),
    ],
)
def test_known_error_coefficients(strategy: Workload, workload: Workload, coefficient: float) -> None:
    production = MatrixMechanism(strategy, LAPLACE).production(workload)
    assert production.error_coefficient == pytest.approx(coefficient, rel=2e-5)
    assert production.expected_squared_error(0.7) == pytest.approx(production.error_coefficient * 2 / 0.7**2)


def test_eight_prefix_sums_by_a_tree() -> None:
    """I = −175.54 at ε = 1 (a published check found −175.69 by simulation); MRT = 4(ΔA)²‖QA⁺‖²/ε³."""
    production = MatrixMechanism(tree(8), LAPLACE).production(prefix(8))
    assert production.expected_squared_error(1.0) == pytest.approx(175.54, abs=0.005)
    assert -sum(production.table_slopes(1.0).values()) == pytest.approx(4 * production.error_coefficient)
    assert sum(production.table_curvatures(1.0).values()) == pytest.approx(12 * production.error_coefficient)


def test_the_strategy_beats_noise_straight_on_the_answers() -> None:
    straight = laplace().production(prefix(64)).expected_squared_error(1.0)
    assert MatrixMechanism(tree(64), LAPLACE).production(prefix(64)).expected_squared_error(1.0) < straight / 50


@pytest.mark.parametrize("law", NOISE_LAWS.values(), ids=NOISE_LAWS)
def test_products_equal_written_out_matrices(law: NoiseLaw) -> None:
    strategy = kron(prefix(3), identity(2), stack(identity(2), weights=[Fraction(3, 2)]))
    workload = stack(
        marginals((3, 2, 2), [0, 1, 2]), kron(all_range(3), total(2), prefix(2)), weights=[1, Fraction(2, 5)]
    )
    product = MatrixMechanism(strategy, law).production(workload)
    start = 0
    for table in workload.tables:
        rows = slice(start, start + table.query_count)
        assert product.rows.answered[table.name].variances(lambda _: 1.0) == pytest.approx(
            by_hand(workload.dense(), strategy.dense())[rows], rel=1e-9
        )
        start += table.query_count
    # The same strategy over the flattened domain is not a product of the workload's attributes.
    written_out = MatrixMechanism(explicit(strategy.dense()), law).production(workload)
    for measure in ("squared", "absolute", "largest variance"):
        assert product.table_errors(1.3, measure) == pytest.approx(written_out.table_errors(1.3, measure), rel=1e-6)
    for table in workload.tables:
        assert product.half_width(table.name, 1.3, 0.9) == pytest.approx(
            written_out.half_width(table.name, 1.3, 0.9), rel=1e-6
        )


@given(
    rows=st.lists(st.lists(st.integers(-2, 2), min_size=4, max_size=4), min_size=2, max_size=6),
    law=st.sampled_from(list(NOISE_LAWS.values())),
)
@settings(max_examples=40, deadline=None)
def test_support_is_decided_as_by_the_pseudo_inverse(rows: list[list[int]], law: NoiseLaw) -> None:
    matrix = np.array(rows)
    queries = prefix(4).dense()
    supported = np.allclose(queries @ np.linalg.pinv(matrix) @ matrix, queries, atol=1e-7)
    mechanism = MatrixMechanism(matrix, law)
    if supported:
        found = mechanism.production(prefix(4)).rows.answered["prefix"].variances(lambda _: 1.0)
        assert found == pytest.approx(by_hand(queries, matrix.astype(float)), rel=1e-6)
    else:
        with pytest.raises(UnsupportedWorkload, match="does not support the query"):
            mechanism.production(prefix(4))


def test_an_unsupported_query_is_named() -> None:
    domain = Domain((Attribute.categories("sex", ["f", "m"]), Attribute.categories("age", ["child", "adult", "old"])))
    workload = Workload.from_tabulations(
        domain, [Tabulation("people", by=()), Tabulation("by age", by=("age",)), Tabulation("by sex", by=("sex",))]
    )
    by_sex = Workload.from_tabulations(domain, [Tabulation("by sex", by=("sex",))])
    with pytest.raises(UnsupportedWorkload, match="'child' of table 'by age'"):
        MatrixMechanism(by_sex, LAPLACE).production(workload)
    stacked = Workload.from_tabulations(domain, [Tabulation("by sex", by=("sex",)), Tabulation("people", by=())])
    with pytest.raises(UnsupportedWorkload, match="'child' of table 'by age'"):
        MatrixMechanism(stacked, LAPLACE).production(workload)
    assert MatrixMechanism(by_sex, LAPLACE).production(workload.only(["people", "by sex"]))


def test_identity_strategies_write_nothing_out() -> None:
    shape = (1000, 200, 50)
    cells = kron(*(identity(size) for size in shape))
    workload = marginals(shape, [0, 1, 2, 3])
    production = MatrixMechanism(cells, GEOMETRIC).production(workload)
    # Each marginal adds up all ten million cells once.
    assert production.table_errors(1.0) == pytest.approx(
        {table.name: 10**7 * GEOMETRIC.variance(1.0) for table in workload.tables}
    )
    assert production.rows.answered[workload.tables[-1].name].variances(lambda _: 1.0).strides == (0,)
    absolute = production.table_errors(1.0, "absolute")
    # A sum of ten million draws is Gaussian, one draw is geometric.
    assert absolute["total"] == pytest.approx(math.sqrt(2 / math.pi * 10**7 * GEOMETRIC.variance(1.0)), rel=1e-5)
    assert absolute["axis0 × axis1 × axis2"] == pytest.approx(10**7 * GEOMETRIC.mean_absolute(1.0), rel=1e-12)


def test_disjoint_sums_are_bounded_together_exactly() -> None:
    production = MatrixMechanism(identity(6), LAPLACE).production(groups(6, [[0, 1, 2], [3, 4, 5]]))
    single = production.half_width("groups", 1.0, math.sqrt(0.9))
    assert production.simultaneous_half_width("groups", 1.0, 0.9) == pytest.approx(single, rel=1e-9)
    overlapping = MatrixMechanism(identity(6), LAPLACE).production(groups(6, [[0, 1, 2], [2, 4, 5]]))
    assert overlapping.simultaneous_half_width("groups", 1.0, 0.9) == pytest.approx(
        overlapping.half_width("groups", 1.0, 0.95), rel=1e-9
    )


def test_a_dense_strategy_has_exact_sensitivities() -> None:
    matrix = np.array([[1, 1, 0.1], [0, 2, 0.3], [0, -0.5, 0]])
    strategy = DenseStrategy(matrix)
    domain = Domain.of_shape((3,))
    assert strategy.sensitivity(domain, Protection(), "l1").power == Fraction(7, 2)
    assert strategy.sensitivity(domain, Protection(), "l2").power == Fraction(21, 4)
    assert not strategy.is_whole
    pairs = strategy.sensitivity(domain, REPLACE_ONE, "l1")
    assert not pairs.exact
    assert 0 <= pairs.power - Fraction(0.9) - Fraction(1.7) - Fraction(1, 2) < Fraction(1, 10**10)
    whole = DenseStrategy(np.array([[1.0, 1.0, 0.0], [0.0, 2.0, 3.0]]))
    assert whole.sensitivity(domain, REPLACE_ONE, "l1").power == 4
    assert whole.sensitivity(domain, REPLACE_ONE, "l2").power == 10
    assert whole.sensitivity(domain, REPLACE_ONE, "l1").exact
    twice = Protection(most_records_per_unit=2, identifier="id")
    assert whole.sensitivity(domain, twice, "l1").power == 6
    assert whole.sensitivity(domain, twice, "l2").power == 36


def test_impossible_cells_do_not_count() -> None:
    zero = StructuralZero.of({"axis1": "1", "axis0": ("0", "1")})
    domain = Domain(Domain.of_shape((3, 2)).attributes, structural_zeros=(zero,))
    assert domain.possible_cells().tolist() == [True, False, True, False, True, True]
    matrix = np.array([[1.0, 9.0, 1.0, 9.0, 1.0, 2.0]])
    assert DenseStrategy(matrix).sensitivity(domain, Protection(), "l1").power == 2


def test_a_strategy_is_judged_by_the_rules_of_the_domain_that_is_protected() -> None:
    """What only the strategy's own domain rules out, or groups otherwise, can occur and counts."""
    attributes = (Attribute.categories("age", ["child", "adult"]), Attribute.categories("sex", ["f", "m"]))
    never = Domain(attributes, structural_zeros=(StructuralZero.of({"age": "child", "sex": "f"}),))
    children_twice = Tabulation.of("children", weights={"age": {"child": 1, "adult": "0.5"}})
    cells = Tabulation.of("cells", ("age", "sex"))
    for strict, loose in ((Domain(attributes), never), (never, Domain(attributes))):
        asked = Workload.from_tabulations(strict, [cells])
        strategy = Workload.from_tabulations(loose, [cells, children_twice])
        found = MatrixMechanism(strategy, LAPLACE).production(asked, REPLACE_ONE).sensitivity
        assert found == Workload(strict, strategy.tables).sensitivity(REPLACE_ONE)
    only_girls = Domain(attributes, structural_zeros=(StructuralZero.of({"age": "child"}),))
    half = Workload.from_tabulations(only_girls, [Tabulation.of("sums", weights={"age": {"child": 1, "adult": "0.5"}})])
    assert MatrixMechanism(half, LAPLACE).production(Workload(Domain(attributes), half.tables)).sensitivity.power == 1
    fixed = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("by axis", ("axis0",)),))
    with pytest.raises(InvalidMechanism, match="numbered cells with the exact total 'by axis'"):
        MatrixMechanism(identity(4), LAPLACE).production(kron(identity(2), identity(2)), fixed)


@pytest.mark.parametrize("pairs", [2**27, 0], ids=["all pairs", "twice the largest column"])
def test_several_records_with_opposite_signs_are_covered(pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three records moved from −1 to 1: ‖·‖₁ = 3·2, ‖·‖₂² = (3·2)²."""
    monkeypatch.setattr("dualmandate.mechanism.rows.LARGEST_PAIRS", pairs)
    protection = Protection(neighbors=Neighbors.REPLACE_ONE, most_records_per_unit=3, identifier="id")
    strategy = DenseStrategy(np.array([[1.0, -1.0]]))
    assert strategy.sensitivity(Domain.of_shape((2,)), protection, "l1").power == 6
    assert strategy.sensitivity(Domain.of_shape((2,)), protection, "l2").power == 36


def test_errors_that_share_measurements_are_not_taken_for_independent() -> None:
    for strategy in (tree(4), tree(4).dense(), groups(4, [[0], [0, 1], [2, 3], [3]])):
        production = MatrixMechanism(strategy, LAPLACE).production(prefix(4))
        assert not any(answers.independent for answers in production.rows.answered.values())


def test_whole_numbers_beyond_what_floats_subtract_exactly_are_not_taken_for_whole() -> None:
    assert DenseStrategy(np.array([[2.0**51, 1.0]])).is_whole
    assert not DenseStrategy(np.array([[2.0**60, 1.0]])).is_whole


def test_many_columns_are_bounded() -> None:
    wide = DenseStrategy(np.ones((2, 20_000)))
    bound = wide.sensitivity(Domain.of_shape((20_000,)), REPLACE_ONE, "l1")
    assert not bound.exact
    assert bound.power == 4
    assert "at most" in str(bound)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidMechanism, match="strategy with fractions"):
        MatrixMechanism(np.eye(4) / 2, GEOMETRIC).production(prefix(4))
    with pytest.raises(InvalidMechanism, match="a strategy over cells of shape"):
        MatrixMechanism(identity(5), LAPLACE).production(prefix(4))
    with pytest.raises(InvalidMechanism, match="a strategy of shape"):
        MatrixMechanism(np.full((2, 4), np.nan), LAPLACE).production(prefix(4))
    with pytest.raises(TooLarge):
        MatrixMechanism(np.ones((3000, 3000)), LAPLACE).production(prefix(3000))
    with pytest.raises(TooLarge, match="rows or columns of a strategy"):
        MatrixMechanism(prefix(4096), LAPLACE).production(identity(4096))
    with pytest.raises(TooLarge):
        MatrixMechanism(stack(identity(10**5), total(10**5)), LAPLACE).production(identity(10**5))
    invariant = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("everybody"),))
    with pytest.raises(InvalidMechanism, match="dense strategy with the exact total"):
        MatrixMechanism(np.eye(4), LAPLACE).production(prefix(4), invariant)


def test_fractions_are_measured_as_a_weighted_workload() -> None:
    halves = MatrixMechanism(explicit(np.eye(4) / 2), GEOMETRIC).production(prefix(4))
    cells = MatrixMechanism(identity(4), GEOMETRIC).production(prefix(4))
    assert halves.rows.steps == (Fraction(1, 2),)
    assert halves.expected_squared_error(1.2) == pytest.approx(cells.expected_squared_error(1.2), rel=1e-12)


def test_invariants_narrow_what_the_strategy_must_hide() -> None:
    domain = Domain((Attribute.categories("place", ["a", "b"]), Attribute.categories("kind", ["x", "y"])))
    cells = Workload.from_tabulations(domain, [Tabulation("cells", by=("place", "kind"))])
    exact = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("people by place", by=("place",)),))
    assert MatrixMechanism(cells, LAPLACE).production(cells, exact).sensitivity.power == 2
    by_place = Workload.from_tabulations(domain, [Tabulation("places", by=("place",))])
    with pytest.raises(InvalidMechanism, match="no protected person can change"):
        MatrixMechanism(by_place, LAPLACE).production(by_place, exact)


def test_the_name_says_the_noise() -> None:
    assert MatrixMechanism(identity(2), GAUSSIAN).name == "matrix mechanism with gaussian noise"


def test_identity_in_disguise() -> None:
    assert is_identity(Groups.of_lists(3, [[0], [1], [2]]))
    assert not is_identity(Groups.of_lists(3, [[1], [0], [2]]))
    assert not is_identity(Groups.of_lists(3, [[0, 1], [2]]))
    assert not is_identity(Dense(np.array([[1, 1], [0, 1]])))
