"""Several sources for one number, pooled: a posterior for the mean disclosure cost, or for the value of accuracy.

Each source i measures its own version θ_i of the number with a known error; the versions scatter around the pooled
number μ: y_i ~ N(θ_i, s_i²), θ_i ~ N(μ, τ²), μ ~ N(m, v²), τ half-normal. Positive amounts are pooled in logarithms, so
that the posterior stays positive. τ is what makes disagreement widen the posterior: sources that differ by more than
their errors make a large τ likely. Given τ everything is normal; τ is integrated out by Gauss and Legendre's rule.

Whether the sources tell the same story is tested for all together, for each pair, and for each against the rest.

Before that they are brought to one unit and one time base, or refused. A yearly cost and a lifetime cost are the same
kind of thing only under a stated discount rate and horizon; a cost per household and a cost per person only under a
stated number of persons per household. Neither is ever guessed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaincc, ndtr

from dualmandate.errors import IncompatibleUnits, InvalidPreferences, InvalidValue, MissingKey
from dualmandate.population import Calibrated, Units
from dualmandate.population.time_base import DiscountHorizon, on_time_base
from dualmandate.population.wording import number

Floats = NDArray[np.float64]
DOUBTFUL = 0.05  # A difference with a probability below this is called a conflict.
Scale = Literal["logarithms", "plain"]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)
PANELS = 40  # The integral over τ has this many panels, each longer than the one before.
HALF_NORMALS = 9.0  # After this many scales of its prior τ is taken as impossible: beyond lies 10⁻¹⁸.


@dataclass(frozen=True)
class CommonGround:
    """One unit and one time base, and what else has to be known to bring numbers there.

    `bridges` relate units that no arithmetic relates: 2.5 "person per household". A bridge's own standard error is
    carried into what it converts.
    """

    unit: str  # "USD per person per epsilon"
    time_base: str | None = None  # "per year", "lifetime", …
    units: Units = field(default_factory=Units)
    bridges: tuple[Calibrated, ...] = ()
    horizon: DiscountHorizon | None = None

    def brought(self, quantity: Calibrated) -> Calibrated:
        """The quantity in this unit and on this time base, its errors and ranges with it."""
        return on_time_base(self._bridged(quantity).to(self.unit, self.units), self.time_base, self.horizon)

    def _bridged(self, quantity: Calibrated) -> Calibrated:
        if self.units.agree(quantity.unit, self.unit):
            return quantity
        for bridge in self.bridges:
            for sign, power in (("/", -1.0), ("*", 1.0)):
                unit = f"({quantity.unit}) {sign} ({bridge.unit})"
                if self.units.agree(unit, self.unit):
                    return _times(quantity, bridge, power, unit)
        raise IncompatibleUnits(
            f"'{quantity.unit}' ({quantity.source}) stands where '{self.unit}' is needed",
            why="no stated bridge relates the two",
            instead="state how many of one unit make the other as a bridge, with its unit and source, or leave it out",
        )


def _times(quantity: Calibrated, bridge: Calibrated, power: float, unit: str) -> Calibrated:
    """A quantity times (or divided by) a bridge; relative errors of both add up in squares."""
    if not bridge.value > 0:
        raise InvalidValue(f"a bridge of {bridge}", why="it multiplies or divides", instead="state a bridge above 0")
    factor = bridge.value**power
    error = quantity.standard_error
    if bridge.standard_error is not None and quantity.value > 0:
        relative = math.hypot((error or 0.0) / quantity.value, bridge.standard_error / bridge.value)
        error = relative * quantity.value
    ends = {name: stated * factor for name in ("least", "largest") if (stated := getattr(quantity, name)) is not None}
    error = None if error is None else error * factor
    return replace(quantity, value=quantity.value * factor, unit=unit, standard_error=error, **ends)


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
    raw = 2.0 * ndtr(-np.abs(distances))
    order = np.argsort(raw, kind="stable")
    adjusted = np.empty(len(raw))
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, np.arange(len(raw), 0, -1) * raw[order]))
    ratios = [math.exp(values[i] - values[j]) if logarithms else None for i, j in couples]
    return tuple(
        Pair(names[i], names[j], distance, chance, ratio)
        for (i, j), distance, chance, ratio in zip(couples, distances, adjusted.tolist(), ratios, strict=True)
    )


def _rounded(probability: float) -> str:
    return "below 0.0001" if probability < 1e-4 else f"{number(probability, 2)}"


@dataclass(frozen=True)
class Prior:
    """What was believed before any source was read, and by whom.

    `center` and `spread` describe the pooled number: its median and the standard deviation of its logarithm, or mean
    and standard deviation on the plain scale, where an infinite spread is allowed. `between` is the scale of the
    half-normal prior of τ, the standard deviation between sources (in logarithms: 0.5 means that two honest sources
    often differ by a factor of 2); `at_most` instead makes every τ up to it equally likely.
    """

    center: float
    spread: float
    source: str
    between: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        if not self.source.strip():
            raise MissingKey(
                "a prior has no source",
                why="a review board must be able to see whose belief enters the posterior",
                instead="state source: a study, an expert, or that it is a weak prior by decision",
            )
        stated = [number for number in (self.between, self.at_most) if number is not None]
        if len(stated) != 1 or not (math.isfinite(stated[0]) and stated[0] > 0):
            raise InvalidPreferences(
                f"between = {self.between}, at_most = {self.at_most}",
                why="how far sources may differ has one prior",
                instead="state between (the scale of a half-normal) or at_most (the end of a uniform), above 0",
            )
        if not (math.isfinite(self.center) and self.spread > 0):
            raise InvalidPreferences(
                f"a prior around {self.center} with spread {self.spread}",
                why="a prior is a distribution",
                instead="state a finite center and a spread above 0",
            )

    def scatter(self, finest: float) -> tuple[Floats, Floats]:
        """Nodes τ and prior weights of the integral over τ, fine where τ is small beside the smallest error."""
        end = self.at_most if self.between is None else HALF_NORMALS * self.between
        assert end is not None
        first = min(finest / 4.0, end / 8.0)
        edges = np.concatenate([[0.0], np.geomspace(first, end, PANELS)])
        half = np.diff(edges)[:, None] / 2.0
        nodes = (edges[:-1, None] + half * (1.0 + NODES)).ravel()
        weights = (half * WEIGHTS).ravel()
        if self.between is not None:
            weights = weights * np.exp(-0.5 * (nodes / self.between) ** 2)
        return nodes, weights / weights.sum()


@dataclass(frozen=True, eq=False)
class Pooled:
    """The posterior of one number given several sources; amounts in `unit` on `time_base`."""

    sources: tuple[Calibrated, ...]  # as converted
    stated: tuple[Calibrated, ...]  # as they came
    prior: Prior
    scale: Scale
    between: Floats  # nodes τ
    weights: Floats  # posterior probability of each node
    centers: Floats  # E[μ | τ, sources]
    variances: Floats  # Var[μ | τ, sources]
    agreement: Agreement

    @property
    def unit(self) -> str:
        """The unit of the number."""
        return self.sources[0].unit

    @property
    def time_base(self) -> str | None:
        """Over what time it runs."""
        return self.sources[0].time_base

    @cached_property
    def mean(self) -> float:
        """E[number | sources]: what expected welfare depends on."""
        if self.scale == "plain":
            return float(self.weights @ self.centers)
        return float(self.weights @ np.exp(self.centers + self.variances / 2.0))

    @cached_property
    def standard_deviation(self) -> float:
        """The posterior's standard deviation."""
        if self.scale == "plain":
            return math.sqrt(float(self.weights @ (self.variances + (self.centers - self.mean) ** 2)))
        second = float(self.weights @ np.exp(2.0 * self.centers + 2.0 * self.variances))
        return math.sqrt(max(second - self.mean**2, 0.0))

    @cached_property
    def median(self) -> float:
        """The amount above and below which the number is equally likely to lie."""
        return self.quantile(0.5)

    @cached_property
    def scatter(self) -> float:
        """E[τ | sources]: by how much sources differ beyond their errors, on the scale of the pooling."""
        return float(self.weights @ self.between)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central interval that holds the number with probability `level`."""
        return self.quantile((1.0 - level) / 2.0), self.quantile((1.0 + level) / 2.0)

    def density(self, amounts: ArrayLike) -> Floats:
        """The posterior density, per unit of the amount."""
        at = np.asarray(amounts, dtype=np.float64)
        distances = (self._placed(at)[..., None] - self.centers) ** 2 / self.variances
        density: Floats = np.exp(-0.5 * distances) @ (self.weights / np.sqrt(2.0 * math.pi * self.variances))
        return density / at if self.scale == "logarithms" else density

    def quantile(self, probability: float) -> float:
        """The amount that the number does not exceed with this probability."""
        from scipy.optimize import brentq

        reach = 40.0 * np.sqrt(self.variances)
        low, high = float((self.centers - reach).min()), float((self.centers + reach).max())

        def excess(at: float) -> float:
            return float(ndtr((at - self.centers) / np.sqrt(self.variances)) @ self.weights) - probability

        place = brentq(excess, low, high, xtol=1e-13 * max(1.0, abs(low), abs(high)))
        return math.exp(place) if self.scale == "logarithms" else float(place)

    def calibrated(self) -> Calibrated:
        """The posterior as a number that a program file can state: its mean, with its standard deviation as error."""
        names = "; ".join(quantity.source for quantity in self.stated)
        words = f"pooled from {names}; prior: {self.prior.source}"
        return Calibrated(self.mean, self.unit, words, time_base=self.time_base, standard_error=self.standard_deviation)

    def explain(self) -> str:
        """The posterior and the conflicts in words."""
        low, high = self.interval()
        time_base = f", {self.time_base}" if self.time_base else ""
        return (
            f"{number(self.mean)} {self.unit}{time_base} on average, between {number(low)} and {number(high)} with "
            f"probability 95 % (prior: {self.prior.source}). {self.agreement.explain()}"
        )

    def _placed(self, amounts: ArrayLike) -> Floats:
        at = np.asarray(amounts, dtype=np.float64)
        if self.scale == "plain":
            return at
        with np.errstate(divide="ignore"):
            return np.log(at)


def pool(sources: Sequence[Calibrated], ground: CommonGround, *, prior: Prior, scale: Scale = "logarithms") -> Pooled:
    """Several sources for one number, on common ground.

    In logarithms a source with mean k and standard error e counts as log-normal with these moments: s² = ln(1 + e²/k²)
    around ln k − s²/2. One source alone, with a wide prior and no differences between sources, comes back as it is.
    """
    brought = tuple(ground.brought(source) for source in sources)
    values, errors = _measured(brought, prior, scale)
    center = math.log(prior.center) if scale == "logarithms" else prior.center
    nodes, weights = prior.scatter(float(errors.min()))
    given = _conditional(values, errors, nodes, weights, (center, prior.spread))
    agreement = _agreement(_named(brought), values, errors, (center, prior), scale)
    return Pooled(brought, tuple(sources), prior, scale, nodes, *given, agreement)


def _named(sources: tuple[Calibrated, ...]) -> tuple[str, ...]:
    """The sources' own words, told apart where two are the same."""
    names: list[str] = []
    for source in sources:
        same = sum(other.source == source.source for other in sources[: len(names)])
        names.append(f"{source.source} ({same + 1})" if same else source.source)
    return tuple(names)


