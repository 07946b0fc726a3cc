"""Markets for privacy and accuracy beside a planner: auctions, studies that pay, private providers, monopolists.

The auctions are MinCostAuction and FairQuery of Ghosh and Roth [GR15]. Everybody says what one unit of ε would cost
her. The k cheapest sell; the others' records are not used at all, and their answers are filled in with one half each.
One count is published with Laplace noise. Both auctions pay every seller the same, at least her cost, and no lie about
one's own cost pays.

MinCostAuction buys a stated accuracy; FairQuery buys as much as a budget allows.

A study pays its participants for what they may lose: which privacy loss and how many people does a budget allow?
Somebody whose expected harm from bad events is E when her record is not used may, with her record in an ε-private
study, expect up to e^ε·E; so she asks for (e^ε − 1)·E. The study estimates a proportion with an error of at most T; its
chance of missing that is at most 2·e^(−N·T²/12) + e^(−T·N·ε/2): sampling, and Laplace noise. Source: [HGH14], as a
public implementation of it states them.

For N people the smallest ε that is accurate enough is (2/(T·N))·ln(1/(α − 2·e^(−N·T²/12))). More people always make a
study cheaper, because what all of them together may lose falls: only a cost of recruiting them ends that.

The model of "Suboptimal provision" [ASSV19], on the technology of Ghosh and Roth: to publish one count with the
accuracy I = 1 − a, the share h = 1 − a/m of N people must be bought, at ε = m/(a·N), m = ½ + ln 3. Costs per unit of ε
have the quantile function Q (Q(h) is the amount that the share h of people does not exceed; markets buy from the
cheapest first); person i would pay η_i for one more unit of I.

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

Nobody need be paid where the truth pays by itself [NOS12], [Xia13], [CCKMV16]. Who reports falsely stands to lose
τ, the chance to be found out times what that costs her. What a lie saves her is at most the privacy cost κ(ε) of her
report, which only an upper bound is known of; what it wins her by moving the published numbers is at most (e^ε − 1)·u,
u the most that they could be worth to her, because her report changes no probability by more than the factor e^ε
[MT07]. She reports truthfully, whatever others do, where τ ≥ κ(ε) + (e^ε − 1)·u; the largest ε of all is that of
whoever has least reason to.

On a program's own frontier everybody's record is used, so everybody must be paid: one price for all must satisfy the
most reluctant, N·max κ_g; personal prices pay each her own κ_g. A private provider is paid by the keenest user alone, a
monopolist by those whom it serves, Lindahl prices by all. Each maximizes what it takes account of less what it pays,
and is judged by society's welfare at the ε it arrives at.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import NormalDist
from typing import Protocol

import numpy as np

from dualmandate.choice.optimum import Limits, choose
from dualmandate.choice.welfare import LARGEST_EXPONENT, InformationUtility, PopulationGroup, SocialWelfare
from dualmandate.errors import ConflictingLimits, InvalidPreferences, Refusal
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import lowest, root
from dualmandate.population import PrivacyMeasure
from dualmandate.population.wording import money, number, percent

QUALITY = 0.5 + math.log(3)  # This is m: with ε = m/(α·n) an error stays within α·n with probability of at least 2/3.
MOST_PARTICIPANTS = 10**12
STEPS = 2000  # The share served is looked for in this many steps before it is polished.
POINTS = 400  # Each smooth stretch of shares has this many points.
EDGE = 1e-12  # A share comes no nearer than this to everybody.
ORDER = 1e-9  # Accuracies this near to each other are equal.
SHARES_AGREE = 1e-9  # Shares add up to 1 within this.
ROUNDING = 1e-13  # A sum of shares is rounded by less than this.
FIRST_LOSS = 1e-9  # Here the cost of a first, small loss is read off forms that are not linear.
PLANNER = "planner"
TRUTHFUL, STUDY = "planner, truthful reports", "study that pays for harm"
MIN_COST, FAIR = "MinCostAuction", "FairQuery"
NORMAL = NormalDist()


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
        return self.payment * len(self.sellers)


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
            f"a budget of {budget:g}", why="nothing can be bought with it", instead="state a budget above 0"
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
            instead="state the costs of at least two people, in money per unit of epsilon",
        )
    return sorted(range(len(costs)), key=lambda person: costs[person])


@dataclass(frozen=True)
class StudyDesign:
    """How a study is run: at which privacy loss, with how many people, and what it pays."""

    epsilon: float
    participants: int
    payment: float  # USD to each participant, for what she may lose
    cost: float  # USD in all, recruiting included


@dataclass(frozen=True)
class CompensatedStudy:
    """A proportion to be estimated, and what its participants must be paid."""

    harm: float  # E, USD: expected harm of one whose record is not used
    target_error: float  # T in (0, 1), of the proportion
    failure_probability: float  # α in (0, 1): chance of a larger error
    recruiting: float = 0.0  # USD a participant, besides her payment

    def __post_init__(self) -> None:
        if not (0 < self.target_error < 1 and 0 < self.failure_probability < 1):
            raise InvalidPreferences(
                f"a target error of {self.target_error:g} with the failure probability {self.failure_probability:g}",
                why="a proportion lies between 0 and 1, and so do its error and a probability",
                instead="state both strictly between 0 and 1",
            )
        if not (0 < self.harm < math.inf and 0 <= self.recruiting < math.inf):
            raise InvalidPreferences(
                f"a harm of {self.harm:g} and a cost of recruiting of {self.recruiting:g}",
                why="who has nothing to lose need not be paid, and nobody is paid to be recruited",
                instead="state a finite harm above 0 and a finite cost of at least 0",
            )

    def payment(self, epsilon: float) -> float:
        """(e^ε − 1)·E, USD to each participant."""
        return math.expm1(epsilon) * self.harm

    def failure(self, epsilon: float, participants: float) -> float:
        """2·e^(−N·T²/12) + e^(−T·N·ε/2): the most that the chance of a larger error can be."""
        noise = math.exp(-self.target_error * participants * epsilon / 2)
        return 2 * math.exp(-participants * self.target_error**2 / 12) + noise

    @property
    def least_participants(self) -> int:
        """The fewest people with which some privacy loss is accurate enough: N > (12/T²)·ln(2/α)."""
        return math.floor(12 / self.target_error**2 * math.log(2 / self.failure_probability)) + 1

    def least_epsilon(self, participants: float) -> float:
        """The smallest ε that is accurate enough with so many people; refused where they are too few."""
        left = self.failure_probability - 2 * math.exp(-participants * self.target_error**2 / 12)
        if left <= 0:
            raise ConflictingLimits(
                f"{participants:,.0f} participants are too few for an error of at most {self.target_error:g}",
                why=f"even without noise their sample misses it more often than {self.failure_probability:g}",
                instead=f"ask at least {self.least_participants:,} people, or allow a larger error",
            )
        return -2 / (self.target_error * participants) * math.log(left)

    def participants(self, epsilon: float) -> int:
        """The fewest people with which this ε is accurate enough."""
        found = 1 + bisect_left(
            range(1, MOST_PARTICIPANTS + 1), True, key=lambda n: self.failure(epsilon, n) <= self.failure_probability
        )
        if found > MOST_PARTICIPANTS:
            raise ConflictingLimits(
                f"no study is accurate enough at epsilon = {epsilon:g}",
                why=f"not even {MOST_PARTICIPANTS:,} participants would do",
                instead="allow a larger epsilon or a larger error",
            )
        return found

    def design(self, epsilon: float, participants: int) -> StudyDesign:
        """What such a study pays."""
        payment = self.payment(epsilon)
        return StudyDesign(epsilon, participants, payment, (payment + self.recruiting) * participants)

    def with_participants(self, participants: int) -> StudyDesign:
        """The cheapest study with exactly so many people: at the smallest ε that is accurate enough."""
        return self.design(self.least_epsilon(participants), participants)

    def cheapest(self, population: int) -> StudyDesign:
        """The cheapest study with at most `population` people: all, unless recruiting costs more than it saves."""
        self.least_epsilon(population)  # refuses where all of them are too few
        sizes = range(self.least_participants, population)
        falls = bisect_left(
            sizes, True, key=lambda n: self.with_participants(n).cost <= self.with_participants(n + 1).cost
        )
        return self.with_participants(self.least_participants + falls)

    def feasible(self, budget: float, population: int) -> tuple[StudyDesign, StudyDesign] | None:
        """The smallest and the largest study that a budget pays for; None where it pays for none.

        Everything between them is feasible too: the cost of a study falls and then rises with its size.
        """
        best = self.cheapest(population)
        if best.cost > budget:
            return None
        smaller = range(self.least_participants, best.participants + 1)
        larger = range(best.participants, population + 1)
        fewest = bisect_left(smaller, True, key=lambda n: self.with_participants(n).cost <= budget)
        most = bisect_left(larger, True, key=lambda n: self.with_participants(n).cost > budget) - 1
        return self.with_participants(smaller[fewest]), self.with_participants(larger[most])


class AmountDistribution(Protocol):
    """Amounts of money per unit among people, ≥ 0; `share` is always in [0, 1]."""

    @property
    def mean(self) -> float:
        """The mean amount."""

    @property
    def breaks(self) -> tuple[float, ...]:
        """Shares strictly between 0 and 1 at which Q jumps; between them it is smooth."""

    def quantile(self, share: float) -> float:
        """Q: the smallest amount that at least this share of people does not exceed."""

    def slope(self, share: float) -> float:
        """Q′ where Q is smooth; ≥ 0."""

    def below(self, share: float) -> float:
        """∫₀^share Q: what the cheapest share costs, per head of everybody."""


@dataclass(frozen=True)
class UniformAmounts:
    """Every amount between two is as frequent as any other."""

    least: float = 0.0
    largest: float = 1.0
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
    """Most people care little and a few care much: the logarithm is normal, with a mean and a spread s.

    Q = exp(m + s·z) with m = ln mean − s²/2, Q′ = Q·s/φ(z), and ∫Q = mean·Φ(z − s).
    """

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
        if share <= 0:
            return 0.0
        return math.inf if share >= 1 else math.exp(self._location + self.spread * NORMAL.inv_cdf(share))

    def slope(self, share: float) -> float:
        if not 0 < share < 1:
            return 0.0 if share <= 0 else math.inf
        z = NORMAL.inv_cdf(share)
        return self.quantile(share) * self.spread * math.sqrt(2 * math.pi) * math.exp(z * z / 2)

    def below(self, share: float) -> float:
        if not 0 < share < 1:
            return 0.0 if share <= 0 else self.mean
        return self.mean * 0.5 * math.erfc((self.spread - NORMAL.inv_cdf(share)) / math.sqrt(2))

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


@dataclass(frozen=True)
class Monopoly:
    """How much of the value of accuracy a monopolist can take, and from how many users."""

    tastes: AmountDistribution = field(default_factory=UniformAmounts)

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
        accuracy, lost = self.accuracy(share), self.sellers_cost(share)
        paid = lost if "personal" in institution or "planner" in institution else self.auction_cost(share)
        surplus = self.total_value * accuracy - lost
        return ProvisionOutcome(institution, accuracy, self.epsilon(share), share, paid, surplus)


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


@dataclass(frozen=True)
class Market:
    """What must be known of a market, besides the program: who values accuracy, and what buyers can pay."""

    largest_user_share: float  # of the value of accuracy, that of the keenest user: max η/Σ η, in (0, 1]
    tastes: AmountDistribution = field(default_factory=UniformAmounts)  # of users, for the monopolist
    budget: float | None = None  # B, USD
    harm: float | None = None  # E, USD a person: expected harm of one whose record is not used
    target_error: float | None = None  # T and α of the auctions: share of the population by which one count may be off
    failure_probability: float = 0.05  # chance of a larger error in the study that pays for harm
    stake: float | None = None  # τ, USD a person: what one who reports falsely stands to lose
    influence: float = 0.0  # u ≥ 0, USD a person: the most that published numbers could be worth to one person

    def __post_init__(self) -> None:
        if not 0 <= self.influence < math.inf:
            raise InvalidPreferences(
                f"numbers that could be worth {self.influence:g} in money to one person",
                why="what somebody could win is finite, and not less than nothing",
                instead="state a finite amount of at least 0",
            )
        if not 0 < self.largest_user_share <= 1:
            raise InvalidPreferences(
                f"a largest_user_share of {self.largest_user_share:g}",
                why="the keenest user holds a part of the value of accuracy, at most all of it",
                instead="state a share above 0, at most 1",
            )
        for name, amount in (("budget", self.budget), ("harm", self.harm), ("stake", self.stake)):
            if amount is not None and not (math.isfinite(amount) and amount > 0):
                raise InvalidPreferences(
                    f"a {name} of {amount:g}",
                    why="nothing is bought, and nobody is kept from lying, with nothing",
                    instead="state a finite amount above 0, or leave it out",
                )


@dataclass(frozen=True)
class Institution:
    """What one institution chooses, pays and costs; `why` says what it is, or why it chooses nothing."""

    name: str
    epsilon: float | None
    accuracy: float | None  # I ≤ 0, on the program's frontier
    payment: float | None  # USD to one person; the mean where they differ
    total: float | None  # USD to all
    welfare: float | None  # USD, society's
    forgone: float | None  # USD, welfare of the planner less this; None for the planner
    why: str
    one_count: bool = False  # whether it buys one count of everybody, and not the program's tables


def compare_markets(
    frontier: Frontier, welfare: SocialWelfare, market: Market, limits: Limits | None = None
) -> tuple[Institution, ...]:
    """Every institution on the program's own numbers, the planner first. Losses must be counted in ε for auctions."""
    limits = limits or Limits()
    planned = choose(frontier, welfare, limits)
    table = _MarketTable(frontier, welfare, limits, best=planned.welfare)
    rows = [table.at(PLANNER, planned.epsilon, None, "maximizes society's welfare; nobody is paid")]
    for name, share, one_price, why in _providers(market):
        seen = _takes_account(welfare, share, one_price=one_price)
        try:
            chosen = choose(frontier, seen, limits)
        except Refusal as refusal:
            rows.append(Institution(name, None, None, None, None, None, None, refusal.what))
        else:
            rows.append(table.at(name, chosen.epsilon, _paid(welfare, chosen.epsilon, one_price=one_price), why))
    rows += _budgeted(table, market)
    return tuple(rows)


