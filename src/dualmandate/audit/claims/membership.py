"""Whether somebody was in the data: tests on published frequencies, and what differential privacy allows of them.

An attacker who knows a person's values, and the frequencies in the population, asks whether the published frequencies
lean toward that person. Power is the rate at which members are recognized where a given share of others is falsely
accused. Under a loss (ε, δ), over the randomness of the mechanism, power ≤ e^ε·false + δ for any test whatsoever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.rates import Rate
from dualmandate.errors import InvalidRequest

Floats = NDArray[np.float64]
LogPmf = Callable[[Floats, NDArray[np.intp]], Floats]  # of noise in some columns, up to a constant; (draws, columns)
FALSE_RATES = (0.001, 0.01, 0.05, 0.1, 0.25)
TESTS = ("homer", "likelihood ratio", "informed")
TIE = 1e-9  # of a projection, by which equal ratios are put in an order
COIN = 1e-11  # of equal scores, by which a test that may toss coins tells them apart
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
        """Whether the bound e^ε·false + δ is certainly exceeded, even at the unlikely ends of all intervals.

        The bound holds in both directions: recognizing members, and clearing others. At most 2·(1 − level) of such
        words about a mechanism that keeps its bound are wrong: two rates, each outside of its interval on one side.
        """
        return self.share_of_bound(epsilon, failure_probability, level=level) > 1.0

    def allowed(self, epsilon: float, failure_probability: float = 0.0) -> float:
        """What the bound allows at the observed rate of false accusations: e^ε·false + δ, at most 1."""
        return min(math.exp(min(epsilon, 700.0)) * self.false_positives.value + failure_probability, 1.0)

    def share_of_bound(self, epsilon: float, failure_probability: float = 0.0, *, level: float = 0.999) -> float:
        """The largest share of the bound that is certainly reached, over both directions; above 1 breaks it."""
        times = math.exp(min(epsilon, 700.0))
        shares = [0.0]
        for more, less in ((self.true_positives, self.false_positives), _complement(self)):
            bound = min(times * less.interval(level)[1] + failure_probability, 1.0)
            shares.append(more.interval(level)[0] / bound)
        return max(shares)

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


@dataclass(frozen=True, eq=False)
class Sought:
    """Two neighboring data sets as sums, one with a person and one without, and what an attacker knows of them.

    Shapes are (attributes,). `largest` is the largest value of one member, so that sums over `members · largest` are
    frequencies between 0 and 1; `person` and `population` are such frequencies: the person's own values, and what is
    expected of people in general.
    """

    absent: NDArray[np.int64] = field(repr=False)
    present: NDArray[np.int64] = field(repr=False)
    person: Floats = field(repr=False)
    population: Floats = field(repr=False)
    members: int
    largest: NDArray[np.int64] = field(repr=False)

    def scores(self, published: Floats, log_pmf: LogPmf | None = None) -> dict[str, Floats]:
        """Every test on noisy sums, shape (draws, attributes); larger scores speak for the person.

        The informed attacker knows everybody else, so that only two answers are left, and compares the probabilities of
        the noise under both where `log_pmf` is known: no test has more power. Otherwise noisy sums are projected on the
        difference of the two.
        """
        frequencies = published / (self.members * self.largest)
        apart = np.flatnonzero(self.present != self.absent)
        own = published[:, apart]
        informed = (own - self.absent[apart]) @ np.sign(self.present - self.absent)[apart].astype(np.float64)
        if log_pmf is not None:
            with_person, without = own - self.present[apart], own - self.absent[apart]
            ratios = (log_pmf(with_person, apart) - log_pmf(without, apart)).sum(axis=1)
            informed = ratios + TIE * informed
        return {
            "homer": homer(frequencies, self.person, self.population),
            "likelihood ratio": likelihood_ratio(frequencies, self.person, self.population),
            "informed": np.asarray(informed, dtype=np.float64),
        }


def sought_member(
    members: NDArray[np.int64],
    replacement: NDArray[np.int64] | None,
    *,
    population: Floats,
    largest: NDArray[np.int64] | None = None,
) -> Sought:
    """The first member is looked for; in the other data set somebody else is in its place, or nobody (None).

    Values are whole numbers from 0 to `largest` (1 where it is not given), shape (members, attributes).
    """
    most = np.ones(members.shape[1], dtype=np.int64) if largest is None else largest
    if len(members) < 2 or (members < 0).any() or (members > most).any():
        raise InvalidRequest(
            f"{len(members)} members whose values are not all between 0 and the stated largest",
            why="one member's values are bounded: that is what noise is set by",
            instead="give at least two members, and clip their values",
        )
    present = members.sum(axis=0)
    absent = present - members[0] + (0 if replacement is None else replacement)
    return Sought(absent, present, members[0] / most, population, len(members), most)


def frequency_attack(
    sought: Sought,
    noise: Callable[[tuple[int, int]], Floats],
    *,
    draws: int,
    log_pmf: LogPmf | None = None,
    rates: Sequence[float] = FALSE_RATES,
) -> dict[str, tuple[PowerPoint, ...]]:
    """The power of every test over draws of the mechanism on two neighboring data sets.

    `noise((draws, attributes))` is what the mechanism adds to sums.
    """
    coins = np.random.default_rng(len(sought.absent))  # of tests alone: equal scores are decided at random
    found = []
    for sums in (sought.absent, sought.present):
        scores = sought.scores(sums + noise((draws, len(sums))), log_pmf)
        found.append({name: own + COIN * coins.random(draws) for name, own in scores.items()})
    return {name: power_curve(found[0][name], found[1][name], rates=rates) for name in TESTS}
