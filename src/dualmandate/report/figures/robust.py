"""The choice that needs no probabilities: regret under the extreme preferences, and where the worst of it is least."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import loss_symbol, money, percent, rounded_number
from dualmandate.report.figures.axis_formats import MONEY_AXIS, PERCENT_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import LINE_HEIGHT, Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, SERIES, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Corner, RobustChoice

MOST_CURVES = 4  # corners drawn, the worst; the twin holds their largest regret
HEIGHT = 2.2  # times the worst regret of the choice
LONG = 8.0  # ratio of losses from which on the axis is logarithmic
LETTER = 6.4  # px, mean width of a letter in a label


def robust_twin(choice: RobustChoice) -> Twin:
    """Rows behind the picture: regret of each loss under the extreme preferences, and the worst of them."""
    letter, kind = loss_symbol(choice.currency), "percent" if choice.relative else "money"
    places = [corner.epsilon for corner in choice.corners]
    lowest, highest = min([*places, choice.epsilon]), max([*places, choice.epsilon])
    margin = max((highest / lowest) ** 0.25, 1.0005)
    ends = lowest / margin, highest * margin
    low, high = np.exp(choice.landscape.grid.points[[0, -1]]).tolist()
    grid = log_grid(max(ends[0], low), min(ends[1], high), through=(choice.epsilon,), points=121)
    regrets = choice.regrets(np.array(grid))
    drawn = _drawn(choice)
    rows: list[dict[str, Cell]] = []
    for loss, row in zip(grid, regrets, strict=True):
        cells: dict[str, Cell] = {"loss": loss, "worst": float(row.max()), "marked": loss == choice.epsilon}
        rows.append(cells | {f"corner{j}": float(row[i]) for j, i in enumerate(drawn)})
    return Twin(
        caption=f"Regret of each {letter} under the extreme preferences of the set",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("worst", "worst regret", kind),
            *(Column(f"corner{j}", f"regret {_named(choice.corners[i])}", kind) for j, i in enumerate(drawn)),
        ),
        rows=tuple(rows),
    )


def robust(choice: RobustChoice, *, width: int = WIDE) -> alt.LayerChart:
    """Regret under each extreme preference, the worst of them in bold, and the loss at which it is least."""
    twin, letter, roomy = robust_twin(choice), loss_symbol(choice.currency), width >= ROOMY
    top, drawn = choice.regret * HEIGHT or 1.0, _drawn(choice)
    kind = PERCENT_AXIS if choice.relative else MONEY_AXIS
    share = ", share of the least cost" if choice.relative else ", USD"
    losses = [amount(row, "loss") for row in twin.rows]
    letters = int((width - 90) / LETTER)
    keys = [
        textwrap.wrap(f"{_named(choice.corners[i])}: {rounded_number(choice.corners[i].epsilon)}", letters)
        for i in drawn
    ]
    lines = sum(map(len, keys)) + 1
    height = (280 if roomy else 230) + LINE_HEIGHT * lines
    band = top / (1 - LINE_HEIGHT * lines / height)  # above the curves, for what each of them is
    plane = Plane(
        Ruler(f"privacy loss {letter}", losses[0], losses[-1], log=losses[-1] / losses[0] > LONG),
        Ruler(f"↑ regret{share}", 0.0, band, labels=kind),
    )
    here = next(row for row in twin.rows if row["marked"])
    size = percent(choice.regret) if choice.relative else money(choice.regret)
    marks: list[Mark] = []
    level = band
    for j, i in enumerate(drawn):
        color = SERIES[j % len(SERIES)]
        marks += [
            plane.curve(piece, "loss", f"corner{j}", color=color, dash=(6, 4), thick=2)
            for piece in _pieces(twin.rows, f"corner{j}", top)
        ]
        best = {"x": choice.corners[i].epsilon, "y": 0.0}
        marks.append(plane.points([best], "x", "y", color=color, name=f"corner{j}", filled=True))
        marks.append(plane.words(plane.across.low, level, "\n".join(keys[j]), color=color, shift=(4, 5)))
        level -= band * LINE_HEIGHT * len(keys[j]) / height
    solid = _pieces(twin.rows, "worst", top)
    marks += [
        *(plane.curve(piece, "loss", "worst", color=LIGHT.ink, thick=3) for piece in solid),
        plane.points([here], "loss", "worst", color=LIGHT.ink, name="optimum"),
        plane.words(
            choice.epsilon, choice.regret, f"{letter} = {float(choice.loss):.5g}", align="center", shift=(0, 14)
        ),
    ]
    return dress(
        layered(*marks),
        title=f"Whatever the preferences, {letter} = {float(choice.loss):.5g} costs at most {size} more than the best",
        subtitle=f"Regret of each loss under the extreme preferences (dashed; after the colon, their best {letter}) "
        "and the worst of them (solid)",
        width=width,
        height=height,
    )


def _pieces(rows: Sequence[Mapping[str, Cell]], key: str, top: float) -> list[list[Mapping[str, Cell]]]:
    """The stretches of a curve that stay below a height."""
    pieces: list[list[Mapping[str, Cell]]] = [[]]
    for row in rows:
        if amount(row, key) <= top:
            pieces[-1].append(row)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _drawn(choice: RobustChoice) -> list[int]:
    """The corners with the largest regrets at the choice, from the lowest best loss to the highest."""
    ranked = sorted(range(len(choice.corners)), key=lambda i: -choice.corners[i].regret)[:MOST_CURVES]
    return sorted(ranked, key=lambda i: choice.corners[i].epsilon)


def _named(corner: Corner) -> str:
    """An extreme preference in a few words."""
    if not corner.values:
        return "in one scenario"
    parts = [f"{name.replace('_', ' ')} {rounded_number(value)}" for name, value in corner.values.items()]
    return f"at {', '.join(parts)}"
