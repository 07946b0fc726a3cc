"""Which tables of an order nest, by one geography and one chain of groupings of everything else, and which cross these.

Tables that nest are estimated and made consistent by passes over the tree, whatever their size. Where most do, the
others enter estimates with their precision, pull where whole numbers are chosen, and are then counted from these; cells
that cannot occur in some places are empty there. All other orders are fitted by one histogram.

Best linear unbiased estimates are linear in the measurements: e = Σ w·y. For a sum c of cells of a measured table with
variance σ², w = Σ⁻¹·X·β with β the estimates from y′ = σ² at those cells and 0 elsewhere, because XᵀΣ⁻¹y′ = c (Σ the
variances of all measurements, X what they measure). So one run of the passes gives the weights of all measurements, and
intervals hold for nested estimates too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import Distribution, Noise
from dualmandate.population import Domain
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.publication.consistency.crossing import CrossedEstimates, estimate_crossed
from dualmandate.publication.consistency.estimates import Pair, Weights, count_across
from dualmandate.publication.consistency.noise_weights import NoiseWeights, PairWeights
from dualmandate.publication.consistency.partitions import (
    OUTSIDE,
    NestedPartitions,
    PartitionChain,
    Tree,
    first_and_members,
    heaviest_chain,
    lies_within,
)
from dualmandate.publication.consistency.strata import CrossingMeasurement, Orthogonal, Strata
from dualmandate.publication.consistency.top_down_rounding import Capacities
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.tabulating import NOWHERE, single_rows
from dualmandate.workload import Factor, Table
from dualmandate.workload.levels import row_ids

LARGEST_REST = 2**22  # At most so many cells of everything but the geography are grouped into a chain.
LARGEST_FITTED = 10**7  # At most so many cells of one histogram are fitted to all tables.
LARGEST_FITTED_FIRST = 2**18  # And at most so many where tables that cross have estimates in closed form.

RowLabels = tuple[Integers, Integers]  # The table's row of each level of the geography, and of each cell of the rest.


@dataclass(frozen=True, eq=False)
class NestedTable:
    """Where a table stands: a level of the tree and one of the chain, and which of its rows are where."""

    table: Table
    level: int
    step: int
    nodes: Integers = field(repr=False)  # the table's row of the geography at each node
    groups: Integers = field(repr=False)  # the table's row of the rest at each group

    @property
    def pair(self) -> Pair:
        return self.level, self.step

    @cached_property
    def in_order(self) -> bool:
        """Whether the table has nodes and groups in the order of the tree and of the chain."""
        return all(np.array_equal(each, np.arange(each.size)) for each in (self.nodes, self.groups))


@dataclass(frozen=True, eq=False)
class CrossingTable:
    """A table that crosses: the row of each node of a level and of each cell of the chain, `NOWHERE` for none."""

    table: Table
    axis: int  # the geography
    level: int
    nodes: Integers = field(repr=False)
    groups: Integers = field(repr=False)

    @cached_property
    def shape(self) -> tuple[int, int]:
        areas = self.table.shape[self.axis]
        return areas, self.table.query_count // areas

    @cached_property
    def in_place(self) -> bool:
        """Whether its areas are the nodes of the level."""
        return bool(np.array_equal(np.sort(self.nodes), np.arange(self.shape[0])))

    def measurement(self, variance: float) -> CrossingMeasurement:
        """What it counts, areas in the order of the nodes where they are these."""
        areas = np.arange(self.shape[0]) if self.in_place else self.nodes
        return CrossingMeasurement(self.level, areas, self.groups, self.shape, variance)

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
class NestedTables:
    """Tables of an order and what is exact in their places, the tables that cross these, and what cells may count."""

    axis: int  # the geography
    tree: Tree
    chain: PartitionChain
    places: tuple[NestedTable, ...]  # the tables that nest, in the order's order, and what is exact
    inside: tuple[int, ...]  # the number of each of these tables in the order
    across: tuple[CrossingTable, ...]
    outside: tuple[int, ...]  # of each of these
    capacities: Capacities | None

    @property
    def is_complete(self) -> bool:
        """Whether all tables nest, and every cell can occur everywhere or nowhere."""
        return not self.across and self.capacities is None

    @property
    def is_orthogonal(self) -> bool:
        """Whether tables that cross the others have estimates and standard errors in closed form."""
        crossings = [each.measurement(0.0) for each in self.across]
        return self.capacities is None and Orthogonal.of(self.chain, crossings) is not None

    def laid(self, place: NestedTable, values: NDArray[Any]) -> NDArray[Any]:
        """A table's numbers over nodes and groups; shape (nodes, groups)."""
        shaped = np.moveaxis(values.reshape(place.table.shape), self.axis, 0)
        rows = shaped.reshape(shaped.shape[0], -1)
        return rows if place.in_order else rows[np.ix_(place.nodes, place.groups)]

    def read(self, place: NestedTable, values: NDArray[Any]) -> NDArray[Any]:
        """Back from nodes and groups to the order of the table; shape (query_count,)."""
        shape = np.array(place.table.shape)
        moved = np.concatenate([shape[self.axis : self.axis + 1], np.delete(shape, self.axis)])
        rows = values if place.in_order else np.empty((moved[0], int(np.prod(moved[1:]))), dtype=values.dtype)
        if not place.in_order:
            rows[np.ix_(place.nodes, place.groups)] = values
        return np.moveaxis(rows.reshape(moved), 0, self.axis).reshape(-1)

    @property
    def finest(self) -> NestedTable | None:
        """A table of the order that counts every cell of every leaf; None where there is none."""
        last = self.tree.last, self.chain.last
        return next((place for place in self.places[: len(self.inside)] if place.pair == last), None)

    @cached_property
    def allowed(self) -> tuple[Booleans | None, ...]:
        """Which numbers of each table of the order may be other than 0; None for all of them."""
        found: list[Booleans | None] = [None] * (len(self.inside) + len(self.across))
        if self.capacities is not None:
            for place, number in zip(self.places, self.inside, strict=False):
                found[number] = self.read(place, self._room(place, self.capacities))
            for table, number in zip(self.across, self.outside, strict=True):
                found[number] = table.read(self._room_across(table, self.capacities))
        return tuple(found)

    def _room(self, place: NestedTable, capacities: Capacities) -> Booleans:
        found = np.empty((self.tree.sizes[place.level], self.chain.sizes[place.step]), dtype=np.bool_)
        for node in range(len(found)):
            room = capacities.room(place.level, range(node, node + 1))
            found[node] = self.chain.sums(room > 0, place.step) > 0
        return found

    def _room_across(self, table: CrossingTable, capacities: Capacities) -> Booleans:
        found, counted = np.zeros(table.shape), table.measurement(0.0)
        for node in range(self.tree.sizes[table.level]):
            room = capacities.room(table.level, range(node, node + 1)) > 0
            count_across(room.astype(np.float64), counted.areas[node : node + 1], counted.groups, found)
        return found > 0

    def estimated(self, values: Sequence[NDArray[Any]], variances: Sequence[float]) -> CrossedEstimates:
        """Estimates from the numbers of each table, and of what is exact, with the variance of each."""
        measured: dict[Pair, NDArray[Any]] = {}
        spread: dict[Pair, float] = {}
        exact = range(len(self.inside) + len(self.across), len(values))
        for place, number in zip(self.places, (*self.inside, *exact), strict=True):
            measured[place.pair] = self.laid(place, values[number])
            spread[place.pair] = variances[number]
        crossed = [
            (each.measurement(variances[number]), each.laid(values[number]))
            for each, number in zip(self.across, self.outside, strict=True)
        ]
        return estimate_crossed((self.tree, self.chain), measured, spread, crossed)

    def strata(self, found: CrossedEstimates, variances: Sequence[float]) -> Strata | None:
        """Exact variances of estimates, where there are such."""
        places = zip(self.places[: len(self.inside)], self.inside, strict=True)
        spread = {place.pair: variances[number] for place, number in places}
        spread |= {place.pair: 0.0 for place in self.places[len(self.inside) :]}
        return Strata.of(self.tree, self.chain, spread, found.crossings)


