"""The documents of the service: what may be asked, who asked what, what is left, and who holds a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from dualmandate.report.documents.document import (
    Amount,
    Count,
    CurrencyName,
    Digest,
    DocumentModel,
    IfAny,
    Internal,
    Loss,
    NotNegative,
    Public,
    Schema,
    Text,
    Time,
    Whether,
    Words,
)

if TYPE_CHECKING:
    from dualmandate.population import Attribute

Role = Literal["analyst", "curator", "auditor", "administrator"]
Scope = Literal["user", "group", "purpose"]
MOST_LEVELS = 1000  # of an attribute that are listed


class ServedProgramPart(DocumentModel):
    """A program of the project, and whether its records can be asked about."""

    name: Text
    file: Text = Field(description="Where it stands in the project.")
    account: Text = Field(description="Whose privacy is spent.")
    unit: Text = Field(description="Who is protected.")
    neighbors: Text
    asked: Whether = Field(description="Whether questions to its records are answered.")
    why_not: IfAny[Text] = Field(None, description="Why they are not.")


class RefusedProgramPart(DocumentModel):
    """A program file that cannot be used as it stands."""

    file: Text
    refusal: dict[str, Any] = Field(description="The refusal of it, refusal/1.")


class ProgramsDocument(Public):
    """The programs of a project."""

    schema_: Schema[Literal["programs/1"]]
    programs: tuple[ServedProgramPart, ...]
    refused: tuple[RefusedProgramPart, ...]


class AttributePart(DocumentModel):
    """An attribute of the records, as it is declared."""

    name: Text
    kind: Literal["levels", "ordered levels", "bins", "numbers"]
    size: Count = Field(description="How many levels it has.")
    levels: tuple[Text, ...] = Field(description=f"The first {MOST_LEVELS:,} of them.")
    missing: IfAny[Text] = Field(None, description="The level of a missing answer.")
    groupings: tuple[Text, ...] = Field(description="Groupings of its levels, to ask by and to select.")


class DeclaredProgramDocument(ServedProgramPart, Public):
    """What a program declares of its records: all that a question can be about."""

    schema_: Schema[Literal["program-declared/1"]]
    population_size: NotNegative
    attributes: tuple[AttributePart, ...]


def attribute_part(attribute: Attribute, groupings: tuple[str, ...]) -> AttributePart:
    """An attribute for a reader."""
    plain = "ordered levels" if attribute.ordered else "levels"
    kind = "numbers" if attribute.is_numeric else "bins" if attribute.edges is not None else plain
    levels = tuple(attribute.levels[place] for place in range(min(attribute.size, MOST_LEVELS)))
    return AttributePart.made_of(attribute, kind=kind, levels=levels, groupings=groupings)


class AskedPart(DocumentModel):
    """A loss that somebody set aside: for a question, or for a release."""

    release: Text = Field(description="What it is in the ledger.")
    account: Text
    user: Text
    group: Text | None
    purpose: Text | None
    loss: Loss
    cost: Amount = Field(description="In the account's currency.")
    state: Text = Field(description="How far it has come; settled: there is an answer.")
    reserved_at: Time
    program: IfAny[Text] = Field(None, description="Where it is a question with a kept answer: of which program.")
    question: IfAny[dict[str, Any]] = Field(None, description="The canonical form of the question.")


class HistoryDocument(Internal):
    """Who spent what when on what: the newest first."""

    schema_: Schema[Literal["history/1"]]
    asked: tuple[AskedPart, ...]


class BudgetPart(DocumentModel):
    """A cap that applies to somebody, and what it leaves."""

    cap: Text = Field(description="Which, in words.")
    left: Amount


class BudgetDocument(Internal):
    """What somebody may still spend from an account."""

    schema_: Schema[Literal["budget/1"]]
    account: Text
    unit: Text = Field(description="Who is protected.")
    currency: CurrencyName
    cap: Amount
    spent: Amount = Field(description="By everybody.")
    user: Text
    group: Text | None
    purpose: Text | None
    spent_by_user: Amount
    parts: tuple[BudgetPart, ...] = Field(description="Every cap that applies.")
    remaining: Amount = Field(description="The least that they leave.")


class ForecastDocument(Internal):
    """When an account will be used up at the pace of the last days."""

    schema_: Schema[Literal["forecast/1"]]
    account: Text
    currency: CurrencyName
    days: Count = Field(description="That were looked back on.")
    spent: Amount = Field(description="Over these days.")
    remaining: Amount
    per_day: NotNegative
    ends_at: IfAny[Time] = Field(None, description="Left out where no date can be told.")
    words: Words


class BudgetDecisionPart(DocumentModel):
    """What became of a request for more."""

    granted: Amount | None = Field(description="null: refused.")
    reason: Text
    by: Text
    decided_at: Time


class BudgetRequestPart(DocumentModel):
    """A request that a limit be raised."""

    number: Count = Field(description="Of its entry in the ledger.")
    account: Text
    scope: Scope
    name: Text = Field(description="Which user, group or purpose.")
    amount: Amount
    reason: Text
    by: Text
    requested_at: Time
    state: Literal["open", "granted", "refused"]
    decision: IfAny[BudgetDecisionPart] = None


class BudgetRequestDocument(BudgetRequestPart, Internal):
    """A request that a limit be raised, as it stands."""

    schema_: Schema[Literal["budget-request/1"]]


class BudgetRequestsDocument(Internal):
    """Requests for more, in their order."""

    schema_: Schema[Literal["budget-requests/1"]]
    requests: tuple[BudgetRequestPart, ...]


class QuestionApprovalDocument(Internal):
    """One person's word that a question may be asked at a loss."""

    schema_: Schema[Literal["question-approval/1"]]
    account: Text
    plan_digest: Digest = Field(description="What stands for the question at its loss.")
    loss: Loss
    unit: Text
    by: Text


