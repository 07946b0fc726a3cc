"""Partition-then-measure on two attributes: root mean squared error of a query, ours beside published partitions.

On made tables of 64 × 64 and 32 × 128 cells: clusters of points, a smooth hill, hardly any records, points along roads;
for all rectangles, all cells, and both marginals. Peers: DAWA along a Hilbert curve, uniform and adaptive grids, and
quadtrees, each written from its paper (`published_partitions`), and the optimized strategy without a partition.

A row a case is ours beside the best of the published ones in it, which is not known beforehand; then for each kind of
queries and each peer the geometric mean of our error in the peer's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks.harness import BenchmarkRow, counter
from dualmandate.benchmarks.published_partitions import adaptive_grid, dawa, quadtree, uniform_grid
from dualmandate.mechanism import PartitionMechanism, simulation_keys
from dualmandate.mechanism.partition import apart, cell_order
from dualmandate.population import Histogram, PrivacyMeasure
from dualmandate.workload import Workload, all_range, identity, kron, stack, total

SHAPES = ((64, 64), (32, 128))
EPSILONS = tuple(Fraction(each, 100) for each in (1, 10, 100))
REPETITIONS = 3
UNIT = "records, root mean squared error of a query"
DAWA, PLAIN = "DAWA along a Hilbert curve", "the optimized strategy alone"
GRIDS = {"a uniform grid": uniform_grid, "an adaptive grid": adaptive_grid, "a quadtree": quadtree}
RECTANGLES = 400  # by which DAWA's strategy is chosen, out of all
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]


def tables(shape: tuple[int, int]) -> dict[str, Integers]:
    """Made tables, the same each time."""
    random = np.random.default_rng(11)

    def binned(points: Floats) -> Integers:
        inside = points[np.all((points >= 0) & (points < 1), axis=1)]
        cells = (inside * shape).astype(np.int64)
        return np.bincount(np.ravel_multi_index((cells[:, 0], cells[:, 1]), shape), minlength=math.prod(shape))

    centers = random.uniform(0.1, 0.9, (12, 2))
    spreads = random.uniform(0.005, 0.06, 12)
    which = random.integers(0, 12, 100_000)
    clusters = centers[which] + spreads[which, None] * random.normal(size=(100_000, 2))
    hill = 0.5 + 0.17 * random.normal(size=(1_000_000, 2))
    ends = random.uniform(0, 1, (25, 2, 2))
    road, along = random.integers(0, 25, 50_000), random.uniform(0, 1, (50_000, 1))
    roads = ends[road, 0] * along + ends[road, 1] * (1 - along) + 0.003 * random.normal(size=(50_000, 2))
    found = {"clusters": clusters, "a hill": hill, "hardly anybody": random.uniform(0, 1, (500, 2)), "roads": roads}
    return {name: binned(points).reshape(shape) for name, points in found.items()}


def workloads(shape: tuple[int, int]) -> dict[str, Workload]:
    """All rectangles, all cells, both marginals."""
    first, second = shape
    return {
        "rectangles": kron(all_range(first), all_range(second)),
        "cells": kron(identity(first), identity(second)),
        "marginals": stack(kron(identity(first), total(second)), kron(total(first), identity(second))),
    }


def rows(
    progress: Callable[[str], None],
    *,
    shapes: Sequence[tuple[int, int]] = SHAPES,
    epsilons: Sequence[Fraction] = EPSILONS,
    repetitions: int = REPETITIONS,
) -> list[BenchmarkRow]:
    """A row a case, and for each kind of queries and peer the geometric mean of our error in its."""
    found, shares = [], dict[tuple[str, str], list[float]]()
    for shape in shapes:
        listed = tables(shape)
        for kind, workload in workloads(shape).items():
            words = f"{shape[0]} × {shape[1]}, {kind}"
            tell = counter(progress, f"{words}: {repetitions} releases of each", len(listed))
            for done, (name, counts) in enumerate(listed.items(), start=1):
                for epsilon in epsilons:
                    ours, peers = _errors(counts, kind, workload, epsilon, repetitions)
                    best = min((peer for peer in peers if peer != PLAIN), key=peers.__getitem__)
                    case = f"{words}, {name}, ε = {float(epsilon):g}"
                    found.append(BenchmarkRow(case, ours, UNIT, target=peers[best], peer=best, peer_value=peers[best]))
                    for peer, error in peers.items():
                        shares.setdefault((kind, peer), []).append(ours / error)
                tell(done)
    for (kind, peer), each in shares.items():
        mean, unit = math.exp(float(np.mean(np.log(each)))), f"times the error of {peer}"
        found.append(BenchmarkRow(f"{kind}, geometric mean", mean, unit, target=1.0, peer=peer, peer_value=1.0))
    return found


def _errors(
    counts: Integers, kind: str, workload: Workload, epsilon: Fraction, repetitions: int
) -> tuple[float, dict[str, float]]:
    """Ours and each peer's, from the same seeds in every case."""
    histogram, loss = Histogram(workload.domain, counts), float(epsilon)
    truth = workload.answers(counts).astype(np.float64)
    order = cell_order(counts.shape)
    asked = _asked(kind, counts.shape)[:, order]

    def in_order(generator: np.random.Generator) -> Floats:
        found = np.empty(counts.size)
        found[order] = dawa(counts.reshape(-1)[order], asked, loss, generator=generator, estimate=True)
        return found.reshape(counts.shape)

    squares: dict[str, list[float]] = {}
    for repetition in range(repetitions):
        keys = simulation_keys(19, repetition)
        answers = PartitionMechanism().answer(histogram, workload, epsilon, keys).values
        squares.setdefault("ours", []).append(float(np.mean(np.square(answers - truth))))
        tables = {DAWA: in_order(np.random.default_rng([19, repetition]))}
        for name, release in GRIDS.items():
            tables[name] = release(counts, loss, generator=np.random.default_rng([19, repetition]))
        for name, table in tables.items():
            squares.setdefault(name, []).append(float(np.mean(np.square(workload.answers(table) - truth))))
    errors = {name: math.sqrt(float(np.mean(each))) for name, each in squares.items()}
    plain = apart(workload, PrivacyMeasure.PURE_DP)
    errors[PLAIN] = math.sqrt(plain.expected_squared_error(loss) / workload.query_count)
    return errors.pop("ours"), errors


def _asked(kind: str, shape: tuple[int, int]) -> Floats:
    """The queries, of rectangles some at random, over the cells in row-major order."""
    if kind != "rectangles":
        return workloads(shape)[kind].dense()
    random, found = np.random.default_rng(3), np.zeros((RECTANGLES, *shape))
    for each in found:
        (top, bottom), (left, right) = (np.sort(random.integers(0, size, 2)) for size in shape)
        each[top : bottom + 1, left : right + 1] = 1
    return found.reshape(RECTANGLES, -1)
