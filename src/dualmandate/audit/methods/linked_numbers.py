"""Numbers of one place that add up across its tables, and which of them are hidden so that sums give nothing away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.methods.old_methods import suppress
from dualmandate.workload import Identity, Table, Workload

Bools = NDArray[np.bool_]
LARGEST_LINKED = 4096  # levels of an attribute that tables show differently, beyond which they are not linked
Part = tuple[Integers, Integers]  # rows of two factors that count the same levels


def linked_numbers(workload: Workload) -> Equations:
    """Sums that two tables have in common: Σ numbers of the one − Σ numbers of the other = 0, over all numbers.

    For every pair of tables the finest groups of levels that both can add up, attribute by attribute: a table by sex
    and age and one by age and race share every age. Tables whose numbers overlap (ranges, running totals) take no part.
    """
    starts = np.concatenate([[0], np.cumsum([table.query_count for table in workload.tables])])
    rows = [
        (starts[one] + left, starts[other] + right)
        for (one, first), (other, second) in combinations(enumerate(workload.tables), 2)
        for left, right in _common(first, second)
    ]
    sizes = [len(left) + len(right) for left, right in rows]
    cells = [np.concatenate(pair) for pair in rows]
    signs = [np.repeat([1, -1], [len(left), len(right)]) for left, right in rows]
    nothing = [np.array([], dtype=np.int64)]
    return Equations(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate(cells or nothing).astype(np.int64),
        np.concatenate(signs or nothing).astype(np.int64),
        int(starts[-1]),
    )


def suppressed_numbers(relations: Equations, values: Integers, *, least: int, share: float) -> tuple[Bools, Bools]:
    """Which numbers a threshold hides in every place, and which are hidden with them; shape (places, numbers) each.

    A number is sensitive from 1 to `least` − 1. Others are hidden beside it until it cannot be told within a share.
    """
    primary = (values > 0) & (values < least)
    hidden = primary.copy()
    if relations.rows:
        for place in np.flatnonzero(primary.any(axis=1)):
            hidden[place] = suppress(relations, values[place], primary[place], share=share)
    return primary, hidden


def _common(one: Table, other: Table) -> Iterator[Part]:
    parts = []
    for first, second in zip(one.factors, other.factors, strict=True):
        levels = np.arange(first.size)
        if isinstance(first, Identity) and isinstance(second, Identity):
            parts.append([(level, level) for level in levels.reshape(-1, 1)])
        elif first.size > LARGEST_LINKED:
            return
        else:
            parts.append(_common_groups(first.columns(levels), second.columns(levels)))
    for chosen in product(*parts):
        yield _numbers(one, [left for left, _ in chosen]), _numbers(other, [right for _, right in chosen])


def _numbers(table: Table, rows: list[Integers]) -> Integers:
    """Where numbers stand in a table, by their rows on each attribute."""
    return np.ravel_multi_index(np.ix_(*rows), table.shape).reshape(-1)


def _common_groups(one: Integers, other: Integers) -> list[Part]:
    """Smallest sets of rows of two factors that count the same levels once each; factors as rows × levels."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    if max(int(one.sum(axis=0).max()), int(other.sum(axis=0).max())) > 1 or min(int(one.min()), int(other.min())) < 0:
        return []
    touching = np.zeros((len(one) + len(other),) * 2, dtype=np.int64)
    touching[: len(one), len(one) :] = one @ other.T
    _, groups = connected_components(csr_array(touching), directed=False)
    found = []
    for group in range(groups.max() + 1):
        left = np.flatnonzero(groups[: len(one)] == group)
        right = np.flatnonzero(groups[len(one) :] == group)
        if len(left) and len(right) and np.array_equal(one[left].sum(axis=0), other[right].sum(axis=0)):
            found.append((left, right))
    return found
