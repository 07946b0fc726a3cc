"""What is attacked: published numbers, with what is known of how they were made, and the truth where somebody gives it.

Tables of many places are attacked as those of one, place after place. A truth that was drawn for the audit is public;
one that came from records stays inside.

What they say of unknown records are equations over the counts of a file's cells. The unknowns are not people but cells:
how many records have each combination of values. A published number is one equation, Σ a·x = y with whole coefficients,
or one inequality where it was rounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.audit.finding import Reference
from dualmandate.errors import InvalidRequest, InvalidTables, TooLarge
from dualmandate.population import Attribute, Confidential, Domain, Protection
from dualmandate.population.arrays import Booleans, Floats, Integers
from dualmandate.population.labels import label_of
from dualmandate.publication import Rules, Source, source_file
from dualmandate.publication.tabulating import KEY_BYTES, SparseHistogram, Tabulated, tabulate
from dualmandate.workload import Identity, Table, Workload

if TYPE_CHECKING:
    from dualmandate.audit.disclosure_control.comparison import MethodEvaluation

Part_co = TypeVar("Part_co", covariant=True)
Truths = Mapping[Reference, Confidential[Integers]]  # counts of the same cells, by whose file they are
SMALL_DOMAIN = 4096  # At most this many cells are attacked as one place, where nobody names places.
MEAN_SIZE = math.sqrt(2 / math.pi)  # mean absolute error of a normal one, in standard errors
PURPOSE = "an audit: what an attack got right"
LARGEST_PLACE = 2**16  # Unknown counts are looked for in places of at most this many cells.


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
    impossible: Booleans | None = field(default=None, repr=False)  # structural zeros; shape (unknowns,)
    truths: Truths = field(default_factory=dict, repr=False)
    cells: Domain | None = field(default=None, repr=False)  # what the unknowns are, for words
    hidden: Booleans | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_truths(self.truths, (len(self.places), self.equations.size))

    def cell(self, unknown: int) -> str:
        """What an unknown counts, as its levels, or by its number."""
        if self.cells is None:
            return f"cell {unknown + 1}"
        levels = zip(self.cells.attributes, np.unravel_index(unknown, self.cells.shape), strict=True)
        return ", ".join(
            f"{each.name} {label_of(each.level_labels, each.levels[int(level)])}" for each, level in levels
        )


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
    truths: Truths = field(default_factory=dict, repr=False)
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


def open_truths(truths: Truths) -> dict[Reference, Integers]:
    """The counts that an attack is judged by."""
    return {reference: counts.open_for("judging an attack") for reference, counts in truths.items()}


def truths_of_period(truths: Truths, period: int) -> Truths:
    """The truths of one period, from those of all; shape (cells,) from (cells, periods)."""
    return {reference: boxed(counts[:, period]) for reference, counts in open_truths(truths).items()}


def check_truths(truths: Truths, shape: tuple[int, ...]) -> None:
    """Refuse a truth that counts something else than what was published."""
    for reference, counts in open_truths(truths).items():
        if counts.shape != shape:
            raise InvalidTables(
                f"the {reference} file gives counts of shape {counts.shape}, the tables ask for {shape}",
                why="a reconstruction is judged cell by cell",
                instead="count the same cells of the same places",
            )


def levels_in_words(domain: Domain) -> str:
    """How coarse each attribute is, for every rate: age in 38 levels means age bins."""
    return "values as declared: " + ", ".join(f"{each.name} ({each.size:,} levels)" for each in domain.attributes)


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

    def counts(self, cells: Integers) -> Integers:
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
    told = domain.attributes[axis]
    places = tuple(label_of(told.level_labels, level) for level in told.levels)
    return OnePlace(Workload(rest, tables), axis, places, tuple(inside), left_out)


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


def count_records(source: Source | Path, domain: Domain, *, place: Attribute | None = None) -> Confidential[Integers]:
    """Records of each cell in each place, boxed; shape (places, cells), one place where none is told apart.

    Values that the domain does not have are left out, and how many that are is not told.
    """
    file = source_file(source) if isinstance(source, Path) else source
    # the place last: structural zeros and hierarchies name attributes, not positions
    attributes = domain.attributes if place is None else (*domain.attributes, place)
    whole = Domain(attributes, domain.hierarchies, domain.structural_zeros)
    return boxed(np.ascontiguousarray(_counted(file, whole, Rules()).reshape(domain.size, -1).T))


def count_all(path: Path, domain: Domain, place: OnePlace, rules: Rules) -> Confidential[Integers]:
    """Records over a domain that holds the place among its attributes, boxed; shape (places, cells of one place)."""
    return by_place({"confidential": count_cells(path, domain, rules)}, place)["confidential"]


def count_cells(path: Path, domain: Domain, rules: Rules) -> Confidential[Integers]:
    """Records of each cell of a domain, boxed; shape (cells,)."""
    return boxed(_counted(source_file(path), domain, rules))


def by_place(truths: Truths, place: OnePlace) -> Truths:
    """Counts of a whole domain, a row a place; shape (places, cells of one place) from (cells,)."""
    opened = open_truths(truths).items()
    return {reference: boxed(np.ascontiguousarray(place.counts(counts))) for reference, counts in opened}


def _counted(source: Source, domain: Domain, rules: Rules) -> Integers:
    box = tabulate(source, domain, protection=Protection(), rules=rules, key=bytes(KEY_BYTES))
    return dense_counts(box, PURPOSE)


def dense_counts(tabulated: Confidential[Tabulated], purpose: str) -> Integers:
    """The counts of all cells, opened; shape (cells,)."""
    histogram = tabulated.open_for(purpose).histogram
    dense = histogram.dense() if isinstance(histogram, SparseHistogram) else histogram
    return np.asarray(dense.counts, dtype=np.int64).reshape(-1)


@dataclass(frozen=True, eq=False)
class Targets:
    """What is attacked in turn, and what cannot be."""

    attacked: tuple[object, ...]
    left_out: tuple[str, ...] = ()
    compared: tuple[MethodEvaluation, ...] = ()
    notes: tuple[str, ...] = ()  # on what is compared, in words
    clipped: Mapping[str, str] = field(default_factory=dict)  # by table: what it counts where that is clipped


def check_place(domain: Domain, *, instead: str = "name the attribute that tells places apart with --place") -> None:
    """Refuse a place with too many kinds of records."""
    if domain.size > LARGEST_PLACE:
        raise TooLarge(
            f"{domain.size:,} cells a place",
            why=f"records are looked for among at most {LARGEST_PLACE:,} combinations of values",
            instead=instead,
        )


LARGEST_COUNT = 2**31  # A published count above this is no count of people.


@dataclass(frozen=True, eq=False)
class Equations:
    """The left-hand sides, shared by every place for which the same tables are published (rows × unknown cells).

    Row r holds the coefficients `coefficients[starts[r]:starts[r + 1]]` at the unknowns `cells[…]`. `names` say where a
    row was published, for words.
    """

    starts: Integers = field(repr=False)  # (rows + 1,)
    cells: Integers = field(repr=False)
    coefficients: Integers = field(repr=False)
    size: int  # number of unknowns
    names: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of_workload(cls, workload: Workload) -> Equations:
        """The equations of tables over the cells of their domain, row-major; structural zeros are no unknowns' fault.

        Tables are counted without their weights: a weight is public and can be divided out.
        """
        from scipy.sparse import csr_array, kron, vstack

        parts, names = list[Any](), list[str]()
        for table in workload.tables:
            matrix = csr_array(np.ones((1, 1), dtype=np.int64))
            for factor in table.factors:
                matrix = csr_array(kron(matrix, csr_array(factor.columns(np.arange(factor.size))), format="csr"))
            parts.append(matrix)
            levels = [attribute.levels for attribute in workload.domain.attributes]
            names.extend(f"{table.name}: {', '.join(label)}".rstrip(": ") for label in table.labels(levels))
        return cls.of_matrix(vstack(parts, format="csr"), names)

    @classmethod
    def of_matrix(cls, matrix: Any, names: Sequence[str] = ()) -> Equations:
        """From a sparse or dense matrix of whole numbers, rows × unknowns."""
        from scipy.sparse import csr_array

        rows = csr_array(matrix)
        rows.eliminate_zeros()
        starts, cells, coefficients = (each.astype(np.int64) for each in (rows.indptr, rows.indices, rows.data))
        return cls(starts, cells, coefficients, int(rows.shape[1]), tuple(names))

    @property
    def rows(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def by_cell(self) -> tuple[Integers, Integers]:
        """For each unknown where its rows start, and these rows."""
        order = np.argsort(self.cells, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(self.cells, minlength=self.size))]).astype(np.int64)
        return starts, np.repeat(np.arange(self.rows), np.diff(self.starts))[order].astype(np.int64)

    @property
    def structure(self) -> tuple[Integers, Integers, Integers, Integers, Integers]:
        """What a compiled loop needs: by row its start, unknowns and coefficients, by unknown its start and rows."""
        return self.starts, self.cells, self.coefficients, *self.by_cell

    @cached_property
    def matrix(self) -> Any:
        """The same as a sparse matrix, rows × unknowns."""
        from scipy.sparse import csr_array

        parts = (self.coefficients, self.cells, self.starts)
        return csr_array(parts, shape=(self.rows, self.size), copy=True)  # it may sort its rows in place

    def of(self, counts: NDArray[Any]) -> Integers:
        """What would be published of some counts; shape (…, rows) from (…, unknowns)."""
        return np.asarray((self.matrix @ counts.reshape(-1, self.size).T).T.reshape(*counts.shape[:-1], self.rows))

    def name(self, row: int) -> str:
        return self.names[row] if self.names else f"number {row + 1}"

    def only(self, rows: Integers) -> Equations:
        """The equations of some rows, in their order."""
        return Equations.of_matrix(self.matrix[rows], [self.name(int(row)) for row in rows] if self.names else ())

    def without(self, dropped: Mapping[str, Any] | set[str]) -> Equations:
        """The equations without tables of some names (the part of a row's name before its colon)."""
        kept = [row for row in range(self.rows) if self.name(row).split(":")[0] not in dropped]
        return Equations.of_matrix(self.matrix[kept], [self.name(row) for row in kept])


def checked_values(equations: Equations, values: NDArray[Any]) -> Integers:
    """Published numbers as whole numbers, one row of them a place; refused where they cannot be counts."""
    given = np.atleast_2d(np.asarray(values))
    if given.shape[-1] != equations.rows:
        raise InvalidTables(
            f"{given.shape[-1]:,} numbers are given for {equations.rows:,} places of tables",
            why="every published number belongs to one equation",
            instead="give one number for each",
        )
    whole = given.astype(np.int64)
    wrong = np.argwhere((whole != given) | (whole < 0) | (whole > LARGEST_COUNT))
    if wrong.size:
        place, row = (int(each) for each in wrong[0])
        raise InvalidTables(
            f"'{equations.name(row)}' of place {place + 1} is {given[place, row]}",
            why="exact tables are whole numbers from 0 on",
            instead="give counts; noisy or rounded tables are for the attack on noisy tables",
        )
    return whole
