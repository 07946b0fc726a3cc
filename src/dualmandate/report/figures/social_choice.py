"""Every rule of social choice on one axis: what people want, what each rule chooses, who gains and who loses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, number
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import LINE_HEIGHT, Align, Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, SERIES, WIDE, dress
from dualmandate.report.figures.twin import Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Peak, SocialChoiceRow, SocialChoices

MARGIN = 1.4  # at most so many times the lowest and the highest loss shown
LEAST_MARGIN = 1.002
ROUND = 3.0  # ratio of losses from which on the axis is logarithmic
ROW_HEIGHT = 34  # px, one rule
GAINS_HEIGHT = 230  # px
EDGES = 92  # px, axes and labels beside the panels
MOST_NAMED = 6  # groups, as many as there are colors
LETTER = 6.4  # px, mean width of a letter in a label


def social_choice_twin(choices: SocialChoices) -> Twin:
    """The table of all rules: what each chooses, welfare there, and what a member of each group gains by it."""
    letter = loss_symbol(choices.profile.frontier.currency)
    names = choices.profile.society.names
    rows = tuple(
        {
            "rule": row.rule,
            "loss": row.epsilon if _shown(row.epsilon) else None,
            "welfare": row.welfare,
            **{f"gain {name}": row.gains.get(name) for name in names},
            "words": row.words,
            "marked": row.rule == "utilitarian",
        }
        for row in choices.rows
    )
    return Twin(
        caption=f"What each rule chooses, and what a member of each group gains against {letter} = "
        f"{number(choices.against, 4)}",
        columns=(
            Column("rule", "rule", "text"),
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("welfare", "welfare", "money"),
            *(Column(f"gain {name}", f"gain of one of {name}", "money") for name in names),
            Column("words", "where", "text"),
        ),
        rows=rows,
    )


def gains_twin(choices: SocialChoices) -> Twin:
    """Rows behind the lower panel: what a member of each group gains at each loss, USD, against the status quo."""
    letter = loss_symbol(choices.profile.frontier.currency)
    low, high = _ends(choices)
    names = choices.profile.society.names
    rows = tuple(
        {
            "loss": loss,
            **choices.profile.gains(loss, choices.against),
            "marked": loss == choices.against,
        }
        for loss in log_grid(low, high, through=(choices.against,), points=81)
    )
    return Twin(
        caption=f"Who gains and who loses at each {letter}, against {letter} = {number(choices.against, 4)}",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            *(Column(name, f"gain of one of {name}", "money") for name in names),
        ),
        rows=rows,
    )


def social_choice(choices: SocialChoices, *, width: int = WIDE) -> alt.VConcatChart:
    """Peaks and rules on one axis of losses, and below it the gains and losses of each group."""
    letter, inner = loss_symbol(choices.profile.frontier.currency), width - EDGES
    answered = [row for row in choices.rows if _shown(row.epsilon)]
    low, high = _ends(choices)
    ruler = Ruler("", low, high, log=high / low > ROUND, hidden=True)
    lanes = _lanes(choices, ruler, inner)
    upper = _rules(choices, answered, ruler, lanes=lanes, width=inner).properties(
        width=inner, height=ROW_HEIGHT * (len(answered) + 1 + max(lanes))
    )
    lower = _gains(choices, replace(ruler, title=f"privacy loss {letter}", hidden=False), width=inner)
    places = [row.epsilon for row in answered if row.epsilon is not None]
    span = f"between {number(min(places))} and {number(max(places))}"
    return dress(
        alt.vconcat(upper, lower.properties(width=inner, height=_height(choices)), spacing=26),
        title=f"What people want differs; the rules of social choice choose {letter} {span}",
        subtitle="Above: what each group wants (in color) and what each rule chooses; shaded: efficient losses. "
        f"Below: what one member of each group gains or loses, US dollars, against {letter} = "
        f"{number(choices.against, 4)}",
        width=width,
    )


def _rules(
    choices: SocialChoices, answered: Sequence[SocialChoiceRow], ruler: Ruler, *, lanes: Sequence[int], width: int
) -> alt.LayerChart:
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
    return layered(*marks)


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


def _gains(choices: SocialChoices, ruler: Ruler, *, width: int) -> alt.LayerChart:
    """What a member of each group gains at each loss; the names stand in a band above the lines."""
    twin, names = gains_twin(choices), choices.profile.society.names
    highest = max(0.0, *(amount(row, name) for row in twin.rows for name in names))
    at_rules = [gain for row in choices.rows for gain in row.gains.values()]
    size = max([highest, *map(abs, at_rules)]) or 1.0
    lowest = max(min(amount(row, name) for row in twin.rows for name in names), -2.5 * size)
    named = names[:MOST_NAMED]
    band = LINE_HEIGHT * (len(named) + 0.5) / _height(choices)  # share of the height
    top = (size * 1.1 - band * lowest) / (1 - band)
    plane = Plane(ruler, Ruler("↑ gain of one member, USD", lowest, top, labels=MONEY_AXIS))
    marks: list[Mark] = [
        plane.horizontal(0.0, color=LIGHT.quiet),
        plane.vertical(choices.against, color=LIGHT.quiet, dash=(4, 3), top=size * 1.1),
    ]
    for i, name in enumerate(names):
        marks.append(plane.curve(twin.rows, "loss", name, color=SERIES[i % len(SERIES)]))
    for i, name in enumerate(named):
        height = plane.up.value(1 - LINE_HEIGHT * i / _height(choices))
        marks.append(plane.words(ruler.low, height, _short(name, 2 * width), color=SERIES[i], shift=(4, 5)))
    return layered(*marks)


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
