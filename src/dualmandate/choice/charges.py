"""Money that goes with the choice: prices at which everybody asks for the same loss, and taxes that make people honest.

Lindahl prices charge each group what the last unit of loss is worth to it; they add up to nothing. Clarke taxes charge
each group what its presence costs the others; they leave the decision with whoever values it, and are not returned.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualmandate.choice.optimum import best_within
from dualmandate.choice.society import NEXT_TO_NOTHING, Citizens, Profile, endless_peak
from dualmandate.errors import NoOptimum
from dualmandate.population.wording import money, number

SAME_LOSS = 1e-6  # relative difference at which two losses are one
LOOKED_AT = 2001  # losses at which what a group demands is compared, where it is not concave


@dataclass(frozen=True)
class LindahlPrice:
    """What a group pays (receives, where below 0) for each unit of loss, and what it then asks for."""

    name: str
    charge: float  # τ_g, USD a member per unit of loss
    payment: float  # τ_g·ε, USD a member
    group_payment: float  # USD, all members
    demand: float  # the loss that a member facing the charge likes best


@dataclass(frozen=True)
class Lindahl:
    """Charges at which every group asks for the utilitarian loss."""

    epsilon: float
    prices: tuple[LindahlPrice, ...]
    surplus: float  # USD per unit of loss that charges leave over: 0, or what a binding limit is worth at the margin
    supported: bool  # whether every group demands exactly this loss; not so where some are not concave

    def explain(self) -> str:
        """The charges in sentences."""
        lines = []
        for price in self.prices:
            verb = "pays" if price.charge >= 0 else "receives"
            lines.append(f"{price.name}: each member {verb} {money(abs(price.charge))} per unit of loss.")
        balance = (
            "The charges add up to nothing."
            if abs(self.surplus) == 0
            else (f"The charges leave {money(self.surplus)} per unit of loss: what the limit costs at the margin.")
        )
        asked = "everybody then asks for" if self.supported else "not everybody then asks for"
        return "\n".join([*lines, f"{balance} With them {asked} {number(self.epsilon, 6)}."])

    def __str__(self) -> str:
        return self.explain()


def lindahl(profile: Profile) -> Lindahl:
    """Individual prices of privacy loss at the utilitarian choice: τ_g = −D'_g/N_g − η_g·κ'_g, USD a member.

    Inside the limits Σ N_g·τ_g = −W' = 0. Source: Samuelson 1954 [Sam54], Lindahl 1919.
    """
    society, frontier = profile.society, profile.frontier
    best, _ = best_within(frontier, society.like, profile.bounds)
    epsilon = best.epsilon
    charges = [c.welfare.slope(frontier, epsilon) / c.size for c in society.citizens]
    interior = best.bound_by == "preferences"
    if interior:  # a root finder leaves a trace of W'; it is spread over everybody
        charges = [charge - math.fsum(np.array(charges) * society.sizes) / society.sizes.sum() for charge in charges]
    prices = tuple(
        LindahlPrice(c.name, charge, charge * epsilon, charge * epsilon * c.size, _demand(profile, i, charge, epsilon))
        for i, (c, charge) in enumerate(zip(society.citizens, charges, strict=True))
    )
    surplus = 0.0 if interior else math.fsum(price.charge * c.size for price, c in _paired(prices, society.citizens))
    supported = all(math.isclose(price.demand, epsilon, rel_tol=SAME_LOSS) for price in prices)
    return Lindahl(epsilon, prices, surplus, supported)


def _paired(prices: tuple[LindahlPrice, ...], citizens: tuple[Citizens, ...]) -> list[tuple[LindahlPrice, Citizens]]:
    return list(zip(prices, citizens, strict=True))


def _demand(profile: Profile, group: int, charge: float, chosen: float) -> float:
    """The loss at which cost and charge of a member together are least; the chosen one where none is clearly better."""
    land = profile.land
    low, high = land.grid.points[[0, -1]].tolist()
    losses = np.exp(np.linspace(low, high, LOOKED_AT))
    costs = land.costs(losses)[:, group] + charge * losses
    at_choice = float(land.costs(np.array([chosen]))[0, group]) + charge * chosen
    best = int(np.argmin(costs))
    clearly = costs[best] < at_choice - SAME_LOSS**2 * abs(at_choice)
    return float(losses[best]) if clearly else chosen


@dataclass(frozen=True)
class ClarkeTax:
    """What a group's presence costs the others: their best without it, less what they have with it."""

    name: str
    epsilon_without: float  # what the others would choose; 0 or infinite where they want none, or ever more
    tax: float  # USD, the whole group; ≥ 0

    def __str__(self) -> str:
        return f"{self.name}: without it {number(self.epsilon_without, 6)} would be chosen; it pays {money(self.tax)}"


def clarke_taxes(profile: Profile) -> tuple[ClarkeTax, ...]:
    """Pivot taxes of every group at the utilitarian choice; telling the truth is then best for each.

    max_ε Σ_{j≠g} W_j(ε) − Σ_{j≠g} W_j(ε̂). They are not returned: returning them would change what people report.
    Source: Clarke 1971 [Cla71].
    """
    society, frontier = profile.society, profile.frontier
    best, _ = best_within(frontier, society.like, profile.bounds)
    taxes = []
    for name in society.names:
        others = society.without(name)
        if others is None:
            taxes.append(ClarkeTax(name, best.epsilon, 0.0))
            continue
        try:
            alone, _ = best_within(frontier, others, profile.bounds)
            wanted, reached = alone.epsilon, alone.welfare
        except NoOptimum:
            wanted = endless_peak(frontier, others)
            most = -others.most_privacy_cost - others.least_data_loss
            reached = most if math.isinf(wanted) else others.at(frontier, NEXT_TO_NOTHING)
        taxes.append(ClarkeTax(name, wanted, max(reached - others.at(frontier, best.epsilon), 0.0)))
    return tuple(taxes)
