"""Thirteen thousand school districts that do not exist: codes and names made from word lists, always the same."""

from __future__ import annotations

from collections.abc import Iterator

STATES = 50
DISTRICTS_PER_STATE = 260

_FIRST = (
    "Alder", "Amber", "Apple", "Ash", "Aspen", "Badger", "Bear", "Beech", "Birch", "Briar", "Cardinal", "Cedar",
    "Cherry", "Chestnut", "Clover", "Copper", "Cottonwood", "Crane", "Crystal", "Cypress", "Deer", "Dogwood", "Eagle",
    "Elder", "Elk", "Elm", "Falcon", "Fern", "Fir", "Flint", "Fox", "Granite", "Hawk", "Hazel", "Hemlock", "Heron",
    "Hickory", "Holly", "Iron", "Juniper", "Larch", "Laurel", "Linden", "Magnolia", "Maple", "Marble", "Mulberry",
    "Oak", "Olive", "Orchard", "Otter", "Pecan", "Pine", "Plum", "Poplar", "Quail", "Redwood", "Robin", "Sage",
    "Silver", "Spruce", "Sumac", "Swan", "Sycamore", "Willow",
)  # fmt: skip
_SECOND = (
    "Bay", "Bend", "Bluff", "Bridge", "Brook", "Canyon", "Creek", "Crossing", "Falls", "Field", "Forest", "Glen",
    "Grove", "Harbor", "Hill", "Lake", "Meadow", "Point", "Ridge", "Valley",
)  # fmt: skip
_KIND = (
    "City", "Community", "Consolidated", "County", "Elementary", "Independent", "Joint", "Regional", "Unified", "Union",
)  # fmt: skip
_STRIDE = 4_801  # shares no factor with 13,000, so every name comes up once, and neighbors in the list differ


def districts() -> Iterator[tuple[str, str, str]]:
    """Code (state, then district: seven digits), state and name of each district, in the order of the codes."""
    count = STATES * DISTRICTS_PER_STATE
    for position in range(count):
        state, district = divmod(position, DISTRICTS_PER_STATE)
        rest, first = divmod(position * _STRIDE % count, len(_FIRST))
        kind, second = divmod(rest, len(_SECOND))
        name = f"{_FIRST[first]} {_SECOND[second]} {_KIND[kind]} School District"
        yield f"{state + 1:02d}{district + 1:05d}", f"{state + 1:02d}", name


def code_list() -> str:
    """The districts as a CSV file with the columns district, state and name."""
    rows = ["district,state,name", *(",".join(row) for row in districts())]
    return "\n".join(rows) + "\n"
