"""Numbers that carry their unit and their source: 1,400 is "USD per child per epsilon, DOJ 2015", or it is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dualmandate.errors import IncompatibleUnits, InvalidValue, MissingKey
from dualmandate.population.units import Units


@dataclass(frozen=True)
class Calibrated:
    """A public number with where it comes from.

    `time_base` says over what time a cost runs ("lifetime", "per year"), where that matters. A number that is known
    with uncertainty states its `standard_error`, and then `value` is its mean; one of which only a range is agreed
    states `least` and `largest`.
    """

    value: float  # finite, ≥ 0, in `unit`
    unit: str
    source: str
    time_base: str | None = None
    standard_error: float | None = None  # finite, > 0, in `unit`
    least: float | None = None  # ≥ 0, in `unit`; together with `largest`
    largest: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            raise InvalidValue(
                f"{self.value!r} is not a number", why="a calibrated quantity is a number", instead="state a number"
            )
        if not isinstance(self.unit, str) or not self.unit.strip():
            raise MissingKey(
                f"{self.value:,g} has no unit",
                why="it may be dollars, children or dollars per child per epsilon",
                instead='state unit, for example "USD per child per epsilon"',
            )
        if not isinstance(self.source, str) or not self.source.strip():
            raise MissingKey(
                f"{self.value:,g} {self.unit} has no source",
                why="a review board must be able to see where each number comes from",
                instead="state source: a publication, a survey, or who decided it",
            )
        if not math.isfinite(self.value) or self.value < 0:
            raise InvalidValue(
                f"{self.value} {self.unit} cannot be meant",
                why="costs, values, prices and sizes are finite and not negative",
                instead="state a finite number of at least 0",
            )
        self._check_uncertainty()

    def _check_uncertainty(self) -> None:
        error = self.standard_error
        if error is not None and not (math.isfinite(error) and error > 0 and self.value > 0):
            raise InvalidValue(
                f"{self.value:,g} {self.unit} has the standard_error {error:,g}",
                why="an uncertain cost or value is positive, and its standard error too",
                instead="state a finite standard_error above 0, or leave it out",
            )
        if self.least is None and self.largest is None:
            return
        low, high = self.least, self.largest
        if low is None or high is None or not (0 <= low <= self.value <= high < math.inf and low < high):
            raise InvalidValue(
                f"{self.value:,g} {self.unit} lies between least {low} and largest {high}",
                why="a range has two finite ends, and the value lies between them",
                instead="state least and largest around the value, or neither",
            )

    @property
    def uncertain(self) -> bool:
        """Whether a standard error or a range is stated."""
        return self.standard_error is not None or self.least is not None

    def to(self, unit: str, units: Units) -> Calibrated:
        """The same quantity in another unit of the same kind; refused where the two cannot be added."""
        factor = units.conversion(self.unit, unit)
        known = {
            name: stated * factor
            for name in ("value", "standard_error", "least", "largest")
            if (stated := getattr(self, name)) is not None
        }
        return replace(self, unit=unit, **known)

    def __str__(self) -> str:
        time_base = f", {self.time_base}" if self.time_base else ""
        return f"{self.value:,g} {self.unit} ({self.source}{time_base})"


def common_time_base(*quantities: Calibrated | None) -> str | None:
    """The time over which all stated costs and values run; refused where two of them differ."""
    stated = {quantity.time_base for quantity in quantities if quantity is not None and quantity.time_base}
    if len(stated) > 1:
        raise IncompatibleUnits(
            f"costs and values run over different times: {', '.join(sorted(stated))}",
            why="a yearly amount cannot be added to a lifetime one",
            instead="convert them to one time_base",
        )
    return next(iter(stated), None)