def nest_together(order: ReleaseSpec) -> NestedTables | None:
    """How all measurements of an order are estimated together: where all tables nest, or most do; None where neither.

    All tables may nest by any attribute, those with a hierarchy first. Most of them nest by one with a hierarchy, or,
    where no histogram could be fitted, by any.
    """
    tables = _plain_tables(order) if order.marginals is None else None
    if tables is None:
        return None
    large, named = order.domain.size > LARGEST_FITTED, {each.attribute for each in order.domain.hierarchies}
    unnamed = [attribute.name not in named for attribute in order.domain.attributes]
    axes = sorted(range(len(unnamed)), key=unnamed.__getitem__)
    finer = _refinements(tables)
    if finer is None:
        return None
    nesting = (axis for axis in axes if _may_nest(finer, axis))
    wholly = (_nested_by(order, tables, axis, wholly=True) for axis in nesting)
    nest = next((each for each in wholly if each is not None), None)
    if nest is not None and _passable(nest, nest.places, all_variances(order)):
        return nest
    # No table has every cell of the finest areas and groups, and a histogram is soon fitted.
    if not large and order.domain.size <= LARGEST_FITTED_FIRST and not np.all(finer, axis=(0, 2)).any():
        return None
    partly = (_partly_nested_by(order, tables, axis) for axis in axes if large or not unnamed[axis])
    return next((each for each in partly if each is not None), None)