def cost_distribution(welfare: SocialWelfare) -> GroupedAmounts:
    """What a first unit of loss costs people, by group: κ_g′ near no loss."""
    total = welfare.population_size
    amounts = tuple(group.information_utility.marginal_cost(FIRST_LOSS) for group in welfare.groups)
    return GroupedAmounts(amounts, tuple(group.size / total for group in welfare.groups))


def _providers(market: Market) -> Iterator[tuple[str, float, bool, str]]:
    """Name, share of the value of accuracy that counts, whether one price is paid, and what it is."""
    share, taken = market.largest_user_share, Monopoly(market.tastes).captured
    yield "Lindahl", 1.0, True, "every user pays what accuracy is worth to her; one price for everybody in the data"
    yield (
        "monopolist",
        taken,
        False,
        f"serves {percent(Monopoly(market.tastes).served)} of users and keeps {percent(taken)}",
    )
    yield "private provider, personal prices", share, False, "paid by the keenest user; pays each her own cost"
    yield "private provider, one price", share, True, "paid by the keenest user; one price for everybody in the data"


@dataclass(frozen=True)
class _MarketTable:
    frontier: Frontier
    welfare: SocialWelfare
    limits: Limits
    best: float

    def at(self, name: str, epsilon: float, total: float | None, why: str) -> Institution:
        reached = self.welfare.at(self.frontier, epsilon)
        each = None if total is None else total / self.welfare.as_at(epsilon).population_size
        forgone = None if name == PLANNER else self.best - reached
        return Institution(name, epsilon, self.frontier.accuracy(epsilon), each, total, reached, forgone, why)


