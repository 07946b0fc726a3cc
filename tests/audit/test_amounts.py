"""Amounts over several periods from files: bounds, estimates over time, true amounts inside the wall, and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate.audit import audit as run_audit
from dualmandate.audit.finding import Finding, Rate
from dualmandate.audit.run import Audit
from dualmandate.audit.targets.of_tables import _last_totals
from dualmandate.benchmarks import qcew
from dualmandate.errors import InvalidTables, InvalidValue, MissingKey, Refusal, UnreadableSource

HEAD = '[tables]\nschema = 1\nname = "jobs"\nplace = "county"\n'
TREE = """
[[magnitudes]]
name   = "jobs by industry"
file   = "jobs.csv"
cell   = "industry"
parent = "part_of"
period = "quarter"
size   = "firms"
share  = 0.1
"""
ALONG = '\n[[magnitudes]]\nname = "jobs"\nfile = "jobs.csv"\nby = ["industry", "sex"]\nperiod = "quarter"\n'
COLUMNS = "county,industry,part_of,quarter,firms,value\n"
SECRET = 4711


def rows(county: str, shown: dict[str, list[str]], *, last: int = 3) -> str:
    """A total of its parts in some quarters, from the numbers of each."""
    lines = []
    for industry, numbers in shown.items():
        above = "" if industry == "all" else "all"
        lines += [f"{county},{industry},{above},{q},{2 * q},{n}" for q, n in enumerate(numbers[:last], start=1)]
    return "\n".join(lines) + "\n"


IN_A = {"all": "100 120 140", "mines": "20 (D) 28", "farms": "30 (D) 42", "shops": "50 60 70"}
IN_B = {"all": "90 95 99", "mines": "(D) (D) (D)", "farms": "(D) (D) -", "shops": "40 40 41"}
JOBS = "".join(
    rows(county, {industry: numbers.replace("-", " ").split(" ") for industry, numbers in jobs.items()})
    for county, jobs in (("a", IN_A), ("b", IN_B))
)


def folder(path: Path, schema: str, text: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / "tables.toml").write_text(schema)
    (path / "jobs.csv").write_text(text)
    return path


def audited(path: Path, **asked: object) -> Audit:
    return run_audit(path, **asked)


def claims(audit: Audit, words: str) -> Finding:
    return next(finding for finding in audit.findings if words in finding.claim)


def test_every_period_is_bounded_and_then_carried_over(tmp_path: Path) -> None:
    audit = audited(folder(tmp_path / "jobs", HEAD + TREE, COLUMNS + JOBS))
    assert claims(audit, "follow exactly").success == Rate(0, 8)
    assert claims(audit, "protection interval of ±10 %").success == Rate(0, 8)
    assert claims(audit, "published in another period").success == Rate(2, 8)
    assert {finding.attack for finding in audit.findings} == {
        "bounds of suppressed cells",
        "suppressed numbers over time",
    }


def test_a_period_in_which_a_number_follows_is_named(tmp_path: Path) -> None:
    text = JOBS.replace("a,farms,all,2,4,(D)", "a,farms,all,2,4,36")
    found = claims(audited(folder(tmp_path / "jobs", HEAD + TREE, COLUMNS + text)), "follow exactly")
    assert found.success == Rate(1, 7)
    assert found.details == ("a, 2: mines: 24",)


def test_a_folder_of_true_tables_judges_inside(tmp_path: Path) -> None:
    tables = folder(tmp_path / "jobs", HEAD + TREE, COLUMNS + JOBS)
    true = JOBS.replace("a,mines,all,2,4,(D)", "a,mines,all,2,4,24").replace(
        "a,farms,all,2,4,(D)", "a,farms,all,2,4,36"
    )
    for quarter, (mines, farms) in enumerate([(5, 45), (5, 50), (6, 52)], start=1):
        size = 2 * quarter
        true = true.replace(f"b,mines,all,{quarter},{size},(D)", f"b,mines,all,{quarter},{size},{mines}")
        mark = "" if quarter == 3 else "(D)"
        true = true.replace(f"b,farms,all,{quarter},{size},{mark}\n", f"b,farms,all,{quarter},{size},{farms}\n")
    inside = folder(tmp_path / "true", "", COLUMNS + true)
    audit = audited(tables, confidential=inside)
    protection, over_time = audit.labeled("internal")
    assert protection.success == Rate(0, 8)  # both parts of 50 may be 0 to 50
    assert isinstance(over_time.success, Rate)
    assert over_time.success.trials == 8
    assert over_time.success.successes >= 2  # those that two other quarters show
    assert "confidential" not in str(audit.document())
    (inside / "jobs.csv").write_text(COLUMNS + true.replace("2,4,24", f"2,4,-{SECRET}"))
    with pytest.raises(UnreadableSource, match="has no amount for the suppressed cell") as caught:
        audited(tables, confidential=inside)
    assert str(SECRET) not in str(caught.value)
    (inside / "jobs.csv").write_text(COLUMNS + rows("a", {"all": ["1"]}))
    with pytest.raises(UnreadableSource, match="does not say what is in the suppressed cell"):
        audited(tables, confidential=inside)
    (inside / "jobs.csv").write_text(f"county,value\na,{SECRET}\n")
    with pytest.raises(UnreadableSource, match="no column 'industry'") as lacking:
        audited(tables, confidential=inside)
    assert str(SECRET) not in str(lacking.value)
    (inside / "jobs.csv").write_text(COLUMNS + true + f"a,mines,all,2,4,{SECRET},\n")
    with pytest.raises(UnreadableSource, match="cannot be used") as surplus:
        audited(tables, confidential=inside)
    assert surplus.value.where is not None
    assert surplus.value.where.line == len((COLUMNS + true).splitlines()) + 1
    assert str(SECRET) not in str(surplus.value)
    records = tmp_path / "records.csv"
    records.write_text("county\na\n")
    assert "amounts need a folder of true tables" in audited(tables, confidential=records).left_out[0]


def test_tables_along_columns_have_periods_too(tmp_path: Path) -> None:
    lines = "county,industry,sex,quarter,value\n"
    for quarter in (1, 2, 3):
        numbers = {("x", "f"): 10 * quarter, ("x", "m"): 20, ("y", "f"): 30, ("y", "m"): 5 * quarter}
        for industry in ("x", "y", "total"):
            for sex in ("f", "m", "total"):
                n = sum(v for (i, s), v in numbers.items() if industry in (i, "total") and sex in (s, "total"))
                hidden = quarter == 2 and "total" not in (industry, sex)
                lines += f"a,{industry},{sex},{quarter},{'(D)' if hidden else n}\n"
    audit = audited(folder(tmp_path / "jobs", HEAD + ALONG, lines))
    assert claims(audit, "follow exactly").success == Rate(0, 4)
    assert claims(audit, "published in another period").success == Rate(4, 4)


def test_a_cell_is_a_part_of_the_total_along_its_last_column() -> None:
    # 3 × 3 with totals last: the inner cells of each row, then the row totals and the total row
    assert _last_totals((3, 3)).tolist() == [2, 2, 8, 5, 5, 8, 8, 8, -1]
    assert _last_totals((2, 2, 2)).tolist() == [1, 3, 3, 7, 5, 7, 7, -1]


@pytest.mark.parametrize(
    ("schema", "change", "refusal", "words", "line"),
    [
        (TREE, ("a,shops,all,3,6,70\n", ""), InvalidTables, "lacks the cell 'shops' in 3 of a", 8),
        (TREE, ("b,shops,all,1,2,40\n", ""), InvalidTables, "lacks the cell 'shops' in 1 of b", 8),
        (TREE, ("a,shops,all,3,6,70", "a,shops,mines,3,6,70"), InvalidTables, "part of another total", 10),
        (TREE, ("a,all,,1,2,100", "a,all,mines,1,2,100"), InvalidTables, "is a part of itself", None),
        (TREE, ("a,mines,all,1,2,20", "a,mines,none,1,2,20"), InvalidTables, "which is no other cell", 5),
        (TREE, ("a,mines,all,1,2,20", "a,shops,all,1,2,20"), InvalidTables, "stands twice", 11),
        (TREE, ("a,mines,all,1,2,20", "a,mines,all,1,2,-20"), InvalidTables, "an amount of -20", 5),
        (TREE, ("a,mines,all,1,2,20", "a,mines,all,1,2,2.5"), InvalidTables, "an amount of 2.5", 5),
        (TREE, ("a,mines,all,1,2,20", "a,mines,all,1,2,99999999999999"), InvalidTables, "an amount of 999", 5),
        (TREE, ("a,mines,all,1,2,20", "a,mines,all,1,2,n/a"), InvalidTables, "'n/a' is not a number", 5),
        (TREE, ("a,mines,all,1,2,20", "a,mines,all,1,-2,20"), InvalidTables, "a size of -2", 5),
        (TREE, ("a,all,,1,2,100", "a,all,,1,2,101"), InvalidTables, "in a, 1, 'the parts of all' does not", None),
        (TREE.replace('"firms"', '"firm"'), ("", ""), InvalidValue, "no column 'firm'", 12),
        (TREE.replace('"quarter"', '"qtr"'), ("", ""), InvalidValue, "no column 'qtr'", 11),
        (TREE.replace('period = "quarter"\n', ""), ("", ""), MissingKey, "period", None),
        (ALONG, ("", ""), InvalidValue, "no column 'sex'", 9),
    ],
)  # fmt: skip
def test_what_is_odd_is_refused_with_its_place(
    tmp_path: Path, schema: str, change: tuple[str, str], refusal: type[Refusal], words: str, line: int | None
) -> None:
    text = COLUMNS + (JOBS.replace(*change, 1) if change[0] else JOBS)
    with pytest.raises(refusal, match=words) as caught:
        audited(folder(tmp_path / "jobs", HEAD + schema, text))
    assert caught.value.where is not None
    assert caught.value.where.file is not None
    if line is not None:
        assert caught.value.where.line == line


def test_a_slice_of_employment_end_to_end(tmp_path: Path) -> None:
    """One county of the published file where it is at hand, else a generated one; one variable, four quarters."""
    tables, _ = qcew.at_hand(1)
    where = qcew.write_folder(tables, tmp_path / "county", qcew.VARIABLES[2:3])
    audit = audited(where)
    suppressed = int(tables.suppressed.sum())
    exactly, near, failing, elsewhere, *tried = audit.findings
    assert exactly.success.trials == elsewhere.success.trials == suppressed  # type: ignore[union-attr]
    assert isinstance(exactly.success, Rate)
    assert isinstance(failing.success, Rate)
    assert exactly.success.successes <= failing.success.successes
    assert near.partial is None
    assert tried
    for finding in tried:
        assert "estimated within 5 %" in finding.claim
        assert finding.baselines[0].who == "whoever divides what is left by size"
    assert audit.document() == audited(where).document()
