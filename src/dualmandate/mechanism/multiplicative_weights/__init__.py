"""A distribution fitted to what it got most wrong: multiplicative weights, for a release or question by question."""

from dualmandate.mechanism.multiplicative_weights.online import (
    InteractiveAnswer,
    InteractiveAnswers,
    InteractiveState,
    InteractiveTerms,
    threshold_for,
)
from dualmandate.mechanism.multiplicative_weights.selected import MultiplicativeWeights

__all__ = [
    "InteractiveAnswer",
    "InteractiveAnswers",
    "InteractiveState",
    "InteractiveTerms",
    "MultiplicativeWeights",
    "threshold_for",
]
