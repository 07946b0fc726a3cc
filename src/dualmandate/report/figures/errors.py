"""Errors: what the choice means for each table, beside errors that were there before, and under other technologies."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from dualmandate.frontier.numerics import log_grid
from dualmandate.population.units import plural
from dualmandate.population.wording import SYMBOLS, money, number, percent, quantity, stated_loss
from dualmandate.report.figures.figure import (
    LETTER,
    LINE_HEIGHT,
    Figure,
    Mark,
    Plane,
    Ruler,
    lanes,
    layered,
    shortened,
    spread,
)
from dualmandate.report.theme import LIGHT, ROOMY, SERIES, TEXT_SIZE, Column, FigureTable, Row, cells, wrap

if TYPE_CHECKING:
    from dualmandate.choice import Choice, SocialWelfare
    from dualmandate.frontier import Frontier
    from dualmandate.planning.extensions import ExistingError

MOST_TABLES = 12  # the costliest are drawn; the table holds all
NORMAL_HALF_WIDTH = 1.959964  # standard errors that hold 95 % of normal noise
WIDEST_LINEAR = 30.0  # ratio of errors from which on the axis is logarithmic
ROW_HEIGHT = 46  # px
MOST_ROWS = 14
Cost = Callable[[float], float]  # of errors at a privacy loss, USD
Rows = Sequence[Row]
COMPARED_REACH = 5.0  # from a fifth of the chosen loss to five times it
MOST = 100.0  # times the least cost: the upper edge
TIE = 1e-9  # relative difference of losses below which the earlier technology is named
SAVING_REACH = 4.0  # from a quarter of the chosen loss to four times it
FARTHEST = 1e4  # times the cost at the choice, up and down: the edges
ALIKE = 1e-4  # share of a cost that is no saving
TWICE = 2.0  # from here on a multiple is easier to read than a share
MOST_SHARE_LEFT = 0.9  # a bound further below than this says nothing to a reader


def consequences(choice: Choice, half_widths: Mapping[str, float] | None = None) -> Figure:
    """One bar a table, as long as its 95 % half-width, with a dot at its root mean squared error; a panel a unit.

    Both are of the noise alone; what clipping leaves out stands beside them. `half_widths` are exact ones, by table,
    in the table's unit; where one is missing, the noise is taken as normal and the half-width is 1.96 root mean squared
    errors.
    """
    known = half_widths or {}
    rows = [
        cells(
            table,
            *("table", "query_count", "root_mean_squared_error", "root_mean_squared_consequence", "data_loss"),
            unit=plural(table.unit),
            left_out=table.bias or None,
            half_width=known.get(table.table, NORMAL_HALF_WIDTH * table.root_mean_squared_error),
            exact=table.table in known,
        )
        for table in choice.tables
    ]
    costliest = sorted(rows, key=lambda row: -row["data_loss"])[:MOST_TABLES]
    by_unit = sorted(costliest, key=lambda row: str(row["unit"]))
    panels = [(unit, list(part)) for unit, part in groupby(by_unit, key=lambda row: str(row["unit"]))]

    def layout(width: int) -> Mark:
        height = 58 if width >= ROOMY else 78
        outer = {} if len(panels) == 1 else {"width": width - 40}  # panels above each other have widths of their own
        drawn = [
            layered(*_panel(own, unit, choice.currency, width=width, place=i), **outer, height=height * len(own))
            for i, (unit, own) in enumerate(panels)
        ]
        return drawn[0] if len(drawn) == 1 else {"vconcat": drawn}

    first = costliest[0]
    typical, consequence = first["root_mean_squared_error"], first["root_mean_squared_consequence"]
    error = quantity(typical, str(first["unit"]))
    error += f", worth {money(consequence, choice.currency)}" if isinstance(consequence, float) else ""
    if isinstance(first["left_out"], float):
        both = quantity(math.hypot(typical, first["left_out"]), str(first["unit"]))
        error = f"{both} with what clipping leaves out; by noise alone, by {error}"
    which = "A published number" if len(rows) == 1 else f"A number in '{first['table']}'"
    subtitle = "Dot: root mean squared error; bar: what 95 in 100 published numbers stay within"
    if any(row["left_out"] for row in rows):
        subtitle += " by noise alone; what clipping leaves out comes on top, as the table says"
    if not all(row["exact"] for row in rows):
        subtitle += " (noise taken as normal where no exact law is known)"
    return Figure(
        "consequences",
        title=f"{which} is typically off by {error}",
        subtitle=subtitle,
        sentence="What a reader of the tables may expect: by how much a published number is off, typically and at most "
        "in 95 of 100 cases, and what an error comes to in money.",
        table=FigureTable.of(
            rows,
            f"Errors of the published numbers at {stated_loss(choice.loss)}",
            Column("table", "table", "text"),
            Column("query_count", "published numbers", "exact"),
            Column("unit", "counted in", "text"),
            Column("root_mean_squared_error", "typical error (RMSE)"),
            Column("left_out", "left out by clipping (RMS)"),
            Column("half_width", "margin of error, 95 %"),
            Column("root_mean_squared_consequence", "typical consequence of one error", choice.currency),
            Column("data_loss", "cost of all errors to society", choice.currency),
        ),
        layout=layout,
    )


def _panel(rows: Sequence[Row], unit: str, currency: str, *, width: int, place: int) -> list[Mark]:
    """The tables of one unit, each with its name above its bar and its numbers beside the name, or below on a phone."""
    roomy = width >= ROOMY
    typical = [row["root_mean_squared_error"] for row in rows]
    widest = max(row["half_width"] for row in rows)
    log = min(typical) > 0 and widest / min(typical) > WIDEST_LINEAR
    low = min(typical) / 3 if log else 0.0
    plane = lanes(Ruler(f"error, {unit}", low, widest * 1.08, log=log, count=6 if roomy else 3), len(rows))
    at = 0.68 if roomy else 0.5
    name = "errors" if place == 0 else f"errors-{place}"  # marks of one name would show the data of one
    places = [{**row, "y": i + at, "from": low, "to": row["half_width"]} for i, row in enumerate(rows)]
    marks: list[Mark] = [
        plane.bars(places, color=LIGHT.production, opacity=0.35),
        plane.points(places, "root_mean_squared_error", "y", color=LIGHT.production, name=name, filled=True),
    ]
    for i, row in enumerate(rows):
        numbers = f"RMSE {number(typical[i])} · 95 % within ±{number(row['half_width'])}"
        if typical[i] == row["half_width"] == 0:
            numbers = "exact: no noise reaches it"
        elif isinstance(row["root_mean_squared_consequence"], float):
            worth = f" · {money(row['root_mean_squared_consequence'], currency)}"
            if roomy or LETTER * len(numbers + worth) < width - 30:  # else the table alone says it
                numbers += worth
        space = width - 40 - (LETTER * len(numbers) + 20 if roomy else 0)
        name = textwrap.shorten(str(row["table"]), max(10, int(space / LETTER)), placeholder="…")
        marks.append(plane.words(low, i + 0.3, name, shift=(0, -4)))
        if roomy:
            edge = plane.across.high
            marks.append(plane.words(edge, i + 0.3, numbers, color=LIGHT.quiet, align="right", shift=(0, -4)))
        else:
            marks.append(plane.words(low, i + 0.68, numbers, color=LIGHT.quiet, shift=(0, 4)))
    return marks


def existing(before: Sequence[ExistingError]) -> Figure:
    """One line a table: the error of noise as a share of the error that was there before, on a logarithmic axis."""
    rows = [cells(row, "table", "before", "noise", "added", unit=plural(row.unit)) for row in before]
    drawn = sorted(rows, key=lambda row: -row["added"])[:MOST_ROWS]

    def layout(width: int) -> Mark:
        shares = [row["noise"] / row["before"] for row in drawn]
        plane = lanes(
            Ruler("error of noise, times the error before", min([*shares, 1]) / 1.8, max([*shares, 1]) * 1.8, log=True),
            len(drawn),
        )
        marks: list[Mark] = [plane.vertical(1.0, color=LIGHT.limit, dash=(2, 4))]
        for i, (row, share) in enumerate(zip(drawn, shares, strict=True)):
            words = f": {number(row['noise'])} beside {number(row['before'])} {row['unit']}"
            shown, spot = words if width >= ROOMY else "", [{"x": share, "y": i + 0.76}]
            name = shortened(str(row["table"]), width, shown)
            marks += [
                plane.points(spot, "x", "y", color=LIGHT.production, name=f"n-{i}", filled=True),
                plane.words(plane.across.low, i + 0.5, f"{name}{shown}", shift=(0, -4)),
            ]
        return layered(*marks, height=ROW_HEIGHT * len(drawn))

    return Figure(
        "existing",
        title=f"Noise widens the errors that were there by at most {percent(drawn[0]['added'])}",
        subtitle="Typical error of noise divided by the typical error before noise; dotted: as large as before",
        sentence="How large the errors of noise are beside those that the numbers had before, table by table.",
        table=FigureTable.of(
            rows,
            "Typical errors (RMSE) of one number: those that were there before, and those of noise",
            Column("table", "table", "text"),
            Column("unit", "unit", "text"),
            Column("before", "before noise"),
            Column("noise", "of noise"),
            Column("added", "wider by", "percent"),
        ),
        layout=layout,
    )


def technologies(
    frontiers: Sequence[Frontier], welfare: SocialWelfare, choice: Choice, *, studies: Collection[str] = ()
) -> Figure:
    """Cost of errors relative to the best technology, which runs along 1×; below it, which one that is.

    A technology whose loss is counted in another currency than the choice's cannot stand on this axis: leave it out.
    `studies` names those that are compared only: they are dashed, and none of them is ever the best, unless there are
    no others.
    """
    drawn = [i for i, frontier in enumerate(frontiers) if frontier.name not in studies] or range(len(frontiers))
    letter, rows, loss = SYMBOLS[choice.privacy_measure], list[Row](), stated_loss(choice.loss)
    for at in log_grid(choice.epsilon / COMPARED_REACH, choice.epsilon * COMPARED_REACH, through=(choice.epsilon,)):
        costs = [welfare.data_loss(frontier, at) for frontier in frontiers]
        least = min(costs[i] for i in drawn)
        best = next(frontiers[i].name for i in drawn if costs[i] <= least * (1 + TIE))
        row: Row = {"loss": at, "best": best, "marked": at == choice.epsilon}
        for i, cost in enumerate(costs):
            # Where the least is nothing, in floats, whatever costs more is beyond the picture's edge.
            times = cost / least if least > 0 else MOST if cost > 0 else 1.0
            row[f"cost_{i}"], row[f"times_{i}"] = cost, times
        rows.append(row)
    colors = {frontier.name: SERIES[i % len(SERIES)] for i, frontier in enumerate(frontiers)}

    def layout(width: int) -> Mark:
        height, room = (340, 130) if width >= ROOMY else (280, 84)  # px, and px kept free for names at the right
        keys = [f"times_{i}" for i in range(len(frontiers))]
        found = [row[key] for row in rows for key in keys]
        highest, lowest = min(MOST, max(1.5, *found)), max(1 / MOST, min(1.0, *found))
        low, high = rows[0]["loss"], rows[-1]["loss"]
        bottom = lowest * (highest / lowest) ** (-46 / (height - 46))
        times = f"datum.value < {lowest} ? '' : format(datum.value, ',~r') + '×'"
        plane = Plane(
            Ruler(f"privacy loss {letter}", low, high * (high / low) ** (room / (width - 60 - room)), log=True),
            Ruler("↑ cost of errors, times that of the best", bottom, highest, log=True, labels=times),
        )
        return layered(
            plane.upright(choice.epsilon, [(1.0, highest)], color=LIGHT.quiet),  # not through the words below
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
        table=FigureTable.of(
            rows,
            f"Cost of errors under each technology at each {letter}",
            Column("loss", f"privacy loss {letter}", "loss"),
            *(
                Column(f"cost_{i}", f"{_name(frontier.name, studies)}, {choice.currency}", choice.currency)
                for i, frontier in enumerate(frontiers)
            ),
            Column("best", "least costly", "text"),
        ),
        layout=layout,
    )


def _name(name: str, studies: Collection[str]) -> str:
    return f"{name} (study)" if name in studies else name


def _noise(name: str) -> str:
    """A technology in a sentence: those that are named after people have a capital letter."""
    return f"{name.title() if name in ('laplace', 'gaussian') else name} noise" if name.isalpha() else name


def _best_at(here: Row, frontiers: Sequence[Frontier], loss: str, studies: Collection[str]) -> str:
    """Who is best at the choice, and by how much the next one costs more; a study only where nothing else is there."""
    times = [(here[f"times_{i}"], frontier.name) for i, frontier in enumerate(frontiers)]
    ranked = sorted((cost, name) for cost, name in times if name not in studies)
    if len(ranked) == 1 and studies:
        cost, study = next((cost, name) for cost, name in times if name in studies)
        more = cost - 1
        if abs(more) < ALIKE:
            return f"At {loss}, {_noise(ranked[0][1])} and {_noise(study)} (a study) err alike"
        differs = f"{percent(abs(more))} {'more' if more >= 0 else 'less'}"
        return (
            f"At {loss}, errors cost least with {_noise(ranked[0][1])}; with {_noise(study)} (a study) they would cost "
            f"{differs}"
        )
    ranked = ranked or sorted(times)
    if len(ranked) == 1:
        return f"One technology was considered: {_noise(ranked[0][1])}"
    if ranked[1][0] - 1 < ALIKE:
        return f"At {loss}, {_noise(ranked[0][1])} and {_noise(ranked[1][1])} err alike"
    dearer = ranked[1][0]
    more = f"{percent(dearer - 1)} more" if dearer < TWICE else f"{number(dearer, 3)} times as much"
    first, second = (_noise(name) for _, name in ranked[:2])
    return f"At {loss}, errors cost least with {first}; with {second} they cost {more}"


def _ribbon(plane: Plane, rows: Rows, colors: Mapping[str, str]) -> list[Mark]:
    """Below the curves, one bar for each stretch on which one technology is the best."""
    marks: list[Mark] = []
    for name, part in _stretches(rows):
        bar = [{"x": row["loss"], "y": 1.0} for row in (part[0], part[-1])]
        marks.append(plane.curve(bar, "x", "y", color=colors[name], thick=9))
        if _has_room(part, rows):
            marks.append(plane.words(bar[0]["x"], 1.0, f"best: {name}", color=colors[name], shift=(2, 12)))
    return marks


def _stretches(rows: Rows) -> list[tuple[str, list[Row]]]:
    return [(name, list(stretch)) for name, stretch in groupby(rows, key=lambda row: str(row["best"]))]


def _has_room(stretch: Sequence[Row], rows: Rows) -> bool:
    """Whether a name can stand below a bar; without one, it stands where its curve ends."""
    return len(stretch) > len(rows) / 4


def _ends(plane: Plane, rows: Rows, names: Iterable[str], key: str) -> list[tuple[Row, str, float]]:
    """The last row at which each technology's curve is inside the picture, its name, and its height there."""
    ends = []
    for i, name in enumerate(names):
        inside = [row for row in rows if plane.up.low <= row[f"{key}_{i}"] <= plane.up.high]
        ends += [(inside[-1], name, inside[-1][f"{key}_{i}"])] if inside else []
    return ends


