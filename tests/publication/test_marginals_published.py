"""Tables over more attributes than a histogram has room for are counted, measured and made whole as marginals."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.publication.brute_force import Written
from tests.publication.test_brute_force import published

from dualmandate import load, load_release
from dualmandate.audit import audit
from dualmandate.errors import TooLarge
from dualmandate.mechanism import GAUSSIAN, Measurement, StrategyRows, optimize_strategy
from dualmandate.mechanism.strategy import strategy as optimizing
from dualmandate.mechanism.synthesis.records_fit import Target, fitted_records
from dualmandate.population import Attribute, Confidential, Domain, PrivacyLoss, PrivacyMeasure, Protection
from dualmandate.publication import CsvFile, Rules, post_processing
from dualmandate.publication.intervals import draws_of, reach_of_draws
from dualmandate.publication.marginal_counts import MarginalCounts, largest_sets, words_of
from dualmandate.publication.measuring import fingerprint, measure
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.tabulating import Tabulated, tabulate
from dualmandate.workload import Tabulation, Workload, marginals

KEY, EVERY_PERSON = bytes(32), Protection()
MANY = Domain(tuple(Attribute.numbers(f"a{n}", 0, 9) for n in range(22)))  # 10²² cells
SETS = ((0, 21), (1, 7, 20), (18, 19))
PAIRS = """\
[program]
schema = 1
name = "pairs"

[population]
account = "people"
unit = "person"
neighbors = "add-or-remove"
one_record_per_unit = { source = "made up" }
population_size = { value = 60, unit = "person", source = "made up" }
source = "data.csv"

[population.attributes]
a = ["0", "1", "2"]
b = ["0", "1"]
c = ["0", "1", "2", "3"]

[[workload]]
name = "two-way"
every = 2
value_of_accuracy = { value = 1, unit = "USD per person^2", source = "made up", time_base = "once" }

[mechanism]
noise = "NOISE"
strategy = "optimized"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 2.5, unit = "USD per person per LOSS", source = "made up", time_base = "once" }
relative_privacy_weight = 1
"""


ONE = """
[[workload]]
name = "one"
by = ["c"]
value_of_accuracy = { value = 7, unit = "USD per person^2", source = "made up", time_base = "once" }

