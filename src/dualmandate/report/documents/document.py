"""What every document that leaves has in common: closed, finite, and written down once, as a model."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeGuard, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema

if TYPE_CHECKING:
    from dualmandate.population import PrivacyLoss

T = TypeVar("T")


class _LeftOut:
    """A key that is left out where there is nothing to say; it is never null."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        stated = tuple(option for option in get_args(source) if option is not type(None))
        return handler.generate_schema(Union[stated])  # noqa: UP007 - of as many as there are


_LEFT_OUT = _LeftOut()
_NOTHING = object()


def _only_word(annotation: Any) -> object:
    """The one thing that a key can say, where it can say one alone."""
    words = get_args(annotation) if get_origin(annotation) is Literal else ()
    return words[0] if len(words) == 1 else _NOTHING


ATTRIBUTES = {"currency": "privacy_measure"}  # Published keys that are older than the word the house uses.


class DocumentModel(BaseModel):
    """A document that leaves, or a part of one: these keys and no others, in this order, and finite numbers."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        from_attributes=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
        defer_build=True,  # a command loads what it prints
    )

    @classmethod
    def made_of(cls, *things: object, **stated: object) -> Self:
        """What some things say under its keys, the first that has one, but for what is stated.

        A key that can say one thing alone says it; one that may be left out is, where there is nothing to say.
        """
        values = {}
        for name, field in cls.model_fields.items():
            key = field.alias or name
            attribute = ATTRIBUTES.get(name, name)
            said = (getattr(thing, attribute) for thing in things if hasattr(thing, attribute))
            value = stated.pop(key) if key in stated else next(said, _only_word(field.annotation))
            if value is not _NOTHING and not (value is None and _LEFT_OUT in field.metadata):
                values[key] = value
        return cls.model_validate(values | stated)

    def as_json(self) -> dict[str, Any]:
        """The document as JSON values, with the keys that are there."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


def _exact(value: object) -> object:
    return str(value) if isinstance(value, Fraction) else value.exact() if _is_loss(value) else value


def _loss(value: object) -> object:
    """An amount or a loss as its keys; a document that was read is left as it is."""
    if _is_loss(value):
        return {"exact": value.exact(), "amount": float(value.amount), "currency": value.privacy_measure}
    return {"exact": str(value), "amount": float(value)} if isinstance(value, Fraction) else value


def _is_loss(value: object) -> TypeGuard[PrivacyLoss]:
    return callable(getattr(value, "exact", None))  # not by its class: that would load numpy for every document


IfAny = Annotated[T | None, _LEFT_OUT]

Schema = Annotated[T, Field(alias="schema", description="The name and version of this document.")]
Text = Annotated[str, Field(strict=True)]
Whether = Annotated[bool, Field(strict=True)]
Whole = Annotated[int, Field(strict=True, ge=0)]
Count = Annotated[int, Field(strict=True, ge=1)]
Number = Annotated[float, Field(strict=True)]
Plain = Annotated[Annotated[int, Field(strict=True)] | Number, WithJsonSchema({"type": "number"})]
Positive = Annotated[float, Field(strict=True, gt=0)]
NotNegative = Annotated[float, Field(strict=True, ge=0)]
NotPositive = Annotated[float, Field(strict=True, le=0)]
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Pair = Annotated[tuple[T, ...], Field(min_length=2, max_length=2)]
Several = Annotated[tuple[T, ...], Field(min_length=1)]

Exact = Annotated[
    str,
    Field(strict=True, pattern="^[0-9]+(/[0-9]+)?$", description="A number, exactly."),
    BeforeValidator(_exact),
]
Digest = Annotated[str, Field(strict=True, pattern="^[0-9a-f]{64}$", description="SHA-256, in hexadecimal digits.")]
Time = Annotated[str, Field(strict=True, pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T", description="UTC, as in ISO 8601.")]
CurrencyName = Annotated[
    Literal["epsilon", "rho"], Field(description="What a privacy loss is counted in: pure DP, or zCDP.")
]
Epsilon = Annotated[Positive, Field(description="A privacy loss, in the plan's currency.")]
AnyLoss = Annotated[Number, Field(description="A privacy loss, in the plan's currency.")]
Money = Annotated[Number, Field(description="Money.")]
Cost = Annotated[NotNegative, Field(description="Money, at least 0.")]
Welfare = Annotated[NotPositive, Field(description="Money, at most 0: what society loses to errors and to disclosure.")]
Words = Annotated[Text, Field(description="The same for people.")]


class AmountPart(DocumentModel):
    """An amount of a privacy loss: exactly, and as the nearest number."""

    exact: Exact
    amount: NotNegative = Field(description="The number nearest to it.")


class LossPart(AmountPart):
    """A privacy loss: exactly, and as the nearest number."""

    currency: CurrencyName


Amount = Annotated[AmountPart, BeforeValidator(_loss)]
Loss = Annotated[LossPart, BeforeValidator(_loss)]


class HeadPart(DocumentModel):
    """How far a ledger had come."""

    ledger: Text = Field(description="The identifier of the ledger.")
    sequence: Whole = Field(description="The number of its last entry.")
    digest: Digest


class Internal(DocumentModel):
    """A document that stays inside the agency."""

    schema_: Schema[str]
    label: Literal["internal"] = Field(description="Whom it is for.")


class Public(DocumentModel):
    """A document that everybody may read."""

    schema_: Schema[str]
    label: Literal["public"] = Field(description="Whom it is for.")
