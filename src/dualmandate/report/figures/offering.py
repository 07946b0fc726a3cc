"""Which tables earn their place: what each is worth beside what publishing it costs."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, number
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import TableSelection

ROW_HEIGHT = 46  # px
MOST_ROWS = 14
LONG_RANGE = 30.0  # ratio of amounts from which on the axis is logarithmic


def offering_twin(offering: TableSelection) -> Twin:
    """Rows behind the picture: each table's worth and price, and what it spends where it is published."""
    letter = loss_symbol(offering.currency)
    cells: list[dict[str, Cell]] = [
        {
            "table": verdict.name,
            "value": verdict.value,
            "price": verdict.price,
            "published": verdict.published,
            "loss": verdict.epsilon,
            "errors": verdict.errors,
            "marked": verdict.published,
        }
        for verdict in offering.verdicts
    ]
    return Twin(
        caption="What each table is worth and what publishing it costs; those worth their price are set off",
        columns=(
            Column("table", "table", "text"),
            Column("value", "worth when exact", "money"),
            Column("price", "price: privacy and errors", "money"),
            Column("published", "worth its price", "text"),
            Column("loss", letter, "loss"),
            Column("errors", "of it errors", "money"),
        ),
        rows=tuple(cells),
    )


def offering_picture(offering: TableSelection, *, width: int = WIDE) -> alt.LayerChart:
    """One line a table from its price to its worth: blue where it gains, orange where it would lose."""
    twin, letter = offering_twin(offering), loss_symbol(offering.currency)
    drawn = sorted(twin.rows, key=lambda row: amount(row, "price") - amount(row, "value"))[:MOST_ROWS]
    amounts = [amount(row, key) for row in drawn for key in ("value", "price")]
    low, high = min(amounts), max(amounts)
    log = low > 0 and high / low > LONG_RANGE
    edges = (low / 1.4, high * 1.4) if log else (0.0, 1.12 * high)
    plane = Plane(Ruler("USD", *edges, log=log, labels=MONEY_AXIS), Ruler("", float(len(drawn)), 0.0, hidden=True))
    letters = int((width - 40) / 6.4)
    marks: list[Mark] = []
    for i, row in enumerate(drawn):
        value, price, y = amount(row, "value"), amount(row, "price"), i + 0.72
        color = LIGHT.production if row["published"] else LIGHT.preference
        words = f": worth {money(value)}, price {money(price)}" if width >= ROOMY else ""
        name = textwrap.shorten(str(row["table"]), max(12, letters - len(words)), placeholder="…")
        marks += [
            plane.bars(
                [{"from": min(value, price), "to": max(value, price), "y": y}], color=color, opacity=0.4, thick=8
            ),
            plane.points([{"x": value, "y": y}], "x", "y", color=color, name=f"worth-{i}", filled=True),
            plane.points([{"x": price, "y": y}], "x", "y", color=color, name=f"price-{i}"),
            plane.words(plane.across.low, i + 0.3, f"{name}{words}", shift=(0, 2)),
        ]
    kept = sum(1 for row in twin.rows if row["published"])
    return dress(
        layered(*marks),
        title=f"{kept} of {len(twin.rows)} tables are worth their price; {letter} = {number(offering.epsilon)} in all",
        subtitle="Filled: what a table is worth when exact. Hollow: what publishing it costs in privacy and errors"
        + ("; logarithmic" if log else ""),
        width=width,
        height=ROW_HEIGHT * len(drawn),
    )
