"""A workload taken apart before anything is optimized: independent groups of attributes, and symmetric sectors.

A workload is a product of smaller ones where its tables are all combinations of theirs. Within a part each attribute
has classes of exchangeable levels (`axes`), and the cells of the part form orbits: one class an attribute. A *sector* S
says which attributes are in the differences of which class, (I − J/m on the class c) for each (i, c) ∈ S, the others
being averaged over classes, 1ᵀ/√m; sectors do not mix, so the Gram matrix V of the workload splits into one small block
V_S for each sector, of multiplicity Π(m − 1), and a strategy that treats exchangeable levels alike has
AᵀA = Σ_S X_S ⊗ P_S. What is public, exact totals and the number of records where one is replaced, needs no measurement.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism.strategy.axes import Axis, axis_of, ends_of, with_zeros
from dualmandate.population import Domain, Neighbors, Protection
from dualmandate.population.arrays import Booleans, Floats, Indices, Integers
from dualmandate.population.machine import machine_memory, size_words
from dualmandate.population.protection import group_labels, steps
from dualmandate.population.shown import one_line
from dualmandate.workload import Factor, Groups, Total, Workload
from dualmandate.workload.factor import LARGEST_DENSE, Numbers, affordable
from dualmandate.workload.levels import column_classes, row_ids

SHARE = 0.8  # of the machine's memory that one piece of work may take
MOST_SECTORS = 2**16
LARGEST_BOX = 2**24  # orbits that are told apart
GRAM_COPIES = 6  # of a Gram matrix that the work on it holds
LARGEST_GRAM = 2**13  # orbits of which every two are compared; 512 MiB
CHUNK = 2**23  # numbers that are held while errors of queries are added up

Key = tuple[Hashable, ...]
Sector = frozenset[tuple[int, int]]  # (place of an attribute, class whose differences it is in)
EVERYTHING_AVERAGED: Sector = frozenset()
Factors = tuple[Factor, ...]


def kron(matrices: Sequence[NDArray[Any]]) -> Floats:
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


def orthonormal(rows: Floats) -> Floats:
    """Orthonormal rows that span the same space."""
    if rows.size == 0:  # nothing is public, or nothing is measured
        return rows[:0]
    _, singular, right = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(right[singular > max(rows.shape) * np.finfo(np.float64).eps * max(float(singular[0]), 1e-300)])


def without(gram: Floats, basis: Floats) -> Floats:
    """A positive semidefinite matrix projected on what is orthogonal to some orthonormal rows: (I − Π)V(I − Π)."""
    if len(basis) == 0:
        return gram
    half = gram - (gram @ basis.T) @ basis
    found = half - basis.T @ (basis @ half)
    return np.asarray((found + found.T) / 2.0)


def outer(vectors: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Products of one entry of each vector, row-major."""
    return np.asarray(reduce(np.multiply.outer, vectors)).reshape(-1)


def require_memory(needed: float, what: str, *, instead: str) -> None:
    """Refuse work that takes more bytes than this machine can give it."""
    available = SHARE * machine_memory()
    if needed > available:
        raise TooLarge(
            f"{what}, which takes some {size_words(needed)} of memory",
            why=f"this machine can give it {size_words(available)}",
            instead=instead,
        )


