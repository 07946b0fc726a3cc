"""Whether a mechanism is what it claims: exact where its distribution is known, by tests on its draws where it is not.

A test finds faults or does not find them; it never proves that there are none. Any mechanism can be audited as a black
box, by its draws on two neighboring data sets. Noise for audits is drawn as releases draw it, from the audit's own key.

Whoever has two releases that share noise has the exact difference of what they counted. Where noise is independent,
symmetric and falls off on both sides, a row of one release equals the same row of another with probability Σ p_k·q_k at
most, whatever was counted: that is its largest difference in probability. And squared differences are at least as large
as those of the noise alone, in distribution [And55], so that their sum is hardly ever much below its mean:
P(S ≤ E − t) ≤ exp(−t²/(2·Σ E d⁴)) [Mau03]. Both bounds hold for any two files.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.finding import CLAIMED, Baseline, Finding, Range, Rate, proved_share
from dualmandate.audit.options import generator
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism import DiscreteGaussian, Geometric
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, NoiseKey, Sampler
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.loss import epsilon_at
from dualmandate.population.wording import told_loss
from dualmandate.semantics import largest_power

TIE = 1e-9  # Equal ratios are put in an order by this much of a projection.
_FEW = (0.0005, 0.001, 0.003, 0.01, 0.03)
_QUANTILES = (*_FEW, *(tenth / 10 for tenth in range(1, 10)), *(1 - each for each in reversed(_FEW)))
ROUNDING = 8 * 2.0**-52  # A logarithm computed in floats may be off by this share of itself.
Data = TypeVar("Data")
Data_contra = TypeVar("Data_contra", contravariant=True)
DRAWS = 20_000
LEVEL = 1 - 1e-6  # Of what is said to be above a claim: an honest mechanism is accused once in a million audits.
FAILURE_PROBABILITY = 1e-6  # A ρ is compared as an ε at this δ.
EQUAL = 1e-9  # Differences within this share of the spread of outputs are the same.
KEY = b"draws of a mechanism that is audited"
DECIMAL_DIGITS = 12  # A number with no more lies on a decimal grid; of computed floats, one in a thousand does.


@dataclass(frozen=True)
class ClaimCheck:
    """What one check of a claim found."""

    check: str
    broken: bool
    words: str


@dataclass(frozen=True)
class OperatingPoint:
    """One threshold of a test of membership, over draws of noise: its false-positive and its true-positive rate."""

    false_positive_rate: Rate
    true_positive_rate: Rate

    def exceeds(self, epsilon: float, failure_probability: float = 0.0, *, level: float = 0.999) -> bool:
        """Whether the bound e^ε·FPR + δ is certainly exceeded, even at the unlikely ends of all intervals.

        The bound holds in both directions: true positives and true negatives. At most 2·(1 − level) of such
        words about a mechanism that keeps its bound are wrong: two rates, each outside of its interval on one side.
        """
        return self.share_of_bound(epsilon, failure_probability, level=level) > 1.0

    def allowed(self, epsilon: float, failure_probability: float = 0.0) -> float:
        """The most that the claim allows at the observed false-positive rate, by the bounds of both directions."""
        return largest_power(self.false_positive_rate.value, epsilon, failure_probability)

    def share_of_bound(self, epsilon: float, failure_probability: float = 0.0, *, level: float = 0.999) -> float:
        """The largest share of the bound that is certainly reached, over both directions; above 1 breaks it."""
        times = math.exp(min(epsilon, 700.0))
        shares = [0.0]
        for more, less in self._directions:
            bound = min(times * less.interval(level)[1] + failure_probability, 1.0)
            shares.append(more.interval(level)[0] / bound)
        return max(shares)

    def epsilon_at_least(self, failure_probability: float = 0.0, *, level: float = 0.95) -> float:
        """A loss that the mechanism has at least, at this confidence: ln((power − δ)/false), both at their bad ends.

        Both directions of the test count: true positives and true negatives.
        """
        half = 1 - (1 - level) / 2  # two intervals, each missing with half of the probability
        found = 0.0
        for more, less in self._directions:
            least, most = more.interval(half)[0], less.interval(half)[1]
            if least > failure_probability and most > 0:
                found = max(found, math.log((least - failure_probability) / most))
        return found

    @property
    def _directions(self) -> tuple[tuple[Rate, Rate], tuple[Rate, Rate]]:
        rates = self.true_positive_rate, self.false_positive_rate
        missed, spared = (Rate(each.trials - each.successes, each.trials) for each in rates)
        return rates, (spared, missed)


def pmf_ratio(log_pmf: Callable[[int], float], *, shift: int, epsilon: float, reach: int) -> ClaimCheck:
    """The largest log ratio of the probabilities of one output under two answers `shift` apart, against the claim.

    `log_pmf(k)` is the logarithm of the noise's probability of k; outputs to `reach` on both sides are compared.
    """
    largest, where, rounding = -math.inf, 0, ROUNDING * epsilon
    for output in range(-reach, reach + 1):
        one, other = log_pmf(output), log_pmf(output - shift)
        if one == -math.inf and other == -math.inf:
            continue
        ratio = math.inf if -math.inf in (one, other) else abs(one - other)
        if ratio > largest:
            largest, where = ratio, output
        if not math.isinf(ratio):  # of wide noise the difference is small, and its digits are those of the logarithms
            rounding = max(rounding, ROUNDING * max(abs(one), abs(other)))
    broken = largest > epsilon + rounding
    seen = "one of the two answers cannot produce" if math.isinf(largest) else f"the loss is {largest:.9g} at"
    words = f"{seen} the output {where}: {'above' if broken else 'within'} the claimed {epsilon:g}"
    return ClaimCheck("pmf ratio", broken, f"{words} (outputs −{reach:,} to {reach:,})")


def least_loss(one: Floats, other: Floats, *, failure_probability: float = 0.0, level: float = 0.95) -> float:
    """The ε (at δ) that a mechanism has at least, at a level, from draws of a score on two neighboring data sets.

    Thresholds are chosen on one half of both sides and judged on the other: ln((power − δ)/false), Clopper and
    Pearson's bad ends of both rates. The score may be anything; one that tells the two apart badly gives a small bound.
    """
    half = min(len(one), len(other)) // 2
    choosing, judging = (one[:half], other[:half]), (one[half:], other[half:])
    thresholds = np.unique(np.quantile(np.concatenate(choosing), _QUANTILES))
    judged_at = 1 - (1 - level) / 2  # either side may be the one that is accused
    best = max(thresholds, key=lambda each: _least_loss_at(each, *choosing, failure_probability, judged_at))
    return _least_loss_at(best, *judging, failure_probability, judged_at)


def _least_loss_at(threshold: float, one: Floats, other: Floats, failure_probability: float, level: float) -> float:
    rates = [Rate(int((side > threshold).sum()), len(side)) for side in (one, other)]
    points = OperatingPoint(*rates), OperatingPoint(*reversed(rates))
    return max(each.epsilon_at_least(failure_probability, level=level) for each in points)


def last_bits(values: NDArray[Any]) -> Booleans:
    """Which numbers need the last bits of a float, more than 50 of its 53; never whole numbers held as such.

    Noise on a grid needs few bits, or few decimal digits, as amounts in cents do. A float that was computed with
    rounding needs all of them, seven times of eight.
    """
    if values.dtype.kind in "biu":
        return np.zeros(values.shape, dtype=np.bool_)
    mantissa = np.abs(np.frexp(np.where(np.isfinite(values), values, 0.0))[0])
    digits = (mantissa * 2.0**53).astype(np.int64)
    fine = np.asarray((digits != 0) & (digits & 7 != 0))
    told = values[fine]
    fine[fine] = [float(f"{value:.{DECIMAL_DIGITS}g}") != value for value in told.tolist()]
    return fine


def finest_digit(values: NDArray[Any]) -> Floats:
    """The place of the last binary digit of each number after the point: 0 of whole numbers, 10 of multiples of 2⁻¹⁰.

    [Mir12]: floats near 0 have finer digits than those that were rounded next to a larger answer.
    """
    mantissa, exponent = np.frexp(values.astype(np.float64))
    digits = np.abs(mantissa * 2.0**53).astype(np.int64)
    lowest = digits & -digits
    places = 53 - exponent - np.log2(np.maximum(lowest, 1))
    return np.asarray(np.where(digits == 0, 0.0, np.maximum(places, 0.0)))


def missing_keys(published: Sequence[Iterable[Hashable]], declared: Sequence[Iterable[Hashable]]) -> ClaimCheck:
    """Whether the set of published cells depends on the data: every declared cell must appear, occupied or not.

    Cells are all combinations of the labels on each axis, so that none of them has to be written out.
    """
    shown, expected = ([set(labels) for labels in axes] for axes in (published, declared))
    both = math.prod(len(one & other) for one, other in zip(shown, expected, strict=True))
    declared_cells = math.prod(map(len, expected))
    missing, unknown = declared_cells - both, math.prod(map(len, shown)) - both
    broken = bool(missing or unknown)
    return ClaimCheck(
        "missing keys",
        broken,
        f"{missing:,} of {declared_cells:,} declared cells are not published"
        + (f", {unknown:,} published ones were not declared" if unknown else "")
        + (": which cells appear tells who is there" if broken else ""),
    )


def exact_totals(exact: Mapping[str, bool], *, add_or_remove: bool) -> ClaimCheck:
    """Whether numbers published exactly contradict the claimed neighbors, and which secrets remain protected.

    `exact` says for each exact number whether replacing one record by another, as the claimed bounded neighbors allow,
    always leaves it as it is. Adding or removing a record changes every exact count: such a release is blatantly
    non-private under that claim [DN03].
    """
    changed = sorted(exact) if add_or_remove else sorted(name for name, kept in exact.items() if not kept)
    relation = "adding or removing one record" if add_or_remove else "replacing one record"
    if not changed:
        words = f"no exact number changes by {relation}"
        return ClaimCheck("exact totals", False, f"{words}; {_bounded(exact)}" if exact else words)
    names = ", ".join(f"'{name}'" for name in changed)
    words = (
        f"{relation} changes {names}, published exactly: whoever knows all other records knows this one;"
        " blatantly non-private under the claimed neighbors"
    )
    kept = [name for name, stays in exact.items() if stays]
    if add_or_remove and len(kept) == len(exact):
        words += f"; {_bounded(exact)}"
    return ClaimCheck("exact totals", True, words)


def _bounded(exact: Mapping[str, bool]) -> str:
    """Which secrets bounded neighbors still protect beside exact numbers that they keep."""
    names = ", ".join(f"'{name}'" for name in sorted(exact))
    return (
        "under bounded (replace-one) neighbors remain protected: what a record says beyond the exact numbers; not "
        f"protected: that it is there, and whatever {names} tell of it"
    )


class BlackBox(Protocol[Data_contra]):
    """What is audited: data in, one number or several out. One that has randomness of its own ignores the generator."""

    def __call__(self, data: Data_contra, generator: np.random.Generator, /) -> Any: ...


def audit_mechanism(
    mechanism: BlackBox[Data],
    one: Data,
    other: Data,
    *,
    claimed: PrivacyLoss,
    name: str = "the mechanism",
    draws: int = DRAWS,
    key: bytes = KEY,
) -> tuple[Finding, ...]:
    """Draw a mechanism on two neighboring data sets, and look for what would break its claim.

    Three checks: floats whose last bits give the answer away, a loss that it has at least (by its values, by how far
    they lie from the middle, and by the last digits that they use), and noise that repeats. They find faults or do not
    find them; a mechanism that keeps its claim on these two data sets may break it on others.
    """
    if draws < 100:
        raise InvalidRequest(
            f"{draws} draws of a mechanism",
            why="thresholds are set on half of them and judged on the others",
            instead="draw at least 100 times; 20,000 see much more",
        )
    source = generator(key, f"mechanism: {name}")
    pairs = [(np.asarray(mechanism(one, source)), np.asarray(mechanism(other, source))) for _ in range(draws)]
    sides = tuple(np.array([pair[side].reshape(-1) for pair in pairs]) for side in (0, 1))
    if sides[0].dtype.kind not in "biuf" or sides[0].shape != sides[1].shape:
        raise InvalidRequest(
            f"{name} gives something else than numbers, or not equally many for both data sets",
            why="outputs are compared number by number",
            instead="give numbers: one, or always as many",
        )
    knows, coarsening = "both data sets, and the mechanism", "outputs as they are given"
    attack = "audit of a mechanism"
    make = partial(Finding, attack=attack, attacker_knows=knows, coarsening=coarsening, reference="draws")
    return tuple(_findings(name, sides[0], sides[1], claimed, make))


def _findings(
    name: str, one: NDArray[Any], other: NDArray[Any], claimed: PrivacyLoss, make: Callable[..., Finding]
) -> Iterator[Finding]:
    fine = int(last_bits(one).sum() + last_bits(other).sum())
    claim = f"outputs of {name} that use the last bits of a float, 2⁻⁵³ of their size"
    claim += ": these TELL which data were used" if fine else ""
    yield proved_share(make, claim, fine, one.size + other.size, beside="noise on a grid")
    epsilon, delta = meaning(claimed)
    found = max(
        least_loss(*scores, failure_probability=delta, level=1 - (1 - LEVEL) / 3) for scores in _scores(one, other)
    )
    at = f" at δ = {delta:g}" if delta else ""
    yield make(
        claim=f"loss that {name} has at least, by {len(one):,} draws on each of two neighbors, at a level of 1 − 10⁻⁶;"
        f" {'ABOVE' if found > epsilon else 'not above'} the claimed ε = {told_loss(epsilon)}{at}",
        success=Range(found, found, "epsilon"),
        baselines=(Baseline(CLAIMED, Range(0.0, epsilon, "epsilon")),),
    )
    yield _repeats(name, one.astype(np.float64), other.astype(np.float64), make)


def meaning(claimed: PrivacyLoss) -> tuple[float, float]:
    """A claim as (ε, δ): a ρ by the tight conversion at δ = 10⁻⁶."""
    if claimed.privacy_measure is PrivacyMeasure.ZCDP:
        return epsilon_at(claimed.amount, FAILURE_PROBABILITY), FAILURE_PROBABILITY
    return float(claimed), float(claimed.failure_probability)


def _scores(one: NDArray[Any], other: NDArray[Any]) -> Iterator[tuple[Floats, Floats]]:
    """Three ways to tell two data sets apart. Directions come from the half of the draws that choose thresholds."""
    half = len(one) // 2
    means = [side[:half].astype(np.float64).mean(axis=0) for side in (one, other)]
    toward = means[1] - means[0]
    if not toward.any():
        toward = np.ones_like(toward)
    along = [side.astype(np.float64) @ toward for side in (one, other)]
    yield along[0], along[1]
    middle = float((means[0] + means[1]) @ toward) / 2
    yield np.abs(along[0] - middle), np.abs(along[1] - middle)
    yield finest_digit(one).max(axis=1), finest_digit(other).max(axis=1)


def _repeats(name: str, one: Floats, other: Floats, make: Callable[..., Finding]) -> Finding:
    """How often two calls differ by the same as the two before: shared noise cancels, and leaves the exact answer."""
    tolerance = EQUAL * max(float(np.ptp(one, axis=0).max()), 1.0)

    def repeated(first: Floats, second: Floats) -> Rate:
        apart, whole = second - first, len(first) // 2 * 2
        close = np.abs(apart[1:whole:2] - apart[:whole:2]) <= tolerance  # every call in one pair alone
        same = np.asarray(close.all(axis=1))
        return Rate(int(same.sum()), len(same))

    half = len(one) // 2
    paired, crossed = repeated(one, other), repeated(one[:half], other[half : 2 * half])
    noiseless = paired.successes == paired.trials and crossed.successes == crossed.trials
    shared = noiseless or paired.interval(LEVEL)[0] > crossed.interval(LEVEL)[1]
    words = " (NOISE REPEATS: there is none, or its seed is fixed)" if noiseless else " (NOISE REPEATS)"
    return make(
        claim=f"pairs of calls of {name} whose outputs differ by the same as the pair before"
        + (words if shared else ""),
        success=paired,
        baselines=(Baseline("calls that are far apart", crossed),),
    )


SUSPICIOUS = 1e-6  # Two releases are said to share noise where the chance is below this.
FEWEST = 8  # At least this many numbers are compared.
Law = Literal["laplace", "gaussian"]
LogPmf = Callable[[Floats, NDArray[np.intp]], Floats]  # of noise in some columns, up to a constant; (draws, columns)


@dataclass(frozen=True)
class RowNoise:
    """The exact noise of a row: discrete Laplace with its scale, or discrete Gaussian with its σ²."""

    law: Law
    parameter: Fraction

    @property
    def largest(self) -> float:
        """The probability of 0, the largest of all."""
        return math.exp(self._distribution.log_likelihood(0.0))

    @property
    def variance(self) -> float:
        return self._distribution.variance

    @property
    def fourth_moment(self) -> float:
        """E k⁴, from above."""
        if self.law == "laplace":
            q = math.exp(-1 / float(self.parameter))
            return 2 * q * (1 + 11 * q + 11 * q**2 + q**3) / ((-math.expm1(math.log(q))) ** 4 * (1 + q))
        return 3 * float(self.parameter) ** 2 + float(self.parameter)  # 3σ⁴, and more where σ is small

    @property
    def _distribution(self) -> Geometric | DiscreteGaussian:
        rate = float(1 / self.parameter)
        return Geometric(rate) if self.law == "laplace" else DiscreteGaussian(rate / 2)


def coincidence(one: RowNoise, other: RowNoise) -> float:
    """The probability Σ p_k·q_k that two independent draws are equal; of two laws, at most.

    Both are weights e^(−f(k)/parameter), and the product of two is one with 1/parameter added up.
    """
    if one.law != other.law:
        return min(one.largest, other.largest)
    both = RowNoise(one.law, 1 / (1 / one.parameter + 1 / other.parameter))
    return one.largest * other.largest / both.largest


@dataclass(frozen=True)
class SharedNoise:
    """Rows of two releases that count the same: how many are equal, how many independent noise lets one expect."""

    equal: int
    rows: int
    expected: float  # at most, on average
    chance: float  # of so many equal rows, or of differences so small, at most

    @property
    def check(self) -> ClaimCheck:
        broken = self.chance < SUSPICIOUS
        chance = f"{self.chance:.2g}" if self.chance > 1e-300 else "less than 1e-300"
        return ClaimCheck(
            "seed reuse",
            broken,
            f"{self.equal:,} of {self.rows:,} rows are equal, of independent noise {self.expected:,.3g} at most"
            f" on average; the chance of this, or of differences as small, is {chance} at most"
            + (": the two releases SHARE NOISE, and their difference is exposed" if broken else ""),
        )


def shared_noise(
    first: Integers, second: Integers, *, noises: tuple[tuple[RowNoise, RowNoise], ...], kinds: Integers
) -> SharedNoise:
    """Compare rows that count the same in two releases; `kinds` says of each row which pair of `noises` it has."""
    if first.shape != second.shape or first.shape != kinds.shape or first.size < FEWEST:
        raise InvalidRequest(
            f"two releases that do not hold the same numbers, or fewer than {FEWEST}",
            why="noise is compared number by number",
            instead="give the same rows of both releases",
        )
    from scipy.stats import binom

    used = np.unique(kinds)
    chances = np.zeros(len(noises))
    moments = np.zeros((len(noises), 2))
    for kind in used:
        one, other = noises[int(kind)]
        chances[kind] = coincidence(one, other)
        fourth = one.fourth_moment + other.fourth_moment + 6 * one.variance * other.variance
        moments[kind] = one.variance + other.variance, fourth
    apart = first - second
    equal, rows = int((apart == 0).sum()), len(first)
    by_count = float(binom.sf(equal - 1, rows, float(chances[used].max())))
    mean, fourth = moments[kinds].sum(axis=0)
    missing = max(float(mean) - float(np.square(apart, dtype=np.float64).sum()), 0.0)
    by_size = math.exp(-(missing**2) / (2 * float(fourth)))
    return SharedNoise(equal, rows, float(chances[kinds].sum()), min(1.0, 2 * min(by_count, by_size)))


def audit_noise(key: bytes, purpose: str, law: Law, parameter: Fraction, shape: tuple[int, ...]) -> Integers:
    """Discrete noise for one purpose of an audit; `parameter` is the scale of Laplace or the σ² of Gaussian noise.

    Equal for an equal key and purpose. The key is the audit's own: no release draws from it.
    """
    sampler = LaplaceSampler(parameter) if law == "laplace" else GaussianSampler(parameter)
    return drawn_from(sampler, key, purpose, shape)


def drawn_from(sampler: Sampler, key: bytes, purpose: str, shape: tuple[int, ...]) -> Integers:
    """The same of any exact noise."""
    own = NoiseKey(hashlib.blake2b(f"noise: {purpose}".encode(), key=key[:64], digest_size=32).digest())
    return sampler.draw(own, range(int(np.prod(shape)))).reshape(shape)


def own_law(word: str) -> Law | None:
    """The law that a release names, where the audit has arithmetic of its own for it."""
    return "laplace" if word == "laplace" else "gaussian" if word == "gaussian" else None


def log_weights(law: Law, parameters: Fraction | Floats) -> LogPmf:
    """The logarithm of the probability of noise, up to a constant that cancels in ratios.

    `parameters` is one for all columns, or one a column.
    """
    power = 1 if law == "laplace" else 2
    scales = np.atleast_1d(np.asarray(parameters, dtype=np.float64)) * power

    def logarithms(noise: Floats, columns: NDArray[np.intp]) -> Floats:
        return np.asarray(np.abs(noise) ** power / -(scales[columns] if len(scales) > 1 else scales))

    return logarithms
