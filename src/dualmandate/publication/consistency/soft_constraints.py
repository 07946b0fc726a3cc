"""Soft constraints: crossing tables pull where counts are chosen, and hold nothing.

For the children c of a node and the parts h of groups g, minimize Σ (x_ch − e_ch)²/s_ch + Σ (Σ_{h∈j} x_ch − m_cj)²/v_c
over x ≥ 0 with Σ_{h∈g} x_ch = R_cg and Σ_c x_ch = C_h: the second sum is over the groups j that a crossing table with
variances v counts, m its best estimates. At the optimum x_ch = max(0, e_ch + s_ch·(α_cg + β_h + γ_cj)) with
γ_cj = (m_cj − Σ_{h∈j} x_ch)/v_c; duals are found block by block in turn, each step solving its equation exactly.
At γ the second sum is linear, so that e + s·γ are estimates whose nearest table with these margins is x: whole numbers
near them are found by the same network flow as without crossing tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numba
import numpy as np

from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.transport import shift

MOST_SWEEPS = 300  # At most so many rounds over all duals are made.
TOLERANCE = 0.02  # Margins, and the equations of γ, may miss so many records.
_MOST_STEPS = 60  # At most so many Newton steps solve the equations of one γ.
_NEAR = 1e-12  # They solve it to this, relative.


@dataclass(frozen=True, eq=False)
class SoftConstraint:
    """What a crossing table says of some children: which of its groups counts each part, and the best estimates."""

    labels: Integers = field(repr=False)  # −1 for none; shape (parts,)
    wanted: Floats = field(repr=False)  # shape (children, groups)
    variances: Floats = field(repr=False)  # of each child's; shape (children,)


class _SoftTable(NamedTuple):
    """Children × parts to be found, in groups; tuples, because compiled code takes these."""

    targets: Floats  # e
    slopes: Floats  # s
    starts: Integers  # of each group's parts
    row_sums: Integers  # R of children and groups: nothing is placed where it is 0
    column_sums: Integers  # C of parts, or empty: the root has no parent


class _Soft(NamedTuple):
    """All soft constraints, side by side."""

    labels: Integers  # shape (constraints, parts)
    wanted: Floats  # m; shape (constraints, children, groups)
    variances: Floats  # v; shape (constraints, children)


class _Duals(NamedTuple):
    """What is changed until all equations are met."""

    alpha: Floats  # of children and groups
    beta: Floats  # of parts
    gammas: Floats  # of constraints, children and their groups
    pull: Floats  # Σ γ of each cell


def soft_constrained(
    targets: Floats,
    slopes: Floats,
    starts: Integers,
    margins: tuple[Integers, Integers | None],
    constraints: tuple[SoftConstraint, ...],
    *,
    tolerance: float = TOLERANCE,
    most_sweeps: int = MOST_SWEEPS,
) -> tuple[Floats, Floats]:
    """The nearest table in real numbers, and s·γ: what crossing tables add to the estimates; (children, parts) each.

    `slopes` are s, 0 where nothing can be, `starts` where the parts of each group start, `margins` R of children and
    groups and C of the parts; None leaves those free (the root has no parent). Where a margin is 0, nothing is placed
    and nothing added.
    """
    held = slopes.any(axis=0) if margins[1] is None else margins[1] > 0
    parts = np.flatnonzero(held)
    kept = np.append(0, np.cumsum(held))[starts].astype(np.int64)  # where each group starts among those with some
    columns = np.empty(0, dtype=np.int64) if margins[1] is None else margins[1][parts]
    table = _SoftTable(targets[:, parts], slopes[:, parts], kept, margins[0], columns)
    wanted = np.zeros((len(constraints), len(targets), max(each.wanted.shape[1] for each in constraints)))
    for place, each in zip(wanted, constraints, strict=True):
        place[:, : each.wanted.shape[1]] = each.wanted
    labels = np.stack([each.labels[parts] for each in constraints])
    soft = _Soft(labels, wanted, np.stack([each.variances for each in constraints]))
    shape = table.targets.shape
    duals = _Duals(np.zeros(margins[0].shape), np.zeros(parts.size), np.zeros(wanted.shape), np.zeros(shape))
    small = np.zeros(shape)
    _solve(table, soft, duals, tolerance, most_sweeps, small)
    found, added = np.zeros(targets.shape), np.zeros(targets.shape)
    found[:, parts] = small
    for own, gamma in zip(labels, list(duals.gammas), strict=True):
        added[:, parts] += slopes[:, parts] * np.where(own >= 0, np.take(gamma, own, axis=1), 0.0)
    return found, added


@numba.njit(cache=True, nogil=True)
def _solve(table: Any, soft: Any, duals: Any, tolerance: Any, most_sweeps: Any, found: Any) -> None:
    """Rows, columns and soft constraints in turn, until all are met; then the table itself."""
    for _ in range(most_sweeps):
        missed = _meet_rows(table, duals)
        _meet_columns(table, duals)
        missed = max(missed, _meet_softly(table, soft, duals))
        if missed <= tolerance:
            break
    for c in range(table.targets.shape[0]):
        for g in range(table.starts.size - 1):
            for h in range(table.starts[g], table.starts[g + 1] if table.row_sums[c, g] > 0 else table.starts[g]):
                dual = duals.alpha[c, g] + duals.beta[h] + duals.pull[c, h]
                found[c, h] = max(0.0, table.targets[c, h] + table.slopes[c, h] * dual)


@numba.njit(cache=True, nogil=True)
def _meet_rows(table: Any, duals: Any) -> Any:
    """α of each child and group, exactly; how far sums were off before."""
    missed = 0.0
    for c in range(table.targets.shape[0]):
        for g in range(table.starts.size - 1):
            first, last = table.starts[g], table.starts[g + 1]
            total = table.row_sums[c, g]
            if total == 0 or first == last:
                continue
            slopes = table.slopes[c, first:last]
            row = table.targets[c, first:last] + slopes * (duals.beta[first:last] + duals.pull[c, first:last])
            sum_ = np.maximum(row + slopes * duals.alpha[c, g], 0.0).sum()
            missed = max(missed, abs(sum_ - total))
            duals.alpha[c, g] = shift(row, slopes, total, duals.alpha[c, g])
    return missed


@numba.njit(cache=True, nogil=True)
def _meet_columns(table: Any, duals: Any) -> None:
    """β of each part, exactly, where the parent says what children add up to."""
    if not table.column_sums.size:
        return
    children = table.targets.shape[0]
    column, rates = np.empty(children), np.empty(children)
    for g in range(table.starts.size - 1):
        for h in range(table.starts[g], table.starts[g + 1]):
            some = 0
            for c in range(children):
                if table.row_sums[c, g] > 0:
                    rates[some] = table.slopes[c, h]
                    dual = duals.alpha[c, g] + duals.pull[c, h]
                    column[some] = table.targets[c, h] + table.slopes[c, h] * dual
                    some += 1
            duals.beta[h] = shift(column[:some], rates[:some], table.column_sums[h], duals.beta[h])


@numba.njit(cache=True, nogil=True)
def _meet_softly(table: Any, soft: Any, duals: Any) -> Any:
    """γ of each child and constraint; how far their equations were off before."""
    missed = 0.0
    children, parts = table.targets.shape
    for c in range(children):
        base = np.full(parts, -np.inf)
        for g in range(table.starts.size - 1):
            for h in range(table.starts[g], table.starts[g + 1] if table.row_sums[c, g] > 0 else table.starts[g]):
                base[h] = table.targets[c, h] + table.slopes[c, h] * (duals.alpha[c, g] + duals.beta[h])
        for t in range(soft.labels.shape[0]):
            said = (soft.wanted[t, c], soft.variances[t, c])
            off = _meet_constraint(base, table.slopes[c], soft.labels[t], said, duals.gammas[t, c], duals.pull[c])
            missed = max(missed, off)
    return missed


@numba.njit(cache=True, nogil=True)
def _meet_constraint(base: Any, slopes: Any, labels: Any, said: Any, gamma: Any, pull: Any) -> Any:
    """γ of one child and table: Σ max(0, v + s·γ) + variance·γ = m for each group; how far γ was off before.

    The left side is convex, increasing and in pieces, so that Newton's steps end there.
    """
    wanted, variance = said
    before = gamma.copy()
    sums, rates = np.empty(gamma.size), np.empty(gamma.size)
    off = 0.0
    for step in range(_MOST_STEPS):
        sums[:] = variance * gamma
        rates[:] = variance
        for h in range(labels.size):
            j = labels[h]
            if j >= 0 and base[h] > -np.inf:
                x = base[h] + slopes[h] * (pull[h] - before[j] + gamma[j])
                if x > 0:
                    sums[j] += x
                    rates[j] += slopes[h]
        far = 0.0
        for j in range(gamma.size):
            gap = wanted[j] - sums[j]
            if step == 0:
                off = max(off, abs(gap))
            far = max(far, abs(gap) - _NEAR * (1.0 + abs(wanted[j])))
            gamma[j] += gap / rates[j]
        if far <= 0:
            break
    for h in range(labels.size):
        if labels[h] >= 0:
            pull[h] += gamma[labels[h]] - before[labels[h]]
    return off
