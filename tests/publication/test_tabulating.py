from __future__ import annotations

import csv
import math
import tempfile
from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.publication.reference import Record, Value, reading, tabulated

from dualmandate.errors import InvalidDomain, InvalidRule, TooLarge, UnsafeKey
from dualmandate.population import Attribute, Domain, Histogram, Neighbors, Protection, StructuralZero
from dualmandate.publication import (
    AttributeRule,
    CsvFile,
    ParquetFile,
    Rules,
    Source,
    SparseHistogram,
    ValueRule,
    check,
    tabulate,
    tabulating,
)

KEY = bytes(range(32))
SEX = Attribute.categories("sex", ["f", "m"], missing="?")
REGION = Attribute.categories("region", ["1", "2", "-3", "04"])
AGE = Attribute.numbers("age", 0, 20, 5, missing="none")
PAY = Attribute.numbers("pay", "-1", "1", "0.1")
HOURS = Attribute.binned("hours", ["0", "0.3", "10", "40"], missing="unknown")
ZEROS = (
    StructuralZero.of({"sex": "m", "age": ("0", "10")}),
    StructuralZero.of({"region": "2", "hours": "[0, 0.3)"}),
)
DOMAIN = Domain((SEX, REGION, AGE, PAY, HOURS), structural_zeros=ZEROS)
TYPES = {"sex": pa.string(), "region": pa.int32(), "age": pa.int64(), "pay": pa.float64(), "hours": pa.float32()}

VALUES: Mapping[str, st.SearchStrategy[Value]] = {
    "sex": st.sampled_from(["f", "m", "?", "x", "F", None]),
    "region": st.sampled_from([1, 2, -3, 4, None]),
    "age": st.one_of(st.integers(-3, 25), st.sampled_from([-(2**63), 2**63 - 1, None])),
    "pay": st.one_of(st.floats(-1.2, 1.2), st.sampled_from([0.25, -0.05, math.inf, -math.inf, math.nan, None])),
    "hours": st.one_of(st.floats(-1, 50, width=32), st.sampled_from([0.0, 10.0, 40.0, math.nan, None])),
    "id": st.sampled_from(["a", "b", 'é,"', None]),
}
RECORDS = st.lists(st.fixed_dictionaries(dict(VALUES)), max_size=40)
RULE = st.builds(
    AttributeRule,
    st.sampled_from([ValueRule.DROP, ValueRule.MISSING]),
    st.sampled_from([ValueRule.DROP, ValueRule.MISSING]),
)
NUMBER_RULE = st.builds(
    AttributeRule, st.sampled_from(list(ValueRule)[:3]), st.sampled_from([ValueRule.DROP, ValueRule.MISSING])
)
RULES = st.builds(
    Rules,
    st.fixed_dictionaries({}, optional={"sex": RULE, "age": NUMBER_RULE, "hours": NUMBER_RULE}),
    st.sampled_from([None, "sex", "age", "hours"]),
)
PROTECTIONS = st.sampled_from(
    [Protection(), Protection(identifier="id"), Protection(most_records_per_unit=3, identifier="id")]
)


def as_parquet(folder: Path, records: Sequence[Record]) -> ParquetFile:
    path = folder / "records [1].parquet"
    types = TYPES | {"id": pa.string()}
    table = pa.table({name: pa.array([one[name] for one in records], kind) for name, kind in types.items()})
    pq.write_table(table, path, row_group_size=7)
    return ParquetFile(path)


def as_csv(folder: Path, records: Sequence[Mapping[str, str | None]], names: Sequence[str]) -> CsvFile:
    path = folder / "records.csv"
    with path.open("w", encoding="utf-8", newline="") as opened:
        writer = csv.DictWriter(opened, names, delimiter=";")
        writer.writeheader()
        writer.writerows(records)
    return CsvFile(path, delimiter=";")


