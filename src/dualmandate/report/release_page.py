"""The page of a release: what is published, what is promised, how it was made, and how to check it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from dualmandate.ledger.signatures import standing_words
from dualmandate.population import PrivacyLoss, PrivacyMeasure, plural
from dualmandate.population.arrays import Floats
from dualmandate.population.labels import ENGLISH, NO_LABELS, OWN, Labels
from dualmandate.population.wording import counted, number, stated_loss
from dualmandate.program.program import SHARE
from dualmandate.publication.data_dictionary import DIVIDING, reading_of, synthetic_words, technology_words, which_of
from dualmandate.publication.writing import ENDS, Glance, PublishedTable
from dualmandate.report.theme import Cell, Column, FigureTable, rendered

if TYPE_CHECKING:
    from markupsafe import Markup

MOST_SHOWN, LEAST_SHOWN = 3_000, 20  # rows on the page before anything is looked for, and of each table
MOST_TABLES = MOST_SHOWN // LEAST_SHOWN  # whose numbers are on the page; of others it names the files
MOST_DRAWS = 40  # of a technology, on the page
MOST_FILES = 2_000  # of which it shows the digests
MOST_ROWS = 500  # of a table at once; the page holds others, to be looked for
ESTIMATE, INTERVAL = "estimate, for analysis", "95 % interval"
PRINTED = "95 % interval, for print"
FORM_NAMES = {
    "csv": "CSV",
    "xlsx": "Excel",
    "parquet": "Parquet",
    "sdmx-csv": "SDMX-CSV",
    "sdmx-ml": "SDMX-ML",
}
CONTENTS = (("tables", "Tables"), ("guarantee", "The promise"), ("noise", "The noise"), ("check", "Checking"))
LARGE = 1_000  # numbers of this size have no decimals
EFFECTS = {
    "unbiased_bias": "bias of estimates",
    "consistent_bias": "bias of whole numbers",
    "unbiased_error": "error of estimates",
    "consistent_error": "error of whole numbers",
}
UNCHECKED = (
    "Nobody had checked the records, as they were, against the program before they were published: what does not fit "
    "its levels and bounds was left out or clipped unseen."
)


def release_page(facts: Mapping[str, Any], tables: Sequence[Glance]) -> str:
    """The page, from what `release.json` says and from the first numbers of each table."""
    loss = PrivacyLoss(Fraction(facts["loss"]["exact"]), PrivacyMeasure(facts["loss"]["currency"]))
    asked = {ratio["name"]: ratio for ratio in facts.get("ratios", ())}
    ratios = [glance for glance in tables if glance.first.name in asked]
    tables = [glance for glance in tables if glance.first.name not in asked]
    own = facts.get("language", ENGLISH)
    languages = _languages((*tables, *ratios), own)
    cells = sum(table.cells for table in tables)
    both = list(zip(tables, facts["tables"], strict=True))
    most = min(MOST_ROWS, max(LEAST_SHOWN, MOST_SHOWN // max(1, len(tables) + len(ratios))))
    page, left = _PageSettings(most, own, languages), max(MOST_TABLES - len(ratios), 0)
    elsewhere = max(len(tables) - left, 0) + max(len(ratios) - MOST_TABLES, 0)
    return rendered(
        "release.html",
        name=facts.get("title") or facts["program"],
        facts=facts,
        loss=stated_loss(loss),
        contents=CONTENTS,
        summary=f"{counted(len(tables), 'table')} with {counted(cells, 'number')}, "
        f"at a privacy loss of {stated_loss(loss)} for each {facts['unit']}.",
        which=which_of(facts).replace("`", ""),
        reading=" ".join(reading_of(facts)),
        tables=[_shown(f"table-{i}" if i < left else "", *each, page) for i, each in enumerate(both)],
        ratios=[
            _shown(f"ratio-{i}" if i < MOST_TABLES else "", each, asked[each.first.name], page)
            for i, each in enumerate(ratios)
        ],
        elsewhere=f"Of {counted(elsewhere, 'table')}, the last ones above, the numbers are in the files alone."
        if elsewhere
        else None,
        languages=languages,
        most_rows=MOST_ROWS,
        form_names=FORM_NAMES,
        dividing=DIVIDING,
        synthetic=" ".join(synthetic_words(facts)).replace("`", "") if "synthetic_records" in facts else None,
        records={
            FORM_NAMES[form]: facts["synthetic_records"][form]
            for form in ("csv", "parquet")
            if form in facts.get("synthetic_records", ())
        },
        made=list(_made(facts)),
        noises=_noises(facts),
        numbers=[
            ("entry of the ledger", f"{facts['ledger_head']['sequence']:,}"),
            ("sampler", f"version {facts['versions']['sampler']}"),
            ("account", facts["account_identifier"]),
        ],
        beside=_beside(facts),
        standing=standing_words(facts),
        unchecked=UNCHECKED if facts.get("unchecked") else None,
        effects=_effects(facts),
        files=[(name, quote(name), digest) for name, digest in islice(facts["files"].items(), MOST_FILES)],
        files_left=max(len(facts["files"]) - MOST_FILES, 0),
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


@dataclass(frozen=True)
class Bar:
    """An interval as it is drawn: where it begins, how long it is, and where its number stands, in per cent."""

    start: float
    length: float
    point: float


@dataclass(frozen=True)
class _PageSettings:
    """What is the same for all tables of a page."""

    most: int  # rows of each table
    own: str  # the language of the program, by its code
    languages: tuple[str, ...]  # of labels, that one first


@dataclass(frozen=True)
class ShownLabel:
    """What a level is called, and in which language; a code is in none."""

    text: str
    language: str


@dataclass(frozen=True)
class ShownRow:
    """A number with its labels, as text."""

    labels: tuple[ShownLabel, ...]
    cells: tuple[str, ...]
    bar: Bar | None


@dataclass(frozen=True)
class ShownTable:
    """A table of the page."""

    anchor: str  # none where its numbers are not on the page
    name: str
    unit: str
    cells: int
    about: str  # what it is, and in what
    exact: bool
    typical_error: str
    intervals: Mapping[str, str] | None  # how they were made, or why there are none
    without: str | None  # why the numbers for print have none, where they have none
    files: Mapping[str, str]
    columns: tuple[str, ...]
    headings: tuple[str, ...]
    rows: tuple[ShownRow, ...]
    drawn: str | None  # what the bars are
    searched: int  # numbers that the page holds
    held: Markup | None  # for the script: codes, labels in every language, and the numbers after the rows


def _languages(tables: Sequence[Glance], own: str) -> tuple[str, ...]:
    """The languages in which there are labels, the program's first."""
    known = {language for glance in tables for labels in glance.first.level_labels for language in labels}
    return (own, *sorted(known - {OWN, own}))


