"""Rules that look at each person, not at the sum: the worst off first, and the bargain that nobody refuses.

Both need something that preferences alone do not say. How well off people are at all (`baseline`) decides who is worst
off; what happens without an agreement (`disagreement_epsilon`) decides what there is to gain. Neither is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dualmandate.choice.landscape import Floats
from dualmandate.choice.society import Profile
from dualmandate.errors import InvalidLoss, MissingKey, NoOptimum
from dualmandate.population.wording import number

OWN_PEAK = "own peak"
WORTH = 1e-12  # relative gain that is none
BISECTIONS = 60


def rawlsian(profile: Profile, baseline: Mapping[str, float] | float | str | None = None) -> float:
    """The loss at which the worst-off member is as well off as possible: max min_g (a_g + v_g).

    `baseline` is a_g in USD a member, by group or one for all; or "own peak", and then the largest loss against one's
    own best choice is made as small as possible. Source: Rawls 1971 [Raw71].
    """
    if baseline is None:
        raise MissingKey(
            "the Rawlsian rule has no baseline",
            why="who is worst off depends on how well off people are without this release",
            instead=f'state baseline: USD a member, by group or one for all, or "{OWN_PEAK}"',
        )
    levels = _levels(profile, baseline)

    def worst(costs: Floats) -> Floats:
        largest: Floats = np.max(costs - levels, axis=1)
        return largest

    return profile.land.lowest_worst(worst)


def _levels(profile: Profile, baseline: Mapping[str, float] | float | str) -> Floats:
    names = profile.society.names
    if baseline == OWN_PEAK:
        if any(math.isinf(peak.epsilon) or peak.epsilon == 0 for peak in profile.peaks):
            raise NoOptimum(
                "somebody wants ever more privacy loss, or none",
                why="a loss against one's own best choice needs that there is one",
                instead="state a legal cap on the loss, or a baseline in USD",
            )
        return np.array([-profile.value(peak.epsilon)[i] for i, peak in enumerate(profile.peaks)])
    if isinstance(baseline, str):
        raise MissingKey(
            f"the baseline '{baseline}' is not known",
            why="a baseline says how well off people are without this release",
            instead=f'state USD a member, by group or one for all, or "{OWN_PEAK}"',
        )
    stated = baseline if isinstance(baseline, Mapping) else dict.fromkeys(names, float(baseline))
    missing = [name for name in names if name not in stated]
    if missing or not all(math.isfinite(stated[name]) for name in names):
        raise MissingKey(
            f"the baseline of '{(missing or names)[0]}' is missing, or no finite number",
            why="the worst off are found by comparing everybody",
            instead=f"state it for each of {', '.join(names)}",
        )
    return np.array([float(stated[name]) for name in names])


@dataclass(frozen=True)
class Bargain:
    """The loss that a fair bargain would end at, and what a member of each group gains by it, USD."""

    epsilon: float
    disagreement_epsilon: float
    gains: Mapping[str, float]
    common_gain: bool  # whether everybody gains; without that nothing is agreed on


def nash_bargain(profile: Profile, disagreement_epsilon: float | None = None) -> Bargain:
    """The loss that maximizes the product of everybody's gains against no agreement: Σ_g N_g·ln(v_g(ε) − v_g(ε₀)).

    Where nobody can gain without somebody losing, there is no common gain and ε₀ stays. Source: Nash 1950 [Nas50].
    """
    if disagreement_epsilon is None:
        raise MissingKey(
            "the Nash product has no disagreement_epsilon",
            why="a gain is a gain against something",
            instead="state the loss that would stand without an agreement: the last release's, or the law's",
        )
    low, high = np.exp(profile.land.grid.points[[0, -1]]).tolist()
    if not low * (1 - 1e-9) <= disagreement_epsilon <= high * (1 + 1e-9):
        raise InvalidLoss(
            f"a disagreement_epsilon of {disagreement_epsilon}",
            why=f"losses between {number(low)} and {number(high)} are looked at",
            instead="state a loss between these",
        )
    grid, sizes = profile.land.grid, profile.society.sizes
    before = profile.land.costs(np.array([disagreement_epsilon]))[0]

    def product(costs: Floats) -> Floats:
        gains = before - costs
        good = np.all(gains > WORTH * before, axis=1)
        logs = np.log(np.where(good[:, None], gains, 1.0)) @ sizes
        return np.where(good, -logs, np.inf)

    heights = product(np.exp(grid.logs))
    near = _beside(profile, disagreement_epsilon, product)
    if not np.any(np.isfinite(heights)) and near is None:
        return _bargain(profile, disagreement_epsilon, disagreement_epsilon)
    start = math.log(near) if not np.any(np.isfinite(heights)) and near else float(grid.points[np.argmin(heights)])
    place = int(np.searchsorted(grid.points, start))
    ends = grid.points[max(place - 1, 0)], grid.points[min(place + 1, len(grid.points) - 1)]

    at_first = profile.value(disagreement_epsilon)

    def rising(x: float) -> bool:
        loss = math.exp(x)
        gains = profile.value(loss) - at_first
        if np.any(gains <= WORTH * before):
            return x < start
        slopes = [citizens.welfare.slope(profile.frontier, loss) for citizens in profile.society.citizens]
        return math.fsum(slope / gain for slope, gain in zip(slopes, gains.tolist(), strict=True)) > 0

    bottom, top = float(ends[0]), float(ends[1])
    for _ in range(BISECTIONS):
        middle = (bottom + top) / 2
        bottom, top = (middle, top) if rising(middle) else (bottom, middle)
    return _bargain(profile, math.exp((bottom + top) / 2), disagreement_epsilon)


def _beside(profile: Profile, at: float, product: object) -> float | None:
    """A loss close to one at which everybody gains, where the common gains lie between two points of the grid."""
    assert callable(product)
    for step in (1e-3, -1e-3, 1e-5, -1e-5):
        place = at * math.exp(step)
        if np.isfinite(product(profile.land.costs(np.array([place])))[0]):
            return place
    return None


def _bargain(profile: Profile, epsilon: float, disagreement_epsilon: float) -> Bargain:
    gains = profile.gains(epsilon, disagreement_epsilon)
    return Bargain(epsilon, disagreement_epsilon, gains, epsilon != disagreement_epsilon)
