"""A frontier measured by simulation: any chain from data to tables, run on public or synthetic data.

Rounding, consistency and other post-processing change the production function and have no closed form. The chain is
run many times at each of a few losses, with the same randomness at each. Simulated errors are brought to the nearest
curve that falls ever more slowly, where one lies within their bands, and else to the nearest that falls; between losses
it is interpolated on logarithmic scales by monotone cubics. Nothing is said beyond the losses that were simulated.

How far simulation itself may be off any number that rests on the curve, a slope or the chosen loss, is found by leaving
out one group of repetitions after the other (the jackknife [T58]): with G groups and θ_g without the g-th, its variance
is (G − 1)/G·Σ (θ_g − θ̄)².

The same values accuracy through a decision that is made with it. A formula with thresholds, minima or a fixed
appropriation turns errors in counts into misallocated dollars: the decision is made many times with noisy counts, and
the misallocation against the decision with exact counts is the error, in a simulated frontier whose one table is in
USD. For a formula that is linear in counts this is the paper's case: Σ C²·ESE.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, InvalidWorkload
from dualmandate.frontier.frontier import MEASURES, Curves, Frontier, named, priced
from dualmandate.mechanism import (
    DataDependentMechanism,
    Measure,
    Measurement,
    NamedMeasure,
    Production,
    simulation_keys,
)
from dualmandate.mechanism.mechanism import EVERY_PERSON, table_rows
from dualmandate.population import Counts, Histogram, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.machine import on_all_processors
from dualmandate.population.wording import percent
from dualmandate.workload import Workload

if TYPE_CHECKING:
    from scipy.interpolate import PchipInterpolator

MOST_LOSSES = 200  # where further ones are placed
CHANCE = 2.0  # standard errors that a curve may be off by chance
GROUPS = 20  # of repetitions that are left out in turn
SLACK = 1e-12  # of the ends of what was simulated
FORETOLD: tuple[NamedMeasure, ...] = ("squared", "absolute")  # The largest of many errors jumps from one to another.
ReleaseChain = Callable[[float, Histogram, np.random.Generator], Floats]
"""A chain from a loss, a public histogram and randomness to the answers of a workload, shape (query_count,)."""
Run = Callable[[float, int], Floats]
"""One repetition at a loss, by its number: the same number has the same randomness at every loss."""
Progress = Callable[[str], None]
"""Whoever wants to know what is being done, in words."""


@dataclass(frozen=True)
class Simulation:
    """How a chain is simulated: at which losses, how often, from which seed, and how sure its band shall be."""

    losses: tuple[float, ...]  # increasing, at least two
    repetitions: int  # at each loss, at least two
    seed: int
    confidence: float = 0.95
    tolerance: float | None = None  # Further losses are placed until the curve foretells each within it, or its band.

    def __post_init__(self) -> None:
        losses = np.asarray(self.losses)
        if len(losses) < 2 or not np.all(np.isfinite(losses)) or losses[0] <= 0 or np.any(np.diff(losses) <= 0):
            raise InvalidLoss(
                f"a simulation at the losses {self.losses}",
                why="a curve runs through at least two positive losses, each larger than the one before",
                instead="list increasing, positive losses",
            )
        if self.tolerance is not None and not 0.0 < self.tolerance < math.inf:
            raise InvalidLoss(
                f"a simulation with a tolerance of {self.tolerance}",
                why="it is by how much of an error a curve may be off between losses",
                instead="state a positive one, such as 0.02",
            )
        if self.repetitions < 2 or not 0.0 < self.confidence < 1.0:
            raise InvalidMechanism(
                f"a simulation of {self.repetitions} repetitions with a band of {percent(self.confidence)}",
                why="a band needs repetitions to differ and a confidence strictly between 0 and 1",
                instead="repeat at least twice, with a confidence such as 0.95",
            )

    def generator(self, repetition: int) -> np.random.Generator:
        """The randomness of one repetition, at whatever loss."""
        return np.random.default_rng([self.seed, repetition])


@dataclass(frozen=True)
class _Tally:
    """Mean errors at each simulated loss and the relative half-width of their band; shapes (losses, tables).

    `without` are the means without each group of repetitions; shape (groups, losses, tables).
    """

    means: Floats
    spreads: Floats
    without: Floats


@dataclass(frozen=True, eq=False)
class SimulatedCurves(Curves):
    """Curves through simulated errors, from the smallest to the largest simulated loss."""

    name: str
    simulation: Simulation
    tallies: Mapping[NamedMeasure, _Tally]
    biases: Floats  # Σ (E error)² of each table, at each simulated loss: what no repetition averages out; ≥ 0

    def bias_shares(self, loss: float) -> Floats:
        """How much of each table's squared error, at a simulated loss, is its bias: the same in every release."""
        at = int(np.argmin(np.abs(np.log(self.simulation.losses) - math.log(loss))))
        shares: Floats = self.biases[at] / self.tallies["squared"].means[at]
        return np.minimum(shares, 1.0)

    @property
    def known_losses(self) -> tuple[float, float]:
        return self.simulation.losses[0], self.simulation.losses[-1]

    @property
    def without_each_group(self) -> Iterator[SimulatedCurves]:
        """The curves of all repetitions but one group's, group by group."""
        for group in range(len(self.tallies["squared"].without)):
            left = {m: replace(tally, means=tally.without[group]) for m, tally in self.tallies.items()}
            yield replace(self, tallies=left)

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
        least, most = self.known_losses
        if not least * (1 - SLACK) <= loss <= most * (1 + SLACK):
            raise InvalidLoss(
                f"the error of '{self.name}' at a loss of {loss:g} is not known",
                why=f"releases were simulated from {least:g} to {most:g}, and what lies beyond is not guessed",
                instead="simulate smaller or larger losses too",
            )
        curve, x = self._curve(named(measure)), math.log(min(max(loss, least), most))
        return curve(x), curve(x, 1), curve(x, 2)

    def _curve(self, measure: NamedMeasure) -> PchipInterpolator:
        """Of one measure, when it is asked for: the worst single number may be wrong too rarely where sums are not."""
        from scipy.interpolate import PchipInterpolator

        if measure not in self._curves:
            losses, tally = np.array(self.simulation.losses), self.tallies[measure]
            if not np.all(tally.means > 0):
                raise InvalidLoss(
                    f"the {measure} error of '{self.name}' was not seen often enough",
                    why=f"in some of {self.simulation.repetitions} repetitions and their groups there was none",
                    instead="simulate more repetitions, or only smaller losses",
                )
            logs = _falling(losses, tally.means, tally.spreads)
            self._curves[measure] = PchipInterpolator(np.log(losses), logs)
        return self._curves[measure]

    @cached_property
    def _curves(self) -> dict[NamedMeasure, PchipInterpolator]:
        return {}


