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
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims import ClaimCheck, exact_totals, missing_keys, pmf_ratio
from dualmandate.audit.equations import Integers
from dualmandate.audit.finding import Baseline, Effort, Finding, Range
from dualmandate.audit.old_methods import generator
from dualmandate.audit.rates import Rate
from dualmandate.audit.statistics_count import StatisticsCount
from dualmandate.population import PrivacyLoss

CELLS, PAIRED_CELLS = 512, 96  # whose records are added, or compared, where there are more cells than that
MOST_CHANGES = 2**25  # numbers that are held: rows of each of these cells
REACH = 4.0  # of the mean absolute noise, to which probabilities are compared
MOST_REACH = 20_000
CENSUS_2010 = 25.0  # independent statistics a person
ORDERS = (1.5, 2.0, 4.0, 16.0)  # of Rényi's divergence
CLAIMED = "what the claim allows"


@dataclass(frozen=True)
class ClaimedNoise:
    """The noise of one kind of row: its law, its exact parameter, and the logarithm of its probabilities."""

    name: str
    law: Literal["laplace", "gaussian"]  # discrete; the parameter is its scale, or its σ²
    parameter: Fraction
    log_pmf: Callable[[int], float] = field(repr=False, compare=False)

    def unit_loss(self) -> Fraction:
        """The loss of a change by one: ε = 1/scale, or ρ = 1/(2σ²)."""
        return 1 / self.parameter if self.law == "laplace" else 1 / (2 * self.parameter)

    def check(self) -> ClaimCheck:
        """Probabilities of outputs under two answers that differ by one, against the loss of the parameter."""
        spread = float(self.parameter) if self.law == "laplace" else math.sqrt(float(self.parameter))
        reach = min(math.ceil(REACH * spread) + 1, MOST_REACH)
        if self.law == "laplace":
            return pmf_ratio(self.log_pmf, shift=1, epsilon=float(self.unit_loss()), reach=reach)
        return self._divergence(min(3 * reach, MOST_REACH))

    def _divergence(self, reach: int) -> ClaimCheck:
        """Rényi's divergence of answers that differ by one, at most order × ρ at every order."""
        rho, worst = float(self.unit_loss()), 0.0
        logs = np.array([self.log_pmf(k) for k in range(-reach - 1, reach + 1)])
        for order in ORDERS:
            powers = order * logs[1:] + (1 - order) * logs[:-1]
            top = float(powers.max())
            divergence = (top + math.log(float(np.exp(powers - top).sum()))) / (order - 1)
            worst = max(worst, divergence / order)
        broken = worst > rho * (1 + 1e-9)
        words = f"the loss is ρ = {worst:.9g}, {'above' if broken else 'within'} the claimed {rho:.9g}"
        return ClaimCheck("Rényi divergence", broken, words)


@dataclass(frozen=True, eq=False)
class ClaimedGroup:
    """Rows that were measured together: what they count of a histogram, and the noise of each row."""

    name: str
    rows: Callable[[Integers], Integers] = field(repr=False)  # of counts, flat; shape (rows,)
    kinds: NDArray[np.int64] = field(repr=False)  # of each row, a place in `noises`
    noises: tuple[ClaimedNoise, ...]


@dataclass(frozen=True, eq=False)
class ClaimedRelease:
    """What a release says of itself, and what it shows.

    `kept(cell, other)` says whether replacing a record of one cell by one of another is a change between neighbors;
    None under add-or-remove neighbors. `records` is how many records of a unit change together at most.
    """

    name: str
    loss: PrivacyLoss
    groups: tuple[ClaimedGroup, ...]
    possible: NDArray[np.bool_] = field(repr=False)  # which cells can occur, flat
    kept: Callable[[int, int], bool] | None = field(repr=False)
    keys: Mapping[str, tuple[tuple[Hashable, ...], tuple[Hashable, ...]]] = field(repr=False)  # shown, declared
    exact: Mapping[str, bool]  # numbers without noise: whether replacing a record leaves them as they are
    statistics: StatisticsCount
    coarsening: str
    records: int = 1


