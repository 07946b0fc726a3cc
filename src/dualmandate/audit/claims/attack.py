"""Checks of what a release claims of itself: its noise, its loss, the cells it shows, and what it shows exactly.

A loss is computed again from what was measured and how it was noised, in fractions: from the change that one record
makes in every measured row, and from the probabilities of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.checks import (
    DRAWS,
    LEVEL,
    ROUNDING,
    TIE,
    ClaimCheck,
    Law,
    SharedNoise,
    audit_noise,
    drawn_from,
    exact_totals,
    last_bits,
    least_loss,
    meaning,
    missing_keys,
    own_law,
    pmf_ratio,
)
from dualmandate.audit.claims.residuals import MeasuredRows, check_noise
from dualmandate.audit.claims.true_residuals import Places, check_true_noise
from dualmandate.audit.finding import CLAIMED, Baseline, Finding, Range, Rate, proved_share
from dualmandate.audit.options import Effort, generator
from dualmandate.audit.tables import Truths, open_truths
from dualmandate.mechanism import Noise
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.wording import told_loss
from dualmandate.workload.statistics_count import StatisticsCount

CELLS, PAIRED_CELLS = 512, 96  # Records of so many cells are added, or compared, where there are more.
REACH = 4.0  # Probabilities are compared as far as this many times the mean absolute noise.
MOST_REACH = 20_000
CENSUS_2010 = 25.0  # independent statistics a person
ORDERS = (1.5, 2.0, 4.0, 16.0)  # The orders of Rényi's divergence.
MOST_DRAWN = 2**24  # At most this many numbers of noise are drawn at once.


Labels = tuple[tuple[Hashable, ...], ...]
Change = tuple[Integers, Integers]  # which rows change, in their order, and by how much


@dataclass(frozen=True)
class ClaimedNoise:
    """The noise of one kind of row: its law, its exact parameter, and the logarithm of its probabilities.

    What discrete Laplace and Gaussian noise lose is worked out here. Of another law it is what `stated` says, and the
    probabilities are held against it.
    """

    name: str
    law: str  # discrete; the parameter of "laplace" is its scale, of "gaussian" its σ²
    parameter: Fraction
    log_pmf: Callable[[int], float] = field(repr=False, compare=False)
    stated: Noise | None = field(default=None, repr=False, compare=False)  # what another law says of itself

    @property
    def own_law(self) -> Law | None:
        """The law, where the audit has arithmetic of its own for it."""
        return own_law(self.law)

    @property
    def power(self) -> int:
        """1 where a loss grows with a change (ε), 2 where it grows with its square (ρ)."""
        if self.stated is not None and self.own_law is None:
            return 2 if self.stated.family.privacy_measure is PrivacyMeasure.ZCDP else 1
        return 2 if self.law == "gaussian" else 1

    def unit_loss(self) -> Fraction:
        """The loss of a change by one: ε = 1/scale, or ρ = 1/(2σ²)."""
        if self.stated is not None and self.own_law is None:
            return self.stated.unit_loss
        return 1 / self.parameter if self.law == "laplace" else 1 / (2 * self.parameter)

    def check(self) -> ClaimCheck:
        """Probabilities of outputs under two answers that differ by one, against the loss of the parameter."""
        spread = 1 / (self.power * float(self.unit_loss()))  # the scale, or σ²
        reach = min(math.ceil(REACH * (spread if self.power == 1 else math.sqrt(spread))) + 1, MOST_REACH)
        if self.power == 1:
            return pmf_ratio(self.log_pmf, shift=1, epsilon=float(self.unit_loss()), reach=reach)
        return self._divergence(min(3 * reach, MOST_REACH))

    def drawn(self, key: bytes, purpose: str, shape: tuple[int, int], share: Fraction = Fraction(1), /) -> Floats:
        """Noise from the audit's key; of a share of its size, to see whether that would be found."""
        if self.stated is not None and self.own_law is None:
            whole = drawn_from(self.stated.sampler(), key, purpose, shape).astype(np.float64)
            return whole if share == 1 else np.rint(whole * float(share))
        parameter = self.parameter * share**self.power
        return audit_noise(key, purpose, self.own_law or "laplace", parameter, shape).astype(np.float64)

    def log_ratios(self, near: Floats, far: Floats) -> Floats:
        """ln P(near) − ln P(far), number by number."""
        if self.own_law is None:
            logs = {value: self.log_pmf(int(value)) for value in np.unique(np.concatenate([near, far]))}
            return np.asarray(np.vectorize(logs.__getitem__)(near) - np.vectorize(logs.__getitem__)(far))
        power = self.power
        return np.asarray((np.abs(far) ** power - np.abs(near) ** power) / (power * float(self.parameter)))

    def _divergence(self, reach: int) -> ClaimCheck:
        """Rényi's divergence of answers that differ by one, at most order × ρ at every order."""
        rho, worst, broken = float(self.unit_loss()), 0.0, False
        logs = np.array([self.log_pmf(k) for k in range(-reach - 1, reach + 1)])
        for order in ORDERS:
            powers = order * logs[1:] + (1 - order) * logs[:-1]
            top = float(powers.max())
            divergence = (top + math.log(float(np.exp(powers - top).sum()))) / (order - 1)
            worst = max(worst, divergence / order)
            rounding = ROUNDING * float(np.abs(logs).max()) / (order - 1)
            broken = broken or divergence / order > rho * (1 + 1e-9) + rounding
        words = f"the loss is ρ = {worst:.9g}, {'above' if broken else 'within'} the claimed {rho:.9g}"
        return ClaimCheck("Rényi divergence", broken, words)


