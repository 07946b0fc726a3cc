"""Attacks on tables: records from exact and from noisy ones, persons from means and medians."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from dualmandate.audit.effort import Effort, generator, parallel_map
from dualmandate.audit.equations import Floats, Integers
from dualmandate.audit.finding import Baseline, Finding, Range, Rate, Reference, nothing_to_compare
from dualmandate.audit.reconstruction.exact import AT_ONCE, Reconstruction, reconstruct, uncovered
from dualmandate.audit.reconstruction.noisy import most_likely, never_below_guessing
from dualmandate.audit.reconstruction.persons import (
    GroupStatistics,
    PersonReconstruction,
    Statistic,
    reconstruct_persons,
)
from dualmandate.audit.tables import ExactTables, NoisyTables, opened
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
        bare = uncovered(target.equations, target.hidden, target.impossible)
        chosen = np.flatnonzero(~np.broadcast_to(bare, len(target.places)))
        tally = _ReconstructionTally(target, chosen)
        for solved in self._solved(target, chosen):
            tally.add(solved)
            if tally.places % AT_ONCE == 0:
                self.effort.count(f"reconstructing places of {target.name}", tally.places, len(chosen))
        return tuple(self._findings(target, tally)) if target.places else ()

    def _solved(self, target: ExactTables, chosen: Integers) -> Iterator[Reconstruction]:
        done = 0
        part = slice(None) if len(chosen) == len(target.places) else chosen  # no copy where nothing is left out
        found = reconstruct(
            target.equations,
            target.values[part],
            hidden=None if target.hidden is None else target.hidden[part],
            impossible=target.impossible,
            seconds=self.effort.seconds,
            workers=self.effort.workers,
        )
        try:
            for solved in found:
                yield solved
                done += 1
        except InvalidTables as refusal:
            if len(target.places) == 1 or "contradict" not in refusal.what:
                raise
            words = f"in {target.places[int(chosen[done])]}, {refusal.what}"
            raise InvalidTables(words, why=refusal.why, instead=refusal.instead, where=refusal.where) from None

    def _findings(self, target: ExactTables, tally: _ReconstructionTally) -> Iterator[Finding]:
        late = (
            f"a limit of {self.effort.seconds:g} seconds a question left {tally.open_places:,} of {tally.places:,} "
            "places open: more may follow there"
        )
        missing = len(target.places) - tally.places
        bare = f"in {missing:,} places some cells are counted by no number that is shown, so that nothing bounds them"
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows=KNOWS_TABLES,
            coarsening=target.coarsening,
            partial="; ".join(words for words, said in ((late, tally.open_places), (bare, missing)) if said) or None,
        )
        yield make(
            claim=f"places whose every record follows from {target.name}",
            success=Rate(tally.unique, tally.places or missing),
            baselines=(nothing_to_compare(tally.places or missing),),
            reference="published",
            counted_in_full=True,
            details=tuple(tally.details),
        )
        if not tally.records:
            return
        yield make(
            claim=f"records that are in every file with {target.name}",
            success=Rate(tally.proved, tally.records),
            baselines=(nothing_to_compare(tally.records),),
            reference="published",
            counted_in_full=True,
        )
        least, most = (each / tally.records for each in tally.apart)
        yield make(
            claim=f"share of records in which two files with {target.name} can differ",
            success=Range(min(least, 1.0), min(max(most, least), 1.0), "of the records"),
            baselines=(Baseline("files that share no table", Range(1.0, 1.0, "of the records")),),
            reference="published",
        )
        for reference, truth in tally.truths.items():
            yield from _agreements(target.name, tally.right[reference], truth, partial(make, reference=reference))


class _ReconstructionTally:
    """What was found in one place after the other, added up: arrays of a place are let go once they are counted."""

    def __init__(self, target: ExactTables, chosen: Integers) -> None:
        self.target, self.chosen = target, chosen
        self.truths = {reference: truth[chosen] for reference, truth in opened(target.truths).items()}
        self.right: dict[Reference, int] = dict.fromkeys(self.truths, 0)
        self.places = self.unique = self.open_places = self.records = self.proved = 0
        self.apart = [0.0, 0.0]
        self.details: list[str] = []  # records that are proved to exist, for those inside

    def add(self, solved: Reconstruction) -> None:
        """Count what follows in the next place."""
        place, self.places = self.places, self.places + 1
        self.unique += solved.unique
        self.open_places += not solved.proved
        self.records += solved.records
        self.proved += solved.proved_records
        self.apart[0] += solved.apart or 0.0
        self.apart[1] += solved.most_apart or 0.0
        for reference, truth in self.truths.items():
            self.right[reference] += solved.right(truth[place])
        for unknown in np.flatnonzero(solved.least) if len(self.details) <= MOST_DETAILS else ():
            where, what = self.target.places[int(self.chosen[place])], self.target.cell(int(unknown))
            self.details.append(f"{where}: {solved.least[unknown]:,} × {what}")
            if len(self.details) >= MOST_DETAILS:
                self.details.append("…")
                break


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
        right, better = never_below_guessing(found, target.expected, truth)
        return Finding(
            attack=self.name,
            claim=f"records right in the most likely file behind {target.name} ({target.protection})"
            + ("" if better else "; the tables gave nothing beyond a guess, and it counts"),
            success=Rate(min(round(right), records), records),
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
        occupied = [  # elsewhere nobody lives, and nothing is to be found
            (place, statistics)
            for place, statistics in target.statistics.items()
            if {each.count for each in statistics if not each.group} != {0}
        ]
        found: dict[str, PersonReconstruction] = {}
        for place, solved in parallel_map(partial(self._solved, target), occupied, self.effort.workers):
            found[place] = solved
            self.effort.count(f"looking for the persons of {target.name}", len(found), len(occupied))
        return tuple(self._findings(target, found))

    def _solved(
        self, target: GroupStatistics, place: tuple[str, tuple[Statistic, ...]]
    ) -> tuple[str, PersonReconstruction]:
        name, statistics = place
        try:
            return name, reconstruct_persons(target.variables, statistics, seconds=self.effort.seconds)
        except InvalidTables as refusal:
            if len(target.statistics) == 1:
                raise
            words = f"in {name}, {refusal.what}"
            raise InvalidTables(words, why=refusal.why, instead=refusal.instead, where=refusal.where) from None

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
                success=Range(min(counts), max(counts), "a place"),
                baselines=(Baseline("without the statistics, at least", Range(*_lists(target, solved), "a place")),),
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
