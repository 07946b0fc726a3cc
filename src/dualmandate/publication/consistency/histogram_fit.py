"""One histogram of whole numbers for tables that do not nest: all tables are then tables of the same records.

Minimize Σ_q (Qx − e)_q²/variance_q over x ≥ 0, 0 where records cannot occur, with exact totals held: projected
gradients with momentum ([BT09], restarted where they turn back, [OC15]), matrix-free, each cell with a step of its own,
as long as the sum of its row of QᵀWQ allows. Exact totals that nest fix the number of records of every *atom*, the
cells that the same totals count; the projection is then one shift an atom. Where they cross, an integer program finds
such numbers first.

Whole numbers: the running sum of x through each atom is rounded, so that each sum over consecutive cells is off by
less than 1; then local search moves single records within their atom, along one attribute at a time, until no move
improves the fit. It needs tables that count a record at most once: then a move changes at most two numbers of each.
Exact totals hold throughout. Whole numbers are not proved the nearest: that is an integer program over all cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba
import numpy as np

from dualmandate.errors import InvalidRequest
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.publication.consistency.transport import SECONDS, integer_program
from dualmandate.workload import Table, Workload

MOST_STEPS = 5000  # At most so many gradient steps are taken.
FIRST_LOOK = 256  # After so many steps, and each time that there are a quarter more, it is asked if they are enough.
NEAR = 1e-4  # They are where the last of them changed no number by more than this, in standard errors.
ROUGH = 1e-2  # The same, where moves of single records follow and settle the rest.
PROBE = 2019  # where the uneven vector is drawn from
MOST_HALVINGS = 60  # Steps are halved so often in all; then they are lost in rounding, and what was found stays.
DECIDED = 1e-24  # A variance that is less, of the largest, is what rounding left of one that is 0.
LEAST_STEEP = 1e-9  # Cells are taken to be at least so steep, of the steepest.
_MOST_SHIFTS = 100  # At most so many Newton steps find the shifts of atoms.
_NEAR_TOTAL = 1e-10  # Totals of atoms are met to this, relative.


@dataclass(frozen=True, eq=False)
class Atoms:
    """Cells that the same exact totals count, with their number of records; cells are flat."""

    labels: Integers = field(repr=False)  # of each cell, −1 where no record can be
    totals: Integers | None = field(repr=False)  # None: the number of records is free

    def project(self, cells: Floats, shifts: Floats, ease: Floats) -> Floats:
        """The nearest non-negative x with the atoms' totals, in place; `shifts` is where the search starts and ends.

        Near by Σ (change of a cell)²/ease, so that a shift moves a cell as far as it has `ease`.
        """
        if self.totals is None:
            np.maximum(cells, 0.0, out=cells)
            cells[self.labels < 0] = 0.0
        else:
            _project(cells, self.labels, self.totals, shifts, ease)
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


@dataclass(frozen=True, eq=False)
class FittedHistogram:
    """Whole counts in the shape of the domain, and whether the fit that they were rounded from came to its end."""

    counts: Integers
    finished: bool
    work: int  # how many cells were looked at in all, by steps of the gradient and by moves of single records


def consistent_histogram(
    workload: Workload,
    estimates: Floats,
    variances: Floats,
    *,
    public: Workload | None = None,
    totals: Integers | None = None,
    possible: Booleans | None = None,
) -> Integers:
    """The counts of a fitted histogram alone."""
    return fitted_histogram(workload, estimates, variances, public=public, totals=totals, possible=possible).counts


def fitted_histogram(
    workload: Workload,
    estimates: Floats,
    variances: Floats,
    *,
    public: Workload | None = None,
    totals: Integers | None = None,
    possible: Booleans | None = None,
) -> FittedHistogram:
    """Non-negative whole counts, in the shape of the domain, whose tables are near the estimates.

    `estimates` and `variances` have one number a query; a variance of 0 or ∞ leaves its query out: exact totals hold
    what they decide, and a weight of 10³⁰ would hold nothing but the last digit of a float. `totals` are the
    exact answers of `public`, whose tables each count disjoint groups; `possible` says where records can be.
    """
    if estimates.shape != (workload.query_count,) or variances.shape != estimates.shape:
        raise InvalidRequest(
            f"{estimates.size:,} estimates and {variances.size:,} variances for {workload.query_count:,} queries",
            why="each query has one of both",
            instead="stack the tables in their order",
        )
    finite = np.isfinite(variances)
    usable = finite & (variances > DECIDED * np.max(variances, where=finite, initial=0.0))
    fit = _Fit(workload, estimates, np.where(usable, 1 / np.where(usable, variances, 1.0), 0.0))
    held = np.ones(workload.domain.size, dtype=np.bool_) if possible is None else possible.reshape(-1)
    atoms = _atoms(fit, held, public, totals)
    hits = Hits.of(workload)
    nearest, finished, steps = _nearest(fit, atoms, near=NEAR if hits is None else ROUGH)
    counts, work = _rounded(nearest, atoms), steps * workload.domain.size
    if hits is not None:
        near_by = sum(min(size, 2 * REACH + 1) for size in workload.domain.shape)
        occupied = int(np.count_nonzero(counts))
        residuals = np.asarray(workload.answers(counts), dtype=np.float64) - estimates
        layout = workload.domain.shape
        sweeps = improve(counts, atoms.labels, hits, residuals=residuals, weights=fit.weights, shape=layout)
        work += sweeps * occupied * near_by
    return FittedHistogram(counts.reshape(workload.domain.shape), finished, work)


def _nearest(fit: _Fit, atoms: Atoms, *, near: float) -> tuple[Floats, bool, int]:
    """The continuous solution, from equal numbers in every cell of an atom, until it is `near`, in standard errors.

    It is where all estimates are met, or where many steps together changed nothing. One step is no measure of how much
    is left: where amounts are added up, counts come near by many small ones. The second says whether that was reached,
    and not only the largest number of steps; the third, how many were taken.
    """
    shifts = np.zeros(1 if atoms.totals is None else atoms.totals.size)
    ease = _ease(fit)
    x = atoms.project(np.full(atoms.labels.size, _level(fit)), shifts, ease)
    momentum, halvings = 1.0, 0
    answers = ahead_answers = fit.answers(x)
    ahead, before, look = x, answers, FIRST_LOOK
    roots = np.sqrt(fit.weights)
    for taken in range(1, MOST_STEPS + 1):
        gradient = fit.gradient(ahead_answers)
        while True:
            new = atoms.project(ahead - gradient * ease, shifts, ease)
            step, new_answers = new - ahead, fit.answers(new)
            promised = fit.loss(ahead_answers) + np.dot(gradient, step) + 0.5 * np.dot(step, step / ease)
            if fit.loss(new_answers) <= promised * (1 + 1e-12) + 1e-12:
                break
            if halvings == MOST_HALVINGS:
                return x, False, taken
            ease, halvings = ease / 2, halvings + 1
        change = new_answers - answers
        turned = np.dot((ahead - new) / ease, new - x) > 0  # the momentum points uphill: start it anew
        following = 1.0 if turned else (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        carried = 0.0 if turned else (momentum - 1) / following
        ahead, ahead_answers = new + carried * (new - x), new_answers + carried * change
        x, answers, momentum = new, new_answers, following
        if np.max(np.abs(answers - fit.estimates) * roots) <= near:
            return x, True, taken
        if taken == look:
            if np.max(np.abs(answers - before) * roots) <= near:
                return x, True, taken
            before, look = answers, look + look // 4
    return x, False, MOST_STEPS


def _level(fit: _Fit) -> float:
    """The number of records a cell with which equal cells come nearest to the estimates."""
    even = fit.answers(np.ones(fit.workload.domain.size))
    norm = float(np.dot(fit.weights, even**2))
    return max(float(np.dot(fit.weights, even * fit.estimates)) / norm, 0.0) if norm else 0.0


def _ease(fit: _Fit) -> Floats:
    """How far a cell moves against its slope: one over the sum of its row of QᵀWQ, which no diagonal need exceed.

    So counts are not held back by a sum of amounts, which is far steeper. Where rows have numbers below 0 too, the
    sums may be too small, and steps that prove too long are halved.
    """
    rows = fit.workload.transpose_answers(fit.weights * fit.answers(np.ones(fit.workload.domain.size))).reshape(-1)
    # Amounts that cancel in every sum, such as −5, 0 and 5, leave nothing of it: uneven numbers show how steep it is.
    uneven = np.random.default_rng(PROBE).uniform(-1.0, 1.0, fit.workload.domain.size)
    seen = fit.workload.transpose_answers(fit.weights * fit.answers(uneven)).reshape(-1)
    steepness, steepest = np.abs(rows), float(max(np.abs(rows).max(initial=0.0), np.abs(seen).max(initial=0.0)))
    return np.asarray(1 / np.maximum(steepness, max(LEAST_STEEP * steepest, 1e-300)))


def _rounded(x: Floats, atoms: Atoms) -> Integers:
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


def _atoms(fit: _Fit, held: Booleans, public: Workload | None, totals: Integers | None) -> Atoms:
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


def _labels(table: Workload) -> Integers:
    """From 1 on, the row of a table of disjoint groups that counts each cell; 0 for none."""
    if np.any(table.transpose_answers(np.ones(table.query_count, dtype=np.int64)) > 1):
        raise InvalidRequest(
            f"exact totals '{table.tables[0].name}' of groups that overlap",
            why="a total that is held counts each record at most once",
            instead="hold the totals of disjoint groups",
        )
    return table.transpose_answers(np.arange(1, table.query_count + 1, dtype=np.int64)).reshape(-1)


def _peeled(members: list[tuple[Integers, int]], totals: Integers, size: int) -> Integers | None:
    """The records of each atom, smallest groups first: each leaves one atom open at most. None where some cross."""
    known = np.full(size, -1, dtype=np.int64)
    for atoms, row in sorted(members, key=lambda each: each[0].size):
        still_open = atoms[known[atoms] < 0]
        left = int(totals[row]) - int(known[atoms][known[atoms] >= 0].sum())
        if still_open.size > 1 or left < 0 or (still_open.size == 0 and left):
            return None
        known[still_open] = left
    return known if np.all(known >= 0) else None


def _crossing(fit: _Fit, labels: Integers, members: list[tuple[Integers, int]], totals: Integers) -> Integers:
    """Whole numbers of records in atoms that satisfy totals which cross, near those of a fit without them."""
    from scipy.sparse import csr_array

    size = int(labels.max()) + 1
    free, *_ = _nearest(fit, Atoms(np.where(labels >= 0, 0, -1), None), near=ROUGH)
    targets = np.bincount(labels[labels >= 0], weights=free[labels >= 0], minlength=size).astype(np.float64)
    rows = np.concatenate([np.full(atoms.size, i) for i, (atoms, _) in enumerate(members)])
    columns = np.concatenate([atoms for atoms, _ in members])
    equations = csr_array((np.ones(rows.size), (rows, columns)), shape=(len(members), size))
    wanted = totals[np.array([row for _, row in members])]
    return integer_program(targets, equations, wanted, seconds=SECONDS).counts


@numba.njit(cache=True, nogil=True)
def _project(cells: Any, labels: Any, totals: Any, shifts: Any, ease: Any) -> None:
    """x = max(0, x + ease·shift of its atom), the shifts by Newton's steps on each atom's sum, all atoms at once."""
    sums, rates, tops = np.empty(totals.size), np.empty(totals.size), np.full(totals.size, -np.inf)
    first = np.ones(totals.size)
    _reach(cells, labels, ease, tops, first)
    for atom in range(totals.size):
        if tops[atom] + shifts[atom] <= 0 or totals[atom] == 0:
            shifts[atom] = totals[atom] / first[atom] - tops[atom]
    for _ in range(_MOST_SHIFTS):
        sums[:] = 0.0
        rates[:] = 0.0
        _add_up(cells, labels, shifts, ease, sums, rates)
        done = True
        for atom in range(totals.size):
            if rates[atom] > 0:
                shifts[atom] -= (sums[atom] - totals[atom]) / rates[atom]
                done = done and abs(sums[atom] - totals[atom]) <= _NEAR_TOTAL * (1 + totals[atom])
        if done:
            break
    for i in range(cells.size):
        cells[i] = max(0.0, cells[i] + ease[i] * shifts[labels[i]]) if labels[i] >= 0 else 0.0


@numba.njit(cache=True, nogil=True)
def _reach(cells: Any, labels: Any, ease: Any, tops: Any, first: Any) -> None:
    """The shift, with the other sign, at which the first cell of each atom is above 0, and the ease of that cell."""
    for i in range(cells.size):
        if labels[i] >= 0 and cells[i] / ease[i] > tops[labels[i]]:
            tops[labels[i]], first[labels[i]] = cells[i] / ease[i], ease[i]


@numba.njit(cache=True, nogil=True)
def _add_up(cells: Any, labels: Any, shifts: Any, ease: Any, sums: Any, rates: Any) -> None:
    """Sums and ease of the cells above 0 of each atom; runs of one atom are added by themselves, which is fast."""
    i = 0
    while i < cells.size:
        atom, total, rate = labels[i], 0.0, 0.0
        shift = shifts[atom] if atom >= 0 else 0.0
        while i < cells.size and labels[i] == atom:
            x = cells[i] + ease[i] * shift
            if x > 0:
                total += x
                rate += ease[i]
            i += 1
        if atom >= 0:
            sums[atom] += total
            rates[atom] += rate


LEAST_GAIN = (
    1e-9  # A move must gain so much, relative to the weights: less, and rounding would let moves go in circles.
)
MOST_SWEEPS = 30  # At most so many times every record is offered a move.
REACH = 32  # A record is offered so many levels to either side: all of a short attribute, the near ones of a long one.


@dataclass(frozen=True, eq=False)
class Hits:
    """Which number of each table a record adds to: Σ over attributes of `rows`, and by how much: Π of `scales`.

    Both are stacked over the attributes' levels; a negative row says that the table does not count that level.
    """

    starts: Integers = field(repr=False)  # of each attribute's levels, and at last their number
    rows: Integers = field(repr=False)  # shape (tables, levels of all attributes)
    scales: Floats = field(repr=False)  # the same shape
    matters: Booleans = field(repr=False)  # whether a table tells levels of an attribute apart

    @classmethod
    def of(cls, workload: Workload) -> Hits | None:
        """The hits of a workload; None where some table counts some record more than once."""
        if any(np.any(factor.counts > 1) for table in workload.tables for factor in table.factors):
            return None
        starts = np.concatenate([[0], np.cumsum(workload.domain.shape)]).astype(np.int64)
        first = np.cumsum([0, *(table.query_count for table in workload.tables)])
        found = [_table_hits(table, int(start)) for table, start in zip(workload.tables, first[:-1], strict=True)]
        rows, scales = np.stack([each[0] for each in found]), np.stack([each[1] for each in found])
        matters = [
            np.any((rows[:, a:b] != rows[:, a : a + 1]) | (scales[:, a:b] != scales[:, a : a + 1]), axis=1)
            for a, b in pairwise(starts)
        ]
        return cls(starts, rows, scales, np.stack(matters, axis=1))


def _table_hits(table: Table, first: int) -> tuple[Integers, Floats]:
    strides = np.cumprod([1, *table.shape[:0:-1]])[::-1]
    rows, scales = [], []
    for axis, (factor, stride) in enumerate(zip(table.factors, strides, strict=True)):
        scale = np.asarray(factor.apply_transpose(np.ones(factor.rows), 0))
        place = np.asarray(factor.apply_transpose(np.arange(factor.rows, dtype=np.float64), 0))
        place = np.rint(place / np.where(scale == 0, 1.0, scale)).astype(np.int64)
        rows.append(np.where(scale == 0, -(2**62), place * stride + (first if axis == 0 else 0)))
        scales.append(scale * (float(table.weight) if axis == 0 else 1.0))
    return np.concatenate(rows).astype(np.int64), np.concatenate(scales)


def improve(
    counts: Integers, atoms: Integers, hits: Hits, *, residuals: Floats, weights: Floats, shape: Sequence[int]
) -> int:
    """Move records within their atom while Σ weight·residual² falls; how often all were offered a move.

    `counts` and `residuals` are changed in place.

    `atoms` are −1 for cells that cannot occur; `counts` and `atoms` are flat, of a domain of this `shape`.
    """
    sizes = np.array(shape, dtype=np.int64)
    strides = np.cumprod(np.append(1, sizes[:0:-1]))[::-1].astype(np.int64)
    tables = (hits.rows, hits.scales, hits.matters)
    for sweep in range(MOST_SWEEPS):
        if not _sweep(counts, atoms, residuals, weights, tables, (sizes, strides, hits.starts), LEAST_GAIN):
            return sweep + 1
    return MOST_SWEEPS


@numba.njit(cache=True, nogil=True)
def _sweep(counts: Any, atoms: Any, residuals: Any, weights: Any, tables: Any, layout: Any, least_gain: Any) -> Any:
    """Offer each occupied cell's record the best level near its own of each attribute in turn; how many moved."""
    sizes, strides, starts = layout
    levels = np.empty(sizes.size, dtype=np.int64)
    count = tables[0].shape[0]
    where = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count)
    moved = 0
    for first in range(counts.size):
        cell = first
        if counts[cell] == 0:
            continue
        for axis in range(sizes.size):
            levels[axis] = (cell // strides[axis]) % sizes[axis]
        for axis in range(sizes.size):
            used = _others(tables, starts, levels, axis, where)
            best, least = levels[axis], 0.0
            for level in range(max(0, levels[axis] - REACH), min(sizes[axis], levels[axis] + REACH + 1)):
                other = cell + (level - levels[axis]) * strides[axis]
                if level != levels[axis] and atoms[other] == atoms[cell]:
                    ends = (starts[axis] + levels[axis], starts[axis] + level)
                    gain, scale = _change(tables, used, where, ends, residuals, weights)
                    if gain < least and gain < -least_gain * scale:
                        best, least = level, gain
            if best != levels[axis]:
                ends = (starts[axis] + levels[axis], starts[axis] + best)
                _carry_out(tables, used, where, ends, residuals)
                counts[cell] -= 1
                cell += (best - levels[axis]) * strides[axis]
                counts[cell] += 1
                levels[axis] = best
                moved += 1
    return moved


@numba.njit(cache=True, nogil=True)
def _others(tables: Any, starts: Any, levels: Any, axis: Any, where: Any) -> Any:
    """Tables that a move along the attribute can change, and where the other attributes place a record; how many."""
    rows, scales, matters = tables
    used = 0
    for table in range(rows.shape[0]):
        if matters[table, axis]:
            base, factor = np.int64(0), 1.0
            for other in range(levels.size):
                place = starts[other] + levels[other]
                if other != axis and factor != 0:
                    base += rows[table, place]
                    factor *= scales[table, place]
            if factor != 0:
                where[0][used], where[1][used], where[2][used] = table, base, factor
                used += 1
    return used


@numba.njit(cache=True, nogil=True)
def _change(tables: Any, used: Any, where: Any, ends: Any, residuals: Any, weights: Any) -> Any:
    """By how much Σ weight·residual² rises when a record moves from one level to another, and the weights involved."""
    gain, scale = 0.0, 0.0
    for i in range(used):
        table, base, factor = where[0][i], where[1][i], where[2][i]
        lost, won = factor * tables[1][table, ends[0]], factor * tables[1][table, ends[1]]
        here, there = base + tables[0][table, ends[0]], base + tables[0][table, ends[1]]
        if here == there:
            lost, won = 0.0, won - lost
        if lost != 0:
            gain += weights[here] * lost * (lost - 2 * residuals[here])
            scale += weights[here] * lost * lost
        if won != 0:
            gain += weights[there] * won * (won + 2 * residuals[there])
            scale += weights[there] * won * won
    return gain, scale


@numba.njit(cache=True, nogil=True)
def _carry_out(tables: Any, used: Any, where: Any, ends: Any, residuals: Any) -> None:
    """Bring the residuals to where the move leaves them."""
    for i in range(used):
        table, base, factor = where[0][i], where[1][i], where[2][i]
        for end, sign in ((ends[0], -1.0), (ends[1], 1.0)):
            if tables[1][table, end] != 0:
                residuals[base + tables[0][table, end]] += sign * factor * tables[1][table, end]
