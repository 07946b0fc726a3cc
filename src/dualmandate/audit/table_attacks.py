"""Attacks on tables: records from exact and from noisy ones, persons from means, bounds of what is suppressed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.finding import Baseline, Effort, Finding, Range, Reference, nothing_to_compare
from dualmandate.audit.noisy import most_likely
from dualmandate.audit.old_methods import generator
from dualmandate.audit.persons import PersonReconstruction, reconstruct_persons
from dualmandate.audit.places import shown_parts
from dualmandate.audit.propagation import UNBOUNDED, propagate
from dualmandate.audit.rates import Rate
from dualmandate.audit.reconstruction import AT_ONCE, Reconstruction, reconstruct
from dualmandate.audit.suppression import SuppressionAudit, audit_suppression
from dualmandate.audit.targets import (
    ExactTables,
    Floats,
    GroupStatistics,
    NoisyTables,
    SuppressedPart,
    SuppressedTables,
    opened,
)
from dualmandate.errors import InvalidTables

MOST_DETAILS = 200
KNOWS_TABLES = "the published tables and nothing else"


@dataclass(frozen=True)
class ReconstructExact:
    """Which records the tables of each place leave possible, with proof."""

    effort: Effort = field(default_factory=Effort)
    name: str = "reconstruction from exact tables"
    needs: str = "tables published exactly, in whole numbers"

    def run(self, target: ExactTables, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """Places and records that follow, how far two files may differ, and what share is right where a truth is."""
        self.effort.say(f"reconstructing {len(target.places):,} places of {target.name}")
        found: dict[int, Reconstruction] = {}
        for chosen, equations, values in shown_parts(target):
            for place, solved in zip(chosen.tolist(), self._solved(target, chosen, equations, values), strict=True):
                found[place] = solved
                if len(found) % AT_ONCE == 0:
                    self.effort.say(f"reconstructed {len(found):,} of {len(target.places):,} places of {target.name}")
        return tuple(self._findings(target, dict(sorted(found.items())))) if found else ()

    def _solved(
        self, target: ExactTables, chosen: Integers, equations: Equations, values: Integers
    ) -> Iterator[Reconstruction]:
        done = 0
        try:
            for solved in reconstruct(
                equations,
                values,
                impossible=target.impossible,
                seconds=self.effort.seconds,
                workers=self.effort.workers,
            ):
                yield solved
                done += 1
        except InvalidTables as refusal:
            most = None if target.impossible is None else np.where(target.impossible, 0, UNBOUNDED)
            wrong = np.flatnonzero(propagate(equations, values[done:], values[done:], most=most)[2])
            if not len(wrong) or len(target.places) == 1:
                raise
            where = target.places[int(chosen[done + int(wrong[0])])]
            words = f"in {where}, {refusal.what}"
            raise InvalidTables(words, why=refusal.why, instead=refusal.instead, where=refusal.where) from None

    def _findings(self, target: ExactTables, solved: dict[int, Reconstruction]) -> Iterator[Finding]:
        found = list(solved.values())
        open_places = sum(not each.proved for each in found)
        late = (
            f"a limit of {self.effort.seconds:g} seconds a question left {open_places:,} of {len(found):,} places open"
        )
        missing = len(target.places) - len(found)
        bare = f"in {missing:,} places some cells are counted by no number that is shown, so that nothing bounds them"
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows=KNOWS_TABLES,
            coarsening=target.coarsening,
            partial="; ".join(words for words, said in ((late, open_places), (bare, missing)) if said) or None,
        )
        unique = Rate(sum(each.unique for each in found), len(found))
        yield make(
            claim=f"places whose every record follows from {target.name}",
            success=unique,
            baselines=(nothing_to_compare(len(found)),),
            reference="published",
            counted_in_full=True,
            details=_proved(target, solved),
        )
        records = sum(each.records for each in found)
        if not records:
            return
        yield make(
            claim=f"records that are in every file with {target.name}",
            success=Rate(sum(each.proved_records for each in found), records),
            baselines=(nothing_to_compare(records),),
            reference="published",
            counted_in_full=True,
        )
        apart = [sum(each.apart or 0.0 for each in found), sum(each.most_apart or 0.0 for each in found)]
        yield make(
            claim=f"share of records in which two files with {target.name} can differ",
            success=Range(apart[0] / records, min(max(apart[1], apart[0]) / records, 1.0), "of the records"),
            baselines=(Baseline("files that share no table", Range(1.0, 1.0, "of the records")),),
            reference="published",
        )
        for reference, truth in opened(target.truths).items():
            own = truth[list(solved)]
            right = sum(each.right(true) for each, true in zip(found, own, strict=True))
            yield from _agreements(target.name, right, own, partial(make, reference=reference))


def _proved(target: ExactTables, solved: dict[int, Reconstruction]) -> tuple[str, ...]:
    """Records that are proved to exist, for those inside."""
    lines: list[str] = []
    for place, each in solved.items():
        for unknown in np.flatnonzero(each.least):
            if len(lines) >= MOST_DETAILS:
                return (*lines, "…")
            lines.append(f"{target.places[place]}: {each.least[unknown]:,} × {target.cell(int(unknown))}")
    return tuple(lines)


def guess(truth: Integers) -> Floats:
    """What somebody expects of each place who knows its size and everybody elsewhere; of a single place, equal shares.

    Shape as `truth`: (places, cells).
    """
    sizes = truth.sum(axis=1, keepdims=True).astype(np.float64)
    if len(truth) == 1:
        return np.asarray(np.full(truth.shape, 1.0 / truth.shape[1]) * sizes)
    others = truth.sum(axis=0, keepdims=True) - truth
    totals = others.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, others / np.maximum(totals, 1), 1.0 / truth.shape[1])
    return np.asarray(shares * sizes)


def guessers(truth: Integers, expected: Floats) -> tuple[Baseline, Baseline]:
    """How many records those get right who draw in proportion to what they expect, or say the most expected cell."""
    records = int(truth.sum())
    drawn = min(round(float(np.minimum(expected, truth).sum())), records)
    modal = int(np.take_along_axis(truth, expected.argmax(axis=1)[:, None], axis=1).sum())
    return Baseline("proportional guesser", Rate(drawn, records)), Baseline("modal guesser", Rate(modal, records))


def _agreements(name: str, right: int, truth: Integers, make: Callable[..., Finding]) -> Iterator[Finding]:
    records = int(truth.sum())
    if records:
        yield make(
            claim=f"records reconstructed right from {name}",
            success=Rate(right, records),
            baselines=guessers(truth, guess(truth)),
        )


@dataclass(frozen=True)
class ReconstructNoisy:
    """The most likely records behind tables with noise, rounding or swapping."""

    effort: Effort = field(default_factory=Effort)
    name: str = "reconstruction from noisy tables"
    needs: str = "tables with the scale of their errors, and what is expected of a place beforehand"

    def run(self, target: NoisyTables, key: bytes, /) -> tuple[Finding, ...]:
        """The share of records that is right, beside guessers who have no tables.

        Without a truth the attack is run on populations drawn from what is expected, published the same way.
        """
        self.effort.say(f"reconstructing {len(target.published):,} places of {target.name}")
        truths, published = opened(target.truths), target.published
        if not truths:
            draws = generator(key, f"noisy tables: {target.name}")
            drawn = draws.poisson(target.expected).astype(np.int64)
            published = target.equations.of(drawn) + draws.laplace(0.0, 1.0, published.shape) * target.scales
            truths = {"synthetic": drawn}
        found = most_likely(target.equations, published, scales=target.scales, expected=target.expected)
        return tuple(
            self._judged(target, found, reference, truth) for reference, truth in truths.items() if truth.sum()
        )

    def _judged(self, target: NoisyTables, found: Floats, reference: Reference, truth: Integers) -> Finding:
        records = int(truth.sum())
        return Finding(
            attack=self.name,
            claim=f"records right in the most likely file behind {target.name} ({target.protection})",
            success=Rate(min(round(float(np.minimum(found, truth).sum())), records), records),
            baselines=guessers(truth, target.expected),
            attacker_knows=f"the tables, how their errors were made, and {target.prior}",
            coarsening=target.coarsening,
            reference=reference,
        )


@dataclass(frozen=True)
class ReconstructPersons:
    """Every list of persons with the published counts, means and medians."""

    effort: Effort = field(default_factory=Effort)
    name: str = "persons from means and medians"
    needs: str = "counts, means or medians of groups of at most 30 persons"

    def run(self, target: GroupStatistics, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """How many lists there are, and which persons are in all of them."""
        found: dict[str, PersonReconstruction] = {}
        for place, statistics in target.statistics.items():
            if {each.count for each in statistics if not each.group} == {0}:
                continue  # nobody lives there, and nothing is to be found
            self.effort.say(f"looking for the persons of {place}")
            found[place] = reconstruct_persons(target.variables, statistics, seconds=self.effort.seconds)
        return tuple(self._findings(target, found))

    def _findings(self, target: GroupStatistics, found: dict[str, PersonReconstruction]) -> Iterator[Finding]:
        late = [place for place, each in found.items() if not each.complete]
        words = f"time or the number of solutions ended the search in {len(late):,} of {len(found):,} places"
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows="the published statistics and the rules that go with them",
            coarsening=target.coarsening,
            reference="published",
            partial=words if late else None,
        )
        solved = {place: each for place, each in found.items() if each.solutions}
        if found:
            yield make(
                claim=f"places whose persons follow from {target.name}",
                success=Rate(sum(each.unique for each in found.values()), len(found)),
                baselines=(nothing_to_compare(len(found)),),
                counted_in_full=True,
            )
        if solved:
            counts = [len(each.solutions) for each in solved.values()]
            yield make(
                claim=f"lists of persons with {target.name}" + (", at least" if late else ""),
                success=Range(min(counts), max(counts), "lists a place"),
                baselines=(
                    Baseline("without the statistics, at least", Range(*_lists(target, solved), "lists a place")),
                ),
            )
            persons = sum(len(each.solutions[0]) for each in solved.values())
            yield make(
                claim=f"persons that are in every list with {target.name}",
                success=Rate(sum(len(each.common) for each in solved.values() if each.complete), persons),
                baselines=(nothing_to_compare(persons),),
                counted_in_full=True,
                details=tuple(
                    f"{place}: {number} {' '.join(kind)}"
                    for place, each in solved.items()
                    for number, kind in each.common
                )[:MOST_DETAILS],
            )


def _lists(target: GroupStatistics, solved: dict[str, PersonReconstruction]) -> tuple[float, float]:
    """How many lists of so many persons there are at all: choices with repetition among numbers and kinds."""
    from math import comb

    kinds = len(target.variables.kinds) * (target.variables.largest - target.variables.least + 1)
    sizes = [len(each.solutions[0]) for each in solved.values()]
    return float(comb(kinds + min(sizes) - 1, min(sizes))), float(comb(kinds + max(sizes) - 1, max(sizes)))


@dataclass(frozen=True)
class BoundSuppressed:
    """Between which numbers each suppressed cell must lie."""

    effort: Effort = field(default_factory=Effort)
    name: str = "bounds of suppressed cells"
    needs: str = "linked tables that add up, with marks where a cell is suppressed"

    def run(self, target: SuppressedTables, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        """Cells that follow exactly, and cells that can be told within a share of their value."""
        found: list[_Bounded] = []
        for number, part in enumerate(target.parts):
            self.effort.say(f"bounding the suppressed cells of {target.name}, part {number + 1} of {len(target.parts)}")
            audit = audit_suppression(part.tables)
            shown = np.ones(len(audit.cells), dtype=np.bool_) if part.shown is None else part.shown[audit.cells]
            found.append(_Bounded(part, audit, shown))
        return tuple(self._findings(target, found)) if any(each.shown.any() for each in found) else ()

    def _findings(self, target: SuppressedTables, found: list[_Bounded]) -> Iterator[Finding]:
        count, share = sum(int(each.shown.sum()) for each in found), target.share
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows=KNOWS_TABLES,
            coarsening=target.coarsening,
            counted_in_full=True,
        )
        for claim, which in (
            (f"suppressed cells of {target.name} that follow exactly", [each.within(0.0) for each in found]),
            (
                f"suppressed cells of {target.name} whose middle is within {share:.0%} of whatever they hold",
                [each.within(share) for each in found],
            ),
        ):
            yield make(
                claim=claim,
                success=Rate(sum(int(each.sum()) for each in which), count),
                baselines=(nothing_to_compare(count),),
                reference="published",
                details=tuple(line for each, some in zip(found, which, strict=True) for line in each.named(some))[
                    :MOST_DETAILS
                ],
            )
        for reference in target.parts[0].truths:
            exposed, occupied = (
                sum(each) for each in zip(*(each.exposed(reference, share) for each in found), strict=True)
            )
            if occupied:
                yield make(
                    claim=f"suppressed cells of {target.name} that can be told within {share:.0%} on one side",
                    success=Rate(exposed, occupied),
                    baselines=(nothing_to_compare(occupied),),
                    reference=reference,
                )


@dataclass(frozen=True, eq=False)
class _Bounded:
    """The bounds of one part; `shown` says which of its suppressed cells were to be published."""

    part: SuppressedPart
    audit: SuppressionAudit
    shown: NDArray[np.bool_]

    def within(self, share: float) -> NDArray[np.bool_]:
        """Which suppressed cells are known up to a share of whatever they hold; of 0, exactly."""
        least, largest = self.audit.least, self.audit.largest
        return np.asarray(self.shown & (largest < UNBOUNDED) & (largest - least <= 2 * share * least))

    def named(self, which: NDArray[np.bool_]) -> Iterator[str]:
        """Some cells with their bounds, for those inside."""
        for place in np.flatnonzero(which):
            span = _span(int(self.audit.least[place]), int(self.audit.largest[place]))
            yield f"{self.part.names[self.audit.cells[place]]}: {span}"

    def exposed(self, reference: Reference, share: float) -> tuple[int, int]:
        """How many occupied suppressed cells can be told on one side, and how many there are."""
        truth = opened(self.part.truths)[reference]
        cells = self.audit.cells[self.shown]
        occupied = cells[truth[cells] > 0]
        return len(np.intersect1d(self.audit.unprotected(truth, share=share), occupied)), len(occupied)


def _span(least: int, largest: int) -> str:
    if largest >= UNBOUNDED:
        return f"{least:,} or more"
    return f"{least:,}" if least == largest else f"{least:,} to {largest:,}"
