"""Tables of many places as the tables of one: what is attacked place after place, and the records to judge it by."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.equations import Integers
from dualmandate.errors import InvalidRequest
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.publication import Rules, Source, source_file
from dualmandate.publication.tabulated import SparseHistogram
from dualmandate.publication.tabulating import KEY_BYTES, tabulate
from dualmandate.workload import Identity, Table, Workload

SMALL_DOMAIN = 4096  # At most this many cells are attacked as one place, where nobody names places.
LABEL = "counts that an audit is judged by"
PURPOSE = "an audit: what an attack got right"


@dataclass(frozen=True, eq=False)
class OnePlace:
    """What is published of each place: a workload over all other attributes, and where its numbers stand.

    `axis` is the attribute that tells places apart, None where there is one place. `tables` are those that are by place
    and count each record once; others say nothing about one place alone, and are left out.
    """

    workload: Workload
    axis: int | None
    places: tuple[str, ...] = field(repr=False)
    tables: tuple[Table, ...] = field(repr=False)  # of all places, in the order of the workload
    left_out: tuple[str, ...] = ()

    @property
    def domain(self) -> Domain:
        """What is recorded in a place."""
        return self.workload.domain

    def not_tried(self, where: str) -> tuple[str, ...]:
        """What is said of the tables that were left out of something; nothing where none was."""
        names = ", ".join(f"'{name}'" for name in self.left_out)
        return (f"tables in {where} that are not by place, or no counts: {names}",) if names else ()

    def by_place(self, table: Table, numbers: NDArray[np.generic]) -> NDArray[np.generic]:
        """The numbers of a table of all places, a row a place; shape (places, numbers of one place)."""
        if self.axis is None:
            return numbers.reshape(1, -1)
        return np.moveaxis(numbers.reshape(table.shape), self.axis, 0).reshape(len(self.places), -1)

    def counts(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Counts over the whole domain, a row a place; shape (places, cells of one place)."""
        if self.axis is None:
            return cells.reshape(1, -1)
        shape = list(self.domain.shape)
        shape.insert(self.axis, len(self.places))
        return np.moveaxis(cells.reshape(shape), self.axis, 0).reshape(len(self.places), -1)


def one_place(workload: Workload, name: str | None = None) -> OnePlace:
    """The tables of one place; `name` is the attribute that tells places apart.

    Where none is named, a small domain is one place, and a large one has the places of its largest attribute by which
    a table is published.
    """
    domain = workload.domain
    counting = [table for table in workload.tables if _counts_once(table)]
    axis = _axis(workload, counting, name)
    inside = [table for table in counting if axis is None or isinstance(table.factors[axis], Identity)]
    left_out = tuple(table.name for table in workload.tables if table not in inside)
    if not inside:
        raise InvalidRequest(
            "no table is published by place, or counts records one by one",
            why="records are reconstructed from counts",
            instead="name another attribute with --place",
        )
    if axis is None:
        return OnePlace(Workload(domain, tuple(inside)), None, (domain.names[0],), tuple(inside), left_out)
    rest = domain.project(each for each in domain.names if each != domain.names[axis])
    tables = tuple(
        Table(table.name, tuple(factor for a, factor in enumerate(table.factors) if a != axis)) for table in inside
    )
    return OnePlace(Workload(rest, tables), axis, tuple(domain.attributes[axis].levels), tuple(inside), left_out)


def _axis(workload: Workload, counting: list[Table], name: str | None) -> int | None:
    domain = workload.domain
    if name is not None:
        if len(domain.shape) == 1:
            raise InvalidRequest(
                f"nothing is recorded but '{name}'",
                why="records of a place differ by another attribute",
                instead="leave --place out",
            )
        return domain.axis(name)
    able = [a for a in range(len(domain.shape)) if any(isinstance(table.factors[a], Identity) for table in counting)]
    if domain.size <= SMALL_DOMAIN or len(domain.shape) == 1 or not able:
        return None
    return max(able, key=lambda each: domain.shape[each])


def place_attribute(workload: Workload, name: str | None = None) -> str | None:
    """The attribute that tells places apart where methods are compared: there, a small domain has places too.

    Where none is named, one that `one_place` finds; else the unordered attribute by which most tables are published,
    the largest of those. None where there is none beside another attribute.
    """
    domain = workload.domain
    counting = [table for table in workload.tables if _counts_once(table)]
    if name is not None:
        return name
    found = _axis(workload, counting, None)
    if found is not None:
        return domain.names[found]
    uses = {
        axis: sum(isinstance(table.factors[axis], Identity) for table in counting)
        for axis, each in enumerate(domain.attributes)
        if each.size > 1 and not each.ordered and len(domain.shape) > 1
    }
    best = max(uses, key=lambda axis: (uses[axis], domain.shape[axis]), default=None)
    return None if best is None or not uses[best] else domain.names[best]


def _counts_once(table: Table) -> bool:
    return table.weight == 1 and table.grid == 1 and table.largest_entry == 1


def count_records(
    source: Source | Path, domain: Domain, *, place: Attribute | None = None, rules: Rules | None = None
) -> Confidential[Integers]:
    """Records of each cell in each place, boxed; shape (places, cells), one place where none is told apart.

    Values that the domain does not have are left out, and how many that are is not told.
    """
    file = source_file(source) if isinstance(source, Path) else source
    # the place last: structural zeros and hierarchies name attributes, not positions
    whole = (
        domain if place is None else Domain((*domain.attributes, place), domain.hierarchies, domain.structural_zeros)
    )
    flat = _counted(file, whole, rules or Rules()).reshape(domain.size, 1 if place is None else place.size).T
    return Confidential(LABEL, np.ascontiguousarray(flat).astype(np.int64))


def count_all(path: Path, domain: Domain, place: OnePlace, rules: Rules) -> Confidential[Integers]:
    """Records over a domain that holds the place among its attributes, boxed; shape (places, cells of one place)."""
    counts = _counted(source_file(path), domain, rules)
    return Confidential(LABEL, np.ascontiguousarray(place.counts(counts.reshape(-1))))


def _counted(source: Source, domain: Domain, rules: Rules) -> Integers:
    box = tabulate(source, domain, protection=Protection(), rules=rules, key=bytes(KEY_BYTES))
    histogram = box.open_for(PURPOSE).histogram
    dense = histogram.dense() if isinstance(histogram, SparseHistogram) else histogram
    return np.asarray(dense.counts, dtype=np.int64)