@dataclass(frozen=True, eq=False)
class WorkloadBlock:
    """Attributes whose tables are not a product of smaller workloads, with the squared weight of each table."""

    axes: tuple[int, ...]  # attributes of the domain
    levels: tuple[Axis, ...]  # one an attribute
    tables: dict[Key, Factors]
    squared_weights: dict[Key, float]
    possible: Booleans | None = None  # merged cells that can occur, in the merged shape; None: all
    public: tuple[Factors, ...] = ()  # tables that are known exactly without being measured

    __repr__ = one_line

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
        """Orbits that can occur and that some query asks about, row-major; all that can occur beside public totals."""
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
                asked |= outer(list(columns))
        if self.possible is not None:
            asked &= self.possible[np.ix_(*(level.first for level in self.levels))].reshape(-1)
        if not asked.any():
            raise asks_nothing()
        return self.possible_orbits if self.public else np.flatnonzero(asked)

    @cached_property
    def possible_orbits(self) -> Indices:
        """Orbits that can occur, asked about or not, row-major."""
        if self.possible is None:
            return np.arange(self.orbit_count)
        return np.flatnonzero(self.possible[np.ix_(*(level.first for level in self.levels))])

    @cached_property
    def orbit_sizes(self) -> Floats:
        """Merged cells in each of `cells`, N."""
        return outer([level.members.astype(np.float64) for level in self.levels])[self.cells]

    def cell_by_cell(self) -> WorkloadBlock:
        """The same part with every merged cell an orbit of its own."""
        return replace(self, levels=tuple(level.level_by_level() for level in self.levels))

    def ends(self) -> WorkloadBlock:
        """The same part with the ends alone of attributes that are only counted and summed; itself where there is none.

        No strategy for the part errs less than the best one for the ends, which mixes into one that errs as little.
        """
        if self.possible is not None:
            return self
        asked = [[table[place] for table in (*self.tables.values(), *self.public)] for place in range(len(self.axes))]
        levels = tuple(map(ends_of, self.levels, asked))
        return self if levels == self.levels else replace(self, levels=levels)

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
        """For each sector in which something is left to measure, what each table weighs there.

        That is w²·Π a over the attributes in differences; attributes of one class that are averaged weigh a + bm.
        Tables that weigh nothing in a sector are left out.
        """
        found = self._all_sectors
        if self.possible is not None:  # one about cells that structural zeros rule out asks for nothing
            found = {sector: each for sector, each in found.items() if len(self.seen(sector)[0])}
        if not self.public:
            return found
        found = {sector: each for sector, each in found.items() if not self._is_public(sector)}
        if not found:
            raise decided_by_totals()
        return found

    def _is_public(self, sector: Sector) -> bool:
        """Whether every query of a sector is decided by what is public."""
        whole = float(np.trace(self._asked_gram(sector)))
        return float(np.trace(self.gram(sector))) <= 1e-10 * whole

    @cached_property
    def _all_sectors(self) -> dict[Sector, dict[Key, float]]:
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
            for sector, share in _sectors(choices):
                if (weight := self.squared_weights[key] * share) > 0:
                    found.setdefault(sector, {})[key] = weight
        return found

    @cached_property
    def public_sectors(self) -> dict[Sector, list[int]]:
        """For each sector in which something is public, the numbers of the public tables."""
        found: dict[Sector, list[int]] = {}
        for number, factors in enumerate(self.public):
            for sector, _ in _sectors([self._choices(place, factor) for place, factor in enumerate(factors)]):
                found.setdefault(sector, []).append(number)
        return found

    def public_basis(self, sector: Sector, masses: Floats | None = None) -> Floats:
        """Orthonormal rows that span what is public in a sector, over its orbits that are measured, times √mass."""
        places, inside = self.averaged(sector), self.seen(sector)[1]
        tables = [self.public[number] for number in self.public_sectors.get(sector, [])]
        found = [kron([self._root(place, table[place]) for place in places])[:, inside] for table in tables]
        rows = np.concatenate([np.zeros((0, len(inside))), *found])
        return orthonormal(rows if masses is None else rows * np.sqrt(masses))

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
        """V_S = Σ_t weight_t ⊗ FᵀF over the orbits of a sector, less what is public."""
        asked = self._asked_gram(sector)
        if sector not in self.public_sectors:
            return asked
        inside, private = np.ix_(self.seen(sector)[1], self.seen(sector)[1]), np.zeros_like(asked)
        private[inside] = without(asked[inside], self.public_basis(sector))
        return private

    def _asked_gram(self, sector: Sector) -> Floats:
        places = self.averaged(sector)
        size = math.prod(self.orbit_shape[place] for place in places)
        asked = f"a strategy for {size:,} cells that queries tell apart"
        instead = "group levels, ask about fewer attributes at once, or optimize some of the tables alone"
        if size > LARGEST_GRAM:
            why = f"at most {LARGEST_GRAM:,} such cells are compared with each other"
            raise TooLarge(asked, why=why, instead=instead)
        require_memory(GRAM_COPIES * 8.0 * size**2, asked, instead=instead)
        total = np.zeros((size, size))
        for key, weight in self._all_sectors[sector].items():
            total += weight * kron([self.averaged_gram(place, self.tables[key][place]) for place in places])
        return total

    def table_gram(self, key: Key, sector: Sector) -> Floats | None:
        """⊗ FᵀF of one table over the orbits of a sector, public or not, without its weight; None where it is 0."""
        fixed, scale = dict(sector), 1.0
        for place, factor in enumerate(self.tables[key]):
            if place in fixed:
                scale *= float(self.own(place, factor)[fixed[place]])
            elif self.levels[place].orbits == 1:
                scale *= float(self.averaged_gram(place, factor)[0, 0])
        if scale == 0.0:
            return None
        return scale * kron([self.averaged_gram(place, self.tables[key][place]) for place in self.averaged(sector)])

    def rows(self, sector: Sector = EVERYTHING_AVERAGED) -> Floats:
        """Rows W with WᵀW = V_S over the orbits of a sector, less what is public; as many a table as its ranks."""
        places, blocks = self.averaged(sector), []
        for key, weight in self._merged_weights(sector).items():
            blocks.append(math.sqrt(weight) * kron([self._root(place, self.tables[key][place]) for place in places]))
        found = np.concatenate(blocks)
        if sector not in self.public_sectors:
            return found
        inside, private, basis = self.seen(sector)[1], np.zeros_like(found), self.public_basis(sector)
        private[:, inside] = found[:, inside] - (found[:, inside] @ basis.T) @ basis
        return private

    def row_count(self, sector: Sector = EVERYTHING_AVERAGED) -> int:
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


