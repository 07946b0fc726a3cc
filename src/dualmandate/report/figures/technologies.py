"""Technologies beside each other: which one stands on the frontier, where, and what the better one saves."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from dualmandate.population.wording import loss_symbol, money, percent, stated_loss
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.plane import LINE_HEIGHT, MONEY_AXIS, Mark, Plane, Ruler, layered, log_grid, spread
from dualmandate.report.tables import Cell, Column, FigureTable, amount
from dualmandate.report.theme import LIGHT, ROOMY, SERIES, TEXT_SIZE, wrap

if TYPE_CHECKING:
    from dualmandate.choice import Choice, SocialWelfare
    from dualmandate.frontier import Frontier

Cost = Callable[[float], float]  # of errors at a privacy loss, USD
Rows = Sequence[Mapping[str, Cell]]
COMPARED_REACH = 5.0  # from a fifth of the chosen loss to five times it
MOST = 100.0  # times the least cost: the upper edge
TIE = 1e-9  # relative difference of losses below which the earlier technology is named
SAVING_REACH = 4.0  # from a quarter of the chosen loss to four times it
FARTHEST = 1e4  # times the cost at the choice, up and down: the edges
ALIKE = 1e-4  # share of a cost that is no saving


def technologies(
    frontiers: Sequence[Frontier], welfare: SocialWelfare, choice: Choice, *, studies: Collection[str] = ()
) -> Figure:
    """Cost of errors relative to the best technology, which runs along 1×; below it, which one that is.

    A technology whose loss is counted in another currency than the choice's cannot stand on this axis: leave it out.
    `studies` names those that are compared only: they are dashed, and none of them is ever the best, unless there are
    no others.
    """
    drawn = [i for i, frontier in enumerate(frontiers) if frontier.name not in studies] or range(len(frontiers))
    letter, rows, loss = loss_symbol(choice.privacy_measure), list[dict[str, Cell]](), stated_loss(choice.loss)
    for at in log_grid(choice.epsilon / COMPARED_REACH, choice.epsilon * COMPARED_REACH, through=(choice.epsilon,)):
        costs = [welfare.data_loss(frontier, at) for frontier in frontiers]
        least = min(costs[i] for i in drawn)
        best = next(frontiers[i].name for i in drawn if costs[i] <= least * (1 + TIE))
        row: dict[str, Cell] = {"loss": at, "best": best, "marked": at == choice.epsilon}
        for i, cost in enumerate(costs):
            row[f"cost_{i}"], row[f"times_{i}"] = cost, cost / least
        rows.append(row)
    colors = {frontier.name: SERIES[i % len(SERIES)] for i, frontier in enumerate(frontiers)}

    def layout(width: int) -> Mark:
        height, room = (340, 130) if width >= ROOMY else (280, 84)  # px, and px kept free for names at the right
        keys = [f"times_{i}" for i in range(len(frontiers))]
        found = [amount(row, key) for row in rows for key in keys]
        highest, lowest = min(MOST, max(1.5, *found)), max(1 / MOST, min(1.0, *found))
        low, high = amount(rows[0], "loss"), amount(rows[-1], "loss")
        plane = Plane(
            Ruler(f"privacy loss {letter}", low, high * (high / low) ** (room / (width - 60 - room)), log=True),
            Ruler(
                "↑ cost of errors, times that of the best",
                lowest * (highest / lowest) ** (-46 / (height - 46)),
                highest,
                log=True,
                labels=f"datum.value < {lowest} ? '' : format(datum.value, ',~r') + '×'",
            ),
        )
        return layered(
            plane.vertical(choice.epsilon, color=LIGHT.quiet, dash=(2, 4)),
            plane.words(choice.epsilon, highest, loss, align="right", shift=(-6, 6)),
            *_ribbon(plane, rows, colors),
            *(
                plane.curve(
                    rows, "loss", key, color=colors[frontier.name], dash=(6, 4) if frontier.name in studies else (1, 0)
                )
                for key, frontier in zip(keys, frontiers, strict=True)
            ),
            *_compared_names(plane, rows, colors, studies=studies if width >= ROOMY else (), height=height),
            height=height,
        )

    here = next(row for row in rows if row["marked"])
    return Figure(
        "technologies",
        title=_best_at(here, frontiers, loss, studies),
        subtitle="Cost of errors under each technology, divided by the cost under the best; both axes logarithmic"
        + ("; dashed: studies, for comparison only" if studies else ""),
        sentence="At the same privacy loss some kinds of noise do less harm to the tables than others. The thick line "
        "marks the best at each privacy loss, of those that can be published.",
        table=FigureTable(
            caption=f"Cost of errors under each technology at each {letter}",
            columns=(
                Column("loss", f"privacy loss {letter}", "loss"),
                *(
                    Column(f"cost_{i}", f"{_name(frontier.name, studies)}, USD", "money")
                    for i, frontier in enumerate(frontiers)
                ),
                Column("best", "least costly", "text"),
            ),
            rows=tuple(rows),
        ),
        layout=layout,
    )


def _name(name: str, studies: Collection[str]) -> str:
    return f"{name} (study)" if name in studies else name


def _best_at(here: Mapping[str, Cell], frontiers: Sequence[Frontier], loss: str, studies: Collection[str]) -> str:
    """Who is best at the choice, and by how much the next one costs more; a study only where nothing else is there."""
    times = [(amount(here, f"times_{i}"), frontier.name) for i, frontier in enumerate(frontiers)]
    ranked = sorted((cost, name) for cost, name in times if name not in studies)
    if len(ranked) == 1 and studies:
        cost, study = next((cost, name) for cost, name in times if name in studies)
        more = cost - 1
        differs = f"{percent(abs(more))} {'more' if more >= 0 else 'less'}"
        return (
            f"At {loss}, errors cost least with {ranked[0][1]}; with {_name(study, studies)} they would cost {differs}"
        )
    ranked = ranked or sorted(times)
    if len(ranked) == 1:
        return f"One technology was considered: {ranked[0][1]}"
    if ranked[1][0] - 1 < ALIKE:
        return f"At {loss}, {ranked[0][1]} and {ranked[1][1]} err alike"
    more_with = percent(ranked[1][0] - 1)
    return f"At {loss}, errors cost least with {ranked[0][1]}; with {ranked[1][1]} they cost {more_with} more"


def _ribbon(plane: Plane, rows: Rows, colors: Mapping[str, str]) -> list[Mark]:
    """Below the curves, one bar for each stretch on which one technology is the best."""
    marks: list[Mark] = []
    for name, stretch in groupby(rows, key=lambda row: str(row["best"])):
        part = list(stretch)
        bar = [{"x": amount(row, "loss"), "y": 1.0} for row in (part[0], part[-1])]
        marks.append(plane.curve(bar, "x", "y", color=colors[name], thick=9))
        if len(part) > len(rows) / 4:
            marks.append(plane.words(bar[0]["x"], 1.0, f"best: {name}", color=colors[name], shift=(2, 12)))
    return marks


def _compared_names(
    plane: Plane, rows: Rows, colors: Mapping[str, str], *, studies: Collection[str], height: int
) -> list[Mark]:
    """Each technology's name where its curve ends, or where it leaves the picture; names never cover each other."""
    ends = []
    for i, name in enumerate(colors):
        inside = [row for row in rows if amount(row, f"times_{i}") <= plane.up.high]
        if inside and inside[-1]["best"] != name:
            ends.append((amount(inside[-1], "loss"), amount(inside[-1], f"times_{i}"), name))
    places = spread([value for _, value, _ in ends], plane.up, height=height, gap=17)
    return [
        plane.words(loss, place, _name(name, studies), color=colors[name], shift=(8, 0))
        for (loss, _, name), place in zip(ends, places, strict=True)
    ]


