"""A process killed at any instant leaves a release that never happened, or one that is resumed at one loss."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from dualmandate.ledger import Ledger

KILLS = Path(__file__).with_name("kills.py")


@pytest.mark.slow
def test_a_kill_before_every_write_is_survived(ledger: Ledger, place: Path, tell: Callable[[str], None]) -> None:
    command = [sys.executable, str(KILLS), str(place.parent)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    landed = Counter(result.stdout.split())
    tell(f"kills of a ledger's writer: {landed.total()} landed")
    assert set(landed) == {"nothing", "reserved", "opened", "measured", "written", "settled"}
    assert sum(landed.values()) >= 30
