"""Tables of whole numbers, at least 0, that add up, from unbiased estimates; what is exact stays exact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import NoConsistentTables
from dualmandate.mechanism import Distribution
from dualmandate.publication.consistency.effect import Both, Effect, consistency_effect, tree_releases
from dualmandate.publication.consistency.fitting import consistent_histogram
from dualmandate.publication.crossed_nest import CrossedNest, consistent_crossed_nest
from dualmandate.publication.crossed_places import LARGEST_FITTED, nest_together
from dualmandate.publication.measurements import Measurements, PublishedTable
from dualmandate.publication.measuring import estimated
from dualmandate.publication.nested import Nest, consistent_nest
from dualmandate.publication.order import Group, Order, known_histogram
from dualmandate.workload import Table, Workload

MOST_SIMULATED = 30_000  # numbers, and cells, of releases that are simulated to see what making them whole does
RELEASES = 20  # of them
PUBLIC_SEED = 2019  # of simulations, which touch nothing confidential
NESTED = (
    "The tables nest by geography and by groups of cells. Estimates are the best linear unbiased ones of all "
    "measurements together; whole numbers were fixed from the whole country down, each part within its parent, so that "
    "all tables add up exactly."
)
CROSSED = (
    "{most} nest by geography and by groups of cells{others}. Estimates {best} of all measurements together, and "
    "standard errors {errors}. Whole numbers were fixed from the whole country down, each part within its "
    "parent{pulled}, so that all tables add up exactly.{bound}"
)
OTHERS = "; {names} cross these groups or areas"
PULLED = "; tables that cross pulled, with their precision, and were then counted"
BOUND = " What cannot occur in some places is 0 there, in every table."
FITTED = (
    "The tables in whole numbers are those of one file of whole records, the nearest to the estimates by weighted "
    "least squares: nothing is below 0, and all tables add up exactly."
)
NOT_FOUND = "The tables were not made consistent: {why}."
TOO_LARGE = (
    "The tables were not made consistent: {cells:.3g} cells are more than one file of whole records is fitted to."
)


@dataclass(frozen=True, eq=False)
class Adjusted:
    """The tables with their whole numbers, in words how these were made, and whether groups were put together.

    Tables are to be taken once, one after the other: large ones are made when they are asked for.
    `together`: estimates rest on the measurements of all groups, not of their own alone. `effects` says what making
    tables whole does to errors, simulated on the whole numbers themselves as if they were the truth; none where that
    would take too long.
    """

    tables: Iterable[PublishedTable]
    words: str
    together: bool = False
    effects: tuple[Effect, ...] = ()


def adjusted(order: Order, *, measured: Sequence[Measurements], totals: NDArray[np.int64] | None) -> Adjusted:
    """Estimates and whole numbers for every table; the best of all measurements together where tables nest."""
    nest = nest_together(order)
    if isinstance(nest, Nest):
        settled = consistent_nest(order, nest, measured=measured, totals=totals)
        return Adjusted(settled.tables, NESTED, together=True, effects=nest_effects(order, nest, settled.leaves))
    if nest is not None:
        with suppress(NoConsistentTables):
            return _crossed(order, nest, measured=measured, totals=totals)
    found = estimated_tables(order, measured, totals)
    if order.domain.size > LARGEST_FITTED:
        return Adjusted(found, TOO_LARGE.format(cells=order.domain.size))
    tables = list(found)
    try:
        histogram = _fit(order, tables, totals)
    except NoConsistentTables as refusal:  # reported, never relaxed; the estimates stand
        return Adjusted(tables, NOT_FOUND.format(why=refusal.why))
    return Adjusted(_tables_of(order, tables, histogram), FITTED, effects=_fit_effects(order, tables, histogram))


def _crossed(
    order: Order, crossed: CrossedNest, *, measured: Sequence[Measurements], totals: NDArray[np.int64] | None
) -> Adjusted:
    """A nest with tables that cross it; where bounds leave no whole numbers, that is reported."""
    try:
        settled = consistent_crossed_nest(order, crossed, measured=measured, totals=totals)
    except NoConsistentTables as refusal:
        if order.domain.size <= LARGEST_FITTED:
            raise  # a histogram may be found
        settled = consistent_crossed_nest(order, crossed, measured=measured, totals=totals, whole=False)
        return Adjusted(settled.tables, NOT_FOUND.format(why=refusal.why), together=True)
    names = ", ".join(f"'{each.table.name}'" for each in crossed.across)
    words = CROSSED.format(
        most="Most tables" if names else "The tables",
        others=OTHERS.format(names=names) if names else "",
        best="are the best linear unbiased ones" if settled.best else "are unbiased and linear, not the best,",
        errors="are exact" if settled.exact_errors else "are upper bounds",
        pulled=PULLED if names else "",
        bound=BOUND if crossed.capacities is not None else "",
    )
    if too_long(order):
        return Adjusted(settled.tables, words, together=True)
    tables = list(settled.tables)
    return Adjusted(tables, words, together=True, effects=_crossed_effects(order, crossed, tables, totals))


def _crossed_effects(
    order: Order, crossed: CrossedNest, tables: Sequence[PublishedTable], totals: NDArray[np.int64] | None
) -> tuple[Effect, ...]:
    """What fixing a crossed nest from the top down does, on releases of what it was fixed to."""
    truth = {table.name: table.values for table in tables if table.values is not None}

    def draw(generator: np.random.Generator) -> dict[str, Both]:
        measured = []
        for group in order.groups:
            values = np.concatenate([truth[table.name] for table in group.tables])
            measured.append(_measured_again(group, values, generator))
        settled = consistent_crossed_nest(order, crossed, measured=measured, totals=totals)
        return {each.name: (each.estimates, each.values) for each in settled.tables if each.values is not None}

    with suppress(NoConsistentTables):  # a simulation that fails is no reason to fail a release
        return consistency_effect(truth, draw, np.random.default_rng(PUBLIC_SEED), releases=RELEASES)
    return ()


def _measured_again(group: Group, values: NDArray[np.int64], generator: np.random.Generator) -> Measurements:
    """Rows of a group with new noise, which touches nothing confidential."""
    kinds = group.rows.kinds()
    for kind, noise in enumerate(group.noises):
        rows = np.flatnonzero(kinds == kind)
        values[rows] += noise.distribution().draw(generator, len(rows)).astype(np.int64)
    return Measurements(group.name, group.noises, kinds.astype(np.int64), values)


def estimated_tables(
    order: Order, measured: Sequence[Measurements], totals: NDArray[np.int64] | None
) -> Iterator[PublishedTable]:
    """The tables as each group's own measurements tell them."""
    needed = totals is not None and any(group.rows.needs_public for group in order.groups)
    public = known_histogram(order, totals) if needed and totals is not None else None
    for group, each in zip(order.groups, measured, strict=True):
        yield from estimated(order, group, each, public)


