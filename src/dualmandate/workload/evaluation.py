"""Answers of many tables from one histogram, and back, without a dense matrix.

Each table applies one factor an attribute, those that shrink the array first. Tables that begin with the same steps
share them: the steps form a tree, walked once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dualmandate.workload.factor import Factor, Identity, Numbers
from dualmandate.workload.table import Table

Step = tuple[int, Factor]


def apply_tables(tables: Sequence[Table], counts: Numbers) -> list[Numbers]:
    """For each table its integer product times the counts, weight left out; in the shape of the table."""
    found: dict[int, Numbers] = {}

    def walk(values: Numbers, pending: list[tuple[int, list[Step]]]) -> None:
        for number, steps in pending:
            if not steps:
                found[number] = values
        for (axis, factor), members in _next_steps(pending):
            walk(factor.apply(values, axis), members)

    walk(counts, [(number, _steps(table)) for number, table in enumerate(tables)])
    return [found[number] for number in range(len(tables))]


def apply_tables_transpose(tables: Sequence[Table], answers: Sequence[Numbers]) -> Numbers:
    """Σ over tables of the transposed integer product times that table's answers; in the shape of the domain."""

    def parts(pending: list[tuple[int, list[Step]]]) -> Iterator[Numbers]:
        for (axis, factor), members in _next_steps(pending):
            yield factor.apply_transpose(added(members), axis)
        for number, steps in pending:
            if not steps:
                yield answers[number]

    def added(pending: list[tuple[int, list[Step]]]) -> Numbers:
        total: Numbers | None = None
        owned = False
        for part in parts(pending):
            if total is None:
                total = part
            elif owned and np.can_cast(part.dtype, total.dtype):
                total += part
            else:
                total, owned = total + part, True
        assert total is not None
        return total

    return added([(number, _steps(table)) for number, table in enumerate(tables)])


def _steps(table: Table) -> list[Step]:
    steps = [(axis, factor) for axis, factor in enumerate(table.factors) if not isinstance(factor, Identity)]
    return sorted(steps, key=lambda step: (step[1].rows / step[1].size, step[0]))


def _next_steps(pending: list[tuple[int, list[Step]]]) -> list[tuple[Step, list[tuple[int, list[Step]]]]]:
    branches: dict[object, tuple[Step, list[tuple[int, list[Step]]]]] = {}
    for number, steps in pending:
        if steps:
            axis, factor = steps[0]
            branches.setdefault((axis, factor.key), (steps[0], []))[1].append((number, steps[1:]))
    return list(branches.values())
