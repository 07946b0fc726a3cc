"""What the ledger's commands print, and the anchor that lies beside a ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from dualmandate.report.documents.document import (
    Amount,
    Count,
    CurrencyName,
    Digest,
    DocumentModel,
    HeadPart,
    Internal,
    Loss,
    Public,
    Schema,
    Several,
    Text,
    Time,
    Whether,
    Words,
)

if TYPE_CHECKING:
    from dualmandate.ledger import Account


class LimitPart(DocumentModel):
    """A cap inside the account's cap."""

    scope: Literal["user", "group", "purpose"] = Field(description="Whose part of the account it is about.")
    name: Text | None = Field(description="Which one; null for each of them.")
    limit: Amount


class ReservePart(DocumentModel):
    """A part of the account that is kept for a purpose."""

    purpose: Text = Field(description="What it is kept for.")
    kept: Amount


class UnitBoundPart(DocumentModel):
    """How many of another unit one protected unit can be in."""

    unit: Text = Field(description="The other unit.")
    most: Count = Field(description="At most so many.")


class AccountPart(DocumentModel):
    """An account as it was opened."""

    name: Text = Field(description="The population whose privacy is spent.")
    unit: Text = Field(description="Who is protected.")
    currency: CurrencyName
    cap: Amount
    limits: tuple[LimitPart, ...]
    reserves: tuple[ReservePart, ...]
    unit_bounds: tuple[UnitBoundPart, ...]
    approver_differs: Whether = Field(description="Whether nobody publishes on their own approval alone.")


def account_keys(account: Account) -> dict[str, Any]:
    """What a document calls by other names than the account does."""
    return {
        "cap": account.cap.amount,
        "limits": [LimitPart.made_of(each, limit=each.amount) for each in account.limits],
        "reserves": [ReservePart.made_of(each, kept=each.amount) for each in account.earmarks],
    }


class BalancePart(AccountPart):
    """An account with what it has left."""

    spent: Amount
    remaining: Amount


class ApprovalPart(DocumentModel):
    """One person's word for a plan."""

    plan_digest: Digest
    loss: Loss
    unit: Text = Field(description="Whose loss that is.")
    by: Text = Field(description="Who approved it.")
    recorded_at: Time


class LedgerReleasePart(DocumentModel):
    """A release that spends from an account."""

    name: Text = Field(description="As its reservation named it.")
    plan_digest: Digest
    snapshot: Text = Field(description="The data that it is made of, by name.")
    state: Literal["reserved", "opened", "measured", "written", "settled", "canceled", "abandoned"] = Field(
        description="How far it has come."
    )
    loss: Loss
    unit: Text = Field(description="Whose loss that is.")
    cost: Amount
    user: Text = Field(description="Who publishes.")
    group: Text | None = Field(description="For which group.")
    purpose: Text | None = Field(description="For which purpose.")
    reserved_at: Time
    secret_destroyed: Whether = Field(description="Whether the secret of its noise is gone.")


class StatementPart(BalancePart):
    """An account with its balance, approvals and releases."""

    approvals: tuple[ApprovalPart, ...]
    releases: tuple[LedgerReleasePart, ...]


class EventPart(DocumentModel):
    """An entry of the ledger."""

    sequence: Count = Field(description="Its number.")
    kind: Literal[
        "account opened",
        "approved",
        "reserved",
        "canceled",
        "opened",
        "tabulated",
        "measured",
        "written",
        "published",
        "exported",
        "key destroyed",
        "refused",
    ] = Field(description="What was done.")
    recorded_at: Time
    by: Text = Field(description="By whom.")
    account: Text | None = Field(description="To which account.")
    release: Text | None = Field(description="To which release.")
    amount: Amount | None
    details: dict[str, Any] = Field(description="What else the entry says.")
    digest: Digest


class AlonePart(DocumentModel):
    """What one release alone has cost, which is no balance: two of them do not add up."""

    release: Text = Field(description="Its name.")
    by_conversion: Amount
    by_distribution: Amount | None
    words: Words


class LedgerDocument(Internal):
    """Accounts with their balances, approvals and releases."""

    schema_: Schema[Literal["ledger/1"]]
    ledger_head: HeadPart
    accounts: tuple[StatementPart, ...]


class LedgerAccountDocument(AccountPart, Internal):
    """An account that was just opened."""

    schema_: Schema[Literal["ledger-account/1"]]
    by: Text = Field(description="Who opened it.")
    ledger: Text = Field(description="Where the ledger lies.")
    key_file: Text = Field(description="Where its key lies.")


class LedgerAccountsDocument(Internal):
    """The balance of every account."""

    schema_: Schema[Literal["ledger-accounts/1"]]
    accounts: tuple[BalancePart, ...]


class LedgerEventsDocument(Internal):
    """Every entry of the ledger, in order."""

    schema_: Schema[Literal["ledger-events/1"]]
    events: tuple[EventPart, ...]


class LedgerVerificationDocument(Internal):
    """What a complete check of the ledger found in order."""

    schema_: Schema[Literal["ledger-verification/1"]]
    ledger_head: HeadPart
    anchors: Several[Text] = Field(description="The files that know this head, or one before it.")
    releases: tuple[Text, ...] = Field(description="Releases that are whole, as they were written.")
    clock_set_back: tuple[Count, ...] = Field(description="Entries whose clock showed less than the one before.")


class LedgerReportDocument(Public):
    """What an account has spent, as (ε, δ), for the public."""

    schema_: Schema[Literal["ledger-report/1"]]
    account: Text = Field(description="Its name.")
    unit: Text = Field(description="Who is protected.")
    currency: CurrencyName
    spent: Amount
    epsilon: Amount
    failure_probability: Amount
    releases: tuple[AlonePart, ...]


class LedgerCancellationDocument(Internal):
    """A reservation that was given back before any data were opened."""

    schema_: Schema[Literal["ledger-cancellation/1"]]
    release: LedgerReleasePart
    account: Text = Field(description="Whose loss it would have been.")
    remaining: Amount


class LedgerExportDocument(Internal):
    """A release that was handed out, and to whom."""

    schema_: Schema[Literal["ledger-export/1"]]
    release: Text = Field(description="Its name.")
    account: Text = Field(description="That paid for it.")
    to: Text = Field(description="Who received it.")
    by: Text = Field(description="Who handed it out.")


class LedgerAnchorDocument(Internal):
    """How far a ledger had come, kept outside its database; a release.json holds the same key."""

    schema_: Schema[Literal["ledger-anchor/1"]]
    ledger_head: HeadPart


class ApprovalDocument(Internal):
    """One person's word for a plan, at exactly its loss."""

    schema_: Schema[Literal["approval/1"]]
    account: Text = Field(description="That a release of it spends from.")
    program: Text = Field(description="The name of the program.")
    plan_digest: Digest
    loss: Loss
    unit: Text = Field(description="Whose loss that is.")
    by: Text = Field(description="Who approved it.")
    currency: CurrencyName
    cost: Amount
    remaining: Amount
