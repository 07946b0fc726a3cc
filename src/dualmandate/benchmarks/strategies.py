"""Strategies against the best known: error, distance to the best possible, and processor seconds.

Every optimization runs in a fresh process with one thread: ours, the published p-identity that `reference_strategy`
writes out, and packages of others where they are installed, here or in the environment of the Python that the variable
DUALMANDATE_PEERS names. Seconds are those of one processor, with Python and all packages loaded before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from dualmandate.benchmarks import peers
from dualmandate.benchmarks.cases import ALLOWANCE, CASES, Case
from dualmandate.benchmarks.measured import ONE_THREAD, told
from dualmandate.benchmarks.reference_strategy import Noise, reference_strategy
from dualmandate.benchmarks.row import Row
from dualmandate.errors import Refusal
from dualmandate.workload import Workload, identity, kron, prefix, stack, total

ERROR, SECONDS = "error coefficient", "processor seconds on one thread"
PEERS_VARIABLE = "DUALMANDATE_PEERS"


@dataclass(frozen=True)
class Found:
    """What one optimizer gave on one case; everything is None where it refused or is not installed."""

    name: str | None = None
    error: float | None = None
    seconds: float | None = None  # of one processor; None also where it does not search
    bound: float | None = None  # below which no strategy is, where it certifies one
    complaint: str | None = None  # why there is nothing else


def rows(progress: Callable[[str], None], cases: Sequence[Case] = CASES) -> list[Row]:
    """The rows of every case: error with the package's, the same with the reference's, bound and gap, seconds."""
    found: list[Row] = []
    for case in cases:
        progress(case.name)
        ours, package = _optimized("ours", case), _package(case)
        reference = _optimized("reference", case) if case.has_reference else Found()
        for each in (ours, package, reference):
            if each.complaint:
                progress(f"{case.name}: {each.complaint}")
        found += _rows(case, ours, package=package, reference=reference)
    return found


def _rows(case: Case, ours: Found, *, package: Found, reference: Found) -> list[Row]:
    seconds = ALLOWANCE * case.seconds
    listed = [Row(case.name, ours.error, ERROR, target=case.error, peer=package.name, peer_value=package.error)]
    timed = [Row(case.name, ours.seconds, SECONDS, target=seconds, peer=package.name, peer_value=package.seconds)]
    if reference.name:
        listed.append(Row(case.name, ours.error, ERROR, peer=reference.name, peer_value=reference.error))
        timed.append(Row(case.name, ours.seconds, SECONDS, peer=reference.name, peer_value=reference.seconds))
    if case.noise == "gaussian":  # for laplace noise no bound is known to be near
        gap = None if ours.error is None or ours.bound is None else ours.error / ours.bound - 1.0
        listed.append(Row(case.name, ours.bound, "certified lower bound", target=case.bound, is_floor=True))
        listed.append(Row(case.name, gap, "certified gap", target=case.gap))
    return listed + timed


def _optimized(side: str, case: Case) -> Found:
    """Ours or the reference, in a fresh process."""
    words = [sys.executable, "-m", "dualmandate.benchmarks.strategies", side, case.name]
    return Found(**told(words, case=case.name, environment=ONE_THREAD))


def _package(case: Case) -> Found:
    """A package of others; one that is not installed, or that does not run here, is no peer."""
    if case.peer is None:
        return Found()
    with TemporaryDirectory() as folder:
        file = Path(folder, "queries.npz")
        np.savez(file, *case.roots())
        # -P: the script's own folder holds modules of ours, which another Python must not take for its own
        words = [os.environ.get(PEERS_VARIABLE) or sys.executable, "-P", peers.__file__, case.peer, str(file)]
        try:
            answer = told(words, case=case.name, environment=ONE_THREAD)
        except (RuntimeError, OSError) as error:
            return Found(complaint=f"{case.peer} does not run: {str(error).strip().splitlines()[-1]}")
    return Found() if answer is None else Found(answer["peer"], answer["error"], answer["seconds"])


def _ours(workload: Workload, noise: Noise) -> Found:
    from dualmandate.mechanism import optimize_strategy

    try:
        strategy = optimize_strategy(workload, noise)
    except Refusal as refusal:
        return Found(complaint=f"refused: {refusal.what}")
    return Found("ours", strategy.error_coefficient, bound=strategy.lower_bound)


def _reference(workload: Workload, noise: Noise) -> Found:
    strategy = reference_strategy(workload, noise)
    return Found(f"{strategy.template}, one start", strategy.error_coefficient)


SIDES: dict[str, Callable[[Workload, Noise], Found]] = {"ours": _ours, "reference": _reference}


def main(side: str, name: str) -> None:
    """Optimize one case here, and print what was found as JSON."""
    case = next(each for each in CASES if each.name == name)
    workload, optimize = case.build(), SIDES[side]
    optimize(stack(kron(prefix(3), identity(2)), kron(total(3), identity(2))), case.noise)  # loads what loads late
    import_module("dualmandate.mechanism.strategy.ordered_sums")  # loops that so small a case does not take
    started = time.process_time()
    found = optimize(workload, case.noise)
    seconds = None if found.error is None else time.process_time() - started
    print(json.dumps(asdict(replace(found, seconds=seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
