"""What an audit found, as the JSON document `audit/1`, which `audit` writes: it stands below."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dualmandate.audit.finding import Reference
from dualmandate.report.documents.document import (
    Count,
    CurrencyName,
    DocumentModel,
    IfAny,
    NotNegative,
    Number,
    Schema,
    Several,
    Share,
    Text,
    Whether,
    Whole,
    Words,
)


class RatePart(DocumentModel):
    """How often something succeeded."""

    value: Share = Field(description="Successes over trials.")
    successes: Whole = Field(description="How often.")
    trials: Count = Field(description="Of how many.")
    low: Share = Field(description="The lower end of a 95 % interval.")
    high: Share = Field(description="The upper end of it.")


class RangePart(DocumentModel):
    """A number that is known to lie between two others."""

    low: Number = Field(description="The least, in the unit.")
    high: Number = Field(description="The largest, in the unit.")
    unit: Text = Field(description="Of both.")


class _Who(DocumentModel):
    """Somebody who does not attack."""

    who: Text = Field(description="A guesser, or what a claim allows.")


class BaselineRatePart(RatePart, _Who):
    """How often somebody succeeds who does not attack."""


class BaselineRangePart(RangePart, _Who):
    """What somebody achieves who does not attack."""


class FindingPart(DocumentModel):
    """One thing that an attack found."""

    attack: Text = Field(description="Its name.")
    claim: Text = Field(description="What was claimed.")
    label: Literal["public", "internal"] = Field(description="Whom it is for.")
    success: RatePart | RangePart = Field(description="How often the claim is right, or what it amounts to.")
    baselines: Several[BaselineRatePart | BaselineRangePart] = Field(description="What others achieve.")
    counted_in_full: Whether = Field(description="Whether everything was tried, so that the rate is no estimate.")
    attacker_knows: Text = Field(description="Besides what is published.")
    coarsening: Text = Field(description="What makes values coarser than they were recorded.")
    reference: Reference = Field(description="What success is judged by.")
    partial: Text | None = Field(description="What a limit of time left open.")
    booked: Text | None = Field(description="What was paid for a rate with noise.")
    words: Words
    details: IfAny[tuple[Text, ...]] = Field(None, description="Single cells or records; inside alone.")


class JudgedPart(DocumentModel):
    """How often an attack is right, beside two guessers who have no tables."""

    attack: Share = Field(description="The attack's share of right answers.")
    low: Share = Field(description="The lower end of a 95 % interval.")
    high: Share = Field(description="The upper end of it.")
    trials: Count = Field(description="Of how many.")
    proportional_guesser: Share = Field(description="Who guesses as often as values occur.")
    modal_guesser: Share = Field(description="Who guesses the most frequent value.")


class ComparedPart(DocumentModel):
    """One way to publish: risk beside accuracy."""

    method: Text = Field(description="Its name.")
    family: Text = Field(description="The methods that it belongs to.")
    loss: Number | None = Field(description="Its privacy loss; null where the method has none.")
    currency: CurrencyName | None
    planned: Whether = Field(description="Whether it is what the plan would publish.")
    mean_absolute_error: NotNegative = Field(description="Of its numbers, as drawn.")
    promised_mean_absolute_error: Number | None = Field(description="Of its numbers, as planned.")
    records_right: JudgedPart
    nonmodal_uniques_right: JudgedPart | None


class AuditDocument(DocumentModel):
    """What an audit found: claims, successes with intervals, and baselines."""

    schema_: Schema[Literal["audit/1"]]
    label: Literal["public", "internal"] = Field(description="Whom it is for.")
    target: Text = Field(description="What was audited.")
    kind: Literal["program", "release", "tables"] = Field(description="What that is.")
    findings: tuple[FindingPart, ...]
    compared: tuple[ComparedPart, ...]
    compared_notes: tuple[Text, ...] = Field(description="On what is compared.")
    left_out: tuple[Text, ...] = Field(description="What was not tried, and why.")
    note: Text = Field(description="What an audit can show, and what it cannot.")
