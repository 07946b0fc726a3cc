"""From a folder of published tables to what attacks are made on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from dualmandate.audit.equations import Equations
from dualmandate.audit.finding import Reference
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.places import count_records
from dualmandate.audit.reconstruction.noisy import covered, expected_of
from dualmandate.audit.reconstruction.persons import GroupStatistics, Implication, Statistic, Variables
from dualmandate.audit.suppression.cells import hidden_numbers
from dualmandate.audit.tables import ExactTables, NoisyTables, Truths, levels_in_words
from dualmandate.audit.targets.linkage import Homes, linkage_targets
from dualmandate.audit.targets.magnitudes import magnitude_targets
from dualmandate.audit.targets.tables_folder import (
    EVERYWHERE,
    Folder,
    PublishedCounts,
    TableFile,
    rows_of,
    suppressed_marks,
)
from dualmandate.audit.targets.tables_schema import StatisticsTable
from dualmandate.audit.targets.targets import LARGEST_PLACE, Targets
from dualmandate.errors import InvalidTables, TooLarge
from dualmandate.population import Attribute, Domain, StructuralZero

Files = Mapping[Reference, Path]


def targets_of(folder: Folder, options: AuditOptions) -> Targets:
    """Every target of a folder. Attacks on counts are judged by files of records, those on amounts by folders."""
    files, left_out = options.files, list[str]()
    attacked: list[object] = []
    records = {reference: path for reference, path in files.items() if not path.is_dir()}
    amounts = {reference: path for reference, path in files.items() if path.is_dir()}
    if records and folder.counts is None:
        left_out.append("to judge by records, which only tables of counts can be: amounts need a folder of true tables")
    if amounts and not folder.file.magnitudes:
        left_out.append("to judge by a folder of true tables, which only amounts can be: counts need a file of records")
    if folder.counts is not None:
        attacked += _count_targets(folder, folder.counts, records, left_out)
    for position, table in enumerate(folder.file.statistics):
        attacked.append(_statistics(folder, table, position))
    attacked += magnitude_targets(folder, amounts)
    homes = None if folder.counts is None else Homes(folder.counts.domain, folder.place)
    attacked += linkage_targets(attacked, homes, options)
    return Targets(tuple(attacked), tuple(left_out))


def _count_targets(folder: Folder, counts: PublishedCounts, files: Files, left_out: list[str]) -> Iterator[object]:
    if counts.domain.size > LARGEST_PLACE:
        raise TooLarge(
            f"{counts.domain.size:,} cells a place",
            why=f"records are looked for among at most {LARGEST_PLACE:,} combinations of values",
            instead="declare coarser attributes, or those alone that the tables are by",
            where=folder.document.place(("population", "attributes")),
        )
    equations = Equations.of_workload(counts.workload)
    hidden = np.isnan(counts.published)
    truths: Truths = {
        reference: count_records(path, counts.domain, place=folder.place) for reference, path in files.items()
    }
    if counts.scales.any():
        yield _noisy(folder, counts, equations, truths, left_out)
        return
    coarsening, impossible = levels_in_words(counts.domain), ~counts.domain.possible_cells()
    known = np.where(hidden, 0, counts.published).astype(np.int64)
    whole = ExactTables(
        folder.name,
        equations,
        known,
        counts.places,
        coarsening,
        impossible,
        truths,
        counts.domain,
        hidden if hidden.any() else None,
    )
    yield whole
    suppressed = hidden_numbers(whole)
    if suppressed is not None:
        yield suppressed


def _noisy(
    folder: Folder, counts: PublishedCounts, equations: Equations, truths: Truths, left_out: list[str]
) -> NoisyTables:
    """Tables with errors: what is expected of a place is what all places together are like, in its size."""
    hidden = np.isnan(counts.published).any(axis=0)
    if hidden.any():
        left_out.append(f"{int(hidden.sum()):,} numbers that are suppressed in some place, beside others with noise")
    kept = Equations.of_matrix(equations.matrix[~hidden], [equations.name(int(row)) for row in np.flatnonzero(~hidden)])
    published, scales = counts.published[:, ~hidden], counts.scales[~hidden]
    possible = covered(kept, counts.domain.possible_cells())
    errors = sorted({float(scale) for scale in scales if scale > 0})
    words = f"errors of {errors[0]:g} on average" if len(errors) == 1 else f"errors of {errors[0]:g} to {errors[-1]:g}"
    return NoisyTables(
        folder.name,
        kept,
        published,
        scales,
        expected_of(kept, published, scales, possible),
        levels_in_words(counts.domain),
        words,
        truths,
        "what all places together are like, by the same tables",
    )


def _statistics(folder: Folder, table: StatisticsTable, position: int) -> GroupStatistics:
    assert folder.domain is not None
    key = ("statistics", position)
    with folder.document.at(*key, "of"):
        number = folder.domain.attribute(table.of)
        values = number.grid_values
    if number.grid != 1:
        raise InvalidTables(
            f"'{table.of}' is not in whole numbers",
            why="persons are found by a whole number each",
            instead="declare it as { from = …, to = … }",
            where=folder.document.place((*key, "of")),
        )
    categories = {}
    for place, name in enumerate(table.by):
        with folder.document.at(*key, "by", place):
            categories[name] = tuple(folder.domain.attribute(name).levels)
    lowest = int(values.min())
    with folder.document.at("population", "structural_zeros"):
        rules = tuple(_rule(zero, folder.domain, number) for zero in folder.domain.structural_zeros)
    variables = Variables(table.of, lowest, int(values.max()), categories, rules)
    sheet = folder.sheet(*key)
    by_place = {
        place: tuple(_read(table, sheet, row, suppressed_marks(folder.file)) for row in rows)
        for place, rows in rows_of(folder.places_of(sheet)).items()
    }
    named = {table.name if place == EVERYWHERE else place: found for place, found in by_place.items()}
    return GroupStatistics(table.name, variables, named, f"{table.of} in whole numbers, {lowest} to {values.max()}")


def _read(table: StatisticsTable, sheet: TableFile, row: int, marks: frozenset[str]) -> Statistic:
    group = {name: sheet.column(name, "by")[row] for name in table.by if sheet.column(name, "by")[row]}
    found = {}
    for what in ("count", "median", "mean"):
        text = sheet.text.columns[what][row] if sheet.has(what) else ""
        found[what] = None if text in marks else sheet.number(text, row)
    count = found["count"]
    if count is not None and (count < 0 or count != int(count)):
        raise InvalidTables(
            f"a count of {count}", why="counts are whole numbers from 0 on", instead="check it", where=sheet.at(row)
        )
    name = f"line {sheet.text.lines[row]}" if table.label is None else sheet.column(table.label, "label")[row]
    return Statistic(name, group, None if count is None else int(count), found["median"], found["mean"])


def _rule(zero: StructuralZero, domain: Domain, number: Attribute) -> Implication:
    """A structural zero that says from which number on somebody can be of a kind: married from 15 on."""
    levels = dict(zero.levels)
    inside = domain.mask(number.name, levels.pop(number.name)) if number.name in levels else None
    single = all(len(each) == 1 for each in levels.values()) and bool(levels)
    if inside is None or not single or not inside[: int(inside.sum())].all():
        raise InvalidTables(
            "a structural zero that is no lower bound",
            why=f"persons are found under rules of one level each and the lowest numbers of '{number.name}'",
            instead=f'state it as {{ married = "yes", {number.name} = [the numbers that cannot be] }}',
        )
    return Implication({name: each[0] for name, each in levels.items()}, int(number.grid_values[0]) + int(inside.sum()))
