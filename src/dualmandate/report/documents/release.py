"""A release as its `release.json` says it, what `publish` prints, and what a curator's check prints inside the wall.

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
    Text,
    Whether,
    Whole,
)

if TYPE_CHECKING:
    from dualmandate.publication.tabulating import CheckReport


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


class PublishedTablePart(DocumentModel):
    """A table, and the files that hold it."""

    name: Text = Field(description="As in the program file.")
    unit: Text = Field(description="Of its numbers.")
    columns: tuple[Text, ...] = Field(description="What it is broken down by.")
    cells: Count = Field(description="How many numbers it has.")
    exact: Whether = Field(description="Whether it is published without noise.")
    estimates: Text = Field(description="The file of its unbiased estimates.")
    parquet: IfAny[Text] = Field(None, description="The file of its whole numbers.")
    csv: IfAny[Text] = Field(None, description="The same as CSV.")
    sdmx_csv: IfAny[Text] = Field(None, alias="sdmx-csv", description="The same as SDMX-CSV.")
    sdmx_ml: IfAny[Text] = Field(None, alias="sdmx-ml", description="The same as SDMX-ML.")


class ReleaseMechanismPart(DocumentModel):
    """How the tables were produced."""

    noise: Text = Field(description="The law of the noise.")
    strategy: Literal["optimized", "workload", "identity"] = Field(description="What was measured.")


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


class ReleaseDocument(Public):
    """A release: what was published, at which loss, with which promise, and the digest of every file."""

    schema_: Schema[Literal["release/1"]]
    release: Text = Field(description="Its name.")
    program: Text = Field(description="The name of the program.")
    plan_digest: Digest
    account: Text = Field(description="That paid for it.")
    unit: Text = Field(description="Who is protected.")
    snapshot: Text = Field(description="The data that it is made of, by name.")
    reserved_at: Text = Field(description="When its loss was reserved, UTC.")
    loss: LossPart
    description: Text | None = Field(description="As in the program file.")
    mechanism: ReleaseMechanismPart
    guarantee: dict[str, Any] = Field(description="The guarantee as it is printed, as in a plan.")
    invariants: tuple[Text, ...] = Field(description="What is published without noise.")
    failure_probability: Exact | None = Field(description="δ; null where the mechanism has none.")
    program_file: Text = Field(description="The program, among the files.")
    engine: Text = Field(description="What counted the records.")
    groups: tuple[MeasuredGroupPart, ...]
    tables: tuple[PublishedTablePart, ...]
    versions: dict[str, Text | Whole] = Field(description="Of the software that made it.")
    estimated_together: Whether = Field(description="Whether estimates rest on all measurements.")
    consistency: Text = Field(description="How whole numbers were made of them, in words.")
    consistency_effects: tuple[EffectPart, ...]
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


class CheckedAttributePart(DocumentModel):
    """What was found in one attribute of the records."""

    outside: Whole = Field(description="Records with a value outside the domain.")
    outside_rule: Literal["drop", "clamp", "missing", "refuse"] = Field(description="What becomes of them.")
    null: Whole = Field(description="Records without a value.")
    null_rule: Literal["drop", "missing", "refuse"] = Field(description="What becomes of them.")


class TabulateCheckDocument(DocumentModel):
    """Confidential: what a check counted in a program's records, without noise."""

    schema_: Schema[Literal["tabulate-check/1"]]
    label: Literal["confidential"] = Field(description="Whom it is for: nobody outside the wall.")
    source: Text = Field(description="Where the records lie.")
    records_read: Whole = Field(description="How many there are.")
    attributes: dict[str, CheckedAttributePart]
    impossible: Whole = Field(description="Records in structural zeros.")
    unknown_where_impossible: Text | None = Field(description="The attribute that then becomes unknown.")
    identifier: Text | None = Field(description="The column that tells units apart.")
    unidentified: Whole = Field(description="Records without it.")
    most_records_per_unit: Count = Field(description="At most so many records of one unit count.")
    excess: Whole = Field(description="Records beyond that.")
    refused: tuple[Text, ...] = Field(description="Attributes that a check was to refuse, and did.")


def check_document(report: CheckReport) -> dict[str, Any]:
    """What a curator's check found, as JSON; as confidential as the records."""
    found, rules = report.findings, {each.name: report.rules.of(each) for each in report.domain.attributes}
    attributes = {
        name: CheckedAttributePart.made_of(
            outside=found.outside[name], outside_rule=rule.outside, null=found.null[name], null_rule=rule.null
        )
        for name, rule in rules.items()
    }
    return TabulateCheckDocument.made_of(
        report, found, report.rules, report.protection, attributes=attributes
    ).as_json()