def all_variances(order: ReleaseSpec) -> list[float]:
    """Of the measurements of each table, and 0 of each that is exact."""
    return [0.0 if law is None else law.variance for law in table_noises(order)]


def table_noises(order: ReleaseSpec) -> list[Distribution | None]:
    """The law of the measurements of each table, all measured by themselves, and None of each that is exact."""
    found: list[Distribution | None] = [noise.distribution() for group in order.groups for noise in group.table_noises]
    return [*found, *([None] * len(order.public_tables))]


def _plain_tables(order: ReleaseSpec) -> list[Table] | None:
    """The tables of an order, exact ones last, where each counts records and is measured by itself; else None."""
    if not all(group.rows.direct for group in order.groups):
        return None
    tables = [*order.tables, *order.public_tables]
    return None if any(table.weight != 1 for table in tables) else tables


def _refinements(tables: Sequence[Table]) -> Booleans | None:
    """Whether a table tells apart what another one does, by attribute; shape (attributes, tables, tables).

    A table that counts combinations of levels tells two of them apart where it does so by one attribute. None where one
    counts levels otherwise than each once.
    """
    found = np.empty((len(tables[0].factors), len(tables), len(tables)), dtype=np.bool_)
    for axis in range(len(found)):
        factors = {table.factors[axis].key: table.factors[axis] for table in tables}
        labels = [_counted_rows(factor) for factor in factors.values()]
        known = [first_and_members(each)[1] for each in labels if each is not None]
        if len(known) < len(labels):
            return None
        within = np.array([[lies_within(fine, coarse) for coarse in known] for fine in known])
        places = [list(factors).index(table.factors[axis].key) for table in tables]
        found[axis] = within[np.ix_(places, places)]
    return found


def _may_nest(finer: Booleans, axis: int) -> bool:
    """Whether of any two tables one is finer in its areas, the levels of one attribute, and one in all the rest."""
    rest = np.all(np.delete(finer, axis, axis=0), axis=0)
    return bool(np.all((finer[axis] | finer[axis].T) & (rest | rest.T)))


def _row_labels(order: ReleaseSpec, tables: Sequence[Table], axis: int) -> list[RowLabels] | None:
    """Which row of each table counts each level of one attribute, the geography, and each cell of the rest.

    None where the rest has too many cells, or a table counts records otherwise than each once, with weight 1.
    """
    shape = order.domain.shape
    rest = [other for other in range(len(shape)) if other != axis]
    if int(np.prod([shape[other] for other in rest], dtype=np.float64)) > LARGEST_REST:
        return None
    found = list[RowLabels]()
    for table in tables:
        labels = [known for factor in table.factors if (known := _counted_rows(factor)) is not None]
        if len(labels) < len(table.factors):
            return None
        cells = np.zeros(1, dtype=np.int64)
        leaves_out = False
        for other in rest:
            sums = np.add.outer(cells * table.factors[other].rows, labels[other])
            leaves_out = leaves_out or bool(np.any(labels[other] == NOWHERE))
            if leaves_out:
                sums[np.logical_or.outer(cells == NOWHERE, labels[other] == NOWHERE)] = NOWHERE
            cells = sums.reshape(-1)
        found.append((labels[axis], cells))
    return found