@dataclass(frozen=True, eq=False)
class ClaimedGroup:
    """Rows that were measured together: what they count of a histogram, and the noise of each row."""

    name: str
    change: Callable[[int], Change] = field(repr=False)  # what a record of a cell adds to the rows
    kinds: Integers = field(repr=False)  # of each row, a place in `noises`
    noises: tuple[ClaimedNoise, ...]
    measured: NDArray[Any] | None = field(default=None, repr=False)  # what was published of each row
    count: Callable[[Integers], Integers] | None = field(default=None, repr=False)  # the rows of a histogram
    tables: Mapping[str, int] = field(default_factory=dict)  # the first row of each, where rows are those of tables


@dataclass(frozen=True, eq=False)
class ClaimedRelease:
    """What a release says of itself, and what it shows.

    `kept(cell, other)` says whether replacing a record of one cell by one of another is a change between neighbors;
    None under add-or-remove neighbors. `records` is how many records of a unit change together at most.
    """

    name: str
    loss: PrivacyLoss
    groups: tuple[ClaimedGroup, ...]
    possible: Booleans = field(repr=False)  # which cells can occur, flat
    kept: Callable[[int, int], bool] | None = field(repr=False)
    keys: Mapping[str, tuple[Labels, Labels]] = field(repr=False)  # shown and declared, on each axis of a table
    exact: Mapping[str, bool]  # numbers without noise: whether replacing a record leaves them as they are
    statistics: StatisticsCount
    coarsening: str
    records: int = 1
    beside: Mapping[str, SharedNoise] = field(default_factory=dict)  # other releases with rows that count the same
    shape: tuple[int, ...] | None = None  # of the histogram that rows are counted from
    truths: Truths = field(default_factory=dict, repr=False)  # the records behind it, counted; shape (cells,)
    places: Places | None = None
    told: ToldRelease | None = None  # in place of groups: what a technology drew, and said of it

    @property
    def measured(self) -> MeasuredRows | None:
        """All rows of all groups together; None where what was published of them is not known."""
        values, kinds, noises, counts = list[NDArray[Any]](), list[Integers](), list[ClaimedNoise](), []
        starts, size = list[tuple[str, int]](), 0
        for group in self.groups:
            if group.measured is None or group.count is None:
                return None
            starts += [(name, size + start) for name, start in (group.tables or {group.name: 0}).items()]
            size += len(group.measured)
            values.append(group.measured)
            kinds.append(np.broadcast_to(group.kinds, group.measured.shape) + len(noises))
            noises.extend(group.noises)
            counts.append(group.count)
        return MeasuredRows(
            np.concatenate(values),
            np.concatenate(kinds),
            noises,
            lambda histogram: np.concatenate([count(histogram) for count in counts]),
            self.possible.reshape(self.shape or self.possible.shape),
            tuple(start for _, start in starts),
            tuple(name for name, _ in starts),
        )


