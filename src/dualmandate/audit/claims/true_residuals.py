"""Whether the noise that a release drew is the noise that it states, by the records behind it: inside the wall alone.

Who knows what was counted knows all of the noise, z = y − A·x, and not only what numbers tell of each other. Its law is
stated, so that no draws are needed: numbers that are 0, odd or negative are binomial, sums of |z| have Chernoff's
bounds P(Σ|z| ≥ s) ≤ min_t exp(n·ln E e^(t|z|) − t·s), and the signs of noise so many rows apart agree like coins. Each
is held against the whole release and, apart, against each table, place and size of the true count, because noise that
is right on average may still depend on the data. All tests together fail at most 1 in 1,000 honest releases.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

import numpy as np

from dualmandate.audit.claims.residuals import MOST_LAGS, ONE_IN, WRONG_SIZES, DrawnLaw, MeasuredRows, home_of_rows
from dualmandate.audit.finding import DetectionPower
from dualmandate.audit.options import generator
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.population.wording import percent

SIZES = (0, 1, 10, 100, 1_000)  # where sizes of a true count begin
REACH = 45.0  # Probabilities are written out as far as this many times the mean |z|.
MOST_WRITTEN = 2**20
TURNS = np.concatenate([-np.geomspace(8.0, 0.001, 120), np.geomspace(0.001, 0.5, 120)])  # of Chernoff, in 1/mean |z|
FAR = 2  # mean sizes of the noise, beyond which it is in the tails
POWER_DRAWS, POWER_ROWS = 200, 2**15
TOLD = 3  # failures that are named in a claim


@dataclass(frozen=True)
class TrueNoiseCheck:
    """Which tests failed of all noise of a release, and where."""

    failed: tuple[str, ...]
    tests: int
    rows: int
    power: tuple[DetectionPower, ...] = ()

    @property
    def words(self) -> str:
        told = ", ".join(f"{each.what} in {percent(each.share)}" for each in self.power)
        seen = f"all {self.rows:,} measured numbers less what was counted, in the release and by table, place and size"
        seen += f"; of such releases would be found: {told}" if told else ""
        honest = f"of honest releases at most 1 in {ONE_IN:,} fails a test"
        more = f" and {len(self.failed) - TOLD:,} more" if len(self.failed) > TOLD else ""
        found = f"; found: {'; '.join(self.failed[:TOLD])}{more}" if self.failed else ""
        return f"{seen}; {honest}{found}"


@dataclass(frozen=True, eq=False)
class MagnitudeLaw:
    """The stated law of |z|: its values from 0 on and their probabilities."""

    values: Floats = field(repr=False)
    probabilities: Floats = field(repr=False)

    @classmethod
    def of(cls, noise: DrawnLaw) -> MagnitudeLaw:
        """Written out, of wide noise in steps of several."""
        parameter = float(noise.parameter)
        spread = parameter if noise.own_law == "laplace" else parameter**0.5
        values = np.arange(min(int(REACH * max(spread, 1.0)) + 20, MOST_WRITTEN), dtype=np.float64)
        if noise.own_law is None:
            logs = np.array([noise.log_pmf(int(value)) for value in values])
        else:
            power = 1 if noise.own_law == "laplace" else 2
            logs = -(values**power) / (power * parameter)
        weights = np.exp(logs - logs.max()) * np.where(values == 0, 1.0, 2.0)
        return cls(values, weights / weights.sum())

    @property
    def mean(self) -> float:
        return float(self.values @ self.probabilities)

    def chance(self, where: Booleans) -> float:
        return float(self.probabilities[where].sum())

    @cached_property
    def logarithms(self) -> Floats:
        """ln E e^(t·|z|/mean) for each t of TURNS."""
        grown = TURNS[:, None] * (self.values / self.mean)
        top = grown.max(axis=1, keepdims=True)
        return np.asarray(np.log(np.exp(grown - top) @ self.probabilities) + top[:, 0])


@dataclass(frozen=True)
class Places:
    """The axis of the domain that tells places apart, and what they are called."""

    axis: int
    names: tuple[str, ...] = field(repr=False)


def check_true_noise(rows: MeasuredRows, counted: Integers, *, places: Places | None, key: bytes) -> TrueNoiseCheck:
    """Hold all noise of a release against the stated one; `counted` is what each row counts of the records.

    Half of the stated rate of false alarms is for the release as a whole, the other half for all of its parts.
    """
    laws = [MagnitudeLaw.of(each) for each in rows.noises]
    failed, tests, level = failed_tests(rows, counted, laws, places)
    return TrueNoiseCheck(failed, tests, len(counted), tuple(_power(rows, laws, level, key)))


def failed_tests(
    rows: MeasuredRows, counted: Integers, laws: Sequence[MagnitudeLaw], places: Places | None
) -> tuple[tuple[str, ...], int, float]:
    """Which tests fail, how many there are, and at which level those of the whole release are judged."""
    noise = rows.values.astype(np.int64) - counted
    kinds = np.broadcast_to(rows.kinds, rows.values.shape)
    whole, parted = list[tuple[str, float]](), list(_again(rows, noise))
    for where, groups, names in _groupings(rows, counted, places):
        for kind, law in enumerate(laws):
            own = np.flatnonzero((kinds == kind) & (groups >= 0))
            if len(own):
                found = _tests(noise[own], groups[own], law, len(names))
                told = ((f"{what}, {where}{names[group]}", chance) for what, group, chance in found)
                (parted if where else whole).extend(told)
    level = 1 / (2 * ONE_IN * max(len(whole), 1))
    worst = [each for each in whole if each[1] < level]
    worst += sorted((each for each in parted if each[1] * 2 * ONE_IN * len(parted) < 1), key=lambda each: each[1])
    return tuple(what for what, _ in worst), len(whole) + len(parted), level


def _groupings(
    rows: MeasuredRows, counted: Integers, places: Places | None
) -> Iterator[tuple[str, Integers, tuple[str, ...]]]:
    """What noise must not depend on: how it is called, the group of each row (−1: none), and the names of groups."""
    size = len(counted)
    yield "", np.zeros(size, dtype=np.int64), ("in the whole release",)
    if len(rows.tables) > 1:
        table = np.repeat(np.arange(len(rows.tables)), [len(each) for each in rows.tables])
        yield "in table ", table, tuple(rows.table_name(number) for number in range(len(rows.tables)))
    ends = [str(start) if start < 1 else f"{start:,} to {end - 1:,}" for start, end in pairwise(SIZES)]
    sizes = np.searchsorted(SIZES, np.abs(counted), side="right") - 1
    yield "where the true count is ", sizes, (*ends, f"{SIZES[-1]:,} or more")
    yield "where the true count is ", counted % 2, ("even", "odd")
    if places is not None:
        cuts = [1] * rows.possible.ndim
        cuts[places.axis] = len(places.names)
        yield "in ", home_of_rows(rows, cuts), places.names


def _tests(noise: Integers, groups: Integers, law: MagnitudeLaw, size: int) -> Iterator[tuple[str, int, float]]:
    """What is tested of each group, and the chance of so much at most."""
    from scipy.stats import binom

    many = np.bincount(groups, minlength=size)
    magnitudes = np.abs(noise)
    sums = np.bincount(groups, weights=magnitudes, minlength=size) / law.mean
    turned = np.outer(law.logarithms, many) - np.outer(TURNS, sums)
    bounds = np.exp(np.minimum(turned, 0.0))
    less, more = bounds[TURNS < 0].min(axis=0), bounds[TURNS > 0].min(axis=0)

    def counts(which: Booleans) -> Integers:
        return np.bincount(groups[which], minlength=size)

    def both(found: Integers, of: Integers, share: float) -> Floats:
        low, high = binom.cdf(found, of, share), binom.sf(found - 1, of, share)
        return np.asarray(np.minimum(2 * np.minimum(low, high), 1.0))

    zeros = counts(noise == 0)
    none, odd = law.chance(law.values == 0), law.chance(law.values % 2 == 1)
    far = law.chance(law.values > FAR * law.mean)
    tested = {
        "less noise than stated": less,
        "more noise than stated": more,
        "too many numbers without noise": binom.sf(zeros - 1, many, none),
        "noise that leans to one side": both(counts(noise > 0), many - zeros, 0.5),
        "odd noise too seldom or too often": both(counts(noise % 2 == 1), many, odd),
        "tails too short or too long": both(counts(magnitudes > FAR * law.mean), many, far),
    }
    for what, chances in tested.items():
        yield from ((what, int(group), float(chances[group])) for group in np.flatnonzero(many))


def _again(rows: MeasuredRows, noise: Integers) -> Iterator[tuple[str, float]]:
    """Signs of noise some rows on, and of the same number in the first table and in the one before.

    Of independent symmetric noise they agree like fair coins.
    """
    from scipy.stats import binom

    signs, pairs = np.sign(noise), list[tuple[str, Integers]]()
    for lag in range(1, min(len(signs) // 2, MOST_LAGS) + 1):
        pairs.append((f"noise that comes back {lag} rows on", signs[:-lag] * signs[lag:]))
    for one in range(1, len(rows.tables)):
        for before in sorted({0, one - 1}):
            length = min(len(rows.tables[before]), len(rows.tables[one]))
            first, second = (signs[start : start + length] for start in (rows.starts[before], rows.starts[one]))
            names = rows.table_name(before), rows.table_name(one)
            pairs.append((f"the noise of table {names[0]} again in table {names[1]}", first * second))
    alike = np.array([(products > 0).sum() for _, products in pairs])
    of = np.array([(products != 0).sum() for _, products in pairs])
    chances = 2 * np.minimum(binom.cdf(alike, of, 0.5), binom.sf(alike - 1, of, 0.5))
    yield from ((words, min(float(chance), 1.0)) for (words, _), chance in zip(pairs, chances, strict=True))


def _power(rows: MeasuredRows, laws: Sequence[MagnitudeLaw], level: float, key: bytes) -> Iterator[DetectionPower]:
    """How often the size of the noise of the whole release alone gives wrong noise away."""
    kinds = np.broadcast_to(rows.kinds, rows.values.shape)
    own: Indices = np.arange(len(kinds)) if len(kinds) <= POWER_ROWS else _drawn_rows(len(kinds), key)
    for what, share in WRONG_SIZES.items():
        found = np.zeros(POWER_DRAWS, dtype=np.bool_)
        for kind, law in enumerate(laws):
            many = int((kinds[own] == kind).sum())
            step = max(min(POWER_DRAWS, 2**22 // max(many, 1)), 1)
            for start in range(0, POWER_DRAWS if many else 0, step):
                shape = min(step, POWER_DRAWS - start), many
                drawn = rows.noises[kind].drawn(key, f"true noise, {what}, {kind}, {start}", shape, share)
                sums = np.abs(drawn).sum(axis=1) / law.mean
                turned = many * law.logarithms[:, None] - np.outer(TURNS, sums)
                found[start : start + shape[0]] |= turned.min(axis=0) < np.log(level)
        yield DetectionPower(what, len(own), float(found.mean()))


def _drawn_rows(size: int, key: bytes) -> Indices:
    return np.asarray(generator(key, "true noise: rows").choice(size, POWER_ROWS, replace=False))
