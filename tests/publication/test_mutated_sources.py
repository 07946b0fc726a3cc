"""Records in files that something happened to: published, or refused with nothing spent; and nothing sings.

`DUALMANDATE_MUTATIONS=2000` publishes from so many files, as `make bench` does.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.mutations import mutated
from tests.publication.crashes import town

MUTATIONS = int(os.environ.get("DUALMANDATE_MUTATIONS", "24"))
BATCHES = 8
CSV = "people.csv"


def as_csv() -> bytes:
    rows = [",".join(town.records().column_names), *(",".join(map(field, row)) for row in rows_of(town.records()))]
    return "".join(f"{row}\n" for row in rows).encode()


def field(value: object) -> str:
    return "" if value is None else f'"{value}"' if " " in str(value) else str(value)


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return list(zip(*table.to_pydict().values(), strict=True))


def as_parquet(compression: str, *, packed: bool) -> Callable[[], bytes]:
    def made() -> bytes:
        sink = pa.BufferOutputStream()
        pq.write_table(town.records(), sink, compression=compression, use_dictionary=packed, row_group_size=150)
        return bytes(sink.getvalue())

    return made


KINDS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "csv": (CSV, as_csv),
    "plain parquet": (town.DATA, as_parquet("none", packed=False)),
    "packed parquet": (town.DATA, as_parquet("snappy", packed=True)),
}


@pytest.fixture(scope="module")
def towns(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The town, planned and approved from each kind of file."""
    made = {name: tmp_path_factory.mktemp("town") / "town" for name in (CSV, town.DATA)}
    for name, folder in made.items():
        town.prepare(folder, town.PROGRAM.replace(town.DATA, name))
        (folder / town.DATA).unlink()
    return made


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_sources_are_published_or_cost_nothing(
    batch: int, towns: dict[str, Path], tmp_path: Path, tell: Callable[[str], None]
) -> None:
    ended = Counter[str]()
    for seed in range(batch, MUTATIONS, BATCHES):
        kind = (*KINDS, "csv")[seed // BATCHES % (len(KINDS) + 1)]
        name, made = KINDS[kind]
        content = mutated(made(), seed, binary=name == town.DATA)
        folder = tmp_path / str(seed)
        shutil.copytree(towns[name], folder)
        (folder / name).write_bytes(content)
        status, said = town.typed(folder, "publish", town.PLAN, "--by", "Eve")
        note = f"seed {seed}, {kind}: {said}"
        assert status in (0, 2), note
        assert "Traceback" not in said, note
        town.assert_silent(said)
        town.assert_silent_folder(folder, leave_out=[name])
        ledger = town.the_ledger(folder)
        states = [each.state.value for each in ledger.releases()]
        assert states == (["settled"] if status == 0 else []), note
        assert float(ledger.spent(town.ACCOUNT)) == (0.5 if status == 0 else 0), note
        first = made().split(b"\n", 1)[0] + b"\n"
        if kind == "csv" and content.startswith(first):
            assert status == 0, note  # what a line does decides nothing
        ended[f"{kind} {'published' if status == 0 else 'refused'}"] += 1
        shutil.rmtree(folder)
    tell(f"mutated sources: {dict(sorted(ended.items()))}")
