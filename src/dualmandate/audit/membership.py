"""Whether somebody was in the data: tests on published frequencies, and what differential privacy allows of them.

An attacker who knows a person's values, and the frequencies in the population, asks whether the published frequencies
lean toward that person. Power is the rate at which members are recognized where a given share of others is falsely
accused. Under a loss (ε, δ), over the randomness of the mechanism, power ≤ e^ε·false + δ for any test whatsoever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.rates import Rate
from dualmandate.errors import InvalidRequest

Floats = NDArray[np.float64]
FALSE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25)
SMALLEST_FREQUENCY = 1e-9  # of a level, so that its logarithm is finite


def homer(published: Floats, person: Floats, population: Floats) -> Floats:
    """[Hom08]: Σ |person − population| − |person − published|; larger where published leans to the person.

    Shapes: `published` (…, attributes), the others (attributes,).
    """
    return np.asarray((np.abs(person - population) - np.abs(person - published)).sum(axis=-1))


def likelihood_ratio(published: Floats, person: Floats, population: Floats) -> Floats:
    """[SOJH09]: log likelihood of the person's values under published less population frequencies."""
    inside = np.clip(published, SMALLEST_FREQUENCY, 1 - SMALLEST_FREQUENCY)
    outside = np.clip(population, SMALLEST_FREQUENCY, 1 - SMALLEST_FREQUENCY)
    with_one, with_none = np.log(inside / outside), np.log((1 - inside) / (1 - outside))
    return np.asarray((person * with_one + (1 - person) * with_none).sum(axis=-1))


@dataclass(frozen=True)
class PowerPoint:
    """One threshold of a test: how many others are accused and how many members recognized, over draws of noise."""

    false_positives: Rate
    true_positives: Rate

    def exceeds(self, epsilon: float, failure_probability: float = 0.0, *, level: float = 0.999) -> bool:
        """Whether the bound e^ε·false + δ is certainly exceeded: even at the unlikely ends of both intervals."""
        falsely = self.false_positives.interval(level)[1]
        truly = self.true_positives.interval(level)[0]
        return truly > min(math.exp(min(epsilon, 700.0)) * falsely + failure_probability, 1.0)

    def epsilon_at_least(self, failure_probability: float = 0.0, *, level: float = 0.95) -> float:
        """A loss that the mechanism has at least, at this confidence: ln((power − δ)/false), both at their bad ends.

        Both directions of the test count: recognizing members, and clearing others.
        """
        half = 1 - (1 - level) / 2  # two intervals, each missing with half of the probability
        found = 0.0
        for more, less in ((self.true_positives, self.false_positives), _complement(self)):
            least, most = more.interval(half)[0], less.interval(half)[1]
            if least > failure_probability and most > 0:
                found = max(found, math.log((least - failure_probability) / most))
        return found


def _complement(point: PowerPoint) -> tuple[Rate, Rate]:
    falsely, truly = point.false_positives, point.true_positives
    return (
        Rate(falsely.trials - falsely.successes, falsely.trials),
        Rate(truly.trials - truly.successes, truly.trials),
    )


def power_curve(
    without: Floats, with_person: Floats, *, rates: Sequence[float] = FALSE_RATES
) -> tuple[PowerPoint, ...]:
    """Power at stated false rates, from scores of a test over draws of the mechanism without and with the person.

    Thresholds come from the first half of the draws without the person; both rates are counted on what is left, so that
    nothing is judged by what it was fitted to.
    """
    if len(without) < 4 or not len(with_person):
        raise InvalidRequest(
            f"{len(without)} draws without and {len(with_person)} with the person",
            why="thresholds are set on half of the draws and judged on the others",
            instead="draw more often",
        )
    half = len(without) // 2
    thresholds = np.quantile(without[:half], [1 - rate for rate in rates], method="higher")
    judged = without[half:]
    return tuple(
        PowerPoint(
            Rate(int((judged > threshold).sum()), len(judged)),
            Rate(int((with_person > threshold).sum()), len(with_person)),
        )
        for threshold in thresholds
    )


def frequency_attack(
    members: NDArray[np.int64],
    replacement: NDArray[np.int64],
    noise: Callable[[tuple[int, int]], Floats],
    *,
    population: Floats,
    draws: int,
) -> dict[str, tuple[PowerPoint, ...]]:
    """Tests of the first member's presence on noisy frequencies of 0/1 values: Homer's, and an informed one.

    Two data sets are compared over draws of the mechanism: the members, and the same with the first one replaced.
    `noise((draws, attributes))` is added to sums. The informed attacker knows everybody else, and scores the projection
    of the noisy sums on the difference of the two: what is left to know is one person.
    """
    present = members.sum(axis=0)
    absent = present - members[0] + replacement
    person = members[0].astype(np.float64)
    scores: dict[str, list[Floats]] = {"homer": [], "informed": []}
    for sums in (absent, present):
        published = sums + noise((draws, members.shape[1]))
        scores["homer"].append(homer(published / len(members), person, population))
        scores["informed"].append(np.asarray((published - absent) @ np.sign(present - absent).astype(np.float64)))
    return {name: power_curve(*found) for name, found in scores.items()}
