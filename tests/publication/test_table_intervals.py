"""Intervals for all numbers of a table at once: those of single numbers, and they hold; those of whole numbers, too."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.measured import optimized
from tests.publication.test_publish import FIXED, PLAIN, release_spec_of

from dualmandate.mechanism import optimize_strategy
from dualmandate.population import Attribute, Domain, PrivacyMeasure, Protection
from dualmandate.publication import intervals, number_errors
from dualmandate.publication.intervals import interval_of
from dualmandate.publication.measuring import estimated
from dualmandate.publication.post_processing import DRAWS, PostProcessed, post_process
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.table_intervals import EXACT, NO_SIMULATION, TableIntervals
from dualmandate.publication.writing import INTERVALS, OF_ESTIMATES, NoisyRows, PublishedTable
from dualmandate.workload import Tabulation, Workload

TRUTH = np.array([[40, 0], [31, 55], [3, 0]])


def drawn(order: ReleaseSpec, truth: NDArray[np.int64], generator: np.random.Generator) -> tuple[NoisyRows, ...]:
    """A release of some truth, with the exact law of its noise."""
    found = []
    for group in order.groups:
        values, kinds = np.array(group.rows.count(truth), dtype=np.int64), group.rows.kinds().astype(np.int64)
        for kind, noise in enumerate(group.noises):
            rows = np.flatnonzero(kinds == kind)
            values[rows] += noise.distribution().draw(generator, len(rows)).astype(np.int64)
        found.append(NoisyRows(group.name, group.noises, kinds, values))
    return tuple(found)


def estimated_tables(order: ReleaseSpec, generator: np.random.Generator) -> dict[str, PublishedTable]:
    [measured], [group] = drawn(order, TRUTH, generator), order.groups
    return {table.name: table for table in estimated(order, group, measured, None)}


def with_intervals(order: ReleaseSpec, table: PublishedTable) -> PublishedTable:
    return TableIntervals(order, PostProcessed((), "")).of(table)[0]


@pytest.mark.parametrize("kind", ["strategy", "tables", "cells"])
@pytest.mark.parametrize("privacy_measure", list(PrivacyMeasure))
def test_they_are_those_of_single_numbers_and_hold(kind: str, privacy_measure: PrivacyMeasure) -> None:
    order = release_spec_of(PLAIN, kind=kind, privacy_measure=privacy_measure)
    generator = np.random.default_rng(7)
    [group] = order.groups
    halves: dict[str, Mapping[str, NDArray[np.float64]]] = {}
    for name, table in estimated_tables(order, generator).items():
        found = with_intervals(order, table)
        assert set(found.intervals) == set(OF_ESTIMATES)
        for number, percent in ((0, 90), (0, 95), (len(table.estimates) - 1, 95)):
            weights = group.rows.weights(name, [number])
            single = interval_of(
                float(table.estimates[number]),
                weights,
                group.rows.kinds().astype(np.int64),
                group.noises,
                probability=Fraction(percent, 100),
            )
            lower, upper = (float(found.intervals[f"{end}_{percent}"][number]) for end in ("lower", "upper"))
            assert lower == pytest.approx(single.lower, abs=1e-6)
            assert upper == pytest.approx(single.upper, abs=1e-6)
        halves[name] = {key: np.abs(found.intervals[key] - table.estimates) for key in ("upper_90", "upper_95")}
    truth = {table.name: group.measurement.workload.table_answers(table.name, TRUTH) for table in group.tables}
    releases, held = 1500, dict.fromkeys([(name, key) for name in halves for key in halves[name]], 0.0)
    for _ in range(releases):
        for name, table in estimated_tables(order, generator).items():
            error = np.abs(table.estimates - truth[name].reshape(-1))
            for key, half in halves[name].items():
                held[name, key] += np.mean(error <= half + 1e-9) / releases
    for (_, key), share in held.items():
        nominal = int(key.removeprefix("upper_")) / 100
        assert share >= nominal - 3 * np.sqrt(nominal * (1 - nominal) / releases)


def test_numbers_with_other_standard_errors_than_were_looked_at_have_intervals_that_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With one law for a whole table, the largest ratio of half-width and standard error is taken for all."""
    domain = Domain((Attribute("age", tuple(map(str, range(9)))),))
    tables = (Tabulation.of("up to", ("age",)),)
    workload = Workload.from_tabulations(domain, tables)
    made = optimized(optimize_strategy(workload, "laplace", protection=Protection()).exact, Protection())
    order = replace(release_spec_of(PLAIN), domain=domain, groups=(Group("all", made, Fraction(1)),))
    errors = np.linspace(1, 3, 9)
    table = PublishedTable("up to", "person", ("age",), (tuple(domain.attributes[0].levels),), np.zeros(9), errors)
    whole = with_intervals(order, table)
    monkeypatch.setattr(number_errors, "MOST_LAWS", 1)
    few, words = TableIntervals(order, PostProcessed((), "")).of(table)
    assert words.estimates == intervals.BY_RATIO
    assert np.all(np.diff(few.intervals["upper_95"]) > 0)
    assert few.intervals["upper_95"] == pytest.approx(few.intervals["upper_95"][0] / errors[0] * errors)
    assert whole.intervals["upper_95"][0] == pytest.approx(few.intervals["upper_95"][0])


