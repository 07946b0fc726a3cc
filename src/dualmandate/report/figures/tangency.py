"""Where society should stand: the frontier, the indifference curve that touches it, and the tangent (Figure 1).

The vertical axis is the paper's accuracy I where one table with squared loss is valued. With several tables, or with
absolute loss, welfare is no function of I alone; the axis is then the value of accuracy, minus the data loss in USD,
in which both curves are exact for every program.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, plain_number, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS, NUMBER_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Align, Mark, Plane, Ruler, layered, with_right_axis
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice, Limits, SocialWelfare
    from dualmandate.frontier import Frontier

REACH = (0.55, 2.2)  # from this share of the chosen loss to this multiple of it
FINDINGS = {
    "preferences": "At {loss}, one more unit of privacy loss costs exactly what its accuracy is worth",
    "participation": "The choice stops at {loss}, where accuracy peaks: beyond it people no longer take part",
    "largest rho": "The cap stops at {loss}, where more accuracy would still be worth its privacy",
    "largest epsilon": "The cap stops at {loss}, where more accuracy would still be worth its privacy",
    "fitness for use": "Fitness for use asks for {loss}, more privacy loss than preferences alone would",
    "ledger": "The account stops at {loss}, where more accuracy would still be worth its privacy",
}


def tangency_twin(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Twin:
    """Rows behind Figure 1: frontier, indifference curve and tangent at each privacy loss.

    With B(ε) what the frontier is worth (b·I, minus the data loss), the indifference curve through the choice is
    B(ε*) + P(ε) − P(ε*), P the privacy cost, and the tangent has the slope b·MRT; divided by b where the axis is I.
    """
    best, plain = choice.epsilon, shows_accuracy(welfare)
    price = welfare.table_values[0].value_per_step if plain else 1.0
    here, cost = _worth(frontier, welfare, best), welfare.privacy_cost(best)
    slope = -welfare.marginal_data_loss(frontier, best) / price
    rows = tuple(
        {
            "loss": loss,
            "frontier": _worth(frontier, welfare, loss),
            "indifference": here + (welfare.privacy_cost(loss) - cost) / price,
            "tangent": here + slope * (loss - best),
            "marked": loss == best,
        }
        for loss in log_grid(REACH[0] * best, REACH[1] * best, through=(best,))
    )
    letter, kind = loss_symbol(choice.currency), "number" if plain else "money"
    what = "accuracy I" if plain else "value of accuracy"
    return Twin(
        caption=f"Frontier, indifference curve and tangent: {what} at each {letter}",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("frontier", f"{what} that technology can produce", kind),
            Column("indifference", f"{what} as good for society as the choice", kind),
            Column("tangent", "tangent to the frontier at the choice", kind),
        ),
        rows=rows,
    )


def tangency(
    frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, limits: Limits | None = None, width: int = WIDE
) -> alt.LayerChart:
    """The paper's Figure 1: what technology can produce, what society finds as good, an open circle where they meet.

    Where a cap or a floor decides, its line is drawn and the two curves cross instead of touching.
    """
    twin, letter = tangency_twin(frontier, welfare, choice), loss_symbol(choice.currency)
    plain, roomy, here = shows_accuracy(welfare), width >= ROOMY, next(row for row in twin.rows if row["marked"])
    best, level = amount(here, "loss"), amount(here, "frontier")
    plane = Plane(
        Ruler(f"privacy loss {letter}: less protection →", amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss")),
        Ruler(
            ("↑ accuracy I" + ", minus the expected squared error" * roomy) if plain else "↑ value of accuracy, USD",
            min(amount(twin.rows[0], "frontier"), 1.5 * level),
            0.0,
            labels=NUMBER_AXIS if plain else MONEY_AXIS,
        ),
    )
    picture = layered(
        *_limit_marks(plane, choice, limits),
        plane.horizontal(level, color=LIGHT.quiet, dash=(2, 4), end=best),
        *([plane.vertical(best, color=LIGHT.quiet, dash=(2, 4), top=level)] if _interior(choice) else []),
        *_curves(plane, twin, choice, roomy=roomy),
        plane.points([here], "loss", "frontier", color=LIGHT.ink, name="optimum"),
        plane.words(best, level, stated_loss(choice.loss), shift=(14, 12)),
    )
    if plain and roomy:
        picture = with_right_axis(picture, plane, _error_axis(plane, frontier))
    unit = "squared table units" if plain else "US dollars"
    return dress(
        picture,
        title=FINDINGS[choice.bound_by].format(loss=stated_loss(choice.loss)),
        width=width,
        subtitle=f"Accuracy in {unit}, over {sum(frontier.query_counts.values()):,} published numbers",
        height=380 if roomy else 300,
    )


def shows_accuracy(welfare: SocialWelfare) -> bool:
    """Whether welfare is a function of ε and I alone: one table is valued, by its squared error."""
    return not welfare.other_losses and [value.measure for value in welfare.table_values] == ["squared"]


def _interior(choice: Choice) -> bool:
    return choice.bound_by == "preferences"


def _worth(frontier: Frontier, welfare: SocialWelfare, loss: float) -> float:
    """Height on the picture: accuracy I, or its value in USD."""
    return frontier.accuracy(loss) if shows_accuracy(welfare) else -welfare.data_loss(frontier, loss)


def _curves(plane: Plane, twin: Twin, choice: Choice, *, roomy: bool) -> list[Mark]:
    """The three curves, each with its words where no other curve passes."""
    rows, level = twin.rows, next(amount(row, "frontier") for row in twin.rows if row["marked"])
    straight = all(abs(amount(row, "tangent") - amount(row, "indifference")) < 0.01 * abs(level) for row in rows)
    end = rows[round(len(rows) * 0.97)]
    flat = amount(end, "indifference") < 0  # it stays below the tangent, and inside the picture
    marks: list[Mark] = [
        plane.curve(rows, "loss", "frontier", color=LIGHT.production),
        plane.curve(rows, "loss", "indifference", color=LIGHT.preference),
        plane.words(
            amount(end, "loss"),
            amount(end, "frontier"),
            "what technology can produce" if roomy else "frontier",
            color=LIGHT.production,
            align="right",
            shift=(0, 30 if roomy else 14),
        ),
    ]
    if not straight:
        top = next((row for row in rows if amount(row, "tangent") >= (0.6 if flat else 0.2) * level), rows[-1])
        side: Align = "right" if flat else "left"
        dashed = plane.curve(rows, "loss", "tangent", color=LIGHT.quiet, dash=(6, 4), thick=1.5)
        words = plane.words(
            amount(top, "loss"),
            amount(top, "tangent"),
            "tangent",
            color=LIGHT.quiet,
            align=side,
            shift=(-10 if flat else 8, -4 if flat else 4),
        )
        marks = [dashed, *marks, words]
    return [*marks, _wanted(plane, twin, choice, straight=straight, roomy=roomy)]


def _wanted(plane: Plane, twin: Twin, choice: Choice, *, straight: bool, roomy: bool) -> alt.LayerChart:
    """The words of the indifference curve: to its upper left, or above its end where it stays flat."""
    rows, level = twin.rows, next(amount(row, "frontier") for row in twin.rows if row["marked"])
    aim = min(0.42 * level, 0.13 * plane.up.low)  # two lines stay below the name of the axis
    spot = next((row for row in rows if amount(row, "indifference") >= aim), rows[-1])
    words, shift = "equally good for society" if roomy else "equally good\nfor society", (-12, -7)
    if choice.bound_by not in ("preferences", "fitness for use"):
        spot = next(row for row in rows if amount(row, "loss") >= 0.92 * choice.epsilon)
        words, shift = "equally good\nfor society" if roomy else "equally\ngood", (-12, -24)
    elif amount(rows[-1], "indifference") < 0:
        spot, shift = rows[round(0.8 * len(rows))], (-4, -8)
    elif straight and roomy:
        words += "\n(also the tangent)"
    side: Align = "right"
    place, height = amount(spot, "loss"), amount(spot, "indifference")
    if height > 0:  # a steep curve leaps over the top between two points: its words stand below the frontier
        place, height, side, shift = choice.epsilon, 1.3 * level, "left", (12, 0)
    return plane.words(place, height, words, color=LIGHT.preference, align=side, shift=shift)


def _limit_marks(plane: Plane, choice: Choice, limits: Limits | None) -> list[Mark]:
    """The cap and the floor, each with its line, its name and the side that is closed."""
    if limits is None:
        return []
    marks: list[Mark] = []
    letter = loss_symbol(choice.currency)
    caps = {"cap": limits.largest_epsilon or limits.largest_rho, "left in the account": limits.remaining}
    for name, cap in caps.items():
        if cap is not None and cap < plane.across.high:
            at, words = float(cap), f"{name}: {letter} = {plain_number(float(cap))}"
            marks += [
                plane.closed(at, plane.across.high),
                plane.vertical(at, color=LIGHT.limit),
                plane.words(at, plane.up.low, words, color=LIGHT.limit, shift=(6, -6)),
            ]
    if choice.bound_by == "fitness for use":
        marks += [
            plane.closed(plane.across.low, choice.epsilon),
            plane.vertical(choice.epsilon, color=LIGHT.limit),
            plane.words(choice.epsilon, plane.up.low, "fit for use →", color=LIGHT.limit, shift=(6, -6)),
        ]
    return marks


def _error_axis(plane: Plane, frontier: Frontier) -> Ruler:
    """The same height read as the root mean squared error of one published number."""
    count = sum(frontier.query_counts.values())
    labels = f"format(sqrt(max(0, -datum.value / {count})), ',.2~f')"
    return Ruler("RMSE of one number", plane.up.low, plane.up.high, right=True, labels=labels)
