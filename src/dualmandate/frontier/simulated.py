"""A frontier measured by simulation: any chain from data to tables, run on public or synthetic data.

Rounding, consistency and other post-processing change the production function and have no closed form. The chain is
run many times at each of a few losses; between them errors are interpolated on logarithmic scales by monotone cubics,
which keep a decreasing curve decreasing and have a slope everywhere.

The same values accuracy through a decision that is made with it. A formula with thresholds, minima or a fixed
appropriation turns errors in counts into misallocated dollars: the decision is made many times with noisy counts, and
the misallocation against the decision with exact counts is the error, in a simulated frontier whose one table is in
USD. For a formula that is linear in counts this is the paper's case: Σ C²·ESE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, InvalidWorkload
from dualmandate.frontier.frontier import MEASURES, Curves, Frontier, named, priced
from dualmandate.mechanism import Measure, Measurement, NamedMeasure, Production
from dualmandate.mechanism.mechanism import table_rows
from dualmandate.population import Histogram, PrivacyMeasure
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.wording import percent
from dualmandate.workload import Workload

if TYPE_CHECKING:
    from scipy.interpolate import PchipInterpolator

ReleaseChain = Callable[[float, Histogram, np.random.Generator], Floats]
"""A chain from a loss, a public histogram and randomness to the answers of a workload, shape (query_count,)."""


@dataclass(frozen=True)
class Simulation:
    """How a chain is simulated: at which losses, how often, from which seed, and how sure its band shall be."""

    losses: tuple[float, ...]  # increasing, at least two
    repetitions: int  # at each loss, at least two
    seed: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        losses = np.asarray(self.losses)
        if len(losses) < 2 or not np.all(np.isfinite(losses)) or losses[0] <= 0 or np.any(np.diff(losses) <= 0):
            raise InvalidLoss(
                f"a simulation at the losses {self.losses}",
                why="a curve runs through at least two positive losses, each larger than the one before",
                instead="list increasing, positive losses",
            )
        if self.repetitions < 2 or not 0.0 < self.confidence < 1.0:
            raise InvalidMechanism(
                f"a simulation of {self.repetitions} repetitions with a band of {percent(self.confidence)}",
                why="a band needs repetitions to differ and a confidence strictly between 0 and 1",
                instead="repeat at least twice, with a confidence such as 0.95",
            )


@dataclass(frozen=True)
class _Tally:
    """Mean errors at each simulated loss and the relative half-width of their band; shapes (losses, tables)."""

    means: Floats
    spreads: Floats


@dataclass(frozen=True, eq=False)
class SimulatedCurves(Curves):
    """Curves through simulated errors; beyond the simulated losses they go on as power laws, which is a guess."""

    name: str
    simulation: Simulation
    tallies: Mapping[NamedMeasure, _Tally]

    def band(self, loss: float, measure: Measure = "squared") -> Floats:
        """Monte-Carlo band of each table's error at one loss: lowest and highest, shape (tables, 2)."""
        logs = np.log(self.simulation.losses)
        spreads = self.tallies[named(measure)].spreads
        at = [np.interp(math.log(loss), logs, spreads[:, table]) for table in range(spreads.shape[1])]
        middle = self.values(loss, measure)
        return np.stack([middle * np.exp(-np.array(at)), middle * np.exp(np.array(at))], axis=1)

    def values(self, loss: float, measure: Measure) -> Floats:
        return np.exp(self._logs(loss, measure)[0])

    def slopes(self, loss: float, measure: Measure) -> Floats:
        level, elasticity, _ = self._logs(loss, measure)
        return np.exp(level) * elasticity / loss

    def curvatures(self, loss: float, measure: Measure) -> Floats:
        """Curvatures of each table; they jump at simulated losses."""
        level, elasticity, bend = self._logs(loss, measure)
        return np.exp(level) * (bend + elasticity * (elasticity - 1.0)) / loss**2

    def technology(self, loss: float) -> str:
        del loss
        return self.name

    def _logs(self, loss: float, measure: Measure) -> tuple[Floats, Floats, Floats]:
        """ln error, its elasticity and the derivative of that in ln loss, table by table."""
        curve = self._curves[named(measure)]
        x = math.log(loss)
        inside = min(max(x, math.log(self.simulation.losses[0])), math.log(self.simulation.losses[-1]))
        level, elasticity, bend = curve(inside), curve(inside, 1), curve(inside, 2)
        if inside == x:
            return level, elasticity, bend
        return level + elasticity * (x - inside), elasticity, np.zeros_like(bend)

    @cached_property
    def _curves(self) -> dict[NamedMeasure, PchipInterpolator]:
        from scipy.interpolate import PchipInterpolator

        logs = np.log(self.simulation.losses)
        return {m: PchipInterpolator(logs, _decreasing(np.log(tally.means))) for m, tally in self.tallies.items()}


