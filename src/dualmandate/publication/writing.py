"""Releases as files: Parquet, which `load_release` reads, CSV for every program there is, and their names.

Parquet has labels as dictionaries, whole numbers and doubles, and public facts in the file's own words. CSV is UTF-8,
with a heading, lines ended by CR LF, quotes where RFC 4180 asks for them, and nothing else. Labels are written as they
are. A program that takes a label beginning with `=`, `+`, `-` or `@` for a formula would take it so here, too: open the
file as text columns there. Whole numbers and the shortest decimals that stand for the same double are read back
exactly. Units and other facts are in the Parquet file and in release.json.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRelease, UnknownName
from dualmandate.ledger.durable import durably
from dualmandate.mechanism import Noise
from dualmandate.mechanism.technologies import noise_named

if TYPE_CHECKING:
    import pyarrow as pa

RELEASE_SCHEMA = "release/1"


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What was measured for one group of tables: noisy whole numbers in the order of its strategy's rows."""

    group: str
    noises: tuple[Noise, ...]  # of each kind of row
    kinds: NDArray[np.int64] = field(repr=False)  # of each row; shape (rows,)
    values: NDArray[np.int64] = field(repr=False)  # with noise, modulo 2⁶⁴; shape (rows,)


@dataclass(frozen=True, eq=False)
class PublishedTable:
    """One table of a release, row-major over its labels.

    `estimates` are the best linear unbiased ones; `values` are whole numbers, at least 0, consistent across tables, or
    None where the tables were not made consistent. All in `unit`.
    """

    name: str
    unit: str
    columns: tuple[str, ...]  # attributes or groupings
    labels: tuple[tuple[str, ...], ...]  # the levels of each column
    estimates: NDArray[np.float64] = field(repr=False)  # shape (cells,)
    standard_errors: NDArray[np.float64] = field(repr=False)  # shape (cells,)
    values: NDArray[np.int64] | None = field(default=None, repr=False)  # shape (cells,)


@dataclass(frozen=True, eq=False)
class Glance:
    """What a page shows of a table that is on the disk already: its first numbers, how many it has, how precise."""

    first: PublishedTable  # all labels, and the first numbers
    cells: int
    typical_error: float  # the median of its standard errors; of some of them in a large table


