"""CSV, one line a record: what stands in a line decides about that line and no other.

A value that spans lines cannot be told from a quote that somebody forgot to close, and whoever reads on after such a
quote takes the lines of others for its text. So a line ends where it ends: an open quote, letters after a closing one,
too few or too many values and overlong lines are each a record that cannot be read.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numba
import numpy as np

from dualmandate.errors import UnreadableSource
from dualmandate.publication.unreadable import LONGEST_VALUE, UNREADABLE

if TYPE_CHECKING:
    import pyarrow

LONGEST_HEADER = 2**20  # The first line has at most so many bytes.
BLOCK = 2**22  # Bytes that are read at a time.
END, RETURN, QUOTE = ord("\n"), ord("\r"), ord('"')


@dataclass(frozen=True)
class CsvLayout:
    """The columns of a CSV file by its first line, those that are wanted, and where the records begin."""

    names: tuple[str, ...]
    wanted: tuple[str, ...]
    delimiter: str
    first: int  # byte of the first record

    @property
    def schema(self) -> pyarrow.Schema:
        """Texts, and the mark of records that could not be read."""
        import pyarrow

        return pyarrow.schema([*((name, pyarrow.string()) for name in self.wanted), (UNREADABLE, pyarrow.bool_())])

    def parsed(self, lines: bytes) -> pyarrow.RecordBatch:
        """The records of whole lines."""
        import pyarrow

        block = np.frombuffer(lines, dtype=np.uint8)
        most = lines.count(b"\n") + 1
        places = np.full(len(self.names), -1, dtype=np.int64)
        places[[self.names.index(name) for name in self.wanted]] = np.arange(len(self.wanted))
        values = np.empty((len(self.wanted), len(block)), dtype=np.uint8)
        ends = np.zeros((len(self.wanted), most + 1), dtype=np.int32)
        there = np.zeros((len(self.wanted), most), dtype=np.bool_)
        bad = np.zeros(most, dtype=np.bool_)
        delimiter = np.frombuffer(self.delimiter.encode(), dtype=np.uint8)
        rows = _split(block, delimiter, places, LONGEST_VALUE, (values, ends, there, bad))
        columns = [
            pyarrow.StringArray.from_buffers(
                rows,
                pyarrow.py_buffer(ends[number, : rows + 1]),
                pyarrow.py_buffer(values[number, : ends[number, rows]]),
                pyarrow.py_buffer(np.packbits(there[number, :rows], bitorder="little")),
            )
            for number in range(len(self.wanted))
        ]
        return pyarrow.record_batch([*columns, pyarrow.array(bad[:rows])], schema=self.schema)


def csv_layout(path: Path, delimiter: str, choose: Callable[[Sequence[str]], Sequence[str]]) -> CsvLayout:
    """The layout that the first line states; the columns wanted are what is chosen of its names."""
    with path.open("rb") as opened:
        line = opened.readline(LONGEST_HEADER)
    header = line.decode("utf-8-sig").removesuffix("\n").removesuffix("\r")
    try:
        names = next(csv.reader([header], delimiter=delimiter, strict=True), [])
    except csv.Error:
        raise UnreadableSource(
            f"the first line of '{path.name}' has a quote too many, or the name of a column goes on in the next line",
            why="the names of the columns stand in the first line, each ended by the delimiter",
            instead="write each name into one line, and a quote within a name twice",
        ) from None
    if len({name.casefold() for name in names}) != len(names) or not all(names) or "\r" in header:
        raise UnreadableSource(
            f"the columns of '{path.name}' have no names of their own",
            why="a column is found by its name in the first line, small and capital letters being the same",
            instead="name each column once, in the first line, and end lines with LF or CR LF",
        )
    return CsvLayout(tuple(names), tuple(choose(names)), delimiter, len(line))


def csv_batches(
    path: Path, layout: CsvLayout, read: Callable[[int], None], within: range | None = None
) -> Iterator[pyarrow.RecordBatch]:
    """The records of the file, or of the lines that begin within a run of its bytes.

    `read` is told from time to time how many bytes were read.
    """
    begin, stop = (layout.first, sys.maxsize) if within is None else (within.start, within.stop)
    held = b""
    with path.open("rb") as opened:
        done = _first_line(opened, begin, layout.first)
        while done < stop and (part := opened.read(min(BLOCK, stop - done))):
            done += len(part)
            read(done)
            whole = part.rfind(b"\n") + 1
            if whole:
                yield layout.parsed(held + part[:whole])
                held = part[whole:]
            else:  # of a line that is too long already, no more is kept than shows it
                held = (held + part)[: LONGEST_VALUE + 2]
        ended = not held
        while not ended and (part := opened.readline(BLOCK)):  # the last line goes on behind the run
            held, ended = (held + part)[: LONGEST_VALUE + 2], part.endswith(b"\n")
    if held:
        yield layout.parsed(held)


def _first_line(opened: BinaryIO, begin: int, first: int) -> int:
    """Go to where the first line begins that does so at `begin` or later; there."""
    opened.seek(max(begin - 1, first))
    ended = begin <= first
    while not ended and (part := opened.readline(BLOCK)):
        ended = part.endswith(b"\n")
    return opened.tell()


def _split_loop(block: Any, delimiter: Any, places: Any, longest: Any, out: Any) -> Any:
    """The values of whole lines into `out`: bytes, where each ends, whether it is there, and marks; how many records.

    An empty line is no record, except where there is but one column.
    """
    values, ends, there, bad = out
    row, begin = 0, 0
    while begin < block.size:
        end = _plain_line(block, begin, delimiter, places, row, values, ends) if delimiter.size == 1 else begin
        if end > begin and end - begin <= longest:
            for place in range(ends.shape[0]):
                there[place, row] = ends[place, row + 1] > ends[place, row]  # an empty value is not there
            row += 1
            begin = end + 1
            continue
        end = begin
        while end < block.size and block[end] != END:
            end += 1
        stop = end - 1 if end > begin and block[end - 1] == RETURN else end
        if stop == begin and places.size > 1:
            begin = end + 1
            continue
        readable = stop - begin <= longest and _split_line(block, (begin, stop), delimiter, places, row, values, ends)
        for place in range(ends.shape[0]):
            first, last = ends[place, row], ends[place, row + 1]
            if not readable or not _is_utf_8(values[place, first:last]):
                bad[row] = True
                ends[place, row + 1] = last = first
            there[place, row] = last > first
        row += 1
        begin = end + 1
    return row


def _plain_line_loop(block: Any, begin: Any, delimiter: Any, places: Any, row: Any, values: Any, ends: Any) -> Any:
    """Where a line ends that has nothing odd, its wanted values being put in their place; `begin` for any other.

    It has as many values as there are columns, none with a quote at its begin, and only ASCII where it is read. Most
    lines are such, and are read once, several times as fast.
    """
    at, mark, letters = begin, delimiter[0], 0
    for column in range(places.size):
        place = places[column]
        if at < block.size and block[at] == QUOTE:
            return begin
        if place < 0:
            while at < block.size and block[at] != mark and block[at] != END:
                at += 1
        else:
            first = used = ends[place, row]
            while at < block.size and block[at] != mark and block[at] != END:
                values[place, used] = block[at]
                letters |= block[at]
                used += 1
                at += 1
            if column == places.size - 1 and used > first and block[at - 1] == RETURN:
                used -= 1
            ends[place, row + 1] = used
        if column < places.size - 1:
            if at == block.size or block[at] == END:
                return begin
            at += 1
    return at if letters < 0x80 and (at == block.size or block[at] == END) else begin


def _split_line_loop(block: Any, line: Any, delimiter: Any, places: Any, row: Any, values: Any, ends: Any) -> Any:
    """The wanted values of one line; whether it has as many as there are columns, each in order."""
    at, stop = line
    for place in range(ends.shape[0]):
        ends[place, row + 1] = ends[place, row]
    for column in range(places.size):
        place = places[column]
        used = ends[place, row] if place >= 0 else 0
        if at < stop and block[at] == QUOTE:
            at += 1
            closed = False
            while at < stop and not closed:
                if block[at] == QUOTE and not (at + 1 < stop and block[at + 1] == QUOTE):
                    closed = True
                else:
                    at += 1 if block[at] == QUOTE else 0
                    if place >= 0:
                        values[place, used] = block[at]
                        used += 1
                at += 1
            if not closed:
                return False
        else:
            while at < stop and not _stands(delimiter, block, at, stop):
                if place >= 0:
                    values[place, used] = block[at]
                    used += 1
                at += 1
        if place >= 0:
            ends[place, row + 1] = used
        if column == places.size - 1:
            return at == stop
        if not _stands(delimiter, block, at, stop):
            return False
        at += delimiter.size
    return False


def _stands_loop(delimiter: Any, block: Any, at: Any, stop: Any) -> Any:
    stands = at + delimiter.size <= stop
    for number in range(delimiter.size if stands else 0):
        stands &= block[at + number] == delimiter[number]
    return stands


def _is_utf_8_loop(text: Any) -> Any:
    """Whether bytes are UTF-8: no stray or missing bytes, no form longer than needed, no surrogate, no end beyond."""
    at = 0
    while at < text.size:
        first = text[at]
        at += 1
        if first < 0x80:
            continue
        if first < 0xC2 or first > 0xF4:
            return False
        more = 1 if first < 0xE0 else (2 if first < 0xF0 else 3)
        if at + more > text.size:
            return False
        low, high = 0x80, 0xBF
        if first == 0xE0:
            low = 0xA0
        elif first == 0xED:
            high = 0x9F
        elif first == 0xF0:
            low = 0x90
        elif first == 0xF4:
            high = 0x8F
        for number in range(more):
            byte = text[at + number]
            if byte < low or byte > high:
                return False
            low, high = 0x80, 0xBF
        at += more
    return True


_compiled: Any = numba.njit(cache=True, nogil=True)
_stands: Any = _compiled(_stands_loop)
_is_utf_8: Any = _compiled(_is_utf_8_loop)
_plain_line: Any = _compiled(_plain_line_loop)
_split_line: Any = _compiled(_split_line_loop)
_split: Any = _compiled(_split_loop)
