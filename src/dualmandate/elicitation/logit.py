"""Logit models of choices among alternatives: one taste for all, or tastes that differ.

The conditional logit says what the average respondent gives up for what [McF74]. In the panel mixed logit tastes differ
between people and stay with a person over her choices [RT98]: `MixedModel` says which coefficients differ, with which
distribution, in utility or in money; estimation works on standardized attributes, and the model knows the names of the
parameters and the way back to the attributes' own units.

The kernel simulates the likelihood of each person's choices and its gradient in one pass over draws that stays in the
cache. A chunk of draws at a time: coefficients, indices of the alternatives (a small matrix product), one exponential
each, the probability of all choices of the person, and the gradient by coefficient (another small matrix product). Sums
over chunks are kept relative to the largest log probability so far, so that no number of tasks underflows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from dualmandate.elicitation.answers import ChoiceData, Differences
from dualmandate.elicitation.likelihood import (
    Likelihood,
    Maximum,
    climb,
    maximize,
    normal_draws,
    separating,
    triangular,
)
from dualmandate.elicitation.willingness import ParameterEstimates
from dualmandate.errors import InvalidSurvey, NoEstimate, TooLarge

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_STEPS = 50  # Newton's method takes at most this many steps in a conditional logit.
CHUNK = 64  # So many draws at a time: indices of some thirty alternatives, and their coefficients, fit the first cache.
LARGEST_INDEX = 80.0  # odds of e⁸⁰ against a choice are as good as none; eight such tasks still have a probability
TASKS_A_LOGARITHM = 8
LINEAR, POSITIVE, NEGATIVE = range(3)  # A coefficient has one of these forms.
CONTRACT = {"contract", "nnan", "ninf", "nsz", "arcp"}  # Without "reassoc", which would undo the rounding of _exp.
Distribution = Literal["normal", "lognormal", "negative lognormal", "triangular"]
Space = Literal["preference", "willingness to pay"]
FORMS = {"normal": LINEAR, "triangular": LINEAR, "lognormal": POSITIVE, "negative lognormal": NEGATIVE}
FIRST_SPREAD = 0.5  # The search begins with this spread of a standardized coefficient.
LEAST_START = 0.05  # A coefficient that must have a sign starts at least here.
SEED = 1998  # The seed of the starting points after the first is public.
MOST_DRAWN = 2**28  # At most this many random numbers are kept.
JITTER = 0.3  # Later starts shake standardized locations, and the logarithms of spreads, by this much.


def conditional_logit(data: ChoiceData, *, cluster: bool = True, most_steps: int = MOST_STEPS) -> ParameterEstimates:
    """Coefficients of the attributes, one for all respondents, in utility per unit of the attribute.

    P(j | task) = exp(x_j·β)/Σ_i exp(x_i·β); β maximizes Σ log P(chosen) by Newton's method. Errors are clustered by
    respondent (sandwich without a small-sample factor), or plain.
    """
    differences = Differences.of(data)
    differences.check_rank()
    top = logit_top(differences, most_steps=most_steps)
    if cluster and data.people <= len(data.names):
        raise NoEstimate(
            f"{data.people} respondents are too few for errors of {len(data.names)} parameters",
            why="answers of one person hang together, so that people count and not answers",
            instead="ask more people, explain choices by fewer attributes, or take plain errors",
        )
    covariance = top.sandwich(data.task_respondent) if cluster else np.linalg.inv(top.curvature)
    scale = differences.scale
    return ParameterEstimates(
        names=data.names,
        values=top.point / scale,
        covariance=covariance / np.outer(scale, scale),
        log_likelihood=top.value,
        observations=data.tasks,
        clusters=data.people if cluster else data.tasks,
    )


def logit_top(differences: Differences, *, most_steps: int = MOST_STEPS) -> Maximum:
    """The top of a concave log likelihood, in standardized attributes; gradients by task."""
    rows, starts = differences.rows, differences.task_starts
    size, tasks = rows.shape[1], len(starts) - 1

    def evaluated(beta: Floats) -> Maximum:
        scores, curvature = np.empty((tasks, size)), np.empty((size, size))
        return Maximum(beta, logit_pass(rows, starts, beta, scores, curvature), scores, curvature)

    top = climb(evaluated, np.zeros(size), most_steps)
    if top is None or top.is_doubtful:
        _check_separation(differences)
    if top is None:
        raise NoEstimate(
            f"the conditional logit did not converge in {most_steps} steps",
            why="the log likelihood was still rising",
            instead="look for attributes that nearly repeat each other, or allow more steps",
        )
    return top


def _check_separation(differences: Differences) -> None:
    """Refuse where some direction of coefficients is never contradicted: the likelihood rises along it forever."""
    columns = list(zip(differences.names, differences.rows.T, strict=True))
    alone = [name for name, column in columns if (column <= 0).all() or (column >= 0).all()]
    words = " and ".join(alone)
    if not alone:
        direction = separating(-differences.rows)
        if direction is None:
            return
        together = [name for name, part in zip(differences.names, direction, strict=True) if abs(part) > 1e-7]
        words = f"{', '.join(together[:-1])} and {together[-1]} together" if together[1:] else together[0]
    raise NoEstimate(
        f"{words} separate{'' if len(alone) > 1 else 's'} the chosen alternatives from the others",
        why="no choice goes against it, so that a larger coefficient always fits better and none is the best",
        instead="ask more people, show alternatives that trade it off, or leave it out",
    )


@njit(cache=True)
def logit_pass(rows: Floats, starts: NDArray[np.int64], beta: Floats, scores: Floats, curvature: Floats) -> float:
    """Log likelihood; fills gradients by task and −H. `rows` are attributes of the others less those of the chosen."""
    size = rows.shape[1]
    curvature[:] = 0.0
    value = 0.0
    index = np.empty(rows.shape[0])
    for task in range(starts.size - 1):
        first, last = starts[task], starts[task + 1]
        top = 0.0  # the index of the chosen alternative
        for row in range(first, last):
            index[row] = 0.0
            for k in range(size):
                index[row] += rows[row, k] * beta[k]
            top = max(top, index[row])
        total = np.exp(-top)
        for row in range(first, last):
            index[row] = np.exp(index[row] - top)
            total += index[row]
        value -= top + np.log(total)
        for k in range(size):
            scores[task, k] = 0.0
        for row in range(first, last):
            share = index[row] / total
            for k in range(size):
                scores[task, k] -= share * rows[row, k]
                for other in range(k + 1):
                    curvature[k, other] += share * rows[row, k] * rows[row, other]
        for k in range(size):
            for other in range(k + 1):
                curvature[k, other] -= scores[task, k] * scores[task, other]
    for k in range(size):
        for other in range(k):
            curvature[other, k] = curvature[k, other]
    return value


def _reinterpreted(name: str, source: Any, target: Any) -> Any:
    """A function that reads the same 64 bits as another type."""

    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(target))

    def typed(_context: Any, _value: Any) -> Any:
        return target(source), generate

    typed.__name__ = typed.__qualname__ = name
    return intrinsic(typed)


_bits = _reinterpreted("_bits", types.float64, types.int64)


_number = _reinterpreted("_number", types.int64, types.float64)


@njit(cache=True, inline="always", fastmath=CONTRACT)
def _exp(x: float) -> float:
    """e^x for −700 ≤ x ≤ 700 to two units in the last place, in steps that a compiler can do for several x at once."""
    shifted = x * 1.4426950408889634 + 6755399441055744.0  # adding 1.5·2⁵² rounds x/ln 2 to an integer, in the low bits
    whole = shifted - 6755399441055744.0
    r = (x - whole * 0.6931471803691238) - whole * 1.9082149292705877e-10
    p = 1.6059043836821613e-10
    p = p * r + 2.08767569878681e-09
    p = p * r + 2.505210838544172e-08
    p = p * r + 2.755731922398589e-07
    p = p * r + 2.7557319223985893e-06
    p = p * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return float(_number(_bits(p) + (_bits(shifted) << 52)))


@njit(cache=True, fastmath=CONTRACT)
def exponentials(values: Floats) -> None:
    """e^x of each x, in place."""
    for place in range(values.size):
        values[place] = _exp(min(max(values[place], -700.0), 700.0))


class Panel(NamedTuple):
    """Choices and draws, person by person."""

    rows: Floats  # (alternatives not chosen, attributes), less the chosen alternative
    task_starts: Integers  # (tasks + 1,), places in `rows`
    person_starts: Integers  # (people + 1,), places in `task_starts`
    draws: Floats  # (people, random coefficients, draws)


class CoefficientLayout(NamedTuple):
    """How coefficients come from parameters: a location each, then a spread for each random one."""

    forms: Integers  # (attributes,): LINEAR x, POSITIVE e^x or NEGATIVE −e^x, where x = location + spread·draw
    columns: Integers  # (attributes,): which draw, −1 for none
    price: int  # the attribute −e^x by which willingness to pay for the others is multiplied; −1 in preference space


@njit(cache=True, fastmath=CONTRACT)
def _product(left: Floats, right: Floats, out: Floats, width: int) -> None:
    """out = left @ right, over the first `width` columns; four terms at a time so that `out` is touched less."""
    for row in range(left.shape[0]):
        line = out[row]
        for c in range(width):
            line[c] = 0.0
        inner = 0
        while inner + 4 <= left.shape[1]:
            a, b, d, e = left[row, inner], left[row, inner + 1], left[row, inner + 2], left[row, inner + 3]
            first, second, third, fourth = right[inner], right[inner + 1], right[inner + 2], right[inner + 3]
            for c in range(width):
                line[c] += (a * first[c] + b * second[c]) + (d * third[c] + e * fourth[c])
            inner += 4
        while inner < left.shape[1]:
            a, first = left[row, inner], right[inner]
            for c in range(width):
                line[c] += a * first[c]
            inner += 1


@njit(cache=True, fastmath=CONTRACT)
def _coefficients(layout: CoefficientLayout, theta: Floats, draws: Floats, taste: Floats, beta: Floats) -> None:
    """(attributes, chunk): `taste` as it is distributed, `beta` as it enters utility."""
    size, width = layout.forms.size, draws.shape[1]
    for k in range(size):
        column = layout.columns[k]
        spread = theta[size + column] if column >= 0 else 0.0
        drawn = draws[max(column, 0)]
        for c in range(width):
            taste[k, c] = theta[k] + spread * drawn[c]
        if layout.forms[k] != LINEAR:
            sign = 1.0 if layout.forms[k] == POSITIVE else -1.0
            for c in range(width):
                taste[k, c] = sign * _exp(min(max(taste[k, c], -LARGEST_INDEX), LARGEST_INDEX))
    for k in range(size):
        if layout.price < 0 or k == layout.price:
            beta[k, :width] = taste[k, :width]
        else:
            for c in range(width):
                beta[k, c] = -taste[layout.price, c] * taste[k, c]


@njit(cache=True, fastmath=CONTRACT)
def _choices(panel: Panel, person: int, shares: Floats, inverse: Floats, logs: Floats) -> None:
    """Indices in `shares` become odds against the choice, `inverse` 1/(1 + odds) a task, `logs` log P of all tasks."""
    width = logs.size
    begin = panel.task_starts[panel.person_starts[person]]
    product = np.ones(width)
    logs[:] = 0.0
    for task in range(panel.person_starts[person], panel.person_starts[person + 1]):
        total = inverse[task - panel.person_starts[person]]
        total[:width] = 1.0
        for row in range(panel.task_starts[task] - begin, panel.task_starts[task + 1] - begin):
            line = shares[row]
            for c in range(width):
                line[c] = _exp(min(max(line[c], -LARGEST_INDEX), LARGEST_INDEX))
                total[c] += line[c]
        for c in range(width):
            total[c] = 1.0 / total[c]
            product[c] *= total[c]
        if (task + 1 - panel.person_starts[person]) % TASKS_A_LOGARITHM == 0:
            logs += np.log(product)
            product[:] = 1.0
    logs += np.log(product)


@njit(cache=True, fastmath=True)
def _sums(layout: CoefficientLayout, slopes: Floats, draws: Floats, taste: Floats, beta: Floats, sums: Floats) -> None:
    """Add to `sums` the gradient by parameters, from `slopes` by coefficients."""
    size, width = layout.forms.size, draws.shape[1]
    if layout.price >= 0:
        for c in range(width):
            whole = 0.0
            for k in range(size):
                whole += slopes[k, c] * beta[k, c]
            for k in range(size):
                slopes[k, c] *= -taste[layout.price, c]
            slopes[layout.price, c] = whole
    for k in range(size):
        line = slopes[k]
        if layout.forms[k] != LINEAR and k != layout.price:
            for c in range(width):
                line[c] *= taste[k, c]
        plain = 0.0
        for c in range(width):
            plain += line[c]
        sums[k] += plain
        if layout.columns[k] >= 0:
            drawn, crossed = draws[layout.columns[k]], 0.0
            for c in range(width):
                crossed += line[c] * drawn[c]
            sums[size + layout.columns[k]] += crossed


@njit(cache=True, fastmath=CONTRACT)
def simulate(panel: Panel, layout: CoefficientLayout, theta: Floats, values: Floats, scores: Floats) -> None:
    """Fill each person's simulated log likelihood (people,) and its gradient by parameters (people, parameters)."""
    size, draws = layout.forms.size, panel.draws.shape[2]
    most_tasks = np.diff(panel.person_starts).max()
    most_rows = np.diff(panel.task_starts[panel.person_starts]).max()
    shares, inverse, logs = np.empty((most_rows, CHUNK)), np.empty((most_tasks, CHUNK)), np.empty(CHUNK)
    taste, beta, slopes = np.empty((size, CHUNK)), np.empty((size, CHUNK)), np.empty((size, CHUNK))
    sums = np.empty(theta.size)
    for person in range(panel.person_starts.size - 1):
        first, last = panel.person_starts[person], panel.person_starts[person + 1]
        rows = panel.rows[panel.task_starts[first] : panel.task_starts[last]]
        turned = np.ascontiguousarray(rows.T)
        begin, top, weight = panel.task_starts[first], -np.inf, 0.0
        sums[:] = 0.0
        for start in range(0, draws, CHUNK):
            width = min(CHUNK, draws - start)
            drawn = panel.draws[person, :, start : start + width]
            _coefficients(layout, theta, drawn, taste, beta)
            _product(rows, beta, shares, width)
            _choices(panel, person, shares, inverse, logs[:width])
            highest = max(top, logs[:width].max())
            faded = np.exp(top - highest)
            top, weight = highest, weight * faded
            sums *= faded
            for c in range(width):
                logs[c] = np.exp(logs[c] - top)
                weight += logs[c]
            for task in range(first, last):
                line = inverse[task - first]
                for c in range(width):
                    line[c] *= -logs[c]
                for row in range(panel.task_starts[task] - begin, panel.task_starts[task + 1] - begin):
                    for c in range(width):
                        shares[row, c] *= line[c]
            _product(turned, shares, slopes, width)
            _sums(layout, slopes, drawn, taste, beta, sums)
        values[person] = top + np.log(weight / draws)
        for parameter in range(theta.size):
            scores[person, parameter] = sums[parameter] / weight


