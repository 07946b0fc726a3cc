"""One histogram of whole numbers for tables that do not nest: all tables are then tables of the same records.

Minimize Σ_q (Qx − e)_q²/variance_q over x ≥ 0, 0 where records cannot occur, with exact totals held: projected
gradients with momentum ([BT09], restarted where they turn back, [OC15]), matrix-free. Exact totals that nest fix the
number of records of every *atom*, the cells that the same totals count; the projection is then one shift an atom. Where
they cross, an integer program finds such numbers first.

Whole numbers: the running sum of x through each atom is rounded, so that each sum over consecutive cells is off by
less than 1; then single records are moved within their atom as long as the fit improves (`moving`). Exact totals hold
throughout. Whole numbers are not proved the nearest: that is an integer program over all cells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest
from dualmandate.publication.consistency.moving import Hits, improve
from dualmandate.publication.consistency.programming import SECONDS, integer_program
from dualmandate.workload import Workload

MOST_STEPS = 5000
NEAR = 1e-4  # standard errors: a step that changes no number by more is the last
ROUGH = 1e-2  # the same, where moves of single records follow and settle the rest
POWER_STEPS = 20
_MOST_SHIFTS = 100
_NEAR_TOTAL = 1e-10  # relative
ROOM = 1.1  # above the largest curvature that was found; steps that prove too long are halved besides

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Atoms:
    """Cells that the same exact totals count, with their number of records; cells are flat."""

    labels: NDArray[np.int64] = field(repr=False)  # of each cell, −1 where no record can be
    totals: NDArray[np.int64] | None = field(repr=False)  # None: the number of records is free

    def project(self, cells: Floats, shifts: Floats) -> Floats:
        """The nearest non-negative x with the atoms' totals, in place; `shifts` is where the search starts and ends."""
        if self.totals is None:
            np.maximum(cells, 0.0, out=cells)
            cells[self.labels < 0] = 0.0
        else:
            _project(cells, self.labels, self.totals, shifts)
        return cells


@dataclass(frozen=True, eq=False)
class _Fit:
    """Weighted least squares of a workload, matrix-free."""

    workload: Workload
    estimates: Floats
    weights: Floats

    def answers(self, cells: Floats) -> Floats:
        return np.asarray(self.workload.answers(cells), dtype=np.float64)

    def gradient(self, answers: Floats) -> Floats:
        return self.workload.transpose_answers(self.weights * (answers - self.estimates)).reshape(-1)

    def loss(self, answers: Floats) -> float:
        return 0.5 * float(np.dot(self.weights, (answers - self.estimates) ** 2))


def consistent_histogram(
    workload: Workload,
    estimates: Floats,
    variances: Floats,
    *,
    public: Workload | None = None,
    totals: NDArray[np.int64] | None = None,
    possible: NDArray[np.bool_] | None = None,
) -> NDArray[np.int64]:
    """Non-negative whole counts, in the shape of the domain, whose tables are near the estimates.

    `estimates` and `variances` have one number a query; a variance of 0 or ∞ leaves its query out. `totals` are the
    exact answers of `public`, whose tables each count disjoint groups; `possible` says where records can be.
    """
    if estimates.shape != (workload.query_count,) or variances.shape != estimates.shape:
        raise InvalidRequest(
            f"{estimates.size:,} estimates and {variances.size:,} variances for {workload.query_count:,} queries",
            why="each query has one of both",
            instead="stack the tables in their order",
        )
    usable = (variances > 0) & np.isfinite(variances)
    fit = _Fit(workload, estimates, np.where(usable, 1 / np.where(usable, variances, 1.0), 0.0))
    held = np.ones(workload.domain.size, dtype=np.bool_) if possible is None else possible.reshape(-1)
    atoms = _atoms(fit, held, public, totals)
    hits = Hits.of(workload)
    counts = _rounded(_nearest(fit, atoms, near=NEAR if hits is None else ROUGH), atoms)
    if hits is not None:
        residuals = np.asarray(workload.answers(counts), dtype=np.float64) - estimates
        improve(counts, atoms.labels, hits, residuals=residuals, weights=fit.weights, shape=workload.domain.shape)
    return counts.reshape(workload.domain.shape)


