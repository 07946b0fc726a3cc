"""How often a caller may ask: a bucket of tokens each, refilled evenly."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from threading import Lock

from dualmandate.errors import TooManyRequests

MOST_CALLERS = 10_000  # that are remembered; who is not has a full bucket


class RateLimit:
    """So many requests a minute of each caller, and as many at once."""

    def __init__(self, a_minute: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._rate, self._clock = max(a_minute, 1.0), max(a_minute, 1.0) / 60, clock
        self._left: dict[str, tuple[float, float]] = {}  # tokens, and when they were counted
        self._lock = Lock()

    def take(self, caller: str) -> None:
        """Count one request; refused where there were too many."""
        with self._lock:
            now = self._clock()
            tokens, since = self._left.pop(caller, (self._most, now))
            tokens = min(tokens + (now - since) * self._rate, self._most)
            self._left[caller] = (max(tokens - 1, 0.0) if tokens >= 1 else tokens, now)
            if len(self._left) > MOST_CALLERS:
                del self._left[next(iter(self._left))]
        if tokens < 1:
            raise TooManyRequests(
                "too many requests",
                why=f"each caller has {self._most:.0f} a minute",
                instead=f"try again in {math.ceil((1 - tokens) / self._rate)} seconds",
            )
