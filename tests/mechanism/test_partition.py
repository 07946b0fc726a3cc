"""Partition, then measure: errors beside the plain strategy, intervals, neighbors, two attributes, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dualmandate.errors import InvalidLoss, InvalidMechanism, TooLarge
from dualmandate.frontier import Simulation, frontier_on
from dualmandate.mechanism import (
    GEOMETRIC,
    Measurement,
    OptimizedMechanism,
    PartitionMechanism,
    partition,
    rate_of,
    simulation_keys,
)
from dualmandate.mechanism.data_dependent import Curator
from dualmandate.mechanism.partition import _cut_up, _reach, cell_order
from dualmandate.population import Counts, Histogram, Invariant, Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Workload, explicit, groups, identity, kron, prefix, total

CELLS = 128
RANGES = groups(CELLS, [range(first, last) for first in range(0, 120, 12) for last in range(first + 1, CELLS, 17)])
SPARSE = np.zeros(CELLS, dtype=np.int64)
SPARSE[10:14], SPARSE[40] = 90, 300
STEP = np.where(np.arange(CELLS) < 32, 40, 0)
ROUGH = np.rint(np.random.default_rng(4).lognormal(6, 1, CELLS)).astype(np.int64)
REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)
TWO_RECORDS = Protection(most_records_per_unit=2, identifier="id")


def released(
    counts: Integers, workload: Workload, loss: Fraction, *, measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
) -> tuple[Floats, Floats]:
    """Errors and half-widths of several releases; shapes (releases, queries)."""
    histogram = Histogram(workload.domain, counts.reshape(workload.domain.shape))
    mechanism = PartitionMechanism(measure)
    answers = [mechanism.answer(histogram, workload, loss, simulation_keys(6, each)) for each in range(12)]
    truth = workload.answers(histogram.counts)
    widths = [each.half_widths for each in answers if each.half_widths is not None]
    return np.array([each.values - truth for each in answers]), np.array(widths)


def root_mean_square(errors: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(errors))))


@pytest.mark.parametrize("workload", [identity(CELLS), RANGES], ids=["cells", "ranges"])
def test_data_that_can_be_merged_gain_and_others_lose_little(workload: Workload) -> None:
    loss = Fraction(1)
    plain = OptimizedMechanism(GEOMETRIC).production(workload)
    alone = np.sqrt(plain.expected_squared_error(1.0) / workload.query_count)
    assert root_mean_square(released(STEP, workload, loss)[0]) < 0.8 * alone
    assert root_mean_square(released(ROUGH, workload, loss)[0]) < 1.15 * alone


@pytest.mark.parametrize("measure", PrivacyMeasure)
@pytest.mark.parametrize("counts", [SPARSE, ROUGH, np.zeros(CELLS, dtype=np.int64)], ids=["sparse", "rough", "empty"])
def test_intervals_cover_all_error(counts: Integers, measure: PrivacyMeasure) -> None:
    errors, widths = released(counts, RANGES, Fraction(1, 10), measure=measure)
    assert widths.shape == errors.shape
    # 12 releases of answers that move together: the share covered is 0.9 or more up to chance.
    assert np.mean(np.abs(errors) <= widths) > 0.82


def test_a_smoothed_cell_has_an_interval_that_is_wider_by_how_far_it_was_moved() -> None:
    """One and the same for unbiased cells, and what covers these covers the smoothed ones."""
    cells = identity(CELLS)
    widths = released(STEP, cells, Fraction(1))[1]
    plain = OptimizedMechanism(GEOMETRIC).production(cells).half_width("identity", 1.0, 0.9)
    assert np.ptp(plain) == 0
    assert np.all(widths >= plain)
    assert np.ptp(widths) > 1


def test_tails_are_bounded() -> None:
    """Chernoff's bound against simulated sums of noise."""
    shares = np.array([[1.0, 0.0, 0.0], [0.6, 0.6, 0.6]])
    random = np.random.default_rng(9)
    for measure, noise in (
        (PrivacyMeasure.PURE_DP, random.laplace(size=(200_000, 3))),
        (PrivacyMeasure.ZCDP, random.normal(size=(200_000, 3))),
    ):
        missed = np.mean(noise @ shares.T > _reach(shares, 0.05, measure), axis=0)
        assert np.all((missed > 0.001) & (missed < 0.05))


