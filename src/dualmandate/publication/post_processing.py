"""Post-processing: estimates and tables of whole numbers, at least 0, that add up, from measurements.

Nothing here looks at confidential data. Unbiased estimates come first; whole numbers follow from them; what is exact
stays exact. Unbiased estimates have negative counts and do not add up; counts that add up are at least 0, so that small
ones are too large on average and large ones too small. How much so is found by simulation on data of no one: on
confidential data it would be a release of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest, NoConsistentTables
from dualmandate.mechanism import Distribution
from dualmandate.mechanism.strategy.marginal_rows import IntegerMarginals, Places
from dualmandate.mechanism.strategy.workload_blocks import parts_of
from dualmandate.mechanism.synthesis.records_fit import FittedRecords, Target, fitted_records, is_affordable
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.publication.consistency.crossing import CrossedEstimates
from dualmandate.publication.consistency.estimates import Pair, TreeEstimates, count_across, estimate
from dualmandate.publication.consistency.histogram_fit import MOST_STEPS, FittedHistogram, fitted_histogram
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.running_sums import rising_histogram, running_axis
from dualmandate.publication.consistency.strata import Strata
from dualmandate.publication.consistency.top_down_rounding import CountConstraints, top_down
from dualmandate.publication.marginal_counts import asked_axes
from dualmandate.publication.measuring import by_table, estimated, published
from dualmandate.publication.nested_tables import (
    LARGEST_FITTED,
    NestedTable,
    NestedTables,
    all_variances,
    nest_together,
    table_noises,
)
from dualmandate.publication.release_spec import Group, ReleaseSpec, known_histogram
from dualmandate.publication.synthetic_records import (
    SyntheticRecords,
    records_of_histogram,
    records_of_levels,
    records_of_table,
)
from dualmandate.publication.writing import NoisyRows, PublishedTable
from dualmandate.workload import Identity, Table, Total, Workload

MOST_SIMULATED = 30_000  # At most so many numbers, and cells, are simulated to see what making them whole does.
MOST_FITTED = 2**30  # Fits of more cells are simulated where all of them together look at no more: about a minute.
RELEASES = 20  # So many of them are, for what making them whole does to errors.
DRAWS = 39  # And so many for intervals: of 40 errors that are alike, one is among the 2 largest in 5 % of cases.
PUBLIC_SEED = 2019  # Simulations start from this; they touch nothing confidential.
LEAST_VARIANCE = 1e-12  # Noise that is almost surely 0 is taken to have this, beside other noise.
NUMBERS_AT_ONCE = 2**18  # At most this many estimates are computed at once.
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
    "The tables in whole numbers are those of one file of whole records, rounded from what is nearest to the estimates "
    "by weighted least squares: nothing is below 0, and all tables add up exactly."
)
UNFINISHED = (
    "The tables in whole numbers are those of one file of whole records, rounded from a fit to the estimates by "
    f"weighted least squares that was ended after {MOST_STEPS:,} steps, before it came to what is nearest: nothing is "
    "below 0, and all tables add up exactly, but others may lie nearer to the estimates."
)
NOT_FOUND = "The tables were not made consistent: {why}."
TOO_LARGE = (
    "The tables were not made consistent: {cells:.3g} cells are more than one file of whole records is fitted to."
)

RECORDS = (
    "The tables in whole numbers are those of one file of {records:,} whole records, which was fitted to the estimates "
    "level by level: nothing is below 0, and all tables add up exactly. Its numbers are {distance} from the estimates, "
    "root mean squared."
)
UNFINISHED_RECORDS = (
    RECORDS
    + " The fit was ended before it came to what is nearest: other whole numbers may lie nearer to the estimates."
)
TOO_MANY_RECORDS = (
    "The tables were not made consistent: a file of {records:,} records of as many attributes is not fitted to them."
)
NO_RECORDS = (
    "The tables were not made consistent: records are fitted to tables that are measured together as marginals, or "
    "each by itself, and some of these are neither."
)

T = TypeVar("T")
Reaches = Mapping[int, Integers]  # by per cent: how far the error of each number of a table goes, row-major
Errors = Callable[[int, range, int], Floats]  # of a level of the tree, some nodes, and one of the chain


@dataclass(frozen=True, eq=False)
class PostProcessed:
    """The tables with their whole numbers, in words how these were made, and whether groups were put together.

    Tables are to be taken once, one after the other: large ones are made when they are asked for.
    `together`: estimates rest on the measurements of all groups, not of their own alone. `effects` says what making
    tables whole does to errors, simulated on the whole numbers themselves as if they were the truth; none where that
    would take too long. `reaches` says the same of each number: how far 90 and 95 % of such errors go, by table.
    """

    tables: Iterable[PublishedTable]
    words: str
    together: bool = False
    effects: tuple[ConsistencyEffect, ...] = ()
    reaches: Mapping[str, Reaches] = field(default_factory=dict, repr=False)
    records: Callable[[], SyntheticRecords | None] = field(default=lambda: None, repr=False)  # if tables count such
    told: tuple[str, str] | None = None  # how intervals of estimates and values were made, where tables have them


def post_process(
    order: ReleaseSpec, *, measured: Sequence[NoisyRows], totals: Integers | None, effects: bool = True
) -> PostProcessed:
    """Estimates and whole numbers for every table; the best of all measurements together where tables nest.

    Without `effects` nothing is simulated.
    """
    nest = nest_together(order)
    if nest is not None:
        with suppress(NoConsistentTables):
            return _nested(order, nest, measured=measured, totals=totals, effects=effects)
    found = estimated_tables(order, measured, totals)
    if order.marginals is not None:
        return _of_records(order, list(found), measured)
    if order.domain.size > LARGEST_FITTED:
        return PostProcessed(found, TOO_LARGE.format(cells=order.domain.size))
    tables = list(found)
    try:
        fitted = _fit(order, tables, totals)
    except NoConsistentTables as refusal:  # reported, never relaxed; the estimates stand
        return PostProcessed(tables, NOT_FOUND.format(why=refusal.why))
    histogram, words = fitted.counts, FITTED if fitted.finished else UNFINISHED
    seen = _fit_effects(order, tables, fitted) if effects else NOT_SIMULATED
    made = _tables_of(order, tables, histogram)
    records = partial(records_of_histogram, order.domain, order.tables, histogram)
    return PostProcessed(made, words, effects=seen.effects, reaches=seen.reaches, records=records)


def _of_records(order: ReleaseSpec, tables: list[PublishedTable], measured: Sequence[NoisyRows]) -> PostProcessed:
    """Where marginals were measured: whole numbers are counted from a file of whole records that is fitted to them."""
    fit = MarginalFit.of(order)
    if fit is None:
        return PostProcessed(tables, NO_RECORDS)
    estimates = fit.strategy.estimated(np.concatenate([each.values for each in measured]))
    records = max(round(float(estimates[()])), 0)
    if not is_affordable(fit.strategy.sizes, fit.sets, records):
        return PostProcessed(tables, TOO_MANY_RECORDS.format(records=records))
    targets = []
    for places in fit.sets:
        errors = next(table.standard_errors for table, own in zip(tables, fit.places, strict=True) if own == places)
        weight = 1.0 / float(np.square(errors).mean())
        targets.append(Target(places, fit.strategy.marginal(places, places, estimates), weight))
    found = fitted_records(fit.strategy.sizes, targets, records)
    words = (RECORDS if found.finished else UNFINISHED_RECORDS).format(
        records=records, distance=f"{found.distance:.3g}"
    )
    made = []
    for table, asked, places in zip(tables, order.tables, fit.places, strict=True):
        answers = fit.strategy.asked(asked, fit.strategy.queries(asked).axes, _within(fit, asked, found, places))
        made.append(replace(table, values=whole(float(asked.weight) * answers.reshape(-1), asked)))
    return PostProcessed(made, words, records=partial(records_of_levels, order.domain, order.tables, found.levels))


def _within(fit: MarginalFit, asked: Table, found: FittedRecords, places: Places) -> Floats:
    """The marginal of the attributes that a table does not only add up; those that it does not tell apart are alike."""
    counted = found.marginal(places, fit.strategy.sizes).astype(np.float64)
    axes = fit.strategy.queries(asked).axes
    shape = [fit.strategy.sizes[place] if place in places else 1 for place in axes]
    rest = math.prod(fit.strategy.sizes[place] for place in axes if place not in places)
    return np.broadcast_to(counted.reshape(shape) / rest, fit.strategy.shape(axes))


@dataclass(frozen=True, eq=False)
class MarginalFit:
    """What records are fitted to: the marginals that all tables of an order are, measured together."""

    strategy: IntegerMarginals
    places: list[Places]  # of each table, the attributes that it tells apart
    sets: tuple[Places, ...]  # the different ones

    @classmethod
    def of(cls, order: ReleaseSpec) -> MarginalFit | None:
        """None where tables were neither all measured together as marginals nor all by themselves, or are none."""
        strategy = order.groups[0].rows.strategy if len(order.groups) == 1 else None
        own = _tables_as_marginals(order) if strategy is None else strategy.marginals
        if own is None:
            return None
        places = [own.queries(table).fine for table in order.tables]
        return cls(own, places, tuple(sorted(set(places))))


def _tables_as_marginals(order: ReleaseSpec) -> IntegerMarginals | None:
    """Tables that were measured themselves, as counts of marginals; None where some of them are something else."""
    tables = order.tables
    plain = all(isinstance(factor, Identity | Total) for table in tables for factor in table.factors)
    if not plain or not all(group.rows.direct for group in order.groups):
        return None
    [part] = parts_of(Workload(order.domain, tables), split=False)
    variances = (noise.distribution().variance for group in order.groups for noise in group.table_noises)
    sets = tuple(map(asked_axes, tables))
    weights = tuple(Fraction(1.0 / math.sqrt(max(variance, LEAST_VARIANCE))) for variance in variances)
    return IntegerMarginals(part, sets, weights, residual=False, words="the tables")


@dataclass(frozen=True, eq=False)
class ConsistentNest:
    """A nest after all of it was put together: estimates, and whole numbers that add up, if these were asked for.

    Its tables are made one by one, when they are asked for: all of them need not be held at once.
    """

    order: ReleaseSpec
    nest: NestedTables
    found: CrossedEstimates
    strata: Strata | None  # None: standard errors are those of the nest alone
    counts: tuple[NDArray[Any], ...] | None = field(repr=False)  # of each level, shape (nodes, cells)

    @property
    def is_best(self) -> bool:
        """Whether no linear unbiased estimates are more precise."""
        return self.found.best and self.nest.capacities is None

    @property
    def tables(self) -> Iterator[PublishedTable]:
        """Every table of the order, in its order."""
        return (self._table(number, allowed) for number, allowed in enumerate(self.nest.allowed))

    def table(self, name: str) -> PublishedTable:
        """One table of the order."""
        number = next(i for i, each in enumerate(self.order.tables) if each.name == name)
        return self._table(number, self.nest.allowed[number])

    def records(self) -> SyntheticRecords | None:
        """Those that its finest table counts; none where no table shows every group of every area."""
        finest = self.nest.finest
        return None if finest is None else records_of_table(self.table(finest.table.name))

    def _table(self, number: int, allowed: Booleans | None) -> PublishedTable:
        if number in self.nest.outside:
            table = self._across(self.nest.outside.index(number))
        else:
            place, found = self.nest.places[self.nest.inside.index(number)], self.found.estimates
            table = published_place(self.order, self.nest, place, found=found, counts=self.counts, errors=self._errors)
        if allowed is None:
            return table
        known = np.where(allowed, table.estimates, 0.0), np.where(allowed, table.standard_errors, 0.0)
        return replace(table, estimates=known[0], standard_errors=known[1])

    def _errors(self, level: int, nodes: range, step: int) -> Floats:
        if self.strata is None:
            return self.found.alone.standard_errors(level, nodes, step)[step]
        return self.strata.standard_errors(level, self.nest.chain.ancestors(step), nodes)

    def _across(self, which: int) -> PublishedTable:
        across, crossing = self.nest.across[which], self.found.crossings[which]
        errors = np.zeros(across.shape)
        if self.strata is None:
            errors = self.found.bounds(which)
        else:
            own = self.strata.standard_errors(across.level, across.groups)
            errors[:, : own.shape[1]] = own
        values = None
        if self.counts is not None:
            sums = np.zeros(across.shape, dtype=np.int64)
            count_across(self.counts[across.level], crossing.areas, crossing.groups, sums)
            values = across.read(sums)
        return published(self.order, across.table, across.read(self.found.tables[which]), across.read(errors), values)


def consistent_nest(
    order: ReleaseSpec,
    nest: NestedTables,
    *,
    measured: Sequence[NoisyRows],
    totals: Integers | None,
    whole: bool = True,
) -> ConsistentNest:
    """Estimates of all measurements together, with standard errors, and whole numbers that add up, if these are asked.

    Refused where bounds leave no whole numbers.
    """
    values, variances = _numbers(order, measured, totals)
    for number, allowed in enumerate(nest.allowed):
        if allowed is not None:
            values[number] = np.where(allowed, values[number], 0)
    found = nest.estimated(values, variances)
    strata = None if nest.is_complete else nest.strata(found, variances)
    constraints = CountConstraints(found.crossings, nest.capacities)
    counts = top_down(found.estimates, constraints=constraints) if whole else None
    return ConsistentNest(order, nest, found, strata, counts)


def published_place(
    order: ReleaseSpec,
    nest: NestedTables,
    place: NestedTable,
    *,
    found: TreeEstimates,
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
    whole = None if counts is None else nest.read(place, nest.chain.sums(counts[place.level], place.step))
    return published(order, place.table, nest.read(place, estimates), nest.read(place, spread), whole)


def _numbers(
    order: ReleaseSpec, measured: Sequence[NoisyRows], totals: Integers | None
) -> tuple[list[NDArray[Any]], list[float]]:
    """The numbers of each table and of what is exact, and the variance of each, 0 for the exact ones."""
    values = list[NDArray[Any]]()
    for group, each in zip(order.groups, measured, strict=True):
        values += by_table(group.tables, each.values)
    if totals is not None:
        values += by_table(order.public_tables, totals)
    return values, all_variances(order)


def _nested(
    order: ReleaseSpec,
    nest: NestedTables,
    *,
    measured: Sequence[NoisyRows],
    totals: Integers | None,
    effects: bool,
) -> PostProcessed:
    """A nest, with tables that may cross it; where bounds leave no whole numbers, that is reported."""
    try:
        settled = consistent_nest(order, nest, measured=measured, totals=totals)
    except NoConsistentTables as refusal:
        if order.domain.size <= LARGEST_FITTED:
            raise  # a histogram may be found
        settled = consistent_nest(order, nest, measured=measured, totals=totals, whole=False)
        return PostProcessed(settled.tables, NOT_FOUND.format(why=refusal.why), together=True)
    if nest.is_complete:
        assert settled.counts is not None
        seen = nest_effects(order, nest, settled.counts[-1]) if effects else NOT_SIMULATED
        found = PostProcessed(settled.tables, NESTED, together=True, effects=seen.effects, reaches=seen.reaches)
        return replace(found, records=settled.records)
    names = ", ".join(f"'{each.table.name}'" for each in nest.across)
    words = CROSSED.format(
        most="Most tables" if names else "The tables",
        others=OTHERS.format(names=names) if names else "",
        best="are the best linear unbiased ones" if settled.is_best else "are unbiased and linear, not the best,",
        errors="are exact" if settled.is_best and settled.strata is not None else "are upper bounds",
        pulled=PULLED if names else "",
        bound=BOUND if nest.capacities is not None else "",
    )
    if not effects or too_long(order):
        return PostProcessed(settled.tables, words, together=True, records=settled.records)
    tables = list(settled.tables)
    seen = _crossed_effects(order, nest, tables, totals)
    found = PostProcessed(tables, words, together=True, effects=seen.effects, reaches=seen.reaches)
    return replace(found, records=settled.records)


def estimated_tables(
    order: ReleaseSpec, measured: Sequence[NoisyRows], totals: Integers | None
) -> Iterator[PublishedTable]:
    """The tables as each group's own measurements tell them."""
    needed = totals is not None and any(group.rows.needs_public for group in order.groups)
    public = known_histogram(order, totals) if needed and totals is not None else None
    for group, each in zip(order.groups, measured, strict=True):
        yield from estimated(order, group, each, public)


