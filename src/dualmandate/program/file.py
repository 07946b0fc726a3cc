"""A program file as it was typed: its content, and where in it each key stands.

Numbers are kept as typed (`Decimal`, never a float), so that what is signed is what was written. tomllib does not say
where a key stands, and a refusal must name its line: a scanner finds it in text that tomllib has accepted, so it knows
where keys and values end and never judges them.
"""

from __future__ import annotations

import json
import re
import shlex
import stat
import tomllib
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from dualmandate.errors import InvalidFile, Place, Refusal
from dualmandate.population.shown import one_line

_SYNTAX = {  # how tomllib begins its message, and what it means
    "Cannot declare": "a table is written twice",
    "Cannot overwrite": "a key is written twice",
    "Cannot mutate": "a key is added to a table that was already closed",
    "Duplicate inline table key": "a key is written twice",
    "Invalid statement": "this is neither a key, nor a [table], nor a # comment",
    "Invalid value": "the value cannot be read (text stands in quotes)",
    "Invalid initial character for a key": "a key was expected here",
    "Unclosed": "a bracket is not closed",
    "Unterminated string": "a quote is not closed",
    "Illegal character": "a text in quotes ends on the line it began on and holds no control characters",
}
PROGRAM_FILE = "program.toml"  # what a program file is called unless it has another name
RECORDS = (".csv", ".parquet", ".sas7bdat", ".dta", ".sav")  # how files of records end
LARGEST_PROGRAM = 2**20  # bytes; the code lists stand in files of their own
KeyPath = tuple[str | int, ...]
_BLANK = re.compile(r"(?:[ \t\r\n]++|#[^\n]*+)*+")
_SPACE = re.compile(r"[ \t]*+")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]++")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*+")
_STRINGS = (
    ('"""', re.compile(r'"""(?:[^\\"]|\\.|"{1,2}(?!"))*+"{3,5}', re.DOTALL)),
    ("'''", re.compile(r"'''(?:[^']|'{1,2}(?!'))*+'{3,5}")),
    ('"', re.compile(r'"(?:[^\\"]|\\.)*+"')),
    ("'", re.compile(r"'[^']*+'")),
)


@dataclass(frozen=True)
class Document:
    """The content of a program file and the line of each of its keys."""

    path: Path
    content: dict[str, object]
    lines: dict[KeyPath, int]
    included: Document | None = None  # a file that it refers to, with keys of its own
    text: bytes | None = None  # of a program that stands in no file
    origins: tuple[int, ...] = ()  # the entry of the file that each table comes from, where one stands for many

    __repr__ = one_line

    def place(self, key: KeyPath) -> Place:
        """Where a key stands; for a key that is not there, the line of the nearest table that should hold it."""
        return self._place(self.typed(key))

    def _place(self, key: KeyPath) -> Place:
        known = self.nearest(key)
        if self.included is not None and len(self.included.nearest(key)) > len(known):
            return self.included.place(key)
        if self.text is not None:
            return Place(key=dotted(key) or None)
        return Place(file=str(self.path), line=self.lines.get(known, 1), key=dotted(key) or None)

    def typed(self, key: KeyPath) -> KeyPath:
        """A key as it stands in the file: one entry of it may stand for many tables."""
        if self.origins and key[:1] == ("workload",) and len(key) > 1 and isinstance(key[1], int):
            return ("workload", self.origins[key[1]], *key[2:])
        return key

    def nearest(self, key: KeyPath) -> KeyPath:
        """The longest beginning of a key path that stands in the file."""
        known = key
        while known and known not in self.lines:
            known = known[:-1]
        return known

    @contextmanager
    def at(self, *key: str | int) -> Iterator[None]:
        """Give every refusal raised inside the place of this key in the file, or of the key that it names itself."""
        try:
            yield
        except Refusal as refusal:
            own = refusal.where.key if refusal.where is not None and refusal.where.line is None else None
            lines = [*self.lines, *(self.included.lines if self.included is not None else ())]
            named = next((path for path in lines if own is not None and dotted(path) == own), self.typed(key))
            # `from None`: a refusal explains itself, and nobody should read how it travelled.
            raise refusal.at(self._place(named)) from None

    def value(self, key: KeyPath) -> object:
        """What the file says at a key; None where it says nothing."""
        found: object = self.content
        for part in self.typed(key):
            try:
                found = found[part]  # type: ignore[index]
            except (KeyError, IndexError, TypeError):
                return None
        return found


