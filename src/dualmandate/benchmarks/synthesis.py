"""Synthetic records beside installed makers of them: how far tables counted from them are off, and what that takes.

Records are those of Adult and of NIST's excerpts of the American Community Survey where the folder that the variable
DUALMANDATE_DATA names has them, and generated ones elsewhere; numbers of many values are put into bins. A package need
not be installed here: DUALMANDATE_PEERS names the Python of another environment. Distances are of records that were
dealt, of as many as there are, from all tables of two and of three attributes. By default one small case is run, at one
ε and from one seed; DUALMANDATE_SYNTHESIS=full runs all, which takes hours, nearly all of them the peers'.
"""

from __future__ import annotations

import csv
import gzip
import os
import sys
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from dualmandate.benchmarks import peer_synthesizers
from dualmandate.benchmarks.harness import ONE_THREAD, BenchmarkRow, run_apart
from dualmandate.benchmarks.peer_synthesizers import Levels, mean_distance
from dualmandate.mechanism import simulation_keys, synthesize
from dualmandate.population import Domain, Records
from dualmandate.population.loss import rho_at
from dualmandate.workload import marginals

FAILURE = Fraction(1, 10**9)
BINS = 10  # of a number with more than MOST_LEVELS values
MOST_LEVELS = 20
NIST = ("PUMA", "AGEP", "SEX", "MSP", "HISP", "RAC1P", "NPF", "HOUSING_TYPE", "OWN_RENT", "EDU", "PINCP_DECILE", "DPHY")
GENERATED = 5000
TIMES = 5  # faster than a peer


