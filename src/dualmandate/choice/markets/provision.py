"""Who provides accuracy when it is a public good: a firm, a market with personal prices, or a planner.

The model of "Suboptimal provision" [ASSV19], on the technology of Ghosh and Roth: to publish one count with the
accuracy I = 1 − a, the share h = 1 − a/m of N people must be bought, at ε = m/(a·N), m = ½ + ln 3. Costs per unit of ε
have the quantile function Q; person i would pay η_i for one more unit of I.

C_VCG = Q(h)·h·N·ε is what an auction with one price pays; C_sellers = N·ε·∫₀^h Q what the sellers lose, which is also
what personal prices would pay them; C_everybody = N·ε·mean what everybody loses if a published ε is a loss to all.

* private provider: max η = C_VCG′, because everybody but the keenest user rides free;
* private provider who pays each seller her own cost: max η = C_sellers′;
* Lindahl: every user pays her own η, Σ η = C_VCG′;
* planner: Σ η = C_sellers′, or Σ η = C_everybody′.

C_VCG′, ε(I), the two private providers and the order I^VCG ≤ I^Lindahl ≤ I^planner stand on the authors' slides, which
state the optimum as Σ η = C_VCG′: what is called Lindahl here. The planner who counts losses, not payments, chooses
more. C_VCG − C_sellers = N·ε·∫₀^h x dQ rises in I, so the order always holds for the planner who counts sellers'
losses; for the one who counts everybody's it can fail, where most people sell for nothing.

A monopolist who sells accuracy looks at the marginal user, the planner at all of them [Spe75]. Users differ in their
taste x for accuracy: user x would pay x·A(I). A monopolist with one price and no cost per user serves the share q that
maximizes q·Q(1 − q), Q the quantile function of tastes, and so values one more unit of accuracy at that product times
A′; the planner lets everybody use it, and values it at the mean taste times A′. With tastes spread evenly over [0, 1],
P = A(I)·(1 − q): the monopolist sells to half and values accuracy at A′/4, the planner at A′/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dualmandate.choice.markets.auctions import QUALITY
from dualmandate.choice.markets.distributions import AmountDistribution, UniformAmounts
from dualmandate.errors import InvalidPreferences
from dualmandate.frontier.numerics import lowest

EVEN_TASTES = UniformAmounts(0.0, 1.0)
STEPS = 2000  # The share served is looked for in this many steps before it is polished.
POINTS = 400  # Each smooth stretch of shares has this many points.
EDGE = 1e-12  # A share comes no nearer than this to everybody.
ORDER = 1e-9  # Accuracies this near to each other are equal.


@dataclass(frozen=True)
class Monopoly:
    """How much of the value of accuracy a monopolist can take, and from how many users."""

    tastes: AmountDistribution = EVEN_TASTES

    @property
    def served(self) -> float:
        """q: the share of users whom it serves."""
        # Revenue has a jump or a kink only where tastes do: there from the right, because who is indifferent buys.
        shares = sorted({*((i + 1) / STEPS for i in range(STEPS)), *(1 - at for at in self.tastes.breaks)})
        losses = np.array([-self._revenue(share) for share in shares])
        return lowest(lambda share: -self._revenue(share), np.array(shares), losses)

    @property
    def captured(self) -> float:
        """The share of the value of accuracy that the monopolist takes account of; in (0, 1]."""
        return self._revenue(self.served) / self.tastes.mean

    def _revenue(self, share: float) -> float:
        return share * self.tastes.quantile(1 - share)


@dataclass(frozen=True)
class ProvisionOutcome:
    """What one institution provides: accuracy, at which ε, from which share of people, for what."""

    institution: str
    accuracy: float  # I = 1 − a, in (1 − m, 1)
    epsilon: float
    share: float  # h, of people who sell
    payment: float  # USD to all sellers together
    surplus: float  # USD: Σ η·I less what sellers lose


@dataclass(frozen=True)
class Provision:
    """The market for one count: people with costs, and users who value its accuracy."""

    population: float  # N
    costs: AmountDistribution  # USD per person per unit of ε
    total_value: float  # Σ η, USD per unit of accuracy
    largest_value: float  # max η, USD per unit of accuracy

    def __post_init__(self) -> None:
        if not (0 < self.largest_value <= self.total_value < math.inf and self.population > 1):
            raise InvalidPreferences(
                f"values of accuracy of {self.total_value:g} in all and {self.largest_value:g} for the keenest user",
                why="the keenest user's value is a part of the total, and more than one person is asked",
                instead="state 0 < largest value ≤ total value",
            )

    def epsilon(self, share: float) -> float:
        """ε = 1/(N·(1 − h)): m/(a·N)."""
        return 1 / (self.population * (1 - share))

    def accuracy(self, share: float) -> float:
        """I = 1 − m·(1 − h)."""
        return 1 - QUALITY * (1 - share)

    def auction_cost(self, share: float) -> float:
        """C_VCG, USD: one price for all sellers."""
        return self.costs.quantile(share) * share / (1 - share) if share > 0 else 0.0

    def sellers_cost(self, share: float) -> float:
        """C_sellers, USD."""
        return self.costs.below(share) / (1 - share)

    def everybody_cost(self, share: float) -> float:
        """C_everybody, USD."""
        return self.costs.mean / (1 - share)

    def outcomes(self) -> tuple[ProvisionOutcome, ...]:
        """What each institution provides, the least accurate by theory first."""
        return (
            self._provided("private provider, one price", self.largest_value, "auction"),
            self._provided("private provider, personal prices", self.largest_value, "sellers"),
            self._provided("Lindahl", self.total_value, "auction"),
            self._provided("planner, sellers' losses", self.total_value, "sellers"),
            self._provided("planner, everybody's losses", self.total_value, "everybody"),
        )

    def best_share(self, value: float, cost: str) -> float:
        """The share h at which value·I less a cost is largest."""
        total, marginal = self._costs[cost]
        stretches = [0.0, *self.costs.breaks, 1 - EDGE]
        found = [
            _highest(value, total, marginal, low=low, high=high) for low, high in pairwise(stretches) if high > low
        ]
        return max(found, key=lambda share: value * self.accuracy(share) - total(share))

    @property
    def _costs(self) -> dict[str, tuple[Callable[[float], float], Callable[[float], float]]]:
        """Each cost with its derivative in h."""
        return {
            "auction": (self.auction_cost, self._auction_slope),
            "sellers": (self.sellers_cost, self._sellers_slope),
            "everybody": (self.everybody_cost, lambda share: self.costs.mean / (1 - share) ** 2),
        }

    def _auction_slope(self, share: float) -> float:
        rest = 1 - share
        return self.costs.slope(share) * share / rest + self.costs.quantile(share) / rest**2

    def _sellers_slope(self, share: float) -> float:
        rest = 1 - share
        return self.costs.quantile(share) / rest + self.costs.below(share) / rest**2

    def _provided(self, institution: str, value: float, cost: str) -> ProvisionOutcome:
        share = self.best_share(value, cost)
        accuracy = self.accuracy(share)
        paid = self.sellers_cost(share) if "personal" in institution or "planner" in institution else None
        return ProvisionOutcome(
            institution=institution,
            accuracy=accuracy,
            epsilon=self.epsilon(share),
            share=share,
            payment=self.auction_cost(share) if paid is None else paid,
            surplus=self.total_value * accuracy - self.sellers_cost(share),
        )


def in_order(outcomes: tuple[ProvisionOutcome, ...], planner: str = "planner, sellers' losses") -> bool:
    """Whether I^VCG ≤ I^Lindahl ≤ I^planner."""
    by_name = {outcome.institution: outcome.accuracy for outcome in outcomes}
    ranked = [by_name[name] for name in ("private provider, one price", "Lindahl", planner)]
    return all(low <= high + ORDER for low, high in pairwise(ranked))


def _highest(
    value: float, total: Callable[[float], float], marginal: Callable[[float], float], *, low: float, high: float
) -> float:
    """The best share of one stretch on which Q is smooth; at its upper end Q is still the lower step's."""
    from scipy.optimize import brentq

    # Costs explode towards everybody: shares are spaced evenly in the logarithm of who is left.
    rest = np.geomspace(1 - low, max(1 - high, EDGE), POINTS + 1)
    shares: list[float] = [low, *(1 - rest[1:-1]).tolist(), high]
    gains: list[float] = [value * QUALITY * share - total(share) for share in shares]
    best = int(np.argmax(gains))

    def gain(share: float) -> float:
        return value * QUALITY - marginal(share)

    for left, right in pairwise(shares[max(best - 1, 0) : best + 2]):
        if gain(left) > 0 > gain(right):
            return float(brentq(gain, left, right, xtol=1e-15, rtol=8.9e-16))
    return shares[best]
