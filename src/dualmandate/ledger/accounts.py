"""Accounts of protected people: one currency each, a cap, and the smaller caps and promises inside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dualmandate.errors import InvalidAccount, InvalidLoss
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.rational import Written, rational

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

    def __post_init__(self) -> None:
        checked_name(self.name, "an account")
        checked_name(self.unit, "a unit")
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
        """What the account counts in."""
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
