"""Errors that were there before, beside what noise adds to them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Protocol

import altair as alt

from dualmandate.population import plural
from dualmandate.population.wording import number, percent
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

ROW_HEIGHT = 46  # px
MOST_ROWS = 14
LETTER = 6.4  # px, mean width of a letter in a label


class Before(Protocol):
    """The error that one table had before, and what noise adds; RMSE of one number, in the table's unit."""

    @property
    def table(self) -> str:
        """Its name."""
        ...

    @property
    def unit(self) -> str:
        """What it counts."""
        ...

    @property
    def before(self) -> float:
        """The error that was there; > 0."""
        ...

    @property
    def noise(self) -> float:
        """The error of noise alone; > 0."""
        ...

    @property
    def added(self) -> float:
        """By which share noise widens what was there."""
        ...


def existing_twin(rows: Sequence[Before]) -> Twin:
    """Rows behind the picture: each table's error before noise, of noise, and by how much that widens it."""
    cells: list[dict[str, Cell]] = [
        {"table": row.table, "unit": plural(row.unit), "before": row.before, "noise": row.noise, "added": row.added}
        for row in rows
    ]
    return Twin(
        caption="Typical errors (RMSE) of one number: those that were there before, and those of noise",
        columns=(
            Column("table", "table", "text"),
            Column("unit", "unit", "text"),
            Column("before", "before noise"),
            Column("noise", "of noise"),
            Column("added", "wider by", "percent"),
        ),
        rows=tuple(cells),
    )


def existing_picture(rows: Sequence[Before], *, width: int = WIDE) -> alt.LayerChart:
    """One line a table: the error of noise as a share of the error that was there before, on a logarithmic axis."""
    twin = existing_twin(rows)
    drawn = sorted(twin.rows, key=lambda row: -amount(row, "added"))[:MOST_ROWS]
    shares = [amount(row, "noise") / amount(row, "before") for row in drawn]
    low, high = min([*shares, 1.0]) / 1.8, max([*shares, 1.0]) * 1.8
    plane = Plane(
        Ruler("error of noise, times the error before", low, high, log=True),
        Ruler("", float(len(drawn)), 0.0, hidden=True),
    )
    letters = int((width - 40) / LETTER)
    marks: list[Mark] = [plane.vertical(1.0, color=LIGHT.limit, dash=(2, 4))]
    for i, (row, share) in enumerate(zip(drawn, shares, strict=True)):
        words = f": {number(amount(row, 'noise'))} beside {number(amount(row, 'before'))} {row['unit']}"
        shown = words if width >= ROOMY else ""
        name = textwrap.shorten(str(row["table"]), max(12, letters - len(shown)), placeholder="…")
        marks += [
            plane.points([{"x": share, "y": i + 0.76}], "x", "y", color=LIGHT.production, name=f"n-{i}", filled=True),
            plane.words(plane.across.low, i + 0.5, f"{name}{shown}", shift=(0, -4)),
        ]
    worst = drawn[0]
    return dress(
        layered(*marks),
        title=f"Noise widens the errors that were there by at most {percent(amount(worst, 'added'))}",
        subtitle="Typical error of noise divided by the typical error before noise; dotted: as large as before",
        width=width,
        height=ROW_HEIGHT * len(drawn),
    )
