"""Preferences measured: choices, bids and opinions of people turned into costs and values with their uncertainty."""

from dualmandate.elicitation.answers import BidAnswers, ChoiceData
from dualmandate.elicitation.contingent import Turnbull, contingent_valuation, turnbull
from dualmandate.elicitation.design import Precision
from dualmandate.elicitation.logit import conditional_logit, mixed_logit
from dualmandate.elicitation.opinions import InterdependentPreferences, Polychoric, Polyserial, polychoric, polyserial
from dualmandate.elicitation.pooling import Agreement, CommonGround, Prior, pool
from dualmandate.elicitation.willingness import (
    ParameterEstimates,
    Willingness,
    fieller,
    in_words,
    taste_of,
    willingness_to_pay,
)
from dualmandate.population.time_base import DiscountHorizon

__all__ = [
    "Agreement",
    "BidAnswers",
    "ChoiceData",
    "CommonGround",
    "DiscountHorizon",
    "InterdependentPreferences",
    "ParameterEstimates",
    "Polychoric",
    "Polyserial",
    "Precision",
    "Prior",
    "Turnbull",
    "Willingness",
    "conditional_logit",
    "contingent_valuation",
    "fieller",
    "in_words",
    "mixed_logit",
    "polychoric",
    "polyserial",
    "pool",
    "taste_of",
    "turnbull",
    "willingness_to_pay",
]
