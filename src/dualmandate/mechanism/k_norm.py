"""The K-norm mechanism: noise shaped like what one protected unit can do to all answers together.

Let K be the set of changes that one unit can make to the answers: the hull of ± the columns of Q (add or remove one
record), or of the differences of two columns (replace one). The mechanism releases Qx + a with density
∝ exp(−ε·‖a‖_K), ‖a‖_K the factor by which K must be stretched to reach a. A neighbor moves the answers by at most 1 in
this norm, so densities differ by at most e^ε. Noise lies in the space that the changes span: answers stay consistent.

Its error comes near the least possible under pure ε where K is about as wide in all directions, as it is for few tables
that overlap much; where K is long and thin (prefix sums of many cells), a good strategy with Laplace noise does better.
Where the columns are independent, K is a cross-polytope and the noise is exactly Laplace noise on every cell.
Source: [HT10].

K is cut once into simplices, each the cone from the origin over a part of a facet. Facets are found by Quickhull; one
with more corners than a simplex is cut by pulling: cones from its first corner over those of its own facets that miss
it. A draw is Σ ±E_i·v_i: independent exponentials of mean 1/ε on the corners v_i of one simplex, chosen by volume. So a
query's error is a mixture of differences of sums of exponentials, and everything about it scales like 1/ε.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np

from dualmandate.errors import InvalidMechanism, TooLarge
from dualmandate.mechanism.combination import CharacteristicFunction
from dualmandate.mechanism.mechanism import (
    EVERY_PERSON,
    NamedMeasure,
    known_measure,
    positive_loss,
    table_rows,
    tail_of,
)
from dualmandate.mechanism.strategy.workload_blocks import kron
from dualmandate.population import Domain, Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.population.protection import group_labels, steps
from dualmandate.population.wording import percent
from dualmandate.workload import Sensitivity, Workload
from dualmandate.workload.factor import dense
from dualmandate.workload.levels import row_ids

_ON = 1e-9  # how near to a facet, relative to its distance from the origin, a point is taken to lie on it
_AGREE = 1e-9  # relative, of two volumes


@dataclass(frozen=True, eq=False)
class Fan:
    """Simplices with a corner at the origin that fill one half of a polytope K = −K; its other half mirrors them.

    Besides the origin, corner i of simplex f is signs[f, i]·points[corners[f, i]].
    """

    points: Floats  # shape (points, rank); K is the hull of these and of their mirror images
    corners: Indices  # shape (simplices, rank)
    signs: Floats  # shape (simplices, rank), each 1 or −1

    @property
    def rank(self) -> int:
        """The dimension of K."""
        return int(self.points.shape[1])

    @property
    def volume(self) -> float:
        return 2 * math.fsum(self._determinants) / math.factorial(self.rank)

    @cached_property
    def shares(self) -> Floats:
        """The volume of each simplex as a share of all; shape (simplices,)."""
        return np.asarray(self._determinants / self._determinants.sum())

    @cached_property
    def normals(self) -> Floats:
        """h of the facet h·x = 1 behind each simplex, so that ‖x‖_K = max |h·x|; shape (simplices, rank)."""
        solved = np.linalg.solve(self._simplices, np.ones((*self.corners.shape, 1)))
        return np.asarray(solved[..., 0], dtype=np.float64)

    def terms(self, values: Floats) -> Floats:
        """A linear function on the corners of each simplex, from its values on the points; shape (simplices, rank)."""
        return np.asarray(values[self.corners] * self.signs)

    def second_moment(self, values: Floats) -> float:
        """E[c(a)²] of a linear function c, given by its values on the points, for a of density ∝ exp(−‖a‖_K).

        Σ share·(Σ c(v)² + (Σ c(v))²) over the corners v of each simplex. A uniform point of a simplex in r dimensions
        with corners 0, v₁, …, v_r has 1/((r + 1)(r + 2)) times the bracket, and the Gamma(r + 1) radius has the second
        moment (r + 1)(r + 2).
        """
        terms = self.terms(values)
        return float(self.shares @ (np.square(terms).sum(axis=1) + np.square(terms.sum(axis=1))))

    def draw(self, values: Floats, generator: np.random.Generator, size: int) -> Floats:
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
    def _simplices(self) -> Floats:
        """Corners besides the origin; shape (simplices, rank, coordinates)."""
        return self.points[self.corners] * self.signs[..., None]

    @cached_property
    def _determinants(self) -> Floats:
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


def fan_of(points: Floats) -> Fan:
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


def _facets(points: Floats) -> tuple[set[int], float]:
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


def _indistinct(points: Floats) -> InvalidMechanism:
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


_NEGLECTED = 1e-20  # tail that Fourier sums leave out
_BLOCK = 2**14  # simulated releases held at once


@dataclass(frozen=True)
class SimulatedError:
    """A mean error from simulation, and an interval that holds the true one with probability `confidence`.

    The interval is Student's, by the central limit theorem: its coverage is as stated for many releases.
    """

    mean: float
    low: float
    high: float
    confidence: float
    releases: int


@dataclass(frozen=True, eq=False)
class KNormProduction:
    """A `Production` with noise of density ∝ exp(−(ε/m)·‖a‖_K), m the most records of a unit, K for one record."""

    workload: Workload
    protection: Protection
    changes: Floats  # of the answers of tables of weight 1 by one record, shape (changes, query_count)
    fan: Fan  # K in coordinates, which are the answers of some independent queries
    queries: Indices  # these queries, shape (rank,)
    technology: ClassVar[str] = "K-norm"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP
    combines: ClassVar[bool] = False

    @property
    def rank(self) -> int:
        """The number of dimensions in which the answers can change."""
        return self.fan.rank

    @property
    def sensitivity(self) -> Sensitivity:
        """In the norm of K, which is that of the histogram (L1) seen through the workload: 1 for each record."""
        records = Fraction(self.protection.most_records_per_unit)
        method = "the norm is that of the changes which one record can make"
        return Sensitivity(norm="l1", power=records, exact=True, method=method)

    def norm(self, errors: Floats) -> Floats:
        """‖a‖_K of some errors of all answers, shape (…, query_count) → (…): how many records' changes they amount to.

        Infinite where no change of the data moves the answers that way.
        """
        unweighted = errors / self._weights
        coordinates = unweighted[..., self.queries]
        rest = np.abs(unweighted - coordinates @ self._answers).max(axis=-1)
        sizes = np.abs(coordinates @ self.fan.normals.T).max(axis=-1)
        return np.where(rest <= 1e-9 * np.abs(unweighted).max(axis=-1), sizes, np.inf)

    def query_variances(self, table: str, loss: float) -> Floats:
        return np.asarray(self._unit_variances[self._rows(table)] * self._scale(loss) ** 2)

    def table_errors(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        scale, unit = self._scale(loss), self._unit_losses(known_measure(measure))
        return {name: each * scale ** _power(measure) for name, each in unit.items()}

    def table_slopes(self, loss: float, measure: NamedMeasure = "squared") -> dict[str, float]:
        return {name: -_power(measure) * each / loss for name, each in self.table_errors(loss, measure).items()}

    def table_curvatures(self, loss: float) -> dict[str, float]:
        return {name: 6 * each / loss**2 for name, each in self.table_errors(loss).items()}

    def expected_squared_error(self, loss: float) -> float:
        return math.fsum(self.table_errors(loss).values())

    def half_width(self, table: str, loss: float, probability: float) -> Floats:
        return self._reaches(table, loss, tail_of(probability))

    def simultaneous_half_width(self, table: str, loss: float, probability: float) -> Floats:
        rows = self._rows(table)
        return self._reaches(table, loss, tail_of(probability) / (rows.stop - rows.start))

    def draw(self, counts: Integers, loss: float, *, generator: np.random.Generator, size: int) -> Floats:
        return np.asarray(self.workload.answers(counts) + self._errors(loss, generator, size), dtype=np.float64)

    def simulated_losses(
        self,
        loss: float,
        measure: NamedMeasure = "squared",
        *,
        generator: np.random.Generator,
        releases: int = 10_000,
        confidence: float = 0.95,
    ) -> dict[str, SimulatedError]:
        """`table_errors` by simulation, with an interval each: the check of the closed forms.

        The largest variance is that of the query for which the closed form is largest: the largest of several
        simulated ones would be biased upward.
        """
        if releases < 2 or not 0.0 < confidence < 1.0:
            raise InvalidMechanism(
                f"an interval of {percent(confidence)} from {releases} simulated releases",
                why="an interval needs releases to differ and a confidence strictly between 0 and 1",
                instead="simulate at least two releases, with a confidence such as 0.95",
            )
        known_measure(measure)
        drawn: dict[str, list[Floats]] = {table.name: [] for table in self.workload.tables}
        for begin in range(0, releases, _BLOCK):
            errors = self._errors(loss, generator, min(_BLOCK, releases - begin))
            for name, parts in drawn.items():
                parts.append(self._measured(errors[:, self._rows(name)], name, measure))
        return {name: _interval(np.concatenate(parts), confidence) for name, parts in drawn.items()}

    def _errors(self, loss: float, generator: np.random.Generator, size: int) -> Floats:
        return self.fan.draw(self.changes, generator, size) * (self._weights * self._scale(loss))

    def _measured(self, errors: Floats, table: str, measure: NamedMeasure) -> Floats:
        """The error of a table in each simulated release, shape (releases,)."""
        if measure == "absolute":
            return np.asarray(np.abs(errors).sum(axis=1))
        if measure == "squared":
            return np.asarray(np.square(errors).sum(axis=1))
        return np.square(errors[:, int(np.argmax(self._unit_variances[self._rows(table)]))])

    def _scale(self, loss: float) -> float:
        """m/ε."""
        return self.protection.most_records_per_unit / positive_loss(loss)

    def _rows(self, name: str) -> slice:
        return table_rows(self.workload, name)

    @cached_property
    def _weights(self) -> Floats:
        tables = self.workload.tables
        return np.repeat([float(table.weight) for table in tables], [table.query_count for table in tables])

    @cached_property
    def _answers(self) -> Floats:
        """Changes of all answers from those of the independent queries; shape (rank, query_count)."""
        return np.asarray(np.linalg.lstsq(self.fan.points, self.changes, rcond=None)[0])

    @cached_property
    def _unit_variances(self) -> Floats:
        """E[error²] of each query for one record and ε = 1."""
        unweighted = [self.fan.second_moment(each) for each in self.changes.T]
        return np.asarray(np.square(self._weights) * unweighted)

    def _unit_losses(self, measure: NamedMeasure) -> dict[str, float]:
        if measure == "absolute":
            return self._unit_absolute
        combine = math.fsum if measure == "squared" else max
        names = [table.name for table in self.workload.tables]
        return {name: float(combine(self._unit_variances[self._rows(name)].tolist())) for name in names}

    @cached_property
    def _unit_absolute(self) -> dict[str, float]:
        """Σ E|error| of each table for one record and ε = 1."""
        means = np.array([_mean_absolute(*self._mixture(query)) for query in range(self.workload.query_count)])
        weighted = self._weights * means
        return {table.name: math.fsum(weighted[self._rows(table.name)]) for table in self.workload.tables}

    def _mixture(self, query: int) -> tuple[Floats, Floats]:
        """A query's error is ±Σ c_i·E_i: the different c, shape (kinds, rank), and the probability of each."""
        terms = np.sort(self.fan.terms(self.changes[:, query]), axis=1)
        kinds, members = np.unique(terms, axis=0, return_inverse=True)
        shares = np.bincount(members.reshape(-1), weights=self.fan.shares)
        return np.asarray(kinds, dtype=np.float64), np.asarray(shares, dtype=np.float64)

    def _reaches(self, table: str, loss: float, tail: float) -> Floats:
        rows = self._rows(table)
        laws = [_law(*self._mixture(query)) for query in range(rows.start, rows.stop)]
        unit = np.array([0.0 if law is None else law.reach(tail) for law in laws])
        return np.asarray(unit * self._weights[rows] * self._scale(loss))


