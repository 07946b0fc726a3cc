"""Records whose level of one attribute was changed: how levels move in general, and what that tells of a file."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Recoding:
    """How many records of each true level got each level that was tabulated; `moved` has shape (true, tabulated).

    Whoever knows the method can find that out on people of their own. Levels without records stay as they are.
    """

    shape: tuple[int, ...]  # of the cells of a place
    axis: int
    moved: Floats = field(repr=False)

    def tabulated(self, file: Floats) -> Floats:
        """What becomes of a file on average; shape (places, cells)."""
        return self._along(file, self._given_true())

    def undone(self, file: Floats) -> Floats:
        """The true file that is expected behind a tabulated one."""
        return self._along(file, _shares(self.moved.T))

    def looked_up(self, file: Floats) -> Floats:
        """What somebody of a true level finds in a tabulated file: its levels, as likely as theirs became these."""
        return self._along(file, self._given_true().T)

    def _given_true(self) -> Floats:
        return _shares(self.moved)

    def _along(self, file: Floats, matrix: Floats) -> Floats:
        cells = np.moveaxis(file.reshape(-1, *self.shape), self.axis + 1, -1)
        return np.asarray(np.moveaxis(cells @ matrix, -1, self.axis + 1).reshape(file.shape))


def _shares(counts: Floats) -> Floats:
    """Rows that add up to 1; a row of nobody stays where it is."""
    totals = counts.sum(axis=1, keepdims=True)
    return np.where(totals > 0, counts / np.maximum(totals, 1e-300), np.eye(len(counts)))
