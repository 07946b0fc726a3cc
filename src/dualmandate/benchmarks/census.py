"""The tables that statistical agencies publish about people, as workloads: rules, and no data.

`sf1_persons` is what the 2010 Census asks about persons in its Summary File 1; the others are the tables over the
Current Population Survey and over its extract known as Adult that papers on query workloads are measured on.

`sf1_program` is the same as a program file: what an agency would type to plan the tables. A program tabulates by
attributes and by groupings of their levels, and a grouping holds each level once. A published list that holds levels
twice (each sex, and both) is therefore asked for as several tables; the queries are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

import numpy as np
from numpy.typing import NDArray

from dualmandate.population import Attribute, Domain
from dualmandate.workload import Factor, Groups, Identity, Prefix, Row, Table, Total, Workload, kron, marginals
from dualmandate.workload.factor import dense

RACES = ("White", "Black", "American Indian", "Asian", "Pacific Islander", "Other")
RELATIONSHIPS = (
    *("householder", "spouse", "biological child", "adopted child", "stepchild", "sibling", "parent", "grandchild"),
    *("parent-in-law", "child-in-law", "other relative", "roomer or boarder", "housemate", "unmarried partner"),
    *("other nonrelative", "institutional group quarters", "other group quarters"),
)
AGES = 115  # single years, the last one 114
POSTAL_CODES = (
    "AL AK AZ AR CA CO CT DE DC FL GA HI ID IL IN IA KS KY LA ME MD MA MI MN MS MO MT NE NV NH NJ NM NY NC ND OH OK "
    "OR PA RI SC SD TN TX UT VT VA WA WV WI WY"
)
FIRST_AGES = (0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85)  # of 23 bins

CPS_SHAPE = (50, 100, 7, 4, 2)
ADULT_5_SHAPE = (75, 16, 5, 2, 20)
# Age, class of work, weight, schooling, marital status, occupation, relationship, race, sex, capital gains and losses,
# hours a week, country of birth, income.
ADULT_14_SHAPE = (85, 9, 100, 16, 7, 15, 6, 5, 2, 100, 100, 99, 42, 2)

# Each product of a published table: what it is called there, and the coding of each attribute that is not summed. A
# published table lists its totals too, and a query that is listed twice counts twice.
_FULL_RACE = {"race": "race in full"}
_RACE = {"race": "race"}
_HISPANIC = {"hispanic": "Hispanic"}
_NOT_HISPANIC = {"hispanic": "not Hispanic"}
_ADULTS = {"age": "adults"}
_SEX = {"sex": "sex and total"}
_BY_AGE = {"sex": "sex", "age": "age"}
_BY_YEAR = {"sex": "sex", "age": "year of age"}
_PRODUCTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("P1", {}),
    ("P3", _RACE),
    ("P3", {}),
    ("P4", {"hispanic": "Hispanic origin"}),
    ("P4", {}),
    ("P5", {"hispanic": "Hispanic origin", **_RACE}),
    ("P5", {"hispanic": "Hispanic origin and total"}),
    ("P8", _FULL_RACE),
    ("P8", {}),
    ("P9", {"hispanic": "Hispanic origin"}),
    ("P9", {**_NOT_HISPANIC, **_FULL_RACE}),
    ("P9", {}),
    ("P10", {**_FULL_RACE, **_ADULTS}),
    ("P10", _ADULTS),
    ("P11", {"hispanic": "Hispanic origin", **_ADULTS}),
    ("P11", {**_NOT_HISPANIC, **_FULL_RACE, **_ADULTS}),
    ("P11", _ADULTS),
    ("P12", _BY_AGE),
    ("P12", _SEX),
    ("P12A-I", {**_BY_AGE, **_RACE}),
    ("P12A-I", {**_SEX, **_RACE}),
    ("P12A-I", {**_BY_AGE, **_HISPANIC}),
    ("P12A-I", {**_SEX, **_HISPANIC}),
    ("P12A-I", {**_BY_AGE, **_NOT_HISPANIC, "race": "White alone"}),
    ("P12A-I", {**_SEX, **_NOT_HISPANIC, "race": "White alone"}),
    ("PCT12", _BY_YEAR),
    ("PCT12", _SEX),
    ("PCT12A-O", {**_BY_YEAR, **_RACE}),
    ("PCT12A-O", {**_SEX, **_RACE}),
    ("PCT12A-O", {**_BY_YEAR, **_HISPANIC}),
    ("PCT12A-O", {**_SEX, **_HISPANIC}),
    ("PCT12A-O", {**_BY_YEAR, **_NOT_HISPANIC, **_RACE}),
    ("PCT12A-O", {**_SEX, **_NOT_HISPANIC, **_RACE}),
)


_HEADER = """\
[program]
schema = 1
name   = "sf1-persons"

