"""Numbers and words as a program file may write them: exact, finite, and never a truth value in disguise.

A calibrated number has its unit and its source: 1,400 is "USD per child per epsilon, DOJ 2015", or it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from dualmandate.population import Calibrated as Quantity
from dualmandate.population.shown import told
from dualmandate.population.time_base import DiscountHorizon, TimeBase
from dualmandate.program.file import KeyPath

LARGEST_EXPONENT = 50  # of ten: products of a few such numbers still have finite doubles
MOST_DIGITS = 60
LARGEST_CAP = 10**6  # on a privacy loss


class KeyTable(BaseModel):
    """A table of a file that people write: these keys and no others, each said what for, and nothing converted."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, use_attribute_docstrings=True, title=None
    )

    def __repr__(self) -> str:
        return told(type(self).__name__, {name: getattr(self, name) for name in self.model_fields_set})


def refused(why: str, instead: str, *, key: str | tuple[str | int, ...] = ()) -> PydanticCustomError:
    """A complaint about a value (of the table's key, where one is named), in the words that its refusal will use."""
    path = (key,) if isinstance(key, str) else key
    return PydanticCustomError("refused", "{why}", {"why": why, "instead": instead, "key": path})


def lacking(key: str | tuple[str | int, ...], why: str, instead: str) -> PydanticCustomError:
    """A complaint that a table leaves out a key which its other keys call for."""
    path = (key,) if isinstance(key, str) else key
    return PydanticCustomError("lacking", "{why}", {"why": why, "instead": instead, "key": path})


