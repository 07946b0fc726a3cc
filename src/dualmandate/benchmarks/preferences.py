"""Panel mixed logit: processor seconds beside xlogit's on the same answers, and intervals that hold as often as stated.

Each side fits in a fresh process with one thread, three times after a small fit that loads and compiles; the median
counts. Both answers are then judged by one simulated likelihood, on more draws than either used. The answers are those
of people whose tastes are known.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks.harness import BenchmarkRow, apart, installed
from dualmandate.elicitation import ChoiceData, ParameterEstimates, mixed_logit
from dualmandate.elicitation.answers import Differences
from dualmandate.elicitation.logit import MixedModel, simulated_likelihood

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
SPREADS = (1.1, 0.9, 0.9, 0.6, 1.0, 0.4, 0.9, 0.6, 1.0, 0.6, 1.0, 0.7)
LARGE = Experiment(
    people=394,
    tasks=8,
    alternatives=4,
    means=(*np.linspace(-1.0, 1.0, len(SPREADS)).tolist(), -0.5),
    spreads=(*SPREADS, 0.0),
)
WARM_UP = Experiment(people=60, tasks=4, alternatives=3, means=(0.5, -0.5), spreads=(1.0, 0.0))
SEED, DRAWS, JUDGING_DRAWS, TIMES = 394, 500, 2_000, 3
LEAST_RATIO = 10.0  # fits in the time of one of xlogit's
MOST_SHORT = 2.0  # log likelihood: by so much and more it moves when 500 draws are replaced by others
REPLICATIONS, COVERAGE_DRAWS = 1_000, 200
LEAST_COVERAGE, MOST_COVERAGE = 0.93, 0.97


@dataclass(frozen=True)
class FitTime:
    """What one side found, and what it took."""

    name: str
    seconds: list[float]  # of one processor, each time
    values: list[float]  # locations by attribute, then spreads


def rows(
    progress: Callable[[str], None], *, replications: int = REPLICATIONS, times: int = TIMES
) -> list[BenchmarkRow]:
    """Seconds, how many fits that is in the time of one of the peer's, both answers judged, and coverage."""
    case = "panel mixed logit, 12 random coefficients, 500 draws, 394 people × 8 choices of 4"
    progress(case)
    ours, theirs = _fitted(fit_ours, times), _fitted(fit_xlogit, times)
    assert ours is not None
    seconds = statistics.median(ours.seconds)
    row = BenchmarkRow(case, seconds, "processor seconds, median")
    if theirs is None:
        found = [row]
    else:
        peer_seconds = statistics.median(theirs.seconds)
        short = judged(theirs.values) - judged(ours.values)
        times_as_fast = "fits in the time of one of the peer"
        less_likely = f"log likelihood below the peer's, on {JUDGING_DRAWS:,} draws"
        found = [
            replace(row, peer=theirs.name, peer_value=peer_seconds),
            BenchmarkRow(case, peer_seconds / seconds, times_as_fast, LEAST_RATIO, theirs.name, is_floor=True),
            BenchmarkRow(case, short, less_likely, MOST_SHORT, theirs.name),
        ]
    return found + _coverage_rows(progress, replications)


def _coverage_rows(progress: Callable[[str], None], replications: int) -> list[BenchmarkRow]:
    case = f"coverage of 95 % intervals, mixed logit, {replications:,} surveys of 300 people × 8 choices of 3"
    progress(case)

    def estimate(data: ChoiceData) -> Any:
        return mixed_logit(data, MIXED.random, draws=COVERAGE_DRAWS, starts=1)

    shares = covered(MIXED, estimate, replications=replications, seed=SEED).values()
    return [
        BenchmarkRow(case, min(shares), "least share of five parameters", target=LEAST_COVERAGE, is_floor=True),
        BenchmarkRow(case, max(shares), "largest share of five parameters", target=MOST_COVERAGE),
    ]


def judged(values: list[float]) -> float:
    """The log likelihood of parameters, on draws that neither side fitted to."""
    data = LARGE.answers(np.random.default_rng(SEED))
    differences = Differences.of(data)
    model = MixedModel.of(differences, dict.fromkeys(LARGE.random, "normal"), space="preference", price=None)
    factor, shift = model.factors
    likelihood = simulated_likelihood(data, differences, model, JUDGING_DRAWS)
    return float(likelihood((np.array(values) - shift) / factor)[0].sum())


def _fitted(side: Callable[[int], FitTime | None], times: int) -> FitTime | None:
    """One side in a fresh process; None where its package is not installed."""
    found = apart(side, times)
    return None if found is None else FitTime(**found)


def _timed(name: str, times: int, fit: Callable[[Experiment, int], list[float]]) -> FitTime:
    fit(WARM_UP, 20)
    seconds, values = [], list[float]()
    for _ in range(times):
        started = time.process_time()
        values = fit(LARGE, DRAWS)
        seconds.append(time.process_time() - started)
    return FitTime(name, seconds, values)


def fit_ours(times: int) -> FitTime:
    """From the conditional logit, as the peer does; standard errors included."""
    answers = {each: each.answers(np.random.default_rng(SEED)) for each in (WARM_UP, LARGE)}

    def fit(experiment: Experiment, draws: int) -> list[float]:
        return list(map(float, mixed_logit(answers[experiment], experiment.random, draws=draws, starts=1).values))

    return _timed("ours", times, fit)


def fit_xlogit(times: int) -> FitTime | None:
    """Its own defaults: Halton draws, BFGS from the conditional logit, standard errors included."""
    name = installed("xlogit")
    if name is None:
        return None
    package: Any = import_module("xlogit")
    answers = {each: each.answers(np.random.default_rng(SEED)) for each in (WARM_UP, LARGE)}

    def fit(experiment: Experiment, draws: int) -> list[float]:
        data, model = answers[experiment], package.MixedLogit()
        model.fit(
            X=data.attributes,
            y=data.chosen.astype(np.int64),
            varnames=list(data.names),
            alts=np.tile(np.arange(experiment.alternatives), data.tasks),
            ids=data.task,
            panels=data.respondent,
            randvars=dict.fromkeys(experiment.random, "n"),
            n_draws=draws,
            verbose=0,
        )
        return [float(value) for value in model.coeff_]

    return _timed(name, times, fit)
