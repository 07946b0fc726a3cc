"""The settings of the commands, and where each came from: a flag, a variable, the project file, or the default.

A project is the nearest folder upward that holds `dualmandate.toml`. Settings say where things stand, never how much
privacy is spent: epsilon, neighbors, caps and preferences come only from the program file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dualmandate.errors import InvalidFile, InvalidValue, UnknownKey, did_you_mean

PROJECT_FILE = "dualmandate.toml"
PROJECT_SCHEMA = 1
VARIABLES = "DUALMANDATE_"
STATE_FOLDER = ".dualmandate"  # of a project: its ledger, the key, the anchor and the sealed secrets
LEDGER_FILE = "ledger.sqlite"

Source = Literal["flag", "variable", "project file", "default"]


@dataclass(frozen=True)
class SettingKey:
    """A setting that some command reads."""

    name: str
    words: str
    flag: str | None = None
    in_project_file: bool = True
    in_variable: bool = True
    kind: Literal["path", "text", "switch"] = "path"  # a path in the project file is meant from where that stands

    @property
    def variable(self) -> str:
        """Its environment variable."""
        return VARIABLES + self.name.upper()


KNOWN = (
    SettingKey("out", "the folder where `plan` writes plan.json and the dossier", flag="--out"),
    SettingKey("data", "the folder with real data, for tests and benchmarks"),
    SettingKey(
        "ledger", "the account of every loss: a SQLite file, or the URL of a PostgreSQL database", flag="--ledger"
    ),
    SettingKey(
        "key_file", "the ledger's key; else `key` beside the ledger, made by `ledger open`", in_project_file=False
    ),
    SettingKey("anchor_file", "a second place for the ledger's head: a file, on another disk", in_variable=False),
    SettingKey(
        "anchor_append", "a second place for the ledger's head: a file that lines are added to", in_variable=False
    ),
    SettingKey(
        "anchor_database",
        "a second place for the ledger's head: the URL of a PostgreSQL database",
        in_variable=False,
        kind="text",
    ),
    SettingKey(
        "anchor_command",
        "a second place for the ledger's head: a command, run as `COMMAND read LEDGER` and `COMMAND write LEDGER`",
        in_variable=False,
        kind="text",
    ),
    SettingKey("approvers", "who may approve: a file of allowed signers, as ssh has them", in_variable=False),
    SettingKey("publishers", "who may publish: a file of allowed signers, as ssh has them", in_variable=False),
    SettingKey(
        "two_persons",
        "true: nobody publishes on their own approval, by name and by key; needs both files of signers",
        in_variable=False,
        kind="switch",
    ),
    SettingKey("peers", "a Python with packages to compare with in benchmarks; else this one", in_project_file=False),
    SettingKey("debug", "1 prints the traceback of a bug", in_project_file=False),
)


KINDS = {
    "path": ("it names a place on disk", 'write {key} = "place", relative to the project file'),
    "text": ("it names a place, in quotes", 'write {key} = "place"'),
    "switch": ("it is asked for, or not", "write {key} = true"),
}


@dataclass(frozen=True)
class Setting:
    """The value of one setting, None where it is not set, and where it came from."""

    name: str
    value: str | None
    source: Source
    origin: str  # "--out", "DUALMANDATE_OUT", "dualmandate.toml, line 3", or what the default is

    @property
    def path(self) -> Path | None:
        """The value as a path."""
        return None if self.value is None else Path(self.value)


def project_folder(start: Path) -> Path | None:
    """The nearest folder from `start` upward that holds a project file."""
    here = start.absolute()
    return next((folder for folder in (here, *here.parents) if _can_see(folder / PROJECT_FILE)), None)


def settings(start: Path, flags: Mapping[str, str | None]) -> dict[str, Setting]:
    """Every setting as a command run for `start` sees it: flag first, then variable, project file, default."""
    project = _project_settings(start)
    found = {known.name: _resolve(known, flags.get(known.name), project) for known in KNOWN}
    folder = project_folder(start)
    if found["ledger"].value is None and folder is not None:
        place = str(folder / STATE_FOLDER / LEDGER_FILE)
        found["ledger"] = Setting("ledger", place, "default", f"{STATE_FOLDER}/{LEDGER_FILE} of the project")
    return found


def unread_variables() -> list[str]:
    """Variables that look like settings and that nobody reads: most likely a misspelling."""
    read = {known.variable for known in KNOWN if known.in_variable}
    return sorted(name for name in os.environ if name.startswith(VARIABLES) and name not in read)


def debugging() -> bool:
    """Whether the traceback of a bug was asked for."""
    return os.environ.get(f"{VARIABLES}DEBUG", "") not in ("", "0")


def _can_see(path: Path) -> bool:
    """Whether something stands there; a folder above that may not be searched hides what is in it."""
    try:
        return path.exists()
    except OSError:
        return False


def _resolve(known: SettingKey, flag: str | None, project: Mapping[str, Setting]) -> Setting:
    if flag is not None:
        return Setting(known.name, flag, "flag", known.flag or known.name)
    variable = os.environ.get(known.variable) if known.in_variable else None
    if variable:
        return Setting(known.name, variable, "variable", known.variable)
    if known.name in project:
        return project[known.name]
    if known.name == "data":
        beside = Path("..", "shared", "data")
        found = str(beside) if _can_see(beside) else None
        return Setting(known.name, found, "default", f"{beside.as_posix()} if it exists")
    return Setting(known.name, None, "default", "not set")


def _project_settings(start: Path) -> dict[str, Setting]:
    folder = project_folder(start)
    if folder is None:
        return {}
    from dualmandate.program.file import read_document

    document = read_document(folder / PROJECT_FILE)
    allowed = {known.name: known for known in KNOWN if known.in_project_file}
    found: dict[str, Setting] = {}
    for key, value in document.content.items():
        if key == "schema":
            with document.at(key):
                _check_schema(value)
        elif key not in allowed:
            raise UnknownKey(
                f"'{key}' is not a setting",
                why="a setting nobody reads is a misspelling, or belongs in the program file",
                instead=did_you_mean(key, allowed, f"the settings are {', '.join(allowed)}"),
                where=document.place((key,)),
            )
        elif not (isinstance(value, bool) if allowed[key].kind == "switch" else isinstance(value, str) and value):
            raise InvalidValue(
                f"the setting '{key}' is not a {allowed[key].kind}",
                why=KINDS[allowed[key].kind][0],
                instead=KINDS[allowed[key].kind][1].format(key=key),
                where=document.place((key,)),
            )
        else:
            # a path in a file is meant from where the file stands, not from where the command is typed
            place = document.place((key,))
            origin = f"{place.file}, line {place.line}"
            text = value if isinstance(value, str) else str(value).lower()  # a switch
            elsewhere = allowed[key].kind != "path" or (key == "ledger" and "://" in text)
            found[key] = Setting(key, text if elsewhere else str(folder / text), "project file", origin)
    return found


def _check_schema(value: object) -> None:
    if value != PROJECT_SCHEMA or isinstance(value, bool):
        raise InvalidFile(
            f"the project file has schema {value}",
            why=f"this version reads schema {PROJECT_SCHEMA}",
            instead=f"write schema = {PROJECT_SCHEMA}, or use the version the file was written for",
        )
