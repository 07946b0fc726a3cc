"""The folder of a release: measurements, estimates, consistent tables, what they rest on, and `release.json`.

Every file is on the disk before `release.json`, which names each with its SHA-256 and is written last; the ledger then
records the SHA-256 of `release.json` itself. Equal content gives equal bytes: times are those of the reservation.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualmandate.errors import CannotWrite
from dualmandate.ledger import Approval, Head, ReleaseEntry, Signature, account_identifier
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.ledger.durable import durably, sync_folder
from dualmandate.mechanism.noise import SAMPLER_VERSION
from dualmandate.population.arrays import Integers
from dualmandate.publication.measuring import by_table, published
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.release import Release
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.writing import (
    AGENCY,
    PUBLIC_MODE,
    RELEASE_SCHEMA,
    Csv,
    Glance,
    NoisyRows,
    Parquet,
    PublishedTable,
    SdmxCsv,
    SdmxMl,
    Writer,
    estimates_sheet,
    file_names,
    measurements_sheet,
    ratio_sheet,
    values_sheet,
)

if TYPE_CHECKING:
    from dualmandate.publication.post_processing import PostProcessed

PAGE = "index.html"
FOLDERS = {"sdmx-csv": "sdmx", "sdmx-ml": "sdmx"}  # Forms that are not beside the others lie there.
GLANCED = 8  # A page may show so many numbers of each table.
ENOUGH = 2**20  # So many standard errors, evenly chosen, are enough for a typical one.
SOFTWARE = ("dualmandate", "numpy", "scipy", "numba", "pyarrow", "duckdb", "cryptography", "python-flint")


@dataclass(frozen=True)
class Standing:
    """Where a release stands in its ledger: the head when it was reserved, and the approvals that it rests on."""

    head: Head
    approvals: tuple[Approval, ...] = ()

    def signatures(self, entry: ReleaseEntry) -> dict[str, object]:
        """Who approved and published it, by name and key where signed; a name that was only typed is not repeated."""
        acts = [(each.by, each.signature) for each in self.approvals]
        people = [_person(*each) for each in (*acts, (entry.user, entry.signature))]
        return {"approvals": people[:-1], "publication": people[-1]}


def _person(by: str, signature: Signature | None) -> dict[str, object]:
    return {"by": None, "key": None} if signature is None else {"by": by, "key": signature.key}


def write_measurements(draft: Path, order: ReleaseSpec, measured: Iterable[NoisyRows]) -> None:
    """Bring every measurement to the disk."""
    names = file_names([group.name for group in order.groups])
    folder = _folder(draft, "measurements")
    for each in measured:
        Parquet().write(measurements_sheet(each, _named(order)), folder / names[each.group])


def write_release(
    draft: Path,
    order: ReleaseSpec,
    measured: Sequence[NoisyRows],
    *,
    totals: Integers | None,
    entry: ReleaseEntry,
    standing: Standing,
    made: PostProcessed | None = None,
) -> str:
    """Write everything else, `release.json` last; its SHA-256. Nothing confidential comes this far.

    `made` are estimates and whole numbers, where these were not made here.
    """
    # Here, because its kernels cost more to import than the rest.
    from dualmandate.publication.post_processing import post_process

    made = post_process(order, measured=measured, totals=totals) if made is None else made
    written = _write_tables(draft, order, chain(made.tables, _exact_tables(order, totals)), entry.reserved_at)
    for name, content in order.files.items():
        _write(draft, name, content)
    facts = _facts(order, written, entry=entry)
    facts |= {"estimated_together": made.together, "consistency": made.words}
    facts["consistency_effects"] = [asdict(effect) for effect in made.effects]
    ratios = _write_ratios(draft, order, facts, entry.reserved_at)
    if ratios:
        facts["ratios"] = [_ratio_facts(order, *each) for each in ratios]
    facts["account_identifier"] = account_identifier(standing.head.ledger, entry.account)
    facts["signatures"] = standing.signatures(entry)
    if entry.beside is not None:
        facts["other_ledgers"] = entry.beside.document()
    facts["ledger_head"] = standing.head.document()
    facts["files"] = digests(draft)
    if order.page is not None:
        page = order.page(facts, [glance for glance, _ in (*written, *ratios)]).encode()
        _write(draft, PAGE, page)
        files = facts["files"] | {PAGE: hashlib.sha256(page).hexdigest()}
        facts["files"] = dict(sorted(files.items(), key=lambda item: Path(item[0])))
    content = (json.dumps(facts, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
    _write(draft, RELEASE_FILE, content)
    return hashlib.sha256(content).hexdigest()


def is_complete(folder: Path, digest: str | None) -> bool:
    """Whether a folder holds the release whose `release.json` has this SHA-256, every file unharmed."""
    try:
        content = (folder / RELEASE_FILE).read_bytes()
        if hashlib.sha256(content).hexdigest() != digest:
            return False
        named: dict[str, str] = json.loads(content)["files"]
        return named == digests(folder)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise CannotWrite.because(error, folder) from None


def digests(folder: Path) -> dict[str, str]:
    """The SHA-256 of every file below a folder but `release.json`, by its path there."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / RELEASE_FILE)
    found = {}
    for path in files:
        with path.open("rb") as opened:
            found[path.relative_to(folder).as_posix()] = hashlib.file_digest(opened, "sha256").hexdigest()
    return found


