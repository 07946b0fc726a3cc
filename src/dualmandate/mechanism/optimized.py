"""The matrix mechanism with a strategy that was looked for: what is measured is not what is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.additive import norm_of
from dualmandate.mechanism.mechanism import EVERY_PERSON, NoiseLaw
from dualmandate.mechanism.strategy import Strategy, StrategyProduction, optimize_strategy
from dualmandate.mechanism.strategy.strategy import Noise
from dualmandate.population import Currency, Protection
from dualmandate.workload import Workload


@dataclass(frozen=True, eq=False)
class StrategyMechanism:
    """Noise on the whole-number rows of a strategy, and the workload's answers from these.

    I = −Σ_w V_w(ε/Δ)·C_w over the weights w of its rows, C_w = Σ (QA⁺)² over the rows of weight w. Source: [AS19]
    Theorem 2; [LMHMR15].
    """

    strategy: Strategy
    law: NoiseLaw

    def __post_init__(self) -> None:
        if self.strategy.norm != norm_of(self.law.currency):
            raise InvalidMechanism(
                f"{self.law.name} noise on a strategy for {self.strategy.noise} noise",
                why=f"its loss grows with another norm than the {self.strategy.norm.upper()} norm",
                instead=f"optimize the strategy for {noise_of(self.law)!r}",
            )

    @property
    def name(self) -> str:
        """The technology in words."""
        return f"optimized strategy with {self.law.name} noise"

    @property
    def currency(self) -> Currency:
        """What its privacy loss is counted in."""
        return self.law.currency

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> StrategyProduction:
        """What it produces for the workload that its strategy was made for."""
        if workload is not self.strategy.workload or protection != self.strategy.protection:
            raise InvalidMechanism(
                "a strategy made for another workload or another protection",
                why="its measurements are weighed for the queries and the neighbors that it was made for",
                instead="optimize a strategy for this workload and this protection",
            )
        return StrategyProduction(self.strategy.exact, protection, self.law)


@dataclass(frozen=True, eq=False)
class OptimizedMechanism:
    """The best strategy that can be found for a workload, whatever it is; `values` as in `optimize_strategy`."""

    law: NoiseLaw
    values: Mapping[str, float] | None = None

    @property
    def name(self) -> str:
        """The technology in words."""
        return f"optimized strategy with {self.law.name} noise"

    @property
    def currency(self) -> Currency:
        """What its privacy loss is counted in."""
        return self.law.currency

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> StrategyProduction:
        """What it produces: the strategy is optimized first."""
        strategy = optimize_strategy(workload, noise_of(self.law), values=self.values, protection=protection)
        return StrategyMechanism(strategy, self.law).production(workload, protection)


def noise_of(law: NoiseLaw) -> Noise:
    """The noise whose norm a law shares: what its strategy is optimized for."""
    return "gaussian" if law.currency is Currency.RHO else "laplace"
