"""What one more unit of privacy loss buys (MRT) against what society asks for it (WTA)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, money, number, stated_loss
from dualmandate.report.figures.axis_formats import MONEY_AXIS, NUMBER_AXIS
from dualmandate.report.figures.grid import log_grid
from dualmandate.report.figures.plane import Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import Choice, SocialWelfare
    from dualmandate.frontier import Frontier

REACH = 8.0  # from an eighth of the chosen loss to eight times it
ROOM = 0.2  # of the height, for the words of one curve above those of the other
FINDINGS = {
    "preferences": "Below {loss} accuracy is worth more than its privacy; above, less",
    "participation": "At {loss} accuracy peaks: {mrt} is gained for one more unit, and {wta} asked for it",
    "largest rho": "At {loss} the cap binds: accuracy gained, {mrt}, still exceeds the {wta} asked for it",
    "largest epsilon": "At {loss} the cap binds: accuracy gained, {mrt}, still exceeds the {wta} asked for it",
    "fitness for use": "At {loss} fitness for use binds: accuracy gained, {mrt}, is less than the {wta} asked for it",
    "ledger": "At {loss} the account binds: accuracy gained, {mrt}, still exceeds the {wta} asked for it",
}


def rates_twin(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> Twin:
    """Rows behind the picture: MRT(ε) = dI/dε and WTA(ε), both in accuracy per unit of privacy loss."""
    letter, best, in_dollars = loss_symbol(choice.currency), choice.epsilon, _in_dollars(choice)
    rows = tuple(
        {
            "loss": loss,
            "marginal_rate_of_transformation": -welfare.marginal_data_loss(frontier, loss)
            if in_dollars
            else frontier.marginal_rate_of_transformation(loss),
            "willingness_to_accept": welfare.marginal_privacy_cost(loss)
            if in_dollars
            else welfare.willingness_to_accept(frontier, loss),
            "marked": loss == best,
        }
        for loss in log_grid(best / REACH, best * REACH, through=(best,))
    )
    what, kind = ("value of accuracy", "money") if in_dollars else ("accuracy", "number")
    return Twin(
        caption=f"{what.capitalize()} gained and {what} asked for one more unit of {letter}",
        columns=(
            Column("loss", f"privacy loss {letter}", "loss"),
            Column("marginal_rate_of_transformation", f"MRT: {what} gained per unit of {letter}", kind),
            Column("willingness_to_accept", f"WTA: {what} asked per unit of {letter}", kind),
        ),
        rows=rows,
    )


def rates(frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, width: int = WIDE) -> alt.LayerChart:
    """MRT falls, WTA does not: where they cross, society stops. Logarithmic axes; an open circle at the choice."""
    twin, letter, roomy = rates_twin(frontier, welfare, choice), loss_symbol(choice.currency), width >= ROOMY
    produced, asked, dollars = "marginal_rate_of_transformation", "willingness_to_accept", _in_dollars(choice)
    here = next(row for row in twin.rows if row["marked"])
    buying = [row for row in twin.rows if amount(row, produced) > 0]  # a frontier that people leave ends
    heights = [amount(row, key) for row in buying for key in (produced, asked) if amount(row, key) > 0]
    middle = amount(here, produced)
    plane = Plane(
        Ruler(f"privacy loss {letter}", amount(twin.rows[0], "loss"), amount(twin.rows[-1], "loss"), log=True),
        Ruler(
            f"↑ {'value of ' * dollars}accuracy per unit of {letter}{', USD' * dollars}",
            max(min(heights) / (1 if len(buying) == len(twin.rows) else 30), middle / 1e5),
            min(max(heights), middle * 1e5),
            log=True,
            labels=MONEY_AXIS if dollars else NUMBER_AXIS,
        ),
    )
    gap = [] if choice.bound_by == "preferences" else [here]
    # Where fitness for use decides, the curves cross on the left; the words then stand at the choice, if there is room.
    apart = choice.bound_by == "fitness for use" and plane.up.share(amount(here, asked)) > plane.up.share(middle) + ROOM
    early = next(row for row in twin.rows if amount(row, "loss") >= choice.epsilon / 3)
    sinking = amount(early, asked) < 0.8 * amount(twin.rows[0], asked)
    picture = layered(
        plane.vertical(choice.epsilon, color=LIGHT.quiet, dash=(2, 4), top=middle),
        plane.curve(buying, "loss", produced, color=LIGHT.production),
        plane.curve(buying, "loss", asked, color=LIGHT.preference),
        plane.points(gap, "loss", asked, color=LIGHT.preference, name="asked"),
        plane.points([here], "loss", produced, color=LIGHT.ink, name="optimum"),
        plane.words(
            amount(here if apart else early, "loss"),
            amount(here if apart else early, produced),
            "what it buys (MRT)",
            color=LIGHT.production,
            shift=(12, -2),
        ),
        plane.words(
            choice.epsilon if apart else plane.across.low,
            amount(here if apart else twin.rows[0], asked),
            "what society asks (WTA)" if roomy else "what society\nasks (WTA)",
            color=LIGHT.preference,
            shift=(12, 14) if apart else (6, 36 if sinking else 12),
        ),
        plane.words(choice.epsilon, plane.up.low, stated_loss(choice.loss), shift=(8, -8)),
    )
    return dress(
        picture,
        title=_finding(choice),
        width=width,
        height=340 if roomy else 280,
        subtitle=f"{twin.caption}; both axes logarithmic",
    )


def _finding(choice: Choice) -> str:
    """Where the rates meet, or which limit keeps them apart."""
    loss, crossings = stated_loss(choice.loss), sum(point.kind != "end" for point in choice.local_optima)
    if choice.bound_by == "preferences" and crossings > 1:
        return f"The two rates meet {crossings} times; society is best off where they meet at {loss}"
    gained, asked = number(choice.marginal_rate_of_transformation), number(choice.willingness_to_accept)
    if _in_dollars(choice):
        gained, asked = money(-choice.marginal_data_loss), money(choice.marginal_privacy_cost)
    return FINDINGS[choice.bound_by].format(loss=loss, mrt=gained, wta=asked)


def _in_dollars(choice: Choice) -> bool:
    """Whether tables are counted in different units: squared people and squared dollars have no sum."""
    return choice.root_mean_squared_error is None