def _fit(order: ReleaseSpec, tables: Sequence[PublishedTable], totals: Integers | None) -> FittedHistogram:
    """The histogram of whole records that is fitted to the estimates."""
    grids = [float(table.grid) for table in order.tables]
    answers = np.concatenate([table.estimates / grid for table, grid in zip(tables, grids, strict=True)])
    variances = np.concatenate([(table.standard_errors / grid) ** 2 for table, grid in zip(tables, grids, strict=True)])
    if (axis := _running_axis(order)) is not None:
        records = None if totals is None else int(totals[0])
        counts = rising_histogram(order.tables[0], axis, answers, variances, records)
        return FittedHistogram(counts, finished=True, work=order.domain.size)
    workload, possible = Workload(order.domain, order.tables), order.domain.possible_cells()
    return fitted_histogram(workload, answers, variances, public=order.public, totals=totals, possible=possible)


def _running_axis(order: ReleaseSpec) -> int | None:
    """The attribute whose running sums are all that an order asks for, beside the number of records; else None."""
    if len(order.tables) > 1 or len(order.public_tables) > 1 or order.domain.structural_zeros:
        return None
    return running_axis(order.tables[0], total_is_known=order.public is not None)


def _tables_of(order: ReleaseSpec, tables: Sequence[PublishedTable], histogram: Integers) -> list[PublishedTable]:
    workload = Workload(order.domain, order.tables)
    return [
        replace(table, values=whole(workload.table_answers(table.name, histogram), each))
        for table, each in zip(tables, order.tables, strict=True)
    ]


