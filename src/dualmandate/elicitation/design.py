"""D-efficient designs: which tasks to show so that few respondents tell much, and how many people to ask.

A design is judged by the information that its answers are expected to carry about the coefficients of a conditional
logit, I(β) = Σ_tasks Σ_j p_j·(x_j − x̄)(x_j − x̄)ᵀ with x̄ = Σ_j p_j·x_j and p_j the logit probabilities at β. Its
D-error is det(I)^{−1/K} [HZ96], averaged over what is believed of β beforehand (a Bayesian design [SW01]; a point prior
is one draw). Tasks are improved one level of one alternative at a time (coordinate exchange [MN95]) from several seeded
starts.

The precision of a survey is that of the privacy loss which it decides. At an optimum whose privacy loss goes with the
cost to the power −e (e = 1/3 for a linear cost and errors of c/ε², because ε* = (2c/K)^{1/3}), an estimate of the mean
disclosure cost k from n people with coefficient of variation CV/√n leaves ln ε* a standard error of e·CV/√n. ε* is then
known within a factor of 1 + w with the confidence z for

    n = (z·e·CV / ln(1 + w))²
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.likelihood import normal_draws
from dualmandate.elicitation.willingness import critical_value
from dualmandate.errors import InvalidSurvey
from dualmandate.population.wording import percent

Floats = NDArray[np.float64]
Levels = NDArray[np.int64]
STARTS = 6
DRAWS = 32  # Uncertain coefficients are drawn this often.
MOST_SWEEPS = 50
MOST_TRIES = 20_000  # At most this many tasks are drawn in search of one that is not dominated.
LEAST_SHARE = 0.5  # Each level keeps this part of its fair share: extremes are efficient, but show no bend.
SMALLEST_GAIN = 1e-9  # An exchange that gains less than this share gains nothing.
CUBE_ROOT = 1 / 3  # Elasticity of the optimum in the cost, for a linear cost and errors of c/ε².


@dataclass(frozen=True)
class DesignAttribute:
    """An attribute of the alternatives: what each of its levels is in the utility, and which way is better."""

    name: str
    values: tuple[float, ...]  # of the regressor at each level
    direction: int  # −1: everybody wants less; +1: more; 0: tastes differ

    def __post_init__(self) -> None:
        if len(self.values) < 2 or len(set(self.values)) < len(self.values):
            raise InvalidSurvey(
                f"the attribute '{self.name}' has {len(set(self.values))} different levels",
                why="people choose between levels, so each attribute has two or more, all different",
                instead="state two levels or more",
            )


@dataclass(frozen=True, eq=False)
class ChoiceDesign:
    """Tasks to show, in blocks of as many as one respondent answers."""

    attributes: tuple[DesignAttribute, ...]
    levels: Levels  # (tasks, alternatives, attributes): places in the values of each attribute
    block: Levels  # (tasks,): which block a task belongs to, from 0
    error: float  # D-error of one respondent, coefficients per range of the regressors

    @property
    def blocks(self) -> int:
        """Blocks; a respondent answers one."""
        return int(self.block.max()) + 1

    @property
    def regressors(self) -> Floats:
        """(tasks, alternatives, attributes): what enters the utility."""
        columns = [np.asarray(a.values)[self.levels[:, :, k]] for k, a in enumerate(self.attributes)]
        return np.stack(columns, axis=2)

    def information(self, coefficients: Sequence[float]) -> Floats:
        """Information that one respondent is expected to give, (attributes, attributes), in the regressors' units."""
        draws = np.asarray(coefficients, dtype=np.float64)[None, :]
        return np.asarray(_information(self.regressors, draws)[:, 0].sum(axis=0) / self.blocks)

    def balance(self) -> dict[str, tuple[int, ...]]:
        """How often each level is shown in the whole design."""
        return {
            attribute.name: tuple(np.bincount(self.levels[:, :, k].ravel(), minlength=len(attribute.values)).tolist())
            for k, attribute in enumerate(self.attributes)
        }


def efficient_design(
    attributes: Sequence[DesignAttribute],
    expected: Sequence[float],
    *,
    tasks: int,
    alternatives: int = 2,
    blocks: int = 1,
    uncertainty: float = 0.0,
    seed: int = 1,
) -> ChoiceDesign:
    """The best design found: `blocks` blocks of `tasks` tasks with so many `alternatives` each.

    `expected` are coefficients of the utility, one an attribute; `uncertainty` is the standard deviation of their
    logarithms (0: taken as known). No task has an alternative that is worse in everything, and none is shown twice. The
    seed is public: the same one gives the same design.
    """
    _check(tasks, alternatives, blocks, uncertainty)
    generator = np.random.Generator(np.random.PCG64(seed))
    scales = np.array([max(a.values) - min(a.values) for a in attributes])
    search = _DesignSearch(tuple(attributes), _draws(np.asarray(expected, float) * scales, uncertainty), alternatives)
    found = [search.improved(search.start(tasks * blocks, generator)) for _ in range(STARTS)]
    levels, error = min(found, key=lambda design: design[1])
    return ChoiceDesign(tuple(attributes), levels, _blocked(levels, blocks), error * blocks)


