"""A release folder as its users meet it: every number with an interval that holds its promise."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import Tell
from tests.measured import direct, optimized, query_rows

from dualmandate.errors import InvalidRelease, InvalidRequest, UnknownName
from dualmandate.mechanism import GEOMETRIC, Measurement, Noise, Rows, optimize_strategy
from dualmandate.mechanism.noise import NoiseKey
from dualmandate.population import Attribute, Domain, PrivacyMeasure, Protection
from dualmandate.publication import release as module
from dualmandate.publication.intervals import interval_of
from dualmandate.publication.release import Release, read_facts
from dualmandate.publication.writing import (
    NoisyRows,
    Parquet,
    PublishedTable,
    estimates_sheet,
    file_names,
    measurements_sheet,
    values_sheet,
)
from dualmandate.workload import Tabulation, Workload

PROTECTION = Protection()
AGES, SEXES, INCOMES = ("young", "middle", "old", "very old"), ("f", "m"), ("<=50K", ">50K")
DOMAIN = Domain(
    (
        Attribute.categories("age", list(AGES)),
        Attribute.categories("sex", list(SEXES)),
        Attribute.categories("income", list(INCOMES)),
    )
)
COUNTS = np.arange(16).reshape(4, 2, 2) * 37 % 101
TWO_WAY = Workload.from_tabulations(
    DOMAIN,
    [
        Tabulation("age by sex", by=("age", "sex")),
        Tabulation("age by income", by=("age", "income")),
        Tabulation("sex by income", by=("sex", "income")),
    ],
)
DIRECT = Workload.from_tabulations(DOMAIN, [Tabulation("ages", by=("age",)), Tabulation("everybody")])
CELLS = Workload.from_tabulations(DOMAIN, [Tabulation("incomes", by=("income",))])


@dataclass(frozen=True)
class Group:
    name: str
    measurement: Measurement
    loss: Fraction

    @property
    def rows(self) -> Rows:
        return self.measurement.rows


@cache
def groups(noise: str = "laplace") -> tuple[Group, ...]:
    privacy_measure = PrivacyMeasure.PURE_DP if noise == "laplace" else PrivacyMeasure.ZCDP
    exact = optimize_strategy(TWO_WAY, noise).exact  # type: ignore[arg-type]
    return (
        Group("two-way tables", optimized(exact, PROTECTION), Fraction(1)),
        Group("direct", direct(DIRECT, PROTECTION, privacy_measure), Fraction(1, 2)),
        Group("cells", direct(CELLS, PROTECTION, privacy_measure, every_cell=True), Fraction(1, 2)),
    )


def measured(group: Group, seed: int) -> NoisyRows:
    """A group with its exact noise, from a key that only the test has."""
    kinds, noises = group.rows.kinds().astype(np.int64), group.measurement.noises(group.loss)
    values = group.rows.count(COUNTS).copy()
    for kind, noise in enumerate(noises):
        rows = np.flatnonzero(kinds == kind)
        key = NoiseKey(hashlib.sha256(f"{seed} {group.name} {kind}".encode()).digest())
        values[rows] += noise.sampler().draw(key, range(len(rows)))
    return NoisyRows(group.name, noises, kinds, values)


def tables_of(group: Group, found: NoisyRows) -> list[PublishedTable]:
    answers, tables, start = group.rows.answers(found.values, None), [], 0
    for table in group.measurement.workload.tables:
        here = answers[start : start + table.query_count]
        start += table.query_count
        labels = tuple(DOMAIN.attributes[axis].levels for axis in sorted(table.label_axes))
        errors = np.sqrt(group.measurement.query_variances(table.name, group.loss))
        columns = tuple(DOMAIN.names[axis] for axis in sorted(table.label_axes))
        values = np.rint(np.maximum(here, 0)).astype(np.int64)
        tables.append(PublishedTable(table.name, "person", columns, tuple(map(tuple, labels)), here, errors, values))
    return tables


def write(folder: Path, noise: str = "laplace", seed: int = 0) -> None:
    """A release as the act of publishing writes it."""
    for name in ("measurements", "estimates", "tables"):
        (folder / name).mkdir(parents=True)
    exact = PublishedTable("known", "person", ("sex",), (SEXES,), np.array([3.0, 4.0]), np.zeros(2), np.array([3, 4]))
    found = [measured(group, seed) for group in groups(noise)]
    tables = [table for group, each in zip(groups(noise), found, strict=True) for table in tables_of(group, each)] + [
        exact
    ]
    names, group_names = file_names([t.name for t in tables]), file_names([g.name for g in groups(noise)])
    listed = []
    for table in tables:
        [estimates] = Parquet().write(estimates_sheet(table), folder / "estimates" / names[table.name])
        [values] = Parquet().write(values_sheet(table), folder / "tables" / names[table.name])
        paths = {"estimates": f"estimates/{estimates.name}", "parquet": f"tables/{values.name}"}
        shown = {"unit": table.unit, "columns": list(table.columns), "cells": len(table.estimates)}
        listed.append({"name": table.name, "exact": table is exact, **shown, **paths})
    described = []
    for group, each in zip(groups(noise), found, strict=True):
        [path] = Parquet().write(measurements_sheet(each), folder / "measurements" / group_names[group.name])
        described.append(
            {
                "name": group.name,
                "tables": [table.name for table in group.measurement.workload.tables],
                "loss": str(group.loss),
                "rows": group.rows.size,
                "measurements": f"measurements/{path.name}",
                "noises": [{"law": n.law, "parameter": str(n.parameter)} for n in each.noises],
            }
        )
    files = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.parquet"))
    }
    facts = {
        "schema": "release/1",
        "label": "public",
        **dict.fromkeys(("release", "program", "plan_digest", "account", "unit"), "made up"),
        "loss": {"exact": "1", "currency": "epsilon"},
        "tables": listed,
        "groups": described,
        "files": files,
    }
    (folder / "release.json").write_text(json.dumps(facts))


def opened(folder: Path, noise: str = "laplace") -> Release:
    made = {group.name: group.measurement for group in groups(noise)}
    return Release(folder, read_facts(folder), made.__getitem__)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("release")
    write(found)
    return found


@pytest.fixture(scope="module")
def release(folder: Path) -> Release:
    return opened(folder)


def test_tables_are_there(release: Release) -> None:
    assert release.tables == (
        "age by sex",
        "age by income",
        "sex by income",
        "ages",
        "everybody",
        "incomes",
        "known",
    )
    assert release.groups == ("two-way tables", "direct", "cells")
    table = release.table("sex by income")
    assert table.column_names == ["sex", "income", "value", "estimate", "standard_error", "unit"]
    assert table.column("income").to_pylist() == ["<=50K", ">50K"] * 2
    assert table.num_rows == 4
    assert release.table("everybody").column_names == ["value", "estimate", "standard_error", "unit"]
    assert release.measurements("direct").noises == groups()[1].measurement.noises(Fraction(1, 2))


def test_labels_choose_what_is_summed(release: Release) -> None:
    estimates = release.published("age by sex").estimates.reshape(4, 2)
    assert release.estimate("age by sex", age="old", sex="f") == estimates[2, 0]
    assert release.estimate("age by sex", sex="m") == pytest.approx(float(estimates[:, 1].sum()))
    assert release.estimate("age by sex", {"age": ["young", "very old"]}) == pytest.approx(
        float(estimates[[0, 3]].sum())
    )
    assert release.estimate("age by sex") == pytest.approx(float(estimates.sum()))
    assert release.interval("age by sex", sex="m").estimate == pytest.approx(float(estimates[:, 1].sum()), abs=1e-3)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_intervals_rest_on_the_noise_of_the_estimate(noise: str, tmp_path: Path) -> None:
    """Σ w²V of the combined rows is the square of the standard error that was published."""
    write(tmp_path, noise)
    release = opened(tmp_path, noise)
    for group in groups(noise):
        variances = np.array([each.distribution().variance for each in group.measurement.noises(group.loss)])
        for table in group.measurement.workload.tables:
            rows = query_rows(group.rows, table.name, list(range(table.query_count)))
            errors = np.sqrt(np.square(rows) @ variances[group.rows.kinds()])
            np.testing.assert_allclose(release.published(table.name).standard_errors, errors, rtol=1e-9)


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_intervals_hold_their_promise(noise: str, tell: Tell) -> None:
    """400 releases of the same counts: single numbers, sums over a column, and a whole table at once."""
    group = groups(noise)[0]
    kinds, noises = group.rows.kinds().astype(np.int64), group.measurement.noises(group.loss)
    truth = TWO_WAY.answers(COUNTS)
    answers = np.array([group.rows.answers(measured(group, seed).values, None) for seed in range(400)])
    weights = np.concatenate(
        [query_rows(group.rows, table.name, list(range(table.query_count))) for table in TWO_WAY.tables]
    )
    for combination in (np.eye(20)[3], np.eye(20)[:8].sum(axis=0), np.eye(20)[[8, 10, 12]].sum(axis=0)):
        found = interval_of(0.0, combination @ weights, kinds, noises)
        held = np.abs(answers @ combination - float(truth @ combination)) <= found.half_width
        assert 0.95 - 4 * 0.011 <= held.mean() <= min(1.0, found.probability + 0.03)
    tell("releases whose intervals were counted", tried=len(answers))


def test_an_interval_says_how_it_was_found(release: Release) -> None:
    one = release.interval("ages", age="old")
    scale = groups()[1].measurement.noises(Fraction(1, 2))[0].parameter
    assert scale == 4  # two tables share a loss of 1/2
    assert (one.method, one.is_exact) == ("one draw of noise", True)
    assert one.half_width == Noise(GEOMETRIC, scale).distribution().reach(0.05)
    assert one.lower == round(one.lower)
    several = release.interval("incomes", income=">50K", probability=Fraction(9, 10))
    assert several.method == "8 draws of noise on a lattice"
    assert several.nominal == 0.9
    known = release.interval("known", sex="f")
    assert (known.lower, known.upper, known.probability, known.method) == (3.0, 3.0, 1.0, "published without noise")


def test_all_numbers_of_a_table_at_once(release: Release, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    direct = release.simultaneous("ages")
    assert direct.is_exact
    assert direct.probability >= 0.95
    assert np.all(direct.upper - direct.lower > 2 * release.interval("ages", age="old").half_width)
    assert release.simultaneous("age by income").is_exact  # sums of cells that are in no two of them
    write(tmp_path, "gaussian")
    together = opened(tmp_path, "gaussian").simultaneous("age by income", 0.9)
    assert "draws of a public key" in together.method
    assert len(together.lower) == 8
    assert release.simultaneous("known").probability == 1.0
    monkeypatch.setattr(module, "MOST_TOGETHER", 10)
    added = release.simultaneous("age by income")  # where errors are too many to be followed together
    assert "the chances to miss added up" in added.method
    alone = release.intervals("age by income", probability=1 - 0.05 / 8)
    assert np.allclose(added.upper, alone["upper"].to_numpy())


def test_all_intervals_of_a_table_at_once_are_those_of_its_numbers(release: Release) -> None:
    """One by one and in bulk, of numbers and of sums over columns that are left out."""
    for table in release.tables:
        columns = release.published(table).columns
        for by in ([], list(columns[:1]), None):
            found = release.intervals(table, by, probability=0.9)
            assert found.schema.metadata[b"probability"] == b"0.9"
            for row in found.to_pylist()[:5]:
                own = {column: row[column] for column in columns if column in row}
                one = release.interval(table, own, probability=0.9)
                assert row["estimate"] == pytest.approx(one.estimate)
                assert row["standard_error"] == pytest.approx(one.standard_error, abs=1e-9)
                assert row["lower"] <= one.lower + 1e-3
                assert row["upper"] >= one.upper - 1e-3
    with pytest.raises(UnknownName, match="no column 'incme'"):
        release.intervals("age by income", ["incme"])
    with pytest.raises(InvalidRequest):
        release["ages"].intervals(probability=1.0)


def test_sums_take_what_their_numbers_take(release: Release) -> None:
    """The interval of a sum is that of the sum of what each of its numbers takes of every row."""
    for group in groups():
        for table in group.measurement.workload.tables:
            rows = query_rows(group.rows, table.name, list(range(table.query_count))).sum(axis=0)
            kinds, noises = group.rows.kinds().astype(np.int64), group.measurement.noises(group.loss)
            expected = interval_of(0.0, rows, kinds, noises)
            assert release.interval(table.name).half_width == pytest.approx(expected.half_width, abs=1e-3)


def test_sums_are_in_the_unit_of_their_table(tmp_path: Path) -> None:
    """A number on a grid of 5 hours: noise of the measured units, times 5."""
    hours = Attribute.numbers("hours", 0, 20, 5)
    domain = Domain((Attribute.categories("sex", list(SEXES)), hours))
    workload = Workload.from_tabulations(domain, [Tabulation("hours by sex", by=("sex",), sum_of="hours")])
    made = direct(workload, PROTECTION, PrivacyMeasure.PURE_DP)
    [noise] = made.noises(Fraction(1))
    table = PublishedTable("hours by sex", "hour", ("sex",), (SEXES,), np.array([50.0, 75.0]), np.ones(2))
    (tmp_path / "estimates").mkdir()
    Parquet().write(estimates_sheet(table), tmp_path / "estimates" / "t")
    facts: dict[str, Any] = {
        "schema": "release/1",
        "files": {},
        "tables": [{"name": table.name, "exact": False, "estimates": "estimates/t.parquet"}],
        "groups": [
            {
                "name": "g",
                "tables": [table.name],
                "noises": [{"law": noise.law, "parameter": str(noise.parameter)}],
            }
        ],
    }
    release = Release(tmp_path, facts, lambda _: made)
    found = release.interval("hours by sex", sex="f")
    assert found.half_width == 5 * noise.distribution().reach(0.05)
    whole = release.simultaneous("hours by sex")
    tail = -np.expm1(np.log(0.95) / 2)
    np.testing.assert_allclose(whole.upper - whole.estimates, 5 * noise.distribution().reach(float(tail)))
    assert "value" not in release.table("hours by sex").column_names


def test_what_does_not_exist_is_refused(release: Release) -> None:
    with pytest.raises(UnknownName, match="this release has no table 'age'"):
        release.table("age")
    with pytest.raises(UnknownName, match="this release has no group 'none'"):
        release.measurements("none")
    with pytest.raises(UnknownName, match="has no column 'race'"):
        release.interval("age by sex", race="w")
    with pytest.raises(UnknownName, match="'sex' has no level 'x'"):
        release.estimate("age by sex", sex="x")
    with pytest.raises(InvalidRequest, match="none, or named twice"):
        release.estimate("age by sex", sex=["f", "f"])
    with pytest.raises(InvalidRequest, match="none, or named twice"):
        release.estimate("age by sex", sex=[])
    with pytest.raises(InvalidRequest, match="an interval that holds with probability 2"):
        release.interval("age by sex", sex="f", probability=2.0)


class TestAltered:
    @pytest.fixture
    def copy(self, folder: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(folder, tmp_path / "copy"))

    def test_a_changed_file_is_refused(self, copy: Path) -> None:
        file = copy / "tables" / "ages.parquet"
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        with pytest.raises(InvalidRelease, match="cannot be used") as refused:
            opened(copy)
        assert "'tables/ages.parquet' is missing, or was changed" in refused.value.why

    def test_a_missing_file_is_refused(self, copy: Path) -> None:
        (copy / "measurements" / "direct.parquet").unlink()
        with pytest.raises(InvalidRelease, match="cannot be used"):
            opened(copy)

    @pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": "release/2", "files": {}}', b'{"schema": 1}'])
    def test_a_damaged_index_is_refused(self, copy: Path, content: bytes) -> None:
        (copy / "release.json").write_bytes(content)
        with pytest.raises(InvalidRelease, match="cannot be used"):
            opened(copy)

    @pytest.mark.parametrize(
        ("place", "value"),
        [
            (("loss", "exact"), "1/0"),
            (("loss", "exact"), "1e999999999"),
            (("loss", "currency"), "euro"),
            (("groups", 0, "noises", 0, "parameter"), None),
            (("groups", 0, "rows"), "3"),
            (("tables", 0, "estimates"), 7),
            (("tables", 0), []),
            (("account",), {}),
            (("signatures",), {"approvals": []}),
            (("signatures",), {"approvals": [{"by": "Ann"}], "publication": {"by": None, "key": None}}),
            (("signatures",), {"approvals": [], "publication": {"by": None, "key": 7}}),
            (("estimated_together",), "yes"),
            (("guarantee",), {"protected": "Every person."}),
            (("guarantee",), {"protected": "Every person.", "indistinguishable": []}),
            (("files", "a\x00b"), "00"),
        ],
    )
    def test_what_every_release_says_is_there(self, copy: Path, place: tuple[Any, ...], value: object) -> None:
        facts = json.loads((copy / "release.json").read_text())
        part = facts
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = value
        (copy / "release.json").write_text(json.dumps(facts))
        with pytest.raises(InvalidRelease, match="cannot be used"):
            opened(copy)

    def test_a_folder_without_a_release_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(InvalidRelease, match="cannot be used"):
            opened(tmp_path / "nothing")

    def test_files_outside_of_the_folder_are_not_looked_at(self, copy: Path) -> None:
        facts = json.loads((copy / "release.json").read_text())
        outside = copy.parent / "outside"
        outside.write_bytes(b"x")
        for name in ("../outside", str(outside)):
            changed: Mapping[str, Any] = facts | {"files": {name: hashlib.sha256(b"x").hexdigest()}}
            (copy / "release.json").write_text(json.dumps(changed))
            with pytest.raises(InvalidRelease, match="cannot be used"):
                opened(copy)
