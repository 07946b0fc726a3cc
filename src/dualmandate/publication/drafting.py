"""A first look at a source, for the curator who drafts a program from it: what its columns could be.

Two readings, each a bounded summary whatever the size of the source: counts and quantiles of every column, then the
values of columns with few of them. A value that cannot be read is one that is not there. What is found is confidential:
what a program takes from it has to be marked there as seen in the data.
"""

from __future__ import annotations

import csv
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dualmandate.errors import UnreadableSource
from dualmandate.population import Confidential
from dualmandate.publication.csv_lines import LONGEST_HEADER
from dualmandate.publication.sources import (
    CsvFile,
    Source,
    SourceColumns,
    SparkTable,
    StatisticalFile,
    check_source,
    days_of_file,
    labels_of_file,
    opened,
    quoted,
    source_file,
)
from dualmandate.publication.tabulating import FLOATS, INTEGERS, NUMBER, TEXTS, WIDE_INTEGERS, as_text
from dualmandate.publication.unreadable import UNREADABLE
from dualmandate.publication.wall import connected, executed, guarded

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Form = Literal["levels", "days", "bins", "numbers"]
DELIMITERS = ",;\t|"
MOST_VALUES = 2_000  # A column with more different values is no list of levels.
LONGEST_LEVEL = 100  # letters; a longer text is no code
FEW_WORDS = 3  # So many texts among numbers are codes that say why there is none.
FEW_RECORDS, MANY_RECORDS = 3, 100  # In so many records, a value that fewer have is not proposed.
MOST_CODES = 20  # So many different whole numbers are codes; more are numbers.
MOST_BINS, MOST_YEARS = 12, 40
WIDEST_BINS = 250  # Whole numbers that spread further are amounts.
NEARLY_ALL = 0.95  # So many values must be of one kind to make a column of that kind.
FEW_OF_A_CODE = 20  # A text that so few records share, among many others, names units or is finer than noise allows.
MISSING = {"na", "n/a", "n.a.", "#n/a", "<na>", "nan", "nat", "null", "#null!", "nil", ".", "..", "-", "--", "?"}
MISSING |= {"missing", "(blank)", "k.a.", "s/d"}
AS_DAYS = "write them as 2024-12-31, in a column of texts, and draft again"
ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
OTHER_DATES = re.compile(r"[0-9]{1,4}[./-][0-9]{1,2}[./-][0-9]{1,4}(?:[ T][0-9:.Z+]+)?|[0-9-]{10}[ T][0-9:.Z+]+")
COMMA_NUMBER = re.compile(r"[+-]?[0-9]{1,3}(?:[. '][0-9]{3})*,[0-9]+|[+-]?[0-9]+,[0-9]+")
_MONEY = "(?:[$€£¥]|EUR|USD|GBP|CHF|JPY)"
_GROUPED = "(?:[0-9]{1,3}(?:[,.' \xa0][0-9]{3})+|[0-9]+)(?:[.,][0-9]+)?"
SIGNED_NUMBER = re.compile(rf"[(+-]?(?:{_MONEY} ?)?[+-]?{_GROUPED}[ \xa0]?(?:{_MONEY}|%)?\)?")
COMPACT_DAY = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
NINES = re.compile(r"99+|-(?:[1-9]|77|88|99+)")  # codes among numbers that say why there is none
RANGE = re.compile(r"[0-9]+ ?(?:[-–] ?[0-9]+|\+)")
THOUSANDS = re.compile(r"[+-]?[0-9]{1,3}\.[0-9]{3}")
WHOLE_NUMBER = re.compile(NUMBER)
UNITS = "person|people|patient|customer|client|member|respondent|subject|employee|student|pupil|household|family|firm"
UNITS += "|company|enterprise|establishment|taxpayer|claimant|beneficiary|participant|resident|user"
IDENTIFIER_NAME = re.compile(
    rf"(?:^|[^a-z])(?:ids?|uuid|guid|key|nr|no|num|number|ssn|pseudonym|{UNITS})$|(?:id|uuid|nr)$"
)


