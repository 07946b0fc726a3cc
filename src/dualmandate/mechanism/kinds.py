"""Queries sorted by the mix of noise that reaches them, and what is computed once for each kind.

Tables of groups of unequal size (counties of 1 to 10,000 blocks), put together from measured cells, have a different
sum for every size. For sums of n equal draws, ln value is a smooth function of ln n, from slope 1 (few draws that are
mostly 0) to slope ½ (Gaussian): a polynomial through Chebyshev points gives it, and is checked in between.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEW = 80  # counts that are computed one by one
_SMALL = 64  # draws; below, counts are too far apart to lie near Chebyshev points
_POINTS = 40

Bag = tuple[NDArray[np.float64], NDArray[np.float64]]  # different factors > 0, and how many draws have each
Mix = tuple[Bag, ...]  # one bag a source of noise


@dataclass(frozen=True, eq=False)
class Kinds:
    """The queries of a table by the mix of noise that reaches them: equal mixes have equal errors."""

    mixes: tuple[Mix, ...]
    members: NDArray[np.intp]  # shape (query_count,), the mix of each query

    def numbers(self) -> NDArray[np.int64]:
        """How many queries each mix reaches."""
        if len(self.mixes) == 1:
            return np.array([len(self.members)])
        return np.bincount(self.members, minlength=len(self.mixes))

    def evaluate(
        self, value: Callable[[Mix], float], *, rough: Callable[[Mix], bool] | None = None, tolerance: float = 1e-6
    ) -> NDArray[np.float64]:
        """A number ≥ 0 for each mix, shape (mixes,).

        Sums of equal draws are interpolated, to a relative tolerance, where there are many; `rough` says which of them
        are computed by themselves all the same, because the value is not smooth there.
        """
        found = np.empty(len(self.mixes))
        for place, counts in _families(self.mixes):
            smooth = np.array([rough is None or not rough(self.mixes[i]) for i in place])
            found[place[smooth]] = over_counts(
                _of_count(value, self.mixes[place[0]]), counts[smooth], tolerance=tolerance
            )
            found[place[~smooth]] = [value(self.mixes[i]) for i in place[~smooth]]
        return found


def draws(mix: Mix) -> float:
    """How many draws reach the query."""
    return math.fsum(float(counts.sum()) for _, counts in mix)


def _of_count(value: Callable[[Mix], float], mix: Mix) -> Callable[[float], float]:
    """The value of a mix of equal draws as a function of their number; of any other mix, of itself."""
    if sum(len(factors) for factors, _ in mix) != 1:
        return lambda _: value(mix)
    return lambda count: value(tuple((factors, np.full(len(factors), count)) for factors, _ in mix))


def _families(mixes: tuple[Mix, ...]) -> Iterator[tuple[NDArray[np.intp], NDArray[np.float64]]]:
    """Mixes of equal draws that differ in their number only, together; every other mix by itself."""
    families: dict[object, list[tuple[int, float]]] = {}
    for place, mix in enumerate(mixes):
        equal = sum(len(factors) for factors, _ in mix) == 1
        key = tuple(tuple(factors.tolist()) for factors, _ in mix) if equal else place
        families.setdefault(key, []).append((place, draws(mix)))
    for members in families.values():
        places, counts = zip(*members, strict=True)
        yield np.array(places, dtype=np.intp), np.array(counts, dtype=np.float64)


def over_counts(
    value: Callable[[float], float], counts: NDArray[np.float64], *, tolerance: float
) -> NDArray[np.float64]:
    """The value of each count; computed one by one for few counts, or where the curve is not smooth."""
    known: dict[float, float] = {}

    def exact(count: float) -> float:
        if count not in known:
            known[count] = value(count)
        return known[count]

    distinct = np.unique(counts)
    many = distinct[distinct > _SMALL]
    smooth = _interpolated(exact, many, tolerance) if len(many) > FEW else None
    values = np.array([exact(float(count)) for count in (distinct if smooth is None else distinct[distinct <= _SMALL])])
    return (values if smooth is None else np.concatenate([values, smooth]))[np.searchsorted(distinct, counts)]


def _interpolated(
    value: Callable[[float], float], counts: NDArray[np.float64], tolerance: float
) -> NDArray[np.float64] | None:
    """Barycentric interpolation in logarithms; None where values vanish or a check in between fails."""
    low, high = math.log(counts[0]), math.log(counts[-1])
    angles = np.cos(np.pi * np.arange(_POINTS) / (_POINTS - 1))
    wanted = np.exp((low + high) / 2 - (high - low) / 2 * angles)
    nodes = np.unique(counts[np.searchsorted(counts, wanted).clip(0, len(counts) - 1)])
    values = np.array([value(float(node)) for node in nodes])
    if not np.all(values > 0):
        return None
    places, logs = np.log(nodes), np.log(values)
    gaps = (places[:, None] - places[None, :]) * (4 / (high - low))
    np.fill_diagonal(gaps, 1.0)
    weights = 1 / np.prod(gaps, axis=1)
    where = np.log(counts)[:, None] - places[None, :]
    at_node = where == 0
    ratios = weights / np.where(at_node, 1.0, where)
    found = (ratios @ logs) / ratios.sum(axis=1)
    found[at_node.any(axis=1)] = logs[at_node[at_node.any(axis=1)].argmax(axis=1)]
    between = [i for i in range(0, len(counts), max(1, len(counts) // 9)) if counts[i] not in nodes]
    checks = [abs(math.log(value(float(counts[i]))) - found[i]) for i in between]
    return np.exp(found) if max(checks, default=0.0) < tolerance else None
