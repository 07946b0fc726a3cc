"""The same records in any kind of source give the same histogram."""

from __future__ import annotations

import math
import sqlite3
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from tests.publication.reference import Record, tabulated
from tests.publication.test_tabulating import DOMAIN, KEY, PROTECTIONS, RECORDS, RULES, counts
from tests.publication.test_wall import CANARY, everything_said
from tests.publication.written_files import Kind, write_statistical_file

from dualmandate.errors import UnreadableSource
from dualmandate.population import Attribute, Domain, Protection
from dualmandate.publication import (
    CsvFile,
    DatabaseTable,
    ParquetFile,
    Rules,
    Source,
    SparkTable,
    StatisticalFile,
    check,
    source_file,
    tabulate,
)
from dualmandate.publication import sources as reading

KINDS: Mapping[str, Kind] = {
    "sex": "text",
    "region": "double",
    "age": "double",
    "pay": "double",
    "hours": "double",
    "id": "text",
}
DECLARED = "sex text, region integer, age bigint, pay double precision, hours double precision, id text"
PASSWORD = "hush-hush"


def as_file(folder: Path, ending: str, records: Sequence[Record]) -> StatisticalFile:
    return StatisticalFile(write_statistical_file(folder / f"records{ending}", KINDS, records))


def as_sqlite(folder: Path, records: Sequence[Record]) -> DatabaseTable:
    with sqlite3.connect(folder / "records.sqlite") as connection:
        connection.execute(f"CREATE TABLE people ({DECLARED})")
        rows = [tuple(record[name] for name in KINDS) for record in records]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    return DatabaseTable("people", f"sqlite:///{folder / 'records.sqlite'}")


def without(records: Sequence[Record], *unwritable: float) -> list[Record]:
    """Stata has no infinity; text columns do not tell what is not there from what is empty."""
    return [{name: None if value in unwritable else value for name, value in record.items()} for record in records]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, rules=RULES, protection=PROTECTIONS)
def test_files_and_sqlite_equal_plain_python(
    monkeypatch: pytest.MonkeyPatch, records: list[Record], rules: Rules, protection: Protection
) -> None:
    for rows in ("FILE_ROWS", "DATABASE_ROWS"):
        monkeypatch.setattr(reading, rows, 7)
    finite = without(records, math.inf, -math.inf)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cases: list[tuple[Source, Sequence[Record]]] = [
            (as_file(folder, ".sas7bdat", records), records),
            (as_file(folder, ".sav", records), records),
            (as_file(folder, ".dta", finite), finite),
            (as_sqlite(folder, records), records),
        ]
        for source, written in cases:
            wanted = tabulated(written, DOMAIN, protection, rules, KEY)
            assert counts(source, protection=protection, rules=rules) == wanted, source


@pytest.mark.postgres
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, rules=RULES, protection=PROTECTIONS)
def test_postgresql_equals_plain_python(
    postgres_url: str, records: list[Record], rules: Rules, protection: Protection
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE SCHEMA IF NOT EXISTS census; DROP TABLE IF EXISTS census.people; "
            f"CREATE TABLE census.people ({DECLARED})"
        )
        with connection.cursor() as cursor:
            rows = [tuple(record[name] for name in KINDS) for record in records]
            cursor.executemany("INSERT INTO census.people VALUES (%s, %s, %s, %s, %s, %s)", rows)
    source = DatabaseTable("census.people", postgres_url)
    assert counts(source, protection=protection, rules=rules) == tabulated(records, DOMAIN, protection, rules, KEY)
    box = check(source, DOMAIN, protection=protection, rules=rules)
    assert box.open_for("a test").records_read == len(records)


def test_text_numbers_in_any_source(tmp_path: Path) -> None:
    records: list[Record] = [
        {"sex": "f", "region": "04", "age": age, "pay": " 1", "hours": "1e1", "id": None}
        for age in ("10", "none", "7.4", "abc", None)
    ]
    rules, texts = Rules(), dict.fromkeys(KINDS, "text")
    wanted = tabulated(records, DOMAIN, Protection(), rules, KEY)
    for ending in (".sas7bdat", ".sav", ".dta"):
        path = write_statistical_file(tmp_path / f"texts{ending}", texts, records)  # type: ignore[arg-type]
        assert counts(StatisticalFile(path), rules=rules) == wanted


