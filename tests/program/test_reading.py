"""The keys of a program file: what is read, and what each wrong one is told."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dualmandate.errors import InvalidProgram, InvalidValue, InvalidWorkload, MissingKey, Refusal, UnknownKey
from dualmandate.program.file import read_document
from dualmandate.program.reading import read_keys


def keys(path: Path) -> Any:
    return read_keys(read_document(path))[1]


def refusal(path: Path) -> Refusal:
    with pytest.raises(Refusal) as caught:
        keys(path)
    assert caught.value.where is not None
    assert caught.value.where.file == str(path)
    assert caught.value.where.line is not None
    assert caught.value.why
    assert caught.value.instead
    return caught.value


def place(found: Refusal) -> tuple[int | None, str | None]:
    assert found.where is not None
    return found.where.line, found.where.key


def test_numbers_are_exact(title_i: Path) -> None:
    file = keys(title_i)
    assert file.population.population_size.value == Fraction(46_000_000)
    assert file.workload[0].where == {"eligible": ("yes",)}
    assert file.program.schema_ == 1


def test_long_forms_are_as_good_as_inline_ones(changed: Any, title_i: Path) -> None:
    inline = keys(title_i)
    path = changed(
        ('population_size = { value = 46e6, unit = "child", source = "CCD 2014-15" }\n', ""),
        (
            "[[workload]]",
            '[population.population_size]\nvalue = 46000000\nunit = "child"\nsource = "CCD 2014-15"\n\n[[workload]]',
        ),
    )
    assert keys(path) == inline


def test_unknown_key_offers_the_nearest_and_tells_the_rest(changed: Any) -> None:
    found = refusal(changed(('unit            = "child"', 'unitt = "child"'), ('noise = "laplace"', "noise = 3")))
    assert isinstance(found, UnknownKey)
    assert place(found) == (15, "population.unitt")
    assert "did you mean 'unit'? Then mend " in found.instead
    assert "mechanism.noise: noise = 3 cannot be used" in found.instead
    assert "does not state 'unit'" not in found.instead  # it is the same mistake


@pytest.mark.parametrize("key", ["unit", "source"])
def test_missing_unit_or_source(changed: Any, key: str) -> None:
    piece = {"unit": 'unit = "USD^2 per child^2", ', "source": ', source = "mean squared adjusted SPPE, CCD 2014-15"'}
    found = refusal(changed((piece[key], "")))
    assert isinstance(found, MissingKey)
    assert found.where is not None
    assert found.where.key == f"workload[0].consequence.{key}"
    assert found.where.line == 30


CASES = [
    ("value = 46e6", "value = true", "population.population_size.value", "a number is meant"),
    ("value = 46e6", 'value = "46e6"', "population.population_size.value", "a number is meant"),
    ("value = 46e6", "value = nan", "population.population_size.value", "not a finite number"),
    ("value = 46e6", "value = inf", "population.population_size.value", "not a finite number"),
    ("value = 46e6", "value = 1e999999999999999999999", "population.population_size.value", "not a finite number"),
    ("value = 46e6", "value = 1e400", "population.population_size.value", "that large"),
    ("value = 46e6", "value = 0x" + "f" * 999, "population.population_size.value", "that large"),
    ("value = 46e6", "value = 2015-01-01", "population.population_size.value", "a number is meant"),
    ('unit            = "child"', 'unit = ""', "population.unit", "empty text"),
    ('unit            = "child"', "unit = 1", "population.unit", "a text is meant"),
    ('neighbors       = "add-or-remove"', 'neighbors = "add-or-remov"', "population.neighbors", "it is one of"),
    ("most_records_per_unit = 1", "most_records_per_unit = 0", "population.most_records_per_unit", "at least 1"),
    ("most_records_per_unit = 1", "most_records_per_unit = 1.5", "population.most_records_per_unit", "a whole number"),
    ("most_records_per_unit = 1", "most_records_per_unit = true", "population.most_records_per_unit", "a number"),
    ('["no", "yes"]', "3", "population.attributes.eligible", "which values can be recorded"),
    ('["no", "yes"]', '["no", true]', "population.attributes.eligible[1]", "a text or a whole number"),
    ('["no", "yes"]', '["no", ""]', "population.attributes.eligible[1]", "without a name"),
    ('["no", "yes"]', "{ lower = 0, upper = 9 }", "population.attributes.eligible.grid", "with lower goes grid"),
    ('["no", "yes"]', "{ from = 0 }", "population.attributes.eligible.to", "with from goes to"),
    ('["no", "yes"]', "{ ordered = true }", "population.attributes.eligible", "exactly one way"),
    ('["no", "yes"]', '{ codes = "a.csv", levels = [1] }', "population.attributes.eligible", "exactly one way"),
    ('["no", "yes"]', "{ edges = [0, 1], ordered = true }", "population.attributes.eligible.ordered", "says nothing"),
    ('["no", "yes"]', "{ levels = [1], ordered = 1 }", "population.attributes.eligible.ordered", "true or false"),
    ('by          = ["district"]', 'by = "district"', "workload[0].by", "a list is meant"),
    ('by          = ["district"]', "by = [1]", "workload[0].by[0]", "a text is meant"),
    (
        'where       = { eligible = "yes" }',
        "where = { eligible = [] }",
        "workload[0].where.eligible",
        "selects nothing",
    ),
    ('where       = { eligible = "yes" }', 'where = "yes"', "workload[0].where", "a table is meant"),
    ('loss        = "squared"', 'loss = "cubed"', "workload[0].loss", "it is one of"),
    ("[[workload]]", "[workload]", "workload", "a list is meant"),
    ("[mechanism]", "[[mechanism]]", "mechanism", "a table is meant"),
    ('noise = "laplace"', "noise = 3", "mechanism.noise", "it is one of"),
    ('noise = "laplace"', 'noise = "laplace"\nstrategy = "best"', "mechanism.strategy", "it is one of"),
    ('noise = "laplace"', 'noise = "laplace"\nmeasured = "alone"', "mechanism.measured", "together, each apart"),
    ('noise = "laplace"', 'noise = "laplace"\nmeasured = [["x"]]', "mechanism.measured", "exactly one group"),
    (
        'noise = "laplace"',
        'noise = "laplace"\nfailure_probability = 1',
        "mechanism.failure_probability",
        "between 0 and",
    ),
    ("schema      = 1", "schema = 2", "program.schema", "schema 1"),
    ("largest_epsilon = 10", "largest_epsilon = 0", "limits.largest_epsilon", "larger than 0"),
    ("largest_epsilon = 10", "largest_epsilon = -1", "limits.largest_epsilon", "larger than 0"),
    (
        "relative_privacy_weight        = 1",
        "relative_privacy_weight = 0",
        "preferences.relative_privacy_weight",
        "larger",
    ),
    ("relative_privacy_weight        = 1", "privacy_weight = 1", "preferences.privacy_weight", "between 0 and 1"),
    (
        "relative_privacy_weight        = 1",
        "relative_privacy_weight = 1\nprivacy_weight = 0.5",
        "preferences.privacy_weight",
        "twice",
    ),
    ("relative_privacy_weight        = 1", "prior_probability = 0.1", "preferences.prior_probability", "plays no part"),
    (
        'information_utility            = "linear"',
        'information_utility = "posterior"',
        "preferences.prior_probability",
        "where the belief starts",
    ),
    (
        "mean_disclosure_cost           = {",
        "mean_disclosure_cost = 1400 # {",
        "preferences.mean_disclosure_cost",
        "its unit and its source",
    ),
    ("consequence = ", "# ", "workload[0].consequence", "no weight in the choice"),
    (
        "[mechanism]",
        'value_of_accuracy = { value = 1, unit = "USD", source = "x" }\n[mechanism]',
        "workload[0].value_of_accuracy",
        "twice",
    ),
    (
        "[mechanism]",
        "fitness_for_use = { }\n[mechanism]",
        "workload[0].fitness_for_use.largest_root_mean_squared_error",
        "up to",
    ),
    ("[mechanism]", 'sum_of = "x"\n[mechanism]', "workload[0].unit", "not a number of records"),
    (
        "[mechanism]",
        "weights = { eligible = { yes = 2 } }\n[mechanism]",
        "workload[0].weights.eligible.yes",
        "at most 1",
    ),
    ("[mechanism]", "[population.hierarchies.h]\nattribute = 'x'\n[mechanism]", "population.hierarchies.h", "read off"),
]


@pytest.mark.parametrize(("old", "new", "key", "why"), CASES)
def test_wrong_values_name_their_key_and_the_rule(changed: Any, old: str, new: str, key: str, why: str) -> None:
    path = changed((old, new))
    found = refusal(path)
    assert isinstance(found, InvalidProgram)
    assert found.where is not None
    assert found.where.key == key
    assert why in found.why


@pytest.mark.parametrize("table", ["program", "population", "mechanism", "preferences"])
def test_missing_tables(changed: Any, table: str) -> None:
    found = refusal(changed((f"[{table}]", f"[x{table}]")))
    assert isinstance(found, UnknownKey)
    assert f"did you mean '{table}'?" in found.instead


def test_missing_and_empty_workload(changed: Any) -> None:
    path = changed()
    text = path.read_text()
    start, end = text.index("[[workload]]"), text.index("[mechanism]")
    path.write_text(text[:start] + text[end:])
    assert isinstance(refusal(path), MissingKey)
    path.write_text("workload = []\n" + text[:start] + text[end:])
    found = refusal(path)
    assert isinstance(found, InvalidWorkload)
    assert place(found) == (1, "workload")


def test_names_are_used_once(changed: Any) -> None:
    path = changed()
    text = path.read_text()
    start, end = text.index("[[workload]]"), text.index("[mechanism]")
    path.write_text(text[:end] + text[start:end] + text[end:])
    found = refusal(path)
    assert isinstance(found, InvalidValue)
    assert "two tables are called" in found.what
    assert place(found) == (33, "workload[1].name")


GROUP = """
[[preferences.groups]]
name = "{name}"
size = {{ value = 23e6, unit = "child", source = "x" }}
mean_disclosure_cost = {{ value = 1, unit = "USD per child per epsilon", source = "x" }}
"""


def test_groups_replace_the_common_cost(changed: Any) -> None:
    found = refusal(changed(("[limits]", GROUP.format(name="a") + "[limits]")))
    assert found.where is not None
    assert found.where.key == "preferences.mean_disclosure_cost"
    assert "nobody's" in found.why


def test_groups_have_names_of_their_own(changed: Any) -> None:
    two = GROUP.format(name="a") + GROUP.format(name="a")
    found = refusal(changed(("mean_disclosure_cost ", "# "), ("[limits]", two + "[limits]")))
    assert "two groups are called 'a'" in found.what


def test_a_group_in_the_posterior_form_needs_a_prior(changed: Any) -> None:
    group = GROUP.format(name="a") + 'information_utility = "posterior"\n'
    found = refusal(changed(("mean_disclosure_cost ", "# "), ("[limits]", group + "[limits]")))
    assert found.where is not None
    assert found.where.key == "preferences.groups[0].prior_probability"


def test_measured_groups_name_each_table_once(changed: Any) -> None:
    name = "eligible children by district"
    path = changed(('noise = "laplace"', f'noise = "laplace"\nmeasured = [["{name}", "{name}"]]'))
    assert "is measured twice" in refusal(path).what


@pytest.mark.parametrize(
    ("everybody", "own", "key"),
    [
        ("prior_probability = 0.1\n", "", "preferences.prior_probability"),
        ("", "prior_probability = 0.1\n", "preferences.groups[0].prior_probability"),
    ],
)
def test_a_prior_that_no_group_uses_is_refused(changed: Any, everybody: str, own: str, key: str) -> None:
    group = GROUP.format(name="a") + own
    found = refusal(changed(("mean_disclosure_cost ", f"{everybody}# "), ("[limits]", group + "[limits]")))
    assert found.where is not None
    assert found.where.key == key
    assert "plays no part in the linear form" in found.why
