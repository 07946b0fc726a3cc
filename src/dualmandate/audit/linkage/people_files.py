"""Files of named people: an outside file that an attacker has, and the agency's own that knows who is right.

The outside file is no confidential one: rows that cannot be used are counted, and a refusal names their lines. Of the
agency's own nothing is told.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualmandate.audit.linkage.attack import Names
from dualmandate.audit.linkage.people import PERSON, PLACE
from dualmandate.audit.records import PURPOSE
from dualmandate.errors import InvalidTables, Place, Refusal, UnreadableSource
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.publication import Rules, source_file
from dualmandate.publication.records import check_source, opened
from dualmandate.publication.rules import AttributeRule
from dualmandate.publication.sources import CsvFile, ParquetFile, SourceColumns
from dualmandate.publication.tabulation_sql import TabulationSpec, records_sql
from dualmandate.publication.wall import connected, guarded

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True, eq=False)
class Census:
    """What the records of a place say, which places there are, and what names somebody in a file of people."""

    domain: Domain  # of one place
    place: Attribute | None  # None where there is one place
    person: str = "person"  # the column that names people

    def columns(self, known: Sequence[str]) -> Domain:
        """Some attributes and the place, last, as one domain; structural zeros where all attributes are there."""
        kept = self.domain.project(known)
        more = () if self.place is None else (self.place,)
        return Domain((*kept.attributes, *more), kept.hierarchies, kept.structural_zeros)


def read_people(path: Path, census: Census, rules: Rules | None = None) -> Confidential[pyarrow.Table]:
    """The agency's own named records, boxed: PERSON, PLACE and the position of each level; others are left out."""
    source = source_file(path)
    check_source(source)
    domain = census.columns(census.domain.names)
    spec = TabulationSpec(domain, Protection(identifier=census.person), rules or Rules())

    def work() -> Any:
        with connected() as connection, opened(source, connection, spec.columns, counted=False) as found:
            reading = records_sql(found, spec, connection)
            return connection.sql(
                f"SELECT unit::VARCHAR AS person, cell FROM ({reading}) WHERE unit IS NOT NULL AND cell IS NOT NULL "
                "ORDER BY person, cell"
            ).to_arrow_table()

    try:
        people = guarded(work, name=source.name)
    except Refusal as refusal:
        raise refusal.at(Place(file=str(path))) from None
    levels = np.unravel_index(people.column("cell").to_numpy().astype(np.int64), domain.shape)
    return Confidential(PURPOSE, _coded(census, domain, people.column("person"), list(levels)))


def read_names(path: Path, census: Census, secret: Sequence[str], *, keep_unknown: bool) -> Names:
    """An outside file: the place, the person, and those attributes that it has and the attacker is not after.

    Rows with values that are not declared are left out and counted; `keep_unknown` keeps those that have some left.
    """
    source = _outside(path)

    def work() -> Names:
        with connected() as connection, opened(source, connection, (), counted=False) as found:
            known = _known(found, census, secret, path)
            domain = census.columns(known)
            drop = Rules({each.name: AttributeRule() for each in domain.attributes})
            spec = TabulationSpec(replace(domain, structural_zeros=()), Protection(identifier=census.person), drop)
            _named(connection, records_sql(found, spec, connection), len(domain.attributes))
            left_out = _check(connection, domain, census, path, keep_unknown=keep_unknown)
            people = connection.sql("SELECT * FROM usable ORDER BY person").to_arrow_table()
            levels = [people.column(f"level_{number}") for number in range(len(domain.attributes))]
            return Names(path.name, _coded(census, domain, people.column("person"), levels), known, left_out)

    try:
        return guarded(work, name=source.name)
    except Refusal as refusal:
        raise refusal.at(Place(file=str(path))) from None


def _outside(path: Path) -> CsvFile | ParquetFile:
    try:
        source = source_file(path)
        check_source(source)
    except Refusal as refusal:
        raise refusal.at(Place(file=str(path))) from None
    if not isinstance(source, CsvFile | ParquetFile):
        raise UnreadableSource(
            f"the outside file '{path.name}' is neither CSV nor Parquet",
            why="files of names are read in these two forms",
            instead="write it as one of them",
            where=Place(file=str(path)),
        )
    return source


