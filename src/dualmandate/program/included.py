"""`[preferences] from = "preferences.toml"`: the preferences of a program in a file of their own.

What that file says takes the place of `from`, before anything is checked: a plan is signed with the numbers in it.
"""

from __future__ import annotations

from dataclasses import replace

from dualmandate.errors import InvalidValue
from dualmandate.program.file import Document, read_document

TABLE, KEY = "preferences", "from"


def with_preferences(document: Document) -> Document:
    """The program with the preferences that it refers to; a key may stand in one of the two files, not in both."""
    own = document.content.get(TABLE)
    if not isinstance(own, dict) or KEY not in own:
        return document
    name = own[KEY]
    with document.at(TABLE, KEY):
        if not isinstance(name, str) or not name.strip():
            raise InvalidValue(
                "'from' does not name a file",
                why="it refers to a file with a table [preferences]",
                instead='write from = "preferences.toml"',
            )
        read = read_document(document.path.parent / name, "file of preferences")
        found = read.content.get(TABLE)
        if not isinstance(found, dict) or set(read.content) != {TABLE} or KEY in found:
            raise InvalidValue(
                f"'{name}' is no file of preferences",
                why="it holds one table, [preferences], that refers to no other file",
                instead="write it with `dualmandate preferences`, or state the preferences here",
            )
    twice = next((key for key in own if key != KEY and key in found), None)
    if twice is not None:
        raise InvalidValue(
            f"'{twice}' is stated here and in '{name}'",
            why="a number that is stated twice may differ",
            instead="keep one of the two",
            where=document.place((TABLE, twice)),
        )
    rest = {key: value for key, value in own.items() if key != KEY}
    return replace(document, content={**document.content, TABLE: {**rest, **found}}, included=read)
