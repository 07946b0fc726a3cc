"""A workload taken apart before anything is optimized: independent groups of attributes, and symmetric sectors.

A workload is a product of smaller ones where its tables are all combinations of theirs. Within a part each attribute
has classes of exchangeable levels (`axes`), and the cells of the part form orbits: one class an attribute. A *sector*
says which attributes are in the differences of which class, the others being averaged over classes; sectors do not
mix, so the Gram matrix V of the workload splits into one small block V_S for each sector, of multiplicity Π(m − 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.mechanism.dense_strategy import possible_cells
from dualmandate.mechanism.strategy.axes import Axis, Floats, Indices, axis_of, with_zeros
from dualmandate.workload import Factor, Workload
from dualmandate.workload.factor import LARGEST_DENSE, Numbers, affordable

MOST_SECTORS = 2**16
LARGEST_BOX = 2**24  # orbits that are told apart

Key = tuple[Hashable, ...]
Sector = frozenset[tuple[int, int]]  # (place of an attribute, class whose differences it is in)
EVERYTHING_AVERAGED: Sector = frozenset()


@dataclass(frozen=True, eq=False)
class Part:
    """Attributes whose tables are not a product of smaller workloads, with the squared weight of each table."""

    axes: tuple[int, ...]  # attributes of the domain
    levels: tuple[Axis, ...]  # one an attribute
    tables: dict[Key, tuple[Factor, ...]]
    squared_weights: dict[Key, float]
    possible: NDArray[np.bool_] | None = None  # merged cells that can occur, in the merged shape; None: all

    @property
    def merged_shape(self) -> tuple[int, ...]:
        """Merged levels of each attribute."""
        return tuple(level.merged for level in self.levels)

    @property
    def merged_size(self) -> int:
        """Merged cells (an exact integer)."""
        return math.prod(self.merged_shape)

    @property
    def orbit_shape(self) -> tuple[int, ...]:
        """Classes of each attribute."""
        return tuple(level.orbits for level in self.levels)

    @property
    def orbit_count(self) -> int:
        """Orbits of cells, possible or not."""
        return math.prod(self.orbit_shape)

    @property
    def is_symmetric(self) -> bool:
        """Whether all levels of every attribute are exchangeable, so that there is one orbit."""
        return self.orbit_count == 1

    @cached_property
    def cells(self) -> Indices:
        """Orbits that can occur and that some query asks about, row-major."""
        if self.orbit_count > LARGEST_BOX:
            raise TooLarge(
                f"a strategy over {self.orbit_count:.3g} cells that queries tell apart",
                why=f"at most {LARGEST_BOX:,} cells are weighed one by one",
                instead="group levels, or ask about fewer attributes at once",
            )
        asked = np.zeros(self.orbit_count, dtype=np.bool_)
        for key, factors in self.tables.items():
            if self.squared_weights[key] > 0:
                columns = (f.counts[level.kept[level.first]] > 0 for f, level in zip(factors, self.levels, strict=True))
                asked |= _outer(list(columns))
        if self.possible is not None:
            asked &= self.possible[np.ix_(*(level.first for level in self.levels))].reshape(-1)
        if not asked.any():
            raise asks_nothing()
        return np.flatnonzero(asked)

    @cached_property
    def orbit_sizes(self) -> Floats:
        """Merged cells in each of `cells`, N."""
        return _outer([level.members.astype(np.float64) for level in self.levels])[self.cells]

    def cell_by_cell(self) -> Part:
        """The same part with every merged cell an orbit of its own."""
        return replace(self, levels=tuple(level.level_by_level() for level in self.levels))

    @property
    def query_count(self) -> int:
        """Queries of all different tables."""
        return sum(math.prod(factor.rows for factor in factors) for factors in self.tables.values())

    def queries(self) -> Floats:
        """The queries, each times its table's weight, written out over merged cells."""
        affordable(self.query_count, self.merged_size, "a list of queries")
        blocks = []
        for key, factors in self.tables.items():
            columns = [f.columns(level.kept).astype(np.float64) for f, level in zip(factors, self.levels, strict=True)]
            blocks.append(math.sqrt(self.squared_weights[key]) * kron(columns))
        return np.concatenate(blocks)

    def own(self, place: int, factor: Factor) -> Floats:
        """FᵀF on the differences of each class of an attribute; shape (orbits,)."""
        return self._known(("own", place, factor.key), lambda: self.levels[place].own(factor))

    def averaged_gram(self, place: int, factor: Factor) -> Floats:
        """FᵀF on the averages of the classes of an attribute; shape (orbits, orbits)."""
        return self._known(("gram", place, factor.key), lambda: self.levels[place].gram(factor))

    @cached_property
    def _memory(self) -> dict[Hashable, Floats]:
        return {}

    def _known(self, key: Hashable, found: Callable[[], Floats]) -> Floats:
        if key not in self._memory:
            self._memory[key] = found()
        return self._memory[key]

    @cached_property
    def sectors(self) -> dict[Sector, dict[Key, float]]:
        """For each sector that a query sees, what each table weighs there: w²·Π a over the attributes in differences.

        Attributes of one class that are averaged weigh a + bm. Tables that weigh nothing in a sector are left out, and
        so are sectors in which all do.
        """
        found: dict[Sector, dict[Key, float]] = {}
        for key, factors in self.tables.items():
            choices = [self._choices(place, factor) for place, factor in enumerate(factors)]
            count = math.prod(len(choice) for choice in choices)
            if count + len(found) > MOST_SECTORS:
                fine = sum(len(choice) > 1 for choice in choices)
                raise TooLarge(
                    f"a table by {fine} attributes among {len(self.tables):,} tables",
                    why=f"at most {MOST_SECTORS:,} kinds of differences are told apart, and it alone has {count:,}",
                    instead="ask for tables of fewer attributes",
                )
            for chosen in product(*choices):
                weight = self.squared_weights[key] * math.prod(value for _, value in chosen)
                if weight > 0:
                    sector = frozenset((i, one) for i, (one, _) in enumerate(chosen) if one is not None)
                    found.setdefault(sector, {})[key] = weight
        return found

    def _choices(self, place: int, factor: Factor) -> list[tuple[int | None, float]]:
        own = self.own(place, factor)
        mean = float(self.averaged_gram(place, factor)[0, 0]) if self.levels[place].orbits == 1 else 1.0
        return [(None, mean), *((int(one), float(own[one])) for one in np.flatnonzero(own > 0))]

    def multiplicity(self, sector: Sector) -> float:
        """How many copies of a sector's block there are: Π(m − 1)."""
        return float(math.prod(int(self.levels[place].members[one]) - 1 for place, one in sector))

    def averaged(self, sector: Sector) -> tuple[int, ...]:
        """Places of the attributes of several classes that a sector averages."""
        differing = {place for place, _ in sector}
        return tuple(place for place, level in enumerate(self.levels) if level.orbits > 1 and place not in differing)

    def orbits_of(self, sector: Sector) -> Indices:
        """The orbits of a sector among all orbits, row-major over the averaged attributes."""
        grid = np.arange(self.orbit_count).reshape(self.orbit_shape)
        fixed = dict(sector)
        return np.asarray(grid[tuple(fixed.get(place, slice(None)) for place in range(len(self.axes)))].reshape(-1))

    def seen(self, sector: Sector) -> tuple[Indices, Indices]:
        """Which of `cells` a sector has, and where each stands among the sector's own orbits."""
        places = np.searchsorted(self.cells, orbits := self.orbits_of(sector))
        places = np.minimum(places, len(self.cells) - 1)
        inside = np.flatnonzero(self.cells[places] == orbits)
        return places[inside], inside

    def gram(self, sector: Sector = EVERYTHING_AVERAGED) -> Floats:
        """V_S = Σ_t weight_t ⊗ FᵀF over the orbits of a sector."""
        places = self.averaged(sector)
        size = math.prod(self.orbit_shape[place] for place in places)
        affordable(size, size, "a Gram matrix")
        total = np.zeros((size, size))
        for key, weight in self.sectors[sector].items():
            total += weight * kron([self.averaged_gram(place, self.tables[key][place]) for place in places])
        return total

    def rows(self, sector: Sector = EVERYTHING_AVERAGED) -> Floats:
        """Rows W with WᵀW = V_S over the orbits of a sector: as many a table as its factors have ranks."""
        places, blocks = self.averaged(sector), []
        for key, weight in self._merged_weights(sector).items():
            blocks.append(math.sqrt(weight) * kron([self._root(place, self.tables[key][place]) for place in places]))
        return np.concatenate(blocks)

    def row_count(self, sector: Sector = EVERYTHING_AVERAGED) -> int:
        """How many rows `rows` would give."""
        places = self.averaged(sector)
        return sum(
            math.prod(len(self._root(place, self.tables[key][place])) for place in places)
            for key in self._merged_weights(sector)
        )

    def _root(self, place: int, factor: Factor) -> Floats:
        """R with RᵀR = FᵀF on averages of classes, and no more rows than its rank."""
        return self._known(("root", place, factor.key), lambda: compact_root(self.averaged_gram(place, factor)))

    def _merged_weights(self, sector: Sector) -> dict[Key, float]:
        """Weights of tables that differ over the averaged attributes; equal ones added up."""
        found: dict[Key, tuple[Key, float]] = {}
        for key, weight in self.sectors[sector].items():
            short = tuple(key[place] for place in self.averaged(sector))
            found[short] = (key, found.get(short, (key, 0.0))[1] + weight)
        return dict(found.values())