def fair(shown: Floats, directions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether tasks (…, alternatives, attributes) ask for a trade-off between every two of their alternatives.

    Unfair is a task in which one alternative is at least as good as another in everything, and alike where tastes
    differ; also one that shows the same twice.
    """
    gain = (shown[..., :, None, :] - shown[..., None, :, :]) * directions
    alike = shown[..., :, None, :] == shown[..., None, :, :]
    dominates = ((gain >= 0) & ((directions != 0) | alike)).all(axis=-1)
    dominates &= ~np.eye(shown.shape[-2], dtype=bool)
    return np.asarray(~dominates.any(axis=(-1, -2)))


def _check(tasks: int, alternatives: int, blocks: int, uncertainty: float) -> None:
    if tasks < 1 or blocks < 1 or alternatives < 2 or not 0 <= uncertainty < 3:
        raise InvalidSurvey(
            f"{tasks} tasks with {alternatives} alternatives in {blocks} blocks, uncertainty {uncertainty:g}",
            why="somebody chooses between two alternatives or more, at least once; an uncertainty is at least 0",
            instead="state tasks = 8, alternatives = 2, blocks = 4 or the like, and an uncertainty below 3",
        )


def _draws(expected: Floats, uncertainty: float) -> Floats:
    """(draws, attributes): what is believed of the coefficients beforehand; signs are known, sizes lognormal."""
    if uncertainty == 0:
        return expected[None, :]
    return np.asarray(expected * np.exp(uncertainty * normal_draws(1, DRAWS, len(expected))[0].T))


def _information(regressors: Floats, draws: Floats) -> Floats:
    """(tasks, draws, attributes, attributes): the information in each task at each draw of the coefficients."""
    utility = regressors @ draws.T  # (tasks, alternatives, draws)
    odds = np.exp(utility - utility.max(axis=1, keepdims=True))
    chance = odds / odds.sum(axis=1, keepdims=True)
    mean = np.einsum("tjr,tjk->trk", chance, regressors)
    second = np.einsum("tjr,tjk,tjl->trkl", chance, regressors, regressors)
    return np.asarray(second - mean[..., :, None] * mean[..., None, :])


def _error(information: Floats) -> Floats:
    """D-error of (…, draws, K, K), averaged over draws; infinite where something cannot be told."""
    sign, logarithm = np.linalg.slogdet(information)
    with np.errstate(over="ignore"):
        errors = np.where((sign > 0) & np.isfinite(logarithm), np.exp(-logarithm / information.shape[-1]), np.inf)
    return np.asarray(errors.mean(axis=-1))


@dataclass(frozen=True, eq=False)
class _DesignSearch:
    """Coordinate exchange over the levels of alternatives."""

    attributes: tuple[DesignAttribute, ...]
    draws: Floats  # (draws, attributes), of coefficients per range of the regressor
    alternatives: int

    @cached_property
    def columns(self) -> list[Floats]:
        """Regressors of each attribute's levels, from 0 to 1."""
        return [
            (np.asarray(a.values, dtype=np.float64) - min(a.values)) / (max(a.values) - min(a.values))
            for a in self.attributes
        ]

    @cached_property
    def directions(self) -> NDArray[np.int64]:
        """Which way is better, of each attribute."""
        return np.array([a.direction for a in self.attributes])

    def scaled(self, levels: Levels) -> Floats:
        """The regressors of levels (…, attributes)."""
        found = np.empty(levels.shape)
        for k, column in enumerate(self.columns):
            found[..., k] = column[levels[..., k]]
        return found

    def start(self, count: int, generator: np.random.Generator) -> Levels:
        """Different fair tasks, drawn by chance."""
        sizes = [len(a.values) for a in self.attributes]
        kept: dict[tuple[tuple[int, ...], ...], Levels] = {}
        for _ in range(MOST_TRIES):
            task = np.stack([generator.integers(0, size, self.alternatives) for size in sizes], axis=1)
            if _key(task) not in kept and fair(self.scaled(task), self.directions):
                kept[_key(task)] = task
            if len(kept) == count:
                return np.stack(list(kept.values())).astype(np.int64)
        raise InvalidSurvey(
            f"there are not {count} tasks in which every alternative is better in something",
            why="with these levels one alternative beats another in everything, and such a choice tells nothing",
            instead="state more attributes or more levels, or ask for fewer tasks or alternatives",
        )

    def improved(self, levels: Levels) -> tuple[Levels, float]:
        """A design that no exchange of one level improves, and its D-error."""
        levels = levels.copy()
        each = _information(self.scaled(levels), self.draws)
        for _ in range(MOST_SWEEPS):
            before = float(_error(each.sum(axis=0)))
            for task in range(len(levels)):
                for alternative in range(self.alternatives):
                    self._exchange(levels, each, task, alternative)
            if float(_error(each.sum(axis=0))) >= before * (1 - SMALLEST_GAIN):
                break
        return levels, float(_error(each.sum(axis=0)))

    def _exchange(self, levels: Levels, each: Floats, task: int, alternative: int) -> None:
        """Put the best other level of one attribute into one alternative, where that improves the whole."""
        others = {_key(other) for place, other in enumerate(levels) if place != task}
        changes = [other for other in self._changes(levels, task, alternative) if _key(other) not in others]
        if not changes:
            return
        candidates = np.stack(changes)
        candidates = candidates[fair(self.scaled(candidates), self.directions)]
        if not len(candidates):
            return
        new = _information(self.scaled(candidates), self.draws)
        total = each.sum(axis=0)
        errors = _error(total - each[task] + new)
        best = int(errors.argmin())
        if errors[best] < float(_error(total)) * (1 - SMALLEST_GAIN):
            levels[task], each[task] = candidates[best], new[best]

    def _changes(self, levels: Levels, task: int, alternative: int) -> list[Levels]:
        """The task with one level changed; a level that is rare already stays."""
        changed = []
        for k, attribute in enumerate(self.attributes):
            here = int(levels[task, alternative, k])
            size = len(attribute.values)
            shown = int((levels[:, :, k] == here).sum())
            if shown <= int(LEAST_SHARE * levels.shape[0] * self.alternatives / size):
                continue
            for level in range(size):
                if level != here:
                    other = levels[task].copy()
                    other[alternative, k] = level
                    changed.append(other)
        return changed


def _key(task: Levels) -> tuple[tuple[int, ...], ...]:
    """A task whatever the order of its alternatives."""
    return tuple(sorted(tuple(alternative) for alternative in task.tolist()))


def _blocked(levels: Levels, blocks: int) -> Levels:
    """Tasks shared out so that each block shows each level about equally often."""
    tasks = len(levels)
    block = np.arange(tasks, dtype=np.int64) % blocks
    sizes = levels.reshape(-1, levels.shape[2]).max(axis=0) + 1
    shown = np.concatenate(
        [(levels[:, :, k, None] == np.arange(size)).sum(axis=1) for k, size in enumerate(sizes)], axis=1
    ).astype(np.float64)  # (tasks, levels of all attributes)
    counts = np.stack([shown[block == b].sum(axis=0) for b in range(blocks)])
    improving = True
    while improving:
        improving = False
        for i in range(tasks):
            for j in range(i + 1, tasks):
                a, b = block[i], block[j]
                moved = shown[j] - shown[i]
                # change of Σ counts² when the two tasks trade places
                if a != b and moved @ (counts[a] - counts[b] + moved) < -1e-9:
                    block[i], block[j] = b, a
                    counts[a] += moved
                    counts[b] -= moved
                    improving = True
    return block


@dataclass(frozen=True)
class Precision:
    """What is asked of a survey: ε* within ±`within` (a share) with this `confidence`.

    `elasticity` says by how many percent ε* falls when the cost rises by one.
    """

    within: float = 0.2
    confidence: float = 0.95
    elasticity: float = CUBE_ROOT

    def __post_init__(self) -> None:
        if not (self.within > 0 and 0 < self.confidence < 1 and self.elasticity > 0):
            raise InvalidSurvey(
                f"a precision of ±{percent(self.within)} with confidence {self.confidence:g}",
                why="a precision is a share above 0, a confidence lies between 0 and 1, an elasticity is positive",
                instead="state within = 0.2 and confidence = 0.95, or the like",
            )

    def respondents(self, coefficient_of_variation: float) -> int:
        """The fewest respondents that reach it; CV = 2.4149 asks for 75 at ±20 %."""
        share = critical_value(self.confidence) * self.elasticity * coefficient_of_variation / math.log1p(self.within)
        return max(1, math.ceil(share**2))

    def reached(self, coefficient_of_variation: float, respondents: int) -> float:
        """The share within which so many respondents bring ε*."""
        error = self.elasticity * coefficient_of_variation / math.sqrt(respondents)
        return math.expm1(critical_value(self.confidence) * error)


def coefficient_of_variation(
    design: ChoiceDesign, coefficients: Sequence[float], attribute: str, price: str, *, spread: float = 0.0
) -> float:
    """Standard error of the mean cost from one respondent of a design, over the cost; divide by √n for n respondents.

    The cost is a ratio of coefficients, k = β/β_price, so by the delta method var(ln k) = gᵀI⁻¹g with g = 1/β at the
    attribute and −1/β_price at the price, I the information of one respondent. `spread` is the coefficient of
    variation of k among people: its square is added, as people are a sample of everybody.
    """
    names = [each.name for each in design.attributes]
    gradient = np.zeros(len(names))
    for name, sign in ((attribute, 1.0), (price, -1.0)):
        gradient[names.index(name)] = sign / coefficients[names.index(name)]
    information = design.information(coefficients)
    # in units in which each coefficient is 1, or the inverse would mix dollars with epsilons
    scale = np.abs(np.asarray(coefficients, dtype=np.float64))
    scale[scale == 0] = 1.0
    covariance = np.linalg.inv(information * np.outer(scale, scale))
    return math.sqrt(float((gradient * scale) @ covariance @ (gradient * scale)) + spread**2)