def _silent(_: str) -> None:
    """Nobody wants to know."""


def simulated(
    release: ReleaseChain,
    workload: Workload,
    *,
    histogram: Histogram,
    simulation: Simulation,
    privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP,
    name: str = "simulated",
    progress: Progress | None = None,
) -> Frontier:
    """The frontier of a release chain on public or synthetic data, with a Monte-Carlo band.

    Repetition r sees the same randomness at every loss, so that curves are smooth, and the same seed gives the same
    frontier. With a `tolerance` further losses are placed where the curve bends. `frontier.curves.band(loss)` says how
    far simulation itself may be off, and `simulation_error` how far a slope or a choice on it may be. Releases are made
    on all processors where that takes a while; the numbers are the same. Never give it
    confidential data: a frontier is printed.
    """
    truth = np.asarray(workload.answers(histogram.counts), dtype=np.float64)
    query_counts = {table.name: table.query_count for table in workload.tables}

    def run(loss: float, repetition: int) -> Floats:
        return release(loss, histogram, simulation.generator(repetition))

    return _simulated(run, truth, query_counts, simulation, privacy_measure, name, progress)


def frontier_on(
    mechanism: DataDependentMechanism,
    workload: Workload,
    *,
    counts: Counts,
    simulation: Simulation,
    protection: Protection = EVERY_PERSON,
    progress: Progress | None = None,
) -> Frontier:
    """The frontier of a technology whose errors depend on the data, on public or synthetic counts.

    Its noise is drawn as that of a release is, exactly, from keys that everybody may know.
    """
    truth = np.asarray(workload.answers_from(counts), dtype=np.float64)
    query_counts = {table.name: table.query_count for table in workload.tables}

    def run(loss: float, repetition: int) -> Floats:
        keys = simulation_keys(simulation.seed, repetition)
        return mechanism.answer(counts, workload, Fraction(loss), keys, protection=protection).values

    return _simulated(run, truth, query_counts, simulation, mechanism.privacy_measure, mechanism.name, progress)


