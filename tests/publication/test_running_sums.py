"""Cumulative tables and ranges of a program file: what they ask for, and their releases."""

from __future__ import annotations

import json
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from tests.publication.test_brute_force import published

from dualmandate import load, load_release
from dualmandate.errors import InvalidRequest, InvalidValue, InvalidWorkload, Refusal
from dualmandate.mechanism.strategy import strategy as optimizing
from dualmandate.population import Attribute, Domain
from dualmandate.population.arrays import Floats
from dualmandate.publication.consistency.running_sums import rising_histogram, running_axis
from dualmandate.workload import AllRange, Prefix, Tabulation

AGES, REGION = Attribute.numbers("age", 0, 5), Attribute.categories("region", ["n", "s"])
DOMAIN = Domain((AGES, REGION))
PROGRAM = """\
[program]
schema = 1
name = "axis"

[population]
account = "people"
unit = "person"
neighbors = "NEIGHBORS"
one_record_per_unit = { source = "made up" }
population_size = { value = 400, unit = "person", source = "made up" }
source = "data.csv"
DROPPED

[population.attributes]
age = { from = 0, to = 39 }
region = ["n", "s"]

[[workload]]
name = "up to each age"
by = BY
value_of_accuracy = { value = 3, unit = "USD per person^2", source = "made up", time_base = "once" }

[mechanism]
noise = "NOISE"
strategy = "STRATEGY"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 2.5, unit = "USD per person per LOSS", source = "made up", time_base = "once" }
relative_privacy_weight = 1
"""
PREFIX = '{ attribute = "age", sums = "prefix" }'


class Axis:
    """One table along an axis of 40 levels."""

    def __init__(self, by: str, noise: str, neighbors: str = "add-or-remove", strategy: str = "optimized") -> None:
        self.words = {"BY": by, "NOISE": noise, "NEIGHBORS": neighbors, "STRATEGY": strategy}
        self.words["LOSS"] = "rho" if noise == "gaussian" else "epsilon"
        self.words["DROPPED"] = "dropping_is_public = true" if neighbors == "replace-one" else ""

    def text(self) -> str:
        found = PROGRAM
        for word, said in self.words.items():
            found = found.replace(word, said)
        return found

    def records(self) -> str:
        random = np.random.default_rng(4)
        return "age,region\n" + "".join(f"{random.binomial(39, 0.4)},{'ns'[random.integers(2)]}\n" for _ in range(400))


@pytest.fixture(autouse=True)
def short_axes_are_nested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizing, "LARGEST_DENSE_STRATEGY", 16)
    monkeypatch.setattr(optimizing, "LONG_FROM", 8)
    monkeypatch.setattr("dualmandate.publication.post_processing.MOST_SIMULATED", 0)


def test_words_are_query_matrices() -> None:
    table = Tabulation.of("t", ("region", "age"), sums={"age": "prefix"}).table(DOMAIN)
    assert isinstance(table.factors[0], Prefix)
    assert list(table.labels([AGES.levels, REGION.levels]))[:2] == [("n", "up to 0"), ("s", "up to 0")]
    assert isinstance(Tabulation.of("t", "age", sums={"age": "ranges"}).table(DOMAIN).factors[0], AllRange)
    some = Tabulation.of("t", "age", sums={"age": [("1", "3"), ("2", "2")]}).table(DOMAIN)
    assert some.factors[0].columns(np.arange(6)).tolist() == [[0, 1, 1, 1, 0, 0], [0, 0, 1, 0, 0, 0]]
    assert list(some.labels([AGES.levels, REGION.levels])) == [("1 to 3",), ("2",)]


@pytest.mark.parametrize(
    ("tabulation", "why"),
    [
        ({"by": "region", "sums": {"region": "prefix"}}, "no order"),
        ({"by": "region", "sums": {"age": "prefix"}}, "shown along it"),
        ({"by": "age", "sums": {"age": "prefix"}, "where": {"age": ["1"]}}, "selects"),
        ({"by": "age", "sums": {"age": [("3", "1")]}}, "from its first level"),
        ({"by": "age", "sums": {"age": [("1", "3"), ("1", "3")]}}, "from its first level"),
    ],
)
def test_what_has_no_order_is_refused(tabulation: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidWorkload) as refusal:
        Tabulation.of("t", **tabulation).table(DOMAIN)  # type: ignore[arg-type]
    assert why in refusal.value.why


def test_a_range_of_three_ends_is_refused_where_it_stands(tmp_path: Path) -> None:
    text = Axis('[{ attribute = "age", sums = [["0", "1", "2"]] }]', "geometric").text()
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    with pytest.raises(InvalidValue) as refusal:
        load(tmp_path / "program.toml")
    assert refusal.value.where is not None
    assert "by" in str(refusal.value.where.key)


