"""The best technology at each privacy loss: the upper envelope of production activities.

Publishing nothing new is one of them: a public guess has a finite error at no privacy loss at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism
from dualmandate.frontier.frontier import Curves, Frontier, TableWeights, listed, named
from dualmandate.mechanism import Measure, NamedMeasure
from dualmandate.population.arrays import Floats
from dualmandate.population.shown import one_line

_SEARCHED: list[float] = np.logspace(-5, 3, 641).tolist()  # losses between which switches are looked for


@dataclass(frozen=True)
class Switch:
    """A loss at which another technology becomes the best one."""

    loss: float
    before: str
    after: str


@dataclass(frozen=True, eq=False)
class EnvelopeCurves(Curves):
    """Curves of whichever member loses least, Σ b_t·loss_t, at each loss."""

    members: tuple[Frontier, ...]
    weights: TableWeights

    __repr__ = one_line

    @property
    def convex_from(self) -> float:
        """At a switch errors fall faster again: it is known of one technology alone."""
        return self.members[0].convex_from if len(self.members) == 1 else math.inf

    @property
    def known_losses(self) -> tuple[float, float]:
        """Between the smallest and the largest at which some member is known."""
        known = [member.known_losses for member in self.members]
        return min(least for least, _ in known), max(most for _, most in known)

    def best(self, loss: float) -> Frontier:
        """The member that loses least; of equals, the first."""
        return self.members[self._index(loss)]

    def values(self, loss: float, measure: Measure) -> Floats:
        return listed(self.best(loss).table_errors(loss, measure))

    def slopes(self, loss: float, measure: Measure) -> Floats:
        return listed(self.best(loss).table_slopes(loss, measure))

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        return listed(self.best(loss).table_curvatures(loss, measure))

    def inverse(self, expected_squared_error: float) -> float | None:
        """The smallest loss at which the member then in use is accurate enough."""
        for start, end, index in self._pieces:
            try:
                needed = max(self.members[index].epsilon_for(-expected_squared_error), start)
            except InvalidLoss:
                continue
            if needed < end:
                return needed
        raise InvalidLoss(
            f"an expected squared error of {expected_squared_error:.6g} is out of reach",
            why="no technology of the envelope is so accurate at any loss",
            instead="ask for less accuracy, or add a technology",
        )

    def technology(self, loss: float) -> str:
        return self.best(loss).technology(loss)

    def allocation(self, loss: float) -> dict[str, float]:
        return self.best(loss).allocation(loss)

    @cached_property
    def switches(self) -> tuple[Switch, ...]:
        """Where the best technology changes, between losses of 1e-5 and 1e3, each to full precision."""
        names = [self.members[index].name for _, _, index in self._pieces]
        starts = [start for start, _, _ in self._pieces[1:]]
        return tuple(Switch(at, before, after) for at, (before, after) in zip(starts, pairwise(names), strict=True))

    @cached_property
    def _pieces(self) -> tuple[tuple[float, float, int], ...]:
        """Intervals of losses from start (0 at first) to end (∞ at last), with the member that is best there."""
        least, most = self.known_losses
        searched = [loss for loss in _SEARCHED if least <= loss <= most] or [least]
        starts, used = [0.0], [self._index(searched[0])]
        for low, high in pairwise(searched):
            while used[-1] != self._index(high):
                start, end = max(low, starts[-1]), high
                while start < (middle := math.sqrt(start * end)) < end:
                    start, end = (middle, end) if self._index(middle) == used[-1] else (start, middle)
                starts.append(end)
                used.append(self._index(end))
        return tuple(zip(starts, [*starts[1:], math.inf], used, strict=True))

    def _index(self, loss: float) -> int:
        ranges = [member.known_losses for member in self.members]
        known = [least <= loss <= most for least, most in ranges]
        if not any(known):
            return 0  # refuses it in its own words
        pairs = zip(self.members, known, strict=True)
        return int(np.argmin([self.weights.total(member, loss) if here else math.inf for member, here in pairs]))


def envelope(
    frontiers: Sequence[Frontier],
    *,
    values: Mapping[str, float] | None = None,
    measures: Mapping[str, Measure] | None = None,
) -> Frontier:
    """The frontier of the best of several technologies at each loss: least Σ b_t·loss_t.

    Technologies cannot be ranked without naming the loss, so the ranking follows `values` (b_t, default 1) and
    `measures` (default squared). Between switches it is as concave as its members; at a switch the marginal rate of
    transformation jumps up. `frontier.curves.switches` says which technology takes over, and where.
    """
    members = tuple(frontiers)
    if not members:
        raise InvalidMechanism(
            "an envelope of no technologies", why="nothing would be produced", instead="name at least one technology"
        )
    first = members[0]
    for member in members[1:]:
        if member.tables != first.tables or member.privacy_measure is not first.privacy_measure:
            raise InvalidMechanism(
                f"'{member.name}' cannot be compared with '{first.name}'",
                why="technologies are compared on the same tables, with losses in the same currency",
                instead="give every technology the same workload; express rho in epsilon at a stated δ",
            )
    weights = TableWeights.of(first.tables, values, measures)
    name = f"best of {', '.join(dict.fromkeys(member.name for member in members))}"
    return Frontier(name, first.privacy_measure, first.query_counts, EnvelopeCurves(members, weights))


@dataclass(frozen=True, eq=False)
class GuessCurves(Curves):
    """Errors of a guess that was made without the data: the same at every loss."""

    errors: Mapping[NamedMeasure, Floats]

    def values(self, loss: float, measure: Measure) -> Floats:
        del loss
        return self.errors[named(measure)]

    def slopes(self, loss: float, measure: Measure) -> Floats:
        del loss
        return np.zeros_like(self.errors[named(measure)])

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        return self.slopes(loss, measure)

    def inverse(self, expected_squared_error: float) -> float | None:
        reached = math.fsum(self.errors["squared"])
        if expected_squared_error < reached:
            raise InvalidLoss(
                f"an expected squared error of {expected_squared_error:.6g} is out of reach of a guess",
                why=f"publishing nothing new leaves {reached:.6g} at every loss",
                instead="measure the tables",
            )
        return 0.0

    def technology(self, loss: float) -> str:
        del loss
        return "public guess"

    def allocation(self, loss: float) -> dict[str, float]:
        del loss
        return {"all": 0.0}


def public_guess(
    frontier: Frontier,
    squared_errors: Mapping[str, float],
    *,
    absolute_errors: Mapping[str, float] | None = None,
    largest_variances: Mapping[str, float] | None = None,
) -> Frontier:
    """Publishing nothing new, as a member of an envelope: last year's tables, or a model's, serve without any loss.

    Its expected errors come from public sources, by table. It stands on the frontier at small losses, where measuring
    adds more noise than the guess is wrong by; a frontier of noise alone would have infinite error at ε = 0.
    """
    tables = frontier.tables
    errors: dict[NamedMeasure, Floats] = {"squared": _stated_errors(squared_errors, tables)}
    counts = np.array([frontier.query_counts[table] for table in tables], dtype=np.float64)
    # By Cauchy and Schwarz, Σ|e| ≤ √(k·Σe²); and the largest of k squares is at most their sum.
    errors["absolute"] = (
        np.sqrt(counts * errors["squared"]) if absolute_errors is None else _stated_errors(absolute_errors, tables)
    )
    errors["largest variance"] = (
        errors["squared"] if largest_variances is None else _stated_errors(largest_variances, tables)
    )
    return Frontier("public guess", frontier.privacy_measure, frontier.query_counts, GuessCurves(errors))


def _stated_errors(errors: Mapping[str, float], tables: tuple[str, ...]) -> Floats:
    missing = [table for table in tables if not (math.isfinite(errors.get(table, math.nan)) and errors[table] >= 0.0)]
    if missing:
        raise InvalidMechanism(
            f"the error of a guess at '{missing[0]}' is not stated",
            why="a guess joins the frontier by its expected error",
            instead="state a finite error of at least 0 for every table",
        )
    return np.array([errors[table] for table in tables], dtype=np.float64)
