"""From a program that states a technology to its plan, its releases and their audit, over random small programs."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.audit import audit
from dualmandate.errors import InvalidMechanism, InvalidRelease, InvalidRequest, MissingKey, NotApproved, Refusal
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.mechanism import simulation_keys
from dualmandate.mechanism.data_dependent import RecordsCurator
from dualmandate.mechanism.technologies import DATA_DEPENDENT
from dualmandate.planning import release_spec
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population import PrivacyLoss, PrivacyMeasure
from dualmandate.publication.measuring import by_table
from dualmandate.publication.public_records import public_histogram
from dualmandate.publication.release import Release
from dualmandate.publication.sources import source_file
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.plan_words import plan_words

RELEASES = 40  # simulated on the public records, to hold errors and intervals against what was planned


@dataclass(frozen=True)
class Drawn:
    """A random small program, and its public and its protected records."""

    technology: str
    seed: int

    @property
    def draws(self) -> np.random.Generator:
        return np.random.default_rng([len(self.technology), self.seed])

    @property
    def noise(self) -> str:
        return ("geometric", "gaussian")[self.seed % 2]

    @property
    def shape(self) -> tuple[int, ...]:
        several = (6, 4) if self.technology == "partition" else (4, 3, 3)
        return tuple(int(size) for size in self.draws.integers(2, several[0] + 1, len(several)))

    def program(self) -> str:
        draws, shape, names = self.draws, self.shape, "abc"[: len(self.shape)]
        per = "epsilon" if self.noise == "geometric" else "rho"
        identified = draws.random() < 0.4
        zero = len(shape) == 3 and draws.random() < 0.6
        lines = [
            '[program]\nschema = 1\nname = "drawn"\n\n[population]\naccount = "people"\nunit = "person"',
            f'neighbors = "{("add-or-remove", "replace-one")[int(draws.integers(2))]}"',
            "dropping_is_public = true",
            'population_size = { value = 900, unit = "person", source = "drawn" }\nsource = "people.csv"',
            'identifier = "who"\nmost_records_per_unit = 2' if identified else "",
            *(f"attributes.{name} = {{ from = 0, to = {size - 1} }}" for name, size in zip(names, shape, strict=True)),
            "[[population.structural_zeros]]\na = [0]\nb = [1]\n" if zero else "",
        ]
        asked = [("all", list(names[:2])), ("one", [names[0]]), ("other", [names[-1]])]
        for name, by in asked[: int(draws.integers(2, 4))]:
            where = f"\nwhere = {{ {names[1]} = [0, 1] }}" if name == "other" and draws.random() < 0.5 else ""
            lines.append(
                f'[[workload]]\nname = "{name}"\nby = {json.dumps(by)}{where}\n'
                f"value_of_accuracy = {{ value = {draws.uniform(0.5, 5):.3g}, "
                'unit = "USD per person^2", source = "drawn" }'
            )
        lines += [
            f'[mechanism]\nnoise = "{self.noise}"\ntechnology = "{self.technology}"\n',
            '[preferences]\ninformation_utility = "linear"',
            f'mean_disclosure_cost = {{ value = 1, unit = "USD per person per {per}", source = "drawn" }}\n',
            '[simulation]\nrecords = "public.csv"\nsource = "drawn"\nrepetitions = 6',
            f'technologies = ["{self.technology}"]',
        ]
        return "\n".join(lines) + "\n"

    def records(self, own: int) -> str:
        draws = np.random.default_rng([self.seed, own])
        levels = [np.minimum(draws.geometric(0.45, 900) - 1, size - 1) for size in self.shape]
        rows = (f"{who},{','.join(map(str, each))}\n" for who, each in enumerate(zip(*levels, strict=True)))
        return f"who,{','.join('abc'[: len(self.shape)])}\n" + "".join(rows)

    def written(self, folder: Path) -> Path:
        (folder / "public.csv").write_text(self.records(1), encoding="utf-8")
        (folder / "people.csv").write_text(self.records(2), encoding="utf-8")
        (folder / "program.toml").write_text(self.program(), encoding="utf-8")
        return folder / "program.toml"


def published(plan: Plan, folder: Path) -> tuple[Release, Fraction]:
    """A release, and what its account was charged."""
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    pure = plan.loss.privacy_measure is PrivacyMeasure.PURE_DP
    cap = PrivacyLoss.pure(10**6) if pure else PrivacyLoss.concentrated(10**6)
    ledger.open_account(Account("people", "person", cap), by="Ann")
    ledger.approve(Approval("people", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    release = publish(plan, plan.program.source, ledger, out=folder / "out", by="Eve", unchecked=True)
    return release, Fraction(ledger.spent("people"))


CASES = [Drawn(technology, seed) for technology in DATA_DEPENDENT for seed in (0, 1)]
_FOLDERS: dict[Drawn, Path] = {}


@pytest.fixture(params=CASES, ids=[f"{case.technology}, {case.noise}" for case in CASES], scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    found: Drawn = request.param
    if found not in _FOLDERS:
        _FOLDERS[found] = tmp_path_factory.mktemp("drawn")
        found.written(_FOLDERS[found])
    return found


@cache
def planned(case: Drawn) -> Plan:
    return load(_FOLDERS[case] / "program.toml").plan()


@cache
def released(case: Drawn) -> tuple[Release, Fraction]:
    return published(planned(case), _FOLDERS[case])


def test_what_plans_is_published_charged_exactly_and_read_back(case: Drawn) -> None:
    plan, (release, spent) = planned(case), released(case)
    jsonschema.validate(plan_document(plan), schema("plan"))
    jsonschema.validate(release.facts, schema("release"))
    assert spent == plan.charge.amount == plan.loss.amount
    assert (release.technology, release.groups) == (case.technology, ())
    [measured] = plan_document(plan)["exact"]["measurements"]
    assert measured["technology"]["name"] == case.technology
    again = load_release(release.folder)
    again.check()
    noisy = [table["name"] for table in release.facts["tables"] if not table["exact"]]
    estimates = np.concatenate([again.published(name).estimates for name in noisy])
    assert again.told() == pytest.approx(estimates, rel=1e-9, abs=1e-9)
    assert "depends on the data" in " ".join(plan.notes)
    assert "as the technology chooses draw by draw" in " ".join(plan_words(plan).split())


def test_whole_tables_add_up_across_tables_and_to_the_records(case: Drawn) -> None:
    release, _ = released(case)
    both, one = (release.published(name).values for name in ("all", "one"))
    assert both is not None
    assert one is not None
    shape = case.shape[:2]
    assert np.array_equal(both.reshape(shape).sum(axis=1), one)
    assert min(both.min(), one.min()) >= 0
    if case.technology == "adaptive marginals":
        assert release.records().num_rows == one.sum()
        names = release.records().column_names
        kept = np.stack([np.array(release.records()[name].to_pylist(), dtype=np.int64) for name in names[:2]])
        assert np.array_equal(np.bincount(np.ravel_multi_index(tuple(kept), shape), minlength=math.prod(shape)), both)
    if "number of records" in release.tables:
        assert one.sum() == release.published("number of records").estimates[0]
    if "structural_zeros" in case.program():
        impossible = both.reshape(shape)[0, 1]
        assert (impossible, release.published("all").estimates.reshape(shape)[0, 1]) == (0, pytest.approx(0, abs=1e-9))


def test_errors_on_the_public_records_are_those_that_were_planned_and_intervals_hold(case: Drawn) -> None:
    """By other keys than those that it was planned with; chance allows both bands."""
    plan = planned(case)
    order, outcome = release_spec_of_plan(plan).technology, plan.extensions.simulation
    assert order is not None
    assert outcome is not None
    assert outcome.counts is not None
    truth = order.workload.answers_from(outcome.counts)
    squares, held = np.zeros((RELEASES, len(truth))), []
    for number in range(RELEASES):
        curator = RecordsCurator(outcome.counts, simulation_keys(77, number))
        told = order.tell(curator, plan.program.protection)
        widths = told.half_widths(0.95)
        assert widths is not None
        held.append(np.abs(told.values - truth) <= widths + 1e-9)
        squares[number] = np.square(told.values - truth)
    assert np.mean(held) >= 0.93
    start = 0
    for table in plan.tables:
        here = squares[:, start : start + table.query_count].mean(axis=1)
        start += table.query_count
        assert table.band is not None
        mean, spread = here.mean(), 3 * here.std() / math.sqrt(RELEASES)
        assert math.sqrt(mean + spread) >= table.band[0], table.table
        assert math.sqrt(max(mean - spread, 0)) <= table.band[1], table.table


def test_published_intervals_hold_the_truth_about_the_protected_records(case: Drawn) -> None:
    """Which nobody but a test may look at: the ends in the files, of estimates and of whole numbers."""
    (release, _), program = released(case), planned(case).program
    found = public_histogram(
        source_file(_FOLDERS[case] / "people.csv"), program.domain, protection=program.protection, rules=program.rules
    )
    truth = by_table(program.workload.tables, program.workload.answers_from(found.dense()))
    held, whole = list[np.ndarray[Any, Any]](), list[np.ndarray[Any, Any]]()
    for asked, exact in zip(program.workload.tables, truth, strict=True):
        table = release.published(asked.name)
        ends = table.intervals
        held.append((ends["lower_95"] - 1e-9 <= exact) & (exact <= ends["upper_95"] + 1e-9))
        whole.append((ends["value_lower_95"] <= exact) & (exact <= ends["value_upper_95"]))
        assert np.all(ends["lower_95"] <= ends["lower_90"])
    assert np.mean(np.concatenate(held)) >= 0.9
    assert np.mean(np.concatenate(whole)) >= np.mean(np.concatenate(held))


def test_intervals_are_those_of_the_files_and_sums_have_none(case: Drawn) -> None:
    release, _ = released(case)
    found = release.interval("one", a="0")
    table = release.published("one")
    assert (found.lower, found.upper) == (table.intervals["lower_95"][0], table.intervals["upper_95"][0])
    assert release.interval("one", a="0", probability=0.5).lower == table.intervals["lower_90"][0]
    assert "standard_error" not in release.table("one").column_names
    low, high = table.intervals["value_lower_95"], table.intervals["value_upper_95"]
    assert table.values is not None
    assert np.all((low <= table.values) & (table.values <= high))
    for asked in (
        lambda: release.interval("one"),
        lambda: release.interval("one", a="0", probability=0.99),
        lambda: release.difference("one", {"a": "0"}, {"a": "1"}),
        lambda: release.intervals("all", by=["a"]),
        lambda: release.simultaneous("one"),
    ):
        with pytest.raises(InvalidRequest):
            asked()
    assert release.privacy(1e-6).by_distribution is None


def test_an_audit_tells_the_release_again_and_sees_what_was_changed(
    case: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    release, _ = released(case)
    found = audit(release.folder)
    [told] = [each for each in found.findings if "follow from its transcript" in each.claim]
    assert told.success.successes == 0  # type: ignore[union-attr]
    assert any("no rows" in words for words in found.left_out)
    if case == CASES[0]:
        moved = release.told() + 1.0
        monkeypatch.setattr(Release, "told", lambda _: moved)
        [told] = [each for each in audit(release.folder).findings if "follow from its transcript" in each.claim]
        assert told.success.successes == len(moved)  # type: ignore[union-attr]


def changed(folder: Path, *edits: tuple[str, str], technology: str = "partition") -> Path:
    """A drawn program with some of its text replaced."""
    path = Drawn(technology, 0).written(folder)
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")
    return path


SIMULATION = '[simulation]\nrecords = "public.csv"\nsource = "drawn"\nrepetitions = 6\ntechnologies = ["partition"]\n'
HORIZON = '[horizon]\ndiscount_factor = 0.9\nreleases = [0, 1]\nsource = "drawn"\n'
RATIO = '[[ratios]]\nname = "share"\nnumerator = "one"\ndenominator = "one"\n'


@pytest.mark.parametrize(
    ("edits", "line", "why", "kind"),
    [
        ([(SIMULATION, "")], 'technology = "partition"', "simulated on public records", MissingKey),
        ([('noise = "geometric"', 'noise = "laplace"')], 'technology = "partition"', "drawn exactly", InvalidMechanism),
        (
            [('technology = "partition"', 'technology = "partition"\nmeasured = "apart"')],
            'technology = "partition"',
            "decides itself",
            InvalidMechanism,
        ),
        (
            [("[simulation]", '[[invariants]]\nname = "everybody"\n\n[simulation]')],
            'technology = "partition"',
            "no total were known",
            InvalidMechanism,
        ),
        (
            [("[simulation]", f"{HORIZON}\n[simulation]")],
            "[horizon]",
            "nothing was simulated",
            InvalidMechanism,
        ),
        (
            [("[simulation]", '[publication]\nengine = "spark"\n\n[simulation]')],
            'technology = "partition"',
            "held on one machine",
            InvalidMechanism,
        ),
    ],
    ids=["no records", "a study", "measured", "exact totals", "releases to come", "a cluster"],
)
def test_what_a_technology_cannot_serve_is_refused_by_the_plan_at_its_line(
    tmp_path: Path, edits: list[tuple[str, str]], line: str, why: str, kind: type[Refusal]
) -> None:
    path = changed(tmp_path, *edits)
    with pytest.raises(kind) as refused:
        load(path).plan()
    assert why in refused.value.why
    lines = path.read_text(encoding="utf-8").splitlines()
    assert refused.value.where is not None
    assert refused.value.where.line is not None
    assert lines[refused.value.where.line - 1].startswith(line)


def test_an_unknown_technology_is_refused_with_those_that_are_known(tmp_path: Path) -> None:
    path = changed(tmp_path, ('technology = "partition"\n\n', 'technology = "best"\n\n'))
    with pytest.raises(Refusal, match="adaptive marginals"):
        load(path)


@pytest.mark.parametrize("case", CASES[:1], indirect=True)
def test_a_release_of_another_format_is_not_told_again(case: Drawn, tmp_path: Path) -> None:
    release, _ = released(case)
    facts: dict[str, Any] = json.loads((release.folder / "release.json").read_text(encoding="utf-8"))
    facts["technology"]["format"] = "0"
    other = tmp_path / "other"
    shutil.copytree(release.folder, other)
    (other / "release.json").write_text(json.dumps(facts), encoding="utf-8")
    with pytest.raises(InvalidRelease, match="cannot be used"):
        load_release(other).told()


@pytest.mark.parametrize("case", CASES[:1], indirect=True)
def test_another_format_of_a_technology_is_not_published(case: Drawn, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(case)
    monkeypatch.setattr(release_spec, "TECHNOLOGY_FORMAT", 10**6)
    with pytest.raises(NotApproved, match="another version"):
        release_spec_of_plan(plan)


WIDE = """
[program]
schema = 1
name = "wide"