@pytest.mark.parametrize("measure", PrivacyMeasure)
@pytest.mark.parametrize("counts", [STEP, ROUGH], ids=["merged", "apart"])
def test_the_parts_of_the_loss_add_up(
    monkeypatch: pytest.MonkeyPatch, measure: PrivacyMeasure, counts: Integers
) -> None:
    """What each choice and each kind of noise loses, as they are called."""
    lost: list[Fraction] = []

    def choice(loss: Fraction, *args: Any, **others: Any) -> Fraction:
        lost.append(loss)
        return rate_of(loss, *args, **others)

    law: Any = type(partition._law(measure))
    parameter, measured = law.parameter, partition._measured

    def count(self: Any, unit_loss: Fraction) -> Fraction:
        lost.append(unit_loss)
        return Fraction(parameter(self, unit_loss))

    def rows(
        measurement: Measurement, cells: Callable[[Counts], Integers], loss: Fraction, curator: Curator
    ) -> Integers:
        monkeypatch.setattr(law, "parameter", parameter)
        lost.append(loss)
        return measured(measurement, cells, loss, curator)

    monkeypatch.setattr(partition, "rate_of", choice)
    monkeypatch.setattr(law, "parameter", count)
    monkeypatch.setattr(partition, "_measured", rows)
    PartitionMechanism(measure).answer(
        Histogram(RANGES.domain, counts), RANGES, Fraction(3, 7), simulation_keys(6, 0), protection=TWO_RECORDS
    )
    steps = 2 if measure is PrivacyMeasure.PURE_DP else 4
    assert sum(lost) == Fraction(3, 7) / steps
    assert len(lost) == (4 if counts is STEP else 2)


def test_parts_are_cut_into_equal_pieces_where_nothing_stands_out() -> None:
    pieces = _cut_up(np.array([0, 60]), 100, 10)
    assert pieces.parts.tolist() == [0] * 6 + [1] * 4
    assert pieces.sizes.tolist() == [10] * 10
    assert _cut_up(np.array([0]), 3, 16).starts.tolist() == [0, 1, 2]
    several = np.array([0, 10, 11, 40])
    assert _cut_up(several, 100, 2).starts.tolist() == several.tolist()
    assert _cut_up(several, 100, 3).starts.tolist() == [0, 10, 11, 40, 70]
    assert _cut_up(several, 100, 1).sizes.tolist() == [10, 1, 29, 60]
    # 200 single cells and a rest of 3,896, of which 256 stretches would make 444 pieces and 128 make 322.
    many = _cut_up(np.arange(201), 4096, 256)
    assert len(many.starts) == 200 + 61


def test_smooth_data_are_cut_up_and_even_ones_are_known_as_one() -> None:
    """A slope that no cut of it would show: errors of one part would be some 6,000 records."""
    slope = np.rint(np.linspace(200, 600, CELLS)).astype(np.int64)
    assert root_mean_square(released(slope, prefix(CELLS), Fraction(1, 20))[0]) < 320
    even = np.full(CELLS, 4)
    plain = OptimizedMechanism(GEOMETRIC).production(prefix(CELLS))
    alone = np.sqrt(plain.expected_squared_error(0.05) / CELLS)
    assert root_mean_square(released(even, prefix(CELLS), Fraction(1, 20))[0]) < 0.4 * alone


def test_the_same_keys_give_the_same_release() -> None:
    one, other = (released(SPARSE, RANGES, Fraction(1, 3)) for _ in range(2))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])


