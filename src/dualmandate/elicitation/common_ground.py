"""Numbers from different sources brought to one unit and one time base, or refused.

A yearly cost and a lifetime cost are the same kind of thing only under a stated discount rate and horizon; a cost per
household and a cost per person only under a stated number of persons per household. Neither is ever guessed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from dualmandate.errors import IncompatibleUnits, InvalidValue, MissingKey
from dualmandate.population import Calibrated, Units

A_YEAR = {"per year": 1.0, "per month": 12.0, "per week": 365.25 / 7, "per day": 365.25, "per decade": 0.1}
AT_ONCE = ("lifetime", "once")  # These are one amount, today, for all of the time.


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


@dataclass(frozen=True)
class CommonGround:
    """One unit and one time base, and what else has to be known to bring numbers there.

    `bridges` relate units that no arithmetic relates: 2.5 "person per household". A bridge's own standard error is
    carried into what it converts.
    """

    unit: str  # "USD per person per epsilon"
    time_base: str | None = None  # "per year", "lifetime", …
    units: Units = field(default_factory=Units)
    bridges: tuple[Calibrated, ...] = ()
    horizon: DiscountHorizon | None = None

    def brought(self, quantity: Calibrated) -> Calibrated:
        """The quantity in this unit and on this time base, its errors and ranges with it."""
        return self._timed(self._bridged(quantity).to(self.unit, self.units))

    def _bridged(self, quantity: Calibrated) -> Calibrated:
        if self.units.agree(quantity.unit, self.unit):
            return quantity
        for bridge in self.bridges:
            for sign, power in (("/", -1.0), ("*", 1.0)):
                unit = f"({quantity.unit}) {sign} ({bridge.unit})"
                if self.units.agree(unit, self.unit):
                    return _times(quantity, bridge, power, unit)
        raise IncompatibleUnits(
            f"'{quantity.unit}' ({quantity.source}) stands where '{self.unit}' is needed",
            why="no stated bridge relates the two",
            instead="state how many of one unit make the other as a bridge, with its unit and source, or leave it out",
        )

    def _timed(self, quantity: Calibrated) -> Calibrated:
        given, wanted = quantity.time_base, self.time_base
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
        factor = self._yearly(given, quantity) / self._yearly(wanted, quantity)
        known = {
            name: stated * factor
            for name in ("value", "standard_error", "least", "largest")
            if (stated := getattr(quantity, name)) is not None
        }
        return replace(quantity, time_base=wanted, **known)

    def _yearly(self, time_base: str, quantity: Calibrated) -> float:
        """What 1 on a time base is a year; amounts at once are spread over the horizon at the discount rate."""
        if time_base in A_YEAR:
            return A_YEAR[time_base]
        if quantity.time_base in AT_ONCE and self.time_base in AT_ONCE:
            return 1.0
        if self.horizon is None:
            raise IncompatibleUnits(
                f"{quantity.source}: '{quantity.time_base}' cannot be converted to '{self.time_base}'",
                why="a yearly and a lifetime amount are related by a discount rate and a number of years",
                instead="state a horizon: discount_rate, years and source",
            )
        return 1.0 / self.horizon.present_value


def _times(quantity: Calibrated, bridge: Calibrated, power: float, unit: str) -> Calibrated:
    """A quantity times (or divided by) a bridge; relative errors of both add up in squares."""
    if not bridge.value > 0:
        raise InvalidValue(f"a bridge of {bridge}", why="it multiplies or divides", instead="state a bridge above 0")
    factor = bridge.value**power
    error = quantity.standard_error
    if bridge.standard_error is not None and quantity.value > 0:
        relative = math.hypot((error or 0.0) / quantity.value, bridge.standard_error / bridge.value)
        error = relative * quantity.value
    ends = {name: stated * factor for name in ("least", "largest") if (stated := getattr(quantity, name)) is not None}
    return replace(
        quantity,
        value=quantity.value * factor,
        unit=unit,
        standard_error=None if error is None else error * factor,
        **ends,
    )
