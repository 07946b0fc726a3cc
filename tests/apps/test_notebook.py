"""The package at a notebook: what everything says of itself, the whole road in Python, and what is refused on it."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import Parameter, getattr_static, signature
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import dualmandate as dm
from dualmandate import gallery
from dualmandate.errors import InvalidValue, NotApproved, Refusal, ReleaseConflict, UnknownKey, UnknownName
from dualmandate.publication import CsvFile, Frame, tabulate

CANARY = "Zyx-Canary-4711"
VARYING = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
WARDS = ["north", "east", "south", "west"]
PROGRAM: dict[str, Any] = {
    "program": {"schema": 1, "name": "town"},
    "population": {
        "account": "residents",
        "unit": "person",
        "neighbors": "add-or-remove",
        "population_size": {"value": 3000, "unit": "person", "source": "made up"},
        "attributes": {"ward": WARDS, "age": {"edges": [0, 18, 40, 65, 120]}},
    },
    "workload": [
        {
            "name": "ages by ward",
            "by": ["ward", "age"],
            "value_of_accuracy": {"value": 0.4, "unit": "USD per person^2", "source": "made up"},
        }
    ],
    "mechanism": {"noise": "geometric", "strategy": "workload"},
    "preferences": {
        "information_utility": "linear",
        "mean_disclosure_cost": {"value": 0.1, "unit": "USD per person per epsilon", "source": "made up"},
    },
}


def records() -> pandas.DataFrame:
    """Invented people; one ward is a word that no report may hold."""
    people = random.Random(7)
    wards = [*(people.choice(WARDS) for _ in range(2_000)), CANARY]
    return pandas.DataFrame({"ward": wards, "age": [people.choice([3, 20, 50, 70, None]) for _ in wards]})


@dataclass(frozen=True)
class Road:
    """What is met on the way from a program to a release."""

    folder: Path
    plan: dm.Plan
    ledger: dm.Ledger
    release: dm.Release


@pytest.fixture(scope="module")
def road(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Road]:
    folder = tmp_path_factory.mktemp("road")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        plan = dm.load(PROGRAM).plan()
        ledger = dm.open_ledger("state/ledger.sqlite", create=True)
        ledger.open_account(dm.Account("residents", "person", dm.PrivacyLoss.pure(50)), by="Ann")
        assert plan.approve("state/ledger.sqlite", by="Ben").approval.by == "Ben"
        assert "north" not in repr(dm.check(plan, records(), ledger, by="Cleo"))
        yield Road(folder, plan, ledger, dm.publish(plan, records(), ledger, by="Eve", out=folder / "releases"))


def reachable(*roots: object) -> dict[type, list[object]]:
    """Values of public classes of the house that can be reached through fields and properties."""
    seen, found, waiting, kept = set[int](), dict[type, list[object]](), list(roots), list[object]()
    while waiting:
        value = waiting.pop()
        if id(value) in seen or value is None or isinstance(value, str | bytes | int | float):
            continue
        seen.add(id(value))
        kept.append(value)  # so that no two get one id
        if isinstance(value, dict):
            waiting += list(value.values())[:20]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += list(value)[:20]
        elif type(value).__module__.startswith("dualmandate"):
            found.setdefault(type(value), []).append(value)
            names = [each.name for each in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
            offered = [name for name in dir(type(value)) if name[0] != "_"]
            names += [n for n in offered if isinstance(getattr(type(value), n), property | cached_property)]
            for name in names:
                try:
                    waiting.append(getattr(value, name))
                except (Refusal, AttributeError, NotImplementedError):
                    continue
    return found


def test_everything_says_what_it_is_on_one_line(road: Road) -> None:
    release, workload = road.release, dm.prefix(12)
    others = [
        release["ages by ward"],
        release.interval("ages by ward", ward="north"),
        road.plan.figure("tangency"),
        dm.optimize_strategy(workload),
        workload,
        Frame.of(records(), "people"),
        road.ledger.accounts(),
        road.ledger.releases(),
        road.ledger.events("residents"),
    ]
    found = reachable(road.plan, road.plan.figure("regret"), release, road.ledger, *others)
    assert {dm.Plan, dm.Program, dm.Choice, dm.Frontier, dm.Release, dm.Interval, dm.Ledger, dm.Figure} <= set(found)
    assert {dm.Domain, dm.Workload, dm.Strategy, dm.Account, dm.Attribute, dm.SocialWelfare} <= set(found)
    assert len(found) > 60
    long = {kind.__name__: repr(value) for kind, values in found.items() for value in values if too_long(repr(value))}
    assert sorted(long) == []
    assert not [repr(value) for values in found.values() for value in values if CANARY in repr(value)]


def too_long(line: str) -> bool:
    return len(line) > 210 or "\n" in line


def test_what_is_too_long_is_seen() -> None:
    assert too_long("x" * 211)
    assert too_long("a\nb")
    assert not too_long(repr(dm.identity(100_000)))


def test_a_notebook_is_shown_what_a_person_wants(road: Road) -> None:
    plan, interval = road.plan, road.release.interval("ages by ward", ward="north", age=20)
    shown: dict[str, tuple[Any, list[str]]] = {
        "plan": (plan, [plan.choice.explain().splitlines()[0], "<svg", "ages by ward", plan.digest]),
        "choice": (plan.choice, ["ages by ward", "people"]),
        "frontier": (plan.frontier, ["ages by ward", "0.25"]),
        "release": (road.release, ["ages by ward", "ward, age", "16"]),
        "table": (road.release["ages by ward"], ["18 to under 40", "standard_error", "In people."]),
        "interval": (interval, ["standard error", "exactly"]),
        "ledger": (road.ledger, ["residents", "epsilon 50"]),
        "figure": (plan.figure("regret"), ["<svg", "--dm-paper"]),
    }
    for name, (thing, words) in shown.items():
        page = thing._repr_html_()
        assert all(word.replace("'", "&#x27;") in page or word in page for word in words), (name, words)
        assert "<script" not in page
        assert "src=" not in page
        assert CANARY not in page


def test_html_is_escaped() -> None:
    from dualmandate.population.shown import page_of, sentences, table

    page = page_of("<b>", sentences(["<i> & more"]), table(["<u>"], [["<s>"]]))
    assert not [each for each in ("<b>", "<i>", "<u>", "<s>") if each in page]
    assert "&lt;i&gt; &amp; more" in page


def test_figures_by_their_names(road: Road) -> None:
    assert {"tangency", "regret", "consequences"} <= set(road.plan.figures)
    assert road.plan.figure("tangency").table == road.plan._figures["tangency"].table
    with pytest.raises(UnknownName, match="tangency, rates"):
        road.plan.figure("tangencie")


@pytest.mark.parametrize("make", [
    lambda frame: frame,
    lambda frame: frame.astype(object),
    lambda frame: frame.astype({"ward": "category", "age": "Int64"}),
    polars.from_pandas,
    lambda frame: polars.from_pandas(frame).with_columns(polars.col("ward").cast(polars.Categorical)),
    lambda frame: pyarrow.Table.from_pandas(frame).append_column("other", [list(range(len(frame)))]),
    lambda frame: __import__("duckdb").from_arrow(pyarrow.Table.from_pandas(frame)),
], ids=["pandas", "objects", "categories", "polars", "polars categories", "arrow", "duckdb"])  # fmt: skip
def test_a_frame_counts_as_a_file_does(make: Callable[[pandas.DataFrame], object], road: Road, tmp_path: Path) -> None:
    records().to_csv(tmp_path / "people.csv", index=False)
    program = road.plan.program

    def counts(source: Any) -> Any:
        rest: dict[str, Any] = {"protection": program.protection, "rules": program.rules, "key": bytes(32)}
        return tabulate(source, program.domain, **rest).open_for("a test").histogram.counts

    found, expected = counts(Frame.of(make(records()), "people")), counts(CsvFile(tmp_path / "people.csv"))
    assert 0 < found.sum() < 2_000  # missing ages, and a ward that is none, are left out
    assert np.array_equal(found, expected)


def test_a_frame_is_boxed_at_once() -> None:
    assert CANARY not in repr(Frame.of(records(), "people"))
    with pytest.raises(Refusal) as refused:
        Frame.of([CANARY], "people")
    assert CANARY not in str(refused.value)


def test_a_plan_is_published_once_on_a_state_of_the_data(road: Road) -> None:
    assert road.release.facts["plan_digest"] == road.plan.digest
    with pytest.raises(ReleaseConflict):
        dm.publish(road.plan, records(), road.ledger, by="Eve", out=road.folder / "releases")
    with pytest.raises(NotApproved):
        dm.publish(dm.load(PROGRAM | {"program": {"schema": 1, "name": "other"}}).plan(), records(), road.ledger)


def test_a_release_carries_a_program_that_was_a_dictionary(road: Road) -> None:
    again = dm.load_release(road.folder / road.release.folder)
    assert again.interval("ages by ward") == road.release.interval("ages by ward")
    assert dm.load(road.folder / road.release.folder / "program").name == "town"


def test_intervals_as_people_ask_for_them(road: Road) -> None:
    table, ask = road.release["ages by ward"], road.release.interval
    frame = table.to_pandas()
    assert frame.equals(table.to_polars().to_pandas().astype(frame.dtypes.to_dict()))
    typed: Any
    for typed in (20, "20", 20.5, np.int64(20), "[18, 40)"):
        assert ask("ages by ward", ward="north", age=typed).estimate == frame["estimate"][1]
    together = table.interval(ward=["north", "east"], age=[20, 50])
    assert together.estimate == sum(frame["estimate"][[1, 2, 5, 6]])
    one, four = ask("ages by ward", ward="north", age=20), together
    assert one.standard_error is not None
    assert one.standard_error == pytest.approx(frame["standard_error"][1])
    assert four.standard_error == pytest.approx(2 * one.standard_error)  # independent noise
    assert " people, standard error " in str(one)
    with pytest.raises(UnknownName, match="did you mean 'north'"):
        ask("ages by ward", ward="North")


def test_numbers_have_the_digits_that_their_error_supports() -> None:
    found = dm.Interval(37_549_800.0, 37_361_700.0, 37_737_900.0, 0.95, 0.9512, True, "x")
    wide = dataclasses.replace(found, standard_error=95_971.16, unit="USD")
    assert str(wide).startswith("USD 37,550,000, standard error 96,000: 37,361,000 to 37,738,000 with probability")
    persons = dataclasses.replace(found, estimate=134.0, lower=130.0, upper=138.0, standard_error=2.11, unit="person")
    assert str(persons).startswith("134 people, standard error 2.1: 130 to 138 with probability exactly")


def test_labels_are_what_people_type() -> None:
    from dualmandate.publication.levels import levels_meant

    labels = {"R1": ["Region North", "Nord"], "R2": ["Region South", "Region North"]}  # in two languages, oddly
    assert levels_meant("region", ["R1", "R2"], ["Region South", "R1"], labels=labels) == [1, 0]
    assert levels_meant("region", ["R1", "R2"], "Nord", labels=labels) == [0]
    assert levels_meant("region", ["R1", "R2"], "Region North", labels=labels) == [0]  # the program's own comes first
    assert levels_meant("code", ["01", "02"], 2) == [1]
    with pytest.raises(UnknownName, match="did you mean 'Region South'"):
        levels_meant("region", ["R1", "R2"], "region south", labels=labels)


def test_a_dictionary_says_what_a_file_says(tmp_path: Path) -> None:
    from dualmandate.program.dictionary import toml

    (tmp_path / "only.toml").write_text(toml(PROGRAM), encoding="utf-8")
    named, given = dm.load(tmp_path / "only.toml"), dm.load(PROGRAM)
    assert named.document.content == given.document.content
    assert given.document.text == toml(PROGRAM).encode()


WRONG: list[tuple[str, Callable[[Road], object]]] = [
    ("nothing to load", lambda _: dm.load(None)),  # type: ignore[arg-type]
    ("a number to load", lambda _: dm.load(5)),  # type: ignore[arg-type]
    ("bytes to load", lambda _: dm.load(b"program.toml")),  # type: ignore[arg-type]
    ("a list to load", lambda _: dm.load([PROGRAM])),  # type: ignore[arg-type]
    ("no file", lambda _: dm.load("nowhere.toml")),
    ("an empty name", lambda _: dm.load("")),
    ("an empty folder", lambda road: dm.load(road.folder / "state")),
    ("an empty dictionary", lambda _: dm.load({})),
    ("a key nobody reads", lambda _: dm.load(PROGRAM | {"workloads": []})),
    ("a section that is none", lambda _: dm.load(PROGRAM | {"population": 5})),
    ("nothing at a key", lambda _: dm.load(PROGRAM | {"program": {"schema": 1, "name": None}})),
    ("a set at a key", lambda _: dm.load(PROGRAM | {"program": {"schema": 1, "name": {"a"}}})),
    ("a key that is a number", lambda _: dm.load({1: 2})),  # type: ignore[dict-item]
    ("words for what is left", lambda road: dm.load(PROGRAM).plan("much")),  # type: ignore[arg-type]
    ("a ledger and what is left", lambda road: dm.load(PROGRAM).plan(1.0, ledger=road.ledger)),
    ("no such ledger", lambda road: dm.load(PROGRAM).plan(ledger="nowhere.sqlite")),
    ("a ledger of a number", lambda road: dm.load(PROGRAM).plan(ledger=5)),  # type: ignore[arg-type]
    ("no figure of this name", lambda road: road.plan.figure("banana")),
    ("a figure of a number", lambda road: road.plan.figure(5)),  # type: ignore[arg-type]
    ("a folder of a number", lambda road: road.plan.save(5)),  # type: ignore[arg-type]
    ("no folder", lambda road: road.plan.save(None)),  # type: ignore[arg-type]
    ("a folder that is a file", lambda road: road.plan.save(road.folder / "state" / "ledger.sqlite")),
    ("approved by nobody", lambda road: road.plan.approve(road.ledger, by="")),
    ("approved by a number", lambda road: road.plan.approve(road.ledger, by=5)),  # type: ignore[arg-type]
    ("approved in a dictionary", lambda road: road.plan.approve({}, by="Ben")),  # type: ignore[arg-type]
    ("approved twice", lambda road: road.plan.approve(road.ledger, by="Ben")),
    ("a plan in words", lambda road: dm.publish("town", records(), road.ledger)),  # type: ignore[arg-type]
    ("no plan", lambda road: dm.publish(None, records(), road.ledger)),  # type: ignore[arg-type]
    ("no records", lambda road: dm.publish(road.plan, None, road.ledger)),
    ("a list of records", lambda road: dm.publish(road.plan, [1, 2], road.ledger)),
    ("a series of records", lambda road: dm.publish(road.plan, records()["age"], road.ledger)),
    ("a lazy frame", lambda road: dm.publish(road.plan, polars.LazyFrame({"ward": []}), road.ledger)),
    ("a frame without a column", lambda road: dm.publish(road.plan, records()[["age"]], road.ledger, snapshot="b")),
    ("no such file of records", lambda road: dm.publish(road.plan, "nowhere.csv", road.ledger)),
    ("a URL of records", lambda road: dm.publish(road.plan, "postgresql://me@here/db", road.ledger)),
    ("a name for a file", lambda road: dm.publish(road.plan, "a.csv", road.ledger, snapshot="a")),
    ("a number for a name", lambda road: dm.publish(road.plan, records(), road.ledger, snapshot=5)),  # type: ignore[arg-type]
    ("no ledger", lambda road: dm.publish(road.plan, records(), "nowhere.sqlite")),
    ("no release there", lambda road: dm.load_release(road.folder)),
    ("a release of a number", lambda _: dm.load_release(5)),  # type: ignore[arg-type]
    ("no such table", lambda road: road.release["age by ward"]),
    ("a table of a number", lambda road: road.release[5]),  # type: ignore[index]
    ("no such column", lambda road: road.release.interval("ages by ward", sex="f")),
    ("an age of nobody", lambda road: road.release.interval("ages by ward", age=500)),
    ("nothing for an age", lambda road: road.release.interval("ages by ward", age=None)),  # type: ignore[arg-type]
    ("one age twice", lambda road: road.release.interval("ages by ward", age=[20, 21])),
    ("levels in words", lambda road: road.release.interval("ages by ward", "north")),  # type: ignore[arg-type]
    ("a sure interval", lambda road: road.release.interval("ages by ward", probability=1)),
    ("words for a probability", lambda road: road.release.interval("ages by ward", probability="often")),
    ("an interval of nothing", lambda road: road.release.interval()),  # type: ignore[call-arg]
    ("no such ratio", lambda road: road.release.joint("mean")),
    ("a file for a release", lambda road: dm.load_release(road.folder / "state" / "ledger.sqlite")),
    ("nothing at all to load", lambda _: dm.load()),  # type: ignore[call-arg]
    ("another word for the file", lambda _: dm.load(path="program.toml")),  # type: ignore[call-arg]
    ("no name of a figure", lambda road: road.plan.figure()),  # type: ignore[call-arg]
    ("approved in order", lambda road: road.plan.approve(road.ledger, "Ben")),  # type: ignore[call-arg]
    ("a list to take up", lambda road: dm.publish(road.plan, records(), road.ledger, resume=[1])),  # type: ignore[arg-type]
    ("a word for a truth", lambda road: dm.publish(road.plan, records(), road.ledger, unchecked="yes")),  # type: ignore[arg-type]
    ("an account in words", lambda road: road.ledger.open_account("people", by="Ann")),  # type: ignore[arg-type]
    ("opened by nobody", lambda road: road.ledger.open_account(road.ledger.accounts()[0])),  # type: ignore[call-arg]
    ("a cap that is a number", lambda _: dm.Account("people", "person", 5)),  # type: ignore[arg-type]
    ("a list of losses", lambda _: dm.PrivacyLoss.pure([1])),  # type: ignore[arg-type]
    ("a survey of a number", lambda _: dm.load_survey(3)),  # type: ignore[arg-type]
    ("noise of a number", lambda _: dm.mechanism_named(3)),  # type: ignore[arg-type]
    ("a name for a technology", lambda _: dm.frontier_of("geometric", dm.identity(3))),  # type: ignore[arg-type]
    ("numbers for workloads", lambda _: dm.kron(1, 2)),  # type: ignore[arg-type]
    ("a number to optimize for", lambda _: dm.optimize_strategy(3)),  # type: ignore[arg-type]
    ("a number for a frontier", lambda _: dm.choose(1, 2)),  # type: ignore[arg-type]
    ("words for attributes", lambda _: dm.Domain(("a", "b"))),  # type: ignore[arg-type]
    ("a number for levels", lambda _: dm.Attribute("a", 3)),  # type: ignore[arg-type]
    ("a number for a shape", lambda _: dm.marginals(3, 1)),  # type: ignore[arg-type]
    ("words for a cost", lambda _: dm.LinearCost("much")),  # type: ignore[arg-type]
    ("no probability", lambda road: road.release.interval("ages by ward", probability=None)),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("wrong", [call for _, call in WRONG], ids=[name for name, _ in WRONG])
def test_wrong_arguments_are_refused(wrong: Callable[[Road], object], road: Road) -> None:
    before = road.ledger.remaining("residents")
    with pytest.raises(Refusal) as refused:
        wrong(road)
    assert refused.value.why
    assert refused.value.instead
    assert CANARY not in str(refused.value)
    assert road.ledger.remaining("residents") == before


def test_what_is_missing_or_misspelled_is_named(road: Road) -> None:
    with pytest.raises(Refusal, match="did you mean 'ledger'"):
        dm.load(PROGRAM).plan(legder=road.ledger)  # type: ignore[call-arg]
    with pytest.raises(Refusal, match="missing a required argument: 'ledger'"):
        dm.publish(road.plan, records())  # type: ignore[call-arg]
    with pytest.raises(Refusal) as refused:
        dm.load_release(road.folder / "releases")
    assert str(road.folder / "releases" / "residents-1") in refused.value.instead
    assert dm.load_release(road.folder / road.release.folder / "release.json").tables == road.release.tables


def test_what_is_given_back_says_what_it_is_on_one_line(road: Road) -> None:
    notice = road.plan.approve(road.ledger, by="Zoe")
    found = dm.check(road.plan, records(), road.ledger, by="Cleo")
    for each in (notice, found, road.release.privacy("1e-9"), road.plan.loss):
        assert not too_long(repr(each)), repr(each)
    assert repr(road.plan.loss).startswith("PrivacyLoss(epsilon = ")


def test_refusals_of_a_dictionary_name_its_key() -> None:
    with pytest.raises(UnknownKey) as refused:
        dm.load(PROGRAM | {"mechanism": {"noise": "geometric", "stratgy": "workload"}})
    place = refused.value.where
    assert place is not None
    assert (place.file, place.line, place.key) == (None, None, "mechanism.stratgy")
    with pytest.raises(InvalidValue, match=r"where:   program\.name"):
        dm.load(PROGRAM | {"program": {"schema": 1, "name": None}})


class Alien:
    """A value that is meant nowhere."""


def public_calls(road: Road) -> Iterator[tuple[str, Callable[..., object]]]:
    """Every stable name that can be called, and every public method of a value of each stable class."""
    gallery.write("survey", road.folder)
    values = reachable(
        road.plan,
        road.plan.figure("regret"),
        road.release,
        road.release.interval("ages by ward"),
        road.ledger,
        road.ledger.accounts(),
        dm.optimize_strategy(dm.prefix(4)),
        dm.Histogram(dm.Domain.of_shape((2,)), np.array([1, 2])),
        dm.DatabaseTable("sqlite:///a.db", "people"),
        dm.load_survey(road.folder / "survey.toml"),
    )
    for name in sorted({*dm.__all__} - {"Refusal", "__version__"}):
        stable = getattr(dm, name)
        yield name, stable
        for method in dir(stable) if isinstance(stable, type) else ():
            member = getattr_static(stable, method)
            if method[0] != "_" and isinstance(member, FunctionType | classmethod | staticmethod):
                yield f"{name}.{method}", getattr(values[stable][0], method)


def wrong_calls(taken: Collection[Parameter]) -> Iterator[tuple[list[object], dict[str, object]]]:
    """Too many arguments, one that nobody knows, too few, and each of a type that is meant nowhere."""
    kinds = {each.kind for each in taken}
    needed = [each for each in taken if each.default is each.empty and each.kind not in VARYING]
    if Parameter.VAR_POSITIONAL not in kinds:
        yield [Alien()] * 20, {}
    if Parameter.VAR_KEYWORD not in kinds:
        yield [], {"nobody": 1}
    if needed:
        yield [], {}
        named: dict[str, object] = {each.name: Alien() for each in needed if each.kind is Parameter.KEYWORD_ONLY}
        yield [Alien()] * (len(needed) - len(named)), named
    else:
        for each in taken:
            if each.kind in BY_NAME:
                yield [], {each.name: Alien()}


def test_every_public_call_refuses_wrong_arguments_in_our_words(road: Road) -> None:
    taken_up, tried = [], 0
    for name, called in public_calls(road):
        for args, named in wrong_calls(signature(called).parameters.values()):
            tried += 1
            try:
                called(*args, **named)
            except Refusal:
                continue
            except Exception as error:
                taken_up.append(f"{name}, {len(args)} and {list(named)}: {type(error).__name__}: {error}")
            else:
                taken_up.append(f"{name}, {len(args)} and {list(named)}: in silence")
    assert taken_up == []
    assert tried > 300
