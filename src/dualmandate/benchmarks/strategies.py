"""Strategies against the best known: error, distance to the best possible, and processor seconds.

Every optimization runs in a fresh process with one thread: ours, the published p-identity that `reference_strategy`
writes out, and packages of others where they are installed, here or in the environment of the Python that the variable
DUALMANDATE_PEERS names. Seconds are those of one processor, with Python and all packages loaded before.

An error is the `error_coefficient` (ΔA)²‖QA⁺‖²_F, ΔA the largest column norm of the strategy, L1 for laplace and L2 for
gaussian noise. The errors to reach are below those of every public optimizer, or equal where the optimum is known.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dualmandate.benchmarks import census, peers
from dualmandate.benchmarks.harness import ONE_THREAD, BenchmarkRow, run_apart
from dualmandate.benchmarks.reference_strategy import Floats, Noise, reference_strategy
from dualmandate.errors import Refusal
from dualmandate.workload import Workload, all_range, gram, identity, kron, prefix, stack, total

# Processor seconds may exceed what was promised by this factor: machines are not alike.
ALLOWANCE = 1.5
ERROR, SECONDS = "error coefficient", "processor seconds on one thread"
PEERS_VARIABLE = "DUALMANDATE_PEERS"


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
        ours, package = _optimized("ours", case), _package(case)
        reference = _optimized("reference", case) if case.has_reference else OptimizerResult()
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


def _optimized(side: str, case: StrategyCase) -> OptimizerResult:
    """Ours or the reference, in a fresh process."""
    words = [sys.executable, "-m", "dualmandate.benchmarks.strategies", side, case.name]
    return OptimizerResult(**run_apart(words, case=case.name, environment=ONE_THREAD))


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


def main(side: str, name: str) -> None:
    """Optimize one case here, and print what was found as JSON."""
    case = next(each for each in CASES if each.name == name)
    workload, optimize = case.build(), SIDES[side]
    optimize(stack(kron(prefix(3), identity(2)), kron(total(3), identity(2))), case.noise)  # loads what loads late
    import dualmandate.mechanism.strategy.ordered_kernel  # noqa: F401  # loops that so small a case does not take

    started = time.process_time()
    found = optimize(workload, case.noise)
    seconds = None if found.error is None else time.process_time() - started
    print(json.dumps(asdict(replace(found, seconds=seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
