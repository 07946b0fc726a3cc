"""What is sent to the service: closed models, whose refusals never repeat what was sent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dualmandate.apps.terms import AskTerms

Sent = Annotated[str, Field(min_length=1, max_length=200)]
Amount = Annotated[
    str, Field(min_length=1, max_length=160, description='Exactly: "0.1" or "1/3"; a loss also as "rho=0.01".')
]
LONGEST_QUESTION = 10_000


class RequestBody(BaseModel):
    """These keys and no others."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class QuestionBody(RequestBody):
    """A question, and what it may cost or how right it must be: one of `spend` and `within`."""

    query: Annotated[str, Field(min_length=1, max_length=LONGEST_QUESTION)] | dict[str, Any] = Field(
        description='"SELECT COUNT(*) FROM records WHERE …", or the same as an object (`dualmandate schema query`).'
    )
    spend: Amount | None = None
    within: Annotated[str, Field(min_length=1, max_length=160)] | None = Field(
        None, description='A half-width: "500" in the unit of the answer, or "2%" of `of`.'
    )
    of: Amount | None = Field(None, description="The public size that a percentage is of; for counts the population.")
    probability: Amount = Field("0.95", description="With which each interval holds.")
    records: Amount | None = Field(None, description="For a mean: a public number of records to expect.")
    together: bool = Field(False, description="With `within`: of all numbers of the answer at once.")

    @property
    def terms(self) -> AskTerms:
        """What was stated of cost and accuracy."""
        return AskTerms(self.spend, self.within, self.of, self.probability, self.records, self.together)


class AskBody(QuestionBody):
    """A question that is asked."""

    purpose: Sent | None = Field(None, description="Whose limit counts, and whose reserve may be spent.")


class QuestionApprovalBody(QuestionBody):
    """A question that may be asked at a loss."""


class BudgetRequestBody(RequestBody):
    """A request that a limit be raised."""

    account: Sent
    scope: Literal["user", "group", "purpose"] = "user"
    name: Sent | None = Field(None, description="Which group or purpose; of a user: who asks.")
    amount: Amount
    reason: Sent


class BudgetDecisionBody(RequestBody):
    """What becomes of a request."""

    grant: Amount | None = Field(description="So much of what was asked for; null refuses.")
    reason: Sent


class ApiKeyBody(RequestBody):
    """A key to be made."""

    name: Sent = Field(description="Whose: the user that the ledger will name.")
    role: Literal["analyst", "curator", "auditor", "administrator"]
    group: Sent | None = None
    purposes: tuple[Sent, ...] = Field((), max_length=50)
