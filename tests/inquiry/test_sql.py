"""The language: what it picks is what SQL picks, and what is not of it is refused by its place."""

from __future__ import annotations

import sqlite3
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.inquiry.towns import DOMAIN, NULLS, counts_of, records

from dualmandate.errors import InvalidDomain, InvalidQuery, Refusal, TooLarge
from dualmandate.inquiry import Question, question_of
from dualmandate.inquiry.schema import query_of
from dualmandate.inquiry.sql import parse_sql
from dualmandate.population import Attribute, Domain
from dualmandate.workload import Workload

ROWS = records()
COUNTED = "SELECT COUNT(*) FROM records WHERE "
CONDITIONS = [
    "age >= 5",
    "age > 5 AND ward <> 'north'",
    "NOT (age < 5)",
    "NOT (age = 3 OR age IN (4, 5))",
    "age BETWEEN 2 AND 7 AND NOT age BETWEEN 3 AND 4",
    "age IS NULL",
    "income IS NOT NULL AND age IS NOT NULL",
    "income < 12.5",
    "income <= -20 OR income > 90",
    "-5 <= income AND 7 > income",
    "income NOT IN (0, 5)",
    "NOT NOT ward = 'east'",
    "(ward = 'east' OR ward = 'west') AND (age = 1 OR NOT age <= 9)",
    "coast = 'sea' AND ward <> 'west'",
    "paid >= 10",
    "paid < 10",
    "income BETWEEN 50 AND 1e9",
]


def question(text: str) -> Question:
    return question_of(parse_sql(text), DOMAIN)