@dataclass(frozen=True, eq=False)
class MixedModel:
    """Parameters: a location for each attribute, then a spread for each random one, in their order.

    In preference space utility is Σ β·x. In willingness-to-pay space it is λ·(Σ w·x − price) with λ = e^s > 0, so
    that w is willingness to pay in the price's unit, as it is distributed among people [TW05].
    """

    attributes: tuple[str, ...]
    random: Mapping[str, Distribution]
    price: str | None  # None in preference space
    scale: Floats  # (attributes,), of the differences

    @classmethod
    def of(
        cls, differences: Differences, random: Mapping[str, Distribution], *, space: Space, price: str | None
    ) -> MixedModel:
        """Refused: nothing random, unknown attributes or distributions, a price that may be positive."""
        _check_distributions(differences.names, random)
        if space not in get_args(Space):
            spaces = ", ".join(get_args(Space))
            raise InvalidSurvey(
                f"there is no space '{space}'",
                why="coefficients are in utility or in money",
                instead=f"choose one of {spaces}",
            )
        if space == "willingness to pay" and price not in differences.names:
            raise InvalidSurvey(
                "no attribute is named as the price" if price is None else f"the price '{price}' is not an attribute",
                why="willingness to pay is money",
                instead=f"choose one of {', '.join(differences.names)}",
            )
        if space == "willingness to pay" and FORMS[random.get(str(price), "lognormal")] == LINEAR:
            raise InvalidSurvey(
                f"the scale of the price '{price}' is {random[str(price)]}",
                why="a price counts against an alternative for everybody",
                instead="make it lognormal, or the same for all",
            )
        return cls(differences.names, dict(random), price if space == "willingness to pay" else None, differences.scale)

    @property
    def drawn(self) -> tuple[str, ...]:
        """Attributes with a random coefficient, in the order of the attributes."""
        return tuple(name for name in self.attributes if name in self.random)

    @property
    def layout(self) -> CoefficientLayout:
        """For the kernel."""
        forms = [NEGATIVE if name == self.price else FORMS[self.random.get(name, "normal")] for name in self.attributes]
        columns = [self.drawn.index(name) if name in self.random else -1 for name in self.attributes]
        price = -1 if self.price is None else self.attributes.index(self.price)
        return CoefficientLayout(np.array(forms, dtype=np.int64), np.array(columns, dtype=np.int64), price)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the parameters, as an agency reads them."""
        return (*map(self._location, self.attributes), *map(self._spread, self.drawn))

    def _subject(self, name: str) -> str:
        subject = "scale" if name == self.price else name if self.price is None else f"willingness to pay for {name}"
        return f"minus {subject}" if self.random.get(name) == "negative lognormal" and name != self.price else subject

    def _is_log(self, name: str) -> bool:
        return name == self.price or FORMS[self.random.get(name, "normal")] != LINEAR

    def _location(self, name: str) -> str:
        if not self._is_log(name):
            return self._subject(name)
        return f"mean of log {self._subject(name)}" if name in self.random else f"log {self._subject(name)}"

    def _spread(self, name: str) -> str:
        if self.random[name] == "triangular":
            return f"half width of {self._subject(name)}"
        return f"standard deviation of {'log ' if self._is_log(name) else ''}{self._subject(name)}"

    @property
    def factors(self) -> tuple[Floats, Floats]:
        """(parameters,) each: a parameter in the attributes' own units is factor·standardized + shift."""
        money = 1.0 if self.price is None else self.scale[self.attributes.index(self.price)]
        unit = np.where([name == self.price for name in self.attributes], 1.0, money) / self.scale
        is_log = np.array([self._is_log(name) for name in self.attributes])
        places = [self.attributes.index(name) for name in self.drawn]
        factor, shift = np.where(is_log, 1.0, unit), np.where(is_log, np.log(unit), 0.0)
        return np.append(factor, factor[places]), np.append(shift, np.zeros(len(places)))

    def start(self, beta: Floats) -> Floats:
        """Parameters (standardized) where the search begins, from coefficients that are the same for all."""
        layout = self.layout
        if self.price is not None:
            money = max(-beta[layout.price], LEAST_START)
            beta = np.where(np.arange(len(beta)) == layout.price, -money, beta / money)
        spreads = np.full(len(beta), FIRST_SPREAD)
        if self.price is not None:
            spreads /= money
        is_log = layout.forms != LINEAR
        spreads[is_log] = FIRST_SPREAD
        sign = np.where(layout.forms == NEGATIVE, -1.0, 1.0)
        logs = np.log(np.maximum(sign * beta, LEAST_START))
        places = [self.attributes.index(name) for name in self.drawn]
        return np.append(np.where(is_log, logs, beta), spreads[places])


