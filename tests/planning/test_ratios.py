"""Means and shares as tables of their own: read, priced, published, read back."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import openpyxl
import pytest

from dualmandate import load, load_release
from dualmandate.apps.publish import publish
from dualmandate.errors import IncompatibleUnits, InvalidRelease, InvalidValue, InvalidWorkload, MissingKey, Refusal
from dualmandate.ledger import Account, Approval, make_key, open_ledger
from dualmandate.planning.plan import Plan
from dualmandate.planning.technology import values_of
from dualmandate.population import PrivacyLoss
from dualmandate.publication.data_dictionary import DIVIDING
from dualmandate.publication.release import Release
from dualmandate.publication.superpopulation import COUNTED, COVERED
from dualmandate.publication.table_intervals import OF_COUNTED, SIMULATED
from dualmandate.publication.writing import Parquet, ReleaseSheet
from dualmandate.report.documents.ledger import ReleaseDocument
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_words import plan_words

PROGRAM = """\
[program]
schema = 1
name   = "insured"

[population]
account         = "insured"
unit            = "person"
neighbors       = "add-or-remove"
population_size = { value = 2400, unit = "person", source = "made up" }
source          = "insured.csv"
attributes.region = ["north", "east", "south", "west"]
attributes.sex    = ["f", "m"]
attributes.cost   = { lower = 0, upper = 1000, grid = 50 }

[[workload]]
name = "persons by region"
by   = ["region"]
value_of_accuracy = { value = 2, unit = "USD per person^2", source = "made up" }

[[workload]]
name = "cost by region"
by   = ["region"]
sum_of = "cost"
unit = "USD"
value_of_accuracy = { value = 0, unit = "USD per USD^2", source = "made up" }

[[workload]]
name = "persons"
value_of_accuracy = { value = 0.5, unit = "USD per person^2", source = "made up" }

[[ratios]]
name          = "mean cost by region"
numerator     = "cost by region"
denominator   = "persons by region"
typical_value = { value = 400, unit = "USD per person", source = "made up" }
value_of_accuracy = { value = 3, unit = "USD per (USD per person)^2", source = "made up" }

[[ratios]]
name        = "share of each region"
numerator   = "persons by region"
denominator = "persons"

