"""The name of the confidential file is not in the program that a release carries, and nothing else in it is changed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dualmandate.errors import InvalidValue
from dualmandate.planning.release_spec import without_source_name
from dualmandate.program.file import read_document

NAME = "secret-claims.csv"
REST = '[program]\r\nname = "é"  # a comment\r\n[population]\r\nunit = "person"\r\n'


def carried(folder: Path, text: str) -> str:
    path = folder / "program.toml"
    path.write_bytes(text.encode())
    return without_source_name(read_document(path), path.read_bytes()).decode()


@pytest.mark.parametrize(
    "source",
    [
        f'source = "data/{NAME}"\r\n',
        f"source = 'data/{NAME}'\r\n",
        f'source = {{ path = "data/{NAME}", delimiter = ";" }}\r\n',
        f'[population.source]\r\ndelimiter = ";"\r\npath = "data/{NAME}"\r\n',
    ],
)
def test_only_the_name_is_replaced(source: str, tmp_path: Path) -> None:
    found = carried(tmp_path, REST + source)
    assert found == (REST + source).replace(f"data/{NAME}", "confidential.csv")
    assert NAME not in found
    tomllib.loads(found)


def test_the_file_of_a_database_is_replaced_and_its_table_is_not(tmp_path: Path) -> None:
    source = 'source = { url = "sqlite:///data/secret-claims.sqlite", table = "claims" }\r\n'
    found = carried(tmp_path, REST + source)
    assert found == REST + 'source = { url = "sqlite:///confidential", table = "claims" }\r\n'
    variable = 'source = { url_variable = "CLAIMS", table = "claims" }\r\n'
    assert carried(tmp_path, REST + variable) == REST + variable


def test_a_program_without_a_file_is_carried_as_it_is(tmp_path: Path) -> None:
    for source in ("", 'source = { spark = "people" }\r\n'):
        assert carried(tmp_path, REST + source) == REST + source


def test_a_name_that_cannot_be_found_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue) as caught:
        carried(tmp_path, REST + 'source = "secret\\u002dclaims.csv"\r\n')
    assert NAME not in str(caught.value)
    assert caught.value.where is not None
    assert caught.value.where.line == 5