def parts_of(workload: Workload, *, split: bool = True) -> tuple[Part, ...]:
    """The parts of a workload: attributes split off one by one where the tables are all combinations (if `split`)."""
    squares: dict[Key, Fraction] = {}
    tables: dict[Key, tuple[Factor, ...]] = {}
    for table in workload.tables:
        key = tuple(factor.key for factor in table.factors)
        tables[key] = table.factors
        squares[key] = squares.get(key, Fraction(0)) + table.weight**2
    axes = tuple(range(len(workload.domain.shape)))
    if workload.domain.structural_zeros:
        return (_part_with_zeros(workload, tables, squares),)
    found = []
    for axis in axes if split else ():
        place = axes.index(axis)
        alone = _alone(squares, place) if len(axes) > 1 else None
        if alone is not None:
            single: dict[Key, tuple[Factor, ...]] = {
                (key,): (next(f[place] for k, f in tables.items() if k[place] == key),) for key in alone
            }
            found.append(_part((axis,), single, {(key,): value for key, value in alone.items()}))
            first = next(iter(alone))
            axes = axes[:place] + axes[place + 1 :]
            squares = {k[:place] + k[place + 1 :]: value for k, value in squares.items() if k[place] == first}
            tables = {k[:place] + k[place + 1 :]: f[:place] + f[place + 1 :] for k, f in tables.items()}
    found.append(_part(axes, tables, squares))
    return tuple(found)