def whole(answers: NDArray[np.generic], table: Table) -> Integers | None:
    """Answers of a histogram as whole numbers of the table's unit; None where they are fractions of it."""
    if table.weight.denominator != 1 or table.grid.denominator != 1:
        return None
    return np.asarray(np.rint(answers).astype(np.int64) * int(table.grid))


def _measured_again(group: Group, values: Integers, generator: np.random.Generator) -> NoisyRows:
    """Rows of a group with new noise, which touches nothing confidential."""
    kinds = group.rows.kinds()
    for kind, noise in enumerate(group.noises):
        rows = np.flatnonzero(kinds == kind)
        values[rows] += noise.distribution().draw(generator, len(rows)).astype(np.int64)
    return NoisyRows(group.name, group.noises, kinds.astype(np.int64), values)


def nest_effects(order: ReleaseSpec, nest: NestedTables, leaves: NDArray[Any]) -> Simulated:
    """What fixing a complete nest from the top down does, on releases of what it was fixed to."""
    if too_long(order):
        return NOT_SIMULATED
    noises = {place.pair: noise for place, noise in zip(nest.places, table_noises(order), strict=True)}
    places = [place for place in nest.places if place.table in order.tables]
    truth, draw = tree_releases(nest.tree, nest.chain, leaves.astype(np.int64), noises)

    def drawn(generator: np.random.Generator) -> dict[str, Both]:
        found = draw(generator)
        pairs = ((place, *found[place.pair]) for place in places)
        return {place.table.name: (nest.read(place, one), nest.read(place, other)) for place, one, other in pairs}

    return _effects({place.table.name: nest.read(place, truth[place.pair]) for place in places}, drawn)


