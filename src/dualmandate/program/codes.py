"""Code lists: the levels of an attribute, one row a code, in a CSV file beside the program."""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from dualmandate.errors import InvalidFile, InvalidValue, Place, Refusal
from dualmandate.program.file import read_bytes

LARGEST_CODE_LIST = 2**27  # bytes: eight million census blocks


@dataclass(frozen=True)
class CodeList:
    """A CSV file of codes: its columns by name, and a digest of its bytes that `sha256sum` gives too."""

    file: Path
    columns: dict[str, tuple[str, ...]]
    lines: tuple[int, ...]  # of each row in the file, for refusals
    digest: str

    def codes(self, column: str | None) -> tuple[str, ...]:
        """The codes of a column (the first one where none is named), refused where one is empty or stands twice."""
        codes = self.column(next(iter(self.columns)) if column is None else column)
        lines: dict[str, int] = {}
        for line, code in zip(self.lines, codes, strict=True):
            if not code:
                raise self._refusal(f"the code list '{self.file.name}' has an empty code", "a level needs a name", line)
            if code in lines:
                raise self._refusal(
                    f"the code list '{self.file.name}' holds '{code}' twice",
                    f"it stands on line {lines[code]} too, and each record falls into exactly one level",
                    line,
                )
            lines[code] = line
        return codes

    def column(self, name: str) -> tuple[str, ...]:
        """A column by its name in the header, refused with the nearest spelling where there is none."""
        if name not in self.columns:
            near = difflib.get_close_matches(name, list(self.columns), n=1)
            raise InvalidValue(
                f"'{self.file.name}' has no column '{name}'",
                why=f"its header names {', '.join(self.columns)}",
                instead=f"did you mean '{near[0]}'?" if near else "name one of its columns",
            )
        return self.columns[name]

    def _refusal(self, what: str, why: str, line: int) -> Refusal:
        return InvalidFile(what, why=why, instead="list each code once", where=Place(str(self.file), line))


def read_codes(file: Path, what: str = "code list") -> CodeList:
    """Read a code list (or `what` it is called): UTF-8, comma-separated, a header and at least one row."""
    content = read_bytes(file, largest=LARGEST_CODE_LIST, what=what)
    try:
        rows = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header = next(rows, [])
        records = [(rows.line_num, row) for row in rows if row]
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _invalid(file, what, "it is not UTF-8 text", "save it as UTF-8", line) from None
    except csv.Error:
        raise _invalid(file, what, "it is not comma-separated text", "save it as CSV", None) from None
    if not header or not records:
        raise _invalid(
            file,
            what,
            f"it holds no {'codes' if what == 'code list' else 'rows'}",
            "write a header and rows below it",
            None,
        )
    if len(set(header)) != len(header) or not all(header):
        raise _invalid(file, what, "its columns have no names of their own", "name each column once", 1)
    odd = next((line for line, row in records if len(row) != len(header)), None)
    if odd is not None:
        raise _invalid(
            file, what, f"line {odd} has not as many values as the header", "give each row every column", odd
        )
    columns = zip(*(row for _, row in records), strict=True)
    return CodeList(
        file,
        columns=dict(zip(header, columns, strict=True)),
        lines=tuple(line for line, _ in records),
        digest=hashlib.sha256(content).hexdigest(),
    )


def _invalid(file: Path, what: str, why: str, instead: str, line: int | None) -> InvalidFile:
    # Without a line in the list, the refusal is placed at the key of the program that names the list.
    where = None if line is None else Place(str(file), line)
    return InvalidFile(f"the {what} '{file.name}' cannot be used", why=why, instead=instead, where=where)
