"""Synthetic records by select, measure, generate: measured is what a model of whole records still misses by most."""

from dualmandate.mechanism.synthesis.adaptive_marginals import (
    AdaptiveMarginals,
    Synthesis,
    TableDistance,
    synthesize,
)

__all__ = ["AdaptiveMarginals", "Synthesis", "TableDistance", "synthesize"]
