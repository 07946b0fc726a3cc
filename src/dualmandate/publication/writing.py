"""Releases as files: what a release holds, and Parquet, which `load_release` reads, CSV and SDMX for everybody else.

Parquet has labels as dictionaries, whole numbers and doubles, and public facts in the file's own words. CSV is UTF-8,
with a heading, lines ended by CR LF, quotes where RFC 4180 asks for them, and nothing else. Labels are written as they
are. A program that takes a label beginning with `=`, `+`, `-` or `@` for a formula would take it so here, too: open the
file as text columns there. Whole numbers and the shortest decimals that stand for the same double are read back
exactly. Where amounts or records were clipped, the heading says so; units and other facts are in the Parquet file and
in release.json.

SDMX 3.0, for agencies' registries, is a data message and the structure that it follows. Label columns become dimensions
with code lists, the whole numbers (or the estimates, where there are none) the measure OBS_VALUE, other numbers
attributes of an observation, the unit an attribute of the data set, as is what is counted where that is clipped. SDMX
codes are letters, digits, `_`, `@`, `$` and `-`; where a level is written otherwise, the levels of its attribute get
numbered codes, and keep their words as names. Nothing about the moment of writing enters: a message is prepared at the
time that is stated.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import InvalidRelease, InvalidRequest, UnknownName
from dualmandate.ledger.durable import durably, write_durably
from dualmandate.mechanism import Noise
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.labels import OWN, Labels

if TYPE_CHECKING:
    import pyarrow as pa
    from pysdmx.model import Codelist, Component, DataStructureDefinition

RELEASE_SCHEMA = "release/1"
Numbers = NDArray[Any]


@dataclass(frozen=True, eq=False)
class NoisyRows:
    """What was measured for one group of tables: noisy whole numbers in the order of its strategy's rows."""

    group: str
    noises: tuple[Noise, ...]  # of each kind of row
    kinds: Integers = field(repr=False)  # of each row; shape (rows,)
    values: Integers = field(repr=False)  # with noise, modulo 2⁶⁴; shape (rows,)


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
    estimates: Floats = field(repr=False)  # shape (cells,)
    standard_errors: Floats = field(repr=False)  # shape (cells,)
    values: Integers | None = field(default=None, repr=False)  # shape (cells,)
    quotients: Floats | None = field(default=None, repr=False)  # of a ratio: that of the whole numbers
    level_labels: tuple[Labels, ...] = field(default=(), repr=False)  # what readers are shown beside levels, by column
    intervals: Mapping[str, Numbers] = field(default_factory=dict, repr=False)  # ends, named as in `INTERVALS`

    @property
    def has_unknown_errors(self) -> bool:
        """Whether no standard error is known: its intervals say how far off its estimates are."""
        return bool(len(self.standard_errors)) and bool(np.isnan(self.standard_errors).all())


@dataclass(frozen=True, eq=False)
class Glance:
    """What a page shows of a table that is on the disk already: its first numbers, how many it has, how precise."""

    first: PublishedTable  # all labels, and the first numbers
    cells: int
    typical_error: float  # the median of its standard errors; of some of them in a large table


