"""How rows become whole numbers: how many bits that takes, what is kept, and that nothing asked gets lost."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.strategy.dual import GaussianOptimum, gaussian_optimum
from dualmandate.mechanism.strategy.integer_rounding import (
    ALLOWED_RISE,
    kept_row,
    power_of_two,
    rounded_down,
    whole_rows,
)
from dualmandate.mechanism.strategy.integer_rows import IntegerRows, OptimalRows, Residuals
from dualmandate.mechanism.strategy.p_identity import p_identity_measurement, search_p_identity
from dualmandate.mechanism.strategy.workload_blocks import EVERYTHING_AVERAGED, WorkloadBlock, parts_of
from dualmandate.population import Domain
from dualmandate.population.arrays import Floats
from dualmandate.workload import (
    Factor,
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

BINS = groups(9, [[0, 1, 2, 3], [4, 5, 6], [7, 8]])


def differences_of(part: WorkloadBlock) -> GaussianOptimum:
    """The optimum in differences, also where plain counts would do."""
    with patch("dualmandate.mechanism.strategy.dual.MOST_MARGINALS", 0):
        return gaussian_optimum(part)


def gaussian(workload: Workload) -> tuple[Residuals, float]:
    """The best rows for Gaussian noise of a workload of one part, and their error."""
    (part,) = parts_of(workload)
    found = differences_of(part)
    assert isinstance(found.measured, Residuals)
    return found.measured, found.error


def laplace(workload: Workload) -> tuple[Residuals, float]:
    """Cells and sums for pure ε, and their error."""
    apart = parts_of(workload, split=False)[0].cell_by_cell()
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    found = search_p_identity(gram)
    sums, error = found.sums, found.error
    return Residuals(apart, {EVERYTHING_AVERAGED: p_identity_measurement(sums)}, "cells and sums"), error


def error_of(rows: IntegerRows, power: int) -> float:
    """Δ²·‖QA⁺‖²_F with the exact sensitivity, each table by its weight."""
    part = rows.part
    noise = sum(part.squared_weights[key] * float(rows.table_sums(key).sum()) for key in part.tables)
    return float(float(rows.largest_column(power)) ** (2 / power) * noise)


@pytest.mark.parametrize("size", [2, 3, 16, 64, pytest.param(256, marks=pytest.mark.slow)])
@pytest.mark.parametrize("ask", [prefix, all_range])
class TestOrderedDomains:
    def test_squares_are_kept(self, ask: Callable[[int], Workload], size: int) -> None:
        measured, error = gaussian(ask(size))
        rows = whole_rows(measured, "l2")
        assert error * (1 - 1e-9) < error_of(rows, 2) < error * (1 + ALLOWED_RISE)
        assert rows.bits <= (8 if size >= 16 else 11)
        if size >= 16:
            assert rows.rows == size
            assert all(step.numerator.bit_length() <= 7 for step in rows.steps)
            assert len(rows.steps) <= 5

    def test_sums_are_kept(self, ask: Callable[[int], Workload], size: int) -> None:
        measured, error = laplace(ask(size))
        rows = whole_rows(measured, "l1")
        assert error_of(rows, 1) < error * (1 + ALLOWED_RISE)
        assert rows.bits <= 8
        assert rows.largest_column(1) == 1 or rows.bits == 0


def column_sums(rows: IntegerRows) -> list[Fraction]:
    [sector] = rows.sectors.values()
    columns = np.abs(sector.numbers).T.tolist()
    return [sum((w * a for w, a in zip(sector.weights, column, strict=True)), Fraction(0)) for column in columns]


def test_every_column_of_cells_and_sums_has_norm_one() -> None:
    measured, _ = laplace(all_range(40))
    rows = whole_rows(measured, "l1")
    assert column_sums(rows) == [Fraction(1)] * 40
    [sector] = rows.sectors.values()
    own = [weight for numbers, weight in zip(sector.numbers, sector.weights, strict=True) if numbers.sum() == 1]
    assert len(own) == 40
    assert all((weight * 2**rows.bits).denominator == 1 for weight in sector.weights)


def nearest(measured: Residuals, gram: Floats, bits: int) -> float:
    """The error of cells and sums with every entry rounded to the nearest multiple of 2^-bits, and scaled."""
    rows = np.rint(measured.measurements[EVERYTHING_AVERAGED].rows * 2.0**bits) / 2.0**bits
    largest = np.abs(rows).sum(axis=0).max()
    return float(largest**2 * np.trace(np.linalg.solve(rows.T @ rows, gram)))


def test_largest_remainders_need_fewer_bits_than_the_nearest_whole_numbers() -> None:
    measured, error = laplace(all_range(64))
    rows = whole_rows(measured, "l1")
    gram = measured.part.gram()
    assert rows.bits <= 8
    enough = [bits for bits in range(6, 16) if nearest(measured, gram, bits) < error * (1 + ALLOWED_RISE)]
    assert min(enough) >= rows.bits + 3


def test_a_cell_that_is_hardly_measured_keeps_a_weight() -> None:
    """The own weight, 1/501, is less than half a step: the sum is rounded down to leave something."""
    (part,) = parts_of(prefix(3))
    measured = p_identity_measurement(np.array([[500.0, 0.3, 0.2], [0.0, 0.1, 0.7]]))
    rows = whole_rows(Residuals(part, {EVERYTHING_AVERAGED: measured}, "cells and sums"), "l1")
    assert column_sums(rows) == [Fraction(1)] * 3
    assert min(rows.steps) > 0


def test_plain_counts_are_not_scaled_up() -> None:
    """Identity and total, cell by cell: weights are rounded to 20 bits, entries are 0 and 1."""
    part = parts_of(stack(identity(5), total(5)))[0].cell_by_cell()
    measured = p_identity_measurement(np.full((1, 5), 0.3))
    rows = whole_rows(Residuals(part, {EVERYTHING_AVERAGED: measured}, "cells and their total"), "l1")
    [sector] = rows.sectors.values()
    assert rows.bits == 0
    assert rows.words == "cells and their total"
    assert sector.numbers.tolist() == [*np.eye(5, dtype=int).tolist(), [1] * 5]
    assert rows.steps == (rounded_down(1 / 1.3), rounded_down(0.3 / 1.3))
    assert 1 - Fraction(1, 2**18) < rows.largest_column(1) < 1


def test_plain_sums_beside_unequal_ones_are_kept() -> None:
    (part,) = parts_of(prefix(4))
    sums = np.array([np.sqrt([0.1, 0.25, 0.4, 0.2]), [0.0, 0.0, 0.0, 0.0], [0.7, 0.0, 0.0, 0.0]])
    scales = 1 + sums.sum(axis=0)
    sums = np.concatenate([sums, 0.3 * scales[None] / (1 - 0.3)])
    measured = p_identity_measurement(sums)
    rows = whole_rows(Residuals(part, {EVERYTHING_AVERAGED: measured}, "cells, sums and the total"), "l1")
    [sector] = rows.sectors.values()
    plain = [w for numbers, w in zip(sector.numbers, sector.weights, strict=True) if numbers.tolist() == [1] * 4]
    assert column_sums(rows) == [Fraction(1)] * 4
    assert plain == [rounded_down(float(measured.rows[-1, 0]))]


@pytest.mark.parametrize(
    ("workload", "bits"),
    [
        (stack(kron(identity(9), prefix(4)), kron(BINS, total(4))), 10),
        (stack(kron(identity(9), total(4)), kron(BINS, prefix(4)), kron(total(9), identity(4))), 11),
        (stack(kron(prefix(8), total(5)), kron(total(8), prefix(5))), 12),
        (marginals((5, 4, 3), (1, 2)), 0),
        (groups(12, [[0, 1, 2, 3], [3, 4, 5], [5, 6, 7, 0], [2, 4, 9]]), 12),
    ],
)
def test_unions_lose_little(workload: Workload, bits: int) -> None:
    measured, error = gaussian(workload)
    rows = whole_rows(measured, "l2")
    assert error_of(rows, 2) < error * (1 + ALLOWED_RISE)
    assert (rows.bits > 0) == (bits > 0)
    assert rows.bits <= bits


def test_rows_of_whole_numbers_are_recognized() -> None:
    found = kept_row(np.array([0.0, 0.1, -0.3, 0.25]) / 7)
    assert found is not None
    assert found.numbers.tolist() == [0, 2, -6, 5]
    assert 0 <= 1 / 140 - float(found.weight) < 2**-19 / 140
    assert kept_row(np.sqrt(np.arange(1.0, 5.0))) is None
    assert kept_row(np.array([1.0, 1.0 + 1e-9])) is None
    noisy = kept_row(np.array([3.0, 3.0 * (1 + 1e-14), 1e-12]))
    assert noisy is not None
    assert noisy.numbers.tolist() == [1, 1, 0]
    assert noisy.weight == 3


@pytest.mark.parametrize("size", [1.0, 0.3, 1e-9, 12345.678])
def test_weights_are_rounded_down_to_twenty_bits(size: float) -> None:
    weight = rounded_down(size)
    assert weight.denominator.bit_count() == 1
    assert weight.numerator <= 2**20
    assert -1e-12 < 1 - float(weight) / size < 2**-19
    assert rounded_down(size * (1 - 1e-15)) == weight
    assert power_of_two(-3) * power_of_two(5) == 4


def test_the_same_rows_give_the_same_whole_numbers() -> None:
    measured, _ = gaussian(stack(kron(identity(9), prefix(4)), kron(BINS, total(4))))
    first, second = (whole_rows(measured, "l2") for _ in range(2))
    for sector, each in first.sectors.items():
        np.testing.assert_array_equal(each.numbers, second.sectors[sector].numbers)
        assert each.weights == second.sectors[sector].weights


@pytest.mark.parametrize(
    "workload",
    [prefix(12), stack(kron(prefix(5), total(4)), kron(total(5), prefix(4))), stack(identity(9), BINS, weights=[1, 3])],
)
def test_whole_numbers_depend_on_what_rows_say_not_on_how(workload: Workload) -> None:
    """Turned rows measure the same, as those of another machine may; signs and directions leave no trace."""
    measured, _ = gaussian(workload)
    turned = {}
    for sector, each in measured.measurements.items():
        size = len(each.rows)
        rotation = np.linalg.qr(np.sin(np.arange(1.0, size**2 + 1)).reshape(size, size))[0]
        turned[sector] = OptimalRows(rotation @ each.rows, each.inverse @ rotation.T)
    first, second = (whole_rows(each, "l2") for each in (measured, Residuals(measured.part, turned, measured.words)))
    for sector, whole in first.sectors.items():
        np.testing.assert_array_equal(whole.numbers, second.sectors[sector].numbers)
        assert whole.weights == second.sectors[sector].weights


def single(part: WorkloadBlock, rows: Floats) -> Residuals:
    return Residuals(part, {EVERYTHING_AVERAGED: OptimalRows(rows, np.asarray(np.linalg.pinv(rows)))}, "two sums")


def test_too_few_bits_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    measured, _ = gaussian(prefix(16))
    monkeypatch.setattr("dualmandate.mechanism.strategy.integer_rounding.MOST_BITS", 6)
    with pytest.raises(InvalidMechanism, match="whole-number rows for a strategy of 16 weighted sums") as refusal:
        whole_rows(measured, "l2")
    assert "rounded to 6 bits, its error is still 1.00" in refusal.value.why


def test_queries_that_are_not_measured_are_refused() -> None:
    (part,) = parts_of(groups(5, [[0, 1], [1, 2], [2, 3]]))
    with pytest.raises(InvalidMechanism, match="3 independent queries of which 2 are measured"):
        whole_rows(single(part, np.ones((2, len(part.cells))) + np.eye(2, len(part.cells))), "l2")


def test_rows_that_say_nothing_new_are_left_out() -> None:
    """A fourth row that depends on three is one too many: three remain, with the error of all four."""
    measured, error = gaussian(groups(7, [[0, 1, 2], [2, 3, 4], [4, 5, 6]]))
    [each] = measured.measurements.values()
    doubled = np.concatenate([each.rows[:2], each.rows[2:] / np.sqrt(2.0), each.rows[2:] / np.sqrt(2.0)])
    rows = whole_rows(single(measured.part, doubled), "l2")
    assert rows.rows == 3
    assert error_of(rows, 2) < error * (1 + ALLOWED_RISE)


@pytest.mark.parametrize("on_average", [np.zeros((0, 2)), np.array([[1e-9, 0.0]])])
def test_sectors_without_queries_are_left_out(on_average: Floats) -> None:
    """Two differences: nothing is asked on average over classes, but for rounding errors."""
    (part,) = parts_of(explicit([[1, -1, 0, 0], [0, 0, 2, -2]]))
    assert part.orbit_shape == (2,)
    measurements = {EVERYTHING_AVERAGED: OptimalRows(on_average, np.asarray(np.linalg.pinv(on_average)))}
    for one in (0, 1):
        measurements[frozenset({(0, one)})] = OptimalRows(np.array([[0.5]]), np.array([[2.0]]))
    rows = whole_rows(Residuals(part, measurements, "two differences"), "l2")
    assert rows.rows == 4
    assert rows.steps == (Fraction(1, 4),)
    counts = np.array([[5, 1, 7, 4]])
    assert rows.count(counts).tolist() == [[4, -4, 3, -3]]
    np.testing.assert_allclose(np.diff(rows.estimate(rows.count(counts) / 4.0))[0, ::2], [-4.0, -3.0])


def test_numbers_that_are_too_large_are_refused() -> None:
    (part,) = parts_of(explicit([[2**57, 2**56 + 1, 2**55], [2**55, 2**54, 2**57 + 1]]))
    measured = differences_of(part).measured
    assert isinstance(measured, Residuals)
    with pytest.raises(TooLarge, match="entries above 2\\^62"):
        whole_rows(measured, "l2")


FACTORS: dict[int, list[Factor]] = {
    size: [
        Identity(size),
        Total(size),
        Prefix(size),
        Groups.of_lists(size, [range(size // 2 + 1), range(size // 2, size)]),
        Groups.of_lists(size, [[0]]),
    ]
    for size in (1, 2, 4)
}


@st.composite
def unions(draw: st.DrawFn) -> Workload:
    """A few products of factors over two or three small attributes, weighted."""
    shape = draw(st.lists(st.sampled_from([1, 2, 4]), min_size=2, max_size=3))
    tables = [
        Table(
            f"table {number}",
            tuple(draw(st.sampled_from(FACTORS[size])) for size in shape),
            Fraction(draw(st.integers(1, 5))),
        )
        for number in range(draw(st.integers(1, 4)))
    ]
    return Workload(Domain.of_shape(shape), tuple(tables))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(unions())
def test_any_union_of_products_keeps_its_answers_and_its_error(workload: Workload) -> None:
    (part,) = parts_of(workload, split=False)
    found = differences_of(part)
    assert isinstance(found.measured, Residuals)
    sums, error = laplace(workload)
    for measured, norm, least in ((found.measured, "l2", found.error), (sums, "l1", error)):
        rows = whole_rows(measured, "l2" if norm == "l2" else "l1")
        shape = rows.part.merged_shape
        assert error_of(rows, 2 if norm == "l2" else 1) < least * (1 + ALLOWED_RISE)
        counts = (np.arange(rows.part.merged_size) * 5 % 7).reshape(1, *shape)
        steps = np.array([float(step) for step in rows.steps])
        estimate = rows.estimate(steps[rows.kinds()] * rows.count(counts))
        for factors in rows.part.tables.values():
            values = np.stack([estimate[0], counts[0].astype(np.float64)])
            for place, (factor, level) in enumerate(zip(factors, rows.part.levels, strict=True)):
                values = level.apply(factor, values, 1 + place)
            np.testing.assert_allclose(values[0], values[1], atol=1e-8 * max(1.0, float(np.abs(values[1]).max())))
