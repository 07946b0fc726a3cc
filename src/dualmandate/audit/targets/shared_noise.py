"""Rows of two releases that count the same, so that noise can be compared: shared noise exposes their difference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.claims.own_noise import own_law
from dualmandate.audit.claims.shared_noise import FEWEST, RowNoise, SharedNoise, shared_noise
from dualmandate.errors import InvalidRequest, Place
from dualmandate.planning.release_spec import load_release
from dualmandate.population.histogram import dense_shape
from dualmandate.program.program import ProgramFile, read_program
from dualmandate.publication.release import Release

PROBED = 2**36  # records of a cell at most, in files that rows are told apart by
SEED = 53  # of these files: they are no data


@dataclass(frozen=True, eq=False)
class _Rows:
    """Every measured row of a release: what it counts of two random files, its number, and its noise."""

    probes: NDArray[np.int64] = field(repr=False)  # (rows, 2)
    values: NDArray[np.int64] = field(repr=False)
    kinds: NDArray[np.int64] = field(repr=False)
    noises: tuple[RowNoise, ...]


def compared_rows(
    release: Release, program: ProgramFile, others: Sequence[Path]
) -> tuple[dict[str, SharedNoise], tuple[str, ...]]:
    """What each of the other releases has in common with this one, and which could not be compared, in words."""
    found: dict[str, SharedNoise] = {}
    left_out: list[str] = []
    own = _rows(release, program) if others else None
    for place in others:
        other = load_release(place)
        _check_another(release, other, place)
        theirs = read_program(other.folder / other.facts["program_file"])
        name = f"release {other.facts['release']} of {other.facts['program']}"
        assert own is not None
        same = theirs.domain == program.domain
        shared = _shared(own, _rows(other, theirs)) if same else None
        if shared is None:
            why = "fewer than eight rows count the same" if same else "it is about other attributes"
            left_out.append(f"noise of {name} beside this one: {why}")
        else:
            found[name if name not in found else f"{name} ({place})"] = shared
    return found, tuple(left_out)


def _check_another(release: Release, other: Release, place: Path) -> None:
    keys = ("release", "plan_digest", "ledger_head")
    if [release.facts.get(key) for key in keys] == [other.facts.get(key) for key in keys]:
        raise InvalidRequest(
            f"release {other.facts['release']} is to be compared with itself",
            why="every number of a release is equal to itself",
            instead="name another release after --beside",
            where=Place(file=str(place)),
        )


def _rows(release: Release, program: ProgramFile) -> _Rows:
    draws, shape = np.random.default_rng(SEED), dense_shape(program.domain)
    files = [draws.integers(0, PROBED, shape, dtype=np.int64) for _ in range(2)]
    probes, values, kinds, noises = [], [], [], list[RowNoise]()
    for name in release.groups:
        rows, measured = release.measurement(name).rows, release.measurements(name)
        probes.append(np.stack([rows.count(file) for file in files], axis=1))
        values.append(measured.values)
        kinds.append(measured.kinds + len(noises))
        for noise in measured.noises:
            law = own_law(noise.law)
            if law is None:
                raise InvalidRequest(
                    f"rows with {noise.law} noise are to be compared",
                    why="how often two draws of it are equal is not worked out",
                    instead="compare releases with discrete Laplace or Gaussian noise",
                    where=Place(file=str(release.folder)),
                )
            noises.append(RowNoise(law, noise.parameter))
    return _Rows(np.concatenate(probes), np.concatenate(values), np.concatenate(kinds), tuple(noises))


def _shared(one: _Rows, other: _Rows) -> SharedNoise | None:
    """The comparison of rows that count the same of both random files; None where there are too few."""
    _, first, second = np.intersect1d(_marks(one), _marks(other), return_indices=True)
    same = (one.probes[first] == other.probes[second]).all(axis=1)
    first, second = first[same], second[same]
    if len(first) < FEWEST:
        return None
    codes = one.kinds[first] * len(other.noises) + other.kinds[second]
    used, kinds = np.unique(codes, return_inverse=True)
    pairs = tuple((one.noises[int(c) // len(other.noises)], other.noises[int(c) % len(other.noises)]) for c in used)
    return shared_noise(one.values[first], other.values[second], noises=pairs, kinds=kinds)


def _marks(rows: _Rows) -> NDArray[np.int64]:
    """One number a row, from both random files."""
    with np.errstate(over="ignore"):
        return np.asarray(rows.probes[:, 0] * np.int64(6364136223846793005) + rows.probes[:, 1])
