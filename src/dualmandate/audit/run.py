"""`audit`: what an attacker learns from a folder of published tables, from a release, or from a program's tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from dualmandate.audit.claims.attack import CheckClaim, ClaimedRelease
from dualmandate.audit.claims.membership import Frequencies, RecognizeMembers
from dualmandate.audit.disclosure_control.comparison import Compared, compared_words
from dualmandate.audit.disclosure_control.magnitude_rules import SecondLargest, SummedTables
from dualmandate.audit.effort import SECONDS, Effort
from dualmandate.audit.finding import LOWER_BOUND, Attack, Finding, Label, Reference
from dualmandate.audit.linkage.attack import Linkage, Reidentify
from dualmandate.audit.reconstruction.attacks import ReconstructExact, ReconstructNoisy, ReconstructPersons
from dualmandate.audit.reconstruction.decoding import DecodeBits, NoisySums
from dualmandate.audit.reconstruction.persons import GroupStatistics
from dualmandate.audit.suppression.attack import BoundSuppressed, SuppressedTables
from dualmandate.audit.suppression.series import CarryOver, HiddenSeries
from dualmandate.audit.tables import ExactTables, NoisyTables
from dualmandate.audit.targets.tables_folder import TABLES_FILE, load_folder
from dualmandate.errors import InvalidFile, InvalidRequest, Place, Refusal
from dualmandate.ledger.anchors import RELEASE_FILE

if TYPE_CHECKING:
    from dualmandate.planning.program import Program
    from dualmandate.publication.release import Release

PROGRAM_FILE = "program.toml"
AUDIT_KEY = b"an audit of dualmandate"  # of the draws of audits alone; a release has a secret of its own
ATTACKS: dict[type, Any] = {
    ExactTables: ReconstructExact,
    NoisyTables: ReconstructNoisy,
    GroupStatistics: ReconstructPersons,
    SuppressedTables: BoundSuppressed,
    SummedTables: SecondLargest,
    ClaimedRelease: CheckClaim,
    Linkage: Reidentify,
    Frequencies: RecognizeMembers,
    NoisySums: DecodeBits,
    HiddenSeries: CarryOver,
}


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


@dataclass(frozen=True)
class Audit:
    """The findings of an audit of one target, and what was not tried."""

    target: str  # what was audited, in words
    kind: str  # "program", "release" or "tables"
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()
    compared: tuple[Compared, ...] = ()  # ways to publish, on synthetic people: risk beside accuracy
    notes: tuple[str, ...] = ()  # on what is compared, in words

    def labeled(self, label: Label) -> tuple[Finding, ...]:
        """The findings that are public, or those that stay inside."""
        return tuple(finding for finding in self.findings if finding.label == label)

    def words(self, label: Label = "public") -> str:
        """The findings for people."""
        found = self.labeled(label)
        lines = [f"{self.target}: {len(found)} {'finding' if len(found) == 1 else 'findings'}", ""]
        lines += [f"{finding.words()}\n" for finding in found]
        lines += [*compared_words(self.compared), *(f"compared: {note}" for note in self.notes)]
        lines += [f"not tried: {words}" for words in self.left_out]
        return "\n".join([*lines, LOWER_BOUND])

    def document(self, label: Label = "public") -> dict[str, object]:
        """The audit as the JSON document `audit/1`; the internal one holds every finding, with single cells named."""
        inside = label == "internal"
        found = self.findings if inside else self.labeled("public")
        return {
            "schema": "audit/1",
            "label": label,
            "target": self.target,
            "kind": self.kind,
            "findings": [finding.document(inside=inside) for finding in found],
            "compared": [each.document() for each in self.compared],
            "compared_notes": list(self.notes),
            "left_out": list(self.left_out),
            "note": LOWER_BOUND,
        }


def attack_on(target: object, effort: Effort) -> Attack[Any]:
    """The attack that fits a target."""
    found: Attack[Any] = ATTACKS[type(target)](effort)
    return found


def attacked(targets: Iterable[object], effort: Effort | None = None, key: bytes = AUDIT_KEY) -> tuple[Finding, ...]:
    """What the attacks find, target after target."""
    work = effort or Effort()
    return tuple(finding for target in targets for finding in attack_on(target, work).run(target, key))
