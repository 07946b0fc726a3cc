"""What a program file says, as the rooms of the house understand it."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dualmandate.errors import (
    ConflictingLimits,
    IncompatibleUnits,
    InvalidDomain,
    InvalidFile,
    InvalidInvariant,
    InvalidLoss,
    InvalidValue,
    InvalidWorkload,
    Refusal,
    TooLarge,
)
from dualmandate.planning.program import load
from dualmandate.population import Neighbors, PrivacyMeasure
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_words import plan_words


def refusal(path: Any, kind: type[Refusal], key: str) -> Refusal:
    with pytest.raises(kind) as caught:
        load(path).plan()
    found = caught.value
    assert type(found) is kind
    assert found.where is not None
    assert found.where.key == key
    assert found.where.line is not None
    assert found.why
    assert found.instead
    return found


def test_attributes_of_every_form(survey: Any) -> None:
    path = survey(
        (
            'sex = ["f", "m"]',
            'sex = ["f", "m"]\n'
            'school = { levels = ["none", "some"], ordered = true, missing = "unknown" }\n'
            "weight = { edges = [0, 50.5, 100] }\n"
            'rooms = { from = 1, to = 3, missing = "?" }',
        )
    )
    domain = load(path).domain
    assert domain.names == ("block", "age", "sex", "school", "weight", "rooms", "income")
    assert domain.shape == (12, 10, 2, 3, 2, 4, 21)
    assert tuple(domain.attribute("school").levels) == ("none", "some", "unknown")
    assert domain.attribute("school").ordered
    assert domain.attribute("weight").levels[0] == "[0, 50.5)"
    assert tuple(domain.attribute("rooms").levels) == ("1", "2", "3", "?")
    assert domain.attribute("age").is_numeric


def test_hierarchies_of_every_form(survey: Any) -> None:
    domain = load(survey()).domain
    assert domain.mask("state", ["A"]).sum() == 6
    assert domain.mask("county", ["A1"]).sum() == 3
    assert domain.mask("district", ["x"]).sum() == 4
    assert np.flatnonzero(domain.mask("band", ["old"])).tolist() == [8, 9]


def test_columns_follow_their_codes_when_the_missing_level_stands_among_them(survey: Any) -> None:
    path = survey(('block = { codes = "blocks.csv" }', 'block = { codes = "blocks.csv", missing = "A1y" }'))
    domain = load(path).domain
    assert domain.attribute("block").levels[-1] == "A1y"
    assert [domain.attribute("block").levels[i] for i in np.flatnonzero(domain.mask("district", ["y"])).tolist()] == [
        "A2y",
        "B1y",
        "B2y",
        "A1y",
    ]


def test_a_named_column_of_the_code_list(survey: Any) -> None:
    path = survey(
        ('block = { codes = "blocks.csv" }', 'block = { codes = "blocks.csv", column = "code" }'),
    )
    assert load(path).domain.shape[0] == 12


def test_tables_and_their_values(survey: Any) -> None:
    program = load(survey())
    assert [table.query_count for table in program.workload.tables] == [8, 10, 2]
    assert [value.unit for value in program.welfare.table_values] == ["person", "person", "USD"]
    income = program.welfare.table_values[2]
    assert (income.grid, income.value) == (10, 0.001)
    assert program.welfare.privacy_measure is PrivacyMeasure.PURE_DP
    assert program.protection.neighbors is Neighbors.ADD_OR_REMOVE


def test_errors_of_a_sum_are_in_its_unit(survey: Any) -> None:
    together = 'measured = [["people by county and sex", "ages in state A", "income by state"]]'
    plan = load(survey(('noise = "laplace"', f'noise = "laplace"\n{together}'))).plan()
    counts, _, income = plan.tables
    assert income.root_mean_squared_error == pytest.approx(10 * counts.root_mean_squared_error)
    # one record: 1 count by county and sex, 1 by age, 20 steps of income
    # (at the exact loss of a release)
    assert counts.root_mean_squared_error == pytest.approx(math.sqrt(2) * 22 / float(plan.loss))
    assert income.root_mean_squared_consequence == pytest.approx(math.sqrt(0.001) * income.root_mean_squared_error)
    assert counts.half_width == pytest.approx(22 / float(plan.loss) * math.log(20))


def test_weighted_tables(survey: Any) -> None:
    path = survey(("[mechanism]", "[[workload]]\nname = 'gap'\nweights = { sex = { f = 1, m = -0.5 } }\n"
        'value_of_accuracy = { value = 1, unit = "USD per person^2", source = "assumed" }\n\n[mechanism]'))  # fmt: skip
    program = load(path)
    counts = np.zeros(program.domain.shape, dtype=np.int64)
    counts[0, 5, 0, 0], counts[3, 5, 1, 2] = 7, 4
    assert program.workload.table_answers("gap", counts).tolist() == [7 - 0.5 * 4]


PRICE = '_squared_misallocation = { value = 1, unit = "USD per USD^2", source = "assumed" }\n'


def test_groups_of_people(survey: Any) -> None:
    group = """
