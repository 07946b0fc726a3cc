"""Whole numbers for one cumulative table: running sums that never fall, nearest to the estimates.

Minimize Σ (S_i − e_i)²/variance_i over 0 ≤ S_1 ≤ … ≤ S_n, and S_n = N where the number of records is public: isotonic
regression, by pooling neighbors that fall [BBBB72]. Bounds clip it, and rounding it gives the nearest whole numbers,
for where it stands above any level is the nearest set of places above that level. Each combination of the other
attributes by itself; records are what the sums rise by.
"""

from __future__ import annotations

import math

import numpy as np

from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Identity, Prefix, Table, Total


def running_axis(table: Table, *, total_is_known: bool) -> int | None:
    """The attribute whose running sums a table is made of; None where it is another table.

    With a known number of records it must be the only attribute that the table shows.
    """
    sums = [axis for axis, factor in enumerate(table.factors) if isinstance(factor, Prefix)]
    others = [factor for factor in table.factors if not isinstance(factor, Prefix | Total)]
    plain = all(isinstance(factor, Identity) and not total_is_known for factor in others)
    return sums[0] if len(sums) == 1 and plain and table.weight == 1 else None


def rising_histogram(table: Table, axis: int, estimates: Floats, variances: Floats, records: int | None) -> Integers:
    """Whole counts, at least 0, in the shape of the domain, whose running sums along an axis are near the estimates.

    What an attribute is summed over is shared evenly among its levels.
    """
    from scipy.optimize import isotonic_regression

    shape = [factor.rows for factor in table.factors]
    lines = np.moveaxis(estimates.reshape(shape), axis, -1)
    spreads = np.moveaxis(variances.reshape(shape), axis, -1).reshape(-1, shape[axis])
    least = float(spreads[spreads > 0].min(initial=math.inf))
    rising = np.zeros((len(spreads), shape[axis]), dtype=np.int64)
    for place, (line, spread) in enumerate(zip(lines.reshape(rising.shape), spreads, strict=True)):
        held = slice(None) if records is None else slice(0, -1)  # the last is known
        if line[held].size:
            weights = 1.0 / np.maximum(spread[held], least) if math.isfinite(least) else None
            found = isotonic_regression(line[held], weights=weights).x
            rising[place, held] = np.clip(np.rint(found), 0, records)
    if records is not None:
        rising[:, -1] = records
    counts = np.diff(rising, prepend=0, axis=1).reshape(lines.shape)
    counts = np.moveaxis(counts, -1, axis)
    for summed, factor in enumerate(table.factors):
        if isinstance(factor, Total):
            share, left = np.divmod(counts, factor.size)
            ranks = np.arange(factor.size).reshape([-1 if place == summed else 1 for place in range(counts.ndim)])
            counts = share + (ranks < left)
    return np.asarray(counts, dtype=np.int64)
