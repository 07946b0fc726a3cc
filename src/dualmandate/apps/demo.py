"""`dualmandate demo`: the whole story on the embedded Title I program: plan, approve, publish, and attack."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps import audit as auditing
from dualmandate.apps import plan as planning
from dualmandate.apps.check import check
from dualmandate.apps.folder import check_writable, write_files, written_whole
from dualmandate.apps.init import IGNORE_FILE, PROJECT, ignoring, schema_files
from dualmandate.apps.ledgers import KEY_FILE, LedgerFiles
from dualmandate.apps.output import Output, Progress
from dualmandate.apps.publish import RELEASES, PublicationNotice, PublishOptions, published
from dualmandate.apps.settings import LEDGER_FILE, PROJECT_FILE, STATE_FOLDER
from dualmandate.audit.options import check_solvers
from dualmandate.audit.verdict import verdict
from dualmandate.ledger import Account, Approval, EventKind, Ledger, ReleaseState
from dualmandate.population import PrivacyLoss
from dualmandate.report.documents.commands import DemoDocument
from dualmandate.report.documents.plan import plan_document
from dualmandate.report.plan_summary import plan_summary

if TYPE_CHECKING:
    from dualmandate.audit.run import Audit
    from dualmandate.planning.plan import Plan
    from dualmandate.publication.release_spec import ReleaseSpec

PROGRAM = "title_i"
RECORDS = "children.parquet"
REPORT, AUDIT, BLOCK = "report", "audit", "block"
PICTURE = "figures/tangency.png"
CAP = 10  # epsilon, of the children's account: the program's own largest_epsilon
FOR_SHOW = "an earlier demonstration, on the same invented children"
PUBLISHER, APPROVER = "demo", "demo, in place of a review board"


def demonstrate(directory: Path, output: Output) -> None:
    """Write the program folder, plan, approve, publish and attack it, and say in plain words what happened."""
    check_solvers()
    check_writable(directory)
    report = directory / REPORT
    with output.progress("writing the program folder") as progress:
        kept = _write_program(directory, progress)
        from dualmandate.planning.program import load

        plan = load(directory / planning.PROGRAM_FILE).plan(progress=progress)
        document = plan_document(plan)
        planning.write(plan, document, report, progress)
        notice = _publish(plan, directory, progress)
        attacks = _attack(directory, notice, progress)
    if kept:
        output.say(f"(you had changed files of an earlier demo; they are kept as {', '.join(kept)})\n")
    output.say(_story(directory, "\n".join(line.text for line in plan_summary(plan)), notice))
    output.say(_attacked(directory, *attacks))
    written = DemoDocument.made_of(
        directory=str(directory),
        open=str(notice.folder / "index.html"),
        report=str(report / planning.page_name()),
        kept=kept,
        choice=document["choice"],
        publication=notice.document(),
        audit=str(directory / AUDIT / auditing.AUDIT_PAGE),
    )
    output.document(written.as_json)


def _publish(plan: Plan, directory: Path, progress: Progress) -> PublicationNotice:
    """Open the account, approve and publish, each once: a demo that is run again finds what it did."""
    from dualmandate.planning.release_spec import release_spec_of_plan
    from dualmandate.report.release_page import release_page

    file = directory / STATE_FOLDER / LEDGER_FILE  # never the ledger that a setting names: this one spends for show
    files = LedgerFiles(str(file), file, file.parent, file.parent / KEY_FILE)
    order = release_spec_of_plan(plan, release_page)
    ledger = files.create()
    if order.account not in {account.name for account in ledger.accounts()}:
        ledger.open_account(Account(order.account, order.protection.unit, PrivacyLoss.pure(CAP)), by=PUBLISHER)
    approved = (event.document() for event in ledger.events() if event.kind is EventKind.APPROVED)
    if not any(approval["plan_digest"] == order.plan_digest for approval in approved):
        unit = order.protection.unit
        ledger.approve(Approval(order.account, order.plan_digest, order.charge, unit, by=APPROVER))
    begun = _begun(ledger, order)
    if begun is None and plan.program.source is not None:
        progress("checking that the records fit the program")
        check(plan, plan.program.source, ledger, by=PUBLISHER)
    asked = PublishOptions(directory / REPORT, directory / RELEASES, by=PUBLISHER, resume=begun, other_ledger=FOR_SHOW)
    return published(asked, plan.program, order, ledger=ledger, progress=progress)


def _attack(directory: Path, notice: PublicationNotice, progress: Progress) -> tuple[Audit, Audit]:
    """What exact statistics give away, on a block from an article, and what this release does, with its page."""
    from dualmandate import gallery
    from dualmandate.audit import audit

    with written_whole(directory / BLOCK) as draft:
        write_files(gallery.files(BLOCK), draft)
    exact, released = (audit(target, progress=progress) for target in (directory / BLOCK, notice.folder))
    auditing.write(released, directory / AUDIT, "public")
    return exact, released


def _begun(ledger: Ledger, order: ReleaseSpec) -> str | None:
    """The release of this plan that an earlier demo made, or was making."""
    begun = [entry for entry in ledger.releases() if entry.plan_digest == order.plan_digest]
    return next((entry.name for entry in begun if entry.state.is_active or entry.state is ReleaseState.SETTLED), None)


def _story(directory: Path, words: str, notice: PublicationNotice) -> str:
    program, report = directory / planning.PROGRAM_FILE, directory / REPORT
    return f"""\
