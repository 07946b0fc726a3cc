"""`[[workload]]`: one table to publish, and what its accuracy is worth."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, model_validator

from dualmandate.program.schema.calibrated import Calibrated
from dualmandate.program.schema.number import CLOSED, Levels, Positive, QueryWeight, Several, Text, lacking, refused


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
