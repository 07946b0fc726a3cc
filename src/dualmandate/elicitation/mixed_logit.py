"""Panel mixed logit: tastes differ between people and stay with a person over her choices [RT98]."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.choices import ChoiceData
from dualmandate.elicitation.conditional_logit import newton
from dualmandate.elicitation.differences import Differences
from dualmandate.elicitation.estimate import Estimates
from dualmandate.elicitation.halton import normal_draws, triangular
from dualmandate.elicitation.maximizing import Likelihood, Maximum, maximize
from dualmandate.elicitation.mixed_kernel import Panel, simulate
from dualmandate.elicitation.mixed_model import Distribution, MixedModel, Space
from dualmandate.errors import InvalidSurvey, NoEstimate, TooLarge

Floats = NDArray[np.float64]
SEED = 1998  # of the starting points after the first; public
MOST_DRAWN = 2**28  # random numbers
JITTER = 0.3  # of standardized locations, and of the logarithms of spreads


def mixed_logit(
    data: ChoiceData,
    random: Mapping[str, Distribution] | Sequence[str],
    *,
    space: Space = "preference",
    price: str | None = None,
    draws: int = 500,
    starts: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> Estimates:
    """Distributions of coefficients among people: locations and spreads, with errors clustered by person.

    log L = Σ_n log (1/R)Σ_r Π_t P(choice t of person n | β_r), β_r from R scrambled Halton draws a person that are the
    same in every run. The surface may have several tops: the highest from `starts` starting points is taken, the first
    being the conditional logit. Draws of either sign are alike, so that a spread is identified up to its sign and
    stated as positive.
    """
    if draws < 2 or starts < 1:
        raise InvalidSurvey(
            f"{draws} draws and {starts} starts cannot simulate a likelihood",
            why="it is an average over draws, climbed from at least one start",
            instead="take some hundred draws and one to five starts",
        )
    distributions: Mapping[str, Distribution] = (
        random if isinstance(random, Mapping) else dict.fromkeys(random, "normal")
    )
    differences = Differences.of(data)
    differences.check_rank()
    model = MixedModel.of(differences, distributions, space=space, price=price)
    if data.people <= len(model.names):
        raise NoEstimate(
            f"{data.people} respondents are too few for {len(model.names)} parameters",
            why="tastes that differ are learned from people, not from answers",
            instead="ask more people, or make fewer coefficients random",
        )
    best = highest(simulated_likelihood(data, differences, model, draws), _starts(model, differences, starts), progress)
    return estimates_of(data, model, best)


def simulated_likelihood(data: ChoiceData, differences: Differences, model: MixedModel, draws: int) -> Likelihood:
    """Log likelihood of each person and its gradient, by standardized parameters."""
    numbers = data.people * draws * len(model.drawn)
    if numbers > MOST_DRAWN:
        raise TooLarge(
            f"{numbers:,} random numbers are too many to keep",
            why=f"they are used again in every step; {MOST_DRAWN:,} take two gigabytes",
            instead=f"take at most {MOST_DRAWN // (data.people * len(model.drawn)):,} draws a person",
        )
    points = normal_draws(data.people, draws, len(model.drawn))
    for column, name in enumerate(model.drawn):
        if model.random[name] == "triangular":
            points[:, column] = triangular(points[:, column])
    people = np.append(differences.first_tasks, data.tasks)
    panel, layout = Panel(differences.rows, differences.task_starts, people, points), model.layout

    def likelihood(theta: Floats) -> tuple[Floats, Floats]:
        values, scores = np.empty(data.people), np.empty((data.people, len(theta)))
        simulate(panel, layout, theta, values, scores)
        return values, scores

    return likelihood


def _starts(model: MixedModel, differences: Differences, count: int) -> list[Floats]:
    first = model.start(newton(differences).point)
    generator = np.random.default_rng(SEED)
    found, attributes = [first], len(model.attributes)
    for _ in range(count - 1):
        shaken = JITTER * generator.standard_normal(len(first))
        found.append(
            np.append(first[:attributes] + shaken[:attributes], first[attributes:] * np.exp(2 * shaken[attributes:]))
        )
    return found


def highest(likelihood: Likelihood, starts: Sequence[Floats], progress: Callable[[str], None]) -> Maximum:
    """The highest of the tops that are reached."""
    tops: list[Maximum] = []
    for number, start in enumerate(starts, 1):
        found = maximize(likelihood, start)
        said = "no maximum" if found is None else f"log likelihood {found.value:,.3f} in {found.steps} steps"
        progress(f"start {number} of {len(starts)}: {said}")
        tops += [] if found is None else [found]
    if not tops:
        raise NoEstimate(
            f"the mixed logit did not converge from any of {len(starts)} starts",
            why="the simulated likelihood rises without end, or too slowly",
            instead="make fewer coefficients random, ask more people, or take a conditional logit",
        )
    return max(tops, key=lambda top: top.value)


def estimates_of(data: ChoiceData, model: MixedModel, top: Maximum) -> Estimates:
    """A top in the attributes' own units, with the sandwich by person."""
    if not top.is_peak:
        flat = np.linalg.eigh(top.curvature)[1][:, 0]
        raise NoEstimate(
            f"the choices do not tell {model.names[int(np.abs(flat).argmax())]}",
            why="the simulated likelihood does not fall when it changes",
            instead="make fewer coefficients random, or ask more people",
        )
    bread = np.linalg.inv(top.curvature)
    factor, shift = model.factors
    spread = np.arange(len(factor)) >= len(model.attributes)
    factor = np.where(spread & (top.point < 0), -factor, factor)
    return Estimates(
        names=model.names,
        values=factor * top.point + shift,
        covariance=bread @ (top.scores.T @ top.scores) @ bread * np.outer(factor, factor),
        log_likelihood=top.value,
        observations=data.tasks,
        clusters=data.people,
    )
