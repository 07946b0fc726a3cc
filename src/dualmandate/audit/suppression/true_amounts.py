"""The true amounts behind suppressed cells: a file of the curator's like the published one, nothing suppressed in it.

They are handed on in a box alone, and no message repeats one of them.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Integers
from dualmandate.audit.targets.targets import boxed
from dualmandate.errors import Place, UnreadableSource
from dualmandate.population import Confidential

MOST_DIGITS = 12


@dataclass(frozen=True)
class AmountColumns:
    """The columns of a file: what makes a cell, its amount, and the place and period where there are any."""

    cell: tuple[str, ...]
    value: str
    place: str | None = None
    period: str | None = None


@dataclass(frozen=True, eq=False)
class TrueAmounts:
    """Amounts by place, period and cell."""

    file: Path
    amounts: dict[tuple[str, str, str], str] = field(repr=False)

    def of(
        self, place: str, periods: Sequence[str], cells: Sequence[str], published: Integers, hidden: NDArray[np.bool_]
    ) -> Confidential[Integers]:
        """The amounts of all cells of a place: what was published, and what this file says of the rest.

        Shapes (cells, periods).
        """
        found = published.copy()
        for cell, period in np.argwhere(hidden).tolist():
            found[cell, period] = self._amount(place, periods[period], cells[cell])
        return boxed(found)

    def _amount(self, place: str, period: str, cell: str) -> int:
        text = self.amounts.get((place, period, cell))
        if text is not None and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS:
            return int(text)
        where = ", ".join(word for word in (place, period, cell) if word)
        said = "does not say what is in" if text is None else "has no amount for"
        raise UnreadableSource(
            f"'{self.file.name}' {said} the suppressed cell ({where})",
            why="attacks on suppressed cells are judged by all of their true amounts",
            instead="give the same cells as the published file, each with a whole number from 0 on",
            where=Place(file=str(self.file)),
        )


def read_true_amounts(file: Path, columns: AmountColumns) -> TrueAmounts:
    """Read a confidential file; refused, without repeating a value of it, where it is not like the published one."""
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = csv.DictReader(lines, strict=True)
            _check_columns(rows.fieldnames or (), columns, file)
            amounts = {_key(row, columns): str(row[columns.value]) for row in rows}
    except (OSError, UnicodeDecodeError, csv.Error):
        raise UnreadableSource(
            f"the confidential table '{file.name}' cannot be read",
            why="it is not there, or it is not comma-separated UTF-8 text",
            instead="give the folder a file of the same name as each published one",
            where=Place(file=str(file)),
        ) from None
    return TrueAmounts(file, amounts)


def _key(row: dict[str, str], columns: AmountColumns) -> tuple[str, str, str]:
    place, period = (row[name] if name is not None else "" for name in (columns.place, columns.period))
    return place, period, ", ".join(row[name] for name in columns.cell)


def _check_columns(header: Sequence[str], columns: AmountColumns, file: Path) -> None:
    wanted = (*columns.cell, columns.value, *(name for name in (columns.place, columns.period) if name is not None))
    missing = next((name for name in wanted if name not in header), None)
    if missing is not None:
        raise UnreadableSource(
            f"the confidential table '{file.name}' has no column '{missing}'",
            why="it is read as the published table of the same name is",
            instead="give it the same columns",
            where=Place(file=str(file)),
        )
