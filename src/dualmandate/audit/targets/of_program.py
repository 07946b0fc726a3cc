"""From a program to what attacks are made on: its tables of a synthetic population, published exactly and with noise,
and every method of publication compared on people who were drawn for it, the plan's own too.

Nothing confidential is opened unless the curator names a file of records. The noise of a plan comes from the audit's
key, never from a release's secret, and nothing is spent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from dualmandate.audit.disclosure_control.comparison import compare, key_in_words, secret_of
from dualmandate.audit.disclosure_control.magnitude_rules import SummedTables, summed_tables
from dualmandate.audit.disclosure_control.methods import PROTECTED, PublicationMethod, Subject
from dualmandate.audit.linkage.attack import Homes, linkage_targets
from dualmandate.audit.options import AuditOptions, generator
from dualmandate.audit.reconstruction.noisy import KnownNumbers, covered, tables_with_noise
from dualmandate.audit.tables import (
    MEAN_SIZE,
    Equations,
    ExactTables,
    NoisyTables,
    OnePlace,
    Targets,
    Truths,
    boxed,
    check_place,
    count_all,
    levels_in_words,
    one_place,
    open_truths,
    place_attribute,
)
from dualmandate.errors import InvalidMechanism, Refusal, TooLarge
from dualmandate.mechanism import GEOMETRIC, simulation_keys
from dualmandate.mechanism.data_dependent import RecordsCurator
from dualmandate.planning.plan import Plan
from dualmandate.planning.program import Program
from dualmandate.planning.release_spec import release_spec_of_plan
from dualmandate.population import Domain, Histogram
from dualmandate.population.arrays import Floats, Integers
from dualmandate.population.wording import percent, stated_loss
from dualmandate.publication.measuring import by_table
from dualmandate.publication.release_spec import OrderedTechnology, known_histogram

MOST_PLACES, MOST_RECORDS, MOST_IN_PLACE = 100, 20_000, 2_000
LARGEST_COMPARED_PLACE = 2**14  # Methods are compared in places of at most this many cells.
MOST_NUMBERS, FEWEST_PLACES = 50_000, 5  # published of all places that are compared; places, however many numbers
COMPARISON = "methods compared"
EPSILONS = (0.25, 1.0, 4.0, 16.0)
Numbers = dict[str, tuple[Floats, Floats]]  # by table: what is printed and its mean absolute error, a row a place
LARGEST_MEASURED = 2**20  # cells, or measured rows, of which a whole release is tried out


def targets_of(program: Program, options: AuditOptions) -> Targets:
    """A program's tables as if published exactly, and with geometric noise at several losses."""
    program = program.with_best_bounds()
    place = one_place(program.workload, options.place)
    check_place(place.domain)
    truths = people_of(program, place, options)
    targets = tuple(published_tables(program.name, place, truths, options.key))
    homes = Homes.of_program(program.domain, place, program.rules, published=False)
    linked = linkage_targets(targets, homes, options)
    left_out = [*place.not_tried("the reconstruction")]
    possible = covered(Equations.of_workload(place.workload), place.domain.possible_cells())
    if not possible.all():
        left_out.append(f"{int((~possible).sum()):,} of {possible.size:,} cells of a place, which no table counts")
    found = compare_methods(program, options)
    tables, said = {table.name for table in program.file.workload}, program.clipped
    clipped = {name: words for name, words in said.items() if name in tables}
    attacked = (*targets, *linked, *found.attacked)
    return Targets(attacked, (*left_out, *found.left_out), found.compared, found.notes, clipped)


def people_of(program: Program, place: OnePlace, options: AuditOptions) -> Truths:
    """The records that are attacked: those that the curator names, or a synthetic population drawn with the key."""
    if options.files:
        return {
            reference: count_all(path, program.domain, place, program.rules)
            for reference, path in options.files.items()
        }
    return {"synthetic": boxed(synthetic_places(program, place, options.key))}


