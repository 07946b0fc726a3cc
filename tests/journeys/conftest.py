"""Commands typed in a shell: the installed `dualmandate`, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Typed = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def installed() -> Path:
    """The command beside the Python that runs these tests."""
    return Path(sys.executable).with_name("dualmandate")


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of these tests without anyone's settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("DUALMANDATE_", "NO_COLOR"))}


@pytest.fixture
def typed(tmp_path: Path, installed: Path, environment: dict[str, str]) -> Typed:
    def run(*words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [installed, *map(str, words)],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=600,
            check=False,
        )

    return run
