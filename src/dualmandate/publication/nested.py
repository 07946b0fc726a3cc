"""Tables that nest: by one geography and by one chain of groupings of everything else, each counted by itself.

Such tables are estimated and made consistent by passes over the tree, whatever their size; all others are fitted by
one histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.descending import top_down
from dualmandate.publication.consistency.estimating import Estimates, estimate
from dualmandate.publication.consistency.nesting import Chain, Tree
from dualmandate.publication.ladders import Labels, Ladder, counted_rows, joined, ladder_of
from dualmandate.publication.measurements import Measurements, PublishedTable
from dualmandate.publication.measuring import labeled
from dualmandate.publication.order import Order
from dualmandate.publication.sparse_counting import NOWHERE
from dualmandate.workload import Table

LARGEST_REST = 2**22  # cells of everything but the geography
NUMBERS_AT_ONCE = 2**18  # whose estimates are computed at once

Errors = Callable[[int, range, int], NDArray[np.float64]]  # of a level of the tree, some nodes, and one of the chain


@dataclass(frozen=True, eq=False)
class Place:
    """Where a table stands: a level of the tree and one of the chain, and which of its rows are where."""

    table: Table
    level: int
    step: int
    nodes: Labels = field(repr=False)  # the table's row of the geography at each node
    groups: Labels = field(repr=False)  # the table's row of the rest at each group

    @cached_property
    def in_order(self) -> bool:
        """Whether the table has nodes and groups in the order of the tree and of the chain."""
        return all(np.array_equal(each, np.arange(each.size)) for each in (self.nodes, self.groups))


@dataclass(frozen=True, eq=False)
class Nest:
    """A geography, a chain, and every table of an order in its place."""

    axis: int  # the geography
    tree: Tree
    chain: Chain
    places: tuple[Place, ...]

    def laid(self, place: Place, values: NDArray[Any]) -> NDArray[Any]:
        """A table's numbers over nodes and groups; shape (nodes, groups)."""
        shaped = np.moveaxis(values.reshape(place.table.shape), self.axis, 0)
        rows = shaped.reshape(shaped.shape[0], -1)
        return rows if place.in_order else rows[np.ix_(place.nodes, place.groups)]

    def read(self, place: Place, values: NDArray[Any]) -> NDArray[Any]:
        """Back from nodes and groups to the order of the table; shape (query_count,)."""
        shape = np.array(place.table.shape)
        moved = np.concatenate([shape[self.axis : self.axis + 1], np.delete(shape, self.axis)])
        rows = values if place.in_order else np.empty((moved[0], int(np.prod(moved[1:]))), dtype=values.dtype)
        if not place.in_order:
            rows[np.ix_(place.nodes, place.groups)] = values
        return np.moveaxis(rows.reshape(moved), 0, self.axis).reshape(-1)


def plain_tables(order: Order) -> list[Table] | None:
    """The tables of an order, exact ones last, where each counts records and is measured by itself; else None."""
    if not all(group.rows.direct for group in order.groups):
        return None
    tables = [*order.tables, *(() if order.public is None else order.public.tables)]
    return None if any(table.weight != 1 for table in tables) else tables


def nest_of(order: Order) -> Nest | None:
    """The nest of an order whose tables are measured by themselves and nest; None for any other order."""
    tables = plain_tables(order)
    if tables is None:
        return None
    hierarchical = [axis for axis, each in enumerate(order.domain.attributes) if _has_hierarchy(order, each.name)]
    axes = dict.fromkeys([*hierarchical, *range(len(order.domain.shape))])
    return next((nest for axis in axes if (nest := _nest(order, tables, axis)) is not None), None)


@dataclass(frozen=True, eq=False)
class Settled:
    """The tables of a nest after all of it was put together, and the counts of its leaves: shape (leaves, cells).

    Tables are made one by one, when they are asked for: all of them need not be held at once.
    """

    tables: Iterator[PublishedTable] = field(repr=False)
    leaves: NDArray[Any] = field(repr=False)


def consistent_nest(
    order: Order, nest: Nest, *, measured: Sequence[Measurements], totals: NDArray[np.int64] | None
) -> Settled:
    """Best estimates over the whole nest, with standard errors, and whole numbers that add up."""
    numbers, variances = {}, {}
    for place, values, variance in _measured(order, nest, measured, totals):
        numbers[place.level, place.step] = nest.laid(place, values)
        variances[place.level, place.step] = variance
    found = estimate(nest.tree, nest.chain, numbers, variances)
    counts = top_down(found)
    # What is exact comes last and is no table of these.
    places = nest.places[: len(order.tables)]
    return Settled((published_place(order, nest, place, found=found, counts=counts) for place in places), counts[-1])


