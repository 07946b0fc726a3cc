"""The attack on suppressed cells: between which numbers each must lie, and whether that protects it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.effort import Effort, parallel_map
from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.finding import Finding, Rate, Reference, nothing_to_compare
from dualmandate.audit.reconstruction.propagation import UNBOUNDED
from dualmandate.audit.suppression.cells import LinkedTables, SuppressionAudit, audit_suppression
from dualmandate.audit.tables import ExactTables, Parts, Truths, boxed, check_truths, no_truths, opened
from dualmandate.errors import InvalidTables

MOST_DETAILS = 200
FOLLOW, FAIL, MIDDLE = "follow exactly", "fail", "middle"


@dataclass(frozen=True, eq=False)
class SuppressedPart:
    """Linked tables of one place and period. `shown` are the cells that were to be published; others only link them.

    `truths` give the values of all cells, suppressed ones too; shape (cells,).
    """

    tables: LinkedTables
    names: Sequence[str] = field(repr=False)  # of every cell
    shown: NDArray[np.bool_] | None = field(default=None, repr=False)
    truths: Truths = field(default_factory=no_truths, repr=False)
    place: str = ""  # and the period, in words; empty where there is one part only

    def __post_init__(self) -> None:
        check_truths(self.truths, self.tables.values.shape)

    def name(self, cell: int) -> str:
        """A cell, with its place."""
        return f"{self.place}: {self.names[cell]}" if self.place else self.names[cell]


@dataclass(frozen=True, eq=False)
class SuppressedTables:
    """Linked tables with suppressed cells, one part a place and period; all parts have truths of the same files."""

    name: str
    parts: Parts[SuppressedPart]
    coarsening: str
    share: float = 0.2  # of a value, within which nobody should be able to tell it


@dataclass(frozen=True)
class BoundSuppressed:
    """Between which numbers each suppressed cell must lie."""

    effort: Effort = field(default_factory=Effort)
    name: str = "bounds of suppressed cells"
    needs: str = "linked tables that add up, with marks where a cell is suppressed"

    def run(self, target: SuppressedTables, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """Cells that follow exactly, cells that can be told within a share, and protection intervals that fail."""
        tally = _BoundsTally(target.share)
        for number, bounded in enumerate(parallel_map(self._bounded, target.parts, self.effort.workers)):
            tally.add(bounded)
            self.effort.count(f"bounding the suppressed cells of {target.name}", number + 1, len(target.parts))
        return tuple(self._findings(target, tally)) if tally.cells else ()

    def _bounded(self, part: SuppressedPart) -> _PartBounds:
        try:
            audit = audit_suppression(part.tables, wanted=part.shown, seconds=self.effort.seconds)
        except InvalidTables as refusal:
            if not part.place:
                raise
            words = f"in {part.place}, {refusal.what}"
            raise InvalidTables(words, why=refusal.why, instead=refusal.instead, where=refusal.where) from None
        shown = np.ones(len(audit.cells), dtype=np.bool_) if part.shown is None else part.shown[audit.cells]
        return _PartBounds(part, audit, shown)

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
            counted_in_full=True,
            partial=open_cells if tally.open_cells else None,
        )
        claims = {
            FOLLOW: "follow exactly",
            MIDDLE: f"can be told within {share:.0%} of whatever they hold, by the middle of their range",
            FAIL: f"fail a protection interval of ±{share:.0%} whatever they hold",
        }
        for kind, words in claims.items():
            yield make(
                claim=f"suppressed cells of {target.name} that {words}",
                success=Rate(tally.counts[kind], tally.cells),
                baselines=(nothing_to_compare(tally.cells),),
                reference="published",
                details=tuple(tally.details[kind]),
            )
        for reference, (failing, occupied) in tally.judged.items():
            if occupied:
                yield make(
                    claim=f"occupied suppressed cells of {target.name} that fail a protection interval of ±{share:.0%}",
                    success=Rate(failing, occupied),
                    baselines=(nothing_to_compare(occupied),),
                    reference=reference,
                )


@dataclass(frozen=True, eq=False)
class _PartBounds:
    """The bounds of one part; `shown` says which of its suppressed cells were to be published."""

    part: SuppressedPart
    audit: SuppressionAudit
    shown: NDArray[np.bool_]

    def those_that(self, share: float) -> dict[str, NDArray[np.bool_]]:
        """Which suppressed cells follow, are known up to a share of whatever they hold, or surely lack protection."""
        least, largest = self.audit.least, self.audit.largest
        near = (largest < UNBOUNDED) & (largest - least <= 2 * share * least)
        kinds = {FOLLOW: least == largest, MIDDLE: near, FAIL: self.audit.surely_unprotected(share=share)}
        return {kind: np.asarray(self.shown & which) for kind, which in kinds.items()}

    def named(self, which: NDArray[np.bool_]) -> Iterator[str]:
        """Some cells with their bounds, for those inside."""
        for place in np.flatnonzero(which):
            span = _span(int(self.audit.least[place]), int(self.audit.largest[place]))
            yield f"{self.part.name(int(self.audit.cells[place]))}: {span}"

    def failing(self, reference: Reference, share: float) -> tuple[int, int]:
        """How many occupied suppressed cells fail their protection interval, and how many there are."""
        truth = opened(self.part.truths)[reference]
        cells = self.audit.cells[self.shown]
        occupied = cells[truth[cells] > 0]
        return len(np.intersect1d(self.audit.unprotected(truth, share=share), occupied)), len(occupied)


class _BoundsTally:
    """What was found in one part after the other, added up."""

    def __init__(self, share: float) -> None:
        self.share, self.cells, self.open_cells = share, 0, 0
        self.counts = dict.fromkeys((FOLLOW, MIDDLE, FAIL), 0)
        self.details: dict[str, list[str]] = {kind: [] for kind in self.counts}
        self.judged: dict[Reference, tuple[int, int]] = {}

    def add(self, bounded: _PartBounds) -> None:
        """Count the cells of the next part."""
        self.cells += int(bounded.shown.sum())
        self.open_cells += int((bounded.shown & ~bounded.audit.reached).sum())
        for kind, which in bounded.those_that(self.share).items():
            self.counts[kind] += int(which.sum())
            for line in bounded.named(which):
                if len(self.details[kind]) >= MOST_DETAILS:
                    break
                self.details[kind].append(line)
        for reference in bounded.part.truths:
            before = self.judged.get(reference, (0, 0))
            now = bounded.failing(reference, self.share)
            self.judged[reference] = before[0] + now[0], before[1] + now[1]


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
                for reference, counts in opened(target.truths).items()
            },
            target.places[place],
        )
