"""The tables of a release by a technology whose errors depend on the data, from what it tells of its transcript.

Estimates have the intervals that the technology states, and no standard error. Whole numbers are counted from one file
of records: dealt from the technology's model where it has one, else a histogram that is fitted to the estimates.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dualmandate.errors import NoConsistentTables
from dualmandate.mechanism.data_dependent import Told
from dualmandate.population import Records
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.histogram_fit import fitted_histogram
from dualmandate.publication.measuring import by_table, published
from dualmandate.publication.post_processing import FITTED, NOT_FOUND, TOO_LARGE, UNFINISHED, PostProcessed, whole
from dualmandate.publication.release_spec import LARGEST_TOLD, ReleaseSpec
from dualmandate.publication.synthetic_records import SyntheticRecords, records_of_histogram, records_of_levels
from dualmandate.publication.writing import PERCENTS, PublishedTable
from dualmandate.workload import Table, Workload

LEAST_WIDTH = 1.0  # Answers that are known better than to a record weigh no more than this in a fit.
DEALT = (
    "The tables in whole numbers are those of one file of {records:,} whole records, dealt from the model: nothing is "
    "below 0, and all tables add up exactly."
)
OF_VALUES = (
    "that of the estimate, in whole numbers, and as far as the published number where it lies beyond: it holds the "
    "true number at least as often"
)
ROUNDING = 1e-6  # Ends this near to a whole number reach it: no truth is lost to a rounding error.


def told_tables(order: ReleaseSpec, told: Told, totals: Integers | None) -> PostProcessed:
    """The tables of a release: estimates with their intervals, and whole numbers of one file of records.

    Records are dealt from the model of the technology where it has one. Elsewhere a histogram is fitted to the
    estimates, where its cells are not too many.
    """
    assert order.technology is not None
    workload = order.technology.workload
    halves = {percent: told.half_widths(percent / 100) for percent in PERCENTS}
    counted, words, records = _counted(order, told, halves[PERCENTS[0]], totals)
    starts = [np.zeros(workload.query_count) if each is None else each for each in halves.values()]
    parts = zip(*(by_table(workload.tables, each) for each in (told.values, *starts)), strict=True)
    tables = []
    for table, (values, *widths) in zip(workload.tables, parts, strict=True):
        grid = float(table.grid)
        known = {
            percent: grid * own for percent, own in zip(halves, widths, strict=True) if halves[percent] is not None
        }
        estimates, unknown = grid * values, np.full(values.shape, math.nan)
        made = published(order, table, estimates, unknown, None if counted is None else counted[table.name])
        tables.append(_with_intervals(made, table, known))
    said = told.covers, OF_VALUES if counted is not None else "not given: the tables were not made consistent"
    return PostProcessed(tables, words, records=lambda: records, told=said)


def _with_intervals(table: PublishedTable, asked: Table, halves: Mapping[int, Floats]) -> PublishedTable:
    found: dict[str, Floats | Integers] = {}
    counts = asked.tabulation is not None and asked.tabulation.sum_of is None and not asked.tabulation.weights
    for percent, half in halves.items():
        lower, upper = table.estimates - half, table.estimates + half
        found[f"lower_{percent}"], found[f"upper_{percent}"] = lower, upper
        if table.values is None:
            continue
        # The truth is a whole number, and a count of records is not below 0.
        low, high = np.ceil(lower - ROUNDING), np.floor(upper + ROUNDING)
        low = np.maximum(low, 0.0) if counts else low
        found[f"value_lower_{percent}"] = np.minimum(table.values, low.astype(np.int64))
        found[f"value_upper_{percent}"] = np.maximum(table.values, high.astype(np.int64))
    return replace(table, intervals=found)


def _counted(
    order: ReleaseSpec, told: Told, halves: Floats | None, totals: Integers | None
) -> tuple[dict[str, Integers | None] | None, str, SyntheticRecords | None]:
    """Whole numbers by table, in words how they were made, and the records that they count."""
    domain, tables = order.domain, order.tables
    workload = Workload(domain, tables)
    if told.records is not None:
        levels = told.records()
        answers = workload.answers_from(Records(domain, levels))
        return (
            dict(_whole_tables(tables, answers)),
            DEALT.format(records=len(levels)),
            records_of_levels(domain, tables, levels.T),
        )
    if domain.size > LARGEST_TOLD:
        return None, TOO_LARGE.format(cells=domain.size), None
    widths = np.ones(workload.query_count) if halves is None else np.maximum(halves, LEAST_WIDTH)
    possible = domain.possible_cells()
    try:
        fitted = fitted_histogram(
            workload, told.values, np.square(widths), public=order.public, totals=totals, possible=possible
        )
    except NoConsistentTables as refusal:  # reported, never relaxed; the estimates stand
        return None, NOT_FOUND.format(why=refusal.why), None
    answers = workload.answers(fitted.counts)
    words = FITTED if fitted.finished else UNFINISHED
    return dict(_whole_tables(tables, answers)), words, records_of_histogram(domain, tables, fitted.counts)


def _whole_tables(tables: Sequence[Table], answers: Floats | Integers) -> Iterator[tuple[str, Integers | None]]:
    for table, own in zip(tables, by_table(tables, answers), strict=True):
        yield table.name, whole(own, table)