def _rows_of(file: Path) -> list[dict[str, str]]:
    with gzip.open(file, "rt", encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def _coded(rows: list[dict[str, str]], names: tuple[str, ...]) -> tuple[Levels, Levels]:
    """Levels of the named columns, numbers of many values in bins of equal width; what is not applicable is a level."""
    columns, sizes = [], []
    for name in names:
        values = [row[name] for row in rows]
        known = sorted(set(values))  # both sides take the levels that occur for the declared ones
        if len(known) <= MOST_LEVELS:
            places = {value: place for place, value in enumerate(known)}
        else:
            numbers = [float(value) for value in known if value != "N"]
            width = (max(numbers) - min(numbers)) / BINS
            places = {v: min(int((float(v) - min(numbers)) / width), BINS - 1) for v in known if v != "N"} | (
                {"N": BINS} if "N" in known else {}
            )
        columns.append([places[value] for value in values])
        sizes.append(max(places.values()) + 1)
    return np.array(columns, dtype=np.int64).T.copy(), np.array(sizes, dtype=np.int64)


def _generated() -> tuple[Levels, Levels]:
    """Persons of eight attributes, each of which hangs together with one or two before."""
    generator, sizes = np.random.default_rng(2022), np.array([2, 7, 5, 9, 3, 12, 4, 6])
    levels = np.zeros((GENERATED, len(sizes)), dtype=np.int64)
    for place, size in enumerate(sizes):
        before = levels[:, max(0, place - 2) : place].sum(axis=1)
        own = generator.geometric(0.4, GENERATED) - 1
        levels[:, place] = np.where(generator.random(GENERATED) < 0.5, before * 3, own) % size
    return levels, sizes


def cases() -> dict[str, tuple[Levels, Levels]]:
    """Levels and sizes, by the name of a case."""
    folder = Path(os.environ.get("DUALMANDATE_DATA", ""))
    nist, adult = folder / "nist_dce" / "ma2019.csv.gz", folder / "adult" / "adult.csv.gz"
    if "DUALMANDATE_DATA" not in os.environ or not (nist.is_file() and adult.is_file()):
        return {"generated persons, 8 attributes": _generated()}
    rows = _rows_of(adult)
    found = {"NIST excerpt, 12 attributes": _coded(_rows_of(nist), NIST)}
    return found | ({"Adult, 14 attributes": _coded(rows, tuple(rows[0]))} if _is_full() else {})


def _is_full() -> bool:
    return os.environ.get("DUALMANDATE_SYNTHESIS") == "full"


def ours(levels: Levels, sizes: Levels, epsilon: float, seed: int) -> dict[str, Any]:
    """One release of ours, with how many intervals of all two-way tables hold what they are about."""
    records = Records(Domain.of_shape(sizes.tolist()), levels)
    workload = marginals(sizes.tolist(), 2)
    rho = Fraction(rho_at(epsilon, FAILURE))
    started = time.process_time()
    found = synthesize(records, workload, rho, simulation_keys(seed, 0))
    dealt = found.records.levels
    seconds = time.process_time() - started
    assert found.answers.half_widths is not None
    off = np.abs(found.answers.values - workload.answers_from(records))
    told = sum(each.distance for each in found.distances.values()) / len(found.distances) / 2 / len(levels)
    return {
        "seconds": seconds,
        "distances": [mean_distance(levels, dealt, sizes.tolist(), order) for order in (2, 3)],
        "told": told,
        "held": float(np.mean(off <= found.answers.half_widths)),
    }


def _theirs(name: str, file: Path, epsilon: float, seed: int) -> dict[str, Any] | None:
    python = os.environ.get("DUALMANDATE_PEERS") or sys.executable
    given = [name, str(file), str(epsilon), str(float(FAILURE)), str(seed)]
    answer: dict[str, Any] | None = run_apart(
        [python, "-P", peer_synthesizers.__file__, *given], case=name, environment=ONE_THREAD
    )
    return answer


def rows(progress: Callable[[str], None]) -> list[BenchmarkRow]:
    """Ours beside each peer, in the mean over the seeds."""
    epsilons, seeds = ((0.5, 1.0, 4.0), range(3)) if _is_full() else ((1.0,), range(1))
    found: list[BenchmarkRow] = []
    for (name, (levels, sizes)), epsilon in ((case, epsilon) for case in cases().items() for epsilon in epsilons):
        case = f"{name}, ε = {epsilon:g}"
        progress(case)
        own = [ours(levels, sizes, epsilon, seed) for seed in seeds]
        others = {}
        with TemporaryDirectory() as folder:
            file = Path(folder, "records.npz")
            np.savez(file, levels=levels, sizes=sizes)
            for peer in peer_synthesizers.PEERS:
                progress(f"{case}: {peer}")
                answers = [answer for seed in seeds if (answer := _theirs(peer, file, epsilon, seed)) is not None]
                if answers:
                    others[peer] = answers
        found += _compared(case, own, others)
    return found


def _compared(case: str, own: list[dict[str, Any]], others: dict[str, list[dict[str, Any]]]) -> Iterator[BenchmarkRow]:
    def mean(runs: list[dict[str, Any]], key: str) -> float:
        return float(np.mean([run[key] for run in runs]))

    for place, tables in enumerate(("two-way", "three-way")):
        unit = f"mean total variation distance, {tables} tables"
        mine = float(np.mean([run["distances"][place] for run in own]))
        for runs in others.values():
            theirs = float(np.mean([run["distances"][place] for run in runs]))
            yield BenchmarkRow(case, mine, unit, target=theirs, peer=runs[0]["peer"], peer_value=theirs)
        if not others:
            yield BenchmarkRow(case, mine, unit)
    mine = mean(own, "seconds")
    for runs in others.values():
        theirs = mean(runs, "seconds")
        yield BenchmarkRow(case, mine, "processor seconds", theirs / TIMES, runs[0]["peer"], theirs)
    if not others:
        yield BenchmarkRow(case, mine, "processor seconds")
    yield BenchmarkRow(
        case, mean(own, "told"), "mean total variation distance, two-way tables, as the release tells it"
    )
    yield BenchmarkRow(case, mean(own, "held"), "share of 90 % intervals that hold", target=0.9, is_floor=True)
