"""From a program to what attacks are made on: its tables of a synthetic population, published exactly and with noise.

Nothing confidential is opened unless the curator names a file of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dualmandate.audit.by_place import OnePlace, covered, one_place
from dualmandate.audit.equations import Equations
from dualmandate.audit.old_methods import generator
from dualmandate.audit.records import count_all
from dualmandate.audit.synthetic import compared_methods, published_tables, synthetic_people
from dualmandate.audit.targets import Truths, boxed
from dualmandate.errors import TooLarge
from dualmandate.program.program import Program
from dualmandate.program.tables_targets import LARGEST_PLACE, Targets
from dualmandate.publication.order import possible_cells

if TYPE_CHECKING:
    from dualmandate.program.auditing import Asked

MOST_PLACES, MOST_RECORDS, MOST_IN_PLACE = 100, 20_000, 2_000


def targets_of(program: Program, asked: Asked) -> Targets:
    """A program's tables as if published exactly, and with geometric noise at several losses."""
    place = one_place(program.workload, asked.place)
    check_place(place)
    truths = people_of(program, place, asked)
    targets = tuple(published_tables(program.name, place, truths, asked.key))
    left_out = [f"'{name}': it is not by place, or no count" for name in place.left_out]
    possible = covered(Equations.of_workload(place.workload), possible_cells(place.domain))
    if not possible.all():
        left_out.append(f"{int((~possible).sum()):,} of {possible.size:,} cells of a place, which no table counts")
    return Targets(targets, tuple(left_out), compared_methods(place, truths, asked.key, asked.effort))


def check_place(place: OnePlace) -> None:
    """Refuse a place with too many kinds of records."""
    if place.domain.size > LARGEST_PLACE:
        raise TooLarge(
            f"{place.domain.size:,} cells a place",
            why=f"records are looked for among at most {LARGEST_PLACE:,} combinations of values",
            instead="name the attribute that tells places apart with --place",
        )


def people_of(program: Program, place: OnePlace, asked: Asked) -> Truths:
    """The records that are attacked: those that the curator names, or a synthetic population drawn with the key."""
    if asked.files:
        return {
            reference: count_all(path, program.domain, place, program.rules) for reference, path in asked.files.items()
        }
    people = float(program.file.population.population_size.value)
    places = min(len(place.places), MOST_PLACES)
    each = min(max(round(people / len(place.places)), 1), MOST_IN_PLACE, max(MOST_RECORDS // places, 1))
    draws = generator(asked.key, f"synthetic population of {program.name}")
    sizes = draws.poisson(each, places).astype(np.int64)
    return {"synthetic": boxed(synthetic_people(place.domain, sizes, draws))}
