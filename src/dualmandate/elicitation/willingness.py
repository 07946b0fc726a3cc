"""What an estimator found, and what follows in money: willingness to pay with its interval, tastes among people.

An attribute is worth what a person would pay for one more unit of it: −β_attribute/β_price, with an interval by the
delta method, simulation or Fieller's theorem. A ratio of estimates can be anything where its denominator may be zero.
So where the confidence set of the price's coefficient contains zero, no number is given: willingness to pay is
unbounded, and the result says so.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from dualmandate.errors import InvalidPreferences, InvalidValue, UnknownName
from dualmandate.population.arrays import square_root
from dualmandate.population.currency import DEFAULT
from dualmandate.population.wording import number

Method = Literal["delta", "krinsky-robb", "fieller"]
SEED = 20190101  # The seed is public: everybody gets the same simulated interval.
DRAWS = 2**14  # scrambled Sobol points, so that the ends of an interval are good to about a thousandth of its width
Shape = Literal["interval", "outside an interval", "whole line"]


@dataclass(frozen=True, eq=False)
class ParameterEstimates:
    """What an estimator found.

    `covariance` is the sandwich H⁻¹(Σ g_c g_cᵀ)H⁻¹ of the log likelihood's Hessian H and its gradients g_c summed in
    each cluster (no small-sample factor), or −H⁻¹ where the errors are plain.
    """

    names: tuple[str, ...]  # parameters
    values: NDArray[np.float64]  # (parameters,)
    covariance: NDArray[np.float64]  # (parameters, parameters)
    log_likelihood: float  # natural logarithm, ≤ 0
    observations: int  # answers
    clusters: int  # people whose answers may hang together

    def value(self, name: str) -> float:
        """The estimate of one parameter."""
        return float(self.values[self._position(name)])

    def standard_error(self, name: str) -> float:
        """The standard error of one parameter."""
        position = self._position(name)
        return math.sqrt(self.covariance[position, position])

    def joint(self, names: tuple[str, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Estimates and covariance of some parameters, in the order asked for."""
        positions = [self._position(name) for name in names]
        return self.values[positions], self.covariance[np.ix_(positions, positions)]

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise UnknownName(
                f"there is no parameter '{name}' in these estimates",
                why="an estimate exists for each parameter of the model, and for nothing else",
                instead=f"choose one of {', '.join(self.names)}",
            )
        return self.names.index(name)


@dataclass(frozen=True)
class Willingness:
    """Willingness to pay or to accept, in the price's unit per unit of the attribute."""

    estimate: float | None  # None where unbounded: the price coefficient's confidence set contains zero
    standard_error: float | None
    interval: tuple[float, float] | None
    level: float = 0.95  # of the interval
    method: Method = "delta"


@dataclass(frozen=True)
class BoundedWillingness(Willingness):
    """One that has a number."""

    estimate: float
    standard_error: float
    interval: tuple[float, float]

    def scaled(self, factor: float) -> BoundedWillingness:
        """The same amount in other units."""
        low, high = sorted(end * factor for end in self.interval)
        error = self.standard_error * abs(factor)
        return replace(self, estimate=self.estimate * factor, standard_error=error, interval=(low, high))


@dataclass(frozen=True)
class ConfidenceSet:
    """Fieller's set for a ratio: [lower, upper], all but (lower, upper), or the whole line."""

    shape: Shape
    lower: float
    upper: float

    def __contains__(self, value: float) -> bool:
        if self.shape == "outside an interval":
            return value <= self.lower or value >= self.upper
        return self.lower <= value <= self.upper


def willingness_to_pay(
    estimates: ParameterEstimates, attribute: str, price: str, *, method: Method = "delta", level: float = 0.95
) -> Willingness:
    """What one more unit of an attribute is worth, in the price's unit: −β_attribute/β_price.

    Negative for what people would have to be paid for. The standard error is the delta method's under all three
    methods, because a ratio of normal estimates has no variance of its own. Refused where a higher price makes people
    choose an alternative more often; without a number where the price's confidence set at `level` contains zero.
    """
    values, covariance = estimates.joint((attribute, price))
    return ratio_willingness(values, covariance, method=method, level=level)


