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
γ_cj = (m_cj − Σ_{h∈j} x_ch)/v_c; each dual in turn solves its equation exactly. At these duals the second sum is
linear, so that e + s·(α + β + γ), which is x where it is not below 0, are estimates whose nearest table with these
margins is x: whole numbers near them are found by the same network flow as without crossing tables. What rounding one
group leaves of the sums m is made up for in the next ones.
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
from dualmandate.publication.consistency.estimates import Pair, TreeEstimates, count_across
from dualmandate.publication.consistency.partitions import PartitionChain, Tree
from dualmandate.publication.consistency.strata import CrossingMeasurement
from dualmandate.publication.consistency.transport import (
    NO_LIMITS,
    NOTHING_ACROSS,
    SECONDS,
    UNLIMITED,
    apportion,
    carry_in,
    carry_out,
    integer_program,
    split_groups,
)

Counts = NDArray[np.signedinteger[Any]]  # 32-bit where the root's total fits, else 64-bit.
FAR = -1e9  # Stands in for −∞: the target of a cell that must stay empty.


@dataclass(frozen=True, eq=False)
class CountConstraints:
    """What decides counts besides estimates and margins: tables that cross the chain, and bounds of cells."""

    crossings: tuple[CrossingMeasurement, ...] = ()
    capacities: Capacities | None = None

    def pulling(self, chain: PartitionChain, level: int, step: int) -> list[PullingTables]:
        """The crossing tables, at a level or below it, whose groups a grouping decides."""
        if (level, step) not in self._pulling:
            alike = dict[bytes, PullingTables]()
            for each in self.crossings:
                if each.level >= level and each.in_place and each.step(chain) == step:
                    labels = each.labels(chain, step)
                    pull = alike.setdefault(labels.tobytes(), PullingTables(labels, each.shape[1], []))
                    pull.precisions.append((each.level, 1.0 / each.variance))
            self._pulling[level, step] = list(alike.values())
        return self._pulling[level, step]

    @cached_property
    def _pulling(self) -> dict[Pair, list[PullingTables]]:
        return {}


class PullingTables(NamedTuple):
    """Crossing tables with the same groups, at one level or several: they pull as one."""

    labels: Integers  # of each part of the grouping that they count as wholes, −1 for none
    groups: int
    precisions: list[tuple[int, float]]  # of a number of each table, and its level

    def variances(self, tree: Tree, level: int, nodes: range) -> Floats:
        """Of what they say together of each of some nodes: below a node, of their sum, with the sum of variances."""
        precision, edges, at = np.zeros(len(nodes)), np.arange(nodes.start, nodes.stop + 1), level
        for own, each in sorted(self.precisions):
            for starts in tree.starts[at:own]:
                edges = starts[edges]
            at = own
            precision += each / np.diff(edges)
        return np.asarray(1.0 / precision)


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
            wanted, across = _with_pulls(constraints, estimates, (0, range(1), k), targets[k], slopes, margins)
            parts, held = np.zeros(chain.sizes[k], dtype=np.int64), chain.possible[k]
            left = np.zeros((len(across), int(across.max(initial=-1)) + 1))
            for group in np.flatnonzero(counts):
                own = slice(*chain.starts[k - 1][group : group + 2])
                within = own.start + np.flatnonzero(held[own])
                moved = wanted[0, within]
                carry_in(moved, across, within, left)
                parts[within] = apportion(moved, shares[k][within], int(counts[group]), most[within])
                carry_out(wanted[0, within], parts[within], across, within, left)
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
        margins = coarse, fixed[k]
        wanted, across = _with_pulls(constraints, estimates, (level, children, k), targets[k], slopes, margins)
        groups = scales, weights.shares[k], chain.starts[k - 1]
        if room is None:
            split_groups(wanted, *groups, margins, NO_LIMITS, across, counts)
            continue
        (above, _), (least, more) = room.groups(k - 1), room.groups(k)
        margins = coarse - above, fixed[k] - least.sum(axis=0)
        wanted = np.where(more > 0, wanted - least, FAR)
        if margins[0].min() < 0 or not split_groups(wanted, *groups, margins, more, across, counts):
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
) -> tuple[Floats, Integers]:
    """The estimates of a grouping, to where tables that cross the chain pull them, and the groups of these tables."""
    (level, some, step), pulls = nodes, list[SoftConstraint]()
    for pull in constraints.pulling(estimates.chain, level, step):
        wanted = np.zeros((len(targets), pull.groups))
        count_across(targets, np.arange(len(targets)), pull.labels, wanted)
        pulls.append(SoftConstraint(pull.labels, wanted, pull.variances(estimates.tree, level, some)))
    if not pulls:
        return targets, NOTHING_ACROSS
    aimed = soft_constrained(targets, slopes, estimates.chain.starts[step - 1], margins, tuple(pulls))[1]
    return aimed, np.stack([pull.labels for pull in pulls])


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