def _mean_absolute(kinds: Floats, shares: Floats) -> float:
    """E|Σ c_i·E_i| = 2·E[(Σ c_i·E_i)⁺] − Σ c_i, in the mean over the kinds.

    Let one exponential with c > 0 race one with c < 0: which of them ends first is a matter of their sizes alone, what
    is left of the other is as good as new, and the difference of the two sums stays as it is. Every term is positive.
    """
    ups, downs = np.maximum(kinds, 0.0), np.maximum(-kinds, 0.0)
    rank = kinds.shape[1]
    # left[i]: what is expected of the exponentials from i on, once those that pull down are used up.
    left = [ups[:, place:].sum(axis=1) for place in range(rank + 1)]
    for down in reversed(downs.T):
        for place in reversed(range(rank)):
            both = ups[:, place] + down
            ends_first = np.divide(down, both, out=np.ones_like(both), where=both > 0.0)
            left[place] = ends_first * left[place + 1] + (1.0 - ends_first) * left[place]
    return float(shares @ (2.0 * left[0] - kinds.sum(axis=1)))


def _law(kinds: Floats, shares: Floats) -> CharacteristicFunction | None:
    """The law of an error: E[exp(itS)] = Σ share·Re Π 1/(1 − i·c·t); None where there is no error."""
    from scipy.special import gammainccinv

    if not kinds.any():
        return None
    values, places = np.unique(kinds, return_inverse=True)
    squares = np.square(kinds).sum(axis=1) + np.square(kinds.sum(axis=1))

    def at(frequencies: Floats) -> Floats:
        single = 1.0 / (1.0 - 1j * values[:, None] * frequencies)
        found = np.zeros(frequencies.shape)
        for kind, share in zip(places.reshape(kinds.shape), shares, strict=True):
            found += share * np.prod(single[kind], axis=0).real
        return found

    # No error exceeds the largest c times the sum of all the exponentials.
    largest = float(np.abs(values).max()) * float(gammainccinv(kinds.shape[1], _NEGLECTED))
    return CharacteristicFunction(at, float(shares @ squares), largest)


