"""Title I grants from a program file: districts, states and last year's payments from CSV files beside it.

Everything is joined by district and by state, and what does not join is refused: a district that is in one file and not
in the other would get nothing, or somebody else's money, in silence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from dualmandate.errors import InvalidFile, InvalidValue, Place
from dualmandate.planning.grants.districts import SchoolDistricts
from dualmandate.planning.grants.formulas import FORMULAS, Grants, TitleI
from dualmandate.planning.grants.statute import read_statute
from dualmandate.population.arrays import Floats
from dualmandate.program.domain import check_not_data
from dualmandate.program.program import ProgramFile
from dualmandate.program.text_columns import TextColumns, read_text_columns

NATION = "US"
FACTORS = ("effort", "equity")
MONEY = "USD"


def title_i_grants(program: ProgramFile, position: int, numbers: Floats) -> TitleI:
    """The decision of a table of children by district; `numbers` are its public ones, in the order of its answers."""
    asked, document = program.file.workload[position], program.document
    assert asked.decision is not None
    table, key = asked.decision.title_i, ("workload", position, "decision", "title_i")
    assert table is not None
    if program.units.currency != MONEY or len(asked.names) != 1:
        by = ", ".join(asked.names) or "nothing"
        with document.at(*key):
            raise InvalidValue(
                f"Title I grants in {program.units.currency}, by {by}",
                why="the law divides dollars among school districts",
                instead='publish one number a district, by = ["district"], in USD',
            )
    column, codes = asked.names[0], [cell[0] for cell in program.workload.labels(asked.name)]

    def read(name: str, what: str) -> TextColumns:
        with document.at(*key, name):
            file = document.path.parent / str(getattr(table, name))
            check_not_data(file, program.file.population, document)
            return read_text_columns(file, what)

    with document.at(*key, "statute"):
        statute = read_statute(None if table.statute is None else document.path.parent / table.statute)
    listed, spent = read("districts", "file of districts"), read("states", "file of states")
    with document.at(*key, "districts"):
        rows = _rows_of(listed, column, codes)
        states = [listed.column("state")[row] for row in rows]
        school_age = _numbers(listed, "school_age")[rows]
    with document.at(*key, "states"):
        by_state = {name: row for row, name in enumerate(spent.codes("state"))}
        amounts = dict(zip(by_state, _numbers(spent, "expenditure").tolist(), strict=True))
        factors = {
            name: dict(zip(by_state, _numbers(spent, name).tolist(), strict=True))
            for name in FACTORS
            if name in spent.columns
        }
        if NATION not in amounts:
            raise _odd(spent, f"it has no row '{NATION}'", "state the expenditure of the nation, which bounds refer to")
        missing = next((state for state in states if state not in amounts), None)
        if missing is not None:
            raise _odd(
                spent, f"the state '{missing}' is not there, and has districts", "state what it spends on a pupil"
            )
        national = amounts.pop(NATION)
    with document.at(*key):
        districts = SchoolDistricts(
            codes,
            states,
            numbers,
            school_age,
            amounts,
            national,
            effort=factors.get("effort"),
            equity=factors.get("equity"),
        )
    before = None
    if table.paid_before is not None:
        paid = read("paid_before", "file of last year's grants")
        with document.at(*key, "paid_before"):
            rows = _rows_of(paid, column, codes)
            before = Grants(
                int(table.fiscal_year) - 1,
                tuple(codes),
                np.stack([_numbers(paid, formula)[rows] for formula in FORMULAS]),
                _numbers(paid, "lapsed")[rows].astype(np.int64),
            )
    with document.at(*key, "fiscal_year"):
        return TitleI(districts, int(table.fiscal_year), statute, before)


def _rows_of(read: TextColumns, column: str, codes: Iterable[str]) -> list[int]:
    """The row of each district; refused where a district is missing, or one is there that the table does not have."""
    rows = {code: row for row, code in enumerate(read.codes(column))}
    wanted = list(codes)
    missing = next((code for code in wanted if code not in rows), None)
    if missing is not None:
        raise _odd(read, f"the district '{missing}' is not there", "give each district of the table a row")
    strangers = rows.keys() - set(wanted)
    if strangers:
        first = min(strangers, key=rows.__getitem__)
        line = read.lines[rows[first]]
        raise _odd(
            read, f"the district '{first}' is none of the table", "join it with its successor, or take it out", line
        )
    return [rows[code] for code in wanted]


def _numbers(read: TextColumns, column: str) -> Floats:
    parsed: Callable[[str], float] = float
    found = []
    for line, text in zip(read.lines, read.column(column), strict=True):
        try:
            value = parsed(text)
        except ValueError:
            value = math.nan
        if not 0 <= value < math.inf:
            raise _odd(read, f"its {column} is no number of at least 0", "state it; 0 where there is none", line)
        found.append(value)
    return np.array(found)


def _odd(read: TextColumns, why: str, instead: str, line: int | None = None) -> InvalidFile:
    what = f"'{Path(read.file).name}' cannot be used for Title I grants"
    return InvalidFile(what, why=why, instead=instead, where=Place(str(read.file), line))