PUBLIC = "public"  # Everything that is written here has this label.
PUBLIC_MODE = 0o644  # Everyone may read it.
ENDS, QUOTIENT = ("lower", "upper"), "of_whole_numbers"  # the latter is a column of a ratio
PERCENTS = (90, 95)  # of the truths that intervals hold
OF_VALUES = tuple(f"value_{end}_{percent}" for percent in PERCENTS for end in ENDS)
OF_ESTIMATES = tuple(f"{end}_{percent}" for percent in PERCENTS for end in ENDS)
INTERVALS = (*OF_VALUES, *OF_ESTIMATES)
EARLIER = {end: f"{end}_95" for end in ENDS}  # what columns of ratios were called when these had one interval
UNIT_COLUMN, COUNTED_COLUMN = "unit", "what_is_counted"
NUMBERS = {
    "kind": np.int32,
    "value": np.int64,
    **dict.fromkeys(OF_VALUES, np.int64),
    "estimate": np.float64,
    "standard_error": np.float64,
    **dict.fromkeys(OF_ESTIMATES, np.float64),
    **dict.fromkeys(EARLIER, np.float64),
    "of_whole_numbers": np.float64,
}
ROWS_AT_ONCE = 2**20  # Files are written in pieces of so many rows.

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
    level_labels: tuple[Labels, ...] = field(default=(), repr=False)  # of the levels of each label column, if any

    def __post_init__(self) -> None:
        sizes = {len(each) for each in self.numbers.values()}
        expected = math.prod(len(levels) for levels in self.labels) if self.labels else None
        if len(sizes) != 1 or len(self.labels) != len(self.columns) or (expected is not None and sizes != {expected}):
            raise damaged(f"the table '{self.name}'", "it does not have one number a combination of its labels")

    @property
    def rows(self) -> int:
        return len(next(iter(self.numbers.values())))

    @property
    def headings(self) -> tuple[str, ...]:
        """The label columns as they are headed: a name that numbers have, or that came before, gets a `_`."""
        return _distinct(self.columns, ())

    @property
    def texts(self) -> tuple[TextColumn, ...]:
        """Every column of text: that of each label column's levels, and after it those of their labels."""
        found, taken = list[TextColumn](), list(self.headings)
        for place, (heading, levels) in enumerate(zip(self.headings, self.labels, strict=True)):
            found.append(TextColumn(heading, place, levels))
            for language, words in (self.level_labels[place] if self.level_labels else {}).items():
                [name] = _distinct([f"{heading}_label" + (f"_{language}" if language else "")], taken)
                taken.append(name)
                found.append(TextColumn(name, place, tuple(words.get(level, level) for level in levels), language))
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


def constants(sheet: ReleaseSheet) -> dict[str, str]:
    """What is the same for every row, as columns after the numbers: the unit, and what is counted where clipped."""
    clipped = {COUNTED_COLUMN: sheet.facts["clipped"]} if "clipped" in sheet.facts else {}
    return {**({UNIT_COLUMN: sheet.unit} if sheet.unit else {}), **clipped}


@dataclass(frozen=True)
class TextColumn:
    """A column of text in a file, and which label column decides its words."""

    heading: str
    place: int
    words: tuple[str, ...] = field(repr=False)  # of each level
    language: str | None = None  # of labels; codes are in none


def _distinct(names: Sequence[str], taken: Sequence[str]) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        heading = name
        while heading in NUMBERS or heading in (UNIT_COLUMN, COUNTED_COLUMN, *found, *taken):
            heading += "_"
        found.append(heading)
    return tuple(found)


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


def tidy_sheet(table: PublishedTable, facts: Mapping[str, str] = NO_FACTS) -> ReleaseSheet:
    """All that is published of a table, one row a cell: whole numbers and estimates, each with its intervals."""
    found: dict[str, Numbers] = {} if table.values is None else {"value": table.values}
    found |= {name: table.intervals[name] for name in OF_VALUES if name in table.intervals}
    found |= {"estimate": table.estimates}
    if not table.has_unknown_errors:
        found |= {"standard_error": table.standard_errors}
    found |= {name: table.intervals[name] for name in OF_ESTIMATES if name in table.intervals}
    return _sheet(table, found, facts)


def estimates_sheet(table: PublishedTable, facts: Mapping[str, str] = NO_FACTS) -> ReleaseSheet:
    """The unbiased estimates of a table and their standard errors."""
    return _sheet(table, {"estimate": table.estimates, "standard_error": table.standard_errors}, facts)


def ratio_sheet(ratio: PublishedTable, facts: Mapping[str, str] = NO_FACTS) -> ReleaseSheet:
    """A ratio of estimates, where they were worked out its standard errors and intervals, and that of whole numbers."""
    return _sheet(ratio, ratio_numbers(ratio), facts)


def ratio_numbers(ratio: PublishedTable) -> dict[str, Floats]:
    """The columns of a ratio."""
    found = {"estimate": ratio.estimates}
    if ratio.intervals:
        found |= {"standard_error": ratio.standard_errors, **ratio.intervals}
    return found if ratio.quotients is None else {**found, QUOTIENT: ratio.quotients}


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
    own = table.name, table.unit, table.columns, table.labels
    return ReleaseSheet(*own, _typed(numbers), facts, table.level_labels)


def _typed(numbers: Mapping[str, Numbers]) -> dict[str, Numbers]:
    return {name: _as(np.asarray(values), np.dtype(NUMBERS[name])) for name, values in numbers.items()}


