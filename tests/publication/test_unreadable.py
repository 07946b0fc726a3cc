"""Whatever one record does to its reader, the others are tabulated as if it were not there, and the curator is told."""

from __future__ import annotations

import csv
import io
import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.publication.test_wall import CANARY
from tests.publication.written_files import write_statistical_file

from dualmandate.errors import UnreadableSource
from dualmandate.population import Attribute, Domain, Histogram, Protection
from dualmandate.publication import (
    AttributeRule,
    CsvFile,
    DatabaseTable,
    ParquetFile,
    Rules,
    Source,
    StatisticalFile,
    ValueRule,
    check,
    csv_lines,
    tabulate,
    unreadable,
)
from dualmandate.publication.csv_lines import CsvLayout, csv_batches, csv_layout
from dualmandate.publication.unreadable import LONGEST_VALUE, UNREADABLE, cleaned, column_of

KEY = bytes(32)
SEX, AGE = Attribute.categories("sex", ["f", "m"], missing="?"), Attribute.numbers("age", 0, 9, missing="none")
DOMAIN = Domain((SEX, AGE))
DROP = Rules({name: AttributeRule(ValueRule.DROP, ValueRule.DROP) for name in DOMAIN.names})
KEEP = Rules({name: AttributeRule(ValueRule.MISSING, ValueRule.MISSING) for name in DOMAIN.names})
GOOD: Sequence[tuple[str, int]] = (("f", 3), ("m", 4), ("m", 4))


def found_in(source: Source, rules: Rules = DROP) -> tuple[list[list[int]], int]:
    """The histogram, and how many records were read."""
    box = tabulate(source, DOMAIN, protection=Protection(), rules=rules, key=KEY).open_for("a test")
    assert isinstance(box.histogram, Histogram)
    return box.histogram.counts.tolist(), box.records_read


def check_alone(source: Source, *, cell: tuple[int, int] | None = (2, 10), marked: int = 1) -> None:
    """One record beside the good ones cannot be read: it is left out, or takes missing levels, and is counted."""
    wanted = np.zeros((3, 11), dtype=np.int64)
    wanted[0, 3], wanted[1, 4] = 1, 2
    assert found_in(source) == (wanted.tolist(), 4)
    if cell is not None:
        wanted[cell] += 1
        assert found_in(source, KEEP) == (wanted.tolist(), 4)
    findings = check(source, DOMAIN, protection=Protection(), rules=DROP).open_for("a test")
    assert (findings.records_read, findings.unreadable) == (4, marked)


ODD_LINES = {
    "an open quote": f'f,"{CANARY},1,x'.encode(),
    "an open quote in a column that no table uses": f'f,1,"{CANARY}'.encode(),
    "letters after a quote": f'"f"{CANARY},1,x'.encode(),
    "too many values": f"f,1,x,{CANARY}".encode(),
    "too few values": CANARY.encode(),
    "no text": CANARY.encode() + b"\xff\xfe,\xe9,x",
    "a surrogate": b"\xed\xa0\x80,\xc0\x80,x",
    "an overlong line": b"f,1," + b"x" * LONGEST_VALUE,
    "blanks": b"    ",
}


