"""How accurate any technology of a class can be, and how near to that a frontier comes.

A bound says for which class of mechanisms it is valid. None here is known to be reached in general; where a frontier
meets its bound it is efficient, where it does not the gap is the most that a better technology of that class can gain.
The singular values of query matrices that a bound needs are found without writing the matrices out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, TooLarge
from dualmandate.frontier.frontier import Frontier
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.mechanism import NoiseLaw, loss_power, positive_loss
from dualmandate.mechanism.strategy import Strategy
from dualmandate.mechanism.strategy.least_error import amount_steps, least_error
from dualmandate.mechanism.technologies import StrategyMechanism
from dualmandate.population import Neighbors, PrivacyMeasure, Protection
from dualmandate.population.arrays import Floats
from dualmandate.population.shown import one_line
from dualmandate.workload import Table, Workload
from dualmandate.workload.factor import Factor, Identity, Row, Total, dense

LARGEST_EIGENPROBLEM = 2_048  # Eigenvalues are computed of matrices with at most this many rows and columns.


@dataclass(frozen=True)
class Spectrum:
    """The sum of the singular values of a matrix, the largest of them, and the number of columns that are not zero."""

    total: float
    largest: float
    columns: int


def spectrum(workload: Workload) -> Spectrum:
    """The spectrum of a workload: from its factors, from its lattice of marginals, or from its Gram matrix."""
    domain = workload.domain
    if not domain.structural_zeros:
        if len(workload.tables) == 1:
            return product_spectrum(workload.tables[0])
        if all(isinstance(factor, Identity | Total) for table in workload.tables for factor in table.factors):
            return _marginal_spectrum(workload)
    if domain.size > LARGEST_EIGENPROBLEM:
        raise TooLarge(
            f"the singular values of a workload over {domain.size:.3g} cells were asked for",
            why=f"eigenvalues are computed for at most {LARGEST_EIGENPROBLEM:,} cells, unless the workload is one "
            "table or made of marginals",
            instead="bound one of its tables alone, which bounds the whole",
        )
    possible = domain.possible_cells()
    return _of_gram(workload.gram()[np.ix_(possible, possible)])


def product_spectrum(table: Table) -> Spectrum:
    """The spectrum of one table: singular values of a product are the products of singular values."""
    parts = [_factor_spectrum(factor) for factor in table.factors]
    weight = abs(float(table.weight))
    return Spectrum(
        weight * math.prod(part.total for part in parts),
        weight * math.prod(part.largest for part in parts),
        math.prod(part.columns for part in parts),
    )


def _factor_spectrum(factor: Factor) -> Spectrum:
    scales = factor.scales
    if scales is not None and np.all(factor.counts <= 1):
        # Rows share no column, so they are orthogonal: singular values are their lengths.
        values = np.sqrt(np.abs(factor.apply(scales.astype(np.float64), 0)))
        return Spectrum(float(values.sum()), float(values.max()), int(np.count_nonzero(scales)))
    if min(factor.rows, factor.size) > LARGEST_EIGENPROBLEM:
        raise TooLarge(
            f"the singular values of a factor of {factor.rows:,} × {factor.size:,} were asked for",
            why=f"eigenvalues are computed for at most {LARGEST_EIGENPROBLEM:,} rows or levels",
            instead="bound another table of the workload",
        )
    matrix = dense(factor).astype(np.float64)
    columns = int(np.count_nonzero(np.any(matrix != 0.0, axis=0)))
    found = _of_gram(matrix @ matrix.T if factor.rows <= factor.size else matrix.T @ matrix)
    return Spectrum(found.total, found.largest, columns)


def _of_gram(gram: Floats) -> Spectrum:
    eigenvalues = np.linalg.eigvalsh(gram)
    # Eigenvalues that are 0 come out as rounding of the largest one; their roots would add up.
    rounding = float(eigenvalues[-1]) * len(gram) * float(np.finfo(np.float64).eps)
    values = np.sqrt(eigenvalues[eigenvalues > rounding])
    return Spectrum(float(values.sum()), float(values.max(initial=0.0)), int(np.count_nonzero(np.diag(gram))))


def _marginal_spectrum(workload: Workload) -> Spectrum:
    """Marginals in closed form: on the residual space of an attribute set S, of dimension Π_{i∈S}(n_i − 1), the Gram
    matrix is v_S = Σ_{T ⊇ S} w_T²·Π_{i∉T} n_i, summed over tables T."""
    shape = workload.domain.shape
    sums = np.zeros(2 ** len(shape))
    for table in workload.tables:
        kept = [isinstance(factor, Identity) or factor.size == 1 for factor in table.factors]
        index = sum(1 << axis for axis, keep in enumerate(kept) if keep)
        sums[index] += float(table.weight) ** 2 * math.prod(n for n, keep in zip(shape, kept, strict=True) if not keep)
    dimensions = np.ones(1)
    for axis, size in enumerate(shape):
        dimensions = np.concatenate([dimensions, dimensions * (size - 1)])
        halves = sums.reshape(-1, 2, 1 << axis)
        halves[:, 0] += halves[:, 1]
    values = np.sqrt(sums)
    return Spectrum(float(dimensions @ values), float(values[dimensions > 0].max()), math.prod(shape))


@dataclass(frozen=True)
class LowerBound:
    """The least expected squared error, summed over all queries, that a class of mechanisms can have at each loss."""

    name: str
    valid_for: str
    privacy_measure: PrivacyMeasure
    error: Callable[[float], float]

    __repr__ = one_line

    def at(self, loss: float) -> float:
        """The least expected squared error at a loss; ≥ 0."""
        return self.error(positive_loss(loss))


def efficiency(frontier: Frontier, bound: LowerBound, loss: float) -> float:
    """The bound over the frontier's expected squared error; 1 where nothing of that class can be more accurate."""
    if frontier.privacy_measure is not bound.privacy_measure:
        raise InvalidLoss(
            f"'{frontier.name}' is in {frontier.privacy_measure}, the bound in {bound.privacy_measure}",
            why="an error can be compared with its limit only at the same loss",
            instead="use the bound of the frontier's currency",
        )
    return bound.at(loss) / frontier.expected_squared_error(loss)


