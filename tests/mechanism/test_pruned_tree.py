"""A partition drawn exactly: costs that a record moves by 1, its law enumerated, its loss, and its draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from dualmandate.mechanism import simulation_keys
from dualmandate.mechanism.noise.laws import precision
from dualmandate.mechanism.pruned_tree import NodeCosts, PrunedTree, Span, least_cost, unevenness

SPLITS, TAKEN_OUT = Fraction(1, 3), Fraction(1, 10)
COUNTS = (3, 0, 1, 7)
# Each way to cut, as choices from the root downwards, gives where parts begin.
Partition = tuple[int, ...]


def around_median(counts: np.ndarray) -> int:
    return int(np.abs(counts - np.sort(counts)[len(counts) // 2]).sum()) if len(counts) else 0


def law(counts: tuple[int, ...], rate: float) -> dict[Partition, float]:
    """P of each partition by its formula, over all choices at all nodes that are reached."""
    values = np.array(counts)

    def weight(start: int, stop: int) -> float:
        return math.exp(-rate * around_median(values[start:stop]))

    @lru_cache
    def ways(start: int, stop: int) -> tuple[tuple[Partition, float], ...]:
        size, middle = stop - start, (start + stop) // 2
        if size == 1:
            return (((start,), 1.0),)
        out = float(TAKEN_OUT) if size >= 3 else 0.0
        whole: Partition = (start,)
        found = [(whole, (1 - float(SPLITS) - out) * weight(start, stop))]
        for left, one in ways(start, middle):
            found += [(left + right, float(SPLITS) * one * other) for right, other in ways(middle, stop)]
        for cell in range(start, stop) if out else ():
            begun = tuple(sorted({start, cell, cell + 1} - {stop}))
            found.append((begun, out / size * weight(start, cell) * weight(cell + 1, stop)))
        return tuple(found)

    sums: dict[Partition, float] = {}
    for partition, each in ways(0, len(counts)):
        sums[partition] = sums.get(partition, 0.0) + each
    total = sum(sums.values())
    return {partition: each / total for partition, each in sums.items()}


def tree(counts: tuple[int, ...], rate: Fraction) -> PrunedTree:
    return PrunedTree(unevenness(np.array(counts)), rate, SPLITS, TAKEN_OUT)


def test_costs_are_distances_from_a_median() -> None:
    counts = np.array([4, 0, 0, 9, 2])
    costs = unevenness(counts)
    assert next(iter(costs)) == (0, 5)
    assert costs[0, 5].whole == 2 + 2 + 2 + 7 + 0 == around_median(counts)
    expected = [around_median(counts[:cell]) + around_median(counts[cell + 1 :]) for cell in range(5)]
    assert costs[0, 5].without.tolist() == expected
    assert costs[0, 2].without.tolist() == []
    random = np.random.default_rng(5)
    for size in (1, 2, 7, 16, 33):
        values = random.poisson(3, size)
        assert all(each.whole == around_median(values[slice(*span)]) for span, each in unevenness(values).items())


def test_a_record_moves_no_cost_by_more_than_one() -> None:
    random = np.random.default_rng(8)
    for _ in range(40):
        counts = random.poisson(1.5, 9)
        more = counts.copy()
        more[random.integers(9)] += 1
        one, other = unevenness(counts), unevenness(more)
        assert max(abs(one[span].whole - other[span].whole) for span in one) <= 1
        assert max(int(np.abs(one[span].without - other[span].without).max(initial=0)) for span in one) <= 1
        assert abs(least_cost(one, 16, 7) - least_cost(other, 16, 7)) <= 16


def test_the_least_cost_is_that_of_the_best_way_to_halve() -> None:
    costs = unevenness(np.array([5, 5, 0, 0, 0, 0, 0, 9]))
    # 5 5 | 0 0 | 0 0 | 0 | 9 has nothing uneven; the whole is 5 + 5 + 9 away from its median.
    assert least_cost(costs, 1, 1) == 5
    assert least_cost(costs, 1, 100) == 119
    assert least_cost({(0, 1): NodeCosts(0, np.zeros(0, dtype=np.int64))}, 16, 3) == 3


@pytest.mark.parametrize("counts", [COUNTS, (0, 6, 0, 0, 0), (2,)])
def test_draws_have_the_probabilities_of_the_formula(counts: tuple[int, ...]) -> None:
    rate, draws = Fraction(1, 5), 3_000
    expected = law(counts, float(rate))
    found: dict[Partition, int] = dict.fromkeys(expected, 0)
    drawn = tree(counts, rate)
    for repetition in range(draws):
        found[tuple(drawn.draw(simulation_keys(1, repetition)("partition")))] += 1
    chi = sum((found[each] - draws * share) ** 2 / (draws * share) for each, share in expected.items())
    degrees = len(expected) - 1
    assert chi < degrees + 4 * math.sqrt(2 * degrees) + 1


def test_shares_are_those_of_the_formula() -> None:
    """The root stays whole with the probability of the partition into one part."""
    with precision(200):
        shares = [float(each) for each in tree(COUNTS, Fraction(1, 5)).shares((0, 4), 200)]
    assert shares[0] == pytest.approx(law(COUNTS, 0.2)[0,], rel=1e-12)
    assert shares[-1] == pytest.approx(1.0, rel=1e-12)


def test_neighbors_are_told_apart_by_no_more_than_twice_the_rate() -> None:
    """All partitions, all files of few records on four cells and all that have one more: exact loss, ε = 2·rate."""
    rate, worst = 0.4, 0.0
    random = np.random.default_rng(2)
    for counts in [tuple(random.integers(0, 6, 4).tolist()) for _ in range(60)]:
        one = law(counts, rate)
        for cell in range(4):
            other = law(tuple(np.array(counts) + np.eye(4, dtype=int)[cell]), rate)
            worst = max(worst, *(abs(math.log(one[each] / other[each])) for each in one))
    assert 1.2 * rate < worst <= 2 * rate


def test_what_is_even_stays_whole_and_what_is_not_is_cut() -> None:
    even, spiky = (5,) * 16, (0,) * 9 + (400,) + (0,) * 6

    def most_often(counts: tuple[int, ...]) -> list[int]:
        drawn = [tuple(tree(counts, Fraction(1, 8)).draw(simulation_keys(2, each)("partition"))) for each in range(40)]
        return list(Counter(drawn).most_common(1)[0][0])

    assert most_often(even) == [0]
    assert {9, 10} <= set(most_often(spiky))


def test_a_span_is_one_node() -> None:
    spans: list[Span] = list(unevenness(np.zeros(13, dtype=np.int64)))
    assert len(spans) == len(set(spans)) == 2 * 13 - 1
