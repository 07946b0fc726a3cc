"""Published numbers that are hidden for a test, as suppressed ones are: drawn with the key of an audit.

A suppressed number is drawn, and a published cell is hidden in the same periods as its cell is: one at the finest
level, with another suppressed part in its total, whose total is published or not as that of the suppressed one, and of
nearly the same public size; where there is none, the number is not tried. Numbers that another period shows and those
that none does are drawn apart: they differ most, and not in the same share find a cell that is like them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Integers
from dualmandate.audit.suppression.series import Floats, Series

TRIALS = 300
TRIES = 4  # suppressed numbers that are drawn a trial, as some have no match
LIKE = 1.5  # times as large a cell may be and still count as of the same size, one added to both
Marks = NDArray[np.bool_]


@dataclass(frozen=True)
class Trial:
    """A published cell of a part that is hidden in some periods, and estimated in one of them.

    `seen`: it was drawn for a suppressed number whose cell another period shows.
    """

    part: int
    cell: int
    period: int
    hidden: tuple[int, ...]
    seen: bool


@dataclass(frozen=True)
class Drawn:
    """The trials; how many numbers are suppressed, and how many of these have a cell that another period shows.

    The first trials are for suppressed numbers that no other period shows, the second for those that one does.
    """

    trials: tuple[Trial, ...]
    suppressed: int
    shown_elsewhere: int
    drawn: tuple[int, int] = (0, 0)  # suppressed numbers of each kind for which something like them was looked for


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of the finest level of all parts; arrays have shape (cells,) or (cells, periods)."""

    part: Integers = field(repr=False)
    cell: Integers = field(repr=False)
    suppressed: Marks = field(repr=False)
    positive: Marks = field(repr=False)  # what is 0 shows nothing
    neighbors: Marks = field(repr=False)  # whether another part of the same total is suppressed
    total_hidden: Marks = field(repr=False)
    size: Floats = field(repr=False)


def draw_trials(parts: Iterable[Series], draws: np.random.Generator, *, count: int = TRIALS) -> Drawn:
    """Published cells that are like suppressed ones; each is hidden once. Parts are looked at one after the other."""
    collected, suppressed, elsewhere = list[_Cells](), 0, 0
    for number, series in enumerate(parts):
        hidden = series.suppressed
        suppressed += int(hidden.sum())
        elsewhere += int(hidden[(~hidden & (series.values > 0)).any(axis=1)].sum())
        collected.append(_finest(number, series))
    if not suppressed:
        return Drawn((), 0, 0)
    cells = _Cells(*(np.concatenate([getattr(each, name) for each in collected]) for name in _Cells.__annotations__))
    used: set[int] = set()
    unseen, looked_unseen = _matched(cells, draws, count, used, seen=False)
    seen, looked_seen = _matched(cells, draws, count, used, seen=True)
    return Drawn((*unseen, *seen), suppressed, elsewhere, (looked_unseen, looked_seen))


def _finest(number: int, series: Series) -> _Cells:
    parents, hidden = series.parents, series.suppressed
    inside = parents >= 0
    finest = np.setdiff1d(np.flatnonzero(inside), parents)
    above = parents[finest]
    parts = np.zeros(hidden.shape, dtype=np.int64)
    np.add.at(parts, parents[inside], hidden[inside].astype(np.int64))
    return _Cells(
        np.full(len(finest), number),
        finest,
        hidden[finest],
        series.values[finest] > 0,
        parts[above] - hidden[finest] > 0,
        hidden[above],
        series.sizes[finest].mean(axis=1),
    )


def _matched(
    cells: _Cells, draws: np.random.Generator, count: int, used: set[int], *, seen: bool
) -> tuple[list[Trial], int]:
    """Trials, and how many suppressed numbers were drawn for them."""
    shown = ~cells.suppressed & cells.positive
    alike = cells.suppressed & cells.neighbors
    alike &= (shown.any(axis=1) == seen)[:, None]
    wanted = draws.permutation(np.argwhere(alike))[: TRIES * count]
    order = draws.permutation(len(shown))  # cells of equal size come in an order of their own
    order = order[np.argsort(cells.size[order], kind="stable")]
    kinds: dict[tuple[bytes, int, bool], Integers] = {}
    trials: list[Trial] = []
    looked = 0
    for looked, (like, period) in enumerate(wanted.tolist(), start=1):  # noqa: B007 - how far it came
        pattern, total = ~shown[like], bool(cells.total_hidden[like, period])
        kind = pattern.tobytes(), period, total
        if kind not in kinds:
            fits = shown.all(axis=1) & cells.neighbors[:, pattern].all(axis=1)
            fits &= cells.total_hidden[:, period] == total
            kinds[kind] = order[fits[order]]
        chosen = _nearest(kinds[kind], cells.size, float(cells.size[like]), used)
        if chosen is None:
            continue
        used.add(chosen)
        hidden = tuple(np.flatnonzero(pattern).tolist())
        trials.append(Trial(int(cells.part[chosen]), int(cells.cell[chosen]), period, hidden, seen))
        if len(trials) == count:
            break
    return trials, looked


def _nearest(candidates: Integers, sizes: Floats, size: float, used: set[int]) -> int | None:
    """The candidate of nearest size that was not used yet, None where it is not like; candidates are sorted by size."""
    own = sizes[candidates]
    right = int(np.searchsorted(own, size))
    left = right - 1
    while left >= 0 or right < len(candidates):
        below = size - float(own[left]) if left >= 0 else np.inf
        above = float(own[right]) - size if right < len(candidates) else np.inf
        place = left if below <= above else right
        if int(candidates[place]) not in used:
            smaller, larger = sorted((size + 1, float(own[place]) + 1))
            return int(candidates[place]) if larger <= LIKE * smaller else None
        left, right = (left - 1, right) if below <= above else (left, right + 1)
    return None
