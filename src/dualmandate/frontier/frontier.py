"""The production frontier: how much accuracy each privacy loss buys (the paper's G(ε, I) = 0).

A kind of frontier (closed form, converted, envelope, split, simulated) states the expected error of every table as a
function of the loss, with its first and second derivatives. Accuracy, the marginal rate of transformation and the loss
for a given accuracy follow from these in the same way for all of them.

In closed form the noise of a technology is known exactly, so its accuracy at every loss is too. For noise scaled to a
sensitivity, ESE(ε) = C·V(ε/Δ), so MRT = −C·V′/Δ and d²I/dε² = −C·V″/Δ²: for Laplace noise V = 2/u², I = −2·C·Δ²/ε²,
MRT = 4·C·Δ²/ε³ (the paper's equation for the MRT), with C = ‖QA⁺‖²_F. A frontier in ρ can be read in the ε that ρ
implies at a stated failure probability δ (`population.loss`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Literal, Protocol

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, UnknownName
from dualmandate.frontier.numerics import (
    LARGEST_LOSS,
    SMALLEST_LOSS,
    SmoothCurve,
    derivative,
    loss_where,
    second_derivative,
)
from dualmandate.mechanism import Measure, Measurement, Mechanism, NamedMeasure, Production, TableMeasure
from dualmandate.mechanism.mechanism import known_measure, positive_loss
from dualmandate.population import PrivacyMeasure, Protection
from dualmandate.population.arguments import checked_call, checked_class, expected, unexpected
from dualmandate.population.arrays import Floats
from dualmandate.population.loss import epsilon_at, rho_at, rho_curvature_at, rho_slope_at
from dualmandate.population.shown import cut_line, one_line, page_of, sentences
from dualmandate.population.shown import table as page_table
from dualmandate.population.wording import number
from dualmandate.workload import Workload

MEASURES: tuple[NamedMeasure, ...] = ("squared", "absolute", "largest variance")


class Curves(Protocol):
    """Expected error of each table as a function of the loss; arrays have shape (tables,)."""

    def values(self, loss: float, measure: Measure) -> Floats:
        """Σ E[error²], Σ E|error|, or max E[error²] of each table; ≥ 0."""

    def slopes(self, loss: float, measure: Measure) -> Floats:
        """First derivatives with respect to the loss; ≤ 0."""

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        """Second derivatives with respect to the loss."""
        return derivative(lambda at: self.slopes(at, measure), loss)

    def inverse(self, expected_squared_error: float) -> float | None:  # noqa: ARG002 - most curves have no closed form
        """The loss at which the summed squared error is this large, where that is known without a search."""
        return None

    @property
    def convex_from(self) -> float:
        """The loss from which on errors are known to fall ever more slowly: 0 everywhere, infinite nowhere."""
        return math.inf

    @property
    def known_losses(self) -> tuple[float, float]:
        """Between which losses errors are known: all of them, unless they were simulated."""
        return 0.0, math.inf

    def technology(self, loss: float) -> str:
        """Which mechanism stands on the frontier at this loss."""

    def allocation(self, loss: float) -> dict[str, float]:
        """The loss spent on each group of tables that is measured by itself; here all are measured together."""
        return {"all": loss}


def named(measure: Measure) -> NamedMeasure:
    """A measure that every frontier knows; refused where it is read off the noise of single numbers."""
    if isinstance(measure, str):
        return measure
    raise InvalidMechanism(
        f"how the errors of table '{measure.table}' count is not known here",
        why="this frontier knows squared and absolute errors of whole tables alone",
        instead="use squared or absolute loss",
    )


def listed(by_table: Mapping[str, float]) -> Floats:
    """Numbers by table, as an array in their order."""
    return np.array(list(by_table.values()))


SHOWN_LOSSES, MOST_SHOWN = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0), 4  # in a notebook: losses, and tables


@checked_class
@dataclass(frozen=True, eq=False)
class Frontier:
    """Accuracy as a function of privacy loss (ε or ρ, always > 0), with its slopes, from the curves of its tables."""

    name: str  # the technology, or technologies, in words
    privacy_measure: PrivacyMeasure  # what a loss is counted in
    query_counts: Mapping[str, int]  # by table, in the workload's order
    curves: Curves
    remembers: bool = False  # whether each number is worked out once: a plan looks at the same losses again and again

    def __repr__(self) -> str:
        names = ", ".join(f"'{table}' {count:,}" for table, count in self.query_counts.items())
        return cut_line(f"Frontier({self.name}, in {self.privacy_measure}, of {names})")

    def _repr_html_(self) -> str:
        """What a notebook shows: the typical error of a number at some losses."""
        tables, rows = self.tables[:MOST_SHOWN], list[tuple[str, ...]]()
        least, most = self.known_losses
        for loss in (each for each in SHOWN_LOSSES if least <= each <= most):
            errors = self.table_errors(loss)
            rows.append((f"{loss:g}", *(number(math.sqrt(errors[name] / self.query_counts[name])) for name in tables)))
        left = len(self.tables) - len(tables)
        said = "Typical error (root mean squared) of a number of each table, in its unit" + (
            f"; {left} more tables are not shown." if left else "."
        )
        shown = page_table([str(self.privacy_measure), *tables], rows, words=0)
        return page_of(f"Frontier: {self.name}", sentences([said]), shown)

    def remembered(self, *, name: str | None = None) -> Frontier:
        """The same frontier, under another name where one is given, that works out each number once."""
        return Frontier(name or self.name, self.privacy_measure, self.query_counts, self.curves, remembers=True)

    @property
    def convex_from(self) -> float:
        """The loss from which on errors are known to fall ever more slowly: one loss is then best at a convex cost.

        Infinite where that is not known; it is meant of squared and absolute errors.
        """
        return self.curves.convex_from

    @property
    def known_losses(self) -> tuple[float, float]:
        """Between which losses errors are known: all of them, unless they were simulated; it is refused beyond."""
        return self.curves.known_losses

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it produces, in the workload's order."""
        return tuple(self.query_counts)

    def table_errors(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Expected error of each table: Σ E[error²], Σ E|error|, or max E[error²]; ≥ 0, in the table's unit."""
        return self._by_table(self._asked("values", positive_loss(loss), known_measure(measure)))

    def table_slopes(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Derivative of `table_errors` with respect to the loss; ≤ 0."""
        return self._by_table(self._asked("slopes", positive_loss(loss), known_measure(measure)))

    def table_curvatures(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Second derivative of `table_errors` with respect to the loss."""
        return self._by_table(self.curves.curvatures(positive_loss(loss), known_measure(measure)))

    def expected_squared_error(self, loss: float) -> float:
        """E‖M(x, Q) − Qx‖², summed over all queries; ≥ 0."""
        return math.fsum(self._asked("values", positive_loss(loss), "squared"))

    def accuracy(self, loss: float) -> float:
        """The paper's I: minus the expected squared error; ≤ 0, higher is better."""
        return -self.expected_squared_error(loss)

    def marginal_rate_of_transformation(self, loss: float) -> float:
        """dI/dloss > 0: accuracy gained for one more unit of privacy loss."""
        return -math.fsum(self._asked("slopes", positive_loss(loss), "squared"))

    def second_derivative(self, loss: float) -> float:
        """d²I/dloss²; < 0 where the frontier is concave."""
        return -math.fsum(self.curves.curvatures(positive_loss(loss), "squared"))

    def epsilon_for(self, accuracy: float) -> float:
        """The smallest privacy loss that buys this accuracy (< 0); 0 where nothing needs to be measured for it."""
        if not (math.isfinite(accuracy) and accuracy < 0.0):
            one = min(max(1.0, self.known_losses[0]), self.known_losses[1])
            raise InvalidLoss(
                f"no privacy loss buys an accuracy of {accuracy}",
                why="accuracy is minus the expected squared error: below 0 at every finite loss, and 0 only without "
                "any protection",
                instead=f"ask for a negative accuracy; {self.privacy_measure} = {one:g} buys {self.accuracy(one):.6g}",
            )
        known = self.curves.inverse(-accuracy)
        least, most = max(self.known_losses[0], SMALLEST_LOSS), min(self.known_losses[1], LARGEST_LOSS)
        found = loss_where(self.expected_squared_error, -accuracy, within=(least, most)) if known is None else known
        if math.isinf(found):
            raise InvalidLoss(
                f"an expected error of {-accuracy:.6g} is out of reach",
                why=f"no privacy loss brings it below {self.expected_squared_error(most):.6g}",
                instead="ask for less accuracy, or for another technology",
            )
        return found

    def technology(self, loss: float) -> str:
        """Which mechanism stands on the frontier at this loss."""
        return self.curves.technology(positive_loss(loss))

    def allocation(self, loss: float) -> dict[str, float]:
        """How the loss is split over groups of tables measured apart; one entry where they are measured together."""
        return self.curves.allocation(positive_loss(loss))

    def _asked(self, what: Literal["values", "slopes"], loss: float, measure: Measure) -> Floats:
        asked, key = self.curves.values if what == "values" else self.curves.slopes, (what, loss, measure)
        if not self.remembers:
            return asked(loss, measure)
        if key not in self._known:
            self._known[key] = asked(loss, measure)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, float, Measure], Floats]:
        return {}

    def _by_table(self, numbers: Floats) -> dict[str, float]:
        return dict(zip(self.query_counts, numbers.tolist(), strict=True))