def _shown(anchor: str, glance: Glance, facts: Mapping[str, Any], page: _PageSettings) -> ShownTable:
    table = glance.first
    number_of = min(len(table.estimates), page.most) if anchor else 0
    columns = _columns(table) if anchor else {}
    bars, drawn = _bars(table, number_of)
    rows = tuple(
        ShownRow(label, cells, bar)
        for label, cells, bar in zip(
            islice(product(*_shown_labels(table, number_of, page.own)), number_of),
            islice(zip(*columns.values(), strict=True), number_of),
            bars,
            strict=True,
        )
    )
    named = {form: facts[form] for form in FORM_NAMES if form in facts}
    unit = table.unit if table.unit == SHARE else plural(table.unit)
    error = _two_digits(glance.typical_error) if glance.typical_error > 0 else ""
    told = facts["intervals"] if isinstance(facts.get("intervals"), dict) else None
    clipped = f"; what is counted: {facts['clipped']}" if facts.get("clipped") else ""
    about, without = f"In {unit}{clipped}", None
    if "numerator" in facts:
        as_unit = "as a share" if table.unit == SHARE else f"in {unit}"
        about = f"'{facts['numerator']}' over '{facts['denominator']}', {as_unit}{clipped}"
        ways = "90 and 95 %, of the ratio of the estimates" if facts["intervals"] else "one by one, by load_release"
        told = {"estimates": ways, "values": "not given"}
    elif told is not None and table.values is not None and "value_lower_95" not in table.intervals:
        without = told["values"].removeprefix("not given: ")
    return ShownTable(
        anchor,
        table.name,
        unit,
        glance.cells,
        about,
        bool(facts.get("exact")),
        error,
        told,
        without,
        {form: quote(path) for form, path in named.items()},
        table.columns,
        tuple(columns),
        rows,
        drawn,
        len(table.estimates),
        _held(glance, columns, number_of, page.own, is_drawn=drawn is not None) if anchor and table.columns else None,
    )


