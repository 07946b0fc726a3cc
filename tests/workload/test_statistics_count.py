"""Independent statistics a person: exact by the rank of the matrix, an upper bound where that would cost too much."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.population import Domain, StructuralZero
from dualmandate.workload import Workload, all_range, groups, kron, marginals, prefix, stack, statistics_count
from dualmandate.workload.statistics_count import StatisticsCount, count_statistics


def test_the_2010_census() -> None:
    census = StatisticsCount(published=7_700_000_000, independent=7_700_000_000, exact=True, persons=308_745_538)
    assert round(census.per_person) == 25
    assert census.warns
    assert "24.9 for each of 308,745,538 persons" in str(census)
    assert not StatisticsCount(5, 5, True, 5).warns
    assert StatisticsCount(6, 6, True, 5).warns
    assert StatisticsCount(6, 6, True, 0).warns  # nobody: any statistic is one too many


@pytest.mark.parametrize(
    "workload",
    [
        marginals((2, 3, 4), [0, 1, 2]),
        marginals((2, 3, 4), [2]),
        marginals((3, 3), [1]),
        kron(prefix(3), all_range(3)),
        stack(prefix(5), groups(5, [[0, 1], [2, 3, 4], [0, 1, 2, 3, 4]])),
    ],
)
def test_the_rank_of_the_matrix(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    rank = int(np.linalg.matrix_rank(workload.dense()))
    found = count_statistics(workload, 10)
    assert (found.independent, found.exact, found.published) == (rank, True, workload.query_count)
    monkeypatch.setattr(statistics_count, "MOST_WORK", 0)
    monkeypatch.setattr(statistics_count, "MOST_ATTRIBUTES", 0)
    bound = count_statistics(workload, 10)
    assert bound.independent >= rank
    assert not bound.exact or bound.independent == rank
    assert bound.exact or "at most" in str(bound)


def test_cells_that_cannot_occur_are_no_unknowns() -> None:
    domain = Domain.of_shape((2, 2))
    first = tuple((each.name, (each.levels[0],)) for each in domain.attributes)
    zeros = Domain(domain.attributes, structural_zeros=(StructuralZero(first),))
    tables = Workload(zeros, marginals((2, 2), [2]).tables)
    assert count_statistics(tables, 1).independent == 3


def test_ten_million_numbers_are_counted_at_once() -> None:
    every = marginals((60, 60, 60, 50), [1, 2, 3, 4])
    assert every.query_count > 10_000_000
    assert count_statistics(every, 1).independent == 60**3 * 50  # one a cell
    long = prefix(100_000)
    assert count_statistics(long, 1) == StatisticsCount(100_000, 100_000, True, 1)