The United States allot money to school districts by their number of poor children. Noise in those counts protects the
children and misdirects money. How much of each? A program file says who is counted, what is asked, and what a privacy
loss and an error cost: {program}

{words}

What was done: the program was planned, from public numbers alone; the plan was approved, here by the demo itself, where
a review board would; the records were checked against the program; and it was carried out on 46 million invented
children in {directory / RECORDS}.

{notice.words()}

Open this too, in any browser, to see why this loss and no other:
  {report / planning.page_name()}
Its first picture alone, where what can be produced meets what society wants:
  {report / PICTURE}
Then change a number in the program file and plan it again:
  dualmandate plan {program}
"""


def _attacked(directory: Path, exact: Audit, released: Audit) -> str:
    lists, loss = (_first(found, word) for found, word in ((exact, "lists of persons"), (released, "computed again")))
    learned = "\n  ".join(textwrap.wrap(" ".join(verdict(released.findings)), 116))
    return f"""\
Last, it was attacked. What noise is for shows a block of seven people whose statistics were published exactly, an
example of the literature, in {directory / BLOCK}:
  {lists}
One list is left: the statistics are the people. Of the release here, the loss was computed again from what was measured
and how it was noised, and its records were guessed as well as an attacker can:
  {loss}
What that comes to:
  {learned}
An attack gives a lower bound on risk: another one may find more. All findings:
  {directory / AUDIT / auditing.AUDIT_PAGE}"""


def _first(found: Audit, word: str) -> str:
    """The finding whose claim has these words, with its baselines."""
    finding = next(each for each in found.findings if word in each.claim)
    return "\n  ".join(finding.words().splitlines()[: 1 + len(finding.baselines)])


def _write_program(directory: Path, progress: Progress) -> list[str]:
    """The embedded program, every time the same; a file that was changed since the last demo is kept aside.

    The invented records are written once: whoever changes them finds that a release is bound to its data.
    """
    from dualmandate import gallery

    files = gallery.files(PROGRAM) | {PROJECT_FILE: PROJECT, IGNORE_FILE: ignoring(directory, [RECORDS])}
    files |= schema_files(files)
    kept = []
    for file, text in files.items():
        path = directory / file
        if path.is_file() and path.read_bytes() != text.encode() and file != IGNORE_FILE:
            kept.append(_keep_aside(path))
    with written_whole(directory) as draft:
        write_files(files, draft)
        if not (directory / RECORDS).exists():
            progress("inventing 46 million children")
            gallery.write_records(PROGRAM, draft)
    return kept


def _keep_aside(path: Path) -> str:
    count = 1
    while (aside := path.with_name(f"{path.stem}.changed-{count}{path.suffix}")).exists():
        count += 1
    path.rename(aside)
    return str(aside)