def published_place(
    order: Order,
    nest: Nest,
    place: Place,
    *,
    found: Estimates,
    counts: Sequence[NDArray[Any]] | None,
    errors: Errors | None = None,
) -> PublishedTable:
    """One table of a nest, from the estimates and the whole numbers of its level.

    `errors` gives the standard errors of some nodes, where they are not those of the estimates.
    """
    shape = nest.tree.sizes[place.level], nest.chain.sizes[place.step]
    estimates, spread = np.empty(shape), np.empty(shape)
    together = max(NUMBERS_AT_ONCE // nest.chain.sizes[-1], 1)
    for start in range(0, shape[0], together):
        nodes = range(start, min(start + together, shape[0]))
        rows = slice(nodes.start, nodes.stop)
        estimates[rows] = found.tables(place.level, nodes, place.step)[place.step]
        if errors is None:
            spread[rows] = found.standard_errors(place.level, nodes, place.step)[place.step]
        else:
            spread[rows] = errors(place.level, nodes, place.step)
    columns, labels = labeled(order, place.table)
    return PublishedTable(
        place.table.name,
        order.units[place.table.name],
        columns,
        labels,
        nest.read(place, estimates),
        nest.read(place, spread),
        None if counts is None else nest.read(place, nest.chain.sums(counts[place.level], place.step)),
    )


def _measured(
    order: Order, nest: Nest, measured: Sequence[Measurements], totals: NDArray[np.int64] | None
) -> Iterator[tuple[Place, NDArray[np.int64], float]]:
    """Each table's numbers and their variance, 0 for what is exact; an exact table replaces a measured one."""
    places = iter(nest.places)
    for group, each in zip(order.groups, measured, strict=True):
        start = 0
        for table, noise in zip(group.tables, group.table_noises, strict=True):
            yield next(places), each.values[start : start + table.query_count], noise.distribution().variance
            start += table.query_count
    if totals is not None and order.public is not None:
        start = 0
        for table in order.public.tables:
            yield next(places), totals[start : start + table.query_count], 0.0
            start += table.query_count


def _nest(order: Order, tables: Sequence[Table], axis: int) -> Nest | None:
    """The nest with one attribute as the geography, or None."""
    domain = order.domain
    rest = [other for other in range(len(domain.shape)) if other != axis]
    cells = int(np.prod([domain.shape[other] for other in rest], dtype=np.float64))
    if cells > LARGEST_REST or any(axis in masks for masks in domain.all_zero_masks):
        return None
    parts: list[tuple[Labels, Labels]] = []
    for table in tables:
        labels = [known for factor in table.factors if (known := counted_rows(factor)) is not None]
        if len(labels) < len(table.factors) or any(np.any(each == NOWHERE) for each in labels):
            return None
        parts.append((labels[axis], joined([labels[other] for other in rest], table, rest)))
    areas, groups = ladder_of([area for area, _ in parts]), ladder_of([group for _, group in parts])
    if areas is None or groups is None:
        return None
    pairs = [(areas.steps[i], groups.steps[i]) for i in range(len(tables))]
    asked = pairs[: len(order.tables)]
    if len(set(asked)) < len(asked):
        return None  # two tables of one kind: one histogram fits both
    zeros = _zeros(order, axis, groups.finest)
    (tree, nodes), (chain, places) = tree_of(areas), chain_of(groups, zeros)
    found = []
    for table, (area, group), (level, step) in zip(tables, parts, pairs, strict=True):
        found.append(Place(table, level, step, areas.rows(area, nodes, level), groups.rows(group, places, step)))
    return Nest(axis, tree, chain, tuple(found))


def tree_of(areas: Ladder) -> tuple[Tree, tuple[Labels, ...]]:
    """The tree of a geography's levels, and which group stands at each place of each level but the first."""
    return Tree.of(areas.coarser) if areas.coarser else (Tree((areas.below,)), (areas.one_level,))


def chain_of(groups: Ladder, zeros: NDArray[np.bool_] | None) -> tuple[Chain, tuple[Labels, ...]]:
    """The chain of groupings of cells, and which group stands at each place of each but the first."""
    if groups.coarser:
        return Chain.of(groups.coarser, zeros)
    return Chain((groups.below,), zeros), (groups.one_level,)


def _zeros(order: Order, axis: int, finest: Labels) -> NDArray[np.bool_] | None:
    """Which finest groups of the rest hold no cell that can occur."""
    if not order.domain.structural_zeros:
        return None
    return np.asarray(np.bincount(finest, weights=order.domain.possible_cells(without=axis)) == 0)


def _has_hierarchy(order: Order, name: str) -> bool:
    return any(hierarchy.attribute == name for hierarchy in order.domain.hierarchies)
