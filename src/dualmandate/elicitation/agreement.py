"""Whether several sources tell the same story: tests of all together, of each pair, and of each against the rest."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincc, ndtr

from dualmandate.population.wording import number

Floats = NDArray[np.float64]
DOUBTFUL = 0.05  # probability from which downward a difference is called a conflict


@dataclass(frozen=True)
class Pair:
    """Two sources, how many standard errors they lie apart, and how often chance alone would do that.

    `probability` is adjusted by Holm's rule for the number of pairs: it is the chance that any pair of agreeing sources
    would look this far apart.
    """

    first: str
    second: str
    distance: float  # in standard errors of the difference
    probability: float
    ratio: float | None  # first over second, where amounts are positive

    @property
    def conflict(self) -> bool:
        """Whether chance is a poor explanation."""
        return self.probability < DOUBTFUL


@dataclass(frozen=True)
class Agreement:
    """How well the sources agree.

    `heterogeneity` is Cochran's Q, chi-squared on sources − 1 degrees where they all measure the same number [Coc54];
    `share` is I², the part of the spread beyond sampling error; `between` is the moment estimate of the standard
    deviation between sources [DL86].
    """

    heterogeneity: float
    degrees_of_freedom: int
    probability: float  # of a Q at least as large, were there no differences between sources
    share: float  # I², from 0 to 1
    between: float  # standard deviation between sources
    pairs: tuple[Pair, ...]
    predicted: tuple[tuple[str, float | None], ...]  # each source: probability of one as odd, given prior and the rest
    expected: tuple[tuple[str, float | None], ...]  # each source: the same, given the prior alone

    @property
    def conflicts(self) -> tuple[Pair, ...]:
        """Pairs that chance alone does not explain, the worst first."""
        found = [pair for pair in self.pairs if pair.conflict]
        return tuple(sorted(found, key=lambda pair: -abs(pair.distance)))

    @property
    def agree(self) -> bool:
        """Whether neither all sources together nor any pair conflict."""
        return self.probability >= DOUBTFUL and not self.conflicts

    def explain(self) -> str:
        """The same in words."""
        if self.degrees_of_freedom == 0:
            words = "There is one source, so that nothing can disagree."
        else:
            chance = _rounded(self.probability)
            test = f"Cochran's Q = {number(self.heterogeneity, 3)} on {self.degrees_of_freedom}, p = {chance}"
            beyond = f"{100 * self.share:.0f} % of their spread is more than sampling error"
            words = (
                f"The sources agree within their standard errors ({test})."
                if self.agree
                else f"The sources conflict ({test}; {beyond})."
            )
        for pair in self.conflicts:
            apart = f"by a factor of {number(max(pair.ratio, 1 / pair.ratio), 3)}" if pair.ratio else "in level"
            words += (
                f" '{pair.first}' and '{pair.second}' differ {apart}, {abs(pair.distance):.1f} standard errors"
                f" (p = {_rounded(pair.probability)})."
            )
        for name, probability in self.expected:
            if probability is not None and probability < DOUBTFUL:
                words += f" '{name}' is not what the prior expects (p = {_rounded(probability)})."
        return words


def random_effects(values: Floats, errors: Floats) -> tuple[float, float, float, float]:
    """DerSimonian and Laird's pooled mean, its standard error, the variance between sources, and Cochran's Q [DL86]."""
    weights = 1.0 / errors**2
    center = float(weights @ values / weights.sum())
    heterogeneity = float(weights @ (values - center) ** 2)
    spread = float(weights.sum() - (weights**2).sum() / weights.sum())
    between = max(0.0, (heterogeneity - (len(values) - 1)) / spread) if len(values) > 1 else 0.0
    widened = 1.0 / (errors**2 + between)
    return float(widened @ values / widened.sum()), float(1.0 / math.sqrt(widened.sum())), between, heterogeneity


def differing_pairs(names: tuple[str, ...], values: Floats, errors: Floats, *, logarithms: bool) -> tuple[Pair, ...]:
    """Every pair of sources, with Holm's adjusted probabilities [Hol79]."""
    couples = list(itertools.combinations(range(len(names)), 2))
    distances = [float((values[i] - values[j]) / math.hypot(errors[i], errors[j])) for i, j in couples]
    raw = [2.0 * float(ndtr(-abs(distance))) for distance in distances]
    adjusted, largest = [0.0] * len(raw), 0.0
    for place, index in enumerate(sorted(range(len(raw)), key=raw.__getitem__)):
        largest = max(largest, min(1.0, (len(raw) - place) * raw[index]))
        adjusted[index] = largest
    return tuple(
        Pair(
            names[i],
            names[j],
            distances[index],
            adjusted[index],
            math.exp(values[i] - values[j]) if logarithms else None,
        )
        for index, (i, j) in enumerate(couples)
    )


def heterogeneity_probability(heterogeneity: float, degrees: int) -> float:
    """P(χ² on `degrees` ≥ Q); 1 where there is one source."""
    return float(gammaincc(degrees / 2, heterogeneity / 2)) if degrees > 0 else 1.0


def _rounded(probability: float) -> str:
    return "below 0.0001" if probability < 1e-4 else f"{number(probability, 2)}"
