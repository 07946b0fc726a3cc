from __future__ import annotations

import numpy as np
import pytest
from tests.benchmarks.work import missed

from dualmandate.benchmarks import noise
from dualmandate.benchmarks.harness import BenchmarkRow


def test_what_is_measured_must_follow_its_law() -> None:
    case = noise.CASES[1]
    took = noise.draw_ours(case.law, case.scale, calls=1)
    assert 0 < took.nanoseconds < 1000
    with pytest.raises(ValueError, match="found False, where True is right"):
        noise.check_variance(np.zeros(1000, dtype=np.int64), case)


def test_a_missing_peer_leaves_its_rows_out(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = noise.SamplerTime("ours", 5.0, 0.1)
    monkeypatch.setattr(noise, "_timed", lambda side, case, size: ours if side is noise.draw_ours else None)
    rows = noise.rows(lambda _: None)
    assert [row.unit for row in rows] == ["nanoseconds a draw", "processor seconds of set-up"] * 6
    assert {row.peer for row in rows} == {None}


@pytest.mark.slow
def test_every_kind_of_noise_is_timed_beside_the_peer() -> None:
    stages: list[str] = []
    rows = noise.rows(stages.append, calls=20, peer_draws=10_000)
    assert stages == [case.name for case in noise.CASES]
    assert len(rows) == 3 * len(stages)
    assert missed(rows) == []
    assert all((row.ratio or 0) > 10 for row in rows if row.peer_value is not None)
    speeds: list[BenchmarkRow] = [row for row in rows if row.unit == "nanoseconds a draw"]
    assert all(row.peer_value is not None and str(row.peer).startswith("opendp ") for row in speeds)