class ListedFilePart(DocumentModel):
    """A plan, a release or an audit of the project."""

    name: Text
    loss: IfAny[Text] = Field(None, description="In words.")
    state: IfAny[Text] = Field(None, description="Whether it is approved, or who stands behind it.")
    account: IfAny[Text] = None
    digest: IfAny[Text] = Field(None, description="Of the plan.")
    count: IfAny[int] = Field(None, description="Of findings.", ge=0)
    file: Text = Field(description="Where it stands, for machines: under /v1/files.")
    link: Text | None = Field(description="Its page, under /v1/files.")


class ProjectDocument(Public):
    """The plans, releases and public audits of a project."""

    schema_: Schema[Literal["project/1"]]
    name: Text
    plans: tuple[ListedFilePart, ...]
    releases: tuple[ListedFilePart, ...]
    audits: tuple[ListedFilePart, ...]


class ApiKeyPart(DocumentModel):
    """A key to the service, without its secret."""

    identifier: Text
    name: Text = Field(description="Whose it is: the user of the ledger.")
    role: Role
    group: Text | None
    purposes: tuple[Text, ...] = Field(description="That it may spend for; none: only without one.")
    made_at: Time
    made_by: Text
    revoked_at: Time | None


class IdentityDocument(ApiKeyPart, Internal):
    """Who asks, as the service knows them."""

    schema_: Schema[Literal["identity/1"]]


class ApiKeyDocument(ApiKeyPart, Internal):
    """A key that was just made, with its secret, which is not shown again; or revoked, without."""

    schema_: Schema[Literal["api-key/1"]]
    secret: IfAny[Text] = Field(None, description="To be sent as `Authorization: Bearer SECRET`.")


class ApiKeysDocument(Internal):
    """Every key, without its secret."""

    schema_: Schema[Literal["api-keys/1"]]
    keys: tuple[ApiKeyPart, ...]


class HealthDocument(Public):
    """Whether a service is alive, or ready."""

    schema_: Schema[Literal["health/1"]]
    status: Literal["alive", "ready"]
    version: Text


class ServingDocument(Internal):
    """Where a service listens, and what it serves."""

    schema_: Schema[Literal["serving/1"]]
    address: Text
    project: Text
    programs: tuple[Text, ...]
    refused: tuple[Text, ...] = Field(description="Program files that cannot be used.")
    workers: Count
