"""The best strategy for a workload: part by part, each by the method that fits it, with a bound that holds for all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism.mechanism import EVERY_PERSON
from dualmandate.mechanism.strategy.arrays import NUMPY, Arrays, namespace
from dualmandate.mechanism.strategy.axes import Floats
from dualmandate.mechanism.strategy.decompose import parts_of
from dualmandate.mechanism.strategy.dual import OptimalRows
from dualmandate.mechanism.strategy.gaussian_optimum import LARGEST_ON_DEVICE, GaussianOptimum, gaussian_optimum
from dualmandate.mechanism.strategy.marginals import best_marginals
from dualmandate.mechanism.strategy.p_identity import best_p_identity, p_identity_measurement
from dualmandate.mechanism.strategy.partition_search import LARGEST_BASE, best_partitions, fits, groups_asked
from dualmandate.mechanism.strategy.partition_stack import GroupStack
from dualmandate.mechanism.strategy.public_totals import LARGEST_BY_PAIRS, pair_optimum, public_tables, same_groups
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.strategy import NoiseName, Strategy, known_noise, worth_of
from dualmandate.mechanism.strategy.workload_blocks import EVERYTHING_AVERAGED, WorkloadBlock
from dualmandate.population import Domain, Protection
from dualmandate.workload import Workload

LARGEST_DENSE_STRATEGY = 2_048  # merged cells of a part that is not made of marginals
FEW_CELLS = 256  # the same beside tables of counts, which are better for many
MOST_JOINT_ATTRIBUTES = 10
MOST_JOINT_GROUPS = 128  # of the finest tables, up to which parts are also optimized together
TIE = 1e-9  # relative difference of errors below which the first of two strategies is taken, on every machine
MISSED = 1e-7  # relative, of the queries, that rounding may leave unmeasured
_ROUNDING = 1e-11  # of the largest singular value, below which a direction is not measured
BOUND_TOLERANCE = 1e-2  # of the dual problem where it only gives a bound
_GAUSSIAN_BOUND = "the dual of the matrix mechanism for gaussian noise; it holds for every matrix mechanism"
_LAPLACE_BOUND = (
    "the dual of the matrix mechanism for the L2 norm, which an L1 sensitivity is never below; "
    "it holds for every matrix mechanism with laplace noise"
)


@dataclass(frozen=True)
class Means:
    """What a search may use: starts (None: as many as usual), and where its arrays are."""

    starts: int | None
    arrays: Arrays


def optimize_strategy(
    workload: Workload,
    noise: NoiseName = "laplace",
    *,
    values: Mapping[str, float] | None = None,
    protection: Protection = EVERY_PERSON,
    starts: int | None = None,
    arrays: str | None = None,
) -> Strategy:
    """What to measure for a workload so that all answers together carry the least noise.

    For Gaussian noise the optimum to a certified gap; for pure ε (laplace) the best that enumerated starts lead to.
    `values` says what the squared error of each table costs society (1 each where None); the weight of a table counts
    with its square besides. Totals that the `protection` makes public are not measured. Starts are enumerated and sums
    are added up in one order: the same workload gives the same strategy, and more `starts` can only improve it.
    `arrays` asks for an accelerator, "torch" or "cupy", which adds up as it likes and may end elsewhere.
    """
    known_noise(noise)
    means = Means(starts, namespace(arrays))
    worth = worth_of(workload, values)
    dearest = max(worth.values())
    relative = {name: value / dearest for name, value in worth.items()}
    public = public_tables(workload.domain, protection)
    parts = parts_of(workload, relative, public=public)
    if noise == "gaussian":
        found = [_gaussian(part, workload.domain, protection, arrays=means.arrays) for part in parts]
    else:
        found = [_laplace(part, means) for part in parts]
    if noise == "laplace" and len(found) > 1:
        found = _jointly(parts_of(workload, relative, split=False), found, means)
    unit = float(dearest)
    error, lower = (unit * math.prod(each) for each in zip(*((each.error, each.lower) for each in found), strict=True))
    return Strategy(
        workload,
        noise,
        protection,
        values=worth,
        found_error=error,
        lower_bound=protection.most_records_per_unit**2 * (lower if public else min(lower, error)),
        bound=_GAUSSIAN_BOUND if noise == "gaussian" else _LAPLACE_BOUND,
        measurements=tuple(each.measured for each in found),
    )


def _gaussian(part: WorkloadBlock, domain: Domain, protection: Protection, *, arrays: Arrays) -> GaussianOptimum:
    """The certified optimum; beside public totals by weights on pairs of cells, where these are few."""
    if not part.public or part.merged_size > LARGEST_BY_PAIRS:
        return gaussian_optimum(part, arrays=arrays)
    apart = part.cell_by_cell()
    same = same_groups(apart, domain, protection)
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    measured, error, lower = pair_optimum(gram, None if same is None else same[apart.cells])
    words = f"{len(measured.rows):,} weighted sums of {len(gram):,} cells by the dual problem for pairs of cells"
    return GaussianOptimum(Residuals(apart, {EVERYTHING_AVERAGED: measured}, words), error, lower)


def _jointly(together: tuple[WorkloadBlock, ...], found: list[GaussianOptimum], means: Means) -> list[GaussianOptimum]:
    """One strategy for all parts where that is better: for pure ε the product of the best is not the best product."""
    [part] = together
    kinds = {type(each.measured) for each in found}
    if len(part.axes) > MOST_JOINT_ATTRIBUTES or Residuals in kinds:
        return found
    if part.is_symmetric and part.possible is None:
        measured, error = best_marginals(part, means.starts)
    elif fits(part) and groups_asked(part) <= MOST_JOINT_GROUPS:
        measured, error = best_partitions(part, means.starts)
    else:
        return found
    if error >= (1.0 - TIE) * math.prod(each.error for each in found):
        return found
    return [GaussianOptimum(measured, error, math.prod(each.lower for each in found))]


def _laplace(part: WorkloadBlock, means: Means) -> GaussianOptimum:
    """The best of all families that fit the part."""
    if part.is_symmetric and part.possible is None:
        stack, error = best_marginals(part, means.starts)
        return GaussianOptimum(stack, error, gaussian_optimum(part).lower)
    largest = LARGEST_DENSE_STRATEGY if means.arrays is NUMPY else LARGEST_ON_DEVICE
    # Sums of cells of one attribute without exchangeable levels are better chosen freely.
    is_free = len(part.axes) == 1 and part.orbit_count == part.merged_size <= largest
    by_tables = not is_free and fits(part)
    if not by_tables and part.merged_size > largest:
        raise TooLarge(
            f"a strategy for laplace noise on {part.merged_size:,} cells that queries tell apart",
            why=f"at most {largest:,} cells, or {LARGEST_BASE:,} groups of exchangeable cells, "
            f"are measured jointly, and the finest tables have {groups_asked(part):,}",
            instead="use gaussian noise, group levels, or optimize some of the tables alone",
        )
    lower = gaussian_optimum(part, BOUND_TOLERANCE, means.arrays).lower
    candidates: list[tuple[Residuals | GroupStack, float]] = []
    if by_tables:
        candidates.append(best_partitions(part, means.starts))
    if part.merged_size <= largest:
        candidates.extend(_cell_by_cell(part, FEW_CELLS if by_tables else largest, means))
    measured, error = candidates[0]
    for other in candidates[1:]:
        if other[1] < (1.0 - TIE) * error:
            measured, error = other
    return GaussianOptimum(measured, error, lower if part.public else min(lower, error))


def _cell_by_cell(part: WorkloadBlock, most: int, means: Means) -> list[tuple[Residuals | GroupStack, float]]:
    """Each cell and sums of cells where they are few, and the queries themselves where these are."""
    apart = part.cell_by_cell()
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    found = [_cells_and_sums(gram, means)] if len(gram) <= most else []
    if apart.query_count <= min(most, LARGEST_DENSE_STRATEGY):
        found.append(_the_queries(apart.queries()[:, apart.cells], gram))
    basis = apart.public_basis(EVERYTHING_AVERAGED)
    candidates: list[tuple[Residuals | GroupStack, float]] = []
    for measurement, error, words in found:
        if len(basis) == 0:
            candidates.append((Residuals(apart, {EVERYTHING_AVERAGED: measurement}, words), error))
        elif (private := _less_public(measurement, basis, gram)) is not None:
            error = float(np.einsum("ij,ij->", private.inverse, gram @ private.inverse))
            candidates.append((Residuals(apart, {EVERYTHING_AVERAGED: private}, words), error))
    return candidates


def _less_public(measurement: OptimalRows, basis: Floats, gram: Floats) -> OptimalRows | None:
    """The same rows, with the inverse of what they measure beyond what is public; None where they miss a query."""
    private = measurement.rows - (measurement.rows @ basis.T) @ basis
    inverse = np.asarray(np.linalg.pinv(private, rcond=_ROUNDING), dtype=np.float64)
    missed = gram - (gram @ inverse) @ private
    if float(np.abs(missed).max()) > MISSED * float(np.abs(gram).max()):
        return None
    return OptimalRows(measurement.rows, inverse)


def _cells_and_sums(gram: Floats, means: Means) -> tuple[OptimalRows, float, str]:
    """p-identity, or the cells alone."""
    sums = means.arrays.to_numpy(best_p_identity(means.arrays.asarray(gram), starts=means.starts)[0])
    measurement = p_identity_measurement(sums)
    error = float(np.einsum("ij,ij->", measurement.inverse, gram @ measurement.inverse))
    if error >= (1.0 - TIE) * float(np.trace(gram)):
        return OptimalRows(np.eye(len(gram)), np.eye(len(gram))), float(np.trace(gram)), f"{len(gram):,} cells"
    words = f"each of {len(gram):,} cells and {len(sums):,} weighted sums of them, the best of enumerated starts"
    return measurement, error, words


def _the_queries(rows: Floats, gram: Floats) -> tuple[OptimalRows, float, str]:
    """The queries themselves, made consistent by least squares: error Δ²·rank where nothing is public."""
    largest = float(np.abs(rows).sum(axis=0).max())
    inverse = np.asarray(np.linalg.pinv(rows / largest), dtype=np.float64)
    error = float(np.einsum("ij,ij->", inverse, gram @ inverse))
    return OptimalRows(rows / largest, inverse), error, f"the {len(rows):,} queries themselves, made consistent"
