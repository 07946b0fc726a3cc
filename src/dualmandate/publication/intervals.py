"""How wrong a published number may be: intervals for measurements and unbiased estimates, from the exact noise.

An estimate is the truth plus S = Σ w·X. Its interval is estimate ± t with P(|S| ≤ t) at least what was asked for, t as
small as that allows, X independent whole-number noise of known laws:

* one draw: in closed form;
* weights in simple ratios: S lies on a lattice, and its probabilities are a Fourier transform, exact to 10⁻¹²;
* others: the draws of the largest weights are taken value by value, because they make steps that no smooth law has, and
  the rest by its characteristic function, with a little Gaussian noise added, which is paid for: never too short.

Where even these sums would have no end, t is an order statistic, on the safe side, of draws from a public key. There is
no normal approximation: at ε = 1 it would hold a single count in 92.7 % of cases where 95 % were asked for. Tables that
were made consistent have no such interval.

Intervals for all numbers of a table at once hold together with the probability that was asked for. Numbers that share
no measurement are independent: each takes its own interval at the m-th root of the probability, and the product is
exact. Others are estimate ± c·(standard error), c the quantile of the largest |error|/(standard error) over the table,
from draws of a public key. Where that would take too long, the chances to miss are added up instead.

The draws are those of the exact samplers, from keys that no release can have: a release's own are made from its secret.
Anyone who repeats this gets the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from statistics import NormalDist

import numpy as np

from dualmandate.errors import InvalidRequest, TooLarge
from dualmandate.mechanism import Noise
from dualmandate.mechanism.combination import Combination, Term, computable
from dualmandate.mechanism.mechanism import Distribution
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population.arguments import checked_class
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.currency import currency_of
from dualmandate.population.rational import written_probability
from dualmandate.population.shown import cut_line, page_of, sentences, table
from dualmandate.population.units import PER, plural
from dualmandate.population.wording import exact, number, percent

ROUNDING = 1e-4  # Bounds are moved outward by so much of a lattice step: no truth is lost to a rounding error.
DRAWS = 2**17  # Simulations draw so often.
TOGETHER = 2**22  # At most so many drawn numbers are held at once.
MOST_WORK = 2**36  # A simulation takes at most so many multiplications.
TOO_LOW = 1e-4  # With this chance, over public keys, an order statistic lies below the quantile that it stands for.

Probability = Fraction | float | str


@checked_class
@dataclass(frozen=True)
class Interval:
    """An estimate and where the truth lies: lower ≤ truth ≤ upper with `probability`, over the noise.

    `covers` says what the truth is: the number counted, or what a like population would show on average; then the
    probability is over people and noise.

    `probability` is that of this interval, not below the `nominal` one that was asked for: exact where `is_exact`, else
    at least so much; where it was simulated, `simulation_error` is its standard error, and the interval is chosen so
    that it holds all the same. Where amounts or records are clipped, the truth is that of what is counted: `covers`.
    """

    estimate: float
    lower: float
    upper: float
    nominal: float
    probability: float
    is_exact: bool
    method: str
    simulation_error: float = 0.0  # of the probability
    covers: str | None = None  # what it is about where that is not all that a reader may think of
    standard_error: float | None = None  # of the estimate, by the exact noise; None where it is not known
    unit: str | None = None

    @property
    def half_width(self) -> float:
        """From the estimate to either end; of a ratio, half of its length."""
        return (self.upper - self.lower) / 2

    def __contains__(self, value: float) -> bool:
        return self.lower <= value <= self.upper

    def __str__(self) -> str:
        share = "exactly" if self.is_exact else "about" if self.simulation_error else "at least"
        error = "" if not self.standard_error else f", standard error {self._written(self.standard_error, round)}"
        about = "" if self.covers is None else f"; it covers {self.covers}"
        return (
            f"{self._amount()}{error}: {self._span()} with probability {share} {percent(self.probability, 4)} "
            f"({self.nominal:.6g} was asked for; {self.method}){about}"
        )

    def __repr__(self) -> str:
        share = percent(self.probability, 4)
        return cut_line(f"Interval({self._amount()}: {self._span()} with probability {share}; {self.method})")

    def _repr_html_(self) -> str:
        """What a notebook shows: the number, how wrong it may be, and what the interval holds."""
        error = "not known" if self.standard_error is None else self._written(self.standard_error, round)
        row = (self._amount(), error, self._span(), percent(self.probability, 4))
        headings = ["estimate", "standard error", "interval", "probability"]
        return page_of("How wrong it may be", table(headings, [row], words=0), sentences([f"{self}."]))

    def _span(self) -> str:
        if not math.isfinite(self.upper - self.lower):
            return "any number"
        return f"{self._written(self.lower, math.floor)} to {self._written(self.upper, math.ceil)}"

    def _amount(self) -> str:
        """The estimate in its unit, with the digits that its error supports."""
        if self.unit is None or not math.isfinite(self.estimate):
            return self._written(self.estimate, round)
        what, per, each = self.unit.partition(PER)
        currency, size = currency_of(what), self._written(abs(self.estimate), round)
        sign = "−" if self.estimate < 0 and size != "0" else ""
        return f"{sign}{size} {plural(self.unit)}" if currency is None else f"{sign}{currency} {size}{per}{each}"

    def _written(self, value: float, whole: Callable[[float], int]) -> str:
        """A number in steps of the second digit of the standard error, rounded as `whole` says: outward for ends."""
        error = self.half_width / 2 if self.standard_error is None else self.standard_error
        if not 0 < error < math.inf or not math.isfinite(value):
            return exact(value) if math.isfinite(value) else number(value)
        places = 1 - math.floor(math.log10(error))
        steps = Decimal(repr(value)).scaleb(places)
        near = round(steps)  # a bound that was moved outward by a rounding error stays where it was meant
        units = near if abs(steps - near) < Decimal(repr(ROUNDING)) else whole(steps)  # type: ignore[arg-type]
        text = f"{abs(Decimal(units).scaleb(-places)):,.{max(places, 0)}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return f"−{text}" if units < 0 else text


def asked_for(probability: Probability) -> Fraction:
    """A probability as it was written: 0.95 means 19/20; refused unless strictly between 0 and 1."""
    found = written_probability(probability)
    if found is None:
        raise InvalidRequest(
            f"an interval that holds with probability {probability}",
            why="unbounded noise leaves every finite interval with some probability",
            instead="state a probability strictly between 0 and 1, for example 0.95",
        )
    return found


def interval_of(
    estimate: float, weights: Floats, kinds: Integers, noises: Sequence[Noise], *, probability: Probability = 0.95
) -> Interval:
    """The shortest symmetric interval about an unbiased estimate, truth + Σ w·X, with at least this probability."""
    nominal = asked_for(probability)
    reach = reach_of_draws(draws_of(weights, kinds, noises), float(1 - nominal))
    if reach is not None:
        return around(estimate, reach, float(nominal))
    return _simulated(estimate, weights, kinds, noises, nominal=nominal)


def interval_by_law(estimate: float, draws: tuple[Draws, ...], *, probability: Probability = 0.95) -> Interval | None:
    """The same where weights are counted, not listed; None where their law has no end, and is to be simulated."""
    nominal = asked_for(probability)
    reach = reach_of_draws(draws, float(1 - nominal))
    return None if reach is None else around(estimate, reach, float(nominal))


def around(estimate: float, reach: Reach, nominal: float) -> Interval:
    """An interval about an estimate; whole numbers stay whole, other bounds are rounded outward."""
    half = reach.distance
    if reach.step is not None:
        if reach.step == round(reach.step) and abs(estimate - round(estimate)) < ROUNDING:
            estimate, half = float(round(estimate)), float(round(half))
        else:
            half += ROUNDING * reach.step
    found = (nominal, reach.probability, reach.is_exact, reach.words)
    return Interval(estimate, estimate - half, estimate + half, *found)


def _simulated(
    estimate: float, weights: Floats, kinds: Integers, noises: Sequence[Noise], *, nominal: Fraction
) -> Interval:
    """By draws from a public key; the order statistic is chosen so that the probability is hardly ever below."""
    place, used = order_statistic(nominal), np.flatnonzero(weights)
    if place is None:
        raise InvalidRequest(
            f"a simulated interval that holds with probability {float(nominal):.10g}",
            why=f"{DRAWS:,} draws cannot tell it from 1",
            instead="ask for a probability of at most 0.9999",
        )
    errors = np.concatenate(list(public_errors(weights[used][None, :], kinds[used], noises)))
    sizes = np.sort(np.abs(errors[:, 0]))
    half = float(sizes[place - 1]) * (1 + 1e-9)
    share = float(np.mean(sizes <= half))
    words, spread = f"{DRAWS:,} draws from a public key", math.sqrt(share * (1 - share) / DRAWS)
    return Interval(estimate, estimate - half, estimate + half, float(nominal), share, False, words, spread)


@dataclass(frozen=True, eq=False)
class SimultaneousIntervals:
    """Intervals for the numbers of a table, row-major; the probability is that of all of them holding together."""

    estimates: Floats = field(repr=False)
    lower: Floats = field(repr=False)
    upper: Floats = field(repr=False)
    nominal: float
    probability: float
    is_exact: bool
    method: str
    standard_error: float = 0.0
    covers: str | None = None  # as in an `Interval`


def simultaneous_of(
    estimates: Floats, weights: Floats, kinds: Integers, noises: Sequence[Noise], *, probability: Probability = 0.95
) -> SimultaneousIntervals:
    """Intervals for estimates truth + W·X that all hold together; weights W of shape (numbers, rows)."""
    nominal = asked_for(probability)
    if np.count_nonzero(_used(weights), axis=0).max(initial=0) <= 1:
        reaches = _reaches(weights, kinds, noises, _each_of(nominal, len(estimates)))
        return _together(estimates, reaches, nominal, independent=True)
    place = order_statistic(nominal)
    if place is None or DRAWS * weights.size > MOST_WORK:
        reaches = _reaches(weights, kinds, noises, float(1 - nominal) / len(estimates))
        return _together(estimates, reaches, nominal, independent=False)
    return _simulated_together(estimates, weights, kinds, noises, (nominal, place))


def simultaneous_of_cells(
    estimates: Floats, kinds: Integers, noises: Sequence[Noise], *, factor: float = 1.0, probability: Probability = 0.95
) -> SimultaneousIntervals:
    """The same for numbers that were measured one by one, each `factor` times a whole number of its kind."""
    nominal = asked_for(probability)
    tail = _each_of(nominal, len(estimates))
    by_kind = {
        int(kind): _known(reach_of_draws(draws_of(np.full(1, factor), np.array([kind]), noises), tail))
        for kind in np.unique(kinds)
    }
    return _together(estimates, [by_kind[int(kind)] for kind in kinds], nominal, independent=True)


def _each_of(nominal: Fraction, count: int) -> float:
    """What each of some independent intervals may miss: 1 − p^(1/m)."""
    return -math.expm1(math.log(nominal) / max(count, 1))


def _used(weights: Floats) -> Booleans:
    sizes = np.abs(weights)
    return np.asarray(sizes > NOTHING * sizes.max(axis=1, keepdims=True, initial=0.0))


def _reaches(weights: Floats, kinds: Integers, noises: Sequence[Noise], tail: float) -> list[Reach]:
    return [_known(reach_of_draws(draws_of(row, kinds, noises), tail)) for row in weights]


def _together(
    estimates: Floats, reaches: Sequence[Reach], nominal: Fraction, *, independent: bool
) -> SimultaneousIntervals:
    """Numbers by themselves: independent, at a root of the probability, or with the chances to miss added up."""
    if independent:
        chance = math.exp(math.fsum(math.log(each.probability) for each in reaches))
        words = "each number by itself, at a root of the probability"
    else:
        chance = 1 - math.fsum(1 - each.probability for each in reaches)
        words = "each number by itself, the chances to miss added up"
    exact = independent and all(each.is_exact for each in reaches)
    each = [around(float(estimate), reach, float(nominal)) for estimate, reach in zip(estimates, reaches, strict=True)]
    lower, upper = np.array([one.lower for one in each]), np.array([one.upper for one in each])
    return SimultaneousIntervals(estimates, lower, upper, float(nominal), max(chance, float(nominal)), exact, words)


def _simulated_together(
    estimates: Floats, weights: Floats, kinds: Integers, noises: Sequence[Noise], asked: tuple[Fraction, int]
) -> SimultaneousIntervals:
    nominal, place = asked
    variances = np.array([noise.distribution().variance for noise in noises])[kinds]
    spreads = np.sqrt(np.square(weights) @ variances)
    uncertain = np.flatnonzero(spreads > 0)
    rows = weights[uncertain] / spreads[uncertain, None]
    largest = np.sort(np.concatenate([np.abs(block).max(axis=1) for block in public_errors(rows, kinds, noises)]))
    times = float(largest[place - 1]) * (1 + 1e-9)
    share = float(np.mean(largest <= times))
    words = f"{times:.4g} standard errors, from {DRAWS:,} draws of a public key"
    found = (float(nominal), share, False, words, math.sqrt(share * (1 - share) / DRAWS))
    return SimultaneousIntervals(estimates, estimates - times * spreads, estimates + times * spreads, *found)


def _known(reach: Reach | None) -> Reach:
    if reach is None:
        raise TooLarge(
            "simultaneous intervals for numbers that weigh rare noise a thousandfold",
            why="neither a Fourier sum nor as many draws as that takes are affordable",
            instead="ask for the intervals of some numbers by themselves",
        )
    return reach


def _public_key(kind: int) -> NoiseKey:
    """The key of one kind of noise; public, and documented in docs/explanation/intervals.md."""
    return NoiseKey(sha256(f"dualmandate, public draws for intervals, version 1, kind {kind}".encode("ascii")).digest())


def public_errors(weights: Floats, kinds: Integers, noises: Sequence[Noise]) -> Iterator[Floats]:
    """DRAWS errors Σ w·X of some numbers, all from the same draws, weights of shape (numbers, rows).

    Some draws at a time; shape (draws of the block, numbers).
    """
    count, width = weights.shape[1], max(1, TOGETHER // max(1, *weights.shape))
    places = {int(kind): np.flatnonzero(kinds == kind) for kind in np.unique(kinds)}
    samplers = {kind: (noises[kind].sampler(), _public_key(kind)) for kind in places}
    for start in range(0, DRAWS, width):
        here = min(width, DRAWS - start)
        drawn = np.empty((here, count))
        for kind, rows in places.items():
            sampler, key = samplers[kind]
            cells = range(start * len(rows), (start + here) * len(rows))
            drawn[:, rows] = sampler.draw(key, cells).reshape(here, len(rows))
        yield drawn @ weights.T


def order_statistic(nominal: Fraction) -> int | None:
    """Which of the sorted sizes, counted from 1, is hardly ever below the quantile; None where the draws are too few.

    As many sizes below the quantile are seen with a probability of at most TOO_LOW, by the binomial law.
    """
    from scipy.stats import binom

    place = int(binom.isf(TOO_LOW, DRAWS, float(nominal))) + 1
    return place if place <= DRAWS else None


NOTHING = 1e-12  # A weight below so much of the largest is a rounding error.
LONGEST_REMEMBERED = 2**12  # The reach of a law with at most so many different weights is remembered.
SHOWN = 11  # Weights are told apart by so many digits.
FOURIER_ERROR = 1e-11  # The sums of a lattice are off by less than this in a tail probability.
SUM_ERROR = 1e-12  # The same for the sums of a characteristic function, which are seen to be off by 10⁻¹⁴.
BEYOND = 2_000.0  # One draw of the rest may reach so many of its standard deviations: more frequencies are too many.
# Draws are taken value by value as long as there are at most so many products, and values after rare ones are left.
MOST_PRODUCTS, MOST_VALUES = 2**20, 2**16
RARE = 1e-15  # A value with at most this probability is left out, and counted as missed.
BLUR_SHARE = 0.002  # The added noise may cost this share of the tail probability.

Draws = tuple[Noise, tuple[float, ...], tuple[float, ...]]  # of one noise: its weights, and how often each


@dataclass(frozen=True)
class Reach:
    """How far an error goes: P(|S| ≤ distance) is `probability`, or at least that; `step` is that of its lattice."""

    distance: float
    probability: float
    is_exact: bool
    words: str
    step: float | None = None


def error_of(weights: Floats, kinds: Integers, noises: Sequence[Noise]) -> Combination:
    """The law of Σ w·X over measured rows: one weight a row, the kind of each row, and the noise of each kind."""
    return combined(draws_of(weights, kinds, noises))


def reach_of_draws(draws: tuple[Draws, ...], tail: float) -> Reach | None:
    """How far their sum goes; worked out once for numbers whose errors have the same law, as those of a table often."""
    return reaches_of_draws(draws, (tail,))[0]


def reaches_of_draws(draws: tuple[Draws, ...], tails: tuple[float, ...]) -> Sequence[Reach | None]:
    """The same for several tails."""
    if sum(len(distinct) for _, distinct, _ in draws) > LONGEST_REMEMBERED:
        return reaches_of(combined(draws), tails)
    return _known_reaches(draws, tails)


@lru_cache(maxsize=2**9)
def _known_reaches(draws: tuple[Draws, ...], tails: tuple[float, ...]) -> tuple[Reach | None, ...]:
    return tuple(reaches_of(combined(draws), tails))


def draws_of(weights: Floats, kinds: Integers, noises: Sequence[Noise]) -> tuple[Draws, ...]:
    """The noise of each kind, its different weights, and how many rows have each."""
    sizes = np.abs(weights)
    used = np.flatnonzero(sizes > NOTHING * sizes.max(initial=0.0))
    found = []
    for kind in np.unique(kinds[used]):
        here = sizes[used[kinds[used] == kind]]
        digits = SHOWN - math.floor(math.log10(float(here.max())))
        distinct, counts = np.unique(np.round(here, digits), return_counts=True)
        found.append((noises[kind], tuple(distinct[::-1].tolist()), tuple(counts[::-1].tolist())))
    return tuple(found)


def draws_counted(weights: Sequence[tuple[Noise, Floats, Integers]]) -> tuple[Draws, ...]:
    """The same where the sizes of weights of each noise are counted already; those next to nothing are left out."""
    found, largest = list[Draws](), max((float(sizes.max(initial=0.0)) for _, sizes, _ in weights), default=0.0)
    for noise, sizes, counts in weights:
        used = sizes > NOTHING * largest
        if used.any():
            here = sizes[used]
            digits = SHOWN - math.floor(math.log10(float(here.max())))
            distinct, which = np.unique(np.round(here, digits), return_inverse=True)
            times = np.bincount(which, weights=counts[used])
            found.append((noise, tuple(distinct[::-1].tolist()), tuple(times[::-1].tolist())))
    return tuple(found)


def spread_of(draws: Sequence[Draws]) -> float:
    """The standard deviation of their sum."""
    terms = (noise.distribution().variance * float(np.square(w) @ np.array(n)) for noise, w, n in draws)
    return math.sqrt(math.fsum(terms))


def combined(draws: Sequence[Draws]) -> Combination:
    """The law of their sum."""
    terms = (Term(noise.distribution(), np.array(w), np.array(n, dtype=np.float64)) for noise, w, n in draws)
    return Combination(tuple(terms))


def reach_of(error: Combination, tail: float) -> Reach | None:
    """The smallest t with P(|S| > t) ≤ tail, or a little more where it is not exact; None where a sum has no end."""
    return reaches_of(error, [tail])[0]


def reaches_of(error: Combination, tails: Sequence[float]) -> list[Reach | None]:
    """The same for several tails of one law, which is worked out once."""
    if error.variance == 0.0:
        words = "nothing was left to chance" if not error.terms else "noise this rare is never seen"
        return [Reach(0.0, 1.0, not error.terms, words) for _ in tails]
    if error.step is not None:
        return [_on_lattice(error, tail, error.step) for tail in tails]
    split = Split.of(error)
    if split.rest.variance == 0.0:
        return [split.by_values(computable(tail)) for tail in tails]
    return [split.by_both(computable(tail)) if split.has_end else None for tail in tails]


def _on_lattice(error: Combination, tail: float, step: float) -> Reach:
    draws = sum(float(term.counts.sum()) for term in error.terms)
    distance = error.reach(tail if draws == 1 else tail - FOURIER_ERROR)
    words = "one draw of noise" if draws == 1 else f"{draws:,.0f} draws of noise on a lattice"
    return Reach(distance, 1 - error.tail(distance), True, words, step)


@dataclass(frozen=True, eq=False)
class Split:
    """S = D + R: D has listed values with their probabilities, R is known by its characteristic function."""

    values: Floats
    probabilities: Floats  # add up to 1 − `missed`
    missed: float
    rest: Combination

    @classmethod
    def of(cls, error: Combination) -> Split:
        """The draws of the largest weights as long as their values are few, and the rest."""
        factors = np.concatenate([term.factors for term in error.terms])
        counts = np.concatenate([term.counts for term in error.terms])
        of = np.repeat(np.arange(len(error.terms)), [len(term.factors) for term in error.terms])
        order = np.argsort(-factors, kind="stable")
        values, masses = np.zeros(1), np.ones(1)
        for place in order:
            found: tuple[Floats, Floats] | None = values, masses
            noise, factor = error.terms[of[place]].noise, float(factors[place])
            while found is not None and counts[place] > 0:
                found = _with_draw(values, masses, factor=factor, noise=noise)
                if found is not None:
                    (values, masses), counts[place] = found, counts[place] - 1
            if found is None:
                break
        terms = [
            Term(term.noise, factors[here], counts[here])
            for number, term in enumerate(error.terms)
            if (here := order[(of[order] == number) & (counts[order] > 0)]).size
        ]
        terms.sort(key=lambda term: -Combination((term,)).variance)  # what is soon next to nothing is left out soon
        return cls(values, masses, max(0.0, 1 - math.fsum(masses)), Combination(tuple(terms)))

    @property
    def has_end(self) -> bool:
        """Whether the frequencies are not too many: no rare draw of the rest goes far beyond the others."""
        return self.rest.law.largest <= BEYOND * math.sqrt(self.rest.variance)

    def by_values(self, tail: float) -> Reach:
        """Where every draw is taken value by value."""
        sizes = np.abs(self.values)
        order = np.argsort(sizes, kind="stable")
        sums = np.cumsum(self.probabilities[order])
        # What was left out of the values may be more than the tail: then every value is within.
        place = min(int(np.searchsorted(sums, 1 - tail)), len(sums) - 1)
        distance = float(sizes[order][place]) * (1 + 1e-9)
        held = float(self.probabilities[sizes <= distance].sum())
        return Reach(distance, held, self.missed < FOURIER_ERROR, "every value of the noise by itself")

    def by_both(self, tail: float) -> Reach:
        """P(|S| > t + z) ≤ P(|S + Z| > t) + P(|Z| > z), Z the noise that is added to the rest."""
        margin = -NormalDist().inv_cdf(BLUR_SHARE * tail / 2) * self.rest.law.blur
        allowed = (1 - BLUR_SHARE) * tail - SUM_ERROR - self.missed
        low, high = 0.0, float(np.abs(self.values).max()) + self.rest.law.largest
        while high - low > self._grid[0] / 4:
            middle = (low + high) / 2
            low, high = (middle, high) if self._beyond(middle) > allowed else (low, middle)
        held = 1 - (self._beyond(high) + SUM_ERROR + self.missed + BLUR_SHARE * tail)
        return Reach(high + margin, max(held, 1 - tail), False, "by its characteristic function")

    def _beyond(self, distance: float) -> float:
        """P(|D + R + Z| > distance) = 2·Σ P(D = d)·P(R + Z > distance − d), or a little more."""
        step, above = self._grid
        places = (distance - self.values) / step
        right = above[np.clip(np.floor(places), 0, len(above) - 1).astype(np.intp)]
        left = 1 - above[np.clip(np.ceil(-places), 0, len(above) - 1).astype(np.intp)]
        return 2 * float(self.probabilities @ np.where(places >= 0, right, left))

    @cached_property
    def _grid(self) -> tuple[float, Floats]:
        """P(R + Z > k steps) for k = 0, 1, …; never rising."""
        step, tails = self.rest.law.blurred_tails
        return step, np.minimum.accumulate(tails) / 2


def _with_draw(values: Floats, masses: Floats, *, factor: float, noise: Distribution) -> tuple[Floats, Floats] | None:
    """The values of D and one more draw, without rare ones; None where they would be too many."""
    reach = int(noise.reach(RARE))
    if len(values) * (2 * reach + 1) > MOST_PRODUCTS:
        return None
    places = np.arange(-reach, reach + 1)
    chances = np.array([math.exp(noise.log_likelihood(float(place))) for place in places])
    sums, products = np.add.outer(values, factor * places).reshape(-1), np.multiply.outer(masses, chances).reshape(-1)
    kept = products > RARE
    return (sums[kept], products[kept]) if int(kept.sum()) <= MOST_VALUES else None


MOST_LAWS = 24  # At most so many laws are worked out for one table.
MEMBERS = 3  # Numbers with one standard error are looked at: the first, one in the middle, the last.
SAME = 1e-9  # Standard errors are the same up to this share.
BY_LAWS = "by the exact law of the noise, worked out once for numbers with the same standard error"
BY_RATIO = (
    "by the exact law of the noise of some numbers; for others the largest ratio of half-width and standard error "
    "among these"
)
Law = Callable[[int], tuple[Draws, ...]]  # of the error of one number of a table


def half_widths(errors: Floats, law: Law, tails: Sequence[float], *, most: int = MOST_LAWS) -> tuple[list[Floats], str]:
    """Half of the length of each number's interval, at each tail, and how it was found.

    Numbers with the same standard error mostly have errors of one law: the widest of a few of them is taken for all.
    Of more standard errors than `most`, some are worked out, and the largest ratio found holds for the others. Infinite
    where a law has no end.
    """
    spreads, of = _alike(errors)
    chosen = np.unique(np.linspace(0, len(spreads) - 1, max(1, most)).astype(np.intp))
    members = MEMBERS if len(spreads) * MEMBERS <= most else 1
    found = np.full((len(tails), len(spreads)), np.nan)
    for place in chosen:
        alike = np.flatnonzero(of == place)
        looked_at = {int(alike[i]) for i in np.linspace(0, len(alike) - 1, members).astype(np.intp)}
        found[:, place] = 0.0 if spreads[place] == 0 else np.max([outward(law(i), tails) for i in looked_at], axis=0)
    if len(chosen) < len(spreads):
        known = chosen[spreads[chosen] > 0]
        ratios = np.max(found[:, known] / spreads[known], axis=1)
        found = np.where(np.isnan(found), ratios[:, None] * spreads, found)
    return [each[of] for each in found], BY_LAWS if len(chosen) == len(spreads) else BY_RATIO


def outward(draws: tuple[Draws, ...], tails: Sequence[float]) -> list[float]:
    """How far the sum of some draws goes, at each tail; bounds are moved outward as those of a single number are."""
    return [_outward(reach) for reach in reaches_of_draws(draws, tuple(tails))]


def _outward(reach: Reach | None) -> float:
    if reach is None:
        return math.inf
    if reach.step is None:
        return reach.distance
    if reach.step == round(reach.step):
        return float(round(reach.distance))  # whole ones stay whole
    return reach.distance + ROUNDING * reach.step


def _alike(errors: Floats) -> tuple[Floats, Integers]:
    """The different standard errors, rising, and which of them each number has."""
    order = np.argsort(errors, kind="stable")
    rising = errors[order]
    starts = np.concatenate([[True], np.diff(rising) > SAME * np.maximum(rising[1:], np.finfo(float).tiny)])
    of = np.empty(len(errors), dtype=np.int64)
    of[order] = np.cumsum(starts) - 1
    return rising[starts], of
