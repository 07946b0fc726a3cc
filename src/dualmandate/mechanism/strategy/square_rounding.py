"""Rows for Gaussian noise in whole numbers: each column keeps its sum of squares as nearly as it can.

At the optimum, errors of first order come from these sums alone. Where the queries span less than all cells, rows are
whole combinations of whole-number rows that they span, so that nothing that is asked gets lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.parts import Part, Sector
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.spans import whole_basis
from dualmandate.mechanism.strategy.whole_numbers import DIGITS, Kept, kept_row, power_of_two, without_divisors
from dualmandate.mechanism.strategy.whole_rows import WholeRows, WholeSector, lengths, published
from dualmandate.workload.factor import LARGEST_INTEGER, Integers

LARGEST_GRAM = 2_048  # cells whose Gram matrix is written out
_TIE = 1e-9  # of a column's sum of squares: two roundings whose sums miss it by as much as that are equally good
_UNRELATED = 1e-9  # of the geometric mean of two diagonal entries: what is below is zero


@dataclass(frozen=True, eq=False)
class _Block:
    """The rows of one sector for Gaussian noise, C·W: W all orbits one by one, or whole-number rows that queries span.

    C is what is rounded. V = WᵀMW beside what is public; rows over orbits are orthonormal after `scales`.
    """

    rows: Floats  # C, as many rows as W
    kept: tuple[Kept | None, ...]
    basis: Integers | None  # W, shape (rows, orbits); None: the identity
    back: Floats | None  # the least-squares inverse of W, shape (orbits, rows); None: the identity
    gram: Floats  # M, shape (rows, rows)
    scales: Floats  # of rows over orbits, shape (orbits,)
    multiplicity: float

    @classmethod
    def of(cls, part: Part, sector: Sector, rows: Floats) -> _Block:
        """From rows over the orbits of a sector."""
        scales, basis, back = lengths(part, sector), None, None
        if len(rows) < len(scales):
            public = part.public_basis(sector)
            basis = whole_basis(part, sector, scales, public)
            if len(basis) > len(rows):
                raise InvalidMechanism(
                    f"whole-number rows for {len(basis):,} independent queries of which {len(rows):,} are measured",
                    why="the others weigh so little that they are lost in rounding",
                    instead="let the tables weigh less differently",
                )
            spanned = basis * scales
            back = right_inverse(spanned - (spanned @ public.T) @ public)
        found = _root(rows / scales if back is None else rows @ back)
        gram, multiplicity = _gram(part, sector, back, scales), part.multiplicity(sector)
        return cls(found, tuple(map(kept_row, found)), basis, back, gram, scales, multiplicity)

    def over_orbits(self, inverse: Floats) -> Floats:
        """From C⁻¹, what turns measurements into numbers of orbits; shape (orbits, rows)."""
        return inverse / self.scales[:, None] if self.back is None else np.asarray(self.back @ inverse)

    def noise(self, inverse: Floats) -> float:
        """tr(V·X⁺) of the sector, all copies together, from C⁻¹."""
        return self.multiplicity * float(np.einsum("ij,ij->", inverse, self.gram @ inverse))

    def rounded(self, bits: int) -> tuple[Integers, tuple[Fraction, ...]]:
        """C in whole numbers of so many bits, or those that a row keeps, and their weights."""
        exponents = np.frexp(np.abs(self.rows).max(axis=1))[1] - bits
        steps = np.ldexp(1.0, exponents)
        weights = [power_of_two(int(exponent)) for exponent in exponents]
        scaled = self.rows / steps[:, None]
        for row, kept in enumerate(self.kept):
            if kept is not None:
                scaled[row], weights[row], steps[row] = kept.numbers, kept.weight, float(kept.weight)
        scaled = np.round(scaled, DIGITS)
        numbers = _leveled(self.rows, scaled, steps) if self.basis is None else np.rint(scaled)
        return numbers.astype(np.int64), tuple(weights)


def _root(rows: Floats) -> Floats:
    """Square C with the same CᵀC as given rows, the same on every machine: cosine waves times the symmetric root.

    Eigenvectors would have any sign, and any direction where eigenvalues are equal. Waves spread the entries of a row
    as they do, so that few bits suffice. Cells that have nothing to do with each other are kept apart.
    """
    squares = rows.T @ rows
    sizes = np.sqrt(np.diagonal(squares))
    found = np.zeros_like(squares)
    for here in _related(np.abs(squares) > _UNRELATED * np.multiply.outer(sizes, sizes)):
        values, vectors = np.linalg.eigh(squares[np.ix_(here, here)])
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        found[np.ix_(here, here)] = _waves(len(here)) @ root
    return found


def _related(pairs: NDArray[np.bool_]) -> Iterator[Indices]:
    """Groups of columns that are related to each other, directly or through others."""
    left = np.ones(len(pairs), dtype=np.bool_)
    while left.any():
        reached = newly = np.arange(len(pairs)) == np.argmax(left)
        while newly.any():
            newly = pairs[newly].any(axis=0) & ~reached
            reached = reached | newly
        left &= ~reached
        yield np.flatnonzero(reached)


def _waves(count: int) -> Floats:
    """The cosine transform: an orthogonal matrix whose rows are waves of growing frequency."""
    places = np.arange(count)
    waves = np.cos(np.pi / count * np.multiply.outer(places, places + 0.5)) * math.sqrt(2.0 / count)
    waves[0] = math.sqrt(1.0 / count)
    return np.asarray(waves)


def _leveled(rows: Floats, scaled: Floats, steps: Floats) -> Floats:
    """Entries to a whole number next to them, the nearest unless another keeps the column's sum of squares better.

    The entries that are nearest to the middle between two whole numbers are looked at first, in all columns at once.
    """
    numbers = np.rint(scaled)
    missed = np.round(scaled - numbers, DIGITS)
    squares = np.square(rows).sum(axis=0)
    off = np.square(numbers * steps[:, None]).sum(axis=0) - squares
    columns = np.arange(rows.shape[1])
    for chosen in np.argsort(-np.abs(missed), axis=0, kind="stable")[: len(rows) // 2 + 1]:
        here = numbers[chosen, columns]
        other = here + np.sign(missed[chosen, columns])
        change = (np.square(other) - np.square(here)) * np.square(steps[chosen])
        better = np.abs(off + change) < np.abs(off) - _TIE * squares
        numbers[chosen, columns] = np.where(better, other, here)
        off = np.where(better, off + change, off)
    return numbers


def right_inverse(rows: Floats) -> Floats:
    """R⁺ of independent rows."""
    orthogonal, triangle = np.linalg.qr(rows.T)
    return np.asarray(np.linalg.solve(triangle, orthogonal.T).T)


def _gram(part: Part, sector: Sector, back: Floats | None, scales: Floats) -> Floats:
    """M with V = WᵀMW, from the least-squares inverse of W."""
    inside = part.seen(sector)[1]
    if len(inside) > LARGEST_GRAM and back is not None:
        rows = part.rows(sector)[:, inside] @ back
        return np.asarray(rows.T @ rows)
    gram = part.gram(sector)[np.ix_(inside, inside)]
    return gram / np.multiply.outer(scales, scales) if back is None else np.asarray(back.T @ gram @ back)


@dataclass(frozen=True, eq=False)
class Squares:
    """All rows for Gaussian noise, sector by sector."""

    residuals: Residuals
    blocks: dict[Sector, _Block]

    @classmethod
    def of(cls, residuals: Residuals) -> Squares:
        """From rows over the orbits of some sectors; sectors whose queries are all 0 on average need none."""
        blocks = {s: _Block.of(residuals.part, s, each.rows) for s, each in residuals.measurements.items()}
        return cls(residuals, {sector: block for sector, block in blocks.items() if len(block.rows)})

    @property
    def bits_matter(self) -> bool:
        """Whether some row has unequal entries."""
        return any(kept is None for block in self.blocks.values() for kept in block.kept)

    @cached_property
    def noise(self) -> float:
        """tr(V·X⁺) of the rows as they are."""
        return math.fsum(block.noise(np.asarray(np.linalg.inv(block.rows))) for block in self.blocks.values())

    def rounded(self, bits: int) -> tuple[WholeRows, float]:
        """Whole-number rows, and their tr(V·X⁺); infinite where rounding made rows depend on each other."""
        sectors, noise = {}, []
        for sector, block in self.blocks.items():
            numbers, weights = block.rounded(bits)
            rows = np.array([float(weight) for weight in weights])[:, None] * numbers.astype(np.float64)
            try:
                inverse = np.asarray(np.linalg.inv(rows))
                noise.append(block.noise(inverse))
            except np.linalg.LinAlgError:
                inverse, noise = np.zeros_like(rows), [math.inf]
            if block.basis is not None:
                numbers = _combined(numbers, block.basis)
            sectors[sector] = WholeSector(*without_divisors(numbers, weights), block.over_orbits(inverse))
        return published(self.residuals, sectors, bits if self.bits_matter else 0), math.fsum(noise)


def _combined(numbers: Integers, basis: Integers) -> Integers:
    """Whole combinations of whole-number rows; refused where they would be too large."""
    largest = float((np.abs(numbers).astype(np.float64) @ np.abs(basis).astype(np.float64)).max())
    if largest >= LARGEST_INTEGER:
        raise TooLarge(
            "whole-number rows with entries above 2^62",
            why="the queries hold numbers too large for sums of them to be exact in 64 bits",
            instead="use a coarser grid for the numbers that are summed",
        )
    return np.asarray(numbers @ basis)
