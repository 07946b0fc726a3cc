"""One frontier, many technologies: what each kind of frontier must say, and what follows from it.

A kind of frontier (closed form, converted, envelope, split, simulated) states the expected error of every table as a
function of the loss, with its first and second derivatives. Accuracy, the marginal rate of transformation and the loss
for a given accuracy follow from these in the same way for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidLoss, UnknownName
from dualmandate.frontier.frontier import Frontier, Measure
from dualmandate.frontier.numerics import loss_where
from dualmandate.mechanism.mechanism import known_measure, positive_loss
from dualmandate.population import PrivacyMeasure

MEASURES: tuple[Measure, ...] = ("squared", "absolute", "largest variance")


class Curves(Protocol):
    """Expected error of each table as a function of the loss; arrays have shape (tables,)."""

    def values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Σ E[error²], Σ E|error|, or max E[error²] of each table; ≥ 0."""
        ...

    def slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """First derivatives with respect to the loss; ≤ 0."""
        ...

    def curvatures(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        """Second derivatives with respect to the loss."""
        ...

    def inverse(self, expected_squared_error: float) -> float | None:
        """The loss at which the summed squared error is this large, where that is known without a search."""
        ...

    def technology(self, loss: float) -> str:
        """Which mechanism stands on the frontier at this loss."""
        ...

    def allocation(self, loss: float) -> dict[str, float]:
        """The loss spent on each group of tables that is measured by itself."""
        ...


@dataclass(frozen=True, eq=False)
class CurveFrontier:
    """Accuracy as a function of privacy loss, from the curves of its tables; a `Frontier`."""

    name: str
    privacy_measure: PrivacyMeasure
    query_counts: Mapping[str, int]  # by table, in the workload's order
    curves: Curves
    remembers: bool = False  # whether each number is worked out once: a plan looks at the same losses again and again

    def remembered(self, *, name: str | None = None) -> CurveFrontier:
        """The same frontier, under another name where one is given, that works out each number once."""
        return replace(self, name=name or self.name, remembers=True)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables it produces, in the workload's order."""
        return tuple(self.query_counts)

    def table_errors(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Expected error of each table: Σ E[error²], Σ E|error|, or max E[error²]; ≥ 0, in the table's unit."""
        return self._by_table(self._values(positive_loss(loss), known_measure(measure)))

    def table_slopes(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Derivative of `table_errors` with respect to the loss; ≤ 0."""
        return self._by_table(self._slopes(positive_loss(loss), known_measure(measure)))

    def table_curvatures(self, loss: float, measure: Measure = "squared") -> dict[str, float]:
        """Second derivative of `table_errors` with respect to the loss."""
        return self._by_table(self.curves.curvatures(positive_loss(loss), known_measure(measure)))

    def expected_squared_error(self, loss: float) -> float:
        """E‖M(x, Q) − Qx‖², summed over all queries; ≥ 0."""
        return math.fsum(self._values(positive_loss(loss), "squared"))

    def accuracy(self, loss: float) -> float:
        """The paper's I: minus the expected squared error; ≤ 0, higher is better."""
        return -self.expected_squared_error(loss)

    def marginal_rate_of_transformation(self, loss: float) -> float:
        """dI/dloss > 0: accuracy gained for one more unit of privacy loss."""
        return -math.fsum(self._slopes(positive_loss(loss), "squared"))

    def second_derivative(self, loss: float) -> float:
        """d²I/dloss²; < 0 where the frontier is concave."""
        return -math.fsum(self.curves.curvatures(positive_loss(loss), "squared"))

    def epsilon_for(self, accuracy: float) -> float:
        """The smallest privacy loss that buys this accuracy (< 0); 0 where nothing needs to be measured for it."""
        if not (math.isfinite(accuracy) and accuracy < 0.0):
            raise InvalidLoss(
                f"no privacy loss buys an accuracy of {accuracy}",
                why="accuracy is minus the expected squared error: below 0 at every finite loss, and 0 only without "
                "any protection",
                instead=f"ask for a negative accuracy; {self.privacy_measure} = 1 buys {self.accuracy(1.0):.6g}",
            )
        known = self.curves.inverse(-accuracy)
        return loss_where(self.expected_squared_error, -accuracy) if known is None else known

    def technology(self, loss: float) -> str:
        """Which mechanism stands on the frontier at this loss."""
        return self.curves.technology(positive_loss(loss))

    def allocation(self, loss: float) -> dict[str, float]:
        """How the loss is split over groups of tables measured apart; one entry where they are measured together."""
        return self.curves.allocation(positive_loss(loss))

    def _values(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        return self._once("values", loss, measure) if self.remembers else self.curves.values(loss, measure)

    def _slopes(self, loss: float, measure: Measure) -> NDArray[np.float64]:
        return self._once("slopes", loss, measure) if self.remembers else self.curves.slopes(loss, measure)

    def _once(self, what: Literal["values", "slopes"], loss: float, measure: Measure) -> NDArray[np.float64]:
        key = what, loss, measure
        if key not in self._known:
            asked = self.curves.values if what == "values" else self.curves.slopes
            self._known[key] = asked(loss, measure)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[str, float, Measure], NDArray[np.float64]]:
        return {}

    def _by_table(self, numbers: NDArray[np.float64]) -> dict[str, float]:
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

    def losses(self, frontier: Frontier, loss: float) -> dict[str, float]:
        """loss_t of each table, in its own measure."""
        found = {measure: frontier.table_errors(loss, measure) for measure in set(self.measures)}
        return {table: found[measure][table] for table, measure in zip(self.tables, self.measures, strict=True)}

    def total(self, frontier: Frontier, loss: float) -> float:
        """Σ b_t·loss_t over the tables that the frontier produces."""
        losses = self.losses(frontier, loss)
        return math.fsum(value * losses[table] for table, value in zip(self.tables, self.values, strict=True))

    def slope(self, frontier: Frontier, loss: float) -> float:
        """d/dloss Σ b_t·loss_t; ≤ 0."""
        found = {measure: frontier.table_slopes(loss, measure) for measure in set(self.measures)}
        return math.fsum(
            value * found[measure][table]
            for table, value, measure in zip(self.tables, self.values, self.measures, strict=True)
        )

    def only(self, tables: tuple[str, ...]) -> TableWeights:
        """The weights of some tables."""
        kept = [self.tables.index(table) for table in tables]
        return TableWeights(tables, tuple(self.values[i] for i in kept), tuple(self.measures[i] for i in kept))
