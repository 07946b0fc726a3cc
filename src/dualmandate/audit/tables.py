"""What is attacked: published numbers, with what is known of how they were made, and the truth where somebody gives it.

A truth that was drawn for the audit is public; one that came from records stays inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Equations, Floats, Integers
from dualmandate.audit.finding import Reference
from dualmandate.errors import InvalidTables
from dualmandate.population import Confidential, Domain

Part_co = TypeVar("Part_co", covariant=True)
Truths = Mapping[Reference, Confidential[Integers]]  # counts of the same cells, by whose file they are


def no_truths() -> Truths:
    """Nobody gives a truth."""
    return {}


@dataclass(frozen=True, eq=False)
class ExactTables:
    """Tables published exactly, the same ones for every place; `values` has shape (places, rows).

    `hidden` marks numbers that were suppressed, in the same shape; what stands there is not looked at.
    """

    name: str
    equations: Equations
    values: Integers = field(repr=False)
    places: tuple[str, ...] = field(repr=False)
    coarsening: str
    impossible: NDArray[np.bool_] | None = field(default=None, repr=False)  # structural zeros; shape (unknowns,)
    truths: Truths = field(default_factory=no_truths, repr=False)
    cells: Domain | None = field(default=None, repr=False)  # what the unknowns are, for words
    hidden: NDArray[np.bool_] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_truths(self.truths, (len(self.places), self.equations.size))

    def cell(self, unknown: int) -> str:
        """What an unknown counts, in words."""
        return cell_name(self.cells, unknown)


@dataclass(frozen=True, eq=False)
class NoisyTables:
    """Tables with noise, rounding or swapping, the same ones for every place.

    `published` has shape (places, rows); `scales` are mean absolute errors, shape (rows,), 0 where exact. `expected`
    is what somebody expects of each place who has no tables: the proportional guesser's belief and the attacker's
    prior; shape (places, unknowns).
    """

    name: str
    equations: Equations
    published: Floats = field(repr=False)
    scales: Floats = field(repr=False)
    expected: Floats = field(repr=False)
    coarsening: str
    protection: str  # how the numbers were made, in words
    truths: Truths = field(default_factory=no_truths, repr=False)
    prior: str = "what people in general are like"  # where `expected` comes from, in words

    def __post_init__(self) -> None:
        check_truths(self.truths, (len(self.published), self.equations.size))


class Parts(Protocol[Part_co]):
    """Parts that may be made one by one as they are attacked: a million of them need no more memory than one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Part_co]: ...


def boxed(counts: Integers) -> Confidential[Integers]:
    """Counts in a box that prints only its label."""
    return Confidential("counts that an audit is judged by", counts)


def opened(truths: Truths) -> dict[Reference, Integers]:
    """The counts that an attack is judged by."""
    return {reference: counts.open_for("judging an attack") for reference, counts in truths.items()}


def truths_of_period(truths: Truths, period: int) -> Truths:
    """The truths of one period, from those of all; shape (cells,) from (cells, periods)."""
    return {reference: boxed(counts[:, period]) for reference, counts in opened(truths).items()}


def cell_name(cells: Domain | None, unknown: int) -> str:
    """An unknown as its levels, or by its number."""
    if cells is None:
        return f"cell {unknown + 1}"
    places = np.unravel_index(unknown, cells.shape)
    return ", ".join(
        f"{each.name} {each.levels[int(place)]}" for each, place in zip(cells.attributes, places, strict=True)
    )


def check_truths(truths: Truths, shape: tuple[int, ...]) -> None:
    """Refuse a truth that counts something else than what was published."""
    for reference, counts in opened(truths).items():
        if counts.shape != shape:
            raise InvalidTables(
                f"the {reference} file gives counts of shape {counts.shape}, the tables ask for {shape}",
                why="a reconstruction is judged cell by cell",
                instead="count the same cells of the same places",
            )


def levels_in_words(domain: Domain) -> str:
    """How coarse each attribute is, for every rate: age in 38 levels means age bins."""
    return "values as declared: " + ", ".join(f"{each.name} ({each.size:,} levels)" for each in domain.attributes)