@dataclass(frozen=True)
class ColumnDraft:
    """What a column could be: an attribute of a form, an identifier, or nothing to tabulate by. All of it was seen."""

    name: str
    form: Form | None = None
    why_not: str = ""  # in words that say nothing of a value
    levels: tuple[str, ...] = field(default=(), repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)  # beside the levels, where the file has some
    spellings: Mapping[str, tuple[str, ...]] = field(default_factory=dict, repr=False)  # where some levels are one
    missing: str | None = field(default=None, repr=False)  # the level of what is not there
    unlisted: bool = False  # whether there are values that take the missing level
    edges: tuple[int, ...] = field(default=(), repr=False)
    lower: Fraction = Fraction(0)
    upper: Fraction = Fraction(1)
    grid: Fraction = Fraction(1)
    identifies: bool = False  # whether it is likely to name units
    beyond_is_missing: bool = False  # whether numbers beyond the bins are codes that say why there is none
    fine: bool = False  # whether few records share each of many codes, which may name units
    records_of_one: int = 1  # about so many records have the same value, at most, doubled
    remarks: tuple[str, ...] = field(default=(), repr=False)  # for the curator alone

    @property
    def size(self) -> int:
        """How many levels it has, the missing one included."""
        points = {
            "levels": len(self.levels),
            "days": len(self.levels),
            "bins": len(self.edges) - 1,
            "numbers": int((self.upper - self.lower) / self.grid) + 1,
        }
        return (points[self.form] if self.form else 0) + (self.missing is not None)

    def what(self) -> str:
        """What it becomes, or why it is left out."""
        return self.why_not or _WORDS[self.form or "levels"](self)


@dataclass(frozen=True)
class SourceDraft:
    """What the columns of a source could be, in their order; for the curator's own eyes."""

    source: str
    records: int = field(repr=False)
    unreadable: int = field(repr=False)  # records with a value that cannot be read
    columns: tuple[ColumnDraft, ...] = field(repr=False)

    def words(self) -> str:
        """What was seen, a line a column. Confidential."""
        lines = [f"{self.records:,} records in '{self.source}'"]
        if self.unreadable:
            lines.append(
                f"with a value that cannot be read, and so is not there: {self.unreadable:,} "
                "(bytes that are no UTF-8, or too many or too few values; save the file as UTF-8 text)"
            )
        for column in self.columns:
            lines.append(f"{column.name}: {column.what()}")
            lines += [f"  {remark}" for remark in column.remarks]
        return "\n".join(lines)


_WORDS: Mapping[str, Callable[[ColumnDraft], str]] = {
    "levels": lambda column: f"{len(column.levels)} levels" + ", with their labels in the file" * bool(column.labels),
    "days": lambda column: f"days from {column.levels[0]} to {column.levels[-1]}, by year and by month",
    "bins": lambda column: (
        f"whole numbers in {len(column.edges) - 1} bins"
        + "; likely codes for no number, far from the others, count as missing" * column.beyond_is_missing
    ),
    "numbers": lambda column: (
        f"amounts between {float(column.lower):g} and {float(column.upper):g}, to {float(column.grid):g}"
    ),
}


def file_to_draft(path: Path) -> Source:
    """The source at a path; the delimiter of a CSV file is read off its first line."""
    source = source_file(path)
    check_source(source)
    return CsvFile(path, _delimiter(path)) if isinstance(source, CsvFile) else source


