"""Strategies against the best known: error, distance to the best possible, and processor seconds.

Every optimization runs in a fresh process with one thread: ours, the published p-identity that `reference_strategy`
writes out, and packages of others where they are installed, here or in the environment of the Python that the variable
DUALMANDATE_PEERS names. Seconds are those of one processor, with Python and all packages loaded before.

An error is the `error_coefficient` (ΔA)²‖QA⁺‖²_F, ΔA the largest column norm of the strategy, L1 for laplace and L2 for
gaussian noise. The errors to reach are below those of every public optimizer, or equal where the optimum is known.

`reference_strategy` is a published optimizer, written from its paper, with one start: p-identity, A = [I; B]·diag(s)⁻¹,
B ≥ 0 of n/16 rows (one where levels are only told apart or summed), s the columns' norms, from numbers spread over
[0, 1) by L-BFGS-B to a relative change of 10⁻⁴. On several attributes one such factor an attribute, each optimized in
turn on the queries as the others leave them; on marginals one weight a marginal instead, over all 2^d. Source:
[MMHM18], the parts it calls OPT_0, OPT_⊗ and OPT_M. For Gaussian noise the same with norms in L2.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks import census, peers
from dualmandate.benchmarks.harness import ONE_THREAD, BenchmarkRow, apart, run_apart
from dualmandate.errors import Refusal, TooLarge
from dualmandate.workload import (
    Factor,
    Identity,
    Total,
    Workload,
    all_range,
    gram,
    identity,
    kron,
    prefix,
    stack,
    total,
)

# Processor seconds may exceed what was promised by this factor: machines are not alike.
ALLOWANCE = 1.5
ERROR, SECONDS = "error coefficient", "processor seconds on one thread"
PEERS_VARIABLE = "DUALMANDATE_PEERS"
Floats = NDArray[np.float64]
Noise = Literal["laplace", "gaussian"]
CELLS_A_ROW = 16  # levels for each row of B
TOLERANCE = 1e-4  # relative change of the error at which it stops
MOST_CYCLES = 10  # over the attributes
MOST_MARGINAL_ATTRIBUTES = 10  # 2^d weights, and a matrix of 4^d numbers


@dataclass(frozen=True)
class StrategyCase:
    """One workload and noise, with the error and the processor seconds to reach."""

    name: str
    build: Callable[[], Workload]
    noise: Noise
    seconds: float  # of one processor
    error: float | None = None  # at most
    gap: float | None = None  # at most: error over the certified bound, less 1
    bound: float | None = None  # at least: the certified bound
    peer: str | None = None  # a package that optimizes or offers a strategy for it
    has_reference: bool = True

    def roots(self) -> list[Floats]:
        """For peers: square matrices R with RᵀR = QᵀQ, the queries being the product of one an attribute."""
        workload = self.build()
        grams = [workload.gram()] if len(workload.domain.shape) == 1 else list(map(gram, workload.tables[0].factors))
        return [np.asarray(np.linalg.cholesky(each.astype(np.float64)).T) for each in grams]


# Where a published optimum is to be equaled, the error may be what rounds to it.
CASES = (
    StrategyCase("SF1 persons, laplace", census.sf1_persons, "laplace", 3.0, 69_700.0),
    StrategyCase("SF1 persons, gaussian", census.sf1_persons, "gaussian", 2.0, 15_070.0, bound=15_050.0),
    StrategyCase("SF1 persons by state, laplace", census.sf1_by_state, "laplace", 3.0, 6.73e6),
    StrategyCase("SF1 persons by state, gaussian", census.sf1_by_state, "gaussian", 3.0, 9.68e5),
    StrategyCase("Adult-5, 2-way marginals, laplace", lambda: census.adult_5(2), "laplace", 0.3, 146_300.0),
    StrategyCase("Adult-5, 3-way marginals, laplace", lambda: census.adult_5(3), "laplace", 0.3, 1.289e6),
    StrategyCase(
        "Adult-14, up to 3-way marginals, gaussian",
        census.adult_14,
        "gaussian",
        0.2,
        2.39355e9,
        gap=1e-9,
        has_reference=False,  # it weighs all 2^14 marginals by a matrix of 4^14 numbers
    ),
    StrategyCase("prefix 256, laplace", lambda: prefix(256), "laplace", 1.0, 6_880.0, peer="opendp"),
    StrategyCase("all ranges 256, laplace", lambda: all_range(256), "laplace", 1.0, 1.071e6, peer="opendp"),
    StrategyCase("all ranges 64, laplace", lambda: all_range(64), "laplace", 0.2, 32_070.0, peer="opendp"),
    StrategyCase("all ranges 1024, laplace", lambda: all_range(1024), "laplace", 8.0, 3.26e7, peer="opendp"),
    StrategyCase("prefix 1024, laplace", lambda: prefix(1024), "laplace", 8.0, 47_300.0, peer="opendp"),
    StrategyCase("all ranges 1024, gaussian", lambda: all_range(1024), "gaussian", 5.0, gap=1e-5, peer="jax-privacy"),
    StrategyCase("prefix 1024, gaussian", lambda: prefix(1024), "gaussian", 6.0, gap=1e-4, peer="jax-privacy"),
    StrategyCase(
        "identity and total 256, laplace",
        lambda: stack(identity(256), total(256)),
        "laplace",
        0.2,
        386.8855,
        peer="opendp",
    ),
    StrategyCase("CPS one-way with prefix sums, gaussian", census.cps_one_way, "gaussian", 1.0, 1_522.5),
    StrategyCase(
        "prefix 64 × prefix 64, gaussian",
        lambda: kron(prefix(64), prefix(64)),
        "gaussian",
        0.2,
        79_638.5,
        peer="jax-privacy",
    ),
)


@dataclass(frozen=True)
class OptimizerResult:
    """What one optimizer gave on one case; everything is None where it refused or is not installed."""

    name: str | None = None
    error: float | None = None
    seconds: float | None = None  # of one processor; None also where it does not search
    bound: float | None = None  # below which no strategy is, where it certifies one
    complaint: str | None = None  # why there is nothing else


def rows(progress: Callable[[str], None], cases: Sequence[StrategyCase] = CASES) -> list[BenchmarkRow]:
    """The rows of every case: error with the package's, the same with the reference's, bound and gap, seconds."""
    found: list[BenchmarkRow] = []
    for case in cases:
        progress(case.name)
        ours, package = OptimizerResult(**apart(optimized, "ours", case.name)), _package(case)
        has_reference = case.has_reference
        reference = OptimizerResult(**apart(optimized, "reference", case.name)) if has_reference else OptimizerResult()
        for each in (ours, package, reference):
            if each.complaint:
                progress(f"{case.name}: {each.complaint}")
        found += _rows(case, ours, package=package, reference=reference)
    return found


def _rows(
    case: StrategyCase, ours: OptimizerResult, *, package: OptimizerResult, reference: OptimizerResult
) -> list[BenchmarkRow]:
    seconds = ALLOWANCE * case.seconds
    listed = [
        BenchmarkRow(case.name, ours.error, ERROR, target=case.error, peer=package.name, peer_value=package.error)
    ]
    timed = [
        BenchmarkRow(case.name, ours.seconds, SECONDS, target=seconds, peer=package.name, peer_value=package.seconds)
    ]
    if reference.name:
        listed.append(BenchmarkRow(case.name, ours.error, ERROR, peer=reference.name, peer_value=reference.error))
        timed.append(BenchmarkRow(case.name, ours.seconds, SECONDS, peer=reference.name, peer_value=reference.seconds))
    if case.noise == "gaussian":  # for laplace noise no bound is known to be near
        gap = None if ours.error is None or ours.bound is None else ours.error / ours.bound - 1.0
        listed.append(BenchmarkRow(case.name, ours.bound, "certified lower bound", target=case.bound, is_floor=True))
        listed.append(BenchmarkRow(case.name, gap, "certified gap", target=case.gap))
    return listed + timed


def _package(case: StrategyCase) -> OptimizerResult:
    """A package of others; one that is not installed, or that does not run here, is no peer."""
    if case.peer is None:
        return OptimizerResult()
    with TemporaryDirectory() as folder:
        file = Path(folder, "queries.npz")
        np.savez(file, *case.roots())
        # -P: the script's own folder holds modules of ours, which another Python must not take for its own
        words = [os.environ.get(PEERS_VARIABLE) or sys.executable, "-P", peers.__file__, case.peer, str(file)]
        try:
            answer = run_apart(words, case=case.name, environment=ONE_THREAD)
        except (RuntimeError, OSError) as error:
            return OptimizerResult(complaint=f"{case.peer} does not run: {str(error).strip().splitlines()[-1]}")
    return OptimizerResult() if answer is None else OptimizerResult(answer["peer"], answer["error"], answer["seconds"])


def _ours(workload: Workload, noise: Noise) -> OptimizerResult:
    from dualmandate.mechanism import optimize_strategy

    try:
        strategy = optimize_strategy(workload, noise)
    except Refusal as refusal:
        return OptimizerResult(complaint=f"refused: {refusal.what}")
    return OptimizerResult("ours", strategy.error_coefficient, bound=strategy.lower_bound)


def _reference(workload: Workload, noise: Noise) -> OptimizerResult:
    strategy = reference_strategy(workload, noise)
    return OptimizerResult(f"{strategy.template}, one start", strategy.error_coefficient)


SIDES: dict[str, Callable[[Workload, Noise], OptimizerResult]] = {"ours": _ours, "reference": _reference}


def optimized(side: str, name: str) -> OptimizerResult:
    """What one side finds on one case, here, and in how many seconds of the processor."""
    case = next(each for each in CASES if each.name == name)
    workload, optimize = case.build(), SIDES[side]
    optimize(stack(kron(prefix(3), identity(2)), kron(total(3), identity(2))), case.noise)  # loads what loads late
    import dualmandate.mechanism.strategy.ordered_kernel  # noqa: F401  # loops that so small a case does not take

    started = time.process_time()
    found = optimize(workload, case.noise)
    return replace(found, seconds=None if found.error is None else time.process_time() - started)


@dataclass(frozen=True, eq=False)
class ReferenceStrategy:
    """The strategy found: one matrix an attribute (their product), or one weight a marginal."""

    template: str
    error_coefficient: float
    factors: tuple[Floats, ...] = ()  # rows × levels, columns of norm 1
    weights: Floats | None = None  # by set of attributes, as bits; Σ or Σ of squares is 1


def reference_strategy(workload: Workload, noise: Noise) -> ReferenceStrategy:
    """Marginals where all tables are, a product of one factor an attribute elsewhere."""
    plain = all(isinstance(factor, Identity | Total) for table in workload.tables for factor in table.factors)
    if plain and len(workload.domain.shape) > 1:
        return weighted_marginals(workload, noise)
    return product_of_factors(workload, noise)


def product_of_factors(workload: Workload, noise: Noise) -> ReferenceStrategy:
    """One p-identity an attribute; Σ_t w_t²·Π_i ‖F_ti A_i⁺‖² is lowered one attribute at a time."""
    axes = range(len(workload.domain.shape))
    attributes = [_Attribute.of([table.factors[axis] for table in workload.tables]) for axis in axes]
    weights = np.array([float(table.weight) ** 2 for table in workload.tables])
    found = [each.start() for each in attributes]
    errors = np.array([each.errors(sums, noise) for each, sums in zip(attributes, found, strict=True)])
    best = math.inf
    for _ in range(MOST_CYCLES):
        for axis, each in enumerate(attributes):
            if each.only_summed:
                continue
            shares = weights * np.delete(errors, axis, axis=0).prod(axis=0)
            found[axis] = _p_identity(each.surrogate(shares), each.start(), noise)
            errors[axis] = each.errors(found[axis], noise)
        error = float(weights @ errors.prod(axis=0))
        if len(attributes) == 1 or error > best * (1 - TOLERANCE):
            break
        best = error
    factors = tuple(each.matrix(sums, noise) for each, sums in zip(attributes, found, strict=True))
    return ReferenceStrategy("p-identity", error, factors)


def weighted_marginals(workload: Workload, noise: Noise) -> ReferenceStrategy:
    """Weights θ on all marginals; with X_S = Σ_{T⊇S} θ_T²·Π_{i∉T} n_i the error is (Σθ)²·Σ_S m_S·v_S/X_S."""
    shape = workload.domain.shape
    if len(shape) > MOST_MARGINAL_ATTRIBUTES:
        raise TooLarge(
            f"the reference on all marginals of {len(shape)} attributes",
            why=f"it weighs 2^d marginals by a matrix of 4^d numbers; d is at most {MOST_MARGINAL_ATTRIBUTES}",
            instead="compare on fewer attributes",
        )
    sets = range(2 ** len(shape))
    outside = [math.prod(n for i, n in enumerate(shape) if not kept >> i & 1) for kept in sets]
    sums = np.array([[outside[kept] if kept & few == few else 0 for kept in sets] for few in sets], dtype=np.float64)
    asked = np.zeros(len(sets))
    for table in workload.tables:
        kept = sum(1 << i for i, factor in enumerate(table.factors) if isinstance(factor, Identity))
        asked[kept] += float(table.weight) ** 2
    dimensions = [math.prod(n - 1 for i, n in enumerate(shape) if few >> i & 1) for few in sets]
    values = np.array(dimensions, dtype=np.float64) * (sums @ asked)

    def loss(weights: Floats) -> tuple[float, Floats]:
        norm, slope = _norm_of_weights(weights, noise)
        spread = sums @ weights**2
        inner = float((values / spread).sum())
        return norm * inner, slope * inner - 2 * norm * weights * (sums.T @ (values / spread**2))

    lowest = np.zeros(len(sets))
    lowest[-1] = 1e-3  # with a little of every cell each answer can be estimated
    found = _minimized(loss, np.maximum(_spread_numbers(1, len(sets))[0], lowest), lowest)
    size = math.sqrt(_norm_of_weights(found, noise)[0])
    return ReferenceStrategy("weighted marginals", loss(found)[0], weights=found / size)


@dataclass(frozen=True, eq=False)
class _Attribute:
    """The queries of all tables on one attribute."""

    grams: tuple[Floats, ...]  # of each table's factor; size × size
    rows: int  # of B
    only_summed: bool

    @classmethod
    def of(cls, factors: list[Factor]) -> _Attribute:
        kinds = {factor.key: np.asarray(gram(factor), dtype=np.float64) for factor in factors}
        plain = all(isinstance(factor, Identity | Total) for factor in factors)
        rows = 1 if plain else max(1, factors[0].size // CELLS_A_ROW)
        summed = all(isinstance(factor, Total) for factor in factors)
        return cls(tuple(kinds[factor.key] for factor in factors), rows, summed)

    def start(self) -> Floats:
        """B to begin with; shape (rows, size)."""
        return _spread_numbers(self.rows, len(self.grams[0]))

    def surrogate(self, shares: Floats) -> Floats:
        """The Gram matrix of this attribute's queries, each table's times its error on the other attributes."""
        total = np.zeros_like(self.grams[0])
        for share, each in zip(shares, self.grams, strict=True):
            total += share * each
        return total

    def errors(self, sums: Floats, noise: Noise) -> Floats:
        """‖F A⁺‖² of each table's factor; shape (tables,)."""
        if self.only_summed:
            return np.ones(len(self.grams))
        scales, _ = _scales(sums, noise)
        solved = np.linalg.solve(np.eye(len(sums)) + sums @ sums.T, sums)
        inverse = (np.eye(len(scales)) - sums.T @ solved) * scales * scales[:, None]
        known = {id(each): float(np.einsum("ij,ij->", each, inverse)) for each in self.grams}
        return np.array([known[id(each)] for each in self.grams])

    def matrix(self, sums: Floats, noise: Noise) -> Floats:
        """The rows that are measured, in columns of norm 1."""
        if self.only_summed:
            return np.ones((1, len(self.grams[0])))
        return np.asarray(np.concatenate([np.eye(sums.shape[1]), sums]) / _scales(sums, noise)[0])


