"""What a file of a release holds: numbers by labels, row-major, and public facts about them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRelease
from dualmandate.publication.measurements import NoisyRows, PublishedTable

PUBLIC = "public"  # Everything that is written here has this label.
PUBLIC_MODE = 0o644  # Everyone may read it.
NUMBERS = {"kind": np.int32, "value": np.int64, "estimate": np.float64, "standard_error": np.float64}
ROWS_AT_ONCE = 2**20  # Files are written in pieces of so many rows.

Numbers = NDArray[Any]
NO_FACTS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class ReleaseSheet:
    """One file: label columns, then columns of numbers, with one row a combination of labels, row-major.

    Without label columns, rows have an order and nothing else (measurements), or there is one (a grand total).
    """

    name: str
    unit: str
    columns: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]  # the levels of each label column
    numbers: Mapping[str, Numbers] = field(repr=False)  # named as in `NUMBERS`; shape (rows,)
    facts: Mapping[str, str] = field(default_factory=dict)  # public: the digest of the plan, say

    def __post_init__(self) -> None:
        sizes = {len(each) for each in self.numbers.values()}
        expected = math.prod(len(levels) for levels in self.labels) if self.labels else None
        if len(sizes) != 1 or len(self.labels) != len(self.columns) or (expected is not None and sizes != {expected}):
            raise damaged(f"the table '{self.name}'", "it does not have one number a combination of its labels")

    @property
    def rows(self) -> int:
        """Rows of the file."""
        return len(next(iter(self.numbers.values())))

    @property
    def headings(self) -> tuple[str, ...]:
        """The label columns as they are headed: a name that numbers have, or that came before, gets a `_`."""
        found: list[str] = []
        for column in self.columns:
            heading = column
            while heading in NUMBERS or heading in found:
                heading += "_"
            found.append(heading)
        return tuple(found)

    def pieces(self) -> Iterator[tuple[slice, list[NDArray[np.int32]]]]:
        """Some rows at a time, and the place of their labels among the levels of each column."""
        for start in range(0, self.rows, ROWS_AT_ONCE):
            stop = min(start + ROWS_AT_ONCE, self.rows)
            yield (
                slice(start, stop),
                [_runs(start, stop, *each) for each in zip(self.strides, self._sizes, strict=True)],
            )

    @property
    def strides(self) -> tuple[int, ...]:
        """Rows for which the label of each column stays the same."""
        return tuple(math.prod(self._sizes[place + 1 :]) for place in range(len(self._sizes)))

    @property
    def _sizes(self) -> tuple[int, ...]:
        return tuple(len(levels) for levels in self.labels)


def _runs(start: int, stop: int, stride: int, size: int) -> NDArray[np.int32]:
    """row // stride % size for the rows from `start` on; faster than dividing each."""
    first, last = start // stride, (stop - 1) // stride
    levels = (np.arange(first, last + 1, dtype=np.int64) % size).astype(np.int32)
    if stride < stop - start:
        return np.repeat(levels, stride)[start - first * stride : stop - first * stride]
    edges = np.clip(np.arange(first, last + 2) * stride, start, stop)
    return np.repeat(levels, np.diff(edges))


def values_sheet(table: PublishedTable, facts: Mapping[str, str] = NO_FACTS) -> ReleaseSheet:
    """The consistent whole numbers of a table."""
    if table.values is None:
        raise damaged(f"the table '{table.name}'", "it was not made consistent, so that it has no whole numbers")
    return _sheet(table, {"value": table.values}, facts)


def estimates_sheet(table: PublishedTable, facts: Mapping[str, str] = NO_FACTS) -> ReleaseSheet:
    """The unbiased estimates of a table and their standard errors."""
    return _sheet(table, {"estimate": table.estimates, "standard_error": table.standard_errors}, facts)


def measurements_sheet(measurements: NoisyRows, facts: Mapping[str, str] = NO_FACTS) -> ReleaseSheet:
    """Measured numbers in the order of their strategy; the noise of each kind is a fact."""
    noises = {f"noise {kind}": f"{noise.law} {noise.parameter}" for kind, noise in enumerate(measurements.noises)}
    numbers = {"kind": measurements.kinds, "value": measurements.values}
    return ReleaseSheet(measurements.group, "", (), (), _typed(numbers), {**facts, **noises})


def from_rows(
    heading: str, columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Mapping[str, Numbers]
) -> ReleaseSheet:
    """A sheet from what a file without facts holds: one list of labels a column; refused unless row-major."""
    labels = tuple(tuple(dict.fromkeys(each)) for each in rows)
    found = ReleaseSheet(heading, "", tuple(columns), labels, _typed(numbers))
    for part, places in found.pieces():
        for place, levels, given in zip(places, labels, rows, strict=True):
            if [levels[one] for one in place] != list(given[part]):
                raise damaged(f"the table '{heading}'", "its rows are not in row-major order")
    return found


def damaged(what: str, why: str) -> InvalidRelease:
    """The refusal of a file that is not as it was written."""
    return InvalidRelease(
        what + " cannot be used", why=why, instead="take the release again from where it was published"
    )


def _sheet(table: PublishedTable, numbers: Mapping[str, Numbers], facts: Mapping[str, str]) -> ReleaseSheet:
    return ReleaseSheet(table.name, table.unit, table.columns, table.labels, _typed(numbers), facts)


def _typed(numbers: Mapping[str, Numbers]) -> dict[str, Numbers]:
    return {name: _as(np.asarray(values), np.dtype(NUMBERS[name])) for name, values in numbers.items()}


def _as(values: Numbers, kind: np.dtype[Any]) -> Numbers:
    """Numbers of one type; one number that stands for all rows stays one."""
    if values.strides == (0,) and len(values):
        return np.broadcast_to(values[0].astype(kind), values.shape)
    return values.astype(kind, copy=False)
