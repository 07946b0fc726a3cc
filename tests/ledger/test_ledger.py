"""The ledger at work: caps, approvals, reservations, states, and what is recorded of them."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, event

from dualmandate.errors import (
    BudgetExceeded,
    CannotWrite,
    InvalidAccount,
    InvalidLoss,
    LedgerUnavailable,
    NotApproved,
    Refusal,
    ReleaseConflict,
)
from dualmandate.ledger import (
    Account,
    AccountLimit,
    Approval,
    Earmark,
    EventKind,
    Ledger,
    LedgerKey,
    ReleaseState,
    Request,
    Scope,
    UnitBound,
    chain,
    open_ledger,
    storage,
)
from dualmandate.ledger.durable import write_durably
from dualmandate.population import PrivacyLoss

PLAN, OTHER_PLAN, TABLES = "a1" * 32, "b2" * 32, "c3" * 32
THIRD = PrivacyLoss.pure("1/3")
REQUEST = Request("school children", PLAN, "2026", THIRD, "child", user="Eve")


def approve(ledger: Ledger, loss: PrivacyLoss, *, plan: str = PLAN, unit: str = "person") -> None:
    ledger.approve(Approval("people", plan, loss, unit, by="Ann"))


def ask(
    loss: PrivacyLoss, snapshot: str, *, user: str = "Eve", group: str | None = None, purpose: str | None = None
) -> Request:
    return Request("people", PLAN, snapshot, loss, "person", user, group, purpose)


def walk(ledger: Ledger, release: str, to: ReleaseState) -> None:
    """Take a reserved release to a state by every step before it."""
    for state in (ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED):
        if state is ReleaseState.MEASURED:
            ledger.bind(release, TABLES, by="Eve")
        ledger.advance(release, state, by="Eve")
        if state is to:
            return


def kinds(ledger: Ledger) -> Iterable[EventKind]:
    return [event.kind for event in ledger.events()]


def test_a_release_from_reservation_to_the_end(ledger: Ledger) -> None:
    release = ledger.reserve(REQUEST)
    assert (release.state, release.cost, release.user) == (ReleaseState.RESERVED, Fraction(1, 3), "Eve")
    assert ledger.spent("school children") == Fraction(1, 3)
    assert ledger.remaining("school children") == Fraction(14, 3)
    assert len(ledger.secret(release.name).open_for("a test")) == 32
    walk(ledger, release.name, ReleaseState.SETTLED)
    ledger.record_export(release.name, "the public site", by="Eve")
    assert ledger.destroy_secret(release.name, by="Eve").secret_destroyed
    assert ledger.release(release.name).state is ReleaseState.SETTLED
    assert ledger.spent("school children") == Fraction(1, 3)
    assert kinds(ledger) == [
        *(EventKind.ACCOUNT_OPENED, EventKind.APPROVED, EventKind.RESERVED, EventKind.OPENED, EventKind.TABULATED),
        *(EventKind.MEASURED, EventKind.WRITTEN, EventKind.PUBLISHED, EventKind.EXPORTED, EventKind.KEY_DESTROYED),
    ]
    assert [event.sequence for event in ledger.events("school children")] == list(range(1, 11))


def test_everything_is_still_there_for_the_next_process(ledger: Ledger, place: Path, key: LedgerKey) -> None:
    release = ledger.reserve(REQUEST)
    walk(ledger, release.name, ReleaseState.MEASURED)
    again = open_ledger(place, key)
    assert again.release(release.name) == ledger.release(release.name)
    assert again.accounts() == ledger.accounts()
    assert again.releases("school children") == (again.release(release.name),)
    assert again.releases("others") == ()
    assert again.secret(release.name).open_for("x") == ledger.secret(release.name).open_for("x")
    assert again.events() == ledger.events()
    assert again.head() == ledger.head()


def test_the_cap_is_met_exactly_and_never_passed(ledger: Ledger) -> None:
    for number in range(15):  # 15 thirds are 5, which no sum of floats would say
        ledger.reserve(replace(REQUEST, snapshot=str(number)))
    assert ledger.spent("school children") == 5
    assert ledger.remaining("school children") == 0
    with pytest.raises(BudgetExceeded, match="more than the 0 that the cap of 'school children' leaves"):
        ledger.reserve(replace(REQUEST, snapshot="one more"))
    refused = ledger.events()[-1]
    assert (refused.kind, refused.by, refused.amount) == (EventKind.REFUSED, "Eve", None)
    assert refused.document()["code"] == "budget exceeded"
    assert ledger.spent("school children") == 5


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.fractions(Fraction(1, 50), 2, max_denominator=50), st.booleans()), max_size=6), st.uuids())
def test_the_books_equal_a_plain_sum(empty: Ledger, asked: list[tuple[Fraction, bool]], name: object) -> None:
    account = str(name)
    if account in {known.name for known in empty.accounts()}:
        return
    empty.open_account(Account(account, "person", PrivacyLoss.pure(3)), by="Ann")
    spent = Fraction(0)
    for number, (amount, cancel) in enumerate(asked):
        loss, snapshot = PrivacyLoss.pure(amount), f"{account} {number}"
        empty.approve(Approval(account, PLAN, loss, "person", by="Ann"))
        request = Request(account, PLAN, snapshot, loss, "person", user="Eve")
        if spent + amount > 3:
            with pytest.raises(BudgetExceeded):
                empty.reserve(request)
            continue
        release = empty.reserve(request)
        if cancel:
            empty.cancel(release.name, by="Eve")
        else:
            spent += amount
        assert empty.spent(account) == spent
        assert empty.remaining(account) == 3 - spent


def test_limits_of_users_groups_and_purposes(empty: Ledger) -> None:
    one = PrivacyLoss.pure(1)
    limits = (
        AccountLimit(Scope.USER, Fraction(2)),
        AccountLimit(Scope.GROUP, Fraction(3), "labs"),
        AccountLimit(Scope.PURPOSE, Fraction(1)),
    )
    empty.open_account(Account("people", "person", PrivacyLoss.pure(10), limits=limits), by="Ann")
    approve(empty, one)
    empty.reserve(ask(one, "1", user="Eve", group="labs", purpose="a"))
    with pytest.raises(BudgetExceeded, match="the limit of each purpose"):
        empty.reserve(ask(one, "2", user="Eve", group="labs", purpose="a"))
    empty.reserve(ask(one, "2", user="Eve", group="labs", purpose="b"))
    with pytest.raises(BudgetExceeded, match="the limit of each user"):
        empty.reserve(ask(one, "3", user="Eve", group="labs", purpose="c"))
    empty.reserve(ask(one, "3", user="Bob", group="labs"))
    with pytest.raises(BudgetExceeded, match="the limit of the group 'labs'"):
        empty.reserve(ask(one, "4", user="Joe", group="labs"))
    empty.reserve(ask(one, "4", user="Joe", group="schools"))
    assert empty.spent("people") == 4
    assert empty.spent("people", Scope.USER, "Eve") == 2
    assert empty.remaining("people", {Scope.USER: "Bob"}) == 1
    assert empty.remaining("people", {Scope.USER: "Bob", Scope.GROUP: "labs"}) == 0
    assert empty.remaining("people") == 6


def test_what_is_earmarked_waits_for_its_purpose(empty: Ledger) -> None:
    earmarks = (Earmark("2030", Fraction(4)),)
    empty.open_account(Account("people", "person", PrivacyLoss.pure(5), earmarks=earmarks), by="Ann")
    one, three = PrivacyLoss.pure(1), PrivacyLoss.pure(3)
    approve(empty, one)
    approve(empty, three)
    empty.reserve(ask(one, "1"))
    with pytest.raises(BudgetExceeded, match="less what is kept for other purposes"):
        empty.reserve(ask(one, "2", purpose="2028"))
    assert empty.remaining("people", {Scope.PURPOSE: "2030"}) == 4
    empty.reserve(ask(three, "2", purpose="2030"))
    assert empty.remaining("people") == 0
    assert empty.remaining("people", {Scope.PURPOSE: "2030"}) == 1


def test_only_the_approved_plan_at_its_loss_is_paid(ledger: Ledger) -> None:
    for change in ({"plan_digest": OTHER_PLAN}, {"loss": PrivacyLoss.pure("1/4")}):
        with pytest.raises(NotApproved, match="is not approved"):
            ledger.reserve(replace(REQUEST, **change))
    assert ledger.spent("school children") == 0
    assert ledger.events()[-1].document()["code"] == "not approved"


def test_an_account_may_ask_for_two_people(empty: Ledger) -> None:
    empty.open_account(Account("people", "person", PrivacyLoss.pure(5), approver_differs=True), by="Ann")
    approve(empty, THIRD)
    with pytest.raises(NotApproved, match="approved only by its publisher"):
        empty.reserve(ask(THIRD, "1", user="Ann"))
    empty.reserve(ask(THIRD, "1", user="Eve"))
    empty.approve(Approval("people", PLAN, THIRD, "person", by="Bob"))
    empty.reserve(ask(THIRD, "2", user="Ann"))


def test_an_approval_is_for_something_that_can_be_paid(ledger: Ledger) -> None:
    with pytest.raises(InvalidAccount, match="which counts in epsilon"):
        ledger.approve(Approval("school children", PLAN, PrivacyLoss.concentrated(1), "child", by="Ann"))
    with pytest.raises(InvalidAccount, match="no account 'others'"):
        ledger.approve(Approval("others", PLAN, THIRD, "child", by="Ann"))
    with pytest.raises(NotApproved, match="without a digest"):
        Approval("school children", "A1" * 32, THIRD, "child", by="Ann")


def test_publishing_never_opens_an_account_or_a_ledger(ledger: Ledger, tmp_path: Path, key: LedgerKey) -> None:
    with pytest.raises(InvalidAccount, match="no account 'others'"):
        ledger.reserve(replace(REQUEST, account="others"))
    for place in (tmp_path / "nowhere.sqlite", f"sqlite:///{tmp_path}/nowhere.sqlite"):
        with pytest.raises(LedgerUnavailable, match="there is no ledger"):
            open_ledger(place, key)
    assert not (tmp_path / "nowhere.sqlite").exists()
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(LedgerUnavailable, match="there is no ledger"):
        open_ledger(tmp_path / "empty.sqlite", key)


def test_an_account_is_opened_once(ledger: Ledger) -> None:
    with pytest.raises(InvalidAccount, match="is open already"):
        ledger.open_account(Account("school children", "child", PrivacyLoss.pure(500)), by="Eve")
    assert ledger.remaining("school children") == 5


def test_one_plan_on_one_snapshot_is_one_release(ledger: Ledger) -> None:
    first = ledger.reserve(REQUEST)
    with pytest.raises(ReleaseConflict, match=f"release {first.name} of this plan and snapshot exists") as refusal:
        ledger.reserve(REQUEST)
    assert refusal.value.instead == f"resume release {first.name}"
    walk(ledger, first.name, ReleaseState.SETTLED)
    with pytest.raises(ReleaseConflict, match="settled") as refusal:
        ledger.reserve(REQUEST)
    assert refusal.value.instead.startswith(f"read release {first.name}; --again makes another one")
    assert ledger.spent("school children") == Fraction(1, 3)
    second = ledger.reserve(replace(REQUEST, again=True))
    assert ledger.spent("school children") == Fraction(2, 3)
    assert second.name != first.name
    assert ledger.release(first.name).state is ReleaseState.SETTLED


def test_publishing_again_leaves_an_opened_release_spent(ledger: Ledger) -> None:
    first = ledger.reserve(REQUEST)
    old = ledger.secret(first.name).open_for("a test")
    ledger.advance(first.name, ReleaseState.OPENED, by="Eve")
    second = ledger.reserve(replace(REQUEST, again=True))
    assert ledger.release(first.name).state is ReleaseState.ABANDONED
    assert ledger.spent("school children") == Fraction(2, 3)
    assert ledger.secret(second.name).open_for("a test") != old
    with pytest.raises(ReleaseConflict, match="is abandoned"):
        ledger.bind(first.name, TABLES, by="Eve")
    with pytest.raises(ReleaseConflict, match="is abandoned"):
        ledger.secret(first.name)
    assert ledger.destroy_secret(first.name, by="Eve").secret_destroyed


def test_publishing_again_takes_the_place_of_a_mere_reservation(ledger: Ledger) -> None:
    first = ledger.reserve(REQUEST)
    ledger.reserve(replace(REQUEST, again=True))
    assert ledger.release(first.name).state is ReleaseState.CANCELED
    assert ledger.spent("school children") == Fraction(1, 3)
    with pytest.raises(ReleaseConflict, match="is canceled and cannot become opened"):
        ledger.advance(first.name, ReleaseState.OPENED, by="Eve")


def test_a_reservation_is_canceled_only_before_it_is_opened(ledger: Ledger, place: Path) -> None:
    first = ledger.reserve(REQUEST)
    canceled = ledger.cancel(first.name, by="Eve")
    assert (canceled.state, canceled.secret_destroyed) == (ReleaseState.CANCELED, True)
    assert not list(place.parent.glob("*.secrets/*"))
    assert ledger.spent("school children") == 0
    second = ledger.reserve(REQUEST)
    for state in (ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED):
        if state is ReleaseState.MEASURED:
            ledger.bind(second.name, TABLES, by="Eve")
        ledger.advance(second.name, state, by="Eve")
        with pytest.raises(ReleaseConflict, match=f"is {state} and cannot be canceled"):
            ledger.cancel(second.name, by="Eve")
        assert ledger.spent("school children") == Fraction(1, 3)


@pytest.mark.parametrize(
    "at",
    [ReleaseState.RESERVED, ReleaseState.OPENED, ReleaseState.MEASURED, ReleaseState.WRITTEN, ReleaseState.SETTLED],
)
def test_only_the_next_step_can_be_taken(ledger: Ledger, at: ReleaseState) -> None:
    release = ledger.reserve(REQUEST)
    if at is not ReleaseState.RESERVED:
        walk(ledger, release.name, at)
    order = [
        ReleaseState.RESERVED,
        ReleaseState.OPENED,
        ReleaseState.MEASURED,
        ReleaseState.WRITTEN,
        ReleaseState.SETTLED,
    ]
    steps = [state for state in ReleaseState if state not in order[order.index(at) : order.index(at) + 2]]
    for state in steps:
        with pytest.raises(ReleaseConflict, match=f"is {at} and cannot become {state}"):
            ledger.advance(release.name, state, by="Eve")
    before = ledger.head()
    if at is not ReleaseState.RESERVED:  # a retry records nothing twice
        assert ledger.advance(release.name, at, by="Eve").state is at
    assert ledger.head() == before


def test_a_resumed_release_meets_the_data_it_was_begun_with(ledger: Ledger) -> None:
    release = ledger.reserve(REQUEST)
    with pytest.raises(ReleaseConflict, match="is reserved and cannot be bound"):
        ledger.bind(release.name, TABLES, by="Eve")
    ledger.advance(release.name, ReleaseState.OPENED, by="Eve")
    with pytest.raises(ReleaseConflict, match="before it is bound"):
        ledger.advance(release.name, ReleaseState.MEASURED, by="Eve")
    assert ledger.bind(release.name, TABLES, by="Eve").fingerprint == TABLES
    with pytest.raises(ReleaseConflict, match="cannot be bound to this"):
        ledger.bind(release.name, "not an HMAC", by="Eve")
    before = ledger.head()
    ledger.bind(release.name, TABLES, by="Eve")
    assert ledger.head() == before
    with pytest.raises(ReleaseConflict, match="begun on other data"):
        ledger.bind(release.name, "d4" * 32, by="Eve")
    assert ledger.spent("school children") == Fraction(1, 3)


def test_what_is_not_over_is_not_exported_and_keeps_its_secret(ledger: Ledger) -> None:
    release = ledger.reserve(REQUEST)
    with pytest.raises(ReleaseConflict, match="cannot be exported"):
        ledger.record_export(release.name, "the public site", by="Eve")
    with pytest.raises(ReleaseConflict, match="cannot lose its secret"):
        ledger.destroy_secret(release.name, by="Eve")
    with pytest.raises(ReleaseConflict, match="no release 'r9'"):
        ledger.advance("r9", ReleaseState.OPENED, by="Eve")


def test_a_secret_destroyed_before_a_crash_is_recorded_after_it(ledger: Ledger, place: Path) -> None:
    release = ledger.reserve(REQUEST)
    walk(ledger, release.name, ReleaseState.SETTLED)
    next(place.parent.glob("*.secrets/*")).unlink()
    ledger.destroy_secret(release.name, by="Eve")
    before = ledger.head()
    ledger.destroy_secret(release.name, by="Eve")
    assert ledger.head() == before


def test_reports_use_the_tight_conversion(empty: Ledger) -> None:
    empty.open_account(Account("people", "person", PrivacyLoss.concentrated(3)), by="Ann")
    assert empty.report("people", Fraction(1, 10**10)) is None
    loss = PrivacyLoss.concentrated("2.5562")
    approve(empty, loss)
    empty.reserve(ask(loss, "2020"))
    report = empty.report("people", Fraction(1, 10**10))
    assert report is not None
    assert float(report) == pytest.approx(17.143, abs=5e-4)  # the prototype's figure, by another route
    assert report.failure_probability == Fraction(1, 10**10)
    covered = empty.report("people", Fraction(999, 1000))
    assert covered == PrivacyLoss(Fraction(1, 10**6), failure_probability=Fraction(999, 1000))
    with pytest.raises(InvalidLoss, match="failure probability of 0"):
        empty.report("people", Fraction(0))


def test_reports_in_epsilon_are_the_exact_sum(ledger: Ledger) -> None:
    ledger.reserve(REQUEST)
    ledger.reserve(replace(REQUEST, snapshot="2027"))
    assert ledger.report("school children", Fraction(1, 10**10)) == PrivacyLoss.pure("2/3")


def test_units_are_added_per_protected_unit(empty: Ledger) -> None:
    account = Account("homes", "household", PrivacyLoss.pure(5), unit_bounds=(UnitBound("person", 6),))
    empty.open_account(account, by="Ann")
    half = PrivacyLoss.pure("1/2")
    for plan, unit in ((PLAN, "household"), (OTHER_PLAN, "person")):
        empty.approve(Approval("homes", plan, half, unit, by="Ann"))
        empty.reserve(Request("homes", plan, "2026", half, unit, user="Eve"))
    assert empty.spent("homes") == Fraction(1, 2) + 3


def test_nothing_secret_is_in_the_database(ledger: Ledger, place: Path, key: LedgerKey) -> None:
    secret = ledger.secret(ledger.reserve(REQUEST).name).open_for("a test")
    content = place.read_bytes()
    for hidden in (secret, secret.hex().encode(), key.content, key.content.hex().encode()):
        assert hidden not in content
        assert hidden not in repr(vars(ledger)).encode()


def test_what_the_database_says_is_not_repeated(ledger: Ledger, place: Path) -> None:
    connection = sqlite3.connect(place)
    connection.execute("CREATE TRIGGER t BEFORE INSERT ON ledger_entry BEGIN SELECT RAISE(ABORT, 'canary'); END")
    connection.commit()
    connection.close()
    before = ledger.head()
    with pytest.raises(LedgerUnavailable) as refusal:
        ledger.reserve(replace(REQUEST, snapshot="parrot"))
    assert "canary" not in str(refusal.value)
    assert "parrot" not in f"{refusal.value} {refusal.value.__context__}"  # no values even in what is suppressed
    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__
    assert ledger.head() == before
    assert ledger.spent("school children") == 0


def test_a_database_that_goes_away_or_is_none(ledger: Ledger, place: Path, tmp_path: Path, key: LedgerKey) -> None:
    place.rename(tmp_path / "moved")
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(REQUEST)
    assert not place.exists()
    place.write_bytes(b"this is not a database, and long enough to be looked at" * 20)
    with pytest.raises(LedgerUnavailable):
        ledger.reserve(REQUEST)
    with pytest.raises(LedgerUnavailable):
        open_ledger(place, key)


@pytest.mark.parametrize("url", ["mysql://u:canary@h/d", "sqlite://", "sqlite:///:memory:", "://canary", "x://canary"])
def test_other_databases_are_refused_without_their_password(url: str, key: LedgerKey) -> None:
    with pytest.raises(LedgerUnavailable, match="a database of this kind") as refusal:
        open_ledger(url, key)
    assert "canary" not in str(refusal.value)


def test_postgres_needs_a_folder_for_what_is_not_in_it(key: LedgerKey) -> None:
    with pytest.raises(LedgerUnavailable, match="without a folder"):
        open_ledger("postgresql://canary@localhost/x", key)


def test_postgres_needs_its_driver(key: LedgerKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "find_spec", lambda name: None)
    with pytest.raises(LedgerUnavailable, match="a ledger in PostgreSQL") as refusal:
        open_ledger("postgresql://canary@localhost/x", key, folder=tmp_path)
    assert refusal.value.instead == "install dualmandate[postgres]"


def test_postgres_that_does_not_answer(key: LedgerKey, tmp_path: Path) -> None:
    url = f"postgresql://u:canary@/d?host={tmp_path}"
    with pytest.raises(LedgerUnavailable) as refusal:
        open_ledger(url, key, folder=tmp_path)
    assert "canary" not in str(refusal.value)


def test_a_full_disk_before_the_commit_loses_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CannotWrite, match="cannot be written") as refusal:
            ledger.reserve(REQUEST)
    assert refusal.value.why == "no space left on device"
    assert ledger.spent("school children") == 0
    ledger.reserve(REQUEST)


def test_a_full_disk_after_the_commit_refunds_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes, *, mode: int = 0o600) -> None:
        if path.suffix == ".sealed":  # the secret of the release, before the commit
            return write_durably(path, content)
        raise CannotWrite.because(OSError(28, "No space left on device"), path)

    with monkeypatch.context() as patch:
        patch.setattr(chain, "write_durably", full)
        with pytest.raises(LedgerUnavailable, match="entry 3 is in the ledger, and its anchor could not be written"):
            ledger.reserve(REQUEST)
    assert ledger.spent("school children") == Fraction(1, 3)
    with pytest.raises(ReleaseConflict, match="exists already, reserved"):
        ledger.reserve(REQUEST)
    assert ledger.verify().head.sequence == 4


def test_what_an_entry_relies_on_is_on_the_disk_before_it(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    acts: list[str] = []
    fsync, rename = os.fsync, Path.replace

    def record_fsync(descriptor: int) -> None:
        acts.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def record_rename(path: Path, target: Path) -> Path:
        acts.append(target.suffix)
        return rename(path, target)

    def record_commit(connection: Connection) -> None:
        acts.append("commit")

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(Path, "replace", record_rename)
    event.listen(Engine, "commit", record_commit)
    try:
        ledger.reserve(REQUEST)
    finally:
        event.remove(Engine, "commit", record_commit)
    first = acts.index("file")  # the secrets' folder may be made before
    written = ["file", ".sealed", "folder", "commit", "file", ".anchor", "folder"]
    assert acts[first : first + len(written)] == written


def test_threads_take_turns(ledger: Ledger) -> None:
    def reserve(number: int) -> str:
        return ledger.reserve(replace(REQUEST, snapshot=str(number))).name

    with ThreadPoolExecutor(4) as pool:
        names = list(pool.map(reserve, range(12)))
    assert len(set(names)) == 12
    assert ledger.spent("school children") == 4
    assert ledger.verify().head.sequence == 14


@pytest.mark.parametrize("name", ["", " Eve", "E\x00ve", "E\nve", "e" * 201])
def test_names_are_one_line(ledger: Ledger, name: str) -> None:
    with pytest.raises(Refusal, match="without a usable name"):
        ledger.open_account(Account("others", "child", PrivacyLoss.pure(5)), by=name)
    with pytest.raises(Refusal, match="without a usable name"):
        replace(REQUEST, user=name)
    with pytest.raises(Refusal, match="without a usable name"):
        replace(REQUEST, purpose=name)
