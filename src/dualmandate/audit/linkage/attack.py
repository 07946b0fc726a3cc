"""Re-identification: names for the records behind published tables, always beside those who guess.

Records are reconstructed, linked to a file of names by place and whatever both files hold, and judged by who knows.
Without a file of names, an attacker is assumed who has one as good as the agency's own, but for the secret. The file
that an attacker has is no confidential one: rows that cannot be used are counted, and a refusal names their lines. Of
the agency's own, which knows who is right, nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from dualmandate.audit.finding import Baseline, Finding, Rate, Reference
from dualmandate.audit.linkage.linking import (
    PERSON,
    PLACE,
    Claims,
    Linker,
    Reidentification,
    Stages,
    judge,
    known_beside,
    listed,
    put_names,
    stages_of,
)
from dualmandate.audit.options import AuditOptions, Effort, generator
from dualmandate.audit.reconstruction.exact import reconstruct_places
from dualmandate.audit.reconstruction.noisy import most_likely, whole_records
from dualmandate.audit.tables import PURPOSE, ExactTables, NoisyTables, OnePlace, open_truths
from dualmandate.errors import InvalidFile, InvalidRequest, InvalidTables, Place, Refusal, UnreadableSource
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.population.arrays import Booleans, Integers
from dualmandate.program.text_columns import read_text_columns
from dualmandate.publication import Rules, Source, source_file
from dualmandate.publication.rules import AttributeRule
from dualmandate.publication.sources import CsvFile, ParquetFile, SourceColumns, check_source, opened
from dualmandate.publication.tabulating import TabulationSpec, records_sql
from dualmandate.publication.wall import connected, guarded

if TYPE_CHECKING:
    import pyarrow

Method = Literal["exact", "splink"]
METHODS: dict[Method, str] = {
    "exact": "equal keys",
    "splink": "probabilities of agreement (Fellegi and Sunter's weights, estimated by splink)",
}
AS_GOOD = "of everybody, from a file as good as the agency's own"
UNIQUES = "nonmodal uniques (alone with their key in their place, and unlike most of it)"
GUESSERS = "modal and proportional guesser, who name a value for everybody"
GUESSER = ("modal guesser, of what is most frequent in the place", "proportional guesser, by the shares of the place")
PROVED_UNIQUES = "nonmodal uniques of places whose every record is proved"


@dataclass(frozen=True, eq=False)
class Names:
    """A file of named people, in positions of levels: a row a name, with the place and the attributes that it has.

    `left_out` says which rows could not be used, in words; None where all could.
    """

    file: str
    people: pyarrow.Table = field(repr=False)
    known: tuple[str, ...]
    left_out: str | None = None


@dataclass(frozen=True, eq=False)
class Linkage:
    """Published tables whose records are to be given names.

    `judges` are the records of those who know, named like the outside file, by whose they are. Without `outside`, names
    are taken from the truths of the tables. `published` says that the tables are: then links alone tell nothing
    confidential.
    """

    tables: ExactTables | NoisyTables
    domain: Domain  # of one place
    secret: tuple[str, ...]
    place: str | None = None  # what a place is called; None where there is one
    outside: Names | None = None
    judges: Mapping[Reference, Confidential[pyarrow.Table]] = field(default_factory=dict, repr=False)
    published: bool = True
    method: Method = "exact"

    @property
    def name(self) -> str:
        noise = f" ({self.tables.protection})" if isinstance(self.tables, NoisyTables) else ""
        return f"{self.tables.name}{noise}"

    @property
    def stages(self) -> Stages:
        known = known_beside(self.domain, self.secret) if self.outside is None else self.outside.known
        return stages_of(self.domain, known, self.secret)


@dataclass(frozen=True, eq=False)
class ReconstructedCounts:
    """Whole counts of the records behind tables, shape (places, cells), and for which places they are proved.

    `left_open` says where no whole file was found, in words; None where one was everywhere.
    """

    counts: Integers = field(repr=False)
    proved: Booleans = field(repr=False)  # (places,)
    left_open: str | None = None


def reconstructed_counts(tables: ExactTables | NoisyTables, effort: Effort, key: bytes) -> ReconstructedCounts:
    """Of exact tables one file that has them; of noisy ones the most likely file, in whole numbers."""
    if isinstance(tables, NoisyTables):
        likely = most_likely(tables.equations, tables.published, scales=tables.scales, expected=tables.expected)
        draws = generator(key, f"whole records: {tables.name}")
        counts = np.array([whole_records(each, draws=draws) for each in likely])
        return ReconstructedCounts(counts, np.zeros(len(likely), dtype=np.bool_))
    found = np.zeros((len(tables.places), tables.equations.size), dtype=np.int64)
    proved, late, done, wrong = np.zeros(len(tables.places), dtype=np.bool_), 0, 0, 0
    said = f"reconstructing places of {tables.name} for names"
    for place, each in reconstruct_places(tables, effort, said, variability=False):
        if isinstance(each, InvalidTables):
            wrong += 1
            continue
        found[place] = each.least if each.counts is None else each.counts
        proved[place] = each.unique
        late, done = late + (each.counts is None), done + 1
    bare = len(tables.places) - done - wrong
    words = (
        (f"in {late:,} places no file was found in time: only records proved there were linked", late),
        (f"in {bare:,} places some cells are counted by no number that is shown: nobody was linked there", bare),
        (f"in {wrong:,} places the tables contradict each other: nobody was linked there", wrong),
    )
    return ReconstructedCounts(found, proved, "; ".join(text for text, places in words if places) or None)


@dataclass(frozen=True)
class LinkageAttack:
    """Names for reconstructed records, linked by what both files hold."""

    effort: Effort = field(default_factory=Effort)
    name: str = "re-identification"

    def run(self, target: Linkage, key: bytes, /) -> tuple[Finding, ...]:
        self.effort.say(f"linking the records of {target.name} to names")
        found, stages = reconstructed_counts(target.tables, self.effort, key), target.stages
        records = stages.added(listed(found.counts, target.domain, proved=found.proved))
        linked = partial(put_names, records, keys=stages, linker=_linker(target))
        findings = guarded(lambda: tuple(self._found(target, stages, linked)), name=target.name)
        if found.left_open is None:
            return findings
        return tuple(
            replace(each, partial="; ".join(filter(None, (each.partial, found.left_open)))) for each in findings
        )

    def _found(self, target: Linkage, stages: Stages, linked: Any) -> Iterator[Finding]:
        make = partial(self._finding, target, stages)
        if target.outside is None:
            for reference, truth in open_truths(target.tables.truths).items():
                people = stages.added(listed(truth, target.domain))
                claims = linked(people)
                yield from _links(target, claims, partial(make, reference))
                yield from _judged(target, judge(claims, people, stages), partial(make, reference))
            return
        claims = linked(stages.added(target.outside.people))
        if target.published:
            yield from _links(target, claims, partial(make, "outside"))
        for reference, box in target.judges.items():
            if not target.published:
                yield from _links(target, claims, partial(make, reference))
            people = stages.added(box.open_for("judging links to names"))
            yield from _judged(target, judge(claims, people, stages), partial(make, reference))

    def _finding(
        self, target: Linkage, stages: Stages, reference: Reference, claim: str, success: Rate, *guesses: Baseline
    ) -> Finding:
        whose = AS_GOOD if target.outside is None else f"of the people in {target.outside.file}"
        return Finding(
            attack=self.name,
            claim=claim,
            success=success,
            baselines=guesses,
            attacker_knows=f"the tables, and {stages.words(target.place)} {whose}; linked by {METHODS[target.method]}",
            coarsening=target.tables.coarsening,
            reference=reference,
            partial=None if target.outside is None else target.outside.left_out,
        )


def _linker(target: Linkage) -> Linker | None:
    if target.method == "exact":
        return None
    from dualmandate.audit.linkage.probabilistic import probabilistic

    return probabilistic(target.domain)


def _links(target: Linkage, claims: Claims, make: Any) -> Iterator[Finding]:
    names = claims.names
    if names:
        yield make(
            f"putative rate: names that are linked to a record of {target.name}",
            Rate(claims.putative, names),
            Baseline("links by chance, to records like those of people everywhere", Rate(claims.by_chance, names)),
            Baseline(GUESSERS, Rate(names, names)),
        )


def _judged(target: Linkage, found: Reidentification, make: Any) -> Iterator[Finding]:
    """Rates for everybody and for uniques, where there are any, beside guessers who know the shares of each place."""
    secret = " and ".join(target.secret)
    groups = (("names", found.everybody), (UNIQUES, found.nonmodal_uniques), (PROVED_UNIQUES, found.proved_uniques))
    for who, group in groups:
        if who == UNIQUES and group.putative_rate is not None:
            putative = f"putative rate: {UNIQUES} that are linked to a record of {target.name}"
            yield make(putative, group.putative_rate, Baseline(GUESSERS, Rate(group.names, group.names)))
        if who != PROVED_UNIQUES and group.confirmed_rate is not None:
            confirmed = f"confirmed rate: {who} whose {secret} is told rightly from {target.name}"
            yield make(confirmed, group.confirmed_rate, *map(Baseline, GUESSER, group.guesses or ()))
        if group.precision is not None:
            precision = f"precision: links of {who} to records of {target.name} that tell {secret} rightly"
            yield make(precision, group.precision, *map(Baseline, GUESSER, group.guesses_on_links or ()))


@dataclass(frozen=True, eq=False)
class Homes:
    """What the tables of a target count: the records of one place, which places there are, and whose they are."""

    domain: Domain
    place: Attribute | None
    rules: Rules | None = None
    published: bool = True  # False: tables of a program, of records that are not told or of nobody
    person: str = "person"  # the column that names people in a file of them

    def columns(self, known: Sequence[str]) -> Domain:
        """Some attributes and the place, last, as one domain; structural zeros where all attributes are there."""
        kept = self.domain.project(known)
        more = () if self.place is None else (self.place,)
        return Domain((*kept.attributes, *more), kept.hierarchies, kept.structural_zeros)

    @classmethod
    def of_program(cls, domain: Domain, place: OnePlace, rules: Rules, *, published: bool) -> Homes:
        home = None if place.axis is None else domain.attributes[place.axis]
        return cls(place.domain, home, rules, published)


def linkage_targets(targets: Iterable[object], homes: Homes | None, options: AuditOptions) -> tuple[Linkage, ...]:
    """A linkage for all tables of counts among the targets, where names are asked for."""
    if options.outside is None and not options.secret:
        for flag, given in (("--person", options.person is not None), ("--link", options.link != "exact")):
            if given:
                raise InvalidRequest(
                    f"{flag} is given, and nothing is to be linked",
                    why="it says how names are put to records",
                    instead="name people with --outside FILE, or what an attacker is after with --secret ATTRIBUTE",
                )
        return ()
    tables = [each for each in targets if isinstance(each, ExactTables | NoisyTables)]
    if homes is None or not tables:
        raise InvalidRequest(
            "names are to be linked to records, and there are none",
            why="records are reconstructed from tables of counts, and none of these can be",
            instead="audit tables of counts, or leave --outside and --secret out",
        )
    method = _method(options)
    found = (
        _own(tables, homes, options) if options.outside is None else _outside(tables, homes, options, options.outside)
    )
    return tuple(replace(each, method=method) for each in found)


def _own(tables: list[ExactTables | NoisyTables], homes: Homes, options: AuditOptions) -> Iterator[Linkage]:
    """Linked to names as good as those of the records themselves, but for the secret."""
    known_beside(homes.domain, options.secret)
    if not any(each.truths for each in tables):
        raise InvalidRequest(
            "records are to be linked, and no file of names is given",
            why="nobody knows whose the records are: neither an outside file nor the true records are named",
            instead="name people with --outside FILE, or the true records with --confidential FILE",
        )
    place = None if homes.place is None else homes.place.name
    for each in tables:
        yield Linkage(each, homes.domain, options.secret, place, published=homes.published)


def _outside(
    tables: list[ExactTables | NoisyTables], homes: Homes, options: AuditOptions, outside: Path
) -> Iterator[Linkage]:
    if not homes.published and not options.files:
        raise InvalidRequest(
            "people from outside are to be linked to people who do not exist",
            why="a program's tables are made of people drawn for the audit, where no records are named",
            instead="name the true records with --confidential FILE; or leave --outside out and name what an attacker "
            "is after with --secret",
            where=Place(file=str(outside)),
        )
    _check_different(outside, options.files)
    for name in options.secret:
        homes.domain.attribute(name)
    homes = homes if options.person is None else replace(homes, person=options.person)
    options.effort.say(f"reading the names of {outside.name}")
    names = read_names(outside, homes, options.secret, keep_unknown=options.link == "splink")
    secret = options.secret or tuple(name for name in homes.domain.names if name not in names.known)
    if not secret:
        raise InvalidRequest(
            "the outside file says everything that the tables are about",
            why="an attacker links records to learn what the file does not say",
            instead=f"name with --secret what it is not to know: {', '.join(homes.domain.names)}",
            where=Place(file=str(outside)),
        )
    judges: Mapping[Reference, Confidential[object]] = {
        reference: read_people(path, homes) for reference, path in options.files.items()
    }
    place = None if homes.place is None else homes.place.name
    for each in tables:
        own = {reference: box for reference, box in judges.items() if reference in each.truths}
        yield Linkage(each, homes.domain, secret, place, names, own, homes.published)


def _check_different(outside: Path, files: Mapping[Reference, Path]) -> None:
    for reference, path in files.items():
        if outside.exists() and path.exists() and outside.samefile(path):
            raise InvalidRequest(
                f"the outside file is the {reference} one",
                why="links would be judged by the file that they were made with",
                instead="leave --outside out and name what an attacker is after with --secret, who is then taken to "
                "know everything else",
                where=Place(file=str(outside)),
            )


def _method(options: AuditOptions) -> Method:
    method = next((each for each in METHODS if each == options.link), None)
    if method is None:
        raise InvalidRequest(
            f"names cannot be linked by '{options.link}'",
            why=f"there are {' and '.join(METHODS)}",
            instead="leave --link out, or name one of them",
        )
    if method == "splink":
        from dualmandate.audit.linkage.probabilistic import check_installed

        check_installed()
    return method


def read_people(path: Path, homes: Homes) -> Confidential[pyarrow.Table]:
    """The agency's own named records, boxed: PERSON, PLACE and the position of each level; others are left out."""
    source = source_file(path)
    check_source(source)
    domain = homes.columns(homes.domain.names)
    spec = TabulationSpec(domain, Protection(identifier=homes.person), homes.rules or Rules())

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
    return Confidential(PURPOSE, _coded(homes, domain, people.column("person"), list(levels)))


