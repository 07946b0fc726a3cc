"""Pins are versions only, and both sets come from one resolution."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dualmandate

PIN = re.compile(r"(?P<name>[a-z0-9][a-z0-9.-]*)==(?P<version>[0-9][a-z0-9.]*)( ; (?P<marker>[a-z_]+ [<>=!]+ '.+'))?")


def normalized(requirement: str) -> str:
    """The name in a requirement, as package indexes spell it."""
    return re.split(r"[\s<>=!~;\[(]", requirement, maxsplit=1)[0].lower().replace("_", "-")


def pins(root: Path, name: str) -> set[tuple[str, str]]:
    lines = (root / "requirements" / f"{name}.txt").read_text().splitlines()
    return {(match["name"], match["version"]) for line in lines if (match := PIN.fullmatch(line))}


@pytest.fixture
def project(root: Path) -> dict[str, Any]:
    return tomllib.loads((root / "pyproject.toml").read_text())


@pytest.mark.parametrize("name", ["base", "test", "uv"])
def test_pins_are_versions_only(root: Path, name: str) -> None:
    text = (root / "requirements" / f"{name}.txt").read_text()
    assert "://" not in text
    assert "@" not in text
    assert not [line for line in text.splitlines() if not PIN.fullmatch(line)]
    assert pins(root, name)


@pytest.mark.parametrize(
    "line",
    [
        "numpy",
        "numpy>=2",
        "numpy==2.4.6+cpu",
        "x @ file:///wheels/x.whl",
        "--index-url ftp://example.invalid",
        "x==1 --hash=sha256:0",
    ],
)
def test_other_lines_are_refused(line: str) -> None:
    assert not PIN.fullmatch(line)


def test_the_test_set_contains_the_base_set(root: Path) -> None:
    assert pins(root, "base") <= pins(root, "test")


def test_everything_asked_for_is_pinned(root: Path, project: dict[str, Any]) -> None:
    base = {name for name, _ in pins(root, "base")}
    asked = {normalized(requirement) for requirement in project["project"]["dependencies"]}
    build = {normalized(requirement) for requirement in project["dependency-groups"]["build"]}
    test = {
        normalized(requirement) for requirement in project["dependency-groups"]["test"] if isinstance(requirement, str)
    }
    extras = {
        normalized(requirement)
        for requirements in project["project"]["optional-dependencies"].values()
        for requirement in requirements
    }
    audit = {normalized(requirement) for requirement in project["project"]["optional-dependencies"]["audit"]}
    assert asked | build | audit <= base  # the demo attacks what it released
    assert not asked & audit
    assert extras <= {name for name, _ in pins(root, "test")}
    assert {"hatchling", "editables"} <= build
    assert test <= {name for name, _ in pins(root, "test")}


def test_the_installed_packages_are_the_pinned_ones(root: Path) -> None:
    pinned = pins(root, "test")
    names = {name for name, _ in pinned}
    installed = {(normalized(found.name), found.version) for found in importlib.metadata.distributions()}
    assert not {package for package in installed if package[0] in names} - pinned


def test_the_version_is_stated_once(root: Path, project: dict[str, Any]) -> None:
    version = project["project"]["version"]
    assert importlib.metadata.version("dualmandate") == version
    assert getattr(dualmandate, "__version__", version) == version
    newest = next(line for line in (root / "CHANGELOG.md").read_text().splitlines() if line.startswith("## "))
    assert version in newest