@pytest.mark.postgres
def test_what_a_database_declares_is_what_is_read(postgres_url: str) -> None:
    domain = Domain(
        (
            Attribute.categories("fixed", ["f", "m"]),
            Attribute.categories("yes", ["true", "false"]),
            Attribute.categories("born", ["2000-02-29"]),
            Attribute.numbers("free", 0, 10, "0.5"),
            Attribute.numbers("exact", 0, 10, "0.5"),
            Attribute.categories("key", ["6ecd8c99-4036-403d-bf84-cf8400f67836"]),
        )
    )
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            'CREATE TABLE "Of People" (fixed char(4), yes boolean, born date, free numeric, exact numeric(6, 2), '
            "key uuid, at timestamp)"
        )
        row = "('f', true, '2000-02-29', %s, %s, '6ecd8c99-4036-403d-bf84-cf8400f67836', now())"
        for free, exact in ((Decimal("1e1"), Decimal("0.5")), (Decimal("NaN"), Decimal("1"))):
            connection.execute(f'INSERT INTO "Of People" VALUES {row}', (free, exact))
    source = DatabaseTable("Of People", postgres_url)
    assert counts(source, domain) == {20 * 21 + 1: 1}
    with pytest.raises(UnreadableSource, match="'at' does not hold codes"):
        counts(source, Domain((Attribute.categories("at", ["now"]),)))
    with pytest.raises(UnreadableSource, match="no table or view 'of people'"):
        counts(DatabaseTable("of people", postgres_url), domain)
    with pytest.raises(UnreadableSource, match="no column 'sex'"):
        counts(source)


@pytest.mark.postgres
def test_a_database_that_goes_away_while_it_is_read(
    postgres_url: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE people AS SELECT '{CANARY}' || n AS id, 'f' AS sex FROM generate_series(1, 3000000) AS n"
        )
        reading, done = list[str](), threading.Event()

        def end_it() -> None:
            """Ends the server's process for the reader once it is handing out records, some at a time."""
            query = "SELECT pid, query FROM pg_stat_activity WHERE query LIKE 'FETCH%' AND datname = current_database()"
            while not done.is_set():
                for pid, words in connection.execute(query).fetchall():
                    reading.append(words)
                    connection.execute("SELECT pg_terminate_backend(%s)", (pid,))
                    return
                time.sleep(0.002)

        killer = threading.Thread(target=end_it)
        killer.start()
        try:
            with pytest.raises(UnreadableSource, match="'people' cannot be read to its end") as caught:
                tabulate(
                    DatabaseTable("people", postgres_url),
                    Domain((Attribute.categories("sex", ["f", "m"]),)),
                    protection=Protection(identifier="id"),
                    rules=Rules(),
                    key=KEY,
                )
        finally:
            done.set()
            killer.join()
    assert reading
    refusal = caught.value.with_traceback(caught.tb.tb_next)
    assert CANARY not in everything_said(refusal) + caplog.text + "".join(capfd.readouterr())


@pytest.mark.postgres
def test_a_view_that_fails_on_a_value_does_not_tell_it(
    postgres_url: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE TABLE texts AS SELECT '{CANARY}' AS age; "
            "CREATE VIEW people AS SELECT age::integer AS age FROM texts"
        )
    with pytest.raises(UnreadableSource) as caught:
        counts(DatabaseTable("people", postgres_url), Domain((Attribute.numbers("age", 0, 9),)))
    refusal = caught.value.with_traceback(None)
    assert CANARY not in everything_said(refusal) + caplog.text + "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        (f"postgresql://ann:{PASSWORD}@localhost:1/nowhere", "cannot be reached"),
        (f"oracle9://ann:{PASSWORD}@host/x", "cannot be used"),
        (f"mysql+pymysql://ann:{PASSWORD}@host/x", "cannot be used"),
        (f"no url {PASSWORD}", "cannot be used"),
    ],
)
def test_a_password_is_never_told(url: str, words: str, caplog: pytest.LogCaptureFixture) -> None:
    source = DatabaseTable("people", url)
    with pytest.raises(UnreadableSource, match=words) as caught:
        counts(source)
    refusal = caught.value.with_traceback(caught.tb.tb_next)
    assert PASSWORD not in everything_said(refusal) + repr(source) + caplog.text