def _exact_tables(order: ReleaseSpec, totals: Integers | None) -> Iterator[PublishedTable]:
    """The totals that the program publishes without noise, as tables of their own."""
    if totals is not None:
        for table, here in zip(order.public_tables, by_table(order.public_tables, totals), strict=True):
            yield published(order, table, here.astype(np.float64), np.zeros(len(here)), here)


def writers_of(order: ReleaseSpec, prepared: str) -> dict[str, Writer]:
    """The forms in which whole numbers are published, by name; refused where a package for one is not installed."""
    time, agency = datetime.fromisoformat(prepared), order.agency or AGENCY
    known: dict[str, Writer] = {"csv": Csv(), "sdmx-csv": SdmxCsv(agency, time), "sdmx-ml": SdmxMl(agency, time)}
    return {"parquet": Parquet(), **{name: known[name] for name in order.formats}}


def _write_tables(
    draft: Path, order: ReleaseSpec, tables: Iterable[PublishedTable], prepared: str
) -> list[tuple[Glance, dict[str, str]]]:
    """Estimates of every table, and its whole numbers where there are any; one table is held at a time.

    What a page shows of each, and where what holds its numbers lies, by form.
    """
    names = file_names([table.name for table in (*order.tables, *order.public_tables)])
    writers, written = writers_of(order, prepared), list[tuple[Glance, dict[str, str]]]()
    for table in tables:
        files = _write_table(draft, order, table, writers=writers, name=names[table.name])
        written.append((_glance(table, shown=order.page is not None), files))
        del table  # before the next one is made
    return written


def _write_table(
    draft: Path, order: ReleaseSpec, table: PublishedTable, *, writers: Mapping[str, Writer], name: str
) -> dict[str, str]:
    facts = _named(order, table.name)
    paths = {"estimates": Parquet().write(estimates_sheet(table, facts), _folder(draft, "estimates") / name)}
    if table.values is not None:
        sheet = values_sheet(table, facts)
        for form, writer in writers.items():
            paths[form] = writer.write(sheet, _folder(draft, FOLDERS.get(form, "tables")) / name)
    return {kind: found[0].relative_to(draft).as_posix() for kind, found in paths.items()}


