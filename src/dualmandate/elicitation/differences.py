"""Choices as estimators read them: each alternative not chosen less the chosen one, in standardized attributes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dualmandate.elicitation.choices import ChoiceData
from dualmandate.errors import NoEstimate

Floats = NDArray[np.float64]
SINGULAR = 1e-10  # least eigenvalue of the correlations of attributes within tasks


@dataclass(frozen=True, eq=False)
class Differences:
    """P(chosen) = 1/(1 + Σ exp(rows·β)) over the rows of a task; β over `scale` is in the attributes' own units."""

    names: tuple[str, ...]
    rows: Floats  # (alternatives not chosen, attributes), less the chosen alternative, over `scale`
    scale: Floats  # (attributes,): root mean square of the differences
    task_starts: NDArray[np.int64]  # (tasks + 1,), places in `rows`
    first_tasks: NDArray[np.int64]  # (people,), the first task of each respondent

    @classmethod
    def of(cls, data: ChoiceData) -> Differences:
        """The differences, task by task in the order of the data."""
        others = ~data.chosen
        chosen = data.attributes[data.chosen][data.task]
        rows = (data.attributes - chosen)[others]
        scale = np.sqrt(np.mean(np.square(rows), axis=0))
        return cls(
            names=data.names,
            rows=np.ascontiguousarray(rows / scale),
            scale=scale,
            task_starts=np.searchsorted(data.task[others], np.arange(data.tasks + 1)).astype(np.int64),
            first_tasks=np.searchsorted(data.task_respondent, np.arange(data.people)).astype(np.int64),
        )

    def check_rank(self) -> None:
        """Refuse attributes of which one repeats others."""
        eigenvalues, vectors = np.linalg.eigh(self.rows.T @ self.rows / len(self.rows))
        if eigenvalues[0] > SINGULAR:
            return
        involved = [name for name, part in zip(self.names, vectors[:, 0], strict=True) if abs(part) > 1e-4]
        raise NoEstimate(
            f"{', '.join(involved[:-1])} and {involved[-1]} repeat each other within tasks",
            why="a change of one can be undone by the others, so that no choice tells their coefficients apart",
            instead=f"leave out one of them, or show alternatives that vary {involved[-1]} on its own",
        )