def _alone(squares: dict[Key, Fraction], place: int) -> dict[Hashable, Fraction] | None:
    """Squared weights of one attribute's factors relative to the first, if they multiply those of the rest."""
    rest: dict[Key, dict[Hashable, Fraction]] = {}
    for key, value in squares.items():
        rest.setdefault(key[:place] + key[place + 1 :], {})[key[place]] = value
    first_key = next(iter(squares))[place]
    ratios: dict[Hashable, Fraction] | None = None
    for values in rest.values():
        if first_key not in values:
            return None
        found = {key: value / values[first_key] for key, value in values.items()}
        if ratios is not None and found != ratios:
            return None
        ratios = found
    return ratios


def _part(axes: tuple[int, ...], tables: dict[Key, tuple[Factor, ...]], squares: dict[Key, Fraction]) -> Part:
    levels = tuple(axis_of([factors[place] for factors in tables.values()]) for place in range(len(axes)))
    return Part(axes, levels, tables, {key: float(value) for key, value in squares.items()})


def _part_with_zeros(workload: Workload, tables: dict[Key, tuple[Factor, ...]], squares: dict[Key, Fraction]) -> Part:
    """All attributes together: a merged cell is possible where one of its cells is."""
    if workload.domain.size > LARGEST_DENSE:
        raise TooLarge(
            f"a strategy for {workload.domain.size:.3g} cells with structural zeros",
            why=f"impossible cells are listed for at most {LARGEST_DENSE:,} cells",
            instead="optimize for fewer attributes, or without the structural zeros",
        )
    part = _part(tuple(range(len(workload.domain.shape))), tables, squares)
    counts: Numbers = possible_cells(workload.domain).reshape(workload.domain.shape).astype(np.int64)
    for place, level in enumerate(part.levels):
        counts = level.merge(counts, place)
    possible = counts > 0
    levels = tuple(
        with_zeros(
            level,
            [factors[place] for factors in tables.values()],
            np.moveaxis(possible, place, 0).reshape(level.merged, -1),
        )
        for place, level in enumerate(part.levels)
    )
    return Part(part.axes, levels, tables, part.squared_weights, possible)


def kron(matrices: Sequence[Floats]) -> Floats:
    """The product of matrices of one attribute each; 1 × 1 where there are none."""
    found: Floats = np.ones((1, 1))
    for matrix in matrices:
        found = found * matrix if matrix.size == 1 else np.asarray(np.kron(found, matrix), dtype=np.float64)
    return found


def compact_root(gram: Floats) -> Floats:
    """R with RᵀR = G for a positive semidefinite G, with as many rows as its rank."""
    if len(gram) == 1:
        return np.sqrt(gram)
    values, vectors = np.linalg.eigh(gram)
    kept = values > values[-1] * len(values) * np.finfo(np.float64).eps
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept])).T)


def asks_nothing() -> InvalidWorkload:
    """The refusal of queries without an answer that could differ."""
    return InvalidWorkload(
        "a strategy for queries that are zero on every cell that can occur",
        why="their answers are 0 whatever the data are, so there is nothing to measure",
        instead="leave these tables out",
    )


def _outer(vectors: Sequence[NDArray[Any]]) -> NDArray[Any]:
    found = vectors[0]
    for vector in vectors[1:]:
        found = np.multiply.outer(found, vector).reshape(-1)
    return found