def strategies(costs: Mapping[str, Cost], choice: Choice, *, used: str, least: Cost | None = None) -> Figure:
    """Cost of errors against privacy loss; what no strategy reaches is shaded, what is saved stands at the choice.

    `costs` are by name in USD, the plain technology first; `used` names the one in use; `least` is what errors cost at
    least. Losses at which a cost leaves the range of floats are left out.
    """
    letter, place, loss = loss_symbol(choice.privacy_measure), list(costs).index(used), stated_loss(choice.loss)
    rows = list[dict[str, Cell]]()
    for at in log_grid(choice.epsilon / SAVING_REACH, choice.epsilon * SAVING_REACH, through=(choice.epsilon,)):
        found = [cost(at) for cost in costs.values()]
        floor = None if least is None else least(at)
        if not all(math.isfinite(cost) and cost > 0 for cost in (*found, 1.0 if floor is None else floor)):
            continue
        row: dict[str, Cell] = {f"cost_{i}": cost for i, cost in enumerate(found)}
        row |= {"loss": at, "least": floor, "saved": found[0] - found[place], "marked": at == choice.epsilon}
        rows.append(row)
    here = next(row for row in rows if row["marked"])
    at_choice = {name: amount(here, f"cost_{i}") for i, name in enumerate(costs)}
    gain = _gain(at_choice, used)

    def layout(width: int) -> Mark:
        roomy = width >= ROOMY
        height, room = (360, 150) if roomy else (300, 104)  # px, and px kept free for names at the right
        drawn = [*(f"cost_{i}" for i in range(len(costs))), *(["least"] if least is not None else [])]
        found = [amount(row, key) for row in rows for key in drawn]
        bottom = max(min(found), at_choice[used] / FARTHEST) / 1.6
        top = min(max(found), at_choice[used] * FARTHEST)
        low, high = amount(rows[0], "loss"), amount(rows[-1], "loss")
        plane = Plane(
            Ruler(f"privacy loss {letter}", low, high * (high / low) ** (room / (width - 60 - room)), log=True),
            Ruler("↑ cost of errors, USD", bottom, top, log=True, labels=MONEY_AXIS),
        )
        colors = dict(zip(costs, _colors(list(costs), used), strict=True))
        return layered(
            *([] if least is None else _unreachable(plane, rows, roomy=roomy)),
            plane.vertical(choice.epsilon, color=LIGHT.quiet, dash=(2, 4)),
            plane.words(choice.epsilon, top, loss, shift=(6, 6)),
            *(
                plane.curve(rows, "loss", f"cost_{i}", color=color, dash=(1, 0) if name == used else (6, 4))
                for i, (name, color) in enumerate(colors.items())
            ),
            *([] if gain is None else _saved(plane, choice.epsilon, gain)),
            plane.points([here], "loss", f"cost_{place}", color=LIGHT.ink, name="optimum"),
            *_strategy_names(plane, rows, colors, height=height, room=room),
            height=height,
        )

    return Figure(
        "strategies",
        title=f"At {loss}, {f'nothing found does better than {used}' if gain is None else gain.finding}",
        subtitle="Cost of errors at each privacy loss, US dollars; both axes logarithmic"
        + _left(here, at_choice[used]),
        sentence="What is measured need not be what is published: tables can be put together from better measurements. "
        "The bar at the choice is what the technology in use saves against plain noise on the tables.",
        table=FigureTable(
            caption=f"Cost of errors at each {letter}, and what is saved",
            columns=(
                Column("loss", f"privacy loss {letter}", "loss"),
                *(Column(f"cost_{i}", f"{name}, USD", "money") for i, name in enumerate(costs)),
                Column("least", "least possible, USD", "money"),
                Column("saved", "saved, USD", "money"),
            ),
            rows=tuple(rows),
        ),
        layout=layout,
    )


