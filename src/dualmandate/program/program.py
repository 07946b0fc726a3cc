"""A program: a file that says who is counted, what is asked, how it is produced and what society prefers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dualmandate.errors import TooLarge
from dualmandate.population import Domain, Protection
from dualmandate.population.units import singular
from dualmandate.program.domain import code_lists, domain_of, protection_of
from dualmandate.program.file import Document, read_document
from dualmandate.program.included import with_preferences
from dualmandate.program.reading import read_keys
from dualmandate.program.schema import ProgramKeys
from dualmandate.program.sources import rules_of, source_of
from dualmandate.program.text_columns import TextColumns
from dualmandate.publication import Rules, Source
from dualmandate.workload import Tabulation, Workload

MOST_MEASURED = 10**9  # A table, or a histogram whose every cell is measured, has at most this many numbers.


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
    rules: Rules
    source: Source | None

    @property
    def name(self) -> str:
        """The name that its plans and releases are filed under."""
        return self.file.program.name

    @property
    def units(self) -> dict[str, str]:
        """What each table counts: its stated unit, or the protected one."""
        protected = singular(self.file.population.unit)
        return {table.name: table.unit or protected for table in self.file.workload}


def read_program(path: str | Path) -> ProgramFile:
    """Read a program file and the code lists it names; anything that cannot be meant is refused with its place."""
    document = with_preferences(read_document(path))
    file = read_keys(document)
    lists = code_lists(file.population, document)
    domain = domain_of(file.population, lists, document)
    return ProgramFile(
        document,
        file,
        lists,
        domain,
        protection=protection_of(file, domain, document),
        workload=workload_of(file, domain, document),
        rules=rules_of(file.population, domain, document),
        source=source_of(file.population, document),
    )


def workload_of(file: ProgramKeys, domain: Domain, document: Document) -> Workload:
    """The tables of the program as queries on its domain, in the order of the file."""
    tabulations = []
    for position, table in enumerate(file.workload):
        for number, name in enumerate(table.by):
            with document.at("workload", position, "by", number):
                domain.resolve(name)
        for name, levels in table.where.items():
            with document.at("workload", position, "where", name):
                domain.mask(name, levels)
        if table.sum_of is not None:
            with document.at("workload", position, "sum_of"):
                domain.attribute(table.sum_of).grid_values  # noqa: B018 - refused where there are no numbers
        with document.at("workload", position):
            tabulation = Tabulation(
                table.name,
                by=table.by,
                where=tuple(table.where.items()),
                weights=tuple((name, tuple(weights.items())) for name, weights in table.weights.items()),
                sum_of=table.sum_of,
            )
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
