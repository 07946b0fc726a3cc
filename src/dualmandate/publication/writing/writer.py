"""The seam for file formats: whoever can write a sheet and read it back."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Protocol

import numpy as np

from dualmandate.errors import UnknownName
from dualmandate.mechanism import Noise
from dualmandate.mechanism.technologies import noise_named
from dualmandate.publication.measurements import Measurements, PublishedTable
from dualmandate.publication.writing.columns import Parquet
from dualmandate.publication.writing.sheet import Sheet, damaged


class Writer(Protocol):
    """A file format. Equal sheets give equal bytes; a file is complete or not there."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of its files end; the first holds the numbers."""
        ...

    def write(self, sheet: Sheet, stem: Path) -> tuple[Path, ...]:
        """Write a sheet durably under a path without suffix; the files, one a suffix."""
        ...

    def read(self, path: Path) -> Sheet:
        """What a file of this format holds, from the path of its numbers; refused where it is damaged."""
        ...


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


def read_measurements(path: Path) -> Measurements:
    """Measured numbers and the exact noise of each kind, from their Parquet file."""
    sheet = Parquet().read(path)
    noises = _noises(sheet.facts)
    if set(sheet.numbers) != {"kind", "value"} or not np.all(_within(sheet, len(noises))):
        raise damaged(f"the measurements '{sheet.name}'", "they do not say which noise each of them has")
    return Measurements(sheet.name, noises, sheet.numbers["kind"].astype(np.int64), sheet.numbers["value"])


def _within(sheet: Sheet, kinds: int) -> np.bool_:
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
