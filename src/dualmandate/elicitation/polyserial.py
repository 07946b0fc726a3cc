"""Polyserial correlations: an amount without steps, such as income, and an opinion on an ordered scale.

Amount and opinion follow a joint normal law, the opinion cut into levels. Its likelihood is that of the amount times
an ordered probit of the opinion on the amount, and each part has parameters of its own: so the most likely correlation
is ρ = β/√(1 + β²), β the probit's slope on the standardized amount [OCD82].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from dualmandate.elicitation.interval_model import IntervalRows, most_likely
from dualmandate.elicitation.willingness import critical_value
from dualmandate.errors import InvalidSurvey

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Polyserial:
    """A correlation between an amount and an ordered answer, with its standard error."""

    correlation: float
    standard_error: float  # robust: also where the amount is not normal
    thresholds: Floats  # (levels − 1,), of the opinion, in its standard deviations
    influence: Floats  # (people,): by how much each moves the estimate, times people
    observations: int

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """An interval, symmetric after Fisher's transformation atanh(ρ)."""
        width = critical_value(level) * self.standard_error / (1.0 - self.correlation**2)
        middle = math.atanh(self.correlation)
        return math.tanh(middle - width), math.tanh(middle + width)


def polyserial(amounts: ArrayLike, answers: ArrayLike) -> Polyserial:
    """The correlation between an amount and an ordered answer of the same people; missing rows are left out."""
    amount, answer = (np.asarray(column, dtype=np.float64) for column in (amounts, answers))
    if amount.shape != answer.shape or amount.ndim != 1:
        raise InvalidSurvey(
            f"{amount.size} amounts and {answer.size} answers",
            why="a correlation is between an amount and an answer of the same people",
            instead="give one row a person in both",
        )
    given = np.isfinite(amount) & np.isfinite(answer)
    levels, place = np.unique(answer[given], return_inverse=True)
    people = len(place)
    if len(levels) < 2 or np.ptp(amount[given]) == 0:
        raise InvalidSurvey(
            "the amount or the answer is the same for everybody",
            why="what never varies cannot hang together with anything",
            instead="leave it out",
        )
    standard = (amount[given] - amount[given].mean()) / amount[given].std()
    cuts = ndtri(np.cumsum(np.bincount(place))[:-1] / people)
    # u = threshold above − slope·amount, v = threshold below − slope·amount.
    upper, lower = np.zeros((people, len(levels))), np.zeros((people, len(levels)))
    has_upper, has_lower = place < len(levels) - 1, place > 0
    upper[has_upper, place[has_upper]], lower[has_lower, place[has_lower] - 1] = 1.0, 1.0
    upper[:, -1] = lower[:, -1] = -standard
    found = most_likely(IntervalRows(upper, lower, has_upper, has_lower), np.append(cuts, 0.0), "normal")
    slope = float(found.parameters[-1])
    length = math.sqrt(1.0 + slope**2)
    own = people * found.scores @ np.linalg.inv(-found.hessian)[-1]
    influence = (own + slope * (standard**2 - 1.0) / 2.0) / length**3  # the second part: the amount's own spread
    return Polyserial(
        correlation=slope / length,
        standard_error=math.sqrt(float(influence @ influence)) / people,
        thresholds=found.parameters[:-1] / length,
        influence=influence,
        observations=people,
    )
