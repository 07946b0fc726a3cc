"""What checks would have found: how often wrong noise fails one, by the numbers that tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dualmandate.population.wording import percent
from dualmandate.report.figures.figure import Figure, Mark, Plane, Ruler, layered, spread
from dualmandate.report.theme import LIGHT, ROOMY, Column, FigureTable, Row

if TYPE_CHECKING:
    from dualmandate.audit.finding import DetectionPower

COLORS = (LIGHT.production, LIGHT.preference, LIGHT.good, LIGHT.limit, LIGHT.third, LIGHT.fourth)


def power(checked: Sequence[DetectionPower]) -> Figure:
    """Power curves: one a fault, from few numbers that follow from others to all that the release has."""
    faults = list(dict.fromkeys(each.what for each in checked))
    rows: list[Row] = [
        {"rows": size} | {f"fault_{faults.index(each.what)}": each.share for each in checked if each.rows == size}
        for size in sorted({each.rows for each in checked})
    ]
    least, most = rows[0]["rows"], rows[-1]["rows"]
    at_most = [rows[-1][f"fault_{number}"] for number in range(len(faults))]

    def layout(width: int) -> Mark:
        height = 300 if width >= ROOMY else 340
        room = (most / least) ** (0.7 if width >= ROOMY else 2.6)  # for the names of the curves, to their right
        plane = Plane(
            Ruler("measured numbers that follow from others", least, most * room, log=True),
            Ruler("↑ share of such releases that fail a check", 0.0, 1.06, labels="percent"),
        )
        marks: list[Mark] = [plane.vertical(most, color=LIGHT.quiet, dash=(2, 4))]
        places = spread(at_most, plane.up, height=height, gap=18)
        for number, (fault, color, place) in enumerate(zip(faults, COLORS, places, strict=False)):
            marks += [
                plane.curve(rows, "rows", f"fault_{number}", color=color),
                plane.dots(rows, "rows", f"fault_{number}", color=color, name=f"fault-{number}"),
                plane.words(most, place, fault, color=color, shift=(8, 0)),
            ]
        return layered(*marks, height=height)

    told = [f"{percent(share)} of releases with {fault}" for fault, share in zip(faults[:2], at_most, strict=False)]
    return Figure(
        "power",
        title=f"With {most:,} numbers that follow from others, checks would find {' and '.join(told)}",
        subtitle="Share of releases with wrong noise that fail a check, by how many numbers follow from others;"
        " logarithmic to the right. Of honest releases at most 1 in 1,000 fails.",
        sentence="A release further to the left shows less of its noise: what is not found there may still be there.",
        table=FigureTable.of(
            rows,
            "How often wrong noise is found, by how many numbers follow from others",
            Column("rows", "numbers that follow from others", "exact"),
            *(Column(f"fault_{number}", fault, "percent") for number, fault in enumerate(faults)),
        ),
        layout=layout,
    )