[mechanism]"""


class Pairs:
    """All two-way tables of three attributes, by a strategy of marginals."""

    def __init__(self, noise: str) -> None:
        self.noise = noise

    def text(self) -> str:
        return (
            PAIRS.replace("[mechanism]", ONE)
            .replace("NOISE", self.noise)
            .replace("LOSS", "rho" if self.noise == "gaussian" else "epsilon")
        )

    def records(self) -> str:
        levels = np.random.default_rng(2).integers(0, [3, 2, 4], (60, 3))
        return "a,b,c\n" + "".join(f"{a},{b},{c}\n" for a, b, c in levels.tolist())


def written(path: Path, levels: np.ndarray, units: list[int] | None = None) -> CsvFile:
    names = [*MANY.names, *([] if units is None else ["unit"])]
    rows = levels if units is None else np.column_stack([levels, units])
    path.write_text("\n".join([",".join(names), *(",".join(map(str, row)) for row in rows.tolist())]), encoding="utf-8")
    return CsvFile(path)


def counted(source: CsvFile, protection: Protection = EVERY_PERSON, key: bytes = KEY) -> MarginalCounts:
    box = tabulate(source, MANY, protection=protection, rules=Rules(), key=key, marginals=SETS)
    found = box.open_for("tests").histogram
    assert isinstance(found, MarginalCounts)
    return found


def test_marginals_are_counted_in_one_reading_of_records_without_a_cell_number(tmp_path: Path) -> None:
    assert len(words_of(MANY.shape)) > 1
    levels = np.random.default_rng(5).integers(0, 10, (300, 22))
    found = counted(written(tmp_path / "people.csv", levels))
    for axes in (*SETS, (7,), (20, 1), ()):
        expected = np.zeros([10] * len(axes), dtype=np.int64)
        for record in levels:
            expected[tuple(record[axis] for axis in sorted(axes))] += 1
        assert np.array_equal(found.marginal(tuple(sorted(axes))), expected)
    assert found.total == 300
    assert "counts" not in repr(found)


def test_a_unit_has_at_most_its_records_and_the_key_says_which(tmp_path: Path) -> None:
    levels = np.random.default_rng(6).integers(0, 10, (30, 22))
    units, protection = [0] * 10 + [1] * 2 + list(range(2, 20)), Protection(most_records_per_unit=2, identifier="unit")
    source = written(tmp_path / "people.csv", levels, units)
    first, again = counted(source, protection), counted(source, protection)
    turned = counted(written(tmp_path / "turned.csv", levels[::-1], units[::-1]), protection)
    other = counted(source, protection, key=bytes(31) + b"\1")
    assert first.total == 2 + 2 + 18 == other.total
    assert np.array_equal(first.counts, again.counts)
    assert np.array_equal(first.counts, turned.counts)
    assert not np.array_equal(first.counts, other.counts)


def test_only_what_no_other_marginal_holds_is_counted() -> None:
    assert largest_sets(MANY, [(), (1,), (1, 2), (2,), (1, 2, 3), (3, 4), (4,), (3, 4)]) == ((1, 2, 3), (3, 4))
    assert largest_sets(MANY, [()]) == ((),)


def order_of(workload: Workload, loss: Fraction = Fraction(1, 10)) -> ReleaseSpec:
    measurement = Measurement(StrategyRows(optimize_strategy(workload, "gaussian").exact), GAUSSIAN)
    return ReleaseSpec(
        plan_digest="0" * 64,
        program="many",
        account="people",
        loss=PrivacyLoss(loss, PrivacyMeasure.ZCDP),
        domain=workload.domain,
        protection=Protection(),
        rules=Rules(),
        groups=(Group("all", measurement, loss),),
        units={},
    )


def test_a_release_is_bound_to_all_that_was_counted() -> None:
    workload = Workload.from_tabulations(MANY, [Tabulation.of("one", ("a0", "a1")), Tabulation.of("two", ("a1", "a9"))])
    order, secret = order_of(workload), Confidential("secret", bytes(range(32)))
    order.check()
    assert order.marginals == ((0, 1), (1, 9))
    counts = np.arange(200, dtype=np.int64)
    boxes = []
    for cell in (None, 0, 199):
        changed = counts.copy()
        changed[[] if cell is None else [cell]] += 1
        made = MarginalCounts(MANY, order.marginals, changed, int(changed[:100].sum()))
        boxes.append(Confidential("counts", Tabulated(made, made.total)))
    macs = [fingerprint(order, box, secret) for box in boxes]
    assert len(set(macs)) == 3
    assert fingerprint(order, boxes[0], secret) == macs[0]
    one, again = (next(measure(order, boxes[0], secret, mac=macs[0])).values for _ in range(2))
    assert np.array_equal(one, again)


@pytest.mark.parametrize("noise", ["gaussian", "geometric"])
def test_no_neighbor_is_farther_away_than_was_charged(
    noise: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(optimizing, "MARGINALS_FROM", 1)
    made = published(tmp_path / noise, Pairs(noise))
    assert made is not None
    release, charge = made
    assert isinstance(release, Written)
    assert json.loads((release.folder / "strategies" / "all.json").read_text())["parts"][0]["marginals"]
    assert charge * Fraction(999, 1000) <= release.farthest <= charge == release.charge
    tables = {name: load_release(release.folder).published(name) for name in load_release(release.folder).tables}
    assert list(tables) == ["two-way: a × b", "two-way: a × c", "two-way: b × c", "one"]
    two_way = {name: found for name, found in tables.items() if name != "one"}
    whole = {tuple(name.split(": ")[1].split(" × ")): found.values for name, found in two_way.items()}
    sizes = {"a": 3, "b": 2, "c": 4}
    sums: dict[str, list[list[int]]] = {"a": [], "b": [], "c": []}
    for (one, other), values in whole.items():
        assert values is not None
        assert values.min() >= 0
        shaped = values.reshape(sizes[one], sizes[other])
        sums[one].append(shaped.sum(axis=1).tolist())
        sums[other].append(shaped.sum(axis=0).tolist())
    assert all(first == second for first, second in sums.values())
    assert np.array_equal(np.asarray(tables["one"].values), sums["c"][0])
    facts = json.loads((release.folder / "release.json").read_text())
    assert "one file of" in facts["consistency"]
    errors = tables["two-way: a × b"].standard_errors
    interval = load_release(release.folder).interval("two-way: a × b", a="1", b="0")
    assert interval.standard_error == pytest.approx(errors[2])
    shown = pq.read_table(release.folder / facts["tables"][0]["parquet"])
    assert {"lower_90", "upper_95"} <= set(shown.column_names)


def test_intervals_hold_as_often_as_they_say() -> None:
    """Two-way tables of 30 attributes: the error of a number and of a sum, by draws of the exact noise."""
    workload = marginals((4,) * 30, 2)
    order = order_of(workload)
    group, generator = order.groups[0], np.random.default_rng(11)
    for numbers in ([5], [0, 1, 2, 3, 9]):
        rows, shares = group.measurement.rows.taken(workload.tables[7].name, numbers)  # type: ignore[union-attr]
        kinds = group.rows.kinds()[rows].astype(np.int64)
        errors = np.zeros(20_000)
        for kind, noise in enumerate(group.noises):
            here = np.flatnonzero(kinds == kind)
            errors += noise.distribution().draw(generator, (len(errors), len(here))) @ shares[here]
        reach = reach_of_draws(draws_of(shares, kinds, group.noises), 0.1)
        assert reach is not None
        assert 0.892 < np.mean(np.abs(errors) <= reach.distance) < 0.912
        if len(numbers) == 1:
            spread = np.sqrt(group.measurement.query_variances(workload.tables[7].name, group.loss)[5])
            assert np.std(errors) == pytest.approx(spread, rel=0.03)


def test_a_file_of_records_comes_nearer_to_the_truth_than_the_estimates_were() -> None:
    generator, sizes = np.random.default_rng(4), [4] * 8
    truth = (generator.random((8, 2_000)) ** 2 * 4).astype(np.uint16)
    truth[1] = np.where(generator.random(2_000) < 0.7, truth[0], truth[1])
    targets, counts = [], []
    for one, other in combinations(range(8), 2):
        exact = np.bincount(truth[one] * 4 + truth[other], minlength=16).reshape(4, 4)
        counts.append(exact)
        targets.append(Target((one, other), exact + generator.normal(scale=20, size=(4, 4)), 1 / 400))
    found = fitted_records(sizes, targets, 2_000)
    assert found.finished
    assert np.array_equal(found.levels, fitted_records(sizes, targets, 2_000).levels)
    made = [found.marginal(target.places, sizes) for target in targets]
    assert np.sqrt(np.mean([(one - other) ** 2 for one, other in zip(made, counts, strict=True)])) < 17
    near = np.sqrt(np.mean([(one - each.estimates) ** 2 for one, each in zip(made, targets, strict=True)]))
    assert found.distance == pytest.approx(near)
    assert fitted_records(sizes, targets, 0).levels.shape == (8, 0)


def test_so_many_records_are_not_fitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizing, "MARGINALS_FROM", 1)
    monkeypatch.setattr(post_processing, "is_affordable", lambda *_: False)
    made = published(tmp_path / "many", Pairs("gaussian"))
    assert made is not None
    facts = json.loads((made[0].folder / "release.json").read_text())
    assert facts["consistency"].startswith("The tables were not made consistent: a file of ")
    found = load_release(made[0].folder).published("two-way: a × b")
    assert found.values is None
    assert np.isfinite(found.estimates).all()


def test_tables_that_were_measured_themselves_are_made_whole_too(tmp_path: Path) -> None:
    """Twenty attributes of ten levels: no cell has a number, and each table is measured by itself."""
    names = [f"x{n}" for n in range(20)]
    attributes = "\n".join(f"{name} = {{ from = 0, to = 9 }}" for name in names)
    text = Pairs("gaussian").text().replace('strategy = "optimized"', 'strategy = "workload"')
    text = text.replace('a = ["0", "1", "2"]', attributes).replace("every = 2", 'by = ["x0", "x1", "x19"]\nevery = 2')
    (tmp_path / "wide").mkdir()

    class Wide(Pairs):
        def text(self) -> str:
            return text

        def records(self) -> str:
            levels = np.random.default_rng(2).integers(0, 10, (80, 23)) % ([10] * 20 + [2, 4, 3])
            return (
                ",".join([*names, "b", "c", "a"])
                + "\n"
                + "".join(",".join(map(str, x)) + "\n" for x in levels.tolist())
            )

    made = published(tmp_path / "wide" / "er", Wide("gaussian"))
    assert made is not None
    release = load_release(made[0].folder)
    values = [release.published(f"two-way: {one} × {two}").values for one, two in (("x0", "x1"), ("x0", "x19"))]
    assert all(each is not None and each.min() >= 0 for each in values)
    first, second = (np.asarray(each).reshape(10, 10).sum(axis=1) for each in values)
    assert np.array_equal(first, second)
    with pytest.raises(TooLarge, match="the audit of a release about"):
        audit(release.folder)
    assert release.interval("two-way: x0 × x1", x0="3").standard_error == pytest.approx(
        10**0.5 * release.published("two-way: x0 × x1").standard_errors[0]
    )


def test_what_cannot_be_published_is_refused_by_the_plan(tmp_path: Path) -> None:
    attributes = "\n".join(f"x{n} = {{ from = 0, to = 9 }}" for n in range(9))
    text = (
        Pairs("gaussian")
        .text()
        .replace('"add-or-remove"', '"replace-one"\ndropping_is_public = true')
        .replace('a = ["0", "1", "2"]', attributes)
    )
    (tmp_path / "program.toml").write_text(text, encoding="utf-8")
    with pytest.raises(TooLarge) as refused:
        load(tmp_path / "program.toml").plan()
    assert "cells" in refused.value.what
