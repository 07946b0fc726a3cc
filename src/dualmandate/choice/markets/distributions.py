"""How the cost of privacy loss, or the taste for accuracy, differs between people: its quantile function Q.

Q(h) is the amount that the share h of people does not exceed. Markets buy from the cheapest first, so all they need of
a distribution is Q, its slope, and how much the cheapest share costs together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dualmandate.errors import InvalidPreferences

SHARES_AGREE = 1e-9  # Shares add up to 1 within this.
ROUNDING = 1e-13  # A sum of shares is rounded by less than this.


class AmountDistribution(Protocol):
    """Amounts of money per unit among people, ≥ 0; `share` is always in [0, 1]."""

    @property
    def mean(self) -> float:
        """The mean amount."""
        ...

    @property
    def breaks(self) -> tuple[float, ...]:
        """Shares strictly between 0 and 1 at which Q jumps; between them it is smooth."""
        ...

    def quantile(self, share: float) -> float:
        """Q: the smallest amount that at least this share of people does not exceed."""
        ...

    def slope(self, share: float) -> float:
        """Q′ where Q is smooth; ≥ 0."""
        ...

    def below(self, share: float) -> float:
        """∫₀^share Q: what the cheapest share costs, per head of everybody."""
        ...


@dataclass(frozen=True)
class UniformAmounts:
    """Every amount between two is as frequent as any other."""

    least: float
    largest: float
    breaks = ()

    def __post_init__(self) -> None:
        if not (0 <= self.least < self.largest < math.inf):
            raise InvalidPreferences(
                f"amounts between {self.least:g} and {self.largest:g}",
                why="a range has two different, finite ends of at least 0",
                instead="state 0 ≤ least < largest",
            )

    @property
    def mean(self) -> float:
        return (self.least + self.largest) / 2

    def quantile(self, share: float) -> float:
        return self.least + share * (self.largest - self.least)

    def slope(self, share: float) -> float:
        del share
        return self.largest - self.least

    def below(self, share: float) -> float:
        return share * (self.least + share * (self.largest - self.least) / 2)


@dataclass(frozen=True)
class LognormalAmounts:
    """Most people care little and a few care much: the logarithm is normal, with a mean and a spread s."""

    mean: float
    spread: float  # s, the standard deviation of the logarithm
    breaks = ()

    def __post_init__(self) -> None:
        if not (0 < self.mean < math.inf and 0 < self.spread < math.inf):
            raise InvalidPreferences(
                f"amounts with the mean {self.mean:g} and the spread {self.spread:g}",
                why="both are finite and above 0",
                instead="state a mean above 0 and a spread such as 1",
            )

    def quantile(self, share: float) -> float:
        """exp(m + s·z), with m = ln mean − s²/2."""
        if share <= 0:
            return 0.0
        return math.inf if share >= 1 else math.exp(self._location + self.spread * _normal_quantile(share))

    def slope(self, share: float) -> float:
        """Q·s/φ(z)."""
        if not 0 < share < 1:
            return 0.0 if share <= 0 else math.inf
        z = _normal_quantile(share)
        return self.quantile(share) * self.spread * math.sqrt(2 * math.pi) * math.exp(z * z / 2)

    def below(self, share: float) -> float:
        """mean·Φ(z − s)."""
        if not 0 < share < 1:
            return 0.0 if share <= 0 else self.mean
        return self.mean * 0.5 * math.erfc((self.spread - _normal_quantile(share)) / math.sqrt(2))

    @property
    def _location(self) -> float:
        return math.log(self.mean) - self.spread**2 / 2


@dataclass(frozen=True)
class GroupedAmounts:
    """A few kinds of people: each kind's amount, and the share of people of that kind."""

    amounts: tuple[float, ...]
    shares: tuple[float, ...]  # > 0, add up to 1

    def __post_init__(self) -> None:
        total = math.fsum(self.shares)
        fit = len(self.amounts) == len(self.shares) and all(share > 0 for share in self.shares)
        if not fit or abs(total - 1) > SHARES_AGREE or not all(0 <= amount < math.inf for amount in self.amounts):
            raise InvalidPreferences(
                f"amounts {self.amounts} with the shares {self.shares}",
                why="everybody is of one kind, and each kind has a finite amount of at least 0",
                instead="state one share above 0 for each amount; they add up to 1",
            )

    @property
    def mean(self) -> float:
        return math.fsum(amount * share for amount, share in self._sorted)

    @property
    def breaks(self) -> tuple[float, ...]:
        ends = np.cumsum([share for _, share in self._sorted])[:-1]
        return tuple(float(end) for end in ends)

    def quantile(self, share: float) -> float:
        ends = np.cumsum([part for _, part in self._sorted])
        place = int(np.searchsorted(ends, share - ROUNDING, side="left"))
        return self._sorted[min(place, len(ends) - 1)][0]

    def slope(self, share: float) -> float:
        del share
        return 0.0

    def below(self, share: float) -> float:
        total, left = 0.0, share
        for amount, part in self._sorted:
            total += amount * min(part, left)
            left = max(0.0, left - part)
        return total

    @property
    def _sorted(self) -> list[tuple[float, float]]:
        return sorted(zip(self.amounts, self.shares, strict=True))


def _normal_quantile(share: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(share))
