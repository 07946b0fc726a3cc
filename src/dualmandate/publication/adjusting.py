"""Tables of whole numbers, at least 0, that add up, from unbiased estimates; what is exact stays exact."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.publication.measurements import Measurements, PublishedTable
from dualmandate.publication.nested import consistent_nest, nest_of
from dualmandate.publication.order import Order, possible_cells
from dualmandate.workload import Table, Workload

LARGEST_FITTED = 10**7  # cells of one histogram that is fitted to all tables
NESTED = (
    "The tables nest by geography and by groups of cells. Estimates are the best linear unbiased ones of all "
    "measurements together; whole numbers were fixed from the whole country down, each part within its parent, so that "
    "all tables add up exactly."
)
FITTED = (
    "The tables in whole numbers are those of one file of whole records, the nearest to the estimates by weighted "
    "least squares: nothing is below 0, and all tables add up exactly."
)
TOO_LARGE = (
    "The tables were not made consistent: {cells:.3g} cells are more than one file of whole records is fitted to."
)


@dataclass(frozen=True, eq=False)
class Adjusted:
    """The tables with their whole numbers, in words how these were made, and whether groups were put together.

    `together`: estimates rest on the measurements of all groups, not of their own alone.
    """

    tables: list[PublishedTable]
    words: str
    together: bool = False


def adjusted(
    order: Order,
    tables: Sequence[PublishedTable],
    *,
    measured: Sequence[Measurements],
    totals: NDArray[np.int64] | None,
) -> Adjusted:
    """Whole numbers for every table, and better estimates where tables nest."""
    nest = nest_of(order)
    if nest is not None:
        # Passes over a tree are the best only where losses are shared alike at every level: public, and refused if not.
        with suppress(InvalidRequest):
            return Adjusted(
                [*consistent_nest(order, nest, tables, measured=measured, totals=totals)], NESTED, together=True
            )
    if order.domain.size > LARGEST_FITTED:
        return Adjusted([*tables], TOO_LARGE.format(cells=order.domain.size))
    return Adjusted(_fitted(order, tables, totals), FITTED)


def _fitted(order: Order, tables: Sequence[PublishedTable], totals: NDArray[np.int64] | None) -> list[PublishedTable]:
    from dualmandate.publication.consistency.fitting import consistent_histogram

    workload = Workload(order.domain, order.tables)
    grids = [float(table.grid) for table in order.tables]
    answers = np.concatenate([table.estimates / grid for table, grid in zip(tables, grids, strict=True)])
    variances = np.concatenate([(table.standard_errors / grid) ** 2 for table, grid in zip(tables, grids, strict=True)])
    histogram = consistent_histogram(
        workload, answers, variances, public=order.public, totals=totals, possible=possible_cells(order.domain)
    )
    return [
        replace(table, values=_whole(workload.table_answers(table.name, histogram), each))
        for table, each in zip(tables, order.tables, strict=True)
    ]


def _whole(answers: NDArray[np.generic], table: Table) -> NDArray[np.int64] | None:
    """Answers of a histogram as whole numbers of the table's unit; None where they are fractions of it."""
    if table.weight.denominator != 1 or table.grid.denominator != 1:
        return None
    return np.asarray(np.rint(answers).astype(np.int64) * int(table.grid))
