"""Adult's two-way tables: the records of DUALMANDATE_DATA where it has them, and invented ones elsewhere."""

from __future__ import annotations

import csv
import gzip
import os
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np

from dualmandate.mechanism import MultiplicativeWeights, simulation_keys
from dualmandate.population import Attribute, Domain, Records
from dualmandate.population.arrays import Integers
from dualmandate.workload import Tabulation, Workload

DATA = Path(os.environ.get("DUALMANDATE_DATA", Path(__file__).parents[4] / "shared" / "data"))
SIZES = {"age": 85, "workclass": 9, "education-num": 16, "marital-status": 7, "occupation": 15}
SIZES |= {"race": 5, "sex": 2, "native-country": 42, "income>50K": 2}
RECORDS = 48_842


def adults() -> Integers:
    file = DATA / "adult" / "adult.csv.gz"
    if file.is_file():
        with gzip.open(file, "rt", encoding="utf-8", newline="") as opened:
            return np.array([[int(row[name]) for name in SIZES] for row in csv.DictReader(opened)])
    generator = np.random.default_rng(1994)
    common = generator.random(RECORDS)
    mixed = [0.6 * common + 0.4 * generator.random(RECORDS) for _ in SIZES]
    return np.stack([np.floor(s * m**2).astype(np.int64) for s, m in zip(SIZES.values(), mixed, strict=True)], axis=1)


def test_two_way_tables_of_a_billion_cells() -> None:
    domain = Domain(tuple(Attribute.ordered_levels(name, list(map(str, range(s)))) for name, s in SIZES.items()))
    assert domain.size > 10**9
    pairs = [Tabulation.of(f"{one} by {other}", (one, other)) for one, other in combinations(SIZES, 2)]
    counts, workload = Records(domain, adults()), Workload.from_tabulations(domain, pairs)
    truth = workload.answers_from(counts)
    found = MultiplicativeWeights().answer(counts, workload, Fraction(1, 2), simulation_keys(2, 0))
    off = np.abs(found.values - truth)
    assert off.sum() / 2 / RECORDS / len(pairs) < 0.09  # mean total variation distance
    assert found.half_widths is not None
    assert np.all(off <= found.half_widths)