def test_a_url_may_come_from_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = DatabaseTable("people", url_variable="CENSUS_URL")
    monkeypatch.delenv("CENSUS_URL", raising=False)
    with pytest.raises(UnreadableSource, match="CENSUS_URL"):
        counts(source)
    monkeypatch.setenv("CENSUS_URL", str(as_sqlite(tmp_path, []).url))
    assert counts(source) == {}
    with pytest.raises(UnreadableSource, match="has no URL"):
        counts(DatabaseTable("people"))


@pytest.mark.parametrize("ending", [".sas7bdat", ".sav", ".dta"])
def test_damaged_files_are_refused_without_a_value(ending: str, tmp_path: Path) -> None:
    records: list[Record] = [dict.fromkeys(KINDS, 1.0) | {"sex": CANARY, "id": CANARY}] * 3000
    whole = as_file(tmp_path, ending, records)
    content = Path(whole.path).read_bytes()
    cut = tmp_path / f"cut{ending}"
    for left in (len(content) * 2 // 3, 100, 0):
        cut.write_bytes(content[:left])
        with pytest.raises(UnreadableSource) as caught:
            counts(StatisticalFile(cut))
        assert CANARY not in everything_said(caught.value.with_traceback(None))
    with pytest.raises(UnreadableSource, match="no column 'job'"):
        counts(whole, Domain((Attribute.categories("job", ["none"]),)))


def test_a_reader_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = as_file(tmp_path, ".sav", [])
    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    with pytest.raises(UnreadableSource, match=r"dualmandate\[sas-stata-spss\]"):
        counts(source)


def test_spark_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError(f"{CANARY}: no Java")

    starting = SimpleNamespace(appName=lambda _: SimpleNamespace(getOrCreate=fail))
    absent = SimpleNamespace(builder=starting, getActiveSession=lambda: None)
    monkeypatch.setattr("pyspark.sql.SparkSession", absent)
    with pytest.raises(UnreadableSource, match="Spark cannot be started here") as caught:
        counts(SparkTable("people"))
    assert CANARY not in everything_said(caught.value.with_traceback(None))
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(UnreadableSource, match=r"dualmandate\[spark\]"):
        counts(SparkTable("people"))


@pytest.mark.postgres
def test_a_database_is_only_read(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE visits; CREATE VIEW people AS SELECT nextval('visits') AS age")
        with pytest.raises(UnreadableSource):
            counts(DatabaseTable("people", postgres_url), Domain((Attribute.numbers("age", 0, 9),)))
        assert connection.execute("SELECT is_called FROM visits").fetchall() == [(False,)]


def test_the_ending_says_what_a_file_is() -> None:
    assert isinstance(source_file("a.PARQUET"), ParquetFile)
    assert isinstance(source_file(Path("a.csv")), CsvFile)
    assert isinstance(source_file("x/a.sas7bdat"), StatisticalFile)
    with pytest.raises(UnreadableSource, match=r"ends in \.parquet, \.csv"):
        source_file("a.xlsx")


def test_progress_of_a_stream_is_its_share_of_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float] = []
    monkeypatch.setattr(reading, "FILE_ROWS", 10)
    monkeypatch.setattr("dualmandate.publication.wall.SECONDS_BETWEEN", 0.001)
    records: list[Record] = [dict.fromkeys(KINDS, 1.0) | {"sex": "f", "id": "a"}] * 4_000
    for source in (as_file(tmp_path, ".dta", records), as_sqlite(tmp_path, records)):
        told.clear()
        tabulate(source, DOMAIN, protection=Protection(), rules=Rules(), key=KEY, progress=told.append)
        assert told == sorted(told)
        assert told[-1] == 1.0
    assert len(told) > 1
