"""What the ledger's commands, `publish` and a curator's check print; the anchor beside a ledger, and `release.json`.

`release.json` is written by `publication`, which stands below: no model can refuse it after its loss was spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, WithJsonSchema

from dualmandate.mechanism.technologies import published_words
from dualmandate.report.documents.document import (
    Amount,
    Count,
    CurrencyName,
    Digest,
    DocumentModel,
    Exact,
    HeadPart,
    IfAny,
    Internal,
    Loss,
    LossPart,
    NotNegative,
    Number,
    Public,
    Schema,
    Several,
    Text,
    Time,
    Whether,
    Whole,
    Words,
)

if TYPE_CHECKING:
    from dualmandate.ledger import Account
    from dualmandate.publication.checking import CheckReport


SignedWith = Annotated[
    Text | None, Field(description="The key that it is signed with; null: unsigned, the name is what somebody typed.")
]


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
    identifier: Text = Field(description="Tells it from every other, also of this name in another ledger.")
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
    seen_in_the_data: IfAny[Several[Text]] = Field(None, description="Accepted although it was seen in the data.")
    signed_with: SignedWith
    recorded_at: Time


class OtherLedgersPart(DocumentModel):
    """Other ledgers that had spent from the same source: people lose the sum of all."""

    ledgers: Several[Text] = Field(description="Their identifiers, or the first digits of them.")
    reason: Text = Field(description="Why it was published all the same, in the publisher's words.")


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
    signed_with: SignedWith
    group: Text | None = Field(description="For which group.")
    purpose: Text | None = Field(description="For which purpose.")
    reserved_at: Time
    secret_destroyed: Whether = Field(description="Whether the secret of its noise is gone.")
    beside: OtherLedgersPart | None = Field(None, description="Other ledgers that had spent from the same data.")
    number: Count = Field(description="Of the account's releases, from 1; one that was given up keeps its number.")
    unchecked: Whether = Field(description="Whether it was published without a check of its records.")


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
        "checked",
        "reserved",
        "canceled",
        "opened",
        "tabulated",
        "measured",
        "written",
        "published",
        "exported",
        "key destroyed",
        "anchored",
        "refused",
        "more requested",
        "decided",
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


class SecondPlacePart(DocumentModel):
    """A second place of the ledger's head."""

    place: Text = Field(description="Where, in words.")
    sequence: Whole = Field(description="The number of the last entry that it knows.")


class SignatureCountsPart(DocumentModel):
    """How many approvals and publications are signed."""

    signed: Whole = Field(description="So many, each of exactly what its entry says.")
    unsigned: Whole = Field(description="So many are names that somebody typed.")
    unknown: tuple[Count, ...] = Field(description="Entries signed by somebody whom the project does not name.")


class LedgerVerificationDocument(Internal):
    """What a complete check of the ledger found in order."""

    schema_: Schema[Literal["ledger-verification/1"]]
    ledger_head: HeadPart
    anchors: Several[Text] = Field(description="The files that know this head, or one before it.")
    places: tuple[SecondPlacePart, ...] = Field(description="The second places that know this head, or one before it.")
    same_disk: tuple[Text, ...] = Field(description="Those of them that lie on the disk of the ledger.")
    signatures: SignatureCountsPart
    unseen: Words = Field(description="What no check of this ledger can see.")
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


class LedgerAnchoringDocument(Internal):
    """The second places in which the ledger's head is kept from now on."""

    schema_: Schema[Literal["ledger-anchoring/1"]]
    ledger_head: HeadPart
    places: tuple[Text, ...] = Field(description="Where it is kept, in words.")
    before: tuple[Text, ...] = Field(description="Where it was kept before.")
    by: Text = Field(description="Who says so.")


class ApprovalDocument(Internal):
    """One person's word for a plan, at exactly its loss."""

    schema_: Schema[Literal["approval/1"]]
    account: Text = Field(description="That a release of it spends from.")
    program: Text = Field(description="The name of the program.")
    plan_digest: Digest
    loss: Loss
    unit: Text = Field(description="Whose loss that is.")
    by: Text = Field(description="Who approved it.")
    seen_in_the_data: IfAny[Several[Text]] = Field(None, description="Accepted although it was seen in the data.")
    signed_with: SignedWith
    currency: CurrencyName
    cost: Amount
    remaining: Amount


