from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.benchmarks.work import missed

from dualmandate.benchmarks import tabulation
from dualmandate.population import Histogram


def test_both_sides_count_the_same(tmp_path: Path) -> None:
    path = tmp_path / "records.parquet"
    tabulation.generate(path, 100_000)
    ours = tabulation.tabulate_ours(path).open_for("a test").histogram
    assert isinstance(ours, Histogram)
    assert (ours.total, ours.counts.size) == (100_000, 61_200)
    occupied = np.sort(ours.counts[ours.counts > 0])
    np.testing.assert_array_equal(occupied, np.sort(tabulation.tabulate_raw(path)))


@pytest.mark.slow
def test_the_targets_are_met_on_reduced_sizes() -> None:
    rows = tabulation.rows(lambda _: None, records=2 * 10**6)
    assert [row.unit for row in rows] == ["processor seconds", "times as long as the peer", "megabytes", "megabytes"]
    assert missed(rows) == []