KEY = b"dualmandate"  # Facts stand under this key in the metadata of a Parquet file.
SCHEMA = "sheet/1"
COMPRESSION, LEVEL = "zstd", 3
LINE_END = "\r\n"
LONGEST_NAME = 80  # A file name has at most so many letters.
RESERVED = {"con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(1, 10))}


class Writer(Protocol):
    """A file format. Equal sheets give equal bytes; a file is complete or not there."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of its files end; the first holds the numbers."""
        ...

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        """Write a sheet durably under a path without suffix; the files, one a suffix."""
        ...


class Parquet:
    """Columns with types and facts; what `load_release` reads."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        # Row groups of fixed size, no times, facts in the order of their names: equal sheets give equal bytes.
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = stem.with_name(stem.name + self.suffixes[0])
        schema = _schema(sheet)
        levels = [pa.array(each, pa.string()) for each in sheet.labels]
        settings: dict[str, Any] = {
            "compression": COMPRESSION,
            "compression_level": LEVEL,
            "use_dictionary": list(sheet.headings),
            "write_statistics": [*_narrowed(sheet), *sheet.numbers],
            "version": "2.6",
        }
        with durably(path, mode=PUBLIC_MODE) as file, pq.ParquetWriter(file, schema, **settings) as writer:
            for part, places in sheet.pieces():
                labels = [
                    pa.DictionaryArray.from_arrays(pa.array(place, pa.int32()), words)
                    for place, words in zip(places, levels, strict=True)
                ]
                numbers = [pa.array(values[part]) for values in sheet.numbers.values()]
                writer.write_table(pa.Table.from_arrays([*labels, *numbers], schema=schema))
        return (path,)

    def read(self, path: Path) -> ReleaseSheet:
        """What a file holds; refused where it is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            facts = json.loads((table.schema.metadata or {})[KEY])
            columns, labels = tuple(facts["columns"]), tuple(map(tuple, facts["labels"]))
            numbers = {name: table.column(name).to_numpy() for name in facts["numbers"]}
            typed = {name: np.asarray(values, dtype=NUMBERS[name]) for name, values in numbers.items()}
            sheet = ReleaseSheet(facts["name"], facts["unit"], columns, labels, typed, facts["facts"])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            raise damaged(f"the file '{path.name}'", "it is not there, damaged, or was not written here") from None
        _check_labels(sheet, table)
        return sheet


def _narrowed(sheet: ReleaseSheet) -> list[str]:
    """The label columns of which a row group holds some levels only: of the others statistics tell nothing."""
    columns = zip(sheet.headings, sheet.strides, sheet.labels, strict=True)
    return [heading for heading, stride, levels in columns if stride * len(levels) > ROWS_AT_ONCE]


def _schema(sheet: ReleaseSheet) -> pa.Schema:
    import pyarrow as pa

    types = {np.int32: pa.int32(), np.int64: pa.int64(), np.float64: pa.float64()}
    fields = [pa.field(heading, pa.dictionary(pa.int32(), pa.string()), nullable=False) for heading in sheet.headings]
    fields += [pa.field(name, types[NUMBERS[name]], nullable=False) for name in sheet.numbers]
    facts = {
        "schema": SCHEMA,
        "label": PUBLIC,
        "name": sheet.name,
        "unit": sheet.unit,
        "columns": list(sheet.columns),
        "labels": [list(levels) for levels in sheet.labels],
        "numbers": list(sheet.numbers),
        "facts": dict(sheet.facts),
    }
    return pa.schema(fields, metadata={KEY: json.dumps(facts, sort_keys=True, ensure_ascii=False).encode("utf-8")})


def _check_labels(sheet: ReleaseSheet, table: pa.Table) -> None:
    """The label columns say the same as the facts."""
    import pyarrow as pa

    for part, places in sheet.pieces():
        for heading, place, levels in zip(sheet.headings, places, sheet.labels, strict=True):
            expected = pa.array(levels, pa.string()).take(pa.array(place))
            given = table.column(heading).slice(part.start, len(place)).cast(pa.string()).combine_chunks()
            if not given.equals(expected):
                raise damaged(f"the table '{sheet.name}'", "its rows are not in row-major order")


class Csv:
    """Plain text for every program there is."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv",)

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        import pyarrow as pa
        import pyarrow.compute as pc

        path = stem.with_name(stem.name + self.suffixes[0])
        levels = [pa.array([quoted(level) for level in each], pa.string()) for each in sheet.labels]
        heading = ",".join([*map(quoted, sheet.headings), *sheet.numbers])
        with durably(path, mode=PUBLIC_MODE) as file:
            file.write((heading + LINE_END).encode("utf-8"))
            for part, places in sheet.pieces():
                fields = [words.take(pa.array(place)) for words, place in zip(levels, places, strict=True)]
                fields += [_written(values[part]) for values in sheet.numbers.values()]
                lines = pc.binary_join_element_wise(*fields, ",")
                file.write(_joined(lines))
                file.write(LINE_END.encode("ascii"))
        return (path,)


def quoted(field: str) -> str:
    """A field as RFC 4180 writes it; also in quotes where it is empty or has spaces at an end, which some drop."""
    if any(letter in field for letter in ',"\r\n') or field != field.strip() or not field:
        return '"' + field.replace('"', '""') + '"'
    return field


def _written(values: NDArray[Any]) -> pa.Array:
    """Numbers as text: doubles by the shortest decimal that is read back as the same."""
    import pyarrow as pa

    return pa.array(values).cast(pa.string())


def _joined(lines: pa.Array) -> memoryview:
    """Lines one after the other, all but the last with its end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    together = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return memoryview(pc.binary_join(together, LINE_END)[0].as_buffer())


def read_table(path: Path, *, estimates: Path | None = None) -> PublishedTable:
    """A table of a release from its Parquet file, with its estimates from theirs where named."""
    sheets = [Parquet().read(each) for each in (path, estimates) if each is not None]
    numbers = {name: values for sheet in sheets for name, values in sheet.numbers.items()}
    shapes = {(sheet.columns, sheet.labels) for sheet in sheets}
    if len(shapes) != 1:
        raise damaged(f"the table '{sheets[0].name}'", "its estimates have other labels than its whole numbers")
    missing = np.full(sheets[0].rows, np.nan)
    return PublishedTable(
        sheets[0].name,
        sheets[0].unit,
        sheets[0].columns,
        sheets[0].labels,
        numbers.get("estimate", missing),
        numbers.get("standard_error", missing),
        numbers.get("value"),
    )


def read_measurements(path: Path) -> NoisyRows:
    """Measured numbers and the exact noise of each kind, from their Parquet file."""
    sheet = Parquet().read(path)
    noises = _noises(sheet.facts)
    if set(sheet.numbers) != {"kind", "value"} or not np.all(_within(sheet, len(noises))):
        raise damaged(f"the measurements '{sheet.name}'", "they do not say which noise each of them has")
    return NoisyRows(sheet.name, noises, sheet.numbers["kind"].astype(np.int64), sheet.numbers["value"])


def _within(sheet: ReleaseSheet, kinds: int) -> np.bool_:
    found = sheet.numbers["kind"]
    return np.all((found >= 0) & (found < kinds))


def _noises(facts: Mapping[str, str]) -> tuple[Noise, ...]:
    found: list[Noise] = []
    while (written := facts.get(f"noise {len(found)}")) is not None:
        law, _, parameter = written.partition(" ")
        try:
            found.append(noise_named(law, Fraction(parameter)))
        except UnknownName:
            raise damaged("measurements with unknown noise", f"there is no noise called '{law}'") from None
    return tuple(found)


def slug(name: str) -> str:
    """A name in lower-case letters, digits and hyphens; never empty, and never one that a system keeps for itself."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode("ascii").lower()
    found = re.sub("[^a-z0-9]+", "-", plain).strip("-")[:LONGEST_NAME].rstrip("-")
    return f"table-{found}".rstrip("-") if not found or found in RESERVED else found


def file_names(names: Iterable[str]) -> dict[str, str]:
    """A different slug for each name, in their order: the second of two that look alike ends in `-2`."""
    found: dict[str, str] = {}
    taken: set[str] = set()
    for name in names:
        first = chosen = slug(name)
        number = 1
        while chosen in taken:
            number += 1
            chosen = f"{first}-{number}"
        taken.add(chosen)
        found[name] = chosen
    return found


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