def _delimiter(path: Path) -> str:
    """What separates the names in the first line; refused where that cannot be a line of names."""

    def first_line() -> bytes:
        with path.open("rb") as read:
            return read.readline(LONGEST_HEADER)

    line = guarded(first_line, name=path.name)
    try:
        header = line.decode("utf-8-sig").strip("\r\n")
        if "\0" in header:
            raise UnicodeError
    except UnicodeError:
        text = None
    else:
        text = header
    if line.startswith(b"PK\x03\x04"):
        raise UnreadableSource(
            f"'{path.name}' is no text, but an archive or a spreadsheet under another name",
            why="a CSV file holds a record a line, as text",
            instead='open it with what made it, and save the sheet as "CSV UTF-8"',
        )
    if text is None:
        letters = "utf-16" if line.startswith((b"\xff\xfe", b"\xfe\xff")) else "windows-1252"
        raise UnreadableSource(
            f"the first line of '{path.name}' is not UTF-8 text",
            why="columns are found by their names, and nobody can tell in which letters these are written",
            instead=f"save it as UTF-8 from the spreadsheet, or: {_as_utf8(path, letters)}",
        )
    if "\r" in text:
        new = path.with_name(f"{path.stem}-lines{path.suffix}")
        raise UnreadableSource(
            f"the lines of '{path.name}' end in carriage returns alone",
            why="a record is a line, and a line ends in a line feed",
            instead=f"write it anew: tr '\\r' '\\n' < {shlex.quote(str(path))} > {shlex.quote(str(new))}",
        )
    even = text.count('"') % 2 == 0  # a quote without its twin stands for itself
    outside = "".join(text.split('"')[::2]) if even else text
    delimiter = max(DELIMITERS, key=outside.count)
    if not outside.count(delimiter):
        delimiter = ","
    _check_names(path.name, next(csv.reader([text], delimiter=delimiter), []))
    return delimiter


def _as_utf8(path: Path, letters: str) -> str:
    """The command that writes a file anew, in the letters that it is most likely written in."""
    new = path.with_name(f"{path.stem}-utf8{path.suffix}")
    return f"iconv -f {letters} -t utf-8 {shlex.quote(str(path))} > {shlex.quote(str(new))}"


def _check_names(source: str, names: Sequence[str]) -> None:
    """Refuse names that are none: empty, written twice, or values of a record."""
    folded = [name.strip().casefold() for name in names]
    if not names or not all(folded):
        empty = folded.index("") + 1 if "" in folded else 1
        what, why = f"column {empty} of '{source}' has no name", "an attribute is found by the name of its column"
    elif any(WHOLE_NUMBER.fullmatch(name) or ISO_DATE.fullmatch(name) or name in MISSING for name in folded):
        what, why = (
            f"the first line of '{source}' looks like a record",
            "the names of the columns are meant to stand there",
        )
    elif len(set(folded)) != len(folded):
        twice = next(number for number, name in enumerate(folded) if name in folded[:number])
        what = f"columns {folded.index(folded[twice]) + 1} and {twice + 1} of '{source}' have the same name"
        why = "nobody can tell which of them is meant, small and capital letters being the same"
    elif any(not name.isprintable() for name in names):
        what, why = f"a column of '{source}' has a name that cannot be printed", "people have to write it in a program"
    else:
        return
    raise UnreadableSource(what, why=why, instead="write a name of its own for each column into the first line")


def look(source: Source, *, progress: Callable[[float], None] | None = None) -> Confidential[SourceDraft]:
    """Look at every record of a source, twice, and say what its columns could be."""
    if isinstance(source, SparkTable):
        raise UnreadableSource(
            f"'{source.name}' is a table of Spark",
            why="a draft looks at records where it runs",
            instead="draft from a file with some of the records, then name the table as the source",
        )
    check_source(source)

    def work() -> SourceDraft:
        told = progress or (lambda _: None)
        with connected() as connection, opened(source, connection, [], counted=progress is not None) as found:
            summary = _summary(found, connection, lambda share: told(share / 2))
        if not summary.records:
            raise UnreadableSource(
                f"there are no records in '{source.name}'",
                why="a draft looks at what stands in each column",
                instead="name the file that holds the records, or begin with `dualmandate init blank`",
            )
        few = [each for each in summary.columns if each.comparable and each.different <= MOST_VALUES * 1.1]
        values: dict[str, dict[str, int]] = {}
        if few:
            with connected() as connection, opened(source, connection, [], counted=progress is not None) as found:
                values = _values(found, connection, few, lambda share: told(0.5 + share / 2))
        _check_header(source.name, values)
        days = days_of_file(source) if isinstance(source, StatisticalFile) else ()
        labels = labels_of_file(source) if isinstance(source, StatisticalFile) else {}
        columns = tuple(
            ColumnDraft(each.name, why_not=f"left out: days or times that the file keeps as numbers: {AS_DAYS}")
            if each.name in days
            else replace(
                _drafted(each, values.get(each.name), summary.records, labels.get(each.name, {})),
                records_of_one=_records_of_one(each),
            )
            for each in summary.columns
        )
        return SourceDraft(source.name, summary.records, summary.unreadable, columns)

    return Confidential("a first look at a source", guarded(work, name=source.name))


