"""One picture of a whole program, for a first page: where to stand, and the price of standing elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.units import plural
from dualmandate.population.wording import money, number, stated_loss
from dualmandate.report.figures.regret import regret, regret_twin
from dualmandate.report.figures.tangency import tangency, tangency_twin
from dualmandate.report.figures.theme import ROOMY, dress, panel
from dualmandate.report.figures.twin import Twin

if TYPE_CHECKING:
    from dualmandate.choice import Choice, Limits, SocialWelfare
    from dualmandate.frontier import Frontier

WIDTH, HEIGHT = 980, 340  # px, the whole and the height between the axes
LEFT, RIGHT = 430, 330  # px between the axes of the two panels


def cover_twins(frontier: Frontier, welfare: SocialWelfare, choice: Choice) -> tuple[Twin, Twin]:
    """Rows behind the two panels."""
    return tangency_twin(frontier, welfare, choice), regret_twin(frontier, welfare, choice)


def cover(
    frontier: Frontier, welfare: SocialWelfare, choice: Choice, *, name: str, limits: Limits | None = None
) -> alt.HConcatChart:
    """Figure 1 beside the valley of regret, under one sentence: what is chosen and what a typical error comes to."""
    stand = panel(
        tangency(frontier, welfare, choice, limits=limits, width=ROOMY),
        title="Where accuracy is worth its privacy",
        width=LEFT,
        height=HEIGHT,
    )
    price = panel(
        regret(frontier, welfare, choice, width=ROOMY - 1),
        title="What it costs to stand elsewhere",
        width=RIGHT,
        height=HEIGHT,
    )
    table = choice.tables[0]
    error = f"{number(table.root_mean_squared_error)} {plural(table.unit)}"
    if table.root_mean_squared_consequence is not None:
        error += f" ({money(table.root_mean_squared_consequence)})"
    people = f"{welfare.population_size:,.0f} {plural(choice.protected_unit)}"
    count = sum(table.query_count for table in choice.tables)
    return dress(
        alt.hconcat(stand, price, spacing=48),
        title=f"{name}: society is best off at {stated_loss(choice.loss)}",
        subtitle=f"A typical error of {error} in each of {count:,} published numbers, against the privacy of {people}",
        width=WIDTH,
    )
