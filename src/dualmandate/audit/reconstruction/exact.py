"""Records from exact tables: which files of records could have been tabulated so, and how far these differ.

For every place (a block): bounds by propagation, the rest in pieces, each piece listed or solved. One solution proves
what every record of the place was. Source of the question: [GAM18]; of the measure:
solution variability in [ABCD23], the largest distance between two solutions as a share of the records.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.finding import (
    MOST_DETAILS,
    Baseline,
    Finding,
    Range,
    Rate,
    Reference,
    ResultTable,
    proved_share,
)
from dualmandate.audit.options import SECONDS, Effort, parallel_map
from dualmandate.audit.reconstruction.noisy import guess, guessers
from dualmandate.audit.reconstruction.solving import (
    UNBOUNDED,
    contradiction,
    enumerate_piece,
    farthest,
    farthest_apart,
    first_solution,
    piece_equations,
    pieces,
    propagate,
    ranges,
)
from dualmandate.audit.tables import Equations, ExactTables, checked_values, open_truths
from dualmandate.errors import InvalidTables
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.population.labels import label_of

KNOWS_TABLES = "the published tables and nothing else"
AT_ONCE = 64  # A piece of work holds this many places.
PLACE_COLUMNS = (
    *("place", "people", "solutions", "all_solutions", "unique", "variability", "proved_records", "proved"),
    *("seconds", "contradiction"),
)
SIZE_COLUMNS = (
    *("people_in_a_place", "places", "people", "unique_places", "people_in_unique_places", "proved_records"),
    "mean_variability",
)
PLACE_SIZES = (0, 1, 10, 50, 100, 250, 500, 1_000)  # where groups of places by their people begin
MOST_WRITTEN = 2**21  # kinds of records, in all places, that are written out inside
TOLD = 5  # At most this many places that contradict themselves are named.
CONTRADICT = "the tables contradict each other"
MANY = 1024  # Hidden numbers of this many places are looked at together.


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What exact tables give away of one place, or of a piece of it.

    `counts` is one file of records that has these tables, None where none was found in time. `least` and `largest`
    bound each cell over all such files: a record of a cell with least ≥ 1 was proved present. `solutions` is how many
    files there are, at least; `all_solutions` whether that is all of them. Distances count records that differ between
    two files; `variability` as a share of all records, at most 1.
    """

    counts: Integers | None = field(repr=False)
    least: Integers = field(repr=False)
    largest: Integers = field(repr=False)
    solutions: int
    all_solutions: bool
    apart: float | None  # records that differ between two solutions, at least; None where not asked for
    most_apart: float | None  # and at most
    proved: bool  # bounds and distances are those of the solutions, not of an attack that ran out of time
    seconds: float = 0.0  # that it took, after bounds were propagated

    @property
    def records(self) -> int:
        """Number of records, as far as it is known."""
        return int((self.least if self.counts is None else self.counts).sum())

    @property
    def unique(self) -> bool:
        """Whether it is proved that these are the records."""
        return self.all_solutions and self.solutions == 1

    @property
    def variability(self) -> float | None:
        """Solution variability: 0 where the tables determine every record; an upper bound where not `proved`."""
        if self.most_apart is None:
            return None
        return self.most_apart / self.records if self.records else 0.0

    def right(self, truth: NDArray[Any]) -> int:
        """How many of the true records are in the file that was found."""
        return 0 if self.counts is None else int(np.minimum(self.counts, truth).sum())

    @property
    def proved_records(self) -> int:
        """Records that are in every file with these tables."""
        return int(self.least.sum())