@dataclass(frozen=True, eq=False)
class ToldRelease:
    """A release by a technology that chose its draws as it went on: its transcript, and whether all else follows."""

    noises: tuple[ClaimedNoise, ...]
    values: Integers = field(repr=False)  # all that was drawn
    numbers: int  # published estimates
    unlike: int  # of these, those that do not follow from the transcript
    words: str


@dataclass(frozen=True)
class ClaimAttack:
    """Whether a release keeps what it claims, as far as its public files show it."""

    effort: Effort = field(default_factory=Effort)
    name: str = "checks of a privacy claim"

    def run(self, target: ClaimedRelease, key: bytes, /) -> tuple[Finding, ...]:
        self.effort.say(f"checking what {target.name} claims")
        knows, coarsening = "the public files of the release", target.coarsening
        make = partial(Finding, attack=self.name, attacker_knows=knows, coarsening=coarsening, reference="published")
        noise = self._noise(target, make)
        if target.told is not None:
            return (*noise, *self._shown(target, make), *self._told(target, target.told, make))
        loss = self._loss(target, key, make)
        own = self._residuals(target, key, make)
        return (*noise, *loss, *self._shown(target, make), *own, *self._measured(target, make))

    def _noise(self, target: ClaimedRelease, make: Callable[..., Finding]) -> Iterator[Finding]:
        own = [noise for group in target.groups for noise in group.noises]
        noises = list(dict.fromkeys(own if target.told is None else target.told.noises))
        broken = [(noise, check) for noise in noises if (check := noise.check()).broken]
        claim = f"kinds of noise of {target.name} whose probabilities lose more than their parameter says"
        details = tuple(f"{noise.name}: {check.words}" for noise, check in broken)
        yield proved_share(make, claim, len(broken), len(noises), beside=CLAIMED, details=details)

    def _told(self, target: ClaimedRelease, told: ToldRelease, make: Callable[..., Finding]) -> Iterator[Finding]:
        """Whether what is published follows from the transcript alone, which is all that the loss covers."""
        claim = f"numbers of {target.name} that do not follow from its transcript ({told.words})"
        yield proved_share(make, claim, told.unlike, told.numbers, beside=CLAIMED)
        fine = int(last_bits(told.values).sum())
        claim = f"numbers that {target.name} drew which use the last bits of a float, 2⁻⁵³ of their size"
        claim += ": these TELL what was counted" if fine else ""
        yield proved_share(make, claim, fine, told.values.size, beside="noise on whole numbers")

    def _loss(self, target: ClaimedRelease, key: bytes, make: Callable[..., Finding]) -> Iterator[Finding]:
        cells = np.flatnonzero(target.possible)
        most = CELLS if target.kept is None else PAIRED_CELLS
        every = len(cells) <= most
        if not every:
            cells = np.sort(generator(key, f"claim: {target.name}").choice(cells, most, replace=False))
        self.effort.say(f"computing the loss of {target.name} again")
        worst = largest_loss(target, cells)
        found = worst.loss
        unit, claimed = str(target.loss.privacy_measure), float(target.loss.amount)
        sense = "exactly" if every else f"at least, from {most:,} of {int(target.possible.sum()):,} cells"
        above = found > target.loss.amount
        yield make(
            claim=f"loss of one unit of {target.name} computed again from its rows and its noise, {sense}; "
            f"{'ABOVE' if above else 'not above'} the claimed {unit} = {claimed:.6g}",
            success=Range(float(found), float(found), unit),
            baselines=(Baseline(CLAIMED, Range(0.0, claimed, unit)),),
        )
        yield self._drawn(target, worst, key, make)

    def _drawn(self, target: ClaimedRelease, worst: WorstChange, key: bytes, make: Callable[..., Finding]) -> Finding:
        """A loss that the noise has at least on the worst neighbors, by draws from the audit's key."""
        self.effort.say(f"drawing the noise of {target.name}")
        epsilon, delta = meaning(target.loss)
        scores = drawn_ratios(worst, key, f"least loss: {target.name}")
        found = least_loss(*scores, failure_probability=delta, level=LEVEL)
        at = f" at δ = {delta:g}" if delta else ""
        return make(
            claim=f"loss that {target.name} has at least, by {len(scores[0]):,} draws of its noise on each of two "
            f"neighbors, at a level of 1 − 10⁻⁶; {'ABOVE' if found > epsilon else 'not above'} the claimed "
            f"ε = {told_loss(epsilon)}{at}",
            success=Range(found, found, "epsilon"),
            baselines=(Baseline(CLAIMED, Range(0.0, epsilon, "epsilon")),),
            attacker_knows="everybody else's records, and the noise of each row",
            reference="draws",
        )

    def _residuals(self, target: ClaimedRelease, key: bytes, make: Callable[..., Finding]) -> Iterator[Finding]:
        """Whether the noise that was drawn is the stated one, by measured numbers that follow from others."""
        rows = target.measured
        if rows is not None:
            self.effort.say(f"looking for the noise that {target.name} drew")
            check = check_noise(rows, key)
            claim = f"checks of the noise that {target.name} drew, by its measured numbers, which fail ({check.words})"
            yield proved_share(make, claim, len(check.failed), check.checks, beside=CLAIMED, power=check.power)
            yield from self._true_residuals(target, rows, key, make)

    def _true_residuals(
        self, target: ClaimedRelease, rows: MeasuredRows, key: bytes, make: Callable[..., Finding]
    ) -> Iterator[Finding]:
        """All of the noise, inside the wall: measured numbers less what the curator's file counts."""
        for reference, counts in open_truths(target.truths).items():
            self.effort.say(f"comparing {target.name} with the {reference} file")
            check = check_true_noise(rows, rows.count(counts), places=target.places, key=key)
            claim = f"tests of all noise of {target.name}, by the {reference} file, which fail ({check.words})"
            knows = f"the {reference} file; if that is not what was published, or records of units with too many were "
            yield proved_share(
                partial(make, attacker_knows=f"{knows}left out, the difference counts as noise", reference=reference),
                claim,
                len(check.failed),
                check.tests,
                beside=CLAIMED,
                power=check.power,
                details=check.failed,
            )

    def _measured(self, target: ClaimedRelease, make: Callable[..., Finding]) -> Iterator[Finding]:
        """The last bits of what was measured, and noise that other releases have too."""
        values = [group.measured for group in target.groups if group.measured is not None]
        if values:
            fine, every = sum(int(last_bits(each).sum()) for each in values), sum(each.size for each in values)
            claim = f"numbers that {target.name} measured which use the last bits of a float, 2⁻⁵³ of their size"
            claim += ": these TELL what was counted" if fine else ""
            yield proved_share(make, claim, fine, every, beside="noise on whole numbers")
        for other, shared in target.beside.items():
            yield make(
                claim=f"rows of {target.name} that are equal in {other} ({shared.check.words})",
                success=Rate(shared.equal, shared.rows),
                baselines=(Baseline("independent noise, at most", Rate(round(shared.expected), shared.rows)),),
                counted_in_full=True,
                attacker_knows="the public files of both releases",
            )

    def _shown(self, target: ClaimedRelease, make: Callable[..., Finding]) -> Iterator[Finding]:
        checks = {name: missing_keys(*each) for name, each in target.keys.items()}
        broken = [f"{name}: {check.words}" for name, check in checks.items() if check.broken]
        claim = f"tables of {target.name} whose set of cells is not the declared one"
        yield proved_share(make, claim, len(broken), len(checks), beside=CLAIMED, details=tuple(broken))
        if target.exact:
            check = exact_totals(target.exact, add_or_remove=target.kept is None)
            changed = len(target.exact) if target.kept is None else sum(not kept for kept in target.exact.values())
            claim = f"exact numbers of {target.name} that the claimed neighbors would change ({check.words})"
            yield proved_share(make, claim, changed, len(target.exact), beside=CLAIMED)
        count = target.statistics
        if math.isfinite(count.per_person):
            found = Range(count.per_person, count.per_person, "independent statistics a person")
            beside = Baseline("the 2010 Census", Range(CENSUS_2010, CENSUS_2010, "a person"))
            yield make(claim=str(count).rstrip("."), success=found, baselines=(beside,))


