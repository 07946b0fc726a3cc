"""Suppressed cells of linked tables: between which numbers each of them must lie, by what is still published.

Tables add up, so a suppressed number is bounded by its neighbors and totals. Bounds are sharp: some table with the
published numbers reaches each of them. A cell whose bounds meet was not suppressed at all.

Sums that form no circle need bounds alone, others linear programs. Where time ends, the bounds that were known before
stand: they hold, and may be wide.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.finding import MOST_DETAILS, Finding, Reference, proved_share
from dualmandate.audit.options import SECONDS, Effort, parallel_map
from dualmandate.audit.reconstruction.solving import (
    HOW,
    UNBOUNDED,
    BoundedEquations,
    highs_model,
    piece_equations,
    pieces,
    propagate,
    smallest_conflict,
)
from dualmandate.audit.tables import Equations, ExactTables, Parts, Truths, boxed, check_truths, open_truths
from dualmandate.errors import InvalidTables
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.wording import percent

FOLLOW, FAIL, MIDDLE = "follow exactly", "fail", "middle"
PRIMAL_SIMPLEX = 4  # HiGHS's name for it.
NEAR = 1e-6  # A value this near to a whole bound has reached it.
RELATIVE = 1e-12  # Sums of floats may be off by this share of the largest number.


@dataclass(frozen=True, eq=False)
class LinkedTables:
    """Cells of tables that add up, some of them suppressed.

    `relations` are Σ a·cell = 0 over all cells: a total less its parts. `values` are whole numbers; what stands at a
    suppressed cell is not looked at; numbers of any kind are counted in their smallest unit (dollars, tenths).
    """

    relations: Equations
    values: Integers = field(repr=False)  # (cells,)
    suppressed: Booleans = field(repr=False)  # (cells,)

    def __post_init__(self) -> None:
        if not len(self.values) == len(self.suppressed) == self.relations.size:
            raise InvalidTables(
                f"{len(self.values):,} values and {len(self.suppressed):,} marks for {self.relations.size:,} cells",
                why="each cell has one value and is suppressed or not",
                instead="give one of each for every cell",
            )


@dataclass(frozen=True, eq=False)
class SuppressionAudit:
    """The range of each suppressed cell, given everything that was published."""

    cells: Integers = field(repr=False)  # which cells were suppressed
    least: Integers = field(repr=False)
    largest: Integers = field(repr=False)  # `UNBOUNDED` where nothing bounds it
    reached: Booleans = field(repr=False)  # whether the range is sharp; else time ended, and it may be wide
    programs: int  # linear programs that this took

    @property
    def disclosed(self) -> Integers:
        """Cells whose number follows exactly."""
        return np.asarray(self.cells[self.least == self.largest])

    def unprotected(self, truth: NDArray[Any], *, share: float) -> Integers:
        """Cells that can be estimated within a share of their true value, from below or from above.

        A protection interval reaches from (1 − share)·value to (1 + share)·value: both ends must be possible.
        `truth` is confidential: what follows from it belongs inside the wall.
        """
        value = np.asarray(truth)[self.cells]
        return np.asarray(self.cells[self._fails(value, share) & (value > 0)])

    def surely_unprotected(self, *, share: float) -> Booleans:
        """Which suppressed cells fail their protection interval whatever they hold, or follow exactly; shape (cells,).

        Known from published numbers alone. The lower end of an interval rises with the value, and so does its upper
        end: the least value whose lower end is possible has the least upper end of all that could be protected.
        """
        known = self.least == self.largest
        if share >= 1:
            return np.asarray(known | (self.least > 0))  # 0 must be possible
        # v − floor(share·v) ≥ least where (1 − share)·v > least − 1
        value = np.floor((self.least - 1) / (1 - share)).astype(np.int64) - 1
        for _ in range(3):  # floats may have missed the least such value by a little
            value = np.where(value - np.floor(share * value) < self.least, value + 1, value)
        value = np.maximum(value, self.least)
        bounded = self.largest < UNBOUNDED
        return np.asarray(known | (bounded & ((value > self.largest) | self._fails(value, share))))

    def _fails(self, value: NDArray[Any], share: float) -> Booleans:
        low, high = value - np.floor(share * value), value + np.ceil(share * value)
        return np.asarray((self.least > low) | (self.largest < high))


def audit_suppression(
    tables: LinkedTables,
    *,
    least: Integers | None = None,
    largest: Integers | None = None,
    wanted: Booleans | None = None,
    seconds: float = SECONDS,
) -> SuppressionAudit:
    """The sharp range of every suppressed cell; refused where the published numbers contradict each other.

    `least` and `largest` are what an attacker knows of each cell beforehand (0, and nothing); shape (cells,). Cells
    that share no sum with others are a question of their own: `seconds` limit each, and what they leave open is said.
    `wanted` are the suppressed cells whose range is asked for, all where not stated; shape (cells,).
    """
    hidden = tables.suppressed
    low = np.where(hidden, 0 if least is None else least, tables.values)
    high = np.where(hidden, UNBOUNDED if largest is None else largest, tables.values)
    given = BoundedEquations(tables.relations, np.zeros(tables.relations.rows, dtype=np.int64), low, high)
    nothing = given.values[None]
    lows, highs, wrong = propagate(tables.relations, nothing, nothing, least=low, most=high)
    if wrong[0]:
        raise _contradiction(tables, given, seconds)
    low, high = lows[0], highs[0]
    programs, reached = 0, np.ones(tables.relations.size, dtype=np.bool_)
    for free in pieces(tables.relations, low, high):
        asked = None if wanted is None else wanted[free]
        if asked is not None and not asked.any():
            continue
        piece, *values = piece_equations(tables.relations, free, (nothing[0], nothing[0]), low)
        if _is_tree(piece):
            continue  # where no equations form a circle, bounds that agree pairwise are reached
        try:
            found = extremes(piece, values[0], (low[free], high[free]), wanted=asked, seconds=seconds)
        except InvalidTables:
            raise _contradiction(tables, given, seconds) from None
        low[free], high[free], reached[free], solved = found
        programs += solved
    cells = np.flatnonzero(hidden if wanted is None else hidden & wanted)
    return SuppressionAudit(cells, low[cells], high[cells], reached[cells], programs)


def additive_relations(shape: tuple[int, ...]) -> Equations:
    """A table whose last place on every axis is the total of the others: all lines that add up; cells row-major."""
    cells = np.arange(int(np.prod(shape))).reshape(shape)
    rows = [line for axis, width in enumerate(shape) for line in np.moveaxis(cells, axis, -1).reshape(-1, width)]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    coefficients = np.concatenate([np.append(np.ones(len(row) - 1, dtype=np.int64), -1) for row in rows])
    return Equations(starts, np.concatenate(rows).astype(np.int64), coefficients, cells.size)


def tree_relations(parents: Integers) -> Equations:
    """Cells of which each may be a part of one other: every cell that has parts is their total.

    `parents[i]` is the cell that cell i is a part of, −1 where there is none; shape (cells,).
    """
    parts = np.flatnonzero(parents >= 0)
    totals, rows = np.unique(parents[parts], return_inverse=True)
    order = np.argsort(rows, kind="stable")
    counts = np.bincount(rows, minlength=len(totals)) + 1
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    cells, coefficients = np.empty(starts[-1], dtype=np.int64), np.ones(starts[-1], dtype=np.int64)
    last = starts[1:] - 1
    cells[last], coefficients[last] = totals, -1
    cells[np.setdiff1d(np.arange(starts[-1]), last)] = parts[order]
    return Equations(starts, cells, coefficients, len(parents))


def _is_tree(piece: Equations) -> bool:
    """Whether rows and unknowns, joined where a row holds an unknown, form no circle, with coefficients ±1.

    A piece is connected, and a connected graph without circles has one edge less than nodes.
    """
    plain = bool((np.abs(piece.coefficients) == 1).all())
    return plain and len(piece.cells) == piece.rows + piece.size - 1


def _contradiction(tables: LinkedTables, given: BoundedEquations, seconds: float) -> InvalidTables:
    """The refusal: a sum that is published whole and does not add up, else a smallest set of sums that contradict."""
    relations, known = tables.relations, ~tables.suppressed
    counts = abs(relations.matrix) @ tables.suppressed.astype(np.int64)
    wrong = np.flatnonzero((counts == 0) & (relations.matrix @ np.where(known, tables.values, 0) != 0))
    if len(wrong):
        others = f", and so do {len(wrong) - 1:,} more" if len(wrong) > 1 else ""
        return InvalidTables(
            f"'{relations.name(int(wrong[0]))}' does not add up",
            why=f"its parts and its total are all published, and differ{others}",
            instead="check the table, or leave this sum out",
        )
    found = smallest_conflict(given, seconds=seconds)
    said = found.named(relations.name(row) for row in found.rows)
    return InvalidTables(
        f"the published numbers contradict each other: {said}",
        why=f"no numbers in the suppressed cells make all {len(found.rows):,} of these sums add up ({HOW[found.kind]})"
        if len(found.rows) > 1
        else "no numbers in the suppressed cells make this sum add up",
        instead="check that all tables count the same units, and what is said to bound them",
    )


@dataclass(frozen=True, eq=False)
class SuppressedPart:
    """Linked tables of one place and period. `shown` are the cells that were to be published; others only link them.

    `truths` give the values of all cells, suppressed ones too; shape (cells,).
    """

    tables: LinkedTables
    names: Sequence[str] = field(repr=False)  # of every cell
    shown: Booleans | None = field(default=None, repr=False)
    truths: Truths = field(default_factory=dict, repr=False)
    place: str = ""  # and the period, in words; empty where there is one part only

    def __post_init__(self) -> None:
        check_truths(self.truths, self.tables.values.shape)

    def name(self, cell: int) -> str:
        return f"{self.place}: {self.names[cell]}" if self.place else self.names[cell]


@dataclass(frozen=True, eq=False)
class SuppressedTables:
    """Linked tables with suppressed cells, one part a place and period; all parts have truths of the same files."""

    name: str
    parts: Parts[SuppressedPart]
    coarsening: str
    share: float = 0.2  # of a value, within which nobody should be able to tell it


@dataclass(frozen=True)
class SuppressionAttack:
    """Between which numbers each suppressed cell must lie."""

    effort: Effort = field(default_factory=Effort)
    name: str = "bounds of suppressed cells"

    def run(self, target: SuppressedTables, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        tally, bounded = _BoundsTally(target.share), parallel_map(self._bounded, target.parts, self.effort.workers)
        for number, (part, audit) in enumerate(bounded, start=1):
            tally.add(part, audit)
            self.effort.count(f"bounding the suppressed cells of {target.name}", number, len(target.parts))
        return tuple(self._findings(target, tally)) if tally.cells else ()

    def _bounded(self, part: SuppressedPart) -> tuple[SuppressedPart, SuppressionAudit]:
        try:
            return part, audit_suppression(part.tables, wanted=part.shown, seconds=self.effort.seconds)
        except InvalidTables as refusal:
            if not part.place:
                raise
            words = f"in {part.place}, {refusal.what}"
            raise InvalidTables(words, why=refusal.why, instead=refusal.instead, where=refusal.where) from None

    def _findings(self, target: SuppressedTables, tally: _BoundsTally) -> Iterator[Finding]:
        share = target.share
        open_cells = (
            f"a limit of {self.effort.seconds:g} seconds a question left the bounds of {tally.open_cells:,} of "
            f"{tally.cells:,} cells wider than they may be: more cells may follow, or fail"
        )
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows="the published tables and nothing else",
            coarsening=target.coarsening,
            partial=open_cells if tally.open_cells else None,
        )
        claims = {
            FOLLOW: "follow exactly",
            MIDDLE: f"can be told within {percent(share)} of whatever they hold, by the middle of their range",
            FAIL: f"fail a protection interval of ±{percent(share)} whatever they hold",
        }
        for kind, words in claims.items():
            claim, details = f"suppressed cells of {target.name} that {words}", tuple(tally.details[kind])
            yield proved_share(make, claim, tally.counts[kind], tally.cells, reference="published", details=details)
        for reference, (failing, occupied) in tally.judged.items():
            if occupied:
                claim = (
                    f"occupied suppressed cells of {target.name} that fail a protection interval of ±{percent(share)}"
                )
                yield proved_share(make, claim, failing, occupied, reference=reference)


class _BoundsTally:
    """What was found in one part after the other, added up."""

    def __init__(self, share: float) -> None:
        self.share, self.cells, self.open_cells = share, 0, 0
        self.counts = dict.fromkeys((FOLLOW, MIDDLE, FAIL), 0)
        self.details: dict[str, list[str]] = {kind: [] for kind in self.counts}
        self.judged: dict[Reference, tuple[int, int]] = {}  # occupied cells that fail their interval, of how many

    def add(self, part: SuppressedPart, audit: SuppressionAudit) -> None:
        """Count the cells of the next part: which follow, are known up to a share, or surely lack protection."""
        least, largest = audit.least, audit.largest
        near = (largest < UNBOUNDED) & (largest - least <= 2 * self.share * least)
        kinds = {FOLLOW: least == largest, MIDDLE: near, FAIL: audit.surely_unprotected(share=self.share)}
        self.cells += len(audit.cells)
        self.open_cells += int((~audit.reached).sum())
        for kind, which in kinds.items():
            self.counts[kind] += int(which.sum())
            for at in np.flatnonzero(which)[: max(MOST_DETAILS - len(self.details[kind]), 0)]:
                words = f"{part.name(int(audit.cells[at]))}: {_span(int(least[at]), int(largest[at]))}"
                self.details[kind].append(words)
        for reference, truth in open_truths(part.truths).items():
            failing, occupied = self.judged.get(reference, (0, 0))
            now = len(audit.unprotected(truth, share=self.share)), int((truth[audit.cells] > 0).sum())
            self.judged[reference] = failing + now[0], occupied + now[1]


def _span(least: int, largest: int) -> str:
    if largest >= UNBOUNDED // 2:
        return f"{least:,} or more"
    return f"{least:,}" if least == largest else f"{least:,} to {largest:,}"


def hidden_numbers(target: ExactTables) -> SuppressedTables | None:
    """The suppressed numbers of every place as linked tables; None where nothing is suppressed."""
    if target.hidden is None or not target.hidden.any():
        return None
    places = np.flatnonzero(target.hidden.any(axis=1))
    return SuppressedTables(target.name, _HiddenNumbers(target, places), target.coarsening)


@dataclass(frozen=True, eq=False)
class _HiddenNumbers:
    """One part a place: every number is the sum of cells that nobody published. The sums are the same everywhere."""

    target: ExactTables
    places: Integers = field(repr=False)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[SuppressedPart]:
        return (self._part(int(place)) for place in self.places)

    @cached_property
    def relations(self) -> Equations:
        """Unknown cells first, then the numbers: Σ cells − number = 0."""
        from scipy.sparse import csr_array, eye_array, hstack

        equations = self.target.equations
        matrix = csr_array(hstack([equations.matrix, -eye_array(equations.rows, dtype=np.int64)]))
        return Equations.of_matrix(matrix, [equations.name(row) for row in range(equations.rows)])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each cell and each number is called."""
        cells = (self.target.cell(unknown) for unknown in range(self.target.equations.size))
        return (*cells, *self.relations.names)

    def _part(self, place: int) -> SuppressedPart:
        target, equations = self.target, self.target.equations
        assert target.hidden is not None
        impossible = np.zeros(equations.size, dtype=np.bool_) if target.impossible is None else target.impossible
        shown = np.arange(self.relations.size) >= equations.size
        values = np.concatenate([np.zeros(equations.size, dtype=np.int64), target.values[place]])
        return SuppressedPart(
            LinkedTables(self.relations, values, np.concatenate([~impossible, target.hidden[place]])),
            self.names,
            shown,
            {
                reference: boxed(np.concatenate([counts[place], equations.of(counts[place])]))
                for reference, counts in open_truths(target.truths).items()
            },
            target.places[place],
        )


