"""What an attacker learns from a program, a release or a folder of published tables: every attack that fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dualmandate.audit.claims.attack import ClaimAttack, ClaimedRelease
from dualmandate.audit.claims.exact_groups import ExactGroups, ExactGroupsAttack
from dualmandate.audit.claims.membership import Frequencies, MembershipAttack
from dualmandate.audit.disclosure_control.comparison import MethodEvaluation, compared_words
from dualmandate.audit.disclosure_control.magnitude_rules import ContributorsAttack, SummedTables
from dualmandate.audit.finding import LOWER_BOUND, Attack, Finding, Label, coarseness
from dualmandate.audit.linkage.attack import Linkage, LinkageAttack
from dualmandate.audit.linkage.sparse import SparseLinkageAttack, SparseRecords
from dualmandate.audit.options import AuditOptions, Effort, check_solvers
from dualmandate.audit.reconstruction.exact import ExactTablesAttack
from dualmandate.audit.reconstruction.noisy import NoisyTablesAttack
from dualmandate.audit.reconstruction.persons import GroupStatistics, PersonsAttack
from dualmandate.audit.suppression.cells import SuppressedTables, SuppressionAttack
from dualmandate.audit.suppression.series import HiddenSeries, SeriesAttack
from dualmandate.audit.tables import ExactTables, NoisyTables
from dualmandate.audit.targets import of_program, of_release, of_tables
from dualmandate.audit.targets.tables_folder import TABLES_FILE, Folder, load_folder
from dualmandate.audit.verdict import advice, verdict
from dualmandate.errors import InvalidFile, InvalidRequest, Place, Refusal
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.ledger.signatures import standing_words
from dualmandate.planning.program import Program, load
from dualmandate.planning.release_spec import load_release
from dualmandate.publication.release import Release
from dualmandate.semantics.guarantee import promise

PROGRAM_FILE = "program.toml"
ATTACKS: dict[type, Any] = {
    ExactTables: ExactTablesAttack,
    NoisyTables: NoisyTablesAttack,
    GroupStatistics: PersonsAttack,
    SuppressedTables: SuppressionAttack,
    SummedTables: ContributorsAttack,
    ClaimedRelease: ClaimAttack,
    ExactGroups: ExactGroupsAttack,
    Linkage: LinkageAttack,
    SparseRecords: SparseLinkageAttack,
    Frequencies: MembershipAttack,
    HiddenSeries: SeriesAttack,
}


@dataclass(frozen=True)
class Audit:
    """The findings of an audit of one target, and what was not tried."""

    target: str  # what was audited, in words
    kind: str  # "program", "release" or "tables"
    findings: tuple[Finding, ...]
    left_out: tuple[str, ...] = ()
    compared: tuple[MethodEvaluation, ...] = ()  # on synthetic people: risk beside accuracy
    notes: tuple[str, ...] = ()  # on what is compared, in words
    promised: str | None = None  # of a program or a release: who is protected, and which files cannot be told apart
    standing: str | None = None  # of a release: who approved and published it, signed or not
    clipped: Mapping[str, str] = field(default_factory=dict)  # by table: what it counts where that is clipped

    def labeled(self, label: Label) -> tuple[Finding, ...]:
        """The findings that are public, or those that stay inside."""
        return tuple(finding for finding in self.findings if finding.label == label)

    def words(self, label: Label = "public") -> str:
        found = self.labeled(label)
        lines = [f"{self.target}: {len(found)} {'finding' if len(found) == 1 else 'findings'}", *verdict(found)]
        lines += [f"what to do: {advice(found, self.kind)}"] if found else []
        coarsening = coarseness(found)
        lines += [] if coarsening is None else [f"where nothing else is said, {coarsening}"]
        lines += ["", *(f"{finding.words(coarsening)}\n" for finding in found)]
        lines += [*compared_words(self.compared), *(f"compared: {note}" for note in self.notes)]
        lines += [f"not tried: {words}" for words in self.left_out]
        lines += [f"what is counted: {line}" for line in self.counted()]
        lines += [] if self.promised is None else [f"promised: {self.promised}"]
        lines += [] if self.standing is None else [f"{self.target}: {self.standing}"]
        return "\n".join([*lines, LOWER_BOUND])

    def counted(self) -> tuple[str, ...]:
        """What clipped tables count, one line for all that count alike: attacks know of nothing beyond."""
        alike: dict[str, list[str]] = {}
        for name, words in self.clipped.items():
            alike.setdefault(words, []).append(f"'{name}'")
        return tuple(f"in {', '.join(names)}: {words}" for words, names in alike.items())

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
            "promised": self.promised,
            "standing": self.standing,
            "clipped": dict(self.clipped),
            "note": LOWER_BOUND,
        }


def audit_target(target: Path | str | Program | Release, options: AuditOptions) -> Audit:
    """Find out what the target is, and attack it."""
    check_solvers()
    found = read_target(target, options.effort)
    _check_options(found, options)
    try:
        if isinstance(found, Release):
            name, kind = f"release {found.facts['release']} of {found.facts['program']}", "release"
            targets = of_release.targets_of(found, options)
        elif isinstance(found, Program):
            name, kind, targets = found.name, "program", of_program.targets_of(found, options)
        else:
            name, kind, targets = found.name, "tables", of_tables.targets_of(found, options)
        attacks = ((each, attack_on(each, options.effort)) for each in targets.attacked)
        findings = tuple(finding for each, attack in attacks for finding in attack.run(each, options.key))
    except Refusal as refusal:
        raise (refusal.at(Place(file=str(found.document.path))) if isinstance(found, Folder) else refusal) from None
    standing = standing_words(found.facts) if isinstance(found, Release) else None
    said = targets.left_out, targets.compared, targets.notes, _promised(found), standing, targets.clipped
    return Audit(name, kind, findings, *said)


def _promised(found: Program | Release | Folder) -> str | None:
    """What an attack is to be held against: a record or a unit, and beside which exact totals."""
    if isinstance(found, Folder):
        return None
    said = found.facts.get("guarantee") if isinstance(found, Release) else promise(found.protection)
    return None if said is None else f"{said['protected']} {said['indistinguishable']}"


def read_target(target: Path | str | Program | Release, effort: Effort) -> Program | Release | Folder:
    """What a path holds, by the file that stands in it: published tables, a release, or a program."""
    if isinstance(target, Program | Release):
        return target
    path = Path(target)
    folder = path.parent if path.name == TABLES_FILE else path
    if (folder / TABLES_FILE).is_file():
        effort.say(f"reading the tables of {folder.name}")
        return load_folder(folder)
    if (path / RELEASE_FILE).is_file():
        release = load_release(path)
        release.check()
        return release
    if path.is_dir() and not any(path.glob("*.toml")):
        raise InvalidFile(
            f"the folder '{path}' holds nothing to audit",
            why=f"there is no {TABLES_FILE}, no {RELEASE_FILE} and no {PROGRAM_FILE} in it",
            instead=f"say in a {TABLES_FILE} which tables its files hold; `dualmandate schema tables` names the keys",
            where=Place(file=str(path)),
        )
    return load_folder(folder) if path.name == TABLES_FILE else load(path)


def _check_options(found: Program | Release | Folder, options: AuditOptions) -> None:
    if options.beside and not isinstance(found, Release):
        raise InvalidRequest(
            "another release is named beside something that is no release",
            why="noise is compared row by row, and only releases say which rows they measured",
            instead="audit a release, or leave --beside out",
        )
    if options.place is not None and isinstance(found, Folder):
        raise InvalidRequest(
            "a place is named for a folder of tables",
            why=f"its {TABLES_FILE} says which column names the place",
            instead=f'write place = "{options.place}" there',
        )


def attack_on(target: object, effort: Effort) -> Attack[Any]:
    """The attack that fits a target."""
    found: Attack[Any] = ATTACKS[type(target)](effort)
    return found
