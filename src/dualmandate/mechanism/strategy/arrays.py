"""Where the optimizers compute: numpy's arrays, or torch's or cupy's on an accelerator that was asked for.

Names are those of the Python array API standard, for the few operations that are used; all numbers are 64-bit floats.
On the processor every sum is added up in one order, so that searches end in the same place on every machine, and no
threads wait for each other; accelerators add up as their libraries like.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest, UnknownName
from dualmandate.mechanism.strategy import ordered_sums

NAMES = ("numpy", "torch", "cupy")

Array: TypeAlias = Any  # of numpy, torch or cupy: they have no type in common


class Arrays(Protocol):
    """Operations on the arrays of one library, in the memory of one device."""

    @property
    def name(self) -> str:
        """The library, and the device where it is not the processor."""
        ...

    def asarray(self, values: Any, /) -> Array:
        """Numbers as 64-bit floats on the device."""
        ...

    def to_numpy(self, array: Array, /) -> NDArray[Any]:
        """A copy in the processor's memory, or the array itself if it is there."""
        ...

    def zeros(self, shape: tuple[int, ...], /) -> Array:
        """Zeros."""
        ...

    def eye(self, size: int, /) -> Array:
        """The identity matrix."""
        ...

    def sum(self, array: Array, axis: int, /) -> Array:
        """Sums along an axis."""
        ...

    def cumulative_sum(self, array: Array, /) -> Array:
        """Running sums along the last axis."""
        ...

    def clip(self, array: Array, least: float, most: float, /) -> Array:
        """Entries moved into [least, most]."""
        ...

    def nonzero(self, mask: Array, /) -> Array:
        """Places at which a vector is true."""
        ...

    def take(self, array: Array, places: Array, /) -> Array:
        """Chosen columns."""
        ...

    def matmul(self, left: Array, right: Array, /) -> Array:
        """The product of two matrices."""
        ...

    def gram(self, rows: Array, /) -> Array:
        """Inner products of all rows of a matrix with each other."""
        ...

    def vecdot(self, left: Array, right: Array, /) -> Array:
        """Inner products along the last axis of an array with a vector."""
        ...

    def inv(self, matrix: Array, /) -> Array:
        """The inverse of a symmetric matrix with positive eigenvalues."""
        ...

    def eigh(self, matrix: Array, /) -> tuple[Array, Array]:
        """Eigenvalues of a symmetric matrix in ascending order, and its eigenvectors in columns."""
        ...

    def wait(self) -> None:
        """Return when everything that was asked of the device is done."""
        ...


@dataclass(frozen=True)
class Products:
    """How sums of products are added up."""

    matmul: Callable[[Array, Array], Array]
    gram: Callable[[Array], Array]
    vecdot: Callable[[Array, Array], Array]
    inv: Callable[[Array], Array]


@dataclass(frozen=True)
class NumpyArrays:
    """numpy, or a library that has its functions under the same names."""

    name: str
    module: ModuleType
    fetch: Callable[[Array], NDArray[Any]]
    products: Products
    wait: Callable[[], None]

    def asarray(self, values: Any, /) -> Array:
        """Numbers as 64-bit floats on the device."""
        return self.module.asarray(values, dtype=self.module.float64)

    def to_numpy(self, array: Array, /) -> NDArray[Any]:
        """A copy in the processor's memory, or the array itself if it is there."""
        return self.fetch(array)

    def zeros(self, shape: tuple[int, ...], /) -> Array:
        """Zeros."""
        return self.module.zeros(shape)

    def eye(self, size: int, /) -> Array:
        """The identity matrix."""
        return self.module.eye(size)

    def sum(self, array: Array, axis: int, /) -> Array:
        """Sums along an axis."""
        return array.sum(axis=axis)

    def cumulative_sum(self, array: Array, /) -> Array:
        """Running sums along the last axis."""
        return self.module.cumsum(array, axis=-1)

    def clip(self, array: Array, least: float, most: float, /) -> Array:
        """Entries moved into [least, most]."""
        return array.clip(least, most)

    def nonzero(self, mask: Array, /) -> Array:
        """Places at which a vector is true."""
        return self.module.flatnonzero(mask)

    def take(self, array: Array, places: Array, /) -> Array:
        """Chosen columns."""
        return array.take(places, axis=-1)

    def matmul(self, left: Array, right: Array, /) -> Array:
        """The product of two matrices."""
        return self.products.matmul(left, right)

    def gram(self, rows: Array, /) -> Array:
        """Inner products of all rows of a matrix with each other."""
        return self.products.gram(rows)

    def vecdot(self, left: Array, right: Array, /) -> Array:
        """Inner products along the last axis of an array with a vector."""
        return self.products.vecdot(left, right)

    def inv(self, matrix: Array, /) -> Array:
        """The inverse of a symmetric matrix with positive eigenvalues."""
        return self.products.inv(matrix)

    def eigh(self, matrix: Array, /) -> tuple[Array, Array]:
        """Eigenvalues of a symmetric matrix in ascending order, and its eigenvectors in columns."""
        values, vectors = self.module.linalg.eigh(matrix)
        return values, vectors