def _interval(errors: Floats, confidence: float) -> SimulatedError:
    from scipy.special import stdtrit

    mean, count = float(errors.mean()), len(errors)
    reach = float(stdtrit(count - 1, 0.5 + confidence / 2)) * float(errors.std(ddof=1)) / math.sqrt(count)
    return SimulatedError(mean, mean - reach, mean + reach, confidence, count)


def _power(measure: NamedMeasure) -> int:
    """Absolute errors fall like 1/ε, squared ones like 1/ε²."""
    return 1 if measure == "absolute" else 2


MOST_POINTS = 2**12  # of which the polytope of a workload may be the hull
MOST_SIMPLICES = 2**16  # into which it may have to be cut
MOST_DIMENSIONS = 16  # beyond, even independent columns give more simplices than that
LARGEST_CHANGES = 2**22  # entries of all columns, or of all differences of two columns
_PRIME = 2**31 - 1
_SMALLER = (
    "ask for fewer or coarser tables together, or use a strategy with laplace noise (optimize_strategy), which serves "
    "large workloads"
)


@dataclass(frozen=True)
class KNorm:
    """Noise in the norm of the changes that one unit can make, on all answers of a small workload together.

    For frontiers only: its draws are real numbers, so nothing can be published with it. Weights of tables scale their
    errors and nothing else, because the noise follows the workload.
    """

    name: ClassVar[str] = "K-norm"
    privacy_measure: ClassVar[PrivacyMeasure] = PrivacyMeasure.PURE_DP

    def production(self, workload: Workload, protection: Protection = EVERY_PERSON) -> KNormProduction:
        """What it produces for a workload; refused where its polytope would have too many facets."""
        changes = _changes(workload, protection)
        queries = _independent_queries(changes)
        _affordable(len(changes), len(queries))
        return KNormProduction(workload, protection, changes, fan_of(changes[:, queries]), queries)


