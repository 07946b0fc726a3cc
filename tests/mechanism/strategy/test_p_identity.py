"""Strategies of cells and sums: their error, the forms of a Gram matrix, the starts, and what is reached."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import approx_fprime

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.strategy import p_identity
from dualmandate.mechanism.strategy.arrays import NUMPY, TorchArrays
from dualmandate.mechanism.strategy.p_identity import (
    Gram,
    OrderedGram,
    WrittenGram,
    _centers,
    _error,
    _fading,
    error_operations,
    gram_form,
    p_identity_error,
    p_identity_measurement,
    search_p_identity,
)
from dualmandate.workload import Workload, all_range, explicit, groups, identity, kron, prefix, stack, total

Floats = NDArray[np.float64]

IN_ORDER: dict[str, Callable[[int], Workload]] = {
    "prefix": prefix,
    "ranges": all_range,
    "cells and prefix": lambda size: stack(identity(size), prefix(size), weights=[3, 1]),
    "total and prefix": lambda size: stack(total(size), prefix(size)),
}


def shuffled(gram: Floats) -> Floats:
    places = np.random.default_rng(7).permutation(len(gram))
    return np.ascontiguousarray(gram[np.ix_(places, places)])


def two_ways() -> Workload:
    return stack(kron(prefix(6), total(8)), kron(identity(6), prefix(8)), kron(total(6), all_range(8)))


def some_sums(rows: int, size: int) -> Floats:
    return np.asarray(np.abs(np.sin(np.arange(1.0, rows * size + 1))).reshape(rows, size))


@pytest.fixture
def short_orders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(p_identity, "SHORT_ORDER", 0)


class TestForms:
    @pytest.mark.usefixtures("short_orders")
    @pytest.mark.parametrize("size", [2, 3, 9, 300])
    @pytest.mark.parametrize("name", IN_ORDER)
    def test_running_sums_are_the_product(self, name: str, size: int) -> None:
        gram = IN_ORDER[name](size).gram().astype(np.float64)
        form = gram_form(gram)
        assert isinstance(form, OrderedGram)
        assert form.ordered
        rows, scales = some_sums(3, size) - 0.5, 1.0 + np.arange(size) / size
        written = WrittenGram(NUMPY, gram, gram.diagonal())
        expected = (rows * scales) @ gram * scales
        np.testing.assert_allclose(written.between(rows, scales), expected, rtol=1e-12)
        largest = float(np.abs(expected).max())
        np.testing.assert_allclose(form.between(rows, scales), expected, rtol=1e-9, atol=1e-12 * largest)

    @pytest.mark.usefixtures("short_orders")
    def test_what_follows_no_order_is_written_out(self) -> None:
        gram = prefix(300).gram().astype(np.float64)
        bent = gram.copy()
        bent[270, 290] = bent[290, 270] = bent[270, 290] * (1 + 1e-9)
        windows = groups(300, [range(k, k + 9) for k in range(290)]).gram().astype(np.float64)  # ends share nothing
        for other in (shuffled(gram), bent, windows, two_ways().gram().astype(np.float64)):
            assert isinstance(gram_form(other), WrittenGram)
            assert not gram_form(other).ordered

    def test_few_cells_in_order_are_written_out_too(self) -> None:
        form = gram_form(prefix(20).gram().astype(np.float64))
        assert isinstance(form, WrittenGram)
        assert form.ordered

    @pytest.mark.usefixtures("short_orders")
    @pytest.mark.parametrize("make", [lambda: prefix(7), lambda: stack(identity(7), all_range(7))])
    def test_gradients_of_both_forms(self, make: Callable[[], Workload]) -> None:
        gram, sums = make().gram().astype(np.float64), some_sums(3, 7)
        forms: list[Gram] = [gram_form(gram), WrittenGram(NUMPY, gram, gram.diagonal())]
        values = []
        for form in forms:
            value, slope = _error(NUMPY, form, sums)

            def flat(point: Floats, form: Gram = form) -> float:
                return _error(NUMPY, form, point.reshape(3, 7))[0]

            np.testing.assert_allclose(slope.reshape(-1), approx_fprime(sums.reshape(-1), flat, 1e-7), rtol=1e-3)
            values.append(value)
        measured = p_identity_measurement(sums)
        brute = np.square(make().dense() @ np.linalg.pinv(measured.rows)).sum()
        np.testing.assert_allclose(np.abs(measured.rows).sum(axis=0), 1.0)
        assert values == pytest.approx([brute, brute])
        assert p_identity_error(gram, sums)[0] == pytest.approx(brute)


class TestStarts:
    def test_windows_fade_to_the_next_center(self) -> None:
        """Prefix sums put cells j and k at the squared distance |j − k|."""
        gram = prefix(8).gram().astype(np.float64)
        windows, nearest = _fading(NUMPY, gram, gram_form(gram), [2, 6])
        expected = [0.8 * share for share in (6 / 8, 5 / 6, 1.0, 3 / 4, 1 / 2, 1 / 4, 0.0, 1 / 6)]
        np.testing.assert_allclose(windows[0], expected)
        np.testing.assert_allclose(windows.sum(axis=0), 0.8)
        assert nearest.tolist() == [0, 0, 0, 0, 0, 1, 1, 1]

    def test_one_center_is_the_total(self) -> None:
        gram = prefix(5).gram().astype(np.float64)
        windows, nearest = _fading(NUMPY, gram, gram_form(gram), [2])
        np.testing.assert_array_equal(windows, np.full((1, 5), 0.8))
        assert not nearest.any()

    def test_centers(self) -> None:
        gram = prefix(9).gram().astype(np.float64)
        assert _centers(NUMPY, gram, gram_form(gram), 3) == [1, 4, 7]
        assert _centers(NUMPY, gram, WrittenGram(NUMPY, gram, gram.diagonal()), 3) == [8, 0, 4]  # the ends, the middle
        alike = np.ones((4, 4))
        assert _centers(NUMPY, alike, WrittenGram(NUMPY, alike, alike.diagonal()), 2) == [0]

    def test_more_starts_are_never_worse(self) -> None:
        for gram in (prefix(40).gram(), two_ways().gram(), shuffled(all_range(33).gram())):
            errors = [search_p_identity(gram, starts=starts).error for starts in (1, 2, 3, 5, 8, 13, 30)]
            assert all(more <= fewer for fewer, more in pairwise(errors))
            assert errors[-1] <= search_p_identity(gram).error

    def test_a_start_that_leads_lower_is_found(self) -> None:
        """The first windows alone miss what later ones find."""
        gram = prefix(100).gram()
        assert search_p_identity(gram, starts=19).error < search_p_identity(gram, starts=2).error * (1 - 1e-3)

    def test_no_start_is_refused(self) -> None:
        with pytest.raises(InvalidRequest, match="0 starts"):
            search_p_identity(prefix(4).gram(), starts=0)


class TestWhatIsReached:
    @pytest.mark.parametrize(
        ("workload", "most"),
        [
            pytest.param(prefix(64), 906.394, id="prefix 64"),
            pytest.param(all_range(64), 32_062.7, id="ranges 64"),
            pytest.param(prefix(256), 6_865, id="prefix 256"),
            pytest.param(all_range(256), 1.0669e6, id="ranges 256"),
            pytest.param(prefix(1024), 46_450, id="prefix 1024", marks=pytest.mark.slow),
            pytest.param(all_range(1024), 3.176e7, id="ranges 1024", marks=pytest.mark.slow),
        ],
    )
    def test_errors(self, workload: Workload, most: float) -> None:
        gram = workload.gram()
        found = search_p_identity(gram)
        sums, error = found.sums, found.error
        assert error <= most
        measured = p_identity_measurement(sums)
        assert np.einsum("ij,ij->", measured.inverse, gram @ measured.inverse) == pytest.approx(error, rel=1e-8)

    def test_the_order_of_the_cells_hardly_matters(self) -> None:
        gram = prefix(150).gram().astype(np.float64)
        assert search_p_identity(shuffled(gram)).error == pytest.approx(search_p_identity(gram).error, rel=3e-3)

    def test_never_worse_than_the_cells_alone(self) -> None:
        sparse = explicit(np.eye(30, dtype=np.int64)[::3]).gram()
        for gram in (np.eye(9), np.array([[4.0]]), sparse):
            found = search_p_identity(gram)
            sums, error = found.sums, found.error
            assert error <= np.trace(gram) * (1 + 1e-9)
            assert sums.shape == (1, len(gram))

    def test_a_total_is_closed_form(self) -> None:
        """386.885 for 256 cells and their total, published; one row of equal entries."""
        found = search_p_identity(stack(identity(256), total(256)).gram(), starts=1)
        sums, error = found.sums, found.error
        assert error == pytest.approx(386.885, abs=2e-3)
        assert len(sums) == 1

    def test_every_row_measures_something(self) -> None:
        for gram in (prefix(30).gram(), two_ways().gram()):
            sums = search_p_identity(gram).sums
            assert np.all(sums.sum(axis=1) > 0)
            assert np.all(sums >= 0)

    def test_the_same_every_time(self) -> None:
        first, second = (search_p_identity(two_ways().gram()) for _ in range(2))
        np.testing.assert_array_equal(first.sums, second.sums)
        assert first.error == second.error


class TestWork:
    def test_operations_by_hand(self) -> None:
        """Two rows on three cells: 7·2²·3 + 2·2³ = 100 in order, and 2·2·3² = 36 more written out."""
        vector = np.ones(3)
        assert error_operations(OrderedGram(NUMPY, vector, vector, vector), 2) == 100
        assert error_operations(WrittenGram(NUMPY, np.eye(3), vector), 2) == 136

    def test_evaluations_are_counted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        calls: list[int] = []

        def counted(*given: Any) -> tuple[float, Any]:
            calls.append(len(given[2]))
            return _error(*given)

        monkeypatch.setattr(p_identity, "_error", counted)
        gram = prefix(30).gram()
        found = search_p_identity(gram, starts=4)
        descents = calls[p_identity.MOST_HALVINGS :]  # the first ones choose a start
        assert found.evaluations == len(descents)
        assert found.operations == sum(error_operations(gram_form(gram), rows) for rows in descents)

    def test_long_descents_of_large_problems_are_cut(self, monkeypatch: pytest.MonkeyPatch) -> None:
        gram = prefix(100).gram()
        whole = search_p_identity(gram, starts=2).evaluations
        assert search_p_identity(gram, starts=2, longest=5).evaluations < 120
        monkeypatch.setattr(p_identity, "LONG_OPERATIONS", 1)
        assert 120 < search_p_identity(gram, starts=2).evaluations < whole


@pytest.mark.parametrize("make", [lambda: prefix(64), lambda: all_range(260), two_ways])
def test_the_same_on_torch(make: Callable[[], Workload], torch: Any) -> None:
    gram = make().gram().astype(np.float64)
    there_too = TorchArrays(torch, torch.device("cpu")).asarray(gram)
    here, there = search_p_identity(gram, starts=2), search_p_identity(there_too, starts=2)
    assert isinstance(there.sums, torch.Tensor)
    assert there.error == pytest.approx(here.error, rel=1e-3)
    sums = there.sums.cpu().numpy()
    assert p_identity_error(gram, sums)[0] == pytest.approx(there.error, rel=1e-9)
    value, slope = p_identity_error(there_too, there.sums)
    assert value == pytest.approx(there.error, rel=1e-9)
    np.testing.assert_allclose(slope.numpy(), p_identity_error(gram, sums)[1], atol=1e-7 * float(np.trace(gram)))