@pytest.mark.parametrize(
    ("by", "noise", "neighbors"),
    [
        (f"[{PREFIX}]", "geometric", "add-or-remove"),
        (f"[{PREFIX}]", "gaussian", "replace-one"),
        (f'["region", {PREFIX}]', "gaussian", "add-or-remove"),
        (f'["region", {PREFIX}]', "geometric", "add-or-remove"),
    ],
)
def test_a_cumulative_table_is_published_and_never_falls(tmp_path: Path, by: str, noise: str, neighbors: str) -> None:
    made = published(tmp_path / "axis", Axis(by, noise, neighbors))
    assert made is not None
    [folder] = (tmp_path / "axis" / "releases").iterdir()
    values = pq.read_table(folder / "tables" / "up-to-each-age.parquet").column("value").to_numpy().reshape(40, -1)
    assert np.all(np.diff(values, prepend=0, axis=0) >= 0)
    if neighbors == "replace-one":
        assert values[-1].tolist() == [400]
    [strategy] = (folder / "strategies").iterdir()
    # For pure ε so few levels are told apart by tables of counts.
    if len(values[0]) == 1:
        release = load_release(folder)
        found = release.difference("up to each age", {"age": "up to 20"}, {"age": "up to 10"})
        one, other = (release.interval("up to each age", age=f"up to {age}") for age in (20, 10))
        assert found.estimate == pytest.approx(one.estimate - other.estimate)
        assert found.standard_error is not None
        assert one.standard_error is not None
        assert other.standard_error is not None
        assert 0 < found.standard_error < one.standard_error + other.standard_error
        for twice in (
            lambda: release.interval("up to each age", age=["up to 10", "up to 20"]),
            lambda: release.estimate("up to each age"),
            lambda: release.intervals("up to each age", by=[]),
        ):
            with pytest.raises(InvalidRequest, match="not added up along 'age'"):
                twice()
    parts = json.loads(strategy.read_text(encoding="utf-8"))["parts"]
    assert noise == "geometric" or any("blocks" in part for part in parts)


def test_whole_running_sums_are_the_nearest() -> None:
    """Against all of them, for sums of four levels up to 4 records."""
    table = Tabulation.of("t", "age", sums={"age": "prefix"}).table(Domain((Attribute.numbers("age", 0, 3),)))
    assert running_axis(table, total_is_known=False) == 0
    random = np.random.default_rng(3)
    for _ in range(30):
        estimates, variances = random.normal(2, 1.5, size=4), random.uniform(0.5, 2, size=4)
        for records in (None, 3):
            found = np.cumsum(rising_histogram(table, 0, estimates, variances, records))

            def loss(sums: NDArray[Any], estimates: Floats = estimates, variances: Floats = variances) -> float:
                return float((np.square(sums - estimates) / variances).sum())

            rising = [np.array(sums) for sums in combinations_with_replacement(range(9), 4)]
            allowed = [sums for sums in rising if records is None or sums[-1] == records]
            assert np.all(np.diff(found, prepend=0) >= 0)
            assert loss(found) == pytest.approx(min(map(loss, allowed)))


def test_what_is_summed_over_is_shared_evenly() -> None:
    table = Tabulation.of("t", "age", sums={"age": "prefix"}).table(DOMAIN)
    counts = rising_histogram(table, 0, np.array([3.0, 3, 8, 8, 8, 9]), np.ones(6), None)
    assert counts.tolist() == [[2, 1], [0, 0], [3, 2], [0, 0], [0, 0], [1, 0]]


def test_every_program_that_plans_publishes(tmp_path: Path) -> None:
    """Words, others, neighbors and both noises: published, or refused before anything is spent."""
    ranges = '{ attribute = "age", sums = [["0", "9"], ["5", "39"], ["7", "7"]] }'
    found, refused = list[bool](), list[str]()
    for number, (axis, others, neighbors) in enumerate(
        product((PREFIX, ranges), ("", '"region", '), ("add-or-remove", "replace-one"))
    ):
        program, folder = Axis(f"[{others}{axis}]", ("gaussian", "geometric")[number % 3 > 0], neighbors), tmp_path
        (folder / "program.toml").write_text(program.text(), encoding="utf-8")
        try:
            load(folder / "program.toml").plan()
        except Refusal as refusal:
            refused.append(refusal.what)
            continue
        found.append(published(folder / str(number), program) is not None)
    assert all(found)
    assert len(found) >= 6
    assert all("strategy" in what for what in refused)
