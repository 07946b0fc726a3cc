"""The composer: a program file becomes a plan, a plan a dossier and, once it is approved, a release and an audit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from dualmandate.program.plan import Plan, TableConsequence
from dualmandate.program.program import Program, load
from dualmandate.program.saved import SavedPlan, load_plan
from dualmandate.program.saving import Comparison

if TYPE_CHECKING:
    from dualmandate.audit.auditing import Audit
    from dualmandate.ledger import Ledger
    from dualmandate.program.audits.auditing import Asking
    from dualmandate.publication import Source
    from dualmandate.publication.release import Release

__all__ = [
    "Comparison",
    "Plan",
    "Program",
    "SavedPlan",
    "TableConsequence",
    "audit",
    "load",
    "load_plan",
    "load_release",
    "publish",
    "write_dossier",
]


def write_dossier(plan: Plan, directory: Path | str) -> tuple[Path, ...]:
    """Write the page that a review board reads, and its pictures; gives back what was written."""
    from dualmandate.program import dossier  # here, because drawing costs more to import than planning

    return dossier.write_dossier(plan, directory)


def publish(
    plan: Plan, source: Source, ledger: Ledger, *, out: Path | str, by: str, resume: str | None = None
) -> Release:
    """Carry out a plan that the ledger knows as approved, on confidential records, at exactly its loss.

    `by` is who publishes, for the record; `resume` names a release to take up where it was left. The release is
    written to a folder of its own below `out`.
    """
    from dualmandate.program import publishing, released  # here: what measures and writes costs more than planning
    from dualmandate.publication import act

    order, place = publishing.order_of_plan(plan), Path(out)
    if resume is not None:
        folder = act.resume(order, source, ledger, release=resume, out=place, by=by)
    else:
        folder = act.publish(order, source, ledger, out=place, asked=act.Asked(by, source.name))
    return released.load_release(folder)


def load_release(folder: Path | str) -> Release:
    """A release from the folder that `publish` wrote; refused where a file of it is missing or was changed."""
    from dualmandate.program import released

    return released.load_release(folder)


def audit(target: Path | str | Program | Release, **asked: Unpack[Asking]) -> Audit:
    """What an attacker learns from a program, a release (or its folder), or a folder of published tables.

    `confidential` is a file of the true records, `tabulated` one of the records that were tabulated (after swapping,
    say): findings that are judged by them are internal. `place` is the attribute that tells places apart, and `seconds`
    what a solver may take for one question; `progress` is told what is being done. `beside` are other releases, whose
    noise is compared. `outside` is a file of named people to link records to, `secret` what an attacker is after (else
    whatever that file does not say), `person` the column that names people, and `link` how: "exact" or "splink".
    """
    from dualmandate.program.audits import auditing  # here: solvers cost more to import than planning

    return auditing.audited(target, auditing.asked_of(**asked))
