"""Whether the noise that a release drew is the noise that it states, from what it measured alone.

Where one measured number follows from others (a total from its parts, a row measured twice), what they differ by is
noise and nothing else: measured y = A·x + z, and whole numbers W with W·A = 0 give W·y = W·z, whatever the counts x.
The law of z is stated, so that the law of everything computed from W·z is known: it is drawn 11,999 times, and a check
fails where what was measured lies farther out than all of these. Of noise that is drawn as stated that happens once in
12,000 releases, for each check [Bar63]. Two more checks need no redundancy: a number with noise is 0 with the largest
probability of the noise at most, and equals that of another table with at most Σ p_k·q_k, whatever was counted.

How much is seen depends on how many numbers follow from others. So noise that is wrong in known ways is drawn too, for
all of these relations and for fewer: how often it fails a check is the power of the checks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.checks import FEWEST, Law, RowNoise, shared_noise
from dualmandate.audit.finding import DetectionPower
from dualmandate.audit.options import generator
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.population.wording import percent

DRAWS = 11_999  # A check fails beyond all of them: by chance once in 12,000.
BATCH = 923  # draws at once; as many again say beforehand how large the noise is, and once more what would be found
MOST_ROWS = 1_024  # So many rows are judged together at most: of larger releases those of a region of the domain.
MOST_REGIONS = 4  # Of the regions of a large release so many are judged, beside the rows that span several.
MOST_COUNTED = 2**28  # cells that are counted in all to find what follows from what
FEWEST_ROWS = 32  # Where no more could be judged within that, none are.
FRESH = 16  # files of random numbers beyond those that tell which rows follow from others: these confirm it
DIVISORS = range(1, 13)  # of the coefficients with which a row follows from others
NEAR, RANK = 1e-6, 1e-9
DIGITS = 9  # after the point: what is equal but for rounding is equal
MOST_LAGS = 512  # rows from one to another whose noise is held against it
MARKS = 2**16  # numbers that rows are told apart by
SEED = 71  # of these where nothing secret rests on them
CHECKS = (
    "less noise than stated",
    "more noise than stated",
    "noise that is common to all rows",
    "noise that comes back some rows on",
    "noise that begins anew in every table",
    "too few odd differences",
    "too many differences that are multiples of three",
    "too many differences that are exactly 0",
    "noise whose tails are too short",
    "noise whose tails are too long",
)
WHOLE, EMPTY = "numbers that are not whole", "too many numbers that are exactly 0"
ALIKE = "numbers of two tables that are too much alike for noise of their own"
ONE_IN = 1_000  # of honest releases at most fail a check: twelve checks, each once in 12,000
assert (len(CHECKS) + 2) * ONE_IN <= DRAWS + 1
CURVE = (16, 64, 256, 1_024)  # so many relations, where there are more, are tried apart
WHOLE_SIZE = Fraction(1)
WRONG_SIZES = {
    "0.8 of the noise": Fraction(4, 5),
    "half of the noise": Fraction(1, 2),
}
Draws = Callable[[str, Fraction], list[NDArray[np.float64]]]  # noise of all parts for a purpose, of a share of its size


class DrawnLaw(Protocol):
    """The stated noise of one kind of row."""

    @property
    def own_law(self) -> Law | None: ...

    @property
    def parameter(self) -> Fraction: ...

    @property
    def log_pmf(self) -> Callable[[int], float]: ...

    def drawn(self, key: bytes, purpose: str, shape: tuple[int, int], share: Fraction = ..., /) -> Floats: ...


@dataclass(frozen=True, eq=False)
class MeasuredRows:
    """All rows that a release measured: their numbers, the stated noise of each, and what they count."""

    values: NDArray[Any] = field(repr=False)  # shape (rows,)
    kinds: Integers = field(repr=False)  # of each row, a place in `noises`
    noises: Sequence[DrawnLaw]
    count: Callable[[Integers], Integers] = field(repr=False)  # from a histogram of the domain, linear
    possible: Booleans = field(repr=False)  # in the shape of the domain
    starts: tuple[int, ...] = (0,)  # the first row of each table
    names: tuple[str, ...] = ()  # of the tables, where they have any

    def table_name(self, table: int) -> str:
        """What a table is called, or its number."""
        return f"'{self.names[table]}'" if self.names else str(table + 1)

    @cached_property
    def tables(self) -> tuple[range, ...]:
        """The rows of each table."""
        ends = (*self.starts[1:], len(self.values))
        return tuple(range(start, end) for start, end in zip(self.starts, ends, strict=True))

    @cached_property
    def places(self) -> Indices:
        """The number of each row within its table; shape (rows,)."""
        return np.concatenate([np.arange(len(table)) for table in self.tables])


@dataclass(frozen=True)
class NoiseCheck:
    """Which checks of the noise that was drawn failed, and how much could be seen."""

    failed: tuple[str, ...]
    checks: int
    rows: int
    judged: int  # rows among which it was looked for what follows from what
    redundant: int | None  # of these, rows that follow from others; None where that was not asked
    power: tuple[DetectionPower, ...] = ()  # how often wrong noise is found with so many
    regions: tuple[int, int] = (1, 1)  # that were judged, of how many

    @property
    def words(self) -> str:
        looked = f"{self.judged:,} of {self.rows:,} that were looked at"
        among = f" among {self.rows:,}" if self.judged == self.rows else f" among {looked}"
        if self.regions[0] < self.regions[1]:
            among += f", in {self.regions[0]:,} of {self.regions[1]:,} regions of the domain"
        if self.redundant is None:
            seen = "noise is drawn in whole numbers, so that nothing else was looked at"
        elif not self.redundant:
            seen = f"no measured number{among} follows from others, so that the size of the noise CANNOT BE SEEN"
        else:
            follow = "number follows" if self.redundant == 1 else "numbers follow"
            told = ", ".join(
                f"{each.what} in {percent(each.share)}" for each in self.power if each.rows == self.redundant
            )
            seen = f"{self.redundant:,} measured {follow} from others{among}"
            seen += f"; of such releases would be found: {told}" if told else ""
        honest = f"of honest releases at most 1 in {ONE_IN:,} fails a check"
        found = "" if not self.failed else f"; found: {', '.join(self.failed)}, which may TELL more than is claimed"
        return f"{seen}; {honest}{found}"


def check_noise(rows: MeasuredRows, key: bytes) -> NoiseCheck:
    """Hold what a release measured against the noise that it states."""
    size = len(rows.values)
    if not _are_whole(rows.values):
        return NoiseCheck((WHOLE,), 1, size, size, None)
    failed = [EMPTY] if _too_many_zeros(rows) else []
    failed += [ALIKE] if _too_much_alike(rows) else []
    parts, regions = judged_parts(rows, key)
    judged = sum(map(len, parts))
    test = NoiseTest.of(rows, parts, key)
    if not test.redundant:
        return NoiseCheck(tuple(failed), len(CHECKS) + 2, size, judged, 0, (), regions)
    failed += test.failed(rows.values)
    return NoiseCheck(tuple(failed), len(CHECKS) + 2, size, judged, test.redundant, test.power, regions)


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


def _too_much_alike(rows: MeasuredRows) -> bool:
    """Whether a table and the first, or the one before it, have numbers too much alike for independent noise.

    Noise that begins anew in every table leaves exact differences: where counts are equal, numbers are.
    """
    kinds = np.broadcast_to(rows.kinds, rows.values.shape)
    values = rows.values.astype(np.int64)
    pairs = {(before, each) for each in range(1, len(rows.tables)) for before in (0, each - 1)}
    chances = list[float]()
    for one, other in sorted(pairs):
        length = min(len(rows.tables[one]), len(rows.tables[other]))
        first, second = (np.arange(rows.starts[each], rows.starts[each] + length) for each in (one, other))
        codes, kind = np.unique(kinds[first] * len(rows.noises) + kinds[second], return_inverse=True)
        noises = [_row_noises(rows, int(code)) for code in codes]
        known = [each for each in noises if each is not None]
        if length >= FEWEST and len(known) == len(noises):
            found = shared_noise(values[first], values[second], noises=tuple(known), kinds=kind)
            chances.append(found.chance)
    return min(chances, default=1.0) < 1 / ((DRAWS + 1) * max(len(chances), 1))


def _row_noises(rows: MeasuredRows, code: int) -> tuple[RowNoise, RowNoise] | None:
    one, other = (rows.noises[kind] for kind in divmod(code, len(rows.noises)))
    if one.own_law is None or other.own_law is None:
        return None
    return RowNoise(one.own_law, one.parameter), RowNoise(other.own_law, other.parameter)


def judged_parts(rows: MeasuredRows, key: bytes) -> tuple[list[Indices], tuple[int, int]]:
    """All rows; or of a large release those of some regions of the domain, and apart those that span several.

    Also says how many regions there are. A region holds the rows that count nothing outside of it: one place, say.
    """
    most = min(MOST_ROWS, MOST_COUNTED // rows.possible.size)
    if most < FEWEST_ROWS:
        return [], (0, 1)
    if len(rows.values) <= most:
        return [np.arange(len(rows.values))], (1, 1)
    random = generator(key, "noise: region")
    cuts = [1] * rows.possible.ndim
    while True:
        home, weight = home_of_rows(rows, cuts, random), rows.count(rows.possible.astype(np.int64))
        chunks = [math.ceil(size / cut) for size, cut in zip(rows.possible.shape, cuts, strict=True)]
        inside = np.unique(home[home >= 0], return_counts=True)
        if max(chunks) == 1 or inside[1].max(initial=0) <= most:
            break
        cuts[int(np.argmax(chunks))] *= 2  # the longest axis first: totals over the others stay together
    regions = inside[0]
    others = random.permutation(regions[1:])[: MOST_REGIONS - 1]  # the first has the rows that tables begin with
    parts = [np.flatnonzero(home == each)[:most] for each in (*regions[:1], *np.sort(others))]
    across = np.flatnonzero(home < 0)
    if len(across):
        parts.append(np.sort(across[np.argsort(-weight[across], kind="stable")[:most]]))
    return parts, (min(len(regions), MOST_REGIONS), len(regions))


def home_of_rows(rows: MeasuredRows, cuts: Sequence[int], random: np.random.Generator | None = None) -> Integers:
    """The region in which everything lies that a row counts, −1 where there are several or none; shape (rows,).

    Each axis is cut into so many parts. Regions are told apart by random labels: a row of one region counts all of its
    marks under the same.
    """
    source = np.random.default_rng(SEED) if random is None else random
    region = np.zeros(rows.possible.shape, dtype=np.int64)
    for axis, (size, cut) in enumerate(zip(rows.possible.shape, cuts, strict=True)):
        numbers = np.arange(size) * min(cut, size) // size
        region = region * min(cut, size) + numbers.reshape([-1 if each == axis else 1 for each in range(region.ndim)])
    labels = source.integers(1, MARKS, int(region.max()) + 1)
    marks = np.where(rows.possible, source.integers(1, MARKS, region.shape), 0)
    counted, numbered, labeled = (rows.count(marks * by) for by in (np.ones_like(region), region, labels[region]))
    some = np.where(counted != 0, counted, 1)
    found = numbered // some
    sound = (counted != 0) & (found * some == numbered) & (found >= 0) & (found < len(labels))
    sound &= labels[np.where(sound, found, 0)] * some == labeled
    return np.where(sound, found, -1)


def relations(rows: MeasuredRows, parts: Sequence[Indices], key: bytes) -> list[Integers]:
    """Whole numbers W with W·A = 0, one row a measured number that follows from others in its part.

    Of shape (relations, rows of the part), part by part. Which rows follow is seen on files of random numbers, the same
    for all parts; that they do is confirmed in whole numbers on more of these.
    """
    random = generator(key, "noise: relations")
    inside = np.flatnonzero(rows.possible)
    judged = np.concatenate([np.zeros(0, dtype=np.intp), *parts])
    files = min(max(map(len, parts), default=0), len(inside)) + FRESH
    seen = np.empty((files, len(judged)), dtype=np.int64)
    histogram = np.zeros(rows.possible.shape, dtype=np.int64)
    for each in seen:
        histogram.flat[inside] = random.integers(-8, 8, len(inside))
        each[:] = rows.count(histogram)[judged]
    ends = np.cumsum([len(part) for part in parts])
    return [_relations(seen[:, end - len(part) : end]) for part, end in zip(parts, ends, strict=True)]


def _relations(seen: Integers) -> Integers:
    from scipy.linalg import qr, solve_triangular

    norms = np.sqrt(np.square(seen, dtype=np.float64).sum(axis=0))
    scales = 1 / np.where(norms > 0, norms, 1.0) ** 2  # small parts first: totals follow from them
    triangle, order = qr(seen * scales, mode="r", pivoting=True)
    diagonal = np.abs(np.diag(triangle))
    rank = int((diagonal > RANK * diagonal[0]).sum()) if norms.any() else 0
    free, follow = order[:rank], order[rank:]
    shares = solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:]) if rank else np.zeros((0, len(follow)))
    shares *= scales[free][:, None] / scales[follow]
    found = np.zeros((len(follow), seen.shape[1]), dtype=np.int64)
    for place, row in enumerate(follow):
        column = shares[:, place]
        times = next((each for each in DIVISORS if np.all(np.abs(each * column - np.rint(each * column)) < NEAR)), 0)
        found[place, free] = -np.rint(times * column)
        found[place, row] = times
    sound = (found.any(axis=1)) & (np.abs(found).max(axis=1, initial=0) < 2**20)
    found = found[sound]
    return np.asarray(found[~(found @ seen.T).any(axis=1)])


@dataclass(frozen=True, eq=False)
class RelatedRows:
    """Rows that are judged together, W, and what is computed from W·z, with the spread that stated noise gives it."""

    rows: Indices  # of the release
    places: Indices  # of each row in its table
    spread: Floats  # the standard deviation of the noise of each row
    relations: Integers  # W, shape (relations, rows)

    @cached_property
    def apart(self) -> Floats:
        """The standard deviation of each of W·z."""
        return np.asarray(np.sqrt(np.square(self.relations * self.spread).sum(axis=1)))

    @cached_property
    def _turned(self) -> Floats:
        scaled = self.relations * self.spread / self.apart[:, None]
        sizes, directions = np.linalg.eigh(scaled @ scaled.T)
        return np.asarray(directions / np.sqrt(np.maximum(sizes, RANK)))  # never divided by what is only rounding

    @cached_property
    def whitening(self) -> Floats:
        """W·z ↦ numbers that are uncorrelated and of variance 1."""
        return self._turned / self.apart[:, None]

    @cached_property
    def back(self) -> Floats:
        """These ↦ what they tell of the noise of each row, in its standard deviations."""
        return np.asarray(self._turned.T @ (self.relations * self.spread / self.apart[:, None]))

    @cached_property
    def begun_anew(self) -> Floats:
        """M, such that whiteᵀ·M·white is how much likelier it is that noise begins anew in every table: 1 − Σ⁻¹.

        Σ is what is computed from W·z where rows with the same number in their tables share their noise.
        """
        _, numbers = np.unique(self.places, return_inverse=True)
        shared = np.zeros((len(self.back), int(numbers.max(initial=-1)) + 1))
        np.add.at(shared.T, numbers, self.back.T)
        sizes, directions = np.linalg.eigh(shared @ shared.T)
        return np.asarray((directions * (1 - 1 / np.maximum(sizes, NEAR))) @ directions.T)

    @cached_property
    def common(self) -> Floats:
        """The direction of noise that all rows have in common, before its length is taken out."""
        return np.asarray(self.whitening.T @ self.relations.sum(axis=1))

    @cached_property
    def columns(self) -> Floats:
        """Wᵀ."""
        return self.relations.T.astype(np.float64)

    def sums(self, residuals: Floats, *, lagged: bool = True) -> tuple[Floats, Floats]:
        """What adds up over parts, from W·z draw by draw: numbers of shape (8, draws), products of (draws, lags)."""
        white = residuals @ self.whitening
        apart = residuals / self.apart
        found = (
            np.square(white).sum(axis=1),
            white @ self.common,
            ((white @ self.begun_anew) * white).sum(axis=1),
            (np.rint(residuals / 2) * 2 != residuals).sum(axis=1),
            (np.rint(residuals / 3) * 3 != residuals).sum(axis=1),
            (residuals == 0).sum(axis=1),
            (apart**4).sum(axis=1),
            np.square(apart).sum(axis=1),
        )
        products = _products(white @ self.back) if lagged else np.zeros((len(white), 1))
        return np.stack(found).astype(np.float64), products


def _products(noise: Floats) -> Floats:
    """The product of the noise of rows so many rows apart, half of all at most; shape (draws, lags)."""
    from scipy import fft

    rows = noise.shape[1]
    lags = min(rows // 2, MOST_LAGS)
    length = fft.next_fast_len(rows + lags + 1, real=True)
    power = np.square(np.abs(fft.rfft(noise, length, axis=1)))
    return np.asarray(fft.irfft(power, length, axis=1)[:, 1 : lags + 1])


def _added(products: Sequence[Floats]) -> Floats:
    """Products of all parts, lag by lag; a part with fewer rows has fewer."""
    found = np.zeros((len(products[0]), max(each.shape[1] for each in products)))
    for each in products:
        found[:, : each.shape[1]] += each
    return found


@dataclass(frozen=True, eq=False)
class NoiseTest:
    """What the stated noise gives all checks, by draws: whatever lies beyond all of these fails one."""

    related: tuple[RelatedRows, ...]
    draws: Draws = field(repr=False)
    lagged: bool = True  # whether noise that comes back is looked for

    @classmethod
    def of(cls, rows: MeasuredRows, parts: Sequence[Indices], key: bytes) -> NoiseTest:
        """The checks of the rows of some parts that follow from others there."""
        found = [(w, part) for w, part in zip(relations(rows, parts, key), parts, strict=True) if len(w)]
        kinds = [np.broadcast_to(rows.kinds, rows.values.shape)[part] for _, part in found]

        def drawn(purpose: str, share: Fraction) -> list[Floats]:
            noise = [np.empty((BATCH, len(own))) for own in kinds]
            for number, own in enumerate(kinds):
                for kind in np.unique(own):
                    at, words = np.flatnonzero(own == kind), f"residuals, {purpose}, {number}, {kind}"
                    noise[number][:, at] = rows.noises[int(kind)].drawn(key, words, (BATCH, len(at)), share)
            return noise

        spreads = [_spread(noise, own) for noise, own in zip(drawn("spread", WHOLE_SIZE), kinds, strict=True)]
        parted = zip(found, spreads, strict=True)
        return cls(tuple(RelatedRows(part, rows.places[part], spread, w) for (w, part), spread in parted), drawn)

    @property
    def redundant(self) -> int:
        """How many rows follow from others."""
        return sum(len(each.relations) for each in self.related)

    @cached_property
    def smaller(self) -> tuple[NoiseTest, ...]:
        """The same with fewer relations, spread over all parts."""
        found = []
        for size in (each for each in CURVE if each < self.redundant):
            kept, start, related = np.linspace(0, self.redundant - 1, size).astype(np.intp), 0, list[RelatedRows]()
            for each in self.related:
                end = start + len(each.relations)
                own = kept[(kept >= start) & (kept < end)] - start
                related.append(replace(each, relations=each.relations[own]))
                start = end
            found.append(NoiseTest(tuple(related), self.draws, lagged=False))
        return tuple(found)

    @cached_property
    def stated(self) -> Floats:
        """The farthest that the stated noise goes in each check; shape (checks,)."""
        return self._limits[-1]

    @cached_property
    def _limits(self) -> list[Floats]:
        """The same of the smaller tests, then of this one, by the same draws."""
        tests = (*self.smaller, self)
        found = [np.full(len(CHECKS), -np.inf) for _ in tests]
        for batch in range(DRAWS // BATCH):
            noise = self.draws(f"draws {batch}", WHOLE_SIZE)
            for limit, test in zip(found, tests, strict=True):
                np.maximum(limit, test.of_noise(noise).max(axis=0), out=limit)
        return found

    @cached_property
    def lags(self) -> tuple[Floats, Floats]:
        """What products of noise so many rows apart are on average, and their spread."""
        if not self.lagged:
            return np.zeros(1), np.ones(1)
        sums = [z @ each.columns for z, each in zip(self.draws("spread", WHOLE_SIZE), self.related, strict=True)]
        parted = [each.sums(own) for each, own in zip(self.related, sums, strict=True)]
        size = np.maximum(np.sum([numbers[0] for numbers, _ in parted], axis=0), 1e-9)
        products = _added([own for _, own in parted]) / size[:, None]
        return products.mean(axis=0), np.maximum(products.std(axis=0), NEAR)

    def failed(self, values: NDArray[Any]) -> list[str]:
        """The checks that measured numbers fail, exactly but for multiples of 2⁶⁴."""
        whole = values.astype(np.int64)
        own = [(each.relations @ whole[each.rows])[None, :].astype(np.float64) for each in self.related]
        beyond = self.statistics(own)[0] > self.stated
        return [name for name, failed in zip(CHECKS, beyond, strict=True) if failed]

    def of_noise(self, noise: Sequence[Floats]) -> Floats:
        """The checks of noise of all parts, draw by draw; shape (draws, checks)."""
        return self.statistics([z @ each.columns for z, each in zip(noise, self.related, strict=True)])

    def statistics(self, residuals: Sequence[Floats]) -> Floats:
        """One number a check and a draw, from W·z of all parts; the larger, the more suspicious."""
        parted = [each.sums(own, lagged=self.lagged) for each, own in zip(self.related, residuals, strict=True)]
        numbers = np.sum(np.array([each for each, _ in parted]), axis=0)
        size, common, anew, odd, thirds, none, fourth, second = numbers
        size, second = np.maximum(size, 1e-9), np.maximum(second, 1e-9)
        length = math.sqrt(sum(float(np.square(each.common).sum()) for each in self.related))
        tails, (mean, spread) = fourth / second**2, self.lags
        products = _added([own for _, own in parted]) / size[:, None]
        columns = (
            -size,
            size,
            common**2 / size if length > NEAR else np.zeros_like(size),
            (np.abs(products - mean) / spread).max(axis=1),
            anew,
            -odd,
            -thirds,
            none,
            -tails,
            tails,
        )
        return np.asarray(np.round(np.stack(columns, axis=1), DIGITS), dtype=np.float64)

    @cached_property
    def power(self) -> tuple[DetectionPower, ...]:
        """How often noise that is wrong in known ways fails a check, with these relations and with fewer."""
        tests, wrong = list(zip((*self.smaller, self), self._limits, strict=True)), list(self._wrong_noises())
        return tuple(
            DetectionPower(what, test.redundant, float((test.of_noise(noise) > limit).any(axis=1).mean()))
            for what, noise in wrong
            for test, limit in tests
        )

    def _wrong_noises(self) -> Iterator[tuple[str, list[Floats]]]:
        for what, share in WRONG_SIZES.items():
            yield what, self.draws(what, share)
        honest, half = self.draws("wrong", WHOLE_SIZE), self.draws("half", Fraction(1, 2))
        yield "one draw for all numbers", [np.repeat(each[:, :1], each.shape[1], axis=1) for each in honest]
        if any(len(np.unique(each.places)) < len(each.places) for each in self.related):
            parted = zip(honest, self.related, strict=True)
            yield "the same draws in every table", [_begun_anew(noise, each.places) for noise, each in parted]
        yield "even numbers alone", [2 * each for each in half]


def _spread(noise: Floats, kinds: Integers) -> Floats:
    """The standard deviation of the noise of each row, by draws, alike for rows of one kind."""
    spread = np.ones(len(kinds))
    for kind in np.unique(kinds):
        spread[kinds == kind] = max(float(noise[:, kinds == kind].std()), 1e-9)
    return spread


def _begun_anew(noise: Floats, places: Indices) -> Floats:
    """The noise of the first row with the same number in its table, for each row."""
    _, first, numbers = np.unique(places, return_index=True, return_inverse=True)
    return noise[:, first[numbers]]
