"""The errors of the numbers of one table, and of sums of these: their laws, and standard errors of all at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism import Noise, Rows, StrategyRows
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.intervals import (
    MOST_LAWS,
    Draws,
    draws_counted,
    draws_of,
    half_widths,
    outward,
    spread_of,
)
from dualmandate.publication.nested_tables import NestWeights
from dualmandate.workload import Table

MOST_WEIGHED = 2**22  # At most so many weights of noise are looked at for the laws of a table.
MOST_PASSED = 2**28  # At most so many cells of a nest are passed for them, where weights come from its estimates.
PASSES = 64  # over a nest for one law, where estimates have no closed form
MOST_LISTED = 2**26  # At most so many weights are listed to add up the errors of all sums of a table.
BY_LAW = "by the exact law of the noise"


@dataclass(frozen=True, eq=False)
class NumberErrors:
    """What a table's estimates take of the noise: `rows` are those they rest on, `noises` those of their kinds."""

    table: Table
    rows: Rows | NestWeights
    noises: Sequence[Noise]

    def draws(self, numbers: Sequence[int]) -> tuple[Draws, ...]:
        """The law of the error of a sum of numbers."""
        grid = float(self.table.grid)
        if self._single is not None:
            return ((self._single, (grid * float(self.table.weight),), (float(len(numbers)),)),)
        counted = self.rows.counted(self.table.name, numbers) if isinstance(self.rows, NestWeights) else None
        if counted is not None:
            return draws_counted([(noise, grid * sizes, times) for noise, sizes, times in counted])
        if isinstance(self.rows, StrategyRows):
            taken, shares = self.rows.taken(self.table.name, numbers)
            return draws_of(grid * shares, self._kinds[taken], self.noises)
        return draws_of(grid * self.rows.weights(self.table.name, numbers), self._kinds, self.noises)

    def spreads(self, sums: Integers, known: Floats | None = None) -> Floats:
        """The standard error of every sum; `sums` says which one each number goes into.

        `known` are those of the numbers, for where each is a sum of its own.
        """
        count = int(sums.max()) + 1
        if count == len(sums) and known is not None:
            found = np.empty(count)
            found[sums] = known
            return found
        if self._single is not None:
            each = float(self.table.grid * self.table.weight) * math.sqrt(self._single.distribution().variance)
            return each * np.sqrt(np.bincount(sums, minlength=count))
        if isinstance(self.rows, NestWeights) and self.rows.passes is not None:
            return float(self.table.grid) * self.rows.spreads(self.table.name, sums)
        if count * self.rows.size > MOST_LISTED:
            raise TooLarge(
                f"standard errors of {count:,} sums of numbers of '{self.table.name}'",
                why=f"each rests on {self.rows.size:,} measurements",
                instead="ask for them one by one: interval(...) takes lists of levels",
            )
        order, starts = np.argsort(sums, kind="stable"), np.cumsum(np.bincount(sums))[:-1]
        return np.array([spread_of(self.draws(part.tolist())) for part in np.split(order, starts)])

    def halves(self, spreads: Floats, sums: Integers, tails: Sequence[float]) -> tuple[list[Floats], str]:
        """Half of the length of the interval of every sum, at each tail, and how it was found."""
        if self._single is not None and len(spreads) == len(sums):
            return [np.full(len(spreads), half) for half in outward(self.draws([0]), tails)], BY_LAW

        def law(number: int) -> tuple[Draws, ...]:
            return self.draws(np.flatnonzero(sums == number).tolist())

        return half_widths(spreads, law, tails, most=self._most_laws)

    @property
    def is_heavy(self) -> bool:
        """Whether even one law has too many weights to be looked at for a file."""
        if self.rows.direct or self._is_counted:
            return False
        return self.rows.size > MOST_WEIGHED or (self._most_laws < 1 and not self._is_closed)

    @property
    def _most_laws(self) -> int:
        if self._is_counted:
            return MOST_LAWS
        passed = MOST_LAWS
        if isinstance(self.rows, NestWeights):
            passed = MOST_PASSED // (self.rows.cells * (1 if self._is_closed else PASSES))
        return min(MOST_LAWS, MOST_WEIGHED // self.rows.size, passed)

    @property
    def _is_closed(self) -> bool:
        return not isinstance(self.rows, NestWeights) or self.rows.is_closed

    @property
    def _is_counted(self) -> bool:
        return isinstance(self.rows, NestWeights) and self.rows.passes is not None

    @cached_property
    def _single(self) -> Noise | None:
        """The noise of each number, where each was measured by itself."""
        if isinstance(self.rows, NestWeights) or not self.rows.direct:
            return None
        return self.noises[self.rows.steps.index(self.table.weight)]

    @cached_property
    def _kinds(self) -> Integers:
        return self.rows.kinds().astype(np.int64)
