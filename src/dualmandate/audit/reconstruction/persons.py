"""Persons from counts, means and medians of groups: every list of persons that has the published statistics.

For a handful of people the unknowns are the people themselves: an age (or another whole number) and a kind (one value
of each category), sorted, so that no list is counted twice. Every helping variable is defined both ways, so that none
is free to multiply solutions. After each solution the list is excluded and the search goes on until there is no other:
then the number of solutions is proved.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import pairwise, product
from math import ceil, comb, floor, prod
from typing import Any

from dualmandate.audit.finding import MOST_DETAILS, Baseline, Finding, Range, proved_share
from dualmandate.audit.options import Effort, cp_sat, cp_solver, parallel_map
from dualmandate.audit.reconstruction.solving import HOW, Conflicts, Status
from dualmandate.errors import InvalidTables, TooLarge

SECONDS = 60.0
MOST_PERSONS = 30
MOST_SOLUTIONS = 1000
MOST_KINDS = 256
QUESTIONS = 10  # The search for all lists of one place may take the time of this many questions.

Person = tuple[int, tuple[str, ...]]  # the number, and the level of each category


@dataclass(frozen=True)
class Implication:
    """A rule of the world: whoever has these levels has at least this number ("married": 15 or older)."""

    levels: Mapping[str, str]
    least: int


@dataclass(frozen=True)
class Variables:
    """What is known of each person: one whole number within bounds, and categories with their levels."""

    number: str
    least: int
    largest: int
    categories: Mapping[str, tuple[str, ...]]
    rules: tuple[Implication, ...] = ()

    def __post_init__(self) -> None:
        kinds = prod(len(levels) for levels in self.categories.values())
        if self.least > self.largest or not kinds:
            raise InvalidTables(
                f"'{self.number}' runs from {self.least} to {self.largest}, and there are {kinds} kinds of persons",
                why="nobody could be described so",
                instead="state a range and at least one level of each category",
            )
        if kinds > MOST_KINDS:
            raise TooLarge(
                f"{kinds:,} kinds of persons",
                why=f"persons are found one by one among at most {MOST_KINDS} kinds",
                instead="group levels, or attack the counts alone",
            )

    @property
    def kinds(self) -> tuple[tuple[str, ...], ...]:
        """Every combination of levels, in the order of the categories."""
        return tuple(product(*self.categories.values()))

    def within(self, group: Mapping[str, str]) -> tuple[int, ...]:
        for name, level in group.items():
            if level not in self.categories.get(name, ()):
                raise InvalidTables(
                    f"a group of '{name}' = '{level}'",
                    why="there is no such category or level",
                    instead=f"use {', '.join(self.categories)} and their levels",
                )
        names = tuple(self.categories)
        wanted = {names.index(name): level for name, level in group.items()}
        return tuple(k for k, kind in enumerate(self.kinds) if all(kind[i] == v for i, v in wanted.items()))


@dataclass(frozen=True)
class Statistic:
    """What was published of one group: how many, and the median and mean of their number, as printed.

    A mean of 36.7 stands for anything that rounds to it; a median is exact. What is None was not published.
    """

    name: str
    group: Mapping[str, str]
    count: int | None = None
    median: Decimal | None = None
    mean: Decimal | None = None


@dataclass(frozen=True, eq=False)
class GroupStatistics:
    """Counts, means and medians of groups of a handful of people, place after place."""

    name: str
    variables: Variables
    statistics: Mapping[str, tuple[Statistic, ...]] = field(repr=False)  # by place
    coarsening: str


@dataclass(frozen=True)
class PersonReconstruction:
    """All lists of persons with the published statistics; sorted by number, then by kind."""

    solutions: tuple[tuple[Person, ...], ...] = field(repr=False)
    complete: bool  # these are all, proved; otherwise time or patience ended

    @property
    def unique(self) -> bool:
        """Whether it is proved who these persons were."""
        return self.complete and len(self.solutions) == 1

    @property
    def common(self) -> tuple[Person, ...]:
        """Persons that are in every solution, as often as in the one that has them least."""
        if not self.solutions:
            return ()
        kept = list(self.solutions[0])
        for other in self.solutions[1:]:
            left, both = list(other), []
            for person in kept:
                if person in left:
                    left.remove(person)
                    both.append(person)
            kept = both
        return tuple(kept)


def reconstruct_persons(
    variables: Variables,
    statistics: Sequence[Statistic],
    *,
    most_solutions: int = MOST_SOLUTIONS,
    seconds: float = SECONDS,
) -> PersonReconstruction:
    """Every list of persons with these statistics; refused where there is none.

    The statistic of the empty group says how many persons there are. `seconds` bound the search for each solution, ten
    times as many that for all of them.
    """
    cp_model, solver = cp_sat(), cp_solver(seconds)
    model = _Model(variables, _persons(statistics), statistics)
    found: list[tuple[Person, ...]] = []
    ends = time.monotonic() + QUESTIONS * seconds
    while len(found) < most_solutions and (not found or time.monotonic() < ends):
        status = solver.solve(model.model)
        if status == cp_model.INFEASIBLE:
            if not found:
                raise _contradiction(variables, statistics, seconds)
            return PersonReconstruction(tuple(sorted(found)), complete=True)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            break
        found.append(model.read(solver))
        model.exclude(solver)
    return PersonReconstruction(tuple(sorted(found)), complete=False)


def _persons(statistics: Sequence[Statistic]) -> int:
    counts = {statistic.count for statistic in statistics if not statistic.group and statistic.count is not None}
    if len(counts) != 1:
        raise InvalidTables(
            "the number of persons is not published"
            if not counts
            else "two different numbers of persons are published",
            why="the statistic of the whole population says how many persons to look for",
            instead="give one statistic of everybody, with its count",
        )
    persons = counts.pop()
    if not 1 <= persons <= MOST_PERSONS:
        raise TooLarge(
            f"{persons:,} persons",
            why=f"persons are found one by one, 1 to {MOST_PERSONS} of them",
            instead="attack the counts alone, which has no such limit" if persons else "there is nobody to find",
        )
    return persons


class _Model:
    """The unknown persons and what is known of them."""

    def __init__(self, variables: Variables, persons: int, statistics: Iterable[Statistic]) -> None:
        self.variables, self.model = variables, cp_sat().CpModel()
        kinds = range(len(variables.kinds))
        self.numbers = [self.model.new_int_var(variables.least, variables.largest, "") for _ in range(persons)]
        self.codes = [self.model.new_int_var(0, len(kinds) - 1, "") for _ in range(persons)]
        self.is_kind = [[self.model.new_bool_var("") for _ in kinds] for _ in range(persons)]
        for number, code, own in zip(self.numbers, self.codes, self.is_kind, strict=True):
            self.model.add_exactly_one(own)
            self.model.add(code == sum(k * own[k] for k in kinds))
            for rule in variables.rules:
                for k in variables.within(rule.levels):
                    self.model.add(number >= rule.least).only_enforce_if(own[k])
        orders = [len(kinds) * n + c for n, c in zip(self.numbers, self.codes, strict=True)]
        for before, after in pairwise(orders):
            self.model.add(before <= after)
        for statistic in statistics:
            self._say(statistic)

    def _say(self, statistic: Statistic) -> None:
        kinds = self.variables.within(statistic.group)
        inside = []
        for own in self.is_kind:
            member = self.model.new_bool_var("")
            self.model.add(member == sum(own[k] for k in kinds))
            inside.append(member)
        if statistic.count is not None:
            self.model.add(sum(inside) == statistic.count)
        if (statistic.mean, statistic.median) != (None, None):
            if not statistic.count:
                raise InvalidTables(
                    f"'{statistic.name}' has a mean or median and no count",
                    why="what a mean says of a sum depends on how many they are",
                    instead="give the count of its group, above 0, or leave it out",
                )
            if statistic.mean is not None:
                self._say_mean(inside, statistic.count, statistic.mean)
            if statistic.median is not None:
                self._say_median(inside, statistic.count, statistic.median, statistic.name)

    def _say_mean(self, inside: list[Any], count: int, printed: Decimal) -> None:
        half = Fraction(1, 2) / 10 ** max(-int(printed.as_tuple().exponent), 0)
        mean, terms = Fraction(printed), []
        for member, number in zip(inside, self.numbers, strict=True):
            term = self.model.new_int_var(min(self.variables.least, 0), max(self.variables.largest, 0), "")
            self.model.add(term == number).only_enforce_if(member)
            self.model.add(term == 0).only_enforce_if(~member)
            terms.append(term)
        least, most = ceil((mean - half) * count), floor((mean + half) * count)
        self.model.add_linear_constraint(sum(terms), least, most)

    def _say_median(self, inside: list[Any], count: int, median: Decimal, name: str) -> None:
        twice, middle = 2 * Fraction(median), (count + 1) // 2
        ranks = (middle, middle) if count % 2 else (middle, middle + 1)
        if twice.denominator != 1:
            raise InvalidTables(
                f"'{name}' has the median {median}",
                why="the median of whole numbers is whole or halfway between two of them",
                instead="give the median as it was published",
            )
        self.model.add(sum(self._ranked(inside, rank) for rank in ranks) == int(twice))

    def _ranked(self, inside: list[Any], rank: int) -> Any:
        """The number of the member with this rank; persons are sorted, so it is the first by which so many came."""
        value = self.model.new_int_var(self.variables.least, self.variables.largest, "")
        for i, (member, number) in enumerate(zip(inside, self.numbers, strict=True)):
            came, here = self.model.new_bool_var(""), self.model.new_bool_var("")
            self.model.add(sum(inside[: i + 1]) == rank).only_enforce_if(came)
            self.model.add(sum(inside[: i + 1]) != rank).only_enforce_if(~came)
            self.model.add_bool_and([came, member]).only_enforce_if(here)
            self.model.add_bool_or([~came, ~member, here])
            self.model.add(value == number).only_enforce_if(here)
        return value

    def read(self, solver: Any) -> tuple[Person, ...]:
        kinds = self.variables.kinds
        return tuple(
            (int(solver.value(n)), kinds[solver.value(c)]) for n, c in zip(self.numbers, self.codes, strict=True)
        )

    def exclude(self, solver: Any) -> None:
        """Ask for another list of persons than this solution."""
        unknowns = [*self.numbers, *self.codes]
        self.model.add_forbidden_assignments(unknowns, [[solver.value(each) for each in unknowns]])


def _contradiction(variables: Variables, statistics: Sequence[Statistic], seconds: float) -> InvalidTables:
    """The refusal: statistics are left out as long as the rest contradicts itself."""
    cp_model, persons = cp_sat(), _persons(statistics)

    def state(some: list[int], left: float) -> Status:
        status = cp_solver(left).solve(_Model(variables, persons, (statistics[each] for each in some)).model)
        known: dict[Any, Status] = {cp_model.INFEASIBLE: "impossible", cp_model.UNKNOWN: "unknown"}
        return known.get(status, "found")

    ask = Conflicts(state, seconds)  # one question: which of them contradict each other
    kept = [statistics[each].name for each in ask.shrink(range(len(statistics)))]
    return InvalidTables(
        f"the statistics contradict each other: {', '.join(kept)}",
        why=f"no {persons:,} persons have all of them ({HOW['unfinished' if ask.unsure else 'minimal']})",
        instead="check these statistics, and the rules and ranges that go with them",
    )


@dataclass(frozen=True)
class PersonsAttack:
    """Every list of persons with the published counts, means and medians."""

    effort: Effort = field(default_factory=Effort)
    name: str = "persons from means and medians"

    def run(self, target: GroupStatistics, key: bytes, /) -> tuple[Finding, ...]:  # noqa: ARG002 - nothing is drawn
        occupied = [  # elsewhere nobody lives, and nothing is to be found
            (place, statistics)
            for place, statistics in target.statistics.items()
            if {each.count for each in statistics if not each.group} != {0}
        ]
        found: dict[str, PersonReconstruction] = {}
        for place, solved in parallel_map(partial(self._solved, target), occupied, self.effort.workers):
            found[place] = solved
            self.effort.count(f"looking for the persons of {target.name}", len(found), len(occupied))
        return tuple(self._findings(target, found))

    def _solved(
        self, target: GroupStatistics, place: tuple[str, tuple[Statistic, ...]]
    ) -> tuple[str, PersonReconstruction]:
        name, statistics = place
        try:
            return name, reconstruct_persons(target.variables, statistics, seconds=self.effort.seconds)
        except InvalidTables as refusal:
            if len(target.statistics) == 1:
                raise
            words = f"in {name}, {refusal.what}"
            raise InvalidTables(words, why=refusal.why, instead=refusal.instead, where=refusal.where) from None

    def _findings(self, target: GroupStatistics, found: dict[str, PersonReconstruction]) -> Iterator[Finding]:
        late = [place for place, each in found.items() if not each.complete]
        words = f"time or the number of solutions ended the search in {len(late):,} of {len(found):,} places"
        make = partial(
            Finding,
            attack=self.name,
            attacker_knows="the published statistics and the rules that go with them",
            coarsening=target.coarsening,
            reference="published",
            partial=words if late else None,
        )
        solved = {place: each for place, each in found.items() if each.solutions}
        if found:
            unique = sum(each.unique for each in found.values())
            yield proved_share(make, f"places where all records follow from {target.name}", unique, len(found))
        if solved:
            counts = [len(each.solutions) for each in solved.values()]
            yield make(
                claim=f"lists of persons that fit {target.name}" + (", at least" if late else ""),
                success=Range(min(counts), max(counts), "a place"),
                baselines=(Baseline("without the statistics, at least", Range(*_lists(target, solved), "a place")),),
            )
            persons = sum(len(each.solutions[0]) for each in solved.values())
            common = [(place, *person) for place, each in solved.items() for person in each.common]
            yield proved_share(
                make,
                f"persons who are in every list that fits {target.name}",
                sum(len(each.common) for each in solved.values() if each.complete),
                persons,
                details=tuple(f"{place}: {number} {' '.join(kind)}" for place, number, kind in common[:MOST_DETAILS]),
            )


def _lists(target: GroupStatistics, solved: dict[str, PersonReconstruction]) -> tuple[float, float]:
    """How many lists of so many persons there are at all: choices with repetition among numbers and kinds."""
    kinds = len(target.variables.kinds) * (target.variables.largest - target.variables.least + 1)
    sizes = [len(each.solutions[0]) for each in solved.values()]
    return float(comb(kinds + min(sizes) - 1, min(sizes))), float(comb(kinds + max(sizes) - 1, max(sizes)))
