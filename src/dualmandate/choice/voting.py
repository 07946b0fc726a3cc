"""Votes over a privacy loss: medians of peaks, phantoms, and what majorities prefer.

Where every voter is single-peaked, the median of the peaks beats every other loss by majority and nobody gains by
misstating a peak [Bla48], [Mou80]; with phantoms (fixed ballots) these are all the anonymous strategy-proof rules.
Elsewhere majorities may run in a circle, and the rules say so instead of voting.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.choice.landscape import Floats
from dualmandate.choice.society import Profile
from dualmandate.errors import InvalidPreferences, InvalidValue
from dualmandate.population.wording import number

TIE = 1e-12  # relative difference of votes, or of what two losses are worth, that is none


def median_vote(profile: Profile) -> float:
    """The lower median of the peaks, each counted with the size of its group; within the limits."""
    _refuse_crooked(profile)
    return generalized_median([peak.epsilon for peak in profile.peaks], [peak.size for peak in profile.peaks])


def phantom_vote(profile: Profile, phantoms: Sequence[float]) -> float:
    """The median of the peaks and of phantoms: one fewer fixed ballots than voters, spread evenly over given losses.

    n voters and n − 1 phantoms, so that the rule is never dictated by phantoms alone. Phantoms at 0 (all) choose the
    lowest peak, at infinity the highest. Source: Moulin 1980 [Mou80].
    """
    _refuse_crooked(profile)
    places = [float(place) for place in phantoms]
    if not places or any(math.isnan(place) or place < 0 for place in places):
        raise InvalidValue(
            f"the phantoms {places}",
            why="a phantom is a ballot that is always cast: a privacy loss, 0, or infinite",
            instead="state at least one loss of at least 0",
        )
    sizes = [peak.size for peak in profile.peaks]
    ballots = max(math.fsum(sizes) - 1, 0.0) / len(places)
    low, high = profile.bounds.lowest or 0.0, profile.bounds.highest or math.inf
    inside = [min(max(place, low), high) for place in places]
    peaks = [peak.epsilon for peak in profile.peaks]
    return generalized_median([*peaks, *inside], [*sizes, *(ballots for _ in places)])


def generalized_median(places: Sequence[float], ballots: Sequence[float]) -> float:
    """The smallest place at or below which at least half of all ballots lie."""
    order = sorted(range(len(places)), key=lambda i: places[i])
    half, reached = math.fsum(ballots) / 2, 0.0
    for i in order:
        reached += ballots[i]
        if reached >= half * (1 - TIE):
            return places[i]
    return places[order[-1]]


@dataclass(frozen=True, eq=False)
class Majority:
    """What majorities prefer among some losses: `votes[i, j]` people are better off at option i than at j."""

    options: tuple[float, ...]
    votes: Floats  # (options, options), people
    winner: float | None  # the loss that no majority would leave; None where there is none
    cycle: tuple[float, ...] | None  # losses each of which beats the next, and the last the first; None without one

    def beats(self, one: float, other: float) -> bool:
        """Whether more people prefer the one to the other than the reverse."""
        i, j = self.options.index(one), self.options.index(other)
        return bool(self.votes[i, j] > self.votes[j, i] * (1 + TIE))

    def explain(self) -> str:
        """The outcome in a sentence."""
        if self.winner is not None:
            return f"No majority would leave {number(self.winner, 6)} for any other loss considered."
        if self.cycle is None:
            return "No loss wins or ties against every other."
        steps = " over ".join(f"{number(place, 6)}" for place in (*self.cycle, self.cycle[0]))
        return f"Majorities run in a circle: they prefer {steps}. Whoever sets the agenda chooses the loss."

    def __str__(self) -> str:
        return self.explain()


def majority(profile: Profile, options: Sequence[float] | None = None) -> Majority:
    """Every pair of losses put to the vote, each group voting with its size; indifferent ones stay at home.

    Without options: every place where some group's welfare turns or a limit stands.
    """
    if options is None:
        turns = {point.epsilon for peak in profile.peaks for point in peak.optima if point.kind != "minimum"}
        options = sorted(turns)
    if not options or any(not (math.isfinite(place) and place > 0) for place in options):
        raise InvalidValue(
            f"a vote over the losses {list(options)}",
            why="people compare releases, each with a positive, finite loss",
            instead="name at least one such loss",
        )
    places = tuple(sorted({float(place) for place in options}))
    values = np.stack([profile.value(place) for place in places])  # (options, groups)
    gaps = values[:, None, :] - values[None, :, :]
    better = gaps > TIE * np.abs(values[None, :, :])
    votes = better @ profile.society.sizes
    wins = votes > votes.T * (1 + TIE)
    unbeaten = np.flatnonzero(~wins.any(axis=0))
    winner = None if not len(unbeaten) else places[int(max(unbeaten, key=lambda i: votes[i].sum()))]
    cycle = None if winner is not None else tuple(places[i] for i in _circle(wins))
    return Majority(places, votes, winner, cycle)


def _circle(wins: NDArray[np.bool_]) -> list[int]:
    """A shortest circle of options each of which beats the next; every option here is beaten by some other."""
    count = len(wins)
    for start in range(count):
        paths = {start: [start]}
        frontier = [start]
        while frontier:
            reached = []
            for i in frontier:
                for j in np.flatnonzero(wins[i]).tolist():
                    if j == start:
                        return paths[i]
                    if j not in paths:
                        paths[j] = [*paths[i], j]
                        reached.append(j)
            frontier = reached
    return []


def _refuse_crooked(profile: Profile) -> None:
    crooked = [peak.name for peak in profile.peaks if not peak.single_peaked]
    if crooked:
        raise InvalidPreferences(
            f"'{crooked[0]}' is not single-peaked: its members like losses less first and then more again",
            why="a median of peaks is then neither safe from strategy nor what majorities want",
            instead="use `majority` over stated options, or the utilitarian rule",
        )
