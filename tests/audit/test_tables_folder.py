"""Folders of published tables: read, attacked, and refused with file, line and key."""

from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate.audit import audit as run_audit
from dualmandate.audit.finding import Finding, Range, Rate
from dualmandate.errors import InvalidFile, InvalidTables, InvalidValue, MissingKey, Refusal, UnknownKey

QUEUE = """\
[tables]
schema = 1
name   = "the seven persons of ACM Queue"

[population]
attributes.age     = { from = 0, to = 125 }
attributes.sex     = ["F", "M"]
attributes.race    = ["B", "W"]
attributes.marital = ["S", "M"]
structural_zeros   = [{ marital = "M", age = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14] }]

[[statistics]]
name  = "statistics"
file  = "statistics.csv"
of    = "age"
by    = ["sex", "race", "marital"]
label = "statistic"
"""
STATISTICS = """\
statistic,sex,race,marital,count,median,mean
1A,,,,7,30,38.0
2A,F,,,4,30,33.5
2B,M,,,3,30,44.0
2C,,B,,4,51,48.5
2D,,W,,3,24,24.0
3A,,,S,(D),(D),(D)
3B,,,M,4,51,54.0
4A,F,B,,3,36,36.7
"""
BLOCKS = """\
[tables]
schema = 1
name   = "blocks"
place  = "block"

[population]
attributes.sex = ["F", "M"]
attributes.age = ["child", "adult"]

[[counts]]
name = "everybody"
file = "everybody.csv"

[[counts]]
name = "by sex"
file = "sex.csv"
by   = ["sex"]

[[counts]]
name  = "ages of women"
file  = "women.csv"
by    = ["age"]
where = { sex = "F" }
"""
FILES = {
    "everybody.csv": "block,count\n1,5\n2,0\n",
    "sex.csv": "block,sex,count\n1,F,3\n1,M,2\n2,F,0\n2,M,0\n",
    "women.csv": "block,age,count\n1,child,1\n1,adult,2\n2,child,0\n2,adult,0\n",
}
PAY = """\
[tables]
schema = 1
name   = "pay"

[[magnitudes]]
name  = "pay by county and sector"
file  = "pay.csv"
by    = ["county", "sector"]
total = "all"

[[magnitudes]]
name   = "pay by industry"
file   = "tree.csv"
cell   = "industry"
parent = "part_of"
"""
PAY_FILES = {
    "pay.csv": "county,sector,value\na,x,(D)\na,y,(D)\na,all,102\nb,x,(D)\nb,y,(D)\nb,all,53\n"
    "all,x,5\nall,y,150\nall,all,155\n",
    "tree.csv": "industry,part_of,value\nall,,100\ngoods,all,40\nservices,all,60\nmining,goods,\nfarms,goods,30\n",
}


