"""Columns of text from a CSV file, read one way everywhere: code lists, survey answers, published and true tables.

UTF-8 with or without a mark at its beginning, commas, quotes as RFC 4180 has them; blank lines are passed over. A
header that names a column twice or not at all is refused, and so is a row with more or fewer values than the header.
Nothing is guessed, and no refusal of the reading repeats what stands in the file: it says which file and which line.
"""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass, field
from pathlib import Path

from dualmandate.errors import InvalidFile, InvalidValue, Place, did_you_mean
from dualmandate.program.file import read_bytes

LARGEST_FILE = 2**27  # At most this many bytes: eight million census blocks.


@dataclass(frozen=True)
class TextColumns:
    """The columns of a CSV file by name, the line of each row, and a digest of its bytes that `sha256sum` gives too."""

    file: Path
    columns: dict[str, tuple[str, ...]] = field(repr=False)  # what people said is not printed
    lines: tuple[int, ...] = field(repr=False)  # of each row in the file, for refusals
    digest: str

    def column(self, name: str) -> tuple[str, ...]:
        """A column by its name, refused with the nearest spelling where there is none: for files that are public."""
        if name not in self.columns:
            raise InvalidValue(
                f"'{self.file.name}' has no column '{name}'",
                why=f"its header names {', '.join(self.columns)}",
                instead=did_you_mean(name, self.columns, "name one of its columns"),
            )
        return self.columns[name]

    def codes(self, column: str | None) -> tuple[str, ...]:
        """The codes of a column (the first one where none is named), refused where one is empty or stands twice."""
        codes = self.column(next(iter(self.columns)) if column is None else column)
        if all(codes) and len(set(codes)) == len(codes):
            return codes
        lines: dict[str, int] = {}
        for line, code in zip(self.lines, codes, strict=True):
            if not code:
                raise self._odd_code("has an empty code", "a level needs a name", line)
            if code in lines:
                why = f"it stands on line {lines[code]} too, and each record falls into exactly one level"
                raise self._odd_code(f"holds '{code}' twice", why, line)
            lines[code] = line
        return codes

    def _odd_code(self, what: str, why: str, line: int) -> InvalidFile:
        words, where = f"the code list '{self.file.name}' {what}", Place(str(self.file), line)
        return InvalidFile(words, why=why, instead="list each code once", where=where)


def read_text_columns(file: Path, what: str, *, largest: int = LARGEST_FILE) -> TextColumns:
    """Read a file, `what` it is in words; it has a header and at least one row.

    Without a line of its own, a refusal is left to be placed at the key that names the file.
    """
    content = read_bytes(file, largest=largest, what=what)

    def unusable(why: str, instead: str, line: int | None = None) -> InvalidFile:
        where = None if line is None else Place(str(file), line)
        return InvalidFile(f"the {what} '{file.name}' cannot be used", why=why, instead=instead, where=where)

    try:
        found = _rows(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise unusable("it is not UTF-8 text", "save it as UTF-8", line) from None
    except csv.Error:
        raise unusable("it is not comma-separated text", "save it as CSV") from None
    header, lines, widths, values = found
    if not header or not lines:
        raise unusable("it holds no rows", "write a header and rows below it")
    if len(set(header)) != len(header) or not all(header):
        raise unusable("its columns have no names of their own", "name each column once, in the first line", 1)
    odd = next((line for line, width in zip(lines, widths, strict=True) if width != len(header)), None)
    if odd is not None:
        raise unusable(f"line {odd} has not as many values as the header", "give each row every column", odd)
    columns = {name: tuple(values[place :: len(header)]) for place, name in enumerate(header)}
    return TextColumns(file, columns, tuple(lines), hashlib.sha256(content).hexdigest())


Rows = tuple[list[str], list[int], list[int], list[str]]  # the header; line and width of each row; their values in turn


def _rows(text: str) -> Rows:
    """What a file says, blank lines passed over. A list a row would make millions of lists: values stand in one."""
    if '"' not in text:
        ends = text.replace("\r\n", "\n").replace("\r", "\n")
        said = ends.split("\n")
        if len(max(said, key=len)) <= csv.field_size_limit():
            first, *below = said
            lines = [number for number, line in enumerate(below, start=2) if line]
            kept = list(filter(None, below))
            widths = [line.count(",") + 1 for line in kept]
            return first.split(",") if first else [], lines, widths, ",".join(kept).split(",")
    rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    header, lines, widths, values = next(rows, []), list[int](), list[int](), list[str]()
    for row in rows:
        if row:
            lines.append(rows.line_num)
            widths.append(len(row))
            values += row
    return header, lines, widths, values
