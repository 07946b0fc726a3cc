"""A small program folder, planned and approved, whose confidential records sing."""

from __future__ import annotations

import contextlib
import io
import shutil
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import make_url

from dualmandate.apps.cli import app
from dualmandate.apps.output import run
from dualmandate.ledger import Ledger, open_ledger, read_key

CANARY = "canary7Qx"
ODD_NUMBER = 987_654_321
ACCOUNT, CAP, EPSILON = "residents", 2, "1/2"
WARDS, AGES, SEXES = ("north", "east", "south", "west"), ("young", "middle", "old"), ("f", "m")
DATA, PLAN, OUT, STATE = "people.parquet", "report/plan.json", "releases", ".dualmandate"
SETTINGS = "dualmandate.toml"
PROGRAM = f"""\
[program]
schema = 1
name   = "town"

[population]
account         = "{ACCOUNT}"
unit            = "person"
neighbors       = "add-or-remove"
identifier      = "name"
most_records_per_unit = 2
population_size = {{ value = 90_000, unit = "person", source = "made up" }}
source          = "{DATA}"

[population.attributes]
ward = {list(WARDS)}
age  = {list(AGES)}
sex  = {list(SEXES)}

[[workload]]
name = "wards by age"
by   = ["ward", "age"]
value_of_accuracy = {{ value = 50_000, unit = "USD per person^2", source = "made up" }}

[[workload]]
name = "sexes"
by   = ["sex"]
value_of_accuracy = {{ value = 50_000, unit = "USD per person^2", source = "made up" }}

[mechanism]
noise    = "geometric"
strategy = "optimized"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 2, unit = "USD per person per epsilon", source = "made up" }}

[limits]
largest_epsilon = 0.5
"""


PUBLIC = "public.csv"
TECHNOLOGY_PROGRAM = (
    PROGRAM.replace('strategy = "optimized"', 'technology = "multiplicative weights"')
    + f"""
[simulation]
records = "{PUBLIC}"
source = "made up"
technologies = ["multiplicative weights"]
repetitions = 2
"""
)


def public_records() -> str:
    """Records of nobody, to simulate on."""
    rows = (f"{WARDS[n % 4]},{AGES[n % 3]},{SEXES[n % 2]},nobody {n}\n" for n in range(120))
    return "ward,age,sex,name\n" + "".join(rows)


def records(seed: int = 7) -> pa.Table:
    """A few hundred records, some of them with values outside the domain."""
    generator = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {
        name: [str(value) for value in generator.choice(levels, 400)]
        for name, levels in (("ward", WARDS), ("age", AGES), ("sex", SEXES))
    }
    columns["ward"][:3] = [CANARY, f"{CANARY} street 5", None]
    columns["sex"][5] = str(ODD_NUMBER)
    # Some people have three records, of which two count: which ones is a matter of the release's secret.
    columns["name"] = [f"{CANARY} {number * 2 // 5}" for number in range(400)]
    return pa.table(columns)


def typed(folder: Path, *words: object) -> tuple[int, str]:
    """A command as it is typed in a folder: its exit status, and everything it said."""
    said = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = run(app, [str(word) for word in words])
    return status, said.getvalue()


def prepare(folder: Path, program: str = PROGRAM, cap: object = CAP) -> None:
    """Write the program, plan it, open its account, and have the plan approved; no picture is drawn."""
    folder.mkdir(parents=True)
    (folder / SETTINGS).write_text("schema = 1\n", encoding="utf-8")
    (folder / "program.toml").write_text(program, encoding="utf-8")
    pq.write_table(records(), folder / DATA)
    (folder / PUBLIC).write_text(public_records(), encoding="utf-8")
    with mock.patch("dualmandate.report.dossier.write_dossier", return_value=()):
        done(folder, "plan", "program.toml", "--out", "report")
    open_and_approve(folder, cap)


def open_and_approve(folder: Path, cap: object = CAP) -> None:
    """A new ledger, in which the plan is approved."""
    done(folder, "ledger", "open", ACCOUNT, "--unit", "person", "--cap", cap, "--by", "Ann")
    done(folder, "approve", PLAN, "--by", "Ben")


def done(folder: Path, *words: object) -> str:
    """A command that succeeds, and does not sing."""
    status, said = typed(folder, *words)
    assert status == 0, said
    assert_silent(said)
    return said


def the_ledger(folder: Path) -> Ledger:
    state, url = folder / STATE, ledger_url(folder)
    return open_ledger(url or state / "ledger.sqlite", read_key(state / "key"), folder=state if url else None)


def ledger_url(folder: Path) -> str | None:
    """Where the ledger is, if it is not a file of the folder."""
    return tomllib.loads((folder / SETTINGS).read_text(encoding="utf-8")).get("ledger")


def move_ledger(folder: Path, url: str) -> None:
    """From now on the folder's ledger is in this database of PostgreSQL."""
    (folder / SETTINGS).write_text(f'schema = 1\nledger = "{url}"\n', encoding="utf-8")


@contextlib.contextmanager
def copied(folder: Path, name: str) -> Iterator[Path]:
    """A copy of the folder, and of its database where there is one, which goes when it was good."""
    copy, url = folder.with_name(f"{folder.name}-{name}"), ledger_url(folder)
    shutil.copytree(folder, copy)
    if url is None:
        yield copy
    else:
        database = str(make_url(url).database)
        with _administering(url) as connection:
            connection.execute(f'CREATE DATABASE "{database}-{name}" TEMPLATE "{database}"')
        move_ledger(copy, url.replace(database, f"{database}-{name}"))
        yield copy
        with _administering(url) as connection:
            connection.execute(f'DROP DATABASE "{database}-{name}" WITH (FORCE)')
    shutil.rmtree(copy)


def _administering(url: str) -> psycopg.Connection[Any]:
    parts = make_url(url)
    return psycopg.connect(host=str(parts.query["host"]), user=parts.username, dbname="postgres", autocommit=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def assert_silent(*texts: str) -> None:
    """No text repeats what was found in the records."""
    for text in texts:
        assert CANARY not in text
        assert str(ODD_NUMBER) not in text


def assert_silent_folder(folder: Path, leave_out: Sequence[str] = (DATA,)) -> None:
    """No file below a folder does either, compressed columns included."""
    for name, content in contents(folder).items():
        if name in leave_out:
            continue
        assert_silent(name, content.decode("latin-1"))
        if name.endswith(".parquet"):
            table = pq.read_table(folder / name)
            assert_silent(str(table.to_pylist()), str(table.schema.metadata))
