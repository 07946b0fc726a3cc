"""Markets for privacy and accuracy: studies that pay, auctions, private providers and monopolists, beside a planner."""

from dualmandate.choice.markets.auctions import CompensatedStudy, Sale, fair_query, min_cost_auction
from dualmandate.choice.markets.institutions import (
    EVEN_TASTES,
    GroupedAmounts,
    Institution,
    LognormalAmounts,
    Market,
    Monopoly,
    Provision,
    UniformAmounts,
    compare_markets,
    in_order,
)

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
