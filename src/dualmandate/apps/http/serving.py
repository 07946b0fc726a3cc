"""`dualmandate serve` and `dualmandate keys`: listen, on this machine unless more is said, and who may come in."""

from __future__ import annotations

import ipaddress
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from uvicorn.supervisors import Multiprocess

from dualmandate.apps.http.app import app_of
from dualmandate.apps.http.keys import KEYS_FILE, AccessRole, ApiKey, KeyRing, role_named
from dualmandate.apps.http.service import Service, ServiceSettings
from dualmandate.apps.http.watching import SHARED
from dualmandate.apps.ledgers import find_ledger, number, person
from dualmandate.apps.options import ServeFlags
from dualmandate.apps.output import Output
from dualmandate.errors import CannotWrite, InvalidRequest, Place
from dualmandate.report.documents.service import ApiKeyDocument, ApiKeyPart, ApiKeysDocument, ServingDocument

GRACE = 120  # seconds that a worker has to finish what has begun
HUNG = 120  # seconds after which a worker that does not stir is replaced; on a busy machine it starts slowly


@dataclass(frozen=True)
class ServingNotice:
    """Where a service listens, and what it serves."""

    address: str
    project: str
    programs: tuple[str, ...]
    refused: tuple[str, ...]
    workers: int

    def words(self) -> str:
        lines = [
            f"serving '{self.project}' on {self.address} ({self.workers} worker{'' if self.workers == 1 else 's'})",
            f"programs: {', '.join(self.programs) or 'none'}",
            *(f"not served: {file} cannot be used; `dualmandate plan {file}` says why" for file in self.refused),
            "Ctrl+C stops it, and finishes what has begun",
        ]
        return "\n".join(lines)

    def document(self) -> dict[str, object]:
        return ServingDocument.made_of(self).as_json()


def serve(typed: ServeFlags, output: Output) -> None:
    """Listen until somebody says stop."""
    if typed.workers < 1:
        raise InvalidRequest("no worker", why="somebody has to answer", instead="state --workers 1 or more")
    _check_listening(typed)
    settings = ServiceSettings(
        typed.folder.absolute(),
        typed.ledger,
        typed.snapshot,
        requests_a_minute=typed.requests_a_minute,
        seconds=float(number(typed.seconds, "a number of seconds")),
        hosts=(typed.host.lower(), *(name.lower() for name in typed.host_name or ())),
        workers=typed.workers,
    )
    service = Service(settings)  # refuses what no worker could serve, before anybody listens
    _first_key(service.keys, output)
    config = uvicorn.Config(
        partial(app_of, settings),
        factory=True,
        host=typed.host,
        port=typed.port,
        workers=typed.workers,
        log_config=None,
        access_log=False,  # the log of the service itself says it, without paths
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_worker_healthcheck=HUNG,
        ssl_certfile=typed.certificate,
        ssl_keyfile=typed.private_key,
        h11_max_incomplete_event_size=65_536,
    )
    with _listening(typed) as heard, _numbers_shared(typed.workers):
        address = _address(typed, heard)
        about = service.folder.resolve().name, tuple(service.programs), tuple(service.refused), typed.workers
        output.tell(ServingNotice(address, *about))
        for stopping in (signal.SIGINT, signal.SIGTERM):
            signal.signal(stopping, lambda *_: None)  # uvicorn finishes, then raises it again: no failure, and no bug
        if typed.workers == 1:
            uvicorn.Server(config).run(sockets=[heard])
        else:
            Multiprocess(config, sockets=[heard]).run()


def _check_listening(typed: ServeFlags) -> None:
    """Refuse to listen where keys and answers would travel in the clear, unless it is said that they do not."""
    if (typed.certificate is None) != (typed.private_key is None):
        raise InvalidRequest(
            "half of what TLS needs",
            why="a certificate is of use with its private key, and the other way round",
            instead="state both: --certificate FILE --private-key FILE",
        )
    for file in (typed.certificate, typed.private_key):
        if file is not None and not file.is_file():
            raise InvalidRequest(
                f"there is no file '{file}'", why="TLS needs it", instead="name the file", where=Place(file=str(file))
            )
    if typed.certificate is None and not typed.behind_proxy and not _is_loopback(typed.host):
        raise InvalidRequest(
            f"to listen on '{typed.host}' without TLS",
            why="keys and answers would travel over the network for everybody to read",
            instead="state --certificate and --private-key; or --behind-proxy, where a proxy keeps TLS before this "
            "machine",
        )


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@contextmanager
def _listening(typed: ServeFlags) -> Iterator[socket.socket]:
    """The socket that all workers share."""
    host = typed.host.strip("[]")
    heard = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        heard.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            heard.bind((host, typed.port))
        except (OSError, OverflowError):
            raise InvalidRequest(
                f"nobody can listen on {typed.host}, port {typed.port}",
                why="another program listens there, or this machine has no such address",
                instead="name another one: --port 8001",
            ) from None
        heard.set_inheritable(True)
        yield heard
    finally:
        heard.close()