def _takes_account(welfare: SocialWelfare, share: float, *, one_price: bool) -> SocialWelfare:
    """Society as an institution sees it: a share of the value of accuracy, and what it must pay people."""
    if welfare.other_losses:
        raise InvalidPreferences(
            "losses that are not proportional to expected errors cannot be shared out",
            why="an institution takes account of a share of the value of each table's accuracy",
            instead="state the value of accuracy table by table",
        )
    values = tuple(value.scaled(share) for value in welfare.table_values)
    groups = tuple(replace(group, relative_privacy_weight=1.0) for group in welfare.groups)
    if one_price:
        utilities = tuple(group.information_utility for group in welfare.groups)
        response = welfare.groups[0].response  # one for all
        groups = (PopulationGroup("everybody", welfare.population_size, OnePrice(utilities), response=response),)
    return replace(welfare, groups=groups, table_values=values)


def _paid(welfare: SocialWelfare, epsilon: float, *, one_price: bool) -> float:
    costs = [(group.size, group.cost(epsilon)) for group in welfare.groups]
    if one_price:
        return welfare.population_size * max(cost for _, cost in costs)
    return math.fsum(size * cost for size, cost in costs)


def _budgeted(table: _MarketTable, market: Market) -> Iterator[Institution]:
    """Those who keep people truthful, buy with a budget or for an accuracy; where the file states it, and in ε."""
    if table.frontier.privacy_measure is not PrivacyMeasure.PURE_DP:
        yield from _without_epsilon(market)
        return
    if market.stake is not None:
        yield _truthful(table, market)
    people = table.welfare.population_size
    costs = cost_distribution(table.welfare)
    if market.budget is not None and market.harm is not None:
        affordable = math.log1p(market.budget / (market.harm * people))
        highest = table.limits.bounds(table.frontier, table.welfare).highest
        spent = affordable if highest is None else min(affordable, highest)  # a budget lifts no limit
        total = market.budget if spent == affordable else people * market.harm * math.expm1(spent)
        why = f"pays everybody for harm, {money(total, table.welfare.currency)} in all{_needed(market, people, spent)}"
        yield table.at(STUDY, spent, total, why)
    if market.target_error is not None:
        yield _min_cost(table, market.target_error, costs)
    if market.budget is not None:
        share = _affordable_share(costs, market.budget, people)
        if share > 0:
            next_asks = costs.quantile(min(share + 1 / people, 1.0)) / (people * (1 - share))
            price = min(market.budget / (share * people), next_asks)
            spent_on = money(market.budget, table.welfare.currency)
            why = f"buys {percent(share)} of the people with {spent_on}, for one count"
            yield _one_count(table, FAIR, 1 / (people * (1 - share)), share * people * price, why)