def _changes(workload: Workload, protection: Protection) -> Floats:
    """What one record can do to the answers of tables of weight 1, each change once and up to its sign.

    Whole numbers, shape (changes, query_count); impossible cells are left out, and so are changes of exact totals.
    """
    _written_out(workload.domain.size, workload.query_count)
    possible = workload.domain.possible_cells()
    columns = np.concatenate([kron([dense(f) for f in table.factors]) for table in workload.tables])[:, possible].T
    if protection.neighbors is Neighbors.REPLACE_ONE:
        columns = _differences(columns, _groups(workload.domain, protection)[possible])
    columns = columns[columns.any(axis=1)]
    if not len(columns):
        raise InvalidMechanism(
            f"K-norm noise for answers that no protected {protection.unit} can change",
            why="exact totals, or the public number of records, decide what is asked: noise protects nothing",
            instead="publish it as the exact total that it is, or drop the invariant",
        )
    first = columns[np.arange(len(columns)), np.argmax(columns != 0, axis=1)]
    return np.unique(columns * np.sign(first)[:, None], axis=0)


def _differences(columns: Floats, groups: Integers) -> Floats:
    """All differences of two different columns of one group; one of each pair and its opposite."""
    distinct = [np.unique(columns[groups == group], axis=0) for group in np.unique(groups)]
    _written_out(sum(math.comb(len(each), 2) for each in distinct), columns.shape[1])
    places = [np.triu_indices(len(each), 1) for each in distinct]
    return np.concatenate([each[one] - each[other] for each, (one, other) in zip(distinct, places, strict=True)])