def _write_ratios(
    draft: Path, order: ReleaseSpec, facts: Mapping[str, Any], prepared: str
) -> list[tuple[Glance, dict[str, str]]]:
    """Every ratio of tables that are written already, in every form."""
    groups, ratios = {each.name: each for each in order.groups}, {each.name: each for each in order.ratios}

    @cache
    def together() -> NestWeights:
        nest = nest_together(order)
        assert nest is not None  # estimates rest on it
        return NestWeights(order, nest)

    release = Release(draft, facts, lambda group: groups[group].measurement, together, ratios.__getitem__)
    tables = [table.name for table in (*order.tables, *order.public_tables)]
    names = file_names([*tables, *(ratio.name for ratio in order.ratios)])
    writers, written = writers_of(order, prepared), list[tuple[Glance, dict[str, str]]]()
    for ratio in order.ratios:
        table = release.divided(ratio.name, order.units[ratio.name])
        sheet, files = ratio_sheet(table, _named(order, table.name)), dict[str, str]()
        for form, writer in writers.items():
            found = writer.write(sheet, _folder(draft, FOLDERS.get(form, "ratios")) / names[table.name])
            files[form] = found[0].relative_to(draft).as_posix()
        written.append((_glance(table, shown=order.page is not None), files))
    return written


def _ratio_facts(order: ReleaseSpec, glance: Glance, files: Mapping[str, str]) -> dict[str, Any]:
    ratio = next(each for each in order.ratios if each.name == glance.first.name)
    return {
        "name": ratio.name,
        "unit": glance.first.unit,
        "columns": list(glance.first.columns),
        "cells": glance.cells,
        "numerator": ratio.numerator.name,
        "denominator": ratio.denominator.name,
        "clipped": order.clipped.get(ratio.name),
        "intervals": glance.first.bounds is not None,
        **files,
    }


def _glance(table: PublishedTable, *, shown: bool) -> Glance:
    estimates, errors = table.estimates[:GLANCED].copy(), table.standard_errors[:GLANCED].copy()
    values = None if table.values is None else table.values[:GLANCED].copy()
    bounds = None if table.bounds is None else (table.bounds[0][:GLANCED].copy(), table.bounds[1][:GLANCED].copy())
    quotients = None if table.quotients is None else table.quotients[:GLANCED].copy()
    first = replace(table, estimates=estimates, standard_errors=errors, values=values)
    first = replace(first, bounds=bounds, quotients=quotients)
    some = table.standard_errors[:: len(table.estimates) // ENOUGH + 1]
    return Glance(first, len(table.estimates), float(np.median(some)) if shown else 0.0)


def _named(order: ReleaseSpec, table: str = "") -> dict[str, str]:
    """What every file says of where it comes from, and of what it counts where that is clipped."""
    clipped = {"clipped": order.clipped[table]} if table in order.clipped else {}
    return {"plan digest": order.plan_digest, "program": order.program, **clipped}


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
    order: ReleaseSpec, tables: Sequence[tuple[Glance, Mapping[str, str]]], *, entry: ReleaseEntry
) -> dict[str, Any]:
    exact = {table.name for table in order.public_tables}
    names = file_names([group.name for group in order.groups])
    return {
        "schema": RELEASE_SCHEMA,
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
            "amount": float(order.loss.amount),
            "currency": str(order.loss.privacy_measure),
        },
        **order.facts,
        "groups": [_group(group, names[group.name]) for group in order.groups],
        "tables": [
            {
                "name": glance.first.name,
                "unit": glance.first.unit,
                "clipped": order.clipped.get(glance.first.name),
                "columns": list(glance.first.columns),
                "cells": glance.cells,
                "exact": glance.first.name in exact,
                **files,
            }
            for glance, files in tables
        ],
        "versions": {
            "release": RELEASE_SCHEMA,
            "sampler": SAMPLER_VERSION,
            "python": platform.python_version(),
            **{name: version(name) for name in SOFTWARE},
        },
    }


def _group(group: Group, name: str) -> dict[str, Any]:
    return {
        "name": group.name,
        "tables": [table.name for table in group.tables],
        "loss": str(group.loss),
        "rows": group.rows.size,
        "measurements": f"measurements/{name}.parquet",
        "strategy": f"strategies/{name}.json" if group.rows.strategy is not None else None,
        "noises": [{"law": noise.law, "parameter": str(noise.parameter)} for noise in group.noises],
    }
