"""Names for the records behind published tables: what is linked, by whose files, and what an attacker is after."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dualmandate.audit.finding import Reference
from dualmandate.audit.linkage.attack import METHODS, Linkage, Method
from dualmandate.audit.linkage.people import known_beside
from dualmandate.audit.linkage.people_files import Census, read_names, read_people
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.places import OnePlace
from dualmandate.audit.tables import ExactTables, NoisyTables
from dualmandate.errors import InvalidRequest, Place
from dualmandate.population import Attribute, Confidential, Domain
from dualmandate.publication import Rules

PERSON = "person"  # the column that names people, where nobody says another


@dataclass(frozen=True, eq=False)
class Homes:
    """What the tables of a target count: the records of one place, which places there are, and whose they are."""

    domain: Domain
    place: Attribute | None
    rules: Rules | None = None
    published: bool = True  # False: tables of a program, of records that are not told or of nobody

    @classmethod
    def of_program(cls, domain: Domain, place: OnePlace, rules: Rules, *, published: bool) -> Homes:
        """Those of a program, or of a release of one."""
        home = None if place.axis is None else domain.attributes[place.axis]
        return cls(place.domain, home, rules, published)


def linkage_targets(targets: Iterable[object], homes: Homes | None, options: AuditOptions) -> tuple[Linkage, ...]:
    """A linkage for all tables of counts among the targets, where names are asked for."""
    if options.outside is None and not options.secret:
        _check_nothing_else(options)
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
    census = Census(homes.domain, homes.place, options.person or PERSON)
    options.effort.say(f"reading the names of {outside.name}")
    names = read_names(outside, census, options.secret, keep_unknown=options.link == "splink")
    secret = options.secret or tuple(name for name in homes.domain.names if name not in names.known)
    if not secret:
        raise InvalidRequest(
            "the outside file says everything that the tables are about",
            why="an attacker links records to learn what the file does not say",
            instead=f"name with --secret what it is not to know: {', '.join(homes.domain.names)}",
            where=Place(file=str(outside)),
        )
    judges: Mapping[Reference, Confidential[object]] = {
        reference: read_people(path, census, homes.rules) for reference, path in options.files.items()
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


def _check_nothing_else(options: AuditOptions) -> None:
    for flag, given in (("--person", options.person is not None), ("--link", options.link != "exact")):
        if given:
            raise InvalidRequest(
                f"{flag} is given, and nothing is to be linked",
                why="it says how names are put to records",
                instead="name people with --outside FILE, or what an attacker is after with --secret ATTRIBUTE",
            )
