"""Ratios of published estimates, and intervals that hold for them: Fieller's set, by the exact noise.

A ratio r of two true numbers is one for which N − r·D is 0. Estimates of both are truths plus S_N and S_D, sums over
the same independent draws, so that N̂ − r·D̂ = S_N − r·S_D has an exact law for every r (`publication.intervals`). With
t(r) its quantile, P(|S_N − r·S_D| ≤ t(r)) ≥ 1 − α, the set {r : |N̂ − r·D̂| ≤ t(r)} holds the truth with probability
1 − α or more, whatever the truth is. Source: Fieller 1954, with the noise in place of the normal law.

What is stated is an interval around that set. For any two ratios, |S_r| ≤ |S_b| + |r − b|·|S_D|, so that with a
hundredth η of α, t(r) ≤ t_b(α − η) + |r − b|·q_D(η): one quantile at b bounds all others, and each new b, at the end
that was reached, brings the end nearer to that of the set. Where the noise of the denominator may be all of it,
|D̂| ≤ t_D, no ratio can be ruled out, and the interval is the whole line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.mechanism import Noise
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.intervals import Interval, Probability, asked_for, interval_of

SPARED = Fraction(1, 100)  # of what an interval may miss, for the denominator's noise away from the ratio looked at
NEAR = 0.003  # An end is brought nearer as long as that narrows the interval by so much.
FINE = 2.0**-8  # Ratios are looked at on a grid so fine that it widens an interval by no more than this.
MOST_STEPS = 32
OUTWARD = 1e-9  # Ends are moved outward by so much of the interval: no truth is lost to a rounding error.
FIELLER = "Fieller's set, by the exact noise of both"
UNBOUNDED = "unbounded: the denominator may be 0"


@dataclass(frozen=True, eq=False)
class JointError:
    """The errors of a numerator and of a denominator: the same draws of noise, each with a weight in either."""

    numerator: Floats  # shape (draws,)
    denominator: Floats  # shape (draws,)
    kinds: Integers  # shape (draws,)
    noises: Sequence[Noise]  # of each kind

    def reach(self, ratio: float, probability: Fraction) -> float:
        """How far S_N − r·S_D goes with this probability; of an infinite ratio S_D alone."""
        weights = self.denominator if math.isinf(ratio) else self.numerator - ratio * self.denominator
        return interval_of(0.0, weights, self.kinds, self.noises, probability=probability).upper

    def spread(self, ratio: float) -> float:
        """The standard deviation of S_N − r·S_D."""
        return math.sqrt(float(np.square(self.numerator - ratio * self.denominator) @ self._variances))

    @cached_property
    def _variances(self) -> Floats:
        return np.array([noise.distribution().variance for noise in self.noises])[self.kinds]


def joint_error(
    numerator: Floats,
    denominator: Floats,
    kinds: Sequence[Integers],
    noises: Sequence[Sequence[Noise]],
    *,
    shared: bool,
) -> JointError:
    """The errors of numbers of two tables, from what each takes of its rows: of the same ones where they are shared.

    `kinds` and `noises` are those of either table's rows; without noise there are none.
    """
    if shared:
        every, known = kinds[0], noises[0]
    else:
        rows = len(numerator), len(denominator)
        numerator = np.concatenate([numerator, np.zeros(rows[1])])
        denominator = np.concatenate([np.zeros(rows[0]), denominator])
        every, known = np.concatenate([kinds[0], kinds[1] + len(noises[0])]), (*noises[0], *noises[1])
    used = np.flatnonzero((numerator != 0) | (denominator != 0))
    return JointError(numerator[used], denominator[used], every[used], known)


def interval_of_ratio(
    numerator: float, denominator: float, error: JointError, *, probability: Probability = Fraction(19, 20)
) -> Interval:
    """The interval for a ratio of two estimates that holds with at least this probability; it may be the whole line."""
    nominal = asked_for(probability)
    if denominator < 0:
        numerator, denominator = -numerator, -denominator
    ratio = numerator / denominator if denominator else math.nan
    if not error.denominator.any() and denominator:  # a denominator without noise: the interval of the numerator
        known = interval_of(numerator, error.numerator, error.kinds, error.noises, probability=nominal)
        return replace(known, estimate=ratio, lower=known.lower / denominator, upper=known.upper / denominator)
    held = 1 - (1 - nominal) * (1 - SPARED)
    if denominator <= error.reach(math.inf, held):
        return Interval(ratio, -math.inf, math.inf, float(nominal), 1.0, True, UNBOUNDED)
    ends = [_upper_end(sign * numerator, denominator, error, sign, held) for sign in (-1.0, 1.0)]
    lower, upper = -ends[0], ends[1]
    margin = OUTWARD * (upper - lower + abs(ratio))
    return Interval(ratio, lower - margin, upper + margin, float(nominal), float(nominal), False, FIELLER)


def _upper_end(numerator: float, denominator: float, error: JointError, sign: float, held: Fraction) -> float:
    """The largest ratio that is not ruled out, or a little more, of a denominator beyond its noise.

    The lower end is minus that of the ratio with the other `sign`: `numerator` is sign·N̂, and so are ratios here.
    """
    rarely = 1 - (1 - held) * SPARED / (1 - SPARED)  # 1 − η, where `held` is 1 − (α − η)
    across, ratio = error.reach(math.inf, rarely), numerator / denominator
    grid = _grid(across, error.spread(sign * ratio))
    # All beyond are ruled out: t(r) ≤ |r|·t_D(α − η) + q_N(η).
    end = (abs(numerator) + error.reach(0.0, rarely)) / (denominator - error.reach(math.inf, held))
    if denominator > across:  # from the ratio itself, upward
        at = math.floor(ratio / grid) * grid if grid else ratio
        end = min(end, (numerator + error.reach(sign * at, held) - at * across) / (denominator - across))
    if across < NEAR * denominator:
        return end
    for _ in range(MOST_STEPS):  # from the end that was reached, downward
        at = math.ceil(end / grid) * grid if grid else end
        found = (numerator + error.reach(sign * at, held) + at * across) / (denominator + across)
        narrowed, end = end - found, min(end, found)
        if narrowed < NEAR * (end - ratio):
            break
    return end


def _grid(across: float, spread: float) -> float:
    """The distance of ratios that are looked at: many numbers of a table then share one law; 0 for no grid."""
    return 2.0 ** math.floor(math.log2(FINE * spread / across)) if across > 0 and spread > 0 else 0.0
