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

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from dualmandate.mechanism import Noise, Rows
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.number_errors import NumberErrors
from dualmandate.publication.post_processing import DRAWS, PostProcessed
from dualmandate.publication.release_spec import ReleaseSpec
from dualmandate.publication.writing import INTERVALS, PERCENTS, PublishedTable
from dualmandate.workload import Table

MOST_NUMBERS = 2**20  # A larger table is written without intervals.
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
        if self.made.told is not None and any(each.name == table.name for each in self.order.tables):
            return table, IntervalWords(*self.made.told)
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
        errors = NumberErrors(asked, *self._rows(asked))
        if errors.is_heavy:
            return TOO_HEAVY.format(rows=errors.rows.size)
        tails = [1 - percent / 100 for percent in PERCENTS]
        halves, words = errors.halves(table.standard_errors, np.arange(len(table.estimates)), tails)
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
            return self._together, tuple(noise for group in self.order.groups for noise in group.noises)
        group = next(each for each in self.order.groups if asked in each.tables)
        return group.rows, group.noises

    @cached_property
    def _together(self) -> NestWeights:
        nest = nest_together(self.order)
        assert nest is not None  # estimates rest on it
        return NestWeights(self.order, nest)
