"""From a program to what attacks are made on: its tables of a synthetic population, published exactly and with noise.

Nothing confidential is opened unless the curator names a file of records.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualmandate.audit.by_place import OnePlace, covered, one_place
from dualmandate.audit.equations import Equations
from dualmandate.audit.methods.synthetic import published_tables
from dualmandate.audit.records import count_all
from dualmandate.audit.targets.comparison import comparing, synthetic_places
from dualmandate.audit.targets.linkage import Homes, linkage_targets
from dualmandate.audit.targets.of_tables import LARGEST_PLACE, Targets
from dualmandate.audit.targets.targets import Truths, boxed
from dualmandate.errors import TooLarge
from dualmandate.planning.program import Program

if TYPE_CHECKING:
    from dualmandate.audit.run import Asked


def targets_of(program: Program, asked: Asked) -> Targets:
    """A program's tables as if published exactly, and with geometric noise at several losses."""
    place = one_place(program.workload, asked.place)
    check_place(place)
    truths = people_of(program, place, asked)
    targets = tuple(published_tables(program.name, place, truths, asked.key))
    homes = Homes.of_program(program.domain, place, program.rules, published=False)
    linked = linkage_targets(targets, homes, asked)
    left_out = [*place.not_tried("the reconstruction")]
    possible = covered(Equations.of_workload(place.workload), place.domain.possible_cells())
    if not possible.all():
        left_out.append(f"{int((~possible).sum()):,} of {possible.size:,} cells of a place, which no table counts")
    found = comparing(program, asked)
    return Targets((*targets, *linked, *found.summed), (*left_out, *found.left_out), found.compared, found.notes)


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
    return {"synthetic": boxed(synthetic_places(program, place, asked.key))}