def reconstruct_or_refuse(
    equations: Equations,
    values: NDArray[Any],
    *,
    hidden: Booleans | None = None,
    impossible: Booleans | None = None,
    variability: bool = True,
    seconds: float = SECONDS,
    workers: int = 1,
) -> Iterator[Reconstruction | InvalidTables]:
    """What the tables of each place give away, place after place; shape of `values`: (places, rows).

    `hidden` marks suppressed numbers in the same shape: what stands there is not looked at. `impossible` marks
    structural zeros. Where the tables of a place contradict each other, a refusal stands in its place; of some places
    in a row the first names a smallest set that does.
    """
    whole = checked_values(equations, values if hidden is None else np.where(hidden, 0, values))
    marks = None if hidden is None else np.atleast_2d(hidden)
    most = None if impossible is None else np.where(impossible, 0, UNBOUNDED)
    ask = _Question(equations, most, variability, seconds)
    starts = range(0, len(whole), AT_ONCE)
    chunks = (
        (whole[start : start + AT_ONCE], None if marks is None else marks[start : start + AT_ONCE]) for start in starts
    )
    bare = uncovered(equations, marks, impossible)
    if bare.any():
        place = f" in {int(bare.sum()):,} of {len(bare):,} places" if hidden is not None else ""
        raise InvalidTables(
            f"some cells are counted in no table{place}",
            why="nothing bounds how many records they hold",
            instead="add a table that counts everybody, or mark cells that cannot occur",
        )
    for found in parallel_map(ask, chunks, workers):
        yield from found


def reconstruct(
    equations: Equations,
    values: NDArray[Any],
    **asked: Any,
) -> Iterator[Reconstruction]:
    """What the tables of each place give away, as `reconstruct_or_refuse` asks it.

    Tables that contradict each other are refused with a smallest set that does, after the places before them.
    """
    for each in reconstruct_or_refuse(equations, values, **asked):
        if isinstance(each, InvalidTables):
            raise each
        yield each


