"""A state of records: the same for the same records and rules, another for any other, and nothing without the key."""

from __future__ import annotations

import hashlib
import os
import random
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from dualmandate.ledger import Ledger, LedgerKey, make_key, open_ledger
from dualmandate.population import Attribute, Domain, Protection
from dualmandate.publication import AttributeRule, CsvFile, DatabaseTable, Rules, ValueRule
from dualmandate.publication.states import state_of
from dualmandate.publication.tabulating import TabulationSpec

DOMAIN = Domain((Attribute.categories("sex", ["f", "m"]), Attribute.numbers("age", 0, 99)))
SPEC = TabulationSpec(DOMAIN, Protection(), Rules())
ROWS = [("f", 34, "ann"), ("m", 7, "ben"), (None, 7, "ben"), ("m", None, "cat"), ("f", 34, "dan")]


def ledger_in(folder: Path) -> Ledger:
    key: LedgerKey = make_key(folder / "key")
    return open_ledger(folder / "ledger.sqlite", key, create=True)


def table(path: Path, rows: Sequence[tuple[object, ...]]) -> DatabaseTable:
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE people (sex TEXT, age INTEGER, name TEXT)")
        database.executemany("INSERT INTO people VALUES (?, ?, ?)", rows)
    database.close()
    return DatabaseTable("people", f"sqlite:///{path}")


def test_a_file_is_known_by_every_byte(tmp_path: Path) -> None:
    ledger, file = ledger_in(tmp_path / "one"), tmp_path / "people.csv"
    file.write_text("sex,age\nf,34\nm,7\n", encoding="utf-8")
    state, times = state_of(CsvFile(file), SPEC, ledger), file.stat()
    assert state == state_of(CsvFile(file), SPEC, ledger)
    assert state != state_of(CsvFile(file, ";"), SPEC, ledger)
    assert state != state_of(CsvFile(file), SPEC, ledger_in(tmp_path / "other"))
    assert hashlib.sha256(file.read_bytes()).hexdigest() not in (state.against, state.content)
    file.write_text("sex,age\nf,34\nm,8\n", encoding="utf-8")  # as many bytes
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))  # at the same time
    assert state_of(CsvFile(file), SPEC, ledger) != state


def test_a_table_is_known_by_its_rows_in_any_order(tmp_path: Path) -> None:
    ledger, shuffled = ledger_in(tmp_path / "one"), random.Random(1).sample(ROWS, len(ROWS))
    state = state_of(table(tmp_path / "a.sqlite", ROWS), SPEC, ledger)
    assert state == state_of(table(tmp_path / "b.sqlite", shuffled), SPEC, ledger)
    unread = [(sex, age, "somebody else") for sex, age, _ in ROWS]
    assert state == state_of(table(tmp_path / "c.sqlite", unread), SPEC, ledger)  # a column that is not read
    others: list[Sequence[tuple[object, ...]]] = [
        [*ROWS, ROWS[0]],
        ROWS[1:],
        [("f", 35, "ann"), *ROWS[1:]],
        [("", 34, "ann"), *ROWS[1:]],
        [("m", 34, "ann"), ("f", 7, "ben"), *ROWS[2:]],  # values change places
    ]
    for number, rows in enumerate(others):
        assert state_of(table(tmp_path / f"other{number}.sqlite", rows), SPEC, ledger) != state
    assert state_of(table(tmp_path / "d.sqlite", ROWS), SPEC, ledger_in(tmp_path / "other")) != state


def test_what_records_are_held_against_is_part_of_it(tmp_path: Path) -> None:
    ledger, file = ledger_in(tmp_path / "one"), tmp_path / "people.csv"
    file.write_text("sex,age\nf,34\nm,7\n", encoding="utf-8")
    sex, age = DOMAIN.attributes
    specs = [
        SPEC,
        replace(SPEC, domain=Domain((Attribute.categories("sex", ["f", "M"]), age))),
        replace(SPEC, domain=Domain((sex, Attribute.numbers("age", 0, 98)))),
        replace(SPEC, domain=Domain((sex, Attribute.binned("age", [0, 50, 99])))),
        replace(SPEC, rules=Rules({"age": AttributeRule(ValueRule.DROP)})),
        replace(SPEC, protection=Protection(identifier="sex", most_records_per_unit=2)),
    ]
    assert len({state_of(CsvFile(file), spec, ledger) for spec in specs}) == len(specs)