[population]
account = "people"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 400, unit = "person", source = "drawn" }
source = "people.csv"
ATTRIBUTES

[[workload]]
name = "all"
by = ["a0", "a1"]
value_of_accuracy = { value = 1, unit = "USD per person^2", source = "drawn" }

[[workload]]
name = "one"
by = ["a1", "a11"]
value_of_accuracy = { value = 1, unit = "USD per person^2", source = "drawn" }

[mechanism]
noise = "geometric"
technology = "adaptive marginals"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 1, unit = "USD per person per epsilon", source = "drawn" }

[simulation]
records = "public.csv"
source = "drawn"
technologies = ["adaptive marginals"]
repetitions = 2
"""


def test_a_domain_of_more_cells_than_are_told_is_counted_by_its_marginals(tmp_path: Path) -> None:
    """Five to the twelfth: no histogram, and the records of the release are dealt by the attributes of its tables."""
    attributes = "\n".join(f"attributes.a{number} = {{ from = 0, to = 4 }}" for number in range(12))
    (tmp_path / "program.toml").write_text(WIDE.replace("ATTRIBUTES", attributes), encoding="utf-8")
    for name, seed in (("people.csv", 1), ("public.csv", 2)):
        levels = np.minimum(np.random.default_rng(seed).geometric(0.5, (400, 12)) - 1, 4)
        rows = "".join(",".join(map(str, row)) + "\n" for row in levels.tolist())
        (tmp_path / name).write_text(",".join(f"a{number}" for number in range(12)) + "\n" + rows, encoding="utf-8")
    plan = load(tmp_path / "program.toml").plan()
    order = release_spec_of_plan(plan)
    assert order.marginals == ((0, 1), (1, 11))
    release, _ = published(plan, tmp_path)
    people = np.loadtxt(tmp_path / "people.csv", delimiter=",", skiprows=1, dtype=np.int64)
    for name, axes in (("all", (0, 1)), ("one", (1, 11))):
        exact = np.bincount(np.ravel_multi_index(tuple(people[:, axes].T), (5, 5)), minlength=25)
        ends = release.published(name).intervals
        assert np.mean((ends["lower_95"] <= exact) & (exact <= ends["upper_95"])) >= 0.9
    assert release.records().column_names == ["a0", "a1", "a11"]
    both, other = (release.published(name).values for name in ("all", "one"))
    assert both is not None
    assert other is not None
    assert np.array_equal(both.reshape(5, 5).sum(axis=0), other.reshape(5, 5).sum(axis=1))