def _without_epsilon(market: Market) -> Iterator[Institution]:
    """What the file asks for and has no meaning where the privacy loss is a rho."""
    studied = market.budget is not None and market.harm is not None
    for name, stated in (
        (TRUTHFUL, market.stake is not None),
        (STUDY, studied),
        (MIN_COST, market.target_error is not None),
        (FAIR, market.budget is not None),
    ):
        if stated:
            why = "its rule is about a pure epsilon, and here the privacy loss is a rho"
            yield Institution(name, None, None, None, None, None, None, why)


def _min_cost(table: _MarketTable, target_error: float, costs: AmountDistribution) -> Institution:
    """An auction for an accuracy; it chooses nothing where all would have to sell."""
    name, people, off = MIN_COST, table.welfare.population_size, percent(target_error)
    share = 1 - target_error / QUALITY
    if math.ceil(share * people) >= people:
        least = percent(QUALITY / people)
        why = f"one count that is off by at most {off} of the people needs all of them, and nobody is left to name the"
        return Institution(name, None, None, None, None, None, None, f"{why} price; from {least} on it can be bought")
    epsilon = QUALITY / (target_error * people)
    price = costs.quantile(min(share + 1 / people, 1.0)) * epsilon
    why = f"buys {percent(share)} of the people for one count that is off by at most {off} of them"
    return _one_count(table, name, epsilon, share * people * price, why)


