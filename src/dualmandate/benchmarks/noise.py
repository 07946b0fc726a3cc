"""Exact noise: nanoseconds of one processor a draw, ours and OpenDP's, in one run.

Each side draws in a fresh process with one thread, after one draw that loads and compiles. Ours is drawn in calls of
2¹⁸ cells into the same array, as a publication does. What was drawn must have the variance of its law.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from dualmandate.benchmarks.harness import BenchmarkRow, apart, check, installed
from dualmandate.mechanism import GAUSSIAN, GEOMETRIC
from dualmandate.mechanism.noise import GaussianSampler, LaplaceSampler, Sampler, subkey

LARGEST_NANOSECONDS = 50.0  # 20 million draws per processor second
LEAST_RATIO = 100.0  # draws in the time of one of OpenDP's
CALL_CELLS = 2**18
CALLS = 200
PEER_DRAWS = 100_000
TOLERANCE = 0.1  # relative, of the variance of what was drawn


@dataclass(frozen=True)
class NoiseCase:
    """One law of noise; the standard deviation of Gaussian noise is its scale."""

    law: str
    scale: int

    @property
    def name(self) -> str:
        """As it stands in a row."""
        return f"discrete {self.law.title()} noise, scale {self.scale:,}"

    @property
    def sampler(self) -> Sampler:
        """Ours."""
        scale = Fraction(self.scale)
        return LaplaceSampler(scale) if self.law == "laplace" else GaussianSampler(scale**2)

    @property
    def variance(self) -> float:
        """Of the noise, by its formula."""
        return GEOMETRIC.variance(1 / self.scale) if self.law == "laplace" else GAUSSIAN.variance(0.5 / self.scale**2)


CASES = tuple(NoiseCase(law, scale) for law in ("laplace", "gaussian") for scale in (1, 10, 1000))


@dataclass(frozen=True)
class SamplerTime:
    """What one side took, and who it was."""

    name: str
    nanoseconds: float  # of one processor, a draw
    set_up: float  # processor seconds until the first draw


def rows(progress: Callable[[str], None], *, calls: int = CALLS, peer_draws: int = PEER_DRAWS) -> list[BenchmarkRow]:
    """Time a draw, how many draws that is in the time of one of the peer's, and the seconds of set-up."""
    found: list[BenchmarkRow] = []
    for case in CASES:
        progress(case.name)
        ours, theirs = _timed(draw_ours, case, calls), _timed(draw_opendp, case, peer_draws)
        assert ours is not None
        speed, peer = ours.nanoseconds, None if theirs is None else theirs.name
        nanoseconds = None if theirs is None else theirs.nanoseconds
        found.append(BenchmarkRow(case.name, speed, "nanoseconds a draw", LARGEST_NANOSECONDS, peer, nanoseconds))
        if nanoseconds is not None:
            unit = "draws in the time of one of the peer"
            found.append(BenchmarkRow(case.name, nanoseconds / speed, unit, LEAST_RATIO, peer, is_floor=True))
        found.append(BenchmarkRow(case.name, ours.set_up, "processor seconds of set-up"))
    return found


def _timed(side: Callable[..., SamplerTime | None], case: NoiseCase, size: int) -> SamplerTime | None:
    """One side in a fresh process; None where its package is not installed."""
    found = apart(side, case.law, case.scale, size)
    return None if found is None else SamplerTime(**found)


def draw_ours(law: str, scale: int, calls: int) -> SamplerTime:
    """In blocks, into one array, under a key that protects nobody."""
    case = NoiseCase(law, scale)
    key = subkey(bytes(32), "benchmark", histogram_mac=b"", measurement=case.name)
    room = np.empty(CALL_CELLS, dtype=np.int64)
    LaplaceSampler(Fraction(500)).draw(key, range(8))  # loads and compiles what all laws share, those of digits too
    sampler, started = case.sampler, time.process_time()
    sampler.draw(key, range(8))
    ready = time.process_time()
    for call in range(calls):
        sampler.draw(key, range(call * CALL_CELLS, (call + 1) * CALL_CELLS), out=room)
    spent = time.process_time() - ready
    check_variance(room, case)
    return SamplerTime("ours", spent / (calls * CALL_CELLS) * 1e9, ready - started)


def draw_opendp(law: str, scale: int, draws: int) -> SamplerTime | None:
    """A vector of zeros through its measurement."""
    name = installed("opendp")
    if name is None:
        return None
    dp: Any = import_module("opendp.prelude")
    dp.enable_features("contrib")
    started = time.process_time()
    vectors = dp.vector_domain(dp.atom_domain(T=int))
    distance = dp.l1_distance(T=int) if law == "laplace" else dp.l2_distance(T=float)
    make = dp.m.make_laplace if law == "laplace" else dp.m.make_gaussian
    measurement = make(vectors, distance, float(scale))
    measurement([0])
    zeros, ready = [0] * draws, time.process_time()
    noise = measurement(zeros)
    spent = time.process_time() - ready
    check_variance(np.array(noise), NoiseCase(law, scale))
    return SamplerTime(name, spent / draws * 1e9, ready - started)


def check_variance(noise: Any, case: NoiseCase) -> None:
    """Refuse to measure noise of another spread."""
    found = float(np.mean(np.square(noise.astype(np.float64)))) / case.variance
    check(abs(found - 1) < TOLERANCE, True)
