"""Answers are booked like releases: caps hold, the same question is free, a crash is taken up, nothing leaks."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from tests.inquiry.towns import Town, counts_of, inquirer_in, records, written_to

from dualmandate.errors import (
    BudgetExceeded,
    CannotWrite,
    InvalidAccount,
    InvalidQuery,
    InvalidRequest,
    NotApproved,
    Refusal,
    ReleaseConflict,
    UnknownName,
    UnreadableSource,
)
from dualmandate.inquiry import Answer, Asker, Inquirer, inquirer
from dualmandate.ledger import Account, Ledger, ReleaseState, Scope, open_ledger, read_key
from dualmandate.population import Neighbors, PrivacyLoss, Protection
from dualmandate.publication import AttributeRule, Rules, ValueRule

COUNT = "SELECT COUNT(*) FROM records WHERE age >= 5"
WARDS = "SELECT ward, COUNT(*) FROM records GROUP BY ward"
CAP = PrivacyLoss.pure(1)
TENTH = PrivacyLoss.pure("0.1")
ANN, CEM = Asker("Ann"), Asker("Cem")
CANARY = "Xanthippe-4711"


def the_ledger(found: Inquirer) -> Ledger:
    assert found.ledger is not None
    return found.ledger


def test_an_answer_is_what_was_counted_with_its_noise(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, PrivacyLoss.pure(400))
    answer = found.ask(WARDS, PrivacyLoss.pure(100), asker=ANN)  # so much loss that no noise is left
    truth = counts_of(records()).sum(axis=(0, 2, 3)).tolist()
    assert [row.value for row in answer.rows] == truth
    assert [row.labels for row in answer.rows] == [("north",), ("east",), ("south",), ("west",)]
    sums = found.ask("SELECT SUM(income) FROM records", PrivacyLoss.pure(200), asker=ANN)
    incomes = [int(row[2]) for row in records() if row[2] != "not asked"]
    assert sums.rows[0].value == pytest.approx(sum(incomes), abs=60)
    means = found.ask("SELECT AVG(income) FROM records", PrivacyLoss.pure(100), asker=ANN)
    assert means.rows[0].value == pytest.approx(sum(incomes) / len(incomes), abs=0.2)
    assert the_ledger(found).spent("people") == 400


def test_what_is_spent_and_what_remains(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP, each_user=Fraction(1, 4))
    answer = found.ask(COUNT, TENTH, asker=ANN)
    assert (answer.spent, answer.remaining) == (TENTH, Fraction(3, 20))
    [row] = answer.rows
    assert row.standard_error == found.price(COUNT, TENTH).standard_error
    assert float(row.upper) - float(row.value) == found.price(COUNT, TENTH).half_width
    entry = the_ledger(found).release(answer.release)
    assert (entry.state, entry.secret_destroyed, entry.user) == (ReleaseState.SETTLED, True, "Ann")
    assert the_ledger(found).spent("people", Scope.USER, "Ann") == Fraction(1, 10)


def test_the_same_question_is_free_however_it_is_written_and_whoever_asks(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    first = found.ask(COUNT, TENTH, asker=ANN)
    before = the_ledger(found).head()
    written_to(tmp_path / "people.csv", [])  # the records are not looked at again
    other = "select count(*) from records where not (age < 5);"
    for asked, loss, asker in ((COUNT, TENTH, ANN), (other, TENTH, CEM), (COUNT, PrivacyLoss.pure("0.01"), CEM)):
        again = found.ask(asked, loss, asker=asker)
        assert (again.rows, again.spent, again.release) == (first.rows, None, first.release)
    assert the_ledger(found).head() == before
    wider = found.ask(COUNT, TENTH, asker=ANN, probability=0.99)
    assert wider.rows[0].value == first.rows[0].value
    assert float(wider.rows[0].upper) > float(first.rows[0].upper)


def test_a_larger_loss_and_another_state_of_the_records_are_other_questions(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    first = found.ask(COUNT, TENTH, asker=ANN)
    better = found.ask(COUNT, PrivacyLoss.pure("0.2"), asker=ANN)
    assert better.spent == PrivacyLoss.pure("0.2")
    assert found.ask(COUNT, TENTH, asker=ANN).release == better.release != first.release
    later = replace(found, snapshot="2027").ask(COUNT, TENTH, asker=ANN)
    assert later.spent == TENTH
    assert the_ledger(found).spent("people") == Fraction(4, 10)
    told = replace(found, program=Town(rules=Rules({"age": AttributeRule(ValueRule.MISSING, ValueRule.MISSING)})))
    assert told.ask(COUNT, TENTH, asker=ANN).spent == TENTH  # asked of records that are read otherwise


def test_a_cap_refuses_before_the_records_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = inquirer_in(tmp_path, CAP, each_user=Fraction(1, 10))

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("the records were opened")

    monkeypatch.setattr(inquirer, "tabulate", opened)
    with pytest.raises(BudgetExceeded, match="each user"):
        found.ask(COUNT, PrivacyLoss.pure("0.11"), asker=ANN)
    assert the_ledger(found).spent("people") == 0
    assert not list((tmp_path / "answers").iterdir())


def test_two_askers_at_once_never_pass_the_cap(tmp_path: Path) -> None:
    """Each with the ledger opened for itself and a folder of its own: only the ledger stands between them."""
    found = inquirer_in(tmp_path, PrivacyLoss.pure("1.5"))

    def ask(name: str, ages: range) -> int:
        ledger = open_ledger(tmp_path / "state" / "ledger.sqlite", read_key(tmp_path / "state" / "key"))
        own, answered = replace(found, ledger=ledger, answers=tmp_path / f"answers of {name}"), 0
        for age in ages:
            with suppress(BudgetExceeded):
                own.ask(f"SELECT COUNT(*) FROM records WHERE age = {age}", PrivacyLoss.pure("0.3"), asker=Asker(name))
                answered += 1
        return answered

    with ThreadPoolExecutor(2) as pool:
        answered = list(pool.map(ask, ("Ann", "Cem"), (range(4), range(4, 8))))
    assert sum(answered) == 5
    assert the_ledger(found).spent("people") == Fraction(3, 2)
    the_ledger(found).verify()


def test_two_who_ask_the_same_at_once_pay_once(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)

    def ask(name: str) -> Answer:
        ledger = open_ledger(tmp_path / "state" / "ledger.sqlite", read_key(tmp_path / "state" / "key"))
        return replace(found, ledger=ledger).ask(COUNT, TENTH, asker=Asker(name))

    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(ask, ("Ann", "Cem"))
    assert one.rows == other.rows
    assert sorted([one.spent is None, other.spent is None]) == [False, True]
    assert the_ledger(found).spent("people") == Fraction(1, 10)


@pytest.mark.parametrize("step", ["open_records", "tabulate", "measure", "write_durably", "settled"])
def test_a_question_that_was_cut_short_is_taken_up(step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = inquirer_in(tmp_path, CAP)

    def stopping(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if step == "settled":
            reach = inquirer._QuestionUnderWay.reach

            def until_written(work: inquirer._QuestionUnderWay, *args: object, **known: object) -> None:
                if ReleaseState.SETTLED in args:
                    raise KeyboardInterrupt
                reach(work, *args, **known)  # type: ignore[arg-type]

            patch.setattr(inquirer._QuestionUnderWay, "reach", until_written)
        else:
            patch.setattr(inquirer, step, stopping)
        with pytest.raises(KeyboardInterrupt):
            found.ask(COUNT, TENTH, asker=ANN)
    assert the_ledger(found).spent("people") == Fraction(1, 10)
    kept = [path.read_bytes() for path in (tmp_path / "answers").glob("*.json")]
    answer = found.ask(COUNT, TENTH, asker=ANN)
    assert the_ledger(found).spent("people") == Fraction(1, 10)
    assert len(the_ledger(found).releases()) == 1
    assert the_ledger(found).release(answer.release).secret_destroyed
    path = tmp_path / "answers" / f"{answer.release}.json"
    assert kept in ([], [path.read_bytes()])  # the same noise, to the last byte
    assert found.ask(COUNT, TENTH, asker=ANN) == replace(answer, spent=None)


def test_a_question_is_not_taken_up_on_other_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = inquirer_in(tmp_path, CAP)

    def stopping(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(inquirer, "measure", stopping)
        with pytest.raises(KeyboardInterrupt):
            found.ask(COUNT, TENTH, asker=ANN)
    written_to(tmp_path / "people.csv", records()[1:])
    with pytest.raises(ReleaseConflict, match="other data"):
        found.ask(COUNT, TENTH, asker=ANN)
    assert the_ledger(found).spent("people") == Fraction(1, 10)


def test_an_answer_that_was_changed_or_lost_is_not_given(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    path = tmp_path / "answers" / f"{found.ask(COUNT, TENTH, asker=ANN).release}.json"
    document = json.loads(path.read_text())
    document["measured"]["answer"][0] += 1
    path.write_text(json.dumps(document))
    for _ in range(2):
        with pytest.raises(ReleaseConflict, match="as it was given"):
            found.ask(COUNT, TENTH, asker=ANN)
        path.unlink(missing_ok=True)
    assert the_ledger(found).spent("people") == Fraction(1, 10)


def test_an_answer_of_another_ledger_is_not_written_over(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    path = tmp_path / "answers" / "people-1.json"
    path.parent.mkdir()
    path.write_text("{}")
    with pytest.raises(CannotWrite, match="not this answer"):
        found.ask(COUNT, TENTH, asker=ANN)
    assert path.read_text() == "{}"
    [entry] = the_ledger(found).releases()
    assert entry.state is ReleaseState.RESERVED  # nothing was opened: it can be canceled, or taken up elsewhere
    assert replace(found, answers=tmp_path / "others").ask(COUNT, TENTH, asker=ANN).release == entry.name


def refused(work: Callable[[], Answer]) -> Refusal:
    with pytest.raises(Refusal) as found:
        work()
    return found.value


def test_no_refusal_and_no_file_holds_what_is_confidential(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = inquirer_in(tmp_path, CAP)
    rows = [*records(50), (CANARY, CANARY, CANARY, CANARY)]
    written_to(tmp_path / "people.csv", rows)
    caplog.set_level(logging.DEBUG)
    said = [
        refused(lambda: found.ask(COUNT, PrivacyLoss.pure(2), asker=ANN)),
        refused(lambda: found.ask("SELECT COUNT(*) FROM records WHERE ward = 'norht'", TENTH, asker=ANN)),
    ]
    found.ask(WARDS, TENTH, asker=ANN)
    (tmp_path / "people.csv").write_bytes(b"age,ward\n" + CANARY.encode() + b"\xff\x00,\n")
    said.append(refused(lambda: found.ask(COUNT, TENTH, asker=ANN)))
    assert isinstance(said[-1], UnreadableSource)
    texts = [f"{each} {each.document()} {each.__cause__} {each.__context__}" for each in said]
    public = [path.read_text() for path in (tmp_path / "answers").iterdir()]
    assert public
    assert not any(CANARY in text for text in (*texts, *public, caplog.text))


def test_under_replace_one_groups_are_answered(tmp_path: Path) -> None:
    town = Town(protection=Protection(neighbors=Neighbors.REPLACE_ONE), rules=Rules(dropping_is_public=True))
    found = inquirer_in(tmp_path, CAP, town=town)
    answer = found.ask(WARDS, TENTH, asker=ANN)
    assert len(answer.rows) == 4
    assert answer.rows[0].standard_error == found.price(WARDS, TENTH).standard_error
    with pytest.raises(InvalidQuery, match="public"):
        found.ask("SELECT COUNT(*) FROM records", TENTH, asker=ANN)


def test_several_records_of_a_unit_are_clipped_and_covered(tmp_path: Path) -> None:
    town = Town(protection=Protection(most_records_per_unit=2, identifier="person"))
    found = inquirer_in(tmp_path, PrivacyLoss.pure(300), town=town)
    lines = [f"p{k // 5},{','.join(row)}\n" for k, row in enumerate(records(100))]
    (tmp_path / "people.csv").write_text("person,age,ward,income,paid\n" + "".join(lines))
    answer = found.ask("SELECT COUNT(*) FROM records", PrivacyLoss.pure(200), asker=ANN)
    assert answer.rows[0].value == 40  # twenty units, two records each


def test_who_approves(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    the_ledger(found).open_account(Account("two", "person", CAP, approver_differs=True), by="Ben")
    strict = replace(found, program=Town(account="two"))
    with pytest.raises(NotApproved):
        strict.ask(COUNT, TENTH, asker=ANN)
    strict.approve(COUNT, TENTH, by="Ben")
    assert strict.ask("SELECT COUNT(*) FROM records WHERE NOT age < 5", TENTH, asker=ANN).spent == TENTH
    assert strict.ask(WARDS, TENTH, asker=replace(ANN, approved_by="Ben")).spent == TENTH


def test_what_cannot_be_asked_is_refused_before_anything(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    with pytest.raises(InvalidAccount):
        replace(found, program=Town(account="others")).ask(COUNT, TENTH, asker=ANN)
    with pytest.raises(InvalidRequest, match="took attributes"):
        replace(found, program=Town(seen_in_the_data=("attributes.age",))).ask(COUNT, TENTH, asker=ANN)
    for lacking in (replace(found, ledger=None), replace(found, source=None), replace(found, answers=None)):
        with pytest.raises(InvalidRequest, match="ledger"):
            lacking.ask(COUNT, TENTH, asker=ANN)
    assert the_ledger(found).spent("people") == 0


def test_an_account_in_rho_is_asked_with_gaussian_noise(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, PrivacyLoss.concentrated(1))
    loss = found.loss_for(COUNT, 20)
    assert loss == PrivacyLoss.concentrated(loss.amount)
    answer = found.ask(COUNT, loss, asker=ANN)
    assert answer.remaining == 1 - loss.amount
    median = found.ask("SELECT MEDIAN(age) FROM records", PrivacyLoss.concentrated("0.5"), asker=ANN)
    [row] = median.rows
    assert (row.labels, row.standard_error, row.lower, row.upper) == ((), None, "5", "6")  # "5" by the records
    pure = found.ask(WARDS, TENTH, asker=ANN)  # costs ε²/2
    assert pure.remaining == median.remaining - Fraction(1, 200)


def test_another_ledger_has_other_noise(tmp_path: Path) -> None:
    rows = []
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        rows.append(inquirer_in(tmp_path / name, CAP).ask(WARDS, TENTH, asker=ANN).rows)
    assert rows[0] != rows[1]


def test_an_answer_is_read_again_by_its_name(tmp_path: Path) -> None:
    found = inquirer_in(tmp_path, CAP)
    questions = (
        COUNT,
        WARDS,
        "SELECT coast, AVG(income) FROM records WHERE ward <> 'west' GROUP BY coast",
        "SELECT QUANTILE(age, 0.9) FROM records WHERE income >= 5",
    )
    before = the_ledger(found).head()
    assert [found.recall(each, TENTH, asker=CEM) for each in questions] == [None] * 4
    assert the_ledger(found).head() == before  # looking costs nothing and writes nothing
    for question in questions:
        first = found.ask(question, TENTH, asker=ANN)
        again = found.reread(first.release, asker=CEM)
        assert (again.rows, again.columns, again.spent) == (first.rows, first.columns, None)
        assert found.recall(question, TENTH, asker=CEM) == again
        asked = found.asked(first.release)
        assert asked is not None
        assert asked.digest == found.question(question).digest
    coarser = replace(found, program=Town(account="animals"))
    assert coarser.asked("people-1") is None  # the same levels, of another account
    for name in ("people-9", "../state/key", "people-1.json"):
        with pytest.raises(UnknownName):
            found.reread(name, asker=CEM)
