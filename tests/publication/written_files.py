"""Files of SAS, Stata and SPSS for tests, written by the library that pyreadstat carries inside."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import pyreadstat

Kind = Literal["text", "float", "double"]
Value = str | float | None
_TYPES: Mapping[Kind, tuple[int, int]] = {"text": (0, 32), "float": (4, 0), "double": (5, 0)}  # its numbers, and widths


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(next(Path(pyreadstat.__file__).parent.glob("_readstat_writer*.so"))))
    library.readstat_writer_init.restype = ctypes.c_void_p
    library.readstat_add_variable.restype = ctypes.c_void_p
    return library


def write_statistical_file(path: Path, kinds: Mapping[str, Kind], records: Sequence[Mapping[str, Value]]) -> Path:
    """One row a record; None is written as the format writes what is missing."""
    library, content = _library(), bytearray()

    def take(data: ctypes._Pointer[ctypes.c_char], size: int, _: object) -> int:
        content.extend(ctypes.string_at(data, size))
        return size

    take_back = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p)(
        take
    )
    writer = ctypes.c_void_p(library.readstat_writer_init())
    library.readstat_set_data_writer(writer, take_back)
    variables = {
        name: ctypes.c_void_p(
            library.readstat_add_variable(writer, name.encode(), _TYPES[kind][0], ctypes.c_size_t(_TYPES[kind][1]))
        )
        for name, kind in kinds.items()
    }
    begin = getattr(library, f"readstat_begin_writing_{path.suffix[1:]}")
    assert begin(writer, None, ctypes.c_long(len(records))) == 0
    for record in records:
        library.readstat_begin_row(writer)
        for name, kind in kinds.items():
            assert _insert(library, writer, variables[name], kind, record[name]) == 0
        assert library.readstat_end_row(writer) == 0
    assert library.readstat_end_writing(writer) == 0
    library.readstat_writer_free(writer)
    path.write_bytes(content)
    return path


def _insert(library: ctypes.CDLL, writer: ctypes.c_void_p, variable: ctypes.c_void_p, kind: Kind, value: Value) -> int:
    if value is None:
        return int(library.readstat_insert_missing_value(writer, variable))
    if kind == "text":
        return int(library.readstat_insert_string_value(writer, variable, str(value).encode()))
    if kind == "float":
        return int(library.readstat_insert_float_value(writer, variable, ctypes.c_float(float(value))))
    return int(library.readstat_insert_double_value(writer, variable, ctypes.c_double(float(value))))