def read_names(path: Path, homes: Homes, secret: Sequence[str], *, keep_unknown: bool) -> Names:
    """An outside file: the place, the person, and those attributes that it has and the attacker is not after.

    Rows with values that are not declared are left out and counted; `keep_unknown` keeps those that have some left.
    """

    def work(source: Source) -> Names:
        with connected() as connection, opened(source, connection, (), counted=False) as found:
            known = _known(found, homes, secret, path)
            domain = homes.columns(known)
            drop = Rules({each.name: AttributeRule() for each in domain.attributes})
            spec = TabulationSpec(replace(domain, structural_zeros=()), Protection(identifier=homes.person), drop)
            columns = ", ".join(f"level_{axis}::BIGINT AS level_{axis}" for axis in range(len(domain.attributes)))
            reading = records_sql(found, spec, connection)
            connection.execute(f"CREATE TEMP TABLE named AS SELECT unit::VARCHAR AS person, {columns} FROM ({reading})")
            left_out = _check(connection, domain, homes, path, keep_unknown=keep_unknown)
            people = connection.sql("SELECT * FROM usable ORDER BY person").to_arrow_table()
            levels = [people.column(f"level_{number}") for number in range(len(domain.attributes))]
            return Names(path.name, _coded(homes, domain, people.column("person"), levels), known, left_out)

    try:
        source = source_file(path)
        check_source(source)
        if not isinstance(source, CsvFile | ParquetFile):
            raise UnreadableSource(
                f"the outside file '{path.name}' is neither CSV nor Parquet",
                why="files of names are read in these two forms",
                instead="write it as one of them",
            )
        return guarded(partial(work, source), name=source.name)
    except Refusal as refusal:
        raise refusal.at(Place(file=str(path))) from None


