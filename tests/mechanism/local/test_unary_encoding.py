"""Unary encoding: bits by hand, every report, the published variance, and where it beats randomized response."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import RandomizedResponse, UnaryEncoding
from dualmandate.mechanism.local.unary_encoding import OWN, other_probability
from dualmandate.population import Neighbors, Protection
from dualmandate.workload import identity, prefix, stack, total

REPLACE_ONE = Protection(neighbors=Neighbors.REPLACE_ONE)


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_no_report_tells_two_levels_apart_by_more_than_the_loss(epsilon: float) -> None:
    """Every row of four bits, and every two levels."""
    q, reached = other_probability(epsilon), 0.0
    for bits in product((0, 1), repeat=4):
        chances = []
        for level in range(4):
            ones = [OWN if place == level else q for place in range(4)]
            chances.append(math.prod(p if bit else 1 - p for p, bit in zip(ones, bits, strict=True)))
        reached = max(reached, math.log(max(chances) / min(chances)))
    assert reached == pytest.approx(epsilon, rel=1e-12)


@given(levels=st.integers(2, 6), epsilon=st.floats(0.05, 6), seed=st.integers(0, 2**20))
@settings(max_examples=40, deadline=None)
def test_the_error_from_first_principles(levels: int, epsilon: float, seed: int) -> None:
    """Each bit is a coin with known chances; what is known of their sum, N, is taken off."""
    people = np.random.default_rng(seed).integers(0, 9, levels) + 1
    shares, size = people / people.sum(), int(people.sum())
    q = other_probability(epsilon)
    bits = (people * OWN * (1 - OWN) + (size - people) * q * (1 - q)) / (OWN - q) ** 2
    centered = np.eye(levels) - 1 / levels
    workload = stack(identity(levels), prefix(levels), total(levels))
    production = UnaryEncoding(size, levels, tuple(shares.tolist())).production(workload, REPLACE_ONE)
    expected = np.diag(centered @ np.diag(bits) @ centered)
    assert production.query_variances("identity", epsilon) == pytest.approx(expected, rel=1e-9)
    sums = np.tril(np.ones((levels, levels))) @ centered
    assert production.query_variances("prefix", epsilon) == pytest.approx(
        np.diag(sums @ np.diag(bits) @ sums.T), rel=1e-9, abs=1e-9
    )
    assert production.query_variances("total", epsilon) == pytest.approx([0], abs=1e-9)


@pytest.mark.parametrize(("epsilon", "levels"), [(0.5, 300), (1.0, 40), (2.0, 900)])
def test_the_published_variance_of_a_rare_level_among_many(epsilon: float, levels: int) -> None:
    """[WBLJ17] has N·4e^ε/(e^ε − 1)² for a level that nobody has, before what N tells is taken off: a part of 1/k."""
    people = 10_000
    found = UnaryEncoding(people, levels, (1.0, *(0.0,) * (levels - 1)))
    variance = found.production(identity(levels), REPLACE_ONE).query_variances("identity", epsilon)[-1]
    published = people * 4 * math.exp(epsilon) / math.expm1(epsilon) ** 2
    assert published * (1 - 1.01 / levels) <= variance <= published * (1 + 1 / levels)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_it_errs_less_than_randomized_response_from_about_3_exp_epsilon_plus_2_levels_on(epsilon: float) -> None:
    turn = 3 * math.exp(epsilon) + 2

    def better(levels: int) -> bool:
        rare = (1.0, *(0.0,) * (levels - 1))
        one = UnaryEncoding(1000, levels, rare).production(identity(levels), REPLACE_ONE)
        other = RandomizedResponse.categories(1000, levels, sensitive_shares=rare).production(identity(levels))
        return bool(one.query_variances("identity", epsilon)[-1] < other.query_variances("identity", epsilon)[-1])

    assert not better(math.floor(turn) - 3)
    assert better(math.ceil(turn) + 1)


def test_absolute_errors_are_exact() -> None:
    """Two levels, all people in one: the difference of two binomials."""
    people, epsilon = 25, 1.1
    production = UnaryEncoding(people, 2, (1.0, 0.0)).production(identity(2), REPLACE_ONE)
    q = other_probability(epsilon)
    own, other = (binom.pmf(np.arange(people + 1), people, share) for share in (OWN, q))
    differences = np.subtract.outer(np.arange(people + 1) - people * OWN, np.arange(people + 1) - people * q)
    exact = float((np.abs(differences) * np.outer(own, other)).sum()) / (OWN - q) / 2
    assert production.table_errors(epsilon, "absolute")["identity"] == pytest.approx(2 * exact, rel=1e-6)
    widths = production.half_width("identity", epsilon, 0.9)
    outside = np.abs(differences) / (OWN - q) / 2 > widths[0]
    assert float((np.outer(own, other) * outside).sum()) <= 0.1


def test_unknown_shares_give_the_worst_case() -> None:
    workload = stack(identity(4), prefix(4))
    unknown = UnaryEncoding(100, 4).production(workload, REPLACE_ONE).query_variances("prefix", 1.0)
    known = [
        UnaryEncoding(100, 4, tuple(float(place == level) for place in range(4)))
        .production(workload, REPLACE_ONE)
        .query_variances("prefix", 1.0)
        for level in range(4)
    ]
    assert unknown == pytest.approx(np.max(known, axis=0))


def test_what_is_refused() -> None:
    for bad in ((0, 3, None), (5, 1, None), (5, 3, (0.5, 0.5)), (5, 2, (0.5, 0.6)), (5, 2, (-0.5, 1.5))):
        with pytest.raises(InvalidMechanism, match="unary encoding"):
            UnaryEncoding(*bad)
    with pytest.raises(InvalidMechanism, match="add-or-remove"):
        UnaryEncoding(5, 3).production(identity(3), Protection())
    with pytest.raises(InvalidMechanism, match="3 levels for 4 cells"):
        UnaryEncoding(5, 3).production(identity(4), REPLACE_ONE)
