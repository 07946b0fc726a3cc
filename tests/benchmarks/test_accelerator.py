"""The benchmark of accelerators, on numpy where there is none."""

from __future__ import annotations

import numpy as np
import pytest

from dualmandate.benchmarks import accelerator
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.strategy.arrays import NUMPY, Arrays
from dualmandate.workload import AllRange, Prefix, all_range, prefix


def no_device(name: str) -> Arrays:
    raise InvalidRequest(f"a strategy computed with {name}", why="no accelerator", instead="use numpy")


def test_without_an_accelerator_there_are_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "namespace", no_device)
    said: list[str] = []
    assert accelerator.rows(said.append) == []
    assert said == [f"a strategy computed with {name}: no accelerator" for name in accelerator.LIBRARIES]


def test_gram_matrices_are_those_of_the_queries() -> None:
    np.testing.assert_array_equal(accelerator.gram_of(Prefix(9), NUMPY), prefix(9).gram())
    np.testing.assert_array_equal(accelerator.gram_of(AllRange(9), NUMPY), all_range(9).gram())


def test_rows_of_a_case() -> None:
    gram = accelerator.gram_of(Prefix(40), NUMPY)
    expected = accelerator.laplace(gram)
    seconds, distance, error = accelerator.measured("case", gram, optimize=accelerator.laplace, rate=1e9)
    assert [row.unit for row in (seconds, distance, error)] == [
        "seconds",
        "times the arithmetic floor",
        "error coefficient",
    ]
    assert seconds.peer_value == pytest.approx(expected.operations / 1e9)
    assert seconds.ratio is not None
    assert distance.ours == pytest.approx(1 / seconds.ratio)
    assert error.ours == expected.error


def test_the_whole_run_with_numpy_in_place_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "namespace", lambda _: NUMPY)
    monkeypatch.setattr(accelerator, "CELLS", 48)
    monkeypatch.setattr(accelerator, "LARGE_PRODUCT", 64)
    monkeypatch.setattr(accelerator, "FACTORS", {"all ranges": AllRange(48), "prefix sums": Prefix(48)})
    said: list[str] = []
    rows = accelerator.rows(said.append)
    cases = [(name, noise) for noise in ("laplace", "gaussian") for name in ("all ranges", "prefix sums")]
    assert said == [f"{name} of 48 cells, {noise} noise, numpy" for name, noise in cases]
    assert len(rows) == 12
    assert all(row.ours is not None and row.ours > 0 for row in rows)


def test_the_rate_is_operations_over_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "_seconds", lambda arrays, work: 0.5)
    assert accelerator.product_rate(NUMPY, 10) == pytest.approx(2 * 10**3 / 0.5)


def test_an_error_that_is_not_that_of_the_whole_matrix_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "p_identity_error", lambda gram, sums: (1.0, sums))
    with pytest.raises(ValueError, match="where True is right"):
        accelerator.laplace(accelerator.gram_of(Prefix(20), NUMPY))


def test_a_certificate_that_does_not_close_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accelerator, "TOLERANCE", -1.0)
    with pytest.raises(ValueError, match="where True is right"):
        accelerator.gaussian(accelerator.gram_of(Prefix(20), NUMPY))
