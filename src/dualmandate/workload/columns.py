"""What one level moves, and what two levels have in common: norms and products of a factor's columns, exactly.

For tables that are products of factors, norms and products of whole columns are products of these, attribute by
attribute. Integers are 64-bit where they provably fit, Python integers where they might not.
"""

from __future__ import annotations

import numpy as np

from dualmandate.workload.factor import LARGEST_INTEGER, Factor, Integers, Numbers, affordable


def exact(values: Integers, largest: int) -> Numbers:
    """The values in a type that holds integers up to `largest`."""
    return values if largest < LARGEST_INTEGER else values.astype(object)


def column_norms(factor: Factor, power: int) -> Numbers:
    """Σ_r |F[r, j]|^power for each level j: ‖column‖₁ or ‖column‖₂²; shape (size,)."""
    scales = factor.scales
    if scales is None:
        columns = factor.columns(np.arange(factor.size, dtype=np.int64))
        return np.asarray((np.abs(exact(columns, _largest(columns) ** power * factor.rows)) ** power).sum(axis=0))
    sizes = np.abs(exact(scales, _largest(scales) ** power * factor.rows))
    return np.asarray(sizes**power * factor.counts)


def inner(factor: Factor, left: Integers, right: Integers) -> Numbers:
    """⟨F[:, l], F[:, r]⟩, level by level."""
    scales = factor.scales
    if scales is None:
        first, second = _pairs(factor, left, right)
        return np.asarray((first * second).sum(axis=0))
    scales = exact(scales, _largest(scales) ** 2 * factor.rows)
    return np.asarray(scales[left] * scales[right] * factor.shared(left, right))


def least(factor: Factor, left: Integers, right: Integers, *, signed: bool = False) -> Numbers:
    """Σ_r min(|F[r, l]|, |F[r, r']|), each with the sign of the product of the two where `signed`."""
    scales = factor.scales
    if scales is None:
        first, second = _pairs(factor, left, right)
        smaller = np.minimum(np.abs(first), np.abs(second))
        return np.asarray((smaller * np.sign(first) * np.sign(second) if signed else smaller).sum(axis=0))
    scales = exact(scales, _largest(scales) * factor.rows)
    first, second = scales[left], scales[right]
    smaller = np.minimum(np.abs(first), np.abs(second)) * factor.shared(left, right)
    return np.asarray(smaller * np.sign(first) * np.sign(second) if signed else smaller)


def leading(factor: Factor, left: Integers, right: Integers, *, signed: bool = False) -> Numbers:
    """Σ |F[r, l]| over the rows in which neither column is zero, with the sign of the product where `signed`."""
    scales = factor.scales
    if scales is None:
        first, second = _pairs(factor, left, right)
        sizes = np.abs(first) * (second != 0)
        return np.asarray((sizes * np.sign(first) * np.sign(second) if signed else sizes).sum(axis=0))
    scales = exact(scales, _largest(scales) * factor.rows)
    sizes = np.abs(scales[left]) * factor.shared(left, right)
    return np.asarray(sizes * np.sign(scales[left]) * np.sign(scales[right]) if signed else sizes)


def gram(factor: Factor) -> Numbers:
    """FᵀF, size × size; refused where it would not fit."""
    affordable(factor.size, factor.size, "a Gram matrix")
    levels = np.arange(factor.size, dtype=np.int64)
    return inner(factor, levels[:, None], levels[None, :])


def is_partition(factor: Factor) -> bool:
    """Whether each level is counted once, in one row: exactly one 1 in every column."""
    return bool(np.all(factor.counts == 1)) and factor.scales is not None and bool(np.all(factor.scales == 1))


def sizes_vary(factor: Factor) -> bool:
    """Whether entries that are not zero differ in size."""
    scales = factor.scales
    if scales is None:
        return True
    sizes = np.abs(scales[scales != 0])
    return len(sizes) > 0 and bool(sizes.min() != sizes.max())


def signs_vary(factor: Factor) -> bool:
    """Whether entries that are not zero differ in sign."""
    scales = factor.scales
    if scales is None:
        scales = factor.columns(np.arange(factor.size, dtype=np.int64))
    return bool(np.any(scales > 0) and np.any(scales < 0))


def _largest(values: Integers) -> int:
    return int(max(values.max(), -int(values.min())))


def _pairs(factor: Factor, left: Integers, right: Integers) -> tuple[Numbers, Numbers]:
    """The columns of each pair of levels, written out; shape (rows, …)."""
    left, right = np.broadcast_arrays(left, right)
    affordable(factor.rows, left.size, "a list of columns")
    shape = (factor.rows, *left.shape)
    first, second = factor.columns(left.reshape(-1)), factor.columns(right.reshape(-1))
    largest = max(_largest(first), _largest(second)) ** 2 * factor.rows
    return exact(first.reshape(shape), largest), exact(second.reshape(shape), largest)