def dotted(key: KeyPath) -> str:
    """A key path as the file writes it: `workload[0].consequence.unit`; unusual names are quoted, and can be pasted."""
    text = ""
    for part in key:
        text += f"[{part}]" if isinstance(part, int) else ("." if text else "") + toml_key(part)
    return text


def toml_key(name: str) -> str:
    """A name as TOML writes it before an equals sign."""
    return name if _BARE_KEY.fullmatch(name) else toml_text(name)


def toml_text(words: str) -> str:
    """A TOML basic string: JSON's escapes are among TOML's, apart from DEL."""
    return json.dumps(words, ensure_ascii=False).replace("\x7f", "\\u007f")


def read_document(path: str | Path, what: str = "program file") -> Document:
    """Read a program file (or another file of ours), refused unless it is a small UTF-8 text in TOML."""
    file = Path(path)
    try:
        text = read_bytes(file, largest=LARGEST_PROGRAM, what=what)
    except InvalidFile as refusal:
        raise refusal.at(Place(str(file))) from None
    try:
        decoded = text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise _not_toml(file, what, "it is not UTF-8 text", line=line) from None
    return parsed(decoded, file, what)


def parsed(decoded: str, file: Path, what: str) -> Document:
    """A text in TOML, as it stands in a file."""
    try:
        content = tomllib.loads(decoded, parse_float=_decimal)
        return Document(file, content, key_lines(decoded.replace("\r\n", "\n")))
    except tomllib.TOMLDecodeError as error:
        raise _syntax(file, str(error), decoded) from None
    except RecursionError:
        raise _not_toml(file, what, f"its brackets are nested too deeply to be a {what}") from None
    except ValueError:
        raise _not_toml(file, what, "it holds a whole number of more than 4,300 digits") from None


def program_meant(given: str | Path) -> Path:
    """The program file meant by itself, whatever its name, or by the folder that holds it.

    A folder stands for the program.toml in it; where there is none, for the one file in it that is a program.
    """
    path = Path(given)
    try:
        if not path.is_dir():
            if path.suffix.lower() in RECORDS:
                raise _is_data(path)
            return path
        if (path / PROGRAM_FILE).exists():
            return path / PROGRAM_FILE
        found = [file for file in sorted(path.glob("*.toml")) if file.is_file() and _is_program(file)]
    except (OSError, ValueError):  # not to be looked at: whoever opens it will say why
        return path
    if len(found) == 1:
        return found[0]
    several = ", ".join(file.name for file in found)
    raise InvalidFile(
        f"the folder '{path}' holds {f'several programs: {several}' if found else f'no {PROGRAM_FILE}'}",
        why="a folder stands for the program file in it",
        instead=f"name one of them: {shlex.quote(str(found[0]))}"
        if found
        else "name the program file itself, or begin with `dualmandate init blank`",
        where=Place(str(path)),
    )


def _is_program(file: Path) -> bool:
    """Whether a file says that it is a program: other files of ours, and those of other tools, do not."""
    try:
        content = tomllib.loads(read_bytes(file, largest=LARGEST_PROGRAM, what="program file").decode("utf-8-sig"))
    except (InvalidFile, ValueError, RecursionError):
        return False
    return isinstance(content.get("population"), dict) and isinstance(content.get("program"), dict)


