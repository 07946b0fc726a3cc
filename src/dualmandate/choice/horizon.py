"""Preferences that change with time: records that become public, a budget over many releases, tables used for years.

A privacy loss costs κ a year until the records are opened in year H (72 years after a census), discounted by β a year.
A release in year t therefore costs k_t = κ·(β^t − β^H)/(1 − β) per unit of loss in money of year 0: later releases
have fewer years to do harm. What errors cost in release t counts β^t. Without a cap on the sum of losses each release
is chosen for itself; with a cap E all face one more cost μ, the same for all, that makes the losses add up to E:

    ε_t = (2·c_t·β^t/(k_t + μ))^(1/3) where errors cost c_t/ε² and losses a linear amount.

For other frontiers and costs the same condition, gain less cost = μ in every release, is solved numerically. The
stated disclosure cost is that of a release today, k_0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from dualmandate.choice.optimum import Advantage, Limits, choose
from dualmandate.choice.welfare import LinearCost, PopulationGroup, SocialWelfare
from dualmandate.errors import InvalidPreferences, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import root
from dualmandate.population.wording import number

SHADOW = "the budget for all releases"
MOST_YEARS = 100  # A release is tried to be replaced after each of so many years.
SMALLEST_SHARE = 1e-12  # A release that gets less than this share of its own choice gets nothing.


@dataclass(frozen=True)
class DisclosureHorizon:
    """When records become public, and how the future is discounted."""

    disclosure_after_years: float = math.inf  # H > 0
    discount_factor: float = 0.97  # β in (0, 1], a year
    years_of_use: float | None = None  # T > 0 of a release; None: what errors cost is meant for a release, not a year
    depreciation: float = 0.0  # δ in [0, 1), a year

    def __post_init__(self) -> None:
        if not (self.years_of_use is None or self.years_of_use > 0) or not 0 <= self.depreciation < 1:
            raise InvalidPreferences(
                f"{self.years_of_use} years of use, of which each takes {self.depreciation:g}",
                why="a release is used for some time, and keeps a part of its worth over a year",
                instead="state years_of_use above 0 and 0 ≤ depreciation < 1",
            )
        if not (self.disclosure_after_years > 0 and 0 < self.discount_factor <= 1):
            raise InvalidPreferences(
                f"disclosure after {self.disclosure_after_years:g} years, discounted by {self.discount_factor:g}",
                why="records are opened after some time, and money later counts no more than money today",
                instead="state years above 0 and 0 < discount_factor ≤ 1",
            )
        if self.discount_factor == 1 and math.isinf(self.disclosure_after_years):
            raise InvalidPreferences(
                "records that are never opened, and a future that is not discounted",
                why="a privacy loss would then cost an infinite amount",
                instead="state disclosure_after_years, or a discount_factor below 1",
            )

    def years_of_harm(self, year: float) -> float:
        """(β^t − β^H)/(1 − β): years from t until the records are opened, each worth its discounted share of one."""
        beta, opened = self.discount_factor, self.disclosure_after_years
        if year >= opened:
            return 0.0
        if beta == 1:
            return opened - year
        return (math.pow(beta, year) - math.pow(beta, opened)) / (1 - beta)

    def cost_of(self, year: float) -> float:
        """k_t/k_0: what a loss in year t costs, relative to the same loss today."""
        return self.years_of_harm(year) / self.years_of_harm(0.0)

    def service(self, until: float = math.inf) -> float:
        """A(n), years' worth of use of a release that another one follows after some years; 1 where not counted so."""
        if self.years_of_use is None:
            return 1.0
        kept, years = self.discount_factor * (1 - self.depreciation), min(self.years_of_use, until)
        return years if kept == 1 else -math.expm1(years * math.log(kept)) / (1 - kept)

    def value_of(self, year: float, until: float = math.inf) -> float:
        """β^t·A: what a dollar a year is worth today, in year t and as long as the release is used."""
        return math.pow(self.discount_factor, year) * self.service(until)

    def seen_from_today(self, welfare: SocialWelfare, year: float, until: float = math.inf) -> SocialWelfare:
        """The welfare of a release in year t, in money of today; `until` years later another one follows."""
        cost, value = self.cost_of(year), self.value_of(year, until)
        tables = tuple(table.scaled(value) for table in welfare.table_values)
        return replace(welfare, groups=tuple(group.scaled(cost) for group in welfare.groups), table_values=tables)


@dataclass(frozen=True)
class PlannedRelease:
    """One release of the path: when, at which loss, and what it costs in money of today."""

    year: float
    epsilon: float
    alone: float  # what would be chosen without a cap on the sum
    privacy_cost: float  # USD
    data_loss: float  # USD


@dataclass(frozen=True)
class BudgetPath:
    """Losses of all releases, and the shadow price that one more unit of the cap is worth."""

    releases: tuple[PlannedRelease, ...]
    cap: float | None  # on the sum
    price: float  # μ, USD per unit of loss; 0 where the cap does not bind

    @property
    def total(self) -> float:
        return math.fsum(release.epsilon for release in self.releases)

    @property
    def welfare(self) -> float:
        """USD of today; ≤ 0."""
        return -math.fsum(release.privacy_cost + release.data_loss for release in self.releases)