def ratio_willingness(
    values: NDArray[np.float64],
    covariance: NDArray[np.float64],
    *,
    method: Method = "delta",
    level: float = 0.95,
) -> Willingness:
    """−n/d from jointly normal estimates (n, d) with their (2, 2) covariance; d is the effect of the price, < 0."""
    critical = critical_value(level, method)
    numerator, price = (float(value) for value in values)
    if unbounded(price, math.sqrt(covariance[1, 1]), critical):
        return Willingness(None, None, None, level, method)
    estimate = -numerator / price
    gradient = np.array([-1.0, -estimate]) / price
    error = math.sqrt(gradient @ covariance @ gradient)
    if method == "delta":
        interval = (estimate - critical * error, estimate + critical * error)
    elif method == "fieller":
        found = fieller(values, covariance, critical=critical)
        interval = (found.lower, found.upper)
    else:
        interval = simulated_interval(values, covariance, lambda draws: -draws[:, 0] / draws[:, 1], level=level)
    return Willingness(estimate, error, interval, level, method)


def fieller(values: NDArray[np.float64], covariance: NDArray[np.float64], *, critical: float) -> ConfidenceSet:
    """All ratios θ = −n/d that a test does not reject: (n + θd)² ≤ z²·(V_nn + 2θV_nd + θ²V_dd) [Fie54].

    A quadratic in θ: an interval where |d| > z·√V_dd; otherwise everything outside an interval, or the whole line.
    """
    numerator, denominator = (float(value) for value in values)
    leading = float(denominator**2 - critical**2 * covariance[1, 1])
    middle = float(numerator * denominator - critical**2 * covariance[0, 1])
    constant = float(numerator**2 - critical**2 * covariance[0, 0])
    discriminant = middle**2 - leading * constant
    if leading == 0.0 and middle != 0.0:  # one root went to infinity
        end = -constant / (2.0 * middle)
        return ConfidenceSet("interval", *((-math.inf, end) if middle > 0.0 else (end, math.inf)))
    if leading <= 0.0 and discriminant <= 0.0:
        return ConfidenceSet("whole line", -math.inf, math.inf)
    # The larger root in absolute value first, the other from their product: neither loses digits.
    larger = -(middle + math.copysign(math.sqrt(max(discriminant, 0.0)), middle))
    roots = sorted((larger / leading, constant / larger if larger else 0.0))
    return ConfidenceSet("interval" if leading > 0.0 else "outside an interval", *roots)


def simulated_interval(
    values: NDArray[np.float64],
    covariance: NDArray[np.float64],
    of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    *,
    level: float,
) -> tuple[float, float]:
    """Krinsky and Robb's interval: quantiles of a function of normal draws around the estimates [KR86].

    `of` maps (draws, parameters) to (draws,). The draws are 2¹⁴ points of a public seed, the same for everybody.
    """
    spread = square_root(covariance)
    drawn = of(values + _normal_points(len(values)) @ spread.T)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def unbounded(price: float, error: float, critical: float) -> bool:
    """Whether the price's confidence set contains zero; refused where it lies above zero."""
    if price > critical * error:
        raise InvalidPreferences(
            "a higher price makes people choose an alternative more often",
            why="what they would pay for anything cannot be told from that",
            instead="check the coding of the price; a payment that people receive is a negative price",
        )
    return price >= -critical * error


def in_words(willingness: Willingness, unit: str = DEFAULT) -> str:
    """The result as a sentence: "4.679 USD (95 % interval 4.304 to 5.074, fieller)", or why there is no number."""
    if willingness.estimate is None or willingness.interval is None:
        return (
            f"willingness to pay is unbounded: the {100 * willingness.level:g} % confidence set of the price's effect "
            "contains zero, so any amount is compatible with the answers"
        )
    low, high = willingness.interval
    return (
        f"{number(willingness.estimate)} {unit} ({100 * willingness.level:g} % interval {number(low)} to "
        f"{number(high)}, {willingness.method})"
    )