def _with_the_rest(order: ReleaseSpec, tables: Sequence[Table], axis: int) -> list[Integers]:
    """Groupings of cells, by all but one attribute, that tell what `where` leaves out apart as they do what it keeps.

    So cells of all kinds correspond, and what tables with and without `where` say of them comes apart into strata.
    """
    rest = [other for other in range(len(order.domain.shape)) if other != axis]
    found = list[Integers]()
    for table in tables:
        labels = {other: known for other in rest if (known := _counted_rows(table.factors[other])) is not None}
        if any(np.any(each == NOWHERE) for each in labels.values()):
            cells = np.zeros(1, dtype=np.int64)
            for other in rest:
                rows = table.factors[other].rows
                own = np.where(labels[other] == NOWHERE, rows, labels[other])
                cells = np.add.outer(cells * (rows + 1), own).reshape(-1)
            found.append(cells)
    return found


def _counted_rows(factor: Factor) -> Integers | None:
    """The row that each level is counted in, with weight 1, or `NOWHERE`; None where it is counted otherwise."""
    found = single_rows(factor)
    if found is None or (found[1] is not None and np.any(found[1][found[0] != NOWHERE] != 1)):
        return None
    return found[0]


def _in_one_chain(tables: Sequence[Table], axis: int) -> bool:
    """Whether tables tell cells of all but one attribute apart by partitions that nest: of products, all factors do."""
    rest = [tuple(factor for place, factor in enumerate(table.factors) if place != axis) for table in tables]
    distinct = {tuple(factor.key for factor in factors): factors for factors in rest}
    ordered = sorted(distinct.values(), key=lambda factors: math.prod(factor.rows for factor in factors))
    return all(
        _lies_within(fine, coarse)
        for before, after in pairwise(ordered)
        for coarse, fine in zip(before, after, strict=True)
        if coarse.key != fine.key
    )


def _lies_within(fine: Factor, coarse: Factor) -> bool:
    rows = _counted_rows(fine), _counted_rows(coarse)
    if rows[0] is None or rows[1] is None or min(each.min(initial=0) for each in rows if each is not None) < 0:
        return False
    return lies_within(rows[0], rows[1])


def _counts_all(labels: RowLabels) -> bool:
    return not any(np.any(each == NOWHERE) for each in labels)


def _nested_by(order: ReleaseSpec, tables: Sequence[Table], axis: int, *, wholly: bool = False) -> NestedTables | None:
    """The nest of most tables with one attribute as the geography; None where what is exact does not nest.

    `wholly`: None also where it would not be complete, or two tables share a place: one histogram fits both.
    """
    if wholly and (any(axis in masks for masks in order.domain.all_zero_masks) or not _in_one_chain(tables, axis)):
        return None
    labels = _row_labels(order, tables, axis)
    if labels is None:
        return None
    exact = range(len(order.tables), len(tables))
    whole = [i for i, each in enumerate(labels) if _counts_all(each)]
    if not set(range(len(tables)) if wholly else exact) <= set(whole):
        return None
    areas = heaviest_chain([area for area, _ in labels], whole, exact)
    if areas is None or (wholly and OUTSIDE in areas.steps):
        return None
    nesting = [i for i in whole if areas.steps[i] != OUTSIDE]
    groups = heaviest_chain([group for _, group in labels] + _with_the_rest(order, tables, axis), nesting, exact)
    if groups is None:
        return None
    groups = replace(groups, steps=groups.steps[: len(tables)])
    asked = list(zip(areas.steps, groups.steps, strict=True))[: len(order.tables)]
    if wholly and (OUTSIDE in groups.steps or len(set(asked)) < len(asked)):
        return None
    return _assembled(order, tables, labels, _Skeleton.of(order, axis, areas, groups))


def _partly_nested_by(order: ReleaseSpec, tables: Sequence[Table], axis: int) -> NestedTables | None:
    """The same with as many tables as passes can combine, where it is worth it; else None."""
    nest = _nested_by(order, tables, axis)
    if nest is None:
        return None
    found = _with_passable_nest(order, nest)
    # Without measured cells a nest is worth it where no histogram could be fitted, or not as fast as its closed form.
    worth = found.finest is not None or order.domain.size > LARGEST_FITTED
    worth = worth or (order.domain.size > LARGEST_FITTED_FIRST and found.is_orthogonal)
    return found if found.inside and worth else None


