"""From a release to what attacks are made on: its claim, the records behind its tables, rows of other releases too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

from dualmandate.audit.claims.attack import ClaimedGroup, ClaimedNoise, ClaimedRelease, Labels, ToldRelease
from dualmandate.audit.claims.checks import FEWEST, RowNoise, SharedNoise, own_law, shared_noise
from dualmandate.audit.claims.exact_groups import ExactGroups
from dualmandate.audit.claims.membership import membership_in
from dualmandate.audit.claims.true_residuals import Places
from dualmandate.audit.linkage.attack import Homes, linkage_targets
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.reconstruction.noisy import tables_with_noise
from dualmandate.audit.tables import (
    MEAN_SIZE,
    Equations,
    NoisyTables,
    OnePlace,
    Targets,
    Truths,
    by_place,
    check_place,
    count_cells,
    levels_in_words,
    one_place,
    place_attribute,
)
from dualmandate.errors import InvalidRequest, Place, Refusal, TooLarge
from dualmandate.mechanism import Noise
from dualmandate.mechanism.rows import cell_change
from dualmandate.mechanism.technologies import noise_named
from dualmandate.planning.release_spec import carried_program, load_release
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.domain import LARGEST_DENSE_HISTOGRAM, dense_shape
from dualmandate.population.labels import label_of
from dualmandate.program.program import ProgramFile
from dualmandate.publication.release import Release
from dualmandate.publication.release_spec import NUMBER_OF_RECORDS
from dualmandate.publication.writing import PublishedTable
from dualmandate.workload import Table, Tabulation, Workload
from dualmandate.workload.statistics_count import count_statistics

PROBED = 2**36  # records of a cell at most, in files that rows are told apart by
SEED = 53  # of these files: they are no data
UNLIKE = 1e-6  # of a number: machines round the same steps otherwise
HALF_OF_90 = 1.6449  # standard errors, of a normal law
TOLD = (
    "the loss computed again from rows, checks of the noise that was drawn, and membership: '{name}' chooses its draws "
    "as it goes on, so that there are no rows, fixed beforehand and some of them redundant, for these to see; the loss "
    "is the one that the ledger was charged"
)


def targets_of(release: Release, options: AuditOptions) -> Targets:
    """The claim of a release, and its tables; records are judged where the curator names a file of them."""
    program = carried_program(release.folder, release.facts)
    if program.domain.size > LARGEST_DENSE_HISTOGRAM:
        raise TooLarge(
            f"the audit of a release about {program.domain.size:.3g} cells",
            why="what one record changes is looked at cell by cell, and so are the records behind the tables",
            instead="audit its tables as a folder of anybody's tables, a few attributes at a time",
            where=Place(file=str(release.folder)),
        )
    options.effort.say("reading the release")
    beside, apart = compared_rows(release, program, options.beside)
    truths = {reference: count_cells(path, program.domain, program.rules) for reference, path in options.files.items()}
    claimed = replace(claim_of(release, program, beside), truths=truths, places=_places(program, options.place))
    member = None if claimed.told is not None else membership_in(claimed, options.key)
    clipped = {table["name"]: table["clipped"] for table in release.facts["tables"] if table.get("clipped")}
    groups = {table.name: table.query_count for table in _exact_tables(program) if table.query_count > 1}
    exact = (ExactGroups(groups, claimed.coarsening),) if groups else ()
    sure = (claimed, *exact) if member is None else (claimed, *exact, member)
    if claimed.told is not None:
        apart = (*apart, TOLD.format(name=release.technology))
    elif member is None:
        apart = (*apart, "membership: tests are for units of one record, whose measured rows have one kind of noise")
    try:
        noisy, left_out, place = noisy_tables(release, program, options, truths)
    except Refusal as refusal:
        linkage_targets((), None, options)
        words = f"reconstruction of records: {refusal.what} ({refusal.why})"
        return Targets(sure, (*apart, words), clipped=clipped)
    homes = Homes.of_program(program.domain, place, program.rules, published=True)
    attacked = (*sure, noisy, *linkage_targets((noisy,), homes, options))
    return Targets(attacked, (*apart, *left_out), clipped=clipped)


def _places(program: ProgramFile, named: str | None) -> Places | None:
    """The attribute by which noise is looked at place by place."""
    name = place_attribute(program.workload, named)
    if name is None:
        return None
    told = program.domain.attribute(name)
    names = tuple(f"{name} {label_of(told.level_labels, level)}" for level in told.levels)
    return Places(program.domain.axis(name), names)


def claim_of(release: Release, program: ProgramFile, beside: Mapping[str, SharedNoise] | None = None) -> ClaimedRelease:
    """What a release claims: loss, neighbors, noise of every row, and which numbers are exact.

    `beside` are other releases whose rows were compared with its own.
    """
    facts = release.facts
    shown = {table["name"] for table in facts["tables"] if not table["exact"]}
    exact = {table["name"]: True for table in facts["tables"] if table["exact"]}
    if program.protection.neighbors is Neighbors.REPLACE_ONE:
        exact[NUMBER_OF_RECORDS] = True
    levels = [attribute.levels for attribute in program.domain.attributes]
    keys: dict[str, tuple[Labels, Labels]] = {
        table.name: (
            tuple(map(tuple, release.published(table.name).labels)),
            tuple(table.axis_labels(axis, levels[axis]) for axis in table.label_axes),
        )
        for table in program.workload.tables
        if table.name in shown
    }
    return ClaimedRelease(
        f"release {facts['release']}",
        PrivacyLoss(Fraction(facts["loss"]["exact"]), PrivacyMeasure(facts["loss"]["currency"])),
        tuple(_group(release, name, dense_shape(program.domain)) for name in release.groups),
        program.domain.possible_cells(),
        _kept(program),
        keys,
        exact,
        count_statistics(program.workload, float(program.file.population.population_size.value)),
        levels_in_words(program.domain),
        program.protection.most_records_per_unit,
        beside or {},
        dense_shape(program.domain),
        told=None if release.technology is None else told_release(release),
    )


def _exact_tables(program: ProgramFile) -> tuple[Table, ...]:
    exact = [Tabulation(each.name, each.by, each.where) for each in program.protection.invariants]
    return Workload.from_tabulations(program.domain, exact).tables if exact else ()


def told_release(release: Release) -> ToldRelease:
    """The transcript of a release, and how many of its estimates are others than follow from it here."""
    transcript, told = release.transcript(), release.told()
    noises = tuple(dict.fromkeys(draw.noise for draw in transcript if draw.noise is not None))
    values = np.concatenate([draw.values for draw in transcript])
    shown = [table["name"] for table in release.facts["tables"] if not table["exact"]]
    estimates = np.concatenate([release.published(name).estimates for name in shown])
    unlike = int(np.count_nonzero(np.abs(estimates - told) > UNLIKE * np.maximum(1.0, np.abs(told))))
    words = f"{len(transcript):,} draws, told again without the records, to {UNLIKE:g} of each number"
    return ToldRelease(tuple(map(_claimed, noises)), values, len(estimates), unlike, words)


def _claimed(noise: Noise) -> ClaimedNoise:
    return ClaimedNoise(f"discrete {noise.law} {noise.parameter}", noise.law, noise.parameter, _log_pmf(noise), noise)


def _group(release: Release, name: str, shape: tuple[int, ...]) -> ClaimedGroup:
    rows = release.measurement(name).rows
    stated = next(each for each in release.facts["groups"] if each["name"] == name)
    noises = [noise_named(each["law"], Fraction(each["parameter"])) for each in stated["noises"]]
    claimed = tuple(map(_claimed, noises))
    kinds = rows.kinds().astype(np.int64, copy=False)  # one number of no size where all rows are of one kind
    values = release.measurements(name).values
    counted = rows.counted or ()  # of a strategy, all rows are one table
    starts = np.cumsum([0, *(table.query_count for table in counted)])
    tables = {table.name: int(start) for table, start in zip(counted, starts[:-1], strict=True)}
    return ClaimedGroup(
        name, rows.changed, kinds, claimed, values, lambda histogram: rows.count(histogram.reshape(shape)), tables
    )


def _log_pmf(noise: Noise) -> Callable[[int], float]:
    law = noise.distribution()
    return lambda value: law.log_likelihood(float(value))


def _kept(program: ProgramFile) -> Callable[[int, int], bool] | None:
    """Whether two cells can be exchanged between neighbors: all exact totals stay as they are."""
    protection, domain = program.protection, program.domain
    if protection.neighbors is Neighbors.ADD_OR_REMOVE:
        return None
    if not protection.invariants or protection.records_together > 1:
        return lambda one, other: one != other
    totals = _exact_tables(program)

    @cache
    def counted_in(cell: int) -> tuple[bytes, ...]:
        return tuple(part.tobytes() for part in cell_change(totals, domain.shape, cell))

    return lambda one, other: counted_in(one) == counted_in(other)


def noisy_tables(
    release: Release, program: ProgramFile, options: AuditOptions, truths: Truths
) -> tuple[NoisyTables, tuple[str, ...], OnePlace]:
    """Its unbiased estimates as tables with errors of known size, place after place; what is left out; the places."""
    known = {table.name for table in program.workload.tables}
    names = [table["name"] for table in release.facts["tables"] if table["name"] in known]
    place = one_place(program.workload.only(names), options.place)
    check_place(place.domain)
    equations = Equations.of_workload(place.workload)
    estimates, errors = [], []
    for table in place.tables:
        found = release.published(table.name)
        estimates.append(place.by_place(table, found.estimates).astype(np.float64))
        spreads = found.standard_errors if release.technology is None else _spreads(found)
        errors.append(place.by_place(table, spreads).astype(np.float64).mean(axis=0) * MEAN_SIZE)
    published, scales = np.concatenate(estimates, axis=1), np.concatenate(errors)
    ends = [f"{size:.3g}" for size in (scales.min(), scales.max())]
    target = tables_with_noise(
        f"release {release.facts['release']}",
        equations,
        published,
        scales,
        place.domain,
        protection=f"errors of {' to '.join(dict.fromkeys(ends))} on average",
        prior="what all places together are like" if place.axis is not None else "how many there are",
        truths=by_place(truths, place),
    )
    return target, place.not_tried("the reconstruction"), place


def _spreads(table: PublishedTable) -> Floats:
    """About what standard errors would be where only intervals are stated: their 90 % half-widths, as if normal."""
    if "lower_90" not in table.intervals:
        raise InvalidRequest(
            f"the reconstruction of records from '{table.name}'",
            why="how far off its numbers are is not stated",
            instead="audit its tables as a folder of anybody's tables",
        )
    return np.asarray((table.intervals["upper_90"] - table.intervals["lower_90"]) / 2 / HALF_OF_90)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Every measured row of a release: what it counts of two random files, its number, and its noise."""

    probes: Integers = field(repr=False)  # (rows, 2)
    values: Integers = field(repr=False)
    kinds: Integers = field(repr=False)
    noises: tuple[RowNoise, ...]


