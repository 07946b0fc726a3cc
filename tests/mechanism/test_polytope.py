"""Symmetric polytopes in simplices: proved in fractions to be filled once, drawn from uniformly, with known moments."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chisquare, gamma, kstest

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism import k_norm
from dualmandate.mechanism.k_norm import Fan, fan_of, most_simplices

Points = NDArray[np.float64]


def cube(rank: int) -> Points:
    """One of each corner of [−1, 1]^rank and its opposite."""
    return np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=rank - 1)])


def roots(size: int) -> Points:
    """e_i − e_j, seen through all coordinates but the last: a hexagon, a cuboctahedron, …."""
    units = np.eye(size)
    return np.array([units[i] - units[j] for i, j in combinations(range(size), 2)])[:, :-1]


def scattered(rank: int, count: int, seed: int) -> Points:
    """Small whole numbers, so that many points lie on one facet, or inside."""
    drawn = np.random.default_rng(seed).integers(-2, 3, (count, rank)).astype(np.float64)
    return np.concatenate([np.eye(rank), drawn[drawn.any(axis=1)]])


SHAPES = {
    "segment": np.array([[2.0], [-3.0], [1.0]]),
    "square": cube(2),
    "hexagon": roots(3),
    "edges with points in between": np.array([[1.0, 1.0], [1.0, 0.0], [1.0, -1.0], [0.0, 1.0], [0.0, 0.5]]),
    "octahedron": np.eye(3),
    "cube": cube(3),
    "cuboctahedron": roots(4),
    "4-cube": cube(4),
    "5-cube": cube(5),
    "roots of 6": roots(6),
    **{f"scattered {rank}": scattered(rank, 9 + rank, rank) for rank in (2, 3, 4, 5)},
}
every_shape = pytest.mark.parametrize("points", SHAPES.values(), ids=SHAPES.keys())


def solved(rows: list[list[Fraction]]) -> list[Fraction]:
    """h with h·v = 1 for every row v, by elimination in fractions; an AssertionError if the rows are dependent."""
    system = [[*row, Fraction(1)] for row in rows]
    size = len(system)
    for column in range(size):
        pivot = next((i for i in range(column, size) if system[i][column]), None)
        assert pivot is not None
        system[column], system[pivot] = system[pivot], system[column]
        system[column] = [value / system[column][column] for value in system[column]]
        for other in range(size):
            if other != column:
                factor = system[other][column]
                system[other] = [a - factor * b for a, b in zip(system[other], system[column], strict=True)]
    return [row[-1] for row in system]


@every_shape
def test_simplices_fill_the_polytope_once(points: Points) -> None:
    """Exactly: each lies on the boundary, and every face of one is shared with exactly one other, all the way round."""
    fan = fan_of(points)
    exact = [[Fraction(value) for value in point] for point in points.tolist()]
    shared: Counter[frozenset[tuple[int, float]]] = Counter()
    for corners, signs in zip(fan.corners.tolist(), fan.signs.tolist(), strict=True):
        normal = solved([[Fraction(s) * value for value in exact[i]] for i, s in zip(corners, signs, strict=True)])
        heights = [sum((h * x for h, x in zip(normal, point, strict=True)), Fraction(0)) for point in exact]
        assert max(map(abs, heights)) == 1
        for side in (1, -1):
            simplex = [(i, side * s) for i, s in zip(corners, signs, strict=True)]
            shared.update(frozenset(simplex) - {corner} for corner in simplex)
    if fan.rank > 1:
        assert set(shared.values()) == {2}
    # A ray that meets no face of a simplex leaves K once.
    ray = np.sqrt(np.array([2.0, 3.0, 5.0, 7.0, 11.0]))[: fan.rank]
    weights = [np.linalg.solve((points[c] * s[:, None]).T, ray) for c, s in zip(fan.corners, fan.signs, strict=True)]
    assert sum(bool(np.all(w > 0)) or bool(np.all(w < 0)) for w in weights) == 1
    assert 2 * len(fan.corners) <= most_simplices(len(points), fan.rank)
    assert fan.shares.sum() == pytest.approx(1)


def test_volumes_are_known_ones() -> None:
    assert fan_of(np.array([[2.0], [-3.0]])).volume == pytest.approx(6, rel=1e-12)
    for rank in (2, 3, 4, 5, 6):
        assert fan_of(cube(rank)).volume == pytest.approx(2**rank, rel=1e-12)
        assert fan_of(np.eye(rank)).volume == pytest.approx(2**rank / math.factorial(rank), rel=1e-12)
        # The root polytope of type A: its normalized volume is a central binomial coefficient.
        expected = math.comb(2 * rank, rank) / math.factorial(rank)
        assert fan_of(roots(rank + 1)).volume == pytest.approx(expected, rel=1e-12)


def test_the_estimate_is_the_upper_bound_theorem() -> None:
    assert most_simplices(1, 1) == most_simplices(5, 1) == 2
    assert [most_simplices(points, 2) for points in (3, 4, 50)] == [6, 8, 100]
    assert most_simplices(4, 3) == 12  # a cube whose squares are cut in two
    assert most_simplices(6, 4) == 12 * 9 // 2
    assert most_simplices(9, 9) == 2**9
    assert most_simplices(10, 8) == math.comb(16, 4) + math.comb(15, 3)


def test_an_order_of_coordinates_or_signs_does_not_matter() -> None:
    points = scattered(3, 12, seed=8)
    volume, moment = fan_of(points).volume, fan_of(points).second_moment(points[:, 0])
    for order in permutations(range(3)):
        turned = fan_of(-points[::-1][:, order])
        assert turned.volume == pytest.approx(volume, rel=1e-12)
        assert turned.second_moment(turned.points[:, order.index(0)]) == pytest.approx(moment, rel=1e-12)


def test_second_moments_by_hand() -> None:
    """A Gamma(r + 1) radius squared, (r + 1)(r + 2) on average, times those of the uniform law."""
    assert fan_of(np.array([[2.0], [-3.0], [1.0]])).second_moment(np.array([2.0, -3.0, 1.0])) == pytest.approx(2 * 9)
    for rank in (2, 3, 4, 5):
        # The ℓ∞ mechanism: each coordinate of a uniform point of the cube has variance 1/3.
        block = fan_of(cube(rank))
        for values in block.points.T:
            assert block.second_moment(values) == pytest.approx((rank + 1) * (rank + 2) / 3, rel=1e-12)
        assert block.second_moment(block.points[:, 0] + block.points[:, 1]) == pytest.approx(
            2 * (rank + 1) * (rank + 2) / 3, rel=1e-12
        )
        # The ℓ₁ mechanism: independent Laplace noise.
        cross = fan_of(3 * np.eye(rank))
        assert cross.second_moment(cross.points @ np.arange(rank)) == pytest.approx(
            2 * 9 * float(np.square(np.arange(rank)).sum()), rel=1e-12
        )


def test_second_moments_of_a_hexagon_by_green() -> None:
    """∫x² over a polygon is Σ cross·(x² + x·x′ + x′²)/12 around it; a Gamma(3) radius has E[R²] = 12."""
    around = np.array([[1, 0], [0, 1], [-1, 1], [-1, 0], [0, -1], [1, -1]], dtype=np.float64)
    after = np.roll(around, -1, axis=0)
    cross = around[:, 0] * after[:, 1] - around[:, 1] * after[:, 0]
    x, y = around[:, 0], after[:, 0]
    expected = 12 * float(cross @ (x * x + x * y + y * y) / 12) / float(cross.sum() / 2)
    fan = fan_of(roots(3))
    assert fan.second_moment(fan.points[:, 0]) == pytest.approx(expected, rel=1e-12)
    assert expected == pytest.approx(10 / 3)


def _uniform(fan: Fan, size: int, seed: int) -> Points:
    """Uniform points of K: draws, their norm taken out, stretched by the radius of a uniform point."""
    generator = np.random.default_rng(seed)
    drawn = fan.draw(fan.points, generator, size)
    norms = np.abs(drawn @ fan.normals.T).max(axis=1)
    assert kstest(norms, gamma(fan.rank).cdf).pvalue > 1e-3
    return np.asarray(drawn * (generator.uniform(size=size) ** (1 / fan.rank) / norms)[:, None])


def test_draws_are_uniform_in_an_octagon() -> None:
    """In bins of known area, which have nothing to do with how the octagon was cut."""
    fan = fan_of(np.array([[2.0, 1.0], [1.0, 2.0], [-1.0, 2.0], [-2.0, 1.0]]))
    inside = _uniform(fan, 40_000, seed=3)
    # Unit squares on [−2, 2]²: each is whole but for those in the corners, of which half is cut off.
    bins = np.floor(inside).astype(np.int64) + 2
    counts = np.bincount(bins[:, 0] * 4 + bins[:, 1], minlength=16)
    areas = np.array([0.5 if i in (0, 3) and j in (0, 3) else 1.0 for i in range(4) for j in range(4)])
    assert fan.volume == pytest.approx(areas.sum())
    assert chisquare(counts, areas / areas.sum() * len(inside)).pvalue > 1e-3
    # A wrong weight of simplices would be seen.
    assert chisquare(counts, np.full(16, len(inside) / 16)).pvalue < 1e-9


def test_draws_are_uniform_in_a_cube() -> None:
    inside = _uniform(fan_of(cube(4)), 30_000, seed=4)
    bins = np.floor((inside + 1) * 1.5).astype(np.int64).clip(0, 2) @ (3 ** np.arange(4))
    assert chisquare(np.bincount(bins, minlength=81)).pvalue > 1e-3


def test_facets_that_cannot_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    slanted = np.array([[1.0, 1e9 + x, float(x * x)] for x in (0, 1, 2, 5)])
    with pytest.raises(InvalidMechanism, match="8 points in 3 dimensions whose facets"):
        fan_of(slanted)
    with pytest.raises(InvalidMechanism, match="6 points in 2 dimensions whose facets"):
        fan_of(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]]))
    monkeypatch.setattr(k_norm, "_ON", 0.3)
    with pytest.raises(InvalidMechanism, match="facets cannot be told apart"):
        fan_of(scattered(3, 12, seed=8))
