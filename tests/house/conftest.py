"""The house as text: its folder, its modules, their syntax trees."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    return Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def package(root: Path) -> Path:
    return root / "src" / "dualmandate"


@pytest.fixture(scope="session")
def rooms(package: Path) -> tuple[str, ...]:
    return tuple(sorted(init.parent.name for init in package.glob("*/__init__.py")))


@pytest.fixture(scope="session")
def layers(root: Path) -> tuple[str, ...]:
    """The rooms as the contract orders them, each after those it may import; in brackets: not built yet."""
    [contract] = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert contract["exhaustive"] is True
    return tuple(reversed(contract["layers"]))


@pytest.fixture(scope="session")
def trees(package: Path) -> Mapping[Path, ast.Module]:
    """Every module of the package, by its path inside it."""
    return {path.relative_to(package): ast.parse(path.read_text("utf-8")) for path in sorted(package.rglob("*.py"))}
