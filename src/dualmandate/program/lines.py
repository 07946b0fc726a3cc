"""Where each key of a TOML file stands: tomllib gives none of it back, and a refusal must name its line.

The scanner reads only text that tomllib has accepted, so it knows where keys and values end and never judges them.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left

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
            self._inline_table(path)
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

    def _inline_table(self, path: KeyPath) -> None:
        self.at += 1
        while not self._closed("}"):
            self._pair(path)

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
