"""The noise that may be published: exact draws from laws with rational parameters.

A sampler is a description. Its draws are whole numbers modulo 2⁶⁴, a function of a key and of the cell's place: the sum
of a count and its noise, taken modulo 2⁶⁴ as 64-bit integers do, is what the exact sum is after forgetting multiples of
2⁶⁴, so that the promise holds without a remainder. A run of cells is drawn the fast way, from tables, and the few whose
words leave it open the slow way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from dualmandate.errors import InvalidMechanism, InvalidRequest
from dualmandate.mechanism.noise.laws import (
    BroadNormal,
    GeometricDigit,
    Law,
    NoiseTable,
    Normal,
    StairPlace,
    ThresholdCurves,
    TwoSided,
    resolve,
    table_of,
)
from dualmandate.mechanism.noise.words import NoiseKey, Words, lane, word_buffers, words_at, words_of_cell
from dualmandate.population.arrays import Integers

BLOCK_CELLS = 2**15  # words, digits and results of a block stay in the processor's own memory
CELL_LIMIT = 2**63
LARGEST_SCALE = 2**40  # noise reaches 2⁶³ with a probability below exp(−2²²)
LARGEST_VARIANCE = 2**60  # a standard deviation of 2³⁰: 64 bits tell its values apart by far
LARGEST_TABLE_VARIANCE = 2**22  # 37,000 thresholds, one a value; beyond, curves pass through them
LARGEST_STEP = 2**16
FIRST_TABLE_SCALE = 64  # up to here one table holds every value that one word can mean; beyond, digits follow
DIGIT_BITS = 10
LARGEST_TERM_BITS = 1024  # of a numerator or denominator


@dataclass(frozen=True)
class Level:
    """One digit of a draw, decided by one word: its law for numbers from 0 on, and for those below."""

    law: Law
    below: Law
    size: int = 0  # digits run from 0 to size − 1; the first level is no digit and has none

    @classmethod
    def alike(cls, law: Law, size: int = 0) -> Level:
        return cls(law, law, size)


def draw_noise(levels: Sequence[Level], key: NoiseKey, *, cells: range, out: Integers | None = None) -> Integers:
    """Independent noise of each cell, modulo 2⁶⁴, shape (len(cells),); a function of key and cell alone.

    The first level gives a whole number, each further one a digit behind it. `out` is written and returned where given.
    """
    _refuse_unless_run(cells)
    noise = np.empty(len(cells), dtype=np.int64) if out is None else _checked_out(out, len(cells))
    size = min(len(cells), BLOCK_CELLS)
    tables = [_tables(level) for level in levels]
    scratch = word_buffers(size), np.empty((2, size), dtype=np.int64)
    for start in range(0, len(cells), BLOCK_CELLS):
        block, part = cells[start : start + BLOCK_CELLS], noise[start : start + BLOCK_CELLS]
        for place in _draw_block(levels, tables, key=key, cells=block, out=part, scratch=scratch):
            part[place] = wrapped(draw_slowly(levels, key, cell=block[place]))
    return noise


def draw_slowly(levels: Sequence[Level], key: NoiseKey, *, cell: int) -> int:
    """The noise of one cell in exact arithmetic, with as many words as it takes; not reduced modulo 2⁶⁴."""
    number = resolve(levels[0].law, words_of_cell(key, cell, level=0))
    sign = -1 if number < 0 else 0
    for place, level in enumerate(levels[1:], start=1):
        law = level.below if sign else level.law
        digit = resolve(law, words_of_cell(key, cell, level=place))
        number = (number ^ sign) * level.size + digit ^ sign
    return number


def _draw_block(
    levels: Sequence[Level],
    tables: Sequence[Sequence[NoiseTable | ThresholdCurves]],
    *,
    key: NoiseKey,
    cells: range,
    out: Integers,
    scratch: tuple[tuple[Words, Words], Integers],
) -> set[int]:
    """Write the noise of the cells of a block, each level by one word a cell; the places that are still open."""
    from dualmandate.mechanism.noise.kernel import append_digit, look_up

    buffers, (digits, others) = scratch[0], scratch[1][:, : len(cells)]
    still_open: set[int] = set()
    for place, level in enumerate(levels):
        words = words_at(key, lane(place, 0), cells=cells, buffers=buffers)
        for table, values in zip(tables[place], (digits if place else out, others), strict=False):
            if look_up(words, table, out=values):
                still_open.update(table.ties(words).tolist())
        if place:
            chosen = digits if len(tables[place]) == 1 else np.where(out < 0, others, digits)
            append_digit(out, chosen, size=level.size)
    return still_open


def _tables(level: Level) -> list[NoiseTable | ThresholdCurves]:
    """One table where both sides are alike; else also that of the side below zero."""
    return [table_of(law) for law in dict.fromkeys((level.law, level.below))]


def wrapped(number: int) -> int:
    """The number modulo 2⁶⁴, from −2⁶³ to 2⁶³ − 1."""
    return (number + 2**63) % 2**64 - 2**63


def _refuse_unless_run(cells: range) -> None:
    if cells.step != 1 or cells.start < 0 or cells.stop > CELL_LIMIT or cells.start > cells.stop:
        raise InvalidRequest(
            f"noise for the cells {cells}",
            why="cells are numbered from 0 by their row-major place in the declared domain, below 2⁶³",
            instead="name consecutive cells, as range(first, last + 1)",
        )


def _checked_out(out: Integers, count: int) -> Integers:
    if out.dtype != np.int64 or out.shape != (count,) or not out.flags.writeable:
        raise InvalidRequest(
            f"an array of {out.dtype} and shape {out.shape} for the noise of {count:,} cells",
            why="noise is one 64-bit whole number a cell",
            instead="pass a writable array of int64 with one place a cell, or none",
        )
    return out


class Sampler(Protocol):
    """A law of noise, ready to be drawn from."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """What each word of a draw decides; as many words a draw, ties aside."""

    def draw(self, key: NoiseKey, cells: range, *, out: Integers | None = None) -> Integers:
        """The noise of consecutive cells, modulo 2⁶⁴; shape (len(cells),). Written to `out` where given."""
        return draw_noise(self.levels, key, cells=cells, out=out)


@dataclass(frozen=True)
class LaplaceSampler(Sampler):
    """Discrete Laplace noise: P(X = k) ∝ exp(−|k|/scale) on the whole numbers.

    A count that one unit changes by 1 is protected with ε = 1/scale. Source: [GRS12].
    """

    scale: Fraction

    def __post_init__(self) -> None:
        _refuse_unless_exact("a scale", self.scale)
        _refuse_above("a scale", self.scale, largest=LARGEST_SCALE)

    @property
    def levels(self) -> tuple[Level, ...]:
        """One table; for scales above 64 a table and digits."""
        return tuple(_geometric_levels(1 / Fraction(self.scale), step=1, high=1))


@dataclass(frozen=True)
class GaussianSampler(Sampler):
    """Discrete Gaussian noise: P(X = k) ∝ exp(−k²/(2·variance)) on the whole numbers.

    A count that one unit changes by 1 is protected with ρ = 1/(2·variance). `variance` is the parameter σ²; the noise
    itself varies slightly less. Source: [CKS20].
    """

    variance: Fraction

    def __post_init__(self) -> None:
        _refuse_unless_exact("a variance", self.variance)
        _refuse_above("a variance", self.variance, largest=LARGEST_VARIANCE)

    @property
    def levels(self) -> tuple[Level, ...]:
        """One table; for large variances of curves between thresholds."""
        variance = Fraction(self.variance)
        return (Level.alike(Normal(variance) if variance <= LARGEST_TABLE_VARIANCE else BroadNormal(variance)),)


@dataclass(frozen=True)
class StaircaseSampler(Sampler):
    """Staircase noise on the whole numbers: P(X = k) ∝ bʲ if |k| − j·step < high, else bʲ⁺¹; j = ⌊|k|/step⌋.

    b = exp(−rate). An answer that one unit changes by `step` is protected with ε = rate. Counts on a grid of 1/step
    units have step = the number of grid points a unit. Source: [GV16], its discrete setting.
    """

    rate: Fraction
    step: int
    high: int  # 1 ≤ high ≤ step

    def __post_init__(self) -> None:
        _refuse_unless_exact("a rate", self.rate)
        _refuse_above("a number of steps to fall by e", 1 / Fraction(self.rate), largest=LARGEST_SCALE // LARGEST_STEP)
        if not 1 <= self.high <= self.step <= LARGEST_STEP:
            raise InvalidMechanism(
                f"a staircase of step {self.step} and high part {self.high}",
                why=f"the high part is at least 1 and within the step, and the step at most {LARGEST_STEP:,}",
                instead="state whole numbers with 1 ≤ high ≤ step",
            )

    @property
    def levels(self) -> tuple[Level, ...]:
        """The stair, as for Laplace noise, and the place within it."""
        return tuple(_geometric_levels(Fraction(self.rate), step=self.step, high=self.high))


def _geometric_levels(rate: Fraction, *, step: int, high: int) -> Iterator[Level]:
    """The side and the stair's leading part, its further digits, and the place within the stair.

    A value k ≥ 0 and a value −1 − k have the same digits; below zero the first place of each stair is gone (0 counts
    once), so that one more place is low.
    """
    folds = math.ceil(1 / (rate * FIRST_TABLE_SCALE) - 1).bit_length() if rate * FIRST_TABLE_SCALE < 1 else 0
    yield Level.alike(TwoSided(rate, fold=2**folds, step=step, high=high))
    while folds:
        width = (folds - 1) % DIGIT_BITS + 1  # the first digit takes what does not fill the others
        folds -= width
        yield Level.alike(GeometricDigit(rate * 2**folds, 2**width), 2**width)
    if step > 1:
        yield Level(StairPlace(rate, step, high), StairPlace(rate, step, high - 1), step)


def _refuse_unless_exact(what: str, number: Fraction) -> None:
    exact = isinstance(number, Fraction | int) and not isinstance(number, bool)
    if not exact or number <= 0 or max(Fraction(number).as_integer_ratio()).bit_length() > LARGEST_TERM_BITS:
        raise InvalidMechanism(
            f"{what} of {number!s:.40} for exact noise",
            why=f"exact noise is set by a positive fraction of whole numbers of up to {LARGEST_TERM_BITS:,} bits",
            instead="state a Fraction, rounded so that the loss is not above the one chosen",
        )


def _refuse_above(what: str, number: Fraction, *, largest: int) -> None:
    if number > largest:
        raise InvalidMechanism(
            f"{what} of about {number.numerator // number.denominator:,}",
            why=f"exact noise is drawn up to {largest:,}: beyond, tables or 64-bit numbers would not hold it",
            instead="choose a larger loss, or count in larger units",
        )
