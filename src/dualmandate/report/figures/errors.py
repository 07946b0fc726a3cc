"""Errors of the published numbers: what the choice means for each table, beside errors that were there before."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dualmandate.population.units import plural
from dualmandate.population.wording import money, number, percent, stated_loss
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.plane import LETTER, Mark, Plane, Ruler, layered, shortened
from dualmandate.report.tables import Cell, Column, FigureTable, amount
from dualmandate.report.theme import LIGHT, ROOMY

if TYPE_CHECKING:
    from dualmandate.choice import Choice
    from dualmandate.planning.extensions import ExistingError

MOST_TABLES = 12  # the costliest are drawn; the table holds all
NORMAL_HALF_WIDTH = 1.959964  # standard errors that hold 95 % of normal noise
WIDEST_LINEAR = 30.0  # ratio of errors from which on the axis is logarithmic
ROW_HEIGHT = 46  # px
MOST_ROWS = 14


def consequences(choice: Choice, half_widths: Mapping[str, float] | None = None) -> Figure:
    """One bar a table, as long as its 95 % half-width, with a dot at its root mean squared error; a panel a unit.

    `half_widths` are exact ones, by table, in the table's unit; where one is missing, the noise is taken as normal
    and the half-width is 1.96 root mean squared errors.
    """
    known = half_widths or {}
    rows: tuple[Mapping[str, Cell], ...] = tuple(
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
    costliest = sorted(rows, key=lambda row: -amount(row, "data_loss"))[:MOST_TABLES]
    by_unit = sorted(costliest, key=lambda row: str(row["unit"]))
    panels = [(unit, list(part)) for unit, part in groupby(by_unit, key=lambda row: str(row["unit"]))]

    def layout(width: int) -> Mark:
        height = 58 if width >= ROOMY else 78
        if len(panels) == 1:
            [(unit, part)] = panels
            return layered(*_panel(part, unit, width=width), height=height * len(part))
        return {
            "vconcat": [
                layered(*_panel(part, unit, width=width), width=width - 40, height=height * len(part))
                for unit, part in panels
            ]
        }

    first = costliest[0]
    typical, consequence = amount(first, "root_mean_squared_error"), first["root_mean_squared_consequence"]
    error = money(typical) if first["unit"] == "USD" else f"{number(typical)} {first['unit']}"
    worth = f", worth {money(consequence)}" if isinstance(consequence, float) else ""
    which = "A published number" if len(rows) == 1 else f"A number in '{first['table']}'"
    subtitle = "Dot: root mean squared error; bar: what 95 in 100 published numbers stay within"
    if not all(row["exact"] for row in rows):
        subtitle += " (noise taken as normal where no exact law is known)"
    return Figure(
        "consequences",
        title=f"{which} is typically off by {error}{worth}",
        subtitle=subtitle,
        sentence="What a reader of the tables may expect: by how much a published number is off, typically and at most "
        "in 95 of 100 cases, and what an error comes to in dollars.",
        table=FigureTable(
            caption=f"Errors of the published numbers at {stated_loss(choice.loss)}",
            columns=(
                Column("table", "table", "text"),
                Column("query_count", "published numbers", "exact"),
                Column("unit", "counted in", "text"),
                Column("root_mean_squared_error", "typical error (RMSE)"),
                Column("half_width", "95 % within ±"),
                Column("root_mean_squared_consequence", "typical consequence of one error", "money"),
                Column("data_loss", "cost of all errors to society", "money"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


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
        numbers = f"RMSE {number(typical[i])} · 95 % within ±{number(amount(row, 'half_width'))}"
        if isinstance(row["root_mean_squared_consequence"], float):
            numbers += f" · {money(row['root_mean_squared_consequence'], short=True)}"
        space = width - 40 - (LETTER * len(numbers) + 20 if roomy else 0)
        name = textwrap.shorten(str(row["table"]), max(10, int(space / LETTER)), placeholder="…")
        marks.append(plane.words(low, i + 0.3, name, shift=(0, -4)))
        if roomy:
            edge = plane.across.high
            marks.append(plane.words(edge, i + 0.3, numbers, color=LIGHT.quiet, align="right", shift=(0, -4)))
        else:
            marks.append(plane.words(low, i + 0.68, numbers, color=LIGHT.quiet, shift=(0, 4)))
    return marks


def existing(before: Sequence[ExistingError]) -> Figure:
    """One line a table: the error of noise as a share of the error that was there before, on a logarithmic axis."""
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {"table": row.table, "unit": plural(row.unit), "before": row.before, "noise": row.noise, "added": row.added}
        for row in before
    )
    drawn = sorted(rows, key=lambda row: -amount(row, "added"))[:MOST_ROWS]

    def layout(width: int) -> Mark:
        shares = [amount(row, "noise") / amount(row, "before") for row in drawn]
        plane = Plane(
            Ruler("error of noise, times the error before", min([*shares, 1]) / 1.8, max([*shares, 1]) * 1.8, log=True),
            Ruler("", float(len(drawn)), 0.0, hidden=True),
        )
        marks: list[Mark] = [plane.vertical(1.0, color=LIGHT.limit, dash=(2, 4))]
        for i, (row, share) in enumerate(zip(drawn, shares, strict=True)):
            words = f": {number(amount(row, 'noise'))} beside {number(amount(row, 'before'))} {row['unit']}"
            shown, spot = words if width >= ROOMY else "", [{"x": share, "y": i + 0.76}]
            name = shortened(str(row["table"]), width, shown)
            marks += [
                plane.points(spot, "x", "y", color=LIGHT.production, name=f"n-{i}", filled=True),
                plane.words(plane.across.low, i + 0.5, f"{name}{shown}", shift=(0, -4)),
            ]
        return layered(*marks, height=ROW_HEIGHT * len(drawn))

    return Figure(
        "existing",
        title=f"Noise widens the errors that were there by at most {percent(amount(drawn[0], 'added'))}",
        subtitle="Typical error of noise divided by the typical error before noise; dotted: as large as before",
        sentence="How large the errors of noise are beside those that the numbers had before, table by table.",
        table=FigureTable(
            caption="Typical errors (RMSE) of one number: those that were there before, and those of noise",
            columns=(
                Column("table", "table", "text"),
                Column("unit", "unit", "text"),
                Column("before", "before noise"),
                Column("noise", "of noise"),
                Column("added", "wider by", "percent"),
            ),
            rows=rows,
        ),
        layout=layout,
    )
