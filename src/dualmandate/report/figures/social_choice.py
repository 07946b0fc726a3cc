"""Rules of social choice: what people want, what each rule chooses, who gains and who loses, votes and payments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dualmandate.population.wording import loss_symbol, money, number
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.plane import (
    LETTER,
    LINE_HEIGHT,
    MONEY_AXIS,
    Align,
    Mark,
    Plane,
    Ruler,
    layered,
    log_grid,
)
from dualmandate.report.tables import Cell, Column, FigureTable, amount
from dualmandate.report.theme import LIGHT, ROOMY, SERIES

if TYPE_CHECKING:
    from dualmandate.choice import Peak, SocialChoiceRow, SocialChoices

MARGIN = 1.4  # at most so many times the lowest and the highest loss shown
LEAST_MARGIN = 1.002
ROUND = 3.0  # ratio of losses from which on the axis is logarithmic
ROW_HEIGHT = 34  # px, one rule
GAINS_HEIGHT = 230  # px
EDGES = 92  # px, axes and labels beside the panels
MOST_NAMED = 6  # groups, as many as there are colors
MOST_OPTIONS = 6  # put to the vote and drawn; the table holds all
CELL_HEIGHT = 34  # px, of one vote
CHARGE_HEIGHT = 52  # px, of one group that pays or receives


def social_choice(choices: SocialChoices) -> Figure:
    """Peaks and rules on one axis of losses, and below it the gains and losses of each group.

    The table has every rule: what it chooses, welfare there, and what a member of each group gains by it.
    """
    letter, names = loss_symbol(choices.profile.frontier.privacy_measure), choices.profile.society.names
    against = f"{letter} = {number(choices.against)}"
    answered = [row for row in choices.rows if _shown(row.epsilon)]

    def layout(width: int) -> Mark:
        inner, (low, high) = width - EDGES, _ends(choices)
        ruler = Ruler("", low, high, log=high / low > ROUND, hidden=True)
        upper = _rules(choices, answered, ruler, lanes=_lanes(choices, ruler, inner), width=inner)
        lower = _gains(choices, replace(ruler, title=f"privacy loss {letter}", hidden=False), width=inner)
        return {"vconcat": [upper, lower], "spacing": 26}

    places = [row.epsilon for row in answered if row.epsilon is not None]
    span = f"between {number(min(places))} and {number(max(places))}"
    return Figure(
        "social-choice",
        title=f"What people want differs; the rules of social choice choose {letter} {span}",
        subtitle="Above: what each group wants (in color) and what each rule chooses; shaded: efficient losses. "
        f"Below: what one member of each group gains or loses, US dollars, against {against}",
        sentence="The plan follows the utilitarian rule. The others say what society would choose if it counted people "
        "in another way, and the lower part who would gain and who would lose.",
        table=FigureTable(
            caption=f"What each rule chooses, and what a member of each group gains against {against}",
            columns=(
                Column("rule", "rule", "text"),
                Column("loss", f"privacy loss {letter}", "loss"),
                Column("welfare", "welfare", "money"),
                *(Column(f"gain {name}", f"gain of one of {name}", "money") for name in names),
                Column("words", "where", "text"),
            ),
            rows=tuple(
                {
                    "rule": row.rule,
                    "loss": row.epsilon if _shown(row.epsilon) else None,
                    "welfare": row.welfare,
                    **{f"gain {name}": row.gains.get(name) for name in names},
                    "words": row.words,
                    "marked": row.rule == "utilitarian",
                }
                for row in choices.rows
            ),
        ),
        layout=layout,
    )


def gains_table(choices: SocialChoices) -> FigureTable:
    """What a member of each group gains at each loss, USD, against the status quo: the lower part of the picture."""
    letter, names = loss_symbol(choices.profile.frontier.privacy_measure), choices.profile.society.names
    return FigureTable(
        caption=f"Who gains and who loses at each {letter}, against {letter} = {number(choices.against)}",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            *(Column(name, f"gain of one of {name}", "money") for name in names),
        ),
        rows=tuple(
            {"loss": loss, **choices.profile.gains(loss, choices.against), "marked": loss == choices.against}
            for loss in log_grid(*_ends(choices), through=(choices.against,), points=81)
        ),
    )


def _rules(
    choices: SocialChoices, answered: Sequence[SocialChoiceRow], ruler: Ruler, *, lanes: Sequence[int], width: int
) -> Mark:
    """One row a rule with its choice, below the rows of peaks."""
    rows = max(lanes) + 1
    plane = Plane(ruler, Ruler("", float(len(answered) + rows), 0.0, hidden=True))
    marks: list[Mark] = []
    for low, high in choices.profile.pareto_set:
        inside = max(low, ruler.low), min(high, ruler.high)
        if inside[0] < inside[1]:
            marks.append(plane.closed(*inside))
    for i, (peak, lane) in enumerate(zip(choices.profile.peaks, lanes, strict=True)):
        color, at, y = SERIES[i % len(SERIES)], _place(ruler, peak.epsilon), lane + 0.62
        marks += [
            plane.points([{"x": at, "y": y}], "x", "y", color=color, name=f"peak{i}", filled=True),
            plane.words(at, y, _label(peak, width), color=color, align=_side(ruler, at), shift=(0, -8)),
        ]
    for i, row in enumerate(answered):
        assert row.epsilon is not None
        y = i + rows + 0.62
        label = f"{row.rule[:1].upper()}{row.rule[1:]}: {number(row.epsilon)}"
        side = _side(ruler, row.epsilon)
        marks += [
            plane.horizontal(y, color=LIGHT.grid),
            plane.points([{"x": row.epsilon, "y": y}], "x", "y", color=LIGHT.ink, name=f"rule{i}", filled=True),
            plane.words(row.epsilon, y, label, align=side, shift=(0, -7)),
        ]
    return layered(*marks, width=width, height=ROW_HEIGHT * (len(answered) + rows))


def _lanes(choices: SocialChoices, ruler: Ruler, width: int) -> list[int]:
    """The row of each group's peak: the first in which its name covers no other."""
    taken: list[list[tuple[float, float]]] = []
    lanes = []
    for peak in choices.profile.peaks:
        at, long = _place(ruler, peak.epsilon), LETTER * (len(_label(peak, width)) + 1)
        lean = {"left": 0.0, "center": 0.5, "right": 1.0}[_side(ruler, at)]
        start = ruler.share(at) * width - lean * long
        free = (lane for lane, spans in enumerate(taken) if all(start > b or start + long < a for a, b in spans))
        lane = next(free, len(taken))
        if lane == len(taken):
            taken.append([])
        taken[lane].append((start, start + long))
        lanes.append(lane)
    return lanes


