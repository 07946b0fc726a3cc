"""What society prefers, and the choice: welfare in dollars and the privacy loss where it is highest."""

from dualmandate.choice.beliefs import Beliefs, Uncertain
from dualmandate.choice.calibration import (
    information_utility,
    population_size,
    relative_weight,
    table_value,
)
from dualmandate.choice.charges import ClarkeTax, Lindahl, LindahlPrice, clarke_taxes, lindahl
from dualmandate.choice.fairness import Bargain, nash_bargain, rawlsian
from dualmandate.choice.horizon import Horizon, Path, PlannedRelease, budget_path
from dualmandate.choice.implied import Implied, implied_coefficient_ratio, implied_cost, implied_price, implied_weight
from dualmandate.choice.information import (
    FORMS,
    BoundedCost,
    ExponentialCost,
    InformationUtility,
    LinearCost,
    PosteriorCost,
)
from dualmandate.choice.limits import Bounds, Limits
from dualmandate.choice.offering import Candidate, Offering, Verdict, choose_tables
from dualmandate.choice.optimum import choose, local_optima
from dualmandate.choice.outcome import Choice, GroupOutcome, LocalOptimum, TableOutcome
from dualmandate.choice.regret import Regret, regret, regret_curve
from dualmandate.choice.robust import Corner, RobustChoice, minimax_regret
from dualmandate.choice.social_choice import RULES, SocialChoiceRow, SocialChoices, Terms, social_choices
from dualmandate.choice.society import Citizens, Peak, Profile, Society, profile
from dualmandate.choice.statics import (
    Elasticity,
    Input,
    TornadoEnd,
    TornadoRow,
    comparative_statics,
    inputs,
    tornado,
)
from dualmandate.choice.survey_value import SurveyValue, best_survey, signal_value, survey_value, survey_values
from dualmandate.choice.uncertainty import UncertainChoice, choose_under_uncertainty, share_in_words
from dualmandate.choice.voting import Majority, generalized_median, majority, median_vote, phantom_vote
from dualmandate.choice.wealth import (
    Exposures,
    TaylorDiagnostic,
    WealthRisk,
    expected_second_derivative,
    taylor_coefficient,
)
from dualmandate.choice.welfare import (
    DataLoss,
    Group,
    RootMeanSquaredLoss,
    SocialWelfare,
    TableValue,
    groups_by_share,
)

__all__ = [
    "FORMS",
    "RULES",
    "Bargain",
    "Beliefs",
    "BoundedCost",
    "Bounds",
    "Candidate",
    "Choice",
    "Citizens",
    "ClarkeTax",
    "Corner",
    "DataLoss",
    "Elasticity",
    "ExponentialCost",
    "Exposures",
    "Group",
    "GroupOutcome",
    "Horizon",
    "Implied",
    "InformationUtility",
    "Input",
    "Limits",
    "Lindahl",
    "LindahlPrice",
    "LinearCost",
    "LocalOptimum",
    "Majority",
    "Offering",
    "Path",
    "Peak",
    "PlannedRelease",
    "PosteriorCost",
    "Profile",
    "Regret",
    "RobustChoice",
    "RootMeanSquaredLoss",
    "SocialChoiceRow",
    "SocialChoices",
    "SocialWelfare",
    "Society",
    "SurveyValue",
    "TableOutcome",
    "TableValue",
    "TaylorDiagnostic",
    "Terms",
    "TornadoEnd",
    "TornadoRow",
    "Uncertain",
    "UncertainChoice",
    "Verdict",
    "WealthRisk",
    "best_survey",
    "budget_path",
    "choose",
    "choose_tables",
    "choose_under_uncertainty",
    "clarke_taxes",
    "comparative_statics",
    "expected_second_derivative",
    "generalized_median",
    "groups_by_share",
    "implied_coefficient_ratio",
    "implied_cost",
    "implied_price",
    "implied_weight",
    "information_utility",
    "inputs",
    "lindahl",
    "local_optima",
    "majority",
    "median_vote",
    "minimax_regret",
    "nash_bargain",
    "phantom_vote",
    "population_size",
    "profile",
    "rawlsian",
    "regret",
    "regret_curve",
    "relative_weight",
    "share_in_words",
    "signal_value",
    "social_choices",
    "survey_value",
    "survey_values",
    "table_value",
    "taylor_coefficient",
    "tornado",
]
