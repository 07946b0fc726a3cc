"""When an account will be used up, if people go on spending as they did: a straight line, and no promise.

What was spent over the last days, per day, divides what is left. Floats, told to people; no cap is kept by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from dualmandate.ledger.chain import Event, EventKind

FAR = 365_000.0  # days, beyond which no date is told


@dataclass(frozen=True)
class Forecast:
    """At which pace an account is spent, and when it ends so. `per_day` is in the account's currency."""

    account: str
    days: int  # that were looked back on
    spent: Fraction  # over these days
    remaining: Fraction
    ends_at: datetime | None  # None where nothing was spent, or where the end is too far to have a date

    @property
    def per_day(self) -> float:
        """The pace."""
        return float(self.spent) / self.days

    def words(self, currency: str) -> str:
        """The forecast in a sentence."""
        if not self.spent:
            return f"nothing was spent in the last {self.days} days, and {currency} {float(self.remaining):.4g} is left"
        pace = f"{currency} {self.per_day:.3g} a day over the last {self.days} days"
        if not self.remaining:
            return f"the budget is used up ({pace})"
        end = "later than anybody can say" if self.ends_at is None else f"on {self.ends_at:%Y-%m-%d}"
        return f"at this pace ({pace}) the budget ends {end}"


def forecast(
    events: Sequence[Event], account: str, remaining: Fraction, *, days: int, now: datetime | None = None
) -> Forecast:
    """The forecast of one account from its entries: reservations count when they were made, unless canceled."""
    now = now or datetime.now(UTC)
    since = now - timedelta(days=days)
    canceled = {event.release for event in events if event.kind is EventKind.CANCELED}
    spent = sum(
        (
            event.amount
            for event in events
            if event.kind is EventKind.RESERVED
            and event.account == account
            and event.release not in canceled
            and event.amount is not None
            and datetime.fromisoformat(event.recorded_at) >= since
        ),
        Fraction(0),
    )
    left = float(remaining) * days / float(spent) if spent else FAR
    return Forecast(account, days, spent, remaining, now + timedelta(days=left) if left < FAR else None)
