"""How accurate any technology of a class can be, and how near to that a frontier comes.

A bound says for which class of mechanisms it is valid. None here is known to be reached in general; where a frontier
meets its bound it is efficient, where it does not the gap is the most that a better technology of that class can gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dualmandate.errors import InvalidLoss, InvalidMechanism, TooLarge
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.spectrum import Spectrum, product_spectrum, spectrum
from dualmandate.mechanism.geometric import GEOMETRIC
from dualmandate.mechanism.mechanism import NoiseLaw, positive_loss
from dualmandate.mechanism.strategy import Strategy
from dualmandate.mechanism.technologies import StrategyMechanism
from dualmandate.population import Currency, Neighbors, Protection
from dualmandate.workload import Table, Workload
from dualmandate.workload.factor import Factor, dense


@dataclass(frozen=True)
class LowerBound:
    """The least expected squared error, summed over all queries, that a class of mechanisms can have at each loss."""

    name: str
    valid_for: str
    currency: Currency
    error: Callable[[float], float]

    def at(self, loss: float) -> float:
        """The least expected squared error at a loss; ≥ 0."""
        return self.error(positive_loss(loss))


def efficiency(frontier: Frontier, bound: LowerBound, loss: float) -> float:
    """The bound over the frontier's expected squared error; 1 where nothing of that class can be more accurate."""
    if frontier.currency is not bound.currency:
        raise InvalidLoss(
            f"'{frontier.name}' is in {frontier.currency}, the bound in {bound.currency}",
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
        Currency.EPSILON,
        lambda loss: total * GEOMETRIC.variance(loss),
    )


def unbiased_bound(workload: Workload, protection: Protection) -> LowerBound:
    """zCDP: each query alone, for mechanisms without bias: Var ≥ s²/(e^{2ρ} − 1).

    The Chapman-Robbins inequality with the χ² distance e^{D₂} − 1, and D₂ ≤ 2ρ. Source: [BS16].
    """
    total = _summed_squared_moves(workload, protection)
    return LowerBound(
        "one query at a time, without bias",
        "every ρ-zero-concentrated mechanism whose answers are unbiased",
        Currency.RHO,
        lambda loss: total / math.expm1(2.0 * loss) if loss < 350.0 else 0.0,
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
    per_record = 1.0 / (records**2 if law.currency is Currency.RHO else records)
    return LowerBound(
        f"singular values{whole}",
        f"every matrix mechanism with {law.name} noise"
        + (" on a strategy of whole numbers" if law.needs_whole_numbers else ""),
        law.currency,
        lambda loss: coefficient * law.variance(loss * per_record),
    )


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
    per_record = 1.0 / (records**2 if law.currency is Currency.RHO else records)
    return LowerBound(
        "the dual of the matrix mechanism",
        f"every matrix mechanism with {law.name} noise"
        + (" on a strategy of whole numbers" if law.needs_whole_numbers else ""),
        law.currency,
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


def _row_extremes(factor: Factor) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], ...]:
    """Largest and smallest size of the entries of each row."""
    scales = factor.scales
    if scales is not None and scales.min() >= 0 and scales.max() == 1:
        filled = factor.apply(np.ones(factor.size), 0)
        return (filled > 0).astype(np.float64), (filled == factor.size).astype(np.float64)
    sizes = np.abs(dense(factor)).astype(np.float64)
    return sizes.max(axis=1), sizes.min(axis=1)
