"""The seam between computer science and economics: what a technology must say about itself.

A mechanism is a way to answer a workload. For a workload and a protection it states a `Production`: how wrong each
answer is expected to be at each privacy loss, exactly. The frontier turns this into accuracy bought by loss. Where the
answers rest on rows with noise, the production is a `Measurement`, which is also what is published and audited.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, Protocol, TypeAlias, TypeVar, get_args

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, UnknownName
from dualmandate.mechanism.noise import Sampler
from dualmandate.population import PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Sensitivity, Workload

NamedMeasure = Literal["squared", "absolute", "largest variance"]
EVERY_PERSON = Protection()  # add or remove one person's record
LARGEST_SHIFT = 2**17  # The privacy loss of a number that is shifted farther is not worked out, value by value.


class Distribution(Protocol):
    """One draw of noise, known exactly; its mean is 0."""

    @property
    def discrete(self) -> bool:
        """Whether the noise takes separate values (whole numbers, or multiples of a step)."""

    @property
    def step(self) -> float:
        """Distance between two values that it can take; 0 where it is continuous."""

    @property
    def variance(self) -> float:
        """E[X²]."""

    @property
    def mean_absolute(self) -> float:
        """E|X|."""

    def tail(self, distance: float) -> float:
        """P(|X| > distance)."""

    def reach(self, tail: float) -> float:
        """The smallest t with P(|X| > t) ≤ tail: precise also where the tail is too small to be 1 − probability."""

    def log_likelihood(self, value: float) -> float:
        """Logarithm of the probability (discrete) or of the density at a value."""

    def characteristic(self, frequencies: Floats) -> Floats:
        """Real part of E[exp(i·t·X)] at each frequency t; same shape. For symmetric noise this is all of it."""

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        """Draws for simulation and tests; never for publication."""


class NoiseLaw(Protocol):
    """A family of noise, indexed by the loss for one unit of sensitivity: ε/Δ₁, or ρ/Δ₂²."""

    @property
    def name(self) -> str:
        """The word for it in a program file."""

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What its privacy loss is counted in."""

    @property
    def needs_whole_numbers(self) -> bool:
        """Whether its promise holds only for answers that change by whole numbers (see `LatticeLaw`)."""

    @property
    def publishable(self) -> bool:
        """Whether it is drawn exactly, so that it is an `ExactLaw`; one that is not can be studied, never published."""

    def at(self, unit_loss: float) -> Distribution:
        """The noise at a loss for one unit of sensitivity."""

    def variance(self, unit_loss: float) -> float:
        """V, the variance of the noise."""
        return self.at(unit_loss).variance

    def variance_slope(self, unit_loss: float) -> float:
        """V′ < 0."""

    def variance_curvature(self, unit_loss: float) -> float:
        """V″ > 0."""

    def mean_absolute(self, unit_loss: float) -> float:
        """E|X|."""
        return self.at(unit_loss).mean_absolute

    def mean_absolute_slope(self, unit_loss: float) -> float:
        """Derivative of E|X| with respect to the unit loss; < 0."""


class ExactLaw(NoiseLaw, Protocol):
    """A family of whole-number noise that is drawn exactly, set by one fraction: what may be published."""

    @property
    def published_as(self) -> str:
        """The word for it in a release, before its parameter."""

    def parameter(self, unit_loss: Fraction) -> Fraction:
        """What the noise is set by so that a change by 1 loses exactly so much: a scale, or a σ²."""

    def unit_loss(self, parameter: Fraction) -> Fraction:
        """What a change by 1 loses: the inverse of `parameter`."""

    def sampler(self, parameter: Fraction) -> Sampler:
        """What draws it from a key; refused where it cannot."""

    def loss_distribution(self, parameter: Fraction, shift: int, fineness: float) -> Any | None:
        """The loss of a number shifted so far, rounded safely to `fineness`, for dp-accounting; None where not."""


@dataclass(frozen=True)
class Noise:
    """The exact noise of one kind of row, a whole number: a law that is drawn exactly, and the fraction that sets it.

    `parameter` is the scale of discrete Laplace noise, P(X = k) ∝ exp(−|k|/scale), or the σ² of discrete Gaussian
    noise, P(X = k) ∝ exp(−k²/(2σ²)).
    """

    family: ExactLaw
    parameter: Fraction

    @property
    def law(self) -> str:
        """The word for it in a release."""
        return self.family.published_as

    @property
    def unit_loss(self) -> Fraction:
        return self.family.unit_loss(self.parameter)

    def sampler(self) -> Sampler:
        return self.family.sampler(self.parameter)

    def distribution(self) -> Distribution:
        """Its variance, tails, probabilities and characteristic function."""
        return self.family.at(float(self.unit_loss))


