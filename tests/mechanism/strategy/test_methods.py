"""The pieces: how a workload is taken apart, the dual problem, gradients."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from tests.mechanism.strategy.reference import coefficients

from dualmandate.mechanism import optimize_strategy
from dualmandate.mechanism.strategy import dual
from dualmandate.mechanism.strategy.arrays import TorchArrays
from dualmandate.mechanism.strategy.dual import SymmetryBlock, solve
from dualmandate.mechanism.strategy.marginals import _cube_roots, _Problem, best_marginals
from dualmandate.mechanism.strategy.p_identity import p_identity_error, p_identity_measurement, search_p_identity
from dualmandate.mechanism.strategy.workload_blocks import parts_of
from dualmandate.population.arrays import Floats
from dualmandate.workload import all_range, explicit, groups, identity, kron, marginals, prefix, stack, total


def test_products_are_taken_apart() -> None:
    part_axes = [part.axes for part in parts_of(kron(prefix(3), stack(identity(2), total(2)), all_range(4)))]
    assert part_axes == [(0,), (1,), (2,)]
    joined = stack(kron(prefix(3), total(2)), kron(total(3), identity(2)))
    assert {part.axes for part in parts_of(kron(joined, identity(5)))} == {(0, 1), (2,)}
    assert {part.axes for part in parts_of(kron(identity(5), joined))} == {(1, 2), (0,)}
    assert [part.axes for part in parts_of(kron(prefix(3), prefix(3)), split=False)] == [(0, 1)]
    assert len(parts_of(joined)) == 1


def test_weights_that_do_not_multiply_keep_parts_together() -> None:
    pair = [identity(2), total(2)]
    tables = [kron(left, right) for left in pair for right in pair]
    assert len(parts_of(stack(*tables, weights=[1, 2, 3, 6]))) == 2
    assert len(parts_of(stack(*tables, weights=[1, 2, 3, 5]))) == 1


def test_levels_alike_are_merged_in_order() -> None:
    (part,) = parts_of(groups(9, [[6, 7, 8], [0, 1, 2, 6]]))
    assert part.merged_shape == (4,)
    assert part.levels[0].kept.tolist() == [0, 3, 6, 7]
    assert part.levels[0].labels is not None
    assert part.levels[0].labels.tolist() == [0, 0, 0, 1, 1, 1, 2, 3, 3]


def test_exchangeable_levels_are_seen() -> None:
    (part,) = parts_of(stack(identity(4), total(4), explicit(1 - np.eye(4, dtype=np.int64))))
    assert part.is_symmetric
    (mean, differences) = (part.sectors[frozenset(chosen)] for chosen in ((), ((0, 0),)))
    values = np.linalg.eigvalsh(part.cell_by_cell().gram())
    assert sum(differences.values()) == pytest.approx(values[0])
    assert sum(mean.values()) == pytest.approx(values[-1])
    assert parts_of(prefix(4))[0].orbit_shape == (4,)


def test_levels_within_a_group_are_exchangeable() -> None:
    (part,) = parts_of(stack(identity(9), groups(9, [[0, 1, 2, 3], [4, 5, 6], [7, 8]])))
    assert part.levels[0].classes.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2]
    assert part.orbit_sizes.tolist() == [4, 3, 2]
    assert len(part.sectors) == 4


def test_sectors_hold_the_whole_spectrum() -> None:
    binned = groups(7, [[0, 1, 2], [3, 4], [5], [6]])
    tables = [kron(identity(7), total(4)), kron(binned, prefix(4)), kron(total(7), identity(4))]
    (part,) = parts_of(stack(*tables, weights=[1, 2, 3]))
    values = np.linalg.eigvalsh(part.cell_by_cell().gram())
    found = [
        np.repeat(np.linalg.eigvalsh(part.gram(sector)), int(part.multiplicity(sector))) for sector in part.sectors
    ]
    together = np.concatenate(found)
    expected = values[values > 1e-9]
    np.testing.assert_allclose(np.sort(together[together > 1e-9]), expected, rtol=1e-9)


def _whole(matrix: Floats, *, by_rows: bool) -> tuple[list[SymmetryBlock], Floats]:
    cells = matrix.shape[1]
    return [SymmetryBlock(1.0, matrix, by_rows, np.arange(cells))], np.full(cells, 1.0 / cells)


def test_the_dual_by_rows_and_by_gram_agree() -> None:
    rows = groups(30, [range(k, k + 12) for k in range(0, 18, 2)]).dense()
    one, other = solve(*_whole(rows, by_rows=True), 1e-9), solve(*_whole(rows.T @ rows, by_rows=False), 1e-9)
    assert one.lower == pytest.approx(other.lower, rel=1e-7)
    for found in (one, other):
        [measured] = found.measurements
        np.testing.assert_allclose(rows @ measured.inverse @ measured.rows, rows, atol=1e-6)
        assert np.square(measured.rows).sum(axis=0).max() == pytest.approx(1.0)
        assert np.square(rows @ measured.inverse).sum() == pytest.approx(found.upper, rel=1e-6)


def test_the_dual_on_torch(torch: Any) -> None:
    for workload, by_rows in ((prefix(400), False), (groups(30, [range(k, k + 12) for k in range(0, 18, 2)]), True)):
        matrix = workload.dense() if by_rows else workload.gram()
        [block], start = _whole(matrix, by_rows=by_rows)
        here = solve([block], start, 1e-6)
        there = solve([replace(block, matrix=TorchArrays(torch, torch.device("cpu")).asarray(matrix))], start, 1e-6)
        assert there.upper == pytest.approx(here.upper, rel=1e-9)
        assert there.operations == here.operations
        np.testing.assert_allclose(there.measurements[0].rows.shape, here.measurements[0].rows.shape)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-8])
def test_the_dual_makes_every_column_as_long(tolerance: float) -> None:
    """Masses that are off by a little, or rounded, then cost the square of that, and less than what was asked."""
    gram = all_range(40).gram().astype(np.float64)
    found, best = (solve(*_whole(gram, by_rows=False), each) for each in (tolerance, 1e-12))
    [measured] = found.measurements
    np.testing.assert_allclose(np.square(measured.rows).sum(axis=0), 1.0, rtol=1e-12)
    np.testing.assert_allclose(measured.inverse @ measured.rows, np.eye(40), atol=1e-9)
    assert found.upper == pytest.approx(np.trace(gram @ np.linalg.inv(measured.rows.T @ measured.rows)), rel=1e-10)
    assert found.upper <= best.lower * (1 + max(1e-9, 1e-2 * tolerance))


def test_the_dual_of_masses_that_differ_in_their_last_digits() -> None:
    """The strategy is that of the rounded masses: noise of another machine's size leaves no trace."""
    gram = prefix(50).gram().astype(np.float64)
    blocks, start = _whole(gram, by_rows=False)
    masses = solve(blocks, start, 1e-6).masses
    shaken = masses * (1 + 1e-11 * np.cos(np.arange(50.0)))
    first, second = (dual._leveled(blocks, each) for each in (masses, shaken))
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first[0].rows, second[0].rows)