def _known(found: SourceColumns, census: Census, secret: Sequence[str], path: Path) -> tuple[str, ...]:
    place = None if census.place is None else census.place.name
    for column, why in ((census.person, "it names the people"), (place, "people are linked within their place")):
        if column is not None and column not in found.types:
            raise InvalidTables(
                f"the outside file has no column '{column}'",
                why=why,
                instead="rename the column that does, or name it with --person"
                if column == census.person
                else "rename the column that does",
                where=Place(str(path), None if path.suffix == ".parquet" else 1, column),
            )
    known = tuple(name for name in census.domain.names if name in found.types and name not in secret)
    if not known:
        raise InvalidTables(
            "the outside file has none of the attributes that records are linked by",
            why=f"these are {', '.join(name for name in census.domain.names if name not in secret)}",
            instead="name its columns as the attributes are named",
            where=Place(str(path), None if path.suffix == ".parquet" else 1),
        )
    return known


def _named(connection: Any, reading: str, levels: int) -> None:
    columns = ", ".join(f"level_{number}::BIGINT AS level_{number}" for number in range(levels))
    connection.execute(f"CREATE TEMP TABLE named AS SELECT unit::VARCHAR AS person, {columns} FROM ({reading})")


def _check(connection: Any, domain: Domain, census: Census, path: Path, *, keep_unknown: bool) -> str | None:
    """Make the table `usable` and say what is left out; refuse an empty file, people who stand twice, no usable row."""
    names = [*domain.names, census.person]
    levels = [f"level_{number}" for number in range(len(domain.names))]
    unknown = ", ".join(f"count(*) FILTER ({column} IS NULL)" for column in (*levels, "person"))
    ((rows, *missing),) = connection.execute(f"SELECT count(*), {unknown} FROM named").fetchall()
    if not rows:
        raise InvalidTables(
            "the outside file names nobody",
            why="there are no rows in it",
            instead="name a file with people in it",
            where=Place(str(path)),
        )
    ((twice,),) = connection.execute(
        "SELECT count(*) FROM (SELECT person FROM named WHERE person IS NOT NULL GROUP BY person HAVING count(*) > 1)"
    ).fetchall()
    if twice:
        raise _twice(path, census.person, twice)
    keys = levels if census.place is None else levels[:-1]
    needed = [*([] if census.place is None else levels[-1:]), "person"]
    enough = " OR ".join(f"{column} IS NOT NULL" for column in keys)
    whole = " AND ".join(f"{column} IS NOT NULL" for column in (*needed, *([] if keep_unknown else keys)))
    connection.execute(f"CREATE TEMP TABLE usable AS SELECT * FROM named WHERE {whole} AND ({enough})")
    ((used,),) = connection.execute("SELECT count(*) FROM usable").fetchall()
    if not used:
        worst = int(np.argmax(missing))
        raise InvalidTables(
            f"no row of the outside file can be used: {rows - missing[worst]:,} of {rows:,} have a declared value of "
            f"'{names[worst]}'",
            why="people are linked by values as they are declared",
            instead="write values as the tables do",
            where=Place(str(path), 2 if missing[worst] == rows and path.suffix != ".parquet" else None, names[worst]),
        )
    if used == rows:
        return None
    which = ", ".join(f"{name}: {count:,}" for name, count in zip(names, missing, strict=True) if count)
    return f"{rows - used:,} of {rows:,} rows of {path.name} are left out: values that are not declared ({which})"


def _twice(path: Path, person: str, count: int) -> InvalidTables:
    """The refusal of people who stand twice; the first of them by line, never by name."""
    lines: tuple[int, int] | None = None
    if path.suffix != ".parquet":
        seen: dict[str, int] = {}
        with path.open(encoding="utf-8-sig", newline="") as text:
            rows = csv.DictReader(text)
            for row in rows:
                name = row[person]
                if name and name in seen:
                    lines = seen[name], rows.line_num
                    break
                seen[name] = rows.line_num
    return InvalidTables(
        f"{count:,} of the people in the outside file stand there more than once",
        why="a record is linked to one name" + (f"; that of this line stands on line {lines[0]} too" if lines else ""),
        instead=f"give each person one row and a '{person}' of their own",
        where=Place(str(path), lines[1] if lines else None, person),
    )


def _coded(census: Census, domain: Domain, persons: Any, levels: Sequence[Any]) -> pyarrow.Table:
    """A table of people: who, where, and the position of each level, which may not be known."""
    import pyarrow

    columns = dict(zip(domain.names, levels, strict=True))
    home = np.zeros(len(persons), np.int64) if census.place is None else columns.pop(census.place.name)
    return pyarrow.table({PLACE: home, PERSON: persons, **columns})