def _crossed_effects(
    order: ReleaseSpec, nest: NestedTables, tables: Sequence[PublishedTable], totals: Integers | None
) -> Simulated:
    """What fixing a crossed nest from the top down does, on releases of what it was fixed to."""
    truth = {table.name: table.values for table in tables if table.values is not None}

    def draw(generator: np.random.Generator) -> dict[str, Both]:
        measured = []
        for group in order.groups:
            values = np.concatenate([truth[table.name] for table in group.tables])
            measured.append(_measured_again(group, values, generator))
        return _both(consistent_nest(order, nest, measured=measured, totals=totals).tables)

    return _effects(truth, draw)


def _fit_effects(order: ReleaseSpec, tables: Sequence[PublishedTable], fitted: FittedHistogram) -> Simulated:
    """What fitting does, on releases of the fitted histogram."""
    histogram = fitted.counts
    whole = _tables_of(order, tables, histogram)
    # Amounts have many levels, so many cells; where they were fitted in few steps, they are simulated all the same.
    quick = _few_numbers(order) and fitted.work * DRAWS <= MOST_FITTED
    if (too_long(order) and not quick) or any(table.values is None for table in whole):
        return NOT_SIMULATED
    totals = None if order.public is None else np.asarray(order.public.answers(histogram), dtype=np.int64)
    public = None if totals is None else known_histogram(order, totals)

    def draw(generator: np.random.Generator) -> dict[str, Both]:
        made = list[PublishedTable]()
        for group in order.groups:
            measured = _measured_again(group, group.rows.count(histogram), generator)
            made += estimated(order, group, measured, public)
        return _both(_tables_of(order, made, _fit(order, made, totals).counts))

    return _effects({table.name: table.values for table in whole if table.values is not None}, draw)


