"""Whether the noise that a release drew is the noise that it states, from what it measured alone.

Where one measured number follows from others (a total from its parts, a row measured twice), what they differ by is
noise and nothing else: measured y = A·x + z, and whole numbers W with W·A = 0 give W·y = W·z, whatever the counts x.
The law of z is stated, so that the law of everything computed from W·z is known: it is drawn 9,999 times, and a check
fails where what was measured lies farther out than all of these. Of noise that is drawn as stated that happens once in
10,000 releases, for each check [Bar63]. Another check needs no redundancy: a number with noise is 0 with the largest
probability of the noise at most, whatever was counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.options import generator
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.population.wording import percent

DRAWS = 9_999  # A check fails beyond all of them: by chance once in 10,000.
BATCH = 1_111  # draws at once; as many again say beforehand how large the noise is
MOST_ROWS = 1_024  # So many rows are judged at most: of larger releases those of a region of the domain.
MOST_COUNTED = 2**26  # cells that are counted in all to find what follows from what
FEWEST_ROWS = 32  # Where no more could be judged within that, none are.
FRESH = 16  # files of random numbers beyond those that tell which rows follow from others: these confirm it
DIVISORS = range(1, 13)  # of the coefficients with which a row follows from others
NEAR, RANK = 1e-6, 1e-9
DIGITS = 9  # after the point: what is equal but for rounding is equal
CHECKS = (
    "less noise than stated",
    "more noise than stated",
    "noise that is common to all rows",
    "noise that comes back some rows on",
    "too few odd differences",
    "too many differences that are multiples of three",
    "too many differences that are exactly 0",
    "noise whose tails are too short",
    "noise whose tails are too long",
)
WHOLE, EMPTY = "numbers that are not whole", "too many numbers that are exactly 0"
ONE_IN = 1_000  # of honest releases at most fail a check: ten checks, each once in 10,000
assert (len(CHECKS) + 1) * ONE_IN <= DRAWS + 1


class DrawnLaw(Protocol):
    """The stated noise of one kind of row."""

    @property
    def log_pmf(self) -> Callable[[int], float]: ...

    def drawn(self, key: bytes, purpose: str, shape: tuple[int, int], /) -> Floats: ...


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """All rows that a release measured: their numbers, the stated noise of each, and what they count."""

    values: NDArray[Any] = field(repr=False)  # shape (rows,)
    kinds: Integers = field(repr=False)  # of each row, a place in `noises`
    noises: Sequence[DrawnLaw]
    count: Callable[[Integers], Integers] = field(repr=False)  # from a histogram of the domain, linear
    possible: Booleans = field(repr=False)  # in the shape of the domain


@dataclass(frozen=True)
class NoiseCheck:
    """Which checks of the noise that was drawn failed, and how much could be seen."""

    failed: tuple[str, ...]
    checks: int
    rows: int
    judged: int  # rows among which it was looked for what follows from what
    redundant: int | None  # of these, rows that follow from others; None where that was not asked
    power: float | None  # how often noise of half the size is found with so many

    @property
    def words(self) -> str:
        looked = f"{self.judged:,} of {self.rows:,} that were looked at"
        among = f" among {self.rows:,}" if self.judged == self.rows else f" among {looked}"
        if self.redundant is None:
            seen = "noise is drawn in whole numbers, so that nothing else was looked at"
        elif not self.redundant:
            seen = f"no measured number{among} follows from others, so that the size of the noise CANNOT BE SEEN"
        else:
            follow = "number follows" if self.redundant == 1 else "numbers follow"
            half = (
                ""
                if self.power is None
                else f"; noise of half the size would be found in {percent(self.power)} of such releases"
            )
            seen = f"{self.redundant:,} measured {follow} from others{among}{half}"
        honest = f"of honest releases at most 1 in {ONE_IN:,} fails a check"
        found = "" if not self.failed else f"; found: {', '.join(self.failed)}, which may TELL more than is claimed"
        return f"{seen}; {honest}{found}"


def check_noise(rows: MeasuredRows, key: bytes) -> NoiseCheck:
    """Hold what a release measured against the noise that it states."""
    size = len(rows.values)
    if not _are_whole(rows.values):
        return NoiseCheck((WHOLE,), 1, size, size, None, None)
    failed = [EMPTY] if _too_many_zeros(rows) else []
    judged, region = judged_rows(rows, key)
    found = relations(rows, judged, region, key)
    if not len(found):
        return NoiseCheck(tuple(failed), 2, size, len(judged), 0, None)
    residuals = StatedResiduals.of(found, rows, judged, key)
    stated, own = residuals.stated(), residuals.of_values(rows.values[judged].astype(np.int64))
    failed += [name for name, beyond in zip(CHECKS, own > stated.max(axis=0), strict=True) if beyond]
    power = float((stated[:, 0] / 4 > stated[:, 0].max()).mean())  # of noise of half the size
    return NoiseCheck(tuple(failed), len(CHECKS) + 2, size, len(judged), len(found), power)


def _are_whole(values: NDArray[Any]) -> bool:
    return values.dtype.kind in "biu" or bool(np.all(np.isfinite(values) & (values == np.rint(values))))


def _too_many_zeros(rows: MeasuredRows) -> bool:
    """Whether more numbers are 0 than noise lets be so, whatever was counted; kind by kind."""
    from scipy.stats import binom

    kinds = np.broadcast_to(rows.kinds, rows.values.shape)
    sizes = np.bincount(kinds, minlength=len(rows.noises))
    zeros = np.bincount(kinds[rows.values == 0], minlength=len(rows.noises))
    used = np.flatnonzero(sizes)
    largest = [min(math.exp(rows.noises[int(kind)].log_pmf(0)), 1.0) for kind in used]
    chances = binom.sf(zeros[used] - 1, sizes[used], largest)
    return bool(chances.min(initial=1.0) < 1 / ((DRAWS + 1) * max(len(used), 1)))


def judged_rows(rows: MeasuredRows, key: bytes) -> tuple[Indices, Booleans]:
    """All rows, or of a large release those that count nothing outside of a region: its longest axes are halved."""
    region, random = rows.possible, generator(key, "noise: region")
    most = min(MOST_ROWS, MOST_COUNTED // region.size)
    if most < FEWEST_ROWS:
        return np.zeros(0, dtype=np.intp), region
    found = np.arange(len(rows.values))
    levels = [np.arange(size) for size in region.shape]
    while len(found) > most:
        axis = max(range(len(levels)), key=lambda each: len(levels[each]))
        if len(levels[axis]) == 1:
            return found[:most], region
        start = int(random.integers(2)) * (len(levels[axis]) // 2)
        levels[axis] = levels[axis][start : start + (len(levels[axis]) + 1) // 2]
        region = np.zeros_like(rows.possible)
        region[np.ix_(*levels)] = rows.possible[np.ix_(*levels)]
        marks = random.integers(1, 2**40, region.shape)
        inside = rows.count(np.where(region, marks, 0))
        outside = rows.count(np.where(rows.possible & ~region, marks, 0))
        found = np.flatnonzero((outside == 0) & (inside != 0))
    return found, region


def relations(rows: MeasuredRows, judged: Indices, region: Booleans, key: bytes) -> Integers:
    """Whole numbers W with W·A = 0, one row a measured number that follows from others; shape (relations, judged).

    Which rows follow is seen on files of random numbers; that they do is confirmed in whole numbers on more of these.
    """
    from scipy.linalg import qr, solve_triangular

    if not len(judged):
        return np.zeros((0, 0), dtype=np.int64)
    random = generator(key, "noise: relations")
    files = min(len(judged), int(region.sum())) + FRESH
    seen = np.empty((files, len(judged)), dtype=np.int64)
    for each in seen:
        each[:] = rows.count(np.where(region, random.integers(-8, 8, region.shape), 0))[judged]
    norms = np.sqrt(np.square(seen, dtype=np.float64).sum(axis=0))
    scales = 1 / np.where(norms > 0, norms, 1.0) ** 2  # small parts first: totals follow from them
    triangle, order = qr(seen * scales, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > RANK * diagonal[0]).sum()) if norms.any() else 0
    free, follow = order[:rank], order[rank:]
    shares = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:]) if rank else np.zeros((0, len(follow)))
    shares *= scales[free][:, None] / scales[follow]
    found = np.zeros((len(follow), len(judged)), dtype=np.int64)
    for place, row in enumerate(follow):
        column = shares[:, place]
        times = next((each for each in DIVISORS if np.all(np.abs(each * column - np.rint(each * column)) < NEAR)), 0)
        found[place, free] = -np.rint(times * column)
        found[place, row] = times
    sound = (found.any(axis=1)) & (np.abs(found).max(axis=1, initial=0) < 2**20)
    found = found[sound]
    return np.asarray(found[~(found @ seen.T).any(axis=1)])


@dataclass(frozen=True, eq=False)
class StatedResiduals:
    """What is computed from W·z, with the spread that stated noise gives it."""

    relations: Floats  # W, shape (relations, rows)
    whitening: Floats  # W·z ↦ numbers that are uncorrelated and of variance 1
    back: Floats  # these ↦ what they tell of the noise of each row, in its standard deviations
    apart: Floats  # the standard deviation of each of W·z
    common: Floats  # the direction of noise that all rows have in common
    drawn: Callable[[str, int], Floats]
    lags: tuple[Floats, Floats]  # what products of noise so many rows apart are on average, and their spread

    @classmethod
    def of(cls, found: Integers, rows: MeasuredRows, judged: Indices, key: bytes) -> StatedResiduals:
        kinds = np.broadcast_to(rows.kinds, rows.values.shape)[judged]

        def drawn(purpose: str, draws: int) -> Floats:
            noise = np.empty((draws, len(kinds)))
            for kind in np.unique(kinds):
                at = np.flatnonzero(kinds == kind)
                noise[:, at] = rows.noises[int(kind)].drawn(key, f"residuals, {purpose}, {kind}", (draws, len(at)))
            return noise

        before = drawn("spread", BATCH)
        spread = np.ones(len(kinds))
        for kind in np.unique(kinds):
            spread[kinds == kind] = max(float(before[:, kinds == kind].std()), 1e-9)
        apart = np.sqrt(np.square(found * spread).sum(axis=1))
        scaled = found * spread / apart[:, None]
        sizes, directions = np.linalg.eigh(scaled @ scaled.T)
        turned = directions / np.sqrt(np.maximum(sizes, RANK))  # never divided by what is only rounding
        whitening, back = turned / apart[:, None], turned.T @ scaled
        common = whitening.T @ found.sum(axis=1)
        length = float(np.linalg.norm(common))
        common = common / length if length > NEAR else np.zeros_like(common)
        plain = (np.zeros(1), np.ones(1))
        first = cls(found.astype(np.float64), whitening, back, apart, common, drawn, plain)
        products = first._products(before @ first.relations.T @ whitening)
        return replace(first, lags=(products.mean(axis=0), np.maximum(products.std(axis=0), NEAR)))

    def stated(self) -> Floats:
        """What the stated noise gives, draw by draw; shape (draws, checks)."""
        draws = (self.drawn(f"draws {batch}", BATCH) for batch in range(DRAWS // BATCH))
        return np.concatenate([self.statistics(each @ self.relations.T) for each in draws])

    def of_values(self, values: Integers) -> Floats:
        """The same of measured numbers, exactly but for multiples of 2⁶⁴; shape (checks,)."""
        own = self.relations.astype(np.int64) @ values
        return np.asarray(self.statistics(own.astype(np.float64)[None, :])[0])

    def statistics(self, residuals: Floats) -> Floats:
        """One number a check and a draw; the larger, the more suspicious. Shape (draws, checks)."""
        white = residuals @ self.whitening
        size = np.maximum(np.square(white).sum(axis=1), 1e-9)
        apart = residuals / self.apart
        tails = (apart**4).sum(axis=1) / np.maximum(np.square(apart).sum(axis=1), 1e-9) ** 2
        mean, spread = self.lags
        repeats = (np.abs(self._products(white) - mean) / spread).max(axis=1)
        columns = (
            -size,
            size,
            (white @ self.common) ** 2 / size,
            repeats,
            -(residuals % 2 != 0).sum(axis=1),
            -(residuals % 3 != 0).sum(axis=1),
            (residuals == 0).sum(axis=1),
            -tails,
            tails,
        )
        return np.asarray(np.round(np.stack(columns, axis=1).astype(np.float64), DIGITS), dtype=np.float64)

    def _products(self, white: Floats) -> Floats:
        """The product of the noise of rows so many rows apart, half of all at most, as a share of its size."""
        noise = white @ self.back
        rows = noise.shape[1]
        power = np.square(np.abs(np.fft.rfft(noise, 2 * rows, axis=1)))
        products = np.fft.irfft(power, 2 * rows, axis=1)[:, 1 : rows // 2 + 1]
        size = np.maximum(np.square(white).sum(axis=1), 1e-9)
        return np.asarray(products / size[:, None])
