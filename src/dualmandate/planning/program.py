"""A program that can be planned: what its file says, and what society prefers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from fractions import Fraction
from pathlib import Path

from dualmandate.choice import Limits, SocialWelfare
from dualmandate.planning.plan import Plan
from dualmandate.planning.welfare import limits_of, welfare_of
from dualmandate.program.program import ProgramFile, read_program


@dataclass(frozen=True, eq=False)
class Program(ProgramFile):
    """What a program file says, as the rooms of the house understand it, preferences included. All of it is public."""

    welfare: SocialWelfare
    limits: Limits

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
        from dualmandate.planning.make_plan import make_plan

        return make_plan(self, remaining, progress or (lambda _: None))


def load(path: str | Path) -> Program:
    """Read a program file and the code lists it names; anything that cannot be meant is refused with its place."""
    read = read_program(path)
    welfare = welfare_of(read.file, read.workload, read.document)
    limits = limits_of(read.file, welfare.privacy_measure, read.document)
    known = {field.name: getattr(read, field.name) for field in fields(read)}
    return Program(**known, welfare=welfare, limits=limits)
