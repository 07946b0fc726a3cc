"""The error that no noise explains: what clipping leaves out, by a public distribution of amounts and of records.

An amount X counts as min(max(X, l), u), so D = (X − u)⁺ − (l − X)⁺ of it is left out: E[D] = E[(X − u)⁺] − E[(l − X)⁺].
With S = (X − u)⁺, E[S] is E[X] less the limited expected value E[min(X, u)] ([KPW12],
section 3.4). For a lognormal X with median m, spread σ and z = ln(u/m)/σ, E[Xʲ; X > u] = mʲ·e^(j²σ²/2)·Φ(jσ − z).

A unit with R records contributes the first m of them. With K = min(R, m) and L = (R − m)⁺ it leaves out U: D of each of
K, and all of L amounts, so E[U] = E[K]·E[D] + E[L]·E[X]. Of N units, each with the chance p to lie in a cell, and all
of its records there, a number is off by B: E[B] = N·p·E[U], and E[B²] = N·p·E[U²] + N·(N − 1)·p²·E[U]².
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Protocol

Moments = tuple[float, float]  # E[Y] and E[Y²]
NOTHING: Moments = (0.0, 0.0)


class Amounts(Protocol):
    """How an amount is distributed over records; public."""

    @property
    def moments(self) -> Moments | None:
        """E[X] and E[X²]; None where only the largest amounts are known."""

    @property
    def least_bound(self) -> float:
        """The lowest upper bound of which can be told what it leaves out."""

    def excess(self, bound: float, /) -> Moments:
        """E[S] and E[S²] of S = (X − bound)⁺."""

    def quantile(self, share: float, /) -> float:
        """The amount that this share of records does not exceed."""


@dataclass(frozen=True)
class LognormalLaw:
    """A share of records has an amount whose logarithm is normal; the others have 0."""

    median: float  # > 0
    spread: float  # σ, > 0: the standard deviation of the logarithm
    share: float = 1.0  # in (0, 1]

    @property
    def moments(self) -> Moments:
        return self._beyond(1, 0.0), self._beyond(2, 0.0)

    @property
    def least_bound(self) -> float:
        return 0.0

    def excess(self, bound: float) -> Moments:
        if bound <= 0:
            return _shifted(self.moments, bound)
        chance, first, second = (self._beyond(power, bound) for power in range(3))
        return max(first - bound * chance, 0.0), max(second - 2 * bound * first + bound * bound * chance, 0.0)

    def quantile(self, share: float) -> float:
        from statistics import NormalDist

        among = 1 - (1 - share) / self.share  # of those who have one
        return 0.0 if among <= 0 else self.median * math.exp(self.spread * NormalDist().inv_cdf(among))

    def _beyond(self, power: int, bound: float) -> float:
        """E[X^power; X > bound]."""
        mean = self.share * self.median**power * math.exp((power * self.spread) ** 2 / 2)
        if bound <= 0:
            return mean
        return (
            mean * 0.5 * math.erfc((math.log(bound / self.median) / self.spread - power * self.spread) / math.sqrt(2))
        )


@dataclass(frozen=True)
class ParetoTail:
    """A share of records has at least `least`: P(X > x) = share·(x/least)^−index from there on; of others nothing."""

    least: float  # > 0
    index: float  # > 2
    share: float = 1.0  # in (0, 1]

    @property
    def moments(self) -> Moments | None:
        return None if self.share < 1 else _shifted(self.excess(self.least), -self.least)

    @property
    def least_bound(self) -> float:
        return self.least

    def excess(self, bound: float) -> Moments:
        assert bound >= self.least
        beyond = self.share * (bound / self.least) ** -self.index
        return beyond * bound / (self.index - 1), beyond * 2 * bound * bound / ((self.index - 1) * (self.index - 2))

    def quantile(self, share: float) -> float:
        return (
            self.least * max((1 - share) / self.share, 0.0) ** (-1 / self.index)
            if share > 1 - self.share
            else self.least
        )


@dataclass(frozen=True)
class EvenPieces:
    """Records spread evenly between two amounts, piece by piece: what quantiles, or a table by bins, tell."""

    pieces: tuple[tuple[float, float, float], ...]  # from, to, and the share of records; increasing, shares add up to 1

    @classmethod
    def of_quantiles(cls, quantiles: Mapping[float, float]) -> EvenPieces:
        """Amounts by the share of records that do not exceed them, from share 0 to share 1."""
        known = sorted(quantiles.items())
        return cls(tuple((low, high, upto - before) for (before, low), (upto, high) in pairwise(known)))

    @classmethod
    def of_bins(cls, edges: Sequence[float], counts: Sequence[float]) -> EvenPieces:
        """Counts of records by bins, one edge more than bins; counts are at least 0, and one is above."""
        total = math.fsum(counts)
        return cls(
            tuple((low, high, count / total) for (low, high), count in zip(pairwise(edges), counts, strict=True))
        )

    @property
    def moments(self) -> Moments:
        lowest = self.pieces[0][0]
        return _shifted(self.excess(lowest), -lowest)

    @property
    def least_bound(self) -> float:
        return -math.inf

    def excess(self, bound: float) -> Moments:
        parts = [(share, _evenly(low - bound, high - bound)) for low, high, share in self.pieces if high > bound]
        return math.fsum(share * one for share, (one, _) in parts), math.fsum(share * two for share, (_, two) in parts)

    def quantile(self, share: float) -> float:
        reached = accumulate(part for _, _, part in self.pieces)
        for upto, (low, high, part) in zip(reached, self.pieces, strict=True):
            if part > 0 and upto >= share:
                return low + (high - low) * max(0.0, 1 - (upto - share) / part)
        return self.pieces[-1][1]


def _evenly(low: float, high: float) -> Moments:
    """E[Y⁺] and E[(Y⁺)²] of Y that is even between two numbers, the higher above 0."""
    if high == low:
        return high, high * high
    start = max(low, 0.0)
    return (high**2 - start**2) / (2 * (high - low)), (high**3 - start**3) / (3 * (high - low))


def _shifted(moments: Moments, bound: float) -> Moments:
    """The moments of X − bound."""
    first, second = moments
    return first - bound, second - 2 * bound * first + bound * bound


def left_out(amounts: Amounts, lower: float, upper: float) -> Moments:
    """E[D] and E[D²] of what clipping an amount to [lower, upper] leaves out; below 0 where it adds more."""
    above = amounts.excess(upper)
    below = NOTHING
    if amounts.moments is not None and lower > amounts.least_bound:
        mean, square = _shifted(amounts.moments, lower)  # (l − X)⁺ = (X − l)⁺ − (X − l)
        over = amounts.excess(lower)
        below = max(over[0] - mean, 0.0), max(square - over[1], 0.0)
    return above[0] - below[0], above[1] + below[1]


@dataclass(frozen=True)
class RecordCounts:
    """How many records units have: the share of units with each number; public."""

    shares: Mapping[int, float]  # add up to 1

    def mean(self, most: int, power: int = 1) -> float:
        """E[min(R, most)^power]."""
        return math.fsum(share * min(records, most) ** power for records, share in self.shares.items())

    def dropped(self, most: int) -> Moments:
        """E[L] and E[L²] of the records beyond `most`."""
        beyond = [(share, max(records - most, 0)) for records, share in self.shares.items()]
        return math.fsum(share * more for share, more in beyond), math.fsum(share * more**2 for share, more in beyond)


ONE_RECORD = RecordCounts({1: 1.0})
ONE_EACH: Moments = (1.0, 1.0)  # of a count: a record adds 1


def left_out_of_unit(
    clipped: Moments, whole: Moments | None, records: RecordCounts = ONE_RECORD, most: int = 1
) -> Moments | None:
    """E[U] and E[U²] of what one unit leaves out: `clipped` of each record that is kept, `whole` of each that is not.

    Amounts of one unit's records are taken as independent of each other and of how many there are. None where records
    are dropped, and nothing is known of whole amounts.
    """
    lost, lost_squared = records.dropped(most)
    if lost == 0:
        whole = NOTHING
    if whole is None:
        return None
    (part, part_squared), (amount, amount_squared) = clipped, whole
    kept, kept_squared = records.mean(most), records.mean(most, 2)
    mean = kept * part + lost * amount
    square = kept * (part_squared - part**2) + kept_squared * part**2
    square += lost * (amount_squared - amount**2) + lost_squared * amount**2 + 2 * most * lost * part * amount
    return mean, square


def squared_bias(unit: Moments, units: float, chances: Moments) -> float:
    """Σ E[B²] over the numbers of a table, with `units` units in all.

    `chances` are Σ p and Σ p² over these numbers, p the chance of a unit to count there; weights w count as Σ w²·p and
    Σ (w·p)².
    """
    mean, square = unit
    once, twice = chances
    return units * square * once + units * (units - 1) * mean**2 * twice
