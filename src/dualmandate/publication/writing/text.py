"""Sheets as CSV: UTF-8, a heading, lines ended by CR LF, quotes where RFC 4180 asks for them, and nothing else.

Labels are written as they are. A program that takes a label beginning with `=`, `+`, `-` or `@` for a formula would
take it so here, too: open the file as text columns there. Whole numbers and the shortest decimals that stand for the
same double are read back exactly. Units and other facts are in the Parquet file and in release.json.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dualmandate.ledger.durable import durably
from dualmandate.publication.writing.sheet import NUMBERS, PUBLIC_MODE, Sheet, damaged, from_rows

if TYPE_CHECKING:
    import pyarrow as pa

LINE_END = "\r\n"
LONGEST_FIELD = 2**24


class Csv:
    """Plain text for every program there is."""

    suffixes: ClassVar[tuple[str, ...]] = (".csv",)

    def write(self, sheet: Sheet, stem: Path) -> tuple[Path, ...]:
        """Write a sheet durably."""
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

    def read(self, path: Path) -> Sheet:
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
