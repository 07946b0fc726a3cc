"""Places whose tables have suppressed numbers: what is hidden is bounded by what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dualmandate.audit.equations import Equations, Integers
from dualmandate.audit.suppression.cells import LinkedTables
from dualmandate.audit.targets.targets import ExactTables, SuppressedPart, SuppressedTables, boxed, opened


def hidden_numbers(target: ExactTables) -> SuppressedTables | None:
    """The suppressed numbers of every place as linked tables; None where nothing is suppressed."""
    if target.hidden is None or not target.hidden.any():
        return None
    places = np.flatnonzero(target.hidden.any(axis=1))
    return SuppressedTables(target.name, _HiddenNumbers(target, places), target.coarsening)


@dataclass(frozen=True, eq=False)
class _HiddenNumbers:
    """One part a place: every number is the sum of cells that nobody published. The sums are the same everywhere."""

    target: ExactTables
    places: Integers = field(repr=False)

    def __len__(self) -> int:
        return len(self.places)

    def __iter__(self) -> Iterator[SuppressedPart]:
        return (self._part(int(place)) for place in self.places)

    @cached_property
    def relations(self) -> Equations:
        """Unknown cells first, then the numbers: Σ cells − number = 0."""
        from scipy.sparse import csr_array, eye_array, hstack

        equations = self.target.equations
        matrix = csr_array(hstack([equations.matrix, -eye_array(equations.rows, dtype=np.int64)]))
        return Equations.of_matrix(matrix, [equations.name(row) for row in range(equations.rows)])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each cell and each number is called."""
        cells = (self.target.cell(unknown) for unknown in range(self.target.equations.size))
        return (*cells, *self.relations.names)

    def _part(self, place: int) -> SuppressedPart:
        target, equations = self.target, self.target.equations
        assert target.hidden is not None
        impossible = np.zeros(equations.size, dtype=np.bool_) if target.impossible is None else target.impossible
        shown = np.arange(self.relations.size) >= equations.size
        values = np.concatenate([np.zeros(equations.size, dtype=np.int64), target.values[place]])
        return SuppressedPart(
            LinkedTables(self.relations, values, np.concatenate([~impossible, target.hidden[place]])),
            self.names,
            shown,
            {
                reference: boxed(np.concatenate([counts[place], equations.of(counts[place])]))
                for reference, counts in opened(target.truths).items()
            },
            target.places[place],
        )
