"""Preferences that are not known exactly: where the best loss lies, what knowing more is worth, robust choices."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.population.wording import loss_symbol, money, number, percent, stated_loss
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.plane import (
    LETTER,
    LINE_HEIGHT,
    MONEY_AXIS,
    PERCENT_AXIS,
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
    from dualmandate.choice import Corner, RobustChoice, UncertainChoice

LEVEL = 0.95
FARTHEST = 0.0005  # probability left beyond either end of the picture
HEADROOM = 1.25
LONG = 8.0  # ratio of losses from which on the axis is logarithmic
FEW = 60  # discrete states up to which each is drawn as a line of its own
SIZES = tuple(round(10 ** (i / 8)) for i in range(8, 41))  # 10 to 100,000 people, eight to a decade
SIGNPOST = 1000  # people
MOST_CURVES = 4  # corners drawn, the worst; the table holds their largest regret
ROBUST_HEIGHT = 2.2  # times the worst regret of the choice


def distribution(known: UncertainChoice) -> Figure:
    """The distribution of the best loss, with the chosen one, and where 95 in 100 of what is believed put it.

    `density` is probability per unit of loss; for a discrete set `probability` is that of the state.
    """
    letter, discrete, chosen = loss_symbol(known.choice.privacy_measure), known.beliefs.discrete, known.choice.epsilon
    low, high = known.interval(LEVEL)
    kinds = {chosen: "chosen"} | ({} if discrete else {low: "lower end", high: "upper end"})
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {**row, "kind": kinds.get(amount(row, "loss")), "marked": amount(row, "loss") in kinds}
        for row in (_states(known) if discrete else _densities(known, tuple(kinds)))
    )
    likely = Column("probability", "probability", "percent")

    def layout(width: int) -> Mark:
        top = max(amount(row, "probability" if discrete else "density") for row in rows) * HEADROOM or 1.0
        across = _across(known, [amount(row, "loss") for row in rows])
        plane = Plane(across, Ruler("↑ how likely", 0.0, top, labels=PERCENT_AXIS, hidden=not discrete))
        marks: list[Mark] = []
        if discrete:
            marks += [
                plane.vertical(amount(row, "loss"), color=LIGHT.preference, top=amount(row, "probability"))
                for row in rows[:FEW]
            ]
            marks.append(plane.points(rows, "loss", "probability", color=LIGHT.preference, name="states", filled=True))
        else:
            inside = [row for row in rows if low <= amount(row, "loss") <= high]
            marks += [
                plane.below(inside, "loss", "density"),
                plane.curve(rows, "loss", "density", color=LIGHT.preference),
                *_limits(known, plane),
            ]
        crowded = width < ROOMY and known.at_limits[1] > 0
        align: Align = "left" if across.share(chosen) < (0.4 if crowded else 0.5) else "right"
        words = f"{stated_loss(known.choice.loss)}\nhighest expected welfare"
        marks += [
            plane.vertical(chosen, color=LIGHT.ink),
            plane.words(chosen, top, words, align=align, shift=(8.0 if align == "left" else -8.0, 6)),
        ]
        return layered(*marks, height=300 if width >= ROOMY else 250)

    span = f"between {number(low)} and {number(high)}"
    return Figure(
        "uncertainty",
        title=f"The best {letter} lies {span}, depending on what people prefer"
        if discrete
        else f"With probability {LEVEL:.0%} the best {letter} lies {span}",
        subtitle="Each state of preferences, and how likely it is"
        if discrete
        else "Density; shaded: the middle 95 %, given what is believed about preferences",
        sentence="The line marks the choice: the loss at which expected welfare is highest. The curve says where the "
        "best one would lie if preferences were known.",
        table=FigureTable(
            caption=f"Where the best {letter} lies, given what is believed about preferences",
            columns=(
                Column("loss", f"privacy loss {letter}", "loss"),
                likely if discrete else Column("density", f"probability per unit of {letter}"),
                Column("below", "probability that the best one is no higher", "percent"),
                Column("kind", "marked as", "text"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


def regret_distribution(known: UncertainChoice) -> Figure:
    """How likely each regret is to be exceeded, with its expectation: what perfect information is worth."""
    regrets, weights = known.regrets(), known.weights
    expected, worst = known.value_of_perfect_information, known.regret_quantile(LEVEL)
    largest = max(known.regret_quantile(0.995), expected * 2, 1e-300)
    kinds = {expected: "expected", worst: "exceeded in 5 of 100"}
    grid = sorted({*(largest * np.linspace(0, 1, 101) ** 2).tolist(), *kinds})  # most happens near 0
    order = np.argsort(regrets, kind="stable")
    reached = np.concatenate([[0.0], np.cumsum(weights[order])])
    exceeded = 1 - reached[np.searchsorted(regrets[order], grid, side="right")]
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {"regret": at, "exceeded": max(float(share), 0.0), "kind": kinds.get(at), "marked": at in kinds}
        for at, share in zip(grid, exceeded.tolist(), strict=True)
    )

    def layout(width: int) -> Mark:
        plane = Plane(
            Ruler("regret of the choice, USD", 0.0, grid[-1], labels=MONEY_AXIS),
            Ruler("↑ probability of a larger regret", 0.0, 1.0, labels=PERCENT_AXIS),
        )
        marked = [row for row in rows if row["marked"]]
        labels = {
            "expected": f"expected: {money(expected, short=True)}\n= value of perfect information",
            "exceeded in 5 of 100": f"5 in 100: more than\n{money(worst, short=True)}",
        }
        marks: list[Mark] = [
            plane.curve(rows, "regret", "exceeded", color=LIGHT.preference),
            plane.points(marked, "regret", "exceeded", color=LIGHT.preference, name="marked", filled=True),
        ]
        for row in marked:
            at, right = amount(row, "regret"), plane.across.share(amount(row, "regret")) > 0.6
            side: Align = "right" if right else "left"
            shift, words = (-4 if right else 12, -12), labels[str(row["kind"])]
            marks.append(plane.words(at, amount(row, "exceeded"), words, align=side, shift=shift))
        return layered(*marks, height=300 if width >= ROOMY else 250)

    loss = stated_loss(known.choice.loss)
    return Figure(
        "uncertainty-regret",
        title=f"Choosing {loss} now costs {money(expected)} in expectation against knowing better",
        subtitle="Probability that the choice turns out to cost society more than an amount, against the best one",
        sentence="The curve falls from all cases to few: how likely it is that the choice turns out to cost more than "
        "an amount, against the best one.",
        table=FigureTable(
            caption="How likely the choice costs society more than an amount, against the best choice",
            columns=(
                Column("regret", "regret", "money"),
                Column("exceeded", "probability of more", "percent"),
                Column("kind", "marked as", "text"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


def survey_worth(known: UncertainChoice, *, spread: float, parameter: str | None = None) -> Figure:
    """What asking more people is worth to the decision, by their number, below what perfect information is worth."""
    from dualmandate.choice import survey_value

    sizes = sorted({*SIZES, SIGNPOST})
    found = [survey_value(known, size, spread=spread, parameter=parameter) for size in sizes]
    rows: tuple[Mapping[str, Cell], ...] = tuple(
        {
            "respondents": survey.respondents,
            "value": survey.value,
            "share": survey.share,
            "marked": survey.respondents == SIGNPOST,
        }
        for survey in found
    )
    here = next(row for row in rows if row["marked"])
    value, perfect = amount(here, "value"), known.value_of_perfect_information

    def layout(width: int) -> Mark:
        roomy = width >= ROOMY
        plane = Plane(
            Ruler("people asked", amount(rows[0], "respondents"), amount(rows[-1], "respondents"), log=True),
            Ruler("↑ worth to this decision, USD", 0.0, (perfect or 1.0) * 1.18, labels=MONEY_AXIS),
        )
        share = percent(amount(here, "share"))
        words = f"{SIGNPOST:,} people: {money(value, short=True)}\n{share} of perfect"
        below = plane.up.share(value) > 0.3
        above = f"perfect information: {money(perfect, short=True)}"
        return layered(
            plane.horizontal(perfect, color=LIGHT.quiet, dash=(6, 4)),
            plane.words(plane.across.low, perfect, above, color=LIGHT.quiet, shift=(4, -6)),
            plane.curve(rows, "respondents", "value", color=LIGHT.production),
            plane.points([here], "respondents", "value", color=LIGHT.production, name="signpost", filled=True),
            plane.words(
                SIGNPOST,
                value,
                words,
                align="left" if roomy else "center",
                shift=(10 if roomy else 0, 16 if below else -14),
            ),
            height=300 if roomy else 250,
        )

    return Figure(
        "uncertainty-survey",
        title=f"Another survey of {SIGNPOST:,} people is worth {money(value)} to this decision",
        subtitle="Expected gain from choosing after the survey; one answer about the "
        f"{found[0].parameter.replace('_', ' ')} has a standard deviation of {spread:g} in logarithms",
        sentence="Asking more people is worth more to this decision, but never more than knowing preferences exactly.",
        table=FigureTable(
            caption=f"What a survey about {found[0].parameter} is worth to this decision",
            columns=(
                Column("respondents", "people asked", "exact"),
                Column("value", "worth", "money"),
                Column("share", "of what perfect information is worth", "percent"),
            ),
            rows=rows,
        ),
        layout=layout,
    )


def robust(choice: RobustChoice) -> Figure:
    """The choice that needs no probabilities: regret under each extreme preference, and where the worst is least."""
    letter, kind = loss_symbol(choice.privacy_measure), "percent" if choice.relative else "money"
    places = [corner.epsilon for corner in choice.corners]
    lowest, highest = min([*places, choice.epsilon]), max([*places, choice.epsilon])
    margin = max((highest / lowest) ** 0.25, 1.0005)
    low, high = np.exp(choice.cost_grid.grid.points[[0, -1]]).tolist()
    ends = max(lowest / margin, low), min(highest * margin, high)
    grid = log_grid(*ends, through=(choice.epsilon,), points=121)
    # The corners with the largest regrets at the choice, from the lowest best loss to the highest.
    ranked = sorted(choice.corners, key=lambda corner: -corner.regret)[:MOST_CURVES]
    drawn = sorted(ranked, key=lambda corner: corner.epsilon)
    numbers = [choice.corners.index(corner) for corner in drawn]
    rows: list[dict[str, Cell]] = []
    for loss, row in zip(grid, choice.regrets(np.array(grid)), strict=True):
        cells: dict[str, Cell] = {"loss": loss, "worst": float(row.max()), "marked": loss == choice.epsilon}
        rows.append(cells | {f"corner{j}": float(row[i]) for j, i in enumerate(numbers)})

    def layout(width: int) -> Mark:
        top = choice.regret * ROBUST_HEIGHT or 1.0
        letters = int((width - 90) / LETTER)
        keys = [textwrap.wrap(f"{_named(each)}: {number(each.epsilon)}", letters) for each in drawn]
        lines = sum(map(len, keys)) + 1
        height = (280 if width >= ROOMY else 230) + LINE_HEIGHT * lines
        band = top / (1 - LINE_HEIGHT * lines / height)  # above the curves, for what each of them is
        plane = Plane(
            Ruler(f"privacy loss {letter}", grid[0], grid[-1], log=grid[-1] / grid[0] > LONG),
            Ruler(
                f"↑ regret{', share of the least cost' if choice.relative else ', USD'}",
                0.0,
                band,
                labels=PERCENT_AXIS if choice.relative else MONEY_AXIS,
            ),
        )
        marks: list[Mark] = []
        level = band
        for j, corner in enumerate(drawn):
            color, best = SERIES[j % len(SERIES)], {"x": corner.epsilon, "y": 0.0}
            marks += [
                plane.curve(piece, "loss", f"corner{j}", color=color, dash=(6, 4), thick=2)
                for piece in _pieces(rows, f"corner{j}", top)
            ]
            marks.append(plane.points([best], "x", "y", color=color, name=f"corner{j}", filled=True))
            marks.append(plane.words(plane.across.low, level, "\n".join(keys[j]), color=color, shift=(4, 5)))
            level -= band * LINE_HEIGHT * len(keys[j]) / height
        here = [row for row in rows if row["marked"]]
        marks += [
            *(plane.curve(piece, "loss", "worst", color=LIGHT.ink, thick=3) for piece in _pieces(rows, "worst", top)),
            plane.points(here, "loss", "worst", color=LIGHT.ink, name="optimum"),
            plane.words(choice.epsilon, choice.regret, chosen, align="center", shift=(0, 14)),
        ]
        return layered(*marks, height=height)

    chosen = f"{letter} = {number(float(choice.loss), 5)}"
    size = percent(choice.regret) if choice.relative else money(choice.regret)
    return Figure(
        "uncertainty-robust",
        title=f"Whatever the preferences, {chosen} costs at most {size} more than the best",
        subtitle=f"Regret of each loss under the extreme preferences (dashed; after the colon, their best {letter}) "
        "and the worst of them (solid)",
        sentence="Where only a range is agreed on, the open circle is the loss whose worst regret over the range is "
        "least.",
        table=FigureTable(
            caption=f"Regret of each {letter} under the extreme preferences of the set",
            columns=(
                Column("loss", f"privacy loss {letter}", "loss"),
                Column("worst", "worst regret", kind),
                *(Column(f"corner{j}", f"regret {_named(corner)}", kind) for j, corner in enumerate(drawn)),
            ),
            rows=tuple(rows),
        ),
        layout=layout,
    )


def _across(known: UncertainChoice, losses: Sequence[float]) -> Ruler:
    """The axis of losses, with room beyond a limit for the words beside it."""
    letter = loss_symbol(known.choice.privacy_measure)
    low, high = min(losses), max(losses)
    log = high / low > LONG
    bounds, (below, above) = known.cost_grid.bounds, known.at_limits
    room = (high / low) ** 0.35 if log else (high - low) * 0.35
    if above > 0 and bounds.highest is not None and not known.beliefs.discrete:
        high = max(bounds.highest * room if log else bounds.highest + room, known.choice.epsilon)
    if below > 0 and bounds.lowest is not None and not known.beliefs.discrete:
        low = min(bounds.lowest / room if log else max(bounds.lowest - room, low / 2), known.choice.epsilon)
    edge = 1.03 if log else 0.03 * (high - low)
    ends = (low / edge, high * edge) if log else (max(low - edge, 0.0), high + edge)
    return Ruler(f"best privacy loss {letter}", *ends, log=log)


def _densities(known: UncertainChoice, through: tuple[float, ...]) -> list[dict[str, Cell]]:
    ends = known.quantile(FARTHEST), known.quantile(1 - FARTHEST)
    spread = max((ends[1] / ends[0]) ** 0.1, 1.02)
    bounds = known.cost_grid.bounds
    low = max(min(ends[0], *through) / spread, bounds.lowest or 0.0)
    high = min(max(ends[1], *through) * spread, bounds.highest or math.inf)
    grid = log_grid(low, high, through=through, points=121) if low < high else [low]
    heights = (known.density(np.array(grid)) / np.array(grid)).tolist()
    below = [float(known.weights[known.epsilons <= loss * (1 + 1e-12)].sum()) for loss in grid]
    return [
        {"loss": loss, "density": height, "below": share}
        for loss, height, share in zip(grid, heights, below, strict=True)
    ]


def _states(known: UncertainChoice) -> list[dict[str, Cell]]:
    order: Sequence[int] = np.argsort(known.epsilons, kind="stable").tolist()
    reached, rows = 0.0, []
    for i in order:
        reached += float(known.weights[i])
        rows.append(
            {"loss": float(known.epsilons[i]), "probability": float(known.weights[i]), "below": min(reached, 1.0)}
        )
    return [dict(row) for row in rows]


def _limits(known: UncertainChoice, plane: Plane) -> list[Mark]:
    """Limits at which the best loss would stand, with how likely that is."""
    bounds, (below, above) = known.cost_grid.bounds, known.at_limits
    marks: list[Mark] = []
    sides: tuple[tuple[float | None, float, Align, int], ...] = (
        (bounds.lowest, below, "right", -6),
        (bounds.highest, above, "left", 6),
    )
    for at, share, align, shift in sides:
        if at is not None and share > 0 and plane.across.low < at < plane.across.high:
            words = f"{percent(share)}\nat the limit"
            marks += [
                plane.vertical(at, color=LIGHT.limit, dash=(4, 3)),
                plane.words(at, plane.up.high * 0.5, words, color=LIGHT.limit, align=align, shift=(shift, 0)),
            ]
    return marks


def _pieces(rows: Sequence[Mapping[str, Cell]], key: str, top: float) -> list[list[Mapping[str, Cell]]]:
    """The stretches of a curve that stay below a height."""
    pieces: list[list[Mapping[str, Cell]]] = [[]]
    for row in rows:
        if amount(row, key) <= top:
            pieces[-1].append(row)
        elif pieces[-1]:
            pieces.append([])
    return [piece for piece in pieces if piece]


def _named(corner: Corner) -> str:
    """An extreme preference in a few words."""
    if not corner.values:
        return "in one scenario"
    parts = [f"{name.replace('_', ' ')} {number(value)}" for name, value in corner.values.items()]
    return f"at {', '.join(parts)}"
