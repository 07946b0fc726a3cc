"""From a histogram to noisy whole numbers, and from these to unbiased estimates with their standard errors.

The noise of a row is a function of the release's secret, the plan, the exact histogram, the group, the kind of row and
the row's number among its kind: whoever measures again, after a crash or elsewhere, measures the same.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dualmandate.mechanism.noise import SAMPLER_VERSION, NoiseKey, subkey
from dualmandate.population import Confidential, Histogram
from dualmandate.population.arrays import Floats, Integers
from dualmandate.publication.marginal_counts import MarginalCounts
from dualmandate.publication.release_spec import Group, Labels, ReleaseSpec
from dualmandate.publication.tabulating import SparseHistogram, Tabulated, add_counts
from dualmandate.publication.writing import NoisyRows, PublishedTable
from dualmandate.workload import Table

FINGERPRINT_VERSION = b"histogram/1"
MARGINALS_VERSION = b"marginals/1"
BLOCK = 2**23  # rows that are sorted by their kind at once
Numbers = NDArray[np.integer[Any]]


def tabulation_key(secret: Confidential[bytes]) -> bytes:
    """The key that decides which records of a unit with too many are kept."""
    return hmac.new(secret.open_for("tabulating"), b"contribution bounds", sha256).digest()


def seal_key(order: ReleaseSpec, secret: Confidential[bytes], *, mac: str) -> bytes:
    """The key under which measurements are known again as those of this plan, these records and this sampler."""
    told = f"measured/1 {SAMPLER_VERSION} {order.plan_digest} {mac}"
    return hmac.new(secret.open_for("sealing what was measured"), told.encode(), sha256).digest()


def fingerprint(order: ReleaseSpec, tabulated: Confidential[Tabulated], secret: Confidential[bytes]) -> str:
    """HMAC-SHA-256 of the exact counts, of the plan and of the versions, under the release's secret: 64 digits."""
    histogram = tabulated.open_for("binding a release to its data").histogram
    if isinstance(histogram, MarginalCounts):
        return _fingerprint_of_marginals(order, histogram, secret)
    cells, counts = _occupied(histogram)
    return fingerprint_of(order, secret, occupied=len(cells), cells=(cells,), counts=(counts,))


def fingerprint_of(
    order: ReleaseSpec,
    secret: Confidential[bytes],
    *,
    occupied: int,
    cells: Iterable[Numbers],
    counts: Iterable[Numbers],
) -> str:
    """The same from a histogram that is read piece by piece: cells with records in increasing order, and their counts.

    It is the same for every way to cut it into pieces.
    """
    content = _begun(order, secret, FINGERPRINT_VERSION)
    for pieces in (cells, counts):
        content.update(occupied.to_bytes(8, "little"))
        for numbers in pieces:
            content.update(numbers.astype("<i8", copy=False).tobytes())
    return content.hexdigest()


def _fingerprint_of_marginals(order: ReleaseSpec, counted: MarginalCounts, secret: Confidential[bytes]) -> str:
    """The same where marginals were counted: which ones, and all that they count."""
    content = _begun(order, secret, MARGINALS_VERSION)
    sets = str([list(axes) for axes in counted.sets]).encode()
    for piece in (sets, counted.total.to_bytes(8, "little"), counted.counts.astype("<i8", copy=False).tobytes()):
        content.update(len(piece).to_bytes(8, "little") + piece)
    return content.hexdigest()


def _begun(order: ReleaseSpec, secret: Confidential[bytes], version: bytes) -> hmac.HMAC:
    content = hmac.new(secret.open_for("binding a release to its data"), digestmod=sha256)
    versions = version, str(SAMPLER_VERSION).encode(), order.plan_digest.encode()
    for piece in (*versions, str(order.domain.shape).encode()):
        content.update(len(piece).to_bytes(8, "little") + piece)
    return content


def _occupied(histogram: Histogram | SparseHistogram) -> tuple[NDArray[np.integer[Any]], Integers]:
    """The cells that hold a record, increasing, and their counts."""
    if isinstance(histogram, SparseHistogram):
        return histogram.cells, histogram.counts
    flat = histogram.counts.reshape(-1)
    cells = np.flatnonzero(flat)
    return cells, flat[cells]


def measure(
    order: ReleaseSpec, tabulated: Confidential[Tabulated], secret: Confidential[bytes], *, mac: str
) -> Iterator[NoisyRows]:
    """Every group of tables with its noise; `mac` is the fingerprint that the ledger has bound the release to."""
    for group in order.groups:
        values = _noise(order, group, secret, mac=mac)  # all of it, before the counts are looked at
        counts = _counts(order, tabulated, "measuring")
        if isinstance(counts, MarginalCounts):
            np.add(values, _rows_of(group, counts), out=values)
        elif isinstance(counts, SparseHistogram):
            assert group.rows.counted is not None
            add_counts(group.rows.counted, counts, values)
        else:
            np.add(values, group.rows.count(counts), out=values)
        yield NoisyRows(group.name, group.noises, group.rows.kinds().astype(np.int64, copy=False), values)


