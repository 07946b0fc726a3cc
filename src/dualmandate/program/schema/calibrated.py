"""A number with its unit and its source: 1,400 is "USD per child per epsilon, DOJ 2015", or it is refused."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator

from dualmandate.program.schema.number import CLOSED, Number, Positive, Text, refused


class CalibratedNumber(BaseModel):
    """A number that was measured, estimated or assumed somewhere."""

    model_config = CLOSED

    value: Number
    """A unit and a source describe a number, and none is there."""
    unit: Text
    """A number without its unit cannot be added to another."""
    source: Text
    """Every number carries where it came from, so that a reader can check it."""
    time_base: Text | None = None
    """The time it covers, such as "lifetime" or "per year"."""
    standard_error: Positive | None = None
    """How uncertain it is, in its unit; the value is then the mean of what is believed of it."""
    least: Number | None = None
    """The lower end of a range, where only a range is agreed; together with largest."""
    largest: Number | None = None
    """The upper end of a range; together with least."""


def _table(value: object) -> object:
    if not isinstance(value, dict):
        raise refused(
            "every calibrated number carries its unit and its source",
            'write { value = …, unit = "…", source = "…" }',
        )
    return value


Calibrated = Annotated[CalibratedNumber, BeforeValidator(_table)]