def _simulated(
    run: Run,
    truth: Floats,
    query_counts: Mapping[str, int],
    simulation: Simulation,
    privacy_measure: PrivacyMeasure,
    name: str,
    progress: Progress | None,
) -> Frontier:
    """The same for any numbers that a chain ends in, beside the `truth` of shape (Σ query counts,), table by table."""
    ends = np.cumsum(list(query_counts.values()))

    def measured(loss: float) -> _Measured:
        return _measure_at(run, loss, truth, ends, simulation, name=name, progress=progress or _silent)

    curves = _placed(measured, simulation, name)
    silent = np.argwhere(curves.tallies["squared"].means == 0.0)
    if silent.size:
        loss, table = curves.simulation.losses[silent[0][0]], list(query_counts)[silent[0][1]]
        raise InvalidLoss(
            f"no error was seen in '{table}' at {privacy_measure} = {loss:g}",
            why=f"{simulation.repetitions} repetitions are too few to see how rare its errors are",
            instead="simulate more repetitions, or only smaller losses",
        )
    return Frontier(name, privacy_measure, dict(query_counts), curves)


def joined(one: Frontier, other: Frontier) -> Frontier:
    """One frontier through what was simulated for two, at different losses, of the same technology on the same data."""
    curves = [each.curves for each in (one, other)]
    assert all(isinstance(each, SimulatedCurves) for each in curves)
    first, second = (each for each in curves if isinstance(each, SimulatedCurves))
    losses = np.concatenate([first.simulation.losses, second.simulation.losses])
    order = np.argsort(losses)

    def both(a: Floats, b: Floats, axis: int = 0) -> Floats:
        return np.concatenate([a, b], axis=axis).take(order, axis=axis)

    tallies = {
        measure: _Tally(
            both(mine.means, theirs.means), both(mine.spreads, theirs.spreads), both(mine.without, theirs.without, 1)
        )
        for measure, mine in first.tallies.items()
        for theirs in [second.tallies[measure]]
    }
    simulation = replace(first.simulation, losses=tuple(losses[order].tolist()))
    found = SimulatedCurves(first.name, simulation, tallies, both(first.biases, second.biases))
    return replace(one, curves=found)


@dataclass(frozen=True)
class _Measured:
    """What was simulated at one loss: mean, band, and means without each group, by measure; and Σ bias² by table."""

    errors: Mapping[NamedMeasure, tuple[Floats, Floats, Floats]]
    biases: Floats


def _placed(measured: Callable[[float], _Measured], simulation: Simulation, name: str) -> SimulatedCurves:
    """What was simulated, and where: further losses halve an interval whose middle the curve did not foretell."""
    known = {loss: measured(loss) for loss in simulation.losses}
    waiting = list(pairwise(simulation.losses)) if simulation.tolerance is not None else []
    while waiting and len(known) < MOST_LOSSES:
        start, end = waiting.pop(0)
        curves, middle = _through(known, simulation, name), math.sqrt(start * end)
        known[middle] = measured(middle)
        if any(_is_off(curves, middle, known[middle], measure) for measure in FORETOLD):
            waiting += [(start, middle), (middle, end)]
    return _through(known, simulation, name)


def _through(known: Mapping[float, _Measured], simulation: Simulation, name: str) -> SimulatedCurves:
    losses = tuple(sorted(known))
    tallies = {}
    for measure in MEASURES:
        means, spreads, without = (
            np.array(each) for each in zip(*(known[at].errors[measure] for at in losses), strict=True)
        )
        tallies[measure] = _Tally(means, spreads, without.swapaxes(0, 1))
    biases = np.array([known[at].biases for at in losses])
    return SimulatedCurves(name, replace(simulation, losses=losses), tallies, biases)