def _measured(sources: tuple[Calibrated, ...], prior: Prior, scale: Scale) -> tuple[Floats, Floats]:
    """What each source says on the scale of the pooling, and with what standard error."""
    if not sources:
        raise MissingKey("no source is stated", why="there is nothing to pool", instead="state at least one")
    for source in sources:
        if source.standard_error is None:
            raise MissingKey(
                f"{source} has no standard_error",
                why="a source counts by how sure it is",
                instead="state standard_error; for a range that was agreed on, choose what it stands for",
            )
    values = np.array([source.value for source in sources])
    errors = np.array([source.standard_error for source in sources], dtype=np.float64)
    if scale == "plain":
        return values, errors
    if not (prior.center > 0 and math.isfinite(prior.spread)):
        raise InvalidPreferences(
            f"a prior around {prior.center} with spread {prior.spread} for a positive amount",
            why="without a finite spread the mean of a log-normal posterior is infinite",
            instead="state a center above 0 and a finite spread; 3 allows for a factor of 400 either way",
        )
    squares = np.log1p((errors / values) ** 2)
    return np.log(values) - squares / 2.0, np.sqrt(squares)


def _conditional(
    values: Floats, errors: Floats, nodes: Floats, weights: Floats, prior: tuple[float, float]
) -> tuple[Floats, Floats, Floats]:
    """Posterior weight of each τ, and mean and variance of μ given it; the marginal likelihood of τ in closed form."""
    center, spread = prior
    precision = 1.0 / spread**2  # 0 for an infinite spread
    each = 1.0 / (errors**2 + nodes[:, None] ** 2)
    variances = 1.0 / (each.sum(axis=1) + precision)
    centers = variances * (each @ values + precision * center)
    misfit = (each * (values - centers[:, None]) ** 2).sum(axis=1) + precision * (centers - center) ** 2
    logs = 0.5 * (np.log(each).sum(axis=1) + np.log(variances) - misfit)
    likely = weights * np.exp(logs - logs.max())
    return likely / likely.sum(), centers, variances


