"""The pages of the service: shells without a number in them, which ask the service by a script of its own.

The same stylesheet as the dossier's. Nothing comes from elsewhere, and nothing inline runs.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from fastapi import APIRouter, Depends, Request, Response

from dualmandate import __version__
from dualmandate.apps.http.calls import COOKIE, Allowed, Worker
from dualmandate.apps.http.keys import AccessRole
from dualmandate.report.theme import rendered, template_text

PAGES = (
    {"name": "home", "title": "Home", "path": "/"},
    {"name": "ask", "title": "Ask", "path": "/ask"},
    {"name": "ledger", "title": "Ledger", "path": "/ledger"},
)
ANYONE = [Depends(Allowed(*AccessRole))]
pages = APIRouter()


@cache
def _page(name: str, project: Path) -> bytes:
    title = next(each["title"] for each in PAGES if each["name"] == name)
    about = {"project": project.name, "version": __version__, "pages": PAGES, "name": name, "title": title}
    return rendered(f"service_{name}.html", **about).encode()


@cache
def _static(name: str) -> bytes:
    return (rendered(name) if name.endswith(".css") else template_text(name)).encode()


def _shown(request: Request, name: str) -> Response:
    worker: Worker = request.app.state.worker
    return Response(_page(name, worker.service.folder.resolve()), media_type="text/html")


@pages.get("/", include_in_schema=False)
def home(request: Request) -> Response:
    """What waits for whom, what is left, what is published."""
    return _shown(request, "home")


@pages.get("/ask", include_in_schema=False)
def ask(request: Request) -> Response:
    """A question with its price before, and its answer after."""
    return _shown(request, "ask")


@pages.get("/ledger", include_in_schema=False)
def ledger(request: Request) -> Response:
    """Who spent what when on what, and when it ends."""
    return _shown(request, "ledger")


@pages.get("/static/service.css", include_in_schema=False)
def style() -> Response:
    """The look of every page."""
    return Response(_static("service.css"), media_type="text/css")


@pages.get("/static/service.js", include_in_schema=False)
def script() -> Response:
    """What asks and shows."""
    return Response(_static("service.js"), media_type="text/javascript")


@pages.post("/v1/session", status_code=204, dependencies=ANYONE, summary="Let links to public files open")
def begin(request: Request) -> Response:
    """A link cannot send a header: its key goes along as a cookie that no script reads, for files alone."""
    reply = Response(status_code=204)
    key = request.headers["authorization"].partition(" ")[2]
    secure = request.url.scheme == "https"
    reply.set_cookie(COOKIE, key, path="/v1/files", httponly=True, samesite="strict", secure=secure)
    return reply


@pages.delete("/v1/session", status_code=204, dependencies=ANYONE, summary="Forget the cookie")
def end() -> Response:
    """Signing out."""
    reply = Response(status_code=204)
    reply.delete_cookie(COOKIE, path="/v1/files", httponly=True, samesite="strict")
    return reply