def written(folder: Path, schema: str, files: dict[str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "tables.toml").write_text(schema)
    for name, text in files.items():
        (folder / name).write_text(text)
    return folder


def found(folder: Path, **asked: object) -> tuple[Finding, ...]:
    return run_audit(folder, **asked).findings


@pytest.mark.parametrize(("dropped", "solutions", "common"), [((), 1, 7), (("4A",), 2, None), (("2A", "2B"), 8, 4)])
def test_the_block_of_the_article_from_files(
    tmp_path: Path, dropped: tuple[str, ...], solutions: int, common: int | None
) -> None:
    lines = [line for line in STATISTICS.splitlines() if line.split(",")[0] not in dropped]
    unique, lists, persons = found(written(tmp_path / "queue", QUEUE, {"statistics.csv": "\n".join(lines)}))
    assert unique.success == Rate(int(solutions == 1), 1)
    assert isinstance(lists.success, Range)
    assert (lists.success.least, lists.success.largest) == (solutions, solutions)
    assert lists.partial is None
    if common is not None:
        assert persons.success == Rate(common, 7)


def test_exact_blocks_and_one_of_nobody(tmp_path: Path) -> None:
    unique, records, apart = found(written(tmp_path / "blocks", BLOCKS, FILES))
    assert unique.success == Rate(1, 2)  # that of nobody
    assert records.success == Rate(3, 5)  # the women
    assert isinstance(apart.success, Range)
    assert apart.success.largest == pytest.approx(2 / 5)
    assert "1: 2 × sex F, age adult" in unique.details


def test_only_blocks_of_nobody(tmp_path: Path) -> None:
    empty = {name: "\n".join(line for line in text.splitlines() if line[0] != "1") for name, text in FILES.items()}
    (unique,) = found(written(tmp_path / "nobody", BLOCKS, empty))
    assert unique.success == Rate(1, 1)


def test_records_judge_an_attack_inside(tmp_path: Path) -> None:
    folder = written(tmp_path / "blocks", BLOCKS, FILES)
    truth = tmp_path / "truth.csv"
    truth.write_text("block,sex,age\n1,F,child\n1,F,adult\n1,F,adult\n1,M,adult\n1,M,child\n")
    audit = run_audit(folder, confidential=truth)
    (judged,) = audit.labeled("internal")
    assert judged.reference == "confidential"
    assert isinstance(judged.success, Rate)
    assert judged.success.successes >= 3
    assert all(each["label"] == "public" for each in audit.document()["findings"])  # type: ignore[attr-defined]
    assert len(audit.document("internal")["findings"]) == len(audit.findings)  # type: ignore[arg-type]


def test_suppressed_counts_follow_from_the_others(tmp_path: Path) -> None:
    hidden = {**FILES, "sex.csv": "block,sex,count\n1,F,(D)\n1,M,(D)\n2,F,0\n2,M,0\n"}
    findings = found(written(tmp_path / "blocks", BLOCKS, hidden))
    exactly = next(each for each in findings if "follow exactly" in each.claim)
    assert exactly.success == Rate(2, 2)
    assert "1: by sex: F: 3" in exactly.details


def test_rounded_and_noisy_tables_are_attacked_beside_guessers(tmp_path: Path) -> None:
    noisy = BLOCKS.replace('file = "sex.csv"', 'file = "sex.csv"\nmean_absolute_error = 1.5').replace(
        'file = "everybody.csv"', 'file = "everybody.csv"\nrounded_to = 3'
    )
    finding, _, _ = found(
        written(tmp_path / "noisy", noisy, {**FILES, "sex.csv": "block,sex,count\n1,F,3.5\n1,M,2\n2,F,-1\n2,M,0\n"})
    )
    assert finding.reference == "synthetic"
    assert [each.who for each in finding.baselines] == ["proportional guesser", "modal guesser"]


def test_amounts_along_columns_and_in_a_tree(tmp_path: Path) -> None:
    along, near, unprotected, tree, _, known = found(written(tmp_path / "pay", PAY, PAY_FILES))
    assert along.success == Rate(0, 4)
    assert near.success == Rate(2, 4)  # 97 to 102, and 48 to 53
    assert unprotected.success == Rate(2, 4)
    assert unprotected.details == ("a, y: 97 to 102", "b, y: 48 to 53")
    assert tree.success == known.success == Rate(1, 1)
    assert tree.details == ("mining: 10",)


def test_a_place_that_contradicts_itself_is_named_and_left_out(tmp_path: Path) -> None:
    right = found(written(tmp_path / "right", BLOCKS, FILES))
    wrong = {**FILES, "everybody.csv": "block,count\n1,6\n2,0\n"}
    places, *_ = found(written(tmp_path / "wrong", BLOCKS, wrong))
    assert places.partial is not None
    assert places.partial.startswith(
        "in 1 of 2 places the tables contradict each other, so that they were left out: in 1,"
    )
    assert "everybody = 6" in places.partial
    assert isinstance(places.success, Rate)
    assert isinstance(right[0].success, Rate)
    assert places.success.trials == right[0].success.trials - 1


def test_contradictions_name_a_smallest_set_and_the_place(tmp_path: Path) -> None:
    wrong = {**FILES, "everybody.csv": "block,count\n1,6\n2,1\n"}
    with pytest.raises(InvalidTables, match="in 1, the tables contradict each other") as caught:
        found(written(tmp_path / "blocks", BLOCKS, wrong))
    assert "everybody = 6" in caught.value.what
    assert "ages of women" not in caught.value.what
    assert caught.value.where is not None
    assert str(caught.value.where.file).endswith("tables.toml")


@pytest.mark.parametrize(
    ("change", "file", "text", "refusal", "words", "line"),
    [
        ("", "sex.csv", "block,sex,count\n1,F,x\n1,M,2\n2,F,0\n2,M,0\n", InvalidTables, "'x' is not a number", 2),
        ("", "sex.csv", "block,sex,count\n1,F,-1\n1,M,2\n2,F,0\n2,M,0\n", InvalidTables, "-1 is no count", 2),
        ("", "sex.csv", "block,sex,count\n1,G,3\n1,M,2\n2,F,0\n2,M,0\n", InvalidTables, "'G' is not a level", 2),
        ("", "sex.csv", "block,sex,count\n1,F,3\n1,F,3\n2,F,0\n2,M,0\n", InvalidTables, "stands twice", 3),
        ("", "sex.csv", "block,sex,count\n1,F,3\n1,M,2\n2,F,0\n", InvalidTables, "lacks the cell", 16),
        ("", "sex.csv", "block,gender,count\n1,F,3\n", InvalidValue, "no column 'sex'", 17),
        ("place", "sex.csv", FILES["sex.csv"], UnknownKey, "the key 'plaze' is unknown", 4),
        ("file", "sex.csv", FILES["sex.csv"], InvalidFile, "cannot be read", 12),
    ],
)
def test_what_is_odd_is_refused_with_its_place(
    tmp_path: Path, change: str, file: str, text: str, refusal: type[Refusal], words: str, line: int
) -> None:
    schema = BLOCKS
    if change == "place":
        schema = schema.replace("place ", "plaze ", 1)
    if change == "file":
        schema = schema.replace("everybody.csv", "nowhere.csv")
    with pytest.raises(refusal, match=words) as caught:
        found(written(tmp_path / "blocks", schema, {**FILES, file: text}))
    assert caught.value.where is not None
    assert caught.value.where.line == line


def test_schemas_that_say_too_little(tmp_path: Path) -> None:
    head = '[tables]\nschema = 1\nname = "x"\n'
    with pytest.raises(MissingKey, match="names no table"):
        found(written(tmp_path / "a", head, {}))
    with pytest.raises(MissingKey, match="attributes are not stated"):
        found(written(tmp_path / "b", head + '[[counts]]\nname = "a"\nfile = "a.csv"\n', {"a.csv": "count\n1\n"}))
    (tmp_path / "c").mkdir()
    with pytest.raises(InvalidFile, match="nothing to audit"):
        found(tmp_path / "c")


def test_statistics_of_many_places_and_one_that_contradicts_itself(tmp_path: Path) -> None:
    schema = QUEUE.replace('name   = "the seven', 'place  = "block"\nname   = "the seven')
    lines = STATISTICS.splitlines()
    several = [f"block,{lines[0]}", *(f"{place},{line}" for place in "ab" for line in lines[1:]), "c,1A,,,,0,,"]
    unique, lists, persons = found(written(tmp_path / "queue", schema, {"statistics.csv": "\n".join(several)}))
    assert unique.success == Rate(2, 2)  # nobody lives in the third
    assert isinstance(lists.success, Range)
    assert persons.success == Rate(14, 14)
    wrong = [line.replace("b,2A,F,,,4", "b,2A,F,,,5") for line in several]
    with pytest.raises(InvalidTables, match="in b, the statistics contradict each other") as caught:
        found(written(tmp_path / "queue", schema, {"statistics.csv": "\n".join(wrong)}))
    assert caught.value.why.startswith("no 7 persons have all of them")
