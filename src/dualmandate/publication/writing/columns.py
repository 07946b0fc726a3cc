"""Sheets as Parquet: labels as dictionaries, whole numbers and doubles, and public facts in the file's own words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from dualmandate.ledger.durable import durably
from dualmandate.publication.writing.sheet import NUMBERS, PUBLIC, PUBLIC_MODE, ROWS_AT_ONCE, Sheet, damaged

if TYPE_CHECKING:
    import pyarrow as pa

KEY = b"dualmandate"  # of the facts in the file's metadata
SCHEMA = "sheet/1"
COMPRESSION, LEVEL = "zstd", 3


class Parquet:
    """Columns with types and facts; what `load_release` reads."""

    suffixes: ClassVar[tuple[str, ...]] = (".parquet",)

    def write(self, sheet: Sheet, stem: Path) -> tuple[Path, ...]:
        """Write a sheet durably; row groups of fixed size, no times, facts in the order of their names."""
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

    def read(self, path: Path) -> Sheet:
        """What a file holds; refused unless this house wrote it."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pq.read_table(path)
            facts = json.loads((table.schema.metadata or {})[KEY])
            columns, labels = tuple(facts["columns"]), tuple(map(tuple, facts["labels"]))
            numbers = {name: table.column(name).to_numpy() for name in facts["numbers"]}
            typed = {name: np.asarray(values, dtype=NUMBERS[name]) for name, values in numbers.items()}
            sheet = Sheet(facts["name"], facts["unit"], columns, labels, typed, facts["facts"])
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            raise damaged(f"the file '{path.name}'", "it is not there, damaged, or was not written here") from None
        _check_labels(sheet, table)
        return sheet


def _narrowed(sheet: Sheet) -> list[str]:
    """The label columns of which a row group holds some levels only: of the others statistics tell nothing."""
    columns = zip(sheet.headings, sheet.strides, sheet.labels, strict=True)
    return [heading for heading, stride, levels in columns if stride * len(levels) > ROWS_AT_ONCE]


def _schema(sheet: Sheet) -> pa.Schema:
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


def _check_labels(sheet: Sheet, table: pa.Table) -> None:
    """The label columns say the same as the facts."""
    import pyarrow as pa

    for part, places in sheet.pieces():
        for heading, place, levels in zip(sheet.headings, places, sheet.labels, strict=True):
            expected = pa.array(levels, pa.string()).take(pa.array(place))
            given = table.column(heading).slice(part.start, len(place)).cast(pa.string()).combine_chunks()
            if not given.equals(expected):
                raise damaged(f"the table '{sheet.name}'", "its rows are not in row-major order")
