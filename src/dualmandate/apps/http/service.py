"""A project as the service holds it: its programs, their records, one ledger, and what is left for whom.

Nothing here knows of HTTP. A worker process has one `Service`; the ledger, the folder of answers and the keys are what
workers share.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from dualmandate.apps.ask import ANSWERS
from dualmandate.apps.check import checked_program
from dualmandate.apps.http.keys import KEYS_FILE, AccessRole, ApiKey, KeyRing
from dualmandate.apps.ledgers import LedgerFiles, find_ledger, named_account
from dualmandate.apps.output import Output
from dualmandate.apps.publish import RELEASES
from dualmandate.apps.settings import PROJECT_FILE, project_folder
from dualmandate.errors import InvalidFile, MissingKey, NotAllowed, Place, Refusal, UnknownName, did_you_mean
from dualmandate.inquiry import Asker, Inquirer
from dualmandate.ledger import Ledger, ReleaseEntry, Scope
from dualmandate.ledger.forecast import Forecast, forecast
from dualmandate.program import ProgramFile
from dualmandate.report.documents.service import AskedPart, BudgetDocument, BudgetPart, ForecastDocument

LARGEST_PROGRAM = 2**22  # bytes of a file that is looked into
MOST_SHOWN = 1000  # of a history


@dataclass(frozen=True)
class ServiceSettings:
    """What a service serves, and within which limits."""

    folder: Path
    ledger: str | None = None
    snapshot: str | None = None  # the state that the records are in; else what their source is called
    requests_a_minute: int = 600  # of each key, over all workers
    largest_request: int = 65_536  # bytes
    seconds: float = 60.0  # that a request may take
    hosts: tuple[str, ...] = ()  # by which it may be called, beside those of this machine
    workers: int = 1


@dataclass(frozen=True, eq=False)
class ServedProgram:
    """A program of the project, and who answers questions to its records."""

    program: ProgramFile
    file: str  # where it stands in the project
    inquirer: Inquirer
    folder: Path

    @property
    def why_not(self) -> str | None:
        """Why no question to its records is answered; None where they are."""
        program = self.program
        if program.source is None:
            return "the program names no source of records"
        if program.seen_in_the_data:
            return f"the program took {', '.join(program.seen_in_the_data[:4])} from the records"
        ledger = self.inquirer.ledger
        if ledger is None or program.account not in {each.name for each in ledger.accounts()}:
            return f"nobody has opened the account '{program.account}'"
        return None

    def check_source(self) -> None:
        """Refuse questions to a program without records."""
        if self.program.source is None:
            raise MissingKey(
                "the program names no source",
                why="an answer is counted from records, and the program says where these lie",
                instead="ask a program that does; a price needs no records",
                where=Place(file=self.file, key="population.source"),
            )


class Service:
    """Everything that a worker needs to answer."""

    def __init__(self, settings: ServiceSettings) -> None:
        folder = project_folder(settings.folder)
        if folder is None:
            raise InvalidFile(
                f"'{settings.folder}' lies in no project",
                why=f"a service serves a project: the nearest folder upward with {PROJECT_FILE}",
                instead="name a folder of a project, or begin one with `dualmandate init`",
                where=Place(file=str(settings.folder)),
            )
        self.settings, self.folder = settings, folder
        self.files: LedgerFiles = find_ledger(folder, settings.ledger)
        self.ledger: Ledger = self.files.open()
        self.keys = KeyRing(self.files.folder / KEYS_FILE)
        self._asked: dict[str, tuple[str, dict[str, object]]] = {}  # question by answer: neither changes
        self.programs  # noqa: B018 - a worker that is ready has read them

    @cached_property
    def _read(self) -> tuple[dict[str, ServedProgram], dict[str, Refusal]]:
        served: dict[str, ServedProgram] = {}
        refused: dict[str, Refusal] = {}
        with Output(json=True).progress("reading programs") as progress:
            for path in _program_files(self.folder):
                file = path.relative_to(self.folder).as_posix()
                try:
                    program, _ = checked_program(path, progress)
                    if program.name in served:
                        raise InvalidFile(
                            f"a second program called '{program.name}'",
                            why=f"'{served[program.name].file}' has this name, and questions are sent to a name",
                            instead="give it a name of its own",
                        )
                except Refusal as refusal:
                    refused[file] = refusal
                    continue
                inquirer = Inquirer(
                    program, self.ledger, program.source, path.parent / ANSWERS, snapshot=self.settings.snapshot
                )
                served[program.name] = ServedProgram(program, file, inquirer, path.parent)
        return served, refused

    @property
    def programs(self) -> Mapping[str, ServedProgram]:
        """The programs that can be used, by name."""
        return self._read[0]

    @property
    def refused(self) -> Mapping[str, Refusal]:
        """Program files that cannot, and why, by where they stand."""
        return self._read[1]

    def program(self, name: str) -> ServedProgram:
        """A program by its name."""
        if name not in self.programs:
            raise UnknownName(
                "there is no such program",
                why=f"this project has {', '.join(map(repr, self.programs)) or 'none'}",
                instead=did_you_mean(name, self.programs, "name one of them"),
            )
        return self.programs[name]

    def asker(self, caller: ApiKey, purpose: str | None, served: ServedProgram) -> Asker:
        """Who asks: always the holder of the key, for a purpose that the key may spend for."""
        if purpose is not None and purpose not in caller.purposes:
            raise NotAllowed(
                "a purpose that this key does not spend for",
                why="what is kept for a purpose is kept from everybody else",
                instead=f"name one of {', '.join(caller.purposes)}"
                if caller.purposes
                else "name none, or ask an administrator for a key with the purpose",
            )
        return Asker(caller.name, caller.group, purpose, folders=(served.folder / RELEASES,))

    def history(self, caller: ApiKey, *, account: str | None = None, user: str | None = None) -> tuple[AskedPart, ...]:
        """Who spent what when on what, the newest first; an analyst sees their own."""
        if caller.role is AccessRole.ANALYST:
            user = caller.name
        found = [each for each in self.ledger.releases(account) if user in (None, each.user)]
        return tuple(self._part(each) for each in reversed(found[-MOST_SHOWN:]))

    def _part(self, entry: ReleaseEntry) -> AskedPart:
        program, question = self.question(entry.name) or (None, None)
        return AskedPart.made_of(entry, release=entry.name, program=program, question=question)

    def question(self, release: str) -> tuple[str, dict[str, object]] | None:
        """The program and the canonical question of a kept answer; None for what is no answer."""
        if release not in self._asked:
            for name, served in self.programs.items():
                question = served.inquirer.asked(release)
                if question is not None:
                    self._asked[release] = name, question.canonical
        return self._asked.get(release)

    def budget(self, account: str, *, user: str, group: str | None, purpose: str | None) -> BudgetDocument:
        """What somebody may still spend, under every cap that applies."""
        found = named_account(self.ledger, account)
        named = {Scope.USER: user, Scope.GROUP: group, Scope.PURPOSE: purpose}
        parts = {scope: name for scope, name in named.items() if name is not None}
        room = self.ledger.limits(account, parts)
        return BudgetDocument.made_of(
            found,
            label="internal",
            account=account,
            cap=found.cap.amount,
            spent=self.ledger.spent(account),
            user=user,
            group=group,
            purpose=purpose,
            spent_by_user=self.ledger.spent(account, Scope.USER, user),
            parts=[BudgetPart.made_of(cap=cap, left=max(left, 0 * left)) for cap, left in room.items()],
            remaining=max(min(room.values()), 0 * found.cap.amount),
        )

    def forecast(self, account: str, days: int) -> ForecastDocument:
        """When an account ends at the pace of the last days."""
        found = named_account(self.ledger, account)
        told: Forecast = forecast(self.ledger.events(account), account, self.ledger.remaining(account), days=days)
        ends = None if told.ends_at is None else told.ends_at.isoformat(timespec="seconds")
        words = told.words(str(found.privacy_measure))
        return ForecastDocument.made_of(told, found, ends_at=ends, words=words)


def _program_files(folder: Path) -> Iterator[Path]:
    """Files of the project that say that they are programs: not hidden, no links, none inside a release."""
    for path in sorted(folder.rglob("*.toml")):
        inside = path.relative_to(folder).parts
        if path.name == PROJECT_FILE or path.is_symlink() or not path.is_file() or RELEASES in inside:
            continue
        if not any(part.startswith(".") for part in inside) and _says_program(path):
            yield path


def _says_program(path: Path) -> bool:
    """Whether a file has the table of a program; one that cannot be read has none."""
    try:
        text = path.read_text("utf-8") if path.stat().st_size <= LARGEST_PROGRAM else ""
    except (OSError, ValueError):
        return False
    return any(line.strip().replace(" ", "") == "[program]" for line in text.splitlines())


def told_outside(refusal: Refusal, folder: Path) -> dict[str, object]:
    """A refusal as it is told to others: without where on this machine the project lies."""
    told = refusal.document()
    said = {key: _without(str(told[key]), folder) for key in ("what", "why", "instead")}
    place = refusal.where or Place()
    file = None if place.file is None else _without(place.file, folder)
    if file is not None and Path(file).is_absolute():
        file = Path(file).name
    return {**told, **said, "where": {"file": file, "line": place.line, "key": place.key}}


def _without(words: str, folder: Path) -> str:
    return words.replace(f"{folder.as_posix()}/", "").replace(folder.as_posix(), "the project")
