"""What a folder of a release says of itself: every column of every file, the levels, and a README in words.

From public facts alone, those of release.json; equal facts give equal bytes.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dualmandate.population import plural
from dualmandate.population.labels import ENGLISH
from dualmandate.publication.spreadsheet import MOST_NUMBERS
from dualmandate.publication.table_intervals import MOST_NUMBERS as MOST_WITH_INTERVALS
from dualmandate.publication.table_intervals import SIMULATED as BY_SIMULATION
from dualmandate.publication.table_intervals import IntervalWords
from dualmandate.publication.writing import (
    COUNTED_COLUMN,
    ENDS,
    PERCENTS,
    PUBLIC,
    QUOTIENT,
    UNIT_COLUMN,
    PublishedTable,
    ReleaseSheet,
    constants,
)

DICTIONARY, README = "data_dictionary", "README.md"
MOST_NAMED = 12  # of what a technology measured
MOST_LEVELS = 1_000  # of one column in the dictionary; all of them are in the files
WHICH = (
    "For print, use `value`: whole numbers that add up, within a table and from one table to another. For analysis, "
    "use `estimate` with its `standard_error`: it is right on average, and sums of estimates are, too; a single one "
    "may be below 0 or no whole number."
)
WHICH_TOLD = (
    "For print, use `value`: whole numbers that add up, within a table and from one table to another. For analysis, "
    "use `estimate` with its interval. Errors here depend on the data: an estimate is not right on average, it has no "
    "standard error, and what is known of a sum of estimates is known only where a table holds that sum."
)
MEANINGS = {
    "value": "whole number that adds up with all others of the release; for print",
    "estimate": "unbiased estimate; for analysis",
    "standard_error": "standard error of the estimate, of the noise alone",
    QUOTIENT: "ratio of the whole numbers",
    UNIT_COLUMN: "what is counted",
    COUNTED_COLUMN: "what is counted where amounts or records were clipped; estimates and intervals are about that",
}
OF_RATIOS = {
    "estimate": "ratio of two unbiased estimates, a little biased where the denominator is noisy; for analysis",
    "standard_error": "standard error of the ratio, linearized, of the noise alone",
}
OF_TECHNOLOGY = {"estimate": "estimate by a technology whose errors depend on the data; for analysis"}
for _end in ENDS:
    for _percent in PERCENTS:
        OF_TECHNOLOGY[f"value_{_end}_{_percent}"] = f"{_end} end of the {_percent} % interval of `value`"
        OF_TECHNOLOGY[f"{_end}_{_percent}"] = f"{_end} end of the {_percent} % interval of `estimate`"
        MEANINGS[f"value_{_end}_{_percent}"] = f"{_end} end of the {_percent} % interval of `value`, simulated"
        MEANINGS[f"{_end}_{_percent}"] = f"{_end} end of the {_percent} % interval of `estimate`, by the exact noise"
        OF_RATIOS[f"{_end}_{_percent}"] = (
            f"{_end} end of the {_percent} % interval of the ratio of the estimates (Fieller)"
        )
INTERVALS = (
    "An interval of 95 % about an estimate holds the true number in at least 95 of 100 releases, over the noise; each "
    "stands for one number, not for all numbers of a table together. Intervals know of the noise that protects people, "
    "and of nothing else: not of errors in the records, of people who were not counted, or of sampling."
)
CLIPPED = (
    "Where amounts or records are clipped, every number, and every interval, is about what is counted, and not about "
    "what lies beyond the bounds: a total without clipping may differ by more than any interval says."
)
DIVIDING = (
    "Ratios are made of the tables, so that they cost no privacy loss. The intervals belong to the ratio of the "
    "estimates: that of 95 % holds the true ratio in at least 95 of 100 releases, by the exact noise of both tables, "
    "that of 90 % in 90, and either is any number where the noise of the denominator may be all of it. The ratio of "
    "the whole numbers stands beside it, without an interval. A ratio of unbiased estimates is itself a little biased "
    "where the denominator is noisy."
)
SYNTHETIC = (
    "Each row is a record of nobody: the tables in whole numbers are counted from these {rows:,} records, which were "
    "made of published numbers alone. Use them for what the tables show. What no table shows of them is arbitrary, and "
    "says nothing about anybody: which levels of two columns stand together, say, where no table crosses the two. "
    "{distance}"
)
SIMULATED = (
    "The intervals of `value` are simulated around the published numbers. They are not proved to hold in 90 and 95 of "
    "100 releases: where the simulation was tried on small programs they did on average over a table, and single "
    "numbers near 0 or beside very different ones may miss more often. For proofs, take those of `estimate`."
)


def described(sheet: ReleaseSheet, file: str, *, language: object = ENGLISH, is_ratio: bool = False) -> dict[str, Any]:
    """The columns of one file, and the levels of each that are not too many; `language` is the program's."""
    columns: list[dict[str, Any]] = []
    for text in sheet.texts:
        name, is_label = sheet.columns[text.place], text.language is not None
        said = f"label of `{sheet.headings[text.place]}`, for readers, in the language '{text.language or language}'"
        meaning = said if is_label else f"level of {name}"
        entry: dict[str, Any] = {"name": text.heading, "type": "text", "meaning": meaning}
        if not is_label and len(text.words) <= MOST_LEVELS:
            labels = sheet.level_labels[text.place] if sheet.level_labels else {}
            entry["levels"] = [
                {
                    "code": level,
                    "labels": {(key or language): of[level] for key, of in labels.items() if level in of},
                }
                for level in text.words
            ]
        columns.append(entry)
    is_told = not is_ratio and "estimate" in sheet.numbers and "standard_error" not in sheet.numbers
    meanings = MEANINGS | (OF_RATIOS if is_ratio else OF_TECHNOLOGY if is_told else {})
    for name, values in sheet.numbers.items():
        kind = "whole number" if values.dtype.kind == "i" else "number"
        columns.append({"name": name, "type": kind, "unit": sheet.unit, "meaning": meanings[name]})
    meanings = {**meanings, COUNTED_COLUMN: f"{MEANINGS[COUNTED_COLUMN]}: {sheet.facts.get('clipped')}"}
    columns += [{"name": name, "type": "text", "meaning": meanings[name]} for name in constants(sheet)]
    return {"table": sheet.name, "file": file, "unit": sheet.unit, "rows": sheet.rows, "columns": columns}