def _as(values: Numbers, kind: np.dtype[Any]) -> Numbers:
    """Numbers of one type; one number that stands for all rows stays one."""
    if values.strides == (0,) and len(values):
        return np.broadcast_to(values[0].astype(kind), values.shape)
    return values.astype(kind, copy=False)


KEY = b"dualmandate"  # Facts stand under this key in the metadata of a Parquet file.
SCHEMA = "sheet/2"
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
        words = [(text.place, pa.array(text.words, pa.string())) for text in sheet.texts]
        settings: dict[str, Any] = {
            "compression": COMPRESSION,
            "compression_level": LEVEL,
            "use_dictionary": [
                *(text.heading for text in sheet.texts),
                *(name for name, values in sheet.numbers.items() if values.dtype.kind == "i"),  # few different ones
                *constants(sheet),
            ],
            "write_statistics": [*_narrowed(sheet), *sheet.numbers],
            "version": "2.6",
        }
        with durably(path, mode=PUBLIC_MODE) as file, pq.ParquetWriter(file, schema, **settings) as writer:
            for part, places in sheet.pieces():
                labels = [_coded(places[place], each) for place, each in words]
                numbers = [pa.array(values[part]) for values in sheet.numbers.values()]
                same = pa.array(np.zeros(part.stop - part.start, dtype=np.int32))
                of_all = [pa.DictionaryArray.from_arrays(same, pa.array([word])) for word in constants(sheet).values()]
                writer.write_table(pa.Table.from_arrays([*labels, *numbers, *of_all], schema=schema))
        return (path,)

    def read(self, path: Path) -> ReleaseSheet:
        """What a file holds; refused where it is damaged."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                facts = json.loads((file.schema_arrow.metadata or {})[KEY])
                table = file.read(columns=list(facts["numbers"]))
                typed = {name: _values(table.column(name), np.dtype(NUMBERS[name])) for name in facts["numbers"]}
                own = facts["name"], facts["unit"], tuple(facts["columns"])
                labels, words = _labels_in(file, facts)
                sheet = ReleaseSheet(*own, labels, typed, facts["facts"], words)
                if "labels" in facts:
                    _check_labels(sheet, file)
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            raise damaged(f"the file '{path.name}'", "it is not there, damaged, or was not written here") from None
        return sheet


def _values(column: pa.ChunkedArray, kind: np.dtype[Any]) -> Numbers:
    """A column of numbers as one array; from its buffers, because pyarrow would import pandas first."""
    import pyarrow as pa

    if column.null_count:
        raise ValueError
    cast = column.cast(pa.from_numpy_dtype(kind))
    parts = [
        np.frombuffer(each.buffers()[1], dtype=kind, count=len(each), offset=each.offset * kind.itemsize)
        for each in cast.chunks
        if len(each)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, dtype=kind), *parts])


def _coded(places: NDArray[np.int32], words: pa.Array) -> pa.DictionaryArray:
    """The words at some places, and none before or after all of these: each piece of a file holds its own alone."""
    import pyarrow as pa

    first = int(places.min())
    return pa.DictionaryArray.from_arrays(pa.array(places - first, pa.int32()), words[first : int(places.max()) + 1])


def _labels_in(file: Any, facts: Mapping[str, Any]) -> tuple[tuple[tuple[str, ...], ...], tuple[Labels, ...]]:
    """The levels of each label column, and their words for readers.

    Files of earlier versions have them among their facts.
    """
    if "labels" in facts:
        return tuple(map(tuple, facts["labels"])), tuple(facts.get("level_labels", ()))
    sizes: list[int] = facts["sizes"]
    levels, words = list[tuple[str, ...]](), list[dict[str, dict[str, str]]]()
    for heading, place, language in facts["texts"]:
        found = _words_in(file, heading, math.prod(sizes[place + 1 :]), sizes[place], table=facts["name"])
        if language is None:
            levels.append(found)
            words.append({})
        else:
            pairs = zip(levels[place], found, strict=True)
            words[place][language] = {level: word for level, word in pairs if word != level}
    return tuple(levels), tuple(words) if any(words) else ()


def _check_labels(sheet: ReleaseSheet, file: Any) -> None:
    """The label columns say what the facts of an earlier version say."""
    for text in sheet.texts:
        stride = sheet.strides[text.place]
        if _words_in(file, text.heading, stride, len(text.words), table=sheet.name) != text.words:
            raise _out_of_order(sheet.name)


def _words_in(file: Any, heading: str, stride: int, size: int, *, table: str) -> tuple[str, ...]:
    """What a column says of each level; refused unless each row says what others of its level say, in row-major order.

    Levels come in turn, so that each piece of the file repeats known ones, and goes on where they end.
    """
    known, start = list[str](), 0
    for number in range(file.num_row_groups):
        for chunk in file.read_row_group(number, columns=[heading]).column(0).chunks:
            places = _runs(start, start + len(chunk), stride, size)
            first, words = start // stride % size, _words_of_levels(chunk, places, size)
            if words is None:
                raise _out_of_order(table)
            for level, part in ((first, words[: size - first]), (0, words[size - first :])):
                again = len(known) - level
                if part[:again] != known[level : level + len(part)]:
                    raise _out_of_order(table)
                known += part[again:]
            start += len(chunk)
    if len(known) != size:
        raise ValueError
    return tuple(known)


def _words_of_levels(chunk: pa.Array, places: NDArray[np.int32], size: int) -> list[str] | None:
    """The word of each level that some rows have, in the order of the first of these; None where two rows disagree."""
    import pyarrow as pa

    coded = chunk if pa.types.is_dictionary(chunk.type) else chunk.dictionary_encode()
    if coded.null_count or coded.dictionary.null_count:
        return None
    codes = _values(pa.chunked_array([coded.indices]), np.dtype(np.int32))
    begins = np.flatnonzero(np.diff(places, prepend=-1))[:size]  # the first row of each level
    if not _is_of_levels(codes, places, begins, size):  # as numbered; a word may stand twice in a dictionary
        distinct = coded.dictionary.dictionary_encode().indices
        if not _is_of_levels(_values(pa.chunked_array([distinct]), codes.dtype)[codes], places, begins, size):
            return None
    asked = pa.Array.from_buffers(pa.int32(), len(begins), [None, pa.py_buffer(codes[begins])])
    return list(coded.dictionary.cast(pa.string()).take(asked).to_pylist())


def _is_of_levels(codes: NDArray[np.int32], places: NDArray[np.int32], begins: NDArray[np.intp], size: int) -> bool:
    """Whether rows of one level have one code: that of its first row."""
    of_level = np.zeros(size, dtype=codes.dtype)
    of_level[places[begins]] = codes[begins]
    return np.array_equal(codes, of_level[places])


def _out_of_order(table: str) -> InvalidRelease:
    return damaged(f"the table '{table}'", "its rows are not in row-major order")


def _narrowed(sheet: ReleaseSheet) -> list[str]:
    """The label columns of which a row group holds some levels only: of the others statistics tell nothing."""
    columns = zip(sheet.headings, sheet.strides, sheet.labels, strict=True)
    return [heading for heading, stride, levels in columns if stride * len(levels) > ROWS_AT_ONCE]


def _schema(sheet: ReleaseSheet) -> pa.Schema:
    import pyarrow as pa

    types = {np.int32: pa.int32(), np.int64: pa.int64(), np.float64: pa.float64()}
    texts = pa.dictionary(pa.int32(), pa.string())
    fields = [pa.field(text.heading, texts, nullable=False) for text in sheet.texts]
    fields += [pa.field(name, types[NUMBERS[name]], nullable=False) for name in sheet.numbers]
    fields += [pa.field(name, texts, nullable=False) for name in constants(sheet)]
    facts = {
        "schema": SCHEMA,
        "label": PUBLIC,
        "name": sheet.name,
        "unit": sheet.unit,
        "columns": list(sheet.columns),
        "sizes": [len(levels) for levels in sheet.labels],  # the levels themselves stand in the columns
        "texts": [[text.heading, text.place, text.language] for text in sheet.texts],
        "numbers": list(sheet.numbers),
        "facts": dict(sheet.facts),
    }
    return pa.schema(fields, metadata={KEY: json.dumps(facts, sort_keys=True, ensure_ascii=False).encode("utf-8")})


class Csv:
    """Plain text for every program there is."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv",)

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        import pyarrow as pa
        import pyarrow.compute as pc

        path = stem.with_name(stem.name + self.suffixes[0])
        words = [(text.place, pa.array(map(quoted, text.words), pa.string())) for text in sheet.texts]
        of_all = constants(sheet)
        heading = ",".join(map(quoted, [*(text.heading for text in sheet.texts), *sheet.numbers, *of_all]))
        end = [pa.scalar(quoted(word)) for word in of_all.values()]
        with durably(path, mode=PUBLIC_MODE) as file:
            file.write((heading + LINE_END).encode("utf-8"))
            for part, places in sheet.pieces():
                fields = [each.take(pa.array(places[place])) for place, each in words]
                fields += [
                    pa.array(values[part]).cast(pa.string()) for values in sheet.numbers.values()
                ]  # shortest decimals
                lines = pc.binary_join_element_wise(*fields, *end, ",")
                file.write(_joined(lines))
                file.write(LINE_END.encode("ascii"))
        return (path,)


