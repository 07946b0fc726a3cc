"""The same program under other institutions: which privacy loss each arrives at, and what that costs society."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, number, percent
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice.markets import Institution
    from dualmandate.population import Currency

ROW_HEIGHT = 44  # px
ALIKE = 1e-9  # share of a cost that is no difference


def institutions_twin(rows: Sequence[Institution], currency: Currency) -> Twin:
    """Rows behind the picture: what each institution chooses, pays and costs; the planner is set off."""
    letter = loss_symbol(currency)
    cells: list[dict[str, Cell]] = [
        {
            "institution": row.name,
            "loss": row.epsilon,
            "accuracy": row.accuracy,
            "payment": row.payment,
            "total": row.total,
            "cost": None if row.welfare is None else -row.welfare,
            "forgone": row.forgone,
            "why": row.why,
            "one_count": row.one_count,
            "marked": row.forgone is None and row.epsilon is not None,
        }
        for row in rows
    ]
    return Twin(
        caption="The program under other institutions, judged by society's welfare",
        columns=(
            Column("institution", "institution", "text"),
            Column("loss", letter, "loss"),
            Column("accuracy", "accuracy I"),
            Column("payment", "paid to one person", "money"),
            Column("total", "paid in all", "money"),
            Column("cost", "cost to society", "money"),
            Column("forgone", "more than under the planner", "money"),
            Column("why", "what it is", "text"),
        ),
        rows=tuple(cells),
    )


def institutions(rows: Sequence[Institution], currency: Currency, *, width: int = WIDE) -> alt.LayerChart:
    """One line an institution: the privacy loss it arrives at, and what society loses more than under the planner.

    Auctions of one count stand in the twin alone: their ε buys a count of everybody, not the program's tables.
    """
    twin, letter, roomy = institutions_twin(rows, currency), loss_symbol(currency), width >= ROOMY
    drawn = sorted(
        (row for row in twin.rows if row["loss"] is not None and not row["one_count"]),
        key=lambda row: -amount(row, "loss"),
    )
    planner = next(row for row in drawn if row["marked"])
    low, high = amount(drawn[-1], "loss"), amount(drawn[0], "loss")
    log = high / low > 8
    edges = (low / (high / low) ** 0.08, high * (high / low) ** 0.08) if log else (0.0, 1.12 * high)
    plane = Plane(
        Ruler(f"privacy loss {letter}", edges[0], edges[1], log=log), Ruler("", float(len(drawn)), 0.0, hidden=True)
    )
    best = amount(planner, "loss")
    marks: list[Mark] = [plane.vertical(best, color=LIGHT.production, dash=(2, 4))]
    for i, row in enumerate(drawn):
        at, y = amount(row, "loss"), i + 0.68
        own = bool(row["marked"])
        color = LIGHT.production if own else LIGHT.preference
        marks += [
            plane.bars([{"from": min(at, best), "to": max(at, best), "y": y}], color=color, opacity=0.35, thick=6),
            plane.points([{"x": at, "y": y}], "x", "y", color=color, name=f"institution-{i}", filled=not own),
            plane.words(plane.across.low, i + 0.28, _label(row, roomy=roomy), color=LIGHT.ink, shift=(0, 2)),
        ]
    return dress(
        layered(*marks),
        title=_finding(drawn, planner, letter),
        subtitle=f"{letter} under each institution on the program's own frontier"
        + ("; logarithmic" if log else "")
        + "; in words what society loses beyond the planner's choice",
        width=width,
        height=ROW_HEIGHT * len(drawn),
    )


def _label(row: Mapping[str, Cell], *, roomy: bool) -> str:
    forgone = row["forgone"]
    words = "" if forgone is None else f": {money(amount(row, 'forgone'))} lost"
    return f"{row['institution']}, {number(amount(row, 'loss'))}{words if roomy else ''}"


def _finding(drawn: Sequence[Mapping[str, Cell]], planner: Mapping[str, Cell], letter: str) -> str:
    best, cost = amount(planner, "loss"), amount(planner, "cost")
    private = next((row for row in drawn if str(row["institution"]).startswith("private provider, one")), None)
    if private is None:
        return f"The planner chooses {letter} = {number(best)}"
    share = amount(private, "loss") / best
    lost = amount(private, "forgone") / cost
    if lost < ALIKE:
        return f"A private provider would choose what the planner does: {letter} = {number(best)}"
    return (
        f"A private provider would choose {percent(share)} of the planner's {letter}, and society would lose "
        f"{percent(lost)} more"
    )
