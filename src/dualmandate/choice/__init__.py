"""What society prefers, and the choice: welfare in dollars and the privacy loss where it is highest."""

from dualmandate.choice.calibration import (
    information_utility,
    population_size,
    relative_weight,
    table_value,
)
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
from dualmandate.choice.optimum import choose, local_optima
from dualmandate.choice.outcome import Choice, GroupOutcome, LocalOptimum, TableOutcome, dollars, quantity
from dualmandate.choice.regret import Regret, regret, regret_curve
from dualmandate.choice.statics import (
    Elasticity,
    Input,
    TornadoEnd,
    TornadoRow,
    comparative_statics,
    inputs,
    tornado,
)
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
    "BoundedCost",
    "Bounds",
    "Choice",
    "DataLoss",
    "Elasticity",
    "ExponentialCost",
    "Exposures",
    "Group",
    "GroupOutcome",
    "Implied",
    "InformationUtility",
    "Input",
    "Limits",
    "LinearCost",
    "LocalOptimum",
    "PosteriorCost",
    "Regret",
    "RootMeanSquaredLoss",
    "SocialWelfare",
    "TableOutcome",
    "TableValue",
    "TaylorDiagnostic",
    "TornadoEnd",
    "TornadoRow",
    "WealthRisk",
    "choose",
    "comparative_statics",
    "dollars",
    "expected_second_derivative",
    "groups_by_share",
    "implied_coefficient_ratio",
    "implied_cost",
    "implied_price",
    "implied_weight",
    "information_utility",
    "inputs",
    "local_optima",
    "population_size",
    "quantity",
    "regret",
    "regret_curve",
    "relative_weight",
    "table_value",
    "taylor_coefficient",
    "tornado",
]