@dataclass(frozen=True)
class TableWeights:
    """What a unit of each table's error costs society, and in which measure it is counted: b_t·loss_t."""

    tables: tuple[str, ...]
    values: tuple[float, ...]  # b_t ≥ 0, not all 0
    measures: tuple[Measure, ...]

    @classmethod
    def of(
        cls, tables: tuple[str, ...], values: Mapping[str, float] | None, measures: Mapping[str, Measure] | None
    ) -> TableWeights:
        """Weights by table name; a table that is not named counts 1, in squared error."""
        for name in {**(values or {}), **(measures or {})}:
            if name not in tables:
                raise UnknownName(
                    f"'{name}' is not a table of this frontier",
                    why=f"it produces {', '.join(tables[:12])}{', …' if len(tables) > 12 else ''}",
                    instead="name one of its tables",
                )
        weights = tuple(float((values or {}).get(table, 1.0)) for table in tables)
        if not all(math.isfinite(weight) and weight >= 0.0 for weight in weights) or not any(weights):
            raise InvalidLoss(
                f"values of accuracy {weights}",
                why="technologies are compared by what their errors cost, which must be finite and positive somewhere",
                instead="state values of at least 0, one of them above 0",
            )
        return cls(tables, weights, tuple(known_measure((measures or {}).get(table, "squared")) for table in tables))

    def total(self, frontier: Frontier, loss: float) -> float:
        """Σ b_t·loss_t over the tables that the frontier produces."""
        return self.weighed(lambda measure: listed(frontier.table_errors(loss, measure)))

    def slope(self, frontier: Frontier, loss: float) -> float:
        """d/dloss Σ b_t·loss_t; ≤ 0."""
        return self.weighed(lambda measure: listed(frontier.table_slopes(loss, measure)))

    def weighed(self, asked: Callable[[Measure], Floats]) -> float:
        """Σ b_t·x_t, with x_t what is asked of each table in its own measure."""
        found = {measure: asked(measure).tolist() for measure in set(self.measures)}
        rows = enumerate(zip(self.values, self.measures, strict=True))
        return math.fsum(value * found[measure][i] for i, (value, measure) in rows if value)

    def only(self, tables: tuple[str, ...]) -> TableWeights:
        """The weights of some tables."""
        kept = [self.tables.index(table) for table in tables]
        return TableWeights(tables, tuple(self.values[i] for i in kept), tuple(self.measures[i] for i in kept))


