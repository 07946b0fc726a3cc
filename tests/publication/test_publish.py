"""Publishing an order: once, at exactly its loss, and taken up again wherever it stopped."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import shutil
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.measured import direct, optimized
from tests.publication.reading_back import read_csv

from dualmandate.errors import (
    BudgetExceeded,
    CannotWrite,
    InvalidMechanism,
    InvalidRule,
    InvalidWorkload,
    NotApproved,
    ReleaseConflict,
    UnreadableSource,
)
from dualmandate.ledger import Account, Approval, Ledger, ReleaseState, durable, make_key, open_ledger
from dualmandate.mechanism import optimize_strategy
from dualmandate.mechanism.noise import LaplaceSampler, NoiseKey, subkey
from dualmandate.population import Attribute, Domain, Invariant, Neighbors, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.publication import AttributeRule, CsvFile, Rules, ValueRule, measuring
from dualmandate.publication import publish as publishing
from dualmandate.publication.publish import PublicationRequest, publish, resume
from dualmandate.publication.release_folder import is_complete
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.writing import Parquet, read_measurements, read_table
from dualmandate.workload import Tabulation, Workload

PLAN = "5e" * 32
LOSS = Fraction(3, 2)
PLAIN = Protection()
FIXED = Protection(neighbors=Neighbors.REPLACE_ONE, invariants=(Invariant("by sex", ("sex",)),))
DOMAIN = Domain((Attribute("age", ("young", "adult", "old")), Attribute("sex", ("f", "m"))))
RECORDS = [("young", "f")] * 40 + [("adult", "m")] * 55 + [("old", "f")] * 3 + [("adult", "f")] * 31
ASKED = PublicationRequest("Ann", "people.csv", unchecked=True)
TABLES = (Tabulation.of("ages", ("age",)), Tabulation.of("ages by sex", ("age", "sex")))


def release_spec_of(
    protection: Protection = PLAIN, *, kind: str = "strategy", privacy_measure: PrivacyMeasure = PrivacyMeasure.PURE_DP
) -> ReleaseSpec:
    workload = Workload.from_tabulations(DOMAIN, TABLES)
    if kind == "strategy":
        noise: Literal["laplace", "gaussian"] = "laplace" if privacy_measure is PrivacyMeasure.PURE_DP else "gaussian"
        made = optimized(optimize_strategy(workload, noise, protection=protection).exact, protection)
    else:
        made = direct(workload, protection, privacy_measure, every_cell=kind == "cells")
    never = AttributeRule(ValueRule.DROP, ValueRule.DROP)
    rules = Rules({"age": never, "sex": never}, dropping_is_public=protection is FIXED)
    return ReleaseSpec(
        PLAN,
        "people",
        "people",
        PrivacyLoss(LOSS, privacy_measure),
        DOMAIN,
        protection,
        rules,
        (Group("all", made, LOSS),),
        {table.name: "person" for table in TABLES},
        {"invariants": [each.name for each in protection.invariants]},
        {"program/program.toml": b"# public\n"},
    )


def replaced(order: ReleaseSpec, changes: dict[str, Any]) -> ReleaseSpec:
    return dataclasses.replace(order, **changes)


@pytest.fixture
def source(tmp_path: Path) -> CsvFile:
    path = tmp_path / "people.csv"
    path.write_text("age,sex\n" + "".join(f"{age},{sex}\n" for age, sex in RECORDS))
    return CsvFile(path)


@pytest.fixture
def books(tmp_path: Path) -> Callable[[ReleaseSpec], Ledger]:
    def opened(order: ReleaseSpec, cap: int = 4) -> Ledger:
        ledger = open_ledger(tmp_path / "state" / "ledger.sqlite", make_key(tmp_path / "state" / "key"), create=True)
        ledger.open_account(
            Account("people", "person", PrivacyLoss(Fraction(cap), order.loss.privacy_measure)), by="Ann"
        )
        ledger.approve(Approval("people", PLAN, order.charge, "person", by="Ben"))
        return ledger

    return opened


Books = Callable[[ReleaseSpec], Ledger]


def until_written(ledger: Ledger) -> Callable[..., object]:
    """The ledger's steps up to the last but one, and then the lights go out."""
    advance = ledger.advance

    def stopping(release: str, state: ReleaseState, *, by: str, digest: str | None = None) -> object:
        if state is ReleaseState.SETTLED:
            raise RuntimeError
        return advance(release, state, by=by, digest=digest)

    return stopping


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("protection", [PLAIN, FIXED])
@pytest.mark.parametrize("kind", ["strategy", "tables", "cells"])
@pytest.mark.parametrize("privacy_measure", list(PrivacyMeasure))
def test_a_release_holds_what_it_says_and_costs_its_loss(
    protection: Protection, kind: str, privacy_measure: PrivacyMeasure, source: CsvFile, books: Books, tmp_path: Path
) -> None:
    order = release_spec_of(protection, kind=kind, privacy_measure=privacy_measure)
    ledger = books(order)
    folder = publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    entry = ledger.release(folder.name)
    assert (entry.state, entry.secret_destroyed) == (ReleaseState.SETTLED, True)
    assert ledger.spent("people") == LOSS
    assert is_complete(folder, entry.written_digest)
    facts = json.loads((folder / "release.json").read_text())
    assert facts["ledger_head"]["sequence"] == entry.entry
    assert facts["loss"]["exact"] == "3/2"
    measured = read_measurements(folder / facts["groups"][0]["measurements"])
    assert len(measured.values) == order.groups[0].rows.size
    assert measured.noises == order.groups[0].noises
    whole = {}
    for table in facts["tables"]:
        read = read_table(folder / table["parquet"], estimates=folder / table["estimates"])
        assert read.values is not None
        assert np.array_equal(read_csv(folder / table["csv"]).numbers["value"], read.values)
        whole[table["name"]] = read
    by_sex, ages = whole["ages by sex"], whole["ages"]
    assert by_sex.values is not None
    assert ages.values is not None
    assert np.array_equal(by_sex.values.reshape(3, 2).sum(axis=1), ages.values)
    if protection is FIXED:
        assert by_sex.values.reshape(3, 2).sum(axis=0).tolist() == [74, 55]
        assert whole["by sex"].values is not None
        assert whole["by sex"].values.tolist() == [74, 55]
        assert [table["exact"] for table in facts["tables"]] == [False, False, True, True]
    assert {Parquet().read(path).facts["plan digest"] for path in folder.rglob("*.parquet")} == {PLAN}
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [folder.name]


