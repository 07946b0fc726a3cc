"""What a plan measures: an optimized strategy where it is better, the tables where it is not, and what that saves."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dualmandate.choice import choose
from dualmandate.errors import TooLarge
from dualmandate.frontier import frontier_of
from dualmandate.mechanism import GEOMETRIC, LAPLACE, NOISE_LAWS, OptimizedMechanism, laplace, optimize_strategy
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.planning import technology
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import load
from dualmandate.planning.technology import WORTHWHILE, TechnologyBuilder, values_of
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.documents.schemas import schema
from dualmandate.report.plan_words import plan_words

TOWN = """\
[program]
schema = 1
name = "town"

[population]
account = "residents"
unit = "person"
neighbors = "add-or-remove"
population_size = { value = 1000000, unit = "people", source = "assumed" }

[population.attributes]
ward = ["n", "e", "s", "w"]
age = ["0-17", "18-64", "65+"]

[[workload]]
name = "wards"
by = ["ward"]
value_of_accuracy = { value = 400, unit = "USD per person^2", source = "assumed" }

[[workload]]
name = "ages"
by = ["age"]
value_of_accuracy = { value = 50, unit = "USD per person^2", source = "assumed" }

[[workload]]
name = "everybody"
by = []
value_of_accuracy = { value = 900, unit = "USD per person^2", source = "assumed" }

[mechanism]
noise = "laplace"

