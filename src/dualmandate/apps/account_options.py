"""An account as it is typed and as it is shown: the unit, the cap, and the caps, reserves and bounds inside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from dualmandate.errors import InvalidAccount, InvalidLoss, InvalidRequest
from dualmandate.ledger import Account, AccountLimit, Earmark, Scope, UnitBound
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.population.rational import rational, written

RESERVE = "reserve"


@dataclass(frozen=True)
class AccountOptions:
    """What was typed: `units` are the account's own and `other=N`; `caps` are the account's own and those inside it."""

    units: Sequence[str]
    caps: Sequence[str]
    approver_differs: bool = False

    def account(self, name: str) -> Account:
        """The account, or a refusal that says what to type instead."""
        unit, bounds = _own(self.units, "unit", inside=lambda text: "=" in text)
        cap, inside = _own(self.caps, "cap", inside=_is_inside)
        return Account(
            name,
            unit,
            _cap(cap),
            limits=tuple(_limit(text) for text in inside if _scope(text) != RESERVE),
            earmarks=tuple(_earmark(text) for text in inside if _scope(text) == RESERVE),
            unit_bounds=tuple(_bound(text, unit) for text in bounds),
            approver_differs=self.approver_differs,
        )


def _own(texts: Sequence[str], what: str, *, inside: Callable[[str], bool]) -> tuple[str, list[str]]:
    """The account's own unit or cap, and what was stated inside it."""
    own = [text for text in texts if not inside(text)]
    if len(own) != 1:
        raise InvalidAccount(
            f"an account with {len(own) or 'no'} {what}{'s' if own else ''} of its own",
            why="an account is kept for one unit, and has one cap over all releases ever",
            instead="state --unit household, and --unit-bound person=6 for what a household holds"
            if what == "unit"
            else "state --cap 10 or --cap rho=2.56, and --limit user=2 and the like for what is inside it",
        )
    return own[0], [text for text in texts if inside(text)]


def _split(text: str) -> tuple[str, str | None, str]:
    """The scope, the name if there is one, and the amount in `scope:name=amount`."""
    left, _, amount = text.rpartition("=")
    scope, colon, name = left.partition(":")
    return scope.strip(), name.strip() if colon else None, amount


def _scope(text: str) -> str:
    return _split(text)[0]


def _is_inside(text: str) -> bool:
    scope, name, _ = _split(text)
    return name is not None or scope in {*Scope, RESERVE}


def loss_of(text: str, what: str) -> PrivacyLoss:
    """A loss as typed: 0.1, epsilon=1/10 or rho=0.01."""
    privacy_measure, _, amount = _split(text)
    if privacy_measure and privacy_measure not in set(PrivacyMeasure):
        raise InvalidLoss(
            f"{what} in '{privacy_measure}'",
            why="a loss is in epsilon or in rho",
            instead="state 0.1, epsilon=1/10 or rho=0.01",
        )
    return PrivacyLoss(
        number(amount, what), PrivacyMeasure(privacy_measure) if privacy_measure else PrivacyMeasure.PURE_DP
    )


def _cap(text: str) -> PrivacyLoss:
    privacy_measure, _, amount = _split(text)
    if privacy_measure and privacy_measure not in set(PrivacyMeasure):
        raise InvalidAccount(
            f"a cap in '{privacy_measure}'",
            why="an account counts in epsilon or in rho",
            instead="state --cap epsilon=10, or --cap rho=2.56; inside it --limit user=2, group:NAME=1, "
            "purpose:NAME=1/2 or reserve:PURPOSE=3",
        )
    return PrivacyLoss(
        number(amount, "a cap"), PrivacyMeasure(privacy_measure) if privacy_measure else PrivacyMeasure.PURE_DP
    )


def _limit(text: str) -> AccountLimit:
    scope, name, amount = _split(text)
    if scope not in set(Scope):
        raise InvalidAccount(
            f"a limit for '{scope}'",
            why="inside an account there are limits for users, groups and purposes, and reserves for purposes",
            instead="state user=2 for each user, user:NAME=2 for one, group:NAME=1, purpose:NAME=1/2, "
            "or reserve:PURPOSE=3",
        )
    return AccountLimit(Scope(scope), number(amount, f"a limit for a {scope}"), name)


def _earmark(text: str) -> Earmark:
    _, purpose, amount = _split(text)
    if purpose is None:
        raise InvalidAccount(
            "a reserve for no purpose",
            why="a part of an account is kept for a purpose that has a name",
            instead="state reserve:PURPOSE=3",
        )
    return Earmark(purpose, number(amount, "a reserve"))


def _bound(text: str, own: str) -> UnitBound:
    unit, _, most = text.rpartition("=")
    try:
        whole = int(most)
    except ValueError:
        raise InvalidAccount(
            f"one {own} is in at most '{most.strip()}' of the unit '{unit.strip()}'",
            why="losses are converted between units by a whole number of at least 1",
            instead=f"state a whole number: --unit-bound '{unit.strip()}=6'",
        ) from None
    return UnitBound(unit.strip(), whole)


@dataclass(frozen=True)
class SpenderOptions:
    """Who spends, in which group and for which purpose, where these are stated."""

    by: str | None = None
    group: str | None = None
    purpose: str | None = None


def spender_of(texts: Sequence[str]) -> SpenderOptions:
    """A spender as typed: a name, `group:NAME`, `purpose:NAME`, each at most once."""
    found: dict[str, str] = {}
    for text in texts:
        scope, colon, name = text.partition(":")
        known = colon and scope in (Scope.GROUP, Scope.PURPOSE)
        key, value = (scope, name.strip()) if known else ("by", text)
        if key in found:
            raise InvalidRequest(
                f"two names for {'the publisher' if key == 'by' else f'the {key}'}",
                why="a release counts against the limits of one person, one group and one purpose",
                instead="state each once: --by NAME --for group:NAME --for purpose:NAME",
            )
        found[key] = value
    return SpenderOptions(**found)


def number(text: str, what: str) -> Fraction:
    """A number as it is typed, exactly."""
    try:
        return rational(text)
    except ValueError as error:
        raise InvalidLoss(
            f"{what} of '{text}'", why=f"it is {error}", instead="state a number: 10, 2.56, 1e-10 or 6319/2500"
        ) from None


def term_lines(account: Account) -> list[str]:
    """What stands inside an account's cap, a line each."""
    privacy_measure = account.privacy_measure
    lines = [
        f"{f'each {limit.scope}' if limit.name is None else f'the {limit.scope} {limit.name!r}'} may spend "
        f"{privacy_measure} {written(limit.amount)}"
        for limit in account.limits
    ]
    lines += [
        f"{privacy_measure} {written(kept.amount)} is kept for the purpose '{kept.purpose}'"
        for kept in account.earmarks
    ]
    lines += [
        f"one {account.unit} is in at most {bound.most} of the unit '{bound.unit}'" for bound in account.unit_bounds
    ]
    if account.approver_differs:
        lines.append("nobody publishes on their own approval alone")
    return lines
