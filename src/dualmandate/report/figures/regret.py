"""The price of being wrong: what another privacy loss would cost society."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, percent, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS, PERCENT_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Align, Plane, Ruler, layered, with_right_axis
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice, SocialWelfare
    from dualmandate.frontier import Frontier

REACH = 4.0  # from a quarter of the chosen loss to four times it
HALF, DOUBLE = 0.5, 2.0
ROOM = 0.2  # share of the height from which on a point leaves room for a label below it


def regret_twin(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Twin:
    """Rows behind the picture: welfare forgone at each privacy loss, in USD and as a share of that at the choice.

    Regret is W(ε*) − W(ε); below zero only where a limit kept society from a better place.
    """
    best, letter = choice.epsilon, loss_symbol(choice.currency)
    top = welfare.at(frontier, best)
    signposts = (HALF * best, best, DOUBLE * best)
    rows = []
    for loss in log_grid(best / REACH, best * REACH, through=signposts):
        forgone = top - welfare.at(frontier, loss)
        rows.append(
            {
                "loss": loss,
                "multiple": loss / best,
                "relative_regret": forgone / abs(top),
                "regret": forgone,
                "marked": loss in signposts,
            }
        )
    return Twin(
        caption=f"Welfare forgone by another {letter} than the chosen one",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("multiple", "times the chosen one"),
            Column("relative_regret", "regret, share of the cost at the choice", "percent"),
            Column("regret", "regret, USD", "money"),
        ),
        rows=tuple(rows),
    )


def regret(frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, width: int = WIDE) -> alt.LayerChart:
    """A valley with its floor at the choice: what half of it, and twice it, would cost."""
    twin, letter, roomy = regret_twin(frontier, welfare, choice), loss_symbol(choice.currency), width >= ROOMY
    half, here, double = (row for row in twin.rows if row["marked"])
    shares = [amount(row, "relative_regret") for row in twin.rows]
    posts = max(amount(half, "relative_regret"), amount(double, "relative_regret"))
    top, bottom = min(max(shares), max(2.2 * posts, 1e-6)), min(0.0, *shares)
    across = Ruler(f"privacy loss {letter}", amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss"), log=True)
    plane = Plane(across, Ruler("↑ regret, share of the cost at the choice", bottom, top, labels=PERCENT_AXIS))
    free = roomy or plane.up.share(amount(double, "relative_regret")) > ROOM  # the valley has room for a label
    picture = layered(
        plane.curve(twin.rows, "loss", "relative_regret", color=LIGHT.preference),
        plane.points([half, double], "loss", "relative_regret", color=LIGHT.preference, name="signposts", filled=True),
        plane.points([here], "loss", "relative_regret", color=LIGHT.ink, name="optimum"),
        *_signposts(plane, half, double, roomy=roomy),
        plane.words(
            amount(here, "loss"),
            0.0,
            stated_loss(choice.loss),
            align="center" if free else "right",
            shift=(0, -14 if roomy else -30) if free else (-10, -12),
        ),
    )
    if roomy:
        size = abs(choice.welfare)
        dollars = Ruler("in US dollars", bottom * size, top * size, labels=MONEY_AXIS, right=True)
        picture = with_right_axis(picture, plane, dollars)
    half_words, double_words = (_change(amount(row, "relative_regret")) for row in (half, double))
    return dress(
        picture,
        title=f"Half of this {letter} would cost society {half_words}; twice, {double_words}",
        width=width,
        subtitle=f"Welfare forgone, against a total cost of {money(abs(choice.welfare))} at the choice",
        height=320 if roomy else 260,
    )


def _change(share: float) -> str:
    return f"{percent(abs(share))} {'more' if share >= 0 else 'less'}"


def _signposts(
    plane: Plane, half: Mapping[str, Cell], double: Mapping[str, Cell], *, roomy: bool
) -> list[alt.LayerChart]:
    """The regret at half and at twice the choice, written inside the valley and clear of each other."""
    left, right = (plane.up.share(amount(row, "relative_regret")) for row in (half, double))
    level = abs(left - right) < ROOM / 2
    rise = -10 if roomy or level else 0
    fall = -10 if roomy else -28 if right < ROOM else 10 if level else 0
    marks = []
    sides: tuple[tuple[Mapping[str, Cell], str, Align, tuple[int, int]], ...] = (
        (half, "half", "left", (12, rise)),
        (double, "twice", "right", (-12, fall)),
    )
    for row, name, align, shift in sides:
        words = f"{name}: {percent(amount(row, 'relative_regret'))}"
        if roomy:
            words += f"\n{money(amount(row, 'regret'))}"
        at = amount(row, "loss"), amount(row, "relative_regret")
        marks.append(plane.words(*at, words, align=align, color=LIGHT.preference, shift=shift))
    return marks
