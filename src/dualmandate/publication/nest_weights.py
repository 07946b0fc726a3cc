"""What a number of a nest takes of the noise of every measurement, so that intervals hold for nested estimates too.

Best linear unbiased estimates are linear in the measurements: e = Σ w·y. For a sum c of cells of a measured table with
variance σ², w = Σ⁻¹·X·β with β the estimates from y′ = σ² at those cells and 0 elsewhere, because XᵀΣ⁻¹y′ = c (Σ the
variances of all measurements, X what they measure). So one run of the passes gives the weights of all measurements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.estimates import estimate
from dualmandate.publication.nested_tables import NestedTables, PartlyNestedTables
from dualmandate.publication.release_spec import ReleaseSpec

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NestWeights:
    """All measurements of an order whose tables nest, or cross what nests, and what its estimates take of each."""

    order: ReleaseSpec
    nest: NestedTables | PartlyNestedTables

    direct: ClassVar[bool] = False

    @property
    def size(self) -> int:
        """All measurements."""
        return sum(group.rows.size for group in self.order.groups)

    def kinds(self) -> NDArray[np.intp]:
        """The kind of each row among all of them."""
        counts = np.cumsum([0, *(len(group.noises) for group in self.order.groups)])
        kinds = [group.rows.kinds() + start for group, start in zip(self.order.groups, counts, strict=False)]
        return np.concatenate(kinds)

    @cached_property
    def _variances(self) -> list[float]:
        """Of the measurements of each table; every table is one kind."""
        return [noise.distribution().variance for group in self.order.groups for noise in group.table_noises]

    def weights(self, table: str, numbers: Sequence[int]) -> Floats:
        """What the sum of some numbers of a table takes of the noise of each row; shape (rows,)."""
        place = [each.name for each in self.order.tables].index(table)
        asked = np.zeros(self.order.tables[place].query_count)
        np.add.at(asked, np.asarray(numbers, dtype=np.intp), self._variances[place])
        if isinstance(self.nest, PartlyNestedTables):
            return self._crossed_rows(self.nest, place, asked)
        measured: dict[tuple[int, int], Floats] = {}
        variances: dict[tuple[int, int], float] = {}
        for i, each in enumerate(self.nest.places):
            exact = i >= len(self.order.tables)
            values = asked if i == place else np.broadcast_to(0.0, (each.table.query_count,))
            measured[each.level, each.step] = self.nest.laid(each, values)
            variances[each.level, each.step] = 0.0 if exact else self._variances[i]
        found = estimate(self.nest.tree, self.nest.chain, measured, variances)
        weights = []
        for i, each in enumerate(self.nest.places[: len(self.order.tables)]):
            exact = variances[each.level, each.step] == 0.0
            part = self.nest.read(each, found.tables(each.level, finest=each.step)[each.step])
            weights.append(np.zeros_like(part) if exact else part / self._variances[i])
        return np.concatenate(weights)

    def _crossed_rows(self, crossed: PartlyNestedTables, place: int, asked: Floats) -> Floats:
        """The same with tables that cross; what cannot occur is known, and its noise is not looked at."""
        tables = [*self.order.tables, *(() if self.order.public is None else self.order.public.tables)]
        values: list[NDArray[np.float64]] = [np.broadcast_to(0.0, (each.query_count,)) for each in tables]
        allowed = crossed.allowed
        own = allowed[place]
        values[place] = asked if own is None else np.where(own, asked, 0.0)
        exact = [0.0] * (len(tables) - len(self.order.tables))
        found = crossed.estimated(values, [*self._variances, *exact])
        weights: list[Floats] = [np.empty(0)] * len(self.order.tables)
        held = {(each.level, each.step) for each in crossed.nest.places[len(crossed.inside) :]}
        for each, number in zip(crossed.nest.places, crossed.inside, strict=False):
            known = found.estimates.tables(each.level, finest=each.step)[each.step]
            part = np.zeros_like(known) if (each.level, each.step) in held else known
            weights[number] = crossed.nest.read(each, part) / self._variances[number]
        for across, number, known in zip(crossed.across, crossed.outside, found.tables, strict=True):
            weights[number] = across.read(known) / self._variances[number]
        return np.concatenate(
            [each if mask is None else np.where(mask, each, 0.0) for each, mask in zip(weights, allowed, strict=True)]
        )
