"""`[[workload]]`: one table to publish, and what its accuracy is worth."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import BaseModel, PlainValidator, WithJsonSchema, model_validator

from dualmandate.program.schema.calibrated import Calibrated
from dualmandate.program.schema.extensions import DetailTable
from dualmandate.program.schema.number import (
    CLOSED,
    Levels,
    Positive,
    QueryWeight,
    Several,
    Text,
    exact_number,
    lacking,
    refused,
)

_PART = "[0-9]{1,15}/[1-9][0-9]{0,14}"
_PARTS = rf"^{_PART}( \* {_PART}){{0,7}}$"


def _share(value: object) -> Fraction:
    """A share of the loss: a number, or fractions multiplied, exactly."""
    if isinstance(value, str):
        if re.fullmatch(_PARTS, value) is None:
            raise refused("a share is a part of the whole loss", 'write 0.25, "447/4099" or "447/4099 * 1/3"')
        number = math.prod((Fraction(part) for part in value.split(" * ")), start=Fraction(1))
    else:
        number = exact_number(value)
    if not 0 < number <= 1:
        raise refused("a share is larger than 0 and at most the whole loss", 'write 0.25, or "447/4099"')
    return number


Share = Annotated[
    Fraction,
    PlainValidator(_share),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0, "maximum": 1}, {"type": "string", "pattern": _PARTS}]}
    ),
]


class FitnessForUse(BaseModel):
    """The least accuracy with which a table is of use."""

    model_config = CLOSED

    largest_root_mean_squared_error: Positive | None = None
    """The largest typical error of one number of the table, in the table's unit, with which it is still of use."""
    largest_root_mean_squared_consequence: Positive | None = None
    """The same in USD, by the consequence of the table."""

    @model_validator(mode="after")
    def _some_floor(self) -> Self:
        if self.largest_root_mean_squared_error is None and self.largest_root_mean_squared_consequence is None:
            raise lacking(
                "largest_root_mean_squared_error",
                "a table is fit for use up to some error, and none is stated",
                "state largest_root_mean_squared_error, in the table's unit",
            )
        return self


class WorkloadTable(BaseModel):
    """A table: its cells, and how much society would pay for its accuracy."""

    model_config = CLOSED

    name: Text
    """A published table is known by its name."""
    by: Several[Text] = ()
    """Attributes or groupings, one number for each combination; none for a grand total."""
    where: dict[str, Levels] = {}
    """Levels that records must have to be counted."""
    weights: dict[str, dict[str, QueryWeight]] = {}
    """Weights in [-1, 1] of some levels of an attribute, summed over; levels not named weigh 0."""
    sum_of: Text | None = None
    """A numeric attribute to add up instead of counting records."""
    unit: Text | None = None
    """What the table counts: the protected unit where not stated; needed with sum_of."""
    loss: Literal["squared", "absolute"] = "squared"
    """Whether harm grows with the square of an error or with its size."""
    consequence: Calibrated | None = None
    """What an error does: USD^2 per squared unit (squared loss) or USD per unit (absolute loss)."""
    value_of_accuracy: Calibrated | None = None
    """What society would pay: USD per squared unit (squared loss) or USD per unit (absolute loss)."""
    fitness_for_use: FitnessForUse | None = None
    """The least accuracy with which the table is of use."""
    share: Share | None = None
    """The part of the loss that measures this table: a number, or fractions multiplied, as "447/4099 * 1/3". Stated
    for every table or for none, and 1 in all, it takes the place of the shares that the tables' values would lead to;
    tables that are measured together add theirs."""

    existing_error: Calibrated | None = None
    """The typical error (RMSE) that a number of the table had before noise, from sampling or otherwise, in its unit.
    With squared loss it moves nothing; it is reported beside the noise."""
    total: Calibrated | None = None
    """What the table adds up to, in its unit, from a public source; used with [participation]."""
    value_of_publishing: Calibrated | None = None
    """What the table is worth to its users when it is exact, in USD: whether it earns its place is then reported."""
    details: Several[DetailTable] = ()
    """Other details at which the table could be published; needs value_of_publishing."""

    @model_validator(mode="after")
    def _worth_its_details(self) -> Self:
        if self.details and self.value_of_publishing is None:
            raise lacking(
                "value_of_publishing",
                "details are chosen by what the table is worth at each of them",
                "state value_of_publishing of the table as it stands",
            )
        names = [detail.name for detail in self.details]
        if len(set(names)) != len(names):
            raise refused("two details have the same name", "give each detail a name of its own", key="details")
        return self

    @model_validator(mode="after")
    def _one_value(self) -> Self:
        if self.consequence is None and self.value_of_accuracy is None:
            raise lacking(
                "consequence",
                "without a value of its accuracy a table has no weight in the choice",
                "state its consequence, or its value_of_accuracy",
            )
        if self.consequence is not None and self.value_of_accuracy is not None:
            raise refused(
                "it gives the worth of accuracy twice, as a consequence and as a value of accuracy",
                "keep one of the two",
                key="value_of_accuracy",
            )
        fitness = self.fitness_for_use
        if self.consequence is None and fitness and fitness.largest_root_mean_squared_consequence is not None:
            raise lacking(
                "consequence",
                "a largest consequence in USD needs what an error does",
                "state the consequence, or largest_root_mean_squared_error in the table's unit",
            )
        if self.sum_of is not None and self.unit is None:
            raise lacking("unit", f"a sum of {self.sum_of} is not a number of records", 'state unit = "…" of the sum')
        return self
