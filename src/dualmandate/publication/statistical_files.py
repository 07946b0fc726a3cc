"""Files of SAS, Stata and SPSS, read some records at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dualmandate.errors import UnreadableSource
from dualmandate.publication.sources import StatisticalFile, Stream, chosen

if TYPE_CHECKING:
    import pyarrow

ROWS_AT_A_TIME = 200_000
Read = Callable[..., tuple[dict[str, list[Any]], Any]]  # values by column, and what the file says of itself
NUMBERS = {"int8": "int8", "int16": "int16", "int32": "int32", "float": "float32", "double": "float64"}


@contextmanager
def records_of_file(source: StatisticalFile, wanted: Sequence[str]) -> Iterator[Stream]:
    """The wanted columns of the file, with the types that its own dictionary declares."""
    import pyarrow

    read = _reader(Path(source.path))
    _, facts = read(metadataonly=True)
    names = chosen(wanted, facts.column_names)
    kinds = [NUMBERS.get(facts.readstat_variable_types[name], "string") for name in names]
    schema = pyarrow.schema(list(zip(names, kinds, strict=True)))
    rows = facts.number_rows if facts.number_rows and facts.number_rows > 0 else None
    yield Stream(schema, _batches(read, schema, source, rows), rows)


def _reader(path: Path) -> Read:
    """pyreadstat's function for the ending, told to convert nothing."""
    import pyreadstat

    functions: dict[str, Read] = {
        ".sas7bdat": pyreadstat.read_sas7bdat,
        ".dta": pyreadstat.read_dta,
        ".sav": pyreadstat.read_sav,
    }
    return partial(functions[path.suffix.lower()], str(path), output_format="dict", disable_datetime_conversion=True)


def _batches(
    read: Read, schema: pyarrow.Schema, source: StatisticalFile, rows: int | None
) -> Iterator[pyarrow.RecordBatch]:
    import pyarrow

    first = 0
    while rows is None or first < rows:
        values, _ = read(usecols=schema.names, row_offset=first, row_limit=ROWS_AT_A_TIME)
        columns = [_column(values[field.name], field.type) for field in schema]
        found = len(columns[0])
        if found:
            yield pyarrow.record_batch(columns, schema=schema)
        first += found
        if found < ROWS_AT_A_TIME:
            break
    if rows is not None and first != rows:
        raise UnreadableSource(
            f"'{source.name}' ends before its last record",
            why="its head promises more records than there are",
            instead="copy the file again and compare its size",
        )


def _column(values: list[Any], kind: pyarrow.DataType) -> pyarrow.Array:
    """An empty text is how these files write that nothing is there."""
    import pyarrow

    if pyarrow.types.is_string(kind):
        return pyarrow.array([value or None for value in values], kind)
    return pyarrow.array(values, kind)