def test_more_records_a_unit_and_moves_take_a_smaller_loss_for_each() -> None:
    histogram = Histogram(RANGES.domain, SPARSE)
    many = Protection(most_records_per_unit=3, identifier="person_id", neighbors=Neighbors.REPLACE_ONE)
    for measure, power in ((PrivacyMeasure.PURE_DP, 1), (PrivacyMeasure.ZCDP, 2)):
        mechanism, keys = PartitionMechanism(measure), simulation_keys(1, 1)
        six = mechanism.answer(histogram, RANGES, Fraction(6**power, 10), keys, protection=many)
        one = mechanism.answer(histogram, RANGES, Fraction(1, 10), keys)
        np.testing.assert_array_equal(six.values, one.values)
        two = mechanism.answer(histogram, RANGES, Fraction(2**power, 10), keys, protection=REPLACE_ONE)
        np.testing.assert_array_equal(two.values, one.values)


def test_two_attributes_are_merged_along_a_curve() -> None:
    order = cell_order((8, 8))
    first, second = np.unravel_index(order, (8, 8))
    assert sorted(order.tolist()) == list(range(64))
    assert set((np.abs(np.diff(first)) + np.abs(np.diff(second))).tolist()) == {1}
    for quarter in np.split(order, 4):
        rows, columns = np.unravel_index(quarter, (8, 8))
        assert np.ptp(rows) == np.ptp(columns) == 3
    assert sorted(cell_order((5, 3)).tolist()) == list(range(15))
    assert cell_order((1, 6)).tolist() == list(range(6))


def test_a_square_that_is_mostly_empty_gains() -> None:
    counts = np.zeros((16, 16), dtype=np.int64)
    counts[4:8, 8:12] = 200
    workload = kron(identity(16), identity(16))
    assert root_mean_square(released(counts, workload, Fraction(1, 5))[0]) < 0.6 * np.sqrt(2) * 5


def test_queries_that_subtract_are_not_cut_at_zero() -> None:
    workload = explicit(np.diff(np.eye(8), axis=0).astype(np.int64))
    errors, _ = released(np.array([80, 70, 3, 500, 2, 90, 1, 33]), workload, Fraction(2))
    assert root_mean_square(errors) < 3


@pytest.mark.parametrize("size", [1, 2, 3])
def test_few_cells_one_query_and_no_records(size: int) -> None:
    for workload in (identity(size), total(size), prefix(size)):
        errors, widths = released(np.zeros(size, dtype=np.int64), workload, Fraction(1, 1000))
        assert np.all(np.isfinite(errors))
        assert np.mean(np.abs(errors) <= widths) > 0.85


def test_it_has_a_frontier() -> None:
    simulation = Simulation((0.05, 0.5), repetitions=6, seed=3)
    frontier = frontier_on(PartitionMechanism(), RANGES, counts=Histogram(RANGES.domain, SPARSE), simulation=simulation)
    assert frontier.technology(0.1).startswith("partition, then an optimized strategy")
    assert frontier.expected_squared_error(0.05) > frontier.expected_squared_error(0.5)


def test_what_is_not_served_is_refused() -> None:
    histogram, keys, mechanism = Histogram(RANGES.domain, SPARSE), simulation_keys(1, 1), PartitionMechanism()
    for loss in (Fraction(0), Fraction(-1), 0.1):
        with pytest.raises(InvalidLoss, match="a partition for a loss of"):
            mechanism.answer(histogram, RANGES, loss, keys)  # type: ignore[arg-type]
    totals = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("everybody"),))
    with pytest.raises(InvalidMechanism, match="beside the exact total 'everybody'"):
        mechanism.answer(histogram, RANGES, Fraction(1), keys, protection=totals)
    cube = kron(identity(2), identity(2), identity(2))
    with pytest.raises(InvalidMechanism, match="a partition of 3 attributes"):
        mechanism.answer(Histogram.zeros(cube.domain), cube, Fraction(1), keys)
    long = identity(5_000)
    with pytest.raises(TooLarge, match="a partition of 5,000 cells"):
        mechanism.answer(Histogram.zeros(long.domain), long, Fraction(1), keys)
    with pytest.raises(InvalidMechanism, match="an interval that holds"):
        mechanism.answer(histogram, RANGES, Fraction(1), keys, probability=1.0)
