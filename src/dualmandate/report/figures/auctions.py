"""Auctions of privacy, and a monopolist of accuracy: who sells, at which price, and who is served."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import money, number, percent
from dualmandate.report.figures.axis_formats import MONEY_AXIS, PERCENT_AXIS
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice.markets import Monopoly, Sale

MANY = 60  # people from which on they are drawn as a line


def auction_twin(sale: Sale, costs: Sequence[float]) -> Twin:
    """Rows behind the picture: people by cost, what the sale costs each, what she is paid, and whether she sells."""
    order = sorted(range(len(costs)), key=lambda person: costs[person])
    rows: list[dict[str, Cell]] = [
        {
            "rank": float(rank + 1),
            "cost": costs[person],
            "lost": costs[person] * sale.epsilon,
            "paid": sale.payment if person in sale.sellers else 0.0,
            "sells": person in sale.sellers,
            "marked": person in sale.sellers and rank + 1 == len(sale.sellers),
        }
        for rank, person in enumerate(order)
    ]
    return Twin(
        caption=f"An auction at ε = {number(sale.epsilon)}",
        columns=(
            Column("rank", "person, cheapest first", "count"),
            Column("cost", "cost per unit of ε", "money"),
            Column("lost", "cost of this ε", "money"),
            Column("paid", "paid", "money"),
            Column("sells", "sells", "text"),
        ),
        rows=tuple(rows),
    )


def auction_picture(sale: Sale, costs: Sequence[float], *, name: str, width: int = WIDE) -> alt.LayerChart:
    """What this ε would cost each person, the cheapest first, and the one price that all who sell are paid."""
    twin, roomy = auction_twin(sale, costs), width >= ROOMY
    sellers, others = [row for row in twin.rows if row["sells"]], [row for row in twin.rows if not row["sells"]]
    top = 1.25 * max(
        sale.payment, *(amount(row, "lost") for row in twin.rows[: len(sellers) + max(1, len(others) // 2)])
    )
    plane = Plane(
        Ruler("people, the cheapest first", 0.0, len(twin.rows) + 1.0),
        Ruler("↑ USD a person", 0.0, top, labels=MONEY_AXIS),
    )
    marks: list[Mark] = [
        plane.horizontal(sale.payment, color=LIGHT.good, end=len(sellers) + 0.5),
        plane.vertical(len(sellers) + 0.5, color=LIGHT.quiet, dash=(2, 4)),
        plane.words(0.0, sale.payment, f"each is paid {money(sale.payment)}", color=LIGHT.good, shift=(4, -5)),
    ]
    for rows, color, word in ((sellers, LIGHT.production, "sell"), (others, LIGHT.preference, "do not")):
        if not rows:
            continue
        seen = [row for row in rows if amount(row, "lost") <= top]
        if len(twin.rows) > MANY:
            marks.append(plane.curve(rows, "rank", "lost", color=color))
        else:
            marks.append(plane.points(seen, "rank", "lost", color=color, name=word.replace(" ", "-"), filled=True))
        middle = rows[len(rows) // 2]
        marks.append(plane.words(amount(middle, "rank"), 0.0, word, color=color, align="center", shift=(0, -8)))
    return dress(
        layered(*marks),
        title=f"{name} buys {len(sellers):,} of {len(twin.rows):,} people at ε = {number(sale.epsilon)}, "
        f"for {money(sale.total)}",
        subtitle="What this ε would cost each person, and the price; people beyond the upper edge ask for more",
        width=width,
        height=300 if roomy else 250,
    )


def monopoly_twin(monopoly: Monopoly) -> Twin:
    """Rows behind the picture: what the user at each place would pay, and what one price then brings."""
    served = monopoly.served
    shares = sorted({*np.linspace(0.01, 1.0, 60).tolist(), served})
    rows: list[dict[str, Cell]] = []
    for share in shares:
        taste = monopoly.tastes.quantile(1 - share)
        rows.append(
            {
                "share": share,
                "taste": taste,
                "revenue": share * taste / monopoly.tastes.mean,
                "marked": share == served,
            }
        )
    return Twin(
        caption="What accuracy is worth to the marginal user, and what one price takes of its worth to all",
        columns=(
            Column("share", "share of users served", "percent"),
            Column("taste", "worth to the marginal user"),
            Column("revenue", "share of all worth that is taken", "percent"),
        ),
        rows=tuple(rows),
    )


def monopoly_picture(monopoly: Monopoly, *, width: int = WIDE) -> alt.LayerChart:
    """What one price takes of the worth of accuracy to all users, by the share of users served."""
    twin, roomy = monopoly_twin(monopoly), width >= ROOMY
    here = next(row for row in twin.rows if row["marked"])
    plane = Plane(
        Ruler("share of users served", 0.0, 1.0, labels=PERCENT_AXIS),
        Ruler("↑ taken of what accuracy is worth to all", 0.0, 1.1, labels=PERCENT_AXIS),
    )
    served, taken = amount(here, "share"), amount(here, "revenue")
    picture = layered(
        plane.horizontal(1.0, color=LIGHT.production, dash=(2, 4)),
        plane.words(0.0, 1.0, "the planner counts all of it", color=LIGHT.production, shift=(4, -5)),
        plane.curve(twin.rows, "share", "revenue", color=LIGHT.preference),
        plane.points([here], "share", "revenue", color=LIGHT.ink, name="served"),
        plane.words(served, taken, f"serves {percent(served)}, takes {percent(taken)}", align="center", shift=(0, -14)),
    )
    return dress(
        picture,
        title=f"A monopolist serves {percent(served)} of users and counts {percent(taken)} of what accuracy is worth",
        subtitle="One price for all users, no cost of serving one more; tastes differ between users",
        width=width,
        height=300 if roomy else 250,
    )
