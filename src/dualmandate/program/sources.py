"""From `[population]` to where the records lie, and what becomes of those that do not fit."""

from __future__ import annotations

import re

from dualmandate.errors import InvalidValue
from dualmandate.population import Attribute, Domain
from dualmandate.program.file import Document
from dualmandate.program.schema import AttributeTable, PopulationTable
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
from dualmandate.publication.rules import check_attribute_rule, check_unknown, default_rule

# In the name of a parameter of a URL: what nobody may know, and what tells who asks, and where.
_SECRET = re.compile("pass|pwd|secret|token", re.IGNORECASE)
_PRIVATE = re.compile("host|addr|server|port|user|uid|service|dsn|connect", re.IGNORECASE)


def rules_of(population: PopulationTable, domain: Domain, document: Document) -> Rules:
    """The rule of every attribute that states one, and those for impossible records.

    What replace-one neighbors ask of all rules together is asked when data are to be opened, not of a plan.
    """
    stated: dict[str, AttributeRule] = {}
    for name, table in population.attributes.items():
        if table.outside is None and table.null is None:
            continue
        attribute = domain.attribute(name)
        stated[name] = _rule(table, attribute)
        default = default_rule(attribute)
        for key, rule in (
            ("outside", AttributeRule(stated[name].outside, default.null)),
            ("null", AttributeRule(default.outside, stated[name].null)),
        ):
            with document.at("population", "attributes", name, key):
                check_attribute_rule(rule, attribute)
    moved = population.unknown_where_impossible
    if moved is not None:
        with document.at("population", "unknown_where_impossible"):
            check_unknown(moved, domain)
    return Rules(stated, moved, population.dropping_is_public)


def _rule(table: AttributeTable, attribute: Attribute) -> AttributeRule:
    default = default_rule(attribute)
    return AttributeRule(
        default.outside if table.outside is None else ValueRule(table.outside),
        default.null if table.null is None else ValueRule(table.null),
    )


def source_of(population: PopulationTable, document: Document) -> Source | None:
    """The source that the program names, a path being meant from where the program file stands."""
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
