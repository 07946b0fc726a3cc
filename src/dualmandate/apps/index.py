"""`dualmandate index`: one page of a project that links its plans, releases and audits, beside its accounts.

Public information only: plans and releases say of themselves that they are public, audits too or they are left out; of
the ledger caps, what is spent and whether a plan is approved, which follow from plans and never from a record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dualmandate.apps.audit import AUDIT_FILE, AUDIT_PAGE
from dualmandate.apps.folder import check_writable, write_files, written_whole
from dualmandate.apps.next_step import PLAN_FILE, nearest
from dualmandate.apps.plan import page_name
from dualmandate.apps.settings import project_folder, settings
from dualmandate.errors import CannotWrite, InvalidFile, Place, Refusal
from dualmandate.ledger.chain import RELEASE_FILE

if TYPE_CHECKING:
    from dualmandate.ledger import Ledger

INDEX_PAGE = "index.html"
OURS = '<meta name="generator" content="dualmandate index">'
LARGEST = 50_000_000  # bytes of a file that is looked into


@dataclass(frozen=True)
class ProjectIndex:
    """The page of a project, and how much it links."""

    page: Path
    plans: int
    releases: int
    audits: int
    accounts: int

    def words(self) -> str:
        from dualmandate.population.wording import counted

        of = {"plan": self.plans, "release": self.releases, "public audit": self.audits, "account": self.accounts}
        return f"linked: {', '.join(counted(count, name) for name, count in of.items())}\nto open: {nearest(self.page)}"

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.commands import IndexDocument

        return IndexDocument.made_of(self, page=str(self.page)).as_json()


@dataclass(frozen=True)
class ProjectFiles:
    """The plans, releases and public audits of a project, a row of words each."""

    plans: tuple[dict[str, object], ...]
    releases: tuple[dict[str, object], ...]
    audits: tuple[dict[str, object], ...]


def project_files(project: Path, books: Ledger | None) -> ProjectFiles:
    """What is public of a project, in the order of its paths, and what the ledger says of its plans."""
    approved = _approvals(books)
    plans = (_plan(*each, approved) for each in _found(project, PLAN_FILE, page_name()))
    releases = (_release(*each) for each in _found(project, RELEASE_FILE, INDEX_PAGE))
    audits = (_audit(*each) for each in _found(project, AUDIT_FILE, AUDIT_PAGE))
    return ProjectFiles(tuple(plans), tuple(releases), tuple(audits))


def write_index(start: Path, ledger: str | None = None) -> ProjectIndex:
    """Write the page into the project's folder, over an earlier one of its own and over nothing else."""
    project = project_folder(start)
    if project is None:
        raise InvalidFile(
            f"'{start}' lies in no project",
            why="a project is the nearest folder upward with dualmandate.toml, and the page lies beside it",
            instead="name a folder of a project, or begin one with `dualmandate init`",
            where=Place(file=str(start)),
        )
    page = project / INDEX_PAGE
    if page.exists() and OURS not in page.read_text(encoding="utf-8", errors="replace"):
        raise CannotWrite(
            f"'{page}' is another page",
            why="only a page that this command wrote is written anew",
            instead="move it, and run the command again",
            where=Place(file=str(page)),
        )
    check_writable(project)
    from dualmandate.report.theme import rendered

    books = _books(project, ledger)
    found, accounts = project_files(project, books), _accounts(books)
    page_text = rendered(
        "index.html",
        title=project.resolve().name,
        ours=OURS,
        plans=found.plans,
        releases=found.releases,
        plan_of={each["digest"]: f"plan-{place}" for place, each in enumerate(found.plans, 1)},
        release_of={f"release {each['name']}": f"release-{place}" for place, each in enumerate(found.releases, 1)},
        audits=found.audits,
        accounts=accounts,
    )
    with written_whole(project) as draft:
        write_files({INDEX_PAGE: page_text}, draft)
    return ProjectIndex(page, len(found.plans), len(found.releases), len(found.audits), len(accounts))