def _scales(sums: Floats, noise: Noise) -> tuple[Floats, Floats]:
    """The columns' norms s of [I; B], shape (n,), and their slopes in B, shape (p, n)."""
    if noise == "laplace":
        return 1.0 + sums.sum(axis=0), np.ones_like(sums)
    scales = np.sqrt(1.0 + np.square(sums).sum(axis=0))
    return scales, sums / scales


def _p_identity(target: Floats, start: Floats, noise: Noise) -> Floats:
    """B of least error tr(SVS·(I + BᵀB)⁻¹) for the Gram matrix V, S = diag(s), from one start.

    By Woodbury's identity B(I + BᵀB)⁻¹ = (I + BBᵀ)⁻¹B, so that a step costs O(n²p).
    """
    shape, diagonal = start.shape, np.diag(target)

    def loss(flat: Floats) -> tuple[float, Floats]:
        sums = flat.reshape(shape)
        scales, slopes = _scales(sums, noise)
        solved = np.linalg.solve(np.eye(shape[0]) + sums @ sums.T, sums)
        product = (solved * scales) @ target
        by_scale = scales * diagonal - np.einsum("ij,ij->j", sums, product)
        moved = product * scales
        slope = 2.0 * by_scale * slopes - 2.0 * (moved - (moved @ sums.T) @ solved)
        return float(scales @ by_scale), slope.reshape(-1)

    return _minimized(loss, start.reshape(-1), np.zeros(start.size)).reshape(shape)


def _norm_of_weights(weights: Floats, noise: Noise) -> tuple[float, Floats]:
    """(ΔA)² of stacked marginals, and its slope: each record is in one cell of each."""
    if noise == "laplace":
        total = float(weights.sum())
        return total**2, np.full_like(weights, 2 * total)
    return float(weights @ weights), 2 * weights


def _minimized(loss: Callable[[Floats], tuple[float, Floats]], start: Floats, lowest: Floats) -> Floats:
    from scipy.optimize import minimize

    bounds = [(low, None) for low in lowest]
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"ftol": TOLERANCE})
    return np.asarray(found.x, dtype=np.float64)


def _spread_numbers(rows: int, columns: int) -> Floats:
    """Numbers spread over [0, 1) without a pattern, the same on every machine: the mixer of splitmix64."""
    mixed = np.arange(1, rows * columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray((mixed ^ (mixed >> np.uint64(31))) / 2.0**64).reshape(rows, columns)
