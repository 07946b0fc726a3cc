"""A file nobody prepared becomes a release that a reader opens, by what the commands print and nothing else.

Only the first command is typed. Each later one is the `next:` line of the one before it, pasted into a shell, or where
the curator's word is asked for, the command that the refusal ends with.
"""

from __future__ import annotations

import datetime
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import pytest

import dualmandate

RECORDS = 3_000
REGIONS = ["North", "north", "NORTH", "South", "East", "West", ""]
FREE_TEXT = "CANARY-9f31"  # stands in a column that no program may hold


def claims(path: Path) -> dict[str, int]:
    """Claims as a ministry might export them; the records by region, however it is spelled."""
    people, counted, lines = random.Random(3), dict[str, int](), []
    for number in range(RECORDS):
        region = people.choice(REGIONS)
        age = people.choice(["", "NA"]) if people.random() < 0.05 else str(people.randrange(0, 99))
        day = datetime.date(2024, 1, 1) + datetime.timedelta(days=people.randrange(700))
        amount = f"{people.lognormvariate(6, 1):.2f}"
        remark = f"{FREE_TEXT} {people.random()}"
        lines.append(f'P{number:05d},{region},{age},{people.choice("fmFM")},{day},{amount},"{remark}"')
        name = region.casefold() or "not stated"
        counted[name] = counted.get(name, 0) + 1
    head = "person id,Région ,Age (years),Sex,Date of claim,Cost in EUR,comment"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return counted


def pasted(command: str, folder: Path) -> tuple[int, str]:
    """What a command says that somebody pastes into a shell."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}
    said = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    return said.returncode, said.stdout + said.stderr


@pytest.mark.slow
def test_a_file_nobody_prepared_is_published_by_the_printed_lines_alone(tmp_path: Path) -> None:
    counted = claims(tmp_path / "claims.csv")
    typed, told, command = list[str](), dict[str, str](), "dualmandate init claims --from claims.csv --yes"
    while len(typed) < 12:
        status, said = pasted(command, tmp_path)
        typed.append(command.split()[1])
        told[typed[-1]] = said
        following = re.search(r"^next:\n  (.+)$", said, re.MULTILINE)
        accepting = re.search(r"recorded and published: (dualmandate approve .+)$", said, re.MULTILINE)
        assert status == (2 if accepting else 0), said
        assert FREE_TEXT not in said
        found = following or accepting
        if found is None:
            break
        command = found[1]
    assert typed == ["init", "plan", "ledger", "approve", "approve", "check", "publish", "audit", "index"]
    assert "somebody is in the data: members were recognized in" in told["audit"]  # its verdict
    assert "linked: 1 plan, 1 release, 1 public audit, 1 account" in told["index"]
    assert (tmp_path / "claims" / "index.html").is_file()

    [folder] = (tmp_path / "claims" / "releases").iterdir()
    assert folder.name == "people-1"
    for path in folder.rglob("*"):
        assert path.is_dir() or FREE_TEXT.encode() not in path.read_bytes()
        assert path.is_dir() or b"claims.csv" not in path.read_bytes()
    release = dualmandate.load_release(folder)
    table = release["people by Région"].to_pandas()
    published = dict(zip(table["Région, spelled once"].str.casefold(), table["value"], strict=True))
    errors = dict(zip(table["Région, spelled once"].str.casefold(), table["standard_error"], strict=True))
    assert published.keys() == counted.keys()
    # The file says nothing of the one spelling of a region: North, north and NORTH are one row, and no record is lost.
    assert all(abs(published[name] - counted[name]) <= 6 * errors[name] + 1 for name in counted)
    interval = release.interval("people by Age (years)", {"Age (years)": 34})
    assert interval.lower < interval.estimate < interval.upper
    assert "people" in str(interval)
