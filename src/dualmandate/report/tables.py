"""Tables on a page; behind a picture, its numbers for readers who want digits, a screen reader or a spreadsheet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from dualmandate.population.wording import exact, money, number, percent, rounded_down

Cell = float | str | bool | None
WRITTEN: Mapping[str, Callable[[float], str]] = {
    "number": number,
    "exact": exact,
    "money": partial(money, short=True),
    "percent": percent,
    "loss": rounded_down,
}


@dataclass(frozen=True)
class Column:
    """One column: its key in the rows, its heading with the unit, and how its numbers are written."""

    key: str
    heading: str
    kind: str = "number"  # or exact, loss, money, percent, text

    def written(self, cell: Cell) -> str:
        """A cell as the reader sees it."""
        if cell is None:
            return "–"
        if isinstance(cell, str | bool):
            return str(cell) if isinstance(cell, str) else ("yes" if cell else "no")
        return WRITTEN[self.kind](cell)


@dataclass(frozen=True)
class FigureTable:
    """Rows of a table. One with a true `marked` is a point that a picture points at, and is never left out."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Mapping[str, Cell], ...]

    def thinned(self, most: int = 11) -> FigureTable:
        """About `most` evenly spaced rows, the first, the last and every marked one among them."""
        if len(self.rows) <= most:
            return self
        step = (len(self.rows) - 1) / (most - 1)
        kept = {round(i * step) for i in range(most)}
        marked = {i for i, row in enumerate(self.rows) if row.get("marked")}
        return replace(self, rows=tuple(self.rows[i] for i in sorted(kept | marked)))

    def filled(self, column: Column) -> bool:
        """Whether a column has anything to say."""
        return any(row.get(column.key) is not None for row in self.rows)

    def written(self) -> tuple[tuple[str, ...], ...]:
        """Every cell as the reader sees it, row by row."""
        return tuple(tuple(column.written(row.get(column.key)) for column in self.columns) for row in self.rows)


def amount(row: Mapping[str, Cell], key: str) -> float:
    """A cell that is known to hold a number."""
    cell = row[key]
    assert isinstance(cell, float | int), f"{key} is not a number"
    return float(cell)
