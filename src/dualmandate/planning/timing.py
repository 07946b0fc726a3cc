"""Time in the money of a program: all of it once, all of it a year, or both, related by a stated horizon.

An amount that comes every year is worth a·(1 − (1 + r)^−T)/r today. Nothing is guessed: a program in which some amounts
say over what time they run and others do not is refused, and so is one that adds yearly amounts to others without
saying for how many years and at which discount rate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dualmandate.errors import IncompatibleUnits, InvalidValue
from dualmandate.population.time_base import A_YEAR, AT_ONCE, DiscountHorizon, recurs
from dualmandate.population.wording import number, percent
from dualmandate.program.file import Document, KeyPath, dotted
from dualmandate.program.number import CalibratedNumber, calibrated_numbers
from dualmandate.program.schema import PreferencesTable, ProgramKeys

COUNTS = frozenset(  # These are counted, and nobody pays them.
    {
        "population_size",
        "size",
        "existing_error",
        "total",
        "standard_deviation",
        "threshold",
        "expected_number",
        "typical_value",
        "risk_aversion",
    }
)
PRICES = {"squared": "price_of_squared_misallocation", "absolute": "price_of_misallocation"}
A_PLAN = AT_ONCE[0], "per year"  # Money of a plan runs over one of these times, where the program says any.
_EACH = 'state time_base beside every amount of money: "once", or "per year"'


@dataclass(frozen=True)
class Timing:
    """Over what time the money of a plan runs; None where no amount of the program says."""

    time_base: str | None
    horizon: DiscountHorizon | None = None  # where yearly amounts are counted by what they are worth today

    def factor(self, *time_bases: str | None) -> float:
        """What 1 stated over some time is over the time of the plan; of a consequence and its price, both times."""
        often = [A_YEAR[base] for base in time_bases if base is not None and recurs(base)]
        worth = self.horizon.present_value if often and self.horizon is not None else 1.0
        return math.prod(often, start=worth)

    def explain(self) -> str:
        """Over what time money runs, in a sentence."""
        if self.time_base is None:
            return "No amount of money says over what time it runs (time_base): all are taken to run over the same."
        if self.horizon is None:
            once = "All amounts of money are paid or lost once."
            return "All amounts of money are per year." if recurs(self.time_base) else once
        return (
            f"Amounts of money that come every year count for {number(self.horizon.years)} years at a discount rate of "
            f"{percent(self.horizon.discount_rate)} ({self.horizon.source}): 1 a year is worth "
            f"{number(self.horizon.present_value)} today. All money of this plan is what it is worth today."
        )


def timing_of(file: ProgramKeys, document: Document) -> Timing:
    """The one time over which all money of a program is counted; refused where amounts cannot be brought there."""
    stated = dict(calibrated_numbers(file))
    money = {key: amount for key, amount in stated.items() if key[-1] not in COUNTS}
    idle = next((key for key in stated if key not in money and stated[key].time_base), None)
    if idle is not None:
        raise InvalidValue(
            f"{dotted(idle)} states a time_base",
            why="only money runs over time",
            instead="leave it out",
            where=document.place((*idle, "time_base")),
        )
    horizon = file.preferences.horizon
    timed = next((key for key, amount in money.items() if amount.time_base), None)
    silent = next((key for key, amount in money.items() if not amount.time_base), None)
    if timed is not None and silent is not None:
        raise IncompatibleUnits(
            f"{dotted(silent)} does not say over what time it runs, and {dotted(timed)} does: "
            f"'{money[timed].time_base}'",
            why="an amount without a time may be a yearly one or one for all of the time",
            instead=_EACH,
            where=document.place(silent),
        )
    streams = dict(_streams(file, money, document))
    yearly = next((key for key, comes_again in streams.items() if comes_again), None)
    once = next((key for key, comes_again in streams.items() if not comes_again), None)
    if file.horizon is not None and file.horizon.years_of_use is not None:
        if horizon is not None:
            raise InvalidValue(
                "years of use are stated beside [preferences.horizon]",
                why="what comes every year is added up over that horizon already, and would be counted twice",
                instead="leave one of the two out",
                where=document.place(("horizon", "years_of_use")),
            )
        if once is not None and timed is not None:
            raise IncompatibleUnits(
                f"{dotted(once)} is paid or lost once, beside years of use",
                why="releases that are used for years are weighed by what they are worth and cost in each of them",
                instead='state time_base = "per year" beside every amount, or leave years_of_use out',
                where=document.place(once),
            )
    if horizon is not None:
        if yearly is None:
            raise InvalidValue(
                "a horizon is stated, but no amount of money comes every year",
                why="a horizon adds up amounts that come again",
                instead='state time_base = "per year" beside those that do, or leave the horizon out',
                where=document.place(("preferences", "horizon")),
            )
        return Timing(A_PLAN[0], horizon.discounting())
    if yearly is not None and once is not None:
        raise IncompatibleUnits(
            f"{dotted(yearly)} comes again and again ('{money[yearly].time_base}'), and {dotted(once)} once",
            why="a yearly amount cannot be added to one for all of the time without saying for how many years",
            instead="state [preferences.horizon] with years, discount_rate and source; or both over the same time",
            where=document.place(yearly),
        )
    return Timing(None if timed is None else A_PLAN[yearly is not None])


def _streams(
    file: ProgramKeys, money: dict[KeyPath, CalibratedNumber], document: Document
) -> Iterator[tuple[KeyPath, bool]]:
    """Each amount that is added to others, and whether it comes again; a consequence with the price it is paid at."""
    for key, amount in money.items():
        comes_again = recurs(amount.time_base)
        if key[-1] in ("consequence", "per_head"):
            loss = file.workload[int(key[1])].loss if key[0] == "workload" else "squared"
            name, price = _price(file.preferences, loss)
            if comes_again and price is not None and recurs(price.time_base):
                raise IncompatibleUnits(
                    f"{dotted(key)} comes again and again, and so does its price, {name}",
                    why="an error that is made every year and paid for every year would be counted twice a year",
                    instead='state time_base = "once" for one of the two',
                    where=document.place(key),
                )
            comes_again = comes_again or (price is not None and recurs(price.time_base))
        if key[-1] == "appropriation":
            grant = money[(*key[:-1], "per_head")]
            if recurs(grant.time_base) != comes_again:
                raise IncompatibleUnits(
                    f"{dotted(key)} runs over another time than per_head",
                    why="what each is granted is paid out of it",
                    instead="state the same time_base for both",
                    where=document.place(key),
                )
        elif key[-1] not in PRICES.values():
            yield key, comes_again


def _price(preferences: PreferencesTable, loss: str) -> tuple[str, CalibratedNumber | None]:
    return PRICES[loss], getattr(preferences, PRICES[loss])
