"""What is attacked in turn, of a program, a release or a folder of tables."""

from __future__ import annotations

from dataclasses import dataclass

from dualmandate.audit.disclosure_control.comparison import MethodEvaluation
from dualmandate.audit.places import OnePlace
from dualmandate.errors import TooLarge

LARGEST_PLACE = 2**16  # Unknown counts are looked for in places of at most this many cells.


@dataclass(frozen=True, eq=False)
class Targets:
    """What is attacked in turn, and what cannot be."""

    attacked: tuple[object, ...]
    left_out: tuple[str, ...] = ()
    compared: tuple[MethodEvaluation, ...] = ()
    notes: tuple[str, ...] = ()  # on what is compared, in words


def check_place(place: OnePlace) -> None:
    """Refuse a place with too many kinds of records."""
    if place.domain.size > LARGEST_PLACE:
        raise TooLarge(
            f"{place.domain.size:,} cells a place",
            why=f"records are looked for among at most {LARGEST_PLACE:,} combinations of values",
            instead="name the attribute that tells places apart with --place",
        )
