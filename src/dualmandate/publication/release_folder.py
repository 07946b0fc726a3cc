"""The folder of a release: measurements, estimates, consistent tables, what they rest on, and `release.json`.

Every file is on the disk before `release.json`, which names each with its SHA-256 and is written last; the ledger then
records the SHA-256 of `release.json` itself. Equal content gives equal bytes: times are those of the reservation.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dualmandate.errors import CannotWrite, InvalidRelease
from dualmandate.ledger import Approval, Head, ReleaseEntry, Signature, account_identifier
from dualmandate.ledger.chain import RELEASE_FILE
from dualmandate.ledger.durable import durably, sync_folder
from dualmandate.mechanism.data_dependent import Draw
from dualmandate.mechanism.noise import SAMPLER_VERSION
from dualmandate.population.arrays import Integers
from dualmandate.population.labels import ENGLISH
from dualmandate.population.wording import stated_loss
from dualmandate.publication.beside_data import snapshot_mark
from dualmandate.publication.data_dictionary import README, described, dictionary_files, notes, readme
from dualmandate.publication.measuring import by_table, published
from dualmandate.publication.nested_tables import NestWeights, nest_together
from dualmandate.publication.release import Release
from dualmandate.publication.release_spec import Group, ReleaseSpec
from dualmandate.publication.spreadsheet import MOST_NUMBERS, Xlsx
from dualmandate.publication.synthetic_records import FOLDER, NONE_FITTED, SyntheticRecords
from dualmandate.publication.table_intervals import MOST_NUMBERS as MOST_WITH_INTERVALS
from dualmandate.publication.table_intervals import IntervalWords, TableIntervals
from dualmandate.publication.transcripts import (
    TRANSCRIPT,
    read_transcript,
    technology_facts,
    told_of,
    write_transcript,
)
from dualmandate.publication.writing import (
    AGENCY,
    PUBLIC_MODE,
    RELEASE_SCHEMA,
    Csv,
    Glance,
    NoisyRows,
    Parquet,
    PublishedTable,
    ReleaseSheet,
    SdmxCsv,
    SdmxMl,
    Writer,
    file_names,
    measurements_sheet,
    ratio_sheet,
    read_measurements,
    tidy_sheet,
    values_sheet,
)

if TYPE_CHECKING:
    from dualmandate.publication.post_processing import PostProcessed

PAGE = "index.html"
TABLES, RATIOS = "tables", "ratios"
FOLDERS = {"sdmx-csv": "sdmx", "sdmx-ml": "sdmx"}  # Forms that are not beside the others lie there.
GLANCED = 100_000  # A page may hold so many numbers, of all tables together, to be searched.
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


def write_measurements(
    draft: Path, order: ReleaseSpec, measured: Iterable[NoisyRows], transcript: Sequence[Draw] = ()
) -> None:
    """Bring every measurement to the disk, or every draw of a technology."""
    if transcript:
        write_transcript(transcript, _folder(draft, MEASUREMENTS) / TRANSCRIPT, _named(order))
    names = file_names([group.name for group in order.groups])
    folder = _folder(draft, MEASUREMENTS)
    for each in measured:
        Parquet().write(measurements_sheet(each, _named(order)), folder / names[each.group])


@dataclass(frozen=True, eq=False)
class Measured:
    """All that is taken from the records: every group with its noise, what is exact, and in words where it was done."""

    rows: tuple[NoisyRows, ...] = field(repr=False)
    totals: Integers | None = field(repr=False)
    words: str
    transcript: tuple[Draw, ...] = field(default=(), repr=False)  # of a technology, in place of groups


MEASUREMENTS, SEAL, TOTALS = "measurements", ".seal.json", ".totals"
SEALED = (MEASUREMENTS, SEAL, TOTALS)  # what is kept of a draft from when it was measured until it is a release


def seal_measurements(draft: Path, found: Measured, *, key: bytes) -> None:
    """Bring to the disk what tells the measurements of this draft from any others: an HMAC of them, and the rest."""
    _write(draft, TOTALS, b"" if found.totals is None else found.totals.astype("<i8", copy=False).tobytes())
    content = {"words": found.words, "totals": found.totals is not None, "files": _sealed_files(draft)}
    mac = hmac.new(key, json.dumps(content, sort_keys=True).encode(), hashlib.sha256).hexdigest()
    _write(draft, SEAL, json.dumps(content | {"mac": mac}).encode())


def _sealed_files(draft: Path) -> dict[str, str]:
    return {name: digest for name, digest in digests(draft).items() if name != SEAL}


def sealed_measurements(draft: Path, order: ReleaseSpec, *, key: bytes) -> Measured | None:
    """What was measured before, and nothing where a file of it is not there, harmed, or of another release."""
    try:
        content = json.loads((draft / SEAL).read_bytes())
        mac = str(content.pop("mac"))
        known = hmac.new(key, json.dumps(content, sort_keys=True).encode(), hashlib.sha256).hexdigest()
        if not hmac.compare_digest(mac, known) or content["files"] != _sealed_files(draft):
            return None
        names = file_names([group.name for group in order.groups])
        read = [read_measurements(draft / MEASUREMENTS / f"{names[group.name]}.parquet") for group in order.groups]
        kinds = [group.rows.kinds().astype(np.int64, copy=False) for group in order.groups]  # one number, mostly
        rows = [replace(each, kinds=own) for each, own in zip(read, kinds, strict=True)]
        totals = np.frombuffer((draft / TOTALS).read_bytes(), dtype="<i8").astype(np.int64)
        drawn = draft / MEASUREMENTS / f"{TRANSCRIPT}.parquet"
        transcript = () if order.technology is None else read_transcript(drawn)
        return Measured(tuple(rows), totals if content["totals"] else None, content["words"], transcript)
    except (OSError, ValueError, KeyError, AttributeError, InvalidRelease):
        return None


def write_release(
    draft: Path,
    order: ReleaseSpec,
    measured: Sequence[NoisyRows],
    *,
    totals: Integers | None,
    entry: ReleaseEntry,
    standing: Standing,
    made: PostProcessed | None = None,
    transcript: Sequence[Draw] = (),
) -> str:
    """Write everything else, `release.json` last; its SHA-256. Nothing confidential comes this far.

    `made` are estimates and whole numbers, where these were not made here.
    """
    # Here, because its kernels cost more to import than the rest.
    from dualmandate.publication.post_processing import post_process
    from dualmandate.publication.told_tables import told_tables

    told = told_of(order, transcript) if transcript else None
    made = told_tables(order, told, totals) if told is not None else made
    made = post_process(order, measured=measured, totals=totals) if made is None else made
    tables, intervals = chain(made.tables, _exact_tables(order, totals)), TableIntervals(order, made)
    files = TableFiles(draft, order, writers_of(order, entry.reserved_at), {}, [], _glanced(order))
    written = _write_tables(files, tables, intervals)
    for name, content in order.files.items():
        _write(draft, name, content)
    facts = _facts(order, written, entry=entry)
    if told is not None:
        facts["technology"] = technology_facts(order, transcript, told)
    for table in facts["tables"]:
        table["intervals"] = asdict(files.words[table["name"]])
    facts |= {"estimated_together": made.together, "consistency": made.words}
    if order.synthetic_records:
        facts["synthetic_records"] = files.write_records(made.records())
    facts["consistency_effects"] = [asdict(effect) for effect in made.effects]
    ratios = _write_ratios(files, facts)
    if ratios:
        facts["ratios"] = [_ratio_facts(order, *each) for each in ratios]
    _write(draft, README, readme(facts, files.words, stated_loss(order.loss)))
    for name, content in dictionary_files(files.described).items():
        _write(draft, name, content)
    facts["account_identifier"] = account_identifier(standing.head.ledger, entry.account)
    facts["signatures"] = standing.signatures(entry)
    if entry.beside is not None:
        facts["other_ledgers"] = entry.beside.document()
    if entry.unchecked:
        facts["unchecked"] = True
    facts["ledger_head"] = standing.head.document()
    for name in (SEAL, TOTALS):
        (draft / name).unlink(missing_ok=True)
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


@dataclass(frozen=True, eq=False)
class TableFiles:
    """Writes the files of tables, and keeps what the folder says of them."""

    draft: Path
    order: ReleaseSpec
    writers: Mapping[str, Writer]  # by form
    words: dict[str, IntervalWords]  # how the intervals of each table were made
    described: list[dict[str, Any]]  # the columns of each file
    glanced: int = 0  # numbers of each table that a page may hold

    def write(self, table: PublishedTable, name: str, folder: str, sheet: ReleaseSheet) -> dict[str, str]:
        """Every form of one table; where each lies, by form."""
        paths: dict[str, tuple[Path, ...]] = {}
        for form, writer in self.writers.items():
            # SDMX has whole numbers alone, and so has the text of a table that is too large for intervals.
            whole = folder == TABLES and (form in FOLDERS or (form == "csv" and sheet.rows > MOST_WITH_INTERVALS))
            if whole and form in FOLDERS and table.values is None:
                continue
            one = values_sheet(table, sheet.facts) if whole and table.values is not None else sheet
            paths[form] = writer.write(one, _folder(self.draft, FOLDERS.get(form, folder)) / name)
        if sheet.rows <= MOST_NUMBERS:
            said = notes(table, self.words.get(table.name), self.order.clipped.get(table.name))
            paths["xlsx"] = Xlsx(said).write(sheet, _folder(self.draft, folder) / name)
        files = {form: found[0].relative_to(self.draft).as_posix() for form, found in paths.items()}
        large = sheet.rows > MOST_WITH_INTERVALS
        shown = files["parquet"] if large else files.get("csv", files["parquet"])
        language = self.order.facts.get("language", ENGLISH)
        self.described.append(described(sheet, shown, language=language, is_ratio=folder == RATIOS))
        return files

    def write_records(self, records: SyntheticRecords | None) -> dict[str, object]:
        """The file of records that tables are counted from, in the forms of tables; or why there is none."""
        if records is None:
            return {"none": NONE_FITTED}
        paths = {"parquet": Parquet().write(records, _folder(self.draft, FOLDER) / FOLDER)}
        if "csv" in self.writers:
            paths["csv"] = Csv().write(records, _folder(self.draft, FOLDER) / FOLDER)
        files = {form: found[0].relative_to(self.draft).as_posix() for form, found in paths.items()}
        language = self.order.facts.get("language", ENGLISH)
        self.described.append(described(records, files.get("csv", files["parquet"]), language=language))
        return {"rows": records.rows, "columns": list(records.columns), **files}


def _write_tables(
    files: TableFiles, tables: Iterable[PublishedTable], intervals: TableIntervals
) -> list[tuple[Glance, dict[str, str | None]]]:
    """Whole numbers where there are any, estimates and intervals of every table; one table is held at a time.

    What a page shows of each, and where its files lie, by form.
    """
    order, written = files.order, list[tuple[Glance, dict[str, str | None]]]()
    names, together = (
        file_names([table.name for table in (*order.tables, *order.public_tables)]),
        intervals.made.together,
    )
    for table in tables:
        whole, files.words[table.name] = intervals.of(table)
        facts = _named(order, table.name)
        # Estimates of a large table follow from the measurements, which are a fifth as large.
        alone = together and whole.values is not None and len(whole.estimates) > MOST_WITH_INTERVALS
        sheet = values_sheet(whole, facts) if alone else tidy_sheet(whole, facts)
        found = files.write(whole, names[table.name], TABLES, sheet)
        written.append((_glance(whole, files.glanced), {"estimates": None if alone else found["parquet"], **found}))
        del table, whole  # before the next one is made
    return written


def _write_ratios(files: TableFiles, facts: Mapping[str, Any]) -> list[tuple[Glance, dict[str, str]]]:
    """Every ratio of tables that are written already, in every form."""
    order = files.order
    groups, ratios = {each.name: each for each in order.groups}, {each.name: each for each in order.ratios}

    @cache
    def together() -> NestWeights:
        nest = nest_together(order)
        assert nest is not None  # estimates rest on it
        return NestWeights(order, nest)

    release = Release(files.draft, facts, lambda group: groups[group].measurement, together, ratios.__getitem__)
    tables = [table.name for table in (*order.tables, *order.public_tables)]
    names, written = file_names([*tables, *ratios]), list[tuple[Glance, dict[str, str]]]()
    for ratio in order.ratios:
        table = release.divided(ratio.name, order.units[ratio.name])
        found = files.write(table, names[table.name], RATIOS, ratio_sheet(table, _named(order, table.name)))
        written.append((_glance(table, files.glanced), found))
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
        "intervals": bool(glance.first.intervals),
        **files,
    }


def _glanced(order: ReleaseSpec) -> int:
    """How many numbers of each table a page may hold: all of the small ones, and as many of each other one."""
    if order.page is None:
        return 0
    tables = [*order.tables, *order.public_tables, *(ratio.numerator for ratio in order.ratios)]
    waiting, room = sorted(table.query_count for table in tables), GLANCED
    for place, size in enumerate(waiting):
        share = room // (len(waiting) - place)
        if size > share:
            return max(1, share)
        room -= size
    return GLANCED


def _glance(table: PublishedTable, most: int) -> Glance:
    estimates, errors = table.estimates[:most].copy(), table.standard_errors[:most].copy()
    values = None if table.values is None else table.values[:most].copy()
    quotients = None if table.quotients is None else table.quotients[:most].copy()
    first = replace(table, estimates=estimates, standard_errors=errors, values=values)
    intervals = {name: ends[:most].copy() for name, ends in table.intervals.items()}
    first = replace(first, quotients=quotients, intervals=intervals)
    some = table.standard_errors[:: len(table.estimates) // ENOUGH + 1]
    return Glance(first, len(table.estimates), float(np.median(some)) if most else 0.0)


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
    order: ReleaseSpec, tables: Sequence[tuple[Glance, Mapping[str, str | None]]], *, entry: ReleaseEntry
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
        "snapshot": snapshot_mark(entry.snapshot, entry.reserved_at),
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
