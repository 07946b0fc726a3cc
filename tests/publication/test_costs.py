"""What publishing takes is said beforehand; what cannot be carried out is refused before it is approved or spent."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import dualmandate
from dualmandate import load
from dualmandate.errors import TooLarge
from dualmandate.ledger import Account, Approval, Ledger, make_key, open_ledger
from dualmandate.planning import technology
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import check_saved, release_spec_of_plan
from dualmandate.population import PrivacyLoss, machine
from dualmandate.publication import costs
from dualmandate.publication.measuring import published
from dualmandate.workload import Table

FOOTER = 1600  # bytes of a Parquet file that are not numbers

PROGRAM = """\
[program]
schema = 1
name = "towns"

[population]
account = "people"
unit = "person"
neighbors = "NEIGHBORS"
dropping_is_public = true
population_size = { value = 2_000, unit = "person", source = "made up" }
source = "data.csv"

[population.attributes]
ATTRIBUTES

TABLES
[mechanism]
noise = "gaussian"
MECHANISM

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per rho", source = "made up" }
"""


def written(
    folder: Path,
    *,
    sizes: tuple[int, ...] = (3, 2, 4),
    tables: tuple[tuple[int, ...], ...] = ((0, 1), (1, 2), (0, 2)),
    neighbors: str = "add-or-remove",
    mechanism: str = "",
    every: bool = False,
) -> Path:
    names = [f"a{number}" for number in range(len(sizes))]
    attributes = "\n".join(
        f"{name} = {json.dumps([str(level) for level in range(size)])}" for name, size in zip(names, sizes, strict=True)
    )
    asked = [f"by = {json.dumps([names[place] for place in each])}" for each in tables] if not every else ["every = 2"]
    worth = '{ value = 1, unit = "USD per person^2", source = "made up" }'
    text = PROGRAM.replace("NEIGHBORS", neighbors).replace("ATTRIBUTES", attributes).replace("MECHANISM", mechanism)
    text = text.replace(
        "TABLES",
        "".join(f'[[workload]]\nname = "t{n}"\n{by}\nvalue_of_accuracy = {worth}\n\n' for n, by in enumerate(asked)),
    )
    (folder / "program.toml").write_text(text, encoding="utf-8")
    (folder / "data.csv").write_text(
        "\n".join([",".join(names), *[",".join("0" for _ in names)] * 9]), encoding="utf-8"
    )
    return folder / "program.toml"


def ledger_of(folder: Path, plan: Plan) -> Ledger:
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    ledger.open_account(Account("people", "person", PrivacyLoss.concentrated(10**9)), by="Ann")
    ledger.approve(Approval("people", plan.digest, plan.charge, "person", by="Ben"))
    return ledger


def test_what_no_machine_has_the_memory_for_is_refused_by_plan_and_by_publish_before_it_spends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = load(written(tmp_path)).plan()
    ledger, source = ledger_of(tmp_path, plan), plan.program.source
    assert source is not None
    assert plan.publishing is not None
    monkeypatch.setattr(costs, "machine_memory", lambda: int(plan.publishing.memory / 2))
    with pytest.raises(TooLarge, match="publishing takes some 430 MB of memory") as refused:
        load(tmp_path / "program.toml").plan()
    assert "on a cluster" in refused.value.instead
    assert "fewer or smaller tables" in refused.value.instead
    with pytest.raises(TooLarge, match="of memory"):
        dualmandate.publish(plan, source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    assert ledger.spent("people") == Fraction(0)
    assert ledger.releases("people") == ()
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: type("usage", (), {"free": 10_000})())
    with pytest.raises(TooLarge, match="of disk") as refused:
        dualmandate.publish(plan, source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    assert "--out" in refused.value.instead
    assert ledger.spent("people") == Fraction(0)
    monkeypatch.undo()
    dualmandate.publish(plan, source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    assert ledger.spent("people") > 0


def test_a_plan_that_can_be_carried_out_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables: tuple[tuple[int, ...], ...] = ((0, 1, 2), (0, 1), (1, 2), (0,), (1,), (2,), ())
    program = written(tmp_path, sizes=(6, 5, 4), tables=tables, mechanism='measured = "together"')
    assert load(program).plan().technology.strategy == "optimized"
    monkeypatch.setattr(costs, "RECONSTRUCTED_CELL", 1e12)
    plan = load(program).plan()
    assert plan.technology.strategy == "workload"
    assert any("of memory" in row.why for row in plan.comparisons if row.choice is None and row.why is not None)


def test_a_strategy_that_no_release_could_have_is_refused_before_it_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(technology, "optimize_strategy", never)
    monkeypatch.setattr("dualmandate.workload.workload.sensitivity_of", never)
    sizes = (10,) * 30
    program = written(tmp_path, sizes=sizes, neighbors="replace-one", mechanism='strategy = "optimized"', every=True)
    with pytest.raises(TooLarge, match="a strategy over the 1e\\+30 cells of a domain") as refused:
        load(program).plan()
    assert 'strategy = "workload"' in refused.value.instead


def test_a_plan_that_would_not_be_read_back_is_not_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    check_saved({"plan.json": "{}", "strategies/all.json": b"{}"})
    monkeypatch.setattr("dualmandate.planning.release_spec.LARGEST_STRATEGY", 1)
    with pytest.raises(TooLarge, match=r"'strategies/all\.json' would have"):
        check_saved({"plan.json": "{}", "strategies/all.json": b"{}"})


def test_more_is_asked_for_and_more_is_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds, memory and disk grow with cells, numbers and rows; the order and the plan say the same."""
    monkeypatch.setattr("dualmandate.publication.post_processing.MOST_SIMULATED", 0)
    found = []
    for sizes in ((3, 2, 4), (30, 20, 40), (60, 50, 40)):
        plan = load(written(tmp_path, sizes=sizes, mechanism='strategy = "workload"')).plan()
        cost, order = plan.publishing, costs.publication_cost(release_spec_of_plan(plan))
        assert cost is not None
        assert (cost.memory, cost.disk) == (order.memory, order.disk)
        found.append(cost)
    for less, more in pairwise(found):
        assert less.seconds < more.seconds
        assert less.memory < more.memory
        assert less.disk < more.disk