def _is_off(curves: SimulatedCurves, loss: float, found: _Measured, measure: NamedMeasure) -> bool:
    """Whether a curve foretold an error worse than within the tolerance, and than chance alone would.

    Both rest on the same randomness, so that chance moves their ratio little: by as much as leaving out groups does.
    """
    assert curves.simulation.tolerance is not None
    means, _, without = found.errors[measure]
    if not (np.all(means > 0) and np.all(curves.tallies[measure].means > 0) and np.all(without > 0)):
        return False  # refused later: errors are too rare
    missed = np.log(curves.values(loss, measure) / means)
    left = zip(curves.without_each_group, without, strict=True)
    each = np.array([np.log(other.values(loss, measure) / own) for other, own in left])
    spread = np.sqrt((len(each) - 1) * each.var(axis=0))
    return bool(np.any(np.abs(missed) > np.maximum(curves.simulation.tolerance, CHANCE * spread)))


def _measure_at(
    run: Run,
    loss: float,
    truth: Floats,
    ends: Integers,
    simulation: Simulation,
    *,
    name: str,
    progress: Progress,
) -> _Measured:
    """Mean and relative half-width of the band of each table's errors at one loss."""
    starts = np.concatenate([[0], ends[:-1]])
    squared = np.empty((simulation.repetitions, len(ends)))
    absolute = np.empty_like(squared)
    errors, squares, fourths = np.zeros_like(truth), np.zeros_like(truth), np.zeros_like(truth)
    groups = min(GROUPS, simulation.repetitions)
    by_group = np.zeros((groups, len(truth)))
    done = f"simulating '{name}': release {{:,}} of {simulation.repetitions:,} at {loss:.3g}"
    answers = on_all_processors(
        lambda repetition: np.asarray(run(loss, repetition), dtype=np.float64),
        simulation.repetitions,
        told=lambda count: progress(done.format(count)),
    )
    for repetition, answer in enumerate(answers):
        error = answer - truth
        square = np.square(error)
        squared[repetition] = np.add.reduceat(square, starts)
        absolute[repetition] = np.add.reduceat(np.abs(error), starts)
        errors += error
        squares += square
        by_group[repetition % groups] += square
        fourths += np.square(square)
    mean, second = squares / simulation.repetitions, fourths / simulation.repetitions
    worst = [start + int(np.argmax(mean[start:end])) for start, end in zip(starts, ends, strict=True)]
    spread = np.sqrt(np.maximum(second[worst] - mean[worst] ** 2, 0.0) / (simulation.repetitions - 1))
    sums: dict[NamedMeasure, Floats] = {"squared": squared, "absolute": absolute}
    scale = math.sqrt(simulation.repetitions)
    found: dict[NamedMeasure, tuple[Floats, Floats, Floats]] = {}
    for measure, each in sums.items():
        own = np.array([each[group::groups].sum(axis=0) for group in range(groups)])
        found[measure] = _with_band(each.mean(axis=0), each.std(axis=0, ddof=1) / scale, own, simulation)
    found["largest variance"] = _with_band(mean[worst], spread, by_group[:, worst], simulation)
    middle = np.square(errors / simulation.repetitions)
    # The square of a mean of R errors is too large by a variance over R.
    unbiased = np.add.reduceat(middle - (mean - middle) / (simulation.repetitions - 1), starts)
    return _Measured(found, np.maximum(unbiased, 0.0))


def _with_band(
    mean: Floats, standard_error: Floats, by_group: Floats, simulation: Simulation
) -> tuple[Floats, Floats, Floats]:
    """Student's interval for the logarithm of the mean, by the delta method: it stays above 0.

    And the mean without each group, from the sums of each; shape (groups, tables).
    """
    from scipy.special import stdtrit  # scipy.stats takes a second to import

    reach = float(stdtrit(simulation.repetitions - 1, 0.5 + simulation.confidence / 2))
    sizes = np.bincount(np.arange(simulation.repetitions) % len(by_group))
    without = (by_group.sum(axis=0) - by_group) / (simulation.repetitions - sizes)[:, None]
    return mean, np.divide(reach * standard_error, mean, out=np.zeros_like(mean), where=mean > 0.0), without


