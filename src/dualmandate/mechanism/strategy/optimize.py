"""The best strategy for a workload: part by part, each by the method that fits it, with a bound that holds for all."""

from __future__ import annotations

import math

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.dual import Measurement
from dualmandate.mechanism.strategy.gaussian_optimum import Optimized, gaussian_optimum
from dualmandate.mechanism.strategy.marginals import MarginalStack, best_marginals
from dualmandate.mechanism.strategy.p_identity import best_p_identity, p_identity_measurement
from dualmandate.mechanism.strategy.parts import EVERYTHING_AVERAGED, Part, parts_of
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.strategy import Noise, Strategy, known_noise
from dualmandate.workload import Workload

LARGEST_DENSE_STRATEGY = 2_048  # merged cells of a part that is not made of marginals
MOST_JOINT_ATTRIBUTES = 10
BOUND_TOLERANCE = 1e-2  # of the dual problem where it only gives a bound
_GAUSSIAN_BOUND = "the dual of the matrix mechanism for gaussian noise; it holds for every matrix mechanism"
_LAPLACE_BOUND = (
    "the dual of the matrix mechanism for the L2 norm, which an L1 sensitivity is never below; "
    "it holds for every matrix mechanism with laplace noise"
)


def optimize_strategy(workload: Workload, noise: Noise = "laplace") -> Strategy:
    """What to measure for a workload so that all answers together carry the least noise.

    For Gaussian noise the optimum to a certified gap; for pure ε (laplace) the best that enumerated starts lead to. The
    weight of a table is the root of what its squared error costs. The same workload gives the same strategy.
    """
    known_noise(noise)
    found = [gaussian_optimum(part) if noise == "gaussian" else _laplace(part) for part in parts_of(workload)]
    if noise == "laplace" and len(found) > 1:
        found = _jointly(workload, found)
    error = math.prod(each.error for each in found)
    return Strategy(
        workload,
        noise,
        error_coefficient=error,
        lower_bound=min(math.prod(each.lower for each in found), error),
        bound=_GAUSSIAN_BOUND if noise == "gaussian" else _LAPLACE_BOUND,
        measurements=tuple(each.measured for each in found),
    )


def _jointly(workload: Workload, found: list[Optimized]) -> list[Optimized]:
    """One strategy for all parts where that is better: for pure ε the product of the best is not the best product."""
    if not all(isinstance(each.measured, MarginalStack) for each in found):
        return found
    if len(workload.domain.shape) > MOST_JOINT_ATTRIBUTES:
        return found
    stack, error = best_marginals(parts_of(workload, split=False)[0])
    if error >= math.prod(each.error for each in found):
        return found
    return [Optimized(stack, error, math.prod(each.lower for each in found))]


def _laplace(part: Part) -> Optimized:
    """The best of all families that fit the part."""
    if part.is_symmetric and part.possible is None:
        stack, error = best_marginals(part)
        return Optimized(stack, error, gaussian_optimum(part).lower)
    if part.merged_size > LARGEST_DENSE_STRATEGY:
        raise TooLarge(
            f"a strategy for laplace noise on {part.merged_size:,} cells that queries tell apart",
            why=f"unless all tables are marginals, at most {LARGEST_DENSE_STRATEGY:,} cells are measured jointly",
            instead="use gaussian noise, group levels, or optimize some of the tables alone",
        )
    lower = gaussian_optimum(part, BOUND_TOLERANCE).lower
    apart = part.cell_by_cell()
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    candidates = [_cells_and_sums(gram)]
    if apart.query_count <= LARGEST_DENSE_STRATEGY:
        candidates.append(_the_queries(apart.queries()[:, apart.cells]))
    measurement, error, words = min(candidates, key=lambda each: each[1])
    return Optimized(Residuals(apart, {EVERYTHING_AVERAGED: measurement}, words), error, min(lower, error))


def _cells_and_sums(gram: Floats) -> tuple[Measurement, float, str]:
    """p-identity, or the cells alone."""
    sums, _ = best_p_identity(gram)
    measurement = p_identity_measurement(sums)
    error = float(np.einsum("ij,ij->", measurement.inverse, gram @ measurement.inverse))
    if error >= float(np.trace(gram)):
        return Measurement(np.eye(len(gram)), np.eye(len(gram))), float(np.trace(gram)), f"{len(gram):,} cells"
    words = f"each of {len(gram):,} cells and {len(sums):,} weighted sums of them, the best of enumerated starts"
    return measurement, error, words


def _the_queries(rows: Floats) -> tuple[Measurement, float, str]:
    """The queries themselves, made consistent by least squares: error Δ²·rank."""
    largest = float(np.abs(rows).sum(axis=0).max())
    inverse = np.asarray(np.linalg.pinv(rows / largest), dtype=np.float64)
    error = float(np.square(rows @ inverse).sum())
    return Measurement(rows / largest, inverse), error, f"the {len(rows):,} queries themselves, made consistent"