class Production(Protocol):
    """What a technology produces for a workload under a protection, at every privacy loss.

    `loss` is ε or ρ, by `currency`. Tables are named as in the workload; arrays have one entry a query, row-major.
    """

    @property
    def technology(self) -> str:
        """The technology in words."""

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What `loss` is counted in."""

    @property
    def workload(self) -> Workload:
        """What is answered."""

    @property
    def protection(self) -> Protection:
        """Whose privacy the loss is about."""

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one protected unit can move what is measured; where it is a bound, the loss is at most as stated."""

    @property
    def combines(self) -> bool:
        """Whether an answer is put together from several draws, so that its absolute error takes long to work out."""

    def query_variances(self, table: str, loss: float) -> Floats:
        """E[error²] of each query of a table; shape (query_count,)."""

    def table_errors(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        """Expected error of each table: Σ E[error²], Σ E|error|, or max E[error²]; ≥ 0, in the table's unit."""

    def table_slopes(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        """Derivative of `table_errors` with respect to the loss; ≤ 0."""

    def table_curvatures(self, loss: float) -> dict[str, float]:
        """Second derivative of each table's expected squared error."""

    def expected_squared_error(self, loss: float) -> float:
        """E‖M(x, Q) − Qx‖², summed over all queries; minus the paper's I."""

    def half_width(self, table: str, loss: float, probability: float) -> Floats:
        """Half the width of an interval that holds the true answer with this probability, query by query."""

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> Floats:
        """Half-widths such that *all* answers of the table lie within theirs with at least this probability."""

    def draw(self, counts: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        """Simulated answers from public or synthetic counts, shape (size, query_count); never for publication."""


class TableMeasure(Protocol):
    """How the errors of one table count, where it is neither by their squares nor by their sizes."""

    @property
    def table(self) -> str:
        """The table it is about; it counts nothing in any other."""

    @property
    def power(self) -> int:
        """Of the table's unit: what it counts in steps of a grid is this power of the grid times as much."""

    def unit(self, unit: str, currency: str, /) -> str:
        """What it counts in, for a table's unit and the money of the program; empty where that is a pure number."""

    @property
    def quick(self) -> bool:
        """Whether it is soon worked out for answers that are put together from many measured numbers."""

    @property
    def convex(self) -> bool:
        """Whether it is known to fall ever more slowly with the loss, where squared errors do."""

    def curve(self, production: Production, /) -> Callable[[float], float]:
        """What it counts at each privacy loss, ≥ 0 and falling; refused where the technology does not say."""


Measure: TypeAlias = NamedMeasure | TableMeasure
AnyMeasure = TypeVar("AnyMeasure", bound=Measure)


class Mechanism(Protocol):
    """A technology: a way to answer any workload it can serve."""

    @property
    def name(self) -> str:
        """The technology in words."""

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What its privacy loss is counted in."""

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> Production:
        """What it produces for a workload; refused where it cannot serve it."""


def positive_loss(loss: float) -> float:
    """The loss itself, refused unless it is a positive, finite number."""
    if not (math.isfinite(loss) and loss > 0):
        raise InvalidLoss(
            f"noise for a privacy loss of {loss}",
            why="noise is set by a positive, finite loss",
            instead="state a positive epsilon or rho",
        )
    return loss


def known_measure(measure: AnyMeasure) -> AnyMeasure:
    """The measure itself, refused unless errors are counted by it."""
    if isinstance(measure, str) and measure not in get_args(NamedMeasure):
        raise UnknownName(
            f"'{measure}' is not a measure of error",
            why=f"errors are counted by {', '.join(get_args(NamedMeasure))}",
            instead="use one of these",
        )
    return measure


def power_of(measure: Measure) -> int:
    """The power of a table's unit that a measure counts in."""
    return (1 if measure == "absolute" else 2) if isinstance(measure, str) else measure.power


def known_table(workload: Workload, name: str) -> str:
    """The name of a table, refused unless the workload has it."""
    names = [table.name for table in workload.tables]
    if name not in names:
        raise UnknownName(
            f"'{name}' is not a table of this workload",
            why=f"it has {', '.join(names[:12])}{', …' if len(names) > 12 else ''}",
            instead="name one of its tables",
        )
    return name


def table_rows(workload: Workload, name: str) -> slice:
    """Where the queries of a table stand among those of all tables."""
    place = [table.name for table in workload.tables].index(known_table(workload, name))
    start = sum(table.query_count for table in workload.tables[:place])
    return slice(start, start + workload.tables[place].query_count)


def tail_of(probability: float) -> float:
    """1 − probability, refused unless both lie strictly between 0 and 1."""
    if not 0 < probability < 1:
        raise InvalidMechanism(
            f"an interval that holds with probability {probability}",
            why="unbounded noise leaves every finite interval with some probability",
            instead="state a probability strictly between 0 and 1, for example 0.95",
        )
    return 1 - probability


@dataclass(frozen=True)
class Stretched:
    """Noise times a positive factor."""

    noise: Distribution
    factor: float

    @property
    def discrete(self) -> bool:
        return self.noise.discrete

    @property
    def step(self) -> float:
        return self.noise.step * self.factor

    @property
    def variance(self) -> float:
        return self.noise.variance * self.factor * self.factor

    @property
    def mean_absolute(self) -> float:
        return self.noise.mean_absolute * self.factor

    def tail(self, distance: float) -> float:
        return self.noise.tail(self._steps(distance))

    def reach(self, tail: float) -> float:
        return self.noise.reach(tail) * self.factor

    def log_likelihood(self, value: float) -> float:
        found = self.noise.log_likelihood(self._steps(value))
        return found if self.discrete else found - math.log(self.factor)

    def characteristic(self, frequencies: Floats) -> Floats:
        return self.noise.characteristic(frequencies * self.factor)

    def draw(self, generator: np.random.Generator, size: int | tuple[int, ...]) -> Floats:
        return self.noise.draw(generator, size) * self.factor

    def _steps(self, value: float) -> float:
        """A value in units of the factor; lattice points must not miss their whole number by a rounding error."""
        steps = value / self.factor
        nearest = round(steps)
        is_near = math.isclose(steps, nearest, rel_tol=1e-12, abs_tol=1e-9)
        return float(nearest) if self.discrete and is_near else steps


@dataclass(frozen=True)
class LatticeLaw(NoiseLaw):
    """A law of whole-number noise for answers that are whole numbers times a step: measured whole, then rescaled.

    A table with weight w holds answers on the lattice w·ℤ. It is measured as the whole-number table at unit loss u·wᵖ
    (p = 1 for ε, 2 for ρ) and the result is multiplied by w: V_w(u) = w²·V(u·wᵖ). One unit that moves the table by w·s
    then costs u·w·‖s‖₁ = u·‖w·s‖₁ (or u·‖w·s‖₂²): exactly its share of the *weighted* workload's sensitivity, so the
    whole release loses u·Δ, as with continuous noise. The coarser the lattice, the less noise is needed. As the lattice
    gets finer, geometric noise tends to Laplace noise of the same rate.
    """

    law: NoiseLaw
    step: Fraction  # > 0

    @property
    def name(self) -> str:
        return self.law.name

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return self.law.privacy_measure

    @property
    def needs_whole_numbers(self) -> bool:
        return self.law.needs_whole_numbers

    @property
    def publishable(self) -> bool:
        return self.law.publishable

    def at(self, unit_loss: float) -> Stretched:
        """The noise at a loss for one unit of sensitivity, in the unit of the weighted answer."""
        return Stretched(self.law.at(self._inner(unit_loss)), float(self.step))

    def variance_slope(self, unit_loss: float) -> float:
        return float(self.step) ** (2 + self._power) * self.law.variance_slope(self._inner(unit_loss))

    def variance_curvature(self, unit_loss: float) -> float:
        return float(self.step) ** (2 + 2 * self._power) * self.law.variance_curvature(self._inner(unit_loss))

    def mean_absolute_slope(self, unit_loss: float) -> float:
        return float(self.step) ** (1 + self._power) * self.law.mean_absolute_slope(self._inner(unit_loss))

    @property
    def _power(self) -> int:
        return loss_power(self.privacy_measure)

    def _inner(self, unit_loss: float) -> float:
        return positive_loss(unit_loss) * float(self.step) ** self._power


def on_lattice(law: NoiseLaw, step: Fraction) -> NoiseLaw:
    """The law for answers that are multiples of a step; a law that serves any answer stays as it is."""
    return law if step == 1 or not law.needs_whole_numbers else LatticeLaw(law, step)


def loss_power(privacy_measure: PrivacyMeasure) -> int:
    """How a loss grows when answers are stretched: ε like the stretch, ρ like its square."""
    return 2 if privacy_measure is PrivacyMeasure.ZCDP else 1