def draft_for_curator(box: Confidential[SourceDraft]) -> SourceDraft:
    """Open a first look for the curator who asked for it."""
    return box.open_for("the curator's own eyes")


def _check_header(source: str, values: Mapping[str, Mapping[str, int]]) -> None:
    """Refuse a file without a header: the name of a column is then one of its values."""
    if any(name.strip() in found for name, found in values.items()):
        raise UnreadableSource(
            f"the first line of '{source}' looks like a record",
            why="the name of a column is also one of its values",
            instead="write the names of the columns into the first line",
        )


@dataclass(frozen=True)
class _Column:
    """Counts and quantiles of one column."""

    name: str
    kind: str  # of SQL
    comparable: bool = True  # whether its values are something that levels are compared with
    present: int = 0
    different: int = 0
    numbers: int = 0
    whole: int = 0
    padded: int = 0  # with a leading zero, as codes have
    days: int = 0
    low: float = 0.0
    high: float = 0.0
    least: float = 0.0
    largest: float = 0.0
    first_year: float = 0.0
    last_year: float = 0.0
    longest: int = 0
    spaced: int = 0  # with a blank inside
    often: Sequence[str] = ()  # some values


@dataclass(frozen=True)
class _Summary:
    records: int
    unreadable: int
    columns: tuple[_Column, ...]


def _summary(found: SourceColumns, connection: DuckDBPyConnection, told: Callable[[float], None]) -> _Summary:
    names = [name for name in found.types if name != UNREADABLE]
    if len({name.casefold() for name in names}) != len(names) or not all(name.strip() for name in names):
        _check_names("the source", names)
    unreadable = f"count(*) FILTER (WHERE {quoted(UNREADABLE)})" if UNREADABLE in found.types else "0"
    parts = ["count(*)", unreadable]
    kinds = {name: _text_of(name, found.types[name]) for name in names}
    for name, text in kinds.items():
        if text is not None:
            parts.append(_column_sql(quoted(name), text, found.types[name]))
    statement = f"CREATE TEMP TABLE summary AS SELECT {', '.join(f'{part} AS c{n}' for n, part in enumerate(parts))}"
    executed(connection, f"{statement} FROM {found.table}", progress=told, share=found.share)
    row = connection.execute("SELECT * FROM summary").fetchone()
    assert row is not None
    records, marked, *rest = row
    facts = iter(rest)
    columns = [
        _Column(name, found.types[name], comparable=False)
        if text is None
        else _column(name, found.types[name], next(facts))
        for name, text in kinds.items()
    ]
    return _Summary(int(records), int(marked), tuple(columns))


def _text_of(name: str, kind: str) -> str | None:
    """A value as a code is written; None for a type whose values are nothing that levels are compared with."""
    try:
        return as_text(name, quoted(name), kind)
    except UnreadableSource:
        return None


