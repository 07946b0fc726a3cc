"""Which tables of an order nest, which cross what nests, and which cells are bound to places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dualmandate.errors import InvalidRequest
from dualmandate.population import Domain
from dualmandate.population.arrays import Integers
from dualmandate.publication.consistency.capacities import Capacities
from dualmandate.publication.consistency.gls_weights import Pair, Weights
from dualmandate.publication.crossed_nest import Across, CrossedNest, all_variances
from dualmandate.publication.ladders import OUTSIDE, Ladder, counted_rows, joined, longest_ladder
from dualmandate.publication.nested import LARGEST_REST, Nest, Place, chain_of, nest_of, plain_tables, tree_of
from dualmandate.publication.order import Order
from dualmandate.publication.sparse_counting import NOWHERE
from dualmandate.workload import Table

LARGEST_FITTED = 10**7  # cells of one histogram that is fitted to all tables


def nest_together(order: Order) -> Nest | CrossedNest | None:
    """How all measurements of an order are estimated together: by a nest, by one with tables that cross it, or not."""
    nest = nest_of(order)
    if nest is not None and _passable(nest, nest.places, all_variances(order)):
        return nest
    return crossed_nest_of(order)


def crossed_nest_of(order: Order) -> CrossedNest | None:
    """The crossed nest of an order whose tables are measured by themselves; None where there is none.

    The geography is an attribute with a hierarchy, or, where no histogram could be fitted, any.
    """
    tables = plain_tables(order)
    if tables is None:
        return None
    large = order.domain.size > LARGEST_FITTED
    named = {hierarchy.attribute for hierarchy in order.domain.hierarchies}
    axes = [axis for axis, each in enumerate(order.domain.attributes) if large or each.name in named]
    axes.sort(key=lambda axis: order.domain.attributes[axis].name not in named)
    return next((found for axis in axes if (found := _crossed_nest(order, tables, axis)) is not None), None)


def _crossed_nest(order: Order, tables: Sequence[Table], axis: int) -> CrossedNest | None:
    """The crossed nest with one attribute as the geography, or None."""
    domain = order.domain
    rest = [other for other in range(len(domain.shape)) if other != axis]
    if int(np.prod([domain.shape[other] for other in rest], dtype=np.float64)) > LARGEST_REST:
        return None
    parts: list[tuple[Integers, Integers]] = []
    for table in tables:
        labels = [known for factor in table.factors if (known := counted_rows(factor)) is not None]
        if len(labels) < len(table.factors):
            return None
        parts.append((labels[axis], joined([labels[other] for other in rest], table, rest)))
    exact = range(len(order.tables), len(tables))
    whole = [i for i, each in enumerate(parts) if not any(np.any(labels == NOWHERE) for labels in each)]
    if not set(exact) <= set(whole):
        return None
    areas = longest_ladder([area for area, _ in parts], whole, exact)
    nesting = [] if areas is None else [i for i in whole if areas.steps[i] != OUTSIDE]
    groups = longest_ladder([group for _, group in parts], nesting, exact)
    if areas is None or groups is None:
        return None
    found = _passing(order, _assembled(order, tables, axis, parts, (areas, groups)))
    # Without measured cells a nest is worth it only where no histogram could be fitted instead.
    worth = found.cells_are_measured or order.domain.size > LARGEST_FITTED
    return found if found.inside and worth else None


def _assembled(
    order: Order,
    tables: Sequence[Table],
    axis: int,
    parts: Sequence[tuple[Integers, Integers]],
    ladders: tuple[Ladder, Ladder],
) -> CrossedNest:
    """Every table in its place of the nest, or across it."""
    areas, groups = ladders
    free = order.domain.possible_cells(without=axis)
    zeros = np.asarray(np.bincount(groups.finest, weights=free) == 0) if order.domain.structural_zeros else None
    (tree, nodes), (chain, places) = tree_of(areas), chain_of(groups, zeros)
    taken, inside, outside = dict[Pair, Place](), list[int](), list[int]()
    exact, across = list[Place](), list[Across]()
    for number, (table, (area, group)) in enumerate(zip(tables, parts, strict=True)):
        level, step = areas.steps[number], groups.steps[number]
        nests = OUTSIDE not in (level, step) and np.all(area != NOWHERE) and np.all(group != NOWHERE)
        if nests and (number >= len(order.tables) or (level, step) not in taken):
            place = Place(table, level, step, areas.rows(area, nodes, level), groups.rows(group, places, step))
            if number >= len(order.tables):
                exact.append(place)
            else:
                taken[level, step] = place
                inside.append(number)
        else:
            level = areas.step_for(area)
            cells = groups.rows(group, places, groups.last)
            across.append(Across(table, axis, level, areas.rows(area, nodes, level), cells))
            outside.append(number)
    nest = Nest(axis, tree, chain, (*taken.values(), *exact))
    capacities = _capacities(order.domain, nest, leaves=(areas.finest, nodes[-1]), cells=(groups.finest, places[-1]))
    return CrossedNest(nest, tuple(inside), tuple(across), tuple(outside), capacities)


def _passing(order: Order, crossed: CrossedNest) -> CrossedNest:
    """The same, with as many tables in the nest as its passes can combine; the others cross it with their numbers."""
    nest, variances = crossed.nest, all_variances(order)
    own, exact = list(zip(nest.places, crossed.inside, strict=False)), nest.places[len(crossed.inside) :]
    known = [0.0] * len(exact)

    def passable(kept: Sequence[tuple[Place, int]]) -> bool:
        spread = [*(variances[number] for _, number in kept), *known]
        return _passable(nest, [*(place for place, _ in kept), *exact], spread)

    kept, dropped = own, list[tuple[Place, int]]()
    while kept and not passable(kept):
        least = min(kept, key=lambda each: each[0].table.query_count)
        kept = [each for each in kept if each is not least]
        dropped.insert(0, least)
    for each in dropped:
        kept = [*kept, each] if passable([*kept, each]) else kept
    kept.sort(key=lambda each: each[1])
    inside = tuple(number for _, number in kept)
    moved = [(_across(nest, place), number) for place, number in own if number not in inside]
    across = sorted([*zip(crossed.across, crossed.outside, strict=True), *moved], key=lambda each: each[1])
    return replace(
        crossed,
        nest=replace(nest, places=(*(place for place, _ in kept), *exact)),
        inside=inside,
        across=tuple(each for each, _ in across),
        outside=tuple(number for _, number in across),
    )


def _across(nest: Nest, place: Place) -> Across:
    return Across(place.table, nest.axis, place.level, place.nodes, place.groups[nest.chain.ancestors(place.step)])


def _passable(nest: Nest, places: Sequence[Place], variances: Sequence[float]) -> bool:
    """Whether passes over the tree and the chain combine such measurements; the exact ones come last."""
    spread = {(place.level, place.step): each for place, each in zip(places, variances, strict=True)}
    try:
        Weights.of(nest.chain, spread, levels=nest.tree.last + 1)
    except InvalidRequest:
        return False
    return True


def _capacities(
    domain: Domain, nest: Nest, *, leaves: tuple[Integers, Integers], cells: tuple[Integers, Integers]
) -> Capacities | None:
    """Which cells can occur at each leaf, where structural zeros name places; None where none does.

    `leaves` and `cells` are the group of each level of the geography, and of each cell, and which group stands where.
    """
    about = [masks for masks in domain.all_zero_masks if nest.axis in masks]
    if not about:
        return None
    patterns, members = np.unique(np.stack([masks[nest.axis] for masks in about]), axis=1, return_inverse=True)
    found = np.zeros((nest.tree.sizes[-1], nest.chain.sizes[-1]), dtype=np.bool_)
    for pattern, held in enumerate(patterns.T):
        free = np.bincount(cells[0], weights=domain.possible_cells(without=nest.axis, held=held)) > 0
        here = np.isin(leaves[1], leaves[0][members.reshape(-1) == pattern])
        found[here] |= free[cells[1]]
    return Capacities(nest.tree, nest.chain, {nest.tree.last: found})
