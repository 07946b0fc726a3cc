"""Synthetic records by select, measure, generate: which marginals are measured is chosen by what a model still misses."""

from dualmandate.mechanism.synthesis.adaptive_marginals import (
    AdaptiveMarginals,
    Synthesis,
    TableDistance,
    synthesize,
)

__all__ = ["AdaptiveMarginals", "Synthesis", "TableDistance", "synthesize"]
