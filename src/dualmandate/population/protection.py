"""Who is protected, and which pairs of files an attacker must not be able to tell apart.

An invariant publishes the exact number of records in each of some disjoint groups of cells. The number of records in
the file is public too, so the cells outside all of its groups form one more group. Where any two groups of different
invariants are disjoint or nested, a record may change to any cell of the same groups, and every file with the same
totals can be reached by such changes, one record at a time: the total of every atom of nested groups is known.
Where two groups overlap without one holding the other, the invariants *cross*, and some files with the same totals can
be reached only by changing several records together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from itertools import combinations

import numpy as np

from dualmandate.errors import InvalidInvariant, InvalidLoss, Place
from dualmandate.population.arguments import checked_class
from dualmandate.population.domain import Domain
from dualmandate.population.moves import Labels, Together, together
from dualmandate.population.shown import one_line


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


@checked_class
@dataclass(frozen=True)
class Protection:
    """The promise: whose records, how many of them a unit may contribute, and which files are neighbors.

    With invariants the relation becomes "change one record within its group". `records_changing_together` (m) must be
    stated where invariants cross: one record alone can then not change, and the guarantee for m records is mε or m²ρ.
    `records_established` says that steps of m records were shown to link all files with the same totals; where they
    were not, the guarantee says that it is conditional on m.

    Without an `identifier` nobody can tell whether a unit has several records. The guarantee then protects records, not
    units, unless `one_record_source` says where it is known from that the source has one record a unit.
    """

    unit: str = "person"
    neighbors: Neighbors = Neighbors.ADD_OR_REMOVE
    most_records_per_unit: int = 1
    identifier: str | None = None
    invariants: tuple[Invariant, ...] = ()
    records_changing_together: int | None = None
    records_established: bool = False
    one_record_source: str | None = None

    __repr__ = one_line

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
    def protects_units(self) -> bool:
        """Whether a unit is protected with all its records: they can be found, or are said to be one."""
        return self.identifier is not None or self.one_record_source is not None

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


@dataclass(frozen=True)
class NeighborSteps:
    """How files with the same exact totals are reached from one another.

    One step changes one record within the groups of `kept`; `records` is how many steps lie between two files that the
    guarantee is stated for (m, where invariants cross; 1 otherwise), and `established` whether so many were shown to
    link all files with the same totals.
    """

    kept: tuple[Invariant, ...]
    records: int
    established: bool = True


def group_labels(domain: Domain, invariant: Invariant) -> Labels:
    """For each axis that the invariant names: the group of each level, -1 outside; a cell outside on one is outside."""
    labels: Labels = {}
    for name in invariant.by:
        axis, grouping = domain.resolve(name)
        if axis in labels:
            raise InvalidInvariant(
                f"the exact total '{invariant.name}' names '{domain.names[axis]}' twice in `by`",
                why="its groups would be counted by one attribute in two ways",
                instead="name each attribute once, by itself or by one of its groupings",
            )
        sizes = np.arange(domain.attributes[axis].size, dtype=np.int64)
        labels[axis] = sizes if grouping is None else grouping.assignment
    for name, levels in invariant.where:
        axis, _ = domain.resolve(name)
        known = labels.get(axis, np.zeros(domain.attributes[axis].size, dtype=np.int64))
        labels[axis] = np.where(domain.mask(name, levels), known, -1)
    if any((labels_of_axis < 0).all() for labels_of_axis in labels.values()):
        raise InvalidInvariant(
            f"no cell is counted by the exact total '{invariant.name}'",
            why="its `where` leaves no level of some attribute",
            instead="name levels that occur together",
        )
    return labels


def steps(domain: Domain, protection: Protection) -> NeighborSteps:
    """How single records may change under the exact totals; where totals cross, an m that is too small is refused."""
    invariants, stated = protection.invariants, protection.records_changing_together
    crossing, needed = _crossing(domain, invariants)
    if not crossing:
        return NeighborSteps(invariants, 1)
    one, other = (invariants[place].name for place in crossing[0])
    least = needed.least
    if stated is None:
        raise InvalidInvariant(
            f"the exact totals '{one}' and '{other}' cross",
            why="a group of one overlaps a group of the other without either holding the other, so that some files "
            "with the same totals differ in several records at once",
            instead=f"state records_changing_together, the number m of records, {least} or more (mε or m²ρ is then "
            "printed and charged), or drop one",
        )
    if stated < least:
        raise InvalidInvariant(
            f"records_changing_together = {stated} is less than the exact totals need, of which '{one}' and '{other}' "
            "cross",
            why=f"steps of fewer than {least} records do not link all files with the same exact totals, so a loss for "
            f"{stated} would be less than what tells some of the nearest of them apart",
            instead=f"state records_changing_together = {least} or more (mε or m²ρ is then printed and charged), or "
            "drop one of the totals",
            where=Place(key="population.records_changing_together"),
        )
    # Records can be matched within the groups of totals that cross no other; between them any record may change.
    crossed = {position for pair in crossing for position in pair}
    kept = tuple(invariant for position, invariant in enumerate(invariants) if position not in crossed)
    return NeighborSteps(kept, stated, needed.establishes(stated))


@lru_cache(maxsize=16)  # sensitivities of one program ask again and again
def _crossing(domain: Domain, invariants: tuple[Invariant, ...]) -> tuple[tuple[tuple[int, int], ...], Together]:
    """Which exact totals cross, and how many records then change together."""
    labels = [group_labels(domain, invariant) for invariant in invariants]
    pairs = combinations(range(len(labels)), 2)
    crossing = tuple((one, other) for one, other in pairs if cross(domain, labels[one], labels[other]))
    return crossing, together(domain, labels, crossing)


def cross(domain: Domain, one: Labels, other: Labels) -> bool:
    """Whether a group of one invariant and a group of another overlap without either holding the other.

    Groups are products of level sets, one a named attribute, so attributes are looked at one at a time. Structural
    zeros are not consulted: they could only turn groups that seem to cross into groups that do not.
    """
    narrower, wider = set(), set()
    crossing = False
    for axis in one.keys() | other.keys():
        whole = np.zeros(domain.attributes[axis].size, dtype=np.int64)
        first, second = one.get(axis, whole), other.get(axis, whole)
        both = (first >= 0) & (second >= 0)
        if not both.any():
            return False
        pairs, shared = np.unique(np.stack([first[both], second[both]]), axis=1, return_counts=True)
        alone_first = np.bincount(first[first >= 0])[pairs[0]] > shared
        alone_second = np.bincount(second[second >= 0])[pairs[1]] > shared
        crossing |= bool(np.any(alone_first & alone_second))
        if np.any(~alone_first & alone_second):
            narrower.add(axis)
        if np.any(alone_first & ~alone_second):
            wider.add(axis)
    return crossing or any(axis != another for axis in narrower for another in wider)
