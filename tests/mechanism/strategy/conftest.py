"""What the tests of strategies share."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dualmandate.mechanism.strategy import arrays as module


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20100401)


class Tensor(np.ndarray[Any, Any]):
    """numpy's array under torch's name, with what a tensor has and an array has not."""

    __module__ = "torch"
    device = SimpleNamespace(type="cpu")  # type: ignore[assignment]

    def cpu(self) -> Tensor:
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.asarray(self)


def _tensor(values: Any) -> Any:
    return np.asarray(values).view(Tensor)


def torch_by_numpy() -> ModuleType:
    """A library that knows the functions of torch that are used, by torch's names and arguments alone."""
    library: Any = ModuleType("torch")
    library.Tensor, library.float64, library.device = Tensor, np.float64, lambda kind: SimpleNamespace(type=kind)
    library.asarray = lambda values, *, dtype, device: _tensor(np.array(values, dtype=dtype))
    library.zeros = lambda shape, *, dtype, device: _tensor(np.zeros(shape, dtype=dtype))
    library.eye = lambda size, *, dtype, device: _tensor(np.eye(size, dtype=dtype))
    library.concatenate = lambda tensors: _tensor(np.concatenate(tensors))
    library.sum = lambda tensor, *, dim: _tensor(np.sum(tensor, axis=dim))
    library.cumsum = lambda tensor, *, dim: _tensor(np.cumsum(tensor, axis=dim))
    library.clamp = lambda tensor, least, most: _tensor(np.clip(tensor, least, most))
    library.nonzero = lambda mask, *, as_tuple: tuple(map(_tensor, np.nonzero(mask)))
    library.index_select = lambda tensor, axis, places: _tensor(np.take(tensor, places, axis=axis))
    library.matmul = lambda left, right: _tensor(np.matmul(left, right))
    library.cholesky_inverse = lambda lower: _tensor(np.linalg.inv(np.asarray(lower @ lower.T)))
    library.linalg = SimpleNamespace(
        cholesky_ex=lambda matrix: (_tensor(np.linalg.cholesky(np.asarray(matrix))), 0),
        eigh=lambda matrix: tuple(map(_tensor, np.linalg.eigh(np.asarray(matrix)))),
    )
    return library  # type: ignore[no-any-return]


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Any:
    """torch where it is installed, else the stand-in; it is no dependency, and on a device the benchmark checks it."""
    try:
        return import_module("torch")
    except ImportError:
        library = torch_by_numpy()
        found = {"torch": library}
        monkeypatch.setattr(module, "import_module", lambda name: found.get(name) or import_module(name))
        return library
