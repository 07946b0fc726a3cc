"""Files that something happened to: each command does its work or refuses; no bug, no record in its words, no loss.

`DUALMANDATE_MUTATIONS=2000` tries so many, as `make bench` does.
"""

from __future__ import annotations

import os
import shutil
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from tests.apps.test_audit import CANARY as NAME
from tests.apps.test_audit import FOLDER, RECORDS
from tests.mutations import mutated
from tests.publication.crashes import town
from tests.survey import surveys

MUTATIONS = int(os.environ.get("DUALMANDATE_MUTATIONS", "40"))
BATCHES = 8
SINGERS = (town.CANARY, str(town.ODD_NUMBER), surveys.CANARY, NAME)
RELEASED = "releases/r000003"
SURVEYS = {
    "choice": (surveys.CHOICE, surveys.HEADER, surveys.choices(12)),
    "bids": (surveys.BIDS, ("id", "bid", "yes"), surveys.bids(60)),
    "likert": (surveys.LIKERT, ("privacy", "accuracy", "income"), surveys.opinions(60)),
}
AUDIT = ("--seconds", "1", "--json")
# What is mutated, and the commands that read it.
KINDS: dict[str, tuple[Sequence[str], Sequence[tuple[str, ...]]]] = {
    "program": (["town/program.toml"], [("plan", "town/program.toml", "--json")]),
    "survey": (
        [f"{name}/{file}" for name in SURVEYS for file in ("survey.toml", "survey.toml", "answers.csv")],
        [("preferences", "{folder}/survey.toml", "--json")],
    ),
    "plan": (
        ["town/report/plan.json"],
        [
            ("approve", "town/report/plan.json", "--by", "Ben", "--json"),
            ("publish", "town/report/plan.json", "--by", "Eve", "--json"),
        ],
    ),
    "release": (
        [],  # any of its files
        [
            ("audit", f"released/{RELEASED}", *AUDIT),
            ("ledger", "verify", "--anchor", f"released/{RELEASED}", "--ledger", "released/.dualmandate/ledger.sqlite"),
        ],
    ),
    "tables": (
        ["block/tables.toml", "block/tables.toml", "block/counts.csv"],
        [("audit", "block", "--confidential", "records.csv", "--internal", "inside", "--out", "out", *AUDIT)],
    ),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good file of each kind, with what it needs beside it."""
    place = tmp_path_factory.mktemp("home")
    town.prepare(place / "town")
    shutil.copytree(place / "town", place / "released")
    town.done(place / "released", "publish", town.PLAN, "--by", "Eve")
    (place / "released" / town.DATA).unlink()
    for name, survey in SURVEYS.items():
        (place / name).mkdir()
        surveys.write(place / name, *survey)
    (place / "block").mkdir()
    for file, text in FOLDER.items():
        (place / "block" / file).write_text(text, encoding="utf-8")
    (place / "records.csv").write_text(RECORDS, encoding="utf-8")
    return place


def files_of(home: Path, kind: str) -> Sequence[str]:
    found = [path for path in sorted((home / "released" / RELEASED).rglob("*")) if path.is_file()]
    names = [path.relative_to(home).as_posix() for path in found]
    return KINDS[kind][0] or [*names, *[f"released/{RELEASED}/release.json"] * len(names)]


def trial(home: Path, folder: Path, seed: int) -> tuple[str, list[str]]:
    """How the commands ended on one mutated file, and what is wrong with that."""
    kind = tuple(KINDS)[seed // BATCHES % len(KINDS)]
    files = files_of(home, kind)
    file = files[seed // (BATCHES * len(KINDS)) % len(files)]
    shutil.copytree(home, folder)
    binary = file.endswith((".parquet", ".npz"))
    (folder / file).write_bytes(mutated((home / file).read_bytes(), seed, binary=binary))
    statuses, wrong = [], []
    for words in KINDS[kind][1]:
        began = time.process_time()
        status, said = town.typed(folder, *(word.format(folder=Path(file).parent) for word in words))
        statuses.append(status)
        place = f"seed {seed}, {file}, {words[0]}: "
        if status not in (0, 2) or "Traceback" in said:
            wrong.append(f"{place}exit {status}: {said}")
        if any(singer in said for singer in SINGERS):
            wrong.append(f"{place}sings: {said}")
        if time.process_time() - began > LONGEST:
            wrong.append(f"{place}takes {time.process_time() - began:.0f} s")
    known = {path.relative_to(home) for path in home.rglob("*")}
    made = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder) not in known]
    wrong += [f"seed {seed}, {file}: {path} sings" for path in made if _sings(path)]
    ledger = town.the_ledger(folder / "town")
    published = [each for each in ledger.releases() if (folder / "town" / town.OUT / each.name).is_dir()]
    if ledger.spent(town.ACCOUNT) != len(published) * Fraction(town.EPSILON) or len(published) != len(
        ledger.releases()
    ):
        wrong.append(f"seed {seed}, {file}: spent {ledger.spent(town.ACCOUNT)} on {len(published)} releases")
    shutil.rmtree(folder)
    return f"{kind} {'done' if statuses[-1] == 0 else 'refused'}", wrong


LONGEST = 60.0  # seconds of a processor for one command


def _sings(path: Path) -> bool:
    content = path.read_bytes()
    return any(singer.encode() in content for singer in SINGERS)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_files_are_used_or_refused(batch: int, home: Path, tmp_path: Path, tell: Callable[[str], None]) -> None:
    ended, wrong = Counter[str](), list[str]()
    for seed in range(batch, MUTATIONS, BATCHES):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            end, found = trial(home, tmp_path / str(seed), seed)
        ended[end] += 1
        wrong += found
    tell(f"mutated files: {dict(sorted(ended.items()))}")
    assert wrong == []