@dataclass(frozen=True, eq=False)
class _Skeleton:
    """A tree and a chain without tables, and which group of their partitions stands where."""

    axis: int
    areas: NestedPartitions
    groups: NestedPartitions
    tree: Tree
    chain: PartitionChain
    nodes: Sequence[Integers]  # which area stands at each place of each level but the first
    cells: Sequence[Integers]  # likewise of the chain

    @classmethod
    def of(cls, order: ReleaseSpec, axis: int, areas: NestedPartitions, groups: NestedPartitions) -> _Skeleton:
        """The tree of a geography's levels and the chain of groupings; groups without a possible cell are zeros."""
        zeros = None
        if order.domain.structural_zeros:
            free = order.domain.possible_cells(without=axis)
            zeros = np.asarray(np.bincount(groups.finest, weights=free) == 0)
        tree, nodes = Tree.of(areas.coarser, areas.size)
        chain, cells = PartitionChain.of(groups.coarser, zeros, groups.size)
        return cls(axis, areas, groups, tree, chain, nodes, cells)

    def place(self, table: Table, labels: RowLabels, pair: Pair) -> NestedTable:
        """A table at a level of the tree and one of the chain."""
        (area, group), (level, step) = labels, pair
        rows = self.areas.rows(area, self.nodes, level), self.groups.rows(group, self.cells, step)
        return NestedTable(table, level, step, *rows)

    def across(self, table: Table, labels: RowLabels) -> CrossingTable:
        """A table that counts cells, at the coarsest level whose areas it takes as wholes."""
        area, group = labels
        level = self.areas.step_for(area)
        cells = self.groups.rows(group, self.cells, self.groups.last)
        return CrossingTable(table, self.axis, level, self.areas.rows(area, self.nodes, level), cells)


def _assembled(
    order: ReleaseSpec, tables: Sequence[Table], labels: Sequence[RowLabels], skeleton: _Skeleton
) -> NestedTables:
    """Every table in its place of the nest, or across it."""
    taken, inside, outside = dict[Pair, NestedTable](), list[int](), list[int]()
    exact, crossing = list[NestedTable](), list[CrossingTable]()
    pairs = zip(skeleton.areas.steps, skeleton.groups.steps, strict=True)
    for number, (table, own, pair) in enumerate(zip(tables, labels, pairs, strict=True)):
        nests, is_exact = OUTSIDE not in pair and _counts_all(own), number >= len(order.tables)
        if nests and is_exact:
            exact.append(skeleton.place(table, own, pair))
        elif nests and pair not in taken:
            taken[pair] = skeleton.place(table, own, pair)
            inside.append(number)
        else:
            crossing.append(skeleton.across(table, own))
            outside.append(number)
    nest, places = (skeleton.axis, skeleton.tree, skeleton.chain), (*taken.values(), *exact)
    capacities = _capacities(order.domain, skeleton)
    return NestedTables(*nest, places, tuple(inside), tuple(crossing), tuple(outside), capacities)


def _with_passable_nest(order: ReleaseSpec, nest: NestedTables) -> NestedTables:
    """The same, with as many tables in the nest as its passes can combine; the others cross it with their numbers."""
    variances = all_variances(order)
    own, exact = list(zip(nest.places, nest.inside, strict=False)), nest.places[len(nest.inside) :]

    def passable(kept: Sequence[tuple[NestedTable, int]]) -> bool:
        spread = [*(variances[number] for _, number in kept), *([0.0] * len(exact))]
        return _passable(nest, [*(place for place, _ in kept), *exact], spread)

    kept, dropped = own, list[tuple[NestedTable, int]]()
    while kept and not passable(kept):
        least = min(kept, key=lambda each: each[0].table.query_count)
        kept = [each for each in kept if each is not least]
        dropped.insert(0, least)
    for each in dropped:
        kept = [*kept, each] if passable([*kept, each]) else kept
    kept.sort(key=lambda each: each[1])
    places, inside = (*(place for place, _ in kept), *exact), tuple(number for _, number in kept)
    moved = [(_crossing(nest, place), number) for place, number in own if number not in inside]
    crossing = sorted([*zip(nest.across, nest.outside, strict=True), *moved], key=lambda each: each[1])
    across, outside = tuple(each for each, _ in crossing), tuple(number for _, number in crossing)
    return replace(nest, places=places, inside=inside, across=across, outside=outside)


