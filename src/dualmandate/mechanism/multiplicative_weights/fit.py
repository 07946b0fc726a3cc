"""The distribution that multiplicative weights keep: as even as may be, moved by what was measured.

Every step multiplies each cell's weight by exp(step·Σ (measured − fitted)·query(cell)): once with the newest
measurement, as published [HLM12], or again and again with all of them, weighted by how sure each is (mirror descent on
Σ (measured − fitted)²/variance, with steps that are halved until they help). Noise is in the measurements already, so
that no number of steps costs any privacy. A cell's weight is never written out: it is a product of potentials over the
attributes of each measurement.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dualmandate.mechanism.multiplicative_weights.cliques import LARGEST_TREE, Axes, CliqueMarginals, JunctionTree
from dualmandate.population import Domain
from dualmandate.population.arrays import Floats, Integers
from dualmandate.workload import Row, Table, Total, Workload

LARGEST_ROWS = 2**24  # numbers of queries that are written out to be applied together
GROWTH = 2.0  # of a step that helped
MOST_HALVINGS = 30
ENOUGH = 1e-7  # of the misfit, that a step must gain for another to be made


@dataclass(frozen=True, eq=False)
class Asked:
    """One table on the attributes that it tells apart; its answers are whole numbers of whole counts."""

    axes: Axes
    workload: Workload  # of the one table, without its weight, over these attributes

    @classmethod
    def of(cls, domain: Domain, table: Table) -> Asked:
        telling = tuple(axis for axis, factor in enumerate(table.factors) if not isinstance(factor, Total))
        axes = telling or (0,)
        alone = Table(table.name, tuple(table.factors[axis] for axis in axes))
        return cls(axes, Workload(domain.project(domain.names[axis] for axis in axes), (alone,)))

    @property
    def table(self) -> Table:
        return self.workload.tables[0]

    def query(self, row: int) -> Asked:
        """One of its queries."""
        places = np.unravel_index(row, self.table.shape)
        rows = []
        for factor, place in zip(self.table.factors, places, strict=True):
            chosen = np.zeros(factor.rows, dtype=np.int64)
            chosen[place] = 1
            rows.append(Row(np.asarray(factor.apply_transpose(chosen, 0), dtype=np.int64)))
        return Asked(self.axes, Workload(self.workload.domain, (Table(self.table.name, tuple(rows)),)))

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
class Reading:
    """What was measured of a table, or of one query."""

    asked: Asked
    values: Integers
    variance: float  # of each value's noise


@dataclass(frozen=True, eq=False)
class _Together:
    """Single queries about the same attributes, applied as one matrix."""

    axes: Axes
    rows: Floats  # shape (queries, cells)
    values: Floats
    weights: Floats

    def misfit(self, marginal: Floats) -> tuple[float, Floats]:
        """Σ (measured − fitted)²/(2·variance), and its slope in every cell."""
        off = self.rows @ marginal.reshape(-1) - self.values
        return float(off @ (self.weights * off)) / 2, ((self.weights * off) @ self.rows).reshape(marginal.shape)


@dataclass(frozen=True, eq=False)
class _Whole:
    """A whole table."""

    reading: Reading

    @property
    def axes(self) -> Axes:
        return self.reading.asked.axes

    def misfit(self, marginal: Floats) -> tuple[float, Floats]:
        weight = 1 / self.reading.variance
        off = self.reading.asked.answers(marginal) - self.reading.values
        return weight * float(off @ off) / 2, self.reading.asked.back(weight * off)


@dataclass
class FittedDistribution:
    """The distribution as it stands; it grows with every reading."""

    domain: Domain
    total: float
    readings: list[Reading] = field(default_factory=list)
    potentials: dict[Axes, Floats] = field(default_factory=dict)
    step: float = 0.0  # the last that helped
    _known: CliqueMarginals | None = None
    _tree: JunctionTree | None = None

    @property
    def tree(self) -> JunctionTree:
        if self._tree is None:
            self._tree = JunctionTree.joining(self.domain.shape, self.potentials)
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
        return JunctionTree.joining(self.domain.shape, [*self.potentials, axes]).size <= LARGEST_TREE

    def answers(self, asked: Asked) -> Floats:
        return asked.answers(self.marginals.of(asked.axes))

    def read(self, reading: Reading) -> None:
        """Take in what was measured, without moving yet."""
        self.readings.append(reading)
        axes = reading.asked.axes
        if axes not in self.potentials:
            self.potentials[axes] = np.zeros([self.domain.shape[axis] for axis in axes])
            self._tree = self._known = None

    def move_once(self) -> None:
        """One step with the newest reading alone, as published: exp((measured − fitted)·query/(2N))."""
        if not self.total > 0:
            return
        reading = self.readings[-1]
        off = reading.values - self.answers(reading.asked)
        largest = reading.asked.table.largest_entry
        self.potentials[reading.asked.axes] += reading.asked.back(off / largest) / (2 * self.total * largest)
        self._known = None

    def replay(self, steps: int) -> None:
        """So many steps with all readings; fewer where they no longer help."""
        if not self.total > 0:
            return
        parts = self._parts()
        misfit, slopes = self._misfit(parts, self.marginals)
        step = self.step or 1.0 / (self.total * max(1 / each.variance for each in self.readings))
        for _ in range(steps):
            gained = 0.0
            for _ in range(MOST_HALVINGS):
                moved = {axes: value - step * slopes.get(axes, 0.0) for axes, value in self.potentials.items()}
                marginals = self.tree.marginals(moved, self.total)
                found, there = self._misfit(parts, marginals)
                if found < misfit:
                    gained = misfit - found
                    break
                step /= 2
            if not gained > 0:
                break
            self.potentials, self._known, self.step = moved, marginals, step
            done = gained <= ENOUGH * misfit
            misfit, slopes, step = found, there, step * GROWTH
            if done:
                break

    def _parts(self) -> list[_Together | _Whole]:
        parts: list[_Together | _Whole] = []
        single: dict[Axes, list[Reading]] = {}
        for reading in self.readings:
            if reading.asked.table.query_count > 1:
                parts.append(_Whole(reading))
            else:
                single.setdefault(reading.asked.axes, []).append(reading)
        for axes, readings in single.items():
            at_once = max(1, LARGEST_ROWS // self.tree.cells(axes))
            for start in range(0, len(readings), at_once):
                some = readings[start : start + at_once]
                rows = np.stack([reading.asked.written for reading in some])
                values = np.array([float(reading.values[0]) for reading in some])
                parts.append(_Together(axes, rows, values, np.array([1 / reading.variance for reading in some])))
        return parts

    @staticmethod
    def _misfit(parts: list[_Together | _Whole], marginals: CliqueMarginals) -> tuple[float, dict[Axes, Floats]]:
        misfit, slopes = 0.0, dict[Axes, Floats]()
        for part in parts:
            found, slope = part.misfit(marginals.of(part.axes))
            misfit += found
            slopes[part.axes] = slopes[part.axes] + slope if part.axes in slopes else slope
        return misfit, slopes