class NoisePart(DocumentModel):
    """The noise of one kind of measured rows."""

    law: Annotated[str, WithJsonSchema({"enum": published_words(), "type": "string"})] = Field(
        description="Discrete Laplace, or discrete Gaussian."
    )
    parameter: Exact = Field(description="The scale of the one, the variance of the other.")


class MeasuredGroupPart(DocumentModel):
    """Tables that were measured together."""

    name: Text = Field(description="Of the group.")
    tables: tuple[Text, ...] = Field(description="Their names.")
    loss: Exact = Field(description="Its part of the loss.")
    rows: Count = Field(description="How many numbers were measured.")
    measurements: Text = Field(description="The file of the measured numbers.")
    strategy: Text | None = Field(description="The file of what was measured, where it is not the tables or cells.")
    noises: tuple[NoisePart, ...]


class DrawPart(DocumentModel):
    """One private draw of a technology."""

    name: Text = Field(description="Of the draw: no other one has it.")
    of: Text = Field(description="What was drawn, in words.")
    noise: NoisePart | None = Field(description="The exact noise of its numbers; null of a choice.")
    numbers: Count = Field(description="How many numbers came out.")


class ReleasedTechnologyPart(DocumentModel):
    """A technology whose errors depend on the data, and its transcript: everything else follows from that."""

    name: Text = Field(description="As in the program file.")
    format: Text = Field(description="Which version of what it draws.")
    rounds_an_attribute: IfAny[Text] = Field(None, description="Of adaptive marginals, at first.")
    largest_model: IfAny[Text] = Field(None, description="Of adaptive marginals: cells of all cliques, at most.")
    replays: IfAny[Text] = Field(None, description="Of multiplicative weights: steps after each measurement.")
    words: Text = Field(description="What it does.")
    loss: Exact = Field(description="Of all draws together, in the currency of the release.")
    covers: Text = Field(description="What its intervals cover.")
    measurements: Text = Field(description="The file of its transcript.")
    measured: tuple[Text, ...] = Field(description="What of the data the release rests on.")
    draws: tuple[DrawPart, ...]


class IntervalWordsPart(DocumentModel):
    """How intervals were made, or why there are none, in words."""

    estimates: Text = Field(description="Those of the estimates.")
    values: Text = Field(description="Those of the whole numbers.")


class PublishedTablePart(DocumentModel):
    """A table, and the files that hold it."""

    name: Text = Field(description="As in the program file.")
    unit: Text = Field(description="Of its numbers.")
    clipped: Text | None = Field(None, description="What its numbers are where amounts or records were clipped.")
    columns: tuple[Text, ...] = Field(description="What it is broken down by.")
    cells: Count = Field(description="How many numbers it has.")
    exact: Whether = Field(description="Whether it is published without noise.")
    estimates: Text | None = Field(
        description="The file of its unbiased estimates, which holds its whole numbers, too; null: they follow from "
        "the measurements, and `load_release` gives them."
    )
    parquet: IfAny[Text] = Field(None, description="All its numbers and intervals, one row a number.")
    csv: IfAny[Text] = Field(None, description="The same as CSV.")
    xlsx: IfAny[Text] = Field(
        None, description="The same as a workbook, with totals and notes, where it is not too large."
    )
    intervals: IfAny[IntervalWordsPart] = Field(None, description="How its intervals were made, or why there are none.")
    sdmx_csv: IfAny[Text] = Field(None, alias="sdmx-csv", description="The same as SDMX-CSV.")
    sdmx_ml: IfAny[Text] = Field(None, alias="sdmx-ml", description="The same as SDMX-ML.")


class PublishedRatioPart(DocumentModel):
    """A ratio of two tables, and the files that hold it."""

    name: Text = Field(description="As in the program file.")
    unit: Text = Field(description="Of its numbers.")
    columns: tuple[Text, ...] = Field(description="What it is broken down by.")
    cells: Count = Field(description="How many numbers it has.")
    numerator: Text = Field(description="The table whose numbers are divided.")
    denominator: Text = Field(description="The table that they are divided by.")
    clipped: Text | None = Field(None, description="What its two tables count where amounts or records were clipped.")
    intervals: Whether = Field(
        description="Whether its files hold intervals of 90 and 95 %; `load_release` gives any one of them."
    )
    parquet: Text = Field(description="The file of its numbers.")
    csv: IfAny[Text] = Field(None, description="The same as CSV.")
    xlsx: IfAny[Text] = Field(None, description="The same as a workbook, where it is not too large.")
    sdmx_csv: IfAny[Text] = Field(None, alias="sdmx-csv", description="The same as SDMX-CSV.")
    sdmx_ml: IfAny[Text] = Field(None, alias="sdmx-ml", description="The same as SDMX-ML.")


