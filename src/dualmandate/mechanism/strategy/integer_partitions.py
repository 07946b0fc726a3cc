"""Tables of plain counts as they are published: each count a whole number with a rational loss of its own.

Nothing is rounded but the weights, down to multiples of 2⁻¹⁸; a record is in at most one row of each table, so that it
moves the rows by Σ_t w_t, and a record that changes its cell by the weights of both cells in the tables in which their
rows differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, reduce

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.strategy.axes import Floats, Indices
from dualmandate.mechanism.strategy.integer_rows import OrbitPairs
from dualmandate.mechanism.strategy.partition_stack import GroupStack
from dualmandate.mechanism.strategy.symmetry_blocks import squared_lengths
from dualmandate.mechanism.strategy.workload_blocks import Key, Sector, WorkloadBlock
from dualmandate.workload import Factor

BITS = 18  # of a weight, after the binary point


@dataclass(frozen=True, eq=False)
class IntegerPartitions:
    """Counts of groups of cells with weights that are whole multiples of 2^-BITS; an `ExactBlock`."""

    stack: GroupStack

    @property
    def part(self) -> WorkloadBlock:
        """The attributes and tables."""
        return self.stack.part

    @property
    def words(self) -> str:
        """What is measured, in words."""
        return self.stack.words

    @property
    def rows(self) -> int:
        """Number of measurements."""
        return self.stack.rows

    @cached_property
    def _distinct(self) -> Floats:
        """Different weights, from the largest to the smallest."""
        found = np.unique(self.stack.flat)[::-1]
        return found[found > 0]

    @property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight of each kind of row."""
        return tuple(Fraction(float(weight)) for weight in self._distinct)

    def _kinds_of(self, weights: Floats) -> Indices:
        return len(self._distinct) - 1 - np.searchsorted(self._distinct[::-1], weights)

    def kinds(self) -> Indices:
        """The kind of each row, in the order of `count`; shape (rows,)."""
        return np.concatenate([self._kinds_of(weights[kept]) for _, weights, kept in self.stack.layout])

    @cached_property
    def _moves(self) -> NDArray[np.int64]:
        """The weight of each orbit's group in each table, in units of 2^-BITS; shape (tables, orbits)."""
        return np.rint(np.ldexp(self.stack.flat, BITS)).astype(np.int64)[self.stack.places.places]

    def largest_column(self, power: int) -> Fraction:
        """The largest Σ w^power over cells that can occur, exactly: a record is in one row of each table."""
        return Fraction(int((self._moves**power).sum(axis=0).max()), 1 << power * BITS)

    def largest_difference(self, power: int, same: NDArray[np.int64] | None) -> tuple[Fraction, bool]:
        """The largest Σ (w^power + w′^power) over the tables in which two cells are in different rows; exact."""
        pairs = OrbitPairs.of(self.part)
        if pairs.are_many:
            return 2 * self.largest_column(power), False
        labels = pairs.labels(same)
        moves, groups = self._moves**power, self.stack.places.places
        best = 0
        for start, stop in pairs.chunks():
            apart = np.zeros((len(pairs.patterns), stop - start, len(pairs.orbits) - start), dtype=np.int64)
            for table, (move, group) in enumerate(zip(moves, groups, strict=True)):
                shared = self._same_levels(table, pairs)[:, start:stop, None] & (
                    group[start:stop, None] == group[start:]
                )
                apart += np.where(shared, 0, move[start:stop, None] + move[None, start:])
            allowed = pairs.allowed(start, stop, labels)
            best = max(best, int(np.max(apart, where=allowed, initial=0)))
        return Fraction(best, 1 << power * BITS), labels.exact

    def _same_levels(self, table: int, pairs: OrbitPairs) -> NDArray[np.bool_]:
        """For each pattern and orbit, whether cells of one group are in one row: levels told apart are the same."""
        found = np.ones((len(pairs.patterns), len(pairs.orbits)), dtype=np.bool_)
        for bit, place in enumerate(pairs.varied):
            told_apart = np.asarray(self.stack.groupings[table][place].fine)[pairs.classes[place]]
            found &= pairs.patterns[:, bit, None] | ~told_apart
        return found

    def count(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts of the groups for whole histograms over merged cells; shape (k, rows)."""
        found = []
        for factors, _, kept in self.stack.layout:
            values = counts
            for place, factor in enumerate(factors):
                values = factor.apply(values, 1 + place)
            found.append(values.reshape(len(counts), -1)[:, kept])
        return np.concatenate(found, axis=1)

    def estimate(self, measured: Floats) -> Floats:
        """Counts over merged cells that give the best linear unbiased answers, from weighted rows w·(a·x + noise)."""
        return self.stack.estimate(measured)

    def table_sums(self, key: Key) -> Floats:
        """Σ of (FA⁺)² over the queries of a table and the rows of each kind: μ_S·w²·u X⁺V_tX⁺u; shape (kinds,)."""
        total = np.zeros(len(self._distinct))
        for sector, (inside, private) in self.stack.inverses.items():
            gram = self.part.table_gram(key, sector)
            if gram is None:
                continue
            groups, rows = self.stack.rows_of(sector)
            taken = (rows @ self.stack.roots[sector][1]) @ private.T
            squares = np.einsum("ij,ij->i", taken @ gram[np.ix_(inside, inside)], taken)
            weights = self.stack.flat[groups]
            used = weights > 0
            shares = self.part.multiplicity(sector) * weights**2 * squares
            np.add.at(total, self._kinds_of(weights[used]), shares[used])
        return total

    def coefficients(self, key: Key, variances: Floats | None = None) -> Floats:
        """Σ_r (FA⁺)²·v of each query of a table, v by the kind of row (1 where not stated); by rows of each factor."""
        if variances is None:
            return self.stack.coefficients(key)
        inverses = {}
        for sector, (inside, private) in self.stack.inverses.items():
            groups, rows = self.stack.rows_of(sector)
            weights = self.stack.flat[groups]
            used = weights > 0
            noise = weights[used] * np.sqrt(variances[self._kinds_of(weights[used])])
            inverses[sector] = (inside, private @ (rows[used] @ self.stack.roots[sector][1]).T * noise)
        return squared_lengths(self.part, key, inverses)

    def combined(self, key: Key, shares: Sequence[Floats]) -> Floats:
        """What a sum of queries of a table takes of each weighted row; shares of the rows of each factor."""
        pairs = zip(self.part.tables[key], shares, self.part.levels, strict=True)
        return taken_of_rows(self.stack, [factor.apply_transpose(each, 0)[axis.kept] for factor, each, axis in pairs])


def whole_groups(stack: GroupStack) -> IntegerPartitions:
    """A stack with its weights rounded down to multiples of 2^-BITS; groups that vanish must not have been needed."""
    weights = tuple(np.ldexp(np.floor(np.ldexp(each, BITS)), -BITS) for each in stack.weights)
    rounded = replace(stack, weights=weights)
    if not math.isfinite(rounded.error()):
        raise InvalidMechanism(
            "a strategy that rests on counts of a weight below a millionth",
            why="a row with no loss to speak of is not measured, and without it some query has no answer",
            instead="publish with noise on the tables, or weigh the tables more evenly",
        )
    return IntegerPartitions(rounded)


_NOTHING = 1e-12  # of the largest entry of a vector: differences below are rounding errors


def taken_of_rows(stack: GroupStack, query: Sequence[Floats]) -> Floats:
    """AX⁺q for the product q of one vector over merged levels an attribute: shares of each weighted row; (rows,)."""
    totals = [np.zeros([factor.rows for factor in factors]) for factors, _, _ in stack.layout]
    for sector in stack.roots:
        differences = {place: _difference(stack, query[place], place, one) for place, one in sector}
        if all(each.any() for each in differences.values()):
            averages = _solved(stack, query, sector)
            for total, (factors, _, _) in zip(totals, stack.layout, strict=True):
                _add(stack, total, factors, differences=differences, averages=averages)
    pairs = zip(totals, stack.layout, strict=True)
    return np.concatenate([total.reshape(-1)[kept] * weights[kept] for total, (_, weights, kept) in pairs])


def _difference(stack: GroupStack, vector: Floats, place: int, one: int) -> Floats:
    """What is left of a vector on one class of levels, less its mean; 0 elsewhere."""
    levels = stack.part.levels[place].levels_of(one)
    here, found = vector[levels], np.zeros(len(vector))
    centered = here - here.mean()
    largest = float(np.abs(vector).max(initial=0.0))
    found[levels] = np.where(np.abs(centered) > _NOTHING * largest, centered, 0.0)
    return found


def _solved(stack: GroupStack, query: Sequence[Floats], sector: Sector) -> Floats:
    """X_S⁺ applied to the averages of the other attributes, less what is public; one axis an attribute."""
    fixed, levels = dict(sector), stack.part.levels
    averages = [levels[place].averages(each, 0) for place, each in enumerate(query) if place not in fixed]
    values = reduce(np.multiply.outer, averages, np.ones(()))
    orbits, root = stack.roots[sector]
    found = np.zeros(math.prod(values.shape))
    found[orbits] = stack.inverses[sector][1] @ (values.reshape(-1)[orbits] @ root)
    return found.reshape(values.shape)


def _add(
    stack: GroupStack, total: Floats, factors: Sequence[Factor], *, differences: dict[int, Floats], averages: Floats
) -> None:
    """Add what the rows of a table see of a sector, in place."""
    seen = {place: np.asarray(factors[place].apply(each, 0)) for place, each in differences.items()}
    if not all(each.any() for each in seen.values()):
        return
    others = [place for place in range(len(factors)) if place not in seen]
    values = averages
    for axis, place in enumerate(others):
        values = factors[place].apply(stack.part.levels[place].from_averages(values, axis), axis)
    values = reduce(np.multiply.outer, seen.values(), values)
    total += values.transpose([[*others, *seen].index(place) for place in range(len(factors))])
