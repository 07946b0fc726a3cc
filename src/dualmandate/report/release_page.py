"""The page of a release: what is published, what is promised, how it was made, and how to check it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import islice, product
from typing import Any

from dualmandate.ledger.signatures import standing_words
from dualmandate.population import PrivacyLoss, PrivacyMeasure, plural
from dualmandate.population.wording import counted, number, stated_loss
from dualmandate.publication.writing import Glance
from dualmandate.report.theme import Cell, Column, FigureTable, rendered

MOST_SAMPLES = 6  # tables
CONTENTS = (("tables", "Tables"), ("guarantee", "The promise"), ("noise", "The noise"), ("check", "Checking"))
EFFECTS = {
    "unbiased_bias": "bias of estimates",
    "consistent_bias": "bias of whole numbers",
    "unbiased_error": "error of estimates",
    "consistent_error": "error of whole numbers",
}
READING = (
    "Three things are published. Measurements are whole numbers with exact noise. Estimates are the best linear "
    "unbiased combinations of them, each with a standard error: intervals are for these. The tables in whole numbers "
    "are made from the estimates so that nothing is below 0 and everything adds up; that adjusts them, most where "
    "counts are small, and no interval is stated for them."
)
CLIPPED = (
    "Where amounts or records are clipped, all three, and every interval, are about what is counted, and not about "
    "what lies beyond the bounds: a total without clipping may differ by more than any interval says."
)


DIVIDING = (
    "Ratios are made of the tables, so that they cost no privacy loss. The interval belongs to the ratio of the "
    "estimates: it holds the true ratio in at least 95 of 100 releases, by the exact noise of both tables, and is any "
    "number where the noise of the denominator may be all of it. The ratio of the whole numbers stands beside it, "
    "without an interval. A ratio of unbiased estimates is itself a little biased where the denominator is noisy."
)


def release_page(facts: Mapping[str, Any], tables: Sequence[Glance]) -> str:
    """The page, from what `release.json` says and from the first numbers of each table."""
    loss = PrivacyLoss(Fraction(facts["loss"]["exact"]), PrivacyMeasure(facts["loss"]["currency"]))
    asked = {ratio["name"]: ratio for ratio in facts.get("ratios", ())}
    ratios = [glance for glance in tables if glance.first.name in asked]
    tables = [glance for glance in tables if glance.first.name not in asked]
    cells = sum(table.cells for table in tables)
    clipped = {table["name"]: table.get("clipped") for table in facts["tables"]}
    return rendered(
        "release.html",
        name=facts["program"],
        facts=facts,
        loss=stated_loss(loss),
        contents=CONTENTS,
        summary=f"{counted(len(tables), 'table')} with {counted(cells, 'number')}, "
        f"at a privacy loss of {stated_loss(loss)} for each {facts['unit']}.",
        tables=_listed(facts, tables),
        reading=f"{READING} {CLIPPED}" if any(clipped.values()) else READING,
        samples=[_sample(table, clipped.get(table.first.name)) for table in tables[:MOST_SAMPLES]],
        ratios=[_ratio(glance, asked[glance.first.name]) for glance in ratios],
        dividing=DIVIDING,
        made=list(_made(facts)),
        noises=_noises(facts),
        numbers=[
            ("entry of the ledger", f"{facts['ledger_head']['sequence']:,}"),
            ("sampler", f"version {facts['versions']['sampler']}"),
            ("state of the data", facts["snapshot"]),
            ("account", facts["account_identifier"]),
        ],
        beside=_beside(facts),
        standing=standing_words(facts),
        effects=_effects(facts),
        files=_pairs("Files of this release", "file", "SHA-256", facts["files"]),
        versions=_pairs("Versions", "software or format", "version", facts["versions"]),
    )


def _beside(facts: Mapping[str, Any]) -> str | None:
    """Other ledgers that had spent from the same data: the loss above is then not all of it."""
    if "other_ledgers" not in facts:
        return None
    said = facts["other_ledgers"]
    return (
        f"Another ledger had spent from the same data ({', '.join(said['ledgers'])}): each {facts['unit']} loses the "
        f"sum of what both have spent. The publisher's reason: “{said['reason']}”"
    )


def _listed(facts: Mapping[str, Any], tables: Sequence[Glance]) -> FigureTable:
    files = {table["name"]: table for table in facts["tables"]}
    rows: list[dict[str, Cell]] = [
        {
            "table": table.first.name,
            "numbers": float(table.cells),
            "unit": plural(table.first.unit),
            "clipped": files[table.first.name].get("clipped"),
            "error": table.typical_error,
            "exact": "exact" if files[table.first.name]["exact"] else None,
            "file": files[table.first.name].get("csv") or files[table.first.name]["estimates"],
        }
        for table in tables
    ]
    return FigureTable.of(
        rows,
        "The tables of this release",
        Column("table", "table", "text"),
        Column("numbers", "numbers", "exact"),
        Column("unit", "in", "text"),
        Column("clipped", "what is counted", "text"),
        Column("error", "typical standard error"),
        Column("exact", "without noise", "text"),
        Column("file", "file", "text"),
    )


def _sample(glance: Glance, clipped: str | None) -> FigureTable:
    table, rows = glance.first, list[dict[str, Cell]]()
    for place, labels in enumerate(islice(product(*table.labels), len(table.estimates))):
        row: dict[str, Cell] = {f"label {i}": label for i, label in enumerate(labels)}
        row["estimate"] = f"{table.estimates[place]:,.2f}"
        row["error"] = f"{table.standard_errors[place]:,.2f}"
        row["value"] = None if table.values is None else f"{table.values[place]:,}"
        rows.append(row)
    left = glance.cells - len(rows)
    return FigureTable.of(
        rows,
        table.name
        + (f" ({clipped})" if clipped else "")
        + (f": the first {len(rows)} of {glance.cells:,}" if left else ""),
        *(Column(f"label {i}", name, "text") for i, name in enumerate(table.columns)),
        Column("value", "published"),
        Column("estimate", "estimate"),
        Column("error", "standard error"),
    )


def _ratio(glance: Glance, facts: Mapping[str, Any]) -> FigureTable:
    ratio, rows = glance.first, list[dict[str, Cell]]()
    for place, labels in enumerate(islice(product(*ratio.labels), len(ratio.estimates))):
        row: dict[str, Cell] = {f"label {i}": label for i, label in enumerate(labels)}
        row["estimate"] = number(float(ratio.estimates[place]), 5)
        if ratio.bounds is not None:
            lower, upper = (float(each[place]) for each in ratio.bounds)
            row["interval"] = f"{number(lower, 5)} to {number(upper, 5)}" if upper - lower < math.inf else "any number"
        row["whole"] = None if ratio.quotients is None else number(float(ratio.quotients[place]), 5)
        rows.append(row)
    file, left = facts.get("csv") or facts["parquet"], glance.cells - len(rows)
    first = f", the first {len(rows)} of {glance.cells:,}" if left else ""
    clipped = f" ({facts['clipped']})" if facts.get("clipped") else ""
    unit = f"in {ratio.unit}" if " per " in ratio.unit else "as a share"
    words = "" if facts["intervals"] else "; its intervals are worked out one by one, by load_release"
    return FigureTable.of(
        rows,
        f"{ratio.name}{clipped}: '{facts['numerator']}' over '{facts['denominator']}', {unit}{first}; {file}{words}",
        *(Column(f"label {i}", name, "text") for i, name in enumerate(ratio.columns)),
        Column("estimate", "ratio of the estimates"),
        Column("interval", "95 % interval", "text"),
        Column("whole", "of the whole numbers"),
    )


def _made(facts: Mapping[str, Any]) -> Iterator[str]:
    rows = sum(group["rows"] for group in facts["groups"])
    yield (
        f"{counted(rows, 'whole number')} were measured, each with independent noise that is drawn exactly from a "
        "discrete law with a rational parameter; the loss of all of them together is exactly the one stated."
    )
    if facts["invariants"]:
        yield f"Published without any noise: {', '.join(facts['invariants'])}."
    yield facts["consistency"]


def _noises(facts: Mapping[str, Any]) -> FigureTable:
    rows: list[dict[str, Cell]] = []
    for group in facts["groups"]:
        parameters = [Fraction(kind["parameter"]) for kind in group["noises"]]
        least, most = number(float(min(parameters))), number(float(max(parameters)))
        law = group["noises"][0]["law"]
        rows.append(
            {
                "group": group["name"],
                "rows": float(group["rows"]),
                "loss": group["loss"],
                "law": f"discrete {'Laplace, scale' if law == 'laplace' else 'Gaussian, σ²'}",
                "parameter": least if least == most else f"{least} to {most}",
            }
        )
    return FigureTable.of(
        rows,
        "What was measured together, and with which noise; exact parameters stand in release.json",
        Column("group", "measured together", "text"),
        Column("rows", "measurements", "exact"),
        Column("loss", "loss", "text"),
        Column("law", "noise", "text"),
        Column("parameter", "parameter", "text"),
    )


def _effects(facts: Mapping[str, Any]) -> FigureTable | None:
    """What making the tables whole did, simulated on themselves."""
    rows: list[dict[str, Cell]] = []
    for each in facts["consistency_effects"]:
        span = f"{each['least']:,}" if each["most"] == each["least"] else f"{each['least']:,} to {each['most'] or 0:,}"
        row: dict[str, Cell] = {key: f"{each[key]:.2f}" for key in EFFECTS}
        span = f"{each['least']:,} and more" if each["most"] is None else span
        rows.append(row | {"table": each["table"], "span": span, "cells": float(each["cells"])})
    if not rows:
        return None
    return FigureTable.of(
        rows,
        "Bias and root mean squared error of estimates and of whole numbers, by the true count: simulated "
        "releases of the published whole numbers, as if these were the truth",
        Column("table", "table", "text"),
        Column("span", "true count", "text"),
        Column("cells", "numbers", "exact"),
        *(Column(key, heading) for key, heading in EFFECTS.items()),
    )


def _pairs(caption: str, of: str, what: str, pairs: Mapping[str, object]) -> FigureTable:
    rows: list[dict[str, Cell]] = [{"of": name, "what": str(each)} for name, each in pairs.items()]
    return FigureTable.of(rows, caption, Column("of", of, "text"), Column("what", what, "text"))