def _both(tables: Iterable[PublishedTable]) -> dict[str, Both]:
    return {table.name: (table.estimates, table.values) for table in tables if table.values is not None}


@dataclass(frozen=True, eq=False)
class Simulated:
    """What releases of the whole numbers of a release show, as if these were the truth."""

    effects: tuple[ConsistencyEffect, ...] = ()
    reaches: Mapping[str, Reaches] = field(default_factory=dict, repr=False)


NOT_SIMULATED = Simulated()


def _effects(truth: Mapping[str, NDArray[Any]], draw: Draw) -> Simulated:
    sizes: dict[str, list[Integers]] = {name: [] for name in truth}

    def noted(generator: np.random.Generator) -> Mapping[str, Both]:
        found = draw(generator)
        for name, (_, values) in found.items():
            sizes[name].append(np.abs(values.reshape(-1) - truth[name].reshape(-1)))
        return found

    generator = np.random.default_rng(PUBLIC_SEED)
    with suppress(NoConsistentTables):  # a simulation that fails is no reason to fail a release
        effects = consistency_effect(truth, noted, generator, releases=RELEASES)
        for _ in range(DRAWS - RELEASES):
            noted(generator)
        return Simulated(effects, {name: _reaches(np.sort(each, axis=0)) for name, each in sizes.items()})
    return NOT_SIMULATED


