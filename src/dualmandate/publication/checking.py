"""The curator's check: what in the records does not fit the program, by attribute, with the values that do not.

Everything here is as confidential as the records, and for the eyes of those inside the wall. Values are counted on
disk rather than in memory, and the most frequent ones are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from dualmandate.errors import did_you_mean
from dualmandate.population import Attribute, Confidential, Domain, GridLevels, Protection
from dualmandate.population.rational import written
from dualmandate.population.shown import one_line
from dualmandate.publication.rules import AttributeRule, Rules, ValueRule
from dualmandate.publication.sources import Source, SourceColumns, SparkTable, check_source, opened
from dualmandate.publication.tabulating import (
    KEY_BYTES,
    SIDES,
    Progress,
    TabulationSpec,
    checked_spec,
    records_sql,
)
from dualmandate.publication.wall import connected, executed, guarded

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MOST_VALUES = 20  # of an attribute that are told
LONGEST_TOLD = 80  # letters of a value
MOST_COMPARED = 10_000  # levels that a misspelled value is held against
WARNING = (
    "CONFIDENTIAL: these counts and values say as much as the records. They stay inside: no log, no mail, no copy."
)
NOTHING_DONE = "Nothing was published, and nothing was spent."
# What is counted of a unit, or of records that are alike, in the order of the sums of a check.
OF_ALL = ("unidentified", "excess", "repeated", "kept", "units", "several")

Value = tuple[int, str, int, int]  # Place of its attribute, the value, its records, how many values are outside.


@dataclass(frozen=True)
class OutsideValue:
    """A value that is no level of its attribute, in how many records it stands, and what it may have been meant for."""

    value: str = field(repr=False)
    records: int = field(repr=False)
    note: str | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class CheckFindings:
    """What a curator's check counted, in records; for the eyes of those inside the wall.

    `unreadable` counts records with a value that could not be read, which is then one that is not there; `outside` and
    `null` count every record by attribute, before any rule, and `below` and `above` those whose number is beyond a
    bound; `impossible`, `unidentified` and `excess` count records that the rules before them had kept, in this order.
    """

    records_read: int = field(repr=False)
    unreadable: int = field(repr=False)
    outside: Mapping[str, int] = field(repr=False)
    null: Mapping[str, int] = field(repr=False)
    below: Mapping[str, int] = field(repr=False)
    above: Mapping[str, int] = field(repr=False)
    impossible: int = field(repr=False)  # in a structural zero
    unidentified: int = field(repr=False)  # without the unit's identifier
    excess: int = field(repr=False)  # beyond what a unit may contribute
    repeated: int = field(repr=False)  # like an earlier record in all that is read; where nobody is identified
    dropped: int = field(repr=False)  # in no table, for whatever reason
    units: int = field(repr=False)  # that are identified
    several: int = field(repr=False)  # of them, with more than one record
    refused: tuple[str, ...] = field(repr=False)  # attributes whose rule is `refuse` and that met a value it is for
    values: Mapping[str, tuple[OutsideValue, ...]] = field(default_factory=dict, repr=False)  # the most frequent
    distinct: Mapping[str, int] = field(default_factory=dict, repr=False)  # how many values are outside


def check(
    source: Source, domain: Domain, *, protection: Protection, rules: Rules, progress: Progress = None
) -> Confidential[CheckFindings]:
    """Count what does not fit the domain, for the curator: nothing is published, nothing is spent.

    Only here may a rule be `refuse`. The findings stay boxed: they are as confidential as the records.
    """
    spec = checked_spec(domain, protection, rules, bytes(KEY_BYTES), checking=True)
    check_source(source)

    def work() -> CheckFindings:
        if isinstance(source, SparkTable):
            from dualmandate.publication.spark.tabulating import check_table

            return findings_of(spec, *check_table(source, spec, most=MOST_VALUES))
        halves = [None, None] if progress is None else [lambda s: progress(s / 2), lambda s: progress((1 + s) / 2)]
        with connected() as connection:
            with opened(source, connection, spec.columns, counted=bool(progress)) as found:
                counts = marks(found, spec, connection, progress=halves[0])
            with opened(source, connection, spec.columns, counted=bool(progress)) as found:
                count_values(found, spec, connection, progress=halves[1])
            return findings_of(spec, counts, most_frequent(connection, MOST_VALUES))

    return Confidential("findings of a check", guarded(work, name=source.name))


def marks(
    found: SourceColumns, spec: TabulationSpec, connection: DuckDBPyConnection, *, progress: Progress = None
) -> list[int]:
    """The whole numbers of a check: see `findings_of`."""
    statement = f"CREATE TEMP TABLE marks AS {_marked(records_sql(found, spec, connection), spec)}"
    executed(connection, statement, progress=progress, share=found.share)
    return [int(number) for number in connection.execute("SELECT counts FROM marks").fetchall()[0][0]]


def _marks_of_records(spec: TabulationSpec) -> list[str]:
    kinds = ("outside", "null", *SIDES)
    by_attribute = (f"{kind}_{n}" for kind in kinds for n in range(len(spec.domain.attributes)))
    return [*by_attribute, "unreadable", "impossible"]


def count_of_marks(spec: TabulationSpec) -> int:
    """How many whole numbers a check has."""
    return 1 + len(_marks_of_records(spec)) + len(OF_ALL)


def _marked(reading: str, spec: TabulationSpec) -> str:
    names = _marks_of_records(spec)
    of_unit = [f"sum(records) FILTER (WHERE {mark}) AS {mark}" for mark in names]
    of_unit += ["coalesce(sum(records) FILTER (WHERE cell IS NOT NULL), 0) AS kept", "sum(records - 1) AS repeated"]
    units = f"SELECT unit, sum(records) AS records, {', '.join(of_unit)} FROM ({reading}) GROUP BY unit"
    most, known = spec.protection.most_records_per_unit, "FILTER (WHERE unit IS NOT NULL)"
    of_all = {
        "unidentified": "sum(kept) FILTER (WHERE unit IS NULL)",
        "excess": f"sum(greatest(kept - {most}, 0)) {known}",
        "repeated": "sum(repeated)",  # equal records are one row where nobody is identified
        "kept": f"sum(least(kept, {most})) {known}" if spec.identified else "sum(kept)",
        "units": f"count(*) {known}",
        "several": "count(*) FILTER (WHERE unit IS NOT NULL AND records > 1)",
    }
    sums = [*(f"sum({name})" for name in ["records", *names]), *(of_all[name] for name in OF_ALL)]
    return f"SELECT [{', '.join(f'coalesce({one}, 0)::BIGINT' for one in sums)}] AS counts FROM ({units})"


def count_values(
    found: SourceColumns, spec: TabulationSpec, connection: DuckDBPyConnection, *, progress: Progress = None
) -> None:
    """The table `outside` (place, value, records): every value that is no level, grouped on disk if there are many."""
    numbers, reading = range(len(spec.domain.attributes)), records_sql(found, spec, connection, values=True)
    pairs = ", ".join(f"{{'place': {n}, 'value': left(value_{n}, {LONGEST_TOLD + 1})}}" for n in numbers)
    some = " OR ".join(f"value_{n} IS NOT NULL" for n in numbers)
    each = f"SELECT records, unnest([{pairs}]) AS one FROM ({reading}) WHERE {some}"
    statement = (
        f"CREATE TEMP TABLE outside AS SELECT one.place AS place, one.value AS value, sum(records)::BIGINT AS records "
        f"FROM ({each}) WHERE one.value IS NOT NULL GROUP BY one.place, one.value"
    )
    executed(connection, statement, progress=progress, share=found.share)


def most_frequent(connection: DuckDBPyConnection, most: int) -> list[Value]:
    """The most frequent values of each attribute in the table `outside`."""
    ranked = (
        "SELECT place, value, records, count(*) OVER (PARTITION BY place) AS distinct_values, "
        "row_number() OVER (PARTITION BY place ORDER BY records DESC, value) AS rank FROM outside"
    )
    kept = f"SELECT place, value, records, distinct_values FROM ({ranked}) WHERE rank <= {most} ORDER BY place, rank"
    found = connection.execute(kept).fetchall()
    return [(int(place), str(value), int(records), int(distinct)) for place, value, records, distinct in found]


def findings_of(spec: TabulationSpec, counts: Iterable[int], values: Iterable[Value]) -> CheckFindings:
    """What the sums of a check say, in the order of `_marked`, with the values that are outside."""
    attributes, (records, *rest) = spec.domain.attributes, (int(count) for count in counts)
    names, size = spec.domain.names, len(attributes)
    outside, null, below, above = (
        dict(zip(names, rest[place * size : (place + 1) * size], strict=True)) for place in range(2 + len(SIDES))
    )
    unreadable, impossible, *of_all = rest[(2 + len(SIDES)) * size :]
    told = dict(zip(OF_ALL, of_all, strict=True))
    rules = {attribute.name: spec.rules.of(attribute) for attribute in attributes}
    refused = tuple(
        name
        for name in names
        if (rules[name].outside is ValueRule.REFUSE and outside[name] > 0)
        or (rules[name].null is ValueRule.REFUSE and null[name] > 0)
    )
    if not spec.identified:
        told |= {"unidentified": 0, "excess": 0, "units": 0, "several": 0}
    found, distinct = {name: list[OutsideValue]() for name in names}, dict.fromkeys(names, 0)
    for place, value, of_value, number in values:
        name = names[place]
        found[name].append(OutsideValue(value, of_value, meant_for(value, attributes[place])))
        distinct[name] = number
    return CheckFindings(
        records_read=records,
        unreadable=unreadable,
        outside=outside,
        null=null,
        below=below,
        above=above,
        impossible=impossible,
        unidentified=told["unidentified"],
        excess=told["excess"],
        repeated=told["repeated"],
        dropped=records - told["kept"],
        units=told["units"],
        several=told["several"],
        refused=refused,
        values={name: tuple(each) for name, each in found.items()},
        distinct=distinct,
    )


def meant_for(value: str, attribute: Attribute) -> str | None:
    """What a value that is no level may have been meant for, in words: by case, blanks, zeros, or a near spelling."""
    if isinstance(attribute.levels, GridLevels) or attribute.edges is not None:
        return _no_number(value, attribute)
    levels = attribute.levels[:MOST_COMPARED]
    for words, plain in (
        ("in case", str.casefold),
        ("in blanks around it", str.strip),
        ("in leading zeros", lambda text: text.lstrip("0")),
        ("in case, blanks and zeros", lambda text: text.strip().casefold().lstrip("0").removesuffix(".0")),
    ):
        same = next((level for level in levels if plain(level) == plain(value)), None)
        if same is not None:
            return f"differs only {words} from {same}"
    return did_you_mean(value, levels, "", cutoff=0.75) or None


def _no_number(value: str, attribute: Attribute) -> str | None:
    try:
        number = float(value)
    except ValueError:
        plain = value.strip().replace(",", "").replace(" ", "")
        return "no number as it is written" if plain.replace(".", "", 1).isdecimal() else "no number"
    edges = attribute.edges
    low, high = (edges[0], edges[-1]) if edges is not None else (attribute.lower, attribute.upper)
    assert low is not None
    assert high is not None
    if number < low:
        return f"below {written(low)}"
    return f"above {written(high)}" if number > high else None


def refusing(rules: Rules, names: Sequence[str], domain: Domain) -> Rules:
    """The rules of a check that reports any value of these attributes that is outside or not there."""
    stated = {name: AttributeRule(ValueRule.REFUSE, ValueRule.REFUSE) for name in names}
    for name in stated:
        domain.axis(name)
    return replace(rules, attributes={**rules.attributes, **stated})


@dataclass(frozen=True, eq=False)
class CheckReport:
    """The findings of a check with the rules they met. Its words are confidential."""

    source: str
    rules: Rules
    domain: Domain
    protection: Protection
    findings: CheckFindings = field(repr=False)

    __repr__ = one_line

    def words(self) -> str:
        """What does not fit, by attribute, with the values; then units, and what is in no table."""
        found = self.findings
        rows = [("attribute", "outside", "rule", "not there", "rule")]
        for attribute in self.domain.attributes:
            rule, name = self.rules.of(attribute), attribute.name
            rows.append((name, f"{found.outside[name]:,}", rule.outside, f"{found.null[name]:,}", rule.null))
        lines = [WARNING, "", f"{found.records_read:,} records read from '{self.source}'", "", *_laid_out(rows), ""]
        lines += [line for attribute in self.domain.attributes for line in self._of_attribute(attribute)]
        lines += self._of_records()
        if found.refused:
            lines.append(f"refused: {', '.join(found.refused)}")
        lines.append(f"in no table: {found.dropped:,} of {found.records_read:,} records")
        return "\n".join([*lines, "", NOTHING_DONE, WARNING])

    def _of_attribute(self, attribute: Attribute) -> list[str]:
        """The values that are outside, most frequent first, and how many numbers meet a bound."""
        found, name, lines = self.findings, attribute.name, list[str]()
        bounds = {"lower": found.below[name], "upper": found.above[name]}
        met = [f"{records:,} at the {side} bound" for side, records in bounds.items() if records]
        if met and self.rules.of(attribute).outside is ValueRule.CLAMP:
            lines.append(f"  clipped: {', '.join(met)}")
        told, more = found.values.get(name, ()), 0
        if told:
            more = found.distinct[name] - len(told)
            rows = [(f"  {shown(each.value)}", f"{each.records:,}", each.note or "") for each in told]
            lines += _laid_out(rows)
        if more:
            lines.append(f"  and {more:,} other values")
        return [f"{name}, outside:", *lines, ""] if lines else []

    def _of_records(self) -> list[str]:
        found, protection = self.findings, self.protection
        moved, unit = self.rules.unknown_where_impossible, protection.unit
        fate = "left out" if moved is None else f"'{moved}' becomes unknown where that is possible"
        lines = [
            f"with a value that could not be read: {found.unreadable:,} (that value is not there)",
            f"in structural zeros: {found.impossible:,} ({fate})",
        ]
        if protection.identifier is not None:
            most = protection.most_records_per_unit
            lines.append(f"units: {found.units:,}, of them with more than one record: {found.several:,}")
            lines.append(f"without '{protection.identifier}': {found.unidentified:,} (left out)")
            lines.append(f"beyond {most} of one {unit}: {found.excess:,} (left out)")
            return lines
        lines.append(f"duplicates, like an earlier record in every attribute: {found.repeated:,} (counted)")
        if not protection.protects_units:
            lines.append(f"nothing identifies a {unit}: the guarantee protects a record, not a {unit}")
        return lines


def shown(value: str) -> str:
    """A value as a terminal may show it: in quotes, nothing in it obeyed, and no longer than a line."""
    text = value if len(value) <= LONGEST_TOLD else value[:LONGEST_TOLD] + "…"
    return repr(text)


def report_for_curator(
    box: Confidential[CheckFindings], source: str, *, rules: Rules, domain: Domain, protection: Protection
) -> CheckReport:
    """Open the findings of a check for the curator who asked for it."""
    return CheckReport(source, rules, domain, protection, box.open_for("the curator's own eyes"))


def _laid_out(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
