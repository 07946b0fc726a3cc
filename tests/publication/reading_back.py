"""Sheets from what other programs read: CSV by Python's own reader, SDMX by pysdmx; rows must be row-major."""

from __future__ import annotations

import csv
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from dualmandate.publication.writing import (
    COMMENT,
    COUNTED_COLUMN,
    NUMBERS,
    ROW,
    UNIT,
    UNIT_COLUMN,
    Parquet,
    ReleaseSheet,
    SdmxCsv,
    SdmxMl,
    Writer,
)


def read_back(writer: Writer, path: Path) -> ReleaseSheet:
    """What a writer wrote, from the path of the numbers."""
    if isinstance(writer, Parquet):
        return writer.read(path)
    return read_sdmx(writer, path) if isinstance(writer, SdmxCsv | SdmxMl) else read_csv(path)


def read_csv(path: Path) -> ReleaseSheet:
    """Labels, numbers, unit and what is counted; a CSV file knows no other facts, and is named like the file."""
    csv.field_size_limit(2**24)
    with path.open(encoding="utf-8", newline="") as file:
        heading, *rows = list(csv.reader(file, strict=True))
    names = [name for name in heading if name in NUMBERS]
    of_all = [name for name in heading if name in (UNIT_COLUMN, COUNTED_COLUMN)]
    columns = heading[: len(heading) - len(names) - len(of_all)]
    assert heading[len(columns) :] == [*names, *of_all]
    cells: list[tuple[str, ...]] = list(zip(*rows, strict=True)) or [()] * len(heading)
    numbers = {name: np.array(cells[len(columns) + i], NUMBERS[name]) for i, name in enumerate(names)}
    labels = tuple(tuple(dict.fromkeys(each)) for each in cells[: len(columns)])
    assert not labels or list(product(*labels)) == list(zip(*cells[: len(columns)], strict=True))
    [unit] = set(cells[heading.index(UNIT_COLUMN)]) if UNIT_COLUMN in of_all else {""}
    facts = {"clipped": cells[heading.index(COUNTED_COLUMN)][0]} if COUNTED_COLUMN in of_all else {}
    return ReleaseSheet(path.stem, unit, tuple(columns), labels, numbers, facts)


def read_sdmx(writer: SdmxCsv | SdmxMl, path: Path) -> ReleaseSheet:
    """What a message and the structure beside it hold."""
    from pysdmx.io.reader import read_sdmx as read

    beside = path.with_name(path.name.removesuffix(writer.suffixes[0]) + writer.suffixes[1])
    [definition] = (message := read(beside)).get_data_structure_definitions()
    found: Any = read(path).data
    [dataset] = found
    data = dataset.data
    lists = {each.id: [(code.id, str(code.name)) for code in each.items] for each in message.get_codelists()}
    concepts = {item.id: str(item.name) for scheme in message.get_concept_schemes() for item in scheme.items}
    keys = [each.id for each in definition.components.dimensions if each.id != ROW]
    codes = [lists[f"CL_{definition.id}_{key}"] for key in keys]
    labels = tuple(tuple(name for _, name in each) for each in codes)
    expected = list(product(*([code for code, _ in each] for each in codes)))
    assert not keys or expected == list(zip(*(data[key].astype(str) for key in keys), strict=True))
    numbers = {}
    for component in (*definition.components.measures, *definition.components.attributes):
        if component.id not in {UNIT, COMMENT}:
            name = concepts[component.id]
            numbers[name] = data[component.id].astype(str).to_numpy().astype(NUMBERS[name])
    unit = dataset.attributes.get(UNIT) or (data[UNIT].iloc[0] if UNIT in data else "")
    facts = {str(each.id): str(each.text) for each in definition.annotations if each.id != "label"}
    counted = dataset.attributes.get(COMMENT) or (data[COMMENT].iloc[0] if COMMENT in data else None)
    assert counted == facts.get("clipped")
    columns = tuple(concepts[key] for key in keys)
    return ReleaseSheet(str(definition.name), str(unit), columns, labels, numbers, facts)