def counts(
    source: Source, domain: Domain = DOMAIN, *, protection: Protection | None = None, rules: Rules | None = None
) -> dict[int, int]:
    box = tabulate(source, domain, protection=protection or Protection(), rules=rules or Rules(), key=KEY, sparse=True)
    found = box.open_for("a test").histogram
    assert isinstance(found, SparseHistogram)
    assert np.all(np.diff(found.cells) > 0)
    return dict(zip(found.cells.tolist(), found.counts.tolist(), strict=True))


@settings(max_examples=60, deadline=None)
@given(records=RECORDS, rules=RULES, protection=PROTECTIONS)
def test_equals_plain_python(records: list[Record], rules: Rules, protection: Protection) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = as_parquet(Path(folder), records)
        wanted = tabulated(records, DOMAIN, protection, rules, KEY)
        assert counts(source, protection=protection, rules=rules) == wanted
        box = tabulate(source, DOMAIN, protection=protection, rules=rules, key=KEY).open_for("a test")
        assert isinstance(box.histogram, Histogram)
        assert box.records_read == len(records)
        assert {int(i): int(box.histogram.counts.flat[i]) for i in np.flatnonzero(box.histogram.counts)} == wanted


TEXT_NUMBERS = st.one_of(
    st.decimals(-2, 45, places=2).map(str),
    st.sampled_from(["1e1", ".5", "7.", "+3", "none", "unknown", "abc", " 1", "1_0", "inf", "nan", "0x1", "1/2", None]),
)


@settings(max_examples=40, deadline=None)
@given(
    records=st.lists(
        st.fixed_dictionaries(
            {
                "sex": st.sampled_from(["f", "m", 'a"b', "semi;colon", None]),
                "region": st.sampled_from(["1", "01", "04", "4", " 1", None]),
                **dict.fromkeys(("age", "pay", "hours"), TEXT_NUMBERS),
            }
        ),
        max_size=30,
    ),
    rules=RULES,
)
def test_text_is_read_as_it_stands(records: list[dict[str, str | None]], rules: Rules) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = as_csv(Path(folder), records, DOMAIN.names)
        assert counts(source, rules=rules) == tabulated(records, DOMAIN, Protection(), rules, KEY)


def test_a_file_of_four(tmp_path: Path) -> None:
    """By hand: sex × age, an odd age clamped to the grid, an unknown sex, a child marked as working."""
    domain = Domain(
        (SEX, Attribute.numbers("age", 0, 10, 5)), structural_zeros=(StructuralZero.of({"sex": "m", "age": "0"}),)
    )
    path = tmp_path / "four.csv"
    path.write_text("age,extra,sex\n99,a,f\n2.5,b,\n1,c,m\n7.4,d,m\n", encoding="utf-8")
    box = tabulate(CsvFile(path), domain, protection=Protection(), rules=Rules(), key=KEY)
    assert "99" not in f"{box!r} {box}"
    found = box.open_for("a test")
    assert isinstance(found.histogram, Histogram)
    assert found.histogram.counts.tolist() == [[0, 0, 1], [0, 1, 0], [0, 1, 0]]
    assert (found.records_read, found.histogram.total) == (4, 3)
    assert "4" not in repr(found)


def test_whole_numbers_in_any_column_are_codes(tmp_path: Path) -> None:
    domain = Domain((Attribute.categories("code", ["1", "2", "07"]),))
    for kind in (pa.float64(), pa.uint64(), pa.int8(), pa.decimal128(5, 0)):
        pq.write_table(pa.table({"code": pa.array([1, 1, 7, None], kind)}), tmp_path / "codes.parquet")
        assert counts(ParquetFile(tmp_path / "codes.parquet"), domain) == {0: 2}


