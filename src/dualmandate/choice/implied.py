"""The inverse problem: what weight, cost or price would make a privacy loss that someone chose the right one?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dualmandate.choice.optimum import choose
from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import InvalidLoss, InvalidPreferences, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.wording import number

SAME_LOSS = 1e-6  # Two losses that differ by less than this share are one.


@dataclass(frozen=True)
class Implied:
    """The preference under which a given loss balances gain and cost.

    `rationalizes` says whether that loss is then the optimum: where welfare is not concave, balance may also mean a
    trough, or a lower peak.
    """

    name: str  # key of a program file
    value: float
    unit: str
    factor: float  # `value` over what is stated now
    rationalizes: bool

    def __str__(self) -> str:
        verdict = "" if self.rationalizes else "; but even then another loss would be better"
        return f"{self.name} = {number(self.value, 7)} {self.unit}{verdict}".replace(" ;", ";").rstrip()


def implied_weight(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> Implied:
    """η, one for everybody, under which `epsilon` is chosen: marginal data loss over marginal cost of privacy."""
    equal = _with_weight(welfare, 1.0)
    gain, cost = _margins(frontier, equal, epsilon)
    weight = gain / cost
    stated = {group.relative_privacy_weight for group in welfare.groups}
    factor = weight / stated.pop() if len(stated) == 1 and 0 not in stated else math.nan
    rationalizes = _is_optimal(frontier, _with_weight(welfare, weight), epsilon)
    return Implied("relative_privacy_weight", weight, "", factor, rationalizes)


def implied_cost(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> Implied:
    """The mean disclosure cost under which `epsilon` is chosen, every group's cost scaled alike."""
    gain, cost = _margins(frontier, welfare, epsilon)
    forms = {group.information_utility.form for group in welfare.groups}
    if len(forms) > 1:
        raise InvalidPreferences(
            f"groups differ in form: {', '.join(sorted(forms))}",
            why="their costs are in different units and have no mean",
            instead="ask for the implied weight",
        )
    factor = gain / cost
    total = math.fsum(group.size * group.information_utility.parameter for group in welfare.groups)
    scaled = tuple(
        replace(group, information_utility=group.information_utility.scaled(factor)) for group in welfare.groups
    )
    return Implied(
        "mean_disclosure_cost",
        factor * total / welfare.population_size,
        welfare.groups[0].information_utility.unit(welfare.protected_unit),
        factor,
        _is_optimal(frontier, replace(welfare, groups=scaled), epsilon),
    )


def implied_price(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> Implied:
    """The price of squared misallocation under which `epsilon` is chosen; tables without a price keep their value."""
    gain, cost = _margins(frontier, welfare, epsilon)
    slopes = welfare.table_marginal_losses(frontier, epsilon)
    priced = [value for value in welfare.table_values if value.price is not None and value.measure == "squared"]
    prices = {value.price for value in priced}
    priced_gain = -math.fsum(slopes[value.table] for value in priced)
    if len(prices) != 1 or priced_gain <= 0:
        raise InvalidPreferences(
            "no one price of squared misallocation is stated",
            why="only consequences in squared dollars that share a price imply one",
            instead="state consequence and price_of_squared_misallocation, or ask for the implied weight or cost",
        )
    needed = cost - (gain - priced_gain)
    if needed < 0:
        raise InvalidPreferences(
            f"no price makes {frontier.privacy_measure} = {epsilon:g} the right choice",
            why="tables that have no price are alone worth more loss than that",
            instead="ask for the implied weight or cost",
        )
    price = (prices.pop() or 0.0) * needed / priced_gain
    values = tuple(value.at_price(price) if value in priced else value for value in welfare.table_values)
    rationalizes = _is_optimal(frontier, replace(welfare, table_values=values), epsilon)
    return Implied("price_of_squared_misallocation", price, "USD per USD^2", needed / priced_gain, rationalizes)


def implied_coefficient_ratio(first: PrivacyLoss, second: PrivacyLoss) -> Fraction:
    """How much more the tables behind the first loss must be worth than those behind the second.

    Two releases to the same people, at one linear cost of loss: with errors c/ρ each chooses c/ρ² = cost, so the
    value-weighted coefficients stand as (ρ₁/ρ₂)²; with errors c/ε² as (ε₁/ε₂)³. No frontier is needed for this ratio;
    a weight or a cost cannot be had without one.
    """
    if first.privacy_measure is not second.privacy_measure or first.failure_probability or second.failure_probability:
        raise InvalidLoss(
            f"{first} cannot be compared with {second}",
            why="the two losses must be in one currency, without δ",
            instead="state both in rho, or both in epsilon",
        )
    return (first.amount / second.amount) ** (2 if first.privacy_measure is PrivacyMeasure.ZCDP else 3)


def _with_weight(welfare: SocialWelfare, weight: float) -> SocialWelfare:
    groups = tuple(replace(group, relative_privacy_weight=weight) for group in welfare.groups)
    return replace(welfare, groups=groups)


def _margins(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> tuple[float, float]:
    """What one more unit of loss saves and costs, USD; both above 0."""
    if not (math.isfinite(epsilon) and epsilon > 0):
        raise InvalidLoss(
            f"a chosen {frontier.privacy_measure} of {epsilon}",
            why="noise is set by a positive, finite loss",
            instead=f"state a positive {frontier.privacy_measure}",
        )
    welfare.check(frontier)
    gain, cost = -welfare.marginal_data_loss(frontier, epsilon), welfare.marginal_privacy_cost(epsilon)
    if not (0 < gain < math.inf and 0 < cost < math.inf):
        raise InvalidPreferences(
            f"at {frontier.privacy_measure} = {epsilon:g} one more unit saves {gain:g} and costs {cost:g} USD",
            why="a choice implies a preference only where it weighs something against something",
            instead="state costs and values above 0",
        )
    return gain, cost


def _is_optimal(frontier: Frontier, welfare: SocialWelfare, epsilon: float) -> bool:
    try:
        best = choose(frontier, welfare)
    except NoOptimum:
        return False
    return math.isclose(best.epsilon, epsilon, rel_tol=SAME_LOSS)