def quoted(field: str) -> str:
    """A field as RFC 4180 writes it; also in quotes where it is empty or has spaces at an end, which some drop."""
    if any(letter in field for letter in ',"\r\n') or field != field.strip() or not field:
        return '"' + field.replace('"', '""') + '"'
    return field


def _joined(lines: pa.Array) -> memoryview:
    """Lines one after the other, all but the last with its end."""
    import pyarrow as pa
    import pyarrow.compute as pc

    together = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    return memoryview(pc.binary_join(together, LINE_END)[0].as_buffer())


def read_table(path: Path, *, estimates: Path | None = None) -> PublishedTable:
    """A table of a release from its Parquet file, with its estimates from theirs where named."""
    sheets = [Parquet().read(each) for each in dict.fromkeys((path, estimates)) if each is not None]
    numbers = {name: values for sheet in sheets for name, values in sheet.numbers.items()}
    shapes = {(sheet.columns, sheet.labels) for sheet in sheets}
    if len(shapes) != 1:
        raise damaged(f"the table '{sheets[0].name}'", "its estimates have other labels than its whole numbers")
    first, missing = sheets[0], np.full(sheets[0].rows, np.nan)
    estimate, error = (numbers.get(name, missing) for name in ("estimate", "standard_error"))
    own = first.name, first.unit, first.columns, first.labels
    whole, quotient = numbers.get("value"), numbers.get(QUOTIENT)
    ends = {name: numbers[name] for name in INTERVALS if name in numbers}
    ends |= {now: numbers[before] for before, now in EARLIER.items() if before in numbers}
    return PublishedTable(*own, estimate, error, whole, quotient, first.level_labels, ends)