def compared_rows(
    release: Release, program: ProgramFile, others: Sequence[Path]
) -> tuple[dict[str, SharedNoise], tuple[str, ...]]:
    """What each of the other releases has in common with this one, and which could not be compared, in words."""
    found: dict[str, SharedNoise] = {}
    left_out: list[str] = []
    if others and release.technology is not None:
        return {}, (f"noise of other releases beside this one: '{release.technology}' has no rows to compare",)
    own = _rows(release, program) if others else None
    for place in others:
        other = load_release(place)
        _check_another(release, other, place)
        theirs = carried_program(other.folder, other.facts)
        if other.technology is not None:
            left_out.append(f"noise of release {other.facts['release']} beside this one: it has no rows to compare")
            continue
        name = f"release {other.facts['release']} of {other.facts['program']}"
        assert own is not None
        same = theirs.domain == program.domain
        shared = _shared(own, _rows(other, theirs)) if same else None
        if shared is None:
            why = "fewer than eight rows count the same" if same else "it is about other attributes"
            left_out.append(f"noise of {name} beside this one: {why}")
        else:
            found[name if name not in found else f"{name} ({place})"] = shared
    return found, tuple(left_out)


def _check_another(release: Release, other: Release, place: Path) -> None:
    keys = ("release", "plan_digest", "ledger_head")
    if [release.facts.get(key) for key in keys] == [other.facts.get(key) for key in keys]:
        raise InvalidRequest(
            f"release {other.facts['release']} is to be compared with itself",
            why="every number of a release is equal to itself",
            instead="name another release after --beside",
            where=Place(file=str(place)),
        )