def simulated(
    release: ReleaseChain,
    workload: Workload,
    *,
    histogram: Histogram,
    simulation: Simulation,
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP,
    name: str = "simulated",
) -> Frontier:
    """The frontier of a release chain on public or synthetic data, with a Monte-Carlo band.

    Repetition r sees the same randomness at every loss, so that curves are smooth, and the same seed gives the same
    frontier. `frontier.curves.band(loss)` says how far simulation itself may be off. Never give it confidential data:
    a frontier is printed.
    """
    truth = np.asarray(workload.answers(histogram.counts), dtype=np.float64)
    query_counts = {table.name: table.query_count for table in workload.tables}
    return _simulated(release, histogram, truth, query_counts, simulation, privacy_measure, name)


def _simulated(
    release: ReleaseChain,
    histogram: Histogram,
    truth: Floats,
    query_counts: Mapping[str, int],
    simulation: Simulation,
    privacy_measure: PrivacyMeasure,
    name: str,
) -> Frontier:
    """The same for any numbers that a chain ends in, beside the `truth` of shape (Σ query counts,), table by table."""
    ends = np.cumsum(list(query_counts.values()))

    def run(loss: float, generator: np.random.Generator) -> Floats:
        return release(loss, histogram, generator)

    tallies = _tallies([_measure_at(run, loss, truth, ends, simulation) for loss in simulation.losses])
    silent = np.argwhere(tallies["squared"].means == 0.0)
    if silent.size:
        loss, table = simulation.losses[silent[0][0]], list(query_counts)[silent[0][1]]
        raise InvalidLoss(
            f"no error was seen in '{table}' at {privacy_measure} = {loss:g}",
            why=f"{simulation.repetitions} repetitions are too few to see how rare its errors are",
            instead="simulate more repetitions, or only smaller losses",
        )
    return Frontier(name, privacy_measure, dict(query_counts), SimulatedCurves(name, simulation, tallies))


_Measured = dict[NamedMeasure, tuple[Floats, Floats]]


def _tallies(measured: Sequence[_Measured]) -> dict[NamedMeasure, _Tally]:
    return {
        measure: _Tally(np.array([m[measure][0] for m in measured]), np.array([m[measure][1] for m in measured]))
        for measure in MEASURES
    }


def _measure_at(
    run: Callable[[float, np.random.Generator], Floats],
    loss: float,
    truth: Floats,
    ends: Integers,
    simulation: Simulation,
) -> _Measured:
    """Mean and relative half-width of the band of each table's errors at one loss."""
    starts = np.concatenate([[0], ends[:-1]])
    squared = np.empty((simulation.repetitions, len(ends)))
    absolute = np.empty_like(squared)
    squares, fourths = np.zeros_like(truth), np.zeros_like(truth)
    for repetition in range(simulation.repetitions):
        generator = np.random.default_rng([simulation.seed, repetition])
        error = np.asarray(run(loss, generator), dtype=np.float64) - truth
        square = np.square(error)
        squared[repetition] = np.add.reduceat(square, starts)
        absolute[repetition] = np.add.reduceat(np.abs(error), starts)
        squares += square
        fourths += np.square(square)
    mean, second = squares / simulation.repetitions, fourths / simulation.repetitions
    worst = [start + int(np.argmax(mean[start:end])) for start, end in zip(starts, ends, strict=True)]
    spread = np.sqrt(np.maximum(second[worst] - mean[worst] ** 2, 0.0) / (simulation.repetitions - 1))
    sums: dict[NamedMeasure, Floats] = {"squared": squared, "absolute": absolute}
    scale = math.sqrt(simulation.repetitions)
    found = {m: _with_band(each.mean(axis=0), each.std(axis=0, ddof=1) / scale, simulation) for m, each in sums.items()}
    return found | {"largest variance": _with_band(mean[worst], spread, simulation)}


