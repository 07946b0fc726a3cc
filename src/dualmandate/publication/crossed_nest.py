"""Tables of which most nest: the others cross the groupings of cells or the geography, or cells are bound to places.

What nests is held exactly, as in `nested`; tables that cross enter estimates with their precision, pull where whole
numbers are chosen, and are then counted from these. Cells that cannot occur in some places are empty there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.across import Crossing
from dualmandate.publication.consistency.capacities import Capacities
from dualmandate.publication.consistency.crossing import Crossed, estimate_crossed
from dualmandate.publication.consistency.descending import Demands, top_down
from dualmandate.publication.consistency.passes import count_across
from dualmandate.publication.consistency.strata import Strata
from dualmandate.publication.consistency.weighing import Floats, Pair
from dualmandate.publication.ladders import Labels
from dualmandate.publication.measurements import Measurements, PublishedTable
from dualmandate.publication.measuring import labeled
from dualmandate.publication.nested import Nest, Place, published_place
from dualmandate.publication.order import Group, Order
from dualmandate.workload import Table

Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Across:
    """A table that crosses: the row of each node of a level and of each cell of the chain, `NOWHERE` for none."""

    table: Table
    axis: int  # the geography
    level: int
    nodes: Labels = field(repr=False)
    groups: Labels = field(repr=False)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Areas and groups."""
        areas = self.table.shape[self.axis]
        return areas, self.table.query_count // areas

    @cached_property
    def in_place(self) -> bool:
        """Whether its areas are the nodes of the level."""
        return bool(np.array_equal(np.sort(self.nodes), np.arange(self.shape[0])))

    def crossing(self, variance: float) -> Crossing:
        """What it counts, areas in the order of the nodes where they are these."""
        areas = np.arange(self.shape[0]) if self.in_place else self.nodes
        return Crossing(self.level, areas, self.groups, self.shape, variance)

    def laid(self, values: NDArray[Any]) -> NDArray[Any]:
        """Its numbers over areas and groups."""
        rows = np.moveaxis(values.reshape(self.table.shape), self.axis, 0).reshape(self.shape)
        return rows[self.nodes] if self.in_place else rows

    def read(self, values: NDArray[Any]) -> NDArray[Any]:
        """Back to the order of the table; shape (query_count,)."""
        rows = np.empty_like(values)
        rows[self.nodes if self.in_place else slice(None)] = values
        shape = [self.shape[0], *(size for axis, size in enumerate(self.table.shape) if axis != self.axis)]
        return np.moveaxis(rows.reshape(shape), 0, self.axis).reshape(-1)


@dataclass(frozen=True, eq=False)
class CrossedNest:
    """A nest of some tables of an order and of what is exact, the tables that cross it, and what cells may count."""

    nest: Nest  # its places: the tables that nest, in the order's order, and what is exact
    inside: tuple[int, ...]  # the number of each of its tables in the order
    across: tuple[Across, ...]
    outside: tuple[int, ...]  # of each of these
    capacities: Capacities | None

    @property
    def cells_are_measured(self) -> bool:
        """Whether a table counts every cell of every leaf."""
        last = self.nest.tree.last, self.nest.chain.last
        return any((place.level, place.step) == last for place in self.nest.places[: len(self.inside)])

    @cached_property
    def allowed(self) -> tuple[Mask | None, ...]:
        """Which numbers of each table of the order may be other than 0; None for all of them."""
        found: list[Mask | None] = [None] * (len(self.inside) + len(self.across))
        if self.capacities is not None:
            for place, number in zip(self.nest.places, self.inside, strict=False):
                found[number] = self.nest.read(place, self._room(place, self.capacities))
            for across, number in zip(self.across, self.outside, strict=True):
                found[number] = across.read(self._room_across(across, self.capacities))
        return tuple(found)

    def _room(self, place: Place, capacities: Capacities) -> Mask:
        found = np.empty((self.nest.tree.sizes[place.level], self.nest.chain.sizes[place.step]), dtype=np.bool_)
        for node in range(len(found)):
            room = capacities.room(place.level, range(node, node + 1))
            found[node] = self.nest.chain.sums(room > 0, place.step) > 0
        return found

    def _room_across(self, across: Across, capacities: Capacities) -> Mask:
        found, crossing = np.zeros(across.shape), across.crossing(0.0)
        for node in range(self.nest.tree.sizes[across.level]):
            room = capacities.room(across.level, range(node, node + 1)) > 0
            count_across(room.astype(np.float64), crossing.areas[node : node + 1], crossing.groups, found)
        return found > 0

    def estimated(self, values: Sequence[NDArray[Any]], variances: Sequence[float]) -> Crossed:
        """Estimates from the numbers of each table, and of what is exact, with the variance of each."""
        measured: dict[Pair, NDArray[Any]] = {}
        spread: dict[Pair, float] = {}
        exact = range(len(self.inside) + len(self.across), len(values))
        for place, number in zip(self.nest.places, (*self.inside, *exact), strict=True):
            measured[place.level, place.step] = self.nest.laid(place, values[number])
            spread[place.level, place.step] = variances[number]
        crossed = [
            (each.crossing(variances[number]), each.laid(values[number]))
            for each, number in zip(self.across, self.outside, strict=True)
        ]
        return estimate_crossed((self.nest.tree, self.nest.chain), measured, spread, crossed)

    def strata(self, found: Crossed, variances: Sequence[float]) -> Strata | None:
        """Exact variances of estimates, where there are such."""
        places = zip(self.nest.places[: len(self.inside)], self.inside, strict=True)
        spread = {(place.level, place.step): variances[number] for place, number in places}
        spread |= {(place.level, place.step): 0.0 for place in self.nest.places[len(self.inside) :]}
        return Strata.of(self.nest.tree, self.nest.chain, spread, found.crossings)


