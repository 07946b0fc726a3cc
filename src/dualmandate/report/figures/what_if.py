"""What would be chosen if society weighed privacy and accuracy otherwise: a grid of choices, made beforehand.

Welfare is −η·P(ε) − m·D(ε), P the privacy cost and D the data loss as stated, η and m what the weight on privacy and
the value of accuracy are multiplied by. The best ε depends on η/m alone. Both run over the same even steps of a
logarithm, so their ratio takes 2·41 − 1 values, and 81 choices fill the grid of 41 × 41 exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.choice.optimum import choose
from dualmandate.errors import Refusal
from dualmandate.population.units import plural
from dualmandate.population.wording import loss_symbol, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS, NUMBER_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice, Limits, SocialWelfare
    from dualmandate.frontier import Frontier

STEPS = 41  # along each slider; odd, so that the middle is what was stated
DECADES = 2  # from a hundredth of what was stated to a hundred times it


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


def what_if_twin(grid: WhatIf, choice: Choice) -> Twin:
    """Rows behind the picture: the choice at each ratio of weights, from accuracy first to privacy first."""
    letter, count = loss_symbol(choice.currency), len(grid.choices)
    rows: list[dict[str, Cell]] = []
    for k, made in enumerate(grid.choices):
        ratio = 10 ** (DECADES * (k - count // 2) / (len(grid.multiples) // 2))
        row: dict[str, Cell] = {"ratio": ratio, "marked": k == count // 2, "place": k}
        if isinstance(made, Refusal):
            row |= {"loss": None, "error": None, "consequence": None, "bound_by": f"no choice: {made.what}"}
        else:
            row |= {
                "loss": made.epsilon,
                "error": _error(made),
                "consequence": made.root_mean_squared_consequence,
                "bound_by": made.bound_by,
            }
        rows.append(row)
    in_money = choice.root_mean_squared_error is None
    return Twin(
        caption=f"The chosen {letter} if privacy weighed more or less against accuracy",
        columns=(
            Column("ratio", "privacy weighs … times as much as stated", "rounded"),
            Column("loss", f"chosen {letter}", "loss"),
            Column(
                "error", "cost of errors" if in_money else "typical error (RMSE)", "money" if in_money else "number"
            ),
            Column("consequence", "typical consequence of one error", "money"),
            Column("bound_by", "decided by", "text"),
        ),
        rows=tuple(rows),
    )


def what_if(
    frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, grid: WhatIf, width: int = WIDE
) -> alt.LayerChart:
    """Typical error against privacy loss, a dot for every choice of the grid, an open circle at the one in force.

    The marks named `places` and `here` are what a page moves: the circle goes to the place of the choice looked up.
    """
    twin, letter, roomy = what_if_twin(grid, choice), loss_symbol(choice.currency), width >= ROOMY
    made = [row for row in twin.rows if row["loss"] is not None]
    here = next(row for row in twin.rows if row["marked"])
    low, high = min(amount(row, "loss") for row in made) / 1.3, max(amount(row, "loss") for row in made) * 1.3
    curve = [{"loss": loss, "error": _error_at(frontier, welfare, choice, loss)} for loss in log_grid(low, high)]
    in_money = choice.root_mean_squared_error is None
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
    picture = layered(
        plane.curve(curve, "loss", "error", color=LIGHT.production, thick=1.8),
        plane.dots(made, "loss", "error", color=LIGHT.production, name="places"),
        plane.points([here], "loss", "error", color=LIGHT.ink, name="here"),
    )
    return dress(
        picture,
        width=width,
        height=300 if roomy else 260,
        title=f"The heavier privacy weighs, the smaller {letter} and the larger the errors",
        subtitle=f"Dots: choices under other weights; circle: {stated_loss(choice.loss)}; both axes logarithmic",
    )


def _error(choice: Choice) -> float:
    """The height of a choice: typical error in the tables' unit, or the cost of errors where units differ."""
    return choice.data_loss if choice.root_mean_squared_error is None else choice.root_mean_squared_error


def _error_at(frontier: Frontier, welfare: SocialWelfare, choice: Choice, loss: float) -> float:
    """The same at any loss on the frontier."""
    if choice.root_mean_squared_error is None:
        return welfare.data_loss(frontier, loss)
    errors = frontier.table_losses(loss)
    squares = [errors[value.table] * value.grid**2 for value in welfare.table_values]
    return math.sqrt(math.fsum(squares) / sum(frontier.query_counts[value.table] for value in welfare.table_values))
