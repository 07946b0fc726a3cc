"""Private provision of a public good: where marginal cost meets what one user, or all of them, would pay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import number
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.plane import Align, Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice.markets import Provision

CURVES = {"auction": "one price (VCG)", "sellers": "what sellers lose", "everybody": "what everybody loses"}
COLORS = {"auction": LIGHT.preference, "sellers": LIGHT.production, "everybody": LIGHT.good}
SHORT = {
    "private provider, one price": ("private", "auction"),
    "private provider, personal prices": ("private, personal prices", "sellers"),
    "Lindahl": ("Lindahl", "auction"),
    "planner, sellers' losses": ("planner", "sellers"),
    "planner, everybody's losses": ("planner, everybody", "everybody"),
}
POINTS = 160


def provision_twin(provision: Provision) -> Twin:
    """Rows behind the picture: what each institution provides, and from whom."""
    outcomes = provision.outcomes()
    cells: list[dict[str, Cell]] = [
        {
            "institution": outcome.institution,
            "accuracy": outcome.accuracy,
            "loss": outcome.epsilon,
            "share": outcome.share,
            "payment": outcome.payment,
            "surplus": outcome.surplus,
            "marked": True,
        }
        for outcome in outcomes
    ]
    return Twin(
        caption="Who provides how much accuracy of one count",
        columns=(
            Column("institution", "institution", "text"),
            Column("accuracy", "accuracy I = 1 − a"),
            Column("loss", "ε of a seller"),
            Column("share", "share that sells", "percent"),
            Column("payment", "paid in all", "money"),
            Column("surplus", "surplus", "money"),
        ),
        rows=tuple(cells),
    )


def provision_picture(provision: Provision, *, width: int = WIDE) -> alt.LayerChart:
    """Marginal costs of accuracy, and where they cross what the keenest user or all users would pay for more."""
    twin, roomy = provision_twin(provision), width >= ROOMY
    top = 1.6 * provision.total_value
    rows = _marginals(provision)
    low = max(0.0, min(amount(row, "accuracy") for row in twin.rows) - 0.15)
    high = min(1.0, max(amount(row, "accuracy") for row in twin.rows) + (0.25 if roomy else 0.12))
    plane = Plane(
        Ruler("accuracy I", low, high),
        Ruler("↑ USD per unit of accuracy", 0.0, top, labels=MONEY_AXIS),
    )
    marks: list[Mark] = [
        plane.horizontal(provision.total_value, color=LIGHT.quiet, dash=(2, 4)),
        plane.horizontal(provision.largest_value, color=LIGHT.quiet, dash=(2, 4)),
        *(
            plane.words(high, value, f"worth to {whom}", color=LIGHT.quiet, align="right", shift=(-2, -4))
            for value, whom in _worths(provision, roomy=roomy)
        ),
    ]
    for key, name in CURVES.items():
        inside = [row for row in rows if row[key] is not None and low <= row["accuracy"] <= high]
        marks.append(plane.curve(inside, "accuracy", key, color=COLORS[key]))
        if roomy and inside:
            height = top * (0.96 if key != "everybody" else 0.86)
            end = next((row for row in inside if row[key] > height), inside[-1])
            side: Align = "right" if key == "auction" else "left"
            shift = (-8, 0) if key == "auction" else (12, 0)
            marks.append(plane.words(end["accuracy"], height, name, color=COLORS[key], align=side, shift=shift))
    marks += _places(plane, twin, provision, roomy=roomy)
    private, planner = amount(twin.rows[0], "accuracy"), amount(twin.rows[3], "accuracy")
    return dress(
        layered(*marks),
        title=f"A private provider stops at accuracy {number(private)}; the planner goes on to {number(planner)}",
        subtitle="Marginal cost of accuracy when one price is paid (orange), when only what sellers lose counts (blue) "
        "and when everybody loses (green)",
        width=width,
        height=340 if roomy else 280,
    )


def _places(plane: Plane, twin: Twin, provision: Provision, *, roomy: bool) -> list[Mark]:
    """Where each institution stops, with its name where there is room."""
    marks: list[Mark] = []
    for row in twin.rows:
        label, key = SHORT[str(row["institution"])]
        value = provision.largest_value if label.startswith("private") else provision.total_value
        at = [{"x": amount(row, "accuracy"), "y": value}]
        marks.append(
            plane.points(
                at,
                "x",
                "y",
                color=COLORS[key],
                name=f"provided-{label}".replace(" ", "-").replace(",", ""),
                filled=True,
            )
        )
        if roomy:
            above = key == "auction"
            marks.append(
                plane.words(
                    at[0]["x"],
                    value,
                    label,
                    color=COLORS[key],
                    align="right" if above else "left",
                    shift=(-8, -10) if above else (12, 30 if key == "everybody" else 12),
                )
            )
    return marks


def _worths(provision: Provision, *, roomy: bool) -> tuple[tuple[float, str], ...]:
    return (provision.total_value, "all users" if roomy else "all"), (
        provision.largest_value,
        "the keenest user" if roomy else "one user",
    )


def _marginals(provision: Provision) -> list[dict[str, float]]:
    """dC/dI along the shares that can be bought, away from jumps of the costs."""
    rows = []
    shares = np.linspace(1e-4, 1 - 1e-4, POINTS * 20).tolist()
    costs = {
        "auction": provision.auction_cost,
        "sellers": provision.sellers_cost,
        "everybody": provision.everybody_cost,
    }
    step = 1e-6
    for share in shares:
        rise = provision.accuracy(share + step) - provision.accuracy(share - step)
        row = {"accuracy": provision.accuracy(share)}
        row |= {key: (cost(share + step) - cost(share - step)) / rise for key, cost in costs.items()}
        rows.append(row)
    return rows