def _levels(table: PublishedTable, count: int) -> Iterator[tuple[tuple[str, ...], Labels, int]]:
    """Of each column the levels that the first numbers have, its labels, and for how many numbers a level stays."""
    stride = math.prod(map(len, table.labels))
    for codes, labels in zip(table.labels, table.level_labels or (NO_LABELS,) * len(table.columns), strict=True):
        stride //= len(codes)
        yield codes[: -(-count // stride)], labels, stride


def _shown_labels(table: PublishedTable, count: int, own: str) -> Iterator[list[ShownLabel]]:
    """The levels of each column, in the program's language where they have labels in it."""
    for codes, labels, _ in _levels(table, count):
        words = labels.get(OWN, {})
        yield [ShownLabel(words[code], own) if code in words else ShownLabel(code, "") for code in codes]


def _held(glance: Glance, columns: Mapping[str, Sequence[str]], shown: int, own: str, *, is_drawn: bool) -> Markup:
    """What the script looks through: levels by column, once each, and the numbers that are in no row, by column."""
    from markupsafe import Markup

    table = glance.first
    count, levels = len(table.estimates), list[dict[str, Any]]()
    for size, (codes, labels, stride) in zip(map(len, table.labels), _levels(table, count), strict=True):
        said = {language or own: [words.get(code) for code in codes] for language, words in labels.items()}
        levels.append({"codes": codes, "labels": said, "size": size, "stride": stride})
    headings = list(columns)
    drawn = [headings.index(each) for each in (ESTIMATE, INTERVAL)] if is_drawn and INTERVAL in headings else None
    numbers = ["|".join(each[shown:]) for each in columns.values()]
    held = {"count": count, "cells": glance.cells, "levels": levels, "numbers": numbers, "drawn": drawn}
    # In a page, the text of a script ends at its first "</", whatever stands around it.
    return Markup(json.dumps(held, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))


def _columns(table: PublishedTable) -> dict[str, list[str]]:
    """The columns of numbers, as text with no more digits than the error supports."""
    errors, estimates = table.standard_errors, table.estimates
    whole = bool(np.all(estimates == np.rint(estimates)))  # also where each is one measured number
    known = not table.has_unknown_errors
    if not known and (ends := _ends(table)) is not None:
        errors = (ends[1] - ends[0]) / 4  # about what a standard error would be, to round by
    steps = [max(_step(error), 0) if whole else _step(error) for error in errors.tolist()]
    if np.isnan(errors).all():  # ratios that are too many for errors: small ones keep two digits, too
        steps = [min(-2, _step(abs(each))) for each in estimates.tolist()]
    found: dict[str, list[str]] = {}
    if table.quotients is not None:
        found["of the whole numbers"] = _all_rounded(table.quotients, steps)
    if table.values is not None:
        found["value, for print"] = [f"{each:,}" for each in table.values.tolist()]
    if "value_lower_95" in table.intervals and errors.any():
        low, high = (table.intervals[f"value_{end}_95"].tolist() for end in ENDS)
        found["95 % interval, simulated" if known else PRINTED] = [
            f"{one:,} to {other:,}" for one, other in zip(low, high, strict=True)
        ]
    if errors.any() or table.values is None:
        found[ESTIMATE] = _all_rounded(estimates, steps)
        if table.quotients is None and known:
            found["standard error"] = [_two_digits(error) for error in errors.tolist()]
        ends = _ends(table)
        if ends is not None:
            spans = zip(*(each.tolist() for each in ends), steps, strict=True)
            found[INTERVAL] = [_span(*each) for each in spans]
    return found


def _ends(table: PublishedTable) -> tuple[Floats, Floats] | None:
    known = table.intervals
    return (known["lower_95"], known["upper_95"]) if "lower_95" in known else None


def _bars(table: PublishedTable, count: int) -> tuple[list[Bar | None], str | None]:
    """The 95 % intervals of the estimates on one scale; nothing is drawn where there are none, or none has an end."""
    ends = _ends(table)
    if ends is None or not count:
        return [None] * count, None
    low, high = (each[:count].astype(np.float64) for each in ends)
    fine = np.isfinite(low) & np.isfinite(high)
    if not fine.any() or not (high - low)[fine].any():
        return [None] * count, None
    first, last = min(0.0, float(low[fine].min())), max(0.0, float(high[fine].max()))
    places = [
        (np.clip(each, first, last) - first) / (last - first) * 100 for each in (low, high, table.estimates[:count])
    ]
    bars = [
        Bar(round(float(a), 2), round(float(b - a), 2), round(float(c), 2)) if is_fine else None
        for a, b, c, is_fine in zip(*places, fine, strict=True)
    ]
    return bars, f"drawn: {number(first, 3)} to {number(last, 3)}"


def _step(error: float) -> int:
    """The power of ten to which a number with this standard error is rounded: two digits of the error remain."""
    return math.floor(math.log10(error)) - 1 if error > 0 and math.isfinite(error) else -2


def _two_digits(error: float) -> str:
    """A standard error: 12,000 and not 12,091, of which nothing else on the page has more than the first two digits."""
    return number(round(error, -_step(error)), 2)


def _all_rounded(values: Floats, steps: Sequence[int]) -> list[str]:
    return [
        f"{round(value, -step) + 0.0:,.{max(0, -step)}f}" if math.isfinite(value) else "no number"
        for value, step in zip(values.tolist(), steps, strict=True)
    ]


def _span(low: float, high: float, step: int) -> str:
    """Both ends, rounded outward to what the error supports."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return "any number"
    unit, hair = Fraction(10) ** step, Fraction(1, 10**6)  # A float that is a hair off its decimal is not moved.
    ends = math.floor(Fraction(low) / unit + hair), math.ceil(Fraction(high) / unit - hair)
    return " to ".join(f"{float(end * unit):,.{max(0, -step)}f}" for end in ends)


def _made(facts: Mapping[str, Any]) -> Iterator[str]:
    if "technology" in facts:
        yield technology_words(facts)
        yield facts["consistency"]
        return
    rows = sum(group["rows"] for group in facts["groups"])
    yield (
        f"{counted(rows, 'whole number')} were measured, each with independent noise that is drawn exactly from a "
        "discrete law with a rational parameter; the loss of all of them together is exactly the one stated."
    )
    if facts["invariants"]:
        yield f"Published without any noise: {', '.join(facts['invariants'])}."
    yield facts["consistency"]


def _noises(facts: Mapping[str, Any]) -> FigureTable:
    if "technology" in facts:
        return _draws(facts["technology"]["draws"])
    rows: list[dict[str, Cell]] = []
    for group in facts["groups"]:
        parameters = [Fraction(kind["parameter"]) for kind in group["noises"]]
        least, most = number(float(min(parameters))), number(float(max(parameters)))
        law = group["noises"][0]["law"]
        rows.append(
            {
                "group": group["name"],
                "rows": float(group["rows"]),
                "loss": number(float(Fraction(group["loss"])), 5),
                "law": _law_words(law),
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


def _draws(draws: Sequence[Mapping[str, Any]]) -> FigureTable:
    """The draws of a technology, one after the other."""
    rows: list[dict[str, Cell]] = []
    for draw in draws[:MOST_DRAWS]:
        noise = draw["noise"]
        law = "a choice, or known" if noise is None else _law_words(noise["law"])
        parameter = None if noise is None else number(float(Fraction(noise["parameter"])))
        rows.append({"of": draw["of"], "numbers": float(draw["numbers"]), "law": law, "parameter": parameter})
    more = len(draws) - MOST_DRAWS
    left = f"; the last {more:,} stand in release.json" if more > 0 else ""
    return FigureTable.of(
        rows,
        f"What was drawn from the records, in its order; exact parameters stand in release.json{left}",
        Column("of", "draw", "text"),
        Column("numbers", "numbers", "exact"),
        Column("law", "noise", "text"),
        Column("parameter", "parameter", "text"),
    )


def _law_words(law: str) -> str:
    return f"discrete {'Laplace, scale' if law == 'laplace' else 'Gaussian, σ²'}"


def _effects(facts: Mapping[str, Any]) -> FigureTable | None:
    """What making the tables whole did, simulated on themselves."""
    rows: list[dict[str, Cell]] = []
    for each in facts["consistency_effects"]:
        span = f"{each['least']:,}" if each["most"] == each["least"] else f"{each['least']:,} to {each['most'] or 0:,}"
        row: dict[str, Cell] = {key: _hundredths(each[key]) for key in EFFECTS}
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


def _hundredths(value: float) -> str:
    """A number of two decimals, a large one of none; what rounds to nothing has no sign."""
    digits = 2 if abs(value) < LARGE else 0
    return f"{round(value, digits) + 0.0:,.{digits}f}".replace("-", "−")


def _pairs(caption: str, of: str, what: str, pairs: Mapping[str, object]) -> FigureTable:
    rows: list[dict[str, Cell]] = [{"of": name, "what": str(each)} for name, each in pairs.items()]
    return FigureTable.of(rows, caption, Column("of", of, "text"), Column("what", what, "text"))
