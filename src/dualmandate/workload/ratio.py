"""A ratio of two tables: a mean (a sum over a count), a share (a count over its total) or a rate.

It is made of estimates that are published anyway, so that nothing more is measured and no privacy is lost by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dualmandate.errors import InvalidWorkload
from dualmandate.population.arrays import Integers
from dualmandate.workload.factor import Factor, Groups, Identity
from dualmandate.workload.table import Table


@dataclass(frozen=True, eq=False)
class Ratio:
    """Each number of the numerator over the number of the denominator that it belongs to.

    The denominator is broken down as the numerator is, or more coarsely: a share divides each number by its total.
    """

    name: str
    numerator: Table
    denominator: Table

    def __post_init__(self) -> None:
        if self.numerator.name == self.denominator.name:
            raise InvalidWorkload(
                f"the ratio '{self.name}' divides the table '{self.numerator.name}' by itself",
                why="that is 1 everywhere",
                instead="name another table as its denominator",
            )
        assert self._places  # refuses a denominator that is broken down otherwise

    @property
    def query_count(self) -> int:
        return self.numerator.query_count

    @cached_property
    def denominators(self) -> Integers:
        """For each number of the numerator, the place of its denominator in that table; shape (query_count,)."""
        index = np.ravel_multi_index(np.ix_(*self._places), self.denominator.shape)
        return np.asarray(np.broadcast_to(index, self.numerator.shape).reshape(-1), dtype=np.int64)

    @cached_property
    def _places(self) -> tuple[Integers, ...]:
        """On each attribute, the denominator's row of each row of the numerator."""
        return tuple(self._above(*each) for each in zip(self.numerator.factors, self.denominator.factors, strict=True))

    def _above(self, finer: Factor, coarser: Factor) -> Integers:
        if coarser.rows == 1 and not isinstance(coarser, Groups):
            return np.zeros(finer.rows, dtype=np.int64)
        below, above = _row_of_level(finer), _row_of_level(coarser)
        both = (below >= 0) & (above >= 0)
        found = np.full(finer.rows, -1, dtype=np.int64)
        found[below[both]] = above[both]
        if np.all(found >= 0) and np.array_equal(found[below[both]], above[both]):
            return found
        by = ", ".join(f'"{name}"' for name in (self.numerator.tabulation.by if self.numerator.tabulation else ()))
        raise InvalidWorkload(
            f"the ratio '{self.name}' divides numbers of '{self.numerator.name}' by numbers of "
            f"'{self.denominator.name}' that they do not belong to",
            why="a denominator is broken down as the numerator is, or more coarsely, and has a number for each of them",
            instead=f"add a [[workload]] table that counts what '{self.denominator.name}' does, with by = [{by}] or "
            "part of it, and name it as the denominator",
        )


def _row_of_level(factor: Factor) -> Integers:
    """The row that counts each level; -1 where none does."""
    if isinstance(factor, Identity):
        return np.arange(factor.size, dtype=np.int64)
    if not isinstance(factor, Groups):
        return np.where(np.asarray(factor.scales) != 0, 0, -1).astype(np.int64)
    rows = np.full(factor.size, -1, dtype=np.int64)
    rows[factor.cells] = np.repeat(np.arange(factor.rows), np.diff([*factor.starts.tolist(), len(factor.cells)]))
    return rows
