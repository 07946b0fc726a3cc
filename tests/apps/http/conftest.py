"""A small town that is served: its program, its records, its account, and a key for each role."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from dualmandate.apps.http.app import app_of
from dualmandate.apps.http.calls import Worker
from dualmandate.apps.http.keys import AccessRole
from dualmandate.apps.http.service import Service, ServiceSettings
from dualmandate.ledger import Account, AccountLimit, Earmark, Ledger, Scope, make_key, open_ledger
from dualmandate.population import PrivacyLoss

CANARY = "Xanthippe-4711"
PROGRAM = f"""
[program]
schema = 1
name   = "town"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = {{ value = 1000, unit = "person", source = "register" }}
one_record_per_unit = {{ source = "the register" }}
source          = "people-{CANARY}.csv"

[population.attributes]
ward   = ["north", "south"]
age    = {{ from = 0, to = 9 }}
income = {{ lower = 0, upper = 100, grid = 1 }}

[[workload]]
name              = "residents by ward"
by                = ["ward"]
value_of_accuracy = {{ value = 0.4, unit = "USD per person^2", source = "example" }}

[mechanism]
noise = "geometric"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 0.1, unit = "USD per person per epsilon", source = "example" }}
"""
COUNT = "SELECT COUNT(*) FROM records WHERE age > 4"
WARDS = "SELECT ward, COUNT(*) FROM records GROUP BY ward"
NAMES = {"analyst": "Ann", "curator": "Cem", "auditor": "Ada", "administrator": "Ben"}


def put_project(folder: Path, ledger: str | None = None, *, cap: str = "1", user: str | None = "1/2") -> Ledger:
    """The town in a folder, with its account; in another database where one is named."""
    state = folder / ".dualmandate"
    named = "" if ledger is None else f'ledger = "{ledger}"\n'
    (folder / "dualmandate.toml").write_text(f"schema = 1\n{named}", encoding="utf-8")
    (folder / "program.toml").write_text(PROGRAM, encoding="utf-8")
    rows = (f"{'north' if k % 3 else 'south'},{k % 10},{k % 101}\n" for k in range(1000))
    text = "ward,age,income\n" + "".join(rows) + f"{CANARY},{CANARY},{CANARY}\n"
    (folder / f"people-{CANARY}.csv").write_text(text, encoding="utf-8")
    key = make_key(state / "key")
    books = open_ledger(ledger or state / "ledger.sqlite", key, folder=state, create=True)
    limits = () if user is None else (AccountLimit(Scope.USER, user),)  # type: ignore[arg-type]
    reserve = (Earmark("thesis", "1/10"),) if user is not None else ()  # type: ignore[arg-type]
    books.open_account(Account("residents", "person", PrivacyLoss.pure(cap), limits, reserve), by="Ben")
    return books


@dataclass(frozen=True, eq=False)
class Served:
    """A service that listens on loopback, and a caller for each role."""

    folder: Path
    app: FastAPI
    client: httpx.Client
    secrets: dict[str, str]
    stop: Callable[[], None]

    @property
    def worker(self) -> Worker:
        found = self.app.state.worker
        assert isinstance(found, Worker)
        return found

    @property
    def service(self) -> Service:
        return self.worker.service

    def call(self, role: str | None, method: str, path: str, **sent: Any) -> httpx.Response:
        key = {} if role is None else {"Authorization": f"Bearer {self.secrets[role]}"}
        return self.client.request(method, path, headers={**sent.pop("headers", {}), **key}, **sent)

    def ask(self, query: object, role: str = "analyst", **stated: Any) -> httpx.Response:
        headers = stated.pop("headers", {})
        body = {"query": query, "spend": "0.1", **stated}
        return self.call(role, "POST", "/v1/programs/town/answers", json=body, headers=headers)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    put_project(tmp_path)
    with serving(tmp_path) as found:
        yield found


@contextmanager
def serving(folder: Path, **settings: Any) -> Iterator[Served]:
    """The service of a folder, in a thread of this process, on a port that is free."""
    app = app_of(ServiceSettings(folder, **settings))
    ring = app.state.worker.service.keys
    made = {
        role.value: ring.make(NAMES[role.value], role, by="Ben", purposes=("thesis",) if role == "analyst" else ())[1]
        for role in AccessRole
    }
    made["other"] = ring.make("Bea", AccessRole.ANALYST, by="Ben", group="A")[1]
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    heard = socket.socket()
    heard.bind(("127.0.0.1", 0))
    heard.listen()  # whoever connects before the server runs waits for it
    thread = threading.Thread(target=server.run, kwargs={"sockets": [heard]})
    thread.start()

    def stop() -> None:
        server.should_exit = True
        thread.join()

    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{heard.getsockname()[1]}", timeout=600) as client:
            yield Served(folder, app, client, made, stop)
    finally:
        stop()
        heard.close()