def _rows(release: Release, program: ProgramFile) -> _Rows:
    draws, shape = np.random.default_rng(SEED), dense_shape(program.domain)
    files = [draws.integers(0, PROBED, shape, dtype=np.int64) for _ in range(2)]
    probes, values, kinds, noises = [], [], [], list[RowNoise]()
    for name in release.groups:
        rows, measured = release.measurement(name).rows, release.measurements(name)
        probes.append(np.stack([rows.count(file) for file in files], axis=1))
        values.append(measured.values)
        kinds.append(measured.kinds + len(noises))
        for noise in measured.noises:
            law = own_law(noise.law)
            if law is None:
                raise InvalidRequest(
                    f"rows with {noise.law} noise are to be compared",
                    why="how often two draws of it are equal is not worked out",
                    instead="compare releases with discrete Laplace or Gaussian noise",
                    where=Place(file=str(release.folder)),
                )
            noises.append(RowNoise(law, noise.parameter))
    return _Rows(np.concatenate(probes), np.concatenate(values), np.concatenate(kinds), tuple(noises))


def _shared(one: _Rows, other: _Rows) -> SharedNoise | None:
    """The comparison of rows that count the same of both random files; None where there are too few."""
    _, first, second = np.intersect1d(_marks(one), _marks(other), return_indices=True)
    same = (one.probes[first] == other.probes[second]).all(axis=1)
    first, second = first[same], second[same]
    if len(first) < FEWEST:
        return None
    codes = one.kinds[first] * len(other.noises) + other.kinds[second]
    used, kinds = np.unique(codes, return_inverse=True)
    pairs = tuple((one.noises[int(c) // len(other.noises)], other.noises[int(c) % len(other.noises)]) for c in used)
    return shared_noise(one.values[first], other.values[second], noises=pairs, kinds=kinds)


def _marks(rows: _Rows) -> Integers:
    """One number a row, from both random files."""
    with np.errstate(over="ignore"):
        return np.asarray(rows.probes[:, 0] * np.int64(6364136223846793005) + rows.probes[:, 1])
