"""`dualmandate init`: a program folder to start from, and the project around it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from dualmandate.apps.audit import TABLES_FILE
from dualmandate.apps.folder import check_writable, write_files, written_whole
from dualmandate.apps.plan import PROGRAM_FILE
from dualmandate.apps.preferences import SURVEY_FILE
from dualmandate.apps.settings import PROJECT_FILE, PROJECT_SCHEMA, STATE_FOLDER, project_folder
from dualmandate.errors import CannotWrite, Place

IGNORE_FILE = ".gitignore"
STATE = f"{STATE_FOLDER}/"  # what the project knows and git must not: ledger and keys, as the records

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
        return f"dualmandate {commands[file]} {shlex.quote(str(self.directory / file))}"

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
    project = project_folder(directory)
    if project is None:
        project = directory.absolute()
        files[PROJECT_FILE] = PROJECT
    records = gallery.records(name)
    for file in (*files, *([] if records is None else [records])):
        if (directory / file).exists():
            raise CannotWrite(
                f"'{directory / file}' exists already",
                why="a program folder is not overwritten",
                instead=f"name another folder: dualmandate init {name} DIR",
                where=Place(file=str(directory / file)),
            )
    files[IGNORE_FILE] = ignoring(directory, records)
    with written_whole(directory) as draft:
        write_files(files, draft)
        if records is not None:
            gallery.write_records(name, draft)
    written = sorted([*files, *([] if records is None else [records])])
    return ProgramFolder(name, directory, tuple(written), project)


def ignoring(directory: Path, records: str | None) -> str:
    """The folder's .gitignore with the project's state and the records in it: lines that stand there stay."""
    path = directory / IGNORE_FILE
    text = path.read_text(encoding="utf-8", errors="surrogateescape") if path.is_file() else ""
    for line in (STATE, *([] if records is None else [records])):
        if line not in text.split():
            text += ("" if not text or text.endswith("\n") else "\n") + line + "\n"
    return text