def truthful_epsilon(market: Market, utility: InformationUtility) -> float:
    """The largest ε at which the truth pays for one with this cost of privacy loss; infinite where it always does."""
    stake = market.stake
    assert stake is not None

    def left(log_epsilon: float) -> float:
        epsilon = math.exp(log_epsilon)
        return stake - utility.cost(epsilon) - market.influence * math.expm1(min(epsilon, LARGEST_EXPONENT))

    if market.influence == 0 and utility.most <= stake:
        return math.inf
    return math.exp(root(left, 0.0, 0.0, step=2.0))


def _truthful(table: _MarketTable, market: Market) -> Institution:
    """The planner who is held to a loss at which everybody reports truthfully, though nobody is paid."""
    name, welfare = TRUTHFUL, table.welfare
    assert market.stake is not None
    most = {group: truthful_epsilon(market, group.information_utility) for group in welfare.groups}
    limit = min(most.values())
    try:
        planned = choose(table.frontier, welfare, table.limits).epsilon
        capped = min(limit, math.inf if (own := table.limits.largest_epsilon) is None else float(own))
        held = table.limits if math.isinf(capped) else replace(table.limits, largest_epsilon=capped)
        chosen = choose(table.frontier, welfare, held).epsilon
    except Refusal as refusal:
        return Institution(name, None, None, None, None, None, None, refusal.what)
    share = math.fsum(group.size for group in welfare.groups if most[group] >= planned) / welfare.population_size
    dearest = max(group.information_utility.cost(planned) for group in welfare.groups)
    lacking = dearest + market.influence * math.expm1(min(planned, LARGEST_EXPONENT)) - market.stake
    where = "at any epsilon" if math.isinf(limit) else f"up to epsilon = {number(limit)}"
    stake, more = (money(amount, welfare.currency) for amount in (market.stake, lacking))
    why = f"with {stake} at stake for a false report the truth pays for everybody {where}"
    if lacking > 0:
        why += f"; at the planner's for {percent(share)} of people, and for all with {more} more at stake"
    return table.at(name, chosen, None, why)


