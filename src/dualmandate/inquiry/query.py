"""What an analyst asks, typed: one number, or one a group, of the records that meet some conditions.

A condition is about one attribute, and picks levels of it; conditions on several attributes all hold (AND). Levels,
groups and bounds come from the declared domain, never from the data, so that a question has the same rows whatever the
records say. What two texts ask is the same where they pick the same levels: a question has one canonical form.

A missing answer is as NULL is in SQL: a comparison neither holds nor fails for it, and NOT leaves it out as well. It is
picked by IS NULL, or by the name of its level, and has a row of its own where it is grouped by.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np

from dualmandate.errors import InvalidQuery, Place, Refusal, TooLarge
from dualmandate.population import Attribute, Domain, GridLevels, Grouping
from dualmandate.population.arrays import Booleans
from dualmandate.population.domain import LARGEST_LISTED_ATTRIBUTE
from dualmandate.population.rational import rational, written
from dualmandate.workload import Table, Tabulation

VERSION = "question/1"
MOST_QUANTILE_LEVELS = 2**10  # Each level is counted with noise, and each has an interval of its own.
MOST_NUMBERS = 2**20  # of one answer
ANSWER, SUM, COUNT = "answer", "sum", "count"  # what is measured, by name: the names decide its noise


class StatisticKind(StrEnum):
    """What is asked of the records."""

    COUNT = "count"
    SUM = "sum"
    MEAN = "mean"
    QUANTILE = "quantile"


@dataclass(frozen=True)
class Picked:
    """Records whose level of an attribute, or group of a grouping, is among these."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Ranged:
    """Records whose number, or ordered level, lies between two, each left out where `open` says so."""

    name: str
    lower: str | None = None
    upper: str | None = None
    open_lower: bool = False
    open_upper: bool = False


@dataclass(frozen=True)
class Unanswered:
    """Records whose answer is missing: SQL's IS NULL."""

    name: str


@dataclass(frozen=True)
class Negated:
    """Records for which a condition fails."""

    condition: Condition


@dataclass(frozen=True)
class Joined:
    """Records for which all of some conditions hold, or any of them; alternatives are about one attribute."""

    conditions: tuple[Condition, ...]
    alternatives: bool = False


Condition = Picked | Ranged | Unanswered | Negated | Joined


@dataclass(frozen=True)
class Query:
    """One question as it was asked. `places` says where in its text a word stands, for refusals."""

    statistic: StatisticKind
    of: str | None = None  # the attribute that is added up, or whose quantile is asked for
    level: Fraction | None = None  # of a quantile: 1/2 is the median
    by: tuple[str, ...] = ()
    where: tuple[Condition, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "statistic", StatisticKind(self.statistic))
        if (self.of is None) != (self.statistic is StatisticKind.COUNT):
            raise InvalidQuery(
                f"a {self.statistic} of {self.of or 'nothing'}",
                why="records are counted; numbers are added up, averaged and ranked",
                instead="name an attribute for a sum, a mean or a quantile, and none for a count",
            )
        if (self.level is None) == (self.statistic is StatisticKind.QUANTILE) or not 0 < (
            self.level or Fraction(1, 2)
        ) < 1:
            raise InvalidQuery(
                f"a {self.statistic} at the level {self.level}",
                why="a quantile divides the records in two parts, and nothing else does",
                instead="state a number between 0 and 1 for a quantile: 0.5 is the median",
            )

    @contextmanager
    def at(self, word: str) -> Iterator[None]:
        """A refusal within is about this word, and says where it stands."""
        try:
            yield
        except Refusal as refusal:
            raise refusal.at(self.places.get(word, Place())) from None