def _nearest(fit: _Fit, atoms: Atoms, *, near: float) -> Floats:
    """The continuous solution, from equal numbers in every cell of an atom, until steps are `near` standard errors."""
    shifts = np.zeros(1 if atoms.totals is None else atoms.totals.size)
    x = atoms.project(np.full(atoms.labels.size, _level(fit)), shifts)
    steepness, momentum = _steepness(fit, atoms.labels >= 0), 1.0
    answers = ahead_answers = fit.answers(x)
    ahead = x
    for _ in range(MOST_STEPS):
        gradient = fit.gradient(ahead_answers)
        while True:
            new = atoms.project(ahead - gradient / steepness, shifts)
            step, new_answers = new - ahead, fit.answers(new)
            promised = fit.loss(ahead_answers) + np.dot(gradient, step) + 0.5 * steepness * np.dot(step, step)
            if fit.loss(new_answers) <= promised * (1 + 1e-12) + 1e-12:
                break
            steepness *= 2
        change = new_answers - answers
        turned = np.dot(ahead - new, new - x) > 0  # the momentum points uphill: start it anew
        following = 1.0 if turned else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        carried = 0.0 if turned else (momentum - 1) / following
        ahead, ahead_answers = new + carried * (new - x), new_answers + carried * change
        x, answers, momentum = new, new_answers, following
        if np.max(np.abs(change) * np.sqrt(fit.weights)) <= near:
            break
    return x


def _level(fit: _Fit) -> float:
    """The number of records a cell with which equal cells come nearest to the estimates."""
    even = fit.answers(np.ones(fit.workload.domain.size))
    norm = float(np.dot(fit.weights, even**2))
    return max(float(np.dot(fit.weights, even * fit.estimates)) / norm, 0.0) if norm else 0.0


def _steepness(fit: _Fit, held: NDArray[np.bool_]) -> float:
    """The largest curvature QᵀWQ, by powers of it."""
    vector, norm = held.astype(np.float64), 1.0
    for _ in range(POWER_STEPS):
        vector /= max(float(np.linalg.norm(vector)), 1e-300)
        vector = fit.workload.transpose_answers(fit.weights * fit.answers(vector)).reshape(-1) * held
        norm = float(np.linalg.norm(vector))
    return ROOM * max(norm, 1e-12)


def _rounded(x: Floats, atoms: Atoms) -> NDArray[np.int64]:
    """Whole numbers with the atoms' totals: differences of the rounded running sums through each atom."""
    totals = np.array([round(float(x.sum()))]) if atoms.totals is None else atoms.totals
    held = np.flatnonzero(atoms.labels >= 0)
    order = held[np.argsort(atoms.labels[held], kind="stable")]
    sizes = np.bincount(atoms.labels[held], minlength=totals.size)
    lasts, running = np.cumsum(sizes) - 1, np.cumsum(x[order])
    before = np.repeat(np.append(0.0, running[lasts[:-1]]), sizes)
    whole = np.clip(np.floor(running - before + 0.5).astype(np.int64), 0, np.repeat(totals, sizes))
    whole[lasts] = totals
    steps = np.diff(whole, prepend=0)
    steps[lasts[:-1] + 1] = whole[lasts[:-1] + 1]
    counts = np.zeros(x.size, dtype=np.int64)
    counts[order] = steps
    return counts


def _atoms(fit: _Fit, held: NDArray[np.bool_], public: Workload | None, totals: NDArray[np.int64] | None) -> Atoms:
    """The atoms of the exact totals and the records in each."""
    if public is None or totals is None:
        return Atoms(np.where(held, 0, -1), None)
    parts = [_labels(public.only([table.name]))[held] for table in public.tables]
    labels = np.zeros(parts[0].size, dtype=np.int64)
    for part in parts:
        labels = np.unique(labels * (int(part.max()) + 1) + part, return_inverse=True)[1].reshape(-1)
    found = np.full(held.size, -1, dtype=np.int64)
    found[held] = labels
    ones = np.empty(int(labels.max()) + 1, dtype=np.int64)  # one cell of each atom
    ones[labels] = np.arange(labels.size)
    keys = [part[ones] for part in parts]
    firsts = np.cumsum([0, *(table.query_count for table in public.tables)])[:-1]
    members = [
        (np.flatnonzero(key == row), firsts[i] + row - 1)
        for i, key in enumerate(keys)
        for row in np.unique(key[key > 0])
    ]
    known = _peeled(members, totals, ones.size)
    if known is None:
        known = _crossing(fit, found, members, totals)
    return Atoms(found, known)


