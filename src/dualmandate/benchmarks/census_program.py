"""The person tables of Summary File 1 as a program file: what an agency would type to plan them.

A program tabulates by attributes and by groupings of their levels, and a grouping holds each level once. A published
list that holds levels twice (each sex, and both) is therefore asked for as several tables; the queries are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dualmandate.benchmarks.census import sf1_persons
from dualmandate.workload import Factor, Groups, Row, Total, Workload
from dualmandate.workload.factor import dense

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
