"""`audit`: what an attacker learns from a folder of published tables, from a release, or from a program's tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dualmandate.audit.auditing import AUDIT_KEY, Audit, attacked
from dualmandate.audit.finding import SECONDS, Effort, Reference
from dualmandate.audit.targets.tables_folder import TABLES_FILE, load_folder
from dualmandate.errors import InvalidFile, InvalidRequest, Place, Refusal
from dualmandate.ledger.anchors import RELEASE_FILE

if TYPE_CHECKING:
    from dualmandate.planning.program import Program
    from dualmandate.publication.release import Release

PROGRAM_FILE = "program.toml"


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Asked:
    """How an audit is done: what it is judged by, how long a question may take, and the key of its own draws.

    `confidential` and `tabulated` are files of records that the curator names: whatever is judged by them is internal.
    """

    confidential: Path | None = None
    tabulated: Path | None = None
    place: str | None = None  # the attribute that tells places apart, in a program or a release
    seconds: float = SECONDS
    key: bytes = field(default=AUDIT_KEY, repr=False)
    progress: Callable[[str], None] | None = field(default=None, compare=False)
    beside: tuple[Path, ...] = ()  # other releases, whose noise is compared
    counted: Callable[[str, int, int], None] | None = field(default=None, compare=False)  # what, done, of how many
    workers: int = field(default_factory=processors)
    outside: Path | None = None  # a file of named people, which records are linked to
    secret: tuple[str, ...] = ()  # what an attacker is after; else what the outside file does not say
    person: str | None = None  # the column that names people
    link: str = "exact"  # how they are linked

    @property
    def effort(self) -> Effort:
        """How long a solver may think, on how many threads, and whom to tell."""
        return Effort(self.seconds, self.workers, self.progress, self.counted)

    @property
    def files(self) -> dict[Reference, Path]:
        """The files of records, by what they are."""
        given: dict[Reference, Path | None] = {"tabulated": self.tabulated, "confidential": self.confidential}
        return {reference: path for reference, path in given.items() if path is not None}


class Asking(TypedDict, total=False):
    """The same as keywords: files by their names, and whatever is not stated left out."""

    confidential: Path | str | None
    tabulated: Path | str | None
    place: str | None
    seconds: float | None
    progress: Callable[[str], None] | None
    beside: Iterable[Path | str]
    outside: Path | str | None
    secret: str | Iterable[str]
    person: str | None
    link: str


def asked_of(**given: Unpack[Asking]) -> Asked:
    """What was asked for in keywords."""
    found: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    for name in ("confidential", "tabulated", "outside"):
        if name in found:
            found[name] = Path(found[name])
    if "beside" in found:
        found["beside"] = tuple(Path(each) for each in found["beside"])
    if "secret" in found:
        found["secret"] = (found["secret"],) if isinstance(found["secret"], str) else tuple(found["secret"])
    return Asked(**found)


def audited(target: Path | str | Program | Release, asked: Asked) -> Audit:
    """Find out what the target is, and attack it."""
    from dualmandate.planning.program import Program, load
    from dualmandate.publication.release import Release

    if isinstance(target, Release):
        return _release(target, asked)
    if asked.beside and not (Path(str(target)) / RELEASE_FILE).is_file():
        raise InvalidRequest(
            "another release is named beside something that is no release",
            why="noise is compared row by row, and only releases say which rows they measured",
            instead="audit a release, or leave --beside out",
        )
    if isinstance(target, Program):
        return _program(target, asked)
    path = Path(target)
    if (path / TABLES_FILE).is_file() or path.name == TABLES_FILE:
        return _tables(path.parent if path.name == TABLES_FILE else path, asked)
    if (path / RELEASE_FILE).is_file():
        from dualmandate.planning.released import load_release

        return _release(load_release(path), asked)
    if (path / PROGRAM_FILE).is_file() or path.suffix == ".toml":
        return _program(load(path / PROGRAM_FILE if path.is_dir() else path), asked)
    if path.is_dir():
        raise InvalidFile(
            f"the folder '{path}' holds nothing to audit",
            why=f"there is no {TABLES_FILE}, no {RELEASE_FILE} and no {PROGRAM_FILE} in it",
            instead=f"say in a {TABLES_FILE} which tables its files hold; `dualmandate schema tables` names the keys",
            where=Place(file=str(path)),
        )
    return _program(load(path), asked)


def _tables(path: Path, asked: Asked) -> Audit:
    from dualmandate.audit.targets.of_tables import targets_of

    if asked.place is not None:
        raise InvalidRequest(
            "a place is named for a folder of tables",
            why=f"its {TABLES_FILE} says which column names the place",
            instead=f'write place = "{asked.place}" there',
        )
    asked.effort.say(f"reading the tables of {path.name}")
    folder = load_folder(path)
    try:
        targets = targets_of(folder, asked)
        return Audit(folder.name, "tables", attacked(targets.attacked, asked.effort, asked.key), targets.left_out)
    except Refusal as refusal:
        raise refusal.at(Place(file=str(folder.document.path))) from None


def _release(release: Release, asked: Asked) -> Audit:
    from dualmandate.audit.targets.of_release import targets_of

    targets = targets_of(release, asked)
    name = f"release {release.facts['release']} of {release.facts['program']}"
    return Audit(name, "release", attacked(targets.attacked, asked.effort, asked.key), targets.left_out)


def _program(program: Program, asked: Asked) -> Audit:
    from dualmandate.audit.targets.of_program import targets_of

    targets = targets_of(program, asked)
    found = attacked(targets.attacked, asked.effort, asked.key)
    return Audit(program.name, "program", found, targets.left_out, targets.compared, targets.notes)