def test_what_is_exact_has_intervals_of_no_width() -> None:
    order = release_spec_of(FIXED, kind="tables")
    totals = np.array([129, 74, 55])
    table = PublishedTable("by sex", "person", ("sex",), (("f", "m"),), np.array([74.0, 55.0]), np.zeros(2), totals[1:])
    found, words = TableIntervals(order, PostProcessed((), "")).of(table)
    assert words.estimates == words.values == EXACT
    assert all(np.array_equal(found.intervals[name], [74, 55]) for name in INTERVALS)


def test_whole_numbers_have_intervals_that_hold_on_average() -> None:
    """Releases of one truth: what the simulation around each of them says holds it as often as it should."""
    order = release_spec_of(PLAIN, kind="tables")
    generator, releases = np.random.default_rng(5), 25
    held: dict[tuple[str, int], list[float]] = {}
    for _ in range(releases):
        made = post_process(order, measured=drawn(order, TRUTH, generator), totals=None)
        intervals = TableIntervals(order, made)
        for table in made.tables:
            found, words = intervals.of(table)
            assert f"{DRAWS} releases" in words.values
            truth = order.groups[0].measurement.workload.table_answers(table.name, TRUTH).reshape(-1)
            for percent in (90, 95):
                lower, upper = (found.intervals[f"value_{end}_{percent}"] for end in ("lower", "upper"))
                assert np.all((lower >= 0) & (lower <= found.values) & (found.values <= upper))
                held.setdefault((table.name, percent), []).append(float(np.mean((lower <= truth) & (truth <= upper))))
    for (_, percent), shares in held.items():
        assert np.mean(shares) >= percent / 100 - 0.05
    assert min(np.mean(shares) for (_, percent), shares in held.items() if percent == 95) < 1 + 1e-9


def test_where_nothing_was_simulated_the_words_say_so() -> None:
    order = release_spec_of(PLAIN, kind="tables")
    made = post_process(order, measured=drawn(order, TRUTH, np.random.default_rng(1)), totals=None)
    table = next(iter(made.tables))
    found, words = TableIntervals(order, replace(made, reaches={})).of(table)
    assert words.values == NO_SIMULATION
    assert not any(name.startswith("value") for name in found.intervals)


def test_a_hundred_thousand_numbers_take_few_seconds() -> None:
    """In processor time; the half-widths are those of one law each."""
    domain = Domain((Attribute("a", tuple(map(str, range(400)))), Attribute("b", tuple(map(str, range(250))))))
    tables = (Tabulation.of("cells", ("a", "b")), Tabulation.of("a", ("a",)))
    workload = Workload.from_tabulations(domain, tables)
    made = optimized(optimize_strategy(workload, "laplace", protection=Protection()).exact, Protection())
    order = replace(release_spec_of(PLAIN), domain=domain, groups=(Group("all", made, Fraction(1)),))
    errors = np.sqrt(made.query_variances("cells", Fraction(1)))
    levels = tuple(tuple(attribute.levels) for attribute in domain.attributes)
    table = PublishedTable("cells", "person", ("a", "b"), levels, np.zeros(100_000), errors)
    before = time.process_time()
    found = with_intervals(order, table)
    assert time.process_time() - before < 20
    ratio = found.intervals["upper_95"] / errors
    assert np.all((ratio > 1.9) & (ratio < 2.3))
