"""From the root down: tables of non-negative whole numbers that add up over the geography and along the chain.

The root is brought to whole numbers level by level of the chain. Then, parent by parent, its children are: their
totals first, and then each grouping of the chain in turn, where the parts of each group are a table of children ×
parts with both margins fixed (see `transport`). What is fixed is never touched again, so that subtrees are independent
once their root's table is known.

Cells that cannot occur at a place, or have a most, keep to the room they have: nothing may be given that cannot be
placed below. The room of a node is the smaller of what is stated for it and of what its children have room for; a table
within its node's room can always be split, cell by cell. What each child may get of a group then lies between what
others have no room for and what it has room for itself. Exact totals of children may contradict room even so: then the
family is an integer program, and refused if it has no solution.

Tables that cross the chain pull where their groups are decided, and hold nothing (soft constraints). For the children c
of a node and the parts h of groups g, minimize Σ (x_ch − e_ch)²/s_ch + Σ (Σ_{h∈j} x_ch − m_cj)²/v_c over x ≥ 0 with
Σ_{h∈g} x_ch = R_cg and Σ_c x_ch = C_h: the second sum is over the groups j that a crossing table with variances v
counts, m its best estimates. At the optimum x_ch = max(0, e_ch + s_ch·(α_cg + β_h + γ_cj)) with
γ_cj = (m_cj − Σ_{h∈j} x_ch)/v_c; duals are found block by block in turn, each step solving its equation exactly.
At γ the second sum is linear, so that e + s·γ are estimates whose nearest table with these margins is x: whole numbers
near them are found by the same network flow as without crossing tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRequest, NoConsistentTables
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.consistency.estimates import TreeEstimates, count_across
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.strata import CrossingMeasurement
from dualmandate.publication.consistency.transport import (
    NO_LIMITS,
    SECONDS,
    UNLIMITED,
    apportion,
    integer_program,
    shift,
    split_groups,
)

Counts = NDArray[np.signedinteger[Any]]  # 32-bit where the root's total fits, else 64-bit.
FAR = -1e9  # Stands in for −∞: the target of a cell that must stay empty.


@dataclass(frozen=True, eq=False)
class CountConstraints:
    """What decides counts besides estimates and margins: tables that cross the chain, and bounds of cells."""

    crossings: tuple[CrossingMeasurement, ...] = ()
    capacities: Capacities | None = None

    def pulling(self, chain: PartitionChain, level: int, step: int) -> list[CrossingMeasurement]:
        """The crossing tables, at a level or below it, whose groups a grouping decides."""
        return [each for each in self.crossings if each.level >= level and each.in_place and each.step(chain) == step]


NONE = CountConstraints()


def top_down(
    estimates: TreeEstimates, root: Integers | None = None, constraints: CountConstraints = NONE
) -> tuple[Counts, ...]:
    """Consistent tables of cells for each level of the tree; [l], shape (nodes, cells).

    `root` is the root's table where it is known already: that of a subtree, which its parent fixed. Counts are 32-bit
    where the root's total fits.
    """
    tree, cells = estimates.tree, estimates.chain.sizes[-1]
    first = _root_table(estimates, constraints) if root is None else np.asarray(root, dtype=np.int64).reshape(cells)
    kind = np.int32 if first.sum() < 2**31 else np.int64
    tables: list[Counts] = [first[None, :].astype(kind)]
    for level in range(tree.last):
        below = np.zeros((tree.sizes[level + 1], cells), dtype=kind)
        for node in np.flatnonzero(tables[level].any(axis=1)):
            children = tree.children(level, int(node))
            counts = _family(estimates, level + 1, children, tables[level][node], constraints)
            below[children.start : children.stop] = counts
        tables.append(below)
    return tuple(tables)


def _root_table(estimates: TreeEstimates, constraints: CountConstraints) -> Integers:
    """The root's cells: its total, or the nearest count to it, then group by group; shape (cells,)."""
    chain, targets, shares = estimates.chain, estimates.tables(0), estimates.upward.weights.shares
    room = np.full(chain.sizes[-1], UNLIMITED)
    if constraints.capacities is not None:
        room = constraints.capacities.room(0, range(1))[0]
    counts: Integers = np.maximum(np.rint(targets[0][0]), 0).astype(np.int64)
    counts = counts if estimates.exact(0, 0) else np.minimum(counts, chain.sums(room, 0))
    for k in range(chain.last + 1):
        most = chain.sums(room, k)
        if k and estimates.exact(0, k):
            counts = np.rint(targets[k][0]).astype(np.int64)
        elif k:
            scales = _usable(estimates.upward.variances[0][k])[:, estimates.upward.weights.classes[k]]
            slopes = scales * shares[k]
            margins = counts[None, :], None
            wanted = _with_pulls(constraints, estimates, (0, range(1), k), targets[k], slopes, margins)[0]
            parts, held = np.zeros(chain.sizes[k], dtype=np.int64), chain.possible[k]
            for group in np.flatnonzero(counts):
                own = slice(*chain.starts[k - 1][group : group + 2])
                within = own.start + np.flatnonzero(held[own])
                parts[within] = apportion(wanted[within], shares[k][within], int(counts[group]), most[within])
            counts = parts
        if np.any(counts > most):
            raise NoConsistentTables(
                f"exact counts of level 0 of the tree and {k} of the chain",
                why="cells below have no room for them, by the bounds that were stated",
                instead="state totals and bounds of one population",
            )
    return counts


