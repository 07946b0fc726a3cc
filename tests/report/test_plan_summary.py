"""A plan on one screen: whatever the program, at most 25 lines of 80 columns, with what a board asks first."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import pytest
from tests.random_programs import random_program

from dualmandate import gallery
from dualmandate.errors import Refusal
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.report.plan_summary import LINES, WIDTH, plan_summary

AFTER = ("written: report/plan.json", "to open: report/dossier.html", "next:", "  dualmandate approve report/plan.json")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("program")
    gallery.write("title_i", folder)
    return load(folder / "program.toml").plan()


def screen(plan: Plan, after: tuple[str, ...] = AFTER) -> list[str]:
    lines = [line.text for line in plan_summary(plan, after)]
    assert len(lines) <= LINES, lines
    assert max(map(len, lines)) <= WIDTH, max(lines, key=len)
    return lines


def test_it_says_what_is_chosen_what_it_buys_who_pays_what_to_mind_and_what_to_type(plan: Plan) -> None:
    lines = screen(plan)
    words = " ".join(lines)
    assert "The choice is epsilon = 2.4442" in words
    assert "has no interval, because no number it rests on states an error" in words
    assert "it is between 2.439 and 5.2008. Read otherwise, it is between 0.0093119 and 10: see the readings." in words
    assert "A loss above all the money at stake, USD 14.4 billion," in words
    assert "0.4562 children" in words
    assert words.count("USD 54.11 billion") == 2, "the table and the sum say the same"
    assert "46,000,000 children bear USD 3,422 each" in words
    assert sum(line.startswith("! ") for line in lines) == 3
    assert lines[-len(AFTER) :] == [*AFTER]
    kinds = {line.kind for line in plan_summary(plan, AFTER)}
    assert kinds == {"plain", "heading", "choice", "warning"}


@pytest.mark.parametrize("count", [1, 3, 4, 40])
def test_of_many_tables_the_costliest_are_shown_and_the_rest_counted(plan: Plan, count: int) -> None:
    [table] = plan.tables
    many = [replace(table, table=f"table {n}", data_loss=1e6 * (n + 1)) for n in range(count)]
    lines = screen(replace(plan, tables=tuple(many)))
    shown = [line.split()[1] for line in lines if line.startswith("table ") and line.split()[1].isdigit()]
    assert shown == [str(n) for n in range(count - 1, count - 1 - len(shown), -1)]
    assert len(shown) >= min(count, 2)
    more = [line for line in lines if "more in the dossier" in line]
    assert bool(more) == (len(shown) < count)
    assert not more or more[0].startswith(f"… and {count - len(shown)} more")


def test_long_names_and_texts_fit(plan: Plan) -> None:
    [table] = plan.tables
    wide = replace(table, table="t" * 300, unit="unit of a very long name indeed per person and year")
    lines = screen(replace(plan, tables=(wide, replace(wide, table="u" * 300))))
    assert sum("…" in line for line in lines) >= 2


def test_a_study_is_the_first_warning(tmp_path: Path) -> None:
    gallery.write("title_i", tmp_path)
    path = tmp_path / "program.toml"
    path.write_text(path.read_text("utf-8").replace('noise = "best"', 'noise = "laplace"'), encoding="utf-8")
    told = [line.text for line in plan_summary(load(path).plan()) if line.kind == "warning"]
    assert told[0].startswith("! This plan is a study")


def test_random_programs_fit_one_screen(tmp_path: Path) -> None:
    path, planned = tmp_path / "program.toml", 0
    for seed in range(30):
        if planned == 10:
            break
        path.write_text(random_program(seed), encoding="utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                plan = load(path).plan()
            except Refusal:
                continue
            for after in ((), AFTER):
                screen(plan, after)
        planned += 1
    assert planned == 10
