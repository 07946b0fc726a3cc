"""Markets for privacy and accuracy: studies that pay, auctions, private providers and monopolists, beside a planner."""

from dualmandate.choice.markets.auctions import (
    QUALITY,
    CompensatedStudy,
    Sale,
    StudyDesign,
    fair_query,
    min_cost_auction,
)
from dualmandate.choice.markets.comparison import Institution, Market, OnePrice, compare_markets, cost_distribution
from dualmandate.choice.markets.distributions import (
    AmountDistribution,
    GroupedAmounts,
    LognormalAmounts,
    UniformAmounts,
)
from dualmandate.choice.markets.provision import EVEN_TASTES, Monopoly, Provision, ProvisionOutcome, in_order

__all__ = [
    "EVEN_TASTES",
    "QUALITY",
    "AmountDistribution",
    "CompensatedStudy",
    "GroupedAmounts",
    "Institution",
    "LognormalAmounts",
    "Market",
    "Monopoly",
    "OnePrice",
    "Provision",
    "ProvisionOutcome",
    "Sale",
    "StudyDesign",
    "UniformAmounts",
    "compare_markets",
    "cost_distribution",
    "fair_query",
    "in_order",
    "min_cost_auction",
]
