"""What an approved plan orders: which rows are measured of whom, at which loss, under which rules. All of it public."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from dualmandate.errors import InvalidMechanism, InvalidWorkload, TooLarge
from dualmandate.mechanism import Measurement, Noise, Rows
from dualmandate.mechanism.data_dependent import Curator, PublishedMechanism, Told, without_impossible
from dualmandate.mechanism.strategy.exact import affordable_estimate
from dualmandate.mechanism.strategy.strategy import measures_marginals
from dualmandate.population import Domain, Neighbors, PrivacyLoss, Protection
from dualmandate.population.arguments import named_twice
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.domain import LARGEST_DENSE_HISTOGRAM
from dualmandate.population.machine import one_thread
from dualmandate.publication.marginal_counts import Axes, asked_axes, largest_sets
from dualmandate.publication.rules import Rules
from dualmandate.publication.tabulating import NUMBERED, check_numbered, countable
from dualmandate.publication.writing import Glance, require_sdmx
from dualmandate.workload import Ratio, Table, Tabulation, Workload

Page = Callable[[Mapping[str, Any], Sequence[Glance]], str]
ALL_TABLES = "all"  # the name of a group of all tables
NUMBER_OF_RECORDS = "number of records"  # the total that replacing a record leaves as it is
LARGEST_TOLD = 2**22  # cells of a domain of which a technology is told every one; of more, marginals
SPARSE_FROM = 2**24  # cells, from which on only those with records are held, where tables can be counted so


@dataclass(frozen=True, eq=False)
class Group:
    """Tables that are measured together, how, and what of the loss is theirs."""

    name: str
    measurement: Measurement
    loss: Fraction

    @property
    def rows(self) -> Rows:
        return self.measurement.rows

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.measurement.workload.tables

    @cached_property
    def noises(self) -> tuple[Noise, ...]:
        """The exact noise of each kind of row."""
        return self.measurement.noises(self.loss)

    @property
    def table_noises(self) -> list[Noise]:
        """The noise of each table's numbers, where the tables themselves are measured."""
        starts = np.cumsum([0, *(table.query_count for table in self.tables)])[:-1]
        kinds = self.rows.kinds()
        return [self.noises[int(kinds[start])] for start in starts]


@dataclass(frozen=True, eq=False)
class OrderedTechnology:
    """In place of groups of measurements: one technology whose errors depend on the data, and all of the loss."""

    name: str  # as in a program file
    format: int  # of what it draws
    mechanism: PublishedMechanism
    workload: Workload
    loss: Fraction
    seconds: float = 0.0  # that one release of it took, where it was simulated

    def tell(self, curator: Curator, protection: Protection) -> Told:
        """What a release says, from the draws of a curator: one who holds the records, or their transcript."""
        with one_thread():
            told = self.mechanism.tell(curator, self.workload, self.loss, protection=protection)
        return without_impossible(self.workload, told)

    def document(self) -> dict[str, str]:
        """What decides its draws beside the tables and the loss: the digest covers it."""
        return {"name": self.name, "format": str(self.format), **self.mechanism.parameters}


Labels = tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]  # the columns of a table, and the levels of each


