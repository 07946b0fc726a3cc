"""A partition drawn exactly: costs that a record moves by 1, its law enumerated, its loss, and its draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from dualmandate.mechanism import pruned_tree, simulation_keys
from dualmandate.mechanism.noise.laws import precision, resolve
from dualmandate.mechanism.noise.words import words_of_cell
from dualmandate.mechanism.pruned_tree import COST_MOVES, Fork, PrunedTree, TreeCosts, unevenness

SPLITS, TAKEN_OUT, OPENED = Fraction(1, 3), Fraction(1, 10), Fraction(1, 4)
COUNTS = (3, 0, 1, 7)
# Each way to cut, as choices from the root downwards, gives where parts begin.
Partition = tuple[int, ...]


def around_best(counts: np.ndarray) -> int:
    """The least over all middles, tried one by one: a record above costs 3, one below 1."""
    if not len(counts):
        return 0
    middles = np.unique(counts)[:, None]
    return int((3 * np.maximum(counts - middles, 0) + np.maximum(middles - counts, 0)).sum(axis=1).min())


def law(counts: tuple[int, ...], rate: float) -> dict[Partition, float]:
    """P of each partition by its formula, over all choices at all nodes that are reached."""
    values = np.array(counts)

    def weight(start: int, stop: int) -> float:
        return math.exp(-rate * around_best(values[start:stop]))

    @lru_cache
    def ways(start: int, stop: int) -> tuple[tuple[Partition, float], ...]:
        size, middle = stop - start, (start + stop) // 2
        if size == 1:
            return (((start,), 1.0),)
        opened = float(OPENED) if size == len(counts) else 1.0
        splits, out = opened * float(SPLITS), opened * float(TAKEN_OUT) if size >= 3 else 0.0
        whole: Partition = (start,)
        found = [(whole, (1 - splits - out) * weight(start, stop))]
        for left, one in ways(start, middle):
            found += [(left + right, splits * one * other) for right, other in ways(middle, stop)]
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
    return PrunedTree(unevenness(np.array(counts)), rate, SPLITS, TAKEN_OUT, OPENED)


def node_of(costs: TreeCosts, start: int, stop: int) -> int:
    return int(np.flatnonzero((costs.nodes[:, 0] == start) & (costs.nodes[:, 1] == stop))[0])


def test_costs_are_distances_from_the_best_middle() -> None:
    counts = np.array([4, 0, 0, 9, 2])
    costs = unevenness(counts)
    assert costs.nodes[0, :2].tolist() == [0, 5]
    assert costs.whole[0] == 3 * 5 + 4 + 4 + 2 == around_best(counts)  # from 4 on
    expected = [around_best(counts[:cell]) + around_best(counts[cell + 1 :]) for cell in range(5)]
    assert costs.without(0).tolist() == expected
    assert costs.without(node_of(costs, 0, 2)).tolist() == []
    random = np.random.default_rng(5)
    for size in (1, 2, 7, 16, 33):
        values = random.poisson(3, size)
        costs = unevenness(values)
        for node, (start, stop, *_) in enumerate(costs.nodes.tolist()):
            assert costs.whole[node] == around_best(values[start:stop])
            cells = range(start, stop) if stop - start > 2 else ()
            found = [around_best(values[start:cell]) + around_best(values[cell + 1 : stop]) for cell in cells]
            assert costs.without(node).tolist() == found


def test_a_record_moves_costs_within_their_range() -> None:
    random = np.random.default_rng(8)
    for _ in range(40):
        counts = random.poisson(1.5, 9)
        more = counts.copy()
        more[random.integers(9)] += 1
        one, other = unevenness(counts), unevenness(more)
        for node in range(len(one.nodes)):
            moved = np.append(other.without(node) - one.without(node), other.whole[node] - one.whole[node])
            assert -1 <= moved.min() <= moved.max() <= 3
        assert -16 <= other.least(16, 7) - one.least(16, 7) <= 48
    assert 2 * COST_MOVES == 1 + 3


def test_the_least_cost_is_that_of_the_best_way_to_halve() -> None:
    costs = unevenness(np.array([5, 5, 0, 0, 0, 0, 0, 9]))
    # 5 5 | 0 0 | 0 0 0 9 halved to 0 0 | 0 | 9 has nothing uneven; the whole costs 3·4 + 5·5 from 5 on.
    assert costs.least(1, 1) == 5
    assert costs.least(1, 100) == 137
    assert unevenness(np.array([8])).least(16, 3) == 3


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
        shares = [float(each) for each in tree(COUNTS, Fraction(1, 5)).shares(0, 200)]
    assert shares[0] == pytest.approx(law(COUNTS, 0.2)[0,], rel=1e-12)
    assert shares[-1] == pytest.approx(1.0, rel=1e-12)


def test_neighbors_are_told_apart_by_no_more_than_the_loss() -> None:
    """All partitions, files of few records on four cells and all that have one more: ε = rate·(3 + 1)."""
    rate, worst = 0.2, 0.0
    random = np.random.default_rng(2)
    for counts in [tuple(random.integers(0, 6, 4).tolist()) for _ in range(60)]:
        one = law(counts, rate)
        for cell in range(4):
            other = law(tuple(np.array(counts) + np.eye(4, dtype=int)[cell]), rate)
            worst = max(worst, *(abs(math.log(one[each] / other[each])) for each in one))
    assert 2.4 * rate < worst <= 4 * rate


def test_what_is_even_stays_whole_and_what_is_not_is_cut() -> None:
    even, spiky = (5,) * 16, (0,) * 9 + (400,) + (0,) * 6

    def most_often(counts: tuple[int, ...]) -> list[int]:
        drawn = [tuple(tree(counts, Fraction(1, 8)).draw(simulation_keys(2, each)("partition"))) for each in range(40)]
        return list(Counter(drawn).most_common(1)[0][0])

    assert most_often(even) == [0]
    assert {9, 10} <= set(most_often(spiky))


def test_a_span_is_one_node() -> None:
    spans = [tuple(each) for each in unevenness(np.zeros(13, dtype=np.int64)).nodes[:, :2].tolist()]
    assert len(spans) == len(set(spans)) == 2 * 13 - 1


@pytest.mark.parametrize("scale", [1, 10**6])
def test_floats_draw_what_balls_draw_and_are_as_near_as_they_say(scale: int) -> None:
    random = np.random.default_rng(3)
    for repetition in range(6):
        counts = tuple((scale * random.poisson(2, 21)).tolist())
        drawn = tree(counts, Fraction(1, 7 * scale))
        for node in range(len(drawn.costs.nodes)):
            if drawn.costs.size(node) == 1:
                continue
            bounds, slack = drawn._near_shares(node)
            with precision(300):
                exact = [float(each) for each in drawn.shares(node, 300)]
            assert slack < 1e-7
            assert np.abs(bounds - exact).max() < slack
            key = simulation_keys(4, repetition)("partition")
            slowly = resolve(Fork(drawn, node), words_of_cell(key, node, level=0))
            assert drawn._chosen(node, words_of_cell(key, node, level=0)) == slowly


def test_floats_are_not_asked_where_they_may_be_far_off(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def resolved(law: object, words: object) -> int:
        asked.append(law)
        return 0

    monkeypatch.setattr(pruned_tree, "resolve", resolved)
    for scale, far in ((1, False), (10**13, True)):
        drawn = tree((5 * scale, 0, scale, 0, 0, 0, 0, 3 * scale), Fraction(1))
        assert (drawn._near_shares(0)[1] > 1e-3) is far
        drawn._chosen(0, words_of_cell(simulation_keys(4, 0)("partition"), 0, level=0))
        assert bool(asked) is far


def test_a_word_at_a_threshold_is_resolved_in_balls() -> None:
    """Words on both sides of a threshold, nearer than floats can tell."""
    drawn = tree((7, 0, 1, 9, 2, 2, 2, 2), Fraction(1, 9))
    bounds, _ = drawn._near_shares(0)
    with precision(300):
        edge = drawn.shares(0, 300)[0]
        [(word, _)] = Fork(drawn, 0).floors(range(1), 64)
    assert abs(float(edge) - bounds[0]) < 1e-12
    assert drawn._chosen(0, iter([word - 1, 0, 0])) == 0
    assert drawn._chosen(0, iter([word + 1, 0, 0])) == 1
