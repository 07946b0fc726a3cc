"""A study that pays its participants for what they may lose: which privacy loss and how many people a budget allows.

Somebody whose expected harm from bad events is E when her record is not used may, with her record in an ε-private
study, expect up to e^ε·E; so she asks for (e^ε − 1)·E. The study estimates a proportion with an error of at most T;
its chance of missing that is at most 2·e^(−N·T²/12) + e^(−T·N·ε/2): sampling, and Laplace noise. Source: [HGH14],
as a public implementation of it states them.

For N people the smallest ε that is accurate enough is (2/(T·N))·ln(1/(α − 2·e^(−N·T²/12))). More people always make a
study cheaper, because what all of them together may lose falls: only a cost of recruiting them ends that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dualmandate.errors import ConflictingLimits, InvalidPreferences

MOST_PARTICIPANTS = 10**12


@dataclass(frozen=True)
class Design:
    """How a study is run: at which privacy loss, with how many people, and what it pays."""

    epsilon: float
    participants: int
    payment: float  # USD to each participant, for what she may lose
    cost: float  # USD in all, recruiting included


@dataclass(frozen=True)
class Study:
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
        low, high = 0, 1
        while self.failure(epsilon, high) > self.failure_probability:
            low, high = high, 2 * high
            if high > MOST_PARTICIPANTS:
                raise ConflictingLimits(
                    f"no study is accurate enough at epsilon = {epsilon:g}",
                    why=f"not even {MOST_PARTICIPANTS:,} participants would do",
                    instead="allow a larger epsilon or a larger error",
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.failure(epsilon, middle) > self.failure_probability else (low, middle)
        return high

    def design(self, epsilon: float, participants: int) -> Design:
        """What such a study pays."""
        payment = self.payment(epsilon)
        return Design(epsilon, participants, payment, (payment + self.recruiting) * participants)

    def with_participants(self, participants: int) -> Design:
        """The cheapest study with exactly so many people: at the smallest ε that is accurate enough."""
        return self.design(self.least_epsilon(participants), participants)

    def cheapest(self, population: int) -> Design:
        """The cheapest study with at most `population` people: all, unless recruiting costs more than it saves."""
        low, high = self.least_participants, population
        self.least_epsilon(population)
        while high - low > 2:
            third = (high - low) // 3
            left, right = low + third, high - third
            if self.with_participants(left).cost <= self.with_participants(right).cost:
                high = right
            else:
                low = left
        return min((self.with_participants(n) for n in range(low, high + 1)), key=lambda design: design.cost)

    def feasible(self, budget: float, population: int) -> tuple[Design, Design] | None:
        """The smallest and the largest study that a budget pays for; None where it pays for none.

        Everything between them is feasible too: the cost of a study falls and then rises with its size.
        """
        best = self.cheapest(population)
        if best.cost > budget:
            return None
        return (
            self.with_participants(self._edge(budget, best.participants, self.least_participants - 1)),
            self.with_participants(self._edge(budget, best.participants, population + 1)),
        )

    def _edge(self, budget: float, inside: int, outside: int) -> int:
        """The last size that the budget pays for, from one that it does towards one that it does not."""
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
            if self.with_participants(middle).cost <= budget:
                inside = middle
            else:
                outside = middle
        return inside