def _place(ruler: Ruler, peak: float) -> float:
    """Where a peak is drawn: at its place, and just inside the axis where it has none."""
    return peak if _shown(peak) else ruler.value(0.98 if peak > 0 else 0.02)


def _label(peak: Peak, width: int) -> str:
    arrow = "→ " if math.isinf(peak.epsilon) else "← " if peak.epsilon == 0 else ""
    return arrow + _short(peak.name, width)


def _gains(choices: SocialChoices, ruler: Ruler, *, width: int) -> Mark:
    """What a member of each group gains at each loss; the names stand in a band above the lines."""
    rows, names = gains_table(choices).rows, choices.profile.society.names
    highest = max(0.0, *(amount(row, name) for row in rows for name in names))
    at_rules = [gain for row in choices.rows for gain in row.gains.values()]
    size = max([highest, *map(abs, at_rules)]) or 1.0
    lowest = max(min(amount(row, name) for row in rows for name in names), -2.5 * size)
    named = names[:MOST_NAMED]
    band = LINE_HEIGHT * (len(named) + 0.5) / _height(choices)  # share of the height
    top = (size * 1.1 - band * lowest) / (1 - band)
    plane = Plane(ruler, Ruler("↑ gain of one member, USD", lowest, top, labels=MONEY_AXIS))
    marks: list[Mark] = [
        plane.horizontal(0.0, color=LIGHT.quiet),
        plane.vertical(choices.against, color=LIGHT.quiet, dash=(4, 3), top=size * 1.1),
    ]
    for i, name in enumerate(names):
        marks.append(plane.curve(rows, "loss", name, color=SERIES[i % len(SERIES)]))
    for i, name in enumerate(named):
        height = plane.up.value(1 - LINE_HEIGHT * i / _height(choices))
        marks.append(plane.words(ruler.low, height, _short(name, 2 * width), color=SERIES[i], shift=(4, 5)))
    return layered(*marks, width=width, height=_height(choices))


def _height(choices: SocialChoices) -> float:
    """The lower panel's, px: the lines and the names above them."""
    return GAINS_HEIGHT + LINE_HEIGHT * min(len(choices.profile.society.names), MOST_NAMED)


def _short(name: str, width: int) -> str:
    """A name that leaves room for another beside it."""
    letters = max(10, int(width / LETTER / 2.2))
    return name if len(name) <= letters else f"{name[: letters - 1].rstrip()}…"


def _side(ruler: Ruler, loss: float) -> Align:
    """Which way a label leans so that it stays inside."""
    share = ruler.share(loss)
    return "left" if share < 0.2 else "right" if share > 0.8 else "center"


def _ends(choices: SocialChoices) -> tuple[float, float]:
    peaks = [peak.epsilon for peak in choices.profile.peaks]
    rules = [row.epsilon for row in choices.rows if row.epsilon is not None]
    places = [place for place in (*peaks, *rules, choices.against) if _shown(place)]
    low, high = choices.profile.span
    apart = max(places) / min(places) if all(map(_shown, peaks)) else math.inf
    margin = MARGIN if apart == 1 else min(max(math.sqrt(apart), LEAST_MARGIN), MARGIN)
    return max(min(places) / margin, low), min(max(places) * margin, high)


def _shown(loss: float | None) -> bool:
    return loss is not None and 0 < loss < math.inf


