"""The web application, made by a factory from a project: nothing of it exists before somebody serves.

Around every request: its identifier, a limit of its size, a line in the log, a count, headers that keep a browser from
doing what nobody asked for; and whatever goes wrong is told as `refusal/1`, in our own words, with the right status.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dualmandate import __version__
from dualmandate.apps.http.calls import FAILURES_A_MINUTE, Worker, replied, sent
from dualmandate.apps.http.limits import RateLimit
from dualmandate.apps.http.pages import pages
from dualmandate.apps.http.replies import FOLDER, ReplyFolder
from dualmandate.apps.http.routes import routes
from dualmandate.apps.http.service import Service, ServiceSettings, told_outside
from dualmandate.apps.http.watching import LogLine, Metrics
from dualmandate.apps.output import spot
from dualmandate.errors import (
    BudgetExceeded,
    CannotWrite,
    InvalidRequest,
    LedgerTampered,
    LedgerUnavailable,
    NotAllowed,
    NotApproved,
    NotAuthenticated,
    NotChecked,
    Place,
    Refusal,
    ReleaseConflict,
    StillWorking,
    TooManyRequests,
    UnknownName,
    UnreadableSource,
    UnsafeKey,
)
from dualmandate.report.documents.commands import RefusalDocument
from dualmandate.report.documents.service import HealthDocument

STATUS: Mapping[type[Refusal], int] = {
    NotAuthenticated: 401,
    NotAllowed: 403,
    UnknownName: 404,
    BudgetExceeded: 409,
    NotApproved: 409,
    NotChecked: 409,
    ReleaseConflict: 409,
    TooManyRequests: 429,
    CannotWrite: 503,
    LedgerTampered: 503,
    LedgerUnavailable: 503,
    StillWorking: 503,
    UnreadableSource: 503,
    UnsafeKey: 503,
}
UNUSABLE = 422  # every other refusal: what was sent cannot be meant
PATIENCE = 20.0  # seconds in which a body has to arrive
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": RefusalDocument, "description": words}
    for status, words in {
        401: "No key, or one that opens nothing.",
        403: "The role of the key may not.",
        404: "There is nothing of this name.",
        409: "A cap, an approval or an earlier request stands in the way.",
        413: "More was sent than a request may hold.",
        422: "What was sent cannot be meant.",
        429: "Too many requests.",
        503: "Not now: the ledger, the records or the time of a request.",
    }.items()
}


def app_of(settings: ServiceSettings) -> FastAPI:
    """The application that serves a project; refused where the project, its ledger or its keys cannot be used."""
    service = Service(settings)
    worker = Worker(
        service,
        Metrics(),
        ReplyFolder(service.files.folder / FOLDER),
        RateLimit(settings.requests_a_minute / settings.workers),
        RateLimit(FAILURES_A_MINUTE / settings.workers),
    )

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        worker.replies.forget()
        yield
        # Whoever is asked to stop finishes what has begun: its loss is reserved.
        for pool in (worker.asking, worker.reading):
            pool.shutdown(wait=True, cancel_futures=True)

    app = FastAPI(
        title="Dualmandate",
        summary="Questions within a privacy-loss budget.",
        version=__version__,
        docs_url=None,  # pages that load their scripts from elsewhere
        redoc_url=None,
        openapi_url="/v1/openapi.json",
        lifespan=living,
        responses=REFUSALS,
    )
    app.state.worker = worker
    app.include_router(routes)
    app.include_router(pages)
    app.add_api_route("/health", _alive, response_model=HealthDocument, summary="Whether it is alive")
    app.add_api_route("/ready", _ready, response_model=HealthDocument, summary="Whether it can answer")
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _not_meant)
    app.add_exception_handler(HTTPException, _no_such_request)
    app.add_middleware(Guard, worker=worker)
    return app


def _alive() -> Response:
    """This process answers."""
    return sent(replied(HealthDocument.made_of(status="alive", version=__version__)))


def _ready(request: Request) -> Response:
    """The ledger can be read, its chain is whole, and the keys are there."""
    worker: Worker = request.app.state.worker
    worker.service.ledger.head()
    worker.service.keys.all()
    return sent(replied(HealthDocument.made_of(status="ready", version=__version__)))


def status_of(refusal: Refusal) -> int:
    """The HTTP status of a refusal."""
    return next((status for kind, status in STATUS.items() if isinstance(refusal, kind)), UNUSABLE)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    worker: Worker = request.app.state.worker
    request.state.refusal = error.code
    if isinstance(error, BudgetExceeded):
        worker.metrics.answers.labels("refused").inc()
    headers = {}
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, TooManyRequests | StillWorking):
        headers["Retry-After"] = "5"
    body = json.dumps(told_outside(error, worker.service.folder), ensure_ascii=False)
    return Response(body, status_of(error), headers, "application/json")


async def _not_meant(request: Request, error: Exception) -> Response:
    """What a model refuses: the place is told, and never what was sent."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"][1:])
    refusal = InvalidRequest(
        "a request that cannot be read",
        why="a key is missing, unknown, or of another kind than it should be",
        instead="see /v1/openapi.json for what each request takes",
        where=Place(key=key or None),
    )
    return await _refused(request, refusal)