def _compared_names(
    plane: Plane, rows: Rows, colors: Mapping[str, str], *, studies: Collection[str], height: int
) -> list[Mark]:
    """Each technology's name where its curve ends, or where it leaves the picture; names never cover each other."""
    named = {name for name, stretch in _stretches(rows) if _has_room(stretch, rows)}
    ends = [
        (row, name, at)
        for row, name, at in _ends(plane, rows, colors, "times")
        if row["best"] != name or name not in named
    ]
    places = spread([value for *_, value in ends], plane.up, height=height, gap=17)
    return [
        plane.words(row["loss"], place, _name(name, studies), color=colors[name], shift=(8, 0))
        for (row, name, _), place in zip(ends, places, strict=True)
    ]


def strategies(
    costs: Mapping[str, Cost],
    choice: Choice,
    *,
    used: str,
    least: Cost | None = None,
    valid_for: str = "any strategy with the same noise",
    within: tuple[float, float] = (0.0, math.inf),
) -> Figure:
    """Cost of errors against privacy loss; what no strategy reaches is shaded, what is saved stands at the choice.

    `costs` are by name in USD, the plain technology first, and hold the best of all that were compared; `used` names
    the one in use; `least` is what errors cost at least, `valid_for` which technologies. Losses at which a cost leaves
    the range of floats are left out.
    """
    letter, place, loss = SYMBOLS[choice.privacy_measure], list(costs).index(used), stated_loss(choice.loss)
    rows = list[Row]()
    ends = choice.epsilon / SAVING_REACH, choice.epsilon * SAVING_REACH
    for at in log_grid(*ends, through=(choice.epsilon,), within=within):
        found = [cost(at) for cost in costs.values()]
        floor = None if least is None else least(at)
        if not all(math.isfinite(cost) and cost > 0 for cost in (*found, 1.0 if floor is None else floor)):
            continue
        row: Row = {f"cost_{i}": cost for i, cost in enumerate(found)}
        row |= {"loss": at, "least": floor, "saved": found[0] - found[place], "marked": at == choice.epsilon}
        rows.append(row)
    here = next(row for row in rows if row["marked"])
    at_choice = {name: here[f"cost_{i}"] for i, name in enumerate(costs)}
    gain = _gain(at_choice, used, choice.currency)

    def layout(width: int) -> Mark:
        roomy = width >= ROOMY
        height, room = (360, 150) if roomy else (300, 104)  # px, and px kept free for names at the right
        drawn = [*(f"cost_{i}" for i in range(len(costs))), *(["least"] if least is not None else [])]
        found = [row[key] for row in rows for key in drawn]
        bottom = max(min(found), at_choice[used] / FARTHEST) / 1.6
        top = min(max(found), at_choice[used] * FARTHEST)
        if least is not None and roomy:  # the words in the corner stand below the curve
            bottom = min(bottom, min(found) * (min(found) / top) ** 0.1)
        low, high = rows[0]["loss"], rows[-1]["loss"]
        plane = Plane(
            Ruler(f"privacy loss {letter}", low, high * (high / low) ** (room / (width - 60 - room)), log=True),
            Ruler(f"↑ cost of errors, {choice.currency}", bottom, top, log=True, labels=choice.currency),
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
        title=f"At {loss}, {f'nothing that was compared does better than {used}' if gain is None else gain.finding}",
        subtitle=f"Cost of errors at each privacy loss, {choice.currency}; both axes logarithmic"
        + _left(here, at_choice[used], valid_for),
        sentence="What is measured need not be what is published: tables can be put together from better measurements. "
        "The bar at the choice is what the technology in use saves against plain noise on the tables.",
        table=FigureTable.of(
            rows,
            f"Cost of errors at each {letter}, and what is saved",
            Column("loss", f"privacy loss {letter}", "loss"),
            *(Column(f"cost_{i}", f"{name}, {choice.currency}", choice.currency) for i, name in enumerate(costs)),
            Column("least", f"least possible for {valid_for}, {choice.currency}", choice.currency),
            Column("saved", f"saved, {choice.currency}", choice.currency),
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


def _gain(at_choice: Mapping[str, float], used: str, currency: str) -> _Gain | None:
    """What another would save, or what the technology in use saves against the plain one; None where all cost alike."""
    naive, cost = next(iter(at_choice.items())), at_choice[used]
    name, least = min(at_choice.items(), key=lambda item: item[1])
    if least <= cost * (1 - ALIKE):
        saved = f"would save {money(cost - least, currency)}"
        return _Gain(cost, least, saved, f"{name} {saved}: errors would cost {percent(1 - least / cost)} less")
    if used != naive[0] and cost <= naive[1] * (1 - ALIKE):
        saved = f"saves {money(naive[1] - cost, currency)}"
        share = percent(1 - cost / naive[1])
        return _Gain(naive[1], cost, saved, f"the better technology {saved}: errors cost {share} less")
    return None


def _colors(names: list[str], used: str) -> Iterator[str]:
    """Blue for the technology in use, orange for the plain one, other colors for others."""
    others = iter((LIGHT.fourth, LIGHT.third, LIGHT.limit))
    for place, name in enumerate(names):
        yield LIGHT.production if name == used else LIGHT.preference if place == 0 else next(others)


def _left(here: Row, cost: float, valid_for: str) -> str:
    """How much of the cost a better strategy could still take away."""
    if here["least"] is None:
        return ""
    share = 1 - here["least"] / cost
    if share < ALIKE:
        return f"; shaded: out of reach of {valid_for}, and the technology in use stands at its edge"
    if share > MOST_SHARE_LEFT:
        return f"; shaded: out of reach of {valid_for}; that bound lies far below, and says little here"
    return f"; shaded: out of reach of {valid_for}, at most {percent(share)} below; its edge may be out of reach too"


def _unreachable(plane: Plane, rows: Rows, *, roomy: bool) -> list[Mark]:
    words = "no strategy with this noise errs less"  # on a phone the caption alone says it
    return [
        plane.below(rows, "loss", "least"),
        plane.curve(rows, "loss", "least", color=LIGHT.quiet, thick=1),
        *roomy * [plane.words(plane.across.low, plane.up.low, words, color=LIGHT.quiet, shift=(8, -8))],
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
    ends = _ends(plane, rows, colors, "cost")
    lines = {name: wrap(name, room - 12, TEXT_SIZE) for _, name, _ in ends}
    tallest = LINE_HEIGHT * max(len(each) for each in lines.values())
    edge = (tallest / 2 + 4) / height  # a name stays inside the axis
    inner = Ruler("", plane.up.value(edge), plane.up.value(1 - edge), log=True)
    places = spread(
        [max(value, inner.low) for *_, value in ends], inner, height=round(height * (1 - 2 * edge)), gap=tallest + 8
    )
    return [
        plane.words(row["loss"], place, "\n".join(lines[name]), color=colors[name], shift=(8, 0))
        for (row, name, _), place in zip(ends, places, strict=True)
    ]
