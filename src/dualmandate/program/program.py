"""A program: a file that says who is counted, what is asked, how it is produced and what society prefers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

from dualmandate.errors import InvalidValue, TooLarge, did_you_mean
from dualmandate.population import Domain, Neighbors, Protection, Units
from dualmandate.population.currency import checked_currency, currency_of
from dualmandate.population.rational import written
from dualmandate.population.shown import cut_line
from dualmandate.population.units import singular
from dualmandate.population.wording import clipped_words, stated_amount
from dualmandate.program.dictionary import document_of_mapping
from dualmandate.program.domain import NO_BOUNDS, check_selection, code_lists, domain_of, protection_of
from dualmandate.program.file import Document, read_document
from dualmandate.program.reading import read_keys
from dualmandate.program.schema import PopulationTable, ProgramKeys, WorkloadTable
from dualmandate.program.text_columns import TextColumns
from dualmandate.publication import (
    AttributeRule,
    CsvFile,
    DatabaseTable,
    Rules,
    Source,
    SparkTable,
    ValueRule,
    source_file,
)
from dualmandate.publication.release_spec import NUMBER_OF_RECORDS
from dualmandate.publication.rules import check_attribute_rule, check_unknown, default_rule
from dualmandate.workload import Ratio, Tabulation, Workload

MOST_MEASURED = 10**9  # A table, or a histogram whose every cell is measured, has at most this many numbers.
SHARE = "share"  # the unit of a ratio of two numbers in one unit
TABLE, KEY = "preferences", "from"
# In the name of a parameter of a URL: what nobody may know, and what tells who asks, and where.
_SECRET = re.compile("pass|pwd|secret|token", re.IGNORECASE)
_PRIVATE = re.compile("host|addr|server|port|user|uid|service|dsn|connect", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """What a program file says of people, tables and records: all that publishing needs. Everything in it is public.

    What society prefers stands in the same file; planning reads it (`dualmandate.planning.program.Program`).
    """

    document: Document
    file: ProgramKeys
    code_lists: Mapping[str, TextColumns]
    domain: Domain
    protection: Protection
    workload: Workload
    ratios: tuple[Ratio, ...]
    rules: Rules
    source: Source | None
    units: Units
    bounds: Mapping[str, Fraction] = field(default_factory=dict, kw_only=True)  # upper ones that a plan chose

    def __repr__(self) -> str:
        tables = ", ".join(f"'{table.name}'" for table in self.workload.tables)
        return cut_line(f"Program('{self.name}': account '{self.file.population.account}', {tables})")

    @property
    def name(self) -> str:
        """The name that its plans and releases are filed under."""
        return self.file.program.name

    @property
    def account(self) -> str:
        """Whose privacy is spent: an account of the ledger."""
        return self.file.population.account

    @property
    def seen_in_the_data(self) -> tuple[str, ...]:
        """What it took from the records, as it says itself."""
        return tuple(self.file.population.seen_in_the_data)

    @property
    def expected_records(self) -> float:
        """At most so many records are counted of as many units as the population has."""
        population = self.file.population
        return float(population.population_size.value) * population.most_records_per_unit

    @property
    def table_units(self) -> dict[str, str]:
        """What each table counts: its stated unit, or the protected one."""
        return {table.name: table.unit or self.units.singular for table in self.file.workload}

    @property
    def ratio_units(self) -> dict[str, str]:
        """What each ratio is counted in: "USD per person", or a share where both of its tables have one unit."""
        found, units = {}, self.table_units
        for ratio in self.ratios:
            parts = [units.get(each.name, self.units.singular) for each in (ratio.numerator, ratio.denominator)]
            found[ratio.name] = SHARE if self.units.agree(*parts) else " per ".join(parts)
        return found

    @property
    def clipped(self) -> dict[str, str]:
        """What each table counts where amounts or records are clipped, in words; the others are not there."""
        words = {table.name: self._clipped(table) for table in self.file.workload}
        for ratio in self.ratios:
            parts = [(each.name, words.get(each.name)) for each in (ratio.numerator, ratio.denominator)]
            said = "; ".join(f"{name}: {clipped}" for name, clipped in parts if clipped is not None)
            words[ratio.name] = said or None
        return {name: said for name, said in words.items() if said is not None}

    def _clipped(self, table: WorkloadTable) -> str | None:
        if table.at_bound_of is not None:
            name = table.at_bound_of
            unit = next((other.unit for other in self.file.workload if other.sum_of == name), None)
            upper, step = self.domain.attribute(name).upper or Fraction(0), self.domain.attribute(name).grid
            rounded = step is not None and self.file.population.attributes[name].grid is not None  # halves upward
            top, least = (
                stated_amount(upper, unit),
                stated_amount(upper - (step or 0) / 2, unit) if rounded else "so much",
            )
            who = self.units.plural if self.protection.most_records_per_unit == 1 else "records"
            clamped = self.rules.of(self.domain.attribute(name)).outside is ValueRule.CLAMP
            words = f"{who} whose {name} is counted as {top}" + (f": {least}, or more" if clamped else "")
            limited = clipped_words(None, None, self.protection)
            return words if limited is None else f"{words}; {limited}"
        attribute = None if table.sum_of is None else self.domain.attribute(table.sum_of)
        outside = "clamp" if attribute is None else str(self.rules.of(attribute).outside)
        return clipped_words(attribute, table.unit, self.protection, outside=outside)


def read_stated(path: str | Path | Mapping[str, object]) -> tuple[Document, ProgramKeys]:
    """A program file, or a dictionary with its keys, and these keys, before anything is made of them."""
    stated = document_of_mapping(path) if isinstance(path, Mapping) else read_document(path)
    return read_keys(with_preferences(stated))


def read_program(path: str | Path, bounds: Mapping[str, Fraction] = NO_BOUNDS) -> ProgramFile:
    """Read a program file and the code lists it names; anything that cannot be meant is refused with its place.

    `bounds` are the upper bounds that its plan chose, where the file leaves some to it.
    """
    return program_of(*read_stated(path), bounds)


def program_of(document: Document, file: ProgramKeys, bounds: Mapping[str, Fraction] = NO_BOUNDS) -> ProgramFile:
    """What the keys of a program mean."""
    lists = code_lists(file.population, document)
    domain = domain_of(file.population, lists, document, bounds)
    protection, workload = protection_of(file, domain, document), workload_of(file, domain, document)
    return ProgramFile(
        document,
        file,
        lists,
        domain,
        protection=protection,
        workload=workload,
        ratios=ratios_of(file, workload, protection, document),
        rules=rules_of(file.population, domain, document),
        source=source_of(file.population, document),
        units=units_of(file, document),
        bounds=dict(bounds),
    )


def with_bounds(program: ProgramFile, bounds: Mapping[str, Fraction]) -> ProgramFile:
    """The same program with other upper bounds of what it leaves to its plan."""
    domain = domain_of(program.file.population, program.code_lists, program.document, bounds)
    workload = workload_of(program.file, domain, program.document)
    return replace(program, domain=domain, workload=workload, bounds=dict(bounds))


def units_of(file: ProgramKeys, document: Document) -> Units:
    """The units of a program: its protected unit, and what its tables count besides."""
    protected, currency = file.population.unit, file.program.currency
    with document.at("program", "currency"):
        checked_currency(currency)
    with document.at("population", "unit"):
        units = Units(protected, currency=currency)
    others: dict[str, None] = {}
    for position, table in enumerate(file.workload):
        if table.unit is not None:
            with document.at("workload", position, "unit"):
                word, money = singular(table.unit), currency_of(table.unit)
                if money is not None and money != currency:
                    raise units.other_money(money, table.unit)
                if money is None and word.casefold() != singular(protected).casefold():
                    others[word] = None
                    Units(protected, (word,), currency)
    return Units(protected, tuple(others), currency)


def workload_of(file: ProgramKeys, domain: Domain, document: Document) -> Workload:
    """The tables of the program as queries on its domain, in the order of the file."""
    tabulations = []
    for position, table in enumerate(file.workload):
        check_selection(table, domain, document, "workload", position)
        if table.sum_of is not None:
            with document.at("workload", position, "sum_of"):
                domain.attribute(table.sum_of).grid_values  # noqa: B018 - refused where there are no numbers
        if table.at_bound_of is not None:
            with document.at("workload", position, "at_bound_of"):
                domain.attribute(table.at_bound_of).grid_values  # noqa: B018 - refused where there are no numbers
        with document.at("workload", position):
            tabulation = tabulation_of(table, table.names, domain)
            made = tabulation.table(domain)
            if made.query_count > MOST_MEASURED:
                raise TooLarge(
                    f"the table '{table.name}' has {made.query_count:.3g} numbers",
                    why=f"a published table has at most {MOST_MEASURED:,}",
                    instead="tabulate by fewer attributes, or by coarser groups of them",
                )
            tabulations.append(tabulation)
    with document.at("workload"):
        return Workload.from_tabulations(domain, tabulations)


def ratios_of(file: ProgramKeys, workload: Workload, protection: Protection, document: Document) -> tuple[Ratio, ...]:
    """The ratios of the program, each of two tables or exact totals that are there."""
    exact = [Tabulation(each.name, each.by, each.where) for each in protection.invariants]
    if protection.neighbors is Neighbors.REPLACE_ONE:
        exact.append(Tabulation(NUMBER_OF_RECORDS))
    known = {table.name: table for table in (*(each.table(workload.domain) for each in exact), *workload.tables)}
    found = []
    for position, stated in enumerate(file.ratios):
        if stated.name in known:
            raise InvalidValue(
                f"the ratio '{stated.name}' has the name of a table",
                why="a release names its tables, and one would hide the other",
                instead="give the ratio a name of its own",
                where=document.place(("ratios", position, "name")),
            )
        for key, name in (("numerator", stated.numerator), ("denominator", stated.denominator)):
            if name not in known:
                raise InvalidValue(
                    f"the {key} of '{stated.name}' is '{name}', and there is no table of that name",
                    why="a ratio is made of tables that are published anyway: nothing more is measured for it",
                    instead=did_you_mean(name, known, f"add a [[workload]] table called '{name}'"),
                    where=document.place(("ratios", position, key)),
                )
        with document.at("ratios", position):
            found.append(Ratio(stated.name, known[stated.numerator], known[stated.denominator]))
    return tuple(found)


def tabulation_of(table: WorkloadTable, by: Sequence[str], domain: Domain) -> Tabulation:
    """What a table asks for, at the detail of some attributes or groupings."""
    where = [*table.where.items()]
    if table.at_bound_of is not None:
        where.append((table.at_bound_of, (written(domain.attribute(table.at_bound_of).upper or Fraction(0)),)))
    weights = tuple((name, tuple(of_levels.items())) for name, of_levels in table.weights.items())
    sums = tuple((name, each) for name, each in table.sums.items() if name in by)
    plain = Tabulation(table.name, tuple(by), tuple(where), weights, table.sum_of)
    return replace(plain, sums=sums)


def with_preferences(document: Document) -> Document:
    """The program with the preferences that it refers to; a key may stand in one of the two files, not in both.

    What that file says takes the place of `from`, before anything is checked: a plan is signed with the numbers in it.
    """
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


def rules_of(population: PopulationTable, domain: Domain, document: Document) -> Rules:
    """The rule of every attribute that states one, and those for impossible records.

    What replace-one neighbors ask of all rules together is asked when the program is planned: a check needs none of it.
    """
    stated: dict[str, AttributeRule] = {}
    for name, table in population.attributes.items():
        if table.outside is None and table.null is None:
            continue
        attribute = domain.attribute(name)
        default = default_rule(attribute)
        outside = default.outside if table.outside is None else ValueRule(table.outside)
        null = default.null if table.null is None else ValueRule(table.null)
        stated[name] = AttributeRule(outside, null)
        each = {"outside": AttributeRule(outside, default.null), "null": AttributeRule(default.outside, null)}
        for key, rule in each.items():
            with document.at("population", "attributes", name, key):
                check_attribute_rule(rule, attribute)
    moved = population.unknown_where_impossible
    if moved is not None:
        with document.at("population", "unknown_where_impossible"):
            check_unknown(moved, domain)
    return Rules(stated, moved, population.dropping_is_public)


def source_of(population: PopulationTable, document: Document) -> Source | None:
    """Where the records lie, as the program names it; a path is meant from where the program file stands."""
    table = population.source
    if table is None:
        return None
    if table.spark is not None:
        return SparkTable(table.spark)
    if table.table is not None:
        if table.url is not None:
            _check_publishable(table.url, document)
        return DatabaseTable(table.table, table.url, table.url_variable)
    assert table.path is not None
    key = () if isinstance(document.value(("population", "source")), str) else ("path",)
    if "://" in table.path:
        # Not repeated: a URL may hold a password.
        raise InvalidValue(
            "the source is a URL where a path is meant",
            why="a database is named by its URL and a table",
            instead='write source = { url = "…", table = "…" }',
            where=document.place(("population", "source", *key)),
        )
    with document.at("population", "source", *key):
        file = source_file(document.path.parent / table.path)
    if table.delimiter is None:
        return file
    if isinstance(file, CsvFile):
        return CsvFile(file.path, table.delimiter)
    raise InvalidValue(
        "delimiter says nothing about this source",
        why="only the values of a CSV file are separated by a character",
        instead="leave it out",
        where=document.place(("population", "source", "delimiter")),
    )


def _check_publishable(url: str, document: Document) -> None:
    """Refuse a URL that tells a password, a user or a host: a release carries the program file. It is not repeated."""
    import sqlalchemy as sql

    place = document.place(("population", "source", "url"))
    try:
        parts = sql.make_url(url)
    except sql.exc.ArgumentError:
        parts = None
    if parts is None:
        raise InvalidValue(
            "the url of the source is none",
            why="SQLAlchemy cannot read it",
            instead="write one such as sqlite:///people.sqlite or postgresql:///DATABASE",
            where=place,
        )
    secret = parts.password is not None or any(_SECRET.search(name) for name in parts.query)
    private = parts.username or parts.host or parts.port or any(_PRIVATE.search(name) for name in parts.query)
    if secret or private:
        raise InvalidValue(
            f"the url of the source holds {'a password' if secret else 'a user or a host'}",
            why="everything in a program file is public: releases carry it along",
            instead='put the URL into an environment variable and write source = { url_variable = "…", table = "…" }',
            where=place,
        )
