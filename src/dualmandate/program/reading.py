"""From the text of a program file to its keys: every key checked, and the first thing that is wrong said."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from pydantic import ValidationError

from dualmandate.errors import InvalidValue, InvalidWorkload
from dualmandate.program.complaints import first_refusal
from dualmandate.program.file import Document
from dualmandate.program.lines import KeyPath
from dualmandate.program.schema import ProgramKeys


def read_keys(document: Document) -> ProgramKeys:
    """The keys of a program file, each of the kind that is meant and each name used once."""
    try:
        file = ProgramKeys.model_validate(document.content)
    except ValidationError as error:
        raise first_refusal(error, document) from None
    if not file.workload:
        raise InvalidWorkload(
            "the workload is empty",
            why="a program that asks nothing publishes nothing",
            instead="write at least one [[workload]] table",
            where=document.place(("workload",)),
        )
    _check_unique([table.name for table in file.workload], "tables", document, ("workload",))
    _check_unique([group.name for group in file.preferences.groups], "groups", document, ("preferences", "groups"))
    _check_unique([invariant.name for invariant in file.invariants], "invariants", document, ("invariants",))
    _check_measured(file, document)
    _check_shares(file, document)
    return file


def _check_unique(names: Sequence[str], what: str, document: Document, key: KeyPath) -> None:
    for position, name in enumerate(names):
        if name in names[:position]:
            raise InvalidValue(
                f"two {what} are called '{name}'",
                why=f"{what} are known by their names",
                instead="give each its own name",
                where=document.place((*key, position, "name")),
            )


def _check_measured(file: ProgramKeys, document: Document) -> None:
    """Groups of tables measured apart must name every table exactly once."""
    if isinstance(file.mechanism.measured, str):
        return
    tables = [table.name for table in file.workload]
    named = [name for group in file.mechanism.measured for name in group]
    unknown = next((name for name in named if name not in tables), None)
    twice = next((name for name in named if named.count(name) > 1), None)
    absent = next((name for name in tables if name not in named), None)
    if unknown is not None:
        near = difflib.get_close_matches(unknown, tables, n=1)
        what, instead = f"there is no table '{unknown}' to measure", f"did you mean '{near[0]}'?" if near else ""
    elif twice is not None:
        what, instead = f"the table '{twice}' is measured twice", ""
    elif absent is not None:
        what, instead = f"the table '{absent}' is in no group of measured tables", ""
    else:
        return
    raise InvalidValue(
        what,
        why="each table is measured in exactly one group",
        instead=instead or f"name each of these once: {', '.join(tables)}",
        where=document.place(("mechanism", "measured")),
    )


def _check_shares(file: ProgramKeys, document: Document) -> None:
    """Stated shares are those of all tables, of the whole loss, and of tables that are not all measured together."""
    shares = file.shares
    if not shares:
        return
    first = next(position for position, table in enumerate(file.workload) if table.share is not None)
    absent = next((table.name for table in file.workload if table.share is None), None)
    if absent is not None:
        what, instead = f"the table '{absent}' has no share of the loss", "state a share for every table, or for none"
    elif sum(shares.values()) != 1:
        what, instead = f"the shares of the tables add up to {sum(shares.values())}", "let them add up to exactly 1"
    elif file.mechanism.measured == "together" and len(shares) > 1:
        what = "tables that are measured together share nothing out"
        instead = 'state measured = "apart" under [mechanism], or leave the shares away'
    else:
        return
    raise InvalidValue(
        what,
        why="shares say how one loss is divided between tables that are measured apart",
        instead=instead,
        where=document.place(("workload", first, "share")),
    )
