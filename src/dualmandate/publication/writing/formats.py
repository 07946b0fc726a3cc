"""Releases as files: Parquet, which `load_release` reads, CSV for every program there is, and their names.

Parquet has labels as dictionaries, whole numbers and doubles, and public facts in the file's own words. CSV is UTF-8,
with a heading, lines ended by CR LF, quotes where RFC 4180 asks for them, and nothing else. Labels are written as they
are. A program that takes a label beginning with `=`, `+`, `-` or `@` for a formula would take it so here, too: open the
file as text columns there. Whole numbers and the shortest decimals that stand for the same double are read back
exactly. Units and other facts are in the Parquet file and in release.json.
"""

from __future__ import annotations

import csv
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import UnknownName
from dualmandate.ledger.durable import durably
from dualmandate.mechanism import Noise
from dualmandate.mechanism.technologies import noise_named
from dualmandate.publication.measurements import NoisyRows, PublishedTable
from dualmandate.publication.writing.sheet import (
    NUMBERS,
    PUBLIC,
    PUBLIC_MODE,
    ROWS_AT_ONCE,
    ReleaseSheet,
    damaged,
    from_rows,
)

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"dualmandate"  # Facts stand under this key in the metadata of a Parquet file.
SCHEMA = "sheet/1"
COMPRESSION, LEVEL = "zstd", 3
LINE_END = "\r\n"
LONGEST_FIELD = 2**24  # A field of a CSV file has at most so many letters.
LONGEST_NAME = 80  # So has a file name.
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

    def read(self, path: Path) -> ReleaseSheet:
        """What a file of this format holds, from the path of its numbers; refused where it is damaged."""
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

    def read(self, path: Path) -> ReleaseSheet:
        """The labels and numbers of a file; it knows neither its unit nor other facts, and is named like the file."""
        try:
            with path.open(encoding="utf-8", newline="") as file:
                csv.field_size_limit(LONGEST_FIELD)
                heading, *rows = list(csv.reader(file, strict=True))
            names = [name for name in heading if name in NUMBERS]
            labels = heading[: len(heading) - len(names)]
            if not names or heading[len(labels) :] != names:
                raise ValueError
            cells: list[tuple[str, ...]] = list(zip(*rows, strict=True)) or [()] * len(heading)
            numbers = {name: np.array(cells[len(labels) + i], NUMBERS[name]) for i, name in enumerate(names)}
        except (OSError, ValueError, csv.Error):
            raise damaged(f"the file '{path.name}'", "it is not there, damaged, or was not written here") from None
        return from_rows(path.stem, labels, cells[: len(labels)], numbers)


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