def _crossing(nest: NestedTables, place: NestedTable) -> CrossingTable:
    """A table that would nest, taken for one that crosses."""
    cells = place.groups[nest.chain.ancestors(place.step)]
    return CrossingTable(place.table, nest.axis, place.level, place.nodes, cells)


def _passable(nest: NestedTables, places: Sequence[NestedTable], variances: Sequence[float]) -> bool:
    """Whether passes over the tree and the chain combine such measurements; the exact ones come last."""
    spread = {place.pair: each for place, each in zip(places, variances, strict=True)}
    try:
        Weights.of(nest.chain, spread, levels=nest.tree.last + 1)
    except InvalidRequest:
        return False
    return True


def _capacities(domain: Domain, skeleton: _Skeleton) -> Capacities | None:
    """Which cells can occur at each leaf, where structural zeros name places; None where none does."""
    axis, tree, chain = skeleton.axis, skeleton.tree, skeleton.chain
    about = [masks for masks in domain.all_zero_masks if axis in masks]
    if not about:
        return None
    held_by = np.stack([masks[axis] for masks in about])
    firsts, members = first_and_members(row_ids(held_by, held_by.shape[1]))
    found = np.zeros((tree.sizes[-1], chain.sizes[-1]), dtype=np.bool_)
    for pattern, held in enumerate(held_by[:, firsts].T):
        possible = domain.possible_cells(without=axis, held=held)
        free = np.bincount(skeleton.groups.finest, weights=possible) > 0
        here = np.isin(skeleton.nodes[-1], skeleton.areas.finest[members == pattern])
        found[here] |= free[skeleton.cells[-1]]
    return Capacities(tree, chain, {tree.last: found})


