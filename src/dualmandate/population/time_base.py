"""Over what time money runs: once, or again every year; and what an amount that comes every year is worth today."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from dualmandate.errors import IncompatibleUnits, InvalidValue, MissingKey
from dualmandate.population.units import Calibrated

TimeBase = Literal["once", "lifetime", "per year", "per month", "per week", "per day", "per decade"]
A_YEAR = {"per year": 1.0, "per month": 12.0, "per week": 365.25 / 7, "per day": 365.25, "per decade": 0.1}
AT_ONCE = ("once", "lifetime")  # one amount, today, for all of the time


@dataclass(frozen=True)
class DiscountHorizon:
    """How yearly amounts add up to one amount today: a discount rate a year, over so many years."""

    discount_rate: float  # a year, ≥ 0: 0.03
    years: float  # > 0
    source: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.discount_rate) and self.discount_rate >= 0 and math.isfinite(self.years)):
            raise InvalidValue(
                f"a discount rate of {self.discount_rate} over {self.years} years",
                why="amounts are added up over a finite time, and later ones count no more than earlier ones",
                instead="state a discount_rate of at least 0 and a number of years",
            )
        if self.years <= 0 or not self.source.strip():
            raise MissingKey(
                "a horizon needs years and a source",
                why="present values hang on both the rate and the horizon, and somebody has to answer for them",
                instead='state years above 0 and source, for example "OMB Circular A-94"',
            )

    @property
    def present_value(self) -> float:
        """Today's worth of 1 a year, paid at the end of each year: (1 − (1 + r)^(−T))/r, or T without discounting."""
        if self.discount_rate == 0.0:
            return self.years
        return -math.expm1(-self.years * math.log1p(self.discount_rate)) / self.discount_rate


def recurs(time_base: str | None) -> bool:
    """Whether an amount comes again and again."""
    return time_base in A_YEAR


def on_time_base(quantity: Calibrated, wanted: str | None, horizon: DiscountHorizon | None) -> Calibrated:
    """The same amount over another time, errors and ranges with it; refused where nothing stated relates the two."""
    given = quantity.time_base
    if given == wanted:
        return quantity
    if given is None or wanted is None:
        raise IncompatibleUnits(
            f"{quantity.source}: the time base is {given or 'not stated'}, and {wanted or 'none'} is asked for",
            why="an amount without a time base may be a yearly or a lifetime one",
            instead="state time_base for every source and for the result",
        )
    for base in (given, wanted):
        if base not in A_YEAR and base not in AT_ONCE:
            raise IncompatibleUnits(
                f"the time base '{base}' cannot be converted",
                why=f"known are {', '.join([*A_YEAR, *AT_ONCE])}",
                instead="state the amount on one of these",
            )
    if recurs(given) != recurs(wanted) and horizon is None:
        raise IncompatibleUnits(
            f"{quantity.source}: '{given}' cannot be converted to '{wanted}'",
            why="a yearly and a lifetime amount are related by a discount rate and a number of years",
            instead="state a horizon: discount_rate, years and source",
        )
    at_once = 1.0 if horizon is None else 1.0 / horizon.present_value
    return quantity.scaled(A_YEAR.get(given, at_once) / A_YEAR.get(wanted, at_once), time_base=wanted)
