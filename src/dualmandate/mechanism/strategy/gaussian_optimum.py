"""The best strategy of a part for Gaussian noise: a closed form where all levels are exchangeable, else the dual."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import InvalidWorkload, TooLarge
from dualmandate.mechanism.strategy.dual import Block, Measurement, solve
from dualmandate.mechanism.strategy.marginals import MarginalStack
from dualmandate.mechanism.strategy.parts import Floats, Key, Part
from dualmandate.mechanism.strategy.residuals import Residuals

LARGEST_PROBLEM = 2_048  # rows and columns of a matrix whose eigenvalues are computed again and again
LARGEST_BOX = 2**24  # cells, or entries of a list of queries, that are written out
TOLERANCE = 1e-5  # relative gap between error and bound
FINE_TOLERANCE = 1e-8  # the same where there are few cells
FEW_CELLS = 384


@dataclass(frozen=True, eq=False)
class Optimized:
    """A strategy for one part: its error and the least that any strategy can have, for sensitivity 1."""

    measured: Residuals | MarginalStack
    error: float
    lower: float


def gaussian_optimum(part: Part, tolerance: float | None = None) -> Optimized:
    """The strategy of least total variance for a part, with its certificate."""
    weights = part.block_weights()
    if not part.ordered:
        return _closed_form(part, weights)
    levels = float(math.prod(part.merged_shape[place] for place in part.exchangeable))
    cells = measured_cells(part)
    blocks = [_block(part, chosen, each, cells) for chosen, each in weights.items()]
    found = solve(blocks, levels, tolerance or (FINE_TOLERANCE if len(cells) <= FEW_CELLS else TOLERANCE))
    measured = Residuals(
        part,
        part.exchangeable,
        cells,
        dict(zip(weights, found.measurements, strict=True)),
        f"{_rows(found.measurements):,} weighted sums of {len(cells):,} cells by the dual problem"
        + (f", for means and differences of {len(part.exchangeable)} further attributes" if part.exchangeable else ""),
    )
    return Optimized(measured, found.upper, min(found.lower, found.upper))


def measured_cells(part: Part) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Cells of the attributes that are not exchangeable that can occur and that some query asks about."""
    size = math.prod(part.merged_shape[place] for place in part.ordered)
    if size > LARGEST_BOX:
        raise TooLarge(
            f"a strategy over {size:.3g} cells that queries tell apart",
            why=f"at most {LARGEST_BOX:,} cells are weighed one by one",
            instead="group levels, or ask about fewer attributes at once",
        )
    asked = np.zeros(size, dtype=np.bool_)
    for key, factors in part.tables.items():
        columns = np.ones(1, dtype=np.bool_)
        for place in part.ordered:
            columns = np.multiply.outer(columns, factors[place].counts[part.levels[place].kept] > 0).reshape(-1)
        asked |= columns & (part.squared_weights[key] > 0)
    cells = np.flatnonzero(asked if part.possible is None else asked & part.possible)
    if len(cells) == 0:
        raise _asks_nothing()
    return cells


def _closed_form(part: Part, weights: dict[frozenset[int], dict[Key, float]]) -> Optimized:
    """v_S the Gram matrix on the residual space of S, of dimension m_S: X_S ∝ √v_S, error (Σ m_S√v_S)²/N."""
    values = {chosen: math.fsum(each.values()) for chosen, each in weights.items()}
    dimensions = {chosen: math.prod(part.merged_shape[place] - 1 for place in chosen) for chosen in values}
    total = math.fsum(dimensions[chosen] * math.sqrt(value) for chosen, value in values.items())
    if total == 0.0:
        raise _asks_nothing()
    levels = float(part.merged_size)
    measurements = {}
    for chosen, value in values.items():
        row = math.sqrt(math.sqrt(value) * levels / total)
        measurements[chosen] = Measurement(np.array([[row]]), np.array([[1 / row]]))
    words = f"differences over {len(values):,} sets of attributes, in closed form"
    measured = Residuals(part, part.exchangeable, np.zeros(1, dtype=np.intp), measurements, words)
    return Optimized(measured, total**2 / levels, total**2 / levels)


def _block(
    part: Part, chosen: frozenset[int], weights: dict[Key, float], cells: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> Block:
    multiplicity = float(math.prod(part.merged_shape[place] - 1 for place in chosen))
    count = part.row_count(weights, part.ordered)
    if min(count, len(cells)) > LARGEST_PROBLEM or min(count, len(cells)) * len(cells) > LARGEST_BOX:
        raise TooLarge(
            f"an optimal strategy for {count:,} queries about {len(cells):,} cells that they tell apart",
            why=f"the dual problem is solved for at most {LARGEST_PROBLEM:,} queries or cells at once",
            instead="group levels, ask about fewer attributes at once, or optimize some of the tables alone",
        )
    if count < len(cells):
        return Block(multiplicity, np.ascontiguousarray(part.rows(weights, part.ordered)[:, cells]), True)
    gram: Floats = part.gram(weights, part.ordered)
    return Block(multiplicity, gram[np.ix_(cells, cells)], False)


def _asks_nothing() -> InvalidWorkload:
    return InvalidWorkload(
        "a strategy for queries that are zero on every cell that can occur",
        why="their answers are 0 whatever the data are, so there is nothing to measure",
        instead="leave these tables out",
    )


def _rows(measurements: tuple[Measurement, ...]) -> int:
    return sum(len(measurement.rows) for measurement in measurements)
