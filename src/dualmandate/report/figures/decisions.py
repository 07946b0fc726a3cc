"""Accuracy through a decision: how far money is misallocated at each privacy loss, by formula."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, number
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered, spread
from dualmandate.report.figures.theme import ROOMY, SERIES, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.frontier import Frontier


def decisions_twin(frontiers: Mapping[str, Frontier], low: float, high: float) -> Twin:
    """Rows behind the picture: root mean squared misallocation of one recipient under each frontier, USD."""
    first = next(iter(frontiers.values()))
    letter, rows = loss_symbol(first.currency), []
    for loss in log_grid(low, high):
        row: dict[str, Cell] = {"loss": loss}
        for i, frontier in enumerate(frontiers.values()):
            row[f"error_{i}"] = math.sqrt(frontier.expected_squared_error(loss) / sum(frontier.query_counts.values()))
        rows.append(row)
    return Twin(
        caption=f"Typical misallocation of one recipient at each {letter}, USD",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            *(Column(f"error_{i}", f"{name}, USD", "money") for i, name in enumerate(frontiers)),
        ),
        rows=tuple(rows),
    )


def decisions_picture(
    frontiers: Mapping[str, Frontier], low: float, high: float, *, width: int = WIDE
) -> alt.LayerChart:
    """Typical misallocation against privacy loss, one line a frontier by name, all in USD."""
    twin, roomy = decisions_twin(frontiers, low, high), width >= ROOMY
    letter = loss_symbol(next(iter(frontiers.values())).currency)
    height, room = (330, 150) if roomy else (280, 110)
    keys = [f"error_{i}" for i in range(len(frontiers))]
    errors = [amount(row, key) for row in twin.rows for key in keys]
    plane = Plane(
        Ruler(f"privacy loss {letter}", low, high * (high / low) ** (room / (width - 60 - room)), log=True),
        Ruler("↑ typical misallocation, USD", min(errors) / 1.3, max(errors) * 1.1, log=True, labels=MONEY_AXIS),
    )
    ends = [amount(twin.rows[-1], key) for key in keys]
    places = spread(ends, plane.up, height=height, gap=34 if roomy else 52)
    marks: list[Mark] = []
    for i, (name, key) in enumerate(zip(frontiers, keys, strict=True)):
        color = SERIES[i % len(SERIES)]
        words = "\n".join(_broken(name, 18 if roomy else 13))
        marks += [
            plane.curve(twin.rows, "loss", key, color=color),
            plane.words(high, places[i], words, color=color, shift=(8, 0)),
        ]
    worst = max(range(len(ends)), key=lambda i: ends[i])
    return dress(
        layered(*marks),
        title=f"At {letter} = {number(high)} a typical recipient is off by {money(min(ends))} to {money(ends[worst])}",
        subtitle="Root mean squared misallocation of one recipient, decided with noisy counts; both axes logarithmic",
        width=width,
        height=height,
    )


def _broken(name: str, letters: int) -> list[str]:
    return textwrap.wrap(name, letters) or [name]