def _needed(market: Market, people: float, affordable: float) -> str:
    """Whether the budget also pays for the accuracy that the study was asked for."""
    if market.target_error is None:
        return ""
    assert market.harm is not None
    study = CompensatedStudy(market.harm, market.target_error, market.failure_probability)
    try:
        needed = study.least_epsilon(people)
    except Refusal as refusal:  # advice that cannot be given is no reason to plan nothing
        return f"; {refusal.what}"
    verdict = "enough" if affordable >= needed else "too little"
    within = percent(market.target_error)
    return f": {verdict} for one proportion within {within}, which needs epsilon = {number(needed, 3)}"


def _one_count(table: _MarketTable, name: str, epsilon: float, total: float, why: str) -> Institution:
    """An auction's row: its ε buys one count of everybody, not the program's tables, and is judged on these."""
    return replace(table.at(name, epsilon, total, why), payment=None, one_count=True)


def _affordable_share(costs: AmountDistribution, budget: float, people: float) -> float:
    """The largest share h, at most all but one, with Q(h)·h/(1 − h) ≤ B: what is asked rises with h."""
    low, high = 0.0, 1 - 1 / people
    if costs.quantile(high) * high <= budget * (1 - high):
        return high
    while high - low > 1e-15 * high:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if costs.quantile(middle) * middle <= budget * (1 - middle) else (low, middle)
    return low


@dataclass(frozen=True)
class OnePrice:
    """What one price for everybody comes to: the cost of whoever is the most reluctant at each loss."""

    members: tuple[InformationUtility, ...]
    form = "one price"

    @property
    def parameter(self) -> float:
        return max(member.parameter for member in self.members)

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return self.members[0].privacy_measure

    @property
    def convex(self) -> bool:
        return all(member.convex for member in self.members)

    @property
    def most(self) -> float:
        return max(member.most for member in self.members)

    def cost(self, loss: float) -> float:
        return max(member.cost(loss) for member in self.members)

    def marginal_cost(self, loss: float) -> float:
        return self._dearest(loss).marginal_cost(loss)

    def log_marginal_cost(self, loss: float) -> float:
        return self._dearest(loss).log_marginal_cost(loss)

    def scaled(self, factor: float) -> OnePrice:
        return OnePrice(tuple(member.scaled(factor) for member in self.members))

    def unit(self, protected_unit: str, currency: str) -> str:
        return self.members[0].unit(protected_unit, currency)

    def _dearest(self, loss: float) -> InformationUtility:
        return max(self.members, key=lambda member: member.cost(loss))
