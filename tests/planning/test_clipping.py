"""Clipped amounts and records: what plans and releases say of them, what is left out, and the bound that is chosen."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from operator import itemgetter
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.audit import audit
from dualmandate.audit.disclosure_control.magnitude_rules import summed_tables
from dualmandate.audit.tables import one_place
from dualmandate.audit.targets.of_program import synthetic_places
from dualmandate.errors import ConflictingLimits, Refusal
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.planning.clipping import _published
from dualmandate.planning.plan import Plan
from dualmandate.planning.release_spec import release_spec_of, release_spec_of_plan, strategy_files
from dualmandate.planning.saved_plan import load_plan
from dualmandate.population import PrivacyLoss
from dualmandate.population.wording import quantity
from dualmandate.program import read_program
from dualmandate.publication.data_dictionary import CLIPPED
from dualmandate.publication.release import Release
from dualmandate.publication.writing import PublishedTable
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.figures import Figure, clipping
from dualmandate.report.plan_summary import plan_summary
from dualmandate.report.plan_words import plan_words

REGIONS = {"north": 0.5, "east": 0.3, "south": 0.2}
PEOPLE, MEDIAN, SPREAD = 8_000, 1_500.0, 1.2
LAW = f', distribution = {{ law = "lognormal", median = {MEDIAN}, spread = {SPREAD}, source = "a report" }}'
PROGRAM = f"""\
[program]
schema = 1
name   = "costs"

[population]
account         = "insured"
unit            = "person"
neighbors       = "add-or-remove"
population_size = {{ value = {PEOPLE}, unit = "person", source = "made up" }}
source          = "costs.csv"

[population.attributes]
cost = {{ lower = 0, upper = 100000, grid = 100{LAW} }}

[population.attributes.region]
levels   = ["north", "east", "south"]
expected = {{ shares = {{ north = 5, east = 3, south = 2 }}, source = "census" }}

[[workload]]
name   = "cost by region"
by     = ["region"]
sum_of = "cost"
unit   = "USD"
value_of_accuracy = {{ value = 1e-4, unit = "USD per USD^2", source = "made up" }}