async def _no_such_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    refusal = UnknownName(
        "there is no such request" if error.status_code == 404 else "a request that is made in another way",
        why="the requests there are, and how each is made, stand in /v1/openapi.json",
        instead="see there, or use dualmandate.client",
    )
    reply = await _refused(request, refusal)
    reply.status_code = error.status_code
    reply.headers.update(error.headers or {})
    return reply


class Guard:
    """Around every request: its size, its time, its line in the log, and the headers of its reply."""

    def __init__(self, app: ASGIApp, worker: Worker) -> None:
        self.app, self.worker = app, worker
        self.hosts = {"localhost", "127.0.0.1", "[::1]", "testserver", *worker.service.settings.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, name, status, started = time.monotonic(), secrets.token_hex(8), 500, False
        scope.setdefault("state", {})
        bug: str | None = None

        async def reply(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                started, status = True, int(message["status"])
                headers = list(message.get("headers", ()))
                present = {key.lower() for key, _ in headers}
                ours = {**HEADERS, "X-Request-Id": name, "Cache-Control": "no-store", "Content-Security-Policy": POLICY}
                headers += [
                    (key.encode(), value.encode()) for key, value in ours.items() if key.lower().encode() not in present
                ]
                message = {**message, "headers": headers}
            await send(message)

        try:
            refusal = self._unknown_host(scope)
            body = b"" if refusal is not None else await self._body(scope, receive)
            if body is None:
                refusal = _too_large(self.worker.service.settings.largest_request)
            if refusal is not None:
                scope["state"]["refusal"] = refusal.code
                told = json.dumps(refusal.document()).encode()
                await Response(told, 413 if body is None else 421, media_type="application/json")(scope, receive, reply)
            else:
                await self.app(scope, _again(body or b"", receive), reply)
        except Exception as error:
            bug = f"{type(error).__name__} in {spot(error.__traceback__)}"
            if not started:
                await Response(_bug_told(name), 500, media_type="application/json")(scope, receive, reply)
        finally:
            self._told(scope, name, status=status, seconds=time.monotonic() - began, bug=bug)

    def _unknown_host(self, scope: Scope) -> Refusal | None:
        """A page of somebody else's that has a name for this machine's own address is not served."""
        given = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"host"), "")
        host = given if given.endswith("]") else given.rpartition(":")[0] or given
        if host.lower() in self.hosts:
            return None
        return InvalidRequest(
            "a request to a host of another name",
            why="the service answers to the names it was told, so that no page elsewhere can speak to it",
            instead="name it: dualmandate serve --host-name NAME",
        )

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """All that was sent; None where it is more than a request may hold."""
        most = self.worker.service.settings.largest_request
        stated = next((value for key, value in scope["headers"] if key == b"content-length"), b"0")
        if not stated.isdigit() or int(stated) > most:
            return None
        content = bytearray()
        async with asyncio.timeout(PATIENCE):
            while True:
                message = await receive()
                if message["type"] != "http.request":
                    return bytes(content)
                content += message.get("body", b"")
                if len(content) > most:
                    return None
                if not message.get("more_body", False):
                    return bytes(content)

    def _told(self, scope: Scope, name: str, *, status: int, seconds: float, bug: str | None) -> None:
        route = getattr(scope.get("route"), "path", "none")
        state = scope.get("state", {})
        caller = state.get("caller")
        method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD", "OPTIONS") else "other"
        metrics = self.worker.metrics
        metrics.requests.labels(route, method, str(status)).inc()
        metrics.seconds.labels(route).observe(seconds)
        line = LogLine(name, method, route, status, round(1000 * seconds), refusal=state.get("refusal"), bug=bug)
        if caller is not None:
            line = replace(line, user=caller.name, role=str(caller.role), key=caller.identifier)
        line.write()


def _again(body: bytes, receive: Receive) -> Receive:
    """What was read, to be read by whoever comes next; after it, whatever the caller does."""
    given = False

    async def received() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": body, "more_body": False}
        return await receive()

    return received


def _too_large(most: int) -> Refusal:
    return InvalidRequest(
        "more than a request may hold",
        why=f"a request has at most {most:,} bytes",
        instead="ask a shorter question",
    )


def _bug_told(name: str) -> bytes:
    told = {
        "schema": "refusal/1",
        "code": "bug",
        "what": "this is our bug, not yours",
        "where": {"file": None, "line": None, "key": None},
        "why": "something happened that this version does not expect",
        "instead": f"tell who runs the service: request {name}",
    }
    return json.dumps(told).encode()