def _known(found: SourceColumns, homes: Homes, secret: Sequence[str], path: Path) -> tuple[str, ...]:
    place = None if homes.place is None else homes.place.name
    for column, why in ((homes.person, "it names the people"), (place, "people are linked within their place")):
        if column is not None and column not in found.types:
            raise InvalidTables(
                f"the outside file has no column '{column}'",
                why=why,
                instead="rename the column that does, or name it with --person"
                if column == homes.person
                else "rename the column that does",
                where=Place(str(path), None if path.suffix == ".parquet" else 1, column),
            )
    known = tuple(name for name in homes.domain.names if name in found.types and name not in secret)
    if not known:
        raise InvalidTables(
            "the outside file has none of the attributes that records are linked by",
            why=f"these are {', '.join(name for name in homes.domain.names if name not in secret)}",
            instead="name its columns as the attributes are named",
            where=Place(str(path), None if path.suffix == ".parquet" else 1),
        )
    return known


def _check(connection: Any, domain: Domain, homes: Homes, path: Path, *, keep_unknown: bool) -> str | None:
    """Make the table `usable` and say what is left out; refuse an empty file, people who stand twice, no usable row."""
    names = [*domain.names, homes.person]
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
        raise _twice(path, homes.person, twice)
    keys = levels if homes.place is None else levels[:-1]
    needed = [*([] if homes.place is None else levels[-1:]), "person"]
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
    lines = None if path.suffix == ".parquet" else _first_twice(path, person)
    return InvalidTables(
        f"{count:,} of the people in the outside file stand there more than once",
        why="a record is linked to one name" + (f"; that of this line stands on line {lines[0]} too" if lines else ""),
        instead=f"give each person one row and a '{person}' of their own",
        where=Place(str(path), lines[1] if lines else None, person),
    )


def _first_twice(path: Path, person: str) -> tuple[int, int] | None:
    """Two lines with one name; None where the file is read by another dialect."""
    try:
        text = read_text_columns(path, "outside file", largest=path.stat().st_size)
    except InvalidFile:
        return None
    seen: dict[str, int] = {}
    for line, name in zip(text.lines, text.columns[person], strict=True):
        if name and name in seen:
            return seen[name], line
        seen[name] = line
    return None


def _coded(homes: Homes, domain: Domain, persons: Any, levels: Sequence[Any]) -> pyarrow.Table:
    """A table of people: who, where, and the position of each level, which may not be known."""
    import pyarrow

    columns = dict(zip(domain.names, levels, strict=True))
    home = np.zeros(len(persons), np.int64) if homes.place is None else columns.pop(homes.place.name)
    return pyarrow.table({PLACE: home, PERSON: persons, **columns})
