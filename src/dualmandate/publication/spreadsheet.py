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
            for name, lines in (("Table", _layout(sheet)), ("All numbers", _rows(sheet))):
                page = book.add_worksheet(name)
                page.set_column(0, max(1, len(sheet.texts)) - 1, 18)
                page.set_column(max(1, len(sheet.texts)), WIDEST, 14)
                for number, line in enumerate(lines):
                    _write(page, number, line, bold if number == 0 else None)
                page.freeze_panes(1, 0)
            page = book.add_worksheet("Notes")
            page.set_column(0, 0, 100)
            for number, note in enumerate((sheet.name, *self.notes)):
                page.write_string(number, 0, note, bold if number == 0 else wrapped)
        write_durably(path, content.getvalue(), mode=PUBLIC_MODE)
        return (path,)


def _write(page: Worksheet, row: int, line: Sequence[object], style: Any) -> None:
    for column, each in enumerate(line):
        if isinstance(each, str):
            page.write_string(row, column, each, style)
        elif math.isfinite(number := float(each)):  # type: ignore[arg-type]
            page.write_number(row, column, number)


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
