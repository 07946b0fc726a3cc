"""Which tables to publish, and at which detail, together with the privacy loss: an endogenous workload.

Each table is worth V_t dollars to its users when it is exact, less what its errors cost, D_t(l); it is measured by
itself and spends l_t of the loss (sequential composition). Society gains

    Σ_{t in S} (V_t − D_t(l_t)) − P(Σ l_t),   Σ l_t ≤ cap,

with P what a loss costs everybody. Without a cap and with a linear cost K tables do not disturb each other: table t is
published where V_t is at least its price, min_l K·l + D_t(l), which is 1.5·2^(1/3)·K^(2/3)·c_t^(1/3) for errors c_t/ε²
and 2·√(K·c_t) for errors c_t/ρ. Otherwise, for convex P and D, what a set is worth is the least over μ ≥ 0 of

    Σ_{t in S} (V_t − min_l (μ·l + D_t(l))) + P*(μ),   P*(μ) = max_{E ≤ cap} μ·E − P(E),

so at any fixed μ the tables do not disturb each other and every set is worth at most Σ_t max(0, V_t − price_t(μ)) +
P*(μ). A branch-and-bound search over sets uses these bounds at many μ; it says when it has not looked at all it must.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.choice.welfare import SocialWelfare, TableValue
from dualmandate.errors import InvalidPreferences, NoOptimum
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import root
from dualmandate.population import PrivacyMeasure
from dualmandate.population.arrays import Floats

PRICES = 49  # Bounds are known at this many prices μ.
MOST_NODES = 200_000
TIE = 1e-12  # A share of all values below this is no difference.
SMALLEST, LARGEST = 1e-30, 1e12


@dataclass(frozen=True, eq=False)
class Candidate:
    """One table at one detail: what it is worth when exact, what its errors cost, and how it would be measured."""

    table: str  # at most one detail of a table is published
    value: float  # V, USD, ≥ 0
    frontier: Frontier  # of this table by itself
    worth: TableValue  # what its errors cost
    detail: str = ""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and self.value >= 0 and self.worth.value > 0):
            raise InvalidPreferences(
                f"table '{self.table}' is worth {self.value:g}, and a unit of its error {self.worth.value:g}",
                why="a table is published for what it is worth, less what its errors cost",
                instead="state a finite worth of at least 0, and a value of its accuracy above 0",
            )

    @property
    def name(self) -> str:
        """The table, with its detail where it has several."""
        return f"{self.table} ({self.detail})" if self.detail else self.table

    def errors(self, loss: float) -> float:
        """D, USD."""
        return self.worth.value_per_step * self.frontier.table_errors(loss, self.worth.measure)[self.worth.table]

    def spent(self, price: float) -> float:
        """The loss at which one more unit of it saves exactly its price: D′ = −μ."""

        def excess(log_loss: float) -> float:
            slope = -self.worth.value_per_step * self._slope(math.exp(log_loss))
            return (math.log(slope) if slope > 0 else -700.0) - math.log(price)

        return math.exp(root(excess, 0.0, 0.0, step=2.0, within=(math.log(SMALLEST), math.log(LARGEST))))

    def price(self, price: float) -> float:
        """min_l μ·l + D(l), USD: what publishing it costs when a unit of loss costs μ."""
        loss = self.spent(price)
        return price * loss + self.errors(loss)

    def _slope(self, loss: float) -> float:
        return self.frontier.table_slopes(loss, self.worth.measure)[self.worth.table]


@dataclass(frozen=True)
class Verdict:
    """Whether a candidate earns its place, and by how much."""

    name: str
    table: str
    detail: str
    value: float  # V, USD
    price: float  # USD, what publishing it costs at the price that the last unit of loss has
    published: bool
    epsilon: float | None  # what it spends; None where it is not published
    errors: float | None  # USD, what its errors then cost


@dataclass(frozen=True)
class TableSelection:
    """The tables to publish, at which losses, and what society gains by all of them."""

    verdicts: tuple[Verdict, ...]  # every candidate, in the order given
    epsilon: float  # Σ of what is spent
    privacy_measure: PrivacyMeasure
    net: float  # USD, ≥ 0
    price: float  # μ, USD: what the last unit of loss costs or is worth
    bound: float  # USD: no set is worth more
    exact: bool  # whether every set was looked at or ruled out

    @property
    def published(self) -> tuple[str, ...]:
        """The names of the tables that earn their place."""
        return tuple(verdict.name for verdict in self.verdicts if verdict.published)


def choose_tables(
    candidates: Sequence[Candidate], welfare: SocialWelfare, *, cap: float | None = None, most_nodes: int = MOST_NODES
) -> TableSelection:
    """The set of tables, each at one detail, that society gains most by, with the loss of each.

    `welfare` states what a loss costs everybody; the values of its tables are not used. Exact where `exact` says so.
    """
    _check(candidates, welfare, cap)
    market = _LossMarket(welfare, cap)
    search = _SelectionSearch(tuple(candidates), market, most_nodes)
    chosen, exact = search.best()
    price = market.clearing(chosen)
    verdicts = []
    for each in candidates:
        published = any(each is one for one in chosen)
        spent = each.spent(price) if published else None
        errors = None if spent is None else each.errors(spent)
        verdicts.append(
            Verdict(each.name, each.table, each.detail, each.value, each.price(price), published, spent, errors)
        )
    net = market.worth(chosen)
    return TableSelection(
        tuple(verdicts),
        epsilon=math.fsum(verdict.epsilon or 0.0 for verdict in verdicts),
        privacy_measure=candidates[0].frontier.privacy_measure,
        net=net,
        price=price,
        bound=net if exact else max(net, search.root_bound),
        exact=exact,
    )


@dataclass(frozen=True)
class _LossMarket:
    """What losses cost everybody, and the cap: P and P*."""

    welfare: SocialWelfare
    cap: float | None

    @cached_property
    def first(self) -> float:
        """What the first unit of loss costs, USD per unit; prices below are never asked for."""
        return max(self.welfare.marginal_privacy_cost(SMALLEST), 1e-300)

    def wanted(self, price: float) -> float:
        """The total loss at which everybody's marginal cost is the price, at most the cap."""
        most = math.inf if self.cap is None else self.cap
        if self.welfare.marginal_privacy_cost(SMALLEST) >= price:
            return 0.0
        high = 1.0 if math.isinf(most) else most
        while self.welfare.marginal_privacy_cost(high) < price:
            if high >= most or high > LARGEST:
                return min(high, most)
            high *= 2
        return min(most, root(lambda loss: price - self.welfare.marginal_privacy_cost(loss), SMALLEST, high))

    def conjugate(self, price: float) -> float:
        """P*(μ) = max_{E ≤ cap} μ·E − P(E)."""
        total = self.wanted(price)
        return price * total - self.welfare.privacy_cost(total) if total > 0 else 0.0

    def clearing(self, chosen: Sequence[Candidate]) -> float:
        """The price of loss at which tables want exactly what everybody bears, or the cap."""
        if not chosen:
            return self.first

        def excess(log_price: float) -> float:
            price = math.exp(log_price)
            return math.fsum(candidate.spent(price) for candidate in chosen) - self._supplied(price)

        first = math.log(self.first)
        return self.first if excess(first) <= 0 else math.exp(root(excess, first, first, step=1.0))

    def worth(self, chosen: Sequence[Candidate]) -> float:
        """What society gains by publishing a set, USD."""
        if not chosen:
            return 0.0
        price = self.clearing(chosen)
        spent = [candidate.spent(price) for candidate in chosen]
        errors = math.fsum(candidate.errors(loss) for candidate, loss in zip(chosen, spent, strict=True))
        return math.fsum(candidate.value for candidate in chosen) - errors - self.welfare.privacy_cost(math.fsum(spent))

    def _supplied(self, price: float) -> float:
        """The loss that everybody bears at a price: any up to the cap where each unit costs the same."""
        if self.linear:
            return math.inf if self.cap is None else self.cap
        return self.wanted(price)

    @property
    def linear(self) -> bool:
        """Whether each unit of loss costs the same."""
        return all(group.information_utility.form == "linear" for group in self.welfare.groups)


