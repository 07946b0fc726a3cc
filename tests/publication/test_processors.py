"""One plan with one secret on different processors: the same measurements, and estimates that agree to 10⁻⁹.

Each kind of processor is imitated in a process of its own, as for strategies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.mechanism.strategy.test_same_everywhere import PROCESSORS
from tests.publication.crashes import town

from dualmandate import load_release
from dualmandate.publication.release import Release

CODE = """
import sys
from pathlib import Path
from tests.publication.crashes import kills
for folder in sys.argv[1:]:
    kills.publish(Path(folder))
"""
NESTING = 'name = "wards by age"\nby   = ["ward", "age"]', 'name = "sexes"\nby   = ["sex"]'
NESTED = 'name = "everything"\nby   = ["ward", "age", "sex"]', 'name = "wards"\nby   = ["ward"]'
GAUSSIAN = (
    ('noise    = "geometric"', 'noise    = "gaussian"'),
    ("per person per epsilon", "per person per rho"),
    ("largest_epsilon = 0.5", "largest_rho = 0.5"),
    ('identifier      = "name"\nmost_records_per_unit = 2\n', ""),
    ('neighbors       = "add-or-remove"', 'neighbors       = "replace-one"\ndropping_is_public = true'),
)
PROGRAMS = {  # the changes of the town's program, and the cap of its account
    "least squares, laplace": ((), "2"),
    "least squares, gaussian, public total": (GAUSSIAN, "rho=2"),
    "a tree, laplace": ((*zip(NESTING, NESTED, strict=True), ('"optimized"', '"workload"\nmeasured = "apart"')), "2"),
    "a tree, gaussian, public total": (
        (*GAUSSIAN, *zip(NESTING, NESTED, strict=True), ('"optimized"', '"workload"\nmeasured = "apart"')),
        "rho=2",
    ),
}
IMITATED = ({}, *PROCESSORS[:3])
pytestmark = pytest.mark.slow
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every program, planned and approved."""
    found = {}
    for name, (edits, cap) in PROGRAMS.items():
        program = town.PROGRAM
        for before, after in edits:
            assert before in program
            program = program.replace(before, after)
        found[name] = tmp_path_factory.mktemp("town") / "town"
        town.prepare(found[name], program, cap)
    return found


@pytest.fixture(scope="module")
def releases(prepared: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Release]]:
    """What each processor makes of every program, the one that is here first."""
    found: dict[str, list[Release]] = {name: [] for name in prepared}
    for processor in IMITATED:
        folder = tmp_path_factory.mktemp("processor")
        copies = {name: folder / str(number) for number, name in enumerate(prepared)}
        for name, copy in copies.items():
            shutil.copytree(prepared[name], copy)
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"} | processor
        if "NUMBA_CPU_NAME" in processor:
            environment["NUMBA_CACHE_DIR"] = str(folder / "compiled")
        words = [sys.executable, "-W", "ignore", "-c", CODE, *map(str, copies.values())]
        result = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        for name, copy in copies.items():
            [release] = (copy / town.OUT).iterdir()
            found[name].append(load_release(release))
    return found


def sums(release: Release, table: str, *columns: str) -> list[int]:
    """The whole numbers of a table, summed over all columns but some; by those in their order."""
    found = release.published(table)
    assert found.values is not None
    assert found.values.min() >= 0
    shape = [len(levels) for levels in found.labels]
    others = tuple(place for place, column in enumerate(found.columns) if column not in columns)
    return [int(number) for number in found.values.reshape(shape).sum(axis=others).reshape(-1)]


def check_constraints(release: Release) -> None:
    """Non-negative, additive, and beside the public total where there is one."""
    first, second, *exact = release.tables
    if first == "everything":
        assert sums(release, first, "ward") == sums(release, second, "ward")
    totals = {sums(release, table)[0] for table in (first, second, *exact)}
    assert len(totals) == 1


@pytest.mark.parametrize("name", PROGRAMS)
def test_estimates_agree_on_different_processors(name: str, releases: dict[str, list[Release]]) -> None:
    first, *others = releases[name]
    assert len(others) == 3
    assert first.facts["estimated_together"] is name.startswith("a tree")
    check_constraints(first)
    for release in others:
        check_constraints(release)
        for group in first.facts["groups"]:
            path = group["measurements"]
            assert (release.folder / path).read_bytes() == (first.folder / path).read_bytes()
        for table in first.tables:
            one, other = first.published(table), release.published(table)
            np.testing.assert_allclose(one.estimates, other.estimates, rtol=0, atol=1e-9)
            np.testing.assert_allclose(one.standard_errors, other.standard_errors, rtol=1e-9)
