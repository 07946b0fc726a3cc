"""Bad files full of a canary: none of what a refusal, a log or a traceback says may sing of it."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dualmandate.errors import Refusal, UnreadableSource
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.publication import (
    AttributeRule,
    CheckFindings,
    CsvFile,
    ParquetFile,
    Rules,
    Source,
    Tabulated,
    ValueRule,
    check,
    tabulate,
)
from dualmandate.publication.tabulating import check_readable
from dualmandate.publication.wall import guarded

CANARY = "canary7Qx"
DOMAIN = Domain((Attribute.categories("sex", ["f", "m"]), Attribute.numbers("age", 0, 99)))
PROTECTION = Protection(identifier="id")


def parquet(folder: Path, sex: pa.Array, *, name: str = "sex") -> Path:
    path = folder / "people.parquet"
    columns = {name: sex, "age": pa.array([CANARY] * len(sex)), "id": pa.array([CANARY] * len(sex))}
    pq.write_table(pa.table(columns), path, use_dictionary=False, compression="none", write_statistics=False)
    return path


def truncated(folder: Path) -> Source:
    path = parquet(folder, pa.array([CANARY] * 100))
    path.write_bytes(path.read_bytes()[:-200])
    return ParquetFile(path)


def damaged(folder: Path) -> Source:
    path = parquet(folder, pa.array([CANARY] * 100))
    content = bytearray(path.read_bytes())
    content[40:60] = b"\xff" * 20
    path.write_bytes(content)
    return ParquetFile(path)


def wrong_column(folder: Path) -> Source:
    return ParquetFile(parquet(folder, pa.array([CANARY] * 3), name=CANARY))


def nested_column(folder: Path) -> Source:
    return ParquetFile(parquet(folder, pa.array([[CANARY]] * 3)))


def lying_schema(folder: Path) -> Source:
    """The pages of texts under a footer that promises whole numbers."""
    texts = parquet(folder, pa.array([CANARY] * 400)).read_bytes()
    numbers = parquet(folder, pa.array([1] * 400, pa.int64())).read_bytes()
    footer = int.from_bytes(numbers[-8:-4], "little") + 8
    path = folder / "lying.parquet"
    path.write_bytes(texts[: len(texts) - 8 - int.from_bytes(texts[-8:-4], "little")] + numbers[-footer:])
    return ParquetFile(path)


def csv_as_parquet(folder: Path) -> Source:
    return ParquetFile(written(folder, f"sex,age,id\n{CANARY},{CANARY},{CANARY}\n"))


def header_twice(folder: Path) -> Source:
    return CsvFile(written(folder, f"sex,age,id,{CANARY},{CANARY}\nf,3,a,b,c\n"))


def header_without_column(folder: Path) -> Source:
    return CsvFile(written(folder, f"sex,{CANARY},id\nf,3,a\n"))


def header_not_text(folder: Path) -> Source:
    path = folder / "people.csv"
    path.write_bytes(b"sex,age,id," + CANARY.encode() + b"\xff\nf,3,a,b\n")
    return CsvFile(path)


def ends_of_a_typewriter(folder: Path) -> Source:
    return CsvFile(written(folder, f"sex,age,id\r{CANARY},3,a\rm,4,b\r"))


def empty(folder: Path) -> Source:
    return CsvFile(written(folder, ""))


def written(folder: Path, words: str) -> Path:
    path = folder / "people.csv"
    path.write_text(words, encoding="utf-8")
    return path


BAD = [
    *(truncated, damaged, wrong_column, nested_column, lying_schema, csv_as_parquet),
    *(header_twice, header_without_column, header_not_text, ends_of_a_typewriter, empty),
]


def tabulated(source: Source) -> Confidential[Tabulated]:
    return tabulate(source, DOMAIN, protection=PROTECTION, rules=Rules(), key=bytes(32))


def checked(source: Source) -> Confidential[CheckFindings]:
    return check(source, DOMAIN, protection=PROTECTION, rules=Rules())


def everything_said(refusal: BaseException) -> str:
    """Words, traceback with the locals of every frame, and whatever exception it carries along."""
    told = traceback.TracebackException.from_exception(refusal, capture_locals=True)
    carried = [repr(one) for one in (refusal.__cause__, refusal.__context__) if one is not None]
    document = json.dumps(refusal.document()) if isinstance(refusal, Refusal) else ""
    return "\n".join([str(refusal), repr(refusal), document, *told.format(), *carried])


@pytest.mark.parametrize("make", BAD)
@pytest.mark.parametrize("act", [tabulated, checked])
def test_bad_files_are_refused_in_our_own_words(
    make: Callable[[Path], Source],
    act: Callable[[Source], object],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = make(tmp_path)
    with caplog.at_level(logging.DEBUG), pytest.raises(UnreadableSource) as caught:
        act(source)
    # The frame of this test is left out: only what the house shows counts.
    refusal = caught.value.with_traceback(caught.tb.tb_next)
    assert refusal.__context__ is None
    said = everything_said(refusal) + caplog.text + "".join(capfd.readouterr())
    assert CANARY not in said
    # What only a whole file can be is found without spending anything.
    with pytest.raises(UnreadableSource):
        check_readable(source, DOMAIN, protection=PROTECTION, rules=Rules())
    assert "duckdb" not in said.lower().replace("duckdb.duckdbpyconnection", "")


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_text_in_a_number_column_follows_its_rule(kind: str, tmp_path: Path) -> None:
    if kind == "parquet":
        source: Source = ParquetFile(parquet(tmp_path, pa.array(["f", "m"])))
    else:
        source = CsvFile(written(tmp_path, f"sex,age,id\nf,{CANARY},a\nm,{CANARY},b\n"))
    rules = Rules({"age": AttributeRule(ValueRule.CLAMP, ValueRule.DROP)})
    box = tabulate(source, DOMAIN, protection=Protection(), rules=rules, key=bytes(32))
    found = box.open_for("a test")
    assert (found.records_read, found.histogram.total) == (2, 0)
    assert CANARY not in f"{box!r}{found!r}"


def test_the_canary_would_be_heard(tmp_path: Path) -> None:
    """The engine itself does repeat values: without the wall the search finds it."""

    def sing() -> None:
        raise ValueError(f"cannot convert {CANARY}")

    with pytest.raises(ValueError, match=CANARY) as caught:
        sing()
    assert CANARY in everything_said(caught.value)
    with pytest.raises(UnreadableSource) as refused:
        guarded(sing, name="people.csv")
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize("source", [ParquetFile("nowhere.parquet"), CsvFile(Path(__file__), delimiter=";;")])
def test_what_is_no_source_is_refused(source: Source) -> None:
    with pytest.raises(UnreadableSource):
        tabulate(source, DOMAIN, protection=PROTECTION, rules=Rules(), key=bytes(32))


def test_an_interruption_is_not_swallowed(tmp_path: Path) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guarded(stop, name="people.csv")