def _family(
    estimates: TreeEstimates, level: int, children: range, parent: NDArray[np.generic], constraints: CountConstraints
) -> Integers:
    """The cells of a node's children (nodes of `level`), which add up to the parent's; shape (children, cells)."""
    chain = estimates.chain
    if len(children) == 1:
        return chain.sums(parent, chain.last)[None, :]
    targets, room = estimates.tables(level, children), None
    if constraints.capacities is not None:
        room = FamilyCapacities.of(chain, constraints.capacities.room(level, children), np.asarray(parent))
    counts = _grouping_by_grouping(estimates, (level, children), targets, parent, (constraints, room))
    if room is not None and (counts is None or np.any(counts > room.most)):
        exact = [k for k in range(chain.last + 1) if estimates.exact(level, k)]
        return integer_family(targets[-1], parent, room, [(k, np.rint(targets[k]).astype(np.int64)) for k in exact])
    assert counts is not None
    return counts


def _grouping_by_grouping(
    estimates: TreeEstimates,
    nodes: tuple[int, range],
    targets: Sequence[Floats],
    parent: NDArray[np.generic],
    demanded: tuple[CountConstraints, FamilyCapacities | None],
) -> Integers | None:
    """The cells of a family, each grouping within the one before; None where bounds leave a grouping no room."""
    (level, children), (constraints, room), chain, weights = nodes, demanded, estimates.chain, estimates.upward.weights
    rows = slice(children.start, children.stop)
    fixed = [chain.sums(parent, k) for k in range(chain.last + 1)]
    counts = np.rint(targets[0]).astype(np.int64)
    if not estimates.exact(level, 0):
        scales = _usable(estimates.upward.variances[level][0][rows, 0])
        least, more = (np.zeros_like(counts), None) if room is None else room.groups(0)
        left = int(fixed[0][0] - least.sum())
        most = None if more is None else more[:, 0]
        counts = least + apportion(targets[0][:, 0] - least[:, 0], scales, left, most)[:, None]
    for k in range(1, chain.last + 1):
        coarse, counts = counts, np.rint(targets[k]).astype(np.int64)
        if estimates.exact(level, k):
            continue
        firsts = weights.classes[k][chain.starts[k - 1][:-1]]
        scales = _usable(estimates.upward.variances[level][k][rows])[:, firsts]
        slopes = scales[:, chain.parents[k - 1]] * weights.shares[k]
        wanted = _with_pulls(constraints, estimates, (level, children, k), targets[k], slopes, (coarse, fixed[k]))
        if room is None:
            split_groups(wanted, scales, weights.shares[k], chain.starts[k - 1], (coarse, fixed[k]), NO_LIMITS, counts)
            continue
        (above, _), (least, more) = room.groups(k - 1), room.groups(k)
        margins = coarse - above, fixed[k] - least.sum(axis=0)
        wanted = np.where(more > 0, wanted - least, FAR)
        if margins[0].min() < 0 or not split_groups(
            wanted, scales, weights.shares[k], chain.starts[k - 1], margins, more, counts
        ):
            return None
        counts += least
    return counts


def _with_pulls(
    constraints: CountConstraints,
    estimates: TreeEstimates,
    nodes: tuple[int, range, int],
    targets: Floats,
    slopes: Floats,
    margins: tuple[Integers, Integers | None],
) -> Floats:
    """The estimates of a grouping and what tables that cross the chain add to them.

    What such a table says of the nodes below a node, it says of their sum: with the sum of its variances.
    """
    (level, some, step), pulls = nodes, list[SoftConstraint]()
    for crossing in constraints.pulling(estimates.chain, level, step):
        labels, wanted = crossing.labels(estimates.chain, step), np.zeros((len(targets), crossing.shape[1]))
        count_across(targets, np.arange(len(targets)), labels, wanted)
        edges = np.arange(some.start, some.stop + 1)
        for starts in estimates.tree.starts[level : crossing.level]:
            edges = starts[edges]
        pulls.append(SoftConstraint(labels, wanted, crossing.variance * np.diff(edges)))
    if not pulls:
        return targets
    return np.asarray(
        targets + soft_constrained(targets, slopes, estimates.chain.starts[step - 1], margins, tuple(pulls))[1]
    )


