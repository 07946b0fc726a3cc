"""Where the optimizers compute: numpy's arrays, or torch's or cupy's on an accelerator that was asked for.

Names are those of the Python array API standard, for the few operations that are used; all numbers are 64-bit floats.
A library of linear algebra adds up in the order that suits a processor, and fuses products into sums where it can; a
search of thousands of steps makes different strategies of such last digits. So on the processor every entry of a
product of matrices is added up term by term, from the first to the last, each product rounded before it is added:
searches end in the same place on every machine, and no threads wait for each other. Large products take compiled
loops, which are loaded when they are first needed, and small ones numpy: both give the same digits. Accelerators add up
as their libraries like.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest, UnknownName
from dualmandate.population.arrays import Floats

NAMES = ("numpy", "torch", "cupy")
SMALL = 2**16  # multiplications of a product, up to which loading compiled loops would take longer than it saves
SMALL_INVERSE = 12  # rows, the same

Array: TypeAlias = Any  # of numpy, torch or cupy: they have no type in common


def product(left: Floats, right: Floats) -> Floats:
    """A·B: entry (i, j) is 0 + a_i0·b_0j + a_i1·b_1j + …, from left to right."""
    if left.size * right.shape[1] <= SMALL:
        return _added(np.multiply(left.T[:, :, None], right[:, None, :], order="C"))
    from dualmandate.mechanism.strategy.ordered_kernel import multiply

    return multiply(left, right)


def gram(rows: Floats) -> Floats:
    """A·Aᵀ, the same as `product` to the last digit."""
    if rows.size * len(rows) <= SMALL:
        return product(rows, rows.T)
    from dualmandate.mechanism.strategy.ordered_kernel import multiply_by_itself

    return multiply_by_itself(rows)


def inner(left: Floats, right: Floats) -> Floats:
    """Inner products of a vector, or of each row of a matrix, with a vector.

    numpy adds up neighbors in one order on every processor: in blocks of 128 by eight running sums, then by halves.
    """
    return np.asarray((left * right).sum(axis=-1))


def inverse(matrix: Floats) -> Floats:
    """The inverse of a symmetric matrix with positive eigenvalues, by Gauss's and Jordan's steps from first to last.

    Such matrices need no exchange of rows. Nothing is checked: numbers that are not finite stay so.
    """
    if len(matrix) > SMALL_INVERSE:
        from dualmandate.mechanism.strategy.ordered_kernel import invert

        return invert(matrix)
    made = np.array(matrix, dtype=np.float64)
    for k in range(len(made)):
        pivot, factors = 1.0 / made[k, k], made[:, k].copy()
        made[k, k] = 1.0
        source = made[k] * pivot
        made[:, k] = 0.0
        made -= factors[:, None] * source
        made[k] = source
    return made


def _added(terms: Floats) -> Floats:
    """Σ along the first axis, from the first to the last; along the memory numpy would add up by halves."""
    count, rows, columns = terms.shape
    if rows * columns == 1 and count:
        return np.asarray(np.cumsum(terms, axis=0)[-1] + 0.0)
    return np.asarray(np.add.reduce(terms, axis=0, initial=0.0))


@dataclass(frozen=True)
class Arrays:
    """Operations on the arrays of one library, in the memory of one device; here numpy's, added up in one order."""

    module: ModuleType = np

    @property
    def name(self) -> str:
        """The library, and the device where it is not the processor."""
        return self.module.__name__

    def asarray(self, values: Any, /) -> Array:
        """Numbers as 64-bit floats on the device."""
        return self.module.asarray(values, dtype=self.module.float64)

    def to_numpy(self, array: Array, /) -> NDArray[Any]:
        """A copy in the processor's memory, or the array itself if it is there."""
        return np.asarray(array)

    def zeros(self, shape: tuple[int, ...], /) -> Array:
        return self.module.zeros(shape)

    def eye(self, size: int, /) -> Array:
        return self.module.eye(size)

    def sum(self, array: Array, axis: int, /) -> Array:
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
        return product(left, right)

    def gram(self, rows: Array, /) -> Array:
        return gram(rows)

    def vecdot(self, left: Array, right: Array, /) -> Array:
        return inner(left, right)

    def inv(self, matrix: Array, /) -> Array:
        return inverse(matrix)

    def eigh(self, matrix: Array, /) -> tuple[Array, Array]:
        """Eigenvalues of a symmetric matrix in ascending order, and its eigenvectors in columns."""
        values, vectors = self.module.linalg.eigh(matrix)
        return values, vectors

    def wait(self) -> None:
        """Return when everything that was asked of the device is done."""


