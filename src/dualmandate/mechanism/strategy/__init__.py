"""Choosing what to measure: strategies of least error for a workload, with certificates."""

from dualmandate.mechanism.strategy.optimize import optimize_strategy
from dualmandate.mechanism.strategy.strategy import Strategy

__all__ = ["Strategy", "optimize_strategy"]
