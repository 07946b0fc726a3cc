"""The technologies: kinds of noise by the name they have in a program file, and what each of them can be put on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from dualmandate.errors import InvalidMechanism, UnknownName, did_you_mean
from dualmandate.mechanism.data_dependent import PublishedMechanism
from dualmandate.mechanism.gaussian import GAUSSIAN
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.laplace import LAPLACE
from dualmandate.mechanism.measurement import Measurement, exact_law, norm_of
from dualmandate.mechanism.mechanism import EVERY_PERSON, ExactLaw, Noise, NoiseLaw
from dualmandate.mechanism.multiplicative_weights import MultiplicativeWeights
from dualmandate.mechanism.rows import MatrixRows, StrategyRows, TableRows
from dualmandate.mechanism.staircase import STAIRCASE
from dualmandate.mechanism.strategy import Strategy, optimize_strategy
from dualmandate.mechanism.strategy.strategy import NoiseName
from dualmandate.mechanism.synthesis import AdaptiveMarginals
from dualmandate.population import PrivacyMeasure, Protection
from dualmandate.population.arguments import checked_call
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Workload

OPTIMIZED, TABLES, CELLS = "optimized", "workload", "identity"  # what is measured, in a program file
WHOLE_NUMBERS = "whole numbers"  # what is simulated of a plan itself: its tables, made whole
NOISE_LAWS: dict[str, NoiseLaw] = {law.name: law for law in (LAPLACE, GEOMETRIC, GAUSSIAN, STAIRCASE)}


def _partition(counted: PrivacyMeasure) -> PublishedMechanism:
    from dualmandate.mechanism.partition import PartitionMechanism  # which measures by the technologies of this module

    return PartitionMechanism(counted)


def _multiplicative_weights(counted: PrivacyMeasure) -> PublishedMechanism:
    return MultiplicativeWeights(privacy_measure=counted)


DATA_DEPENDENT: dict[str, Callable[[PrivacyMeasure], PublishedMechanism]] = {
    "partition": _partition,
    "multiplicative weights": _multiplicative_weights,
    "adaptive marginals": AdaptiveMarginals,
}
"""By the word in a program file: the technologies whose errors depend on the data, for a loss counted so."""
TECHNOLOGY_FORMAT = 1  # Raised whenever one of them draws otherwise, or says otherwise what was drawn.


class _OfLaw:
    """A technology that is counted in what the law of its noise is."""

    law: NoiseLaw

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return self.law.privacy_measure


@dataclass(frozen=True)
class NoiseMechanism(_OfLaw):
    """Noise on each answer of the workload: M(x) = Qx + e. Source: [AS19] Theorem 1."""

    law: NoiseLaw

    @property
    def name(self) -> str:
        return self.law.name

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> Measurement:
        return Measurement(TableRows(workload), self.law, protection)


@dataclass(frozen=True, eq=False)
class MatrixMechanism(_OfLaw):
    """Noise on a strategy's answers, and the workload's answers from these; see `MatrixRows`."""

    strategy: Workload | Floats | Integers
    law: NoiseLaw

    @property
    def name(self) -> str:
        return f"matrix mechanism with {self.law.name} noise"

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> Measurement:
        return Measurement(MatrixRows(workload, self.strategy), self.law, protection)


@dataclass(frozen=True, eq=False)
class StrategyMechanism(_OfLaw):
    """Noise on the whole-number rows of a strategy that was optimized, and the workload's answers from these.

    I = −Σ_w V_w(ε/Δ)·C_w over the weights w of its rows, C_w = Σ (QA⁺)² over the rows of weight w. Source: [AS19]
    Theorem 2; [LMHMR15].
    """

    strategy: Strategy
    law: NoiseLaw

    def __post_init__(self) -> None:
        if self.strategy.norm != norm_of(self.law.privacy_measure):
            raise InvalidMechanism(
                f"{self.law.name} noise on a strategy for {self.strategy.noise} noise",
                why=f"its loss grows with another norm than the {self.strategy.norm.upper()} norm",
                instead=f"optimize the strategy for {noise_of(self.law)!r}",
            )

    @property
    def name(self) -> str:
        return f"optimized strategy with {self.law.name} noise"

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> Measurement:
        if workload is not self.strategy.workload or protection != self.strategy.protection:
            raise InvalidMechanism(
                "a strategy made for another workload or another protection",
                why="its measurements are weighed for the queries and the neighbors that it was made for",
                instead="optimize a strategy for this workload and this protection",
            )
        return Measurement(StrategyRows(self.strategy.exact), self.law, protection)


@dataclass(frozen=True, eq=False)
class OptimizedMechanism(_OfLaw):
    """The best strategy that can be found for a workload, whatever it is; `values` as in `optimize_strategy`."""

    law: NoiseLaw
    values: Mapping[str, float] | None = None

    @property
    def name(self) -> str:
        return f"optimized strategy with {self.law.name} noise"

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> Measurement:
        strategy = optimize_strategy(workload, noise_of(self.law), values=self.values, protection=protection)
        return StrategyMechanism(strategy, self.law).production(workload, protection)


def laplace() -> NoiseMechanism:
    """The paper's mechanism: Laplace noise on every answer, under pure ε; for study."""
    return NoiseMechanism(LAPLACE)


def geometric() -> NoiseMechanism:
    """Two-sided geometric (discrete Laplace) noise on every count, under pure ε."""
    return NoiseMechanism(GEOMETRIC)


def gaussian() -> NoiseMechanism:
    """Discrete Gaussian noise on every count, under zero-concentrated privacy (ρ)."""
    return NoiseMechanism(GAUSSIAN)


def staircase() -> NoiseMechanism:
    """Staircase noise on every count, under pure ε; for study."""
    return NoiseMechanism(STAIRCASE)


@checked_call
def mechanism_named(name: str) -> NoiseMechanism:
    """The technology that a program file names."""
    return NoiseMechanism(law_named(name))


def law_named(name: str) -> NoiseLaw:
    """The law of noise that a program file names."""
    if name not in NOISE_LAWS:
        raise UnknownName(
            f"'{name}' is not a kind of noise",
            why=f"known are {', '.join(NOISE_LAWS)}",
            instead=did_you_mean(str(name), NOISE_LAWS, "use one of these"),
        )
    return NOISE_LAWS[name]


def drawn_law(name: str) -> ExactLaw:
    """The law that carries out a plan which names this noise; refused where none is drawn exactly.

    Plans with Laplace noise were carried out by the discrete Laplace law, the geometric one, and their releases say so.
    """
    return exact_law(GEOMETRIC if name == LAPLACE.name else law_named(name))


def published_words() -> list[str]:
    """What releases call the laws that are published."""
    return [exact_law(law).published_as for law in NOISE_LAWS.values() if law.publishable]


def noise_named(word: str, parameter: Fraction) -> Noise:
    """The exact noise that a release names; refused where no law is published by that word."""
    for law in NOISE_LAWS.values():
        if law.publishable and exact_law(law).published_as == word:
            return Noise(exact_law(law), parameter)
    raise UnknownName(
        f"'{word}' is not a kind of noise that is published",
        why="a release names the law of its noise",
        instead="read it with the version that wrote it",
    )


def noise_of(law: NoiseLaw) -> NoiseName:
    """The noise whose norm a law shares: what its strategy is optimized for."""
    return "gaussian" if law.privacy_measure is PrivacyMeasure.ZCDP else "laplace"
