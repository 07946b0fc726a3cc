"""Auctions in which people sell the use of their records: MinCostAuction and FairQuery of Ghosh and Roth [GR15].

Everybody says what one unit of ε would cost her. The k cheapest sell; the others' records are not used at all, and
their answers are filled in with one half each. One count is published with Laplace noise. Both auctions pay every
seller the same, at least her cost, and no lie about one's own cost pays.

MinCostAuction buys a stated accuracy; FairQuery buys as much as a budget allows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import ConflictingLimits, InvalidPreferences
from dualmandate.population.wording import number

QUALITY = 0.5 + math.log(3)  # m: with ε = m/(α·n) an error stays within α·n with probability of at least 2/3


@dataclass(frozen=True)
class Sale:
    """Who sold, at which ε, for what; `sellers` are positions in the list of costs."""

    sellers: tuple[int, ...]
    people: int  # n
    epsilon: float  # of each seller; 0 where nobody sells
    payment: float  # USD to each seller
    noise_scale: float  # of the Laplace noise on the count

    @property
    def total(self) -> float:
        """What is paid in all, USD."""
        return self.payment * len(self.sellers)

    @property
    def largest_bias(self) -> float:
        """How far one half for each who did not sell can be off: (n − k)/2."""
        return (self.people - len(self.sellers)) / 2

    def utility(self, person: int, cost: float) -> float:
        """What a person with this cost per unit of ε gains, USD; 0 where she does not sell."""
        return self.payment - cost * self.epsilon if person in self.sellers else 0.0

    def within(self, error: float, bias: float | None = None) -> float:
        """P(|error of the count| ≤ error) where the half for each who did not sell is off by `bias` in all."""
        off = self.largest_bias if bias is None else abs(bias)
        if off > error:
            return 0.5 * (math.exp(-(off - error) / self.noise_scale) - math.exp(-(off + error) / self.noise_scale))
        tails = math.exp(-(error - off) / self.noise_scale) + math.exp(-(error + off) / self.noise_scale)
        return 1 - 0.5 * tails

    def estimates(self, bits: Sequence[int], generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Published counts of those with a 1, drawn `size` times; to study the auction, never to publish."""
        known = sum(bits[person] for person in self.sellers)
        noise = generator.laplace(scale=self.noise_scale, size=size)
        return np.asarray(known + self.largest_bias + noise, dtype=np.float64)


def min_cost_auction(costs: Sequence[float], target_error: float) -> Sale:
    """The cheapest way to buy an error of at most α·n with probability 2/3.

    The k = ⌈n − α·n/m⌉ cheapest sell at ε = m/(α·n), m = ½ + ln 3; each is paid the next one's cost, v₍k+1₎·ε.
    """
    order, n = _ranked(costs), len(costs)
    if not 0 < target_error < 1:
        raise InvalidPreferences(
            f"a target error of {target_error:g}",
            why="the count of a population is off by a share of it",
            instead="state a share strictly between 0 and 1",
        )
    k = math.ceil(n - target_error * n / QUALITY)
    if k >= n:
        raise ConflictingLimits(
            f"an error of at most {target_error:g} of {n:,} people needs all of them",
            why="the price is the cost of the first who does not sell, and nobody is left to name it",
            instead=f"allow an error of at least {number(QUALITY / n)}, or ask more people",
        )
    epsilon = QUALITY / (target_error * n)
    return Sale(tuple(order[:k]), n, epsilon, costs[order[k]] * epsilon, 1 / epsilon)


def fair_query(costs: Sequence[float], budget: float) -> Sale:
    """As much accuracy as a budget buys: the largest k < n with v₍k₎/(n − k) ≤ B/k, at ε = 1/(n − k).

    Each seller is paid the smaller of B/k and v₍k+1₎/(n − k). With no seller only the guess of n/2 is published.
    """
    order, n = _ranked(costs), len(costs)
    if not (math.isfinite(budget) and budget > 0):
        raise InvalidPreferences(
            f"a budget of {budget:g} USD", why="nothing can be bought with it", instead="state a budget above 0"
        )
    ranked = [costs[person] for person in order]
    k = max((k for k in range(1, n) if ranked[k - 1] * k <= budget * (n - k)), default=0)
    if k == 0:
        return Sale((), n, 0.0, 0.0, float(n))
    return Sale(tuple(order[:k]), n, 1 / (n - k), min(budget / k, ranked[k] / (n - k)), float(n - k))


def _ranked(costs: Sequence[float]) -> list[int]:
    """People by what a unit of ε costs them, the cheapest first; of equals, the first in the list."""
    if len(costs) < 2 or not all(math.isfinite(cost) and cost >= 0 for cost in costs):
        raise InvalidPreferences(
            f"an auction among {len(costs)} people",
            why="a price needs somebody who sells and somebody who does not, each with a finite cost of at least 0",
            instead="state the costs of at least two people, in USD per unit of epsilon",
        )
    return sorted(range(len(costs)), key=lambda person: costs[person])