@dataclass(frozen=True, eq=False)
class SettledCrossing:
    """The tables of a crossed nest, made one by one; whether estimates are the best, and standard errors exact."""

    tables: Iterator[PublishedTable] = field(repr=False)
    best: bool
    exact_errors: bool


def consistent_crossed_nest(
    order: Order,
    crossed: CrossedNest,
    *,
    measured: Sequence[Measurements],
    totals: NDArray[np.int64] | None,
    whole: bool = True,
) -> SettledCrossing:
    """Estimates of all measurements together, with standard errors, and whole numbers that add up, if these are asked.

    Refused where bounds leave no whole numbers.
    """
    values, variances = _numbers(order, measured, totals)
    for number, allowed in enumerate(crossed.allowed):
        if allowed is not None:
            values[number] = np.where(allowed, values[number], 0)
    found = crossed.estimated(values, variances)
    strata = crossed.strata(found, variances)
    counts = top_down(found.estimates, demands=Demands(found.crossings, crossed.capacities)) if whole else None
    tables = _published(order, crossed, found=found, strata=strata, counts=counts)
    best = found.best and crossed.capacities is None
    return SettledCrossing(tables, best, best and strata is not None)


def _published(
    order: Order, crossed: CrossedNest, *, found: Crossed, strata: Strata | None, counts: Sequence[NDArray[Any]] | None
) -> Iterator[PublishedTable]:
    """Every table of the order, in its order."""
    inside, outside = list(crossed.inside), list(crossed.outside)
    for number, allowed in enumerate(crossed.allowed):
        if number in inside:
            place = crossed.nest.places[inside.index(number)]

            def errors(level: int, nodes: range, step: int) -> Floats:
                if strata is None:
                    return found.alone.standard_errors(level, nodes, step)[step]
                return strata.standard_errors(level, crossed.nest.chain.ancestors(step), nodes)

            table = published_place(order, crossed.nest, place, found=found.estimates, counts=counts, errors=errors)
        else:
            table = _published_across(order, crossed, outside.index(number), found=found, strata=strata, counts=counts)
        if allowed is not None:
            known = np.where(allowed, table.estimates, 0.0), np.where(allowed, table.standard_errors, 0.0)
            table = replace(table, estimates=known[0], standard_errors=known[1])
        yield table


def _published_across(
    order: Order,
    crossed: CrossedNest,
    which: int,
    *,
    found: Crossed,
    strata: Strata | None,
    counts: Sequence[NDArray[Any]] | None,
) -> PublishedTable:
    across, crossing = crossed.across[which], found.crossings[which]
    errors = np.zeros(across.shape)
    if strata is None:
        errors = found.bounds(which)
    else:
        own = strata.standard_errors(across.level, across.groups)
        errors[:, : own.shape[1]] = own
    values = None
    if counts is not None:
        sums = np.zeros(across.shape, dtype=np.int64)
        count_across(counts[across.level], crossing.areas, crossing.groups, sums)
        values = across.read(sums)
    columns, labels = labeled(order, across.table)
    name, unit = across.table.name, order.units[across.table.name]
    return PublishedTable(name, unit, columns, labels, across.read(found.tables[which]), across.read(errors), values)


def _numbers(
    order: Order, measured: Sequence[Measurements], totals: NDArray[np.int64] | None
) -> tuple[list[NDArray[Any]], list[float]]:
    """The numbers of each table and of what is exact, and the variance of each, 0 for the exact ones."""
    values = list[NDArray[Any]]()
    for group, each in zip(order.groups, measured, strict=True):
        edges = np.cumsum([table.query_count for table in group.tables])[:-1]
        values += np.split(each.values, edges)
    if totals is not None and order.public is not None:
        values += np.split(totals, np.cumsum([table.query_count for table in order.public.tables])[:-1])
    return values, all_variances(order)


def all_variances(order: Order) -> list[float]:
    """Of each table, and 0 of each that is exact."""
    found = [variance for group in order.groups for variance in table_variances(group)]
    return found + [0.0] * (0 if order.public is None else len(order.public.tables))


def table_variances(group: Group) -> list[float]:
    """The variance of the measurements of each table of a group that is measured by itself."""
    return [noise.distribution().variance for noise in group.table_noises]