def test_queries_that_span_less_than_all_cells_keep_their_span() -> None:
    """Scaled columns would leave it: differences of 10 cells have rank 9."""
    centered = np.eye(10) - 0.1
    blocks, start = _whole(centered, by_rows=False)
    assert dual._leveled(blocks, start) is None
    found = solve(blocks, start, 1e-9)
    [measured] = found.measurements
    np.testing.assert_allclose(centered @ measured.inverse @ measured.rows, centered, atol=1e-9)
    assert found.upper == pytest.approx(8.1, rel=1e-6)  # I − J/n measured as it is: (n − 1)²/n


def test_the_dual_bound_holds_for_every_strategy() -> None:
    gram = all_range(8).gram()
    lower = solve(*_whole(gram, by_rows=False), 1e-9).lower
    points = np.random.default_rng(5).standard_normal((200, 12, 8))
    for matrix in points:
        scaled = matrix / np.sqrt(np.square(matrix).sum(axis=0).max())
        assert np.trace(gram @ np.linalg.inv(scaled.T @ scaled)) >= lower


def test_gradients() -> None:
    gram = all_range(7).gram()
    sums = np.abs(np.sin(np.arange(1, 22))).reshape(3, 7)
    value, slope = p_identity_error(gram, sums)
    numeric = approx_fprime(sums.reshape(-1), lambda flat: p_identity_error(gram, flat.reshape(3, 7))[0], 1e-7)
    np.testing.assert_allclose(slope.reshape(-1), numeric, rtol=1e-3, atol=1e-3)
    measured = p_identity_measurement(sums)
    np.testing.assert_allclose(np.abs(measured.rows).sum(axis=0), 1.0)
    np.testing.assert_allclose(measured.inverse, np.linalg.pinv(measured.rows), atol=1e-12)
    assert value == pytest.approx(np.trace(measured.inverse.T @ gram @ measured.inverse))
    problem = _Problem.of(parts_of(marginals((3, 4, 2), (1, 2)))[0])
    weights = np.linspace(0.1, 1.0, 8)
    numeric = approx_fprime(weights, lambda each: problem.error(each)[0], 1e-7)
    np.testing.assert_allclose(problem.error(weights)[1], numeric, rtol=1e-4, atol=1e-3)


