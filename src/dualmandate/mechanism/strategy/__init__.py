"""Choosing what to measure: strategies of least error for a workload, with certificates."""

from dualmandate.mechanism.strategy.exact import ExactStrategy
from dualmandate.mechanism.strategy.strategy import Strategy, optimize_strategy

__all__ = ["ExactStrategy", "Strategy", "optimize_strategy"]