@dataclass(frozen=True)
class _Gain:
    """Two costs at the choice, USD, what their difference is called, and the finding it makes."""

    dearer: float
    cheaper: float
    words: str
    finding: str


def _gain(at_choice: Mapping[str, float], used: str) -> _Gain | None:
    """What the technology in use saves against the plain one, or what another would save; None where all cost alike."""
    naive, cost = next(iter(at_choice.items())), at_choice[used]
    name, least = min(at_choice.items(), key=lambda item: item[1])
    if used != naive[0] and cost <= naive[1] * (1 - ALIKE):
        label, saved = (f"saves {money(naive[1] - cost, short=short)}" for short in (True, False))
        share = percent(1 - cost / naive[1])
        return _Gain(naive[1], cost, label, f"the better technology {saved}: errors cost {share} less")
    if least <= cost * (1 - ALIKE):
        label, saved = (f"would save {money(cost - least, short=short)}" for short in (True, False))
        return _Gain(cost, least, label, f"{name} {saved}: errors would cost {percent(1 - least / cost)} less")
    return None


def _colors(names: list[str], used: str) -> Iterator[str]:
    """Blue for the technology in use, orange for the plain one, other colors for others."""
    others = iter((LIGHT.fourth, LIGHT.third, LIGHT.limit))
    for place, name in enumerate(names):
        yield LIGHT.production if name == used else LIGHT.preference if place == 0 else next(others)


