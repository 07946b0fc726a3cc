"""Published partitions as their papers describe them, and ours ahead of them on made histograms."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from dualmandate.benchmarks import partitions, squares
from dualmandate.benchmarks.published_partitions import (
    ahp,
    cheapest,
    dawa,
    deviations,
    greedy_tree,
    intervals,
    quadtree,
)
from dualmandate.workload import all_range


def test_intervals_have_lengths_of_powers_of_two_and_cost_their_distances_from_the_mean() -> None:
    starts, ends = intervals(6)
    assert sorted(zip(starts.tolist(), ends.tolist(), strict=True))[:4] == [(0, 1), (0, 2), (0, 4), (1, 2)]
    counts = np.array([4, 0, 1, 1, 6, 2])
    expected = [np.abs(counts[a:b] - counts[a:b].mean()).sum() for a, b in zip(starts, ends, strict=True)]
    np.testing.assert_allclose(deviations(counts), expected)


def test_the_cheapest_partition_is_that_of_all_partitions() -> None:
    starts, ends = intervals(7)
    costs = np.random.default_rng(3).normal(size=len(starts))
    known = dict(zip(zip(starts.tolist(), ends.tolist(), strict=True), costs.tolist(), strict=True))

    def cost(cuts: list[int]) -> float:
        return float(sum(known.get(each, np.inf) for each in pairwise(cuts)))

    every = [[0, *(i + 1 for i in range(6) if bits >> i & 1), 7] for bits in range(2**6)]
    found = [*cheapest(starts, ends, costs).tolist(), 7]
    assert cost(found) == pytest.approx(min(map(cost, every)))


def test_the_tree_of_sums_has_unit_columns_and_the_covariance_it_says() -> None:
    gram = all_range(61).gram()
    rows, covariance = greedy_tree(gram)
    assert np.abs(rows).sum(axis=0).max() <= 1 + 1e-12
    np.testing.assert_allclose(covariance, np.linalg.inv(rows.T @ rows), atol=1e-9)
    assert np.sum(gram * covariance) < np.trace(gram)  # better than the cells alone


@pytest.mark.parametrize("release", [dawa, ahp])
def test_published_releases_come_near_with_a_large_loss(release: object) -> None:
    counts, queries = partitions.histograms(64)["skewed"], all_range(64).dense()
    answers = (dawa if release is dawa else ahp)(counts, queries, 1e5, generator=np.random.default_rng(1))
    assert np.abs(answers - queries @ counts).max() < 0.1


def test_noisy_sums_that_are_not_cut_at_zero_merge_nothing() -> None:
    """Why DAWA is compared in the reading that is stronger."""
    counts, queries = partitions.histograms(256)["clusters"], all_range(64).dense() @ np.kron(np.eye(64), np.ones(4))
    off = {
        cut: np.mean(
            [
                np.square(dawa(counts, queries, 0.1, generator=np.random.default_rng(each), cut=cut) - queries @ counts)
                for each in range(6)
            ]
        )
        for cut in (True, False)
    }
    assert off[False] > 1.5 * off[True]


def test_made_histograms_are_sparse_dense_smooth_and_spiky() -> None:
    made = partitions.histograms()
    assert len(made) == 10
    assert all(each.shape == (1_024,) and each.min() >= 0 for each in made.values())
    assert (made["spikes"] == 0).mean() > 0.95
    assert made["flat"].min() > 500
    assert made["scattered"].sum() == 300
    again = partitions.histograms()
    assert all(np.array_equal(made[name], again[name]) for name in made)


def test_histograms_are_drawn_from_every_family() -> None:
    made = [partitions.drawn(number) for number in range(12)]
    assert tuple(family for family, _ in made) == partitions.FAMILIES
    assert all(counts.shape == (1_024,) and counts.min() >= 0 and counts.sum() > 30 for _, counts in made)
    assert np.array_equal(partitions.drawn(3)[1], made[3][1])
    assert not np.array_equal(partitions.drawn(15)[1], made[3][1])


def test_ours_is_ahead_on_average() -> None:
    epsilons = (Fraction(1, 10), Fraction(1))
    rows = partitions.rows(lambda _: None, cells=128, ranges=60, epsilons=epsilons, repetitions=2, numbers=[25, 31])
    cases = [row for row in rows if row.unit == partitions.UNIT]
    assert len(cases) == 3 * 10 * 2 + 2 * 3
    assert all(row.peer == partitions.DAWA and row.peer_value for row in cases)
    means = {(row.case, row.peer): row for row in rows if "geometric mean" in row.case}
    assert len(means) == 4 * 4
    assert all(row.met for (case, _), row in means.items() if not case.startswith("drawn"))


def test_grids_and_quadtrees_come_near_with_a_large_loss() -> None:
    table = squares.tables((16, 16))["clusters"]
    for release in squares.GRIDS.values():
        found = release(table, 1e6, generator=np.random.default_rng(1))
        np.testing.assert_allclose(found, table, atol=0.01)


def test_a_quadtree_is_consistent_and_the_least_squares_of_its_levels() -> None:
    """Its estimate of the total beside that of weighted least squares over all nodes, by the spread of both."""
    table = np.zeros((4, 4), dtype=np.int64)
    totals = [quadtree(table, 1.0, generator=np.random.default_rng(each)).sum() for each in range(4_000)]
    shares = 2.0 ** (np.arange(3) / 3)
    variances = 2 * (shares.sum() / shares) ** 2 * 4.0 ** np.arange(3)  # of the total, by each level's sums
    assert np.var(totals) == pytest.approx(1 / np.sum(1 / variances), rel=0.08)


def test_two_attributes_are_compared_on_all_kinds_of_queries() -> None:
    rows = squares.rows(lambda _: None, shapes=[(8, 8)], epsilons=[Fraction(1)], repetitions=1)
    assert len([row for row in rows if row.unit == squares.UNIT]) == 3 * 4
    assert {row.peer for row in rows if "geometric" in row.case} == {squares.DAWA, squares.PLAIN, *squares.GRIDS}
