"""Every attack on every target that it fits: an audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dualmandate.audit.claims.attack import CheckClaim, ClaimedRelease
from dualmandate.audit.claims.membership_attack import Frequencies, RecognizeMembers
from dualmandate.audit.finding import LOWER_BOUND, Attack, Effort, Finding, Label
from dualmandate.audit.linkage.attack import Linkage, Reidentify
from dualmandate.audit.methods.comparison import Compared, compared_words
from dualmandate.audit.methods.magnitude_rules import SecondLargest, SummedTables
from dualmandate.audit.reconstruction.attacks import ReconstructExact, ReconstructNoisy, ReconstructPersons
from dualmandate.audit.reconstruction.decoding_attack import DecodeBits, NoisySums
from dualmandate.audit.suppression.attack import BoundSuppressed
from dualmandate.audit.suppression.series_attack import CarryOver, HiddenSeries
from dualmandate.audit.targets.targets import ExactTables, GroupStatistics, NoisyTables, SuppressedTables

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
