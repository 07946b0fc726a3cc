"""Names for reconstructed records: linked to an outside file, and judged beside guesses that need no attack.

An attacker has a file of names with place, sex and age (of some quality), and wants what only the agency has: race and
origin. A link is *putative*; it is *confirmed* where the agency's own record of that person agrees. Whoever guesses the
most frequent value of the place is often right too, so rates of everybody separate an attack from a guess badly: what
separates them are people who are alone with their key in their place and unlike most of it, nonmodal uniques [ABCD23].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from dualmandate.audit.finding import Rate
from dualmandate.errors import InvalidRequest, InvalidTables
from dualmandate.population import Attribute, Domain
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.publication.sources import quoted
from dualmandate.publication.wall import connected

if TYPE_CHECKING:
    import pyarrow

ROW = "@row"  # The column that numbers a file's rows; attributes have no such names.
PARTS = 10**9  # Expected numbers are added in parts of this size: whole numbers add up the same in any order.
Linker = Callable[[Any, "Stages"], None]  # fills the table `links` (record, name) of a connection
_JUDGED = f"""CREATE TEMP TABLE judged AS
WITH shares AS (SELECT place, secret, count(*) AS alike FROM truth GROUP BY ALL),
     places AS (SELECT place, sum(alike)::BIGINT AS records, max(alike) AS most,
                       count(*) FILTER (alike = largest) AS as_frequent
                FROM (SELECT *, max(alike) OVER (PARTITION BY place) AS largest FROM shares) GROUP BY place),
     alone AS (SELECT place, widest FROM truth GROUP BY ALL HAVING count(*) = 1),
     once AS (SELECT * FROM truth QUALIFY row_number() OVER (PARTITION BY person ORDER BY row) = 1),
     known AS (SELECT once.person, place, secret, alike, records,
                      CASE WHEN alike = most THEN {PARTS} // as_frequent ELSE 0 END AS modal,
                      alike < most AND alone.place IS NOT NULL AS nonmodal
               FROM once JOIN shares USING (place, secret) JOIN places USING (place)
               LEFT JOIN alone USING (place, widest))
SELECT claims.linked, claims.proved, coalesce(claims.linked AND claims.secret = known.secret, false) AS correct,
       coalesce(known.modal, 0)::BIGINT AS modal,
       coalesce(round({PARTS} * alike / records), 0)::BIGINT AS chance, coalesce(nonmodal, false) AS nonmodal
