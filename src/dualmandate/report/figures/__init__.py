"""One function a picture; each returns a `Figure` with the table behind it, drawn when asked, for desk and phone."""

from dualmandate.report.figures.clipping import clipping
from dualmandate.report.figures.curves import CurveWords, curves
from dualmandate.report.figures.displaced import displaced
from dualmandate.report.figures.errors import consequences, existing, strategies, technologies
from dualmandate.report.figures.extensions import institutions, offering, participation, path, simulated
from dualmandate.report.figures.figure import Figure
from dualmandate.report.figures.optimum import rates, regret, tangency, welfare_curve
from dualmandate.report.figures.power import power
from dualmandate.report.figures.preferences import charges, forest, social_choice, valuation_curve, votes
from dualmandate.report.figures.risk import risk
from dualmandate.report.figures.uncertainty import (
    WhatIf,
    distribution,
    regret_distribution,
    robust,
    survey_worth,
    tornado,
    what_if,
    what_if_choices,
)

__all__ = [
    "CurveWords",
    "Figure",
    "WhatIf",
    "charges",
    "clipping",
    "consequences",
    "curves",
    "displaced",
    "distribution",
    "existing",
    "forest",
    "institutions",
    "offering",
    "participation",
    "path",
    "power",
    "rates",
    "regret",
    "regret_distribution",
    "risk",
    "robust",
    "simulated",
    "social_choice",
    "strategies",
    "survey_worth",
    "tangency",
    "technologies",
    "tornado",
    "valuation_curve",
    "votes",
    "welfare_curve",
    "what_if",
    "what_if_choices",
]
