"""The Python doors: acts that need several rooms, as functions. `dualmandate` itself offers them by the same names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dualmandate.ledger import Ledger
    from dualmandate.planning.plan import Plan
    from dualmandate.publication import Source
    from dualmandate.publication.release import Release


def publish(
    plan: Plan, source: Source, ledger: Ledger, *, out: Path | str, by: str, resume: str | None = None
) -> Release:
    """Carry out a plan that the ledger knows as approved, on confidential records, at exactly its loss.

    `by` is who publishes, for the record; `resume` names a release to take up where it was left. The release is
    written to a folder of its own below `out`.
    """
    from dualmandate.planning.release_spec import load_release, release_spec_of_plan
    from dualmandate.publication import publish as publishing
    from dualmandate.report.release_page import release_page

    order, place = release_spec_of_plan(plan, release_page), Path(out)
    if resume is not None:
        folder = publishing.resume(order, source, ledger, release=resume, out=place, by=by)
    else:
        folder = publishing.publish(
            order, source, ledger, out=place, request=publishing.PublicationRequest(by, source.name)
        )
    return load_release(folder)
