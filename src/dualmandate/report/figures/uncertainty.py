"""The best privacy loss when preferences are not known exactly, and how wrong the choice may turn out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from dualmandate.population.wording import loss_symbol, money, number, percent, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS, PERCENT_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Align, Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import UncertainChoice

LEVEL = 0.95
FARTHEST = 0.0005  # probability left beyond either end of the picture
HEADROOM = 1.25
LONG = 8.0  # ratio of losses from which on the axis is logarithmic
FEW = 60  # discrete states up to which each is drawn as a line of its own


def distribution_twin(known: UncertainChoice) -> Twin:
    """Rows behind the picture: how likely the best loss is near each loss, and below it; or each state by itself.

    `density` is probability per unit of loss; for a discrete set `probability` is that of the state.
    """
    letter = loss_symbol(known.choice.currency)
    marks = {known.choice.epsilon: "chosen"}
    if not known.beliefs.discrete:
        marks |= dict(zip(known.interval(LEVEL), ("lower end", "upper end"), strict=True))
    rows = _states(known) if known.beliefs.discrete else _densities(known, tuple(marks))
    cells: tuple[Mapping[str, Cell], ...] = tuple(
        {**row, "kind": marks.get(amount(row, "loss")), "marked": amount(row, "loss") in marks} for row in rows
    )
    likely = Column("probability", "probability", "percent")
    return Twin(
        caption=f"Where the best {letter} lies, given what is believed about preferences",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            likely if known.beliefs.discrete else Column("density", f"probability per unit of {letter}"),
            Column("below", "probability that the best one is no higher", "percent"),
            Column("kind", "marked as", "text"),
        ),
        rows=cells,
    )


def distribution(known: UncertainChoice, *, width: int = WIDE) -> alt.LayerChart:
    """The distribution of the best loss, with the chosen one, and where 95 in 100 of what is believed put it."""
    twin, letter = distribution_twin(known), loss_symbol(known.choice.currency)
    height_key = "probability" if known.beliefs.discrete else "density"
    low, high = known.interval(LEVEL)
    top = max(amount(row, height_key) for row in twin.rows) * HEADROOM or 1.0
    across = _across(known, [amount(row, "loss") for row in twin.rows])
    plane = Plane(across, Ruler("↑ how likely", 0.0, top, labels=PERCENT_AXIS, hidden=not known.beliefs.discrete))
    marks: list[Mark] = []
    if known.beliefs.discrete:
        marks += [
            plane.vertical(amount(row, "loss"), color=LIGHT.preference, top=amount(row, "probability"))
            for row in twin.rows[:FEW]
        ]
        marks.append(plane.points(twin.rows, "loss", "probability", color=LIGHT.preference, name="states", filled=True))
    else:
        inside = [row for row in twin.rows if low <= amount(row, "loss") <= high]
        marks += [
            plane.below(inside, "loss", "density"),
            plane.curve(twin.rows, "loss", "density", color=LIGHT.preference),
            *_limits(known, plane),
        ]
    chosen = known.choice.epsilon
    crowded = width < ROOMY and known.at_limits[1] > 0
    align: Align = "left" if across.share(chosen) < (0.4 if crowded else 0.5) else "right"
    shift = 8.0 if align == "left" else -8.0
    words = f"{stated_loss(known.choice.loss)}\nhighest expected welfare"
    marks += [
        plane.vertical(chosen, color=LIGHT.ink),
        plane.words(chosen, top, words, align=align, shift=(shift, 6)),
    ]
    span = f"between {number(low)} and {number(high)}"
    title, subtitle = (
        (f"The best {letter} lies {span}, depending on what people prefer", "Each state of preferences, and how likely")
        if known.beliefs.discrete
        else (f"With probability {LEVEL:.0%} the best {letter} lies {span}", "Density; shaded: the middle 95 %, given")
    )
    return dress(
        layered(*marks),
        title=title,
        subtitle=f"{subtitle}{' it is' if known.beliefs.discrete else ' what is believed about preferences'}",
        width=width,
        height=300 if width >= ROOMY else 250,
    )


def regret_distribution_twin(known: UncertainChoice) -> Twin:
    """Rows behind the picture: how likely it is that the choice costs more than an amount against the best one."""
    regrets, weights = known.regrets(), known.weights
    expected, worst = known.value_of_perfect_information, known.regret_quantile(LEVEL)
    largest = max(known.regret_quantile(0.995), expected * 2, 1e-300)
    marks = {expected: "expected", worst: "exceeded in 5 of 100"}
    grid = sorted({*(largest * np.linspace(0, 1, 101) ** 2).tolist(), *marks})  # most happens near 0
    order = np.argsort(regrets, kind="stable")
    reached = np.concatenate([[0.0], np.cumsum(weights[order])])
    exceeded = 1 - reached[np.searchsorted(regrets[order], grid, side="right")]
    rows = tuple(
        {"regret": at, "exceeded": max(float(share), 0.0), "kind": marks.get(at), "marked": at in marks}
        for at, share in zip(grid, exceeded.tolist(), strict=True)
    )
    return Twin(
        caption="How likely the choice costs society more than an amount, against the best choice",
        columns=(
            Column("regret", "regret", "money"),
            Column("exceeded", "probability of more", "percent"),
            Column("kind", "marked as", "text"),
        ),
        rows=rows,
    )


def regret_distribution(known: UncertainChoice, *, width: int = WIDE) -> alt.LayerChart:
    """How likely each regret is to be exceeded, with its expectation: what perfect information is worth."""
    twin = regret_distribution_twin(known)
    last = amount(twin.rows[-1], "regret")
    plane = Plane(
        Ruler("regret of the choice, USD", 0.0, last, labels=MONEY_AXIS),
        Ruler("↑ probability of a larger regret", 0.0, 1.0, labels=PERCENT_AXIS),
    )
    marked = [row for row in twin.rows if row["marked"]]
    labels = {
        "expected": f"expected: {money(known.value_of_perfect_information)}\n= value of perfect information",
        "exceeded in 5 of 100": f"5 in 100: more than\n{money(known.regret_quantile(LEVEL))}",
    }
    marks: list[Mark] = [
        plane.curve(twin.rows, "regret", "exceeded", color=LIGHT.preference),
        plane.points(marked, "regret", "exceeded", color=LIGHT.preference, name="marked", filled=True),
    ]
    for row in marked:
        at, high = amount(row, "regret"), amount(row, "exceeded")
        right = plane.across.share(at) > 0.6
        marks.append(
            plane.words(
                at,
                high,
                labels[str(row["kind"])],
                align="right" if right else "left",
                shift=(-4 if right else 12, -12),
            )
        )
    size = money(known.value_of_perfect_information)
    return dress(
        layered(*marks),
        title=f"Choosing {stated_loss(known.choice.loss)} now costs {size} in expectation against knowing better",
        subtitle="Probability that the choice turns out to cost society more than an amount, against the best one",
        width=width,
        height=300 if width >= ROOMY else 250,
    )


def _across(known: UncertainChoice, losses: Sequence[float]) -> Ruler:
    """The axis of losses, with room beyond a limit for the words beside it."""
    letter = loss_symbol(known.choice.currency)
    low, high = min(losses), max(losses)
    log = high / low > LONG
    bounds, (below, above) = known.landscape.bounds, known.at_limits
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
    bounds = known.landscape.bounds
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
    bounds, (below, above) = known.landscape.bounds, known.at_limits
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
