"""From an accuracy back to the privacy loss that buys it, where no closed form exists."""

from __future__ import annotations

import math
from collections.abc import Callable

from dualmandate.errors import InvalidLoss

_SMALLEST, _LARGEST = 1e-150, 1e150
_GROWTH = 4.0


def loss_where(curve: Callable[[float], float], target: float, *, start: float = 1.0) -> float:
    """The smallest loss at which a decreasing positive curve has fallen to `target` > 0.

    Brackets by steps of four from `start`, then Brent's method on logarithms, so that losses of any size are found to
    full relative precision. Refused where the curve never falls so far; 0 where it is already there at any loss.
    """
    from scipy.optimize import brentq

    def excess(log_loss: float) -> float:
        value = curve(math.exp(log_loss))
        return math.log(value) - math.log(target) if value > 0.0 else -math.inf

    high = start
    while curve(high) > target:
        high *= _GROWTH
        if high > _LARGEST:
            raise InvalidLoss(
                f"an expected error of {target:.6g} is out of reach",
                why=f"no privacy loss brings it below {curve(_LARGEST):.6g}",
                instead="ask for less accuracy, or for another technology",
            )
    low = high / _GROWTH
    while curve(low) <= target:
        high, low = low, low / _GROWTH
        if low < _SMALLEST:
            return 0.0
    while excess(math.log(high)) == -math.inf:
        # Noise of a discrete law can vanish from floats within one step: bisect until it is there on both ends.
        middle = math.sqrt(low * high)
        low, high = (middle, high) if curve(middle) > target else (low, middle)
        if high <= low * (1.0 + 1e-15):
            return high
    if curve(high) == target:
        return high
    return math.exp(brentq(excess, math.log(low), math.log(high), xtol=1e-15, rtol=8.9e-16))
