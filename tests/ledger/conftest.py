"""A ledger in an empty folder, and a PostgreSQL server of the tests' own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

from dualmandate.ledger import Account, Approval, Ledger, LedgerKey, make_key, open_ledger
from dualmandate.population import PrivacyLoss
from system_parts import postgres_program

PLAN = "a1" * 32


@pytest.fixture
def key(tmp_path: Path) -> LedgerKey:
    return make_key(tmp_path / "state" / "key")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.sqlite"


@pytest.fixture
def empty(place: Path, key: LedgerKey) -> Ledger:
    """A new ledger without accounts."""
    return open_ledger(place, key, create=True)


@pytest.fixture
def ledger(empty: Ledger) -> Ledger:
    """An account of 5 ε for school children, with one plan of 1/3 ε approved by Ann."""
    empty.open_account(Account("school children", "child", PrivacyLoss.pure(5)), by="Ann")
    empty.approve(Approval("school children", PLAN, PrivacyLoss.pure("1/3"), "child", by="Ann"))
    return empty


def _as_postgres(words: Sequence[str | Path]) -> list[str]:
    """PostgreSQL refuses to run as root."""
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    return [*prefix, *(str(word) for word in words)]


def _stop(data: Path) -> None:
    pid_file = data / "postmaster.pid"
    if not pid_file.exists():
        return
    os.kill(int(pid_file.read_text().splitlines()[0]), signal.SIGQUIT)  # at once: its folder goes too
    for _ in range(200):
        if not pid_file.exists():
            return
        time.sleep(0.05)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Path]:
    """The socket's folder of a server that lives as long as the test session, and listens on nothing else."""
    initdb, server_control = postgres_program("initdb"), postgres_program("pg_ctl")
    assert initdb is not None
    server_control = server_control or initdb.with_name("pg_ctl")
    folder = Path(tempfile.mkdtemp(prefix="dualmandate-postgres-"))
    data = folder / "data"
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        options = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        make = _as_postgres([initdb, *options, "-D", data])
        subprocess.run(make, cwd=folder, check=True, capture_output=True)
        settings = f"-c listen_addresses= -c unix_socket_directories={folder} -c fsync=off"
        start = _as_postgres([server_control, "start", "-w", "-D", data, "-l", folder / "log", "-o", settings])
        subprocess.run(start, cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        yield folder
    finally:
        _stop(data)
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def postgres_url(postgres_server: Path, request: pytest.FixtureRequest) -> str:
    """An empty database of its own for each test."""
    name = f"ledger_{abs(hash(request.node.nodeid))}"
    with psycopg.connect(host=str(postgres_server), user="postgres", autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return f"postgresql://postgres@/{name}?host={postgres_server}"