def dictionary_files(described: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    """The dictionary as CSV, a row a column of a file, and as JSON, with the levels."""
    text = io.StringIO(newline="")
    lines = csv.writer(text)
    lines.writerow(["table", "file", "column", "type", "unit", "meaning"])
    for table in described:
        for column in table["columns"]:
            own = (column.get(key, "") for key in ("name", "type", "unit", "meaning"))
            lines.writerow([table["table"], table["file"], *own])
    document = {"label": PUBLIC, "tables": list(described)}
    return {
        f"{DICTIONARY}.csv": text.getvalue().encode("utf-8"),
        f"{DICTIONARY}.json": (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode("utf-8"),
    }


def reading_of(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """What the intervals of a release promise, and what they are about where something is clipped."""
    return (INTERVALS, CLIPPED) if any(table.get("clipped") for table in facts["tables"]) else (INTERVALS,)


def notes(table: PublishedTable, words: IntervalWords | None, clipped: str | None) -> tuple[str, ...]:
    """What a workbook says of its table; `words` are None for a ratio."""
    which = WHICH_TOLD if table.has_unknown_errors else WHICH
    found = [f"In {plural(table.unit)}.", (DIVIDING if words is None else which).replace("`", "")]
    if clipped is not None:
        found.append(f"What is counted: {clipped}. Numbers and intervals are about that.")
    if words is None:
        return tuple(found)
    found += [f"Intervals of the estimates: {words.estimates}.", f"Intervals of the values: {words.values}."]
    totals = "Totals are sums of the numbers shown; their own errors are in no column. Missing cells are no numbers."
    return (*found, INTERVALS, totals)


def readme(facts: Mapping[str, Any], words: Mapping[str, IntervalWords], loss: str) -> bytes:
    """The folder in words."""
    return ("\n".join(_lines(facts, words, loss)) + "\n").encode("utf-8")


def _lines(facts: Mapping[str, Any], words: Mapping[str, IntervalWords], loss: str) -> Iterator[str]:
    yield f"# {facts.get('title') or facts['program']}: release {facts['release']}"
    yield ""
    if facts.get("agency"):
        yield f"Published by {facts['agency']}."
        yield ""
    if facts.get("description"):
        yield str(facts["description"])
        yield ""
    yield (
        f"Tables with noise that protects every {facts['unit']}, at a privacy loss of {loss}. `index.html` shows them, "
        "`release.json` says the same to machines, `data_dictionary.csv` explains every column. Everything here is "
        "public."
    )
    yield from ("", "## Which number to use", "", which_of(facts), "", "## Files", "")
    yield "| table | numbers | in | files |"
    yield "| --- | --- | --- | --- |"
    for table in (*facts["tables"], *facts.get("ratios", ())):
        files = ", ".join(f"`{table[form]}`" for form in ("csv", "parquet", "xlsx") if form in table)
        yield f"| {_cell(table['name'])} | {table['cells']:,} | {_cell(plural(table['unit']))} | {files} |"
    yield ""
    yield (
        "CSV and Parquet have one row a number, and a column for every breakdown: its code, and after it its label "
        "where it has one. A workbook (`.xlsx`) has the table with totals, all numbers, and notes; a table of more "
        f"than {MOST_NUMBERS:,} numbers has none (a sheet of Excel ends after 1,048,576 rows). The CSV file of a table "
        f"of more than {MOST_WITH_INTERVALS:,} numbers has its whole numbers alone, and so has its Parquet file where "
        "tables are estimated together: `load_release` makes its estimates again from the measurements. "
        f"`measurements/` holds {_held(facts)}; `program/` what was asked."
    )
    if "technology" in facts:
        yield from ("", "## How it was made", "", technology_words(facts))
    yield from ("", "## Intervals", "", " ".join(reading_of(facts)), "")
    for which in ("estimates", "values"):
        ways: dict[str, list[str]] = {}
        for name, each in words.items():
            ways.setdefault(getattr(each, which), []).append(name)
        for way, names in ways.items():
            of = "all tables" if len(names) == len(words) else ", ".join(names)
            yield f"- of {which}, {of}: {way}."
    if any(each.values == BY_SIMULATION for each in words.values()):
        yield from ("", SIMULATED)
    ratios = facts.get("ratios", ())
    if ratios:
        yield from ("", "## Means, shares and ratios", "", DIVIDING)
    records = facts.get("synthetic_records")
    if records is not None:
        yield from ("", "## Synthetic records", "", " ".join(synthetic_words(facts)))
    clipped = [table for table in (*facts["tables"], *ratios) if table.get("clipped")]
    if clipped:
        yield from ("", "## What is counted", "")
        yield from (f"- {table['name']}: {table['clipped']}." for table in clipped)
    yield from ("", "## Reading it", "", "```r", _in_r(facts), "```", "")
    yield from ("```text", 'dualmandate.load_release("FOLDER")', "```", "")
    yield "Every file is listed with its SHA-256 in `release.json`; `sha256sum` gives the same."


def which_of(facts: Mapping[str, Any]) -> str:
    """Which of its numbers a reader should use."""
    return WHICH_TOLD if "technology" in facts else WHICH


def _held(facts: Mapping[str, Any]) -> str:
    if "technology" in facts:
        return "the transcript: every draw of the technology, in its order, with its noise"
    return "what was measured, row by row in the order of the tables, with the exact noise of each"


def technology_words(facts: Mapping[str, Any]) -> str:
    """What a technology drew, and that all else follows from it."""
    own = facts["technology"]
    rests, more = own["measured"][:MOST_NAMED], len(own["measured"]) - MOST_NAMED
    on = ", ".join(rests) + (f" and {more:,} more" if more > 0 else "")
    return (
        f"By '{own['name']}' ({own['words']}): {len(own['draws']):,} private draws, each by exact probabilities, lose "
        f"{facts['loss']['currency']} = {own['loss']} together, whatever the data are. What it rests on: {on}. "
        "Everything else follows from these draws, without the records. How far off its numbers are depends on the "
        "data; the plan was made by public or synthetic records."
    )


def synthetic_words(facts: Mapping[str, Any]) -> Iterator[str]:
    """What the file of synthetic records is for, how far its tables are from the estimates, and where it lies."""
    records = facts["synthetic_records"]
    if "none" in records:
        yield f"There is no file of synthetic records: {records['none']}."
        return
    files = " and ".join(f"`{records[form]}`" for form in ("csv", "parquet") if form in records)
    yield SYNTHETIC.format(rows=records["rows"], distance=facts["consistency"])
    yield f"They lie in {files}."


def _in_r(facts: Mapping[str, Any]) -> str:
    """How R reads the first table; codes stay text, so that "007" keeps its zeros, and "NA" is a code like others."""
    first = next((table for table in facts["tables"] if "csv" in table), {"csv": "tables/….csv", "columns": []})
    texts = ", ".join(f'{json.dumps(each, ensure_ascii=False)} = "character"' for each in first["columns"])
    kept = f', colClasses = c({texts}), na.strings = ""' if texts else ""
    return f'read.csv("{first["csv"]}", check.names = FALSE{kept})'


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
