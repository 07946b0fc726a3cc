"""Choosing what to measure: strategies of least error for a workload, with certificates."""

from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.mechanism.strategy.optimize import optimize_strategy
from dualmandate.mechanism.strategy.strategy import Strategy

__all__ = ["ExactStrategy", "Strategy", "optimize_strategy"]
