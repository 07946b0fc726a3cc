"""Rows for pure ε in whole numbers: each column keeps its sum exactly, and the cell's own count gets what is left.

Rows with unequal entries are rounded to steps of 2^-k by largest remainders; a cell's own row is a plain count, and so
are rows that are a number times small whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.parts import EVERYTHING_AVERAGED, Part
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.whole_numbers import DIGITS, Kept, kept_row, rounded_down, without_divisors
from dualmandate.mechanism.strategy.whole_rows import WholeRows, WholeSector, published
from dualmandate.workload.factor import Integers

_DEFINITE = 1e-5  # of the largest, the smallest number on the diagonal of the triangular root of a definite matrix
_CLEARLY_DEFINITE = 1e-3  # the same where solving with it loses no digits that matter


@dataclass(frozen=True, eq=False)
class Sums:
    """All rows for pure ε, over cells one by one: what a row keeps, and sums of cells beside every cell's own count."""

    residuals: Residuals
    rows: Floats  # scaled to a largest column of L1 norm 1; shape (rows, cells)
    kept: tuple[Kept | None, ...]
    gram: Floats
    public: Floats
    noise: float  # tr(V·X⁺) of the given rows

    @classmethod
    def of(cls, residuals: Residuals) -> Sums:
        """From rows in one sector, every cell an orbit of its own."""
        part, [(sector, measured)] = residuals.part, residuals.measurements.items()
        assert sector == EVERYTHING_AVERAGED
        assert part.orbit_count == part.merged_size
        cells, largest = part.seen(sector)[1], residuals.sensitivity("l1")
        gram = part.gram()[np.ix_(cells, cells)]
        noise = float(np.einsum("ij,ij->", measured.inverse, gram @ measured.inverse))
        rows = measured.rows[measured.rows.any(axis=1)] / largest
        kept = tuple(map(kept_row, rows))
        if any(each is None for each in kept) and len(_own(rows)) < rows.shape[1]:
            kept = _as_asked(part, rows)
        return cls(residuals, rows, kept, gram, part.public_basis(sector), noise)

    @property
    def bits_matter(self) -> bool:
        """Whether some row has unequal entries."""
        return any(kept is None for kept in self.kept)

    def rounded(self, bits: int) -> tuple[WholeRows, float]:
        """Whole-number rows, and their tr(V·X⁺)."""
        numbers, weights = self._with_remainders(bits) if self.bits_matter else self._as_they_are()
        rows = np.array([float(weight) for weight in weights])[:, None] * numbers.astype(np.float64)
        inverse = least_squares(rows, self.public)
        sectors = {EVERYTHING_AVERAGED: WholeSector(numbers, weights, inverse)}
        noise = float(np.einsum("ij,ij->", inverse, self.gram @ inverse))
        return published(self.residuals, sectors, bits if self.bits_matter else 0), noise

    def _as_they_are(self) -> tuple[Integers, tuple[Fraction, ...]]:
        kept = [each for each in self.kept if each is not None]
        return np.stack([each.numbers for each in kept]), tuple(each.weight for each in kept)

    def _with_remainders(self, bits: int) -> tuple[Integers, tuple[Fraction, ...]]:
        """Every cell's own count, rows that keep their entries, and the rest in steps of 2^-bits; column sums are 1."""
        own = _own(self.rows)
        others = [row for row in range(len(self.rows)) if row not in own]
        kept = [each for row in others if (each := self.kept[row]) is not None]
        rounded = self.rows[[row for row in others if self.kept[row] is None]]
        left = [Fraction(1)] * self.rows.shape[1]
        for each in kept:
            for cell in np.flatnonzero(each.numbers).tolist():
                left[cell] -= each.weight * abs(int(each.numbers[cell]))
        step, scaled = Fraction(1, 2**bits), np.round(np.abs(rounded) * 2.0**bits, DIGITS)
        exact = scaled.sum(axis=0)
        sums = [int(nearest) for nearest in np.rint(exact)]
        for cell, room in enumerate(left):
            if room <= step * sums[cell]:
                sums[cell] = math.floor(exact[cell])
            left[cell] = room - step * sums[cell]
        assert min(left) > 0
        numbers = np.where(rounded < 0, -1, 1) * _largest_remainders(scaled, np.array(sums))
        rows = np.concatenate([np.eye(len(left), dtype=np.int64), *(each.numbers[None] for each in kept), numbers])
        return without_divisors(rows, [*left, *(each.weight for each in kept), *[step] * len(numbers)])


def _own(rows: Floats) -> dict[int, int]:
    """For each cell that has one, the first row that holds it alone: cells by rows."""
    single = np.flatnonzero(np.count_nonzero(rows, axis=1) == 1)
    cells = np.argmax(rows[single] != 0, axis=1)
    first = np.unique(cells, return_index=True)[1]
    return {int(single[place]): int(cells[place]) for place in first}


def _as_asked(part: Part, rows: Floats) -> tuple[Kept | None, ...]:
    """Rows that are the queries themselves, each times a number: their own whole numbers."""
    weights = np.repeat(
        [math.sqrt(part.squared_weights[key]) for key in part.tables],
        [math.prod(factor.rows for factor in factors) for factors in part.tables.values()],
    )
    asked = np.rint(part.queries()[:, part.cells] / weights[:, None])
    asked = asked[asked.any(axis=1)]
    assert len(asked) == len(rows)
    sizes = np.abs(rows).max(axis=1) / np.abs(asked).max(axis=1)
    assert np.allclose(asked * sizes[:, None], rows, rtol=1e-9)
    divisors = np.gcd.reduce(asked.astype(np.int64), axis=1)
    return tuple(
        Kept(row.astype(np.int64) // divisor, rounded_down(float(size) * int(divisor)))
        for row, divisor, size in zip(asked, divisors, sizes, strict=True)
    )


def _largest_remainders(values: Floats, sums: Integers) -> Integers:
    """Whole numbers next to values ≥ 0 with given column sums: the largest fractions are rounded up."""
    numbers = np.floor(values)
    order = np.argsort(numbers - values, axis=0, kind="stable")
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(len(values))[:, None], axis=0)
    return np.asarray((numbers + (places < sums - numbers.sum(axis=0))).astype(np.int64))


def least_squares(rows: Floats, public: Floats) -> Floats:
    """A⁺ for rows less what is public, shape (cells, rows)."""
    from scipy.linalg import cho_factor, cho_solve

    private = rows - (rows @ public.T) @ public
    try:
        factor = cho_factor(private.T @ private + public.T @ public)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(private))
    diagonal = np.diagonal(factor[0])
    ratio = float(diagonal.min()) / float(diagonal.max())
    if ratio < _DEFINITE:
        return np.asarray(np.linalg.pinv(private))
    found = np.asarray(cho_solve(factor, private.T))
    # One step of Newton's method for the inverse squares an error that is small already.
    return found if ratio > _CLEARLY_DEFINITE else np.asarray(2.0 * found - found @ (private @ found))
