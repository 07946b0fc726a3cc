"""What asking more people is worth to the decision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import altair as alt

from dualmandate.population.wording import money, percent
from dualmandate.report.figures.axis_formats import MONEY_AXIS
from dualmandate.report.figures.plane import Mark, Plane, Ruler, layered
from dualmandate.report.figures.theme import LIGHT, ROOMY, WIDE, dress
from dualmandate.report.figures.twin import Column, Twin, amount

if TYPE_CHECKING:
    from dualmandate.choice import UncertainChoice

SIZES = tuple(round(10 ** (i / 8)) for i in range(8, 41))  # 10 to 100,000 people, eight to a decade
SIGNPOST = 1000  # people


def survey_worth_twin(known: UncertainChoice, *, spread: float, parameter: str | None = None) -> Twin:
    """Rows behind the picture: what a survey of each size is worth, USD, and as a share of perfect information."""
    from dualmandate.choice import survey_values

    found = survey_values(known, sorted({*SIZES, SIGNPOST}), spread=spread, parameter=parameter)
    rows = tuple(
        {
            "respondents": survey.respondents,
            "value": survey.value,
            "share": survey.share,
            "marked": survey.respondents == SIGNPOST,
        }
        for survey in found
    )
    return Twin(
        caption=f"What a survey about {found[0].parameter} is worth to this decision",
        columns=(
            Column("respondents", "people asked", "count"),
            Column("value", "worth", "money"),
            Column("share", "of what perfect information is worth", "percent"),
        ),
        rows=rows,
    )


def survey_worth(
    known: UncertainChoice, *, spread: float, parameter: str | None = None, width: int = WIDE
) -> alt.LayerChart:
    """The worth of a survey by its size, below what knowing preferences exactly would be worth."""
    twin = survey_worth_twin(known, spread=spread, parameter=parameter)
    perfect, roomy = known.value_of_perfect_information, width >= ROOMY
    here = next(row for row in twin.rows if row["marked"])
    plane = Plane(
        Ruler("people asked", amount(twin.rows[0], "respondents"), amount(twin.rows[-1], "respondents"), log=True),
        Ruler("↑ worth to this decision, USD", 0.0, (perfect or 1.0) * 1.18, labels=MONEY_AXIS),
    )
    words = f"{SIGNPOST:,} people: {money(amount(here, 'value'))}\n{percent(amount(here, 'share'))} of perfect"
    low = plane.up.share(amount(here, "value")) > 0.3
    marks: list[Mark] = [
        plane.horizontal(perfect, color=LIGHT.quiet, dash=(6, 4)),
        plane.words(
            plane.across.low, perfect, f"perfect information: {money(perfect)}", color=LIGHT.quiet, shift=(4, -6)
        ),
        plane.curve(twin.rows, "respondents", "value", color=LIGHT.production),
        plane.points([here], "respondents", "value", color=LIGHT.production, name="signpost", filled=True),
        plane.words(
            amount(here, "respondents"),
            amount(here, "value"),
            words,
            align="left" if roomy else "center",
            shift=(10 if roomy else 0, 16 if low else -14),
        ),
    ]
    return dress(
        layered(*marks),
        title=f"Another survey of {SIGNPOST:,} people is worth {money(amount(here, 'value'))} to this decision",
        subtitle=f"Expected gain from choosing after the survey; one answer about {_spoken(twin.caption)} has a "
        f"standard deviation of {spread:g} in logarithms",
        width=width,
        height=300 if roomy else 250,
    )


def _spoken(caption: str) -> str:
    """The number that is asked for, as people say it."""
    name = caption.removeprefix("What a survey about ").removesuffix(" is worth to this decision")
    return f"the {name.replace('_', ' ')}"