def uncovered(equations: Equations, hidden: Booleans | None, impossible: Booleans | None) -> Booleans:
    """Places in which some possible cell is counted by no number that is shown; one answer where nothing is hidden.

    `hidden` has shape (places, rows), `impossible` (unknowns,).
    """
    counted = (equations.matrix > 0).astype(np.int64)
    marks = np.zeros((1, equations.rows), dtype=np.bool_) if hidden is None else hidden
    possible = slice(None) if impossible is None else ~impossible
    parts = [np.zeros(0, dtype=np.bool_)]
    for start in range(0, len(marks), MANY):
        shown = (~marks[start : start + MANY]).astype(np.int64)
        parts.append(((counted.T @ shown.T)[possible] == 0).any(axis=0))
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class _Question:
    equations: Equations
    most: Integers | None
    variability: bool
    seconds: float

    def __call__(self, chunk: tuple[Integers, Booleans | None]) -> list[Reconstruction | InvalidTables]:
        """Some places; the first one that contradicts itself says by which numbers."""
        values, hidden = chunk
        upper = values if hidden is None else np.where(hidden, UNBOUNDED, values)
        low, high, contradicting = propagate(self.equations, values, upper, most=self.most)
        found: list[Reconstruction | InvalidTables] = []
        named: InvalidTables | None = None
        for place, own in enumerate(values):
            shown = None if hidden is None or not hidden[place].any() else ~hidden[place]
            began = time.perf_counter()
            solved = None if contradicting[place] else self._place(own, shown, low[place], high[place])
            if solved is not None:
                found.append(replace(solved, seconds=time.perf_counter() - began))
            elif named is None:
                named = self._contradiction(own, shown)
                found.append(named)
            else:  # a smallest set may take seconds to prove
                found.append(InvalidTables(CONTRADICT, why=named.why, instead=named.instead))
        return found

    def _contradiction(self, values: Integers, shown: Booleans | None) -> InvalidTables:
        rows = np.arange(self.equations.rows) if shown is None else np.flatnonzero(shown)
        return contradiction(self.equations.only(rows), values[rows], self.most, seconds=self.seconds)

    def _place(self, values: Integers, shown: Booleans | None, low: Integers, high: Integers) -> Reconstruction | None:
        """One place; None where its tables contradict each other."""
        counts: Integers | None = low.copy()
        least, largest = low.copy(), high.copy()
        solutions, complete, proved, apart, most_apart = 1, True, True, 0.0, 0.0
        for free in pieces(self.equations, low, high, shown):
            piece, *left = piece_equations(self.equations, free, (values, values), low, shown)
            found = self._piece(piece, (left[0], left[1]), (low[free], high[free]))
            if found is None:
                return None
            least[free], largest[free] = found.least, found.largest
            if found.counts is None:
                counts = None
            elif counts is not None:
                counts[free] = found.counts
            solutions *= max(found.solutions, 1)
            complete, proved = complete and found.all_solutions, proved and found.proved
            apart, most_apart = apart + (found.apart or 0.0), most_apart + (found.most_apart or 0.0)
        shortest, longest = (apart, most_apart) if self.variability else (None, None)
        return Reconstruction(counts, least, largest, solutions, complete, shortest, longest, proved)

    # Σ|x − x′| counts a record that moved twice, where it left and where it arrived: distances are half of it.
    def _piece(self, piece: Equations, values: Any, bounds: Any) -> Reconstruction | None:
        listed, complete = enumerate_piece(piece, values, bounds)
        if complete:
            if not len(listed):
                return None
            gap, ends = farthest(listed) / 2 if self.variability else None, (listed.min(axis=0), listed.max(axis=0))
            return Reconstruction(listed[0], *ends, len(listed), True, gap, gap, True)
        solution = listed[0] if len(listed) else None
        if solution is None:
            state, solution = first_solution(piece, values, bounds, seconds=self.seconds)
            if state == "impossible":
                return None
        return self._large(piece, values, bounds, listed, solution)

    def _large(
        self, piece: Equations, values: Any, bounds: Any, listed: Integers, solution: Integers | None
    ) -> Reconstruction:
        found = max(len(listed), 0 if solution is None else 1)
        if solution is None or not self.variability:
            width = float((bounds[1] - bounds[0]).sum()) / 2
            return Reconstruction(solution, bounds[0], bounds[1], found, False, 0.0, width, False)
        gap = farthest_apart(piece, values, bounds, seconds=self.seconds)
        if gap.most == 0:
            return Reconstruction(solution, solution, solution, 1, True, 0.0, 0.0, True)
        known = np.vstack([listed, solution, *([] if gap.ends is None else gap.ends)])
        least, largest, proved = ranges(piece, values, bounds, known=known, seconds=self.seconds)
        proved &= gap.found == gap.most
        return Reconstruction(solution, least, largest, found, False, gap.found / 2, gap.most / 2, proved)


def reconstruct_places(
    target: ExactTables, effort: Effort, words: str, *, variability: bool = True
) -> Iterator[tuple[int, Reconstruction | InvalidTables]]:
    """Each place whose cells are all counted by numbers that are shown, and what its tables give away.

    Where they contradict each other that is what stands there, as a refusal that names the place; where they do so
    everywhere, it is raised. Whoever listens is told in `words` how many are done.
    """
    bare = uncovered(target.equations, target.hidden, target.impossible)
    chosen = np.flatnonzero(~np.broadcast_to(bare, len(target.places)))
    part = slice(None) if len(chosen) == len(target.places) else chosen  # no copy where nothing is left out
    values, hidden = target.values[part], None if target.hidden is None else target.hidden[part]
    limits: dict[str, Any] = {"seconds": effort.seconds, "workers": effort.workers, "variability": variability}
    found = reconstruct_or_refuse(target.equations, values, hidden=hidden, impossible=target.impossible, **limits)
    first, refused = None, 0
    for done, each in enumerate(found):
        place = int(chosen[done])
        told = _in_place(each, target, place) if isinstance(each, InvalidTables) else each
        if isinstance(told, InvalidTables):
            first, refused = first or told, refused + 1
        yield place, told
        if (done + 1) % AT_ONCE == 0:
            effort.count(words, done + 1, len(chosen))
    if first is not None and refused == len(chosen):
        raise first