def _agreement(
    names: tuple[str, ...], values: Floats, errors: Floats, prior: tuple[float, Prior], scale: Scale
) -> Agreement:
    _, _, between, heterogeneity = random_effects(values, errors)
    degrees = len(values) - 1
    share = max(0.0, (heterogeneity - degrees) / heterogeneity) if heterogeneity > 0 else 0.0
    others = [np.arange(len(values)) != place for place in range(len(values))]
    nobody = np.zeros(len(values), dtype=bool)
    return Agreement(
        heterogeneity,
        degrees,
        float(gammaincc(degrees / 2, heterogeneity / 2)) if degrees > 0 else 1.0,
        share,
        math.sqrt(between),
        differing_pairs(names, values, errors, logarithms=scale == "logarithms"),
        tuple((name, _oddity(values, errors, i, others[i], prior)) for i, name in enumerate(names)),
        tuple((name, _oddity(values, errors, i, nobody, prior)) for i, name in enumerate(names)),
    )


def _oddity(
    values: Floats, errors: Floats, place: int, known: NDArray[np.bool_], prior: tuple[float, Prior]
) -> float | None:
    """How often a source at least as far out as this one is predicted, from the prior and the known sources."""
    center, belief = prior
    if not known.any() and not math.isfinite(belief.spread):
        return None
    nodes, weights = belief.scatter(float(errors.min()))
    given = _conditional(values[known], errors[known], nodes, weights, (center, belief.spread))
    likely, centers, variances = given
    spreads = np.sqrt(variances + nodes**2 + errors[place] ** 2)
    below = float(likely @ ndtr((values[place] - centers) / spreads))
    return 2.0 * min(below, 1.0 - below)
