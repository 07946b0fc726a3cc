"""Where the confidential records lie. A source is a name and a form; nothing is opened by making one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.errors import UnreadableSource

if TYPE_CHECKING:
    import pyarrow

URL_STARTS = "postgresql://USER@HOST/DATABASE"


@dataclass(frozen=True)
class _File:
    path: Path | str

    @property
    def name(self) -> str:
        """What a refusal calls it."""
        return Path(self.path).name


class ParquetFile(_File):
    """A Parquet file, one row a record."""


@dataclass(frozen=True)
class CsvFile(_File):
    """A CSV file: UTF-8 text, a header, one line a record, double quotes around values that need them.

    Every value is read as the text that stands there (codes keep their leading zeros); an empty one is not there.
    """

    delimiter: str = ","


class StatisticalFile(_File):
    """A file of SAS (.sas7bdat), Stata (.dta) or SPSS (.sav), by its ending.

    An empty text is not there, and neither is what the file itself declares as missing. A date is the number that the
    file keeps for it.
    """


@dataclass(frozen=True)
class _Table:
    table: str

    @property
    def name(self) -> str:
        """What a refusal calls it."""
        return self.table


@dataclass(frozen=True)
class DatabaseTable(_Table):
    """A table or view of a SQL database, `name` or `schema.name`, by the SQLAlchemy URL of the database.

    The URL may hold a password: it is never printed. Instead of it, `url_variable` names the environment variable
    that holds the URL, read when the table is.
    """

    url: str | None = field(default=None, repr=False)
    url_variable: str | None = None

    @property
    def address(self) -> str:
        """The URL itself."""
        address = self.url or (os.environ.get(self.url_variable) if self.url_variable else None)
        if not address:
            raise UnreadableSource(
                f"the database of '{self.table}' has no URL",
                why=f"the environment variable {self.url_variable} is not set"
                if self.url_variable
                else "a table is found through the URL of its database",
                instead=f"set it to {URL_STARTS}",
            )
        return address


class SparkTable(_Table):
    """A table or view that the running Spark session knows."""


Source = ParquetFile | CsvFile | StatisticalFile | DatabaseTable | SparkTable
SUFFIXES: Mapping[str, Callable[[Path], ParquetFile | CsvFile | StatisticalFile]] = {
    ".parquet": ParquetFile,
    ".csv": CsvFile,
    ".sas7bdat": StatisticalFile,
    ".dta": StatisticalFile,
    ".sav": StatisticalFile,
}


def source_file(path: Path | str) -> ParquetFile | CsvFile | StatisticalFile:
    """The file at a path, of the kind that its ending says."""
    make = SUFFIXES.get(Path(path).suffix.lower())
    if make is None:
        raise UnreadableSource(
            f"nobody knows how to read '{Path(path).name}'",
            why=f"a file of records ends in {', '.join(SUFFIXES)}",
            instead="give it the ending of what is in it",
        )
    return make(Path(path))


@dataclass(frozen=True)
class SourceColumns:
    """What a source offers to SQL: the text after FROM, and the SQL type of each column by its exact name."""

    table: str
    types: Mapping[str, str]
    share: Callable[[], float] | None = None  # read so far, where the source itself knows

    def type_of(self, name: str) -> str:
        """The SQL type of a column; a refusal names what is missing, never what is there."""
        if name not in self.types:
            raise no_column(name)
        return self.types[name]


@dataclass(frozen=True)
class Stream:
    """Records as they come: the columns asked for, and batches of them, once. `rows` is how many, where it is known."""

    schema: pyarrow.Schema
    batches: Iterator[pyarrow.RecordBatch]
    rows: int | None = None


def no_column(name: str) -> UnreadableSource:
    """The refusal for a column that is not there."""
    return UnreadableSource(
        f"the source has no column '{name}'",
        why="every attribute and the identifier is a column, in the spelling of the program",
        instead="rename the column, or name the source that has it",
    )


def chosen(wanted: Sequence[str], there: Sequence[str]) -> list[str]:
    """The wanted columns, each once; refused where one is not there."""
    absent = next((name for name in wanted if name not in there), None)
    if absent is not None:
        raise no_column(absent)
    return list(dict.fromkeys(wanted))


def not_installed(package: str, what: str, extra: str) -> UnreadableSource:
    """The refusal for a source whose reader is an extra."""
    return UnreadableSource(
        f"{what} cannot be read here",
        why=f"the package {package} is not installed",
        instead=f"install dualmandate[{extra}]",
    )


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text(words: str) -> str:
    """A text as SQL writes it."""
    return "'" + words.replace("'", "''") + "'"
