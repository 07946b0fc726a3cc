"""Buying the use of people's records: in an auction, or by paying for what participants may lose.

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
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from dualmandate.errors import ConflictingLimits, InvalidPreferences
from dualmandate.population.wording import number

QUALITY = 0.5 + math.log(3)  # This is m: with ε = m/(α·n) an error stays within α·n with probability of at least 2/3.
MOST_PARTICIPANTS = 10**12


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
                f"a harm of {self.harm:g} USD and a cost of recruiting of {self.recruiting:g} USD",
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