def budget_path(
    frontiers: Sequence[Frontier] | Frontier,
    welfare: SocialWelfare,
    *,
    years: Sequence[float],
    horizon: DisclosureHorizon,
    cap: float | None = None,
    limits: Limits | None = None,
) -> BudgetPath:
    """The best privacy loss of every release, one a year stated, under a cap on their sum (None: no cap).

    One frontier serves all releases, or each has its own. Limits hold for each release. A cap needs costs that rise
    ever faster or alike (linear, exponential): otherwise no one price shares it out.
    """
    moments = tuple(float(year) for year in years)
    technologies = tuple(frontiers) if isinstance(frontiers, Sequence) else (frontiers,) * len(moments)
    _check(moments, technologies, welfare, horizon=horizon, cap=cap)
    limits = limits or Limits()
    gaps = [min((later - year for later in moments if later > year), default=math.inf) for year in moments]
    seen = [horizon.seen_from_today(welfare, year, gap) for year, gap in zip(moments, gaps, strict=True)]
    chosen = [choose(frontier, each, limits) for frontier, each in zip(technologies, seen, strict=True)]
    alone = [choice.epsilon for choice in chosen]
    floors = [limits.bounds(frontier, each).lowest or 0.0 for frontier, each in zip(technologies, seen, strict=True)]
    turns = [_Turn(*each) for each in zip(technologies, seen, alone, floors, strict=True)]
    price = _shadow_price(turns, cap) if cap is not None and math.fsum(alone) > cap else 0.0
    losses = alone if price == 0.0 else [turn.at(price) for turn in turns]
    rows = tuple(
        PlannedRelease(year, loss, own, each.privacy_cost(loss), each.data_loss(frontier, loss))
        for year, loss, own, each, frontier in zip(moments, losses, alone, seen, technologies, strict=True)
    )
    return BudgetPath(rows, cap, price)


@dataclass(frozen=True)
class Renewal:
    """A new release every so many years, for ever: the loss of each, and what all of them are worth today."""

    years: int
    epsilon: float  # of each release
    service: float  # A, years' worth of use of each
    worth: float  # USD of today for all releases; a year where the future is not discounted


def renewals(
    frontier: Frontier,
    welfare: SocialWelfare,
    *,
    horizon: DisclosureHorizon,
    worth: float,
    limits: Limits | None = None,
) -> tuple[Renewal, ...]:
    """Every interval of whole years up to the years of use, the best first; `worth` is Y, USD a year.

    Each release costs what one today does, as if records were never opened.
    """
    if horizon.years_of_use is None or not 1 <= horizon.years_of_use <= MOST_YEARS:
        raise InvalidPreferences(
            "releases that are used for no stated number of years, for less than one, or for ever",
            why=f"a new release is tried after every whole year of use, at most {MOST_YEARS}",
            instead=f"state years_of_use from 1 to {MOST_YEARS}",
        )
    rows = []
    for years in range(1, math.floor(horizon.years_of_use) + 1):
        service = horizon.service(years)
        tables = tuple(value.scaled(service) for value in welfare.table_values)
        choice = choose(frontier, replace(welfare, table_values=tables), limits)
        beta = horizon.discount_factor
        cycles = years if beta == 1 else -math.expm1(years * math.log(beta))
        rows.append(Renewal(years, choice.epsilon, service, (service * worth + choice.welfare) / cycles))
    return tuple(sorted(rows, key=lambda row: -row.worth))


@dataclass(frozen=True)
class _Turn:
    """One release's demand for loss at a shadow price."""

    frontier: Frontier
    welfare: SocialWelfare
    alone: float
    floor: float

    def at(self, price: float) -> float:
        """The loss at which gain less cost is the price; it falls with the price, and never below the floor."""
        shadow = PopulationGroup(SHADOW, 1.0, LinearCost(price, self.frontier.privacy_measure))
        dearer = replace(self.welfare, groups=(*self.welfare.groups, shadow))
        low, high = math.log(self.floor or self.alone * SMALLEST_SHARE), math.log(self.alone)
        if low >= high:
            return self.alone
        return math.exp(root(Advantage(self.frontier, dearer), low, high))


def _shadow_price(turns: Sequence[_Turn], cap: float) -> float:
    """μ at which the releases together spend the cap."""
    least = math.fsum(turn.floor for turn in turns)
    if least >= cap:
        raise NoOptimum(
            f"releases that must be fit for use need {number(least, 6)} together, and {number(cap, 6)} is allowed",
            why="each of them has a least accuracy",
            instead="raise the cap by decision, release less often, or allow larger errors",
        )

    def excess(log_price: float) -> float:
        price = math.exp(log_price)
        return math.fsum(turn.at(price) for turn in turns) - cap

    scale = max(turn.welfare.marginal_privacy_cost(turn.alone) for turn in turns)
    start = math.log(scale) if scale > 0 else 0.0
    return math.exp(root(excess, start, start, step=2.0))


def _check(
    years: tuple[float, ...],
    frontiers: tuple[Frontier, ...],
    welfare: SocialWelfare,
    *,
    horizon: DisclosureHorizon,
    cap: float | None,
) -> None:
    late = [year for year in years if not 0 <= year < horizon.disclosure_after_years]
    if late or not years or len(years) != len(frontiers):
        raise InvalidPreferences(
            f"a release in year {late[0]:g}" if late else f"{len(years)} years for {len(frontiers)} frontiers",
            why=f"records are opened after {horizon.disclosure_after_years:g} years, and each release has its frontier",
            instead="state years from 0 on, before the records are opened, and one frontier for all or for each",
        )
    if cap is not None and not (math.isfinite(cap) and cap > 0):
        raise InvalidPreferences(
            f"a cap of {cap:g} on all releases", why="nothing could be released", instead="state a cap above 0"
        )
    if cap is not None and not all(group.information_utility.convex for group in welfare.groups):
        raise InvalidPreferences(
            "a cap on the sum of losses whose cost is bounded",
            why="each further unit of loss costs less, so that no one price shares the cap out",
            instead="state a linear or exponential cost, or leave the cap out",
        )
    if welfare.other_losses:
        raise InvalidPreferences(
            "losses that are not proportional to expected errors cannot be discounted",
            why="each release counts the value of every table's accuracy at its own year",
            instead="state the value of accuracy table by table",
        )