FROM claims LEFT JOIN known ON known.person = claims.person AND known.place = claims.place"""
PLACE, PERSON, PROVED = "@place", "@person", "@proved"  # columns beside the attributes, which have no such names
BIN = 5  # So many levels of an ordered attribute are linked as one, where no grouping is declared.


@dataclass(frozen=True, eq=False)
class CoarserAttribute:
    """An attribute in groups: `assignment[i]` is the group of level i; shape (size,)."""

    name: str
    attribute: str
    assignment: Integers = field(repr=False)


@dataclass(frozen=True, eq=False)
class Stages:
    """By which columns lists are linked within a place, from exact to coarse, and what the attacker is after.

    `stages` are tried in turn: records and names that a stage linked are not linked again. Each is coarser than the one
    before it; `coarser` says how its columns are made.
    """

    stages: tuple[tuple[str, ...], ...]
    coarser: Mapping[str, CoarserAttribute] = field(repr=False)
    secret: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for stage in self.stages for column in stage))

    def added(self, people: pyarrow.Table) -> pyarrow.Table:
        """People with a column for every coarser key; what is not there stays so."""
        import pyarrow

        for name, each in self.coarser.items():
            groups = pyarrow.array(each.assignment)
            people = people.append_column(name, groups.take(people.column(each.attribute).combine_chunks()))
        return people

    def words(self, place: str | None) -> str:
        """What an attacker must know of somebody; `place` is what a place is called, None where there is one."""
        listed = ", then ".join(" × ".join(stage) for stage in self.stages)
        return listed if place is None else f"{place} and {listed}"


@dataclass(frozen=True, eq=False)
class Claims:
    """What an attacker says of each name: whether it was linked to a record, and the secret of that record.

    `table` has a row a name: `person`, `place`, `linked`, `secret` as one value, and `proved`, whether every record of
    the place is. `by_chance` is how many names are linked where as many records are drawn for each place from what
    people everywhere are like.
    """

    table: pyarrow.Table = field(repr=False)
    names: int
    putative: int
    by_chance: int


@dataclass(frozen=True)
class LinkageCounts:
    """Links of some people, how many are right, and how many of the same a guesser gets right who names everybody.

    Guessers know the true shares of each place: one says its most frequent secret (modal; of several as frequent, one
    at random), one draws a secret in proportion (proportional); both as expected numbers, rounded. They are counted
    twice: for all names, beside the confirmed rate, and for those that the attack linked, beside its precision.
    """

    names: int
    putative: int
    confirmed: int
    modal: int
    proportional: int
    modal_on_links: int
    proportional_on_links: int

    @property
    def putative_rate(self) -> Rate | None:
        """The share of names that were linked; None where there are no names."""
        return _rate(self.putative, self.names)

    @property
    def confirmed_rate(self) -> Rate | None:
        """The share of names that were linked rightly; None where there are no names."""
        return _rate(self.confirmed, self.names)

    @property
    def precision(self) -> Rate | None:
        """The share of links that are right; None where there are no links."""
        return _rate(self.confirmed, self.putative)

    @property
    def guesses(self) -> tuple[Rate, Rate] | None:
        """What the modal and the proportional guesser get right of all names; None where there are none."""
        return (Rate(self.modal, self.names), Rate(self.proportional, self.names)) if self.names else None

    @property
    def guesses_on_links(self) -> tuple[Rate, Rate] | None:
        """What the modal and the proportional guesser get right of the linked names; None where there are none."""
        if not self.putative:
            return None
        return Rate(self.modal_on_links, self.putative), Rate(self.proportional_on_links, self.putative)


@dataclass(frozen=True)
class Reidentification:
    """Links and guesses for everybody and for nonmodal uniques; scored against confidential data, so internal.

    `proved_uniques` are the nonmodal uniques of places whose every record is proved.
    """

    everybody: LinkageCounts
    nonmodal_uniques: LinkageCounts
    proved_uniques: LinkageCounts


def put_names(
    reconstructed: pyarrow.Table, outside: pyarrow.Table, keys: Stages, *, linker: Linker | None = None
) -> Claims:
    """Link each record to one name at most, stage after stage, and say of each name what its record says.

    Names and records with equal keys meet in the order of digests of a name and of a number, which say nothing about
    them: what a link tells does not depend on the order of levels.
    """
    _check(reconstructed, (PLACE, *keys.columns, *keys.secret), "reconstructed records")
    _check(outside, (PLACE, *keys.columns, PERSON), "names of the outside file")
    with connected() as connection:
        person = f"{quoted(PERSON)}::VARCHAR"
        proof = quoted(PROVED) if PROVED in reconstructed.column_names else "false"
        _keyed(connection, "recon", reconstructed, keys, f"{_secret(keys)} AS secret, {proof} AS proved")
        _keyed(connection, "names", outside, keys, f"{person} AS person, md5({person}) AS lot")
        connection.execute("CREATE TEMP TABLE links (record BIGINT, name BIGINT)")
        (linker or link_in_stages)(connection, keys)
        by_chance = _by_chance(connection, keys)
        table = connection.sql(
            """WITH proofs AS (SELECT place, bool_and(proved) AS proved FROM recon GROUP BY place)
            SELECT names.person, names.place, links.name IS NOT NULL AS linked, recon.secret,
                   coalesce(proofs.proved, false) AS proved
            FROM names LEFT JOIN links ON links.name = names.row LEFT JOIN recon ON recon.row = links.record
            LEFT JOIN proofs ON proofs.place = names.place ORDER BY names.row"""
        ).to_arrow_table()
        (putative,) = _numbers(connection, "SELECT count(*) FROM links")
    return Claims(table, table.num_rows, putative, by_chance)


def link_in_stages(connection: Any, keys: Stages) -> None:
    """Equal keys are linked, one record to one name, stage after stage."""
    for stage in keys.stages:
        on = ", ".join(("place", *(f"k{keys.columns.index(column)}" for column in stage)))
        connection.execute(
            f"""INSERT INTO links
            WITH r AS (SELECT row, {on},
                              row_number() OVER (PARTITION BY {on} ORDER BY md5('record ' || row), row) AS turn
                       FROM recon ANTI JOIN links ON links.record = recon.row),
                 n AS (SELECT row, {on}, row_number() OVER (PARTITION BY {on} ORDER BY lot, row) AS turn
                       FROM names ANTI JOIN links ON links.name = names.row)
            SELECT r.row, n.row FROM r JOIN n USING ({on}, turn)"""
        )


def judge(claims: Claims, truth: pyarrow.Table, keys: Stages) -> Reidentification:
    """How many claims are right by the agency's own records, beside guessers who know the shares of each place.

    A person who stands in the file more than once is judged by the first record; one who lives elsewhere is no match.
    """
    _check(truth, (PLACE, PERSON, *keys.stages[-1], *keys.secret), "records of the confidential file")
    with connected() as connection:
        widest = ", ".join(quoted(column) for column in keys.stages[-1])
        connection.register("truth_given", _with_rows(truth))
        connection.register("claims", claims.table)
        connection.execute(
            f"""CREATE TEMP TABLE truth AS SELECT {quoted(ROW)} AS row, {quoted(PERSON)}::VARCHAR AS person,
                {quoted(PLACE)} AS place, {_secret(keys)} AS secret, row({widest}, 0) AS widest FROM truth_given"""
        )
        connection.execute(_JUDGED)
        groups = [_counted(connection, where) for where in ("true", "nonmodal", "nonmodal AND proved")]
    return Reidentification(*groups)


def _counted(connection: Any, where: str) -> LinkageCounts:
    names, putative, confirmed, modal, chance, modal_linked, chance_linked = _numbers(
        connection,
        f"""SELECT count(*), count(*) FILTER (linked), count(*) FILTER (correct), sum(modal),
            sum(chance), sum(modal) FILTER (linked), sum(chance) FILTER (linked)
        FROM judged WHERE {where}""",
    )
    every = [min(round(parts / PARTS), names) for parts in (modal, chance)]
    linked = [min(round(parts / PARTS), putative) for parts in (modal_linked, chance_linked)]
    return LinkageCounts(names, putative, confirmed, every[0], every[1], linked[0], linked[1])


def _by_chance(connection: Any, keys: Stages) -> int:
    """Links to as many records a place, with keys drawn from those of all names: Σ min(names, records × share).

    At the widest key, where all stages end.
    """
    on = ", ".join(f"k{keys.columns.index(column)}" for column in keys.stages[-1]) or "0"
    (parts,) = _numbers(
        connection,
        f"""WITH keyed AS (SELECT place, row({on}, 0) AS key FROM names),
            own AS (SELECT place, key, count(*) AS names FROM keyed GROUP BY ALL),
            everywhere AS (SELECT key, count(*) AS names FROM keyed GROUP BY key),
            sizes AS (SELECT place, count(*) AS records FROM recon GROUP BY place)
        SELECT sum(round({PARTS} * least(own.names, sizes.records * everywhere.names / (SELECT count(*) FROM keyed)))
                   ::BIGINT)
        FROM own JOIN everywhere USING (key) JOIN sizes USING (place)""",
    )
    return round(parts / PARTS)


def _keyed(connection: Any, name: str, table: pyarrow.Table, keys: Stages, more: str) -> None:
    """A file as the table `name`: its rows in order, the place, and every key as k0, k1, …."""
    connection.register(f"{name}_given", _with_rows(table))
    columns = ", ".join(f"{quoted(column)} AS k{number}" for number, column in enumerate(keys.columns))
    connection.execute(
        f"CREATE TEMP TABLE {name} AS SELECT {quoted(ROW)} AS row, {quoted(PLACE)} AS place, {columns}, {more} "
        f"FROM {name}_given"
    )


def _with_rows(table: pyarrow.Table) -> pyarrow.Table:
    """The engine reads in any order: rows are numbered before."""
    import pyarrow

    return table.append_column(ROW, pyarrow.array(np.arange(table.num_rows)))


def _secret(keys: Stages) -> str:
    return f"row({', '.join(quoted(column) for column in keys.secret)}, 0)"


def _numbers(connection: Any, statement: str) -> tuple[int, ...]:
    return tuple(int(number or 0) for number in connection.execute(statement).fetchall()[0])


def _check(table: pyarrow.Table, columns: Sequence[str], what: str) -> None:
    missing = [column for column in dict.fromkeys(columns) if column not in table.column_names]
    if missing:
        raise InvalidTables(
            f"the {what} lack {', '.join(missing)}",
            why="files are linked and judged by these columns",
            instead="name the columns of all three files alike",
        )


def _rate(successes: int, trials: int) -> Rate | None:
    return Rate(successes, trials) if trials else None


def stages_of(domain: Domain, known: Sequence[str], secret: Sequence[str]) -> Stages:
    """First the attributes as they are, then all of them one step coarser, as long as one can be.

    An attribute takes the groupings that are declared for it, finest first; an ordered one without any takes bins of
    five levels.
    """
    ladders = {name: _ladder(domain, domain.attribute(name)) for name in known}
    steps = zip_longest(*([each.name for each in ladder] for ladder in ladders.values()))
    stages, last = [tuple(known)], list(known)
    for step in steps:
        last = [new or old for new, old in zip(step, last, strict=True)]
        stages.append(tuple(last))
    coarser = {each.name: each for ladder in ladders.values() for each in ladder}
    return Stages(tuple(stages), coarser, tuple(secret))


def _ladder(domain: Domain, attribute: Attribute) -> list[CoarserAttribute]:
    declared = next((each for each in domain.hierarchies if each.attribute == attribute.name), None)
    if declared is not None:
        found = []
        for grouping in reversed(declared.groupings):
            alone = grouping.size + np.arange(attribute.size)  # a level in no group stands for itself
            assigned = np.where(grouping.assignment < 0, alone, grouping.assignment)
            found.append(CoarserAttribute(grouping.name, attribute.name, assigned))
        return found
    numbers = attribute.size - (attribute.missing is not None)
    if not attribute.ordered or numbers <= BIN:
        return []
    bins = np.arange(attribute.size) // BIN
    bins[numbers:] = bins.max() + 1
    return [CoarserAttribute(f"{attribute.name} in bins of {BIN}", attribute.name, bins)]


def listed(counts: Integers, domain: Domain, *, proved: Booleans | None = None) -> pyarrow.Table:
    """One row a record: its place, its person (a number) and the position of each level.

    `counts` has shape (places, cells); `proved`, shape (places,), says whose every record is proved.
    """
    import pyarrow

    places, cells = np.nonzero(counts)
    times = counts[places, cells]
    columns = dict(zip(domain.names, np.unravel_index(cells, domain.shape), strict=True))
    found = {name: np.repeat(levels.astype(np.int64), times) for name, levels in columns.items()}
    homes = np.repeat(places, times)
    more = {PLACE: homes, PERSON: np.arange(len(homes)), PROVED: np.zeros(len(homes), dtype=np.bool_)}
    if proved is not None:
        more[PROVED] = proved[homes]
    return pyarrow.table({**more, **found})


def reidentify_counts(
    found: Integers, truth: Integers, domain: Domain, *, secret: Sequence[str], proved: Booleans | None = None
) -> Reidentification:
    """Names for the records of reconstructed counts, by an attacker who knows everything of everybody but the secret.

    `found` and `truth` have shape (places, cells): what was reconstructed and what is true; `secret` are attributes of
    `domain`, all others are the key. `proved`, shape (places,), says of which places every record is proved. For
    example, over generated blocks and what `reconstruct` gives of each:

        found = np.array([each.counts for each in solved])
        proved = np.array([each.unique for each in solved])
        links = reidentify_counts(found, truth, generated_blocks.domain(), secret=("hispanic", "race"), proved=proved)
        links.nonmodal_uniques.precision, links.nonmodal_uniques.guesses_on_links   # Rate; (modal, proportional)
    """
    stages = stages_of(domain, known_beside(domain, secret), secret)
    names = stages.added(listed(truth, domain))
    claims = put_names(stages.added(listed(found, domain, proved=proved)), names, stages)
    return judge(claims, names, stages)


def known_beside(domain: Domain, secret: Sequence[str]) -> tuple[str, ...]:
    """All attributes but the secret; refused where nothing is secret, or nothing left."""
    for name in secret:
        domain.attribute(name)
    known = tuple(name for name in domain.names if name not in secret)
    if not known or not secret:
        raise InvalidRequest(
            f"an attacker who knows {'nothing' if not known else 'everything'} of a record",
            why="names are put to records by what is known, to learn what is not",
            instead=f"name some of {', '.join(domain.names)} as the secret, not all",
        )
    return known