def database() -> sqlite3.Connection:
    """The records as SQL has them: what is missing is NULL, and amounts are the lowest of their bin."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE records (age INTEGER, ward TEXT, income REAL, paid REAL, coast TEXT)")
    for age, ward, income, paid in ROWS:
        coast = "sea" if ward in ("north", "west") else "land"
        stated = (None if age == NULLS["age"] else int(age), ward, None if income == NULLS["income"] else float(income))
        connection.execute("INSERT INTO records VALUES (?, ?, ?, ?, ?)", (*stated, float(paid), coast))
    return connection


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_picks_what_sql_picks(condition: str) -> None:
    connection = database()
    for aggregate in ("COUNT(*)", "SUM(income)", "AVG(income)"):
        found = question(f"SELECT {aggregate} FROM records WHERE {condition}")
        values = Workload(DOMAIN, found.tables).answers(counts_of(ROWS)).astype(float)
        values[: 1 if "income" in aggregate else 0] *= 5  # the grid
        answer = values[0] / values[1] if aggregate == "AVG(income)" else values[0]
        [[expected]] = connection.execute(f"SELECT {aggregate} FROM records WHERE {condition}").fetchall()
        assert answer == pytest.approx(expected or 0)


def test_groups_are_those_that_are_declared() -> None:
    found = question("SELECT coast, age, COUNT(*) FROM records WHERE age > 8 GROUP BY coast, age")
    [table] = found.tables
    labels = list(Workload(DOMAIN, (table,)).labels(table.name))
    assert found.by == ("age", "coast")
    assert labels == [(age, coast) for age in ("9", "10", "11") for coast in ("sea", "land")]
    answers = Workload(DOMAIN, (table,)).answers(counts_of(ROWS))
    query = "SELECT COUNT(*) FROM records WHERE age > 8 GROUP BY age, coast ORDER BY age, coast DESC"
    assert answers.tolist() == [count for [count] in database().execute(query)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("WHERE age >= 5 AND ward = 'east'", "where ward in ('east') and not (age < 5) -- the same"),
        ("WHERE coast = 'sea'", "WHERE ward = 'north' OR ward = 'west'"),
        ("WHERE income < 12.5", "WHERE income <= 10"),
        ("WHERE age BETWEEN 0 AND 11", "WHERE age IS NOT NULL"),
        ("WHERE ward IS NOT NULL", ""),
    ],
)
def test_what_asks_the_same_has_one_canonical_form(one: str, other: str) -> None:
    texts = [f"SELECT COUNT(*) FROM records {each}" for each in (one, other)]
    assert len({question(text).digest for text in texts}) == 1
    assert question(texts[0]).digest != question("SELECT SUM(income) FROM records " + one).digest


def test_other_ways_to_write_a_question_have_its_canonical_form() -> None:
    pairs = [
        ("SELECT MEDIAN(age) FROM records", "SELECT quantile(age, 0.50) AS q FROM records WHERE age IS NOT NULL;"),
        (
            "SELECT ward, age, COUNT(*) FROM records GROUP BY age, ward",
            "SELECT COUNT(*) FROM RECORDS GROUP BY ward, age",
        ),
        ('SELECT AVG("income") FROM records', "SELECT AVG(income) FROM records WHERE income IS NOT NULL"),
    ]
    for one, other in pairs:
        assert question(one).digest == question(other).digest
    stated = {"statistic": "mean", "of": "income", "by": ["ward"], "where": {"age": {"from": 3, "below": 7}}}
    text = "SELECT ward, AVG(income) FROM records WHERE age >= 3 AND age < 7 GROUP BY ward"
    assert question_of(query_of(stated), DOMAIN).digest == question(text).digest
    digests = {question(f"SELECT QUANTILE(age, {level}) FROM records").digest for level in (0.25, 0.5, 0.75)}
    assert len(digests) == 3


def test_a_grouping_is_known_by_its_groups_not_by_its_name() -> None:
    from dualmandate.population import Grouping, Hierarchy

    other = Hierarchy("ward", (Grouping.of("coast", ["sea", "sea", "land", "land"]),))
    text = "SELECT COUNT(*) FROM records GROUP BY coast"
    moved = question_of(parse_sql(text), Domain(DOMAIN.attributes, (other,)))
    assert moved.digest != question(text).digest


REFUSED = [
    ("SELECT ward, COUNT(*) FROM records GROUP BY ward HAVING COUNT(*) > 9", "column 50", "'HAVING'"),
    ("SELECT COUNT(*) FROM records\nORDER BY 1", "line 2, column 1", "'ORDER BY'"),
    ("SELECT COUNT(*) FROM records LIMIT 3", "column 30", "'LIMIT'"),
    ("SELECT COUNT(*) FROM records JOIN other", "column 30", "'JOIN'"),
    ("SELECT COUNT(*) FROM records, records", "column 1", "one SELECT"),
    ("SELECT COUNT(*) FROM (SELECT 1)", "column 23", "a SELECT within"),
    ("SELECT COUNT(*) FROM records WHERE age IN (SELECT 1)", "column 44", "a SELECT within"),
    ("WITH x AS (SELECT 1) SELECT COUNT(*) FROM x", "column 1", "'WITH'"),
    ("SELECT COUNT(*) FROM records UNION SELECT 1", "column 30", "'UNION'"),
    ("SELECT COUNT(*) FROM records; DROP TABLE records", "column 29", "';'"),
    ("DROP TABLE records", "column 1", "'DROP'"),
    ("SELECT COUNT(DISTINCT age) FROM records", "column 14", "'DISTINCT'"),
    ("SELECT COUNT(age) FROM records", "column 8", "COUNT of something"),
    ("SELECT STDDEV(income) FROM records", "column 8", "'Stddev'"),
    ("SELECT pg_sleep(9) FROM records", "column 8", "'pg_sleep'"),
    ("SELECT SUM(income * 2) FROM records", "column 12", "other than a name"),
    ("SELECT SUM(income) OVER () FROM records", "column 20", "'OVER'"),
    ("SELECT COUNT(*), SUM(income) FROM records", "column 18", "several numbers"),
    ("SELECT ward FROM records", "column 8", "no number"),
    ("SELECT ward, COUNT(*) FROM records", "column 8", "not grouped by"),
    ("SELECT * FROM records", "column 8", "'Star'"),
    ("SELECT COUNT(*) FROM people", "column 22", "'people'"),
    ("SELECT COUNT(*) FROM main.records", "column 26", "'.'"),
    ("SELECT COUNT(*) FROM records r", "column 22", "'records'"),
    ("SELECT COUNT(*)", "column 8", "no table"),
    ("SELECT COUNT(*) FROM records WHERE", "column 30", "cannot be read"),
    ("SELECT COUNT(*) FROM records WHERE age = 'x", "column 1", "cannot be read"),
    ("SELECT COUNT(*) FROM records WHERE upper(ward) = 'A'", "column 36", "other than a name"),
    ("SELECT COUNT(*) FROM records WHERE age = income", "column 42", "other than a level"),
    ("SELECT COUNT(*) FROM records WHERE ward LIKE 'n%'", "column 41", "'LIKE'"),
    ("SELECT COUNT(*) FROM records WHERE age = 3 OR ward = 'east'", "column 47", "OR or NOT across"),
    ("SELECT COUNT(*) FROM records WHERE NOT (age = 3 AND ward = 'east')", "column 53", "OR or NOT across"),
    ("SELECT COUNT(*) FROM records WHERE ward < 'east'", "column 36", "by order"),
    ("SELECT COUNT(*) FROM records WHERE coast < 'sea'", "column 36", "by order"),
    ("SELECT COUNT(*) FROM records WHERE paid < 7", "column 43", "paid"),
    ("SELECT COUNT(*) FROM records WHERE income < 'much'", "column 45", "much"),
    ("SELECT COUNT(*) FROM records WHERE age = 99", "column 42", "'99' is not a level"),
    ("SELECT COUNT(*) FROM records WHERE agge = 9", "column 36", "'agge' is not"),
    ("SELECT COUNT(*) FROM records WHERE age = 1 AND age = 2", "", "no record can meet"),
    ("SELECT ward, coast, COUNT(*) FROM records GROUP BY ward, coast", "column 58", "twice"),
    ("SELECT COUNT(*) FROM records GROUP BY 1", "column 39", "other than a name"),
    ("SELECT COUNT(*) FROM records GROUP BY ROLLUP (ward)", "", ""),
    ("SELECT SUM(age) FROM records", "column 12", "the sum of 'age'"),
    ("SELECT income, AVG(income) FROM records GROUP BY income", "column 50", "by itself"),
    ("SELECT MEDIAN(ward) FROM records", "column 15", "no order"),
    ("SELECT QUANTILE(age, 1.5) FROM records", "column 8", "3/2"),
    ("SELECT ward, MEDIAN(age) FROM records GROUP BY ward", "column 21", "several groups"),
    ("", "", "no words"),
]


@pytest.mark.parametrize(("text", "where", "what"), REFUSED)
def test_what_is_not_of_the_language_is_refused_by_its_place(text: str, where: str, what: str) -> None:
    with pytest.raises(Refusal) as refused:
        question(text)
    said = refused.value
    assert isinstance(said, InvalidQuery | InvalidDomain)
    assert where in str(said.where or "")
    assert what in said.what + (said.why if what == "no order" else "")
    assert said.why
    assert said.instead


@pytest.mark.parametrize(
    ("stated", "where"),
    [
        ('{"statistic": "count", "having": 1}', "having"),
        ('{"statistic": "variance", "of": "age"}', "statistic"),
        ('{"statistic": "count", "where": {"age": {"from": 1, "in": [2]}}}', "where.age"),
        ('{"statistic": "count", "where": {"agge": [1]}}', "where.agge"),
        ('{"statistic": "quantile", "of": "age", "level": "much"}', "level"),
        ('{"statistic": "sum", "of": "ward"}', "of"),
        ('{"statistic": "sum"}', ""),
        ('{"statistic": "count", "level": 0.5}', ""),
        ("{", ""),
    ],
)
def test_keys_that_cannot_be_meant_are_refused_by_their_place(stated: str, where: str) -> None:
    with pytest.raises((InvalidQuery, InvalidDomain)) as refused:
        question_of(query_of(stated), DOMAIN)
    assert where in str(refused.value.where or "")


@pytest.mark.parametrize(
    ("selection", "condition"),
    [
        ({"in": [1, "2"]}, "age IN (1, 2)"),
        ({"not_in": [1]}, "age <> 1"),
        ({"from": 4}, "age >= 4"),
        ({"to": 4}, "age <= 4"),
        ({"missing": True}, "age IS NULL"),
        ({"missing": False}, "age IS NOT NULL"),
    ],
)
def test_selections_are_those_of_sql(selection: dict[str, object], condition: str) -> None:
    found = question_of(query_of({"statistic": "count", "where": {"age": selection}}), DOMAIN)
    assert found.digest == question(COUNTED + condition).digest


def test_large_numbers_are_picked_from_without_listing_them() -> None:
    domain = Domain((Attribute.numbers("income", 0, 10**6),))
    found = question_of(parse_sql("SELECT COUNT(*) FROM records WHERE income < 50000"), domain)
    assert found.canonical["where"] == {"income": [[0, 49_999]]}
    with pytest.raises(TooLarge):
        question_of(parse_sql("SELECT MEDIAN(income) FROM records"), domain)


WORDS = [
    *(
        "SELECT",
        "COUNT",
        "(",
        ")",
        "*",
        "FROM",
        "records",
        "WHERE",
        "age",
        "ward",
        "income",
        "'east'",
        "3",
        "-",
        "=",
        "<",
    ),
    *(
        "AND",
        "OR",
        "NOT",
        "IN",
        "BETWEEN",
        "IS",
        "NULL",
        "GROUP",
        "BY",
        ",",
        "AVG",
        "HAVING",
        ";",
        "'",
        '"',
        "--",
        "/*",
    ),
]


@settings(max_examples=150)
@given(st.lists(st.sampled_from(WORDS), max_size=18))
def test_any_words_are_a_question_or_a_refusal(words: list[str]) -> None:
    for text in (" ".join(words), COUNTED + " ".join(words)):
        with suppress(Refusal):  # and no other exception
            assert all(mask.any() for mask in question(text).picked.values())


@pytest.mark.parametrize("text", [COUNTED + "(" * 500 + "age = 1" + ")" * 500, COUNTED + "- " * 400 + "1 = age"])
def test_what_is_nested_without_end_is_refused(text: str) -> None:
    with pytest.raises(InvalidQuery):
        question(text)


def test_many_conditions_side_by_side_are_read() -> None:
    text = COUNTED + " OR ".join("age = 1" for _ in range(600))
    assert question(text).digest == question(COUNTED + "age = 1").digest