@dataclass(frozen=True, eq=False)
class WorstChange:
    """The neighbors whose loss is the largest that was found: what changes in every row of every group, and where."""

    loss: Fraction
    apart: tuple[Change, ...] = field(repr=False)  # by group
    groups: tuple[ClaimedGroup, ...] = field(repr=False)
    cell: int
    other: int | None  # whose record is in the first one's place; None where it is removed

    @property
    def moved(self) -> tuple[Integers, tuple[ClaimedNoise, ...]]:
        """The rows that change: by how much, and with which noise."""
        by = np.concatenate([change for _, change in self.apart])
        parts = zip(self.groups, self.apart, strict=True)
        return by, tuple(group.noises[int(kind)] for group, (at, _) in parts for kind in group.kinds[at])


def largest_loss(target: ClaimedRelease, cells: Integers) -> WorstChange:
    """The largest loss of neighbors among records of some cells, exactly: Σ |change|/scale, or Σ change²/(2σ²)."""
    changes = [[group.change(int(cell)) for cell in cells] for group in target.groups]
    power = target.groups[0].noises[0].power
    nothing = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    worst = WorstChange(Fraction(0), (nothing,) * len(target.groups), target.groups, int(cells[0]), None)
    for one in range(len(cells)):
        others: list[int | None] = [None] if target.kept is None else list(range(one))
        for other in others:
            if other is not None and target.kept is not None and not target.kept(int(cells[one]), int(cells[other])):
                continue
            apart = [group[one] if other is None else _apart(group[one], group[other]) for group in changes]
            loss = _loss_of(target, apart, power) * int(target.records**power)
            if loss > worst.loss:
                together = tuple((rows, by * target.records) for rows, by in apart)
                second = None if other is None else int(cells[other])
                worst = WorstChange(loss, together, target.groups, int(cells[one]), second)
    return worst


