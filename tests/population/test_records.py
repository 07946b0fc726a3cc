"""Counts on domains of any size: records and histograms answer alike."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.errors import InvalidDomain, TooLarge
from dualmandate.population import Domain, Histogram, Records
from dualmandate.workload import marginals, stack, total

DOMAIN = Domain.of_shape((3, 4, 2))
LEVELS = np.random.default_rng(5).integers(0, (3, 4, 2), size=(200, 3))


def histogram() -> Histogram:
    return Records(DOMAIN, LEVELS).project(DOMAIN.names)


def test_every_marginal_is_that_of_the_histogram() -> None:
    names = DOMAIN.names
    for kept in (names[:1], names[1:], (names[2], names[0]), names):
        assert np.array_equal(Records(DOMAIN, LEVELS).project(kept).counts, histogram().project(kept).counts)


def test_a_workload_is_answered_from_either() -> None:
    workload = marginals((3, 4, 2), [0, 1, 2])
    expected = workload.answers(histogram().counts)
    assert np.array_equal(workload.answers_from(Records(workload.domain, LEVELS)), expected)
    assert np.array_equal(workload.answers_from(Histogram(workload.domain, histogram().counts)), expected)


def test_a_large_domain_is_answered_by_marginals_and_never_whole() -> None:
    workload = marginals((10,) * 12, [2])
    records = Records(workload.domain, np.random.default_rng(1).integers(0, 10, size=(500, 12)))
    answers = workload.answers_from(records)
    assert answers.sum() == 500 * 66
    with pytest.raises(TooLarge):
        records.project(workload.domain.names)


def test_weighted_tables_are_answered_alike() -> None:
    workload = stack(total(6), total(6), weights=["1/2", 3])
    records = Records(workload.domain, np.arange(6)[:, None])
    assert workload.answers_from(records).tolist() == [3.0, 18.0]


@pytest.mark.parametrize(
    "levels", [np.zeros((3, 2), dtype=int), np.full((1, 3), 9), np.full((2, 3), -1), np.ones((2, 3))]
)
def test_records_that_do_not_fit_are_refused(levels: np.ndarray) -> None:
    with pytest.raises(InvalidDomain):
        Records(DOMAIN, levels)