def _check_distributions(names: tuple[str, ...], random: Mapping[str, Distribution]) -> None:
    if not random:
        raise InvalidSurvey(
            "no coefficient is random",
            why="a mixed logit is about tastes that differ",
            instead="name a coefficient that differs between people, or take a conditional logit",
        )
    for name, distribution in random.items():
        if name not in names:
            raise InvalidSurvey(
                f"the random coefficient '{name}' is not of an attribute",
                why="coefficients belong to attributes",
                instead=f"choose one of {', '.join(names)}",
            )
        if distribution not in FORMS:
            raise InvalidSurvey(
                f"'{distribution}' is no distribution that '{name}' can have",
                why="draws come from known distributions",
                instead=f"choose one of {', '.join(FORMS)}",
            )


def mixed_logit(
    data: ChoiceData,
    random: Mapping[str, Distribution] | Sequence[str],
    *,
    space: Space = "preference",
    price: str | None = None,
    draws: int = 500,
    starts: int = 3,
    progress: Callable[[str], None] = lambda _: None,
) -> ParameterEstimates:
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
    first = model.start(logit_top(differences).point)
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


def estimates_of(data: ChoiceData, model: MixedModel, top: Maximum) -> ParameterEstimates:
    """A top in the attributes' own units, with the sandwich by person."""
    if not top.is_peak:
        flat = np.linalg.eigh(top.curvature)[1][:, 0]
        raise NoEstimate(
            f"the choices do not tell {model.names[int(np.abs(flat).argmax())]}",
            why="the simulated likelihood does not fall when it changes",
            instead="make fewer coefficients random, or ask more people",
        )
    factor, shift = model.factors
    spread = np.arange(len(factor)) >= len(model.attributes)
    factor = np.where(spread & (top.point < 0), -factor, factor)
    return ParameterEstimates(
        names=model.names,
        values=factor * top.point + shift,
        covariance=top.sandwich() * np.outer(factor, factor),
        log_likelihood=top.value,
        observations=data.tasks,
        clusters=data.people,
    )
