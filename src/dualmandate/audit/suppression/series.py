"""Suppressed numbers that were published in another quarter, or that time gives away: a simple attack on series.

A cell's share of its total moves slowly. Where a cell was published in some periods, its share there, carried over in a
straight line, times the total now is an estimate of what is suppressed now; where no total is published, its level is
carried over; where no period shows it, the rest of the total is divided by a public size (establishments). Estimates
are brought into the range that the tables leave, and made to add up.
After [HTFK10], without their model.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Integers

Floats = NDArray[np.float64]
ROUNDS = 30  # of making parts add up within their ranges


@dataclass(frozen=True, eq=False)
class Series:
    """Cells that are parts of totals, in several periods; arrays have shape (cells, periods).

    `sizes` are public sizes of the cells, for what no period shows.
    """

    parents: Integers = field(repr=False)  # (cells,); −1 at the top
    values: Integers = field(repr=False)  # whatever stands at a suppressed cell is not looked at
    suppressed: NDArray[np.bool_] = field(repr=False)
    sizes: Floats = field(repr=False)


def estimate_series(series: Series, least: Integers, largest: Integers) -> Floats:
    """An attacker's estimate of every number, published ones as they are; NaN where nothing shows a total.

    Shape (cells, periods). `least` and `largest` are the ranges of an audit of each period.
    """
    values = np.where(series.suppressed, np.nan, series.values.astype(np.float64))
    known = _shares(series, values), _carried(series, values)
    for parts in _from_the_top(series.parents):
        _fill(series, values, parts, known, (least, largest))
    return values


def by_size(series: Series, least: Integers, largest: Integers) -> Floats:
    """The guess without time: the rest of each total divided by size, within the ranges; shape (cells, periods)."""
    values = np.where(series.suppressed, np.nan, series.values.astype(np.float64))
    nothing = np.full_like(values, np.nan)
    for parts in _from_the_top(series.parents):
        _fill(series, values, parts, (nothing, nothing), (least, largest))
    return values


def _shares(series: Series, values: Floats) -> Floats:
    """Each cell's share of its total, carried over from the periods in which both were published; NaN without any."""
    parents = series.parents
    totals = np.where((parents >= 0)[:, None], values[np.maximum(parents, 0)], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _carried(series, np.where(totals > 0, values / totals, np.nan))


def _carried(series: Series, values: Floats) -> Floats:
    """What is known of each cell in some periods, in a straight line through the others; NaN where nothing is."""
    periods = np.arange(values.shape[1])
    carried = np.full_like(values, np.nan)
    for cell in np.flatnonzero(series.suppressed.any(axis=1)):
        there = np.isfinite(values[cell])
        if there.any():
            carried[cell] = np.interp(periods, periods[there], values[cell, there])
    return carried


def _from_the_top(parents: Integers) -> list[Integers]:
    """The parts of each total, totals before their parts."""
    order = np.argsort(parents, kind="stable")
    cells, starts = np.unique(parents[order], return_index=True)
    families = dict(zip(cells.tolist(), np.split(order, starts[1:]), strict=True))
    found, waiting = [], [-1]
    while waiting:
        family = families.get(waiting.pop())
        if family is not None:
            found.append(family)
            waiting.extend(family.tolist())
    return found


def _fill(
    series: Series,
    values: Floats,
    parts: Integers,
    known: tuple[Floats, Floats],
    bounds: tuple[Integers, Integers],
) -> None:
    """Estimate the suppressed parts of one total; `known` are shares and levels carried over."""
    parent = int(series.parents[parts[0]])
    for period in range(values.shape[1]):
        hidden = parts[np.isnan(values[parts, period])]
        if not hidden.size:
            continue
        low, high = bounds[0][hidden, period].astype(float), bounds[1][hidden, period].astype(float)
        total = values[parent, period] if parent >= 0 else np.nan
        rest = total - np.nansum(values[parts, period]) if np.isfinite(total) else np.nan
        shares, levels = (each[hidden, period] for each in known)
        guess = np.where(np.isnan(shares * total), levels, shares * total)
        unseen = np.isnan(guess)
        if unseen.any():
            size = series.sizes[hidden, period] + 1e-9
            left = rest - np.nansum(guess[~unseen])
            guess[unseen] = np.maximum(left, 0.0) * size[unseen] / size[unseen].sum()
        values[hidden, period] = _adding_up(np.clip(guess, low, high), low, high, rest)


def _adding_up(guess: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Guesses within their ranges, scaled until they add up to the total as far as the ranges allow."""
    if not np.isfinite(total):
        return guess
    for _ in range(ROUNDS):
        missing = total - guess.sum()
        if abs(missing) <= 1e-9 * max(abs(total), 1.0):
            break
        room = high - guess if missing > 0 else guess - low
        weight = np.minimum(np.maximum(guess, 1.0), room)
        if weight.sum() <= 0:
            break
        guess = np.clip(guess + missing * weight / weight.sum(), low, high)
    return guess