def _rows_of(group: Group, counts: MarginalCounts) -> Integers:
    """The whole numbers of a group from marginals."""
    if group.rows.strategy is not None:
        return group.rows.strategy.count_marginals(counts.marginal)
    assert group.rows.counted is not None
    return np.concatenate([counts.table(table) for table in group.rows.counted])


def noise_key(order: ReleaseSpec, group: Group, kind: int, secret: Confidential[bytes], *, mac: str) -> NoiseKey:
    """Whose noise the rows of one kind of a group get."""
    opened, words = secret.open_for("drawing noise"), f"{group.name} / kind {kind}"
    return subkey(opened, order.plan_digest, histogram_mac=bytes.fromhex(mac), measurement=words)


def _noise(order: ReleaseSpec, group: Group, secret: Confidential[bytes], *, mac: str) -> Integers:
    keys = [noise_key(order, group, kind, secret, mac=mac) for kind in range(len(group.noises))]
    samplers, kinds = [law.sampler() for law in group.noises], group.rows.kinds()
    noise = np.empty(len(kinds), dtype=np.int64)
    if len(samplers) == 1:
        return samplers[0].draw(keys[0], range(len(kinds)), out=noise)
    drawn = np.zeros(len(samplers), dtype=np.int64)  # rows of each kind so far
    for start in range(0, len(kinds), BLOCK):
        block, part = kinds[start : start + BLOCK], noise[start : start + BLOCK]
        here = np.bincount(block, minlength=len(samplers))
        # Small numbers are sorted in one pass, and those that are alike keep their order.
        by_kind = np.split(np.argsort(block.astype(np.min_scalar_type(len(samplers))), kind="stable"), np.cumsum(here))
        for kind in np.flatnonzero(here):
            first = int(drawn[kind])
            part[by_kind[kind]] = samplers[kind].draw(keys[kind], range(first, first + int(here[kind])))
        drawn += here
    return noise


def exact_totals(order: ReleaseSpec, tabulated: Confidential[Tabulated]) -> Integers | None:
    """What the program publishes without noise, and what its neighbor relation takes as known; None for nothing."""
    if order.public is None:
        return None
    counts = _counts(order, tabulated, "publishing exact totals")
    if isinstance(counts, MarginalCounts):
        return np.concatenate([counts.table(table) for table in order.public.tables])
    if not isinstance(counts, SparseHistogram):
        return np.asarray(order.public.answers(counts), dtype=np.int64)
    totals = np.zeros(order.public.query_count, dtype=np.int64)
    add_counts(order.public.tables, counts, totals)
    return totals


def _counts(
    order: ReleaseSpec, tabulated: Confidential[Tabulated], purpose: str
) -> Integers | SparseHistogram | MarginalCounts:
    """The counts of all cells, of those with records, or of marginals, where these are enough."""
    histogram = tabulated.open_for(purpose).histogram
    if isinstance(histogram, MarginalCounts):
        return histogram
    if not isinstance(histogram, SparseHistogram):
        return histogram.counts
    return histogram if order.sparse else histogram.dense().counts


def estimated(order: ReleaseSpec, group: Group, measured: NoisyRows, public: Floats | None) -> Iterator[PublishedTable]:
    """The best linear unbiased estimates of a group's tables, each with its standard error."""
    answers = by_table(group.tables, group.rows.answers(measured.values, public))
    for table, here in zip(group.tables, answers, strict=True):
        errors = np.sqrt(group.measurement.query_variances(table.name, group.loss)) * float(table.grid)
        yield published(order, table, here * float(table.grid), errors)


def by_table(tables: Sequence[Table], values: NDArray[Any]) -> list[NDArray[Any]]:
    """The part of numbers, table after table, that each has; views."""
    return np.split(values, np.cumsum([table.query_count for table in tables])[:-1])


def published(
    order: ReleaseSpec, table: Table, estimates: Floats, standard_errors: Floats, values: Integers | None = None
) -> PublishedTable:
    """A table of an order with its labels, in its unit; the totals without noise count protected units."""
    unit = order.units.get(table.name, order.protection.unit)
    columns, levels = _labeled(order, table)
    labels = tuple(order.domain.level_labels(column) for column in columns)
    return PublishedTable(
        table.name, unit, columns, levels, estimates, standard_errors, values=values, level_labels=labels
    )


def _labeled(order: ReleaseSpec, table: Table) -> Labels:
    """The columns of a table and the levels of each, in the row-major order of its numbers."""
    if table not in order.known_labels:
        order.known_labels[table] = _labels(order, table)
    return order.known_labels[table]


def _labels(order: ReleaseSpec, table: Table) -> Labels:
    names = [attribute.name for attribute in order.domain.attributes]
    asked = table.tabulation.by if table.tabulation is not None else ()
    axes = sorted(table.label_axes)
    words = {order.domain.resolve(name)[0]: name for name in asked}
    columns = tuple(words.get(axis, names[axis]) for axis in axes)
    levels = [attribute.levels for attribute in order.domain.attributes]
    return columns, tuple(table.axis_labels(axis, levels[axis]) for axis in axes)