def _apart(one: Change, other: Change) -> Change:
    """What changes where a record of one cell stands in place of a record of another."""
    rows, places = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    by = np.zeros(len(rows), dtype=np.int64)
    np.add.at(by, places, np.concatenate([one[1], -other[1]]))
    return rows[by != 0], by[by != 0]


def _loss_of(target: ClaimedRelease, apart: list[Change], power: int) -> Fraction:
    found = Fraction(0)
    for group, (moved, by) in zip(target.groups, apart, strict=True):
        sizes = np.abs(by).astype(object) ** power
        for kind in np.unique(group.kinds[moved]):
            found += int(sizes[group.kinds[moved] == kind].sum()) * group.noises[int(kind)].unit_loss()
    return found


def drawn_ratios(worst: WorstChange, key: bytes, purpose: str) -> tuple[Floats, Floats]:
    """Log ratios of the probabilities of two neighbors over draws of the noise: with the record, and without it.

    No score of an attacker who knows all other records tells them apart better.
    """
    by, noises = worst.moved
    draws = max(min(DRAWS, MOST_DRAWN // max(len(by), 1)), 200)
    sides = [np.zeros(draws), np.zeros(draws)]
    for noise in dict.fromkeys(noises):
        columns = by[[each == noise for each in noises]]
        for side, score in enumerate(sides):
            words = f"{purpose}, {noise.name}, side {side}"
            drawn = noise.drawn(key, words, (draws, len(columns)))
            near, far = drawn - (columns if side else 0), drawn + (0 if side else columns)
            ratios = noise.log_ratios(near, far)
            score += ratios.sum(axis=1) + TIE * ((far + near) @ np.sign(columns))
    return sides[0], sides[1]
