"""Whether exact noise keeps the bound that is promised of it: TPR ≤ e^ε·FPR + δ, over draws of the mechanism.

Every comparison is judged by intervals that hold for all of them at once: of as many comparisons as there are here,
some would else exceed the bound by chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dualmandate.audit.claims.checks import OperatingPoint
from dualmandate.audit.claims.membership import frequency_attack, neighbor_sums
from dualmandate.audit.claims.own_noise import Law, audit_noise, log_weights
from dualmandate.errors import InvalidRequest
from dualmandate.population.loss import epsilon_at, rho_at

LAWS: tuple[Law, ...] = ("laplace", "gaussian")
EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
DRAWS = 20_000  # So many draws are made with the person, and as many without.
ATTRIBUTES = (1, 20)  # How many sums are published; one record changes all of them.
MEMBERS = 100
FAILURE_PROBABILITY = 1e-6  # The δ of Gaussian noise.
MORE_PROBABILITIES = (1e-3, 1e-2, 0.05, 0.1)  # At these δ its ρ says an ε too.
KEY = b"draws of a bound trial"


@dataclass(frozen=True)
class BoundComparison:
    """One test at one threshold, beside what a claim (ε, δ) allows of it."""

    law: Law
    attributes: int
    epsilon: float  # that the mechanism is made for
    claimed: tuple[float, float]  # (ε, δ) that it is compared with
    test: str
    point: OperatingPoint


@dataclass(frozen=True)
class BoundTrial:
    """What came out of all comparisons; `level` is the probability with which all their intervals hold together."""

    comparisons: tuple[BoundComparison, ...]
    draws: int  # of the mechanism for each kind of noise, each ε and each number of sums
    level: float

    @property
    def single_level(self) -> float:
        """The level of each interval, by Bonferroni: each comparison has two directions of two rates, one-sided."""
        return 1 - 2 * (1 - self.level) / (4 * len(self.comparisons))

    @property
    def exceedances(self) -> tuple[BoundComparison, ...]:
        """The comparisons in which the bound is certainly exceeded."""
        return tuple(each for each in self.comparisons if self.share(each) > 1)

    @property
    def closest(self) -> float:
        """The largest share of its bound that any test certainly reached; above 1 a bound is broken."""
        return max(self.share(each) for each in self.comparisons)

    def share(self, comparison: BoundComparison) -> float:
        """The share of the bound that a test certainly reached."""
        return comparison.point.share_of_bound(*comparison.claimed, level=self.single_level)


def bound_trial(
    laws: Sequence[Law] = LAWS,
    epsilons: Sequence[float] = EPSILONS,
    *,
    draws: int = DRAWS,
    level: float = 0.999,
    noise_share: float = 1.0,
    key: bytes = KEY,
) -> BoundTrial:
    """Look for a member in noisy sums by every test, with each kind of exact noise at each ε, and count exceedances.

    `draws` mechanism draws are made with the member and as many with its farthest neighbor in its place, for each kind
    of noise, each ε, and each number of sums. A mechanism with a part of its noise (`noise_share` = 1/2) breaks its
    claim, and is found out. `len(bound_trial().exceedances)` is 0 for true noise, and `closest` says how near it came.
    """
    if draws < 2 or not 0 < level < 1 or not 0 < noise_share <= 1:
        raise InvalidRequest(
            f"{draws} draws at a level of {level:g}, with {noise_share:g} of the noise",
            why="thresholds are set on half of the draws, and both others are shares",
            instead="state more draws, a level below 1 and a share of at most 1",
        )
    found: list[BoundComparison] = []
    for law in laws:
        for epsilon in epsilons:
            for attributes in ATTRIBUTES:
                found += _compared(law, epsilon, attributes, draws=draws, share=noise_share, key=key)
    return BoundTrial(tuple(found), draws, level)


def _compared(
    law: Law, epsilon: float, attributes: int, *, draws: int, share: float, key: bytes
) -> Iterator[BoundComparison]:
    people = np.random.default_rng(attributes)
    population = people.uniform(0.2, 0.8, attributes)
    members = (people.random((MEMBERS, attributes)) < population).astype(np.int64)
    neighbors = neighbor_sums(members, 1 - members[0], population=population)  # every value changes
    if law == "laplace":
        parameter, claims = Fraction(attributes) / Fraction(epsilon), [(epsilon, 0.0)]
    else:
        rho = Fraction(rho_at(epsilon, FAILURE_PROBABILITY))
        parameter = attributes / (2 * rho)
        more = [(epsilon_at(rho, delta), delta) for delta in MORE_PROBABILITIES]
        claims = [(epsilon, FAILURE_PROBABILITY), *((each, delta) for each, delta in more if each > 0)]
    given = parameter * Fraction(share) ** (1 if law == "laplace" else 2)
    calls = iter(range(2))

    def noise(shape: tuple[int, int]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        purpose = f"bound trial: {law}, {epsilon}, {attributes} sums, {next(calls)}"
        return audit_noise(key, purpose, law, given, shape).astype(np.float64)

    powers = frequency_attack(neighbors, noise, draws=draws, log_pmf=log_weights(law, parameter))
    for test, points in powers.items():
        for point in points:
            for claimed in claims:
                yield BoundComparison(law, attributes, epsilon, claimed, test, point)
