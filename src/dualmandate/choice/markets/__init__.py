"""Markets for privacy and accuracy: studies that pay, auctions, private providers and monopolists, beside a planner."""

from dualmandate.choice.markets.auctions import QUALITY, Sale, fair_query, min_cost_auction
from dualmandate.choice.markets.comparison import Institution, Market, OnePrice, compare_markets, cost_distribution
from dualmandate.choice.markets.costs import Distribution, GroupedAmounts, LognormalAmounts, UniformAmounts
from dualmandate.choice.markets.hsu import Design, Study
from dualmandate.choice.markets.provision import Provided, Provision, in_order
from dualmandate.choice.markets.spence import EVEN_TASTES, Monopoly

__all__ = [
    "EVEN_TASTES",
    "QUALITY",
    "Design",
    "Distribution",
    "GroupedAmounts",
    "Institution",
    "LognormalAmounts",
    "Market",
    "Monopoly",
    "OnePrice",
    "Provided",
    "Provision",
    "Sale",
    "Study",
    "UniformAmounts",
    "compare_markets",
    "cost_distribution",
    "fair_query",
    "in_order",
    "min_cost_auction",
]
