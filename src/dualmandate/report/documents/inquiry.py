"""The documents of questions: what one costs, and what was answered."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from dualmandate.report.documents.document import (
    Amount,
    Count,
    DocumentModel,
    IfAny,
    Loss,
    NotNegative,
    Number,
    Schema,
    Share,
    Text,
    Whether,
)

Statistic = Literal["count", "sum", "mean", "quantile"]


class PriceDocument(DocumentModel):
    """What a question costs, and how wrong its answer is expected to be; nothing was spent."""

    schema_: Schema[Literal["price/1"]]
    statistic: Statistic
    question: dict[str, Any] = Field(description="The canonical form: whatever asks the same has the same.")
    loss: Loss = Field(description="What it is measured with.")
    charge: Loss = Field(description="What the account would pay: the loss of records that change together.")
    numbers: Count = Field(description="How many numbers the answer has.")
    standard_error: NotNegative = Field(description="Of each of them.")
    half_width: NotNegative = Field(description="How far the truth may be from each.")
    together: NotNegative = Field(description="The same, for all of them at once.")
    probability: Share
    unit: Text = Field(description="What errors are counted in.")
    is_exact: Whether = Field(description="By the exact noise; else a bound for the records that were assumed.")
    account: Text
    remaining: IfAny[Amount] = Field(None, description="What the asker may still spend, in the account's currency.")


class AnswerPart(DocumentModel):
    """One number, or the level that is a quantile; null where it is unbounded."""

    labels: tuple[Text, ...] = Field(description="A level or group for each of `columns`.")
    value: Number | Text | None
    standard_error: NotNegative | None = Field(description="By the exact noise; none for a level.")
    lower: Number | Text | None
    upper: Number | Text | None


class AnswerDocument(DocumentModel):
    """What was asked and answered, with noise; what it cost, and what is left."""

    schema_: Schema[Literal["answer/1"]]
    statistic: Statistic
    of: IfAny[Text] = Field(None, description="What was added up, averaged or ranked.")
    columns: tuple[Text, ...] = Field(description="What was grouped by.")
    rows: tuple[AnswerPart, ...]
    probability: Share = Field(description="With which each interval holds, at least.")
    loss: Loss = Field(description="What it was measured with.")
    account: Text
    release: Text = Field(description="What it is in the ledger.")
    spent: IfAny[Loss] = Field(None, description="What this asking cost; left out where it was answered before.")
    remaining: Amount = Field(description="What the asker may still spend, in the account's currency.")