[mechanism]
noise = "geometric"
strategy = "workload"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 20, unit = "USD per person per epsilon", source = "made up" }}
"""
AT_BOUND = """
[[workload]]
name = "persons at the bound"
at_bound_of = "cost"
value_of_accuracy = { value = 10, unit = "USD per person^2", source = "made up" }
"""
BEST = "upper = 100000", 'upper = "best"'
WORDS = "cost, each person's counted up to USD {}, in steps of USD 100"


def written(folder: Path, *changes: tuple[str, str]) -> Path:
    text = PROGRAM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    folder.mkdir(exist_ok=True, parents=True)
    file = folder / "program.toml"
    file.write_text(text, encoding="utf-8")
    return file


def people(seed: int) -> tuple[list[str], np.ndarray]:
    draws = np.random.default_rng(seed)
    regions = draws.choice(list(REGIONS), PEOPLE, p=list(REGIONS.values()))
    return list(regions), draws.lognormal(math.log(MEDIAN), SPREAD, PEOPLE)


def released(plan: Plan, folder: Path, rows: str) -> Release:
    (folder / "costs.csv").write_text(rows, encoding="utf-8")
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    ledger.open_account(Account("insured", "person", PrivacyLoss.pure(1000)), by="Ann")
    ledger.approve(Approval("insured", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    return publish(plan, plan.program.source, ledger, out=folder / "out", by="Eve", unchecked=True)


def records(seed: int) -> str:
    regions, costs = people(seed)
    rows = "".join(f"{region},{cost:.2f}\n" for region, cost in zip(regions, costs, strict=True))
    return "region,cost\n" + rows


# What is published is named as what it is.


def test_what_is_counted_is_said_wherever_it_stands(tmp_path: Path) -> None:
    plan = load(written(tmp_path, ("\n[mechanism]", AT_BOUND + "\n[mechanism]"))).plan()
    said = WORDS.format("100,000")
    document = plan_document(plan)
    assert [table["clipped"] for table in document["tables"]] == [
        said,
        "people whose cost is counted as USD 100,000: USD 99,950, or more",
    ]
    assert f"Counted in 'cost by region': {said}." in " ".join(plan_words(plan).split())
    release = released(plan, tmp_path, records(1))
    assert release.facts["tables"][0]["clipped"] == said
    assert said in (release.folder / "index.html").read_text(encoding="utf-8").replace("&#39;", "'")
    readme = (release.folder / "README.md").read_text(encoding="utf-8")
    assert f"- cost by region: {said}.\n" in readme
    assert CLIPPED in readme
    for dictionary in ("data_dictionary.csv", "data_dictionary.json"):
        assert f"intervals are about that: {said}" in (release.folder / dictionary).read_text(encoding="utf-8")
    book = openpyxl.load_workbook(release.folder / release.facts["tables"][0]["xlsx"])
    assert [row[0] for row in book["Table"].iter_rows(values_only=True)][-2:] == [None, f"What is counted: {said}."]
    interval = release.interval("cost by region", region="north")
    assert interval.covers == f"only {said}"
    assert str(interval).endswith(f"; it covers only {said}")
    assert release.simultaneous("cost by region").covers == interval.covers
    csv = (release.folder / release.facts["tables"][0]["csv"]).read_text(encoding="utf-8")
    heading, first, *_ = csv.splitlines()
    assert heading.startswith("region,value,")
    assert heading.endswith(",unit,what_is_counted")
    assert first.endswith(f'"{said}"')
    _, costs = people(1)
    met = release.interval("persons at the bound", probability=0.999999)
    assert (costs >= 99_950).sum() in met
    small = ("upper = 100000, grid = 100", "upper = 20000, grid = 5000")
    counts = AT_BOUND.replace('at_bound_of = "cost"', 'by = ["region"]')
    made = load(written(tmp_path / "small", small, ("\n[mechanism]", counts + "\n[mechanism]")))
    place = one_place(made.workload, "region")
    summed = next(iter(summed_tables(made.workload, place, synthetic_places(made, place, bytes(32)), made.clipped)))
    assert summed.name == "'cost by region' (cost, each person's counted up to USD 20,000, in steps of USD 5,000)"


def test_counts_without_clipping_have_no_such_words(tmp_path: Path) -> None:
    plan = load(
        written(tmp_path, ('sum_of = "cost"\nunit   = "USD"\n', ""), ("USD per USD^2", "USD per person^2"))
    ).plan()
    assert [table["clipped"] for table in plan_document(plan)["tables"]] == [None]
    assert plan.extensions.clipping == ()
    assert "clipping" not in plan_words(plan)


# What clipping leaves out.


def test_bias_by_hand(tmp_path: Path) -> None:
    """A quarter have 150,000 and the others nothing, all in one region: 2,000 × 50,000 are missing there."""
    quantiles = '{ "0" = 0, "0.75" = 0, "0.7500000001" = 150000, "1" = 150000 }'
    law = f', distribution = {{ quantiles = {quantiles}, source = "made up" }}'
    file = written(tmp_path, (LAW, law), ("{ north = 5, east = 3, south = 2 }", "{ north = 1 }"))
    plan = load(file).plan()
    table = plan.tables[0]
    assert table.bias is not None
    chance = PEOPLE * 0.25 * 0.75 * 50_000.0**2  # of how many people have it
    assert table.bias == pytest.approx(math.sqrt(((2_000 * 50_000.0) ** 2 + chance) / 3), rel=1e-6)
    assert table.root_mean_squared_error_with_bias == math.hypot(table.root_mean_squared_error, table.bias)
    value = plan.welfare.table_values[0]
    assert value.least == pytest.approx(1e-4 * 3 * table.bias**2)
    assert plan.choice.data_loss == pytest.approx(
        1e-4 * 3 * (table.root_mean_squared_error**2 + table.bias**2), rel=1e-4
    )


def test_a_bias_does_not_move_the_loss_and_is_counted(tmp_path: Path) -> None:
    known, unknown = load(written(tmp_path / "a")).plan(), load(written(tmp_path / "b", (LAW, ""))).plan()
    assert known.loss == unknown.loss
    assert known.choice.data_loss > unknown.choice.data_loss
    assert unknown.tables[0].bias is None
    curve = unknown.extensions.clipping[0]
    assert curve.recommended is None
    assert [row.noise for row in curve.rows] == sorted(row.noise for row in curve.rows)
    words = " ".join(plan_words(unknown).split())
    assert "What that leaves out is not counted here" in words
    assert "attributes.cost.distribution" in words
    assert plan_document(unknown)["clipping"][0]["recommended"] is None
    for plan in (known, unknown):
        figure = clipping(plan.extensions.clipping[0], plan.choice.currency)
        assert figure.name == "clipping-cost"
        assert len(figure.table.rows) == len(plan.extensions.clipping[0].rows)
        assert all("in use: USD 100,000" in figure.svg(width) for width in (360, 760))
        assert all(room_above_curves(figure, width) >= 20 for width in (370, 760))


def room_above_curves(figure: Figure, width: int) -> float:
    """Pixels between the highest point of a curve and the upper edge, where a label of one line stands."""
    layout = figure.layout(width)
    values = [row for layer in layout["layer"] for row in layer.get("data", {}).get("values", [])]
    low, high = max(((row["low"], row["high"]) for row in values if "low" in row), key=itemgetter(1))
    top = max(row[key] for row in figure.table.rows for key in ("noise", "bias", "both") if row[key])
    return float(layout["height"] * math.log(high / top) / math.log(high / low))


def test_fitness_for_use_counts_the_bias(tmp_path: Path) -> None:
    def with_floor(folder: str, floor: float) -> Path:
        fit = f"fitness_for_use = {{ largest_root_mean_squared_error = {floor} }}\n\n[mechanism]"
        return written(tmp_path / folder, ("\n[mechanism]", fit))

    bias = load(written(tmp_path / "c")).plan().tables[0].bias
    assert bias is not None
    plan = load(with_floor("a", 1.05 * bias)).plan()
    assert plan.tables[0].root_mean_squared_error_with_bias == pytest.approx(1.05 * bias, rel=1e-3)
    with pytest.raises(ConflictingLimits, match="clipping leaves out"):
        load(with_floor("b", 0.9 * bias)).plan()


def test_absolute_errors_count_a_bias_at_most_in_full(tmp_path: Path) -> None:
    changes = ('unit   = "USD"', 'unit   = "USD"\nloss = "absolute"'), ("USD per USD^2", "USD per USD")
    plan = load(written(tmp_path, *changes)).plan()
    value, bias = plan.welfare.table_values[0], plan.tables[0].bias
    assert bias is not None
    assert value.least == pytest.approx(1e-4 * 3 * bias)


def test_records_that_are_dropped_are_counted(tmp_path: Path) -> None:
    several = (
        'source          = "costs.csv"',
        'source = "costs.csv"\nidentifier = "name"\nmost_records_per_unit = 2\n'
        'records_per_unit = { shares = { "1" = 0.5, "2" = 0.3, "5" = 0.2 }, source = "made up" }',
    )
    counts = ('sum_of = "cost"\nunit   = "USD"\n', ""), ("USD per USD^2", "USD per person^2")
    plan = load(written(tmp_path, several, *counts)).plan()
    assert plan.program.clipped == {"cost by region": "at most 2 records of each person"}
    # 0.6 records a person are lost, of 5 in 10 persons in the north: Σ (N·p·0.6)² + N·(p·1.8 − p²·0.36)
    shares = np.array([0.5, 0.3, 0.2])
    squares = (PEOPLE * 0.6 * shares) ** 2 + PEOPLE * (shares * 1.8 - shares**2 * 0.36)
    assert plan.tables[0].bias == pytest.approx(math.sqrt(squares.mean()))
    curve = plan.extensions.clipping[-1]
    assert (curve.name, curve.bound) == ("records", Fraction(2))
    assert [int(row.bound) for row in curve.rows] == [1, 2, 5]
    assert curve.rows[0].noise == pytest.approx(curve.rows[1].noise / 2)
    assert curve.rows[2].bias == 0
    both = load(written(tmp_path, several)).plan()  # of a sum, whole amounts are lost too
    assert both.tables[0].bias is not None
    assert both.tables[0].bias > math.sqrt(squares.mean()) * MEDIAN
    told = " ".join(" ".join(line.text for line in plan_summary(both)).split())
    assert "! At most 2 records of each person are counted: with 5 records errors would cost USD" in told


def test_one_screen_says_what_is_counted_and_what_is_left_out(tmp_path: Path) -> None:
    plan = load(written(tmp_path)).plan()
    [table] = plan.tables
    assert table.bias is not None
    shown = [line.text for line in plan_summary(plan)]
    heads = next(line for line in shown if line.startswith("table "))
    assert "left out" in heads
    assert "margin" not in heads  # of the noise alone
    row = next(line for line in shown if line.startswith("cost by region"))
    assert quantity(table.root_mean_squared_error, "USD") in row
    assert quantity(table.bias, "USD") in row
    assert f"Counted in 'cost by region': {WORDS.format('100,000')}." in " ".join(shown)
    silent = load(written(tmp_path, (LAW, ""))).plan()
    told = " ".join(" ".join(line.text for line in plan_summary(silent)).split())
    assert "! Cost is counted up to USD 100,000: an unknown part of 'cost by region' is left out" in told


# The bound that is chosen.


def test_the_best_bound_is_as_planned_in_simulated_releases(tmp_path: Path) -> None:
    """Against the unclipped truth, at the chosen bound, at half and at twice of it, at one loss."""
    limit = ("\n[preferences]", "\n[limits]\nlargest_epsilon = 0.5\n\n[preferences]")
    plan = load(written(tmp_path / "best", BEST, limit)).plan()
    bound = int(plan.program.bounds["cost"])
    draws, errors, planned = np.random.default_rng(5), dict[int, float](), dict[int, float]()
    costs = draws.lognormal(math.log(MEDIAN), SPREAD, (300, PEOPLE))
    inside = draws.random((300, PEOPLE))
    edges = np.cumsum([0.0, *REGIONS.values()])
    for upper in (bound, bound // 200 * 100, 2 * bound):
        at = load(written(tmp_path / str(upper), ("upper = 100000", f"upper = {upper}"), limit)).plan()
        assert at.loss == plan.loss
        noise = release_spec_of_plan(at).groups[0].noises[0].distribution()
        lost = 100 * np.rint(np.minimum(costs, upper) / 100) - costs
        regions = [(lost * ((low <= inside) & (inside < high))).sum(axis=1) for low, high in pairwise(edges)]
        squares = (np.array(regions) + 100 * noise.draw(draws, (3, 300))) ** 2
        errors[upper] = math.sqrt(squares.mean())
        planned[upper] = at.tables[0].root_mean_squared_error_with_bias or math.nan
    assert planned[bound] == plan.tables[0].root_mean_squared_error_with_bias
    assert errors == pytest.approx(planned, rel=0.1)
    assert errors[bound] == min(errors.values())
    assert planned[bound] == min(planned.values())


def test_a_bound_at_the_end_of_those_compared_is_not_called_the_best_there_is(tmp_path: Path) -> None:
    few = (*BEST, "grid = 100", "grid = 100, bounds = [1000, 2000]")
    plan = load(written(tmp_path, few[:2], few[2:])).plan()
    [curve] = plan.extensions.clipping
    assert float(curve.bound) == 2000
    assert curve.at_the_end == "largest"
    words = " ".join(plan_words(plan).split())
    assert "no other that was compared costs less; it is the largest of them, and a larger one may cost less" in words
    assert ", the largest that was compared: a number is then" in clipping(curve, "USD").title


def test_no_other_bound_leaves_society_better_off(tmp_path: Path) -> None:
    """Brute force: every bound that is compared, stated and planned by itself."""
    plan = load(written(tmp_path / "best", BEST)).plan()
    curve = plan.extensions.clipping[0]
    assert curve.chosen
    assert curve.recommended is not None
    assert curve.recommended.bound == curve.bound == plan.program.bounds["cost"]
    assert "distribution of cost" in plan.robustness.exact  # it decides the bound, and with it the choice
    near = [row.bound for row in curve.rows if 0.4 < row.bound / curve.bound < 2.5][::2]
    losses = [load(written(tmp_path / "b", ("upper = 100000", f"upper = {b}"))).plan().choice.welfare for b in near]
    assert plan.choice.welfare >= max(losses) * (1 + 1e-3)
    assert f"cost is counted up to USD {int(curve.bound):,}" in " ".join(plan_words(plan).split()).replace(
        "Cost", "cost"
    )
    stated = load(written(tmp_path / "c")).plan()
    assert "distribution of cost" not in stated.robustness.exact
    assert "It is recommended" in " ".join(plan_words(stated).split())


def test_a_chosen_bound_is_signed_published_and_read_back(tmp_path: Path) -> None:
    file = written(tmp_path, BEST)
    plan = load(file).plan()
    bound = plan.program.bounds["cost"]
    assert plan.exact["bounds"] == {"cost": str(bound)}
    saved = tmp_path / "plan"
    saved.mkdir()
    (saved / "plan.json").write_text(json.dumps(plan_document(plan)), encoding="utf-8")
    for path, content in strategy_files(plan).items():
        (saved / path).parent.mkdir(exist_ok=True)
        (saved / path).write_bytes(content)
    read = load_plan(saved / "plan.json")
    assert read.bounds == {"cost": bound}
    order = release_spec_of(read, read_program(file, read.bounds), saved)
    assert order.domain.attribute("cost").upper == bound
    with pytest.raises(Refusal, match="program"):
        release_spec_of(read, read_program(file, {"cost": bound + 100}), saved)
    with pytest.raises(Refusal, match="chosen by a plan"):
        read_program(file)
    release = released(plan, tmp_path, records(2))
    assert release.facts["bounds"] == {"cost": str(bound)}
    again = load_release(release.folder)
    assert again.interval("cost by region", region="east").covers == f"only {WORDS.format(f'{int(bound):,}')}"
    _, costs = people(2)
    everybody = again.interval("cost by region", probability="0.999999")
    assert np.rint(np.minimum(costs, float(bound)) / 100).sum() * 100 in everybody
    assert any("computed again" in finding.claim for finding in audit(release.folder).findings)


def test_bounds_that_are_stated_are_compared_exactly(tmp_path: Path) -> None:
    grid = ("upper = 100000, grid = 100", 'upper = "best", grid = 0.1, bounds = [4000.1, 12000.7, 40000]')
    plan = load(written(tmp_path, grid)).plan()
    assert plan.program.bounds["cost"] in {Fraction(40001, 10), Fraction(120007, 10), Fraction(40000)}
    assert [row.bound for row in plan.extensions.clipping[0].rows] == [Fraction(40001, 10), Fraction(120007, 10), 40000]


def test_a_bound_that_nothing_decides_is_refused(tmp_path: Path) -> None:
    counts = ('sum_of = "cost"\nunit   = "USD"\n', ""), ("USD per USD^2", "USD per person^2")
    several = ('source          = "costs.csv"', 'source = "costs.csv"\nidentifier = "name"\nmost_records_per_unit = 2')
    for changes, words in ((counts, "no table adds"), ((several,), "not known of every table")):
        with pytest.raises(Refusal, match=words) as refused:
            load(written(tmp_path, BEST, *changes)).plan()
        assert refused.value.where is not None
        assert refused.value.where.key == "population.attributes.cost.upper"


# A first release buys the distribution.


def test_noise_in_the_highest_bins_is_no_tail() -> None:
    """3 of 3,000 with half a million each would be half of all amounts; they are noise of a standard error of 3."""
    bins = (("[0, 1000)", "[1000, 10000)", "[10000, 100000)", "[100000, 1000000]", "unknown"),)
    estimates, errors = np.array([1_000.0, 1_900.0, 100.0, 3.0, 40.0]), np.full(5, 3.0)
    noisy = PublishedTable("bins", "person", ("cost",), bins, estimates, errors, np.rint(estimates).astype(np.int64))
    found = _published("bins", noisy)
    assert found.pieces[-1][:2] == (10_000.0, 100_000.0)
    assert [share for _, _, share in found.pieces] == pytest.approx([1000 / 3003, 1900 / 3003, 103 / 3003])
    sure = replace(noisy, standard_errors=np.full(5, 1.0))
    assert [*_published("bins", sure).pieces[-1]] == pytest.approx([100_000.0, 1_000_000.0, 3 / 3003])


def test_a_published_histogram_is_a_distribution(tmp_path: Path) -> None:
    bins = "{ logarithmic_bins = { least = 100, largest = 1000000, bins_per_decade = 12 }, outside = 'clamp' }"
    first = (
        (f"{{ lower = 0, upper = 100000, grid = 100{LAW} }}", bins),
        ('by     = ["region"]\nsum_of = "cost"\nunit   = "USD"\n', 'by = ["cost"]\n'),
        ('1e-4, unit = "USD per USD^2"', '500000, unit = "USD per person^2"'),
        ("cost by region", "people by cost"),
    )
    folder = tmp_path / "first"
    release = released(load(written(folder, *first)).plan(), folder, records(1))
    law = f', distribution = {{ release = "../first/out/{release.folder.name}", table = "people by cost" }}'
    second = load(written(tmp_path / "second", (LAW, law), BEST)).plan()
    known = load(written(tmp_path / "known", BEST)).plan()
    for bound in (500.0, 3_000.0, 10_000.0):
        found, true = (each.program.clipping.amounts["cost"].excess(bound)[0] for each in (second, known))
        assert found == pytest.approx(true, rel=0.1)
    assert 0.1 < second.program.bounds["cost"] / known.program.bounds["cost"] < 2
    source = second.extensions.clipping[0].source
    assert source is not None
    assert source.startswith(f"table 'people by cost' of release {release.facts['release']} of costs, which tells")
    for old, new, words in (("people by cost", "others", "no table"), ("../first/out", "../nowhere", "release")):
        with pytest.raises(Refusal, match=words) as refused:
            load(written(tmp_path / "bad", (LAW, law.replace(old, new)), BEST))
        assert refused.value.where is not None


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (f"upper = 100000, grid = 100{LAW}", 'upper = "best", grid = 100', "what a bound leaves out"),
        (LAW, ', distribution = { quantiles = { 0.5 = 3 }, source = "x" }', "share of records"),
        (LAW, ', distribution = { quantiles = { "0.5" = 3, "1" = 9 }, source = "x" }', "share 0"),
        (LAW, ', distribution = { quantiles = { "0" = 3, "1" = 2 }, source = "x" }', "the larger the share"),
        (LAW, ', distribution = { quantiles = { "no" = 3, "1" = 2 }, source = "x" }', "between 0 and 1"),
        (LAW, ', distribution = { law = "pareto", least = 900, tail_index = 1.9, source = "x" }', "no mean"),
        (LAW, ', distribution = { law = "pareto", least = 900, source = "x" }', "tail_index"),
        (
            LAW,
            ', distribution = { law = "lognormal", median = 9, spread = 1, least = 9, source = "x" }',
            "says nothing",
        ),
        (LAW, ', distribution = { law = "lognormal", median = 9, spread = 1 }', "source"),
        (LAW, ', distribution = { source = "x" }', "exactly one way"),
        (LAW, LAW + ', outside = "drop"', "not clipped"),
        (LAW, LAW + ", bounds = [50, 1000]", "miss its grid"),
        ("lower = 0, upper = 100000", 'lower = 10000000000, upper = "best"', "no bound of 'cost'"),
        ("north = 5", "nowhere = 5", "not a level"),
        ("north = 5, east = 3, south = 2", "north = 0", "all shares are 0"),
        ('sum_of = "cost"', 'sum_of = "cost"\nat_bound_of = "cost"', "not added up"),
        ('sum_of = "cost"\nunit   = "USD"', 'at_bound_of = "region"', "no numbers to sum"),
        (
            'unit            = "person"',
            'unit = "person"\nrecords_per_unit = { shares = { "1" = 1 }, source = "x" }',
            "names a unit",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(old: str, new: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match=words) as refused:
        load(written(tmp_path, (old, new)))
    assert refused.value.where is not None
    assert refused.value.where.line is not None


def test_records_spread_over_the_levels_of_an_amount_as_its_distribution_says(tmp_path: Path) -> None:
    """Levels 0, 10 and 20 hold amounts up to 5, up to 15 and above: 1/4, 1/2·(1 + 1/6) − 1/4, and the rest.

    What is left out of a number is then what a simulation of people leaves out.
    """
    quantiles = 'distribution = { quantiles = { "0" = 0, "0.5" = 10, "1" = 40 }, source = "a report" }'
    text = PROGRAM.replace("[population.attributes]\n", "[population.attributes]\nINCOME\n").replace(
        "INCOME", f"income = {{ lower = 0, upper = 20, grid = 10, {quantiles} }}"
    )
    text = text.replace("upper = 100000", "upper = 5000").replace('by     = ["region"]', 'by     = ["income"]')
    path = tmp_path / "program.toml"
    path.write_text(text, encoding="utf-8")
    program = load(path)
    assert program.clipping.spread("income") == pytest.approx([1 / 4, 1 / 3, 5 / 12])
    missing = tmp_path / "missing.toml"
    missing.write_text(text.replace("lower = 0, upper = 20", 'missing = "?", lower = 0, upper = 20'), encoding="utf-8")
    assert load(missing).clipping.spread("income") is None  # how many answers are missing is not stated
    [curve] = [each for each in program.plan().extensions.clipping if each.name == "cost"]
    assert curve.assumed == ()
    draws = np.random.default_rng(8)
    squared = []
    for _ in range(400):
        costs = MEDIAN * np.exp(SPREAD * draws.standard_normal(PEOPLE))
        halves = draws.random(PEOPLE)
        income = np.where(halves < 0.5, 20 * halves, 10 + 60 * (halves - 0.5))
        level = np.digitize(income, [5, 15])
        squared.append(np.square(np.bincount(level, weights=np.maximum(costs - 5000, 0), minlength=3)).sum())
    found = program.clipping.squared_bias("cost by region")
    assert found == pytest.approx(np.mean(squared), rel=4 * np.std(squared) / np.mean(squared) / 20)


def lognormal_excess(bound: float) -> tuple[float, float]:
    """E[(X − u)⁺] and E[((X − u)⁺)²] of the stated law, by the normal integral."""

    def beyond(power: int) -> float:  # E[Xᵖ; X > u]
        distance = (math.log(bound / MEDIAN) - power * SPREAD**2) / SPREAD
        return MEDIAN**power * math.exp((power * SPREAD) ** 2 / 2) * math.erfc(distance / math.sqrt(2)) / 2

    none, one, two = (beyond(power) for power in range(3))
    return one - bound * none, two - 2 * bound * one + bound**2 * none


def test_a_bias_counts_as_a_share_of_what_is_expected_where_errors_do(tmp_path: Path) -> None:
    """Σ E[B²]/m² over regions of 5, 3 and 2 in ten; B adds up what each of n people has beyond 5,000."""
    numbers = {"north": 12e6, "east": 9e6, "south": 2e6}
    rows = [f"{region},{amount:.0f}" for region, amount in numbers.items()]
    (tmp_path / "last.csv").write_text("\n".join(["region,number", *rows]) + "\n", encoding="utf-8")
    worth = 'value_of_accuracy = { value = 1e-4, unit = "USD per USD^2", source = "made up" }'
    relative = 'loss = "relative"\npublic_numbers = "last.csv"\n' + worth.replace("1e-4", "1e6").replace(
        "USD per USD^2", "USD"
    )
    plan = load(written(tmp_path, ("upper = 100000", "upper = 5000"), (worth, relative))).plan()
    mean, square = lognormal_excess(5000)
    bias = sum(
        ((PEOPLE * share * mean) ** 2 + PEOPLE * (share * square - (share * mean) ** 2)) / numbers[region] ** 2
        for region, share in REGIONS.items()
    )
    decay = math.exp(-float(plan.loss.amount) / 50)  # one person moves a sum by up to 50 steps of 100
    noise = sum(100**2 * 2 * decay / (1 - decay) ** 2 / number**2 for number in numbers.values())
    assert plan.tables[0].data_loss == pytest.approx(1e6 * (bias + noise))
    words = " ".join(plan_words(plan).split())
    assert "That is of noise alone: what clipping leaves out is not in it." in words


WORST = (
    'value_of_accuracy = { value = 1e-4, unit = "USD per USD^2"',
    'loss = "worst-case"\nmiss_probability = 0.05\nvalue_of_accuracy = { value = 1, unit = "USD per USD"',
)


def test_a_bias_has_no_part_in_a_worst_error_and_no_bound_is_chosen_by_it(tmp_path: Path) -> None:
    plan = load(written(tmp_path, ("upper = 100000", "upper = 5000"), WORST)).plan()
    [row], [curve] = plan.extensions.losses, plan.extensions.clipping
    assert plan.tables[0].data_loss == pytest.approx(row.amount)
    assert plan.tables[0].bias == next(each.bias for each in curve.rows if each.bound == 5000)
    assert curve.recommended is None
    words = " ".join(plan_words(plan).split())
    assert "has no part in what errors of 'cost by region' cost" in words
    assert "It is recommended" not in words
    with pytest.raises(Refusal, match="the bound of 'cost' cannot be chosen") as refused:
        load(written(tmp_path, ("upper = 100000", 'upper = "best"'), WORST)).plan()
    assert refused.value.where is not None
    assert refused.value.where.key == "workload[0].loss"


COUNTED = ('sum_of = "cost"\nunit   = "USD"\n', ""), ("USD per USD^2", "USD per person^2")
NAMED = (('unit            = "person"\n', 'unit            = "person"\nidentifier = "id"\n'),)


@pytest.mark.parametrize(
    ("changes", "why"), [(COUNTED, "no table adds all of it up"), (NAMED, "drops records of which nothing is stated")]
)
def test_a_bound_that_cannot_be_chosen_is_refused_before_the_search(
    tmp_path: Path, changes: tuple[tuple[str, str], ...], why: str
) -> None:
    path = written(tmp_path, BEST, *changes)
    with pytest.raises(Refusal, match="the bound of 'cost' cannot be chosen") as refused:
        load(path).plan(progress=lambda told: pytest.fail(f"it was searched: {told}"))
    assert why in refused.value.why
    assert refused.value.where is not None
    assert refused.value.where.key == "population.attributes.cost.upper"