def count_bound(workload: Workload, protection: Protection) -> LowerBound:
    """Pure ε: each query alone is at least as hard as the one count it contains, for which geometric noise is best.

    A query that one unit can move by s answers s times the number of units in the cell where it moves most, so its
    error is at least s²·V(ε), V = 1/(2·sinh²(ε/2)). Source: [GRS12] (every prior); Gupte and Sundararajan 2010 (worst
    case).
    """
    total = _summed_squared_moves(workload, protection)
    return LowerBound(
        "one count at a time",
        "every ε-differentially private mechanism, in the worst case over files without a stated largest count",
        PrivacyMeasure.PURE_DP,
        lambda loss: total * GEOMETRIC.variance(loss),
    )


def matrix_bound(workload: Workload, law: NoiseLaw, protection: Protection) -> LowerBound:
    """The SVD bound: V(loss)·(Σ σ_i)²/n over all strategies, σ_i the workload's singular values, n its cells.

    Under replace-one it is 2·V·(Σ σ_i − σ_max)²/(n − 1): the largest squared difference of two columns is at least the
    mean one, and the total, which is public, is the best a strategy can be told for free. An L1 sensitivity is never
    below the L2 one, so the bound holds for pure ε too. For noise on whole numbers V(l/Δ²) ≥ Δ²·V(l) in ρ, and
    V(l/Δ) ≥ Δ²·V(l) in ε, because such noise gains on its continuous twin as the loss grows.
    Where the whole workload is too large, its hardest table alone bounds it. Source: [LM13].
    """
    _refuse_invariants(protection)
    records = protection.most_records_per_unit
    try:
        coefficient, whole = _svd_coefficient(spectrum(workload), protection), ""
    except TooLarge:
        coefficient = max(_svd_coefficient(found, protection) for found in _affordable(workload))
        whole = " (bounded by its hardest table alone)"
    return _of_matrix_mechanisms(f"singular values{whole}", law, coefficient, records)