@dataclass(frozen=True, eq=False)
class Question:
    """A query over a declared domain: which levels it picks, by the number of their attribute, and its rows."""

    query: Query
    domain: Domain
    picked: Mapping[int, Booleans]  # of attributes of which not all levels are picked
    by: tuple[str, ...]  # in the domain's order of attributes

    @property
    def statistic(self) -> StatisticKind:
        return self.query.statistic

    @cached_property
    def canonical(self) -> dict[str, object]:
        """The one form of everything that asks the same; levels by their numbers, from 0, as runs."""
        names = self.domain.names
        groupings = ((name, self.domain.resolve(name)[1]) for name in self.by)
        return {
            "version": VERSION,
            "statistic": str(self.statistic),
            "of": self.query.of,
            "level": None if self.query.level is None else str(self.query.level),
            "by": [name if grouping is None else [name, _grouped(grouping)] for name, grouping in groupings],
            "where": {names[axis]: _runs(self.picked[axis]) for axis in sorted(self.picked)},
        }

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical form."""
        return sha256(json.dumps(self.canonical, sort_keys=True).encode("ascii")).hexdigest()

    @cached_property
    def tables(self) -> tuple[Table, ...]:
        """What is measured, each table with noise of its own: for a mean a sum and a count."""
        query = self.query
        if self.statistic is StatisticKind.COUNT:
            return (self._table(Tabulation(ANSWER, self.by)),)
        assert query.of is not None
        if self.statistic is StatisticKind.QUANTILE:
            return (self._table(Tabulation(ANSWER, (query.of,))),)
        added = Tabulation(ANSWER if self.statistic is StatisticKind.SUM else SUM, self.by, sum_of=query.of)
        with query.at(query.of):
            tables = (self._table(added),)
        return tables if self.statistic is StatisticKind.SUM else (*tables, self._table(Tabulation(COUNT, self.by)))

    def _table(self, asked: Tabulation) -> Table:
        made = asked.table(self.domain, picked=self.picked)
        if made.query_count > MOST_NUMBERS:
            raise TooLarge(
                f"an answer of {made.query_count:,} numbers",
                why=f"an answer has at most {MOST_NUMBERS:,}",
                instead="group by fewer attributes, or by coarser groups of them",
            )
        return made


def question_of(query: Query, domain: Domain) -> Question:
    """What a query asks over a domain; refused, with its place, where it names what is not declared."""
    picked = _picked(query, domain)
    axes: dict[int, str] = {}
    for name in query.by:
        with query.at(name):
            axis, _ = domain.resolve(name)
            if axis in axes:
                raise InvalidQuery(
                    f"GROUP BY names '{domain.names[axis]}' twice",
                    why="the answer would be divided by one attribute in two ways",
                    instead="name each attribute once, by itself or by one of its groupings",
                )
            axes[axis] = name
    if query.of is not None:
        with query.at(query.of):
            _check_of(query, domain)
            # A record without the number adds nothing, and is not averaged or ranked, as in SQL.
            axis, attribute = domain.axis(query.of), domain.attribute(query.of)
            if attribute.missing is not None:
                there = np.ones(attribute.size, dtype=np.bool_)
                there[-1] = False
                picked[axis] = picked.get(axis, there) & there
    for axis, mask in picked.items():
        if not mask.any():
            raise _nothing(domain.names[axis])
    if picked and not domain.count_possible(picked):
        raise _nothing(" and ".join(domain.names[axis] for axis in sorted(picked)))
    kept = {axis: mask for axis, mask in picked.items() if not mask.all()}
    return Question(query, domain, kept, tuple(axes[axis] for axis in sorted(axes)))


def question_again(canonical: Mapping[str, Any], domain: Domain) -> Question:
    """The question of a canonical form, over the domain that it was asked of."""
    level = canonical["level"]
    by = tuple(each if isinstance(each, str) else each[0] for each in canonical["by"])
    query = Query(
        StatisticKind(canonical["statistic"]), canonical["of"], None if level is None else Fraction(level), by
    )
    picked: dict[int, Booleans] = {}
    for name, runs in canonical["where"].items():
        mask = np.zeros(domain.attribute(name).size, dtype=np.bool_)
        for first, last in runs:
            mask[first : last + 1] = True
        picked[domain.axis(name)] = mask
    question = Question(query, domain, picked, by)
    if question.canonical != canonical:
        raise InvalidQuery(
            "a question that was asked of other levels",
            why="the program has changed since: what its levels were called then is not known",
            instead="ask it of the program as it is now",
        )
    return question


def _check_of(query: Query, domain: Domain) -> None:
    assert query.of is not None
    _, grouping = domain.resolve(query.of)  # refused by a word that is near
    attribute = domain.attributes[domain.resolve(query.of)[0]]
    if query.statistic is not StatisticKind.QUANTILE:
        if grouping is not None or not attribute.is_numeric:
            raise InvalidQuery(
                f"the {query.statistic} of '{query.of}'",
                why="its levels are no numbers with declared bounds, so that one record could move it by any amount",
                instead=f"declare {query.of} = {{ lower = …, upper = …, grid = … }} in the program, or count by it",
            )
        if query.statistic is StatisticKind.MEAN and attribute in (
            domain.attributes[domain.resolve(n)[0]] for n in query.by
        ):
            raise InvalidQuery(
                f"the mean of '{query.of}' by itself",
                why="its own levels say what it is",
                instead=f"count by it: SELECT {query.of}, COUNT(*) FROM records GROUP BY {query.of}",
            )
        return
    if grouping is not None or not attribute.ordered:
        raise InvalidQuery(
            f"a quantile of '{query.of}'",
            why="its levels have no order",
            instead=f"count by it: SELECT {query.of}, COUNT(*) FROM records GROUP BY {query.of}",
        )
    if query.by:
        raise InvalidQuery(
            "a quantile of several groups at once",
            why="each group has its own interval, and this version works out one",
            instead="ask for each group by itself, with WHERE",
        )
    if attribute.size > MOST_QUANTILE_LEVELS:
        raise TooLarge(
            f"a quantile of '{query.of}', of {attribute.size:,} levels",
            why=f"each level is counted with noise, and their noise adds up: at most {MOST_QUANTILE_LEVELS:,}",
            instead="ask for the counts of ranges of it, or declare it with bins or a coarser grid",
        )


def _nothing(name: str) -> InvalidQuery:
    return InvalidQuery(
        f"no record can meet the conditions on {name}",
        why="they leave no level that can occur, so that the answer is 0 whatever the records say",
        instead="pick levels that can occur together",
    )


def _picked(query: Query, domain: Domain) -> dict[int, Booleans]:
    found: dict[int, Booleans] = {}
    for condition in _conjuncts(query.where):
        axis, holds, _ = _levels(condition, query, domain)
        found[axis] = found[axis] & holds if axis in found else holds
    return found


def _conjuncts(conditions: tuple[Condition, ...]) -> Iterator[Condition]:
    """Conditions that all hold, each about one attribute."""
    for condition in conditions:
        if isinstance(condition, Joined) and not condition.alternatives:
            yield from _conjuncts(condition.conditions)
        else:
            yield condition


Levels = tuple[int, Booleans, Booleans]  # of an attribute: those for which a condition holds, and those where it fails


def _levels(condition: Condition, query: Query, domain: Domain) -> Levels:
    """A condition as levels of one attribute; a missing one is among neither, unless it is named."""
    if isinstance(condition, Negated):
        axis, holds, fails = _levels(condition.condition, query, domain)
        return axis, fails, holds
    if isinstance(condition, Joined):
        axis, holds, fails = _levels(condition.conditions[0], query, domain)
        for each in condition.conditions[1:]:
            other, also, neither = _levels(each, query, domain)
            if other != axis:
                raise _across(query, domain, axis, other)
            holds, fails = (
                (holds | also, fails & neither) if condition.alternatives else (holds & also, fails | neither)
            )
        return axis, holds, fails
    with query.at(condition.name):
        axis, grouping = domain.resolve(condition.name)
        attribute = domain.attributes[axis]
        if attribute.size > LARGEST_LISTED_ATTRIBUTE:
            raise TooLarge(
                f"a condition on '{attribute.name}', of {attribute.size:,} levels",
                why=f"at most {LARGEST_LISTED_ATTRIBUTE:,} levels are picked from",
                instead="declare a coarser grid",
            )
    answered = np.ones(attribute.size, dtype=np.bool_)
    if attribute.missing is not None:
        answered[-1] = False
    if isinstance(condition, Unanswered):
        return axis, ~answered, answered
    if isinstance(condition, Picked):
        holds = np.zeros(attribute.size, dtype=np.bool_)
        for level in condition.levels:
            with query.at(level):
                holds |= domain.mask(condition.name, level)
    else:
        with query.at(condition.name):
            holds = _between(condition, attribute, grouping, query) & answered
    return axis, holds, ~holds & answered


def _across(query: Query, domain: Domain, one: int, other: int) -> InvalidQuery:
    refusal = InvalidQuery(
        f"OR or NOT across '{domain.names[one]}' and '{domain.names[other]}'",
        why="what is counted is a level set on each attribute, and these combine by AND",
        instead="ask one question for each alternative, or GROUP BY one of the two and add up the rows you mean",
    )
    place = query.places.get(domain.names[other])
    return refusal if place is None else refusal.at(place)


def _between(asked: Ranged, attribute: Attribute, grouping: Grouping | None, query: Query) -> Booleans:
    if grouping is not None or not attribute.ordered:
        raise InvalidQuery(
            f"a comparison by order on '{asked.name}'",
            why="its levels have no order" if grouping is None else "groups have no order",
            instead=f"list the levels: {asked.name} IN (…)",
        )
    size = attribute.size - (attribute.missing is not None)
    first, after = 0, size
    if asked.lower is not None:
        with query.at(asked.lower):
            first = _rank(asked.lower, attribute, beyond=asked.open_lower)
    if asked.upper is not None:
        with query.at(asked.upper):
            after = _rank(asked.upper, attribute, beyond=not asked.open_upper)
    places = np.arange(attribute.size)
    return np.asarray((places >= first) & (places < min(after, size)))


def _rank(stated: str, attribute: Attribute, *, beyond: bool) -> int:
    """How many levels lie below a stated one; with `beyond`, below or at it."""
    levels = attribute.levels
    if isinstance(levels, GridLevels):
        steps = (_number(stated, attribute) - levels.lower) / levels.grid
        whole = steps.numerator // steps.denominator
        at = whole + (beyond or steps.denominator != 1)
        return min(max(at, 0), levels.points)
    if attribute.edges is None:
        return attribute.position(stated) + beyond
    edges, number = attribute.edges, _number(stated, attribute)
    if number <= edges[0] and not (beyond and number == edges[0]):
        return 0
    if number > edges[-1] or (beyond and number == edges[-1]):
        return len(edges) - 1
    # The last bin is closed: only what lies below the highest edge can be told from it by an edge.
    if number not in edges or beyond or number == edges[-1]:
        raise InvalidQuery(
            f"a comparison of '{attribute.name}' with {stated}",
            why="it would cut a bin in two, and what lies in a bin is not told apart",
            instead=f"compare with an edge, by < or >=: {', '.join(map(written, edges[:8]))}",
        )
    return edges.index(number)


def _number(stated: str, attribute: Attribute) -> Fraction:
    try:
        return rational(stated)
    except ValueError:
        raise InvalidQuery(
            f"'{attribute.name}' is compared with '{stated}'",
            why="its levels are numbers, and this is none",
            instead="write a number",
        ) from None


def _runs(mask: Booleans) -> list[list[int]]:
    """The first and the last level of each run of those that are picked."""
    steps = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    return [[int(first), int(after) - 1] for first, after in zip(steps[::2], steps[1::2], strict=True)]


def _grouped(grouping: Grouping) -> str:
    """A digest of the groups: a name alone does not say what is in them."""
    content = json.dumps(list(grouping.labels)).encode("ascii") + grouping.assignment.astype("<i8").tobytes()
    return sha256(content).hexdigest()