def _address(typed: ServeFlags, heard: socket.socket) -> str:
    port = heard.getsockname()[1]
    host = f"[{typed.host.strip('[]')}]" if ":" in typed.host else typed.host
    return f"{'http' if typed.certificate is None else 'https'}://{host}:{port}"


@contextmanager
def _numbers_shared(workers: int) -> Iterator[None]:
    """A folder in which workers add up what they count, where there are several."""
    if workers == 1:
        yield
        return
    folder = tempfile.mkdtemp(prefix="dualmandate-metrics-")
    os.environ[SHARED] = folder
    try:
        yield
    finally:
        del os.environ[SHARED]
        shutil.rmtree(folder, ignore_errors=True)


def _first_key(keys: KeyRing, output: Output) -> None:
    """A key for whoever starts a service that nobody could enter; shown once, and on a terminal alone."""
    if any(each.revoked_at is None for each in keys.all()):
        return
    if output.json or not sys.stdout.isatty():
        raise InvalidRequest(
            "a service that nobody has a key to",
            why="the first key is shown on a terminal, never written into a log",
            instead="make it: dualmandate keys make NAME --role administrator",
        )
    made, secret = keys.make(person(None), AccessRole.ADMINISTRATOR, by=person(None))
    output.tell(KeyNotice(made, secret))


def key_ring(folder: Path, ledger: str | None) -> KeyRing:
    """The keys of the service of a project."""
    return KeyRing(find_ledger(folder, ledger).folder / KEYS_FILE)


@dataclass(frozen=True)
class KeyNotice:
    """A key that was just made, or revoked."""

    key: ApiKey
    secret: str | None = None

    def words(self) -> str:
        key = self.key
        if self.secret is None:
            return f"revoked: key {key.identifier} of {key.name} ({key.role}) opens nothing from now on"
        spends = "".join(
            [f", group {key.group}" if key.group else "", f", for {', '.join(key.purposes)}" if key.purposes else ""]
        )
        return (
            f"key {key.identifier} of {key.name} ({key.role}{spends}). It is shown this once:\n\n  {self.secret}\n\n"
            "sent as `Authorization: Bearer …`; revoked by "
            f"`dualmandate keys revoke {key.identifier}`"
        )

    def document(self) -> dict[str, object]:
        return ApiKeyDocument.made_of(self.key, secret=self.secret).as_json()


@dataclass(frozen=True)
class KeysNotice:
    """Every key of a service, without secrets."""

    keys: tuple[ApiKey, ...]

    def words(self) -> str:
        lines = [
            f"{key.identifier}  {key.role}  {key.name}"
            + (f"  group {key.group}" if key.group else "")
            + (f"  for {', '.join(key.purposes)}" if key.purposes else "")
            + f"  made {key.made_at[:10]} by {key.made_by}"
            + (f"  revoked {key.revoked_at[:10]}" if key.revoked_at else "")
            for key in self.keys
        ]
        return "\n".join(lines) or "no keys yet: dualmandate keys make NAME --role administrator"

    def document(self) -> dict[str, object]:
        return ApiKeysDocument.made_of(keys=[ApiKeyPart.made_of(key) for key in self.keys]).as_json()


def make_key(
    name: str, role: str, *, by: str | None, group: str | None, purposes: tuple[str, ...], ledger: str | None
) -> KeyNotice:
    """`dualmandate keys make`."""
    ring = key_ring(Path.cwd(), ledger)
    try:
        made, secret = ring.make(name, role_named(role), by=person(by), group=group, purposes=purposes)
    except OSError as error:
        raise CannotWrite.because(error, ring.path) from None
    return KeyNotice(made, secret)