def votes(choices: SocialChoices) -> Figure:
    """A square of votes: the share of people who are better off at the loss of the row than at that of the column."""
    letter, found = loss_symbol(choices.profile.frontier.privacy_measure), choices.majority
    people, shown = float(choices.profile.society.sizes.sum()), found.options[:MOST_OPTIONS]
    rows: tuple[Mapping[str, Cell], ...] = tuple(
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

    def layout(width: int) -> Mark:
        count = float(len(shown))
        plane = Plane(Ruler("", -0.9, count, hidden=True), Ruler("", count, -0.9, hidden=True))
        marks: list[Mark] = []
        for i, place in enumerate(shown):
            marks += [
                plane.horizontal(i, color=LIGHT.grid),
                plane.words(-0.9, i + 0.5, f"{letter} {number(place)}", color=LIGHT.quiet, shift=(4, 0)),
                plane.words(i + 0.5, -0.4, f"{letter} {number(place)}", color=LIGHT.quiet, align="center"),
            ]
        for row in rows:
            if row["loss"] in shown and row["other"] in shown:
                i, j = shown.index(amount(row, "loss")), shown.index(amount(row, "other"))
                words = f"{100 * amount(row, 'for'):.0f} %{' wins' if row['wins'] and width >= ROOMY else ''}"
                color = LIGHT.good if row["wins"] else LIGHT.quiet
                marks.append(plane.words(j + 0.5, i + 0.5, words, color=color, align="center"))
        return layered(*marks, height=CELL_HEIGHT * (len(shown) + 1))

    title = "No loss wins or ties against every other"
    if found.cycle is not None:
        title = f"Majorities run in a circle: {' over '.join(map(number, (*found.cycle, found.cycle[0])))}"
    elif found.winner is not None:
        title = f"No majority would leave {letter} = {number(found.winner)}"
    return Figure(
        "social-choice-votes",
        title=title,
        subtitle="Share of people who are better off at the loss of the row than at that of the column",
        sentence="Each pair of losses put to the vote, every group with as many votes as it has members.",
        table=FigureTable(
            caption=f"Every {letter} against every other, put to the vote",
            columns=(
                Column("loss", letter, "loss"),
                Column("other", f"against {letter}", "loss"),
                Column("for", "better off at the first", "percent"),
                Column("against", "better off at the second", "percent"),
                Column("wins", "the first wins", "text"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


def charges(choices: SocialChoices) -> Figure:
    """What one member of each group pays or receives at Lindahl prices (bars), and its Clarke tax (dots), USD."""
    letter, lindahl = loss_symbol(choices.profile.frontier.privacy_measure), choices.lindahl
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {
            "group": price.name,
            "charge": float(price.charge),
            "payment": float(price.payment),
            "tax": tax.tax / citizens.size if math.isfinite(tax.tax) else None,
        }
        for price, tax, citizens in zip(lindahl.prices, choices.clarke, choices.profile.society.citizens, strict=True)
    )

    def layout(width: int) -> Mark:
        payments = [amount(row, "payment") for row in rows]
        dots = [{"tax": amount(row, "tax"), "y": i + 0.72} for i, row in enumerate(rows) if row["tax"] is not None]
        paid = [0.0, *payments, *(dot["tax"] for dot in dots)]
        room = 0.06 * (max(paid) - min(paid) or 1.0)
        axis = "payment of one member, USD; below 0 received"
        plane = Plane(
            Ruler(axis, min(paid) - room, max(paid) + room, labels=MONEY_AXIS),
            Ruler("", float(len(rows)), 0.0, hidden=True),
        )
        bars = [{"from": 0.0, "to": payment, "y": i + 0.72} for i, payment in enumerate(payments)]
        marks: list[Mark] = [
            plane.bars(bars, color=LIGHT.production, opacity=0.55),
            plane.vertical(0.0, color=LIGHT.quiet),
            plane.points(dots, "tax", "y", color=LIGHT.preference, name="taxes", filled=True),
        ]
        for i, row in enumerate(rows):
            owed = money(abs(payments[i]), short=True)
            words = f"{row['group']}: {'pays' if payments[i] >= 0 else 'receives'} {owed}"
            if row["tax"] is not None and width >= ROOMY:
                words += f"; Clarke tax {money(amount(row, 'tax'), short=True)}"
            marks.append(plane.words(plane.across.low, i + 0.4, words, shift=(2, -4)))
        return layered(*marks, height=CHARGE_HEIGHT * len(rows))

    loss = f"{letter} = {number(lindahl.epsilon)}"
    return Figure(
        "social-choice-charges",
        title=f"At these prices everybody would ask for {loss}"
        if lindahl.supported
        else f"No prices make everybody ask for {loss}",
        subtitle="Bars: what one member pays or receives at Lindahl prices; dots: Clarke taxes, which are not returned",
        sentence="Nobody is charged anything. The bars say who would have to be paid, and by whom, for all to agree.",
        table=FigureTable(
            caption=f"Payments of one member at {loss}; below 0, received",
            columns=(
                Column("group", "group", "text"),
                Column("charge", f"Lindahl price of one {letter}", "money"),
                Column("payment", "Lindahl payment", "money"),
                Column("tax", "Clarke tax", "money"),
            ),
            rows=rows,
        ),
        layout=layout,
    )
