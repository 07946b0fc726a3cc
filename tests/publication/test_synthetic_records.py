"""The file of synthetic records: every table in whole numbers of a release is counted from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from tests.publication.test_brute_force import published
from tests.publication.test_marginals_published import Pairs

from dualmandate import load_release
from dualmandate.errors import InvalidRequest
from dualmandate.mechanism.strategy import strategy as optimizing
from dualmandate.population import Attribute, Domain
from dualmandate.publication.release import Release
from dualmandate.publication.synthetic_records import records_of_levels
from dualmandate.publication.writing import Csv, Parquet
from dualmandate.workload import Tabulation, Workload

ASKED = "[publication]\nsynthetic_records = true\n\n[preferences]"
NESTED = """
[[workload]]
name = "cells"
by = ["a", "b", "c"]
value_of_accuracy = { value = 7, unit = "USD per person^2", source = "made up", time_base = "once" }

[[workload]]
name = "some"
by = ["a", "b"]
value_of_accuracy = { value = 7, unit = "USD per person^2", source = "made up", time_base = "once" }

[mechanism]
"""


class Asked(Pairs):
    """The same with its records written; as marginals, as one histogram, or as tables that nest."""

    def __init__(self, made: str) -> None:
        super().__init__("gaussian")
        self.made = made

    def text(self) -> str:
        text = super().text().replace("[preferences]", ASKED)
        if self.made == "nested":
            start, end = text.index("[[workload]]"), text.index("[mechanism]")
            text = text[:start] + NESTED.lstrip() + text[end:].replace("[mechanism]\n", "", 1)
            text = text.replace('"optimized"', '"workload"')
        return text


@pytest.mark.parametrize("made", ["marginals", "histogram", "nested"])
def test_every_table_is_counted_from_them(made: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizing, "MARGINALS_FROM", 1 if made == "marginals" else 10**7)
    written = published(tmp_path / made, Asked(made))
    assert written is not None
    release = load_release(written[0].folder)
    assert release.facts["estimated_together"] == (made == "nested")
    records = release.records()
    assert records.column_names == ["a", "b", "c"]
    assert counted_again(release, records) > 1
    said = release.facts["synthetic_records"]
    assert said["rows"] == records.num_rows
    assert said["parquet"] in release.facts["files"]
    as_text = pyarrow.csv.read_csv(release.folder / said["csv"])
    assert as_text.num_rows == records.num_rows
    assert [str(x) for x in as_text["c"].to_pylist()] == records["c"].to_pylist()
    assert f"{records.num_rows:,} records" in (release.folder / "README.md").read_text(encoding="utf-8")
    assert said["csv"] in (release.folder / "index.html").read_text(encoding="utf-8")
    assert said["csv"] in (release.folder / "data_dictionary.csv").read_text(encoding="utf-8")


def counted_again(release: Release, records: object) -> int:
    """How many tables were counted from the records, each number of which is the published one."""
    for name in release.tables:
        table = release.published(name)
        cells = np.zeros(records.num_rows, dtype=np.int64)  # type: ignore[attr-defined]
        for column, levels in zip(table.columns, table.labels, strict=True):
            places = {level: place for place, level in enumerate(levels)}
            own = [places[each] for each in records[column].to_pylist()]  # type: ignore[index]
            cells = cells * len(levels) + np.array(own, dtype=np.int64)
        assert table.values is not None
        assert np.array_equal(np.bincount(cells, minlength=len(table.values)), table.values)
    return len(release.tables)


def test_none_were_asked_for(tmp_path: Path) -> None:
    written = published(tmp_path / "pairs", Pairs("gaussian"))
    assert written is not None
    release = load_release(written[0].folder)
    assert not (release.folder / "records").exists()
    with pytest.raises(InvalidRequest, match="synthetic_records = true"):
        release.records()


def test_records_of_a_domain_without_cell_numbers_are_sorted_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dualmandate.publication import synthetic_records

    monkeypatch.setattr(synthetic_records, "ROWS_AT_ONCE", 7)
    domain = Domain(tuple(Attribute.numbers(f"a{n}", 0, 9) for n in range(30)))
    asked = Workload.from_tabulations(domain, [Tabulation.of(f"by a{n}", (f"a{n}",)) for n in range(29)]).tables
    levels = np.random.default_rng(1).integers(0, 10, (30, 20)).astype(np.uint16)
    records = records_of_levels(domain, asked, levels)
    assert records is not None
    assert records.columns == domain.names[:29]
    [parquet] = Parquet().write(records, tmp_path / "records")
    [text] = Csv().write(records, tmp_path / "records")
    rows = pq.read_table(parquet).to_pylist()
    assert [tuple(row.values()) for row in rows] == sorted(tuple(map(str, row)) for row in levels[:29].T.tolist())
    assert len(text.read_text(encoding="utf-8").splitlines()) == 21
