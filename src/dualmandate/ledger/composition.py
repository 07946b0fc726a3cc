"""Composition: how privacy losses add up in the accounts of protected people, and the accountant that keeps their sum.

An account has one currency, a cap, and smaller caps and promises inside it; no sum passes a cap.

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
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dualmandate.errors import BudgetExceeded, InvalidAccount, InvalidLoss
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.arguments import checked_class, expected
from dualmandate.population.loss import epsilon_at
from dualmandate.population.rational import Written, rational
from dualmandate.population.shown import one_line

LONGEST_NAME = 200
_MOST_BITS = 256  # of a numerator or denominator: sums of many such fractions stay writable


class Scope(StrEnum):
    """Whose part of an account a limit is about."""

    USER = "user"
    GROUP = "group"
    PURPOSE = "purpose"


@dataclass(frozen=True)
class AccountLimit:
    """A cap inside the account's cap, in its currency: for one user, group or purpose, or, without a name, for each."""

    scope: Scope
    amount: Fraction
    name: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "scope", _scope(self.scope))
        object.__setattr__(self, "amount", exact_amount(self.amount))
        if self.name is not None:
            checked_name(self.name, f"a {self.scope}")


@dataclass(frozen=True)
class Earmark:
    """A part of the account kept for a purpose to come: no other purpose can spend it."""

    purpose: str
    amount: Fraction

    def __post_init__(self) -> None:
        checked_name(self.purpose, "a purpose")
        object.__setattr__(self, "amount", exact_amount(self.amount))


@dataclass(frozen=True)
class UnitBound:
    """How many of another unit one protected unit can be in: one household holds at most 10 persons."""

    unit: str
    most: int

    def __post_init__(self) -> None:
        checked_name(self.unit, "a unit")
        if type(self.most) is not int or self.most < 1:
            raise InvalidAccount(
                f"one protected unit is in at most {self.most} of the unit '{self.unit}'",
                why="losses are converted between units by a whole number of at least 1",
                instead="declare a whole number",
            )


@checked_class
@dataclass(frozen=True)
class Account:
    """The account of a population: who is protected, in which currency losses are counted, and how much may be lost.

    The currency is that of `cap`: pure ε, which refuses Gaussian releases, or ρ, where a pure ε costs ε²/2.
    """

    name: str
    unit: str
    cap: PrivacyLoss
    limits: tuple[AccountLimit, ...] = ()
    earmarks: tuple[Earmark, ...] = ()
    unit_bounds: tuple[UnitBound, ...] = ()
    approver_differs: bool = False

    __repr__ = one_line

    def __post_init__(self) -> None:
        checked_name(self.name, "an account")
        checked_name(self.unit, "a unit")
        expected(self.cap, PrivacyLoss, what="a cap", instead="state it as a loss: PrivacyLoss.pure(5)")
        exact_amount(self.cap.amount)
        if self.cap.failure_probability:
            raise InvalidAccount(
                f"a cap of {self.cap}",
                why="(ε, δ) is a report, never a balance: such losses do not add up exactly",
                instead="state the cap in epsilon or in rho",
            )
        for field in ("limits", "earmarks", "unit_bounds"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        _once([(limit.scope, limit.name) for limit in self.limits], "limit")
        _once([earmark.purpose for earmark in self.earmarks], "earmark")
        _once([self.unit, *(bound.unit for bound in self.unit_bounds)], "unit")
        promised = sum((earmark.amount for earmark in self.earmarks), Fraction(0))
        if promised > self.cap.amount:
            raise InvalidAccount(
                f"earmarks of {promised} in an account of {self.cap.amount}",
                why="more is promised to purposes than there is",
                instead="lower the earmarks, or open the account with a larger cap",
            )

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        return self.cap.privacy_measure

    def document(self) -> dict[str, object]:
        """What the entry that opens the account records beside its name and cap."""
        return {
            "unit": self.unit,
            "currency": self.privacy_measure.value,
            "limits": [[limit.scope.value, limit.name, str(limit.amount)] for limit in self.limits],
            "earmarks": [[earmark.purpose, str(earmark.amount)] for earmark in self.earmarks],
            "unit_bounds": [[bound.unit, bound.most] for bound in self.unit_bounds],
            "approver_differs": self.approver_differs,
        }


def read_account(name: str, cap: Fraction, document: Mapping[str, Any]) -> Account:
    """The account that an entry recorded."""
    return Account(
        name=name,
        unit=document["unit"],
        cap=PrivacyLoss(cap, PrivacyMeasure(document["currency"])),
        limits=tuple(AccountLimit(Scope(scope), Fraction(amount), of) for scope, of, amount in document["limits"]),
        earmarks=tuple(Earmark(purpose, Fraction(amount)) for purpose, amount in document["earmarks"]),
        unit_bounds=tuple(UnitBound(unit, most) for unit, most in document["unit_bounds"]),
        approver_differs=document["approver_differs"],
    )


def checked_name(name: object, what: str) -> str:
    """A name that can stand in a line of text: not empty, not long, nothing that does not print."""
    if isinstance(name, str) and name == name.strip() and 0 < len(name) <= LONGEST_NAME and name.isprintable():
        return name
    raise InvalidAccount(
        f"{what} without a usable name",
        why=f"a name is one line of 1 to {LONGEST_NAME} printable characters, with no space at its ends",
        instead="state such a name",
    )


def exact_amount(amount: Written) -> Fraction:
    """A positive amount of a currency that can be kept exactly."""
    try:
        exact = rational(amount)
    except (ValueError, TypeError):
        exact = Fraction(0)
    if exact <= 0 or max(exact.numerator.bit_length(), exact.denominator.bit_length()) > _MOST_BITS:
        raise InvalidLoss(
            "an amount of privacy loss that cannot be kept",
            why=f"the ledger keeps positive fractions whose two whole numbers have at most {_MOST_BITS} bits",
            instead="round it: a chosen loss down, a spent one up",
        )
    return exact


def _scope(scope: str) -> Scope:
    try:
        return Scope(scope)
    except ValueError:
        raise InvalidAccount(
            f"a limit for '{scope}'",
            why="limits are kept for users, groups and purposes",
            instead='state "user", "group" or "purpose"',
        ) from None


def _once(names: list[Any], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InvalidAccount(
                f"an account with two entries for one {what}",
                why="of two, nobody could say which holds",
                instead=f"state each {what} once",
            )


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
        self._granted: dict[tuple[str, Scope, str], Fraction] = defaultdict(Fraction)

    def compose(self, account: str, parts: Mapping[Scope, str], added: Fraction) -> None:
        """Add a cost to the account and to each part it counts against; a canceled reservation adds minus its cost."""
        for scope, name in ((None, None), *parts.items()):
            self._sums[account, scope, name] += added

    def grant(self, account: str, scope: Scope, name: str, amount: Fraction) -> None:
        """Raise the limits of one part of an account; its cap, and what is kept for others, stay as they are."""
        self._granted[account, scope, name] += amount

    def granted(self, account: str, scope: Scope, name: str) -> Fraction:
        """By how much the limits of one part were raised."""
        return self._granted.get((account, scope, name), Fraction(0))

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
                raised = limit.amount + self.granted(account.name, limit.scope, part)
                left[f"the limit of {which} in '{account.name}'"] = raised - spent
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