def _with_band(mean: Floats, standard_error: Floats, simulation: Simulation) -> tuple[Floats, Floats]:
    """Student's interval for the logarithm of the mean, by the delta method: it stays above 0."""
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    reach = float(stdtrit(simulation.repetitions - 1, 0.5 + simulation.confidence / 2))
    return mean, np.divide(reach * standard_error, mean, out=np.zeros_like(mean), where=mean > 0.0)


def _decreasing(logs: Floats) -> Floats:
    """The nearest decreasing curves (pool adjacent violators), column by column: chance must not make errors grow."""
    from scipy.optimize import isotonic_regression

    return np.stack([isotonic_regression(column, increasing=False).x for column in logs.T], axis=1)


class Decision(Protocol):
    """Money given out by published numbers; the same numbers always give the same money."""

    @property
    def name(self) -> str:
        """What is given out, as a table of its own."""

    def allocation(self, numbers: Floats, /) -> Floats:
        """USD to each recipient, shape (recipients,), from the answers of a workload, shape (query_count,)."""


@dataclass(frozen=True, eq=False)
class FormulaGrant:
    """A grant by formula: so much a head, to places that are large enough, scaled down to what was appropriated.

    A place with fewer than `threshold` counted heads gets nothing. Where the formula asks for more than the
    `appropriation`, every place gets the same share of what it asks for.
    """

    per_head: Sequence[float] | Floats  # C, USD a head, one a place
    threshold: float = 0.0
    appropriation: float = math.inf  # USD
    name: str = "grants"

    def allocation(self, numbers: Floats, /) -> Floats:
        rates = np.asarray(self.per_head, dtype=np.float64)
        if numbers.shape != rates.shape:
            raise InvalidWorkload(
                f"{numbers.size} numbers for {rates.size} places",
                why="a formula by the head needs one number a place",
                instead="ask for a table with one cell a place",
            )
        asked = np.where(numbers >= self.threshold, rates * numbers, 0.0) if self.threshold > 0 else rates * numbers
        total = float(asked.sum())
        return asked * min(1.0, self.appropriation / total) if total > 0 else asked


def decision_frontier(
    decision: Decision,
    release: ReleaseChain,
    workload: Workload,
    *,
    histogram: Histogram,
    simulation: Simulation,
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP,
) -> Frontier:
    """How far a decision with noisy answers is off, in USD, at each privacy loss; one table, named after the decision.

    `histogram` is public or synthetic: a frontier is printed, so confidential counts must never stand here.
    """
    exact = np.asarray(workload.answers(histogram.counts), dtype=np.float64)
    truth = decision.allocation(exact)

    def decide(loss: float, counts: Histogram, generator: np.random.Generator) -> Floats:
        return decision.allocation(np.asarray(release(loss, counts, generator), dtype=np.float64))

    name = f"{decision.name} decided with noisy counts"
    return _simulated(decide, histogram, truth, {decision.name: truth.size}, simulation, privacy_measure, name)