[[preferences.groups]]
name = "{name}"
size = {{ value = {size}, unit = "people", source = "assumed" }}
mean_disclosure_cost = {{ value = {cost}, unit = "USD per person{per}", source = "assumed" }}
"""
    old = group.format(name="old", size=400_000, cost=10, per=" per epsilon") + "relative_privacy_weight = 2\n"
    new = group.format(name="new", size=600_000, cost=3, per="")
    new += 'information_utility = "posterior"\nprior_probability = 0.1\n'
    path = survey(("mean_disclosure_cost", "# "), ("price_of", f"price_of{PRICE}{old}{new}#"))
    welfare = load(path).welfare
    assert [(g.name, g.size, g.relative_privacy_weight) for g in welfare.groups] == [("old", 4e5, 2), ("new", 6e5, 1)]
    assert [g.information_utility.form for g in welfare.groups] == ["linear", "posterior"]
    path = survey(("mean_disclosure_cost", "# "), ("price_of", f"price_of{PRICE}{old}#"))
    found = refusal(path, InvalidValue, "preferences.groups")
    assert "400,000" in found.what


def test_a_cost_per_rho_counts_the_loss_in_rho(survey: Any) -> None:
    path = survey(("per person per epsilon", "per person per rho"), ('noise = "laplace"', 'noise = "gaussian"'))
    plan = load(path).plan()
    assert plan.choice.privacy_measure is PrivacyMeasure.ZCDP
    assert plan.loss.privacy_measure is PrivacyMeasure.ZCDP


REPLACE = ("add-or-remove", "replace-one")


def invariant(name: str, by: str) -> tuple[str, str]:
    return "[mechanism]", f'[[invariants]]\nname = "{name}"\nby = ["{by}"]\n\n[mechanism]'


@pytest.mark.parametrize(
    ("pieces", "kind", "key"),
    [
        ((("household_size = 3", 'source = "./blocks.csv"'),), InvalidValue, "population.attributes.block.codes"),
        ((("blocks.csv", "none.csv"),), InvalidFile, "population.attributes.block.codes"),
        ((('"blocks.csv"', '"blocks.csv", column = "x"'),), InvalidValue, "population.attributes.block"),
        ((("upper = 200, grid = 10", "upper = 205, grid = 10"),), InvalidDomain, "population.attributes.income"),
        ((("to = 9", "to = 0"),), InvalidDomain, "population.attributes.age"),
        ((('["f", "m"]', '["f", "f"]'),), InvalidDomain, "population.attributes.sex"),
        ((('["f", "m"]', "[]"),), InvalidDomain, "population.attributes.sex"),
        ((('attribute = "age"', 'attribute = "aeg"'),), InvalidDomain, "population.hierarchies.band.attribute"),
        ((("grid = 10", "grid = 1e-9"),), TooLarge, "population.attributes.income"),
        ((("young = [0, 1, 2]", "young = [0, 77]"),), InvalidDomain, "population.hierarchies.band"),
        ((("young = [0, 1, 2]", "young = [0, 8]"),), InvalidDomain, "population.hierarchies.band"),
        ((("county = 2", "county = 9"),), InvalidDomain, "population.hierarchies.geography"),
        ((('columns = ["district"]', 'columns = ["distric"]'),), InvalidValue, "population.hierarchies.district"),
        (
            (('attribute = "block"\ncolumns = ["district"]', 'attribute = "age"\ncolumns = ["district"]'),),
            InvalidDomain,
            "population.hierarchies.district",
        ),
        ((("prefixes = { state = 1", "prefixes = { age = 1"),), InvalidDomain, "population.hierarchies"),
        ((('income = ["10", "20"]', 'income = ["15"]'),), InvalidDomain, "population.structural_zeros[0]"),
        ((("age = [0, 1]\n", "aeg = [0, 1]\n"),), InvalidDomain, "population.structural_zeros[0]"),
        ((('by = ["age"]', 'by = ["sex", "aeg"]'),), InvalidDomain, "workload[1].by[1]"),
        ((('where = { state = "A" }', 'where = { state = "C" }'),), InvalidDomain, "workload[1].where.state"),
        ((('where = { state = "A" }', 'where = { sate = "A" }'),), InvalidDomain, "workload[1].where.sate"),
        ((('by = ["county", "sex"]', 'by = ["county", "state"]'),), InvalidWorkload, "workload[0]"),
        ((('sum_of = "income"', 'sum_of = "sex"'),), InvalidDomain, "workload[2].sum_of"),
        ((('sum_of = "income"', 'sum_of = "incme"'),), InvalidDomain, "workload[2].sum_of"),
        ((('unit = "person"', 'unit = "USD"'),), IncompatibleUnits, "population.unit"),
        ((('unit = "people"', 'unit = "USD"'),), IncompatibleUnits, "population.population_size"),
        ((("value = 1000000", "value = -1"),), InvalidValue, "population.population_size"),
        ((("value = 2.5", "value = -2.5"),), InvalidValue, "preferences.mean_disclosure_cost"),
        ((("USD per person per epsilon", "USD per person"),), IncompatibleUnits, "preferences.mean_disclosure_cost"),
        ((("USD per person per epsilon", "EUR per person"),), IncompatibleUnits, "preferences.mean_disclosure_cost"),
        ((("USD per person^2", "USD^2 per person^2"),), IncompatibleUnits, "workload[0].value_of_accuracy"),
        ((("value = 100,", "value = -100,"),), InvalidValue, "workload[0].value_of_accuracy"),
        ((("price_of_squared", "# price_of_squared"),), IncompatibleUnits, "workload[2].consequence"),
        ((('"USD per USD^2"', '"USD^2"'),), IncompatibleUnits, "preferences.price_of_squared_misallocation"),
        ((('unit = "USD"\n', 'unit = "epsilon"\n'),), IncompatibleUnits, "workload[2].unit"),
        ((('source = "assumed" }\nprice', 'source = "assumed", time_base = "per year" }\nprice'),
          ('person^2", source = "assumed"', 'person^2", source = "assumed", time_base = "lifetime"')),
         IncompatibleUnits, "workload[1].value_of_accuracy"),
        ((("household_size = 3", "most_records_per_unit = 2"),), InvalidLoss, "population.most_records_per_unit"),
        ((invariant("all", "state"),), InvalidInvariant, "invariants"),
        ((REPLACE, invariant("all", "x")), InvalidDomain, "invariants[0].by[0]"),
        ((REPLACE, invariant("a", "state"), invariant("b", "sex")), InvalidInvariant, "invariants"),
        ((("[preferences]", "[limits]\nlargest_rho = 1\n\n[preferences]"),), InvalidValue, "limits.largest_rho"),
        ((('by = ["age"]', 'by = ["age"]\nfitness_for_use = { largest_root_mean_squared_error = 1e-3 }'),
          ("[preferences]", "[limits]\nlargest_epsilon = 1\n\n[preferences]")), Refusal, "limits"),
    ],
)  # fmt: skip
def test_what_other_rooms_refuse_gets_its_place(survey: Any, pieces: Any, kind: type[Refusal], key: str) -> None:
    path = survey(*pieces)
    with pytest.raises(kind) as caught:
        load(path).plan()
    found = caught.value
    assert found.where is not None
    assert found.where.key == key
    assert found.where.file in (str(path), str(path.parent / "blocks.csv"))
    assert found.where.line is not None
    assert found.why
    assert found.instead


def test_an_account_with_nothing_left(survey: Any) -> None:
    program = load(survey())
    with pytest.raises(ConflictingLimits) as caught:
        program.plan(remaining=0)
    assert caught.value.where is not None
    assert caught.value.where.key == "population.account"


def test_invariants_under_replace_one(survey: Any) -> None:
    path = survey(REPLACE, invariant("state totals", "state"))
    plan = load(path).plan()
    assert any("state totals" in line for line in plan.guarantee.not_protected)


def test_crossing_invariants_with_records_changing_together(survey: Any) -> None:
    path = survey(
        REPLACE,
        ("household_size = 3", "records_changing_together = 4"),
        invariant("a", "state"),
        invariant("b", "sex"),
    )
    plan = load(path).plan()
    assert plan.guarantee.losses[0].loss is not None
    assert plan.guarantee.losses[0].loss.amount == 4 * plan.loss.amount
    assert "conditional" not in plan.guarantee.indistinguishable
    for words in (plan_words(plan), json.dumps(plan_document(plan)["guarantee"])):
        assert "link all files with the same exact totals" in " ".join(words.split())


def test_fewer_records_than_must_change_together_are_refused_with_the_number(survey: Any) -> None:
    """Two totals that cross, m = 1: charged half of what the nearest two files with the same totals differ by."""
    totals = (REPLACE, invariant("a", "state"), invariant("b", "sex"))
    too_few = survey(*totals, ("household_size = 3", "records_changing_together = 1"))
    refused = refusal(too_few, InvalidInvariant, "population.records_changing_together")
    assert "= 1 is less than the exact totals need" in refused.what
    assert "state records_changing_together = 2 or more" in refused.instead
    stated = survey(*totals, ("household_size = 3", "records_changing_together = 2"))
    assert load(stated).plan().charge.amount == 2 * load(stated).plan().loss.amount


def test_a_number_that_is_not_established_makes_the_guarantee_conditional(survey: Any) -> None:
    """Three margins of three attributes of three levels: four records at least, and six are not shown to be enough."""
    more = ('sex = ["f", "m"]', 'sex = ["f", "m"]\nx = ["0", "1", "2"]\ny = ["0", "1", "2"]\nz = ["0", "1", "2"]')
    three = [invariant(f"{one}{other}", f'{one}", "{other}') for one, other in ("xy", "xz", "yz")]
    path = survey(REPLACE, more, *three, ("household_size = 3", "records_changing_together = 6"))
    plan = load(path).plan()
    assert not plan.program.protection.records_established
    for words in (plan_words(plan), json.dumps(plan_document(plan)["guarantee"])):
        assert "The guarantee is conditional on this number" in " ".join(words.split())
    assert plan.charge.amount == 6 * plan.loss.amount


HUGE = 'sex = ["f", "m"]\na = { from = 0, to = 9999 }\nb = { from = 0, to = 9999 }\nc = { from = 0, to = 9999 }'


def test_domain_of_a_trillion_cells(survey: Any) -> None:
    assert load(survey(('sex = ["f", "m"]', HUGE))).plan().choice.epsilon > 0
    table = refusal(
        survey(('sex = ["f", "m"]', HUGE), ('by = ["age"]', 'by = ["a", "b", "c"]')), TooLarge, "workload[1]"
    )
    assert "1e+12 numbers" in table.what
    cells = survey(('sex = ["f", "m"]', HUGE), ('strategy = "workload"', 'strategy = "identity"'))
    assert "cells" in refusal(cells, TooLarge, "mechanism.strategy").what