def _usable(variances: Floats) -> Floats:
    """Variances as scales; all alike where nothing was measured, or nothing is left to say."""
    return np.where(np.isfinite(variances) & (variances > 0), variances, 1.0)


@dataclass(frozen=True, eq=False)
class Capacities:
    """For some levels of a tree the most that each cell of each node counts, or whether it can occur at all."""

    tree: Tree
    chain: PartitionChain
    stated: Mapping[int, NDArray[Any]] = field(repr=False)  # (nodes, cells): whole numbers, or bool: can it occur

    def __post_init__(self) -> None:
        for level, most in self.stated.items():
            known = 0 <= level <= self.tree.last and most.shape == (self.tree.sizes[level], self.chain.sizes[-1])
            whole = known and (most.dtype == np.bool_ or (np.issubdtype(most.dtype, np.integer) and most.min() >= 0))
            if not whole:
                raise InvalidRequest(
                    f"bounds at level {level} that do not fit the tree and the chain",
                    why="each cell of each node has one bound, a whole number from 0 on, or can occur or not",
                    instead="give arrays of shape (nodes, cells) for levels of the tree",
                )

    def room(self, level: int, nodes: range) -> Integers:
        """The most that the cells of some nodes can count; shape (nodes, cells), `UNLIMITED` at the most."""
        if level == self.tree.last:
            return self._own(level, nodes)
        return self._above[level][nodes.start : nodes.stop]

    def _own(self, level: int, nodes: range) -> Integers:
        most = np.full((len(nodes), self.chain.sizes[-1]), UNLIMITED)
        if level in self.stated:
            rows = self.stated[level][nodes.start : nodes.stop]
            most = np.where(rows, UNLIMITED, 0) if rows.dtype == np.bool_ else np.minimum(rows, UNLIMITED)
        most[:, ~self.chain.possible[-1]] = 0
        return most.astype(np.int64)

    @cached_property
    def _above(self) -> tuple[Integers, ...]:
        """The room of every level but the last, from what the next one has, one family at a time."""
        found: list[Integers] = []
        for level in range(self.tree.last - 1, -1, -1):
            most = self._own(level, range(self.tree.sizes[level]))
            for node in range(self.tree.sizes[level]):
                children = self.tree.children(level, node)
                below = found[0][children.start : children.stop] if found else self._own(level + 1, children)
                most[node] = np.minimum(most[node], below.sum(axis=0))
            found.insert(0, most)
        return tuple(found)


@dataclass(frozen=True, eq=False)
class FamilyCapacities:
    """What a family's cells have room for, and what follows for its groups."""

    chain: PartitionChain
    most: Integers = field(repr=False)  # of children and cells; no more than the parent counts
    least: Integers = field(repr=False)  # what the other children have no room for

    @classmethod
    def of(cls, chain: PartitionChain, most: Integers, parent: NDArray[Any]) -> FamilyCapacities:
        """The room of a node's children, given the node's table."""
        own = np.minimum(most, parent)
        return cls(chain, own, np.maximum(parent - (own.sum(axis=0) - own), 0))

    def groups(self, step: int) -> tuple[Integers, Integers]:
        """The least of each child and group of a grouping, and how much more it may count."""
        least = self.chain.sums(self.least, step)
        return least, self.chain.sums(self.most, step) - least


def integer_family(
    targets: Floats, parent: NDArray[Any], room: FamilyCapacities, exact: Sequence[tuple[int, Integers]]
) -> Integers:
    """Children's cells that add up to the parent's, to what is exact, and keep to their room; shape (children, cells).

    `exact` are groupings with counts of the children. Nearest in absolute terms, by an integer program; refused where
    there are none.
    """
    from scipy.sparse import csr_array, vstack

    chain = room.chain
    rows, cells = np.nonzero(room.most)
    columns = np.arange(rows.size)
    ones = np.ones(rows.size)
    held = [csr_array((ones, (cells, columns)), shape=(chain.sizes[-1], rows.size))]
    totals = [np.asarray(parent, dtype=np.int64)]
    for step, counts in exact:
        groups = chain.ancestors(step)[cells] + rows * chain.sizes[step]
        held.append(csr_array((ones, (groups, columns)), shape=(counts.size, rows.size)))
        totals.append(counts.reshape(-1))
    wanted, most = np.maximum(targets[rows, cells], 0.0), room.most[rows, cells]
    found = integer_program(wanted, vstack(held), np.concatenate(totals), most=most, seconds=SECONDS)
    whole = np.zeros(room.most.shape, dtype=np.int64)
    whole[rows, cells] = found.counts
    return whole


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
