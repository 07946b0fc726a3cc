"""What is published by both sides, and from which number of records on a cluster is said to pay."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dualmandate.benchmarks import cluster
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.publication.spark.release import SubtreeDivision, divided


def test_a_cluster_pays_where_its_fixed_cost_is_gained() -> None:
    """By hand: 1 s and 1 s a million here, 21 s and 2 s a million and core there; 20 = N·(1 − 2/64)."""
    records = (10**6, 10**7)
    assert cluster.pays_from(records, [2.0, 11.0], [23.0, 41.0]) == pytest.approx(1e6 * 20 / (1 - 2 / 64))
    assert cluster.pays_from(records, [2.0, 11.0], [23.0, 800.0]) is None


def test_the_program_is_divided_into_subtrees_of_generated_persons(tmp_path: Path) -> None:
    cluster.generate(tmp_path / "persons.parquet", 1000)
    found = pq.read_table(tmp_path / "persons.parquet")
    assert (found.num_rows, found.column_names) == (1000, ["block", "age", "sex"])
    assert set(found["block"].to_pylist()) <= set(cluster.codes())
    division = divided(release_spec_of_plan(cluster.program_of("spark", tmp_path / "spark", 1000).plan()))
    assert isinstance(division, SubtreeDivision)
    assert division.cut.tree.sizes == (1, cluster.COUNTIES, cluster.COUNTIES * cluster.TRACTS, len(cluster.codes()))


def test_processor_seconds_are_those_of_all_that_was_started() -> None:
    child = os.spawnl(os.P_NOWAIT, sys.executable, sys.executable, "-c", "x = sum(range(10**7)); input()")
    try:
        before, until = cluster.processor_seconds(), time.monotonic() + 60
        while cluster.processor_seconds() - before < 0.05 and time.monotonic() < until:
            time.sleep(0.05)
        assert cluster.processor_seconds() - before >= 0.05
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