Found = tuple[Mapping[str, Any], str | None, str]
"""What a public file says, the link to its page where there is one, and the link to the file."""


def _found(project: Path, name: str, beside: str) -> Iterator[Found]:
    """Every public file of a name in the project, in the order of its path; nothing hidden, no draft, no link out."""
    schema = f"{name.removesuffix('.json')}/1"
    for path in sorted(project.rglob(name)):
        parts = path.relative_to(project).parts
        if (
            any(part.startswith(".") for part in parts)
            or path.is_symlink()
            or not path.resolve().is_relative_to(project.resolve())
        ):
            continue
        try:
            readable = path.is_file() and path.stat().st_size <= LARGEST
            document = json.loads(path.read_bytes()) if readable else None
        except (OSError, ValueError, RecursionError):
            continue
        if not isinstance(document, dict) or document.get("schema") != schema:
            continue
        # A plan never sees records, and its dossier is public; the others say of themselves whom they are for.
        if name == PLAN_FILE or document.get("label") == "public":
            page = path.with_name(beside)
            link = "/".join(map(quote, page.relative_to(project).parts)) if page.is_file() else None
            yield document, link, "/".join(map(quote, parts))


def _plan(document: Mapping[str, Any], link: str | None, file: str, approved: Mapping[str, str]) -> dict[str, object]:
    digest = str(document.get("digest", ""))
    said = document.get("program") or {}
    return {
        "name": str(said.get("name", file)) if isinstance(said, dict) else file,
        "loss": _loss(document),
        "state": "a study" if document.get("study") else approved.get(digest, "not approved here"),
        "digest": digest,
        "link": link,
        "file": file,
    }


def _loss(document: Mapping[str, Any]) -> str:
    loss = document.get("loss")
    return f"{loss.get('currency', '')} = {loss.get('amount', '')}" if isinstance(loss, dict) else ""


def _standing(document: Mapping[str, Any]) -> str:
    from dualmandate.ledger.signatures import standing_words

    try:
        return standing_words(document) or "not stated"
    except (LookupError, TypeError):  # somebody else's file may say anything
        return "not stated"


def _release(document: Mapping[str, Any], link: str | None, file: str) -> dict[str, object]:
    return {
        "name": f"{document.get('release', '')} of {document.get('program', '')}",
        "loss": _loss(document),
        "account": str(document.get("account", "")),
        "standing": _standing(document),
        "digest": str(document.get("plan_digest", "")),
        "link": link,
        "file": file,
    }


def _audit(document: Mapping[str, Any], link: str | None, file: str) -> dict[str, object]:
    found = document.get("findings")
    count = len(found) if isinstance(found, list) else 0
    return {"name": str(document.get("target", file)), "count": count, "link": link, "file": file}


def _books(project: Path, ledger: str | None) -> Ledger | None:
    """The ledger of the project, where there is one that can be opened."""
    place = settings(project, {"ledger": ledger})["ledger"].value
    if place is None or not ("://" in place or Path(place).exists()):
        return None
    from dualmandate.apps.ledgers import find_ledger

    try:
        return find_ledger(project, ledger).open()
    except Refusal:
        if ledger is not None:
            raise
        return None  # whoever has no key still has a page of the files


def _approvals(books: Ledger | None) -> dict[str, str]:
    """When each plan was approved, and by whom where that is signed: a name that was typed stays inside."""
    from dualmandate.ledger import EventKind
    from dualmandate.ledger.signatures import read_signature, signed_words

    found: dict[str, list[str]] = {}
    for event in () if books is None else books.events():
        if event.kind is EventKind.APPROVED:
            signature = read_signature(event.document())
            key, who = (None, "") if signature is None else (signature.key, f" by {event.by}")
            words = f"approved {event.recorded_at[:10]}{who}, {signed_words(key)}"
            found.setdefault(str(event.document()["plan_digest"]), []).append(words)
    return {digest: "; ".join(words) for digest, words in found.items()}


def _accounts(books: Ledger | None) -> list[str]:
    from dualmandate.apps.statements import balances

    return [] if books is None else [balance.line() for balance in balances(books)]
