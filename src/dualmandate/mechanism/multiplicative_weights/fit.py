"""The distribution that multiplicative weights keep: as even as may be, moved by what was measured.

A cell weighs exp(Σ pull·query(cell)), with one pull a number that was measured. As published [HLM12], the newest pull
grows once by (measured − fitted)/(2N). Or all measurements are gone through again until they fit together: the
distribution p of N records with the least Σ (measured − fitted)²/(2·variance) + τ·N·KL(p ‖ even), by its convex dual
in the pulls, in which the slope is fitted − measured + τ·variance·pull. τ is one over what an even distribution
answers on average: a table's cells then give way like counts that spread about as widely as they are large.

Noise is in the measurements already, so that no number of steps costs any privacy. Weights are never written out for
the whole domain: they are products of potentials over the attributes of each measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dualmandate.mechanism.multiplicative_weights.cliques import LARGEST_TREE, Axes, CliqueMarginals, CliqueTree
from dualmandate.population import Domain
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Row, Table, Total, Workload

NEAR = 0.02  # of what a number would spread by chance: a slope this small is none
LARGEST_ROWS = 2**24  # numbers of queries that are written out to be applied together


@dataclass(frozen=True, eq=False)
class AskedTable:
    """One table on the attributes that it tells apart; its answers are whole numbers of whole counts."""

    axes: Axes
    workload: Workload  # of the one table, without its weight, over these attributes

    @classmethod
    def of(cls, domain: Domain, table: Table) -> AskedTable:
        telling = tuple(axis for axis, factor in enumerate(table.factors) if not isinstance(factor, Total))
        axes = telling or (0,)
        alone = Table(table.name, tuple(table.factors[axis] for axis in axes))
        return cls(axes, Workload(domain.project(domain.names[axis] for axis in axes), (alone,)))

    @property
    def table(self) -> Table:
        return self.workload.tables[0]

    def query(self, row: int) -> AskedTable:
        """One of its queries."""
        places = np.unravel_index(row, self.table.shape)
        rows = []
        for factor, place in zip(self.table.factors, places, strict=True):
            chosen = np.zeros(factor.rows, dtype=np.int64)
            chosen[place] = 1
            rows.append(Row(np.asarray(factor.apply_transpose(chosen, 0), dtype=np.int64)))
        return AskedTable(self.axes, Workload(self.workload.domain, (Table(self.table.name, tuple(rows)),)))

    def answers(self, marginal: Floats) -> Floats:
        return np.asarray(self.workload.answers(marginal), dtype=np.float64)

    def back(self, numbers: Floats) -> Floats:
        """For each cell the sum of the numbers of the queries that count it."""
        return np.asarray(self.workload.transpose_answers(numbers), dtype=np.float64)

    @cached_property
    def written(self) -> Floats:
        """A single query as one number a cell, flattened."""
        assert self.table.query_count == 1
        return self.back(np.ones(1)).reshape(-1)


@dataclass(frozen=True, eq=False)
class NoisyReading:
    """What was measured of a table, or of one query."""

    asked: AskedTable
    values: Integers
    variance: float  # of each value's noise


@dataclass(frozen=True, eq=False)
class _Together:
    """Single queries about the same attributes, applied as one matrix."""

    axes: Axes
    places: Integers  # of their numbers among all
    rows: Floats  # shape (queries, cells)

    def answers(self, marginal: Floats) -> Floats:
        return np.asarray(self.rows @ marginal.reshape(-1))

    def back(self, numbers: Floats) -> Floats:
        return np.asarray(numbers @ self.rows)


@dataclass(frozen=True, eq=False)
class _Whole:
    """A whole table."""

    asked: AskedTable
    places: Integers

    @property
    def axes(self) -> Axes:
        return self.asked.axes

    def answers(self, marginal: Floats) -> Floats:
        return self.asked.answers(marginal)

    def back(self, numbers: Floats) -> Floats:
        return self.asked.back(numbers).reshape(-1)


@dataclass
class FittedDistribution:
    """The distribution as it stands; it grows with every reading.

    A cell weighs exp(Σ pull·query(cell)): one pull a number that was read.
    """

    domain: Domain
    total: float
    readings: list[NoisyReading] = field(default_factory=list)
    pulls: Floats = field(default_factory=lambda: np.zeros(0))
    potentials: dict[Axes, Floats] = field(default_factory=dict)
    _known: CliqueMarginals | None = None
    _tree: CliqueTree | None = None

    @property
    def tree(self) -> CliqueTree:
        if self._tree is None:
            self._tree = CliqueTree.joining(self.domain.shape, self.potentials)
        return self._tree

    @property
    def marginals(self) -> CliqueMarginals:
        if self._known is None:
            self._known = self.tree.marginals(self.potentials, self.total)
        return self._known

    def has_room(self, axes: Axes) -> bool:
        """Whether a reading of these attributes leaves all cliques together small enough."""
        if self.tree.holder(axes) is not None:
            return True
        return CliqueTree.joining(self.domain.shape, [*self.potentials, axes]).size <= LARGEST_TREE

    def answers(self, asked: AskedTable) -> Floats:
        return asked.answers(self.marginals.of(asked.axes))

    def read(self, reading: NoisyReading) -> None:
        """Take in what was measured, without moving yet."""
        self.readings.append(reading)
        self.pulls = np.concatenate([self.pulls, np.zeros(len(reading.values))])
        axes = reading.asked.axes
        if axes not in self.potentials:
            self.potentials[axes] = np.zeros([self.domain.shape[axis] for axis in axes])
            self._tree = self._known = None

    def move_once(self) -> None:
        """One step with the newest reading alone, as published: exp((measured − fitted)·query/(2N))."""
        if not self.total > 0:
            return
        reading = self.readings[-1]
        pull = (reading.values - self.answers(reading.asked)) / (2 * self.total * reading.asked.table.largest_entry**2)
        self.pulls[len(self.pulls) - len(pull) :] += pull
        self.potentials[reading.asked.axes] += reading.asked.back(pull)
        self._known = None

    def replay(self, steps: int) -> None:
        """So many steps with all readings; fewer where they no longer help."""
        from scipy.optimize import minimize

        if not self.total > 0:
            return
        parts, values = self._parts(), np.concatenate([reading.values for reading in self.readings]).astype(np.float64)
        even = [np.abs(each.asked.answers(self._even(each.asked.axes))).mean() for each in self.readings]
        give = np.concatenate([np.full(len(each.values), each.variance) for each in self.readings]) / max(
            1.0, float(np.mean(even))
        )

        fitted = np.concatenate([self.answers(each.asked) for each in self.readings])
        scale = 1 / np.sqrt(np.abs(fitted) + give)  # about the curvature of each pull alone

        def off(scaled: Floats) -> tuple[float, Floats]:
            """N·ln Σ exp(Σ pull·query) − Σ pull·measured + Σ give·pull²/2, and its slope."""
            pulls = scaled * scale
            marginals = self.tree.marginals(self._potentials(parts, pulls), self.total)
            slope = give * pulls - values
            for part in parts:
                slope[part.places] += part.answers(marginals.of(part.axes))
            return self.total * marginals.log_sum + float(pulls @ (give * pulls / 2 - values)), slope * scale

        options = {"maxiter": steps, "gtol": NEAR, "ftol": 1e-12}
        found = minimize(off, self.pulls / scale, jac=True, method="L-BFGS-B", options=options)
        self.pulls = found.x * scale
        self.potentials, self._known = self._potentials(parts, self.pulls), None

    def _even(self, axes: Axes) -> Floats:
        shape = [self.domain.shape[axis] for axis in axes]
        return np.full(shape, self.total / np.prod(shape))

    def _potentials(self, parts: list[_Together | _Whole], pulls: Floats) -> dict[Axes, Floats]:
        found = {axes: np.zeros(potential.shape) for axes, potential in self.potentials.items()}
        for part in parts:
            found[part.axes] += part.back(pulls[part.places]).reshape(found[part.axes].shape)
        return found

    def _parts(self) -> list[_Together | _Whole]:
        parts: list[_Together | _Whole] = []
        single: dict[Axes, list[tuple[NoisyReading, int]]] = {}
        place = 0
        for reading in self.readings:
            count = len(reading.values)
            if reading.asked.table.query_count > 1:
                parts.append(_Whole(reading.asked, np.arange(place, place + count)))
            else:
                single.setdefault(reading.asked.axes, []).append((reading, place))
            place += count
        for axes, readings in single.items():
            at_once = max(1, LARGEST_ROWS // self.tree.cells(axes))
            for start in range(0, len(readings), at_once):
                some = readings[start : start + at_once]
                rows = np.stack([reading.asked.written for reading, _ in some])
                parts.append(_Together(axes, np.array([each for _, each in some]), rows))
        return parts