def _sectors(choices: Sequence[Sequence[tuple[int | None, float]]]) -> Iterator[tuple[Sector, float]]:
    """All combinations of an average or a class of differences an attribute, each with the product of its numbers."""
    for chosen in product(*choices):
        sector = frozenset((place, one) for place, (one, _) in enumerate(chosen) if one is not None)
        yield sector, math.prod(value for _, value in chosen)


def asks_nothing() -> InvalidWorkload:
    """The refusal of queries without an answer that could differ."""
    return InvalidWorkload(
        "a strategy for queries that are zero on every cell that can occur",
        why="their answers are 0 whatever the data are, so there is nothing to measure",
        instead="leave these tables out",
    )


def copies(part: WorkloadBlock, sector: Sector) -> int:
    """Combinations of levels of the classes that a sector looks at the differences of."""
    return math.prod(int(part.levels[place].members[one]) for place, one in sector)


def component(part: WorkloadBlock, counts: Floats, sector: Sector) -> Floats:
    """Histograms over merged cells, shape (k, *merged_shape), in a sector; shape (k, orbits of the sector, copies)."""
    fixed, values = dict(sector), counts
    for place, level in enumerate(part.levels):
        if place in fixed:
            values = np.take(values, level.levels_of(fixed[place]), axis=1 + place)
            values = values - values.mean(axis=1 + place, keepdims=True)
        else:
            values = level.averages(values, 1 + place)
    order = [1 + place for place in range(len(part.levels)) if place not in fixed]
    shaped = values.transpose([0, *order, *(1 + place for place in fixed)])
    return shaped.reshape(len(counts), math.prod(shaped.shape[1 : 1 + len(order)]), -1)


def add_component(part: WorkloadBlock, total: Floats, values: Floats, sector: Sector) -> None:
    """Add numbers of a sector, shape (k, orbits of the sector, copies), to counts over merged cells, in place."""
    fixed, levels = dict(sector), part.levels
    averaged = [place for place in range(len(levels)) if place not in fixed]
    shape = [part.orbit_shape[place] for place in averaged]
    full = values.reshape(len(values), *shape, *(int(levels[place].members[one]) for place, one in fixed.items()))
    order = [*averaged, *fixed]
    full = full.transpose([0, *(1 + order.index(place) for place in range(len(levels)))])
    index = [slice(None)] + [
        level.levels_of(fixed[place]) if place in fixed else np.arange(level.merged)
        for place, level in enumerate(levels)
    ]
    for place, level in enumerate(levels):
        if place in fixed:
            full = full - full.mean(axis=1 + place, keepdims=True)
        else:
            full = level.from_averages(full, 1 + place)
    total[np.ix_(np.arange(len(values)), *index[1:])] += full  # type: ignore[arg-type]