def extremes(
    piece: Equations,
    values: Integers,
    bounds: tuple[Integers, Integers],
    *,
    wanted: Booleans | None = None,
    seconds: float = SECONDS,
) -> tuple[Integers, Integers, Booleans, int]:
    """The range of each unknown (or of those that are `wanted`) of a connected piece A·x = values within bounds.

    Least and largest values, which of them are as narrow as the equations make them, and how many programs that took.
    Ranges are those of real numbers, and rounded inward: every whole solution lies in them. Programs share their
    solutions: whatever one of them finds widens the known range of all unknowns, and an unknown that was seen at a
    bound needs no program of its own.
    """
    asked = np.ones(piece.size, dtype=np.bool_) if wanted is None else wanted
    programs = _Programs(piece, values, bounds, time.monotonic() + seconds)
    first = programs.solve(np.zeros(piece.size), largest=False)
    if first is None:
        return *bounds, np.zeros(piece.size, dtype=np.bool_), programs.solved
    seen = [first, first]
    outer = [each.astype(np.float64) for each in bounds]
    reached = asked.copy()
    for unknown in np.flatnonzero(asked).tolist():
        for side in (0, 1):
            if abs(seen[side][unknown] - outer[side][unknown]) <= programs.near:
                continue  # a solution is there already
            cost = np.zeros(piece.size)
            cost[unknown] = 1.0
            found = programs.solve(cost, largest=bool(side))
            if found is None:
                reached[unknown] = False
            elif not np.isinf(found[unknown]):  # else nothing bounds it: what was known before stands
                outer[side][unknown] = found[unknown]
                seen = [np.minimum(seen[0], found), np.maximum(seen[1], found)]
    least = np.maximum(np.ceil(outer[0] - programs.near).astype(np.int64), bounds[0])
    largest = np.minimum(np.floor(outer[1] + programs.near).astype(np.int64), bounds[1])
    return least, np.maximum(largest, least), reached, programs.solved


