"""What the choice means for each table: its typical error, and what 95 in 100 published numbers stay within."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.units import plural
from dualmandate.population.wording import money, number, stated_loss
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice

MOST_TABLES = 12  # the costliest are drawn; the twin holds all
NORMAL_HALF_WIDTH = 1.959964  # standard errors that hold 95 % of normal noise
WIDEST_LINEAR = 30.0  # ratio of errors from which on the axis is logarithmic
LETTER = 6.4  # px, mean width of a letter in a label


def consequences_twin(choice: Choice, half_widths: Mapping[str, float] | None = None) -> Twin:
    """Rows behind the picture: error, 95 % half-width and consequence of every table.

    `half_widths` are exact ones, by table, in the table's unit; where one is missing, the noise is taken as normal
    and the half-width is 1.96 root mean squared errors.
    """
    known = half_widths or {}
    rows = tuple(
        {
            "table": table.table,
            "unit": plural(table.unit),
            "query_count": table.query_count,
            "root_mean_squared_error": table.root_mean_squared_error,
            "half_width": known.get(table.table, NORMAL_HALF_WIDTH * table.root_mean_squared_error),
            "exact": table.table in known,
            "root_mean_squared_consequence": table.root_mean_squared_consequence,
            "data_loss": table.data_loss,
        }
        for table in choice.tables
    )
    return Twin(
        caption=f"Errors of the published numbers at {stated_loss(choice.loss)}",
        columns=(
            Column("table", "table", "text"),
            Column("query_count", "published numbers", "count"),
            Column("unit", "counted in", "text"),
            Column("root_mean_squared_error", "typical error (RMSE)"),
            Column("half_width", "95 % within ±"),
            Column("root_mean_squared_consequence", "typical consequence of one error", "money"),
            Column("data_loss", "cost of all errors to society", "money"),
        ),
        rows=rows,
    )


def consequences(
    choice: Choice, half_widths: Mapping[str, float] | None = None, *, width: int = WIDE
) -> alt.LayerChart | alt.VConcatChart:
    """One bar a table, as long as its 95 % half-width, with a dot at its root mean squared error; a panel a unit."""
    twin = consequences_twin(choice, half_widths)
    costliest = sorted(twin.rows, key=lambda row: -amount(row, "data_loss"))[:MOST_TABLES]
    by_unit = sorted(costliest, key=lambda row: str(row["unit"]))
    panels = [(unit, list(rows)) for unit, rows in groupby(by_unit, key=lambda row: str(row["unit"]))]
    first = costliest[0]
    typical = amount(first, "root_mean_squared_error")
    error = money(typical) if first["unit"] == "USD" else f"{number(typical)} {first['unit']}"
    consequence = first["root_mean_squared_consequence"]
    worth = f", worth {money(consequence)}" if isinstance(consequence, float) else ""
    which = "A published number" if len(twin.rows) == 1 else f"A number in '{first['table']}'"
    title = f"{which} is typically off by {error}{worth}"
    subtitle = "Dot: root mean squared error; bar: what 95 in 100 published numbers stay within"
    if not all(row["exact"] for row in twin.rows):
        subtitle += " (noise taken as normal where no exact law is known)"
    row_height = 58 if width >= ROOMY else 78
    if len(panels) == 1:
        unit, rows = panels[0]
        picture = layered(*_panel(rows, unit, width=width))
        return dress(picture, title=title, subtitle=subtitle, width=width, height=row_height * len(rows))
    drawn = [
        layered(*_panel(rows, unit, width=width)).properties(width=width - 40, height=row_height * len(rows))
        for unit, rows in panels
    ]
    return dress(alt.vconcat(*drawn), title=title, subtitle=subtitle, width=width)


def _panel(rows: Sequence[Mapping[str, Cell]], unit: str, *, width: int) -> list[Mark]:
    """The tables of one unit, each with its name above its bar and its numbers beside the name, or below on a phone."""
    roomy = width >= ROOMY
    typical = [amount(row, "root_mean_squared_error") for row in rows]
    widest = max(amount(row, "half_width") for row in rows)
    log = min(typical) > 0 and widest / min(typical) > WIDEST_LINEAR
    low = min(typical) / 3 if log else 0.0
    plane = Plane(
        Ruler(f"error, {unit}", low, widest * 1.08, log=log),
        Ruler("", float(len(rows)), 0.0, hidden=True),
    )
    at = 0.68 if roomy else 0.5
    places = [{**row, "y": i + at, "from": low, "to": row["half_width"]} for i, row in enumerate(rows)]
    marks: list[Mark] = [
        plane.bars(places, color=LIGHT.production, opacity=0.35),
        plane.points(places, "root_mean_squared_error", "y", color=LIGHT.production, name="errors", filled=True),
    ]
    for i, row in enumerate(rows):
        numbers = (
            f"RMSE {number(amount(row, 'root_mean_squared_error'))} · 95 % within ±{number(amount(row, 'half_width'))}"
        )
        if isinstance(row["root_mean_squared_consequence"], float):
            numbers += f" · {money(row['root_mean_squared_consequence'])}"
        space = width - 40 - (LETTER * len(numbers) + 20 if roomy else 0)
        name = textwrap.shorten(str(row["table"]), max(10, int(space / LETTER)), placeholder="…")
        marks.append(plane.words(low, i + 0.3, name, shift=(0, -4)))
        if roomy:
            marks.append(
                plane.words(plane.across.high, i + 0.3, numbers, color=LIGHT.quiet, align="right", shift=(0, -4))
            )
        else:
            marks.append(plane.words(low, i + 0.68, numbers, color=LIGHT.quiet, shift=(0, 4)))
    return marks