def test_neither_rows_nor_other_units_decide_what_is_kept(tmp_path: Path) -> None:
    domain = Domain((Attribute.numbers("n", 0, 999),))
    protection = Protection(most_records_per_unit=5, identifier="id")
    alone: list[dict[str, str | int]] = [{"id": "a", "n": n} for n in range(100)]
    others: list[dict[str, str | int]] = [{"id": f"b{n % 7}", "n": 100 + n} for n in range(300)]

    def kept(records: list[dict[str, str | int]]) -> set[int]:
        pq.write_table(pa.Table.from_pylist(records), tmp_path / "r.parquet")
        found = counts(ParquetFile(tmp_path / "r.parquet"), domain, protection=protection)
        return {cell for cell in found if cell < 100}

    first = kept(alone)
    assert len(first) == 5
    assert kept(others[:150] + alone[::-1] + others[150:]) == first
    pq.write_table(pa.Table.from_pylist(alone), tmp_path / "r.parquet")
    other = tabulate(
        ParquetFile(tmp_path / "r.parquet"), domain, protection=protection, rules=Rules(), key=bytes(32), sparse=True
    ).open_for("a test")
    assert isinstance(other.histogram, SparseHistogram)
    assert set(other.histogram.cells.tolist()) != first


def test_each_record_of_a_unit_is_as_likely_to_stay(tmp_path: Path) -> None:
    """Units with three records in one cell and one in another keep one of them: the second in a quarter of units."""
    units = 4000
    ids = np.repeat(np.arange(units), 4)
    pq.write_table(pa.table({"id": ids, "n": np.tile([0, 0, 0, 1], units)}), tmp_path / "r.parquet")
    domain = Domain((Attribute.numbers("n", 0, 1),))
    found = counts(ParquetFile(tmp_path / "r.parquet"), domain, protection=Protection(identifier="id"))
    assert sum(found.values()) == units
    assert abs(found[1] - units / 4) < 4 * math.sqrt(units * 3 / 16)


