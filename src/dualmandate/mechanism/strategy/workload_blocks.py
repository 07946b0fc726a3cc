"""A workload taken apart before anything is optimized: independent groups of attributes, and symmetric sectors.

A workload is a product of smaller ones where its tables are all combinations of theirs. Within a part each attribute
has classes of exchangeable levels (`axes`), and the cells of the part form orbits: one class an attribute. A *sector*
says which attributes are in the differences of which class, the others being averaged over classes; sectors do not
mix, so the Gram matrix V of the workload splits into one small block V_S for each sector, of multiplicity Π(m − 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism.strategy.algebra import compact_root, kron, orthonormal, outer, without
from dualmandate.mechanism.strategy.axes import Axis, Floats, Indices
from dualmandate.mechanism.strategy.memory import require_memory
from dualmandate.workload import Factor
from dualmandate.workload.factor import affordable

MOST_SECTORS = 2**16
LARGEST_BOX = 2**24  # orbits that are told apart
GRAM_COPIES = 6  # of a Gram matrix that the work on it holds
LARGEST_GRAM = 2**13  # orbits of which every two are compared; 512 MiB

Key = tuple[Hashable, ...]
Sector = frozenset[tuple[int, int]]  # (place of an attribute, class whose differences it is in)
EVERYTHING_AVERAGED: Sector = frozenset()


@dataclass(frozen=True, eq=False)
class WorkloadBlock:
    """Attributes whose tables are not a product of smaller workloads, with the squared weight of each table."""

    axes: tuple[int, ...]  # attributes of the domain
    levels: tuple[Axis, ...]  # one an attribute
    tables: dict[Key, tuple[Factor, ...]]
    squared_weights: dict[Key, float]
    possible: NDArray[np.bool_] | None = None  # merged cells that can occur, in the merged shape; None: all
    public: tuple[tuple[Factor, ...], ...] = ()  # tables that are known exactly without being measured

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
        asked = np.full(self.orbit_count, bool(self.public))
        for key, factors in self.tables.items():
            if self.squared_weights[key] > 0:
                columns = (f.counts[level.kept[level.first]] > 0 for f, level in zip(factors, self.levels, strict=True))
                asked |= outer(list(columns))
        if self.possible is not None:
            asked &= self.possible[np.ix_(*(level.first for level in self.levels))].reshape(-1)
        if not asked.any():
            raise asks_nothing()
        return np.flatnonzero(asked)

    @cached_property
    def orbit_sizes(self) -> Floats:
        """Merged cells in each of `cells`, N."""
        return outer([level.members.astype(np.float64) for level in self.levels])[self.cells]

    def cell_by_cell(self) -> WorkloadBlock:
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
        """For each sector in which something is left to measure, what each table weighs there.

        That is w²·Π a over the attributes in differences; attributes of one class that are averaged weigh a + bm.
        Tables that weigh nothing in a sector are left out.
        """
        if not self.public:
            return self._all_sectors
        found = {sector: each for sector, each in self._all_sectors.items() if not self._is_public(sector)}
        if not found:
            raise InvalidMechanism(
                "a strategy for answers that no neighboring file can change",
                why="exact totals, or the public number of records, decide them all: noise protects nothing",
                instead="publish them as the exact totals that they are, or drop the invariant",
            )
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
            for chosen in product(*choices):
                weight = self.squared_weights[key] * math.prod(value for _, value in chosen)
                if weight > 0:
                    sector = frozenset((i, one) for i, (one, _) in enumerate(chosen) if one is not None)
                    found.setdefault(sector, {})[key] = weight
        return found

    @cached_property
    def public_sectors(self) -> dict[Sector, list[int]]:
        """For each sector in which something is public, the numbers of the public tables."""
        found: dict[Sector, list[int]] = {}
        for number, factors in enumerate(self.public):
            choices = [self._choices(place, factor) for place, factor in enumerate(factors)]
            for chosen in product(*choices):
                sector = frozenset((i, one) for i, (one, _) in enumerate(chosen) if one is not None)
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
        if size > LARGEST_GRAM:
            raise TooLarge(
                f"a strategy for {size:,} cells that queries tell apart",
                why=f"at most {LARGEST_GRAM:,} such cells are compared with each other",
                instead="group levels, ask about fewer attributes at once, or optimize some of the tables alone",
            )
        require_memory(
            GRAM_COPIES * 8.0 * size**2,
            f"a strategy for {size:,} cells that queries tell apart",
            instead="group levels, ask about fewer attributes at once, or optimize some of the tables alone",
        )
        total = np.zeros((size, size))
        for key, weight in self._all_sectors[sector].items():
            total += weight * kron([self.averaged_gram(place, self.tables[key][place]) for place in places])
        return total

    def tells_apart(self, key: Key, sector: Sector) -> bool:
        """Whether a table tells levels of all classes apart that a sector looks at the differences of."""
        return all(self.own(place, self.tables[key][place])[one] > 0 for place, one in sector)

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
        """Rows W with WᵀW = V_S over the orbits of a sector: as many a table as its factors have ranks.

        What is public is left out of them.
        """
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


def asks_nothing() -> InvalidWorkload:
    """The refusal of queries without an answer that could differ."""
    return InvalidWorkload(
        "a strategy for queries that are zero on every cell that can occur",
        why="their answers are 0 whatever the data are, so there is nothing to measure",
        instead="leave these tables out",
    )
