from __future__ import annotations

from pathlib import Path

import pytest

from dualmandate.apps.settings import KNOWN, project_folder, settings, unread_variables
from dualmandate.errors import InvalidFile, InvalidValue, Refusal, UnknownKey


def project(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "dualmandate.toml").write_text(text, encoding="utf-8")
    return folder


def test_a_flag_comes_before_a_variable_before_the_project_file_before_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (settings(tmp_path, {})["out"].value, settings(tmp_path, {})["out"].source) == (None, "default")

    project(tmp_path, '# settings\nschema = 1\nout = "report"\n')
    in_file = settings(tmp_path, {})["out"]
    assert (in_file.path, in_file.source) == (tmp_path / "report", "project file")
    assert in_file.origin == f"{tmp_path / 'dualmandate.toml'}, line 3"

    monkeypatch.setenv("DUALMANDATE_OUT", "elsewhere")
    in_variable = settings(tmp_path, {})["out"]
    assert (in_variable.value, in_variable.source, in_variable.origin) == ("elsewhere", "variable", "DUALMANDATE_OUT")

    in_flag = settings(tmp_path, {"out": "here"})["out"]
    assert (in_flag.value, in_flag.source, in_flag.origin) == ("here", "flag", "--out")


def test_an_empty_variable_is_not_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALMANDATE_OUT", "")
    assert settings(tmp_path, {})["out"].source == "default"


def test_the_nearest_project_counts(tmp_path: Path) -> None:
    outer = project(tmp_path / "outer", 'out = "outer"')
    deep = outer / "a" / "b"
    deep.mkdir(parents=True)
    assert project_folder(deep) == outer
    inner = project(outer / "a", 'out = "inner"')
    assert project_folder(deep) == inner
    assert settings(deep, {})["out"].path == inner / "inner"


def test_no_project_above_an_empty_folder(tmp_path: Path) -> None:
    assert project_folder(tmp_path / "not" / "there") is None


@pytest.mark.parametrize(
    ("text", "refusal", "line", "instead"),
    [
        ('schema = 1\nuot = "x"\n', UnknownKey, 2, "did you mean 'out'?"),
        ("epsilon = 1\n", UnknownKey, 1, "the settings are out, data"),
        ("debug = true\n", UnknownKey, 1, "the settings are out, data"),
        ("\nout = 3\n", InvalidValue, 2, "relative to the project file"),
        ('out = ""\n', InvalidValue, 1, "relative to the project file"),
        ("schema = 2\n", InvalidFile, 1, "write schema = 1"),
        ("out = \n", InvalidFile, 1, "key = value"),
    ],
)
def test_a_project_file_nobody_can_mean_is_refused(
    tmp_path: Path, text: str, refusal: type[Refusal], line: int, instead: str
) -> None:
    project(tmp_path, text)
    with pytest.raises(refusal) as caught:
        settings(tmp_path, {})
    assert caught.value.where is not None
    assert caught.value.where.file == str(tmp_path / "dualmandate.toml")
    assert caught.value.where.line == line
    assert instead in caught.value.instead


def test_real_data_beside_the_project_are_found_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert settings(tmp_path, {})["data"].value is None
    (tmp_path / "shared" / "data").mkdir(parents=True)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert settings(Path.cwd(), {})["data"].path == Path("../shared/data")


def test_a_misspelled_variable_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in unread_variables():  # of this run of the tests
        monkeypatch.delenv(name)
    monkeypatch.setenv("DUALMANDATE_OUTT", "x")
    assert unread_variables() == ["DUALMANDATE_OUTT"]


def test_no_setting_can_change_what_a_program_decides() -> None:
    decided = {"epsilon", "rho", "neighbors", "cap", "largest_epsilon", "privacy_weight", "relative_privacy_weight"}
    assert decided.isdisjoint(known.name for known in KNOWN)


def test_a_folder_above_that_may_not_be_searched_hides_no_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(path: Path) -> bool:
        raise PermissionError(path)

    monkeypatch.setattr(Path, "exists", forbidden)
    assert project_folder(tmp_path) is None
    assert settings(tmp_path, {})["data"].value is None