[population]
account         = "residents"
unit            = "person"
neighbors       = "add-or-remove"
population_size = {{ value = 308_745_538, unit = "person", source = "2010 Census" }}

[mechanism]
noise = "{noise}"

[preferences]
information_utility  = "linear"
mean_disclosure_cost = {{ value = 0.1, unit = "USD per person per epsilon", source = "assumed" }}
"""
_TABLE = """
[[workload]]
name  = "{name}"
by    = [{by}]
where = {{ {where} }}
value_of_accuracy = {{ value = 100, unit = "USD per person^2", source = "assumed" }}
"""
_Asked = tuple[str | None, str | None]  # what to tabulate by, and which levels to count


def sf1_persons() -> Workload:
    """The person tables of the 2010 Census Summary File 1: 4,151 queries over 500,480 cells.

    A race is any combination of six, recorded as a sum of 1, 2, 4, 8, 16, 32; 0 is a person without any.
    """
    domain = Domain(
        (
            Attribute.categories("sex", ("male", "female")),
            Attribute.categories("hispanic", ("Hispanic", "not Hispanic")),
            Attribute.categories("race", map(_race, range(2 ** len(RACES)))),
            Attribute.categories("relationship", RELATIONSHIPS),
            Attribute.ordered_levels("age", map(str, range(AGES))),
        )
    )
    codings = _codings()
    totals = {attribute.name: Total(attribute.size) for attribute in domain.attributes}
    tables = [
        Table(
            f"{table}: {_title(chosen, codings)}",
            tuple(codings[chosen[name]] if name in chosen else total for name, total in totals.items()),
        )
        for table, chosen in _PRODUCTS
    ]
    return Workload(domain, tuple(tables))


def sf1_by_state() -> Workload:
    """The same tables for the nation and for each of 50 states and the District of Columbia: 215,852 queries."""
    return kron(sf1_persons(), states())


def states() -> Workload:
    """People in each state, and in all of them."""
    attribute = Attribute.categories("state", POSTAL_CODES.split())
    tables = Table("each state", (Identity(attribute.size),)), Table("nation", (Total(attribute.size),))
    return Workload(Domain((attribute,)), tables)


def cps_one_way() -> Workload:
    """One-way tables over 50 × 100 × 7 × 4 × 2 cells, prefix sums on the first two attributes: 163 queries."""
    domain = Domain.of_shape(CPS_SHAPE)
    factors: Sequence[Callable[[int], Factor]] = (Prefix, Prefix, Identity, Identity, Identity)
    tables = [
        Table(name, tuple(factors[axis](size) if axis == asked else Total(size) for axis, size in enumerate(CPS_SHAPE)))
        for asked, name in enumerate(domain.names)
    ]
    return Workload(domain, tuple(tables))


def adult_5(order: int) -> Workload:
    """All marginals of so many of the five attributes 75 × 16 × 5 × 2 × 20."""
    return marginals(ADULT_5_SHAPE, order)


def adult_14() -> Workload:
    """All marginals of up to three of the 14 attributes of Adult, over 6.4 × 10¹⁷ cells."""
    return marginals(ADULT_14_SHAPE, range(4))


def _race(level: int) -> str:
    return " and ".join(race for place, race in enumerate(RACES) if level >> place & 1) or "none recorded"


def _codings() -> dict[str, Factor]:
    """Every coding that some table uses; race by number of races, age by bins that follow each other."""
    races = range(2 ** len(RACES))
    alone = [1 << place for place in range(len(RACES))]
    several = [level for level in races if level.bit_count() > 1]
    by_number = [[level for level in races if level.bit_count() == count] for count in range(1, len(RACES) + 1)]
    years = [*range(100), 100, 105, 110]
    either = [[0], [1], [0, 1]]
    return {
        "sex": Identity(2),
        "sex and total": Groups.of_lists(2, either, ("male", "female", "total")),
        "Hispanic origin": Identity(2),
        "Hispanic origin and total": Groups.of_lists(2, either, ("Hispanic", "not Hispanic", "total")),
        "Hispanic": only(2, [0]),
        "not Hispanic": only(2, [1]),
        "race": Groups.of_lists(
            len(races),
            [*([level] for level in alone), [level for level in races if level not in alone]],
            (*(f"{race} alone" for race in RACES), "none or several"),
        ),
        "race in full": Groups.of_lists(
            len(races),
            [*([level] for level in races if level), *by_number, several],
            (*map(_race, races[1:]), "one race", *(f"{count} races" for count in range(2, 7)), "several races"),
        ),
        "White alone": only(len(races), [1]),
        "adults": only(AGES, range(18, AGES)),
        "age": _bins(FIRST_AGES),
        "year of age": _bins(years),
    }


def only(size: int, levels: Sequence[int]) -> Row:
    """The number of those who have one of some levels."""
    counted = np.zeros(size, dtype=np.int64)
    counted[levels] = 1
    return Row(counted)


def _bins(first: Sequence[int]) -> Groups:
    """Bins of ages from their first years; the last one is open."""
    spans = list(pairwise((*first, AGES)))
    names = [f"{low}" if high == low + 1 else f"{low} to {high - 1}" for low, high in spans[:-1]]
    return Groups.of_lists(AGES, [range(low, high) for low, high in spans], (*names, f"{spans[-1][0]} and over"))


def _title(chosen: dict[str, str], codings: dict[str, Factor]) -> str:
    """What is told apart, then who is counted."""
    apart = [words for words in chosen.values() if not isinstance(codings[words], Row)]
    counted = [words for words in chosen.values() if isinstance(codings[words], Row)]
    return ", ".join((" by ".join(apart) or "total", *counted))


def sf1_program(noise: str = "laplace") -> str:
    """The text of a program file that asks for every query of the person tables, at 100 USD per squared person."""
    workload = sf1_persons()
    groupings: dict[tuple[str, str], str] = {}
    tables = list(_tables(workload, groupings))
    levels = "\n".join(
        f"{attribute.name} = [{', '.join(map(_quoted, attribute.levels))}]" for attribute in workload.domain.attributes
    )
    hierarchies = [
        f'[population.hierarchies."{name}"]\nattribute = "{attribute}"\ngroups = {{ {groups} }}'
        for (attribute, groups), name in groupings.items()
    ]
    attributes = f"[population.attributes]\n{levels}"
    return "\n\n".join([_HEADER.format(noise=noise), attributes, *hierarchies]) + "\n" + "".join(tables)


def _tables(workload: Workload, groupings: dict[tuple[str, str], str]) -> Iterator[str]:
    """Every table, or the several that make it up; groupings are named as they are met."""
    attributes = workload.domain.attributes
    for number, table in enumerate(workload.tables):
        asked = [
            list(_asked(attribute.name, attribute.levels, factor, groupings))
            for attribute, factor in zip(attributes, table.factors, strict=True)
        ]
        for place, chosen in enumerate(product(*asked)):
            by = ", ".join(_quoted(name) for name, _ in chosen if name is not None)
            where = ", ".join(counted for _, counted in chosen if counted is not None)
            yield _TABLE.format(name=f"{number + 1}.{place + 1} {table.name}", by=by, where=where)


def _asked(name: str, levels: Sequence[str], factor: Factor, groupings: dict[tuple[str, str], str]) -> Iterator[_Asked]:
    """One attribute of a table, layer by layer of groups that share no level."""
    if isinstance(factor, Total):
        yield None, None
    elif isinstance(factor, Row):
        counted = ", ".join(_quoted(levels[i]) for i in np.flatnonzero(factor.values).tolist())
        yield None, f"{name} = [{counted}]"
    elif isinstance(factor, Groups):
        for layer in _layers(dense(factor) != 0):
            groups = ", ".join(
                f"g{place} = [{', '.join(_quoted(levels[i]) for i in np.flatnonzero(row).tolist())}]"
                for place, row in enumerate(layer)
            )
            yield groupings.setdefault((name, groups), f"{name} grouping {len(groupings) + 1}"), None
    else:
        yield name, None


def _layers(rows: NDArray[np.bool_]) -> list[list[NDArray[np.bool_]]]:
    """Groups of levels dealt into lists in which no two share a level, in their order."""
    layers: list[list[NDArray[np.bool_]]] = []
    for row in rows:
        free = next((layer for layer in layers if not any(np.any(row & other) for other in layer)), None)
        if free is None:
            layers.append([row])
        else:
            free.append(row)
    return layers


def _quoted(word: str) -> str:
    return f'"{word}"'
