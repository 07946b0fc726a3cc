"""`[participation]`, `[horizon]`, `[markets]` and the details of a table: what a program may say beyond the paper."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Self

from pydantic import BaseModel, PlainValidator, WithJsonSchema, model_validator

from dualmandate.program.schema.calibrated import Calibrated
from dualmandate.program.schema.number import (
    CLOSED,
    Cap,
    NotNegative,
    Positive,
    Probability,
    Several,
    Text,
    exact_number,
    lacking,
    refused,
)


def _part(value: object) -> Fraction:
    number = exact_number(value)
    if not 0 < number <= 1:
        raise refused("it is larger than 0 and at most 1", "write a number above 0, at most 1")
    return number


Part = Annotated[
    Fraction, PlainValidator(_part), WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1})
]


class ParticipationTable(BaseModel):
    """How many people take part, and how that falls with the privacy loss they are told of."""

    model_config = CLOSED

    rate_without_loss: Part
    """The share of people who would take part if nothing could be learned about them must be known."""
    decline_per_epsilon: NotNegative | None = None
    """How fast the share falls: it is rate_without_loss·exp(−decline_per_epsilon·epsilon)."""
    decline_per_rho: NotNegative | None = None
    """The same where the privacy loss is counted in rho."""
    source: Text
    """How people respond is measured or assumed, and readers must be able to see which."""

    @model_validator(mode="after")
    def _one_decline(self) -> Self:
        if self.decline_per_epsilon is None and self.decline_per_rho is None:
            raise lacking(
                "decline_per_epsilon",
                "without it participation would not depend on the privacy loss",
                "state decline_per_epsilon, or decline_per_rho where the loss is counted in rho",
            )
        if self.decline_per_epsilon is not None and self.decline_per_rho is not None:
            raise refused(
                "it states the decline twice", "keep the one in the program's currency", key="decline_per_rho"
            )
        return self


class ReleasesTable(BaseModel):
    """How preferences change with time: when records are opened, and which releases are to come."""

    model_config = CLOSED

    discount_factor: Part
    """What a dollar in a year is worth today must be stated to weigh later releases."""
    disclosure_after_years: Positive | None = None
    """After how many years the records are opened, as a census after 72; never where not stated."""
    releases: Several[NotNegative]
    """In how many years from now each release is made must be known to share a budget out: 0 is the release planned."""
    largest_total: Cap | None = None
    """The largest sum of the losses of all releases."""
    source: Text
    """Discounting and the calendar are decided somewhere, and readers must be able to see where."""

    @model_validator(mode="after")
    def _some_release(self) -> Self:
        if not self.releases:
            raise refused("no release is named", "state releases = [0, 10]: years from now", key="releases")
        return self


class MarketsTable(BaseModel):
    """What must be known to see the same program under private providers, auctions and studies that pay."""

    model_config = CLOSED

    largest_user_share: Part
    """How much of the value of accuracy the keenest user holds decides what a private provider is paid for."""
    spread_of_tastes: Positive | None = None
    """How users differ in what accuracy is worth to them: the standard deviation of its logarithm; where not stated,
    every taste between nothing and the largest is as frequent as any other."""
    budget: Calibrated | None = None
    """What a buyer of records can pay, in USD."""
    harm: Calibrated | None = None
    """The harm that one whose record is not used expects from others' misdeeds: USD per person."""
    target_error: Probability | None = None
    """By which share of the population the one count that an auction buys may be off."""
    failure_probability: Probability = Fraction(1, 20)
    """How often a study that pays for harm may miss the target error."""
    source: Text
    """Who values accuracy, and how much, is measured or assumed, and readers must be able to see which."""


class DetailTable(BaseModel):
    """The same table at another detail, to be chosen instead."""

    model_config = CLOSED

    name: Text
    """A detail is told from the others by its name."""
    by: Several[Text] = ()
    """Attributes or groupings at this detail."""
    value_of_publishing: Calibrated
    """What the table is worth at this detail when it is exact, in USD, decides whether it is chosen."""