def read_measurements(path: Path) -> NoisyRows:
    """Measured numbers and the exact noise of each kind, from their Parquet file."""
    sheet = Parquet().read(path)
    noises = _noises(sheet.facts)
    kinds = sheet.numbers.get("kind", np.zeros(0))
    if set(sheet.numbers) != {"kind", "value"} or np.any(kinds < 0) or np.any(kinds >= len(noises)):
        raise damaged(f"the measurements '{sheet.name}'", "they do not say which noise each of them has")
    return NoisyRows(sheet.name, noises, kinds.astype(np.int64), sheet.numbers["value"])


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


AGENCY = "DUALMANDATE"
VERSION = "1.0"
STRUCTURE = ".structure.xml"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROW, MEASURE, UNIT, COMMENT = "ROW", "OBS_VALUE", "UNIT_MEASURE", "COMMENT_DSET"
CODE = re.compile(r"[A-Za-z0-9_@$-]+", re.ASCII)
NOTHING = {"", "na", "nan", "nat", "none", "null"}  # Readers of CSV take these codes for none.
LONGEST = 90  # An identifier has at most so many letters, more than a file's name.
NO_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # XML cannot hold these letters.


@dataclass(frozen=True)
class _Sdmx:
    agency: str = AGENCY
    prepared: datetime = EPOCH  # of the release, never of the moment
    form: ClassVar[str]
    suffixes: ClassVar[tuple[str, ...]]

    def write(self, sheet: ReleaseSheet, stem: Path) -> tuple[Path, ...]:
        require_sdmx()
        import pandas as pd
        from pysdmx.io.format import Format
        from pysdmx.io.pd import PandasDataset
        from pysdmx.io.writer import write_sdmx
        from pysdmx.model import Organisation
        from pysdmx.model.message import Header

        name, agency = identifier(stem.name), identifier(self.agency)
        structures, definition = _structures(sheet, name, agency)

        def header() -> Header:  # the writers of messages fill it in
            return Header(id=name, prepared=self.prepared, sender=Organisation(id=agency))

        written = write_sdmx(structures, Format.STRUCTURE_SDMX_ML_3_0, header=header())
        is_xml = self.form.startswith("DATA_SDMX_ML")
        attributes = {key: _words(word) for key, (_, word) in _of_all(sheet).items() if word}
        if is_xml:  # pysdmx writes attributes of a data set as they are, and ' as "
            attributes = {key: escape(word, {'"': "&quot;", "'": "&apos;"}) for key, word in attributes.items()}
        data = PandasDataset(
            structure=definition.to_schema(), attributes=attributes, data=pd.DataFrame(_observations(sheet))
        )
        settings: dict[str, Any] = {"header": header()} if is_xml else {}
        message = write_sdmx([data], Format[self.form], **settings)
        paths = tuple(stem.with_name(stem.name + suffix) for suffix in self.suffixes)
        for path, text in zip(paths[::-1], (written, message), strict=True):
            assert text is not None
            write_durably(path, text.encode("utf-8"), mode=PUBLIC_MODE)
        return paths


