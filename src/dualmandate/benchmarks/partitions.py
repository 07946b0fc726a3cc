"""Partition-then-measure: root mean squared error of a query, ours, the published partitions and the plain strategy.

On ten made histograms of 1,024 cells, from a few records and single spikes to a million records spread like nothing in
particular; for 2,000 random ranges, all prefix sums and all cells. Peers: DAWA and AHP, written from their papers
(`published_partitions`), and the optimized strategy without a partition, whose error is known without a simulation.

A row a case is ours beside DAWA, the stronger of its two readings. Then for each workload and each peer the geometric
mean of our error in the peer's over all cases, which shall be below 1, and the worst one, of which nothing is promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks.harness import BenchmarkRow, counter
from dualmandate.benchmarks.published_partitions import ahp, dawa
from dualmandate.mechanism import Measurement, PartitionMechanism, simulation_keys
from dualmandate.mechanism.partition import apart
from dualmandate.population import Histogram, PrivacyMeasure
from dualmandate.workload import Workload, groups, identity, prefix

CELLS = 1_024
RANGES = 2_000
EPSILONS = tuple(Fraction(each, 100) for each in (1, 3, 10, 30, 100))
REPETITIONS = 5
UNIT = "records, root mean squared error of a query"
DAWA, AHP, PLAIN = "DAWA, from its paper", "AHP, from its paper", "the optimized strategy alone"
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def histograms(cells: int = CELLS) -> dict[str, Integers]:
    """Made histograms, the same each time: sparse, dense, smooth and spiky ones."""
    random, places = np.random.default_rng(7), np.arange(cells)
    found: dict[str, NDArray[np.float64] | Integers] = {}
    found["spikes"] = np.zeros(cells)
    heights = np.maximum(1, np.floor(3_000 * np.arange(1.0, 26.0) ** -1.3))
    found["spikes"][random.choice(cells, 25, replace=False)] = heights
    found["clusters"] = np.zeros(cells)
    for start in (100, 420, 700):
        first = start * cells // CELLS
        found["clusters"][first : first + 12] = random.poisson(120, 12)
    ages = np.minimum(random.gamma(1.2, 60 * cells / CELLS, 30_000), cells - 1)
    found["skewed"] = np.bincount(ages.astype(np.int64), minlength=cells)
    bell = np.exp(-0.5 * ((places / cells - 0.49) / 0.117) ** 2)
    found["bump"] = random.poisson(100_000 * bell / bell.sum())
    found["flat"] = random.poisson(1_000, cells)
    found["rough"] = np.rint(random.lognormal(6, 1, cells))
    ends = np.concatenate([[0], np.sort(random.choice(np.arange(1, cells), 11, replace=False)), [cells]])
    found["steps"] = random.poisson(np.repeat(random.integers(5, 400, 12), np.diff(ends)))
    heaped = random.poisson(60 * np.exp(-2 * places / cells))
    heaped[::10] *= 6
    heaped[::50] *= 2
    found["heaped"] = heaped
    wave = random.poisson(20 + 15 * np.sin(places / 80))
    wave[random.choice(cells, 30, replace=False)] += random.integers(500, 5_000, 30)
    found["spikes on a wave"] = wave
    found["scattered"] = np.bincount(random.integers(0, cells, 300), minlength=cells)
    return {name: np.asarray(each, dtype=np.int64) for name, each in found.items()}


def workloads(cells: int = CELLS, ranges: int = RANGES) -> dict[str, Workload]:
    """Random ranges, prefix sums, and cells."""
    ends = np.sort(np.random.default_rng(3).integers(0, cells, (ranges, 2)), axis=1)
    asked = groups(cells, [range(first, last + 1) for first, last in ends.tolist()])
    return {"random ranges": asked, "prefix sums": prefix(cells), "cells": identity(cells)}


@dataclass(frozen=True)
class _Errors:
    """Root mean squared errors of one case, by who answers; records."""

    ours: float
    peers: dict[str, float]


def rows(
    progress: Callable[[str], None],
    *,
    cells: int = CELLS,
    ranges: int = RANGES,
    epsilons: Sequence[Fraction] = EPSILONS,
    repetitions: int = REPETITIONS,
) -> list[BenchmarkRow]:
    """A row a case, and for each workload and peer the geometric mean and the worst of our error in its."""
    listed, found = histograms(cells), []
    for kind, workload in workloads(cells, ranges).items():
        tell = counter(progress, f"{kind}: the optimized strategy, then {repetitions} releases of each", len(listed))
        plain = apart(workload, PrivacyMeasure.PURE_DP)
        errors: dict[str, _Errors] = {}
        for done, (name, counts) in enumerate(listed.items(), start=1):
            for epsilon in epsilons:
                case = f"{kind}, {name}, ε = {float(epsilon):g}"
                errors[case] = _errors(counts, workload, epsilon, repetitions=repetitions, plain=plain)
            tell(done)
        for case, each in errors.items():
            theirs = each.peers[DAWA]
            found.append(BenchmarkRow(case, each.ours, UNIT, target=theirs, peer=DAWA, peer_value=theirs))
        found += _summary(kind, list(errors.values()))
    return found


def _summary(kind: str, errors: Sequence[_Errors]) -> list[BenchmarkRow]:
    found = []
    for peer in (DAWA, AHP, PLAIN):
        shares = [each.ours / each.peers[peer] for each in errors]
        mean, unit = math.exp(float(np.mean(np.log(shares)))), f"times the error of {peer}"
        found.append(BenchmarkRow(f"{kind}, geometric mean", mean, unit, target=1.0, peer=peer, peer_value=1.0))
        found.append(BenchmarkRow(f"{kind}, worst", max(shares), unit, peer=peer, peer_value=1.0))
    return found


def _errors(
    counts: Integers, workload: Workload, epsilon: Fraction, *, repetitions: int, plain: Measurement
) -> _Errors:
    """The same keys and seeds in every case."""
    histogram, queries = Histogram(workload.domain, counts), workload.dense()
    truth, loss = workload.answers(counts).astype(np.float64), float(epsilon)
    generators = [np.random.default_rng([19, repetition]) for repetition in range(repetitions)]
    ours = [
        PartitionMechanism().answer(histogram, workload, epsilon, simulation_keys(19, repetition)).values
        for repetition in range(repetitions)
    ]
    published = {
        DAWA: [dawa(counts, queries, loss, generator=each) for each in generators],
        AHP: [ahp(counts, queries, loss, generator=each) for each in generators],
    }
    peers = {name: _root_mean_square(answers, truth) for name, answers in published.items()}
    known = plain.expected_squared_error(loss) / workload.query_count
    return _Errors(_root_mean_square(ours, truth), peers | {PLAIN: math.sqrt(known)})


def _root_mean_square(answers: Sequence[Floats], truth: Floats) -> float:
    return math.sqrt(float(np.mean([np.mean(np.square(each - truth)) for each in answers])))
