"""Intervals for every number of a table at once, for its files: 90 and 95 %, of estimates and of whole numbers.

Of estimates: numbers of one table with the same standard error mostly have errors of one law, which is worked out once,
exactly, as for a single number (`intervals`); the widest of a few of them is taken for all. Where a table has more
standard errors than laws are worked out for, the largest ratio of half-width and standard error that was found holds
for the others. Numbers that were measured one by one have the exact interval each.

Of whole numbers: a release of the published tables, as if these were the truth, is simulated with noise by the same
exact laws, and goes through the same estimation and the same rounding (`post_processing`). An interval goes as far from
the published number as all but 10 or 5 % of those errors did. It speaks of the number that was counted, as far as
errors around the truth are like those around what was published.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from dualmandate.mechanism import Noise, Rows, StrategyRows
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.intervals import ROUNDING, Reach, reaches_of_rows
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.post_processing import DRAWS, PostProcessed
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.writing import INTERVALS, PERCENTS, PublishedTable
from dualmandate.workload import Table

MOST_NUMBERS = 2**20  # A larger table is written without intervals.
MOST_LAWS = 24  # At most so many laws are worked out for a table,
MOST_WEIGHED = 2**22  # and at most so many weights of noise looked at.
MEMBERS = 3  # Numbers with one standard error are looked at: the first, one in the middle, the last.
SAME = 1e-9  # Standard errors are the same up to this share.
SIMULATED = (
    f"simulated: {DRAWS} releases of the published tables, as if these were the truth, with noise drawn anew by the "
    "same laws and made whole in the same way; an interval reaches as far as 90 or 95 % of those errors"
)
OF_COUNTED = f"{SIMULATED}; about the number that was counted, not about the one expected of a like population"
EXACT = "published without noise"
SUPERPOPULATION = (
    "not given here: the table estimates what a like population would show; load_release gives each interval"
)
TOO_MANY = f"not given: a table of more than {MOST_NUMBERS:,} numbers; load_release gives any one of the estimates"
TOO_HEAVY = "not given: each estimate rests on {rows:,} measurements; load_release gives any one of the intervals"
NO_END = "not given: some noise is too rare for a sum over its values to end; load_release simulates single ones"
NOT_WHOLE = "not given: the tables were not made consistent"
NO_SIMULATION = (
    "not given: releases of tables this large, or of amounts this fine, would take too long to simulate; take the "
    "estimates, and their intervals"
)
BY_LAW = "by the exact law of the noise"
BY_LAWS = "by the exact law of the noise, worked out once for numbers with the same standard error"
BY_RATIO = (
    "by the exact law of the noise of some numbers; for others the largest ratio of half-width and standard error "
    "among these"
)


@dataclass(frozen=True)
class IntervalWords:
    """How the intervals of a table were made, or why there are none."""

    estimates: str
    values: str


@dataclass(frozen=True, eq=False)
class TableIntervals:
    """The intervals of the tables of one release."""

    order: ReleaseSpec
    made: PostProcessed = field(repr=False)

    def of(self, table: PublishedTable) -> tuple[PublishedTable, IntervalWords]:
        """A table with its intervals, and how they were made."""
        columns: dict[str, Floats | Integers] = {}
        estimates, values = self._words(table, columns)
        return replace(table, intervals=columns), IntervalWords(estimates, values)

    def _words(self, table: PublishedTable, columns: dict[str, Floats | Integers]) -> tuple[str, str]:
        asked = next((each for each in self.order.tables if each.name == table.name), None)
        if len(table.estimates) > MOST_NUMBERS:
            return TOO_MANY, TOO_MANY
        if asked is None:
            for name in INTERVALS:
                whole = name.startswith("value") and table.values is not None
                columns[name] = table.values if whole and table.values is not None else table.estimates
            return EXACT, EXACT
        return self._of_estimates(asked, table, columns), self._of_values(asked, table, columns)

    def _of_estimates(self, asked: Table, table: PublishedTable, columns: dict[str, Floats | Integers]) -> str:
        if table.name in self.order.superpopulation:
            return SUPERPOPULATION
        size = sum(group.rows.size for group in self.order.groups)
        if self.made.together and size > MOST_WEIGHED:
            return TOO_HEAVY.format(rows=size)
        rows, noises = self._rows(asked)
        if rows.direct:
            group = next(each for each in self.order.groups if asked in each.tables)
            noise, weight = group.table_noises[group.tables.index(asked)], float(asked.grid * asked.weight)
            law = ErrorOfNumber(np.array([weight]), np.zeros(1, dtype=np.int64), (noise,))
            halves, words = [np.full(len(table.estimates), half) for half in law.halves()], BY_LAW
        elif rows.size > MOST_WEIGHED:
            return TOO_HEAVY.format(rows=rows.size)
        else:
            halves, words = _halves(rows, noises, asked, table.standard_errors)
        for percent, each in zip(PERCENTS, halves, strict=True):
            if not np.isfinite(each).all():
                columns.clear()
                return NO_END
            columns[f"lower_{percent}"] = table.estimates - each
            columns[f"upper_{percent}"] = table.estimates + each
        return words

    def _of_values(self, asked: Table, table: PublishedTable, columns: dict[str, Floats | Integers]) -> str:
        if table.values is None:
            return NOT_WHOLE
        if table.name not in self.made.reaches:
            return NO_SIMULATION
        # A number of records is not below 0, and neither is what is published of it.
        counts = asked.tabulation is not None and asked.tabulation.sum_of is None and not asked.tabulation.weights
        for percent, reach in self.made.reaches[table.name].items():
            lower = table.values - reach
            columns[f"value_lower_{percent}"] = np.maximum(lower, 0) if counts else lower
            columns[f"value_upper_{percent}"] = table.values + reach
        return OF_COUNTED if table.name in self.order.superpopulation else SIMULATED

    def _rows(self, asked: Table) -> tuple[Rows | NestWeights, tuple[Noise, ...]]:
        """The rows that the estimates of a table rest on, and the noise of each kind of these."""
        if self.made.together:
            nest = nest_together(self.order)
            assert nest is not None  # its estimates rest on it
            return NestWeights(self.order, nest), tuple(noise for group in self.order.groups for noise in group.noises)
        group = next(each for each in self.order.groups if asked in each.tables)
        return group.rows, group.noises


@dataclass(frozen=True, eq=False)
class ErrorOfNumber:
    """The error of one number, a weighted sum of noise."""

    weights: Floats
    kinds: Integers
    noises: Sequence[Noise]

    def halves(self) -> list[float]:
        """Half of the length of its interval at each probability; infinite where none can be worked out."""
        tails = tuple(1 - percent / 100 for percent in PERCENTS)
        return [_outward(reach) for reach in reaches_of_rows(self.weights, self.kinds, self.noises, tails)]


def _halves(
    rows: Rows | NestWeights, noises: Sequence[Noise], asked: Table, errors: Floats
) -> tuple[list[Floats], str]:
    """Half of the length of each interval, at each probability, and how it was found."""
    kinds, (spreads, of) = rows.kinds().astype(np.int64), _alike(errors)
    affordable = max(1, min(MOST_LAWS, MOST_WEIGHED // rows.size))
    chosen = np.unique(np.linspace(0, len(spreads) - 1, affordable).astype(np.intp))
    members = MEMBERS if len(spreads) * MEMBERS <= affordable else 1
    found = np.full((len(PERCENTS), len(spreads)), np.nan)
    for place in chosen:
        alike = np.flatnonzero(of == place)
        looked_at = {int(alike[i]) for i in np.linspace(0, len(alike) - 1, members).astype(np.intp)}
        laws = (_law(rows, asked, number, kinds, noises) for number in looked_at)
        found[:, place] = 0.0 if spreads[place] == 0 else np.max([law.halves() for law in laws], axis=0)
    if len(chosen) < len(spreads):
        known = chosen[spreads[chosen] > 0]
        ratios = np.max(found[:, known] / spreads[known], axis=1)
        found = np.where(np.isnan(found), ratios[:, None] * spreads, found)
    return [each[of] for each in found], BY_LAWS if len(chosen) == len(spreads) else BY_RATIO


def _law(
    rows: Rows | NestWeights, asked: Table, number: int, kinds: Integers, noises: Sequence[Noise]
) -> ErrorOfNumber:
    """The error of one number, from the rows that it takes anything of where these are told."""
    if isinstance(rows, StrategyRows):
        taken, shares = rows.taken(asked.name, [number])
        return ErrorOfNumber(float(asked.grid) * shares, kinds[taken], noises)
    return ErrorOfNumber(float(asked.grid) * rows.weights(asked.name, [number]), kinds, noises)


def _alike(errors: Floats) -> tuple[Floats, Integers]:
    """The different standard errors, rising, and which of them each number has."""
    order = np.argsort(errors, kind="stable")
    rising = errors[order]
    starts = np.concatenate([[True], np.diff(rising) > SAME * np.maximum(rising[1:], np.finfo(float).tiny)])
    of = np.empty(len(errors), dtype=np.int64)
    of[order] = np.cumsum(starts) - 1
    return rising[starts], of


def _outward(reach: Reach | None) -> float:
    """Bounds on a lattice are moved outward as those of a single number are, and whole ones stay whole."""
    if reach is None:
        return math.inf
    if reach.step is None:
        return reach.distance
    if reach.step == round(reach.step):
        return float(round(reach.distance))
    return reach.distance + ROUNDING * reach.step
