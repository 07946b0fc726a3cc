"""Three ways from establishments to national accounts: publish detail and add it up, publish what is used, suppress.

The errors that the reader of an account meets are the noise of the numbers that were added up, and what clipping leaves
out of them: noise grows with the square root of how many cells are added up, and what is left out as their number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.disclosure_control.methods import PROTECTED, suppress, told_by_second
from dualmandate.audit.suppression.cells import LinkedTables, additive_relations, audit_suppression
from dualmandate.errors import InvalidValue
from dualmandate.gallery.national_accounts.establishments import (
    COUNTIES_A_STATE,
    INDUSTRIES_A_SECTOR,
    PRODUCTS,
    counties,
    establishments,
    industries,
)
from dualmandate.planning.plan import Plan

SHAPE = len(industries()), len(counties()), len(PRODUCTS)
DETAIL = "payroll by industry, county and product"
# Of each account how many industries, counties and products one of its numbers adds up.
ACCOUNTS = {
    "payroll by sector": (INDUSTRIES_A_SECTOR, SHAPE[1], SHAPE[2]),
    "payroll by sector and state": (INDUSTRIES_A_SECTOR, COUNTIES_A_STATE, SHAPE[2]),
    "payroll by product": (SHAPE[0], SHAPE[1], 1),
}
CLOSE = 0.1  # The p % rule: nobody may be told within this share by the second largest.


@dataclass(frozen=True)
class AccountError:
    """How far the numbers of a table are typically off, thousand USD: noise, what clipping leaves out, and both."""

    noise: float
    left_out: float

    @property
    def both(self) -> float:
        """The root of the mean squared error."""
        return math.hypot(self.noise, self.left_out)


def errors_of_accounts(plan: Plan, epsilon: float) -> dict[str, AccountError]:
    """The errors of every table at a loss: of published ones by their noise, else by that of the cells they add up.

    What is left out is that of the invented establishments; `plan` must be one of the worked program.
    """
    squared = plan.technology.frontier.table_errors(epsilon)
    (curve,) = plan.extensions.clipping
    found = {}
    for name, parts in {**ACCOUNTS, DETAIL: (1, 1, 1)}.items():
        adds_up = math.prod(parts)
        if name in squared:
            noise = squared[name] / (math.prod(SHAPE) / adds_up)
        elif DETAIL in squared:
            noise = adds_up * squared[DETAIL] / math.prod(SHAPE)
        else:
            continue  # who needs cells gets nothing
        found[name] = AccountError(math.sqrt(noise), _left_out(float(curve.bound), parts))
    return found


def dominates(one: Mapping[str, AccountError], other: Mapping[str, AccountError], used: Mapping[str, object]) -> bool:
    """Whether one way is at least as good for the readers of every used table, and better for some (Pareto)."""
    missing = sorted(set(used) - set(one) - set(other))
    if missing:
        raise InvalidValue(
            f"neither way publishes '{missing[0]}'",
            why="its readers have nothing to compare",
            instead="compare tables that can be had",
        )
    worst = AccountError(math.inf, 0.0)
    pairs = [(one.get(name, worst).both, other.get(name, worst).both) for name in used]
    return all(own <= its for own, its in pairs) and any(own < its for own, its in pairs)


def _left_out(bound: float, parts: tuple[int, int, int]) -> float:
    """The root mean square of what clipping at a bound leaves out of the numbers of a table, thousand USD."""
    rows, payroll = establishments()
    lost = np.zeros(SHAPE)
    np.add.at(lost, tuple(rows), np.maximum(payroll - bound, 0.0))
    groups = [size for total, part in zip(SHAPE, parts, strict=True) for size in (total // part, part)]
    sums = lost.reshape(groups).sum(axis=(1, 3, 5))
    return float(np.sqrt(np.square(sums).mean()))


@dataclass(frozen=True)
class SuppressionOutcome:
    """What the status quo hides of the detail, and how much of that is told all the same."""

    cells: int  # of industry, county and product
    sensitive: int  # by the p % rule
    told_alone: int  # of these, where they alone are hidden
    hidden: int  # numbers, with complements and totals
    share_of_payroll: float  # of cells that are hidden
    told: int  # of the sensitive ones, with complements
    exact: int  # of all hidden numbers, which follow from the shown ones


def suppressed() -> SuppressionOutcome:
    """The p % rule with complementary suppression on the table of industry, county and product and all its totals."""
    rows, payroll = establishments()
    values = np.zeros(tuple(size + 1 for size in SHAPE), dtype=np.int64)
    sensitive = np.zeros(values.shape, dtype=np.bool_)
    cell = np.ravel_multi_index(tuple(rows), SHAPE)
    order = np.lexsort((-payroll, cell))
    starts = np.searchsorted(cell[order], np.arange(math.prod(SHAPE) + 1))
    for number, place in enumerate(np.ndindex(SHAPE)):
        own = payroll[order[starts[number] : starts[number + 1]]].astype(np.float64)
        values[place], sensitive[place] = own.sum(), told_by_second(own, share=CLOSE)
    inner = tuple(slice(0, -1) for _ in SHAPE)
    for axis in range(len(SHAPE)):
        parts = [slice(None)] * len(SHAPE)
        total: list[slice | int] = [slice(None)] * len(SHAPE)
        parts[axis], total[axis] = slice(0, -1), -1
        values[tuple(total)] = values[tuple(parts)].sum(axis=axis)
    relations, flat, primary = additive_relations(values.shape), values.reshape(-1), sensitive.reshape(-1)
    hidden = suppress(relations, flat, primary, share=PROTECTED)
    alone, with_others = (
        audit_suppression(LinkedTables(relations, flat, each)).unprotected(flat, share=PROTECTED)
        for each in (primary, hidden)
    )
    bounds = audit_suppression(LinkedTables(relations, flat, hidden))
    at = np.flatnonzero(primary)
    shown = hidden.reshape(values.shape)[inner]
    return SuppressionOutcome(
        math.prod(SHAPE),
        int(primary.sum()),
        int(np.isin(at, alone).sum()),
        int(hidden.sum()),
        float(values[inner][shown].sum() / values[-1, -1, -1]),
        int(np.isin(at, with_others).sum()),
        int((bounds.least == bounds.largest).sum()),
    )


def totals_within_bound(bound: float) -> NDArray[np.float64]:
    """The share of payroll that counts up to a bound, by sector."""
    rows, payroll = establishments()
    sector = rows[0] // INDUSTRIES_A_SECTOR
    counted = np.bincount(sector, np.minimum(payroll, bound))
    return np.asarray(counted / np.bincount(sector, payroll))
