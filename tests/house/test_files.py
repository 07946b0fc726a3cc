"""What may not stand in a file of the repository."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HOSTS = ["pypi" + ".org", "python" + "hosted", "npm" + "js.", "deb." + "debian", "ana" + "conda.", "crates" + ".io"]
MACHINE_PATH = re.compile(r"(?<![\w.~>-])/(?:work|root|home|Users)/[\w.]")
IGNORED = {".git", ".venv", ".tools", "__pycache__", ".dualmandate", "build", "dist", "demo", "site"}


def listed_by_git(root: Path) -> list[Path] | None:
    command = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listing = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return [root / name for name in listing.stdout.split("\0") if name]


def walked(root: Path) -> list[Path]:
    paths = (path for path in root.rglob("*") if path.is_file())
    hidden = {".ci", ".gitignore", ".gitattributes"}
    return [
        path
        for path in paths
        if not any(part in IGNORED or (part[0] == "." and part not in hidden) for part in path.relative_to(root).parts)
    ]


def texts(root: Path) -> Iterator[tuple[Path, str]]:
    for path in listed_by_git(root) or walked(root):
        if path.is_file():
            try:
                yield path.relative_to(root), path.read_text("utf-8")
            except UnicodeDecodeError:
                continue


def test_no_file_names_a_package_host(root: Path) -> None:
    named = {str(path): host for path, text in texts(root) for host in HOSTS if host in text.lower()}
    assert not named


def test_no_file_names_a_path_of_a_machine(root: Path) -> None:
    named = {str(path): found[0] for path, text in texts(root) if (found := MACHINE_PATH.search(text))}
    assert not named


def test_there_is_no_lock_file(root: Path) -> None:
    names = {path.name for path, _ in texts(root)}
    assert "pyproject.toml" in names
    assert not names & {"uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "package-lock.json"}


def test_the_repository_is_found_without_git(root: Path) -> None:
    names = {path.relative_to(root) for path in walked(root)}
    assert {Path("pyproject.toml"), Path(".ci/run"), Path("src/dualmandate/errors.py")} <= names


@pytest.mark.parametrize("text", ["see /" + "work/main", "'/" + "root/.cache'", "(/" + "home/someone)"])
def test_a_machine_path_is_seen(text: str) -> None:
    assert MACHINE_PATH.search(text)
    assert not MACHINE_PATH.search("src/" + "work/main and ~/" + "home/x")
