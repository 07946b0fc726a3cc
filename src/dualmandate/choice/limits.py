"""What the law, the users and the ledger allow: a cap on privacy loss, a floor on accuracy, a budget already spent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from dualmandate.choice.welfare import SocialWelfare
from dualmandate.errors import ConflictingLimits, InvalidPreferences, InvalidValue
from dualmandate.frontier.frontier import Frontier
from dualmandate.frontier.numerics import root
from dualmandate.frontier.participation import peak_of
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.units import plural
from dualmandate.population.wording import number

BoundBy = Literal["preferences", "largest epsilon", "largest rho", "fitness for use", "ledger", "participation"]

SMALLEST_LOSS, LARGEST_LOSS = 1e-30, 1e9  # No search goes beyond these.
SLACK = 1e-12  # A cap and a floor that differ by less than this share are meant to be equal.


@dataclass(frozen=True)
class Bounds:
    """The losses that the limits leave, and what sets each end; None where an end is open."""

    lowest: float | None = None
    lowest_reason: str = ""
    highest: float | None = None
    highest_exact: Fraction | None = None
    highest_by: BoundBy = "largest epsilon"


@dataclass(frozen=True)
class Limits:
    """Limits on the choice, each optional, each in the currency of the frontier.

    `floors` holds, by table, the largest root mean squared error that leaves the table fit for use, in the table's
    unit; `consequence_floors` the same in USD. `remaining` is what the ledger has left for this population.
    """

    largest_epsilon: float | Fraction | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    remaining: float | Fraction | None = None
    largest_rho: float | Fraction | None = None
    consequence_floors: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        errors = [*self.floors.values(), *self.consequence_floors.values()]
        for limit in (self.largest_epsilon, self.largest_rho, *errors):
            if limit is not None and not (math.isfinite(limit) and limit > 0):
                raise InvalidValue(
                    f"a limit of {number(float(limit), 6)}",
                    why="no release has a privacy loss or an error of 0 or less",
                    instead="state a finite limit above 0, or leave it out",
                )
        if self.remaining is not None and not (math.isfinite(self.remaining) and self.remaining > 0):
            raise ConflictingLimits(
                f"the ledger has {float(self.remaining):g} left",
                why="every release has a privacy loss above 0",
                instead="raise the cap of the account by decision, or publish nothing more",
            )

    def bounds(self, frontier: Frontier, welfare: SocialWelfare) -> Bounds:
        """The range of losses that satisfies every limit; refused where there is none."""
        lowest, reason = self._lowest(frontier, welfare)
        caps: list[tuple[Fraction, BoundBy]] = []
        legal = self._legal_cap(frontier.privacy_measure)
        if legal is not None:
            caps.append(
                (
                    exact(legal),
                    "largest epsilon" if frontier.privacy_measure is PrivacyMeasure.PURE_DP else "largest rho",
                )
            )
        if self.remaining is not None:
            caps.append((exact(self.remaining), "ledger"))
        peak = peak_of(frontier)
        if peak is not None:  # beyond it a frontier is dominated: more loss for no more accuracy
            caps.append((PrivacyLoss.chosen(peak, frontier.privacy_measure).amount, "participation"))
        if not caps:
            return Bounds(lowest, reason)
        cap, cap_by = min(caps)
        highest = float(cap)
        if lowest is not None and lowest > highest:
            if lowest > highest * (1 + SLACK):
                raise _conflict(
                    lowest, reason, highest=highest, highest_by=cap_by, privacy_measure=frontier.privacy_measure
                )
            lowest = highest
        return Bounds(lowest, reason, highest, cap, cap_by)

    def _legal_cap(self, privacy_measure: PrivacyMeasure) -> float | Fraction | None:
        ours, other = self.largest_epsilon, self.largest_rho
        if privacy_measure is PrivacyMeasure.ZCDP:
            ours, other = other, ours
        if ours is None and other is not None:
            raise ConflictingLimits(
                f"the cap {float(other):g} does not count the loss in {privacy_measure}",
                why="epsilon and rho are different dimensions",
                instead=f"state largest_{privacy_measure}, or express the frontier in the currency of the cap",
            )
        return ours

    def _lowest(self, frontier: Frontier, welfare: SocialWelfare) -> tuple[float | None, str]:
        """The smallest loss at which every table is fit for use, and the sentence that says which table asks for it."""
        values = {value.table: value for value in welfare.table_values}
        lowest, reason = None, ""
        for floors, in_dollars in ((self.floors, False), (self.consequence_floors, True)):
            for table, largest in floors.items():
                value = values.get(table)
                consequence = None if value is None else value.squared_consequence(1.0)
                if value is None or (in_dollars and not consequence):
                    raise InvalidPreferences(
                        f"table '{table}' has a fitness for use, but no {'consequence' if value else 'value'}",
                        why="a limit on errors needs a table that is produced, and one in USD needs its consequence",
                        instead="name a table of the program, and state its consequence",
                    )
                limit = largest / math.sqrt(consequence) if in_dollars and consequence else largest
                needed = _smallest_loss(frontier, table, mean_squared_error=(limit / value.grid) ** 2)
                size = f"USD {largest:,g}" if in_dollars else f"{largest:,g} {plural(value.unit)}"
                what = "consequence" if in_dollars else "error"
                words = f"a root mean squared {what} of at most {size} in '{table}'"
                if needed is not None and (lowest is None or needed > lowest):
                    lowest, reason = needed, words
        return lowest, reason


def exact(limit: float | Fraction) -> Fraction:
    """A stated limit as the decimal number that was written: 0.3 is 3/10, not the float beside it."""
    return limit if isinstance(limit, Fraction) else Fraction(repr(float(limit)))


def _smallest_loss(frontier: Frontier, table: str, *, mean_squared_error: float) -> float | None:
    """The loss at which a table's mean squared error falls to a limit; None where every loss satisfies it."""
    count = frontier.query_counts[table]

    def excess(log_loss: float) -> float:
        error = frontier.table_errors(math.exp(log_loss))[table] / count
        return math.log(error) - math.log(mean_squared_error) if error > 0 else -1e3

    ends = math.log(SMALLEST_LOSS), math.log(LARGEST_LOSS)
    needed = root(excess, math.log(1e-4), math.log(1e3), step=math.log(10), within=ends)
    if needed >= ends[1]:
        raise ConflictingLimits(
            f"no privacy loss makes table '{table}' fit for use",
            why=f"its root mean squared error stays above {math.sqrt(mean_squared_error):g}",
            instead="allow larger errors in this table, or choose another mechanism",
        )
    return None if needed <= ends[0] else math.exp(needed)


def _conflict(
    lowest: float, reason: str, *, highest: float, highest_by: BoundBy, privacy_measure: PrivacyMeasure
) -> ConflictingLimits:
    others = {"ledger": "the ledger has left", "participation": "accuracy peaks, because people stop taking part, at"}
    limit = others.get(highest_by, f"largest_{privacy_measure} is")
    return ConflictingLimits(
        f"no {privacy_measure} satisfies all limits: fitness for use asks for at least {number(lowest, 6)}, {limit} "
        f"{number(highest, 6)}",
        why=f"{reason} needs {privacy_measure} ≥ {number(lowest, 6)}",
        instead="allow larger errors, raise the cap by decision, publish fewer numbers, or choose a better mechanism",
    )
