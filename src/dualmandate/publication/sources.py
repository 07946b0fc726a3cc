"""Where the confidential records lie. A source is a name and a form; nothing is opened by making one."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.errors import UnreadableSource

if TYPE_CHECKING:
    import duckdb

LONGEST_HEADER = 2**20  # characters


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file, one row a record."""

    path: Path | str


@dataclass(frozen=True)
class CsvFile:
    """A CSV file: UTF-8 text, a header, one line a record, double quotes around values that need them.

    Every value is read as the text that stands there (codes keep their leading zeros); an empty one is not there.
    """

    path: Path | str
    delimiter: str = ","


Source = ParquetFile | CsvFile


@dataclass(frozen=True)
class Columns:
    """What a source offers to SQL: the text after FROM, and the SQL type of each column by its exact name."""

    table: str
    types: Mapping[str, str]

    def type_of(self, name: str) -> str:
        """The SQL type of a column; a refusal names what is missing, never what is there."""
        if name not in self.types:
            raise UnreadableSource(
                f"the source has no column '{name}'",
                why="every attribute and the identifier is a column, in the spelling of the program",
                instead="rename the column, or name the source that has it",
            )
        return self.types[name]


def check_source(source: Source) -> None:
    """Refuse what is no regular file, and a delimiter that is no single character, before anything is opened."""
    if not Path(source.path).is_file():
        raise UnreadableSource(
            f"the source '{Path(source.path).name}' cannot be read",
            why="there is no such file",
            instead="name one file that can be read",
        )
    if isinstance(source, CsvFile) and (len(source.delimiter) != 1 or source.delimiter in '"\r\n'):
        raise UnreadableSource(
            "the delimiter is not one character",
            why="values are separated by one character that is no quote and no end of line",
            instead='state delimiter = "," or ";" or a tab',
        )


def columns(source: Source, connection: duckdb.DuckDBPyConnection) -> Columns:
    """The columns of a source; what is in them is not read."""
    table = _parquet(source) if isinstance(source, ParquetFile) else _csv(source)
    described = connection.execute(f"DESCRIBE SELECT * FROM {table}").fetchall()
    return Columns(table, {str(row[0]): str(row[1]) for row in described})


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text(words: str) -> str:
    """A text as SQL writes it."""
    return "'" + words.replace("'", "''") + "'"


def _parquet(source: ParquetFile) -> str:
    # The names of folders are no columns: they would be read as text beside the file's own.
    return f"read_parquet({_place(source)}, hive_partitioning = false)"


def _csv(source: CsvFile) -> str:
    with Path(source.path).open(encoding="utf-8-sig", newline="") as opened:
        names = next(csv.reader([opened.readline(LONGEST_HEADER)], delimiter=source.delimiter, strict=True), [])
    if len({name.casefold() for name in names}) != len(names) or not all(names):
        raise UnreadableSource(
            f"the columns of '{Path(source.path).name}' have no names of their own",
            why="a column is found by its name, small and capital letters being the same",
            instead="name each column once, in the first line",
        )
    types = ", ".join(f"{text(name)}: 'VARCHAR'" for name in names)
    # Nothing is guessed from the data: what a guess depends on would be a value.
    return (
        f"read_csv({_place(source)}, columns = {{{types}}}, auto_detect = false, header = true, "
        f"delim = {text(source.delimiter)}, quote = '\"', escape = '\"', nullstr = '', hive_partitioning = false)"
    )


def _place(source: Source) -> str:
    """The path, with the characters that would name several files taken as they are written."""
    path = str(Path(source.path).absolute())
    return text("".join(f"[{letter}]" if letter in "*?[" else letter for letter in path))
