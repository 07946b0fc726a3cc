"""`dualmandate audit`: attack what was published, and say what an attacker learns.

What is judged by confidential records goes to a folder of its own, never to the screen and never beside a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.apps.folder import check_private, check_writable, json_text, write_files, written_whole
from dualmandate.apps.next_step import advice, index_project
from dualmandate.apps.options import AuditFlags
from dualmandate.apps.output import Output
from dualmandate.errors import InvalidRequest, Place
from dualmandate.ledger.chain import RELEASE_FILE

if TYPE_CHECKING:
    from dualmandate.apps.ledgers import ApprovalNotice
    from dualmandate.audit.finding import Finding, Label
    from dualmandate.audit.options import AuditOptions
    from dualmandate.audit.run import Audit
    from dualmandate.population import PrivacyLoss

TABULATED = "tabulated:"
AUDIT_FILE, AUDIT_PAGE = "audit.json", "audit.html"
TABLES_FILE = "tables.toml"  # of a folder of published tables


def records_of(typed: Sequence[str]) -> tuple[Path | None, Path | None]:
    """The true records, and with the word `tabulated:` those that were tabulated; each once."""
    tabulated = [Path(each.removeprefix(TABULATED)) for each in typed if each.startswith(TABULATED)]
    true = [Path(each) for each in typed if not each.startswith(TABULATED)]
    if len(tabulated) > 1 or len(true) > 1:
        raise InvalidRequest(
            "more than one file of the same records",
            why="an attack is judged by the true records, and by those that were tabulated",
            instead=f"name FILE once and {TABULATED}FILE once",
        )
    return next(iter(true), None), next(iter(tabulated), None)


def carry_out(typed: AuditFlags, output: Output) -> None:
    """Audit, write where asked, then speak; exit 0 whatever was found."""
    confidential, tabulated = records_of(typed.confidential or ())
    _check_folders(typed)
    with output.progress(f"auditing {typed.target.name}") as progress:
        from dualmandate.audit.options import AuditOptions
        from dualmandate.audit.run import audit_target

        options = AuditOptions.of(
            confidential=confidential,
            tabulated=tabulated,
            place=typed.place,
            seconds=typed.seconds,
            beside=typed.beside,
            outside=typed.outside,
            secret=typed.secret,
            person=typed.person,
            link=typed.link,
            progress=progress,
            counted=progress.count,
        )
        if typed.approve_rates is not None:
            output.tell(_approved_rate(typed, options))
            return
        found = audit_target(typed.target, options)
        if typed.publish_rates is not None:
            found = _with_rates(found, typed, options)
        elif typed.out is not None:
            write(found, typed.out, "public")
        if typed.internal is not None:
            write(found, typed.internal, "internal")
    output.say(found.words())
    inside = len(found.labeled("internal"))
    if typed.internal is not None:
        output.say(f"\n{inside} internal findings, and single cells that follow: {typed.internal / AUDIT_PAGE}")
    if typed.out is not None:
        output.say(f"\nwritten: {typed.out / AUDIT_FILE}\nto open: {typed.out / AUDIT_PAGE}")
        linking = index_project(typed.out)
        if linking is not None:
            output.say(f"\n{advice(linking)}")
    output.document(found.document)


def _with_rates(found: Audit, typed: AuditFlags, options: AuditOptions) -> Audit:
    """Book and publish what the attack gets right; the audit with that number, as it was written to --out."""
    from dualmandate.apps.ledgers import find_ledger, person, spender_of
    from dualmandate.audit.published_rates import RatePublisher, publish_rate
    from dualmandate.planning.release_spec import load_release

    out = typed.out
    assert out is not None
    made: list[Audit] = []
    who = spender_of(typed.by or ())
    spent = who.group, who.purpose, typed.other_ledger, typed.sign
    publisher = RatePublisher(person(who.by), typed.approved_by, *spent)

    def put(finding: Finding) -> None:
        made.append(replace(found, findings=(*found.findings, finding)))
        write(made[0], out, "public")

    ledger = find_ledger(typed.target, typed.ledger).open()
    release, loss = load_release(typed.target), _rate_loss(typed)
    publish_rate(release, options, ledger, loss=loss, publisher=publisher, write=put)
    return made[0]


def _approved_rate(typed: AuditFlags, options: AuditOptions) -> ApprovalNotice:
    """Record who approves that a rate is published: what is asked follows from the public release alone."""
    from dualmandate.apps.ledgers import ApprovalNotice, find_ledger, named_account, person, spender_of
    from dualmandate.audit.published_rates import approve_rate
    from dualmandate.ledger.composition import cost
    from dualmandate.planning.release_spec import load_release

    ledger, release = find_ledger(typed.target, typed.ledger).open(), load_release(typed.target)
    by = person(spender_of(typed.by or ()).by)
    approval = approve_rate(release, options, ledger, loss=_rate_loss(typed), by=by, sign=typed.sign)
    account = named_account(ledger, approval.account)
    asked, name = cost(approval.loss, approval.unit, account), f"release {release.facts['release']}"
    return ApprovalNotice(approval, name, account.privacy_measure, asked, ledger.remaining(account.name), "rate")


def _rate_loss(typed: AuditFlags) -> PrivacyLoss:
    from dualmandate.apps.ledgers import loss_of

    return loss_of(typed.publish_rates or typed.approve_rates or "", "a loss for a rate")


def write(found: Audit, folder: Path, label: Label) -> None:
    """Write the page, the document and the files of results of one label, all or nothing."""
    from dualmandate.report.audit_page import audit_page
    from dualmandate.report.result_files import result_files

    with written_whole(folder, private=label == "internal") as draft:
        files = {AUDIT_FILE: json_text(found.document(label)), AUDIT_PAGE: audit_page(found, label)}
        write_files({**files, **result_files(found, label)}, draft)


def _check_folders(typed: AuditFlags) -> None:
    """Refuse, before any work is done, folders where findings must not stand."""
    if typed.confidential and typed.internal is None:
        raise InvalidRequest(
            "records are named, and no folder for what they show",
            why="what is judged by them is internal, and is neither printed nor written beside public findings",
            instead="name a folder inside the wall with --internal DIR",
        )
    if typed.out is not None and typed.internal is not None and _within(typed.internal, typed.out):
        raise InvalidRequest(
            "the internal folder lies in the public one",
            why="whoever is handed the public folder would get it too",
            instead="name two folders apart from each other",
            where=Place(file=str(typed.internal)),
        )
    if typed.approve_rates is not None:
        _check_approval(typed)
    elif typed.publish_rates is not None:
        _check_rates(typed)
    for folder in (typed.out, typed.internal):
        if folder is not None:
            _check_no_release(folder)
            check_writable(folder)
    if typed.internal is not None:
        check_private(typed.internal)


def _check_approval(typed: AuditFlags) -> None:
    """Refuse, before any work is done, an approval of a rate that does anything else."""
    from dualmandate.audit.published_rates import check_publishable

    check_publishable(typed.target)
    _rate_loss(typed)
    if typed.publish_rates is not None or typed.confidential or typed.out is not None or typed.internal is not None:
        raise InvalidRequest(
            "a rate is to be approved, and more is asked for",
            why="an approval is one person's word, and needs neither records nor a folder",
            instead="state --approve-rates LOSS with --place, --by and --sign alone; publish with --publish-rates LOSS",
        )


def _check_rates(typed: AuditFlags) -> None:
    """Refuse, before any work is done, a rate that could not be published."""
    from dualmandate.audit.published_rates import check_publishable

    check_publishable(typed.target)
    _rate_loss(typed)
    if records_of(typed.confidential or ())[0] is None or typed.out is None:
        raise InvalidRequest(
            "a rate is to be published, and " + ("no records to count" if typed.out else "no folder to publish it in"),
            why="it is counted against the true records, and stands among the public findings",
            instead="name --confidential FILE, --internal DIR and --out DIR",
        )


def _check_no_release(folder: Path) -> None:
    here = folder.absolute()
    released = next((each for each in (here, *here.parents) if (each / RELEASE_FILE).is_file()), None)
    if released is not None:
        raise InvalidRequest(
            "findings are to be written into a release",
            why="a release is what was published, and nothing else",
            instead="name a folder outside of it",
            where=Place(file=str(folder)),
        )


def _within(inner: Path, outer: Path) -> bool:
    one, other = inner.resolve(), outer.resolve()
    return one == other or other in one.parents
