"""The folder of a release: measurements, estimates, consistent tables, what they rest on, and `release.json`.

Every file is on the disk before `release.json`, which names each with its SHA-256 and is written last; the ledger then
records the SHA-256 of `release.json` itself. Equal content gives equal bytes: times are those of the reservation.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.errors import CannotWrite
from dualmandate.ledger import Head
from dualmandate.ledger import Release as Entry
from dualmandate.ledger.durable import durably, sync_folder
from dualmandate.mechanism.noise import SAMPLER_VERSION
from dualmandate.publication.forms import StrategyForm
from dualmandate.publication.measurements import Measurements, PublishedTable
from dualmandate.publication.measuring import estimated, labeled
from dualmandate.publication.order import Group, Order, known_histogram
from dualmandate.publication.writing import (
    Csv,
    Parquet,
    SdmxCsv,
    SdmxMl,
    Writer,
    estimates_sheet,
    file_names,
    measurements_sheet,
    values_sheet,
)
from dualmandate.publication.writing.sdmx import AGENCY

RELEASE_FILE, PAGE = "release.json", "index.html"
SCHEMA = "release/1"
FOLDERS = {"sdmx-csv": "sdmx", "sdmx-ml": "sdmx"}  # of forms that are not beside the others
PUBLIC_MODE = 0o644  # of files: everyone may read what is public
SOFTWARE = ("dualmandate", "numpy", "scipy", "numba", "pyarrow", "duckdb", "cryptography", "python-flint")


def write_measurements(draft: Path, order: Order, measured: Sequence[Measurements]) -> None:
    """Bring every measurement to the disk."""
    names = file_names([group.name for group in order.groups])
    folder = _folder(draft, "measurements")
    for each in measured:
        Parquet().write(measurements_sheet(each, _named(order)), folder / names[each.group])


def write_release(
    draft: Path,
    order: Order,
    measured: Sequence[Measurements],
    *,
    totals: NDArray[np.int64] | None,
    entry: Entry,
    head: Head,
) -> str:
    """Write everything else, `release.json` last; its SHA-256. Nothing confidential comes this far."""
    from dualmandate.publication.adjusting import adjusted  # here: its kernels cost more to import than the rest

    public = None if totals is None else known_histogram(order, totals)
    tables = [
        table
        for group, each in zip(order.groups, measured, strict=True)
        for table in estimated(order, group, each, public)
    ]
    made = adjusted(order, tables, measured=measured, totals=totals)
    tables = [*made.tables, *_exact_tables(order, totals)]
    files = _write_tables(draft, order, tables, writers_of(order, entry.reserved_at))
    for name, content in order.files.items():
        _write(draft, name, content)
    facts = _facts(order, measured, tables, entry=entry, files=files)
    facts |= {"estimated_together": made.together, "consistency": made.words}
    facts["consistency_effects"] = [asdict(effect) for effect in made.effects]
    facts["ledger_head"] = head.document()
    facts["files"] = digests(draft)
    if order.page is not None:
        _write(draft, PAGE, order.page(facts, tables).encode())
        facts["files"] = digests(draft)
    content = (json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    _write(draft, RELEASE_FILE, content)
    return hashlib.sha256(content).hexdigest()


def is_complete(folder: Path, digest: str | None) -> bool:
    """Whether a folder holds the release whose `release.json` has this SHA-256, every file unharmed."""
    file = folder / RELEASE_FILE
    if digest is None or not file.is_file():
        return False
    content = file.read_bytes()
    if hashlib.sha256(content).hexdigest() != digest:
        return False
    named: dict[str, str] = json.loads(content)["files"]
    return named == digests(folder)


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder but `release.json`, by its path there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / RELEASE_FILE)
    found = {}
    for path in files:
        with path.open("rb") as opened:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found


def _exact_tables(order: Order, totals: NDArray[np.int64] | None) -> list[PublishedTable]:
    """The totals that the program publishes without noise, as tables of their own."""
    if totals is None or order.public is None:
        return []
    found, start = [], 0
    for table in order.public.tables:
        here = totals[start : start + table.query_count]
        start += table.query_count
        columns, labels = labeled(order, table)
        none = np.zeros(len(here))
        found.append(
            PublishedTable(table.name, order.protection.unit, columns, labels, here.astype(np.float64), none, here)
        )
    return found


def writers_of(order: Order, prepared: str) -> dict[str, Writer]:
    """The forms in which whole numbers are published, by name; refused where a package for one is not installed."""
    time, agency = datetime.fromisoformat(prepared), order.agency or AGENCY
    known: dict[str, Writer] = {"csv": Csv(), "sdmx-csv": SdmxCsv(agency, time), "sdmx-ml": SdmxMl(agency, time)}
    return {"parquet": Parquet(), **{name: known[name] for name in order.formats}}


def _write_tables(
    draft: Path, order: Order, tables: Sequence[PublishedTable], writers: Mapping[str, Writer]
) -> dict[str, dict[str, str]]:
    """Estimates of every table, and its whole numbers where there are any; the paths, by table and what they hold."""
    names, paths = file_names([table.name for table in tables]), dict[str, dict[str, str]]()
    estimates = _folder(draft, "estimates")
    for table in tables:
        name = names[table.name]
        written = {"estimates": Parquet().write(estimates_sheet(table, _named(order)), estimates / name)}
        if table.values is not None:
            sheet = values_sheet(table, _named(order))
            for form, writer in writers.items():
                written[form] = writer.write(sheet, _folder(draft, FOLDERS.get(form, "tables")) / name)
        paths[table.name] = {kind: files[0].relative_to(draft).as_posix() for kind, files in written.items()}
    return paths


def _named(order: Order) -> dict[str, str]:
    """What every file says of where it comes from."""
    return {"plan digest": order.plan_digest, "program": order.program}


def _write(draft: Path, name: str, content: bytes) -> None:
    path = _folder(draft, str(Path(name).parent)) / Path(name).name
    with durably(path, mode=PUBLIC_MODE) as file:
        file.write(content)


def _folder(draft: Path, name: str) -> Path:
    """A folder of the release, on the disk by its name."""
    folder = draft / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for above in Path(name).parents:
            sync_folder(draft / above)
    except OSError as error:
        raise CannotWrite.because(error, folder) from None
    return folder


def _facts(
    order: Order,
    measured: Sequence[Measurements],
    tables: Sequence[PublishedTable],
    *,
    entry: Entry,
    files: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    exact = {table.name for table in order.public.tables} if order.public is not None else set()
    names = file_names([group.name for group in order.groups])
    return {
        "schema": SCHEMA,
        "label": "public",
        "release": entry.name,
        "program": order.program,
        "plan_digest": order.plan_digest,
        "account": order.account,
        "unit": order.protection.unit,
        "snapshot": entry.snapshot,
        "reserved_at": entry.reserved_at,
        "loss": {
            "exact": order.loss.exact(),
            "amount": float(order.loss),
            "currency": str(order.loss.currency),
        },
        **order.facts,
        "groups": [_group(group, each, names[group.name]) for group, each in zip(order.groups, measured, strict=True)],
        "tables": [
            {
                "name": table.name,
                "unit": table.unit,
                "columns": list(table.columns),
                "cells": len(table.estimates),
                "exact": table.name in exact,
                **files[table.name],
            }
            for table in tables
        ],
        "versions": {
            "release": SCHEMA,
            "sampler": SAMPLER_VERSION,
            "python": platform.python_version(),
            **{name: version(name) for name in SOFTWARE},
        },
    }


def _group(group: Group, measured: Measurements, name: str) -> dict[str, Any]:
    return {
        "name": group.name,
        "tables": [table.name for table in group.form.workload.tables],
        "loss": str(group.loss),
        "rows": group.form.rows,
        "measurements": f"measurements/{name}.parquet",
        "strategy": f"strategies/{name}.json" if isinstance(group.form, StrategyForm) else None,
        "noises": [{"law": noise.law, "parameter": str(noise.parameter)} for noise in measured.noises],
    }