def compare_methods(program: Program, options: AuditOptions) -> Targets:
    """Old methods, DP at each ε, and the plan; nothing confidential is opened.

    What is attacked are tables of sums, whose contributors are told or not.
    """
    name = place_attribute(program.workload, options.place)
    if name is None:
        words = "no attribute by which a table is published tells places apart; name one with --place"
        return Targets((), (f"{COMPARISON}: {words}",))
    place = one_place(program.workload, name)
    if place.domain.size > LARGEST_COMPARED_PLACE:
        words = f"{place.domain.size:,} cells a place, at most {LARGEST_COMPARED_PLACE:,}"
        return Targets((), (f"{COMPARISON}: {words}",))
    most = max(MOST_NUMBERS // place.workload.query_count, FEWEST_PLACES)
    people = synthetic_places(program, place, options.key, most=most)
    if len(people) < 2 or not people.sum():
        return Targets((), (f"{COMPARISON}: there is one place, or nobody lives anywhere",))
    secret = secret_of(place.domain, options.secret)
    subject = Subject(place.workload, people, place.domain.possible_cells(), secret)
    summed = tuple(summed_tables(program.workload, place, people, program.clipped))
    left_out = [*_not_applied(subject, summed), *place.not_tried(f"the {COMPARISON}")]
    notes = list(_notes(place, subject, name))
    planned = []
    options.effort.say("planning")
    try:
        method, words = planned_method(program.plan(), place, people, options.key)
        planned.append(method)
        notes.append(words)
    except Refusal as refusal:
        left_out.append(f"the plan's own loss in the {COMPARISON}: {refusal.what}")
    sensitivity = program.workload.only([each.name for each in place.tables]).sensitivity(program.protection)
    compared = compare(
        subject, sensitivity=float(sensitivity.value), key=options.key, planned=planned, effort=options.effort
    )
    return Targets(summed, tuple(left_out), compared, tuple(notes))


def synthetic_places(program: Program, place: OnePlace, key: bytes, *, most: int = MOST_PLACES) -> Integers:
    """People drawn with the audit's key, in as many places as are compared; shape (places, cells)."""
    people = float(program.file.population.population_size.value)
    places = min(len(place.places), most, MOST_PLACES)
    each = min(max(round(people / len(place.places)), 1), MOST_IN_PLACE, max(MOST_RECORDS // places, 1))
    draws = generator(key, f"synthetic population of {program.name}")
    sizes = draws.poisson(each, places).astype(np.int64)
    return synthetic_people(place.domain, sizes, draws)


def _notes(place: OnePlace, subject: Subject, name: str) -> Iterator[str]:
    people = int(subject.truth.sum())
    few = f" of {len(place.places):,}" if len(subject.truth) < len(place.places) else ""
    yield f"{people:,} people were drawn in {len(subject.truth):,}{few} places ({name}); nothing comes from data"
    yield (
        "everybody, guessers too, knows how many live in each place and what people elsewhere are like; the attacker "
        "knows how numbers were made and which were hidden; a hidden number is read as what the others make likely"
    )
    yield (
        "beside numbers below a threshold others are suppressed, until sums tell none of them within "
        f"{percent(PROTECTED)}, where that can be done"
    )
    yield f"judged by the people who were drawn; {levels_in_words(place.domain)}"
    words = key_in_words(place.domain, subject.secret, name)
    if words is not None:
        yield f"nonmodal uniques are {words}"
    yield (
        "of several ways to read a file (its most likely answer, one drawn in proportion, a guess without tables; of "
        "recoded records also undone or looked up) the one counts that is right most often: rates flatter the attacker"
    )


def _not_applied(subject: Subject, summed: tuple[SummedTables, ...]) -> Iterator[str]:
    if subject.ordered is None:
        yield (
            f"micro-aggregation and top-coding in the {COMPARISON}: beside the place, no table is by an ordered "
            "attribute with three levels or more"
        )
    if not summed:
        yield "dominance and p % rules: they are about sums of numbers, and no table has such sums by place"


def synthetic_people(domain: Domain, sizes: Integers, draws: np.random.Generator) -> Integers:
    """Records drawn for an audit: places differ, and so do the shares of levels; shape (places, cells).

    Nothing in it comes from data: each attribute's shares are drawn for everybody, then again around them for a place.
    """
    possible = domain.possible_cells()
    national = [draws.dirichlet(np.ones(size)) for size in domain.shape]
    found = np.zeros((len(sizes), domain.size), dtype=np.int64)
    for place, size in enumerate(sizes.tolist()):
        joint = np.ones(1)
        for shares in national:
            joint = np.outer(joint, draws.dirichlet(np.maximum(shares * 5.0, 1e-3))).reshape(-1)
        joint = joint * possible
        total = joint.sum()
        found[place] = draws.multinomial(size, joint / total if total > 0 else possible / possible.sum())
    return found


def published_tables(name: str, place: OnePlace, truths: Truths, key: bytes) -> Iterator[ExactTables | NoisyTables]:
    """The tables of one population after the other: exact, then with geometric noise at several ε for all of them.

    Records of cells that no table counts are left out of account.
    """
    equations = Equations.of_workload(place.workload)
    possible = covered(equations, place.domain.possible_cells())
    tables = float(place.workload.sensitivity().value)
    coarsening = levels_in_words(place.domain)
    for reference, counts in open_truths(truths).items():
        truth = np.where(possible, counts, 0)
        values = equations.of(truth)
        places = tuple(f"place {number + 1}" for number in range(len(truth)))
        boxes = {reference: boxed(truth)}
        yield ExactTables(
            f"the tables of {name}", equations, values, places, coarsening, ~possible, boxes, place.domain
        )
        draws = generator(key, f"noise for {name}, {reference}")
        for epsilon in EPSILONS:
            law = GEOMETRIC.at(epsilon / tables)
            noisy = values + law.draw(draws, values.shape)
            yield tables_with_noise(
                f"the tables of {name}",
                equations,
                noisy.astype(np.float64),
                np.full(equations.rows, law.mean_absolute),
                place.domain,
                protection=f"geometric noise at ε = {epsilon:g} for all tables together",
                prior="what all places together are like, by the same tables"
                if len(truth) > 1
                else "how many there are",
                truths=boxes,
            )


def planned_method(plan: Plan, place: OnePlace, people: Integers, key: bytes) -> tuple[PublicationMethod, str]:
    """What the plan publishes of these people, and in words how that was found out.

    `people` are those of the first places, shape (places, cells of one); nobody lives in the others.
    """
    draws = generator(key, f"the plan of {plan.program.name}")
    try:
        numbers, how = _released(plan, place, people, draws), "measured, estimated and drawn as it would be released"
    except Refusal as refusal:
        numbers = _with_noise(plan, place, people, draws)
        how = f"noise of the planned size on every number, as a whole release was not tried out: {refusal.what}"
    printed = np.concatenate([numbers[table.name][0] for table in place.tables], axis=1)
    scales = np.concatenate([numbers[table.name][1] for table in place.tables], axis=1)
    known = KnownNumbers.shown(printed, scales)
    name = f"the plan: {stated_loss(plan.loss)}"
    promised = promised_error(plan, place)
    method = PublicationMethod(
        "differential privacy", name, printed, known, loss=plan.loss, planned=True, promised_error=promised
    )
    return method, f"{name}, {how}"


def promised_error(plan: Plan, place: OnePlace) -> float | None:
    """The mean absolute error of a number of these tables by the plan's frontier, before anything is drawn."""
    errors, counts = _promised(plan), plan.technology.frontier.query_counts
    names = [table.name for table in place.tables]
    return sum(errors[name] * counts[name] for name in names) / sum(counts[name] for name in names) if errors else None


def _promised(plan: Plan) -> dict[str, float]:
    """By table, the mean absolute error of a number; nothing where the frontier does not state it."""
    technology = plan.technology
    simulated = technology.drawn is not None  # its frontier is counted as the program counts
    measured = technology.frontier if simulated else technology.noise_frontier
    try:
        losses = measured.table_errors(plan.choice.epsilon if simulated else float(plan.loss.amount), "absolute")
    except Refusal:
        return {}
    return {name: loss / measured.query_counts[name] for name, loss in losses.items()}


def _released(plan: Plan, place: OnePlace, people: Integers, draws: np.random.Generator) -> Numbers:
    domain = plan.program.domain
    if domain.size > LARGEST_MEASURED:
        raise TooLarge(f"{domain.size:,} cells", why="all of them are counted", instead="plan for fewer")
    order = release_spec_of_plan(plan)
    if order.technology is not None:
        return _told(plan, order.technology, _everywhere(place, people, domain.shape), place, len(people), draws)
    rows = sum(group.rows.size for group in order.groups)
    if rows > LARGEST_MEASURED:
        raise TooLarge(f"{rows:,} rows are measured", why="all of them are drawn", instead="plan for fewer")
    counts = _everywhere(place, people, domain.shape)
    public = None
    if order.public is not None:
        public = known_histogram(order, np.asarray(order.public.answers(counts), dtype=np.int64))
    found: Numbers = {}
    for group in order.groups:
        kinds, values = group.rows.kinds(), group.rows.count(counts).astype(np.int64)
        for kind, noise in enumerate(group.noises):
            own = np.flatnonzero(kinds == kind)
            values[own] += noise.distribution().draw(draws, own.shape).astype(np.int64)
        answers, start = group.rows.answers(values, public), 0
        for table in group.tables:
            here = answers[start : start + table.query_count]
            start += table.query_count
            if table in place.tables:
                errors = np.sqrt(group.measurement.query_variances(table.name, group.loss)) * MEAN_SIZE
                spread = np.broadcast_to(errors, here.shape)
                both = (place.by_place(table, each)[: len(people)].astype(np.float64) for each in (here, spread))
                found[table.name] = next(both), next(both)
    return found


def _told(
    plan: Plan,
    technology: OrderedTechnology,
    counts: Integers,
    place: OnePlace,
    places: int,
    draws: np.random.Generator,
) -> Numbers:
    """What a technology tells of these people, with keys of the audit; errors are those that were planned."""
    curator = RecordsCurator(Histogram(plan.program.domain, counts), simulation_keys(int(draws.integers(2**62)), 0))
    told = technology.tell(curator, plan.program.protection)
    promised = _promised(plan)
    found: Numbers = {}
    for table, own in zip(technology.workload.tables, by_table(technology.workload.tables, told.values), strict=True):
        if table in place.tables:
            here = place.by_place(table, own)[:places].astype(np.float64)
            found[table.name] = here, np.full(here.shape, promised.get(table.name, 1.0))
    return found


def _everywhere(place: OnePlace, people: Integers, shape: tuple[int, ...]) -> Integers:
    """Counts of the whole domain: these people in the first places."""
    if place.axis is None:
        return people.reshape(shape)
    whole = np.zeros((len(place.places), people.shape[1]), dtype=np.int64)
    whole[: len(people)] = people
    return np.moveaxis(whole.reshape(len(whole), *place.domain.shape), 0, place.axis)


def _with_noise(plan: Plan, place: OnePlace, people: Integers, draws: np.random.Generator) -> Numbers:
    """Noise of the plan's law on each table's exact numbers, as large as its frontier says.

    Numbers that a strategy puts together from many rows have errors that are nearly normal.
    """
    found: Numbers = {}
    if plan.technology.drawn is not None:
        raise InvalidMechanism(
            f"'{plan.technology.strategy}' over a domain that is not tried out whole",
            why="its errors depend on the data, and noise of one size would not stand for them",
            instead="audit a release",
        )
    promised = _promised(plan)
    for group, spent in plan.allocation.items():
        measurement = plan.technology.measurements[group]
        for table in place.tables:
            if table.name not in {each.name for each in measurement.workload.tables}:
                continue
            exact = Equations.of_workload(place.workload.only((table.name,))).of(people)
            variance = float(np.mean(measurement.query_variances(table.name, float(spent))))
            if measurement.rows.strategy is None:
                law = measurement.law.at(measurement.unit_loss(float(spent)))
                size = math.sqrt(variance / law.variance)
                noise, error = law.draw(draws, exact.shape) * size, law.mean_absolute * size
            else:
                error = promised.get(table.name, math.sqrt(variance) * MEAN_SIZE)
                noise = draws.normal(0.0, error / MEAN_SIZE, exact.shape)
            found[table.name] = exact + noise, np.full(exact.shape, error)
    return found