@dataclass(frozen=True, eq=False)
class ReleaseSpec:
    """One release, before any data are opened. It is carried out as it stands, or refused."""

    plan_digest: str
    program: str
    account: str
    loss: PrivacyLoss
    domain: Domain
    protection: Protection
    rules: Rules
    groups: tuple[Group, ...]
    units: Mapping[str, str]  # of the numbers of each table and each ratio
    facts: Mapping[str, object] = field(default_factory=dict)  # what a release repeats of its plan
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)  # public files that a release carries along
    page: Page | None = None  # how a release is shown to people
    formats: tuple[str, ...] = ("csv",)  # of tables, besides Parquet
    agency: str | None = None  # that maintains SDMX structures
    synthetic_records: bool = False  # whether those that tables are counted from are written
    engine: Literal["local", "spark"] = "local"  # where it is measured
    ratios: tuple[Ratio, ...] = ()  # of its tables, and of what is exact
    clipped: Mapping[str, str] = field(default_factory=dict)  # what tables count where amounts or records are clipped
    superpopulation: frozenset[str] = frozenset()  # tables that estimate one
    account_identifier: str | None = None  # of the account that the plan was made for, where it says
    records: float = 0.0  # that the program expects; what publishing takes is estimated by it
    technology: OrderedTechnology | None = None  # whose errors depend on the data; then there are no groups

    @property
    def charge(self) -> PrivacyLoss:
        """What its account is charged: the loss for as many records as exact totals let change together."""
        return self.loss.for_records(self.protection.records_together)

    @property
    def tables(self) -> tuple[Table, ...]:
        """Every table, in the order of the groups."""
        if self.technology is not None:
            return self.technology.workload.tables
        return tuple(table for group in self.groups for table in group.tables)

    @cached_property
    def public(self) -> Workload | None:
        """The totals that are published exactly, or known beforehand; None where records may come and go."""
        return public_totals(self.domain, self.protection)

    @property
    def public_tables(self) -> tuple[Table, ...]:
        return () if self.public is None else self.public.tables

    @cached_property
    def known_labels(self) -> dict[Table, Labels]:
        """What was worked out of the labels of its tables: tables are made again in every simulated release."""
        return {}

    @property
    def sparse(self) -> bool:
        """Whether tables are counted from cells with records alone: decided by the plan, never by the records."""
        if self.technology is not None:
            return False
        return is_sparse(self.domain, [group.rows for group in self.groups], [*self.tables, *self.public_tables])

    @cached_property
    def marginals(self) -> tuple[Axes, ...] | None:
        """The marginals that are counted in place of a histogram; None where there is one: decided by the plan."""
        if self.technology is not None:
            return technology_marginals(self.domain, [*self.technology.workload.tables, *self.public_tables])
        if not is_wide(self.domain, [group.rows for group in self.groups]):
            return None
        return needed_marginals(self.domain, [group.measurement for group in self.groups], self.public_tables)

    def check(self) -> None:
        """Refuse what could not be carried out, before anything is spent: every sampler is made, every size known."""
        self._check_names()
        if self.technology is not None:
            check_technology(self.technology, self.protection)
        else:
            check_size(self.domain, [group.measurement for group in self.groups], self.protection)
        spent = sum((group.loss for group in self.groups), Fraction(0))
        spent += Fraction(0) if self.technology is None else self.technology.loss
        if spent > self.loss.amount:
            raise InvalidMechanism(
                f"groups of tables that lose {spent} in all, of a loss of {self.loss.exact()}",
                why="what is measured must not lose more than was approved",
                instead="plan again",
            )
        if self.engine == "spark":
            from dualmandate.publication.spark.session import running_session

            running_session()  # refused where there is none, or where it would send keys in the clear
        for group in self.groups:
            for noise in group.noises:
                noise.sampler()
        if any(name.startswith("sdmx") for name in self.formats):
            require_sdmx()

    def _check_names(self) -> None:
        """Each table has a name of its own, also beside what is exact; groups too: their names decide their noise."""
        published = [*(table.name for table in self.tables), *(ratio.name for ratio in self.ratios)]
        check_names([*published, *exact_names(self.protection)])
        check_names([group.name for group in self.groups])


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that two tables of a release would have."""
    twice = named_twice(names)
    if twice is not None:
        raise InvalidWorkload(
            f"two tables of a release are called '{twice}'",
            why="a release names its tables, those without noise too, and one would hide the other",
            instead="give the table or the exact total another name",
        )


def exact_names(protection: Protection) -> list[str]:
    """What the totals are called that are published exactly, or known beforehand."""
    known = [] if protection.neighbors is Neighbors.ADD_OR_REMOVE else [NUMBER_OF_RECORDS]
    return [*known, *(invariant.name for invariant in protection.invariants)]


def public_totals(domain: Domain, protection: Protection) -> Workload | None:
    """The totals that are published exactly, or known beforehand; None where records may come and go."""
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        return None
    exact = [Tabulation(each.name, each.by, each.where) for each in protection.invariants]
    return Workload.from_tabulations(domain, [Tabulation(NUMBER_OF_RECORDS), *exact])


def is_sparse(domain: Domain, measured: Sequence[Rows], tables: Sequence[Table]) -> bool:
    """Whether so many cells are counted from those with records alone: where tables themselves are measured."""
    return domain.size > SPARSE_FROM and all(rows.direct for rows in measured) and countable(tables)


def is_wide(domain: Domain, measured: Sequence[Rows]) -> bool:
    """Whether marginals are counted in place of a histogram: where a strategy measures these, or cells have no number.

    All that is measured must be counted so: marginals, or the tables themselves.
    """
    marginals = [rows.strategy is not None and rows.strategy.marginals is not None for rows in measured]
    if not (any(marginals) or domain.size >= NUMBERED):
        return False
    return all(own or rows.direct for own, rows in zip(marginals, measured, strict=True))


def needed_marginals(
    domain: Domain, measurements: Collection[Measurement], public: Sequence[Table]
) -> tuple[Axes, ...]:
    """The marginals that all measured rows, and what is exact, are sums of."""
    needed = [asked_axes(table) for table in public]
    for rows in (each.rows for each in measurements):
        if rows.strategy is not None:
            needed += rows.strategy.counted_sets
        else:
            needed += [asked_axes(table) for table in rows.workload.tables]
    return largest_sets(domain, needed)


def technology_marginals(domain: Domain, tables: Sequence[Table]) -> tuple[Axes, ...] | None:
    """The marginals that a technology is told of; None where it is told of every cell, as a small domain allows."""
    if domain.size <= LARGEST_TOLD:
        return None
    return largest_sets(domain, [asked_axes(table) or (0,) for table in tables])


def check_technology(technology: OrderedTechnology, protection: Protection) -> None:
    """Refuse what a technology cannot serve, or what it would have to count more cells for than are held."""
    domain = technology.workload.domain
    technology.mechanism.check(technology.workload, protection)
    sets = technology_marginals(domain, technology.workload.tables)
    if sets is not None:
        _check_cells(domain, sets)


def _check_wide(domain: Domain, measurements: Collection[Measurement], public: Workload | None) -> None:
    """Refuse marginals of more cells than are held at once."""
    _check_cells(domain, needed_marginals(domain, measurements, () if public is None else public.tables))


def _check_cells(domain: Domain, sets: Sequence[Axes]) -> None:
    cells = sum(math.prod(domain.shape[axis] for axis in axes) for axes in sets)
    if cells > LARGEST_DENSE_HISTOGRAM:
        raise TooLarge(
            f"a release would have to count {cells:,} cells of {len(sets):,} marginals",
            why=f"at most {LARGEST_DENSE_HISTOGRAM:,} are held",
            instead="ask for tables of fewer attributes, or of fewer levels",
        )


def check_strategy(workloads: Iterable[Workload], protection: Protection) -> None:
    """Refuse a strategy that would need more cells than are held, before it is looked for."""
    for workload in workloads:
        large = workload.domain.size > LARGEST_DENSE_HISTOGRAM
        if large and not measures_marginals(workload, protection):
            raise without_cells(workload.domain)


def without_cells(domain: Domain) -> TooLarge:
    """The refusal of a strategy that is not of marginals, where cells are too many."""
    return TooLarge(
        f"a strategy over the {domain.size:.3g} cells of a domain",
        why=f"at most {LARGEST_DENSE_HISTOGRAM:,} cells are held. Without them, marginals are measured: tables that "
        "show an attribute level by level or add it up, of records that come and go. Some tables here select, group, "
        "weigh or sum levels that others show, or something is public",
        instead='measure the tables themselves (strategy = "workload"), or ask for them apart in another program',
    )


def check_size(domain: Domain, measurements: Collection[Measurement], protection: Protection) -> None:
    """Refuse what no machine of this size could carry out: decided by what is asked, never by the records."""
    measured, made = [each.rows for each in measurements], [each.workload.tables for each in measurements]
    public = public_totals(domain, protection)
    if is_wide(domain, measured):
        _check_wide(domain, measurements, public)
        return
    if domain.size >= NUMBERED and any(rows.strategy is not None for rows in measured):
        raise without_cells(domain)
    check_numbered(domain)
    tables = [table for several in made for table in several] + [*(() if public is None else public.tables)]
    if domain.size > LARGEST_DENSE_HISTOGRAM and not is_sparse(domain, measured, tables):
        plain = all(rows.direct for rows in measured)
        what = "tables in which a record counts in several rows" if plain else "strategies and cells"
        raise TooLarge(
            f"a release would have to hold {domain.size:.3g} cells",
            why=f"{what} are measured from every cell of the domain, and at most {LARGEST_DENSE_HISTOGRAM:,} are held",
            instead="ask for tables in which a record counts once"
            if plain
            else 'measure the tables themselves (strategy = "workload"), or record fewer attributes or levels',
        )
    if any(rows.strategy is not None for rows in measured):
        affordable_estimate(domain.size)
    rows = sum(each.size for each in measured)
    if rows > LARGEST_DENSE_HISTOGRAM:
        raise TooLarge(
            f"{rows:.3g} numbers are to be measured",
            why=f"at most {LARGEST_DENSE_HISTOGRAM:,} are measured on one machine",
            instead="ask for tables with fewer numbers",
        )


def known_histogram(order: ReleaseSpec, totals: Integers) -> Floats:
    """Some histogram with the public totals, made from these alone: the one of least squares over possible cells.

    Estimates take from it what is public and nothing else. `totals` are the answers of `order.public`.
    """
    from scipy.sparse.linalg import LinearOperator, lsqr

    public = order.public
    assert public is not None
    possible = order.domain.possible_cells()
    matrix = LinearOperator(
        public.shape,
        matvec=lambda cells: public.answers(np.where(possible, cells.reshape(-1), 0.0)),
        rmatvec=lambda rows: np.where(possible, public.transpose_answers(rows.reshape(-1)).reshape(-1), 0.0),
        dtype=np.float64,
    )
    spread = lsqr(matrix, totals.astype(np.float64), atol=1e-15, btol=1e-15, iter_lim=10_000)[0]
    return np.asarray(spread.reshape(order.domain.shape))
