"""Microdata into a histogram over the declared domain, on disk rather than in memory, and behind the wall."""

from __future__ import annotations

from dualmandate.population import Confidential, Domain, Protection
from dualmandate.population.domain import dense_shape
from dualmandate.publication.records import check_source, opened
from dualmandate.publication.rules import Rules
from dualmandate.publication.sources import Source, SparkTable
from dualmandate.publication.spark.tabulating import check_table, tabulate_table
from dualmandate.publication.tabulated import CheckFindings, SparseHistogram, Tabulated
from dualmandate.publication.tabulation_sql import KEY_BYTES, Progress, checked_spec, counted, findings_of, marks
from dualmandate.publication.wall import connected, guarded


def tabulate(
    source: Source,
    domain: Domain,
    *,
    protection: Protection,
    rules: Rules,
    key: bytes,
    progress: Progress | None = None,
    sparse: bool = False,
) -> Confidential[Tabulated]:
    """Count the records of each cell, every record by its own rules and every unit within its bound.

    `key` (32 secret bytes, the same for a retry) decides which records of a unit with too many are kept. `sparse`
    holds only the cells with records, for domains that are too large to write out.
    """
    spec = checked_spec(domain, protection, rules, key, checking=False)
    check_source(source)
    if not sparse:
        dense_shape(domain)

    def work() -> Tabulated:
        if isinstance(source, SparkTable):
            cells, counts, records = tabulate_table(source, spec, key=key)
        else:
            with (
                connected() as connection,
                opened(source, connection, spec.columns, counted=bool(progress)) as found,
            ):
                cells, counts, records = counted(found, spec, connection, key=key, progress=progress)
        histogram = SparseHistogram(domain, cells, counts)
        return Tabulated(histogram if sparse else histogram.dense(), records)

    return Confidential("tabulated records", guarded(work, name=source.name))


def check(
    source: Source,
    domain: Domain,
    *,
    protection: Protection,
    rules: Rules,
    progress: Progress | None = None,
) -> Confidential[CheckFindings]:
    """Count what does not fit the domain, for the curator: nothing is published, nothing is spent.

    Only here may a rule be `refuse`. The findings stay boxed: they are as confidential as the records.
    """
    spec = checked_spec(domain, protection, rules, bytes(KEY_BYTES), checking=True)
    check_source(source)

    def work() -> CheckFindings:
        if isinstance(source, SparkTable):
            return findings_of(spec, check_table(source, spec))
        with connected() as connection, opened(source, connection, spec.columns, counted=bool(progress)) as found:
            return findings_of(spec, marks(found, spec, connection, progress=progress))

    return Confidential("findings of a check", guarded(work, name=source.name))
