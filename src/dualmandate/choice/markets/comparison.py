"""A program under other institutions: what firms, auctions and studies would choose on its frontier.

On a program's frontier everybody's record is used, so everybody must be paid. An institution differs from the planner
in how much of the value of accuracy it takes account of, and in what it pays people:

* one price for all must satisfy the most reluctant, N·max κ_g; personal prices pay each her own κ_g;
* a private provider is paid by the keenest user alone, a monopolist by those whom it serves, Lindahl prices by all.

Each maximizes what it takes account of less what it pays, and is judged by society's welfare at the ε it arrives at.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from dualmandate.choice.information import InformationUtility
from dualmandate.choice.limits import Limits
from dualmandate.choice.markets.auctions import QUALITY, CompensatedStudy
from dualmandate.choice.markets.distributions import AmountDistribution, GroupedAmounts
from dualmandate.choice.markets.provision import EVEN_TASTES, Monopoly
from dualmandate.choice.optimum import choose
from dualmandate.choice.welfare import PopulationGroup, SocialWelfare
from dualmandate.errors import InvalidPreferences, Refusal
from dualmandate.frontier.frontier import Frontier
from dualmandate.population import PrivacyMeasure
from dualmandate.population.wording import money, number

FIRST_LOSS = 1e-9  # Here the cost of a first, small loss is read off forms that are not linear.
PLANNER = "planner"


@dataclass(frozen=True)
class Market:
    """What must be known of a market, besides the program: who values accuracy, and what buyers can pay."""

    largest_user_share: float  # of the value of accuracy, that of the keenest user: max η/Σ η, in (0, 1]
    tastes: AmountDistribution = EVEN_TASTES  # of users, for the monopolist
    budget: float | None = None  # B, USD
    harm: float | None = None  # E, USD a person: expected harm of one whose record is not used
    target_error: float | None = None  # T and α of the auctions: share of the population by which one count may be off
    failure_probability: float = 0.05  # chance of a larger error in the study that pays for harm

    def __post_init__(self) -> None:
        if not 0 < self.largest_user_share <= 1:
            raise InvalidPreferences(
                f"a largest_user_share of {self.largest_user_share:g}",
                why="the keenest user holds a part of the value of accuracy, at most all of it",
                instead="state a share above 0, at most 1",
            )
        for name, amount in (("budget", self.budget), ("harm", self.harm)):
            if amount is not None and not (math.isfinite(amount) and amount > 0):
                raise InvalidPreferences(
                    f"a {name} of {amount:g} USD",
                    why="who pays nothing, or nothing for harm, buys no records",
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
    yield "monopolist", taken, False, f"serves {Monopoly(market.tastes).served:.0%} of users and keeps {taken:.0%}"
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
        each = None if total is None else total / self.welfare.population_size
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
        groups = (PopulationGroup("everybody", welfare.population_size, OnePrice(utilities)),)
    return replace(welfare, groups=groups, table_values=values)


def _paid(welfare: SocialWelfare, epsilon: float, *, one_price: bool) -> float:
    costs = [(group.size, group.information_utility.cost(epsilon)) for group in welfare.groups]
    if one_price:
        return welfare.population_size * max(cost for _, cost in costs)
    return math.fsum(size * cost for size, cost in costs)


def _budgeted(table: _MarketTable, market: Market) -> Iterator[Institution]:
    """Those who buy with a budget or for a stated accuracy; only where the file states it, and only in ε."""
    if table.frontier.privacy_measure is not PrivacyMeasure.PURE_DP:
        return
    people = table.welfare.population_size
    costs = cost_distribution(table.welfare)
    if market.budget is not None and market.harm is not None:
        affordable = math.log1p(market.budget / (market.harm * people))
        highest = table.limits.bounds(table.frontier, table.welfare).highest
        spent = affordable if highest is None else min(affordable, highest)  # a budget lifts no limit
        total = market.budget if spent == affordable else people * market.harm * math.expm1(spent)
        why = f"pays everybody for harm, {money(total)} in all{_needed(market, people, spent)}"
        yield table.at("study that pays for harm", spent, total, why)
    if market.target_error is not None:
        share = 1 - market.target_error / QUALITY
        epsilon = QUALITY / (market.target_error * people)
        price = costs.quantile(min(share + 1 / people, 1.0)) * epsilon
        why = f"buys {share:.1%} of the people for one count that is off by at most {market.target_error:.2%} of them"
        yield _one_count(table, "MinCostAuction", epsilon, share * people * price, why)
    if market.budget is not None:
        share = _affordable_share(costs, market.budget, people)
        if share > 0:
            price = min(
                market.budget / (share * people),
                costs.quantile(min(share + 1 / people, 1.0)) / (people * (1 - share)),
            )
            why = f"buys {share:.1%} of the people with {money(market.budget)}, for one count"
            yield _one_count(table, "FairQuery", 1 / (people * (1 - share)), share * people * price, why)


def _needed(market: Market, people: float, affordable: float) -> str:
    """Whether the budget also pays for the accuracy that the study was asked for."""
    if market.target_error is None:
        return ""
    assert market.harm is not None
    study = CompensatedStudy(market.harm, market.target_error, market.failure_probability)
    needed = study.least_epsilon(people)
    verdict = "enough" if affordable >= needed else "too little"
    return f": {verdict} for one proportion within {market.target_error:.2%}, which needs epsilon = {number(needed, 3)}"


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

    def unit(self, protected_unit: str) -> str:
        return self.members[0].unit(protected_unit)

    def _dearest(self, loss: float) -> InformationUtility:
        return max(self.members, key=lambda member: member.cost(loss))
