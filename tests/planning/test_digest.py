"""What is signed is exact: the same on every machine, different for every change that matters."""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualmandate.planning.program import load
from dualmandate.planning.saved_plan import decimal_string, digest_of, exact_content


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        ("46e6", "46000000"),
        ("46000000.0", "46000000"),
        ("-0.10", "-0.1"),
        ("5e-8", "0.00000005"),
        ("0.0", "0"),
        ("-0", "0"),
        ("1e300", "1" + "0" * 300),
        ("1400", "1400"),
    ],
)
def test_numbers_as_decimal_strings(typed: str, written: str) -> None:
    assert decimal_string(Decimal(typed)) == written


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**30), max_value=10**30))
def test_equal_numbers_are_written_alike_and_others_differently(number: Decimal) -> None:
    assert Decimal(decimal_string(number)) == number
    assert decimal_string(Decimal(f"{number:f}0" if "." in f"{number:f}" else f"{number:f}.0")) == decimal_string(
        number
    )


def test_content_keeps_numbers_apart_from_texts() -> None:
    assert exact_content({"a": [1, "1", True, Decimal("1.50")]}) == {
        "a": [{"number": "1"}, "1", True, {"number": "1.5"}]
    }


def test_digest_is_sha256_of_canonical_json() -> None:
    text = '{"a":["x"],"b":"\\u00e9"}'
    assert digest_of({"b": "é", "a": ["x"]}) == hashlib.sha256(text.encode()).hexdigest()


def digest(path: Path) -> str:
    return load(path).plan().digest


def test_spelling_does_not_matter(changed: Any, title_i: Path) -> None:
    before = digest(title_i)
    path = changed(
        ("value = 46e6", "value = 46_000_000"),
        ("# whose privacy is spent", "# a remark"),
        ("largest_epsilon = 10", "largest_epsilon = 10.0"),
    )
    assert digest(path) == before


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value = 46e6", "value = 46000001"),
        ("CCD 2014-15", "CCD 2015-16"),
        ("children.parquet", "other.parquet"),
        ('["no", "yes"]', '["yes", "no"]'),
        ('noise = "laplace"', 'noise = "geometric"'),
        ('account         = "school children"', 'account = "somebody else"'),
    ],
)
def test_what_the_file_says_matters(changed: Any, title_i: Path, old: str, new: str) -> None:
    before = digest(title_i)
    assert digest(changed((old, new))) != before


def test_the_order_of_attributes_matters(changed: Any, title_i: Path) -> None:
    before = digest(title_i)
    line = 'attributes.eligible = ["no", "yes"]\n'
    path = changed((line, ""), ("attributes.district", f"{line}attributes.district"))
    assert digest(path) != before


def test_code_lists_matter(title_i: Path) -> None:
    before = digest(title_i)
    codes = title_i.parent / "districts.csv"
    codes.write_text(codes.read_text().replace("Alder Bay City", "Alder Bay Town"))
    assert digest(title_i) != before


def test_what_the_ledger_leaves_matters_only_through_the_loss(title_i: Path) -> None:
    program = load(title_i)
    assert program.plan(remaining=5).digest == program.plan().digest
    assert program.plan(remaining=1).digest != program.plan().digest


def test_the_exact_part_holds_no_floats_and_says_what_is_measured(title_i: Path) -> None:
    exact = load(title_i).plan().exact

    def numbers(value: Any) -> list[Any]:
        if isinstance(value, dict):
            return [found for item in value.values() for found in numbers(item)]
        if isinstance(value, list):
            return [found for item in value for found in numbers(item)]
        return [] if isinstance(value, str | bool) else [value]

    assert numbers(json.loads(json.dumps(exact))) == []
    assert exact["loss"] == {"amount": "6319/2500", "currency": "epsilon"}
    assert exact["measurements"] == [
        {"tables": ["eligible children by district"], "loss": "6319/2500", "sensitivity": "1", "norm": "l1"}
    ]
    assert exact["attributes"] == [["district", "13000"], ["eligible", "2"]]


def test_the_digest_of_the_paper_is_known(title_i: Path) -> None:
    """A change of this digest is a change of what approvers have signed: raise PLAN_VERSION with it."""
    assert digest(title_i) == "46c0d3a4df60e69d8c96837e162b75b91013390d0f93f60a7b12dd4730838cf0"