def test_the_noise_is_that_of_the_law(source: CsvFile, books: Books, tmp_path: Path) -> None:
    order = release_spec_of(kind="tables")
    ledger = books(order)
    ledger.open_account(Account("many", "person", PrivacyLoss.pure(10**6)), by="Ann")
    draws = []
    truth = order.groups[0].rows.count(np.array([[40, 0], [31, 55], [3, 0]]))
    many = replaced(order, {"account": "many"})
    ledger.approve(Approval("many", PLAN, order.loss, "person", by="Ben"))
    for run in range(40):
        folder = publish(
            many, source, ledger, out=tmp_path / "out", request=PublicationRequest("Ann", f"run {run}", unchecked=True)
        )
        draws.append(read_measurements(folder / "measurements" / "all.parquet").values - truth)
    noise = np.stack(draws)
    expected = order.groups[0].noises[0].distribution().variance
    assert abs(noise.mean()) < 4 * np.sqrt(expected / noise.size)
    assert noise.var() == pytest.approx(expected, rel=0.35)
    assert len({tuple(row) for row in noise}) == len(noise)  # a secret of its own for each release


STEPS = ("tabulate", "fingerprint", "measure", "write_measurements", "write_release", "_put_in_place")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("after", [False, True])
def test_a_release_that_fails_at_any_step_becomes_what_it_would_have_been(
    step: str, after: bool, source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    whole, secrets = publishing.__dict__[step], []
    keep: Callable[..., str] = publishing.__dict__["fingerprint"]

    def broken(*given: object, **named: object) -> object:
        if after:
            done = whole(*given, **named)
            list(done) if step == "measure" else None
        raise RuntimeError("the lights went out")

    def seen(*given: object) -> str:
        mac = keep(*given)
        secrets.append(mac)
        return mac

    with monkeypatch.context() as patched:
        patched.setattr(publishing, step, broken)
        with pytest.raises(RuntimeError):
            publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [entry] = ledger.releases()
    assert entry.state.is_active
    assert ledger.spent("people") == LOSS
    with pytest.raises(ReleaseConflict, match="exists already"):
        publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "fingerprint", seen)
        folder = resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    finished = ledger.release(entry.name)
    # What is measured is not measured again; nor are the records looked at.
    assert secrets == ([] if (step, after) == ("write_release", False) else [finished.fingerprint])
    assert finished.state is ReleaseState.SETTLED
    assert ledger.spent("people") == LOSS
    assert is_complete(folder, finished.written_digest)
    assert resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann") == folder
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [folder.name]


