"""Markets for privacy and accuracy: studies that pay, auctions, private providers and monopolists, beside a planner."""

from dualmandate.choice.markets.auctions import CompensatedStudy, Sale, fair_query, min_cost_auction
from dualmandate.choice.markets.comparison import Institution, Market, compare_markets
from dualmandate.choice.markets.distributions import GroupedAmounts, LognormalAmounts, UniformAmounts
from dualmandate.choice.markets.provision import EVEN_TASTES, Monopoly, Provision, in_order

__all__ = [
    "EVEN_TASTES",
    "CompensatedStudy",
    "GroupedAmounts",
    "Institution",
    "LognormalAmounts",
    "Market",
    "Monopoly",
    "Provision",
    "Sale",
    "UniformAmounts",
    "compare_markets",
    "fair_query",
    "in_order",
    "min_cost_auction",
]