def test_one_attribute_in_closed_form() -> None:
    stacked, error = best_marginals(parts_of(stack(identity(256), total(256)))[0])
    ratios = np.linspace(0.0, 1.0, 4001)
    scanned = (1 + ratios) ** 2 * (255 + 257 / (1 + 256 * ratios**2))
    assert error == pytest.approx(scanned.min(), rel=1e-6)
    assert error <= scanned.min()
    whole, cells = (float(each.max()) for each in stacked.weights)
    assert whole / cells == pytest.approx(0.138, abs=5e-4)


def test_cube_roots() -> None:
    values = np.concatenate([[0.0, 1.0, 8.0, 27.0, 1e-300, 1e300], np.exp(np.linspace(-50.0, 50.0, 200))])
    np.testing.assert_allclose(_cube_roots(values), np.cbrt(values), rtol=1e-14)


def test_every_start_is_no_better_than_the_answer() -> None:
    part = parts_of(marginals((9, 4, 3), (1, 2)))[0]
    problem = _Problem.of(part)
    _, error = best_marginals(part)
    assert all(problem.improved(start)[1] >= error for start in islice(problem.starts(), problem.usual_starts))


def test_listed_marginals_are_weighed_as_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    part = parts_of(marginals((5, 4, 3, 2), (1, 2)))[0]
    everything = _Problem.of(part)
    monkeypatch.setattr("dualmandate.mechanism.strategy.marginals.MOST_ATTRIBUTES", 3)
    listed = _Problem.of(part)
    assert listed.sets[-1] == frozenset(range(4))
    weights = np.linspace(0.1, 1.0, len(listed.sets))
    spread = np.zeros(len(everything.sets))
    spread[[everything.sets.index(each) for each in listed.sets]] = weights
    value, slope = listed.error(weights)
    assert value == pytest.approx(everything.error(spread)[0], rel=1e-12)
    numeric = approx_fprime(weights, lambda each: listed.error(each)[0], 1e-7)
    np.testing.assert_allclose(slope, numeric, rtol=1e-4, atol=1e-3)
    few = best_marginals(part)[1]
    monkeypatch.undo()
    assert best_marginals(part)[1] <= few * (1 + 1e-9) <= 1.1 * best_marginals(part)[1]


def test_marginals_of_twenty_attributes() -> None:
    workload = marginals((3, 5, 7, 2) * 5, 1)
    strategy = optimize_strategy(workload)
    assert strategy.lower_bound <= strategy.error_coefficient
    names = [table.name for table in workload.tables]
    total_error = sum(float(coefficients(strategy, name).sum()) for name in names)
    assert total_error == pytest.approx(strategy.exact.error_coefficient(strategy.protection), rel=1e-9)
    assert total_error == pytest.approx(strategy.error_coefficient, rel=1e-4)  # of the rows before they were rounded
    # Each marginal as counts with a share by the cube root of its size is the best that one-way tables alone allow.
    assert strategy.error_coefficient <= np.cbrt([3, 5, 7, 2] * 5).sum() ** 3 * (1 + 1e-6)


def test_p_identity_is_a_local_optimum() -> None:
    gram = prefix(16).gram()
    found = search_p_identity(gram)
    sums, error = found.sums, found.error
    assert error < np.trace(gram)
    for number in range(5):
        near = np.maximum(0.0, sums + 1e-3 * np.cos(number + np.arange(sums.size)).reshape(sums.shape))
        assert p_identity_error(gram, near)[0] > error * (1 - 1e-6)