def _is_data(file: Path) -> InvalidFile:
    name = re.sub(r"[^a-z0-9]+", "_", file.stem.lower()).strip("_") or "mine"
    return InvalidFile(
        f"'{file.name}' is data, and no program",
        why="a program says who is counted and what is asked, and names its data",
        instead=f"begin a program from it: {shlex.join(['dualmandate', 'init', name, '--from', str(file)])}",
        where=Place(str(file)),
    )


def read_bytes(file: Path, *, largest: int, what: str) -> bytes:
    """The bytes of a regular file, refused before reading where it is larger than `largest`."""
    try:
        status = file.stat()
        if stat.S_ISDIR(status.st_mode):
            raise _unreadable(file, what, "it is a folder", f"name the {what} inside it")
        if not stat.S_ISREG(status.st_mode):
            raise _unreadable(file, what, "it is not a regular file", f"name a {what} on disk")
        if status.st_size > largest:
            raise _too_large(file, what, status.st_size, largest)
        with file.open("rb") as opened:
            read = opened.read(largest + 1)
    except FileNotFoundError:
        raise _unreadable(file, what, "there is no such file", "check the name and the folder") from None
    except (OSError, ValueError) as error:
        why = (error.strerror or "it cannot be opened") if isinstance(error, OSError) else "that is not a file name"
        raise _unreadable(file, what, why, "name a file that can be read") from None
    if len(read) > largest:
        raise _too_large(file, what, len(read), largest)
    return read


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent beyond what a Decimal holds; refused later, with its place
        return Decimal("Infinity")


def _unreadable(file: Path, what: str, why: str, instead: str) -> InvalidFile:
    return InvalidFile(f"the {what} '{file.name}' cannot be read", why=why, instead=instead)


def _too_large(file: Path, what: str, size: int, largest: int) -> InvalidFile:
    return InvalidFile(
        f"the {what} '{file.name}' is too large: {size:,} bytes",
        why=f"a {what} has at most {largest:,} bytes",
        instead="check that this is the file you mean; long lists of codes belong in CSV files beside the program",
    )


def _not_toml(file: Path, what: str, why: str, *, line: int | None = None) -> InvalidFile:
    start = "survey" if what == "survey file" else "blank"
    return InvalidFile(
        f"'{file.name}' is not a {what}",
        why=why,
        instead=f"write TOML, as UTF-8 text; `dualmandate init {start}` gives a file to start from",
        where=Place(str(file), line),
    )


def _syntax(file: Path, message: str, text: str) -> InvalidFile:
    found = re.search(r"\(at line (\d+), column (\d+)\)", message)
    line = int(found.group(1)) if found else text.count("\n") + 1
    column = f"at column {found.group(2)}" if found else "at the end of the file"
    given = re.sub(r"\s*\(at .*\)$", "", message)
    reason = next((ours for theirs, ours in _SYNTAX.items() if given.startswith(theirs)), given[:1].lower() + given[1:])
    lines = text.splitlines()
    return InvalidFile(
        f"'{file.name}' is not TOML",
        why=f"line {line}, {column}: {reason}",
        instead=_mended(lines[line - 1] if line <= len(lines) else "", reason),
        where=Place(str(file), line),
    )


_MENDED = (  # what stands in a line that is no TOML, and what its writer meant
    ("[“”„‘’«»]", 'write straight quotes: "…"'),
    (
        r"""=\s*[{\[]?\s*"[^"]*\\|path\s*=\s*"[^"]*\\""",
        "write / in a path, or the path in 'single quotes', in which a \\ is itself",
    ),
    (r"=\s*[+-]?\d+(?:,\d+)+", "write a number with a point and without separators, as 5000 or 2.5"),
    (r"=\s*[+-]?[\d.]+\s*%", "write a share as a number, as 0.1 for 10 %"),
    (r"=\s*(?:TRUE|True|FALSE|False|YES|Yes|NO|No|yes|no)\b", "write true or false, in small letters"),
    (r"""=\s*[A-Za-z_][^"'=\[\]{}]*$""", 'write text in quotes, as name = "town"'),
)
_REMEDIES = {
    "a quote is not closed": "close the quote where the text ends",
    _SYNTAX["Illegal character"]: "close the quote where the text ends",
    "a bracket is not closed": "close the bracket that is opened before this line",
    "a key is written twice": "keep one of the two",
    "a table is written twice": "keep one of the two, with the keys of both; a table that may repeat is written [[…]]",
}


