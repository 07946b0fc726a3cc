"""The one noun: rows that are measured with noise, and the answers from them, under a protection.

A measurement is what a plan prices, what a release draws, and what an audit computes again by itself. Its rows are
whole numbers, each with a weight w; at a loss ε or ρ for everything, u = loss/Δᵖ is left for one unit of sensitivity
(Δ that of the weighted rows, p = 1 for ε and 2 for ρ), and a row of weight w gets noise of loss u·wᵖ. A unit that
changes rows by s then loses Σ u·(w·|s|)ᵖ ≤ loss. From rows, law and protection follow the exact noise, the error of
every answer, its slopes in the loss, intervals, and what one unit can change at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.changes import Change, largest_changes
from dualmandate.mechanism.mechanism import (
    EVERY_PERSON,
    Distribution,
    ExactLaw,
    NamedMeasure,
    Noise,
    NoiseLaw,
    known_measure,
    known_table,
    loss_power,
    on_lattice,
    positive_loss,
    tail_of,
)
from dualmandate.mechanism.reconstruction import MixedAnswers, interpolation
from dualmandate.mechanism.rows import Answers, DecidedAnswers, Rows
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload import Sensitivity, Workload
from dualmandate.workload.sensitivity import Norm

FEW_KINDS = 48  # The noise of at most so many weights is worked out one by one.
LEAST_VARIANCE = 1e-300  # Noise that has vanished from floats is taken to have this, so that its logarithm is a number.
NODES = 24  # Where there are more, a polynomial passes through so many points.


@dataclass(frozen=True, eq=False)
class Measurement:
    """Rows, the law of their noise, and who is protected; a `Production`.

    A law that is drawn exactly makes it publishable: `noises` are what a release of it draws. Any other law makes it a
    study, which is priced and compared and never published.
    """

    rows: Rows
    law: NoiseLaw
    protection: Protection = EVERY_PERSON

    __repr__ = one_line

    def __post_init__(self) -> None:
        if self.law.needs_whole_numbers and not self.rows.whole:
            raise InvalidMechanism(
                f"{self.law.name} noise on a strategy with fractions",
                why="its promise holds for measurements that change by whole numbers",
                instead="scale the rows to whole numbers, state the strategy as a weighted workload, or use laplace",
            )
        sensitivity = self.sensitivity
        assert self.rows.answered  # refuses rows that do not support the workload
        if sensitivity.power <= 0:
            raise InvalidMechanism(
                f"{self.technology} for answers that no protected {self.protection.unit} can change",
                why="exact totals, or the public number of records, decide what is measured: noise protects nothing",
                instead="publish it as the exact total that it is, or drop the invariant",
            )

    @property
    def technology(self) -> str:
        return self.rows.technology(self.law.name)

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return self.law.privacy_measure

    @property
    def workload(self) -> Workload:
        return self.rows.workload

    @cached_property
    def sensitivity(self) -> Sensitivity:
        return self.rows.sensitivity(self.protection, norm_of(self.privacy_measure))

    @cached_property
    def answered(self) -> Mapping[str, Answers]:
        """How noise reaches the answers of each table: not at all where it rests on public totals that decide it."""
        found = self.rows.answered
        if not self.rows.needs_public or self.protection.neighbors is Neighbors.ADD_OR_REMOVE:
            return found
        alone = {name: self.workload.only((name,)) for name in found}
        decided = {name for name in alone if alone[name].sensitivity(self.protection, "l1").power == 0}
        none = {name: DecidedAnswers(alone[name].query_count, len(self.rows.steps)) for name in decided}
        return {**found, **none}

    @cached_property
    def combines(self) -> bool:
        return any(answers.single is None for answers in self.answered.values())

    def unit_loss(self, loss: float) -> float:
        """Loss for one unit of sensitivity: ε/Δ₁ or ρ/Δ₂²."""
        return positive_loss(loss) / float(self.sensitivity.power)

    def noises(self, loss: Fraction) -> tuple[Noise, ...]:
        """The exact noise of each kind of row: everything loses exactly `loss`, or at most that where Δ is a bound."""
        law, power = exact_law(self.law), loss_power(self.privacy_measure)
        unit = PrivacyLoss(loss, self.privacy_measure).amount / self.sensitivity.power
        return tuple(Noise(law, law.parameter(unit * step**power)) for step in self.rows.steps)

    def changes(self, loss: Fraction) -> tuple[Change, ...] | None:
        """What one protected unit can change, less what another change covers; None where that is too much.

        The largest `loss_of` one of them is what a unit loses, and the worst distribution of the loss is that of one.
        """
        return largest_changes([(self.rows, self.noises(loss))], self.protection)

    def query_variances(self, table: str, loss: float | Fraction) -> Floats:
        """E[error²] of each query of a table; for an exact loss, that of the exact noise."""
        answers = self._answers(table)
        if isinstance(loss, Fraction) and self.law.publishable:
            if loss not in self._exact_variances:
                pairs = zip(self.rows.steps, self.noises(loss), strict=True)
                found = {step: float(step) ** 2 * noise.distribution().variance for step, noise in pairs}
                self._exact_variances[loss] = found
            return answers.variances(self._exact_variances[loss].__getitem__)
        unit = self.unit_loss(float(loss))
        return answers.variances(lambda step: on_lattice(self.law, step).variance(unit))

    @cached_property
    def _exact_variances(self) -> dict[Fraction, dict[Fraction, float]]:
        return {}  # of a weighted row of each weight, by the loss

    def table_errors(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        unit = self.unit_loss(loss)
        if known_measure(measure) == "squared":
            return self._summed(self._of_kinds(lambda law, at: law.variance(at), unit))
        if measure == "absolute":
            return {name: self._absolute(name, unit) for name in self.answered}
        return {name: float(np.max(self.query_variances(name, loss))) for name in self.answered}

    def table_slopes(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        """Derivative of `table_errors`; a central difference for absolute errors of several whole-number draws."""
        unit, power = self.unit_loss(loss), float(self.sensitivity.power)
        falls = self._of_kinds(lambda law, at: -law.variance_slope(at), unit) / power
        if known_measure(measure) == "squared":
            return self._summed(-falls)
        if measure == "absolute":
            return {name: self._absolute_slope(name, unit) / power for name in self.answered}
        found = {}
        by_step = dict(zip(self.rows.steps, falls.tolist(), strict=True))
        for name, answers in self.answered.items():
            worst = int(np.argmax(self.query_variances(name, loss)))
            found[name] = -float(answers.variances(by_step.__getitem__)[worst])
        return found

    def table_curvatures(self, loss: float) -> dict[str, float]:
        unit, power = self.unit_loss(loss), float(self.sensitivity.power)
        return self._summed(self._of_kinds(lambda law, at: law.variance_curvature(at), unit) / power**2)

    def expected_squared_error(self, loss: float) -> float:
        return math.fsum(self.table_errors(loss).values())

    @cached_property
    def error_coefficient(self) -> float:
        """(ΔA)²·‖QA⁺‖²_F: expected squared error = variance of noise for unit sensitivity × this, for scaled noise."""
        power = float(self.sensitivity.power)
        squared = power if self.privacy_measure is PrivacyMeasure.ZCDP else power**2
        return squared * math.fsum(math.fsum(answers.sums) for answers in self.answered.values())

    def half_width(self, table: str, loss: float, probability: float) -> Floats:
        return self._answers(table).reaches(self._distributions(self.unit_loss(loss)), tail_of(probability))

    def check_intervals(self) -> None:
        """Refuse answers made of so many different mixes of noise that no half-width can be worked out."""
        for answers in self.answered.values():
            if isinstance(answers, MixedAnswers):
                answers.check()

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> Floats:
        """Exact for independent errors (each query gets p^(1/n)); otherwise by the union bound (1 − (1 − p)/n)."""
        shared = self._shared_tail(table, tail_of(probability))
        return self._answers(table).reaches(self._distributions(self.unit_loss(loss)), shared)

    def worst_error(self, table: str, loss: float, miss_probability: float) -> float:
        """α: no answer of a table is off by more, but with probability β; it moves with the loss, and is never less.

        The widest `simultaneous_half_width`, drawn through between the values that whole-number noise takes.
        """
        shared = self._shared_tail(table, tail_of(1 - miss_probability))
        return self._answers(table).widest(self._distributions(self.unit_loss(loss)), shared)

    def expected_misses(self, table: str, loss: float, distance: float) -> float:
        """How many answers of a table are expected to be off by more than a distance: Σ P(|error| > distance)."""
        return self._answers(table).misses(self._distributions(self.unit_loss(loss)), distance)

    def weighed_squares(self, table: str, weights: Floats) -> Callable[[float], float]:
        """Σ w·E[error²] over the answers of a table at each loss; weights have shape (query_count,)."""
        answers, steps = self._answers(table), self.rows.steps
        if len(steps) > FEW_KINDS:
            return lambda loss: float(self.query_variances(table, loss) @ weights)
        ones = [{step: float(step == each) for step in steps} for each in steps]
        sums = np.array([answers.variances(one.__getitem__) @ weights for one in ones])
        return lambda loss: float(sums @ self._of_kinds(lambda law, at: law.variance(at), self.unit_loss(loss)))

    def _shared_tail(self, table: str, tail: float) -> float:
        """What each answer of a table may miss by itself, so that all of them together miss with this probability."""
        count = self.workload.table(table).query_count
        return -math.expm1(math.log1p(-tail) / count) if self._answers(table).independent else tail / count

    def draw(self, counts: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        return np.asarray(self.workload.answers(counts) + self.draw_errors(loss, generator=generator, size=size))

    def draw_errors(self, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        """Simulated errors of all answers, shape (size, query_count); never for publication."""
        kinds, noise = self.rows.kinds(), np.empty((size, self.rows.size))
        for kind, law in enumerate(self._distributions(self.unit_loss(loss))):
            rows = np.flatnonzero(kinds == kind)
            noise[:, rows] = law.draw(generator, (size, len(rows)))
        return np.asarray(self.rows.spread(noise), dtype=np.float64)

    def _answers(self, table: str) -> Answers:
        return self.answered[known_table(self.workload, table)]

    def _distributions(self, unit: float) -> list[Distribution]:
        """The noise of each kind of row, in the unit of a weighted row."""
        return [on_lattice(self.law, step).at(unit) for step in self.rows.steps]

    def _summed(self, of_kinds: Floats) -> dict[str, float]:
        return {name: float(answers.sums @ of_kinds) for name, answers in self.answered.items()}

    def _absolute(self, table: str, unit: float) -> float:
        if self.law.needs_whole_numbers:
            return self._answers(table).mean_absolute(self._distributions(unit))
        # Scaled noise: E|error| at unit loss 1, stretched; it shrinks like 1/ε, or like 1/√ρ.
        return float(self._unit_absolute[table] * unit ** (-1 / loss_power(self.privacy_measure)))

    def _absolute_slope(self, table: str, unit: float) -> float:
        if not self.law.needs_whole_numbers:
            return -1 / loss_power(self.privacy_measure) / unit * self._absolute(table, unit)
        single = self._answers(table).single
        if single is None:
            return slope_of(lambda at: self._absolute(table, at), unit)
        return float(single @ [on_lattice(self.law, step).mean_absolute_slope(unit) for step in self.rows.steps])

    @cached_property
    def _unit_absolute(self) -> dict[str, float]:
        return {name: each.mean_absolute(self._distributions(1.0)) for name, each in self.answered.items()}

    def _of_kinds(self, value: Callable[[NoiseLaw, float], float], unit: float) -> Floats:
        """A number > 0 that the law has on each lattice, shape (kinds,); read off a polynomial where they are many."""
        steps = self.rows.steps
        if not self.law.needs_whole_numbers:
            return np.full(len(steps), value(self.law, unit))
        if len(steps) <= FEW_KINDS:
            return np.array([value(on_lattice(self.law, step), unit) for step in steps])
        nodes, polynomial = self._interpolation
        at_nodes = [value(on_lattice(self.law, Fraction(float(node))), unit) for node in nodes]
        return np.asarray(np.exp(polynomial @ np.log(np.maximum(at_nodes, LEAST_VARIANCE))))

    @cached_property
    def _interpolation(self) -> tuple[Floats, Floats]:
        """Chebyshev points in ln w, and the polynomial from values there to all weights: (kinds, nodes)."""
        steps = np.log([float(step) for step in self.rows.steps])
        low, high = steps.min(), steps.max()
        nodes = (low + high) / 2 - (high - low) / 2 * np.cos(np.pi * np.arange(NODES) / (NODES - 1))
        return np.exp(nodes), interpolation(nodes, steps)


def exact_law(law: NoiseLaw) -> ExactLaw:
    """A law that is drawn exactly; refused where it is not."""
    if not law.publishable:
        raise InvalidMechanism(
            f"{law.name} noise cannot be published",
            why="only noise that is drawn exactly, on whole numbers, keeps its promise",
            instead='plan with noise = "geometric", "gaussian" or "best"',
        )
    return cast(ExactLaw, law)


def norm_of(privacy_measure: PrivacyMeasure) -> Norm:
    """The norm in which a sensitivity is measured: ℓ₁ for ε, ℓ₂ for ρ."""
    return "l2" if privacy_measure is PrivacyMeasure.ZCDP else "l1"


def slope_of(curve: Callable[[float], float], at: float) -> float:
    """The derivative of a smooth curve: a central difference of fourth order, relative error some 10⁻⁷."""
    step = 0.01 * min(at, 1.0)
    near, far = (curve(at + k * step) - curve(at - k * step) for k in (1, 2))
    return (8 * near - far) / (12 * step)