@dataclass(frozen=True, eq=False)
class NestWeights:
    """All measurements of an order whose tables nest, or cross what nests, and what its estimates take of each."""

    order: ReleaseSpec
    nest: NestedTables

    direct: ClassVar[bool] = False

    @property
    def size(self) -> int:
        return sum(group.rows.size for group in self.order.groups)

    @property
    def cells(self) -> int:
        """Of all leaves together."""
        return self.nest.tree.sizes[-1] * self.nest.chain.sizes[-1]

    def kinds(self) -> NDArray[np.intp]:
        """The kind of each row among all of them."""
        counts = np.cumsum([0, *(len(group.noises) for group in self.order.groups)])
        kinds = [group.rows.kinds() + start for group, start in zip(self.order.groups, counts, strict=False)]
        return np.concatenate(kinds)

    def weights(self, table: str, numbers: Sequence[int]) -> Floats:
        """What the sum of some numbers of a table takes of the noise of each row; shape (rows,).

        What cannot occur, or is exact, is known, and its noise is not looked at.
        """
        if self.passes is None:
            return self._by_estimates(table, numbers)
        found, nothing = self._products(table, numbers), np.zeros((1, 1))
        places = zip(self.nest.places, self.nest.inside, strict=False)
        weights: list[Floats] = [np.empty(0)] * len(self.order.tables)
        for place, number in places:
            shape = self.nest.tree.sizes[place.level], self.nest.chain.sizes[place.step]
            own = found[place.pair].dense() if place.pair in found else np.broadcast_to(nothing, shape)
            weights[number] = self.nest.read(place, np.ascontiguousarray(own))
        return np.concatenate(weights)

    def counted(self, table: str, numbers: Sequence[int]) -> list[tuple[Noise, Floats, Integers]] | None:
        """The different sizes of these weights and how many rows have each, with the noise of each table of the nest.

        None where they must be listed.
        """
        if self.passes is None:
            return None
        found, noises = (
            self._products(table, numbers),
            [each for group in self.order.groups for each in group.table_noises],
        )
        places = zip(self.nest.places, self.nest.inside, strict=False)
        return [(noises[number], *found[place.pair].counted()) for place, number in places if place.pair in found]

    def spreads(self, table: str, sums: Integers) -> Floats:
        """The standard error of every sum of numbers of a table; `sums` says which one each number goes into.

        A sum is over groups at one node, or over all nodes.
        """
        assert self.passes is not None
        place, found = self.place(table), np.zeros(int(sums.max()) + 1)
        laid = self.nest.laid(place, sums)
        over_all = len(laid) > 1 and bool(np.all(laid == laid[0]))
        level = 0 if over_all else place.level
        known = dict[bytes, Floats]()
        asked, which = np.unique(laid[0], return_inverse=True)
        for number in range(len(asked)):
            groups = (which == number).astype(np.float64)
            parts = self.passes.parts((level, place.step), groups)
            key = b"".join(each.tobytes() for each in parts)
            if key not in known:
                known[key] = np.sqrt(self.passes.variances(level, parts))
            found[laid[: len(known[key]), int(np.argmax(groups))]] = known[key]
        return found

    @cached_property
    def passes(self) -> NoiseWeights | None:
        """The passes that give weights as products; None where tables cross, or cells cannot occur in some places."""
        if not self.nest.is_complete:
            return None
        spread = dict(zip((place.pair for place in self.nest.places), self._variances, strict=True))
        chain, tree = self.nest.chain, self.nest.tree
        return NoiseWeights(tree, Weights.of(chain, spread, levels=tree.last + 1))

    @property
    def _variances(self) -> list[float]:
        """Of each place: the exact ones come last."""
        variances = all_variances(self.order)
        return [
            *(variances[number] for number in self.nest.inside),
            *([0.0] * (len(variances) - len(self.nest.inside))),
        ]

    def _products(self, table: str, numbers: Sequence[int]) -> dict[Pair, PairWeights]:
        """Weights by pair of levels, nodes that ask for the same groups taken together."""
        place = self.place(table)
        asked = np.zeros(place.table.query_count)
        np.add.at(asked, np.asarray(numbers, dtype=np.intp), 1.0)
        laid = self.nest.laid(place, asked)
        nodes = np.flatnonzero(laid.any(axis=1))
        patterns, which = np.unique(laid[nodes], axis=0, return_inverse=True)
        sums = list[tuple[Floats, Floats]]()
        for number, groups in enumerate(patterns):
            chosen = np.zeros(len(laid))
            chosen[nodes[which.reshape(-1) == number]] = 1.0
            sums.append((chosen, groups))
        assert self.passes is not None
        found = self.passes.of(place.pair, sums, [each.pair for each in self.nest.places])
        exact = {each.pair for each in self.nest.places[len(self.nest.inside) :]}
        return {pair: each for pair, each in found.items() if pair not in exact}

    def place(self, table: str) -> NestedTable:
        """Where a table that nests stands."""
        return next(each for each in self.nest.places if each.table.name == table)

    def _by_estimates(self, table: str, numbers: Sequence[int]) -> Floats:
        """The same weights from estimates of σ² at those numbers and 0 elsewhere: see above."""
        nest, variances = self.nest, all_variances(self.order)
        tables = [*self.order.tables, *self.order.public_tables]
        place = [each.name for each in self.order.tables].index(table)
        asked = np.zeros(tables[place].query_count)
        np.add.at(asked, np.asarray(numbers, dtype=np.intp), variances[place])
        values: list[Floats] = [np.broadcast_to(0.0, (each.query_count,)) for each in tables]
        own = nest.allowed[place]
        values[place] = asked if own is None else np.where(own, asked, 0.0)
        found = nest.estimated(values, variances)
        weights: list[Floats] = [np.empty(0)] * len(self.order.tables)
        held = {each.pair for each in nest.places[len(nest.inside) :]}
        for each, number in zip(nest.places, nest.inside, strict=False):
            known = found.estimates.tables(each.level, finest=each.step)[each.step]
            part = np.zeros_like(known) if each.pair in held else known
            weights[number] = nest.read(each, part) / variances[number]
        for across, number, known in zip(nest.across, nest.outside, found.tables, strict=True):
            weights[number] = across.read(known) / variances[number]
        masked = zip(weights, nest.allowed, strict=True)
        return np.concatenate([each if mask is None else np.where(mask, each, 0.0) for each, mask in masked])