@dataclass(frozen=True, eq=False)
class _SelectionSearch:
    """Depth first over tables, the ones that matter most first; bounds at many prices rule out the rest."""

    candidates: tuple[Candidate, ...]
    market: _LossMarket
    most_nodes: int

    @cached_property
    def tables(self) -> list[list[int]]:
        """Positions of the details of each table, the table with most at stake first."""
        by_table: dict[str, list[int]] = {}
        for position, candidate in enumerate(self.candidates):
            by_table.setdefault(candidate.table, []).append(position)
        return sorted(by_table.values(), key=lambda places: -max(self.candidates[i].value for i in places))

    @cached_property
    def prices(self) -> list[float]:
        """μ at which bounds are known: the price of the first unit, and many above it."""
        if self.market.cap is None and self.market.linear:
            return [self.market.first]
        everything = self.market.clearing(self.candidates)
        return sorted({self.market.first, everything, *np.geomspace(self.market.first, everything, PRICES).tolist()})

    @cached_property
    def gains(self) -> Floats:
        """V − price(μ) of each candidate at each μ; shape (candidates, prices)."""
        return np.array([[each.value - each.price(price) for price in self.prices] for each in self.candidates])

    @cached_property
    def rest(self) -> Floats:
        """Σ over later tables of max(0, best gain), from each table on; shape (tables + 1, prices)."""
        best = np.array([np.maximum(self.gains[places].max(axis=0), 0.0) for places in self.tables])
        ahead = np.zeros((len(best) + 1, len(self.prices)))
        ahead[:-1] = np.cumsum(best[::-1], axis=0)[::-1]
        return ahead

    @cached_property
    def slack(self) -> Floats:
        """P*(μ); shape (prices,)."""
        return np.array([self.market.conjugate(price) for price in self.prices])

    @property
    def root_bound(self) -> float:
        """No set is worth more than this, USD."""
        return max(0.0, float(np.min(self.rest[0] + self.slack)))

    def best(self) -> tuple[list[Candidate], bool]:
        """The best set that was found, and whether all others were looked at or ruled out."""
        stakes = math.fsum(candidate.value for candidate in self.candidates)
        start = np.zeros(len(self.prices))
        stack: list[tuple[int, tuple[int, ...], Floats]] = [(0, (), start)]
        champion: tuple[int, ...] = ()
        reached, nodes = 0.0, 0
        while stack and nodes < self.most_nodes:
            depth, kept, fixed = stack.pop()
            nodes += 1
            if float(np.min(fixed + self.rest[depth] + self.slack)) <= reached + TIE * stakes:
                continue
            if depth == len(self.tables):
                worth = self.market.worth([self.candidates[place] for place in kept])
                if worth > reached:
                    champion, reached = kept, worth
                continue
            stack.append((depth + 1, kept, fixed))
            details = sorted(self.tables[depth], key=lambda each: float(self.gains[each].max()))
            stack += [(depth + 1, (*kept, place), fixed + self.gains[place]) for place in details]
        return [self.candidates[place] for place in champion], not stack