def _reaches(sizes: Integers) -> Reaches:
    """Sizes of simulated errors that one more, alike to them, exceeds in at most 10 and 5 % of cases.

    Sorted along the first axis; the k-th of n is exceeded with probability at most 1 - k/(n + 1).
    """
    return {percent: sizes[-(-percent * (len(sizes) + 1) // 100) - 1] for percent in (90, 95)}


def too_long(order: ReleaseSpec) -> bool:
    """Whether an order has too many numbers or cells for its releases to be simulated."""
    return not _few_numbers(order) or order.domain.size > MOST_SIMULATED


def _few_numbers(order: ReleaseSpec) -> bool:
    return sum(table.query_count for table in order.tables) <= MOST_SIMULATED


Both = tuple[Floats, Integers]  # unbiased estimates and consistent counts of one table, flat
Draw = Callable[[np.random.Generator], Mapping[str, Both]]  # one simulated release, by table
SIZES = (0, 1, 10, 100, 1000)  # Each class of cells starts at one of these true counts.


@dataclass(frozen=True)
class ConsistencyEffect:
    """Errors, in records, of one table's cells with true counts in one class, averaged over cells and releases."""

    table: str
    least: int  # of the class
    most: int | None  # None: no limit
    cells: int
    unbiased_bias: float
    unbiased_error: float  # root mean squared
    consistent_bias: float
    consistent_error: float  # root mean squared


def consistency_effect(
    truth: Mapping[str, NDArray[Any]],
    draw: Draw,
    generator: np.random.Generator,
    *,
    releases: int = 50,
    sizes: Sequence[int] = SIZES,
) -> tuple[ConsistencyEffect, ...]:
    """Bias and root mean squared error of unbiased and consistent tables, by table and class of true counts.

    `truth` are the exact counts of each table of synthetic or public data, `draw` simulates one release of them.
    """
    if releases < 1 or list(sizes) != sorted(set(sizes)):
        raise InvalidRequest(
            f"{releases} simulated releases for classes of counts from {tuple(sizes)}",
            why="errors are averaged over releases, and classes rise",
            instead="simulate at least one release, and give least counts in rising order",
        )
    flat = {name: np.asarray(table).reshape(-1) for name, table in truth.items()}
    sums = {name: np.zeros((2, 2, table.size)) for name, table in flat.items()}  # kind × power × cell
    for _ in range(releases):
        for name, both in draw(generator).items():
            for kind, values in enumerate(both):
                error = np.asarray(values, dtype=np.float64).reshape(-1) - flat[name]
                sums[name][kind, 0] += error / releases
                sums[name][kind, 1] += error**2 / releases
    return tuple(effect for name, table in flat.items() for effect in _classes(name, table, sums[name], sizes))


def _classes(name: str, table: NDArray[Any], sums: Floats, sizes: Sequence[int]) -> Iterator[ConsistencyEffect]:
    for least, after in zip(sizes, (*sizes[1:], None), strict=True):
        chosen = (table >= least) & (True if after is None else table < after)
        if chosen.any():
            means = sums[:, :, chosen].mean(axis=2)
            (bias, squared), (kept_bias, kept_squared) = means.tolist()
            most = None if after is None else after - 1
            cells = int(np.count_nonzero(chosen))
            yield ConsistencyEffect(name, least, most, cells, bias, squared**0.5, kept_bias, kept_squared**0.5)


def tree_releases(
    tree: Tree, chain: PartitionChain, truth: Integers, noises: Mapping[Pair, Distribution | None]
) -> tuple[dict[Pair, Integers], Callable[[np.random.Generator], dict[Pair, Both]]]:
    """The exact tables of a tree × chain from the cells of its leaves, and how to simulate releases of them.

    `noises` says for each measured pair of levels its law, or None for what is exact.
    """
    levels = [truth]
    for starts in reversed(tree.starts):
        levels.insert(0, np.add.reduceat(levels[0], starts[:-1], axis=0))
    exact = {pair: chain.sums(levels[pair[0]], pair[1]) for pair in noises}
    variances = {pair: 0.0 if noise is None else noise.variance for pair, noise in noises.items()}

    def draw(generator: np.random.Generator) -> dict[Pair, Both]:
        measured = {
            pair: exact[pair] + (0 if noise is None else noise.draw(generator, exact[pair].shape).astype(np.int64))
            for pair, noise in noises.items()
        }
        estimates = estimate(tree, chain, measured, variances)
        counts = top_down(estimates)
        tables = [estimates.tables(level) for level in range(tree.last + 1)]
        return {pair: (tables[pair[0]][pair[1]], chain.sums(counts[pair[0]], pair[1])) for pair in noises}

    return exact, draw
