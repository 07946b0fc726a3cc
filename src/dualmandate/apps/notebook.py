"""What stands at the root of the package for a notebook or a script: load, plan, look, save, approve, publish.

Rooms import only those above them, so that a plan made in `planning` can be neither drawn nor approved there. Here, in
the room of the doors, a program and a plan gain what needs the others; they stay what they are everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from dualmandate.errors import InvalidRequest, LedgerUnavailable, UnknownName, did_you_mean
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import Program
from dualmandate.planning.program import load as read_program
from dualmandate.population.arguments import checked_call, checked_class, expected, unexpected
from dualmandate.publication import CsvFile, DatabaseTable, Frame, ParquetFile, SparkTable, StatisticalFile, source_file

if TYPE_CHECKING:
    from dualmandate.apps.ledgers import ApprovalNotice
    from dualmandate.ledger import Ledger
    from dualmandate.publication import Source
    from dualmandate.publication.checking import CheckReport
    from dualmandate.publication.release import Release
    from dualmandate.report.figures import Figure

Told = Callable[[str], None]
SOURCES = (ParquetFile, CsvFile, StatisticalFile, DatabaseTable, SparkTable, Frame)
A_PLAN = 'make one: load("program.toml").plan()'


@checked_class
@dataclass(frozen=True, init=False, eq=False, repr=False)
class NotebookProgram(Program):
    """What a program file says, as the rooms of the house understand it. All of it is public."""

    def plan(
        self,
        remaining: Fraction | float | None = None,
        *,
        ledger: Ledger | str | Path | None = None,
        progress: Told | None = None,
    ) -> NotebookPlan:
        """The privacy loss to choose and why, from public numbers alone.

        With a `ledger` (a Ledger, a path or a URL), what the program's account has left limits the choice, and the plan
        is made for that account. Instead, `remaining` states what is left. `progress` is told what is being done.
        """
        if ledger is None:
            if isinstance(remaining, str | bytes) or not isinstance(remaining, int | float | Fraction | None):
                raise unexpected(remaining, what="a number", instead="state remaining=2.5, or name a ledger")
            return _in_hand(Program.plan(self, remaining, progress=progress))
        if remaining is not None:
            raise InvalidRequest(
                "a ledger, and a remaining loss beside it",
                why="the ledger says what is left",
                instead="name the ledger, or state what is left",
            )
        from dualmandate.apps.ledgers import room_for

        books = open_ledger(ledger)
        room = room_for(self, books)
        made = Program.plan(self, room.remaining, progress=progress)
        room.check(made)
        return _in_hand(replace(made, account_identifier=books.account_identifier(room.account.name)))


@checked_class
@dataclass(frozen=True, init=False, eq=False, repr=False)
class NotebookPlan(Plan):
    """What a program should publish, at which privacy loss, and why; with its pictures, its files and its approval."""

    @cached_property
    def _figures(self) -> dict[str, Figure]:
        from dualmandate.report.dossier import plan_figures
        from dualmandate.report.figures import what_if_choices

        grid = what_if_choices(self.frontier, self.welfare, self.limits)
        return {figure.name: figure for figure in plan_figures(self, grid)}

    @property
    def figures(self) -> tuple[str, ...]:
        """The names of its pictures."""
        return tuple(self._figures)

    def figure(self, name: str) -> Figure:
        """One of its pictures, with the table behind it: `plan.figure("tangency")`."""
        if name == "tangency":  # the one that everybody asks for, without the choices under other weights
            from dualmandate.report.figures import tangency

            return tangency(self.frontier, self.welfare, self.choice, limits=self.limits)
        known = self._figures
        if not isinstance(name, str) or name not in known:
            names = ", ".join(known)
            raise UnknownName(
                f"no figure {name!r}" if isinstance(name, str) else f"no figure of the type {type(name).__name__}",
                why=f"the figures of this plan are {names}",
                instead=did_you_mean(str(name), known, "name one of them"),
            )
        return known[name]

    def save(self, folder: str | Path, *, progress: Told | None = None) -> Path:
        """Write plan.json, what it measures and the dossier, as `plan --out` does; the path of plan.json."""
        from dualmandate.apps.folder import check_writable
        from dualmandate.apps.next_step import PLAN_FILE
        from dualmandate.apps.plan import write
        from dualmandate.report.documents.plan import plan_document

        place = Path(_path(folder, "a folder", 'name one: plan.save("report")'))
        check_writable(place)
        write(self, plan_document(self), place, _Quiet(progress))
        return place / PLAN_FILE

    def approve(
        self, ledger: Ledger | str | Path, *, by: str, sign: str | Path | None = None, seen: bool = False
    ) -> ApprovalNotice:
        """Record one person's word for this plan in a ledger: by its digest, at exactly its loss.

        `by` is who approves; `sign` is their ssh key, where approvals are to be signed. `seen` accepts what the program
        marks as seen in the data, which is recorded and published.
        """
        from dualmandate.apps.ledgers import record_approval
        from dualmandate.ledger import Approval
        from dualmandate.planning.release_spec import saved

        stated = saved(self)
        stated.check_publishable()
        stated.check_seen(accepted=seen)
        population, books = self.program.file.population, open_ledger(ledger)
        marked = stated.seen_in_the_data
        approval = Approval(population.account, self.digest, self.charge, population.unit, by, seen_in_the_data=marked)
        key = None if sign is None else Path(_path(sign, "the file of a key", 'name it: sign="~/.ssh/id_ed25519"'))
        return record_approval(
            books, approval, program=self.program.name, account_identifier=self.account_identifier, sign=key
        )

    def _repr_html_(self) -> str:
        """What a notebook shows: the choice in words, the picture, and what it means for each table."""
        from dualmandate.report.plan_html import plan_html

        return plan_html(self, self.figure("tangency"))


def _in_hand(plan: Plan) -> NotebookPlan:
    own = {field.name: getattr(plan, field.name) for field in fields(Plan)}
    return NotebookPlan(**(own | {"program": _with_doors(plan.program)}))


def _with_doors(program: Program) -> NotebookProgram:
    return NotebookProgram(**{field.name: getattr(program, field.name) for field in fields(Program)})


@dataclass(frozen=True)
class _Quiet:
    """Tells what is being done to a function that may be None."""

    told: Told | None = None

    def __call__(self, words: str, /) -> None:
        if self.told is not None:
            self.told(words)

    def count(self, words: str, done: int, of: int, /) -> None:
        """How much of it is done."""


def _path(value: object, what: str, instead: str) -> str | Path:
    found: str | Path = expected(value, (str, Path), what=what, instead=instead)
    if "\0" in str(found) or not str(found):
        raise unexpected(None, what=what, instead=instead)
    return Path(found).expanduser() if isinstance(found, Path) or found.startswith("~") else found


@checked_call
def load(program: str | Path | Mapping[str, object]) -> NotebookProgram:
    """Read a program: a file, a folder that holds one, or a dictionary with the same keys.

    Anything that cannot be meant is refused with its place: file and line, or the key of the dictionary. Files that a
    dictionary names are looked for in the current folder.
    """
    from dualmandate.apps.plan import program_file

    if isinstance(program, Mapping):
        return _with_doors(read_program(program))
    place = Path(_path(program, "a program", 'name its file or its folder: load("program.toml")'))
    return _with_doors(read_program(program_file(place)))


@checked_call
def open_ledger(ledger: Ledger | str | Path | None = None, *, create: bool = False) -> Ledger:
    """The ledger at a path or a URL, or the project's own; one that is open already is given back.

    `create` makes one that is not there, with a key of its own beside it, for its owner alone.
    """
    from dualmandate.apps.ledgers import find_ledger
    from dualmandate.ledger import Ledger as Books

    if isinstance(ledger, Books):
        return ledger
    named = None
    if ledger is not None:
        place = _path(ledger, "a ledger", 'name its file, or open it: open_ledger("state/ledger.sqlite")')
        named = str(place)
    try:
        files = find_ledger(Path.cwd(), named)
        return files.create() if create else files.open()
    except LedgerUnavailable as refusal:
        if create:
            raise
        instead = 'name the place of one that is there, or make one: open_ledger("state/ledger.sqlite", create=True)'
        raise LedgerUnavailable(refusal.what, why=refusal.why, instead=instead, where=refusal.where) from None


@checked_call
def publish(
    plan: Plan,
    data: object,
    ledger: Ledger | str | Path,
    *,
    out: str | Path | None = None,
    by: str | None = None,
    snapshot: str | None = None,
    resume: str | int | None = None,
    other_ledger: str | None = None,
    sign: str | Path | None = None,
    unchecked: bool = False,
) -> Release:
    """Carry out a plan that the ledger knows as approved, on confidential records, at exactly its loss.

    `data` are the path of a file, a frame of pandas or polars, an Arrow table, a DuckDB relation, or a source such as
    `plan.program.source`; a record that does not fit is dropped and counted, whatever the data are in. `ledger` is a
    Ledger, a path or a URL. The release is written to a folder of its own below `out` (`releases` beside the program).

    `by` is who publishes (else the login's name). `snapshot` names the state of the data that a frame holds, publicly:
    a plan is published once on each (else it is called after the program's source). `resume` names a release to take
    up where it was left. `other_ledger` says why it may be where another ledger has spent from the same records;
    `sign` is the publisher's ssh key, where the publication is to be signed. Records that were never checked in the
    state that they are in (`check`) are refused, unless `unchecked` says that this may be; the release repeats it.
    """
    from dualmandate.apps.ledgers import person
    from dualmandate.apps.publish import RELEASES
    from dualmandate.apps.publish import publish as carry_out

    made = expected(plan, Plan, what="a plan", instead=A_PLAN)
    records, books = source_of(made, data, snapshot=snapshot), open_ledger(ledger)
    folder = made.program.document.path.parent / RELEASES if out is None else _path(out, "a folder", 'name it: out="…"')
    key = None if sign is None else Path(_path(sign, "the file of a key", 'name it: sign="~/.ssh/id_ed25519"'))
    taken_up = None if resume is None else str(expected(resume, (str, int), what="a release", instead="write resume=1"))
    left_unchecked = expected(unchecked, bool, what="True or False", instead="write unchecked=True, or leave it out")
    told = {"resume": taken_up, "other_ledger": other_ledger}
    return carry_out(made, records, books, out=folder, by=person(by), sign=key, unchecked=left_unchecked, **told)


@checked_call
def check(
    plan: Plan, data: object, ledger: Ledger | str | Path, *, by: str | None = None, snapshot: str | None = None
) -> CheckReport:
    """Hold confidential records against the program of a plan, and record that they were checked.

    `data`, `ledger` and `snapshot` are those of `publish`, which refuses records that were never checked in the state
    that they are in, whatever was found. What it gives back is for the curator: its `words()` are as confidential as
    the records.
    """
    from dualmandate.apps.check import check as carry_out
    from dualmandate.apps.ledgers import person

    made = expected(plan, Plan, what="a plan", instead=A_PLAN)
    return carry_out(made, source_of(made, data, snapshot=snapshot), open_ledger(ledger), by=person(by))


def source_of(plan: Plan, data: object, *, snapshot: str | None = None) -> Source:
    """What holds the records: a source as it is, the file at a path, or a frame, boxed from here on."""
    stated = plan.program.source
    if isinstance(data, (*SOURCES, str, Path)):
        if snapshot is not None:
            raise InvalidRequest(
                "a name for the state of the data of a file or a database",
                why="these have a name of their own",
                instead="leave snapshot out",
            )
        if isinstance(data, SOURCES):
            return data
        if "://" in str(data):  # Not repeated: a URL may hold a password.
            raise InvalidRequest(
                "a URL where a file of records is meant",
                why="a database is named by its URL and a table",
                instead='hand over DatabaseTable("TABLE", "URL"), from dualmandate.publication',
            )
        file = source_file(_path(data, "a file of records", "name it"))
        if isinstance(file, CsvFile) and isinstance(stated, CsvFile):
            return replace(file, delimiter=stated.delimiter)
        return file
    if data is None:
        raise unexpected(data, what="records", instead="hand over a file or a frame, or plan.program.source")
    name = snapshot if snapshot is not None else f"records of {plan.program.name}" if stated is None else stated.name
    return Frame.of(data, expected(name, str, what="a name of the state of the data", instead='write snapshot="2026"'))