MOST_SWEEPS = 10_000  # At most so many rounds over all duals are made.
TOLERANCE = 0.002  # Margins, and the equations of γ, may miss so many records.
UNKNOWN = 1e3  # Cells are taken for unknown whose variance is so many times that of the tables that pull at them,
LOOSE = 10  # and held to where each turn ends from so many times on.
_MOST_STEPS = 60  # At most so many Newton steps solve one equation.
_NEAR = 1e-12  # They solve it to this, relative.


@dataclass(frozen=True, eq=False)
class SoftConstraint:
    """What a crossing table says of some children: which of its groups counts each part, and the best estimates."""

    labels: Integers = field(repr=False)  # −1 for none; shape (parts,)
    wanted: Floats = field(repr=False)  # shape (children, groups)
    variances: Floats = field(repr=False)  # of each child's; shape (children,)


class _Equations(NamedTuple):
    """Σ x + v·t = m over some cells each, t the dual of the equation; a tuple, because compiled code takes these."""

    starts: Integers  # of each equation's cells
    cells: Integers
    totals: Floats  # m
    variances: Floats  # v: 0 where a margin is to be met

    @classmethod
    def of(cls, keys: Integers, totals: Floats, variances: Floats, cells: Integers) -> _Equations:
        """One for each different key of the cells; `totals` and `variances` are by key."""
        order = np.argsort(keys, kind="stable")
        used, firsts = np.unique(keys[order], return_index=True)
        return cls(np.append(firsts, keys.size).astype(np.int64), cells[order], totals[used], variances[used])

    def and_then(self, other: _Equations) -> _Equations:
        starts = np.concatenate([self.starts, self.starts[-1] + other.starts[1:]])
        pairs = zip(self[1:], other[1:], strict=True)
        return _Equations(starts, *(np.concatenate(pair) for pair in pairs))


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
    """The nearest table x in real numbers, and one whose cells below 0 say how far they are from being used.

    The second one is x elsewhere, so that x is its nearest table with these margins. Both of shape (children, parts).
    `slopes` are s, 0 where nothing can be, `starts` where the parts of each group start, `margins` R of children and
    groups and C of the parts; None leaves those free (the root has no parent). Where a margin is 0, nothing is placed.
    Of the cells only those are looked for that margins leave free: most families are small.

    Where nobody measured cells, they are even parts of their groups that move in proportion to these: who is pulled to
    is found among many before few.
    """
    (rows, columns), groups = margins, np.repeat(np.arange(starts.size - 1), np.diff(starts))
    held = slopes.any(axis=0) if columns is None else columns > 0
    # A group with one part, or one child, that has any is decided: its cells are the margins themselves.
    one_part = np.bincount(groups[held], minlength=rows.shape[1]) == 1
    one_child = np.zeros_like(one_part) if columns is None else (rows > 0).sum(axis=0) == 1
    some = (rows > 0)[:, groups] & held
    decided, found = some & (one_part | one_child)[groups], np.zeros(targets.shape)
    found[decided] = rows[:, groups][decided]
    if columns is not None:
        alone = decided & ~one_part[groups]
        found[alone] = np.broadcast_to(columns, alone.shape)[alone]
    aimed = np.where(decided, found, targets)
    children, parts = np.nonzero(some & ~decided)
    if not children.size:
        return found, aimed
    cells, exact = np.arange(children.size), np.zeros(max(rows.size, groups.size))
    keys = children * rows.shape[1] + groups[parts]
    equations = _Equations.of(keys, rows.reshape(-1).astype(np.float64), exact, cells)
    if columns is not None:
        equations = equations.and_then(_Equations.of(parts, columns.astype(np.float64), exact, cells))
    for each in constraints:
        counted = np.zeros(each.wanted.shape)
        count_across(found, np.arange(len(found)), each.labels, counted)
        own, width = cells[each.labels[parts] >= 0], each.wanted.shape[1]
        keys, variances = children[own] * width + each.labels[parts[own]], np.repeat(each.variances, width)
        equations = equations.and_then(_Equations.of(keys, (each.wanted - counted).reshape(-1), variances, own))
    values, given = np.empty(cells.size), (targets[children, parts], slopes[children, parts])
    kappa, looseness = np.full(cells.size, np.inf), 0.0
    if (soft := equations.variances[equations.variances > 0]).size:
        looseness = float(given[1].min() / soft.mean())
    if looseness > LOOSE:
        kappa[:] = soft.mean()
    if looseness > UNKNOWN:
        own, sizes = groups[parts], rows[children, groups[parts]].astype(np.float64)
        given = sizes / np.bincount(groups[held], minlength=rows.shape[1])[own], given[1]
        kappa *= sizes / sizes.mean()
    _solve((*given, kappa), equations, tolerance, most_sweeps, values)
    found[children, parts], aimed[children, parts] = np.maximum(values, 0.0), values
    return found, aimed


