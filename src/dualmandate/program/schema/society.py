"""`[uncertainty]` and `[social_choice]`: what a plan says about preferences that are not known, or that differ."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, model_validator

from dualmandate.program.schema.calibrated import Calibrated
from dualmandate.program.schema.number import CLOSED, Cap, Count, NotNegative, Positive, Several, Text, lacking, refused

Rule = Literal[
    "utilitarian", "weighted", "median", "phantoms", "majority", "rawlsian", "rawlsian against own peak", "nash"
]


class UncertaintyTable(BaseModel):
    """What another survey would measure, so that its worth to the decision can be stated."""

    model_config = CLOSED

    spread_of_answers: Positive
    """How far one answer is off decides what a survey is worth: the standard deviation of its logarithm."""
    respondents: Count = 1000
    """How many people the survey would ask."""
    parameter: Text | None = None
    """The number that it would ask for, as "mean_disclosure_cost" or "mean_disclosure_cost of GROUP"; the only one that
    has a standard_error where not stated."""
    cost_per_respondent: Calibrated | None = None
    """What asking one person costs, in USD; the plan then says how many it pays to ask."""
    source: Text
    """The spread is known from somewhere, and readers must be able to see from where."""


class SocialChoiceTable(BaseModel):
    """Other ways to add people up than the sum, to be shown beside it; none of them moves the plan."""

    model_config = CLOSED

    rules: Several[Rule] = ()
    """The rules to show; all whose terms are stated where none is named."""
    baseline: Calibrated | None = None
    """How well off everybody is without the release, in USD per person: the Rawlsian rule compares levels. Groups may
    state their own."""
    disagreement_epsilon: Cap | None = None
    """The loss that stands where nothing is agreed on: the Nash product counts gains against it."""
    disagreement_rho: Cap | None = None
    """The same where the privacy loss is counted in rho."""
    phantoms: Several[NotNegative] = ()
    """Ballots that are always cast: losses, 0 for as little as possible."""
    options: Several[Cap] = ()
    """Losses that are put to the vote by pairs; every group's own best ones where none is named."""
    status_quo: Cap | None = None
    """The loss that gains and losses are counted against; the utilitarian one where not stated."""

    @model_validator(mode="after")
    def _terms(self) -> Self:
        needed = {
            "phantoms": (
                bool(self.phantoms),
                "fixed ballots decide how far the choice leans",
                "state phantoms = [0.5]",
            ),
            "nash": (
                self.disagreement_epsilon is not None or self.disagreement_rho is not None,
                "a gain is a gain against something",
                "state disagreement_epsilon: the loss that would stand without an agreement",
            ),
        }
        keys = {"phantoms": "phantoms", "nash": "disagreement_epsilon"}
        for rule, (stated, why, instead) in needed.items():
            if rule in self.rules and not stated:
                raise lacking(keys[rule], why, instead)
        if self.disagreement_epsilon is not None and self.disagreement_rho is not None:
            raise refused(
                "it states the disagreement twice", "keep the one in the program's currency", key="disagreement_rho"
            )
        return self
