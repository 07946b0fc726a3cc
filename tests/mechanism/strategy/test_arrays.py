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
    CupyArrays,
    TorchArrays,
    arrays_of,
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
    library.float64, library.einsum, library.linalg = np.float64, np.einsum, np.linalg  # type: ignore[attr-defined]
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
            (arrays.gram(there), matrix @ matrix.T),
            (arrays.vecdot(there, there[1]), matrix @ matrix[1]),
            (arrays.inv(arrays.asarray(symmetric)), np.linalg.inv(symmetric)),
            (arrays.eigh(arrays.asarray(symmetric))[0], np.linalg.eigvalsh(symmetric)),
        ]
        for found, right in expected:
            np.testing.assert_allclose(arrays.to_numpy(found), right, atol=1e-14)
        arrays.wait()

    def test_an_array_knows_where_it_is_from(self, arrays: Arrays) -> None:
        assert arrays_of(arrays.asarray([1.0])).name == arrays.name


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
        assert isinstance(found, TorchArrays if name == "torch" else CupyArrays)
        if name == "cupy":
            twice = found.asarray(2.0 * np.eye(2))
            np.testing.assert_array_equal(found.matmul(twice, twice), 4.0 * np.eye(2))
            np.testing.assert_array_equal(found.gram(twice), 4.0 * np.eye(2))
            np.testing.assert_array_equal(found.vecdot(twice, twice[0]), [4.0, 0.0])
            np.testing.assert_array_equal(found.inv(twice), 0.5 * np.eye(2))
            found.wait()
