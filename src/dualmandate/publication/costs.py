"""What publishing an order takes on this machine: processor seconds, memory and disk, before anything is spent.

Estimated from what is asked alone: how many cells, rows, tables, records and laws of noise there are, and which way
estimates and whole numbers are made. The rates were measured on one machine (`dualmandate benchmark scale` holds
estimates against what publishing took); a small piece of work says how much faster or slower this one is. What needs
more memory or disk than there is, is refused: when it is planned, and again before its loss is reserved.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np

from dualmandate.errors import TooLarge
from dualmandate.mechanism import Measurement
from dualmandate.population import Domain, Protection
from dualmandate.population.machine import machine_memory, size_words
from dualmandate.population.wording import number
from dualmandate.publication.nested_tables import LARGEST_FITTED, LARGEST_REST, NestedTables, nest_together
from dualmandate.publication.release_spec import (
    LARGEST_TOLD,
    Group,
    OrderedTechnology,
    ReleaseSpec,
    is_sparse,
    is_wide,
    needed_marginals,
    public_totals,
    technology_marginals,
)
from dualmandate.publication.spreadsheet import MOST_NUMBERS as MOST_IN_WORKBOOK
from dualmandate.workload import Table

MOST_LABELS = 2**26  # Of more rows of tables by cell it is not worked out whether the tables nest: they are taken to.
PROGRAM_MEMORY = 4.3e8  # bytes, of the program with its packages, a small release made
SPARE = 0.95  # of the memory, and of the disk, that one release may take

# Processor seconds, on the machine that they were measured on.
SMALL_RELEASE = 1.1  # of any release
EACH_TABLE = 0.011  # to write it in every form
EACH_LAW = 1e-3  # of noise
A_VALUE = 6e-8  # of a record, read from a file
A_PLACE, MERGED = 4e-9, 10  # of a record in a marginal, of a cell in a table; so many times of one in a strategy
A_ROW = 5e-8  # with noise
A_STEP = 4e-5  # of a fit, for each table
A_FITTED_CELL = 9e-9  # in one step, and for each table
A_FITTED_SUM = 3e-10
BESIDE_TOTALS = 3  # times as long, to hold what is exact
A_NESTED_CELL = 7e-7  # of a leaf
A_CROSSED_CELL = 1.2e-7  # of a leaf that tables cross, where they come apart into strata
A_PASSED_CELL = 7e-7  # elsewhere, for each table
A_NODE = 1e-6  # of the tree, for each grouping
A_RECONSTRUCTED_CELL = 1.5e-7  # by a strategy
A_LEVEL = 1.2e-9  # of a record of a fitted file, looked at once
USUAL_STEPS, USUAL_SWEEPS = 280, 3
PIECE = 0.014  # seconds of the piece of work that says how fast a machine is

# Bytes.
MOST_READ, READ_VALUE = 5e8, 30.0  # while records are grouped: beyond, they lie on disk
CELL = 10.0  # of a histogram, counted
FITTED_CELL = 100.0
RECONSTRUCTED_CELL = 96.0
NESTED_CELL = 44.0
HELD_NUMBER = 80.0  # of a table, as it is written
HELD_ROW = 12.0
LABEL = 24.0
TOLD_CELL, TOLD = 24.0, 3e8  # of what a technology is told of, and what it keeps of it
ON_DISK = 4e4  # of any release
TABLE_ON_DISK = 2e4
TABLES_SHOWN, SHOWN_ON_PAGE, SHOWN_NUMBER = 150, 500, 475.0  # of so many tables, so many numbers at the most
FRACTIONS_ON_DISK = 100.0  # of a number whose estimate and interval are no whole numbers, as those by a strategy are
ROW_ON_DISK = 3.0  # at the most
BITS_ON_DISK = 1.3  # for each that a number takes at least, by its noise
LEVEL_ON_DISK = 3.5  # of a synthetic record, as text and in Parquet


@dataclass(frozen=True)
class PublicationCost:
    """What publishing takes: processor seconds, bytes of memory at the most at once, bytes of the release on disk."""

    seconds: float
    memory: float
    disk: float

    def document(self) -> dict[str, float]:
        """The same by its keys in `plan --json`, to two digits."""
        return {key: float(f"{value:.1e}") for key, value in asdict(self).items()}

    def words(self) -> str:
        """The same for people."""
        time_taken = f"{number(self.seconds, 2)} s" if self.seconds < 120 else f"{number(self.seconds / 60, 2)} min"
        sizes = f"{size_words(self.memory)} of memory, {size_words(self.disk)} on disk"
        return f"to publish here: about {time_taken} of a processor, {sizes}"


def publication_cost(order: ReleaseSpec) -> PublicationCost:
    """What publishing an order takes on this machine, with as many records as its program expects.

    Loads of other work on the machine are not looked at: seconds are those of a processor that has nothing else to do.
    """
    seconds = SMALL_RELEASE + _reading(order) + _measuring(order) + _writing(order)
    # A technology is told twice: from the records, and from its transcript. Its own seconds are those of this machine.
    told = 0.0 if order.technology is None else 2 * order.technology.seconds
    seconds += _fitted(order) if order.technology is not None else _made_whole(order, _nest(order))
    return PublicationCost(seconds * machine_pace() + told, _memory(order), _on_disk(order))


def check_affordable(order: ReleaseSpec, out: Path) -> None:
    """Refuse, before anything is spent, what this machine has no memory or the folder no room for."""
    if order.engine == "local":
        check_memory(_memory(order))
    check_disk(_on_disk(order), out)


def check_memory(needed: float) -> None:
    """Refuse what takes more memory than this machine has."""
    most = SPARE * machine_memory()
    if needed > most:
        raise TooLarge(
            f"publishing takes some {size_words(needed)} of memory",
            why=f"this machine has {size_words(most)} for it",
            instead='publish on a machine that has more, or on a cluster ([publication] engine = "spark"); ask for '
            'fewer or smaller tables; or measure the tables themselves (strategy = "workload")',
        )


def check_disk(needed: float, out: Path) -> None:
    """Refuse a release that the disk of a folder has no room for."""
    folder = next(each for each in (out.absolute(), *out.absolute().parents) if each.is_dir())
    most = SPARE * shutil.disk_usage(folder).free
    if needed > most:
        raise TooLarge(
            f"a release takes some {size_words(needed)} of disk",
            why=f"'{folder}' has room for {size_words(most)}",
            instead="name a folder on a larger disk (--out), make room, or ask for fewer or smaller tables",
        )


def _memory(order: ReleaseSpec) -> float:
    if order.technology is not None:
        return memory_told(order.technology, order.protection, order.records)
    return memory_needed(order.domain, [group.measurement for group in order.groups], order.protection, order.records)


def memory_told(technology: OrderedTechnology, protection: Protection, records: float) -> float:
    """The same where a technology is told of all cells, or of marginals, and keeps what it asked about."""
    domain, tables = technology.workload.domain, technology.workload.tables
    public = public_totals(domain, protection)
    sets = technology_marginals(domain, [*tables, *(() if public is None else public.tables)])
    cells = domain.size if sets is None else sum(math.prod(domain.shape[axis] for axis in axes) for axes in sets)
    reading = min(MOST_READ, READ_VALUE * records * len(domain.shape))
    fitting = FITTED_CELL * domain.size if sets is None else 0.0
    numbers = sum(table.query_count for table in tables)
    return PROGRAM_MEMORY + max(reading, TOLD_CELL * cells + TOLD + 40.0 * numbers + fitting)


def memory_needed(
    domain: Domain, measurements: Collection[Measurement], protection: Protection, records: float
) -> float:
    """Bytes that publishing holds at the most at once: while counting, estimating, fitting or writing."""
    # Here, because its kernels cost more to import than a plan has time for.
    from dualmandate.mechanism.synthesis.records_fit import MOST_LEVELS

    measured, tables = [each.rows for each in measurements], [t for each in measurements for t in each.workload.tables]
    rows, numbers = sum(each.size for each in measured), sum(table.query_count for table in tables)
    public = public_totals(domain, protection)
    exact = [] if public is None else list(public.tables)
    counting = estimating = fitting = 0.0
    reading = min(MOST_READ, READ_VALUE * records * len(domain.shape))
    direct = all(each.direct for each in measured)
    if is_wide(domain, measured):
        sets = needed_marginals(domain, measurements, exact)
        counting = 3.0 * CELL * sum(math.prod(domain.shape[axis] for axis in axes) for axes in sets)
        estimating = 5.0 * 8.0 * (rows + numbers)
        levels = records * len(domain.shape)
        fitting = 2.0 * levels if levels <= MOST_LEVELS else 0.0  # else no file of records is fitted
    elif is_sparse(domain, measured, [*tables, *exact]):
        counting = 16.0 * records
    else:
        counting = CELL * domain.size
        strategy = any(each.strategy is not None for each in measured)
        estimating = (RECONSTRUCTED_CELL if strategy else 0.0 if direct else CELL) * domain.size
        fitting = FITTED_CELL * domain.size if domain.size <= LARGEST_FITTED else 0.0
    if direct and not is_wide(domain, measured):
        estimating += _labels(domain, len(tables) + len(exact))
        fitting = max(fitting, NESTED_CELL * _largest_leaves(domain, tables))
    held = HELD_ROW * rows + 16.0 * numbers
    writing = HELD_NUMBER * max(table.query_count for table in tables)
    return PROGRAM_MEMORY + max(reading, counting + HELD_ROW * rows, held + max(estimating, fitting, writing))


def _labels(domain: Domain, tables: int) -> float:
    """To see whether tables nest, the row of each cell of everything but one attribute is looked up in each."""
    rests = [domain.size // size for size in domain.shape if domain.size // size <= LARGEST_REST]
    return LABEL * tables * max(rests, default=0)


def _largest_leaves(domain: Domain, tables: Sequence[Table]) -> float:
    """Cells of the leaves of a nest at the most: all that tables tell apart, where a nest would be looked for."""
    if all(domain.size // size > LARGEST_REST for size in domain.shape):
        return 0.0
    told_apart = math.prod(max(table.shape[axis] for table in tables) for axis in range(len(domain.shape)))
    return float(min(told_apart, domain.size))


def _nest(order: ReleaseSpec) -> NestedTables | None:
    """The nest of an order, where it is soon seen whether there is one."""
    tables = len(order.tables) + len(order.public_tables)
    if tables * (order.domain.size // max(order.domain.shape)) > MOST_LABELS:
        return None
    return nest_together(order)


def _reading(order: ReleaseSpec) -> float:
    """The records, once, and what they count in."""
    counted = 0.0
    if order.marginals is not None:
        counted = order.records * sum(map(len, order.marginals))
    elif order.sparse:
        counted = min(order.records, float(order.domain.size)) * len(order.tables)
    else:
        # Tables share what they add up first; each group with a strategy begins with every cell.
        passes = sum(MERGED if group.rows.strategy else max(1, len(group.tables) // 4) for group in order.groups)
        counted = float(order.domain.size) * passes
    return A_VALUE * order.records * len(order.domain.shape) + A_PLACE * counted


def _measuring(order: ReleaseSpec) -> float:
    return sum(EACH_LAW * len(group.noises) + A_ROW * group.rows.size for group in order.groups)


def _made_whole(order: ReleaseSpec, nest: NestedTables | None) -> float:
    """Estimates and whole numbers, and the simulations of these."""
    # Here, because their kernels cost more to import than a plan has time for.
    from dualmandate.mechanism.synthesis.records_fit import MOST_LEVELS, MOST_WORK
    from dualmandate.publication.consistency.histogram_fit import FIRST_LOOK
    from dualmandate.publication.post_processing import DRAWS, MOST_FITTED, MOST_SIMULATED, too_long

    count, cells = len(order.tables), float(order.domain.size)
    direct = all(group.rows.direct for group in order.groups)
    estimating = 0.0 if direct or order.marginals is not None else A_RECONSTRUCTED_CELL * cells
    if nest is not None:
        leaves = nest.tree.sizes[-1] * nest.chain.sizes[-1]
        once = A_NODE * sum(nest.tree.sizes) * (nest.chain.last + 1)
        if nest.is_complete:
            once += A_NESTED_CELL * leaves
        else:
            once += leaves * (A_CROSSED_CELL if nest.is_orthogonal else A_NESTED_CELL + A_PASSED_CELL * (1 + count))
    elif order.marginals is not None:
        looked_at = sum(order.domain.shape[axis] for axes in order.marginals for axis in axes)
        affordable = order.records * len(order.domain.shape) <= MOST_LEVELS
        once = min(USUAL_SWEEPS * A_LEVEL * order.records * looked_at, A_LEVEL * MOST_WORK) if affordable else 0.0
        once += A_ROW * sum(group.rows.size for group in order.groups)
    elif cells > LARGEST_FITTED:
        return estimating
    else:
        once = USUAL_STEPS * (A_STEP * count + cells * (A_FITTED_CELL + A_FITTED_SUM * count))
        once *= 1 if order.public is None else BESIDE_TOTALS
    # Of many cells a fit is simulated too where it ends soon.
    soon = nest is None and sum(t.query_count for t in order.tables) <= MOST_SIMULATED
    soon = soon and FIRST_LOOK * cells * DRAWS <= MOST_FITTED
    return (estimating + once) * (1 + DRAWS if soon or not too_long(order) else 1)


def _fitted(order: ReleaseSpec) -> float:
    """Whole numbers of a technology: a histogram fitted to its estimates, or records dealt from its model."""
    cells, count = float(min(order.domain.size, LARGEST_TOLD)), len(order.tables)
    return USUAL_STEPS * (A_STEP * count + cells * (A_FITTED_CELL + A_FITTED_SUM * count))


def _writing(order: ReleaseSpec) -> float:
    return sum(
        EACH_TABLE + table.query_count * _class_of(table).seconds for table in (*order.tables, *order.public_tables)
    )


def _on_disk(order: ReleaseSpec) -> float:
    """Bytes of a release in all its forms: tables, what was measured, its page."""
    found = ON_DISK + sum(group.rows.size * _row_on_disk(group, order.records) for group in order.groups)
    by_strategy = [not group.rows.direct for group in order.groups for _ in group.tables]
    if order.technology is not None:  # as many numbers as its tables have are in its transcript, about
        by_strategy = [True] * len(order.tables)
        found += ROW_ON_DISK * sum(table.query_count for table in order.tables)
    by_strategy += [False] * len(order.public_tables)
    for place, table in enumerate((*order.tables, *order.public_tables)):
        each = _class_of(table)
        number = each.number + (FRACTIONS_ON_DISK if by_strategy[place] and each is not BARE else 0.0)
        found += SHOWN_NUMBER * min(table.query_count, SHOWN_ON_PAGE) if place < TABLES_SHOWN else 0.0
        found += TABLE_ON_DISK + table.query_count * (number + each.column * len(table.label_axes))
    if order.synthetic_records:
        columns = len({axis for table in order.tables for axis in table.label_axes})
        found += TABLE_ON_DISK + order.records * LEVEL_ON_DISK * columns
    return found


def _row_on_disk(group: Group, records: float) -> float:
    """Bytes of a noisy row: next to none where its noise is nearly always 0, and few records are in many rows.

    Whole numbers with a variance of v take ½·log₂(2πe·(v + 1/12)) bits, if they are spread like a normal variable;
    counts of records that fall evenly into rows have as large a variance as mean.
    """
    if len(group.noises) > 1:
        return ROW_ON_DISK
    variance = group.noises[0].distribution().variance + records / group.rows.size
    return min(ROW_ON_DISK, BITS_ON_DISK / 8 * math.log2(2 * math.pi * math.e * (variance + 1 / 12)) / 2)


@dataclass(frozen=True)
class _Class:
    """Tables of one size: processor seconds, and bytes, of a number and of each of its labels."""

    seconds: float
    number: float
    column: float


IN_WORKBOOKS, WITH_INTERVALS, BARE = _Class(6.5e-5, 140, 0), _Class(3.5e-6, 120, 12), _Class(4.5e-7, 10, 4)


def _class_of(table: Table) -> _Class:
    from dualmandate.publication.table_intervals import MOST_NUMBERS as MOST_WITH_INTERVALS

    if table.query_count <= MOST_IN_WORKBOOK:
        return IN_WORKBOOKS
    return WITH_INTERVALS if table.query_count <= MOST_WITH_INTERVALS else BARE


@cache
def machine_pace() -> float:
    """How many times as long as the machine that rates were measured on this one takes."""
    return max(min(_piece() for _ in range(3)) / PIECE, 0.1)


def _piece() -> float:
    """Processor seconds of a small piece of work like that of publishing: plain Python, and arrays."""
    started, numbers = time.process_time(), np.arange(2**17, dtype=np.float64)
    for _ in range(8):
        numbers = np.sqrt(np.cumsum(numbers[::-1]) % 1e6)
    _ = sorted(str(each) for each in range(12_000))
    return time.process_time() - started
