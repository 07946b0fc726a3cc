"""One request: who makes it, by which key, whether their role may, and how it is replied to."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request, Response, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from dualmandate.apps.http.keys import AccessRole, ApiKey
from dualmandate.apps.http.limits import RateLimit
from dualmandate.apps.http.replies import KeptReply, ReplyFolder
from dualmandate.apps.http.service import Service
from dualmandate.apps.http.watching import Metrics
from dualmandate.errors import NotAllowed, NotAuthenticated, StillWorking
from dualmandate.report.documents.document import DocumentModel

T = TypeVar("T")
BEARER = HTTPBearer(auto_error=False, description="A key of the service: dm_…")
COOKIE = "dm_key"  # of the page: for files alone, which are opened by links
CSV, JSON = "text/csv", "application/json"
FAILURES_A_MINUTE = 60.0  # wrong keys from one address
ASKING = 8  # questions that a worker has under way; others wait their turn
READING = 8  # prices and kept answers beside them, which wait for no question


@dataclass(frozen=True, eq=False)
class Worker:
    """What a worker process keeps from request to request."""

    service: Service
    metrics: Metrics
    replies: ReplyFolder
    requests: RateLimit
    failures: RateLimit
    asking: Executor = field(default_factory=lambda: ThreadPoolExecutor(ASKING, "asking"))
    reading: Executor = field(default_factory=lambda: ThreadPoolExecutor(READING, "reading"))

    async def patiently(self, work: Callable[[], T], *, asking: bool = False) -> T:
        """The result of some work, if it comes within the time of a request; else the work goes on without it."""
        pool = self.asking if asking else self.reading
        task = asyncio.get_running_loop().run_in_executor(pool, work)
        task.add_done_callback(lambda done: done.cancelled() or done.exception())  # heard, also after nobody waits
        try:
            return await asyncio.wait_for(asyncio.shield(task), self.service.settings.seconds)
        except TimeoutError:
            raise StillWorking(
                "a question that takes longer than a request may",
                why=f"a request has {self.service.settings.seconds:g} seconds; what was reserved stays reserved",
                instead="ask the same again in a while: it is answered once, and spent once",
            ) from None


@dataclass(frozen=True, eq=False)
class Call:
    """A request by somebody who may make it."""

    worker: Worker
    caller: ApiKey
    accepts: str

    @property
    def service(self) -> Service:
        """The project."""
        return self.worker.service

    @property
    def is_csv(self) -> bool:
        """Whether rows are wanted, for R and spreadsheets."""
        return CSV in self.accepts


class Allowed:
    """The roles that may make a request. The matrix of roles and requests is read from these."""

    def __init__(self, *roles: AccessRole, linked: bool = False) -> None:
        self.roles, self.linked = frozenset(roles), linked

    def __call__(
        self, request: Request, given: Annotated[HTTPAuthorizationCredentials | None, Security(BEARER)]
    ) -> Call:
        """Who calls; refused without a good key, with another role, or too often."""
        worker: Worker = request.app.state.worker
        key = request.cookies.get(COOKIE, "") if self.linked and given is None else ""
        caller = worker.service.keys.holder(key if given is None else given.credentials)
        if caller is None:
            worker.failures.take(request.client.host if request.client else "")
            raise NotAuthenticated(
                "a request without a key that opens this service",
                why="every act is one of a person whom the service knows",
                instead="send Authorization: Bearer dm_…; `dualmandate keys make` makes a key, which is shown once",
            )
        request.state.caller = caller
        worker.requests.take(caller.identifier)
        if caller.role not in self.roles:
            raise NotAllowed(
                f"a request that the role {caller.role} may not make",
                why=f"it is for {' and '.join(sorted(self.roles))}",
                instead="use a key of such a role, or ask somebody who has one",
            )
        return Call(worker, caller, request.headers.get("accept", ""))


ANALYST, CURATOR, AUDITOR, ADMINISTRATOR = AccessRole
Anyone = Annotated[Call, Depends(Allowed(*AccessRole))]
Follows = Annotated[Call, Depends(Allowed(*AccessRole, linked=True))]
Asks = Annotated[Call, Depends(Allowed(ANALYST))]
Prices = Annotated[Call, Depends(Allowed(ANALYST, CURATOR))]
Reads = Annotated[Call, Depends(Allowed(ANALYST, CURATOR, AUDITOR))]
Decides = Annotated[Call, Depends(Allowed(CURATOR))]
Oversees = Annotated[Call, Depends(Allowed(CURATOR, AUDITOR))]
Watches = Annotated[Call, Depends(Allowed(AUDITOR, ADMINISTRATOR))]
Administers = Annotated[Call, Depends(Allowed(ADMINISTRATOR))]


def replied(document: DocumentModel, status: int = 200) -> KeptReply:
    """A document as a reply."""
    content = document.model_dump_json(by_alias=True, exclude_unset=True)
    return KeptReply(status, JSON, content.encode())


def rows_replied(columns: Sequence[str], rows: Iterable[Sequence[Any]], status: int = 200) -> KeptReply:
    """Rows as CSV; nothing stands for what is not there, as R and spreadsheets have it."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows([["" if cell is None else cell for cell in row] for row in rows])
    return KeptReply(status, f"{CSV}; charset=utf-8", text.getvalue().encode())


def sent(reply: KeptReply) -> Response:
    """A reply on its way."""
    return Response(reply.body, reply.status, media_type=reply.media_type)
