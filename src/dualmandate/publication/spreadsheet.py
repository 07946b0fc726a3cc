"""A table as a workbook for spreadsheets: rows and columns with their totals, every number with its interval, notes.

Equal sheets give equal bytes: a workbook is made at no time. It is put together in memory (some 160 MB at the most), so
that nothing of it lies in a temporary folder, or is left there by a full disk. What begins with `=` stays a text.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.ledger.durable import write_durably
from dualmandate.publication.writing import PUBLIC, PUBLIC_MODE, ReleaseSheet, constants

if TYPE_CHECKING:
    from xlsxwriter.worksheet import Worksheet

MOST_NUMBERS = 50_000  # A larger table has no workbook; a sheet ends after 1,048,576 rows.
WIDEST = 200  # A breakdown with more levels goes down the rows.
NOTES_WIDTH = 100  # letters of the column of notes
TALL = 15  # points of a line
A4 = 9  # as files of Excel number sizes of paper
LONGEST_HEADER = 200  # letters; Excel has room for 255
MOST_DIGITS = 9  # after the point
MADE = datetime(1980, 1, 1)
TOTAL = "Total"
SETTINGS = {
    "in_memory": True,
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "nan_inf_to_errors": False,
}


@dataclass(frozen=True)
class Xlsx:
    """A workbook: the table with margins, all its numbers row by row, and notes."""

    notes: tuple[str, ...] = ()
    suffixes: ClassVar[tuple[str, ...]] = (".xlsx",)

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        from xlsxwriter import Workbook

        path, content = stem.with_name(stem.name + self.suffixes[0]), io.BytesIO()
        with Workbook(content, SETTINGS) as book:
            book.set_properties({"title": sheet.name, "comments": PUBLIC, "created": MADE})
            bold = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
            wrapped = book.add_format({"text_wrap": True, "valign": "top"})
            whole, broken = (book.add_format({"num_format": each}) for each in _formats(sheet))
            for name, lines in (("Table", _layout(sheet)), ("All numbers", _rows(sheet))):
                page = book.add_worksheet(name)
                _lay_out(page, sheet.name)
                page.set_column(0, max(1, len(sheet.texts)) - 1, 18)
                page.set_column(max(1, len(sheet.texts)), WIDEST, 14)
                page.set_row(0, TALL * _lines(max(map(len, sheet.numbers)), 14))
                for number, line in enumerate(lines):
                    _write(page, number, line, (bold if number == 0 else None, whole, broken))
                page.freeze_panes(1, 0)
                page.repeat_rows(0)
            page = book.add_worksheet("Notes")
            _lay_out(page, sheet.name)
            page.set_column(0, 0, NOTES_WIDTH)
            for number, note in enumerate((sheet.name, *self.notes)):
                page.set_row(number, TALL * _lines(len(note), NOTES_WIDTH))  # LibreOffice finds no height by itself.
                page.write_string(number, 0, note, bold if number == 0 else wrapped)
        write_durably(path, content.getvalue(), mode=PUBLIC_MODE)
        return (path,)


def _lay_out(page: Worksheet, name: str) -> None:
    """On paper: across, as wide as one page, its table's name above and the page's number below."""
    page.set_landscape()
    page.set_paper(A4)
    page.fit_to_pages(1, 0)
    page.set_header("&L" + name.replace("&", "&&")[:LONGEST_HEADER])
    page.set_footer("&R&P / &N")


def _formats(sheet: ReleaseSheet) -> tuple[str, str]:
    """How whole numbers and others are shown: with thousands, and no more digits than the error supports."""
    errors = sheet.numbers.get("standard_error", np.zeros(0))
    errors = errors[np.isfinite(errors) & (errors > 0)]
    digits = 0 if not len(errors) else min(MOST_DIGITS, max(0, 1 - math.floor(math.log10(float(np.min(errors))))))
    return "#,##0", "#,##0" + ("." + "0" * digits if digits else "")


def _lines(letters: int, width: int) -> int:
    """How many lines a text takes in a column so wide, at most: words are not cut."""
    return -(-letters * 10 // (width * 9))


def _write(page: Worksheet, row: int, line: Sequence[object], styles: tuple[Any, Any, Any]) -> None:
    words, whole, broken = styles
    for column, each in enumerate(line):
        if isinstance(each, str):
            page.write_string(row, column, each, words)
        elif math.isfinite(number := float(each)):  # type: ignore[arg-type]
            page.write_number(row, column, number, whole if isinstance(each, int) else broken)


def _rows(sheet: ReleaseSheet) -> Iterator[Sequence[object]]:
    """A heading and one row a cell, as in the CSV file."""
    of_all = constants(sheet)
    yield [*(text.heading for text in sheet.texts), *sheet.numbers, *of_all]
    for part, places in sheet.pieces():
        columns: list[Sequence[object]] = [[text.words[i] for i in places[text.place]] for text in sheet.texts]
        columns += [values[part].tolist() for values in sheet.numbers.values()]
        for row in zip(*columns, strict=True):
            yield [*row, *of_all.values()]


def _layout(sheet: ReleaseSheet) -> Iterator[Sequence[object]]:
    """The whole numbers, or the estimates: the last breakdown across, others down, totals; what is counted below."""
    across = len(sheet.labels) > 1 and len(sheet.labels[-1]) <= WIDEST
    words = [_shown(sheet, place) for place in range(len(sheet.labels))]
    first = next(name for name in ("value", "estimate") if name in sheet.numbers)
    numbers = sheet.numbers[first]
    adds_up = sheet.unit != "share" and " per " not in sheet.unit
    down = words[:-1] if across else words
    table = numbers.reshape(-1, len(words[-1])) if across else numbers.reshape(-1, 1)
    margin = across and adds_up
    yield [*sheet.headings[: len(down)], *(words[-1] if across else (first,)), *((TOTAL,) if margin else ())]
    shape = [len(each) for each in down]
    for row, line in enumerate(table):
        places = np.unravel_index(row, shape) if shape else ()
        labels = [each[int(place)] for each, place in zip(down, places, strict=True)]
        yield [*labels, *line.tolist(), *((line.sum().item(),) if margin else ())]
    if adds_up and down:
        sums: NDArray[Any] = table.sum(axis=0)
        empty = [""] * (len(down) - 1)
        yield [TOTAL, *empty, *sums.tolist(), *((sums.sum().item(),) if margin else ())]
    if "clipped" in sheet.facts:
        yield []
        yield [f"What is counted: {sheet.facts['clipped']}."]


def _shown(sheet: ReleaseSheet, place: int) -> tuple[str, ...]:
    """The levels of a breakdown as readers are shown them."""
    of = [text.words for text in sheet.texts if text.place == place]
    return of[1] if len(of) > 1 else of[0]