def squared_lengths(part: WorkloadBlock, key: Key, inverses: Mapping[Sector, tuple[Indices, Floats]]) -> Floats:
    """Squared length of each row of FA⁺ for one table, by rows of each factor.

    `inverses` has for each sector some of its orbits, and B_S over them (orbits × measurements) with X_S⁻¹ = B_SB_Sᵀ.
    """
    factors, levels = part.tables[key], part.levels
    maps = [level.averaged(factor) for level, factor in zip(levels, factors, strict=True)]
    spreads: dict[tuple[int, int], Floats] = {}
    total: Floats = np.zeros(tuple(factor.rows for factor in factors))
    for sector, (orbits, inverse) in inverses.items():
        for place, one in sector - spreads.keys():
            spreads[place, one] = levels[place].spread(factors[place], one)
        if not all(spreads[each].any() for each in sector):
            continue
        fixed = [place for place, _ in sector]
        averaged = [place for place in range(len(levels)) if place not in fixed]
        squares = _squares([maps[place] for place in averaged], orbits, inverse)
        shaped = reduce(np.multiply.outer, [spreads[each] for each in sector], squares)
        order = [*averaged, *fixed]
        total += shaped.transpose([order.index(place) for place in range(len(order))])
    return total


def _squares(maps: Sequence[Floats], orbits: Indices, inverse: Floats) -> Floats:
    """Σ over measured rows of (F·B_S)², by rows of each factor of an averaged attribute."""
    shape = tuple(each.shape[1] for each in maps)
    total = np.zeros(tuple(len(each) for each in maps))
    width = max(1, CHUNK // max(total.size, math.prod(shape)))
    for start in range(0, inverse.shape[1], width):
        some = inverse[:, start : start + width]
        values = np.zeros((math.prod(shape), some.shape[1]))
        values[orbits] = some
        values = values.reshape(*shape, some.shape[1])
        for axis, each in enumerate(maps):
            values = np.moveaxis(np.tensordot(each, values, axes=([1], [axis])), 0, axis)
        total += np.square(values).sum(axis=-1)
    return total


def parts_of(
    workload: Workload,
    values: Mapping[str, Fraction] | None = None,
    *,
    split: bool = True,
    public: tuple[Factors, ...] = (),
) -> tuple[WorkloadBlock, ...]:
    """The parts of a workload: attributes split off one by one where the tables are all combinations (if `split`).

    `values` says what the squared error of each table costs (1 where None). With `public` tables there is one part.
    """
    squares: dict[Key, Fraction] = {}
    tables: dict[Key, Factors] = {}
    for table in workload.tables:
        key = tuple(factor.key for factor in table.factors)
        tables[key] = table.factors
        worth = Fraction(1) if values is None else values[table.name]
        squares[key] = squares.get(key, Fraction(0)) + table.weight**2 * worth
    axes = tuple(range(len(workload.domain.shape)))
    if workload.domain.structural_zeros:
        return (_part_with_zeros(workload, tables, squares, public=public),)
    if public:
        return (_part(axes, tables, squares, public=public),)
    found = []
    for axis in axes if split else ():
        place = axes.index(axis)
        alone = _alone(squares, place) if len(axes) > 1 else None
        if alone is not None:
            single: dict[Key, Factors] = {
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
    if len(set(Counter(key[place] for key in squares).values())) > 1:
        return None  # not every one of them stands beside the same others
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


def _part(
    axes: tuple[int, ...], tables: dict[Key, Factors], squares: dict[Key, Fraction], *, public: tuple[Factors, ...] = ()
) -> WorkloadBlock:
    levels = tuple(axis_of([factors[place] for factors in (*tables.values(), *public)]) for place in range(len(axes)))
    return WorkloadBlock(axes, levels, tables, {key: float(value) for key, value in squares.items()}, public=public)


def _part_with_zeros(
    workload: Workload, tables: dict[Key, Factors], squares: dict[Key, Fraction], *, public: tuple[Factors, ...]
) -> WorkloadBlock:
    """All attributes together: a merged cell is possible where one of its cells is."""
    if workload.domain.size > LARGEST_DENSE:
        raise TooLarge(
            f"a strategy for {workload.domain.size:.3g} cells with structural zeros",
            why=f"impossible cells are listed for at most {LARGEST_DENSE:,} cells",
            instead="optimize for fewer attributes, or without the structural zeros",
        )
    part = _part(tuple(range(len(workload.domain.shape))), tables, squares, public=public)
    counts: Numbers = workload.domain.possible_cells().reshape(workload.domain.shape).astype(np.int64)
    for place, level in enumerate(part.levels):
        counts = level.merge(counts, place)
    possible = counts > 0
    levels = []
    for place, level in enumerate(part.levels):
        asked = [factors[place] for factors in (*tables.values(), *public)]
        levels.append(with_zeros(level, asked, np.moveaxis(possible, place, 0).reshape(level.merged, -1)))
    return replace(part, levels=tuple(levels), possible=possible)


def public_tables(domain: Domain, protection: Protection) -> tuple[Factors, ...]:
    """The tables that are published exactly, or known beforehand; none where records may be added and removed."""
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        return ()
    found: list[Factors] = [tuple(Total(size) for size in domain.shape)]
    for invariant in protection.invariants:
        labels = group_labels(domain, invariant)
        found.append(
            tuple(
                Groups.of_labels(labels[axis], [str(group) for group in range(int(labels[axis].max()) + 1)])
                if axis in labels
                else Total(size)
                for axis, size in enumerate(domain.shape)
            )
        )
    return tuple(found)


def same_groups(part: WorkloadBlock, domain: Domain, protection: Protection) -> Integers | None:
    """Labels of the merged cells of a part of all attributes: a record moves between equal ones; None: anywhere."""
    kept = steps(domain, protection).kept
    if not kept:
        return None
    tables = []
    for invariant in kept:
        labels = group_labels(domain, invariant)
        pairs = [(labels.get(axis), level) for axis, level in zip(part.axes, part.levels, strict=True)]
        tables.append([np.zeros(each.merged, np.int64) if of is None else of[each.kept] for of, each in pairs])
    return _cell_labels(part, tables)


def public_labels(part: WorkloadBlock) -> Integers | None:
    """A label for each merged cell: a record that moves between equal labels changes nothing that is public.

    None where nothing is public, or where cells are too many to have one each.
    """
    if not part.public or part.merged_size > LARGEST_DENSE:
        return None
    tables = []
    for factors in part.public:
        pairs = [(factor, level.kept) for factor, level in zip(factors, part.levels, strict=True)]
        tables.append([np.where(f.counts[kept] == 0, -1, column_classes([f], f.size)[kept]) for f, kept in pairs])
    return _cell_labels(part, tables)


def _cell_labels(part: WorkloadBlock, tables: Sequence[Sequence[Integers]]) -> Integers:
    """Labels of merged cells that are equal where every table has them in one group, or outside of its groups.

    A table has the group of each merged level, attribute by attribute; −1 where it has none.
    """
    columns = []
    for labels in tables:
        found, outside = np.zeros((), dtype=np.int64), np.zeros((), dtype=np.bool_)
        for here in labels:
            found = np.add.outer(found * (int(here.max()) + 2), here + 1)
            outside = np.logical_or.outer(outside, here < 0)
        columns.append(np.where(outside, -1, found).reshape(-1))
    return row_ids(columns, part.merged_size)


def decided_by_totals() -> InvalidMechanism:
    """The refusal to look for a strategy where there is nothing to measure."""
    return InvalidMechanism(
        "a strategy for answers that no neighboring file can change",
        why="exact totals, or the public number of records, decide them all: noise protects nothing",
        instead="publish them as the exact totals that they are, or drop the invariant",
    )
