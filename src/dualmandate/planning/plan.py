"""A plan: the privacy loss to choose, what it buys and costs, why, and the digest that is approved.

A plan is pure: it rests on the program file and its code lists alone, never on the data, so it leaks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

from dualmandate.choice import Choice, Limits, Regret, SocialChoices, SocialWelfare, TornadoRow
from dualmandate.frontier import Frontier
from dualmandate.mechanism.strategy.strategy_file import strategy_digest
from dualmandate.planning.digest import PLAN_VERSION, Exact, digest_of, exact_content
from dualmandate.planning.extensions import Extensions
from dualmandate.planning.saving import Comparison, Saving
from dualmandate.planning.study import is_study
from dualmandate.planning.technology import Technology
from dualmandate.population import PrivacyLoss
from dualmandate.semantics import Guarantee

if TYPE_CHECKING:
    from dualmandate.planning.program import Program
    from dualmandate.planning.uncertainty import Uncertainty

MANY_TABLES, MOST_MOVED = 40, 20  # one of many tables moves the choice by little, and asking takes two more choices


@dataclass(frozen=True)
class TableConsequence:
    """What the choice means for one table, in its own unit and in dollars."""

    table: str
    unit: str
    query_count: int
    measured_in: str  # the group of tables it is measured with
    root_mean_squared_error: float  # in `unit`
    half_width: float  # 95 in 100 published numbers are off by at most this, in `unit`; the widest of the table
    root_mean_squared_consequence: float | None  # USD; None where no consequence was stated
    data_loss: float  # USD, all numbers of the table


@dataclass(frozen=True, eq=False)
class Plan:
    """What a program should publish, at which privacy loss, and why."""

    program: Program
    limits: Limits  # of the program, with what the ledger has left
    frontier: Frontier  # what the program asks for: one noise, or the best of all
    technologies: Mapping[str, Technology]
    technology: Technology  # the one that stands on the frontier at the choice
    choice: Choice
    loss: PrivacyLoss  # what a release of this plan spends, exactly
    allocation: Mapping[str, Fraction]  # of it, what each group of tables spends
    guarantee: Guarantee
    tables: tuple[TableConsequence, ...]
    comparisons: tuple[Comparison, ...]
    saving: Saving
    regrets: tuple[Regret, ...]
    tornado: tuple[TornadoRow, ...]
    notes: tuple[str, ...]
    extensions: Extensions = field(default_factory=Extensions)  # what the program asks for beyond the paper's model
    uncertainty: Uncertainty | None = None  # where some number states a standard error or a range
    social_choice: SocialChoices | None = None  # where the program asks for other ways to add people up

    @property
    def welfare(self) -> SocialWelfare:
        """What society prefers."""
        return self.program.welfare

    @property
    def charge(self) -> PrivacyLoss:
        """What its account is charged: the loss for as many records as its exact totals let change together."""
        return self.loss.for_records(self.program.protection.records_together)

    @property
    def frontiers(self) -> dict[str, Frontier]:
        """The frontier of each kind of noise that can serve the program, in the program's currency."""
        return {noise: technology.frontier for noise, technology in self.technologies.items()}

    @property
    def study(self) -> bool:
        """Whether it can only be compared, neither approved nor published: its noise is not drawn exactly."""
        return is_study(self.technology.noise)

    def uses(self, row: Comparison) -> bool:
        """Whether a row of the comparison is the technology in use."""
        return (row.noise, row.strategy) == (self.technology.noise, self.technology.strategy)

    @property
    def half_widths(self) -> dict[str, float]:
        """By table, what 95 in 100 published numbers are off by at most, in the table's unit."""
        return {table.table: table.half_width for table in self.tables}

    @cached_property
    def exact(self) -> dict[str, Exact]:
        """What the digest covers: exact things only."""
        program = self.program
        return {
            "plan": str(PLAN_VERSION),
            "program": exact_content(program.document.content),
            "attributes": [[attribute.name, str(attribute.size)] for attribute in program.domain.attributes],
            "code_lists": {name: codes.digest for name, codes in program.code_lists.items()},
            "mechanism": {"noise": self.technology.noise, "strategy": self.technology.strategy},
            "loss": {"amount": self.loss.exact(), "currency": str(self.loss.privacy_measure)},
            "measurements": [
                {
                    "tables": [table.name for table in measurement.workload.tables],
                    "loss": str(self.allocation[group]),
                    "sensitivity": str(measurement.sensitivity.power),
                    "norm": measurement.sensitivity.norm,
                    **self._exact_strategy(group),
                }
                for group, measurement in self.technology.measurements.items()
            ],
        }

    def _exact_strategy(self, group: str) -> dict[str, Exact]:
        """The whole-number rows that are measured, by their fingerprint; nothing where the tables or cells are."""
        found = self.technology.found.get(group)
        if found is None:
            return {}
        return {"strategy": {"rows": str(found.exact.rows), "digest": strategy_digest(found.exact)}}

    @property
    def digest(self) -> str:
        """SHA-256 over the exact part: what an approver signs, and what `publish` carries out."""
        return digest_of(self.exact)


def costliest(choice: Choice) -> tuple[str, ...]:
    """The tables whose worth the tornado moves: all of them, or the ones whose errors cost most where there are many.

    The elasticity of the choice in a table's worth is as its share of what errors cost at the margin.
    """
    ranked = sorted(choice.tables, key=lambda table: -(table.data_loss or 0.0))
    return tuple(table.table for table in (ranked if len(ranked) <= MANY_TABLES else ranked[:MOST_MOVED]))
