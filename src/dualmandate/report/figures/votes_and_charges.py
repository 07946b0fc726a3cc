"""What majorities prefer between pairs of losses, and the money that would go with the utilitarian choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, number
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import SocialChoices

MOST_OPTIONS = 6  # drawn; the twin holds all
ROW_HEIGHT = 52  # px
CELL_HEIGHT = 34  # px


def votes_twin(choices: SocialChoices) -> Twin:
    """Rows behind the picture: each pair of losses, and the share of people who are better off at the first."""
    letter, found = loss_symbol(choices.profile.frontier.currency), choices.majority
    people = float(choices.profile.society.sizes.sum())
    rows = tuple(
        {
            "loss": one,
            "other": other,
            "for": float(found.votes[i, j]) / people,
            "against": float(found.votes[j, i]) / people,
            "wins": found.beats(one, other),
        }
        for i, one in enumerate(found.options)
        for j, other in enumerate(found.options)
        if i != j
    )
    return Twin(
        caption=f"Every {letter} against every other, put to the vote",
        columns=(
            Column("loss", letter, "loss"),
            Column("other", f"against {letter}", "loss"),
            Column("for", "better off at the first", "percent"),
            Column("against", "better off at the second", "percent"),
            Column("wins", "the first wins", "text"),
        ),
        rows=rows,
    )


def votes(choices: SocialChoices, *, width: int = WIDE) -> alt.LayerChart:
    """A square of votes: the share of people who prefer the loss of the row to that of the column."""
    letter, found = loss_symbol(choices.profile.frontier.currency), choices.majority
    shown = found.options[:MOST_OPTIONS]
    rows = [row for row in votes_twin(choices).rows if row["loss"] in shown and row["other"] in shown]
    count = len(shown)
    plane = Plane(Ruler("", -0.9, float(count), hidden=True), Ruler("", float(count), -0.9, hidden=True))
    marks: list[Mark] = []
    for i, place in enumerate(shown):
        marks += [
            plane.horizontal(i, color=LIGHT.grid),
            plane.words(-0.9, i + 0.5, f"{letter} {number(place)}", color=LIGHT.quiet, shift=(4, 0)),
            plane.words(i + 0.5, -0.4, f"{letter} {number(place)}", color=LIGHT.quiet, align="center"),
        ]
    for row in rows:
        i, j = shown.index(amount(row, "loss")), shown.index(amount(row, "other"))
        words = f"{100 * amount(row, 'for'):.0f} %{' wins' if row['wins'] and width >= ROOMY else ''}"
        color = LIGHT.good if row["wins"] else LIGHT.quiet
        marks.append(plane.words(j + 0.5, i + 0.5, words, color=color, align="center"))
    if found.cycle is not None:
        circle = " over ".join(number(place) for place in (*found.cycle, found.cycle[0]))
        title = f"Majorities run in a circle: {circle}"
    elif found.winner is not None:
        title = f"No majority would leave {letter} = {number(found.winner)}"
    else:
        title = "No loss wins or ties against every other"
    return dress(
        layered(*marks),
        title=title,
        subtitle="Share of people who are better off at the loss of the row than at that of the column",
        width=width,
        height=CELL_HEIGHT * (count + 1),
    )


def charges_twin(choices: SocialChoices) -> Twin:
    """Rows behind the picture: what a member of each group would pay under either scheme, USD."""
    letter = loss_symbol(choices.profile.frontier.currency)
    rows: list[dict[str, Cell]] = []
    for price, tax, citizens in zip(
        choices.lindahl.prices, choices.clarke, choices.profile.society.citizens, strict=True
    ):
        finite = tax.tax < float("inf")
        rows.append(
            {
                "group": price.name,
                "charge": float(price.charge),
                "payment": float(price.payment),
                "tax": tax.tax / citizens.size if finite else None,
            }
        )
    return Twin(
        caption=f"Payments of one member at {letter} = {number(choices.lindahl.epsilon, 4)}; below 0, received",
        columns=(
            Column("group", "group", "text"),
            Column("charge", f"Lindahl price of one {letter}", "money"),
            Column("payment", "Lindahl payment", "money"),
            Column("tax", "Clarke tax", "money"),
        ),
        rows=tuple(rows),
    )


def charges(choices: SocialChoices, *, width: int = WIDE) -> alt.LayerChart:
    """What one member of each group pays or receives at Lindahl prices (bars), and its Clarke tax (dots)."""
    twin, letter = charges_twin(choices), loss_symbol(choices.profile.frontier.currency)
    payments = [amount(row, "payment") for row in twin.rows]
    taxes = [amount(row, "tax") for row in twin.rows if row["tax"] is not None]
    low, high = min(0.0, *payments, *taxes), max(0.0, *payments, *taxes)
    room = 0.06 * (high - low or 1.0)
    plane = Plane(
        Ruler("payment of one member, USD; below 0 received", low - room, high + room, labels=MONEY_AXIS),
        Ruler("", float(len(twin.rows)), 0.0, hidden=True),
    )
    bars = [{"from": 0.0, "to": amount(row, "payment"), "y": i + 0.72} for i, row in enumerate(twin.rows)]
    dots = [{"tax": amount(row, "tax"), "y": i + 0.72} for i, row in enumerate(twin.rows) if row["tax"] is not None]
    marks: list[Mark] = [
        plane.bars(bars, color=LIGHT.production, opacity=0.55),
        plane.vertical(0.0, color=LIGHT.quiet),
        plane.points(dots, "tax", "y", color=LIGHT.preference, name="taxes", filled=True),
    ]
    for i, row in enumerate(twin.rows):
        verb = "pays" if amount(row, "payment") >= 0 else "receives"
        words = f"{row['group']}: {verb} {money(abs(amount(row, 'payment')))}"
        if row["tax"] is not None and width >= ROOMY:
            words += f"; Clarke tax {money(amount(row, 'tax'))}"
        marks.append(plane.words(plane.across.low, i + 0.4, words, shift=(2, -4)))
    return dress(
        layered(*marks),
        title=f"At these prices everybody would ask for {letter} = {number(choices.lindahl.epsilon, 4)}"
        if choices.lindahl.supported
        else f"No prices make everybody ask for {letter} = {number(choices.lindahl.epsilon, 4)}",
        subtitle="Bars: what one member pays or receives at Lindahl prices; dots: Clarke taxes, which are not returned",
        width=width,
        height=ROW_HEIGHT * len(twin.rows),
    )
