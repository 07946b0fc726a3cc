"""What the better technology saves: the cost of errors under plain noise, under the technology in use, and at least."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, percent, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import LINE_HEIGHT, Mark, Plane, Ruler, layered, spread
from dualmandate.report.figures.theme import LIGHT, ROOMY, TEXT_SIZE, WIDE, dress, wrap
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice

Cost = Callable[[float], float]  # of errors at a privacy loss, USD
REACH = 4.0  # from a quarter of the chosen loss to four times it
FARTHEST = 1e4  # times the cost at the choice, up and down: the edges
ALIKE = 1e-4  # share of a cost that is no saving


def strategies_twin(costs: Mapping[str, Cost], choice: Choice, *, used: str, least: Cost | None = None) -> Twin:
    """Rows behind the picture: what errors cost at each privacy loss under each technology, and at least, USD.

    `costs` are by name, the plain technology first; `used` names the one in use. Losses at which a cost leaves the
    range of floats are left out.
    """
    letter, rows, place = loss_symbol(choice.currency), [], list(costs).index(used)
    for loss in log_grid(choice.epsilon / REACH, choice.epsilon * REACH, through=(choice.epsilon,)):
        found = [cost(loss) for cost in costs.values()]
        floor = None if least is None else least(loss)
        if not all(math.isfinite(cost) and cost > 0 for cost in (*found, 1.0 if floor is None else floor)):
            continue
        row: dict[str, Cell] = {f"cost_{i}": cost for i, cost in enumerate(found)}
        row |= {"loss": loss, "least": floor, "saved": found[0] - found[place], "marked": loss == choice.epsilon}
        rows.append(row)
    return Twin(
        caption=f"Cost of errors at each {letter}, and what is saved",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            *(Column(f"cost_{i}", f"{name}, USD", "money") for i, name in enumerate(costs)),
            Column("least", "least possible, USD", "money"),
            Column("saved", "saved, USD", "money"),
        ),
        rows=tuple(rows),
    )


def strategies(
    costs: Mapping[str, Cost], choice: Choice, *, used: str, least: Cost | None = None, width: int = WIDE
) -> alt.LayerChart:
    """Cost of errors against privacy loss; what no strategy reaches is shaded, what is saved stands at the choice."""
    twin, letter = strategies_twin(costs, choice, used=used, least=least), loss_symbol(choice.currency)
    roomy = width >= ROOMY
    height, room = (360, 150) if roomy else (300, 104)  # px, and px kept free for names at the right
    here = next(row for row in twin.rows if row["marked"])
    at_choice = {name: amount(here, f"cost_{i}") for i, name in enumerate(costs)}
    gain = _gain(at_choice, used)
    drawn = [*(f"cost_{i}" for i in range(len(costs))), *(["least"] if least is not None else [])]
    found = [amount(row, key) for row in twin.rows for key in drawn]
    bottom = max(min(found), at_choice[used] / FARTHEST) / 1.6
    top = min(max(found), at_choice[used] * FARTHEST)
    low, high = amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss")
    plane = Plane(
        Ruler(f"privacy loss {letter}", low, high * (high / low) ** (room / (width - 60 - room)), log=True),
        Ruler("↑ cost of errors, USD", bottom, top, log=True, labels=MONEY_AXIS),
    )
    colors = dict(zip(costs, _colors(list(costs), used), strict=True))
    picture = layered(
        *_unreachable(plane, twin, least is not None, roomy=roomy),
        plane.vertical(choice.epsilon, color=LIGHT.quiet, dash=(2, 4)),
        plane.words(choice.epsilon, top, stated_loss(choice.loss), shift=(6, 6)),
        *(
            plane.curve(twin.rows, "loss", f"cost_{i}", color=color, dash=(1, 0) if name == used else (6, 4))
            for i, (name, color) in enumerate(colors.items())
        ),
        *([] if gain is None else _saved(plane, choice.epsilon, gain)),
        plane.points([here], "loss", f"cost_{list(costs).index(used)}", color=LIGHT.ink, name="optimum"),
        *_names(plane, twin, colors, height=height, room=room),
    )
    return dress(
        picture,
        title=f"At {stated_loss(choice.loss)}, "
        + (f"nothing found does better than {used}" if gain is None else gain.finding),
        width=width,
        height=height,
        subtitle="Cost of errors at each privacy loss, US dollars; both axes logarithmic"
        + _left(here, at_choice[used]),
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
        saved, share = money(naive[1] - cost), percent(1 - cost / naive[1])
        return _Gain(naive[1], cost, f"saves {saved}", f"the better technology saves {saved}: errors cost {share} less")
    if least <= cost * (1 - ALIKE):
        saved, share = money(cost - least), percent(1 - least / cost)
        return _Gain(cost, least, f"would save {saved}", f"{name} would save {saved}: errors would cost {share} less")
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


def _unreachable(plane: Plane, twin: Twin, known: bool, *, roomy: bool) -> list[Mark]:
    if not known:
        return []
    words = "no strategy errs less" if roomy else "no strategy\nerrs less"
    return [
        plane.below(twin.rows, "loss", "least"),
        plane.curve(twin.rows, "loss", "least", color=LIGHT.quiet, thick=1),
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


def _names(plane: Plane, twin: Twin, colors: Mapping[str, str], *, height: int, room: int) -> list[alt.LayerChart]:
    """Each technology's name where its curve ends; names never cover each other."""
    ends = []
    for i, name in enumerate(colors):
        inside = [row for row in twin.rows if plane.up.low <= amount(row, f"cost_{i}") <= plane.up.high]
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
