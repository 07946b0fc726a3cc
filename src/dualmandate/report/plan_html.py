"""A plan as a notebook shows it: the choice in words, its picture, and what it means for each table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualmandate.population.shown import page_of, sentences, table
from dualmandate.population.wording import money, quantity, stated_loss
from dualmandate.report.plan_words import choice_words

if TYPE_CHECKING:
    from dualmandate.planning.plan import Plan
    from dualmandate.report.figures import Figure

MOST_SENTENCES, MOST_ROWS = 3, 12


def plan_html(plan: Plan, figure: Figure) -> str:
    """A piece of a page that needs no network and no script."""
    currency, ranked = plan.choice.currency, sorted(plan.tables, key=lambda row: -row.data_loss)
    rows = [
        (
            row.table,
            f"{row.query_count:,}",
            quantity(row.root_mean_squared_error, row.unit),
            quantity(row.half_width, row.unit),
            money(row.data_loss, currency),
        )
        for row in ranked[:MOST_ROWS]
    ]
    left = len(ranked) - len(rows)
    headings = ["table", "numbers", "typical error", "95 in 100 within", "cost of errors"]
    return page_of(
        f"{plan.program.name}: {stated_loss(plan.loss)} of each {plan.program.units.singular}",
        sentences(choice_words(plan)[:MOST_SENTENCES]),
        figure._repr_html_(),
        table(headings, rows),
        sentences([*([f"and {left} more tables"] if left else []), *plan.notes[:1], f"Digest: {plan.digest}"]),
    )
