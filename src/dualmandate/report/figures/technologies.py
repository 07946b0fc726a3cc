"""Which technology stands on the frontier, where: the envelope over all that were compared."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, percent, stated_loss
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered, spread
from dualmandate.report.figures.theme import LIGHT, ROOMY, SERIES, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice, SocialWelfare
    from dualmandate.frontier import Frontier

REACH = 5.0  # from a fifth of the chosen loss to five times it
MOST = 100.0  # times the least cost: the upper edge
TIE = 1e-9  # relative difference of losses below which the earlier technology is named


def technologies_twin(
    frontiers: Sequence[Frontier], welfare: SocialWelfare, choice: Choice, *, studies: Collection[str] = ()
) -> Twin:
    """Rows behind the picture: cost of errors under every technology (USD, and times the least), and which is best.

    A technology whose loss is counted in another currency than the choice's cannot stand on this axis: leave it out.
    `studies` names those that are compared only: none of them is ever the best, unless there are no others.
    """
    drawn = [i for i, frontier in enumerate(frontiers) if frontier.name not in studies] or range(len(frontiers))
    letter, rows = loss_symbol(choice.currency), []
    for loss in log_grid(choice.epsilon / REACH, choice.epsilon * REACH, through=(choice.epsilon,)):
        costs = [welfare.data_loss(frontier, loss) for frontier in frontiers]
        least = min(costs[i] for i in drawn)
        best = next(frontiers[i].name for i in drawn if costs[i] <= least * (1 + TIE))
        row: dict[str, Cell] = {"loss": loss, "best": best, "marked": loss == choice.epsilon}
        for i, cost in enumerate(costs):
            row[f"cost_{i}"], row[f"times_{i}"] = cost, cost / least
        rows.append(row)
    return Twin(
        caption=f"Cost of errors under each technology at each {letter}",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            *(Column(f"cost_{i}", f"{_name(f.name, studies)}, USD", "money") for i, f in enumerate(frontiers)),
            Column("best", "least costly", "text"),
        ),
        rows=tuple(rows),
    )


def technologies(
    frontiers: Sequence[Frontier],
    welfare: SocialWelfare,
    choice: Choice,
    *,
    studies: Collection[str] = (),
    width: int = WIDE,
) -> alt.LayerChart:
    """Cost of errors relative to the best technology, which runs along 1×; below it, which one that is.

    What is only a study is dashed.
    """
    twin = technologies_twin(frontiers, welfare, choice, studies=studies)
    letter, roomy = loss_symbol(choice.currency), width >= ROOMY
    height, room = (340, 130) if roomy else (280, 84)  # px, and px kept free for names at the right
    keys = [f"times_{i}" for i in range(len(frontiers))]
    found = [amount(row, key) for row in twin.rows for key in keys]
    highest, lowest = min(MOST, max(1.5, *found)), max(1 / MOST, min(1.0, *found))
    low, high = amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss")
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
    colors = {frontier.name: SERIES[i % len(SERIES)] for i, frontier in enumerate(frontiers)}
    here = next(row for row in twin.rows if row["marked"])
    picture = layered(
        plane.vertical(choice.epsilon, color=LIGHT.quiet, dash=(2, 4)),
        plane.words(choice.epsilon, highest, stated_loss(choice.loss), align="right", shift=(-6, 6)),
        *_ribbon(plane, twin, colors),
        *(
            plane.curve(
                twin.rows, "loss", key, color=colors[frontier.name], dash=(6, 4) if frontier.name in studies else (1, 0)
            )
            for key, frontier in zip(keys, frontiers, strict=True)
        ),
        *_names(plane, twin, colors, studies=studies if roomy else (), height=height),
    )
    return dress(
        picture,
        title=_finding(here, frontiers, stated_loss(choice.loss), studies),
        width=width,
        height=height,
        subtitle="Cost of errors under each technology, divided by the cost under the best; both axes logarithmic"
        + ("; dashed: studies, for comparison only" if studies else ""),
    )


def _name(name: str, studies: Collection[str]) -> str:
    return f"{name} (study)" if name in studies else name


def _finding(here: Mapping[str, Cell], frontiers: Sequence[Frontier], loss: str, studies: Collection[str]) -> str:
    """Who is best at the choice, and by how much the next one costs more; a study only where nothing else is there."""
    times = [(amount(here, f"times_{i}"), frontier.name) for i, frontier in enumerate(frontiers)]
    ranked = sorted(each for each in times if each[1] not in studies)
    if len(ranked) == 1 and studies:
        more, study = next((cost - 1, name) for cost, name in times if name in studies)
        differs = f"{percent(abs(more))} {'more' if more >= 0 else 'less'}"
        return (
            f"At {loss}, errors cost least with {ranked[0][1]}; with {_name(study, studies)} they would cost {differs}"
        )
    ranked = ranked or sorted(times)
    if len(ranked) == 1:
        return f"One technology was considered: {ranked[0][1]}"
    more, runner_up = ranked[1]
    if more - 1 < 1e-4:
        return f"At {loss}, {ranked[0][1]} and {runner_up} err alike"
    return f"At {loss}, errors cost least with {ranked[0][1]}; with {runner_up} they cost {percent(more - 1)} more"


def _ribbon(plane: Plane, twin: Twin, colors: Mapping[str, str]) -> list[Mark]:
    """Below the curves, one bar for each stretch on which one technology is the best."""
    marks: list[Mark] = []
    for name, stretch in groupby(twin.rows, key=lambda row: str(row["best"])):
        part = list(stretch)
        bar = [{"x": amount(row, "loss"), "y": 1.0} for row in (part[0], part[-1])]
        marks.append(plane.curve(bar, "x", "y", color=colors[name], thick=9))
        if len(part) > len(twin.rows) / 4:
            marks.append(plane.words(bar[0]["x"], 1.0, f"best: {name}", color=colors[name], shift=(2, 12)))
    return marks


def _names(
    plane: Plane, twin: Twin, colors: Mapping[str, str], *, studies: Collection[str], height: int
) -> list[alt.LayerChart]:
    """Each technology's name where its curve ends, or where it leaves the picture; names never cover each other."""
    ends = []
    for i, name in enumerate(colors):
        inside = [row for row in twin.rows if amount(row, f"times_{i}") <= plane.up.high]
        if inside and inside[-1]["best"] != name:
            ends.append((amount(inside[-1], "loss"), amount(inside[-1], f"times_{i}"), name))
    places = spread([value for _, value, _ in ends], plane.up, height=height, gap=17)
    return [
        plane.words(loss, place, _name(name, studies), color=colors[name], shift=(8, 0))
        for (loss, _, name), place in zip(ends, places, strict=True)
    ]