@numba.njit(cache=True, nogil=True)
def _solve(given: Any, equations: Any, tolerance: Any, most_sweeps: Any, values: Any) -> None:
    """Each equation in turn, by its dual, until all are met; `values` are x, below 0 where cells are empty.

    What an equation asks for is convex and increasing in its dual, in pieces, so that Newton's steps end there. Where s
    is far above v, as where nobody measured cells, such turns creep; each is held to where the one before ended, with a
    slope κ like v (the proximal point method [Roc76]): (x − e)²/s + (x − x′)²/κ is a square about
    (κ·e + s·x′)/(κ + s) with slope s·κ/(κ + s). At the end x = x′, and the duals are those without it. `given` are e, s
    and κ.
    """
    (targets, slopes, kappa), (starts, cells, totals, variances) = given, equations
    duals, sums, centers, rates = np.zeros(totals.size), np.zeros(cells.max() + 1), targets.copy(), slopes.copy()
    for h in range(slopes.size):
        rates[h] = slopes[h] / (1.0 + slopes[h] / kappa[h])
    for _ in range(most_sweeps):
        missed = 0.0
        for i in range(totals.size):
            own, moved = cells[starts[i] : starts[i + 1]], 0.0
            near = max(_NEAR * abs(totals[i]), tolerance / 1000)
            for step in range(_MOST_STEPS):
                total, rate = variances[i] * (duals[i] + moved), variances[i]
                for h in own:
                    x = centers[h] + rates[h] * (sums[h] + moved)
                    if x > 0:
                        total += x
                        rate += rates[h]
                gap = totals[i] - total
                if step == 0:
                    missed = max(missed, abs(gap))
                if abs(gap) <= near:
                    break
                if rate > 0:
                    moved += gap / rate
                else:  # all are below 0: to where the first of them would do
                    moved = (totals[i] - centers[own[0]]) / rates[own[0]] - sums[own[0]]
            duals[i] += moved
            for h in own:
                sums[h] += moved
        for h in range(values.size):
            values[h] = centers[h] + rates[h] * sums[h]
            if kappa[h] < np.inf:
                share = slopes[h] / (kappa[h] + slopes[h])
                centers[h] = targets[h] + share * (max(0.0, values[h]) - targets[h])
        if missed <= tolerance:
            break
