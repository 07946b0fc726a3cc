"""A program: a file that says who is counted, what is asked, how it is produced and what society prefers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from dualmandate.choice import Limits, SocialWelfare
from dualmandate.errors import TooLarge
from dualmandate.population import Domain, Protection
from dualmandate.program.codes import CodeList
from dualmandate.program.domain import code_lists, domain_of, protection_of
from dualmandate.program.file import Document, read_document
from dualmandate.program.included import with_preferences
from dualmandate.program.plan import Plan
from dualmandate.program.reading import read_keys
from dualmandate.program.schema import ProgramFile
from dualmandate.program.sources import rules_of, source_of
from dualmandate.program.technology import MOST_MEASURED
from dualmandate.program.welfare import limits_of, welfare_of
from dualmandate.publication import Rules, Source
from dualmandate.workload import Tabulation, Workload


@dataclass(frozen=True, eq=False)
class Program:
    """What a program file says, as the rooms of the house understand it. Everything in it is public."""

    document: Document
    file: ProgramFile
    code_lists: Mapping[str, CodeList]
    domain: Domain
    protection: Protection
    workload: Workload
    welfare: SocialWelfare
    limits: Limits
    rules: Rules
    source: Source | None

    @property
    def name(self) -> str:
        """The name that its plans and releases are filed under."""
        return self.file.program.name

    def plan(
        self,
        remaining: Fraction | float | None = None,
        *,
        progress: Callable[[str], None] | None = None,
    ) -> Plan:
        """The privacy loss to choose and why, from public numbers alone.

        `remaining` is what the population's account has left, in the currency of the program; None where no ledger is
        counted. `progress` is told what is being done.
        """
        from dualmandate.program.planning import make_plan

        return make_plan(self, remaining, progress or (lambda _: None))


def load(path: str | Path) -> Program:
    """Read a program file and the code lists it names; anything that cannot be meant is refused with its place."""
    document = with_preferences(read_document(path))
    file = read_keys(document)
    lists = code_lists(file.population, document)
    domain = domain_of(file.population, lists, document)
    protection = protection_of(file, domain, document)
    workload = workload_of(file, domain, document)
    welfare = welfare_of(file, workload, document)
    limits = limits_of(file, welfare.currency, document)
    rules = rules_of(file.population, domain, document)
    source = source_of(file.population, document)
    return Program(document, file, lists, domain, protection, workload, welfare, limits, rules, source)


def workload_of(file: ProgramFile, domain: Domain, document: Document) -> Workload:
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