def critical_value(level: float, method: str = "delta") -> float:
    """z with P(|N(0, 1)| ≤ z) = level; refused for levels and methods that do not exist."""
    if method not in get_args(Method):
        raise UnknownName(
            f"there is no method '{method}'",
            why="an interval is made in one of the ways the house knows",
            instead=f"choose one of {', '.join(get_args(Method))}",
        )
    if not (isinstance(level, float) and 0.0 < level < 1.0):
        raise InvalidValue(
            f"an interval cannot hold at the level {level}",
            why="a level is a probability",
            instead="state a level between 0 and 1, such as 0.95",
        )
    return float(ndtri((1.0 + level) / 2.0))


@lru_cache(maxsize=8)
def _normal_points(dimensions: int) -> NDArray[np.float64]:
    """(DRAWS, dimensions) standard normal points, evenly spread."""
    from scipy.stats import qmc  # half a second, and only one of three methods needs it

    points = qmc.Sobol(dimensions, scramble=True, rng=SEED).random_base2(int(math.log2(DRAWS)))
    drawn: NDArray[np.float64] = ndtri(np.clip(points, 1e-12, 1 - 1e-12))
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True)
class Taste:
    """A coefficient among people, in its own unit: utility, or money in willingness-to-pay space."""

    mean: float
    mean_standard_error: float
    standard_deviation: float  # among people; 0 where all are alike
    standard_deviation_standard_error: float
    median: float
    share_positive: float  # of people


def taste_of(estimates: ParameterEstimates, name: str) -> Taste:
    """The distribution of a coefficient ("epsilon", "willingness to pay for epsilon", "scale"), errors by delta method.

    Normal with mean m and standard deviation s: just that. Lognormal with m and s of the logarithm: mean e^(m + s²/2),
    standard deviation mean·√(e^(s²) − 1). Triangular with half width h: standard deviation h/√6.
    """
    for sign, subject in ((1.0, name), (-1.0, f"minus {name}")):
        if f"mean of log {subject}" in estimates.names:
            return _lognormal(estimates, subject, sign)
    if f"log {name}" in estimates.names:
        middle = math.exp(estimates.value(f"log {name}"))
        return Taste(middle, middle * estimates.standard_error(f"log {name}"), 0.0, 0.0, middle, 1.0)
    mean, error = estimates.value(name), estimates.standard_error(name)
    if f"half width of {name}" in estimates.names:
        half, root = f"half width of {name}", math.sqrt(6)
        width = estimates.value(half)
        inside = min(max(mean / width, -1.0), 1.0)
        tail = (1 - abs(inside)) ** 2 / 2
        positive = 1 - tail if inside > 0 else tail
        return Taste(mean, error, width / root, estimates.standard_error(half) / root, mean, positive)
    spread = f"standard deviation of {name}"
    if spread not in estimates.names:
        return Taste(mean, error, 0.0, 0.0, mean, float(mean > 0))
    wide = estimates.value(spread)
    share = float(ndtr(mean / wide)) if wide > 0 else float(mean > 0)
    return Taste(mean, error, wide, estimates.standard_error(spread), mean, share)


def _lognormal(estimates: ParameterEstimates, subject: str, sign: float) -> Taste:
    (m, s), covariance = estimates.joint((f"mean of log {subject}", f"standard deviation of log {subject}"))
    mean, ratio = math.exp(m + s**2 / 2), math.sqrt(math.expm1(s**2))
    of_mean = np.array([mean, s * mean])
    deviation = mean * ratio
    of_deviation = np.array([deviation, s * deviation + (s * mean * math.exp(s**2) / ratio if ratio else mean)])
    errors = (math.sqrt(slope @ covariance @ slope) for slope in (of_mean, of_deviation))
    mean_error, deviation_error = errors
    return Taste(sign * mean, mean_error, deviation, deviation_error, sign * math.exp(m), float(sign > 0))
