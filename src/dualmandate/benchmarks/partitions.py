"""Partition-then-measure: root mean squared error of a query, ours, the published partitions and the plain strategy.

On ten made histograms of 1,024 cells, from a few records and single spikes to a million records spread like nothing in
particular; for 2,000 random ranges, all prefix sums and all cells. Then for random ranges on histograms drawn at random
from twelve families, of some hundred to ten million records: those that ours was tuned on have other numbers. Peers:
DAWA, as its authors' program draws it and at twice that noise, and AHP, written from their papers
(`published_partitions`), and the optimized strategy without a partition, whose error is known without a simulation.

A row a case is ours beside DAWA. Then for each workload and each peer the geometric mean of our error in the peer's
over all cases, which shall be below 1, and the worst one, of which nothing is promised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

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
DAWA, LOUDER = "DAWA, as its authors run it", "DAWA at twice the noise"
AHP, PLAIN = "AHP, from its paper", "the optimized strategy alone"
HELD_OUT = range(24, 48)  # of the histograms that are drawn at random
DRAWN_EPSILONS = tuple(Fraction(each, 100) for each in (1, 10, 100))
FAMILIES = (
    *("hardly any records", "mostly empty", "a heavy tail", "spikes on a level", "three hills", "even"),
    *("steps", "heaped", "rough", "clusters", "a wave", "no order"),
)
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


def drawn(number: int, cells: int = CELLS) -> tuple[str, Integers]:
    """One of the histograms drawn at random: its family, with parameters and a number of records of its own."""
    random, places = np.random.default_rng([101, number]), np.arange(cells)

    def records(least: float = 3.0, most: float = 7.0) -> int:
        return int(10 ** random.uniform(least, most))

    family = FAMILIES[number % len(FAMILIES)]
    total = records(1.5, 3.5) if family == "hardly any records" else records()
    shares: NDArray[Any] = np.ones(cells)
    if family == "mostly empty":
        shares[:] = 0
        some = int(random.integers(cells // 100, cells // 4))
        shares[random.choice(cells, some, replace=False)] = random.pareto(random.uniform(0.8, 2), some) + 0.1
    elif family == "a heavy tail":
        shares = np.asarray((places + random.uniform(1, 30)) ** -random.uniform(0.6, 2.5), dtype=np.float64)
    elif family == "spikes on a level":
        some = int(random.integers(5, 60))
        shares = np.full(cells, random.uniform(0, 1) / cells)
        shares[random.choice(cells, some, replace=False)] += random.pareto(1.2, some) / some
    elif family == "three hills":
        at = places / cells
        hills = zip(
            *(random.uniform(0.2, 1, 3), random.uniform(0, 1, 3), 10 ** random.uniform(-2.2, -0.7, 3)), strict=True
        )
        shares = np.full(cells, 1e-6)
        for high, middle, wide in hills:
            shares += high / wide * np.exp(-0.5 * ((at - middle) / wide) ** 2)
    elif family == "steps":
        ends = np.sort(random.choice(np.arange(1, cells), int(random.integers(2, 40)), replace=False))
        levels = random.lognormal(0, 1.2, len(ends) + 1)
        shares = np.repeat(levels, np.diff(np.concatenate([[0], ends, [cells]])))
    elif family == "heaped":
        shares = np.exp(-random.uniform(0, 4) * places / cells)
        period = int(random.choice([5, 10, 12, 50, 100]))
        shares[::period] *= random.uniform(2, 30)
        shares[:: 5 * period] *= random.uniform(1, 4)
    elif family == "rough":
        shares = random.lognormal(0, random.uniform(0.3, 1.5), cells)
    elif family == "clusters":
        shares[:] = 0
        for _ in range(int(random.integers(2, 12))):
            wide = int(random.integers(2, 40))
            first = int(random.integers(0, cells - wide))
            shares[first : first + wide] += random.gamma(random.uniform(0.5, 5), 1, wide)
    elif family == "a wave":
        shares = 1 + 0.8 * np.sin(2 * np.pi * places * random.uniform(0.5, 20) / cells)
        shares += random.uniform(0, 0.3) * (1 + np.sin(2 * np.pi * places * 60 / cells))
    elif family == "no order":
        shares = random.permutation((places + 1.0) ** -random.uniform(0.5, 1.6))
    return family, random.multinomial(total, shares / shares.sum()).astype(np.int64)


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
    numbers: Sequence[int] = HELD_OUT,
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
        found += _rows(kind, errors)
    workload = workloads(cells, ranges)["random ranges"]
    tell = counter(
        progress, f"random ranges: {repetitions} releases of each on histograms drawn at random", len(numbers)
    )
    errors = {}
    for done, number in enumerate(numbers, start=1):
        family, counts = drawn(number, cells)
        for epsilon in DRAWN_EPSILONS:
            case = f"drawn {number}, {family}, {counts.sum():,} records, ε = {float(epsilon):g}"
            plain = apart(workload, PrivacyMeasure.PURE_DP)
            errors[case] = _errors(counts, workload, epsilon, repetitions=repetitions, plain=plain)
        tell(done)
    return found + _rows("drawn at random", errors)


def _rows(kind: str, errors: Mapping[str, _Errors]) -> list[BenchmarkRow]:
    """A row a case, and the summary of all."""
    theirs = {case: each.peers[DAWA] for case, each in errors.items()}
    found = [
        BenchmarkRow(case, each.ours, UNIT, target=theirs[case], peer=DAWA, peer_value=theirs[case])
        for case, each in errors.items()
    ]
    return found + _summary(kind, list(errors.values()))


def _summary(kind: str, errors: Sequence[_Errors]) -> list[BenchmarkRow]:
    found = []
    for peer in (DAWA, LOUDER, AHP, PLAIN):
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
        LOUDER: [dawa(counts, queries, loss, generator=each, louder=2.0) for each in generators],
        AHP: [ahp(counts, queries, loss, generator=each) for each in generators],
    }
    peers = {name: _root_mean_square(answers, truth) for name, answers in published.items()}
    known = plain.expected_squared_error(loss) / workload.query_count
    return _Errors(_root_mean_square(ours, truth), peers | {PLAIN: math.sqrt(known)})


def _root_mean_square(answers: Sequence[Floats], truth: Floats) -> float:
    return math.sqrt(float(np.mean([np.mean(np.square(each - truth)) for each in answers])))
