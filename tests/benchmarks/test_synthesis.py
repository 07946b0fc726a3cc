"""Synthetic records beside installed makers of them: distances by hand, and what is said where nobody is installed."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.benchmarks import synthesis
from dualmandate.benchmarks.peer_synthesizers import found, mean_distance


def test_distances_are_half_of_what_shares_are_apart() -> None:
    one, other = np.array([[0, 0, 0], [1, 1, 1]]), np.array([[0, 0, 0], [0, 1, 1], [0, 0, 1], [0, 0, 0]])
    # Shares of the first and second attribute: (1/2, 0, 0, 1/2) beside (3/4, 1/4, 0, 0).
    assert mean_distance(one, other, (2, 2), 2) == pytest.approx(0.5)
    third = [0.5, (0.0 + 1 / 4 + 0.5 + 1 / 4) / 2, 0.25]  # first × second, first × third, second × third
    assert mean_distance(one, other, (2, 2, 2), 2) == pytest.approx(sum(third) / 3)


def test_numbers_of_many_values_are_binned_and_what_is_not_applicable_is_a_level() -> None:
    rows = [{"age": str(age) if age else "N", "sex": "fm"[age % 2]} for age in range(101)]
    levels, sizes = synthesis._coded(rows, ("age", "sex"))
    assert sizes.tolist() == [11, 2]
    assert levels[[0, 1, 50, 100], 0].tolist() == [10, 0, 4, 9]
    assert levels[:4, 1].tolist() == [0, 1, 0, 1]


def test_the_benchmark_names_nobody_who_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    levels, sizes = synthesis._generated()
    monkeypatch.setattr(synthesis, "cases", lambda: {"few": (levels[:500, :3], sizes[:3])})
    monkeypatch.delenv("DUALMANDATE_PEERS", raising=False)
    rows = synthesis.rows(lambda _: None)
    assert [row.unit.rpartition(", ")[2] for row in rows[:2]] == ["two-way tables", "three-way tables"]
    assert all(row.peer is None for row in rows)
    assert rows[0].ours is not None
    assert 0 < rows[0].ours < 0.2
    assert rows[-1].met
    assert found("AIM of dpmm", levels, sizes, 1.0, 1e-9, 0) is None