@dataclass(frozen=True, eq=False)
class ClosedFormCurves(Curves):
    """Curves of one technology, from what it states about itself."""

    production: Production

    __repr__ = one_line

    @property
    def convex_from(self) -> float:
        """Every law that rows are measured with has a variance that is convex in the loss."""
        return 0.0 if isinstance(self.production, Measurement) else math.inf

    def values(self, loss: float, measure: Measure) -> Floats:
        logs = self._read_off(loss, measure)
        return self._errors(loss, measure) if logs is None else np.exp(logs[0])

    def slopes(self, loss: float, measure: Measure) -> Floats:
        logs = self._read_off(loss, measure)
        if logs is None and isinstance(measure, str):
            return listed(self.production.table_slopes(loss, measure))
        if logs is None:
            return np.minimum(derivative(lambda at: self._errors(at, measure), loss), 0.0)
        level, elasticity, _ = logs
        return np.exp(level) * elasticity / loss

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        """Curvatures of each table: stated by the technology for squared error, otherwise from its slopes."""
        if measure == "squared":
            return listed(self.production.table_curvatures(loss))
        logs = self._read_off(loss, measure)
        if logs is None and isinstance(measure, str):
            return super().curvatures(loss, measure)
        if logs is None:
            return second_derivative(lambda at: self._errors(at, measure), loss)
        level, elasticity, bend = logs
        return np.exp(level) * (bend + elasticity * (elasticity - 1.0)) / loss**2

    def inverse(self, expected_squared_error: float) -> float | None:
        """√(ESE(1)/ESE) where the error falls like 1/ε², as it does for Laplace noise; otherwise unknown."""
        unit = self.production.expected_squared_error(1.0)
        loss = math.sqrt(unit / expected_squared_error)
        probes = (loss, 0.01, 100.0)
        is_inverse_square = all(
            math.isclose(self.production.expected_squared_error(at) * at * at, unit, rel_tol=1e-14) for at in probes
        )
        return loss if is_inverse_square else None

    def technology(self, loss: float) -> str:
        del loss  # the same at every loss
        return self.production.technology

    def _errors(self, loss: float, measure: Measure) -> Floats:
        if isinstance(measure, str):
            return listed(self.production.table_errors(loss, measure))
        tables = [table.name for table in self.production.workload.tables]
        errors = np.zeros(len(tables))
        if measure.table in tables:
            if measure not in self._known:
                self._known[measure] = cache(measure.curve(self.production))  # slopes and bends share values
            errors[tables.index(measure.table)] = self._known[measure](loss)
        return errors

    def _read_off(self, loss: float, measure: Measure) -> tuple[Floats, Floats, Floats] | None:
        """What takes long or states no slope, as logarithms, read off polynomials; None for all that is computed."""
        slow = measure == "absolute" and self.production.combines if isinstance(measure, str) else not measure.quick
        if not slow:
            return None
        if measure not in self._smooth:
            self._smooth[measure] = SmoothCurve(lambda at: self._errors(at, measure))
        return self._smooth[measure].logs(loss)

    @cached_property
    def _known(self) -> dict[TableMeasure, Callable[[float], float]]:
        return {}

    @cached_property
    def _smooth(self) -> dict[Measure, SmoothCurve]:
        return {}


