"""How the choice moves: with other weights on privacy and accuracy, and with each number it rests on.

Welfare is −η·P(ε) − m·D(ε), P the privacy cost and D the data loss as stated, η and m what the weight on privacy and
the value of accuracy are multiplied by. The best ε depends on η/m alone. Both run over the same even steps of a
logarithm, so their ratio takes 2·41 − 1 values, and 81 choices fill the grid of 41 × 41 exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from dualmandate.choice import choose
from dualmandate.errors import Refusal
from dualmandate.population.units import plural
from dualmandate.population.wording import loss_symbol, number, plain_unit, stated_loss
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.plane import (
    MONEY_AXIS,
    NUMBER_AXIS,
    Mark,
    Plane,
    Ruler,
    layered,
    log_grid,
    shortened,
)
from dualmandate.report.tables import Cell, Column, FigureTable, amount
from dualmandate.report.theme import LIGHT, ROOMY

if TYPE_CHECKING:
    from dualmandate.choice import Choice, Limits, SocialWelfare
    from dualmandate.choice.statics import TornadoRow
    from dualmandate.frontier import Frontier

STEPS = 41  # along each slider; odd, so that the middle is what was stated
DECADES = 2  # from a hundredth of what was stated to a hundred times it
MOST_ROWS = 12  # of the tornado: the widest are drawn; the table holds all
ROW_HEIGHT = 46  # px
STILL = 1e-9  # relative change of the choice that is no change
LONG_RANGE = 20.0  # ratio of losses from which on the axis is logarithmic


@dataclass(frozen=True)
class WhatIf:
    """Choices under other weights. `choices[i − j + steps − 1]` belongs to step i of privacy and step j of accuracy."""

    multiples: tuple[float, ...]  # of the weight on privacy, and of the value of accuracy
    choices: tuple[Choice | Refusal, ...]  # by rising ratio of the two; a refusal where there is no optimum

    def at(self, privacy: int, accuracy: int) -> Choice | Refusal:
        """The choice at one step of each slider, counted from 0."""
        return self.choices[privacy - accuracy + len(self.multiples) - 1]

    def cost(self, privacy: int, accuracy: int) -> float | None:
        """What society loses there, USD, the two parts weighed as the sliders say; None where there is no choice."""
        choice = self.at(privacy, accuracy)
        if isinstance(choice, Refusal):
            return None
        # Its privacy cost is already multiplied by the ratio of the two weights.
        return self.multiples[accuracy] * (choice.privacy_cost + choice.data_loss)


def what_if_choices(
    frontier: Frontier, welfare: SocialWelfare, limits: Limits | None = None, *, steps: int = STEPS
) -> WhatIf:
    """Every choice of the grid, by `choose`."""
    middle = steps // 2
    multiples = tuple(10 ** (DECADES * (i - middle) / middle) for i in range(steps))
    choices: list[Choice | Refusal] = []
    for k in range(2 * steps - 1):
        ratio = 10 ** (DECADES * (k - (steps - 1)) / middle)
        groups = tuple(replace(g, relative_privacy_weight=g.relative_privacy_weight * ratio) for g in welfare.groups)
        try:
            choices.append(choose(frontier, replace(welfare, groups=groups), limits))
        except Refusal as refusal:
            choices.append(refusal)
    return WhatIf(multiples, tuple(choices))


def what_if(frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, grid: WhatIf) -> Figure:
    """Typical error against privacy loss, a dot for every choice of the grid, an open circle at the one in force.

    The table has the choice at each ratio of weights, from accuracy first to privacy first. The marks named `places`
    and `here` are what a page moves: the circle goes to the place of the choice looked up.
    """
    letter, count, in_money = (
        loss_symbol(choice.privacy_measure),
        len(grid.choices),
        choice.root_mean_squared_error is None,
    )
    rows: list[dict[str, Cell]] = []
    for k, made in enumerate(grid.choices):
        ratio = 10 ** (DECADES * (k - count // 2) / (len(grid.multiples) // 2))
        row: dict[str, Cell] = {"ratio": ratio, "marked": k == count // 2, "place": k}
        if isinstance(made, Refusal):
            row |= {"loss": None, "error": None, "consequence": None, "bound_by": f"no choice: {made.what}"}
        else:
            # Typical error in the tables' unit, or the cost of errors where units differ.
            error = made.data_loss if made.root_mean_squared_error is None else made.root_mean_squared_error
            consequence = made.root_mean_squared_consequence
            row |= {"loss": made.epsilon, "error": error, "consequence": consequence, "bound_by": made.bound_by}
        rows.append(row)

    def error_at(loss: float) -> float:
        if in_money:
            return welfare.data_loss(frontier, loss)
        errors = frontier.table_errors(loss)
        squares = [errors[value.table] * value.grid**2 for value in welfare.table_values]
        numbers = sum(frontier.query_counts[value.table] for value in welfare.table_values)
        return math.sqrt(math.fsum(squares) / numbers)

    def layout(width: int) -> Mark:
        made = [row for row in rows if row["loss"] is not None]
        here = next(row for row in rows if row["marked"])
        low, high = min(amount(row, "loss") for row in made) / 1.3, max(amount(row, "loss") for row in made) * 1.3
        curve = [{"loss": loss, "error": error_at(loss)} for loss in log_grid(low, high)]
        plane = Plane(
            Ruler(f"privacy loss {letter}", low, high, log=True),
            Ruler(
                "↑ cost of errors, USD" if in_money else f"↑ typical error (RMSE), {plural(choice.tables[0].unit)}",
                curve[-1]["error"],
                curve[0]["error"],
                log=True,
                labels=MONEY_AXIS if in_money else NUMBER_AXIS,
            ),
        )
        return layered(
            plane.curve(curve, "loss", "error", color=LIGHT.production, thick=1.8),
            plane.dots(made, "loss", "error", color=LIGHT.production, name="places"),
            plane.points([here], "loss", "error", color=LIGHT.ink, name="here"),
            height=300 if width >= ROOMY else 260,
        )

    return Figure(
        "what-if",
        title=f"The heavier privacy weighs, the smaller {letter} and the larger the errors",
        subtitle=f"Dots: choices under other weights; circle: {stated_loss(choice.loss)}; both axes logarithmic",
        sentence="The weight on privacy and the value of accuracy are judgments. What would be chosen if they were "
        "others was worked out beforehand; the sliders look it up.",
        table=FigureTable(
            caption=f"The chosen {letter} if privacy weighed more or less against accuracy",
            columns=(
                Column("ratio", "privacy weighs … times as much as stated"),
                Column("loss", f"chosen {letter}", "loss"),
                Column("error", "cost of errors", "money") if in_money else Column("error", "typical error (RMSE)"),
                Column("consequence", "typical consequence of one error", "money"),
                Column("bound_by", "decided by", "text"),
            ),
            rows=tuple(rows),
        ),
        layout=layout,
    )


def tornado(inputs: Sequence[TornadoRow], choice: Choice) -> Figure:
    """One bar an input, from the choice at the low end of its range to the choice at the high end, widest on top.

    The choice at an end is empty where there is none; `note` then says why.
    """
    letter, best = loss_symbol(choice.privacy_measure), choice.epsilon
    rows: tuple[Mapping[str, Cell], ...] = tuple(
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
        for row in inputs
    )
    drawn = [row for row in rows if _moves(row, best)][:MOST_ROWS] or list(rows[:1])
    losses = [amount(row, key) for row in drawn for key in ("low_loss", "high_loss") if row[key] is not None]
    low, high = min([*losses, best]), max([*losses, best])

    def layout(width: int) -> Mark:
        log = high / low > LONG_RANGE
        margin = 1.25 if log else 0.12 * (high - low or best)
        across = (low / margin, high * margin) if log else (low - margin, high + margin)
        plane = Plane(Ruler(f"chosen {letter}", *across, log=log), Ruler("", float(len(drawn)), 0.0, hidden=True))
        bars = {
            end: [
                {"from": best, "to": amount(row, f"{end}_loss"), "y": i + 0.72, "input": row["input"]}
                for i, row in enumerate(drawn)
                if row[f"{end}_loss"] is not None
            ]
            for end in ("low", "high")
        }
        marks = [
            plane.bars(bars["low"], color=LIGHT.production),
            plane.bars(bars["high"], color=LIGHT.preference),
            plane.vertical(best, color=LIGHT.ink),
        ]
        for i, row in enumerate(drawn):  # the input and its range, above its bar
            span = f": {number(amount(row, 'low_value'))} to {number(amount(row, 'high_value'))}"
            if width >= ROOMY and row["unit"] != "pure number":
                span += f" {row['unit']}"
            name = shortened(str(row["input"]), width, span)
            marks.append(plane.words(plane.across.low, i + 0.42, f"{name}{span}", shift=(0, -4)))
        return layered(*marks, height=ROW_HEIGHT * len(drawn))

    return Figure(
        "tornado",
        title=f"With any one input elsewhere in its range, {letter} stays between {number(low)} and {number(high)}",
        subtitle=f"Chosen {letter} with one input at the low end (blue) or the high end (orange) of its range; "
        f"line: {stated_loss(choice.loss)}",
        sentence="Each bar shows where the choice would fall if one number were different and all others as stated.",
        table=FigureTable(
            caption=f"The chosen {letter} with one input at a time at either end of its range",
            columns=(
                Column("input", "input", "text"),
                Column("value", "stated", "exact"),
                Column("unit", "unit", "text"),
                Column("low_value", "low end"),
                Column("low_loss", f"{letter} there", "loss"),
                Column("high_value", "high end"),
                Column("high_loss", f"{letter} there", "loss"),
                Column("note", "no choice, because", "text"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


def _moves(row: Mapping[str, Cell], loss: float) -> bool:
    """Whether either end of the range leads to another choice, or to none."""
    ends = [row[key] for key in ("low_loss", "high_loss")]
    return any(end is not None for end in ends) and any(
        end is None or abs(float(end) / loss - 1) > STILL for end in ends
    )
