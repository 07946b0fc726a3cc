"""What to measure so that a workload's answers carry the least noise, and how near to the best possible that is.

Part by part, each by the method that fits it, with a bound that holds for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism.mechanism import EVERY_PERSON, known_table
from dualmandate.mechanism.strategy.arrays import NUMPY, Arrays, namespace
from dualmandate.mechanism.strategy.axes import mixture
from dualmandate.mechanism.strategy.dual import (
    LARGEST_BY_PAIRS,
    LARGEST_ON_DEVICE,
    GaussianOptimum,
    gaussian_optimum,
    pair_optimum,
)
from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.mechanism.strategy.integer_rows import IntegerRows, OptimalRows, Residuals
from dualmandate.mechanism.strategy.marginal_rows import MARGINALS_FROM, FoundMarginals, least_variance
from dualmandate.mechanism.strategy.marginals import best_marginals, best_wide_marginals
from dualmandate.mechanism.strategy.nest_search import best_nest, known_bound
from dualmandate.mechanism.strategy.nested_rows import IntegerNest, long_place
from dualmandate.mechanism.strategy.p_identity import p_identity_measurement, search_p_identity
from dualmandate.mechanism.strategy.partition_search import LARGEST_BASE, best_partitions, fits, groups_asked
from dualmandate.mechanism.strategy.partitions import GroupStack
from dualmandate.mechanism.strategy.workload_blocks import (
    EVERYTHING_AVERAGED,
    WorkloadBlock,
    parts_of,
    public_tables,
    same_groups,
)
from dualmandate.population import Domain, Neighbors, Protection
from dualmandate.population.arguments import checked_call, checked_class, expected
from dualmandate.population.arrays import Floats
from dualmandate.population.shown import cut_line
from dualmandate.population.wording import percent
from dualmandate.workload import Identity, Total, Workload
from dualmandate.workload.sensitivity import Norm

NoiseName = Literal["laplace", "gaussian"]
LEAST_WORTH = Fraction(1, 10**6)  # of the dearest table: what is worth less still has to be answered
LARGEST_DENSE_STRATEGY = 2_048  # merged cells of a part that is not made of marginals
TOTAL_SHARES = 64  # of the sensitivity, that counting people may get beside amounts
FEW_CELLS = 256  # the same beside tables of counts, which are better for many
MOST_JOINT_ATTRIBUTES = 10
MOST_JOINT_GROUPS = 128  # of the finest tables, up to which parts are also optimized together
TIE = 1e-9  # relative difference of errors below which the first of two strategies is taken, on every machine
LONG_FROM = 1_024  # queries of an axis beyond LARGEST_DENSE_STRATEGY levels, from which on blocks of it are nested
MISSED = 1e-7  # relative, of the queries, that rounding may leave unmeasured
_ROUNDING = 1e-11  # of the largest singular value, below which a direction is not measured
BOUND_TOLERANCE = 1e-2  # of the dual problem where it only gives a bound
_GAUSSIAN_BOUND = (
    "the dual of the matrix mechanism for gaussian noise; it holds for every matrix mechanism, with continuous noise"
)
_LAPLACE_BOUND = (
    "the dual of the matrix mechanism for the L2 norm, which an L1 sensitivity is never below; "
    "it holds for every matrix mechanism with laplace noise"
)


@checked_class
@dataclass(frozen=True, eq=False)
class Strategy:
    """What is measured for a workload (the paper's A), a product of one strategy a part, and its certificate.

    With noise of variance V at sensitivity 1, the expected squared error of all answers together is
    V·`error_coefficient`, error_coefficient = (ΔA)²‖QA⁺‖²_F with each table times its value; no strategy has one below
    `lower_bound`. Both are for the neighbor relation of `protection`.
    """

    workload: Workload
    noise: NoiseName
    protection: Protection
    values: dict[str, Fraction]  # what the squared error of each table costs
    found_error: float  # of the rows as they were found, for one record added or removed
    lower_bound: float
    bound: str  # which bound, and for which class of mechanisms
    measurements: tuple[Residuals | GroupStack | FoundMarginals | IntegerNest, ...]

    def __repr__(self) -> str:
        return cut_line(
            f"Strategy(of {self.workload.query_count:,} queries with {self.noise} noise, error coefficient "
            f"{self.found_error:.6g} for one record, lower bound {self.lower_bound:.6g})"
        )

    @property
    def norm(self) -> Norm:
        """The norm of its sensitivity: L1 for pure ε, L2 for Gaussian noise."""
        return "l1" if self.noise == "laplace" else "l2"

    @property
    def sensitivity(self) -> float:
        """ΔA, of parts the product of theirs: the largest column norm × records, or the farthest two columns."""
        if self.protection.neighbors is Neighbors.ADD_OR_REMOVE:
            records = self.protection.most_records_per_unit
            return records * math.prod(part.sensitivity(self.norm) for part in self.measurements)
        return self.exact.sensitivity(self.protection).value

    @cached_property
    def error_coefficient(self) -> float:
        """(ΔA)²‖QA⁺‖²_F, each table times its value; for moves of a record, of the whole-number rows."""
        if self.protection.neighbors is Neighbors.ADD_OR_REMOVE:
            return self.found_error * self.protection.most_records_per_unit**2
        return self.exact.error_coefficient(self.protection)

    @property
    def gap(self) -> str:
        """How far from the best possible it is, in words."""
        ratio = self.error_coefficient / self.lower_bound - 1.0
        if ratio <= TIE:
            return f"optimal: equal to the bound ({self.bound})"
        if self.noise == "gaussian":
            return f"at most {percent(ratio)} above the best possible ({self.bound})"
        far = f"{1.0 + ratio:.3g} times" if ratio >= 0.1 else f"{percent(ratio)} above"
        return (
            f"{far} a lower bound that is not known to be reached with laplace noise ({self.bound}); "
            "a better strategy may exist"
        )

    @property
    def description(self) -> str:
        """What is measured, in words."""
        names = self.workload.domain.names
        parts = [f"{', '.join(names[axis] for axis in each.part.axes)}: {each.words}" for each in self.measurements]
        joined = "; ".join(parts)
        return f"all combinations of ({joined})" if len(parts) > 1 else joined

    @cached_property
    def exact(self) -> ExactStrategy:
        """The same strategy as it is published: whole-number rows with rational losses."""
        parts = tuple(each.exact(self.norm) for each in self.measurements)
        return ExactStrategy(self.workload, self.norm, parts, self.values)


def worth_of(workload: Workload, values: Mapping[str, float] | None) -> dict[str, Fraction]:
    """What the squared error of each table costs, exactly; at least a millionth of the dearest, to stay answerable."""
    for name, value in (values or {}).items():
        known_table(workload, name)
        if not (math.isfinite(value) and value >= 0):
            raise InvalidWorkload(
                f"the accuracy of '{name}' is worth {value}",
                why="a strategy weighs squared errors by what they cost: finite numbers, 0 or more",
                instead="state a finite value",
            )
    exact = {table.name: Fraction((values or {}).get(table.name, 1.0)) for table in workload.tables}
    dearest = max(exact.values())
    if dearest == 0:
        raise InvalidWorkload(
            "a strategy for tables whose accuracy is worth nothing",
            why="there is nothing to weigh one table's errors against another's by",
            instead="give at least one table a positive value",
        )
    return {name: max(value, dearest * LEAST_WORTH) for name, value in exact.items()}


@checked_call
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
    expected(workload, Workload, what="a workload", instead="make one: identity(100)")
    if noise not in get_args(NoiseName):
        raise InvalidMechanism(
            f"a strategy for {noise} noise",
            why="strategies are optimized for the L1 norm (laplace) or the L2 norm (gaussian)",
            instead="ask for 'laplace', which serves every noise in epsilon, or 'gaussian'",
        )
    library = namespace(arrays)
    worth = worth_of(workload, values)
    dearest = max(worth.values())
    relative = {name: value / dearest for name, value in worth.items()}
    public = public_tables(workload.domain, protection)
    wide = _wide(workload, relative, protection)
    measurements: tuple[Residuals | GroupStack | FoundMarginals | IntegerNest, ...]
    if wide is not None:
        marginals, error, lower = _by_marginals(wide, noise, starts)
        measurements = (marginals,)
    else:
        found = _part_by_part(workload, relative, noise, protection=protection, starts=starts, arrays=library)
        error, lower = (math.prod(each) for each in zip(*((each.error, each.lower) for each in found), strict=True))
        measurements = tuple(each.measured for each in found)
    unit = float(dearest)
    error, lower = unit * error, unit * lower
    return Strategy(
        workload,
        noise,
        protection,
        values=worth,
        found_error=error,
        lower_bound=protection.most_records_per_unit**2 * (lower if public else min(lower, error)),
        bound=_GAUSSIAN_BOUND if noise == "gaussian" else _LAPLACE_BOUND,
        measurements=measurements,
    )


def _part_by_part(
    workload: Workload,
    values: Mapping[str, Fraction],
    noise: NoiseName,
    *,
    protection: Protection,
    starts: int | None,
    arrays: Arrays,
) -> list[GaussianOptimum]:
    """The best found for each part, or for all of them together."""
    parts = parts_of(workload, values, public=public_tables(workload.domain, protection))
    if noise == "gaussian":
        return [_gaussian(part, workload.domain, protection, arrays=arrays) for part in parts]
    found = [_laplace(part, starts, arrays) for part in parts]
    return found if len(found) == 1 else _jointly(parts_of(workload, values, split=False), found, starts)


def _wide(workload: Workload, values: Mapping[str, Fraction], protection: Protection) -> WorkloadBlock | None:
    """The workload as one part where its domain is too large to write out and its marginals are all it asks for."""
    domain = workload.domain
    asked_alone = protection.neighbors is Neighbors.ADD_OR_REMOVE and not domain.structural_zeros
    if domain.size <= MARGINALS_FROM or not asked_alone:
        return None
    [part] = parts_of(workload, values, split=False)
    return part if part.is_symmetric else None


def measures_marginals(workload: Workload, protection: Protection) -> bool:
    """Whether the strategy for a workload would be marginals alone, of a domain that is not written out.

    Seen without looking for it.
    """
    if protection.neighbors is not Neighbors.ADD_OR_REMOVE or workload.domain.structural_zeros:
        return False
    plain = all(isinstance(factor, Identity | Total) for table in workload.tables for factor in table.factors)
    values = {table.name: Fraction(1) for table in workload.tables}
    return workload.domain.size > MARGINALS_FROM and (plain or _wide(workload, values, protection) is not None)


def _by_marginals(part: WorkloadBlock, noise: NoiseName, starts: int | None) -> tuple[FoundMarginals, float, float]:
    """Marginals alone, their error and its bound: for Gaussian noise the optimum, for pure ε the best weights found."""
    measured, lower = least_variance(part)
    if noise == "gaussian":
        return measured, lower, lower
    weights, error, words = best_wide_marginals(part, starts)
    return FoundMarginals(part, weights, residual=False, words=words), error, lower


def _is_long(part: WorkloadBlock) -> bool:
    """Whether a part is one attribute with too many levels, in sums that overlap, for them to be told apart densely.

    Other attributes may be there, where they are only summed over.
    """
    place = long_place(part)
    levels = part.merged_shape[place]
    if part.merged_size > levels or part.possible is not None or part.orbit_count <= LARGEST_DENSE_STRATEGY:
        return False
    if any(not isinstance(f, Total) for each in part.tables.values() for at, f in enumerate(each) if at != place):
        return False
    only_total = all(isinstance(factor, Total) for factors in part.public for factor in factors)
    overlapping = any(int(factors[place].counts.max()) > 1 for factors in part.tables.values())
    return only_total and overlapping and part.query_count > LONG_FROM


def _nested(part: WorkloadBlock, norm: Norm) -> GaussianOptimum:
    """Blocks of an axis of very many levels, those of one size measured alike; and what is known of the least error."""

    def dense(workload: Workload) -> IntegerRows | None:
        [alone] = parts_of(workload)
        found = gaussian_optimum(alone) if norm == "l2" else _laplace(alone, None, NUMPY)
        rows = found.measured.exact(norm)
        return rows if isinstance(rows, IntegerRows) else None

    nest, error = best_nest(part, norm, dense)
    lower = known_bound(part)
    return GaussianOptimum(nest, error, lower if part.public else min(lower, error))


def _gaussian(part: WorkloadBlock, domain: Domain, protection: Protection, *, arrays: Arrays) -> GaussianOptimum:
    """The certified optimum; beside public totals by weights on pairs of cells, where these are few."""
    if arrays is NUMPY and _is_long(part):
        return _nested(part, "l2")
    if (ends := _ends_alone(part)) is not None:
        return _mixed(part.cell_by_cell(), ends, gaussian_optimum(ends, arrays=arrays))
    if not part.public or part.merged_size > LARGEST_BY_PAIRS:
        return gaussian_optimum(part, arrays=arrays)
    apart = part.cell_by_cell()
    same = same_groups(apart, domain, protection)
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    measured, error, lower = pair_optimum(gram, None if same is None else same[apart.cells])
    words = f"{len(measured.rows):,} weighted sums of {len(gram):,} cells by the dual problem for pairs of cells"
    return GaussianOptimum(Residuals(apart, {EVERYTHING_AVERAGED: measured}, words), error, lower)


def _ends_alone(part: WorkloadBlock) -> WorkloadBlock | None:
    """The ends of a part that is one attribute, only counted and summed; None for any other."""
    ends = part.ends() if len(part.axes) == 1 and not part.public else part
    return None if ends is part else ends


def _between_ends(part: WorkloadBlock, ends: WorkloadBlock) -> GaussianOptimum:
    """For pure ε: the counts and sums themselves, each with its own share, or what lies above and below each amount.

    A record moves Σ(x − v₀) and Σ(v₁ − x) together by v₁ − v₀, whatever its x, and their sum counts people; the number
    of people may be measured besides.
    """
    queries, shares = part.queries()[:, part.cells], _mixture(part, ends)[:, part.cells]
    asked = queries[queries.any(axis=1)]
    asked = asked / np.cbrt(np.abs(asked).max(axis=1, keepdims=True))
    found = [asked / float(np.abs(asked).sum(axis=0).max())]
    for steps in range(TOTAL_SHARES):
        share = steps / TOTAL_SHARES
        found.append(np.concatenate([(1.0 - share) * shares, share * np.ones((min(steps, 1), len(part.cells)))]))
    inverses = [np.linalg.pinv(rows) for rows in found]
    errors = [float(np.square(queries @ inverse).sum()) for inverse in inverses]
    best = next(number for number, error in enumerate(errors) if error <= min(errors) * (1.0 + TIE))
    words = f"{len(found[best]):,} sums over {part.merged_size:,} levels"
    measured = Residuals(part, {EVERYTHING_AVERAGED: OptimalRows(found[best], inverses[best])}, words)
    return GaussianOptimum(measured, errors[best], min(gaussian_optimum(ends, BOUND_TOLERANCE).lower, errors[best]))


def _mixture(part: WorkloadBlock, ends: WorkloadBlock) -> Floats:
    return mixture(part.levels[0], ends.levels[0], [factors[0] for factors in part.tables.values()])


def _mixed(part: WorkloadBlock, ends: WorkloadBlock, found: GaussianOptimum) -> GaussianOptimum:
    """A strategy for the ends as one for all levels: columns between the ends are mixtures of theirs."""
    assert isinstance(found.measured, Residuals)
    [measured] = found.measured.measurements.values()
    shares = _mixture(part, ends)
    corners = np.argmax(shares == 1.0, axis=1)[ends.cells]
    inverse = np.zeros((len(part.cells), len(measured.rows)))
    inverse[np.searchsorted(part.cells, corners)] = measured.inverse
    rows = measured.rows @ shares[np.ix_(ends.cells, part.cells)]
    words = f"{len(rows):,} weighted sums of {part.merged_size:,} levels, by their ends"
    return replace(found, measured=Residuals(part, {EVERYTHING_AVERAGED: OptimalRows(rows, inverse)}, words))


def _jointly(
    together: tuple[WorkloadBlock, ...], found: list[GaussianOptimum], starts: int | None
) -> list[GaussianOptimum]:
    """One strategy for all parts where that is better: for pure ε the product of the best is not the best product."""
    [part] = together
    kinds = {type(each.measured) for each in found}
    if len(part.axes) > MOST_JOINT_ATTRIBUTES or kinds & {Residuals, IntegerNest}:
        return found
    if part.is_symmetric and part.possible is None:
        measured, error = best_marginals(part, starts)
    elif fits(part) and groups_asked(part) <= MOST_JOINT_GROUPS:
        measured, error = best_partitions(part, starts)
    else:
        return found
    if error >= (1.0 - TIE) * math.prod(each.error for each in found):
        return found
    return [GaussianOptimum(measured, error, math.prod(each.lower for each in found))]


def _laplace(part: WorkloadBlock, starts: int | None, arrays: Arrays) -> GaussianOptimum:
    """The best of all families that fit the part."""
    if part.is_symmetric and part.possible is None:
        stack, error = best_marginals(part, starts)
        return GaussianOptimum(stack, error, gaussian_optimum(part).lower)
    if (ends := _ends_alone(part)) is not None:
        return _between_ends(part.cell_by_cell(), ends)
    largest = LARGEST_DENSE_STRATEGY if arrays is NUMPY else LARGEST_ON_DEVICE
    # Sums of cells of one attribute without exchangeable levels are better chosen freely.
    is_free = len(part.axes) == 1 and part.orbit_count == part.merged_size <= largest
    by_tables = not is_free and fits(part)
    if arrays is NUMPY and not by_tables and _is_long(part):
        return _nested(part, "l1")
    if not by_tables and part.merged_size > largest:
        raise TooLarge(
            f"a strategy for laplace noise on {part.merged_size:,} cells that queries tell apart",
            why=f"at most {largest:,} cells, or {LARGEST_BASE:,} groups of exchangeable cells, "
            f"are measured jointly, and the finest tables have {groups_asked(part):,}",
            instead="use gaussian noise, group levels, or optimize some of the tables alone",
        )
    lower = gaussian_optimum(part.ends(), BOUND_TOLERANCE, arrays).lower
    candidates: list[tuple[Residuals | GroupStack, float]] = []
    if by_tables:
        candidates.append(best_partitions(part, starts))
    if part.merged_size <= largest:
        candidates.extend(_cell_by_cell(part, FEW_CELLS if by_tables else largest, starts, arrays))
    measured, error = candidates[0]
    for other in candidates[1:]:
        if other[1] < (1.0 - TIE) * error:
            measured, error = other
    return GaussianOptimum(measured, error, lower if part.public else min(lower, error))


def _cell_by_cell(
    part: WorkloadBlock, most: int, starts: int | None, arrays: Arrays
) -> list[tuple[Residuals | GroupStack, float]]:
    """Each cell and sums of cells where they are few, and the queries themselves where these are."""
    apart = part.cell_by_cell()
    gram = apart.gram()[np.ix_(apart.cells, apart.cells)]
    found = [_cells_and_sums(gram, starts, arrays)] if len(gram) <= most else []
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


def _cells_and_sums(gram: Floats, starts: int | None, arrays: Arrays) -> tuple[OptimalRows, float, str]:
    """p-identity, or the cells alone."""
    sums = arrays.to_numpy(search_p_identity(arrays.asarray(gram), starts=starts).sums)
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
