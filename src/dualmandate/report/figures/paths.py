"""A budget over many releases: what each may spend, alone and under a cap on all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import loss_symbol, number
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Cell, Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import BudgetPath
    from dualmandate.population import Currency


def path_twin(path: BudgetPath, currency: Currency) -> Twin:
    """Rows behind the picture: each release with its loss, alone and under the cap, and what it costs today."""
    letter = loss_symbol(currency)
    cells: list[dict[str, Cell]] = [
        {
            "year": release.year,
            "loss": release.epsilon,
            "alone": release.alone,
            "privacy": release.privacy_cost,
            "errors": release.data_loss,
            "marked": True,
        }
        for release in path.releases
    ]
    return Twin(
        caption="The best path of releases, in money of today",
        columns=(
            Column("year", "years from now", "stated"),
            Column("loss", letter, "loss"),
            Column("alone", f"{letter} without a cap", "loss"),
            Column("privacy", "cost in privacy", "money"),
            Column("errors", "cost in errors", "money"),
        ),
        rows=tuple(cells),
    )


def path_picture(path: BudgetPath, currency: Currency, *, width: int = WIDE) -> alt.LayerChart:
    """The loss of each release by year: hollow without a cap, filled under it."""
    twin, letter, roomy = path_twin(path, currency), loss_symbol(currency), width >= ROOMY
    capped = path.cap is not None and path.price > 0
    years = [amount(row, "year") for row in twin.rows]
    room = max(0.08 * (years[-1] - years[0]), 1.0)
    top = 1.2 * max(amount(row, "alone") for row in twin.rows)
    plane = Plane(
        Ruler("years from now", years[0] - room, years[-1] + (2.4 if roomy else 1.2) * room),
        Ruler(f"↑ privacy loss {letter} of the release", 0.0, top),
    )
    last = twin.rows[-1]
    marks: list[Mark] = [
        plane.curve(twin.rows, "year", "alone", color=LIGHT.production, dash=(6, 4) if capped else (1, 0)),
        plane.points(twin.rows, "year", "alone", color=LIGHT.production, name="alone"),
        plane.words(
            years[-1],
            amount(last, "alone"),
            "each alone",
            color=LIGHT.production,
            align="left" if roomy else "right",
            shift=(10, 0) if roomy else (0, -14),
        ),
    ]
    if capped:
        marks += [
            plane.curve(twin.rows, "year", "loss", color=LIGHT.limit),
            plane.points(twin.rows, "year", "loss", color=LIGHT.limit, name="capped", filled=True),
            plane.words(
                years[-1],
                amount(last, "loss"),
                f"sum {number(path.total)}",
                color=LIGHT.limit,
                align="left" if roomy else "right",
                shift=(10, 0) if roomy else (0, 14),
            ),
        ]
    return dress(
        layered(*marks),
        title=_finding(path, letter),
        subtitle=f"Privacy loss {letter} of each release; a later one has fewer years to do harm",
        width=width,
        height=300 if roomy else 250,
    )


def _finding(path: BudgetPath, letter: str) -> str:
    first, last = path.releases[0], path.releases[-1]
    if path.cap is not None and path.price > 0:
        alone = sum(release.alone for release in path.releases)
        return (
            f"{len(path.releases)} releases would spend {letter} = {number(alone)}; the cap leaves {number(path.total)}"
        )
    return (
        f"The best {letter} goes from {number(first.epsilon)} now to {number(last.epsilon)} in year {last.year:g}; "
        f"{number(path.total)} in all"
    )
