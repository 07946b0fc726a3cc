"""Groups by size: sensitivities by every small file, the nearest rising numbers, and errors beside the naive form."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism import GroupForm, MeasuredGroups, counts_by_size, earth_movers_distance, measure_groups
from dualmandate.mechanism.count_of_counts import group_sensitivity, nearest_rising
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population import Invariant, Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Integers
from dualmandate.workload import Norm

NOBODY = Protection()


def key(number: int) -> NoiseKey:
    return NoiseKey(number.to_bytes(32, "little"))


def numbers(form: GroupForm, sizes: tuple[int, ...], largest: int) -> Integers:
    """What is measured of the groups of one area."""
    counts = np.bincount(np.minimum(sizes, largest), minlength=largest + 1)
    if form is GroupForm.SIZES:
        return np.repeat(np.arange(largest + 1), counts)
    return counts if form is GroupForm.COUNTS else np.cumsum(counts)[:-1]


@pytest.mark.parametrize("form", list(GroupForm))
@pytest.mark.parametrize("records", [1, 2])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_sensitivities_are_those_of_every_small_file(form: GroupForm, records: int, neighbors: Neighbors) -> None:
    """Four groups of up to four members; every way in which so many members leave and join."""
    protection = Protection(neighbors=neighbors, most_records_per_unit=records, identifier="person")
    places = list(product(range(4), repeat=records))
    reached: dict[Norm, int] = {"l1": 0, "l2": 0}
    for sizes in combinations_with_replacement(range(5), 4):
        before = numbers(form, sizes, 4)
        for joined in places:
            more = np.array(sizes) + np.bincount(joined, minlength=4)
            for left in places if neighbors is Neighbors.REPLACE_ONE else [None]:
                after = more if left is None else more - np.bincount(left, minlength=4)
                if after.min() < 0:
                    continue
                moved = numbers(form, tuple(after.tolist()), 4) - before
                reached["l1"] = max(reached["l1"], int(np.abs(moved).sum()))
                reached["l2"] = max(reached["l2"], int(np.square(moved).sum()))
    for norm, power in reached.items():
        found = group_sensitivity(form, protection, largest=4, norm=norm)
        assert found.power == power
        assert found.exact
    assert not group_sensitivity(form, protection, largest=2 * records - 1, norm="l1").exact


@given(st.lists(st.integers(-3, 6), min_size=1, max_size=5))
@settings(deadline=None)
def test_no_rising_numbers_are_nearer(noisy: list[int]) -> None:
    found = nearest_rising(np.array(noisy))
    assert np.all(np.diff(found) >= 0)
    rising = (each for each in product(range(-3, 7), repeat=len(noisy)) if list(each) == sorted(each))
    best = min(sum(abs(a - b) for a, b in zip(each, noisy, strict=True)) for each in rising)
    assert np.abs(found - noisy).sum() == best


SHAPES: dict[str, Callable[[np.random.Generator], Integers]] = {
    "households": lambda generator: np.minimum(generator.poisson(1.6, 2_000) + 1, 60),
    "establishments": lambda generator: np.minimum((generator.pareto(1.2, 2_000) * 3).astype(np.int64), 60),
    "all alike": lambda generator: np.full(2_000, 7),
    "small or large": lambda generator: np.where(generator.random(2_000) < 0.9, 1, 50),
    "every size": lambda generator: generator.integers(0, 61, 2_000),
    "few groups": lambda generator: generator.integers(0, 6, 30),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("loss", [PrivacyLoss.pure(Fraction(1, 2)), PrivacyLoss.concentrated(Fraction(1, 8))], ids=str)
def test_errors_are_below_those_of_the_naive_form(shape: str, loss: PrivacyLoss) -> None:
    sizes = SHAPES[shape](np.random.default_rng(1))
    counts = counts_by_size(sizes, np.zeros_like(sizes), area_count=1, largest=60)
    errors = dict.fromkeys(GroupForm, 0)
    for form in GroupForm:
        for number in range(6):
            found = measure_groups(counts, form=form, loss=loss, protection=NOBODY, key=key(number)).fitted()
            assert found.min() >= 0
            assert found.sum() == len(sizes)
            errors[form] += int(earth_movers_distance(found, counts)[0])
    assert errors[GroupForm.RUNNING_COUNTS] < 0.7 * errors[GroupForm.COUNTS]
    if loss.privacy_measure is PrivacyMeasure.PURE_DP:  # Gaussian noise is small enough for counts of every size
        assert errors[GroupForm.SIZES] < errors[GroupForm.COUNTS]


def squared_error(groups: int, different: int) -> tuple[float, float]:
    """Of sizes as measured, and of the nearest rising ones; the mean of four draws at ε = 1."""
    sizes = np.sort(np.arange(groups) % different) * 3
    counts = counts_by_size(sizes, np.zeros_like(sizes), area_count=1, largest=int(sizes.max()) + 1)
    raw = fitted = 0.0
    for number in range(4):
        found = measure_groups(
            counts, form=GroupForm.SIZES, loss=PrivacyLoss.pure(1), protection=NOBODY, key=key(number)
        )
        raw += float(np.square(found.values - sizes).sum()) / 4
        fitted += float(np.square(nearest_rising(found.values) - sizes).sum()) / 4
    return raw, fitted


def test_errors_grow_with_the_number_of_different_sizes_and_not_of_groups() -> None:
    """[HRMS10]: noise is n·2/ε², and what is left of it goes with the number of different sizes."""
    few, many = squared_error(1_000, 5), squared_error(16_000, 5)
    assert few[0] == pytest.approx(1_000 * 1.84, rel=0.2)  # discrete noise of ε = 1 has the variance 1.84
    assert many[0] == pytest.approx(16 * few[0], rel=0.2)
    assert many[1] < 4 * few[1]
    assert many[1] < many[0] / 100
    various = [squared_error(16_000, different)[1] for different in (5, 50, 500)]
    assert various[0] * 3 < various[1] < various[2] / 3


def test_a_person_more_or_less_is_all_that_a_measurement_sees() -> None:
    """Two neighbors under one key: measurements differ by 1 in one number of all."""
    sizes, areas = np.array([1, 2, 2, 5]), np.array([0, 0, 1, 1])
    for form in (GroupForm.RUNNING_COUNTS, GroupForm.SIZES):
        pair = [
            measure_groups(
                counts_by_size(each, areas, area_count=2, largest=4),
                form=form,
                loss=PrivacyLoss.pure(1),
                protection=NOBODY,
                key=key(1),
            ).values
            for each in (sizes, np.array([1, 3, 2, 5]))
        ]
        assert np.abs(pair[0] - pair[1]).sum() == 1


def test_groups_above_the_largest_size_count_as_that_and_empty_areas_stay_empty() -> None:
    counts = counts_by_size(np.array([0, 9, 3, 4]), np.array([0, 0, 2, 2]), area_count=3, largest=4)
    assert counts.tolist() == [[1, 0, 0, 0, 1], [0] * 5, [0, 0, 0, 1, 1]]
    for form in GroupForm:
        found = measure_groups(counts, form=form, loss=PrivacyLoss.pure(1), protection=NOBODY, key=key(3)).fitted()
        assert found.sum(axis=1).tolist() == [2, 0, 2]
        assert found.min() >= 0
    nothing = MeasuredGroups(GroupForm.SIZES, np.array([0]), 2, np.array([], dtype=np.int64))
    assert nothing.fitted().tolist() == [[0, 0, 0]]


def test_a_loss_too_small_for_any_signal_still_keeps_what_is_public() -> None:
    counts = counts_by_size(np.arange(50) % 4, np.zeros(50, dtype=np.int64), area_count=1, largest=10)
    for form in GroupForm:
        loss = PrivacyLoss.pure(Fraction(1, 10**6))
        found = measure_groups(counts, form=form, loss=loss, protection=NOBODY, key=key(4)).fitted()
        assert found.sum() == 50
        assert found.min() >= 0


def test_what_is_refused() -> None:
    sizes = np.array([1, 2])
    with pytest.raises(TooLarge, match="sizes up to 0"):
        counts_by_size(sizes, sizes * 0, area_count=1, largest=0)
    for bad, areas in (
        (np.array([-1, 2]), sizes * 0),
        (sizes, np.array([0, 5])),
        ((sizes * 0.5).astype(np.float64), sizes * 0),
    ):
        with pytest.raises(InvalidMechanism, match="without a whole size"):
            counts_by_size(bad, areas, area_count=1, largest=4)  # type: ignore[arg-type]
    held = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("all"),))
    with pytest.raises(InvalidMechanism, match="beside the exact total"):
        group_sensitivity(GroupForm.SIZES, held, largest=4, norm="l1")
    counts = np.array([[2**27, 1]])
    with pytest.raises(TooLarge, match="sizes of groups"):
        measure_groups(counts, form=GroupForm.SIZES, loss=PrivacyLoss.pure(1), protection=NOBODY, key=key(0))


@pytest.mark.parametrize("groups", [100, 1_000, 10_000])
def test_sizes_that_rise_by_distances_err_less_than_by_squares(groups: int) -> None:
    """Households; the nearest rising numbers by squares are those of [HRMS10]."""
    from scipy.optimize import isotonic_regression

    sizes = np.sort(np.random.default_rng(groups).poisson(1.6, groups).astype(np.int64)) + 1
    counts = counts_by_size(sizes, np.zeros_like(sizes), area_count=1, largest=60)
    distances = squares = 0.0
    for number in range(8):
        measured = measure_groups(
            counts, form=GroupForm.SIZES, loss=PrivacyLoss.pure(1), protection=NOBODY, key=key(number)
        )
        distances += float(np.abs(np.clip(nearest_rising(measured.values), 0, 60) - sizes).sum()) / 8
        rising = np.rint(isotonic_regression(measured.values.astype(np.float64)).x)
        squares += float(np.abs(np.clip(rising, 0, 60) - sizes).sum()) / 8
    assert distances < squares
