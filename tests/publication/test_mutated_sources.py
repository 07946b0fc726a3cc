"""Records in files that something happened to: published, or refused with nothing spent; and nothing sings.

`DUALMANDATE_MUTATIONS=2000` publishes from so many files, as `make bench` does.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.conftest import Tell
from tests.mutations import mutated
from tests.publication.crashes import town
from tests.structures import reshaped, retyped

MUTATIONS = int(os.environ.get("DUALMANDATE_MUTATIONS", "48"))
BATCHES = 8
CSV = "people.csv"


def as_csv() -> bytes:
    rows = [",".join(town.records().column_names), *(",".join(map(field, row)) for row in rows_of(town.records()))]
    return "".join(f"{row}\n" for row in rows).encode()


def field(value: object) -> str:
    return "" if value is None else f'"{value}"' if " " in str(value) else str(value)


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


def as_parquet(table: pa.Table, *, packed: bool) -> bytes:
    sink = pa.BufferOutputStream()
    compression = "snappy" if packed else "none"
    pq.write_table(table, sink, compression=compression, use_dictionary=packed, row_group_size=150)
    return bytes(sink.getvalue())


# The file, and what happens to it: to its bytes, or to what it holds.
KINDS: dict[str, tuple[str, Callable[[int], bytes]]] = {
    "csv": (CSV, lambda seed: mutated(as_csv(), seed)),
    "reshaped csv": (CSV, lambda seed: reshaped(as_csv(), seed)),
    "plain parquet": (town.DATA, lambda seed: mutated(as_parquet(town.records(), packed=False), seed, binary=True)),
    "packed parquet": (town.DATA, lambda seed: mutated(as_parquet(town.records(), packed=True), seed, binary=True)),
    "retyped parquet": (town.DATA, lambda seed: as_parquet(retyped(town.records(), seed), packed=seed % 2 == 0)),
}


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The town, planned and approved from each kind of file."""
    made = {name: tmp_path_factory.mktemp("town") / "town" for name in (CSV, town.DATA)}
    for name, folder in made.items():
        town.prepare(folder, town.PROGRAM.replace(town.DATA, name))
        (folder / town.DATA).unlink()
    return made


def trial(towns: dict[str, Path], folder: Path, seed: int) -> str:
    """One file with something wrong: how its publication ended."""
    kind = (*KINDS, "csv")[seed // BATCHES % (len(KINDS) + 1)]
    name, made = KINDS[kind]
    content = made(seed)
    shutil.copytree(towns[name], folder)
    (folder / name).write_bytes(content)
    status, said = town.typed(folder, "publish", town.PLAN, "--unchecked", "--by", "Eve")
    note = f"seed {seed}, {kind}: {said}"
    assert status in (0, 2), note
    assert "Traceback" not in said, note
    town.assert_silent(said)
    town.assert_silent_folder(folder, leave_out=[name])
    ledger = town.the_ledger(folder)
    states = [each.state.value for each in ledger.releases()]
    assert states == (["settled"] if status == 0 else []), note
    assert ledger.spent(town.ACCOUNT) == (Fraction(town.EPSILON) if status == 0 else 0), note
    header = as_csv().split(b"\n", 1)[0] + b"\n"
    if name == CSV and content.startswith(header):
        assert status == 0, note  # what a line does decides nothing
    shutil.rmtree(folder)
    return f"{kind} {'published' if status == 0 else 'refused'}"


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_sources_are_published_or_cost_nothing(
    batch: int, towns: dict[str, Path], tmp_path: Path, tell: Tell
) -> None:
    ended, wrong = Counter[str](), list[str]()
    for seed in range(batch, MUTATIONS, BATCHES):
        try:
            ended[trial(towns, tmp_path / str(seed), seed)] += 1
        except AssertionError as failed:  # the others are tried nevertheless
            wrong.append(f"seed {seed}: {failed}")
    tell(f"mutated sources: {dict(sorted(ended.items()))}", tried=ended.total())
    assert wrong == []