def _in_place(refusal: InvalidTables, target: ExactTables, place: int) -> InvalidTables:
    if len(target.places) == 1:
        return refusal
    where = f"in {target.places[place]}, {refusal.what}"
    return InvalidTables(where, why=refusal.why, instead=refusal.instead, where=refusal.where)


@dataclass(frozen=True)
class ExactTablesAttack:
    """Which records the tables of each place leave possible, with proof."""

    effort: Effort = field(default_factory=Effort)
    name: str = "reconstruction from exact tables"

    def run(self, target: ExactTables, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        tally = _ReconstructionTally(target)
        for place, solved in reconstruct_places(target, self.effort, f"reconstructing places of {target.name}"):
            if isinstance(solved, InvalidTables):
                tally.refuse(place, solved)
            else:
                tally.add(place, solved)
        return tuple(self._findings(target, tally)) if target.places else ()

    def _findings(self, target: ExactTables, tally: _ReconstructionTally) -> Iterator[Finding]:
        late = (
            f"a limit of {self.effort.seconds:g} seconds a question left {tally.open_places:,} of {tally.places:,} "
            "places open: more may follow there"
        )
        contradicting = len(tally.contradicting)
        missing = len(target.places) - tally.places - contradicting
        bare = f"in {missing:,} places some cells are counted by no number that is shown, so that nothing bounds them"
        skipped = (
            f"in {contradicting:,} of {len(target.places):,} places the tables contradict each other, so that they "
        )
        skipped += f"were left out: {'; '.join(tally.contradicting[:TOLD])}" + ("; …" * (contradicting > TOLD))
        said_of = ((late, tally.open_places), (bare, missing), (skipped, contradicting))
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows=KNOWS_TABLES,
            coarsening=target.coarsening,
            partial="; ".join(words for words, said in said_of if said) or None,
        )
        proved = partial(proved_share, partial(make, reference="published"))
        places, details = tally.places or missing, tuple(tally.details)
        claim = f"places whose every record follows from {target.name}"
        yield proved(claim, tally.unique, places, details=details, tables=tally.tables())
        if not tally.records:
            return
        yield proved(f"records that are in every file with {target.name}", tally.proved, tally.records)
        least, most = (each / tally.records for each in tally.apart)
        yield make(
            claim=f"share of records in which two files with {target.name} can differ",
            success=Range(min(least, 1.0), min(max(most, least), 1.0), "of the records"),
            baselines=(Baseline("files that share no table", Range(1.0, 1.0, "of the records")),),
            reference="published",
        )
        for reference, everywhere in tally.truths.items():
            truth, claim = everywhere[tally.chosen], f"records reconstructed right from {target.name}"
            if truth.any():
                rate, beside = Rate(tally.right[reference], int(truth.sum())), guessers(truth, guess(truth))
                yield make(claim=claim, success=rate, baselines=beside, reference=reference)