def _fit(order: Order, tables: Sequence[PublishedTable], totals: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The histogram of whole records that is nearest to the estimates."""
    grids = [float(table.grid) for table in order.tables]
    answers = np.concatenate([table.estimates / grid for table, grid in zip(tables, grids, strict=True)])
    variances = np.concatenate([(table.standard_errors / grid) ** 2 for table, grid in zip(tables, grids, strict=True)])
    return consistent_histogram(
        Workload(order.domain, order.tables),
        answers,
        variances,
        public=order.public,
        totals=totals,
        possible=order.domain.possible_cells(),
    )


def _tables_of(order: Order, tables: Sequence[PublishedTable], histogram: NDArray[np.int64]) -> list[PublishedTable]:
    workload = Workload(order.domain, order.tables)
    return [
        replace(table, values=_whole(workload.table_answers(table.name, histogram), each))
        for table, each in zip(tables, order.tables, strict=True)
    ]


def _whole(answers: NDArray[np.generic], table: Table) -> NDArray[np.int64] | None:
    """Answers of a histogram as whole numbers of the table's unit; None where they are fractions of it."""
    if table.weight.denominator != 1 or table.grid.denominator != 1:
        return None
    return np.asarray(np.rint(answers).astype(np.int64) * int(table.grid))


def _fit_effects(order: Order, tables: Sequence[PublishedTable], histogram: NDArray[np.int64]) -> tuple[Effect, ...]:
    """What fitting does, on releases of the fitted histogram."""
    whole = _tables_of(order, tables, histogram)
    if too_long(order) or any(table.values is None for table in whole):
        return ()
    totals = None if order.public is None else np.asarray(order.public.answers(histogram), dtype=np.int64)
    public = None if totals is None else known_histogram(order, totals)

    def draw(generator: np.random.Generator) -> dict[str, Both]:
        made = list[PublishedTable]()
        for group in order.groups:
            measured = _measured_again(group, group.rows.count(histogram), generator)
            made += estimated(order, group, measured, public)
        return {
            table.name: (table.estimates, table.values)
            for table in _tables_of(order, made, _fit(order, made, totals))
            if table.values is not None
        }

    truth = {table.name: table.values for table in whole if table.values is not None}
    with suppress(NoConsistentTables):  # a simulation that fails is no reason to fail a release
        return consistency_effect(truth, draw, np.random.default_rng(PUBLIC_SEED), releases=RELEASES)
    return ()


def nest_effects(order: Order, nest: Nest, leaves: NDArray[Any]) -> tuple[Effect, ...]:
    """What fixing a nest from the top down does, on releases of what it was fixed to."""
    if too_long(order):
        return ()
    laws: dict[tuple[int, int], Distribution | None] = {}
    names = {}
    for place, noise in zip(nest.places, _place_noises(order), strict=True):
        laws[place.level, place.step] = noise
        if place.table in order.tables:
            names[f"level {place.level}, {place.step}"] = place.table.name
    truth, draw = tree_releases(nest.tree, nest.chain, leaves.astype(np.int64), laws)
    found = consistency_effect(truth, draw, np.random.default_rng(PUBLIC_SEED), releases=RELEASES)
    return tuple(replace(each, table=names[each.table]) for each in found if each.table in names)


def _place_noises(order: Order) -> list[Distribution | None]:
    """The law of each table's measurements, and None for each of the exact ones after them."""
    laws: list[Distribution | None] = [noise.distribution() for group in order.groups for noise in group.table_noises]
    return laws + [None] * (0 if order.public is None else len(order.public.tables))


def too_long(order: Order) -> bool:
    """Whether an order has too many numbers or cells for its releases to be simulated."""
    return sum(table.query_count for table in order.tables) > MOST_SIMULATED or order.domain.size > MOST_SIMULATED