class _Programs:
    """One linear model whose cost changes; the last basis stays feasible, and the primal simplex goes on from there."""

    def __init__(self, piece: Equations, values: Integers, bounds: tuple[Integers, Integers], ends: float) -> None:
        self.size, self.ends, self.solved = piece.size, ends, 0
        self.columns = np.arange(piece.size, dtype=np.int32)
        finite = bounds[1] < UNBOUNDED // 2  # what is left of no bound after something was taken off is none either
        self.model, self.names = highs_model(piece, (values, values), (bounds[0], np.where(finite, bounds[1], np.inf)))
        for option, value in (("simplex_strategy", PRIMAL_SIMPLEX), ("presolve", "off")):
            self.model.setOptionValue(option, value)
        scale = max(float(np.abs(each).max(initial=0)) for each in (values, bounds[0], bounds[1][finite]))
        self.near = NEAR + RELATIVE * scale

    def solve(self, cost: Floats, *, largest: bool) -> Floats | None:
        """Where the cost is least (or largest); infinite where nothing bounds it, None where time ended."""
        states = self.names.HighsModelStatus
        left = self.ends - time.monotonic()
        if left <= 0:
            return None
        self.model.setOptionValue("time_limit", self.model.getRunTime() + left)  # its clock runs on from run to run
        self.model.changeColsCost(self.size, self.columns, -cost if largest else cost)
        self.model.run()
        self.solved += 1
        state = self.model.getModelStatus()
        open_end = state in (states.kUnbounded, states.kUnboundedOrInfeasible)
        if open_end and cost.any():
            return np.where(cost != 0, np.inf, np.nan)
        if open_end or state == states.kInfeasible:
            raise InvalidTables(
                "the published numbers contradict each other",
                why="no numbers in the suppressed cells make all tables add up",
                instead="check that all tables count the same units, and what is said to bound them",
            )
        return np.array(self.model.getSolution().col_value) if state == states.kOptimal else None
