"""Crossing tables in the choice of counts: they pull, and hold nothing.

For the children c of a node and the parts h of groups g, minimize Σ (x_ch − e_ch)²/s_ch + Σ (Σ_{h∈j} x_ch − m_cj)²/v_c
over x ≥ 0 with Σ_{h∈g} x_ch = R_cg and Σ_c x_ch = C_h: the second sum is over the groups j that a crossing table with
variances v counts, m its best estimates. At the optimum x_ch = max(0, e_ch + s_ch·(α_cg + β_h + γ_cj)) with
γ_cj = (m_cj − Σ_{h∈j} x_ch)/v_c; duals are found block by block in turn, each step solving its equation exactly.
At γ the second sum is linear, so that e + s·γ are estimates whose nearest table with these margins is x: whole numbers
near them are found by the same network flow as without crossing tables.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.publication.consistency.transport import shift

MOST_SWEEPS = 300
TOLERANCE = 0.02  # of margins, and of the equations of γ
_MOST_STEPS = 60
_NEAR = 1e-12  # of an equation of γ, relative

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pull:
    """What a crossing table says of some children: which of its groups counts each part, and the best estimates."""

    labels: Indices = field(repr=False)  # −1 for none; shape (parts,)
    wanted: Floats = field(repr=False)  # shape (children, groups)
    variances: Floats = field(repr=False)  # of each child's; shape (children,)


def pulled(
    targets: Floats,
    slopes: Floats,
    starts: Indices,
    margins: tuple[NDArray[np.int64], NDArray[np.int64] | None],
    pulls: tuple[Pull, ...],
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
    labels = np.stack([each.labels[parts] for each in pulls])
    wanted = np.zeros((len(pulls), len(targets), max(each.wanted.shape[1] for each in pulls)))
    for place, each in zip(wanted, pulls, strict=True):
        place[:, : each.wanted.shape[1]] = each.wanted
    columns = np.empty(0, dtype=np.int64) if margins[1] is None else margins[1][parts]
    gammas = np.zeros(wanted.shape)
    small = np.zeros((len(targets), parts.size))
    spreads = np.stack([each.variances for each in pulls])
    limits = tolerance, most_sweeps
    given = targets[:, parts], slopes[:, parts]
    _pull(given, kept, (margins[0], columns), (labels, wanted, spreads), gammas, small, limits)
    found, added = np.zeros(targets.shape), np.zeros(targets.shape)
    found[:, parts] = small
    for own, gamma in zip(labels, list(gammas), strict=True):
        added[:, parts] += slopes[:, parts] * np.where(own >= 0, np.take(gamma, own, axis=1), 0.0)
    return found, added


def _pull_loop(given: Any, starts: Any, margins: Any, softly: Any, gammas: Any, found: Any, limits: Any) -> None:
    """Rows, columns and crossing groups in turn, until all are met."""
    targets, slopes = given
    rows, columns = margins
    labels, wanted, spreads = softly
    children, parts = targets.shape
    alpha, beta = np.zeros(rows.shape), np.zeros(parts)
    pull = np.zeros((children, parts))  # Σ γ of each cell
    column, rates = np.empty(children), np.empty(children)
    for _ in range(limits[1]):
        missed = 0.0
        for c in range(children):
            for g in range(starts.size - 1):
                first, last = starts[g], starts[g + 1]
                if rows[c, g] == 0 or first == last:
                    continue
                row = targets[c, first:last] + slopes[c, first:last] * (beta[first:last] + pull[c, first:last])
                sum_ = np.maximum(row + slopes[c, first:last] * alpha[c, g], 0.0).sum()
                missed = max(missed, abs(sum_ - rows[c, g]))
                alpha[c, g] = shift(row, slopes[c, first:last], rows[c, g], alpha[c, g])
        for g in range(starts.size - 1):
            for h in range(starts[g], starts[g + 1] if columns.size else starts[g]):
                some = 0
                for c in range(children):
                    if rows[c, g] > 0:
                        rates[some] = slopes[c, h]
                        column[some] = targets[c, h] + slopes[c, h] * (alpha[c, g] + pull[c, h])
                        some += 1
                beta[h] = shift(column[:some], rates[:some], columns[h], beta[h])
        for c in range(children):
            base = np.full(parts, -np.inf)
            for g in range(starts.size - 1):
                for h in range(starts[g], starts[g + 1] if rows[c, g] > 0 else starts[g]):
                    base[h] = targets[c, h] + slopes[c, h] * (alpha[c, g] + beta[h])
            for t in range(labels.shape[0]):
                off = _soft(base, slopes[c], labels[t], (wanted[t, c], spreads[t, c]), gammas[t, c], pull[c])
                missed = max(missed, off)
        if missed <= limits[0]:
            break
    for c in range(children):
        for g in range(starts.size - 1):
            for h in range(starts[g], starts[g + 1] if rows[c, g] > 0 else starts[g]):
                found[c, h] = max(0.0, targets[c, h] + slopes[c, h] * (alpha[c, g] + beta[h] + pull[c, h]))


def _soft_loop(base: Any, slopes: Any, labels: Any, wanted: Any, gamma: Any, pull: Any) -> Any:
    """γ of one child and table: Σ max(0, v + s·γ) + variance·γ = m for each group; how far γ was off before.

    The left side is convex, increasing and in pieces, so that Newton's steps end there.
    """
    before = gamma.copy()
    sums, rates = np.empty(gamma.size), np.empty(gamma.size)
    off = 0.0
    for step in range(_MOST_STEPS):
        sums[:] = wanted[1] * gamma
        rates[:] = wanted[1]
        for h in range(labels.size):
            j = labels[h]
            if j >= 0 and base[h] > -np.inf:
                x = base[h] + slopes[h] * (pull[h] - before[j] + gamma[j])
                if x > 0:
                    sums[j] += x
                    rates[j] += slopes[h]
        far = 0.0
        for j in range(gamma.size):
            gap = wanted[0][j] - sums[j]
            if step == 0:
                off = max(off, abs(gap))
            far = max(far, abs(gap) - _NEAR * (1.0 + abs(wanted[0][j])))
            gamma[j] += gap / rates[j]
        if far <= 0:
            break
    for h in range(labels.size):
        if labels[h] >= 0:
            pull[h] += gamma[labels[h]] - before[labels[h]]
    return off


_soft = numba.njit(cache=True, nogil=True)(_soft_loop)
_pull = numba.njit(cache=True, nogil=True)(_pull_loop)
