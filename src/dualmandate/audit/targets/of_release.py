"""From a release to what attacks are made on: its claim, and the records behind its noisy tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import cache

import numpy as np

from dualmandate.audit.claims.attack import ClaimedGroup, ClaimedNoise, ClaimedRelease, Labels
from dualmandate.audit.claims.membership import membership_in
from dualmandate.audit.claims.shared_noise import SharedNoise
from dualmandate.audit.equations import Equations
from dualmandate.audit.options import AuditOptions
from dualmandate.audit.places import OnePlace, count_all, one_place
from dualmandate.audit.reconstruction.noisy import covered, expected_of
from dualmandate.audit.tables import NoisyTables, levels_in_words
from dualmandate.audit.targets.linkage import Homes, linkage_targets
from dualmandate.audit.targets.shared_noise import compared_rows
from dualmandate.audit.targets.targets import Targets, check_place
from dualmandate.errors import Refusal
from dualmandate.mechanism import Noise
from dualmandate.mechanism.rows import cell_change
from dualmandate.mechanism.technologies import noise_named
from dualmandate.population import Neighbors, PrivacyLoss, PrivacyMeasure
from dualmandate.program.program import ProgramFile, read_program
from dualmandate.publication.release import Release
from dualmandate.publication.release_spec import NUMBER_OF_RECORDS
from dualmandate.workload import Tabulation, Workload
from dualmandate.workload.statistics_count import count_statistics

MEAN_SIZE = math.sqrt(2 / math.pi)  # mean absolute error of a normal one, in standard errors


def targets_of(release: Release, options: AuditOptions) -> Targets:
    """The claim of a release, and its tables; records are judged where the curator names a file of them."""
    program = read_program(release.folder / release.facts["program_file"])
    options.effort.say("reading the release")
    beside, apart = compared_rows(release, program, options.beside)
    claimed = claim_of(release, program, beside)
    member = membership_in(claimed, options.key)
    sure = (claimed,) if member is None else (claimed, member)
    if member is None:
        apart = (*apart, "membership: tests are for units of one record, whose measured rows have one kind of noise")
    try:
        noisy, left_out, place = noisy_tables(release, program, options)
    except Refusal as refusal:
        linkage_targets((), None, options)
        return Targets(sure, (*apart, f"reconstruction of records: {refusal.what} ({refusal.why})"))
    homes = Homes.of_program(program.domain, place, program.rules, published=True)
    return Targets((*sure, noisy, *linkage_targets((noisy,), homes, options)), (*apart, *left_out))


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
        tuple(_group(release, name) for name in release.groups),
        program.domain.possible_cells(),
        _kept(program),
        keys,
        exact,
        count_statistics(program.workload, float(program.file.population.population_size.value)),
        levels_in_words(program.domain),
        program.protection.most_records_per_unit,
        beside or {},
    )


def _group(release: Release, name: str) -> ClaimedGroup:
    rows = release.measurement(name).rows
    stated = next(each for each in release.facts["groups"] if each["name"] == name)
    noises = [noise_named(each["law"], Fraction(each["parameter"])) for each in stated["noises"]]
    claimed = tuple(
        ClaimedNoise(f"discrete {noise.law} {noise.parameter}", noise.law, noise.parameter, _log_pmf(noise), noise)
        for noise in noises
    )
    kinds = rows.kinds().astype(np.int64, copy=False)  # one number of no size where all rows are of one kind
    return ClaimedGroup(name, rows.changed, kinds, claimed, release.measurements(name).values)


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
    exact = [Tabulation(each.name, each.by, each.where) for each in protection.invariants]
    totals = Workload.from_tabulations(domain, exact).tables

    @cache
    def counted_in(cell: int) -> tuple[bytes, ...]:
        return tuple(part.tobytes() for part in cell_change(totals, domain.shape, cell))

    return lambda one, other: counted_in(one) == counted_in(other)


def noisy_tables(
    release: Release, program: ProgramFile, options: AuditOptions
) -> tuple[NoisyTables, tuple[str, ...], OnePlace]:
    """Its unbiased estimates as tables with errors of known size, place after place; what is left out; the places."""
    names = [table["name"] for table in release.facts["tables"] if table["name"] in _names(program)]
    place = one_place(program.workload.only(names), options.place)
    check_place(place)
    equations = Equations.of_workload(place.workload)
    estimates, errors = [], []
    for table in place.tables:
        found = release.published(table.name)
        estimates.append(place.by_place(table, found.estimates).astype(np.float64))
        errors.append(place.by_place(table, found.standard_errors).astype(np.float64).mean(axis=0) * MEAN_SIZE)
    published, scales = np.concatenate(estimates, axis=1), np.concatenate(errors)
    possible = covered(equations, place.domain.possible_cells())
    truths = {
        reference: count_all(path, program.domain, place, program.rules) for reference, path in options.files.items()
    }
    target = NoisyTables(
        f"release {release.facts['release']}",
        equations,
        published,
        scales,
        expected_of(equations, published, scales, possible),
        levels_in_words(place.domain),
        f"errors of {scales.min():.3g} to {scales.max():.3g} on average",
        truths,
        "what all places together are like" if place.axis is not None else "how many there are",
    )
    return target, place.not_tried("the reconstruction"), place


def _names(program: ProgramFile) -> set[str]:
    return {table.name for table in program.workload.tables}