def priced(production: Production) -> Frontier:
    """The frontier of a measurement, or of anything else that states its errors."""
    query_counts = {table.name: table.query_count for table in production.workload.tables}
    return Frontier(production.technology, production.privacy_measure, query_counts, ClosedFormCurves(production))


@checked_call
def frontier_of(
    mechanism: Mechanism,
    workload: Workload,
    *,
    protection: Protection | None = None,
    failure_probability: float | None = None,
) -> Frontier:
    """How much accuracy each privacy loss buys when a mechanism answers a workload.

    Without a `protection` it is the mechanism's own: add or remove one person, or replace one in randomized response.
    A technology under zCDP counts its loss in ρ; with a `failure_probability` δ the frontier is expressed in the ε
    that ρ implies at that δ.
    """
    if not hasattr(mechanism, "production"):
        raise unexpected(mechanism, what="a technology", instead='name one: mechanism_named("geometric")')
    expected(workload, Workload, what="a workload", instead="make one: identity(13_000)")
    production = mechanism.production(workload) if protection is None else mechanism.production(workload, protection)
    frontier = priced(production)
    if failure_probability is None or production.privacy_measure is PrivacyMeasure.PURE_DP:
        return frontier
    return in_epsilon(frontier, failure_probability)


@dataclass(frozen=True, eq=False)
class ConvertedCurves(Curves):
    """Curves of a frontier in ρ as functions of ε, by the chain rule."""

    frontier: Frontier
    failure_probability: float  # δ

    @property
    def convex_from(self) -> float:
        """V(ρ(ε)) is convex: its laws have −ρ·V″/V′ > 1, and ρ·ρ″ is below ρ′²."""
        rho = self.frontier.convex_from
        return epsilon_at(rho, self.failure_probability) if 0.0 < rho < math.inf else rho

    def values(self, loss: float, measure: Measure) -> Floats:
        return listed(self.frontier.table_errors(rho_at(loss, self.failure_probability), measure))

    def slopes(self, loss: float, measure: Measure) -> Floats:
        """Slopes in ρ, times ρ′."""
        rho, slope = rho_at(loss, self.failure_probability), rho_slope_at(loss, self.failure_probability)
        return listed(self.frontier.table_slopes(rho, measure)) * slope

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        """Curvatures in ρ times ρ′², plus slopes times ρ″."""
        delta = self.failure_probability
        rho, slope, curvature = rho_at(loss, delta), rho_slope_at(loss, delta), rho_curvature_at(loss, delta)
        return (
            listed(self.frontier.table_curvatures(rho, measure)) * slope**2
            + listed(self.frontier.table_slopes(rho, measure)) * curvature
        )

    def inverse(self, expected_squared_error: float) -> float | None:
        """The ρ that buys this accuracy, as ε; 0 where nothing needs to be measured for it."""
        rho = self.frontier.epsilon_for(-expected_squared_error)
        return epsilon_at(rho, self.failure_probability) if rho > 0.0 else 0.0

    def technology(self, loss: float) -> str:
        return self.frontier.technology(rho_at(loss, self.failure_probability))

    def allocation(self, loss: float) -> dict[str, float]:
        """All tables together: the ε itself. Groups measured apart: their ρ, because ε at a δ does not add up."""
        groups = self.frontier.allocation(rho_at(loss, self.failure_probability))
        return groups if len(groups) > 1 else dict.fromkeys(groups, loss)


