"""Commands run in process, as `main` runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dualmandate.apps import output as voice
from dualmandate.apps.cli import app
from dualmandate.apps.output import run


@dataclass(frozen=True)
class Outcome:
    status: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as the one JSON document it must be."""
        parsed = json.loads(self.out, parse_constant=_not_finite)
        assert isinstance(parsed, dict)
        return parsed


def _not_finite(name: str) -> None:
    raise AssertionError(f"{name} in a JSON document")


Command = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def _clean_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty current folder, and no setting from the machine the tests run on."""
    monkeypatch.chdir(tmp_path)
    for name in ("OUT", "DATA", "LEDGER", "KEY_FILE", "DEBUG"):
        monkeypatch.delenv(f"DUALMANDATE_{name}", raising=False)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(voice, "PATIENCE", 3600.0)  # on a busy machine a command would say what it is doing

    def typed(*words: object) -> Outcome:
        capsys.readouterr()
        status = run(app, [str(word) for word in words])
        captured = capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    return typed