def _mended(line: str, reason: str) -> str:
    """What to write in place of a line that is no TOML."""
    meant = next((words for form, words in _MENDED if re.search(form, line.partition("#")[0])), None)
    usual = 'write key = value; text stands in "quotes", and each key of a table is written once'
    return meant or _REMEDIES.get(reason, usual)


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line, from 1, on which each key path of a valid TOML text first stands.

    A path is made of key names and, within arrays, positions from 0: `("workload", 0, "by", 1)`.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    """A cursor over a TOML text that notes the line of every key and array item it passes."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self._array_sizes: dict[KeyPath, int] = {}  # arrays of tables met so far
        self._line_ends = [match.start() for match in re.finditer("\n", text)]

    def document(self) -> None:
        """Pass over the whole text."""
        table: KeyPath = ()
        self._pass(_BLANK)
        while self.at < len(self.text):
            if self.text.startswith("[[", self.at):
                table = self._header(brackets=2)
            elif self.text[self.at] == "[":
                table = self._header(brackets=1)
            else:
                self._pair(table)
            self._pass(_BLANK)

    def _header(self, *, brackets: int) -> KeyPath:
        line = self._line()
        self.at += brackets
        *parents, last = self._key()
        self._pass(_SPACE)
        self.at += brackets
        path: KeyPath = ()
        for parent in parents:
            path = (*path, parent)
            self.lines.setdefault(path, line)
            if path in self._array_sizes:
                path = (*path, self._array_sizes[path] - 1)
        path = (*path, last)
        self.lines.setdefault(path, line)
        if brackets == 2:
            position = self._array_sizes.get(path, 0)
            self._array_sizes[path] = position + 1
            path = (*path, position)
            self.lines[path] = line
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for part in self._key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self._pass(_SPACE)
        self.at += 1  # the equals sign
        self._pass(_SPACE)
        self._value(path)

    def _key(self) -> list[str]:
        parts: list[str] = []
        while True:
            self._pass(_SPACE)
            if self.text[self.at] in "\"'":
                parts.append(str(tomllib.loads(f"key = {self._string()}")["key"]))
            else:
                parts.append(self._pass(_BARE_KEY))
            self._pass(_SPACE)
            if self.text[self.at] != ".":
                return parts
            self.at += 1

    def _value(self, path: KeyPath) -> None:
        first = self.text[self.at]
        if first == "[":
            self._array(path)
        elif first == "{":
            self.at += 1
            while not self._closed("}"):
                self._pair(path)
        elif first in "\"'":
            self._string()
        else:
            self._pass(_BARE_VALUE)

    def _array(self, path: KeyPath) -> None:
        self.at += 1
        position = 0
        while not self._closed("]"):
            item = (*path, position)
            self.lines[item] = self._line()
            self._value(item)
            position += 1

    def _closed(self, bracket: str) -> bool:
        """Step to the next item, or past the closing bracket."""
        self._pass(_BLANK)
        if self.text[self.at] == ",":
            self.at += 1
            self._pass(_BLANK)
        if self.text[self.at] != bracket:
            return False
        self.at += 1
        return True

    def _string(self) -> str:
        pattern = next(pattern for opening, pattern in _STRINGS if self.text.startswith(opening, self.at))
        return self._pass(pattern)

    def _pass(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        assert match is not None  # tomllib has accepted the text
        self.at = match.end()
        return match.group()

    def _line(self) -> int:
        return bisect_left(self._line_ends, self.at) + 1