class ReleaseMechanismPart(DocumentModel):
    """How the tables were produced."""

    noise: Text = Field(description="The law of the noise.")
    strategy: Literal[
        "optimized", "workload", "identity", "partition", "multiplicative weights", "adaptive marginals"
    ] = Field(description="What was measured.")


class EffectPart(DocumentModel):
    """What making numbers consistent does to cells of one size, on average over simulated releases."""

    table: Text = Field(description="Of which table.")
    least: Whole = Field(description="Cells with at least so many.")
    most: Whole | None = Field(description="Cells with at most so many; null: without end.")
    cells: Count = Field(description="How many there were.")
    unbiased_bias: Number = Field(description="Of the estimates, in records.")
    unbiased_error: NotNegative = Field(description="Root mean squared error of the estimates.")
    consistent_bias: Number = Field(description="Of the whole numbers, in records.")
    consistent_error: NotNegative = Field(description="Root mean squared error of the whole numbers.")


class SignerPart(DocumentModel):
    """Who stands behind an act: a name and a key where it is signed; a name that was only typed is not repeated."""

    by: Text | None = Field(description="As the agency's file of allowed signers names this person; null: unsigned.")
    key: Text | None = Field(description="The fingerprint of the ssh key; null: unsigned.")


class SignaturesPart(DocumentModel):
    """Who approved the plan before it was published, and who published it."""

    approvals: Several[SignerPart]
    publication: SignerPart


class SyntheticRecordsPart(DocumentModel):
    """The file of records of nobody that the tables in whole numbers are counted from; or why there is none."""

    rows: IfAny[Whole] = Field(None, description="Records in it.")
    columns: IfAny[Several[Text]] = Field(None, description="Their attributes, in its order.")
    parquet: IfAny[Text] = Field(None, description="Where it lies, from the release's folder.")
    csv: IfAny[Text] = Field(None, description="The same as text.")
    none: IfAny[Text] = Field(None, description="Why there is none, where the program asked for one.")


class ReleaseDocument(Public):
    """A release: what was published, at which loss, with which promise, and the digest of every file."""

    schema_: Schema[Literal["release/1"]]
    release: Text = Field(description="Its name.")
    program: Text = Field(description="The name of the program.")
    plan_digest: Digest
    account: Text = Field(description="That paid for it.")
    unit: Text = Field(description="Who is protected.")
    snapshot: Text = Field(description="Tells the data that it is made of from others, and not their name.")
    reserved_at: Text = Field(description="When its loss was reserved, UTC.")
    loss: LossPart
    title: IfAny[Text] = Field(None, description="The heading, as in the program file.")
    agency: IfAny[Text] = Field(None, description="Who publishes it, as in the program file.")
    description: Text | None = Field(description="As in the program file.")
    language: IfAny[Text] = Field(None, description="Of the labels of levels, by its code, as in the program file.")
    mechanism: ReleaseMechanismPart
    guarantee: dict[str, Any] = Field(description="The guarantee as it is printed, as in a plan.")
    invariants: tuple[Text, ...] = Field(description="What is published without noise.")
    failure_probability: Exact | None = Field(description="δ; null where the mechanism has none.")
    program_file: Text = Field(description="The program, among the files.")
    bounds: IfAny[dict[str, Text]] = Field(None, description="Upper bounds that the plan chose, exactly, by attribute.")
    seen_in_the_data: IfAny[Several[Text]] = Field(
        None, description="What the program file took from the records, by its key: not covered by the guarantee."
    )
    engine: Text = Field(description="What counted the records.")
    groups: tuple[MeasuredGroupPart, ...]
    technology: IfAny[ReleasedTechnologyPart] = Field(
        None, description="In place of groups, where its errors depend on the data."
    )
    tables: tuple[PublishedTablePart, ...]
    ratios: IfAny[Several[PublishedRatioPart]] = None
    versions: dict[str, Text | Whole] = Field(description="Of the software that made it.")
    estimated_together: Whether = Field(description="Whether estimates rest on all measurements.")
    consistency: Text = Field(description="How whole numbers were made of them, in words.")
    synthetic_records: IfAny[SyntheticRecordsPart] = Field(None, description="Where the program asked for them.")
    consistency_effects: tuple[EffectPart, ...]
    account_identifier: IfAny[Text] = Field(
        None, description="Tells the account from every other: of the identifier of the ledger and its name."
    )
    other_ledgers: IfAny[OtherLedgersPart] = None
    signatures: IfAny[SignaturesPart] = None
    unchecked: IfAny[Literal[True]] = Field(
        None, description="Said where nobody had checked the records, as they were, against the program."
    )
    ledger_head: HeadPart
    files: dict[str, Digest] = Field(description="SHA-256 of every other file, by its path.")


