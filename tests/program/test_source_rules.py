"""Where records lie and what becomes of odd ones: keys of the program file, refused with their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.programs import Change

from dualmandate.errors import InvalidDomain, InvalidRule, InvalidValue, MissingKey, Refusal, UnreadableSource
from dualmandate.planning.program import load
from dualmandate.publication import (
    AttributeRule,
    CsvFile,
    DatabaseTable,
    ParquetFile,
    SparkTable,
    StatisticalFile,
    ValueRule,
)

SIZE = "household_size = 3\n"
SEX = 'sex = ["f", "m"]'
PASSWORD = "hush-hush"


def with_source(survey: Change, written: str) -> Path:
    return survey((SIZE, f"{SIZE}source = {written}\n"))


def test_a_program_without_a_source_has_default_rules(survey: Change) -> None:
    program = load(survey())
    assert program.source is None
    assert program.rules.attributes == {}
    assert program.rules.of(program.domain.attribute("income")) == AttributeRule(ValueRule.CLAMP, ValueRule.DROP)


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        ('"people.parquet"', ParquetFile, "people.parquet"),
        ('"data/people.CSV"', CsvFile, "data/people.CSV"),
        ('"people.sas7bdat"', StatisticalFile, "people.sas7bdat"),
        ('{ path = "people.dta" }', StatisticalFile, "people.dta"),
        ('"people.sav"', StatisticalFile, "people.sav"),
    ],
)
def test_a_path_is_meant_from_the_program_file(
    survey: Change, written: str, kind: type[ParquetFile | CsvFile | StatisticalFile], name: str
) -> None:
    path = with_source(survey, written)
    assert load(path).source == kind(path.parent / name)


def test_tables_and_delimiters(survey: Change) -> None:
    path = with_source(survey, '{ path = "people.csv", delimiter = ";" }')
    assert load(path).source == CsvFile(path.parent / "people.csv", ";")
    for url in ("postgresql:///census", "postgresql:///census?sslmode=require", "sqlite:///people.sqlite"):
        written = f'{{ url = "{url}", table = "public.people" }}'
        assert load(with_source(survey, written)).source == DatabaseTable("public.people", url)
    by_variable = with_source(survey, '{ url_variable = "CENSUS_URL", table = "people" }')
    assert load(by_variable).source == DatabaseTable("people", url_variable="CENSUS_URL")
    assert load(with_source(survey, '{ spark = "census.people" }')).source == SparkTable("census.people")


@pytest.mark.parametrize(
    ("written", "refusal", "key"),
    [
        ('"people.xlsx"', UnreadableSource, "population.source"),
        ('{ path = "people.xlsx" }', UnreadableSource, "population.source.path"),
        ('{ path = "people.parquet", delimiter = ";" }', InvalidValue, "population.source.delimiter"),
        ('{ spark = "people", delimiter = ";" }', InvalidValue, "population.source.delimiter"),
        ('{ spark = "people", table = "people" }', InvalidValue, "population.source.table"),
        ('{ url = "sqlite:///x" }', MissingKey, "population.source.table"),
        ('{ url = "sqlite:///x", path = "y", table = "z" }', InvalidValue, "population.source"),
        ('{ table = "z" }', InvalidValue, "population.source"),
        ('{ url = "nothing", table = "z" }', InvalidValue, "population.source.url"),
        ("7", InvalidValue, "population.source"),
        ('""', InvalidValue, "population.source"),
    ],
)
def test_what_is_no_source_is_refused(survey: Change, written: str, refusal: type[Refusal], key: str) -> None:
    path = with_source(survey, written)
    with pytest.raises(refusal) as caught:
        load(path)
    place = caught.value.where
    assert place is not None
    assert (place.file, place.line, place.key) == (str(path), 11, key)


@pytest.mark.parametrize(
    "written",
    [
        f'{{ url = "postgresql://ann:{PASSWORD}@host/census", table = "people" }}',
        f'{{ url = "postgresql://ann@host/census?password={PASSWORD}", table = "people" }}',
        f'{{ url = "mssql+pyodbc://host/x?PWD={PASSWORD}", table = "people" }}',
        f'"postgresql://ann:{PASSWORD}@host/census"',
        f'{{ path = "postgresql://ann:{PASSWORD}@host/census" }}',
    ],
)
def test_a_password_in_the_file_is_refused_and_not_repeated(survey: Change, written: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        load(with_source(survey, written))
    assert PASSWORD not in f"{caught.value} {caught.value.document()}"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann8Zq@/census",
        "postgresql://ann8Zq/census",
        "postgresql://:54329/census",
        "postgresql:///census?host=ann8Zq",
        "postgresql:///census?user=ann8Zq",
        "postgresql:///census?service=ann8Zq",
        "mssql+pyodbc:///?odbc_connect=Server%3Dann8Zq",
    ],
)
def test_who_asks_and_where_is_not_published(survey: Change, url: str) -> None:
    """Releases carry the program file along: a user or a host is refused before anything is planned."""
    with pytest.raises(InvalidValue, match="the url of the source holds a user or a host") as caught:
        load(with_source(survey, f'{{ url = "{url}", table = "people" }}'))
    assert "ann8Zq" not in f"{caught.value} {caught.value.document()}"
    assert "url_variable" in str(caught.value.instead)


def test_rules_are_keys_of_attributes_and_population(survey: Change) -> None:
    path = survey(
        (SIZE, f'{SIZE}unknown_where_impossible = "sex"\ndropping_is_public = true\n'),
        (SEX, 'sex = { levels = ["f", "m"], missing = "?", outside = "missing" }'),
        ("grid = 10 }", 'grid = 10, outside = "drop" }'),
        ("age = { from = 0, to = 9 }", 'age = { from = 0, to = 9, null = "drop" }'),
    )
    rules = load(path).rules
    assert rules.attributes == {
        "sex": AttributeRule(ValueRule.MISSING, ValueRule.MISSING),
        "income": AttributeRule(ValueRule.DROP, ValueRule.DROP),
        "age": AttributeRule(ValueRule.CLAMP, ValueRule.DROP),
    }
    assert rules.unknown_where_impossible == "sex"
    assert rules.dropping_is_public


@pytest.mark.parametrize(
    ("pieces", "refusal", "key"),
    [
        ((SEX, 'sex = { levels = ["f", "m"], outside = "clamp" }'), InvalidRule, "population.attributes.sex.outside"),
        ((SEX, 'sex = { levels = ["f", "m"], outside = "missing" }'), InvalidRule, "population.attributes.sex.outside"),
        ((SEX, 'sex = { levels = ["f", "m"], null = "missing" }'), InvalidRule, "population.attributes.sex.null"),
        ((SEX, 'sex = { levels = ["f", "m"], outside = "refuse" }'), InvalidValue, "population.attributes.sex.outside"),
        ((SEX, 'sex = { levels = ["f", "m"], null = "clamp" }'), InvalidValue, "population.attributes.sex.null"),
        ((SIZE, f'{SIZE}unknown_where_impossible = "sex"\n'), InvalidRule, "population.unknown_where_impossible"),
        ((SIZE, f'{SIZE}unknown_where_impossible = "job"\n'), InvalidDomain, "population.unknown_where_impossible"),
        ((SIZE, f'{SIZE}dropping_is_public = "yes"\n'), InvalidValue, "population.dropping_is_public"),
    ],
)
def test_rules_that_cannot_be_followed_name_their_line(
    survey: Change, pieces: tuple[str, str], refusal: type[Refusal], key: str
) -> None:
    path = survey(pieces)
    with pytest.raises(refusal) as caught:
        load(path)
    place = caught.value.where
    assert place is not None
    assert (place.file, place.key) == (str(path), key)
    assert place.line == path.read_text().splitlines().index(pieces[1].splitlines()[-1]) + 1


def test_rules_and_source_are_signed_with_the_plan(survey: Change) -> None:
    digests = set()
    for pieces in (
        (SIZE, SIZE),
        (SIZE, f'{SIZE}source = "people.csv"\n'),
        (SIZE, f'{SIZE}source = {{ path = "people.csv", delimiter = ";" }}\n'),
        (SIZE, f"{SIZE}dropping_is_public = true\n"),
        ("grid = 10 }", 'grid = 10, outside = "drop" }'),
    ):
        digests.add(load(survey(pieces)).plan().digest)
    assert len(digests) == 5


def test_the_confidential_file_is_no_code_list(survey: Change) -> None:
    with pytest.raises(InvalidValue, match="confidential file"):
        load(with_source(survey, '{ path = "blocks.csv", delimiter = ";" }'))
