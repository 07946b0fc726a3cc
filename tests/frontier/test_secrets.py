"""Secrets of groups: hand-sized cases, every output of a noisy count, every likelihood a loss allows, a frontier."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dualmandate.errors import InvalidPreferences
from dualmandate.frontier import GroupSecret, by_secret, frontier_of
from dualmandate.frontier.numerics import derivative
from dualmandate.mechanism import geometric
from dualmandate.workload import identity

CLIQUE = GroupSecret((0.1, 0.15, 0.5, 0.15, 0.1))


def test_a_clique_of_four_by_hand() -> None:
    without, with_her = CLIQUE.beliefs
    assert without == pytest.approx([0.2, 0.225, 0.5, 0.075, 0.0])
    assert with_her == pytest.approx(without[::-1])
    assert CLIQUE.wasserstein == 2
    raised = sum(p * math.e**j for j, p in enumerate(with_her))
    assert CLIQUE.loss(1.0) == pytest.approx(math.log(raised / sum(p * math.e**j for j, p in enumerate(without))))
    assert CLIQUE.loss(1.0) == pytest.approx(1.168185, abs=1e-6)  # ln 19.3373/6.0125


def test_members_who_are_independent_or_alike() -> None:
    independent = GroupSecret(tuple(math.comb(5, j) * 0.3**j * 0.7 ** (5 - j) for j in range(6)))
    assert independent.loss(0.7) == pytest.approx(0.7)
    assert independent.wasserstein == 1
    alike = GroupSecret((0.4, 0.0, 0.0, 0.6))
    assert alike.loss(0.7) == pytest.approx(3 * 0.7)
    assert alike.wasserstein == 3
    pair = GroupSecret((0.5, 0.2, 0.3))
    stays, enters = 0.6 / 0.8, 0.2 / 1.2  # chance that the other is counted, too and if she is not
    up, down = math.e**0.7, math.e**-0.7
    rising = up * (1 - stays + stays * up) / (1 - enters + enters * up)
    falling = (1 - enters + enters * down) / (down * (1 - stays + stays * down))
    assert pair.loss(0.7) == pytest.approx(math.log(max(rising, falling)))


@given(st.lists(st.floats(0.01, 1.0), min_size=2, max_size=7), st.floats(0.05, 3.0), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_no_release_that_keeps_to_the_loss_tells_more(weights: list[float], eta: float, seed: int) -> None:
    """Every output of a count with discrete Laplace noise, and likelihoods that rise and fall at random."""
    secret = GroupSecret(tuple(np.array(weights) / sum(weights)))
    without, with_her = secret.beliefs
    j, most = np.arange(secret.members + 1), secret.loss(eta)
    outputs = np.arange(-2, secret.members + 3)
    likelihoods = np.exp(-eta * np.abs(outputs[:, None] - j))
    found = np.abs(np.log(likelihoods @ with_her / (likelihoods @ without)))
    assert found.max() == pytest.approx(most)
    steps = np.random.default_rng(seed).uniform(-eta, eta, size=(200, secret.members))
    likelihoods = np.exp(np.concatenate([np.zeros((200, 1)), np.cumsum(steps, axis=1)], axis=1))
    assert np.abs(np.log(likelihoods @ with_her / (likelihoods @ without))).max() <= most * (1 + 1e-12)
    assert most <= secret.wasserstein * eta * (1 + 1e-12)
    assert secret.record_loss(most) == pytest.approx(eta)
    assert secret.slope(eta) == pytest.approx(derivative(secret.loss, eta), rel=1e-5)


def test_members_of_whom_one_speaks_against_the_other_lose_less() -> None:
    either = GroupSecret((0.05, 0.9, 0.05))
    assert either.loss(1.0) < 1.0
    assert either.record_loss(either.loss(1.0)) == pytest.approx(1.0)


def test_the_frontier_of_a_secret() -> None:
    records = frontier_of(geometric(), identity(10))
    secret = by_secret(records, CLIQUE, steps=2)
    loss = CLIQUE.loss(2 * 0.4)
    assert secret.accuracy(loss) == pytest.approx(records.accuracy(0.4))
    assert secret.accuracy(0.8) < records.accuracy(0.4)  # as much accuracy costs the secret more than one record
    table = records.tables[0]
    slope = derivative(lambda at: secret.table_errors(at)[table], loss)
    assert secret.table_slopes(loss)[table] == pytest.approx(slope, rel=1e-6)
    assert secret.allocation(loss) == pytest.approx({"all": 0.4})
    assert secret.technology(loss) == records.technology(0.4)
    assert all(low < high for low, high in pairwise(secret.accuracy(at) for at in (0.1, 0.5, 2.0, 5.0)))


@pytest.mark.parametrize("shares", [(1.0,), (0.5, 0.4), (1.0, 0.0), (0.0, 1.0), (0.0, 1.0, 0.0), (-0.5, 1.5)])
def test_refusals(shares: tuple[float, ...]) -> None:
    with pytest.raises(InvalidPreferences):
        GroupSecret(shares)
