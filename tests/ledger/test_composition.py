"""How losses compose, and the one inequality of the ledger: a cost is refused where it is more than any cap leaves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import pytest

from dualmandate.errors import BudgetExceeded, InvalidAccount
from dualmandate.ledger import Account, AccountLimit, Approval, Earmark, EventKind, Ledger, Request, Scope, UnitBound
from dualmandate.ledger.books import Books, loss_document, request_document
from dualmandate.ledger.chain import Event, written_details
from dualmandate.ledger.composition import LossKind, affordable, cost, reported
from dualmandate.population import PrivacyLoss, PrivacyMeasure

EPSILON, RHO = PrivacyLoss.pure, PrivacyLoss.concentrated
PLAN = "a1" * 32
HAIR = Fraction(1, 10**12)
# What is left beside what is asked, and whether that is enough.
ROOM = {
    "twice as much": (Fraction(2), True),
    "a part in 10^12 more": (1 + HAIR, True),
    "exactly as much": (Fraction(1), True),
    "a part in 10^12 less": (1 - HAIR, False),
    "a part in 10^30 less": (1 - Fraction(1, 10**30), False),
    "two thirds": (Fraction(2, 3), False),
    "half, less a part in 10^12": (Fraction(1, 2) - HAIR, False),
    "half": (Fraction(1, 2), False),
    "a third": (Fraction(1, 3), False),
    "nothing": (Fraction(0), False),
}


@dataclass(frozen=True)
class Coin:
    """A loss, what protects it, what the account counts in, and the cost worked out by hand."""

    loss: PrivacyLoss
    unit: str
    counted: Callable[[Fraction], PrivacyLoss]
    cost: Fraction


COINS = {
    "ε in ε": Coin(EPSILON("1/3"), "household", EPSILON, Fraction(1, 3)),
    "ρ in ρ": Coin(RHO("2.5562"), "household", RHO, Fraction(12781, 5000)),
    "ε in ρ, ε²/2": Coin(EPSILON("2/3"), "household", RHO, Fraction(2, 9)),
    "ε of six persons, 6ε": Coin(EPSILON("1/7"), "person", EPSILON, Fraction(6, 7)),
    "ρ of six persons, 36ρ": Coin(RHO("1/7"), "person", RHO, Fraction(36, 7)),
    "ε of six persons in ρ, (6ε)²/2": Coin(EPSILON("1/7"), "person", RHO, Fraction(18, 49)),
}
PARTS = {"user": "Eve", "group": "labs", "purpose": "tables"}
# The caps of an account: what it is opened with so that one amount is allowed, and the words of a refusal.
CAPS: dict[str, tuple[Callable[[Fraction], dict[str, Any]], str]] = {
    "the account": (lambda amount: {"cap": amount}, "the cap of 'homes' leaves"),
    "one user": (
        lambda amount: {"limits": (AccountLimit(Scope.USER, amount, "Eve"),)},
        "the limit of the user 'Eve' in 'homes' leaves",
    ),
    "each user": (
        lambda amount: {"limits": (AccountLimit(Scope.USER, amount),)},
        "the limit of each user in 'homes' leaves",
    ),
    "one group": (
        lambda amount: {"limits": (AccountLimit(Scope.GROUP, amount, "labs"),)},
        "the limit of the group 'labs' in 'homes' leaves",
    ),
    "each group": (
        lambda amount: {"limits": (AccountLimit(Scope.GROUP, amount),)},
        "the limit of each group in 'homes' leaves",
    ),
    "one purpose": (
        lambda amount: {"limits": (AccountLimit(Scope.PURPOSE, amount, "tables"),)},
        "the limit of the purpose 'tables' in 'homes' leaves",
    ),
    "each purpose": (
        lambda amount: {"limits": (AccountLimit(Scope.PURPOSE, amount),)},
        "the limit of each purpose in 'homes' leaves",
    ),
    "what a reserve leaves": (
        lambda amount: {"cap": amount + 10, "earmarks": (Earmark("2030", Fraction(7)), Earmark("2040", Fraction(3)))},
        "the cap of 'homes', less what is kept for other purposes leaves",
    ),
    "a reserve of its own and the rest": (
        lambda amount: {"cap": amount + 3, "earmarks": (Earmark("tables", amount), Earmark("2040", Fraction(3)))},
        "the cap of 'homes', less what is kept for other purposes leaves",
    ),
}


class Desk:
    """Books in memory, written to as a ledger writes."""

    def __init__(self, *accounts: Account) -> None:
        self.books = Books("a ledger", "0" * 64)
        for account in accounts:
            self._record(
                EventKind.ACCOUNT_OPENED, account=account.name, amount=account.cap.amount, details=account.document()
            )

    def _record(self, kind: EventKind, *, details: Any = None, **fields: Any) -> None:
        sequence = len(self.books.digests)
        by = fields.pop("by", "Ann")
        event = Event(sequence, kind, "2026-01-01T00:00:00", by, details=written_details(details or {}), **fields)
        self.books.read(event)

    def ask(self, loss: PrivacyLoss, *, account: str = "homes", unit: str = "household", **who: Any) -> Request:
        """A request with a snapshot of its own, approved."""
        details = {"plan_digest": PLAN, **loss_document(loss, unit)}
        self._record(EventKind.APPROVED, account=account, amount=Fraction(1), details=details)
        user = who.pop("user", "Eve")
        return Request(account, PLAN, f"snapshot {len(self.books.digests)}", loss, unit, user, **who)

    def reserve(self, request: Request) -> str:
        """Admit and record; the name of the release."""
        asked, superseded = self.books.admit(request)
        name, details = f"r{len(self.books.digests)}", request_document(request, superseded)
        fields: dict[str, Any] = {"account": request.account, "amount": asked, "by": request.user}
        self._record(EventKind.RESERVED, release=name, details=details, **fields)
        return name

    def step(self, release: str, kind: EventKind) -> None:
        self._record(kind, release=release)


def homes(counted: Callable[[Fraction], PrivacyLoss], cap: Fraction = Fraction(1000), **terms: Any) -> Account:
    bounds = (UnitBound("person", 6),)
    return Account("homes", "household", counted(cap), unit_bounds=bounds, **terms)


@pytest.mark.parametrize(("share", "enough"), ROOM.values(), ids=ROOM)
@pytest.mark.parametrize("kind", CAPS)
@pytest.mark.parametrize("coin", COINS.values(), ids=COINS)
def test_a_cost_is_refused_where_it_is_more_than_is_left(coin: Coin, kind: str, share: Fraction, enough: bool) -> None:
    terms, words = CAPS[kind]
    # Two releases were paid before, one of them only reserved; a third was given back.
    desk = Desk(
        homes(coin.counted, **terms(coin.cost * (2 + share))),
        Account("others", "household", coin.counted(Fraction(1000)), unit_bounds=(UnitBound("person", 6),)),
    )
    who: dict[str, Any] = {"unit": coin.unit, **PARTS}
    if kind == "what a reserve leaves":
        who["purpose"] = "today"
    desk.step(desk.reserve(desk.ask(coin.loss, **who)), EventKind.OPENED)
    desk.reserve(desk.ask(coin.loss, **who))
    if share >= 1:
        desk.step(desk.reserve(desk.ask(coin.loss, **who)), EventKind.CANCELED)
    # What others spend from another account, or in other parts of this one, is not counted here.
    desk.reserve(desk.ask(coin.loss, account="others", **who))
    if "limits" in terms(coin.cost):
        elsewhere = {"unit": coin.unit, "user": "Bob", "group": "schools", "purpose": "maps"}
        desk.reserve(desk.ask(coin.loss, **elsewhere))
        desk.reserve(desk.ask(coin.loss, **elsewhere))
    request = desk.ask(coin.loss, **who)
    left = coin.cost * share
    assert min(desk.books.room("homes", request.parts).values()) == left
    if enough:
        assert desk.books.admit(request) == (coin.cost, None)
        spent = desk.books.spent("homes")
        desk.reserve(request)
        assert desk.books.spent("homes") == spent + coin.cost
    else:
        with pytest.raises(BudgetExceeded) as refusal:
            desk.books.admit(request)
        assert refusal.value.what == (
            f"a loss of {coin.cost} {desk.books.account('homes').privacy_measure} is more than the {left} that {words}"
        )


@pytest.mark.parametrize("coin", COINS.values(), ids=COINS)
def test_costs_are_what_the_formulas_say(coin: Coin) -> None:
    assert cost(coin.loss, coin.unit, homes(coin.counted)) == coin.cost


def test_the_smallest_of_several_caps_decides() -> None:
    limits = (
        AccountLimit(Scope.USER, Fraction(4)),
        AccountLimit(Scope.GROUP, Fraction(3), "labs"),
        AccountLimit(Scope.PURPOSE, Fraction(2), "tables"),
    )
    desk = Desk(homes(EPSILON, Fraction(5), limits=limits))
    for parts, left in (
        ({}, 5),
        ({Scope.USER: "Eve"}, 4),
        ({Scope.USER: "Eve", Scope.GROUP: "labs"}, 3),
        ({Scope.USER: "Eve", Scope.GROUP: "schools"}, 4),
        ({Scope.USER: "Eve", Scope.GROUP: "labs", Scope.PURPOSE: "tables"}, 2),
    ):
        assert min(desk.books.room("homes", parts).values()) == left
    desk.reserve(desk.ask(EPSILON(2), **PARTS))
    for over, words in (
        ({"user": "Bob", "purpose": "tables"}, "the purpose 'tables'"),
        ({"user": "Bob", "group": "labs"}, "the group 'labs'"),
        ({"user": "Eve"}, "each user"),
        ({"user": "Bob"}, "the cap of 'homes'"),
    ):
        left = {"the purpose 'tables'": 0, "the group 'labs'": 1, "each user": 2, "the cap of 'homes'": 3}[words]
        with pytest.raises(BudgetExceeded, match=f"more than the {left} that .*{words}"):
            desk.reserve(desk.ask(EPSILON(left + HAIR), **over))


def test_a_refund_before_it_is_opened_is_whole_and_comes_once() -> None:
    desk = Desk(homes(EPSILON, Fraction(3), limits=tuple(AccountLimit(scope, Fraction(2)) for scope in Scope)))
    request = desk.ask(EPSILON(2), **PARTS)
    release = desk.reserve(request)
    assert desk.books.spent("homes") == 2
    with pytest.raises(BudgetExceeded, match=r"more than the 0 that the limit of each user"):
        desk.reserve(desk.ask(EPSILON(1), user="Eve"))
    desk.step(release, EventKind.CANCELED)
    assert desk.books.spent("homes") == 0
    assert [desk.books.spent("homes", scope, name) for scope, name in request.parts.items()] == [0, 0, 0]
    desk.reserve(desk.ask(EPSILON(2), **PARTS))
    assert [desk.books.spent("homes", scope, name) for scope, name in request.parts.items()] == [2, 2, 2]


def test_from_opened_on_nothing_comes_back() -> None:
    desk = Desk(homes(EPSILON, Fraction(2)))
    request = desk.ask(EPSILON(1))
    release = desk.reserve(request)
    for kind in (EventKind.OPENED, EventKind.TABULATED, EventKind.MEASURED, EventKind.WRITTEN):
        if kind is EventKind.TABULATED:
            desk._record(kind, release=release, details={"fingerprint": "c3" * 32})
        else:
            desk.step(release, kind)
        assert desk.books.spent("homes") == 1
    desk.reserve(replace(request, again=True))
    assert desk.books.spent("homes") == 2
    with pytest.raises(BudgetExceeded, match="more than the 0 that"):
        desk.reserve(replace(request, again=True))


def test_a_reservation_that_is_replaced_counts_until_it_is() -> None:
    desk = Desk(homes(EPSILON, Fraction(3)))
    request = desk.ask(EPSILON(2))
    first = desk.reserve(request)
    with pytest.raises(BudgetExceeded, match="more than the 1 that") as refusal:
        desk.reserve(replace(request, again=True))
    assert refusal.value.instead == f"cancel release {first} first, plan a smaller loss, or ask less"
    small = desk.ask(EPSILON(1))
    desk.reserve(small)
    desk.step(first, EventKind.CANCELED)
    desk.reserve(replace(small, again=True))  # takes the place of the small one, which was never opened
    assert desk.books.spent("homes") == 1


def test_a_reserve_is_never_kept_twice_nor_below_nothing() -> None:
    desk = Desk(homes(EPSILON, Fraction(10), earmarks=(Earmark("2030", Fraction(2)), Earmark("2040", Fraction(3)))))
    purposes = {purpose: {Scope.PURPOSE: purpose} for purpose in ("2030", "2040", "today")}

    def left() -> list[Fraction]:
        return [desk.books.room("homes", parts).popitem()[1] for parts in purposes.values()]

    assert left() == [7, 8, 5]
    desk.reserve(desk.ask(EPSILON(1), purpose="2030"))
    assert left() == [6, 8, 5]
    desk.reserve(desk.ask(EPSILON(4), purpose="2030"))  # more than its reserve: the rest comes from what is free
    assert left() == [2, 5, 2]
    desk.reserve(desk.ask(EPSILON(2), purpose="today"))
    assert left() == [0, 3, 0]


def test_the_ledger_keeps_to_what_the_accountant_leaves(empty: Ledger) -> None:
    empty.open_account(homes(EPSILON, Fraction(1)), by="Ann")
    for number, (loss, fits) in enumerate(
        ((Fraction(2, 3), True), (Fraction(1, 3) + HAIR, False), (Fraction(1, 3), True), (HAIR, False))
    ):
        empty.approve(Approval("homes", PLAN, EPSILON(loss), "household", by="Ann"))
        request = Request("homes", PLAN, str(number), EPSILON(loss), "household", user="Eve")
        if fits:
            empty.reserve(request)
        else:
            with pytest.raises(BudgetExceeded):
                empty.reserve(request)
    assert empty.spent("homes") == 1
    assert [event.kind for event in empty.events()].count(EventKind.REFUSED) == 2


@pytest.mark.parametrize(
    ("counted", "kind", "unit", "left", "largest"),
    [
        (EPSILON, LossKind(PrivacyMeasure.PURE_DP), "household", 3, Fraction(3)),
        (EPSILON, LossKind(PrivacyMeasure.PURE_DP, records=2), "household", 3, Fraction(3, 2)),
        (EPSILON, LossKind(PrivacyMeasure.PURE_DP), "person", 3, Fraction(1, 2)),
        (EPSILON, LossKind(PrivacyMeasure.PURE_DP), "household", -1, Fraction(0)),
        (RHO, LossKind(PrivacyMeasure.ZCDP, gaussian=True), "household", 3, Fraction(3)),
        (RHO, LossKind(PrivacyMeasure.ZCDP, records=2, gaussian=True), "household", 3, Fraction(3, 4)),
        (RHO, LossKind(PrivacyMeasure.PURE_DP), "household", 8, Fraction(4)),  # ε²/2 = 8
        (RHO, LossKind(PrivacyMeasure.PURE_DP, records=2), "household", 8, Fraction(2)),
        (RHO, LossKind(PrivacyMeasure.PURE_DP), "person", 2, Fraction(1, 3)),  # (6ε)²/2 = 2, rounded down
        (RHO, LossKind(PrivacyMeasure.PURE_DP), "household", 0, Fraction(0)),
    ],
)
def test_what_is_left_pays_for_a_loss(
    counted: Callable[[Fraction], PrivacyLoss], kind: LossKind, unit: str, left: int, largest: Fraction
) -> None:
    account = homes(counted)
    found = affordable(Fraction(left), unit, account, kind)
    assert largest - HAIR < found <= largest
    if found:
        assert cost(PrivacyLoss(found, kind.privacy_measure).for_records(kind.records), unit, account) <= left


def test_an_epsilon_at_a_failure_probability_is_paid_in_rho() -> None:
    at = LossKind(PrivacyMeasure.PURE_DP, gaussian=True, failure_probability=Fraction(1, 10**10))
    rho = Fraction(12781, 5000)
    assert float(affordable(rho, "household", homes(RHO), at)) == pytest.approx(17.143, abs=5e-4)
    assert affordable(4 * rho, "household", homes(RHO), replace(at, records=2)) == affordable(
        rho, "household", homes(RHO), at
    )
    # Laplace noise at the same δ is paid as a pure ε, where that allows less.
    pure = affordable(rho, "household", homes(RHO), replace(at, gaussian=False))
    assert float(pure) == pytest.approx(float(2 * rho) ** 0.5)
    with pytest.raises(InvalidAccount, match="counts in epsilon"):
        affordable(rho, "household", homes(EPSILON), at)


def test_a_sum_is_reported_in_its_own_measure() -> None:
    small = Fraction(1, 10**10)
    assert reported(Fraction(0), PrivacyMeasure.ZCDP, small) is None
    assert reported(Fraction(1, 3), PrivacyMeasure.PURE_DP, small) == EPSILON("1/3")
    found = reported(Fraction(12781, 5000), PrivacyMeasure.ZCDP, small)
    assert found is not None
    assert float(found) == pytest.approx(17.143, abs=5e-4)
    assert found.failure_probability == small