def strategy_bound(strategy: Strategy, law: NoiseLaw) -> LowerBound:
    """What the errors of a strategy's tables cost at least, whatever is measured: V(loss)·lower_bound.

    The errors are those of the strategy's own bound: squared, summed over queries, each table times its value. An
    unbiased linear answer QR with RA = Q errs by Σ_r R_r²·σ_r², and A⁺ makes ‖QR‖ least, so that ‖QA⁺‖²·min σ² bounds
    it. For continuous noise σ² = V(loss/Δ) = Δ²·V(loss). For noise on whole numbers a row of weight w has variance
    w²·V(u·w), u = loss/Δ (in ρ: w²·V(u·w²), u = loss/Δ²). A row that one record moves, moves by w or more, so w ≤ Δ;
    x²·V(x) (in ρ: x·V(x)) falls in x, because such noise gains on its continuous twin as the loss grows; so
    w²·V(u·w) ≥ Δ²·V(loss). A unit of m records counts as V(loss/m), in ρ V(loss/m²). Source: [LM13], [ENU20].
    """
    StrategyMechanism(strategy, law)  # refuses a law of another norm
    records = strategy.protection.most_records_per_unit
    coefficient = strategy.lower_bound / records**2
    return _of_matrix_mechanisms("the dual of the matrix mechanism", law, coefficient, records)


def scale_bound(
    workload: Workload,
    law: NoiseLaw,
    protection: Protection,
    values: Mapping[str, float] | None = None,
    *,
    any_rows: bool = False,
) -> LowerBound:
    """What the errors of tables cost at least, whatever is measured, with counts and amounts at any scales.

    Squared errors, summed over queries, each table times its value (1 where not stated). The larger of two bounds: the
    dual of the matrix mechanism (`least_error`), and, in ε, each query alone. A sum over amounts from v₀ to v₁ may take
    a·N from rows that count people, and needs v + a·N from rows with amounts: by Hölder's inequality it errs by at
    least min over a of (ψ_a^⅓·max|v + a|^⅔ + ψ_c^⅓·|a|^⅔)³/ε². With noise on whole numbers that holds for rows that
    count people and add up their amounts; with `any_rows`, for any others too (people counted by their amount, say).
    """
    worth = {table.name: float((values or {}).get(table.name, 1.0)) for table in workload.tables}
    workload = workload.only([name for name, value in worth.items() if value > 0])
    freely, power = protection.neighbors is Neighbors.ADD_OR_REMOVE, loss_power(law.privacy_measure)
    amounts = amount_steps(workload) if law.needs_whole_numbers and freely and not any_rows else {}
    found = least_error(workload, {table.name: worth[table.name] for table in workload.tables}, protection)
    by_queries = power == 1 and freely and not workload.domain.structural_zeros
    alone = [(worth[table.name], _alone(table, amounts)) for table in workload.tables] if by_queries else []
    per_record = 1.0 / protection.most_records_per_unit**power
    per_step = min(1.0, 2.0 / min(amounts.values(), default=1)) ** power

    def error(loss: float) -> float:
        at = loss * per_record
        counted, summed = _relative_variance(law, at), _relative_variance(law, at * per_step)
        single = math.fsum(value * _variance_alone(*each, counted, summed) for value, each in alone)
        return max(found.coefficient(counted, summed), single) / float(at ** (2 / power))

    whole = " on a strategy of whole numbers" if law.needs_whole_numbers else ""
    whole = " on rows that count people and add up their amounts" if amounts else whole
    name = "the dual of the matrix mechanism, and each query alone"
    return LowerBound(name, f"every matrix mechanism with {law.name} noise{whole}", law.privacy_measure, error)


def _relative_variance(law: NoiseLaw, loss: float) -> float:
    """ψ = ε²·V(ε), or ρ·V(ρ): the same at every loss for continuous noise, and falling for noise on whole numbers."""
    return law.variance(loss) * float(loss ** (2 / loss_power(law.privacy_measure)))


def _alone(table: Table, amounts: Collection[int]) -> tuple[float, float, float]:
    """What a table's queries weigh together, and the ends of the amount that they add up; 1 and 1 where they count."""
    weight, ends = float(table.weight) ** 2, (1.0, 1.0)
    for axis, factor in enumerate(table.factors):
        if axis in amounts and isinstance(factor, Row) and ends == (1.0, 1.0):
            ends = float(factor.values.min()), float(factor.values.max())
        elif not isinstance(factor, Total):  # of which one row counts every level once
            largest = _row_extremes(factor)[0]
            weight *= float(largest @ largest)
    return weight, *ends


