"""What every attack must do, whatever it attacks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from dualmandate.audit.claims.attack import ClaimedGroup, ClaimedNoise, ClaimedRelease
from dualmandate.audit.claims.exact_groups import ExactGroups
from dualmandate.audit.claims.membership import Frequencies, neighbor_sums
from dualmandate.audit.disclosure_control.magnitude_rules import SummedTables, counting_members
from dualmandate.audit.finding import Attack, Finding, Range, Rate
from dualmandate.audit.linkage.attack import Linkage
from dualmandate.audit.options import Effort, generator
from dualmandate.audit.reconstruction.persons import GroupStatistics, Statistic, Variables
from dualmandate.audit.run import ATTACKS, attack_on
from dualmandate.audit.suppression.cells import (
    LinkedTables,
    SuppressedPart,
    SuppressedTables,
    additive_relations,
    tree_relations,
)
from dualmandate.audit.suppression.series import HiddenSeries, Series, SeriesPart
from dualmandate.audit.tables import Equations, ExactTables, NoisyTables, boxed
from dualmandate.gallery.ratings import invented_ratings
from dualmandate.mechanism import Geometric
from dualmandate.population import Attribute, Domain, PrivacyLoss
from dualmandate.workload import Tabulation, Workload, marginals
from dualmandate.workload.statistics_count import StatisticsCount

TABLES = Equations.of_workload(marginals((2, 3), [0, 1]))
FULL = Equations.of_workload(marginals((2, 3), [0, 1, 2]))
PEOPLE = np.array([[1, 0, 2, 0, 3, 1], [0, 0, 0, 0, 0, 0], [4, 1, 0, 0, 0, 2]])
KEY = b"conformance"


def exact(equations: Equations, people: Any) -> ExactTables:
    names = tuple(f"block {i}" for i in range(len(people)))
    return ExactTables(
        "tables", equations, equations.of(people), names, "as is", truths={"confidential": boxed(people)}
    )


def noisy(scale: float, *, truth: bool) -> NoisyTables:
    noise = np.random.default_rng(1).laplace(0, 1, (3, TABLES.rows)) * scale
    return NoisyTables(
        "tables",
        TABLES,
        TABLES.of(PEOPLE) + noise,
        np.full(TABLES.rows, scale),
        np.full(PEOPLE.shape, 1.5),
        "as is",
        f"noise of mean size {scale:g}",
        truths={"confidential": boxed(PEOPLE), "tabulated": boxed(PEOPLE)} if truth else {},
    )


def persons(mean: str | None) -> GroupStatistics:
    variables = Variables("age", 0, 90, {"sex": ("f", "m")})
    both = [Statistic("all", {}, 2, mean=None if mean is None else Decimal(mean)), Statistic("f", {"sex": "f"}, 2)]
    return GroupStatistics(
        "statistics", variables, {"a": tuple(both), "nobody": (Statistic("all", {}, 0),)}, "whole years"
    )


def suppressed(hidden: Callable[[Any], None]) -> SuppressedTables:
    table = np.array([[2, 100, 102], [3, 50, 53], [5, 150, 155]])
    marks = np.zeros(table.shape, dtype=np.bool_)
    hidden(marks)
    linked = LinkedTables(additive_relations(table.shape), table.reshape(-1), marks.reshape(-1))
    names = tuple(f"cell {i}" for i in range(9))
    part = SuppressedPart(linked, names, truths={"confidential": boxed(table.reshape(-1))})
    return SuppressedTables("table", (part,), "as is")


def hide_two_by_two(marks: Any) -> None:
    marks[:2, :2] = True


def hide_one(marks: Any) -> None:
    marks[0, 0] = True


def release(scale: Fraction, *, shown: int = 3) -> ClaimedRelease:
    law = Geometric(float(1 / scale))
    noise = ClaimedNoise("laplace", "laplace", scale, law.log_likelihood)
    measured = np.array([5, -2, 7]) if shown == 3 else np.array([5.1, -2.2, 7.3]) / 7
    group = ClaimedGroup(
        "counts", lambda cell: (np.array([cell]), np.array([1])), np.zeros(3, dtype=np.int64), (noise,), measured
    )
    declared = tuple(range(3))
    return ClaimedRelease(
        "release",
        PrivacyLoss.pure("1/2"),
        (group,),
        np.ones(3, dtype=np.bool_),
        None,
        {"counts": ((declared[:shown],), (declared,))},
        {"total": True},
        StatisticsCount(3, 3, True, 30),
        "as is",
    )


def linkage(*, right: bool) -> Linkage:
    domain = Domain((Attribute.categories("sex", [*"fm"]), Attribute.categories("race", [*"bw"])))
    people = np.array([[1, 0, 0, 3], [0, 2, 1, 0]])
    found = people if right else people[:, ::-1].copy()
    tables = exact(Equations.of_workload(marginals((2, 2), [2])), found)
    return Linkage(replace(tables, truths={"confidential": boxed(people)}), domain, ("race",), "block")


def frequencies(epsilon: float) -> Frequencies:
    draws = np.random.default_rng(3)
    members = draws.integers(0, 2, (20, 5))
    return Frequencies(
        "frequencies",
        neighbor_sums(members, 1 - members[0], population=np.full(5, 0.5)),
        lambda key, purpose, shape: generator(key, purpose).laplace(0, 5 / epsilon, shape),
        epsilon,
        draws=400,
    )


def contributors(people: int) -> SummedTables:
    domain = Domain((Attribute.categories("trade", ["mill", "shop"]), Attribute.numbers("pay", 0, 9)))
    tabulations = [Tabulation("by trade", ("trade",), sum_of="pay"), Tabulation("all", sum_of="pay")]
    workload = counting_members(Workload.from_tabulations(domain, tabulations), 1)
    counts = np.zeros((1, 2, 10), dtype=np.int64)
    counts[0, 0, [9, 4, 2][:people]] = 1
    counts[0, 1, 3:9] = 1
    return SummedTables("pay", workload, np.tile(np.arange(10), 2), counts.reshape(1, -1), "pay in dollars")


def series(hidden: int) -> HiddenSeries:
    """Two totals of four parts each; parts of the first are suppressed in one period, with a truth."""
    leaves = np.array([[4, 4, 4], [6, 8, 10], [5, 5, 6], [9, 9, 9], [3, 3, 4], [7, 7, 7], [2, 2, 2], [8, 9, 9]])
    totals = leaves.reshape(2, 4, 3).sum(axis=1)
    values = np.concatenate([totals, leaves])
    marks = np.zeros(values.shape, dtype=np.bool_)
    marks[[2, 3, 6, 7], hidden] = True
    parents = np.array([-1, -1, 0, 0, 0, 0, 1, 1, 1, 1])
    made = Series(parents, values, marks, np.ones(values.shape))
    part = SeriesPart(made, tree_relations(parents), {"confidential": boxed(values)})
    return HiddenSeries("quarters", (part,), ("1", "2", "3"))


TARGETS: dict[str, Callable[[], object]] = {
    "nothing follows": lambda: exact(Equations.of_matrix(np.ones((1, 6), dtype=np.int64)), PEOPLE),
    "some follows": lambda: exact(TABLES, PEOPLE),
    "everything follows": lambda: exact(FULL, PEOPLE),
    "nobody lives there": lambda: exact(FULL, PEOPLE[1:2]),
    "no noise": lambda: noisy(0.0, truth=True),
    "nothing but noise": lambda: noisy(1e6, truth=True),
    "noise without a truth": lambda: noisy(1.0, truth=False),
    "many lists of persons": lambda: persons("20"),
    "one list of persons": lambda: persons("90.0"),
    "suppressed for nothing": lambda: suppressed(hide_one),
    "suppressed": lambda: suppressed(hide_two_by_two),
    "a true claim": lambda: release(Fraction(2)),
    "a false claim": lambda: release(Fraction(1), shown=2),
    "links that are right": lambda: linkage(right=True),
    "links that are wrong": lambda: linkage(right=False),
    "membership": lambda: frequencies(1.0),
    "membership without noise": lambda: frequencies(1e9),
    "a series": lambda: series(1),
    "a series at its end": lambda: series(2),
    "contributors to sums": lambda: contributors(3),
    "one contributor": lambda: contributors(1),
    "exact numbers by groups": lambda: ExactGroups({"residents of blocks": 3_000, "women": 2}, "as is"),
    "sparse records": lambda: invented_ratings(known=4, people=60),
}
every_target = pytest.mark.parametrize("name", TARGETS)


@cache
def findings(name: str, *, again: bool = False) -> tuple[Finding, ...]:
    target = TARGETS[name]()
    attack: Attack[Any] = attack_on(target, Effort(seconds=20.0))
    return attack.run(target, KEY)


def test_every_attack_is_tried() -> None:
    assert {type(make()) for make in TARGETS.values()} == set(ATTACKS)


@every_target
def test_an_attack_says_what_it_is(name: str) -> None:
    attack = attack_on(TARGETS[name](), Effort())
    assert attack.name
    assert {finding.attack for finding in findings(name)} == {attack.name}


@every_target
def test_equal_keys_give_equal_findings(name: str) -> None:
    found = findings(name)
    assert found
    assert found == findings(name, again=True)


@every_target
def test_every_success_has_a_baseline_and_an_interval(name: str) -> None:
    for finding in findings(name):
        assert finding.baselines
        for success in (finding.success, *(each.success for each in finding.baselines)):
            low, high = finding.interval(success)
            assert math.isfinite(low)
            assert math.isfinite(high)
            assert low <= high
            if isinstance(success, Rate):
                assert 0 <= low <= success.value <= high <= 1


@every_target
def test_every_finding_says_how_it_came_about(name: str) -> None:
    for finding in findings(name):
        assert finding.claim
        assert finding.attacker_knows
        assert finding.coarsening
        assert finding.label == ("internal" if finding.reference in ("tabulated", "confidential") else "public")
        words = finding.words()
        assert finding.coarsening in words
        assert finding.attacker_knows in words


@every_target
def test_no_finding_says_that_there_is_no_risk(name: str) -> None:
    for finding in findings(name):
        said = json.dumps(finding.document(inside=True)).lower()
        assert not re.search(r"\b(safe|secure|anonymous|no risk)", said)


@every_target
def test_documents_are_finite(name: str) -> None:
    for finding in findings(name):
        json.dumps(finding.document(inside=True), allow_nan=False)
        assert "details" not in finding.document()


@pytest.mark.parametrize(
    ("name", "value"), [("everything follows", 1.0), ("nothing follows", 1 / 3), ("one list of persons", 1.0)]
)
def test_a_risk_of_one_is_a_rate_like_any_other(name: str, value: float) -> None:
    first = findings(name)[0]
    assert isinstance(first.success, Rate)
    assert first.success.value == pytest.approx(value)  # of three blocks one has nobody, and that follows


def test_a_false_claim_is_seen() -> None:
    _, loss, drawn, shown, exact_numbers, count, bits = findings("a false claim")
    assert isinstance(drawn.success, Range)
    assert drawn.success.least > 0.5  # the claim is 1/2, the truth 1
    assert "ABOVE" in drawn.claim
    assert "not above" in findings("a true claim")[2].claim
    assert bits.success == Rate(3, 3)
    assert findings("a true claim")[-1].success == Rate(0, 3)
    assert isinstance(loss.success, Range)
    assert loss.success.least == 1.0
    assert "ABOVE" in loss.claim
    assert shown.success == Rate(1, 1)
    assert exact_numbers.success == Rate(1, 1)
    assert isinstance(count.success, Range)
    assert findings("a true claim")[3].success == Rate(0, 1)
    assert "not above" in findings("a true claim")[1].claim


def test_noise_without_signal_leaves_the_guess() -> None:
    for finding in findings("nothing but noise"):
        assert isinstance(finding.success, Rate)
        proportional = finding.baselines[0].success
        assert isinstance(proportional, Rate)
        assert finding.success.value >= proportional.value - 0.01
