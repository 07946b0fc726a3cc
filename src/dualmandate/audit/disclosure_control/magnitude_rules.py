"""Tables of sums: whether the second largest contributor of a cell can tell the largest, and what each rule hides.

Whoever contributes to a published sum subtracts their own number: what is left bounds the largest. Primary rules hide
cells where that bound is close; complementary suppression hides others, so that sums of sums do not bring it back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from dualmandate.audit.disclosure_control.methods import (
    PROTECTED,
    PrimaryRule,
    dominated,
    few_contributors,
    hidden_beside,
    linked_numbers,
    told_by_second,
)
from dualmandate.audit.finding import Baseline, Finding, Rate
from dualmandate.audit.options import Effort
from dualmandate.audit.reconstruction.solving import UNBOUNDED
from dualmandate.audit.suppression.cells import LinkedTables, audit_suppression
from dualmandate.audit.tables import Equations, OnePlace, levels_in_words
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.wording import percent
from dualmandate.workload import Identity, Table, Total, Workload

CLOSE = 0.1  # The largest contribution is told where it is known within this share of it.
RULES: dict[str, PrimaryRule] = {
    "fewer than 3 contributors hidden": partial(few_contributors, least=3),
    "hidden where 2 make up 85 %": partial(dominated, contributors=2, share=0.85),
    "hidden by the 10 % rule": partial(told_by_second, share=CLOSE),
}


@dataclass(frozen=True, eq=False)
class SummedTables:
    """Sums of one number of the records of each place; `truth` are counts of cells, shape (places, cells).

    `workload` counts whose numbers are added up in each sum; `numbers` is what a record of each cell adds, ≥ 0, in the
    smallest unit.
    """

    name: str
    workload: Workload
    numbers: Integers = field(repr=False)  # (cells,)
    truth: Integers = field(repr=False)
    coarsening: str

    @cached_property
    def members(self) -> Equations:
        """The cells whose records each sum adds up."""
        return Equations.of_workload(self.workload)

    @cached_property
    def sums(self) -> Integers:
        """What would be published; shape (places, sums)."""
        return self.members.of(self.truth * self.numbers)

    def contributions(self, place: int, row: int) -> Floats:
        """What each record adds to a sum, the largest first; whoever adds nothing is no contributor."""
        cells = self.members.cells[self.members.starts[row] : self.members.starts[row + 1]]
        all_numbers = np.repeat(self.numbers[cells], self.truth[place, cells])
        return np.asarray(np.sort(all_numbers[all_numbers > 0])[::-1], dtype=np.float64)


def counting_members(workload: Workload, summed: int) -> Workload:
    """Tables of sums as tables of contributors: the summed attribute is added over."""
    tables = []
    for table in workload.tables:
        factors = tuple(Total(each.size) if axis == summed else each for axis, each in enumerate(table.factors))
        tables.append(replace(table, factors=factors, axes=None, tabulation=None))
    return Workload(workload.domain, tuple(tables))


def hidden_sums(target: SummedTables, rule: PrimaryRule) -> tuple[Booleans, Booleans]:
    """Which sums a rule hides in each place, and which are hidden with complementary ones; (places, sums) each."""
    places, rows = target.sums.shape
    primary = np.array([[rule(target.contributions(p, r)) for r in range(rows)] for p in range(places)])
    return primary, hidden_beside(linked_numbers(target.workload), target.sums, primary, share=PROTECTED)


def disclosed_contributors(target: SummedTables, hidden: Booleans) -> Booleans:
    """Where the second largest contributor tells the largest within a share of it; shape (places, sums).

    A hidden sum is taken for the largest that the shown ones leave possible.
    """
    relations, largest = linked_numbers(target.workload), target.sums.astype(np.float64)
    for place in np.flatnonzero(hidden.any(axis=1)):
        if relations.rows:
            audit = audit_suppression(LinkedTables(relations, target.sums[place], hidden[place]))
            largest[place, audit.cells] = np.where(audit.largest >= UNBOUNDED, np.inf, audit.largest)
        else:
            largest[place, hidden[place]] = np.inf
    found = np.zeros(hidden.shape, dtype=np.bool_)
    for place, row in np.argwhere(target.sums > 0):
        own = target.contributions(place, row)
        second = own[1] if len(own) > 1 else 0.0
        found[place, row] = largest[place, row] - second - own[0] < CLOSE * own[0]
    return found


@dataclass(frozen=True)
class ContributorsAttack:
    """What a contributor learns of another, under each rule."""

    effort: Effort = field(default_factory=Effort)
    name: str = "contributors to sums"

    def run(self, target: SummedTables, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        return tuple(self._findings(target))

    def _findings(self, target: SummedTables) -> Iterator[Finding]:
        occupied = int((target.sums > 0).sum())
        if not occupied:
            return
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows="their own number, as the second largest contributor where there is one, and all shown sums",
            coarsening=target.coarsening,
            reference="synthetic",
            counted_in_full=True,
        )
        claim = f"sums of {target.name} whose largest contributor is told within {percent(CLOSE)}"
        nothing = np.zeros(target.sums.shape, dtype=np.bool_)
        open_rate = Rate(int(disclosed_contributors(target, nothing).sum()), occupied)
        beside = Baseline("whoever has no tables", Rate(0, occupied))
        yield make(claim=f"{claim} (all shown)", success=open_rate, baselines=(beside,))
        for words, rule in RULES.items():
            self.effort.say(f"contributors to sums: {words}")
            primary, hidden = hidden_sums(target, rule)
            lost = target.sums[hidden].sum() / target.sums.sum()
            rate, more = Rate(int(disclosed_contributors(target, hidden).sum()), occupied), hidden & ~primary
            extra = f"{int(primary.sum()):,} sums, {int(more.sum()):,} more beside them, {percent(lost)} of all"
            beside = Baseline("with all sums shown", open_rate)
            yield make(claim=f"{claim} ({words}: {extra})", success=rate, baselines=(beside,))


def summed_tables(
    workload: Workload, place: OnePlace, people: Integers, clipped: Mapping[str, str]
) -> Iterator[SummedTables]:
    """The sums of each number, by place; those that are not by place, or of numbers below 0, are left out.

    `people` has shape (places, cells of one place); `clipped` says by table what is added up.
    """
    axis = place.axis
    for name in dict.fromkeys(_summed(table) for table in workload.tables):
        if name is None or name not in place.domain.names:
            continue
        summed = place.domain.axis(name)
        values = place.domain.attributes[summed].grid_values
        own = [table for table in workload.tables if _summed(table) == name and _counts(table)]
        inside = [table for table in own if axis is None or isinstance(table.factors[axis], Identity)]
        if not inside or values.min() < 0:
            continue
        tables = tuple(
            Table(table.name, tuple(each for a, each in enumerate(table.factors) if a != axis)) for table in inside
        )
        shape = [1] * len(place.domain.shape)
        shape[summed] = -1
        numbers = np.broadcast_to(values.reshape(shape), place.domain.shape).reshape(-1)
        names = " and ".join(f"'{table.name}'" for table in inside)
        names += f" ({clipped[inside[0].name]})" if inside[0].name in clipped else ""
        counting = counting_members(Workload(place.domain, tables), summed)
        yield SummedTables(names, counting, numbers, people, levels_in_words(place.domain))


def _summed(table: Table) -> str | None:
    return None if table.tabulation is None else table.tabulation.sum_of


def _counts(table: Table) -> bool:
    """Whether records are added up as they are: no weights of levels, and no number of them left out."""
    made = table.tabulation
    return made is not None and not made.weights and made.sum_of not in dict(made.where)
