"""Response behavior: errors fall with privacy loss until too many people no longer take part."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, number, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Align, Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualmandate.choice import Choice

REACH = 12.0  # from a twelfth of the peak to twelve times it


def participation_twin(
    noise: Callable[[float], float], responding: Callable[[float], float], choice: Choice, *, peak: float
) -> Twin:
    """Rows behind the picture: what errors cost at each loss if all took part, and with those who do, USD.

    `noise` and `responding` are costs of errors; `responding` must go on beyond the peak as it really would.
    """
    letter, rows = loss_symbol(choice.currency), []
    for loss in log_grid(peak / REACH, peak * REACH, through=(choice.epsilon, peak)):
        costs = noise(loss), responding(loss)
        if all(math.isfinite(cost) and cost > 0 for cost in costs):
            row: dict[str, Cell] = {"loss": loss, "noise": costs[0], "cost": costs[1]}
            rows.append(row | {"marked": loss in (choice.epsilon, peak)})
    return Twin(
        caption=f"Cost of errors at each {letter}, if all took part and with those who do",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("noise", "if all took part, USD", "money"),
            Column("cost", "with those who do, USD", "money"),
        ),
        rows=tuple(rows),
    )


def participation_picture(
    noise: Callable[[float], float],
    responding: Callable[[float], float],
    choice: Choice,
    *,
    peak: float,
    width: int = WIDE,
) -> alt.LayerChart:
    """Cost of errors against privacy loss, down to a trough at the peak of accuracy; what lies beyond is closed."""
    twin, letter, roomy = (
        participation_twin(noise, responding, choice, peak=peak),
        loss_symbol(choice.currency),
        width >= ROOMY,
    )
    low, high = amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss")
    trough, between = responding(peak), math.sqrt(low * peak)
    plane = Plane(
        Ruler(f"privacy loss {letter}", low, high, log=True),
        Ruler("↑ cost of errors, USD", trough / 30, trough * 60, log=True, labels=MONEY_AXIS),
    )
    here = {"x": choice.epsilon, "y": responding(choice.epsilon)}
    marks: list[Mark] = [
        plane.closed(peak, high),
        plane.curve(twin.rows, "loss", "noise", color=LIGHT.quiet, dash=(6, 4)),
        plane.curve(twin.rows, "loss", "cost", color=LIGHT.production),
        plane.vertical(peak, color=LIGHT.limit, dash=(2, 4)),
        plane.points([here], "x", "y", color=LIGHT.ink, name="optimum"),
    ]
    if roomy:
        marks += [
            plane.words(peak, plane.up.high, f"peak of accuracy, {number(peak)}", color=LIGHT.limit, shift=(6, 6)),
            plane.words(between, noise(between), "if all took part", color=LIGHT.quiet, align="right", shift=(-8, 10)),
            plane.words(
                high, trough / 3, "dominated: no plan stops here", color=LIGHT.quiet, align="right", shift=(-6, 0)
            ),
        ]
    else:
        marks.append(plane.words(peak, plane.up.high, f"peak {number(peak)}", color=LIGHT.limit, shift=(6, 6)))
    place = (-10, 14) if roomy else (0, -16)
    side: Align = "right" if roomy else "center"
    marks.append(plane.words(here["x"], here["y"], stated_loss(choice.loss), align=side, shift=place))
    return dress(
        layered(*marks),
        title=f"Beyond {letter} = {number(peak)} losing respondents costs more accuracy than less noise brings",
        subtitle="Cost of errors with those who take part (blue) and if all did (dashed); both axes logarithmic",
        width=width,
        height=330 if roomy else 270,
    )
