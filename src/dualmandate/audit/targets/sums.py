"""A program's tables of sums, of people who were drawn for an audit: what one contributor learns of another."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dualmandate.audit.by_place import OnePlace
from dualmandate.audit.equations import Integers
from dualmandate.audit.methods.magnitude_rules import SummedTables, counting_members
from dualmandate.audit.targets.targets import levels_in_words
from dualmandate.workload import Identity, Table, Workload


def summed_tables(workload: Workload, place: OnePlace, people: Integers) -> Iterator[SummedTables]:
    """The sums of each number, by place; those that are not by place, or of numbers below 0, are left out.

    `people` has shape (places, cells of one place).
    """
    axis = place.axis
    for name in dict.fromkeys(_summed(table) for table in workload.tables):
        if name is None or name not in place.domain.names:
            continue
        summed = place.domain.axis(name)
        values = place.domain.attributes[summed].grid_values
        own = [table for table in workload.tables if _summed(table) == name and _counts(table)]
        inside = [table for table in own if axis is None or isinstance(table.factors[axis], Identity)]
        if not inside or values.min() < 0:
            continue
        tables = tuple(
            Table(table.name, tuple(each for a, each in enumerate(table.factors) if a != axis)) for table in inside
        )
        shape = [1] * len(place.domain.shape)
        shape[summed] = -1
        numbers = np.broadcast_to(values.reshape(shape), place.domain.shape).reshape(-1)
        names = " and ".join(f"'{table.name}'" for table in inside)
        counting = counting_members(Workload(place.domain, tables), summed)
        yield SummedTables(names, counting, numbers, people, levels_in_words(place.domain))


def _summed(table: Table) -> str | None:
    return None if table.tabulation is None else table.tabulation.sum_of


def _counts(table: Table) -> bool:
    """Whether records are added up as they are: no weights of levels, and no number of them left out."""
    made = table.tabulation
    return made is not None and not made.weights and made.sum_of not in dict(made.where)
