"""A polytope that is symmetric about the origin, cut once into simplices, so that points of it are drawn exactly.

Every simplex is the cone from the origin over a part of a facet. Facets are found by Quickhull; a facet with more
corners than a simplex is cut by pulling: cones from its first corner over those of its own facets that miss it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism

_ON = 1e-9  # how near to a facet, relative to its distance from the origin, a point is taken to lie on it
_AGREE = 1e-9  # relative, of two volumes


@dataclass(frozen=True, eq=False)
class Fan:
    """Simplices with a corner at the origin that fill one half of a polytope K = −K; its other half mirrors them.

    Besides the origin, corner i of simplex f is signs[f, i]·points[corners[f, i]].
    """

    points: NDArray[np.float64]  # shape (points, rank); K is the hull of these and of their mirror images
    corners: NDArray[np.intp]  # shape (simplices, rank)
    signs: NDArray[np.float64]  # shape (simplices, rank), each 1 or −1

    @property
    def rank(self) -> int:
        """The dimension of K."""
        return int(self.points.shape[1])

    @property
    def volume(self) -> float:
        """The volume of K."""
        return 2 * math.fsum(self._determinants) / math.factorial(self.rank)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The volume of each simplex as a share of all; shape (simplices,)."""
        return np.asarray(self._determinants / self._determinants.sum())

    @cached_property
    def normals(self) -> NDArray[np.float64]:
        """h of the facet h·x = 1 behind each simplex, so that ‖x‖_K = max |h·x|; shape (simplices, rank)."""
        solved = np.linalg.solve(self._simplices, np.ones((*self.corners.shape, 1)))
        return np.asarray(solved[..., 0], dtype=np.float64)

    def terms(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """A linear function on the corners of each simplex, from its values on the points; shape (simplices, rank)."""
        return np.asarray(values[self.corners] * self.signs)

    def second_moment(self, values: NDArray[np.float64]) -> float:
        """E[c(a)²] of a linear function c, given by its values on the points, for a of density ∝ exp(−‖a‖_K).

        Σ share·(Σ c(v)² + (Σ c(v))²) over the corners v of each simplex. A uniform point of a simplex in r dimensions
        with corners 0, v₁, …, v_r has 1/((r + 1)(r + 2)) times the bracket, and the Gamma(r + 1) radius has the second
        moment (r + 1)(r + 2).
        """
        terms = self.terms(values)
        return float(self.shares @ (np.square(terms).sum(axis=1) + np.square(terms.sum(axis=1))))

    def draw(self, values: NDArray[np.float64], generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Linear functions, given by their values on the points, of draws of density ∝ exp(−‖a‖_K).

        A simplex by volume, then ±Σ E_i·v_i with independent standard exponentials: together a Gamma(r + 1) radius
        times a uniform point of the simplex, the weight of whose corner at the origin does not matter. From shape
        (points, functions) to (size, functions).
        """
        chosen = generator.choice(len(self.shares), size=size, p=self.shares)
        lengths = generator.exponential(size=(size, self.rank)) * self.signs[chosen]
        lengths *= generator.choice((-1.0, 1.0), size=(size, 1))
        drawn = np.zeros((size, values.shape[1]))
        for length, corner in zip(lengths.T, self.corners[chosen].T, strict=True):
            drawn += length[:, None] * values[corner]
        return drawn

    @cached_property
    def _simplices(self) -> NDArray[np.float64]:
        """Corners besides the origin; shape (simplices, rank, coordinates)."""
        return self.points[self.corners] * self.signs[..., None]

    @cached_property
    def _determinants(self) -> NDArray[np.float64]:
        return np.asarray(np.abs(np.linalg.det(self._simplices)), dtype=np.float64)


def most_simplices(points: int, rank: int) -> int:
    """The most simplices that a hull of so many points and their mirror images is cut into.

    Independent points have one for each choice of signs. Otherwise the upper bound theorem, which holds for every
    triangulated sphere: no more than the facets of a cyclic polytope with as many corners.
    """
    if points == rank:
        return 1 << rank
    corners, half, more = 2 * points, rank // 2, (rank + 1) // 2
    return math.comb(corners - more, half) + math.comb(corners - half - 1, more - 1)


def fan_of(points: NDArray[np.float64]) -> Fan:
    """The hull of some points and their mirror images, cut into simplices; the points span all dimensions."""
    count, rank = points.shape
    if rank == 1:
        return Fan(points, np.array([[np.argmax(np.abs(points))]]), np.ones((1, 1)))
    if count == rank:
        signs = np.array([(1.0, *rest) for rest in product((1.0, -1.0), repeat=rank - 1)])
        return Fan(points, np.tile(np.arange(rank), (len(signs), 1)), signs)
    facets, volume = _facets(points)
    everything = facets | {_mirror(facet, count) for facet in facets}
    # Of a facet and its mirror image, the one whose first corner is not mirrored.
    half = sorted(facet for facet in everything if (facet & -facet).bit_length() % 2)
    listed = [simplex for facet in half for simplex in _pulled(facet, everything, rank)]
    found = np.array(listed, dtype=np.intp).reshape(-1, rank)
    fan = Fan(points, found // 2, np.where(found % 2, -1.0, 1.0))
    # Quickhull cuts facets in another way: where both fill the same volume, no facet is missing and none counts twice.
    if not math.isclose(fan.volume, volume, rel_tol=_AGREE):
        raise _indistinct(points)
    return fan


def _facets(points: NDArray[np.float64]) -> tuple[set[int], float]:
    """The points on each facet, as bits (2i for point i, 2i + 1 for its mirror image), and the volume."""
    from scipy.spatial import ConvexHull, QhullError

    # Coordinates of like size; by powers of two, so that whole numbers stay exact.
    scales = np.exp2(np.ceil(np.log2(np.abs(points).max(axis=0))))
    try:
        hull = ConvexHull(np.concatenate([points, -points]) / scales)
    except QhullError:
        raise _indistinct(points) from None
    heights = hull.equations[:, :-1] @ (points / scales).T / -hull.equations[:, -1:]
    lies_on = np.stack([heights, -heights], axis=2).reshape(len(heights), -1) > 1 - _ON
    packed = {row.tobytes() for row in np.packbits(lies_on, axis=1, bitorder="little")}
    return {int.from_bytes(row, "little") for row in packed}, float(hull.volume * scales.prod())


def _indistinct(points: NDArray[np.float64]) -> InvalidMechanism:
    return InvalidMechanism(
        f"a polytope of {2 * len(points):,} points in {points.shape[1]} dimensions whose facets cannot be told apart",
        why="its coordinates differ so much in size that rounding decides which points lie on a facet",
        instead="ask for counts and for sums of large numbers in separate workloads",
    )


def _mirror(facet: int, count: int) -> int:
    """The facet on the other side of the origin: every point exchanged for its mirror image."""
    even = ((1 << 2 * count) - 1) // 3
    return (facet & even) << 1 | (facet >> 1) & even


def _pulled(face: int, siblings: Iterable[int], size: int) -> Iterator[tuple[int, ...]]:
    """Simplices of `size` corners that fill a face; its own facets are the largest cuts with its siblings."""
    if face.bit_count() == size:
        yield tuple(_places(face))
        return
    cuts = {face & other for other in siblings if other != face}
    wide = [cut for cut in cuts if cut.bit_count() >= size - 1]
    ridges = sorted(cut for cut in wide if not any(cut & other == cut and cut != other for other in wide))
    first = face & -face
    for ridge in ridges:
        if not ridge & first:
            for simplex in _pulled(ridge, ridges, size - 1):
                yield (first.bit_length() - 1, *simplex)


def _places(bits: int) -> Iterator[int]:
    while bits:
        first = bits & -bits
        yield first.bit_length() - 1
        bits ^= first