def test_making_it_twice_gives_the_same_bytes(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "destroy_secret", lambda *_, **__: (_ for _ in ()).throw(RuntimeError))
        patched.setattr(publishing, "_put_in_place", lambda draft, final: draft.rename(final))
        with pytest.raises(RuntimeError):
            publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [entry] = ledger.releases()
    first = files_of(tmp_path / "out" / entry.name)
    assert entry.state is ReleaseState.SETTLED
    # The secret still exists: the same order under it, in a ledger that has not got so far, gives the same bytes.
    monkeypatch.setattr(type(entry.state), "is_active", property(lambda _: True))
    work = publishing._Work(order, source, ledger, tmp_path / "again", "Ann", lambda _: None)
    draft = tmp_path / "draft"
    draft.mkdir()
    monkeypatch.setattr(publishing, "_reach", lambda *_: None)
    assert publishing._make(work, entry, draft) == entry.written_digest
    assert files_of(draft) == first


def test_other_data_are_refused_and_the_loss_stays_spent(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "measure", lambda *_, **__: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [entry] = ledger.releases()
    Path(source.path).write_text(Path(source.path).read_text() + "old,m\n")
    with pytest.raises(ReleaseConflict, match="begun on other data") as refusal:
        resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    assert "spent" in refusal.value.instead
    assert ledger.spent("people") == LOSS
    again = publish(
        order,
        source,
        ledger,
        out=tmp_path / "out",
        request=PublicationRequest("Ann", "people.csv", again=True, unchecked=True),
    )
    assert ledger.release(again.name).state is ReleaseState.SETTLED
    assert ledger.release(entry.name).state is ReleaseState.ABANDONED
    assert ledger.spent("people") == 2 * LOSS
    with pytest.raises(ReleaseConflict, match="is abandoned"):
        resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")


def test_what_cannot_be_carried_out_is_refused_before_anything_is_spent(
    source: CsvFile, books: Books, tmp_path: Path
) -> None:
    order = release_spec_of()
    ledger = books(order)
    heads = ledger.head()
    bad: list[tuple[type[Exception], ReleaseSpec, CsvFile, Path]] = [
        (UnreadableSource, order, CsvFile(tmp_path / "gone.csv"), tmp_path / "out"),
        (InvalidRule, replaced(order, {"rules": Rules({"age": AttributeRule(ValueRule.REFUSE)})}), source, tmp_path),
        (
            InvalidMechanism,
            replaced(order, {"groups": (Group("all", order.groups[0].measurement, Fraction(2)),)}),
            source,
            tmp_path,
        ),
        (CannotWrite, order, source, Path(source.path) / "below a file"),
    ]
    for kind, asked, records, out in bad:
        with pytest.raises(kind):
            publish(asked, records, ledger, out=out, request=ASKED)
    assert ledger.head() == heads
    with pytest.raises(NotApproved):
        publish(replaced(order, {"plan_digest": "7f" * 32}), source, ledger, out=tmp_path, request=ASKED)
    assert ledger.spent("people") == 0


def test_a_cap_is_kept(source: CsvFile, books: Books, tmp_path: Path) -> None:
    order = release_spec_of()
    ledger = books(order)
    for run in range(2):
        publish(
            order, source, ledger, out=tmp_path / "out", request=PublicationRequest("Ann", f"run {run}", unchecked=True)
        )
    with pytest.raises(BudgetExceeded):
        publish(order, source, ledger, out=tmp_path / "out", request=PublicationRequest("Ann", "run 2", unchecked=True))
    assert ledger.spent("people") == 2 * LOSS


def test_a_release_belongs_to_its_plan_and_to_one_process(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    with monkeypatch.context() as patched:
        patched.setattr(publishing, "tabulate", lambda *_, **__: (_ for _ in ()).throw(RuntimeError))
        with pytest.raises(RuntimeError):
            publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [entry] = ledger.releases()
    other = replaced(order, {"plan_digest": "7f" * 32})
    with pytest.raises(ReleaseConflict, match="another plan"):
        resume(other, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    draft = tmp_path / "out" / f".{entry.name}.draft"
    draft.mkdir(exist_ok=True)
    handle = os.open(draft, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(ReleaseConflict, match="another process"):
        resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    os.close(handle)
    resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    with pytest.raises(ReleaseConflict, match="does not hold it"):
        resume(order, source, ledger, release=entry.name, out=tmp_path / "elsewhere", by="Ann")


def test_a_folder_that_was_harmed_after_it_was_written_is_made_again(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "advance", until_written(ledger))
        with pytest.raises(RuntimeError):
            publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [entry] = ledger.releases()
    folder = tmp_path / "out" / entry.name
    intact = files_of(folder)
    (folder / "tables" / "ages.csv").write_text("age,value\nyoung,1\n")
    resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    assert files_of(folder) == intact


def test_noise_is_never_drawn_twice_at_one_place_nor_before_the_release_is_bound(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = release_spec_of()
    half = LOSS / 2
    halves = Tabulation.of("halves", ("sex",), weights={"age": {"young": "0.5", "adult": "1"}})  # another kind of row
    asked = [[TABLES[0], halves], [TABLES[1]]]
    made = [direct(Workload.from_tabulations(DOMAIN, tables), PLAIN, PrivacyMeasure.PURE_DP) for tables in asked]
    groups = tuple(Group(name, each, half) for name, each in zip(("a", "a / kind 0"), made, strict=True))
    order = replaced(first, {"groups": groups, "units": {**first.units, "halves": "person"}})
    assert len(groups[0].noises) == 2
    ledger = books(order)
    seen: list[tuple[str, bytes]] = []
    drawn: list[tuple[bytes, range]] = []
    sampled, bound = LaplaceSampler.draw, ledger.bind

    def spied(self: LaplaceSampler, key: NoiseKey, cells: range, **named: Any) -> NDArray[np.int64]:
        assert ledger.release("people-1").fingerprint is not None
        drawn.append((key.content, cells))
        return sampled(self, key, cells, **named)

    def binding(release: str, fingerprint: str, *, by: str) -> Any:
        seen.append((fingerprint, b""))
        return bound(release, fingerprint, by=by)

    monkeypatch.setattr(LaplaceSampler, "draw", spied)
    monkeypatch.setattr(ledger, "bind", binding)
    keys: list[tuple[Any, dict[str, Any]]] = []

    def keyed(*given: Any, **named: Any) -> NoiseKey:
        keys.append((given[1:], named))
        return subkey(*given, **named)

    monkeypatch.setattr(measuring, "subkey", keyed)
    publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [(fingerprint, _)] = seen
    assert {named["histogram_mac"].hex() for _, named in keys} == {fingerprint}
    assert {digest for (digest,), _ in keys} == {PLAN}
    places = [(key, cell) for key, cells in drawn for cell in cells]
    assert len(set(places)) == len(places) == sum(each.rows.size for each in made)


def test_a_release_that_was_written_and_lost_is_not_written_otherwise(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    with monkeypatch.context() as patched:
        patched.setattr(ledger, "advance", until_written(ledger))
        with pytest.raises(RuntimeError):
            publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    [entry] = ledger.releases()
    harmed = tmp_path / "out" / entry.name / "tables" / "ages.csv"
    harmed.write_text("age,value\n")
    changed = replaced(order, {"files": {"program/program.toml": b"# another rounding\n"}})
    with pytest.raises(ReleaseConflict, match="would now be written differently"):
        resume(changed, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")
    with pytest.raises(ReleaseConflict, match="would now be written differently"):
        resume(changed, source, ledger, release=entry.name, out=tmp_path / "elsewhere", by="Ann")
    assert not (tmp_path / "elsewhere" / entry.name).exists()
    assert harmed.read_text() == "age,value\n"  # whoever can, mends it: nothing else of it was touched
    shutil.rmtree(tmp_path / "out" / entry.name)
    resume(order, source, ledger, release=entry.name, out=tmp_path / "out", by="Ann")


@pytest.mark.parametrize("step", ["fingerprint", "exact_totals", "write_release"])
def test_a_release_that_is_given_up_while_it_is_made_is_not_put_in_place(
    step: str, source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    whole = publishing.__dict__[step]

    def overtaken(*given: Any, **named: Any) -> Any:
        with monkeypatch.context() as patched:
            patched.setattr(publishing, step, whole)
            publish(
                order,
                source,
                ledger,
                out=tmp_path / "other",
                request=PublicationRequest("Ben", "people.csv", again=True, unchecked=True),
            )
        return whole(*given, **named)

    monkeypatch.setattr(publishing, step, overtaken)
    with pytest.raises(ReleaseConflict, match="is abandoned"):
        publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    assert [path.name for path in (tmp_path / "out").iterdir()] in ([], [".people-1.draft"])
    assert ledger.spent("people") == 2 * LOSS


@pytest.mark.parametrize("name", ["by sex", "number of records"])
def test_a_table_cannot_take_the_name_of_an_exact_one(name: str, source: CsvFile, books: Books, tmp_path: Path) -> None:
    workload = Workload.from_tabulations(DOMAIN, [Tabulation.of(name, ("age",))])
    made = direct(workload, FIXED, PrivacyMeasure.PURE_DP)
    order = ReleaseSpec(
        **{
            **vars(release_spec_of(FIXED, kind="tables")),
            "groups": (Group("all", made, LOSS),),
            "units": {name: "person"},
        }
    )
    ledger = books(order)
    with pytest.raises(InvalidWorkload, match=name):
        publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    twins = ReleaseSpec(
        **{
            **vars(release_spec_of()),
            "groups": tuple(Group("all", release_spec_of().groups[0].measurement, LOSS / 2) for _ in "ab"),
        }
    )
    with pytest.raises(InvalidWorkload, match="ages"):
        publish(twins, source, ledger, out=tmp_path / "out", request=ASKED)
    assert ledger.spent("people") == 0


def test_units_that_are_bounded_and_exact_totals_do_not_go_together(
    source: CsvFile, books: Books, tmp_path: Path
) -> None:
    several = Protection(
        neighbors=Neighbors.REPLACE_ONE, invariants=FIXED.invariants, most_records_per_unit=2, identifier="id"
    )
    order = release_spec_of(several, kind="tables")
    ledger = books(order)
    with pytest.raises(InvalidRule, match="published exactly"):
        publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    assert ledger.spent("people") == 0


def test_crossing_totals_are_charged_for_all_records_that_change_together(
    source: CsvFile, books: Books, tmp_path: Path
) -> None:
    crossing = Protection(
        neighbors=Neighbors.REPLACE_ONE,
        invariants=(Invariant("by sex", ("sex",)), Invariant("by age", ("age",))),
        records_changing_together=2,
    )
    order = replaced(release_spec_of(crossing, kind="cells"), {"rules": Rules(dropping_is_public=True)})
    assert (order.loss.amount, order.charge.amount) == (LOSS, 2 * LOSS)
    ledger = books(order)
    folder = publish(order, source, ledger, out=tmp_path / "out", request=ASKED)
    assert ledger.spent("people") == 2 * LOSS
    read = read_table(folder / "tables" / "by-age.parquet", estimates=folder / "tables" / "by-age.parquet")
    assert (read.columns, read.labels) == (("age",), (("young", "adult", "old"),))


def test_whoever_writes_a_release_second_and_otherwise_takes_it_away_again(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    ledger = books(order)
    other = replaced(order, {"files": {"program/program.toml": b"# another rounding\n"}})
    put = publishing.__dict__["_put_in_place"]

    def overtaken(draft: Path, final: Path) -> None:
        with monkeypatch.context() as patched:
            patched.setattr(publishing, "_put_in_place", put)
            resume(order, source, ledger, release=final.name, out=tmp_path / "first", by="Ben")
        put(draft, final)

    monkeypatch.setattr(publishing, "_put_in_place", overtaken)
    with pytest.raises(ReleaseConflict, match="would now be written differently"):
        publish(other, source, ledger, out=tmp_path / "second", request=ASKED)
    assert list((tmp_path / "second").iterdir()) == []
    [entry] = ledger.releases()
    assert is_complete(tmp_path / "first" / entry.name, entry.written_digest)
    assert ledger.spent("people") == LOSS


def test_every_new_folder_above_a_release_is_on_the_disk(
    source: CsvFile, books: Books, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = release_spec_of()
    synced: list[Path] = []
    whole = durable.sync_folder

    def seen(path: Path) -> None:
        synced.append(path)
        whole(path)

    monkeypatch.setattr(durable, "sync_folder", seen)
    publish(order, source, books(order), out=tmp_path / "new" / "deep" / "er", request=ASKED)
    assert {tmp_path, tmp_path / "new", tmp_path / "new" / "deep"} <= set(synced)


def test_no_count_is_too_large_to_go_on() -> None:
    made = direct(Workload.from_tabulations(DOMAIN, TABLES), PLAIN, PrivacyMeasure.PURE_DP)
    counts = np.full(DOMAIN.shape, 2**62, dtype=np.int64)
    assert made.rows.count(counts)[:3].tolist() == [-(2**63)] * 3  # modulo 2⁶⁴