[mechanism]
noise    = "geometric"
strategy = "workload"
measured = "apart"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = { value = 2, unit = "USD per person per epsilon", source = "made up" }
"""
SECOND = '[[ratios]]\nname        = "share'
MEAN_WORTH = 'value_of_accuracy = { value = 3, unit = "USD per (USD per person)^2", source = "made up" }'


def planned(folder: Path, text: str = PROGRAM) -> Plan:
    (folder / "program.toml").write_text(text, encoding="utf-8")
    return load(folder / "program.toml").plan()


def refused(folder: Path, text: str) -> Refusal:
    with pytest.raises(Refusal) as found:
        planned(folder, text)
    where = found.value.where
    assert where is not None
    assert where.file is not None
    assert where.line is not None
    return found.value


def test_errors_are_linearized_at_public_levels_and_priced_by_those_of_both_tables(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    persons, cost, everybody = (table.root_mean_squared_error for table in plan.tables)
    mean, share = plan.ratios
    assert (mean.unit, mean.typical_value, mean.typical_denominator) == ("USD per person", 400, 600)
    assert (share.unit, share.typical_value, share.typical_denominator) == ("share", 0.25, 2400)
    assert mean.root_mean_squared_error == pytest.approx(math.hypot(cost, 400 * persons) / 600, rel=1e-9)
    assert share.root_mean_squared_error == pytest.approx(math.hypot(persons, 0.25 * everybody) / 2400, rel=1e-9)
    assert mean.data_loss == pytest.approx(3 * 4 * mean.root_mean_squared_error**2, rel=1e-9)
    assert (share.data_loss, share.root_mean_squared_consequence) == (0.0, None)
    priced = sum(row.data_loss for row in plan.tables) + sum(row.data_loss for row in plan.ratios)
    assert priced == pytest.approx(plan.welfare.data_loss(plan.frontier, float(plan.choice.loss)), rel=1e-5)
    # The same worth, stated for the tables by hand, is the same choice and the same shares.
    added = {'2, unit = "USD per person^2"': 3 * 400**2 / 600**2, '0, unit = "USD per USD^2"': 3 / 600**2}
    by_hand = PROGRAM.replace(MEAN_WORTH, "")
    for stated, more in added.items():
        by_hand = by_hand.replace(stated, f"{float(stated[0]) + more}{stated[1:]}")
    other = planned(tmp_path, by_hand)
    assert other.choice.epsilon == pytest.approx(plan.choice.epsilon, rel=1e-9)
    assert values_of(other.welfare) == pytest.approx(values_of(plan.welfare))
    moved = {row.name: row for row in plan.robustness.elasticities}["value_of_accuracy of mean cost by region"]
    assert (moved.unit, moved.elasticity > 0) == ("USD per (USD per person)^2", True)


def test_what_society_would_pay_for_a_ratio_may_be_a_consequence(tmp_path: Path) -> None:
    worth = 'consequence = { value = 300, unit = "USD^2 per (USD per person)^2", source = "made up" }'
    price = 'price_of_squared_misallocation = { value = 0.01, unit = "USD per USD^2", source = "made up" }\n'
    plan = planned(tmp_path, PROGRAM.replace(MEAN_WORTH, worth) + price)
    mean = plan.ratios[0]
    assert plan.choice.epsilon == pytest.approx(planned(tmp_path).choice.epsilon)
    assert mean.root_mean_squared_consequence == pytest.approx(math.sqrt(300) * mean.root_mean_squared_error)


def test_a_plan_says_it_in_words_and_in_its_document(tmp_path: Path) -> None:
    plan = planned(tmp_path)
    document = json.loads(json.dumps(plan_document(plan), allow_nan=False))
    assert [row["method"] for row in document["ratios"]] == ["linearized", "linearized"]
    assert (
        document["ratios"][0]["half_width"] == plan.ratios[0].half_width > 1.9 * plan.ratios[0].root_mean_squared_error
    )
    words = " ".join(plan_words(plan).split())
    assert "'mean cost by region', 4 numbers of 'cost by region' over 'persons by region'" in words
    assert "(linearized around USD 400 per person)" in words


def test_shares_of_the_denominator_move_the_levels(tmp_path: Path) -> None:
    shares = (
        'denominator_shares = { region = { north = 0.4, east = 0.1, south = 0.3, west = 0.2 } }\nsource = "made up"\n'
    )
    even, uneven = planned(tmp_path), planned(tmp_path, PROGRAM.replace(MEAN_WORTH, MEAN_WORTH + "\n" + shares))
    persons, cost = (table.root_mean_squared_error for table in uneven.tables[:2])
    levels = 2400 * np.array([0.4, 0.1, 0.3, 0.2])
    expected = math.sqrt(np.mean((cost**2 + (400 * persons) ** 2) / levels**2))
    assert uneven.ratios[0].root_mean_squared_error == pytest.approx(expected, rel=1e-9)
    assert uneven.choice.epsilon > even.choice.epsilon  # the smallest region is the more precious


def test_one_strategy_for_both_tables_counts_their_covariance(tmp_path: Path) -> None:
    """Every cell is measured: the error of a mean is that of Σ (cost − r)·noise over the cells of a region."""
    plan = planned(tmp_path, PROGRAM.replace('"workload"', '"identity"').replace('measured = "apart"\n', ""))
    variance = plan.tables[2].root_mean_squared_error ** 2 / (4 * 2 * 21)
    steps = np.arange(0, 1001, 50)
    expected = math.sqrt(2 * np.sum((steps - 400) ** 2) * variance) / 600
    assert plan.ratios[0].root_mean_squared_error == pytest.approx(expected, rel=1e-6)
    share = math.sqrt(42 * variance * (0.75**2 + 3 * 0.25**2)) / 2400
    assert plan.ratios[1].root_mean_squared_error == pytest.approx(share, rel=1e-6)


MINE = 'source = "me"\n'
UNEVEN = "denominator_shares = { region = { north = 1 } }\n"
UPSIDE_DOWN = 'numerator   = "persons"\ndenominator = "persons by region"'
PARTICIPATION = "[participation]\nrate_without_loss = 1\ndecline_per_epsilon = 0.1\n"
CHANGES: list[tuple[list[tuple[str, str]], type[Refusal], str]] = [
    ([('denominator   = "persons by', 'denominator   = "people by')], InvalidValue, "did you mean"),
    ([('"cost by region"\ndenom', '"wages"\ndenom')], InvalidValue, "called 'wages'"),
    ([('"mean cost by region"', '"persons"')], InvalidValue, "name of its own"),
    ([('"mean cost by region"', '"share of each region"')], InvalidValue, "own name"),
    ([('denominator = "persons"', 'denominator = "persons by region"')], InvalidWorkload, "another"),
    (
        [('numerator   = "persons by region"\ndenominator = "persons"', UPSIDE_DOWN)],
        InvalidWorkload,
        "add a [[workload]]",
    ),
    ([("typical_value = {", "#")], MissingKey, 'state the typical_value, in "USD per person"'),
    ([('name = "persons"\n', 'name = "persons"\nwhere = { sex = "f" }\n')], MissingKey, "total of 'persons'"),
    ([('400, unit = "USD per person"', '400, unit = "USD"')], IncompatibleUnits, "USD per person"),
    ([("USD per (USD per person)^2", "USD per USD^2")], IncompatibleUnits, "(USD per person)^2"),
    ([(SECOND, UNEVEN + MINE + SECOND)], InvalidValue, "every level"),
    ([(SECOND, UNEVEN.replace("region", "sex") + MINE + SECOND)], InvalidValue, "every level"),
    ([(SECOND, UNEVEN + SECOND)], MissingKey, "source"),
    ([('"cost"\n', '"cost"\nloss = "absolute"\n'), ("per USD^2", "per USD")], InvalidValue, 'loss = "squared"'),
    ([("[mechanism]", PARTICIPATION + MINE + "[mechanism]")], InvalidValue, "leave one"),
]


@pytest.mark.parametrize(("changes", "kind", "words"), CHANGES)
def test_what_cannot_be_a_ratio_is_refused_with_its_place(
    changes: list[tuple[str, str]], kind: type[Refusal], words: str, tmp_path: Path
) -> None:
    text = PROGRAM
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    found = refused(tmp_path, text)
    assert isinstance(found, kind)
    assert words in found.instead


def test_a_denominator_spreads_as_its_attribute_is_expected_to(tmp_path: Path) -> None:
    """As if stated for the ratio itself; where nobody is expected, a share must be stated."""

    def spread(shares: str) -> str:
        known = f'attributes.region = {{ levels = ["north", "east", "south", "west"], expected = {{ {shares} }} }}'
        return PROGRAM.replace('attributes.region = ["north", "east", "south", "west"]', known)

    stated = 'denominator_shares = { region = { north = 0.4, east = 0.3, south = 0.2, west = 0.1 } }\nsource = "x"\n'
    above = 'denominator   = "persons by region"\n'
    expected = planned(tmp_path, spread('shares = { north = 8, east = 6, south = 4, west = 2 }, source = "x"'))
    by_hand = planned(tmp_path, PROGRAM.replace(above, above + stated))
    assert expected.ratios[0].half_width == pytest.approx(by_hand.ratios[0].half_width)
    assert expected.ratios[0].half_width > 1.5 * planned(tmp_path, PROGRAM).ratios[0].half_width
    with pytest.raises(MissingKey, match="every level of 'region'"):
        planned(tmp_path, spread('shares = { north = 8, east = 6 }, source = "x"'))


def released(folder: Path, text: str) -> Path:
    plan = planned(folder, text)
    draws = np.random.default_rng(5)
    regions, sexes = ("north", "east", "south", "west"), ("f", "m")
    rows = [f"{regions[i % 4]},{sexes[i % 2]},{50 * int(draws.integers(0, 17))}\n" for i in range(2400)]
    (folder / "insured.csv").write_text("region,sex,cost\n" + "".join(rows), encoding="utf-8")
    ledger = open_ledger(folder / "state" / "ledger.sqlite", make_key(folder / "state" / "key"), create=True)
    ledger.open_account(Account("insured", "person", PrivacyLoss.pure(100)), by="Ann")
    ledger.approve(Approval("insured", plan.digest, plan.charge, "person", by="Ben"))
    assert plan.program.source is not None
    return publish(plan, plan.program.source, ledger, out=folder / "out", by="Eve", unchecked=True).folder


def test_a_release_publishes_ratios_with_intervals_in_every_form(tmp_path: Path) -> None:
    forms = '[publication]\nformats = ["csv", "sdmx-csv"]\n'
    draw = 'by   = ["region"]\nestimates = "superpopulation"\nvalue_of_accuracy'  # of the counts; ratios are of people
    folder = released(tmp_path, PROGRAM.replace('by   = ["region"]\nvalue_of_accuracy', draw) + forms)
    facts = json.loads((folder / "release.json").read_text(encoding="utf-8"))
    ReleaseDocument.model_validate(facts)
    release = load_release(folder)
    assert release.ratios == ("mean cost by region", "share of each region")
    mean = release.table("mean cost by region")
    errors = ["standard_error", "lower_90", "upper_90", "lower_95", "upper_95"]
    assert mean.column_names == ["region", "estimate", *errors, "of_whole_numbers", "unit", "what_is_counted"]
    above, below = (release.published(name) for name in ("cost by region", "persons by region"))
    assert mean["estimate"].to_numpy() == pytest.approx(above.estimates / below.estimates)
    assert above.values is not None
    assert below.values is not None
    assert mean["of_whole_numbers"].to_numpy() == pytest.approx(above.values / below.values)
    north = release.interval("mean cost by region", region="north")
    assert (north.lower, north.upper) == (mean["lower_95"][0].as_py(), mean["upper_95"][0].as_py())
    tighter = release.interval("mean cost by region", region="north", probability=0.9)
    assert (tighter.lower, tighter.upper) == (mean["lower_90"][0].as_py(), mean["upper_90"][0].as_py())
    assert north.lower < tighter.lower < tighter.upper < north.upper
    assert north.lower < release.estimate("mean cost by region", region="north") < north.upper
    both = release.interval("mean cost by region", region=["north", "east"])
    assert both.estimate == pytest.approx(above.estimates[:2].sum() / below.estimates[:2].sum())
    assert both.half_width < north.half_width
    whole = release.interval("share of each region")
    assert whole.estimate == pytest.approx(below.estimates.sum() / release.estimate("persons"))
    together = release.simultaneous("mean cost by region")
    assert np.all(together.lower < mean["lower_95"].to_numpy())
    lines = (folder / facts["ratios"][0]["csv"]).read_text(encoding="utf-8").splitlines()
    clipped = "cost by region: cost, each person's counted up to USD 1,000, in steps of USD 50"
    assert lines[0].split(",") == mean.column_names
    assert mean["what_is_counted"][0].as_py() == clipped
    assert (release.facts["ratios"][0]["clipped"], together.covers) == (clipped, f"{COUNTED}; only {clipped}")
    assert whole.covers == COUNTED
    assert release.interval("persons by region").covers == COVERED
    said = {table["name"]: table["intervals"]["values"] for table in facts["tables"]}
    assert (said["persons by region"], said["persons"]) == (OF_COUNTED, SIMULATED)  # whole numbers know of no draw
    assert (folder / facts["ratios"][0]["sdmx-csv"]).exists()
    page = (folder / "index.html").read_text(encoding="utf-8").replace("&#39;", "'")
    assert f"'cost by region' over 'persons by region', in USD per person; what is counted: {clipped}." in page
    assert "'persons by region' over 'persons', as a share" in page
    assert "The intervals belong to the ratio of the estimates" in page
    assert str(north).startswith(f"USD {north.estimate:.1f} per person, standard error ")
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert f"- mean cost by region: {clipped}.\n" in readme
    assert DIVIDING in readme
    dictionary = json.loads((folder / "data_dictionary.json").read_text(encoding="utf-8"))["tables"]
    meanings = {each["table"]: {column["name"]: column["meaning"] for column in each["columns"]} for each in dictionary}
    assert meanings["persons by region"]["estimate"] == "unbiased estimate; for analysis"
    assert meanings["mean cost by region"]["estimate"].startswith("ratio of two unbiased estimates, a little biased")
    assert "90 % interval of the ratio of the estimates" in meanings["mean cost by region"]["upper_90"]
    said = openpyxl.load_workbook(folder / facts["ratios"][0]["xlsx"])["Notes"]["A"]
    assert DIVIDING in {cell.value for cell in said}
    assert not any(cell.value.startswith(("For print", "Totals")) for cell in said)  # ratios do not add up
    (folder / facts["ratios"][0]["parquet"]).write_bytes(b"")
    with pytest.raises(InvalidRelease):
        load_release(folder)


def test_ratios_that_were_published_with_one_interval_are_read_under_the_names_of_today(tmp_path: Path) -> None:
    numbers = dict.fromkeys(("estimate", "standard_error", "lower", "upper", "of_whole_numbers"), np.array([2.0, 3.0]))
    numbers |= {"lower": np.array([1.0, -math.inf]), "upper": np.array([4.0, math.inf])}
    sheet = ReleaseSheet("mean", "USD per person", ("lower",), (("a", "b"),), numbers)  # a breakdown of that name, too
    [file] = Parquet().write(sheet, tmp_path / "mean")
    release = Release(
        tmp_path, {"tables": [], "ratios": [{"name": "mean", "parquet": file.name}]}, lambda _: NotImplemented
    )
    found = release["mean"].to_pandas()
    assert [*found] == ["lower", "estimate", "standard_error", "lower_95", "upper_95", "of_whole_numbers", "unit"]
    assert found["lower_95"].tolist() == [1.0, -math.inf]
    assert found["upper_95"].tolist() == [4.0, math.inf]


def test_an_exact_total_divides_without_noise(tmp_path: Path) -> None:
    text = PROGRAM.replace("add-or-remove", "replace-one").replace(
        'denominator = "persons"', 'denominator = "number of records"'
    )
    text = text.replace('source          = "ins', 'dropping_is_public = true\nsource          = "ins')
    alone = text.index('[[workload]]\nname = "persons"\n')
    text = text[:alone] + text[text.index("[[ratios]]") :]
    plan = planned(tmp_path, text)
    persons = plan.tables[0].root_mean_squared_error
    assert plan.ratios[1].root_mean_squared_error == pytest.approx(persons / 2400)
    release = load_release(released(tmp_path, text))
    share = release.interval("share of each region", region="south")
    persons_there = release.interval("persons by region", region="south")
    assert share.is_exact
    assert (share.lower, share.upper) == (persons_there.lower / 2400, persons_there.upper / 2400)


def test_estimates_that_rest_on_all_tables_share_their_noise(tmp_path: Path) -> None:
    """Tables that nest are estimated together, so that regions add up to everybody: a share of all is exactly 1."""
    cost = PROGRAM[PROGRAM.index('[[workload]]\nname = "cost') : PROGRAM.index('[[workload]]\nname = "persons"')]
    mean = PROGRAM[PROGRAM.index('[[ratios]]\nname          = "mean') : PROGRAM.index(SECOND)]
    release = load_release(released(tmp_path, PROGRAM.replace(cost, "").replace(mean, "")))
    assert release.facts["estimated_together"]
    everything = release.interval("share of each region")
    assert (everything.lower, everything.upper) == pytest.approx((1.0, 1.0), abs=1e-6)
    one = release.interval("share of each region", region="north")
    assert one.upper - one.lower > 1e-4
