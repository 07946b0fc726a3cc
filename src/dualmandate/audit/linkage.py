"""Names for reconstructed records: linked to an outside file, and judged beside guesses that need no attack.

An attacker has a file of names with place, sex and age (of some quality), and wants what only the agency has: race and
origin. A link is *putative*; it is *confirmed* where the agency's own record of that person agrees. Whoever guesses the
most frequent value of the place is often right too, so rates of everybody separate an attack from a guess badly: what
separates them are people who are alone with their key in their place and unlike most of it (nonmodal uniques).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dualmandate.audit.rates import Rate
from dualmandate.errors import InvalidTables

if TYPE_CHECKING:
    import pyarrow


@dataclass(frozen=True)
class Keys:
    """What files are linked by: a place, and keys from exact to coarse; and what the attacker is after.

    `stages` are tried in turn: records and names that a stage linked are not linked again.
    """

    place: str
    stages: tuple[tuple[str, ...], ...]
    secret: tuple[str, ...]
    person: str = "person"  # who, in the outside file and in the confidential one


@dataclass(frozen=True)
class Linked:
    """How many names an attack or a guess put to records, and how many of these are right."""

    who: str
    names: int
    putative: int
    confirmed: int

    @property
    def precision(self) -> Rate | None:
        """The share of links that are right; None where there are no links."""
        return Rate(self.confirmed, self.putative) if self.putative else None


@dataclass(frozen=True)
class Reidentification:
    """Attack and baselines, for everybody and for nonmodal uniques; scored against confidential data, so internal.

    Guessers put the most frequent secret of the place to every name (modal), or draw one in proportion (proportional,
    as an expected number, rounded).
    """

    everybody: tuple[Linked, Linked, Linked]  # attack, modal, proportional
    nonmodal_uniques: tuple[Linked, Linked, Linked]
    attacker_knows: str


def reidentify(
    reconstructed: pyarrow.Table, outside: pyarrow.Table, confidential: pyarrow.Table, keys: Keys
) -> Reidentification:
    """Link reconstructed records to names, and judge the links by the confidential file.

    All three have the place and the columns of the stages; `outside` and `confidential` the person; `reconstructed`
    and `confidential` the secret.
    """
    import duckdb

    _check(reconstructed, (keys.place, *_columns(keys), *keys.secret), "reconstructed records")
    _check(outside, (keys.place, *_columns(keys), keys.person), "outside file")
    _check(confidential, (keys.place, *_columns(keys), *keys.secret, keys.person), "confidential file")
    with duckdb.connect() as connection:
        for name, table in (("recon", reconstructed), ("names", outside), ("truth", confidential)):
            connection.register(f"{name}_given", table)
            connection.execute(f"create table {name} as select *, row_number() over () as row from {name}_given")
        _link(connection, keys)
        _judge(connection, keys)
        groups = [_counted(connection, where) for where in ("true", "nonmodal and alone")]
    knows = f"{keys.place} and {', then '.join(' × '.join(stage) for stage in keys.stages)} of named people"
    return Reidentification(groups[0], groups[1], knows)


def _columns(keys: Keys) -> tuple[str, ...]:
    return tuple(dict.fromkeys(column for stage in keys.stages for column in stage))


def _check(table: pyarrow.Table, columns: Sequence[str], what: str) -> None:
    missing = [column for column in columns if column not in table.column_names]
    if missing:
        raise InvalidTables(
            f"the {what} lack {', '.join(missing)}",
            why="files are linked and judged by these columns",
            instead="name the columns of all three files alike",
        )


def _link(connection: Any, keys: Keys) -> None:
    """One record to one name, stage after stage; within a key in the order of the files, which says nothing."""
    connection.execute("create table links (record bigint, name bigint)")
    for stage in keys.stages:
        on = ", ".join(f'"{column}"' for column in (keys.place, *stage))
        connection.execute(
            f"""insert into links
            with r as (select row, {on}, row_number() over (partition by {on} order by row) as turn
                       from recon where row not in (select record from links)),
                 n as (select row, {on}, row_number() over (partition by {on} order by row) as turn
                       from names where row not in (select name from links))
            select r.row, n.row from r join n using ({on}, turn)"""
        )


def _judge(connection: Any, keys: Keys) -> None:
    """For every name that the agency knows: whether each method is right, and whether the person stands out."""
    place, person = f'"{keys.place}"', f'"{keys.person}"'
    secret = ", ".join(f'"{column}"' for column in keys.secret)
    row_of = f"row({secret})"
    widest = ", ".join(f'"{column}"' for column in (keys.place, *keys.stages[-1]))
    connection.execute(
        f"""create table secrets as select {place}, {row_of} as secret, count(*) as records from truth group by all"""
    )
    connection.execute(
        f"""create table places as select {place}, sum(records) as records,
            arg_max(secret, (records, secret)) as modal from secrets group by all"""
    )
    connection.execute(
        f"""create table judged as
        with alone as (select {widest}, count(*) = 1 as alone from truth group by {widest}),
             known as (select {person}, {place}, {row_of} as secret, alone from truth join alone using ({widest})),
             linked as (select l.name, {", ".join(f'recon."{column}"' for column in keys.secret)}
                        from links l join recon on recon.row = l.record)
        select names.row, linked.name is not null as linked,
               coalesce(row({", ".join(f'linked."{column}"' for column in keys.secret)}) = known.secret, false)
                   and linked.name is not null as correct,
               coalesce(known.secret = places.modal, false) as modal_right,
               coalesce(secrets.records / places.records, 0.0) as chance,
               coalesce(known.secret <> places.modal, false) as nonmodal, coalesce(alone, false) as alone
        from names
        left join known on known.{person} = names.{person} and known.{place} = names.{place}
        left join linked on linked.name = names.row
        left join places on places.{place} = names.{place}
        left join secrets on secrets.{place} = names.{place} and secrets.secret = known.secret"""
    )


def _counted(connection: Any, where: str) -> tuple[Linked, Linked, Linked]:
    names, linked, right, modal, chance = connection.execute(
        f"""select count(*), sum(linked::int), sum(correct::int), sum(modal_right::int), sum(chance)
        from judged where {where}"""
    ).fetchone()
    return (
        Linked("attack", names, int(linked or 0), int(right or 0)),
        Linked("modal guesser", names, names, int(modal or 0)),
        Linked("proportional guesser", names, names, round(float(chance or 0.0))),
    )
