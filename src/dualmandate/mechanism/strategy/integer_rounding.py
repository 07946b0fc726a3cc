"""From the best rows in floating point to whole-number rows with rational weights that are nearly as good.

A row whose entries are a number times small whole numbers keeps them, and only that number is rounded, as its weight.
Other rows are rounded to k bits, k the least for which the error rises by less than 0.1 %."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.strategy.axes import Axis
from dualmandate.mechanism.strategy.integer_rows import IntegerRows, IntegerSector, Residuals, lengths, published
from dualmandate.mechanism.strategy.workload_blocks import EVERYTHING_AVERAGED, Sector, WorkloadBlock, public_labels
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.workload.factor import LARGEST_INTEGER, Factor, Numbers, affordable
from dualmandate.workload.sensitivity import Norm

WEIGHT_BITS = 20  # of the weight of a row that keeps its entries
LARGEST_DENOMINATOR = 4_096  # of ratios between entries that are kept as they are
DIGITS = 6  # behind the point of numbers that are rounded next: equal ones stay equal on every machine
_ROUNDING = 1e-11  # relative, by which a ratio may miss a fraction
_NOTHING = 1e-9  # of the largest entry of a row: what is below is zero


@dataclass(frozen=True, eq=False)
class Kept:
    """A row that keeps its entries: whole numbers without a common divisor, times a weight."""

    numbers: Integers
    weight: Fraction


def kept_row(row: Floats) -> Kept | None:
    """A row as a weight times small whole numbers; None if its entries are not in such ratios."""
    sizes = np.abs(row)
    row = np.where(sizes > _NOTHING * float(sizes.max()), row, 0.0)
    smallest = float(np.abs(row[row != 0]).min())
    denominator = 1
    for ratio in np.unique(np.round(np.abs(row[row != 0]) / smallest, 12)).tolist():
        nearest = Fraction(ratio).limit_denominator(LARGEST_DENOMINATOR)
        denominator = math.lcm(denominator, nearest.denominator)
        if abs(ratio - float(nearest)) > _ROUNDING * ratio or denominator > LARGEST_DENOMINATOR:
            return None
    numbers = np.rint(row / smallest * denominator).astype(np.int64)
    divisor = int(np.gcd.reduce(numbers))
    return Kept(numbers // divisor, rounded_down(smallest / denominator * divisor))


def rounded_down(size: float) -> Fraction:
    """A number > 0 rounded down to 20 bits."""
    mantissa, exponent = math.frexp(size)
    return math.floor(round(mantissa * 2.0**WEIGHT_BITS, DIGITS)) * power_of_two(exponent - WEIGHT_BITS)


def power_of_two(exponent: int) -> Fraction:
    """2^exponent, which may be negative."""
    return Fraction(2**exponent) if exponent >= 0 else Fraction(1, 2**-exponent)


def without_divisors(rows: Integers, weights: Sequence[Fraction]) -> tuple[Integers, tuple[Fraction, ...]]:
    """Rows divided by their common divisors, which go into their weights; empty rows are left out."""
    divisors = np.gcd.reduce(rows, axis=1)
    kept = np.flatnonzero(divisors)
    divided = rows[kept] // divisors[kept, None]
    return divided, tuple(weights[row] * int(divisors[row]) for row in kept.tolist())


_DEPENDENT = 1e-9  # length, relative to the row, of what is left of a row beside others that it depends on
_SHORTEST = 0.9  # length of the last of some rows, the first being 1


def whole_basis(part: WorkloadBlock, sector: Sector, scales: Floats, public: Floats) -> Integers:
    """Whole-number rows over the measured orbits of a sector that span all its queries, and no row too many.

    `scales` turns a row into orthonormal coordinates, shape (orbits,). What the orthonormal rows `public` span need not
    be spanned again.
    """
    places, inside = part.averaged(sector), part.seen(sector)[1]
    blocks: dict[tuple[object, ...], Integers] = {}
    for key in part.sectors[sector]:
        short = tuple(key[place] for place in places)
        if short not in blocks:
            factors = [_factor_basis(part, place, part.tables[key][place]) for place in places]
            blocks[short] = _product(factors)[:, inside]
    affordable(sum(map(len, blocks.values())), len(inside), "a list of queries")
    rows = _reduced(np.concatenate(list(blocks.values())))
    scaled = rows * scales
    private = scaled - (scaled @ public.T) @ public
    return rows[_independent(private, np.linalg.norm(scaled, axis=1))]


def _factor_basis(part: WorkloadBlock, place: int, factor: Factor) -> Integers:
    """Whole-number rows over the classes of one attribute that span the rows of a factor."""
    level = part.levels[place]
    if int(np.linalg.matrix_rank(part.averaged_gram(place, factor), hermitian=True)) == level.orbits:
        return np.eye(level.orbits, dtype=np.int64)
    rows = _reduced(_class_means(level, factor))
    scaled = np.asarray(rows * np.sqrt(level.members), dtype=np.float64)
    return rows[_independent(scaled, np.linalg.norm(scaled, axis=1))]


def _class_means(level: Axis, factor: Factor) -> Numbers:
    """The rows of a factor averaged over classes, all times the least common multiple of their sizes."""
    affordable(factor.rows, level.merged, "a dense factor")
    sums = np.zeros((level.orbits, factor.rows), dtype=np.int64)
    np.add.at(sums, level.classes, factor.columns(level.kept).T)
    multiple = math.lcm(*level.members.tolist())
    kind = np.int64 if multiple * int(np.abs(sums).max()) < LARGEST_INTEGER else np.object_
    shares: Numbers = np.array([multiple // size for size in level.members.tolist()], dtype=kind)
    wide: Numbers = sums.T.astype(kind)
    return wide * shares


def _product(matrices: list[Integers]) -> Integers:
    if math.prod(int(np.abs(matrix).max(initial=0)) for matrix in matrices) >= LARGEST_INTEGER:
        raise TooLarge(
            "whole-number rows for queries whose classes of levels have sizes without a common multiple below 2^62",
            why="averages over classes are measured as whole numbers",
            instead="group levels, so that fewer sizes differ",
        )
    found: Integers = np.ones((1, 1), dtype=np.int64)
    for matrix in matrices:
        affordable(len(found) * len(matrix), found.shape[1] * matrix.shape[1], "a list of queries")
        found = np.kron(found, matrix)
    return found


def _reduced(rows: Numbers) -> Integers:
    """Rows divided by their common divisors, each once, without empty ones."""
    divisors = np.gcd.reduce(rows, axis=1)
    kept = divisors != 0
    return np.unique((rows[kept] // divisors[kept, None]).astype(np.int64), axis=0)


def _independent(rows: Floats, sizes: Floats) -> Indices:
    """Numbers of rows that span all of them, each in turn as far from those before as any; `sizes` are their scales.

    Of rows that are equally far the first is taken: later ones are made a little shorter, for no two machines round
    alike.
    """
    from scipy.linalg import qr

    if len(rows) == 0:
        return np.zeros(0, dtype=np.intp)
    shorter = np.linspace(1.0, _SHORTEST, len(rows)) / sizes
    triangle, order = qr((rows * shorter[:, None]).T, mode="r", pivoting=True, check_finite=False)
    return np.sort(order[: np.count_nonzero(np.abs(np.diagonal(triangle)) > _DEPENDENT)])


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

    def rounded(self, bits: int) -> tuple[IntegerRows, float]:
        """Whole-number rows, and their tr(V·X⁺)."""
        numbers, weights = self._with_remainders(bits) if self.bits_matter else self._as_they_are()
        rows = np.array([float(weight) for weight in weights])[:, None] * numbers.astype(np.float64)
        inverse = least_squares(rows, self.public)
        sectors = {EVERYTHING_AVERAGED: IntegerSector(numbers, weights, inverse)}
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


def _as_asked(part: WorkloadBlock, rows: Floats) -> tuple[Kept | None, ...]:
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
    def of(cls, part: WorkloadBlock, sector: Sector, rows: Floats) -> _Block:
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
    from scipy.sparse.csgraph import connected_components

    squares = rows.T @ rows
    sizes = np.sqrt(np.diagonal(squares))
    found = np.zeros_like(squares)
    related = np.abs(squares) > _UNRELATED * np.multiply.outer(sizes, sizes)
    count, groups = connected_components(related, directed=False)
    for group in range(count):
        here = np.flatnonzero(groups == group)
        values, vectors = np.linalg.eigh(squares[np.ix_(here, here)])
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        found[np.ix_(here, here)] = _waves(len(here)) @ root
    return found


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


def _gram(part: WorkloadBlock, sector: Sector, back: Floats | None, scales: Floats) -> Floats:
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
        return any(kept is None for block in self.blocks.values() for kept in block.kept)

    @cached_property
    def noise(self) -> float:
        """tr(V·X⁺) of the rows as they are."""
        return math.fsum(block.noise(np.asarray(np.linalg.inv(block.rows))) for block in self.blocks.values())

    def rounded(self, bits: int) -> tuple[IntegerRows, float]:
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
            sectors[sector] = IntegerSector(*without_divisors(numbers, weights), block.over_orbits(inverse))
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


FEWEST_BITS, MOST_BITS = 6, 24
ALLOWED_RISE = 1e-3  # of the error, by rounding


def whole_rows(residuals: Residuals, norm: Norm) -> IntegerRows:
    """Whole-number rows with rational weights whose error is less than 0.1 % above that of given rows.

    The error is Δ²·tr(V·X⁺), Δ the largest column of the whole-number rows in the given norm, exactly. Beside public
    totals V is what they leave, and Δ is the farthest that a record moves the rows within groups of the same totals.
    """
    rounding = Sums.of(residuals) if norm == "l1" else Squares.of(residuals)
    if not rounding.bits_matter:
        return rounding.rounded(0)[0]
    labels, power = public_labels(residuals.part), 1 if norm == "l1" else 2

    def error(found: IntegerRows, noise: float) -> float:
        farthest = found.largest_difference(power, labels)[0] if residuals.part.public else found.largest_column(power)
        return noise * math.pow(farthest, 2 / power)

    least = residuals.sensitivity(norm) ** 2 * rounding.noise
    if residuals.part.public:
        least = error(*rounding.rounded(MOST_BITS))
        if least == 0:  # totals that cross leave no record a place to go alone: together, any may go anywhere
            labels = None
            least = error(*rounding.rounded(MOST_BITS))
    bits, ratio = FEWEST_BITS, math.inf
    while bits <= MOST_BITS:
        found, noise = rounding.rounded(bits)
        now = error(found, noise) / least
        ratio = min(ratio, now)
        if now < 1 + ALLOWED_RISE:
            return found
        # A bit takes at most about three quarters off what is too much; half the bits that this would need are safe.
        bits += 1 if math.isinf(now) else max(1, math.floor(math.log((now - 1) / ALLOWED_RISE, 16)))
    raise InvalidMechanism(
        f"whole-number rows for a strategy of {residuals.words}",
        why=f"rounded to {MOST_BITS} bits, its error is still {ratio:.6g} times as large",
        instead="let the tables weigh less differently, or publish some of them with a strategy of their own",
    )