def _variance_alone(weight: float, low: float, high: float, counted: float, summed: float) -> float:
    """ε² times the least variance of a query that one record moves by numbers from low to high; see `scale_bound`."""
    if low == high:
        return weight * counted * high**2

    def variance(people: float) -> float:
        largest = max(abs(low + people), abs(high + people))
        return float(np.cbrt(summed * largest**2) + np.cbrt(counted * people**2)) ** 3

    return weight * min(map(variance, (0.0, -low, -high, -(low + high) / 2)))  # concave between these


def _of_matrix_mechanisms(name: str, law: NoiseLaw, coefficient: float, records: int) -> LowerBound:
    """The coefficient times V(loss/m), in ρ V(loss/m²), for units of m records."""
    per_record = 1.0 / (records**2 if law.privacy_measure is PrivacyMeasure.ZCDP else records)
    whole = " on a strategy of whole numbers" if law.needs_whole_numbers else ""
    return LowerBound(
        name,
        f"every matrix mechanism with {law.name} noise{whole}",
        law.privacy_measure,
        lambda loss: coefficient * law.variance(loss * per_record),
    )


def _svd_coefficient(found: Spectrum, protection: Protection) -> float:
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        return found.total**2 / found.columns
    return 2.0 * (found.total - found.largest) ** 2 / (found.columns - 1) if found.columns > 1 else 0.0


def _affordable(workload: Workload) -> list[Spectrum]:
    if workload.domain.structural_zeros:
        raise TooLarge(
            "the singular values of a large workload with structural zeros were asked for",
            why="impossible cells do not count for its sensitivity, and a product does not leave them out",
            instead="use the bound of one count at a time",
        )
    found = []
    for table in workload.tables:
        try:
            found.append(product_spectrum(table))
        except TooLarge as refusal:
            last = refusal
    if not found:
        raise last
    return found


def _refuse_invariants(protection: Protection) -> None:
    if protection.invariants:
        raise InvalidMechanism(
            f"a limit of accuracy beside the exact total '{protection.invariants[0].name}'",
            why="the bounds here are proved for records that may change freely",
            instead="ask for the limit without invariants; it does not bind a release that holds them",
        )


def _summed_squared_moves(workload: Workload, protection: Protection) -> float:
    """Σ over queries of s², s the most that one unit can move the query."""
    _refuse_invariants(protection)
    if workload.domain.structural_zeros:
        raise InvalidMechanism(
            "a limit of accuracy with structural zeros",
            why="the cell that moves a query most may be one that cannot occur",
            instead="ask for the limit of the same workload without structural zeros",
        )
    moves = math.fsum(_table_moves(table, protection.neighbors) for table in workload.tables)
    return moves * protection.most_records_per_unit**2


def _table_moves(table: Table, neighbors: Neighbors) -> float:
    """Σ (max|q|)², or Σ (max|q| − min|q|)² under replace-one, over the rows q of a product."""
    extremes = [_row_extremes(factor) for factor in table.factors]
    highest = math.prod(float(high @ high) for high, _ in extremes)
    if neighbors is Neighbors.ADD_OR_REMOVE:
        return float(table.weight) ** 2 * highest
    mixed = math.prod(float(high @ low) for high, low in extremes)
    lowest = math.prod(float(low @ low) for _, low in extremes)
    return float(table.weight) ** 2 * (highest - 2.0 * mixed + lowest)


def _row_extremes(factor: Factor) -> tuple[Floats, ...]:
    """Largest and smallest size of the entries of each row."""
    scales = factor.scales
    if scales is not None and scales.min() >= 0 and scales.max() == 1:
        filled = factor.apply(np.ones(factor.size), 0)
        return (filled > 0).astype(np.float64), (filled == factor.size).astype(np.float64)
    sizes = np.abs(dense(factor)).astype(np.float64)
    return sizes.max(axis=1), sizes.min(axis=1)