@pytest.mark.parametrize("line", ODD_LINES.values(), ids=ODD_LINES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_an_odd_line_is_one_record_that_does_not_fit(line: bytes, end: bytes, place: int, tmp_path: Path) -> None:
    lines = [f'{sex},{age},"quoted, ""twice"""'.encode() for sex, age in GOOD]
    lines.insert(place, line)
    path = tmp_path / "people.csv"
    path.write_bytes(end.join([b"sex,age,note", *lines, b""]))
    check_alone(CsvFile(path))


@pytest.mark.parametrize(
    "line", [b"f,1,Ren\xe9e", b'f,1,O"Neil', b"f,1,a\x00b", b"f,1,", b'"f","1",""', b"f,1,\r\r"], ids=repr
)
def test_what_stands_in_other_columns_is_not_read(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    path.write_bytes(b"sex,age,note\n" + line + b"\n")
    counts, read = found_in(CsvFile(path))
    assert (counts[0][1], read) == (1, 1)
    assert check(CsvFile(path), DOMAIN, protection=Protection(), rules=DROP).open_for("a test").unreadable == 0


def test_a_value_that_goes_on_in_the_next_line_is_read_line_by_line(tmp_path: Path) -> None:
    """What stands between has the form of a record, and is one: nothing tells it from a quote that was forgotten."""
    path = tmp_path / "people.csv"
    path.write_text('sex,age,note\nf,3,"begun\nm,4,between\nended"\n', encoding="utf-8")
    counts, read = found_in(CsvFile(path))
    assert (np.argwhere(counts).tolist(), read) == ([[1, 4]], 3)
    assert check(CsvFile(path), DOMAIN, protection=Protection(), rules=DROP).open_for("a test").unreadable == 2


def read_by_python(content: bytes, columns: int) -> list[list[str | None] | None]:
    """Each line by the standard library's reader, alone; None for a line that it refuses or that is not as long."""
    found: list[list[str | None] | None] = []
    lines = content.split(b"\n")
    for line in lines if lines[-1] else lines[:-1]:
        words = line.removesuffix(b"\r").decode("latin-1")
        if words == "" and columns > 1:
            continue
        try:
            [values] = csv.reader(io.StringIO(words, newline=""), delimiter=";", strict=True) if words else [[""]]
        except csv.Error:
            values = []
        found.append([text_of(value) for value in values] if len(values) == columns else None)
    return found


def text_of(value: str) -> str | None:
    try:
        return value.encode("latin-1").decode() or None
    except UnicodeDecodeError:
        return None


def test_lines_are_read_as_the_standard_library_reads_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [b'"', b'"', b'""', b";", b";", b"\n", b"\r\n", b"\n", b"a", "é".encode(), b"\xe9", b"\xf0\x9f\x98", b" "]
    pieces += ["\U0001f600".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe0\x80\x80", b"\x00", b"'"]
    chance, lines, odd = random.Random(15), 0, 0
    path = tmp_path / "odd.csv"
    for columns in (1, 2, 3):
        names = [f"c{number}" for number in range(columns)]
        for _ in range(150):
            content = b"".join(chance.choice(pieces) for _ in range(chance.randrange(120)))
            path.write_bytes(";".join(names).encode() + b"\n" + content)
            monkeypatch.setattr(csv_lines, "BLOCK", chance.choice([1, 7, 64, 4096]))
            layout = csv_layout(path, ";", lambda there: list(there)[::-1])
            found = [row for batch in csv_batches(path, layout, lambda _: None) for row in batch.to_pylist()]
            wanted = read_by_python(content, columns)
            assert [[row[name] for name in names] for row in found] == [
                [None] * columns if values is None else values for values in wanted
            ]
            lines, odd = lines + len(found), odd + sum(row[UNREADABLE] for row in found)
    assert lines > 2000
    assert 200 < odd < lines - 200


def test_a_delimiter_may_be_any_character() -> None:
    for delimiter in ("§", "\t", "|", "→"):
        layout = CsvLayout(("a", "b", "c"), ("c", "a"), delimiter, 0)
        rows = layout.parsed(delimiter.join(["1", '"2"', "é"]).encode()).to_pylist()
        assert rows == [{"c": "é", "a": "1", UNREADABLE: False}]


def test_a_line_longer_than_all_memory_is_one_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (unreadable, csv_lines):
        monkeypatch.setattr(module, "LONGEST_VALUE", 40)
    monkeypatch.setattr(csv_lines, "BLOCK", 16)
    path = tmp_path / "long.csv"
    path.write_bytes(b"a,b\n1,2\n" + b"x," * 5000 + b"\n3," + b"y" * 38 + b"\n4," + b"y" * 39 + b"\n5,6")
    layout = csv_layout(path, ",", lambda there: ["a"])
    batches = list(csv_batches(path, layout, lambda _: None))
    assert [row["a"] for batch in batches for row in batch.to_pylist()] == ["1", None, "3", None, "5"]


def in_sqlite(folder: Path, declared: str, odd: tuple[Any, Any]) -> Source:
    with sqlite3.connect(folder / "people.sqlite") as connection:
        connection.execute(f"CREATE TABLE people ({declared}, note blob)")
        rows = [(*record, None) for record in (*GOOD[:1], odd, *GOOD[1:])]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
        if odd[0] == "bytes":
            connection.execute("UPDATE people SET sex = CAST(x'ff66' AS TEXT) WHERE sex = 'bytes'")
    connection.close()
    return DatabaseTable("people", f"sqlite:///{folder / 'people.sqlite'}")


@pytest.mark.parametrize("odd", [CANARY, b"\x03", 2.5, "9" * 30, float("inf")], ids=repr)
def test_a_value_of_another_type_in_sqlite(odd: Any, tmp_path: Path) -> None:
    check_alone(in_sqlite(tmp_path, "sex text, age integer", ("f", odd)), cell=(0, 10))


def test_a_text_that_is_none_in_sqlite(tmp_path: Path) -> None:
    check_alone(in_sqlite(tmp_path, "sex varchar(5), age real", ("bytes", CANARY)))


def test_what_sqlite_keeps_in_its_own_way(tmp_path: Path) -> None:
    """Booleans are 0 and 1 there, dates text, and decimal numbers floats."""
    with sqlite3.connect(tmp_path / "people.sqlite") as connection:
        connection.execute("CREATE TABLE people (yes boolean, born date, pay numeric(6, 2))")
        connection.execute("INSERT INTO people VALUES (1, '2000-02-29', 1.5), (2, 'x', 'y')")
    connection.close()
    domain = Domain(
        (
            Attribute.categories("yes", ["false", "true"]),
            Attribute.categories("born", ["2000-02-29"]),
            Attribute.numbers("pay", 0, 2, "0.5"),
        )
    )
    source = DatabaseTable("people", f"sqlite:///{tmp_path / 'people.sqlite'}")
    box = tabulate(source, domain, protection=Protection(), rules=Rules(), key=KEY).open_for("a test")
    assert isinstance(box.histogram, Histogram)
    assert box.histogram.counts.tolist() == [[[0] * 5], [[0, 0, 0, 1, 0]]]


def as_category(texts: pa.Array) -> pa.Array:
    """As pandas keeps a column of categories: numbers of one byte, and each text once."""
    packed = texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(packed.indices.cast(pa.int8()), packed.dictionary)


KEPT: dict[str, Callable[[pa.Array], pa.Array]] = {
    "plain": lambda texts: texts,
    "packed": lambda texts: texts.dictionary_encode(),
    "category": as_category,
    "large": lambda texts: texts.cast(pa.binary()).cast(pa.large_binary()).view(pa.large_string()),
    "view": lambda texts: texts.cast(pa.string_view(), safe=False),
}


@pytest.mark.parametrize("kept", KEPT.values(), ids=KEPT)
@pytest.mark.parametrize("odd", [b"\xff" + CANARY.encode(), b"x" * (LONGEST_VALUE + 1)], ids=["bytes", "long"])
def test_a_text_that_is_none_in_parquet(odd: bytes, kept: Callable[[pa.Array], pa.Array], tmp_path: Path) -> None:
    texts = pa.array([sex.encode() for sex, _ in GOOD] + [odd], pa.binary()).view(pa.string())
    ages = pa.array([age for _, age in GOOD] + [1])
    path = tmp_path / "people.parquet"
    pq.write_table(pa.table({"note": kept(texts), "sex": kept(texts), "age": ages}), path)
    check_alone(ParquetFile(path), cell=(2, 1))


def test_what_a_writer_kept_of_types_is_no_type_of_the_file(tmp_path: Path) -> None:
    """Spans of time are whole numbers in the file, and are no amounts; dates of milliseconds are dates."""
    spans, dates = pa.array([1], pa.int64()).view(pa.duration("us")), pa.array([0], pa.int64()).view(pa.date64())
    pq.write_table(pa.table({"sex": as_category(pa.array(["f"])), "age": spans, "born": dates}), tmp_path / "t.parquet")
    with pytest.raises(UnreadableSource, match="'age' does not hold numbers"):
        found_in(ParquetFile(tmp_path / "t.parquet"))
    born = Domain((Attribute.categories("born", ["1970-01-01"]),))
    box = tabulate(ParquetFile(tmp_path / "t.parquet"), born, protection=Protection(), rules=Rules(), key=KEY)
    assert box.open_for("a test").histogram.total == 1


def changed(line: bytes, chance: random.Random) -> bytes:
    """One line after something happened to it that left it one line."""
    for _ in range(chance.randint(1, 4)):
        place, bit = chance.randrange(len(line) + 1), chance.choice(PIECES)
        line = line[:place] + bit + line[place + chance.randrange(3) :]
    return line


PIECES = [
    b'"',
    b'""',
    b",",
    b",,",
    b"\r",
    b"\x00",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\xe9",
    "é".encode(),
    b" ",
    b"9" * 400,
    b"f",
    b"",
]


@pytest.mark.parametrize("rules", [DROP, KEEP], ids=["left out", "missing"])
def test_a_line_moves_no_count_but_its_own(rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens to a line, one record goes at most and one comes: nothing of it reaches the lines of others."""
    chance, differed = random.Random(16), 0
    path = tmp_path / "people.csv"
    for _ in range(60):
        end, head = chance.choice([b"\n", b"\r\n"]), chance.choice([b"", b"\xef\xbb\xbf"]) + b"sex,age,note"
        lines = [
            b",".join([chance.choice([b"f", b"m", b'"f"']), b"%d" % chance.randrange(10), chance.choice(PIECES)])
            for _ in range(12)
        ]
        files = [lines, list(lines)]
        place = chance.randrange(len(lines))
        files[1][place] = changed(lines[place], chance)
        monkeypatch.setattr(csv_lines, "BLOCK", chance.choice([5, 64, 2**22]))
        counts = []
        for some in files:
            path.write_bytes(head + end + end.join(some) + chance.choice([b"", end]))
            counts.append(np.array(found_in(CsvFile(path), rules)[0]))
        change = counts[1] - counts[0]
        assert change.max() <= 1
        assert change.min() >= -1
        assert np.abs(change).sum() <= 2
        differed += bool(change.any())
    assert differed > 15


@pytest.mark.parametrize("ending", [".sas7bdat", ".sav", ".dta"])
def test_a_byte_that_is_no_letter_in_files_of_others(ending: str, tmp_path: Path) -> None:
    records: list[dict[str, str | float | None]] = [{"sex": sex, "age": float(age), "note": "é"} for sex, age in GOOD]
    records.append({"sex": "#q#", "age": 1.0, "note": "#q#"})
    path = write_statistical_file(
        tmp_path / f"people{ending}", {"sex": "text", "age": "double", "note": "text"}, records
    )
    content = path.read_bytes()
    assert content.count(b"#q#") == 2
    path.write_bytes(content.replace(b"#q#", b"\xffq\xff"))
    check_alone(StatisticalFile(path), cell=(2, 1))


@pytest.mark.postgres
def test_a_date_that_python_does_not_know(postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE dated AS SELECT born::date FROM unnest("
            "ARRAY['2000-02-29', 'infinity', '-infinity', '0044-03-15 BC', '20000-01-01', NULL]) AS born"
        )
    domain, source = Domain((Attribute.categories("born", ["2000-02-29"]),)), DatabaseTable("dated", postgres_url)
    box = tabulate(source, domain, protection=Protection(), rules=Rules(), key=KEY).open_for("a test")
    assert (box.histogram.total, box.records_read) == (1, 6)
    assert check(source, domain, protection=Protection(), rules=Rules()).open_for("a test").unreadable == 4


def test_values_are_judged_one_by_one() -> None:
    """What becomes of a value does not depend on those beside it."""
    odd: list[Any] = [None, 1, 1.5, "1", b"1", 2**70, float("nan"), True, "é", b"\xff", "\ud800"]
    for kind in (pa.int64(), pa.float64(), pa.string(), pa.bool_(), pa.date32(), pa.decimal128(5, 2), pa.binary()):
        together, bad = column_of(odd, kind)
        alone = [column_of([value], kind) for value in odd]
        assert str(together.to_pylist()) == str([column[0].as_py() for column, _ in alone])
        assert list(bad) == [place for place, (_, marked) in enumerate(alone) if marked]
        assert 0 not in bad


MADE: dict[str, Callable[[], pa.Array]] = {
    "text": lambda: pa.array(["a", None, "é"]),
    "large": lambda: pa.array(["a", None, "é"], pa.large_string()),
    "packed": lambda: pa.array(["a", None, "é"]).dictionary_encode(),
}


@pytest.mark.parametrize("made", MADE.values(), ids=MADE)
def test_clean_texts_stay_as_they_are(made: Callable[[], pa.Array]) -> None:
    batch = cleaned(cleaned(pa.record_batch({"word": made(), "number": pa.array([1, 2, None])})))
    assert batch.to_pydict() == {"word": ["a", None, "é"], "number": [1, 2, None], UNREADABLE: [False] * 3}


@pytest.mark.postgres
def test_numbers_that_are_none_in_postgres(postgres_url: str) -> None:
    """Infinity and what is not a number are values of numeric and of floats there; a record keeps them to itself."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE paid (pay numeric(6, 2), weight float8, wide numeric, note timestamp);"
            "INSERT INTO paid VALUES (1, 1, 1, 'infinity'), ('NaN', 1, 1, NULL), (1, 'infinity', 1, '-infinity'), "
            "(1, '-infinity', 1, NULL), (1, 'NaN', 1, NULL), (1, 1, 'Infinity', NULL), (1, 1, 'NaN', NULL), "
            "(1, 1, repeat('9', 5000)::numeric, NULL)"
        )
    names = ("pay", "weight", "wide")
    domain = Domain(tuple(Attribute.numbers(name, 0, 2) for name in names))
    rules = Rules({name: AttributeRule(ValueRule.DROP, ValueRule.DROP) for name in names})
    source = DatabaseTable("paid", postgres_url)
    box = tabulate(source, domain, protection=Protection(), rules=rules, key=KEY).open_for("a test")
    assert (box.histogram.total, box.records_read) == (1, 8)
