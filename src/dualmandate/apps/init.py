"""`dualmandate init`: a program folder to start from, and the project around it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dualmandate.apps import next_step
from dualmandate.apps.audit import TABLES_FILE
from dualmandate.apps.folder import check_writable, json_text, write_files, written_whole
from dualmandate.apps.output import Output
from dualmandate.apps.plan import PROGRAM_FILE
from dualmandate.apps.preferences import SURVEY_FILE
from dualmandate.apps.settings import PROJECT_FILE, PROJECT_SCHEMA, STATE_FOLDER, project_folder
from dualmandate.errors import CannotWrite, InvalidRequest, Place

IGNORE_FILE = ".gitignore"
STATE = f"{STATE_FOLDER}/"  # what the project knows and git must not: ledger and keys, as the records

SCHEMA_LINE = "#:schema ./"  # the first line of a file, as editors read it


def schema_file(kind: str) -> str:
    """The JSON Schema of a kind of file, beside it."""
    return f"{kind}.schema.json"


PROGRAM_SCHEMA = schema_file("program")
PROJECT = f"""\
# The project: the commands of dualmandate run in this folder and below read their settings here.
# A flag comes before a DUALMANDATE_* variable, and that before this file. `dualmandate doctor` shows what holds.
schema = {PROJECT_SCHEMA}
# out = "report"     # where `dualmandate plan` writes plan.json and the dossier
# ledger = "…"       # the account of every loss, where it is not .dualmandate/ledger.sqlite: a file, or a database URL
# anchor_file = "…"  # a second place for the ledger's head, on another disk; begun by `dualmandate ledger anchor`
# approvers = "…"    # who may approve, and `publishers` who may publish: files of allowed signers, as ssh has them
"""


@dataclass(frozen=True)
class ProgramFolder:
    """A program folder that was just written."""

    name: str
    directory: Path
    files: tuple[str, ...]
    project: Path  # the folder of its project file

    @property
    def next(self) -> str:
        """The command to type next: a survey is measured before a program is planned, published tables are attacked."""
        commands = {SURVEY_FILE: "preferences", PROGRAM_FILE: "plan", TABLES_FILE: "audit"}
        file = next(file for file in commands if file in self.files)
        return (
            next_step.plan_program(self.directory / file)
            if file == PROGRAM_FILE
            else next_step.typed(commands[file], self.directory / file)
        )

    def words(self) -> str:
        lines = [f"wrote '{self.name}' to {self.directory}: {', '.join(self.files)}"]
        if self.project != self.directory.absolute():
            lines.append(f"it belongs to the project in {self.project}")
        return "\n".join([*lines, "", "next:", f"  {self.next}"])

    def document(self) -> dict[str, object]:
        from dualmandate.report.documents.commands import InitDocument

        return InitDocument.made_of(self, directory=str(self.directory), project=str(self.project)).as_json()


def start(name: str, directory: Path) -> ProgramFolder:
    """Write a program folder; nothing that stands there is overwritten."""
    from dualmandate import gallery

    files = gallery.files(name)
    check_writable(directory)
    project, own = project_files(directory)
    files |= own | schema_files(files)
    records = gallery.records(name)
    check_free(directory, (*files, *([] if records is None else [records])), f"dualmandate init {name} DIR")
    files[IGNORE_FILE] = ignoring(directory, [] if records is None else [records])
    with written_whole(directory) as draft:
        write_files(files, draft)
        if records is not None:
            gallery.write_records(name, draft)
    written = sorted([*files, *([] if records is None else [records])])
    return ProgramFolder(name, directory, tuple(written), project)


def project_files(directory: Path) -> tuple[Path, dict[str, str]]:
    """The project that a folder belongs to, and its file where the folder begins one of its own."""
    project = project_folder(directory)
    return (directory.absolute(), {PROJECT_FILE: PROJECT}) if project is None else (project, {})


def check_free(directory: Path, files: Iterable[str], again: str = "dualmandate init NAME DIR") -> None:
    """Refuse a folder in which one of the files stands already."""
    for file in files:
        if (directory / file).exists():
            raise CannotWrite(
                f"'{directory / file}' exists already",
                why="a program folder is not overwritten",
                instead=f"name another folder: {again}",
                where=Place(file=str(directory / file)),
            )


def schema_files(files: Mapping[str, str]) -> dict[str, str]:
    """The JSON Schemas that files name in their first line, for editors; a folder carries them, so none is fetched."""
    named = {line.removeprefix(SCHEMA_LINE) for text in files.values() for line in text.splitlines()[:1]}
    known = {schema_file(kind): kind for kind in ("program", "survey", "tables")}
    found = sorted(named & known.keys())
    if not found:
        return {}
    from dualmandate.report.documents.schemas import schema

    return {file: json_text(schema(known[file])) for file in found}


def begin(name: str | None, directory: Path | None, output: Output) -> None:
    """Write a worked program, or list them where none is named."""
    if name is not None:
        output.tell(start(name, Path(name) if directory is None else directory))
        return
    if output.json:
        raise InvalidRequest(
            "no program is named",
            why=f"the programs to start from are {', '.join(_names())}",
            instead="name one: dualmandate init NAME --json",
        )
    output.say(listing())


def check_only_from(flags: Mapping[str, object]) -> None:
    """Refuse what only a draft asks for, where nothing is drafted."""
    stated = next((flag for flag, value in flags.items() if value), None)
    if stated is not None:
        raise InvalidRequest(
            f"{stated} without --from",
            why="it is about a program that is drafted from records",
            instead="name them: dualmandate init NAME --from FILE",
        )


def listing() -> str:
    """The programs to start from, a line each."""
    from dualmandate.gallery import about

    names = _names()
    lines = [f"  {name:<{max(map(len, names))}}  {about(name)}" for name in names]
    ways = "name one: dualmandate init NAME [DIR], or draft one from records: dualmandate init NAME --from FILE"
    return "\n".join(["programs to start from:", *lines, "", ways])


def _names() -> tuple[str, ...]:
    from dualmandate import gallery

    return gallery.names()


def ignoring(directory: Path, records: Sequence[str]) -> str:
    """The folder's .gitignore with the project's state and the records in it: lines that stand there stay."""
    path = directory / IGNORE_FILE
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
    for line in (STATE, *records):
        if line not in text.splitlines():
            text += ("" if not text or text.endswith("\n") else "\n") + line + "\n"
    return text
