"""What is measured along an axis of very many levels: a small strategy, repeated in every block of every size.

Cells are grouped by b₀ into blocks, these by b₁, and so on up to the whole axis. For each size the totals of the parts
of every block are measured by the same small list of whole-number rows over b parts: the parts themselves in a tree of
counts, or a strategy that was optimized for b parts. So a record is in few rows, whatever the axis holds, and all that
is asked of rows has a closed form in matrices b × b.

With A the weighted rows of one size and e what a part's own rows say of its total (0 for a cell), X = AᵀA + eI is what
is known of the parts of a block, and e' = 1/(1ᵀX⁻¹1) what is known of its total. Estimates go up once (z = X⁻¹(Aᵀy +
e·totals), the block's own estimate) and down once (z + u·(final total − 1ᵀz), u = e'X⁻¹1), as in [HRMS10] for trees of
counts. Sums of squares of what a prefix sum takes of every row follow from its path alone: at each size it is
f = P_j + φe_j + t1, with P_j the parts before j, φ what it has of part j, and t what the sizes above ask of the block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.workload_blocks import Key, WorkloadBlock
from dualmandate.population.arrays import Floats, Indices, Integers
from dualmandate.population.shown import one_line
from dualmandate.workload import AllRange, Factor, Identity, Prefix
from dualmandate.workload.factor import Numbers
from dualmandate.workload.sensitivity import Norm

CLOSE = 1e-9  # of the largest: changes this near to it, in floats, are compared exactly
MOST_LEADERS = 2**14  # pairs of parts that are compared exactly
CHUNK = 2**22  # numbers that are held at once
MOST_RANGES = 2**14  # sums of an axis, other than prefix sums and levels, whose errors are worked out one by one


@dataclass(frozen=True, eq=False)
class BlockRows:
    """The rows that measure the parts of every block of one size: whole numbers times weights."""

    numbers: Integers  # shape (rows, parts of a block)
    weights: tuple[Fraction, ...]  # > 0, one a row

    __repr__ = one_line

    @property
    def parts(self) -> int:
        return int(self.numbers.shape[1])

    @cached_property
    def weighted(self) -> Floats:
        return np.array([float(weight) for weight in self.weights])[:, None] * self.numbers

    @cached_property
    def _lifted(self) -> tuple[Numbers, int]:
        """2^t·w·a exactly, and t."""
        exponent = max(weight.denominator.bit_length() - 1 for weight in self.weights)
        whole = np.array([int(weight * 2**exponent) for weight in self.weights], dtype=np.object_)
        return whole[:, None] * self.numbers.astype(np.object_), exponent

    def columns(self, power: int) -> list[Fraction]:
        """Σ_r (w_r·|a_r|)^power for each part, exactly."""
        numbers, exponent = self._lifted
        sums = (np.abs(numbers) ** power).sum(axis=0)
        return [Fraction(int(each), 1 << power * exponent) for each in sums]

    def differences(self, power: int) -> Floats:
        """Σ_r (w_r·|a_r − a'_r|)^power for each two parts, in floats."""
        rows = self.weighted
        return np.stack([(np.abs(rows - rows[:, [part]]) ** power).sum(axis=0) for part in range(self.parts)])

    def difference(self, one: int, other: int, power: int) -> Fraction:
        """The same of two parts, exactly."""
        numbers, exponent = self._lifted
        return Fraction(int((np.abs(numbers[:, one] - numbers[:, other]) ** power).sum()), 1 << power * exponent)

    def times(self, share: Fraction) -> BlockRows:
        """The same rows with every weight multiplied."""
        return BlockRows(self.numbers, tuple(weight * share for weight in self.weights))


@dataclass(frozen=True, eq=False)
class SolvedBlock:
    """What is known of the parts of a block from its own rows, and from theirs."""

    rows: Floats  # A, shape (rows, parts)
    below: float  # e, what a part's own rows say of its total: one over the variance
    inverse: Floats  # X⁻¹
    summed: Floats  # X⁻¹1
    total: float  # e' = 1/(1ᵀX⁻¹1)

    @classmethod
    def of(cls, rows: Floats, below: float) -> SolvedBlock:
        inverse: Floats = np.linalg.inv(np.asarray(rows.T @ rows, np.float64) + below * np.eye(rows.shape[1]))
        summed = inverse.sum(axis=1)
        return cls(rows, below, inverse, summed, 1.0 / float(summed.sum()))

    @property
    def shares(self) -> Floats:
        """u: how what a total gains is divided among the parts; they add up to 1."""
        return self.summed * self.total

    @property
    def taken(self) -> Floats:
        """A·X⁻¹: what parts take of the rows."""
        return self.rows @ self.inverse


@dataclass(frozen=True, eq=False)
class IntegerNest:
    """The rows of every block of every size, of the smallest blocks first; noise is independent from row to row.

    It is its own strategy as found and as published. The axis is filled up with cells that nobody is in, so that all
    blocks of one size are alike.
    """

    part: WorkloadBlock
    sizes: tuple[BlockRows, ...]  # from the smallest blocks to the whole axis
    words: str

    __repr__ = one_line

    def __post_init__(self) -> None:
        assert self.part.merged_size == self.part.merged_shape[self.place]

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        """Cells of a part of each size of block, and last those of the axis when it is filled up."""
        found = [1]
        for each in self.sizes:
            found.append(found[-1] * each.parts)
        return tuple(found)

    @property
    def place(self) -> int:
        """The attribute of the axis; any other is summed over."""
        return long_place(self.part)

    @property
    def cells(self) -> int:
        return self.part.merged_size

    @cached_property
    def blocks(self) -> tuple[int, ...]:
        """Blocks of each size."""
        return tuple(self.lengths[-1] // length for length in self.lengths[1:])

    @property
    def rows(self) -> int:
        return sum(count * len(each.weights) for count, each in zip(self.blocks, self.sizes, strict=True))

    @cached_property
    def steps(self) -> tuple[Fraction, ...]:
        """The weight of each kind of row, from the largest to the smallest."""
        return tuple(sorted({weight for each in self.sizes for weight in each.weights}, reverse=True))

    @cached_property
    def _kinds(self) -> tuple[Indices, ...]:
        places = {weight: place for place, weight in enumerate(self.steps)}
        return tuple(np.array([places[weight] for weight in each.weights], dtype=np.intp) for each in self.sizes)

    def kinds(self) -> Indices:
        """The kind of each row, in the order of `count`; shape (rows,)."""
        return np.concatenate([np.tile(kinds, count) for kinds, count in zip(self._kinds, self.blocks, strict=True)])

    def exact(self, _: Norm) -> IntegerNest:
        """Itself: its rows are whole numbers from the start."""
        return self

    def sensitivity(self, norm: Norm) -> float:
        """The largest column norm."""
        power = 2 if norm == "l2" else 1
        largest = float(self.largest_column(power))
        return math.sqrt(largest) if power == 2 else largest

    def largest_column(self, power: int) -> Fraction:
        """The largest Σ_r (w_r·|a_r|)^power of a cell, exactly: what one record can move."""
        return self._largest_below(self.cells, len(self.sizes), self._columns(power))

    def _columns(self, power: int) -> list[list[Fraction]]:
        return [each.columns(power) for each in self.sizes]

    def _largest_below(self, cells: int, sizes: int, columns: Sequence[Sequence[Fraction]]) -> Fraction:
        """The largest sum of one number a size over the first cells of a block, counted from the largest size down."""
        if sizes == 0:
            return Fraction(0)
        length, here = self.lengths[sizes - 1], columns[sizes - 1]
        full, rest = divmod(min(cells, self.lengths[sizes]), length)
        found = []
        if full:
            below = sum((max(each) for each in columns[: sizes - 1]), Fraction(0))
            found.append(max(here[:full]) + below)
        if rest:
            found.append(here[full] + self._largest_below(rest, sizes - 1, columns))
        return max(found)

    def largest_difference(self, power: int, same: Integers | None = None) -> tuple[Fraction, bool]:
        """The largest Σ_r (w_r·|a_r − a'_r|)^power between two cells, and whether it is exact.

        Two cells are parted by the rows of the least block that holds both, and by all rows of its parts that hold one
        of them. With `same`, one label a cell, it is an upper bound for cells of one label.
        """
        columns, found, exact = self._columns(power), Fraction(0), same is None
        for size, each in enumerate(self.sizes):
            cells = min(self.cells, self.lengths[size + 1])
            length = self.lengths[size]
            held = [min(length, cells - part * length) for part in range(each.parts) if part * length < cells]
            own = [self._largest_below(count, size, columns) for count in held]
            if len(held) < 2:
                continue
            below = np.array([float(largest) for largest in own])
            rough = np.tril(each.differences(power)[: len(held), : len(held)] + below[:, None] + below, -1)
            leaders = np.argwhere(rough >= float(rough.max()) * (1 - CLOSE)).tolist()
            if len(leaders) > MOST_LEADERS:
                found, exact = max(found, Fraction(float(rough.max()) * (1 + CLOSE))), False
                continue
            sums = (each.difference(one, other, power) + own[one] + own[other] for one, other in leaders if one > other)
            found = max([found, *sums])
        return found, exact

    def count(self, counts: Numbers) -> Numbers:
        """a·x for whole histograms over cells, shape (k, cells); shape (k, rows), exact."""
        totals: Numbers = np.zeros((len(counts), self.lengths[-1]), dtype=counts.dtype)
        totals[:, : self.cells] = counts.reshape(len(counts), -1)
        found = []
        for each, blocks in zip(self.sizes, self.blocks, strict=True):
            parts = totals.reshape(len(counts), blocks, each.parts)
            found.append((parts @ each.numbers.T.astype(counts.dtype)).reshape(len(counts), -1))
            totals = parts.sum(axis=2)
        return np.concatenate(found, axis=1)

    @cached_property
    def solved(self) -> tuple[SolvedBlock, ...]:
        return solved_blocks([each.weighted for each in self.sizes])

    @property
    def _total_is_public(self) -> bool:
        return bool(self.part.public)

    def estimate(self, measured: Floats) -> Floats:
        """The best linear unbiased counts, (k, cells), from weighted rows w·(a·x + noise), shape (k, rows)."""
        own, start, totals = list[Floats](), 0, np.zeros((len(measured), self.lengths[-1]))
        for block, count in zip(self.solved, self.blocks, strict=True):
            stop = start + count * len(block.rows)
            values = measured[:, start:stop].reshape(len(measured), count, -1)
            known = values @ block.rows + block.below * totals.reshape(len(measured), count, -1)
            own.append(known @ block.inverse)
            totals, start = own[-1].sum(axis=2), stop
        # Where the number of records is public, what was counted of it is already taken off.
        final: Floats = np.zeros_like(totals) if self._total_is_public else totals
        for block, here in zip(reversed(self.solved), reversed(own), strict=True):
            gained = final.reshape(here.shape[:2]) - here.sum(axis=2)
            final = (here + gained[:, :, None] * block.shares).reshape(len(measured), -1)
        return final[:, : self.cells].reshape(len(measured), *self.part.merged_shape)

    def _factor(self, key: Key) -> Factor:
        return self.part.tables[key][self.place]

    def _taken(self, asked: Floats) -> list[Floats]:
        """What weighted sums of cells, shape (k, cells), take of the weighted rows; for each size (k, blocks, rows)."""
        wanted = [np.zeros((len(asked), self.lengths[-1]))]
        wanted[0][:, : self.cells] = asked
        for block, count in zip(self.solved, self.blocks, strict=True):
            wanted.append(wanted[-1].reshape(len(asked), count, -1) @ block.shares)
        of_totals = np.zeros_like(wanted[-1]) if self._total_is_public else wanted[-1]
        found = list[Floats]()
        for size in reversed(range(len(self.sizes))):
            block, count = self.solved[size], self.blocks[size]
            functional = wanted[size].reshape(len(asked), count, -1) + (of_totals - wanted[size + 1])[:, :, None]
            taken = functional @ block.inverse
            found.append(taken @ block.rows.T)
            of_totals = block.below * taken.reshape(len(asked), -1)
        return found[::-1]

    def _of_row(self, asked: Floats) -> Floats:
        """What a weighted sum of cells takes of each weighted row; shape (rows,)."""
        return np.concatenate([each.reshape(-1) for each in self._taken(asked[None])])

    def combined(self, key: Key, shares: Sequence[Floats]) -> Floats:
        """What a sum of queries of a table takes of each weighted row; shares of the rows of its factor."""
        others = math.prod(float(each[0]) for place, each in enumerate(shares) if place != self.place)
        asked = self._factor(key).apply_transpose(shares[self.place], 0)[self.part.levels[self.place].kept]
        return self._of_row(others * asked)

    def coefficients(self, key: Key, variances: Floats) -> Floats:
        """Σ_r (FA⁺)²·v for each query of a table, v the variance by kind; by rows of each factor."""
        factor = self._factor(key)
        if isinstance(factor, Prefix | Identity):
            found = self._along_paths(float(isinstance(factor, Prefix)), variances)
        else:
            found = self._squares(key) @ variances
        return found.reshape([each.rows for each in self.part.tables[key]])

    def table_sums(self, key: Key) -> Floats:
        """Σ over the queries of a table and the rows of each kind of (FA⁺)²; shape (kinds,)."""
        factor = self._factor(key)
        if isinstance(factor, Prefix | Identity):
            return self._summed_paths(float(isinstance(factor, Prefix)))
        if isinstance(factor, AllRange):
            # Σ over ranges of (S_b − S_a)² = (n + 1)·ΣS² − (ΣS)², where S₀ = 0 stands before the first cell.
            together = self._of_row(np.arange(factor.size, 0, -1, dtype=np.float64))
            apart = np.bincount(self.kinds(), np.square(together), minlength=len(self.steps))
            return np.asarray((factor.size + 1) * self._summed_paths(1.0) - apart)
        return np.asarray(self._squares(key).sum(axis=0))

    @cached_property
    def _known_squares(self) -> dict[Key, Floats]:
        return {}

    def _squares(self, key: Key) -> Floats:
        """Σ over the rows of each kind of (FA⁺)², query by query; shape (queries, kinds)."""
        if key not in self._known_squares:
            factor, level = self._factor(key), self.part.levels[self.place]
            if factor.rows > MOST_RANGES:
                raise TooLarge(
                    f"the errors of {factor.rows:,} sums over {self.cells:,} levels",
                    why=f"beside prefix sums and levels, those of at most {MOST_RANGES:,} sums are worked out",
                    instead='ask for as = "prefix": a range is the difference of two of its numbers',
                )
            asked, found = factor.columns(level.kept), np.zeros((len(self.steps), factor.rows))
            together = max(1, CHUNK // self.rows)
            for start in range(0, factor.rows, together):
                some = slice(start, start + together)
                for kinds, taken in zip(self._kinds, self._taken(asked[some].astype(np.float64)), strict=True):
                    np.add.at(found[:, some], kinds, np.square(taken).sum(axis=1).T)
            self._known_squares[key] = found.T
        return self._known_squares[key]

    def _paths(self, before: float) -> tuple[list[Indices], list[Floats], list[Floats]]:
        """For each cell and size: its part j, and φ and t of what is asked; `before` is 1 for prefix sums, else 0."""
        cell, own = np.arange(self.cells), [np.ones(self.cells)]
        parts = []
        for size, block in enumerate(self.solved):
            part = cell // self.lengths[size] % self.sizes[size].parts
            earlier = np.cumsum(block.shares) - block.shares
            parts.append(part)
            own.append(before * earlier[part] + own[-1] * block.shares[part])
        above: Floats = np.zeros(self.cells) if self._total_is_public else own[-1]
        asked = [np.empty(0)] * len(self.sizes)
        for size in reversed(range(len(self.sizes))):
            block, part = self.solved[size], parts[size]
            asked[size] = above - own[size + 1]
            above = block.below * self._at_part(block, before, part, own[size], asked[size])
        return parts, own, asked

    @staticmethod
    def _at_part(block: SolvedBlock, before: float, part: Indices, own: Floats, asked: Floats) -> Floats:
        """(X⁻¹f)_j on each path."""
        earlier = np.cumsum(block.inverse, axis=0).diagonal() - block.inverse.diagonal()
        return np.asarray(before * earlier[part] + own * block.inverse.diagonal()[part] + asked * block.summed[part])

    def _along_paths(self, before: float, variances: Floats) -> Floats:
        parts, own, asked = self._paths(before)
        total, spread = np.zeros(self.cells), 0.0
        for size, block in enumerate(self.solved):
            part, phi, rest = parts[size], own[size], asked[size]
            taken = np.sqrt(variances[self._kinds[size]])[:, None] * block.taken
            # Errors of parts off the path are those of their own totals; what is on the path is counted by its rows.
            of_parts = block.below**2 * spread
            form = taken.T @ taken + of_parts * (block.inverse @ block.inverse)
            earlier = np.tril(np.ones_like(form), -1)
            mixed = earlier @ form
            ones = form.sum(axis=1)
            total += (
                before * np.einsum("ij,ij->i", mixed, earlier)[part]
                + 2 * before * phi * mixed.diagonal()[part]
                + 2 * before * rest * mixed.sum(axis=1)[part]
                + phi**2 * form.diagonal()[part]
                + 2 * phi * rest * ones[part]
                + rest**2 * float(ones.sum())
                - of_parts * self._at_part(block, before, part, phi, rest) ** 2
            )
            spread = float(np.square(taken.sum(axis=1)).sum()) + of_parts * float(np.square(block.summed).sum())
        return np.maximum(total, 0.0)

    def _summed_paths(self, before: float) -> Floats:
        """The same, added up over all cells and kept apart by kinds: second moments of f over the paths suffice."""
        parts, own, asked = self._paths(before)
        total, spread = np.zeros(len(self.steps)), np.zeros(len(self.steps))
        for size, block in enumerate(self.solved):
            part, phi, rest, count = parts[size], own[size], asked[size], self.sizes[size].parts

            def over(values: Floats | None = None, *, part: Indices = part, count: int = count) -> Floats:
                return np.bincount(part, values, minlength=count).astype(np.float64)

            earlier, ones = np.tril(np.ones((count, count)), -1), np.ones(count)
            mixed = before * (earlier.T * over(phi)) + before * np.outer(earlier.T @ over(rest), ones)
            mixed += np.outer(over(phi * rest), ones)
            moments = mixed + mixed.T + before * (earlier.T * over()) @ earlier + np.diag(over(phi**2))
            moments += float(np.square(rest).sum())
            taken, kinds = block.taken, self._kinds[size]
            total += np.bincount(kinds, np.einsum("ij,jk,ik->i", taken, moments, taken), minlength=len(total))
            off_path = float(np.einsum("ij,jk,ik->", block.inverse, moments, block.inverse))
            off_path -= float(np.square(self._at_part(block, before, part, phi, rest)).sum())
            total += block.below**2 * max(off_path, 0.0) * spread
            summed = np.bincount(kinds, np.square(taken.sum(axis=1)), minlength=len(total))
            spread = summed + block.below**2 * float(np.square(block.summed).sum()) * spread
        return total


def long_place(part: WorkloadBlock) -> int:
    """The attribute of a part with the most levels to tell apart."""
    return int(np.argmax(part.merged_shape))


def solved_blocks(rows: Sequence[Floats]) -> tuple[SolvedBlock, ...]:
    """Blocks of every size, from the smallest on."""
    found, below = list[SolvedBlock](), 0.0
    for each in rows:
        found.append(SolvedBlock.of(each, below))
        below = found[-1].total
    return tuple(found)
