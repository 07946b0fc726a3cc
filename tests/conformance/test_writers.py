"""What every writer of releases must do, whatever its format."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest
from tests.publication.reading_back import read_back

from dualmandate.errors import CannotWrite
from dualmandate.publication import writing
from dualmandate.publication.writing import Csv, Parquet, ReleaseSheet, SdmxCsv, SdmxMl, Writer

WRITERS: dict[str, Writer] = {
    "parquet": Parquet(),
    "csv": Csv(),
    "sdmx-csv": SdmxCsv(),
    "sdmx-ml": SdmxMl(),
    "sdmx-ml of an agency": SdmxMl("OFFICE", datetime(2026, 4, 1, 12, tzinfo=UTC)),
}
FORGETS_FACTS = {"csv"}  # no place for them: its sheets have neither unit nor facts, and the name of the file


def _by_sex_and_income() -> ReleaseSheet:
    numbers = {
        "value": np.array([0, 1, 2**62 + 1, 4, 5, 6]),
        "estimate": np.array([-0.1, 1 / 3, 2e20, 5e-324, 5.0, -0.0]),
        "standard_error": np.array([1.0, 1.5, 1e-7, 1 / 7, 2.0**-1074, 1.7976931348623157e308]),
    }
    labels = (("f", "m"), ("<=50K", ">50K", "unknown"))
    return ReleaseSheet("Adults by sex & income", "person", ("sex", "income"), labels, numbers, {"plan digest": "ab12"})


def _odd_labels() -> ReleaseSheet:
    levels = (
        "a, b",
        'say "c"',
        "=1+1",
        "@x",
        "é—ü 漢字 🙂",
        "NA",
        "null",
        "nan",
        "0",
        "007",
        "<&>",
        "line\nline",
    )
    numbers = {"value": np.arange(len(levels)) - 3}
    return ReleaseSheet("odd labels; “quoted”", "", ("value",), (levels,), numbers)


def _codes() -> ReleaseSheet:
    numbers = {"estimate": np.arange(8.0) / 3, "standard_error": np.ones(8)}
    return ReleaseSheet("codes", "USD", ("a b", "a-b"), (("NA", "null", "nan", "None"), ("-1", "1")), numbers)


def _one_number() -> ReleaseSheet:
    return ReleaseSheet("all", "person", (), (), {"value": np.array([123_456])})


def _measurements() -> ReleaseSheet:
    numbers = {"kind": np.array([0, 1, 0], dtype=np.int32), "value": np.array([-(2**63), 2**63 - 1, 0])}
    return ReleaseSheet("group 1", "", (), (), numbers, {"noise 0": "laplace 1/2", "noise 1": "gaussian 3"})


SHEETS: dict[str, Callable[[], ReleaseSheet]] = {
    "by sex and income": _by_sex_and_income,
    "odd labels": _odd_labels,
    "codes that other programs take for nothing": _codes,
    "one number": _one_number,
    "measurements": _measurements,
}
every_writer = pytest.mark.parametrize("name", WRITERS)
every_sheet = pytest.mark.parametrize("sheet", [make() for make in SHEETS.values()], ids=SHEETS)


@every_writer
@every_sheet
def test_what_is_written_is_read_back(name: str, sheet: ReleaseSheet, tmp_path: Path) -> None:
    writer = WRITERS[name]
    paths = writer.write(sheet, tmp_path / "a.table")
    assert [path.name for path in paths] == [f"a.table{suffix}" for suffix in writer.suffixes]
    found = read_back(writer, paths[0])
    assert set(found.numbers) == set(sheet.numbers)
    for column, values in sheet.numbers.items():
        np.testing.assert_array_equal(found.numbers[column], values)
        assert found.numbers[column].dtype == writing.NUMBERS[column]
    assert found.labels == sheet.labels
    if name in FORGETS_FACTS:
        assert found.columns == sheet.headings
    else:
        assert (found.name, found.unit, found.columns) == (sheet.name, sheet.unit, sheet.columns)
        assert dict(found.facts) == dict(sheet.facts)


@every_writer
@every_sheet
def test_equal_sheets_give_equal_bytes(
    name: str, sheet: ReleaseSheet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first = WRITERS[name].write(sheet, tmp_path / "first" / "table")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    second = WRITERS[name].write(sheet, tmp_path / "second" / "table")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o644 for path in first)


@every_writer
def test_long_sheets_are_written_piece_by_piece(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    labels = (tuple(f"block {place}" for place in range(40)), ("a", "b", "c"))
    sheet = ReleaseSheet("blocks", "person", ("block", "race"), labels, {"value": np.arange(120) % 7})
    whole = [path.read_bytes() for path in WRITERS[name].write(sheet, tmp_path / "table")]
    monkeypatch.setattr(writing, "ROWS_AT_ONCE", 7)
    paths = WRITERS[name].write(sheet, tmp_path / "table")
    np.testing.assert_array_equal(read_back(WRITERS[name], paths[0]).numbers["value"], np.arange(120) % 7)
    if name != "parquet":  # there, a piece is a row group
        assert [path.read_bytes() for path in paths] == whole


@every_writer
def test_files_are_complete_or_not_there(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, sheet = WRITERS[name], _by_sex_and_income()
    paths = writer.write(sheet, tmp_path / "table")
    before = [path.read_bytes() for path in paths]

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CannotWrite, match="cannot be written"):
        writer.write(_codes(), tmp_path / "table")
    monkeypatch.undo()
    assert [path.read_bytes() for path in paths] == before
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
    with pytest.raises(CannotWrite, match="cannot be written"):
        writer.write(sheet, tmp_path / "nowhere" / "table")
