"""Arrays of numpy and of accelerators' libraries: the same operations, and refusals where a library or device lacks."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualmandate.errors import InvalidRequest, UnknownName
from dualmandate.mechanism.strategy import arrays as module
from dualmandate.mechanism.strategy.arrays import (
    NUMPY,
    Arrays,
    NumpyArrays,
    TorchArrays,
    arrays_of,
    multiply_in_pieces,
    namespace,
)


def stand_in(name: str, *, devices: int) -> ModuleType:
    """A library like cupy or torch with as many devices, whose arrays are numpy's."""
    library = ModuleType(name)
    runtime = SimpleNamespace(getDeviceCount=lambda: devices, CUDARuntimeError=RuntimeError)
    stream = SimpleNamespace(synchronize=lambda: None)
    library.cuda = SimpleNamespace(  # type: ignore[attr-defined]
        runtime=runtime, is_available=lambda: devices > 0, get_current_stream=lambda: stream
    )
    library.device = lambda kind: SimpleNamespace(type=kind)  # type: ignore[attr-defined]
    library.asnumpy, library.matmul, library.asarray = np.asarray, np.matmul, np.asarray  # type: ignore[attr-defined]
    library.float64 = np.float64  # type: ignore[attr-defined]
    return library


@pytest.fixture(params=["numpy", "torch"])
def arrays(request: pytest.FixtureRequest) -> Arrays:
    if request.param == "numpy":
        return NUMPY
    torch = request.getfixturevalue("torch")
    return TorchArrays(torch, torch.device("cpu"))


class TestOperations:
    def test_numbers_are_64_bit_floats(self, arrays: Arrays) -> None:
        for made in (arrays.asarray([1, 2]), arrays.zeros((2, 3)), arrays.eye(3)):
            assert arrays.to_numpy(made).dtype == np.float64

    def test_they_do_what_numpy_does(self, arrays: Arrays) -> None:
        matrix = np.cos(np.arange(12.0)).reshape(3, 4)
        there = arrays.asarray(matrix)
        symmetric = matrix @ matrix.T + np.eye(3)
        expected: list[tuple[Any, Any]] = [
            (arrays.zeros((2, 3)), np.zeros((2, 3))),
            (arrays.eye(2), np.eye(2)),
            (arrays.sum(there, 0), matrix.sum(axis=0)),
            (arrays.sum(there, 1), matrix.sum(axis=1)),
            (arrays.cumulative_sum(there), np.cumsum(matrix, axis=1)),
            (arrays.clip(there, 0.0, 0.5), np.clip(matrix, 0.0, 0.5)),
            (arrays.nonzero(there[0] > 0.0), np.flatnonzero(matrix[0] > 0)),
            (arrays.take(there, arrays.nonzero(there[0] > 0.0)), matrix[:, matrix[0] > 0]),
            (arrays.matmul(there, there.T), matrix @ matrix.T),
            (arrays.vecdot(there, there[1]), matrix @ matrix[1]),
            (arrays.inv(arrays.asarray(symmetric)), np.linalg.inv(symmetric)),
            (arrays.eigh(arrays.asarray(symmetric))[0], np.linalg.eigvalsh(symmetric)),
        ]
        for found, right in expected:
            np.testing.assert_allclose(arrays.to_numpy(found), right, atol=1e-14)
        arrays.wait()

    def test_an_array_knows_where_it_is_from(self, arrays: Arrays) -> None:
        assert arrays_of(arrays.asarray([1.0])).name == arrays.name


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(1, 1, 1), (3, 5, 7), (68, 68, 1024), (68, 1024, 68), (40, 500, 500), (11, 70_000, 11)],
)
def test_products_in_pieces(rows: int, inner: int, columns: int) -> None:
    left = np.cos(np.arange(float(rows * inner))).reshape(rows, inner)
    right = np.sin(np.arange(float(inner * columns))).reshape(columns, inner).T
    np.testing.assert_allclose(multiply_in_pieces(left, right), left @ right, atol=1e-9)


def test_no_piece_is_shared_among_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With pieces of at most 60 multiplications, in every shape that a product may have."""
    monkeypatch.setattr(module, "ONE_THREAD", 60)
    sizes: list[int] = []

    class Watched(np.ndarray[Any, Any]):
        def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
            plain = [np.asarray(each) for each in inputs]
            if ufunc is np.matmul:
                sizes.append(plain[0].size * plain[1].shape[1])
            where = {} if out is None else {"out": tuple(np.asarray(each) for each in out)}
            return getattr(ufunc, method)(*plain, **where, **options)

    for rows, inner, columns in [(2, 3, 40), (3, 200, 5), (7, 9, 11), (50, 2, 2)]:
        left, right = np.ones((rows, inner)), np.ones((inner, columns))
        found = multiply_in_pieces(left.view(Watched), right.view(Watched))
        np.testing.assert_array_equal(found, np.full((rows, columns), float(inner)))
    assert max(sizes) <= 60


class TestChoice:
    def test_numpy_unless_asked_otherwise(self) -> None:
        assert namespace() is namespace("numpy") is NUMPY
        assert NUMPY.name == "numpy"

    def test_a_library_nobody_knows(self) -> None:
        with pytest.raises(UnknownName, match="no arrays called 'fortran'") as refused:
            namespace("fortran")
        assert "numpy, torch, cupy" in refused.value.instead

    @pytest.mark.parametrize("name", ["torch", "cupy"])
    def test_a_library_that_is_not_installed(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        def missing(_: str) -> ModuleType:
            raise ImportError

        monkeypatch.setattr(module, "import_module", missing)
        with pytest.raises(InvalidRequest) as refused:
            namespace(name)
        assert refused.value.why == f"{name} is not installed here"

    @pytest.mark.parametrize("name", ["torch", "cupy"])
    def test_a_machine_without_a_device(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        monkeypatch.setattr(module, "import_module", lambda _: stand_in(name, devices=0))
        with pytest.raises(InvalidRequest) as refused:
            namespace(name)
        assert refused.value.why == f"{name} finds no accelerator on this machine"

    def test_a_driver_that_fails_is_no_device(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing() -> int:
            raise RuntimeError

        library = stand_in("cupy", devices=0)
        library.cuda.runtime.getDeviceCount = failing
        monkeypatch.setattr(module, "import_module", lambda _: library)
        with pytest.raises(InvalidRequest, match="cupy"):
            namespace("cupy")

    @pytest.mark.parametrize(("name", "said"), [("torch", "torch on "), ("cupy", "cupy")])
    def test_a_machine_with_a_device(self, monkeypatch: pytest.MonkeyPatch, name: str, said: str) -> None:
        monkeypatch.setattr(module, "import_module", lambda _: stand_in(name, devices=1))
        found = namespace(name)
        assert found.name.startswith(said)
        assert isinstance(found, TorchArrays if name == "torch" else NumpyArrays)
        if name == "cupy":
            np.testing.assert_array_equal(found.matmul(found.asarray(np.eye(2)), np.eye(2)), np.eye(2))
            found.wait()