def _left(here: Mapping[str, Cell], cost: float) -> str:
    """How much of the cost a better strategy could still take away."""
    if here["least"] is None:
        return ""
    share = 1 - amount(here, "least") / cost
    if share < ALIKE:
        return "; shaded: out of reach, and the technology in use stands at its edge"
    return f"; shaded: out of reach of any strategy with the same noise, at most {percent(share)} below"


def _unreachable(plane: Plane, rows: Rows, *, roomy: bool) -> list[Mark]:
    words = "no strategy errs less" if roomy else "no strategy\nerrs less"
    return [
        plane.below(rows, "loss", "least"),
        plane.curve(rows, "loss", "least", color=LIGHT.quiet, thick=1),
        plane.words(plane.across.low, plane.up.low, words, color=LIGHT.quiet, shift=(8, -8)),
    ]


def _saved(plane: Plane, loss: float, gain: _Gain) -> list[Mark]:
    """A bar between two costs at the choice; its words above them, where the falling curves leave room."""
    end = [{"loss": loss, "cost": gain.dearer if gain.words.startswith("saves") else gain.cheaper}]
    return [
        plane.between(loss, gain.cheaper, gain.dearer, color=LIGHT.good),
        plane.points(end, "loss", "cost", color=LIGHT.good, name="other", filled=True),
        plane.words(loss, gain.dearer, gain.words, color=LIGHT.good, shift=(10, -12)),
    ]


def _strategy_names(plane: Plane, rows: Rows, colors: Mapping[str, str], *, height: int, room: int) -> list[Mark]:
    """Each technology's name where its curve ends; names never cover each other."""
    ends = []
    for i, name in enumerate(colors):
        inside = [row for row in rows if plane.up.low <= amount(row, f"cost_{i}") <= plane.up.high]
        if inside:
            ends.append((amount(inside[-1], "loss"), amount(inside[-1], f"cost_{i}"), name))
    lines = {name: wrap(name, room - 12, TEXT_SIZE) for _, _, name in ends}
    tallest = LINE_HEIGHT * max(len(each) for each in lines.values())
    edge = (tallest / 2 + 4) / height  # a name stays inside the axis
    inner = Ruler("", plane.up.value(edge), plane.up.value(1 - edge), log=True)
    places = spread(
        [max(value, inner.low) for _, value, _ in ends], inner, height=round(height * (1 - 2 * edge)), gap=tallest + 8
    )
    return [
        plane.words(loss, place, "\n".join(lines[name]), color=colors[name], shift=(8, 0))
        for (loss, _, name), place in zip(ends, places, strict=True)
    ]
