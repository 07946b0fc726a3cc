"""What the technology in use saves: its errors beside those of plain noise on the tables, and the least possible."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dualmandate.choice import Choice, SocialWelfare
from dualmandate.errors import Refusal
from dualmandate.frontier import LowerBound, strategy_bound
from dualmandate.mechanism import NOISE_LAWS
from dualmandate.planning.study import is_study
from dualmandate.planning.technology import Technology, TechnologyBuilder


@dataclass(frozen=True)
class Comparison:
    """What one technology alone would choose; `choice` is None where it would not do, and `why` says so."""

    noise: str
    strategy: str
    choice: Choice | None
    why: str = ""

    @property
    def study(self) -> bool:
        """Whether it is there for comparison only: its noise is not drawn exactly."""
        return is_study(self.noise)


@dataclass(frozen=True, eq=False)
class ErrorLimit:
    """What errors cost at least at each loss, whatever is measured, with the noise of one technology."""

    bound: LowerBound  # each table's error weighed by its value, relative to the dearest table's
    technology: Technology
    dearest: float  # the value of that, USD per unit of error
    existing: float  # what errors cost that were there before, USD

    def at(self, loss: float) -> float:
        """USD, at a loss in the program's currency."""
        return self.dearest * self.bound.at(self.technology.spent(loss)) + self.existing


@dataclass(frozen=True, eq=False)
class Saving:
    """What errors cost under the technology in use, under plain noise on the tables, and at least; all in USD.

    Plain noise is Laplace noise, or Gaussian noise where the technology in use counts its loss in rho.
    """

    welfare: SocialWelfare
    loss: float  # the chosen one, in the program's currency
    used: Technology
    naive: Comparison  # plain noise on the tables, and what it would choose alone
    plain: Technology | None  # the same; None where it cannot serve the program
    optimized: Technology | None  # the optimized strategy with the noise in use
    limit: ErrorLimit | None

    @property
    def costs(self) -> dict[str, Callable[[float], float] | None]:
        """What errors cost at any loss: `naive`, `used`, `optimized` and `least`; None where it is not known."""
        return {
            "naive": self._cost(self.plain),
            "used": self._cost(self.used),
            "optimized": self._cost(self.optimized),
            "least": None if self.limit is None else self.limit.at,
        }

    @cached_property
    def at_choice(self) -> dict[str, float | None]:
        """The same at the choice."""
        return {name: None if cost is None else cost(self.loss) for name, cost in self.costs.items()}

    @property
    def dollars(self) -> float | None:
        """What the technology in use saves at the choice against plain noise on the tables."""
        naive, used = self.at_choice["naive"], self.at_choice["used"]
        return None if naive is None or used is None else naive - used

    @property
    def welfare_gained(self) -> float | None:
        """How much better off society is than with plain noise at its own best loss, USD; None where that has none."""
        alone = self.naive.choice
        return None if alone is None else self.welfare.at(self.used.frontier, self.loss) - alone.welfare

    def _cost(self, technology: Technology | None) -> Callable[[float], float] | None:
        if technology is None:
            return None
        frontier = technology.frontier
        return lambda loss: self.welfare.data_loss(frontier, loss)


def limit_of(workshop: TechnologyBuilder, used: Technology) -> ErrorLimit | None:
    """The bound for the noise in use; None where no strategy was found for all tables, or errors are not squared."""
    welfare, law = workshop.welfare, NOISE_LAWS[used.noise]
    if any(value.measure != "squared" for value in welfare.table_values):
        return None
    try:
        strategy = workshop.optimized(law, workshop.workload)
    except Refusal:
        return None
    if any(strategy.values[name] != value for name, value in workshop.relative_values.items()):
        return None  # a table that is worth next to nothing was weighed at more than its worth
    return ErrorLimit(strategy_bound(strategy, law), used, workshop.dearest, welfare.least_data_loss)
