"""Risk beside accuracy: what an attack gets right under each way to publish; DP is a line, old methods are points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.figures.plane import Mark, Plane, Ruler, layered, spread
from dualmandate.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.figures.twin import Cell, Column, Twin, amount
from dualmandate.figures.wording import percent

if TYPE_CHECKING:
    from dualmandate.audit.comparison import Compared

COLORS = {
    "exact": LIGHT.ink,
    "swapping": LIGHT.preference,
    "rounding": LIGHT.good,
    "cell key": LIGHT.limit,
    "suppression": LIGHT.third,
    "differential privacy": LIGHT.production,
}
LEAST_ERROR = 0.01  # of the axis: what has less is drawn there
NOTE = "The old methods have no ε: each is a point with a measured risk, and another attack may find more."


def risk_twin(compared: Sequence[Compared]) -> Twin:
    """Rows behind the picture: error, share of records right with its interval, and what a guesser gets right."""
    rows: list[dict[str, Cell]] = []
    for each in compared:
        low, high = each.right.interval()
        rows.append(
            {
                "family": str(each.family),
                "name": each.name,
                "epsilon": each.epsilon,
                "error": each.error,
                "x": max(each.error, LEAST_ERROR),
                "right": each.right.value,
                "low": low,
                "high": high,
                "guess": each.guess.value,
            }
        )
    return Twin(
        caption="Records that an attack gets right, and errors of the published numbers, under each method",
        columns=(
            Column("name", "method", "text"),
            Column("epsilon", "ε"),
            Column("error", "mean absolute error"),
            Column("right", "records right", "percent"),
            Column("low", "95 % from", "percent"),
            Column("high", "to", "percent"),
            Column("guess", "proportional guesser", "percent"),
        ),
        rows=tuple(rows),
    )


def risk(compared: Sequence[Compared], *, width: int = WIDE) -> alt.LayerChart:
    """Mean absolute error of a number against the share of records that the attack gets right."""
    twin, roomy = risk_twin(compared), width >= ROOMY
    height, left, right = (400, 150, 60) if roomy else (320, 74, 40)  # px, and px kept free for words at the sides
    most = max(amount(row, "x") for row in twin.rows)
    pixel = (1.1 * most / LEAST_ERROR) ** (1 / (width - 60 - left - right))  # what a pixel multiplies an error by
    across = Ruler(
        "mean absolute error of a published number →",
        LEAST_ERROR / pixel**left,
        most * pixel**right,
        log=True,
    )
    plane = Plane(across, Ruler("↑ records that the attack gets right", 0.0, 1.02, labels="format(datum.value, '.0%')"))
    guessed = amount(twin.rows[0], "guess")
    private = [row for row in twin.rows if row["family"] == "differential privacy"]
    marks: list[Mark] = [
        plane.horizontal(guessed, color=LIGHT.quiet, dash=(4, 4)),
        plane.words(across.low * 1.05, guessed, f"guesser without tables: {percent(guessed)}", shift=(0, 8)),
        *(
            plane.between(amount(row, "x"), amount(row, "low"), amount(row, "high"), color=_color(row))
            for row in twin.rows
        ),
        plane.curve(private, "x", "right", color=LIGHT.production),
    ]
    for family, color in COLORS.items():
        own = [row for row in twin.rows if row["family"] == family]
        name = family.replace(" ", "-")
        marks.append(plane.points(own, "x", "right", color=color, name=name, filled=family == "differential privacy"))
    return dress(
        layered(*_names(plane, twin, height=height, roomy=roomy), *marks),
        title=_finding(compared),
        subtitle=f"Share of records right in the most likely file behind the tables, with 95 % intervals. {NOTE}",
        width=width,
        height=height,
    )


def _color(row: object) -> str:
    assert isinstance(row, dict)
    return COLORS[str(row["family"])]


def _names(plane: Plane, twin: Twin, *, height: int, roomy: bool) -> list[alt.LayerChart]:
    """ε to the right of the line, old methods to the left of their points, pushed apart; on a phone one of each."""
    private = [row for row in twin.rows if row["family"] == "differential privacy"]
    others = [row for row in twin.rows if row["family"] != "differential privacy"]
    if not roomy:
        private, others = private[::2], list({row["family"]: row for row in others}.values())
    places = spread([amount(row, "right") for row in others], plane.up, height=height, gap=15)
    return [
        *(
            plane.words(
                amount(row, "x"),
                amount(row, "right"),
                f"ε = {row['epsilon']:g}" if roomy else f"{row['epsilon']:g}",
                color=LIGHT.production,
                shift=(9, -6),
            )
            for row in private
        ),
        *(
            plane.words(
                amount(row, "x"),
                place,
                str(row["name" if roomy else "family"]),
                color=_color(row),
                align="right",
                shift=(-11, 0),
            )
            for row, place in zip(others, places, strict=True)
        ),
    ]


def _finding(compared: Sequence[Compared]) -> str:
    """The old method that protects best, beside the DP that errs as little."""
    private = [each for each in compared if each.epsilon is not None]
    old = [each for each in compared if each.epsilon is None and each.family != "exact"]
    if not private or not old:
        return "Records that an attack gets right, beside the accuracy of the tables"
    exact = next((each for each in compared if each.family == "exact"), None)
    best = min(old, key=lambda each: each.right.value)
    least = min(private, key=lambda each: each.right.value)
    start = "" if exact is None else f"{percent(exact.right.value)} from exact tables, "
    return (
        f"Records that the attack gets right: {start}{percent(best.right.value)} ({best.name}), "
        f"{percent(least.right.value)} ({least.name})"
    )