class SdmxCsv(_Sdmx):
    """SDMX-CSV 2.0 beside its structure in SDMX-ML 3.0."""

    form = "DATA_SDMX_CSV_2_0_0"
    suffixes = (".sdmx.csv", STRUCTURE)


class SdmxMl(_Sdmx):
    """SDMX-ML 3.0, structure-specific data beside their structure."""

    form = "DATA_SDMX_ML_3_0"
    suffixes = (".sdmx.xml", STRUCTURE)


def identifier(name: str, taken: Sequence[str] = ()) -> str:
    """A name as an SDMX identifier: capitals, digits and `_`, a letter first, different from those that are taken."""
    plain = re.sub("[^A-Z0-9]+", "_", name.upper()).strip("_")[:LONGEST].rstrip("_")
    first = chosen = plain if plain[:1].isalpha() else f"X_{plain}".rstrip("_")
    number = 1
    while chosen in taken:
        number += 1
        chosen = f"{first}_{number}"
    return chosen


def codes_of(levels: Sequence[str]) -> tuple[str, ...]:
    """The levels themselves where all can be codes, else numbered codes."""
    if all(CODE.fullmatch(level) and level.lower().strip("-") not in NOTHING for level in levels):
        return tuple(levels)
    width = len(str(len(levels)))
    return tuple(f"L{place:0{width}d}" for place in range(1, len(levels) + 1))


def _structures(sheet: ReleaseSheet, name: str, agency: str) -> tuple[list[Any], DataStructureDefinition]:
    """Code lists, concepts, the data structure, and a data flow; facts are annotations of the structure."""
    from pysdmx.model import Agency, Annotation, Concept, ConceptScheme, DataStructureDefinition
    from pysdmx.model.dataflow import Components

    maintainer, headings = Agency(id=agency), _dimensions(sheet)
    words = {**headings, **{_number_id(sheet, each): each for each in sheet.numbers}}
    words |= {key: heading for key, (heading, _) in _of_all(sheet).items()}
    concepts = ConceptScheme(
        id=f"CS_{name}",
        name=_words(f"Concepts of {sheet.name}"),
        agency=maintainer,
        version=VERSION,
        items=[Concept(id=key, name=_words(word)) for key, word in words.items()],
    )
    lists = [_codelist(sheet, place, name, maintainer) for place in range(len(sheet.columns))]
    facts = {"label": PUBLIC, **dict(sorted(sheet.facts.items()))}
    definition = DataStructureDefinition(
        id=name,
        name=_words(sheet.name),
        agency=maintainer,
        version=VERSION,
        components=Components(_components(sheet, lists, concepts.id, agency)),
        annotations=[Annotation(id=key, title=key, text=_words(word)) for key, word in facts.items()],
    )
    return [*lists, concepts, definition], definition


