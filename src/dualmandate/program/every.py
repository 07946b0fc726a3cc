"""One entry of a program file that stands for many tables: `every = 2` is a table by every two of some attributes.

Each of them is a table like any other from here on; only refusals still know the one place where all of them stand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations

from dualmandate.errors import InvalidValue, TooLarge
from dualmandate.program.file import Document
from dualmandate.program.schema import ProgramKeys, WorkloadTable

MOST_TABLES = 20_000  # of one entry
OWN_CELLS = ("public_numbers", "decision", "wealth", "details", "share", "total")  # said of one table's own numbers


def with_every_table(document: Document, file: ProgramKeys) -> tuple[Document, ProgramKeys]:
    """The program with every table written out, and its text with the entry that each table comes from."""
    if all(table.every is None for table in file.workload):
        return document, file
    tables, origins = list[WorkloadTable](), list[int]()
    for position, table in enumerate(file.workload):
        made = [table] if table.every is None else list(_tables(document, file, position))
        tables += made
        origins += [position] * len(made)
    return replace(document, origins=tuple(origins)), file.model_copy(update={"workload": tuple(tables)})


def _tables(document: Document, file: ProgramKeys, position: int) -> Iterator[WorkloadTable]:
    table = file.workload[position]
    assert table.every is not None
    names, place = table.names or tuple(file.population.attributes), ("workload", position)
    added = {each.attribute: each for each in table.by if not isinstance(each, str)}
    own = next((key for key in OWN_CELLS if getattr(table, key)), None)
    if own is not None:
        raise InvalidValue(
            f"'{own}' stands beside every = {table.every}",
            why="it is about the numbers of one table, and this entry stands for many",
            instead="leave it out, or state that table by itself",
            where=document.place((*place, own)),
        )
    if not 1 <= table.every <= len(names):
        raise InvalidValue(
            f"tables by every {table.every} of {len(names)} attributes",
            why="there are none",
            instead=f"write a number from 1 to {len(names)}",
            where=document.place((*place, "every")),
        )
    count = math.comb(len(names), table.every)
    if count > MOST_TABLES:
        raise TooLarge(
            f"{count:,} tables by every {table.every} of {len(names)} attributes",
            why=f"one entry stands for at most {MOST_TABLES:,}",
            instead="name fewer attributes in `by`",
            where=document.place((*place, "every")),
        )
    for some in combinations(names, table.every):
        by, name = tuple(added.get(each, each) for each in some), f"{table.name}: {' × '.join(some)}"
        yield table.model_copy(update={"name": name, "by": by, "every": None})
