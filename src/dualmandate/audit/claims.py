"""Whether a mechanism is what it claims: exact where its distribution is known, by tests on its draws where it is not.

A test finds faults or does not find them; it never proves that there are none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.membership import power_curve
from dualmandate.errors import InvalidRequest

Floats = NDArray[np.float64]
NEGLIGIBLE = 1e-12  # relative, of logarithms computed in floats


@dataclass(frozen=True)
class ClaimCheck:
    """What one check of a claim found."""

    check: str
    broken: bool
    words: str


def pmf_ratio(log_pmf: Callable[[int], float], *, shift: int, epsilon: float, reach: int) -> ClaimCheck:
    """The largest log ratio of the probabilities of one output under two answers `shift` apart, against the claim.

    `log_pmf(k)` is the logarithm of the noise's probability of k; outputs to `reach` on both sides are compared.
    """
    largest, where = -math.inf, 0
    for output in range(-reach, reach + 1):
        one, other = log_pmf(output), log_pmf(output - shift)
        if one == -math.inf and other == -math.inf:
            continue
        ratio = math.inf if -math.inf in (one, other) else abs(one - other)
        if ratio > largest:
            largest, where = ratio, output
    broken = largest > epsilon * (1 + NEGLIGIBLE)
    seen = "one of the two answers cannot produce" if math.isinf(largest) else f"the loss is {largest:.9g} at"
    return ClaimCheck(
        "pmf ratio",
        broken,
        f"{seen} the output {where}: {'above' if broken else 'within'} the claimed {epsilon:g}"
        f" (outputs −{reach:,} to {reach:,})",
    )


def least_loss(one: Floats, other: Floats, *, failure_probability: float = 0.0, level: float = 0.95) -> float:
    """A loss that a mechanism has at least, from draws of a score on two neighboring data sets.

    Half of each side choose the threshold, the other half judge it.
    """
    best = 0.0
    for accused, shown in ((other, one), (one, other)):
        half = len(shown) // 2
        chosen, epsilon = None, -math.inf
        for point, rate in zip(power_curve(accused, shown[:half], rates=_RATES), _RATES, strict=True):
            found = point.epsilon_at_least(failure_probability, level=level)
            if found > epsilon:
                chosen, epsilon = rate, found
        assert chosen is not None
        (judged,) = power_curve(accused, shown[half:], rates=(chosen,))
        best = max(best, judged.epsilon_at_least(failure_probability, level=1 - (1 - level) / 2))
    return best


_RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.5)


def precision_check(one: Iterable[float], other: Iterable[float]) -> ClaimCheck:
    """Whether outputs of floats give away their answer by their last bits [Mir12].

    Honest noise reaches the same set of numbers from either answer. Noise computed as a float and added to an answer
    does not: numbers that only one answer can produce then appear with positive probability. Two answers are told apart
    by the grid on which outputs lie, 2⁻⁵³ of their size: a share of one side's grid points that the other never uses.
    """
    grids = [_grid(np.asarray(list(side), dtype=np.float64)) for side in (one, other)]
    broken = grids[0] != grids[1] or any(grid is None for grid in grids)
    words = [("no common grid" if grid is None else f"multiples of {float(grid):g}") for grid in grids]
    return ClaimCheck(
        "precision",
        broken,
        f"outputs are {words[0]}"
        + ("" if words[0] == words[1] else f" and {words[1]}")
        + ("; floats that differ in their last bits tell which answer was given" if broken else ""),
    )


def _grid(values: Floats) -> Fraction | None:
    """The coarsest power of two of which all values are multiples; None where some need the last bits of a float."""
    exponent, finest = 0, 0
    for value in values[np.isfinite(values) & (values != 0)]:
        denominator = Fraction(float(value)).denominator
        finest = max(finest, denominator.bit_length() - 1)
        exponent = max(exponent, math.frexp(float(value))[1])
    return None if finest + exponent > 50 else Fraction(1, 2**finest)


def reuse_check(first: Floats, second: Floats, *, variance: float) -> ClaimCheck:
    """Whether two releases of the same numbers share their noise: their difference should have twice its variance.

    Shared noise cancels, and the difference of the confidential numbers is exposed exactly.
    """
    if first.shape != second.shape or first.size < 8:
        raise InvalidRequest(
            "two releases that do not hold the same numbers, or fewer than eight",
            why="noise is compared number by number",
            instead="give the same table of both releases",
        )
    from scipy.stats import chi2

    squares = float(((first - second) ** 2).sum())
    chance = float(chi2.cdf(squares / (2 * variance), first.size))
    broken = chance < 1e-6
    return ClaimCheck(
        "seed reuse",
        broken,
        f"squared differences are {squares / first.size:.4g} on average, of independent noise {2 * variance:.4g}"
        + (": the two releases share noise" if broken else ""),
    )


def missing_keys(published: Iterable[Hashable], declared: Iterable[Hashable]) -> ClaimCheck:
    """Whether the set of published cells depends on the data: every declared cell must appear, occupied or not."""
    shown, expected = set(published), set(declared)
    missing, unknown = expected - shown, shown - expected
    broken = bool(missing or unknown)
    return ClaimCheck(
        "missing keys",
        broken,
        f"{len(missing):,} of {len(expected):,} declared cells are not published"
        + (f", {len(unknown):,} published ones were not declared" if unknown else "")
        + (": which cells appear tells who is there" if broken else ""),
    )


def exact_totals(exact: Mapping[str, bool], *, add_or_remove: bool) -> ClaimCheck:
    """Whether numbers published exactly contradict the claimed neighbors.

    `exact` says for each exact number whether replacing one record by another always leaves it as it is (a total of all
    records does, a count of some does not). Adding or removing a record changes every exact count: such a release is
    blatantly non-private under that claim. Under replace-one neighbors with the total known, what a record says is
    still protected, that it is there is not.
    """
    changed = sorted(exact) if add_or_remove else sorted(name for name, kept in exact.items() if not kept)
    relation = "adding or removing one record" if add_or_remove else "replacing one record"
    words = (
        f"{relation} changes {', '.join(changed)}, published exactly: whoever knows all other records knows this one;"
        " blatantly non-private under the claimed neighbors"
        if changed
        else f"no exact number changes by {relation}"
    )
    if add_or_remove and changed and all(exact.values()):
        words += "; under replace-one neighbors what a record says would still be protected, not that it is there"
    return ClaimCheck("exact totals", bool(changed), words)
