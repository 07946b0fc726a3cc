"""How sure the choice is: under other weights and inputs, where preferences are not known exactly, and robust choices.

Welfare is −η·P(ε) − m·D(ε), P the privacy cost and D the data loss as stated, η and m what the weight on privacy and
the value of accuracy are multiplied by. The best ε depends on η/m alone. Both run over the same even steps of a
logarithm, so their ratio takes 2·41 − 1 values, and 81 choices fill the grid of 41 × 41 exactly.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from dualmandate.choice import choose
from dualmandate.errors import Refusal
from dualmandate.frontier.numerics import log_grid
from dualmandate.population.units import plural
from dualmandate.population.wording import SYMBOLS, chosen_loss, money, number, percent, stated_loss
from dualmandate.report.figures.figure import (
    LETTER,
    LINE_HEIGHT,
    Align,
    Clearing,
    Figure,
    Mark,
    Plane,
    Ruler,
    lanes,
    layered,
    shortened,
)
from dualmandate.report.theme import LIGHT, ROOMY, SERIES, Column, FigureTable, Row, cells, plain_unit

if TYPE_CHECKING:
    from dualmandate.choice import Choice, Corner, Limits, RobustChoice, SocialWelfare, UncertainChoice
    from dualmandate.choice.statics import TornadoRow
    from dualmandate.frontier import Frontier

LEVEL = 0.95
FARTHEST = 0.0005  # probability left beyond either end of the picture
FAR_OUT = 64.0  # times the choice: beyond it a distribution without an upper bound is not drawn
HEADROOM = 1.25
LONG = 8.0  # ratio of losses from which on the axis is logarithmic
FEW = 60  # discrete states up to which each is drawn as a line of its own
SIZES = tuple(round(10 ** (i / 8)) for i in range(8, 41))  # 10 to 100,000 people, eight to a decade
SIGNPOST = 1000  # people
MOST_CURVES = 4  # corners drawn, the worst; the table holds their largest regret
ROBUST_HEIGHT = 2.2  # times the worst regret of the choice
STEPS = 41  # along each slider; odd, so that the middle is what was stated
DECADES = 2  # from a hundredth of what was stated to a hundred times it
MOST_ROWS = 12  # of the tornado: the widest are drawn; the table holds all
ROW_HEIGHT = 46  # px
WORST_SHOWN = 1e4  # times the error at the choice: choices with larger ones are drawn at the upper edge
STILL = 1e-9  # relative change of the choice that is no change
LONG_RANGE = 20.0  # ratio of losses from which on the axis is logarithmic


def distribution(known: UncertainChoice) -> Figure:
    """The distribution of the best loss, with the chosen one, and where 95 in 100 of what is believed put it.

    `density` is probability per unit of loss; for a discrete set `probability` is that of the state.
    """
    letter, discrete, chosen = SYMBOLS[known.choice.privacy_measure], known.beliefs.discrete, known.choice.epsilon
    low, high = known.interval(LEVEL)
    ends = {low: "lower end", high: "upper end"}
    kinds = {chosen: "chosen"} | {end: word for end, word in ends.items() if 0 < end < math.inf and not discrete}
    rows: tuple[Row, ...] = tuple(
        {**row, "kind": kinds.get(row["loss"]), "marked": row["loss"] in kinds}
        for row in (_states(known) if discrete else _densities(known, tuple(kinds)))
    )
    likely = Column("probability", "probability", "percent")

    def layout(width: int) -> Mark:
        top = max(row["probability" if discrete else "density"] for row in rows) * HEADROOM or 1.0
        across = _across(known, [row["loss"] for row in rows])
        plane = Plane(across, Ruler("↑ how likely", 0.0, top, labels="percent", hidden=not discrete))
        marks: list[Mark] = []
        if discrete:
            marks += [plane.vertical(row["loss"], color=LIGHT.preference, top=row["probability"]) for row in rows[:FEW]]
            marks.append(plane.points(rows, "loss", "probability", color=LIGHT.preference, name="states", filled=True))
        else:
            inside = [row for row in rows if low <= row["loss"] <= high]
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

    span = known.span(LEVEL)
    return Figure(
        "uncertainty",
        title=f"The best {letter} lies {span}, depending on what people prefer"
        if discrete
        else f"With probability {percent(LEVEL)} the best {letter} lies {span}",
        subtitle="Each state of preferences, and how likely it is"
        if discrete
        else "Density; shaded: the middle 95 %, given what is believed about preferences",
        sentence="The line marks the choice: the loss at which expected welfare is highest. The curve says where the "
        "best one would lie if preferences were known.",
        table=FigureTable.of(
            rows,
            f"Where the best {letter} lies, given what is believed about preferences",
            Column("loss", f"privacy loss {letter}", "loss"),
            likely if discrete else Column("density", f"probability per unit of {letter}"),
            Column("below", "probability that the best one is no higher", "percent"),
            Column("kind", "marked as", "text"),
        ),
        layout=layout,
    )


def regret_distribution(known: UncertainChoice) -> Figure:
    """How likely each regret is to be exceeded, with its expectation: what perfect information is worth."""
    regrets, weights, currency = known.regrets(), known.weights, known.choice.currency
    expected, worst = known.value_of_perfect_information, known.regret_quantile(LEVEL)
    largest = max(known.regret_quantile(0.995), expected * 2, 1e-300)
    kinds = {expected: "expected", worst: "exceeded in 5 of 100"}
    grid = sorted({*(largest * np.linspace(0, 1, 101) ** 2).tolist(), *kinds})  # most happens near 0
    order = np.argsort(regrets, kind="stable")
    reached = np.concatenate([[0.0], np.cumsum(weights[order])])
    exceeded = 1 - reached[np.searchsorted(regrets[order], grid, side="right")]
    rows: tuple[Row, ...] = tuple(
        {"regret": at, "exceeded": max(float(share), 0.0), "kind": kinds.get(at), "marked": at in kinds}
        for at, share in zip(grid, exceeded.tolist(), strict=True)
    )

    def layout(width: int) -> Mark:
        plane = Plane(
            Ruler(f"regret of the choice, {currency}", 0.0, grid[-1], labels=currency),
            Ruler("↑ probability of a larger regret", 0.0, 1.0, labels="percent"),
        )
        marked = [row for row in rows if row["marked"]]
        labels = {
            "expected": f"expected: {money(expected, currency)}\n= value of perfect information",
            "exceeded in 5 of 100": f"5 in 100: more than\n{money(worst, currency)}",
        }
        marks: list[Mark] = [
            plane.curve(rows, "regret", "exceeded", color=LIGHT.preference),
            plane.points(marked, "regret", "exceeded", color=LIGHT.preference, name="marked", filled=True),
        ]
        for row in marked:
            at, right = row["regret"], plane.across.share(row["regret"]) > 0.6
            side: Align = "right" if right else "left"
            shift, words = (-4 if right else 12, -12), labels[str(row["kind"])]
            marks.append(plane.words(at, row["exceeded"], words, align=side, shift=shift))
        return layered(*marks, height=300 if width >= ROOMY else 250)

    loss = stated_loss(known.choice.loss)
    return Figure(
        "uncertainty-regret",
        title=f"Choosing {loss} now costs {money(expected, currency)} in expectation against knowing better",
        subtitle="Probability that the choice turns out to cost society more than an amount, against the best one",
        sentence="The curve falls from all cases to few: how likely it is that the choice turns out to cost more than "
        "an amount, against the best one.",
        table=FigureTable.of(
            rows,
            "How likely the choice costs society more than an amount, against the best choice",
            Column("regret", "regret", currency),
            Column("exceeded", "probability of more", "percent"),
            Column("kind", "marked as", "text"),
        ),
        layout=layout,
    )


def survey_worth(known: UncertainChoice, *, spread: float, parameter: str | None = None) -> Figure:
    """What asking more people is worth to the decision, by their number, below what perfect information is worth."""
    from dualmandate.choice import survey_value

    sizes = sorted({*SIZES, SIGNPOST})
    found = [survey_value(known, size, spread=spread, parameter=parameter) for size in sizes]
    rows = [cells(survey, "respondents", "value", "share", marked=survey.respondents == SIGNPOST) for survey in found]
    here = next(row for row in rows if row["marked"])
    value, perfect, currency = here["value"], known.value_of_perfect_information, known.choice.currency

    def layout(width: int) -> Mark:
        roomy = width >= ROOMY
        plane = Plane(
            Ruler("people asked", rows[0]["respondents"], rows[-1]["respondents"], log=True),
            Ruler(f"↑ worth to this decision, {currency}", 0.0, (perfect or 1.0) * 1.18, labels=currency),
        )
        share = percent(here["share"])
        words = f"{SIGNPOST:,} people: {money(value, currency)}\n{share} of perfect"
        side: Align = "left" if roomy else "center"
        shift = (10 if roomy else 0, 16 if plane.up.share(value) > 0.3 else -14)
        above = f"perfect information: {money(perfect, currency)}"
        return layered(
            plane.horizontal(perfect, color=LIGHT.quiet, dash=(6, 4)),
            plane.words(plane.across.low, perfect, above, color=LIGHT.quiet, shift=(4, -6)),
            plane.curve(rows, "respondents", "value", color=LIGHT.production),
            plane.points([here], "respondents", "value", color=LIGHT.production, name="signpost", filled=True),
            plane.words(SIGNPOST, value, words, align=side, shift=shift),
            height=300 if roomy else 250,
        )

    return Figure(
        "uncertainty-survey",
        title=f"Another survey of {SIGNPOST:,} people is worth {money(value, currency)} to this decision",
        subtitle="Expected gain from choosing after the survey; one answer about the "
        f"{found[0].parameter.replace('_', ' ')} has a standard deviation of {spread:g} in logarithms",
        sentence="Asking more people is worth more to this decision, but never more than knowing preferences exactly.",
        table=FigureTable.of(
            rows,
            f"What a survey about {found[0].parameter} is worth to this decision",
            Column("respondents", "people asked", "exact"),
            Column("value", "worth", currency),
            Column("share", "of what perfect information is worth", "percent"),
        ),
        layout=layout,
    )


def robust(choice: RobustChoice) -> Figure:
    """The choice that needs no probabilities: regret under each extreme preference, and where the worst is least."""
    letter, kind = SYMBOLS[choice.privacy_measure], "percent" if choice.relative else choice.currency
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
    rows: list[Row] = []
    for loss, row in zip(grid, choice.regrets(np.array(grid)), strict=True):
        cells: Row = {"loss": loss, "worst": float(row.max()), "marked": loss == choice.epsilon}
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
                f"↑ regret, {'share of the least cost' if choice.relative else choice.currency}", 0.0, band, labels=kind
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
        ]
        keyed = (0.0, 0.0, float(width), float(LINE_HEIGHT * lines))
        clearing = Clearing(plane, width - 80, height, boxes=(keyed,))
        for key in ("worst", *(f"corner{j}" for j in range(len(drawn)))):
            clearing = clearing.with_line([(row["loss"], row[key]) for row in rows if row[key] <= band])
        spot, _ = clearing.named([(choice.epsilon, choice.regret)], chosen)
        marks += [] if spot is None else [plane.words(*spot, chosen, align="center")]
        return layered(*marks, height=height)

    chosen = f"{letter} = {number(float(choice.loss), 5)}"
    size = percent(choice.regret) if choice.relative else money(choice.regret, choice.currency)
    return Figure(
        "uncertainty-robust",
        title=f"Whatever the preferences, {chosen} costs at most {size} more than the best",
        subtitle=f"Regret of each loss under the extreme preferences (dashed; after the colon, their best {letter}) "
        "and the worst of them (solid)",
        sentence="Where only a range is agreed on, the open circle is the loss whose worst regret over the range is "
        "least.",
        table=FigureTable.of(
            rows,
            f"Regret of each {letter} under the extreme preferences of the set",
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("worst", "worst regret", kind),
            *(Column(f"corner{j}", f"regret {_named(corner)}", kind) for j, corner in enumerate(drawn)),
        ),
        layout=layout,
    )


def _across(known: UncertainChoice, losses: Sequence[float]) -> Ruler:
    """The axis of losses, with room beyond a limit for the words beside it."""
    letter = SYMBOLS[known.choice.privacy_measure]
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


def _densities(known: UncertainChoice, through: tuple[float, ...]) -> list[Row]:
    placed = known.epsilons[(known.epsilons > 0) & (known.epsilons < FAR_OUT * known.choice.epsilon)]
    ends = max(known.quantile(FARTHEST), placed.min()), min(known.quantile(1 - FARTHEST), placed.max())
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


def _states(known: UncertainChoice) -> list[Row]:
    order = np.argsort(known.epsilons, kind="stable")
    losses, weights = known.epsilons[order], known.weights[order]
    table = np.column_stack([losses, weights, np.minimum(np.cumsum(weights), 1.0)]).tolist()
    return [dict(zip(("loss", "probability", "below"), row, strict=True)) for row in table]


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


def _pieces(rows: Sequence[Row], key: str, top: float) -> list[list[Row]]:
    """The stretches of a curve that stay below a height."""
    pieces: list[list[Row]] = [[]]
    for row in rows:
        if row[key] <= top:
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


@dataclass(frozen=True)
class WhatIf:
    """Choices under other weights. `choices[i − j + steps − 1]` belongs to step i of privacy and step j of accuracy."""

    multiples: tuple[float, ...]  # of the weight on privacy, and of the value of accuracy
    choices: tuple[Choice | Refusal, ...]  # by rising ratio of the two; a refusal where there is no optimum

    def at(self, privacy: int, accuracy: int) -> Choice | Refusal:
        """The choice at one step of each slider, counted from 0."""
        return self.choices[privacy - accuracy + len(self.multiples) - 1]

    def cost(self, privacy: int, accuracy: int) -> float | None:
        """What society loses there, USD, the two parts weighed as the sliders say; None where there is no choice."""
        choice = self.at(privacy, accuracy)
        if isinstance(choice, Refusal):
            return None
        # Its privacy cost is already multiplied by the ratio of the two weights.
        return self.multiples[accuracy] * (choice.privacy_cost + choice.data_loss)


def what_if_choices(
    frontier: Frontier, welfare: SocialWelfare, limits: Limits | None = None, *, steps: int = STEPS
) -> WhatIf:
    """Every choice of the grid, by `choose`."""
    middle = steps // 2
    multiples = tuple(10 ** (DECADES * (i - middle) / middle) for i in range(steps))
    choices: list[Choice | Refusal] = []
    for k in range(2 * steps - 1):
        ratio = 10 ** (DECADES * (k - (steps - 1)) / middle)
        groups = tuple(replace(g, relative_privacy_weight=g.relative_privacy_weight * ratio) for g in welfare.groups)
        try:
            choices.append(choose(frontier, replace(welfare, groups=groups), limits))
        except Refusal as refusal:
            choices.append(refusal)
    return WhatIf(multiples, tuple(choices))


def what_if(frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, grid: WhatIf) -> Figure:
    """Typical error against privacy loss, a dot for every choice of the grid, an open circle at the one in force.

    The table has the choice at each ratio of weights, from accuracy first to privacy first. The marks named `places`
    and `here` are what a page moves: the circle goes to the place of the choice looked up.
    """
    letter, in_money = SYMBOLS[choice.privacy_measure], choice.root_mean_squared_error is None
    count = len(grid.choices)
    rows: list[Row] = []
    for k, made in enumerate(grid.choices):
        ratio = 10 ** (DECADES * (k - count // 2) / (len(grid.multiples) // 2))
        row: Row = {"ratio": ratio, "marked": k == count // 2, "place": k}
        if isinstance(made, Refusal):
            row |= {"loss": None, "error": None, "consequence": None, "bound_by": f"no choice: {made.what}"}
        else:
            # Typical error in the tables' unit, or the cost of errors where units differ.
            error = made.data_loss if made.root_mean_squared_error is None else made.root_mean_squared_error
            consequence = made.root_mean_squared_consequence
            row |= {"loss": made.epsilon, "error": error, "consequence": consequence, "bound_by": made.bound_by}
        rows.append(row)

    def error_at(loss: float) -> float:
        if in_money:
            return welfare.data_loss(frontier, loss)
        errors = frontier.table_errors(loss)
        values = [value for value in welfare.table_values if not value.parts]
        squares = [errors[value.table] * value.grid**2 for value in values]
        numbers = sum(frontier.query_counts[value.table] for value in values)
        return math.sqrt(math.fsum(squares) / numbers)

    def layout(width: int) -> Mark:
        made = [row for row in rows if row["loss"] is not None]
        here = next(row for row in rows if row["marked"])
        low, high = min(row["loss"] for row in made) / 1.3, max(row["loss"] for row in made) * 1.3
        curve = [{"loss": loss, "error": error_at(loss)} for loss in log_grid(low, high, within=frontier.known_losses)]
        upward = f"↑ typical error (RMSE), {plural(choice.tables[0].unit)}"
        upward = f"↑ cost of errors, {choice.currency}" if in_money else upward
        # Where a table has to be fit for use, errors of the others jump at the least loss that allows it.
        worst = min(max(row["error"] for row in made), WORST_SHOWN * here["error"])
        ends, kind = (curve[-1]["error"], max(curve[0]["error"], worst)), choice.currency if in_money else "number"
        made = [{**row, "error": min(row["error"], ends[1])} for row in made]
        plane = Plane(Ruler(f"privacy loss {letter}", low, high, log=True), Ruler(upward, *ends, log=True, labels=kind))
        return layered(
            plane.curve(curve, "loss", "error", color=LIGHT.production, thick=1.8),
            plane.dots(made, "loss", "error", color=LIGHT.production, name="places"),
            plane.points([here], "loss", "error", color=LIGHT.ink, name="here"),
            height=300 if width >= ROOMY else 260,
        )

    return Figure(
        "what-if",
        title=f"The heavier privacy weighs, the smaller {letter} and the larger the errors",
        subtitle=f"Dots: choices under other weights; circle: {stated_loss(choice.loss)}; both axes logarithmic",
        sentence="The weight on privacy and the value of accuracy are judgments. What would be chosen if they were "
        "others was worked out beforehand; the sliders look it up.",
        table=FigureTable.of(
            rows,
            f"The chosen {letter} if privacy weighed more or less against accuracy",
            Column("ratio", "privacy weighs … times as much as stated"),
            Column("loss", f"chosen {letter}", "loss"),
            Column("error", "cost of errors", choice.currency) if in_money else Column("error", "typical error (RMSE)"),
            Column("consequence", "typical consequence of one error", choice.currency),
            Column("bound_by", "decided by", "text"),
        ),
        layout=layout,
    )


def tornado(inputs: Sequence[TornadoRow], choice: Choice) -> Figure:
    """One bar an input whose range is stated, from the choice at its low end to that at its high end, widest on top.

    The choice at an end is empty where there is none; `note` then says why.
    """
    letter, best = SYMBOLS[choice.privacy_measure], choice.epsilon
    rows: tuple[Row, ...] = tuple(
        {
            "input": row.name.replace("_", " "),
            "value": row.value,
            "unit": plain_unit(row.unit),
            "low_value": row.low.value,
            "low_loss": row.low.epsilon,
            "high_value": row.high.value,
            "high_loss": row.high.epsilon,
            "note": row.low.refusal or row.high.refusal,
        }
        for row in inputs
    )
    drawn = [row for row in rows if _moves(row, best)][:MOST_ROWS] or list(rows[:1])
    losses = [row[key] for row in drawn for key in ("low_loss", "high_loss") if row[key] is not None]
    low, high = min([*losses, best]), max([*losses, best])

    def layout(width: int) -> Mark:
        log = high / low > LONG_RANGE
        margin = 1.25 if log else 0.12 * (high - low or best)
        across = (low / margin, high * margin) if log else (low - margin, high + margin)
        plane = lanes(Ruler(f"chosen {letter}", *across, log=log), len(drawn))
        bars = {
            end: [
                {"from": best, "to": row[f"{end}_loss"], "y": i + 0.72, "input": row["input"]}
                for i, row in enumerate(drawn)
                if row[f"{end}_loss"] is not None
            ]
            for end in ("low", "high")
        }
        marks = [
            plane.bars(bars["low"], color=LIGHT.production),
            plane.bars(bars["high"], color=LIGHT.preference),
            plane.upright(best, [(i + 0.5, i + 0.94) for i in range(len(drawn))], color=LIGHT.ink),  # beside no words
        ]
        for i, row in enumerate(drawn):  # the input and its range, above its bar
            roomy, found = width >= ROOMY, f"{letter} {_span(row)}"
            span = f": {number(row['low_value'])} to {number(row['high_value'])}" * roomy
            if roomy and row["unit"] != "pure number":
                span += f" {row['unit']}"
            called = str(row["input"]) if roomy else str(row["input"]).removeprefix("value of ")
            name = shortened(called, width, f"{span}  {found}")
            marks.append(plane.words(plane.across.low, i + 0.42, f"{name}{span}", shift=(0, -4)))
            right = plane.across.high, i + 0.42, found
            marks.append(plane.words(*right, color=LIGHT.quiet, align="right", shift=(0, -4)))
        return layered(*marks, height=ROW_HEIGHT * len(drawn))

    return Figure(
        "tornado",
        title=f"Over what is stated of any one number, {letter} is between {chosen_loss(low)} and {chosen_loss(high)}",
        subtitle=f"Chosen {letter} with one number at the low end (blue) or high end (orange) of what is stated of it; "
        f"line: {stated_loss(choice.loss)}",
        sentence="Each bar shows where the choice would fall if one number were different and all others as stated. "
        "Its ends come from stated errors, ranges and readings; numbers of which nothing is stated have no bar.",
        table=FigureTable.of(
            rows,
            f"The chosen {letter} with one input at a time at either end of what is stated of it",
            Column("input", "input", "text"),
            Column("value", "stated", "exact"),
            Column("unit", "unit", "text"),
            Column("low_value", "low end"),
            Column("low_loss", f"{letter} there", "loss"),
            Column("high_value", "high end"),
            Column("high_loss", f"{letter} there", "loss"),
            Column("note", "no choice, because", "text"),
        ),
        layout=layout,
    )


def _span(row: Row) -> str:
    """The choices at both ends of what is stated of a number, from the smaller to the larger."""
    found = sorted(row[key] for key in ("low_loss", "high_loss") if row[key] is not None)
    words = " to ".join(dict.fromkeys(chosen_loss(each) for each in found))
    return words if len(found) == 2 else f"{words} or none"


def _moves(row: Row, loss: float) -> bool:
    """Whether either end of the range leads to another choice, or to none."""
    ends = [row[key] for key in ("low_loss", "high_loss")]
    return any(end is not None for end in ends) and any(
        end is None or abs(float(end) / loss - 1) > STILL for end in ends
    )