def _column_sql(column: str, text: str, kind: str) -> str:
    """The facts of one column, as one value of SQL."""
    if kind in TEXTS:
        number, day = f"TRY_CAST({column} AS DOUBLE)", f"TRY_CAST({column} AS DATE)"
    elif kind in INTEGERS | WIDE_INTEGERS | FLOATS or kind.startswith("DECIMAL"):
        number, day = f"TRY_CAST({column} AS DOUBLE)", "NULL::DATE"
    else:
        number, day = "NULL::DOUBLE", f"{column}" if kind == "DATE" else "NULL::DATE"
    finite = f"CASE WHEN isfinite({number}) THEN {number} END"
    year = f"CASE WHEN isfinite({day}) THEN year({day}) END"
    facts = {
        "present": f"count({text})",
        "different": f"approx_count_distinct({text})",
        "numbers": f"count({finite})",
        "whole": f"count(*) FILTER (WHERE ({finite}) = trunc({finite}) AND abs({finite}) < 1e15)",
        "days": f"count({year})",
        "low": f"approx_quantile({finite}, 0.01)",
        "high": f"approx_quantile({finite}, 0.99)",
        "least": f"min({finite})",
        "largest": f"max({finite})",
        "first_year": f"approx_quantile({year}, 0.005)",
        "last_year": f"approx_quantile({year}, 0.995)",
        "longest": f"max(length({text}))",
    }
    if kind in TEXTS:
        facts |= {
            "padded": f"count(*) FILTER (WHERE {text}[1] = '0' AND {text}[2] BETWEEN '0' AND '9')",
            "spaced": f"count(*) FILTER (WHERE contains(trim({text}), ' '))",
            "often": f"approx_top_k({text}[:{LONGEST_LEVEL}], 40)",
        }
    return f"struct_pack({', '.join(f'{name} := {fact}' for name, fact in facts.items())})"


def _column(name: str, kind: str, facts: Mapping[str, Any]) -> _Column:
    return _Column(name, kind, **{fact: said for fact, said in facts.items() if said is not None})


def _values(
    found: SourceColumns, connection: DuckDBPyConnection, few: Sequence[_Column], told: Callable[[float], None]
) -> dict[str, dict[str, int]]:
    """How many records have each value, of columns with few; longer texts than codes are left out."""
    pairs = []
    for number, each in enumerate(few):
        text = _text_of(each.name, each.kind)
        pairs.append(f"struct_pack(n := {number}, v := CASE WHEN length({text}) <= {LONGEST_LEVEL} THEN {text} END)")
    one = f"SELECT unnest([{', '.join(pairs)}]) AS one FROM {found.table}"
    statement = f"SELECT one.n AS n, one.v AS v, count(*) AS records FROM ({one}) GROUP BY ALL"
    executed(connection, f"CREATE TEMP TABLE counted AS {statement}", progress=told, share=found.share)
    values: dict[str, dict[str, int]] = {each.name: {} for each in few}
    counted = connection.execute("SELECT n, v, records FROM counted WHERE v IS NOT NULL").fetchall()
    for number, value, records in counted:
        values[few[number].name][value] = records
    return values


def _is_missing(value: str) -> bool:
    return not value.strip() or value.strip().casefold() in MISSING


def _drafted(column: _Column, values: Mapping[str, int] | None, records: int, labels: Mapping[str, str]) -> ColumnDraft:
    """What a column could be, by its summary and, where it has few, its values and what the file calls them."""
    name = column.name
    if not column.comparable:
        moment = column.kind.startswith(("TIMESTAMP", "TIME"))
        why = f"moments, and no days: {AS_DAYS}" if moment else "its values are no texts, numbers or days"
        return ColumnDraft(name, why_not=f"left out: {why}")
    absent = [each for each in values or {} if _is_missing(each)]
    blanks = sum((values or {})[each] for each in absent)
    present = column.present - blanks
    if present <= 0:
        return ColumnDraft(name, why_not="left out: nothing is stated in it")
    lost = column.present < records or bool(absent)
    missing = _missing_level(absent, values or {}) if lost else None
    unlisted = any(each != missing for each in absent) or column.longest > LONGEST_LEVEL
    remarks = [] if not lost else [f"not there, or said to be missing: {records - present:,} records"]
    if len(absent) > 1:
        remarks.append(f"written as {', '.join(map(repr, absent))}")
    made = {"missing": missing, "unlisted": unlisted and lost, "remarks": tuple(remarks)}
    if column.days >= NEARLY_ALL * present and _iso(column, values):
        return _days(column, made)
    coded = values is not None and all(each in labels for each in values if each not in absent)
    if not coded and _holds_numbers(column, values, present):
        return _labeled(_numbers(column, values, made, present=present), labels)
    if values is None or len(values) > MOST_VALUES:
        return _without_levels(column, present)
    listed = {each: values[each] for each in values if each not in absent}
    return _labeled(_levels(column, listed, made, present=present), labels)