@settings(max_examples=30, deadline=None)
@given(records=RECORDS)
def test_the_check_counts_what_does_not_fit(records: list[Record]) -> None:
    protection = Protection(most_records_per_unit=2, identifier="id")
    rules = Rules(
        {
            "sex": AttributeRule(ValueRule.REFUSE, ValueRule.MISSING),
            "pay": AttributeRule(ValueRule.CLAMP, ValueRule.DROP),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        source = as_parquet(Path(folder), records)
        box = check(source, DOMAIN, protection=protection, rules=rules)
        found = box.open_for("a test")
    for attribute in DOMAIN.attributes:
        seen = [reading(attribute, record[attribute.name])[0] for record in records]
        assert found.outside[attribute.name] == seen.count("outside")
        assert found.null[attribute.name] == seen.count("null")
    dropping = Rules({**rules.attributes, "sex": AttributeRule(ValueRule.DROP, ValueRule.MISSING)})
    free = Domain(DOMAIN.attributes)
    kept = sum(tabulated(records, free, Protection(), dropping, KEY).values())
    possible = sum(tabulated(records, DOMAIN, Protection(), dropping, KEY).values())
    bounded = sum(tabulated(records, DOMAIN, protection, dropping, KEY).values())
    assert found.records_read == len(records)
    assert found.impossible == kept - possible
    assert found.unidentified + found.excess == possible - bounded
    named = [record for record in records if record["id"] is not None]
    assert found.unidentified == possible - sum(tabulated(named, DOMAIN, Protection(), dropping, KEY).values())
    assert found.refused == (("sex",) if found.outside["sex"] else ())
    assert repr(box) == "Confidential('findings of a check')"
    assert repr(found) == "CheckFindings()"


def test_units_taken_a_few_at_a_time_keep_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records: list[Record] = [{"id": f"u{n % 11}", "n": n * n % 50} for n in range(200)]
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "r.parquet")
    domain, protection = Domain((Attribute.numbers("n", 0, 49),)), Protection(most_records_per_unit=4, identifier="id")
    wanted = tabulated(records, domain, protection, Rules(), KEY)
    assert sum(wanted.values()) == 44
    for rows, sorted_from in ((1, 10**6), (20, 1), (10**6, 10**6)):
        monkeypatch.setattr(tabulating, "ROWS_AT_A_TIME", rows)
        monkeypatch.setattr(tabulating, "LARGEST_LEAST", sorted_from)
        assert counts(ParquetFile(tmp_path / "r.parquet"), domain, protection=protection) == wanted


def test_progress_ends_at_one(tmp_path: Path) -> None:
    told: list[float] = []
    source = as_parquet(tmp_path, [])
    tabulate(source, DOMAIN, protection=Protection(), rules=Rules(), key=KEY, progress=told.append)
    assert told[-1] == 1.0
    assert all(0 <= share <= 1 for share in told)


def test_nothing_is_left_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spill = tmp_path / "spill"
    spill.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    tabulate(as_parquet(tmp_path, []), DOMAIN, protection=Protection(), rules=Rules(), key=KEY)
    assert list(spill.iterdir()) == []


def test_a_domain_too_large_to_write_out_is_sparse(tmp_path: Path) -> None:
    domain = Domain((Attribute.numbers("x", 0, 10**9), Attribute.numbers("y", 0, 10**9)))
    path = tmp_path / "large.csv"
    path.write_text("x,y\n999999999,1\n0,5\n", encoding="utf-8")
    assert counts(CsvFile(path), domain) == {999999999 * (10**9 + 1) + 1: 1, 5: 1}
    with pytest.raises(TooLarge):
        tabulate(CsvFile(path), domain, protection=Protection(), rules=Rules(), key=KEY)
    larger = Domain((*domain.attributes, Attribute.numbers("z", 0, 99)))
    with pytest.raises(TooLarge, match="cannot be numbered"):
        tabulate(CsvFile(path), larger, protection=Protection(), rules=Rules(), key=KEY, sparse=True)


@pytest.mark.parametrize(
    "rules",
    [
        Rules({"sex": AttributeRule(ValueRule.CLAMP)}),
        Rules({"pay": AttributeRule(ValueRule.MISSING)}),
        Rules({"age": AttributeRule(null=ValueRule.CLAMP)}),
        Rules({"age": AttributeRule(ValueRule.REFUSE)}),
        Rules(unknown_where_impossible="region"),
    ],
)
def test_rules_that_cannot_be_followed_are_refused(tmp_path: Path, rules: Rules) -> None:
    with pytest.raises(InvalidRule):
        counts(as_parquet(tmp_path, []), rules=rules)


def test_what_is_refused_before_data_are_opened() -> None:
    nowhere = ParquetFile("nowhere.parquet")
    with pytest.raises(UnsafeKey, match="5 bytes"):
        tabulate(nowhere, DOMAIN, protection=Protection(), rules=Rules(), key=b"short")
    with pytest.raises(InvalidDomain, match="'seks' is not an attribute"):
        counts(nowhere, rules=Rules({"seks": AttributeRule()}))


def test_dropping_under_replace_one_is_said(tmp_path: Path) -> None:
    protection = Protection(neighbors=Neighbors.REPLACE_ONE)
    source = as_parquet(tmp_path, [])
    total = {
        "sex": AttributeRule(ValueRule.MISSING, ValueRule.MISSING),
        "age": AttributeRule(ValueRule.CLAMP, ValueRule.MISSING),
    }
    domain = Domain((SEX, AGE), structural_zeros=ZEROS[:1])
    for wanted, rules in [(DOMAIN, Rules()), (domain, Rules(total)), (domain, Rules(unknown_where_impossible="sex"))]:
        with pytest.raises(InvalidRule, match="replace-one"):
            counts(source, wanted, protection=protection, rules=rules)
    assert counts(source, protection=protection, rules=Rules(dropping_is_public=True)) == {}
    assert counts(source, domain, protection=protection, rules=Rules(total, unknown_where_impossible="sex")) == {}


def test_grid_points_of_the_reference() -> None:
    """The reference itself, by hand: halves go up, ends are clamped."""
    assert [reading(AGE, age)[1] for age in (2, 3, 7, 8, 99, -1)] == [0, 1, 1, 2, 4, 0]
    assert reading(AGE, "none") == ("found", 5)
    assert reading(PAY, 0.25)[1] == math.floor((0.25 + 1) / 0.1 + 0.5)
    assert reading(HOURS, float(Fraction(3, 10))) == ("found", 1)
    assert reading(HOURS, 40.0) == ("found", 2)
