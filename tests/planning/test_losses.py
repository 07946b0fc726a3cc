"""Programs whose errors do not simply count squared: losses, decisions, wealth and superpopulations, by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from dualmandate.errors import IncompatibleUnits, InvalidFile, InvalidValue, MissingKey, Refusal
from dualmandate.frontier import private_multiplicative_weights
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.population.wording import number
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.plan_words import plan_words

PROGRAM = """
[program]
schema = 1
name = "regions"

[population]
account = "residents"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 1e5, unit = "people", source = "register" }
attributes.region = ["north", "east", "south", "west"]

[[workload]]
name = "people"
by = ["region"]
TABLE

[mechanism]
noise = "NOISE"
strategy = "workload"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 0.05, unit = "USD per person per epsilon", source = "assumed" }
"""
COST = 5000  # USD per epsilon, of everybody
TAIL = 'loss = "tail"\nthreshold = { value = 5, unit = "person", source = "s" }\n'
WORST = 'loss = "worst-case"\nmiss_probability = 0.05\n'
EXPECTED = 'loss = "relative"\nexpected_number = { value = 25000, unit = "person", source = "s" }\n'
RELATIVE = 'loss = "relative"\npublic_numbers = "last.csv"\n'
DECISION = """loss = "absolute"
public_numbers = "last.csv"
[workload.decision]
per_head = { value = 1000, unit = "USD per person", source = "law" }
repetitions = 100
"""
WEALTH = """
[[workload.wealth]]
name = "grantees"
people = 1e6
exposure = { value = 2, unit = "USD per person", source = "s" }
risk_aversion = { value = 0.001, unit = "1/USD", source = "s" }
source = "assumed"
"""
SQUARED = 'value_of_accuracy = { value = 500, unit = "USD per person^2", source = "s" }\n'
NUMBERS = {"north": 10_000, "east": 20_000, "south": 30_000, "west": 40_000}


def value(amount: float, unit: str = "USD") -> str:
    return f'value_of_accuracy = {{ value = {amount}, unit = "{unit}", source = "s" }}\n'


def planned(folder: Path, table: str, noise: str = "laplace") -> Plan:
    rows = [f"{region},{number}" for region, number in reversed(NUMBERS.items())]
    (folder / "last.csv").write_text("\n".join(["region,number", *rows]) + "\n", encoding="utf-8")
    path = folder / "program.toml"
    path.write_text(PROGRAM.replace("TABLE", table).replace("NOISE", noise), encoding="utf-8")
    return load(path).plan()


def refused(folder: Path, table: str) -> Refusal:
    with pytest.raises(Refusal) as found:
        planned(folder, table)
    assert found.value.where is not None
    assert found.value.where.line is not None
    return found.value


def test_tail_loss_is_a_price_for_each_number_off_by_too_much(tmp_path: Path) -> None:
    plan = planned(tmp_path, TAIL + value(10_000))
    assert plan.choice.epsilon == pytest.approx(math.log(4 * 5 * 10_000 / COST) / 5, rel=1e-6)
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    (row,) = document["losses"]
    assert (row["loss"], row["threshold"], row["unit"]) == ("tail", 5, "")
    assert row["amount"] == pytest.approx(4 * math.exp(-5 * float(plan.loss.amount)))
    assert document["tables"][0]["loss_measure"] == "tail"
    assert "are expected to be off by more than 5 people" in " ".join(plan_words(plan).split())


def test_a_table_that_is_noise_and_nothing_else_is_told(tmp_path: Path) -> None:
    """Harm that is bounded leaves a cheap table next to no share of the loss: its errors cost what they may anyway."""
    cheap = '[[workload]]\nname = "half"\nwhere = { region = ["north", "east"] }\n' + TAIL + value(1e-3)
    plan = planned(tmp_path, SQUARED + cheap, 'geometric"\nmeasured = "apart')
    assert plan.tables[1].root_mean_squared_error > 1e5
    [note] = [note for note in plan.notes if "noise and nothing else" in note]
    assert note.startswith("The numbers of 'half' are noise and nothing else: typically off by more than all")
    assert not [note for note in planned(tmp_path, SQUARED).notes if "noise and nothing else" in note]


def test_worst_case_loss_prices_alpha_and_stands_beside_multiplicative_weights(tmp_path: Path) -> None:
    plan = planned(tmp_path, WORST + value(1000, "USD per person"))
    constant = -math.log(1 - 0.95**0.25)
    assert plan.choice.epsilon == pytest.approx(math.sqrt(1000 * constant / COST), rel=1e-6)
    (row,) = plan_document(plan)["losses"]
    assert row["promised"] == pytest.approx(constant / float(plan.loss.amount))
    share = private_multiplicative_weights(1e5, 4, 4, failure_probability=1e-10, miss_probability=0.05)
    assert row["multiplicative_weights"][0]["worst_error"] == pytest.approx(1e5 * share.error(float(plan.loss.amount)))
    assert "no number of 'people' is off by more than 4.671 people" in " ".join(plan_words(plan).split())


def test_a_bound_above_everybody_promises_nothing_and_earlier_errors_are_not_counted(tmp_path: Path) -> None:
    existing = 'existing_error = { value = 40, unit = "person", source = "s" }\n'
    plan = planned(tmp_path, WORST + value(10, "USD per person") + existing)
    assert plan.choice.epsilon == pytest.approx(0.1 * math.sqrt(-1000 * math.log(1 - 0.95**0.25) / COST), rel=1e-6)
    words = " ".join(plan_words(plan).split())
    assert "δ = 1 × 10⁻¹⁰ promises nothing, because its bound is above all 100,000 at this epsilon." in words
    least = 3e5 * (10 * math.log(4) ** 2 / 1e5) ** (1 / 3) / plan.choice.epsilon ** (1 / 3)
    assert f"multiplicative weights with selection promises {number(least)} people at this epsilon." in words
    assert "What errors of 'people' cost is of noise alone: what was there before is not counted in it." in words
    assert "grows with the square of an error" not in words
    squared = " ".join(plan_words(planned(tmp_path, SQUARED + existing)).split())
    assert "grows with the square of an error, what was there before does not move the choice." in squared
    assert "not counted in it" not in squared


def test_what_is_done_by_hand_with_noise_that_is_not_drawn_is_marked_where_it_does_better(tmp_path: Path) -> None:
    """The worst error of whole-number noise is priced up to a step above it: Laplace noise may then look better."""
    other = '[[workload]]\nname = "all people"\n' + SQUARED
    plan = planned(tmp_path, SQUARED + other, 'geometric"\nmeasured = "apart')
    row = plan.saving.by_value
    assert row is not None
    assert row.choice is not None
    better = replace(row, choice=replace(row.choice, welfare=plan.choice.welfare / 2))
    words = " ".join(plan_words(replace(plan, saving=replace(plan.saving, by_value=better))).split())
    assert "better off, but Laplace noise is a study: it is not drawn exactly." in words
    assert "is a study: it is not drawn" not in " ".join(plan_words(plan).split())
    alike = replace(row, choice=replace(row.choice, welfare=plan.choice.welfare * (1 + 1e-12)))
    words = " ".join(plan_words(replace(plan, saving=replace(plan.saving, by_value=alike))).split())
    assert "In shares by value, by hand too, it would choose epsilon = " in words
    assert "and leave society as well off." in words
    hand = plan.saving.naive
    assert hand.choice is not None
    unfit = replace(hand, choice=replace(hand.choice, epsilon=9.0, bound_by="fitness for use"))
    words = " ".join(plan_words(replace(plan, saving=replace(plan.saving, naive=unfit))).split())
    assert "done by hand, which at this epsilon does not leave every table fit for use." in words


def test_a_rule_of_thumb_that_gives_a_table_nothing_is_no_rival(tmp_path: Path) -> None:
    """A tail is next to nothing at rho = 1, where shares by value are weighed."""
    other = '[[workload]]\nname = "all people"\n' + TAIL.replace("5", "90", 1) + value(900)
    plan = planned(tmp_path, SQUARED + other, 'gaussian"\nfailure_probability = 1e-6\nmeasured = "apart')
    row = plan.saving.by_value
    assert row is not None
    assert row.choice is None
    assert "the rule of thumb has no share for 'all people': its errors cost next to nothing at rho = 1" in row.why


def test_relative_loss_is_squared_loss_per_what_is_expected(tmp_path: Path) -> None:
    one = planned(tmp_path, EXPECTED + value(1e12))
    per_square = 1e12 / 25_000**2
    assert one.choice.epsilon == pytest.approx((4 * 4 * per_square / COST) ** (1 / 3), rel=1e-6)
    many = planned(tmp_path, RELATIVE + value(1e12))
    weight = sum(1e12 / number**2 for number in NUMBERS.values())
    assert many.choice.epsilon == pytest.approx((4 * weight / COST) ** (1 / 3), rel=1e-6)
    assert many.tables[0].data_loss == pytest.approx(2 / float(many.loss.amount) ** 2 * weight)


def test_a_decision_costs_what_it_misallocates(tmp_path: Path) -> None:
    """A linear formula: C·Σ E|error| = 1,000·4/ε at a price of 1, so that ε = √(4,000/5,000)."""
    plan = planned(tmp_path, DECISION)
    assert plan.choice.epsilon == pytest.approx(math.sqrt(0.8), rel=0.1)
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    (row,) = document["losses"]
    assert row["given_out"] == 1e8
    assert row["band"][0] < 4000 / float(plan.loss.amount) < row["band"][1]
    assert "gives out USD 100 million" in " ".join(plan_words(plan).split())
    assert any(row.name == "price_of_misallocation" for row in plan.robustness.elasticities)
    # A place on the threshold loses all with probability P(noise < 0).
    threshold = planned(tmp_path, DECISION + "threshold = 20000\n", "geometric")
    (row,) = plan_document(threshold)["losses"]
    q = math.exp(-float(threshold.loss.amount))
    assert row["amount"] == pytest.approx(2e7 * q / (1 + q), rel=0.5)


def test_value_of_accuracy_follows_from_wealth_with_taylors_error_beside_it(tmp_path: Path) -> None:
    """b = ½·r·Π²·people a number = ½·0.001·4·250,000, and s = r·Π/ε."""
    plan = planned(tmp_path, WEALTH)
    assert plan.welfare.table_values[0].value == pytest.approx(500)
    assert plan.choice.epsilon == pytest.approx((4 * 4 * 500 / COST) ** (1 / 3), rel=1e-6)
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    (row,) = document["wealth"]
    s = 0.001 * 2 / float(plan.loss.amount)
    assert row["taylor"]["largest_s"] == pytest.approx(s)
    assert row["taylor"]["exact"] == pytest.approx(-math.log1p(-(s**2)) / 0.001)
    assert row["taylor"]["trustworthy"]
    risky = planned(tmp_path, WEALTH.replace("value = 0.001", "value = 0.7").replace("1e6", "1"))
    assert "Taylor says nothing" in plan_words(risky)


def test_all_are_exposed_to_every_number(tmp_path: Path) -> None:
    every = planned(tmp_path, WEALTH.replace('source = "assumed"', 'exposed_to = "all"\nsource = "s"'), "geometric")
    assert every.welfare.table_values[0].value == pytest.approx(2000)
    (row,) = every.extensions.wealth
    assert row.taylor is not None
    variance = every.technology.frontier.table_errors(float(every.loss.amount))["people"]
    assert row.taylor.taylor == pytest.approx(0.5 * 0.001 * 4 * variance)


def test_a_superpopulation_moves_no_choice_and_widens_what_numbers_are_within(tmp_path: Path) -> None:
    plain = planned(tmp_path, SQUARED)
    drawn = planned(tmp_path, SQUARED + 'estimates = "superpopulation"\n')
    assert drawn.choice.epsilon == pytest.approx(plain.choice.epsilon, rel=1e-9)
    assert drawn.choice.data_loss == pytest.approx(plain.choice.data_loss + 500 * 1e5)
    sampling = 1.959964 * math.sqrt(25_000)
    assert drawn.tables[0].half_width == pytest.approx(math.hypot(plain.tables[0].half_width, sampling))
    (row,) = plan_document(drawn)["existing_errors"]
    assert (row["sampling"], row["before"]) == (True, pytest.approx(math.sqrt(25_000)))
    assert "hold the expected number" in " ".join(plan_words(drawn).split())
    total = 'total = { value = 400, unit = "person", source = "s" }\n'
    stated = planned(tmp_path, SQUARED + 'estimates = "superpopulation"\n' + total)
    assert stated.extensions.existing[0].before == pytest.approx(10)


@pytest.mark.parametrize(
    ("table", "kind", "key", "words"),
    [
        (WORST.replace("miss_probability = 0.05\n", "") + value(1, "USD per person"), MissingKey, "miss_", "harm"),
        (TAIL + value(1, "USD per person"), IncompatibleUnits, "value_of_accuracy", "'USD' is needed"),
        (TAIL.replace("5,", "-5,") + value(1), InvalidValue, "threshold", "not negative"),
        (TAIL + WORST.splitlines()[1] + "\n" + value(1), InvalidValue, "miss_probability", "no part in tail loss"),
        ('loss = "relative"\n' + value(1), MissingKey, "public_numbers", "share of something"),
        (EXPECTED.replace("25000", "0") + value(1), InvalidValue, "expected_number", "share of nothing"),
        (RELATIVE.replace("last", "none") + value(1), InvalidFile, "public_numbers", "no such file"),
        (SQUARED + DECISION.replace('loss = "absolute"\n', ""), InvalidValue, "value_of_accuracy", "decision says"),
        (DECISION.replace('loss = "absolute"\n', ""), MissingKey, "decision", "squared USD"),
        (DECISION.replace("= 100\n", "= 1\n"), InvalidValue, "repetitions", "repetitions differ"),
        (SQUARED + WEALTH, InvalidValue, "value_of_accuracy", "wealth says"),
        (WEALTH.replace('"1/USD"', '"USD"'), IncompatibleUnits, "risk_aversion", "1/USD"),
        (TAIL + value(1) + 'estimates = "superpopulation"\n', InvalidValue, "estimates", "squares"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, table: str, kind: type[Refusal], key: str, words: str) -> None:
    found = refused(tmp_path, table)
    assert isinstance(found, kind), found
    assert key in str(found.where)
    assert words in str(found)


def test_records_of_one_unit_come_together_and_are_no_poisson_draws(tmp_path: Path) -> None:
    """With one or two records a person a count varies 5/3 times as much: 95 in 100 would be 87."""
    several = PROGRAM.replace('unit = "person"\n', 'unit = "person"\nidentifier = "name"\nmost_records_per_unit = 2\n')
    file = tmp_path / "program.toml"
    file.write_text(
        several.replace("TABLE", SQUARED + 'estimates = "superpopulation"\n').replace("NOISE", "geometric"),
        encoding="utf-8",
    )
    with pytest.raises(InvalidValue, match="several records") as found:
        load(file)
    assert found.value.where is not None
    assert found.value.where.key == "workload[0].estimates"


def test_public_numbers_are_complete_and_the_programs_own(tmp_path: Path) -> None:
    planned(tmp_path, RELATIVE + value(1e12))
    for text, words in (
        ("region,number\nnorth,1\n", "is not there"),
        ("region,number\nnorth,1\nnorth,2\n", "stands there twice"),
        ("region,number\nnorth,x\n", "not finite"),
        ("region,count\nnorth,1\n", "no column 'number'"),
        ("region,number\nnorth,1\neast,1\nsouth,1\nwest,1\nmoon,1\n", "'moon' is no cell"),
    ):
        (tmp_path / "last.csv").write_text(text, encoding="utf-8")
        with pytest.raises(Refusal, match=words):
            load(tmp_path / "program.toml")


def test_participation_does_not_know_them(tmp_path: Path) -> None:
    joined = TAIL + value(10_000)
    path = tmp_path / "program.toml"
    part = '\n[participation]\nrate_without_loss = 0.9\ndecline_per_epsilon = 0.01\nsource = "s"\n'
    path.write_text(PROGRAM.replace("TABLE", joined).replace("NOISE", "laplace") + part, encoding="utf-8")
    with pytest.raises(InvalidValue, match=r"\[participation\] does not know"):
        load(path).plan()


def test_numbers_in_steps_of_a_grid_count_in_their_unit(tmp_path: Path) -> None:
    """Sums of 0 to 100 USD in steps of 10: 10·Laplace(10/ε) is off by more than 50 USD as Laplace(10/ε) by 5."""
    sums = TAIL.replace("5,", "50,").replace('"person"', '"USD"') + 'sum_of = "amount"\nunit = "USD"\n' + value(10_000)
    text = PROGRAM.replace("TABLE", sums).replace("NOISE", "laplace")
    amount = "attributes.amount = { lower = 0, upper = 100, grid = 10 }\n\n[[workload]]"
    path = tmp_path / "program.toml"
    path.write_text(text.replace("\n[[workload]]", amount, 1), encoding="utf-8")
    plan = load(path).plan()
    rate = 5 / 10
    assert plan.choice.epsilon == pytest.approx(math.log(4 * rate * 10_000 / COST) / rate, rel=1e-6)
    assert np.isfinite(plan.choice.welfare)


def test_a_worst_error_of_whole_numbers_says_where_it_falls_next(tmp_path: Path) -> None:
    """Geometric noise: P(|X| > n) = 2·a^(n + 1)/(1 + a), a = e^−ε, and four numbers miss 5 % together."""
    shared = 1 - 0.95**0.25

    def worst(epsilon: float) -> int:
        a = math.exp(-epsilon)
        return next(n for n in range(1_000) if 2 * a ** (n + 1) / (1 + a) <= shared)

    plan = planned(tmp_path, WORST + value(1000, "USD per person"), "geometric")
    document = plan_document(plan)
    jsonschema.validate(document, schema("plan"))
    (row,) = document["losses"]
    assert (row["promised"], row["falls_to"]) == (worst(float(plan.loss.amount)), worst(row["falls_at"])) == (5, 4)
    assert worst(row["falls_at"] - 1e-5) == 5  # five digits, rounded up
    words = " ".join(plan_words(plan).split())
    assert "The next jump is at epsilon = 0.94557: from there on none is off by more than 4 people" in words
    assert "which is worth USD 1,000 and costs USD 3.89 of privacy" in words
