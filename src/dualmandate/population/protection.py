"""Who is protected, and which pairs of files an attacker must not be able to tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from dualmandate.errors import InvalidInvariant, InvalidLoss


class Neighbors(StrEnum):
    """Which pairs of files count as neighbors, before invariants."""

    ADD_OR_REMOVE = "add-or-remove"
    REPLACE_ONE = "replace-one"


@dataclass(frozen=True)
class Invariant:
    """An exact total over disjoint groups of cells, published without noise: one total a group of `by`, under `where`.

    With `by` empty it is the grand total of the cells under `where`.
    """

    name: str
    by: tuple[str, ...] = ()
    where: tuple[tuple[str, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Protection:
    """The promise: whose records, how many of them a unit may contribute, and which files are neighbors.

    With invariants the relation becomes "change one record within its group". `records_changing_together` (m) must be
    stated where invariants cross: one record alone can then not change, and the guarantee for m records is mε or m²ρ.
    """

    unit: str = "person"
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE
    most_records_per_unit: int = 1
    identifier: str | None = None
    invariants: tuple[Invariant, ...] = ()
    records_changing_together: int | None = None

    def __post_init__(self) -> None:
        # A plain word would be equal to its Neighbors, but not the same object.
        object.__setattr__(self, "neighbors", _known(self.neighbors))
        together = 1 if self.records_changing_together is None else self.records_changing_together
        if not (_is_count(self.most_records_per_unit) and _is_count(together)):
            raise InvalidLoss(
                f"a {self.unit} contributes at most {self.most_records_per_unit} records, {together} changing together",
                why="contributions are bounded by a whole number of at least 1",
                instead="state most_records_per_unit ≥ 1 and records_changing_together ≥ 1",
            )
        if self.invariants and self.neighbors is Neighbors.ADD_OR_REMOVE:
            raise InvalidInvariant(
                f"the exact total '{self.invariants[0].name}' cannot be kept under add-or-remove neighbors",
                why="adding or removing a record changes the total, so publishing it exactly tells the two files apart",
                instead='state neighbors = "replace-one", or drop the invariant and publish the total with noise',
            )
        if self.most_records_per_unit > 1 and self.identifier is None:
            raise InvalidLoss(
                f"a {self.unit} may contribute {self.most_records_per_unit} records, but nothing identifies it",
                why="contributions can be bounded only if the records of one unit can be found",
                instead="state the identifier: the column that names the unit",
            )

    @property
    def records_together(self) -> int:
        """How many records change at once between two files that the guarantee tells apart no further; m, mostly 1."""
        return self.records_changing_together or 1

    @property
    def relation(self) -> str:
        """The neighbor relation in words."""
        several = self.most_records_per_unit > 1
        records = f"up to {self.most_records_per_unit} records" if several else "record"
        if self.invariants:
            return f"change one {self.unit}'s {records} within the groups whose totals are published exactly"
        if self.neighbors is Neighbors.REPLACE_ONE:
            # As many records as before: how many a unit has is not protected by this relation.
            return f"replace one {self.unit}'s {records} by {'as many others' if several else 'any other'}"
        return f"add or remove one {self.unit}'s {records}"


def _known(neighbors: str) -> Neighbors:
    try:
        return Neighbors(neighbors)
    except ValueError:
        raise InvalidLoss(
            f"neighbors = '{neighbors}'",
            why="a guarantee says which pairs of files cannot be told apart",
            instead='state "add-or-remove" or "replace-one"',
        ) from None


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1