def test_memory_is_what_a_container_may_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "GROUPS", tmp_path)
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    free = machine.machine_memory()
    (tmp_path / "memory.max").write_text("123456789\n", encoding="ascii")
    assert machine.machine_memory() == 123_456_789 < free
    assert machine.size_words(123_456_789) == "123 MB"
    assert machine.size_words(1.5e9) == "1.5 GB"


def test_a_file_of_records_that_is_not_fitted_takes_no_memory(tmp_path: Path) -> None:
    """Marginals about more people than records are fitted to are published all the same."""
    plan = load(written(tmp_path, sizes=(10,) * 22, tables=((0, 1), (1, 2)), mechanism='strategy = "optimized"')).plan()
    measured, protection = plan.technology.measurements.values(), plan.program.protection

    def needed(records: float) -> float:
        return costs.memory_needed(plan.program.domain, measured, protection, records)

    assert needed(1e7) - needed(0) == pytest.approx(costs.MOST_READ, rel=1e-3)
    assert needed(1e9) == needed(1e7)


def test_synthetic_records_take_room(tmp_path: Path) -> None:
    """2,000 records of three levels, as text and in Parquet."""
    path = written(tmp_path)
    plain = load(path).plan().publishing
    text = path.read_text(encoding="utf-8")
    path.write_text(
        text.replace("[preferences]", "[publication]\nsynthetic_records = true\n\n[preferences]"), encoding="utf-8"
    )
    asked = load(path).plan().publishing
    assert plain is not None
    assert asked is not None
    assert 2_000 * 3 < asked.disk - plain.disk < 2_000 * 3 * 40


@pytest.mark.parametrize(("worth", "least"), [("2e3", 8000), ("1e-9", 0)])
def test_noise_that_is_nearly_always_0_takes_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, worth: str, least: int
) -> None:
    """27,000 cells, most of them empty: what noisy counts take on the disk follows from how broad noise is."""
    monkeypatch.setattr("dualmandate.publication.post_processing.MOST_SIMULATED", 0)
    monkeypatch.setattr("dualmandate.publication.post_processing.MOST_FITTED", 0)
    path = written(tmp_path, sizes=(30, 30, 30), tables=((0,), (1,)), mechanism='strategy = "identity"')
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("value = 2, unit", f"value = {worth}, unit"), encoding="utf-8")
    plan = load(path).plan()
    order, source, ledger = release_spec_of_plan(plan), plan.program.source, ledger_of(tmp_path, plan)
    assert source is not None
    [group] = order.groups
    said = group.rows.size * costs._row_on_disk(group, 9)
    release = dualmandate.publish(plan, source, ledger, out=tmp_path / "out", by="Eve", unchecked=True)
    [file] = (release.folder / "measurements").iterdir()
    assert file.stat().st_size - FOOTER < 2 * said
    assert least < said < 2 * file.stat().st_size


def test_labels_are_worked_out_once_however_often_a_table_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A release makes its tables again in every simulation; labels of a grid of numbers took half of publishing."""
    order = release_spec_of_plan(load(written(tmp_path)).plan())
    table, asked, labels = order.tables[0], list[int](), Table.axis_labels

    def counted(self: Table, axis: int, levels: Sequence[str]) -> tuple[str, ...]:
        asked.append(axis)
        return labels(self, axis, levels)

    monkeypatch.setattr(Table, "axis_labels", counted)
    numbers = np.zeros(table.query_count)
    made = [published(order, table, numbers, numbers) for _ in range(3)]
    assert asked == [0, 1]
    assert {each.labels for each in made} == {(("0", "1", "2"), ("0", "1"))}
