"""From the best rows in floating point to whole-number rows with rational weights that are nearly as good.

A row whose entries are a number times small whole numbers keeps them, and only that number is rounded, as its weight.
Other rows are rounded to k bits, k the least for which the error rises by less than 0.1 %.
"""

from __future__ import annotations

import math
from typing import Protocol

from dualmandate.errors import InvalidMechanism
from dualmandate.mechanism.strategy.residuals import Residuals
from dualmandate.mechanism.strategy.spans import public_labels
from dualmandate.mechanism.strategy.square_rounding import Squares
from dualmandate.mechanism.strategy.sum_rounding import Sums
from dualmandate.mechanism.strategy.whole_rows import WholeRows
from dualmandate.workload.sensitivity import Norm

FEWEST_BITS, MOST_BITS = 6, 24
ALLOWED_RISE = 1e-3  # of the error, by rounding


class _Rounding(Protocol):
    """Rows that are to be rounded, all sectors together."""

    @property
    def noise(self) -> float:
        """tr(V·X⁺) of the rows as they are."""
        ...

    @property
    def bits_matter(self) -> bool:
        """Whether some row has to be rounded to so many bits."""
        ...

    def rounded(self, bits: int) -> tuple[WholeRows, float]:
        """Whole-number rows of so many bits, and their tr(V·X⁺)."""
        ...


def whole_rows(residuals: Residuals, norm: Norm) -> WholeRows:
    """Whole-number rows with rational weights whose error is less than 0.1 % above that of given rows.

    The error is Δ²·tr(V·X⁺), Δ the largest column of the whole-number rows in the given norm, exactly. Beside public
    totals V is what they leave, and Δ is the farthest that a record moves the rows within groups of the same totals.
    """
    rounding: _Rounding = Sums.of(residuals) if norm == "l1" else Squares.of(residuals)
    if not rounding.bits_matter:
        return rounding.rounded(0)[0]
    labels, power = public_labels(residuals.part), 1 if norm == "l1" else 2

    def error(found: WholeRows, noise: float) -> float:
        farthest = found.largest_difference(power, labels)[0] if residuals.part.public else found.largest_column(power)
        return noise * math.pow(farthest, 2 / power)

    least = residuals.sensitivity(norm) ** 2 * rounding.noise
    if residuals.part.public:
        least = error(*rounding.rounded(MOST_BITS))
    bits, ratio = FEWEST_BITS, math.inf
    while bits <= MOST_BITS:
        found, noise = rounding.rounded(bits)
        now = error(found, noise) / least
        ratio = min(ratio, now)
        if now < 1 + ALLOWED_RISE:
            return found
        # A bit takes at most about three quarters off what is too much; half the bits that this would need are safe.
        bits += 1 if math.isinf(now) else max(1, math.floor(math.log((now - 1) / ALLOWED_RISE, 16)))
    raise InvalidMechanism(
        f"whole-number rows for a strategy of {residuals.words}",
        why=f"rounded to {MOST_BITS} bits, its error is still {ratio:.6g} times as large",
        instead="let the tables weigh less differently, or publish some of them with a strategy of their own",
    )
