"""What one record can do to its reader, and what becomes of it: nothing that anybody else would notice.

A value that cannot be read (bytes that are no text, a text among numbers, a number too large for its column, a text
too long) is a value that is not there; a line that cannot be read has none. Each record is judged by itself, and marked
for the curator's check. So neither whether a reading succeeds nor what becomes of others depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow

UNREADABLE = "\nunreadable"  # The column of marks; no header can hold an end of line.
LONGEST_VALUE = 2**21  # Bytes: a longer line of text, or text in a column, is nothing that levels are compared with.


def cleaned_schema(schema: pyarrow.Schema) -> pyarrow.Schema:
    """The columns of cleaned batches: texts as themselves, whatever they are packed in, and the marks."""
    import pyarrow

    fields = [pyarrow.field(each.name, _unpacked(each.type)) for each in schema if each.name != UNREADABLE]
    return pyarrow.schema([*fields, (UNREADABLE, pyarrow.bool_())])


def cleaned(batch: pyarrow.RecordBatch) -> pyarrow.RecordBatch:
    """The records, those texts being not there that are no UTF-8 or too long."""
    import pyarrow

    schema, marks, columns = cleaned_schema(batch.schema), np.zeros(batch.num_rows, dtype=np.bool_), []
    for number, name in enumerate(batch.schema.names):
        if name == UNREADABLE:
            marks |= batch.column(number).to_numpy(zero_copy_only=False)
            continue
        column = batch.column(number)
        if _is_text(_unpacked(column.type)):
            column, bad = _clean_texts(column)
            marks[np.asarray(bad, dtype=np.int64)] = True
        columns.append(column)
    return pyarrow.record_batch([*columns, pyarrow.array(marks)], schema=schema)


def _unpacked(kind: pyarrow.DataType) -> pyarrow.DataType:
    import pyarrow

    packed = pyarrow.types.is_dictionary(kind) and _is_text(kind.value_type)
    return kind.value_type if packed else kind


def _is_text(kind: pyarrow.DataType) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind))


def _clean_texts(column: pyarrow.Array) -> tuple[pyarrow.Array, Sequence[int]]:
    """The texts, and the places of those that could not be read."""
    import pyarrow
    from pyarrow import compute

    kind = _unpacked(column.type)
    if kind != column.type:
        column = column.dictionary_decode()
    longest = compute.max(compute.binary_length(column)).as_py() or 0
    if longest <= LONGEST_VALUE:
        try:
            column.validate(full=True)
        except pyarrow.ArrowInvalid:
            pass
        else:
            return column, []
    values = column.cast(pyarrow.large_binary()).to_pylist()
    return column_of(values, kind)


def column_of(values: Sequence[Any], kind: pyarrow.DataType) -> tuple[pyarrow.Array, Sequence[int]]:
    """Values as a column of this type, and the places of those that are none of its values: they are not there."""
    import pyarrow

    fit = _fitting(kind)
    fitted = [None if is_absent(value) else fit(value) for value in values]
    try:
        return pyarrow.array(fitted, kind), _lost(values, fitted)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        # One of them is of another kind: each is asked by itself.
        fitted = [value if _is_of(value, kind) else None for value in fitted]
        return pyarrow.array(fitted, kind), _lost(values, fitted)


def _lost(values: Sequence[Any], fitted: Sequence[Any]) -> list[int]:
    pairs = enumerate(zip(values, fitted, strict=True))
    return [place for place, (before, after) in pairs if after is None and not is_absent(before)]


def is_absent(value: Any) -> bool:
    """Whether a value says that none is there; a number that is not a number does."""
    return value is None or (isinstance(value, float | Decimal) and math.isnan(value))


def _is_of(value: Any, kind: pyarrow.DataType) -> bool:
    import pyarrow

    try:
        pyarrow.array([value], kind)
    except (pyarrow.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True


def _fitting(kind: pyarrow.DataType) -> Callable[[Any], Any]:
    """What brings a value into the form that its column has, where one thing is written in several."""
    import pyarrow

    if _is_text(kind):
        return _text
    if pyarrow.types.is_boolean(kind):
        return lambda value: bool(value) if value in (0, 1) else None
    if pyarrow.types.is_floating(kind):
        return lambda value: _real(value) if isinstance(value, int | Decimal) else value
    if pyarrow.types.is_integer(kind):
        return lambda value: _whole(value) if isinstance(value, bool | float | Decimal) else value
    if pyarrow.types.is_binary(kind):
        return lambda _: None  # there is nothing that levels could be compared with
    return lambda value: value


def _whole(value: float | Decimal) -> int | None:
    """The number, if it is whole: nothing is cut off."""
    try:
        return int(value) if int(value) == value else None
    except OverflowError:
        return None


def _real(value: int | Decimal) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def _text(value: Any) -> str | None:
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return None
    written = format(value, "f") if isinstance(value, Decimal) else str(value)
    return written if len(written.encode(errors="replace")) <= LONGEST_VALUE else None
