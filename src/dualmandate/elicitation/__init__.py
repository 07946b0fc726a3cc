"""Preferences measured: choices, bids and opinions of people turned into costs and values with their uncertainty."""

from dualmandate.elicitation.bids import BidAnswers
from dualmandate.elicitation.choices import ChoiceData
from dualmandate.elicitation.coding import BeliefScale, cost_per_parameter
from dualmandate.elicitation.common_ground import CommonGround, DiscountHorizon
from dualmandate.elicitation.conditional_logit import conditional_logit
from dualmandate.elicitation.contingent import ContingentValuation, Share, Turnbull, contingent_valuation, turnbull
from dualmandate.elicitation.design import (
    ChoiceDesign,
    DesignAttribute,
    Precision,
    coefficient_of_variation,
    efficient_design,
)
from dualmandate.elicitation.interdependent import InterdependentChoice, InterdependentPreferences
from dualmandate.elicitation.mixed_logit import mixed_logit
from dualmandate.elicitation.polychoric import Polychoric, Polyserial, answer_table, polychoric, polyserial
from dualmandate.elicitation.pooling import Agreement, Pair, Pooled, Prior, pool, random_effects
from dualmandate.elicitation.questionnaire import (
    Questionnaire,
    QuestionnairePlan,
    accuracy_attribute,
    answer_sheet,
    design_table,
    form_content,
    price_attribute,
    privacy_attribute,
    questionnaire_of,
)
from dualmandate.elicitation.willingness import (
    ConfidenceSet,
    ParameterEstimates,
    Taste,
    Willingness,
    fieller,
    in_words,
    taste_of,
    willingness_to_pay,
)

__all__ = [
    "Agreement",
    "BeliefScale",
    "BidAnswers",
    "ChoiceData",
    "ChoiceDesign",
    "CommonGround",
    "ConfidenceSet",
    "ContingentValuation",
    "DesignAttribute",
    "DiscountHorizon",
    "InterdependentChoice",
    "InterdependentPreferences",
    "Pair",
    "ParameterEstimates",
    "Polychoric",
    "Polyserial",
    "Pooled",
    "Precision",
    "Prior",
    "Questionnaire",
    "QuestionnairePlan",
    "Share",
    "Taste",
    "Turnbull",
    "Willingness",
    "accuracy_attribute",
    "answer_sheet",
    "answer_table",
    "coefficient_of_variation",
    "conditional_logit",
    "contingent_valuation",
    "cost_per_parameter",
    "design_table",
    "efficient_design",
    "fieller",
    "form_content",
    "in_words",
    "mixed_logit",
    "polychoric",
    "polyserial",
    "pool",
    "price_attribute",
    "privacy_attribute",
    "questionnaire_of",
    "random_effects",
    "taste_of",
    "turnbull",
    "willingness_to_pay",
]