def _groups(domain: Domain, protection: Protection) -> Integers:
    """For each cell the groups of exact totals that a record in it cannot leave; shape (domain.size,)."""
    groups = []
    for invariant in steps(domain, protection).kept:
        labels = group_labels(domain, invariant)
        by_axis = [labels.get(axis, np.zeros(size, dtype=np.int64)) for axis, size in enumerate(domain.shape)]
        of_cells = [grid.reshape(-1) for grid in np.meshgrid(*by_axis, indexing="ij")]
        inside = np.all([each >= 0 for each in of_cells], axis=0)
        groups.append(np.where(inside, row_ids(of_cells, domain.size), -1))
    return row_ids(groups, domain.size)


def _independent_queries(changes: Floats) -> Indices:
    """The first queries from whose changes those of all others follow, as many as the rank; shape (rank,).

    By elimination in whole numbers modulo a prime, which no rounding can mislead; ended one above `MOST_DIMENSIONS`.
    """
    left = np.asarray(np.mod(changes, _PRIME), dtype=np.int64)
    found: list[int] = []
    while left.any() and len(found) <= MOST_DIMENSIONS:
        query = int(np.argmax(left.any(axis=0)))
        row = int(np.argmax(left[:, query] != 0))
        pivot = left[row] * pow(int(left[row, query]), -1, _PRIME) % _PRIME
        left = (left - left[:, [query]] * pivot) % _PRIME
        found.append(query)
    return np.array(found, dtype=np.intp)


def _written_out(changes: int, query_count: int) -> None:
    if changes * query_count > LARGEST_CHANGES:
        raise TooLarge(
            f"{_rounded(changes)} ways to change {_rounded(query_count)} answers",
            why=f"their {_rounded(changes * query_count)} numbers are written out, and at most {LARGEST_CHANGES:,} are",
            instead=_SMALLER,
        )


def _affordable(changes: int, rank: int) -> None:
    estimate = most_simplices(changes, rank)
    if 2 * changes > MOST_POINTS or estimate > MOST_SIMPLICES:
        more = " or more" if rank > MOST_DIMENSIONS else ""
        raise TooLarge(
            f"a polytope of {2 * changes:,} points in {rank}{more} dimensions was asked for",
            why=f"it may have {_rounded(estimate)}{more} simplices; at most {MOST_SIMPLICES:,} simplices of "
            f"{MOST_POINTS:,} points are handled",
            instead=_SMALLER,
        )


def _rounded(number: int) -> str:
    return f"{number:,}" if number < 10**9 else f"about 10^{math.log10(number):.0f}"
