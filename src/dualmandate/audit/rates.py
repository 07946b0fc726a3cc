"""A success rate with its interval: what was tried, how often it succeeded, and what the true rate may be."""

from __future__ import annotations

from dataclasses import dataclass

from dualmandate.errors import InvalidRequest


@dataclass(frozen=True)
class Rate:
    """Successes among trials."""

    successes: int
    trials: int

    def __post_init__(self) -> None:
        if not 0 <= self.successes <= self.trials or self.trials < 1:
            raise InvalidRequest(
                f"{self.successes} successes among {self.trials} trials",
                why="a rate needs at least one trial, and not more successes than trials",
                instead="count what was tried",
            )

    @property
    def value(self) -> float:
        """The observed share."""
        return self.successes / self.trials

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Clopper and Pearson's interval: covers the true rate with at least this probability, also at 0 and at 1."""
        from scipy.stats import beta

        tail = (1 - level) / 2
        low = 0.0 if self.successes == 0 else float(beta.ppf(tail, self.successes, self.trials - self.successes + 1))
        high = (
            1.0
            if self.successes == self.trials
            else float(beta.ppf(1 - tail, self.successes + 1, self.trials - self.successes))
        )
        return low, high

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.1%} ({self.successes:,} of {self.trials:,}; 95 % interval {low:.1%} to {high:.1%})"
