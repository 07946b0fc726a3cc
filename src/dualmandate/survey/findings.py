"""What a survey found: costs and values in the units of a program, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dualmandate.elicitation.estimate import Estimates, Willingness
from dualmandate.elicitation.willingness import in_words
from dualmandate.errors import InvalidPreferences, NoEstimate
from dualmandate.population import Calibrated
from dualmandate.program.lines import KeyPath
from dualmandate.survey.survey_file import Survey

MEAN_COST = "mean_disclosure_cost"


@dataclass(frozen=True)
class Found:
    """A cost or a value with its interval, as a program states it."""

    key: str  # in a program file
    number: Calibrated
    interval: tuple[float, float]
    level: float
    method: str
    of: str  # what it is, in words
    place: KeyPath  # of what it was estimated from, in the survey file


@dataclass(frozen=True)
class Worth:
    """What one respondent would pay for one more unit of an attribute, USD; below 0 where they pay to avoid it."""

    attribute: str
    amount: Willingness


@dataclass(frozen=True, eq=False)
class Findings:
    """What one survey says."""

    survey: Survey
    model: str  # how it was estimated, in words
    respondents: int
    estimates: Estimates
    found: tuple[Found, ...]
    worths: tuple[Worth, ...] = ()
    notes: tuple[str, ...] = ()
    correlation: float | None = None  # of the errors of the two numbers that were found


def number_in(found: Willingness) -> Willingness:
    """The willingness to pay; refused where it has no bound, so that no number may be told."""
    if found.estimate is None or found.interval is None or not np.isfinite(found.interval).all():
        raise NoEstimate(
            "willingness to pay has no number",
            why=in_words(replace(found, estimate=None)),
            instead="ask more people, or offer prices that differ more",
        )
    return found


def scaled(found: Willingness, factor: float) -> Willingness:
    """The same amount in other units."""
    assert found.estimate is not None
    assert found.standard_error is not None
    assert found.interval is not None
    low, high = sorted(end * factor for end in found.interval)
    return replace(
        found, estimate=found.estimate * factor, standard_error=found.standard_error * abs(factor), interval=(low, high)
    )


def found_of(
    survey: Survey,
    key: str,
    worth: Willingness,
    *,
    source: str,
    time_base: str | None,
    place: KeyPath,
    unit: str | None = None,
) -> Found:
    """A willingness to pay as a number of a program; refused where people are glad of a loss or an error."""
    form, word = survey.file.report.information_utility, survey.units.singular
    stated = unit or f"USD per {word}" + (" per epsilon" if form == "linear" else "")
    assert worth.estimate is not None
    assert worth.interval is not None
    of = f"one {word}'s privacy loss, {form} form" if key == MEAN_COST else f"'{place[-1]}' of all published numbers"
    if worth.estimate <= 0:
        raise InvalidPreferences(
            f"people would pay for more of what they lose: {key} is not positive",
            why="a cost of privacy loss or of errors is what people pay to avoid it",
            instead="check how the attribute and the price are coded; less of both is better",
            where=survey.document.place(place),
        )
    with survey.document.at(*place):
        number = Calibrated(
            worth.estimate, stated, f"{survey.name}: {source}", time_base, standard_error=worth.standard_error
        )
    return Found(key, number, worth.interval, worth.level, worth.method, of, place)