[preferences]
information_utility = "linear"
mean_disclosure_cost = { value = 0.05, unit = "USD per person per epsilon", source = "assumed" }
"""
NOISE = 'noise = "laplace"'


@pytest.fixture
def town(tmp_path: Path) -> Any:
    """A program whose tables are marginals of different worth, with pieces of its text replaced."""

    def make(*pieces: tuple[str, str]) -> Path:
        text = TOWN
        for old, new in pieces:
            assert old in text, old
            text = text.replace(old, new, 1)
        path = tmp_path / "town.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return make


def checked(plan: Plan) -> dict[str, Any]:
    document = json.loads(json.dumps(plan_document(plan), allow_nan=False))
    jsonschema.validate(document, schema("plan"))
    return dict(document)


def test_the_choice_stands_on_the_frontier_of_the_optimized_strategy(town: Any) -> None:
    """ε* = (4·C/(N·κ))^⅓ with C the value-weighted coefficient of the whole-number rows: Laplace errors are 2C/ε²."""
    program = load(town())
    plan = program.plan()
    assert plan.technology.strategy == "optimized"
    strategy = optimize_strategy(program.workload, values={"wards": 400.0, "ages": 50.0, "everybody": 900.0})
    coefficient = strategy.exact.error_coefficient(program.protection)
    assert coefficient == pytest.approx(strategy.error_coefficient, rel=1e-3)
    assert plan.choice.epsilon == pytest.approx((4 * coefficient / 50_000) ** (1 / 3))
    mechanism = OptimizedMechanism(LAPLACE, values_of(program.welfare))
    alone = choose(frontier_of(mechanism, program.workload), program.welfare)
    assert alone.epsilon == pytest.approx(plan.choice.epsilon)
    assert alone.marginal_rate_of_transformation == pytest.approx(alone.willingness_to_accept)


def test_the_saving_is_the_cost_of_plain_noise_less_that_of_the_technology_in_use(town: Any) -> None:
    program = load(town())
    plan = program.plan()
    saving = plan.saving
    plain = frontier_of(laplace(), program.workload)
    loss, welfare = plan.choice.epsilon, program.welfare
    assert saving.at_choice["naive"] == pytest.approx(welfare.data_loss(plain, loss))
    assert saving.at_choice["used"] == pytest.approx(plan.choice.data_loss)
    assert saving.saved == pytest.approx(welfare.data_loss(plain, loss) - plan.choice.data_loss)
    assert saving.saved is not None
    assert saving.saved > 0.3 * plan.choice.data_loss
    assert saving.naive.choice is not None
    assert saving.naive.choice.epsilon == pytest.approx(choose(plain, welfare).epsilon)
    least = saving.at_choice["least"]
    found = plan.technology.found["all"]
    assert least == pytest.approx(900 * found.lower_bound * LAPLACE.variance(loss))  # 900: the dearest table
    assert least is not None
    assert least < plan.choice.data_loss


def test_a_higher_value_buys_a_table_more_accuracy(town: Any) -> None:
    def errors(plan: Plan) -> dict[str, float]:
        return plan.technology.noise_frontier.table_errors(1.0)

    before = errors(load(town()).plan())
    after = errors(load(town(("value = 50,", "value = 5000,"))).plan())
    assert after["ages"] < 0.8 * before["ages"]
    assert after["wards"] > before["wards"]


def test_the_document_says_what_is_measured_and_what_that_saves(town: Any) -> None:
    plan = load(town()).plan()
    document = checked(plan)
    [strategy] = document["strategies"]
    found = plan.technology.found["all"]
    assert document["mechanism"]["strategy"] == "optimized"
    assert strategy["rows"] == found.exact.rows
    assert strategy["gap"] == found.gap
    assert strategy["words"] == found.description
    assert strategy["weights"] == [str(step) for step in found.exact.steps]
    [measured] = document["exact"]["measurements"]
    assert measured["strategy"] == {"rows": str(found.exact.rows), "digest": strategy["digest"]}
    assert strategy["digest"] == strategy_digest(found.exact)
    saving = document["saving"]
    assert saving["saved"] == pytest.approx(saving["at_choice"]["naive"] - saving["at_choice"]["used"])
    assert saving["naive"]["noise"] == "laplace"
    assert saving["naive"]["strategy"] == "workload"
    for point in saving["points"]:
        assert point["least"] <= point["used"] <= point["naive"]
    assert saving["naive"]["measured"] == "evenly"
    rows = {(row["noise"], row["strategy"], row["measured"]): row for row in document["technologies"]}
    tried = {
        ("laplace", strategy, measured) for strategy in ("optimized", "workload") for measured in ("together", "apart")
    }
    assert {*tried, ("laplace", "identity", "together"), ("laplace", "workload", "evenly")} <= set(rows)
    assert [kind for kind, row in rows.items() if row["chosen"]] == [("laplace", "optimized", "together")]


def test_the_words_name_the_saving_and_the_gap(town: Any) -> None:
    plan = load(town()).plan()
    words = " ".join(plan_words(plan).split())
    found = plan.technology.found["all"]
    assert f"{found.exact.rows} measurements." in words
    assert " ".join(found.gap.split()) in words
    assert " are saved against Laplace noise on the tables, in even shares, what is done by hand." in words
    assert " the least possible: no strategy brings them below " in words
    assert "; that holds for every matrix mechanism with laplace noise." in words
    assert "noise laplace, on an optimized strategy" in words


def test_groups_measured_apart_have_a_strategy_each(town: Any) -> None:
    plan = load(town((NOISE, f'{NOISE}\nstrategy = "optimized"\nmeasured = [["wards", "everybody"], ["ages"]]'))).plan()
    assert set(plan.technology.found) == {"wards + everybody", "ages"}
    document = checked(plan)
    assert [row["group"] for row in document["strategies"]] == ["wards + everybody", "ages"]
    assert [set(row["strategy"]) for row in document["exact"]["measurements"]] == [{"rows", "digest"}] * 2
    # The limit is that of all tables measured together: no sharing of the loss gets below it.
    assert plan.saving.at_choice["least"] < plan.choice.data_loss  # type: ignore[operator]


def test_noise_of_one_norm_shares_one_strategy(town: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def counted(workload: Any, noise: Any, **keys: Any) -> Any:
        asked.append(noise)
        return optimize_strategy(workload, noise, **keys)

    monkeypatch.setattr(technology, "optimize_strategy", counted)
    load(town((NOISE, 'noise = "best"\nfailure_probability = 1e-10'))).plan()
    assert sorted(asked) == ["gaussian"] * 4 + ["laplace"] * 4  # for all three tables, and for each of them


def test_what_is_measured_is_never_worse_than_the_tables(town: Any) -> None:
    """At a large loss whole-number noise prefers rows that are moved alike: the cells, each by one record."""
    for cost, cells_are_better in (("0.05", False), ("0.0000005", True)):
        plan = load(town((NOISE, 'noise = "geometric"'), ("value = 0.05", f"value = {cost}"))).plan()
        plain = [row.choice for row in plan.comparisons if (row.noise, row.strategy) == ("geometric", "workload")]
        assert all(choice is not None and plan.choice.welfare > choice.welfare for choice in plain)
        assert plan.technology.strategy == ("identity" if cells_are_better else "optimized")
        assert not [note for note in plan.notes if "would leave society" in note]
    stated = load(
        town((NOISE, 'noise = "geometric"\nstrategy = "workload"'), ("value = 0.05", "value = 0.0000005"))
    ).plan()
    assert [note for note in stated.notes if note.endswith('strategy = "identity".')]


def test_a_strategy_that_is_worse_at_the_choice_is_not_measured(town: Any) -> None:
    """A table of little worth gets little of the loss; where the loss is large, whole-number noise on it suffers."""
    total = TOWN[TOWN.index('[[workload]]\nname = "everybody"') : TOWN.index("[mechanism]")]
    path = town(
        (NOISE, 'noise = "geometric"'), ("value = 0.05", "value = 1e-7"), ("value = 50,", "value = 5,"), (total, "")
    )
    plan = load(path).plan()
    assert plan.technology.strategy == "identity"
    tables = min(row.choice.data_loss for row in plan.comparisons if row.strategy == "workload" and row.choice)
    assert plan.choice.data_loss < tables
    optimized = [row.choice for row in plan.comparisons if row.strategy == "optimized"]
    assert all(choice is not None and choice.welfare <= plan.choice.welfare for choice in optimized)
    assert plan.saving.at_choice["optimized"] >= plan.choice.data_loss  # type: ignore[operator]
    assert "so little noise on whole numbers is mostly 0, and no strategy was found that gains as much" in " ".join(
        plan_words(plan).split()
    )


@pytest.mark.parametrize("noise", ["laplace", "best"])
def test_title_i_is_measured_as_it_is_asked(changed: Any, title_i: Path, noise: str) -> None:
    plan = load(changed((NOISE, f'noise = "{noise}"'))).plan()
    assert plan.technology.strategy == "workload"
    assert plan.choice.epsilon == pytest.approx(2.527644 if noise == "laplace" else 2.444299, abs=5e-7)
    assert plan.saving.optimized is not None
    assert plan.saving.at_choice["optimized"] == pytest.approx(plan.choice.data_loss)
    assert plan.saving.at_choice["least"] == pytest.approx(plan.choice.data_loss)
    words = " ".join(plan_words(plan).split())
    whole = "" if noise == "laplace" else " on a strategy of whole numbers"
    assert f"No matrix mechanism with {plan.technology.noise} noise{whole} errs less" in words
    stated = load(changed((f'noise = "{noise}"', f'noise = "{noise}"\nstrategy = "optimized"'))).plan()
    assert stated.technology.strategy == "optimized"
    assert stated.choice.epsilon == pytest.approx(plan.choice.epsilon, rel=1e-12)
    assert stated.loss == plan.loss
    assert [row["rows"] for row in checked(stated)["strategies"]] == [13_000]


def test_a_strategy_that_saves_next_to_nothing_is_left_alone(changed: Any) -> None:
    """Where one record replaces another their number is public, which tells the last of 13,001 counts for nothing."""
    replaced = ('neighbors       = "add-or-remove"', 'neighbors = "replace-one"')
    plan = load(changed(replaced)).plan()
    assert plan.technology.strategy == "workload"
    optimized = plan.saving.at_choice["optimized"]
    assert optimized is not None
    assert 0 < 1 - optimized / plan.choice.data_loss < WORTHWHILE
    assert "no strategy was found that is worth its trouble" in " ".join(plan_words(plan).split())
    stated = load(changed((NOISE, f'{NOISE}\nstrategy = "optimized"'))).plan()
    assert stated.choice.epsilon < plan.choice.epsilon


def refusing(*_: Any, **__: Any) -> Any:
    raise TooLarge("a strategy for more cells than can be weighed", why="there are too many", instead="group levels")


@pytest.mark.parametrize(
    ("worth", "strategy", "measured"),
    [("400", "identity", "Every cell is"), ("9000", "workload", "The tables themselves are")],
)
def test_where_no_strategy_can_be_looked_for_the_tables_or_cells_are_measured(
    town: Any, monkeypatch: pytest.MonkeyPatch, worth: str, strategy: str, measured: str
) -> None:
    monkeypatch.setattr(technology, "optimize_strategy", refusing)
    plan = load(town((NOISE, 'noise = "geometric"'), ("value = 900,", f"value = {worth},"))).plan()
    assert plan.technology.strategy == strategy
    assert plan.notes[0] == (
        f"{measured} measured, because an optimized strategy cannot serve: "
        "a strategy for more cells than can be weighed: there are too many."
    )
    assert checked(plan)["saving"]["at_choice"]["least"] < plan.choice.data_loss  # it needs no strategy


def test_a_stated_strategy_that_cannot_be_looked_for_is_refused_at_its_place(
    town: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(technology, "optimize_strategy", refusing)
    path = town((NOISE, f'{NOISE}\nstrategy = "optimized"'))
    with pytest.raises(TooLarge) as caught:
        load(path).plan()
    assert caught.value.where is not None
    assert caught.value.where.key == "mechanism.strategy"
    assert path.read_text(encoding="utf-8").splitlines()[int(caught.value.where.line or 0) - 1].startswith("strategy")


def test_a_stated_strategy_is_not_compared_with_one_that_would_have_to_be_looked_for(
    town: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(technology, "optimize_strategy", refusing)
    plan = load(town((NOISE, f'{NOISE}\nstrategy = "workload"'))).plan()
    assert {row.strategy for row in plan.comparisons} == {"workload", "identity"}
    assert plan.saving.saved is not None
    assert plan.saving.saved > 0
    assert plan.saving.optimized is None


def test_tables_of_no_worth_are_left_out_of_the_bound(town: Any) -> None:
    """A strategy weighs them at a millionth of the dearest; the bound is one on what society loses, without them."""
    plan = load(town(("value = 50,", "value = 0,"))).plan()
    assert plan.technology.strategy == "optimized"
    least = plan.saving.at_choice["least"]
    assert least is not None
    assert 0 < least < plan.choice.data_loss


def test_absolute_losses_are_served_too(town: Any) -> None:
    absolute = (
        ('by = ["age"]', 'by = ["age"]\nloss = "absolute"'),
        ('50, unit = "USD per person^2"', '50, unit = "USD per person"'),
    )
    plan = load(town(*absolute)).plan()
    assert plan.technology.strategy == "optimized"
    assert plan.saving.limit is None
    assert plan.saving.saved is not None
    assert plan.saving.saved > 0
    assert plan.choice.marginal_privacy_cost == pytest.approx(-plan.choice.marginal_data_loss)


def test_the_workshop_keeps_each_law_to_its_currency(town: Any) -> None:
    program = load(town())
    workshop = TechnologyBuilder(program.file.mechanism, program.workload, program.protection, program.welfare)
    geometric = workshop.technology(GEOMETRIC, "optimized", "together")
    assert geometric.frontier.privacy_measure is NOISE_LAWS["geometric"].privacy_measure
    assert geometric.measurements["all"].sensitivity.norm == "l1"
    assert math.isclose(
        geometric.frontier.accuracy(0.01),
        workshop.technology(LAPLACE, "optimized", "together").frontier.accuracy(0.01),
        rel_tol=1e-4,
    )
