"""One record, whatever stands in it, changes nothing that can be seen of a publication from outside."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.publication.crashes import town

CSV, SQLITE = "people.csv", "people.sqlite"
COLUMNS = ("ward", "age", "sex", "name", "note")
SOURCES = {
    "csv": f'source          = "{CSV}"',
    "parquet": f'source          = "{town.DATA}"',
    "sqlite": 'source          = { table = "people", url_variable = "TOWN_URL" }',
}


def rows() -> list[list[str | None]]:
    return [[*record.values(), "plain"] for record in town.records().to_pylist()]


def write_csv(folder: Path, odd: bytes) -> None:
    with (folder / CSV).open("w", encoding="utf-8", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(COLUMNS)
        writer.writerows(rows())
    with (folder / CSV).open("ab") as opened:
        opened.write(odd)


def write_sqlite(folder: Path, odd: str) -> None:
    (folder / SQLITE).unlink(missing_ok=True)
    with sqlite3.connect(folder / SQLITE) as connection:
        connection.execute("CREATE TABLE people (ward text, age text, sex text, name text, note integer)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, 1)", [row[:4] for row in rows()])
        connection.execute(f"INSERT INTO people VALUES ({odd})")
    connection.close()


def write_parquet(folder: Path, odd: bytes) -> None:
    columns = {
        name: pa.array([(value or "").encode() for value in values] + [odd], pa.binary()).view(pa.string())
        for name, values in zip(COLUMNS, zip(*rows(), strict=True), strict=True)
    }
    pq.write_table(pa.table(columns), folder / town.DATA)


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The town, planned and approved from a source of each kind."""
    made = {}
    for kind, stated in SOURCES.items():
        made[kind] = tmp_path_factory.mktemp(kind) / "town"
        town.prepare(made[kind], town.PROGRAM.replace(f'source          = "{town.DATA}"', stated))
    return made


@pytest.fixture
def folder(
    towns: dict[str, Path], request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    copy = tmp_path / "town"
    shutil.copytree(towns[request.param], copy)
    monkeypatch.setenv("TOWN_URL", f"sqlite:///{copy / SQLITE}")
    return copy


def published(folder: Path) -> tuple[int, str, list[str]]:
    """The exit status, what was said, and the names of all files; nothing of it sings."""
    status, said = town.typed(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve")
    town.assert_silent_folder(folder, leave_out=[CSV, SQLITE, town.DATA])
    town.assert_silent(said)
    made = (path for place in (town.OUT, town.STATE) for path in (folder / place).rglob("*"))
    said = "".join(line for line in said.splitlines(keepends=True) if not line.endswith("…\n"))  # how far it is
    return status, said, sorted(path.relative_to(folder).as_posix() for path in made)


ODD: list[tuple[str, bytes | str]] = [
    ("csv", b"north,old,f,zoe,plain\n"),
    ("csv", f"north,old,f,Ren\xe9e {town.CANARY},x\n".encode("latin-1")),
    ("csv", f"north,old,f,zoe,Ren\xe9e {town.CANARY}\n".encode("latin-1")),
    ("csv", f'north,old,f,"{town.CANARY},x\n'.encode()),
    ("csv", f"north,old,{town.CANARY}\n".encode()),
    ("csv", f"north,old,f,zoe,x,{town.CANARY}\n".encode()),
    ("csv", b"north,old,f,zoe," + town.CANARY.encode() * 400_000 + b"\n"),
    ("csv", b"\x00\n"),
    ("sqlite", f"'north', 'old', 'f', '{town.CANARY}', '{town.CANARY}'"),
    ("sqlite", "'north', x'ff', CAST(x'ff' AS TEXT), 1e300, 1"),
    ("parquet", b"north"),
    ("parquet", b"\xff" + town.CANARY.encode()),
]


@pytest.fixture(scope="module")
def clean(towns: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[bool, tuple[int, str, list[str]]]:
    """What is seen where all records are in order, in a database and in a file: no anchor is kept in the former."""
    seen = {}
    for kind in ("csv", "sqlite"):
        folder = tmp_path_factory.mktemp("clean") / "town"
        shutil.copytree(towns[kind], folder)
        write_csv(folder, b"")
        write_sqlite(folder, "'north', 'old', 'f', 'zoe', 1")
        with pytest.MonkeyPatch.context() as patched:
            patched.setenv("TOWN_URL", f"sqlite:///{folder / SQLITE}")
            seen[kind == "sqlite"] = published(folder)
    return seen


@pytest.mark.parametrize(("folder", "odd"), ODD, indirect=["folder"])
def test_one_record_decides_nothing(
    folder: Path, odd: bytes | str, clean: dict[bool, tuple[int, str, list[str]]]
) -> None:
    """The same exit status, the same words and the same files as without it."""
    if isinstance(odd, str):
        write_sqlite(folder, odd)
    elif CSV in (folder / "program.toml").read_text(encoding="utf-8"):
        write_csv(folder, odd)
    else:
        write_parquet(folder, odd)
    expected = clean[isinstance(odd, str)]
    assert expected[0] == 0, expected[1]
    assert published(folder) == expected


@pytest.mark.parametrize(
    ("folder", "harm"),
    [
        ("csv", "ward,age,name\nnorth,old,zoe\n"),
        ("csv", 'ward,age,sex,name,"note\nnorth,old,f,zoe,x\n'),
        ("csv", ""),
        ("parquet", "ward,age,sex,name\n"),
        ("parquet", "cut"),
        ("parquet", "page"),
        ("parquet", "kind"),
        ("sqlite", "CREATE TABLE people (ward text, age text, name text)"),
        ("sqlite", "CREATE TABLE people (ward text, age text, name text, sex blob)"),
        ("sqlite", "CREATE TABLE persons (ward text)"),
    ],
    indirect=["folder"],
)
def test_what_a_whole_source_is_costs_nothing(folder: Path, harm: str) -> None:
    data = folder / town.DATA
    if harm == "cut":
        data.write_bytes(data.read_bytes()[:-100])
    elif harm == "page":
        content = bytearray(data.read_bytes())
        content[4:40] = bytes(36)
        data.write_bytes(content)
    elif harm == "kind":
        pq.write_table(town.records().set_column(2, "sex", pa.array([[1]] * 400)), data)
    elif harm.startswith("CREATE"):
        with sqlite3.connect(folder / SQLITE) as connection:
            connection.execute(harm)
        connection.close()
    else:
        (folder / (CSV if "csv" in (folder / "program.toml").read_text(encoding="utf-8") else town.DATA)).write_text(
            harm
        )
    status, said, _ = published(folder)
    assert (status, "Traceback" in said) == (2, False), said
    ledger = town.the_ledger(folder)
    assert not ledger.releases()
    assert ledger.spent(town.ACCOUNT) == 0
    assert "resume" not in said