def _falling(losses: Floats, means: Floats, spreads: Floats) -> Floats:
    """Logarithms of the nearest curves that fall ever more slowly, where these are within the bands; table by table.

    Else of the nearest ones that fall (pool adjacent violators): chance must not make errors grow.
    """
    from scipy.optimize import isotonic_regression

    found = []
    for mean, spread in zip(means.T, spreads.T, strict=True):
        bent = _convex(losses, mean, spread)
        found.append(isotonic_regression(np.log(mean), increasing=False).x if bent is None else np.log(bent))
    return np.stack(found, axis=1)


def _convex(losses: Floats, means: Floats, spreads: Floats) -> Floats | None:
    """The convex decreasing numbers nearest to simulated errors, by their bands; None where one is outside of its band.

    A sum of a constant and of hinges max(0, ε_k − ε), none of them below 0: least squares of numbers from 0 on.
    """
    from scipy.optimize import nnls

    if not np.all((means > 0) & (spreads > 0)):
        return None
    hinges = np.maximum(losses[None, 1:] - losses[:, None], 0.0)
    basis = np.column_stack([np.ones(len(losses)), hinges])
    weighted = basis / (means * spreads)[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    found = basis @ (nnls(weighted / scale, 1 / spreads)[0] / scale)
    return found if np.all(np.abs(found - means) <= means * spreads) else None


@dataclass(frozen=True)
class SimulationError:
    """A number that rests on a simulated frontier, and how far simulation may be off."""

    value: float
    standard_error: float
    lower: float
    upper: float
    confidence: float


def simulation_error(frontier: Frontier, of: Callable[[Frontier], float]) -> SimulationError:
    """How far simulation may be off a number that is worked out on a frontier: a slope, or the chosen loss.

    `of=lambda each: choose(each, welfare).epsilon` gives the interval of ε* as far as simulation goes, by Student's
    quantile of as many degrees of freedom as there are groups, less one; in logarithms where all numbers are positive.
    """
    from scipy.special import stdtrit

    if not isinstance(frontier.curves, SimulatedCurves):
        raise InvalidMechanism(
            f"the frontier '{frontier.name}' has no error of simulation",
            why="its errors have closed forms, or it is a combination of several",
            instead="give a frontier that simulated(…) made",
        )
    curves = frontier.curves
    value = of(frontier)
    left = np.array([of(replace(frontier, curves=each)) for each in curves.without_each_group])
    in_logs = value > 0 and bool(np.all(left > 0))
    middle, each = (math.log(value), np.log(left)) if in_logs else (value, left)
    spread = math.sqrt((len(left) - 1) / len(left) * float(np.square(each - each.mean()).sum()))
    reach = spread * float(stdtrit(len(left) - 1, 0.5 + curves.simulation.confidence / 2))
    ends = middle - reach, middle + reach
    lower, upper = (math.exp(ends[0]), math.exp(ends[1])) if in_logs else ends
    return SimulationError(value, spread * value if in_logs else spread, lower, upper, curves.simulation.confidence)


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
    progress: Progress | None = None,
) -> Frontier:
    """How far a decision with noisy answers is off, in USD, at each privacy loss; one table, named after the decision.

    `histogram` is public or synthetic: a frontier is printed, so confidential counts must never stand here.
    """
    exact = np.asarray(workload.answers(histogram.counts), dtype=np.float64)
    truth = decision.allocation(exact)

    def decide(loss: float, repetition: int) -> Floats:
        answers = release(loss, histogram, simulation.generator(repetition))
        return decision.allocation(np.asarray(answers, dtype=np.float64))

    name = f"{decision.name} decided with noisy counts"
    return _simulated(decide, truth, {decision.name: truth.size}, simulation, privacy_measure, name, progress)


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

        def run(loss: float, repetition: int) -> Floats:
            generator = self.simulation.generator(repetition)
            errors = production.draw_errors(loss, generator=generator, size=1)[0, rows]
            return self.decision.allocation(self.numbers + self.grid * errors)

        errors = priced(production).remembered()
        means: list[float] = []
        spreads: list[float] = []
        for loss in self.simulation.losses:
            found = _measure_at(run, loss, due, ends, self.simulation, name=self.decision.name, progress=_silent)
            found_at = found.errors[self.counted]
            mean, spread = float(found_at[0][0]), float(found_at[1][0])
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
