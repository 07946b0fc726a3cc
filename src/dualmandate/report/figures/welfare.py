"""Welfare at every privacy loss, with every peak that was considered and the ends that limits set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, rounded_number, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice, SocialWelfare
    from dualmandate.frontier import Frontier

REACH = 8.0  # times the lowest and the highest candidate
DEPTH = 1.5  # the picture reaches down to this many times the cost at the choice below the lowest candidate,
DEEPEST = 5.0  # but no further than this many times the cost at the choice
END_NAMES = {
    "largest epsilon": "cap",
    "largest rho": "cap",
    "ledger": "account",
    "fitness for use": "fit for use",
    "participation": "peak of accuracy",
}


def welfare_twin(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Twin:
    """Rows behind the picture: welfare and its two parts at each privacy loss, USD, all ≤ 0; candidates are marked."""
    letter = loss_symbol(choice.currency)
    candidates = {point.epsilon: point.kind for point in choice.local_optima} | {choice.epsilon: "chosen"}
    ends = min(candidates) / REACH, max(candidates) * REACH
    rows: list[dict[str, Cell]] = [
        {
            "loss": loss,
            "welfare": welfare.at(frontier, loss),
            "privacy": -welfare.privacy_cost(loss),
            "errors": -welfare.data_loss(frontier, loss),
            "kind": candidates.get(loss),
            "marked": loss in candidates,
        }
        for loss in log_grid(*ends, through=tuple(candidates), points=121)
    ]
    return Twin(
        caption=f"Welfare at each {letter}, and what it is made of",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("welfare", "welfare", "money"),
            Column("privacy", "of this, lost privacy", "money"),
            Column("errors", "of this, errors", "money"),
            Column("kind", "considered as", "text"),
        ),
        rows=tuple(rows),
    )


def welfare_curve(frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, width: int = WIDE) -> alt.LayerChart:
    """Welfare with all its local optima and ends: dots for those considered, an open circle for the one chosen."""
    twin, letter, roomy = welfare_twin(frontier, welfare, choice), loss_symbol(choice.currency), width >= ROOMY
    here = next(row for row in twin.rows if row["kind"] == "chosen")
    candidates = [row for row in twin.rows if row["marked"]]
    bottom = min(amount(row, "welfare") for row in candidates) - DEPTH * abs(choice.welfare)
    bottom = max(bottom, DEEPEST * choice.welfare)
    others = [row for row in candidates if row is not here and amount(row, "welfare") > bottom]
    plane = Plane(
        Ruler(f"privacy loss {letter}", amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss"), log=True),
        Ruler("↑ welfare, USD", bottom, 0.0, labels=MONEY_AXIS),
    )
    first, last = twin.rows[0], twin.rows[-1]
    crowded = any(point.kind == "end" for point in choice.local_optima)
    picture = layered(
        *_ends(plane, choice),
        plane.curve(twin.rows, "loss", "errors", color=LIGHT.production, dash=(6, 4), thick=1.8),
        plane.curve(twin.rows, "loss", "privacy", color=LIGHT.preference, dash=(6, 4), thick=1.8),
        plane.curve(twin.rows, "loss", "welfare", color=LIGHT.ink),
        plane.words(
            amount(first, "loss"), amount(first, "privacy"), "lost privacy", color=LIGHT.preference, shift=(4, 10)
        ),
        plane.words(
            amount(last, "loss"),
            amount(last, "errors"),
            "errors",
            color=LIGHT.production,
            align="right",
            shift=(-4, 10),
        ),
        plane.points(others, "loss", "welfare", color=LIGHT.quiet, name="considered", filled=True),
        *(
            plane.words(
                amount(row, "loss"),
                amount(row, "welfare"),
                rounded_number(amount(row, "loss")),
                color=LIGHT.quiet,
                align="center",
                shift=(0, -10 if row["kind"] == "maximum" else 12),
            )
            for row in others
            if row["kind"] != "end"
        ),
        plane.points([here], "loss", "welfare", color=LIGHT.ink, name="optimum"),
        plane.words(
            amount(here, "loss"),
            amount(here, "welfare") if roomy else bottom,
            f"{stated_loss(choice.loss)}\n{money(choice.welfare)}",
            align="center",
            shift=(0, 16) if roomy else (0, -44 if crowded else -8),
        ),
    )
    return dress(
        picture,
        title=_finding(choice),
        width=width,
        height=340 if roomy else 280,
        subtitle="Welfare (solid) is what privacy loss and errors take away together, US dollars",
    )


def _finding(choice: Choice) -> str:
    """The chosen point against the others that were considered."""
    rivals = [p for p in choice.local_optima if p.kind != "minimum" and p.epsilon != choice.epsilon]
    loss = stated_loss(choice.loss)
    if choice.bound_by != "preferences":
        return f"Inside the limits, society loses least at their edge, {loss}"
    if not rivals:
        return f"Society loses least at {loss}"
    best = max(rivals, key=lambda point: point.welfare)
    rival = f"{loss_symbol(choice.currency)} = {best.epsilon:.5g}"
    return f"Society loses least at {loss}; the next best, {rival}, costs {money(choice.welfare - best.welfare)} more"


def _ends(plane: Plane, choice: Choice) -> list[Mark]:
    """Where limits close the range: the closed sides in shade, and above them each line with its name."""
    shades: list[Mark] = []
    marks: list[Mark] = []
    for point in choice.local_optima:
        if point.kind != "end":
            continue
        floor, name = point.bound_by == "fitness for use", END_NAMES[point.bound_by]
        at = rounded_number(point.epsilon)
        closed = (plane.across.low, point.epsilon) if floor else (point.epsilon, plane.across.high)
        shades.append(plane.closed(*closed))
        marks += [
            plane.vertical(point.epsilon, color=LIGHT.limit),
            plane.words(
                point.epsilon,
                plane.up.low,
                f"{name} from {at} →" if floor else f"← {name} {at}",
                color=LIGHT.limit,
                align="left" if floor else "right",
                shift=(6, -24) if floor else (-6, -6),
            ),
        ]
    return [*shades, *marks]
