"""Shares of a loss: exact, and better than their neighbors."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dualmandate.publication.consistency.estimates import (
    BudgetAllocation,
    allocate_budget,
    thousandths,
    weighted_variance,
)
from dualmandate.publication.consistency.partitions import PartitionChain, Tree

TREE = Tree((np.repeat(np.arange(1), 3), np.repeat(np.arange(3), 4)))
CHAIN = PartitionChain((np.zeros(2, dtype=np.int64), np.repeat(np.arange(2), 5)))
LEVELS = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
VALUES = {(level, k): float(4 - k) for level in (1, 2) for k in range(3)}


def test_chosen_shares_are_better_than_others() -> None:
    found = allocate_budget(TREE, CHAIN, LEVELS, VALUES, known=[(0, 0)])
    chosen = np.array([float(share) for share in found.tables])
    least = weighted_variance(TREE, CHAIN, LEVELS, chosen, VALUES, [(0, 0)])
    for step in permutations((0.02, -0.02, 0.0)):
        assert least < weighted_variance(TREE, CHAIN, LEVELS, chosen + np.array(step), VALUES, [(0, 0)])


def test_one_number_measured_four_times() -> None:
    tree, chain = Tree((np.zeros(1, dtype=np.int64),)), PartitionChain((np.zeros(1, dtype=np.int64),))
    lone = weighted_variance(tree, chain, (Fraction(1, 2), Fraction(1, 2)), np.array([0.5, 0.5]), {(1, 1): 1.0})
    # four measurements of one number, each with variance 1/(½·½): their mean has a variance of 1, times the level's ½
    assert lone == pytest.approx(0.5)


def test_all_that_is_measured_adds_up_to_the_loss() -> None:
    sharing = BudgetAllocation(LEVELS, thousandths(np.array([0.2, 0.3, 0.5])), frozenset({(0, 0)}))
    shares = sharing.shares()
    assert sum(shares.values()) == 1
    assert (0, 0) not in shares
    assert shares[0, 1] == Fraction(1, 2) * Fraction(3, 8)
    assert shares[1, 0] == Fraction(1, 4) * Fraction(1, 5)


@pytest.mark.parametrize(
    "shares", [[1 / 3, 1 / 3, 1 / 3], [0.9996, 0.0002, 0.0002], [0.25, 0.25, 0.5], [0.1234, 0.5432, 0.3334]]
)
def test_rounded_shares_sum_to_one(shares: list[float]) -> None:
    found = thousandths(np.array(shares))
    assert sum(found) == 1
    assert min(found) >= Fraction(1, 1000)
    assert [float(share) for share in found] == pytest.approx(shares, abs=0.002)