class _ReconstructionTally:
    """What was found in one place after the other, added up: arrays of a place are let go once they are counted."""

    kinds = 0  # of records, in all places, that are kept to be written

    def __init__(self, target: ExactTables) -> None:
        self.target, self.truths = target, open_truths(target.truths)
        self.right: dict[Reference, int] = dict.fromkeys(self.truths, 0)
        self.chosen = np.zeros(len(target.places), dtype=np.bool_)
        self.places = self.unique = self.open_places = self.records = self.proved = 0
        self.apart = [0.0, 0.0]
        self.contradicting: list[str] = []
        self.rows: list[tuple[object, ...]] = []
        self.found: list[tuple[int, Integers, Reconstruction]] = []  # cells of a place that may be occupied
        self.details: list[str] = []  # records that are proved to exist, for those inside

    def refuse(self, place: int, refusal: InvalidTables) -> None:
        """A place whose tables contradict each other."""
        self.contradicting.append(refusal.what)
        self.rows.append((self.target.places[place], *[None] * (len(PLACE_COLUMNS) - 2), refusal.what))

    def tables(self) -> tuple[ResultTable, ...]:
        """One row a place; sizes of places as the literature groups them; and, inside, the records that were found."""
        places = dict(zip(PLACE_COLUMNS, zip(*self.rows, strict=True), strict=True)) if self.rows else {}
        return (ResultTable("places", places), ResultTable("place-sizes", self._sizes()), self._records())

    def _sizes(self) -> dict[str, list[object]]:
        found: dict[str, list[object]] = {name: [] for name in SIZE_COLUMNS}
        solved = [row for row in self.rows if row[1] is not None]
        people = np.array([row[1] for row in solved], dtype=np.int64)
        numbers = {name: np.array([row[i] for row in solved]) for i, name in enumerate(PLACE_COLUMNS) if 0 < i < 8}
        for least, next_least in zip(PLACE_SIZES, (*PLACE_SIZES[1:], None), strict=True):
            own = (people >= least) & (people < (next_least or np.inf))
            lived = int(people[own].sum())
            unique = numbers["unique"][own].astype(np.bool_)
            row = (
                f"{least:,} or more" if next_least is None else f"{least:,} to {next_least - 1:,}",
                int(own.sum()),
                lived,
                int(unique.sum()),
                int(people[own][unique].sum()),
                int(numbers["proved_records"][own].sum()),
                float(numbers["variability"][own].astype(np.float64).mean()) if own.any() else None,
            )
            for name, value in zip(SIZE_COLUMNS, row, strict=True):
                found[name].append(value)
        return found

    def _records(self) -> ResultTable:
        """A row a place and a kind of record: how many the file that was found holds, and what is proved of each."""
        domain, columns = self.target.cells, dict[str, list[object]](place=[])
        names = ["cell"] if domain is None else list(domain.names)
        columns |= {name: [] for name in (*names, "records", "at_least", "at_most")}
        for place, cells, solved in self.found:
            at = cells[:, None] if domain is None else np.stack(np.unravel_index(cells, domain.shape), axis=1)
            counts = solved.least if solved.counts is None else solved.counts
            for cell, levels in zip(cells.tolist(), at.tolist(), strict=True):
                columns["place"].append(self.target.places[place])
                for axis, (name, level) in enumerate(zip(names, levels, strict=True)):
                    each = None if domain is None else domain.attributes[axis]
                    columns[name].append(level if each is None else label_of(each.level_labels, each.levels[level]))
                for name, numbers in (("records", counts), ("at_least", solved.least), ("at_most", solved.largest)):
                    columns[name].append(int(numbers[cell]))
        return ResultTable("records", columns, inside=True)

    def add(self, place: int, solved: Reconstruction) -> None:
        own = self.target.places[place], solved.records, solved.solutions, solved.all_solutions
        proof = solved.unique, solved.variability, solved.proved_records, solved.proved
        self.rows.append((*own, *proof, solved.seconds, None))
        cells = np.flatnonzero(solved.least if solved.counts is None else solved.counts)
        if self.kinds + len(cells) <= MOST_WRITTEN:
            self.found.append((place, cells, solved))
            self.kinds += len(cells)
        self.places, self.chosen[place] = self.places + 1, True
        self.unique += solved.unique
        self.open_places += not solved.proved
        self.records += solved.records
        self.proved += solved.proved_records
        self.apart[0] += solved.apart or 0.0
        self.apart[1] += solved.most_apart or 0.0
        for reference, truth in self.truths.items():
            self.right[reference] += solved.right(truth[place])
        for unknown in np.flatnonzero(solved.least) if len(self.details) <= MOST_DETAILS else ():
            where, what = self.target.places[place], self.target.cell(int(unknown))
            self.details.append(f"{where}: {solved.least[unknown]:,} × {what}")
            if len(self.details) >= MOST_DETAILS:
                self.details.append("…")
                break
