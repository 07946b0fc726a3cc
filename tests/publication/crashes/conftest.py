"""One prepared program folder, in memory where there is a file system in memory: kills do not care, and disks do."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.publication.crashes import town

IN_MEMORY = Path("/dev/shm")


@pytest.fixture(scope="session")
def prepared() -> Iterator[Path]:
    """The town, planned and approved; to be copied, never published."""
    home = IN_MEMORY if os.access(IN_MEMORY, os.W_OK) else None
    folder = Path(tempfile.mkdtemp(prefix="dualmandate-crashes-", dir=home))
    try:
        town.prepare(folder / "town")
        yield folder / "town"
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def prepared_technology(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a technology whose errors depend on the data, in place of measurements."""
    folder = tmp_path_factory.mktemp("technology") / "town"
    town.prepare(folder, town.TECHNOLOGY_PROGRAM)
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """Of the repository, where the tests' own modules are found."""
    return Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the town for one test."""
    copy = tmp_path / "town"
    shutil.copytree(prepared, copy)
    return copy
