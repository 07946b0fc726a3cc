"""How far the choice moves with each number it rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, number, plain_unit, rounded_number, stated_loss
from dualmandate.report.figures.plane import Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice
    from dualmandate.choice.statics import TornadoRow

MOST_ROWS = 12  # the widest are drawn; the twin holds all
ROW_HEIGHT = 46  # px
LETTER = 6.4  # px, mean width of a letter in a label
STILL = 1e-9  # relative change of the choice that is no change
LONG_RANGE = 20.0  # ratio of losses from which on the axis is logarithmic


def tornado_twin(rows: Sequence[TornadoRow], choice: Choice) -> Twin:
    """Rows behind the picture: each input, the two ends of its range and the choice at each; widest first.

    The choice at an end is empty where there is none; `note` then says why.
    """
    letter = loss_symbol(choice.currency)
    cells: list[dict[str, Cell]] = [
        {
            "input": row.name.replace("_", " "),
            "value": row.value,
            "unit": plain_unit(row.unit),
            "low_value": row.low.value,
            "low_loss": row.low.epsilon,
            "high_value": row.high.value,
            "high_loss": row.high.epsilon,
            "note": row.low.refusal or row.high.refusal,
        }
        for row in rows
    ]
    return Twin(
        caption=f"The chosen {letter} with one input at a time at either end of its range",
        columns=(
            Column("input", "input", "text"),
            Column("value", "stated", "stated"),
            Column("unit", "unit", "text"),
            Column("low_value", "low end", "rounded"),
            Column("low_loss", f"{letter} there", "loss"),
            Column("high_value", "high end", "rounded"),
            Column("high_loss", f"{letter} there", "loss"),
            Column("note", "no choice, because", "text"),
        ),
        rows=tuple(cells),
    )


def tornado(rows: Sequence[TornadoRow], choice: Choice, *, width: int = WIDE) -> alt.LayerChart:
    """One bar an input, from the choice at the low end of its range to the choice at the high end, widest on top."""
    twin, letter = tornado_twin(rows, choice), loss_symbol(choice.currency)
    drawn = [row for row in twin.rows if _moves(row, choice.epsilon)][:MOST_ROWS] or list(twin.rows[:1])
    losses = [amount(row, key) for row in drawn for key in ("low_loss", "high_loss") if row[key] is not None]
    low, high = min([*losses, choice.epsilon]), max([*losses, choice.epsilon])
    log = high / low > LONG_RANGE
    margin = 1.25 if log else 0.12 * (high - low or choice.epsilon)
    across = (low / margin, high * margin) if log else (low - margin, high + margin)
    plane = Plane(Ruler(f"chosen {letter}", *across, log=log), Ruler("", float(len(drawn)), 0.0, hidden=True))
    bars = {
        end: [
            {"from": choice.epsilon, "to": amount(row, f"{end}_loss"), "y": i + 0.72, "input": row["input"]}
            for i, row in enumerate(drawn)
            if row[f"{end}_loss"] is not None
        ]
        for end in ("low", "high")
    }
    picture = layered(
        plane.bars(bars["low"], color=LIGHT.production),
        plane.bars(bars["high"], color=LIGHT.preference),
        plane.vertical(choice.epsilon, color=LIGHT.ink),
        *(_label(plane, row, i, width=width) for i, row in enumerate(drawn)),
    )
    return dress(
        picture,
        width=width,
        height=ROW_HEIGHT * len(drawn),
        title=f"With any one input elsewhere in its range, {letter} stays between {number(low)} and {number(high)}",
        subtitle=f"Chosen {letter} with one input at the low end (blue) or the high end (orange) of its range; "
        f"line: {stated_loss(choice.loss)}",
    )


def _moves(row: Mapping[str, Cell], loss: float) -> bool:
    """Whether either end of the range leads to another choice, or to none."""
    ends = [row[key] for key in ("low_loss", "high_loss")]
    return any(end is not None for end in ends) and any(
        end is None or abs(float(end) / loss - 1) > STILL for end in ends
    )


def _label(plane: Plane, row: Mapping[str, Cell], place: int, *, width: int) -> alt.LayerChart:
    """The input and its range, above its bar."""
    span = f"{rounded_number(amount(row, 'low_value'))} to {rounded_number(amount(row, 'high_value'))}"
    if width >= ROOMY and row["unit"] != "pure number":
        span += f" {row['unit']}"
    letters = int((width - 40) / LETTER)
    name = textwrap.shorten(str(row["input"]), max(12, letters - len(span) - 2), placeholder="…")
    return plane.words(plane.across.low, place + 0.42, f"{name}: {span}", shift=(0, -4))