@dataclass(frozen=True)
class TorchArrays:
    """torch, whose names differ."""

    module: ModuleType
    device: Any

    @property
    def name(self) -> str:
        """The library, and the device."""
        return f"torch on {self.device}"

    def asarray(self, values: Any, /) -> Array:
        """Numbers as 64-bit floats on the device."""
        return self.module.asarray(values, dtype=self.module.float64, device=self.device)

    def to_numpy(self, array: Array, /) -> NDArray[Any]:
        """A copy in the processor's memory, or the array itself if it is there."""
        return np.asarray(array.cpu().numpy())

    def zeros(self, shape: tuple[int, ...], /) -> Array:
        """Zeros."""
        return self.module.zeros(shape, dtype=self.module.float64, device=self.device)

    def eye(self, size: int, /) -> Array:
        """The identity matrix."""
        return self.module.eye(size, dtype=self.module.float64, device=self.device)

    def sum(self, array: Array, axis: int, /) -> Array:
        """Sums along an axis."""
        return self.module.sum(array, dim=axis)

    def cumulative_sum(self, array: Array, /) -> Array:
        """Running sums along the last axis."""
        return self.module.cumsum(array, dim=-1)

    def clip(self, array: Array, least: float, most: float, /) -> Array:
        """Entries moved into [least, most]."""
        return self.module.clamp(array, least, most)

    def nonzero(self, mask: Array, /) -> Array:
        """Places at which a vector is true."""
        return self.module.nonzero(mask, as_tuple=True)[0]

    def take(self, array: Array, places: Array, /) -> Array:
        """Chosen columns."""
        return self.module.index_select(array, -1, places)

    def matmul(self, left: Array, right: Array, /) -> Array:
        """The product of two matrices."""
        return self.module.matmul(left, right)

    def gram(self, rows: Array, /) -> Array:
        """Inner products of all rows of a matrix with each other."""
        return self.module.matmul(rows, rows.T)

    def vecdot(self, left: Array, right: Array, /) -> Array:
        """Inner products along the last axis of an array with a vector."""
        return self.module.matmul(left, right)

    def inv(self, matrix: Array, /) -> Array:
        """The inverse of a symmetric matrix with positive eigenvalues; no check waits for the device."""
        return self.module.cholesky_inverse(self.module.linalg.cholesky_ex(matrix)[0])

    def eigh(self, matrix: Array, /) -> tuple[Array, Array]:
        """Eigenvalues of a symmetric matrix in ascending order, and its eigenvectors in columns."""
        values, vectors = self.module.linalg.eigh(matrix)
        return values, vectors

    def wait(self) -> None:
        """Return when everything that was asked of the device is done."""
        if self.device.type == "cuda":
            self.module.cuda.synchronize(self.device)


_IN_ORDER = Products(ordered_sums.product, ordered_sums.gram, ordered_sums.inner, ordered_sums.inverse)
NUMPY: Arrays = NumpyArrays("numpy", np, np.asarray, _IN_ORDER, lambda: None)


def namespace(name: str | None = None) -> Arrays:
    """numpy, or the accelerator of a library that was asked for; refused where the machine does not have it."""
    if name is None or name == "numpy":
        return NUMPY
    if name not in NAMES:
        raise UnknownName(
            f"there are no arrays called '{name}'",
            why="strategies are computed with one of a few libraries of arrays",
            instead=f"choose one of {', '.join(NAMES)}",
        )
    try:
        module = import_module(name)
    except ImportError:
        raise InvalidRequest(
            f"a strategy computed with {name}",
            why=f"{name} is not installed here",
            instead=f"install {name} for this machine's accelerator, or use numpy",
        ) from None
    if not _has_device(module):
        raise InvalidRequest(
            f"a strategy computed with {name}",
            why=f"{name} finds no accelerator on this machine",
            instead="use numpy, which needs none",
        )
    return TorchArrays(module, module.device("cuda")) if name == "torch" else _cupy(module)


def arrays_of(array: Array) -> Arrays:
    """The library and the device that an array is from."""
    library = type(array).__module__.partition(".")[0]
    if library == "torch":
        return TorchArrays(import_module("torch"), array.device)
    return _cupy(import_module("cupy")) if library == "cupy" else NUMPY


def _has_device(module: ModuleType) -> bool:
    if module.__name__ == "torch":
        return bool(module.cuda.is_available())
    try:
        return bool(module.cuda.runtime.getDeviceCount())
    except module.cuda.runtime.CUDARuntimeError:
        return False


def _cupy(module: ModuleType) -> Arrays:
    products = Products(
        matmul=lambda left, right: module.matmul(left, right),
        gram=lambda rows: module.matmul(rows, rows.T),
        vecdot=lambda left, right: module.einsum("...i,i->...", left, right),
        inv=lambda matrix: module.linalg.inv(matrix),
    )
    return NumpyArrays("cupy", module, module.asnumpy, products, module.cuda.get_current_stream().synchronize)
