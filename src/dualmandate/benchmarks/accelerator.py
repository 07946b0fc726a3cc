"""The optimizer on an accelerator that torch or cupy finds: 8,192 cells, and the distance to the arithmetic floor.

The floor is the time that the products and inverses of matrices of all iterations would take at the rate of a large
product of 64-bit floats, measured on the same device in the same run. Coarser problems are solved on the processor, and
their time counts. Without an accelerator there are no rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dualmandate.benchmarks.harness import BenchmarkRow, check
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.strategy.arrays import Array, Arrays, arrays_of, namespace
from dualmandate.mechanism.strategy.dual import SymmetryBlock, solve
from dualmandate.mechanism.strategy.p_identity import p_identity_error, search_p_identity
from dualmandate.workload import AllRange, Prefix
from dualmandate.workload.factor import Factor

CELLS = 8_192
LIBRARIES = ("torch", "cupy")
LARGE_PRODUCT = 8_192  # rows and columns
REPETITIONS = 5
FACTORS: Mapping[str, Factor] = {"all ranges": AllRange(CELLS), "prefix sums": Prefix(CELLS)}
TOLERANCE = 1e-5  # relative gap between the error and the bound for gaussian noise
AGREEMENT = 1e-6  # relative: the error by running sums, and by the whole Gram matrix


@dataclass(frozen=True)
class AcceleratorResult:
    """What an optimizer reached, and its arithmetic by formula."""

    error: float
    operations: int  # floating-point operations in products and factorizations of matrices


def rows(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """Seconds, distance to the floor and error of each workload and noise; none where there is no accelerator."""
    arrays = accelerator(progress)
    if arrays is None:
        return []
    import dualmandate.mechanism.strategy.ordered_kernel  # noqa: F401  # loops of the small problems on the processor

    rate = product_rate(arrays, LARGE_PRODUCT)
    found: list[BenchmarkRow] = []
    for noise, optimize in OPTIMIZERS.items():
        optimize(gram_of(Prefix(CELLS // 16), arrays))  # loads what loads late
        for name, factor in FACTORS.items():
            case = f"{name} of {CELLS:,} cells, {noise} noise, {arrays.name}"
            progress(case)
            found += measured(case, gram_of(factor, arrays), optimize=optimize, rate=rate)
    return found


def accelerator(progress: Callable[[str], None]) -> Arrays | None:
    """The first library that finds a device; else why there is none goes to `progress`."""
    for library in LIBRARIES:
        try:
            return namespace(library)
        except InvalidRequest as refusal:
            progress(f"{refusal.what}: {refusal.why}")
    return None


def gram_of(factor: Factor, arrays: Arrays) -> Array:
    """The Gram matrix of 0/1 queries: in how many of them two cells are together."""
    cells = np.arange(factor.size)
    return arrays.asarray(factor.shared(cells[:, None], cells))


def product_rate(arrays: Arrays, size: int) -> float:
    """Floating-point operations a second of the fastest of some products of two square matrices."""
    matrix = arrays.asarray(np.cos(np.arange(size**2, dtype=np.float64)).reshape(size, size))
    fastest = min(_seconds(arrays, lambda: arrays.matmul(matrix, matrix)) for _ in range(REPETITIONS))
    return 2.0 * size**3 / fastest


def measured(
    case: str, gram: Array, *, optimize: Callable[[Array], AcceleratorResult], rate: float
) -> list[BenchmarkRow]:
    """Three rows of one case; wall clock, from a Gram matrix that lies on the device."""
    reached: list[AcceleratorResult] = []
    seconds = _seconds(arrays_of(gram), lambda: reached.append(optimize(gram)))
    floor = reached[0].operations / rate
    peer = f"arithmetic floor, at {rate / 1e12:.3g} · 10¹² operations a second"
    return [
        BenchmarkRow(case, seconds, "seconds", peer=peer, peer_value=floor),
        BenchmarkRow(case, seconds / floor, "times the arithmetic floor"),
        BenchmarkRow(case, reached[0].error, "error coefficient"),
    ]


def laplace(gram: Array) -> AcceleratorResult:
    """p-identity; its error must be that of the whole Gram matrix."""
    found = search_p_identity(gram)
    whole, _ = p_identity_error(gram, found.sums)
    check(abs(whole - found.error) <= AGREEMENT * whole, True)
    return AcceleratorResult(found.error, found.operations)


def gaussian(gram: Array) -> AcceleratorResult:
    """The dual problem; its certificate must close."""
    cells = np.arange(len(gram))
    found = solve([SymmetryBlock(1.0, gram, False, cells)], np.full(len(gram), 1.0 / len(gram)), TOLERANCE)
    check(found.upper <= found.lower * (1 + TOLERANCE), True)
    return AcceleratorResult(found.upper, found.operations)


OPTIMIZERS: Mapping[str, Callable[[Array], AcceleratorResult]] = {"laplace": laplace, "gaussian": gaussian}


def _seconds(arrays: Arrays, work: Callable[[], object]) -> float:
    arrays.wait()
    started = time.perf_counter()
    work()
    arrays.wait()
    return time.perf_counter() - started
