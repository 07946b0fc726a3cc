"""Composition: how privacy losses add up, and the accountant that keeps their sum and lets no sum pass its cap.

Sequential composition: releases about the same people lose ε₁ + ε₂ of pure differential privacy [DMNS06], ρ₁ + ρ₂ of
zero-concentrated [BS16]. Group privacy: m units that change together lose mε, or m²ρ. Conversion: a pure ε is a ρ of
ε²/2 [BS16]; a ρ is an (ε, δ) by the tight conversion (`population.loss`) [CKS20], for reports only, since
(ε, δ) statements do not add up. Everything kept here is an exact fraction.

The accountant is a privacy odometer (what is spent so far) and a privacy filter (what may still be spent): under a cap
fixed beforehand the sums hold although each loss is chosen in sight of earlier releases [RRUV16] [FZ21].
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from dualmandate.errors import BudgetExceeded, InvalidAccount
from dualmandate.ledger.accounts import Account, Scope, exact_amount
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.loss import epsilon_at

# The smallest ε of a report: a δ that covers a whole loss would leave none to state.
SMALLEST_REPORT = 1e-6
# A square root is rounded down to a multiple of one over this.
_FINENESS = 10**12


def cost(loss: PrivacyLoss, unit: str, account: Account) -> Fraction:
    """What a release that protects `unit` with `loss` costs one unit of an account, in its currency, exactly.

    One unit of the account is in at most m of the release's units: mε, or m²ρ with ρ = ε²/2 for a pure ε.
    """
    most = {account.unit: 1, **{bound.unit: bound.most for bound in account.unit_bounds}}.get(unit)
    if most is None:
        raise InvalidAccount(
            f"a release protects one {unit}, and the account '{account.name}' is kept for one {account.unit}",
            why=f"the account does not declare in how many units '{unit}' one {account.unit} can be",
            instead="plan for the account's unit, or open an account that declares the bound",
        )
    if loss.failure_probability or (
        account.privacy_measure is PrivacyMeasure.PURE_DP and loss.privacy_measure is PrivacyMeasure.ZCDP
    ):
        raise InvalidAccount(
            f"a release of {loss} cannot be paid from '{account.name}', which counts in {account.privacy_measure}",
            why="Gaussian noise has no pure ε, and an (ε, δ) statement does not add up",
            instead="publish with Laplace or geometric noise, or from an account in rho",
        )
    counted = loss.in_rho() if account.privacy_measure is PrivacyMeasure.ZCDP else loss
    return exact_amount(counted.for_records(most).amount)


@dataclass(frozen=True)
class LossKind:
    """How a program counts its loss: in ε or ρ, for how many records at once, from which noise, at which δ."""

    privacy_measure: PrivacyMeasure
    records: int = 1
    gaussian: bool = False
    failure_probability: Fraction | float | None = None


def affordable(left: Fraction, unit: str, account: Account, kind: LossKind) -> Fraction:
    """The largest loss, as a program counts it, that `left` of its account pays for, rounded down.

    Where the account counts in ρ and the program in ε, a pure ε costs ε²/2, and an ε at δ its tight ρ.
    """

    def cost_of_one(privacy_measure: PrivacyMeasure) -> Fraction:
        return cost(PrivacyLoss(Fraction(1), privacy_measure).for_records(kind.records), unit, account)

    left = max(left, Fraction(0))
    share = left / cost_of_one(PrivacyMeasure.ZCDP if kind.gaussian else kind.privacy_measure)
    if account.privacy_measure is kind.privacy_measure or not share:
        return share
    squared = left / cost_of_one(PrivacyMeasure.PURE_DP)
    pure = Fraction(math.isqrt(math.floor(squared * _FINENESS**2)), _FINENESS)
    if kind.failure_probability is None:
        return pure
    tight = Fraction(epsilon_at(left / cost_of_one(PrivacyMeasure.ZCDP), kind.failure_probability))
    return tight if kind.gaussian else min(pure, tight)


def reported(spent: Fraction, privacy_measure: PrivacyMeasure, failure_probability: Fraction) -> PrivacyLoss | None:
    """A sum for the public: the pure ε, or (ε, δ) by the tight conversion from ρ, rounded up; None for nothing."""
    if not spent:
        return None
    if privacy_measure is PrivacyMeasure.PURE_DP:
        return PrivacyLoss(spent)
    epsilon = max(epsilon_at(spent, failure_probability), SMALLEST_REPORT)
    return PrivacyLoss.reported(epsilon, failure_probability)


class Accountant:
    """The privacy accountant of a ledger: sums of costs for each account, and for each user, group and purpose in it.

    Costs are in the account's currency. What is reserved counts as spent until it is canceled.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[str, Scope | None, str | None], Fraction] = defaultdict(Fraction)

    def compose(self, account: str, parts: Mapping[Scope, str], added: Fraction) -> None:
        """Add a cost to the account and to each part it counts against; a canceled reservation adds minus its cost."""
        for scope, name in ((None, None), *parts.items()):
            self._sums[account, scope, name] += added

    def spent(self, account: str, scope: Scope | None = None, name: str | None = None) -> Fraction:
        """The odometer: the sum so far, of an account in all, or of one part."""
        return self._sums.get((account, scope, name), Fraction(0))

    def room(self, account: Account, parts: Mapping[Scope, str]) -> dict[str, Fraction]:
        """What each cap that applies to these parts leaves, by the cap in words."""
        purpose = parts.get(Scope.PURPOSE)
        kept = sum(
            (
                max(earmark.amount - self.spent(account.name, Scope.PURPOSE, earmark.purpose), Fraction(0))
                for earmark in account.earmarks
                if earmark.purpose != purpose
            ),
            Fraction(0),
        )
        words = f"the cap of '{account.name}'" + (", less what is kept for other purposes" if kept else "")
        left = {words: account.cap.amount - self.spent(account.name) - kept}
        for limit in account.limits:
            part = parts.get(limit.scope)
            if part is not None and limit.name in (None, part):
                which = f"each {limit.scope}" if limit.name is None else f"the {limit.scope} '{part}'"
                spent = self.spent(account.name, limit.scope, part)
                left[f"the limit of {which} in '{account.name}'"] = limit.amount - spent
        return left

    def require(self, account: Account, parts: Mapping[Scope, str], asked: Fraction, *, instead: str) -> None:
        """The filter: refuse a cost that is more than any of the caps leaves. What is exactly left may be spent."""
        for words, left in self.room(account, parts).items():
            if asked > left:
                raise BudgetExceeded(
                    f"a loss of {asked} {account.privacy_measure} is more than the {left} that {words} leaves",
                    why="caps belong to the people in the data, and what was spent stays spent",
                    instead=instead,
                )
