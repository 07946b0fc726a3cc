"""Set-up: pip's settings reach uv, an environment is made once, and a missing system part is never green."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from playwright.sync_api import Page

import environment
import system_parts

LISTING = """\
:env:.find-links='wheels more/wheels'
:env:.no-index='1'
freeze.timeout='1'
global.extra-index-url='\\nfile:///a/simple\\nfile:///b/simple'
global.find-links='elsewhere'
global.timeout='15'
install.timeout='30'
"""


def test_pip_settings_have_pips_precedence() -> None:
    settings = environment.read_pip_settings(LISTING)
    assert settings["find-links"] == "wheels more/wheels"
    assert settings["timeout"] == "30"


def test_pip_settings_reach_uv() -> None:
    variables = environment.uv_environment(environment.read_pip_settings(LISTING), {"PATH": "/bin"})
    assert variables == {
        "PATH": "/bin",
        "UV_FIND_LINKS": "wheels,more/wheels",
        "UV_HTTP_TIMEOUT": "30",
        "UV_INDEX": "file:///a/simple file:///b/simple",
        "UV_INDEX_STRATEGY": "unsafe-best-match",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_SYSTEM_CERTS": "1",
    }


def test_without_a_network_no_index_is_asked() -> None:
    settings = environment.read_pip_settings(LISTING)
    assert "--no-index" in environment.uv_options(settings)
    assert environment.uv_environment(settings, {})["UV_FIND_LINKS"] == "wheels,more/wheels"
    assert "--no-index" not in environment.uv_options(settings | {"no-index": "false"})
    assert "--no-index" not in environment.uv_options({})


def test_the_users_own_uv_variables_stay() -> None:
    mine = {"UV_DEFAULT_INDEX": "file:///mine/simple"}
    assert (
        environment.uv_environment({"index-url": "file:///a/simple"}, mine)["UV_DEFAULT_INDEX"] == "file:///mine/simple"
    )


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A folder with requirements and a stand-in for installing; lists what was installed."""
    (tmp_path / "requirements").mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    for name in ("base", "test"):
        (tmp_path / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
    venv = tmp_path / ".venv"
    for name, value in {"ROOT": tmp_path, "VENV": venv, "PYTHON": venv / "bin/python", "STAMP": venv / "stamp"}.items():
        monkeypatch.setattr(environment, name, value)
    installed: list[str] = []

    def install(name: str) -> None:
        installed.append(name)
        (venv / "bin").mkdir(parents=True, exist_ok=True)
        for program in ("python", "dualmandate"):
            (venv / "bin" / program).touch()

    monkeypatch.setattr(environment, "install_with_uv", install)
    return installed


def test_an_environment_is_made_once(made: list[str]) -> None:
    environment.set_up("base")
    environment.set_up("base")
    assert made == ["base"]
    environment.set_up("test")
    environment.set_up("base")  # the larger set is enough
    assert made == ["base", "test"]


def test_other_pins_make_it_anew(made: list[str]) -> None:
    environment.set_up("test")
    (environment.ROOT / "requirements" / "test.txt").write_text("test==2\n")
    environment.set_up("test")
    (environment.VENV / "bin" / "dualmandate").unlink()
    environment.set_up("test")
    assert made == ["test"] * 3


def test_pip_steps_in_where_uv_cannot(made: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> None:
        raise subprocess.CalledProcessError(2, ["uv", name])

    monkeypatch.setattr(environment, "install_with_pip", environment.install_with_uv)
    monkeypatch.setattr(environment, "install_with_uv", broken)
    environment.set_up("base")
    assert made == ["base"]
    monkeypatch.setattr(environment, "install_with_pip", broken)
    with pytest.raises(SystemExit, match="PIP_NO_INDEX=1 PIP_FIND_LINKS"):
        environment.set_up("test")
    assert not environment.present("test")


def test_an_unsupported_python_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))
    with pytest.raises(SystemExit, match=r"Python 3\.10 cannot run dualmandate"):
        environment.main(["base"])


def test_a_missing_part_gives_one_line_to_paste() -> None:
    part = system_parts.Part("a thing", "thing", "browser", lambda: False)
    assert system_parts.missing([part]) == (part,)
    assert system_parts.line_to_paste([part, part]).endswith("install --yes --no-install-recommends thing")


def run_tests(
    root: Path, folder: Path, body: str, variables: Mapping[str, str], *options: str
) -> subprocess.CompletedProcess[str]:
    """pytest, with the house's own conftest, on one module elsewhere."""
    shutil.copy(root / "tests" / "conftest.py", folder)
    shutil.copy(root / "pyproject.toml", folder)
    shutil.copytree(root / "scripts", folder / "scripts", dirs_exist_ok=True)
    (folder / "test_body.py").write_text(body)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options, "test_body.py"]
    return subprocess.run(command, cwd=folder, env=dict(variables), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", ["0", pytest.param("2", marks=pytest.mark.slow)])
def test_a_missing_part_is_not_run_and_not_green(root: Path, tmp_path: Path, workers: str) -> None:
    body = "def test_plain(): ...\n\ndef test_page(browser_page): ...\n"
    bare = os.environ | {"PATH": str(tmp_path)}
    result = run_tests(root, tmp_path, body, bare, "--numprocesses", workers)
    assert result.returncode == 1, result.stdout + result.stderr
    assert "1 passed, 1 not run" in result.stdout
    assert "1 not run: chromium missing; to install: sudo apt-get" in result.stdout


def test_what_needs_a_part_can_be_left_out_by_name(root: Path, tmp_path: Path) -> None:
    body = "def test_plain(): ...\n\ndef test_page(browser_page): ...\n"
    result = run_tests(root, tmp_path, body, os.environ | {"PATH": str(tmp_path)}, "-m", "not browser")
    assert result.returncode == 0
    assert "1 passed, 1 deselected" in result.stdout


def test_the_browser_is_real(browser_page: Page) -> None:
    browser_page.set_content("<p>one</p><script>document.querySelector('p').append(' and two')</script>")
    browser_page.set_viewport_size({"width": 390, "height": 800})
    assert browser_page.locator("p").inner_text() == "one and two"
    assert browser_page.evaluate("innerWidth") == 390


@pytest.mark.browser
@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("<script>throw Error('boom')</script>", "scripts failed: ['boom']"),
        ("<img src='https://example.invalid/x.png'>", "outside this machine: ['https://example.invalid/x.png']"),
    ],
)
def test_a_page_that_fails_or_calls_out_fails_its_test(root: Path, tmp_path: Path, page: str, words: str) -> None:
    body = f"def test_page(browser_page):\n    browser_page.set_content({page!r})\n"
    result = run_tests(root, tmp_path, body, os.environ)
    assert result.returncode == 1
    assert words in result.stdout