def _labeled(drafted: ColumnDraft, labels: Mapping[str, str]) -> ColumnDraft:
    """The same with a label beside each level, where the file has some: its code where it has none that can be shown.

    No two levels may look alike to readers: a label that another level has stands with its code.
    """
    if drafted.form != "levels" or not any(level in labels for level in drafted.levels):
        return drafted
    codes = {*drafted.levels, drafted.missing}

    def shown(level: str) -> str:
        label = labels.get(level, "")
        return label if label.isprintable() and len(label) + len(level) <= LONGEST_LEVEL - len(" ()") else ""

    often = Counter(map(shown, drafted.levels))
    return replace(
        drafted,
        labels=tuple(
            level if not label else f"{label} ({level})" if often[label] > 1 or label in codes - {level} else label
            for level, label in ((level, shown(level)) for level in drafted.levels)
        ),
    )


def _holds_numbers(column: _Column, values: Mapping[str, int] | None, present: int) -> bool:
    """Whether a column holds numbers: nearly all are some, or few words among them say why there is none."""
    if column.padded or column.numbers < present / 2:
        return False
    some = column.often if values is None else values
    words = {each for each in some if not _is_missing(each) and not WHOLE_NUMBER.fullmatch(each)}
    if column.whole == column.numbers and any(
        map(RANGE.fullmatch, words)
    ):  # codes, as of industries, or ages up to 90+
        return False
    return column.numbers >= NEARLY_ALL * present or len(words) <= FEW_WORDS


def _missing_level(absent: Sequence[str], values: Mapping[str, int]) -> str:
    """The level of what is not there: the commonest way to say so, where there is one."""
    said = [each for each in absent if each.strip() and each.isprintable()]
    return max(said, key=lambda each: values[each]) if said else _free("not stated", values)


def _free(level: str, values: Mapping[str, int]) -> str:
    """A name for the missing level that is no value."""
    while level in values:
        level = f"({level})"
    return level


def _iso(column: _Column, values: Mapping[str, int] | None) -> bool:
    """Whether the days are written as codes of days are."""
    some = column.often if values is None else list(values)
    return column.kind == "DATE" or all(ISO_DATE.fullmatch(each) for each in some if not _is_missing(each))


def _days(column: _Column, made: Mapping[str, Any]) -> ColumnDraft:
    first, last = int(column.first_year), int(column.last_year)
    if not 1 <= first <= last <= 9999 or last - first >= MOST_YEARS:
        return ColumnDraft(
            column.name, why_not=f"left out: days of more than {MOST_YEARS} years; make a column of the years"
        )
    begin, days = date(first, 1, 1), (date(last, 12, 31) - date(first, 1, 1)).days + 1
    levels = tuple((begin + timedelta(days=day)).isoformat() for day in range(days))
    return ColumnDraft(column.name, "days", levels=levels, **made)


