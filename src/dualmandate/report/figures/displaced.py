"""Money that noise in counts moves by a formula, at each privacy loss, below what errors in the counts move anyhow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dualmandate.population.wording import money, number
from dualmandate.report.figures.figure import Figure, Mark, Plane, Ruler, layered
from dualmandate.report.theme import LIGHT, ROOMY, Column, FigureTable, Row

COLORS = (LIGHT.preference, LIGHT.production, LIGHT.limit)


def displaced(
    moved: Mapping[str, Sequence[tuple[float, float]]], *, existing: float, grants: str, currency: str = "USD"
) -> Figure:
    """Of each technology its losses and the money that is displaced at them, at most three technologies.

    `existing` is what errors that the counts have anyhow displace, and `grants` names what is given out.
    """
    rows: list[Row] = [
        {"technology": name, "epsilon": loss, "displaced": amount, "share": amount / existing}
        for name, points in moved.items()
        for loss, amount in points
    ]
    losses, amounts = [row["epsilon"] for row in rows], [row["displaced"] for row in rows]

    def layout(width: int) -> Mark:
        height = 340 if width >= ROOMY else 280
        plane = Plane(
            Ruler("privacy loss ε", min(losses), max(losses) * (1.8 if width >= ROOMY else 2.6), log=True),
            Ruler(f"↑ {currency} displaced", min(amounts) / 2, existing * 4, log=True, labels=currency),
        )
        words = f"by errors in the estimates: {money(existing, currency, short=True)}"
        marks: list[Mark] = [
            plane.horizontal(existing, color=LIGHT.ink, dash=(5, 4)),
            plane.words(min(losses), existing, words, color=LIGHT.ink, align="left", shift=(6, -10)),
        ]
        for (name, points), color in zip(moved.items(), COLORS, strict=False):
            own = [row for row in rows if row["technology"] == name]
            marks.append(plane.curve(own, "epsilon", "displaced", color=color))
            loss, amount = points[-1]
            marks.append(plane.words(loss, amount, name, color=color, align="left", shift=(6, 0)))
        return layered(*marks, height=height)

    most = max(losses)
    ends = [(name, money(points[-1][1], currency, short=True)) for name, points in moved.items()]
    told = " and ".join(f"{name} noise {amount}" for name, amount in ends)
    return Figure(
        "displaced",
        title=f"What is moved at ε = {number(most)}: by {told}",
        subtitle=f"Half the sum of what recipients of {grants} get too much and too little, in the mean over draws; "
        "both axes logarithmic",
        sentence="What would have to change hands to put grants right, by noise at each privacy loss and by errors "
        "that the counts have anyhow.",
        table=FigureTable.of(
            rows,
            f"{currency} of {grants} displaced, by technology and privacy loss",
            Column("technology", "noise", "text"),
            Column("epsilon", "ε", "exact"),
            Column("displaced", "displaced", currency),
            Column("share", "of what existing errors displace"),
        ),
        layout=layout,
    )
