"""The attack over time: suppressed numbers from what other periods show, tried on published ones that are like them.

Whether an estimate is close can be seen in public: published cells are hidden for a test as suppressed ones are, in the
same periods and among cells of the same size, and estimated from the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.drawing import generator
from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.finding import Baseline, Effort, Finding, Reference, nothing_to_compare
from dualmandate.audit.in_order import in_order
from dualmandate.audit.rates import Rate
from dualmandate.audit.suppression.cells import LinkedTables, audit_suppression
from dualmandate.audit.suppression.hold_out import Drawn, Trial, draw_trials
from dualmandate.audit.suppression.series import Series, by_size, estimate_series
from dualmandate.audit.targets.targets import Floats, Parts, Truths, check_truths, opened

WITHIN = 0.05  # of a number, from which on an estimate counts as close
BY_SIZE = "whoever divides what is left by size"


def _nothing() -> Truths:
    return {}


@dataclass(frozen=True, eq=False)
class SeriesPart:
    """One place: its cells over time, and what adds up in every period. `truths` have shape (cells, periods)."""

    series: Series
    relations: Equations
    truths: Truths = field(default_factory=_nothing, repr=False)

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
class _Estimated:
    """Both guesses of one place; shape (cells, periods)."""

    over_time: Floats
    alone: Floats
    finished: bool  # whether all bounds were found in time


@dataclass(frozen=True)
class CarryOver:
    """Suppressed numbers from what other periods show."""

    effort: Effort = field(default_factory=Effort)
    name: str = "suppressed numbers over time"
    needs: str = "the same cells in several periods, suppressed in some of them"

    def run(self, target: HiddenSeries, key: bytes, /) -> tuple[Finding, ...]:
        """How many suppressed numbers another period shows, and how closely such numbers are estimated."""
        self.effort.say(f"looking for published numbers that are like the suppressed ones of {target.name}")
        drawn = draw_trials((part.series for part in target.parts), generator(key, f"numbers over time: {target.name}"))
        if not drawn.suppressed:
            return ()
        make = self._maker(target)
        shown = make(
            claim=f"suppressed numbers of {target.name} whose cell is published in another period",
            success=Rate(drawn.shown_elsewhere, drawn.suppressed),
            baselines=(nothing_to_compare(drawn.suppressed),),
            reference="published",
            counted_in_full=True,
            partial=None if drawn.trials else "no published number is like the suppressed ones: nothing was tried",
        )
        return (shown, *self._tried(target, drawn, make), *self._judged(target, make))

    def _maker(self, target: HiddenSeries) -> Callable[..., Finding]:
        sizes = "no public sizes" if target.sizes is None else f"public sizes ({target.sizes})"
        knows = f"the tables of all {len(target.periods):,} periods, and {sizes}"
        return partial(Finding, attack=self.name, attacker_knows=knows, coarsening="numbers as published")

    def _tried(self, target: HiddenSeries, drawn: Drawn, make: Callable[..., Finding]) -> Iterator[Finding]:
        """Published numbers that were hidden for the test, as if no other period showed them, and as if one did."""
        wanted: dict[int, list[Trial]] = {}
        for trial in drawn.trials:
            wanted.setdefault(trial.part, []).append(trial)
        chosen = ((part, wanted[number]) for number, part in enumerate(target.parts) if number in wanted)
        outcomes: list[tuple[bool, bool, bool]] = []
        finished = True
        for done, (found, closes) in enumerate(in_order(self._try, chosen, self.effort.workers)):
            self.effort.count(f"estimating hidden numbers of {target.name}", done + 1, len(wanted))
            outcomes += closes
            finished &= found
        for words, seen in (("no other period shows", False), ("another period shows", True)):
            kept = [each for each in outcomes if each[2] == seen]
            if kept:
                over_time, alone = (Rate(sum(each[i] for each in kept), len(kept)) for i in (0, 1))
                yield make(
                    claim=f"published numbers of {target.name}, hidden for a test as suppressed ones are that {words}, "
                    f"which are estimated within {WITHIN:.0%}",
                    success=over_time,
                    baselines=(Baseline(BY_SIZE, alone),),
                    reference="published",
                    partial=self._left(drawn.drawn[seen], len(kept), finished=finished),
                )

    def _try(self, given: tuple[SeriesPart, list[Trial]]) -> tuple[bool, list[tuple[bool, bool, bool]]]:
        """For each trial of a place: whether time, and size alone, come close; and its kind."""
        part, trials = given
        hidden = part.series.suppressed.copy()
        for trial in trials:
            hidden[trial.cell, list(trial.hidden)] = True
        found = self._estimate(part, hidden)
        closes = []
        for trial in trials:
            at, truth = (trial.cell, trial.period), float(part.series.values[trial.cell, trial.period])
            near = [abs(guess[at] - truth) <= WITHIN * truth for guess in (found.over_time, found.alone)]
            closes.append((bool(near[0]), bool(near[1]), trial.seen))
        return found.finished, closes

    def _judged(self, target: HiddenSeries, make: Callable[..., Finding]) -> Iterator[Finding]:
        """Really suppressed numbers, where somebody gives a file of them."""
        told: dict[Reference, list[int]] = {}
        finished = True
        with_truth = (part for part in target.parts if part.truths)
        for part, found in in_order(self._known, with_truth, self.effort.workers):
            finished &= found.finished
            for reference, truth in opened(part.truths).items():
                at = part.series.suppressed & (truth > 0)
                close = [
                    np.abs(guess[at] - truth[at]) <= WITHIN * truth[at] for guess in (found.over_time, found.alone)
                ]
                now = [int(close[0].sum()), int(close[1].sum()), int(at.sum())]
                told[reference] = [a + b for a, b in zip(told.get(reference, [0, 0, 0]), now, strict=True)]
        for reference, (over_time, alone, count) in told.items():
            if count:
                yield make(
                    claim=f"occupied suppressed numbers of {target.name} that are estimated within {WITHIN:.0%}",
                    success=Rate(over_time, count),
                    baselines=(Baseline(BY_SIZE, Rate(alone, count)),),
                    reference=reference,
                    counted_in_full=True,
                    partial=None if finished else self._late,
                )

    def _known(self, part: SeriesPart) -> tuple[SeriesPart, _Estimated]:
        return part, self._estimate(part, part.series.suppressed)

    def _estimate(self, part: SeriesPart, hidden: NDArray[np.bool_]) -> _Estimated:
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
        return _Estimated(estimate_series(series, least, largest), by_size(series, least, largest), finished)

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
