"""What a privacy loss means to a person: how far beliefs can move, what a test can find, and how to say so."""

from dualmandate.semantics.guarantee import (
    Belief,
    Guarantee,
    OddsBound,
    Secret,
    belief_sentence,
    chance,
    epsilon_for_relative_risk,
    guarantee,
    largest_power,
    odds_bound,
    participation_bound,
    posterior,
    power_of_best_test,
    rounded_up,
    sentences,
)

__all__ = [
    "Belief",
    "Guarantee",
    "OddsBound",
    "Secret",
    "belief_sentence",
    "chance",
    "epsilon_for_relative_risk",
    "guarantee",
    "largest_power",
    "odds_bound",
    "participation_bound",
    "posterior",
    "power_of_best_test",
    "rounded_up",
    "sentences",
]