def _codelist(sheet: ReleaseSheet, place: int, name: str, maintainer: Any) -> Codelist:
    from pysdmx.model import Code, Codelist

    levels, heading = sheet.labels[place], list(_dimensions(sheet))[place]
    labels = sheet.level_labels[place] if sheet.level_labels else {}
    own = next((labels[language] for language in (OWN, *labels) if language in labels), {})
    items = [
        Code(id=code, name=_words(own.get(level, level)), description=_words(level) if own else None)
        for code, level in zip(codes_of(levels), levels, strict=True)
    ]
    return Codelist(
        id=f"CL_{name}_{heading}", name=_words(sheet.columns[place]), agency=maintainer, version=VERSION, items=items
    )


def _components(sheet: ReleaseSheet, lists: Sequence[Codelist], scheme: str, agency: str) -> list[Component]:
    from pysdmx.model import Component as Of
    from pysdmx.model import DataType, ItemReference, Role

    types = {np.int32: DataType.INTEGER, np.int64: DataType.LONG, np.float64: DataType.DOUBLE}

    def concept(key: str) -> ItemReference:
        return ItemReference(sdmx_type="Concept", agency=agency, id=scheme, version=VERSION, item_id=key)

    found = []
    of_dimensions: Sequence[Codelist | None] = lists or [None]
    for key, codes in zip(_dimensions(sheet), of_dimensions, strict=True):
        urn = None if codes is None else f"urn:sdmx:org.sdmx.infomodel.codelist.{codes.short_urn}"
        kind = DataType.LONG if codes is None else DataType.STRING
        found.append(Of(key, True, Role.DIMENSION, concept(key), kind, local_codes=codes, local_enum_ref=urn))
    for name in sheet.numbers:
        key, kind = _number_id(sheet, name), types[NUMBERS[name]]
        if key == MEASURE:
            found.append(Of(key, True, Role.MEASURE, concept(key), kind))
        else:
            found.append(Of(key, False, Role.ATTRIBUTE, concept(key), kind, attachment_level="O"))
    attributes = (
        Of(key, False, Role.ATTRIBUTE, concept(key), DataType.STRING, attachment_level="D") for key in _of_all(sheet)
    )
    return [*found, *attributes]


def _of_all(sheet: ReleaseSheet) -> dict[str, tuple[str, str]]:
    """Attributes of the whole data set, each with its heading: the unit, and what is counted where that is clipped."""
    clipped = {COMMENT: ("what is counted", sheet.facts["clipped"])} if "clipped" in sheet.facts else {}
    return {UNIT: ("unit", sheet.unit), **clipped}


def _dimensions(sheet: ReleaseSheet) -> dict[str, str]:
    """The identifier of each label column, and its name; where there are none, rows are numbered."""
    taken = [MEASURE, UNIT, COMMENT, ROW, *(name.upper() for name in NUMBERS)]
    found: dict[str, str] = {}
    for column in sheet.columns:
        found[identifier(column, [*taken, *found])] = column
    return found or {ROW: "row"}


def _words(text: str) -> str:
    """Text that XML can hold."""
    return NO_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def _number_id(sheet: ReleaseSheet, name: str) -> str:
    """Whole numbers are the measure where there are any, else the first column of numbers."""
    measure = "value" if "value" in sheet.numbers else next(iter(sheet.numbers))
    return MEASURE if name == measure else name.upper()


def _observations(sheet: ReleaseSheet) -> dict[str, Any]:
    found: dict[str, Any] = {ROW: np.arange(1, sheet.rows + 1)}
    if sheet.labels:
        places = np.unravel_index(np.arange(sheet.rows), [len(levels) for levels in sheet.labels])
        codes = [np.array(codes_of(levels), dtype=object) for levels in sheet.labels]
        found = {key: words[place] for key, words, place in zip(_dimensions(sheet), codes, places, strict=True)}
    # What is no number, or an end of an interval that has none, is left out.
    for name, each in sheet.numbers.items():
        found[_number_id(sheet, name)] = np.where(np.isfinite(each), each, np.nan) if each.dtype.kind == "f" else each
    return found


def require_sdmx() -> None:
    """Refuse where the packages for SDMX are not installed; to be asked before anything is spent."""
    try:
        import pandas  # noqa: F401
        import pysdmx.io.xml  # noqa: F401
    except ImportError:
        raise InvalidRequest(
            "SDMX is asked for, and its packages are not installed",
            why="most releases do without it, so that it is an extra",
            instead="install dualmandate[sdmx]",
        ) from None
