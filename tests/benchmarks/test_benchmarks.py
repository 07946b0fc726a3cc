from __future__ import annotations

from pathlib import Path

import pytest
from tests.benchmarks.work import fill, missed, mistake

from dualmandate import benchmarks
from dualmandate.benchmarks.harness import BenchmarkRow, measure, peak_megabytes
from dualmandate.errors import UnknownName
from dualmandate.report.documents.commands import BenchmarkRowPart


def test_a_row_compares_ours_with_a_peer_and_a_target() -> None:
    row = BenchmarkRow("case", 2.0, "seconds", target=3.0, peer="peer 1.0", peer_value=8.0)
    assert BenchmarkRowPart.made_of(row).as_json() == {
        "case": "case",
        "ours": 2.0,
        "unit": "seconds",
        "peer": "peer 1.0",
        "peer_value": 8.0,
        "ratio": 4.0,
        "target": 3.0,
        "met": True,
    }
    assert BenchmarkRow("case", 4.0, "seconds", target=3.0).met is False


def test_without_a_peer_or_a_target_nothing_is_claimed() -> None:
    row = BenchmarkRow("case", 2.0, "seconds")
    assert (row.peer, row.peer_value, row.ratio, row.met) == (None, None, None, None)


def test_an_unknown_benchmark_is_refused() -> None:
    with pytest.raises(UnknownName, match="no benchmark 'speed'") as caught:
        benchmarks.run("speed")
    assert all(name in caught.value.instead for name in benchmarks.NAMES)


@pytest.fixture
def _at_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])  # where the measuring process finds tests.benchmarks.work


@pytest.mark.usefixtures("_at_the_root")
def test_memory_is_measured_in_a_process_of_its_own() -> None:
    import numpy as np

    ballast = np.ones(25_000_000)  # 200 MB here must not be counted there
    took = measure(fill)
    assert ballast.sum() == 25_000_000
    assert 50 < took.megabytes < 150 < peak_megabytes()
    assert 0 < took.processor_seconds < 5  # a wall clock would judge whatever else the machine is doing


@pytest.mark.usefixtures("_at_the_root")
def test_work_that_comes_to_a_wrong_answer_is_not_a_measurement() -> None:
    with pytest.raises(RuntimeError, match="found 1, where 2 is right"):
        measure(mistake)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sensitivity", "plan"])
def test_every_benchmark_meets_its_targets(name: str) -> None:
    stages: list[str] = []
    rows = benchmarks.run(name, progress=stages.append)
    assert stages == list(dict.fromkeys(row.case for row in rows))
    for wall, processor, memory in batched_by_three(rows):
        assert (wall.unit, processor.unit, memory.unit) == ("seconds", "processor seconds", "megabytes")
        assert wall.target is None  # a test is not judged by a wall clock
        assert processor.target is not None
        assert memory.target is not None
    assert missed(rows) == []


def batched_by_three(rows: list[BenchmarkRow]) -> list[tuple[BenchmarkRow, BenchmarkRow, BenchmarkRow]]:
    return list(zip(rows[::3], rows[1::3], rows[2::3], strict=True))
