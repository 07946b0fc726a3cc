"""What an attacker learns: reconstruction, re-identification, membership, suppression, checks of a DP claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dualmandate.audit.run import Audit
    from dualmandate.planning.program import Program
    from dualmandate.publication.release import Release

__all__ = ["audit"]


def audit(target: Path | str | Program | Release, **options: Any) -> Audit:
    """What an attacker learns from a program, a release (or its folder), or a folder of published tables.

    Options are the fields of `dualmandate.audit.options.AuditOptions`, where files may be given by their names:
    `confidential` is a file of the true records, `tabulated` one of the records that were tabulated: findings that are
    judged by them are internal. `place` is the attribute that tells places apart, `seconds` what a solver may take for
    one question; `progress` is told what is being done. `beside` are other releases, whose noise is compared. `outside`
    is a file of named people to link records to, `secret` what an attacker is after (else whatever that file does not
    say), `person` the column that names people, and `link` how: "exact" or "splink".
    """
    from dualmandate.audit.options import AuditOptions  # here: solvers cost more to import than planning
    from dualmandate.audit.run import audit_target

    return audit_target(target, AuditOptions.of(**options))
