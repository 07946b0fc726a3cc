"""The plans, releases and public audits of a project, as `dualmandate index` finds them, and their files."""

from __future__ import annotations

import hashlib
import json
import mimetypes
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from fastapi import Response

from dualmandate.apps.http.service import Service
from dualmandate.apps.index import ProjectFiles, project_files
from dualmandate.errors import UnknownName
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.report.documents.service import ListedFilePart, ProjectDocument

LARGEST = 2**30  # bytes of a file that is sent
PAGE = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'; sandbox allow-scripts"


def project_document(service: Service) -> ProjectDocument:
    """What is planned, approved, published and audited."""
    found = project_files(service.folder, service.ledger)
    listed = {
        kind: [ListedFilePart.made_of(**{"loss": None, **each}) for each in getattr(found, kind)]
        for kind in ("plans", "releases", "audits")
    }
    return ProjectDocument.made_of(name=service.folder.resolve().name, **listed)


def served_file(service: Service, asked: str) -> Response:
    """A public file, as it was written; refused where it is anything else."""
    folder, found = service.folder.resolve(), project_files(service.folder, service.ledger)
    content = _content(folder, found, asked)
    if content is None:
        raise UnknownName(
            "there is no such public file",
            why="served are plans, releases and public audits with their pages, as they were written, and nothing else",
            instead="follow the links of /v1/project",
        )
    kind = mimetypes.guess_type(asked)[0] or "application/octet-stream"
    headers = {"Content-Security-Policy": PAGE} if kind == "text/html" else {}
    return Response(content, media_type=kind, headers=headers)


def _content(folder: Path, found: ProjectFiles, asked: str) -> bytes | None:
    """What is in a file that something public names: itself, its page, or a file that a release lists by its digest."""
    named = {
        unquote(str(each[key])) for each in (*found.plans, *found.releases, *found.audits) for key in ("file", "link")
    }
    if asked in named:
        return _whole(folder, folder / asked)
    for each in found.releases:
        home = PurePosixPath(unquote(str(each["file"]))).parent
        if PurePosixPath(asked).is_relative_to(home):
            listed = json.loads((folder / home / RELEASE_FILE).read_bytes()).get("files", {})
            digest = listed.get(PurePosixPath(asked).relative_to(home).as_posix())
            content = None if digest is None else _whole(folder, folder / asked)
            return content if content is not None and hashlib.sha256(content).hexdigest() == digest else None
    return None


def _whole(folder: Path, path: Path) -> bytes | None:
    """A plain file inside of the project; no link, whoever wrote its name."""
    plain = path.is_file() and path.resolve() == path and path.is_relative_to(folder)
    return path.read_bytes() if plain and path.stat().st_size <= LARGEST else None