class PublicationDocument(Internal):
    """What `publish` did: the release, where it lies, and what the account has left."""

    schema_: Schema[Literal["publication/1"]]
    release: Text = Field(description="Its name.")
    directory: Text = Field(description="Where it lies.")
    plan_digest: Digest
    account: Text = Field(description="That paid for it.")
    snapshot: Text = Field(description="The data that it is made of, by name.")
    loss: Loss
    unit: Text = Field(description="Who is protected.")
    currency: CurrencyName
    cost: Amount
    remaining: Amount
    signed_with: SignedWith
    anchored: Whether = Field(description="Whether an anchor beside the data, or a second place, knows of it.")


class OutsideValuePart(DocumentModel):
    """A value that is no level of its attribute."""

    value: Text = Field(description="As it stands in the records; a long one is cut.")
    records: Count = Field(description="In how many of them.")
    note: Text | None = Field(description="What may have been meant, where something is like it.")


class CheckedAttributePart(DocumentModel):
    """What was found in one attribute of the records."""

    outside: Whole = Field(description="Records with a value outside the domain.")
    outside_rule: Literal["drop", "clamp", "missing", "refuse"] = Field(description="What becomes of them.")
    null: Whole = Field(description="Records without a value.")
    null_rule: Literal["drop", "missing", "refuse"] = Field(description="What becomes of them.")
    below: Whole = Field(description="Records with a number below the lower bound.")
    above: Whole = Field(description="Records with a number above the upper bound.")
    distinct: Whole = Field(description="How many different values are outside.")
    values: tuple[OutsideValuePart, ...] = Field(description="The most frequent of them.")


class CheckDocument(DocumentModel):
    """Confidential: what a check found in a program's records, without noise, values included."""

    schema_: Schema[Literal["check/1"]]
    label: Literal["confidential"] = Field(description="Whom it is for: nobody outside the wall.")
    program: Text = Field(description="The name of the program.")
    source: Text = Field(description="Where the records lie.")
    recorded: Whether = Field(description="Whether a ledger knows now that records in this state were checked.")
    records_read: Whole = Field(description="How many there are.")
    unreadable: Whole = Field(description="Records with a value that could not be read; it is one that is not there.")
    attributes: dict[str, CheckedAttributePart]
    impossible: Whole = Field(description="Records in structural zeros.")
    unknown_where_impossible: Text | None = Field(description="The attribute that then becomes unknown.")
    identifier: Text | None = Field(description="The column that tells units apart.")
    unidentified: Whole = Field(description="Records without it.")
    most_records_per_unit: Count = Field(description="At most so many records of one unit count.")
    excess: Whole = Field(description="Records beyond that.")
    repeated: Whole = Field(
        description="Duplicates, like an earlier record in every attribute; where units have no identifier."
    )
    units: Whole = Field(description="Units that are identified.")
    several: Whole = Field(description="Those of them with more than one record.")
    dropped: Whole = Field(description="Records that are in no table, for whatever reason.")
    refused: tuple[Text, ...] = Field(description="Attributes that a check was to refuse, and did.")


def check_document(report: CheckReport, program: str, *, recorded: bool) -> dict[str, Any]:
    """What a curator's check found, as JSON; as confidential as the records."""
    found, rules = report.findings, {each.name: report.rules.of(each) for each in report.domain.attributes}
    counts = ("outside", "null", "below", "above", "distinct")
    attributes = {
        name: CheckedAttributePart.made_of(
            outside_rule=rule.outside,
            null_rule=rule.null,
            values=[OutsideValuePart.made_of(each) for each in found.values[name]],
            **{each: getattr(found, each)[name] for each in counts},
        )
        for name, rule in rules.items()
    }
    said = {"attributes": attributes, "program": program, "recorded": recorded}
    return CheckDocument.made_of(report, found, report.rules, report.protection, **said).as_json()