@dataclass(frozen=True, eq=False)
class OrderedCurves(Curves):
    """Curves of a frontier, its tables in another order."""

    frontier: Frontier
    tables: tuple[str, ...]

    @property
    def convex_from(self) -> float:
        return self.frontier.convex_from

    def values(self, loss: float, measure: Measure) -> Floats:
        return self._ordered(self.frontier.table_errors(loss, measure))

    def slopes(self, loss: float, measure: Measure) -> Floats:
        return self._ordered(self.frontier.table_slopes(loss, measure))

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        return self._ordered(self.frontier.table_curvatures(loss, measure))

    def inverse(self, expected_squared_error: float) -> float | None:
        return self.frontier.curves.inverse(expected_squared_error)

    def technology(self, loss: float) -> str:
        return self.frontier.technology(loss)

    def allocation(self, loss: float) -> dict[str, float]:
        return self.frontier.allocation(loss)

    def _ordered(self, by_table: Mapping[str, float]) -> Floats:
        return np.array([by_table[table] for table in self.tables])


def in_order(frontier: Frontier, tables: tuple[str, ...]) -> Frontier:
    """The same frontier, its tables in this order: technologies are compared table by table."""
    if frontier.tables == tables:
        return frontier
    counts = {table: frontier.query_counts[table] for table in tables}
    return Frontier(frontier.name, frontier.privacy_measure, counts, OrderedCurves(frontier, tables))


def in_epsilon(frontier: Frontier, failure_probability: float) -> Frontier:
    """A frontier in ρ expressed in ε at a stated δ, by the tight conversion; a frontier in ε is refused."""
    if frontier.privacy_measure is not PrivacyMeasure.ZCDP:
        raise InvalidLoss(
            f"'{frontier.name}' counts its loss in {frontier.privacy_measure} already",
            why="only a concentrated loss is expressed in ε at a δ",
            instead="use the frontier as it is",
        )
    rho_at(1.0, failure_probability)  # refuses what is not a probability
    curves = ConvertedCurves(frontier, failure_probability)
    name = f"{frontier.name} at δ = {failure_probability:.3g}"
    return Frontier(name, PrivacyMeasure.PURE_DP, frontier.query_counts, curves)
