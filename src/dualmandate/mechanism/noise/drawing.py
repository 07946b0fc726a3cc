"""Noise for a run of cells: the fast way for nearly every cell, the slow way for the few whose words leave it open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.noise.broad import ThresholdCurves
from dualmandate.mechanism.noise.key import NoiseKey
from dualmandate.mechanism.noise.laws import Law
from dualmandate.mechanism.noise.table import NoiseTable, table_of
from dualmandate.mechanism.noise.ties import resolve
from dualmandate.mechanism.noise.words import Words, lane, word_buffers, words_at, words_of_cell

BLOCK_CELLS = 2**15  # words, digits and results of a block stay in the processor's own memory
CELL_LIMIT = 2**63

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Level:
    """One digit of a draw, decided by one word: its law for numbers from 0 on, and for those below."""

    law: Law
    below: Law
    size: int = 0  # digits run from 0 to size − 1; the first level is no digit and has none

    @classmethod
    def alike(cls, law: Law, size: int = 0) -> Level:
        """The same law on both sides."""
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
