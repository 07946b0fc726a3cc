"""Files that something happened to: each command does its work or refuses; no bug, no record in its words, no loss.

`DUALMANDATE_MUTATIONS=2000` tries so many, as `make bench` does.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import shutil
import sqlite3
import time
import warnings
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import pytest
from tests.apps.test_audit import CANARY as NAME
from tests.apps.test_audit import FOLDER, RECORDS
from tests.conftest import Tell
from tests.mutations import mutated
from tests.publication.crashes import town
from tests.structures import reshaped, restructured
from tests.survey import surveys

from dualmandate.apps import doctor
from dualmandate.apps.check import CHECK_FILE
from dualmandate.apps.following import first_difference
from dualmandate.planning.saved_plan import with_pages

MUTATIONS = int(os.environ.get("DUALMANDATE_MUTATIONS", "96"))
BATCHES = 8
SINGERS = (town.CANARY, str(town.ODD_NUMBER), surveys.CANARY, NAME)
RELEASED = "releases/residents-1"
SURVEYS = {
    "choice": (surveys.CHOICE, surveys.HEADER, surveys.choices(12)),
    "bids": (surveys.BIDS, ("id", "bid", "yes"), surveys.bids(60)),
    "likert": (surveys.LIKERT, ("privacy", "accuracy", "income"), surveys.opinions(60)),
}
REPORT = ("--failure-probability", "1e-10")
AUDIT = ("--seconds", "1", "--json")
LEDGER = ("--ledger", "released/.dualmandate/ledger.sqlite")
OFFICE, STATE = "office", "office/.dualmandate"
SETTINGS = 'schema = 1\nledger = ".dualmandate/ledger.sqlite"\nout = "report"\nanchor_append = "heads"\n'
SIGNED = f'{SETTINGS}approvers = "board.signers"\npublishers = "board.signers"\ntwo_persons = true\n'
SIGNERS = (
    '"Ben" valid-before="20401231" ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEkbXHh0BcjJ1nCzB9Oq1oWgEnRmgYd3BYpFvVgG8k2n\n'
)
# What is mutated, and the commands that read it.
KINDS: dict[str, tuple[Sequence[str], Sequence[tuple[str, ...]]]] = {
    "program": (
        ["town/program.toml"],
        [
            ("plan", "town/program.toml", "--json"),
            ("check", "town/program.toml"),
            ("publish", "town/program.toml", "--unchecked", "--by", "Eve", "--json"),
        ],
    ),
    "survey": (
        [f"{name}/{file}" for name in SURVEYS for file in ("survey.toml", "survey.toml", "answers.csv")],
        [("preferences", "{folder}/survey.toml", "--json")],
    ),
    "plan": (
        ["town/report/plan.json"],
        [
            ("approve", "town/report/plan.json", "--by", "Carl", "--json"),  # Ben has
            ("publish", "town/report/plan.json", "--unchecked", "--by", "Eve", "--json"),
        ],
    ),
    "release": (
        [],  # any of its files
        [
            ("audit", f"released/{RELEASED}", *AUDIT),
            ("audit", f"released/{RELEASED}", "--beside", f"other/{RELEASED}", *AUDIT),
            ("ledger", "verify", "--anchor", f"released/{RELEASED}", *LEDGER),
            ("ledger", "report", town.ACCOUNT, "--release", f"released/{RELEASED}", *REPORT, *LEDGER),
        ],
    ),
    "tables": (
        ["block/tables.toml", "block/tables.toml", "block/counts.csv"],
        [("audit", "block", "--confidential", "records.csv", "--internal", "inside", "--out", "out", *AUDIT)],
    ),
    "project": (
        [
            *["office/dualmandate.toml"] * 3,
            *("board/dualmandate.toml", "board/board.signers", "office/heads", f"{STATE}/key"),
            *(f"{STATE}/ledger.sqlite", f"{STATE}/ledger.sqlite", f"{STATE}/ledger.sqlite.anchor"),
        ],
        [  # in the folder itself
            ("doctor", "--json"),
            ("ledger", "show", "--json"),
            ("ledger", "events", "--json"),
            ("ledger", "verify", "--json"),
            ("publish", town.PLAN, "--unchecked", "--by", "Eve", "--json"),
        ],
    ),
}


@pytest.fixture(autouse=True)
def _no_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `doctor` finds on the machine is not looked for each time."""
    monkeypatch.setattr(doctor, "installed_distributions", tuple)
    monkeypatch.setattr(doctor, "_program", lambda name, *_, **__: doctor.SystemProgram(name, None, None, "tests"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good file of each kind, with what it needs beside it."""
    place = tmp_path_factory.mktemp("home")
    town.prepare(place / "town")
    for name in ("released", "other", OFFICE):
        shutil.copytree(place / "town", place / name)
    for name in ("released", "other"):
        town.done(place / name, "publish", town.PLAN, "--unchecked", "--by", "Eve")
        (place / name / town.DATA).unlink()
    (place / OFFICE / town.SETTINGS).write_text(SETTINGS, encoding="utf-8")
    shutil.copytree(place / OFFICE, place / "board")
    (place / "board" / town.SETTINGS).write_text(SIGNED, encoding="utf-8")
    (place / "board" / "board.signers").write_text(SIGNERS, encoding="utf-8")
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


def copied(home: Path, folder: Path, kind: str, project: str) -> None:
    """A copy of what the commands read; a project's ledger keeps its head in a second place, which stands here."""
    folder.mkdir()
    for name in {"release": ("released", "other"), "tables": ("block",)}.get(kind, (project,)):
        shutil.copytree(home / name, folder / name)
    shutil.copy(home / "records.csv", folder)
    if kind == "project":
        town.done(folder / project, "ledger", "anchor", "--by", "Ann")


def changed(home: Path, file: str, seed: int) -> bytes:
    """The file with something wrong: in its bytes and words, or, where it has a form, in what it holds."""
    content, form = (home / file).read_bytes(), Path(file).suffix.lstrip(".")
    draws = random.Random(seed)
    if form in ("json", "toml") and draws.random() < 0.7:
        return restructured(content, seed, form)
    if form == "csv" and draws.random() < 0.5:
        return reshaped(content, seed)
    return mutated(content, seed, binary=form in ("parquet", "npz", "sqlite"))


def sealed(folder: Path, file: str) -> None:
    """What somebody does who knows the form: digests that stand beside the change are made to fit it."""
    try:
        if file.endswith("plan.json"):
            document = json.loads((folder / file).read_bytes())
            (folder / file).write_text(json.dumps(with_pages(document, {})), encoding="utf-8")
        elif file.startswith(f"released/{RELEASED}/") and not file.endswith("release.json"):
            place = folder / "released" / RELEASED
            facts = json.loads((place / "release.json").read_bytes())
            content = (folder / file).read_bytes()
            facts["files"][(folder / file).relative_to(place).as_posix()] = hashlib.sha256(content).hexdigest()
            (place / "release.json").write_text(json.dumps(facts), encoding="utf-8")
    except (ValueError, AttributeError, TypeError, RecursionError):
        return  # no such document any more


def trial(home: Path, folder: Path, seed: int) -> tuple[str, list[str]]:
    """How the commands ended on one mutated file, and what is wrong with that."""
    kind = tuple(KINDS)[seed // BATCHES % len(KINDS)]
    files = files_of(home, kind)
    file = files[seed // (BATCHES * len(KINDS)) % len(files)]
    project = Path(file).parts[0]
    copied(home, folder, kind, project)
    (folder / file).write_bytes(changed(folder, file, seed))
    if seed % 2:
        sealed(folder, file)
    statuses, wrong = [], []
    for words in KINDS[kind][1]:
        began = time.process_time()
        place = folder / project if kind == "project" else folder
        status, said = town.typed(place, *(word.format(folder=Path(file).parent) for word in words))
        statuses.append(status)
        note = f"seed {seed}, {file}, {' '.join(words[:2])}: "
        if status not in (0, 2) or "Traceback" in said:
            wrong.append(f"{note}exit {status}: {said}")
        if any(singer in said for singer in SINGERS):
            wrong.append(f"{note}sings: {said}")
        if time.process_time() - began > LONGEST:
            wrong.append(f"{note}takes {time.process_time() - began:.0f} s")
    if kind == "plan" and 0 in statuses and _differs(home / file, folder / file):
        wrong.append(f"seed {seed}: a plan was approved or published that says something else")
    known = {path.relative_to(home) for path in home.rglob("*")}
    made = [path for path in folder.rglob("*") if path.is_file() and path.relative_to(folder) not in known]
    made = [path for path in made if path.name != CHECK_FILE]  # for the curator alone
    wrong += [f"seed {seed}, {file}: {path} sings" for path in made if _sings(path)]
    if kind == "project":
        wrong += [f"seed {seed}, {file}: {words}" for words in _spent_in(folder / project, statuses[-1])]
    elif kind in ("program", "plan"):
        wrong += [f"seed {seed}, {file}: {words}" for words in _spent(folder / "town")]
    shutil.rmtree(folder)
    return f"{kind} {'done' if statuses[-1] == 0 else 'refused'}", wrong


def _differs(one: Path, other: Path) -> str | None:
    """Where two plans say different things, but for the digests over all of it; floats may differ by a millionth."""
    first, second = (json.loads(each.read_bytes()) for each in (one, other))
    return first_difference({**first, "shown": ""}, {**second, "shown": ""})


def _spent(folder: Path) -> list[str]:
    """Whether anything was spent where nothing was published, or the other way round."""
    ledger = town.the_ledger(folder)
    published = [each for each in ledger.releases() if (folder / town.OUT / each.name).is_dir()]
    right = len(published) == len(ledger.releases()) == ledger.spent(town.ACCOUNT) / Fraction(town.EPSILON)
    return [] if right else [f"spent {ledger.spent(town.ACCOUNT)} on {len(published)} releases"]


def _spent_in(folder: Path, status: int) -> list[str]:
    """The same where the ledger itself may be what is damaged: its rows are counted."""
    published = list((folder / town.OUT).glob("r*"))
    if bool(published) != (status == 0):
        return [f"exit {status} with {len(published)} releases"]
    try:
        with contextlib.closing(sqlite3.connect(folder / town.STATE / "ledger.sqlite")) as rows:
            [(reserved,)] = rows.execute("SELECT count(*) FROM ledger_entry WHERE kind = 'reserved'").fetchall()
    except sqlite3.DatabaseError:
        return []  # nothing can be written to it either
    return [] if reserved == len(published) else [f"{reserved} reservations for {len(published)} releases"]


LONGEST = 60.0  # seconds of a processor for one command


def _sings(path: Path) -> bool:
    content = path.read_bytes()
    return any(singer.encode() in content for singer in SINGERS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_files_are_good_before(kind: str, home: Path, tmp_path: Path) -> None:
    """Else every change would be refused for another reason."""
    for file in dict.fromkeys(files_of(home, kind)):
        folder = tmp_path / "home"
        copied(home, folder, kind, Path(file).parts[0])
        place = folder / OFFICE if kind == "project" else folder
        for words in KINDS[kind][1]:
            status, said = town.typed(place, *(word.format(folder=Path(file).parent) for word in words))
            assert status == 0, f"{file}, {words}: {said}"
        shutil.rmtree(folder)
        if kind != "survey":
            break


@pytest.mark.parametrize("batch", range(BATCHES))
def test_mutated_files_are_used_or_refused(batch: int, home: Path, tmp_path: Path, tell: Tell) -> None:
    ended, wrong = Counter[str](), list[str]()
    for seed in range(batch, MUTATIONS, BATCHES):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            end, found = trial(home, tmp_path / str(seed), seed)
        ended[end] += 1
        wrong += found
    tell(f"mutated files: {dict(sorted(ended.items()))}", tried=ended.total())
    assert wrong == []