def _names_units(column: _Column, present: int) -> bool:
    """Whether a column is likely to name units: by its name, or as every record has a value of its own."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column.name.strip(" .:#")).casefold()
    own = column.different >= 0.9 * present
    return bool(IDENTIFIER_NAME.search(words) and column.different > max(2 * MOST_CODES, 0.1 * present)) or (
        own
        and present >= MANY_RECORDS
        and not column.spaced
        and column.kind in TEXTS
        and column.numbers < (1 - NEARLY_ALL) * present
    )


def _identifier(column: _Column) -> ColumnDraft:
    return ColumnDraft(column.name, why_not="left out: likely to name units (an identifier)", identifies=True)


def _records_of_one(column: _Column) -> int:
    """How many records a unit has at most, if this column names it: twice their mean, where they are several."""
    several = column.different < 0.9 * column.present
    return 2 * math.ceil(column.present / max(column.different, 1)) if several else 1


WRITTEN_OTHERWISE = (
    (COMMA_NUMBER, "numbers with a decimal comma: write them with a point, and draft again"),
    (OTHER_DATES, f"days or times that are written otherwise: {AS_DAYS}"),
    (SIGNED_NUMBER, "numbers with a sign of money, per cent or thousands: write them plainly, and draft again"),
)


def _written_otherwise(column: _Column) -> str | None:
    """What the texts of a column are meant for, where a program cannot read them as they are written."""
    some = [each.strip() for each in column.often if not _is_missing(each)]
    if not some or all(map(WHOLE_NUMBER.fullmatch, some)):  # written plainly: codes like 01012
        return None
    return next((why for form, why in WRITTEN_OTHERWISE if all(map(form.fullmatch, some))), None)


def _without_levels(column: _Column, present: int) -> ColumnDraft:
    why = _written_otherwise(column)
    if why is None and _names_units(column, present):
        return _identifier(column)
    return ColumnDraft(column.name, why_not=f"left out: {why or 'free text, or too many different values'}")


def _numbers(
    column: _Column, values: Mapping[str, int] | None, made: Mapping[str, Any], *, present: int
) -> ColumnDraft:
    """Codes where they are few whole numbers, bins where they lie close, amounts elsewhere."""
    whole = column.whole == column.numbers
    if whole and (_names_units(column, present) or _counts_records(column, present)):
        return _identifier(column)
    listed = {each: records for each, records in (values or {}).items() if not _is_missing(each)}
    if whole and 0 < len(listed) <= MOST_CODES and len(listed) < sum(listed.values()):
        return _levels(column, listed, made, present=present)
    if whole and (listed or column.often) and all(map(COMPACT_DAY.fullmatch, listed or column.often)):
        return ColumnDraft(column.name, why_not=f"left out: days or times that are written otherwise: {AS_DAYS}")
    codes = _codes_for_none(listed) if whole else ()
    if codes:
        numbers = [each for each in listed if each not in codes and WHOLE_NUMBER.fullmatch(each)]
        column = _without(column, {float(each): listed[each] for each in numbers})
        lost = sum(listed[each] for each in codes)
        words = f"likely codes that say why there is no number: {', '.join(codes)}, in {lost:,} records"
        made = {**made, "remarks": (*made["remarks"], words)}
    odd = column.numbers < present or (column.kind in TEXTS and not all(map(WHOLE_NUMBER.fullmatch, listed)))
    some = [*listed] or [each for each in column.often if not _is_missing(each)]
    if column.kind in TEXTS and not whole and all(map(THOUSANDS.fullmatch, some)):
        remark = "three digits follow every point: if that is how thousands are written, write the numbers plainly"
        made = {**made, "remarks": (*made["remarks"], remark)}
    if odd:
        remark = f"no numbers: {max(present - column.numbers, 1):,} or more records, counted as missing"
        missing = made["missing"] or _free("not stated", values or {})
        made = {"missing": missing, "unlisted": True, "remarks": (*made["remarks"], remark)}
    if column.low >= column.high:
        low, high = column.least, column.largest
    else:
        low, high = column.low, column.high
    if low >= high:
        return ColumnDraft(column.name, why_not="left out: there is nothing to tell apart")
    if whole and column.largest - column.least <= WIDEST_BINS:
        if codes:  # they lie outside every bin
            made = {**made, "missing": made["missing"] or _free("not stated", values or {}), "beyond_is_missing": True}
        return ColumnDraft(column.name, "bins", edges=_edges(column.least, column.largest), **made)
    if max(abs(low), abs(high)) >= 1e15 or max(abs(low), abs(high)) < 1e-9:
        return ColumnDraft(column.name, why_not="left out: numbers too large or too small to add up")
    upper = max(_rounded_up(max(abs(low), abs(high))), Fraction(1) if whole else Fraction(0))
    grid = Fraction(10) ** (math.floor(math.log10(upper)) - 2)
    grid = max(grid, Fraction(1)) if whole else grid
    lower = Fraction(0) if low >= 0 else -max(_rounded_up(-low), grid)
    upper = upper if high > 0 else Fraction(0)
    return ColumnDraft(column.name, "numbers", lower=lower, upper=upper, grid=grid, **made)


def _codes_for_none(listed: Mapping[str, int]) -> tuple[str, ...]:
    """Whole numbers like 999 or -9 far from all others: they are no ages, but reasons why there is none."""
    codes = {each for each in listed if NINES.fullmatch(each)}
    others = [float(each) for each in listed if each not in codes and WHOLE_NUMBER.fullmatch(each)]
    if not others or min(others) < 0 or sum(each.startswith("-") for each in codes) > FEW_WORDS:
        return ()
    far = 2 * max(others)
    return tuple(sorted((each for each in codes if float(each) < 0 or float(each) > far), key=float))


def _without(column: _Column, counts: Mapping[float, int]) -> _Column:
    """The column of some of its numbers."""
    numbers, total = sorted(counts), sum(counts.values())
    below = list(accumulate(counts[each] for each in numbers))
    low, high = (next(n for n, upto in zip(numbers, below, strict=True) if upto >= q * total) for q in (0.01, 0.99))
    return replace(column, least=numbers[0], largest=numbers[-1], low=low, high=high)


def _counts_records(column: _Column, present: int) -> bool:
    """Whether the numbers run from one to the next, one a record."""
    span = column.largest - column.least + 1
    return present >= MANY_RECORDS and column.different >= 0.9 * present and span <= 1.1 * present


def _edges(least: float, largest: float) -> tuple[int, ...]:
    """Edges of at most so many bins of whole numbers, rounded outward."""
    step = next(
        size
        for exponent in range(19)
        for size in (10**exponent, 2 * 10**exponent, 5 * 10**exponent)
        if (largest // size - least // size) + 1 <= MOST_BINS
    )
    first, last = int(least // step) * step, (int(largest // step) + 1) * step
    return tuple(range(first, last + step, step))


def _rounded_up(number: float) -> Fraction:
    """1, 2 or 5 times a power of ten, not below the number."""
    power = Fraction(10) ** math.floor(math.log10(number))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= Fraction(number))


def _levels(column: _Column, values: Mapping[str, int], made: Mapping[str, Any], *, present: int) -> ColumnDraft:
    """Listed levels; those that are written in several ways are grouped."""
    listed = sum(values.values())
    own = len(values) > max(1.0, listed / 3)  # about as many values as records
    other = len(values) > MOST_CODES and _written_otherwise(column) is not None
    if listed < NEARLY_ALL * present or (own and (len(values) > MOST_CODES or len(values) == listed)) or other:
        return _without_levels(column, present)
    if _names_units(column, present):
        return _identifier(column)
    groups: dict[str, list[str]] = {}
    for value in sorted(values, key=lambda each: (-values[each], each)):
        groups.setdefault(" ".join(value.casefold().split()), []).append(value)
    rare = FEW_RECORDS if listed >= MANY_RECORDS else 1
    kept = {
        " ".join(alike[0].split()): tuple(alike)
        for alike in groups.values()
        if sum(values[each] for each in alike) >= rare and all(each.isprintable() for each in alike)
    }
    levels = sorted((each for alike in kept.values() for each in alike), key=_in_order)
    if len(kept) < 2:
        return ColumnDraft(column.name, why_not="left out: there is nothing to tell apart")
    remarks, unlisted = list(made["remarks"]), made["unlisted"] or len(levels) < len(values)
    if len(levels) < len(values):
        words = f"not listed, as fewer than {FEW_RECORDS} records have them or they cannot be printed"
        remarks.append(f"{words}: {len(values) - len(levels)} values")
    alike = [several for several in kept.values() if len(several) > 1]
    remarks += [f"likely the same: {', '.join(map(repr, several))}" for several in alike]
    return ColumnDraft(
        column.name,
        "levels",
        levels=tuple(levels),
        spellings={first: kept[first] for first in sorted(kept, key=_in_order)} if alike else {},
        missing=made["missing"] or (_free("not listed", values) if unlisted else None),
        unlisted=unlisted,
        fine=len(kept) > 2 * MOST_CODES and listed < FEW_OF_A_CODE * len(kept),
        remarks=tuple(remarks),
    )


def _in_order(value: str) -> tuple[float, str, str]:
    """Numbers by their size, before texts by their letters."""
    plain = WHOLE_NUMBER.fullmatch(value)
    return (float(value) if plain else math.inf, value.casefold(), value)
