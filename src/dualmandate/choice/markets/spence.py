"""A monopolist who sells accuracy: it looks at the marginal user, the planner at all of them [Spe75].

Users differ in their taste x for accuracy: user x would pay x·A(I). A monopolist with one price and no cost per user
serves the share q that maximizes q·Q(1 − q), Q the quantile function of tastes, and so values one more unit of
accuracy at that product times A′; the planner lets everybody use it, and values it at the mean taste times A′. With
tastes spread evenly over [0, 1], P = A(I)·(1 − q): the monopolist sells to half and values accuracy at A′/4, the
planner at A′/2.
"""

from __future__ import annotations

from dataclasses import dataclass

from dualmandate.choice.markets.costs import Distribution, UniformAmounts

EVEN_TASTES = UniformAmounts(0.0, 1.0)
STEPS = 2000  # of the share served, before it is polished


@dataclass(frozen=True)
class Monopoly:
    """How much of the value of accuracy a monopolist can take, and from how many users."""

    tastes: Distribution = EVEN_TASTES

    @property
    def served(self) -> float:
        """q: the share of users whom it serves."""
        from scipy.optimize import minimize_scalar

        # Revenue has a jump or a kink only where tastes do: there from the right, because who is indifferent buys.
        shares = [(i + 1) / STEPS for i in range(STEPS)] + [1 - at for at in self.tastes.breaks]
        best = max(shares, key=self._revenue)
        near = minimize_scalar(
            lambda share: -self._revenue(share),
            bounds=(max(best - 1 / STEPS, 1e-12), min(best + 1 / STEPS, 1.0)),
            method="bounded",
            options={"xatol": 1e-13},
        )
        return float(near.x) if -near.fun > self._revenue(best) else best

    @property
    def captured(self) -> float:
        """The share of the value of accuracy that the monopolist takes account of; in (0, 1]."""
        return self._revenue(self.served) / self.tastes.mean

    def _revenue(self, share: float) -> float:
        return share * self.tastes.quantile(1 - share)