@dataclass(frozen=True)
class CheckClaim:
    """Whether a release keeps what it claims, as far as its public files show it."""

    effort: Effort = field(default_factory=Effort)
    name: str = "checks of a privacy claim"
    needs: str = "a release with its program, what it measured, and the exact noise of each row"

    def run(self, target: ClaimedRelease, key: bytes, /) -> tuple[Finding, ...]:
        """Noise, loss, missing cells, exact numbers and the count of statistics, each beside what is claimed."""
        self.effort.say(f"checking what {target.name} claims")
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows="the public files of the release",
            coarsening=target.coarsening,
            reference="published",
        )
        return (*self._noise(target, make), *self._loss(target, key, make), *self._shown(target, make))

    def _noise(self, target: ClaimedRelease, make: Callable[..., Finding]) -> Iterator[Finding]:
        noises = list(dict.fromkeys(noise for group in target.groups for noise in group.noises))
        broken = [(noise, check) for noise in noises if (check := noise.check()).broken]
        yield make(
            claim=f"kinds of noise of {target.name} whose probabilities lose more than their parameter says",
            success=Rate(len(broken), len(noises)),
            baselines=(Baseline(CLAIMED, Rate(0, len(noises))),),
            counted_in_full=True,
            details=tuple(f"{noise.name}: {check.words}" for noise, check in broken),
        )

    def _loss(self, target: ClaimedRelease, key: bytes, make: Callable[..., Finding]) -> Iterator[Finding]:
        cells = np.flatnonzero(target.possible)
        rows = sum(len(group.kinds) for group in target.groups)
        most = max(min(CELLS if target.kept is None else PAIRED_CELLS, MOST_CHANGES // rows), 2)
        every = len(cells) <= most
        if not every:
            cells = np.sort(generator(key, f"claim: {target.name}").choice(cells, most, replace=False))
        self.effort.say(f"computing the loss of {target.name} again")
        found = _largest_loss(target, cells)
        unit, claimed = str(target.loss.currency), float(target.loss.amount)
        sense = "exactly" if every else f"at least, from {most:,} of {int(target.possible.sum()):,} cells"
        above = found > target.loss.amount
        yield make(
            claim=f"loss of one unit of {target.name} computed again from its rows and its noise, {sense}; "
            f"{'ABOVE' if above else 'not above'} the claimed {unit} = {claimed:.6g}",
            success=Range(float(found), float(found), unit),
            baselines=(Baseline(CLAIMED, Range(0.0, claimed, unit)),),
        )

    def _shown(self, target: ClaimedRelease, make: Callable[..., Finding]) -> Iterator[Finding]:
        checks = {name: missing_keys(*each) for name, each in target.keys.items()}
        broken = [f"{name}: {check.words}" for name, check in checks.items() if check.broken]
        yield make(
            claim=f"tables of {target.name} whose set of cells is not the declared one",
            success=Rate(len(broken), len(checks)),
            baselines=(Baseline(CLAIMED, Rate(0, len(checks))),),
            counted_in_full=True,
            details=tuple(broken),
        )
        if target.exact:
            check = exact_totals(target.exact, add_or_remove=target.kept is None)
            changed = len(target.exact) if target.kept is None else sum(not kept for kept in target.exact.values())
            yield make(
                claim=f"exact numbers of {target.name} that the claimed neighbors would change ({check.words})",
                success=Rate(changed, len(target.exact)),
                baselines=(Baseline(CLAIMED, Rate(0, len(target.exact))),),
                counted_in_full=True,
            )
        count = target.statistics
        if math.isfinite(count.per_person):
            yield make(
                claim=str(count).rstrip("."),
                success=Range(count.per_person, count.per_person, "independent statistics a person"),
                baselines=(Baseline("the 2010 Census", Range(CENSUS_2010, CENSUS_2010, "a person")),),
            )


def _largest_loss(target: ClaimedRelease, cells: Integers) -> Fraction:
    """The largest loss of neighbors among records of some cells, exactly: Σ |change|/scale, or Σ change²/(2σ²)."""
    changes = [[_change(group, cell, target.possible.size) for cell in cells] for group in target.groups]
    worst = Fraction(0)
    power = 2 if target.groups[0].noises[0].law == "gaussian" else 1
    for one in range(len(cells)):
        if target.kept is None:
            worst = max(worst, _loss_of(target, [group[one] for group in changes], power))
            continue
        for other in range(one):
            if target.kept(int(cells[one]), int(cells[other])):
                apart = [group[one] - group[other] for group in changes]
                worst = max(worst, _loss_of(target, apart, power))
    return worst * int(target.records**power)


def _change(group: ClaimedGroup, cell: int, size: int) -> Integers:
    counts = np.zeros(size, dtype=np.int64)
    counts[cell] = 1
    return group.rows(counts)


def _loss_of(target: ClaimedRelease, apart: list[Integers], power: int) -> Fraction:
    found = Fraction(0)
    for group, change in zip(target.groups, apart, strict=True):
        moved = np.flatnonzero(change)
        sizes = np.abs(change[moved]).astype(object) ** power
        for kind in np.unique(group.kinds[moved]):
            found += int(sizes[group.kinds[moved] == kind].sum()) * group.noises[int(kind)].unit_loss()
    return found
