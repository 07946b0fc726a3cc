"""The attack over time: suppressed numbers from what other periods show, tried on published ones that are like them.

A cell's share of its total moves slowly. Where a cell was published in some periods, its share there, carried over in a
straight line, times the total now is an estimate of what is suppressed now; where no total is published, its level is
carried over; where no period shows it, the rest of the total is divided by a public size (establishments). Estimates
are brought into the range that the tables leave, and made to add up. After [HTFK10], without their model.

Whether an estimate is close can be seen in public: published cells are held out as suppressed ones are hidden, and
estimated from the rest. A suppressed number is drawn with the key of the audit, and a published cell is hidden in the
same periods as its cell is: one at the finest level, with another suppressed part in its total, whose total is
published or not as that of the suppressed one, and of nearly the same public size; where there is none, the number is
not tried. Numbers that another period shows and those that none does are drawn apart: they differ most, and not in the
same share find a cell that is like them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from dualmandate.audit.finding import Baseline, Finding, Rate, Reference, proved_share
from dualmandate.audit.options import Effort, generator, parallel_map
from dualmandate.audit.suppression.cells import LinkedTables, audit_suppression
from dualmandate.audit.tables import Equations, Parts, Truths, check_truths, open_truths
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.wording import percent

ROUNDS = 30  # Parts are made to add up within their ranges in at most this many rounds.
TRIALS = 300
TRIES = 4  # So many suppressed numbers are drawn a trial, as some have no match.
LIKE = 1.5  # A cell may be so many times as large and still count as of the same size, one added to both.
WITHIN = 0.05  # An estimate within this share of a number counts as close.
BY_SIZE = "whoever divides what is left by size"


@dataclass(frozen=True, eq=False)
class Series:
    """Cells that are parts of totals, in several periods; arrays have shape (cells, periods).

    `sizes` are public sizes of the cells, for what no period shows.
    """

    parents: Integers = field(repr=False)  # (cells,); −1 at the top
    values: Integers = field(repr=False)  # whatever stands at a suppressed cell is not looked at
    suppressed: Booleans = field(repr=False)
    sizes: Floats = field(repr=False)


def estimate_series(series: Series, least: Integers, largest: Integers) -> Floats:
    """An attacker's estimate of every number, published ones as they are; NaN where nothing shows a total.

    Shape (cells, periods). `least` and `largest` are the ranges of an audit of each period.
    """
    values = np.where(series.suppressed, np.nan, series.values.astype(np.float64))
    return _filled(series, values, (_shares(series, values), _carried(series, values)), (least, largest))


def by_size(series: Series, least: Integers, largest: Integers) -> Floats:
    """The guess without time: the rest of each total divided by size, within the ranges; shape (cells, periods)."""
    values = np.where(series.suppressed, np.nan, series.values.astype(np.float64))
    nothing = np.full_like(values, np.nan)
    return _filled(series, values, (nothing, nothing), (least, largest))


def _shares(series: Series, values: Floats) -> Floats:
    """Each cell's share of its total, carried over from the periods in which both were published; NaN without any."""
    parents = series.parents
    totals = np.where((parents >= 0)[:, None], values[np.maximum(parents, 0)], np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _carried(series, np.where(totals > 0, values / totals, np.nan))


def _carried(series: Series, values: Floats) -> Floats:
    """What is known of each cell in some periods, in a straight line through the others; NaN where nothing is."""
    periods = np.arange(values.shape[1])
    carried = np.full_like(values, np.nan)
    for cell in np.flatnonzero(series.suppressed.any(axis=1)):
        there = np.isfinite(values[cell])
        if there.any():
            carried[cell] = np.interp(periods, periods[there], values[cell, there])
    return carried


def _from_the_top(parents: Integers) -> list[Integers]:
    """The parts of each total, totals before their parts."""
    order = np.argsort(parents, kind="stable")
    cells, starts = np.unique(parents[order], return_index=True)
    families = dict(zip(cells.tolist(), np.split(order, starts[1:]), strict=True))
    found, waiting = [], [-1]
    while waiting:
        family = families.get(waiting.pop())
        if family is not None:
            found.append(family)
            waiting.extend(family.tolist())
    return found


def _filled(series: Series, values: Floats, known: tuple[Floats, Floats], bounds: tuple[Integers, Integers]) -> Floats:
    """The values with estimates of suppressed parts, in place; `known` are shares and levels carried over."""
    for parts, period in product(_from_the_top(series.parents), range(values.shape[1])):
        parent, hidden = int(series.parents[parts[0]]), parts[np.isnan(values[parts, period])]
        if not hidden.size:
            continue
        low, high = bounds[0][hidden, period].astype(float), bounds[1][hidden, period].astype(float)
        total = values[parent, period] if parent >= 0 else np.nan
        rest = total - np.nansum(values[parts, period]) if np.isfinite(total) else np.nan
        shares, levels = (each[hidden, period] for each in known)
        guess = np.where(np.isnan(shares * total), levels, shares * total)
        unseen = np.isnan(guess)
        if unseen.any():
            size = series.sizes[hidden, period] + 1e-9
            left = rest - np.nansum(guess[~unseen])
            guess[unseen] = np.maximum(left, 0.0) * size[unseen] / size[unseen].sum()
        values[hidden, period] = _adding_up(np.clip(guess, low, high), low, high, rest)
    return values


def _adding_up(guess: Floats, low: Floats, high: Floats, total: float) -> Floats:
    """Guesses within their ranges, scaled until they add up to the total as far as the ranges allow."""
    if not np.isfinite(total):
        return guess
    for _ in range(ROUNDS):
        missing = total - guess.sum()
        if abs(missing) <= 1e-9 * max(abs(total), 1.0):
            break
        room = high - guess if missing > 0 else guess - low
        weight = np.minimum(np.maximum(guess, 1.0), room)
        if weight.sum() <= 0:
            break
        guess = np.clip(guess + missing * weight / weight.sum(), low, high)
    return guess


@dataclass(frozen=True)
class HoldOutTrial:
    """A published cell of a part that is hidden in some periods, and estimated in one of them.

    `seen`: it was drawn for a suppressed number whose cell another period shows.
    """

    part: int
    cell: int
    period: int
    hidden: tuple[int, ...]
    seen: bool


@dataclass(frozen=True)
class HoldOut:
    """The trials; how many numbers are suppressed, and how many of these have a cell that another period shows.

    The first trials are for suppressed numbers that no other period shows, the second for those that one does.
    """

    trials: tuple[HoldOutTrial, ...]
    suppressed: int
    shown_elsewhere: int
    drawn: tuple[int, int] = (0, 0)  # suppressed numbers of each kind for which something like them was looked for


@dataclass(frozen=True, eq=False)
class _Cells:
    """The cells of the finest level of all parts; arrays have shape (cells,) or (cells, periods)."""

    part: Integers = field(repr=False)
    cell: Integers = field(repr=False)
    suppressed: Booleans = field(repr=False)
    positive: Booleans = field(repr=False)  # what is 0 shows nothing
    neighbors: Booleans = field(repr=False)  # whether another part of the same total is suppressed
    total_hidden: Booleans = field(repr=False)
    size: Floats = field(repr=False)


def draw_trials(parts: Iterable[Series], draws: np.random.Generator, *, count: int = TRIALS) -> HoldOut:
    """Published cells that are like suppressed ones; each is hidden once. Parts are looked at one after the other."""
    collected, suppressed, elsewhere = list[_Cells](), 0, 0
    for number, series in enumerate(parts):
        hidden = series.suppressed
        suppressed += int(hidden.sum())
        elsewhere += int(hidden[(~hidden & (series.values > 0)).any(axis=1)].sum())
        collected.append(_finest(number, series))
    if not suppressed:
        return HoldOut((), 0, 0)
    cells = _Cells(*(np.concatenate([getattr(each, name) for each in collected]) for name in _Cells.__annotations__))
    used: set[int] = set()
    unseen, looked_unseen = _matched(cells, draws, count, used, seen=False)
    seen, looked_seen = _matched(cells, draws, count, used, seen=True)
    return HoldOut((*unseen, *seen), suppressed, elsewhere, (looked_unseen, looked_seen))


def _finest(number: int, series: Series) -> _Cells:
    parents, hidden = series.parents, series.suppressed
    inside = parents >= 0
    finest = np.setdiff1d(np.flatnonzero(inside), parents)
    above = parents[finest]
    parts = np.zeros(hidden.shape, dtype=np.int64)
    np.add.at(parts, parents[inside], hidden[inside].astype(np.int64))
    part, own, neighbors = np.full(len(finest), number), hidden[finest], parts[above] - hidden[finest] > 0
    sizes = series.sizes[finest].mean(axis=1)
    return _Cells(part, finest, own, series.values[finest] > 0, neighbors, hidden[above], sizes)


def _matched(
    cells: _Cells, draws: np.random.Generator, count: int, used: set[int], *, seen: bool
) -> tuple[list[HoldOutTrial], int]:
    """Trials, and how many suppressed numbers were drawn for them."""
    shown = ~cells.suppressed & cells.positive
    alike = cells.suppressed & cells.neighbors
    alike &= (shown.any(axis=1) == seen)[:, None]
    wanted = draws.permutation(np.argwhere(alike))[: TRIES * count]
    order = draws.permutation(len(shown))  # cells of equal size come in an order of their own
    order = order[np.argsort(cells.size[order], kind="stable")]
    kinds: dict[tuple[bytes, int, bool], Integers] = {}
    trials: list[HoldOutTrial] = []
    looked = 0
    for looked, (like, period) in enumerate(wanted.tolist(), start=1):  # noqa: B007 - how far it came
        pattern, total = ~shown[like], bool(cells.total_hidden[like, period])
        kind = pattern.tobytes(), period, total
        if kind not in kinds:
            fits = shown.all(axis=1) & cells.neighbors[:, pattern].all(axis=1)
            fits &= cells.total_hidden[:, period] == total
            kinds[kind] = order[fits[order]]
        chosen = _nearest(kinds[kind], cells.size, float(cells.size[like]), used)
        if chosen is None:
            continue
        used.add(chosen)
        hidden = tuple(np.flatnonzero(pattern).tolist())
        trials.append(HoldOutTrial(int(cells.part[chosen]), int(cells.cell[chosen]), period, hidden, seen))
        if len(trials) == count:
            break
    return trials, looked


def _nearest(candidates: Integers, sizes: Floats, size: float, used: set[int]) -> int | None:
    """The candidate of nearest size that was not used yet, None where it is not like; candidates are sorted by size."""
    own = sizes[candidates]
    right = int(np.searchsorted(own, size))
    left = right - 1
    while left >= 0 or right < len(candidates):
        below = size - float(own[left]) if left >= 0 else np.inf
        above = float(own[right]) - size if right < len(candidates) else np.inf
        place = left if below <= above else right
        if int(candidates[place]) not in used:
            smaller, larger = sorted((size + 1, float(own[place]) + 1))
            return int(candidates[place]) if larger <= LIKE * smaller else None
        left, right = (left - 1, right) if below <= above else (left, right + 1)
    return None


@dataclass(frozen=True, eq=False)
class SeriesPart:
    """One place: its cells over time, and what adds up in every period. `truths` have shape (cells, periods)."""

    series: Series
    relations: Equations
    truths: Truths = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_truths(self.truths, self.series.values.shape)


@dataclass(frozen=True, eq=False)
class HiddenSeries:
    """Numbers over several periods, some suppressed, one part a place."""

    name: str
    parts: Parts[SeriesPart]
    periods: tuple[str, ...]
    sizes: str | None = None  # what the public sizes of cells are, in words


@dataclass(frozen=True, eq=False)
class _Estimates:
    """Both guesses of one place; shape (cells, periods)."""

    over_time: Floats
    alone: Floats
    finished: bool  # whether all bounds were found in time

    def close(self, at: Any, truth: Integers) -> Booleans:
        """Whether each guess is within a share of the truth, for the numbers at some places; shape (2, numbers)."""
        return np.array([np.abs(guess[at] - truth) <= WITHIN * truth for guess in (self.over_time, self.alone)])


@dataclass(frozen=True)
class SeriesAttack:
    """Suppressed numbers from what other periods show."""

    effort: Effort = field(default_factory=Effort)
    name: str = "suppressed numbers over time"

    def run(self, target: HiddenSeries, key: bytes, /) -> tuple[Finding, ...]:
        self.effort.say(f"looking for published numbers that are like the suppressed ones of {target.name}")
        drawn = draw_trials((part.series for part in target.parts), generator(key, f"numbers over time: {target.name}"))
        if not drawn.suppressed:
            return ()
        sizes = "no public sizes" if target.sizes is None else f"public sizes ({target.sizes})"
        knows = f"the tables of all {len(target.periods):,} periods, and {sizes}"
        make = partial(Finding, attack=self.name, attacker_knows=knows, coarsening="numbers as published")
        shown = proved_share(
            make,
            f"suppressed numbers of {target.name} whose cell is published in another period",
            drawn.shown_elsewhere,
            drawn.suppressed,
            reference="published",
            partial=None if drawn.trials else "no published number is like the suppressed ones: nothing was tried",
        )
        return (shown, *self._tried(target, drawn, make), *self._judged(target, make))

    def _tried(self, target: HiddenSeries, drawn: HoldOut, make: Callable[..., Finding]) -> Iterator[Finding]:
        """Published numbers that were hidden for the test, as if no other period showed them, and as if one did."""
        wanted: dict[int, list[HoldOutTrial]] = {}
        for trial in drawn.trials:
            wanted.setdefault(trial.part, []).append(trial)
        chosen = ((part, wanted[number]) for number, part in enumerate(target.parts) if number in wanted)
        closes, finished = list[Booleans](), True
        for done, (found, close) in enumerate(parallel_map(self._try, chosen, self.effort.workers), start=1):
            self.effort.count(f"estimating hidden numbers of {target.name}", done, len(wanted))
            closes.append(close)
            finished &= found
        shown = np.array([trial.seen for number in sorted(wanted) for trial in wanted[number]])
        for words, seen in (("no other period shows", False), ("another period shows", True)):
            kept = int((shown == seen).sum())
            if kept:
                right = np.concatenate(closes, axis=1)[:, shown == seen].sum(axis=1)
                over_time, alone = (Rate(int(each), kept) for each in right)
                yield make(
                    claim=f"published numbers of {target.name}, hidden for a test as suppressed ones are that {words}, "
                    f"which are estimated within {percent(WITHIN)}",
                    success=over_time,
                    baselines=(Baseline(BY_SIZE, alone),),
                    reference="published",
                    partial=self._left(drawn.drawn[seen], kept, finished=finished),
                )

    def _try(self, given: tuple[SeriesPart, list[HoldOutTrial]]) -> tuple[bool, Booleans]:
        """Whether time, and size alone, come close in each trial of a place."""
        part, trials = given
        hidden = part.series.suppressed.copy()
        for trial in trials:
            hidden[trial.cell, list(trial.hidden)] = True
        found = self._estimate(part, hidden)
        at = np.array([trial.cell for trial in trials]), np.array([trial.period for trial in trials])
        return found.finished, found.close(at, part.series.values[at])

    def _judged(self, target: HiddenSeries, make: Callable[..., Finding]) -> Iterator[Finding]:
        """Really suppressed numbers, where somebody gives a file of them."""
        told: dict[Reference, Any] = {}
        finished = True
        with_truth = (part for part in target.parts if part.truths)
        for part, found in parallel_map(self._known, with_truth, self.effort.workers):
            finished &= found.finished
            for reference, truth in open_truths(part.truths).items():
                at = part.series.suppressed & (truth > 0)
                now = np.array([*found.close(at, truth[at]).sum(axis=1), at.sum()])
                told[reference] = told.get(reference, 0) + now
        for reference, (over_time, alone, count) in ((each, now.tolist()) for each, now in told.items()):
            if count:
                yield make(
                    claim=f"occupied suppressed numbers of {target.name} that are estimated within {percent(WITHIN)}",
                    success=Rate(over_time, count),
                    baselines=(Baseline(BY_SIZE, Rate(alone, count)),),
                    reference=reference,
                    counted_in_full=True,
                    partial=None if finished else self._late,
                )

    def _known(self, part: SeriesPart) -> tuple[SeriesPart, _Estimates]:
        return part, self._estimate(part, part.series.suppressed)

    def _estimate(self, part: SeriesPart, hidden: Booleans) -> _Estimates:
        """Ranges in every period, then both guesses within them."""
        values: Integers = part.series.values
        least, largest = values.copy(), values.copy()
        finished = True
        for period in range(values.shape[1]):
            tables = LinkedTables(part.relations, values[:, period], hidden[:, period])
            audit = audit_suppression(tables, seconds=self.effort.seconds)
            least[audit.cells, period], largest[audit.cells, period] = audit.least, audit.largest
            finished &= bool(audit.reached.all())
        series = Series(part.series.parents, values, hidden, part.series.sizes)
        return _Estimates(estimate_series(series, least, largest), by_size(series, least, largest), finished)

    def _left(self, looked: int, tried: int, *, finished: bool) -> str | None:
        """What a trial leaves open: suppressed numbers that nothing published is like, and ranges without time."""
        unlike = (
            f"of {looked:,} suppressed numbers drawn, {looked - tried:,} are like no published one, and say nothing"
        )
        said = [*([unlike] if looked > tried else []), *([] if finished else [self._late])]
        return "; ".join(said) or None

    @property
    def _late(self) -> str:
        return f"a limit of {self.effort.seconds:g} seconds a question left some ranges wide: estimates may be closer"