class CupyArrays(Arrays):
    """cupy, which has numpy's functions under the same names."""

    def to_numpy(self, array: Array, /) -> NDArray[Any]:
        return np.asarray(self.module.asnumpy(array))

    def matmul(self, left: Array, right: Array, /) -> Array:
        return self.module.matmul(left, right)

    def gram(self, rows: Array, /) -> Array:
        return self.module.matmul(rows, rows.T)

    def vecdot(self, left: Array, right: Array, /) -> Array:
        return self.module.einsum("...i,i->...", left, right)

    def inv(self, matrix: Array, /) -> Array:
        return self.module.linalg.inv(matrix)

    def wait(self) -> None:
        self.module.cuda.get_current_stream().synchronize()


@dataclass(frozen=True)
class TorchArrays(Arrays):
    """torch, whose names differ."""

    device: Any = None

    @property
    def name(self) -> str:
        return f"torch on {self.device}"

    def asarray(self, values: Any, /) -> Array:
        return self.module.asarray(values, dtype=self.module.float64, device=self.device)

    def to_numpy(self, array: Array, /) -> NDArray[Any]:
        return np.asarray(array.cpu().numpy())

    def zeros(self, shape: tuple[int, ...], /) -> Array:
        return self.module.zeros(shape, dtype=self.module.float64, device=self.device)

    def eye(self, size: int, /) -> Array:
        return self.module.eye(size, dtype=self.module.float64, device=self.device)

    def sum(self, array: Array, axis: int, /) -> Array:
        return self.module.sum(array, dim=axis)

    def cumulative_sum(self, array: Array, /) -> Array:
        return self.module.cumsum(array, dim=-1)

    def clip(self, array: Array, least: float, most: float, /) -> Array:
        return self.module.clamp(array, least, most)

    def nonzero(self, mask: Array, /) -> Array:
        return self.module.nonzero(mask, as_tuple=True)[0]

    def take(self, array: Array, places: Array, /) -> Array:
        return self.module.index_select(array, -1, places)

    def matmul(self, left: Array, right: Array, /) -> Array:
        return self.module.matmul(left, right)

    def gram(self, rows: Array, /) -> Array:
        return self.module.matmul(rows, rows.T)

    def vecdot(self, left: Array, right: Array, /) -> Array:
        return self.module.matmul(left, right)

    def inv(self, matrix: Array, /) -> Array:
        """No check waits for the device."""
        return self.module.cholesky_inverse(self.module.linalg.cholesky_ex(matrix)[0])

    def wait(self) -> None:
        if self.device.type == "cuda":
            self.module.cuda.synchronize(self.device)


NUMPY = Arrays()


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
    asked = f"a strategy computed with {name}"
    try:
        module = import_module(name)
    except ImportError:
        instead = f"install {name} for this machine's accelerator, or use numpy"
        raise InvalidRequest(asked, why=f"{name} is not installed here", instead=instead) from None
    if not _has_device(module):
        why = f"{name} finds no accelerator on this machine"
        raise InvalidRequest(asked, why=why, instead="use numpy, which needs none")
    return TorchArrays(module, module.device("cuda")) if name == "torch" else CupyArrays(module)


def arrays_of(array: Array) -> Arrays:
    """The library and the device that an array is from."""
    library = type(array).__module__.partition(".")[0]
    if library == "torch":
        return TorchArrays(import_module("torch"), array.device)
    return CupyArrays(import_module("cupy")) if library == "cupy" else NUMPY


def _has_device(module: ModuleType) -> bool:
    if module.__name__ == "torch":
        return bool(module.cuda.is_available())
    try:
        return bool(module.cuda.runtime.getDeviceCount())
    except module.cuda.runtime.CUDARuntimeError:
        return False