@dataclass(frozen=True, eq=False)
class Misallocation:
    """What a decision with the noisy numbers of one table misallocates: a measure of its errors, in USD or USD².

    Σ |given − due| ("absolute") or Σ (given − due)² ("squared") over recipients, in the mean over simulated noise on
    the table's public numbers. It is simulated as a multiple of the table's own exact error, at losses of its own, up
    to where errors are so rare that the band would be wider than the mean; beyond, the multiple stays.
    """

    table: str
    decision: Decision
    numbers: Floats  # public, in the table's unit, one a recipient, row-major
    counted: Literal["absolute", "squared"]
    simulation: Simulation
    grid: float = 1.0  # the table's unit in one step of its answers
    power = 0
    quick = False
    convex = False

    def unit(self, _: str, currency: str, /) -> str:
        return currency if self.counted == "absolute" else f"{currency}^2"

    def curve(self, production: Production, /) -> MisallocationCurve:
        """The misallocation at each loss, with its simulation band; simulated once a technology."""
        if production not in self._known:
            self._known[production] = self._simulated(production)
        return self._known[production]

    @property
    def due(self) -> Floats:
        """What each recipient is given by the exact numbers, USD."""
        return self.decision.allocation(self.numbers)

    @cached_property
    def _known(self) -> dict[Production, MisallocationCurve]:
        return {}

    def _simulated(self, production: Production) -> MisallocationCurve:
        if not isinstance(production, Measurement):
            raise InvalidMechanism(
                f"a decision with table '{self.table}' from {production.technology}",
                why="its errors are drawn from the noise of a measurement",
                instead="use noise on the tables, on every cell or on a strategy",
            )
        rows, due, ends = table_rows(production.workload, self.table), self.due, np.array([self.numbers.size])

        def run(loss: float, generator: np.random.Generator) -> Floats:
            errors = production.draw_errors(loss, generator=generator, size=1)[0, rows]
            return self.decision.allocation(self.numbers + self.grid * errors)

        errors = priced(production).remembered()
        means: list[float] = []
        spreads: list[float] = []
        for loss in self.simulation.losses:
            mean, spread = (float(each[0]) for each in _measure_at(run, loss, due, ends, self.simulation)[self.counted])
            if not mean > 0 or (len(means) > 1 and spread > 1):
                break
            means.append(mean / errors.table_errors(loss, self.counted)[self.table])
            spreads.append(spread)
        if len(means) < 2:
            raise InvalidLoss(
                f"the decision '{self.decision.name}' was never wrong",
                why=f"{self.simulation.repetitions} repetitions at {production.privacy_measure} = "
                f"{self.simulation.losses[0]:g} saw no error, or none at the next loss",
                instead="check the public numbers, the threshold and the appropriation; or state a value_of_accuracy",
            )
        logs = np.log(self.simulation.losses[: len(means)])
        return MisallocationCurve(errors, self.table, self.counted, logs, np.log(means), np.array(spreads))


@dataclass(frozen=True, eq=False)
class MisallocationCurve:
    """What is misallocated at each loss: a simulated multiple of the exact error of a table."""

    errors: Frontier
    table: str
    counted: Literal["absolute", "squared"]
    log_losses: Floats  # that were simulated, increasing
    log_multiples: Floats
    spreads: Floats  # relative half-widths of the band

    def __call__(self, loss: float) -> float:
        within = min(max(math.log(loss), float(self.log_losses[0])), float(self.log_losses[-1]))
        return self.errors.table_errors(loss, self.counted)[self.table] * math.exp(self._multiple(within))

    def band(self, loss: float) -> tuple[float, float]:
        """The lowest and the highest that it may be, as far as simulation is off."""
        middle, factor = self(loss), math.exp(float(np.interp(math.log(loss), self.log_losses, self.spreads)))
        return middle / factor, middle * factor

    @cached_property
    def _multiple(self) -> PchipInterpolator:
        from scipy.interpolate import PchipInterpolator

        return PchipInterpolator(self.log_losses, self.log_multiples)


def noisy_answers(production: Production) -> ReleaseChain:
    """The plain chain: a technology's noisy answers, with nothing done to them."""

    def release(loss: float, histogram: Histogram, generator: np.random.Generator) -> Floats:
        return production.draw(histogram.counts, loss, generator=generator, size=1).reshape(-1)

    return release