def _check(candidates: Sequence[Candidate], welfare: SocialWelfare, cap: float | None) -> None:
    if not candidates or len({(each.table, each.detail) for each in candidates}) != len(candidates):
        raise InvalidPreferences(
            "no table, or one stated twice",
            why="each table at each detail is chosen or not",
            instead="state at least one candidate, each with another table or detail",
        )
    if any(each.frontier.privacy_measure is not welfare.privacy_measure for each in candidates):
        raise InvalidPreferences(
            f"a table measured in another currency than {welfare.privacy_measure}",
            why="losses of tables add up only in the currency that their cost is stated in",
            instead=f"express every table's frontier in {welfare.privacy_measure}",
        )
    if not all(group.information_utility.convex for group in welfare.groups):
        raise InvalidPreferences(
            "tables are chosen under a cost of privacy loss that is bounded",
            why="each further unit of loss costs less, so a table's price depends on all others",
            instead="state a linear or exponential cost",
        )
    if cap is not None and not (math.isfinite(cap) and cap > 0):
        raise InvalidPreferences(f"a cap of {cap:g}", why="nothing could be published", instead="state a cap above 0")
    if cap is None and not welfare.marginal_privacy_cost(1.0) > 0:
        raise NoOptimum(
            "privacy loss costs nothing, and nothing limits it",
            why="every table would be published exactly",
            instead="state what a privacy loss costs, or a cap",
        )