def _labels(table: Workload) -> NDArray[np.int64]:
    """From 1 on, the row of a table of disjoint groups that counts each cell; 0 for none."""
    if np.any(table.transpose_answers(np.ones(table.query_count, dtype=np.int64)) > 1):
        raise InvalidRequest(
            f"exact totals '{table.tables[0].name}' of groups that overlap",
            why="a total that is held counts each record at most once",
            instead="hold the totals of disjoint groups",
        )
    return table.transpose_answers(np.arange(1, table.query_count + 1, dtype=np.int64)).reshape(-1)


def _peeled(
    members: list[tuple[NDArray[np.int64], int]], totals: NDArray[np.int64], size: int
) -> NDArray[np.int64] | None:
    """The records of each atom, smallest groups first: each leaves one atom open at most. None where some cross."""
    known = np.full(size, -1, dtype=np.int64)
    for atoms, row in sorted(members, key=lambda each: each[0].size):
        still_open = atoms[known[atoms] < 0]
        left = int(totals[row]) - int(known[atoms][known[atoms] >= 0].sum())
        if still_open.size > 1 or left < 0 or (still_open.size == 0 and left):
            return None
        known[still_open] = left
    return known if np.all(known >= 0) else None


def _crossing(
    fit: _Fit, labels: NDArray[np.int64], members: list[tuple[NDArray[np.int64], int]], totals: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Whole numbers of records in atoms that satisfy totals which cross, near those of a fit without them."""
    from scipy.sparse import csr_array

    size = int(labels.max()) + 1
    free = _nearest(fit, Atoms(np.where(labels >= 0, 0, -1), None), near=ROUGH)
    targets = np.bincount(labels[labels >= 0], weights=free[labels >= 0], minlength=size).astype(np.float64)
    rows = np.concatenate([np.full(atoms.size, i) for i, (atoms, _) in enumerate(members)])
    columns = np.concatenate([atoms for atoms, _ in members])
    equations = csr_array((np.ones(rows.size), (rows, columns)), shape=(len(members), size))
    wanted = totals[np.array([row for _, row in members])]
    return integer_program(targets, equations, wanted, seconds=SECONDS).counts


def _project_loop(cells: Any, labels: Any, totals: Any, shifts: Any) -> None:
    """x = max(0, x + shift of its atom), the shifts by Newton's steps on each atom's sum, all atoms at once."""
    sums, rates, tops = np.empty(totals.size), np.empty(totals.size), np.full(totals.size, -np.inf)
    _reach(cells, labels, tops)
    for atom in range(totals.size):
        if tops[atom] + shifts[atom] <= 0 or totals[atom] == 0:
            shifts[atom] = totals[atom] - tops[atom]
    for _ in range(_MOST_SHIFTS):
        sums[:] = 0.0
        rates[:] = 0.0
        _add_up(cells, labels, shifts, sums, rates)
        done = True
        for atom in range(totals.size):
            if rates[atom] > 0:
                shifts[atom] -= (sums[atom] - totals[atom]) / rates[atom]
                done = done and abs(sums[atom] - totals[atom]) <= _NEAR_TOTAL * (1 + totals[atom])
        if done:
            break
    for i in range(cells.size):
        cells[i] = max(0.0, cells[i] + shifts[labels[i]]) if labels[i] >= 0 else 0.0


def _reach_loop(cells: Any, labels: Any, tops: Any) -> None:
    """The largest cell of each atom."""
    for i in range(cells.size):
        if labels[i] >= 0 and cells[i] > tops[labels[i]]:
            tops[labels[i]] = cells[i]


def _add_up_loop(cells: Any, labels: Any, shifts: Any, sums: Any, rates: Any) -> None:
    """Sums and numbers of the cells above 0 of each atom; runs of one atom are added by themselves, which is fast."""
    i = 0
    while i < cells.size:
        atom, total, rate = labels[i], 0.0, 0.0
        shift = shifts[atom] if atom >= 0 else 0.0
        while i < cells.size and labels[i] == atom:
            x = cells[i] + shift
            if x > 0:
                total += x
                rate += 1.0
            i += 1
        if atom >= 0:
            sums[atom] += total
            rates[atom] += rate


_reach = numba.njit(cache=True, nogil=True)(_reach_loop)
_add_up = numba.njit(cache=True, nogil=True)(_add_up_loop)
_project = numba.njit(cache=True, nogil=True)(_project_loop)
