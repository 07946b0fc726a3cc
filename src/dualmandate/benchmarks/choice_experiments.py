"""Choice experiments with tastes that are known, to see whether estimators find them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation import ChoiceData, ParameterEstimates

Floats = NDArray[np.float64]
QUANTILE = 1.959963984540054  # of the normal distribution, for intervals that hold in 95 of 100 cases


@dataclass(frozen=True)
class Experiment:
    """People who choose by utilities with logistic error; coefficients are normal among them, or alike.

    The last attribute is a price of 1, 2, 3 or 4; the others are −1, 0 or 1.
    """

    people: int
    tasks: int  # each
    alternatives: int
    means: tuple[float, ...]  # of the coefficients
    spreads: tuple[float, ...]  # standard deviations; 0: alike for all

    @property
    def names(self) -> tuple[str, ...]:
        """Of the attributes."""
        return (*(f"attribute {number}" for number in range(1, len(self.means))), "price")

    @property
    def random(self) -> tuple[str, ...]:
        """Attributes whose coefficients differ."""
        return tuple(name for name, spread in zip(self.names, self.spreads, strict=True) if spread)

    @property
    def truth(self) -> dict[str, float]:
        """What estimators should find, by their names of parameters."""
        means = dict(zip(self.names, self.means, strict=True))
        spreads = zip(self.names, self.spreads, strict=True)
        return means | {f"standard deviation of {name}": spread for name, spread in spreads if spread}

    def answers(self, generator: np.random.Generator) -> ChoiceData:
        """One survey."""
        shape = (self.people, self.tasks, self.alternatives)
        attributes = generator.integers(-1, 2, (*shape, len(self.means))).astype(np.float64)
        attributes[..., -1] = generator.integers(1, 5, shape)
        tastes = self.means + np.array(self.spreads) * generator.standard_normal((self.people, len(self.means)))
        utilities = np.einsum("ntjk,nk->ntj", attributes, tastes) + generator.gumbel(size=shape)
        best = utilities.argmax(axis=2)[..., None]
        rows = self.people * self.tasks * self.alternatives
        return ChoiceData(
            names=self.names,
            attributes=attributes.reshape(rows, -1),
            chosen=(np.arange(self.alternatives) == best).reshape(-1),
            task=np.repeat(np.arange(self.people * self.tasks), self.alternatives),
            respondent=np.repeat(np.arange(self.people), self.tasks * self.alternatives),
        )


def covered(
    experiment: Experiment, estimate: Callable[[ChoiceData], ParameterEstimates], *, replications: int, seed: int
) -> dict[str, float]:
    """In which share of surveys the 95 % interval of each parameter holds what is true."""
    generator = np.random.default_rng(seed)
    hits = dict.fromkeys(experiment.truth, 0)
    for _ in range(replications):
        found = estimate(experiment.answers(generator))
        for name, true in experiment.truth.items():
            hits[name] += abs(found.value(name) - true) <= QUANTILE * found.standard_error(name)
    return {name: count / replications for name, count in hits.items()}


ALIKE = Experiment(people=300, tasks=8, alternatives=3, means=(0.6, -0.8, -0.5), spreads=(0.0, 0.0, 0.0))
MIXED = Experiment(people=300, tasks=8, alternatives=3, means=(0.6, -0.8, -0.5), spreads=(0.8, 0.6, 0.0))
