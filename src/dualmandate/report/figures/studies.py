"""A study that pays its participants: what it costs at each size, and which sizes a budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import money, number, plain_number
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.plane import Align, Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice.markets import CompensatedStudy

POINTS = 90


def study_twin(study: CompensatedStudy, population: int, budget: float) -> Twin:
    """Rows behind the picture: the cheapest study of each size, and whether the budget pays for it."""
    cheapest = study.cheapest(population)
    sizes = {round(n) for n in np.geomspace(study.least_participants, population, POINTS)} | {cheapest.participants}
    rows: list[dict[str, Cell]] = []
    for size in sorted(sizes):
        design = study.with_participants(size)
        rows.append(
            {
                "participants": float(size),
                "loss": design.epsilon,
                "payment": design.payment,
                "cost": design.cost,
                "paid": design.cost <= budget,
                "marked": size == cheapest.participants,
            }
        )
    return Twin(
        caption=f"Studies of each size that are accurate enough, and what they cost; the budget is {money(budget)}",
        columns=(
            Column("participants", "participants", "count"),
            Column("loss", "ε"),
            Column("payment", "paid to each", "money"),
            Column("cost", "cost", "money"),
            Column("paid", "within the budget", "text"),
        ),
        rows=tuple(rows),
    )


def study_picture(study: CompensatedStudy, population: int, budget: float, *, width: int = WIDE) -> alt.LayerChart:
    """The cost of a study against its size; the part that the budget pays for is thick."""
    twin, roomy = study_twin(study, population, budget), width >= ROOMY
    rows = twin.rows
    here = next(row for row in rows if row["marked"])
    most = min(max(amount(row, "cost") for row in rows), 12 * max(budget, amount(here, "cost")))
    plane = Plane(
        Ruler(
            "participants", amount(rows[0], "participants") / 1.05, amount(rows[-1], "participants") * 1.05, log=True
        ),
        Ruler("↑ cost of the study", 0.6 * min(amount(here, "cost"), budget), most, log=True, labels=MONEY_AXIS),
    )
    paid = [row for row in rows if row["paid"]]
    marks: list[Mark] = [
        plane.curve(rows, "participants", "cost", color=LIGHT.quiet, dash=(6, 4)),
        plane.horizontal(budget, color=LIGHT.limit),
        plane.words(
            plane.across.high, budget, f"budget {money(budget)}", color=LIGHT.limit, align="right", shift=(-4, -4)
        ),
    ]
    if paid:
        marks.append(plane.curve(paid, "participants", "cost", color=LIGHT.production, thick=4))
    marks += [
        plane.points([here], "participants", "cost", color=LIGHT.ink, name="cheapest"),
        plane.words(
            amount(here, "participants"),
            amount(here, "cost"),
            f"cheapest: ε = {number(amount(here, 'loss'))}\n{money(amount(here, 'payment'))} to each",
            align=_side(plane.across.share(amount(here, "participants"))),
            shift=(0, 14),
        ),
    ]
    allowed = study.feasible(budget, population)
    feasible = (
        f"{money(budget)} pays for {allowed[0].participants:,} to {allowed[1].participants:,} participants"
        if allowed
        else f"{money(budget)} pays for no study that is accurate enough"
    )
    return dress(
        layered(*marks),
        title=feasible,
        subtitle=f"Cost of a study that misses an error of {plain_number(study.target_error)} with probability "
        f"of at most {plain_number(study.failure_probability)}; both axes logarithmic",
        width=width,
        height=320 if roomy else 270,
    )


def _side(share: float) -> Align:
    """Which way a label goes that must not leave the picture."""
    return "left" if share < 0.2 else "right" if share > 0.8 else "center"