def exact_number(value: object) -> Fraction:
    """A finite number as it was typed, exactly."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise refused("a number is meant here", "write a number without quotes")
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise refused("it is not a finite number", "write a finite number")
        if value and (abs(value.adjusted()) > LARGEST_EXPONENT or len(value.as_tuple().digits) > MOST_DIGITS):
            raise refused("no quantity is that large, that small or that precise", "write it with fewer digits")
    elif isinstance(value, int) and value.bit_length() > 3 * LARGEST_EXPONENT:
        raise refused("no quantity is that large", "write a smaller number")
    return Fraction(value)


def whole_number(value: object) -> int:
    """A whole number; 2.0 counts as 2."""
    number = exact_number(value)
    if number.denominator != 1:
        raise refused("a whole number is meant here", "write a number without a fraction")
    return int(number)


def label(value: object) -> str:
    """A level or group as a text; whole numbers stand for their digits."""
    if isinstance(value, str):
        if not value:
            raise refused("a level without a name cannot be asked for", "write a text that is not empty")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(whole_number(value))
    raise refused("a level is a text or a whole number", 'write it in quotes, as "yes"')


def labels(value: object) -> tuple[str, ...]:
    """One level, or a list of levels."""
    listed = value if isinstance(value, list) else [value]
    if not listed:
        raise refused("an empty list selects nothing", "list at least one level")
    return tuple(label(item) for item in listed)


def _word(value: object) -> str:
    if not isinstance(value, str):
        raise refused("a text is meant here", 'write it in quotes, as "child"')
    if not value.strip():
        raise refused("an empty text says nothing", "write what is meant")
    return value


def _checked(holds: Callable[[Fraction], bool], why: str, instead: str) -> Callable[[object], Fraction]:
    def check(value: object) -> Fraction:
        number = exact_number(value)
        if not holds(number):
            raise refused(why, instead)
        return number

    return check


def _whole_from(lowest: int) -> Callable[[object], int]:
    def check(value: object) -> int:
        number = whole_number(value)
        if number < lowest:
            raise refused(f"it must be at least {lowest}", f"write a whole number of at least {lowest}")
        return number

    return check


T = TypeVar("T")
EITHER = ("[text]", "[table]")  # of a value that may be either
Several = Annotated[tuple[T, ...], Field(strict=False)]  # a TOML array

LEVEL_SCHEMA: dict[str, Any] = {"type": ["string", "integer"], "minLength": 1}

Text = Annotated[str, PlainValidator(_word), WithJsonSchema({"type": "string", "minLength": 1})]
Level = Annotated[str, PlainValidator(label), WithJsonSchema(LEVEL_SCHEMA)]
Levels = Annotated[
    tuple[str, ...],
    PlainValidator(labels),
    WithJsonSchema({"anyOf": [LEVEL_SCHEMA, {"type": "array", "items": LEVEL_SCHEMA, "minItems": 1}]}),
]
Number = Annotated[Fraction, PlainValidator(exact_number), WithJsonSchema({"type": "number"})]
Positive = Annotated[
    Fraction,
    PlainValidator(_checked(lambda number: number > 0, "it must be larger than 0", "write a positive number")),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),
]
NotNegative = Annotated[
    Fraction,
    PlainValidator(_checked(lambda number: number >= 0, "it must not be negative", "write a number of at least 0")),
    WithJsonSchema({"type": "number", "minimum": 0}),
]
Cap = Annotated[
    Fraction,
    PlainValidator(
        _checked(
            lambda cap: 0 < cap <= LARGEST_CAP,
            f"it must be larger than 0 and at most {LARGEST_CAP:,}: a larger privacy loss protects nobody",
            "write a positive number, or leave the cap out",
        )
    ),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": LARGEST_CAP}),
]
Part = Annotated[
    Fraction,
    PlainValidator(
        _checked(lambda p: 0 < p <= 1, "it is larger than 0 and at most 1", "write a number above 0, at most 1")
    ),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": 1}),
]
AnyPart = Annotated[
    Fraction,
    PlainValidator(_checked(lambda p: 0 <= p <= 1, "it is a share: from 0 to 1", "write a number from 0 to 1")),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1}),
]
Probability = Annotated[
    Fraction,
    PlainValidator(_checked(lambda p: 0 < p < 1, "a probability strictly between 0 and 1 is meant", "write 0 < p < 1")),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
]
QueryWeight = Annotated[
    Fraction,
    PlainValidator(
        _checked(
            lambda weight: abs(weight) <= 1,
            "a linear query weighs each record by at most 1, or its sensitivity would grow",
            "divide the weights by the largest one",
        )
    ),
    WithJsonSchema({"type": "number", "minimum": -1, "maximum": 1}),
]
Count = Annotated[int, PlainValidator(_whole_from(1)), WithJsonSchema({"type": "integer", "minimum": 1})]
WholeNumber = Annotated[int, PlainValidator(whole_number), WithJsonSchema({"type": "integer"})]


class CalibratedNumber(KeyTable):
    """A number that was measured, estimated or assumed somewhere."""

    value: Number
    """A unit and a source describe a number, and none is there."""
    unit: Text
    """A number without its unit cannot be added to another."""
    source: Text
    """Every number carries where it came from, so that a reader can check it."""
    time_base: TimeBase | None = None
    """Over what time money runs: "once" for an amount that is paid or lost a single time ("lifetime" says the same), or
    "per year", "per month", "per week", "per day", "per decade" for one that comes again. Stated for all money of a
    program or for none; what comes again is added to what comes once by the horizon of [preferences]."""
    standard_error: Positive | None = None
    """How uncertain it is, in its unit; the value is then the mean of what is believed of it."""
    estimated_from: Several[Text] = ()
    """The estimates of [preferences.estimates] that it comes from: it is proportional to the first, and divided by the
    second where there are two."""
    least: Number | None = None
    """The lower end of a range, where only a range is agreed; together with largest."""
    largest: Number | None = None
    """The upper end of a range; together with least."""
    kind: Literal["measured", "assumed", "judgment"] | None = None
    """What its source is worth: it was measured, it is assumed for want of a measurement, or it is a judgment that no
    source can settle. Shown beside the source; "not stated" where it is left out."""

    def quantity(self) -> Quantity:
        """The number as the other rooms know it."""
        spread = (None if each is None else float(each) for each in (self.standard_error, self.least, self.largest))
        return Quantity(float(self.value), self.unit, self.source, self.time_base, *spread)


class HorizonTable(KeyTable):
    """How amounts that come every year add up to one amount today: a/r·(1 − (1 + r)^−T), or a·T without discounting."""

    discount_rate: NotNegative
    """By how much a year makes money worth less."""
    years: Positive
    """A lifetime has an end."""
    source: Text
    """Present values hang on both, and somebody has to answer for them."""

    def discounting(self) -> DiscountHorizon:
        """The horizon as the other rooms know it."""
        return DiscountHorizon(float(self.discount_rate), float(self.years), self.source)


def calibrated_numbers(part: object, key: KeyPath = ()) -> Iterator[tuple[KeyPath, CalibratedNumber]]:
    """Every calibrated number of a file, below a table of it, with its key."""
    if isinstance(part, CalibratedNumber):
        yield key, part
        return
    members: list[tuple[str | int, object]] = []
    if isinstance(part, KeyTable):
        members = [(field.alias or name, getattr(part, name)) for name, field in type(part).model_fields.items()]
    elif isinstance(part, dict | tuple):
        members = [*(part.items() if isinstance(part, dict) else enumerate(part))]
    for name, member in members:
        yield from calibrated_numbers(member, (*key, name))


def _table(value: object) -> object:
    if not isinstance(value, dict):
        why = "every calibrated number carries its unit and its source"
        raise refused(why, 'write { value = …, unit = "…", source = "…" }')
    return value


Calibrated = Annotated[CalibratedNumber, BeforeValidator(_table)]
