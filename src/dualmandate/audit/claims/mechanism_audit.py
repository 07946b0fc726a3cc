"""Any mechanism as a black box: whether its draws on two neighboring data sets keep what is claimed of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.checks import finest_digit, last_bits, least_loss
from dualmandate.audit.effort import generator
from dualmandate.audit.equations import Floats
from dualmandate.audit.finding import Baseline, Finding, Range, Rate
from dualmandate.errors import InvalidRequest
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.loss import epsilon_at

Data = TypeVar("Data")
Data_contra = TypeVar("Data_contra", contravariant=True)
DRAWS = 20_000
LEVEL = 1 - 1e-6  # Of what is said to be above a claim: an honest mechanism is accused once in a million audits.
FAILURE_PROBABILITY = 1e-6  # A ρ is compared as an ε at this δ.
EQUAL = 1e-9  # Differences within this share of the spread of outputs are the same.
CLAIMED = "what the claim allows"
KEY = b"draws of a mechanism that is audited"


class BlackBox(Protocol[Data_contra]):
    """What is audited: data in, one number or several out. One that has randomness of its own ignores the generator."""

    def __call__(self, data: Data_contra, generator: np.random.Generator, /) -> Any:
        """One draw."""
        ...


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
    make = partial(
        Finding,
        attack="audit of a mechanism",
        attacker_knows="both data sets, and the mechanism",
        coarsening="outputs as they are given",
        reference="draws",
    )
    return tuple(_findings(name, sides[0], sides[1], claimed, make))


def _findings(
    name: str, one: NDArray[Any], other: NDArray[Any], claimed: PrivacyLoss, make: Callable[..., Finding]
) -> Iterator[Finding]:
    fine = int(last_bits(one).sum() + last_bits(other).sum())
    yield make(
        claim=f"outputs of {name} that use the last bits of a float, 2⁻⁵³ of their size"
        + (": these TELL which data were used" if fine else ""),
        success=Rate(fine, one.size + other.size),
        baselines=(Baseline("noise on a grid", Rate(0, one.size + other.size)),),
        counted_in_full=True,
    )
    epsilon, delta = meaning(claimed)
    found = max(
        least_loss(*scores, failure_probability=delta, level=1 - (1 - LEVEL) / 3) for scores in _scores(one, other)
    )
    at = f" at δ = {delta:g}" if delta else ""
    yield make(
        claim=f"loss that {name} has at least, by {len(one):,} draws on each of two neighbors, at a level of 1 − 10⁻⁶;"
        f" {'ABOVE' if found > epsilon else 'not above'} the claimed ε = {epsilon:.4g}{at}",
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
