"""A thin client: one method a request. What the service refuses is raised here as the refusal that it is there.

A question that is sent again costs nothing: the service knows it by what it asks, and its reply by a key that is made
for each call. So a lost connection, a busy service and a question that takes longer than a request are tried again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx

from dualmandate.errors import InvalidRequest, LedgerUnavailable, Place, Refusal, StillWorking, TooManyRequests

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

AGAIN = (LedgerUnavailable, StillWorking, TooManyRequests)  # refusals that pass by waiting
LOCAL = {"localhost", "127.0.0.1", "::1"}


@dataclass(frozen=True)
class ServedAnswer:
    """An answer as the service told it (`answer/1`), with its rows as a table."""

    document: Mapping[str, Any]

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Labels, value, standard error and interval of each number."""
        found: Sequence[Mapping[str, Any]] = self.document["rows"]
        return found

    @property
    def release(self) -> str:
        """What the answer is in the ledger."""
        return str(self.document["release"])

    @property
    def spent(self) -> str | None:
        """What this asking cost, exactly; None where it was answered before."""
        spent = self.document.get("spent")
        return None if spent is None else str(spent["exact"])

    @property
    def remaining(self) -> str:
        """What the asker may still spend, exactly, in the account's currency."""
        return str(self.document["remaining"]["exact"])

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table: a column for each attribute, then value, standard_error, lower and upper."""
        import pyarrow as pa

        columns = {
            name: [row["labels"][place] for row in self.rows] for place, name in enumerate(self.document["columns"])
        }
        numbers = {key: [row[key] for row in self.rows] for key in ("value", "standard_error", "lower", "upper")}
        return pa.table({**columns, **numbers})

    def pandas(self) -> pd.DataFrame:
        """The rows as a data frame; needs pandas."""
        return self.arrow().to_pandas()


class Client:
    """A service at an address, for the holder of a key.

    `patience` is how long, in seconds, a busy service is asked again.
    """

    def __init__(
        self, address: str, key: str, *, patience: float = 300.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        url = httpx.URL(address)
        if url.scheme != "https" and url.host not in LOCAL:
            raise InvalidRequest(
                "to send a key over the network in the clear",
                why="whoever listens on the way could ask with it",
                instead="use an address that begins with https://",
            )
        self._patience = patience
        headers = {"Authorization": f"Bearer {key}"}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=120.0, transport=transport)

    def __repr__(self) -> str:
        return f"Client('{self._http.base_url}')"  # and not its key

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()

    def me(self) -> dict[str, Any]:
        """Whose key this is."""
        return self._sent("GET", "/v1/me")

    def programs(self) -> list[dict[str, Any]]:
        """What may be asked about."""
        return list(self._sent("GET", "/v1/programs")["programs"])

    def program(self, name: str) -> dict[str, Any]:
        """What a program declares: attributes, levels and groupings."""
        return self._sent("GET", _path("programs", name))

    def price(self, program: str, query: str | Mapping[str, Any], **stated: Any) -> dict[str, Any]:
        """What a question costs and how accurate it is; free. State one of `spend` and `within`, as in `ask`."""
        return self._sent("POST", _path("programs", program, "prices"), {"query": query, **_texts(stated)})

    def ask(self, program: str, query: str | Mapping[str, Any], **stated: Any) -> ServedAnswer:
        """Ask: `spend="0.1"`, or `within="2%"` with `of=`; further `probability`, `records`, `together`, `purpose`."""
        body = {"query": query, **_texts(stated)}
        return ServedAnswer(self._sent("POST", _path("programs", program, "answers"), body, once=True))

    def answer(self, program: str, release: str, *, probability: str = "0.95") -> ServedAnswer:
        """An answer that somebody was given, by its name in the history; free."""
        path = _path("programs", program, "answers", release)
        return ServedAnswer(self._sent("GET", path, query={"probability": probability}))

    def history(self, **only: str) -> list[dict[str, Any]]:
        """Who spent what when on what; `account` and `user` narrow it."""
        return list(self._sent("GET", "/v1/history", query=only)["asked"])

    def budget(self, account: str, **of: str) -> dict[str, Any]:
        """What may still be spent, under every cap that applies."""
        return self._sent("GET", _path("budget", account), query=of)

    def request_more(
        self, account: str, amount: str, *, reason: str, scope: str = "user", name: str | None = None
    ) -> int:
        """Ask that a limit be raised; the number of the request."""
        body = {"account": account, "amount": str(amount), "reason": reason, "scope": scope, "name": name}
        return int(self._sent("POST", "/v1/requests", body, once=True)["number"])

    def requests(self) -> list[dict[str, Any]]:
        """Requests for more, each with its decision."""
        return list(self._sent("GET", "/v1/requests")["requests"])

    def decide(self, number: int, *, grant: str | None, reason: str) -> dict[str, Any]:
        """Grant a request, or a part of it; None refuses."""
        return self._sent("POST", _path("requests", str(number), "decision"), {"grant": grant, "reason": reason})

    def _sent(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        once: bool = False,
        query: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        headers = {"Idempotency-Key": str(uuid.uuid4())} if once else {}
        safe = once or method == "GET" or path.endswith("/prices")  # to be sent again
        for wait in (*self._waits(), None):
            try:
                reply = self._http.request(method, path, json=body, params=query, headers=headers)
                found = _read(reply)
            except (httpx.TransportError, *AGAIN) as error:
                if wait is None or not safe:
                    if isinstance(error, Refusal):
                        raise
                    raise LedgerUnavailable(
                        f"the service at {self._http.base_url} does not answer",
                        why="it is not there, or the connection to it was lost",
                        instead="see that it runs; what was asked may be asked again: it is spent once",
                    ) from None
                time.sleep(wait)
            else:
                return found
        raise AssertionError("the last try returns or raises")

    def _waits(self) -> Iterator[float]:
        """Seconds between tries: longer each time, as long as patience lasts."""
        wait, left = 0.2, self._patience
        while left > 0:
            yield min(wait, left)
            wait, left = min(2 * wait, 10.0), left - wait


def _path(*parts: str) -> str:
    from urllib.parse import quote

    return "/v1/" + "/".join(quote(part, safe="") for part in parts)


def _texts(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers as they are written: what is sent is exact."""
    return {
        key: value if isinstance(value, bool | str) else str(value)
        for key, value in stated.items()
        if value is not None
    }


def _read(reply: httpx.Response) -> dict[str, Any]:
    """The document of a reply, or the refusal that it is."""
    try:
        document = reply.json()
    except ValueError:
        document = {}
    if reply.is_success and isinstance(document, dict):
        return document
    raise _refusal(document if isinstance(document, dict) else {}, reply.status_code)


def _refusal(document: Mapping[str, Any], status: int) -> Refusal:
    if document.get("schema") != "refusal/1":
        return LedgerUnavailable(
            f"a reply with status {status} that is not one of the service",
            why="something else answers at this address, such as a proxy",
            instead="see that the address is that of the service",
        )
    place = Place(**document["where"])
    said = {key: str(document[key]) for key in ("why", "instead")}
    return _kinds(Refusal).get(str(document["code"]), Refusal)(str(document["what"]), **said, where=place)


def _kinds(root: type[Refusal]) -> dict[str, type[Refusal]]:
    """Every refusal of the tree, by its code."""
    return {root.code: root} | {code: kind for each in root.__subclasses__() for code, kind in _kinds(each).items()}
